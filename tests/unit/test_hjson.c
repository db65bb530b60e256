/* The HJSON reader alone: dialect, numbers, places, duplicates, and what it must refuse.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hjson.h"

typedef struct reading {
	mu_hjson *tree;
	mural_error err;
	mural_status status;
} reading;

static reading read_bytes(const char *text, size_t bytes, bool strict)
{
	reading r = {0};
	mu_hjson_source source = {"f.json", text, bytes, strict, strict ? MURAL_DATA : MURAL_USAGE};
	r.status = mu_hjson_read(&r.tree, &source, &r.err);
	return r;
}

static mu_hjson *accept(const char *text)
{
	reading r = read_bytes(text, strlen(text), false);
	if (r.status != MURAL_OK)
		fail_msg("%s\nrefused: %s (%s)", text, r.err.message, r.err.where);
	return r.tree;
}

static const mu_hjson_value *get(const mu_hjson *tree, const char *key)
{
	const mu_hjson_value *v = mu_hjson_member(mu_hjson_root(tree), key);
	if (!v)
		fail_msg("no member %s", key);
	return v;
}

static void dialect(void **state)
{
	(void)state;
	static const char *const same[] = {
	        "{\"a\": 1, \"b\": \"x\"}",
	        "{a: 1, 'b': 'x'}",
	        "# c\n{ // c\n/* c\n */ a /*c*/ : /*c*/ 1 /*c*/ , # c\n b: \"x\" /**/ , } // c",
	        "\xef\xbb\xbf{\r\n\t\"a\": 1,\r\n\t\"b\": \"x\"\r\n}\r\n",
	        "a: 1\nb: x\n",
	        "{a: 1\n\n b: x\n}",
	        "{a: 1\rb: x\r}",
	        "a: 1 // one\nb: '''x'''",
	        "{\"\\u0061\": 1e0, \"b\": \"\\u0078\"}",
	};
	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		mu_hjson *t = accept(same[i]);
		assert_int_equal(mu_hjson_root(t)->count, 2);
		assert_int_equal(get(t, "a")->kind, MU_HJSON_NUMBER);
		assert_true(get(t, "a")->number.value == 1);
		assert_string_equal(get(t, "b")->text, "x");
		mu_hjson_free(t);
	}
}

static void comment_marks_in_strings(void **state)
{
	(void)state;
	mu_hjson *t = accept("{a: \"run #7\", b: 'vit//small', c: \"/* no */\"}");
	assert_string_equal(get(t, "a")->text, "run #7");
	assert_string_equal(get(t, "b")->text, "vit//small");
	assert_string_equal(get(t, "c")->text, "/* no */");
	mu_hjson_free(t);
}

static void bare_values(void **state)
{
	(void)state;
	mu_hjson *t = accept(
	        "{\n a: False,\n b: two words # and all\n c: true, d: null\n e: .5\n f: 0x10\n g: 1_000\n h: 007\n}");
	assert_string_equal(get(t, "a")->text, "False,");
	assert_false(get(t, "a")->quoted);
	assert_string_equal(get(t, "b")->text, "two words # and all");
	assert_int_equal(get(t, "c")->kind, MU_HJSON_BOOL);
	assert_true(get(t, "c")->boolean);
	assert_int_equal(get(t, "d")->kind, MU_HJSON_NULL);
	for (const char *key = "efgh"; *key; key++)
		assert_int_equal(get(t, (char[]){*key, 0})->kind, MU_HJSON_STRING);
	mu_hjson_free(t);
}

