/* How well an emulation kept to its description, in result.json. SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_RUN_EMULATE_H
#define MU_ENGINE_RUN_EMULATE_H

#include "base/json.h"
#include "mural/engine.h"

/* emulated: a comm of mural_comm_emulate; NULL writes nothing. */
void mu_emulation_write(mu_json *json, const mural_comm *emulated, const mural_engine *engine);

#endif
