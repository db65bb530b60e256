/* Reports: what they say limits a run, which figures they make, where these stand. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "study/report_inside.h"
#include "support/data_files.h"

/* ---- words ---- */

static mu_limit_facts facts_of(double data, double compute, double exposed, double optimizer)
{
	mu_limit_facts f = {.ranks = 4, .batch = 16, .imbalance = NAN, .slowest = -1};
	f.times.phase[MU_PHASE_DATA] = data;
	f.times.phase[MU_PHASE_FORWARD] = compute / 3;
	f.times.phase[MU_PHASE_BACKWARD] = compute * 2 / 3;
	f.times.phase[MU_PHASE_EXPOSED] = exposed;
	f.times.phase[MU_PHASE_OPTIMIZER] = optimizer;
	f.times.step = data + compute + exposed + optimizer;
	return f;
}

static char *words_of(const mu_limit_facts *f)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	assert_non_null(out);
	mu_report_say_limit(out, f);
	mu_report_say_change(out, f);
	fclose(out);
	return text;
}

static void says(const mu_limit_facts *f, mu_limit limit, const char *words, const char *change)
{
	char *text = words_of(f);
	assert_int_equal(mu_report_limit(f), limit);
	if (!strstr(text, words) || !strstr(text, change))
		fail_msg("\"%s\" lacks \"%s\" or \"%s\"", text, words, change);
	free(text);
}

static void test_limits(void **state)
{
	(void)state;
	mu_limit_facts f = facts_of(0.01, 0.6, 0.35, 0.04);
	says(&f, MU_LIMIT_COMMUNICATION,
	     "Communication limits this: with 4 ranks and 16 images each, a rank only waits for the others for 35 % of "
	     "a step of 1 s",
	     "--overlap-comm");
	f.times.phase[MU_PHASE_HIDDEN] = 0.2; /* it overlaps already */
	char *text = words_of(&f);
	assert_null(strstr(text, "--overlap-comm"));
	free(text);
	f = facts_of(0.4, 0.4, 0.15, 0.05);
	says(&f, MU_LIMIT_DATA, "waits for them for 40 % of a step", "--loader-threads");
	f = facts_of(0.01, 0.5, 0.09, 0.4);
	says(&f, MU_LIMIT_OPTIMIZER, "takes 40 % of a step", "--accumulation");
	f = facts_of(0.02, 0.9, 0.05, 0.03);
	says(&f, MU_LIMIT_COMPUTE, "forward and backward take 90 % of a step", "faster devices");
	f.imbalance = 0.3;
	f.slowest = 3;
	says(&f, MU_LIMIT_IMBALANCE, "of 4 ranks, rank 3 computes 30 % of a step of 1 s longer than the mean",
	     "fewer images");
	f = facts_of(0.01, 0.6, 0.35, 0.04);
	f.imbalance = 0.05; /* alike: waiting is communication */
	assert_int_equal(mu_report_limit(&f), MU_LIMIT_COMMUNICATION);
	f.times.step = NAN;
	says(&f, MU_LIMIT_UNKNOWN, "not known", "");
}

static mu_report_point point_of(double ranks, double batch, double rate, double exposed)
{
	mu_report_point p = {.ranks = ranks, .batch = batch, .accumulation = 1, .fraction = 1, .rounds = 1};
	snprintf(p.precision, sizeof p.precision, "fp32");
	p.images_per_second = rate;
	p.epoch = 1000 / rate;
	p.times.step = ranks * batch / rate;
	p.times.phase[MU_PHASE_EXPOSED] = exposed * p.times.step;
	p.times.phase[MU_PHASE_FORWARD] = (1 - exposed) * p.times.step;
	p.train_accuracy = p.test_accuracy = p.train_loss = p.peak_memory = p.serial = p.imbalance = NAN;
	p.speed_up = p.efficiency = (mu_measure){NAN, NAN, NAN};
	p.waiting = (mu_measure){exposed, NAN, NAN};
	return p;
}

static char *study_words(const mu_report_study *s)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	assert_non_null(out);
	mu_report_say_study(out, s);
	fclose(out);
	return text;
}

