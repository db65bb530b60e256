/* A calibration from its first training to its file. SPDX-License-Identifier: MIT */
#include "mural/calibrate.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "study/calibrate_inside.h"
#include "study/median.h"

enum { WARM_UP = 1, STEPS = 4, MOST_ROUNDS = 32 };

static double load_per_core(void)
{
	double load = 0;
	FILE *file = fopen("/proc/loadavg", "r");
	if (file && fscanf(file, "%lf", &load) != 1)
		load = 0;
	if (file)
		fclose(file);
	return load / mural_cores();
}

static mural_status train(const mu_calibration *c, size_t probe, uint32_t round, mu_run_facts *facts, mural_error *err)
{
	const mural_calibrate_settings *s = c->settings;
	const mu_probe *p = &c->probes[probe];
	char folder[900];
	mu_command *command = calloc(1, sizeof *command);
	if (!command)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a command");
	command->stop_asked = s->stop_asked;
	mu_command_add(command, s->program);
	mu_command_add(command, "train");
	if (p->aim == MU_AIM_MODEL) {
		if (s->config_file) {
			mu_command_add(command, "--config");
			mu_command_add(command, s->config_file);
		}
		for (int i = 0; i < s->argc; i++)
			mu_command_add(command, s->argv[i]);
	}
	mu_probe_arguments(c, p, command);
	mu_command_add_whole(command, "--ranks", p->ranks);
	mu_command_add_whole(command, "--max-steps", WARM_UP + (s->steps ? s->steps : STEPS));
	mu_command_add(command, "--measure-only");
	snprintf(folder, sizeof folder, "%.800s/%zu.%u", s->folder, probe, round);
	mural_status status = mu_training_run(command, folder, WARM_UP, facts, err);
	free(command);
	return status;
}

static void say(const mu_calibration *c, const mu_probe *p, const mu_run_facts *f)
{
	if (!c->settings->progress)
		return;
	fprintf(c->settings->progress, "%-10s %4s  %u rank%s x %3u images  %9.4f s per step\n",
	        p->model ? p->model : c->config.model.preset, p->side ? p->side : "", p->ranks,
	        p->ranks == 1 ? " " : "s", p->batch, f->step);
	fflush(c->settings->progress);
}

/* Medians over the rounds, field by field. */
static void merge(mu_probe *p, const mu_run_facts *rounds, size_t n)
{
	static const size_t fields[] = {offsetof(mu_run_facts, step),     offsetof(mu_run_facts, data),
	                                offsetof(mu_run_facts, forward),  offsetof(mu_run_facts, backward),
	                                offsetof(mu_run_facts, exposed),  offsetof(mu_run_facts, hidden),
	                                offsetof(mu_run_facts, optimizer)};
	p->facts = rounds[0];
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		double values[MOST_ROUNDS];
		for (size_t r = 0; r < n; r++)
			memcpy(&values[r], (const char *)&rounds[r] + fields[i], sizeof *values);
		double median = mu_median(values, n);
		memcpy((char *)&p->facts + fields[i], &median, sizeof median);
	}
}

static mural_status check(const mu_calibration *c, const mu_probe *p, const mu_run_facts *facts, mural_error *err)
{
	if (c->settings->stop_asked && c->settings->stop_asked())
		return mu_fail(err, MURAL_STOPPED, NULL, "the calibration was stopped; nothing was written");
	if (!facts->done)
		return mu_fail(err, MURAL_FAILED, NULL, "a training of %s with %u rank%s failed (exit code %d): %s",
		               p->model ? p->model : c->config.model.preset, p->ranks, p->ranks == 1 ? "" : "s",
		               facts->exit_code, facts->why);
	return MURAL_OK;
}

/* In rounds over all, so that a machine that slows down does so for all. */
static mural_status measure(mu_calibration *c, mural_error *err)
{
	uint32_t rounds = c->settings->rounds ? c->settings->rounds : 1;
	if (rounds > MOST_ROUNDS)
		return mu_fail(err, MURAL_USAGE, NULL, "a calibration has at most %d rounds, not %u", MOST_ROUNDS,
		               rounds);
	mu_run_facts *facts = calloc((size_t)rounds * c->n, sizeof *facts);
	mural_status status = MURAL_OK;
	if (!facts)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for %zu trainings", c->n * rounds);
	for (uint32_t r = 0; r < rounds; r++)
		for (size_t i = 0; i < c->n; i++) {
			mu_run_facts *one = &facts[i * rounds + r];
			MU_TRY_OUT(train(c, i, r, one, err));
			MU_TRY_OUT(check(c, &c->probes[i], one, err));
			say(c, &c->probes[i], one);
		}
	for (size_t i = 0; i < c->n; i++)
		merge(&c->probes[i], &facts[i * rounds], rounds);
out:
	free(facts);
	return status;
}

mural_status mural_calibrate(const mural_calibrate_settings *settings, mural_calibration *found, mural_error *err)
{
	mu_calibration *c = calloc(1, sizeof *c);
	mural_cluster *cluster = NULL;
	double from = mu_now();
	*found = (mural_calibration){.load_per_core = load_per_core()};
	if (!c)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a calibration");
	c->settings = settings;
	mural_status status;
	MU_TRY_OUT(mu_calibration_plan(c, err));
	MU_TRY_OUT(measure(c, err));
	MU_TRY_OUT(mural_cluster_here(&cluster, err));
	MU_TRY_OUT(mu_calibration_fit(c, cluster, found, err));
	found->trainings = c->n * (settings->rounds ? settings->rounds : 1);
	found->seconds = mu_now() - from;
	MU_TRY_OUT(mu_calibration_write(c, cluster, found, err));
out:
	mural_cluster_free(cluster);
	free(c);
	return status;
}
