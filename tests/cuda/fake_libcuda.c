/* A stand-in for libcuda.so.1 in host memory, for machines without a GPU: `Device memory` is the host's, streams do
their work when it is waited for, every call is counted and can be made to fail, and addresses outside of what was
allocated are refused. The functions that pycuda links but edged does not use are added by fake.py.

FAKE_CUDA_DEVICES (1), FAKE_CUDA_VERSION (13000), FAKE_CUDA_CAPABILITY (87), FAKE_CUDA_MEMORY_MB (2048),
FAKE_CUDA_INTEGRATED (0), FAKE_CUDA_GRAPHS (1), FAKE_CUDA_FAIL (see fake_calls.h) */
#define _GNU_SOURCE
#include "fake_memory.h"

#include "fake_calls.h"

#include "fake_streams.h"

/* -- the device ---------------------------------------------------------------------------------------------- */

static int initialised;
static void *primary;
static long primaries;

int cuInit(unsigned flags) {
    (void)flags;
    CALLED;
    if (setting("FAKE_CUDA_DEVICES", 1) < 1) return NO_DEVICE;
    initialised = 1;
    return OK;
}
int cuDriverGetVersion(int *version) { CALLED; *version = (int)setting("FAKE_CUDA_VERSION", 13000); return OK; }
int cuDeviceGetCount(int *count) {
    CALLED;
    if (!initialised) return NOT_INITIALIZED;
    *count = (int)setting("FAKE_CUDA_DEVICES", 1);
    return OK;
}
int cuDeviceGet(int *device, int ordinal) {
    CALLED;
    if (!initialised) return NOT_INITIALIZED;
    *device = ordinal;
    return ordinal < 0 || ordinal >= setting("FAKE_CUDA_DEVICES", 1) ? INVALID_DEVICE : OK;
}
int cuDeviceGetName(char *name, int size, int device) {
    (void)device;
    CALLED;
    snprintf(name, (size_t)size, "fake device (host memory)");
    return OK;
}
int cuDeviceComputeCapability(int *major, int *minor, int device) {
    (void)device;
    CALLED;
    long capability = setting("FAKE_CUDA_CAPABILITY", 87);
    *major = (int)(capability / 10);
    *minor = (int)(capability % 10);
    return OK;
}
int cuDeviceTotalMem_v2(size_t *size, int device) {
    (void)device;
    CALLED;
    *size = (size_t)setting("FAKE_CUDA_MEMORY_MB", 2048) << 20;
    return OK;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    CALLED;
    long capability = setting("FAKE_CUDA_CAPABILITY", 87);
    switch (attribute) {
    case 1: *value = 1024; break;                                       /* threads a block */
    case 16: *value = 8; break;                                         /* multiprocessors */
    case 18: *value = (int)setting("FAKE_CUDA_INTEGRATED", 0); break;   /* shares the host's memory */
    case 75: *value = (int)(capability / 10); break;
    case 76: *value = (int)(capability % 10); break;
    default: *value = 0;
    }
    return OK;
}

/* -- contexts ------------------------------------------------------------------------------------------------ */

int cuDevicePrimaryCtxRetain(void **context, int device) {
    (void)device;
    CALLED;
    if (!primaries++) {
        primary = malloc(1);
        made(CONTEXT);
    }
    *context = primary;
    return OK;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    CALLED;
    if (!primaries) return INVALID_CONTEXT;
    if (!--primaries) {
        free(primary);
        gone(CONTEXT);
    }
    return OK;
}
int cuCtxPushCurrent_v2(void *context) {
    CALLED;
    if (!context || depth == 16) return INVALID_VALUE;
    stack[depth++] = context;
    return OK;
}
int cuCtxPopCurrent_v2(void **context) {
    CALLED;
    if (!depth) return INVALID_CONTEXT;
    depth--;
    if (context) *context = stack[depth];
    return OK;
}
int cuCtxSetCurrent(void *context) {
    CALLED;
    if (depth) depth--;
    if (context) stack[depth++] = context;
    return OK;
}
int cuCtxGetCurrent(void **context) { CALLED; *context = current(); return OK; }
int cuCtxGetDevice(int *device) { NEEDS_CONTEXT; *device = 0; return OK; }
int cuCtxSynchronize(void) { NEEDS_CONTEXT; flush_all(); return OK; }

/* -- memory -------------------------------------------------------------------------------------------------- */

