/* The mesh's numbering. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "comm/comm.h"

static void check(int size, int rank, int sequence_size, int data_size, int data_rank, int sequence_rank)
{
	mu_mesh mesh;
	assert_int_equal(mu_mesh_make(size, rank, sequence_size, &mesh, NULL), MURAL_OK);
	assert_int_equal(mesh.data_size, data_size);
	assert_int_equal(mesh.data_rank, data_rank);
	assert_int_equal(mesh.sequence_size, sequence_size);
	assert_int_equal(mesh.sequence_rank, sequence_rank);
}

static void test_numbering(void **state)
{
	(void)state;
	check(1, 0, 1, 1, 0, 0);
	check(5, 3, 1, 5, 3, 0);
	check(6, 0, 2, 3, 0, 0);
	check(6, 1, 2, 3, 0, 1); /* neighbours share samples */
	check(6, 5, 2, 3, 2, 1);
	check(4, 2, 4, 1, 0, 2);
}

static void test_refusals(void **state)
{
	(void)state;
	mu_mesh mesh;
	mural_error err = {0};
	assert_int_equal(mu_mesh_make(6, 0, 4, &mesh, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "6 ranks"));
	assert_non_null(strstr(err.message, "groups of 4"));
	assert_int_equal(mu_mesh_make(6, 0, 0, &mesh, NULL), MURAL_USAGE);
	assert_int_equal(mu_mesh_make(6, 6, 1, &mesh, NULL), MURAL_BUG);
	assert_int_equal(mu_mesh_make(0, 0, 1, &mesh, NULL), MURAL_BUG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_numbering),
	        cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
