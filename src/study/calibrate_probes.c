/* Which trainings a calibration makes. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "study/calibrate_inside.h"

/* Models that differ in what costs: width, tokens, heads x tokens^2, depth x launches. A step of each takes less than a second
 * on two cores. */
static const struct {
	const char *model, *side;
	uint32_t small, large; /* batches */
} shapes[] = {
        {"vit_ti_16", "32", 4, 64}, {"vit_ti_4", "28", 4, 32}, {"vit_ti_16", "224", 2, 8},
        {"vit_s_16", "224", 1, 4},  {"vit_b_16", "96", 1, 6},
};
#define SHAPES (sizeof shapes / sizeof *shapes)

static void add(mu_calibration *c, mu_aim aim, const char *model, const char *side, uint32_t batch, uint32_t ranks)
{
	if (c->n < MU_PROBES)
		c->probes[c->n++] =
		        (mu_probe){.aim = aim, .model = model, .side = side, .batch = batch, .ranks = ranks};
}

static void plan_ranks(mu_calibration *c, uint32_t ranks)
{
	uint32_t micro = (uint32_t)c->config.batch.micro_batch;
	for (size_t s = 0; s < SHAPES; s++) {
		add(c, MU_AIM_ANY, shapes[s].model, shapes[s].side, shapes[s].small, ranks);
		add(c, MU_AIM_ANY, shapes[s].model, shapes[s].side, shapes[s].large, ranks);
	}
	if (c->has_model) {
		add(c, MU_AIM_MODEL, NULL, NULL, micro > 1 ? micro / 2 : 2, ranks);
		add(c, MU_AIM_MODEL, NULL, NULL, micro, ranks);
	}
	add(c, MU_AIM_LOADER, "mu", "32", 256, ranks);
	if (ranks > 1) {
		add(c, MU_AIM_LINK, "vit_ti_16", "32", 1, ranks);
		add(c, MU_AIM_LINK, "vit_s_16", "32", 1, ranks);
	}
}

static const char *precision_of(const mural_config *config)
{
	switch (config->engine.precision) {
	case MURAL_BF16: return "bf16";
	case MURAL_FP16: return "fp16";
	case MURAL_FP32: break;
	}
	return "fp32";
}

/* Probes of one rank and of several shall compute on the same; "auto" would take a GPU for one and ask about several. */
static const char *ops_of(const mural_config *config)
{
	return strcmp(config->run.ops, "auto") == 0 ? "cpu" : config->run.ops;
}

void mu_probe_arguments(const mu_calibration *c, const mu_probe *p, mu_command *command)
{
	if (p->aim != MU_AIM_MODEL) {
		const char *const made[] = {"--model",
		                            p->model,
		                            "--image-size",
		                            p->side,
		                            "--data",
		                            "synthetic",
		                            "--precision",
		                            precision_of(&c->config),
		                            "--optimizer",
		                            c->config.optimizer.name,
		                            p->aim == MU_AIM_LINK ? "--no-overlap-comm" : "--overlap-comm"};
		for (size_t i = 0; i < sizeof made / sizeof *made; i++)
			mu_command_add(command, made[i]);
		mu_command_add_whole(command, "--synthetic-images", 4096);
		if (c->config.run.threads > 0)
			mu_command_add_whole(command, "--threads", c->config.run.threads);
	} else if (!c->config.data.path[0]) {
		mu_command_add(command, "--data");
		mu_command_add(command, "synthetic");
		mu_command_add_whole(command, "--synthetic-images", 4096);
	}
	mu_command_add(command, "--ops");
	mu_command_add(command, ops_of(&c->config));
	mu_command_add_whole(command, "--micro-batch", p->batch);
	mu_command_add_whole(command, "--accumulation", 1);
	mu_command_add_whole(command, "--batch", (uint64_t)p->batch * p->ranks);
}

/* Operations and elements of the probe's model, by resolving what its training will be told. */
static mural_status measure_model(const mu_calibration *c, mu_probe *p, mural_error *err)
{
	mu_command *command = calloc(1, sizeof *command);
	const mural_calibrate_settings *s = c->settings;
	mu_work work = {0};
	if (!command)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a command");
	if (p->aim == MU_AIM_MODEL)
		for (int i = 0; i < s->argc; i++)
			mu_command_add(command, s->argv[i]);
	mu_probe_arguments(c, p, command);
	const mural_config_sources sources = {.file = p->aim == MU_AIM_MODEL ? s->config_file : NULL,
	                                      .argc = (int)command->n,
	                                      .argv = command->argv,
	                                      .ranks = (int)p->ranks};
	mural_status status = mu_command_end(command, err);
	if (status == MURAL_OK)
		status = mural_config_resolve(&p->config, NULL, &sources, err);
	if (status == MURAL_OK)
		status = mu_work_init(&work, &p->config, (int)p->ranks, err);
	if (status == MURAL_OK) {
		p->units = (double)work.n_units;
		p->parameters = work.parameters;
		p->elements = work.elements;
		p->values = work.values_per_image;
		for (size_t u = 0; u < work.n_units; u++)
			p->flops += 3 * work.units[u].flops;
	}
	mu_work_release(&work);
	free(command);
	return status;
}

/* The given configuration; where there is none, what `mural train` would do by default with some batch. */
static mural_status read_config(mu_calibration *c, mural_error *err)
{
	static const char *const none[] = {"--batch", "16"};
	const mural_calibrate_settings *s = c->settings;
	c->has_model = s->config_file || s->argc > 0;
	const mural_config_sources sources = {.file = s->config_file,
	                                      .argc = c->has_model ? s->argc : 2,
	                                      .argv = c->has_model ? s->argv : none,
	                                      .ranks = 1};
	return mural_config_resolve(&c->config, NULL, &sources, err);
}

mural_status mu_calibration_plan(mu_calibration *c, mural_error *err)
{
	MU_TRY(read_config(c, err));
	c->ranks = c->settings->ranks ? c->settings->ranks : (uint32_t)mural_cores();
	if (strcmp(c->config.run.ops, "cuda") == 0)
		c->ranks = 1;
	plan_ranks(c, 1);
	if (c->ranks > 1)
		plan_ranks(c, c->ranks);
	for (size_t i = 0; i < c->n; i++)
		MU_TRY(measure_model(c, &c->probes[i], err));
	return MURAL_OK;
}
