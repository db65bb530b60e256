/* Every collective against plain loops, for any number of ranks: alone it tests `self` (or, with MURAL_TEST_COMM=openmpi, MPI
 * with one rank), under mpirun the MPI module. test_collectives_mpi.sh runs it for 1 to 4 ranks, and with emulated links.
 *
 * Values are small whole numbers that depend on rank and position, so every type sums them exactly in any order.
 * timeout: 120
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/narrow.h"
#include "comm/comm.h"
#include "comm/emulated.h"

static mu_comm *comm;
static const mu_comm_table *table;
static int rank, size;
static mural_error err;

static const mu_dtype types[] = {MU_F32, MU_F64, MU_I32, MU_I64, MU_U8};
static const size_t counts[] = {0, 1, 2, 3, 197, 1025, 65537};

#define each(i, array) (size_t i = 0; i < sizeof(array) / sizeof *(array); i++)

/* What rank r holds at position i of block b: -8 .. 24, or 0 .. 32 for bytes. */
static int value(int r, size_t i, int b, mu_dtype type)
{
	return (int)((i * 7 + (size_t)(r * r * 3 + b * 5)) % 33) - (type == MU_U8 ? 0 : 8);
}

static void put(void *at, size_t i, mu_dtype type, int x)
{
	switch (type) {
	case MU_F32: ((float *)at)[i] = (float)x; break;
	case MU_F64: ((double *)at)[i] = x; break;
	case MU_BF16: ((uint16_t *)at)[i] = mu_bf16_bits((float)x); break;
	case MU_F16: ((uint16_t *)at)[i] = mu_f16_bits((float)x); break;
	case MU_I32: ((int32_t *)at)[i] = x; break;
	case MU_I64: ((int64_t *)at)[i] = x; break;
	default: ((uint8_t *)at)[i] = (uint8_t)x;
	}
}

static int get(const void *at, size_t i, mu_dtype type)
{
	switch (type) {
	case MU_F32: return (int)((const float *)at)[i];
	case MU_F64: return (int)((const double *)at)[i];
	case MU_BF16: return (int)mu_bf16_float(((const uint16_t *)at)[i]);
	case MU_F16: return (int)mu_f16_float(((const uint16_t *)at)[i]);
	case MU_I32: return ((const int32_t *)at)[i];
	case MU_I64: return (int)((const int64_t *)at)[i];
	default: return ((const uint8_t *)at)[i];
	}
}

/* `blocks` blocks of `count` elements and a guard behind them that must keep its value. */
enum { GUARD = 16, GUARD_BYTE = 0x5a };

static void *buffer(size_t blocks, size_t count, mu_dtype type)
{
	size_t bytes = blocks * count * mu_dtype_bytes(type);
	char *at = malloc(bytes + GUARD);
	assert_non_null(at);
	memset(at, 0xee, bytes);
	memset(at + bytes, GUARD_BYTE, GUARD);
	return at;
}

static void drop(void *at, size_t blocks, size_t count, mu_dtype type)
{
	const unsigned char *guard = (unsigned char *)at + blocks * count * mu_dtype_bytes(type);
	for (int i = 0; i < GUARD; i++)
		assert_int_equal(guard[i], GUARD_BYTE);
	free(at);
}

static void fill(void *at, size_t count, mu_dtype type, int block)
{
	for (size_t i = 0; i < count; i++)
		put((char *)at + (size_t)block * count * mu_dtype_bytes(type), i, type, value(rank, i, block, type));
}

static int reduced(size_t i, int block, mu_dtype type, mu_reduce how)
{
	int all = value(0, i, block, type);
	for (int r = 1; r < size; r++) {
		int x = value(r, i, block, type);
		all = how == MU_SUM ? all + x : how == MU_MAX ? (x > all ? x : all) : (x < all ? x : all);
	}
	return all;
}

