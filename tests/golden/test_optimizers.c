/* Are we PyTorch's and timm's optimizers? 100 steps on the same gradients through mu_update_apply, for every table on the
 * host, against the weights that make_optimizers.py left; LAMB with limits and Muon against plain double here.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/safetensors.h"
#include "kernels/reference/element.h"
#include "optim/update.h"

#define STEPS 100
#define TENSORS 4
#define ELEMENTS 384 /* of all tensors */
#define SPAN 448 /* with padding: 192, 32, 160, 32, and some of the unit */
/* fp32 against double: 100 roundings of weights about 1, 6e-8 each, as a random walk. */
#define TOLERANCE 1e-6

/* As in make_optimizers.py. */
static const size_t shapes[TENSORS][2] = {{24, 8}, {24, 1}, {8, 20}, {8, 1}};

static double mixed(uint32_t time, uint32_t index)
{
	static const struct {
		uint32_t shift, factor;
	} rounds[] = {{16, 0x7feb352d}, {15, 0x846ca68b}, {16, 1}};
	uint32_t x = time * 0x9e3779b1u + index;
	for (int i = 0; i < 3; i++) {
		x ^= x >> rounds[i].shift;
		x *= rounds[i].factor;
	}
	return ((double)(x >> 16) - 32768) / 32768;
}

static double first_weight(uint32_t i)
{
	return mixed(1000, i) / 2;
}

static double gradient(uint32_t step, uint32_t i)
{
	return (2 * mixed(0, i) + mixed(step, i)) / 4 * ldexp(1, -(int)(i % 5));
}

/* A unit of four tensors: two matrices, which decay, and two vectors. */
typedef struct model {
	mu_tensor tensors[TENSORS];
	mu_unit unit;
	mu_segments segments;
	_Alignas(64) float parameters[SPAN], gradients[SPAN], m[SPAN], v[SPAN];
} model;

static bool is_matrix(size_t t)
{
	return shapes[t][1] > 1;
}

static void model_init(model *m, unsigned matrix_flags, unsigned vector_flags)
{
	size_t offset = 0;
	memset(m, 0, sizeof *m);
	for (size_t t = 0, i = 0; t < TENSORS; t++) {
		const size_t n = shapes[t][0] * shapes[t][1];
		m->tensors[t] = (mu_tensor){.n_dims = is_matrix(t) ? 2 : 1,
		                            .dims = {shapes[t][0], shapes[t][1]},
		                            .elements = n,
		                            .offset = offset,
		                            .flags = is_matrix(t) ? MU_TENSOR_DECAYS | matrix_flags : vector_flags,
		                            .lr_scale = t == 2 ? 0.5f : 1};
		for (size_t j = 0; j < n; j++, i++)
			m->parameters[offset + j] = (float)first_weight((uint32_t)i);
		offset += (n + MU_TENSOR_ALIGN - 1) / MU_TENSOR_ALIGN * MU_TENSOR_ALIGN;
	}
	assert_true(offset <= SPAN);
	m->unit = (mu_unit){.n_tensors = TENSORS, .tensors = m->tensors, .elements = SPAN};
	assert_int_equal(mu_segments_init(&m->segments, &m->unit, 1, NULL), MURAL_OK);
}

/* What settle would decide for update n, with the gradient as it is. */
static mu_decision decide(const mural_optimizer_config *config, uint32_t n)
{
	return (mu_decision){.number = n,
	                     .lr = config->lr,
	                     .beta1 = config->beta1,
	                     .beta2 = config->beta2,
	                     .bias1 = config->bias_correction ? 1 - pow(config->beta1, n) : 1,
	                     .bias2 = config->bias_correction ? 1 - pow(config->beta2, n) : 1,
	                     .gradient_scale = 1};
}

