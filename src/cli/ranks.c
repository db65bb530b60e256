/* From --ranks, --hostfile and its filters to the ranks that are started, or not. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "launch.h"
#include "mural/comm.h"

static bool names_hosts(const run_arguments *a)
{
	return a->hostfile || a->include || a->exclude || a->num_nodes > 0 || a->num_gpus > 0;
}

static mural_status refuse_hosts(const char *launcher, mural_error *err)
{
	err->status = MURAL_USAGE;
	snprintf(err->where, sizeof err->where, "arguments --hostfile, --include, --exclude, --num-nodes, --num-gpus");
	snprintf(err->message, sizeof err->message,
	         "%s has started the ranks already: tell it which hosts to use, or let Mural start the ranks",
	         launcher);
	return MURAL_USAGE;
}

mural_status rank_choice_make(rank_choice *choice, const run_arguments *a, mural_error *err)
{
	const char *launcher;
	mural_comm_launcher(&launcher, NULL);
	bool launched = strcmp(launcher, "none") != 0, by_us = launched && getenv("MURAL_PARENT");
	*choice = (rank_choice){.ranks = a->ranks, .start = a->ranks > 1 && !launched};
	if (!names_hosts(a))
		return MURAL_OK;
	if (by_us) {
		choice->ranks = 0; /* our parent has counted them */
		return MURAL_OK;
	}
	if (launched)
		return refuse_hosts(launcher, err);
	const mural_hosts_choice wanted = {.file = a->hostfile,
	                                   .include = a->include,
	                                   .exclude = a->exclude,
	                                   .nodes = a->num_nodes,
	                                   .slots_per_node = a->num_gpus,
	                                   .ranks = a->ranks};
	if (mural_hosts_open(&choice->hosts, &wanted, err) != MURAL_OK)
		return err->status;
	choice->ranks = mural_hosts_ranks(choice->hosts);
	choice->start = true;
	return MURAL_OK;
}

void rank_choice_release(rank_choice *choice)
{
	mural_hosts_free(choice->hosts);
	*choice = (rank_choice){0};
}

int rank_choice_start(const rank_choice *choice, const run_arguments *a, int argc, char **argv, bool finishes)
{
	const launch_request request = {.ranks = choice->ranks,
	                                .hosts = choice->hosts,
	                                .ask_hosts = !a->no_ssh_check && !getenv("SLURM_JOB_ID"),
	                                .argc = argc,
	                                .argv = argv,
	                                .finishes = finishes,
	                                .restarts = a->max_restarts};
	return mural_launch_ranks(&request);
}
