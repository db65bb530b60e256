/* Are we PyTorch? Logits, gradients and the losses of 20 AdamW steps against torchvision's and timm's models, with the
 * same weights and batch, in fp32, for every table on the host. make_vit.py wrote the files.
 * timeout: 240
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/safetensors.h"
#include "support/model_run.h"

#define STEPS 20
#define LEARNING_RATE 1e-4
#define WEIGHT_DECAY 0.01
#define BATCH 4

/* Agreement of fp32 with fp32: rounding 6e-8 grown by sums of up to 200 terms through 3 blocks. */
#define LOGIT_TOLERANCE 1e-5
#define GRADIENT_TOLERANCE 1e-4 /* |a - b| / max(|b|, floor |all|): a key bias's true gradient is 0 */
#define GRADIENT_FLOOR 1e-6
#define LOSS_TOLERANCE 1e-4

typedef struct golden {
	mu_safetensors *file;
	model_run run;
} golden;

static void must(mural_status status, const mural_error *err)
{
	if (status != MURAL_OK)
		fail_msg("%s %s", err->message, err->where);
}

static const mu_safetensor *entry(const golden *g, const char *prefix, const char *name)
{
	char full[128];
	snprintf(full, sizeof full, "%s%s", prefix, name);
	const mu_safetensor *found = mu_safetensors_find(g->file, full);
	if (!found)
		fail_msg("the golden file has no '%s'", full);
	return found;
}

/* Reads exactly `bytes`, so a file of another shape fails here. */
static void read_entry(const golden *g, const char *prefix, const char *name, void *to, size_t bytes)
{
	mural_error err = {0};
	const mu_safetensor *found = entry(g, prefix, name);
	assert_int_equal(found->bytes, bytes);
	must(mu_safetensors_read(g->file, found, to, &err), &err);
}

static void golden_open(golden *g, const char *name, const mural_model_config *config, const mu_ops *ops,
                        double smoothing)
{
	mural_error err = {0};
	char path[512];
	snprintf(path, sizeof path, "%s/golden/%s", MU_TEST_SOURCE_DIR, name);
	must(mu_safetensors_open(&g->file, path, &err), &err);
	model_run_open(&g->run, &(model_settings){.config = config,
	                                          .ops = ops,
	                                          .type = MU_F32,
	                                          .capacity = BATCH,
	                                          .count = BATCH,
	                                          .training = true,
	                                          .label_smoothing = smoothing});
	size_t image = config->channels * config->image_height * config->image_width;
	read_entry(g, "", "pixels", g->run.pixels, BATCH * image);
	read_entry(g, "", "labels", g->run.labels, BATCH * sizeof(int32_t));
	size_t n_tensors = 0;
	for (size_t u = 0; u < g->run.vit.n_units; u++)
		for (size_t i = 0; i < g->run.vit.units[u].n_tensors; i++, n_tensors++) {
			const mu_tensor *tensor = &g->run.vit.units[u].tensors[i];
			read_entry(g, "weight.", tensor->name, (float *)g->run.parameters[u] + tensor->offset,
			           tensor->elements * sizeof(float));
		}
	assert_int_equal(mu_safetensors_count(g->file), 2 * n_tensors + 4); /* no weight of theirs is unknown to us */
}

static void golden_close(golden *g)
{
	model_run_close(&g->run);
	mu_safetensors_free(g->file);
}

static void forward_units(golden *g)
{
	mural_error err = {0};
	for (size_t u = 0; u < g->run.vit.n_units; u++)
		must(mu_vit_forward_unit(g->run.pass, u, g->run.parameters[u], &g->run.input, &err), &err);
}

static void check_logits(golden *g)
{
	size_t n = BATCH * g->run.vit.config.classes;
	float *expected = malloc(n * sizeof *expected), largest = 0;
	assert_non_null(expected);
	read_entry(g, "", "logits", expected, n * sizeof *expected);
	forward_units(g);
	const float *logits = mu_vit_logits(g->run.pass);
	for (size_t i = 0; i < n; i++) {
		largest = fmaxf(largest, fabsf(expected[i]));
		if (!(fabsf(logits[i] - expected[i]) <= LOGIT_TOLERANCE))
			fail_msg("logit %zu is %.8g, expected %.8g", i, logits[i], expected[i]);
	}
	assert_true(largest > 0.1f);
	free(expected);
}

static double norm(const float *x, size_t n)
{
	double squares = 0;
	for (size_t i = 0; i < n; i++)
		squares += (double)x[i] * x[i];
	return sqrt(squares);
}

static double difference_norm(const float *a, const float *b, size_t n)
{
	double squares = 0;
	for (size_t i = 0; i < n; i++)
		squares += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
	return sqrt(squares);
}

