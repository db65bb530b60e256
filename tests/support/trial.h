/* One operation on two tables: the same shapes, flags and data, once by the reference and once by the table on trial.
 *
 * A case is a function that is called twice, once per side. It draws shapes, flags and data from the side's generator
 * (a pure function of the seed, so both sides draw the same), declares every array, and makes its calls:
 *
 *     mu_pool op = {.type = s->type, .width = trial_size(s)};
 *     op.x = trial_array(s, TRIAL_INPUT, "x", type, n);            random, must not change
 *     op.y = trial_array(s, TRIAL_OUTPUT, "y", type, m);           NaN before the call
 *     trial_call(s, "pool_forward", s->table->pool_forward(s->context, &op, &s->err));
 *     trial_expect(s, op.y, tokens, 1);
 *
 * Each array stands between guards of NaN bytes, which also make a read past its end show. After each call the guards
 * of all arrays and the bytes of all inputs are checked; at the end trial_compare holds the sides against each other.
 *
 * Alignment is what callers promise: arrays, and scratch, at 64 bytes, as arenas give them; TRIAL_LOOSE arrays (spans
 * of an optimizer or a cast, pixels, labels, streams, cuts) only at their element: they begin one element later.
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_TRIAL_H
#define TESTS_SUPPORT_TRIAL_H

#include <stdbool.h>
#include <stdio.h>

#include "kernels/ops.h"

/* Defined in AddressSanitizer builds, where a touch of a guard stops the program. */
#if defined(__SANITIZE_ADDRESS__)
#define TRIAL_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRIAL_ASAN
#endif
#endif

#define TRIAL_MAX_ARRAYS 32
#define TRIAL_BLOCK_BYTES ((size_t)96 << 20) /* all arrays of one case; untouched pages cost nothing */

typedef enum trial_role {
	TRIAL_INPUT = 0, /* random; must not change */
	TRIAL_OUTPUT = 1, /* poisoned; must be overwritten as far as trial_expect says */
	TRIAL_ADDED = 2, /* random; changed by the call */
	TRIAL_SCRATCH = 3, /* poisoned; its contents do not matter afterwards */
	TRIAL_LOOSE = 4 /* flag: aligned to its element only */
} trial_role;

typedef struct trial_array_entry {
	const char *name;
	unsigned role;
	mu_dtype type;
	size_t n, bytes, offset; /* of the first element, in the block */
	unsigned char *before; /* bytes of an input */
	bool expected; /* trial_expect was called, with: */
	mu_dtype accuracy;
	size_t length;
	double magnitude;
} trial_array_entry;

typedef struct trial_side {
	const mu_ops *table;
	mu_ops_context *context;
	mu_device device;
	unsigned char *block, *mirror; /* device memory; what the host sees of it (the same where it can) */
	size_t used; /* bytes of block */
	mu_dtype type; /* of this case */
	unsigned types; /* bit per mu_dtype that the table on trial supports; the reference's side has the same */
	uint32_t seed;
	uint32_t draws, flags; /* numbers and flags drawn so far */
	size_t n_arrays;
	trial_array_entry arrays[TRIAL_MAX_ARRAYS];
	mural_error err;
	char shape[256]; /* what was drawn, for the message */
	char fault[512]; /* first thing that went wrong, "" if nothing */
} trial_side;

/* On failure nothing stays open. */
mural_status trial_open(trial_side *side, const mu_ops *table, int threads, mural_error *err);
void trial_close(trial_side *side);

/* Forgets the last case. */
void trial_begin(trial_side *side, mu_dtype type, unsigned types, uint32_t seed);

size_t trial_below(trial_side *side, size_t n);
/* The first six flags of a case run through all combinations in 64 consecutive seeds; later ones are random. */
bool trial_flag(trial_side *side, const char *name);
/* One of 1, 2, 3, 5, 7, 16, 17, 31, 64, 65, 197, 384, 768, not above `most`. */
size_t trial_size(trial_side *side, const char *name, size_t most);
double trial_between(trial_side *side, double low, double high);
/* Adds to the description of the case in its message. */
MU_PRINTF(2, 3) void trial_note(trial_side *side, const char *format, ...);
/* No dropout, or a tenth, or a half. */
mu_dropout_rule trial_dropout(trial_side *side, size_t images);

/* Declares an array of n elements; role is one trial_role, perhaps with TRIAL_LOOSE. Random floating numbers have either
 * sign and a magnitude of 0.1 to 1.1, bytes are any, other integers 0 until trial_fill. */
void *trial_array(trial_side *side, unsigned role, const char *name, mu_dtype type, size_t n);
/* The same for a floating array, with numbers center +- 0.1 to 1.1 times spread. */
void *trial_numbers(trial_side *side, unsigned role, const char *name, mu_dtype type, size_t n, double center,
                    double spread);
/* Copies a host array of the declared size into a declared array. */
void trial_fill(trial_side *side, void *array, const void *from);
void *trial_scratch(trial_side *side, size_t bytes);
/* From now on calls may change this input. */
void trial_release(trial_side *side, const void *array);

/* Notes what a call said, waits for it, and checks guards and inputs. */
void trial_call(trial_side *side, const char *row, mural_status status);

/* float for statistics of this case, or double. */
mu_dtype trial_stat(const trial_side *side);
/* Largest magnitude in an array after the last call; 0 for NULL. */
double trial_largest(const trial_side *side, const void *array);

/* The array must agree with the reference's, computed in `accuracy`: sums of `length` terms, results of size
 * `magnitude`. magnitude 0 asks for the same bits. */
void trial_expect(trial_side *side, const void *array, mu_dtype accuracy, size_t length, double magnitude);
void trial_expect_bits(trial_side *side, const void *array);

/* How far two correct implementations may be apart (derivation in trial_compare.c). */
double trial_tolerance(mu_dtype accuracy, size_t length, double magnitude);

/* Fills fault of `tested` with the first disagreement; returns the largest error in units of its tolerance. */
double trial_compare(const trial_side *reference, trial_side *tested);

#endif
