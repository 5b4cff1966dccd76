/* Rotary position encoding, causal mask and key/value cache write of one decoder layer: all of the arithmetic.
 *
 * masked_pos_enc.cu runs these functions on the device, one thread for a pair of channels; built as plain C++ a loop
 * runs the same ones, which is how they are held against the network without the plugin. Layouts and numbers are those
 * of edged/compiler/chattts/standard.py. Everything is owned by the caller and outlives the call.
 */
#ifndef EDGED_MASKED_POS_ENC_H
#define EDGED_MASKED_POS_ENC_H

#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#define EDGED_BOTH __host__ __device__ inline
#else
#define EDGED_BOTH inline
#endif

namespace edged
{

#if defined(__CUDACC__)
using float16 = __half;
#elif defined(__aarch64__)
using float16 = __fp16;
#else
using float16 = _Float16;
#endif

struct Call {
	const void *qkv;             /* [rows, steps, 3 * heads * width]: queries, keys, values */
	void *keys, *values;         /* [rows, heads, slots, width], written at the new positions only */
	const int32_t *first;        /* [rows], the position of a row's first new token */
	const float *cosine, *sine;  /* [positions, width / 2] */
	void *query;                 /* [rows, heads, steps, width], as wide as qkv */
	float *mask;                 /* [rows, 1, steps, slots], or null: not wanted */
	int32_t rows, steps, heads, width, slots, positions;
	int32_t half_qkv, half_cache; /* 1: float16, 0: float32 */
};

constexpr float MASKED = -1.0e9f; /* added to the score of a position that a token must not see */

EDGED_BOTH float widened(float x)
{
	return x;
}

EDGED_BOTH void store(float x, float *to)
{
	*to = x;
}

#if defined(__CUDACC__)
EDGED_BOTH float widened(float16 x)
{
	return __half2float(x);
}

EDGED_BOTH void store(float x, float16 *to)
{
	*to = __float2half_rn(x);
}
#else
EDGED_BOTH float widened(float16 x)
{
	return static_cast<float>(x);
}

EDGED_BOTH void store(float x, float16 *to)
{
	*to = static_cast<float16>(x);
}
#endif

/* The pair of channels (i, i + half) of one head, turned by its position's angle. Always in float32. */
template <typename From, typename To>
EDGED_BOTH void rotate(const From *from, To *to, int32_t half, float cosine, float sine)
{
	const float a = widened(from[0]), b = widened(from[half]);
	store(a * cosine - b * sine, to);
	store(b * cosine + a * sine, to + half);
}

/* 64 bits: `first` comes from outside, and adding to it must not wrap round into the cache. */
EDGED_BOTH int64_t position_of(const Call &call, int32_t row, int32_t step)
{
	return static_cast<int64_t>(call.first[row]) + step;
}

/* A token at a position that the cache or the tables do not have is not written, and its query is zero. */
template <typename T, typename Cache>
EDGED_BOTH void place(const Call &call, int32_t row, int32_t step, int32_t pair)
{
	const int32_t half = call.width / 2, head = pair / half, channel = pair % half;
	const size_t hidden = static_cast<size_t>(call.heads) * call.width;
	const size_t of_row = static_cast<size_t>(row) * call.heads + head;
	const int64_t position = position_of(call, row, step);

	const T *from = static_cast<const T *>(call.qkv) + (static_cast<size_t>(row) * call.steps + step) * 3 * hidden +
	                static_cast<size_t>(head) * call.width + channel;
	T *query = static_cast<T *>(call.query) + (of_row * call.steps + step) * call.width + channel;
	if (position < 0 || position >= call.slots || position >= call.positions) {
		store(0.0f, query);
		store(0.0f, query + half);
		return;
	}
	const float cosine = call.cosine[position * half + channel], sine = call.sine[position * half + channel];
	const size_t to = (of_row * call.slots + position) * call.width + channel;
	Cache *values = static_cast<Cache *>(call.values) + to;
	rotate(from, query, half, cosine, sine);
	rotate(from + hidden, static_cast<Cache *>(call.keys) + to, half, cosine, sine);
	store(widened(from[2 * hidden]), values);
	store(widened(from[2 * hidden + half]), values + half);
}

/* What is added to the score of the key in `slot`: a token sees its own position and those before. */
EDGED_BOTH void hide(const Call &call, int32_t row, int32_t step, int32_t slot)
{
	const size_t token = static_cast<size_t>(row) * call.steps + step;
	call.mask[token * call.slots + slot] = slot > position_of(call, row, step) ? MASKED : 0.0f;
}

} // namespace edged

/* All of it, in the order of `stream` (a cudaStream_t). Returns 0 or the cudaError_t. */
extern "C" __attribute__((visibility("default"))) int masked_pos_enc(const edged::Call *call, void *stream);

#endif
