/* The engine: one model on one rank, trained together with the other ranks.
 *
 *     mural_engine *engine;
 *     mural_engine_create(&engine, &settings, &err);          all ranks; plans memory, then allocates it
 *     mural_engine_train_begin(engine, &err);                 all ranks; starts the loader
 *     mural_step_facts step;
 *     while (mural_engine_step(engine, &step, &err) == MURAL_OK && !step.finished) { ... }
 *     mural_engine_evaluate(engine, test, &facts, &err);      all ranks; every image once
 *     mural_engine_free(engine);
 *
 * Calls marked "all ranks" block until every rank of the comm has made them. If one rank fails, every rank returns from
 * the same call: the failed one with its own error, the others with MURAL_PEER and the lowest failed rank's message.
 * For a whole run with its folder, files and progress see mural_train_run.
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_ENGINE_H
#define MURAL_ENGINE_H

#include "mural/cluster.h"
#include "mural/comm.h"
#include "mural/config.h"
#include "mural/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mural_engine mural_engine;

typedef struct mural_engine_settings {
	const mural_config *config; /* copied */
	const mural_config_report *report; /* for the origin of values in messages; may be NULL; borrowed */
	mural_comm *comm; /* borrowed */
	bool training; /* false: evaluation only, no gradients and no optimizer state */
	/* Borrowed for the engine's life. train: required when training. test, validation: what will be evaluated, so that their
	 * loaders are planned and kept; may be NULL. */
	const mural_data *train, *test, *validation;
	/* This rank shall be as slow as this device (mural/cluster.h); NULL: as fast as it is. Borrowed for the call. */
	const mural_cluster_device *device;
} mural_engine_settings;

/* Bytes that one rank plans, by what they are for. After a run each arena's high-water mark equals its plan. */
typedef struct mural_memory_plan {
	uint64_t parameters, gradients, optimizer; /* arena "model" */
	uint64_t activations; /* arena "step" */
	uint64_t scratch; /* arena "scratch" */
	uint64_t loader; /* ring of micro-batches */
	uint64_t
	        checkpoint; /* the writing rank's copy that is written in the background; 0: checkpoints hold up the training */
	uint64_t total;
} mural_memory_plan;

/* What one optimizer step did, over all ranks where not said otherwise. */
typedef struct mural_step_facts {
	bool finished; /* no step was left; nothing else is filled */
	bool epoch_ends; /* this was the last step of its epoch */
	bool stop_asked; /* some rank had called mural_engine_ask_stop before this step; the same on all ranks */
	uint32_t epoch; /* from 0 */
	uint64_t step; /* optimizer steps so far, this one included */
	uint64_t images;
	double loss, top1, top5; /* mean loss; fractions */
	double learning_rate, gradient_norm; /* norm before clipping, of the unscaled gradient */
	double loss_scale; /* that the gradients of this step had; 1 without loss scaling */
	bool skipped; /* an overflow: weights, moments and schedule are as they were */
	uint64_t applied_steps, skipped_steps; /* so far; together: step */
	/* seconds on this rank */
	double seconds, data_seconds, forward_seconds, backward_seconds, exposed_seconds, hidden_seconds,
	        optimizer_seconds;
} mural_step_facts;

/* How well one class is told. */
typedef struct mural_class_score {
	size_t label;
	char name[64]; /* "" when the set has none; a longer one is cut */
	uint64_t images, right;
} mural_class_score;
#define MURAL_WORST_CLASSES 3

typedef struct mural_evaluation {
	uint64_t images;
	double loss, top1, top5;
	double seconds;
} mural_evaluation;

/* All ranks: rank 0's configuration becomes everybody's. status: rank 0's outcome of resolving it; if that failed, all
 * ranks fail here, with rank 0's message. */
MURAL_API mural_status mural_config_share(mural_config *config, mural_comm *comm, mural_status status,
                                          mural_error *err);

/* All ranks. MURAL_OUT_OF_MEMORY names the largest micro-batch that would fit. On failure *engine is NULL. */
MURAL_API mural_status mural_engine_create(mural_engine **engine, const mural_engine_settings *settings,
                                           mural_error *err);
