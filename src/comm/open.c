/* Who started us, and which table that asks for.
 *
 * Launchers tell in the environment; nothing else is asked before a library is opened, so a program started alone never
 * touches MPI. SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/module.h"

/* In this order: mpirun inside a Slurm job sets its own variables beside Slurm's. Slurm counts by its *step* variables,
 * which srun sets for the processes it starts; SLURM_NTASKS is there in a batch script too, where nobody started ranks. */
enum { OPEN_MPI, MPICH, SRUN, PMIX };
static const struct launcher {
	const char *size, *rank, *name;
} launchers[] = {
        [OPEN_MPI] = {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI's mpirun"},
        [MPICH] = {"PMI_SIZE", "PMI_RANK", "MPICH's mpiexec"},
        [SRUN] = {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"},
        [PMIX] = {NULL, "PMIX_RANK", "PMIx"},
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

/* False if `launcher` did not start this process. *n: 0 if it does not say how many ranks it started. */
static bool asked(const struct launcher *launcher, int *n, int *rank)
{
	*rank = number(launcher->rank);
	*n = launcher->size ? number(launcher->size) : 0;
	return *rank >= 0 && *n >= 0 && (*n == 0 || *rank < *n);
}

/* `srun --mpi=pmi2` speaks MPICH's language too. (MPICH's mpiexec may start its own helpers with srun, one per node: then the
 * numbers differ.) */
static bool is_srun_with_pmi(size_t i, int n, int rank)
{
	int tasks, task;
	return i == MPICH && asked(&launchers[SRUN], &tasks, &task) && tasks == n && task == rank;
}

static int find(const char **launcher, int *rank)
{
	int n;
	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
		if (!asked(&launchers[i], &n, rank))
			continue;
		*launcher = launchers[is_srun_with_pmi(i, n, *rank) ? SRUN : i].name;
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

static bool is_srun(const char *launcher)
{
	return strcmp(launcher, launchers[SRUN].name) == 0;
}

/* What to do when the launcher and the MPI library do not understand each other. */
static void advise(const char *launcher, const char *flavour, int promised, char *text, size_t capacity)
{
	const char *type = strcmp(flavour, "mpich") == 0 ? "pmi2" : "pmix";
	if (is_srun(launcher))
		snprintf(text, capacity,
		         "start it with `srun --mpi=%s`, or set SLURM_MPI_TYPE=%s before srun (see docs/launching.md)",
		         type, type);
	else
		snprintf(text, capacity, "start it with that library's own mpirun, or with --ranks %d", promised);
}

static mural_status check_size(int size, const char *library, int promised, const char *launcher, const char *flavour,
                               mural_error *err)
{
	char advice[256];
	if (promised == 0 || size == promised)
		return MURAL_OK;
	advise(launcher, flavour, promised, advice, sizeof advice);
	return mu_fail(err, MURAL_USAGE, NULL,
	               "%s started %d ranks, but the MPI library that Mural uses (%s) sees %d: %s", launcher, promised,
	               library, size, advice);
}

/* Without PMIx Open MPI 4 ends a process that srun started in twenty lines of its own; Open MPI 5 adds remarks. */
static mural_status check_can_join(const mu_comm_module *module, int promised, const char *launcher, mural_error *err)
{
	char library[128] = "";
	if (!is_srun(launcher) || getenv("PMIX_NAMESPACE") || !module->needs_pmix())
		return MURAL_OK;
	module->library(library, sizeof library);
	return check_size(1, library, promised, launcher, module->flavour, err);
}

static mural_status open_mpi(const char *name, int promised, const char *launcher, mu_comm **comm, mural_error *err)
{
	const mu_comm_module *module;
	MU_TRY(mu_comm_module_load("mural_comm_mpi.so", &module, err));
	if (strcmp(name, "auto") != 0 && strcmp(name, module->flavour) != 0)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "\"%s\" was asked for, but the MPI module of this Mural is for \"%s\"", name,
		               module->flavour);
	MU_TRY(check_can_join(module, promised, launcher, err));
	MU_TRY(module->table->open(comm, err));
	const mu_comm_facts *facts = module->table->facts(*comm);
	mural_status status = check_size(facts->size, facts->library, promised, launcher, module->flavour, err);
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
