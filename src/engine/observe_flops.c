/* The profile of one step: what each unit costs, beside what the device could do.
 *
 * Operations are counted by the model's formulas (2 per multiply-add, attention products included, bias and element-wise work not);
 * backward is twice forward, the patch embedding's once, since nobody needs its input's gradient. Times are the spans that the
 * trainer recorded. MFU is achieved operations per second over the rate of a large matrix product in the model's type on this
 * device, measured just before the run by the same operations table with the same threads.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "engine/engine_internal.h"
#include "engine/observe.h"

enum { PRODUCT = 1024 }; /* rows and columns */

static const double MEASURING = 0.2; /* seconds of products; the best counts, the first ones warm up */

/* x w^T + b of zeros: processors multiply them as fast as others. */
static mural_status measure_product(mural_engine *engine, mu_linear *call, double *rate, mural_error *err)
{
	double best = INFINITY, begun = mu_now(), now = begun;
	int n = 0;
	while (n < 2 || now - begun < MEASURING) {
		double from = now;
		MU_TRY(engine->ops->linear_forward(engine->context, call, err));
		MU_TRY(engine->device.table->wait(engine->device.queue, err));
		now = mu_now();
		best = fmin(best, now - from);
		n++;
	}
	*rate = 2.0 * PRODUCT * PRODUCT * PRODUCT / best;
	return MURAL_OK;
}

static mural_status measure_rate(mural_engine *engine, double *rate, mural_error *err)
{
	const mu_device_table *device = engine->device.table;
	size_t square = (size_t)PRODUCT * PRODUCT * mu_dtype_bytes(engine->store.type);
	mu_linear call = {.type = engine->store.type, .rows = PRODUCT, .in = PRODUCT, .out = PRODUCT};
	size_t bytes = 4 * square + engine->ops->linear_workspace(engine->context, &call);
	void *memory;
	MU_TRY(device->allocate(engine->device.handle, MU_MEMORY_DEVICE, bytes, &memory, err));
	char *at = memory;
	call.x = at;
	call.w = at + square;
	call.y = at + 2 * square;
	call.b = at + 3 * square;
	call.scratch = at + 4 * square;
	mural_status status = device->zero(engine->device.queue, memory, bytes, err);
	if (status == MURAL_OK)
		status = measure_product(engine, &call, rate, err);
	device->release(engine->device.handle, MU_MEMORY_DEVICE, memory, bytes);
	return status;
}

static uint64_t parameters_of(const mu_unit *unit)
{
	uint64_t parameters = 0;
	for (size_t i = 0; i < unit->n_tensors; i++)
		parameters += unit->tensors[i].elements;
	return parameters;
}

mural_status mu_observe_flops_begin(mu_observe *o, mural_error *err)
{
	const mu_vit *vit = &o->engine->vit;
	if (!o->config->observe.flops_profiler)
		return MURAL_OK;
	o->flops.n_units = vit->n_units;
	o->flops.units = calloc(vit->n_units, sizeof *o->flops.units);
	if (!o->flops.units)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the profile of %zu units", vit->n_units);
	for (size_t u = 0; u < vit->n_units; u++) {
		o->flops.units[u].flops = mu_vit_unit_flops(vit, u);
		o->flops.units[u].parameters = parameters_of(&vit->units[u]);
	}
	return measure_rate(o->engine, &o->flops.matrix_rate, err);
}

/* Forward and backward of one image. */
static double flops_of(const mu_flops_profile *p, size_t u)
{
	return p->units[u].flops * (u == 0 ? 2 : 3);
}

static double seconds_of(const mu_flops_profile *p, size_t u)
{
	return p->units[u].forward + p->units[u].backward;
}

/* Of the peak; 0 where nothing was done. */
static double mfu(const mu_flops_profile *p, double flops, double seconds)
{
	return seconds > 0 ? flops * (double)p->images / seconds / p->matrix_rate : 0;
}

typedef struct sums {
	double flops, seconds;
	uint64_t parameters;
} sums;

static sums add_up(const mu_flops_profile *p)
{
	sums all = {0};
	for (size_t u = 0; u < p->n_units; u++) {
		all.flops += flops_of(p, u);
		all.seconds += seconds_of(p, u);
		all.parameters += p->units[u].parameters;
	}
	return all;
}

static void collect(mu_observe *o, const mural_step_facts *step)
{
	mu_flops_profile *p = &o->flops;
	p->step = step->step;
	p->step_seconds = step->seconds;
	p->optimizer_seconds = step->optimizer_seconds;
	for (size_t i = 0; i < o->trace.n; i++) {
		const mu_span *span = &o->trace.spans[i];
		double seconds = span->end - span->begin;
		if (span->step != step->step)
			continue;
		if (span->kind == MU_SPAN_FORWARD)
			p->units[span->index].forward += seconds;
		else if (span->kind == MU_SPAN_BACKWARD)
			p->units[span->index].backward += seconds;
		else if (span->kind == MU_SPAN_DATA)
			p->images += span->amount;
	}
}

static const char *unit_name(const mu_observe *o, size_t u, char text[32])
{
	const mu_unit *unit = &o->engine->vit.units[u];
	if (unit->kind == MU_UNIT_BLOCK)
		snprintf(text, 32, "block %d", unit->block);
	else
		snprintf(text, 32, "%s", unit->kind == MU_UNIT_EMBED ? "embed" : "head");
	return text;
}

