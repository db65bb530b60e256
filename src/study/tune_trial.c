/* One trial: a short training of one configuration. SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "study/training.h"
#include "study/tune_inside.h"

#define OUT_OF_MEMORY_KILL 137 /* the system's way: SIGKILL */

/* Enough epochs for these steps; not fewer than the configuration's, which warm-ups may refer to. */
static uint64_t epochs_for(const mu_tune *t, const mural_tune_point *p, uint64_t steps)
{
	uint64_t per_epoch = mural_data_get_facts(t->train)->images / p->train_batch;
	uint64_t epochs = steps / (per_epoch > 0 ? per_epoch : 1) + 1;
	return epochs > t->config.run.epochs ? epochs : t->config.run.epochs;
}

/* The point's own values come last: they win over the configuration's. Short batches would be measured as if they were whole, so
 * they are dropped. */
static void build(mu_command *c, const mu_tune *t, const mural_tune_point *p, uint32_t steps)
{
	const mural_tune_settings *s = &t->settings;
	uint64_t all = (uint64_t)steps + s->warm_up;
	mu_command_add(c, s->program);
	mu_command_add(c, "train");
	if (s->config_file) {
		mu_command_add(c, "--config");
		mu_command_add(c, s->config_file);
	}
	for (int i = 0; i < s->argc; i++)
		mu_command_add(c, s->argv[i]);
	mu_command_add_whole(c, "--ranks", p->ranks);
	mu_command_add_whole(c, "--threads", p->threads);
	mu_command_add_whole(c, "--batch", p->train_batch);
	mu_command_add_whole(c, "--micro-batch", p->micro_batch);
	mu_command_add_whole(c, "--accumulation", p->accumulation);
	mu_command_add_whole(c, "--epochs", epochs_for(t, p, all));
	mu_command_add_whole(c, "--max-steps", all);
	mu_command_add_whole(c, "--max-hours", 0);
	mu_command_add(c, "--drop-last");
	mu_command_add(c, "--measure-only");
}

/* A trial that failed: of what? */
static mu_tune_end end_of(const mu_run_facts *facts)
{
	if (facts->exit_code == mural_exit_code(MURAL_STOPPED))
		return MU_TUNE_STOPPED;
	bool memory = facts->exit_code == OUT_OF_MEMORY_KILL || strstr(facts->why, "memory") ||
	              strstr(facts->why, "signal 9 ");
	return memory ? MU_TUNE_NO_MEMORY : MU_TUNE_FAILED;
}

mural_status mu_tune_try(void *context, size_t point, uint32_t round, uint32_t steps, mu_tune_measure *measure,
                         mural_error *err)
{
	const mu_tune *t = context;
	const mural_tune_point *p = &t->result->points[point];
	char folder[1024];
	mu_run_facts facts = {0};
	mu_command *c = calloc(1, sizeof *c);
	if (!c)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a command");
	snprintf(folder, sizeof folder, "%.800s/trials/r%u-t%u-b%" PRIu64 "-m%" PRIu64 ".%u", t->settings.folder,
	         p->ranks, p->threads, p->train_batch, p->micro_batch, round);
	build(c, t, p, steps);
	c->stop_asked = t->settings.stop_asked;
	mural_status status = mu_training_run(c, folder, t->settings.warm_up, &facts, err);
	free(c);
	if (status != MURAL_OK)
		return status;
	*measure = (mu_tune_measure){.reused = facts.reused,
	                             .step = facts.step,
	                             .fixed = facts.optimizer + facts.exposed,
	                             .error = facts.step_error / facts.step,
	                             .seconds = facts.seconds};
	if (!facts.done) {
		measure->end = end_of(&facts);
		snprintf(measure->why, sizeof measure->why, "%.199s", facts.why);
		if (t->settings.stop_asked && t->settings.stop_asked())
			measure->end = MU_TUNE_STOPPED;
	}
	return MURAL_OK;
}
