/* The run's folder. SPDX-License-Identifier: MIT */
#include "engine/run_files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/version.h"
#include "engine/checkpoint.h"

static const char *const names[] = {"config.json", "steps.csv", "metrics.csv", "result.json", "weights.safetensors"};

static void path_of(const mu_run_files *files, const char *name, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", files->folder, name);
}

static void name_folder(mu_run_files *files, const char *asked)
{
	if (asked[0]) {
		snprintf(files->folder, sizeof files->folder, "%s", asked);
		return;
	}
	time_t now = time(NULL);
	struct tm local;
	char stamp[32];
	localtime_r(&now, &local);
	strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
	snprintf(files->folder, sizeof files->folder, "runs/%s", stamp);
}

static mural_status refuse_earlier_run(const mu_run_files *files, const char *found, mural_error *err)
{
	return mu_fail(err, MURAL_USAGE, found,
	               "the run folder '%s' already holds a run; choose another --run-dir, pass --resume auto to go on "
	               "with it, or --overwrite to replace it",
	               files->folder);
}

static mural_status remove_file(const char *path, mural_error *err)
{
	if (unlink(path) == 0 || errno == ENOENT)
		return MURAL_OK;
	return mu_fail(err, MURAL_FAILED, path, "an earlier run's file cannot be removed: %s", strerror(errno));
}

/* An earlier run's files are in the way: removed on request, an error otherwise. */
static mural_status clear_folder(const mu_run_files *files, bool overwrite, mural_error *err)
{
	char path[1100];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		path_of(files, names[i], path, sizeof path);
		if (access(path, F_OK) != 0)
			continue;
		if (!overwrite)
			return refuse_earlier_run(files, path, err);
		MU_TRY(remove_file(path, err));
	}
	path_of(files, "checkpoints", path, sizeof path);
	if (!overwrite && mu_checkpoint_any(files->folder))
		return refuse_earlier_run(files, path, err);
	if (overwrite)
		mu_checkpoint_clear(files->folder);
	return MURAL_OK;
}

/* The folder as it was when the checkpoint was written. */
static mural_status go_back(const mu_run_files *files, uint64_t step, uint64_t epochs, mural_error *err)
{
	static const char *const ends[] = {"result.json", "weights.safetensors"};
	char path[1100];
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		path_of(files, ends[i], path, sizeof path);
		MU_TRY(remove_file(path, err));
	}
	path_of(files, "steps.csv", path, sizeof path);
	MU_TRY(mu_csv_cut(path, MU_STEPS_STEP, step, err));
	path_of(files, "metrics.csv", path, sizeof path);
	return mu_csv_cut(path, MU_METRICS_EPOCH, epochs, err);
}

static mural_status write_config(const mu_run_files *files, const mural_config *config,
                                 const mural_config_report *report, mural_error *err)
{
	char path[1100];
	path_of(files, "config.json", path, sizeof path);
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, err));
	mural_config_print(config, report, file.out);
	return mu_file_commit(&file, err);
}

static mural_status make_folder(mu_run_files *files, const char *asked, mural_error *err)
{
	name_folder(files, asked);
	mural_status status = mu_make_folders(files->folder, err);
	if (status != MURAL_OK)
		mu_context(err, "the run folder is '%s'; choose another with --run-dir", files->folder);
	return status;
}

mural_status mu_run_files_create(mu_run_files *files, const mu_run_files_settings *settings, mural_error *err)
{
	MU_TRY(make_folder(files, settings->folder, err));
	if (settings->goes_on)
		MU_TRY(go_back(files, settings->step, settings->epochs, err));
	else
		MU_TRY(clear_folder(files, settings->overwrite, err));
	if (settings->report)
		MU_TRY(write_config(files, settings->config, settings->report, err));
	char path[1100];
	path_of(files, "steps.csv", path, sizeof path);
	MU_TRY(mu_steps_open(&files->steps, path, err));
	path_of(files, "metrics.csv", path, sizeof path);
	return mu_metrics_open(&files->metrics, path, err);
}

mural_status mu_run_files_sync(const mu_run_files *files, mural_error *err)
{
	MU_TRY(mu_csv_sync(&files->steps, err));
	return mu_csv_sync(&files->metrics, err);
}

static void write_memory(mu_json *json, const char *key, const mural_memory_plan *plan)
{
	mu_json_object_begin(json, key);
	mu_json_unsigned(json, "parameters", plan->parameters);
	mu_json_unsigned(json, "gradients", plan->gradients);
	mu_json_unsigned(json, "optimizer", plan->optimizer);
	mu_json_unsigned(json, "activations", plan->activations);
	mu_json_unsigned(json, "scratch", plan->scratch);
	mu_json_unsigned(json, "loader", plan->loader);
	mu_json_unsigned(json, "total", plan->total);
	mu_json_object_end(json);
}

