/* Presets by name, defaults and what a configuration must satisfy.
 *
 * A name is vit_<family>_<patch>: the family fixes depth, width, heads and MLP width, the patch is free. Families after
 * google-research/big_vision, which torchvision's and timm's names agree with; case tells g from G.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/nearest.h"
#include "mural/model.h"

/* X(family, width, depth, MLP width, heads). */
#define FAMILIES(X)                   \
	X(ti, 192, 12, 768, 3)        \
	X(s, 384, 12, 1536, 6)        \
	X(m, 512, 12, 2048, 8)        \
	X(b, 768, 12, 3072, 12)       \
	X(l, 1024, 24, 4096, 16)      \
	X(so400m, 1152, 27, 4304, 16) \
	X(h, 1280, 32, 5120, 16)      \
	X(g, 1408, 40, 6144, 16)      \
	X(gopt, 1536, 40, 6144, 16)   \
	X(G, 1664, 48, 8192, 16)      \
	X(Gopt, 1536, 48, 8192, 16)   \
	X(e, 1792, 56, 15360, 16)     \
	X(mu, 32, 1, 128, 2)

typedef struct family {
	const char *name;
	size_t width, depth, mlp_width, heads;
} family;

static const family families[] = {
#define X(name, width, depth, mlp_width, heads) {#name, width, depth, mlp_width, heads},
        FAMILIES(X)
#undef X
};

static const char family_names[] =
#define X(name, width, depth, mlp_width, heads) " " #name
        FAMILIES(X);
#undef X

#define N_FAMILIES (sizeof families / sizeof families[0])
#define PREFIX "vit_"
#define MU_PRESET "mu"
#define MU_PRESET_PATCH 16

/* Limits far above any model built so far; they keep every product of sizes inside 64 bits. */
#define MOST_PIXELS 32767 /* a cut's dx is 16 bits */
#define MOST_TOKENS ((size_t)1 << 20)
#define MOST_DEPTH 4096
#define MOST_WIDTH ((size_t)1 << 16)
#define MOST_MLP_WIDTH ((size_t)1 << 20)
#define MOST_CLASSES ((size_t)1 << 24)
#define MOST_CHANNELS 16

void mural_model_defaults(mural_model_config *config)
{
	*config = (mural_model_config){.image_height = 224,
	                               .image_width = 224,
	                               .channels = 3,
	                               .classes = 1000,
	                               .pool = MURAL_POOL_TOKEN,
	                               .class_token = true,
	                               .norm_eps = 1e-6,
	                               .gelu = MURAL_GELU_ERF,
	                               .init = MURAL_INIT_TORCHVISION};
	mural_model_preset(config, "vit_b_16", NULL);
}

static const family *find_family(const char *name, size_t length)
{
	for (size_t i = 0; i < N_FAMILIES; i++)
		if (strlen(families[i].name) == length && memcmp(families[i].name, name, length) == 0)
			return &families[i];
	return NULL;
}

/* A patch side in plain digits, or 0. */
static size_t parse_patch(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	if (digits == 0 || digits > 5 || text[digits] || text[0] == '0')
		return 0;
	return (size_t)strtoul(text, NULL, 10);
}

static const family *parse(const char *name, size_t *patch)
{
	*patch = MU_PRESET_PATCH;
	if (strcmp(name, MU_PRESET) == 0)
		return find_family(name, strlen(name));
	const char *separator = strrchr(name, '_');
	size_t prefix = strlen(PREFIX);
	if (strncmp(name, PREFIX, prefix) != 0 || !separator || separator < name + prefix)
		return NULL;
	*patch = parse_patch(separator + 1);
	return *patch ? find_family(name + prefix, (size_t)(separator - name) - prefix) : NULL;
}

static mural_status unknown(const char *name, mural_error *err)
{
	const char *separator = strrchr(name, '_');
	size_t patch = separator ? parse_patch(separator + 1) : 0;
	char texts[N_FAMILIES + 1][32] = {MU_PRESET};
	const char *candidates[N_FAMILIES + 1] = {texts[0]};
	for (size_t i = 0; i < N_FAMILIES; i++) {
		snprintf(texts[i + 1], sizeof texts[0], PREFIX "%s_%zu", families[i].name, patch ? patch : 16);
		candidates[i + 1] = texts[i + 1];
	}
	const char *nearest = mu_nearest(name, candidates, N_FAMILIES + 1);
	return mu_fail(
	        err, MURAL_USAGE, NULL,
	        "unknown model preset '%.40s'%s%s%s: presets are vit_<family>_<patch>, as in vit_b_16, with family%s",
	        name, nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "", family_names);
}

mural_status mural_model_preset(mural_model_config *config, const char *name, mural_error *err)
{
	size_t patch;
	const family *found = parse(name, &patch);
	if (!found)
		return unknown(name, err);
	snprintf(config->preset, sizeof config->preset, "%s", name);
	config->patch = patch;
	config->depth = found->depth;
	config->width = found->width;
	config->heads = found->heads;
	config->mlp_width = found->mlp_width;
	return MURAL_OK;
}

bool mural_model_recognise(mural_model_config *config)
{
	for (size_t i = 0; i < N_FAMILIES; i++) {
		const family *f = &families[i];
		if (f->width != config->width || f->depth != config->depth || f->mlp_width != config->mlp_width)
			continue;
		snprintf(config->preset, sizeof config->preset, PREFIX "%s_%zu", f->name, config->patch);
		config->heads = f->heads;
		return true;
	}
	snprintf(config->preset, sizeof config->preset, "custom");
	return false;
}

