/* A training run from data to result. SPDX-License-Identifier: MIT */
#include "mural/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "comm/comm.h"
#include "engine/run_balance.h"

static mural_status open_data(mu_run *r, mural_error *err)
{
	const mural_model_config *m = &r->config->model;
	uint32_t seed = r->config->run.seed;
	MU_TRY(mural_data_open(&r->train, &r->config->data, MURAL_SPLIT_TRAIN, seed, m->channels, m->image_height,
	                       m->image_width, m->classes, err));
	if (r->config->run.measure_only)
		return MURAL_OK;
	MU_TRY(mural_data_open_validation(&r->validation, r->train, &r->config->data, seed, m->channels,
	                                  m->image_height, m->image_width, m->classes, err));
	return mural_data_open(&r->test, &r->config->data, MURAL_SPLIT_TEST, seed, m->channels, m->image_height,
	                       m->image_width, m->classes, err);
}

/* Room for the epochs that are to come, behind those that a checkpoint tells of. */
static mural_status make_history(mu_run *r, mural_error *err)
{
	uint64_t steps = mural_engine_total_steps(r->engine), per_epoch = mural_engine_steps_per_epoch(r->engine);
	uint64_t n = r->totals.n_epochs + steps / per_epoch + 1;
	mu_epoch_row *longer = realloc(r->totals.epochs, n * sizeof *longer);
	mural_status status = longer ? MURAL_OK
	                             : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL,
	                                       "no memory for the history of %llu epochs", (unsigned long long)n);
	if (longer)
		r->totals.epochs = longer;
	return mu_comm_agree(r->comm, status, err);
}

/* The engine's first state: a checkpoint's, given weights, or random. */
static mural_status load(mu_run *r, mural_error *err)
{
	if (r->set[0])
		return mu_checkpoint_load(r->engine, r->set, &r->totals, err);
	if (r->config->run.init_weights[0])
		return mural_engine_init_weights(r->engine, r->config->run.init_weights,
		                                 r->config->run.ignore_unmatched, r->weights_notes, err);
	return MURAL_OK;
}

