/* Optimizers inside the engine: memory, checkpoints that go on bit for bit, averages of weights, rates per layer, frozen
 * tensors. What each optimizer computes: tests/golden/test_optimizers.c.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "base/safetensors.h"
#include "engine/checkpoint.h"
#include "support/data_files.h"
#include "support/small_run.h"

static char *folder;

static int enter(void **state)
{
	(void)state;
	folder = test_folder_create();
	return !folder;
}

static int leave(void **state)
{
	(void)state;
	mu_checkpoint_clear(folder);
	test_folder_remove(folder);
	return 0;
}

static const char *save(small_run *t)
{
	static char set[MURAL_CHECKPOINT_PATH];
	mural_error err = {0};
	if (mural_checkpoint_save(t->engine, folder, 1, &err) != MURAL_OK)
		fail_msg("%s", err.message);
	assert_int_equal(mu_checkpoint_path(set, folder, mural_engine_steps_done(t->engine), NULL), MURAL_OK);
	return set;
}

/* How many tensors a file of a set has. */
static size_t count_of(const char *set, const char *name)
{
	char path[MU_CHECKPOINT_FILE];
	mu_safetensors *file;
	snprintf(path, sizeof path, "%s/%s", set, name);
	if (mu_safetensors_open(&file, path, NULL) != MURAL_OK)
		return 0;
	size_t n = mu_safetensors_count(file);
	mu_safetensors_free(file);
	return n;
}

typedef struct kind {
	const char *options;
	size_t spans; /* of state */
} kind;

static const kind kinds[] = {
        {"--optimizer AdamW --lr 1e-3", 2},
        {"--optimizer Adam --lr 1e-3", 2},
        {"--optimizer SGD --lr 0.05", 0},
        {"--optimizer SGD --lr 0.05 --momentum 0.9 --nesterov", 1},
        {"--optimizer Lamb --lr 1e-3", 2},
        {"--optimizer Lamb --lr 1e-3 --decay-rule weights --layer-decay 0.75", 2},
        {"--optimizer Lion --lr 1e-4", 1},
        {"--optimizer Muon --lr 0.02", 2},
        {"--optimizer AdamW --lr 1e-3 --ema 0.9 --ema-warm-up --ema-evaluate", 2},
        {"--optimizer Muon --freeze embed,blocks.0,*.ln_2.* --ema 0.5", 2},
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* The set is taken in the middle of the second epoch. */
static void each_goes_on_bit_for_bit(void **state)
{
	enum { BEFORE = 6, AFTER = 5 };
	double losses[KINDS];
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		small_run a, b;
		small_run_start(&a, kinds[i].options, NULL, NULL);
		const double first = small_run_step(&a).loss;
		for (int n = 1; n < BEFORE; n++)
			small_run_step(&a);
		const char *set = save(&a);
		const size_t tensors = count_of(set, MU_CHECKPOINT_MODEL);
		assert_int_equal(count_of(set, MU_CHECKPOINT_OPTIMIZER), kinds[i].spans * tensors);
		assert_int_equal(count_of(set, MU_CHECKPOINT_AVERAGE), a.engine->store.average ? tensors : 0);
		small_run_start(&b, kinds[i].options, NULL, set);
		for (int n = 0; n < AFTER; n++) {
			const mural_step_facts one = small_run_step(&a), other = small_run_step(&b);
			assert_true(one.loss == other.loss && one.gradient_norm == other.gradient_norm);
			losses[i] = one.loss;
		}
		const mu_store *x = &a.engine->store, *y = &b.engine->store;
		assert_memory_equal(x->parameters, y->parameters, x->elements * sizeof(float));
		if (x->average)
			assert_memory_equal(x->average, y->average, x->elements * sizeof(float));
		assert_true(small_run_evaluate(&a).loss == small_run_evaluate(&b).loss);
		assert_true(isfinite(losses[i]) && losses[i] != first);
		small_run_stop(&a);
		small_run_stop(&b);
	}
	for (size_t i = 0; i < KINDS; i++)
		for (size_t j = 0; j < i; j++) { /* Adam decays apart from the gradient, an average changes nothing */
			const bool same = (i == 1 || i == 8) && (j == 0 || j == 1);
			assert_int_equal(losses[i] == losses[j], same);
		}
}

static float *copy_of(const void *span, size_t n)
{
	float *copy = malloc(n * sizeof *copy);
	assert_non_null(copy);
	return memcpy(copy, span, n * sizeof *copy);
}

