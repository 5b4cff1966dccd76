/* Products of a matrix of 4- or 8-bit numbers with vectors of 8-bit numbers, for every instruction set.
 *
 * A vector is rounded to 8 bits, a scale for each block of columns. Of 4-bit weights the even column lies in the lower
 * half of a byte: the vector is stored with the even columns of a block first, so that nothing has to be shuffled.
 * Weights are taken as the unsigned numbers they are stored as; `bias` makes up for the half range they are too large.
 * A row's result is the same whichever rows and vectors are computed with it.
 */
#ifndef EDGED_DOT_H
#define EDGED_DOT_H

#include <stdint.h>

#include "model.h"
#include "vectors.h"

#define BLOCK 128 /* columns that share a scale where it is to be fast; others take the plain way */
#define TILE 4    /* vectors that a row is multiplied with at once */
#define ROWS 2    /* rows at once, where there are several vectors */
#define DISTANCE 9216 /* bytes from what is read to what is called for: with two rows the processor finds no order */

#define SMALLEST 1e-30f /* a block of vectors with less than this is 0 */

struct vectors {
	int8_t *values; /* [tokens, columns] */
	float *scales;  /* [tokens, blocks] */
	float *bias;    /* [tokens, blocks]: - half range * sum of the block's values, times its scale */
	int columns, blocks;
};

/* Rounds a vector for products with weights of so many bits. */
static void quantise(const float *from, struct vectors *to, int token, int bits)
{
	int columns = to->columns, block = columns / to->blocks;
	for (int b = 0; b < to->blocks; b++) {
		const float *v = from + b * block;
		int8_t *out = to->values + (int64_t)token * columns + b * block;
		floats most = {0};
		for (int i = 0; i < block; i += LANES)
			most = larger(magnitude(load(v + i)), most); /* in this order a NaN is passed over */
		/* Below SMALLEST the inverse could be infinite, and what is no number has no whole number either. */
		float limit = largest(most), inverse = limit > SMALLEST ? 127.0f / limit : 0.0f;
		ints total = {0};
		for (int i = 0; i < block; i += LANES) {
			floats near = larger(rounded(load(v + i) * inverse), all(-127.0f)); /* a NaN becomes -127 */
			ints whole = __builtin_convertvector(near, ints);
			total += whole;
			bytes narrow = __builtin_convertvector(whole, bytes);
			if (bits == 8) {
				memcpy(out + i, &narrow, LANES);
			} else {
				int8_t pairs[LANES];
				memcpy(pairs, &narrow, LANES);
				for (int j = 0; j < LANES / 2; j++) {
					out[i / 2 + j] = pairs[2 * j];
					out[block / 2 + i / 2 + j] = pairs[2 * j + 1];
				}
			}
		}
		int32_t sums = 0;
		for (int j = 0; j < LANES; j++)
			sums += total[j];
		to->scales[token * to->blocks + b] = limit / 127.0f;
		to->bias[token * to->blocks + b] = (float)(-sums * (1 << (bits - 1))) * (limit / 127.0f);
	}
}

/* One row with one vector, any block. */
static float dot_plain(const struct matrix *a, int row, const struct vectors *x, int token)
{
	int block = a->block, half = block / 2;
	const float *scales = a->scales + (int64_t)row * x->blocks;
	float total = 0;
	for (int b = 0; b < x->blocks; b++) {
		const uint8_t *w = a->codes + ((int64_t)row * x->blocks + b) * (block * a->bits / 8);
		const int8_t *v = x->values + (int64_t)token * x->columns + b * block;
		int32_t whole = 0;
		if (a->bits == 8)
			for (int i = 0; i < block; i++)
				whole += w[i] * v[i];
		else
			for (int i = 0; i < half; i++)
				whole += (w[i] & 15) * v[i] + (w[i] >> 4) * v[half + i];
		total += (float)whole * (scales[b] * x->scales[token * x->blocks + b]);
		total += scales[b] * x->bias[token * x->blocks + b];
	}
	return total;
}

#if defined(__AVX512VNNI__)

#define FAST 1
typedef __m512 lanes;

static inline int has_bias(int bits)
{
	return bits > 0;
}

typedef struct {
	__m512i part[2];
} numbers; /* a block of 128 */

static inline numbers weights_at(const uint8_t *w, int bits)
{
	if (bits == 8)
		return (numbers){{_mm512_loadu_si512(w), _mm512_loadu_si512(w + 64)}};
	const __m512i low = _mm512_set1_epi8(15);
	__m512i both = _mm512_loadu_si512(w);
	return (numbers){{_mm512_and_si512(both, low), _mm512_and_si512(_mm512_srli_epi16(both, 4), low)}};
}