static void put_gradients(model *m, uint32_t step)
{
	memset(m->gradients, 0, sizeof m->gradients);
	uint32_t i = 0;
	for (size_t t = 0; t < TENSORS; t++)
		for (size_t j = 0; j < m->tensors[t].elements; j++)
			m->gradients[m->tensors[t].offset + j] = (float)gradient(step, i++);
}

/* The direction goes where the gradients were. */
static void train(model *m, const mural_optimizer_config *config, const mu_ops *ops)
{
	mural_error err = {0};
	mu_device device;
	mu_ops_context *context;
	assert_int_equal(mu_device_open(&device, ops->device, 0, &err), MURAL_OK);
	assert_int_equal(ops->open(device.queue, 2, &context, &err), MURAL_OK);
	const size_t bytes = mu_update_workspace(&m->segments, config, MU_F32, ops, context);
	mu_decision decision;
	mu_update update = {.type = MU_F32,
	                    .parameters = m->parameters,
	                    .gradients = m->gradients,
	                    .decision = &decision,
	                    .scratch = aligned_alloc(64, (bytes + 64) / 64 * 64)};
	const mu_optimizer_needs needs = mu_update_needs(config);
	update.m = needs.spans > 0 ? m->m : NULL;
	update.v = needs.spans > 1 ? m->v : NULL;
	update.work = needs.work ? m->gradients : NULL;
	for (uint32_t step = 1; step <= STEPS; step++) {
		decision = decide(config, step);
		put_gradients(m, step);
		if (mu_update_apply(&m->segments, config, &update, ops, context, &err) != MURAL_OK)
			fail_msg("%s", err.message);
	}
	free(update.scratch);
	ops->close(context);
	mu_device_close(&device);
}

/* The largest distance from `want`, [ELEMENTS] without padding; padding must still be 0. */
static double distance(const model *m, const double *want)
{
	double worst = 0;
	size_t i = 0, end = 0;
	for (size_t t = 0; t < TENSORS; t++) {
		for (; end < m->tensors[t].offset; end++)
			assert_true(m->parameters[end] == 0);
		for (size_t j = 0; j < m->tensors[t].elements; j++)
			worst = fmax(worst, fabs(m->parameters[end++] - want[i++]));
	}
	return worst;
}

static void read_golden(const char *name, double *to)
{
	mural_error err = {0};
	mu_safetensors *file;
	float values[ELEMENTS];
	if (mu_safetensors_open(&file, MU_TEST_SOURCE_DIR "/golden/optimizers.safetensors", &err) != MURAL_OK)
		fail_msg("%s %s", err.message, err.where);
	const mu_safetensor *entry = mu_safetensors_find(file, name);
	assert_non_null(entry);
	assert_int_equal(entry->bytes, sizeof values);
	assert_int_equal(mu_safetensors_read(file, entry, values, &err), MURAL_OK);
	mu_safetensors_free(file);
	for (size_t i = 0; i < ELEMENTS; i++)
		to[i] = values[i];
}

/* Trains with each table; none may be further from `want` than `tolerance`, and all must have gone somewhere. */
static void expect(const char *what, const mural_optimizer_config *config, unsigned matrix_flags, unsigned vector_flags,
                   const double *want, double tolerance)
{
	for (const mu_ops *const *ops = mu_ops_all; *ops; ops++) {
		double first[ELEMENTS];
		model m;
		model_init(&m, matrix_flags, vector_flags);
		for (uint32_t i = 0; i < ELEMENTS; i++)
			first[i] = first_weight(i);
		train(&m, config, *ops);
		const double off = distance(&m, want), moved = distance(&m, first);
		print_message("%s, %s: off by %.2e, moved by %.2f\n", what, (*ops)->name, off, moved);
		assert_true(off <= tolerance);
		assert_true(moved > 0.05);
		mu_segments_release(&m.segments);
	}
}

static void expect_golden(const char *name, const mural_optimizer_config *config, unsigned matrix_flags,
                          double tolerance)
{
	double want[ELEMENTS];
	read_golden(name, want);
	expect(name, config, matrix_flags, 0, want, tolerance);
}

