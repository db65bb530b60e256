/* The progress display: bars that fit, lines at the right moments, rates and time left. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "monitor/progress.h"

typedef struct screen {
	mu_progress progress;
	FILE *out;
	char *text;
	size_t size, seen;
} screen;

static void begin(screen *s, mu_progress_settings settings)
{
	*s = (screen){0};
	s->out = open_memstream(&s->text, &s->size);
	assert_non_null(s->out);
	settings.out = s->out;
	mu_progress_init(&s->progress, &settings);
}

/* Compares what was printed since the last call. */
static void expect(screen *s, const char *text)
{
	fflush(s->out);
	assert_string_equal(s->text + s->seen, text);
	s->seen = s->size;
}

static void finish(screen *s)
{
	fclose(s->out);
	free(s->text);
}

static mu_progress_point at(uint64_t step, double seconds)
{
	return (mu_progress_point){
	        .epoch = 2, .step = step, .loss = 0.43125, .accuracy = 0.841, .images = 100 * step, .seconds = seconds};
}

static void step(screen *s, uint64_t number, double seconds)
{
	mu_progress_point point = at(number, seconds);
	mu_progress_step(&s->progress, &point);
}

static const mu_progress_settings plain = {.seconds_per_line = 10, .epochs = 3, .steps = 50, .images = 10000};

static void test_plain_lines(void **state)
{
	(void)state;
	screen s;
	begin(&s, plain);
	step(&s, 1, 1);
	expect(&s, "epoch 2/3  step 1/50  loss 0.4313  accuracy 84.1%  100 images/s  1:39 left\n");
	step(&s, 2, 2);
	step(&s, 10, 10.5);
	expect(&s, "");
	step(&s, 11, 11);
	fflush(s.out);
	assert_memory_equal(s.text + s.seen, "epoch 2/3  step 11/50  ", 23);
	assert_int_equal(s.text[s.size - 1], '\n');
	finish(&s);
}

static void test_steps_per_print(void **state)
{
	(void)state;
	screen s;
	mu_progress_settings settings = plain;
	settings.seconds_per_line = 0;
	settings.steps_per_print = 5;
	begin(&s, settings);
	for (uint64_t i = 1; i <= 4; i++)
		step(&s, i, 100.0 * (double)i);
	expect(&s, "");
	step(&s, 5, 500);
	expect(&s, "epoch 2/3  step 5/50  loss 0.4313  accuracy 84.1%  1.00 images/s  2:38:20 left\n");
	finish(&s);
}

static void test_bar(void **state)
{
	(void)state;
	screen s;
	mu_progress_settings settings = plain;
	settings.columns = 100;
	begin(&s, settings);
	step(&s, 25, 25);
	expect(&s,
	       "\repoch 2/3 [========>       ]  50%  step 25/50  loss 0.4313  accuracy 84.1%  100 images/s  1:15 left"
	       "\033[K");
	step(&s, 26, 25.05); /* too soon */
	expect(&s, "");
	mu_progress_line(&s.progress, "epoch %d: test accuracy %.2f", 2, 0.5);
	expect(&s, "\r\033[Kepoch 2: test accuracy 0.50\n");
	mu_progress_finish(&s.progress); /* no bar is left */
	expect(&s, "");
	step(&s, 49, 49.95);
	fflush(s.out);
	s.seen = s.size;
	step(&s, 50, 50); /* the last one is always shown */
	fflush(s.out);
	assert_non_null(strstr(s.text + s.seen, "==] 100%"));
	assert_null(strchr(s.text + s.seen, '\n'));
	mu_progress_finish(&s.progress);
	fflush(s.out);
	assert_int_equal(s.text[s.size - 1], '\n');
	finish(&s);
}

/* Never wider than the terminal, whatever its width. */
static void test_bar_fits(void **state)
{
	(void)state;
	for (int columns = 20; columns < 200; columns++) {
		screen s;
		mu_progress_settings settings = plain;
		settings.columns = columns;
		begin(&s, settings);
		step(&s, 25, 25);
		fflush(s.out);
		size_t shown = s.size - 1 - 3; /* "\r" and "\033[K" */
		assert_true(shown < (size_t)columns);
		assert_null(strstr(s.text, "[]"));
		assert_memory_equal(s.text, "\repoch 2/3", 10);
		finish(&s);
	}
}

static void expect_bar(int columns, const char *text)
{
	screen s;
	mu_progress_settings settings = plain;
	settings.columns = columns;
	begin(&s, settings);
	step(&s, 25, 25);
	expect(&s, text);
	finish(&s);
}

/* A narrow terminal loses whole words, the least important first, and never the end of one. */
static void test_narrow_bars(void **state)
{
	(void)state;
	expect_bar(80, "\repoch 2/3 [====>   ]  50%  loss 0.4313  accuracy 84.1%  100 images/s  1:15 left\033[K");
	expect_bar(70, "\repoch 2/3  50%  loss 0.4313  accuracy 84.1%  100 images/s  1:15 left\033[K");
	expect_bar(60, "\repoch 2/3  50%  loss 0.4313  accuracy 84.1%  1:15 left\033[K");
	expect_bar(40, "\repoch 2/3  50%  loss 0.4313  1:15 left\033[K");
	expect_bar(38, "\repoch 2/3  50%  1:15 left\033[K");
}

