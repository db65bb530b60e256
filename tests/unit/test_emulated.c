/* Emulated and observed collectives over an inner comm that this test drives: when things end, in which order they use the links,
 * what a listener hears. Times come from the inner comm's handles, so nothing here depends on how fast the test runs.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "comm/emulated.h"
#include "comm/log.h"
#include "comm/observed.h"

/* Two ranks, of which the other one begins everything `lag` seconds after us. A collective is through `takes` seconds after that. */
static struct inner {
	mu_comm comm;
	mu_comm_facts facts;
	double lag, takes;
	bool fails, open; /* open: test says not yet */
	int begun, waited;
} inner;

static const mu_comm_facts *facts(const mu_comm *comm)
{
	(void)comm;
	return &inner.facts;
}

static mural_status begin(size_t bytes, mu_pending *pending)
{
	inner.begun++;
	pending->begun = mu_now();
	pending->ended = pending->begun + inner.lag + inner.takes;
	pending->bytes = bytes;
	pending->request = &inner;
	return MURAL_OK;
}

static mural_status all_reduce(mu_comm *comm, void *buffer, size_t count, mu_dtype type, mu_reduce how,
                               mu_pending *pending, mural_error *err)
{
	(void)comm, (void)err;
	if (how == MU_MAX && type == MU_F64 && count == 1)
		*(double *)buffer += inner.lag; /* when the other one has begun */
	return begin(count * mu_dtype_bytes(type), pending);
}

static mural_status broadcast(mu_comm *comm, void *buffer, size_t bytes, int root, mu_pending *pending,
                              mural_error *err)
{
	(void)comm, (void)buffer, (void)root, (void)err;
	return begin(bytes, pending);
}

static mural_status wait_inner(mu_comm *comm, mu_pending *pending, mural_error *err)
{
	(void)comm;
	inner.waited++;
	pending->request = NULL;
	return inner.fails ? mu_fail(err, MURAL_PEER, NULL, "rank 1 is gone") : MURAL_OK;
}

static mural_status test_inner(mu_comm *comm, mu_pending *pending, bool *finished, mural_error *err)
{
	(void)comm, (void)err;
	*finished = !inner.open;
	if (*finished)
		pending->request = NULL;
	return MURAL_OK;
}

static const mu_comm_watch *watched;

static void watch_inner(mu_comm *comm, const mu_comm_watch *watch)
{
	(void)comm;
	watched = watch;
}

static const mu_comm_table inner_table = {.name = "inner",
                                          .facts = facts,
                                          .all_reduce_begin = all_reduce,
                                          .broadcast_begin = broadcast,
                                          .test = test_inner,
                                          .wait = wait_inner,
                                          .watch = watch_inner};

static const mu_link_node nodes[] = {{1, {1e9, 0.001}, {0, 0}}, {1, {1e9, 0.001}, {0, 0}}};

static mu_comm *emulate(double byte_scale)
{
	mu_comm *comm;
	mural_error err = {0};
	inner = (struct inner){.comm = {.table = &inner_table}, .facts = {.size = 2, .library = "fake"}};
	const mu_emulated_settings settings = {.nodes = nodes,
	                                       .n_nodes = 2,
	                                       .algorithm = MU_ALGORITHM_RING,
	                                       .byte_scale = byte_scale,
	                                       .cluster = "test"};
	assert_int_equal(mu_emulated_create(&comm, &inner.comm, &settings, &err), MURAL_OK);
	inner.begun = inner.waited = 0; /* measuring the clock */
	return comm;
}

static void close_to(double a, double b)
{
	if (fabs(a - b) > 1e-9)
		fail_msg("%.9f, not %.9f", a, b);
}

/* 2 (n - 1) (latency + bytes / n / bandwidth) */
static double cost(double bytes)
{
	return 2 * (0.001 + bytes / 2 / 1e9);
}

static void ends_when_the_links_would_have(void **state)
{
	(void)state;
	mu_comm *comm = emulate(1);
	float buffer[250];
	mu_pending pending = {0};
	assert_int_equal(comm->table->all_reduce_begin(comm, buffer, 250, MU_F32, MU_SUM, &pending, NULL), MURAL_OK);
	assert_int_equal(pending.bytes, 1000);
	assert_int_equal(comm->table->wait(comm, &pending, NULL), MURAL_OK);
	assert_null(pending.request);
	assert_true(mu_now() >= pending.ended);
	close_to(pending.ended - pending.begun, cost(1000));
	comm->table->close(comm);
}

/* The other rank comes 5 ms later; the collective starts with it. And bytes count a thousandfold. */
static void starts_with_the_last_rank(void **state)
{
	(void)state;
	mu_comm *comm = emulate(1000);
	inner.lag = 0.005;
	char bytes[1000];
	mu_pending pending = {0};
	assert_int_equal(comm->table->all_reduce_begin(comm, bytes, 1000, MU_U8, MU_MAX, &pending, NULL), MURAL_OK);
	assert_int_equal(comm->table->wait(comm, &pending, NULL), MURAL_OK);
	close_to(pending.ended - pending.begun, 0.005 + cost(1e6));
	comm->table->close(comm);
}

