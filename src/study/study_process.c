/* One run of a study: its command line, and the training. SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/fail.h"
#include "study/study_inside.h"

/* The point's own values come last: they win over the configuration's. */
static void build(mu_command *c, const mural_study_settings *s, const mu_point *point)
{
	mu_command_add(c, s->program);
	mu_command_add(c, "train");
	for (int i = 0; i < s->argc; i++)
		mu_command_add(c, s->argv[i]);
	mu_command_add_whole(c, "--ranks", point->ranks);
	mu_command_add_whole(c, "--micro-batch", point->batch);
	mu_command_add_whole(c, "--accumulation", point->accumulation);
	mu_command_add_whole(c, "--batch", (uint64_t)point->ranks * point->batch * point->accumulation);
	mu_command_add(c, "--precision");
	mu_command_add(c, point->precision);
	if (point->optimizer) {
		mu_command_add(c, "--optimizer");
		mu_command_add(c, point->optimizer);
	}
	mu_command_add_real(c, "--fraction", point->fraction);
	if (s->steps > 0) {
		mu_command_add_whole(c, "--max-steps", (uint64_t)s->steps + s->warm_up);
		mu_command_add(c, "--measure-only");
	}
}

mural_status mu_study_train(const mu_study *study, const mu_point *point, uint32_t round, mu_run_facts *facts,
                            mural_error *err)
{
	const mural_study_settings *s = study->settings;
	char folder[1024];
	mu_command *c = calloc(1, sizeof *c);
	if (!c)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a command");
	snprintf(folder, sizeof folder, "%.800s/points/%s.%u", s->folder, point->name, round + 1);
	build(c, s, point);
	mural_status status = mu_training_run(c, folder, s->steps ? s->warm_up : 0, facts, err);
	free(c);
	return status;
}
