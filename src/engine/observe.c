/* What a run tells about itself. SPDX-License-Identifier: MIT */
#include "engine/observe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/observed.h"
#include "engine/engine_internal.h"

enum { SPANS_MOST = 1 << 22, SPANS_BETWEEN = 1024 /* evaluations, checkpoints */ };

/* Every collective of the engine, when it has been waited for. */
static void heard(void *listener, const mu_comm_event *event)
{
	mu_observe *o = listener;
	double seconds = event->ended - event->started;
	mu_trace_add(&o->trace, MU_SPAN_COLLECTIVE, (uint16_t)event->collective, event->bytes, event->started,
	             event->ended);
	if (!(o->logged >> event->collective & 1))
		return;
	mu_comm_log_add(&o->log, event->collective, event->bytes, seconds);
	if (o->config->observe.comms_verbose && o->rank == 0)
		mu_progress_line(o->progress, "collective: %s of %s took %.3f ms, %.2f GB/s",
		                 mu_collective_text(event->collective), MU_SIZE(event->bytes), 1e3 * seconds,
		                 mu_comm_algorithm_bandwidth((double)event->bytes, seconds) / 1e9);
}

/* Kinds to log, from the words of the configuration, where DeepSpeed's names for three of them follow after the six. */
static unsigned kinds_logged(const mural_observe_config *c)
{
	enum { FIRST_OTHER_NAME = MU_COLLECTIVE_COUNT };
	static const mu_collective others[] = {MU_ALL_GATHER, MU_REDUCE_SCATTER, MU_ALL_TO_ALL};
	unsigned kinds = c->comms_ops & ((1u << MU_COLLECTIVE_COUNT) - 1);
	for (unsigned i = 0; i < 3; i++)
		if (c->comms_ops >> (FIRST_OTHER_NAME + i) & 1)
			kinds |= 1u << others[i];
	if (!c->comms_logger)
		return 0;
	return c->comms_all ? (1u << MU_COLLECTIVE_COUNT) - 1 : kinds;
}

mural_status mu_observe_init(mu_observe *o, const mu_observe_settings *settings, mu_comm **comm, mural_error *err)
{
	const mural_observe_config *c = &settings->config->observe;
	const mu_comm_facts *facts = settings->comm->table->facts(settings->comm);
	*o = (mu_observe){.config = settings->config,
	                  .plain = settings->comm,
	                  .progress = settings->progress,
	                  .rank = facts->rank,
	                  .ranks = facts->size,
	                  .logged = kinds_logged(c)};
	*comm = settings->comm;
	if (c->timeline[0])
		MU_TRY(mu_comm_clock_offset(o->plain, &o->ahead, &o->ahead_uncertainty, err));
	if (!c->comms_logger && !c->timeline[0])
		return MURAL_OK;
	mural_status status = mu_observed_create(&o->observed, o->plain, heard, o, err);
	MU_TRY(mu_comm_agree(o->plain, status, err));
	*comm = o->observed;
	return MURAL_OK;
}

void mu_observe_release(mu_observe *o)
{
	mural_comm_close(o->observed);
	mu_trace_release(&o->trace);
	mu_scalars_close(&o->scalars);
	free(o->flops.units);
	*o = (mu_observe){0};
}

/* <output_path>/<job_name>, in the run's folder where there is no path. */
static const char *folder_of(const mu_observe *o, const char *path, const char *job, char *text, size_t size)
{
	snprintf(text, size, "%s/%s", path[0] ? path : o->folder, job);
	return text;
}

static mural_status open_scalars(mu_observe *o, const mu_observe_start *start, mural_error *err)
{
	const mural_observe_config *c = &o->config->observe;
	char events[2048], tables[2048];
	bool own = !c->tensorboard_path[0] && !c->csv_path[0];
	const mu_scalars_settings settings = {
	        .events_folder = c->tensorboard
	                                 ? folder_of(o, c->tensorboard_path, c->tensorboard_job, events, sizeof events)
	                                 : NULL,
	        .csv_folder = c->csv_monitor ? folder_of(o, c->csv_path, c->csv_job, tables, sizeof tables) : NULL,
	        .anew = own && !start->goes_on,
	        .keep = start->goes_on ? start->images : UINT64_MAX};
	return mu_scalars_open(&o->scalars, &settings, err);
}

