/* "Did you mean ...?": the known word nearest to an unknown one. SPDX-License-Identifier: MIT */
#ifndef MU_BASE_NEAREST_H
#define MU_BASE_NEAREST_H

#include <stddef.h>

/* The candidate with the fewest edits (insert, delete, replace, swap of neighbours; a wrong case counts half) from
 * `word`, the first of equals; NULL if even that one would change more than a third of the longer word plus one letter.
 * Words are compared over their first 63 bytes. */
const char *mu_nearest(const char *word, const char *const *candidates, size_t n);

#endif
