/* Times every operation of a training step on a GPU, alone, for the shapes of real models.
 *
 *     bench_gpu [images [bf16|f32|f16 [model]]]       model: vit_b_16, vit_l_16, vit_h_14, vit_s_16
 *
 * Each operation is captured REPEATS times into one graph, so that gaps between launches stay out; a line is the median
 * of several replays over REPEATS. Two ceilings are measured first with the table's own rows: the rate of a large matrix
 * product of random numbers and of a large copy (read + write). Floor: the larger of FLOPs over the one and bytes over the
 * other, each array counted once. The last column multiplies by how often a step of the model runs the operation; the sum
 * is the step without data. Operands are shared between operations: at small batches some may come from the L2 cache.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda.h"

#define REPEATS 10
#define REPLAYS 7
#define OPERANDS 6

typedef struct model {
	const char *name;
	size_t tokens, width, heads, hidden, blocks, classes, image, patch;
} model;

static const model models[] = {
        {"vit_b_16", 197, 768, 12, 3072, 12, 1000, 224, 16},
        {"vit_l_16", 197, 1024, 16, 4096, 24, 1000, 224, 16},
        {"vit_h_14", 257, 1280, 16, 5120, 32, 1000, 224, 14},
        {"vit_s_16", 197, 384, 6, 1536, 12, 1000, 224, 16},
};

typedef struct bench {
	const mu_ops *ops;
	const mu_device_table *table;
	mu_device device;
	mu_ops_context *context;
	mu_event *from, *to;
	mu_dtype type;
	double flops_rate, bytes_rate; /* the ceilings */
	double step_seconds, product_seconds, attention_seconds;
	void *operand[OPERANDS]; /* activations, each large enough for any shape of the model */
	void *large, *w, *d_w, *small, *d_small, *statistics, *scratch;
	size_t scratch_bytes;
} bench;

static mural_error err;

static void check(mural_status status)
{
	if (status == MURAL_OK)
		return;
	fprintf(stderr, "bench_gpu: %s\n", err.message);
	exit(1);
}

static void *memory(bench *b, size_t bytes)
{
	void *p;
	check(b->table->allocate(b->device.handle, MU_MEMORY_DEVICE, bytes, &p, &err));
	check(b->table->zero(b->device.queue, p, bytes, &err));
	return p;
}

/* Random numbers: zeros would make the products faster than they are. A block of them is repeated. */
static void *numbers(bench *b, size_t n, mu_dtype type, float center, float amplitude)
{
	enum { BLOCK = 1 << 20 };
	static float block[BLOCK];
	const size_t element = mu_dtype_bytes(type);
	char *p = memory(b, n * element);
	float *staged = memory(b, sizeof block);
	for (size_t i = 0; i < BLOCK; i++)
		block[i] = center +
		           amplitude * (float)((double)mu_random_u32((mu_random_key){1, 1}, 0, i) / 2147483648.0 - 1);
	check(b->table->copy(b->device.queue, staged, block, sizeof block, &err));
	for (size_t i = 0; i < n; i += BLOCK) {
		const mu_cast cast = {.n = n - i < BLOCK ? n - i : BLOCK,
		                      .from_type = MU_F32,
		                      .to_type = type,
		                      .from = staged,
		                      .to = p + i * element};
		check(b->ops->cast(b->context, &cast, &err));
	}
	check(b->table->wait(b->device.queue, &err));
	b->table->release(b->device.handle, MU_MEMORY_DEVICE, staged, sizeof block);
	return p;
}

/* Small things in device memory. */
static const void *uploaded(bench *b, const void *from, size_t bytes)
{
	void *p = memory(b, bytes);
	check(b->table->copy(b->device.queue, p, from, bytes, &err));
	check(b->table->wait(b->device.queue, &err));
	return p;
}

