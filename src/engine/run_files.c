/* The run's folder. SPDX-License-Identifier: MIT */
#include "engine/run_files.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/version.h"
#include "engine/checkpoint.h"
#include "engine/run_balance.h"
#include "engine/run_emulate.h"

static const char *const names[] = {"config.json", "steps.csv",  "metrics.csv", "validation.csv",     "energy.csv",
                                    "balance.csv", "stalls.csv", "result.json", "weights.safetensors"};
#define NAMES (sizeof names / sizeof *names)

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
	for (size_t i = 0; i < NAMES; i++) {
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
	path_of(files, "validation.csv", path, sizeof path);
	MU_TRY(mu_csv_cut(path, MU_VALIDATION_STEP, step, err));
	path_of(files, "energy.csv", path, sizeof path);
	MU_TRY(mu_csv_cut(path, MU_ENERGY_EPOCH, epochs, err));
	path_of(files, "balance.csv", path, sizeof path);
	MU_TRY(mu_csv_cut(path, MU_BALANCE_CSV_STEP, step, err));
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
	struct stat facts;
	if (status != MURAL_OK)
		mu_context(err, "the run folder is '%s'; choose another with --run-dir", files->folder);
	if (status == MURAL_OK && stat(files->folder, &facts) == 0) {
		files->device = facts.st_dev;
		files->inode = facts.st_ino;
	}
	return status;
}

mural_status mu_run_files_check(const mu_run_files *files, mural_error *err)
{
	struct stat facts;
	if (stat(files->folder, &facts) == 0 && facts.st_dev == files->device && facts.st_ino == files->inode)
		return MURAL_OK;
	return mu_fail(err, MURAL_FAILED, files->folder,
	               "the run folder was removed or replaced while the run was writing into it");
}

static bool is_run_folder(const char *folder, const char *own)
{
	char path[PATH_MAX + 16];
	snprintf(path, sizeof path, "%s/steps.csv", folder);
	return access(path, F_OK) == 0 || mu_same_place(folder, own);
}

/* Where a file is or would be, without links: folder and name. */
static bool resolve(const char *path, char folder[PATH_MAX], char name[NAME_MAX + 1])
{
	char given[PATH_MAX], whole[PATH_MAX];
	snprintf(given, sizeof given, "%s", realpath(path, whole) ? whole : path);
	char *slash = strrchr(given, '/');
	snprintf(name, NAME_MAX + 1, "%.*s", NAME_MAX, slash ? slash + 1 : given);
	if (slash)
		slash[slash == given] = '\0';
	return realpath(slash ? given : ".", folder) != NULL;
}

/* A run's files are not for results of something else. own: the folder of the run that asks, whose result.json it may be, or "". */
static mural_status refuse_run_file(const char *result_path, const char *own, mural_error *err)
{
	char folder[PATH_MAX], name[NAME_MAX + 1];
	bool taken = false;
	if (!resolve(result_path, folder, name))
		return MURAL_OK;
	for (size_t i = 0; i < NAMES; i++)
		taken |= strcmp(name, names[i]) == 0 && is_run_folder(folder, own);
	if (strcmp(name, "result.json") == 0 && mu_same_place(folder, own))
		taken = false;
	char *below = strstr(folder, "/checkpoints");
	if (below) {
		*below = '\0';
		taken |= is_run_folder(folder, own);
	}
	if (!taken)
		return MURAL_OK;
	return mu_fail(err, MURAL_USAGE, "argument --result",
	               "'%s' is a file of a run's folder, which the result would replace; choose another name",
	               result_path);
}

