/* Pictures through an engine that only evaluates: no data set, no loader, one batch at a time.
 * SPDX-License-Identifier: MIT */
#include "mural/predict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "data/reshape.h"
#include "engine/engine_internal.h"
#include "engine/weights.h"

struct mural_predictor {
	mural_comm *comm;
	mural_engine *engine;
	mural_weights_facts facts;
	mu_class_names names;
	mu_image_shape shape;
	uint8_t *pixels; /* host, [MURAL_PREDICT_BATCH, shape] */
	mu_micro *micro; /* device: the batch's count, then its pixels */
	float *logits; /* host, [MURAL_PREDICT_BATCH, classes] */
};

static size_t batch_bytes(const mural_predictor *p)
{
	return MURAL_PREDICT_BATCH * mu_image_bytes(p->shape);
}

static size_t device_bytes(const mural_predictor *p)
{
	return MU_ARENA_ALIGN + batch_bytes(p);
}

static uint8_t *device_pixels(const mural_predictor *p)
{
	return (uint8_t *)p->micro + MU_ARENA_ALIGN;
}

/* The weights' own names, or the lines of a file. */
static mural_status take_names(mural_predictor *p, const mural_weights *weights, const char *labels, mural_error *err)
{
	size_t classes = p->facts.model.classes;
	if (!labels) {
		for (size_t i = 0; i < p->facts.class_names; i++) {
			const char *name = mural_weights_class_name(weights, i);
			MU_TRY(mu_class_names_add(&p->names, name, strlen(name), err));
		}
		return MURAL_OK;
	}
	MU_TRY(mu_class_names_read(&p->names, labels, err));
	p->facts.class_names = p->names.n;
	if (p->names.n != classes)
		return mu_fail(err, MURAL_DATA, labels, "the file names %zu classes, and the weights are for %zu",
		               p->names.n, classes);
	return MURAL_OK;
}

static mural_status check_model(const mural_predictor *p, mural_error *err)
{
	const mural_model_config *m = &p->facts.model;
	if (m->classes == 0)
		return mu_fail(err, MURAL_DATA, p->facts.path,
		               "the weights have no classifier: train one with --init-weights");
	if (m->channels != 1 && m->channels != MU_PICTURE_CHANNELS)
		return mu_fail(err, MURAL_DATA, p->facts.path, "the model takes %zu channels, and pictures have 1 or 3",
		               m->channels);
	return MURAL_OK;
}

static mural_status make_engine(mural_predictor *p, const mural_predictor_settings *settings, mural_error *err)
{
	mural_config config;
	const mural_config_sources sources = {.ranks = 1, .evaluation = true};
	MU_TRY(mural_config_resolve(&config, NULL, &sources, err));
	config.model = p->facts.model;
	config.batch.micro_batch = MURAL_PREDICT_BATCH;
	config.run.threads = settings->threads;
	if (settings->ops)
		snprintf(config.run.ops, sizeof config.run.ops, "%s", settings->ops);
	const mural_engine_settings wanted = {.config = &config, .comm = p->comm};
	MU_TRY(mural_engine_create(&p->engine, &wanted, err));
	return mural_engine_load_weights(p->engine, p->facts.path, err);
}

static mural_status make_buffers(mural_predictor *p, mural_error *err)
{
	const mu_device *device = &p->engine->device;
	p->pixels = calloc(1, batch_bytes(p));
	p->logits = malloc(MURAL_PREDICT_BATCH * p->facts.model.classes * sizeof *p->logits);
	if (!p->pixels || !p->logits)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for %d pictures", MURAL_PREDICT_BATCH);
	void *memory;
	MU_TRY(device->table->allocate(device->handle, MU_MEMORY_DEVICE, device_bytes(p), &memory, err));
	p->micro = memory;
	return MURAL_OK;
}