MURAL_API void mural_engine_free(mural_engine *engine);

/* What was planned, and what was used at most: equal, or the engine has a bug. */
MURAL_API void mural_engine_memory(const mural_engine *engine, mural_memory_plan *planned, mural_memory_plan *used);

/* All ranks: starts the loader. */
MURAL_API mural_status mural_engine_train_begin(mural_engine *engine, mural_error *err);
/* Steps per epoch and in the whole run, known after train_begin. */
MURAL_API uint64_t mural_engine_steps_per_epoch(const mural_engine *engine);
MURAL_API uint64_t mural_engine_total_steps(const mural_engine *engine);
MURAL_API uint64_t mural_engine_images_per_epoch(const mural_engine *engine);
/* Optimizer steps so far, those before a checkpoint included (mural/checkpoint.h). */
MURAL_API uint64_t mural_engine_steps_done(const mural_engine *engine);
/* Images of the next whole batch that each rank takes, [ranks]; NULL: all the same. The engine's own. */
MURAL_API const int *mural_engine_shares(const mural_engine *engine);
/* All ranks. After a failed step the engine can only be freed. */
MURAL_API mural_status mural_engine_step(mural_engine *engine, mural_step_facts *facts, mural_error *err);
/* This rank has failed outside the engine (a full disk, say) with `status`: the next mural_engine_step, which every rank
 * still has to make, fails on all ranks. Pass it the mural_error that holds the words. MURAL_OK does nothing. */
MURAL_API void mural_engine_leave(mural_engine *engine, mural_status status);
/* This rank was asked to stop (a signal, the time is up). The wish travels with the next step, whose facts tell all ranks of
 * it: so they can leave together after the same step. */
MURAL_API void mural_engine_ask_stop(mural_engine *engine);
/* All ranks. */
MURAL_API mural_status mural_engine_evaluate(mural_engine *engine, const mural_data *data, mural_evaluation *facts,
                                             mural_error *err);
/* The same, and the class that each image is taken for, on every rank: best[images of the set], the caller's. */
MURAL_API mural_status mural_engine_classify(mural_engine *engine, const mural_data *data, int32_t *best,
                                             mural_evaluation *facts, mural_error *err);

/* Weights as safetensors under torchvision's names. save: rank 0 writes (the average of weights where that is what is
 * evaluated), all ranks call. load: rank 0 reads any file
 * that mural/weights.h knows and broadcasts; a missing, unexpected or wrongly shaped tensor is MURAL_DATA naming it. */
MURAL_API mural_status mural_engine_save_weights(mural_engine *engine, const char *path, mural_error *err);
MURAL_API mural_status mural_engine_load_weights(mural_engine *engine, const char *path, mural_error *err);

/* The same, to begin a training from: the weights may be for other classes (the head stays as initialised) or another image size
 * (positions are resized as the weights' project does it). ignore_unmatched: names in the file that the model has no place for
 * are left out. notes: on rank 0, a line for each thing that was adapted. */
MURAL_API mural_status mural_engine_init_weights(mural_engine *engine, const char *path, bool ignore_unmatched,
                                                 char notes[MURAL_WEIGHTS_NOTES], mural_error *err);

/* How well this machine kept an emulated device's pace; all 0 on a real one. */
typedef struct mural_pace_facts {
	uint64_t steps, late_steps; /* late: the real work took over 5 % longer than the described device */
	double seconds, late_seconds; /* described in all; spent beyond that in late steps */
} mural_pace_facts;

MURAL_API mural_pace_facts mural_engine_pace(const mural_engine *engine);

/* Floating-point operations of one image, forward and backward. */
MURAL_API double mural_engine_flops_per_image(const mural_engine *engine);
MURAL_API uint64_t mural_engine_parameters(const mural_engine *engine);
/* OpenMP threads per rank in force, and the operations table's name. */
MURAL_API unsigned mural_engine_threads(const mural_engine *engine);
MURAL_API const char *mural_engine_ops(const mural_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
