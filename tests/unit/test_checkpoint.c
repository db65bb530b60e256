/* Checkpoints: a set brings everything back bit for bit, every kind of damage is refused by name, and the sets of a run are
 * kept, chosen and removed as promised. timeout: 300
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/safetensors.h"
#include "engine/checkpoint.h"
#include "engine/optimizer_state.h"
#include "support/data_files.h"

static char *folder; /* the run's */
static mural_comm *comm;

typedef struct training {
	mural_config config;
	mural_data *data;
	mural_engine *engine;
} training;

static void create(training *t, const char *option, const char *value)
{
	const char *argv[] = {"--model",
	                      "mu",
	                      "--image-size",
	                      "8",
	                      "--patch",
	                      "4",
	                      "--channels",
	                      "1",
	                      "--classes",
	                      "3",
	                      "--data",
	                      "synthetic",
	                      "--synthetic-images",
	                      "22",
	                      "--batch",
	                      "6",
	                      "--dropout",
	                      "0.1",
	                      "--epochs",
	                      "9",
	                      "--micro-batch",
	                      "3",
	                      "--threads",
	                      "1",
	                      option,
	                      value};
	mural_error err = {0};
	int argc = (int)(sizeof argv / sizeof *argv) - (option ? 0 : 2);
	mural_config_sources sources = {.argc = argc, .argv = argv, .ranks = 1};
	*t = (training){0};
	mural_config_resolve(&t->config, NULL, &sources, &err);
	assert_string_equal(err.message, "");
	const mural_model_config *m = &t->config.model;
	assert_int_equal(mural_data_open(&t->data, &t->config.data, MURAL_SPLIT_TRAIN, t->config.run.seed, m->channels,
	                                 m->image_height, m->image_width, m->classes, &err),
	                 MURAL_OK);
	mural_engine_settings settings = {.config = &t->config, .comm = comm, .training = true, .train = t->data};
	assert_int_equal(mural_engine_create(&t->engine, &settings, &err), MURAL_OK);
}

static void destroy(training *t)
{
	mural_engine_free(t->engine);
	mural_data_free(t->data);
}

static void begin(training *t)
{
	mural_error err = {0};
	mural_engine_train_begin(t->engine, &err);
	assert_string_equal(err.message, "");
}

static double step(training *t)
{
	mural_step_facts facts;
	assert_int_equal(mural_engine_step(t->engine, &facts, NULL), MURAL_OK);
	assert_false(facts.finished);
	return facts.loss;
}

static int enter(void **state)
{
	(void)state;
	folder = test_folder_create();
	return !folder || mural_comm_open(&comm, "self", NULL) != MURAL_OK;
}

static int leave(void **state)
{
	(void)state;
	mural_comm_close(comm);
	mu_checkpoint_clear(folder);
	test_folder_remove(folder);
	return 0;
}

static int each(void **state)
{
	(void)state;
	mu_checkpoint_clear(folder);
	return 0;
}

/* A run of `steps` steps with a set after each of them. */
static void run_with_sets(uint64_t steps, unsigned keep)
{
	training t;
	create(&t, NULL, NULL);
	begin(&t);
	for (uint64_t i = 0; i < steps; i++) {
		step(&t);
		assert_int_equal(mural_checkpoint_save(t.engine, folder, keep, NULL), MURAL_OK);
	}
	destroy(&t);
}

static const char *path_of(uint64_t number, const char *name)
{
	static char path[MU_CHECKPOINT_FILE];
	char set[MURAL_CHECKPOINT_PATH];
	assert_int_equal(mu_checkpoint_path(set, folder, number, NULL), MURAL_OK);
	snprintf(path, sizeof path, "%s/%s", set, name);
	return path;
}

static bool exists(uint64_t number)
{
	return access(path_of(number, MU_CHECKPOINT_MANIFEST), F_OK) == 0;
}

static void write_bytes(const char *path, const void *bytes, size_t n)
{
	FILE *out = fopen(path, "wb");
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, n, out), n);
	assert_int_equal(fclose(out), 0);
}

/* A copy that the caller frees. */
static char *read_bytes(const char *path, size_t *n)
{
	char *bytes;
	assert_int_equal(mu_file_read(path, "file", 1 << 24, MURAL_DATA, &bytes, n, NULL), MURAL_OK);
	return bytes;
}

