/* Predicting epochs: the study's rows within the bounds that carrying over mean step times sets, made-up clusters exactly,
 * outliers ignored, rows that cannot be told refused with a reason. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mural/fit.h"
#include "study/epochs.h"
#include "support/data_files.h"

#define PARAMETERS 86567656.0 /* of ViT-B/16 with 1000 classes */
#define HEADER "cluster,gpu,placement,dataset,gpus,precision,batch_per_gpu,dataset_fraction,epoch_seconds_median\n"

static char *folder;
static mu_epochs study;

static int setup(void **state)
{
	(void)state;
	mural_error err = {0};
	folder = test_folder_create();
	return mu_epochs_read(&study, MU_TEST_SOURCE_DIR "/cases/epoch-times.csv", true, 0, &err) == MURAL_OK ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	mu_epochs_release(&study);
	test_folder_remove(folder);
	return 0;
}

typedef bool row_choice(const mu_epoch_row *row);

static const char *path_of(const char *name)
{
	static char paths[2][512];
	static int next;
	next = !next;
	snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
	return paths[next];
}

static size_t write_choice(const char *name, row_choice *wanted, row_choice *but_not)
{
	size_t n = 0;
	FILE *file = fopen(path_of(name), "w");
	assert_non_null(file);
	fprintf(file, "%s\n", study.table.header.raw);
	for (size_t r = 0; r < study.table.n_rows; r++) {
		if (!wanted(&study.rows[r]) || (but_not && but_not(&study.rows[r])))
			continue;
		fprintf(file, "%s\n", study.table.rows[r].raw);
		n++;
	}
	fclose(file);
	return n;
}

static void keep_reason(void *user, unsigned line, const char *reason)
{
	char *said = user;
	size_t used = strlen(said);
	snprintf(said + used, 1024 - used, "%u: %s\n", line, reason);
}

/* Fits measured.csv and predicts wanted.csv into predicted.csv. */
static mural_fit_summary predict(char said[1024])
{
	mural_error err = {0};
	mural_fit *fit;
	mural_fit_summary summary;
	mural_fit_settings settings = {.parameters = PARAMETERS};
	said[0] = '\0';
	assert_int_equal(mural_fit_create(&fit, path_of("measured.csv"), &settings, &err), MURAL_OK);
	FILE *out = fopen(path_of("predicted.csv"), "w");
	assert_non_null(out);
	assert_int_equal(mural_fit_predict(fit, path_of("wanted.csv"), out, keep_reason, said, &summary, &err),
	                 MURAL_OK);
	fclose(out);
	mural_fit_free(fit);
	return summary;
}

static mural_fit_summary predict_study(row_choice *measured, row_choice *wanted)
{
	char said[1024];
	size_t fitted = write_choice("measured.csv", measured, NULL), n = write_choice("wanted.csv", wanted, measured);
	mural_fit_summary summary = predict(said);
	assert_string_equal(said, "");
	assert_int_equal(summary.fitted, fitted);
	assert_int_equal(summary.wanted, n);
	assert_int_equal(summary.compared, n);
	return summary;
}

static bool vector(const mu_epoch_row *row)
{
	return strcmp(row->cluster, "vector") == 0;
}

static bool vector_few(const mu_epoch_row *row)
{
	return vector(row) && row->gpus <= 4;
}

static bool vector_16(const mu_epoch_row *row)
{
	return vector(row) && (row->batch == 16 || row->gpus == 1);
}

static bool vector_16_and_one(const mu_epoch_row *row)
{
	return vector(row) &&
	       (row->batch == 16 || (row->gpus == 1 && strcmp(row->dataset, "CIFAR-10") == 0 && row->images == 50000));
}

static bool vector_inside(const mu_epoch_row *row)
{
	return vector(row) && (strcmp(row->placement, "intra-node") == 0 || row->gpus == 2);
}

static bool tesla(const mu_epoch_row *row)
{
	return strcmp(row->cluster, "tesla") == 0;
}

static bool tesla_few(const mu_epoch_row *row)
{
	return tesla(row) && row->gpus <= 3;
}

static bool tesla_fp16(const mu_epoch_row *row)
{
	return strcmp(row->cluster, "tesla") == 0 && row->precision == MU_FP16;
}

static bool tesla_alike(const mu_epoch_row *row)
{
	return strcmp(row->cluster, "tesla") == 0 && (row->gpus == 1 || (row->precision == MU_FP32 && row->gpus <= 3));
}

/* Carrying over the mean step time of the 2-4 GPU rows gives 2.28 and 6.92 %. */
static void test_more_gpus(void **state)
{
	(void)state;
	mural_fit_summary s = predict_study(vector_few, vector);
	assert_true(s.median_error < 0.0228 && s.p90_error < 0.0692);
}

