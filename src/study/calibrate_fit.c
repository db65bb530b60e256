/* From measured steps to rates.
 *
 * Forward and backward of all models with one number of ranks are one least-squares problem in four times, none negative, in
 * relative errors (ridge.h). The link comes from trainings that hardly compute: with n ranks a ring takes
 *
 *     seconds = 2 (n - 1) (buckets + 1) latency + 2 (n - 1) / n bytes / bandwidth
 *
 * and what ranks wait beyond what the cost model says of their buckets is their waiting for each other.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "study/calibrate_inside.h"
#include "study/median.h"
#include "study/ridge.h"

enum { TIMES = 4, BUCKETS = 8 }; /* units, parameters, operations, values; of a large model's gradients */

static const double SPREAD = 0.05; /* relative, expected of a step's median */
static const double LEAST_LATENCY = 1e-6;

static double computing(const mu_probe *p)
{
	return p->facts.forward + p->facts.backward;
}

/* theta >= 0 of x theta = 1 for rows that are already divided by what they should give; columns may differ by orders. */
static void solve(double *x, size_t rows, size_t n, double *theta)
{
	double sigma[MU_PROBES], weight[MU_PROBES], most[TIMES] = {0};
	mu_ridge ridge = {.n_rows = rows, .n = n, .x = x, .sigma = sigma, .weight = weight};
	for (size_t r = 0; r < rows; r++) {
		sigma[r] = SPREAD;
		for (size_t j = 0; j < n; j++)
			most[j] = fmax(most[j], x[r * n + j]);
	}
	for (size_t j = 0; j < n; j++) {
		for (size_t r = 0; r < rows; r++)
			x[r * n + j] /= most[j];
		ridge.scale[j] = 1e3; /* any value is as likely */
	}
	mu_ridge_solve(&ridge);
	for (size_t j = 0; j < n; j++)
		theta[j] = ridge.theta[j] / most[j];
}

static size_t collect(const mu_calibration *c, mu_aim aim, uint32_t ranks, const mu_probe *found[MU_PROBES])
{
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++)
		if (c->probes[i].aim == aim && c->probes[i].ranks == ranks)
			found[n++] = &c->probes[i];
	return n;
}

static void fit_computing(const mu_probe *const *probes, size_t n, mural_cluster_rate *rate)
{
	double x[MU_PROBES * TIMES], theta[TIMES];
	for (size_t i = 0; i < n; i++) {
		const mu_probe *p = probes[i];
		const double features[TIMES] = {p->units, p->parameters, p->batch * p->flops, p->batch * p->values};
		for (size_t j = 0; j < TIMES; j++)
			x[i * TIMES + j] = features[j] / computing(p);
	}
	solve(x, n, TIMES, theta);
	rate->seconds_per_unit = theta[0];
	rate->seconds_per_parameter = theta[1];
	rate->seconds_per_flop = theta[2];
	rate->seconds_per_value = theta[3];
}

static void fit_update(const mu_probe *const *probes, size_t n, mural_cluster_rate *rate)
{
	double x[MU_PROBES * 2], theta[2];
	for (size_t i = 0; i < n; i++) {
		x[2 * i] = probes[i]->elements / probes[i]->facts.optimizer;
		x[2 * i + 1] = 1 / probes[i]->facts.optimizer;
	}
	solve(x, n, 2, theta);
	rate->update_seconds_per_parameter = theta[0];
	rate->update_seconds = theta[1];
}

static double loading(const mu_calibration *c, uint32_t ranks)
{
	const mu_probe *probes[MU_PROBES];
	return collect(c, MU_AIM_LOADER, ranks, probes) > 0 ? probes[0]->facts.step / probes[0]->batch : 0;
}

/* What the rates of any model say of a probe. */
static double computing_by(const mural_cluster_rate *any, const mu_probe *p, double *per_image, double *per_batch)
{
	*per_image = p->flops * any->seconds_per_flop + p->values * any->seconds_per_value;
	*per_batch = p->units * any->seconds_per_unit + p->parameters * any->seconds_per_parameter;
	return *per_batch + p->batch * *per_image;
}

/* A model of its own is as any, times a factor: two measured batches say one number more safely than two. */
static bool fit_model(const mu_calibration *c, const mural_cluster_rate *any, mural_cluster_rate *rate)
{
	const mu_probe *probes[MU_PROBES];
	if (collect(c, MU_AIM_MODEL, any->ranks, probes) < 2)
		return false;
	const mu_probe *a = probes[0], *b = probes[1];
	double per_image, per_batch;
	double factor = computing(a) / computing_by(any, a, &per_image, &per_batch);
	factor = sqrt(factor * computing(b) / computing_by(any, b, &per_image, &per_batch));
	snprintf(rate->model, sizeof rate->model, "%s", c->config.model.preset);
	rate->flops_per_image = b->flops;
	rate->parameters = b->parameters;
	rate->seconds_per_image = factor * per_image;
	rate->seconds_per_batch = factor * per_batch;
	rate->update_seconds_per_parameter = (a->facts.optimizer + b->facts.optimizer) / 2 / b->elements;
	/* where it is waited for, the loader sets the pace */
	rate->loader_seconds_per_image = b->facts.data > 0.01 * b->facts.step ? b->facts.step / b->batch : 0;
	return true;
}

