/* A rank's seconds by images. SPDX-License-Identifier: MIT */
#include "engine/balance_model.h"

#include <math.h>

/* Relative, of one row (a median of a few steps): what to begin with, and what it may become. */
static const double FIRST_NOISE = 0.03, LEAST_NOISE = 0.004, MOST_NOISE = 0.15;
/* How much of a micro-batch's seconds may be fixed, where nothing is known: one standard deviation. */
static const double FIXED_PART = 0.1;
/* How far a described speed may be off. */
static const double DESCRIBED = 0.3;
/* How much faster or slower a device gets from one row to the next, as a matter of course. */
static const double WANDERS = 0.004;
/* A row is set aside beyond so many standard deviations, and beyond this much in any case. */
static const double ASIDE = 4, ASIDE_LEAST = 0.06;

void mu_balance_model_begin(mu_balance_model *model, double seconds_per_micro, double seconds_per_image)
{
	*model = (mu_balance_model){.noise = FIRST_NOISE};
	if (seconds_per_image <= 0)
		return;
	double a = seconds_per_micro, b = seconds_per_image, v = DESCRIBED * DESCRIBED;
	model->a = a;
	model->b = b;
	model->aa = v * a * a;
	model->ab = v * a * b;
	model->bb = v * b * b;
	model->told = true;
}

/* The first row, where nothing was known: all of it is per image, give or take. */
static void begin_with(mu_balance_model *m, double n, double k, double y)
{
	double unsure = FIXED_PART * y / k;
	mu_balance_model_begin(m, 0, 0);
	m->b = y / n;
	m->aa = unsure * unsure;
	m->ab = -k / n * m->aa;
	m->bb = k * k / (n * n) * m->aa + m->noise * m->noise * m->b * m->b;
}

/* Both a and b may have changed by the same unknown factor of about this size. */
static void loosen(mu_balance_model *m, double by)
{
	m->aa += by * by * m->a * m->a;
	m->ab += by * by * m->a * m->b;
	m->bb += by * by * m->b * m->b;
}

static double variance(const mu_balance_model *m, double n, double k)
{
	return k * k * m->aa + 2 * k * n * m->ab + n * n * m->bb;
}

/* Seconds below 0 do not exist: the belief given that a is `floor`. */
static void keep_positive(mu_balance_model *m, double n, double y)
{
	if (m->a < 0) {
		m->b += m->aa > 0 ? m->ab / m->aa * -m->a : 0;
		m->a = 0;
	}
	double least = 1e-3 * y / n;
	if (m->b < least) {
		m->a += m->bb > 0 ? m->ab / m->bb * (least - m->b) : 0;
		m->a = fmax(m->a, 0);
		m->b = least;
	}
}

static void follow(mu_balance_model *m, double n, double k, double y)
{
	double noise = m->noise * y, spread = variance(m, n, k) + noise * noise, off = y - (m->a * k + m->b * n);
	double ga = (k * m->aa + n * m->ab) / spread, gb = (k * m->ab + n * m->bb) / spread;
	double va = k * m->aa + n * m->ab, vb = k * m->ab + n * m->bb;
	m->a += ga * off;
	m->b += gb * off;
	m->aa = fmax(0, m->aa - ga * va);
	m->ab -= ga * vb;
	m->bb = fmax(0, m->bb - gb * vb);
	keep_positive(m, n, y);
}

/* Slowly, and a row far off counts as three standard deviations. */
static void learn_noise(mu_balance_model *m, double relative)
{
	double size = fmin(fabs(relative), 3 * m->noise);
	double square = 0.9 * m->noise * m->noise + 0.1 * size * size;
	m->noise = fmin(MOST_NOISE, fmax(LEAST_NOISE, sqrt(square)));
}

/* Two rows in a row that are off alike. */
static bool confirms(double before, double now)
{
	return before > 0 && (before > 1) == (now > 1) && fabs(log(now / before)) < fmax(0.1, 0.5 * fabs(log(before)));
}

void mu_balance_model_see(mu_balance_model *m, double images, double micro_batches, double seconds)
{
	double n = images, k = micro_batches, y = seconds;
	m->drift = 0;
	if (m->b <= 0) {
		begin_with(m, n, k, y);
		return;
	}
	loosen(m, WANDERS);
	double expected = m->a * k + m->b * n, ratio = y / expected;
	double sigma = sqrt(variance(m, n, k) + m->noise * m->noise * expected * expected) / expected;
	bool aside = fabs(ratio - 1) > fmax(ASIDE * sigma, ASIDE_LEAST) && !m->told;
	if (aside && !confirms(m->suspect, ratio)) {
		m->suspect = ratio;
		learn_noise(m, ratio - 1);
		return;
	}
	if (aside) {
		m->drift = ratio;
		loosen(m, fabs(ratio - 1));
	} else {
		learn_noise(m, ratio - 1);
	}
	m->suspect = 0;
	m->told = false;
	follow(m, n, k, y);
}

double mu_balance_micro_batches(int images, int micro)
{
	int full = images / micro; /* without overflow, however large both are */
	return full + (images % micro != 0);
}

double mu_balance_model_seconds(const mu_balance_model *model, int images, int micro)
{
	return images > 0 ? model->a * mu_balance_micro_batches(images, micro) + model->b * (double)images : 0;
}

double mu_balance_model_error(const mu_balance_model *model, int images, int micro)
{
	double seconds = mu_balance_model_seconds(model, images, micro);
	return seconds > 0 ? sqrt(fmax(0, variance(model, images, mu_balance_micro_batches(images, micro)))) / seconds
	                   : 0;
}
