/* Sums of bf16 and fp16, which MPI does not know: operations of our own on 16-bit numbers. Each addition is made in fp32
 * and rounded once, so a sum over N ranks has at most N - 1 roundings, the same on all ranks. SPDX-License-Identifier: MIT */
#include "base/narrow.h"
#include "comm/mpi/inside.h"

static void add_bf16(void *more, void *sum, int *n, MPI_Datatype *type)
{
	(void)type;
	const uint16_t *x = more;
	uint16_t *to = sum;
	for (int i = 0; i < *n; i++)
		to[i] = mu_bf16_bits(mu_bf16_float(x[i]) + mu_bf16_float(to[i]));
}

static void add_f16(void *more, void *sum, int *n, MPI_Datatype *type)
{
	(void)type;
	const uint16_t *x = more;
	uint16_t *to = sum;
	for (int i = 0; i < *n; i++)
		to[i] = mu_f16_bits(mu_f16_float(x[i]) + mu_f16_float(to[i]));
}

int mu_mpi_narrow_make(mu_mpi_comm *comm)
{
	int code = MPI_Op_create(add_bf16, 1, &comm->add_bf16);
	return code ? code : MPI_Op_create(add_f16, 1, &comm->add_f16);
}

void mu_mpi_narrow_free(mu_mpi_comm *comm)
{
	if (comm->add_bf16 != MPI_OP_NULL)
		MPI_Op_free(&comm->add_bf16);
	if (comm->add_f16 != MPI_OP_NULL)
		MPI_Op_free(&comm->add_f16);
}
