/* The mesh: rank = data * sequence_size + sequence, so that a sequence group is neighbours, most likely on one host.
 * SPDX-License-Identifier: MIT */
#include "comm/comm.h"

mural_status mu_mesh_make(int size, int rank, int sequence_size, mu_mesh *mesh, mural_error *err)
{
	*mesh = (mu_mesh){0};
	if (size < 1 || rank < 0 || rank >= size)
		return mu_bug(err, "a mesh was asked for with a rank outside its world");
	if (sequence_size < 1 || size % sequence_size)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "%d ranks cannot be split into sequence groups of %d: the group's size must divide the "
		               "number of ranks",
		               size, sequence_size);
	mesh->data_size = size / sequence_size;
	mesh->data_rank = rank / sequence_size;
	mesh->sequence_size = sequence_size;
	mesh->sequence_rank = rank % sequence_size;
	return MURAL_OK;
}
