/* Weights made by torchvision, timm, transformers and in JAX's layout give those libraries' logits, from every kind of file
 * and again after a conversion (weights.py --fixtures).
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/safetensors.h"
#include "support/model_run.h"
#include "weights/weights.h"

#define FOLDER MU_TEST_SOURCE_DIR "/golden/weights/"
#define IMAGES 4
#define CLASSES 5
#define LIMIT 1e-4 /* between libraries, in fp32, of logits near 1 */

static mu_safetensors *expected;
static char work[] = "/tmp/mural-weights-XXXXXX";

static int open_expected(void **state)
{
	(void)state;
	return mkdtemp(work) && mu_safetensors_open(&expected, FOLDER "expected.safetensors", NULL) == MURAL_OK ? 0
	                                                                                                        : -1;
}

static int close_expected(void **state)
{
	char command[128];
	(void)state;
	mu_safetensors_free(expected);
	snprintf(command, sizeof command, "rm -rf %s", work);
	return system(command);
}

static void *read_expected(const char *name)
{
	const mu_safetensor *tensor = mu_safetensors_find(expected, name);
	assert_non_null(tensor);
	void *bytes = malloc((size_t)tensor->bytes);
	assert_non_null(bytes);
	assert_int_equal(mu_safetensors_read(expected, tensor, bytes, NULL), MURAL_OK);
	return bytes;
}

static mural_weights *open_weights(const char *path)
{
	mural_weights *weights;
	mural_error err = {0};
	if (mural_weights_open(&weights, path, &err) != MURAL_OK)
		fail_msg("%s: %s", err.where, err.message);
	return weights;
}

static void load(model_run *run, const mural_weights *weights)
{
	mural_error err = {0};
	assert_int_equal(mu_weights_match(weights, &run->vit, (mu_weights_wish){.new_positions = true}, NULL, &err),
	                 MURAL_OK);
	for (size_t u = 0; u < run->vit.n_units; u++)
		for (size_t i = 0; i < run->vit.units[u].n_tensors; i++) {
			const mu_tensor *t = &run->vit.units[u].tensors[i];
			float *to = (float *)run->parameters[u] + t->offset;
			assert_int_equal(mu_weights_take(weights, &run->vit, &run->vit.units[u], t, to, &err),
			                 MURAL_OK);
		}
}

/* The model's logits for the expected pixels are those of `name`. */
static void same_logits(const char *path, const char *name)
{
	mural_weights *weights = open_weights(path);
	const mural_weights_facts *facts = mural_weights_get_facts(weights);
	model_settings settings = {.config = &facts->model,
	                           .ops = mu_ops_find("cpu"),
	                           .type = MU_F32,
	                           .capacity = IMAGES,
	                           .count = IMAGES};
	model_run run;
	assert_int_equal(facts->model.classes, CLASSES);
	model_run_open(&run, &settings);
	load(&run, weights);
	uint8_t *pixels = read_expected("pixels");
	float *logits = read_expected(name);
	run.input.pixels = pixels;
	run.input.mean_C = facts->preprocess.mean;
	run.input.std_C = facts->preprocess.std;
	for (size_t u = 0; u < run.vit.n_units; u++)
		assert_int_equal(mu_vit_forward_unit(run.pass, u, run.parameters[u], &run.input, NULL), MURAL_OK);
	const float *got = mu_vit_logits(run.pass);
	for (size_t i = 0; i < (size_t)IMAGES * CLASSES; i++)
		if (!(fabsf(got[i] - logits[i]) <= (float)LIMIT))
			fail_msg("%s: logit %zu is %g instead of %g", path, i, (double)got[i], (double)logits[i]);
	free(logits);
	free(pixels);
	model_run_close(&run);
	mural_weights_free(weights);
}

static const struct {
	const char *file, *logits, *origin, *format;
	mural_naming naming;
} files[] = {
        {"torchvision.safetensors", "torchvision", "Mural (torchvision's names)", "safetensors",
         MURAL_NAMING_TORCHVISION},
        {"timm", "timm", "timm", "safetensors", MURAL_NAMING_TIMM},
        {"timm/wrapped.pth", "timm", "timm", "PyTorch file", MURAL_NAMING_TIMM},
        {"timm/strided.pth", "timm", "timm", "PyTorch file", MURAL_NAMING_TIMM},
        {"timm_mean", "timm_mean", "timm", "safetensors", MURAL_NAMING_TIMM},
        {"timm_mean/wrapped.pth", "timm_mean", "timm", "PyTorch file", MURAL_NAMING_TIMM},
        {"huggingface", "huggingface", "Hugging Face ViTForImageClassification", "safetensors in 3 files",
         MURAL_NAMING_HUGGINGFACE},
        {"huggingface5", "huggingface", "Hugging Face ViTForImageClassification (names of transformers 5)",
         "safetensors", MURAL_NAMING_HUGGINGFACE},
        {"jax.npz", "jax", "JAX (vision_transformer)", "NumPy npz", MURAL_NAMING_JAX},
        {"jax_deflated.npz", "jax", "JAX (vision_transformer)", "NumPy npz", MURAL_NAMING_JAX},
        {"big_vision.npz", "jax", "JAX (big_vision)", "NumPy npz", MURAL_NAMING_JAX},
        {"jax_training.npz", "jax", "JAX (vision_transformer)", "NumPy npz", MURAL_NAMING_JAX},
        {"torchvision_old", "torchvision", "torchvision (names before 0.14)", "safetensors", MURAL_NAMING_TORCHVISION},
};
#define FILES (sizeof files / sizeof *files)

