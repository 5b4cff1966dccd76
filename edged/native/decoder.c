/* A decoder step of ChatTTS as one call: embeddings, layers, heads and the draw, for a CPU.
 *
 * Reads the weights as the bundle has them, 4 or 8 bits, and keeps keys and values in 8 bits in the caller's memory.
 * What a general runtime pays between its operators is not paid here, and every weight is read once, in order, by as
 * many threads as the team has. Made for edged/engine/decoder.py, which owns all memory and the threads; nothing is
 * allocated, nothing else is kept between calls. The results of a row do not depend on the other rows, nor on the number
 * of threads.
 */
#include <stddef.h>
#include <stdint.h>

#include "attention.h"
#include "dot.h"
#include "model.h"
#include "sample.h"
#include "team.h"
#include "vectors.h"

#define PHASES_A_LAYER 11
#define PHASES_MORE 8
#define PIECE 32      /* rows of a matrix that are taken at a time: some 12 kB, a microsecond */
#define AHEAD 4096    /* bytes of the next matrix that are called for before the wait for the others */
#define VERSION 1     /* of the structures; decoder.py asks for it */

struct decoder {
	struct model model;
	struct team team;
	struct member caller;
	const struct call *call;
	struct vectors activations; /* rounded to 8 bits; see vectors_for */
	float *x;                   /* [tokens, hidden]: the residual stream */
	float *normed;              /* [threads, hidden] */
	float *wide;                /* [tokens, max(3 * hidden, 2 * inner)]: qkv, then gate and up */
	float *seen;                /* [tokens, hidden]: what attention found */
	float *weights;             /* [threads, positions]: of attention */
	float *scores;              /* [rows, scores of a head] */
	float *values;              /* [threads, candidates] */
	int32_t *where;             /* the same */
};

static int larger_int(int a, int b)
{
	return a > b ? a : b;
}

static int64_t wide_of(const struct model *m)
{
	return larger_int(3 * m->hidden, 2 * m->inner);
}

static int64_t scores_of(const struct model *m)
{
	return larger_int(m->codebooks * m->audio_tokens, m->text_tokens);
}

static int64_t candidates_of(const struct model *m)
{
	return larger_int(m->audio_tokens, m->text_width);
}

/* Divides `memory` among the parts of a decoder; returns how much they take. memory == 0: only counts. */
static size_t lay_out(struct decoder *d, const struct model *m, char *memory)
{
	size_t at = (sizeof(struct decoder) + LINE - 1) / LINE * LINE;
	struct team *team = &d->team;
#define PART(field, count)                                                     \
	do {                                                                   \
		if (memory)                                                    \
			field = (void *)(memory + at);                         \
		at += ((size_t)(count) * sizeof *(field) + LINE - 1) / LINE * LINE; \
	} while (0)
	int64_t most = wide_of(m), phases = (int64_t)m->layers * PHASES_A_LAYER + PHASES_MORE;
	PART(team->counters, phases * m->threads);
	PART(d->x, (int64_t)m->tokens * m->hidden);
	PART(d->normed, (int64_t)m->threads * m->hidden);
	PART(d->wide, (int64_t)m->tokens * most);
	PART(d->seen, (int64_t)m->tokens * m->hidden);
	PART(d->weights, (int64_t)m->threads * (m->positions + LANES));
	PART(d->scores, m->rows * (scores_of(m) + LANES));
	PART(d->values, (int64_t)m->threads * (candidates_of(m) + LANES));
	PART(d->where, (int64_t)m->threads * (candidates_of(m) + LANES));
	PART(d->activations.values, (int64_t)m->tokens * larger_int(m->inner, m->hidden));
	PART(d->activations.scales, (int64_t)m->tokens * larger_int(m->inner, m->hidden) / LANES);
	PART(d->activations.bias, (int64_t)m->tokens * larger_int(m->inner, m->hidden) / LANES);
#undef PART
	return at;
}

/* -- matrices -------------------------------------------------------------------------------------- */

/* The place of the rounded vectors that a matrix multiplies. */
static struct vectors vectors_for(const struct decoder *d, const struct matrix *a)
{
	struct vectors x = d->activations;
	x.columns = a->columns;
	x.blocks = a->columns / a->block;
	return x;
}

/* Calls for the first rows that this thread will read of a matrix. */
static void look_ahead(const struct member *me, const struct matrix *a)
{
	int64_t row = (int64_t)a->rows * me->index / me->team->threads, size = (int64_t)a->columns * a->bits / 8;
	const uint8_t *from = a->codes + row * size;
	int64_t bytes = (a->rows - row) * size;
	for (int64_t n = 0; n < AHEAD && n < bytes; n += LINE)
		__builtin_prefetch(from + n);
}

