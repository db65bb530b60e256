/* What the differential test cannot ask of the CUDA module: long sequences, the same bits again, a captured step, and what
 * it says when something cannot be done. Skipped aloud where there is no module or no GPU (MURAL_TEST_CUDA=require: fails).
 * timeout: 300 (seconds; the reference takes its time)
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda.h"
#include "kernels/reference/element.h"

static const mu_ops *cuda;
static mu_device device;
static mu_ops_context *context;
static mural_error err;

static void check(mural_status status)
{
	if (status != MURAL_OK)
		fail_msg("%s", err.message);
}

static int open_device(void **state)
{
	(void)state;
	const char *require = getenv("MURAL_TEST_CUDA");
	if (mu_cuda_ops(&cuda, &err) != MURAL_OK) {
		print_message("the CUDA module is not tested: %s\n", err.message);
		return require && strcmp(require, "require") == 0;
	}
	check(mu_device_open(&device, cuda->device, 0, &err));
	check(cuda->open(device.queue, 0, &context, &err));
	return 0;
}

static int close_device(void **state)
{
	(void)state;
	if (cuda)
		cuda->close(context);
	mu_device_close(&device);
	return 0;
}

#define NEEDS_GPU               \
	do {                    \
		(void)state;    \
		if (!cuda)      \
			skip(); \
	} while (0)

/* n random numbers of this type on the host; the same for each number. */
static void *numbers(mu_dtype type, size_t n, uint32_t number, double amplitude)
{
	void *p = malloc(n * mu_dtype_bytes(type));
	assert_non_null(p);
	const mu_random_key key = mu_random_key_make(number, MU_PURPOSE_TEST, 0);
	for (size_t i = 0; i < n; i++)
		mu_element_store(type, p, i, amplitude * (2 * mu_random_uniform(key, 0, i) - 1));
	return p;
}

static void *on_device(const void *from, size_t bytes)
{
	void *p;
	check(cuda->device->allocate(device.handle, MU_MEMORY_DEVICE, bytes, &p, &err));
	if (from)
		check(cuda->device->copy(device.queue, p, from, bytes, &err));
	return p;
}

/* NaN in every type. */
static void *poisoned(size_t bytes)
{
	void *host = malloc(bytes);
	assert_non_null(host);
	memset(host, 0xff, bytes);
	void *p = on_device(host, bytes);
	check(cuda->device->wait(device.queue, &err));
	free(host);
	return p;
}

static void *to_host(const void *from, size_t bytes)
{
	void *p = malloc(bytes);
	assert_non_null(p);
	check(cuda->device->copy(device.queue, p, from, bytes, &err));
	check(cuda->device->wait(device.queue, &err));
	return p;
}

static void release(void *p)
{
	cuda->device->release(device.handle, MU_MEMORY_DEVICE, p, 0);
}

/* Norm of the difference over the norm of `want`; NaN anywhere is NaN. */
static double distance(mu_dtype type, const void *have, mu_dtype want_type, const void *want, size_t n)
{
	double difference = 0, norm = 0;
	for (size_t i = 0; i < n; i++) {
		const double a = mu_element_load(type, have, i), b = mu_element_load(want_type, want, i);
		difference += (a - b) * (a - b);
		norm += b * b;
	}
	return sqrt(difference / norm);
}

typedef struct attention_result {
	void *o, *lse, *d_qkv; /* on the host */
} attention_result;

static void free_result(attention_result r)
{
	free(r.o);
	free(r.lse);
	free(r.d_qkv);
}

/* Forward and backward on the card, of numbers that depend on the shape alone. */
static attention_result attend(mu_attention op)
{
	const size_t n = op.images * op.tokens * op.heads * op.head_size, e = mu_dtype_bytes(op.type);
	const size_t lse_bytes = op.images * op.heads * op.tokens * sizeof(float);
	void *qkv = numbers(op.type, 3 * n, 1, 2), *d_o = numbers(op.type, n, 2, 1);
	void *device_qkv = on_device(qkv, 3 * n * e), *device_d_o = on_device(d_o, n * e);
	void *d_qkv = poisoned(3 * n * e), *o = poisoned(n * e), *lse = poisoned(lse_bytes);
	void *scratch = on_device(NULL, cuda->attention_workspace(context, &op));
	op.qkv = device_qkv, op.d_o = device_d_o, op.d_qkv = d_qkv, op.o = o, op.lse = lse, op.scratch = scratch;
	check(cuda->attention_forward(context, &op, &err));
	check(cuda->attention_backward(context, &op, &err));
	const attention_result r = {to_host(o, n * e), to_host(lse, lse_bytes), to_host(d_qkv, 3 * n * e)};
	void *arrays[] = {device_qkv, device_d_o, d_qkv, o, lse, scratch};
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
		release(arrays[i]);
	free(qkv);
	free(d_o);
	return r;
}

/* Against the reference. bf16 rounds p, d_s and the results to 8 bits: errors of some 2^-9 each; fp32 sums some hundred
 * products of 24 bits. */
