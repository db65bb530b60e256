/* Configuration: file, command line, preset and weights become one checked, immutable struct that knows where each value
 * came from.
 *
 * Precedence: command line over file over preset over what weights tell over default. The file is DeepSpeed's (HJSON as people write it), with
 * Mural's own settings in a block "mural". Every message names file:line:key, what was expected and what was found.
 * Nobody looks a key up by name later: components get their slice (`&config->batch`, ...).
 *
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_CONFIG_H
#define MURAL_CONFIG_H

#include "mural/data.h"
#include "mural/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The batch triangle, resolved: train_batch == micro_batch * accumulation * ranks, where shares are equal. */
typedef struct mural_batch_config {
	uint64_t train_batch; /* images per optimizer step, all ranks */
	uint64_t micro_batch; /* images per rank and forward/backward; with unequal shares at most so many */
	uint64_t
	        accumulation; /* micro-batches per step and rank; with unequal shares what the largest needs at first */
} mural_batch_config;

#define MURAL_BALANCE_RANKS 256 /* most ranks with unequal shares */

/* How the images of a batch are shared out: docs/unequal-workers.md. */
typedef struct mural_balance_config {
	char shares[1536]; /* "equal" (default), "auto", "replay:FILE", or a number per rank, "5,1" */
	bool remove; /* auto: whoever costs more than it brings is left out of the reductions; default false: proposed */
} mural_balance_config;

typedef enum mural_optimizer_kind {
	MURAL_OPTIMIZER_ADAMW,
	MURAL_OPTIMIZER_ADAM, /* L2 in the gradient: DeepSpeed's Adam with adam_w_mode false */
	MURAL_OPTIMIZER_SGD, /* torch's, L2 in the gradient */
	MURAL_OPTIMIZER_LION,
	MURAL_OPTIMIZER_LAMB,
	MURAL_OPTIMIZER_MUON, /* 2-D weights; AdamW for all other tensors */
	MURAL_OPTIMIZER_OTHER /* known to DeepSpeed, read and checked, not runnable yet; `name` says which */
} mural_optimizer_kind;

typedef enum mural_decay_rule {
	MURAL_DECAY_ALL, /* every parameter, as torch.optim and DeepSpeed do */
	MURAL_DECAY_WEIGHTS /* not biases, norms, positions and class token, as timm does */
} mural_decay_rule;

typedef struct mural_optimizer_config {
	mural_optimizer_kind kind;
	char name[32]; /* lower case, as in the file */
	double lr; /* > 0; default 1e-3 */
	double beta1, beta2; /* [0, 1); 0.9, 0.999 */
	double eps; /* > 0; 1e-8 */
	double weight_decay; /* >= 0; 0.01 for AdamW without a file, DeepSpeed's 0 with one */
	bool bias_correction; /* true */
	double momentum; /* [0, 1); SGD 0, Muon 0.95 */
	double dampening; /* SGD: [0, 1]; 0 */
	bool nesterov; /* SGD: false; needs momentum and no dampening. Muon: true */
	double max_coeff, min_coeff; /* LAMB: limits of the trust ratio; 10, 0.01 */
	bool eps_inside_sqrt; /* LAMB: false */
	double adam_lr; /* Muon: rate of the tensors left to AdamW, where lr is that of its own; > 0; 3e-4 */
	mural_decay_rule decay_rule;
	double layer_decay; /* (0, 1]; a layer's rate is lr times this to the power of how many layers lie behind it */
	char freeze[256]; /* units and patterns of tensor names that are not trained; "" = none */
	double ema_decay; /* [0, 1): average of weights kept beside them; 0 = none */
	bool ema_warm_up; /* forget the first weights sooner: min(decay, 1 - (1 + n)^(-2/3)) */
	bool ema_evaluate; /* evaluate the average instead of the weights */
	double clipping; /* global L2 norm, 0 = off; default 1.0 as DeepSpeed since 0.19.3 */
} mural_optimizer_config;

