/* A whole model on one table for tests: spans, arenas, one pass, one made-up micro-batch.
 *
 * Memory is planned with measuring arenas, reserved exactly and filled with NaNs, so that reading what was never written
 * shows in the numbers. Every failure ends the test.
 *
 *     model_run run;
 *     model_run_open(&run, &(model_settings){.config = &config, .ops = &mu_ops_reference, .type = MU_F64, ...});
 *     double loss = model_run_forward(&run);
 *     model_run_backward(&run);
 *     model_run_close(&run);
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_MODEL_RUN_H
#define TESTS_SUPPORT_MODEL_RUN_H

#include "model/vit.h"

typedef struct model_settings {
	const mural_model_config *config;
	const mu_ops *ops;
	mu_dtype type; /* MU_F32 or MU_F64 */
	size_t capacity, count;
	bool training;
	double label_smoothing;
} model_settings;

typedef struct model_run {
	model_settings settings;
	mu_vit vit;
	mu_ops_context *context;
	void **parameters, **gradients; /* per unit */
	mu_arena step, scratch;
	void *step_memory, *scratch_memory;
	mu_vit_pass *pass;
	uint8_t *pixels;
	int32_t *labels, *best_B;
	uint64_t *stream_B;
	mu_micro micro; /* planned: the count, or 1 */
	mu_vit_input input;
	mu_step_sums sums; /* of the last forward */
} model_run;

/* Random images, labels and parameters, the same for the same shapes: norms' weights near 1, the rest near 0, all
 * padding 0. */
void model_run_open(model_run *run, const model_settings *settings);
void model_run_close(model_run *run);

/* All units and the loss. Returns the sum of the images' losses / planned. */
double model_run_forward(model_run *run);
/* All units in reverse; gradients start at 0. */
void model_run_backward(model_run *run);

/* Element i of a span in the run's type. */
double model_run_load(const model_run *run, const void *span, size_t i);
void model_run_store(const model_run *run, void *span, size_t i, double value);

#endif
