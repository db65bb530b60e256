/* The JSON writer: layout, escapes, numbers that read back, misuse. SPDX-License-Identifier: MIT */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/number.h"

typedef struct fixture {
	mu_json json;
	FILE *out;
	char *text;
	size_t size;
} fixture;

static void begin(fixture *f, mu_json_style style)
{
	*f = (fixture){0};
	f->out = open_memstream(&f->text, &f->size);
	assert_non_null(f->out);
	mu_json_init(&f->json, f->out, style);
}

static void expect(fixture *f, bool finished, const char *text)
{
	assert_int_equal(mu_json_finished(&f->json), finished);
	fclose(f->out);
	assert_string_equal(f->text, text);
	free(f->text);
}

static void test_line(void **state)
{
	(void)state;
	for (int pretty = 0; pretty < 2; pretty++) {
		fixture f;
		begin(&f, pretty ? MU_JSON_PRETTY : MU_JSON_COMPACT);
		mu_json_array_begin(&f.json, NULL);
		for (unsigned i = 0; i < 2; i++) {
			mu_json_line_begin(&f.json, NULL);
			mu_json_unsigned(&f.json, "class", i);
			mu_json_line_begin(&f.json, "taken_for");
			mu_json_unsigned(&f.json, "3", 7);
			mu_json_unsigned(&f.json, "5", 1);
			mu_json_object_end(&f.json);
			mu_json_array_begin(&f.json, "none");
			mu_json_array_end(&f.json);
			mu_json_object_end(&f.json);
		}
		mu_json_unsigned(&f.json, NULL, 9);
		mu_json_array_end(&f.json);
		expect(&f, true,
		       pretty ? "[\n"
		                "  {\"class\": 0, \"taken_for\": {\"3\": 7, \"5\": 1}, \"none\": []},\n"
		                "  {\"class\": 1, \"taken_for\": {\"3\": 7, \"5\": 1}, \"none\": []},\n"
		                "  9\n"
		                "]\n"
		              : "[{\"class\":0,\"taken_for\":{\"3\":7,\"5\":1},\"none\":[]},"
		                "{\"class\":1,\"taken_for\":{\"3\":7,\"5\":1},\"none\":[]},9]");
	}
}

static void test_pretty(void **state)
{
	(void)state;
	fixture f;
	begin(&f, MU_JSON_PRETTY);
	mu_json_object_begin(&f.json, NULL);
	mu_json_string(&f.json, "name", "Mural");
	mu_json_object_begin(&f.json, "empty");
	mu_json_object_end(&f.json);
	mu_json_array_begin(&f.json, "ranks");
	mu_json_unsigned(&f.json, NULL, UINT64_MAX);
	mu_json_integer(&f.json, NULL, INT64_MIN);
	mu_json_array_end(&f.json);
	mu_json_bool(&f.json, "on", true);
	mu_json_bool(&f.json, "off", false);
	mu_json_null(&f.json, "nothing");
	mu_json_string(&f.json, "none", NULL);
	mu_json_object_end(&f.json);
	expect(&f, true,
	       "{\n"
	       "  \"name\": \"Mural\",\n"
	       "  \"empty\": {},\n"
	       "  \"ranks\": [\n"
	       "    18446744073709551615,\n"
	       "    -9223372036854775808\n"
	       "  ],\n"
	       "  \"on\": true,\n"
	       "  \"off\": false,\n"
	       "  \"nothing\": null,\n"
	       "  \"none\": null\n"
	       "}\n");
}

static void test_compact(void **state)
{
	(void)state;
	fixture f;
	begin(&f, MU_JSON_COMPACT);
	mu_json_object_begin(&f.json, NULL);
	mu_json_array_begin(&f.json, "shape");
	mu_json_unsigned(&f.json, NULL, 3);
	mu_json_unsigned(&f.json, NULL, 197);
	mu_json_array_end(&f.json);
	mu_json_string(&f.json, "dtype", "F32");
	mu_json_object_end(&f.json);
	expect(&f, true, "{\"shape\":[3,197],\"dtype\":\"F32\"}");
}

static void expect_escaped(const char *text, const char *json)
{
	fixture f;
	begin(&f, MU_JSON_COMPACT);
	mu_json_string(&f.json, NULL, text);
	expect(&f, true, json);
}

