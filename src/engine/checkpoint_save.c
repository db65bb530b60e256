/* Saving a set. Rank 0 writes; the others take part in what is agreed on.
 *
 * The order of saving is what makes it survive anything:
 *     WRITING  the run's tables are synced; files into step-N.part, each synced
 *     ---      all ranks agree
 *     NAMING   step-N.part gets its name; `latest` moves; then, as nobody waits for it, old sets go
 *     ---      all ranks agree
 * A crash before the name leaves a leftover, which the next save removes; one before `latest` moves leaves the earlier set in charge.
 *
 * Everything that waits for a disk runs in a thread, which reads a copy and nothing that the training changes, and makes no collective
 * call. What lies between is mural_checkpoint_poll's, which asks with one small reduction whether everybody is through and sends the
 * thread on its way. Without memory for the copy the files are written in the caller's thread.
 * SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "engine/checkpoint_image.h"
#include "engine/mirror.h"

/* The same on all ranks. */
typedef enum stage { IDLE, WRITING, NAMING } stage;

/* Of a stage on one rank; the least of all ranks' is where they are together. */
enum { BUSY, FAILED, DONE };

struct mu_saving {
	stage stage;
	mu_images images; /* what is written: copies, or what the engine has now, which lies in */
	mu_mirror mirror;
	mural_metric metric;
	mu_checkpoint_state state; /* with a history of its own */
	mu_match matches[MU_MATCHES];
	size_t n_matches;
	char run_dir[MURAL_CHECKPOINT_PATH], set[MURAL_CHECKPOINT_PATH], part[MURAL_CHECKPOINT_PATH];
	unsigned keep;
	mu_run_tables tables;

	pthread_t thread;
	bool joinable;
	atomic_bool stop; /* to the thread: give up */
	atomic_bool done; /* from it; status and err may be read then */
	mural_status status;
	mural_error err;
};

static void path_in(char path[MU_CHECKPOINT_FILE], const char *folder, const char *name)
{
	snprintf(path, MU_CHECKPOINT_FILE, "%s/%s", folder, name);
}

static mural_status write_state(mu_saving *s, const char *path, mu_manifest_file *file, mural_error *err)
{
	MU_TRY(mu_checkpoint_state_write(path, &s->state, s->matches, s->n_matches, err));
	return mu_checksum_file(path, MU_CHECKSUM_PIECE, &file->bytes, &file->checksum, err);
}

static mu_manifest_note note_of(const mu_saving *s)
{
	const mu_run_totals *totals = &s->state.totals;
	mu_manifest_note note = {.metric = s->metric, .best = totals->validation.best.step};
	if (totals->validation.last.step == s->state.step)
		note.here = totals->validation.last;
	return note;
}

static mural_status write_files(mu_saving *s, mural_error *err)
{
	mu_manifest_file files[MU_IMAGES + 1] = {0};
	mu_manifest manifest = {.step = s->state.step,
	                        .piece = MU_CHECKSUM_PIECE,
	                        .note = note_of(s),
	                        .files = files,
	                        .n_files = s->images.n + 1};
	for (size_t i = 0; i < manifest.n_files; i++) {
		const mu_image *image = i < s->images.n ? &s->images.list[i] : NULL;
		const char *name = image ? image->name : MU_CHECKPOINT_STATE;
		char path[MU_CHECKPOINT_FILE];
		snprintf(files[i].name, sizeof files[i].name, "%s", name);
		path_in(path, s->part, name);
		MU_TRY(image ? mu_image_write(image, path, &s->stop, &files[i], err)
		             : write_state(s, path, &files[i], err));
	}
	return mu_manifest_write(&manifest, s->part, err);
}

/* Everything up to the name. */
static void *write_part(void *argument)
{
	mu_saving *s = argument;
	mu_checkpoint_remove(s->part); /* what an earlier attempt left */
	s->status = s->tables.sync ? s->tables.sync(s->tables.of, &s->err) : MURAL_OK;
	if (s->status == MURAL_OK)
		s->status = mu_make_folders(s->part, &s->err);
	if (s->status == MURAL_OK)
		s->status = write_files(s, &s->err);
	if (s->status != MURAL_OK) {
		mu_checkpoint_remove(s->part);
		mu_context(&s->err, "while writing the checkpoint of step %llu; earlier ones are as they were",
		           (unsigned long long)s->state.step);
	}
	atomic_store(&s->done, true);
	return NULL;
}

/* In a thread, which blocks all signals: they are the trainer's. Where there is none to be had, here and now. */
static void run(mu_saving *s, void *(*work)(void *))
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	s->joinable = pthread_create(&s->thread, NULL, work, s) == 0;
	if (s->joinable)
		pthread_setname_np(s->thread, "mural-save");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!s->joinable)
		work(s);
}

static void join(mu_saving *s)
{
	if (s->joinable)
		pthread_join(s->thread, NULL);
	s->joinable = false;
}

/* The complete set takes over. */
static void *name_set(void *argument)
{
	mu_saving *s = argument;
	s->status = mu_checkpoint_publish(s->part, s->set, s->run_dir, s->state.step,
	                                  s->state.totals.validation.best.step, &s->err);
	bool named = s->status == MURAL_OK;
	if (!named)
		mu_context(&s->err, "while the checkpoint of step %llu got its name; earlier ones are as they were",
		           (unsigned long long)s->state.step);
	atomic_store(&s->done, true);
	if (named)
		mu_checkpoint_prune(s->run_dir, s->state.step, s->keep);
	return NULL;
}