/* Walks all gradients; with all_norm 0 only their norm is found and returned. */
static double walk_gradients(golden *g, double all_norm)
{
	double squares = 0;
	for (size_t u = 0; u < g->run.vit.n_units; u++)
		for (size_t i = 0; i < g->run.vit.units[u].n_tensors; i++) {
			const mu_tensor *tensor = &g->run.vit.units[u].tensors[i];
			const float *gradient = (const float *)g->run.gradients[u] + tensor->offset;
			float *expected = malloc(tensor->elements * sizeof *expected);
			assert_non_null(expected);
			read_entry(g, "gradient.", tensor->name, expected, tensor->elements * sizeof *expected);
			double size = norm(expected, tensor->elements);
			double error = difference_norm(gradient, expected, tensor->elements);
			squares += size * size;
			free(expected);
			if (all_norm > 0 && !(error / fmax(size, GRADIENT_FLOOR * all_norm) < GRADIENT_TOLERANCE))
				fail_msg("gradient of %s is off by %g, its norm is %g", tensor->name, error, size);
		}
	return sqrt(squares);
}

static void check_gradients(golden *g)
{
	model_run_forward(&g->run);
	model_run_backward(&g->run);
	double all_norm = walk_gradients(g, 0);
	assert_true(all_norm > 0.1);
	walk_gradients(g, all_norm);
}

typedef struct moments {
	float *m, *v;
} moments;

static void adamw_step(golden *g, moments *state, int step)
{
	mural_error err = {0};
	for (size_t u = 0; u < g->run.vit.n_units; u++) {
		const mu_decision at = {.lr = LEARNING_RATE,
		                        .beta1 = 0.9,
		                        .beta2 = 0.999,
		                        .bias1 = 1 - pow(0.9, step),
		                        .bias2 = 1 - pow(0.999, step),
		                        .gradient_scale = 1};
		mu_adamw op = {.type = MU_F32,
		               .n = g->run.vit.units[u].elements,
		               .at = &at,
		               .lr_scale = 1,
		               .eps = 1e-8,
		               .decay = WEIGHT_DECAY,
		               .decoupled = true,
		               .parameter = g->run.parameters[u],
		               .gradient = g->run.gradients[u],
		               .m = state[u].m,
		               .v = state[u].v};
		must(g->run.settings.ops->adamw(g->run.context, &op, &err), &err);
	}
}

/* One block for m and v, from the arena's alignment. */
static moments moments_of(size_t elements)
{
	float *block = aligned_alloc(MU_ARENA_ALIGN, 2 * elements * sizeof *block);
	assert_non_null(block);
	memset(block, 0, 2 * elements * sizeof *block);
	return (moments){block, block + elements};
}

static void check_losses(golden *g)
{
	float expected[STEPS];
	moments state[8];
	read_entry(g, "", "losses", expected, sizeof expected);
	assert_true(g->run.vit.n_units <= 8);
	for (size_t u = 0; u < g->run.vit.n_units; u++)
		state[u] = moments_of(g->run.vit.units[u].elements);
	for (int step = 0; step < STEPS; step++) {
		double loss = model_run_forward(&g->run);
		if (!(fabs(loss - expected[step]) <= LOSS_TOLERANCE))
			fail_msg("loss of step %d is %.8g, expected %.8g", step, loss, expected[step]);
		model_run_backward(&g->run);
		adamw_step(g, state, step + 1);
	}
	assert_true(expected[0] - expected[STEPS - 1] > 0.1f);
	for (size_t u = 0; u < g->run.vit.n_units; u++)
		free(state[u].m);
}

static void check_model(const char *name, const mural_model_config *config, double smoothing)
{
	for (size_t i = 0; mu_ops_all[i]; i++) {
		golden g = {0};
		golden_open(&g, name, config, mu_ops_all[i], smoothing);
		print_message("  %s: %s\n", name, mu_ops_all[i]->name);
		check_logits(&g);
		check_gradients(&g);
		check_losses(&g);
		golden_close(&g);
	}
}

static void torchvision_token(void **state)
{
	(void)state;
	mural_model_config c;
	mural_model_defaults(&c);
	c.image_height = c.image_width = 32;
	c.patch = 8;
	c.depth = 2;
	c.heads = 4;
	c.width = 32;
	c.mlp_width = 48;
	c.classes = 10;
	check_model("vit_torchvision.safetensors", &c, 0);
}

static void timm_mean(void **state)
{
	(void)state;
	mural_model_config c;
	mural_model_defaults(&c);
	c.image_height = 8;
	c.image_width = 12;
	c.channels = 1;
	c.patch = 4;
	c.depth = 3;
	c.heads = 2;
	c.width = 16;
	c.mlp_width = 32;
	c.classes = 7;
	c.pool = MURAL_POOL_MEAN;
	c.class_token = false;
	c.gelu = MURAL_GELU_TANH;
	check_model("vit_timm_mean.safetensors", &c, 0.1);
}

static void timm_mean_with_class_token(void **state)
{
	(void)state;
	mural_model_config c;
	mural_model_defaults(&c);
	c.image_height = 12;
	c.image_width = 8;
	c.patch = 4;
	c.depth = 2;
	c.heads = 3;
	c.width = 24;
	c.mlp_width = 36;
	c.classes = 5;
	c.pool = MURAL_POOL_MEAN;
	check_model("vit_timm_mean_class.safetensors", &c, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(torchvision_token),
	        cmocka_unit_test(timm_mean),
	        cmocka_unit_test(timm_mean_with_class_token),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