/* Begun together, ended one behind the other, whatever the order of the waits. */
static void one_at_a_time_uses_the_links(void **state)
{
	(void)state;
	enum { MANY = 150 }; /* more than the ring holds */
	static mu_pending pending[MANY];
	mu_comm *comm = emulate(1);
	float buffer[MANY];
	memset(pending, 0, sizeof pending);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(comm->table->all_reduce_begin(comm, &buffer[i], 1, MU_F32, MU_SUM, &pending[i], NULL),
		                 MURAL_OK);
	for (int i = MANY; i-- > 0;)
		assert_int_equal(comm->table->wait(comm, &pending[i], NULL), MURAL_OK);
	assert_int_equal(inner.begun, 2 * MANY);
	assert_int_equal(inner.waited, 2 * MANY);
	close_to(pending[0].ended - pending[0].begun, cost(4));
	for (int i = 1; i < MANY; i++)
		close_to(pending[i].ended - pending[i - 1].ended, cost(4));
	comm->table->close(comm);
}

static void what_is_slower_than_described_is_late(void **state)
{
	(void)state;
	mu_comm *comm = emulate(1);
	mu_emulated_counts counts;
	inner.takes = 0.01;
	float buffer[1];
	mu_pending pending = {0};
	assert_int_equal(comm->table->broadcast_begin(comm, buffer, 4, 0, &pending, NULL), MURAL_OK);
	assert_int_equal(comm->table->wait(comm, &pending, NULL), MURAL_OK);
	assert_true(mu_emulated_read(comm, &counts));
	assert_int_equal(counts.collectives, 1);
	assert_int_equal(counts.late, 1);
	/* a broadcast by ring on two ranks: scatter, then all-gather */
	double described = (0.001 + 2 / 1e9) + 0.001 + 0.5 * 4 / 1e9;
	close_to(counts.seconds, described);
	assert_true(fabs(counts.late_seconds - (0.01 - described)) < 1e-3);
	assert_false(mu_emulated_read(&inner.comm, &counts));
	comm->table->close(comm);
}

static void test_never_blocks(void **state)
{
	(void)state;
	mu_comm *comm = emulate(1e6);
	float buffer[1];
	bool finished = true;
	mu_pending pending = {0};
	assert_int_equal(comm->table->all_reduce_begin(comm, buffer, 1, MU_F32, MU_SUM, &pending, NULL), MURAL_OK);
	inner.open = true;
	assert_int_equal(comm->table->test(comm, &pending, &finished, NULL), MURAL_OK);
	assert_false(finished);
	inner.open = false;
	/* through in truth, and on the links not before 6 ms */
	assert_int_equal(comm->table->test(comm, &pending, &finished, NULL), MURAL_OK);
	assert_true(finished == (mu_now() >= pending.ended) || !finished);
	assert_int_equal(comm->table->wait(comm, &pending, NULL), MURAL_OK);
	assert_int_equal(comm->table->test(comm, &pending, &finished, NULL), MURAL_OK);
	assert_true(finished);
	assert_int_equal(inner.waited, 0);
	comm->table->close(comm);
}

/* Ranks that watch each other must not take a slow link for a stuck rank. */
static void waiting_for_a_link_is_a_sign_of_life(void **state)
{
	(void)state;
	mu_comm *comm = emulate(1);
	static mu_pulse pulse;
	const mu_comm_watch watch = {.seconds = 1, .pulse = &pulse};
	inner.lag = 0.2; /* the other rank comes late, so that there is something to wait for on any machine */
	float buffer[1];
	mu_pending pending = {0};
	comm->table->watch(comm, &watch);
	assert_ptr_equal(watched, &watch);
	assert_int_equal(comm->table->all_reduce_begin(comm, buffer, 1, MU_F32, MU_SUM, &pending, NULL), MURAL_OK);
	assert_int_equal(comm->table->wait(comm, &pending, NULL), MURAL_OK);
	uint64_t beats = atomic_load(&pulse.beats);
	assert_true(beats > 0);
	comm->table->watch(comm, NULL);
	assert_null(watched);
	memset(&pending, 0, sizeof pending);
	assert_int_equal(comm->table->all_reduce_begin(comm, buffer, 1, MU_F32, MU_SUM, &pending, NULL), MURAL_OK);
	assert_int_equal(comm->table->wait(comm, &pending, NULL), MURAL_OK);
	assert_true(atomic_load(&pulse.beats) == beats);
	comm->table->close(comm);
}

static void failures_and_misuse_pass_through(void **state)
{
	(void)state;
	mu_comm *comm = emulate(1);
	float buffer[1];
	mural_error err = {0};
	mu_pending pending = {0};
	assert_int_equal(comm->table->all_reduce_begin(comm, buffer, 1, MU_F32, MU_SUM, &pending, NULL), MURAL_OK);
	assert_int_equal(comm->table->all_reduce_begin(comm, buffer, 1, MU_F32, MU_SUM, &pending, &err), MURAL_BUG);
	err = (mural_error){0};
	inner.fails = true;
	assert_int_equal(comm->table->wait(comm, &pending, &err), MURAL_PEER);
	assert_non_null(strstr(err.message, "rank 1 is gone"));
	comm->table->close(comm);
	const mu_emulated_settings short_of_ranks = {.nodes = nodes, .n_nodes = 1, .byte_scale = 1, .cluster = "x"};
	assert_int_equal(mu_emulated_create(&comm, &inner.comm, &short_of_ranks, NULL), MURAL_BUG);
}