static void test_scaling_words(void **state)
{
	(void)state;
	mu_report_point points[] = {point_of(1, 16, 100, 0), point_of(2, 16, 190, 0.05), point_of(4, 16, 300, 0.2)};
	mu_report_study s = {.kind = MURAL_STUDY_STRONG, .n_points = 3, .points = points};
	points[1].serial = 0.05;
	points[2].speed_up.value = 3;
	points[2].efficiency.value = 0.75;
	points[2].serial = 0.11;
	char *text = study_words(&s);
	assert_non_null(
	        strstr(text, "4 ranks train 3 times as many images per second as one: 75 % of what would be perfect."));
	assert_non_null(strstr(text, "grows from 5.0 % with 2 ranks to 11.0 % with 4: that is communication"));
	free(text);
	points[2].rounds = 0; /* interrupted before it */
	points[1].speed_up.value = 1.9;
	points[1].efficiency.value = 0.95;
	text = study_words(&s);
	assert_non_null(strstr(text, "2 ranks train 1.9 times"));
	free(text);
	points[0].rounds = points[1].rounds = 0;
	text = study_words(&s);
	assert_string_equal(text, "No run of this study was measured yet. ");
	free(text);
}

static void test_batch_words(void **state)
{
	(void)state;
	mu_report_point points[] = {point_of(2, 16, 100, 0.3), point_of(2, 64, 150, 0.1), point_of(2, 256, 155, 0.02)};
	mu_report_study s = {.kind = MURAL_STUDY_BATCH, .n_points = 3, .points = points, .whole_epochs = true};
	points[0].train_accuracy = 0.5;
	points[1].train_accuracy = 0.7;
	points[2].train_accuracy = 0.6;
	char *text = study_words(&s);
	assert_non_null(strstr(
	        text,
	        "On 2 ranks take 64 images per rank: 50 % more images per second than with 16, and waiting goes from "
	        "30 % to 10 % of a step. More bring less than 5 %."));
	assert_non_null(strstr(text, "best with 64 images per rank: 70.0 %"));
	free(text);
	points[2].images_per_second = 300;
	text = study_words(&s);
	assert_non_null(strstr(text, "take 256 images per rank"));
	assert_non_null(strstr(text, "more may bring more"));
	free(text);
}

/* ---- figures ---- */

static const mu_figure *find(const mu_figures *figures, const char *id)
{
	for (size_t f = 0; f < figures->n; f++)
		if (strcmp(figures->all[f].id, id) == 0)
			return &figures->all[f];
	return NULL;
}

static void test_figures_of_study(void **state)
{
	(void)state;
	mu_report_point points[] = {point_of(1, 16, 100, 0), point_of(2, 16, 190, 0.05), point_of(1, 64, 120, 0),
	                            point_of(2, 64, 230, 0.01)};
	mu_report_study s = {.name = "A b/c", .kind = MURAL_STUDY_STRONG, .n_points = 4, .points = points};
	const mural_report_settings settings = {0};
	mu_report report = {.settings = &settings, .n_studies = 1, .studies = {&s}};
	mu_figures figures;
	mural_error err = {0};
	for (int i = 0; i < 4; i++)
		points[i].speed_up.value = i % 2 ? 1.9 : 1;
	points[1].speed_up.low = 1.8;
	points[1].speed_up.high = 1.95;
	points[3].rounds = 0; /* was not measured: its numbers are not known */
	points[3].epoch = points[3].speed_up.value = points[3].efficiency.value = points[3].times.step = NAN;
	assert_int_equal(mu_figures_make(&figures, &report, &err), MURAL_OK);
	const mu_figure *f = find(&figures, "a-b-c-time");
	assert_non_null(f);
	assert_int_equal(f->n_categories, 2);
	assert_string_equal(f->categories[1], "2 ranks");
	assert_int_equal(f->n_series, 2);
	assert_string_equal(f->series[1].name, "64 images");
	assert_int_equal(f->series[0].n, 2);
	assert_int_equal(f->series[1].n, 1);
	assert_true(fabs(f->series[0].spots[1].y - 1000.0 / 190) < 1e-12);
	f = find(&figures, "a-b-c-speed-up");
	assert_non_null(f);
	assert_int_equal(f->n_series, 3);
	assert_string_equal(f->series[2].name, "ideal");
	assert_true(f->series[2].dashed);
	assert_true(f->series[2].spots[1].x == 2 && f->series[2].spots[1].y == 2);
	assert_true(f->series[0].spots[1].low == 1.8 && f->series[0].spots[1].high == 1.95);
	f = find(&figures, "a-b-c-waiting");
	assert_non_null(f);
	assert_true(fabs(f->series[0].spots[0].y - 5) < 1e-9);
	f = find(&figures, "a-b-c-timeline");
	assert_non_null(f);
	assert_int_equal(f->n_categories, 3);
	assert_string_equal(f->categories[2], "1 rank, 64 images");
	assert_null(find(&figures, "a-b-c-accuracy-reached")); /* its runs were not whole trainings */
	mu_figures_release(&figures);
}

