/* One run of a study, and its command line: `mural train` with the study's configuration, then the point's own values, which win.
 *
 *     [srun OPTIONS -n N] mural train CONFIGURATION [--ranks N] [--hostfile FILE --include SLOTS] --micro-batch ... --run-dir FOLDER
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "study/study_inside.h"

static void add_pair(mu_command *c, const char *option, const char *value)
{
	if (!value)
		return;
	mu_command_add(c, option);
	mu_command_add(c, value);
}

/* Slurm starts the ranks. A job's end must not wait for a rank that is stuck, and one Ctrl-C is enough. */
static mural_status add_slurm(mu_study_command *command, const mural_study_settings *s, const mu_point *point,
                              mural_error *err)
{
	const char *placement = point->words[MURAL_AXIS_PLACEMENT];
	mu_command *c = &command->words;
	char *rest = NULL;
	command->slurm = strdup(s->slurm);
	if (!command->slurm)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for srun's options");
	mu_command_add(c, "srun");
	mu_command_add(c, "--quit-on-interrupt");
	mu_command_add(c, "--kill-on-bad-exit=1");
	if (placement)
		mu_command_add(c, strcmp(placement, "spread") == 0 ? "--spread-job" : "--use-min-nodes");
	for (char *word = strtok_r(command->slurm, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
		mu_command_add(c, word);
	mu_command_add_whole(c, "--ntasks", point->ranks);
	return MURAL_OK;
}

/* Where the ranks come from. Shown, a configuration starts none. */
static mural_status add_ranks(mu_study_command *command, const mu_study *study, const mu_point *point, bool shown,
                              mural_error *err)
{
	const char *placement = point->words[MURAL_AXIS_PLACEMENT];
	mu_command *c = &command->words;
	if (shown || !study->settings.slurm)
		mu_command_add_whole(c, "--ranks", point->ranks);
	if (study->where.cluster)
		add_pair(c, "--placement", placement);
	if (shown || !study->where.hosts)
		return MURAL_OK;
	MU_TRY(mu_study_slots(&study->where, point, &command->slots, err));
	add_pair(c, "--hostfile", study->settings.hosts.file);
	add_pair(c, "--include", command->slots);
	return MURAL_OK;
}

static void add_point(mu_command *c, const mu_point *point)
{
	mu_command_add_whole(c, "--micro-batch", point->batch);
	mu_command_add_whole(c, "--accumulation", point->accumulation);
	mu_command_add_whole(c, "--batch", (uint64_t)point->ranks * point->batch * point->accumulation);
	for (mural_study_axis a = 0; a < MURAL_STUDY_AXES; a++)
		if (a != MURAL_AXIS_PLACEMENT)
			add_pair(c, mu_study_sets[a], point->words[a]);
	mu_command_add_real(c, "--fraction", point->fraction);
}

mural_status mu_study_command_make(mu_study_command *command, const mu_study *study, const mu_point *point, bool shown,
                                   mural_error *err)
{
	const mural_study_settings *s = &study->settings;
	mu_command *c = &command->words;
	c->stop_asked = s->stop_asked;
	if (s->slurm && !shown)
		MU_TRY(add_slurm(command, s, point, err));
	mu_command_add(c, s->program);
	mu_command_add(c, "train");
	for (int i = 0; i < s->argc; i++)
		mu_command_add(c, s->argv[i]);
	MU_TRY(add_ranks(command, study, point, shown, err));
	add_point(c, point);
	if (s->steps > 0) {
		mu_command_add_whole(c, "--max-steps", (uint64_t)s->steps + s->warm_up);
		mu_command_add(c, "--measure-only");
	}
	if (shown)
		mu_command_add(c, "--show-config");
	return MURAL_OK;
}

void mu_study_command_release(mu_study_command *command)
{
	free(command->slots);
	free(command->slurm);
	*command = (mu_study_command){0};
}

void mu_study_run_folder(const mu_study *study, const mu_point *point, uint32_t round, char *folder, size_t size)
{
	snprintf(folder, size, "%.800s/points/%s.%u", study->settings.folder, point->name, round + 1);
}

mural_status mu_study_train(const mu_study *study, const mu_point *point, uint32_t round, mu_run_facts *facts,
                            mural_error *err)
{
	const mural_study_settings *s = &study->settings;
	char folder[1024];
	mu_study_command command = {0};
	mu_study_run_folder(study, point, round, folder, sizeof folder);
	mural_status status = mu_study_command_make(&command, study, point, false, err);
	if (status == MURAL_OK)
		status = mu_training_run(&command.words, folder, s->steps ? s->warm_up : 0, facts, err);
	mu_study_command_release(&command);
	return status;
}
