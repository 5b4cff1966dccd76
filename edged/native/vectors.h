/* Sixteen numbers at a time, in terms that GCC and Clang turn into the registers there are.
 *
 * No state. Loops below take lengths that are multiples of 16. Sums are always taken in the same order, so that a
 * result does not depend on which thread computes it, or on what else is computed beside it.
 */
#ifndef EDGED_VECTORS_H
#define EDGED_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif

#define LANES 16

typedef float floats __attribute__((vector_size(64)));
typedef int32_t ints __attribute__((vector_size(64)));
typedef int8_t bytes __attribute__((vector_size(16)));

static inline floats load(const float *from)
{
	floats v;
	memcpy(&v, from, sizeof v);
	return v;
}

static inline void store(float *to, floats v)
{
	memcpy(to, &v, sizeof v);
}

/* The first `count` of sixteen; the others are 0, and not read. */
static inline floats load_some(const float *from, int count)
{
#if defined(__AVX512F__)
	return (floats)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
#else
	floats v = {0};
	memcpy(&v, from, (size_t)count * sizeof *from);
	return v;
#endif
}

static inline floats all(float x)
{
	return x - (floats){0};
}

static inline floats widened(const int8_t *from)
{
#if defined(__AVX512F__)
	return (floats)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from)));
#elif defined(__AVX2__)
	__m256 halves[2];
	floats v;
	for (int i = 0; i < 2; i++)
		halves[i] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(from + 8 * i))));
	memcpy(&v, halves, sizeof v);
	return v;
#else
	bytes v;
	memcpy(&v, from, sizeof v);
	return __builtin_convertvector(__builtin_convertvector(v, ints), floats);
#endif
}

/* With AVX-512 in the order of `sums`, elsewhere as a tree of halves. */
static inline float sum(floats v)
{
#if defined(__AVX512F__)
	__m512 a = (__m512)v;
	a += _mm512_shuffle_ps(a, a, 0x4e);
	a += _mm512_shuffle_ps(a, a, 0xb1);
	a += _mm512_shuffle_f32x4(a, a, 0xb1);
	a += _mm512_shuffle_f32x4(a, a, 0x4e);
	return _mm512_cvtss_f32(a);
#else
	float a[LANES];
	memcpy(a, &v, sizeof a);
	for (int width = LANES / 2; width; width /= 2)
		for (int i = 0; i < width; i++)
			a[i] += a[i + width];
	return a[0];
#endif
}

/* The sum of each of sixteen vectors. */
static inline floats sums(const floats *v)
{
#if defined(__AVX512F__)
	__m512 four[4], two[2];
	for (int i = 0; i < 4; i++) { /* vectors 4 i to 4 i + 3: a lane each in every quarter */
		__m512 a = (__m512)v[4 * i], b = (__m512)v[4 * i + 1], c = (__m512)v[4 * i + 2], d = (__m512)v[4 * i + 3];
		__m512d ab = (__m512d)(_mm512_unpacklo_ps(a, b) + _mm512_unpackhi_ps(a, b));
		__m512d cd = (__m512d)(_mm512_unpacklo_ps(c, d) + _mm512_unpackhi_ps(c, d));
		four[i] = (__m512)_mm512_unpacklo_pd(ab, cd) + (__m512)_mm512_unpackhi_pd(ab, cd);
	}
	for (int i = 0; i < 2; i++) /* then the quarters are added up */
		two[i] = _mm512_shuffle_f32x4(four[2 * i], four[2 * i + 1], 0x88) +
			 _mm512_shuffle_f32x4(four[2 * i], four[2 * i + 1], 0xdd);
	return (floats)(_mm512_shuffle_f32x4(two[0], two[1], 0x88) + _mm512_shuffle_f32x4(two[0], two[1], 0xdd));
#else
	float each[LANES];
	floats all;
	for (int i = 0; i < LANES; i++)
		each[i] = sum(v[i]);
	memcpy(&all, each, sizeof all);
	return all;
#endif
}

static inline floats larger(floats a, floats b)
{
	ints above = a > b;
	return (floats)(((ints)a & above) | ((ints)b & ~above));
}

static inline float largest(floats v)
{
	float a[LANES], most;
	store(a, v);
	most = a[0];
	for (int i = 1; i < LANES; i++)
		most = a[i] > most ? a[i] : most;
	return most;
}

static inline floats magnitude(floats v)
{
	return (floats)((ints)v & 0x7fffffff);
}

/* Nearest whole numbers, halves to even, for |v| < 2^22: beyond 2^23 a float has no fraction left. */
static inline floats rounded(floats v)
{
	const float shift = 12582912.0f; /* 1.5 * 2^23 */
	floats moved = v + shift;
	__asm__("" : "+m"(moved)); /* or the compiler takes the shift out again */
	return moved - shift;
}

/* e^v within two units in the last place. Source: the Cephes library's division into 2^n * e^r, with the minimax
 * polynomial of e^r on |r| < ln(2)/2. Below -87 the result is that of -87, about 1e-38. */
static inline floats exponential(floats v)
{
	v = larger(v, all(-87.0f));
	v = -larger(-v, all(-88.0f));
	floats n = rounded(v * 1.44269504f);
	floats r = v - n * 0.693359375f + n * 2.12194440e-4f;
	floats p = all(1.9875691500e-4f);
	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * r * r + r + 1.0f;
	ints power = (__builtin_convertvector(n, ints) + 127) << 23;
	return p * (floats)power;
}

/* Turns v[count] into e^(v - most); their sum. `count` need not be a multiple of anything. */
static float exponentials(float *v, int count, float most)
{
	floats total = {0};
	int n = 0;
	for (; n + LANES <= count; n += LANES) {
		floats e = exponential(load(v + n) - most);
		store(v + n, e);
		total += e;
	}
	if (n < count) {
		float rest[LANES];
		for (int i = 0; i < LANES; i++)
			rest[i] = n + i < count ? v[n + i] - most : -1000.0f;
		floats e = exponential(load(rest));
		store(rest, e);
		for (int i = 0; n + i < count; i++)
			v[n + i] = rest[i];
		for (int i = count - n; i < LANES; i++)
			rest[i] = 0.0f;
		total += load(rest);
	}
	return sum(total);
}

static inline float half_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff, bits;
	float f;
	if (rest < 0x0400) { /* 0 and subnormal numbers: rest * 2^-24 */
		f = (float)rest * 5.9604644775390625e-8f;
		memcpy(&bits, &f, sizeof bits);
	} else {
		bits = (rest << 13) + (rest < 0x7c00 ? 112u << 23 : 224u << 23);
	}
	bits |= sign;
	memcpy(&f, &bits, sizeof f);
	return f;
}

#endif
