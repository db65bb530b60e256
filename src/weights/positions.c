/* Resizing grids of positions.
 *
 *     torchvision     bicubic (a = -0.75), corners on corners, borders repeated
 *     Hugging Face    bicubic (a = -0.75), pixel areas on pixel areas, borders repeated
 *     timm            bicubic (a = -0.5) as Pillow's: as wide as an output cell when that is larger, weights beyond the
 *                     border left out and the rest normalised
 *     JAX             linear, corners on corners
 *
 * Each side by itself, rows first.
 * Sources: torchvision interpolate_embeddings, transformers interpolate_pos_encoding, timm resample_abs_pos_embed, and
 * scipy.ndimage.zoom(order=1) in google-research/vision_transformer.
 * SPDX-License-Identifier: MIT */
#include "weights/positions.h"

#include <math.h>
#include <stdlib.h>

typedef struct convention {
	const char *words;
	bool cubic, corners, antialias;
	double a;
} convention;

static const convention torchvision = {"bicubic with aligned corners, as torchvision", true, true, false, -0.75};
static const convention huggingface = {"bicubic, as Hugging Face", true, false, false, -0.75};
static const convention timm = {"bicubic with antialiasing, as timm", true, false, true, -0.5};
static const convention jax = {"bilinear with aligned corners, as Google's JAX code", false, true, false, 0};

static const convention *convention_of(mu_naming naming)
{
	switch (naming) {
	case MU_NAMING_TIMM: return &timm;
	case MU_NAMING_HUGGINGFACE:
	case MU_NAMING_HUGGINGFACE_5: return &huggingface;
	case MU_NAMING_JAX:
	case MU_NAMING_BIG_VISION: return &jax;
	default: return &torchvision;
	}
}

const char *mu_positions_convention(mu_naming naming)
{
	return convention_of(naming)->words;
}

/* Keys 1981: the cubic convolution kernel. */
static double kernel(const convention *c, double x)
{
	x = fabs(x);
	if (!c->cubic)
		return x < 1 ? 1 - x : 0;
	if (x < 1)
		return ((c->a + 2) * x - (c->a + 3)) * x * x + 1;
	return x < 2 ? c->a * (((x - 5) * x + 8) * x - 4) : 0;
}

static long clamped(long i, size_t n)
{
	return i < 0 ? 0 : i >= (long)n ? (long)n - 1 : i;
}

/* weights[old]: how much each old cell gives to wanted cell i. */
static void weigh(const convention *c, size_t old, size_t wanted, size_t i, double *weights)
{
	double scale = (double)old / (double)wanted, reach = c->cubic ? 2 : 1, sum = 0;
	for (size_t k = 0; k < old; k++)
		weights[k] = 0;
	if (c->antialias) {
		double wide = scale > 1 ? scale : 1, middle = ((double)i + 0.5) * scale;
		long begin = (long)(middle - reach * wide + 0.5), end = (long)(middle + reach * wide + 0.5);
		begin = begin < 0 ? 0 : begin;
		end = end > (long)old ? (long)old : end;
		for (long k = begin; k < end; k++)
			sum += weights[k] = kernel(c, ((double)k - middle + 0.5) / wide);
		for (long k = begin; k < end; k++)
			weights[k] /= sum;
		return;
	}
	double at = c->corners ? wanted > 1 ? (double)i * (double)(old - 1) / (double)(wanted - 1) : 0
	                       : ((double)i + 0.5) * scale - 0.5;
	long first = (long)floor(at) - (c->cubic ? 1 : 0), last = (long)floor(at) + (c->cubic ? 2 : 1);
	for (long k = first; k <= last; k++)
		weights[clamped(k, old)] += kernel(c, at - (double)k);
}

/* Along one axis: from[outer, old, inner] to[outer, wanted, inner]. */
static bool resize_axis(const convention *c, const double *from, size_t outer, size_t old, size_t wanted, size_t inner,
                        double *to)
{
	double *weights = calloc(old, sizeof *weights);
	for (size_t i = 0; weights && i < wanted; i++) {
		weigh(c, old, wanted, i, weights);
		for (size_t o = 0; o < outer; o++)
			for (size_t e = 0; e < inner; e++) {
				double sum = 0;
				for (size_t k = 0; k < old; k++)
					sum += weights[k] * from[(o * old + k) * inner + e];
				to[(o * wanted + i) * inner + e] = sum;
			}
	}
	free(weights);
	return weights != NULL;
}

bool mu_positions_resize(mu_naming naming, const float *from, mu_grid old, float *to, mu_grid wanted, size_t width)
{
	const convention *c = convention_of(naming);
	const size_t n = old.height * old.width * width, n_wanted = wanted.height * wanted.width * width;
	double *wide = calloc(n, sizeof *wide), *middle = calloc(wanted.height * old.width * width, sizeof *middle);
	double *done = calloc(n_wanted, sizeof *done);
	bool ok = wide && middle && done;
	for (size_t i = 0; ok && i < n; i++)
		wide[i] = from[i];
	ok = ok && resize_axis(c, wide, 1, old.height, wanted.height, old.width * width, middle) &&
	     resize_axis(c, middle, wanted.height, old.width, wanted.width, width, done);
	for (size_t i = 0; ok && i < n_wanted; i++)
		to[i] = (float)done[i];
	free(wide);
	free(middle);
	free(done);
	return ok;
}