int cuMemGetInfo_v2(size_t *free_, size_t *all) {
    NEEDS_CONTEXT;
    *all = (size_t)setting("FAKE_CUDA_MEMORY_MB", 2048) << 20;
    *free_ = *all - device_bytes;
    return OK;
}
int cuMemAlloc_v2(address *memory, size_t size) {
    NEEDS_CONTEXT;
    unsigned char *taken = NULL;
    int code = take(DEVICE, size, &taken);
    *memory = (address)(uintptr_t)taken;
    return code;
}
/* Freeing waits for the device, as the driver's does. */
int cuMemFree_v2(address memory) { NEEDS_CONTEXT; flush_all(); return give(DEVICE, (unsigned char *)(uintptr_t)memory); }
int cuMemHostAlloc(void **memory, size_t size, unsigned flags) {
    (void)flags;
    NEEDS_CONTEXT;
    unsigned char *taken = NULL;
    int code = take(PINNED, size, &taken);
    *memory = taken;
    return code;
}
int cuMemFreeHost(void *memory) { NEEDS_CONTEXT; flush_all(); return give(PINNED, memory); }

/* -- work in streams ----------------------------------------------------------------------------------------- */

static unsigned char *device_at(address memory, size_t size) {
    unsigned char *start = (unsigned char *)(uintptr_t)memory;
    return within(DEVICE, start, size) ? start : NULL;
}

int cuMemcpyHtoDAsync_v2(address target, const void *source, size_t size, void *handle) {
    NEEDS_CONTEXT;
    stream *s = stream_of(handle);
    op o = {.what = COPY, .target = device_at(target, size), .source = source, .size = size};
    if (!o.target) return INVALID_VALUE;
    if (!within(PINNED, source, size)) {
        if (s->recording) return s->broken = 1, CAPTURE_UNSUPPORTED;
        o.staged = malloc(size ? size : 1);
        memcpy(o.staged, source, size);
    }
    return put(s, o);
}
int cuMemcpyDtoHAsync_v2(void *target, address source, size_t size, void *handle) {
    NEEDS_CONTEXT;
    stream *s = stream_of(handle);
    op o = {.what = COPY, .target = target, .source = device_at(source, size), .size = size};
    if (!o.source) return INVALID_VALUE;
    int pageable = !within(PINNED, target, size);
    if (pageable && s->recording) return s->broken = 1, CAPTURE_UNSUPPORTED;
    put(s, o);
    if (pageable) flush(s, s->put);
    return OK;
}
int cuMemcpyDtoDAsync_v2(address target, address source, size_t size, void *handle) {
    NEEDS_CONTEXT;
    op o = {.what = COPY, .target = device_at(target, size), .source = device_at(source, size), .size = size};
    return o.target && o.source ? put(stream_of(handle), o) : INVALID_VALUE;
}

/* Layout of the driver's CUDA_MEMCPY2D. Only copies within the device are made here. */
typedef struct {
    size_t source_x, source_y;
    unsigned source_type;
    const void *source_host;
    address source;
    void *source_array;
    size_t source_pitch, target_x, target_y;
    unsigned target_type;
    void *target_host;
    address target;
    void *target_array;
    size_t target_pitch, width, height;
} rectangle;
enum { ON_DEVICE = 2 };

int cuMemcpy2DAsync_v2(const rectangle *r, void *handle) {
    NEEDS_CONTEXT;
    if (r->source_type != ON_DEVICE || r->target_type != ON_DEVICE) return NOT_SUPPORTED;
    if (r->width > r->source_pitch || r->width > r->target_pitch || !r->height) return INVALID_VALUE;
    size_t rows = r->height - 1;
    op o = {.what = ROWS, .rows = r->height, .size = r->width};
    o.target_pitch = r->target_pitch;
    o.source_pitch = r->source_pitch;
    o.target = device_at(r->target, rows * r->target_pitch + r->width);
    o.source = device_at(r->source, rows * r->source_pitch + r->width);
    return o.target && o.source ? put(stream_of(handle), o) : INVALID_VALUE;
}
int cuMemsetD8Async(address target, unsigned char value, size_t size, void *handle) {
    NEEDS_CONTEXT;
    op o = {.what = FILL, .target = device_at(target, size), .value = value, .size = size};
    return o.target ? put(stream_of(handle), o) : INVALID_VALUE;
}
int cuMemsetD8_v2(address target, unsigned char value, size_t size) {
    NEEDS_CONTEXT;
    op o = {.what = FILL, .target = device_at(target, size), .value = value, .size = size};
    return o.target ? put(stream_of(NULL), o) : INVALID_VALUE;
}
/* Work of the host in its turn: how a test stands in for a kernel or an engine. */
int cuLaunchHostFunc(void *handle, void (*function)(void *), void *data) {
    NEEDS_CONTEXT;
    return put(stream_of(handle), (op){.what = HOST, .function = function, .data = data});
}
int cuMemcpyHtoD_v2(address target, const void *source, size_t size) {
    NEEDS_CONTEXT;
    unsigned char *to = device_at(target, size);
    if (!to) return INVALID_VALUE;
    flush(stream_of(NULL), standard.put);
    memcpy(to, source, size);
    return OK;
}
int cuMemcpyDtoH_v2(void *target, address source, size_t size) {
    NEEDS_CONTEXT;
    unsigned char *from = device_at(source, size);
    if (!from) return INVALID_VALUE;
    flush(stream_of(NULL), standard.put);
    memcpy(target, from, size);
    return OK;
}