static void check_all_reduce(size_t count, mu_dtype type, mu_reduce how)
{
	void *at = buffer(1, count, type);
	fill(at, count, type, 0);
	assert_int_equal(mu_comm_all_reduce(comm, at, count, type, how, &err), MURAL_OK);
	for (size_t i = 0; i < count; i++)
		if (get(at, i, type) != reduced(i, 0, type, how))
			fail_msg("rank %d: all-reduce %d of %zu %s: element %zu is %d, not %d", rank, how, count,
			         mu_dtype_text(type), i, get(at, i, type), reduced(i, 0, type, how));
	drop(at, 1, count, type);
}

static void test_all_reduce(void **state)
{
	(void)state;
	for each (c, counts)
		for each (t, types)
			for (int how = MU_SUM; how <= MU_MIN; how++)
				if (types[t] != MU_U8 || how != MU_SUM)
					check_all_reduce(counts[c], types[t], (mu_reduce)how);
	check_all_reduce(5000011, MU_F32, MU_SUM);
	check_all_reduce(20021, MU_BF16, MU_SUM);
	check_all_reduce(20021, MU_F16, MU_SUM);
}

static void test_broadcast(void **state)
{
	(void)state;
	for each (c, counts) {
		for (int root = 0; root < size; root++) {
			void *at = buffer(1, counts[c], MU_U8);
			if (rank == root)
				fill(at, counts[c], MU_U8, 0);
			assert_int_equal(mu_comm_broadcast(comm, at, counts[c], root, &err), MURAL_OK);
			for (size_t i = 0; i < counts[c]; i++)
				assert_int_equal(get(at, i, MU_U8), value(root, i, 0, MU_U8));
			drop(at, 1, counts[c], MU_U8);
		}
	}
}

static void check_all_gather(size_t count, mu_dtype type, bool in_place)
{
	void *gathered = buffer((size_t)size, count, type), *mine = buffer(1, count, type);
	char *own = (char *)gathered + (size_t)rank * count * mu_dtype_bytes(type);
	void *from = in_place ? (void *)own : mine;
	mu_pending pending = {0};
	fill(from, count, type, 0);
	assert_int_equal(table->all_gather_begin(comm, from, gathered, count, type, &pending, &err), MURAL_OK);
	assert_int_equal(table->wait(comm, &pending, &err), MURAL_OK);
	for (int r = 0; r < size; r++)
		for (size_t i = 0; i < count; i++)
			assert_int_equal(get(gathered, (size_t)r * count + i, type), value(r, i, 0, type));
	drop(gathered, (size_t)size, count, type);
	drop(mine, 1, count, type);
}

static void test_all_gather(void **state)
{
	(void)state;
	for each (c, counts)
		for each (t, types)
			for (int in_place = 0; in_place < 2; in_place++)
				check_all_gather(counts[c], types[t], in_place);
	check_all_gather(1000003, MU_F32, true);
}

static void check_reduce_scatter(size_t count, mu_dtype type, bool in_place)
{
	void *all = buffer((size_t)size, count, type), *mine = buffer(1, count, type);
	char *own = (char *)all + (size_t)rank * count * mu_dtype_bytes(type);
	void *to = in_place ? (void *)own : mine;
	mu_pending pending = {0};
	for (int b = 0; b < size; b++)
		fill(all, count, type, b);
	assert_int_equal(table->reduce_scatter_begin(comm, all, to, count, type, &pending, &err), MURAL_OK);
	assert_int_equal(table->wait(comm, &pending, &err), MURAL_OK);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(get(to, i, type), reduced(i, rank, type, MU_SUM));
	drop(all, (size_t)size, count, type);
	drop(mine, 1, count, type);
}

static void test_reduce_scatter(void **state)
{
	(void)state;
	for each (c, counts)
		for each (t, types)
			for (int in_place = 0; in_place < 2 && types[t] != MU_U8; in_place++)
				check_reduce_scatter(counts[c], types[t], in_place);
	check_reduce_scatter(1000003, MU_F32, false);
	check_reduce_scatter(10007, MU_BF16, false);
	check_reduce_scatter(10007, MU_F16, true);
}

