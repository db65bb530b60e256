/* Matrix products through oneDNN's matmul primitive, 2.6 (Debian 12) or 3.x, or plain loops without it.
 *
 * Idea: a primitive, its memory objects and its scratch size are made once per shape and kept in a list; running one
 * only exchanges the data pointers. The list is short (a ViT has about a dozen shapes), so it is searched in order.
 * Weights are used as they lie: oneDNN packs them on the fly, which at our row counts costs a few per cent and spares
 * a second copy of every parameter. The two C interfaces differ in how memory is described and how a primitive is
 * made; those differences are the three functions after the includes.
 * SPDX-License-Identifier: MIT */
#include "kernels/cpu/dnnl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#ifdef MU_WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t matrix; /* a handle */

static dnnl_status_t matrix_create(matrix *md, const dnnl_dims_t dims, dnnl_data_type_t type, const dnnl_dims_t strides)
{
	return dnnl_memory_desc_create_with_strides(md, 2, dims, type, strides);
}

static void matrix_release(matrix *md)
{
	if (*md)
		dnnl_memory_desc_destroy(*md);
}

static dnnl_status_t memory_create(dnnl_memory_t *memory, const matrix *md, dnnl_engine_t engine)
{
	return dnnl_memory_create(memory, *md, engine, DNNL_MEMORY_NONE);
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
	return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}

static dnnl_status_t matmul_create(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, const matrix *a, const matrix *b,
                                   const matrix *bias, const matrix *c, const_dnnl_primitive_attr_t attr)
{
	return dnnl_matmul_primitive_desc_create(pd, engine, *a, *b, bias ? *bias : NULL, *c, attr);
}

static dnnl_status_t scratch_create(dnnl_memory_t *memory, size_t *bytes, const_dnnl_primitive_desc_t pd,
                                    dnnl_engine_t engine)
{
	const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
	*bytes = dnnl_memory_desc_get_size(md);
	return dnnl_memory_create(memory, md, engine, DNNL_MEMORY_NONE);
}
#else
typedef dnnl_memory_desc_t matrix; /* a plain struct */

static dnnl_status_t matrix_create(matrix *md, const dnnl_dims_t dims, dnnl_data_type_t type, const dnnl_dims_t strides)
{
	return dnnl_memory_desc_init_by_strides(md, 2, dims, type, strides);
}

static void matrix_release(matrix *md)
{
	(void)md;
}

static dnnl_status_t memory_create(dnnl_memory_t *memory, const matrix *md, dnnl_engine_t engine)
{
	return dnnl_memory_create(memory, md, engine, DNNL_MEMORY_NONE);
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
	return dnnl_post_ops_append_sum(ops, 1.0f);
}

static dnnl_status_t matmul_create(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, const matrix *a, const matrix *b,
                                   const matrix *bias, const matrix *c, const_dnnl_primitive_attr_t attr)
{
	dnnl_matmul_desc_t description;
	dnnl_status_t status = dnnl_matmul_desc_init(&description, a, b, bias, c);
	return status != dnnl_success ? status : dnnl_primitive_desc_create(pd, &description, attr, engine, NULL);
}

static dnnl_status_t scratch_create(dnnl_memory_t *memory, size_t *bytes, const_dnnl_primitive_desc_t pd,
                                    dnnl_engine_t engine)
{
	const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
	*bytes = dnnl_memory_desc_get_size(md);
	return dnnl_memory_create(memory, md, engine, DNNL_MEMORY_NONE);
}
#endif

enum { A, B, C, BIAS, SCRATCH, ARGUMENTS };

typedef struct product {
	struct product *next;
	mu_dnnl_shape shape;
	dnnl_status_t status;
	size_t scratch_bytes;
	dnnl_primitive_t primitive;
	dnnl_memory_t memory[ARGUMENTS];
} product;

struct mu_dnnl {
	int threads;
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	product *products;
};

static void product_free(product *p)
{
	for (int i = 0; i < ARGUMENTS; i++)
		if (p->memory[i])
			dnnl_memory_destroy(p->memory[i]);
	if (p->primitive)
		dnnl_primitive_destroy(p->primitive);
	free(p);
}

