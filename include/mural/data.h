/* Data sets: where images come from and what happens to them before the model.
 *
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_DATA_H
#define MURAL_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "mural/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MURAL_MAX_CHANNELS 16
#define MURAL_MAX_SIDE 32767 /* pixels of an image */

typedef enum mural_data_format {
	MURAL_DATA_AUTO, /* told from the folder's contents */
	MURAL_DATA_IDX, /* MNIST's format, plain or gzip */
	MURAL_DATA_SYNTHETIC, /* made-up images that a model can learn, the same for a seed everywhere */
	MURAL_DATA_CIFAR10, /* the official binary version or the official "python version" */
	MURAL_DATA_CIFAR100, /* the same with its fine labels */
	MURAL_DATA_FOLDER /* PNG and JPEG files in train/CLASS, and in val/CLASS, validation/CLASS or test/CLASS */
} mural_data_format;

/* What happens to images of another size than the model's: exactly what Pillow and so torchvision do, by one of the filters
 * below. */
typedef enum mural_resize {
	MURAL_RESIZE_NONE, /* padded with zeros or cut, around the centre */
	MURAL_RESIZE_BILINEAR, /* keeps the aspect: the short side fits, the middle is cut out: Resize(), CenterCrop() */
	MURAL_RESIZE_SQUASH /* each side fits by itself: Resize((height, width)) */
} mural_resize;

/* How pixels are weighed when an image is resized: as Pillow does, over as much of the image as an output pixel covers. */
typedef enum mural_filter { MURAL_FILTER_BILINEAR, MURAL_FILTER_BICUBIC } mural_filter;

/* Where that happens. */
typedef enum mural_resize_on {
	MURAL_RESIZE_ON_HOST, /* in the loader's threads, to any size */
	MURAL_RESIZE_ON_DEVICE /* while patches are made, by a whole factor: the same bytes, and fewer of them on the way */
} mural_resize_on;

typedef struct mural_data_config {
	char path[1024]; /* folder or "fashion-mnist" (Debian's package) or "synthetic"; ./synthetic is a folder */
	mural_data_format format;
	uint64_t synthetic_images; /* for synthetic training sets; the test set has a quarter of it */
	double fraction; /* (0, 1]: the first ceil(fraction * n) of a shuffled training set; weak scaling uses it. default 1 */
	/* What chooses the best weights, apart from the test set; at most one of the two. validation_fraction: [0, 1): so many of
	 * the training images, of each class, are not trained on. validation_path: a folder of classes, or another set as `path` has
	 * it, of which the test split is taken. */
	double validation_fraction;
	char validation_path[1024];
	/* false: mean and std of the whole training set, also for test images and whatever the fraction; 0.5 for synthetic;
	 * ImageNet's for class folders */
	bool normalise_given;
	float mean[MURAL_MAX_CHANNELS], std[MURAL_MAX_CHANNELS]; /* of pixels in [0, 1] */
	mural_resize resize; /* default bilinear */
	mural_filter filter; /* default bilinear */
	unsigned
	        resize_side; /* bilinear: short side before the cut, at least the model's sides; 0 (default): just fits */
	mural_resize_on resize_on; /* default host; for the device both sides grow by one whole factor */
	unsigned crop_padding; /* pixels of zero padding for a random crop of the same size; 0 = none */
	double flip; /* probability of a horizontal flip, [0, 1] */
	bool shuffle; /* default true */
	bool drop_last; /* leave out the short last batch of an epoch; default false */
	unsigned loader_threads; /* default 1; 0 loads in the trainer's thread */
	unsigned prefetch; /* micro-batches kept ready; default 4 */
} mural_data_config;

typedef struct mural_data mural_data;

typedef enum mural_split {
	MURAL_SPLIT_TRAIN, /* without what is set aside for validation */
	MURAL_SPLIT_TEST,
	MURAL_SPLIT_VALIDATION /* MURAL_USAGE when the configuration has none */
} mural_split;

typedef struct mural_data_facts {
	char name[64]; /* "fashion-mnist", "idx", "cifar10", "cifar100", "folder", "synthetic" */
	char path[1024];
	uint64_t images;
	size_t channels, height, width;
	bool any_size; /* the files have sizes of their own; they are resized to height and width, which were asked for */
	size_t classes; /* largest label + 1, or what the format says */
} mural_data_facts;

/* Opens one split; `classes` of the model bounds the labels (0: do not check). MURAL_DATA names file, byte, what was
 * expected and found. The caller frees. height, width, channels: what synthetic images and those of class folders shall have;
 * ignored otherwise. */
MURAL_API mural_status mural_data_open(mural_data **data, const mural_data_config *config, mural_split split,
                                       uint32_t seed, size_t channels, size_t height, size_t width, size_t classes,
                                       mural_error *err);
/* The validation images beside a training set that was opened with the same arguments, whose memory they share: either may
 * be freed first, by the same thread. *validation stays NULL when the configuration asks for none. */
MURAL_API mural_status mural_data_open_validation(mural_data **validation, mural_data *train,
                                                  const mural_data_config *config, uint32_t seed, size_t channels,
                                                  size_t height, size_t width, size_t classes, mural_error *err);
MURAL_API void mural_data_free(mural_data *data);
MURAL_API const mural_data_facts *mural_data_get_facts(const mural_data *data);
/* The label of an image in [0, facts.images), without reading its pixels. */
MURAL_API int32_t mural_data_label(const mural_data *data, uint64_t image);
/* "airplane" of class 0 of CIFAR-10; NULL when the set has no names or no such class. Lives as long as the set. */
MURAL_API const char *mural_data_class_name(const mural_data *data, size_t label);
/* The format of a name such as "cifar10"; MURAL_USAGE when there is none. */
MURAL_API mural_status mural_data_format_find(mural_data_format *format, const char *name, mural_error *err);

/* What is in a split, found by reading every image once. */
typedef struct mural_data_survey {
	uint64_t readable, broken; /* images */
	uint64_t *images_per_class; /* [classes] of the readable ones, malloc'ed */
	/* Per channel, of pixels in [0, 1] as they are read: after resizing when the files have sizes of their own. */
	float mean[MURAL_MAX_CHANNELS], std[MURAL_MAX_CHANNELS];
} mural_data_survey;

/* Reads all images. A broken one is handed to on_broken (may be NULL) and does not stop the survey. The
 * caller releases; after a failure there is nothing to release. */
MURAL_API mural_status mural_data_survey_take(mural_data_survey *survey, const mural_data *data,
                                              void (*on_broken)(void *user, uint64_t image, const mural_error *err),
                                              void *user, mural_error *err);
MURAL_API void mural_data_survey_release(mural_data_survey *survey);

/* A JSON file about the splits, [2] by mural_split; NULL where there is no such split or survey. Whole or not at all. */
MURAL_API mural_status mural_data_write_json(const char *path, const mural_data *const splits[2],
                                             const mural_data_survey *const surveys[2], mural_error *err);

/* Fetches "cifar10", "cifar100" or "fashion-mnist" into a folder of its own below `target`, whose path comes back in
 * `folder`. Runs curl (and tar) as child processes, which may show their progress on stderr; goes on after an
 * interruption; checks sums, and that both splits open. Does nothing when they already do. MURAL_FAILED when there is no
 * network, MURAL_DATA when the sum is wrong. */
MURAL_API mural_status mural_data_fetch(const char *name, const char *target, bool progress, char *folder,
                                        size_t folder_bytes, mural_error *err);

#ifdef __cplusplus
}
#endif
#endif
