/* This machine as a cluster, guessed: a peak from clock and instructions, a part of it reached. A calibration knows better.
 *
 * One node with a device per core. A rank alone has all cores, as many ranks as cores have one each: two rates say so, and
 * forecasts interpolate between them.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/proc.h"
#include "mural/device.h"
#include "mural/forecast.h"

#define REACHED \
	0.6 /* of a processor's peak in training: ViT-S in fp32 on two AVX-512 cores reached 0.8, small models 0.3 */
#define CLOCK 2.5e9 /* where the system does not tell */
#define MEMORY_BYTES_PER_SECOND 10e9 /* of an update's traffic: two cores of a virtual machine */
#define LINK_BYTES_PER_SECOND 4e9 /* between ranks of a host, through shared memory */
#define LINK_LATENCY 20e-6

/* Multiply-adds of two units, two operations each, fp32. */
static double flops_per_cycle(void)
{
	char flags[4096] = "";
	if (!mu_proc_text("/proc/cpuinfo", "flags", flags, sizeof flags))
		return 16; /* ARM: two units of four lanes */
	return strstr(flags, "avx512f") ? 64 : strstr(flags, "avx2") ? 32 : 8;
}

static double clock_rate(void)
{
	char text[64];
	double rate = mu_proc_text("/proc/cpuinfo", "cpu MHz", text, sizeof text) ? strtod(text, NULL) * 1e6 : 0;
	return rate > 1e8 && rate < 1e11 ? rate : CLOCK;
}

static void add_rate(mural_cluster *c, mural_precision precision, uint32_t ranks, double flops)
{
	c->rates[c->n_rates++] = (mural_cluster_rate){.ranks = ranks,
	                                              .precision = precision,
	                                              .seconds_per_flop = 1 / (flops * REACHED),
	                                              .update_seconds_per_parameter = 28 / MEMORY_BYTES_PER_SECOND};
}

mural_status mural_cluster_here(mural_cluster **cluster, mural_error *err)
{
	mural_cluster *c = *cluster = calloc(1, sizeof *c);
	if (!c)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a cluster");
	uint32_t cores = (uint32_t)mural_cores();
	double core = flops_per_cycle() * clock_rate();
	strcpy(c->name, "this machine");
	c->guessed = true;
	c->n_devices = c->n_links = c->n_entries = c->nodes_in_all = 1;
	mu_proc_processor(c->devices[0].name, sizeof c->devices[0].name);
	c->links[0] = (mural_cluster_link){"memory", LINK_BYTES_PER_SECOND, LINK_LATENCY};
	c->nodes[0] = (mural_cluster_node){
	        .name = "here", .count = 1, .n_slots = 1, .slots = {{0, cores}}, .inside = 0, .uplink = -1};
	c->devices_in_all = cores;
	for (int p = MURAL_FP32; p <= MURAL_FP16; p++) { /* narrow types are no faster without instructions for them */
		add_rate(c, (mural_precision)p, 1, core * cores);
		if (cores > 1)
			add_rate(c, (mural_precision)p, cores, core);
	}
	return MURAL_OK;
}
