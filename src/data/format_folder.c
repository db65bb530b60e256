/* Plain class folders: train/CLASS/... and val/CLASS/... (or validation, or test) with PNG and JPEG files. A validation set of
 * its own may also be a folder with CLASS/... in it.
 *
 * Classes are the names of the training split's folders, sorted by bytes as in torchvision; so a class that is missing in
 * the test split keeps its number, and one that is only there is an error. Files are listed at opening and read when
 * their turn comes, resized to the shape that was asked for by data.resize, so that a batch sees one shape. Reading
 * allocates what the image needs and frees it again: the only format that does.
 *
 * Mean and std are ImageNet's unless they are given: measuring would mean decoding every image.
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "data/dataset.h"
#include "data/decode.h"
#include "data/image_list.h"
#include "data/reshape.h"

#define CHANNELS MU_PICTURE_CHANNELS

static const float imagenet_mean[CHANNELS] = {0.485f, 0.456f, 0.406f},
                   imagenet_std[CHANNELS] = {0.229f, 0.224f, 0.225f};

typedef struct folder_data {
	mural_data base;
	mu_image_list list;
	mu_resize_wish wish;
} folder_data;

static bool is_folder(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* The split's folder; false leaves the first name in path. apart: a folder that it must not be, or "". */
static bool find_split(char path[PATH_MAX], const char *folder, mural_split split, const char *apart)
{
	static const char *const test_names[] = {"val", "validation", "test"};
	if (split == MURAL_SPLIT_TRAIN) {
		snprintf(path, PATH_MAX, "%s/train", folder);
		return is_folder(path);
	}
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, PATH_MAX, "%s/%s", folder, test_names[i]);
		if (is_folder(path) && !mu_same_place(path, apart))
			return true;
	}
	snprintf(path, PATH_MAX, "%s/%s", folder, test_names[0]);
	return false;
}

/* The folder whose sub-folders are the split's classes. */
static bool find_classes(char path[PATH_MAX], const mu_data_request *request)
{
	if (find_split(path, request->folder, request->split, request->config->validation_path))
		return true;
	if (request->split != MURAL_SPLIT_VALIDATION)
		return false;
	snprintf(path, PATH_MAX, "%s", request->folder);
	return true;
}