typedef enum mural_schedule_kind {
	MURAL_SCHEDULE_CONSTANT,
	MURAL_SCHEDULE_COSINE, /* Mural's own: linear warm-up to lr, then half a cosine to min_lr at the last step */
	MURAL_SCHEDULE_WARMUP, /* DeepSpeed WarmupLR */
	MURAL_SCHEDULE_WARMUP_DECAY, /* WarmupDecayLR */
	MURAL_SCHEDULE_WARMUP_COSINE, /* WarmupCosineLR */
	MURAL_SCHEDULE_ONE_CYCLE, /* OneCycle */
	MURAL_SCHEDULE_RANGE_TEST /* LRRangeTest */
} mural_schedule_kind;

/* Fields outside the kind's own are 0. Names and formulas: DeepSpeed's schedulers; docs/configuration.md. */
typedef struct mural_schedule_config {
	mural_schedule_kind kind;
	uint64_t total_steps; /* optimizer steps of the run; resolved from epochs where needed, 0 = not yet known */
	double warmup_epochs; /* COSINE: warm-up in epochs, used when warmup_steps is 0 */
	uint64_t warmup_steps;
	bool warmup_log; /* DeepSpeed's warmup_type "log" (its default); false: "linear" */
	double min_lr; /* COSINE: last value. WARMUP, WARMUP_DECAY: warmup_min_lr */
	double max_lr; /* WARMUP, WARMUP_DECAY: warmup_max_lr; ONE_CYCLE: cycle_max_lr */
	double warmup_min_ratio, cos_min_ratio; /* WARMUP_COSINE */
	double cycle_min_lr, cycle_decay_rate;
	uint64_t cycle_first_steps, cycle_second_steps, cycle_decay_steps, cycle_first_stairs, cycle_second_stairs;
	bool cycle_momentum;
	double cycle_min_momentum, cycle_max_momentum, cycle_momentum_decay;
	double range_min_lr, range_rate;
	uint64_t range_steps;
	bool range_staircase;
} mural_schedule_config;

typedef enum mural_precision { MURAL_FP32, MURAL_BF16, MURAL_FP16 } mural_precision;

/* Of gradients: the model's (its precision), or another. */
typedef enum mural_number_type {
	MURAL_TYPE_MODEL,
	MURAL_TYPE_FP32,
	MURAL_TYPE_FP16,
	MURAL_TYPE_BF16
} mural_number_type;

typedef enum mural_offload { MURAL_OFFLOAD_NONE, MURAL_OFFLOAD_CPU, MURAL_OFFLOAD_NVME } mural_offload;

typedef struct mural_engine_config {
	mural_precision precision;
	double loss_scale; /* fp16: 0 = dynamic */
	unsigned initial_scale_power, loss_scale_window, hysteresis;
	bool consecutive_hysteresis;
	double min_loss_scale;
	mural_number_type grad_accum_type; /* how gradients are kept and added up over micro-batches: MODEL or FP32 */
	mural_number_type communication_type; /* how they travel between ranks */
	/* By what a rank's gradients are divided before they are summed: the ranks (prescale_gradients, or a factor of 1) or this
	 * factor. The update undoes the rest, so only the range of narrow types can tell. */
	bool prescale_gradients;
	double predivide_factor; /* default 1 */
	bool skip_overflow; /* bf16: a step whose gradient is not finite is left out; false: it ends the run; default true */
	int zero_stage; /* 0 .. 3 */
	uint64_t reduce_bucket; /* elements; default 5e8 */
	uint64_t allgather_bucket; /* elements; default 5e8 */
	bool overlap_comm; /* reduce during backward; Mural's default: true */
	uint64_t sub_group_size, persistence_threshold, model_persistence_threshold, prefetch_bucket;
	mural_offload offload_optimizer, offload_param;
	bool offload_optimizer_pin, offload_param_pin;
} mural_engine_config;

