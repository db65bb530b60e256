/* The unit table: order, places, shapes, names, decay, rates, flags for optimizers. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "model/vit.h"

static mural_model_config config_of(const char *preset)
{
	mural_model_config c;
	mural_model_defaults(&c);
	assert_int_equal(mural_model_preset(&c, preset, NULL), MURAL_OK);
	return c;
}

/* Tensors in role order, aligned, without overlap, numbered over the model; totals agree. */
static void assert_sound(const mu_vit *vit)
{
	size_t parameters = 0, elements = 0, number = 0;
	assert_int_equal(vit->n_units, vit->config.depth + 2);
	for (size_t u = 0; u < vit->n_units; u++) {
		const mu_unit *unit = &vit->units[u];
		size_t end = 0;
		for (size_t i = 0; i < unit->n_tensors; i++) {
			const mu_tensor *tensor = &unit->tensors[i];
			size_t product = 1;
			for (int d = 0; d < tensor->n_dims; d++)
				product *= tensor->dims[d];
			assert_int_equal(tensor->elements, product);
			assert_int_equal(tensor->offset % MU_TENSOR_ALIGN, 0);
			assert_true(tensor->offset >= end && tensor->offset < end + MU_TENSOR_ALIGN);
			end = tensor->offset + product;
			assert_int_equal(tensor->number, number++);
			assert_true(tensor->lr_scale == 1.0f);
			assert_int_equal(tensor->flags, MU_TENSOR_DECAYS);
			assert_ptr_equal(mu_unit_tensor(unit, tensor->role), tensor);
			if (i > 0)
				assert_true(tensor->role > tensor[-1].role);
			parameters += product;
		}
		assert_true(unit->elements >= end && unit->elements < end + MU_TENSOR_ALIGN);
		assert_int_equal(unit->elements % MU_TENSOR_ALIGN, 0);
		assert_int_equal(unit->block, unit->kind == MU_UNIT_BLOCK ? (int)u - 1 : -1);
		elements += unit->elements;
	}
	assert_int_equal(vit->parameters, parameters);
	assert_int_equal(vit->elements, elements);
	assert_int_equal(mural_model_parameters(&vit->config), parameters);
}

static void tables_are_sound(void **state)
{
	(void)state;
	static const char *const presets[] = {"vit_ti_16", "vit_so400m_14", "vit_G_14", "mu"};
	for (size_t i = 0; i < 4; i++)
		for (int variant = 0; variant < 3; variant++) {
			mural_model_config c = config_of(presets[i]);
			c.pool = variant ? MURAL_POOL_MEAN : MURAL_POOL_TOKEN;
			c.class_token = variant != 2;
			c.classes = 7;
			mu_vit vit;
			assert_int_equal(mu_vit_init(&vit, &c, NULL), MURAL_OK);
			assert_sound(&vit);
			assert_int_equal(vit.prefix, variant != 2);
			mu_vit_release(&vit);
			assert_null(vit.units);
		}
	mu_vit_release(NULL);
	mu_vit_release(&(mu_vit){0});
}

