/* Weights files: saved and loaded bit for bit, misfits named. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/safetensors.h"
#include "engine/weights.h"

static char folder[] = "/tmp/mural-weights-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/w.safetensors", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

/* A small model and its store in one block of host memory. */
typedef struct model {
	mu_vit vit;
	mu_store store;
	mu_arena arena;
	void *memory;
} model;

static mural_model_config small_config(void)
{
	mural_model_config c;
	mural_model_defaults(&c);
	c.image_height = c.image_width = 8;
	c.patch = 4;
	c.depth = 2;
	c.width = 12;
	c.heads = 2;
	c.mlp_width = 20;
	c.classes = 5;
	return c;
}

static void lay_out(model *m, mu_dtype type)
{
	const mu_store_settings settings = {.type = type, .gradient_type = type};
	assert_int_equal(mu_store_init(&m->store, m->vit.units, m->vit.n_units, &settings, &m->arena, NULL), MURAL_OK);
}

static void open_model(model *m, const mural_model_config *config, mu_dtype type)
{
	assert_int_equal(mu_vit_init(&m->vit, config, NULL), MURAL_OK);
	mu_arena_measure(&m->arena, "model");
	lay_out(m, type);
	mu_store_release(&m->store);
	size_t bytes = m->arena.high;
	m->memory = aligned_alloc(MU_ARENA_ALIGN, bytes);
	assert_non_null(m->memory);
	mu_arena_reserve(&m->arena, "model", m->memory, bytes);
	lay_out(m, type);
}

static void close_model(model *m)
{
	mu_store_release(&m->store);
	mu_arena_back_to(&m->arena, 0);
	(void)mu_arena_take(&m->arena, m->arena.capacity);
	free(m->memory);
	mu_vit_release(&m->vit);
}

static void fill(model *m, uint32_t seed)
{
	for (size_t u = 0; u < m->vit.n_units; u++)
		assert_int_equal(mu_vit_initialise(&m->vit, u, seed, MU_F32, mu_store_parameters(&m->store, u), NULL),
		                 MURAL_OK);
}

/* Whether two models of one shape hold the same bits. */
static bool same(const model *a, const model *b)
{
	bool equal = true;
	for (size_t u = 0; u < a->vit.n_units; u++)
		equal = equal && memcmp(mu_store_parameters(&a->store, u), mu_store_parameters(&b->store, u),
		                        a->vit.units[u].elements * sizeof(float)) == 0;
	return equal;
}

/* What a file of this model says besides its tensors; the caller frees it. */
static char *describe(const mural_model_config *config)
{
	mural_preprocess preprocess;
	mu_preprocess_default(&preprocess, MU_NAMING_TORCHVISION, config);
	char *note = mu_weights_describe(config, &preprocess, NULL);
	assert_non_null(note);
	return note;
}

static mural_status save_model(const model *m, mural_error *err)
{
	char *note = describe(&m->vit.config);
	mural_status status = mu_weights_save(&m->vit, &m->store, note, path, err);
	free(note);
	return status;
}

static mural_status load(const model *m, mu_weights_wish wish, char *notes, mural_error *err)
{
	return mu_weights_load(&m->vit, &m->store, path, wish, notes, err);
}

static void save(const mural_model_config *config)
{
	model m;
	open_model(&m, config, MU_F32);
	fill(&m, 1);
	mural_error err = {0};
	assert_int_equal(save_model(&m, &err), MURAL_OK);
	close_model(&m);
}

/* Loading into a model of this configuration fails with these words and changes nothing. */
static void refuse(const mural_model_config *config, const char *words)
{
	model m, before;
	mural_error err = {0};
	open_model(&m, config, MU_F32);
	open_model(&before, config, MU_F32);
	fill(&m, 2);
	fill(&before, 2);
	assert_int_equal(load(&m, (mu_weights_wish){0}, NULL, &err), MURAL_DATA);
	if (!strstr(err.message, words))
		fail_msg("'%s' lacks '%s'", err.message, words);
	assert_string_equal(err.where, path);
	assert_true(same(&m, &before));
	close_model(&m);
	close_model(&before);
}

static void saved_weights_load_bit_for_bit(void **state)
{
	(void)state;
	mural_model_config c = small_config();
	c.init = MURAL_INIT_TIMM; /* a head that is not all zero */
	for (int pool = 0; pool < 2; pool++) {
		c.pool = pool ? MURAL_POOL_MEAN : MURAL_POOL_TOKEN;
		c.class_token = !pool;
		model m, loaded;
		mural_error err = {0};
		open_model(&m, &c, MU_F32);
		open_model(&loaded, &c, MU_F32);
		fill(&m, 1);
		fill(&loaded, 2);
		assert_false(same(&m, &loaded));
		assert_int_equal(save_model(&m, &err), MURAL_OK);
		assert_int_equal(load(&loaded, (mu_weights_wish){0}, NULL, &err), MURAL_OK);
		assert_true(same(&m, &loaded));
		close_model(&m);
		close_model(&loaded);
	}
}

static void the_file_has_torchvisions_shape(void **state)
{
	(void)state;
	mural_model_config c = small_config();
	save(&c);
	mu_safetensors *file;
	assert_int_equal(mu_safetensors_open(&file, path, NULL), MURAL_OK);
	assert_int_equal(mu_safetensors_count(file), 4 + 2 * 12 + 4);
	const mu_safetensor *patch = mu_safetensors_find(file, "conv_proj.weight");
	assert_non_null(patch);
	assert_int_equal(patch->n_dims, 4);
	assert_int_equal(patch->dims[0], 12);
	assert_int_equal(patch->dims[1], 3);
	assert_int_equal(patch->bytes, 12 * 3 * 4 * 4 * sizeof(float));
	assert_non_null(mu_safetensors_find(file, "encoder.layers.encoder_layer_1.self_attention.in_proj_weight"));
	mu_safetensors_free(file);
}

