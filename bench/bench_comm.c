/* What an all-reduce costs: alone, under arithmetic, and of the arithmetic.
 *
 *     mpirun -n 2 --bind-to none build/release/bin/bench_comm [MiB=88] [BUCKETS=4] [MILLISECONDS=100] [REPEATS=15]
 *
 * A step like a backward pass: arithmetic for so many milliseconds in slices, after each of which a bucket's reduction begins, as in
 * a training. Medians over the repeats of the slowest rank, in milliseconds:
 *     arithmetic   without communication
 *     alone        all buckets begun at once and waited for
 *     both         the step
 *     exposed      both - arithmetic
 *     processor    of the comm thread and whatever MPI starts, per step of `both` and rank
 * Small: 8 bytes, a thousand times, microseconds each: what an agreement costs.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/affinity.h"
#include "base/clock.h"
#include "comm/comm.h"

enum { MOST_BUCKETS = 64, MOST_REPEATS = 200, SMALL = 1000 };

static mural_comm *comm;
static mural_error err;
static volatile float sink;

static void check(mural_status status)
{
	if (status == MURAL_OK)
		return;
	mural_error_print(&err, stderr);
	mural_comm_abort(comm, 1);
}

static double seconds_of(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* n rounds over 128 KiB: in the second cache, as blocked products are. */
static void compute(long n)
{
	static float a[32768];
	for (long i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof a / sizeof *a; k++)
			a[k] = a[k] * 0.999f + 0.5f;
	sink = a[7];
}

static long calibrate(double seconds)
{
	long n = 64;
	for (;;) {
		double begun = mu_now();
		compute(n);
		double took = mu_now() - begun;
		if (took > 0.05)
			return (long)((double)n * seconds / took);
		n *= 2;
	}
}

static double slowest(double seconds)
{
	check(mu_comm_all_reduce(comm, &seconds, 1, MU_F64, MU_MAX, &err));
	return seconds;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof *values, compare);
	return values[n / 2];
}

/* One step; rounds 0: no arithmetic, buckets 0: no communication. */
static double step(float *data, size_t count, int buckets, int slices, long rounds)
{
	mu_pending pending[MOST_BUCKETS] = {0};
	check(mu_comm_barrier(comm, &err));
	double begun = mu_now();
	for (int b = 0; b < slices; b++) {
		compute(rounds / slices);
		if (b < buckets)
			check(comm->table->all_reduce_begin(comm, data + (size_t)b * count, count, MU_F32, MU_SUM,
			                                    &pending[b], &err));
	}
	for (int b = 0; b < buckets; b++)
		check(comm->table->wait(comm, &pending[b], &err));
	return slowest(mu_now() - begun);
}

static double small(void)
{
	double begun = mu_now();
	for (int i = 0; i < SMALL; i++) {
		double one = 1;
		check(mu_comm_all_reduce(comm, &one, 1, MU_F64, MU_SUM, &err));
	}
	return slowest(mu_now() - begun) / SMALL;
}

static double other_threads(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

static int argument(int argc, char **argv, int i, int otherwise, int most)
{
	int value = argc > i ? atoi(argv[i]) : otherwise;
	return value < 1 ? 1 : value > most ? most : value;
}

int main(int argc, char **argv)
{
	int mib = argument(argc, argv, 1, 88, 65536), buckets = argument(argc, argv, 2, 4, MOST_BUCKETS);
	int milliseconds = argument(argc, argv, 3, 100, 100000), repeats = argument(argc, argv, 4, 15, MOST_REPEATS);
	double arithmetic[MOST_REPEATS], alone[MOST_REPEATS], both[MOST_REPEATS], processor = 0;
	if (mural_comm_open(&comm, "auto", &err) != MURAL_OK) {
		mural_error_print(&err, stderr);
		return 1;
	}
	const mural_comm_facts *facts = mural_comm_get_facts(comm);
	size_t count = ((size_t)mib << 18) / (size_t)buckets;
	float *data = calloc(count * (size_t)buckets, sizeof *data);
	if (!data)
		return 1;
	memset(data, 0, count * (size_t)buckets * sizeof *data);
	long rounds = calibrate(milliseconds * 1e-3);
	step(data, count, buckets, buckets, rounds);
	for (int r = 0; r < repeats; r++) {
		arithmetic[r] = step(data, count, 0, buckets, rounds);
		alone[r] = step(data, count, buckets, buckets, 0);
		double before = other_threads();
		both[r] = step(data, count, buckets, buckets, rounds);
		processor += other_threads() - before;
	}
	double a = median(arithmetic, repeats), l = median(alone, repeats), b = median(both, repeats), s = small();
	processor = slowest(processor);
	if (facts->rank == 0)
		printf("%s, %d ranks, %d MiB in %d buckets: arithmetic %.1f, alone %.1f, both %.1f, exposed %.1f, "
		       "processor %.1f ms; small %.1f us\n",
		       facts->library, facts->size, mib, buckets, a * 1e3, l * 1e3, b * 1e3, (b - a) * 1e3,
		       processor / repeats * 1e3, s * 1e6);
	free(data);
	mural_comm_close(comm);
	return 0;
}