static void test_adam(void **state)
{
	(void)state;
	mural_optimizer_config config = {.kind = MURAL_OPTIMIZER_ADAMW,
	                                 .lr = 0.003,
	                                 .beta1 = 0.9,
	                                 .beta2 = 0.99,
	                                 .eps = 1e-8,
	                                 .weight_decay = 0.1,
	                                 .bias_correction = true};
	expect_golden("adamw", &config, 0, TOLERANCE);
	config.kind = MURAL_OPTIMIZER_ADAM;
	config.weight_decay = 0.01;
	expect_golden("adam", &config, 0, TOLERANCE);
}

static void test_sgd(void **state)
{
	(void)state;
	mural_optimizer_config config = {.kind = MURAL_OPTIMIZER_SGD, .lr = 0.02, .weight_decay = 0.01};
	assert_int_equal(mu_update_needs(&config).spans, 0);
	expect_golden("sgd", &config, 0, TOLERANCE);
	config.lr = 0.002, config.momentum = 0.9, config.dampening = 0.25;
	assert_int_equal(mu_update_needs(&config).spans, 1);
	expect_golden("sgd_momentum", &config, 0, TOLERANCE);
	config.dampening = 0, config.nesterov = true;
	expect_golden("sgd_nesterov", &config, 0, TOLERANCE);
}

/* No element's sign differs in any step: one that did would be off by 2e-3. Steps are all of one size, so their roundings
 * may add up: 100 of 3e-8. */
static void test_lion(void **state)
{
	(void)state;
	const mural_optimizer_config config = {
	        .kind = MURAL_OPTIMIZER_LION, .lr = 0.001, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1};
	expect_golden("lion", &config, 0, 3 * TOLERANCE);
}

static const mural_optimizer_config lamb = {.kind = MURAL_OPTIMIZER_LAMB,
                                            .lr = 0.005,
                                            .beta1 = 0.9,
                                            .beta2 = 0.99,
                                            .eps = 1e-8,
                                            .weight_decay = 0.1,
                                            .bias_correction = true,
                                            .max_coeff = 10,
                                            .min_coeff = 0.01};

/* LAMB of one tensor, algorithm 2 of the paper with limits to the ratio. */
static void plain_lamb(const mural_optimizer_config *c, double *p, uint32_t first, size_t n, double lr, double decay)
{
	double m[ELEMENTS] = {0}, v[ELEMENTS] = {0}, u[ELEMENTS];
	for (uint32_t step = 1; step <= STEPS; step++) {
		double weights = 0, updates = 0;
		for (size_t i = 0; i < n; i++) {
			const double g = gradient(step, first + (uint32_t)i);
			m[i] = c->beta1 * m[i] + (1 - c->beta1) * g;
			v[i] = c->beta2 * v[i] + (1 - c->beta2) * g * g;
			const double mean = m[i] / (1 - pow(c->beta1, step)), square = v[i] / (1 - pow(c->beta2, step));
			u[i] = mean / (sqrt(square) + c->eps) + decay * p[i];
			weights += p[i] * p[i], updates += u[i] * u[i];
		}
		const double ratio = fmax(c->min_coeff, fmin(c->max_coeff, sqrt(weights / updates)));
		for (size_t i = 0; i < n; i++)
			p[i] -= lr * ratio * u[i];
	}
}

