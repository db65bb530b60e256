/* Loading a set, and the calls that programs make. Rank 0 reads; the others get their state by broadcast.
 * SPDX-License-Identifier: MIT */
#include "engine/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "engine/mirror.h"
#include "engine/optimizer_state.h"
#include "engine/weights.h"

const char *mu_checkpoint_evaluated(const mural_config *config)
{
	return config->optimizer.ema_evaluate ? MU_CHECKPOINT_AVERAGE : MU_CHECKPOINT_MODEL;
}

static void path_in(char path[MU_CHECKPOINT_FILE], const char *folder, const char *name)
{
	snprintf(path, MU_CHECKPOINT_FILE, "%s/%s", folder, name);
}

size_t mu_checkpoint_match_engine(mu_match matches[MU_MATCHES], const mural_engine *engine)
{
	const mural_data *validation = engine->evaluated[MU_EVALUATED_VALIDATION].data;
	return mu_checkpoint_match(matches, &engine->config, mural_data_get_facts(engine->train),
	                           validation ? mural_data_get_facts(validation) : NULL);
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
	size_t n = mu_checkpoint_match_engine(matches, engine);
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

/* Counters go on. The loss scale does, unless the set is from another precision, or has another static scale. */
static mu_carried go_on_from(const mural_engine *engine, const mu_carried *saved)
{
	mu_carried carried = mu_engine_first_carried(&engine->config);
	if (mu_engine_loss_scaling(&engine->config).dynamic && saved->hysteresis > 0) {
		carried = *saved;
		if (carried.hysteresis > engine->config.engine.hysteresis)
			carried.hysteresis = engine->config.engine.hysteresis;
	}
	carried.applied = saved->applied;
	carried.skipped = saved->skipped;
	return carried;
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
	if (status == MURAL_OK)
		status = mu_engine_round_masters(engine, err);
	if (status == MURAL_OK) {
		const mu_carried carried = go_on_from(engine, &state.carried);
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
	MU_TRY(mural_checkpoint_begin(engine, run_dir, keep, err));
	return mural_checkpoint_poll(engine, true, NULL, err);
}

mural_status mural_checkpoint_begin(mural_engine *engine, const char *run_dir, unsigned keep, mural_error *err)
{
	return mu_checkpoint_begin(engine, &(mu_checkpoint_wish){.run_dir = run_dir, .keep = keep}, err);
}

mural_status mural_checkpoint_load(mural_engine *engine, const char *set, mural_error *err)
{
	mu_run_totals totals;
	MU_TRY(mu_checkpoint_load(engine, set, &totals, err));
	free(totals.epochs);
	return MURAL_OK;
}
