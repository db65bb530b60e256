/* Opening a data set: from the name or folder in the configuration to a format, a split and a normalisation.
 *
 * A fraction of a training set is the head of one fixed shuffle of it, so that a smaller fraction is contained in a
 * larger one. What is set aside for validation is taken away before. Neither changes the normalisation.
 * SPDX-License-Identifier: MIT */
#include "data/dataset.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/sampler.h"
#include "data/validation.h"

/* Where Debian's package dataset-fashion-mnist puts its files; other distributions may say otherwise. */
#ifndef MU_FASHION_MNIST_FOLDER
#define MU_FASHION_MNIST_FOLDER "/usr/share/datasets/fashion-mnist"
#endif

#define FASHION_MNIST "fashion-mnist"
#define SELECTION_EPOCH UINT32_MAX /* its shuffle chooses the fraction; trainings end before */

static const mu_format *const formats[] = {
        [MURAL_DATA_IDX] = &mu_format_idx,         [MURAL_DATA_SYNTHETIC] = &mu_format_synthetic,
        [MURAL_DATA_CIFAR10] = &mu_format_cifar10, [MURAL_DATA_CIFAR100] = &mu_format_cifar100,
        [MURAL_DATA_FOLDER] = &mu_format_folder,
};
#define FORMATS (sizeof formats / sizeof *formats)

const char mu_needs_training_images[] = "test images are normalised as the training images are: their mean and std are "
                                        "needed; give data.mean and data.std to do without";

static const char *const fashion_mnist_classes[] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                    "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
#define FASHION_MNIST_CLASSES (sizeof fashion_mnist_classes / sizeof *fashion_mnist_classes)

static mural_status check_config(const mural_data_config *config, size_t channels, mural_error *err)
{
	if (!(config->fraction > 0 && config->fraction <= 1))
		return mu_fail(err, MURAL_USAGE, "data.fraction", "expected more than 0 and at most 1, found %g",
		               config->fraction);
	MU_TRY(mu_validation_check(config, err));
	if ((size_t)config->format >= FORMATS)
		return mu_fail(err, MURAL_USAGE, "data.format", "there is no format number %d", (int)config->format);
	if (channels > MURAL_MAX_CHANNELS)
		return mu_fail(err, MURAL_USAGE, "model channels", "expected at most %d, found %zu", MURAL_MAX_CHANNELS,
		               channels);
	size_t given = !config->normalise_given ? 0 : channels ? channels : 1;
	for (size_t c = 0; c < given; c++)
		if (!isfinite(config->mean[c]) || !isfinite(config->std[c]) || !(config->std[c] > 0))
			return mu_fail(
			        err, MURAL_USAGE, "data.mean and data.std",
			        "channel %zu: expected a finite mean and a std above 0, found mean %g and std %g", c,
			        config->mean[c], config->std[c]);
	return MURAL_OK;
}

static mural_status check_folder(const char *folder, bool fashion, mural_error *err)
{
	struct stat facts;
	if (!*folder)
		return mu_fail(
		        err, MURAL_USAGE, NULL,
		        "no data set is given: expected --data (mural.data.path) with a folder, \"fashion-mnist\" "
		        "or \"synthetic\"");
	if (stat(folder, &facts) != 0) {
		if (fashion)
			return mu_fail(err, MURAL_DATA, folder,
			               "the data set 'fashion-mnist' is not on this machine: %s; install the package "
			               "dataset-fashion-mnist, or run mural data fetch fashion-mnist and give the "
			               "folder that it names",
			               strerror(errno));
		return mu_fail(err, MURAL_DATA, folder,
		               "cannot open the data folder: %s; expected a folder, \"fashion-mnist\" or \"synthetic\"",
		               strerror(errno));
	}
	if (!S_ISDIR(facts.st_mode))
		return mu_fail(err, MURAL_DATA, folder,
		               "expected a folder with data files, found something else; give the folder it lies in");
	return MURAL_OK;
}

