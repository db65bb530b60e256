/* Planned memory. SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define MU_POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define MU_UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define MU_POISON(p, n) ((void)(p), (void)(n))
#define MU_UNPOISON(p, n) ((void)(p), (void)(n))
#endif

/* Offsets while measuring count from here: never NULL, and a stray dereference faults. */
#define MEASURE_BASE ((uintptr_t)MU_ARENA_ALIGN)

void mu_arena_measure(mu_arena *arena, const char *name)
{
	*arena = (mu_arena){.name = name, .measuring = true};
}

void mu_arena_reserve(mu_arena *arena, const char *name, void *base, size_t capacity)
{
	*arena = (mu_arena){.name = name, .base = base, .capacity = capacity};
	MU_POISON(base, capacity);
}

size_t mu_arena_padded(size_t bytes)
{
	return (bytes + MU_ARENA_ALIGN - 1) / MU_ARENA_ALIGN * MU_ARENA_ALIGN;
}

void *mu_arena_take(mu_arena *arena, size_t bytes)
{
	size_t begin = arena->used;
	arena->used += mu_arena_padded(bytes);
	if (arena->used > arena->high)
		arena->high = arena->used;
	if (arena->measuring)
		return (void *)(MEASURE_BASE + begin);
	if (arena->used > arena->capacity)
		return NULL;
	MU_UNPOISON(arena->base + begin, bytes);
	return arena->base + begin;
}

size_t mu_arena_mark(const mu_arena *arena)
{
	return arena->used;
}

void mu_arena_back_to(mu_arena *arena, size_t mark)
{
	if (!arena->measuring && mark < arena->capacity && arena->used > mark) {
		size_t end = arena->used < arena->capacity ? arena->used : arena->capacity;
		MU_POISON(arena->base + mark, end - mark);
		(void)end;
	}
	arena->used = mark;
}

mural_status mu_arena_check(const mu_arena *arena, mural_error *err)
{
	if (arena->measuring || arena->high <= arena->capacity)
		return MURAL_OK;
	mu_fail(err, MURAL_BUG, NULL,
	        "bug in Mural: arena '%s' was planned with %zu bytes and %zu were taken; please report it", arena->name,
	        arena->capacity, arena->high);
	return MURAL_BUG;
}