static void hold_heads_against_reference(mu_dtype type, size_t images, size_t tokens, size_t heads, size_t head_size)
{
	mu_attention op = {.type = type, .images = images, .tokens = tokens, .heads = heads, .head_size = head_size};
	const size_t rows = images * heads * tokens, n = rows * head_size, e = mu_dtype_bytes(type);
	const double tolerance = type == MU_F32 ? 1e-5 : 1e-2;
	attention_result have = attend(op);
	void *qkv = numbers(type, 3 * n, 1, 2), *d_o = numbers(type, n, 2, 1);
	mu_ops_context *host;
	check(mu_ops_reference.open(NULL, 1, &host, &err));
	op.qkv = qkv, op.d_o = d_o, op.o = malloc(n * e), op.lse = malloc(rows * sizeof(float));
	op.d_qkv = malloc(3 * n * e), op.scratch = malloc(mu_ops_reference.attention_workspace(host, &op));
	check(mu_ops_reference.attention_forward(host, &op, &err));
	check(mu_ops_reference.attention_backward(host, &op, &err));
	print_message("%zu tokens of %zu, %s: o %.1e, lse %.1e, d_qkv %.1e\n", tokens, head_size, mu_dtype_text(type),
	              distance(type, have.o, type, op.o, n), distance(MU_F32, have.lse, MU_F32, op.lse, rows),
	              distance(type, have.d_qkv, type, op.d_qkv, 3 * n));
	assert_true(distance(type, have.o, type, op.o, n) < tolerance);
	assert_true(distance(MU_F32, have.lse, MU_F32, op.lse, rows) < tolerance);
	assert_true(distance(type, have.d_qkv, type, op.d_qkv, 3 * n) < tolerance);
	mu_ops_reference.close(host);
	free_result(have);
	free_result((attention_result){op.o, op.lse, op.d_qkv});
	free(op.scratch);
	free(qkv);
	free(d_o);
}

static void hold_against_reference(mu_dtype type, size_t tokens, size_t head_size)
{
	hold_heads_against_reference(type, 1, tokens, 1, head_size);
}

/* The lengths that have kernels of their own on Hopper, and those beside them. */
static void test_vit_attention(void **state)
{
	NEEDS_GPU;
	hold_heads_against_reference(MU_BF16, 2, 197, 3, 64);
	hold_heads_against_reference(MU_F16, 3, 197, 2, 64);
	hold_heads_against_reference(MU_BF16, 1, 192, 2, 64);
	hold_heads_against_reference(MU_BF16, 2, 193, 1, 64);
	hold_heads_against_reference(MU_BF16, 1, 201, 2, 64);
	hold_heads_against_reference(MU_BF16, 2, 208, 2, 64);
	hold_heads_against_reference(MU_BF16, 1, 209, 2, 64);
	hold_heads_against_reference(MU_BF16, 1, 197, 2, 56);
}

/* More tokens than one tile of shared memory holds, for every kind of kernel. */
static void test_long_attention(void **state)
{
	NEEDS_GPU;
	hold_against_reference(MU_F32, 577, 64);
	hold_against_reference(MU_BF16, 577, 64);
	hold_against_reference(MU_F16, 577, 80);
	hold_against_reference(MU_BF16, 401, 128);
	hold_against_reference(MU_F32, 401, 104);
	hold_against_reference(MU_BF16, 300, 20); /* not a multiple of 8: no tensor cores */
}

/* Where the reference would take minutes: bf16 against fp32, which was held against the reference above. */
static void test_4096_tokens(void **state)
{
	NEEDS_GPU;
	mu_attention op = {.type = MU_F32, .images = 2, .tokens = 4096, .heads = 2, .head_size = 64};
	const size_t n = op.images * op.tokens * op.heads * op.head_size;
	attention_result want = attend(op);
	op.type = MU_BF16;
	attention_result have = attend(op);
	assert_true(distance(MU_BF16, have.o, MU_F32, want.o, n) < 2e-2); /* the inputs were rounded as well */
	assert_true(distance(MU_BF16, have.d_qkv, MU_F32, want.d_qkv, 3 * n) < 2e-2);
	free_result(want);
	free_result(have);
}

static void test_same_bits_again(void **state)
{
	NEEDS_GPU;
	const mu_attention op = {.type = MU_BF16, .images = 64, .tokens = 197, .heads = 12, .head_size = 64};
	const size_t bytes = 2 * op.images * op.tokens * op.heads * op.head_size;
	attention_result one = attend(op), two = attend(op);
	assert_memory_equal(one.o, two.o, bytes);
	assert_memory_equal(one.d_qkv, two.d_qkv, 3 * bytes);
	free_result(one);
	free_result(two);
}