static mural_status begin(mu_run *r, mural_error *err)
{
	mural_status status =
	        r->rank == 0 ? mu_result_check(r->options->result_path, r->config->run.run_dir, err) : MURAL_OK;
	if (status == MURAL_OK)
		status = open_data(r, err);
	MU_TRY(mu_comm_agree(r->comm, status, err));
	MU_TRY(mu_run_choose_start(r, err));
	MU_TRY(mu_run_emulate(r, err));
	const mu_observe_settings watched = {.config = r->config, .comm = r->comm, .progress = &r->progress};
	MU_TRY(mu_observe_init(&r->observe, &watched, &r->comm, err));
	mural_engine_settings settings = {.config = r->config,
	                                  .report = r->report,
	                                  .comm = r->comm,
	                                  .training = true,
	                                  .train = r->train,
	                                  .test = r->test,
	                                  .validation = r->validation,
	                                  .device = r->emulated ? &r->device : NULL};
	MU_TRY(mural_engine_create(&r->engine, &settings, err));
	MU_TRY(load(r, err));
	MU_TRY(mural_engine_train_begin(r->engine, err));
	const char *card = r->engine->bus[0] ? r->engine->bus : NULL;
	MU_TRY(mu_run_energy_begin(&r->energy, r->comm, card, err));
	MU_TRY(mu_run_open_files(r, err));
	return make_history(r, err);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Images of another size than the model's are no mistake, but nobody should have to guess what happens to them. */
static void announce_fit(mu_run *r, const mural_data_facts *train)
{
	size_t height = r->config->model.image_height, width = r->config->model.image_width;
	bool resized = r->config->data.resize != MURAL_RESIZE_NONE;
	if (train->height != height || train->width != width)
		mu_progress_line(&r->progress, "%s: images of %zu x %zu pixels are %s to the model's %zu x %zu%s",
		                 train->name, train->height, train->width,
		                 resized ? "resized" : "cut or padded with zeros", height, width,
		                 r->config->data.resize_on == MURAL_RESIZE_ON_DEVICE ? " on the device" : "");
}

/* What DeepSpeed's users ask first: is this Adam AdamW, and are gradients clipped although nobody said so? */
static void announce_optimizer(mu_run *r)
{
	const mural_optimizer_config *o = &r->config->optimizer;
	const char *from = r->report ? mural_config_origin(r->report, "gradient_clipping") : "";
	bool coupled = o->kind == MURAL_OPTIMIZER_ADAM || o->kind == MURAL_OPTIMIZER_SGD;
	char clipping[64] = "gradients are not clipped";
	if (o->clipping > 0)
		snprintf(clipping, sizeof clipping, "gradients clipped to norm %g%s", o->clipping,
		         strcmp(from, "default") == 0 ? " (default)" : "");
	mu_progress_line(&r->progress, "%s: weight decay %g %s the gradient, %s", o->name, o->weight_decay,
	                 coupled ? "in" : "apart from", clipping);
}

/* total_num_steps is a number in a file; how long the run is depends on the data. */
static void announce_schedule(mu_run *r)
{
	const mural_schedule_config *s = &r->config->schedule;
	const unsigned long long run = mural_engine_total_steps(r->engine), steps = s->total_steps;
	const bool decays = s->kind == MURAL_SCHEDULE_WARMUP_DECAY || s->kind == MURAL_SCHEDULE_WARMUP_COSINE;
	if (decays && steps > 0 && steps != run)
		mu_progress_line(&r->progress, "the schedule has %llu steps and the run %llu: %s", steps, run,
		                 steps < run ? "the last ones train at its lowest rate"
		                             : "it ends before the decay does");
}

/* Weights that do not begin the run as they are. */
static void announce_weights(mu_run *r)
{
	for (const char *line = r->weights_notes; *line;) {
		size_t n = strcspn(line, "\n");
		mu_progress_line(&r->progress, "%s: %.*s", r->config->run.init_weights, (int)n, line);
		line += n + (line[n] == '\n');
	}
	size_t classes = mural_data_get_facts(r->train)->classes, head = r->config->model.classes;
	if (r->config->run.init_weights[0] && !r->set[0] && classes < head)
		mu_progress_line(
		        &r->progress,
		        "the head stays one for %zu classes, and the data has %zu: --classes %zu makes a new one", head,
		        classes, classes);
}

/* What was asked for and is not done. */
static void announce_copy(const mu_run *r)
{
	if (r->options->warnings && r->engine->wants_copy && !r->engine->copies)
		fprintf(r->options->warnings,
		        "mural: warning: no memory is left for a copy of weights and optimizer state: the training "
		        "will stand still while a checkpoint is written\n");
}

/* "8 x 1 x 3", or who takes how many of the batch: "shares 12, 8, 4". */
static const char *describe_batch(const mu_run *r, char *text, size_t bytes)
{
	const mural_batch_config *batch = &r->config->batch;
	const mu_sharing *sharing = &r->engine->sharing;
	if (sharing->kind == MU_SHARES_EQUAL) {
		snprintf(text, bytes, "%llu x %llu x %d", (unsigned long long)batch->micro_batch,
		         (unsigned long long)batch->accumulation, r->ranks);
		return text;
	}
	size_t used = (size_t)snprintf(text, bytes, "shares");
	for (int rank = 0; rank < r->ranks && used + 16 < bytes; rank++)
		used += (size_t)snprintf(text + used, bytes - used, "%s %d", rank ? "," : "", sharing->share_R[rank]);
	return text;
}

static void announce(mu_run *r)
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
	char batch[160];
	mural_engine_memory(r->engine, &planned, &used);
	mu_progress_line(&r->progress,
	                 "%s: %llu parameters, %zu x %zu x %zu images, %d rank%s x %u thread%s, %s operations in %s",
	                 r->config->model.preset, (unsigned long long)mural_engine_parameters(r->engine),
	                 train->channels, train->height, train->width, r->ranks, plural((uint64_t)r->ranks),
	                 mural_engine_threads(r->engine), plural(mural_engine_threads(r->engine)),
	                 mural_engine_ops(r->engine), mu_dtype_text(mu_engine_type(r->config)));
	mu_progress_line(&r->progress, "%s: %llu training image%s, batch %llu (%s), %llu step%s, %s planned per rank",
	                 train->name, (unsigned long long)train->images, plural(train->images),
	                 (unsigned long long)r->config->batch.train_batch, describe_batch(r, batch, sizeof batch),
	                 (unsigned long long)mural_engine_total_steps(r->engine),
	                 plural(mural_engine_total_steps(r->engine)), MU_SIZE(planned.total));
	announce_fit(r, train);
	announce_copy(r);
	if (r->validation)
		mu_progress_line(&r->progress, "%s: %llu validation image%s choose the best weights by %s",
		                 mural_data_get_facts(r->validation)->name,
		                 (unsigned long long)mural_data_get_facts(r->validation)->images,
		                 plural(mural_data_get_facts(r->validation)->images),
		                 mu_metric_text(r->config->validation.metric));
	announce_optimizer(r);
	announce_schedule(r);
	announce_weights(r);
	if (r->set[0])
		mu_progress_line(&r->progress, "going on after step %llu, from %s",
		                 (unsigned long long)mural_engine_steps_done(r->engine), r->set);
}

