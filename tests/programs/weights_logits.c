/* What a model makes of images under weights of any origin, for comparisons with other libraries (tests/golden/weights.py).
 *
 *     weights_logits WEIGHTS IMAGES OUT [SIDE]
 *
 * IMAGES: a safetensors file with `pixels`, U8 [B, C, H, W]; they are normalised by the weights' own mean and std. OUT gets
 * `logits`, F32 [B, classes], and `positions`, the position table in use. SIDE: the model is for so many pixels a side, and
 * positions are resized.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/safetensors.h"
#include "support/model_run.h"
#include "weights/weights.h"

static void must(mural_status status, const mural_error *err)
{
	if (status == MURAL_OK)
		return;
	mural_error_print(err, stderr);
	exit(mural_exit_code(status));
}

static uint8_t *read_pixels(const char *path, const mural_model_config *m, size_t *images)
{
	mural_error err = {0};
	mu_safetensors *file;
	must(mu_safetensors_open(&file, path, &err), &err);
	const mu_safetensor *pixels = mu_safetensors_find(file, "pixels");
	if (!pixels || pixels->type != MU_U8 || pixels->n_dims != 4 || pixels->dims[1] != m->channels ||
	    pixels->dims[2] != m->image_height || pixels->dims[3] != m->image_width) {
		fprintf(stderr, "expected pixels [B, %zu, %zu, %zu]\n", m->channels, m->image_height, m->image_width);
		exit(2);
	}
	*images = (size_t)pixels->dims[0];
	uint8_t *bytes = malloc((size_t)pixels->bytes);
	if (!bytes)
		abort();
	must(mu_safetensors_read(file, pixels, bytes, &err), &err);
	mu_safetensors_free(file);
	return bytes;
}

static void load(model_run *run, const mural_weights *weights)
{
	mural_error err = {0};
	char notes[MURAL_WEIGHTS_NOTES] = "";
	must(mu_weights_match(weights, &run->vit, (mu_weights_wish){.new_positions = true}, notes, &err), &err);
	for (size_t u = 0; u < run->vit.n_units; u++)
		for (size_t i = 0; i < run->vit.units[u].n_tensors; i++) {
			const mu_tensor *t = &run->vit.units[u].tensors[i];
			must(mu_weights_take(weights, &run->vit, &run->vit.units[u], t,
			                     (float *)run->parameters[u] + t->offset, &err),
			     &err);
		}
}

static void write_out(const char *path, const float *logits, size_t images, const model_run *run)
{
	mural_error err = {0};
	const mu_tensor *positions = mu_unit_tensor(&run->vit.units[0], MU_ROLE_POSITION);
	mu_safetensors_item items[] = {
	        {"logits", MU_F32, 2, (const size_t[]){images, run->vit.config.classes}, logits},
	        {"positions", MU_F32, 3, positions->dims, (const float *)run->parameters[0] + positions->offset}};
	must(mu_safetensors_write(path, items, 2, &err), &err);
}

int main(int argc, char **argv)
{
	mural_error err = {0};
	mural_weights *weights;
	model_run run;
	size_t images;
	if (argc < 4)
		return 2;
	must(mural_weights_open(&weights, argv[1], &err), &err);
	const mural_weights_facts *facts = mural_weights_get_facts(weights);
	mural_model_config config = facts->model;
	if (argc > 4)
		config.image_height = config.image_width = (size_t)strtoul(argv[4], NULL, 10);
	uint8_t *pixels = read_pixels(argv[2], &config, &images);
	size_t bytes = config.channels * config.image_height * config.image_width, classes = config.classes;
	model_settings settings = {
	        .config = &config, .ops = mu_ops_find("cpu"), .type = MU_F32, .capacity = 1, .count = 1};
	model_run_open(&run, &settings);
	load(&run, weights);
	run.input.mean_C = facts->preprocess.mean;
	run.input.std_C = facts->preprocess.std;
	float *logits = malloc(images * classes * sizeof *logits);
	if (!logits)
		abort();
	for (size_t i = 0; i < images; i++) {
		run.input.pixels = pixels + i * bytes;
		for (size_t u = 0; u < run.vit.n_units; u++)
			must(mu_vit_forward_unit(run.pass, u, run.parameters[u], &run.input, &err), &err);
		memcpy(logits + i * classes, mu_vit_logits(run.pass), classes * sizeof *logits);
	}
	write_out(argv[3], logits, images, &run);
	free(logits);
	free(pixels);
	model_run_close(&run);
	mural_weights_free(weights);
	return 0;
}