static inline numbers values_at(const int8_t *v)
{
	return (numbers){{_mm512_loadu_si512(v), _mm512_loadu_si512(v + 64)}};
}

static inline lanes dot_block(numbers w, numbers v, float scale, int bits, lanes total)
{
	(void)bits;
	__m512i a = _mm512_dpbusd_epi32(_mm512_setzero_si512(), w.part[0], v.part[0]);
	a = _mm512_dpbusd_epi32(a, w.part[1], v.part[1]);
	return _mm512_fmadd_ps(_mm512_cvtepi32_ps(a), _mm512_set1_ps(scale), total);
}

static inline lanes no_lanes(void)
{
	return _mm512_setzero_ps();
}

/* Sixteen more numbers for the sum of the lanes. */
static inline lanes add_all(lanes total, floats v)
{
	return total + (lanes)v;
}

static inline float lane_sum(lanes v)
{
	return sum((floats)v);
}

#elif defined(__AVX2__)

#define FAST 1
typedef __m256 lanes;

static inline int has_bias(int bits)
{
	return bits > 0;
}

static inline __m256i load_32(const void *from)
{
	return _mm256_loadu_si256((const __m256i *)from);
}

typedef const uint8_t *numbers; /* a block of 128, in memory: there are too few registers to keep it */

static inline numbers weights_at(const uint8_t *w, int bits)
{
	(void)bits;
	return w;
}

static inline numbers values_at(const int8_t *v)
{
	return (const uint8_t *)v;
}

static inline lanes dot_block(numbers w, numbers v, float scale, int bits, lanes total)
{
	__m256i a = _mm256_setzero_si256();
	if (bits == 4) {
		/* Two products of at most 15 * 127 in 16 bits, and four of those: never more than 15,240. */
		const __m256i low = _mm256_set1_epi8(15);
		__m256i w0 = load_32(w), w1 = load_32(w + 32);
		__m256i p0 = _mm256_maddubs_epi16(_mm256_and_si256(w0, low), load_32(v));
		__m256i p1 = _mm256_maddubs_epi16(_mm256_and_si256(w1, low), load_32(v + 32));
		__m256i p2 = _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(w0, 4), low), load_32(v + 64));
		__m256i p3 = _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(w1, 4), low), load_32(v + 96));
		__m256i p = _mm256_add_epi16(_mm256_add_epi16(p0, p1), _mm256_add_epi16(p2, p3));
		a = _mm256_madd_epi16(p, _mm256_set1_epi16(1));
	} else {
		for (int i = 0; i < BLOCK; i += 16) { /* in 16 bits: 255 * 127 twice is too much for maddubs */
			__m256i wide = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(w + i)));
			__m256i values = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(v + i)));
			a = _mm256_add_epi32(a, _mm256_madd_epi16(wide, values));
		}
	}
	return _mm256_fmadd_ps(_mm256_cvtepi32_ps(a), _mm256_set1_ps(scale), total);
}

static inline lanes no_lanes(void)
{
	return _mm256_setzero_ps();
}

static inline lanes add_all(lanes total, floats v)
{
	lanes halves[2];
	memcpy(halves, &v, sizeof v);
	return total + halves[0] + halves[1];
}

static inline float lane_sum(lanes v)
{
	__m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
	s = _mm_add_ps(s, _mm_movehl_ps(s, s));
	return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

#elif defined(__ARM_FEATURE_DOTPROD)

#define FAST 1
typedef float32x4_t lanes;

static inline int has_bias(int bits)
{
	return bits == 4;
}

typedef const uint8_t *numbers; /* a block of 128, in memory */

static inline numbers weights_at(const uint8_t *w, int bits)
{
	(void)bits;
	return w;
}

static inline numbers values_at(const int8_t *v)
{
	return (const uint8_t *)v;
}

static inline int8x16_t signed_at(numbers v, uint8_t flip)
{
	return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(v), vdupq_n_u8(flip)));
}

static inline lanes dot_block(numbers w, numbers v, float scale, int bits, lanes total)
{
	int32x4_t a = vdupq_n_s32(0), b = vdupq_n_s32(0);
	if (bits == 4) {
		for (int i = 0; i < BLOCK / 2; i += 16) {
			uint8x16_t both = vld1q_u8(w + i);
			a = vdotq_s32(a, vreinterpretq_s8_u8(vandq_u8(both, vdupq_n_u8(15))), signed_at(v + i, 0));
			b = vdotq_s32(b, vreinterpretq_s8_u8(vshrq_n_u8(both, 4)), signed_at(v + BLOCK / 2 + i, 0));
		}
	} else { /* made signed: this product knows no other; `has_bias` says so */
		for (int i = 0; i < BLOCK; i += 32) {
			a = vdotq_s32(a, signed_at(w + i, 128), signed_at(v + i, 0));
			b = vdotq_s32(b, signed_at(w + i + 16, 128), signed_at(v + i + 16, 0));
		}
	}
	return vfmaq_n_f32(total, vcvtq_f32_s32(vaddq_s32(a, b)), scale);
}

