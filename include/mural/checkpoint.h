/* Checkpoints: everything that a run needs to go on as if it had never stopped.
 *
 * A set is a folder below the run's own:
 *
 *     RUN/checkpoints/latest                  names the set that was completed last
 *     RUN/checkpoints/best                    names the best one by the validation images, for people and scripts
 *     RUN/checkpoints/step-00000123/
 *         model.safetensors                   the weights, as weights.safetensors has them
 *         optimizer.safetensors               moments, per named tensor and range of its elements
 *         state.json                          where the run was, and what must be the same when it goes on
 *         manifest.json                       size and checksum of each file, and of itself; what the validation images said
 *
 * A set is written beside, synced, and gets its name when it is complete; `latest` moves last. So at any moment, also when the
 * machine loses power, the earlier complete set is there. docs/checkpoints.md has the formats.
 *
 *     mural_checkpoint_choice choice;
 *     mural_checkpoint_find(&choice, "runs/first", &err);             on one rank: the newest set that is whole
 *     mural_engine_create(&engine, &settings, &err);
 *     mural_checkpoint_load(engine, choice.set, &err);                all ranks, before mural_engine_train_begin
 *     mural_engine_train_begin(engine, &err);                         goes on in the middle of the epoch
 *     ...
 *     mural_checkpoint_save(engine, "runs/first", 2, &err);           all ranks, between two steps
 *
 * mural_train_run does all of this by itself and keeps its tables and sums in step.
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_CHECKPOINT_H
#define MURAL_CHECKPOINT_H

#include "mural/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MURAL_CHECKPOINT_PATH 1200 /* bytes for the path of a set */

typedef struct mural_checkpoint_choice {
	bool found;
	char set[MURAL_CHECKPOINT_PATH]; /* folder; "" if none was found */
	uint64_t step;
	/* Why it is not the set that `latest` names: what was refused and what for, a line each; "" if it is that one. */
	char refused[1024];
} mural_checkpoint_choice;

/* Chooses the set to go on from. path: a set, or a run's folder. Of a run the one that `latest` names is tried first, then from
 * the newest on; each is verified. If there are sets and none is whole, MURAL_DATA names them; a set asked for by its own path
 * must be whole itself. Neither a set nor a run with one: found is false and that is no failure. */
MURAL_API mural_status mural_checkpoint_find(mural_checkpoint_choice *choice, const char *path, mural_error *err);

/* The best set by the validation images of a run's folder, as the set that would be gone on from knows it; verified. A run without
 * validation images has none: found is false. */
MURAL_API mural_status mural_checkpoint_find_best(mural_checkpoint_choice *choice, const char *run_dir,
                                                  mural_error *err);

/* Reads every file of a set and compares sizes and checksums. MURAL_DATA names the file that is missing, cut or changed. */
MURAL_API mural_status mural_checkpoint_verify(const char *set, mural_error *err);

/* All ranks, between two steps, after mural_engine_train_begin. Writes the set of the present step below run_dir, moves
 * `latest`, then removes all but the newest `keep` (at least 1) sets and the best ones that those know of, and sets of later
 * steps, which belong to a future that did not happen. On failure (a full disk) the earlier sets and `latest` are as they were. */
MURAL_API mural_status mural_checkpoint_save(mural_engine *engine, const char *run_dir, unsigned keep,
                                             mural_error *err);

/* The same in the background, where there is memory for a copy (mural.checkpoint.background): begin copies and returns, a thread
 * writes. poll, which all ranks call between steps, never waits for a disk: when all ranks are done it has the thread give the set its
 * name, and when that is done too *underway (may be NULL) becomes false; it fails on all ranks if one of this failed on one. wait: it
 * returns when nothing is under way. At most one set is: begin waits for the one before. An engine that is freed gives up what is
 * under way. */
MURAL_API mural_status mural_checkpoint_begin(mural_engine *engine, const char *run_dir, unsigned keep,
                                              mural_error *err);
MURAL_API mural_status mural_checkpoint_poll(mural_engine *engine, bool wait, bool *underway, mural_error *err);

/* All ranks, before mural_engine_train_begin; rank 0 reads. On any number of ranks. MURAL_USAGE names what does not match
 * (model, seed, batch, data, optimizer) with both values; MURAL_DATA what is damaged. The set is not verified again. */
MURAL_API mural_status mural_checkpoint_load(mural_engine *engine, const char *set, mural_error *err);

#ifdef __cplusplus
}
#endif
#endif