static void check_all_to_all(size_t count, mu_dtype type)
{
	void *from = buffer((size_t)size, count, type), *to = buffer((size_t)size, count, type);
	mu_pending pending = {0};
	for (int b = 0; b < size; b++)
		fill(from, count, type, b);
	assert_int_equal(table->all_to_all_begin(comm, from, to, count, type, &pending, &err), MURAL_OK);
	assert_int_equal(table->wait(comm, &pending, &err), MURAL_OK);
	for (int r = 0; r < size; r++)
		for (size_t i = 0; i < count; i++)
			assert_int_equal(get(to, (size_t)r * count + i, type), value(r, i, rank, type));
	drop(from, (size_t)size, count, type);
	drop(to, (size_t)size, count, type);
}

static void test_all_to_all(void **state)
{
	(void)state;
	for each (c, counts)
		for each (t, types)
			check_all_to_all(counts[c], types[t]);
	check_all_to_all(1000003, MU_F32);
}

/* More than the ring holds, of different kinds and lengths, waited for backwards: order and room both matter. */
static void test_many_in_flight(void **state)
{
	enum { MANY = 700 };
	static mu_pending pending[MANY];
	static float *at[MANY];
	(void)state;
	for (int k = 0; k < MANY; k++) {
		size_t count = (size_t)(k * 37 % 1500);
		at[k] = buffer(1, count, MU_F32);
		pending[k] = (mu_pending){0};
		for (size_t i = 0; i < count; i++)
			at[k][i] = k % 3 == 0 && rank ? -1 : (float)(rank + k);
		mural_status status =
		        k % 3 ? table->all_reduce_begin(comm, at[k], count, MU_F32, MU_SUM, &pending[k], &err)
		              : table->broadcast_begin(comm, at[k], count * sizeof(float), 0, &pending[k], &err);
		assert_int_equal(status, MURAL_OK);
	}
	for (int k = MANY - 1; k >= 0; k--) {
		size_t count = (size_t)(k * 37 % 1500);
		float expected = k % 3 ? (float)(size * k + size * (size - 1) / 2) : (float)k;
		assert_int_equal(table->wait(comm, &pending[k], &err), MURAL_OK);
		assert_null(pending[k].request);
		assert_true(pending[k].begun > 0 && pending[k].ended >= pending[k].begun);
		assert_int_equal(pending[k].bytes, count * sizeof(float));
		for (size_t i = 0; i < count; i++)
			assert_true(at[k][i] == expected);
		drop(at[k], 1, count, MU_F32);
	}
}

/* Begin, compute, wait: the collective proceeds while this thread is busy and never looks at it. */
static void test_overlap(void **state)
{
	enum { COUNT = 300000 };
	mu_pending first = {0}, second = {0};
	double *a = buffer(1, COUNT, MU_F64), *b = buffer(1, COUNT, MU_F64);
	(void)state;
	fill(a, COUNT, MU_F64, 0);
	assert_int_equal(table->all_reduce_begin(comm, a, COUNT, MU_F64, MU_SUM, &first, &err), MURAL_OK);
	fill(b, COUNT, MU_F64, 0);
	assert_int_equal(table->all_reduce_begin(comm, b, COUNT, MU_F64, MU_MAX, &second, &err), MURAL_OK);
	bool finished = false;
	while (!finished) {
		assert_int_equal(table->test(comm, &first, &finished, &err), MURAL_OK);
		mu_sleep(1e-4); /* more ranks than cores */
	}
	assert_null(first.request);
	assert_int_equal(table->wait(comm, &first, &err), MURAL_OK); /* again: nothing in flight */
	assert_int_equal(table->wait(comm, &second, &err), MURAL_OK);
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(get(a, i, MU_F64), reduced(i, 0, MU_F64, MU_SUM));
		assert_int_equal(get(b, i, MU_F64), reduced(i, 0, MU_F64, MU_MAX));
	}
	drop(a, 1, COUNT, MU_F64);
	drop(b, 1, COUNT, MU_F64);
}

