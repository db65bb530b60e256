/* Edit distance after Damerau (optimal string alignment), in half steps so that a wrong case costs half an edit.
 * SPDX-License-Identifier: MIT */
#include "base/nearest.h"

#include <ctype.h>
#include <string.h>

#define LONGEST 63
#define STEP 2 /* cost of one edit */

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t replace_cost(char a, char b)
{
	if (a == b)
		return 0;
	return tolower((unsigned char)a) == tolower((unsigned char)b) ? STEP / 2 : STEP;
}

static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t d[LONGEST + 1][LONGEST + 1];
	for (size_t i = 0; i <= n_a; i++)
		d[i][0] = i * STEP;
	for (size_t j = 0; j <= n_b; j++)
		d[0][j] = j * STEP;
	for (size_t i = 1; i <= n_a; i++)
		for (size_t j = 1; j <= n_b; j++) {
			size_t best = d[i - 1][j - 1] + replace_cost(a[i - 1], b[j - 1]);
			best = smaller(best, d[i - 1][j] + STEP);
			best = smaller(best, d[i][j - 1] + STEP);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = smaller(best, d[i - 2][j - 2] + STEP);
			d[i][j] = best;
		}
	return d[n_a][n_b];
}

const char *mu_nearest(const char *word, const char *const *candidates, size_t n)
{
	const char *nearest = NULL;
	size_t least = (size_t)-1, length = strnlen(word, LONGEST);
	for (size_t i = 0; i < n; i++) {
		size_t candidate_length = strnlen(candidates[i], LONGEST);
		size_t longer = length > candidate_length ? length : candidate_length;
		size_t cost = distance(word, length, candidates[i], candidate_length);
		if (cost < least && cost <= STEP * (longer / 3 + 1)) {
			least = cost;
			nearest = candidates[i];
		}
	}
	return nearest;
}
