/* An engine on a pretend card (modules/pretend_card): whole trainings, bit for bit those on the host, eager and replayed. Whatever host
 * code reads or writes in the card's memory ends the test.
 * SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/checkpoint.h"
#include "kernels/cuda.h"
#include "support/data_files.h"
#include "support/small_run.h"

#define STEPS 7

static const mu_ops *card;

static int load_card(void **state)
{
	mural_error err = {0};
	(void)state;
	void *module = dlopen(MU_TEST_BINARY_DIR "/lib/test/pretend_card.so", RTLD_NOW);
	const mu_cuda_module *entry = module ? dlsym(module, MU_CUDA_MODULE_SYMBOL) : NULL;
	if (!entry || entry->check(&err) != MURAL_OK) {
		print_message("no pretend card: %s\n", entry ? err.message : dlerror());
		return 1;
	}
	card = entry->ops;
	return 0;
}

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

static const char *const trainings[] = {
        "--clip 0.5",
        "--optimizer Lamb --ema 0.9 --ema-evaluate",
        "--optimizer Muon --freeze embed --ema 0.9",
};
#define TRAININGS (sizeof trainings / sizeof *trainings)

static void the_card_trains_like_the_host(void **state)
{
	(void)state;
	for (size_t i = 0; i < TRAININGS; i++) {
		char eager[128];
		snprintf(eager, sizeof eager, "%s --eager", trainings[i]);
		const result host = train(trainings[i], NULL), on_card = train(trainings[i], card),
		             queued = train(eager, card);
		assert_memory_equal(&host, &on_card, sizeof host);
		assert_memory_equal(&host, &queued, sizeof host);
		assert_true(host.loss[0] != host.loss[STEPS - 1] && host.norm[1] > 0);
	}
}

/* On the card, the host, the card. */
static void sets_travel_between_card_and_host(void **state)
{
	(void)state;
	char set[MURAL_CHECKPOINT_PATH];
	char *folder = test_folder_create();
	assert_non_null(folder);
	for (size_t i = 0; i < TRAININGS; i++) {
		small_run t;
		const result whole = train(trainings[i], NULL);
		result parts = {.test_loss = 0};
		for (int first = 0; first < STEPS; first += 3) {
			const int last = first + 3 < STEPS ? first + 3 : STEPS;
			small_run_start(&t, trainings[i], first == 3 ? NULL : card, first ? set : NULL);
			run(&t, first, last, &parts);
			assert_int_equal(mural_checkpoint_save(t.engine, folder, 1, NULL), MURAL_OK);
			assert_int_equal(mu_checkpoint_path(set, folder, (uint64_t)last, NULL), MURAL_OK);
			small_run_stop(&t);
		}
		assert_memory_equal(&whole, &parts, sizeof whole);
		mu_checkpoint_clear(folder);
	}
	test_folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_card_trains_like_the_host),
	        cmocka_unit_test(sets_travel_between_card_and_host),
	};
	return cmocka_run_group_tests(tests, load_card, NULL);
}