/* Phases follow each other; hidden messages end where backward does. */
static void test_timeline(void **state)
{
	(void)state;
	mu_report_run run = {.name = "1", .n_steps = 0, .times.step = 6.5};
	const double seconds[MU_PHASE_COUNT] = {
	        [MU_PHASE_DATA] = 0.5,    [MU_PHASE_FORWARD] = 1,   [MU_PHASE_BACKWARD] = 2,
	        [MU_PHASE_EXPOSED] = 2.5, [MU_PHASE_HIDDEN] = 1.25, [MU_PHASE_OPTIMIZER] = 0.5};
	const double begins[] = {0, 0.5, 1.5, 3.5, 6, 2.25};
	memcpy(run.times.phase, seconds, sizeof seconds);
	run.joules = run.imbalance = NAN;
	const mural_report_settings settings = {0};
	mu_report report = {.settings = &settings, .n_runs = 1, .runs = {&run}};
	mu_figures figures;
	mural_error err = {0};
	assert_int_equal(mu_figures_make(&figures, &report, &err), MURAL_OK);
	const mu_figure *f = find(&figures, "run-1-timeline");
	assert_non_null(f);
	assert_int_equal(f->n_series, 6);
	for (size_t i = 0; i < 6; i++)
		assert_true(fabs(f->series[i].spots[0].from - 1000 * begins[i]) < 1e-9);
	assert_string_equal(f->unit, " ms");
	mu_figures_release(&figures);
}

/* Devices of a cluster file, in the order in which ranks take them, give money and energy. */
static void test_price(void **state)
{
	(void)state;
	static mural_cluster c = {.name = "lab",
	                          .currency = "EUR",
	                          .n_devices = 2,
	                          .n_entries = 2,
	                          .nodes_in_all = 2,
	                          .devices_in_all = 4};
	c.devices[0] = (mural_cluster_device){.name = "a", .price_per_hour = 0.5, .watts = 100};
	c.devices[1] = (mural_cluster_device){.name = "b", .price_per_hour = 2, .watts = 0};
	for (int i = 0; i < 2; i++) {
		c.nodes[i] = (mural_cluster_node){.count = 1, .n_slots = 1, .inside = -1, .uplink = -1};
		c.nodes[i].slots[0].device = (uint32_t)i;
		c.nodes[i].slots[0].count = 2;
	}
	mu_report_point points[] = {point_of(2, 16, 100, 0), point_of(3, 16, 150, 0), point_of(9, 16, 400, 0)};
	mu_report_study s = {.name = "s", .kind = MURAL_STUDY_STRONG, .n_points = 3, .points = points};
	const mural_report_settings settings = {.cluster = &c, .placement = MURAL_PLACE_PACK};
	mu_report report = {.settings = &settings, .n_studies = 1, .studies = {&s}};
	mu_figures figures;
	mural_error err = {0};
	assert_int_equal(mu_figures_make(&figures, &report, &err), MURAL_OK);
	const mu_figure *f = find(&figures, "s-price");
	assert_non_null(f);
	assert_string_equal(f->unit, " EUR");
	assert_int_equal(f->series[0].n, 2); /* nine ranks find no devices */
	assert_true(fabs(f->series[0].spots[0].y - 2 * 0.5 * 10 / 3600) < 1e-12);
	assert_true(fabs(f->series[0].spots[1].y - 3 * (1000.0 / 150) / 3600) < 1e-12);
	f = find(&figures, "s-joules");
	assert_non_null(f);
	assert_int_equal(f->series[0].n, 1); /* the second kind does not tell its watts */
	assert_true(fabs(f->series[0].spots[0].y - 2) < 1e-12);
	mu_figures_release(&figures);
	snprintf(s.cluster, sizeof s.cluster, "another");
	assert_int_equal(mu_figures_make(&figures, &report, &err), MURAL_OK);
	assert_null(find(&figures, "s-price"));
	mu_figures_release(&figures);
}

