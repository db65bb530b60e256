/* What ranks tell each other where somebody is left out: records reach those, whose failures and wishes come into force on all ranks
 * one step later, and members' failures at once. test_news_mpi.sh runs it for 2 to 4 ranks; the last rank is left out, of 4 the one before, too.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "engine/news.h"

static mu_comm *comm;
static int rank, size;
static bool out;

static mu_step_record record_of(int step)
{
	return (mu_step_record){.sums = {.loss = 0.5 * step, .count = 8}, .carried = {.applied = step}};
}

/* One step of the protocol; the record as this rank has it afterwards. */
static mural_status tell(mu_news *news, int step, mural_status status, bool stop_asked, mu_step_record *record,
                         mural_error *err)
{
	const mu_news_own own = {.out = out, .stop_asked = stop_asked, .status = status};
	*record = out ? (mu_step_record){.sums = {.loss = -1}} : record_of(step);
	return mu_news_tell(news, comm, &own, record, err);
}

static void records_arrive(void **state)
{
	(void)state;
	mu_news news = {0};
	mural_error err = {0};
	for (int step = 1; step <= 20; step++) {
		mu_step_record record;
		const mu_step_record expected = record_of(step);
		assert_int_equal(tell(&news, step, MURAL_OK, false, &record, &err), MURAL_OK);
		assert_memory_equal(&record, &expected, sizeof record);
	}
	assert_int_equal(mu_news_settle(&news, comm, &err), MURAL_OK);
	mu_news_release(&news, comm);
}

/* Whose wish: the last rank's, which is left out. */
static void a_wish_is_heard_a_step_later(void **state)
{
	(void)state;
	mu_news news = {0};
	mural_error err = {0};
	for (int step = 1; step <= 4; step++) {
		mu_step_record record;
		const bool wish = step >= 2 && rank == size - 1;
		assert_int_equal(tell(&news, step, MURAL_OK, wish, &record, &err), MURAL_OK);
		assert_int_equal(record.sums.stop_asked > 0, step >= 3);
	}
	mu_news_release(&news, comm);
}

static void a_failure_comes_into_force_a_step_later(void **state)
{
	(void)state;
	mu_news news = {0};
	mural_error err = {0};
	mu_step_record record;
	assert_int_equal(tell(&news, 1, MURAL_OK, false, &record, &err), MURAL_OK);
	if (rank == size - 1) {
		mu_fail(&err, MURAL_DATA, "shelf 3", "the image is torn");
		mu_news_fail(&news, MURAL_DATA, &err);
		assert_int_equal(err.status, MURAL_OK);
	}
	assert_int_equal(tell(&news, 2, MURAL_OK, false, &record, &err), MURAL_OK);
	assert_int_equal(tell(&news, 3, MURAL_OK, false, &record, &err), rank == size - 1 ? MURAL_DATA : MURAL_PEER);
	assert_non_null(strstr(err.message, "the image is torn"));
	assert_true(err.has_rank);
	assert_int_equal(err.rank, size - 1);
	mu_news_release(&news, comm);
}

static void a_failure_in_the_last_step_is_not_lost(void **state)
{
	(void)state;
	mu_news news = {0};
	mural_error err = {0};
	mu_step_record record;
	if (rank == size - 1)
		mu_news_fail(&news, MURAL_FAILED, NULL);
	assert_int_equal(tell(&news, 1, MURAL_OK, false, &record, &err), MURAL_OK);
	assert_int_equal(mu_news_settle(&news, comm, &err), rank == size - 1 ? MURAL_FAILED : MURAL_PEER);
	mu_news_release(&news, comm);
}

/* Members know of it by their own sum; who is left out reads it in the record, in the same step. */
static void a_members_failure_is_known_at_once(void **state)
{
	(void)state;
	mu_news news = {0};
	mural_error err = {0};
	const mu_news_own own = {.out = out};
	mu_step_record record = out ? (mu_step_record){0} : (mu_step_record){.sums = {.failed = 1}};
	assert_int_equal(mu_news_tell(&news, comm, &own, &record, &err), MURAL_OK);
	assert_true(record.sums.failed == 1);
	mu_news_release(&news, comm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(records_arrive),
	        cmocka_unit_test(a_wish_is_heard_a_step_later),
	        cmocka_unit_test(a_failure_comes_into_force_a_step_later),
	        cmocka_unit_test(a_failure_in_the_last_step_is_not_lost),
	        cmocka_unit_test(a_members_failure_is_known_at_once),
	};
	const char *name = getenv("MURAL_TEST_COMM");
	mural_error err = {0};
	if (mu_comm_open(name ? name : "auto", &comm, &err)) {
		mural_error_print(&err, stderr);
		return mural_exit_code(err.status);
	}
	rank = comm->table->facts(comm)->rank;
	size = comm->table->facts(comm)->size;
	out = size > 1 && (rank == size - 1 || (size == 4 && rank == 2));
	int failed = size > 1 ? cmocka_run_group_tests(tests, NULL, NULL) : 0; /* alone nobody is left out */
	if (failed)
		comm->table->abort(comm, 1);
	comm->table->close(comm);
	return 0;
}