/* Phase: to[token * stride + row] = matrix * activations, or added to what is there. */
static void product(struct decoder *d, struct member *me, const struct matrix *a, int tokens, float *to,
		    int64_t stride, int add)
{
	struct share share = share_of(me);
	struct vectors x = vectors_for(d, a);
	float part[TILE * PIECE];
	for (int from, end; next(me, &share, a->rows, PIECE, &from, &end);)
		for (int token = 0; token < tokens; token += TILE) {
			int count = tokens - token < TILE ? tokens - token : TILE;
			multiply(a, from, end, &x, token, count, part, PIECE);
			for (int t = 0; t < count; t++) {
				float *out = to + (token + t) * stride + from;
				for (int n = 0; n < end - from; n++)
					out[n] = add ? out[n] + part[t * PIECE + n] : part[t * PIECE + n];
			}
		}
}

/* Phase: rounds `tokens` vectors, `stride` apart, for the products with a matrix. */
static void prepare(struct decoder *d, struct member *me, const struct matrix *a, const float *from, int64_t stride,
		    int tokens)
{
	struct share share = share_of(me);
	struct vectors x = vectors_for(d, a);
	for (int token, end; next(me, &share, tokens, 1, &token, &end);)
		quantise(from + token * stride, &x, token, a->bits);
}

/* Phase: the same of silu(gate) * up, the halves of what a matrix has made, in place. */
static void prepare_gated(struct decoder *d, struct member *me, const struct matrix *a, int tokens)
{
	struct share share = share_of(me);
	struct vectors x = vectors_for(d, a);
	for (int token, end; next(me, &share, tokens, 1, &token, &end);) {
		float *gate = d->wide + (int64_t)token * wide_of(&d->model), *up = gate + a->columns;
		for (int i = 0; i < a->columns; i += LANES) {
			floats g = load(gate + i);
			store(gate + i, g / (1.0f + exponential(-g)) * load(up + i));
		}
		quantise(gate, &x, token, a->bits);
	}
}

/* -- norms and embeddings -------------------------------------------------------------------------- */

/* Root mean square norm. */
static void normalise(const struct model *m, const float *x, const float *gain, float *to)
{
	floats squares = {0};
	for (int i = 0; i < m->hidden; i += LANES)
		squares += load(x + i) * load(x + i);
	float scale = 1.0f / __builtin_sqrtf(sum(squares) / (float)m->hidden + m->epsilon);
	for (int i = 0; i < m->hidden; i += LANES)
		store(to + i, load(x + i) * scale * load(gain + i));
}

/* Phase: norm and rounding of the residual stream. */
static void prepare_normed(struct decoder *d, struct member *me, const struct matrix *a, const float *gain, int tokens)
{
	struct share share = share_of(me);
	struct vectors x = vectors_for(d, a);
	float *normed = d->normed + (int64_t)me->index * d->model.hidden;
	for (int token, end; next(me, &share, tokens, 1, &token, &end);) {
		normalise(&d->model, d->x + (int64_t)token * d->model.hidden, gain, normed);
		quantise(normed, &x, token, a->bits);
	}
}

static void add_entry(const struct table *table, int64_t row, int hidden, float *to)
{
	int64_t at = row * hidden;
	switch (table->kind) {
	case FLOAT32:
		for (int i = 0; i < hidden; i++)
			to[i] += ((const float *)table->values)[at + i];
		break;
	case FLOAT16:
		for (int i = 0; i < hidden; i++)
			to[i] += half_to_float(((const uint16_t *)table->values)[at + i]);
		break;
	default:
		for (int i = 0; i < hidden; i++)
			to[i] += (float)((const int8_t *)table->values)[at + i] * table->scales[row];
	}
}

static int64_t within(int64_t id, int64_t count)
{
	return id < 0 ? 0 : id < count ? id : count - 1;
}

/* Phase: tokens become vectors: a word, the speaker, or the sum of its codes. */
static void embed(struct decoder *d, struct member *me)
{
	const struct model *m = &d->model;
	const struct call *call = d->call;
	struct share share = share_of(me);
	for (int token, end; next(me, &share, (int)(call->B * call->S), 1, &token, &end);) {
		const int64_t *ids = call->ids + (int64_t)token * m->codebooks;
		float *x = d->x + (int64_t)token * m->hidden;
		memset(x, 0, (size_t)m->hidden * sizeof *x);
		if (!call->text[token])
			for (int book = 0; book < m->codebooks; book++)
				add_entry(&m->codes, book * m->audio_tokens + within(ids[book], m->audio_tokens), m->hidden, x);
		else if (ids[0] == m->speaker_token)
			memcpy(x, call->speaker + token / call->S * m->hidden, (size_t)m->hidden * sizeof *x);
		else
			add_entry(&m->words, within(ids[0], m->text_tokens), m->hidden, x);
	}
}