static void *scratch_of(bench *b, size_t bytes)
{
	if (bytes > b->scratch_bytes) {
		b->table->release(b->device.handle, MU_MEMORY_DEVICE, b->scratch, b->scratch_bytes);
		b->scratch = memory(b, bytes);
		b->scratch_bytes = bytes;
	}
	return b->scratch;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double time_graph(bench *b, mu_graph *graph)
{
	double samples[REPLAYS];
	for (int i = -1; i < REPLAYS; i++) {
		check(b->table->event_record(b->from, b->device.queue, &err));
		check(b->table->graph_replay(graph, b->device.queue, &err));
		check(b->table->event_record(b->to, b->device.queue, &err));
		check(b->table->wait(b->device.queue, &err));
		if (i >= 0)
			check(b->table->event_seconds(b->from, b->to, &samples[i], &err));
	}
	b->table->graph_free(graph);
	qsort(samples, REPLAYS, sizeof *samples, by_value);
	return samples[REPLAYS / 2] / REPEATS;
}

#define MEDIAN(b, row, op, seconds)                                               \
	do {                                                                      \
		mu_graph *graph_;                                                 \
		check((b)->ops->row((b)->context, (op), &err));                   \
		check((b)->table->capture_begin((b)->device.queue, &err));        \
		for (int i_ = 0; i_ < REPEATS; i_++)                              \
			check((b)->ops->row((b)->context, (op), &err));           \
		check((b)->table->capture_end((b)->device.queue, &graph_, &err)); \
		(seconds) = time_graph((b), graph_);                              \
	} while (0)

static void print_line(bench *b, const char *name, double seconds, double flops, double bytes, size_t times)
{
	const double by_flops = flops / b->flops_rate, by_bytes = bytes / b->bytes_rate;
	const double floor_seconds = by_flops > by_bytes ? by_flops : by_bytes;
	b->step_seconds += seconds * (double)times;
	printf("  %-30s %9.1f us %7.1f TFLOP/s %7.0f GB/s  floor %8.1f us %4.0f %%  x %3zu = %7.3f ms\n", name,
	       seconds * 1e6, flops / seconds * 1e-12, bytes / seconds * 1e-9, floor_seconds * 1e6,
	       100 * floor_seconds / seconds, times, seconds * (double)times * 1e3);
}

#define TIME(b, row, op, name, flops, bytes, times)                                     \
	do {                                                                            \
		double seconds_;                                                        \
		MEDIAN(b, row, op, seconds_);                                           \
		print_line(b, name, seconds_, (double)(flops), (double)(bytes), times); \
	} while (0)

static void measure_ceilings(bench *b)
{
	const size_t side = 8192, n = (size_t)1 << 29;
	mu_linear product = {.type = b->type, .rows = side, .in = side, .out = side};
	product.scratch = scratch_of(b, b->ops->linear_workspace(b->context, &product));
	product.x = numbers(b, side * side, b->type, 0, 1), product.w = numbers(b, side * side, b->type, 0, 1);
	product.y = memory(b, side * side * 4);
	double seconds;
	MEDIAN(b, linear_forward, &product, seconds);
	b->flops_rate = 2.0 * (double)(side * side * side) / seconds;
	mu_cast copy = {
	        .n = n, .from_type = MU_F32, .to_type = MU_F32, .from = memory(b, n * 4), .to = memory(b, n * 4)};
	MEDIAN(b, cast, &copy, seconds);
	b->bytes_rate = 8.0 * (double)n / seconds;
	printf("product of 8192^3: %.1f TFLOP/s; copy of 2 GiB: %.0f GB/s\n", b->flops_rate * 1e-12,
	       b->bytes_rate * 1e-9);
	b->table->release(b->device.handle, MU_MEMORY_DEVICE, (void *)copy.from, n * 4);
	b->table->release(b->device.handle, MU_MEMORY_DEVICE, copy.to, n * 4);
}

static void time_linear(bench *b, const char *name, size_t rows, size_t in, size_t out, mu_activation activation,
                        bool input_gradient, size_t times)
{
	const size_t e = mu_dtype_bytes(b->type);
	const bool gelu = activation != MU_ACTIVATION_NONE;
	const double flops = 2.0 * (double)rows * (double)in * (double)out, before = b->step_seconds;
	mu_linear op = {.type = b->type, .rows = rows, .in = in, .out = out, .activation = activation};
	char label[64];
	op.scratch = scratch_of(b, b->ops->linear_workspace(b->context, &op));
	op.x = b->operand[0], op.w = b->w, op.b = b->small, op.pre = b->operand[1], op.y = b->operand[2];
	op.d_y = b->operand[3], op.d_x = input_gradient ? b->operand[4] : NULL, op.d_w = b->d_w, op.d_b = b->d_small;
	snprintf(label, sizeof label, "%s %zu -> %zu", name, in, out);
	TIME(b, linear_forward, &op, label, flops, e * (rows * (in + out * (gelu ? 2 : 1)) + in * out), times);
	snprintf(label, sizeof label, "%s backward", name);
	op.pre = b->large; /* where the slope is 1: repeats would else shrink d_y to zeros, which multiply faster */
	TIME(b, linear_backward, &op, label, flops * (input_gradient ? 2 : 1),
	     e * (rows * (2 * in + out * (gelu ? 3 : 1)) + 3 * in * out), times);
	b->product_seconds += b->step_seconds - before;
}

static void time_norm(bench *b, const model *m, size_t images, size_t times)
{
	const size_t tokens = images * m->tokens, elements = tokens * m->width, e = mu_dtype_bytes(b->type);
	mu_layernorm op = {
	        .type = b->type, .tokens = tokens, .width = m->width, .tokens_per_image = m->tokens, .eps = 1e-6};
	op.scratch = scratch_of(b, b->ops->layernorm_workspace(b->context, &op));
	op.x = b->operand[0], op.r = b->operand[1], op.w = b->small, op.b = b->small, op.sum = b->operand[2];
	op.y = b->operand[3], op.mean = b->statistics, op.rstd = (float *)b->statistics + tokens;
	TIME(b, layernorm_forward, &op, "layernorm with residual", 8 * elements, 4 * e * elements, times);
	op.d_y = b->operand[3], op.d_sum = b->operand[4], op.d_r = b->operand[5], op.d_w = b->d_small;
	op.d_b = (char *)b->d_small + e * m->width;
	TIME(b, layernorm_backward, &op, "layernorm backward", 16 * elements, 4 * e * elements, times);
}

static void time_attention(bench *b, const model *m, size_t images, size_t times, float dropout,
                           const uint64_t *streams)
{
	const size_t elements = images * m->tokens * m->width, e = mu_dtype_bytes(b->type);
	const double product = 2.0 * (double)elements * (double)m->tokens, before = b->step_seconds;
	mu_attention op = {.type = b->type,
	                   .images = images,
	                   .tokens = m->tokens,
	                   .heads = m->heads,
	                   .head_size = m->width / m->heads,
	                   .dropout = {.threshold = mu_drop_threshold((double)dropout),
	                               .scale = 1 / (1 - dropout),
	                               .stream_B = streams}};
	op.scratch = scratch_of(b, b->ops->attention_workspace(b->context, &op));
	op.qkv = b->operand[0], op.o = b->operand[1], op.lse = b->statistics, op.d_o = b->operand[2];
	op.d_qkv = b->operand[3];
	TIME(b, attention_forward, &op, dropout > 0 ? "attention, dropout" : "attention", 2 * product, 4 * e * elements,
	     times);
	TIME(b, attention_backward, &op, dropout > 0 ? "attention, dropout backward" : "attention backward",
	     5 * product, 8 * e * elements, times);
	b->attention_seconds += b->step_seconds - before;
}

static void time_ends(bench *b, const model *m, size_t images, const uint8_t *pixels, const int32_t *labels)
{
	const size_t side = m->image / m->patch, patches = side * side, D = m->width, e = mu_dtype_bytes(b->type);
	const size_t elements = images * m->tokens * D, n_pixels = images * 3 * m->image * m->image;
	const mu_micro counts = {images, images}, *micro = uploaded(b, &counts, sizeof counts);
	mu_patchify cut = {.type = b->type,
	                   .images = images,
	                   .micro = micro,
	                   .channels = 3,
	                   .height = m->image,
	                   .width = m->image,
	                   .patch = m->patch,
	                   .mean = {0.5f, 0.5f, 0.5f},
	                   .std = {0.5f, 0.5f, 0.5f},
	                   .pixels = pixels,
	                   .patches = b->operand[0]};
	TIME(b, patchify, &cut, "patchify", 0, (1 + e) * n_pixels, 1);
	time_linear(b, "patch embedding", images * patches, 3 * m->patch * m->patch, D, MU_ACTIVATION_NONE, false, 1);
	mu_embed embed = {.type = b->type, .images = images, .patches = patches, .width = D};
	embed.patch = b->operand[0], embed.class_token = b->small, embed.position = b->operand[1],
	embed.x = b->operand[2];
	TIME(b, embed_forward, &embed, "embed", 0, 2 * e * elements, 1);
	embed.d_x = b->operand[2], embed.d_patch = b->operand[0], embed.d_class_token = b->d_small;
	embed.d_position = b->operand[3];
	TIME(b, embed_backward, &embed, "embed backward", 0, 2 * e * elements, 1);
	mu_pool pool = {.type = b->type, .images = images, .tokens = m->tokens, .width = D, .first = 0, .last = 1};
	pool.x = b->operand[0], pool.y = b->operand[1], pool.d_y = b->operand[1], pool.d_x = b->operand[2];
	TIME(b, pool_forward, &pool, "pool", 0, 2 * e * images * D, 1);
	TIME(b, pool_backward, &pool, "pool backward", 0, e * elements, 1);
	time_linear(b, "head", images, D, m->classes, MU_ACTIVATION_NONE, true, 1);
	mu_cross_entropy entropy = {.type = b->type,
	                            .images = images,
	                            .micro = micro,
	                            .classes = m->classes,
	                            .smoothing = 0.1,
	                            .logits = b->operand[0],
	                            .labels = labels,
	                            .d_logits = b->operand[1],
	                            .sums = b->statistics};
	TIME(b, cross_entropy, &entropy, "cross-entropy", 0, 2 * e * images * m->classes, 1);
}

static void time_optimizer(bench *b, const model *m)
{
	const size_t D = m->width, n = m->blocks * (4 * D * D + 2 * D * m->hidden), e = mu_dtype_bytes(b->type);
	void *p = numbers(b, n, b->type, 0, 0.1f), *g = numbers(b, n, b->type, 0, 0.1f);
	const bool narrow = b->type != MU_F32;
	mu_sum_squares squares = {.type = b->type, .n = n, .x = g, .sum = b->statistics};
	squares.scratch = scratch_of(b, b->ops->sum_squares_workspace(b->context, &squares));
	TIME(b, sum_squares, &squares, "sum of squares", 2 * n, e * n, 1);
	const mu_decision rates = {
	        .lr = 1e-4, .beta1 = 0.9, .beta2 = 0.999, .bias1 = 1, .bias2 = 1, .gradient_scale = 1};
	const mu_decision *decision = uploaded(b, &rates, sizeof rates);
	mu_adamw adamw = {.type = b->type,
	                  .n = n,
	                  .at = decision,
	                  .lr_scale = 1,
	                  .eps = 1e-8,
	                  .decay = 0.05,
	                  .decoupled = true,
	                  .parameter = p,
	                  .master = narrow ? memory(b, 4 * n) : NULL,
	                  .gradient = g,
	                  .m = memory(b, 4 * n),
	                  .v = memory(b, 4 * n)};
	TIME(b, adamw, &adamw, "adamw", 14 * n, 28 * n, 1);
}

static void time_model(bench *b, const model *m, size_t images)
{
	const size_t tokens = images * m->tokens, D = m->width, H = m->hidden,
	             n_pixels = images * 3 * m->image * m->image;
	const size_t n = tokens * (3 * D > H ? 3 * D : H) > n_pixels ? tokens * (3 * D > H ? 3 * D : H) : n_pixels;
	const size_t weights = D * (H > 3 * D ? H : 3 * D) + D * m->classes;
	for (int i = 0; i < OPERANDS; i++)
		b->operand[i] = numbers(b, n, b->type, 0, 1);
	b->large = numbers(b, n, b->type, 8, 1);
	b->w = numbers(b, weights, b->type, 0, 0.05f), b->d_w = numbers(b, weights, b->type, 0, 0.05f);
	b->small = numbers(b, 4 * H, b->type, 0, 1), b->d_small = numbers(b, 4 * H, b->type, 0, 1);
	b->statistics = memory(b, 4 * (2 * tokens + tokens * m->heads) + 4096);
	const uint8_t *pixels = memory(b, n_pixels);
	const int32_t *labels = memory(b, images * sizeof *labels);
	const uint64_t *streams = memory(b, images * sizeof *streams);
	printf("%s, %s, %zu images\n", m->name, mu_dtype_text(b->type), images);
	time_linear(b, "qkv", tokens, D, 3 * D, MU_ACTIVATION_NONE, true, m->blocks);
	time_attention(b, m, images, m->blocks, 0, NULL);
	time_linear(b, "projection", tokens, D, D, MU_ACTIVATION_NONE, true, m->blocks);
	time_linear(b, "mlp 1, gelu", tokens, D, H, MU_ACTIVATION_GELU_ERF, true, m->blocks);
	time_linear(b, "mlp 2", tokens, H, D, MU_ACTIVATION_NONE, true, m->blocks);
	time_norm(b, m, images, 2 * m->blocks + 1);
	time_ends(b, m, images, pixels, labels);
	time_optimizer(b, m);
	time_attention(b, m, images, 0, 0.1f, streams);
	printf("  step: %.2f ms, %.0f images/s; linear %.2f ms, attention %.2f ms\n", b->step_seconds * 1e3,
	       (double)images / b->step_seconds, b->product_seconds * 1e3, b->attention_seconds * 1e3);
}

int main(int argc, char **argv)
{
	bench b = {.type = MU_BF16};
	const size_t images = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 256;
	const model *m = models;
	mu_device_facts facts;
	if (argc > 2)
		b.type = strcmp(argv[2], "f32") == 0 ? MU_F32 : strcmp(argv[2], "f16") == 0 ? MU_F16 : MU_BF16;
	for (size_t i = 0; argc > 3 && i < sizeof models / sizeof *models; i++)
		if (strcmp(models[i].name, argv[3]) == 0)
			m = &models[i];
	check(mu_cuda_ops(&b.ops, &err));
	b.table = b.ops->device;
	check(mu_device_open(&b.device, b.table, 0, &err));
	check(b.table->facts(b.device.handle, &facts, &err));
	check(b.ops->open(b.device.queue, 0, &b.context, &err));
	check(b.table->event_create(b.device.handle, &b.from, &err));
	check(b.table->event_create(b.device.handle, &b.to, &err));
	printf("%s, %s\n", facts.name, MU_SIZE(facts.total_bytes));
	measure_ceilings(&b);
	time_model(&b, m, images);
	/* Memory goes with the process. */
	b.table->event_free(b.from);
	b.table->event_free(b.to);
	b.ops->close(b.context);
	mu_device_close(&b.device);
	return 0;
}
