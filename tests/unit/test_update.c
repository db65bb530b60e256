/* Segments cover every tensor once and keep unlike ones apart; what optimizers need and call; averages; clipping. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/vit.h"
#include "optim/ema.h"
#include "optim/update.h"

static void make(mu_vit *vit, bool weights_only)
{
	mural_model_config config;
	mural_error err = {0};
	mural_model_defaults(&config);
	assert_int_equal(mural_model_preset(&config, "mu", &err), MURAL_OK);
	assert_int_equal(mu_vit_init(vit, &config, &err), MURAL_OK);
	mu_vit_apply_decay_rule(vit, weights_only);
}

static const mu_segment *segment_of(const mu_segments *segments, size_t element)
{
	for (size_t i = 0; i < segments->count; i++)
		if (element >= segments->list[i].offset &&
		    element < segments->list[i].offset + segments->list[i].elements)
			return &segments->list[i];
	return NULL;
}

/* Every tensor lies in one segment with its own decay and scale; segments do not overlap. */
static void assert_faithful(const mu_vit *vit, const mu_segments *segments)
{
	size_t base = 0;
	for (size_t u = 0; u < vit->n_units; base += vit->units[u++].elements) {
		for (size_t t = 0; t < vit->units[u].n_tensors; t++) {
			const mu_tensor *tensor = &vit->units[u].tensors[t];
			const mu_segment *segment = segment_of(segments, base + tensor->offset);
			if (tensor->flags & MU_TENSOR_FROZEN) {
				assert_null(segment);
				continue;
			}
			assert_non_null(segment);
			assert_ptr_equal(segment, segment_of(segments, base + tensor->offset + tensor->elements - 1));
			assert_int_equal(segment->decays, !!(tensor->flags & MU_TENSOR_DECAYS));
			assert_true(segment->lr_scale == tensor->lr_scale);
		}
	}
	for (size_t i = 1; i < segments->count; i++)
		assert_true(segments->list[i].offset >= segments->list[i - 1].offset + segments->list[i - 1].elements);
}

static void everything_alike_is_one_segment(void **state)
{
	(void)state;
	mu_vit vit;
	mu_segments segments;
	make(&vit, false);
	assert_int_equal(mu_segments_init(&segments, vit.units, vit.n_units, NULL), MURAL_OK);
	assert_int_equal(segments.count, 1);
	assert_int_equal(segments.list[0].offset, 0);
	assert_int_equal(segments.list[0].elements, vit.elements);
	assert_faithful(&vit, &segments);
	mu_segments_release(&segments);
	mu_vit_release(&vit);
}

static void unlike_tensors_part(void **state)
{
	(void)state;
	mu_vit vit;
	mu_segments segments;
	make(&vit, true);
	vit.units[1].tensors[2].lr_scale = 0.5f;
	vit.units[1].tensors[4].flags |= MU_TENSOR_FROZEN;
	assert_int_equal(mu_segments_init(&segments, vit.units, vit.n_units, NULL), MURAL_OK);
	assert_true(segments.count > 3);
	assert_faithful(&vit, &segments);
	mu_segments_release(&segments);
	mu_vit_release(&vit);
}

/* Tensors with a trust ratio and Muon's matrices lie alone, as long as they are; the others join around them. */
static void some_tensors_lie_alone(void **state)
{
	(void)state;
	mu_vit vit;
	mu_segments segments;
	make(&vit, true);
	mu_vit_apply_trust_rule(&vit, true);
	mu_vit_apply_muon_rule(&vit);
	assert_int_equal(mu_segments_init(&segments, vit.units, vit.n_units, NULL), MURAL_OK);
	assert_faithful(&vit, &segments);
	size_t base = 0, alone = 0, matrices = 0;
	for (size_t u = 0; u < vit.n_units; base += vit.units[u++].elements)
		for (size_t t = 0; t < vit.units[u].n_tensors; t++) {
			const mu_tensor *tensor = &vit.units[u].tensors[t];
			const mu_segment *segment = segment_of(&segments, base + tensor->offset);
			assert_int_equal(segment->trusts, !!(tensor->flags & MU_TENSOR_TRUST));
			assert_int_equal(segment->muon, !!(tensor->flags & MU_TENSOR_MUON));
			if (!segment->trusts)
				continue;
			alone++;
			assert_int_equal(segment->offset, base + tensor->offset);
			assert_int_equal(segment->elements, tensor->elements);
			assert_int_equal(segments.extents[segment->trust].offset, segment->offset);
			assert_int_equal(segments.extents[segment->trust].elements, segment->elements);
			if (segment->muon) {
				matrices++;
				assert_int_equal(segment->rows, tensor->dims[0]);
				assert_int_equal(segment->cols, tensor->dims[1]);
			}
		}
	assert_int_equal(segments.n_extents, alone);
	assert_int_equal(alone, 4 * vit.config.depth + 2); /* four matrices a block, patch weight, head */
	assert_int_equal(matrices, 4 * vit.config.depth + 1);
	mu_segments_release(&segments);
	mu_vit_release(&vit);
}