static mural_status build(mural_predictor *p, const mural_predictor_settings *settings, mural_error *err)
{
	char path[MU_WEIGHTS_PATH];
	mural_weights *weights;
	MU_TRY(mu_weights_locate(path, settings->weights, err));
	MU_TRY(mural_weights_open(&weights, path, err));
	p->facts = *mural_weights_get_facts(weights);
	mural_status status = check_model(p, err);
	if (status == MURAL_OK)
		status = take_names(p, weights, settings->labels, err);
	mural_weights_free(weights);
	MU_TRY(status);
	const mural_model_config *m = &p->facts.model;
	p->shape = (mu_image_shape){m->channels, m->image_height, m->image_width};
	MU_TRY(mural_comm_open(&p->comm, "self", err));
	MU_TRY(make_engine(p, settings, err));
	return make_buffers(p, err);
}

mural_status mural_predictor_create(mural_predictor **predictor, const mural_predictor_settings *settings,
                                    mural_error *err)
{
	*predictor = NULL;
	mural_predictor *p = calloc(1, sizeof *p);
	if (!p)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to predict");
	mural_status status = build(p, settings, err);
	if (status == MURAL_OK)
		*predictor = p;
	else
		mural_predictor_free(p);
	return status;
}

void mural_predictor_free(mural_predictor *p)
{
	if (!p)
		return;
	if (p->micro)
		p->engine->device.table->release(p->engine->device.handle, MU_MEMORY_DEVICE, p->micro, device_bytes(p));
	mural_engine_free(p->engine);
	mural_comm_close(p->comm);
	mu_class_names_release(&p->names);
	free(p->pixels);
	free(p->logits);
	free(p);
}

const mural_weights_facts *mural_predictor_facts(const mural_predictor *p)
{
	return &p->facts;
}

const char *mural_predictor_class_name(const mural_predictor *p, size_t label)
{
	return label < p->names.n ? p->names.names[label] : NULL;
}

/* ---- Pictures. ---- */

static mural_status read_picture(const mural_predictor *p, const char *path, uint8_t *pixels, mural_error *err)
{
	const mural_preprocess *how = &p->facts.preprocess;
	const mu_resize_wish wish = {how->resize, how->filter, how->resize_side};
	mu_picture picture;
	MU_TRY(mu_decode_file(&picture, path, err));
	mural_status status = mu_picture_reshape(&picture, p->shape, wish, pixels, err);
	mu_picture_release(&picture);
	return status;
}

/* The logits of the batch's first `count` pictures. */
static mural_status forward(mural_predictor *p, size_t count, mural_error *err)
{
	mural_engine *e = p->engine;
	const mu_device *device = &e->device;
	const mu_micro micro = {count, count};
	const mu_vit_input input = {.micro = p->micro,
	                            .pixels = device_pixels(p),
	                            .mean_C = p->facts.preprocess.mean,
	                            .std_C = p->facts.preprocess.std};
	MU_TRY(device->table->copy(device->queue, p->micro, &micro, sizeof micro, err));
	MU_TRY(device->table->copy(device->queue, device_pixels(p), p->pixels, batch_bytes(p), err));
	for (size_t u = 0; u < e->vit.n_units; u++)
		MU_TRY(mu_vit_forward_unit(e->evaluate_pass, u, mu_store_parameters(&e->store, u), &input, err));
	MU_TRY(device->table->copy(device->queue, p->logits, mu_vit_logits(e->evaluate_pass),
	                           count * e->vit.config.classes * sizeof *p->logits, err));
	return device->table->wait(device->queue, err);
}

static mural_status softmax(const mural_predictor *p, const char *path, const float *logits, float *probabilities,
                            mural_error *err)
{
	size_t classes = p->facts.model.classes;
	double most = -INFINITY, sum = 0;
	for (size_t c = 0; c < classes; c++) {
		if (!isfinite(logits[c]))
			return mu_fail(err, MURAL_DATA, p->facts.path,
			               "with these weights the model's output for '%.200s' is no finite number", path);
		most = fmax(most, (double)logits[c]);
	}
	for (size_t c = 0; c < classes; c++)
		sum += exp((double)logits[c] - most);
	for (size_t c = 0; c < classes; c++)
		probabilities[c] = (float)(exp((double)logits[c] - most) / sum);
	return MURAL_OK;
}

