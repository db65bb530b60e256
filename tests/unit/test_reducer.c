/* Buckets: every gradient once, in backward's order, whole units, whatever the overlap. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/reducer.h"

#define UNITS 6

/* A comm of two ranks that only notes what is begun and waited for. */
typedef struct fake_comm {
	mu_comm comm;
	mu_comm_facts facts;
	struct {
		const char *at;
		size_t count;
	} begun[UNITS];
	int n_begun, n_waited;
} fake_comm;

static const mu_comm_facts *facts(const mu_comm *comm)
{
	return &((const fake_comm *)comm)->facts;
}

static mural_status all_reduce_begin(mu_comm *comm, void *buffer, size_t count, mu_dtype type, mu_reduce how,
                                     mu_pending *pending, mural_error *err)
{
	(void)err;
	fake_comm *fake = (fake_comm *)comm;
	assert_int_equal(type, MU_F32);
	assert_int_equal(how, MU_SUM);
	assert_true(fake->n_begun < UNITS);
	fake->begun[fake->n_begun].at = buffer;
	fake->begun[fake->n_begun++].count = count;
	/* one second each, back to back */
	pending->begun = fake->n_begun;
	pending->ended = fake->n_begun + 1;
	return MURAL_OK;
}

static mural_status wait(mu_comm *comm, mu_pending *pending, mural_error *err)
{
	(void)pending;
	(void)err;
	((fake_comm *)comm)->n_waited++;
	return MURAL_OK;
}

static const mu_comm_table table = {.name = "fake", .facts = facts, .all_reduce_begin = all_reduce_begin, .wait = wait};

typedef struct fixture {
	mu_unit units[UNITS];
	mu_arena arena;
	mu_store store;
	fake_comm fake;
	mu_reducer reducer;
} fixture;

static const size_t sizes[UNITS] = {1 << 18, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 10};

static void set_up(fixture *f, int ranks, size_t limit, bool overlap)
{
	memset(f, 0, sizeof *f);
	for (size_t u = 0; u < UNITS; u++)
		f->units[u].elements = sizes[u];
	mu_arena_measure(&f->arena, "model");
	mural_error err = {0};
	const mu_store_settings settings = {.training = true};
	const mu_reducer_settings how = {.bucket_elements = limit, .overlap = overlap};
	assert_int_equal(mu_store_init(&f->store, f->units, UNITS, &settings, &f->arena, &err), MURAL_OK);
	f->fake.comm.table = &table;
	f->fake.facts.size = ranks;
	assert_int_equal(mu_reducer_init(&f->reducer, &f->store, &f->fake.comm, &how, &err), MURAL_OK);
}

static void tear_down(fixture *f)
{
	mu_reducer_release(&f->reducer);
	mu_store_release(&f->store);
}

/* The begun buckets tile the gradients from the end to the beginning. */
static void assert_tiles(const fixture *f)
{
	const char *end = (const char *)f->store.gradients + f->store.elements * sizeof(float);
	for (int i = 0; i < f->fake.n_begun; i++) {
		assert_ptr_equal(f->fake.begun[i].at + f->fake.begun[i].count * sizeof(float), end);
		end = f->fake.begun[i].at;
	}
	assert_ptr_equal(end, f->store.gradients);
	assert_int_equal(f->fake.n_waited, f->fake.n_begun);
}

static void buckets_begin_as_their_lowest_unit_is_ready(void **state)
{
	(void)state;
	fixture f;
	set_up(&f, 2, 500000000, true);
	/* an eighth of the model is 557 184 elements: no two units fit together */
	const int begun_after[UNITS] = {6, 5, 4, 3, 2, 1};
	mu_reducer_times times;
	for (int step = 0; step < 2; step++) {
		f.fake.n_begun = f.fake.n_waited = 0;
		for (size_t u = UNITS; u-- > 0;) {
			assert_int_equal(mu_reducer_ready(&f.reducer, u, NULL), MURAL_OK);
			assert_int_equal(f.fake.n_begun, begun_after[u]);
		}
		assert_int_equal(mu_reducer_finish(&f.reducer, &(mural_status){MURAL_OK}, &times, NULL), MURAL_OK);
		assert_tiles(&f);
		/* six seconds under way, and this test waited for next to nothing of them */
		assert_true(times.hidden > 5.9 && times.hidden <= 6 && times.exposed < 0.1);
	}
	tear_down(&f);
}

