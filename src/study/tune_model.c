/* The cost model of a search, a mixture of Gaussian processes. SPDX-License-Identifier: MIT */
#include "study/tune_model.h"

#include <math.h>

/* Prior standard deviations of logarithms. Ranks and threads that share the same cores differ by some ten per cent, and with a small
 * model by far more. Neighbours on the scale of micro-batches deviate alike up to LENGTH octaves. */
#define LEVEL_COMMON 2.0
#define LEVEL_OWN 0.3
#define LEVEL_CORES 0.3 /* for twice the cores: memory may keep them waiting */
#define SHAPE_OWN 0.4 /* of the common part */
#define LENGTH 2.0

/* Two more deviations, which the trials tell against a prior (`likely` is its logarithm): how far caches bend the line, and by how
 * much trials of the same point differ, since the machine is not the same every minute and one with other work less so. */
static const struct {
	double shape, drift, likely;
} moods[] = {{0.07, 0.01, 0}, {0.07, 0.03, -0.5}, {0.07, 0.1, -1.5}, {0.2, 0.01, -0.5}, {0.2, 0.03, -1}};
#define MOODS (sizeof moods / sizeof *moods)
#define RULED_OUT 0.05 /* a line less likely than this is */

/* What a micro-batch may cost whatever its size, in images: nothing for large models on a processor, tens for small ones on a
 * GPU. Equally likely before the first trial. */
static const double overheads[MU_TUNE_LINES] = {0, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100};

typedef struct place {
	uint32_t ranks, threads;
	double micro;
} place;

static double square(double x)
{
	return x * x;
}

static double octaves(place a)
{
	return log2((double)a.ranks * a.threads);
}

static double covariance(const mu_tune_model *m, place a, place b)
{
	bool same = a.ranks == b.ranks && a.threads == b.threads;
	double near = exp(-square(log2(a.micro / b.micro) / LENGTH) / 2);
	return square(LEVEL_COMMON) + same * square(LEVEL_OWN) + square(LEVEL_CORES) * octaves(a) * octaves(b) +
	       square(m->shape) * (1 + same * square(SHAPE_OWN)) * near;
}

static place place_of(const mu_tune_sample *s)
{
	return (place){s->ranks, s->threads, s->micro};
}

/* Mean of log cost. */
static double mean_of(const mu_tune_model *m, double h, place at)
{
	return m->unit + log1p(h * at.threads / at.micro);
}

/* L of L L' = covariance, row by row; the noise on the diagonal keeps it positive. */
static void factorise(mu_tune_model *m, double drift)
{
	for (size_t i = 0; i < m->n; i++)
		for (size_t j = 0; j <= i; j++) {
			double sum = covariance(m, place_of(&m->samples[i]), place_of(&m->samples[j]));
			if (i == j)
				sum += square(m->samples[i].error) + square(drift);
			for (size_t k = 0; k < j; k++)
				sum -= m->factor[i * MURAL_TUNE_TRIALS + k] * m->factor[j * MURAL_TUNE_TRIALS + k];
			m->factor[i * MURAL_TUNE_TRIALS + j] =
			        i == j ? sqrt(fmax(sum, 1e-12)) : sum / m->factor[j * MURAL_TUNE_TRIALS + j];
		}
}

/* x = L^-1 x */
static void solve_lower(const mu_tune_model *m, double *x)
{
	for (size_t i = 0; i < m->n; i++) {
		for (size_t k = 0; k < i; k++)
			x[i] -= m->factor[i * MURAL_TUNE_TRIALS + k] * x[k];
		x[i] /= m->factor[i * MURAL_TUNE_TRIALS + i];
	}
}

/* x = L'^-1 x */
static void solve_upper(const mu_tune_model *m, double *x)
{
	for (size_t i = m->n; i-- > 0;) {
		for (size_t k = i + 1; k < m->n; k++)
			x[i] -= m->factor[k * MURAL_TUNE_TRIALS + i] * x[k];
		x[i] /= m->factor[i * MURAL_TUNE_TRIALS + i];
	}
}

/* Fits one line, and returns the logarithm of how likely it makes the samples, up to what all lines share. */
static double fit_line(const mu_tune_model *m, mu_tune_line *line)
{
	double likely = 0;
	for (size_t i = 0; i < m->n; i++)
		line->weights[i] = log(m->samples[i].cost) - mean_of(m, line->h, place_of(&m->samples[i]));
	solve_lower(m, line->weights);
	for (size_t i = 0; i < m->n; i++)
		likely -= square(line->weights[i]) / 2;
	solve_upper(m, line->weights);
	return likely;
}

