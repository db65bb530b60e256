/* How a job becomes MPI calls: one if it is short enough, else one per piece.
 *
 * Pieces of a plain array are contiguous. Pieces of *blocks* (all-gather, all-to-all) lie `count` elements apart; a derived
 * type with that stride says so. Reductions take no derived types, so a long reduce-scatter reduces each rank's block to
 * that rank, piece by piece; the same way serves when the result shall stay in its place in the buffer.
 * SPDX-License-Identifier: MIT */
#include "comm/mpi/inside.h"

/* Bytes of one piece of an all-reduce. Libraries allocate a copy of what they reduce: from 32 MiB on glibc maps it anew each time,
 * and it does not stay in the cache. 88 MB, 2 ranks on 2 cores, Open MPI 4.1.4, milliseconds of processor time per rank: 94 in
 * one piece, 84 with 32 MiB, 34 with 8 MiB, 37 with 4, 50 with 1; 4 ranks: 106, 86, 60, 60, 57. */
static const size_t REDUCE_BYTES = (size_t)8 << 20;

static MPI_Datatype mpi_type(mu_dtype type)
{
	switch (type) {
	case MU_F32: return MPI_FLOAT;
	case MU_F64: return MPI_DOUBLE;
	case MU_I32: return MPI_INT32_T;
	case MU_I64: return MPI_INT64_T;
	case MU_BF16:
	case MU_F16: return MPI_UINT16_T; /* with operations of our own */
	default: return MPI_UINT8_T; /* MU_U8: check.h refuses the rest */
	}
}

static MPI_Op mpi_op(const mu_mpi_comm *comm, const mu_mpi_job *job)
{
	if (job->type == MU_BF16)
		return comm->add_bf16;
	if (job->type == MU_F16)
		return comm->add_f16;
	const mu_reduce how = job->how;
	return how == MU_SUM ? MPI_SUM : how == MU_MAX ? MPI_MAX : MPI_MIN;
}

static const void *block(const mu_mpi_job *job, const void *base, int rank)
{
	return (const char *)base + (size_t)rank * job->count * job->width;
}

static size_t pieces(const mu_mpi_job *job)
{
	return (job->count + job->piece - 1) / job->piece;
}

static bool reduces_by_rank(const mu_mpi_job *job)
{
	return job->kind == MU_MPI_REDUCE_SCATTER &&
	       (job->piece < job->count || job->to == block(job, job->from, job->group->facts.rank));
}

void mu_mpi_plan(const mu_mpi_comm *comm, mu_mpi_job *job)
{
	size_t size = (size_t)job->group->facts.size;
	bool blocks =
	        job->kind == MU_MPI_ALL_GATHER || job->kind == MU_MPI_REDUCE_SCATTER || job->kind == MU_MPI_ALL_TO_ALL;
	job->step = 0;
	job->strided = MPI_DATATYPE_NULL;
	if (job->kind == MU_MPI_BARRIER || job->kind == MU_MPI_GROUP) {
		job->steps = job->kind == MU_MPI_GROUP ? 2 : 1;
		return;
	}
	size_t bytes = comm->limit;
	if (job->kind == MU_MPI_ALL_REDUCE && bytes > REDUCE_BYTES)
		bytes = REDUCE_BYTES;
	job->piece = bytes / (job->width * (blocks ? size : 1));
	if (job->piece == 0)
		job->piece = 1;
	job->steps = pieces(job);
	if (reduces_by_rank(job))
		job->steps *= size;
}

/* n elements at the start of each block, blocks `count` elements apart. */
static int make_strided(mu_mpi_job *job, int n)
{
	MPI_Datatype packed;
	int code = MPI_Type_contiguous(n, MPI_BYTE, &packed);
	if (code)
		return code;
	code = MPI_Type_create_resized(packed, 0, (MPI_Aint)(job->count * job->width), &job->strided);
	MPI_Type_free(&packed);
	return code ? code : MPI_Type_commit(&job->strided);
}

static int start_blocks(mu_mpi_job *job, size_t at, size_t n)
{
	const char *from = (const char *)job->from + at * job->width;
	char *to = (char *)job->to + at * job->width;
	bool in_place = job->kind == MU_MPI_ALL_GATHER && job->from == block(job, job->to, job->group->facts.rank);
	MPI_Datatype type = MPI_BYTE;
	int bytes = (int)(n * job->width), taken = bytes;
	if (n < job->count) {
		int code = make_strided(job, bytes);
		if (code)
			return code;
		type = job->strided;
		taken = 1;
	}
	if (job->kind == MU_MPI_ALL_TO_ALL)
		return MPI_Ialltoall(from, taken, type, to, taken, type, job->group->among, &job->request);
	return MPI_Iallgather(in_place ? MPI_IN_PLACE : from, bytes, MPI_BYTE, to, taken, type, job->group->among,
	                      &job->request);
}

static int start_reduce_by_rank(const mu_mpi_comm *comm, mu_mpi_job *job, size_t at, size_t n, int root)
{
	const char *from = (const char *)block(job, job->from, root) + at * job->width;
	char *to = (char *)job->to + at * job->width;
	bool in_place = root == job->group->facts.rank && from == to;
	return MPI_Ireduce(in_place ? MPI_IN_PLACE : from, to, (int)n, mpi_type(job->type), mpi_op(comm, job), root,
	                   job->group->among, &job->request);
}

/* MPI has no split that does not block, and the heart does not beat meanwhile: so nobody begins it before all are there. */
static int make_group(mu_mpi_job *job)
{
	mu_mpi_group *group = job->to;
	const mu_mpi_group *parent = job->group;
	const int colour = job->count ? 0 : MPI_UNDEFINED;
	job->request = MPI_REQUEST_NULL;
	MPI_Comm among = MPI_COMM_NULL;
	int code = MPI_Comm_split(parent->among, colour, parent->facts.rank, &among);
	if (code || among == MPI_COMM_NULL)
		return code;
	group->among = among;
	MPI_Comm_rank(group->among, &group->facts.rank);
	MPI_Comm_size(group->among, &group->facts.size);
	return MPI_Comm_set_errhandler(group->among, MPI_ERRORS_RETURN);
}

int mu_mpi_start(const mu_mpi_comm *comm, mu_mpi_job *job)
{
	if (job->kind == MU_MPI_GROUP && job->step == 1)
		return make_group(job);
	if (job->kind == MU_MPI_BARRIER || job->kind == MU_MPI_GROUP)
		return MPI_Ibarrier(job->group->among, &job->request);
	size_t at = job->step % pieces(job) * job->piece;
	size_t n = job->count - at < job->piece ? job->count - at : job->piece;
	char *to = (char *)job->to + at * job->width;
	switch (job->kind) {
	case MU_MPI_ALL_REDUCE:
		return MPI_Iallreduce(MPI_IN_PLACE, to, (int)n, mpi_type(job->type), mpi_op(comm, job),
		                      job->group->among, &job->request);
	case MU_MPI_BROADCAST: return MPI_Ibcast(to, (int)n, MPI_BYTE, job->root, job->group->among, &job->request);
	case MU_MPI_REDUCE_SCATTER:
		if (reduces_by_rank(job))
			return start_reduce_by_rank(comm, job, at, n, (int)(job->step / pieces(job)));
		return MPI_Ireduce_scatter_block(job->from, to, (int)n, mpi_type(job->type), mpi_op(comm, job),
		                                 job->group->among, &job->request);
	default: return start_blocks(job, at, n);
	}
}