static void test_escapes(void **state)
{
	(void)state;
	expect_escaped("a\"b\\c/d", "\"a\\\"b\\\\c/d\"");
	expect_escaped("\n\r\t\x01\x1f\x7f", "\"\\n\\r\\t\\u0001\\u001f\\u007f\"");
	expect_escaped("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8e\xa8", "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8e\xa8\"");
	/* Not UTF-8: a lone continuation, a cut sequence, an overlong slash, a surrogate, beyond U+10FFFF, 0xff. */
	expect_escaped("x\x80y", "\"x\xef\xbf\xbdy\"");
	expect_escaped("x\xe2\x82", "\"x\xef\xbf\xbd\xef\xbf\xbd\"");
	expect_escaped("\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	expect_escaped("\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	expect_escaped("\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	expect_escaped("\xff", "\"\xef\xbf\xbd\"");
}

static void expect_number(double value, const char *json)
{
	fixture f;
	begin(&f, MU_JSON_COMPACT);
	mu_json_number(&f.json, NULL, value);
	expect(&f, true, json);
}

static void test_numbers(void **state)
{
	(void)state;
	expect_number(0.1, "0.1");
	expect_number(1.0 / 3, "0.3333333333333333");
	expect_number(0.1 + 0.2, "0.30000000000000004");
	expect_number(-0.0, "-0");
	expect_number(1e300, "1e+300");
	expect_number(123456789, "123456789");
	expect_number(NAN, "null");
	expect_number(INFINITY, "null");
	expect_number(-INFINITY, "null");
}

/* Bit patterns spread over all exponents: each must come back exactly. */
static void test_round_trip(void **state)
{
	(void)state;
	uint64_t bits = 0x123456789abcdef;
	for (int i = 0; i < 20000; i++) {
		double value, back;
		char text[MU_NUMBER_SIZE];
		bits = bits * 6364136223846793005u + 1442695040888963407u;
		memcpy(&value, &bits, sizeof value);
		if (!isfinite(value))
			continue;
		back = strtod(mu_number_text(value, text), NULL);
		assert_memory_equal(&value, &back, sizeof value);
	}
	char text[MU_NUMBER_SIZE];
	assert_string_equal(mu_number_text(NAN, text), "nan");
	assert_string_equal(mu_number_text(-INFINITY, text), "-inf");
	assert_string_equal(mu_number_fixed(2.0 / 3, 3, text), "0.667");
	assert_string_equal(mu_number_fixed(-NAN, 3, text), "nan");
	assert_int_equal(strlen(mu_number_fixed(-1.7976931348623157e308, 9, text)), 320);
}

/* A library's caller may have set a locale with a decimal comma. */
static void test_locale(void **state)
{
	(void)state;
	static const char *const locales[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "nl_NL.UTF-8"};
	bool set = false;
	for (size_t i = 0; i < sizeof locales / sizeof *locales && !set; i++)
		set = setlocale(LC_NUMERIC, locales[i]) != NULL;
	if (!set)
		skip();
	expect_number(0.5, "0.5");
	setlocale(LC_NUMERIC, "C");
}

static void expect_misuse(void (*use)(mu_json *))
{
	fixture f;
	begin(&f, MU_JSON_COMPACT);
	use(&f.json);
	assert_false(mu_json_finished(&f.json));
	fclose(f.out);
	free(f.text);
}

static void unclosed(mu_json *json)
{
	mu_json_object_begin(json, NULL);
}

static void key_in_array(mu_json *json)
{
	mu_json_array_begin(json, NULL);
	mu_json_null(json, "key");
	mu_json_array_end(json);
}

static void no_key_in_object(mu_json *json)
{
	mu_json_object_begin(json, NULL);
	mu_json_null(json, NULL);
	mu_json_object_end(json);
}

static void wrong_end(mu_json *json)
{
	mu_json_object_begin(json, NULL);
	mu_json_array_end(json);
}

static void two_values(mu_json *json)
{
	mu_json_null(json, NULL);
	mu_json_null(json, NULL);
}

static void end_without_begin(mu_json *json)
{
	mu_json_object_end(json);
}

static void too_deep(mu_json *json)
{
	for (int i = 0; i <= MU_JSON_DEPTH; i++)
		mu_json_array_begin(json, NULL);
	for (int i = 0; i <= MU_JSON_DEPTH; i++)
		mu_json_array_end(json);
}

static void test_misuse(void **state)
{
	(void)state;
	expect_misuse(unclosed);
	expect_misuse(key_in_array);
	expect_misuse(no_key_in_object);
	expect_misuse(wrong_end);
	expect_misuse(two_values);
	expect_misuse(end_without_begin);
	expect_misuse(too_deep);
}

static void test_deepest(void **state)
{
	(void)state;
	fixture f;
	begin(&f, MU_JSON_COMPACT);
	for (int i = 0; i < MU_JSON_DEPTH; i++)
		mu_json_array_begin(&f.json, NULL);
	for (int i = 0; i < MU_JSON_DEPTH; i++)
		mu_json_array_end(&f.json);
	expect(&f, true, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_pretty),  cmocka_unit_test(test_line),       cmocka_unit_test(test_compact),
	        cmocka_unit_test(test_escapes), cmocka_unit_test(test_numbers),    cmocka_unit_test(test_locale),
	        cmocka_unit_test(test_misuse),  cmocka_unit_test(test_round_trip), cmocka_unit_test(test_deepest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
