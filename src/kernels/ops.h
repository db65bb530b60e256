/* The operations table: everything a Vision Transformer computes, as one struct of function pointers.
 *
 * `reference` states each row in plain, slow, obvious C with double accumulation; `cpu` and `cuda` implement the same
 * rows, and one differential test drives them all. Rows that end in NULL in every table are planned, listed so that
 * the table changes shape seldom; a table has either all built rows or does not load. Only accumulate and the rows of
 * optimizers other than AdamW and of averages (sgd .. ema) may be NULL in a table that has the others: optim asks before a run starts.
 *
 * Letters: B images, N tokens per image, T = B * N, D width, H heads, K head size (D = H * K), F hidden width,
 * C classes, P patch side. All arrays are dense and row-major; x_TD has shape [T, D].
 *
 * Types: `type` is that of activations, parameters and their gradients: MU_F32, MU_BF16 or MU_F16; the reference takes
 * MU_F64 too. Statistics (mean, rstd, log-sum-exp, losses) are `float`, or `double` when type is MU_F64: "stat" below.
 *
 * The rule that governs every backward: gradients of parameters ADD to what is there (micro-batches accumulate),
 * gradients of activations OVERWRITE. Inputs are never changed unless a field says so. Outputs may hold anything
 * before the call. Aliasing is allowed only where stated.
 *
 * Alignment: arrays start at 64 bytes (arenas), parameters and their gradients also at multiples of 32 elements.
 * Spans of optimizers, sum_squares, tensor_norms and cast, and pixels, cuts, labels and streams are aligned to their element only.
 *
 * Workspace: `*_workspace` returns the bytes of `scratch` that the call with these shapes needs; it also prepares
 * whatever the implementation caches per shape, so it is called for every shape before the first step, and the row
 * itself allocates nothing afterwards. scratch is aligned to 64 bytes and its contents are lost.
 *
 * Rows past the count: a micro-batch has capacity B and `count` real images; patchify zero-fills the others and
 * cross_entropy gives them no loss and no gradient, so no other row needs to know.
 *
 * Nothing per step on the host: whatever changes from step to step (counts, loss scale, sums, learning rate, clipping,
 * whether the update is left out) lies in device memory, in the structs below. So the calls of one step are the
 * calls of every step, and a device that can capture them replays them.
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_OPS_H
#define MU_KERNELS_OPS_H

#include <stdbool.h>

#include "base/fail.h"
#include "base/philox.h"
#include "base/types.h"
#include "device/device.h"
#include "kernels/enlarge.h"

#define MU_OPS_VERSION 4
#define MU_MAX_CHANNELS 16

/* Per-step values, in the memory of the table's device. The structs of doubles are arrays of doubles: they travel, and
 * compare, as one. */

/* One micro-batch. A rank without images computes with count 0. */
typedef struct mu_micro {
	uint64_t count; /* real images of this rank, <= capacity */
	uint64_t
	        planned; /* divisor of the step's gradients: its images, all ranks, or a multiple that suits a narrow type */
} mu_micro;

/* Summed over a step's micro-batches, then over ranks in one small reduction. */
typedef struct mu_step_sums {
	double loss; /* of the images, unscaled */
	double count, top1, top5; /* images */
	double non_finite, label_range; /* images whose loss is not finite, whose label is outside of the classes */
	double failed, stop_asked; /* ranks */
} mu_step_sums;
#define MU_STEP_SUMS (sizeof(mu_step_sums) / sizeof(double))

/* What one step hands to the next. */
typedef struct mu_carried {
	double loss_scale; /* factor of the next step's gradients; 1 without loss scaling */
	double clean, hysteresis; /* updates since the last overflow; how many overflows until the scale is halved */
	double applied, skipped; /* updates */
} mu_carried;

/* What optimizers read: row `settle` decides it once per step. */
typedef struct mu_decision {
	double skip; /* 1: leave everything as it is; otherwise 0 */
	double number; /* of this update, from 1, counting those that were applied */
	double lr, beta1, beta2;
	double bias1, bias2; /* 1 - beta^number, or 1 */
	double gradient_scale; /* planned / actual count / loss scale, times the clipping factor */
	double ema_decay; /* of averages of weights */
	double norm; /* of the unscaled gradient before clipping; not finite when an element is not */
	double loss_scale; /* that this step's gradients have had */
	double exhausted; /* 1: an overflow while the loss scale stood at its floor */
} mu_decision;

