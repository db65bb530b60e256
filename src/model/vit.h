/* The Vision Transformer (Dosovitskiy et al. 2021, arXiv:2010.11929), pre-norm, as a list of units over the operations table.
 *
 *     tokens  = embed(patchify(images))                                      unit 0
 *     block l: a = attention(norm1(x)); x = x + branch(a); m = mlp(norm2(x)); x = x + branch(m)     units 1 .. L
 *     logits  = head(norm(pool(x)))                                          unit L + 1
 *
 * branch() is dropout and drop path. The residual addition of a branch happens inside the *next* LayerNorm: between
 * units travel the pair (x_TD, r_TD): the last branch's output and the residual stream before it. Pooling is linear, so
 * the head pools both and its LayerNorm adds them. Token pooling norms the class token only, which equals torchvision's
 * norm over all tokens; mean pooling averages patch tokens and norms afterwards (timm's fc_norm).
 *
 * This floor knows operations and units; it does not know who owns, reduces or optimises parameters.
 * SPDX-License-Identifier: MIT */
#ifndef MU_MODEL_VIT_H
#define MU_MODEL_VIT_H

#include "base/arena.h"
#include "kernels/ops.h"
#include "model/unit.h"
#include "mural/model.h"

typedef struct mu_vit {
	mural_model_config config;
	size_t n_units; /* depth + 2 */
	mu_unit *units;
	size_t patches, prefix, tokens; /* n, 0 or 1, N = prefix + n */
	size_t parameters; /* elements of all tensors, padding not counted */
	size_t elements; /* of all spans */
} mu_vit;

/* Builds the unit table. config must have passed mural_model_config_check. Owns what mu_vit_release frees. */
mural_status mu_vit_init(mu_vit *vit, const mural_model_config *config, mural_error *err);
void mu_vit_release(mu_vit *vit);

/* NULL if the unit has no such tensor. */
const mu_tensor *mu_unit_tensor(const mu_unit *unit, mu_role role);

/* Sets MU_TENSOR_DECAYS on every tensor or, with weights_only, only on matrices and the patch weight: not on biases, norms,
 * positions and class token (timm's rule). A fresh table decays everything. */
void mu_vit_apply_decay_rule(mu_vit *vit, bool weights_only);

/* Sets lr_scale = decay^(L + 1 - id) with id 0 for the embedding, l + 1 for block l, L + 1 for final norm and head
 * (layer-wise learning rates, as in BEiT, MAE and timm). decay: (0, 1]; 1 takes every scale back to 1. */
void mu_vit_apply_lr_decay(mu_vit *vit, double decay);

/* Sets MU_TENSOR_TRUST on every tensor, as DeepSpeed's LAMB does, or only on those that decay, as timm's does. */
void mu_vit_apply_trust_rule(mu_vit *vit, bool decaying_only);

/* Sets MU_TENSOR_MUON on the matrices of blocks and head. DeepSpeed goes by dimensions and names: what it calls
 * embed or has one dimension is Adam's. The patch weight and class token, whose names differ between libraries, are
 * Adam's here: they embed. */
void mu_vit_apply_muon_rule(mu_vit *vit);

/* Sets MU_TENSOR_FROZEN by a list of what is not trained, "" for nothing: items between commas, each
 *     embed | blocks | blocks.A | blocks.A-B | head      whole units; the head's has the final norm too
 *     a pattern of tensor names with * and ?             as in file names
 * MURAL_USAGE naming an item that means nothing, or if nothing is left to train. */
mural_status mu_vit_freeze(mu_vit *vit, const char *list, mural_error *err);
/* The first unit with a tensor that is trained; those before it need no backward. */
size_t mu_vit_first_trained(const mu_vit *vit);

/* Fills one unit's span (type MU_F32 or MU_F64) with initial values by the configuration's scheme, a pure function of
 * seed and tensor number. Padding becomes 0. */
mural_status mu_vit_initialise(const mu_vit *vit, size_t unit, uint32_t seed, mu_dtype type, void *span,
                               mural_error *err);

/* One micro-batch on the way through: shapes, inputs and every kept activation. */
typedef struct mu_vit_pass mu_vit_pass;

/* Arrays, micro and loss_scale lie on the ops' device. */
typedef struct mu_vit_input {
	const mu_micro *micro; /* how many of the images are real */
	/* [capacity, image_channels, height / factor, width / factor]; 0: the model's channels, 0 or 1: its sides (mu_patchify) */
	const uint8_t *pixels;
	size_t image_channels, factor;
	const mu_image_cut *cut_B; /* or NULL */
	const float *mean_C, *std_C; /* [channels] of pixels in [0, 1], host memory; NULL: 0 and 1 */
	const uint64_t *stream_B; /* [capacity], needed when training with any dropout */
	const int32_t *labels; /* [capacity] */
	const double *loss_scale; /* NULL: 1 */
	double label_smoothing; /* [0, 1) */
} mu_vit_input;

/* Lays out activations (arena `step`) and workspace (arena `scratch`) for micro-batches of `capacity` images. With
 * measuring arenas this is the plan and the pass must not be run. training: keep what backward needs; otherwise all
 * randomness is off and the blocks share their buffers. The pass borrows vit, ops, context and what it took from the
 * arenas; its own small tables go with mu_vit_pass_free, which takes NULL. */
mural_status mu_vit_pass_create(mu_vit_pass **pass, const mu_vit *vit, const mu_ops *ops, mu_ops_context *context,
                                mu_dtype type, size_t capacity, bool training, uint32_t seed, mu_arena *step,
                                mu_arena *scratch, mural_error *err);
void mu_vit_pass_free(mu_vit_pass *pass);

/* How many of the capacity's images are computed from now on, 1 .. capacity (at first all): the next forward, its backward, and those
 * after it. So few as a micro-batch has take less time than a full one, whose other rows are computed and weigh nothing. All are
 * computed where so few need more workspace than was planned. */
void mu_vit_pass_images(mu_vit_pass *pass, size_t images);

/* Unit by unit, in order. parameters: the unit's span. unit 0 needs input; later units use what earlier ones left. */
mural_status mu_vit_forward_unit(mu_vit_pass *pass, size_t unit, const void *parameters, const mu_vit_input *input,
                                 mural_error *err);

/* After the head: adds to sums (on the device), leaves d_logits (training) and, if not NULL, the best class per image. */
mural_status mu_vit_loss(mu_vit_pass *pass, const mu_vit_input *input, mu_step_sums *sums, int32_t *best_B,
                         mural_error *err);

/* Unit by unit, in reverse. gradients: the unit's gradient span, ADDED to. */
mural_status mu_vit_backward_unit(mu_vit_pass *pass, size_t unit, const void *parameters, void *gradients,
                                  const mu_vit_input *input, mural_error *err);

/* [capacity, C] of type, after the head's forward, before mu_vit_loss (which may overwrite them). */
const void *mu_vit_logits(const mu_vit_pass *pass);

/* What a unit's forward left, or what became of it on the way to the next unit: [*elements] of type, until the next forward.
 * The head's are logits, or their gradient. Training passes only. For looking what went wrong. */
const void *mu_vit_left_by(const mu_vit_pass *pass, size_t unit, size_t *elements);

/* Floating-point operations of forward for one image, 2 per multiply-add, attention products included, bias and
 * element-wise work not. Forward and backward together: three times this, less the patch embedding's input gradient. */
double mu_vit_forward_flops(const mu_vit *vit);
/* The same for one unit. */
double mu_vit_unit_flops(const mu_vit *vit, size_t unit);

#endif
