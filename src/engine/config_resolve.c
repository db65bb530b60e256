/* From sources to one configuration: default < weights < preset < file < argument, then the fields that follow from others.
 * SPDX-License-Identifier: MIT */
#include "engine/config_build.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/config_unknown.h"

static void *at(mu_config_build *b, size_t row)
{
	return (char *)&b->values + mu_config_rows[row].offset;
}

static bool said(const mu_config_build *b, size_t row)
{
	return b->given[row].from == MU_FROM_FILE || b->given[row].from == MU_FROM_ARGUMENT;
}

/* Default as text; some depend on the kind in force. */
static const char *fallback_of(const mu_config_build *b, size_t row)
{
	const char *key = mu_config_rows[row].key;
	if (!strcmp(key, "optimizer.params.lr") && b->optimizer->lr)
		return b->optimizer->lr;
	if (!strcmp(key, "optimizer.params.eps") && b->optimizer->eps)
		return b->optimizer->eps;
	if (!strcmp(key, "optimizer.params.betas") && b->optimizer->beta2)
		return "0.9, 0.95";
	if (!strcmp(key, "optimizer.params.weight_decay") && b->given[mu_config_find("optimizer")].node)
		return "0";
	if (!strcmp(key, "optimizer.params.momentum"))
		return b->optimizer->bit == MU_OPT_MUON ? "0.95" : "0";
	if (!strcmp(key, "scheduler.params.warmup_max_lr") && b->schedule == MURAL_SCHEDULE_WARMUP_DECAY)
		return "0.001";
	return mu_config_rows[row].fallback;
}

static mural_status store_defaults(mu_config_build *b)
{
	for (size_t i = 0; i < mu_config_row_count; i++) {
		const char *text = fallback_of(b, i);
		mu_config_items items;
		if (!mu_config_stored(i) || !text || !mu_config_applies(i, b->optimizer->bit, b->schedule))
			continue;
		if (!mu_config_from_text(&items, i, text))
			return mu_bug(b->err, mu_config_rows[i].key);
		mu_config_store(&b->values, i, &items);
	}
	return MURAL_OK;
}

/* What was said about a row, into its field. */
static void store_said(mu_config_build *b, size_t row)
{
	mu_config_given *given = &b->given[row];
	if (given->option && mu_config_applies(row, b->optimizer->bit, b->schedule)) {
		given->from = MU_FROM_ARGUMENT;
		mu_config_store(&b->values, row, &given->argument);
	} else if (given->node && mu_config_rows[row].type != MU_CONFIG_BLOCK) {
		given->from = MU_FROM_FILE;
		mu_config_store(&b->values, row, &given->file);
	}
}

/* An option whose every row belongs to another optimizer or schedule does nothing: that is said, once. */
static void warn_idle_options(mu_config_build *b)
{
	for (size_t i = 0; i < mu_config_row_count; i++) {
		const char *option = b->given[i].option;
		bool used = false, first = true;
		for (size_t j = 0; option && j < mu_config_row_count; j++) {
			bool same = b->given[j].option == option;
			used |= same && mu_config_applies(j, b->optimizer->bit, b->schedule);
			first &= !(same && j < i);
		}
		if (option && first && !used)
			mu_config_warn(b, "W-NOEFFECT", NULL, MU_CONFIG_NO_ROW,
			               "argument %.*s: does nothing with this optimizer and schedule",
			               mu_config_option_bytes(option), option);
	}
}

static void store_item_arguments(mu_config_build *b)
{
	for (size_t i = 0; i < mu_config_short_count; i++) {
		const mu_config_item_argument *one = &b->item_argument[i];
		size_t row = mu_config_find(mu_config_shorts[i].key);
		if (!one->option || !mu_config_applies(row, b->optimizer->bit, b->schedule))
			continue;
		((double *)at(b, row))[mu_config_shorts[i].item] = one->items.item[0].number.value;
		b->given[row].option = one->option;
		b->given[row].from = MU_FROM_ARGUMENT;
	}
}

/* The preset's shape, below what the file and the arguments say. */
static mural_status store_preset(mu_config_build *b)
{
	mural_model_config *model = &b->values.config.model;
	size_t row = mu_config_find("mural.model");
	store_said(b, row);
	bool custom = !strcmp(b->values.model, "custom");
	mural_error err = {0};
	if (mural_model_preset(model, custom ? mu_config_rows[row].fallback : b->values.model, &err) != MURAL_OK)
		return mu_config_fail_row(b, row, "%s", err.message);
	snprintf(model->preset, sizeof model->preset, "%s", b->values.model);
	static const char *const shaped[] = {"mural.patch", "mural.depth", "mural.width", "mural.heads",
	                                     "mural.mlp_width"};
	for (size_t i = 0; i < sizeof shaped / sizeof *shaped; i++) {
		size_t shape = mu_config_find(shaped[i]);
		size_t *field = at(b, shape), before = *field;
		b->given[shape].from = custom ? MU_FROM_DEFAULT : MU_FROM_PRESET;
		store_said(b, shape);
		if (*field != before)
			strcpy(model->preset, "custom");
	}
	return MURAL_OK;
}