static void test_other_batch(void **state)
{
	(void)state;
	assert_true(predict_study(vector_16, vector).median_error < 0.03);
	assert_true(predict_study(vector_16_and_one, vector).median_error < 0.03);
}

static void test_other_placement(void **state)
{
	(void)state;
	assert_true(predict_study(vector_inside, vector).median_error < 0.04);
}

static void test_other_precision(void **state)
{
	(void)state;
	mural_fit_summary s = predict_study(tesla_alike, tesla_fp16);
	assert_int_equal(s.compared, 3);
	assert_true(s.max_error < 0.05);
}

/* The 4th and 5th machine are a slower card, and one behind a slower link: neither is in the rows that are fitted. Their cards are
 * told by name only. */
static void test_described_cluster(void **state)
{
	(void)state;
	const char *text = "{ name: tesla\n algorithm: ring\n"
	                   "devices: { \"RTX 3070\": {}, \"P4\": {}, \"GTX 1070\": {} }\n"
	                   "links: { fast: { gb_per_s: 0.95 }, slow: { gb_per_s: 0.12 } }\n"
	                   "nodes: [ { count: 3, devices: { \"RTX 3070\": 1 }, uplink: \"fast\" },\n"
	                   "         { devices: { \"P4\": 1 }, uplink: \"fast\" },\n"
	                   "         { devices: { \"GTX 1070\": 1 }, uplink: \"slow\" } ] }\n";
	mural_error err = {0};
	mural_cluster *cluster;
	mural_fit *fit;
	mural_fit_summary summary;
	test_file_write(folder, "tesla.json", text, strlen(text));
	if (mural_cluster_read(&cluster, path_of("tesla.json"), &err) != MURAL_OK)
		fail_msg("%s %s", err.where, err.message);
	write_choice("measured.csv", tesla_few, NULL);
	assert_int_equal(write_choice("wanted.csv", tesla, tesla_few), 4);
	mural_fit_settings settings = {.parameters = PARAMETERS, .flops_per_image = 105.4e9, .cluster = cluster};
	assert_int_equal(mural_fit_create(&fit, path_of("measured.csv"), &settings, &err), MURAL_OK);
	FILE *out = fopen(path_of("predicted.csv"), "w");
	assert_non_null(out);
	assert_int_equal(mural_fit_predict(fit, path_of("wanted.csv"), out, NULL, NULL, &summary, &err), MURAL_OK);
	fclose(out);
	assert_int_equal(summary.compared, 4);
	assert_true(summary.max_error < 0.15);
	mural_fit_free(fit);
	mural_cluster_free(cluster);
}

/* A cluster that does as the model says: 0.01 s + 0.004 s per image, 0.5 s per gigabyte sent. */
static double made_up_step(unsigned gpus, unsigned batch)
{
	return 0.01 + 0.004 * batch + (gpus > 1 ? 0.5 * 2 * (gpus - 1) / gpus * PARAMETERS * 4 / 1e9 : 0);
}

static void write_made_up(const char *name, const unsigned *gpus, size_t n_gpus, const unsigned *batches,
                          size_t n_batches, double spoil)
{
	FILE *file = fopen(path_of(name), "w");
	assert_non_null(file);
	fputs(HEADER, file);
	for (size_t g = 0; g < n_gpus; g++)
		for (size_t b = 0; b < n_batches; b++) {
			double steps = ceil(ceil(50000.0 / gpus[g]) / batches[b]);
			double factor = g == 1 && b == 0 ? spoil : 1;
			fprintf(file, "lab,X,intra-node,CIFAR-10,%u,fp32,%u,1.0,%.6f\n", gpus[g], batches[b],
			        steps * made_up_step(gpus[g], batches[b]) * factor);
		}
	fclose(file);
}

static void test_made_up(void **state)
{
	(void)state;
	char said[1024];
	const unsigned few[] = {1, 2, 4}, many[] = {8, 32}, batches[] = {16, 64}, other[] = {128};
	write_made_up("measured.csv", few, 3, batches, 2, 1);
	write_made_up("wanted.csv", many, 2, other, 1, 1);
	mural_fit_summary s = predict(said);
	assert_int_equal(s.compared, 2);
	assert_true(s.max_error < 0.02); /* launching is assumed small until rows say otherwise */
}

/* One row of twelve is 40 % off: the others still say what is right. */
static void test_outlier(void **state)
{
	(void)state;
	char said[1024];
	const unsigned few[] = {1, 2, 3, 4}, many[] = {8, 32}, batches[] = {16, 32, 64}, other[] = {64};
	write_made_up("measured.csv", few, 4, batches, 3, 1.4);
	write_made_up("wanted.csv", many, 2, other, 1, 1);
	assert_true(predict(said).max_error < 0.03);
}

