/* The team of the CPU table: what the processor can, how parts are spread, how partial sums are added.
 *
 * The team always has the context's full size: libgomp ends and restarts threads when consecutive regions differ in
 * size, which costs more than the idle members of a small job. Too small a job runs in the caller alone.
 * SPDX-License-Identifier: MIT */
#include "kernels/cpu/cpu.h"

#ifdef _OPENMP
#include <omp.h>
#endif

/* Columns that one part of add_partials sums: their doubles stay in registers. */
#define COLUMNS 64

mu_cpu_level mu_cpu_detect(mu_cpu_level limit)
{
	mu_cpu_level best = MU_CPU_BASE;
#if defined(__x86_64__) && defined(__GNUC__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		best = MU_CPU_AVX2;
	if (best == MU_CPU_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		best = MU_CPU_AVX512;
#endif
	return best < limit ? best : limit;
}

static void run_share(mu_cpu_kernel *kernel, const void *work, size_t parts, size_t thread, size_t threads)
{
	const size_t begin = parts * thread / threads, end = parts * (thread + 1) / threads;
	if (begin < end)
		kernel(work, begin, end, thread);
}

void mu_cpu_run(const mu_ops_context *c, mu_cpu_kernel *const kernel[MU_CPU_LEVELS], const void *work, size_t parts)
{
	mu_cpu_kernel *run = kernel[c->level];
#ifdef _OPENMP
	if (c->threads > 1 && parts > 1) {
#pragma omp parallel num_threads(c->threads)
		{
			/* OpenMP may grant fewer threads than asked for; the shares stay the same. */
			const size_t team = (size_t)omp_get_num_threads(), threads = (size_t)c->threads;
			for (size_t share = (size_t)omp_get_thread_num(); share < threads; share += team)
				run_share(run, work, parts, share, threads);
		}
		return;
	}
#endif
	run_share(run, work, parts, 0, 1);
}

struct partials {
	float *to;
	const float *partial;
	size_t chunks, width;
};

MU_CPU_KERNEL(add_columns)
{
	const struct partials *p = work;
	for (size_t part = begin; part < end; part++) {
		const size_t first = part * COLUMNS;
		const size_t columns = p->width - first < COLUMNS ? p->width - first : COLUMNS;
		double sum[COLUMNS] = {0};
		for (size_t chunk = 0; chunk < p->chunks; chunk++) {
			const float *row = p->partial + chunk * p->width + first;
#pragma omp simd
			for (size_t j = 0; j < columns; j++)
				sum[j] += row[j];
		}
#pragma omp simd
		for (size_t j = 0; j < columns; j++)
			p->to[first + j] += (float)sum[j];
	}
}

void mu_cpu_add_partials(const mu_ops_context *c, float *to, const float *partial, size_t chunks, size_t width)
{
	const struct partials p = {to, partial, chunks, width};
	mu_cpu_run(c, add_columns, &p, (width + COLUMNS - 1) / COLUMNS);
}
