/* A plan in words and tables. SPDX-License-Identifier: MIT */
#ifndef MURAL_CLI_PLAN_PRINT_H
#define MURAL_CLI_PLAN_PRINT_H

#include "mural/forecast.h"

/* What a plan does not say itself. */
typedef struct plan_notes {
	bool here; /* no cluster was named: this machine, guessed */
	bool loader_known; /* a data set was named */
	int zero_stage; /* asked for */
	uint64_t images; /* of an epoch; 0: not known */
	uint64_t memory_limit, largest_batch; /* bytes of a device, and what fits into them; 0: not known */
	char no_memory[256]; /* why there is no memory plan */
} plan_notes;

void plan_print(const mural_config *config, const mural_cluster *cluster, const mural_forecast_plan *plan,
                const plan_notes *notes);

#endif
