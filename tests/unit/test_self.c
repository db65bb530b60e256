/* One rank: its table, its choice by the environment, and the public face. What the collectives compute is in
 * ranks/test_collectives.c, which drives `self` too. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"

static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE",     "PMI_RANK",
                                        "SLURM_STEP_NUM_TASKS", "SLURM_PROCID",         "SLURM_NTASKS", "PMIX_RANK"};

static int no_launcher(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		unsetenv(variables[i]);
	return 0;
}

static void check_launcher(int size, int rank, const char *name)
{
	const char *found;
	assert_int_equal(mu_comm_launcher(&found), size);
	assert_int_equal(mu_comm_launcher_rank(), rank);
	assert_string_equal(found, name);
}

static void test_launchers(void **state)
{
	(void)state;
	check_launcher(1, 0, "none");
	setenv("SLURM_NTASKS", "8", 1); /* a batch script: nobody started ranks */
	setenv("SLURM_PROCID", "0", 1);
	check_launcher(1, 0, "none");
	setenv("SLURM_STEP_NUM_TASKS", "8", 1);
	setenv("SLURM_PROCID", "7", 1);
	check_launcher(8, 7, "srun");
	setenv("PMI_SIZE", "6", 1);
	setenv("PMI_RANK", "5", 1);
	check_launcher(6, 5, "MPICH's mpiexec");
	setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
	setenv("OMPI_COMM_WORLD_RANK", "3", 1);
	check_launcher(4, 3, "Open MPI's mpirun");
	setenv("OMPI_COMM_WORLD_RANK", "4", 1); /* nonsense is nobody's word */
	check_launcher(6, 5, "MPICH's mpiexec");
	setenv("PMI_SIZE", "six", 1);
	check_launcher(8, 7, "srun");
	no_launcher(NULL);
	setenv("PMIX_RANK", "2", 1);
	check_launcher(0, 2, "PMIx");
	assert_int_equal(mu_comm_launcher(NULL), 0);
}

static void test_open(void **state)
{
	(void)state;
	mu_comm *comm = NULL;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(mu_comm_open(i ? "self" : "auto", &comm, NULL), MURAL_OK);
		assert_string_equal(comm->table->name, "self");
		const mu_comm_facts *facts = comm->table->facts(comm);
		assert_true(facts->rank == 0 && facts->size == 1 && facts->local_rank == 0 && facts->local_size == 1);
		assert_string_equal(facts->library, "none");
		assert_true(strlen(facts->host) > 0);
		comm->table->close(comm);
	}
	/* One rank of a launcher needs no MPI either. */
	setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
	setenv("OMPI_COMM_WORLD_RANK", "0", 1);
	assert_int_equal(mu_comm_open("auto", &comm, NULL), MURAL_OK);
	assert_string_equal(comm->table->name, "self");
	comm->table->close(comm);
	mu_comm_self.close(NULL);
}

static void test_refusals(void **state)
{
	(void)state;
	mu_comm *comm = NULL;
	mural_error err = {0};
	assert_int_equal(mu_comm_open("gloo", &comm, &err), MURAL_USAGE);
	assert_null(comm);
	assert_non_null(strstr(err.message, "\"gloo\""));
	assert_non_null(strstr(err.message, "\"openmpi\""));
	setenv("PMI_SIZE", "2", 1);
	setenv("PMI_RANK", "1", 1);
	err = (mural_error){0};
	assert_int_equal(mu_comm_open("self", &comm, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "started 2"));
}

static void test_moves(void **state)
{
	(void)state;
	mu_comm *comm = NULL;
	float from[3] = {1, 2, 3}, to[3] = {0};
	mu_pending pending = {0};
	bool finished = false;
	assert_int_equal(mu_comm_self.open(&comm, NULL), MURAL_OK);
	assert_int_equal(mu_comm_self.reduce_scatter_begin(comm, from, to, 3, MU_F32, &pending, NULL), MURAL_OK);
	assert_memory_equal(from, to, sizeof to);
	assert_null(pending.request);
	assert_true(pending.begun > 0 && pending.ended >= pending.begun);
	assert_int_equal(pending.bytes, sizeof to);
	assert_int_equal(mu_comm_self.test(comm, &pending, &finished, NULL), MURAL_OK);
	assert_true(finished);
	to[1] = 7;
	assert_int_equal(mu_comm_self.all_gather_begin(comm, to, to, 3, MU_F32, &pending, NULL),
	                 MURAL_OK); /* in place */
	assert_true(to[0] == 1 && to[1] == 7 && to[2] == 3);
	assert_int_equal(mu_comm_self.wait(comm, &pending, NULL), MURAL_OK);
	mu_comm_self.close(comm);
}

static void test_public_face(void **state)
{
	(void)state;
	mural_comm *comm = NULL;
	mural_error err = {0};
	int rank = -1;
	const char *launcher;
	assert_int_equal(mural_comm_launcher(&launcher, &rank), 1);
	assert_int_equal(rank, 0);
	assert_string_equal(launcher, "none");
	assert_int_equal(mural_comm_open(&comm, "auto", &err), MURAL_OK);
	assert_int_equal(mural_comm_get_facts(comm)->size, 1);
	assert_int_equal(mural_comm_agree(comm, MURAL_OK, &err), MURAL_OK);
	mu_fail(&err, MURAL_DATA, "a.gz:16", "too short");
	assert_int_equal(mural_comm_agree(comm, MURAL_DATA, &err), MURAL_DATA);
	assert_false(err.has_rank); /* nobody needs to be told which of one */
	assert_true(mural_cores() >= 1);
	mural_comm_close(comm);
	mural_comm_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup(test_launchers, no_launcher),   cmocka_unit_test_setup(test_open, no_launcher),
	        cmocka_unit_test_setup(test_refusals, no_launcher),    cmocka_unit_test_setup(test_moves, no_launcher),
	        cmocka_unit_test_setup(test_public_face, no_launcher),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
