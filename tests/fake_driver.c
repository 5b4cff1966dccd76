/* A libcuda.so.1 without a GPU: answers what the preflight asks, as the macros say, and counts contexts.
 *
 * Each macro is one property or defect of the driver; the test compiles one library for each case.
 * FAIL: the function that fails, with RESULT; only its own test defines it. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#define VERSION 12060
#endif
#ifndef INIT
#define INIT 0
#endif
#ifndef COUNT
#define COUNT 1
#endif
#ifndef MAJOR
#define MAJOR 8
#endif
#ifndef MINOR
#define MINOR 7
#endif
#ifndef INTEGRATED
#define INTEGRATED 0
#endif
#ifndef FREE_MB
#define FREE_MB 6000
#endif
#ifndef FAIL
#define FAIL ""
#endif

static int retained, pushed, initialised;

static int answer(const char *name) {
    return strcmp(name, FAIL) == 0 ? 999 : 0;
}

int cuDriverGetVersion(int *version) { *version = VERSION; return answer("cuDriverGetVersion"); }

int cuInit(unsigned flags) {
#ifdef CRASH
    abort();
#endif
    initialised = INIT == 0;
    return INIT;
}

static int ready(const char *name) {
    return initialised ? answer(name) : 3; /* CUDA_ERROR_NOT_INITIALIZED */
}

int cuDeviceGetCount(int *count) { *count = COUNT; return ready("cuDeviceGetCount"); }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ready("cuDeviceGet"); }

int cuDeviceGetName(char *name, int length, int device) {
    strncpy(name, "Fake Orin", length);
    return ready("cuDeviceGetName");
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = (size_t)8000 * 1000000;
    return ready("cuDeviceTotalMem_v2");
}

int cuDeviceGetAttribute(int *value, int which, int device) {
    *value = which == 75 ? MAJOR : which == 76 ? MINOR : which == 18 ? INTEGRATED : -1;
    return ready("cuDeviceGetAttribute");
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    int result = ready("cuDevicePrimaryCtxRetain");
    *context = &retained;
    retained += result == 0;
    return result;
}

int cuDevicePrimaryCtxRelease_v2(int device) { retained--; return 0; }

int cuCtxPushCurrent_v2(void *context) {
    int result = context == &retained ? ready("cuCtxPushCurrent_v2") : 201; /* CUDA_ERROR_INVALID_CONTEXT */
    pushed += result == 0;
    return result;
}

int cuCtxPopCurrent_v2(void **context) { pushed--; return 0; }

int cuMemGetInfo_v2(size_t *free, size_t *total) {
    if (pushed != 1)
        return 201;
    *free = (size_t)FREE_MB * 1000000;
    *total = (size_t)8000 * 1000000;
    return ready("cuMemGetInfo_v2");
}

#ifndef NAMELESS
int cuGetErrorName(int code, const char **name) {
    if (code != 100 && code != 999 && code != 803)
        return 1;
    *name = code == 100 ? "CUDA_ERROR_NO_DEVICE" : code == 999 ? "CUDA_ERROR_UNKNOWN"
                                                               : "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
    return 0;
}
#endif

/* For the test: what was not given back. */
int fakeHeld(void) { return retained * 100 + pushed; }