void mu_dnnl_free(mu_dnnl *dnnl)
{
	if (!dnnl)
		return;
	for (product *p = dnnl->products, *next; p; p = next) {
		next = p->next;
		product_free(p);
	}
	if (dnnl->stream)
		dnnl_stream_destroy(dnnl->stream);
	if (dnnl->engine)
		dnnl_engine_destroy(dnnl->engine);
	free(dnnl);
}

mural_status mu_dnnl_create(mu_dnnl **out, int threads, mural_error *err)
{
	mu_dnnl *dnnl = calloc(1, sizeof *dnnl);
	if (!dnnl)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the matrix products");
	dnnl->threads = threads;
	dnnl_status_t status = dnnl_engine_create(&dnnl->engine, dnnl_cpu, 0);
	if (status == dnnl_success)
		status = dnnl_stream_create(&dnnl->stream, dnnl->engine, dnnl_stream_default_flags);
	if (status != dnnl_success) {
		mu_dnnl_free(dnnl);
		return mu_fail(err, MURAL_FAILED, NULL, "%s gave no CPU engine (status %d)", mu_dnnl_text(), status);
	}
	*out = dnnl;
	return MURAL_OK;
}

/* oneDNN takes the team size from OpenMP, when a primitive is made and again when it runs: both must agree. */
static void use_team(int threads)
{
#ifdef _OPENMP
	if (omp_get_max_threads() != threads)
		omp_set_num_threads(threads);
#else
	(void)threads;
#endif
}

/* Strict fp32 whatever DNNL_DEFAULT_FPMATH_MODE says, scratch from the caller, c added when asked. */
static dnnl_status_t attributes_create(dnnl_primitive_attr_t *attr, const mu_dnnl_shape *shape)
{
	dnnl_post_ops_t ops = NULL;
	dnnl_status_t status = dnnl_primitive_attr_create(attr);
	if (status == dnnl_success)
		status = dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user);
	if (status == dnnl_success)
		status = dnnl_primitive_attr_set_fpmath_mode(*attr, dnnl_fpmath_mode_strict);
	if (status == dnnl_success && shape->accumulate) {
		status = dnnl_post_ops_create(&ops);
		if (status == dnnl_success)
			status = append_sum(ops);
		if (status == dnnl_success)
			status = dnnl_primitive_attr_set_post_ops(*attr, ops);
		if (ops)
			dnnl_post_ops_destroy(ops);
	}
	return status;
}

static dnnl_status_t describe(matrix *md, mu_dtype type, size_t rows, size_t columns, bool transposed)
{
	dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)columns};
	dnnl_dims_t strides = {transposed ? 1 : (dnnl_dim_t)columns, transposed ? (dnnl_dim_t)rows : 1};
	return matrix_create(md, dims, type == MU_BF16 ? dnnl_bf16 : dnnl_f32, strides);
}

static dnnl_status_t product_build(product *p, dnnl_engine_t engine)
{
	const mu_dnnl_shape *s = &p->shape;
	matrix md[BIAS + 1];
	memset(md, 0, sizeof md);
	dnnl_primitive_attr_t attr = NULL;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = attributes_create(&attr, s);
	if (status == dnnl_success)
		status = describe(&md[A], s->type, s->m, s->k, s->transpose_a);
	if (status == dnnl_success)
		status = describe(&md[B], s->type, s->k, s->n, s->transpose_b);
	if (status == dnnl_success)
		status = describe(&md[C], s->result, s->m, s->n, false);
	if (status == dnnl_success && s->bias)
		status = describe(&md[BIAS], s->type, 1, s->n, false);
	if (status == dnnl_success)
		status = matmul_create(&pd, engine, &md[A], &md[B], s->bias ? &md[BIAS] : NULL, &md[C], attr);
	if (status == dnnl_success)
		status = dnnl_primitive_create(&p->primitive, pd);
	for (int i = A; i <= BIAS; i++)
		if (status == dnnl_success && (i != BIAS || s->bias))
			status = memory_create(&p->memory[i], &md[i], engine);
	if (status == dnnl_success)
		status = scratch_create(&p->memory[SCRATCH], &p->scratch_bytes, pd, engine);
	for (int i = A; i <= BIAS; i++)
		matrix_release(&md[i]);
	if (pd)
		dnnl_primitive_desc_destroy(pd);
	if (attr)
		dnnl_primitive_attr_destroy(attr);
	return status;
}