/* Steps 1 .. 3 of 4 make an epoch; the set is taken in the middle of the second one. */
static void a_set_brings_everything_back(void **state)
{
	(void)state;
	enum { BEFORE = 6, AFTER = 9 };
	training a, b;
	double expected[AFTER];
	mural_checkpoint_choice choice;
	create(&a, NULL, NULL);
	begin(&a);
	for (int i = 0; i < BEFORE; i++)
		step(&a);
	mu_epoch_row rows[2] = {{.epoch = 1, .train_loss = 0.1, .test_loss = 1.0 / 3, .test_accuracy = 0.25},
	                        {.epoch = 2, .train_loss = 1e-300, .train_accuracy = 1, .seconds = 2.5}};
	mu_run_totals totals = {.epoch = {.images = 12, .loss = 0.1 + 0.2, .top1 = 7, .seconds = 1e-9},
	                        .images = UINT64_MAX,
	                        .seconds = 3.25,
	                        .test_top5 = 0.75,
	                        .phase_seconds = {[MU_PHASE_DATA] = 0.7},
	                        .validation = {.last = {6, 0.1 + 0.2, 0.5, 1},
	                                       .best = {4, 0.3, 1.0 / 3, 1},
	                                       .reference = {2, 1e300, 0, 0.25},
	                                       .waited = 3},
	                        .epochs = rows,
	                        .n_epochs = 2};
	assert_int_equal(mu_checkpoint_begin(a.engine,
	                                     &(mu_checkpoint_wish){.run_dir = folder, .keep = 2, .totals = &totals},
	                                     NULL),
	                 MURAL_OK);
	totals.n_epochs = 1; /* begin has a copy of the history as well */
	rows[0].epoch = 9;
	assert_int_equal(mural_checkpoint_poll(a.engine, true, NULL, NULL), MURAL_OK);
	totals.n_epochs = 2;
	rows[0].epoch = 1;

	assert_int_equal(mural_checkpoint_find(&choice, folder, NULL), MURAL_OK);
	assert_true(choice.found);
	assert_string_equal(choice.refused, "");
	assert_int_equal(choice.step, BEFORE);
	create(&b, NULL, NULL);
	mu_run_totals back;
	assert_int_equal(mu_checkpoint_load(b.engine, choice.set, &back, NULL), MURAL_OK);
	assert_int_equal(mural_engine_steps_done(b.engine), BEFORE);
	assert_true(b.engine->ledger.seen->carried.applied == BEFORE);
	size_t bytes = a.engine->store.elements * sizeof(float);
	assert_memory_equal(a.engine->store.parameters, b.engine->store.parameters, bytes);
	assert_memory_equal(a.engine->store.m, b.engine->store.m, bytes);
	assert_memory_equal(a.engine->store.v, b.engine->store.v, bytes);
	assert_memory_equal(&back.epoch, &totals.epoch, sizeof back.epoch);
	assert_true(back.images == UINT64_MAX && back.seconds == 3.25 && back.test_top5 == 0.75);
	assert_memory_equal(back.phase_seconds, totals.phase_seconds, sizeof back.phase_seconds);
	assert_memory_equal(&back.validation, &totals.validation, sizeof back.validation);
	assert_int_equal(back.n_epochs, 2);
	assert_memory_equal(back.epochs, rows, sizeof rows);
	free(back.epochs);

	for (int i = 0; i < AFTER; i++)
		expected[i] = step(&a);
	begin(&b);
	for (int i = 0; i < AFTER; i++)
		assert_true(step(&b) == expected[i]);
	assert_memory_equal(a.engine->store.parameters, b.engine->store.parameters, bytes);
	destroy(&a);
	destroy(&b);
}

/* The training goes on while the set is written: the set has what there was when it was begun. */
static void a_set_is_of_one_moment(void **state)
{
	(void)state;
	training a, b;
	mural_checkpoint_choice choice;
	create(&a, NULL, NULL);
	begin(&a);
	step(&a);
	mural_memory_plan planned, used;
	mural_engine_memory(a.engine, &planned, &used);
	size_t bytes = a.engine->store.elements * sizeof(float);
	assert_true(planned.checkpoint >= 3 * bytes);
	float *parameters = malloc(bytes), *v = malloc(bytes);
	assert_true(parameters && v);
	memcpy(parameters, a.engine->store.parameters, bytes);
	memcpy(v, a.engine->store.v, bytes);
	for (uint64_t sets = 1; sets <= 3; sets++) {
		bool underway = false;
		assert_int_equal(mural_checkpoint_begin(a.engine, folder, 9, NULL), MURAL_OK);
		step(&a);
		assert_int_equal(mural_checkpoint_poll(a.engine, false, &underway, NULL), MURAL_OK);
		if (!underway)
			assert_true(exists(sets));
	}
	assert_true(exists(1) && exists(2)); /* begin waits for the one before */
	assert_int_equal(mural_checkpoint_poll(a.engine, true, NULL, NULL), MURAL_OK);
	assert_true(exists(3));
	create(&b, NULL, NULL);
	mu_run_totals back;
	snprintf(choice.set, sizeof choice.set, "%s/checkpoints/step-00000001", folder);
	assert_int_equal(mural_checkpoint_verify(choice.set, NULL), MURAL_OK);
	assert_int_equal(mu_checkpoint_load(b.engine, choice.set, &back, NULL), MURAL_OK);
	free(back.epochs);
	assert_memory_equal(b.engine->store.parameters, parameters, bytes);
	assert_memory_equal(b.engine->store.v, v, bytes);
	free(parameters);
	free(v);
	destroy(&a);
	destroy(&b);
}