static void write_epochs(mu_json *json, const mu_run_summary *summary)
{
	mu_json_array_begin(json, "epochs");
	for (size_t i = 0; i < summary->totals->n_epochs; i++) {
		const mu_epoch_row *row = &summary->totals->epochs[i];
		mu_json_object_begin(json, NULL);
		mu_json_unsigned(json, "epoch", row->epoch);
		mu_json_number(json, "train_loss", row->train_loss);
		mu_json_number(json, "train_accuracy", row->train_accuracy);
		mu_json_number(json, "test_loss", row->test_loss);
		mu_json_number(json, "test_accuracy", row->test_accuracy);
		mu_json_number(json, "seconds", row->seconds);
		mu_json_object_end(json);
	}
	mu_json_array_end(json);
}

static void write_result(mu_json *json, const mu_run_summary *summary)
{
	const mural_train_result *result = summary->result;
	mural_memory_plan planned, used;
	mural_engine_memory(summary->engine, &planned, &used);
	mu_json_object_begin(json, NULL);
	mu_json_string(json, "mural_version", MU_VERSION);
	mu_json_string(json, "model", summary->config->model.preset);
	mu_json_unsigned(json, "parameters", mural_engine_parameters(summary->engine));
	mu_json_integer(json, "ranks", result->ranks);
	mu_json_unsigned(json, "threads_per_rank", mural_engine_threads(summary->engine));
	mu_json_string(json, "ops", mural_engine_ops(summary->engine));
	mu_json_number(json, "test_accuracy", result->test_accuracy);
	mu_json_number(json, "test_top5", result->test_top5);
	mu_json_number(json, "test_loss", result->test_loss);
	mu_json_number(json, "train_loss", result->train_loss);
	mu_json_number(json, "train_accuracy", result->train_accuracy);
	mu_json_unsigned(json, "steps", result->steps);
	mu_json_unsigned(json, "images", result->images);
	mu_json_number(json, "images_per_second", result->images_per_second);
	mu_json_number(json, "seconds", result->seconds);
	mu_json_number(json, "evaluation_seconds", result->evaluation_seconds);
	mu_json_number(json, "flops_per_image", mural_engine_flops_per_image(summary->engine));
	mu_json_unsigned(json, "peak_memory_bytes", result->peak_memory_bytes);
	write_memory(json, "memory_planned_bytes", &planned);
	write_memory(json, "memory_used_bytes", &used);
	mu_json_object_begin(json, "phase_seconds");
	for (int phase = 0; phase < MU_PHASE_COUNT; phase++)
		mu_json_number(json, mu_phase_text((mu_phase)phase), summary->totals->phase_seconds[phase]);
	mu_json_object_end(json);
	write_epochs(json, summary);
	mu_json_array_begin(json, "warnings");
	for (size_t i = 0; summary->report && i < mural_config_warnings(summary->report); i++)
		mu_json_string(json, NULL, mural_config_warning(summary->report, i));
	mu_json_array_end(json);
	mu_json_object_end(json);
}

static mural_status write_result_to(const char *path, const mu_run_summary *summary, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json json;
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	write_result(&json, summary);
	return mu_file_commit(&file, err);
}

mural_status mu_run_files_finish(mu_run_files *files, const mu_run_summary *summary, const char *result_path,
                                 mural_error *err)
{
	char path[1100];
	path_of(files, "result.json", path, sizeof path);
	MU_TRY(write_result_to(path, summary, err));
	if (result_path && strcmp(result_path, path) != 0)
		MU_TRY(write_result_to(result_path, summary, err));
	return MURAL_OK;
}

mural_status mu_result_check(const char *result_path, mural_error *err)
{
	struct stat facts;
	mu_file file = {0};
	if (!result_path)
		return MURAL_OK;
	/* A pipe or a device would take opening and closing for the result itself. */
	if (stat(result_path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode))
		return MURAL_OK;
	mural_status status = mu_file_begin(&file, result_path, err);
	mu_file_abandon(&file);
	if (status != MURAL_OK)
		mu_context(err, "the result shall go to '%s'; choose another file with --result", result_path);
	return status;
}

void mu_run_files_close(mu_run_files *files)
{
	mu_csv_close(&files->steps);
	mu_csv_close(&files->metrics);
}

mural_status mu_write_evaluation(const char *path, const mural_evaluation *evaluation, const mural_data_facts *data,
                                 int ranks, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json json;
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	mu_json_string(&json, "mural_version", MU_VERSION);
	mu_json_string(&json, "data", data->path);
	mu_json_integer(&json, "ranks", ranks);
	mu_json_unsigned(&json, "images", evaluation->images);
	mu_json_number(&json, "loss", evaluation->loss);
	mu_json_number(&json, "accuracy", evaluation->top1);
	mu_json_number(&json, "top5", evaluation->top5);
	mu_json_number(&json, "seconds", evaluation->seconds);
	mu_json_number(&json, "images_per_second", (double)evaluation->images / evaluation->seconds);
	mu_json_object_end(&json);
	return mu_file_commit(&file, err);
}
