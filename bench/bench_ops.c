/* Times every operation of a training step alone, for the shapes of real models.
 *
 *     bench_ops [threads [model [type]]]     threads: 0 for all; model: vit_b_16, vit_s_16, vit_ti_16, demo;
 *                                            type: fp32 or bf16
 *
 * Two floors are measured first with the table's own rows: the rate of a large matrix product (FLOP/s) and of a
 * large copy (bytes/s, read + write). Each operation then prints its median time, its rate, the time that the
 * nearer floor allows (the larger of FLOPs over the product rate and bytes over the copy rate, each array counted
 * once) and the share of that floor it reaches. The last column multiplies by how often a step of the model runs
 * it; the sum at the end is the step without communication and data. Caches make shares above 100 % possible for
 * small shapes. With one thread times are those of the processor, so that other programs disturb less.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "kernels/ops.h"

#define REPEATS 9
#define SECONDS 0.15 /* at least this long per operation */
#define MAX_SAMPLES 400

typedef struct model {
	const char *name;
	size_t images, tokens, width, heads, hidden, blocks, classes, image, channels, patch;
} model;

static const model models[] = {
        {"vit_b_16", 4, 197, 768, 12, 3072, 12, 1000, 224, 3, 16},
        {"vit_s_16", 32, 197, 384, 6, 1536, 12, 1000, 224, 3, 16},
        {"vit_ti_16", 16, 197, 192, 3, 768, 12, 1000, 224, 3, 16},
        {"demo", 128, 50, 64, 4, 256, 6, 10, 28, 1, 4},
};

typedef struct bench {
	const mu_ops *ops;
	mu_ops_context *context;
	mu_dtype type;
	size_t element; /* bytes */
	bool alone; /* one thread */
	double flops_rate, bytes_rate; /* the floors */
	double step_seconds;
	void *scratch;
	size_t scratch_bytes;
	void *a, *b, *c, *d, *e, *f; /* operands, each large enough for any shape of the model */
	float *statistics; /* two per token and head, or per token */
	void *w, *d_w, *small, *d_small; /* weights and vectors */
	uint8_t *pixels;
	int32_t *labels;
	uint64_t *streams;
} bench;

static void stop(const char *what)
{
	fprintf(stderr, "bench_ops: %s\n", what);
	exit(1);
}

static void *memory(size_t bytes)
{
	void *p = NULL;
	mural_error err = {0};
	if (mu_device_host.allocate(NULL, MU_MEMORY_DEVICE, bytes + 64, &p, &err) != MURAL_OK)
		stop(err.message);
	return p;
}

static void release(void *p, size_t bytes)
{
	mu_device_host.release(NULL, MU_MEMORY_DEVICE, p, bytes + 64);
}

/* Of the type that is measured. */
static void *numbers(bench *b, size_t n, double amplitude)
{
	float *x = memory(n * sizeof *x);
	void *to = memory(n * b->element);
	const mu_random_key key = mu_random_key_make(1, MU_PURPOSE_TEST, 0);
	for (size_t i = 0; i < n; i++)
		x[i] = (float)(amplitude * ((double)mu_random_u32(key, 0, i) / 4294967296.0 - 0.5));
	const mu_cast cast = {.n = n, .from_type = MU_F32, .to_type = b->type, .from = x, .to = to};
	mural_error err = {0};
	if (b->ops->cast(b->context, &cast, &err) != MURAL_OK)
		stop(err.message);
	release(x, n * sizeof *x);
	return to;
}