/* The one format that the folder's files have. */
static mural_status find_format(const mu_format **format, const char *folder, mural_error *err)
{
	*format = NULL;
	for (size_t f = MURAL_DATA_AUTO + 1; f < FORMATS; f++) {
		if (!formats[f]->found_in || !formats[f]->found_in(folder))
			continue;
		if (*format)
			return mu_fail(
			        err, MURAL_DATA, folder,
			        "this folder holds more than one data set: %s and %s; say which with data.format, or "
			        "give a folder with one",
			        (*format)->name, formats[f]->name);
		*format = formats[f];
	}
	if (*format)
		return MURAL_OK;
	return mu_fail(err, MURAL_DATA, folder,
	               "no known data set in this folder; expected IDX files such as train-images-idx3-ubyte.gz, "
	               "CIFAR files such as data_batch_1.bin, data_batch_1 or cifar-10-batches-py, or folders such as "
	               "train/CLASS with images");
}

static mural_status name_fashion_mnist(mural_data *data, mural_error *err)
{
	if (data->facts.classes != FASHION_MNIST_CLASSES)
		return MURAL_OK;
	for (size_t i = 0; i < FASHION_MNIST_CLASSES; i++)
		MU_TRY(mu_class_names_add(&data->class_names, fashion_mnist_classes[i],
		                          strlen(fashion_mnist_classes[i]), err));
	return MURAL_OK;
}

/* Where the set lies ("" for made-up images) and what reads it. */
static mural_status locate(const mu_format **format, const char **folder, const char *path, mural_data_format asked,
                           mural_error *err)
{
	bool fashion = strcmp(path, FASHION_MNIST) == 0;
	*format = formats[asked];
	*folder = "";
	if (asked == MURAL_DATA_SYNTHETIC || strcmp(path, "synthetic") == 0) {
		*format = &mu_format_synthetic;
		return MURAL_OK;
	}
	*folder = fashion ? MU_FASHION_MNIST_FOLDER : path;
	MU_TRY(check_folder(*folder, fashion, err));
	return asked == MURAL_DATA_AUTO ? find_format(format, *folder, err) : MURAL_OK;
}

mural_status mu_data_open_set(mural_data **data, const char *path, mural_data_format asked, mu_data_request *request,
                              mural_error *err)
{
	const mu_format *format;
	mural_data *opened = NULL;
	*data = NULL;
	MU_TRY(locate(&format, &request->folder, path, asked, err));
	MU_TRY(format->open(&opened, request, err));
	bool fashion = format != &mu_format_synthetic && strcmp(path, FASHION_MNIST) == 0;
	opened->format = format;
	opened->users = 1;
	opened->all_images = opened->facts.images;
	snprintf(opened->facts.name, sizeof opened->facts.name, "%s", fashion ? FASHION_MNIST : format->name);
	snprintf(opened->facts.path, sizeof opened->facts.path, "%s", request->folder);
	if (request->config->normalise_given) {
		memcpy(opened->mean, request->config->mean, sizeof opened->mean);
		memcpy(opened->std, request->config->std, sizeof opened->std);
	}
	mural_status status = fashion ? name_fashion_mnist(opened, err) : MURAL_OK;
	if (status == MURAL_OK)
		*data = opened;
	else
		mural_data_free(opened);
	return status;
}

/* Keeps the first ceil(fraction * images) of a shuffle. */
static mural_status select_fraction(mural_data *data, double fraction, uint32_t seed, mural_error *err)
{
	uint64_t all = data->facts.images, kept = (uint64_t)ceil(fraction * (double)all);
	if (kept >= all)
		return MURAL_OK;
	uint32_t *order = malloc(all * sizeof *order);
	if (!order)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to choose %llu of %llu images",
		               (unsigned long long)kept, (unsigned long long)all);
	mu_sampler_order(all, seed, SELECTION_EPOCH, true, order);
	for (uint64_t i = 0; data->selection && i < kept; i++)
		order[i] = data->selection[order[i]];
	free(data->selection);
	uint32_t *cut = realloc(order, kept * sizeof *order);
	data->selection = cut ? cut : order;
	data->facts.images = kept;
	return MURAL_OK;
}

