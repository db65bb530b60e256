/* Initial weights, as torchvision's and timm's constructors draw them.
 *
 * Every element is a pure function of (seed, tensor number, element): key purpose MU_PURPOSE_INIT, layer = tensor
 * number, so neither order nor threads matter. Normals come in pairs from Box and Muller 1958; a normal beyond the cut
 * of a truncated one is drawn again from the next stream. PyTorch cuts at +-2 as absolute values, whatever the standard
 * deviation.
 *
 *     tensor             torchvision                            timm
 *     patch weight       truncated normal, 1 / sqrt(C P P)      uniform +-1 / sqrt(C P P)
 *     patch bias         0                                      uniform +-1 / sqrt(C P P)
 *     class token        0                                      normal 1e-6
 *     positions          normal 0.02                            truncated normal 0.02
 *     qkv weight         uniform +-sqrt(6 / 4D)                 truncated normal 0.02
 *     attention output   uniform +-1 / sqrt(D)                  truncated normal 0.02
 *     MLP weights        uniform +-sqrt(6 / (D + F))            truncated normal 0.02
 *     MLP biases         normal 1e-6                            0
 *     head               0                                      truncated normal 0.02
 *     norms              1                                      1
 *     other biases       0                                      0
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "model/vit.h"

#define TWO_PI 6.28318530717958647692
#define CUT 2.0 /* absolute: torch.nn.init.trunc_normal_'s a and b */
#define SMALL_STD 1e-6
#define POSITION_STD 0.02
#define TIMM_STD 0.02

typedef enum shape { CONSTANT, UNIFORM, NORMAL, TRUNCATED_NORMAL } shape;

typedef struct distribution {
	shape shape;
	double parameter; /* value, bound or standard deviation */
} distribution;

static distribution torchvision(const mural_model_config *c, mu_role role)
{
	const double width = (double)c->width;
	switch (role) {
	case MU_ROLE_PATCH_W:
		return (distribution){TRUNCATED_NORMAL, 1 / sqrt((double)(c->channels * c->patch * c->patch))};
	case MU_ROLE_POSITION: return (distribution){NORMAL, POSITION_STD};
	case MU_ROLE_QKV_W: return (distribution){UNIFORM, sqrt(6 / (4 * width))};
	case MU_ROLE_OUT_W: return (distribution){UNIFORM, 1 / sqrt(width)};
	case MU_ROLE_FC1_W:
	case MU_ROLE_FC2_W: return (distribution){UNIFORM, sqrt(6 / (width + (double)c->mlp_width))};
	case MU_ROLE_FC1_B:
	case MU_ROLE_FC2_B: return (distribution){NORMAL, SMALL_STD};
	case MU_ROLE_NORM1_W:
	case MU_ROLE_NORM2_W:
	case MU_ROLE_NORM_W: return (distribution){CONSTANT, 1};
	default: return (distribution){CONSTANT, 0};
	}
}

static distribution timm(const mural_model_config *c, mu_role role)
{
	switch (role) {
	case MU_ROLE_PATCH_W:
	case MU_ROLE_PATCH_B: return (distribution){UNIFORM, 1 / sqrt((double)(c->channels * c->patch * c->patch))};
	case MU_ROLE_CLASS_TOKEN: return (distribution){NORMAL, SMALL_STD};
	case MU_ROLE_POSITION:
	case MU_ROLE_QKV_W:
	case MU_ROLE_OUT_W:
	case MU_ROLE_FC1_W:
	case MU_ROLE_FC2_W:
	case MU_ROLE_HEAD_W: return (distribution){TRUNCATED_NORMAL, TIMM_STD};
	case MU_ROLE_NORM1_W:
	case MU_ROLE_NORM2_W:
	case MU_ROLE_NORM_W: return (distribution){CONSTANT, 1};
	default: return (distribution){CONSTANT, 0};
	}
}

/* Element e of a sequence of standard normals: cosine and sine of one pair of uniforms serve two elements. */
static double normal(mu_random_key key, uint64_t stream, uint64_t e)
{
	uint64_t pair = e / 2 * 2;
	double radius = sqrt(-2 * log(1 - mu_random_uniform(key, stream, pair)));
	double angle = TWO_PI * mu_random_uniform(key, stream, pair + 1);
	return radius * (e % 2 ? sin(angle) : cos(angle));
}

static double draw(distribution d, mu_random_key key, uint64_t e)
{
	switch (d.shape) {
	case CONSTANT: break;
	case UNIFORM: return d.parameter * (2 * mu_random_uniform(key, 0, e) - 1);
	case NORMAL: return d.parameter * normal(key, 0, e);
	case TRUNCATED_NORMAL:
		/* Accepts at least 0.95 of the draws, since no standard deviation exceeds 1. */
		for (uint64_t attempt = 0;; attempt++) {
			double x = d.parameter * normal(key, attempt, e);
			if (fabs(x) <= CUT)
				return x;
		}
	}
	return d.parameter;
}

static void fill(distribution d, mu_random_key key, size_t n, mu_dtype type, void *to)
{
#pragma omp parallel for schedule(static)
	for (size_t e = 0; e < n; e++) {
		if (type == MU_F64)
			((double *)to)[e] = draw(d, key, e);
		else
			((float *)to)[e] = (float)draw(d, key, e);
	}
}

mural_status mu_vit_initialise(const mu_vit *vit, size_t unit, uint32_t seed, mu_dtype type, void *span,
                               mural_error *err)
{
	if (type != MU_F32 && type != MU_F64)
		return mu_bug(err, "weights are initialised in fp32 or double only");
	const mu_unit *u = &vit->units[unit];
	memset(span, 0, u->elements * mu_dtype_bytes(type));
	for (size_t i = 0; i < u->n_tensors; i++) {
		const mu_tensor *tensor = &u->tensors[i];
		distribution d = vit->config.init == MURAL_INIT_TIMM ? timm(&vit->config, tensor->role)
		                                                     : torchvision(&vit->config, tensor->role);
		mu_random_key key = mu_random_key_make(seed, MU_PURPOSE_INIT, tensor->number);
		fill(d, key, tensor->elements, type, (char *)span + tensor->offset * mu_dtype_bytes(type));
	}
	return MURAL_OK;
}
