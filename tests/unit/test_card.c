/* An engine on a device whose memory the host may not touch: whole trainings, bit for bit those on the host.
 *
 * The card is the host with its device memory locked: only copies, zeroing and rows of the table open it. So whatever host code
 * reads or writes there ends the test.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "engine/checkpoint.h"
#include "support/data_files.h"
#include "support/small_run.h"

#define BLOCKS 16
#define STEPS 7

static struct {
	void *memory;
	size_t bytes;
} blocks[BLOCKS];

static void lock(bool locked)
{
	for (int i = 0; i < BLOCKS; i++)
		if (blocks[i].memory &&
		    mprotect(blocks[i].memory, blocks[i].bytes, locked ? PROT_NONE : PROT_READ | PROT_WRITE) != 0)
			fail_msg("cannot lock the card's memory");
}

static mural_status card_facts(mu_device_handle *device, mu_device_facts *facts, mural_error *err)
{
	MU_TRY(mu_device_host.facts(device, facts, err));
	facts->shares_host_memory = false;
	return MURAL_OK;
}

static mural_status card_allocate(mu_device_handle *device, mu_memory kind, size_t bytes, void **memory,
                                  mural_error *err)
{
	MU_TRY(mu_device_host.allocate(device, kind, bytes, memory, err));
	for (int i = 0; kind == MU_MEMORY_DEVICE && i < BLOCKS; i++)
		if (!blocks[i].memory) {
			blocks[i].memory = *memory;
			blocks[i].bytes = bytes ? bytes : 1;
			lock(true);
			return MURAL_OK;
		}
	assert_int_equal(kind, MU_MEMORY_PINNED);
	return MURAL_OK;
}

static void card_release(mu_device_handle *device, mu_memory kind, void *memory, size_t bytes)
{
	for (int i = 0; i < BLOCKS; i++)
		if (memory && blocks[i].memory == memory)
			blocks[i].memory = NULL;
	mu_device_host.release(device, kind, memory, bytes);
}

static mural_status card_copy(mu_queue *queue, void *to, const void *from, size_t bytes, mural_error *err)
{
	lock(false);
	mural_status status = mu_device_host.copy(queue, to, from, bytes, err);
	lock(true);
	return status;
}

static mural_status card_zero(mu_queue *queue, void *memory, size_t bytes, mural_error *err)
{
	lock(false);
	mural_status status = mu_device_host.zero(queue, memory, bytes, err);
	lock(true);
	return status;
}

#define ROW(row, op)                                                                            \
	static mural_status row(mu_ops_context *context, const mu_##op *call, mural_error *err) \
	{                                                                                       \
		lock(false);                                                                    \
		mural_status status = mu_ops_cpu.row(context, call, err);                       \
		lock(true);                                                                     \
		return status;                                                                  \
	}
ROW(patchify, patchify)
ROW(embed_forward, embed)
ROW(embed_backward, embed)
ROW(layernorm_forward, layernorm)
ROW(layernorm_backward, layernorm)
ROW(linear_forward, linear)
ROW(linear_backward, linear)
ROW(attention_forward, attention)
ROW(attention_backward, attention)
ROW(dropout, dropout)
ROW(drop_path, drop_path)
ROW(pool_forward, pool)
ROW(pool_backward, pool)
ROW(cross_entropy, cross_entropy)
ROW(adamw, adamw)
ROW(sum_squares, sum_squares)
ROW(settle, settle)
ROW(lamb, lamb)
ROW(momentum, momentum)
ROW(newton_schulz, newton_schulz)
ROW(tensor_norms, tensor_norms)
ROW(apply_update, apply_update)
ROW(ema, ema)
ROW(cast, cast)

static mu_device_table card;
static mu_ops ops;

static void make_card(void)
{
	card = mu_device_host;
	card.facts = card_facts;
	card.allocate = card_allocate;
	card.release = card_release;
	card.copy = card_copy;
	card.zero = card_zero;
	ops = mu_ops_cpu;
	ops.name = "card";
	ops.device = &card;
	ops.patchify = patchify;
	ops.embed_forward = embed_forward;
	ops.embed_backward = embed_backward;
	ops.layernorm_forward = layernorm_forward;
	ops.layernorm_backward = layernorm_backward;
	ops.linear_forward = linear_forward;
	ops.linear_backward = linear_backward;
	ops.attention_forward = attention_forward;
	ops.attention_backward = attention_backward;
	ops.dropout = dropout;
	ops.drop_path = drop_path;
	ops.pool_forward = pool_forward;
	ops.pool_backward = pool_backward;
	ops.cross_entropy = cross_entropy;
	ops.adamw = adamw;
	ops.sum_squares = sum_squares;
	ops.settle = settle;
	ops.lamb = lamb;
	ops.momentum = momentum;
	ops.newton_schulz = newton_schulz;
	ops.tensor_norms = tensor_norms;
	ops.apply_update = apply_update;
	ops.ema = ema;
	ops.cast = cast;
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
		small_run t;
		result host = {.test_loss = 0}, on_card = {.test_loss = 0};
		small_run_start(&t, trainings[i], NULL, NULL);
		run(&t, 0, STEPS, &host);
		small_run_stop(&t);
		small_run_start(&t, trainings[i], &ops, NULL);
		run(&t, 0, STEPS, &on_card);
		small_run_stop(&t);
		assert_memory_equal(&host, &on_card, sizeof host);
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
		result whole = {.test_loss = 0}, parts = {.test_loss = 0};
		small_run_start(&t, trainings[i], NULL, NULL);
		run(&t, 0, STEPS, &whole);
		small_run_stop(&t);
		for (int first = 0; first < STEPS; first += 3) {
			const int last = first + 3 < STEPS ? first + 3 : STEPS;
			small_run_start(&t, trainings[i], first == 3 ? NULL : &ops, first ? set : NULL);
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
	make_card();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