/* The copy has the files' layout, is made by several threads and summed up in pieces; without it the files are written from where the
 * tensors are. Either way a set is the same, byte for byte, its manifest included. */
static void a_copy_makes_the_same_files(void **state)
{
	(void)state;
	static const char *const names[] = {MU_CHECKPOINT_MODEL, MU_CHECKPOINT_OPTIMIZER, MU_CHECKPOINT_AVERAGE,
	                                    MU_CHECKPOINT_MANIFEST};
	training t;
	create(&t, "--ema=0.9", "--mlp-width=12000");
	begin(&t);
	step(&t);
	void *copy = t.engine->copy;
	assert_non_null(copy);
	t.engine->threads = 3;
	assert_int_equal(mural_checkpoint_save(t.engine, folder, 1, NULL), MURAL_OK);
	char *with[4];
	size_t n[4];
	for (int i = 0; i < 4; i++)
		with[i] = read_bytes(path_of(1, names[i]), &n[i]);
	assert_true(n[0] > 2 * MU_CHECKSUM_PIECE); /* there are pieces */
	for (int shared = 0; shared < 2; shared++) { /* a copy from a device; none */
		size_t bytes;
		t.engine->shared = shared;
		t.engine->copy = shared ? NULL : copy;
		assert_int_equal(mural_checkpoint_save(t.engine, folder, 1, NULL), MURAL_OK);
		for (int i = 0; i < 4; i++) {
			char *without = read_bytes(path_of(1, names[i]), &bytes);
			assert_int_equal(bytes, n[i]);
			assert_memory_equal(without, with[i], bytes);
			free(without);
		}
	}
	for (int i = 0; i < 4; i++)
		free(with[i]);
	t.engine->copy = copy;
	destroy(&t);
}

static bool anything_unfinished(void)
{
	char command[MU_CHECKPOINT_FILE + 64];
	snprintf(command, sizeof command, "ls -d '%s'/checkpoints/*.part >/dev/null 2>&1", folder);
	return system(command) == 0; /* NOLINT(cert-env33-c): a folder of our own making */
}

/* As on a full disk. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* What goes wrong behind the training's back comes out with the next poll, and nothing is lost. */
static void a_write_that_fails_is_told(void **state)
{
	(void)state;
	for (int background = 0; background < 2; background++) {
		training t;
		mural_error err = {0};
		char path[MU_CHECKPOINT_FILE];
		create(&t, background ? "--checkpoint-background" : "--no-checkpoint-background", "--progress");
		begin(&t);
		mural_memory_plan planned, used;
		mural_engine_memory(t.engine, &planned, &used);
		assert_int_equal(planned.checkpoint > 0, background);
		step(&t);
		assert_int_equal(mural_checkpoint_save(t.engine, folder, 9, NULL), MURAL_OK);
		step(&t);
		snprintf(path, sizeof path, "%s/checkpoints/step-00000002.part/" MU_CHECKPOINT_MODEL, folder);
		limit_files(1000);
		assert_int_equal(mural_checkpoint_begin(t.engine, folder, 9, NULL), MURAL_OK);
		assert_int_equal(mural_checkpoint_poll(t.engine, true, NULL, &err), MURAL_FAILED);
		limit_files(RLIM_INFINITY);
		assert_string_equal(err.where, path);
		assert_non_null(
		        strstr(err.context, "while writing the checkpoint of step 2; earlier ones are as they were"));
		assert_false(anything_unfinished());
		assert_true(exists(1) && !exists(2));
		step(&t); /* a program may think that it can do without */
		assert_int_equal(mural_checkpoint_save(t.engine, folder, 9, NULL), MURAL_OK);
		assert_true(exists(3) && !anything_unfinished());
		step(&t);
		assert_int_equal(mural_checkpoint_begin(t.engine, folder, 9, NULL), MURAL_OK);
		destroy(&t); /* gives up what is under way */
		assert_true(exists(3) && !exists(4) && !anything_unfinished());
		mu_checkpoint_clear(folder);
	}
}