/* -- attention ------------------------------------------------------------------------------------- */

static struct head head_of(const struct decoder *d, int layer, int token, int head)
{
	const struct model *m = &d->model;
	const struct layer *l = m->layer + layer;
	int64_t row = token / d->call->S, at = (row * m->heads + head) * m->positions * m->width;
	float *qkv = d->wide + (int64_t)token * wide_of(m) + head * m->width;
	return (struct head){
		d->call->keys[layer] + at, d->call->values[layer] + at,
		l->key_scales + head * m->width, l->value_scales + head * m->width,
		qkv, qkv + m->hidden, qkv + 2 * m->hidden,
	};
}

/* Two phases, or one where no token needs the keys of another. */
static void attention(struct decoder *d, struct member *me, int layer)
{
	const struct model *m = &d->model;
	const struct call *call = d->call;
	int items = (int)(call->B * call->S) * m->heads, alone = call->S == 1;
	float *weights = d->weights + (int64_t)me->index * (m->positions + LANES);
	if (!alone) {
		struct share share = share_of(me);
		for (int item, end; next(me, &share, items, 1, &item, &end);) {
			struct head h = head_of(d, layer, item / m->heads, item % m->heads);
			remember(m, &h, position_of(call, item / m->heads));
		}
		together(me);
	}
	struct share share = share_of(me);
	for (int item, end; next(me, &share, items, 1, &item, &end);) {
		int token = item / m->heads, head = item % m->heads;
		int64_t position = position_of(call, token);
		struct head h = head_of(d, layer, token, head);
		if (alone) {
			if (item + 1 < items) {
				struct head after = head_of(d, layer, (item + 1) / m->heads, (item + 1) % m->heads);
				look_ahead_at(m, &after, position_of(call, (item + 1) / m->heads));
			}
			remember(m, &h, position);
		}
		attend(m, &h, position, weights, d->seen + (int64_t)token * m->hidden + head * m->width);
	}
}

/* -- the call -------------------------------------------------------------------------------------- */

/* Phase: behind the last layer's attention only the last token of each row is wanted. */
static void keep_last(struct decoder *d, struct member *me)
{
	const struct call *call = d->call;
	size_t size = (size_t)d->model.hidden * sizeof *d->x;
	if (me->index || call->S == 1)
		return;
	for (int64_t row = 0; row < call->B; row++) { /* rows move down only, so none is lost */
		int64_t from = (row * call->S + call->last[row]) * d->model.hidden;
		memmove(d->x + row * d->model.hidden, d->x + from, size);
		memmove(d->seen + row * d->model.hidden, d->seen + from, size);
	}
}

static void run_layer(struct decoder *d, struct member *me, int layer)
{
	const struct model *m = &d->model;
	const struct layer *l = m->layer + layer;
	int tokens = (int)(d->call->B * d->call->S);
	prepare_normed(d, me, &l->qkv, l->attention_norm, tokens);
	together(me);
	product(d, me, &l->qkv, tokens, d->wide, wide_of(m), 0);
	look_ahead(me, &l->out);
	together(me);
	attention(d, me, layer);
	together(me);
	if (layer == m->layers - 1) {
		keep_last(d, me);
		together(me);
		tokens = (int)d->call->B;
	}
	prepare(d, me, &l->out, d->seen, m->hidden, tokens);
	together(me);
	product(d, me, &l->out, tokens, d->x, m->hidden, 1);
	look_ahead(me, &l->gate_up);
	together(me);
	prepare_normed(d, me, &l->gate_up, l->mlp_norm, tokens);
	together(me);
	product(d, me, &l->gate_up, tokens, d->wide, wide_of(m), 0);
	look_ahead(me, &l->down);
	together(me);
	prepare_gated(d, me, &l->down, tokens);
	together(me);
	product(d, me, &l->down, tokens, d->x, m->hidden, 1);
	if (layer + 1 < m->layers)
		look_ahead(me, &l[1].qkv);
	together(me);
}

