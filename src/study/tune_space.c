/* Which configurations there are to choose from. SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "base/affinity.h"
#include "base/fail.h"
#include "mural/info.h"
#include "mural/plan.h"
#include "study/tune_inside.h"

#define MOST_POINTS 4096

static void add_number(uint32_t *list, size_t *n, uint32_t value)
{
	if (*n < MURAL_TUNE_LIST && (*n == 0 || list[*n - 1] != value))
		list[(*n)++] = value;
}

/* 1, 2, 4, ... and all cores; one rank where there is no MPI to start more. */
static void fill_ranks(mural_tune_settings *s, uint32_t cores)
{
	if (s->n_ranks > 0)
		return;
	mural_info info = {0};
	if (cores > 1)
		mural_info_collect(&info);
	for (uint32_t n = 1; n <= (info.mpi.works ? cores : 1); n *= 2)
		add_number(s->ranks, &s->n_ranks, n);
	if (info.mpi.works)
		add_number(s->ranks, &s->n_ranks, cores);
}

/* Those asked for that the cores allow; without a wish an even share of the cores. */
static size_t threads_for(const mural_tune_settings *s, uint32_t ranks, uint32_t cores, uint32_t *threads)
{
	size_t n = 0;
	if (s->n_threads == 0)
		add_number(threads, &n, cores > ranks ? cores / ranks : 1);
	for (size_t i = 0; i < s->n_threads; i++)
		if ((uint64_t)ranks * s->threads[i] <= cores)
			threads[n++] = s->threads[i];
	return n;
}

static mural_status add_point(mu_tune *t, const mural_tune_point *point, mural_error *err)
{
	mural_tune_result *r = t->result;
	if (r->n_points == MOST_POINTS)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "these ranges leave more than %d configurations to choose from: narrow them",
		               MOST_POINTS);
	if (r->n_points % 64 == 0) {
		mural_tune_point *longer = realloc(r->points, (r->n_points + 64) * sizeof *longer);
		if (!longer)
			return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for %zu configurations",
			               r->n_points + 64);
		r->points = longer;
	}
	r->points[r->n_points++] = *point;
	return MURAL_OK;
}

/* All micro-batches that divide a rank's share of a batch; of a range of batches only its halves, quarters, ... */
static mural_status add_micro_batches(mu_tune *t, uint32_t ranks, uint32_t threads, uint64_t batch, mural_error *err)
{
	const mural_tune_settings *s = &t->settings;
	uint64_t share = batch / ranks, most = share < s->micro_high ? share : s->micro_high;
	for (uint64_t micro = s->micro_low; micro <= most; micro++) {
		uint64_t times = share / micro;
		if (share % micro != 0 || (t->batch == 0 && (times & (times - 1)) != 0))
			continue;
		const mural_tune_point point = {.ranks = ranks,
		                                .threads = threads,
		                                .micro_batch = micro,
		                                .accumulation = times,
		                                .train_batch = batch};
		MU_TRY(add_point(t, &point, err));
	}
	return MURAL_OK;
}

static mural_status add_arm(mu_tune *t, uint32_t ranks, uint32_t threads, mural_error *err)
{
	const mural_tune_settings *s = &t->settings;
	uint64_t images = mural_data_get_facts(t->train)->images;
	uint64_t low = t->batch > 0 ? t->batch : s->batch_low, high = t->batch > 0 ? t->batch : s->batch_high;
	for (uint64_t batch = low; batch <= high && batch <= images; batch *= 2)
		if (batch % ranks == 0)
			MU_TRY(add_micro_batches(t, ranks, threads, batch, err));
	return MURAL_OK;
}

