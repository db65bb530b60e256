/* A search for a configuration from the user's words to its files. SPDX-License-Identifier: MIT */
#include "mural/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fail.h"
#include "base/files.h"
#include "study/tune_inside.h"

#define OVERRIDES 6

void mural_tune_defaults(mural_tune_settings *settings)
{
	*settings = (mural_tune_settings){.folder = "runs/tune",
	                                  .micro_low = 1,
	                                  .micro_high = UINT64_MAX,
	                                  .tolerance = 0.02,
	                                  .budget = 0.2,
	                                  .trial_seconds = 2,
	                                  .warm_up = 2};
}

static mural_status check_settings(const mural_tune_settings *s, mural_error *err)
{
	if (!s->program || !s->folder || s->n_ranks > MURAL_TUNE_LIST || s->n_threads > MURAL_TUNE_LIST)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "a search needs a program, a folder and lists of at most %d values", MURAL_TUNE_LIST);
	for (size_t i = 0; i < s->n_ranks + s->n_threads; i++)
		if ((i < s->n_ranks ? s->ranks[i] : s->threads[i - s->n_ranks]) == 0)
			return mu_fail(err, MURAL_USAGE, NULL, "there are no 0 ranks or threads to try");
	if (s->micro_low == 0 || s->micro_low > s->micro_high)
		return mu_fail(err, MURAL_USAGE, NULL, "a range of micro-batches begins above 0 and not above its end");
	if (s->batch_low > s->batch_high || (s->batch_low == 0) != (s->batch_high == 0) ||
	    s->batch_high > UINT64_MAX / 2)
		return mu_fail(err, MURAL_USAGE, NULL, "a range of batches begins above 0 and not above its end");
	if (!(s->tolerance > 0) || !(s->budget > 0) || !(s->trial_seconds > 0) || s->warm_up > 1000000)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "tolerance, budget and seconds of a trial are above 0, warm-up steps at most a million");
	return MURAL_OK;
}

/* Every trial reads it again. */
static mural_status check_rereadable(const char *file, mural_error *err)
{
	struct stat facts;
	if (!file || stat(file, &facts) != 0 || S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode))
		return MURAL_OK; /* its reader has better words */
	return mu_fail(
	        err, MURAL_USAGE, "argument --config",
	        "'%.300s' can be read once only, and every trial reads the configuration again: save it in a file",
	        file);
}

/* The user's configuration for some number of ranks; the three sizes of the batch as given, or set to 1. */
static mural_status resolve(mu_tune *t, int ranks, bool override, mural_error *err)
{
	static const char *const ones[OVERRIDES] = {"--batch", "1", "--micro-batch", "1", "--accumulation", "1"};
	const mural_tune_settings *s = &t->settings;
	const char **argv = calloc((size_t)s->argc + OVERRIDES + 1, sizeof *argv);
	if (!argv)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for %d arguments", s->argc);
	memcpy(argv, s->argv ? s->argv : argv, (size_t)s->argc * sizeof *argv);
	memcpy(argv + s->argc, ones, sizeof ones);
	const mural_config_sources sources = {
	        .file = s->config_file, .argc = s->argc + (override ? OVERRIDES : 0), .argv = argv, .ranks = ranks};
	mural_config_report_free(t->report);
	t->report = NULL;
	mural_status status = mural_config_resolve(&t->config, &t->report, &sources, err);
	free(argv);
	return status;
}

/* The batch that the user fixed. Micro-batch and accumulation may fit some of the ranks only: they are to be found anyway. */
static mural_status find_batch(mu_tune *t, mural_error *err)
{
	const mural_tune_settings *s = &t->settings;
	mural_status status = MURAL_USAGE;
	if (s->batch_low > 0)
		return MURAL_OK;
	for (size_t i = 0; status != MURAL_OK && i < (s->n_ranks > 0 ? s->n_ranks : 16); i++)
		status = resolve(t, s->n_ranks > 0 ? (int)s->ranks[i] : 1 << i, false, i == 0 ? err : NULL);
	if (status != MURAL_OK)
		return status;
	*err = (mural_error){0};
	const char *origin = mural_config_origin(t->report, "train_batch_size");
	if (origin && strncmp(origin, "derived", 7) != 0) {
		t->batch = t->config.batch.train_batch;
		return MURAL_OK;
	}
	return mu_fail(err, MURAL_USAGE, s->config_file ? s->config_file : "command line",
	               "expected the batch that stays, train_batch_size or --batch, or a range to choose it from, "
	               "--batch-range LOW:HIGH; got a micro-batch only");
}

