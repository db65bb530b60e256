/* The CUDA module with one made-up card, which is the processor under a PCI address. tests/cli/test_energy.sh gives it the module's
 * name, mural_cuda.so, in a folder of its own: so a whole run takes it for a card.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "base/version.h"
#include "kernels/cuda.h"

static mu_device_table card;
static mu_ops ops;

static mural_status card_facts(mu_device_handle *device, mu_device_facts *facts, mural_error *err)
{
	MU_TRY(mu_device_host.facts(device, facts, err));
	snprintf(facts->name, sizeof facts->name, "Card of Paper");
	snprintf(facts->bus, sizeof facts->bus, "0000:3B:00.0");
	return MURAL_OK;
}

/* Whoever loads the module asks this first. */
static mural_status check(mural_error *err)
{
	(void)err;
	card = mu_device_host;
	card.facts = card_facts;
	ops = mu_ops_cpu;
	ops.device = &card;
	return MURAL_OK;
}

static void describe(char *text, size_t size)
{
	snprintf(text, size, "Card of Paper");
}

extern __attribute__((visibility("default"))) const mu_cuda_module mu_cuda_module_entry;
const mu_cuda_module mu_cuda_module_entry = {
        .build_id = MU_BUILD_ID, .ops = &ops, .check = check, .describe = describe};
