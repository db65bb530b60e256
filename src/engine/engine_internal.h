/* The engine's parts, shared by the files of src/engine that make it up.
 *
 *     memory.c    plans and allocates blocks, lays out store and passes
 *     precision.c types of spans, narrow copies, loss scaling
 *     rules.c     which tensors decay, are frozen, have rates of their own
 *     engine.c    creation, weights, facts           engine_device.c  operations and device
 *     step.c      one optimizer step
 *     ledger.h    per-step values on the device     feed.h  micro-batches on their way there
 *     evaluate.c  every image of a set once         rebalance.c  shares that move
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_ENGINE_INTERNAL_H
#define MU_ENGINE_ENGINE_INTERNAL_H

#include "base/safetensors.h"
#include "comm/comm.h"
#include "data/loader.h"
#include "device/device.h"
#include "engine/feed.h"
#include "engine/ledger.h"
#include "engine/news.h"
#include "engine/pace.h"
#include "engine/probe.h"
#include "engine/reducer.h"
#include "engine/replay.h"
#include "engine/sharing.h"
#include "engine/stall.h"
#include "engine/store.h"
#include "kernels/ops.h"
#include "model/vit.h"
#include "monitor/trace.h"
#include "mural/engine.h"
#include "optim/update.h"

/* Uses of a block that are never alive together: each has an arena of its own over the same memory. */
typedef enum mu_use { MU_USE_TRAIN, MU_USE_EVALUATE, MU_USE_UPDATE, MU_USE_COUNT } mu_use;

typedef struct mu_block {
	const char *name;
	mu_memory kind;
	mu_arena arena[MU_USE_COUNT];
	void *memory; /* the device's; NULL while measuring */
	size_t bytes; /* what the largest use needs */
} mu_block;

enum { MU_EVALUATED_TEST, MU_EVALUATED_VALIDATION, MU_EVALUATED };

/* A set that is evaluated again and again. */
typedef struct mu_evaluated {
	const mural_data *data; /* borrowed; NULL if not given */
	mu_loader *loader; /* each of its epochs is one evaluation; it fills the next one's first batches */
} mu_evaluated;

/* Steps in a row that may be skipped before the run is given up. */
#define MU_MOST_SKIPPED 100

/* What the host notes of one step on this rank. */
typedef struct mu_step_state {
	const mu_micro *counts; /* of the last micro-batch, on the device */
	bool empty; /* it had no images of this rank */
	uint32_t epoch;
	uint64_t step_in_epoch;
	uint64_t micro; /* micro-batches begun */
	bool last; /* the one under way is the step's last on this rank */
	uint64_t images, planned; /* of this rank; of all */
	double data, forward, backward, exposed, hidden; /* seconds */
	double own; /* seconds until this rank's last reduction could begin */
} mu_step_state;

#define MU_FAULT_TEXT 160

typedef struct mu_saving mu_saving; /* checkpoint_save.c */

struct mural_engine {
	mural_config config;
	mural_data_config in_order; /* config.data without shuffling, for evaluation */
	const mural_config_report *report; /* borrowed, may be NULL */
	mu_comm *comm; /* borrowed */
	const mu_comm_facts *ranks;
	mu_comm *group; /* who reduces, where somebody is left out; NULL: all, or this rank is left out */
	bool training;
	mu_sharing sharing; /* of batches among ranks */
	mu_probe probe; /* of links, where shares follow speed */
	mu_news news; /* where somebody is left out */

	mu_pulse pulse; /* of this rank, for the others to watch */
	mu_stall_watch stall; /* for whom they wait */

	mu_vit vit;
	mu_device device;
	const mu_ops *ops;
	mu_ops_context *context;
	unsigned threads;

	int card; /* the device's number, or MU_NO_CARD (devices.h) */
	int card_ranks; /* that compute on it */
	size_t free_bytes; /* of the device, before any rank took of it */
	bool shared; /* the host reads and writes the device's memory */
	char bus[sizeof((mu_device_facts *)0)->bus]; /* the card's address, "" on processors */
	bool can_replay; /* the device captures, and nobody forbids it */
	mu_replay replayed_micro,
	        replayed_update; /* forward and backward of one micro-batch; from gradients to weights */

	mu_block model, step, scratch, exchange; /* the last: pinned host memory */
	mu_ledger ledger;
	mu_feed train_feed, evaluate_feed;
	mu_store store;
	mu_reducer reducer;
	void *staging; /* of gradients between a card and the ranks, pinned; NULL where the host shares memory */
	mu_segments segments;
	mu_pace pace; /* of an emulated device */
	mu_trace *trace; /* borrowed; NULL: nobody watches */
	mu_vit_pass *train_pass, *evaluate_pass;
	void *norm_scratch, *update_scratch;
	size_t first_trained; /* units before it need no backward */
	bool any_frozen;
	bool wants_copy, copies; /* this rank would write, writes checkpoints in the background, from: */
	void *copy; /* pinned host memory */
	size_t copy_bytes; /* as planned */
	mural_memory_plan plan;
	mu_saving *saving; /* NULL until the first checkpoint */

	const mural_data *train; /* borrowed; NULL if not given */
	mu_loader *loader;
	mu_evaluated evaluated[MU_EVALUATED];
	mural_schedule_config schedule; /* with the run's length filled in */
	uint64_t steps_per_epoch, total_steps, steps_done;
	unsigned skipped_in_a_row; /* steps */
	bool stop_asked; /* on this rank, carried into the next step */
	mural_status leaving; /* a failure outside the engine, carried into the next step */
};

