/* Arenas: a plan made while measuring is the use of the real one. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

static void test_padded(void **state)
{
	(void)state;
	assert_int_equal(mu_arena_padded(0), 0);
	assert_int_equal(mu_arena_padded(1), MU_ARENA_ALIGN);
	assert_int_equal(mu_arena_padded(MU_ARENA_ALIGN), MU_ARENA_ALIGN);
	assert_int_equal(mu_arena_padded(MU_ARENA_ALIGN + 1), 2 * MU_ARENA_ALIGN);
}

/* Some takes with a mark in between; the same code plans and uses. */
static void take_all(mu_arena *arena, void *taken[4])
{
	taken[0] = mu_arena_take(arena, 100);
	const size_t mark = mu_arena_mark(arena);
	taken[1] = mu_arena_take(arena, 1000);
	mu_arena_back_to(arena, mark);
	taken[2] = mu_arena_take(arena, 1);
	taken[3] = mu_arena_take(arena, 0);
}

static void test_plan_is_use(void **state)
{
	(void)state;
	mu_arena plan, real;
	void *planned[4], *taken[4];
	mu_arena_measure(&plan, "plan");
	take_all(&plan, planned);
	assert_true(plan.measuring);
	assert_int_equal(plan.high, 128 + 1024);
	assert_int_equal(plan.used, 128 + 64);
	for (size_t i = 0; i < 4; i++)
		assert_non_null(planned[i]);
	assert_int_equal(mu_arena_check(&plan, NULL), MURAL_OK);

	void *base = aligned_alloc(MU_ARENA_ALIGN, plan.high);
	assert_non_null(base);
	mu_arena_reserve(&real, "real", base, plan.high);
	take_all(&real, taken);
	assert_int_equal(real.high, real.capacity);
	assert_int_equal(real.used, plan.used);
	assert_int_equal(mu_arena_check(&real, NULL), MURAL_OK);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal((uintptr_t)taken[i] % MU_ARENA_ALIGN, 0);
		assert_int_equal((char *)taken[i] - (char *)taken[0], (char *)planned[i] - (char *)planned[0]);
	}
	assert_ptr_equal(taken[1], taken[2]); /* the mark gave the place back */
	memset(taken[0], 1, 100);
	memset(taken[2], 1, 1);
	/* sanitizer builds closed the rest; the owner gets all of it back */
	mu_arena_back_to(&real, 0);
	assert_ptr_equal(mu_arena_take(&real, plan.high), base);
	memset(base, 2, plan.high);
	free(base);
}

static void test_too_much_is_remembered(void **state)
{
	(void)state;
	mu_arena arena;
	mural_error err = {0};
	void *base = aligned_alloc(MU_ARENA_ALIGN, 128);
	assert_non_null(base);
	mu_arena_reserve(&arena, "scratch", base, 128);
	assert_ptr_equal(mu_arena_take(&arena, 64), base);
	assert_null(mu_arena_take(&arena, 65));
	mu_arena_back_to(&arena, 0);
	void *all = mu_arena_take(&arena, 128);
	assert_ptr_equal(all, base);
	memset(all, 3, 128);
	assert_int_equal(mu_arena_check(&arena, &err), MURAL_BUG);
	assert_int_equal(err.status, MURAL_BUG);
	assert_non_null(strstr(err.message, "arena 'scratch' was planned with 128 bytes and 192 were taken"));
	assert_int_equal(mu_arena_check(&arena, NULL), MURAL_BUG);
	free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_padded),
	        cmocka_unit_test(test_plan_is_use),
	        cmocka_unit_test(test_too_much_is_remembered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