static void assert_tensor(const mu_vit *vit, size_t unit, mu_role role, const char *name, const char *shape)
{
	const mu_tensor *tensor = mu_unit_tensor(&vit->units[unit], role);
	assert_non_null(tensor);
	assert_string_equal(tensor->name, name);
	char text[64] = "";
	for (int i = 0; i < tensor->n_dims; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%zu", i ? "," : "", tensor->dims[i]);
	assert_string_equal(text, shape);
}

static void names_and_shapes_of_vit_b_16(void **state)
{
	(void)state;
	mural_model_config c = config_of("vit_b_16");
	mu_vit vit;
	assert_int_equal(mu_vit_init(&vit, &c, NULL), MURAL_OK);
	size_t tensors = 0;
	for (size_t u = 0; u < vit.n_units; u++)
		tensors += vit.units[u].n_tensors;
	assert_int_equal(tensors, 152); /* torchvision's state_dict */
	assert_int_equal(vit.tokens, 197);
	assert_tensor(&vit, 0, MU_ROLE_PATCH_W, "conv_proj.weight", "768,3,16,16");
	assert_tensor(&vit, 0, MU_ROLE_PATCH_B, "conv_proj.bias", "768");
	assert_tensor(&vit, 0, MU_ROLE_CLASS_TOKEN, "class_token", "1,1,768");
	assert_tensor(&vit, 0, MU_ROLE_POSITION, "encoder.pos_embedding", "1,197,768");
#define LAYER "encoder.layers.encoder_layer_11."
	assert_tensor(&vit, 12, MU_ROLE_NORM1_W, LAYER "ln_1.weight", "768");
	assert_tensor(&vit, 12, MU_ROLE_NORM1_B, LAYER "ln_1.bias", "768");
	assert_tensor(&vit, 12, MU_ROLE_QKV_W, LAYER "self_attention.in_proj_weight", "2304,768");
	assert_tensor(&vit, 12, MU_ROLE_QKV_B, LAYER "self_attention.in_proj_bias", "2304");
	assert_tensor(&vit, 12, MU_ROLE_OUT_W, LAYER "self_attention.out_proj.weight", "768,768");
	assert_tensor(&vit, 12, MU_ROLE_OUT_B, LAYER "self_attention.out_proj.bias", "768");
	assert_tensor(&vit, 12, MU_ROLE_NORM2_W, LAYER "ln_2.weight", "768");
	assert_tensor(&vit, 12, MU_ROLE_NORM2_B, LAYER "ln_2.bias", "768");
	assert_tensor(&vit, 12, MU_ROLE_FC1_W, LAYER "mlp.0.weight", "3072,768");
	assert_tensor(&vit, 12, MU_ROLE_FC1_B, LAYER "mlp.0.bias", "3072");
	assert_tensor(&vit, 12, MU_ROLE_FC2_W, LAYER "mlp.3.weight", "768,3072");
	assert_tensor(&vit, 12, MU_ROLE_FC2_B, LAYER "mlp.3.bias", "768");
	assert_tensor(&vit, 13, MU_ROLE_NORM_W, "encoder.ln.weight", "768");
	assert_tensor(&vit, 13, MU_ROLE_NORM_B, "encoder.ln.bias", "768");
	assert_tensor(&vit, 13, MU_ROLE_HEAD_W, "heads.head.weight", "1000,768");
	assert_tensor(&vit, 13, MU_ROLE_HEAD_B, "heads.head.bias", "1000");
	assert_null(mu_unit_tensor(&vit.units[0], MU_ROLE_NORM_W));
	mu_vit_release(&vit);
}

static void mean_pooling_has_its_own_norm(void **state)
{
	(void)state;
	mural_model_config c = config_of("mu");
	c.pool = MURAL_POOL_MEAN;
	c.class_token = false;
	c.image_height = 32;
	mu_vit vit;
	assert_int_equal(mu_vit_init(&vit, &c, NULL), MURAL_OK);
	assert_null(mu_unit_tensor(&vit.units[0], MU_ROLE_CLASS_TOKEN));
	assert_tensor(&vit, 0, MU_ROLE_POSITION, "encoder.pos_embedding", "1,28,32");
	assert_tensor(&vit, 2, MU_ROLE_NORM_W, "fc_norm.weight", "32");
	assert_tensor(&vit, 2, MU_ROLE_NORM_B, "fc_norm.bias", "32");
	mu_vit_release(&vit);
}

static void decay_rule_spares_vectors(void **state)
{
	(void)state;
	mural_model_config c = config_of("vit_ti_16");
	mu_vit vit;
	assert_int_equal(mu_vit_init(&vit, &c, NULL), MURAL_OK);
	mu_vit_apply_decay_rule(&vit, true);
	size_t decaying = 0;
	for (size_t u = 0; u < vit.n_units; u++)
		for (size_t i = 0; i < vit.units[u].n_tensors; i++) {
			const mu_tensor *tensor = &vit.units[u].tensors[i];
			bool spared = tensor->n_dims == 1 || tensor->role == MU_ROLE_POSITION ||
			              tensor->role == MU_ROLE_CLASS_TOKEN;
			assert_int_equal((tensor->flags & MU_TENSOR_DECAYS) != 0, !spared);
			decaying += !spared;
		}
	assert_int_equal(decaying, 1 + 4 * 12 + 1);
	mu_vit_apply_decay_rule(&vit, false);
	assert_sound(&vit);
	mu_vit_release(&vit);
}

/* Numbers worked out by hand for MAE's decays, 0.65 and 0.75, of 12 blocks. */
static void rates_fall_towards_the_images(void **state)
{
	(void)state;
	static const struct {
		double decay, embed, first, last, head;
	} cases[] = {{0.65, 0.003697, 0.005688, 0.65, 1}, {0.75, 0.023757, 0.031676, 0.75, 1}, {1, 1, 1, 1, 1}};
	mural_model_config c = config_of("vit_b_16");
	mu_vit vit;
	assert_int_equal(mu_vit_init(&vit, &c, NULL), MURAL_OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		mu_vit_apply_lr_decay(&vit, cases[i].decay);
		const double want[] = {cases[i].embed, cases[i].first, cases[i].last, cases[i].head};
		const size_t unit[] = {0, 1, 12, 13};
		for (size_t k = 0; k < 4; k++)
			for (size_t t = 0; t < vit.units[unit[k]].n_tensors; t++)
				assert_true(fabs((double)vit.units[unit[k]].tensors[t].lr_scale - want[k]) < 5e-7);
	}
	assert_sound(&vit); /* a decay of 1 leaves a fresh table */
	mu_vit_release(&vit);
}

static void flags_for_lamb_and_muon(void **state)
{
	(void)state;
	mural_model_config c = config_of("vit_b_16");
	mu_vit vit;
	assert_int_equal(mu_vit_init(&vit, &c, NULL), MURAL_OK);
	mu_vit_apply_decay_rule(&vit, true);
	size_t all = 0, trusts = 0, trusts_decaying = 0, muons = 0;
	for (int decaying_only = 0; decaying_only < 2; decaying_only++) {
		mu_vit_apply_trust_rule(&vit, decaying_only);
		mu_vit_apply_muon_rule(&vit);
		for (size_t u = 0; u < vit.n_units; u++)
			for (size_t t = 0; t < vit.units[u].n_tensors; t++) {
				const mu_tensor *tensor = &vit.units[u].tensors[t];
				const bool muon = tensor->flags & MU_TENSOR_MUON,
				           trust = tensor->flags & MU_TENSOR_TRUST;
				assert_int_equal(muon, tensor->n_dims == 2);
				assert_int_equal(trust, !decaying_only || tensor->flags & MU_TENSOR_DECAYS);
				all += !decaying_only;
				trusts += trust && !decaying_only;
				trusts_decaying += trust && decaying_only;
				muons += muon && decaying_only;
			}
	}
	assert_int_equal(trusts, all);
	assert_int_equal(trusts_decaying, 1 + 4 * 12 + 1);
	assert_int_equal(muons, 4 * 12 + 1);
	mu_vit_release(&vit);
}

static void flops_of_published_models(void **state)
{
	(void)state;
	static const struct {
		const char *preset;
		double gmac;
	} costs[] = {{"vit_ti_16", 1.25}, {"vit_b_16", 17.56}, {"vit_l_14", 81.01}, {"vit_G_14", 483.8}};
	for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
		mural_model_config c = config_of(costs[i].preset);
		mu_vit vit;
		assert_int_equal(mu_vit_init(&vit, &c, NULL), MURAL_OK);
		assert_true(fabs(mu_vit_forward_flops(&vit) / 2e9 / costs[i].gmac - 1) < 0.005);
		mu_vit_release(&vit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(tables_are_sound),
	        cmocka_unit_test(names_and_shapes_of_vit_b_16),
	        cmocka_unit_test(mean_pooling_has_its_own_norm),
	        cmocka_unit_test(decay_rule_spares_vectors),
	        cmocka_unit_test(rates_fall_towards_the_images),
	        cmocka_unit_test(flags_for_lamb_and_muon),
	        cmocka_unit_test(flops_of_published_models),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
