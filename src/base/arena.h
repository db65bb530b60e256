/* Memory that is planned, then taken: no allocation after the first step.
 *
 * An arena is created in one of two modes. Measuring (`mu_arena_measure`): takes return NULL-based offsets that must
 * not be dereferenced, and only `high` grows; this is the plan. Real (`mu_arena_reserve`): one block of exactly the
 * planned size is allocated from a device, and the same sequence of takes hands it out. So plan and use run the same
 * code, and high == capacity afterwards says that the plan was exact.
 *
 * Every take is aligned to MU_ARENA_ALIGN bytes. Takes are released together: by mark and back_to (stack order).
 * Not thread-safe: one owner at a time. In sanitizer builds the gap after each take is poisoned.
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_ARENA_H
#define MU_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fail.h"

#define MU_ARENA_ALIGN 64 /* bytes: one cache line, one AVX-512 vector */

typedef struct mu_arena {
	const char *name; /* "model", "step", "scratch": in messages and the memory plan */
	unsigned char *base; /* NULL while measuring */
	size_t capacity; /* bytes reserved; 0 while measuring */
	size_t used, high; /* bytes taken now, and at most so far */
	bool measuring;
} mu_arena;

/* Starts measuring. */
void mu_arena_measure(mu_arena *arena, const char *name);

/* Starts handing out [base, base + capacity), which the caller owns and frees after the arena. base must be aligned to
 * MU_ARENA_ALIGN. */
void mu_arena_reserve(mu_arena *arena, const char *name, void *base, size_t capacity);

/* Bytes for a take of `bytes` including padding. */
size_t mu_arena_padded(size_t bytes);

/* Takes `bytes` (may be 0: returns a valid, unusable place). Taking more than was reserved is a bug in the plan: the
 * arena remembers it, returns NULL, and mu_arena_check reports it. While measuring the result is an offset from an
 * unmapped base and must not be dereferenced; it is never NULL either. */
void *mu_arena_take(mu_arena *arena, size_t bytes);

size_t mu_arena_mark(const mu_arena *arena);
void mu_arena_back_to(mu_arena *arena, size_t mark);

/* MURAL_BUG if a take did not fit. */
mural_status mu_arena_check(const mu_arena *arena, mural_error *err);

#endif