typedef struct tables {
	int calls;
	pthread_t thread;
	bool too_late; /* the set had its name already */
	mural_status status;
} tables;

static mural_status sync_tables(const void *of, mural_error *err)
{
	tables *t = (tables *)of; /* NOLINT: the test's own, and not constant */
	t->calls++;
	t->thread = pthread_self();
	t->too_late = exists(2);
	return t->status == MURAL_OK ? MURAL_OK : mu_fail(err, t->status, "steps.csv", "cannot write the table");
}

/* The run's tables are synced by the thread that writes, before the set gets its name; what they cannot do, the set cannot. */
static void tables_come_first(void **state)
{
	(void)state;
	training t;
	mural_error err = {0};
	tables watched = {.status = MURAL_FAILED};
	const mu_checkpoint_wish wish = {.run_dir = folder, .keep = 9, .tables = {sync_tables, &watched}};
	create(&t, NULL, NULL);
	begin(&t);
	step(&t);
	step(&t);
	assert_int_equal(mu_checkpoint_begin(t.engine, &wish, &err), MURAL_OK);
	assert_int_equal(mural_checkpoint_poll(t.engine, true, NULL, &err), MURAL_FAILED);
	assert_string_equal(err.where, "steps.csv");
	assert_non_null(strstr(err.context, "while writing the checkpoint of step 2; "));
	assert_false(exists(2) || anything_unfinished());
	watched.status = MURAL_OK;
	assert_int_equal(mu_checkpoint_begin(t.engine, &wish, NULL), MURAL_OK);
	assert_int_equal(mural_checkpoint_poll(t.engine, true, NULL, NULL), MURAL_OK);
	assert_true(exists(2) && watched.calls == 2 && !watched.too_late);
	assert_false(pthread_equal(watched.thread, pthread_self()));
	destroy(&t);
}

/* What goes wrong when the set gets its name is told by a later poll, too, and by name. */
static void a_name_that_cannot_be_given_is_told(void **state)
{
	(void)state;
	training t;
	mural_error err = {0};
	char path[MU_CHECKPOINT_FILE];
	mural_checkpoint_choice choice;
	create(&t, NULL, NULL);
	begin(&t);
	step(&t);
	assert_int_equal(mural_checkpoint_save(t.engine, folder, 9, NULL), MURAL_OK);
	snprintf(path, sizeof path, "%s/checkpoints/latest", folder);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0777), 0);
	step(&t);
	bool underway = true;
	mural_status status = mural_checkpoint_begin(t.engine, folder, 9, &err);
	while (underway && status == MURAL_OK)
		status = mural_checkpoint_poll(t.engine, false, &underway, &err);
	assert_int_equal(status, MURAL_FAILED);
	assert_false(underway);
	assert_string_equal(err.where, path);
	assert_non_null(
	        strstr(err.context, "while the checkpoint of step 2 got its name; earlier ones are as they were"));
	assert_int_equal(mural_checkpoint_poll(t.engine, true, &underway, NULL), MURAL_OK); /* told once */
	assert_false(underway);
	assert_true(exists(1) && exists(2));
	assert_int_equal(mural_checkpoint_find(&choice, folder, NULL), MURAL_OK);
	assert_int_equal(choice.step, 2);
	assert_int_equal(rmdir(path), 0);
	step(&t);
	assert_int_equal(mural_checkpoint_save(t.engine, folder, 9, NULL), MURAL_OK);
	assert_int_equal(mural_checkpoint_find(&choice, folder, NULL), MURAL_OK);
	assert_true(choice.step == 3 && !choice.refused[0]);
	destroy(&t);
}

static void expect_refused(uint64_t number, const char *name)
{
	char set[MURAL_CHECKPOINT_PATH];
	mural_error err = {0};
	assert_int_equal(mu_checkpoint_path(set, folder, number, NULL), MURAL_OK);
	assert_int_equal(mural_checkpoint_verify(set, &err), MURAL_DATA);
	assert_non_null(strstr(err.where, name));
	/* The one before it is taken, and why is said. */
	mural_checkpoint_choice choice;
	assert_int_equal(mural_checkpoint_find(&choice, folder, NULL), MURAL_OK);
	assert_true(choice.found);
	assert_int_equal(choice.step, number - 1);
	assert_non_null(strstr(choice.refused, name));
}