static void strings(void **state)
{
	(void)state;
	mu_hjson *t =
	        accept("{a: \"\\\"\\\\\\/\\b\\f\\n\\r\\t'\", b: \"\\u00e9\\u20ac\\ud83d\\ude00\", c: '\"', d: ''}");
	assert_string_equal(get(t, "a")->text, "\"\\/\b\f\n\r\t'");
	assert_string_equal(get(t, "b")->text, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	assert_string_equal(get(t, "c")->text, "\"");
	assert_string_equal(get(t, "d")->text, "");
	mu_hjson_free(t);
	t = accept("{\n  a:\n    '''\n    one\n      two\n    '''\n}");
	assert_string_equal(get(t, "a")->text, "one\n  two");
	mu_hjson_free(t);
}

static void numbers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		double value;
		bool whole, negative;
		uint64_t magnitude;
	} good[] = {
	        {"0", 0, true, false, 0},
	        {"-8", -8, true, true, 8},
	        {"5e8", 5e8, true, false, 500000000},
	        {"64.0", 64, true, false, 64},
	        {"6.4e1", 64, true, false, 64},
	        {"2.50e7", 25e6, true, false, 25000000},
	        {"3E+8", 3e8, true, false, 300000000},
	        {"1e12", 1e12, true, false, 1000000000000},
	        {"1200e-2", 12, true, false, 12},
	        {"0.0", 0, true, false, 0},
	        {"0e999", 0, true, false, 0},
	        {"9223372036854775807", 9223372036854775807.0, true, false, INT64_MAX},
	        {"18446744073709551615", 18446744073709551615.0, true, false, UINT64_MAX},
	        {"18446744073709551616", 18446744073709551616.0, false, false, 0},
	        {"2.5", 2.5, false, false, 0},
	        {"-1e-4", -1e-4, false, true, 0},
	        {"1e30", 1e30, false, false, 0},
	        {"1e-400", 0, false, false, 0},
	        {"0.1", 0.1, false, false, 0},
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		mu_hjson_number n;
		assert_true(mu_hjson_number_read(&n, good[i].text, strlen(good[i].text)));
		assert_true(n.value == good[i].value);
		assert_int_equal(n.whole, good[i].whole);
		assert_int_equal(n.negative, good[i].negative);
		if (n.whole)
			assert_true(n.magnitude == good[i].magnitude);
	}
	static const char *const bad[] = {"",    "-",   ".5",  "1.",  "+1", "0x10", "007", "1_000", "1e",
	                                  "1e+", "--1", "NaN", "inf", "1 ", "1.e5", "-.5", "01.5",  "1.5.2"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		mu_hjson_number n;
		if (mu_hjson_number_read(&n, bad[i], strlen(bad[i])))
			fail_msg("'%s' was read as a number", bad[i]);
	}
}

static void places_and_paths(void **state)
{
	(void)state;
	char where[MU_HJSON_WHERE], path[MU_HJSON_PATH];
	mu_hjson *t = accept("\xef\xbb\xbf{\r\n  \"a\": {\"\xc3\xa9\": 1, \"b\": [0,\n 7]}\n}");
	const mu_hjson_value *a = get(t, "a"), *b = mu_hjson_member(a, "b"), *second = b->first->next;
	assert_string_equal(mu_hjson_where(t, a, where), "f.json:2:3: a");
	assert_string_equal(mu_hjson_where(t, b, where), "f.json:2:17: a.b");
	assert_string_equal(mu_hjson_where(t, second, where), "f.json:3:2: a.b[1]");
	assert_string_equal(mu_hjson_path(mu_hjson_root(t), path), "");
	assert_int_equal(mu_hjson_line(t, second), 3);
	assert_int_equal(a->raw_bytes, strlen("{\"\xc3\xa9\": 1, \"b\": [0,\n 7]}"));
	assert_null(mu_hjson_member(a, "c"));
	assert_null(mu_hjson_member(second, "c"));
	mu_hjson_free(t);
}

static void duplicates_are_kept(void **state)
{
	(void)state;
	mu_hjson *t = accept("{b: 0, a: 1, c: 2, a: 3, a: 4}");
	const mu_hjson_value *root = mu_hjson_root(t), *first = mu_hjson_member(root, "a");
	assert_int_equal(root->count, 5);
	assert_true(first->number.value == 1);
	assert_null(first->earlier);
	const mu_hjson_value *third = root->first->next->next->next->next;
	assert_true(third->number.value == 4);
	assert_true(third->earlier->number.value == 3);
	assert_ptr_equal(third->earlier->earlier, first);
	mu_hjson_free(t);
}

