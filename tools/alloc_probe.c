/* Counts large allocations per thread name, for proving that a thread makes none while it serves.
 *
 *   gcc -O2 -shared -fPIC -o alloc_probe.so alloc_probe.c
 *   EDGED_PROBE_FILE=/tmp/counts LD_PRELOAD=./alloc_probe.so python ...
 *
 * EDGED_PROBE_FILE   the table below, mapped shared: readable at any time, also after a kill
 * EDGED_PROBE_BYTES  smallest counted request (default 65536)
 *
 * glibc only: requests go on to __libc_malloc and its kin, so nothing here can recurse, and the mappings
 * that malloc makes itself are not counted twice. `alloc_probe.py` builds the library and reads the table.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROWS 256

struct row {                  /* little-endian, 56 bytes, see alloc_probe.py */
    _Atomic uint32_t pid;     /* 0: free */
    _Atomic uint32_t ready;   /* 1: the name is written */
    char name[16];            /* thread name as the kernel has it */
    _Atomic uint64_t heap, heap_bytes; /* malloc and its kin */
    _Atomic uint64_t maps, map_bytes;  /* mmap called by libraries */
};

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static struct row *table;
static size_t threshold = 65536;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("EDGED_PROBE_FILE"), *bytes = getenv("EDGED_PROBE_BYTES");
    if (bytes && atol(bytes) > 0) threshold = (size_t)atol(bytes);
    if (!path) return;
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    if (ftruncate(file, sizeof(struct row) * ROWS) == 0) {
        void *memory = (void *)syscall(SYS_mmap, NULL, sizeof(struct row) * ROWS, PROT_READ | PROT_WRITE,
                                       MAP_SHARED, file, 0);
        if (memory != MAP_FAILED) table = memory;
    }
    close(file);
}

/* The row of the calling thread; threads of one name share a row. */
static struct row *mine(void) {
    char name[16] = {0};
    uint32_t pid = (uint32_t)getpid();
    prctl(PR_GET_NAME, name, 0, 0, 0);
    for (int i = 0; i < ROWS; i++) {
        struct row *row = &table[i];
        uint32_t owner = atomic_load(&row->pid);
        if (owner == 0) {
            if (!atomic_compare_exchange_strong(&row->pid, &owner, pid)) { i--; continue; }
            memcpy(row->name, name, sizeof name);
            atomic_store(&row->ready, 1);
            return row;
        }
        if (owner != pid) continue;
        while (!atomic_load(&row->ready)) { }
        if (memcmp(row->name, name, sizeof name) == 0) return row;
    }
    return NULL;
}

static void count(size_t bytes, int map) {
    if (bytes < threshold || !table) return;
    int saved = errno;
    struct row *row = mine();
    if (row) {
        atomic_fetch_add(map ? &row->maps : &row->heap, 1);
        atomic_fetch_add(map ? &row->map_bytes : &row->heap_bytes, bytes);
    }
    errno = saved;
}

void *malloc(size_t bytes) { count(bytes, 0); return __libc_malloc(bytes); }

void *calloc(size_t items, size_t size) {
    size_t bytes;
    if (!__builtin_mul_overflow(items, size, &bytes)) count(bytes, 0);
    return __libc_calloc(items, size);
}

void *realloc(void *old, size_t bytes) { count(bytes, 0); return __libc_realloc(old, bytes); }

void *memalign(size_t align, size_t bytes) { count(bytes, 0); return __libc_memalign(align, bytes); }

void *aligned_alloc(size_t align, size_t bytes) { count(bytes, 0); return __libc_memalign(align, bytes); }

int posix_memalign(void **out, size_t align, size_t bytes) {
    if (align % sizeof(void *) || align == 0 || (align & (align - 1))) return EINVAL;
    count(bytes, 0);
    void *memory = __libc_memalign(align, bytes);
    if (!memory) return ENOMEM;
    *out = memory;
    return 0;
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    count(bytes, 1);
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    return mmap(address, bytes, protection, flags, file, offset);
}