static void write_text(const char *name, const char *text)
{
	test_file_write(folder, name, text, strlen(text));
}

static void test_reasons(void **state)
{
	(void)state;
	char said[1024];
	write_text("measured.csv", HEADER "lab,X,intra-node,CIFAR-10,1,fp32,16,1.0,600\n"
	                                  "lab,X,intra-node,CIFAR-10,1,fp32,64,1.0,\n");
	write_text("wanted.csv", HEADER "lab,X,intra-node,CIFAR-10,1,fp32,32,1.0,\n"
	                                "lab,Y,intra-node,CIFAR-10,1,fp32,32,1.0,\n"
	                                "lab,X,intra-node,CIFAR-10,1,bf16,32,1.0,\n"
	                                "lab,X,intra-node,CIFAR-10,2,fp32,32,1.0,\n"
	                                "lab,X,intra-node,Birds,1,fp32,32,1.0,\n"
	                                "lab,X,intra-node,CIFAR-10,0,fp32,32,1.0,\n"
	                                "lab,X,intra-node,CIFAR-10,1,fp32,32,nan,\n"
	                                "lab,X,intra-node,CIFAR-10,1,fp32,32,1.0,-3\n");
	mural_fit_summary s = predict(said);
	assert_int_equal(s.fitted, 1);
	assert_int_equal(s.empty, 1);
	assert_int_equal(s.wanted, 8);
	assert_int_equal(s.predicted, 1);
	assert_int_equal(s.compared, 0);
	const char *expected[] = {"3: no measured row has cluster \"lab\" and GPU \"Y\"",
	                          "4: no measured row of this GPU has precision bf16",
	                          "5: no measured row of this GPU has more than one GPU",
	                          "6: the number of images of data set \"Birds\" is not known",
	                          "7: gpus: expected a whole number",
	                          "8: dataset_fraction: expected a number",
	                          "9: epoch_seconds_median: expected seconds above 0"};
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
		assert_non_null(strstr(said, expected[i]));
}

static void test_output(void **state)
{
	(void)state;
	char said[1024];
	write_text("measured.csv", HEADER "lab,X,intra-node,CIFAR-10,1,fp32,50000,1.0,600\n");
	write_text("wanted.csv", "note," HEADER "\"a, b\",lab,X,intra-node,CIFAR-10,1,fp32,50000,1.0,500\r\n"
	                         "c,lab,X,intra-node,CIFAR-10,2,fp32,16,1.0,\n");
	predict(said);
	size_t n;
	char *text = (char *)test_file_read(folder, "predicted.csv", &n);
	const char *expected = "note,cluster,gpu,placement,dataset,gpus,precision,batch_per_gpu,dataset_fraction,"
	                       "epoch_seconds_median,predicted_seconds,relative_error\n"
	                       "\"a, b\",lab,X,intra-node,CIFAR-10,1,fp32,50000,1.0,500,600.000,0.200000\n"
	                       "c,lab,X,intra-node,CIFAR-10,2,fp32,16,1.0,,,\n";
	assert_int_equal(n, strlen(expected));
	assert_memory_equal(text, expected, n);
	free(text);
}

static void test_refused(void **state)
{
	(void)state;
	const struct {
		const char *text, *says, *where;
	} rows[] = {
	        {"cluster,gpus\n", "there is no column \"gpu\"; did you mean \"gpus\"?", "measured.csv:1"},
	        {HEADER, "no row", "measured.csv"},
	        {HEADER "lab,X,in,CIFAR-10,1,fp32,16,1.0,\n", "nothing to fit", "measured.csv"},
	        {HEADER "lab,X,in,CIFAR-10,1,fp32,16,1.0,nan\n", "expected seconds above 0", "measured.csv:2"},
	        {HEADER "lab,X,in,CIFAR-10,1,fp8,16,1.0,3\n", "expected fp32, tf32, fp16 or bf16", "measured.csv:2"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		mural_error err = {0};
		mural_fit *fit;
		mural_fit_settings settings = {.parameters = PARAMETERS};
		write_text("measured.csv", rows[i].text);
		assert_int_equal(mural_fit_create(&fit, path_of("measured.csv"), &settings, &err), MURAL_DATA);
		assert_null(fit);
		assert_non_null(strstr(err.message, rows[i].says));
		assert_non_null(strstr(err.where, rows[i].where));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_more_gpus),
	        cmocka_unit_test(test_other_batch),
	        cmocka_unit_test(test_other_placement),
	        cmocka_unit_test(test_other_precision),
	        cmocka_unit_test(test_described_cluster),
	        cmocka_unit_test(test_made_up),
	        cmocka_unit_test(test_outlier),
	        cmocka_unit_test(test_reasons),
	        cmocka_unit_test(test_output),
	        cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
