/* Initial weights: each tensor's distribution for both schemes, and that a value depends on its place alone.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/vit.h"

#define SEED 42u
#define SAMPLE 100000 /* elements looked at per tensor */
#define KS_LIMIT 2.2 /* sqrt(n) times the statistic exceeds this once in 30000 tries */

typedef enum expected_shape { FIXED, UNIFORM, NORMAL } expected_shape;

/* What vit_b_16's tensor must look like: value, bound or standard deviation; normals may be cut. */
typedef struct expected {
	expected_shape shape;
	double parameter, cut;
} expected;

#define FIX(value)              \
	{                       \
		FIXED, value, 0 \
	}
#define UNI(bound)                \
	{                         \
		UNIFORM, bound, 0 \
	}
#define NORM(std)                     \
	{                             \
		NORMAL, std, INFINITY \
	}
#define CUT(std)               \
	{                      \
		NORMAL, std, 2 \
	}

static const expected torchvision_b_16[MU_ROLE_COUNT] = {
        [MU_ROLE_PATCH_W] = CUT(0.0360844), [MU_ROLE_PATCH_B] = FIX(0),   [MU_ROLE_CLASS_TOKEN] = FIX(0),
        [MU_ROLE_POSITION] = NORM(0.02),    [MU_ROLE_NORM1_W] = FIX(1),   [MU_ROLE_NORM1_B] = FIX(0),
        [MU_ROLE_QKV_W] = UNI(0.0441942),   [MU_ROLE_QKV_B] = FIX(0),     [MU_ROLE_OUT_W] = UNI(0.0360844),
        [MU_ROLE_OUT_B] = FIX(0),           [MU_ROLE_NORM2_W] = FIX(1),   [MU_ROLE_NORM2_B] = FIX(0),
        [MU_ROLE_FC1_W] = UNI(0.0395285),   [MU_ROLE_FC1_B] = NORM(1e-6), [MU_ROLE_FC2_W] = UNI(0.0395285),
        [MU_ROLE_FC2_B] = NORM(1e-6),       [MU_ROLE_NORM_W] = FIX(1),    [MU_ROLE_NORM_B] = FIX(0),
        [MU_ROLE_HEAD_W] = FIX(0),          [MU_ROLE_HEAD_B] = FIX(0),
};

static const expected timm_b_16[MU_ROLE_COUNT] = {
        [MU_ROLE_PATCH_W] = UNI(0.0360844), [MU_ROLE_PATCH_B] = UNI(0.0360844), [MU_ROLE_CLASS_TOKEN] = NORM(1e-6),
        [MU_ROLE_POSITION] = CUT(0.02),     [MU_ROLE_NORM1_W] = FIX(1),         [MU_ROLE_NORM1_B] = FIX(0),
        [MU_ROLE_QKV_W] = CUT(0.02),        [MU_ROLE_QKV_B] = FIX(0),           [MU_ROLE_OUT_W] = CUT(0.02),
        [MU_ROLE_OUT_B] = FIX(0),           [MU_ROLE_NORM2_W] = FIX(1),         [MU_ROLE_NORM2_B] = FIX(0),
        [MU_ROLE_FC1_W] = CUT(0.02),        [MU_ROLE_FC1_B] = FIX(0),           [MU_ROLE_FC2_W] = CUT(0.02),
        [MU_ROLE_FC2_B] = FIX(0),           [MU_ROLE_NORM_W] = FIX(1),          [MU_ROLE_NORM_B] = FIX(0),
        [MU_ROLE_HEAD_W] = CUT(0.02),       [MU_ROLE_HEAD_B] = FIX(0),
};

static double phi(double z)
{
	return 0.5 * erfc(-z / sqrt(2));
}

