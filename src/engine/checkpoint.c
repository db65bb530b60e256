/* Saving and loading a set. Rank 0 writes and reads; the others take part in what is agreed on, and get their state by broadcast.
 *
 * The order of saving is what makes it survive anything:
 *     files into step-N.part, each synced | all ranks agree | step-N.part gets its name | `latest` moves | old sets go
 * A crash before the name leaves a leftover, which the next save removes; one before `latest` moves leaves the earlier set in charge.
 * SPDX-License-Identifier: MIT */
#include "engine/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "engine/mirror.h"
#include "engine/optimizer_state.h"
#include "engine/weights.h"

/* The last is there with an average of weights only. */
static const char *const names[] = {MU_CHECKPOINT_MODEL, MU_CHECKPOINT_OPTIMIZER, MU_CHECKPOINT_STATE,
                                    MU_CHECKPOINT_AVERAGE};
#define NAMES (sizeof names / sizeof *names)

const char *mu_checkpoint_evaluated(const mural_config *config)
{
	return config->optimizer.ema_evaluate ? MU_CHECKPOINT_AVERAGE : MU_CHECKPOINT_MODEL;
}

static void path_in(char path[MU_CHECKPOINT_FILE], const char *folder, const char *name)
{
	snprintf(path, MU_CHECKPOINT_FILE, "%s/%s", folder, name);
}

static size_t match(mu_match matches[MU_MATCHES], const mural_engine *engine)
{
	const mural_data *validation = engine->evaluated[MU_EVALUATED_VALIDATION].data;
	return mu_checkpoint_match(matches, &engine->config, mural_data_get_facts(engine->train),
	                           validation ? mural_data_get_facts(validation) : NULL);
}

static mural_status write_state(const mural_engine *engine, const char *path, const mu_run_totals *totals,
                                mural_error *err)
{
	mu_match matches[MU_MATCHES];
	size_t n = match(matches, engine);
	mu_checkpoint_state state = {
	        .step = engine->steps_done,
	        .updates_applied = (uint64_t)engine->ledger.seen->carried.applied,
	        .epoch = engine->steps_done / engine->steps_per_epoch,
	        .step_in_epoch = engine->steps_done % engine->steps_per_epoch,
	        .ranks = engine->ranks->size,
	};
	if (totals)
		state.totals = *totals;
	return mu_checkpoint_state_write(path, &state, matches, n, err);
}

static mural_status write_spans(const mural_engine *engine, const mu_store *store, const char *folder, mural_error *err)
{
	char path[MU_CHECKPOINT_FILE];
	const mu_store weights = mu_store_view(store, mu_store_weights(store));
	const mu_store average = mu_store_view(store, store->average);
	path_in(path, folder, MU_CHECKPOINT_MODEL);
	MU_TRY(mu_engine_write_weights(engine, &weights, path, err));
	path_in(path, folder, MU_CHECKPOINT_AVERAGE);
	if (store->average)
		MU_TRY(mu_engine_write_weights(engine, &average, path, err));
	path_in(path, folder, MU_CHECKPOINT_OPTIMIZER);
	return mu_optimizer_state_save(&engine->vit, store, path, err);
}

static mural_status write_files(const mural_engine *engine, const char *folder, const mu_run_totals *totals,
                                mural_error *err)
{
	char path[MU_CHECKPOINT_FILE];
	mu_mirror mirror;
	MU_TRY(mu_mirror_open(&mirror, &engine->store, &engine->device, engine->shared, MU_MIRROR_ALL, true, err));
	mural_status status = write_spans(engine, &mirror.store, folder, err);
	mu_mirror_close(&mirror);
	MU_TRY(status);
	path_in(path, folder, MU_CHECKPOINT_STATE);
	MU_TRY(write_state(engine, path, totals, err));
	mu_manifest_note note = {.metric = engine->config.validation.metric};
	if (totals && totals->validation.last.step == engine->steps_done)
		note.here = totals->validation.last;
	if (totals)
		note.best = totals->validation.best.step;
	return mu_manifest_write(folder, engine->steps_done, &note, names, engine->store.average ? NAMES : NAMES - 1,
	                         err);
}

/* Two folders trade places: in one move, or in two where the file system cannot (NFS). */
static bool trade(const char *part, const char *set)
{
	char aside[MU_CHECKPOINT_FILE];
	if (renameat2(AT_FDCWD, part, AT_FDCWD, set, RENAME_EXCHANGE) == 0)
		return true;
	snprintf(aside, sizeof aside, "%s.old.part", set);
	return rename(set, aside) == 0 && rename(part, set) == 0 && rename(aside, part) == 0;
}

