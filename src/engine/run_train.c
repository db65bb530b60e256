/* The steps of a run, and what happens between them: rows of the tables, evaluations, checkpoints, stopping.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "comm/comm.h"
#include "engine/run_balance.h"

static void add_up(mu_run *r, const mural_step_facts *step)
{
	mu_run_totals *totals = &r->totals;
	totals->epoch.images += step->images;
	totals->epoch.loss += step->loss * (double)step->images;
	totals->epoch.top1 += step->top1 * (double)step->images;
	totals->epoch.seconds += step->seconds;
	totals->images += step->images;
	totals->seconds += step->seconds;
}

static mural_status record_step(mu_run *r, const mural_step_facts *step, mural_error *err)
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
	        .loss_scale = step->loss_scale,
	        .applied = step->applied_steps,
	        .skipped = step->skipped_steps,
	};
	for (int phase = 0; phase < MU_PHASE_COUNT; phase++)
		r->totals.phase_seconds[phase] += seconds[phase];
	return mu_steps_write(&r->files.steps, &row, err);
}

/* A step that changes nothing is never silent. */
static void show_skipped(mu_run *r, const mural_step_facts *step)
{
	char scale[48] = "";
	if (!step->skipped)
		return;
	if (r->config->engine.precision == MURAL_FP16)
		snprintf(scale, sizeof scale, " at loss scale %.10g", step->loss_scale);
	mu_progress_line(&r->progress, "step %llu is left out: its gradient is not finite%s (%llu left out so far)",
	                 (unsigned long long)step->step, scale, (unsigned long long)step->skipped_steps);
}

static void show_step(mu_run *r, const mural_step_facts *step)
{
	const mu_run_totals *totals = &r->totals;
	uint64_t per_epoch = mural_engine_steps_per_epoch(r->engine);
	char waits[MU_RUN_WAITS];
	mu_run_balance_waits(r->engine, waits, sizeof waits);
	mu_progress_point point = {
	        .epoch = step->epoch + 1u,
	        .step = (step->step - 1) % per_epoch + 1,
	        .loss = totals->epoch.loss / (double)totals->epoch.images,
	        .accuracy = totals->epoch.top1 / (double)totals->epoch.images,
	        .images = totals->images,
	        .seconds = totals->seconds,
	        .loss_scale = r->config->engine.precision == MURAL_FP16 ? step->loss_scale : 0,
	        .skipped = step->skipped_steps,
	        .waits = waits,
	};
	show_skipped(r, step);
	mu_progress_step(&r->progress, &point);
}

/* What the rank trains on: a card, told by its driver or at least by itself, or the host. */
static void sample_device(mu_run *r, mu_device_sample *sample)
{
	const mu_device *device = &r->engine->device;
	mu_device_facts facts;
	if (!r->engine->bus[0]) {
		mu_host_stats_sample(&r->host, sample);
		return;
	}
	*sample = (mu_device_sample){.load = NAN, .celsius = NAN};
	snprintf(sample->id, sizeof sample->id, "%d", mural_comm_slot(r->comm));
	if (device->table->facts(device->handle, &facts, NULL) == MURAL_OK) {
		snprintf(sample->name, sizeof sample->name, "%s", facts.name);
		sample->free_bytes = facts.free_bytes;
		sample->used_bytes = facts.total_bytes - facts.free_bytes;
		sample->total_bytes = facts.total_bytes;
	}
	mu_nvml_sample(&r->energy.nvml, sample);
}

/* One row per rank, gathered by rank 0. */
static mural_status record_metrics(mu_run *r, uint64_t epoch, double seconds, mural_error *err)
{
	mu_metrics_row mine = {.timestamp = time(NULL), .rank = r->rank, .epoch = epoch, .seconds = seconds};
	sample_device(r, &mine.device);
	mural_status written = MURAL_OK;
	for (int rank = 0; rank < r->ranks; rank++) {
		mu_metrics_row row = mine;
		MU_TRY(mu_comm_broadcast(r->comm, &row, sizeof row, rank, err));
		if (r->rank == 0 && written == MURAL_OK)
			written = mu_metrics_write(&r->files.metrics, &row, err);
	}
	return mu_comm_agree(r->comm, written, err);
}

/* The joules of the steps of an epoch, in energy.csv where there is one. */
static mural_status record_energy(mu_run *r, uint64_t epoch, mural_error *err)
{
	const mu_epoch_sums *sums = &r->totals.epoch;
	const mu_energy_row row = {
	        .epoch = epoch,
	        .images = sums->images,
	        .seconds = sums->seconds,
	        .processor_joules = sums->joules.processor,
	        .gpu_joules = r->energy.uses_gpus ? sums->joules.gpu : NAN,
	        .joules = mu_run_energy_sum(&r->energy, &sums->joules),
	};
	bool wanted = r->rank == 0 && r->files.energy.opened;
	return mu_comm_agree(r->comm, wanted ? mu_energy_csv_write(&r->files.energy, &row, err) : MURAL_OK, err);
}