static void print_unit(FILE *out, const mu_observe *o, size_t u, double all_seconds)
{
	const mu_flops_profile *p = &o->flops;
	char name[32];
	fprintf(out, "%-10s %12llu %12.4f %10.3f %10.3f %7.1f%% %7.1f%%\n", unit_name(o, u, name),
	        (unsigned long long)p->units[u].parameters, flops_of(p, u) / 1e9, 1e3 * p->units[u].forward,
	        1e3 * p->units[u].backward, all_seconds > 0 ? 100 * seconds_of(p, u) / all_seconds : 0,
	        100 * mfu(p, flops_of(p, u), seconds_of(p, u)));
}

/* The `top` units that took longest, the longest first. */
static void print_top(FILE *out, const mu_observe *o)
{
	const mu_flops_profile *p = &o->flops;
	uint64_t top = o->config->observe.flops_top;
	double below = INFINITY;
	size_t last = p->n_units;
	fprintf(out, "most expensive:");
	for (uint64_t n = 0; n < top && n < p->n_units; n++) {
		size_t best = p->n_units;
		for (size_t u = 0; u < p->n_units; u++) {
			double s = seconds_of(p, u);
			bool left = s < below || (s == below && u > last);
			if (left && (best == p->n_units || s > seconds_of(p, best)))
				best = u;
		}
		char name[32];
		below = seconds_of(p, best);
		last = best;
		fprintf(out, "%s %s (%.3f ms)", n ? "," : "", unit_name(o, best, name), 1e3 * below);
	}
	fputc('\n', out);
}

static void print(FILE *out, const mu_observe *o)
{
	const mu_flops_profile *p = &o->flops;
	sums all = add_up(p);
	fprintf(out,
	        "profile of step %llu: %llu image%s on this rank, %.3f ms; forward and backward %.3f ms, optimizer "
	        "%.3f ms\n",
	        (unsigned long long)p->step, (unsigned long long)p->images, p->images == 1 ? "" : "s",
	        1e3 * p->step_seconds, 1e3 * all.seconds, 1e3 * p->optimizer_seconds);
	fprintf(out,
	        "%llu parameters, %.4f GFLOP per image; matrix products reach %.1f GFLOP/s here, this step %.1f: "
	        "MFU %.1f%%\n",
	        (unsigned long long)all.parameters, all.flops / 1e9, p->matrix_rate / 1e9,
	        all.seconds > 0 ? all.flops * (double)p->images / all.seconds / 1e9 : 0,
	        100 * mfu(p, all.flops, all.seconds));
	print_top(out, o);
	if (!o->config->observe.flops_detailed)
		return;
	fprintf(out, "%-10s %12s %12s %10s %10s %8s %8s\n", "unit", "parameters", "GFLOP/image", "forward ms",
	        "backward ms", "share", "MFU");
	for (size_t u = 0; u < p->n_units; u++)
		print_unit(out, o, u, all.seconds);
}

/* Into the file that the configuration names, else line by line where progress goes. */
static mural_status publish(const mu_observe *o, mural_error *err)
{
	const char *path = o->config->observe.flops_file;
	if (path[0]) {
		mu_file file = {0};
		MU_TRY(mu_file_begin(&file, path, err));
		print(file.out, o);
		return mu_file_commit(&file, err);
	}
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the text of a profile");
	print(out, o);
	fclose(out);
	char *keep = NULL;
	for (char *line = text ? strtok_r(text, "\n", &keep) : NULL; line; line = strtok_r(NULL, "\n", &keep))
		mu_progress_line(o->progress, "%s", line);
	free(text);
	return MURAL_OK;
}

mural_status mu_observe_flops_step(mu_observe *o, const mural_step_facts *step, mural_error *err)
{
	if (!o->config->observe.flops_profiler || step->step != o->config->observe.flops_step)
		return MURAL_OK;
	collect(o, step);
	return o->rank == 0 ? publish(o, err) : MURAL_OK;
}

void mu_observe_write_flops(const mu_observe *o, mu_json *json)
{
	const mu_flops_profile *p = &o->flops;
	sums all = add_up(p);
	mu_json_object_begin(json, "flops_profile");
	mu_json_unsigned(json, "step", p->step);
	mu_json_unsigned(json, "images", p->images);
	mu_json_number(json, "step_seconds", p->step_seconds);
	mu_json_number(json, "optimizer_seconds", p->optimizer_seconds);
	mu_json_number(json, "flops_per_image", all.flops);
	mu_json_number(json, "matrix_flops_per_second", p->matrix_rate);
	mu_json_number(json, "mfu", mfu(p, all.flops, all.seconds));
	mu_json_array_begin(json, "units");
	for (size_t u = 0; u < p->n_units; u++) {
		char name[32];
		mu_json_object_begin(json, NULL);
		mu_json_string(json, "unit", unit_name(o, u, name));
		mu_json_unsigned(json, "parameters", p->units[u].parameters);
		mu_json_number(json, "flops_per_image", flops_of(p, u));
		mu_json_number(json, "forward_seconds", p->units[u].forward);
		mu_json_number(json, "backward_seconds", p->units[u].backward);
		mu_json_number(json, "share", all.seconds > 0 ? seconds_of(p, u) / all.seconds : 0);
		mu_json_number(json, "mfu", mfu(p, flops_of(p, u), seconds_of(p, u)));
		mu_json_object_end(json);
	}
	mu_json_array_end(json);
	mu_json_object_end(json);
}