static double cdf(const expected *e, double x)
{
	if (e->shape == UNIFORM)
		return fmin(fmax((x / e->parameter + 1) / 2, 0), 1);
	double low = phi(-e->cut / e->parameter), high = phi(e->cut / e->parameter);
	return (phi(x / e->parameter) - low) / (high - low);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* sqrt(n) times the Kolmogorov-Smirnov statistic of sorted x. */
static double ks(const expected *e, const double *x, size_t n)
{
	double largest = 0;
	for (size_t i = 0; i < n; i++) {
		double f = cdf(e, x[i]);
		largest = fmax(largest, fmax(fabs(f - (double)i / (double)n), fabs(f - (double)(i + 1) / (double)n)));
	}
	return largest * sqrt((double)n);
}

/* Variance of a normal of variance 1 cut at +-c: 1 - 2 c pdf(c) / (2 Phi(c) - 1). */
static double std_of(const expected *e)
{
	if (e->shape == UNIFORM)
		return e->parameter / sqrt(3);
	double c = e->cut / e->parameter;
	if (c > 8)
		return e->parameter;
	double pdf = exp(-c * c / 2) / sqrt(2 * 3.14159265358979323846);
	return e->parameter * sqrt(1 - 2 * c * pdf / (2 * phi(c) - 1));
}

static void assert_fixed(const char *name, const expected *e, const double *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (x[i] != e->parameter)
			fail_msg("%s[%zu] is %g, expected %g", name, i, x[i], e->parameter);
}

/* Sorts x. */
static void assert_distributed(const char *name, const expected *e, double *x, size_t n)
{
	if (e->shape == FIXED) {
		assert_fixed(name, e, x, n);
		return;
	}
	double mean = 0, squares = 0, std = std_of(e), size = (double)n;
	for (size_t i = 0; i < n; i++)
		mean += x[i] / size;
	for (size_t i = 0; i < n; i++)
		squares += (x[i] - mean) * (x[i] - mean) / size;
	qsort(x, n, sizeof *x, by_value);
	if (!(fabs(mean) < 4.5 * std / sqrt(size)))
		fail_msg("%s: mean %g with standard deviation %g", name, mean, std);
	if (!(fabs(sqrt(squares) / std - 1) < 4.5 / sqrt(size)))
		fail_msg("%s: standard deviation %g, expected %g", name, sqrt(squares), std);
	double bound = e->shape == UNIFORM ? e->parameter : fmin(e->cut, 7 * e->parameter);
	double reach = e->shape == UNIFORM ? 0.98 * bound : 1.9 * e->parameter;
	if (!(x[0] >= -bound && x[n - 1] <= bound && x[0] < -reach && x[n - 1] > reach))
		fail_msg("%s: from %g to %g, bound %g", name, x[0], x[n - 1], bound);
	double statistic = ks(e, x, n);
	if (!(statistic < KS_LIMIT))
		fail_msg("%s: Kolmogorov-Smirnov %g", name, statistic);
}

static double *initialise(const mu_vit *vit, size_t unit, uint32_t seed)
{
	mural_error err = {0};
	double *span = malloc(vit->units[unit].elements * sizeof *span);
	assert_non_null(span);
	assert_int_equal(mu_vit_initialise(vit, unit, seed, MU_F64, span, &err), MURAL_OK);
	return span;
}

static void assert_scheme(mural_model_config *config, const expected table[MU_ROLE_COUNT])
{
	mu_vit vit;
	assert_int_equal(mu_vit_init(&vit, config, NULL), MURAL_OK);
	for (size_t u = 0; u < vit.n_units; u++) {
		double *span = initialise(&vit, u, SEED);
		for (size_t i = 0; i < vit.units[u].n_tensors; i++) {
			const mu_tensor *tensor = &vit.units[u].tensors[i];
			size_t n = tensor->elements < SAMPLE ? tensor->elements : SAMPLE;
			assert_distributed(tensor->name, &table[tensor->role], span + tensor->offset, n);
		}
		free(span);
	}
	mu_vit_release(&vit);
}

static mural_model_config b_16(size_t depth, mural_init init)
{
	mural_model_config c;
	mural_model_defaults(&c);
	c.depth = depth;
	c.init = init;
	return c;
}

static void torchvision_scheme(void **state)
{
	(void)state;
	mural_model_config c = b_16(1, MURAL_INIT_TORCHVISION);
	assert_scheme(&c, torchvision_b_16);
}

static void timm_scheme(void **state)
{
	(void)state;
	mural_model_config c = b_16(1, MURAL_INIT_TIMM);
	assert_scheme(&c, timm_b_16);
}

/* One pixel per patch: a standard deviation of 1, so the cut at 2 takes a twentieth away. */
static void the_cut_is_absolute(void **state)
{
	(void)state;
	mural_model_config c = b_16(1, MURAL_INIT_TORCHVISION);
	c.channels = 1;
	c.patch = 1;
	c.image_height = c.image_width = 2;
	c.width = 30000;
	c.heads = 1;
	c.mlp_width = 1;
	mu_vit vit;
	assert_int_equal(mu_vit_init(&vit, &c, NULL), MURAL_OK);
	double *span = initialise(&vit, 0, SEED);
	assert_distributed("patch", &(expected)CUT(1), span + vit.units[0].tensors[0].offset, c.width);
	free(span);
	mu_vit_release(&vit);
}

/* Computed from the definition with another program: a change here breaks everybody's reproducibility. */
static void values_are_promised(void **state)
{
	(void)state;
	mural_model_config c = b_16(1, MURAL_INIT_TORCHVISION);
	mu_vit vit;
	assert_int_equal(mu_vit_init(&vit, &c, NULL), MURAL_OK);
	double *embed = initialise(&vit, 0, SEED), *block = initialise(&vit, 1, SEED);
	const double *position = embed + mu_unit_tensor(&vit.units[0], MU_ROLE_POSITION)->offset;
	const double *qkv = block + mu_unit_tensor(&vit.units[1], MU_ROLE_QKV_W)->offset;
	assert_true(fabs(position[0] - -0.002390901014996096) < 1e-15);
	assert_true(fabs(position[1] - -0.027602924557839546) < 1e-15);
	assert_true(fabs(position[2] - -0.009224182997917567) < 1e-15);
	assert_true(fabs(position[1000] - -0.0224540648051894) < 1e-15);
	assert_true(fabs(qkv[0] - -0.03922026887624193) < 1e-15);
	assert_true(fabs(qkv[1] - -0.030973737436830885) < 1e-15);
	assert_true(fabs(qkv[1000] - 0.014754833224813755) < 1e-15);
	free(embed);
	free(block);
	mu_vit_release(&vit);
}

static void order_and_type_do_not_matter(void **state)
{
	(void)state;
	mural_model_config c;
	mural_model_defaults(&c);
	assert_int_equal(mural_model_preset(&c, "mu", NULL), MURAL_OK);
	c.depth = 3;
	c.classes = 5;
	mu_vit vit;
	assert_int_equal(mu_vit_init(&vit, &c, NULL), MURAL_OK);
	const mu_unit *unit = &vit.units[2];
	double *alone = initialise(&vit, 2, SEED);
	for (size_t u = vit.n_units; u-- > 0;)
		free(initialise(&vit, u, SEED + 1));
	double *again = initialise(&vit, 2, SEED), *neighbour = initialise(&vit, 1, SEED);
	double *other = initialise(&vit, 2, SEED + 1);
	assert_memory_equal(alone, again, unit->elements * sizeof *alone);
	float *single = malloc(unit->elements * sizeof *single);
	assert_non_null(single);
	assert_int_equal(mu_vit_initialise(&vit, 2, SEED, MU_F32, single, NULL), MURAL_OK);
	size_t random = 0, as_neighbour = 0, as_other = 0;
	for (size_t i = 0; i < unit->elements; i++) {
		assert_true(single[i] == (float)alone[i]);
		bool constant = alone[i] == 0 || alone[i] == 1;
		random += !constant;
		as_neighbour += !constant && alone[i] == neighbour[i];
		as_other += !constant && alone[i] == other[i];
	}
	assert_true(random > 10000);
	assert_int_equal(as_neighbour, 0);
	assert_int_equal(as_other, 0);
	free(alone);
	free(again);
	free(neighbour);
	free(other);
	free(single);
	mu_vit_release(&vit);
}

static void padding_is_zero(void **state)
{
	(void)state;
	mural_model_config c = b_16(1, MURAL_INIT_TIMM);
	c.classes = 5;
	c.width = 36;
	mu_vit vit;
	assert_int_equal(mu_vit_init(&vit, &c, NULL), MURAL_OK);
	for (size_t u = 0; u < vit.n_units; u++) {
		const mu_unit *unit = &vit.units[u];
		double *span = initialise(&vit, u, SEED);
		for (size_t i = 0; i < unit->n_tensors; i++) {
			const mu_tensor *tensor = &unit->tensors[i];
			size_t end = i + 1 < unit->n_tensors ? tensor[1].offset : unit->elements;
			for (size_t e = tensor->offset + tensor->elements; e < end; e++)
				assert_true(span[e] == 0);
		}
		free(span);
	}
	mu_vit_release(&vit);
}

static void other_types_are_refused(void **state)
{
	(void)state;
	mural_model_config c = b_16(1, MURAL_INIT_TIMM);
	mu_vit vit;
	mural_error err = {0};
	uint16_t span[1] = {0};
	assert_int_equal(mu_vit_init(&vit, &c, NULL), MURAL_OK);
	assert_int_equal(mu_vit_initialise(&vit, 0, SEED, MU_BF16, span, &err), MURAL_BUG);
	mu_vit_release(&vit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(torchvision_scheme),           cmocka_unit_test(timm_scheme),
	        cmocka_unit_test(the_cut_is_absolute),          cmocka_unit_test(values_are_promised),
	        cmocka_unit_test(order_and_type_do_not_matter), cmocka_unit_test(padding_is_zero),
	        cmocka_unit_test(other_types_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
