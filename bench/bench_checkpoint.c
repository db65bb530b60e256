/* How long a checkpoint takes, and how much it holds the training up.
 *
 *     bench_checkpoint [FOLDER [MODEL [PAIRS [IMAGE-SIZE [THREADS]]]]]     default: . vit_l_16 5 224 0 (all)
 *
 * Write: pairs of (a set written in the background while nothing else runs, the same bytes written plainly from memory with write()
 * and fsync()), alternating, so that both see the same disk. A set also has checksums, a manifest, folders to sync and a name. The
 * processor's time of both is told as well: it is what a training on processors loses.
 *
 * Delay: the time of as many steps as the write needs and two more, begun with a checkpoint, minus that of as many steps without one,
 * again alternating. What it is held against is the copy of the same bytes in host memory alone, by one thread. A training that uses every
 * core loses the processor time of the writing thread as well; with THREADS one less than cores there is a core for it.
 * SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/checkpoint.h"

#define MOST_PAIRS 64
#define PIECE ((size_t)4 << 20) /* bytes of one write() */

static mural_error err;

static void must(mural_status status)
{
	if (status == MURAL_OK)
		return;
	mural_error_print(&err, stderr);
	exit(1);
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof *values, by_value);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static mural_engine *make_engine(int argc, char **arguments, mural_data **data, mural_comm **comm)
{
	static mural_config config;
	const char *argv[] = {"--model",
	                      argc > 2 ? arguments[2] : "vit_l_16",
	                      "--image-size",
	                      argc > 4 ? arguments[4] : "224",
	                      "--threads",
	                      argc > 5 ? arguments[5] : "0",
	                      "--classes",
	                      "1000",
	                      "--data",
	                      "synthetic",
	                      "--synthetic-images",
	                      "100000",
	                      "--batch",
	                      "1",
	                      "--checkpoint-every",
	                      "1"};
	const mural_config_sources sources = {.argc = sizeof argv / sizeof *argv, .argv = argv, .ranks = 1};
	const mural_model_config *m = &config.model;
	mural_engine *engine;
	must(mural_config_resolve(&config, NULL, &sources, &err));
	must(mural_comm_open(comm, "self", &err));
	must(mural_data_open(data, &config.data, MURAL_SPLIT_TRAIN, 0, m->channels, m->image_height, m->image_width,
	                     m->classes, &err));
	const mural_engine_settings settings = {.config = &config, .comm = *comm, .training = true, .train = *data};
	must(mural_engine_create(&engine, &settings, &err));
	must(mural_engine_train_begin(engine, &err));
	return engine;
}

/* Parts of the delay that the training spends itself, in seconds. */
typedef struct own_part {
	double begin, polls;
} own_part;

/* Seconds of `n` steps; checkpoint: with one begun before the first. */
static double steps(mural_engine *engine, const char *folder, int n, bool checkpoint, own_part *own)
{
	mural_step_facts facts;
	double from = mu_now();
	if (checkpoint)
		must(mural_checkpoint_begin(engine, folder, 1, &err));
	*own = (own_part){.begin = mu_now() - from};
	for (int i = 0; i < n; i++) {
		must(mural_engine_step(engine, &facts, &err));
		double before = mu_now();
		must(mural_checkpoint_poll(engine, false, NULL, &err));
		own->polls += mu_now() - before;
	}
	double seconds = mu_now() - from;
	must(mural_checkpoint_poll(engine, true, NULL, &err));
	return seconds;
}