static void test_fit(void **state)
{
	(void)state;
	char text[64];
	double room = mu_scene_text_width("1234");
	mu_scene_fit("1234", room, text, sizeof text);
	assert_string_equal(text, "1234");
	mu_scene_fit("12345", room, text, sizeof text);
	assert_string_equal(text, "123\xe2\x80\xa6");
	mu_scene_fit("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", room, text, sizeof text);
	assert_string_equal(text, "\xc3\xa4\xc3\xa4\xc3\xa4\xe2\x80\xa6");
	mu_scene_fit("12345", -1, text, sizeof text);
	assert_string_equal(text, "\xe2\x80\xa6");
}

static void test_scene(void **state)
{
	(void)state;
	mu_figures figures = {.n_sections = 1};
	mu_figure *f = mu_figure_begin(&figures, "x", MU_FIGURE_BARS);
	mural_error err = {0};
	mu_scene scene;
	for (int i = 0; i < 3; i++)
		mu_series_add(f, mu_figure_series(f, "s%d", i % 2),
		              mu_spot_at((double)mu_figure_category(f, "c%d", i), i + 0.5));
	mu_series_add(f, mu_figure_series(f, "s0"), mu_spot_at(0, NAN)); /* left out */
	mu_figure_end(&figures);
	assert_int_equal(figures.n, 1);
	assert_int_equal(mu_scene_make(&scene, &figures.all[0], &err), MURAL_OK);
	assert_int_equal(scene.n_boxes, 3);
	assert_true(scene.y0 == 0 && scene.y1 >= 2.5);
	assert_true(fabs(mu_scene_y(&scene, 0) - scene.bottom) < 1e-9);
	assert_true(fabs(mu_scene_y(&scene, scene.y1) - scene.top) < 1e-9);
	for (size_t b = 0; b < scene.n_boxes; b++) {
		assert_true(scene.boxes[b].x0 >= scene.x0 && scene.boxes[b].x1 <= scene.x1);
		assert_true(scene.boxes[b].y1 == scene.boxes[b].spot->y);
	}
	assert_string_equal(scene.y_ticks[1].text, "1");
	mu_scene_release(&scene);
	mu_figures_release(&figures);
}

static void test_break(void **state)
{
	(void)state;
	double word = mu_scene_text_width("12 images");
	assert_int_equal(mu_scene_break("12 images", word), 9);
	assert_int_equal(mu_scene_break("12 images", word - 1), 3);
	assert_int_equal(mu_scene_break("images", 1), 6); /* a word is never cut */
	assert_int_equal(mu_scene_break("", 100), 0);
}

/* ---- text ---- */