static void every_damage_is_refused(void **state)
{
	(void)state;
	static const char *const names[] = {MU_CHECKPOINT_MODEL, MU_CHECKPOINT_OPTIMIZER, MU_CHECKPOINT_STATE,
	                                    MU_CHECKPOINT_MANIFEST};
	run_with_sets(2, 2);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[MU_CHECKPOINT_FILE];
		size_t n;
		snprintf(path, sizeof path, "%s", path_of(2, names[i]));
		char *bytes = read_bytes(path, &n);
		assert_int_equal(unlink(path), 0);
		expect_refused(2, names[i]);
		write_bytes(path, bytes, n - 1);
		expect_refused(2, names[i]);
		write_bytes(path, bytes, 0);
		expect_refused(2, names[i]);
		for (size_t at = 0; at < n; at += n / 7) {
			bytes[at] ^= 16;
			write_bytes(path, bytes, n);
			expect_refused(2, names[i]);
			bytes[at] ^= 16;
		}
		bytes[n] = 'x'; /* where mu_file_read put its NUL */
		write_bytes(path, bytes, n + 1);
		expect_refused(2, names[i]);
		write_bytes(path, bytes, n);
		free(bytes);
	}
	mural_checkpoint_choice choice;
	assert_int_equal(mural_checkpoint_find(&choice, folder, NULL), MURAL_OK);
	assert_int_equal(choice.step, 2);
	assert_string_equal(choice.refused, "");
}

/* What earlier versions of Mural wrote: version 2, checksums of whole files. */
static void manifests_of_before_are_read(void **state)
{
	(void)state;
	static const char tail[] = ",\n  \"xxh64\": \"%016" PRIx64 "\"\n}\n";
	static const char *const names[] = {MU_CHECKPOINT_MODEL, MU_CHECKPOINT_OPTIMIZER, MU_CHECKPOINT_STATE};
	char text[2048], path[MU_CHECKPOINT_FILE];
	int n = snprintf(text, sizeof text,
	                 "{\"format\": \"mural-checkpoint\", \"version\": 2, \"step\": 2, "
	                 "\"validation\": {\"best_step\": 0, \"metric\": \"top1\", \"step\": 0}, \"files\": [");
	run_with_sets(2, 2);
	for (size_t i = 0; i < 3; i++) {
		uint64_t bytes, sum;
		assert_int_equal(mu_checksum_file(path_of(2, names[i]), 0, &bytes, &sum, NULL), MURAL_OK);
		n += snprintf(text + n, sizeof text - (size_t)n,
		              "%s{\"name\": \"%s\", \"bytes\": %" PRIu64 ", \"xxh64\": \"%016" PRIx64 "\"}",
		              i ? ", " : "", names[i], bytes, sum);
	}
	n += snprintf(text + n, sizeof text - (size_t)n, "]");
	n += snprintf(text + n, sizeof text - (size_t)n, tail, mu_checksum_of(text, (size_t)n));
	write_bytes(path_of(2, MU_CHECKPOINT_MANIFEST), text, (size_t)n);
	mural_checkpoint_choice choice;
	assert_int_equal(mural_checkpoint_find(&choice, folder, NULL), MURAL_OK);
	assert_true(choice.found && choice.step == 2);
	assert_string_equal(choice.refused, "");
	snprintf(path, sizeof path, "%s", path_of(2, MU_CHECKPOINT_OPTIMIZER));
	size_t size;
	char *bytes = read_bytes(path, &size);
	bytes[size / 2] ^= 1;
	write_bytes(path, bytes, size);
	free(bytes);
	expect_refused(2, MU_CHECKPOINT_OPTIMIZER);
}

static void latest_is_preferred_and_replaced(void **state)
{
	(void)state;
	mural_checkpoint_choice choice;
	char path[MU_CHECKPOINT_FILE];
	run_with_sets(3, 3);
	snprintf(path, sizeof path, "%s/checkpoints/latest", folder);
	write_bytes(path, "step-00000002\n", 14);
	assert_int_equal(mural_checkpoint_find(&choice, folder, NULL), MURAL_OK);
	assert_int_equal(choice.step, 2);
	write_bytes(path, "step-00000007\n", 14);
	assert_int_equal(mural_checkpoint_find(&choice, folder, NULL), MURAL_OK);
	assert_int_equal(choice.step, 3);
	assert_non_null(strstr(choice.refused, "checkpoints/latest: names 'step-00000007', and there is no such set"));
	unlink(path);
	assert_int_equal(mural_checkpoint_find(&choice, folder, NULL), MURAL_OK);
	assert_int_equal(choice.step, 3);
	assert_non_null(strstr(choice.refused, "checkpoints/latest: cannot open"));
}

