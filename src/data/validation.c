/* Setting images aside for validation, or opening a set of their own. SPDX-License-Identifier: MIT */
#include "data/validation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/philox.h"

typedef struct candidate {
	int32_t label;
	uint32_t draw, index;
} candidate;

mural_status mu_validation_check(const mural_data_config *config, mural_error *err)
{
	double fraction = config->validation_fraction;
	if (!(fraction >= 0 && fraction < 1))
		return mu_fail(err, MURAL_USAGE, "data.validation_fraction",
		               "expected at least 0 and less than 1, found %g", fraction);
	if (fraction > 0 && config->validation_path[0])
		return mu_fail(err, MURAL_USAGE, "data.validation_fraction",
		               "expected a share of the training images or a validation set, found both");
	return MURAL_OK;
}

/* By class, then in the order of the draws. */
static int compare(const void *a, const void *b)
{
	const candidate *x = a, *y = b;
	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	if (x->draw != y->draw)
		return x->draw < y->draw ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static candidate *sort_candidates(const mural_data *all, uint64_t n, uint32_t seed)
{
	mu_random_key key = mu_random_key_make(seed, MU_PURPOSE_VALIDATION, 0);
	candidate *list = calloc(n, sizeof *list);
	for (uint64_t i = 0; list && i < n; i++)
		list[i] = (candidate){all->format->label(all, i), mu_random_u32(key, 0, i), (uint32_t)i};
	if (list)
		qsort(list, n, sizeof *list, compare);
	return list;
}

/* Marks what is taken; returns how many. */
static uint64_t take(const candidate *list, uint64_t n, double fraction, bool *taken)
{
	uint64_t count = 0;
	for (uint64_t from = 0, to; from < n; from = to) {
		uint64_t of_class = 0;
		for (to = from; to < n && list[to].label == list[from].label; to++)
			;
		for (uint64_t i = from; i < to; i++) {
			bool due = floor((double)(i + 1) * fraction + 0.5) > (double)count;
			if (!due || of_class + 1 == to - from)
				continue;
			taken[list[i].index] = true;
			of_class++;
			count++;
		}
	}
	return count;
}

static uint32_t *collect(const bool *taken, uint64_t n, bool aside, uint64_t count)
{
	uint32_t *chosen = malloc(count * sizeof *chosen);
	for (uint64_t i = 0, at = 0; chosen && i < n; i++)
		if (taken[i] == aside)
			chosen[at++] = (uint32_t)i;
	return chosen;
}

mural_status mu_validation_choose(const mural_data *all, double fraction, uint32_t seed, bool aside, uint32_t **chosen,
                                  uint64_t *n, mural_error *err)
{
	uint64_t images = *n, count = 0;
	candidate *list = sort_candidates(all, images, seed);
	bool *taken = calloc(images, sizeof *taken);
	uint32_t *indexes = NULL;
	if (list && taken) {
		count = take(list, images, fraction, taken);
		indexes = count ? collect(taken, images, aside, aside ? count : images - count) : NULL;
	}
	bool memory = list && taken && (indexes || !count);
	free(list);
	free(taken);
	if (!memory)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to choose among %llu images",
		               (unsigned long long)images);
	if (!count)
		return mu_fail(err, MURAL_USAGE, "data.validation_fraction",
		               "a share of %g of %llu training images is none, when each class keeps one; use a larger "
		               "share",
		               fraction, (unsigned long long)images);
	*chosen = indexes;
	*n = aside ? count : images - count;
	return MURAL_OK;
}

/* The images that a training set left out. */
static mural_status open_share(mural_data **validation, mural_data *train, const mural_data_config *config,
                               uint32_t seed, mural_error *err)
{
	mural_data *share = calloc(1, sizeof *share);
	if (!share)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the validation images");
	*share = *train;
	share->class_names = (mu_class_names){0}; /* the source has them */
	share->selection = NULL;
	share->users = 1;
	share->facts.images = train->all_images;
	mural_status status = mu_validation_choose(train, config->validation_fraction, seed, true, &share->selection,
	                                           &share->facts.images, err);
	if (status != MURAL_OK) {
		free(share);
		return status;
	}
	share->source = train;
	train->users++;
	*validation = share;
	return MURAL_OK;
}

/* Does the set share its folder with the training set? Made-up images of the three splits have nothing in common. */
static bool is_own_set(const mural_data *validation, const mural_data *train)
{
	return validation->format != &mu_format_synthetic && mu_same_place(validation->facts.path, train->facts.path);
}

mural_status mural_data_open_validation(mural_data **validation, mural_data *train, const mural_data_config *config,
                                        uint32_t seed, size_t channels, size_t height, size_t width, size_t classes,
                                        mural_error *err)
{
	*validation = NULL;
	MU_TRY(mu_validation_check(config, err));
	if (config->validation_fraction > 0)
		return open_share(validation, train, config, seed, err);
	if (!config->validation_path[0])
		return MURAL_OK;
	mural_data_config own = *config;
	own.normalise_given = true; /* as the model was trained */
	memcpy(own.mean, train->mean, sizeof own.mean);
	memcpy(own.std, train->std, sizeof own.std);
	mu_data_request request = {
	        .config = &own,
	        .split = MURAL_SPLIT_VALIDATION,
	        .seed = seed,
	        .channels = channels,
	        .height = height,
	        .width = width,
	        .classes = classes,
	        .train = train,
	};
	own.validation_path[0] = '\0'; /* it is no other split's here */
	mural_data_format format = train->format == &mu_format_folder ? MURAL_DATA_FOLDER : MURAL_DATA_AUTO;
	mural_data *opened;
	mural_status status = mu_data_open_set(&opened, config->validation_path, format, &request, err);
	if (status != MURAL_OK) {
		mu_context(err, "while opening the validation set");
		return status;
	}
	if (is_own_set(opened, train)) {
		mural_data_free(opened);
		return mu_fail(err, MURAL_USAGE, "data.validation_path",
		               "'%s' is the run's own data set, whose test images must not choose the weights; give a "
		               "share of the training images, as --val 0.1, or another set",
		               config->validation_path);
	}
	*validation = opened;
	return MURAL_OK;
}
