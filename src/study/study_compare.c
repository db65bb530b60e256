/* Points compared: medians over rounds, speed-up and what follows from it, with 95 % intervals from the rounds. SPDX-License-Identifier: MIT */
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
        offsetof(mu_run_facts, imbalance),
        offsetof(mu_run_facts, late),
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
		for (uint32_t r = 0; r < study->settings.rounds; r++) {
			mu_run_facts *facts = mu_study_facts(study, r, point);
			if (facts->done)
				values[n++] = *field_of(facts, fields[f]);
		}
		*field_of(median, fields[f]) = n > 0 ? mu_median(values, n) : NAN;
	}
	median->done = n > 0;
	return n;
}

/* The first point that differs in nothing but what the study varies. */
static size_t base_of(const mu_study *study, size_t point)
{
	const mu_point *p = &study->points[point];
	for (size_t b = 0; b < point; b++) {
		const mu_point *q = &study->points[b];
		bool alike = true;
		for (mural_study_axis a = 0; a < MURAL_STUDY_AXES; a++)
			alike = alike && (q->at[a] == p->at[a] || a == mu_study_varies(study->settings.kind));
		if (alike)
			return b;
	}
	return point;
}

/* Where the mean of n values with this sum and sum of squares lies. */
static mu_interval interval_of(double sum, double squares, size_t n)
{
	if (n < 2)
		return (mu_interval){NAN, NAN};
	double mean = sum / (double)n,
	       variance = fmax(0, squares / (double)n - mean * mean) * (double)n / (double)(n - 1);
	double half = student(n - 1) * sqrt(variance / (double)n);
	return (mu_interval){mean - half, mean + half};
}

/* Rounds in which both were measured are compared pair by pair: what a round has in common cancels. */
static mu_interval speed_up_in(const mu_study *study, size_t point, size_t base)
{
	double sum = 0, squares = 0;
	size_t n = 0;
	for (uint32_t r = 0; r < study->settings.rounds; r++) {
		const mu_run_facts *a = mu_study_facts(study, r, base), *b = mu_study_facts(study, r, point);
		if (!a->done || !b->done)
			continue;
		double log_ratio = log(b->images_per_second / a->images_per_second);
		sum += log_ratio;
		squares += log_ratio * log_ratio;
		n++;
	}
	mu_interval in = interval_of(sum, squares, n);
	return (mu_interval){exp(in.low), exp(in.high)};
}

static mu_interval communication_in(const mu_study *study, size_t point)
{
	double sum = 0, squares = 0;
	size_t n = 0;
	for (uint32_t r = 0; r < study->settings.rounds; r++) {
		const mu_run_facts *facts = mu_study_facts(study, r, point);
		if (!facts->done)
			continue;
		double fraction = facts->exposed / facts->step;
		sum += fraction;
		squares += fraction * fraction;
		n++;
	}
	return interval_of(sum, squares, n);
}

static double serial_of(double speed_up, double n)
{
	return n > 1 ? (1 / speed_up - 1 / n) / (1 - 1 / n) : NAN;
}

mu_comparison mu_study_compare(const mu_study *study, size_t point)
{
	mu_comparison c = {.base = base_of(study, point)};
	mu_run_facts base;
	c.rounds = take_medians(study, point, &c.median);
	take_medians(study, c.base, &base);
	double n = (double)study->points[point].ranks / study->points[c.base].ranks;
	c.speed_up = c.median.images_per_second / base.images_per_second;
	c.efficiency = c.speed_up / n;
	c.serial = serial_of(c.speed_up, n);
	c.communication = c.median.exposed / c.median.step;
	c.speed_up_in = speed_up_in(study, point, c.base);
	c.efficiency_in = (mu_interval){c.speed_up_in.low / n, c.speed_up_in.high / n};
	c.serial_in = (mu_interval){serial_of(c.speed_up_in.high, n), serial_of(c.speed_up_in.low, n)};
	c.communication_in = communication_in(study, point);
	return c;
}
