/* What the decoder is told: the model once, and the tensors of every call. edged/engine/decoder.py has the same
 * structures, field by field; keep the two together. Everything is owned by the caller and outlives the call. */
#ifndef EDGED_MODEL_H
#define EDGED_MODEL_H

#include <stdint.h>

/* [rows, columns] as whole numbers of 4 or 8 bits, `block` columns of a row sharing a scale, in the layout of ONNX
 * Runtime's MatMulNBits: unsigned, half the range above the true value; of 4 bits the even column is the lower. */
struct matrix {
	const uint8_t *codes;
	const float *scales; /* [rows, columns / block] */
	int32_t rows, columns, block, bits;
};

enum { FLOAT32, FLOAT16, INT8 }; /* INT8 has one scale a row */

struct table {
	const void *values; /* [rows, hidden] */
	const float *scales;
	int32_t rows, kind;
};

struct layer {
	struct matrix qkv, out, gate_up, down;
	const float *attention_norm, *mlp_norm; /* [hidden] */
	const float *key_scales, *value_scales; /* [heads, width] of the cache */
};

struct model {
	int32_t layers, hidden, inner, heads, width, positions;
	int32_t codebooks, audio_tokens, text_tokens, text_width, speaker_token, end_text, history;
	int32_t threads, rows, tokens; /* rows: most in a call; tokens: most in a call, of all its rows */
	float epsilon;
	int32_t unused;
	const float *cosine, *sine; /* [positions, width / 2] */
	const struct layer *layer;
	const float *final_norm;
	struct table words, codes; /* codes: [codebooks * audio_tokens, hidden] */
	struct matrix code_head, text_head;
};

/* B rows of S new tokens each; see edged/compiler/chattts/gpt.py for what the tensors mean. */
struct call {
	int64_t B, S;
	const int64_t *ids;    /* [B, S, codebooks] */
	const int64_t *text;   /* [B, S] */
	const float *speaker;  /* [B, hidden] */
	const int32_t *lengths;
	const int64_t *last;
	const uint8_t *refine; /* [1] */
	const float *temperature, *top_p;
	const int64_t *top_k;
	const float *penalty;
	const int64_t *ban_end;
	const float *uniform;  /* [B, codebooks] */
	const int64_t *greedy;
	const int64_t *history; /* [B, history, codebooks] */
	int64_t *codes;        /* [B, codebooks] */
	int64_t *end;          /* [B] */
	float *hidden;         /* [B, hidden] */
	int8_t *const *keys, *const *values; /* a pointer a layer: [B, heads, positions, width] */
};

#endif
