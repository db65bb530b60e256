/* A training run from data to result. SPDX-License-Identifier: MIT */
#include "mural/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/comm.h"
#include "engine/run_files.h"
#include "monitor/host_stats.h"
#include "monitor/progress.h"
#include "monitor/timers.h"

/* Everything that lives as long as the run. */
typedef struct run {
	const mural_config *config;
	const mural_run_options *options;
	mural_comm *comm;
	int rank, ranks;
	mural_data *train, *test;
	mural_engine *engine;
	mu_run_files files;
	mu_progress progress;
	mu_host_stats host;
	mu_epoch_row *epochs; /* rank 0's history */
	size_t n_epochs;
	mural_train_result *result;
} run;

/* Sums over the steps of one epoch. */
typedef struct epoch_sums {
	uint64_t images;
	double loss, top1, seconds;
} epoch_sums;

static mural_status open_data(run *r, mural_error *err)
{
	const mural_model_config *m = &r->config->model;
	uint32_t seed = r->config->run.seed;
	MU_TRY(mural_data_open(&r->train, &r->config->data, MURAL_SPLIT_TRAIN, seed, m->channels, m->image_height,
	                       m->image_width, m->classes, err));
	return mural_data_open(&r->test, &r->config->data, MURAL_SPLIT_TEST, seed, m->channels, m->image_height,
	                       m->image_width, m->classes, err);
}

/* Room for the epochs that max_steps leaves. */
static mural_status make_history(run *r, mural_error *err)
{
	uint64_t steps = mural_engine_total_steps(r->engine), per_epoch = mural_engine_steps_per_epoch(r->engine);
	uint64_t n = steps / per_epoch + (steps % per_epoch > 0);
	r->epochs = calloc(n, sizeof *r->epochs);
	if (r->epochs)
		return MURAL_OK;
	return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the history of %llu epochs",
	               (unsigned long long)n);
}