/* All lines in one mood; returns the logarithm of how likely that makes the samples. */
static double fit_mood(mu_tune_model *m, size_t mood)
{
	double likely[MU_TUNE_LINES], most = -INFINITY, sum = 0, spread = 0;
	m->shape = moods[mood].shape;
	factorise(m, moods[mood].drift);
	for (size_t l = 0; l < MU_TUNE_LINES; l++) {
		m->lines[l].h = overheads[l];
		likely[l] = fit_line(m, &m->lines[l]);
		most = fmax(most, likely[l]);
	}
	for (size_t l = 0; l < MU_TUNE_LINES; l++)
		sum += m->lines[l].share = exp(likely[l] - most);
	for (size_t l = 0; l < MU_TUNE_LINES; l++)
		m->lines[l].share /= sum;
	for (size_t i = 0; i < m->n; i++)
		spread += log(m->factor[i * MURAL_TUNE_TRIALS + i]);
	return most + log(sum) - spread;
}

static void fit(mu_tune_model *m)
{
	double most = -INFINITY;
	size_t mood = 0;
	m->unit = 0;
	for (size_t i = 0; i < m->n; i++)
		m->unit += log(m->samples[i].cost) / (double)m->n;
	for (size_t i = 0; i < MOODS; i++) {
		double likely = fit_mood(m, i) + moods[i].likely;
		if (likely > most) {
			most = likely;
			mood = i;
		}
	}
	(void)fit_mood(m, mood);
}

void mu_tune_model_init(mu_tune_model *m)
{
	*m = (mu_tune_model){0};
	fit(m);
}

void mu_tune_model_add(mu_tune_model *m, const mu_tune_sample *sample)
{
	if (m->n == MURAL_TUNE_TRIALS)
		return;
	m->samples[m->n++] = *sample;
	fit(m);
}

/* Log cost as it is expected over all lines, and by the most favourable line that is not ruled out. */
static double expectation(const mu_tune_model *m, place at, double *least)
{
	double near[MURAL_TUNE_TRIALS], sum = 0;
	*least = INFINITY;
	for (size_t i = 0; i < m->n; i++)
		near[i] = covariance(m, at, place_of(&m->samples[i]));
	for (size_t l = 0; l < MU_TUNE_LINES; l++) {
		double log_cost = mean_of(m, m->lines[l].h, at);
		for (size_t i = 0; i < m->n; i++)
			log_cost += near[i] * m->lines[l].weights[i];
		sum += m->lines[l].share * log_cost;
		if (m->lines[l].share >= RULED_OUT)
			*least = fmin(*least, log_cost);
	}
	return sum;
}

/* Of log cost, for any of the lines. */
static double deviation(const mu_tune_model *m, place at)
{
	double known[MURAL_TUNE_TRIALS], left = covariance(m, at, at);
	for (size_t i = 0; i < m->n; i++)
		known[i] = covariance(m, at, place_of(&m->samples[i]));
	solve_lower(m, known);
	for (size_t i = 0; i < m->n; i++)
		left -= square(known[i]);
	return sqrt(fmax(left, 0));
}

double mu_tune_model_fixed(const mu_tune_model *m, uint32_t ranks, uint32_t threads)
{
	double own = 0, all = 0;
	size_t n = 0;
	for (size_t i = 0; i < m->n; i++) {
		bool same = m->samples[i].ranks == ranks && m->samples[i].threads == threads;
		own += same ? m->samples[i].fixed : 0;
		n += same;
		all += m->samples[i].fixed;
	}
	return n > 0 ? own / (double)n : m->n > 0 ? all / (double)m->n : 0;
}

mu_tune_forecast mu_tune_model_ask(const mu_tune_model *m, const mural_tune_point *p)
{
	const place at = {p->ranks, p->threads, (double)p->micro_batch};
	double images = (double)(p->micro_batch * p->accumulation) / p->threads, least;
	double compute = images * exp(expectation(m, at, &least)), error = m->n > 0 ? deviation(m, at) : 0;
	double fixed = mu_tune_model_fixed(m, p->ranks, p->threads);
	return (mu_tune_forecast){.step = compute + fixed,
	                          .error = compute * error,
	                          .least = images * exp(least - MU_TUNE_SIDE * error) + fixed};
}

void mu_tune_model_line(const mu_tune_model *m, uint32_t ranks, uint32_t threads, double *per_micro_batch,
                        double *per_image)
{
	/* through the model's expectation at two sizes between which most trials are */
	const place small = {ranks, threads, 4}, large = {ranks, threads, 64};
	double least, a = small.micro * exp(expectation(m, small, &least)) / threads,
	              b = large.micro * exp(expectation(m, large, &least)) / threads;
	*per_image = (b - a) / (large.micro - small.micro);
	*per_micro_batch = fmax(0, a - small.micro * *per_image);
}
