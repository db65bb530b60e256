/* Who started us, and which table that asks for.
 *
 * Launchers tell in the environment; nothing else is asked before a library is opened, so a program started alone never
 * touches MPI. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/module.h"

/* In this order: mpirun inside a Slurm job sets its own variables beside Slurm's. Slurm counts by its *step* variables,
 * which srun sets for the processes it starts; SLURM_NTASKS is there in a batch script too, where nobody started ranks. */
static const struct {
	const char *size, *rank, *name;
} launchers[] = {
        {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI's mpirun"},
        {"PMI_SIZE", "PMI_RANK", "MPICH's mpiexec"},
        {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"},
        {NULL, "PMIX_RANK", "PMIx"},
};

/* A whole non-negative number, or -1. */
static int number(const char *variable)
{
	const char *text = variable ? getenv(variable) : NULL;
	if (!text || !*text)
		return -1;
	char *end;
	long value = strtol(text, &end, 10);
	return *end == '\0' && value >= 0 && value < 1 << 30 ? (int)value : -1;
}

static int find(const char **launcher, int *rank)
{
	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
		int r = number(launchers[i].rank);
		int n = launchers[i].size ? number(launchers[i].size) : 0;
		if (r < 0 || n < 0 || (n > 0 && r >= n))
			continue;
		*launcher = launchers[i].name;
		*rank = r;
		return n;
	}
	*launcher = "none";
	*rank = 0;
	return 1;
}

int mu_comm_launcher(const char **launcher)
{
	const char *name;
	int rank;
	int size = find(&name, &rank);
	if (launcher)
		*launcher = name;
	return size;
}

int mu_comm_launcher_rank(void)
{
	const char *name;
	int rank;
	find(&name, &rank);
	return rank;
}

static mural_status check_size(const mu_comm_facts *facts, int promised, const char *launcher, mural_error *err)
{
	if (promised == 0 || facts->size == promised)
		return MURAL_OK;
	return mu_fail(err, MURAL_USAGE, NULL,
	               "%s started %d ranks, but the MPI library that Mural uses (%s) sees %d: start it with that "
	               "library's own mpirun, or with --ranks %d",
	               launcher, promised, facts->library, facts->size, promised);
}

static mural_status open_mpi(const char *name, int promised, const char *launcher, mu_comm **comm, mural_error *err)
{
	const mu_comm_module *module;
	MU_TRY(mu_comm_module_load("mural_comm_mpi.so", &module, err));
	if (strcmp(name, "auto") != 0 && strcmp(name, module->flavour) != 0)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "\"%s\" was asked for, but the MPI module of this Mural is for \"%s\"", name,
		               module->flavour);
	MU_TRY(module->table->open(comm, err));
	mural_status status = check_size(module->table->facts(*comm), promised, launcher, err);
	if (status != MURAL_OK) {
		module->table->close(*comm);
		*comm = NULL;
	}
	return status;
}

mural_status mu_comm_open(const char *name, mu_comm **comm, mural_error *err)
{
	static const char *const names[] = {"auto", "self", "openmpi", "mpich"};
	const char *launcher;
	int promised = mu_comm_launcher(&launcher);
	bool known = false;
	*comm = NULL;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		known = known || strcmp(name, names[i]) == 0;
	if (!known)
		return mu_fail(
		        err, MURAL_USAGE, NULL,
		        "collectives \"%.64s\" do not exist; there are \"auto\", \"self\", \"openmpi\" and \"mpich\"",
		        name);
	if (strcmp(name, "self") == 0 && promised != 1)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "collectives \"self\" are for one rank, but %s started %d: use \"auto\"", launcher,
		               promised);
	if (promised == 1 && (strcmp(name, "auto") == 0 || strcmp(name, "self") == 0))
		return mu_comm_self.open(comm, err);
	return open_mpi(name, promised, launcher, comm, err);
}