static mural_status open_training(mural_data **data, const mural_data_config *config, mu_data_request *request,
                                  mural_error *err)
{
	mural_data *opened;
	MU_TRY(mu_data_open_set(&opened, config->path, config->format, request, err));
	mural_status status = MURAL_OK;
	if (config->validation_fraction > 0)
		status = mu_validation_choose(opened, config->validation_fraction, request->seed, false,
		                              &opened->selection, &opened->facts.images, err);
	if (status == MURAL_OK)
		status = select_fraction(opened, config->fraction, request->seed, err);
	if (status == MURAL_OK)
		*data = opened;
	else
		mural_data_free(opened);
	return status;
}

mural_status mural_data_open(mural_data **data, const mural_data_config *config, mural_split split, uint32_t seed,
                             size_t channels, size_t height, size_t width, size_t classes, mural_error *err)
{
	*data = NULL;
	MU_TRY(check_config(config, channels, err));
	mu_data_request request = {
	        .config = config,
	        .split = split == MURAL_SPLIT_VALIDATION ? MURAL_SPLIT_TRAIN : split,
	        .seed = seed,
	        .channels = channels,
	        .height = height,
	        .width = width,
	        .classes = classes,
	};
	if (split == MURAL_SPLIT_TEST)
		return mu_data_open_set(data, config->path, config->format, &request, err);
	if (split == MURAL_SPLIT_TRAIN)
		return open_training(data, config, &request, err);
	mural_data *train;
	MU_TRY(open_training(&train, config, &request, err));
	mural_status status =
	        mural_data_open_validation(data, train, config, seed, channels, height, width, classes, err);
	mural_data_free(train);
	if (status == MURAL_OK && !*data)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "there are no validation images: give a share of the training images or a set of their "
		               "own with --val");
	return status;
}

void mural_data_free(mural_data *data)
{
	if (!data || --data->users > 0)
		return;
	free(data->selection);
	if (data->source) {
		mural_data_free(data->source);
		free(data);
		return;
	}
	mu_class_names_release(&data->class_names);
	data->format->free(data);
}

const mural_data_facts *mural_data_get_facts(const mural_data *data)
{
	return &data->facts;
}

mural_status mural_data_format_find(mural_data_format *format, const char *name, mural_error *err)
{
	char known[256] = "";
	for (size_t f = 0; f < FORMATS; f++) {
		const char *is = formats[f] ? formats[f]->name : "auto";
		if (strcmp(is, name) == 0) {
			*format = (mural_data_format)f;
			return MURAL_OK;
		}
		snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", f ? ", " : "", is);
	}
	return mu_fail(err, MURAL_USAGE, NULL, "there is no data format '%s'; there are %s", name, known);
}

/* The set that holds an image, and its index there. */
static const mural_data *holder_of(const mural_data *data, uint64_t *index)
{
	*index = data->selection ? data->selection[*index] : *index;
	return data->source ? data->source : data;
}

int32_t mural_data_label(const mural_data *data, uint64_t image)
{
	const mural_data *holder = holder_of(data, &image);
	return holder->format->label(holder, image);
}

const char *mural_data_class_name(const mural_data *data, size_t label)
{
	const mu_class_names *names = &(data->source ? data->source : data)->class_names;
	return label < names->n ? names->names[label] : NULL;
}

mural_status mu_data_read(const mural_data *data, uint64_t index, uint8_t *pixels, int32_t *label, mural_error *err)
{
	const mural_data *holder = holder_of(data, &index);
	return holder->format->read(holder, index, pixels, label, err);
}
