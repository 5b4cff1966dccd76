/* Compares the products of an instruction set with plain ones, on random numbers: a program, so that it can run in an
 * emulator. Prints how many differ. Built and run by tests/test_native.py. */
#include <stdio.h>
#include <stdlib.h>

#include "dot.h"

enum { ROWS_TESTED = 37, TOKENS = 7, MOST = 3072 };

static uint8_t codes[ROWS_TESTED * MOST];
static float scales[ROWS_TESTED * MOST / BLOCK];
static int8_t values[TOKENS * MOST];
static float value_scales[TOKENS * MOST / BLOCK], bias[TOKENS * MOST / BLOCK];
static float inputs[TOKENS * MOST], outputs[TILE * 64];

static int differing(int bits, int columns)
{
	int wrong = 0;
	struct matrix a = {codes, scales, ROWS_TESTED, columns, BLOCK, bits};
	struct vectors x = {values, value_scales, bias, columns, columns / BLOCK};
	for (int token = 0; token < TOKENS; token++)
		quantise(inputs + token * columns, &x, token, bits);
	for (int token = 0; token < TOKENS; token += TILE) {
		int count = TOKENS - token < TILE ? TOKENS - token : TILE;
		multiply(&a, 0, ROWS_TESTED, &x, token, count, outputs, 64);
		for (int t = 0; t < count; t++)
			for (int row = 0; row < ROWS_TESTED; row++) {
				float wanted = dot_plain(&a, row, &x, token + t), found = outputs[t * 64 + row];
				float apart = wanted > found ? wanted - found : found - wanted;
				wrong += !(apart <= 1e-3f * (1.0f + (wanted > 0 ? wanted : -wanted)));
			}
	}
	return wrong;
}

int main(void)
{
	srand(1);
	for (size_t i = 0; i < sizeof codes; i++)
		codes[i] = (uint8_t)rand();
	for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
		scales[i] = 0.01f + 0.001f * (float)(rand() % 10);
	for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
		inputs[i] = (float)(rand() % 2001 - 1000) / 300.0f;
	int wrong = 0;
	for (int bits = 4; bits <= 8; bits += 4)
		wrong += differing(bits, 768) + differing(bits, MOST);
	printf("fast %d differing %d\n", FAST, wrong);
	return wrong != 0;
}