typedef struct mu_step_record {
	mu_step_sums sums;
	double squares; /* of the summed, scaled gradient: sum_squares adds them up */
	mu_carried carried;
	mu_decision decision;
} mu_step_record;

/* Learning rate and momenta of one update. */
typedef struct mu_rate {
	double lr, beta1, beta2;
} mu_rate;

/* An implementation at work on one queue: thread team, caches of prepared primitives. */
typedef struct mu_ops_context mu_ops_context;

typedef enum mu_activation {
	MU_ACTIVATION_NONE,
	MU_ACTIVATION_GELU_ERF, /* x * Phi(x), Hendrycks and Gimpel 2016, arXiv:1606.08415 */
	MU_ACTIVATION_GELU_TANH /* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
} mu_activation;

/* Dropout whose mask is recomputed, never stored: element e of image b is kept iff
 * mu_random_u32(key, stream_B[b], e) >= threshold, and then multiplied by scale. threshold 0 keeps everything
 * as it is, whatever scale says. */
typedef struct mu_dropout_rule {
	mu_random_key key;
	uint32_t threshold; /* mu_drop_threshold(p) */
	float scale; /* 1 / (1 - p) */
	const uint64_t *stream_B; /* mu_stream(epoch, position) of each image; may be NULL when threshold is 0 */
} mu_dropout_rule;

/* Where one image is cut and whether it is mirrored: source pixel of output (y, x) is (y + dy, x' + dx) with
 * x' = flip ? width - 1 - x : x; pixels outside the source are 0 before normalisation, as torchvision pads. */
typedef struct mu_image_cut {
	int16_t dx, dy;
	uint8_t flip;
	uint8_t reserved[3];
} mu_image_cut;

/* uint8 planes to normalised patches.
 *
 *     patches[b, (py, px), c * P * P + y * P + x] = (pixel / 255 - mean[c]) / std[c]
 *
 * pixels: [B, image_channels, height / factor, width / factor] uint8. cut_B: [B], or NULL for whole images. patches: [B, (height/P) *
 * (width/P), channels * P * P] of type: the row layout of a torch Conv2d weight. Images past the micro-batch's count
 * become 0. */
typedef struct mu_patchify {
	mu_dtype type;
	size_t images;
	const mu_micro *micro;
	size_t channels, height, width, patch;
	/* Images of another shape: 0 or channels for all channels, 1 for one that is repeated; and enlarged by a whole factor on
	 * the way, before they are cut (kernels/enlarge.h): 0 or 1 for none, at most MU_ENLARGE_MOST, and a divisor of both sides. */
	size_t image_channels, factor;
	float mean[MU_MAX_CHANNELS], std[MU_MAX_CHANNELS];
	const uint8_t *pixels;
	const mu_image_cut *cut_B;
	void *patches;
} mu_patchify;

/* Tokens from embedded patches: class token in front, positions added, dropout.
 *
 *     x[b, 0] = class_token + position[0]                        if class_token is not NULL
 *     x[b, prefix + i] = patch[b, i] + position[prefix + i]      prefix = class token present ? 1 : 0
 *     x = dropout(x)                                             element = token * D + d
 *
 * patch: [B, n, D]. class_token: [D] or NULL. position: [prefix + n, D]. x: [B, prefix + n, D].
 * Backward: d_patch overwritten; d_class_token (NULL iff class_token is) and d_position add. */
typedef struct mu_embed {
	mu_dtype type;
	size_t images, patches, width;
	mu_dropout_rule dropout;
	const void *patch, *class_token, *position;
	void *x;
	/* backward */
	const void *d_x;
	void *d_patch, *d_class_token, *d_position;
	void *scratch;
} mu_embed;

/* LayerNorm over the last dim, with the residual addition in front of it.
 *
 *     s = x * keep[image] * gain + r             r may be NULL: then s = x * keep * gain. keep_B: [tokens /
 *                                                tokens_per_image] stat, gain: [D]; NULL means 1
 *     y = (s - mean) / sqrt(var + eps) * w + b   var is biased, as in PyTorch
 *
 * x, r, sum, y: [tokens, D]. sum may be NULL iff r, keep_B and gain are NULL (then s is x), and may alias x or r.
 * y may not alias anything. y may be NULL: only the sum is made (w, b, mean, rstd unused).
 * mean, rstd: [tokens] stat, kept for backward.
 *
 * Backward, with d_s = d_sum + (gradient of the norm at s):
 *     d_r = d_s;  d_x = d_s * keep * gain;  d_gain += sum(d_s * x * keep);  d_w, d_b add.
 * sum: the s of forward, NULL if it was (x is read). d_y: [tokens, D], NULL iff y was NULL. d_sum: gradient that
 * reaches s from later, or NULL for none. d_r: overwritten, required; may alias d_sum or d_y. d_x: NULL when keep_B
 * and gain are NULL (d_r serves); otherwise overwritten, may alias x's gradient source d_y but not d_r.
 * Ba, Kiros, Hinton 2016, arXiv:1607.06450; drop path: Huang et al. 2016, arXiv:1603.09382. */
typedef struct mu_layernorm {
	mu_dtype type;
	size_t tokens, width, tokens_per_image;
	double eps;
	const void *x, *r, *w, *b;
	const void *keep_B, *gain;
	void *sum, *y;
	void *mean, *rstd;
	/* backward */
	const void *d_y, *d_sum;
	void *d_r, *d_x, *d_w, *d_b, *d_gain;
	void *scratch;
} mu_layernorm;

/* Linear layer with an activation behind it.
 *
 *     pre = x w^T + b;  y = activation(pre)
 *
 * x: [rows, in]; w: [out, in] (as torch); b: [out] or NULL; y, pre: [rows, out]. With an activation, pre is required
 * and kept for backward; without, pre is unused and y is the product.
 * Backward: d_y: [rows, out], gradient of y; with an activation it is OVERWRITTEN by the gradient of pre.
 * d_x: [rows, in] overwritten, or NULL when nobody needs it. d_w, d_b add. */
typedef struct mu_linear {
	mu_dtype type;
	size_t rows, in, out;
	mu_activation activation;
	const void *x, *w, *b;
	void *pre, *y;
	/* backward */
	void *d_y;
	void *d_x, *d_w, *d_b;
	void *scratch;
} mu_linear;

/* Multi-head self-attention on a fused projection (Vaswani et al. 2017, arXiv:1706.03762).
 *
 *     s = q k^T / sqrt(K);  p = softmax(s) over keys;  o = dropout(p) v      per image and head
 *
 * qkv: [B, N, 3, H, K]: rows [0, D) q, [D, 2D) k, [2D, 3D) v, heads contiguous in each. o: [B, N, H, K].
 * lse: [B, H, N] stat, log-sum-exp of each row of s, kept for backward. dropout element = (h * N + query) * N + key.
 * Backward: qkv, o, lse of forward; d_o: [B, N, H, K]; d_qkv: [B, N, 3, H, K] overwritten. */
typedef struct mu_attention {
	mu_dtype type;
	size_t images, tokens, heads, head_size;
	mu_dropout_rule dropout;
	const void *qkv;
	void *o, *lse;
	/* backward */
	const void *d_o;
	void *d_qkv;
	void *scratch;
} mu_attention;

/* Dropout in place on [B, elements_per_image]: x = keep ? x * scale : 0. Its own backward. */
typedef struct mu_dropout {
	mu_dtype type;
	size_t images, elements_per_image;
	mu_dropout_rule rule;
	void *x;
} mu_dropout;

/* Drop path factors: keep_B[b] = element 0 of the rule kept ? scale : 0. keep_B: [B] stat of type. */
typedef struct mu_drop_path {
	mu_dtype type;
	size_t images;
	mu_dropout_rule rule;
	void *keep_B;
} mu_drop_path;

/* One vector per image: the token `first` alone (last = first + 1), or the mean of tokens [first, last).
 * x: [B, N, D]; y: [B, D]. Backward: d_y: [B, D]; d_x: [B, N, D] overwritten, zero outside the range. */
typedef struct mu_pool {
	mu_dtype type;
	size_t images, tokens, width, first, last;
	const void *x;
	void *y;
	const void *d_y;
	void *d_x;
} mu_pool;

/* Cross-entropy with label smoothing, its gradient, and top-1 / top-5 in one pass.
 *
 *     target = (1 - smoothing) * onehot(label) + smoothing / C
 *     loss_b = -sum_c target_c log softmax(logits)_c;  d_logits = scale * (softmax - target)
 *     scale = loss_scale / planned
 *
 * logits, d_logits: [B, C]; d_logits may alias logits, may be NULL (evaluation). labels: [B] int32.
 * Rows past the micro-batch's count: no loss, zero gradient. A rank in a tie: top-k counts the label as correct iff fewer
 * than k logits are strictly greater, or equal with a smaller index; NaN counts as greater. The best of a tie is the first.
 * loss_scale: a carried.loss_scale, or NULL for 1; without d_logits neither it nor planned is read.
 * sums: loss, count, top1, top5, non_finite and label_range are ADDED to; a row with a label outside [0, C) only to
 * the last, and has no gradient. */
typedef struct mu_cross_entropy {
	mu_dtype type;
	size_t images, classes;
	double smoothing;
	const mu_micro *micro;
	const double *loss_scale;
	const void *logits;
	const int32_t *labels;
	void *d_logits;
	float *loss_B; /* [B] or NULL */
	int32_t *best_B; /* [B] index of the largest logit, also past the count; or NULL */
	mu_step_sums *sums;
} mu_cross_entropy;

/* The rules of dynamic loss scaling, as DeepSpeed's ZeRO optimizers have them but for an update at the wrong scale: an
 * overflow leaves the update out and, unless hysteresis forgives it, halves the scale; `window` clean updates double it.
 *
 *     overflow: hysteresis 1, or used up: scale = max(scale / 2, floor), exhausted if it stood at the floor already
 *               otherwise one less of it.  clean = 0
 *     clean:    consecutive: hysteresis as new
 *               clean > 0 and a multiple of window: scale *= 2, hysteresis as new.  clean += 1 */
typedef struct mu_loss_scaling {
	bool dynamic; /* false: the scale stays as it is, whatever happens */
	bool consecutive;
	double window, hysteresis, floor;
} mu_loss_scaling;

/* From sums and squares, which all ranks have, to this step's decision: clipping by the global norm, whether the gradient
 * is finite, loss scaling, learning rate, counters.
 *
 *     unscale = planned / count / loss_scale;  norm = sqrt(squares) * unscale
 *     skip = norm or a loss is not finite, a label is out of range, or a rank failed
 *     gradient_scale = unscale * min(1, clipping / (norm + 1e-6))              clipping 0: unscale
 *     lr, beta1, beta2 = rates[applied mod n_rates];  then, unless skip, applied += 1
 *     ema_decay = ema_warm_up ? min(ema_decay, 1 - (1 + number)^(-2/3)) : ema_decay           as timm's
 *
 * A skipped update counts in carried.skipped, and in the loss scaling only if it is the gradient's or the loss's fault.
 * micro: of any micro-batch of the step. rates: a ring in device memory. */
typedef struct mu_settle {
	double clipping; /* largest norm, 0: any */
	bool bias_correction;
	double ema_decay;
	bool ema_warm_up;
	mu_loss_scaling scaling;
	const mu_micro *micro;
	const mu_rate *rates;
	size_t n_rates;
	mu_step_record *record;
} mu_settle;

/* AdamW over one span, in one pass (Loshchilov and Hutter 2019, arXiv:1711.05101; as torch.optim.AdamW).
 *
 *     g = gradient * gradient_scale;  lr = at->lr * lr_scale
 *     m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
 *     p = p - lr * decay * p;  p = p - lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps)
 *
 * decoupled = false puts decay * p into g instead (Adam with L2). What is not in this struct is at's, in all optimizers.
 * parameter: [n] of type; master: [n] fp32 or NULL when type is MU_F32 (or MU_F64), then parameter is its own master.
 * gradient: [n] of type. m, v: [n] fp32 (double for MU_F64). */
typedef struct mu_adamw {
	mu_dtype type;
	size_t n;
	const mu_decision *at;
	double lr_scale, eps, decay;
	bool decoupled;
	void *parameter;
	float *master;
	const void *gradient;
	void *m, *v;
} mu_adamw;

/* Sum of squares of a span, in double: *sum is ADDED to. */
typedef struct mu_sum_squares {
	mu_dtype type;
	size_t n;
	const void *x;
	double *sum;
	void *scratch;
} mu_sum_squares;

/* to = from, element by element, round to nearest even. */
typedef struct mu_cast {
	size_t n;
	mu_dtype from_type, to_type;
	const void *from;
	void *to;
} mu_cast;

/* Gradients of a micro-batch onto those of the step: sum += x, then x = 0. x: [n] of type; sum: [n] fp32. */
typedef struct mu_accumulate {
	mu_dtype type;
	size_t n;
	void *x;
	float *sum;
} mu_accumulate;

/* Stochastic gradient descent with momentum over one span, in one pass (as torch.optim.SGD).
 *
 *     g = gradient * gradient_scale + decay * p
 *     m = momentum * m + (at->number == 1 ? 1 : 1 - dampening) * g
 *     p = p - lr * (nesterov ? g + momentum * m : m)
 *
 * momentum 0: m is NULL and p = p - lr * g. Otherwise m: [n] fp32 (double for MU_F64), zero before the first update.
 * lr, parameter, master, gradient: as in mu_adamw.
 * Sutskever et al. 2013, "On the importance of initialization and momentum in deep learning". */
typedef struct mu_sgd {
	mu_dtype type;
	size_t n;
	const mu_decision *at;
	double lr_scale, momentum, dampening, decay;
	bool nesterov;
	void *parameter;
	float *master;
	const void *gradient;
	void *m;
} mu_sgd;

/* Lion over one span, in one pass (Chen et al. 2023, arXiv:2302.06675; as timm's).
 *
 *     g = gradient * gradient_scale
 *     p = p - lr * decay * p;  p = p - lr * sign(beta1 m + (1 - beta1) g)        sign(0) = 0, sign(NaN) = NaN
 *     m = beta2 m + (1 - beta2) g
 *
 * m: [n] fp32 (double for MU_F64). lr, parameter, master, gradient: as in mu_adamw. */
typedef struct mu_lion {
	mu_dtype type;
	size_t n;
	const mu_decision *at;
	double lr_scale, decay;
	void *parameter;
	float *master;
	const void *gradient;
	void *m;
} mu_lion;

/* Moments and direction of LAMB over one span (You et al. 2020, arXiv:1904.00962, algorithm 2). The step itself is
 * apply_update's, with the trust ratio of each tensor, so that a tensor may lie in pieces on several ranks.
 *
 *     g = gradient * gradient_scale
 *     m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
 *     update = m / bias1 / (sqrt(v / bias2) + eps) + decay * p          eps_inside: sqrt(v / bias2 + eps)
 *
 * parameter or, if not NULL, master: read only. m, v, update: [n] fp32 (double for
 * MU_F64). update may be gradient where that has its type. */
typedef struct mu_lamb {
	mu_dtype type;
	size_t n;
	const mu_decision *at;
	double eps, decay;
	bool eps_inside;
	const void *parameter;
	const float *master;
	const void *gradient;
	void *m, *v, *update;
} mu_lamb;

/* Momentum as a moving average, over one span: what Muon makes orthogonal (Jordan et al. 2024, "Muon: an optimizer for
 * hidden layers in neural networks").
 *
 *     g = gradient * gradient_scale
 *     m = momentum * m + (1 - momentum) g;  update = nesterov ? momentum * m + (1 - momentum) g : m
 *
 * m, update: [n] fp32 (double for MU_F64). update may be gradient where that has its type. */
typedef struct mu_momentum {
	mu_dtype type;
	size_t n;
	const mu_decision *at;
	double momentum;
	bool nesterov;
	const void *gradient;
	void *m, *update;
} mu_momentum;

/* An odd polynomial of a matrix, again and again: pushes its singular values towards 1 (the same paper).
 *
 *     x = x / (|x| + 1e-7);  steps times: x = a x + b (x x^T) x + c (x x^T)^2 x             |x|: Frobenius norm
 *
 * x: [rows, cols] fp32 (double for MU_F64), in place. Sums are fp32 in fast tables: this is not bf16. */
typedef struct mu_newton_schulz {
	mu_dtype type; /* of the parameter that x belongs to */
	size_t rows, cols, steps;
	double a, b, c;
	void *x;
	void *scratch;
} mu_newton_schulz;

/* Sum of squares of each of several tensors in one span, in double: squares[t] is overwritten.
 * extents: [n_tensors], host memory, in any order. The sums do not depend on threads. */
typedef struct mu_extent {
	size_t offset, elements;
} mu_extent;

typedef struct mu_tensor_norms {
	mu_dtype type;
	size_t n_tensors;
	const mu_extent *extents;
	const void *x;
	double *squares;
	void *scratch;
} mu_tensor_norms;

/* A step along a direction that lamb or newton_schulz left, over one span.
 *
 *     ratio = |weight| / |update| within [min_ratio, max_ratio];  1 if either norm is 0 or weight_square is NULL
 *     p = p - lr * decay * p;  p = p - lr * ratio * scale * update
 *
 * weight_square, update_square: squares of the two norms (tensor_norms), both NULL or neither; in device memory.
 * update: [n] fp32 (double for MU_F64). lr, parameter, master: as in mu_adamw. */
typedef struct mu_apply_update {
	mu_dtype type;
	size_t n;
	const mu_decision *at;
	double lr_scale, scale, decay, min_ratio, max_ratio;
	const double *weight_square, *update_square;
	void *parameter;
	float *master;
	const void *update;
} mu_apply_update;

/* Moving average of weights: average = d * average + (1 - d) * p with d = at->ema_decay. parameter or, if not NULL, master: [n], read
 * only. average: [n] fp32 (double for MU_F64). */
typedef struct mu_ema {
	mu_dtype type;
	size_t n;
	const mu_decision *at;
	const void *parameter;
	const float *master;
	void *average;
} mu_ema;

typedef struct mu_ops {
	const char *name; /* "reference", "cpu", "cuda" */
	const char *build_id; /* MU_BUILD_ID */
	int version; /* MU_OPS_VERSION */
	const mu_device_table *device; /* the device table that this one works on */

	/* threads: team size for host tables (0: what OpenMP says), ignored elsewhere. The queue is borrowed. */
	mural_status (*open)(mu_queue *queue, int threads, mu_ops_context **context, mural_error *err);
	void (*close)(mu_ops_context *context);
	bool (*supports)(mu_ops_context *context, mu_dtype type);
	/* fixed: the same algorithms, hence the same bits, in every process; otherwise the fastest, which may be measured. NULL
	 * where that makes no difference. Called before the first workspace is asked for. */
	void (*fix_algorithms)(mu_ops_context *context, bool fixed);

#define MU_OPS_ROW(name) mural_status (*name)(mu_ops_context *, const mu_##name *, mural_error *)
#define MU_OPS_PAIR(name)                                                                    \
	mural_status (*name##_forward)(mu_ops_context *, const mu_##name *, mural_error *);  \
	mural_status (*name##_backward)(mu_ops_context *, const mu_##name *, mural_error *); \
	size_t (*name##_workspace)(mu_ops_context *, const mu_##name *)
	MU_OPS_ROW(patchify);
	MU_OPS_PAIR(embed);
	MU_OPS_PAIR(layernorm);
	MU_OPS_PAIR(linear);
	MU_OPS_PAIR(attention);
	MU_OPS_ROW(dropout);
	MU_OPS_ROW(drop_path);
	mural_status (*pool_forward)(mu_ops_context *, const mu_pool *, mural_error *);
	mural_status (*pool_backward)(mu_ops_context *, const mu_pool *, mural_error *);
	MU_OPS_ROW(cross_entropy);
	MU_OPS_ROW(settle);
	MU_OPS_ROW(adamw);
	MU_OPS_ROW(sum_squares);
	size_t (*sum_squares_workspace)(mu_ops_context *, const mu_sum_squares *);
	MU_OPS_ROW(cast);
	/* From here to ema a table may have NULL. */
	MU_OPS_ROW(accumulate);
	MU_OPS_ROW(sgd);
	MU_OPS_ROW(lion);
	MU_OPS_ROW(lamb);
	MU_OPS_ROW(momentum);
	MU_OPS_ROW(newton_schulz);
	size_t (*newton_schulz_workspace)(mu_ops_context *, const mu_newton_schulz *);
	MU_OPS_ROW(tensor_norms);
	size_t (*tensor_norms_workspace)(mu_ops_context *, const mu_tensor_norms *);
	MU_OPS_ROW(apply_update);
	MU_OPS_ROW(ema);

	/* Planned, NULL in every table until built: mixing in patchify's place, soft-label and binary
	 * cross-entropy, regression, int8 blocks. */
	void (*soft_cross_entropy)(void);
	void (*binary_cross_entropy)(void);
	void (*regression)(void);
	void (*quantize_int8)(void);
	void (*dequantize_int8)(void);
} mu_ops;

extern const mu_ops mu_ops_reference;
extern const mu_ops mu_ops_cpu;

/* Every table built into this library, NULL-terminated. */
extern const mu_ops *const mu_ops_all[];

/* By name, or NULL. */
const mu_ops *mu_ops_find(const char *name);

#endif
