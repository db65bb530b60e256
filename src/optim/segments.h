/* Segments: runs of neighbouring tensors that an optimizer treats alike, each updated in one fused pass.
 *
 * Alike means the same decay flag and learning-rate scale; frozen tensors are in no segment. A tensor with a trust ratio
 * or of Muon's is a segment of its own, without the padding behind it. Elsewhere padding between tensors is updated
 * too, which is harmless: its gradient and value are zero and stay so.
 * SPDX-License-Identifier: MIT */
#ifndef MU_OPTIM_SEGMENTS_H
#define MU_OPTIM_SEGMENTS_H

#include "kernels/ops.h"
#include "model/unit.h"

typedef struct mu_segment {
	size_t offset, elements; /* in the spans of all units laid end to end */
	bool decays;
	float lr_scale;
	bool trusts; /* then `trust` is its place in the table of extents */
	size_t trust;
	bool muon; /* then it is a matrix: */
	size_t rows, cols;
} mu_segment;

typedef struct mu_segments {
	mu_segment *list;
	size_t count;
	mu_extent *extents; /* of the tensors with a trust ratio */
	size_t n_extents;
} mu_segments;

mural_status mu_segments_init(mu_segments *segments, const mu_unit *units, size_t n_units, mural_error *err);
void mu_segments_release(mu_segments *segments);

#endif
