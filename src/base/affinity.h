/* Which cores this process may use, and how the ranks of one host share them.
 *
 * A core is a physical one: two hyperthreads are one core, since arithmetic gains nothing from the second. What the operating
 * system allows is the affinity mask; a container's CPU quota (cgroup) may allow less. Ranks bind themselves only when
 * nobody has done it for them: all ranks of the host see the same mask, and it has a core for each. Each then takes an even,
 * contiguous slice, so that it stays within a socket where it can.
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_AFFINITY_H
#define MU_BASE_AFFINITY_H

#include <stdbool.h>
#include <stdint.h>

enum { MU_CPU_MAX = 4096 };

/* Plain bytes, so that ranks can exchange it. */
typedef struct mu_cpu_mask {
	uint64_t bits[MU_CPU_MAX / 64];
} mu_cpu_mask;

static inline bool mu_cpu_mask_has(const mu_cpu_mask *mask, int cpu)
{
	return mask->bits[cpu / 64] >> (cpu % 64) & 1;
}

static inline void mu_cpu_mask_add(mu_cpu_mask *mask, int cpu)
{
	mask->bits[cpu / 64] |= (uint64_t)1 << (cpu % 64);
}

/* The calling thread's mask; cpu 0 alone if the system does not tell. */
void mu_cpu_mask_read(mu_cpu_mask *mask);

/* Where cores are described: "/sys/devices/system/cpu" and "/sys/fs/cgroup", or a test's imitation. */
typedef struct mu_cpu_source {
	const char *cpus, *cgroup;
} mu_cpu_source;

extern const mu_cpu_source mu_cpu_system;

/* Physical cores in the mask; a cpu that is not described is a core of its own. */
int mu_cpu_cores(const mu_cpu_mask *mask, const mu_cpu_source *source);

/* Cores' worth of time that the cgroup allows, rounded up; 0 when it sets no limit. */
int mu_cpu_quota(const mu_cpu_source *source);

typedef struct mu_affinity_plan {
	int threads; /* recommended for this rank, >= 1, the same on all ranks of the host that share its mask */
	bool bind; /* to `mask`; else the mask stays as it is */
	bool oversubscribed; /* the ranks that share this mask are more than its cores */
	mu_cpu_mask mask;
} mu_affinity_plan;

/* masks: of the host's ranks, by local rank. */
void mu_affinity_make_plan(const mu_cpu_mask *masks, int local_ranks, int local_rank, const mu_cpu_source *source,
                           mu_affinity_plan *plan);

/* Binds the calling thread, and so those it starts later, if the plan says so. False if the system refused; the process then
 * runs unbound. The plan's number of threads is remembered for mu_affinity_threads. */
bool mu_affinity_apply(const mu_affinity_plan *plan);

/* Physical cores that this process may use now, its quota included; at least 1. */
int mu_affinity_cores(void);

/* Threads for arithmetic in this rank: what the applied plan says, else cores / local_ranks; at least 1. */
int mu_affinity_threads(int local_ranks);

#endif