static bool same_shape(const mu_dnnl_shape *a, const mu_dnnl_shape *b)
{
	return a->m == b->m && a->n == b->n && a->k == b->k && a->type == b->type && a->result == b->result &&
	       a->transpose_a == b->transpose_a && a->transpose_b == b->transpose_b && a->bias == b->bias &&
	       a->accumulate == b->accumulate;
}

static product *find(const mu_dnnl *dnnl, const mu_dnnl_shape *shape)
{
	product *p = dnnl->products;
	while (p && !same_shape(&p->shape, shape))
		p = p->next;
	return p;
}

size_t mu_dnnl_prepare(mu_dnnl *dnnl, const mu_dnnl_shape *shape)
{
	product *p = find(dnnl, shape);
	if (!p) {
		p = calloc(1, sizeof *p);
		if (!p)
			return 0;
		p->shape = *shape;
		use_team(dnnl->threads);
		p->status = product_build(p, dnnl->engine);
		p->next = dnnl->products;
		dnnl->products = p;
	}
	return p->scratch_bytes;
}

mural_status mu_dnnl_run(mu_dnnl *dnnl, const mu_dnnl_shape *shape, const void *a, const void *b, const void *bias,
                         void *c, void *scratch, mural_error *err)
{
	static const int names[ARGUMENTS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS,
	                                     DNNL_ARG_SCRATCHPAD};
	product *p = find(dnnl, shape);
	if (!p)
		return mu_bug(err, "a matrix product runs whose shape was not prepared");
	/* The library does not write to a, b and bias; its interface has no const. */
	void *data[ARGUMENTS] = {(void *)(size_t)a, (void *)(size_t)b, c, (void *)(size_t)bias, scratch};
	dnnl_exec_arg_t arguments[ARGUMENTS];
	int n = 0;
	dnnl_status_t status = p->status;
	for (int i = 0; i < ARGUMENTS && status == dnnl_success; i++) {
		if (!p->memory[i])
			continue;
		status = dnnl_memory_set_data_handle(p->memory[i], data[i]);
		arguments[n++] = (dnnl_exec_arg_t){names[i], p->memory[i]};
	}
	if (status == dnnl_success) {
		use_team(dnnl->threads);
		status = dnnl_primitive_execute(p->primitive, dnnl->stream, n, arguments);
	}
	if (status == dnnl_success)
		status = dnnl_stream_wait(dnnl->stream);
	if (status != dnnl_success)
		return mu_fail(err, MURAL_FAILED, NULL,
		               "%s failed with status %d on a matrix product [%zu, %zu] x [%zu, %zu]", mu_dnnl_text(),
		               status, shape->m, shape->k, shape->k, shape->n);
	return MURAL_OK;
}

#if defined(__x86_64__)
/* Intel's processors with AVX512_FP16 (Sapphire Rapids and later) leave bf16 to AMX: their VDPBF16PS starts every second
 * cycle, 88 GFLOP/s where fp32 multiply-adds reach 176 (measured on an Emerald Rapids whose host hides AMX). */
static bool bf16_is_left_to_amx(void)
{
	unsigned a, b, c, d;
	__builtin_cpu_init();
	return __builtin_cpu_is("intel") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 23 & 1);
}
#else
static bool bf16_is_left_to_amx(void)
{
	return false;
}
#endif

/* Each level has the bits of those it contains. */
static bool reaches(dnnl_cpu_isa_t level)
{
	return ((unsigned)dnnl_get_effective_cpu_isa() & (unsigned)level) == (unsigned)level;
}

mu_dnnl_bf16 mu_dnnl_bf16_products(void)
{
	if (reaches(dnnl_cpu_isa_avx512_core_amx))
		return MU_DNNL_BF16_FAST;
	if (!reaches(dnnl_cpu_isa_avx512_core_bf16))
		return MU_DNNL_BF16_NONE;
	return bf16_is_left_to_amx() ? MU_DNNL_BF16_SLOW : MU_DNNL_BF16_FAST;
}

