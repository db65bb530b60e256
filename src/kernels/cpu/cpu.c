/* The team of the CPU table: how parts are spread.
 *
 * The team always has the context's full size: libgomp ends and restarts threads when consecutive regions differ in
 * size, which costs more than the idle members of a small job. Too small a job runs in the caller alone.
 * SPDX-License-Identifier: MIT */
#include "kernels/cpu/cpu.h"

#ifdef _OPENMP
#include <omp.h>
#endif

static void run_share(mu_cpu_kernel *kernel, const void *work, size_t parts, size_t thread, size_t threads)
{
	const size_t begin = parts * thread / threads, end = parts * (thread + 1) / threads;
	if (begin < end)
		kernel(work, begin, end, thread);
}

void mu_cpu_run(const mu_ops_context *c, mu_cpu_kernel *kernel, const void *work, size_t parts)
{
#ifdef _OPENMP
	if (c->threads > 1 && parts > 1) {
#pragma omp parallel num_threads(c->threads)
		{
			/* OpenMP may grant fewer threads than asked for; the shares stay the same. */
			const size_t team = (size_t)omp_get_num_threads(), threads = (size_t)c->threads;
			for (size_t share = (size_t)omp_get_thread_num(); share < threads; share += team)
				run_share(kernel, work, parts, share, threads);
		}
		return;
	}
#else
	(void)c;
#endif
	run_share(kernel, work, parts, 0, 1);
}
