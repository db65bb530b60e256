/* Walking through one step. SPDX-License-Identifier: MIT */
#include "study/cost.h"

#include <math.h>

/* Backward is two matrix products where forward is one. */
#define FORWARD_SHARE (1.0 / 3)

static double flops_from(const mu_cost_work *work, size_t first)
{
	double sum = 0;
	for (size_t u = first; u < work->n_units; u++)
		sum += work->units[u].flops;
	return sum;
}

static double trained_parameters(const mu_cost_work *work)
{
	double sum = 0;
	for (size_t u = work->first_trained; u < work->n_units; u++)
		sum += work->units[u].parameters;
	return sum;
}

/* The state of the walk: where backward is, and when the link is free again. */
typedef struct walk {
	double now, link_free, communication, bytes;
} walk;

static void send(walk *w, const mu_cost_machine *machine, mu_cost_collective collective, double bytes, bool overlap)
{
	double seconds = machine->link(machine->user, collective, bytes);
	w->communication += seconds;
	w->bytes += bytes;
	if (overlap)
		w->link_free = fmax(w->link_free, w->now) + seconds;
}

/* The last micro-batch's backward and its buckets; ends with w->now at the end of backward. */
static void walk_backward(walk *w, const mu_cost_work *work, const mu_cost_machine *machine, double backward)
{
	mu_cost_collective collective = work->zero_stage > 0 ? MU_COST_REDUCE_SCATTER : MU_COST_ALL_REDUCE;
	double flops = flops_from(work, work->first_trained), open = 0;
	for (size_t u = work->n_units; u-- > work->first_trained;) {
		const mu_cost_unit *unit = &work->units[u];
		if (open > 0 && open + unit->parameters > work->bucket_elements) {
			send(w, machine, collective, open * work->gradient_bytes, work->overlap);
			open = 0;
		}
		w->now += flops > 0 ? backward * unit->flops / flops : 0;
		open += unit->parameters;
	}
	if (open > 0)
		send(w, machine, collective, open * work->gradient_bytes, work->overlap);
}

/* Gathering a unit's parameters is hidden behind the unit before it, as far as that lasts. */
static void gather_units(const mu_cost_work *work, const mu_cost_machine *machine, double seconds, mu_cost *cost)
{
	double flops = flops_from(work, 0), behind = 0;
	for (size_t u = 0; u < work->n_units; u++) {
		double bytes = work->units[u].parameters * work->parameter_bytes;
		double gather = machine->link(machine->user, MU_COST_ALL_GATHER, bytes);
		cost->communication += gather * work->accumulation;
		cost->bytes += bytes * work->accumulation;
		cost->exposed += fmax(0, gather - (work->overlap ? behind : 0)) * work->accumulation;
		behind = flops > 0 ? seconds * work->units[u].flops / flops : 0;
	}
}

static void communicate(const mu_cost_work *work, const mu_cost_machine *machine, double forward, double backward,
                        mu_cost *cost)
{
	walk w = {0};
	walk_backward(&w, work, machine, backward);
	cost->communication += w.communication;
	cost->bytes += w.bytes;
	cost->exposed += work->overlap ? fmax(0, w.link_free - w.now) : w.communication;
	if (work->sums_bytes > 0) {
		double seconds = machine->link(machine->user, MU_COST_ALL_REDUCE, work->sums_bytes);
		cost->communication += seconds;
		cost->exposed += seconds;
		cost->bytes += work->sums_bytes;
	}
	cost->exposed += machine->wait_share * work->accumulation * (forward + backward);
	if (work->zero_stage == 3) {
		gather_units(work, machine, forward, cost);
		gather_units(work, machine, backward, cost);
	} else if (work->zero_stage > 0) {
		double bytes = trained_parameters(work) * work->parameter_bytes;
		double gather = machine->link(machine->user, MU_COST_ALL_GATHER, bytes);
		cost->communication += gather;
		cost->exposed += gather;
		cost->bytes += bytes;
	}
}

mu_cost mu_cost_step(const mu_cost_work *work, const mu_cost_machine *machine)
{
	double once = machine->seconds_per_batch + work->images * machine->seconds_per_image;
	double all = flops_from(work, 0), behind = all > 0 ? flops_from(work, work->first_trained) / all : 1;
	double forward = once * FORWARD_SHARE, backward = (once - forward) * behind;
	mu_cost cost = {.forward = forward * work->accumulation, .backward = backward * work->accumulation};
	if (machine->ranks > 1)
		communicate(work, machine, forward, backward, &cost);
	double mine = trained_parameters(work) / (work->zero_stage > 0 ? machine->ranks : 1);
	cost.optimizer = machine->seconds_per_update + mine * machine->seconds_per_parameter;
	double busy = cost.forward + cost.backward + cost.exposed + cost.optimizer;
	/* the loader works ahead all the time, so only what it needs beyond a whole step is waited for */
	cost.data = fmax(0, work->images * work->accumulation * machine->data_seconds_per_image - busy);
	cost.step = busy + cost.data;
	return cost;
}

mu_cost_state mu_cost_memory(double parameters, double parameter_bytes, double gradient_bytes, double state_bytes,
                             int zero_stage, int ranks)
{
	return (mu_cost_state){
	        .parameters = parameters * parameter_bytes / (zero_stage >= 3 ? ranks : 1),
	        .gradients = parameters * gradient_bytes / (zero_stage >= 2 ? ranks : 1),
	        .optimizer = parameters * state_bytes / (zero_stage >= 1 ? ranks : 1),
	};
}
