/* Streams of the fake driver. Part of fake_libcuda.c.

What is put into a stream is done when somebody waits for it, and not before: a program that reads a result without
waiting, or changes page-locked memory too early, gets wrong numbers here each time, and not once in a while as on a
device. A question (cuEventQuery) does one piece of the work, so that asking again and again comes to an end. */
#include <dlfcn.h>

typedef struct stream stream;
typedef struct event event;
typedef struct graph graph;
enum what { COPY, ROWS, FILL, RECORD, WAIT, HOST };
typedef struct op {
    enum what what;
    unsigned char *target;
    const unsigned char *source;
    unsigned char *staged; /* pageable memory is copied when the call is made */
    size_t size, rows, target_pitch, source_pitch;
    int value;
    event *mark;
    stream *other;
    long upto;
    void (*function)(void *);
    void *data;
    struct op *next;
} op;
struct stream { op *first, **end; long put, done; graph *recording; int broken; stream *next; };
struct event { stream *stream; long at; int captured; };
struct graph { op *first, **end; };

static pthread_mutex_t queues = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t work = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* held while work is done */

/* Work calls back into Python, which then wants its interpreter lock; a thread that has this one must not wait for
`work` with it, as some calls of pycuda would: it is put down for the time of the wait. */
static void lock_work(void) {
    if (!pthread_mutex_trylock(&work)) return;
    int (*held)(void) = dlsym(RTLD_DEFAULT, "PyGILState_Check");
    void *(*put_down)(void) = dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
    void (*take_up)(void *) = dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
    void *state = held && held() ? put_down() : NULL;
    pthread_mutex_lock(&work);
    if (state) take_up(state);
}

static stream standard; /* the default stream, before all others in a list */

static stream *stream_of(void *handle) {
    stream *s = handle ? handle : &standard;
    if (!s->end) s->end = &s->first;
    return s;
}

static op *copy_of(const op *o) {
    op *c = malloc(sizeof *c);
    *c = *o;
    c->next = NULL;
    return c;
}

static void flush(stream *s, long upto);

static void perform(op *o) {
    switch (o->what) {
    case COPY:
        memmove(o->target, o->staged ? o->staged : o->source, o->size);
        break;
    case ROWS:
        for (size_t r = 0; r < o->rows; r++)
            memmove(o->target + r * o->target_pitch, o->source + r * o->source_pitch, o->size);
        break;
    case FILL:
        memset(o->target, o->value, o->size);
        break;
    case WAIT:
        flush(o->other, o->upto);
        break;
    case HOST:
        o->function(o->data);
        break;
    case RECORD:
        break;
    }
}

static int step(stream *s) {
    pthread_mutex_lock(&queues);
    op *o = s->first;
    if (o && !(s->first = o->next)) s->end = &s->first;
    pthread_mutex_unlock(&queues);
    if (!o) return 0;
    perform(o);
    free(o->staged);
    free(o);
    __sync_add_and_fetch(&s->done, 1);
    return 1;
}

static void flush(stream *s, long upto) {
    lock_work();
    while (s->done < upto && step(s)) continue;
    pthread_mutex_unlock(&work);
}

static void flush_all(void) {
    for (stream *s = stream_of(NULL); s; s = s->next) flush(s, s->put);
}

static void list(stream *s) {
    lock_work();
    s->next = standard.next;
    standard.next = s;
    pthread_mutex_unlock(&work);
}

static void unlist(stream *s) {
    lock_work();
    for (stream *at = &standard; at; at = at->next)
        if (at->next == s) at->next = s->next;
    pthread_mutex_unlock(&work);
}

/* Enters work into the stream, or into the graph that the stream records. */
static int put(stream *s, op o) {
    op *c = copy_of(&o);
    pthread_mutex_lock(&queues);
    if (s->recording) {
        *s->recording->end = c;
        s->recording->end = &c->next;
    } else {
        *s->end = c;
        s->end = &c->next;
        s->put++;
    }
    pthread_mutex_unlock(&queues);
    return OK;
}

/* Waiting for a stream that records ends the recording. */
static int broken(stream *s) {
    if (!s->recording) return OK;
    s->broken = 1;
    return CAPTURE_UNSUPPORTED;
}

static void discard(graph *g) {
    for (op *o = g->first; o;) {
        op *next = o->next;
        free(o->staged);
        free(o);
        o = next;
    }
    free(g);
    gone(GRAPH);
}
