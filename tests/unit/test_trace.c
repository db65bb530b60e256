/* Spans of a window, and the timeline file that is made of them. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hjson.h"
#include "monitor/timeline.h"

static void only_the_window_is_kept(void **state)
{
	(void)state;
	mu_trace trace;
	assert_int_equal(mu_trace_init(&trace, 4, 3, 2, NULL), MURAL_OK);
	trace.also = 7;
	for (uint64_t step = 1; step <= 8; step++) {
		mu_trace_step(&trace, step);
		bool wanted = step == 3 || step == 4 || step == 7;
		assert_true(trace.recording == wanted);
		assert_true((mu_trace_begin(&trace) > 0) == wanted);
		mu_trace_add(&trace, MU_SPAN_FORWARD, (uint16_t)step, 0, 1, 2);
	}
	assert_int_equal(trace.n, 3);
	assert_int_equal(trace.spans[2].step, 7);
	assert_int_equal(trace.spans[1].index, 4);
	mu_trace_step(&trace, 4);
	for (int i = 0; i < 3; i++)
		mu_trace_add(&trace, MU_SPAN_FORWARD, 0, 0, 1, 2);
	assert_int_equal(trace.n, 4);
	assert_int_equal(trace.lost, 2);
	mu_trace_release(&trace);
	/* nobody watches */
	mu_trace_step(NULL, 1);
	assert_true(mu_trace_begin(NULL) == 0 && mu_trace_span(NULL, MU_SPAN_FORWARD, 0, 0) == 0);
	mu_trace_add(NULL, MU_SPAN_FORWARD, 0, 0, 1, 2);
	mu_trace_release(NULL);
	/* a window without an end, and none at all */
	assert_int_equal(mu_trace_init(&trace, 1, 5, UINT64_MAX, NULL), MURAL_OK);
	assert_true(trace.last_step == UINT64_MAX);
	mu_trace_release(&trace);
	assert_int_equal(mu_trace_init(&trace, 1, 3, 0, NULL), MURAL_OK);
	mu_trace_step(&trace, 3);
	assert_false(trace.recording);
	mu_trace_release(&trace);
}

static const char *name_of(const void *names, mu_span_kind kind, unsigned index)
{
	static const char *const units[] = {"embed", "block 0"};
	assert_string_equal(names, "names");
	return kind == MU_SPAN_COLLECTIVE ? "all_reduce" : kind == MU_SPAN_FORWARD ? units[index] : NULL;
}

static double member(const mu_hjson_value *object, const char *key)
{
	const mu_hjson_value *value = mu_hjson_member(object, key);
	assert_non_null(value);
	return value->number.value;
}

static const char *text_of(const mu_hjson_value *object, const char *key)
{
	return mu_hjson_member(object, key)->text;
}

/* Rank 1's clock is 5 s ahead: its spans come back to where they belong. */
static void the_file_is_aligned_trace_events(void **state)
{
	(void)state;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	const mu_span spans[2][2] = {
	        {{.begin = 100, .end = 100.5, .step = 3, .index = 1, .kind = MU_SPAN_FORWARD},
	         {.begin = 100.25, .end = 101, .amount = 4096, .step = 3, .kind = MU_SPAN_COLLECTIVE}},
	        {{.begin = 105, .end = 105.5, .step = 3, .index = 0, .kind = MU_SPAN_FORWARD},
	         {.begin = 105.5, .end = 106, .step = 3, .kind = MU_SPAN_WAIT}}};
	mu_timeline timeline;
	mu_timeline_begin(&timeline, out, 99);
	for (int r = 0; r < 2; r++) {
		const mu_timeline_rank rank = {
		        .rank = r, .host = "h\"1", .ahead = 5 * r, .name = name_of, .names = "names"};
		mu_timeline_label(&timeline, &rank);
		mu_timeline_add(&timeline, &rank, spans[r], 2);
	}
	assert_true(mu_timeline_end(&timeline));
	fclose(out);
	mu_hjson *tree;
	mural_error err = {0};
	const mu_hjson_source source = {"timeline", text, bytes, true, MURAL_DATA};
	assert_int_equal(mu_hjson_read(&tree, &source, &err), MURAL_OK);
	const mu_hjson_value *events = mu_hjson_member(mu_hjson_root(tree), "traceEvents");
	assert_int_equal(events->count, 2 * (4 + 2));
	const mu_hjson_value *e = events->first;
	assert_string_equal(text_of(e, "name"), "process_name");
	assert_string_equal(text_of(mu_hjson_member(e, "args"), "name"), "rank 0 (h\"1)");
	for (int i = 0; i < 4; i++)
		e = e->next;
	assert_string_equal(text_of(e, "name"), "forward block 0");
	assert_string_equal(text_of(e, "ph"), "X");
	assert_true(member(e, "ts") == 1e6 && member(e, "dur") == 5e5 && member(e, "pid") == 0 &&
	            member(e, "tid") == 0);
	e = e->next;
	assert_string_equal(text_of(e, "name"), "all_reduce");
	assert_true(member(e, "ts") == 1.25e6 && member(e, "tid") == 1);
	assert_true(member(mu_hjson_member(e, "args"), "bytes") == 4096);
	for (int i = 0; i < 5; i++)
		e = e->next;
	assert_string_equal(text_of(e, "name"), "forward embed");
	assert_true(member(e, "ts") == 1e6 && member(e, "pid") == 1);
	assert_string_equal(text_of(e->next, "name"), "wait for communication");
	mu_hjson_free(tree);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(only_the_window_is_kept),
	        cmocka_unit_test(the_file_is_aligned_trace_events),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