static void every_file_gives_its_library_s_logits(void **state)
{
	(void)state;
	for (size_t i = 0; i < FILES; i++) {
		char path[512];
		snprintf(path, sizeof path, FOLDER "%s", files[i].file);
		mural_weights *weights = open_weights(path);
		assert_string_equal(mural_weights_get_facts(weights)->origin, files[i].origin);
		assert_string_equal(mural_weights_get_facts(weights)->format, files[i].format);
		assert_int_equal(mural_weights_get_facts(weights)->naming, files[i].naming);
		assert_null(mural_weights_unmatched(weights, 0));
		mural_weights_free(weights);
		same_logits(path, files[i].logits);
	}
}

static void convert(const char *from, const char *to, mural_naming naming)
{
	char notes[MURAL_WEIGHTS_NOTES];
	mural_error err = {0};
	const mural_weights_conversion conversion = {.from = from, .to = to, .naming = naming};
	if (mural_weights_convert(&conversion, notes, &err) != MURAL_OK)
		fail_msg("%s to %s: %s", from, to, err.message);
}

/* Each kind of file into each that can hold it, read back from there. */
static void conversions_keep_the_model(void **state)
{
	(void)state;
	static const struct {
		const char *end;
		mural_naming naming;
	} kinds[] = {{".safetensors", MURAL_NAMING_TORCHVISION},
	             {"-timm", MURAL_NAMING_TIMM},
	             {"-hf", MURAL_NAMING_HUGGINGFACE}};
	for (size_t i = 0; i < FILES; i++)
		for (size_t k = 0; k < 3; k++) {
			char from[512], to[512];
			/* the other two projects have no such model, or, for JAX's, another GELU */
			bool mean = strcmp(files[i].logits, "timm_mean") == 0;
			if (mean && kinds[k].naming != MURAL_NAMING_TIMM)
				continue;
			snprintf(from, sizeof from, FOLDER "%s", files[i].file);
			snprintf(to, sizeof to, "%s/%zu%s", work, i, kinds[k].end);
			convert(from, to, kinds[k].naming);
			/* timm's names leave GELU to config.json's act_layer, which Mural's reader takes from there */
			same_logits(to, files[i].logits);
		}
}

static void pth_is_written_as_it_is_read(void **state)
{
	(void)state;
	char to[512], back[512];
	snprintf(to, sizeof to, "%s/out.pth", work);
	snprintf(back, sizeof back, "%s/back.safetensors", work);
	convert(FOLDER "torchvision.safetensors", to, MURAL_NAMING_TORCHVISION);
	mu_weights_file *a, *b;
	assert_int_equal(mu_weights_file_open(&a, to, NULL), MURAL_OK);
	assert_int_equal(mu_weights_file_open(&b, FOLDER "torchvision.safetensors", NULL), MURAL_OK);
	assert_int_equal(mu_weights_file_count(a), mu_weights_file_count(b));
	for (size_t i = 0; i < mu_weights_file_count(a); i++) {
		const mu_stored *x = mu_weights_file_at(a, i), *y = mu_weights_file_at(b, i);
		float *xs = malloc(x->elements * sizeof *xs), *ys = malloc(x->elements * sizeof *ys);
		assert_string_equal(x->name, y->name);
		assert_int_equal(x->elements, y->elements);
		assert_true(xs && ys);
		assert_int_equal(mu_weights_file_read(a, x, xs, NULL), MURAL_OK);
		assert_int_equal(mu_weights_file_read(b, y, ys, NULL), MURAL_OK);
		assert_memory_equal(xs, ys, x->elements * sizeof *xs);
		free(xs);
		free(ys);
	}
	mu_weights_file_free(a);
	mu_weights_file_free(b);
}

