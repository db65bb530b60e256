/* IDX, the format of MNIST and its relatives, plain or gzip.
 *
 *     byte 0  0, 0, type (8: unsigned bytes), rank
 *     byte 4  `rank` sizes, 32 bits each, most significant byte first
 *     then    the elements, last size fastest, and nothing behind them
 *
 * A split is two files: images (rank 3: count, height, width) and labels (rank 1). Names end in "-idx3-ubyte" or
 * ".idx3-ubyte" and may carry ".gz". A header is believed only as far as the file can hold what it promises, so a
 * false one costs no memory. Both files are read and checked whole at opening; reading is then a copy.
 *
 * Mean and std are those of the training images, from exact integer sums, for the test images too.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/dataset.h"
#include "data/moments.h"
#include "data/reader.h"

#define TYPE_UNSIGNED_BYTE 0x08
#define IMAGE_RANK 3
#define LABEL_RANK 1
#define HEADER_BYTES(rank) (4 + 4 * (rank))
#define PATH_BYTES 1100 /* a configured folder and a file name */

typedef struct idx_data {
	mural_data base;
	uint8_t *pixels; /* [images, height, width] */
	uint8_t *labels; /* [images] */
} idx_data;

/* One kind of file: what its name and header look like. */
typedef struct idx_kind {
	const char *word, *other; /* for messages: itself, and what its place is easily confused with */
	unsigned rank;
} idx_kind;

static const idx_kind image_kind = {"images", "labels", IMAGE_RANK};
static const idx_kind label_kind = {"labels", "images", LABEL_RANK};

static const char *split_prefix(mural_split split)
{
	return split == MURAL_SPLIT_TRAIN ? "train" : "t10k";
}

/* Finds the file under any of its names; false leaves the first name in path. */
static bool find_file(char path[PATH_BYTES], const char *folder, mural_split split, const idx_kind *kind)
{
	static const char *const forms[] = {"%s/%s-%s-idx%u-ubyte", "%s/%s-%s.idx%u-ubyte", "%s/%s-%s-idx%u-ubyte.gz",
	                                    "%s/%s-%s.idx%u-ubyte.gz"};
	for (int i = 0; i <= 4; i++) { /* the last round puts the first name back */
		snprintf(path, PATH_BYTES, forms[i % 4], folder, split_prefix(split), kind->word, kind->rank);
		if (i < 4 && access(path, F_OK) == 0)
			return true;
	}
	return false;
}

static bool idx_found_in(const char *folder)
{
	char path[PATH_BYTES];
	return find_file(path, folder, MURAL_SPLIT_TRAIN, &image_kind) ||
	       find_file(path, folder, MURAL_SPLIT_TRAIN, &label_kind) ||
	       find_file(path, folder, MURAL_SPLIT_TEST, &image_kind) ||
	       find_file(path, folder, MURAL_SPLIT_TEST, &label_kind);
}

static mural_status open_file(mu_reader **reader, const char *folder, mural_split split, const idx_kind *kind,
                              mural_error *err)
{
	char path[PATH_BYTES];
	if (!find_file(path, folder, split, kind))
		return mu_fail(err, MURAL_DATA, path, "the file with the %s %s is missing; expected this name or %s",
		               split == MURAL_SPLIT_TRAIN ? "training" : "test", kind->word,
		               "one with '.' before \"idx\" or with \".gz\" behind");
	return mu_reader_create(reader, path, err);
}

static mural_status check_magic(mu_reader *reader, const uint8_t magic[4], const idx_kind *kind, mural_error *err)
{
	if (magic[0] || magic[1])
		return mu_fail(
		        err, MURAL_DATA, mu_reader_where(reader, 0),
		        "not an IDX file: expected it to start with 00 00 08 %02x or, as gzip, with 1f 8b, found "
		        "%02x %02x %02x %02x",
		        kind->rank, magic[0], magic[1], magic[2], magic[3]);
	if (magic[2] != TYPE_UNSIGNED_BYTE)
		return mu_fail(err, MURAL_DATA, mu_reader_where(reader, 2),
		               "expected elements of type 0x08 (unsigned bytes), found 0x%02x", magic[2]);
	if (magic[3] != kind->rank)
		return mu_fail(err, MURAL_DATA, mu_reader_where(reader, 3),
		               "expected %s, which have rank %u, found rank %u%s%s%s", kind->word, kind->rank, magic[3],
		               magic[3] == IMAGE_RANK || magic[3] == LABEL_RANK ? ": are these the " : "",
		               magic[3] == IMAGE_RANK || magic[3] == LABEL_RANK ? kind->other : "",
		               magic[3] == IMAGE_RANK || magic[3] == LABEL_RANK ? "?" : "");
	return MURAL_OK;
}