static bool is_last(const mu_run *r)
{
	return mural_engine_steps_done(r->engine) >= mural_engine_total_steps(r->engine) || mu_run_waited_enough(r);
}

/* The weights as they are on the test set; at the end class by class. */
static mural_status test(mu_run *r, mu_epoch_row *row, mural_error *err)
{
	mural_evaluation found;
	if (is_last(r)) {
		MU_TRY(mu_run_test(r, &r->tested, err));
		found = r->tested.all;
	} else {
		MU_TRY(mural_engine_evaluate(r->engine, r->test, &found, err));
		r->totals.evaluation_seconds += found.seconds;
	}
	row->test_loss = r->totals.test_loss = found.loss;
	row->test_accuracy = r->totals.test_accuracy = found.top1;
	r->totals.test_top5 = found.top5;
	return MURAL_OK;
}

/* At most 80 columns in usual cases: a terminal that wraps makes a mess of the bar below. */
static void show_epoch(mu_run *r, const mu_epoch_row *row)
{
	char set[64] = "";
	if (!isnan(row->validation_loss))
		snprintf(set, sizeof set, " val loss %.4f acc %.4f,", row->validation_loss, row->validation_accuracy);
	else if (!isnan(row->test_loss))
		snprintf(set, sizeof set, " test loss %.4f acc %.4f,", row->test_loss, row->test_accuracy);
	mu_progress_line(&r->progress, "epoch %u: train loss %.4f acc %.4f,%s %.1f s", row->epoch, row->train_loss,
	                 row->train_accuracy, set, row->seconds);
}

/* epoch: from 1. */
static mural_status end_epoch(mu_run *r, uint32_t epoch, mural_error *err)
{
	mu_run_totals *totals = &r->totals;
	double images = (double)totals->epoch.images;
	uint32_t every = r->config->run.eval_every;
	const mu_validated *validated = &totals->validation.last;
	bool now = validated->step > 0 && validated->step == mural_engine_steps_done(r->engine);
	mu_epoch_row *row = &totals->epochs[totals->n_epochs++];
	*row = (mu_epoch_row){
	        .epoch = epoch,
	        .train_loss = totals->epoch.loss / images,
	        .train_accuracy = totals->epoch.top1 / images,
	        .seconds = totals->epoch.seconds,
	        .validation_loss = now ? validated->loss : NAN,
	        .validation_accuracy = now ? validated->top1 : NAN,
	        .test_loss = NAN,
	        .test_accuracy = NAN,
	};
	totals->train_loss = row->train_loss;
	totals->train_accuracy = row->train_accuracy;
	MU_TRY(record_energy(r, epoch, err));
	totals->epoch = (mu_epoch_sums){0};
	MU_TRY(record_metrics(r, epoch, row->seconds, err));
	if (r->test && !r->validation && (is_last(r) || (every > 0 && epoch % every == 0)))
		MU_TRY(test(r, row, err));
	show_epoch(r, row);
	return mu_comm_agree(r->comm, mu_observe_epoch(&r->observe, row, totals, err), err);
}

/* After the last step: the rest of an epoch that --max-steps or early stopping cut short, and the test. It was made by
 * end_epoch when there are no validation images, unless the run went on from a checkpoint with nothing left to do. */
static mural_status end_run(mu_run *r, mural_error *err)
{
	mu_run_totals *totals = &r->totals;
	uint64_t epochs = mural_engine_steps_done(r->engine) / mural_engine_steps_per_epoch(r->engine);
	if (totals->epoch.images > 0)
		MU_TRY(end_epoch(r, (uint32_t)epochs + 1, err));
	if (r->test && totals->n_epochs > 0 && r->tested.all.images == 0)
		return test(r, &totals->epochs[totals->n_epochs - 1], err);
	return MURAL_OK;
}

static bool checkpoint_is_due(const mu_run *r, const mural_step_facts *step)
{
	const mural_checkpoint_config *c = &r->config->checkpoint;
	if (r->config->run.measure_only)
		return false;
	return step->stop_asked || (c->every_steps > 0 && step->step % c->every_steps == 0) ||
	       (c->every_epochs > 0 && step->epoch_ends && (step->epoch + 1u) % c->every_epochs == 0) ||
	       (is_last(r) && (c->every_steps > 0 || c->every_epochs > 0));
}

