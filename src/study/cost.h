/* The cost of one optimizer step on many ranks, from what is known beforehand: arithmetic only, nothing runs.
 *
 *     step = data not hidden + accumulation x (forward + backward) of the slowest rank + communication not hidden + optimizer
 *
 * Backward visits units from the last to the first; a bucket of gradients may travel when the lowest of its units is ready, and one
 * bucket travels at a time. So with overlap the end of communication is found by walking through the buckets:
 *
 *     end_b = max(ready_b, end_(b-1)) + all_reduce(bytes_b)          exposed = max(0, end_last - end of backward)
 *
 * and without overlap everything is exposed. Only the last micro-batch of an accumulation communicates. After it the ranks add up
 * a few sums (images, loss, flags), which nothing hides; and they wait for each other, since none is always equally fast. Units
 * before the first trained one have no backward and no gradients.
 *
 * Sharding (Rajbhandari et al. 2020, arXiv:1910.02054): stage 1 and 2 reduce-scatter gradients and all-gather parameters after
 * the update; stage 3 also gathers each unit's parameters for forward and for backward.
 * SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_COST_H
#define MU_STUDY_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mu_cost_collective { MU_COST_ALL_REDUCE, MU_COST_REDUCE_SCATTER, MU_COST_ALL_GATHER } mu_cost_collective;

/* Seconds of one collective over all ranks. bytes: of the whole buffer. */
typedef double mu_cost_link(const void *user, mu_cost_collective collective, double bytes);

typedef struct mu_cost_unit {
	double flops; /* forward, of one image */
	double parameters;
} mu_cost_unit;

/* What is to be done. */
typedef struct mu_cost_work {
	const mu_cost_unit *units; /* [n_units], in forward order; borrowed */
	size_t n_units, first_trained;
	double images; /* of a micro-batch on the slowest rank */
	double accumulation; /* micro-batches per step, >= 1 */
	double parameter_bytes, gradient_bytes; /* of one element, as it travels */
	double bucket_elements; /* most elements per bucket, > 0 */
	double sums_bytes; /* of the step's sums; 0: none are added up */
	bool overlap;
	int zero_stage; /* 0 .. 3 */
} mu_cost_work;

/* What it is done with. Rates are the slowest rank's. */
typedef struct mu_cost_machine {
	double seconds_per_image, seconds_per_batch; /* forward and backward; per micro-batch whatever its size */
	double seconds_per_parameter,
	        seconds_per_update; /* of the optimizer: per parameter trained; whatever the model */
	double wait_share; /* of forward and backward, spent waiting for others whatever the links do; with several ranks */
	double data_seconds_per_image; /* of one rank's loader, all its threads together */
	int ranks;
	mu_cost_link *link; /* not called for one rank */
	const void *user;
} mu_cost_machine;

/* Seconds of one step. */
typedef struct mu_cost {
	double data; /* waiting for the loader */
	double forward, backward; /* all micro-batches */
	double communication; /* all of it */
	double exposed; /* the part that nothing hides */
	double optimizer;
	double step; /* data + forward + backward + exposed + optimizer */
	double bytes; /* that a rank hands to collectives */
} mu_cost;

mu_cost mu_cost_step(const mu_cost_work *work, const mu_cost_machine *machine);

/* Bytes of one rank's state under a ZeRO stage. */
typedef struct mu_cost_state {
	double parameters, gradients, optimizer;
} mu_cost_state;

/* state_bytes: optimizer state per parameter, master copy included: 8 for AdamW in fp32, 12 with narrow parameters. */
mu_cost_state mu_cost_memory(double parameters, double parameter_bytes, double gradient_bytes, double state_bytes,
                             int zero_stage, int ranks);

#endif
