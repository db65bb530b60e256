/* What an origin does with images, when no file beside its weights tells.
 *
 * torchvision fixes it per set of weights, which the size mostly tells: the original ones are for 224 pixels (ViT-L/16 cut out
 * of 242, the others of 256), those of SWAG for 384, 512 and 518, resized bicubic to just that. timm and Hugging Face have
 * defaults, Google's JAX code squashes and maps to [-1, 1].
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>

#include "weights/weights.h"

static const float imagenet_mean[3] = {0.485f, 0.456f, 0.406f}, imagenet_std[3] = {0.229f, 0.224f, 0.225f};

static void set_norm(mural_preprocess *p, bool imagenet)
{
	for (size_t c = 0; c < MURAL_MAX_CHANNELS; c++) {
		p->mean[c] = imagenet && c < 3 ? imagenet_mean[c] : 0.5f;
		p->std[c] = imagenet && c < 3 ? imagenet_std[c] : 0.5f;
	}
}

static void torchvision(mural_preprocess *p, const mural_model_config *m)
{
	bool swag = m->image_height != 224;
	p->resize = MURAL_RESIZE_BILINEAR;
	p->filter = swag ? MURAL_FILTER_BICUBIC : MURAL_FILTER_BILINEAR;
	p->resize_side = swag ? 0 : m->width == 1024 && m->patch == 16 ? 242 : 256;
	set_norm(p, m->channels == 3);
}

void mu_preprocess_default(mural_preprocess *p, mu_naming naming, const mural_model_config *m)
{
	const char *whose = "torchvision's for this size";
	*p = (mural_preprocess){.resize = MURAL_RESIZE_SQUASH};
	set_norm(p, false);
	switch (naming) {
	case MU_NAMING_TIMM: {
		size_t side = m->image_height < m->image_width ? m->image_height : m->image_width;
		whose = "timm's usual: no config.json tells";
		p->resize = MURAL_RESIZE_BILINEAR;
		p->filter = MURAL_FILTER_BICUBIC;
		p->resize_side =
		        m->image_height == m->image_width && side < 384 ? (unsigned)floor((double)side / 0.9) : 0;
		break;
	}
	case MU_NAMING_HUGGINGFACE:
	case MU_NAMING_HUGGINGFACE_5: whose = "Hugging Face's usual: no preprocessor_config.json tells"; break;
	case MU_NAMING_JAX:
	case MU_NAMING_BIG_VISION: whose = "usual for Google's JAX code"; break;
	default: torchvision(p, m);
	}
	snprintf(p->source, sizeof p->source, "%s", whose);
}
