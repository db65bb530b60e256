/* The parts of checkpoints: names, manifest, state. What they are for is told in mural/checkpoint.h.
 *
 *     checkpoint.c            the public calls, and loading a set
 *     checkpoint_save.c       saving one, while the training goes on
 *     checkpoint_image.c      its large files, as they will lie on the disk
 *     checkpoint_name.c       the set that is complete gets its name, and is named
 *     checkpoint_find.c       the sets of a run: which there are, which to go on from, which to remove
 *     checkpoint_manifest.c   manifest.json
 *     checkpoint_state.c      state.json
 *     checkpoint_match.c      what must be the same when a run goes on
 *     optimizer_state.c       optimizer.safetensors
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_CHECKPOINT_H
#define MU_ENGINE_CHECKPOINT_H

#include "engine/engine_internal.h"
#include "engine/run_totals.h"
#include "mural/checkpoint.h"

#define MU_CHECKPOINT_MODEL "model.safetensors"
#define MU_CHECKPOINT_OPTIMIZER "optimizer.safetensors" /* shards begin with "optimizer" as well */
#define MU_CHECKPOINT_STATE "state.json"
#define MU_CHECKPOINT_AVERAGE "average.safetensors" /* with mural.ema only */
#define MU_CHECKPOINT_MANIFEST "manifest.json"
#define MU_CHECKPOINT_NAME 64 /* bytes of a file's name */
#define MU_CHECKPOINT_FILE (MURAL_CHECKPOINT_PATH + MU_CHECKPOINT_NAME) /* bytes of a file's path */

/* The file of a set whose weights the run evaluates: the average where it does. */
const char *mu_checkpoint_evaluated(const mural_config *config);

/* The tables of the run around the engine: sync brings to the disk what was written to them, before the set that tells of these steps
 * gets its name. It is called from another thread, while the run writes on; `of` stays until no set is under way or the engine is
 * freed. */
typedef struct mu_run_tables {
	mural_status (*sync)(const void *of, mural_error *err); /* NULL: there are none */
	const void *of;
} mu_run_tables;

typedef struct mu_checkpoint_wish {
	const char *run_dir;
	unsigned keep;
	const mu_run_totals *totals; /* what the run has summed up; NULL: there is no run around the engine */
	mu_run_tables tables;
} mu_checkpoint_wish;

/* As mural_checkpoint_begin and _load, with the run around the engine. load: the caller frees totals->epochs, on every rank. */
mural_status mu_checkpoint_begin(mural_engine *engine, const mu_checkpoint_wish *wish, mural_error *err);
mural_status mu_checkpoint_load(mural_engine *engine, const char *set, mu_run_totals *totals, mural_error *err);

/* A set that is being written is given up. NULL is fine. */
void mu_saving_free(mu_saving *saving);

/* RUN/checkpoints/WHICH ("latest", "best") names the set of this step. */
mural_status mu_checkpoint_point_to(const char *run_dir, const char *which, uint64_t step, mural_error *err);
/* The complete set `part` becomes `set`, also where there is one already; then `latest` moves to it, and then `best` to the set of
 * that step (0: none). What fails leaves the rest undone. */
mural_status mu_checkpoint_publish(const char *part, const char *set, const char *run_dir, uint64_t step, uint64_t best,
                                   mural_error *err);
/* RUN/checkpoints/step-00000123 into a buffer. MURAL_FAILED when that is too long. */
mural_status mu_checkpoint_path(char set[MURAL_CHECKPOINT_PATH], const char *run_dir, uint64_t step, mural_error *err);
/* The run's folder that holds this set, "" if it lies elsewhere. */
void mu_checkpoint_run_of(char run_dir[MURAL_CHECKPOINT_PATH], const char *set);
/* Does the run's folder hold any set, whole or not? */
bool mu_checkpoint_any(const char *run_dir);
/* A set's folder with its files, or what is left of one. What cannot be removed now stays for the next time. */
void mu_checkpoint_remove(const char *set);
/* Removes all but the newest `keep` sets up to `step` and the best sets of those, later ones, and leftovers of writes that did not
 * finish. */
void mu_checkpoint_prune(const char *run_dir, uint64_t step, unsigned keep);
/* Everything under RUN/checkpoints that is ours. */
void mu_checkpoint_clear(const char *run_dir);

typedef struct mu_manifest_file {
	char name[MU_CHECKPOINT_NAME];
	uint64_t bytes, checksum;
} mu_manifest_file;

/* What the validation images said, when the run has some. */
typedef struct mu_manifest_note {
	mural_metric metric;
	mu_validated here; /* of this set's own step; step 0: it was not evaluated */
	uint64_t
	        best; /* step of the best set when this one was written, 0: none yet. It stays as long as this one does */
} mu_manifest_note;

/* "top1"; NULL for what is none. */
const char *mu_metric_text(mural_metric metric);

typedef struct mu_manifest { /* zero-initialise */
	uint64_t step;
	uint64_t piece; /* the files' checksums are of pieces of so many bytes; 0: of whole files */
	mu_manifest_note note;
	mu_manifest_file *files;
	size_t n_files;
} mu_manifest;

mural_status mu_manifest_write(const mu_manifest *manifest, const char *folder, mural_error *err);
/* Reads it, and checks its own checksum; the files are not looked at. Release it also after a failure. */
mural_status mu_manifest_read(mu_manifest *manifest, const char *folder, mural_error *err);
/* Are the files what the manifest says? */
mural_status mu_manifest_verify(const mu_manifest *manifest, const char *folder, mural_error *err);
void mu_manifest_release(mu_manifest *manifest);

/* What must be the same when a run goes on: keys as people know them, and values as text. */
typedef struct mu_match {
	const char *key;
	char value[80];
} mu_match;
#define MU_MATCHES 32

/* Returns how many there are. */
size_t mu_checkpoint_match_engine(mu_match matches[MU_MATCHES], const mural_engine *engine);
size_t mu_checkpoint_match(mu_match matches[MU_MATCHES], const mural_config *config, const mural_data_facts *train,
                           const mural_data_facts *validation);

/* state.json. */
typedef struct mu_checkpoint_state {
	uint64_t step; /* optimizer steps */
	mu_carried carried; /* updates applied and skipped, loss scale */
	uint64_t epoch, step_in_epoch; /* of the next step, both from 0 */
	int ranks; /* that wrote it; any number may read it */
	mu_run_totals totals;
} mu_checkpoint_state;

mural_status mu_checkpoint_state_write(const char *path, const mu_checkpoint_state *state, const mu_match *matches,
                                       size_t n_matches, mural_error *err);
/* MURAL_USAGE naming each value that is not the same, MURAL_DATA for anything that is not a state. The caller frees
 * state->totals.epochs, also after a failure. */
mural_status mu_checkpoint_state_read(const char *path, mu_checkpoint_state *state, const mu_match *matches,
                                      size_t n_matches, mural_error *err);

#endif