const char *mu_dnnl_bf16_text(void)
{
	switch (mu_dnnl_bf16_products()) {
	case MU_DNNL_BF16_FAST: return reaches(dnnl_cpu_isa_avx512_core_amx) ? "AMX" : "AVX512_BF16";
	case MU_DNNL_BF16_SLOW: return "widened to fp32: AVX512_BF16 has half its rate here, and AMX is not to be had";
	default: return "widened to fp32: no instructions for bf16";
	}
}

const char *mu_dnnl_text(void)
{
	static _Thread_local char text[64];
	const dnnl_version_t *v = dnnl_version();
	snprintf(text, sizeof text, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
	return text;
}
#else
mu_dnnl_bf16 mu_dnnl_bf16_products(void)
{
	return MU_DNNL_BF16_NONE;
}

const char *mu_dnnl_bf16_text(void)
{
	return "widened to fp32: built without oneDNN";
}

/* Blocks of b are laid out plainly on the stack, so that every transpose runs the same inner loop over columns. */
enum { DEPTH = 64, COLUMNS = 64 };

struct mu_dnnl {
	int threads;
};

mural_status mu_dnnl_create(mu_dnnl **out, int threads, mural_error *err)
{
	mu_dnnl *dnnl = calloc(1, sizeof *dnnl);
	if (!dnnl)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the matrix products");
	dnnl->threads = threads;
	*out = dnnl;
	return MURAL_OK;
}

void mu_dnnl_free(mu_dnnl *dnnl)
{
	free(dnnl);
}

size_t mu_dnnl_prepare(mu_dnnl *dnnl, const mu_dnnl_shape *shape)
{
	(void)dnnl;
	(void)shape;
	return 0;
}

static void start_columns(const mu_dnnl_shape *s, const float *bias, float *c, size_t first, size_t columns)
{
	for (size_t i = 0; i < s->m; i++)
		for (size_t j = first; j < first + columns; j++)
			c[i * s->n + j] = (s->accumulate ? c[i * s->n + j] : 0) + (bias ? bias[j] : 0);
}

/* c[:, first ...] += a[:, depth] b[depth, first ...] for one block of b. */
static void add_block(const mu_dnnl_shape *s, const float *a, const float *b, float *c, size_t first, size_t columns,
                      size_t from, size_t depth)
{
	float block[DEPTH][COLUMNS];
	for (size_t k = 0; k < depth; k++)
		for (size_t j = 0; j < columns; j++)
			block[k][j] =
			        s->transpose_b ? b[(first + j) * s->k + from + k] : b[(from + k) * s->n + first + j];
	for (size_t i = 0; i < s->m; i++) {
		float sum[COLUMNS] = {0};
		for (size_t k = 0; k < depth; k++) {
			const float x = s->transpose_a ? a[(from + k) * s->m + i] : a[i * s->k + from + k];
			for (size_t j = 0; j < columns; j++)
				sum[j] += x * block[k][j];
		}
		for (size_t j = 0; j < columns; j++)
			c[i * s->n + first + j] += sum[j];
	}
}

mural_status mu_dnnl_run(mu_dnnl *dnnl, const mu_dnnl_shape *s, const void *a, const void *b, const void *bias, void *c,
                         void *scratch, mural_error *err)
{
	(void)scratch;
	if (s->type != MU_F32 || s->result != MU_F32)
		return mu_bug(err, "a matrix product of other numbers than fp32 reached the plain loops");
	const size_t blocks = (s->n + COLUMNS - 1) / COLUMNS;
	(void)dnnl;
#ifdef _OPENMP
#pragma omp parallel for num_threads(dnnl->threads) schedule(static)
#endif
	for (size_t block = 0; block < blocks; block++) {
		const size_t first = block * COLUMNS, columns = s->n - first < COLUMNS ? s->n - first : COLUMNS;
		start_columns(s, s->bias ? bias : NULL, c, first, columns);
		for (size_t from = 0; from < s->k; from += DEPTH)
			add_block(s, a, b, c, first, columns, from, s->k - from < DEPTH ? s->k - from : DEPTH);
	}
	return MURAL_OK;
}

const char *mu_dnnl_text(void)
{
	return "plain loops";
}
#endif
