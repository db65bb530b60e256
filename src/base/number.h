/* Numbers as text that reads back as the same number. SPDX-License-Identifier: MIT */
#ifndef MU_BASE_NUMBER_H
#define MU_BASE_NUMBER_H

#define MU_NUMBER_SIZE 352 /* enough for any double, even in fixed notation: sign, 309 digits, point, 9 digits, NUL */

/* A finite value in the fewest of 15 to 17 significant digits that give it back exactly, with a decimal point whatever
 * the locale. Returns text. Infinities and NaN become "inf", "-inf", "nan": formats without them ask isfinite first. */
const char *mu_number_text(double value, char text[MU_NUMBER_SIZE]);

/* A finite value with `digits` (0 .. 9) behind the point, for people and tables; same point, same words otherwise. */
const char *mu_number_fixed(double value, int digits, char text[MU_NUMBER_SIZE]);

#endif