static mural_status begin(run *r, const mural_config_report *report, mural_error *err)
{
	mural_status status = r->rank == 0 ? mu_result_check(r->options->result_path, err) : MURAL_OK;
	if (status == MURAL_OK)
		status = open_data(r, err);
	MU_TRY(mural_comm_agree(r->comm, status, err));
	mural_engine_settings settings = {.config = r->config,
	                                  .report = report,
	                                  .comm = r->comm,
	                                  .training = true,
	                                  .train = r->train,
	                                  .test = r->test};
	MU_TRY(mural_engine_create(&r->engine, &settings, err));
	if (r->config->run.init_weights[0])
		MU_TRY(mural_engine_load_weights(r->engine, r->config->run.init_weights, err));
	MU_TRY(mural_engine_train_begin(r->engine, err));
	if (r->rank == 0)
		status = mu_run_files_create(&r->files, r->config, report, r->options->overwrite, err);
	MU_TRY(mural_comm_agree(r->comm, status, err));
	return make_history(r, err);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Images of another size than the model's are no mistake, but nobody should have to guess what happens to them. */
static void announce_fit(run *r, const mural_data_facts *train)
{
	size_t height = r->config->model.image_height, width = r->config->model.image_width;
	bool resized = r->config->data.resize != MURAL_RESIZE_NONE;
	if (train->height != height || train->width != width)
		mu_progress_line(&r->progress, "%s: images of %zu x %zu pixels are %s to the model's %zu x %zu",
		                 train->name, train->height, train->width,
		                 resized ? "resized" : "cut or padded with zeros", height, width);
}

static void announce(run *r)
{
	const mural_data_facts *train = mural_data_get_facts(r->train);
	mu_progress_settings settings = {
	        .out = r->rank == 0 ? r->options->progress : NULL,
	        .columns = r->config->run.progress ? mu_progress_columns(r->options->progress) : 0,
	        .seconds_per_line = 10,
	        .steps_per_print = r->config->run.steps_per_print,
	        .epochs = r->config->run.epochs,
	        .steps = mural_engine_steps_per_epoch(r->engine),
	        .images = mural_engine_total_steps(r->engine) * r->config->batch.train_batch,
	};
	mu_progress_init(&r->progress, &settings);
	mural_memory_plan planned, used;
	mural_engine_memory(r->engine, &planned, &used);
	mu_progress_line(
	        &r->progress, "%s: %llu parameters, %zu x %zu x %zu images, %d rank%s x %u thread%s, %s operations",
	        r->config->model.preset, (unsigned long long)mural_engine_parameters(r->engine), train->channels,
	        train->height, train->width, r->ranks, plural((uint64_t)r->ranks), mural_engine_threads(r->engine),
	        plural(mural_engine_threads(r->engine)), mural_engine_ops(r->engine));
	mu_progress_line(&r->progress,
	                 "%s: %llu training image%s, batch %llu (%llu x %llu x %d), %llu step%s, %s planned per rank",
	                 train->name, (unsigned long long)train->images, plural(train->images),
	                 (unsigned long long)r->config->batch.train_batch,
	                 (unsigned long long)r->config->batch.micro_batch,
	                 (unsigned long long)r->config->batch.accumulation, r->ranks,
	                 (unsigned long long)mural_engine_total_steps(r->engine),
	                 plural(mural_engine_total_steps(r->engine)), MU_SIZE(planned.total));
	announce_fit(r, train);
}

static mural_status record_step(run *r, const mural_step_facts *step, mural_error *err)
{
	if (r->rank != 0)
		return MURAL_OK;
	const double seconds[MU_PHASE_COUNT] = {
	        [MU_PHASE_DATA] = step->data_seconds,         [MU_PHASE_FORWARD] = step->forward_seconds,
	        [MU_PHASE_BACKWARD] = step->backward_seconds, [MU_PHASE_EXPOSED] = step->exposed_seconds,
	        [MU_PHASE_HIDDEN] = step->hidden_seconds,     [MU_PHASE_OPTIMIZER] = step->optimizer_seconds,
	};
	mu_steps_row row = {
	        .step = step->step,
	        .epoch = step->epoch + 1u,
	        .loss = step->loss,
	        .learning_rate = step->learning_rate,
	        .gradient_norm = step->gradient_norm,
	        .images = step->images,
	        .seconds = seconds,
	};
	for (int phase = 0; phase < MU_PHASE_COUNT; phase++)
		r->files.phase_seconds[phase] += seconds[phase];
	return mu_steps_write(&r->files.steps, &row, err);
}

static void show_step(run *r, const mural_step_facts *step, const epoch_sums *sums)
{
	uint64_t per_epoch = mural_engine_steps_per_epoch(r->engine);
	mu_progress_point point = {
	        .epoch = step->epoch + 1u,
	        .step = (step->step - 1) % per_epoch + 1,
	        .loss = sums->loss / (double)sums->images,
	        .accuracy = sums->top1 / (double)sums->images,
	        .images = r->result->images,
	        .seconds = r->result->seconds,
	};
	mu_progress_step(&r->progress, &point);
}

/* One row per rank, gathered by rank 0. */
static mural_status record_metrics(run *r, uint64_t epoch, double seconds, mural_error *err)
{
	mu_metrics_row mine = {.timestamp = time(NULL), .rank = r->rank, .epoch = epoch, .seconds = seconds};
	mu_host_stats_sample(&r->host, &mine.device);
	mural_status written = MURAL_OK;
	for (int rank = 0; rank < r->ranks; rank++) {
		mu_metrics_row row = mine;
		MU_TRY(mu_comm_broadcast(r->comm, &row, sizeof row, rank, err));
		if (r->rank == 0 && written == MURAL_OK)
			written = mu_metrics_write(&r->files.metrics, &row, err);
	}
	return mural_comm_agree(r->comm, written, err);
}

static mural_status evaluate(run *r, mural_error *err)
{
	mural_evaluation test;
	MU_TRY(mural_engine_evaluate(r->engine, r->test, &test, err));
	r->result->test_loss = test.loss;
	r->result->test_accuracy = test.top1;
	r->result->test_top5 = test.top5;
	r->result->evaluation_seconds += test.seconds;
	return MURAL_OK;
}

static bool evaluates_now(const run *r, const mural_step_facts *step)
{
	uint32_t every = r->config->run.eval_every;
	return step->step == mural_engine_total_steps(r->engine) || (every > 0 && (step->epoch + 1) % every == 0);
}

static mural_status end_epoch(run *r, const mural_step_facts *step, epoch_sums *sums, mural_error *err)
{
	double images = (double)sums->images;
	mu_epoch_row *row = &r->epochs[r->n_epochs++];
	*row = (mu_epoch_row){
	        .epoch = step->epoch + 1u,
	        .train_loss = sums->loss / images,
	        .train_accuracy = sums->top1 / images,
	        .seconds = sums->seconds,
	        .test_loss = NAN,
	        .test_accuracy = NAN,
	};
	r->result->train_loss = row->train_loss;
	r->result->train_accuracy = row->train_accuracy;
	MU_TRY(record_metrics(r, row->epoch, sums->seconds, err));
	if (evaluates_now(r, step)) {
		MU_TRY(evaluate(r, err));
		row->test_loss = r->result->test_loss;
		row->test_accuracy = r->result->test_accuracy;
		mu_progress_line(
		        &r->progress,
		        "epoch %u: train loss %.4f, train accuracy %.4f, test loss %.4f, test accuracy %.4f, %.1f s",
		        row->epoch, row->train_loss, row->train_accuracy, row->test_loss, row->test_accuracy,
		        row->seconds);
	} else {
		mu_progress_line(&r->progress, "epoch %u: train loss %.4f, train accuracy %.4f, %.1f s", row->epoch,
		                 row->train_loss, row->train_accuracy, row->seconds);
	}
	*sums = (epoch_sums){0};
	return MURAL_OK;
}

static mural_status train(run *r, mural_error *err)
{
	epoch_sums sums = {0};
	for (;;) {
		mural_step_facts step;
		MU_TRY(mural_engine_step(r->engine, &step, err));
		if (step.finished)
			return MURAL_OK;
		sums.images += step.images;
		sums.loss += step.loss * (double)step.images;
		sums.top1 += step.top1 * (double)step.images;
		sums.seconds += step.seconds;
		r->result->steps = step.step;
		r->result->images += step.images;
		r->result->seconds += step.seconds;
		show_step(r, &step, &sums);
		mural_status status = record_step(r, &step, err);
		bool ends = step.epoch_ends || step.step == mural_engine_total_steps(r->engine);
		if (!ends) {
			mural_engine_leave(r->engine, status);
			continue;
		}
		MU_TRY(mural_comm_agree(r->comm, status, err));
		MU_TRY(end_epoch(r, &step, &sums, err));
	}
}

static mural_status finish(run *r, const mural_config_report *report, mural_error *err)
{
	mural_train_result *result = r->result;
	mu_progress_finish(&r->progress);
	double peak = (double)mu_process_peak_memory();
	MU_TRY(mu_comm_all_reduce(r->comm, &peak, 1, MU_F64, MU_MAX, err));
	result->peak_memory_bytes = (uint64_t)peak;
	result->images_per_second = (double)result->images / result->seconds;
	char path[1100] = "";
	if (r->rank == 0)
		snprintf(path, sizeof path, "%s/weights.safetensors", r->files.folder);
	MU_TRY(mural_engine_save_weights(r->engine, path, err));
	mural_status status = MURAL_OK;
	if (r->rank == 0) {
		mu_run_summary summary = {.result = result,
		                          .config = r->config,
		                          .report = report,
		                          .engine = r->engine,
		                          .epochs = r->epochs,
		                          .n_epochs = r->n_epochs};
		status = mu_run_files_finish(&r->files, &summary, r->options->result_path, err);
	}
	return mural_comm_agree(r->comm, status, err);
}

static void release(run *r)
{
	mu_progress_finish(&r->progress);
	mural_engine_free(r->engine);
	mural_data_free(r->train);
	mural_data_free(r->test);
	mu_run_files_close(&r->files);
	free(r->epochs);
}

mural_status mural_train_run(const mural_config *config, const mural_config_report *report, mural_comm *comm,
                             const mural_run_options *options, mural_train_result *result, mural_error *err)
{
	const mural_comm_facts *facts = mural_comm_get_facts(comm);
	*result = (mural_train_result){.ranks = facts->size};
	run r = {.config = config,
	         .options = options,
	         .comm = comm,
	         .rank = facts->rank,
	         .ranks = facts->size,
	         .result = result};
	mu_host_stats_init(&r.host);
	mural_status status = begin(&r, report, err);
	if (status == MURAL_OK) {
		snprintf(result->run_dir, sizeof result->run_dir, "%s", r.files.folder);
		announce(&r);
		status = train(&r, err);
	}
	if (status == MURAL_OK)
		status = finish(&r, report, err);
	release(&r);
	return status;
}
