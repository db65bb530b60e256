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

#include "base/files.h"
#include "engine/checkpoint.h"
#include "engine/engine_internal.h"
#include "support/data_files.h"

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
}

static const char *const task[] = {
        "--model",
        "mu",
        "--image-size",
        "8",
        "--patch",
        "4",
        "--channels",
        "1",
        "--classes",
        "3",
        "--data",
        "synthetic",
        "--batch",
        "12",
        "--micro-batch",
        "3",
        "--dropout",
        "0.1",
        "--drop-path",
        "0.1",
        "--clip",
        "0.5",
        "--crop-padding",
        "1",
        "--epochs",
        "9",
        "--threads",
        "1",
        "--synthetic-images",
        "22",
        "--prefetch",
        "2",
        "--loader-threads",
        "1",
};

typedef struct training {
	mural_comm *comm;
	mural_config config;
	mural_data *data;
	mural_engine *engine;
} training;

static void start(training *t, bool on_card, const char *set)
{
	mural_error err = {0};
	mural_config_sources sources = {.argc = sizeof task / sizeof *task, .argv = task, .ranks = 1};
	*t = (training){0};
	assert_int_equal(mural_comm_open(&t->comm, "self", &err), MURAL_OK);
	mural_config_resolve(&t->config, NULL, &sources, &err);
	assert_string_equal(err.message, "");
	assert_int_equal(mural_data_open(&t->data, &t->config.data, MURAL_SPLIT_TRAIN, 1, 1, 8, 8, 3, &err), MURAL_OK);
	const mural_engine_settings settings = {
	        .config = &t->config, .comm = t->comm, .training = true, .train = t->data, .test = t->data};
	mu_engine_create_on(&t->engine, &settings, on_card ? &ops : NULL, &err);
	assert_string_equal(err.message, "");
	if (set)
		assert_int_equal(mural_checkpoint_load(t->engine, set, &err), MURAL_OK);
	assert_int_equal(mural_engine_train_begin(t->engine, &err), MURAL_OK);
	mural_memory_plan planned, used;
	mural_engine_memory(t->engine, &planned, &used);
	assert_memory_equal(&planned, &used, sizeof planned);
}

static void stop(training *t)
{
	mural_engine_free(t->engine);
	mural_data_free(t->data);
	mural_comm_close(t->comm);
}

typedef struct result {
	double loss[STEPS], norm[STEPS], test_loss, test_top1;
} result;

/* Steps from `first` on, then an evaluation. */
static void run(training *t, int first, int last, result *r)
{
	mural_error err = {0};
	for (int i = first; i < last; i++) {
		mural_step_facts facts;
		if (mural_engine_step(t->engine, &facts, &err) != MURAL_OK)
			fail_msg("%s", err.message);
		r->loss[i] = facts.loss;
		r->norm[i] = facts.gradient_norm;
	}
	mural_evaluation evaluation;
	assert_int_equal(mural_engine_evaluate(t->engine, t->data, &evaluation, &err), MURAL_OK);
	assert_int_equal(evaluation.images, 22);
	r->test_loss = evaluation.loss;
	r->test_top1 = evaluation.top1;
}

static void the_card_trains_like_the_host(void **state)
{
	training t;
	result host = {.test_loss = 0}, on_card = {.test_loss = 0};
	(void)state;
	start(&t, false, NULL);
	run(&t, 0, STEPS, &host);
	stop(&t);
	start(&t, true, NULL);
	run(&t, 0, STEPS, &on_card);
	stop(&t);
	assert_memory_equal(&host, &on_card, sizeof host);
	assert_true(host.loss[0] != host.loss[STEPS - 1] && host.norm[1] > 0);
}

static void sets_travel_between_card_and_host(void **state)
{
	training t;
	result whole = {.test_loss = 0}, parts = {.test_loss = 0};
	char set[MURAL_CHECKPOINT_PATH];
	char *folder = test_folder_create();
	(void)state;
	assert_non_null(folder);
	start(&t, false, NULL);
	run(&t, 0, STEPS, &whole);
	stop(&t);
	for (int first = 0; first < STEPS; first += 3) { /* on the card, the host, the card */
		const int last = first + 3 < STEPS ? first + 3 : STEPS;
		start(&t, first != 3, first ? set : NULL);
		run(&t, first, last, &parts);
		assert_int_equal(mural_checkpoint_save(t.engine, folder, 1, NULL), MURAL_OK);
		assert_int_equal(mu_checkpoint_path(set, folder, (uint64_t)last, NULL), MURAL_OK);
		stop(&t);
	}
	assert_memory_equal(&whole, &parts, sizeof whole);
	mu_checkpoint_clear(folder);
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