static void test_barrier(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(mu_comm_barrier(comm, &err), MURAL_OK);
}

static void test_agree(void **state)
{
	(void)state;
	mural_error mine = {0};
	assert_int_equal(mu_comm_agree(comm, MURAL_OK, &mine), MURAL_OK);
	assert_int_equal(mine.status, MURAL_OK);
	for (int bad = 0; bad < size; bad++) {
		mine = (mural_error){0};
		mural_status status = MURAL_OK;
		if (rank >= bad)
			status = mu_fail(&mine, MURAL_DATA, "labels.gz:16", "label %d is out of range", 100 + rank);
		status = mu_comm_agree(comm, status, &mine);
		char expected[64];
		snprintf(expected, sizeof expected, "label %d is out of range", 100 + (rank >= bad ? rank : bad));
		assert_int_equal(status, rank >= bad ? MURAL_DATA : MURAL_PEER);
		assert_int_equal(mine.status, status);
		assert_string_equal(mine.message, expected);
		assert_string_equal(mine.where, "labels.gz:16");
		assert_true(mine.has_rank == (size > 1));
		if (size > 1)
			assert_int_equal(mine.rank, rank >= bad ? rank : bad);
	}
	/* Nobody wants the words. */
	assert_int_equal(mu_comm_agree(comm, rank == size - 1 ? MURAL_FAILED : MURAL_OK, NULL),
	                 rank == size - 1 ? MURAL_FAILED : MURAL_PEER);
}

static void test_facts(void **state)
{
	(void)state;
	const mu_comm_facts *facts = table->facts(comm);
	assert_int_equal(size, mu_comm_launcher(NULL));
	assert_int_equal(rank, mu_comm_launcher_rank());
	assert_true(facts->local_size == size && facts->local_rank == rank); /* the test runs on one host */
	assert_true(strlen(facts->host) > 0);
	if (strcmp(table->name, "self") == 0)
		assert_string_equal(facts->library, "none");
	else
		assert_null(strchr(facts->library, ','));
	int32_t seen[64] = {0};
	assert_true(size <= 64);
	seen[rank] = 1;
	assert_int_equal(mu_comm_all_reduce(comm, seen, (size_t)size, MU_I32, MU_SUM, &err), MURAL_OK);
	for (int r = 0; r < size; r++)
		assert_int_equal(seen[r], 1);
}

static void test_refusals(void **state)
{
	(void)state;
	mu_pending pending = {0};
	mural_error e = {0};
	uint8_t byte = 0;
	assert_int_equal(table->all_reduce_begin(comm, &byte, 1, MU_U8, MU_SUM, &pending, &e), MURAL_BUG);
	e = (mural_error){0};
	assert_int_equal(table->all_reduce_begin(comm, &byte, 1, MU_BF16, MU_MAX, &pending, &e), MURAL_BUG);
	e = (mural_error){0};
	assert_int_equal(table->broadcast_begin(comm, &byte, 1, size, &pending, &e), MURAL_BUG);
	pending.request = &byte;
	e = (mural_error){0};
	assert_int_equal(table->barrier_begin(comm, &pending, &e), MURAL_BUG);
	assert_non_null(strstr(e.message, "still in flight"));
}

/* A refused call leaves nothing in flight that could write into what the next ones use. */
static void test_after_refusals(void **state)
{
	(void)state;
	uint8_t byte = 0;
	for (int round = 0; round < 50; round++) {
		mu_pending refused = {0}, good = {0};
		mural_error e = {0};
		int32_t sum = 1;
		assert_int_equal(table->all_reduce_begin(comm, &byte, 1, MU_U8, MU_SUM, &refused, &e), MURAL_BUG);
		assert_null(refused.request);
		assert_int_equal(table->all_reduce_begin(comm, &sum, 1, MU_I32, MU_SUM, &good, &err), MURAL_OK);
		assert_int_equal(table->wait(comm, &good, &err), MURAL_OK);
		assert_int_equal(sum, size);
		assert_true(good.ended >= good.begun);
	}
}