/* Reads sizes[rank] and the product of them, all of which the file can hold. */
static mural_status read_header(mu_reader *reader, const idx_kind *kind, uint32_t sizes[IMAGE_RANK], uint64_t *elements,
                                mural_error *err)
{
	uint8_t header[HEADER_BYTES(IMAGE_RANK)];
	size_t bytes = HEADER_BYTES(kind->rank), got, got_sizes = 0;
	MU_TRY(mu_reader_read(reader, header, 4, &got, err));
	if (got == 4) {
		MU_TRY(check_magic(reader, header, kind, err));
		MU_TRY(mu_reader_read(reader, header + 4, bytes - 4, &got_sizes, err));
	}
	if (got + got_sizes < bytes)
		return mu_fail(err, MURAL_DATA, mu_reader_where(reader, got + got_sizes),
		               "the file %s: expected a header of %zu bytes, found %zu", got ? "is cut" : "is empty",
		               bytes, got + got_sizes);
	*elements = 1;
	for (unsigned i = 0; i < kind->rank; i++) {
		const uint8_t *b = header + 4 + 4 * i;
		sizes[i] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
		if (sizes[i] == 0 || (i > 0 && sizes[i] > MU_MAX_SIDE))
			return mu_fail(err, MURAL_DATA, mu_reader_where(reader, 4 + 4 * i), "expected %s, found %u",
			               i ? "an image side of 1 to 32767 pixels" : "at least one image", sizes[i]);
		*elements *= sizes[i]; /* below 2^62 */
	}
	if (*elements + bytes > mu_reader_limit(reader))
		return mu_fail(err, MURAL_DATA, mu_reader_where(reader, bytes),
		               "the file is cut: its header promises %llu bytes of %s, it can hold at most %llu",
		               (unsigned long long)*elements, kind->word,
		               (unsigned long long)(mu_reader_limit(reader) - bytes));
	return MURAL_OK;
}

/* Reads exactly `elements` bytes, which must be the file's last, into `into` or, if that is NULL, only adds them up. */
static mural_status read_elements(mu_reader *reader, const idx_kind *kind, uint64_t elements, uint8_t *into,
                                  mu_moments *total, mural_error *err)
{
	uint8_t chunk[16384], extra;
	size_t got;
	for (uint64_t done = 0; done < elements; done += got) {
		uint64_t left = elements - done;
		size_t wanted = left < sizeof chunk ? (size_t)left : sizeof chunk;
		uint8_t *to = into ? into + done : chunk;
		MU_TRY(mu_reader_read(reader, to, wanted, &got, err));
		if (got < wanted)
			return mu_fail(err, MURAL_DATA, mu_reader_where(reader, HEADER_BYTES(kind->rank) + done + got),
			               "the file is cut: its header promises %llu bytes of %s, found %llu",
			               (unsigned long long)elements, kind->word, (unsigned long long)(done + got));
		if (total)
			mu_moments_add(total, 0, to, got);
	}
	MU_TRY(mu_reader_read(reader, &extra, 1, &got, err));
	if (got)
		return mu_fail(err, MURAL_DATA, mu_reader_where(reader, HEADER_BYTES(kind->rank) + elements),
		               "expected the end of the file behind %llu bytes of %s, found more",
		               (unsigned long long)elements, kind->word);
	return MURAL_OK;
}

/* Reads a whole file. bytes: NULL to add up only; otherwise malloc'ed even on failure, or NULL. */
static mural_status read_file(const char *folder, mural_split split, const idx_kind *kind, uint32_t sizes[IMAGE_RANK],
                              uint8_t **bytes, mu_moments *total, mural_error *err)
{
	mural_status status;
	mu_reader *reader = NULL;
	uint64_t elements = 0;
	MU_TRY_OUT(open_file(&reader, folder, split, kind, err));
	MU_TRY_OUT(read_header(reader, kind, sizes, &elements, err));
	if (bytes && !(*bytes = malloc(elements))) {
		status = mu_fail(err, MURAL_OUT_OF_MEMORY, mu_reader_where(reader, 0), "no memory for %s of %s",
		                 MU_SIZE(elements), kind->word);
		goto out;
	}
	status = read_elements(reader, kind, elements, bytes ? *bytes : NULL, total, err);
out:
	mu_reader_free(reader);
	return status;
}