static mural_status no_points(const mu_tune *t, uint32_t cores, size_t arms, mural_error *err)
{
	const mural_tune_settings *s = &t->settings;
	uint64_t images = mural_data_get_facts(t->train)->images, least = t->batch > 0 ? t->batch : s->batch_low;
	if (arms == 0)
		return mu_fail(err, MURAL_USAGE, "argument --threads",
		               "no number of ranks times threads is within the %u core%s of this machine", cores,
		               cores == 1 ? "" : "s");
	if (least > images)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "a batch of %" PRIu64 " images is more than the training set's %" PRIu64, least, images);
	if (t->batch > 0)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "no micro-batch from %" PRIu64 " to %" PRIu64 " divides the batch of %" PRIu64
		               " images over any of the numbers of ranks",
		               s->micro_low, s->micro_high, t->batch);
	return mu_fail(err, MURAL_USAGE, NULL,
	               "no micro-batch from %" PRIu64 " to %" PRIu64 " divides a batch from %" PRIu64 " to %" PRIu64
	               ", by doubling, over any of the numbers of ranks",
	               s->micro_low, s->micro_high, s->batch_low, s->batch_high);
}

mural_status mu_tune_make_points(mu_tune *t, mural_error *err)
{
	mural_tune_settings *s = &t->settings;
	uint32_t cores = (uint32_t)mu_affinity_cores(), threads[MURAL_TUNE_LIST];
	size_t arms = 0;
	fill_ranks(s, cores);
	for (size_t r = 0; r < s->n_ranks; r++) {
		size_t n = threads_for(s, s->ranks[r], cores, threads);
		for (size_t i = 0; i < n; i++)
			MU_TRY(add_arm(t, s->ranks[r], threads[i], err));
		arms += n;
	}
	return t->result->n_points > 0 ? MURAL_OK : no_points(t, cores, arms, err);
}

mural_config mu_tune_config_at(const mu_tune *t, const mural_tune_point *p)
{
	mural_config config = t->config;
	config.batch = (mural_batch_config){p->train_batch, p->micro_batch, p->accumulation};
	config.run.threads = p->threads;
	config.ranks = (int)p->ranks;
	return config;
}

static mural_status plan_point(const mu_tune *t, mural_tune_point *p, mural_memory_fit *fit, mural_error *err)
{
	const mural_config config = mu_tune_config_at(t, p);
	const mural_engine_settings settings = {
	        .config = &config, .report = t->report, .training = true, .train = t->train, .test = t->test};
	mural_memory_plan plan;
	MU_TRY(mural_plan_memory(&plan, &settings, (int)p->ranks, fit, err));
	p->memory_bytes = plan.total;
	return MURAL_OK;
}

mural_status mu_tune_limit_memory(mu_tune *t, mural_error *err)
{
	mural_tune_result *r = t->result;
	const mural_tune_point *least = NULL;
	mural_memory_fit fit = {0};
	uint64_t least_limit = 0;
	size_t fitting = 0;
	for (size_t i = 0; i < r->n_points; i++) {
		mural_tune_point *p = &r->points[i];
		bool first = i == 0 || p->ranks != p[-1].ranks; /* of its number of ranks, which share what is free */
		if (first)
			fit = (mural_memory_fit){.bytes = t->settings.memory_limit};
		MU_TRY(plan_point(t, p, first ? &fit : NULL, err));
		fitting += p->memory_bytes <= fit.bytes;
		if (p->memory_bytes > fit.bytes) {
			p->state = MURAL_TUNE_TOO_LARGE;
			snprintf(p->why, sizeof p->why, "a rank would need %s, the limit is %s",
			         MU_SIZE(p->memory_bytes), MU_SIZE(fit.bytes));
		}
		if (!least || p->memory_bytes < least->memory_bytes) {
			least = p;
			least_limit = fit.bytes;
		}
	}
	if (fitting > 0 || !least)
		return MURAL_OK;
	return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL,
	               "no configuration fits: the smallest needs %s per rank, and a rank may have %s: use a smaller "
	               "model or image, or fewer ranks",
	               MU_SIZE(least->memory_bytes), MU_SIZE(least_limit));
}