typedef struct mural_run_config {
	char run_dir[1024]; /* where the run's folder is written; "" = runs/<time> */
	uint32_t epochs; /* default 1 */
	uint64_t max_steps; /* 0 = no limit */
	bool measure_only; /* nothing is evaluated, watched or kept: for trials that are measured and forgotten */
	double max_hours; /* stops with a checkpoint after so many hours; 0 = no limit */
	double hang_seconds; /* without a sign of life from a rank until all give up; 0 = never; default 20 */
	/* Epochs between evaluations on the validation images or, without any, on the test set; 0 = only at the end; default 1 */
	uint32_t eval_every;
	uint32_t seed;
	uint64_t steps_per_print; /* 0 = never, DeepSpeed's default with a file */
	bool wall_clock_breakdown;
	char ops[512]; /* "auto", "mixed", "cpu", "cuda", "cuda:1", "reference"; or one for each rank: "cuda,cpu" */
	bool deterministic; /* the same bits in every process on a GPU, too: no algorithm is chosen by measuring */
	bool eager; /* a GPU's work is queued operation by operation, not captured and replayed: for looking for faults */
	char comm[32]; /* "auto", "self", "openmpi", "mpich" */
	unsigned threads; /* OpenMP threads per rank; 0 = cores / ranks on the node */
	double label_smoothing; /* [0, 1) */
	bool progress; /* progress bar on a terminal */
	bool strict; /* warnings are errors */
	char init_weights[1024]; /* weights to start from (mural/weights.h); "" = none */
	bool ignore_unmatched; /* names in them that the model has no place for are left out, not an error */
} mural_run_config;

/* What a run tells about itself beyond result.json and its tables; all off by default. docs/profiling.md. */
typedef struct mural_observe_config {
	bool memory_breakdown; /* a line of memory at the start, after the first step and each epoch */
	bool tensorboard, csv_monitor;
	/* <output_path>/<job_name>; an output_path of "" is the run's folder */
	char tensorboard_path[512], tensorboard_job[128], csv_path[512], csv_job[128];
	bool comms_logger, comms_verbose, comms_all;
	unsigned
	        comms_ops; /* without comms_all: bit n for the n-th word of comms_logger.prof_ops in docs/configuration.md */
	bool flops_profiler, flops_detailed;
	uint64_t flops_step; /* profiled, from 1; 0 = none */
	uint64_t flops_top; /* units listed as the most expensive */
	char flops_file[512]; /* "" = where progress goes */
	char timeline[512]; /* file; "" = none */
	uint64_t timeline_first, timeline_steps; /* from 1; how many */
} mural_observe_config;

/* A cluster to stand for: its links and devices are emulated (mural/cluster.h). */
typedef struct mural_emulation_config {
	char cluster[512]; /* file; "" = none */
	int placement; /* mural_placement */
	double link_scale; /* each byte on the emulated links counts as so many; > 0; default 1 */
} mural_emulation_config;

/* A run also writes a checkpoint when it stops on request and after its last step, unless both intervals are 0. */
typedef struct mural_checkpoint_config {
	uint64_t every_steps; /* steps between checkpoints; 0 (default) = not by steps */
	uint32_t every_epochs; /* epochs between checkpoints; default 1; 0 = not by epochs */
	uint32_t keep; /* complete sets that stay; default 2 */
	bool background; /* write while the training goes on, from a copy in host memory; default true */
} mural_checkpoint_config;

/* Which weights are best, by the validation images. */
typedef enum mural_metric { MURAL_METRIC_TOP1, MURAL_METRIC_LOSS } mural_metric;

/* How validation images are used; which they are is data.validation_*. */
typedef struct mural_validation_config {
	uint64_t every_steps; /* steps between evaluations, beside run.eval_every; 0 (default) = not by steps */
	mural_metric metric; /* default top1 */
	uint32_t patience; /* evaluations without a better one after which the run ends; 0 (default) = it does not */
	double min_delta; /* patience counts as better what is so by more than this; >= 0; default 0 */
} mural_validation_config;