/* mural_engine_create with a table of operations that the configuration does not name; ops NULL: the one it names. */
mural_status mu_engine_create_on(mural_engine **engine, const mural_engine_settings *settings, const mu_ops *ops,
                                 mural_error *err);

/* Marks tensors as the configuration wants them, and makes the optimizer's segments. Before memory is planned. */
mural_status mu_engine_apply_rules(mural_engine *engine, mural_error *err);

/* All ranks: who computes on what; engine->ops, where it is not given, and engine->card. */
mural_status mu_engine_choose_device(mural_engine *engine, mural_error *err);
/* Device, threads, context. */
mural_status mu_engine_open_device(mural_engine *engine, mural_error *err);

/* precision.c: types that the configuration means, and whether the operations have them. */
mu_dtype mu_engine_type(const mural_config *config);
mu_dtype mu_engine_gradient_type(const mural_config *config);
mu_dtype mu_engine_wire_type(const mural_config *config);
/* Of gradients before they are summed, as a multiple of the step's images. */
double mu_engine_divisor(const mural_config *config, int ranks);
mural_status mu_engine_check_types(const mural_engine *engine, mural_error *err);
/* What the first step is handed, and the rules of its loss scale. */
mu_carried mu_engine_first_carried(const mural_config *config);
mu_loss_scaling mu_engine_loss_scaling(const mural_config *config);
/* Narrow parameters follow their masters; nothing where there are none. */
mural_status mu_engine_round_masters(mural_engine *engine, mural_error *err);
/* A unit's gradients of one micro-batch onto those of the step, where they are apart. */
mural_status mu_engine_accumulate(mural_engine *engine, size_t unit, mural_error *err);
/* Which spans the optimizer works on. */
mu_update mu_engine_update(const mural_engine *engine);

/* fault.c: all ranks, when a loss or gradient is not finite: where that began. The text is the same on all ranks, "" if nothing
 * was found. The record is lost. */
mural_status mu_engine_find_fault(mural_engine *engine, const mu_step_state *state, char text[MU_FAULT_TEXT],
                                  mural_error *err);

/* Plans memory, refuses what does not fit, allocates and lays everything out. engine_release_memory undoes it and takes a
 * half-made engine. */
mural_status mu_engine_allocate(mural_engine *engine, mural_error *err);
void mu_engine_release_memory(mural_engine *engine);

/* Its parts: names the blocks and says whether checkpoints are copied; what micro-batches of `capacity` images need, without
 * allocating; the largest capacity below `fails` whose plan stays within `limit`, 0 if not even one image's does. */
void mu_engine_prepare_plan(mural_engine *engine);
mural_status mu_engine_measure(mural_engine *engine, size_t capacity, mural_memory_plan *plan, mural_error *err);
size_t mu_engine_largest_fit(mural_engine *engine, size_t limit, size_t fails);
/* What the store holds for a configuration. */
mu_store_settings mu_engine_store_settings(const mural_config *config, bool training, int ranks);

/* By which factor the device enlarges a set's images: 1 where the host resizes or nothing is to be done, 0 where the device was
 * asked for and cannot. */
size_t mu_engine_resize_factor(const mural_engine *engine, const mural_data *data);
/* MURAL_USAGE for the last. */
mural_status mu_engine_check_resize(const mural_engine *engine, const mural_data *data, mural_error *err);

/* Settings of a loader over one set. */
mu_loader_settings mu_engine_loader_settings(const mural_engine *engine, const mural_data *data, bool training);

/* Makes the loaders of engine->evaluated that are not there yet. */
mural_status mu_engine_keep_loaders(mural_engine *engine, mural_error *err);

/* The weights of a store in host memory as a file, with what it takes to use them. */
mural_status mu_engine_write_weights(const mural_engine *engine, const mu_store *store, const char *path,
                                     mural_error *err);
/* That file, to be written by others; here the store may lie anywhere. The caller releases it after success. */
mural_status mu_engine_lay_out_weights(const mural_engine *engine, const mu_store *store, mu_safetensors_layout *layout,
                                       mural_error *err);

/* One micro-batch, on the device, as the model wants it. */
mu_vit_input mu_engine_input(const mural_engine *engine, const mural_data *data, const mu_batch *batch);

/* rebalance.c. All ranks, before the first step. */
mural_status mu_engine_begin_sharing(mural_engine *engine, mural_error *err);
/* The training's loader, with the shares that are known. */
mural_status mu_engine_make_loader(mural_engine *engine, mu_loader_settings *settings, mural_error *err);
/* All ranks, where somebody is left out of the reductions: it learns what the others decided in the step, and they of its failure or
 * wish to stop in the step before. status: a member's own. If any rank failed, all return an error. */
mural_status mu_engine_tell(mural_engine *engine, mural_status status, mural_error *err);
void mu_engine_close_group(mural_engine *engine);
/* All ranks, behind a step that counts as done: where shares move they may change for a later step. */
mural_status mu_engine_share(mural_engine *engine, const mu_step_state *state, mural_error *err);

/* All ranks: waits for the device; the ledger's view is then up to date. If any rank failed (status), all return an error. */
mural_status mu_engine_read(mural_engine *engine, mural_status status, mural_error *err);

/* All ranks: everything of a step but its update. Afterwards the store's gradients are the sums over all ranks, times the
 * loss scale / planned, and the ledger holds the sums. A rank that failed returns its error; the others go on until they
 * read the sums. */
mural_status mu_engine_gradients(mural_engine *engine, mu_step_state *state, mural_error *err);

#endif