static void nothing_and_nothing_whole(void **state)
{
	(void)state;
	mural_checkpoint_choice choice;
	mural_error err = {0};
	assert_int_equal(mural_checkpoint_find(&choice, folder, NULL), MURAL_OK);
	assert_false(choice.found);
	assert_int_equal(mural_checkpoint_find(&choice, "/nonexistent/run", NULL), MURAL_OK);
	assert_false(choice.found);
	run_with_sets(2, 2);
	unlink(path_of(1, MU_CHECKPOINT_MANIFEST));
	unlink(path_of(2, MU_CHECKPOINT_MODEL));
	assert_int_equal(mural_checkpoint_find(&choice, folder, &err), MURAL_DATA);
	assert_non_null(strstr(err.message, "none of the 2 checkpoints"));
	assert_non_null(strstr(err.where, "step-00000002/model.safetensors"));
	assert_non_null(strstr(err.where, "step-00000001/manifest.json"));
	/* By its own path a set must be whole itself. */
	char set[MURAL_CHECKPOINT_PATH];
	err = (mural_error){0};
	assert_int_equal(mu_checkpoint_path(set, folder, 2, NULL), MURAL_OK);
	assert_int_equal(mural_checkpoint_find(&choice, set, &err), MURAL_DATA);
	assert_false(choice.found);
}

static void the_newest_sets_stay(void **state)
{
	(void)state;
	run_with_sets(5, 2);
	for (uint64_t i = 1; i <= 5; i++)
		assert_int_equal(exists(i), i >= 4);
	/* A run that went back and writes again: later sets and leftovers go, the same step is replaced. */
	training t;
	create(&t, NULL, NULL);
	begin(&t);
	for (int i = 0; i < 4; i++)
		step(&t);
	char leftover[MU_CHECKPOINT_FILE];
	snprintf(leftover, sizeof leftover, "%s/checkpoints/step-00000009.part", folder);
	assert_int_equal(mkdir(leftover, 0777), 0);
	struct stat before, after;
	assert_int_equal(stat(path_of(4, MU_CHECKPOINT_MANIFEST), &before), 0);
	assert_int_equal(mural_checkpoint_save(t.engine, folder, 2, NULL), MURAL_OK);
	assert_int_equal(stat(path_of(4, MU_CHECKPOINT_MANIFEST), &after), 0);
	assert_true(before.st_ino != after.st_ino);
	assert_false(exists(5));
	assert_int_equal(access(leftover, F_OK), -1);
	destroy(&t);
	mural_checkpoint_choice choice;
	assert_int_equal(mural_checkpoint_find(&choice, folder, NULL), MURAL_OK);
	assert_int_equal(choice.step, 4);
}

/* Saves after each step; best_at[i]: the best step so far after step i + 1, whose top1 is best / 100. */
static void run_with_best(const uint64_t *best_at, size_t n, unsigned keep)
{
	training t;
	create(&t, NULL, NULL);
	begin(&t);
	for (size_t i = 0; i < n; i++) {
		mu_run_totals totals = {0};
		step(&t);
		totals.validation.last = (mu_validated){i + 1, 0.5, 0.1, 0.9};
		totals.validation.best = (mu_validated){best_at[i], 0.25, (double)best_at[i] / 100, 1};
		assert_int_equal(
		        mu_checkpoint_begin(t.engine,
		                            &(mu_checkpoint_wish){.run_dir = folder, .keep = keep, .totals = &totals},
		                            NULL),
		        MURAL_OK);
		assert_int_equal(mural_checkpoint_poll(t.engine, true, NULL, NULL), MURAL_OK);
	}
	destroy(&t);
}

static void expect_sets(const char *wanted)
{
	char found[16] = "";
	for (uint64_t i = 1; i <= 9; i++)
		if (exists(i))
			snprintf(found + strlen(found), sizeof found - strlen(found), "%u", (unsigned)i);
	assert_string_equal(found, wanted);
}