static mural_status check_labels(const idx_data *idx, const char *folder, mural_split split, uint32_t count,
                                 size_t classes, mural_error *err)
{
	char path[PATH_BYTES], where[PATH_BYTES + 32];
	find_file(path, folder, split, &label_kind);
	if (count != idx->base.facts.images) {
		snprintf(where, sizeof where, "%s:4", path);
		return mu_fail(err, MURAL_DATA, where, "expected as many labels as images, %llu, found %u",
		               (unsigned long long)idx->base.facts.images, count);
	}
	for (uint32_t i = 0; classes && i < count; i++)
		if (idx->labels[i] >= classes) {
			snprintf(where, sizeof where, "%s:%llu", path,
			         HEADER_BYTES(LABEL_RANK) + (unsigned long long)i);
			return mu_fail(
			        err, MURAL_DATA, where,
			        "image %u has label %u; expected 0 to %zu, since the model has %zu classes: mend "
			        "the labels, or set --classes to at least %u",
			        i, idx->labels[i], classes - 1, classes, idx->labels[i] + 1u);
		}
	return MURAL_OK;
}

static size_t count_classes(const uint8_t *labels, uint64_t n)
{
	uint8_t largest = 0;
	for (uint64_t i = 0; i < n; i++)
		if (labels[i] > largest)
			largest = labels[i];
	return (size_t)largest + 1;
}

static mural_status add_training_images(const mu_data_request *request, mu_moments *total, mural_error *err)
{
	uint32_t sizes[IMAGE_RANK] = {0};
	mural_status status = read_file(request->folder, MURAL_SPLIT_TRAIN, &image_kind, sizes, NULL, total, err);
	if (status != MURAL_OK)
		mu_context(err, "%s", mu_needs_training_images);
	return status;
}

static void idx_free(mural_data *data)
{
	idx_data *idx = (idx_data *)data;
	free(idx->pixels);
	free(idx->labels);
	free(idx);
}

static mural_status idx_open(mural_data **data, const mu_data_request *request, mural_error *err)
{
	mural_status status;
	idx_data *idx = calloc(1, sizeof *idx);
	if (!idx)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, request->folder, "no memory to open the data set");
	uint32_t sizes[IMAGE_RANK] = {0}, count[IMAGE_RANK] = {0};
	mu_moments total = {0};
	bool train = request->split == MURAL_SPLIT_TRAIN, own = request->config->normalise_given;
	MU_TRY_OUT(read_file(request->folder, request->split, &image_kind, sizes, &idx->pixels,
	                     train && !own ? &total : NULL, err));
	mural_data_facts *facts = &idx->base.facts;
	*facts = (mural_data_facts){.images = sizes[0], .channels = 1, .height = sizes[1], .width = sizes[2]};
	MU_TRY_OUT(read_file(request->folder, request->split, &label_kind, count, &idx->labels, NULL, err));
	MU_TRY_OUT(check_labels(idx, request->folder, request->split, count[0], request->classes, err));
	facts->classes = count_classes(idx->labels, facts->images);
	if (!train && !own)
		MU_TRY_OUT(add_training_images(request, &total, err));
	mu_moments_set(&total, 1, idx->base.mean, idx->base.std);
	*data = &idx->base;
	return MURAL_OK;
out:
	idx_free(&idx->base);
	return status;
}

static mural_status idx_read(const mural_data *data, uint64_t index, uint8_t *pixels, int32_t *label, mural_error *err)
{
	const idx_data *idx = (const idx_data *)data;
	size_t bytes = data->facts.height * data->facts.width;
	(void)err;
	memcpy(pixels, idx->pixels + index * bytes, bytes);
	*label = idx->labels[index];
	return MURAL_OK;
}

static int32_t idx_label(const mural_data *data, uint64_t index)
{
	return ((const idx_data *)data)->labels[index];
}

const mu_format mu_format_idx = {
        .name = "idx",
        .found_in = idx_found_in,
        .open = idx_open,
        .read = idx_read,
        .label = idx_label,
        .free = idx_free,
};