static void needs_of_each_kind(void **state)
{
	(void)state;
	static const struct {
		mural_optimizer_kind kind;
		double momentum;
		size_t spans;
		bool work;
		unsigned flags;
	} cases[] = {{MURAL_OPTIMIZER_ADAMW, 0, 2, false, 0},
	             {MURAL_OPTIMIZER_ADAM, 0, 2, false, 0},
	             {MURAL_OPTIMIZER_SGD, 0, 0, false, 0},
	             {MURAL_OPTIMIZER_SGD, 0.9, 1, false, 0},
	             {MURAL_OPTIMIZER_LION, 0, 1, false, 0},
	             {MURAL_OPTIMIZER_LAMB, 0, 2, true, MU_TENSOR_TRUST},
	             {MURAL_OPTIMIZER_MUON, 0.95, 2, true, MU_TENSOR_MUON},
	             {MURAL_OPTIMIZER_OTHER, 0, 0, false, 0}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const mural_optimizer_config config = {.kind = cases[i].kind, .momentum = cases[i].momentum};
		const mu_optimizer_needs needs = mu_update_needs(&config);
		assert_int_equal(needs.spans, cases[i].spans);
		assert_int_equal(needs.work, cases[i].work);
		assert_int_equal(needs.flags, cases[i].flags);
	}
}

static void a_table_may_lack_an_optimizer(void **state)
{
	(void)state;
	mural_error err = {0};
	mural_optimizer_config config = {.kind = MURAL_OPTIMIZER_MUON};
	assert_int_equal(mu_update_check(&config, &mu_ops_cpu, &err), MURAL_OK);
	mu_ops ops = mu_ops_cpu;
	ops.name = "abacus";
	ops.newton_schulz = NULL;
	assert_int_equal(mu_update_check(&config, &ops, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "optimizer Muon is not built for the \"abacus\" operations yet"));
	config.kind = MURAL_OPTIMIZER_ADAMW;
	assert_int_equal(mu_update_check(&config, &ops, NULL), MURAL_OK);
	config = (mural_optimizer_config){.kind = MURAL_OPTIMIZER_OTHER, .name = "rprop"};
	err = (mural_error){0};
	assert_int_equal(mu_update_check(&config, &mu_ops_cpu, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "optimizer \"rprop\" is not supported yet"));
	ops.ema = NULL;
	err = (mural_error){0};
	assert_int_equal(mu_ema_apply(&(mu_ema){.n = 0}, &ops, NULL, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "averages of weights are not built"));
}

/* Which call of the optimizer covers what, with which numbers. */
static struct {
	int calls;
	size_t elements;
	double lr_scale, decay;
	const mu_decision *at;
	bool decoupled;
} seen;

static mural_status note_adamw(mu_ops_context *context, const mu_adamw *call, mural_error *err)
{
	(void)context;
	(void)err;
	seen.calls++;
	seen.elements += call->n;
	seen.lr_scale = call->lr_scale;
	seen.decay += call->decay;
	seen.at = call->at;
	seen.decoupled = call->decoupled;
	return MURAL_OK;
}

static void update_passes_the_right_numbers(void **state)
{
	(void)state;
	const mu_ops ops = {.adamw = note_adamw};
	mu_segment list[] = {{.offset = 0, .elements = 64, .decays = true, .lr_scale = 1},
	                     {.offset = 64, .elements = 32, .lr_scale = 0.5f}};
	const mu_segments segments = {.list = list, .count = 2};
	mural_optimizer_config optimizer = {
	        .kind = MURAL_OPTIMIZER_ADAMW, .eps = 1e-8, .weight_decay = 0.3, .bias_correction = true};
	const mu_decision decision = {.lr = 0.2};
	float span[96];
	const mu_update update = {
	        .type = MU_F32, .parameters = span, .m = span, .v = span, .gradients = span, .decision = &decision};
	memset(&seen, 0, sizeof seen);
	assert_int_equal(mu_update_apply(&segments, &optimizer, &update, &ops, NULL, NULL), MURAL_OK);
	assert_int_equal(seen.calls, 2);
	assert_int_equal(seen.elements, 96);
	assert_true(seen.lr_scale == 0.5 && seen.decay == 0.3 && seen.at == &decision && seen.decoupled);
	optimizer.kind = MURAL_OPTIMIZER_ADAM;
	assert_int_equal(mu_update_apply(&segments, &optimizer, &update, &ops, NULL, NULL), MURAL_OK);
	assert_true(!seen.decoupled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(everything_alike_is_one_segment), cmocka_unit_test(unlike_tensors_part),
	        cmocka_unit_test(some_tensors_lie_alone),          cmocka_unit_test(needs_of_each_kind),
	        cmocka_unit_test(a_table_may_lack_an_optimizer),   cmocka_unit_test(update_passes_the_right_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