static mural_status sync_tables(const void *files, mural_error *err)
{
	return mu_run_files_sync(files, err);
}

static mural_status begin_checkpoint(mu_run *r, mural_error *err)
{
	const mural_status status = r->rank == 0 ? mu_run_files_check(&r->files, err) : MURAL_OK;
	const mu_checkpoint_wish wish = {.run_dir = r->folder,
	                                 .keep = r->config->checkpoint.keep,
	                                 .totals = &r->totals,
	                                 .tables = {sync_tables, &r->files}};
	MU_TRY(mu_comm_agree(r->comm, status, err));
	return mu_checkpoint_begin(r->engine, &wish, err);
}

static void pass_on_wishes(mu_run *r)
{
	double hours = (mu_now() - r->begun) / 3600;
	bool time_is_up = r->config->run.max_hours > 0 && hours >= r->config->run.max_hours;
	if (time_is_up || (r->options->stop_asked && r->options->stop_asked()))
		mural_engine_ask_stop(r->engine);
}

/* The same words on all ranks. */
static mural_status stopped(mu_run *r, mural_error *err)
{
	const unsigned long long done = mural_engine_steps_done(r->engine), all = mural_engine_total_steps(r->engine);
	mural_status status;
	if (r->config->run.measure_only)
		status = mu_fail(err, MURAL_STOPPED, NULL, "stopped after step %llu of %llu; nothing was to be kept",
		                 done, all);
	else
		status = mu_fail(err, MURAL_STOPPED, NULL,
		                 "stopped after step %llu of %llu, with a checkpoint; to go on: --resume %s", done, all,
		                 r->folder);
	return mu_comm_agree(r->comm, status, err);
}

/* What follows a step that ends an epoch or the run, or is to be looked at or kept. All ranks come here after the same steps. */
static mural_status between_steps(mu_run *r, const mural_step_facts *step, mural_status recorded, mural_error *err)
{
	bool best = false;
	MU_TRY(mu_comm_agree(r->comm, recorded, err));
	MU_TRY(mu_run_energy_settle(&r->energy, r->comm, &r->totals, err));
	if (mu_run_validation_is_due(r, step))
		MU_TRY(mu_run_validate(r, step, &best, err));
	if (step->epoch_ends)
		MU_TRY(end_epoch(r, step->epoch + 1u, err));
	if (best || checkpoint_is_due(r, step))
		MU_TRY(begin_checkpoint(r, err));
	mu_run_energy_go(&r->energy);
	if (!step->stop_asked || is_last(r))
		return MURAL_OK;
	MU_TRY(mural_checkpoint_poll(r->engine, true, NULL, err));
	return stopped(r, err);
}

static mural_status record(mu_run *r, const mural_step_facts *step, mural_error *err)
{
	MU_TRY(record_step(r, step, err));
	MU_TRY(mu_run_balance_step(r, err));
	return mu_observe_step(&r->observe, step, &r->totals, err);
}

static mural_status train(mu_run *r, mural_error *err)
{
	mu_run_energy_go(&r->energy);
	for (;;) {
		mural_step_facts step = {.finished = mu_run_waited_enough(r)};
		pass_on_wishes(r);
		if (!step.finished)
			MU_TRY(mural_engine_step(r->engine, &step, err));
		if (step.finished)
			return end_run(r, err);
		add_up(r, &step);
		mu_run_load_note(&r->load, &step);
		mu_run_energy_note(&r->energy);
		show_step(r, &step);
		mural_status recorded = record(r, &step, err);
		if (mu_observe_timeline_is_due(&r->observe, step.step, is_last(r)))
			MU_TRY(mu_observe_write_timeline(&r->observe, err));
		if (step.epoch_ends || step.stop_asked || is_last(r) || checkpoint_is_due(r, &step) ||
		    mu_run_validation_is_due(r, &step))
			MU_TRY(between_steps(r, &step, recorded, err));
		else
			mural_engine_leave(r->engine, recorded);
		MU_TRY(mural_checkpoint_poll(r->engine, false, NULL, err));
	}
}

mural_status mu_run_train(mu_run *r, mural_error *err)
{
	mural_status status = train(r, err);
	/* A checkpoint under way is finished: at the end, and when all ranks have agreed on a failure (a loss that is not finite,
	 * say). With one that only this rank knows of there is nobody to finish it with. */
	if (status == MURAL_OK)
		return mural_checkpoint_poll(r->engine, true, NULL, err);
	if (r->ranks == 1 || (err && err->has_rank))
		mural_checkpoint_poll(r->engine, true, NULL, NULL);
	return status;
}