static double seconds_now(const bench *b)
{
	struct timespec t;
	if (!b->alone)
		return mu_now();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Makes scratch at least this large; the row's workspace was just asked. */
static void *scratch_of(bench *b, size_t bytes)
{
	if (bytes > b->scratch_bytes) {
		release(b->scratch, b->scratch_bytes);
		b->scratch = memory(bytes);
		b->scratch_bytes = bytes;
	}
	return b->scratch;
}

/* Median seconds of a row; `before` runs untimed in front of each. */
#define MEDIAN(b, row, op, before, seconds)                                                      \
	do {                                                                                     \
		double samples[MAX_SAMPLES], begin = seconds_now(b);                             \
		size_t n_ = 0;                                                                   \
		while (n_ < MAX_SAMPLES && (n_ < REPEATS || seconds_now(b) - begin < SECONDS)) { \
			mural_error err = {0};                                                   \
			before;                                                                  \
			const double from = seconds_now(b);                                      \
			if ((b)->ops->row((b)->context, (op), &err) != MURAL_OK)                 \
				stop(err.message);                                               \
			samples[n_++] = seconds_now(b) - from;                                   \
		}                                                                                \
		qsort(samples, n_, sizeof *samples, by_value);                                   \
		(seconds) = samples[n_ / 2];                                                     \
	} while (0)

static void print_line(bench *b, const char *name, double seconds, double flops, double bytes, size_t times)
{
	const double by_flops = flops / b->flops_rate, by_bytes = bytes / b->bytes_rate;
	const double floor_seconds = by_flops > by_bytes ? by_flops : by_bytes;
	b->step_seconds += seconds * (double)times;
	printf("  %-34s %10.1f us  %7.1f %-7s  floor %9.1f us  %4.0f %%  x %3zu = %8.2f ms\n", name, seconds * 1e6,
	       (by_flops > by_bytes ? flops : bytes) / seconds * 1e-9, by_flops > by_bytes ? "GFLOP/s" : "GB/s",
	       floor_seconds * 1e6, 100 * floor_seconds / seconds, times, seconds * (double)times * 1e3);
}

#define TIME_AFTER(b, row, op, before, name, flops, bytes, times)             \
	do {                                                                  \
		double seconds_;                                              \
		MEDIAN(b, row, op, before, seconds_);                         \
		print_line(b, name, seconds_, flops, (double)(bytes), times); \
	} while (0)
#define TIME(b, row, op, name, flops, bytes, times) TIME_AFTER(b, row, op, (void)0, name, flops, bytes, times)

static void measure_floors(bench *b, int threads)
{
	const size_t side = 2048, n = (size_t)1 << 26;
	mu_linear product = {.type = b->type, .rows = side, .in = side, .out = side};
	product.scratch = scratch_of(b, b->ops->linear_workspace(b->context, &product));
	void *x = numbers(b, side * side, 1), *w = numbers(b, side * side, 1), *y = numbers(b, side * side, 1);
	product.x = x, product.w = w, product.y = y;
	double seconds;
	MEDIAN(b, linear_forward, &product, (void)0, seconds);
	b->flops_rate = 2.0 * (double)(side * side * side) / seconds;
	mu_cast copy = {.n = n, .from_type = MU_F32, .to_type = MU_F32, .from = memory(n * 4), .to = memory(n * 4)};
	MEDIAN(b, cast, &copy, (void)0, seconds);
	b->bytes_rate = 8.0 * (double)n / seconds;
	printf("table %s, %s, %d thread(s), 0 means all: product of 2048^3 %.0f GFLOP/s, copy of 256 MiB %.1f GB/s\n",
	       b->ops->name, mu_dtype_text(b->type), threads, b->flops_rate * 1e-9, b->bytes_rate * 1e-9);
}

static void time_linear(bench *b, const char *name, size_t rows, size_t in, size_t out, mu_activation activation,
                        bool input_gradient, size_t times)
{
	mu_linear op = {.type = b->type, .rows = rows, .in = in, .out = out, .activation = activation};
	op.scratch = scratch_of(b, b->ops->linear_workspace(b->context, &op));
	op.x = b->a, op.w = b->w, op.b = b->small, op.pre = b->b, op.y = b->c;
	op.d_y = b->d, op.d_x = input_gradient ? b->e : NULL, op.d_w = b->d_w, op.d_b = b->d_small;
	char label[64];
	const double flops = 2.0 * (double)rows * (double)in * (double)out;
	const bool gelu = activation != MU_ACTIVATION_NONE;
	snprintf(label, sizeof label, "%s %zu -> %zu", name, in, out);
	TIME(b, linear_forward, &op, label, flops, b->element * (rows * (in + out * (gelu ? 2 : 1)) + in * out), times);
	snprintf(label, sizeof label, "%s backward", name);
	/* The row overwrites d_y; left alone, repeats would shrink it to subnormal numbers. */
	TIME_AFTER(b, linear_backward, &op, memcpy(b->d, b->f, rows * out * b->element), label,
	           flops * (input_gradient ? 2 : 1),
	           b->element * (rows * (2 * in + out * (gelu ? 3 : 1)) + 3 * in * out), times);
}

static void time_norm(bench *b, const model *m, size_t times)
{
	const size_t tokens = m->images * m->tokens, elements = tokens * m->width;
	mu_layernorm op = {
	        .type = b->type, .tokens = tokens, .width = m->width, .tokens_per_image = m->tokens, .eps = 1e-6};
	op.scratch = scratch_of(b, b->ops->layernorm_workspace(b->context, &op));
	op.x = b->a, op.r = b->b, op.w = b->small, op.b = b->small, op.sum = b->c, op.y = b->d;
	op.mean = b->statistics, op.rstd = b->statistics + tokens;
	TIME(b, layernorm_forward, &op, "layernorm with residual", 8.0 * (double)elements, 4 * b->element * elements,
	     times);
	op.d_y = b->d, op.d_sum = b->f, op.d_r = b->f, op.d_w = b->d_small,
	op.d_b = (char *)b->d_small + m->width * b->element;
	TIME(b, layernorm_backward, &op, "layernorm backward", 16.0 * (double)elements, 4 * b->element * elements,
	     times);
}

static void time_attention(bench *b, const model *m, size_t times)
{
	const size_t elements = m->images * m->tokens * m->width;
	const double product = 2.0 * (double)elements * (double)m->tokens;
	for (int dropout = 0; dropout < 2; dropout++) {
		mu_attention op = {.type = b->type,
		                   .images = m->images,
		                   .tokens = m->tokens,
		                   .heads = m->heads,
		                   .head_size = m->width / m->heads,
		                   .dropout = {.threshold = dropout ? mu_drop_threshold(0.1) : 0,
		                               .scale = 1 / 0.9f,
		                               .stream_B = b->streams}};
		op.scratch = scratch_of(b, b->ops->attention_workspace(b->context, &op));
		op.qkv = b->a, op.o = b->b, op.lse = b->statistics, op.d_o = b->c, op.d_qkv = b->d;
		TIME(b, attention_forward, &op, dropout ? "attention with dropout" : "attention", 2 * product,
		     4 * b->element * elements, dropout ? 0 : times);
		TIME(b, attention_backward, &op, dropout ? "attention with dropout backward" : "attention backward",
		     5 * product, 8 * b->element * elements, dropout ? 0 : times);
	}
}

static void time_ends(bench *b, const model *m)
{
	const size_t side = m->image / m->patch, patches = side * side, D = m->width;
	const size_t elements = m->images * m->tokens * D;
	const mu_micro counts = {m->images, m->images}, *micro = &counts;
	mu_patchify cut = {.type = b->type,
	                   .images = m->images,
	                   .micro = micro,
	                   .channels = m->channels,
	                   .height = m->image,
	                   .width = m->image,
	                   .patch = m->patch,
	                   .pixels = b->pixels,
	                   .patches = b->a};
	for (size_t c = 0; c < m->channels; c++)
		cut.mean[c] = cut.std[c] = 0.5f;
	TIME(b, patchify, &cut, "patchify", 0, (1 + b->element) * m->images * m->channels * m->image * m->image, 1);
	time_linear(b, "patch embedding", m->images * patches, m->channels * m->patch * m->patch, D, MU_ACTIVATION_NONE,
	            false, 1);
	mu_embed embed = {.type = b->type, .images = m->images, .patches = patches, .width = D};
	embed.scratch = scratch_of(b, b->ops->embed_workspace(b->context, &embed));
	embed.patch = b->a, embed.class_token = b->small, embed.position = b->b, embed.x = b->c;
	TIME(b, embed_forward, &embed, "embed", 0, 2 * b->element * elements, 1);
	embed.d_x = b->c, embed.d_patch = b->a, embed.d_class_token = b->d_small, embed.d_position = b->d;
	TIME(b, embed_backward, &embed, "embed backward", 0, 2 * b->element * elements, 1);
	mu_pool pool = {.type = b->type, .images = m->images, .tokens = m->tokens, .width = D, .first = 0, .last = 1};
	pool.x = b->a, pool.y = b->b, pool.d_y = b->b, pool.d_x = b->c;
	TIME(b, pool_forward, &pool, "pool", 0, 2 * b->element * m->images * D, 1);
	TIME(b, pool_backward, &pool, "pool backward", 0, b->element * elements, 1);
	time_linear(b, "head", m->images, D, m->classes, MU_ACTIVATION_NONE, true, 1);
	mu_step_sums sums = {0};
	mu_cross_entropy entropy = {.type = b->type,
	                            .images = m->images,
	                            .micro = micro,
	                            .classes = m->classes,
	                            .smoothing = 0.1,
	                            .logits = b->a,
	                            .labels = b->labels,
	                            .d_logits = b->b,
	                            .sums = &sums};
	TIME(b, cross_entropy, &entropy, "cross-entropy", 0, 2 * b->element * m->images * m->classes, 1);
}

static void time_optimizer(bench *b, const model *m)
{
	const size_t D = m->width, n = m->blocks * (4 * D * D + 2 * D * m->hidden);
	void *p = numbers(b, n, 0.1), *g = numbers(b, n, 0.1), *first = memory(n * 4), *second = memory(n * 4);
	void *master = b->type == MU_F32 ? NULL : memory(n * 4);
	mu_sum_squares squares = {.type = b->type, .n = n, .x = g};
	double sum = 0;
	squares.scratch = scratch_of(b, b->ops->sum_squares_workspace(b->context, &squares));
	squares.sum = &sum;
	TIME(b, sum_squares, &squares, "sum of squares", 2.0 * (double)n, b->element * n, 1);
	const mu_decision rates = {
	        .lr = 1e-4, .beta1 = 0.9, .beta2 = 0.999, .bias1 = 1, .bias2 = 1, .gradient_scale = 1};
	const mu_decision *decision = &rates;
	mu_adamw adamw = {.type = b->type,
	                  .n = n,
	                  .at = decision,
	                  .lr_scale = 1,
	                  .eps = 1e-8,
	                  .decay = 0.05,
	                  .decoupled = true,
	                  .parameter = p,
	                  .master = master,
	                  .gradient = g,
	                  .m = first,
	                  .v = second};
	TIME(b, adamw, &adamw, "adamw", 14.0 * (double)n, (24 + (master ? 2 : 1) * b->element) * n, 1);
	release(p, n * b->element), release(g, n * b->element), release(first, n * 4), release(second, n * 4);
	if (master)
		release(master, n * 4);
}

static void time_dropout(bench *b, const model *m)
{
	mu_dropout op = {.type = b->type, .images = m->images, .elements_per_image = m->tokens * m->width, .x = b->c};
	op.rule = (mu_dropout_rule){.threshold = mu_drop_threshold(0.1), .scale = 1, .stream_B = b->streams};
	TIME(b, dropout, &op, "dropout", 0, 2 * b->element * m->images * op.elements_per_image, 0);
}

static void time_model(bench *b, const model *m)
{
	const size_t tokens = m->images * m->tokens, D = m->width;
	const size_t widest = 3 * D > m->hidden ? 3 * D : m->hidden;
	const size_t pixels = m->images * m->channels * m->image * m->image;
	const size_t n = tokens * widest > pixels ? tokens * widest : pixels;
	const size_t weights = D * widest > D * m->classes ? D * widest : D * m->classes;
	void **operands[] = {&b->a, &b->b, &b->c, &b->d, &b->e, &b->f};
	for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
		*operands[i] = numbers(b, n, 2);
	b->statistics = memory(2 * tokens * m->heads * sizeof(float));
	b->w = numbers(b, weights + D * m->channels * m->patch * m->patch, 0.1);
	b->d_w = numbers(b, weights + D * m->channels * m->patch * m->patch, 0.1);
	b->small = numbers(b, 2 * widest + m->classes, 1), b->d_small = numbers(b, 2 * widest + m->classes, 1);
	b->pixels = memory(pixels);
	b->labels = memory(m->images * sizeof *b->labels);
	b->streams = memory(m->images * sizeof *b->streams);
	b->step_seconds = 0;
	printf("\n%s: %zu images, %zu tokens, width %zu, %zu heads, hidden %zu, %zu blocks\n", m->name, m->images,
	       m->tokens, D, m->heads, m->hidden, m->blocks);
	time_linear(b, "qkv", tokens, D, 3 * D, MU_ACTIVATION_NONE, true, m->blocks);
	time_attention(b, m, m->blocks);
	time_linear(b, "projection", tokens, D, D, MU_ACTIVATION_NONE, true, m->blocks);
	time_linear(b, "mlp 1, gelu", tokens, D, m->hidden, MU_ACTIVATION_GELU_ERF, true, m->blocks);
	time_linear(b, "mlp 2", tokens, m->hidden, D, MU_ACTIVATION_NONE, true, m->blocks);
	time_norm(b, m, 2 * m->blocks + 1);
	time_ends(b, m);
	time_optimizer(b, m);
	time_dropout(b, m);
	printf("  sum of a training step: %.2f ms, %.1f images/s\n", b->step_seconds * 1e3,
	       (double)m->images / b->step_seconds);
}

int main(int argc, char **argv)
{
	const int threads = argc > 1 ? atoi(argv[1]) : 0;
	const bool bf16 = argc > 3 && strcmp(argv[3], "bf16") == 0;
	bench b = {.ops = &mu_ops_cpu, .type = bf16 ? MU_BF16 : MU_F32, .alone = threads == 1};
	b.element = mu_dtype_bytes(b.type);
	mural_error err = {0};
	if (b.ops->open(NULL, threads, &b.context, &err) != MURAL_OK)
		stop(err.message);
	measure_floors(&b, threads);
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		if (argc < 3 || strcmp(argv[2], models[i].name) == 0)
			time_model(&b, &models[i]);
	b.ops->close(b.context);
	return 0;
}
