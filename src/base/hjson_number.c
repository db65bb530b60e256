/* Numbers in JSON's grammar, exact where they are whole: 9223372036854775807 keeps its last digit and 5e8 is an integer.
 * SPDX-License-Identifier: MIT */
#include "base/hjson.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

static size_t digits_at(const char *text, size_t bytes, size_t from)
{
	size_t n = 0;
	while (from + n < bytes && text[from + n] >= '0' && text[from + n] <= '9')
		n++;
	return n;
}

/* digits[0 .. bytes) holds at most one point; times 10^exponent. Sets whole and magnitude. */
static void find_whole(mu_hjson_number *number, const char *digits, size_t bytes, long exponent)
{
	size_t zeros = 0;
	const char *point = memchr(digits, '.', bytes);
	if (point)
		exponent -= (long)(digits + bytes - point - 1);
	while (bytes > 0 && (digits[bytes - 1] == '0' || digits[bytes - 1] == '.')) {
		zeros += digits[bytes - 1] == '0';
		bytes--;
	}
	exponent += (long)zeros;
	number->magnitude = 0;
	number->whole = bytes == 0 || exponent >= 0;
	for (size_t i = 0; number->whole && i < bytes; i++)
		if (digits[i] != '.')
			number->whole = !__builtin_mul_overflow(number->magnitude, UINT64_C(10), &number->magnitude) &&
			                !__builtin_add_overflow(number->magnitude, (uint64_t)(digits[i] - '0'),
			                                        &number->magnitude);
	while (number->whole && number->magnitude && exponent-- > 0)
		number->whole = !__builtin_mul_overflow(number->magnitude, UINT64_C(10), &number->magnitude);
}

/* The point is a point whatever the program's locale. */
static double to_double(const char *text)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	double value = c ? strtod_l(text, NULL, c) : strtod(text, NULL);
	if (c)
		freelocale(c);
	return value;
}

bool mu_hjson_number_read(mu_hjson_number *number, const char *text, size_t bytes)
{
	size_t at = bytes > 0 && text[0] == '-';
	size_t first = at, n = digits_at(text, bytes, at);
	if (n == 0 || (n > 1 && text[at] == '0'))
		return false;
	at += n;
	if (at < bytes && text[at] == '.') {
		n = digits_at(text, bytes, at + 1);
		if (n == 0)
			return false;
		at += 1 + n;
	}
	size_t mantissa = at - first;
	long exponent = 0;
	if (at < bytes && (text[at] == 'e' || text[at] == 'E')) {
		bool minus = at + 1 < bytes && text[at + 1] == '-';
		at += 1 + (at + 1 < bytes && (text[at + 1] == '-' || text[at + 1] == '+'));
		n = digits_at(text, bytes, at);
		if (n == 0)
			return false;
		for (size_t i = 0; i < n; i++)
			exponent = exponent < 100000000 ? exponent * 10 + (text[at + i] - '0') : exponent;
		exponent = minus ? -exponent : exponent;
		at += n;
	}
	if (at != bytes)
		return false;
	number->negative = first > 0;
	find_whole(number, text + first, mantissa, exponent);
	if (number->whole && number->magnitude <= UINT64_C(1) << 53)
		number->value = number->negative ? -(double)number->magnitude : (double)number->magnitude;
	else
		number->value = to_double(text);
	return true;
}