/* -- streams and events -------------------------------------------------------------------------------------- */

int cuStreamCreate(stream **s, unsigned flags) {
    (void)flags;
    NEEDS_CONTEXT;
    *s = calloc(1, sizeof **s);
    list(stream_of(*s));
    made(STREAM);
    return OK;
}
int cuStreamDestroy_v2(stream *s) {
    NEEDS_CONTEXT;
    flush(s, s->put);
    unlist(s);
    free(s);
    gone(STREAM);
    return OK;
}
int cuStreamSynchronize(void *handle) {
    NEEDS_CONTEXT;
    stream *s = stream_of(handle);
    int code = broken(s);
    if (!code) flush(s, s->put);
    return code;
}
static int asked(stream *s, long upto) {
    int code = s->done >= upto ? OK : NOT_READY;
    if (code && !pthread_mutex_trylock(&work)) {
        step(s);
        pthread_mutex_unlock(&work);
    }
    return code;
}
int cuStreamQuery(void *handle) {
    NEEDS_CONTEXT;
    stream *s = stream_of(handle);
    int code = broken(s);
    return code ? code : asked(s, s->put);
}
int cuEventCreate(event **e, unsigned flags) {
    (void)flags;
    NEEDS_CONTEXT;
    *e = calloc(1, sizeof **e);
    made(EVENT);
    return OK;
}
int cuEventDestroy_v2(event *e) { NEEDS_CONTEXT; free(e); gone(EVENT); return OK; }
int cuEventRecord(event *e, void *handle) {
    NEEDS_CONTEXT;
    stream *s = stream_of(handle);
    e->captured = s->recording != NULL;
    put(s, (op){.what = RECORD});
    e->stream = s;
    e->at = s->put;
    return OK;
}
int cuEventSynchronize(event *e) {
    NEEDS_CONTEXT;
    if (e->captured) return CAPTURED_EVENT;
    if (e->stream) flush(e->stream, e->at);
    return OK;
}
int cuEventQuery(event *e) {
    NEEDS_CONTEXT;
    if (e->captured) return CAPTURED_EVENT;
    return e->stream ? asked(e->stream, e->at) : OK;
}
int cuStreamWaitEvent(void *handle, event *e, unsigned flags) {
    (void)flags;
    NEEDS_CONTEXT;
    if (!e->stream) return OK;
    return put(stream_of(handle), (op){.what = WAIT, .other = e->stream, .upto = e->at});
}

/* -- graphs -------------------------------------------------------------------------------------------------- */

static int graphs(void) { return setting("FAKE_CUDA_GRAPHS", 1) ? OK : NOT_SUPPORTED; }

int cuStreamBeginCapture_v2(void *handle, int mode) {
    (void)mode;
    NEEDS_CONTEXT;
    if (graphs()) return NOT_SUPPORTED;
    stream *s = handle;
    if (!s || s->recording) return INVALID_VALUE;
    s->recording = calloc(1, sizeof *s->recording);
    s->recording->end = &s->recording->first;
    s->broken = 0;
    made(GRAPH);
    return OK;
}
int cuStreamEndCapture(void *handle, graph **recorded) {
    stream *s = handle;
    NEEDS_CONTEXT;
    if (!s->recording) return INVALID_VALUE;
    *recorded = s->recording;
    s->recording = NULL;
    if (!s->broken) return OK;
    discard(*recorded);
    *recorded = NULL;
    return CAPTURE_INVALIDATED;
}
int cuGraphInstantiateWithFlags(graph **executable, graph *recorded, unsigned long long flags) {
    (void)flags;
    NEEDS_CONTEXT;
    graph *g = *executable = calloc(1, sizeof *g);
    g->end = &g->first;
    for (op *o = recorded->first; o; o = o->next) {
        *g->end = copy_of(o);
        g->end = &(*g->end)->next;
    }
    made(GRAPH);
    return OK;
}
int cuGraphDestroy(graph *g) { NEEDS_CONTEXT; discard(g); return OK; }
int cuGraphExecDestroy(graph *g) { NEEDS_CONTEXT; discard(g); return OK; }
int cuGraphLaunch(graph *g, void *handle) {
    NEEDS_CONTEXT;
    for (op *o = g->first; o; o = o->next) put(stream_of(handle), *o);
    return OK;
}

/* -- names of codes ------------------------------------------------------------------------------------------ */

static const struct { int code; const char *name, *text; } codes[] = {
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted while a stream is captured"},
    {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the capture failed before"},
    {CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT", "not permitted on an event of a capture"},
    {UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};
static int told(int code, const char **text, int name) {
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code) return *text = name ? codes[i].name : codes[i].text, OK;
    *text = "unrecognized error code";
    return INVALID_VALUE;
}
int cuGetErrorString(int code, const char **text) { return told(code, text, 0); }
int cuGetErrorName(int code, const char **text) { return told(code, text, 1); }