static double bytes_of(const mu_probe *p)
{
	return p->elements * 4; /* fp32 gradients, at most; narrow ones are half of it on both sides */
}

static void fit_link(const mu_calibration *c, mural_cluster *cluster)
{
	const mu_probe *probes[MU_PROBES];
	if (c->ranks < 2 || collect(c, MU_AIM_LINK, c->ranks, probes) < 2)
		return;
	double n = c->ranks, small = probes[0]->facts.exposed, large = probes[1]->facts.exposed;
	double bytes = bytes_of(probes[1]) - bytes_of(probes[0]), ring = 2 * (n - 1) / n;
	double per_byte = large > small ? (large - small) / bytes : large / bytes_of(probes[1]);
	double left = small - per_byte * bytes_of(probes[0]);
	mural_cluster_link *link = &cluster->links[0];
	link->bytes_per_second = ring / per_byte;
	link->latency_seconds = fmax(LEAST_LATENCY, left / (2 * (n - 1) * (BUCKETS + 1)));
}

static mural_status forecast(const mural_cluster *cluster, const mu_probe *p, mural_forecast_step *step,
                             mural_error *err)
{
	mural_forecast *f;
	const mural_forecast_settings settings = {.config = &p->config, .cluster = cluster};
	const mural_forecast_point point = {.ranks = (int)p->ranks, .micro_batch = p->batch, .accumulation = 1};
	MU_TRY(mural_forecast_create(&f, &settings, err));
	mural_status status = mural_forecast_at(f, &point, step, err);
	mural_forecast_free(f);
	return status;
}

/* Median over the probes; cluster's rates of so many ranks know everything else already. */
static mural_status fit_waiting(const mu_calibration *c, const mural_cluster *cluster, mu_aim aim,
                                mural_cluster_rate *rate, mural_error *err)
{
	const mu_probe *probes[MU_PROBES];
	double shares[MU_PROBES];
	size_t n = collect(c, aim, rate->ranks, probes);
	if (rate->ranks < 2)
		return MURAL_OK;
	for (size_t i = 0; i < n; i++) {
		mural_forecast_step step;
		MU_TRY(forecast(cluster, probes[i], &step, err));
		shares[i] = fmax(0, probes[i]->facts.exposed - step.exposed) / computing(probes[i]);
	}
	rate->wait_share = mu_median(shares, n);
	return MURAL_OK;
}

/* How well steps are given back, by the rates that a forecast of each model would use. */
static mural_status compare(const mu_calibration *c, const mural_cluster *cluster, mural_calibration *found,
                            mural_error *err)
{
	double errors[MU_PROBES];
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++) {
		const mu_probe *p = &c->probes[i];
		mural_forecast_step step;
		if (p->aim != MU_AIM_ANY && p->aim != MU_AIM_MODEL)
			continue;
		MU_TRY(forecast(cluster, p, &step, err));
		errors[n] = fabs(step.seconds / p->facts.step - 1);
		found->max_error = fmax(found->max_error, errors[n++]);
	}
	found->median_error = mu_median(errors, n);
	return MURAL_OK;
}

static mural_status fit_ranks(const mu_calibration *c, uint32_t ranks, mural_cluster *cluster, mural_error *err)
{
	const mu_probe *probes[MU_PROBES];
	size_t n = collect(c, MU_AIM_ANY, ranks, probes);
	mural_cluster_rate *any = &cluster->rates[cluster->n_rates++], *own = &cluster->rates[cluster->n_rates];
	*any = (mural_cluster_rate){.ranks = ranks, .precision = c->config.engine.precision};
	*own = *any;
	fit_computing(probes, n, any);
	fit_update(probes, n, any);
	any->loader_seconds_per_image = loading(c, ranks);
	MU_TRY(fit_waiting(c, cluster, MU_AIM_ANY, any, err));
	if (!fit_model(c, any, own))
		return MURAL_OK;
	cluster->n_rates++;
	return fit_waiting(c, cluster, MU_AIM_MODEL, own, err);
}

mural_status mu_calibration_fit(const mu_calibration *c, mural_cluster *cluster, mural_calibration *found,
                                mural_error *err)
{
	mural_cluster_node *node = &cluster->nodes[0];
	cluster->n_rates = 0;
	memset(cluster->rates, 0, sizeof cluster->rates);
	if (node->slots[0].count < c->ranks) /* more ranks than cores were asked for */
		node->slots[0].count = cluster->devices_in_all = c->ranks;
	fit_link(c, cluster);
	MU_TRY(fit_ranks(c, 1, cluster, err));
	if (c->ranks > 1) {
		MU_TRY(fit_ranks(c, c->ranks, cluster, err));
		found->link_bytes_per_second = cluster->links[0].bytes_per_second;
		found->link_latency = cluster->links[0].latency_seconds;
	}
	return compare(c, cluster, found, err);
}
