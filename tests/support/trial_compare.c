/* How far two correct implementations of a row may be apart, and are. SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "kernels/reference/element.h"
#include "trial.h"

/* Half the distance from 1 to the next number: the relative error of one rounding. */
static double unit_roundoff(mu_dtype type)
{
	switch (type) {
	case MU_F64: return ldexp(1, -53);
	case MU_F32: return ldexp(1, -24);
	case MU_F16: return ldexp(1, -11);
	case MU_BF16: return ldexp(1, -8);
	default: return 0;
	}
}

/* Results have size `magnitude`. With u the unit roundoff of the type and a that of the sums inside (float, or double
 * for MU_F64):
 *     4 u            each side rounds its result once, and perhaps one value of that size on the way
 *     4 a            a few elementary functions (exp, erf, tanh, square root) within an ulp or two each
 *     4 a sqrt(n)    a sum of n terms in any order is a random walk of n roundings; 4 standard deviations, because the
 *                    largest of some ten thousand elements is looked at
 * A wrong formula is off by far more: a missed term of n = 197 by 1/14 of the magnitude. */
double trial_tolerance(mu_dtype accuracy, size_t length, double magnitude)
{
	const double u = unit_roundoff(accuracy), a = unit_roundoff(accuracy == MU_F64 ? MU_F64 : MU_F32);
	return (4 * u + (4 + 4 * sqrt((double)length)) * a) * magnitude;
}

static bool is_floating(mu_dtype type)
{
	return unit_roundoff(type) > 0;
}

static double value(mu_dtype type, const void *p, size_t i)
{
	return type == MU_I32 ? ((const int32_t *)p)[i] : mu_element_load(type, p, i);
}

static bool same_bits(const void *a, const void *b, mu_dtype type, size_t i)
{
	const size_t bytes = mu_dtype_bytes(type);
	return memcmp((const char *)a + i * bytes, (const char *)b + i * bytes, bytes) == 0;
}

/* One array on both sides, with the accuracy that the reference's side asks for. */
static double compare_array(const trial_side *reference, trial_side *tested, const trial_array_entry *r,
                            const trial_array_entry *t)
{
	const void *want = reference->mirror + r->offset, *have = tested->mirror + t->offset;
	double magnitude = r->magnitude, worst = 0;
	for (size_t i = 0; i < r->n && r->magnitude > 0; i++) {
		const double size = fabs(mu_element_load(r->type, want, i));
		if (isfinite(size))
			magnitude = fmax(magnitude, size);
	}
	const double tolerance = trial_tolerance(r->accuracy, r->length, magnitude);
	for (size_t i = 0; i < r->n; i++) {
		const double a = value(r->type, want, i), b = value(r->type, have, i);
		const bool both_nan = is_floating(r->type) && isnan(a) && isnan(b);
		if (same_bits(want, have, r->type, i) || both_nan)
			continue;
		const double error = fabs(a - b);
		worst = fmax(worst, error / tolerance);
		if (!(error <= tolerance) && !tested->fault[0])
			snprintf(tested->fault, sizeof tested->fault,
			         "'%s' differs at %zu of %zu: %.9g, reference %.9g, tolerance %.3g", r->name, i, r->n,
			         b, a, tolerance);
	}
	return worst;
}

double trial_compare(const trial_side *reference, trial_side *tested)
{
	double worst = 0;
	if (reference->fault[0] && !tested->fault[0])
		snprintf(tested->fault, sizeof tested->fault, "the reference itself: %.480s", reference->fault);
	if (reference->n_arrays != tested->n_arrays && !tested->fault[0])
		snprintf(tested->fault, sizeof tested->fault, "the case drew differently on the two sides");
	for (size_t i = 0; i < reference->n_arrays && !tested->fault[0]; i++) {
		const trial_array_entry *r = &reference->arrays[i], *t = &tested->arrays[i];
		const unsigned kind = r->role & 3;
		if (r->expected)
			worst = fmax(worst, compare_array(reference, tested, r, t));
		else if (kind == TRIAL_OUTPUT || kind == TRIAL_ADDED)
			snprintf(tested->fault, sizeof tested->fault, "the case does not look at '%s'", r->name);
	}
	return worst;
}
