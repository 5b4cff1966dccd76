/* The draw: from the scores of one codebook to its next code, by the rules of edged/compiler/chattts/sampling.py.
 *
 * Order: temperature, repetition penalty, nucleus (at least three kept), top-k (at least three), no end where it is
 * banned, draw. Where scores are equal the lower index comes first.
 */
#ifndef EDGED_SAMPLE_H
#define EDGED_SAMPLE_H

#include <stdint.h>

#include "vectors.h"

#define KEPT 3 /* at least so many candidates survive top-p and top-k */

struct rules {
	float temperature, top_p, penalty, uniform;
	int64_t top_k;
	int ban, greedy;        /* ban: a candidate that must not be drawn, or -1 */
	const int64_t *history; /* entries `stride` apart, -1: empty */
	int seen, stride;
};

/* The `k` largest of scores[count] and where they are, the largest first. */
static void best(const float *scores, int count, int k, float *values, int32_t *where)
{
	int held = 0;
	for (int n = 0; n < count; n++) {
		if (held == k && !(scores[n] > values[k - 1]))
			continue;
		int at = held < k ? held++ : k - 1;
		for (; at > 0 && scores[n] > values[at - 1]; at--) {
			values[at] = values[at - 1];
			where[at] = where[at - 1];
		}
		values[at] = scores[n];
		where[at] = n;
	}
}

/* scores[count] are changed; values and where hold `width` each. */
static int draw(float *scores, int count, int width, const struct rules *rules, float *values, int32_t *where)
{
	for (int n = 0; n < count; n++)
		scores[n] /= rules->temperature;
	for (int i = 0; i < rules->seen; i++) { /* once for each time that a code was seen */
		int64_t code = rules->history[(int64_t)i * rules->stride];
		if (code >= 0 && code < count)
			scores[code] = scores[code] < 0 ? scores[code] * rules->penalty : scores[code] / rules->penalty;
	}
	int k = rules->top_k > KEPT ? (rules->top_k < width ? (int)rules->top_k : width) : KEPT;
	k = k < count ? k : count;
	best(scores, count, k, values, where);
	float mass = exponentials(scores, count, values[0]), above = 0.0f;
	int left = 0;
	for (int n = 0; n < k; n++) {
		float part = scores[where[n]] / mass;
		int kept = n < KEPT || 1.0f - above > 1.0f - rules->top_p;
		above += part;
		if (kept && where[n] != rules->ban) {
			values[left] = values[n];
			where[left++] = where[n];
		}
	}
	float aim = exponentials(values, left, values[0]) * (rules->greedy ? 0.0f : rules->uniform);
	float reached = 0.0f;
	for (int n = 0; n < left; n++) {
		reached += values[n];
		if (reached > aim)
			return where[n];
	}
	return where[0]; /* the draw lies beyond the rounded sum */
}

#endif