static void empty_is_an_object(void **state)
{
	(void)state;
	static const char *const empty[] = {"", "\xef\xbb\xbf", "# only\n/* comments */ // here", " \r\n\t", "{}"};
	for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
		mu_hjson *t = accept(empty[i]);
		assert_int_equal(mu_hjson_root(t)->kind, MU_HJSON_OBJECT);
		assert_int_equal(mu_hjson_root(t)->count, 0);
		mu_hjson_free(t);
	}
}

static void other_roots(void **state)
{
	(void)state;
	mu_hjson *t = accept("[1, [2,],]");
	assert_int_equal(mu_hjson_root(t)->kind, MU_HJSON_ARRAY);
	assert_int_equal(mu_hjson_root(t)->count, 2);
	mu_hjson_free(t);
	t = accept("42");
	assert_int_equal(mu_hjson_root(t)->kind, MU_HJSON_NUMBER);
	mu_hjson_free(t);
}

static void refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *where, *says;
	} bad[] = {
	        {"{\"a\":1,,\"b\":2}", "f.json:1:8", "second one"},
	        {"[1,,2]", "f.json:1:4", "second one"},
	        {"{,}", "f.json:1:2", "expected a key"},
	        {"{\"a\":1 \"b\":2}", "f.json:1:6: a", "a comma stands between two members"},
	        {"{\"a\":\"x\" \"b\":2}", "f.json:1:10", "expected a comma or }, got \"b\""},
	        {"{\n \"fp16\": { \"on\": True },\n \"x\": 1\n}", "f.json:2:18: fp16.on", "put text in quotes"},
	        {"{\"a\": 1}\n  \"b\": 2\n}", "f.json:2:3", "the object opened on line 1 ended on line 1"},
	        {"{\n \"a\": {\n \"b\": 1\n", "f.json:4:1: a", "opened on line 2 is not closed"},
	        {"[1,\n2", "f.json:2:2", "the list opened on line 1 is not closed"},
	        {"{\"a\": \"x\n}", "f.json:1:7: a", "not closed"},
	        {"{\"a\": 'x", "f.json:1:7: a", "not closed"},
	        {"{\"a\": '''x", "f.json:1:7: a", "not closed"},
	        {"{\"a\": \"\\q\"}", "f.json:1:8: a", "unknown escape"},
	        {"{\"a\": \"\\u12g4\"}", "f.json:1:8: a", "four hexadecimal digits"},
	        {"{\"a\": \"\\ud800\"}", "f.json:1:8: a", "surrogate"},
	        {"{\"a\": \"\\u0000\"}", "f.json:1:8: a", "NUL"},
	        {"{\"a\": \"\t\"}", "f.json:1:8: a", "control character"},
	        {"{} /* never", "f.json:1:4", "comment is not closed"},
	        {"{\"a\": 1e400}", "f.json:1:7: a", "1.8e308"},
	        {"{\"a\"}", "f.json:1:5: a", "expected a colon"},
	        {"{a = 1}", "f.json:1:4: a", "expected a colon"},
	        {"{\"a\":}", "f.json:1:6: a", "expected a value, got `}`"},
	        {"{\"a\":", "f.json:1:6: a", "got the end of the file"},
	        {"a: 1\n}", "f.json:2:1", "expected a key, got `}`"},
	        {"{\"a\": \xff}", "f.json:1:7", "0xFF"},
	        {"{\"a\": \"\xc0\x80\"}", "f.json:1:8", "0xC0"},
	        {"{\"a\": \"\xed\xa0\x80\"}", "f.json:1:8", "0xED"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		reading r = read_bytes(bad[i].text, strlen(bad[i].text), false);
		if (r.status != MURAL_USAGE || !strstr(r.err.message, bad[i].says) || strcmp(r.err.where, bad[i].where))
			fail_msg("%s\nexpected %s: ...%s\ngot %s: %s", bad[i].text, bad[i].where, bad[i].says,
			         r.err.where, r.err.message);
		assert_null(r.tree);
	}
}

