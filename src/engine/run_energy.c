/* The meters of a run. A reading of the processors costs some system calls, and one of a card 4 ms (an H200 with driver 13.0), so
 * notes are rare: far more often than any counter comes round, and below a thousandth of the time. A card that tells its power alone is
 * asked more often, because what lies between two answers is guessed. SPDX-License-Identifier: MIT */
#include "engine/run_energy.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"

#define SECONDS_BETWEEN_NOTES 5
#define SECONDS_BETWEEN_GUESSES 0.5

/* What the meters show; 0 where this rank has none to read. */
static mu_joules read_meters(mu_run_energy *energy)
{
	energy->read = mu_now();
	return (mu_joules){energy->reads_host ? mu_rapl_joules(&energy->rapl) : 0,
	                   energy->reads_gpu ? mu_nvml_joules(&energy->nvml) : 0};
}

mural_status mu_run_energy_begin(mu_run_energy *energy, mu_comm *comm, const char *gpu, mural_error *err)
{
	*energy = (mu_run_energy){.reads_host = comm->table->facts(comm)->local_rank == 0, .reads_gpu = gpu != NULL};
	if (energy->reads_host)
		mu_rapl_open(&energy->rapl);
	if (energy->reads_gpu)
		mu_nvml_open(&energy->nvml, gpu);
	mu_joules all = read_meters(energy);
	double sums[3] = {all.processor, all.gpu, energy->reads_gpu};
	MU_TRY(mu_comm_all_reduce(comm, sums, 3, MU_F64, MU_SUM, err));
	energy->knows_processors = !isnan(sums[0]);
	energy->knows_gpus = !isnan(sums[1]);
	energy->uses_gpus = sums[2] > 0;
	return MURAL_OK;
}

void mu_run_energy_end(mu_run_energy *energy)
{
	mu_rapl_close(&energy->rapl);
}

void mu_run_energy_go(mu_run_energy *energy)
{
	energy->mark = read_meters(energy);
}

static void add_stretch(mu_run_energy *energy)
{
	mu_joules now = read_meters(energy);
	energy->pending.processor += now.processor - energy->mark.processor;
	energy->pending.gpu += now.gpu - energy->mark.gpu;
	energy->mark = now;
}

void mu_run_energy_note(mu_run_energy *energy)
{
	bool guesses = energy->reads_gpu && !energy->nvml.counts;
	if (mu_now() - energy->read >= (guesses ? SECONDS_BETWEEN_GUESSES : SECONDS_BETWEEN_NOTES))
		add_stretch(energy);
}

mural_status mu_run_energy_settle(mu_run_energy *energy, mu_comm *comm, mu_run_totals *totals, mural_error *err)
{
	add_stretch(energy);
	double sums[2] = {energy->pending.processor, energy->pending.gpu};
	energy->pending = (mu_joules){0};
	MU_TRY(mu_comm_all_reduce(comm, sums, 2, MU_F64, MU_SUM, err));
	totals->epoch.joules.processor += sums[0];
	totals->epoch.joules.gpu += sums[1];
	totals->joules.processor += sums[0];
	totals->joules.gpu += sums[1];
	return MURAL_OK;
}

double mu_run_energy_sum(const mu_run_energy *energy, const mu_joules *joules)
{
	return joules->processor + (energy->uses_gpus ? joules->gpu : 0);
}

void mu_run_energy_meters(const mu_run_energy *energy, char *text, size_t size)
{
	snprintf(text, size, "%s%s%s%s%s", energy->knows_processors ? "RAPL (" : "",
	         energy->knows_processors ? energy->rapl.names : "", energy->knows_processors ? ")" : "",
	         energy->knows_processors && energy->uses_gpus && energy->knows_gpus ? ", " : "",
	         energy->uses_gpus && energy->knows_gpus ? "NVML" : "");
}

void mu_run_energy_missing(const mu_run_energy *energy, char *text, size_t size)
{
	const char *elsewhere = "it cannot be measured on another host";
	const char *processors = *energy->rapl.why ? energy->rapl.why : elsewhere;
	const char *gpus = *energy->nvml.why ? energy->nvml.why : elsewhere;
	snprintf(text, size, "%s%s%s%s%s",
	         energy->knows_processors ? "" : "processors: ", energy->knows_processors ? "" : processors,
	         !energy->knows_processors && energy->uses_gpus && !energy->knows_gpus ? "; " : "",
	         energy->uses_gpus && !energy->knows_gpus ? "GPUs: " : "",
	         energy->uses_gpus && !energy->knows_gpus ? gpus : "");
}