/* The complete set gets its name. There may be one already, when the run went back and came here again. */
static mural_status give_name(const char *part, const char *set, mural_error *err)
{
	bool done = rename(part, set) == 0;
	if (!done && (errno == EEXIST || errno == ENOTEMPTY)) {
		done = trade(part, set);
		if (done)
			mu_checkpoint_remove(part);
	}
	if (!done)
		return mu_fail(err, MURAL_FAILED, set, "the checkpoint cannot get its name: %s", strerror(errno));
	mu_sync_folder_of(set);
	return MURAL_OK;
}

/* RUN/checkpoints/WHICH names a set. */
static mural_status point_to(const char *run_dir, const char *which, uint64_t step, mural_error *err)
{
	char set[MURAL_CHECKPOINT_PATH], path[MU_CHECKPOINT_FILE];
	mu_file file = {0};
	MU_TRY(mu_checkpoint_path(set, run_dir, step, err));
	const char *name = strrchr(set, '/') + 1;
	snprintf(path, sizeof path, "%.*s%s", (int)(name - set), set, which);
	MU_TRY(mu_file_begin(&file, path, err));
	fprintf(file.out, "%s\n", name);
	return mu_file_commit(&file, err);
}

/* The complete set takes over. */
static mural_status publish(const mural_engine *engine, const char *part, const char *set, const char *run_dir,
                            const mu_run_totals *totals, mural_error *err)
{
	MU_TRY(give_name(part, set, err));
	MU_TRY(point_to(run_dir, "latest", engine->steps_done, err));
	if (totals && totals->validation.best.step)
		return point_to(run_dir, "best", totals->validation.best.step, err);
	return MURAL_OK;
}

static mural_status write_part(const mural_engine *engine, const char *part, const mu_run_totals *totals,
                               mural_error *err)
{
	mu_checkpoint_remove(part); /* what an earlier attempt left */
	MU_TRY(mu_make_folders(part, err));
	mural_status status = write_files(engine, part, totals, err);
	if (status != MURAL_OK) {
		mu_checkpoint_remove(part);
		mu_context(err, "while writing the checkpoint of step %llu; earlier ones are as they were",
		           (unsigned long long)engine->steps_done);
	}
	return status;
}

mural_status mu_checkpoint_save(mural_engine *engine, const char *run_dir, unsigned keep, const mu_run_totals *totals,
                                mural_error *err)
{
	char set[MURAL_CHECKPOINT_PATH] = "", part[MURAL_CHECKPOINT_PATH];
	bool writes = engine->ranks->rank == 0;
	mural_status status = engine->loader ? mu_checkpoint_path(set, run_dir, engine->steps_done, err)
	                                     : mu_fail(err, MURAL_USAGE, NULL,
	                                               "a checkpoint was asked for before the training began");
	snprintf(part, sizeof part, "%.*s.part", MURAL_CHECKPOINT_PATH - 16, set); /* mu_checkpoint_path left room */
	if (writes && status == MURAL_OK)
		status = write_part(engine, part, totals, err);
	MU_TRY(mu_comm_agree(engine->comm, status, err));
	if (writes) {
		status = publish(engine, part, set, run_dir, totals, err);
		if (status == MURAL_OK)
			mu_checkpoint_prune(run_dir, engine->steps_done, keep ? keep : 1);
	}
	return mu_comm_agree(engine->comm, status, err);
}

/* The files of a set that hold optimizer state, in the manifest's order. */
static mural_status load_moments(const mural_engine *engine, const mu_store *store, const char *set, mural_error *err)
{
	mu_manifest manifest;
	mural_status status = mu_manifest_read(&manifest, set, err);
	char(*paths)[MU_CHECKPOINT_FILE] = calloc(manifest.n_files + 1, sizeof *paths);
	const char **list = calloc(manifest.n_files + 1, sizeof *list);
	size_t n = 0;
	if (status == MURAL_OK && (!paths || !list))
		status = mu_fail(err, MURAL_OUT_OF_MEMORY, set, "no memory for the names of a checkpoint's files");
	for (size_t i = 0; i < manifest.n_files && status == MURAL_OK; i++) {
		if (strncmp(manifest.files[i].name, "optimizer", 9) != 0)
			continue;
		path_in(paths[n], set, manifest.files[i].name);
		list[n] = paths[n];
		n++;
	}
	if (status == MURAL_OK)
		status = mu_optimizer_state_load(&engine->vit, store, list, n, err);
	free(list);
	free(paths);
	mu_manifest_release(&manifest);
	return status;
}

