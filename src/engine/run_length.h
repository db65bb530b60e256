/* How long a run is, in optimizer updates. SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_RUN_LENGTH_H
#define MU_ENGINE_RUN_LENGTH_H

#include "mural/config.h"

/* Updates of the whole run; *schedule becomes the configuration's with the lengths that depend on the data set filled in. */
uint64_t mu_run_length(const mural_config *config, uint64_t steps_per_epoch, mural_schedule_config *schedule);

#endif