mural_status mural_predictor_run(mural_predictor *p, const char *const *paths, size_t n, float *probabilities,
                                 mural_error *err)
{
	size_t classes = p->facts.model.classes;
	for (size_t first = 0; first < n; first += MURAL_PREDICT_BATCH) {
		size_t count = n - first < MURAL_PREDICT_BATCH ? n - first : MURAL_PREDICT_BATCH;
		for (size_t i = 0; i < count; i++)
			MU_TRY(read_picture(p, paths[first + i], p->pixels + i * mu_image_bytes(p->shape), err));
		MU_TRY(forward(p, count, err));
		for (size_t i = 0; i < count; i++)
			MU_TRY(softmax(p, paths[first + i], p->logits + i * classes,
			               probabilities + (first + i) * classes, err));
	}
	return MURAL_OK;
}

/* Selection by insertion: k is small. */
void mural_predictor_best(const float *probabilities, size_t classes, size_t k, size_t *labels)
{
	size_t n = 0;
	for (size_t c = 0; c < classes && k > 0; c++) {
		size_t at = n < k ? n : k;
		while (at > 0 && probabilities[c] > probabilities[labels[at - 1]])
			at--;
		if (at == k)
			continue;
		size_t moved = (n < k ? n : k - 1) - at;
		memmove(labels + at + 1, labels + at, moved * sizeof *labels);
		labels[at] = c;
		n += n < k;
	}
}

static void write_picture(mu_json *json, const mural_predictor *p, const char *picture, const float *row, size_t k,
                          const size_t *labels)
{
	mu_json_object_begin(json, NULL);
	mu_json_string(json, "image", picture);
	mu_json_array_begin(json, "classes");
	for (size_t i = 0; i < k; i++) {
		mu_json_object_begin(json, NULL);
		mu_json_unsigned(json, "class", labels[i]);
		mu_json_string(json, "name", mural_predictor_class_name(p, labels[i]));
		mu_json_number(json, "probability", (double)row[labels[i]]);
		mu_json_object_end(json);
	}
	mu_json_array_end(json);
	mu_json_object_end(json);
}

mural_status mural_predictor_print_json(const mural_predictor *p, FILE *out, const char *const *pictures, size_t n,
                                        const float *probabilities, size_t k, mural_error *err)
{
	size_t classes = p->facts.model.classes, *labels = calloc(k + 1, sizeof *labels);
	mu_json json;
	if (!labels)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for %zu classes", k);
	mu_json_init(&json, out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	mu_json_string(&json, "weights", p->facts.path);
	mu_json_array_begin(&json, "images");
	for (size_t i = 0; i < n; i++) {
		mural_predictor_best(probabilities + i * classes, classes, k, labels);
		write_picture(&json, p, pictures[i], probabilities + i * classes, k, labels);
	}
	mu_json_array_end(&json);
	mu_json_object_end(&json);
	free(labels);
	if (!mu_json_finished(&json) || fflush(out) != 0)
		return mu_fail(err, MURAL_FAILED, NULL, "cannot write the predictions: %s", strerror(errno));
	return MURAL_OK;
}

mural_status mural_predictor_write_json(const mural_predictor *p, const char *path, const char *const *pictures,
                                        size_t n, const float *probabilities, size_t k, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, err));
	mural_status status = mural_predictor_print_json(p, file.out, pictures, n, probabilities, k, err);
	if (status == MURAL_OK)
		return mu_file_commit(&file, err);
	mu_file_abandon(&file);
	return status;
}
