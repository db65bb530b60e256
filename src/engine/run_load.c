/* Who computes for how long. SPDX-License-Identifier: MIT */
#include "engine/run_load.h"

#include <stdlib.h>

#include "base/fail.h"

void mu_run_load_note(mu_run_load *load, const mural_step_facts *step)
{
	if (!load->warm && load->steps == 1) {
		load->warm = true;
		load->steps = 0;
		load->computing = 0;
	}
	load->steps++;
	load->computing += step->data_seconds + step->forward_seconds + step->backward_seconds;
}

/* Each rank in its turn tells the others. */
mural_status mu_run_load_gather(mu_run_load *load, mural_comm *comm, mural_error *err)
{
	const mural_comm_facts *facts = mural_comm_get_facts(comm);
	double mine = load->steps > 0 ? load->computing / (double)load->steps : 0;
	free(load->seconds);
	load->ranks = facts->size;
	load->seconds = calloc((size_t)facts->size, sizeof *load->seconds);
	mural_status status =
	        load->seconds ? MURAL_OK
	                      : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for %d numbers", facts->size);
	MU_TRY(mu_comm_agree(comm, status, err));
	for (int rank = 0; load->seconds && rank < facts->size; rank++) { /* all ranks have room, or none is here */
		double theirs = mine;
		MU_TRY(mu_comm_broadcast(comm, &theirs, sizeof theirs, rank, err));
		load->seconds[rank] = theirs;
	}
	return MURAL_OK;
}

void mu_run_load_release(mu_run_load *load)
{
	free(load->seconds);
	*load = (mu_run_load){0};
}

void mu_run_load_write(const mu_run_load *load, mu_json *json)
{
	int slowest = 0;
	double sum = 0;
	if (!load->seconds)
		return;
	for (int rank = 0; rank < load->ranks; rank++) {
		sum += load->seconds[rank];
		slowest = load->seconds[rank] > load->seconds[slowest] ? rank : slowest;
	}
	mu_json_object_begin(json, "load");
	mu_json_integer(json, "slowest_rank", slowest);
	mu_json_number(json, "slowest_seconds", load->seconds[slowest]);
	mu_json_number(json, "mean_seconds", sum / load->ranks);
	mu_json_array_begin(json, "computing_seconds");
	for (int rank = 0; rank < load->ranks; rank++)
		mu_json_number(json, NULL, load->seconds[rank]);
	mu_json_array_end(json);
	mu_json_object_end(json);
}
