/* The stall watch: what is a stall and what only looks like one, when words are said, and what is kept. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engine/stall.h"

static int begun, over, lasting;
static char words[MU_STALL_WORDS];

static void listen(void *listener, const mu_stall_report *report)
{
	assert_ptr_equal(listener, &begun);
	begun += report->begins;
	over += report->over;
	lasting += !report->begins && !report->over;
	snprintf(words, sizeof words, "%s", report->words);
}

static void begin(mu_stall_watch *watch, double hang_seconds)
{
	begun = over = lasting = 0;
	words[0] = '\0';
	mu_stall_init(watch, hang_seconds);
	mu_stall_listen(watch, listen, &begun);
}

static mu_comm_stall stall_of(mu_stall_kind kind, double seconds)
{
	return (mu_comm_stall){.kind = kind,
	                       .rank = 1,
	                       .seconds = seconds,
	                       .number = 3,
	                       .step = 17,
	                       .doing = "backward of unit",
	                       .host = "b",
	                       .device = "a card"};
}

static void hear(mu_stall_watch *watch, mu_stall_kind kind, double seconds)
{
	const mu_comm_stall stall = stall_of(kind, seconds);
	mu_stall_hear(&stall, watch);
}

/* From a quarter of the limit on, whatever is under way. */
static void silence_is_told(void **state)
{
	(void)state;
	mu_stall_watch watch;
	begin(&watch, 20);
	hear(&watch, MU_STALL_SILENT, 4.5);
	assert_int_equal(begun, 0);
	hear(&watch, MU_STALL_SILENT, 5.5);
	assert_int_equal(begun, 1);
	assert_string_equal(words, "waiting 6 s for rank 1 (host b, a card): nothing is heard of it; last operation: "
	                           "backward of unit (3), step 17");
	hear(&watch, MU_STALL_SILENT, 5.6);
	assert_int_equal(begun + lasting, 1); /* not at every beat */
	hear(&watch, MU_STALL_NONE, 0);
	assert_int_equal(over, 1);
	assert_non_null(strstr(words, "for rank 1 (host b, a card): it goes on"));
	hear(&watch, MU_STALL_STUCK, 7);
	assert_int_equal(begun, 2);
	assert_string_equal(words,
	                    "waiting 7 s for rank 1 (host b, a card): last operation: backward of unit (3), step 17");
	assert_int_equal(watch.sum.count, 2);
	mu_stall_release(&watch);
}

/* A rank that computes is a stall only in a step that takes far longer than usual ones. */
static void long_work_is_none(void **state)
{
	(void)state;
	mu_stall_watch watch;
	begin(&watch, 0.4);
	mu_stall_step_begins(&watch); /* the first one takes its time */
	mu_sleep(0.15);
	hear(&watch, MU_STALL_WORKS, 100);
	mu_stall_step_ends(&watch);
	hear(&watch, MU_STALL_WORKS, 100); /* an evaluation, a checkpoint */
	assert_int_equal(begun, 0);
	watch.steps = 10;
	watch.usual = 0.01;
	mu_stall_step_begins(&watch);
	hear(&watch, MU_STALL_WORKS, 100); /* its work began before the step */
	assert_int_equal(begun, 0);
	mu_sleep(0.15);
	hear(&watch, MU_STALL_WORKS, 0.05); /* it took part in a collective meanwhile */
	assert_int_equal(begun, 0);
	hear(&watch, MU_STALL_WORKS, 0.12);
	assert_int_equal(begun, 1);
	assert_non_null(strstr(words, "it computes; last operation: backward of unit (3), step 17"));
	mu_stall_step_ends(&watch);
	assert_true(watch.usual < 0.1); /* such a step is no usual one */
	watch.usual = 10;
	mu_stall_step_begins(&watch);
	mu_sleep(0.15);
	hear(&watch, MU_STALL_WORKS, 0.14); /* of a job whose steps are long */
	assert_int_equal(begun, 1);
	assert_int_equal(over, 1);
	mu_stall_release(&watch);
}

static void the_result_keeps_it(void **state)
{
	(void)state;
	mu_stall_watch watch;
	char *text = NULL;
	size_t bytes = 0;
	begin(&watch, 20);
	for (int i = 0; i < 2; i++) {
		FILE *out = open_memstream(&text, &bytes);
		mu_json json;
		mu_json_init(&json, out, MU_JSON_PRETTY);
		mu_json_object_begin(&json, NULL);
		mu_stall_write(&watch, &json);
		mu_json_object_end(&json);
		fclose(out);
		if (i == 0) {
			assert_null(strstr(text, "stalls"));
			hear(&watch, MU_STALL_SILENT, 12);
			hear(&watch, MU_STALL_NONE, 0);
		} else {
			assert_non_null(strstr(text, "\"count\": 1"));
			assert_non_null(strstr(text, "\"longest\": \"rank 1 (host b, a card)\""));
			assert_non_null(strstr(text, "\"operation\": \"backward of unit\""));
		}
		free(text);
		text = NULL;
	}
	mu_stall_release(&watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(silence_is_told),
	        cmocka_unit_test(long_work_is_none),
	        cmocka_unit_test(the_result_keeps_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
