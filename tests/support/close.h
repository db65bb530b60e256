/* Are arrays of doubles the same but for rounding? For CMocka suites: include after cmocka.h. SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_CLOSE_H
#define TESTS_SUPPORT_CLOSE_H

#include <math.h>
#include <stddef.h>

/* 1e-13 is some hundred roundings of double: both sides work in it, in another order. */
static inline void assert_close(const char *what, const double *have, const double *want, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(fabs(have[i] - want[i]) <= 1e-13 * fmax(1, fabs(want[i]))))
			fail_msg("%s[%zu] is %.17g, expected %.17g", what, i, have[i], want[i]);
}

#endif