/* Spans of one step: each unit forward and backward per micro-batch, the wait for it, buckets, and what surrounds them. */
static size_t spans_per_step(const mu_observe *o)
{
	size_t units = o->engine->vit.n_units;
	return (size_t)mu_sharing_most_micros(&o->engine->sharing, &o->config->batch) * (2 * units + 1) +
	       o->engine->reducer.n_buckets + 16;
}

static mural_status open_trace(mu_observe *o, mural_error *err)
{
	const mural_observe_config *c = &o->config->observe;
	if (!c->timeline[0] && !c->flops_profiler)
		return MURAL_OK;
	uint64_t steps = c->timeline[0] ? c->timeline_steps : 0;
	size_t room = (size_t)(steps + 1) * spans_per_step(o) + SPANS_BETWEEN;
	if (room > SPANS_MOST)
		room = SPANS_MOST;
	MU_TRY(mu_trace_init(&o->trace, room, c->timeline_first, steps, err));
	o->trace.also = c->flops_profiler ? c->flops_step : 0;
	o->engine->trace = &o->trace;
	return MURAL_OK;
}

static void tell_memory(mu_observe *o, const char *when)
{
	mural_memory_plan p, used;
	mu_device_sample host;
	if (!o->config->observe.memory_breakdown || o->rank != 0)
		return;
	mural_engine_memory(o->engine, &p, &used);
	mu_host_stats_sample(&o->host, &host);
	/* MU_SIZE has four buffers: two lines. */
	mu_progress_line(
	        o->progress,
	        "memory %s: planned %s, of it model %s (weights, gradients, optimizer), activations %s, loader %s",
	        when, MU_SIZE(p.total), MU_SIZE(p.parameters + p.gradients + p.optimizer),
	        MU_SIZE(p.activations + p.scratch), MU_SIZE(p.loader));
	mu_progress_line(o->progress, "memory %s: process %s, at most %s; host uses %s of %s", when,
	                 MU_SIZE(mu_process_memory()), MU_SIZE(mu_process_peak_memory()), MU_SIZE(host.used_bytes),
	                 MU_SIZE(host.total_bytes));
}

static mural_status begin_here(mu_observe *o, const mu_observe_start *start, mural_error *err)
{
	if (o->rank == 0)
		MU_TRY(open_scalars(o, start, err));
	MU_TRY(open_trace(o, err));
	return mu_observe_flops_begin(o, err);
}

mural_status mu_observe_begin(mu_observe *o, const mu_observe_start *start, mural_error *err)
{
	o->engine = start->engine;
	o->folder = start->folder;
	mu_host_stats_init(&o->host);
	MU_TRY(mu_comm_agree(o->plain, begin_here(o, start, err), err));
	tell_memory(o, "at the start");
	return MURAL_OK;
}

/* DeepSpeed's names where it has the curve; x is images so far. */
static mural_status put_step(mu_observe *o, const mural_step_facts *step, const mu_run_totals *totals, mural_error *err)
{
	mu_scalars *s = &o->scalars;
	if (o->rank != 0 || (!s->events.opened && !s->folder[0]))
		return MURAL_OK;
	mu_scalars_begin(s, totals->images, (double)time(NULL));
	mu_scalars_put(s, "Train/Samples/train_loss", step->loss);
	mu_scalars_put(s, "Train/Samples/lr", step->learning_rate);
	mu_scalars_put(s, "Train/Samples/gradient_norm", step->gradient_norm);
	mu_scalars_put(s, "Train/Samples/images_per_second", (double)step->images / step->seconds);
	if (o->config->engine.precision == MURAL_FP16)
		mu_scalars_put(s, "Train/Samples/loss_scale", step->loss_scale);
	if (o->config->engine.precision != MURAL_FP32)
		mu_scalars_put(s, "Train/Samples/skipped_steps", (double)step->skipped_steps);
	if (o->config->run.wall_clock_breakdown) {
		mu_scalars_put(s, "Train/Samples/elapsed_time_ms_forward", 1e3 * step->forward_seconds);
		mu_scalars_put(s, "Train/Samples/elapsed_time_ms_backward", 1e3 * step->backward_seconds);
		mu_scalars_put(s, "Train/Samples/elapsed_time_ms_backward_allreduce", 1e3 * step->exposed_seconds);
		mu_scalars_put(s, "Train/Samples/elapsed_time_ms_step", 1e3 * step->optimizer_seconds);
	}
	return mu_scalars_end(s, err);
}

