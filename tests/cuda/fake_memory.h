/* Memory of the fake driver: the host's, with the books that the tests read. Part of fake_libcuda.c. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
       INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_READY = 600, ILLEGAL_ADDRESS = 700, NOT_SUPPORTED = 801,
       CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901, CAPTURED_EVENT = 907, UNKNOWN = 999 };

typedef unsigned long long address;

/* What is alive and what was ever made, by kind. */
enum kind { DEVICE, PINNED, STREAM, EVENT, CONTEXT, GRAPH, KINDS };
static const char *const kinds[KINDS] = {"device", "pinned", "stream", "event", "context", "graph"};
static long live[KINDS], total[KINDS];

static int kind_of(const char *name) {
    for (int k = 0; k < KINDS; k++)
        if (!strcmp(kinds[k], name)) return k;
    return -1;
}
long fake_live(const char *kind) { int k = kind_of(kind); return k < 0 ? -1 : live[k]; }
long fake_total(const char *kind) { int k = kind_of(kind); return k < 0 ? -1 : total[k]; }

static void made(enum kind k) { __sync_add_and_fetch(&live[k], 1); __sync_add_and_fetch(&total[k], 1); }
static void gone(enum kind k) { __sync_sub_and_fetch(&live[k], 1); }

static long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? atol(text) : otherwise;
}

/* Allocations, so that an address outside of them is found out where it is used. */
enum { MOST_PIECES = 4096 };
static struct piece { unsigned char *memory; size_t size; enum kind kind; } pieces[MOST_PIECES];
static size_t device_bytes;
static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER;

static int take(enum kind kind, size_t size, unsigned char **memory) {
    size_t limit = (size_t)setting("FAKE_CUDA_MEMORY_MB", 2048) << 20;
    int code = OUT_OF_MEMORY;
    if (!size) return INVALID_VALUE;
    pthread_mutex_lock(&books);
    for (int i = 0; i < MOST_PIECES && (kind != DEVICE || device_bytes + size <= limit); i++) {
        if (pieces[i].memory) continue;
        *memory = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
        if (!*memory) break;
        memset(*memory, 0xFF, size); /* fresh memory holds no zeros; these bytes are no numbers in any float type */
        pieces[i] = (struct piece){*memory, size, kind};
        if (kind == DEVICE) device_bytes += size;
        made(kind);
        code = OK;
        break;
    }
    pthread_mutex_unlock(&books);
    return code;
}

static int give(enum kind kind, unsigned char *memory) {
    int code = INVALID_VALUE;
    pthread_mutex_lock(&books);
    for (int i = 0; i < MOST_PIECES && code; i++) {
        if (pieces[i].memory != memory || pieces[i].kind != kind) continue;
        memset(memory, 0xFF, pieces[i].size);
        free(memory);
        if (kind == DEVICE) device_bytes -= pieces[i].size;
        pieces[i].memory = NULL;
        gone(kind);
        code = OK;
    }
    pthread_mutex_unlock(&books);
    return code;
}

/* Whether all of it lies in one allocation of that kind. */
static int within(enum kind kind, const void *memory, size_t size) {
    const unsigned char *start = memory;
    int found = 0;
    pthread_mutex_lock(&books);
    for (int i = 0; i < MOST_PIECES && !found; i++)
        found = pieces[i].memory && pieces[i].kind == kind && start >= pieces[i].memory &&
                start + size <= pieces[i].memory + pieces[i].size;
    pthread_mutex_unlock(&books);
    return found;
}
