/* Drives every row of a table against the reference: cases x types x seeds. SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_DIFFERENTIAL_H
#define TESTS_SUPPORT_DIFFERENTIAL_H

#include "cases.h"

typedef struct differential_options {
	uint32_t seed; /* of the first trial; the next has seed + 1 */
	size_t trials; /* per case and type; more than 64 goes through the flags' combinations again */
	const char *only; /* name of one case, or NULL */
	void (*prepare)(mu_ops_context *context); /* called on each context of the table after open, or NULL */
	FILE *out; /* failures, each with a line that replays it, and a summary; or NULL */
} differential_options;

/* Number of failed trials; at most eight per case and type are tried further. Cannot-open counts as one. */
size_t differential_run(const mu_ops *table, const differential_options *options);

/* MURAL_TEST_SEED and MURAL_TEST_CASES, or 1 and `trials`; MURAL_TEST_ONLY. */
differential_options differential_options_from_environment(size_t trials);

#endif
