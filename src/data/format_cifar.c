/* CIFAR-10 and CIFAR-100, in the official binary version and the official "python version".
 *
 *     binary   records of one label (CIFAR-100: a coarse one, then the fine one) and 3072 pixels: 1024 red, 1024 green,
 *              1024 blue, each 32 x 32 row by row. A file is nothing but whole records.
 *     python   pickles (cifar_python.h) with the same pixels in the same order
 *
 * The folder may be the one with the files or the one above it. Where both versions lie side by side the binary one is
 * read; they hold the same. Everything is read and checked at opening; reading is then a copy. Labels are the fine ones;
 * names of classes come from the set's own list and stay unknown without it.
 *
 * Mean and std are those of the training images, from exact integer sums, for the test images too.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "data/cifar_python.h"
#include "data/dataset.h"
#include "data/moments.h"

#define SIDE 32
#define PLANE (SIDE * SIDE)
#define MAX_FILES 5 /* of one split */
#define PATH_BYTES 1200 /* a configured folder, a sub-folder and a file name */
#define MAX_FILE ((size_t)1 << 30) /* bytes of one binary file */

/* One version of one set: where its files lie and what they look like. */
typedef struct cifar_version {
	const char *folder; /* as the archive unpacks */
	const char *train[MAX_FILES], *test[MAX_FILES];
	const char *names; /* file with the names of classes */
	unsigned label_bytes; /* binary: in front of the pixels, the last one counts; 0: a pickle */
} cifar_version;

typedef struct cifar_kind {
	const char *title;
	size_t classes;
	const char *labels_key, *names_key; /* in pickles */
	cifar_version versions[2];
} cifar_kind;

static const cifar_kind cifar10 = {
        .title = "CIFAR-10",
        .classes = 10,
        .labels_key = "labels",
        .names_key = "label_names",
        .versions = {{.folder = "cifar-10-batches-bin",
                      .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                                "data_batch_5.bin"},
                      .test = {"test_batch.bin"},
                      .names = "batches.meta.txt",
                      .label_bytes = 1},
                     {.folder = "cifar-10-batches-py",
                      .train = {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"},
                      .test = {"test_batch"},
                      .names = "batches.meta"}},
};

static const cifar_kind cifar100 = {
        .title = "CIFAR-100",
        .classes = 100,
        .labels_key = "fine_labels",
        .names_key = "fine_label_names",
        .versions = {{.folder = "cifar-100-binary",
                      .train = {"train.bin"},
                      .test = {"test.bin"},
                      .names = "fine_label_names.txt",
                      .label_bytes = 2},
                     {.folder = "cifar-100-python", .train = {"train"}, .test = {"test"}, .names = "meta"}},
};

/* The images of one file. */
typedef struct part {
	mu_cifar_batch batch; /* what is malloc'ed; its labels are unused by binary files */
	const uint8_t *pixels, *labels; /* of the first image */
	size_t pixels_step, labels_step; /* bytes from one image to the next */
} part;

/* The files of one split. */
typedef struct file_set {
	part part[MAX_FILES];
	size_t n;
	uint64_t images;
} file_set;

typedef struct cifar_data {
	mural_data base;
	file_set parts;
} cifar_data;

static const char *const *split_files(const cifar_version *version, mural_split split)
{
	return split == MURAL_SPLIT_TRAIN ? version->train : version->test;
}

/* Finds the folder with a version's files, `folder` itself or the one below it. */
static bool find_version(const cifar_version *version, const char *folder, char inside[PATH_BYTES])
{
	const char *const *splits[] = {version->train, version->test};
	for (int below = 0; below < 2; below++) {
		snprintf(inside, PATH_BYTES, below ? "%s/%s" : "%s", folder, version->folder);
		for (size_t s = 0; s < 2; s++)
			for (size_t i = 0; i < MAX_FILES && splits[s][i]; i++) {
				char path[2 * PATH_BYTES];
				struct stat facts;
				snprintf(path, sizeof path, "%s/%s", inside, splits[s][i]);
				if (stat(path, &facts) == 0 && S_ISREG(facts.st_mode))
					return true;
			}
	}
	return false;
}

static const cifar_version *find_any(const cifar_kind *kind, const char *folder, char inside[PATH_BYTES])
{
	for (size_t v = 0; v < 2; v++)
		if (find_version(&kind->versions[v], folder, inside))
			return &kind->versions[v];
	return NULL;
}

