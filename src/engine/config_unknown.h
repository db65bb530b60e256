/* Keys and names that the table does not have, and what may have been meant. SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_CONFIG_UNKNOWN_H
#define MU_ENGINE_CONFIG_UNKNOWN_H

#include "engine/config_build.h"

/* An unknown key in the block of this row (MU_CONFIG_NO_ROW: the top level): a warning, or a failure where keys are
 * checked. */
mural_status mu_config_unknown_key(mu_config_build *build, size_t block, const mu_hjson_value *member);
/* A known parameter of another optimizer or schedule. */
mural_status mu_config_unknown_parameter(mu_config_build *build, size_t row, const mu_hjson_value *member);
/* node NULL: the name comes from an argument. */
mural_status mu_config_unknown_optimizer(mu_config_build *build, const mu_hjson_value *node, const char *name);

#endif