/* Where the time of the steps since the last such line went. */
static void tell_time(mu_observe *o, uint64_t last)
{
	double steps = (double)o->since.steps, per_step = steps > 0 ? 1e3 / steps : 0;
	if (o->since.steps == 0)
		return;
	const double *p = o->since.phases;
	mu_progress_line(o->progress,
	                 "time (ms) of steps %llu-%llu: step %.2f | data %.2f | forward %.2f | backward %.2f | "
	                 "communication exposed %.2f, hidden %.2f | optimizer %.2f",
	                 (unsigned long long)(last - o->since.steps + 1), (unsigned long long)last,
	                 o->since.seconds * per_step, p[MU_PHASE_DATA] * per_step, p[MU_PHASE_FORWARD] * per_step,
	                 p[MU_PHASE_BACKWARD] * per_step, p[MU_PHASE_EXPOSED] * per_step, p[MU_PHASE_HIDDEN] * per_step,
	                 p[MU_PHASE_OPTIMIZER] * per_step);
	memset(&o->since, 0, sizeof o->since);
}

static void count_time(mu_observe *o, const mural_step_facts *step)
{
	uint64_t every = o->config->run.steps_per_print;
	if (!o->config->run.wall_clock_breakdown || o->rank != 0)
		return;
	o->since.steps++;
	o->since.seconds += step->seconds;
	o->since.phases[MU_PHASE_DATA] += step->data_seconds;
	o->since.phases[MU_PHASE_FORWARD] += step->forward_seconds;
	o->since.phases[MU_PHASE_BACKWARD] += step->backward_seconds;
	o->since.phases[MU_PHASE_EXPOSED] += step->exposed_seconds;
	o->since.phases[MU_PHASE_HIDDEN] += step->hidden_seconds;
	o->since.phases[MU_PHASE_OPTIMIZER] += step->optimizer_seconds;
	if (step->epoch_ends || (every > 0 && step->step % every == 0))
		tell_time(o, step->step);
}

mural_status mu_observe_step(mu_observe *o, const mural_step_facts *step, const mu_run_totals *totals, mural_error *err)
{
	count_time(o, step);
	if (step->images == totals->images)
		tell_memory(o, "after the first step");
	MU_TRY(put_step(o, step, totals, err));
	return mu_observe_flops_step(o, step, err);
}

mural_status mu_observe_epoch(mu_observe *o, const mu_epoch_row *row, const mu_run_totals *totals, mural_error *err)
{
	mu_scalars *s = &o->scalars;
	tell_memory(o, "after the epoch");
	if (o->rank != 0 || (!s->events.opened && !s->folder[0]))
		return MURAL_OK;
	mu_scalars_begin(s, totals->images, (double)time(NULL));
	mu_scalars_put(s, "Train/Samples/train_accuracy", row->train_accuracy);
	if (!isnan(row->validation_loss)) {
		mu_scalars_put(s, "Validation/Samples/validation_loss", row->validation_loss);
		mu_scalars_put(s, "Validation/Samples/validation_accuracy", row->validation_accuracy);
	}
	if (!isnan(row->test_loss)) {
		mu_scalars_put(s, "Test/Samples/test_loss", row->test_loss);
		mu_scalars_put(s, "Test/Samples/test_accuracy", row->test_accuracy);
	}
	return mu_scalars_end(s, err);
}

mural_status mu_observe_finish(mu_observe *o, mural_error *err)
{
	double waiting[sizeof o->log.rows / sizeof *o->log.rows];
	if (o->rank == 0)
		tell_time(o, mural_engine_steps_done(o->engine));
	if (mu_observe_timeline_is_due(o, mural_engine_steps_done(o->engine), true))
		MU_TRY(mu_observe_write_timeline(o, err)); /* stopped early */
	if (o->logged == 0)
		return MURAL_OK;
	MU_TRY(mu_observe_waiting(o, waiting, err));
	if (o->rank == 0)
		mu_observe_print_comms(o, waiting);
	return MURAL_OK;
}

void mu_observe_write_result(const mu_observe *o, mu_json *json)
{
	if (o->logged != 0)
		mu_observe_write_comms(o, json);
	if (o->flops.step > 0)
		mu_observe_write_flops(o, json);
}