static mural_status check_label(const part *p, const cifar_version *version, const char *path, uint64_t image,
                                size_t classes, mural_error *err)
{
	uint8_t label = p->labels[image * p->labels_step];
	char where[2 * PATH_BYTES + 32];
	if (label < classes)
		return MURAL_OK;
	snprintf(where, sizeof where, "%s:%llu", path,
	         (unsigned long long)(image * p->labels_step + version->label_bytes - 1));
	return mu_fail(err, MURAL_DATA, where, "image %llu has label %u; expected 0 to %zu", (unsigned long long)image,
	               label, classes - 1);
}

static mural_status read_binary(part *p, const cifar_kind *kind, const cifar_version *version, const char *path,
                                mural_error *err)
{
	size_t n, record = version->label_bytes + MU_CIFAR_PIXELS;
	char *file;
	MU_TRY(mu_file_read(path, "CIFAR file", MAX_FILE, MURAL_DATA, &file, &n, err));
	p->batch.file = (uint8_t *)file;
	if (n == 0 || n % record != 0)
		return mu_fail(err, MURAL_DATA, path,
		               "expected whole records of %zu bytes (%u of labels, %d of pixels), found %zu bytes: %zu "
		               "records and %zu bytes more; fetch the file again",
		               record, version->label_bytes, MU_CIFAR_PIXELS, n, n / record, n % record);
	p->batch.images = n / record;
	p->labels = p->batch.file + version->label_bytes - 1;
	p->pixels = p->batch.file + version->label_bytes;
	p->pixels_step = p->labels_step = record;
	for (uint64_t i = 0; i < p->batch.images; i++)
		MU_TRY(check_label(p, version, path, i, kind->classes, err));
	return MURAL_OK;
}

static mural_status read_python(part *p, const cifar_kind *kind, const char *path, mural_error *err)
{
	MU_TRY(mu_cifar_python_batch(&p->batch, path, kind->labels_key, kind->classes, err));
	p->pixels = p->batch.pixels;
	p->labels = p->batch.labels;
	p->pixels_step = MU_CIFAR_PIXELS;
	p->labels_step = 1;
	return MURAL_OK;
}

static void parts_release(file_set *parts)
{
	for (size_t i = 0; i < MAX_FILES; i++)
		mu_cifar_batch_release(&parts->part[i].batch);
}

/* On failure `parts` may hold some files. */
static mural_status read_split(file_set *parts, const cifar_kind *kind, const cifar_version *version,
                               const char *inside, mural_split split, mural_error *err)
{
	const char *const *files = split_files(version, split);
	for (; parts->n < MAX_FILES && files[parts->n]; parts->n++) {
		part *p = &parts->part[parts->n];
		char path[2 * PATH_BYTES];
		snprintf(path, sizeof path, "%s/%s", inside, files[parts->n]);
		MU_TRY(version->label_bytes ? read_binary(p, kind, version, path, err)
		                            : read_python(p, kind, path, err));
		parts->images += p->batch.images;
	}
	if (parts->images > UINT32_MAX)
		return mu_fail(err, MURAL_DATA, inside, "expected at most %u images, found %llu", UINT32_MAX,
		               (unsigned long long)parts->images);
	return MURAL_OK;
}

static void find_image(const file_set *parts, uint64_t index, const uint8_t **pixels, uint8_t *label)
{
	const part *p = parts->part;
	while (index >= p->batch.images)
		index -= p++->batch.images;
	*pixels = p->pixels + index * p->pixels_step;
	*label = p->labels[index * p->labels_step];
}

static void add_moments(mu_moments *moments, const file_set *parts)
{
	for (uint64_t i = 0; i < parts->images; i++) {
		const uint8_t *pixels;
		uint8_t label;
		find_image(parts, i, &pixels, &label);
		for (size_t c = 0; c < 3; c++)
			mu_moments_add(moments, c, pixels + c * PLANE, PLANE);
	}
}

static mural_status set_normalisation(cifar_data *data, const cifar_kind *kind, const cifar_version *version,
                                      const char *inside, mural_split split, mural_error *err)
{
	mu_moments moments = {0};
	if (split == MURAL_SPLIT_TRAIN) {
		add_moments(&moments, &data->parts);
	} else {
		file_set train = {0};
		mural_status status = read_split(&train, kind, version, inside, MURAL_SPLIT_TRAIN, err);
		if (status == MURAL_OK)
			add_moments(&moments, &train);
		parts_release(&train);
		if (status != MURAL_OK) {
			mu_context(err, "%s", mu_needs_training_images);
			return status;
		}
	}
	mu_moments_set(&moments, 3, data->base.mean, data->base.std);
	return MURAL_OK;
}

