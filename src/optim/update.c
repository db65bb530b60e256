/* Optimizers over segments. SPDX-License-Identifier: MIT */
#include "optim/update.h"

#include <math.h>
#include <stdlib.h>

static bool alike(const mu_segment *segment, const mu_tensor *tensor)
{
	return segment->decays == !!(tensor->flags & MU_TENSOR_DECAYS) && segment->lr_scale == tensor->lr_scale;
}

/* Offset behind a tensor and its padding: the next one's beginning, or the span's end. */
static size_t end_of(const mu_unit *unit, size_t t)
{
	return t + 1 < unit->n_tensors ? unit->tensors[t + 1].offset : unit->elements;
}

mural_status mu_segments_init(mu_segments *segments, const mu_unit *units, size_t n_units, mural_error *err)
{
	size_t tensors = 0;
	for (size_t u = 0; u < n_units; u++)
		tensors += units[u].n_tensors;
	*segments = (mu_segments){.list = calloc(tensors ? tensors : 1, sizeof *segments->list)};
	if (!segments->list)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the optimizer's table of %zu tensors",
		               tensors);
	size_t base = 0;
	mu_segment *open = NULL;
	for (size_t u = 0; u < n_units; base += units[u++].elements) {
		for (size_t t = 0; t < units[u].n_tensors; t++) {
			const mu_tensor *tensor = &units[u].tensors[t];
			size_t begin = base + tensor->offset, end = base + end_of(&units[u], t);
			if (tensor->flags & MU_TENSOR_FROZEN) {
				open = NULL;
				continue;
			}
			if (!open || !alike(open, tensor)) {
				open = &segments->list[segments->count++];
				*open = (mu_segment){.offset = begin,
				                     .decays = tensor->flags & MU_TENSOR_DECAYS,
				                     .lr_scale = tensor->lr_scale};
			}
			open->elements = end - open->offset;
		}
	}
	return MURAL_OK;
}

void mu_segments_release(mu_segments *segments)
{
	if (!segments)
		return;
	free(segments->list);
	*segments = (mu_segments){0};
}

double mu_clip_factor(double norm, double limit)
{
	if (limit <= 0)
		return 1;
	double factor = limit / (norm + 1e-6);
	return factor < 1 ? factor : 1;
}

mural_status mu_update_apply(const mu_segments *segments, const mural_optimizer_config *optimizer, mu_schedule_point at,
                             const mu_update *update, const mu_ops *ops, mu_ops_context *context, mural_error *err)
{
	size_t element = mu_dtype_bytes(update->type), state = update->type == MU_F64 ? sizeof(double) : sizeof(float);
	bool corrects = optimizer->bias_correction;
	mu_adamw call = {
	        .type = update->type,
	        .beta1 = at.beta1,
	        .beta2 = at.beta2,
	        .eps = optimizer->eps,
	        .bias1 = corrects ? 1 - pow(at.beta1, (double)update->number) : 1,
	        .bias2 = corrects ? 1 - pow(at.beta2, (double)update->number) : 1,
	        .gradient_scale = update->gradient_scale,
	        .decoupled = optimizer->kind == MURAL_OPTIMIZER_ADAMW,
	};
	for (size_t i = 0; i < segments->count; i++) {
		const mu_segment *segment = &segments->list[i];
		call.n = segment->elements;
		call.lr = at.lr * segment->lr_scale;
		call.decay = segment->decays ? optimizer->weight_decay : 0;
		call.parameter = (char *)update->parameters + segment->offset * element;
		call.gradient = (const char *)update->gradients + segment->offset * element;
		call.m = (char *)update->m + segment->offset * state;
		call.v = (char *)update->v + segment->offset * state;
		MU_TRY(ops->adamw(context, &call, err));
	}
	return MURAL_OK;
}