static void test_unknown_values(void **state)
{
	(void)state;
	screen s;
	begin(&s, plain);
	mu_progress_point point = {.epoch = 1, .step = 1, .loss = NAN, .accuracy = NAN};
	mu_progress_step(&s.progress, &point); /* no time has passed: no rate, no time left */
	expect(&s, "epoch 1/3  step 1/50  loss nan\n");
	finish(&s);
	mu_progress_settings silent = plain;
	mu_progress quiet;
	mu_progress_init(&quiet, &silent);
	mu_progress_step(&quiet, &point);
	mu_progress_line(&quiet, "not shown");
	mu_progress_finish(&quiet);
}

/* What mixed precision adds goes first where there is no room. */
static void test_loss_scale(void **state)
{
	(void)state;
	screen s;
	begin(&s, plain);
	mu_progress_point point = at(1, 1);
	point.loss_scale = 0x1p40;
	point.skipped = 12;
	mu_progress_step(&s.progress, &point);
	expect(&s,
	       "epoch 2/3  step 1/50  loss 0.4313  accuracy 84.1%  scale 1.099511628e+12  skipped 12  100 images/s  "
	       "1:39 left\n");
	finish(&s);
	mu_progress_settings narrow = plain;
	narrow.columns = 80;
	begin(&s, narrow);
	point = at(25, 25);
	point.loss_scale = 4096;
	mu_progress_step(&s.progress, &point);
	expect(&s, "\repoch 2/3 [====>   ]  50%  loss 0.4313  accuracy 84.1%  100 images/s  1:15 left\033[K");
	finish(&s);
}

/* A plain line and a wide bar say who waits for whom; a narrow bar has no room for it. */
static void test_waits(void **state)
{
	(void)state;
	screen s;
	begin(&s, plain);
	mu_progress_point point = at(1, 1);
	point.waits = "waits 0.3 s of 0.6 s per step for rank 1 (b)";
	mu_progress_step(&s.progress, &point);
	expect(&s, "epoch 2/3  step 1/50  loss 0.4313  accuracy 84.1%  100 images/s  1:39 left  "
	           "waits 0.3 s of 0.6 s per step for rank 1 (b)\n");
	finish(&s);
	mu_progress_settings narrow = plain;
	narrow.columns = 80;
	begin(&s, narrow);
	point = at(25, 25);
	point.waits = "waits 0.3 s of 0.6 s per step for rank 1 (b)";
	mu_progress_step(&s.progress, &point);
	expect(&s, "\repoch 2/3 [====>   ]  50%  loss 0.4313  accuracy 84.1%  100 images/s  1:15 left\033[K");
	finish(&s);
}

/* A hiccup fades from the rate, a lasting change wins. */
static void test_rate(void **state)
{
	(void)state;
	screen s;
	begin(&s, plain);
	for (int i = 1; i <= 30; i++)
		step(&s, (uint64_t)i, i);
	assert_true(fabs(s.progress.images_per_second - 100) < 1e-9);
	step(&s, 31, 32); /* one slow step */
	assert_true(s.progress.images_per_second < 90 && s.progress.images_per_second > 60);
	for (int i = 32; i <= 60; i++)
		step(&s, (uint64_t)i, 32 + (i - 31) * 2.0);
	assert_true(fabs(s.progress.images_per_second - 50) < 1);
	finish(&s);
}

static void expect_duration(double seconds, const char *text)
{
	char found[24];
	mu_duration_text(seconds, found, sizeof found);
	assert_string_equal(found, text);
}

static void test_durations(void **state)
{
	(void)state;
	expect_duration(0, "0:00");
	expect_duration(59.4, "0:59");
	expect_duration(59.6, "1:00");
	expect_duration(3599, "59:59");
	expect_duration(7384, "2:03:04");
	expect_duration(3 * 86400 + 4 * 3600 + 5 * 60, "3 d 04:05");
	expect_duration(-1, "?");
	expect_duration(NAN, "?");
	expect_duration(INFINITY, "?");
}

static void expect_columns(const char *variable, int columns)
{
	FILE *file = tmpfile();
	assert_non_null(file);
	if (variable)
		setenv("MURAL_TTY", variable, 1);
	else
		unsetenv("MURAL_TTY");
	assert_int_equal(mu_progress_columns(file), columns);
	fclose(file);
	unsetenv("MURAL_TTY");
}

static void test_columns(void **state)
{
	(void)state;
	expect_columns(NULL, 0);
	expect_columns("120", 120);
	expect_columns("3", 20);
	expect_columns("99999999999999999999", 1023);
	expect_columns("", 0);
	expect_columns("0", 0);
	expect_columns("-7", 0);
	expect_columns("80x", 0);
	assert_int_equal(mu_progress_columns(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_plain_lines), cmocka_unit_test(test_steps_per_print),
	        cmocka_unit_test(test_bar),         cmocka_unit_test(test_bar_fits),
	        cmocka_unit_test(test_narrow_bars), cmocka_unit_test(test_loss_scale),
	        cmocka_unit_test(test_rate),        cmocka_unit_test(test_unknown_values),
	        cmocka_unit_test(test_durations),   cmocka_unit_test(test_columns),
	        cmocka_unit_test(test_waits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
