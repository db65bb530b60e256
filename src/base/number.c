/* Round-trip numbers: try 15, 16, 17 digits (0.1 stays 0.1; 17 always suffice). SPDX-License-Identifier: MIT */
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* inf and nan in words that do not depend on the C library's sign of NaN; NULL for finite values. */
static const char *not_finite(double value)
{
	if (isnan(value))
		return "nan";
	if (isinf(value))
		return value > 0 ? "inf" : "-inf";
	return NULL;
}

/* Replaces the locale's decimal point, which may have several bytes. */
static const char *with_point(char *text)
{
	char *to = text;
	for (const char *from = text; *from; from++) {
		if (strchr("0123456789+-e", *from))
			*to++ = *from;
		else if (to == text || to[-1] != '.')
			*to++ = '.';
	}
	*to = '\0';
	return text;
}

const char *mu_number_text(double value, char text[MU_NUMBER_SIZE])
{
	const char *word = not_finite(value);
	if (word)
		return strcpy(text, word);
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, MU_NUMBER_SIZE, "%.*g", digits, value);
		if (strtod(text, NULL) == value) /* both in the caller's locale */
			break;
	}
	return with_point(text);
}

const char *mu_number_fixed(double value, int digits, char text[MU_NUMBER_SIZE])
{
	const char *word = not_finite(value);
	if (word)
		return strcpy(text, word);
	snprintf(text, MU_NUMBER_SIZE, "%.*f", digits, value);
	return with_point(text);
}
