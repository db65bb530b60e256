/* Cores and who gets them. SPDX-License-Identifier: MIT */
#include "base/affinity.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const mu_cpu_source mu_cpu_system = {.cpus = "/sys/devices/system/cpu", .cgroup = "/sys/fs/cgroup"};

/* A process has one affinity, so one plan; set once at start, before other threads ask. */
static int planned_threads;

void mu_cpu_mask_read(mu_cpu_mask *mask)
{
	memset(mask, 0, sizeof *mask);
	if (sched_getaffinity(0, sizeof *mask, (cpu_set_t *)(void *)mask->bits))
		mu_cpu_mask_add(mask, 0);
}

/* The first number in a small file, or `otherwise`. */
static long long read_number(const char *folder, const char *name, long long otherwise)
{
	char path[512];
	long long value;
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *file = fopen(path, "r");
	if (!file)
		return otherwise;
	if (fscanf(file, "%lld", &value) != 1)
		value = otherwise;
	fclose(file);
	return value;
}

typedef struct cpu {
	int package, core, number; /* core: the lowest number among its hyperthreads */
} cpu;

static int by_place(const void *a, const void *b)
{
	const cpu *x = a, *y = b;
	if (x->package != y->package)
		return x->package < y->package ? -1 : 1;
	if (x->core != y->core)
		return x->core < y->core ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Describes the mask's cpus in the order of their places; returns how many there are. */
static int list_cpus(const mu_cpu_mask *mask, const mu_cpu_source *source, cpu *cpus)
{
	int n = 0;
	for (int i = 0; i < MU_CPU_MAX; i++) {
		char name[64];
		if (!mu_cpu_mask_has(mask, i))
			continue;
		cpus[n].number = i;
		snprintf(name, sizeof name, "cpu%d/topology/physical_package_id", i);
		cpus[n].package = (int)read_number(source->cpus, name, 0);
		/* "0,64" or "0-1": the first number names the core. */
		snprintf(name, sizeof name, "cpu%d/topology/thread_siblings_list", i);
		cpus[n++].core = (int)read_number(source->cpus, name, i);
	}
	qsort(cpus, (size_t)n, sizeof *cpus, by_place);
	return n;
}

static bool same_core(const cpu *a, const cpu *b)
{
	return a->package == b->package && a->core == b->core;
}

static int count_cores(const cpu *cpus, int n)
{
	int cores = 0;
	for (int i = 0; i < n; i++)
		cores += i == 0 || !same_core(&cpus[i - 1], &cpus[i]);
	return cores;
}

int mu_cpu_cores(const mu_cpu_mask *mask, const mu_cpu_source *source)
{
	cpu cpus[MU_CPU_MAX];
	return count_cores(cpus, list_cpus(mask, source, cpus));
}

int mu_cpu_quota(const mu_cpu_source *source)
{
	/* Version 2: "max 100000" or "200000 100000" (microseconds of time per period); version 1 has a file for each. */
	long long time = -1, period = 100000;
	char path[512];
	snprintf(path, sizeof path, "%s/cpu.max", source->cgroup);
	FILE *file = fopen(path, "r");
	if (file) {
		if (fscanf(file, "%lld %lld", &time, &period) != 2)
			time = -1;
		fclose(file);
	} else {
		time = read_number(source->cgroup, "cpu/cpu.cfs_quota_us", -1);
		period = read_number(source->cgroup, "cpu/cpu.cfs_period_us", 100000);
	}
	if (time <= 0 || period <= 0 || time / period >= MU_CPU_MAX)
		return 0;
	return (int)((time + period - 1) / period);
}

/* The slice of local rank r of n: cores r c/n up to (r + 1) c/n, all hyperthreads of each. */
static void take_slice(const cpu *cpus, int n_cpus, int cores, int rank, int ranks, mu_cpu_mask *mask)
{
	int first = (int)((long long)cores * rank / ranks), end = (int)((long long)cores * (rank + 1) / ranks);
	int core = -1;
	memset(mask, 0, sizeof *mask);
	for (int i = 0; i < n_cpus; i++) {
		core += i == 0 || !same_core(&cpus[i - 1], &cpus[i]);
		if (core >= first && core < end)
			mu_cpu_mask_add(mask, cpus[i].number);
	}
}

static int at_least_one(int n)
{
	return n > 1 ? n : 1;
}

/* Cores of a mask, as far as the quota lets `ranks` ranks of this host use them. */
static int usable(int cores, int quota)
{
	return quota > 0 && quota < cores ? quota : cores;
}

void mu_affinity_make_plan(const mu_cpu_mask *masks, int local_ranks, int local_rank, const mu_cpu_source *source,
                           mu_affinity_plan *plan)
{
	cpu cpus[MU_CPU_MAX];
	const mu_cpu_mask *mine = &masks[local_rank];
	int sharing = 1; /* ranks with this mask: this one, and ... */
	for (int r = 0; r < local_ranks; r++)
		sharing += r != local_rank && memcmp(&masks[r], mine, sizeof *mine) == 0;
	int n = list_cpus(mine, source, cpus);
	int cores = count_cores(cpus, n);

	memset(plan, 0, sizeof *plan);
	plan->mask = *mine;
	plan->oversubscribed = sharing > cores;
	plan->bind = local_ranks > 1 && sharing == local_ranks && cores >= local_ranks;
	if (plan->bind)
		take_slice(cpus, n, cores, local_rank, local_ranks, &plan->mask);
	int share = cores / sharing, quota = mu_cpu_quota(source);
	plan->threads = at_least_one(quota ? usable(share, at_least_one(quota / local_ranks)) : share);
}

bool mu_affinity_apply(const mu_affinity_plan *plan)
{
	planned_threads = plan->threads;
	return !plan->bind ||
	       sched_setaffinity(0, sizeof plan->mask, (const cpu_set_t *)(const void *)plan->mask.bits) == 0;
}

int mu_affinity_cores(void)
{
	mu_cpu_mask mask;
	mu_cpu_mask_read(&mask);
	return at_least_one(usable(mu_cpu_cores(&mask, &mu_cpu_system), mu_cpu_quota(&mu_cpu_system)));
}

int mu_affinity_threads(int local_ranks)
{
	return planned_threads > 0 ? planned_threads : at_least_one(mu_affinity_cores() / at_least_one(local_ranks));
}