static void positions_are_resized_as_each_library_does(void **state)
{
	(void)state;
	static const struct {
		const char *file, *name;
	} tables[] = {{"torchvision.safetensors", "torchvision"}, {"timm", "timm"}, {"huggingface", "huggingface"}};
	for (size_t t = 0; t < 3; t++)
		for (size_t n = 1; n <= 5; n += 2) {
			char path[512], name[64];
			snprintf(path, sizeof path, FOLDER "%s", tables[t].file);
			snprintf(name, sizeof name, "positions_%s_%zu", tables[t].name, n);
			mural_weights *weights = open_weights(path);
			mural_model_config config = mural_weights_get_facts(weights)->model;
			config.image_height = config.image_width = n * config.patch;
			mu_vit vit;
			assert_int_equal(mu_vit_init(&vit, &config, NULL), MURAL_OK);
			const mu_tensor *positions = mu_unit_tensor(&vit.units[0], MU_ROLE_POSITION);
			float *wanted = read_expected(name), *got = malloc(positions->elements * sizeof *got);
			assert_non_null(got);
			assert_int_equal(mu_weights_take(weights, &vit, &vit.units[0], positions, got, NULL), MURAL_OK);
			for (size_t i = 0; i < positions->elements; i++)
				if (!(fabsf(got[i] - wanted[i]) <= 1e-6f))
					fail_msg("%s: element %zu is %g instead of %g", name, i, (double)got[i],
					         (double)wanted[i]);
			free(got);
			free(wanted);
			mu_vit_release(&vit);
			mural_weights_free(weights);
		}
}

static void configuration_files_are_obeyed(void **state)
{
	(void)state;
	mural_weights *weights = open_weights(FOLDER "huggingface");
	const mural_weights_facts *f = mural_weights_get_facts(weights);
	assert_true(f->model.norm_eps == 1e-12);
	assert_int_equal(f->model.heads, 2);
	assert_string_equal(f->heads_from, "config.json");
	assert_int_equal(f->preprocess.resize, MURAL_RESIZE_SQUASH);
	assert_string_equal(f->preprocess.source, "preprocessor_config.json");
	assert_string_equal(mural_weights_class_name(weights, 1), "bee");
	assert_null(mural_weights_class_name(weights, 5));
	mural_weights_free(weights);

	weights = open_weights(FOLDER "timm");
	f = mural_weights_get_facts(weights);
	assert_int_equal(f->preprocess.resize, MURAL_RESIZE_BILINEAR);
	assert_int_equal(f->preprocess.filter, MURAL_FILTER_BICUBIC);
	assert_int_equal(f->preprocess.resize_side, 17); /* floor(16 / 0.9) */
	assert_int_equal(f->model.heads, 2);
	assert_int_equal(f->class_names, 0);
	mural_weights_free(weights);

	weights = open_weights(FOLDER "torchvision.safetensors");
	f = mural_weights_get_facts(weights);
	assert_int_equal(f->preprocess.resize_side, 18);
	assert_true(f->preprocess.mean[1] == 0.456f);
	assert_string_equal(mural_weights_class_name(weights, 4), "eel");
	mural_weights_free(weights);

	weights = open_weights(FOLDER "jax.npz");
	assert_int_equal(mural_weights_get_facts(weights)->model.gelu, MURAL_GELU_TANH);
	assert_string_equal(mural_weights_get_facts(weights)->heads_from, "shapes");
	mural_weights_free(weights);
}

static void write_text(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

/* Without its project's configuration file nothing tells the heads of such a width; a line that a person writes does, whoever gave the
 * tensors their names. */
static void a_configuration_by_hand_is_obeyed(void **state)
{
	(void)state;
	static const char *const names[] = {"timm", "huggingface5", "torchvision_old"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char folder[256], path[512], command[1024];
		mural_weights *weights;
		mural_error err = {0};
		snprintf(folder, sizeof folder, "%s/by-hand-%zu", work, i);
		snprintf(path, sizeof path, "%s/config.json", folder);
		snprintf(command, sizeof command, "mkdir %s && cp " FOLDER "%s/model.safetensors %s", folder, names[i],
		         folder);
		assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): folders of our own making */
		assert_int_equal(mural_weights_open(&weights, folder, &err), MURAL_DATA);
		assert_non_null(strstr(err.message, "put a config.json with num_attention_heads beside them"));
		write_text(path, "{\"num_attention_heads\": 4, \"image_size\": 16}");
		weights = open_weights(folder);
		assert_int_equal(mural_weights_get_facts(weights)->model.heads, 4);
		assert_string_equal(mural_weights_get_facts(weights)->heads_from, "config.json");
		mural_weights_free(weights);
		write_text(path, "{\"num_attention_heads\": 4, \"image_size\": 24}");
		assert_int_equal(mural_weights_open(&weights, folder, NULL), MURAL_DATA);
		write_text(path, "{\"num_attention_heads\": \"four\"}");
		assert_int_equal(mural_weights_open(&weights, folder, NULL), MURAL_DATA);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_file_gives_its_library_s_logits),
	        cmocka_unit_test(conversions_keep_the_model),
	        cmocka_unit_test(pth_is_written_as_it_is_read),
	        cmocka_unit_test(positions_are_resized_as_each_library_does),
	        cmocka_unit_test(configuration_files_are_obeyed),
	        cmocka_unit_test(a_configuration_by_hand_is_obeyed),
	};
	return cmocka_run_group_tests(tests, open_expected, close_expected);
}