static void overlap_changes_when_not_what(void **state)
{
	(void)state;
	fixture with, without;
	set_up(&with, 2, 1 << 21, true);
	set_up(&without, 2, 1 << 21, false);
	mu_reducer_times times;
	for (size_t u = UNITS; u-- > 0;) {
		assert_int_equal(mu_reducer_ready(&with.reducer, u, NULL), MURAL_OK);
		assert_int_equal(mu_reducer_ready(&without.reducer, u, NULL), MURAL_OK);
	}
	assert_true(with.fake.n_begun > 0);
	assert_int_equal(without.fake.n_begun, 0);
	assert_int_equal(mu_reducer_finish(&with.reducer, &(mural_status){MURAL_OK}, &times, NULL), MURAL_OK);
	assert_int_equal(mu_reducer_finish(&without.reducer, &(mural_status){MURAL_OK}, &times, NULL), MURAL_OK);
	assert_tiles(&with);
	assert_tiles(&without);
	assert_int_equal(with.fake.n_begun, without.fake.n_begun);
	for (int i = 0; i < with.fake.n_begun; i++)
		assert_int_equal(with.fake.begun[i].count, without.fake.begun[i].count);
	tear_down(&with);
	tear_down(&without);
}

static void a_failed_rank_still_begins_every_bucket(void **state)
{
	(void)state;
	fixture f;
	set_up(&f, 2, 500000000, true);
	mu_reducer_times times;
	assert_int_equal(mu_reducer_ready(&f.reducer, UNITS - 1, NULL), MURAL_OK);
	assert_int_equal(mu_reducer_ready(&f.reducer, UNITS - 2, NULL), MURAL_OK);
	assert_int_equal(mu_reducer_finish(&f.reducer, &(mural_status){MURAL_OK}, &times, NULL), MURAL_OK);
	assert_tiles(&f);
	tear_down(&f);
}

static void small_limits_cut_per_unit(void **state)
{
	(void)state;
	fixture f;
	set_up(&f, 2, 1, true);
	mu_reducer_times times;
	assert_int_equal(mu_reducer_finish(&f.reducer, &(mural_status){MURAL_OK}, &times, NULL), MURAL_OK);
	assert_int_equal(f.fake.n_begun, UNITS);
	assert_tiles(&f);
	tear_down(&f);
}

static void one_rank_reduces_nothing(void **state)
{
	(void)state;
	fixture f;
	set_up(&f, 1, 500000000, true);
	mu_reducer_times times;
	for (size_t u = UNITS; u-- > 0;)
		assert_int_equal(mu_reducer_ready(&f.reducer, u, NULL), MURAL_OK);
	assert_int_equal(mu_reducer_finish(&f.reducer, &(mural_status){MURAL_OK}, &times, NULL), MURAL_OK);
	assert_int_equal(f.fake.n_begun, 0);
	tear_down(&f);
}

static void sharded_rules_are_refused_by_name(void **state)
{
	(void)state;
	for (int stage = 1; stage <= 3; stage++) {
		fixture f = {0};
		mu_arena_measure(&f.arena, "model");
		mural_error err = {0};
		const mu_store_settings settings = {.rule = mu_store_rule_for(stage), .training = true};
		assert_int_equal(mu_store_init(&f.store, f.units, UNITS, &settings, &f.arena, &err), MURAL_USAGE);
		assert_non_null(strstr(err.message, "zero_optimization.stage"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(buckets_begin_as_their_lowest_unit_is_ready),
	        cmocka_unit_test(overlap_changes_when_not_what),
	        cmocka_unit_test(a_failed_rank_still_begins_every_bucket),
	        cmocka_unit_test(small_limits_cut_per_unit),
	        cmocka_unit_test(one_rank_reduces_nothing),
	        cmocka_unit_test(sharded_rules_are_refused_by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