typedef struct mural_config {
	mural_model_config model;
	mural_data_config data;
	mural_batch_config batch;
	mural_optimizer_config optimizer;
	mural_schedule_config schedule;
	mural_engine_config engine;
	mural_checkpoint_config checkpoint;
	mural_validation_config validation;
	mural_run_config run;
	mural_observe_config observe;
	mural_emulation_config emulation;
	mural_balance_config balance;
	int ranks;
} mural_config;

/* What to read. Zero-initialise. Arrays and strings are borrowed for the call. */
typedef struct mural_config_sources {
	const char *file; /* path as the user gave it, or NULL */
	int argc; /* options only: no program name, no command */
	const char *const *argv;
	int ranks; /* data-parallel world, >= 1 */
	/* Nothing is trained: the batch triangle is not checked, micro_batch is the file's or 64, and options that only training
	 * obeys are MURAL_USAGE. In a file they may stand, since it is the training's. */
	bool evaluation;
	/* What this file tells about model and images stands in for what nobody says; NULL: run.init_weights. */
	const char *weights;
} mural_config_sources;

typedef struct mural_config_report mural_config_report; /* origins, warnings, the values as text */

/* Resolves and checks. On success *config is complete and *report (may be NULL: not wanted) is the caller's to free.
 * On failure err says why, *report is NULL, nothing else changed. */
MURAL_API mural_status mural_config_resolve(mural_config *config, mural_config_report **report,
                                            const mural_config_sources *sources, mural_error *err);
MURAL_API void mural_config_report_free(mural_config_report *report);

/* Can this build run it? MURAL_USAGE "... not supported" naming the key, its value and its line. */
MURAL_API mural_status mural_config_check_supported(const mural_config *config, const mural_config_report *report,
                                                    mural_error *err);

/* Warnings, each as "W-UNKNOWN: file:line: key: ..." . */
MURAL_API size_t mural_config_warnings(const mural_config_report *report);
MURAL_API const char *mural_config_warning(const mural_config_report *report, size_t i);

/* "run.json:3:2: train_batch_size", "argument --lr", "preset vit_b_16", "default" for a key such as "optimizer.params.lr". */
MURAL_API const char *mural_config_origin(const mural_config_report *report, const char *key);

/* --show-config: every value in force with its origin, one line each, grouped; valid HJSON that resolves to the same. */
MURAL_API void mural_config_print(const mural_config *config, const mural_config_report *report, FILE *out);

/* A configuration to be written as a file. */
typedef struct mural_config_edit {
	const mural_config *config; /* what the file shall say */
	const mural_config_report *report; /* which of it came from the command line; may be NULL */
	const char *file; /* the user's, or NULL */
	const char *const *keys; /* that changed since, as "train_batch_size"; ends with NULL */
} mural_config_edit;

/* Writes the user's file with `keys`, and what the command line had said, as they are in config; all the rest, comments included,
 * stays as the user wrote it, and plain JSON stays plain JSON. Without a file: mural_config_print's text. The result is read back for
 * config->ranks and must be config: else MURAL_FAILED, and nothing is written. `path` may be `file`. */
MURAL_API mural_status mural_config_save(const char *path, const mural_config_edit *edit, mural_error *err);

/* --help-config: every key, type, range, default and meaning, from the table that the reader uses. markdown: as
 * docs/configuration.md has it. */
MURAL_API void mural_config_help(FILE *out, bool markdown);
/* Options that mural_config_resolve takes from a command line, for `mural train --help`. evaluation: those that it takes for
 * sources->evaluation. */
MURAL_API void mural_config_help_options(FILE *out, bool evaluation);

#ifdef __cplusplus
}
#endif
#endif