static void fill_best(const mu_run *r, mural_train_result *result)
{
	const mu_validation *validation = &r->totals.validation;
	uint64_t step = validation->best.step;
	const mural_evaluation *test = r->tested_best.all.images ? &r->tested_best.all : &r->tested.all;
	result->validated = true;
	result->stopped_early = mu_run_waited_enough(r) && result->steps < mural_engine_total_steps(r->engine);
	result->validation_loss = validation->last.loss;
	result->validation_accuracy = validation->last.top1;
	if (step == 0)
		return;
	result->best = (mural_best_weights){
	        .step = step,
	        .epoch = (step - 1) / mural_engine_steps_per_epoch(r->engine) + 1,
	        .validation_loss = validation->best.loss,
	        .validation_accuracy = validation->best.top1,
	        .test_loss = test->loss,
	        .test_accuracy = test->top1,
	        .test_top5 = test->top5,
	};
	mu_checkpoint_path(result->best.checkpoint, r->folder, step, NULL);
}

static mural_status observe(mu_run *r, mural_error *err)
{
	const mu_observe_start start = {.engine = r->engine,
	                                .folder = r->folder,
	                                .goes_on = mural_engine_steps_done(r->engine) > 0,
	                                .images = r->totals.images};
	return mu_observe_begin(&r->observe, &start, err);
}

/* What the caller gets, on every rank; also of a run that was stopped. */
static void fill_result(const mu_run *r, mural_train_result *result)
{
	const mu_run_totals *totals = &r->totals;
	const mu_carried *carried = &r->engine->ledger.seen->carried;
	*result = (mural_train_result){
	        .ranks = r->ranks,
	        .steps = mural_engine_steps_done(r->engine),
	        .images = totals->images,
	        .applied_steps = (uint64_t)carried->applied,
	        .skipped_steps = (uint64_t)carried->skipped,
	        .loss_scale = carried->loss_scale,
	        .train_loss = totals->train_loss,
	        .train_accuracy = totals->train_accuracy,
	        .test_loss = totals->test_loss,
	        .test_accuracy = totals->test_accuracy,
	        .test_top5 = totals->test_top5,
	        .seconds = totals->seconds,
	        .evaluation_seconds = totals->evaluation_seconds,
	        .images_per_second = (double)totals->images / totals->seconds,
	        .joules = mu_run_energy_sum(&r->energy, &totals->joules),
	};
	snprintf(result->run_dir, sizeof result->run_dir, "%.1023s", r->folder);
	if (r->validation)
		fill_best(r, result);
	if (r->tested.classes.classes)
		result->n_worst = mu_class_report_worst(&r->tested.classes, r->test, result->worst);
}

/* "worst classes: Shirt 0.642, Coat 0.810, Pullover 0.815". */
static void show_worst(mu_run *r, const mural_train_result *result)
{
	char text[400] = "";
	for (size_t i = 0; i < result->n_worst; i++) {
		const mural_class_score *score = &result->worst[i];
		char number[24];
		size_t used = strlen(text);
		snprintf(number, sizeof number, "%zu", score->label);
		snprintf(text + used, sizeof text - used, "%s %s %.3f", used ? "," : "",
		         score->name[0] ? score->name : number, (double)score->right / (double)score->images);
	}
	if (result->n_worst > 1)
		mu_progress_line(&r->progress, "worst classes in the test:%s", text);
}