static void the_best_set_stays_as_long_as_it_is_known(void **state)
{
	(void)state;
	static const uint64_t best_at[] = {1, 2, 2, 2, 2, 6, 6};
	mural_checkpoint_choice choice;
	mu_manifest manifest;
	run_with_best(best_at, 5, 2);
	expect_sets("245");
	assert_int_equal(mural_checkpoint_find_best(&choice, folder, NULL), MURAL_OK);
	assert_true(choice.found && choice.step == 2 && strstr(choice.set, "step-00000002"));
	mu_checkpoint_clear(folder);
	/* Sets 5 and 6 stay; the best one that 5 knows of stays with it, in case that 6 is damaged. */
	run_with_best(best_at, 6, 2);
	expect_sets("256");
	assert_int_equal(mural_checkpoint_find_best(&choice, folder, NULL), MURAL_OK);
	assert_int_equal(choice.step, 6);
	char set[MURAL_CHECKPOINT_PATH];
	assert_int_equal(mu_checkpoint_path(set, folder, 6, NULL), MURAL_OK);
	assert_int_equal(mu_manifest_read(&manifest, set, NULL), MURAL_OK);
	assert_true(manifest.note.best == 6 && manifest.note.metric == MURAL_METRIC_TOP1);
	assert_true(manifest.note.here.step == 6 && manifest.note.here.loss == 0.5 && manifest.note.here.top1 == 0.1);
	mu_manifest_release(&manifest);
	unlink(path_of(6, MU_CHECKPOINT_MODEL));
	assert_int_equal(mural_checkpoint_find_best(&choice, folder, NULL), MURAL_OK);
	assert_int_equal(choice.step, 2);
	mu_checkpoint_clear(folder);
	run_with_best(best_at, 7, 1);
	expect_sets("67");
	/* A best set that is damaged is named. */
	mural_error err = {0};
	unlink(path_of(6, MU_CHECKPOINT_MODEL));
	assert_int_equal(mural_checkpoint_find_best(&choice, folder, &err), MURAL_DATA);
	assert_non_null(strstr(err.where, "step-00000006/model.safetensors"));
	mu_checkpoint_clear(folder);
	run_with_sets(1, 1); /* without validation images */
	assert_int_equal(mural_checkpoint_find_best(&choice, folder, NULL), MURAL_OK);
	assert_false(choice.found);
}

static void another_training_is_refused(void **state)
{
	(void)state;
	static const char *const cases[][3] = {
	        {"--seed", "5", "mural.seed is 0 there and 5 here"},
	        {"--batch", "3", "train_batch_size is 6 there and 3 here"},
	        {"--synthetic-images", "30", "the number of training images is 22 there and 30 here"},
	        {"--width", "96", "mural.width is "},
	        {"--image-size", "4x8", "mural.image_size is 8x8 there and 4x8 here"},
	        {"--val", "0.5", "mural.data.validation_fraction is 0 there and 0.5 here"},
	        {"--optimizer", "Adam", "optimizer.type is adamw there and adam here"},
	};
	mural_checkpoint_choice choice;
	run_with_sets(1, 1);
	assert_int_equal(mural_checkpoint_find(&choice, folder, NULL), MURAL_OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		training t;
		mural_error err = {0};
		create(&t, cases[i][0], cases[i][1]);
		assert_int_equal(mural_checkpoint_load(t.engine, choice.set, &err), MURAL_USAGE);
		assert_non_null(strstr(err.message, cases[i][2]));
		destroy(&t);
	}
	training t; /* what may change */
	create(&t, "--lr", "0.5");
	assert_int_equal(mural_checkpoint_load(t.engine, choice.set, NULL), MURAL_OK);
	begin(&t);
	mural_error err = {0};
	assert_int_equal(mural_checkpoint_load(t.engine, choice.set, &err), MURAL_USAGE);
	destroy(&t);
}

