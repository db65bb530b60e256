/* Energy of a run's steps, over all ranks: what the processors and cards used from a step's beginning to its end. Reading
 * data for the steps is in it, evaluations and checkpoints are not.
 *
 *     mu_run_energy_begin(energy, comm, card, err);    all ranks, once
 *     mu_run_energy_go(energy);                        a stretch of steps begins
 *     mu_run_energy_note(energy);                      after each step; cheap
 *     mu_run_energy_settle(energy, comm, sums, err);   all ranks: the stretch ends, and its joules are added up
 *
 * One rank per host reads the host's counters. What cannot be measured somewhere is NaN everywhere: a sum of some is none.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_RUN_ENERGY_H
#define MU_ENGINE_RUN_ENERGY_H

#include "comm/comm.h"
#include "engine/run_totals.h"
#include "monitor/nvml.h"
#include "monitor/rapl.h"

typedef struct mu_run_energy { /* zero-initialise */
	bool reads_host, reads_gpu; /* this rank */
	mu_rapl rapl;
	mu_nvml nvml;
	double read; /* when, mu_now() */
	mu_joules mark; /* what the meters showed then */
	mu_joules pending; /* since the last settling, this rank */
	bool knows_processors, knows_gpus, uses_gpus; /* the same on all ranks */
} mu_run_energy;

/* gpu: PCI address of the card that this rank trains on, NULL when it is none. */
mural_status mu_run_energy_begin(mu_run_energy *energy, mu_comm *comm, const char *gpu, mural_error *err);
void mu_run_energy_end(mu_run_energy *energy);

void mu_run_energy_go(mu_run_energy *energy);
void mu_run_energy_note(mu_run_energy *energy);
/* Adds to the totals and to those of their running epoch. */
mural_status mu_run_energy_settle(mu_run_energy *energy, mu_comm *comm, mu_run_totals *totals, mural_error *err);

/* Joules of all that took part; NaN unless all of it is known. */
double mu_run_energy_sum(const mu_run_energy *energy, const mu_joules *joules);
/* "RAPL (package-0, dram)"; rank 0's. */
void mu_run_energy_meters(const mu_run_energy *energy, char *text, size_t size);
/* Why a number is missing, "" when none is; rank 0's. */
void mu_run_energy_missing(const mu_run_energy *energy, char *text, size_t size);

#endif
