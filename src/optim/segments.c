/* From a table of tensors to segments. SPDX-License-Identifier: MIT */
#include "optim/segments.h"

#include <stdlib.h>

#define ALONE (MU_TENSOR_TRUST | MU_TENSOR_MUON)

static bool continues(const mu_segment *open, const mu_tensor *tensor)
{
	return open && !(tensor->flags & ALONE) && open->decays == !!(tensor->flags & MU_TENSOR_DECAYS) &&
	       open->lr_scale == tensor->lr_scale;
}

/* Offset behind a tensor and its padding: the next one's beginning, or the span's end. */
static size_t end_of(const mu_unit *unit, size_t t)
{
	return t + 1 < unit->n_tensors ? unit->tensors[t + 1].offset : unit->elements;
}

static mu_segment *add(mu_segments *segments, const mu_tensor *tensor, size_t offset)
{
	mu_segment *segment = &segments->list[segments->count++];
	*segment = (mu_segment){.offset = offset,
	                        .elements = tensor->elements,
	                        .decays = tensor->flags & MU_TENSOR_DECAYS,
	                        .lr_scale = tensor->lr_scale,
	                        .trusts = tensor->flags & MU_TENSOR_TRUST,
	                        .muon = tensor->flags & MU_TENSOR_MUON};
	if (segment->trusts) {
		segment->trust = segments->n_extents++;
		segments->extents[segment->trust] = (mu_extent){offset, tensor->elements};
	}
	if (segment->muon) {
		segment->rows = tensor->dims[0];
		segment->cols = tensor->elements / tensor->dims[0];
	}
	return segment;
}

static mural_status reserve(mu_segments *segments, const mu_unit *units, size_t n_units, mural_error *err)
{
	size_t tensors = 0;
	for (size_t u = 0; u < n_units; u++)
		tensors += units[u].n_tensors;
	const size_t most = tensors ? tensors : 1;
	*segments = (mu_segments){.list = calloc(most, sizeof *segments->list),
	                          .extents = calloc(most, sizeof *segments->extents)};
	if (segments->list && segments->extents)
		return MURAL_OK;
	mu_segments_release(segments);
	mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the optimizer's table of %zu tensors", tensors);
	return MURAL_OUT_OF_MEMORY; /* in sight of static analysis, which must know that this is a failure */
}

mural_status mu_segments_init(mu_segments *segments, const mu_unit *units, size_t n_units, mural_error *err)
{
	MU_TRY(reserve(segments, units, n_units, err));
	size_t base = 0;
	mu_segment *open = NULL; /* the segment that the next tensor may join */
	for (size_t u = 0; u < n_units; base += units[u++].elements)
		for (size_t t = 0; t < units[u].n_tensors; t++) {
			const mu_tensor *tensor = &units[u].tensors[t];
			if (tensor->flags & MU_TENSOR_FROZEN) {
				open = NULL;
				continue;
			}
			if (!continues(open, tensor))
				open = add(segments, tensor, base + tensor->offset);
			if (tensor->flags & ALONE)
				open = NULL;
			else
				open->elements = base + end_of(&units[u], t) - open->offset;
		}
	return MURAL_OK;
}

void mu_segments_release(mu_segments *segments)
{
	if (!segments)
		return;
	free(segments->list);
	free(segments->extents);
	*segments = (mu_segments){0};
}
