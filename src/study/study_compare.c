/* Points compared: medians over rounds, speed-up with its interval, efficiency. SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "study/median.h"
#include "study/study_inside.h"

/* Student's t, two-sided 95 %, for n - 1 = 1 .. 30 degrees of freedom. */
static double student(size_t freedom)
{
	static const double t[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
	                           2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
	                           2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
	return freedom <= 30 ? t[freedom - 1] : 1.96;
}

/* Fields of which medians are taken. */
static const size_t fields[] = {
        offsetof(mu_run_facts, step),
        offsetof(mu_run_facts, data),
        offsetof(mu_run_facts, forward),
        offsetof(mu_run_facts, backward),
        offsetof(mu_run_facts, exposed),
        offsetof(mu_run_facts, hidden),
        offsetof(mu_run_facts, optimizer),
        offsetof(mu_run_facts, images_per_step),
        offsetof(mu_run_facts, images_per_second),
        offsetof(mu_run_facts, images_per_epoch),
        offsetof(mu_run_facts, epoch),
        offsetof(mu_run_facts, train_loss),
        offsetof(mu_run_facts, train_accuracy),
        offsetof(mu_run_facts, test_accuracy),
        offsetof(mu_run_facts, peak_memory_bytes),
};

static double *field_of(mu_run_facts *facts, size_t offset)
{
	void *field = (char *)facts + offset;
	return field;
}

static size_t take_medians(const mu_study *study, size_t point, mu_run_facts *median)
{
	double values[1000];
	size_t n = 0;
	*median = (mu_run_facts){0};
	for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
		n = 0;
		for (uint32_t r = 0; r < study->settings->rounds; r++) {
			mu_run_facts *facts = mu_study_facts(study, r, point);
			if (facts->done)
				values[n++] = *field_of(facts, fields[f]);
		}
		*field_of(median, fields[f]) = n > 0 ? mu_median(values, n) : NAN;
	}
	median->done = n > 0;
	return n;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* The first point that differs in ranks only; in a study of something else than ranks, in that only. */
static size_t base_of(const mu_study *study, size_t point)
{
	const mu_point *p = &study->points[point];
	mural_study_kind kind = study->settings->kind;
	bool by_ranks = kind == MURAL_STUDY_STRONG || kind == MURAL_STUDY_WEAK;
	for (size_t b = 0; b < point; b++) {
		const mu_point *q = &study->points[b];
		if ((by_ranks || q->ranks == p->ranks) && (q->batch == p->batch || kind == MURAL_STUDY_BATCH) &&
		    (q->accumulation == p->accumulation || kind == MURAL_STUDY_ACCUMULATION) &&
		    (same_text(q->precision, p->precision) || kind == MURAL_STUDY_PRECISION) &&
		    (same_text(q->optimizer, p->optimizer) || kind == MURAL_STUDY_OPTIMIZER))
			return b;
	}
	return point;
}

/* Rounds in which both were measured are compared pair by pair: what a round has in common cancels. */
static void find_interval(const mu_study *study, size_t point, mu_comparison *c)
{
	double sum = 0, squares = 0;
	size_t n = 0;
	for (uint32_t r = 0; r < study->settings->rounds; r++) {
		const mu_run_facts *a = mu_study_facts(study, r, c->base), *b = mu_study_facts(study, r, point);
		if (!a->done || !b->done)
			continue;
		double log_ratio = log(b->images_per_second / a->images_per_second);
		sum += log_ratio;
		squares += log_ratio * log_ratio;
		n++;
	}
	c->low = c->high = NAN;
	if (n < 2)
		return;
	double mean = sum / (double)n,
	       variance = fmax(0, squares / (double)n - mean * mean) * (double)n / (double)(n - 1);
	double half = student(n - 1) * sqrt(variance / (double)n);
	c->low = exp(mean - half);
	c->high = exp(mean + half);
}

mu_comparison mu_study_compare(const mu_study *study, size_t point)
{
	mu_comparison c = {.base = base_of(study, point), .speed_up = NAN, .efficiency = NAN, .serial = NAN};
	mu_run_facts base;
	c.rounds = take_medians(study, point, &c.median);
	take_medians(study, c.base, &base);
	double n = (double)study->points[point].ranks / study->points[c.base].ranks;
	c.speed_up = c.median.images_per_second / base.images_per_second;
	c.efficiency = c.speed_up / n;
	if (n > 1)
		c.serial = (1 / c.speed_up - 1 / n) / (1 - 1 / n);
	c.communication = c.median.exposed / c.median.step;
	find_interval(study, point, &c);
	return c;
}