static void refuses_nul(void **state)
{
	(void)state;
	reading r = read_bytes("{}\n\0", 4, false);
	assert_int_equal(r.status, MURAL_USAGE);
	assert_string_equal(r.err.where, "f.json:2:1");
	assert_non_null(strstr(r.err.message, "0x00"));
}

static void refuses_depth(void **state)
{
	(void)state;
	char text[20001];
	for (int shape = 0; shape < 2; shape++) {
		size_t used = 0;
		for (int i = 0; i < 10000; i++)
			text[used++] = '[';
		memset(text + used, ']', 10000);
		reading r = read_bytes(text, shape ? 10000 : 20000, shape);
		assert_int_equal(r.status, shape ? MURAL_DATA : MURAL_USAGE);
		assert_non_null(strstr(r.err.message, "levels of nesting"));
	}
}

/* Every prefix of a document with everything in it: refused or read, never out of bounds (the sanitizers look). */
static void every_prefix(void **state)
{
	(void)state;
	static const char whole[] = "\xef\xbb\xbf# c\n{a: [1, -2.5e-3, tr], /* x */ 'b': \"\\u00e9\\ud83d\\ude00\", c: "
	                            "'''\n t\n''', d: {e: null}}";
	for (size_t n = 0; n < sizeof whole; n++) {
		char *exact = malloc(n + 1);
		memcpy(exact, whole, n);
		for (int strict = 0; strict < 2; strict++) {
			reading r = read_bytes(exact, n, strict);
			assert_true((r.status == MURAL_OK) == (r.tree != NULL));
			mu_hjson_free(r.tree);
		}
		free(exact);
	}
}

static void strict_json(void **state)
{
	(void)state;
	static const char *const good[] = {"{}", "{\"a\": [1, 2.5, -3e2], \"b\": {\"c\": null, \"d\": true}}  ", "[]",
	                                   "\"x\"", "7"};
	static const char *const bad[] = {"",
	                                  "{a: 1}",
	                                  "{\"a\": 1,}",
	                                  "{'a': 1}",
	                                  "{\"a\": x}",
	                                  "# c\n{}",
	                                  "{} // c",
	                                  "{\"a\": 1 \"b\": 2}",
	                                  "{\"a\": 1\n\"b\": 2}",
	                                  "\xef\xbb\xbf{}",
	                                  "\"\\'\"",
	                                  "{\"a\": .5}",
	                                  "{\"a\": 1, \"a\": 2}",
	                                  "[1,]",
	                                  "{\"a\": True}",
	                                  "{\"a\":1}{",
	                                  "{\"a\": 01}",
	                                  "\v{}"};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		reading r = read_bytes(good[i], strlen(good[i]), true);
		if (r.status != MURAL_OK)
			fail_msg("%s refused: %s", good[i], r.err.message);
		mu_hjson_free(r.tree);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		reading r = read_bytes(bad[i], strlen(bad[i]), true);
		if (r.status != MURAL_DATA)
			fail_msg("%s accepted", bad[i]);
	}
	reading r = read_bytes("{\"a\": 1,\n\"b\": 0, \"a\": 2}", 24, true);
	assert_string_equal(r.err.where, "f.json:2:9: a");
	assert_non_null(strstr(r.err.message, "line 1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(dialect),
	        cmocka_unit_test(comment_marks_in_strings),
	        cmocka_unit_test(bare_values),
	        cmocka_unit_test(strings),
	        cmocka_unit_test(numbers),
	        cmocka_unit_test(places_and_paths),
	        cmocka_unit_test(duplicates_are_kept),
	        cmocka_unit_test(empty_is_an_object),
	        cmocka_unit_test(other_roots),
	        cmocka_unit_test(refused),
	        cmocka_unit_test(refuses_nul),
	        cmocka_unit_test(refuses_depth),
	        cmocka_unit_test(every_prefix),
	        cmocka_unit_test(strict_json),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
