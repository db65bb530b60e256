/* Images that choose the best weights, apart from the test set.
 *
 * A share of the training images is stratified: each class gives its part, so that a small share still has all classes
 * in their proportions, which keeps an accuracy comparable from seed to seed. It is a function of the labels and the seed
 * alone: image i draws element i of purpose VALIDATION; the images, sorted by class and within it by draw, are gone
 * through once, and whenever the share of those passed reaches the next whole number one is taken. No class gives its
 * last image.
 * SPDX-License-Identifier: MIT */
#ifndef MU_DATA_VALIDATION_H
#define MU_DATA_VALIDATION_H

#include "data/dataset.h"

/* MURAL_USAGE for a share outside [0, 1), or a share and a set at once. */
mural_status mu_validation_check(const mural_data_config *config, mural_error *err);

/* Which of the format's images are set aside (or, `aside` false, are not): ascending indexes, malloc'ed, and their number. On
 * failure both are as they were. MURAL_USAGE when a share is no image at all. */
mural_status mu_validation_choose(const mural_data *all, double fraction, uint32_t seed, bool aside, uint32_t **chosen,
                                  uint64_t *n, mural_error *err);

#endif