static mural_status read_set(mural_engine *engine, const mu_store *store, const char *set, mu_checkpoint_state *state,
                             mural_error *err)
{
	char path[MU_CHECKPOINT_FILE];
	mu_match matches[MU_MATCHES];
	if (!engine->training || !engine->train || engine->loader)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "a checkpoint is loaded into an engine that will train and has not begun");
	if (strlen(set) >= MURAL_CHECKPOINT_PATH)
		return mu_fail(err, MURAL_USAGE, NULL, "the path '%.40s...' is too long", set);
	size_t n = match(matches, engine);
	path_in(path, set, MU_CHECKPOINT_STATE);
	MU_TRY(mu_checkpoint_state_read(path, state, matches, n, err));
	const mu_store weights = mu_store_view(store, mu_store_weights(store));
	const mu_store average = mu_store_view(store, store->average);
	path_in(path, set, MU_CHECKPOINT_MODEL);
	MU_TRY(mu_weights_load(&engine->vit, &weights, path, (mu_weights_wish){0}, NULL, err));
	path_in(path, set, MU_CHECKPOINT_AVERAGE);
	if (store->average)
		MU_TRY(mu_weights_load(&engine->vit, &average, path, (mu_weights_wish){0}, NULL, err));
	return load_moments(engine, store, set, err);
}

/* Rank 0's state to everybody; epochs is allocated on all ranks. */
static mural_status share_state(mural_engine *engine, mu_checkpoint_state *state, mural_error *err)
{
	mu_epoch_row *mine = state->totals.epochs;
	mural_status status = mu_comm_broadcast(engine->comm, state, sizeof *state, 0, err);
	state->totals.epochs = mine;
	MU_TRY(status);
	if (!mine)
		mine = state->totals.epochs = calloc(state->totals.n_epochs + 1, sizeof *mine);
	if (!mine)
		status = mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the history of the run");
	MU_TRY(mu_comm_agree(engine->comm, status, err));
	if (state->totals.n_epochs == 0)
		return MURAL_OK;
	return mu_comm_broadcast(engine->comm, state->totals.epochs, state->totals.n_epochs * sizeof *mine, 0, err);
}

static mural_status share_spans(mural_engine *engine, const mu_store *store, mural_error *err)
{
	void *const spans[] = {mu_store_weights(store), store->m, store->v, store->average};
	for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
		if (spans[i])
			MU_TRY(mu_comm_broadcast(engine->comm, spans[i], store->elements * sizeof(float), 0, err));
	return MURAL_OK;
}

mural_status mu_checkpoint_load(mural_engine *engine, const char *set, mu_run_totals *totals, mural_error *err)
{
	mu_checkpoint_state state = {0};
	mu_mirror mirror;
	mural_status status =
	        mu_mirror_open(&mirror, &engine->store, &engine->device, engine->shared, MU_MIRROR_ALL, false, err);
	if (status == MURAL_OK && engine->ranks->rank == 0)
		status = read_set(engine, &mirror.store, set, &state, err);
	MU_TRY_OUT(mu_comm_agree(engine->comm, status, err));
	MU_TRY_OUT(share_state(engine, &state, err));
	MU_TRY_OUT(share_spans(engine, &mirror.store, err));
	status = mu_mirror_write(&mirror, err);
	if (status == MURAL_OK) {
		mu_carried carried = {.loss_scale = 1, .applied = (double)state.updates_applied};
		status = mu_ledger_start(&engine->ledger, &carried, err);
	}
	MU_TRY_OUT(mu_comm_agree(engine->comm, status, err));
	engine->steps_done = state.step;
	*totals = state.totals;
	state.totals.epochs = NULL;
out:
	mu_mirror_close(&mirror);
	free(state.totals.epochs);
	return status;
}

mural_status mural_checkpoint_save(mural_engine *engine, const char *run_dir, unsigned keep, mural_error *err)
{
	return mu_checkpoint_save(engine, run_dir, keep, NULL, err);
}

mural_status mural_checkpoint_load(mural_engine *engine, const char *set, mural_error *err)
{
	mu_run_totals totals;
	MU_TRY(mu_checkpoint_load(engine, set, &totals, err));
	free(totals.epochs);
	return MURAL_OK;
}