static inline lanes no_lanes(void)
{
	return vdupq_n_f32(0);
}

static inline lanes add_all(lanes total, floats v)
{
	lanes quarters[4];
	memcpy(quarters, &v, sizeof v);
	return total + quarters[0] + quarters[1] + quarters[2] + quarters[3];
}

static inline float lane_sum(lanes v)
{
	return vaddvq_f32(v);
}

#else
#define FAST 0
#endif

#if FAST
/* Some rows with `count` vectors, both known when it is compiled. Blocks of 128 columns. Two rows at once, because a
 * processor reads no more than a register or two in a cycle, and each vector is then read once for both: from memory 11
 * instead of 8 GB/s of one core with four vectors. (Four rows are faster in the cache, but not from memory.) A vector
 * alone goes row by row, as the memory is read fastest: 18 to 24 GB/s. The scales of a row are multiplied with those of the vectors sixteen blocks at a time, so that a block takes a load of one
 * and not a product. */
static inline __attribute__((always_inline)) void dot_tile(const struct matrix *a, int row, int rows,
							    const struct vectors *x, int token, int count, int bits,
							    float *to, int stride)
{
	lanes totals[ROWS][TILE];
	float scales[ROWS][TILE][LANES];
	int blocks = x->blocks, size = BLOCK * bits / 8;
	const uint8_t *w = a->codes + (int64_t)row * blocks * size;
	const uint8_t *ahead = w + DISTANCE;
	const int8_t *values = x->values + (int64_t)token * x->columns;
	for (int r = 0; r < rows; r++)
		for (int t = 0; t < count; t++)
			totals[r][t] = no_lanes();
	for (int first = 0; first < blocks; first += LANES) {
		int these = blocks - first < LANES ? blocks - first : LANES;
		for (int r = 0; r < rows; r++) {
			floats row_scales = load_some(a->scales + (int64_t)(row + r) * blocks + first, these);
			for (int t = 0; t < count; t++) {
				int64_t at = (token + t) * blocks + first;
				store(scales[r][t], row_scales * load_some(x->scales + at, these));
				if (has_bias(bits))
					totals[r][t] =
						add_all(totals[r][t], row_scales * load_some(x->bias + at, these));
			}
		}
		for (int b = 0; b < these; b++) {
			numbers row_weights[ROWS];
			for (int r = 0; r < rows; r++) {
				const uint8_t *here = w + ((int64_t)r * blocks + first + b) * size;
				for (int i = 0; rows > 1 && i < size; i += 64, ahead += 64)
					__builtin_prefetch(ahead);
				row_weights[r] = weights_at(here, bits);
			}
			for (int t = 0; t < count; t++) {
				numbers v = values_at(values + (int64_t)t * x->columns + (first + b) * BLOCK);
				for (int r = 0; r < rows; r++)
					totals[r][t] =
						dot_block(row_weights[r], v, scales[r][t][b], bits, totals[r][t]);
			}
		}
	}
	for (int t = 0; t < count; t++)
		for (int r = 0; r < rows; r++)
			to[t * stride + r] = lane_sum(totals[r][t]);
}

#define TILES(count, bits)                                                                     \
	do {                                                                                   \
		int n = first;                                                                 \
		for (; count > 1 && n + ROWS <= last; n += ROWS)                               \
			dot_tile(a, n, ROWS, x, token, count, bits, to + n - first, stride);   \
		for (; n < last; n++)                                                          \
			dot_tile(a, n, 1, x, token, count, bits, to + n - first, stride);      \
	} while (0)

static inline __attribute__((always_inline)) void tiles(const struct matrix *a, int first, int last,
							 const struct vectors *x, int token, int count, float *to,
							 int stride, int bits)
{
	if (count == 1)
		TILES(1, bits);
	else if (count == 2)
		TILES(2, bits);
	else if (count == 3)
		TILES(3, bits);
	else
		TILES(TILE, bits);
}
#endif

/* Rows first..last - 1 with vectors token..token + count - 1: to[t * stride + row - first]. */
static void multiply(const struct matrix *a, int first, int last, const struct vectors *x, int token, int count,
		     float *to, int stride)
{
#if FAST
	if (a->block == BLOCK) {
		if (a->bits == 4)
			tiles(a, first, last, x, token, count, to, stride, 4);
		else
			tiles(a, first, last, x, token, count, to, stride, 8);
		return;
	}
#endif
	for (int n = first; n < last; n++)
		for (int t = 0; t < count; t++)
			to[t * stride + n - first] = dot_plain(a, n, x, token + t);
}

#endif