/* The average as the formula has it, and the evaluation that of an engine with these weights. */
static void averages_follow_the_weights(void **state)
{
	small_run t, plain;
	(void)state;
	small_run_start(&t, "--lr 1e-2 --ema 0.75 --ema-evaluate", NULL, NULL);
	small_run_start(&plain, "--lr 1e-2", NULL, NULL);
	const mu_store *store = &t.engine->store;
	float *average = copy_of(store->parameters, store->elements);
	for (int n = 0; n < 5; n++) {
		assert_true(small_run_step(&t).loss == small_run_step(&plain).loss);
		const float *p = store->parameters;
		for (size_t i = 0; i < store->elements; i++)
			average[i] = 0.75f * average[i] + 0.25f * p[i];
	}
	for (size_t i = 0; i < store->elements; i++)
		assert_true(fabsf(average[i] - store->average[i]) <= 1e-6f);
	const mural_evaluation of_average = small_run_evaluate(&t);
	assert_true(of_average.loss != small_run_evaluate(&plain).loss);
	memcpy(plain.engine->store.parameters, store->average, store->elements * sizeof(float));
	assert_true(of_average.loss == small_run_evaluate(&plain).loss);

	char path[1100]; /* what is evaluated is what is saved */
	snprintf(path, sizeof path, "%s/weights.safetensors", folder);
	assert_int_equal(mural_engine_save_weights(t.engine, path, NULL), MURAL_OK);
	assert_int_equal(mural_engine_load_weights(plain.engine, path, NULL), MURAL_OK);
	assert_true(of_average.loss == small_run_evaluate(&plain).loss);
	small_run_stop(&t);
	small_run_stop(&plain);
	free(average);
}

static void another_set_than_with_an_average_is_refused(void **state)
{
	small_run t, other;
	mural_error err = {0};
	(void)state;
	small_run_start(&t, "", NULL, NULL);
	small_run_step(&t);
	const char *set = save(&t);
	small_run_start(&other, "--ema 0.9", NULL, NULL);
	mural_engine_free(other.engine);
	const mural_engine_settings settings = {
	        .config = &other.config, .comm = other.comm, .training = true, .train = other.data};
	assert_int_equal(mural_engine_create(&other.engine, &settings, &err), MURAL_OK);
	assert_int_equal(mural_checkpoint_load(other.engine, set, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "mural.ema is off there and on here"));
	small_run_stop(&t);
	small_run_stop(&other);
}

/* One plain step from the same weights on the same images: the steps of units are apart by powers of the decay. */
static void layers_have_rates_of_their_own(void **state)
{
	small_run even, decayed;
	(void)state;
	small_run_start(&even, "--optimizer SGD --lr 0.5 --clip 0", NULL, NULL);
	small_run_start(&decayed, "--optimizer SGD --lr 0.5 --clip 0 --layer-decay 0.5", NULL, NULL);
	const mu_store *a = &even.engine->store, *b = &decayed.engine->store;
	float *before = copy_of(a->parameters, a->elements);
	small_run_step(&even);
	small_run_step(&decayed);
	const float *x = a->parameters, *y = b->parameters;
	for (size_t u = 0; u < a->n_units; u++) {
		const double scale = pow(0.5, (double)(a->n_units - 1 - u));
		double along = 0, square = 0;
		for (size_t i = a->offset[u]; i < a->offset[u + 1]; i++) {
			const double full = (double)x[i] - (double)before[i], part = (double)y[i] - (double)before[i];
			along += full * part;
			square += full * full;
		}
		assert_true(square > 0 && fabs(along / square - scale) < 1e-3 * scale);
	}
	small_run_stop(&even);
	small_run_stop(&decayed);
	free(before);
}

/* Frozen tensors keep their bits though they decay, those of a frozen prefix have no gradient, and the norm is that of the
 * others. */
static void frozen_tensors_stay(void **state)
{
	small_run t;
	(void)state;
	small_run_start(&t, "--lr 1e-2 --weight-decay 0.1 --freeze embed,blocks.0,*.ln_1.weight", NULL, NULL);
	const mu_store *store = &t.engine->store;
	small_run_step(&t); /* the head begins with zeros, which let no gradient through */
	float *before = copy_of(store->parameters, store->elements);
	assert_int_equal(t.engine->first_trained, 2);
	for (int n = 0; n < 3; n++) {
		const double norm = small_run_step(&t).gradient_norm;
		const float *g = store->gradients, *p = store->parameters;
		double squares = 0;
		for (size_t i = 0; i < store->offset[2]; i++)
			assert_true(g[i] == 0 && p[i] == before[i]);
		for (size_t u = 2; u < store->n_units; u++)
			for (size_t k = 0; k < store->units[u].n_tensors; k++) {
				const mu_tensor *tensor = &store->units[u].tensors[k];
				const size_t at = store->offset[u] + tensor->offset, n_bytes = tensor->elements * 4;
				const bool frozen = tensor->flags & MU_TENSOR_FROZEN;
				assert_int_equal(frozen, strstr(tensor->name, "ln_1.weight") != NULL);
				assert_int_equal(memcmp(p + at, before + at, n_bytes) == 0, frozen);
				for (size_t i = 0; i < tensor->elements && !frozen; i++)
					squares += (double)g[at + i] * (double)g[at + i];
			}
		assert_true(fabs(norm - sqrt(squares)) < 1e-6 * norm);
	}
	small_run_stop(&t);
	free(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(each_goes_on_bit_for_bit),
	        cmocka_unit_test(averages_follow_the_weights),
	        cmocka_unit_test(another_set_than_with_an_average_is_refused),
	        cmocka_unit_test(layers_have_rates_of_their_own),
	        cmocka_unit_test(frozen_tensors_stay),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