static mural_status open_data(mu_tune *t, mural_error *err)
{
	const mural_model_config *m = &t->config.model;
	MU_TRY(mural_data_open(&t->train, &t->config.data, MURAL_SPLIT_TRAIN, t->config.run.seed, m->channels,
	                       m->image_height, m->image_width, m->classes, err));
	return mural_data_open(&t->test, &t->config.data, MURAL_SPLIT_TEST, t->config.run.seed, m->channels,
	                       m->image_height, m->image_width, m->classes, err);
}

static mural_status prepare(mu_tune *t, mural_error *err)
{
	mural_error words = {0};
	MU_TRY(check_settings(&t->settings, err));
	MU_TRY(check_rereadable(t->settings.config_file, err));
	mural_status status = find_batch(t, &words);
	if (status != MURAL_OK) {
		*err = words;
		return status;
	}
	MU_TRY(resolve(t, 1, true, err));
	MU_TRY(mural_config_check_supported(&t->config, t->report, err));
	MU_TRY(open_data(t, err));
	MU_TRY(mu_tune_make_points(t, err));
	MU_TRY(mu_tune_limit_memory(t, err));
	MU_TRY(mu_make_folders(t->settings.folder, err));
	return mu_tune_check_output(t, err);
}

static mural_status search(mu_tune *t, mural_error *err)
{
	const mural_tune_settings *s = &t->settings;
	mu_tune_search *search = calloc(1, sizeof *search);
	if (!search)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a search");
	*search = (mu_tune_search){.result = t->result,
	                           .tolerance = s->tolerance,
	                           .budget = s->budget,
	                           .trial_seconds = s->trial_seconds,
	                           .warm_up = s->warm_up,
	                           .measure = mu_tune_try,
	                           .context = t,
	                           .tell = s->tell,
	                           .tell_context = s->context,
	                           .stop_asked = s->stop_asked};
	mural_status status = mu_tune_search_run(search, err);
	free(search);
	return status;
}

/* Whatever ended the search, what was measured is kept. */
static mural_status conclude(mu_tune *t, mural_status searched, mural_error *err)
{
	if (searched == MURAL_OK)
		MU_TRY(mu_tune_write_config(t, err));
	if (searched != MURAL_OK && searched != MURAL_STOPPED && t->result->n_trials == 0)
		return searched;
	mural_status written = mu_tune_write(t, searched == MURAL_OK || searched == MURAL_STOPPED ? err : NULL);
	if (searched == MURAL_STOPPED && written == MURAL_OK)
		return mu_fail(err, MURAL_STOPPED, t->settings.folder,
		               "the search was stopped; what it measured is written, and the same command goes on");
	return searched == MURAL_OK ? written : searched;
}

mural_status mural_tune_run(const mural_tune_settings *settings, mural_tune_result **result, mural_error *err)
{
	char output[1100];
	mu_tune t = {.settings = *settings, .result = calloc(1, sizeof *t.result)};
	*result = NULL;
	if (!t.result)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a search");
	snprintf(output, sizeof output, "%.1000s/tuned.json", settings->folder ? settings->folder : "");
	if (!t.settings.output)
		t.settings.output = output;
	mural_status status = prepare(&t, err);
	t.result->chosen = t.result->n_points;
	if (status == MURAL_OK)
		status = conclude(&t, search(&t, err), err);
	if (t.result->n_trials > 0)
		*result = t.result;
	else
		mural_tune_result_free(t.result);
	mural_config_report_free(t.report);
	mural_data_free(t.train);
	mural_data_free(t.test);
	return status;
}

void mural_tune_result_free(mural_tune_result *result)
{
	if (!result)
		return;
	free(result->points);
	free(result);
}
