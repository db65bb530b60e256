/* Whole trainings on a GPU: against the processor, replayed against eager, and checkpoints that travel between the two.
 * Skipped aloud where there is no module or no GPU (MURAL_TEST_CUDA=require: fails).
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/checkpoint.h"
#include "kernels/cuda.h"
#include "support/data_files.h"
#include "support/small_run.h"

#define STEPS 7

/* From the same weights: fp32 on both sides, sums in another order. */
#define FIRST_LOSS 2e-6
#define FIRST_NORM 2e-5

static const mu_ops *cuda;

static int find_gpu(void **state)
{
	mural_error err = {0};
	const char *require = getenv("MURAL_TEST_CUDA");
	(void)state;
	if (mu_cuda_ops(&cuda, &err) == MURAL_OK)
		return 0;
	print_message("training on a GPU is not tested: %s\n", err.message);
	return require && strcmp(require, "require") == 0;
}

#define NEEDS_GPU               \
	do {                    \
		(void)state;    \
		if (!cuda)      \
			skip(); \
	} while (0)

typedef struct result {
	double loss[STEPS], norm[STEPS], test_loss, test_top1;
} result;

/* Steps from `first` on, then an evaluation. */
static void run(small_run *t, int first, int last, result *r)
{
	for (int i = first; i < last; i++) {
		const mural_step_facts facts = small_run_step(t);
		r->loss[i] = facts.loss;
		r->norm[i] = facts.gradient_norm;
	}
	const mural_evaluation evaluation = small_run_evaluate(t);
	r->test_loss = evaluation.loss;
	r->test_top1 = evaluation.top1;
}

static result train(const char *options, const mu_ops *ops)
{
	small_run t;
	result r = {.test_loss = 0};
	small_run_start(&t, options, ops, NULL);
	run(&t, 0, STEPS, &r);
	small_run_stop(&t);
	return r;
}

static double apart(double a, double b)
{
	return fabs(a / b - 1);
}

static bool are_close(const char *options, const result *a, const result *b, double tolerance)
{
	double loss = apart(a->test_loss, b->test_loss);
	for (int i = 0; i < STEPS; i++)
		loss = fmax(loss, apart(a->loss[i], b->loss[i]));
	const double first_loss = apart(a->loss[0], b->loss[0]), first_norm = apart(a->norm[0], b->norm[0]);
	print_message("%s: first step off by %.1e (gradient %.1e), all by %.1e of %.0e\n", options, first_loss,
	              first_norm, loss, tolerance);
	return first_loss < FIRST_LOSS && first_norm < FIRST_NORM && loss < tolerance;
}

/* tolerance: of all losses. SGD carries rounding on as it is. The others divide a gradient by its own size, or step by a
 * sign: where it is nothing but rounding (keys' biases have none, mathematically), that decides about whole steps. */
static const struct {
	const char *options;
	double tolerance;
} trainings[] = {
        {"--deterministic --optimizer SGD --lr 1e-2 --momentum 0.9 --weight-decay 0.01", 2e-5},
        {"--deterministic --clip 0.5", 1e-3},
        {"--deterministic --optimizer Lion --lr 1e-4", 1e-3},
        {"--deterministic --optimizer Lamb --ema 0.9 --ema-evaluate", 1e-3},
        {"--deterministic --optimizer Muon --freeze embed --ema 0.9", 1e-3},
};
#define TRAININGS (sizeof trainings / sizeof *trainings)

static void the_gpu_trains_like_the_processor(void **state)
{
	NEEDS_GPU;
	bool close = true;
	for (size_t i = 0; i < TRAININGS; i++) {
		const char *options = trainings[i].options;
		const result processor = train(options, &mu_ops_cpu), gpu = train(options, cuda);
		close &= are_close(options, &processor, &gpu, trainings[i].tolerance);
		assert_true(gpu.loss[0] != gpu.loss[STEPS - 1] && gpu.norm[1] > 0);
	}
	assert_true(close);
}

/* Bit for bit: the same operations in the same order. */
static void replayed_is_eager(void **state)
{
	NEEDS_GPU;
	for (size_t i = 0; i < TRAININGS; i++) {
		char options[256];
		snprintf(options, sizeof options, "%s --eager", trainings[i].options);
		const result replayed = train(trainings[i].options, cuda), eager = train(options, cuda);
		assert_memory_equal(&replayed, &eager, sizeof eager);
	}
}

/* On the GPU, the processor, the GPU: as on the processor alone. */
static void sets_travel_between_gpu_and_processor(void **state)
{
	NEEDS_GPU;
	char set[MURAL_CHECKPOINT_PATH];
	char *folder = test_folder_create();
	bool close = true;
	assert_non_null(folder);
	for (size_t i = 0; i < TRAININGS; i++) {
		small_run t;
		const result whole = train(trainings[i].options, &mu_ops_cpu);
		result parts = {.test_loss = 0};
		for (int first = 0; first < STEPS; first += 3) {
			const int last = first + 3 < STEPS ? first + 3 : STEPS;
			small_run_start(&t, trainings[i].options, first == 3 ? &mu_ops_cpu : cuda, first ? set : NULL);
			run(&t, first, last, &parts);
			assert_int_equal(mural_checkpoint_save(t.engine, folder, 1, NULL), MURAL_OK);
			assert_int_equal(mu_checkpoint_path(set, folder, (uint64_t)last, NULL), MURAL_OK);
			small_run_stop(&t);
		}
		close &= are_close(trainings[i].options, &whole, &parts, trainings[i].tolerance);
		mu_checkpoint_clear(folder);
	}
	test_folder_remove(folder);
	assert_true(close);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_gpu_trains_like_the_processor),
	        cmocka_unit_test(replayed_is_eager),
	        cmocka_unit_test(sets_travel_between_gpu_and_processor),
	};
	return cmocka_run_group_tests(tests, find_gpu, NULL);
}
