/* Random crops and flips. SPDX-License-Identifier: MIT */
#include "data/augment.h"

#include "base/philox.h"
#include "data/dataset.h"

mural_status mu_augment_check(const mural_data_config *config, mural_error *err)
{
	if (config->crop_padding > MU_MAX_SIDE)
		return mu_fail(err, MURAL_USAGE, "data.crop_padding", "expected at most %d pixels, found %u",
		               MU_MAX_SIDE, config->crop_padding);
	if (!(config->flip >= 0 && config->flip <= 1))
		return mu_fail(err, MURAL_USAGE, "data.flip", "expected a probability from 0 to 1, found %g",
		               config->flip);
	return MURAL_OK;
}

static int16_t offset(mu_random_key key, uint64_t stream, uint64_t element, unsigned padding)
{
	return (int16_t)((int)mu_random_below(key, stream, element, 2 * padding + 1) - (int)padding);
}

mu_image_cut mu_augment_cut(const mural_data_config *config, uint32_t seed, uint64_t stream)
{
	mu_random_key crop = mu_random_key_make(seed, MU_PURPOSE_CROP, 0);
	mu_random_key flip = mu_random_key_make(seed, MU_PURPOSE_FLIP, 0);
	return (mu_image_cut){
	        .dx = offset(crop, stream, 0, config->crop_padding),
	        .dy = offset(crop, stream, 1, config->crop_padding),
	        .flip = mu_random_uniform(flip, stream, 0) < config->flip,
	};
}