static mural_status read_names(mu_class_names *names, const cifar_kind *kind, const cifar_version *version,
                               const char *inside, mural_error *err)
{
	char path[2 * PATH_BYTES];
	struct stat facts;
	snprintf(path, sizeof path, "%s/%s", inside, version->names);
	if (stat(path, &facts) != 0)
		return MURAL_OK;
	MU_TRY(version->label_bytes ? mu_class_names_read(names, path, err)
	                            : mu_cifar_python_names(names, path, kind->names_key, err));
	if (names->n != kind->classes)
		return mu_fail(err, MURAL_DATA, path, "expected the names of %zu classes, found %zu", kind->classes,
		               names->n);
	return MURAL_OK;
}

/* A model with too few classes cannot learn the labels that there are. */
static mural_status check_classes(const file_set *parts, const cifar_kind *kind, const char *inside, size_t classes,
                                  mural_error *err)
{
	for (uint64_t i = 0; classes && i < parts->images; i++) {
		const uint8_t *pixels;
		uint8_t label;
		find_image(parts, i, &pixels, &label);
		if (label >= classes)
			return mu_fail(err, MURAL_DATA, inside,
			               "image %llu has label %u, but the model has only %zu classes: set --classes to "
			               "%zu for %s",
			               (unsigned long long)i, label, classes, kind->classes, kind->title);
	}
	return MURAL_OK;
}

static void cifar_free(mural_data *data)
{
	cifar_data *cifar = (cifar_data *)data;
	parts_release(&cifar->parts);
	free(cifar);
}

static mural_status fill(cifar_data *cifar, const cifar_kind *kind, const mu_data_request *request, mural_error *err)
{
	char inside[PATH_BYTES];
	const cifar_version *version = find_any(kind, request->folder, inside);
	if (!version)
		return mu_fail(err, MURAL_DATA, request->folder,
		               "no %s in this folder; expected %s or %s, or their files such as %s or %s", kind->title,
		               kind->versions[0].folder, kind->versions[1].folder, kind->versions[0].train[0],
		               kind->versions[1].train[0]);
	MU_TRY(read_split(&cifar->parts, kind, version, inside, request->split, err));
	MU_TRY(check_classes(&cifar->parts, kind, inside, request->classes, err));
	cifar->base.facts = (mural_data_facts){
	        .images = cifar->parts.images, .channels = 3, .height = SIDE, .width = SIDE, .classes = kind->classes};
	MU_TRY(read_names(&cifar->base.class_names, kind, version, inside, err));
	if (request->config->normalise_given)
		return MURAL_OK;
	return set_normalisation(cifar, kind, version, inside, request->split, err);
}

static mural_status open_kind(mural_data **data, const cifar_kind *kind, const mu_data_request *request,
                              mural_error *err)
{
	cifar_data *cifar = calloc(1, sizeof *cifar);
	if (!cifar)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, request->folder, "no memory to open the data set");
	mural_status status = fill(cifar, kind, request, err);
	if (status == MURAL_OK) {
		*data = &cifar->base;
		return MURAL_OK;
	}
	mu_class_names_release(&cifar->base.class_names);
	cifar_free(&cifar->base);
	return status;
}

static mural_status cifar_read(const mural_data *data, uint64_t index, uint8_t *pixels, int32_t *label,
                               mural_error *err)
{
	const uint8_t *from;
	uint8_t class;
	(void)err;
	find_image(&((const cifar_data *)data)->parts, index, &from, &class);
	memcpy(pixels, from, MU_CIFAR_PIXELS);
	*label = class;
	return MURAL_OK;
}

static int32_t cifar_label(const mural_data *data, uint64_t index)
{
	const uint8_t *pixels;
	uint8_t class;
	find_image(&((const cifar_data *)data)->parts, index, &pixels, &class);
	return class;
}

static bool cifar10_found_in(const char *folder)
{
	char inside[PATH_BYTES];
	return find_any(&cifar10, folder, inside) != NULL;
}

static bool cifar100_found_in(const char *folder)
{
	char inside[PATH_BYTES];
	return find_any(&cifar100, folder, inside) != NULL;
}

static mural_status cifar10_open(mural_data **data, const mu_data_request *request, mural_error *err)
{
	return open_kind(data, &cifar10, request, err);
}

static mural_status cifar100_open(mural_data **data, const mu_data_request *request, mural_error *err)
{
	return open_kind(data, &cifar100, request, err);
}

const mu_format mu_format_cifar10 = {
        .name = "cifar10",
        .found_in = cifar10_found_in,
        .open = cifar10_open,
        .read = cifar_read,
        .label = cifar_label,
        .free = cifar_free,
};

const mu_format mu_format_cifar100 = {
        .name = "cifar100",
        .found_in = cifar100_found_in,
        .open = cifar100_open,
        .read = cifar_read,
        .label = cifar_label,
        .free = cifar_free,
};