/* The moments' file, cut into two in the middle of each tensor, as two ranks would write it. */
static void write_shards(const char *whole, char paths[2][MU_CHECKPOINT_FILE])
{
	mu_safetensors *file;
	assert_int_equal(mu_safetensors_open(&file, whole, NULL), MURAL_OK);
	size_t n = mu_safetensors_count(file);
	for (int shard = 0; shard < 2; shard++) {
		mu_safetensors_item *items = calloc(n, sizeof *items);
		mu_safetensors_note *notes = calloc(n, sizeof *notes);
		char(*texts)[80] = calloc(n, sizeof *texts);
		size_t *dims = calloc(n, sizeof *dims);
		float **values = calloc(n, sizeof *values);
		for (size_t i = 0; i < n; i++) {
			const mu_safetensor *tensor = mu_safetensors_at(file, i);
			size_t total = tensor->dims[0], half = total / 2, from = shard ? half : 0;
			dims[i] = shard ? total - half : half;
			values[i] = malloc(total * sizeof(float));
			assert_int_equal(mu_safetensors_read(file, tensor, values[i], NULL), MURAL_OK);
			snprintf(texts[i], sizeof texts[i], "%zu %zu %zu", from, from + dims[i], total);
			notes[i] = (mu_safetensors_note){tensor->name, texts[i]};
			items[i] = (mu_safetensors_item){.name = tensor->name,
			                                 .type = MU_F32,
			                                 .n_dims = 1,
			                                 .dims = &dims[i],
			                                 .data = values[i] + from};
		}
		snprintf(paths[shard], MU_CHECKPOINT_FILE, "%s/checkpoints/shard-%d", folder, shard);
		assert_int_equal(mu_safetensors_write_noted(paths[shard], items, n, notes, n, NULL), MURAL_OK);
		for (size_t i = 0; i < n; i++)
			free(values[i]);
		free(values);
		free(dims);
		free(texts);
		free(notes);
		free(items);
	}
	mu_safetensors_free(file);
}

static void moments_may_lie_in_shards(void **state)
{
	(void)state;
	char paths[2][MU_CHECKPOINT_FILE];
	training t;
	create(&t, NULL, NULL);
	begin(&t);
	step(&t);
	assert_int_equal(mural_checkpoint_save(t.engine, folder, 1, NULL), MURAL_OK);
	write_shards(path_of(1, MU_CHECKPOINT_OPTIMIZER), paths);
	mu_store *store = &t.engine->store;
	size_t bytes = store->elements * sizeof(float);
	float *m = malloc(bytes), *v = malloc(bytes);
	memcpy(m, store->m, bytes);
	memcpy(v, store->v, bytes);
	memset(store->m, 0, bytes);
	memset(store->v, 0, bytes);
	const char *list[2] = {paths[0], paths[1]};
	assert_int_equal(mu_optimizer_state_load(&t.engine->vit, store, list, 2, NULL), MURAL_OK);
	assert_memory_equal(store->m, m, bytes);
	assert_memory_equal(store->v, v, bytes);

	mural_error err = {0};
	assert_int_equal(mu_optimizer_state_load(&t.engine->vit, store, list, 1, &err), MURAL_DATA);
	assert_non_null(strstr(err.message, "ends at element"));
	err = (mural_error){0};
	const char *turned[2] = {paths[1], paths[0]};
	assert_int_equal(mu_optimizer_state_load(&t.engine->vit, store, turned, 2, &err), MURAL_DATA);
	assert_non_null(strstr(err.message, "should go on at element 0"));
	const char *twice[3] = {paths[0], paths[1], paths[1]};
	assert_int_equal(mu_optimizer_state_load(&t.engine->vit, store, twice, 3, NULL), MURAL_DATA);
	free(m);
	free(v);
	destroy(&t);
	unlink(paths[0]);
	unlink(paths[1]);
}

static void the_run_of_a_set(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
	        {"runs/a/checkpoints/step-00000001", "runs/a"},
	        {"/a/checkpoints//step-00000001/", "/a"},
	        {"checkpoints/step-00000001", "."},
	        {"/checkpoints/step-00000001", "/"},
	        {"elsewhere/step-00000001", ""},
	        {"step-00000001", ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char run[MURAL_CHECKPOINT_PATH];
		mu_checkpoint_run_of(run, cases[i][0]);
		assert_string_equal(run, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup(a_set_brings_everything_back, each),
	        cmocka_unit_test_setup(a_set_is_of_one_moment, each),
	        cmocka_unit_test_setup(a_copy_makes_the_same_files, each),
	        cmocka_unit_test_setup(a_write_that_fails_is_told, each),
	        cmocka_unit_test_setup(tables_come_first, each),
	        cmocka_unit_test_setup(a_name_that_cannot_be_given_is_told, each),
	        cmocka_unit_test_setup(every_damage_is_refused, each),
	        cmocka_unit_test_setup(manifests_of_before_are_read, each),
	        cmocka_unit_test_setup(latest_is_preferred_and_replaced, each),
	        cmocka_unit_test_setup(nothing_and_nothing_whole, each),
	        cmocka_unit_test_setup(the_newest_sets_stay, each),
	        cmocka_unit_test_setup(the_best_set_stays_as_long_as_it_is_known, each),
	        cmocka_unit_test_setup(another_training_is_refused, each),
	        cmocka_unit_test_setup(moments_may_lie_in_shards, each),
	        cmocka_unit_test(the_run_of_a_set),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