static mural_optimizer_kind kind_of(const char *name, bool adam_w_mode)
{
	static const struct {
		const char *name;
		mural_optimizer_kind kind;
	} kinds[] = {{"adamw", MURAL_OPTIMIZER_ADAMW},
	             {"sgd", MURAL_OPTIMIZER_SGD},
	             {"lion", MURAL_OPTIMIZER_LION},
	             {"lamb", MURAL_OPTIMIZER_LAMB},
	             {"muon", MURAL_OPTIMIZER_MUON}};
	if (!strcmp(name, "adam"))
		return adam_w_mode ? MURAL_OPTIMIZER_ADAMW : MURAL_OPTIMIZER_ADAM;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(name, kinds[i].name))
			return kinds[i].kind;
	return MURAL_OPTIMIZER_OTHER;
}

/* DeepSpeed's Muon takes `lr` for both sides, each side's own before it, and has a default for each. */
static void settle_muon(mu_config_build *b)
{
	mural_optimizer_config *o = &b->values.config.optimizer;
	size_t lr = mu_config_find("optimizer.params.lr"), muon = mu_config_find("optimizer.params.muon_lr"),
	       adam = mu_config_find("optimizer.params.adam_lr");
	if (!said(b, adam))
		o->adam_lr = said(b, lr) ? o->lr : 3e-4;
	if (said(b, muon))
		o->lr = b->values.muon_lr;
	o->nesterov = o->bias_correction = true;
}

/* One kind of optimizer out of what the file says. */
static void settle_optimizer(mu_config_build *b)
{
	mural_optimizer_config *o = &b->values.config.optimizer;
	size_t i = 0;
	for (; b->values.optimizer_type[i] && i + 1 < sizeof o->name; i++)
		o->name[i] = (char)tolower((unsigned char)b->values.optimizer_type[i]);
	o->name[i] = '\0';
	o->kind = kind_of(o->name, b->values.adam_w_mode);
	if (o->kind == MURAL_OPTIMIZER_MUON)
		settle_muon(b);
}

/* A parameter without a default: absent, it is missed in the block that should hold it. */
static mural_status require(mu_config_build *b, const char *key)
{
	size_t row = mu_config_find(key);
	const mu_hjson_value *block = b->tree ? mu_hjson_member(mu_hjson_root(b->tree), "scheduler") : NULL;
	const mu_hjson_value *params = block ? mu_hjson_member(block, "params") : NULL;
	char expected[MU_CONFIG_WORDS], where[MU_HJSON_WHERE];
	if (said(b, row) || b->given[row].automatic)
		return MURAL_OK;
	mu_config_expected(row, expected);
	if (!block)
		return mu_config_fail_row(b, row, "this schedule needs it, in a file: expected %s, got nothing",
		                          expected);
	mu_hjson_where(b->tree, params ? params : block, where);
	return mu_fail(b->err, MURAL_USAGE, where, "%s: expected %s in this block, got nothing", key, expected);
}

static mural_status settle_one_cycle(mu_config_build *b)
{
	mural_schedule_config *s = &b->values.config.schedule;
	if (b->schedule != MURAL_SCHEDULE_ONE_CYCLE)
		return MURAL_OK;
	MU_TRY(require(b, "scheduler.params.cycle_min_lr"));
	MU_TRY(require(b, "scheduler.params.cycle_max_lr"));
	if (!said(b, mu_config_find("scheduler.params.cycle_second_step_size")))
		s->cycle_second_steps = s->cycle_first_steps;
	if (!said(b, mu_config_find("scheduler.params.cycle_second_stair_count")))
		s->cycle_second_stairs = s->cycle_first_stairs;
	return MURAL_OK;
}

/* The rate after a warm-up, where nobody names it: WarmupLR takes the optimizer's. WarmupDecayLR has a default of its
 * own in DeepSpeed, but not when "auto" or an argument asks for the schedule as such: then --lr is what is meant. */
static void settle_peak(mu_config_build *b, bool by_argument)
{
	size_t row = mu_config_find("scheduler.params.warmup_max_lr");
	mu_config_given *given = &b->given[row];
	bool follows = b->schedule == MURAL_SCHEDULE_WARMUP ||
	               (b->schedule == MURAL_SCHEDULE_WARMUP_DECAY && (by_argument || given->automatic));
	if (!follows || said(b, row))
		return;
	b->values.config.schedule.max_lr = b->values.config.optimizer.lr;
	given->from = MU_FROM_DERIVED;
	snprintf(given->derived, sizeof given->derived, "the optimizer's lr");
}