static bool folder_found_in(const char *folder)
{
	char path[PATH_MAX];
	return find_split(path, folder, MURAL_SPLIT_TRAIN, "") || find_split(path, folder, MURAL_SPLIT_TEST, "");
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A split's classes must be among those to train on. */
static mural_status check_classes(const mu_class_names *classes, const char *folder, mural_error *err)
{
	mu_class_names own = {0};
	mural_status status = mu_list_classes(&own, folder, err);
	for (size_t i = 0; status == MURAL_OK && i < own.n; i++)
		if (classes->n == 0 ||
		    !bsearch(&own.names[i], classes->names, classes->n, sizeof *classes->names, compare_names))
			status =
			        mu_fail(err, MURAL_DATA, folder,
			                "the class '%s' is not among the %zu classes to train on; rename or remove its "
			                "folder",
			                own.names[i], classes->n);
	mu_class_names_release(&own);
	return status;
}

/* The classes to train on: the training split's, or the split's own when there is none. */
static mural_status name_classes(mu_class_names *classes, const mu_data_request *request, const char *folder,
                                 mural_error *err)
{
	char train[PATH_MAX];
	if (request->train) {
		const mu_class_names *theirs = &request->train->class_names;
		for (size_t c = 0; c < theirs->n; c++)
			MU_TRY(mu_class_names_add(classes, theirs->names[c], strlen(theirs->names[c]), err));
		return check_classes(classes, folder, err);
	}
	if (!find_split(train, request->folder, MURAL_SPLIT_TRAIN, ""))
		return mu_list_classes(classes, folder, err);
	MU_TRY(mu_list_classes(classes, train, err));
	return request->split == MURAL_SPLIT_TEST ? check_classes(classes, folder, err) : MURAL_OK;
}

static mural_status list(folder_data *data, const mu_data_request *request, mural_error *err)
{
	char wanted[PATH_MAX];
	mu_class_names *classes = &data->base.class_names;
	if (!find_classes(wanted, request))
		return mu_fail(err, MURAL_DATA, wanted,
		               request->split == MURAL_SPLIT_TRAIN
		                       ? "the folder with the training images is missing"
		                       : "the folder with the test images is missing; expected this name, 'validation' "
		                         "or 'test', and not the folder of the validation images");
	MU_TRY(name_classes(classes, request, wanted, err));
	if (request->classes && classes->n > request->classes)
		return mu_fail(err, MURAL_DATA, wanted,
		               "%zu classes are too many for the model's %zu: set --classes to at least %zu",
		               classes->n, request->classes, classes->n);
	return mu_list_images(&data->list, wanted, classes, err);
}

static mural_status fill(folder_data *data, const mu_data_request *r, mural_error *err)
{
	MU_TRY(mu_resize_check(r->config, r->height, r->width, err));
	if (r->channels != CHANNELS || !r->height || !r->width || r->height > MU_MAX_SIDE || r->width > MU_MAX_SIDE)
		return mu_fail(
		        err, MURAL_USAGE, NULL,
		        "class folders give images of %d channels and sides of 1 to %d pixels, the model takes %zu "
		        "x %zu x %zu: set --channels to %d",
		        CHANNELS, MU_MAX_SIDE, r->channels, r->height, r->width, CHANNELS);
	MU_TRY(list(data, r, err));
	data->wish = (mu_resize_wish){r->config->resize, r->config->filter, r->config->resize_side};
	data->base.facts = (mural_data_facts){.images = data->list.n,
	                                      .channels = CHANNELS,
	                                      .height = r->height,
	                                      .width = r->width,
	                                      .any_size = true,
	                                      .classes = data->base.class_names.n};
	for (size_t c = 0; c < MURAL_MAX_CHANNELS; c++) {
		data->base.mean[c] = imagenet_mean[c % CHANNELS];
		data->base.std[c] = imagenet_std[c % CHANNELS];
	}
	return MURAL_OK;
}

static void folder_free(mural_data *data)
{
	folder_data *folder = (folder_data *)data;
	mu_image_list_release(&folder->list);
	free(folder);
}

static mural_status folder_open(mural_data **data, const mu_data_request *request, mural_error *err)
{
	folder_data *folder = calloc(1, sizeof *folder);
	if (!folder)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, request->folder, "no memory to open the data set");
	mural_status status = fill(folder, request, err);
	if (status == MURAL_OK) {
		*data = &folder->base;
		return MURAL_OK;
	}
	mu_class_names_release(&folder->base.class_names);
	folder_free(&folder->base);
	return status;
}

static mural_status folder_read(const mural_data *data, uint64_t index, uint8_t *pixels, int32_t *label,
                                mural_error *err)
{
	const folder_data *folder = (const folder_data *)data;
	const mu_image_file *file = &folder->list.files[index];
	mu_picture picture;
	MU_TRY(mu_decode_file(&picture, file->path, err));
	const mural_data_facts *facts = &folder->base.facts;
	mu_image_shape to = {MU_PICTURE_CHANNELS, facts->height, facts->width};
	mural_status status = mu_picture_reshape(&picture, to, folder->wish, pixels, err);
	mu_picture_release(&picture);
	*label = (int32_t)file->label;
	return status;
}

static int32_t folder_label(const mural_data *data, uint64_t index)
{
	return (int32_t)((const folder_data *)data)->list.files[index].label;
}

const mu_format mu_format_folder = {
        .name = "folder",
        .found_in = folder_found_in,
        .open = folder_open,
        .read = folder_read,
        .label = folder_label,
        .free = folder_free,
};