/* Processor seconds of this process so far, those that the system spends for it included. */
static double processor(void)
{
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static double write_set(mural_engine *engine, const char *folder, double *busy)
{
	must(mural_checkpoint_begin(engine, folder, 1, &err));
	*busy = processor();
	double from = mu_now();
	must(mural_checkpoint_poll(engine, true, NULL, &err));
	*busy = processor() - *busy;
	return mu_now() - from;
}

static double write_plainly(const char *folder, const char *bytes, size_t n, double *busy)
{
	char path[4200];
	*busy = processor();
	snprintf(path, sizeof path, "%s/plain", folder);
	double from = mu_now();
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	bool fine = fd >= 0;
	for (size_t at = 0; at < n && fine; at += PIECE) {
		size_t piece = n - at < PIECE ? n - at : PIECE;
		fine = write(fd, bytes + at, piece) == (ssize_t)piece;
	}
	fine = fine && fsync(fd) == 0;
	double seconds = mu_now() - from;
	*busy = processor() - *busy;
	if (!fine)
		must(mu_fail(&err, MURAL_FAILED, path, "cannot be written"));
	close(fd);
	unlink(path);
	return seconds;
}

/* Bytes of the files of the newest set. */
static size_t set_bytes(const char *folder)
{
	mural_checkpoint_choice choice;
	mu_manifest manifest;
	size_t bytes = 0;
	must(mural_checkpoint_find(&choice, folder, &err));
	must(mu_manifest_read(&manifest, choice.set, &err));
	for (size_t i = 0; i < manifest.n_files; i++)
		bytes += manifest.files[i].bytes;
	mu_manifest_release(&manifest);
	return bytes;
}

static double measure_writing(mural_engine *engine, const char *folder, const char *bytes, size_t n, int pairs)
{
	double sets[MOST_PAIRS], plain[MOST_PAIRS], ratios[MOST_PAIRS], busy[MOST_PAIRS], busy_plainly[MOST_PAIRS];
	for (int i = 0; i < pairs; i++) {
		sets[i] = write_set(engine, folder, &busy[i]);
		plain[i] = write_plainly(folder, bytes, n, &busy_plainly[i]);
		ratios[i] = sets[i] / plain[i];
		printf("write %d: set %.2f s (%.0f MB/s, processor %.2f s), plain %.2f s (%.0f MB/s, processor %.2f "
		       "s), ratio "
		       "%.3f\n",
		       i + 1, sets[i], (double)n / sets[i] / 1e6, busy[i], plain[i], (double)n / plain[i] / 1e6,
		       busy_plainly[i], ratios[i]);
	}
	double seconds = median(sets, (size_t)pairs);
	printf("write: medians %.2f s and %.2f s, ratio %.3f (target: at most 1.2), processor %.2f s and %.2f s\n",
	       seconds, median(plain, (size_t)pairs), median(ratios, (size_t)pairs), median(busy, (size_t)pairs),
	       median(busy_plainly, (size_t)pairs));
	return seconds;
}

static void measure_delay(mural_engine *engine, const char *folder, char *to, const char *from, size_t n, int pairs,
                          double write_seconds)
{
	double delays[MOST_PAIRS], copies[MOST_PAIRS];
	own_part own, unused;
	double one = steps(engine, folder, 1, false, &unused);
	int count = (int)(write_seconds / one) + 3;
	for (int i = 0; i < pairs; i++) {
		double with = steps(engine, folder, count, true, &own);
		double without = steps(engine, folder, count, false, &unused);
		double copy = mu_now();
		memcpy(to, from, n);
		copies[i] = mu_now() - copy;
		delays[i] = with - without;
		printf("delay %d: %d steps %.3f s with a checkpoint, %.3f s without: %.3f s (its begin %.3f s, polls "
		       "%.4f s); copy alone %.3f s\n",
		       i + 1, count, with, without, delays[i], own.begin, own.polls, copies[i]);
	}
	printf("delay: medians %.3f s, copy %.3f s (target: delay at most the copy)\n", median(delays, (size_t)pairs),
	       median(copies, (size_t)pairs));
}

int main(int argc, char **argv)
{
	const char *where = argc > 1 ? argv[1] : ".";
	int pairs = argc > 3 ? atoi(argv[3]) : 5;
	char folder[4096];
	mural_data *data;
	mural_comm *comm;
	own_part unused;
	snprintf(folder, sizeof folder, "%s/bench-checkpoint-%d", where, (int)getpid());
	must(mkdir(folder, 0777) == 0 ? MURAL_OK : mu_fail(&err, MURAL_FAILED, folder, "cannot be made"));
	mural_engine *engine = make_engine(argc, argv, &data, &comm);
	steps(engine, folder, 1, true, &unused);
	size_t n = set_bytes(folder);
	const char *from = engine->copy; /* bytes that are there anyway; a set has some more in its headers */
	if (!from)
		must(mu_fail(&err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a copy: nothing to measure"));
	if (n > engine->plan.checkpoint)
		n = (size_t)engine->plan.checkpoint;
	char *to = malloc(n);
	if (!to)
		must(mu_fail(&err, MURAL_OUT_OF_MEMORY, NULL, "no memory for comparing"));
	memset(to, 1, n);
	printf("%s: a set of %.2f GB\n", argc > 2 ? argv[2] : "vit_l_16", (double)n / 1e9);
	pairs = pairs < 1 ? 1 : pairs > MOST_PAIRS ? MOST_PAIRS : pairs;
	double seconds = measure_writing(engine, folder, from, n, pairs);
	measure_delay(engine, folder, to, from, n, pairs, seconds);
	mural_engine_free(engine);
	mural_data_free(data);
	mural_comm_close(comm);
	mu_checkpoint_clear(folder);
	rmdir(folder);
	free(to);
	return 0;
}