static mural_status finish(mu_run *r, mural_train_result *result, mural_error *err)
{
	MU_TRY(mu_observe_finish(&r->observe, err));
	mu_run_tell_emulation(r);
	mu_run_balance_finish(r);
	MU_TRY(mu_run_load_gather(&r->load, r->comm, err));
	double peak = (double)mu_process_peak_memory();
	MU_TRY(mu_comm_all_reduce(r->comm, &peak, 1, MU_F64, MU_MAX, err));
	char path[MU_CHECKPOINT_FILE];
	snprintf(path, sizeof path, "%s/weights.safetensors", r->folder);
	mural_status status = r->rank == 0 ? mu_run_files_check(&r->files, err) : MURAL_OK;
	MU_TRY(mu_comm_agree(r->comm, status, err));
	if (!r->config->run.measure_only)
		MU_TRY(mural_engine_save_weights(r->engine, path, err));
	MU_TRY(mu_run_test_best(r, err));
	fill_result(r, result);
	result->peak_memory_bytes = (uint64_t)peak;
	show_worst(r, result);
	mu_progress_finish(&r->progress);
	if (r->rank == 0) {
		mu_run_summary summary = {.result = result,
		                          .config = r->config,
		                          .report = r->report,
		                          .engine = r->engine,
		                          .stall = &r->engine->stall,
		                          .totals = &r->totals,
		                          .test = r->test,
		                          .classes = &r->tested.classes,
		                          .energy = &r->energy,
		                          .load = &r->load,
		                          .observe = &r->observe,
		                          .emulated = r->emulated};
		if (r->tested_best.all.images)
			summary.classes_of_best = &r->tested_best.classes;
		status = mu_run_files_finish(&r->files, &summary, r->options->result_path, err);
	}
	return mural_comm_agree(r->comm, status, err);
}

static void release(mu_run *r)
{
	if (r->engine)
		mu_stall_listen(&r->engine->stall, NULL, NULL);
	mu_progress_finish(&r->progress);
	mural_engine_free(r->engine);
	mu_observe_release(&r->observe);
	mural_comm_close(r->emulated);
	mu_class_report_release(&r->tested.classes);
	mu_class_report_release(&r->tested_best.classes);
	mural_data_free(r->train);
	mural_data_free(r->validation);
	mural_data_free(r->test);
	mu_run_files_close(&r->files);
	mu_run_energy_end(&r->energy);
	mu_run_load_release(&r->load);
	free(r->totals.epochs);
}

mural_status mural_train_run(const mural_config *config, const mural_config_report *report, mural_comm *comm,
                             const mural_run_options *options, mural_train_result *result, mural_error *err)
{
	const mural_comm_facts *facts = mural_comm_get_facts(comm);
	mural_config unwatched = *config;
	unwatched.observe = (mural_observe_config){0}; /* watching costs time, and may write beside the run's folder */
	*result = (mural_train_result){.ranks = facts->size};
	mu_run r = {.config = config->run.measure_only ? &unwatched : config,
	            .report = report,
	            .options = options,
	            .comm = comm,
	            .rank = facts->rank,
	            .ranks = facts->size,
	            .begun = mu_now()};
	if (config->run.measure_only)
		r.totals.test_loss = r.totals.test_accuracy = r.totals.test_top5 = NAN;
	mu_host_stats_init(&r.host);
	mural_status status = begin(&r, err);
	if (status == MURAL_OK) {
		announce(&r);
		mu_run_watch_stalls(&r);
		status = observe(&r, err);
		if (status == MURAL_OK)
			status = mu_comm_agree(r.comm, mu_run_balance_begin(&r, err), err);
		if (status == MURAL_OK)
			status = mu_run_train(&r, err);
		fill_result(&r, result);
	}
	if (status == MURAL_OK)
		status = finish(&r, result, err);
	release(&r);
	return status;
}