/* Members have collectives among themselves, beside those of all ranks; the others have no comm. */
static void test_group(void **state)
{
	(void)state;
	bool members[16] = {false};
	assert_true(size <= 16);
	for (int leave = size - 1; leave >= 0 && size > 1; leave -= 2) {
		mu_comm *group;
		for (int r = 0; r < size; r++)
			members[r] = r != leave;
		assert_int_equal(table->group(comm, members, &group, &err), MURAL_OK);
		int64_t sum = rank, all = 1, gathered[16], mine = 100 + rank;
		if (rank == leave) {
			assert_null(group);
		} else {
			const mu_comm_facts *facts = group->table->facts(group);
			mu_pending pending[2] = {{0}};
			assert_int_equal(facts->size, size - 1);
			assert_int_equal(facts->rank, rank - (rank > leave));
			assert_int_equal(
			        group->table->all_reduce_begin(group, &sum, 1, MU_I64, MU_SUM, &pending[0], &err),
			        MURAL_OK);
			assert_int_equal(
			        group->table->all_gather_begin(group, &mine, gathered, 1, MU_I64, &pending[1], &err),
			        MURAL_OK);
			assert_int_equal(group->table->wait(group, &pending[1], &err), MURAL_OK);
			assert_int_equal(group->table->wait(group, &pending[0], &err), MURAL_OK);
			assert_int_equal(sum, size * (size - 1) / 2 - leave);
			for (int r = 0; r < size - 1; r++)
				assert_int_equal(gathered[r], 100 + r + (r >= leave));
			int32_t word = facts->rank == facts->size - 1 ? 7 : 0;
			assert_int_equal(mu_comm_broadcast(group, &word, sizeof word, facts->size - 1, &err), MURAL_OK);
			assert_int_equal(word, 7);
		}
		assert_int_equal(mu_comm_all_reduce(comm, &all, 1, MU_I64, MU_SUM, &err), MURAL_OK);
		assert_int_equal(all, size);
		if (group)
			group->table->close(group);
	}
}

/* With MURAL_TEST_EMULATED the same must hold of collectives on described links, a node for each rank. */
static mural_status emulate(const mu_link_node *node)
{
	mu_link_node nodes[16];
	int n = comm->table->facts(comm)->size;
	assert_true(n <= 16);
	for (int i = 0; i < n; i++)
		nodes[i] = *node;
	const mu_emulated_settings settings = {.nodes = nodes, .n_nodes = n, .byte_scale = 1, .cluster = "test"};
	return mu_emulated_create(&comm, comm, &settings, &err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_facts),          cmocka_unit_test(test_all_reduce),
	        cmocka_unit_test(test_broadcast),      cmocka_unit_test(test_all_gather),
	        cmocka_unit_test(test_reduce_scatter), cmocka_unit_test(test_all_to_all),
	        cmocka_unit_test(test_many_in_flight), cmocka_unit_test(test_overlap),
	        cmocka_unit_test(test_barrier),        cmocka_unit_test(test_agree),
	        cmocka_unit_test(test_refusals),       cmocka_unit_test(test_after_refusals),
	        cmocka_unit_test(test_group),
	};
	const char *name = getenv("MURAL_TEST_COMM");
	if (mu_comm_open(name ? name : "auto", &comm, &err)) {
		mural_error_print(&err, stderr);
		return mural_exit_code(err.status);
	}
	mu_comm *real = comm;
	const mu_link_node each_alone = {.ranks = 1, .uplink = {1e9, 1e-4}};
	if (getenv("MURAL_TEST_EMULATED") && emulate(&each_alone)) {
		mural_error_print(&err, stderr);
		return mural_exit_code(err.status);
	}
	table = comm->table;
	rank = table->facts(comm)->rank;
	size = table->facts(comm)->size;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	/* A rank that failed a test has left the others somewhere in the middle. */
	if (failed)
		table->abort(comm, 1);
	table->close(comm);
	if (real != comm)
		real->table->close(real);
	return 0;
}