static void misfits_are_named(void **state)
{
	(void)state;
	mural_model_config c = small_config(), other = c;
	save(&c);
	other.classes = 10;
	refuse(&other, "the weights are for 5 classes (heads.head.weight), the model has 10");
	other = c;
	other.image_width = 16;
	refuse(&other, "1 of another shape (encoder.pos_embedding is [1, 5, 12] instead of [1, 9, 12])");
	other = c;
	other.depth = 3;
	refuse(&other, "12 missing (encoder.layers.encoder_layer_2.ln_1.weight, ");
	other = c;
	other.depth = 1;
	refuse(&other, "12 unexpected (encoder.layers.encoder_layer_1.ln_1.weight, ");
	other = c;
	other.pool = MURAL_POOL_MEAN;
	refuse(&other, "2 missing (fc_norm.weight, fc_norm.bias); 2 unexpected (encoder.ln.weight, encoder.ln.bias)");
	other = c;
	other.width = 24;
	refuse(&other, "of another shape (conv_proj.weight is [12, 3, 4, 4] instead of [24, 3, 4, 4], ");
}

static void other_types_are_refused(void **state)
{
	(void)state;
	mural_model_config c = small_config();
	model m;
	mural_error err = {0};
	open_model(&m, &c, MU_F64);
	assert_int_equal(save_model(&m, &err), MURAL_BUG);
	err = (mural_error){0};
	assert_int_equal(load(&m, (mu_weights_wish){0}, NULL, &err), MURAL_BUG);
	close_model(&m);
}

/* All tensors of the model, the last norm's as whole numbers. */
static void whole_numbers_are_refused(void **state)
{
	(void)state;
	mural_model_config c = small_config();
	static const double zeros[4096];
	mu_safetensors_item items[64];
	size_t n = 0;
	model m;
	open_model(&m, &c, MU_F32);
	for (size_t u = 0; u < m.vit.n_units; u++)
		for (size_t i = 0; i < m.vit.units[u].n_tensors; i++) {
			const mu_tensor *tensor = &m.vit.units[u].tensors[i];
			assert_true(tensor->elements <= 4096 && n < 64);
			items[n++] = (mu_safetensors_item){
			        .name = tensor->name,
			        .type = tensor->role == MU_ROLE_NORM_W || tensor->role == MU_ROLE_NORM_B ? MU_I64
			                                                                                 : MU_F32,
			        .n_dims = (size_t)tensor->n_dims,
			        .dims = tensor->dims,
			        .data = zeros};
		}
	char *text = describe(&c);
	const mu_safetensors_note note = {MU_WEIGHTS_NOTE_KEY, text};
	assert_int_equal(mu_safetensors_write_noted(path, items, n, &note, 1, NULL), MURAL_OK);
	free(text);
	refuse(&c, "2 of no floating-point type (encoder.ln.weight is I64, encoder.ln.bias is I64)");
	close_model(&m);
}

/* A training may begin from weights for other classes and another image size. */
static void what_may_differ_is_adapted(void **state)
{
	(void)state;
	mural_model_config c = small_config(), other = c;
	const mu_weights_wish wish = {.new_head = true, .new_positions = true};
	char notes[MURAL_WEIGHTS_NOTES] = "";
	mural_error err = {0};
	model m, before;
	save(&c);
	other.classes = 9;
	other.image_height = 12;
	other.gelu = MURAL_GELU_TANH;
	open_model(&m, &other, MU_F32);
	open_model(&before, &other, MU_F32);
	fill(&m, 2);
	fill(&before, 2);
	assert_int_equal(load(&m, wish, notes, &err), MURAL_OK);
	assert_string_equal(notes,
	                    "the weights are for 5 classes, the model has 9: the head is initialised\n"
	                    "positions are resized from 2 x 2 to 3 x 2 patches: bicubic with aligned corners, as "
	                    "torchvision\n"
	                    "the weights were made with gelu erf, the model has tanh");
	size_t head = m.vit.n_units - 1;
	const mu_tensor *weight = mu_unit_tensor(&m.vit.units[head], MU_ROLE_HEAD_W);
	assert_memory_equal((float *)mu_store_parameters(&m.store, head) + weight->offset,
	                    (float *)mu_store_parameters(&before.store, head) + weight->offset,
	                    weight->elements * sizeof(float));
	assert_memory_not_equal(mu_store_parameters(&m.store, 1), mu_store_parameters(&before.store, 1),
	                        m.vit.units[1].elements * sizeof(float));
	close_model(&m);
	close_model(&before);
}

/* q, k and v are fused, so no shape tells the number of heads: the note does. */
static void other_heads_are_refused(void **state)
{
	(void)state;
	mural_model_config c = small_config(), other = c;
	save(&c);
	other.heads = 3;
	refuse(&other, "the weights were made with 2 heads (Mural's note), the model has 3");
}

static void a_missing_file_is_named(void **state)
{
	(void)state;
	mural_model_config c = small_config();
	unlink(path);
	refuse(&c, "No such file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(saved_weights_load_bit_for_bit),
	        cmocka_unit_test(the_file_has_torchvisions_shape),
	        cmocka_unit_test(misfits_are_named),
	        cmocka_unit_test(other_types_are_refused),
	        cmocka_unit_test(whole_numbers_are_refused),
	        cmocka_unit_test(what_may_differ_is_adapted),
	        cmocka_unit_test(other_heads_are_refused),
	        cmocka_unit_test(a_missing_file_is_named),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
