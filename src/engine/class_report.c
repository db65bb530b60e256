/* The confusion matrix, as a list of the cells that are not zero. SPDX-License-Identifier: MIT */
#include "engine/class_report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"

static int rising(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

/* Label and best class of each image as one sorted number; NULL without memory. */
static uint64_t *sort_pairs(const mural_data *data, const int32_t *best, uint64_t images)
{
	uint64_t *pairs = calloc(images, sizeof *pairs);
	for (uint64_t i = 0; pairs && i < images; i++)
		pairs[i] = (uint64_t)(uint32_t)mural_data_label(data, i) << 32 | (uint32_t)best[i];
	if (pairs)
		qsort(pairs, images, sizeof *pairs, rising);
	return pairs;
}

static size_t count_cells(const uint64_t *pairs, uint64_t images)
{
	size_t n = images > 0;
	for (uint64_t i = 1; i < images; i++)
		n += pairs[i] != pairs[i - 1];
	return n;
}

static void fill(mu_class_report *report, const uint64_t *pairs, uint64_t images)
{
	for (uint64_t i = 0; i < images; i++) {
		uint32_t label = (uint32_t)(pairs[i] >> 32), best = (uint32_t)pairs[i];
		if (i == 0 || pairs[i] != pairs[i - 1])
			report->cells[report->n_cells++] = (mu_confusion){.label = label, .best = best};
		report->cells[report->n_cells - 1].images++;
		report->images[label]++;
		report->right[label] += label == best;
	}
}

mural_status mu_class_report_make(mu_class_report *report, const mural_data *data, const int32_t *best,
                                  mural_error *err)
{
	const mural_data_facts *facts = mural_data_get_facts(data);
	uint64_t *pairs = sort_pairs(data, best, facts->images);
	*report = (mu_class_report){.classes = facts->classes};
	report->images = calloc(facts->classes, sizeof *report->images);
	report->right = calloc(facts->classes, sizeof *report->right);
	if (pairs)
		report->cells = calloc(count_cells(pairs, facts->images), sizeof *report->cells);
	mural_status status = MURAL_OK;
	if (!pairs || !report->images || !report->right || !report->cells)
		status = mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to count %llu images in %zu classes",
		                 (unsigned long long)facts->images, facts->classes);
	else if (pairs[facts->images - 1] >> 32 >= facts->classes)
		status = mu_bug(err, "a label that is no class");
	else
		fill(report, pairs, facts->images);
	free(pairs);
	if (status != MURAL_OK)
		mu_class_report_release(report);
	return status;
}

void mu_class_report_release(mu_class_report *report)
{
	free(report->images);
	free(report->right);
	free(report->cells);
	*report = (mu_class_report){0};
}

static double accuracy(const mu_class_report *report, size_t label)
{
	return (double)report->right[label] / (double)report->images[label];
}

static void write_class(mu_json *json, const mu_class_report *report, size_t *cell, const mural_data *data)
{
	size_t label = report->cells[*cell].label;
	mu_json_line_begin(json, NULL);
	mu_json_unsigned(json, "class", label);
	mu_json_string(json, "name", mural_data_class_name(data, label));
	mu_json_unsigned(json, "images", report->images[label]);
	mu_json_unsigned(json, "right", report->right[label]);
	mu_json_number(json, "accuracy", accuracy(report, label));
	mu_json_object_begin(json, "taken_for");
	for (; *cell < report->n_cells && report->cells[*cell].label == label; ++*cell) {
		char key[16];
		snprintf(key, sizeof key, "%u", report->cells[*cell].best);
		mu_json_unsigned(json, key, report->cells[*cell].images);
	}
	mu_json_object_end(json);
	mu_json_object_end(json);
}

void mu_class_report_write(mu_json *json, const mu_class_report *report, const mural_data *data)
{
	size_t empty = 0;
	for (size_t c = 0; c < report->classes; c++)
		empty += report->images[c] == 0;
	mu_json_unsigned(json, "classes_without_images", empty);
	mu_json_array_begin(json, "classes");
	for (size_t cell = 0; cell < report->n_cells;)
		write_class(json, report, &cell, data);
	mu_json_array_end(json);
}

/* Is class a told worse than class b? Of equals the one with more images, then the first. */
static bool is_worse(const mu_class_report *report, size_t a, size_t b)
{
	double x = accuracy(report, a), y = accuracy(report, b);
	return x < y || (x == y && report->images[a] > report->images[b]);
}

size_t mu_class_report_worst(const mu_class_report *report, const mural_data *data,
                             mural_class_score worst[MURAL_WORST_CLASSES])
{
	size_t labels[MURAL_WORST_CLASSES], n = 0;
	for (size_t c = 0; c < report->classes; c++) {
		if (report->images[c] == 0)
			continue;
		size_t at = n;
		while (at > 0 && is_worse(report, c, labels[at - 1]))
			at--;
		if (at == MURAL_WORST_CLASSES)
			continue;
		n += n < MURAL_WORST_CLASSES;
		for (size_t i = n - 1; i > at; i--)
			labels[i] = labels[i - 1];
		labels[at] = c;
	}
	for (size_t i = 0; i < n; i++) {
		const char *name = mural_data_class_name(data, labels[i]);
		worst[i] = (mural_class_score){
		        .label = labels[i],
		        .images = report->images[labels[i]],
		        .right = report->right[labels[i]],
		};
		snprintf(worst[i].name, sizeof worst[i].name, "%.63s", name ? name : "");
	}
	return n;
}
