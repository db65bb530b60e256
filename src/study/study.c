/* A study from its first run to its files. SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/clock.h"
#include "base/fail.h"
#include "study/study_inside.h"

static const double BETWEEN_FILES =
        10; /* seconds; what a study that is killed can lose of its tables, though not of its runs */

static const double LATE = 0.05; /* what emulation promises */

static bool asked(const mural_study_settings *s)
{
	return s->stop_asked && s->stop_asked();
}

static void say(const mu_study *study, const mu_point *p, uint32_t round, const mu_run_facts *f)
{
	FILE *out = study->settings.progress;
	if (!out)
		return;
	fprintf(out, "round %u/%u  %-32s ", round + 1, study->settings.rounds, p->name);
	if (f->done)
		fprintf(out, "%9.1f images/s  %.4g s per step%s%s\n", f->images_per_second, f->step,
		        f->late > LATE ? "  (slower than described: this machine did not keep up)" : "",
		        f->reused ? "  (measured before)" : "");
	else
		fprintf(out, "failed (exit code %d): %s\n", f->exit_code, f->why);
	fflush(out);
}

static mural_status train_all(mu_study *study, mural_study_summary *summary, mural_error *err)
{
	double written = mu_now();
	for (uint32_t round = 0; round < study->settings.rounds; round++)
		for (size_t p = 0; p < study->n_points; p++) {
			mu_run_facts *facts = mu_study_facts(study, round, p);
			double from = mu_now();
			if (asked(&study->settings))
				return MURAL_STOPPED;
			MU_TRY(mu_study_train(study, &study->points[p], round, facts, err));
			if (!facts->reused)
				study->training += mu_now() - from;
			if (!facts->done && asked(&study->settings)) {
				*facts = (mu_run_facts){0}; /* stopped, not failed: it is made when the study goes on */
				return MURAL_STOPPED;
			}
			summary->reused += facts->reused;
			summary->failed += !facts->done;
			say(study, &study->points[p], round, facts);
			if (mu_now() - written > BETWEEN_FILES) {
				MU_TRY(mu_study_write(study, err));
				written = mu_now();
			}
		}
	return MURAL_OK;
}

static mural_status conclude(const mu_study *study, const mural_study_summary *summary, mural_status trained,
                             mural_error *err)
{
	const char *folder = study->settings.folder;
	if (trained != MURAL_OK && trained != MURAL_STOPPED)
		return trained;
	MU_TRY(mu_study_write(study, err));
	if (trained == MURAL_STOPPED)
		return mu_fail(err, MURAL_STOPPED, folder,
		               "the study was stopped; what it measured is written, and the same command goes on");
	if (summary->failed > 0)
		return mu_fail(err, MURAL_FAILED, folder, "%zu of %zu runs failed; study.csv has their last words",
		               summary->failed, summary->runs);
	return MURAL_OK;
}

mural_status mural_study_run(const mural_study_settings *settings, mural_study_summary *summary, mural_error *err)
{
	mu_study study = {.from = mu_now()};
	*summary = (mural_study_summary){0};
	mural_status status = mu_study_fill(&study, settings, err);
	if (status == MURAL_OK)
		status = mu_study_where_find(&study, err);
	if (status == MURAL_OK)
		status = mu_study_plan(&study, err);
	if (status == MURAL_OK) {
		summary->points = study.n_points;
		summary->runs = study.n_points * study.settings.rounds;
		status = conclude(&study, summary, train_all(&study, summary, err), err);
	}
	mu_study_where_release(&study.where);
	free(study.points);
	free(study.runs);
	summary->seconds = mu_now() - study.from;
	summary->own_seconds = summary->seconds - study.training;
	return status;
}