/* A linear layer forward and backward: products, activation, sums over rows. Gradients of parameters start from 0. */
static void run_layer(const mu_linear *op)
{
	check(cuda->device->zero(device.queue, op->d_w, 2 * op->in * op->out, &err));
	check(cuda->device->zero(device.queue, op->d_b, 2 * op->out, &err));
	check(cuda->device->copy(device.queue, op->d_y, op->x, 2 * op->rows * op->out, &err));
	check(cuda->linear_forward(context, op, &err));
	check(cuda->linear_backward(context, op, &err));
}

static void test_graph_is_eager(void **state)
{
	NEEDS_GPU;
	enum { ROWS = 197, SIDE = 256, SQUARE = SIDE * SIDE };
	void *x = numbers(MU_BF16, ROWS * SIDE, 3, 1), *w = numbers(MU_BF16, SQUARE, 4, 0.1);
	mu_linear op = {.type = MU_BF16, .rows = ROWS, .in = SIDE, .out = SIDE, .activation = MU_ACTIVATION_GELU_ERF};
	const size_t bytes = 2 * ROWS * SIDE;
	void *scratch = on_device(NULL, cuda->linear_workspace(context, &op));
	op.x = on_device(x, bytes), op.w = on_device(w, 2 * SQUARE), op.b = on_device(w, 2 * SIDE);
	op.pre = on_device(NULL, bytes), op.y = on_device(NULL, bytes), op.d_y = on_device(NULL, bytes);
	op.d_x = on_device(NULL, bytes), op.d_w = on_device(NULL, 2 * SQUARE), op.d_b = on_device(NULL, 2 * SIDE);
	op.scratch = scratch;
	run_layer(&op);
	void *outputs[] = {op.y, op.d_x, op.d_w, op.d_b};
	const size_t sizes[] = {bytes, bytes, 2 * SQUARE, 2 * SIDE};
	void *eager[4];
	for (size_t i = 0; i < 4; i++) {
		eager[i] = to_host(outputs[i], sizes[i]);
		check(cuda->device->zero(device.queue, outputs[i], sizes[i], &err));
	}

	mu_graph *graph;
	check(cuda->device->capture_begin(device.queue, &err));
	run_layer(&op);
	check(cuda->device->capture_end(device.queue, &graph, &err));
	for (int replay = 0; replay < 3; replay++)
		check(cuda->device->graph_replay(graph, device.queue, &err));
	for (size_t i = 0; i < 4; i++) {
		void *captured = to_host(outputs[i], sizes[i]);
		assert_memory_equal(captured, eager[i], sizes[i]);
		free(captured);
		free(eager[i]);
	}
	cuda->device->graph_free(graph);
	void *arrays[] = {(void *)op.x, (void *)op.w, (void *)op.b, op.pre, op.y,
	                  op.d_y,       op.d_x,       op.d_w,       op.d_b, scratch};
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
		release(arrays[i]);
	free(x);
	free(w);
}

static void test_what_cannot_be_done(void **state)
{
	NEEDS_GPU;
	mural_error e = {0};
	mu_device_handle *handle;
	void *p;
	assert_int_equal(cuda->device->open(99, &handle, &e), MURAL_FAILED);
	assert_non_null(strstr(e.message, "GPU 99 does not exist"));
	e = (mural_error){0};
	assert_int_equal(cuda->device->allocate(device.handle, MU_MEMORY_DEVICE, (size_t)1 << 50, &p, &e),
	                 MURAL_OUT_OF_MEMORY);
	assert_non_null(strstr(e.message, "1.0 PiB of memory"));
	assert_null(p);
	e = (mural_error){0};
	mu_attention op = {.type = MU_BF16, .images = 1, .tokens = 1, .heads = 1, .head_size = 129};
	assert_int_equal(cuda->attention_forward(context, &op, &e), MURAL_USAGE);
	assert_non_null(strstr(e.message, "heads of size 129"));
	/* and all goes on */
	release(on_device("mural", 6));
	check(cuda->device->wait(device.queue, &err));
}

static void test_events_measure(void **state)
{
	NEEDS_GPU;
	mu_event *from, *to;
	double seconds = -1;
	void *p = on_device(NULL, (size_t)1 << 28);
	check(cuda->device->event_create(device.handle, &from, &err));
	check(cuda->device->event_create(device.handle, &to, &err));
	check(cuda->device->event_record(from, device.queue, &err));
	check(cuda->device->zero(device.queue, p, (size_t)1 << 28, &err));
	check(cuda->device->event_record(to, device.queue, &err));
	check(cuda->device->wait(device.queue, &err));
	check(cuda->device->event_seconds(from, to, &seconds, &err));
	assert_true(seconds > 0);
	cuda->device->event_free(from);
	cuda->device->event_free(to);
	release(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_vit_attention),  cmocka_unit_test(test_long_attention),
	        cmocka_unit_test(test_4096_tokens),    cmocka_unit_test(test_same_bits_again),
	        cmocka_unit_test(test_graph_is_eager), cmocka_unit_test(test_what_cannot_be_done),
	        cmocka_unit_test(test_events_measure),
	};
	return cmocka_run_group_tests(tests, open_device, close_device);
}
