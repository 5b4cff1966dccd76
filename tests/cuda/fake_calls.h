/* Calls of the fake driver: counted by name, and failing on demand. Part of fake_libcuda.c. */
enum { MOST_CALLS = 256 };
static struct entry { char name[64]; long count, first; int code; } calls[MOST_CALLS];
static pthread_mutex_t desk = PTHREAD_MUTEX_INITIALIZER;

static struct entry *entry_of(const char *name) {
    for (int i = 0; i < MOST_CALLS; i++) {
        if (!calls[i].name[0]) snprintf(calls[i].name, sizeof calls[i].name, "%s", name);
        if (!strcmp(calls[i].name, name)) return &calls[i];
    }
    abort();
}

long fake_calls(const char *name) {
    pthread_mutex_lock(&desk);
    long count = entry_of(name)->count;
    pthread_mutex_unlock(&desk);
    return count;
}

/* The nth call from now (1: the next one) and all later ones give this code; 0 ends that. */
void fake_fail(const char *name, long nth, int code) {
    pthread_mutex_lock(&desk);
    struct entry *entry = entry_of(name);
    entry->first = entry->count + nth;
    entry->code = code;
    pthread_mutex_unlock(&desk);
}

/* FAKE_CUDA_FAIL="cuInit:1:999,cuMemAlloc_v2:2:2" says the same for a process from its beginning. */
__attribute__((constructor)) static void fail_from_the_start(void) {
    const char *text = getenv("FAKE_CUDA_FAIL");
    for (char name[64]; text && *text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL) {
        long nth;
        int code;
        if (sscanf(text, "%63[^:]:%ld:%d", name, &nth, &code) == 3) fake_fail(name, nth, code);
    }
}

static int called(const char *name) {
    pthread_mutex_lock(&desk);
    struct entry *entry = entry_of(name);
    entry->count++;
    int code = entry->code && entry->count >= entry->first ? entry->code : OK;
    pthread_mutex_unlock(&desk);
    return code;
}
#define CALLED do { int code_ = called(__func__); if (code_) return code_; } while (0)

/* Most calls need the context of the thread. */
static __thread void *stack[16];
static __thread int depth;
static void *current(void) { return depth ? stack[depth - 1] : NULL; }
#define NEEDS_CONTEXT do { CALLED; if (!current()) return INVALID_CONTEXT; } while (0)