mural_status mu_run_files_create(mu_run_files *files, const mu_run_files_settings *settings, mural_error *err)
{
	MU_TRY(make_folder(files, settings->folder, err));
	if (settings->result_path)
		MU_TRY(refuse_run_file(settings->result_path, files->folder, err));
	if (settings->goes_on)
		MU_TRY(go_back(files, settings->step, settings->epochs, err));
	else
		MU_TRY(clear_folder(files, settings->overwrite, err));
	if (settings->report)
		MU_TRY(write_config(files, settings->config, settings->report, err));
	char path[1100];
	path_of(files, "steps.csv", path, sizeof path);
	MU_TRY(mu_steps_open(&files->steps, path, err));
	path_of(files, "validation.csv", path, sizeof path);
	if (settings->validates)
		MU_TRY(mu_validation_open(&files->validation, path, err));
	path_of(files, "energy.csv", path, sizeof path);
	if (settings->energy)
		MU_TRY(mu_energy_csv_open(&files->energy, path, err));
	path_of(files, "balance.csv", path, sizeof path);
	if (settings->balance)
		MU_TRY(mu_balance_csv_open(&files->balance, path, err));
	path_of(files, "metrics.csv", path, sizeof path);
	return mu_metrics_open(&files->metrics, path, err);
}

mural_status mu_run_files_sync(const mu_run_files *files, mural_error *err)
{
	MU_TRY(mu_csv_sync(&files->steps, err));
	if (files->validation.opened)
		MU_TRY(mu_csv_sync(&files->validation, err));
	if (files->energy.opened)
		MU_TRY(mu_csv_sync(&files->energy, err));
	if (files->balance.opened)
		MU_TRY(mu_csv_sync(&files->balance, err));
	return mu_csv_sync(&files->metrics, err);
}

void mu_memory_write(mu_json *json, const char *key, const mural_memory_plan *plan)
{
	mu_json_object_begin(json, key);
	mu_json_unsigned(json, "parameters", plan->parameters);
	mu_json_unsigned(json, "gradients", plan->gradients);
	mu_json_unsigned(json, "optimizer", plan->optimizer);
	mu_json_unsigned(json, "activations", plan->activations);
	mu_json_unsigned(json, "scratch", plan->scratch);
	mu_json_unsigned(json, "loader", plan->loader);
	mu_json_unsigned(json, "checkpoint", plan->checkpoint);
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
		mu_json_number(json, "validation_loss", row->validation_loss);
		mu_json_number(json, "validation_accuracy", row->validation_accuracy);
		mu_json_number(json, "test_loss", row->test_loss);
		mu_json_number(json, "test_accuracy", row->test_accuracy);
		mu_json_number(json, "seconds", row->seconds);
		mu_json_object_end(json);
	}
	mu_json_array_end(json);
}

/* The last weights and the best ones by the validation images. */
static void write_best(mu_json *json, const mu_run_summary *summary)
{
	const mural_train_result *result = summary->result;
	mu_json_number(json, "validation_loss", result->validation_loss);
	mu_json_number(json, "validation_accuracy", result->validation_accuracy);
	mu_json_bool(json, "stopped_early", result->stopped_early);
	mu_json_object_begin(json, "best");
	mu_json_string(json, "metric", mu_metric_text(summary->config->validation.metric));
	mu_json_unsigned(json, "step", result->best.step);
	mu_json_unsigned(json, "epoch", result->best.epoch);
	mu_json_string(json, "checkpoint", result->best.checkpoint);
	mu_json_number(json, "validation_loss", result->best.validation_loss);
	mu_json_number(json, "validation_accuracy", result->best.validation_accuracy);
	mu_json_number(json, "test_accuracy", result->best.test_accuracy);
	mu_json_number(json, "test_top5", result->best.test_top5);
	mu_json_number(json, "test_loss", result->best.test_loss);
	if (summary->classes_of_best)
		mu_class_report_write(json, summary->classes_of_best, summary->test);
	mu_json_object_end(json);
}

