/* Attention of one head of one token over its 8-bit keys and values.
 *
 * A key is turned by its position before it is stored. Stored numbers are whole numbers times the scale of their head and
 * channel; the keys' scales are taken into the query, the values' into the result.
 */
#ifndef EDGED_ATTENTION_H
#define EDGED_ATTENTION_H

#include <stdint.h>

#include "model.h"
#include "team.h"
#include "vectors.h"

#define MOST_GROUPS 8 /* of 16 channels in a head */

static int64_t position_of(const struct call *call, int token)
{
	int64_t row = token / call->S;
	return call->lengths[row] - call->last[row] + token % call->S;
}

static void rotate(const struct model *m, float *v, int64_t position)
{
	int half = m->width / 2;
	const float *cosine = m->cosine + position * half, *sine = m->sine + position * half;
	for (int i = 0; i < half; i++) {
		float a = v[i], b = v[half + i];
		v[i] = a * cosine[i] - b * sine[i];
		v[half + i] = b * cosine[i] + a * sine[i];
	}
}

static void store_narrow(const float *from, const float *scales, int8_t *to, int count)
{
	for (int i = 0; i < count; i += LANES) {
		floats v = larger(rounded(load(from + i) / load(scales + i)), all(-128.0f));
		v = -larger(-v, all(-127.0f));
		bytes narrow = __builtin_convertvector(__builtin_convertvector(v, ints), bytes);
		memcpy(to + i, &narrow, LANES);
	}
}

struct head {
	int8_t *keys, *values; /* [positions, width] */
	const float *key_scales, *value_scales;
	float *query, *key, *value;
};

/* A token's key and value go into the cache. */
static void remember(const struct model *m, const struct head *h, int64_t position)
{
	rotate(m, h->key, position);
	store_narrow(h->key, h->key_scales, h->keys + position * m->width, m->width);
	store_narrow(h->value, h->value_scales, h->values + position * m->width, m->width);
}

static inline __attribute__((always_inline)) floats product_in(const floats *query, const int8_t *key, int groups)
{
	floats products = query[0] * widened(key);
	for (int g = 1; g < groups; g++)
		products += query[g] * widened(key + g * LANES);
	return products;
}

/* What one head finds at positions 0..position, to[width], in `groups` registers: known when it is compiled, or the
 * sums would live in memory. The keys' scales are taken into the query. */
static inline __attribute__((always_inline)) void attend_in(const struct head *h, int count, float *weights, float *to,
							     int groups)
{
	int width = groups * LANES;
	float scale = 1.0f / __builtin_sqrtf((float)width);
	floats query[MOST_GROUPS], found[MOST_GROUPS], tops = all(-3.0e38f);
	for (int g = 0; g < groups; g++) {
		query[g] = load(h->query + g * LANES) * load(h->key_scales + g * LANES) * scale;
		found[g] = (floats){0};
	}
	int p = 0;
	for (; p + LANES <= count; p += LANES) {
		floats products[LANES];
		for (int i = 0; i < LANES; i++)
			products[i] = product_in(query, h->keys + (int64_t)(p + i) * width, groups);
		floats scores = sums(products);
		store(weights + p, scores);
		tops = larger(tops, scores);
	}
	float most = largest(tops);
	for (; p < count; p++) {
		weights[p] = sum(product_in(query, h->keys + (int64_t)p * width, groups));
		most = weights[p] > most ? weights[p] : most;
	}
	float total = exponentials(weights, count, most);
	for (p = 0; p < count; p++)
		for (int g = 0; g < groups; g++)
			found[g] += weights[p] * widened(h->values + (int64_t)p * width + g * LANES);
	for (int g = 0; g < groups; g++)
		store(to + g * LANES, found[g] * load(h->value_scales + g * LANES) / total);
}

/* Calls for the keys and values that a head will read: between two steps the weights have pushed them out of the cache. */
static void look_ahead_at(const struct model *m, const struct head *h, int64_t position)
{
	for (int64_t n = 0; n < (position + 1) * m->width; n += LINE) {
		__builtin_prefetch(h->keys + n, 0, 2);
		__builtin_prefetch(h->values + n, 0, 2);
	}
}

static void attend(const struct model *m, const struct head *h, int64_t position, float *weights, float *to)
{
	rotate(m, h->query, position);
	if (m->width == 4 * LANES) /* as published */
		attend_in(h, (int)position + 1, weights, to, 4);
	else
		attend_in(h, (int)position + 1, weights, to, m->width / LANES);
}

#endif