/* Phases: the norm behind the last layer, the scores of a head, and the draw. */
static void run_head(struct decoder *d, struct member *me)
{
	const struct model *m = &d->model;
	const struct call *call = d->call;
	int words = call->refine[0], groups = words ? 1 : m->codebooks, rows = (int)call->B;
	const struct matrix *head = words ? &m->text_head : &m->code_head;
	int64_t stride = scores_of(m);
	struct share share = share_of(me);
	struct vectors x = vectors_for(d, head);
	for (int row, end; next(me, &share, rows, 1, &row, &end);) {
		float *hidden = call->hidden + (int64_t)row * m->hidden;
		normalise(m, d->x + (int64_t)row * m->hidden, m->final_norm, hidden);
		quantise(hidden, &x, row, head->bits);
	}
	together(me);
	product(d, me, head, rows, d->scores, stride, 0);
	together(me);
	share = share_of(me);
	for (int item, end; next(me, &share, rows * groups, 1, &item, &end);) {
		int row = item / groups, group = item % groups, count = words ? m->text_tokens : m->audio_tokens;
		int last = words ? m->end_text : m->audio_tokens - 1;
		struct rules rules = {
			.temperature = call->temperature[row],
			.top_p = call->top_p[row],
			.penalty = call->penalty[row],
			.uniform = call->uniform[row * m->codebooks + group],
			.top_k = call->top_k[row],
			.ban = call->ban_end[row] ? last : -1,
			.greedy = call->greedy[row] != 0,
			.history = call->history + (int64_t)row * m->history * m->codebooks + group,
			.seen = m->history,
			.stride = m->codebooks,
		};
		int64_t code = draw(d->scores + row * stride + (int64_t)group * count, count,
				    words ? m->text_width : count, &rules, d->values + me->index * (candidates_of(m) + LANES),
				    d->where + me->index * (candidates_of(m) + LANES));
		for (int book = group; book < (words ? m->codebooks : group + 1); book++)
			call->codes[row * m->codebooks + book] = code;
	}
	together(me);
	if (me->index)
		return;
	for (int row = 0; row < rows; row++) {
		int64_t last = words ? m->end_text : m->audio_tokens - 1;
		call->end[row] = 0;
		for (int book = 0; book < m->codebooks; book++)
			call->end[row] |= call->codes[row * m->codebooks + book] == last;
	}
}

static void run(struct decoder *d, struct member *me)
{
	embed(d, me);
	together(me);
	for (int layer = 0; layer < d->model.layers; layer++)
		run_layer(d, me, layer);
	run_head(d, me);
	together(me); /* so that no helper still reads the call when the caller has it back */
}

/* -- what decoder.py calls -------------------------------------------------------------------------- */

int decoder_version(void)
{
	return VERSION;
}

/* Bytes that a decoder of this model needs beside its weights. */
size_t decoder_bytes(const struct model *model)
{
	struct decoder none;
	return lay_out(&none, model, 0);
}

/* Makes a decoder in zeroed memory of that size, aligned to a cache line. */
struct decoder *decoder_make(const struct model *model, void *memory)
{
	struct decoder *d = memory;
	d->model = *model;
	lay_out(d, model, memory);
	d->team.threads = model->threads;
	d->team.phases = model->layers * PHASES_A_LAYER + PHASES_MORE;
	d->caller.team = &d->team;
	return d;
}

/* Runs a call; returns when its outputs are written. -1, and nothing is done, when a row would reach beyond the cache. */
int decoder_run(struct decoder *d, const struct call *call)
{
	for (int64_t row = 0; row < call->B; row++) {
		int64_t first = call->lengths[row] - call->last[row];
		if (call->last[row] < 0 || call->last[row] >= call->S || first < 0 ||
		    first + call->S > d->model.positions)
			return -1;
	}
	d->call = call;
	begin(&d->caller);
	run(d, &d->caller);
	return 0;
}

/* The life of a helper thread, 1..threads - 1: returns after `decoder_stop`. */
void decoder_help(struct decoder *d, int index)
{
	struct member me = {.team = &d->team, .index = index};
	for (unsigned seen = 0;;) {
		seen = await(&d->team, seen);
		if (atomic_load(&d->team.stop))
			return;
		me.phase = 0;
		run(d, &me);
	}
}

/* Lets the helpers return; no call may follow. */
void decoder_stop(struct decoder *d)
{
	atomic_store(&d->team.stop, 1);
	begin(&d->caller);
}

/* For tests: y[tokens, rows] = matrix * x[tokens, columns], the vectors rounded to 8 bits in `work`, which holds 9 bytes a
 * number. */
void decoder_multiply(const struct matrix *a, const float *x, int tokens, float *y, char *work)
{
	int64_t numbers = (int64_t)tokens * a->columns;
	struct vectors v = {
		.scales = (float *)work,
		.bias = (float *)(work + numbers * 4),
		.values = (int8_t *)(work + numbers * 8),
		.columns = a->columns,
		.blocks = a->columns / a->block,
	};
	for (int token = 0; token < tokens; token++)
		quantise(x + (int64_t)token * a->columns, &v, token, a->bits);
	for (int token = 0; token < tokens; token += TILE)
		multiply(a, 0, a->rows, &v, token, tokens - token < TILE ? tokens - token : TILE,
			 y + (int64_t)token * a->rows, a->rows);
}

/* For tests: see sample.h. */
int decoder_draw(float *scores, int count, int width, const struct rules *rules, float *values, int32_t *where)
{
	return draw(scores, count, width, rules, values, where);
}