static mural_status keep_history(mu_saving *s, const mu_run_totals *totals, mural_error *err)
{
	free(s->state.totals.epochs);
	s->state.totals = totals ? *totals : (mu_run_totals){0};
	size_t n = s->state.totals.n_epochs;
	s->state.totals.epochs = calloc(n + 1, sizeof *totals->epochs);
	if (!s->state.totals.epochs) {
		s->state.totals.n_epochs = 0;
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the history of the run");
	}
	if (n)
		memcpy(s->state.totals.epochs, totals->epochs, n * sizeof *totals->epochs);
	return MURAL_OK;
}

static void forget_images(mu_saving *s)
{
	mu_images_release(&s->images);
	mu_mirror_close(&s->mirror);
}

static mural_status make_images(mural_engine *engine, mu_saving *s, mural_error *err)
{
	if (engine->copy) {
		MU_TRY(mu_images_make(&s->images, engine, &engine->store, err));
		return mu_images_copy(&s->images, engine, engine->copy, (size_t)engine->plan.checkpoint, err);
	}
	MU_TRY(mu_mirror_open(&s->mirror, &engine->store, &engine->device, engine->shared, MU_MIRROR_ALL, true, err));
	return mu_images_make(&s->images, engine, &s->mirror.store, err);
}

/* Everything the thread will read. */
static mural_status prepare(mural_engine *engine, mu_saving *s, const mu_run_totals *totals, mural_error *err)
{
	MU_TRY(mu_checkpoint_path(s->set, s->run_dir, engine->steps_done, err));
	snprintf(s->part, sizeof s->part, "%.*s.part", MURAL_CHECKPOINT_PATH - 16, s->set); /* the path left room */
	s->n_matches = mu_checkpoint_match_engine(s->matches, engine);
	s->metric = engine->config.validation.metric;
	MU_TRY(keep_history(s, totals, err));
	s->state.step = engine->steps_done;
	s->state.carried = engine->ledger.seen->carried;
	s->state.epoch = engine->steps_done / engine->steps_per_epoch;
	s->state.step_in_epoch = engine->steps_done % engine->steps_per_epoch;
	s->state.ranks = engine->ranks->size;
	return make_images(engine, s, err);
}

static mural_status make(mural_engine *engine, mural_error *err)
{
	mural_status status = MURAL_OK;
	if (!engine->loader)
		return mu_fail(err, MURAL_USAGE, NULL, "a checkpoint was asked for before the training began");
	if (!engine->saving)
		engine->saving = calloc(1, sizeof *engine->saving);
	if (!engine->saving)
		status = mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for writing a checkpoint");
	return mu_comm_agree(engine->comm, status, err);
}

mural_status mu_checkpoint_begin(mural_engine *engine, const mu_checkpoint_wish *wish, mural_error *err)
{
	MU_TRY(mural_checkpoint_poll(engine, true, NULL, err));
	MU_TRY(make(engine, err));
	mu_saving *s = engine->saving;
	snprintf(s->run_dir, sizeof s->run_dir, "%s", wish->run_dir);
	s->keep = wish->keep ? wish->keep : 1;
	s->tables = wish->tables;
	s->stage = WRITING;
	s->err = (mural_error){0};
	s->status = MURAL_OK;
	atomic_store(&s->stop, false);
	atomic_store(&s->done, engine->ranks->rank != 0);
	if (engine->ranks->rank != 0)
		return MURAL_OK;
	s->status = prepare(engine, s, wish->totals, &s->err);
	if (s->status != MURAL_OK)
		atomic_store(&s->done, true);
	else if (engine->copy)
		run(s, write_part);
	else
		write_part(s);
	return MURAL_OK; /* what failed is told by poll, on all ranks */
}

static int32_t outcome(mu_saving *s)
{
	if (!atomic_load(&s->done))
		return BUSY;
	return s->status == MURAL_OK ? DONE : FAILED;
}

/* All ranks: the next stage, where all are through with this one. */
static mural_status advance(mural_engine *engine, mu_saving *s, bool wait, mural_error *err)
{
	if (wait)
		join(s);
	int32_t all = outcome(s);
	MU_TRY(mu_comm_all_reduce(engine->comm, &all, 1, MU_I32, MU_MIN, err));
	if (all == BUSY)
		return MURAL_OK;
	if (s->stage == WRITING) {
		join(s);
		forget_images(s);
	}
	s->stage = s->stage == WRITING && all == DONE ? NAMING : IDLE;
	if (all == FAILED) {
		if (s->status != MURAL_OK && err && err->status == MURAL_OK)
			*err = s->err;
		return mu_comm_agree(engine->comm, s->status, err);
	}
	if (s->stage == NAMING && engine->ranks->rank == 0) {
		atomic_store(&s->done, false);
		run(s, name_set);
	}
	return MURAL_OK;
}

mural_status mural_checkpoint_poll(mural_engine *engine, bool wait, bool *underway, mural_error *err)
{
	mu_saving *s = engine->saving;
	mural_status status = MURAL_OK;
	if (underway)
		*underway = false;
	if (!s)
		return MURAL_OK;
	do {
		if (s->stage != IDLE)
			status = advance(engine, s, wait, err);
	} while (wait && status == MURAL_OK && s->stage != IDLE);
	if (wait)
		join(s); /* old sets are gone, too */
	if (underway)
		*underway = s->stage != IDLE;
	return status;
}

void mu_saving_free(mu_saving *saving)
{
	if (!saving)
		return;
	atomic_store(&saving->stop, true);
	join(saving);
	forget_images(saving);
	if (saving->stage == WRITING && saving->part[0]) /* this rank wrote it, and nobody will name it */
		mu_checkpoint_remove(saving->part);
	free(saving->state.totals.epochs);
	free(saving);
}
