/* How the host is doing: load of this process's cores, memory, temperature; and the process's own memory.
 *
 * Numbers that cannot be read are NaN (or 0 bytes): a container may hide all of them.
 * SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_HOST_STATS_H
#define MU_MONITOR_HOST_STATS_H

#include <stddef.h>
#include <stdint.h>

/* What a device was doing at one moment; the host fills it as any other device would. */
typedef struct mu_device_sample {
	char id[16]; /* "0", "1" for GPUs, "cpu" for the host */
	char name[128]; /* "AMD EPYC 9654", "NVIDIA H200" */
	double load; /* percent since the sample before, [0, 100] */
	size_t free_bytes, used_bytes, total_bytes;
	double celsius;
} mu_device_sample;

/* Remembers the counters of the sample before. Zero-initialise, then mu_host_stats_init. */
typedef struct mu_host_stats {
	uint64_t busy, all; /* ticks of this process's cores */
	char name[128];
} mu_host_stats;

void mu_host_stats_init(mu_host_stats *stats);
/* Load since the last sample (or init). */
void mu_host_stats_sample(mu_host_stats *stats, mu_device_sample *sample);

/* Resident memory of this process: now, and at most so far (VmHWM). Bytes; 0 if unknown. */
size_t mu_process_memory(void);
size_t mu_process_peak_memory(void);

#endif
