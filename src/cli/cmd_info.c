/* `mural info`: what works on this machine and what is missing. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "launch.h"
#include "mural/info.h"

static void help(void)
{
	printf("usage: mural info [OPTIONS]\n\n"
	       "Shows the version, the build, the processor, and which of MPI, GPU and data sets work here;\n"
	       "for what does not work: why, and what to do. With ranks (--ranks, --hostfile, mpirun, srun) also who "
	       "sits "
	       "where.\n\n"
	       "options:\n");
	run_arguments_help(stdout, RUN_INFO);
}

static double gib(size_t bytes)
{
	return (double)bytes / (1 << 30);
}

static void print_part(const char *name, const mural_info_part *part)
{
	printf("  %-18s %s\n", name, part->text);
	if (*part->advice)
		printf("  %-18s -> %s\n", "", part->advice);
}

static void print_info(const mural_info *info)
{
	printf("mural %s\n\nbuild\n", info->version);
	printf("  %-18s %s\n", "compiler", info->compiler);
	printf("  %-18s %s\n", "matrix products", info->matrix_products);
	printf("  %-18s %s\n", "bf16 products", info->bf16_products);
	printf("  %-18s %s\n", "OpenMP", info->openmp ? "yes" : "no: one thread per rank");
	printf("  %-18s %s\n", "image files", info->image_files);
	printf("\nhost %s\n", info->host);
	printf("  %-18s %s\n", "processor", info->processor);
	printf("  %-18s %d usable\n", "cores", info->cores);
	printf("  %-18s %.1f GiB, %.1f GiB of it free\n", "memory", gib(info->memory_bytes),
	       gib(info->memory_free_bytes));
	printf("  %-18s", "instructions");
	for (size_t i = 0; i < info->n_instructions; i++)
		printf(" %s", info->instructions[i]);
	printf("%s\n\nparts\n", info->n_instructions ? "" : " none that matter");
	print_part("MPI", &info->mpi);
	print_part("GPU", &info->gpu);
	print_part("energy", &info->energy);
	print_part("fashion-mnist", &info->fashion_mnist);
}

/* One line per rank. */
static void print_seats(const mural_seat *seats, int n)
{
	int host = 4, cpus = 4;
	for (int r = 0; r < n; r++) {
		host = (int)strlen(seats[r].host) > host ? (int)strlen(seats[r].host) : host;
		cpus = (int)strlen(seats[r].cpus) > cpus ? (int)strlen(seats[r].cpus) : cpus;
	}
	printf("\nranks\n  %4s  %-*s  %5s  %-*s  %4s  %s\n", "rank", host, "host", "cores", cpus, "cpus", "slot",
	       "device");
	for (int r = 0; r < n; r++)
		printf("  %4d  %-*s  %5d  %-*s  %4d  %s\n", seats[r].rank, host, seats[r].host, seats[r].cores, cpus,
		       seats[r].cpus, seats[r].slot, seats[r].device);
}

/* Rank 0's machine, and where all ranks sit. */
static mural_status tell(const mural_info *info, const mural_seat *seats, int n_seats, const char *result,
                         mural_error *err)
{
	print_info(info);
	if (seats)
		print_seats(seats, n_seats);
	fflush(stdout); /* --result /dev/stdout comes after it */
	return result ? mural_info_write(info, seats, n_seats, result, err) : MURAL_OK;
}

static mural_status tell_of_ranks(mural_comm *comm, const mural_info *info, const char *result, mural_error *err)
{
	const mural_comm_facts *facts = mural_comm_get_facts(comm);
	mural_seat *seats = calloc((size_t)facts->size, sizeof *seats);
	mural_status status = MURAL_OK;
	if (!seats) {
		status = err->status = MURAL_OUT_OF_MEMORY;
		snprintf(err->message, sizeof err->message, "no memory for a table of %d ranks", facts->size);
	}
	status = mural_comm_agree(comm, status, err);
	if (status == MURAL_OK)
		status = mural_info_seats(comm, seats, err);
	if (status == MURAL_OK && facts->rank == 0)
		status = tell(info, facts->size > 1 ? seats : NULL, facts->size, result, err);
	free(seats);
	return mural_comm_agree(comm, status, err);
}

static int run(const char *result)
{
	mural_error err = {0};
	mural_comm *comm = NULL;
	mural_info info;
	int rank;
	mural_comm_launcher(NULL, &rank);
	if (rank == 0)
		mural_info_collect(&info); /* before the ranks share the cores */
	mural_status status = mural_comm_open(&comm, "auto", &err);
	if (status != MURAL_OK) {
		mural_report_failure(&err, 0, 1);
		return mural_exit_code(status);
	}
	const mural_comm_facts *facts = mural_comm_get_facts(comm);
	status = tell_of_ranks(comm, &info, result, &err);
	if (status != MURAL_OK)
		mural_report_failure(&err, facts->rank, facts->size);
	int code = mural_exit_code(status == MURAL_PEER && err.cause != MURAL_OK ? err.cause : status);
	mural_comm_close(comm);
	return code;
}

int command_info(int argc, char **argv)
{
	run_arguments arguments;
	rank_choice choice = {0};
	mural_error err = {0};
	int code = 0;
	run_arguments_parse(&arguments, argc, argv, RUN_INFO, &err);
	if (err.status == MURAL_OK && arguments.argc > 0) {
		err.status = MURAL_USAGE;
		snprintf(err.message, sizeof err.message,
		         "info: unknown argument '%.200s'; `mural info --help` lists the options", arguments.argv[0]);
	}
	if (err.status == MURAL_OK && !arguments.help)
		rank_choice_make(&choice, &arguments, &err);
	if (err.status != MURAL_OK) {
		mural_report_failure(&err, 0, 1);
		code = mural_exit_code(err.status);
	} else if (arguments.help) {
		help();
	} else if (choice.start) {
		code = rank_choice_start(&choice, &arguments, argc, argv, false);
	} else {
		code = run(arguments.result);
	}
	rank_choice_release(&choice);
	free(arguments.argv);
	return code;
}