static void write_energy(mu_json *json, const mu_run_summary *summary)
{
	const mu_joules *joules = &summary->totals->joules;
	char meters[160], missing[600];
	double sum = mu_run_energy_sum(summary->energy, joules);
	mu_run_energy_meters(summary->energy, meters, sizeof meters);
	mu_run_energy_missing(summary->energy, missing, sizeof missing);
	mu_json_object_begin(json, "energy");
	mu_json_number(json, "joules", sum);
	mu_json_number(json, "joules_per_image", sum / (double)summary->totals->images);
	mu_json_number(json, "watts", sum / summary->totals->seconds);
	mu_json_number(json, "processor_joules", joules->processor);
	mu_json_number(json, "gpu_joules", summary->energy->uses_gpus ? joules->gpu : NAN);
	mu_json_string(json, "meters", meters[0] ? meters : NULL);
	if (!missing[0] && isnan(sum))
		snprintf(missing, sizeof missing, "an earlier part of this run was not measured");
	mu_json_string(json, "not_measurable", missing[0] ? missing : NULL);
	mu_json_object_end(json);
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
	if (result->validated)
		write_best(json, summary);
	mu_json_unsigned(json, "steps", result->steps);
	mu_json_unsigned(json, "applied_steps", result->applied_steps);
	mu_json_unsigned(json, "skipped_steps", result->skipped_steps);
	mu_json_number(json, "loss_scale", result->loss_scale);
	mu_json_unsigned(json, "images", result->images);
	mu_json_unsigned(json, "images_per_epoch", mural_engine_images_per_epoch(summary->engine));
	mu_json_number(json, "images_per_second", result->images_per_second);
	mu_json_number(json, "seconds", result->seconds);
	mu_json_number(json, "evaluation_seconds", result->evaluation_seconds);
	mu_json_number(json, "flops_per_image", mural_engine_flops_per_image(summary->engine));
	mu_json_unsigned(json, "peak_memory_bytes", result->peak_memory_bytes);
	mu_memory_write(json, "memory_planned_bytes", &planned);
	mu_memory_write(json, "memory_used_bytes", &used);
	write_energy(json, summary);
	mu_json_object_begin(json, "phase_seconds");
	for (int phase = 0; phase < MU_PHASE_COUNT; phase++)
		mu_json_number(json, mu_phase_text((mu_phase)phase), summary->totals->phase_seconds[phase]);
	mu_json_object_end(json);
	mu_run_load_write(summary->load, json);
	mu_stall_write(summary->stall, json);
	write_epochs(json, summary);
	mu_class_report_write(json, summary->classes, summary->test);
	mu_observe_write_result(summary->observe, json);
	mu_balance_write(json, summary->config, summary->engine);
	mu_emulation_write(json, summary->emulated, summary->engine);
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

mural_status mu_result_check(const char *result_path, const char *own_folder, mural_error *err)
{
	struct stat facts;
	mu_file file = {0};
	if (!result_path)
		return MURAL_OK;
	MU_TRY(refuse_run_file(result_path, own_folder, err));
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
	mu_csv_close(&files->validation);
	mu_csv_close(&files->energy);
	mu_csv_close(&files->balance);
}

mural_status mu_write_evaluation(const char *path, const mural_evaluation *evaluation, const mu_class_report *classes,
                                 const mural_data *data, const char *weights, int ranks, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json json;
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	mu_json_string(&json, "mural_version", MU_VERSION);
	mu_json_string(&json, "data", mural_data_get_facts(data)->path);
	mu_json_string(&json, "weights", weights);
	mu_json_integer(&json, "ranks", ranks);
	mu_json_unsigned(&json, "images", evaluation->images);
	mu_json_number(&json, "loss", evaluation->loss);
	mu_json_number(&json, "accuracy", evaluation->top1);
	mu_json_number(&json, "top5", evaluation->top5);
	mu_json_number(&json, "seconds", evaluation->seconds);
	mu_json_number(&json, "images_per_second", (double)evaluation->images / evaluation->seconds);
	mu_class_report_write(&json, classes, data);
	mu_json_object_end(&json);
	return mu_file_commit(&file, err);
}