const char *const *mural_model_presets(void)
{
	static const char *const lines[] = {
#define X(name, width, depth, mlp_width, heads) \
	"vit_" #name "_<patch>: width " #width ", " #depth " blocks, " #heads " heads, MLP width " #mlp_width,
	        FAMILIES(X)
#undef X
	                NULL};
	return lines;
}

/* key: as in a configuration. */
static mural_status check_between(const char *key, const char *name, size_t value, size_t most, mural_error *err)
{
	if (value < 1 || value > most)
		return mu_fail(err, MURAL_USAGE, key, "%s must be between 1 and %zu, not %zu", name, most, value);
	return MURAL_OK;
}

static mural_status check_probability(const char *key, const char *name, double p, mural_error *err)
{
	if (!(p >= 0 && p < 1))
		return mu_fail(err, MURAL_USAGE, key, "%s must be at least 0 and below 1, not %g", name, p);
	return MURAL_OK;
}

static mural_status check_ranges(const mural_model_config *c, mural_error *err)
{
	MU_TRY(check_between("image_size", "image height", c->image_height, MOST_PIXELS, err));
	MU_TRY(check_between("image_size", "image width", c->image_width, MOST_PIXELS, err));
	MU_TRY(check_between("channels", "channels", c->channels, MOST_CHANNELS, err));
	MU_TRY(check_between("patch", "patch", c->patch, MOST_PIXELS, err));
	MU_TRY(check_between("depth", "depth", c->depth, MOST_DEPTH, err));
	MU_TRY(check_between("width", "width", c->width, MOST_WIDTH, err));
	MU_TRY(check_between("heads", "heads", c->heads, MOST_WIDTH, err));
	MU_TRY(check_between("mlp_width", "MLP width", c->mlp_width, MOST_MLP_WIDTH, err));
	MU_TRY(check_between("classes", "classes", c->classes, MOST_CLASSES, err));
	MU_TRY(check_probability("dropout", "dropout", c->dropout, err));
	MU_TRY(check_probability("attention_dropout", "attention dropout", c->attention_dropout, err));
	MU_TRY(check_probability("drop_path", "drop path", c->drop_path, err));
	if (!(c->norm_eps > 0) || !isfinite(c->norm_eps))
		return mu_fail(err, MURAL_USAGE, "norm_eps", "norm eps must be a number above 0, not %g", c->norm_eps);
	return MURAL_OK;
}

/* The multiple of `unit` that is nearest to n, at least one of them. */
static size_t nearest_multiple(size_t n, size_t unit)
{
	size_t times = (n + unit / 2) / unit;
	return (times ? times : 1) * unit;
}

/* The divisor of n that is nearest to d, the smaller one of two. */
static size_t nearest_divisor(size_t n, size_t d)
{
	for (size_t away = 0; away < d; away++) {
		if (n % (d - away) == 0)
			return d - away;
		if (n % (d + away) == 0)
			return d + away;
	}
	return 1;
}

static mural_status check_patches(const mural_model_config *c, mural_error *err)
{
	size_t patches = c->image_height / c->patch * (c->image_width / c->patch);
	if (c->image_height % c->patch || c->image_width % c->patch)
		return mu_fail(
		        err, MURAL_USAGE, "patch, image_size",
		        "patch %zu does not divide the image of %zu x %zu pixels: its sides must be multiples of "
		        "the patch, such as %zu x %zu",
		        c->patch, c->image_height, c->image_width, nearest_multiple(c->image_height, c->patch),
		        nearest_multiple(c->image_width, c->patch));
	if (patches >= MOST_TOKENS)
		return mu_fail(err, MURAL_USAGE, "patch, image_size",
		               "an image of %zu x %zu pixels has %zu patches of %zu, at most %zu can be",
		               c->image_height, c->image_width, patches, c->patch, MOST_TOKENS - 1);
	return MURAL_OK;
}

mural_status mural_model_config_check(const mural_model_config *c, mural_error *err)
{
	MU_TRY(check_ranges(c, err));
	MU_TRY(check_patches(c, err));
	if (c->width % c->heads)
		return mu_fail(err, MURAL_USAGE, "heads, width",
		               "%zu heads do not divide the width %zu: use %zu, or a width that is a multiple of %zu",
		               c->heads, c->width, nearest_divisor(c->width, c->heads), c->heads);
	if (c->pool == MURAL_POOL_TOKEN && !c->class_token)
		return mu_fail(err, MURAL_USAGE, "pool, class_token",
		               "pooling by class token needs a class token: enable it or pool by mean");
	return MURAL_OK;
}

size_t mural_model_parameters(const mural_model_config *c)
{
	size_t tokens = c->image_height / c->patch * (c->image_width / c->patch) + (c->class_token ? 1 : 0);
	size_t embed = c->width * (c->channels * c->patch * c->patch + 1 + (c->class_token ? 1 : 0) + tokens);
	size_t norms = 4 * c->width, attention = 4 * c->width * (c->width + 1);
	size_t mlp = 2 * c->width * c->mlp_width + c->mlp_width + c->width;
	size_t head = 2 * c->width + c->classes * (c->width + 1);
	return embed + c->depth * (norms + attention + mlp) + head;
}
