/* Random crops and flips, drawn on the host as cuts that the device applies while it makes patches.
 *
 * A draw is a function of the seed and the image's stream (epoch and position), never of rank, thread or micro-batch:
 *     dx, dy  uniform integers in [-crop_padding, crop_padding], purpose CROP, elements 0 and 1
 *     flip    a 53-bit uniform in [0, 1) below `flip`, purpose FLIP
 * Cropping comes first, as in torchvision's usual RandomCrop(size, padding), RandomHorizontalFlip().
 * SPDX-License-Identifier: MIT */
#ifndef MU_DATA_AUGMENT_H
#define MU_DATA_AUGMENT_H

#include "kernels/ops.h"
#include "mural/data.h"

/* MURAL_USAGE for a padding that a cut cannot hold or a probability outside [0, 1]. */
mural_status mu_augment_check(const mural_data_config *config, mural_error *err);

mu_image_cut mu_augment_cut(const mural_data_config *config, uint32_t seed, uint64_t stream);

#endif