/* timm trusts what decays, as the golden run does; DeepSpeed trusts all, and has limits. */
static void test_lamb(void **state)
{
	(void)state;
	expect_golden("lamb", &lamb, MU_TENSOR_TRUST, TOLERANCE);
	mural_optimizer_config limited = lamb;
	limited.max_coeff = 0.27, limited.min_coeff = 0.25; /* so narrow that both are met */
	const mural_optimizer_config *const configs[] = {&lamb, &limited};
	for (size_t c = 0; c < 2; c++) {
		double want[ELEMENTS];
		for (uint32_t t = 0, i = 0; t < TENSORS; t++) {
			const uint32_t n = (uint32_t)(shapes[t][0] * shapes[t][1]);
			for (uint32_t j = 0; j < n; j++)
				want[i + j] = first_weight(i + j);
			plain_lamb(configs[c], want + i, i, n, t == 2 ? 0.0025 : 0.005, is_matrix(t) ? 0.1 : 0);
			i += n;
		}
		expect(c ? "plain lamb, limited" : "plain lamb", configs[c], MU_TENSOR_TRUST, MU_TENSOR_TRUST, want,
		       TOLERANCE);
	}
}

static const mural_optimizer_config muon = {.kind = MURAL_OPTIMIZER_MUON,
                                            .lr = 0.02,
                                            .beta1 = 0.9,
                                            .beta2 = 0.95,
                                            .eps = 1e-10,
                                            .weight_decay = 0.1,
                                            .bias_correction = true,
                                            .momentum = 0.95,
                                            .nesterov = true,
                                            .adam_lr = 0.003};

/* to = a b for [rows, inner] and [inner, cols]; turn: a is [inner, rows]. */
static void multiply(double *to, const double *a, bool turn, const double *b, size_t rows, size_t inner, size_t cols)
{
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < cols; j++) {
			double sum = 0;
			for (size_t k = 0; k < inner; k++)
				sum += (turn ? a[k * rows + i] : a[i * inner + k]) * b[k * cols + j];
			to[i * cols + j] = sum;
		}
}

/* x = 3.4445 x - 4.775 x x^T x + 2.0315 (x x^T)^2 x, five times, as x (x^T x) whatever the shape. */
static void plain_orthogonal(double *x, size_t rows, size_t cols)
{
	double gram[24 * 24], once[ELEMENTS], twice[ELEMENTS], squares = 0;
	const size_t n = rows * cols;
	for (size_t i = 0; i < n; i++)
		squares += x[i] * x[i];
	for (size_t i = 0; i < n; i++)
		x[i] /= sqrt(squares) + 1e-7;
	for (int step = 0; step < 5; step++) {
		multiply(gram, x, true, x, cols, rows, cols);
		multiply(once, x, false, gram, rows, cols, cols);
		multiply(twice, once, false, gram, rows, cols, cols);
		for (size_t i = 0; i < n; i++)
			x[i] = 3.4445 * x[i] - 4.775 * once[i] + 2.0315 * twice[i];
	}
}

static void plain_muon(double *p, uint32_t first, size_t rows, size_t cols, double lr)
{
	double m[ELEMENTS] = {0}, u[ELEMENTS];
	for (uint32_t step = 1; step <= STEPS; step++) {
		for (size_t i = 0; i < rows * cols; i++) {
			const double g = gradient(step, first + (uint32_t)i);
			m[i] = 0.95 * m[i] + 0.05 * g;
			u[i] = 0.95 * m[i] + 0.05 * g;
		}
		plain_orthogonal(u, rows, cols);
		for (size_t i = 0; i < rows * cols; i++)
			p[i] -= lr * (0.1 * p[i] + sqrt(fmax(1, (double)rows / (double)cols)) * u[i]);
	}
}

/* The golden run has torch's Muon, whose Newton-Schulz is bf16: each step is off by 1/256 of lr or so, most of it alike
 * from step to step. What is left to AdamW is as exact as ever. */