/* These schedules set the rate whatever the optimizer's is: --lr would be lost without a word. */
static void warn_idle_lr(mu_config_build *b)
{
	size_t peak = mu_config_find("scheduler.params.warmup_max_lr");
	bool warmup = b->schedule == MURAL_SCHEDULE_WARMUP || b->schedule == MURAL_SCHEDULE_WARMUP_DECAY;
	bool own = b->schedule == MURAL_SCHEDULE_ONE_CYCLE || b->schedule == MURAL_SCHEDULE_RANGE_TEST;
	if (b->given[mu_config_find("optimizer.params.lr")].from == MU_FROM_ARGUMENT &&
	    (own || (warmup && b->given[peak].from != MU_FROM_DERIVED)))
		mu_config_warn(b, "W-NOEFFECT", NULL, warmup ? peak : MU_CONFIG_NO_ROW,
		               "argument --lr: the scheduler sets the learning rate");
}

static mural_status settle_schedule(mu_config_build *b)
{
	/* Chosen by an argument, there need not be a block to hold the steps, and they are counted from the epochs. */
	bool by_argument = b->given[mu_config_find("scheduler.type")].option;
	b->values.config.schedule.kind = b->schedule;
	settle_peak(b, by_argument);
	warn_idle_lr(b);
	if (!by_argument && (b->schedule == MURAL_SCHEDULE_WARMUP_DECAY || b->schedule == MURAL_SCHEDULE_WARMUP_COSINE))
		MU_TRY(require(b, "scheduler.params.total_num_steps"));
	return settle_one_cycle(b);
}

static void settle_run(mu_config_build *b)
{
	size_t flops = mu_config_find("flops_profiler.enabled"), clock = mu_config_find("wall_clock_breakdown");
	if (b->values.config.observe.flops_profiler && !b->values.config.run.wall_clock_breakdown) {
		b->values.config.run.wall_clock_breakdown = true;
		b->given[clock].from = b->given[flops].from;
		b->given[clock].node = b->given[flops].node;
		b->given[clock].option = b->given[flops].option;
	}
	mural_engine_config *e = &b->values.config.engine;
	e->precision = b->values.fp16 ? MURAL_FP16 : b->values.bf16 ? MURAL_BF16 : MURAL_FP32;
}

/* --val is a share or a set, and wins over the file's other one. */
static mural_status settle_validation(mu_config_build *b)
{
	mural_data_config *data = &b->values.config.data;
	size_t share = mu_config_find("mural.data.validation_fraction"),
	       set = mu_config_find("mural.data.validation_path");
	if (b->given[share].from == MU_FROM_ARGUMENT) {
		data->validation_path[0] = '\0';
		b->given[set].from = MU_FROM_DEFAULT;
	} else if (b->given[set].from == MU_FROM_ARGUMENT) {
		data->validation_fraction = 0;
		b->given[share].from = MU_FROM_DEFAULT;
	}
	if (data->validation_fraction > 0 && data->validation_path[0])
		return mu_config_fail_row(b, share,
		                          "expected a share of the training images or mural.data.validation_path, "
		                          "got both");
	return MURAL_OK;
}

static mural_status resolve(mu_config_build *b)
{
	size_t type = mu_config_find("optimizer.type");
	MU_TRY(mu_config_read_options(b));
	MU_TRY(mu_config_read_file(b));
	if (b->given[type].option && !mu_config_find_optimizer(b->given[type].argument.item[0].text))
		return mu_config_unknown_optimizer(b, NULL, b->given[type].argument.item[0].text);
	warn_idle_options(b);
	MU_TRY(store_defaults(b));
	MU_TRY(store_preset(b));
	MU_TRY(mu_config_take_weights(b));
	for (size_t i = 0; i < mu_config_row_count; i++)
		store_said(b, i);
	store_item_arguments(b);
	settle_optimizer(b);
	settle_run(b);
	MU_TRY(settle_validation(b));
	MU_TRY(settle_schedule(b));
	MU_TRY(mu_config_check(b)); /* first: its faults do not depend on the number of ranks */
	return mu_config_resolve_batch(b);
}

mural_status mural_config_resolve(mural_config *config, mural_config_report **report,
                                  const mural_config_sources *sources, mural_error *err)
{
	if (report)
		*report = NULL;
	if (sources->ranks < 1)
		return mu_fail(err, MURAL_USAGE, NULL, "expected at least one rank, got %d", sources->ranks);
	mu_config_build *b = calloc(1, sizeof *b);
	if (!b)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the configuration");
	b->sources = sources;
	b->err = err;
	b->values.config.ranks = sources->ranks;
	mural_status status = resolve(b);
	if (status == MURAL_OK)
		status = mu_config_make_report(report, b);
	if (status == MURAL_OK)
		*config = b->values.config;
	mu_hjson_free(b->tree);
	free(b->text);
	free(b->notes);
	free(b);
	return status;
}