static void test_escape(void **state)
{
	(void)state;
	char text[200] = "";
	FILE *out = fmemopen(text, sizeof text, "w");
	assert_non_null(out);
	mu_escape(out, "<a href=\"x\">'&'</a> \xc3\xa4 \xff \x01 \xed\xa0\x80");
	fclose(out);
	assert_string_equal(text,
	                    "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt; \xc3\xa4 \xef\xbf\xbd \xef\xbf\xbd "
	                    "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

static void test_short(void **state)
{
	(void)state;
	char text[MU_SHORT_SIZE];
	assert_string_equal(mu_report_short(0.012345, text), "0.0123");
	assert_string_equal(mu_report_short(1.2345, text), "1.23");
	assert_string_equal(mu_report_short(646.23, text), "646.2");
	assert_string_equal(mu_report_short(12345.6, text), "12346");
	assert_string_equal(mu_report_short(NAN, text), "-");
}

/* ---- folders ---- */

static const char steps_head[] =
        "step,epoch,loss,learning_rate,gradient_norm,images,data_seconds,forward_seconds,backward_seconds,"
        "communication_exposed_seconds,communication_hidden_seconds,optimizer_seconds\n";
static char *folder;

static int setup(void **state)
{
	(void)state;
	folder = test_folder_create();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	test_folder_remove(folder);
	return 0;
}

static void write_steps(const char *rows)
{
	char text[4096];
	snprintf(text, sizeof text, "%s%s", steps_head, rows);
	test_file_write(folder, "steps.csv", text, strlen(text));
}

static mural_status read_run(mu_report *report, mu_report_run **run)
{
	static const mural_report_settings settings = {0};
	mural_error err = {0};
	*report = (mu_report){.settings = &settings};
	return mu_report_read_run(report, folder, run, &err);
}

static void test_run_under_way(void **state)
{
	(void)state;
	mu_report report;
	mu_report_run *run;
	write_steps("1,1,2.5,0.1,1,32,9,9,9,9,9,9\n2,1,2,0.1,1,32,0.01,0.2,0.4,0.05,0.1,0.02\n3,1,nan,0.1,1,32,0.01,0."
	            "2,0.4,0.05,0.1,0.02\n4,1,1.5,0.1");
	assert_int_equal(read_run(&report, &run), MURAL_OK);
	assert_int_equal(run->n_steps, 3);
	assert_true(fabs(run->times.step - 0.68) < 1e-12); /* the first step warms up */
	assert_true(run->images_per_step == 32);
	assert_true(isnan(run->loss[2]) && run->loss[1] == 2);
	assert_string_equal(report.damage, "");
	assert_int_equal(report.n_notes, 3);
	assert_non_null(strstr(report.notes[0], "no result.json yet"));
	assert_non_null(strstr(report.notes[1], "last line is not whole; the 3 rows"));
	assert_non_null(strstr(report.notes[2], "the loss of 1 of 3 steps is not a finite number, from step 3 on"));
	mu_report_run_free(run);
	mu_report_release(&report);
}

static void test_damaged_run(void **state)
{
	(void)state;
	static const char whole[] = "{\"ranks\": 2, \"memory_used_bytes\": {\"gradients\": 7}}",
	                  cut[] = "{\"ranks\": 2, ";
	mu_report report;
	mu_report_run *run;
	write_steps("1,1,2.5,0.1,1,32,1,1,1,1,1,1\n2,1,2\n3,1,1,0.1,1,32,1,1,1,1,1,1\n");
	test_file_write(folder, "result.json", cut, sizeof cut - 1);
	assert_int_equal(read_run(&report, &run), MURAL_OK);
	assert_int_equal(run->n_steps, 1);
	assert_false(run->finished);
	assert_non_null(strstr(report.damage, "result.json:1:"));
	assert_int_equal(report.n_notes, 2);
	assert_non_null(strstr(report.notes[1], "steps.csv:3: the line has fewer cells"));
	mu_report_run_free(run);
	mu_report_release(&report);

	write_steps("1,1,two,0.1,1,32,1,1,1,1,1,1\n");
	test_file_write(folder, "result.json", whole, sizeof whole - 1);
	assert_int_equal(read_run(&report, &run), MURAL_OK);
	assert_true(run->finished && run->ranks == 2 && run->used[MU_PART_GRADIENTS] == 7 &&
	            isnan(run->used[MU_PART_LOADER]));
	assert_non_null(strstr(report.damage, "steps.csv:2: loss: expected a number, found \"two\""));
	mu_report_run_free(run);
	mu_report_release(&report);
}

static void test_balance(void **state)
{
	(void)state;
	static const char result[] =
	        "{\"ranks\": 2, \"load\": {\"slowest_rank\": 1, \"slowest_seconds\": 0.5, \"mean_seconds\": 0.3}, "
	        "\"stalls\": {\"count\": 2, \"seconds\": 14.5}}";
	mu_report report;
	mu_report_run *run;
	write_steps("1,1,2.5,0.1,1,32,0,0.1,0.2,0.5,0,0.2\n");
	test_file_write(folder, "result.json", result, sizeof result - 1);
	assert_int_equal(read_run(&report, &run), MURAL_OK);
	assert_int_equal(run->slowest, 1);
	assert_true(fabs(run->imbalance - 0.2) < 1e-12);
	mu_limit_facts f = mu_report_facts_of_run(run);
	assert_int_equal(mu_report_limit(&f), MU_LIMIT_COMMUNICATION); /* of half a second, 0.2 are for the slow rank */
	run->imbalance = 0.3;
	f = mu_report_facts_of_run(run);
	assert_int_equal(mu_report_limit(&f), MU_LIMIT_IMBALANCE);
	char words[2048] = "";
	FILE *out = fmemopen(words, sizeof words, "w");
	assert_non_null(out);
	mu_report_say_run(out, run);
	fclose(out);
	assert_non_null(strstr(words, "waited for one that stalled more than once, 14.5 s in all: stalls.csv"));
	mu_report_run_free(run);
	mu_report_release(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_limits),
	        cmocka_unit_test(test_scaling_words),
	        cmocka_unit_test(test_batch_words),
	        cmocka_unit_test(test_figures_of_study),
	        cmocka_unit_test(test_timeline),
	        cmocka_unit_test(test_price),
	        cmocka_unit_test(test_fit),
	        cmocka_unit_test(test_scene),
	        cmocka_unit_test(test_break),
	        cmocka_unit_test(test_escape),
	        cmocka_unit_test(test_short),
	        cmocka_unit_test_setup_teardown(test_run_under_way, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_damaged_run, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_balance, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