static void test_muon(void **state)
{
	(void)state;
	double want[ELEMENTS];
	expect_golden("muon", &muon, MU_TENSOR_MUON, 0.01);
	read_golden("muon", want);
	for (uint32_t t = 0, i = 0; t < TENSORS; t++) {
		const uint32_t n = (uint32_t)(shapes[t][0] * shapes[t][1]);
		for (uint32_t j = 0; j < n && is_matrix(t); j++)
			want[i + j] = first_weight(i + j);
		if (is_matrix(t))
			plain_muon(want + i, i, shapes[t][0], shapes[t][1], t == 2 ? 0.01 : 0.02);
		i += n;
	}
	expect("plain muon", &muon, MU_TENSOR_MUON, 0, want, TOLERANCE);
}

/* The same updates in bf16, gradients in parameters' type and weights in fp32 masters. */
typedef struct narrow {
	uint16_t parameters[SPAN], gradients[SPAN];
	_Alignas(64) float work[SPAN];
} narrow;

/* Gradients as bf16 has them, on both sides. */
static void round_gradients(float *wide, uint16_t *rounded)
{
	for (size_t i = 0; i < SPAN; i++) {
		mu_element_store(MU_BF16, rounded, i, (double)wide[i]);
		wide[i] = (float)mu_element_load(MU_BF16, rounded, i);
	}
}

static void train_with_masters(const mural_optimizer_config *config, unsigned matrix_flags)
{
	const mu_ops *ops = &mu_ops_reference;
	mu_decision decision;
	model a, b;
	narrow n = {{0}, {0}, {0}};
	model_init(&a, matrix_flags, 0);
	model_init(&b, matrix_flags, 0);
	void *scratch = malloc(mu_update_workspace(&a.segments, config, MU_F32, ops, NULL) + 1);
	mu_update wide = {.type = MU_F32,
	                  .parameters = a.parameters,
	                  .m = a.m,
	                  .v = a.v,
	                  .gradients = a.gradients,
	                  .work = a.gradients,
	                  .scratch = scratch,
	                  .decision = &decision};
	mu_update with_master = {.type = MU_BF16,
	                         .parameters = n.parameters,
	                         .master = b.parameters,
	                         .m = b.m,
	                         .v = b.v,
	                         .gradients = n.gradients,
	                         .work = n.work,
	                         .scratch = scratch,
	                         .decision = &decision};
	for (uint32_t step = 1; step <= 3; step++) {
		put_gradients(&a, step);
		round_gradients(a.gradients, n.gradients);
		decision = decide(config, step);
		assert_int_equal(mu_update_apply(&a.segments, config, &wide, ops, NULL, NULL), MURAL_OK);
		assert_int_equal(mu_update_apply(&b.segments, config, &with_master, ops, NULL, NULL), MURAL_OK);
	}
	assert_memory_equal(a.parameters, b.parameters, sizeof a.parameters);
	assert_memory_equal(a.m, b.m, sizeof a.m);
	for (size_t i = 0; i < SPAN; i++) {
		uint16_t rounded;
		mu_element_store(MU_BF16, &rounded, 0, (double)a.parameters[i]);
		assert_int_equal(n.parameters[i], rounded);
	}
	assert_true(b.parameters[0] != (float)first_weight(0));
	free(scratch);
	mu_segments_release(&a.segments);
	mu_segments_release(&b.segments);
}

static void test_masters(void **state)
{
	(void)state;
	mural_optimizer_config adamw = muon;
	adamw.kind = MURAL_OPTIMIZER_ADAMW;
	mural_optimizer_config sgd = muon;
	sgd.kind = MURAL_OPTIMIZER_SGD;
	mural_optimizer_config lion = muon;
	lion.kind = MURAL_OPTIMIZER_LION;
	train_with_masters(&adamw, 0);
	train_with_masters(&sgd, 0);
	train_with_masters(&lion, 0);
	train_with_masters(&lamb, MU_TENSOR_TRUST);
	train_with_masters(&muon, MU_TENSOR_MUON);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_adam), cmocka_unit_test(test_sgd),  cmocka_unit_test(test_lion),
	        cmocka_unit_test(test_lamb), cmocka_unit_test(test_muon), cmocka_unit_test(test_masters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