static mu_comm_event heard[8];
static int n_heard;

static void listen(void *listener, const mu_comm_event *event)
{
	assert_ptr_equal(listener, &n_heard);
	heard[n_heard++] = *event;
}

/* In the order of the waits, with what lay between posting and starting taken off. */
static void a_listener_hears_every_collective(void **state)
{
	(void)state;
	mu_comm *around = emulate(1), *comm;
	assert_int_equal(mu_observed_create(&comm, around, listen, &n_heard, NULL), MURAL_OK);
	float buffer[2];
	mu_pending first = {0}, second = {0};
	n_heard = 0;
	assert_int_equal(comm->table->all_reduce_begin(comm, &buffer[0], 1, MU_F32, MU_SUM, &first, NULL), MURAL_OK);
	assert_int_equal(comm->table->broadcast_begin(comm, &buffer[1], 4, 0, &second, NULL), MURAL_OK);
	assert_int_equal(comm->table->facts(comm)->size, 2);
	assert_int_equal(comm->table->wait(comm, &first, NULL), MURAL_OK);
	assert_int_equal(comm->table->wait(comm, &second, NULL), MURAL_OK);
	assert_int_equal(comm->table->wait(comm, &second, NULL), MURAL_OK); /* told once */
	assert_int_equal(n_heard, 2);
	assert_int_equal(heard[0].collective, MU_ALL_REDUCE);
	assert_int_equal(heard[1].collective, MU_BROADCAST);
	assert_int_equal(heard[1].bytes, 4);
	close_to(heard[0].ended - heard[0].started, cost(4));
	close_to(heard[1].started, heard[0].ended);
	close_to(heard[1].ended, second.ended);
	comm->table->close(comm);
	around->table->close(around);
}

static void the_log_adds_up_by_kind_and_size(void **state)
{
	(void)state;
	static mu_comm_log log;
	memset(&log, 0, sizeof log);
	mu_comm_log_add(&log, MU_ALL_REDUCE, 1000, 0.5);
	mu_comm_log_add(&log, MU_ALL_REDUCE, 1000, 1.5);
	mu_comm_log_add(&log, MU_BARRIER, 0, 0.25);
	assert_int_equal(log.n, 2);
	assert_int_equal(log.rows[0].count, 2);
	assert_int_equal(log.rows[0].total_bytes, 2000);
	assert_true(log.rows[0].seconds == 2.0);
	for (uint64_t bytes = 1; bytes < 500; bytes++) {
		mu_comm_log_add(&log, MU_ALL_REDUCE, bytes, 1);
		mu_comm_log_add(&log, MU_BROADCAST, bytes, 1);
	}
	assert_int_equal(log.n, MU_COMM_LOG_ROWS + 2); /* and what finds no row, by kind */
	uint64_t calls = 0, bytes = 0;
	for (size_t i = 0; i < log.n; i++) {
		calls += log.rows[i].count;
		bytes += log.rows[i].total_bytes;
	}
	assert_int_equal(calls, 3 + 2 * 499);
	assert_int_equal(bytes, 2000 + 499 * 500);
}

static void bandwidths_are_those_of_nccl_tests(void **state)
{
	(void)state;
	assert_true(mu_comm_algorithm_bandwidth(1e9, 0.5) == 2e9);
	assert_true(mu_comm_algorithm_bandwidth(1e9, 0) == 0);
	close_to(mu_comm_bus_bandwidth(MU_ALL_REDUCE, 1, 1, 4), 1.5);
	close_to(mu_comm_bus_bandwidth(MU_ALL_GATHER, 1, 1, 4), 0.75);
	close_to(mu_comm_bus_bandwidth(MU_REDUCE_SCATTER, 1, 1, 4), 0.75);
	close_to(mu_comm_bus_bandwidth(MU_ALL_TO_ALL, 1, 1, 4), 0.75);
	close_to(mu_comm_bus_bandwidth(MU_BROADCAST, 1, 1, 4), 1);
	close_to(mu_comm_bus_bandwidth(MU_BARRIER, 0, 1, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(ends_when_the_links_would_have),
	        cmocka_unit_test(starts_with_the_last_rank),
	        cmocka_unit_test(one_at_a_time_uses_the_links),
	        cmocka_unit_test(what_is_slower_than_described_is_late),
	        cmocka_unit_test(test_never_blocks),
	        cmocka_unit_test(waiting_for_a_link_is_a_sign_of_life),
	        cmocka_unit_test(failures_and_misuse_pass_through),
	        cmocka_unit_test(a_listener_hears_every_collective),
	        cmocka_unit_test(the_log_adds_up_by_kind_and_size),
	        cmocka_unit_test(bandwidths_are_those_of_nccl_tests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
