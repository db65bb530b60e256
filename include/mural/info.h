/* What this machine offers and what is missing.
 *
 *     mural_info info;
 *     mural_info_collect(&info);
 *     if (!info.mpi.works)
 *             puts(info.mpi.advice);
 *
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_INFO_H
#define MURAL_INFO_H

#include <stddef.h>
#include <stdint.h>

#include "mural/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0"; static. */
MURAL_API const char *mural_version(void);

/* Something that Mural can use when it is there. */
typedef struct mural_info_part {
	bool works;
	char text[256]; /* what was found, or that it was not */
	char advice[512]; /* what to install or to do; "" when it works */
} mural_info_part;

#define MURAL_INFO_INSTRUCTIONS 8

typedef struct mural_info {
	/* build */
	char version[32];
	char compiler[128]; /* "gcc 12.2.0" */
	char matrix_products[64]; /* "oneDNN 2.6.3" or "plain loops" */
	char bf16_products[96]; /* by which instructions: "AMX", "AVX512_BF16", or "widened to fp32: " and why */
	bool openmp;
	char image_files[128]; /* which image files can be read: "PNG (libspng), JPEG (libjpeg-turbo)", "none" */
	/* host */
	char host[256];
	char processor[128];
	int cores; /* physical ones that this process may use */
	size_t memory_bytes, memory_free_bytes; /* 0 = not known */
	char instructions[MURAL_INFO_INSTRUCTIONS][16]; /* "AVX2", "AVX512", ... that matter for speed */
	size_t n_instructions;
	/* parts that may be missing */
	mural_info_part mpi; /* more than one rank */
	mural_info_part gpu;
	mural_info_part energy; /* what trainings use: counters of processors and cards */
	mural_info_part fashion_mnist; /* the default data set; both splits are opened and checked */
} mural_info;

/* Looks at everything; takes a second at most, starts no MPI. Never fails: what does not work says so itself. */
MURAL_API void mural_info_collect(mural_info *info);

/* Where a rank sits. */
typedef struct mural_seat {
	int rank, local_rank;
	int slot; /* mural_comm_slot */
	int cores; /* physical ones that it may use */
	char host[256];
	char cpus[128]; /* their numbers, hyperthreads included: "0-3,8"; cut with "..." */
	char device[128]; /* what it computes on: the processor's name */
} mural_seat;

/* Everybody's seat, by rank: seats has a place for each. Collective. */
MURAL_API mural_status mural_info_seats(mural_comm *comm, mural_seat *seats, mural_error *err);

/* As JSON, whole or not at all. seats: NULL, or those of n_seats ranks. MURAL_FAILED when the file cannot be written. */
MURAL_API mural_status mural_info_write(const mural_info *info, const mural_seat *seats, int n_seats, const char *path,
                                        mural_error *err);

#ifdef __cplusplus
}
#endif
#endif
