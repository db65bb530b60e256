/* Values that do not go together. SPDX-License-Identifier: MIT */
#include "engine/config_build.h"

#include <stdio.h>
#include <string.h>

#include "model/vit.h"

/* Types that must be the precision's, or for gradients fp32. */
static mural_status check_type(mu_config_build *b, const char *key, int given, bool or_fp32)
{
	static const mural_number_type of[] = {MURAL_TYPE_FP32, MURAL_TYPE_BF16, MURAL_TYPE_FP16};
	static const char *const names[] = {"model", "fp32", "fp16", "bf16"};
	const int model = (int)of[b->values.config.engine.precision];
	if (given == MURAL_TYPE_MODEL || given == model || (or_fp32 && given == MURAL_TYPE_FP32))
		return MURAL_OK;
	return mu_config_fail_row(b, mu_config_find(key), "expected %s%s, the type of the model's parameters, got %s",
	                          names[model], or_fp32 && model != MURAL_TYPE_FP32 ? " or fp32" : "", names[given]);
}

static mural_status check_types(mu_config_build *b)
{
	const int accumulated = (int)b->values.config.engine.grad_accum_type;
	MU_TRY(check_type(b, "data_types.param_dtype", b->values.param_type, false));
	return check_type(b, "data_types.grad_accum_dtype", accumulated, true);
}

static void warn_of_two_divisors(mu_config_build *b)
{
	const mural_engine_config *e = &b->values.config.engine;
	const size_t factor = mu_config_find("gradient_predivide_factor");
	if (e->prescale_gradients && e->predivide_factor != 1)
		mu_config_warn(b, "W-NOEFFECT", b->given[factor].node, MU_CONFIG_NO_ROW,
		               "prescale_gradients true divides by the ranks instead, as in DeepSpeed");
}

static mural_status check_precision(mu_config_build *b)
{
	size_t fp16 = mu_config_find("fp16.enabled"), bf16 = mu_config_find("bf16.enabled");
	char where[2 * MU_HJSON_WHERE], one[MU_HJSON_WHERE];
	if (!b->values.fp16 || !b->values.bf16)
		return check_types(b);
	mu_config_origin_text(b, bf16, one);
	snprintf(where, sizeof where, "%s\n", one);
	strncat(where, mu_config_origin_text(b, fp16, one), MU_HJSON_WHERE);
	return mu_fail(b->err, MURAL_USAGE, where,
	               "expected at most one of bf16.enabled and fp16.enabled true, got both");
}

/* device nvme needs a path in its own block. */
static mural_status check_nvme(mu_config_build *b, const char *block, mural_offload device)
{
	char key[96];
	snprintf(key, sizeof key, "zero_optimization.%s", block);
	const mu_config_given *holder = &b->given[mu_config_find(key)];
	strcat(key, ".nvme_path");
	const mu_config_given *path = &b->given[mu_config_find(key)];
	bool missing = !path->node || !path->file.item[0].text[0];
	if (device != MURAL_OFFLOAD_NVME || !missing || !holder->node)
		return MURAL_OK;
	char where[MU_HJSON_WHERE];
	mu_hjson_where(b->tree, path->node ? path->node : holder->node, where);
	return mu_fail(b->err, MURAL_USAGE, where, "%s: expected a path because device is \"nvme\", got %s", key,
	               path->node ? "\"\"" : "nothing");
}

/* Offload that the stage has no use for, at the key that asks for it. */
static void warn_offload(mu_config_build *b, const char *key, mural_offload device, int least, const char *stages,
                         const char *stays)
{
	size_t row = mu_config_find(key), stage = mu_config_find("zero_optimization.stage");
	int now = b->values.config.engine.zero_stage;
	char line[96] = " (default)";
	if (device == MURAL_OFFLOAD_NONE || now >= least)
		return;
	if (b->given[stage].from == MU_FROM_FILE)
		snprintf(line, sizeof line, " (line %u)", mu_hjson_line(b->tree, b->given[stage].node));
	else if (b->given[stage].from == MU_FROM_ARGUMENT)
		snprintf(line, sizeof line, " (%.*s)", mu_config_option_bytes(b->given[stage].option),
		         b->given[stage].option);
	mu_config_warn(b, "W-NOEFFECT", b->given[row].node, MU_CONFIG_NO_ROW,
	               "works with stage %s only, got stage %d%s; %s", stages, now, line, stays);
}

static mural_status check_offload(mu_config_build *b)
{
	const mural_engine_config *e = &b->values.config.engine;
	MU_TRY(check_nvme(b, "offload_optimizer", e->offload_optimizer));
	MU_TRY(check_nvme(b, "offload_param", e->offload_param));
	warn_offload(b, "zero_optimization.offload_param.device", e->offload_param, 3, "3",
	             "parameters stay on the device");
	warn_offload(b, "zero_optimization.offload_optimizer.device", e->offload_optimizer, 1, "1 and above",
	             "optimizer state stays on the device");
	return MURAL_OK;
}

/* Parameters that each are fine and do not go together. */
static mural_status check_parameters(mu_config_build *b)
{
	const mural_optimizer_config *o = &b->values.config.optimizer;
	if (o->kind == MURAL_OPTIMIZER_SGD && o->nesterov && (o->momentum == 0 || o->dampening != 0))
		return mu_config_fail_row(b, mu_config_find("optimizer.params.nesterov"),
		                          "expected a momentum above 0 and a dampening of 0 with it, got %g and %g",
		                          o->momentum, o->dampening);
	if (o->kind == MURAL_OPTIMIZER_LAMB && o->min_coeff > o->max_coeff)
		return mu_config_fail_row(b, mu_config_find("optimizer.params.min_coeff"),
		                          "expected at most max_coeff %g, got %g", o->max_coeff, o->min_coeff);
	if (o->ema_decay == 0 && o->ema_evaluate)
		return mu_config_fail_row(b, mu_config_find("mural.ema.evaluate"),
		                          "expected mural.ema.decay above 0 with it, got 0: there is no average");
	return MURAL_OK;
}

static mural_status check_optimizer(mu_config_build *b)
{
	const unsigned onebits = MU_OPT_ONEBIT_ADAM | MU_OPT_ZERO_ONE_ADAM | MU_OPT_ONEBIT_LAMB;
	size_t type = mu_config_find("optimizer.type"), stage = mu_config_find("zero_optimization.stage");
	size_t mode = mu_config_find("optimizer.params.adam_w_mode");
	int now = b->values.config.engine.zero_stage;
	char where[2 * MU_HJSON_WHERE], one[MU_HJSON_WHERE];
	if ((b->optimizer->bit & onebits) && now > 0) {
		mu_config_origin_text(b, type, one);
		snprintf(where, sizeof where, "%s\n", one);
		strncat(where, mu_config_origin_text(b, stage, one), MU_HJSON_WHERE);
		return mu_fail(b->err, MURAL_USAGE, where,
		               "optimizer.type %s works without ZeRO only: expected zero_optimization.stage 0, got %d",
		               b->values.optimizer_type, now);
	}
	if (b->optimizer->bit == MU_OPT_ADAMW && b->given[mode].node && !b->values.adam_w_mode)
		mu_config_warn(b, "W-NOEFFECT", b->given[mode].node, MU_CONFIG_NO_ROW,
		               "AdamW always decays apart from the gradient; "
		               "the type \"Adam\" with adam_w_mode false does not");
	return check_parameters(b);
}

/* Means and deviations: both, and as many as the model has channels. */
static mural_status check_normalisation(mu_config_build *b)
{
	size_t rows[2] = {mu_config_find("mural.data.mean"), mu_config_find("mural.data.std")}, n[2];
	for (int i = 0; i < 2; i++) {
		const mu_config_given *given = &b->given[rows[i]];
		n[i] = given->option ? given->argument.n : given->node ? given->file.n : 0;
	}
	if (n[0] == 0 && n[1] == 0)
		return MURAL_OK;
	if (n[0] == 0 || n[1] == 0)
		return mu_config_fail_row(b, rows[n[0] == 0], "expected mean and std together, got %s alone",
		                          n[0] ? "mean" : "std");
	for (int i = 0; i < 2; i++)
		if (n[i] != b->values.config.model.channels)
			return mu_config_fail_row(b, rows[i], "expected a number per channel (%zu), got %zu",
			                          b->values.config.model.channels, n[i]);
	b->values.config.data.normalise_given = true;
	return MURAL_OK;
}

/* Is the last part of this row's key one of "heads, width"? */
static bool is_named(const char *names, size_t row)
{
	const char *dot = strrchr(mu_config_rows[row].key, '.');
	while (dot && *names) {
		size_t n = strcspn(names, ",");
		if (strlen(dot + 1) == n && memcmp(dot + 1, names, n) == 0)
			return true;
		names += n;
		names += strspn(names, ", ");
	}
	return false;
}

/* Numbers that each are fine and together make no model; says where those that a person gave come from. */
static mural_status check_model(mu_config_build *b)
{
	mural_error err = {0};
	char where[3 * MU_HJSON_WHERE] = "", one[MU_HJSON_WHERE];
	if (mural_model_config_check(&b->values.config.model, &err) == MURAL_OK)
		return MURAL_OK;
	for (size_t i = 0; i < mu_config_row_count; i++) {
		size_t used = strlen(where);
		bool from_user = b->given[i].from == MU_FROM_FILE || b->given[i].from == MU_FROM_ARGUMENT;
		if (from_user && (mu_config_rows[i].flags & MU_CONFIG_SHAPE) && is_named(err.where, i))
			snprintf(where + used, sizeof where - used, "%s%s", used ? "\n" : "",
			         mu_config_origin_text(b, i, one));
	}
	return mu_fail(b->err, MURAL_USAGE, where, "%s", err.message);
}

static bool is_given(const mu_config_build *b, size_t row)
{
	return b->given[row].from == MU_FROM_FILE || b->given[row].from == MU_FROM_ARGUMENT;
}

/* Most of DeepSpeed's schedules bring rates of their own, and the optimizer's, which people look at first, is not used. */
static void warn_of_two_rates(mu_config_build *b)
{
	const mural_schedule_config *s = &b->values.config.schedule;
	bool warms_up = s->kind == MURAL_SCHEDULE_WARMUP || s->kind == MURAL_SCHEDULE_WARMUP_DECAY;
	bool tests = s->kind == MURAL_SCHEDULE_RANGE_TEST;
	if (!warms_up && !tests && s->kind != MURAL_SCHEDULE_ONE_CYCLE)
		return;
	size_t lr = mu_config_find("optimizer.params.lr");
	size_t peak = mu_config_find(warms_up ? "scheduler.params.warmup_max_lr"
	                             : tests  ? "scheduler.params.lr_range_test_min_lr"
	                                      : "scheduler.params.cycle_max_lr");
	double used = tests ? s->range_min_lr : s->max_lr, asked = b->values.config.optimizer.lr;
	bool own =
	        !warms_up || is_given(b, peak) || (s->kind == MURAL_SCHEDULE_WARMUP_DECAY && !b->given[peak].automatic);
	if (!own || !is_given(b, lr) || used == asked)
		return;
	char from[MU_HJSON_WHERE];
	const mu_hjson_value *block = b->tree ? mu_hjson_member(mu_hjson_root(b->tree), "scheduler") : NULL;
	mu_config_warn(b, "W-NOEFFECT", b->given[peak].node ? b->given[peak].node : block, MU_CONFIG_NO_ROW,
	               "the schedule %s %g, and optimizer.params.lr %g (%s) is not used",
	               tests ? "begins at" : "peaks at", used, asked, mu_config_origin_text(b, lr, from));
}

/* What is frozen depends on the model's tensors. */
static mural_status check_freeze(mu_config_build *b)
{
	mural_error err = {0};
	mu_vit vit;
	if (!b->values.config.optimizer.freeze[0])
		return MURAL_OK;
	MU_TRY(mu_vit_init(&vit, &b->values.config.model, b->err));
	mural_status status = mu_vit_freeze(&vit, b->values.config.optimizer.freeze, &err);
	mu_vit_release(&vit);
	return status == MURAL_OK ? MURAL_OK : mu_config_fail_row(b, mu_config_find("mural.freeze"), "%s", err.message);
}

static mural_status check_schedule(mu_config_build *b)
{
	const mural_schedule_config *s = &b->values.config.schedule;
	warn_of_two_rates(b);
	if (s->kind == MURAL_SCHEDULE_ONE_CYCLE && s->cycle_min_lr > s->max_lr)
		return mu_config_fail_row(b, mu_config_find("scheduler.params.cycle_min_lr"),
		                          "expected at most cycle_max_lr %g, got %g", s->max_lr, s->cycle_min_lr);
	return MURAL_OK;
}

/* The test set decides nothing, so what decides needs validation images. */
static mural_status check_validation(mu_config_build *b)
{
	const mural_config *c = &b->values.config;
	const mural_validation_config *v = &c->validation;
	const char *key = v->every_steps > 0 ? "mural.eval_every_steps" : v->patience > 0 ? "mural.early_stop" : NULL;
	bool any = c->data.validation_fraction > 0 || c->data.validation_path[0];
	if (key && !any)
		return mu_config_fail_row(
		        b, mu_config_find(key),
		        "needs validation images, since the test set must not decide: expected "
		        "mural.data.validation_fraction or mural.data.validation_path (--val), got neither");
	if (v->patience > 0 && v->every_steps == 0 && c->run.eval_every == 0)
		return mu_config_fail_row(b, mu_config_find("mural.early_stop"),
		                          "expected evaluations before the end, got mural.eval_every 0 and "
		                          "mural.eval_every_steps 0");
	return MURAL_OK;
}

mural_status mu_config_check(mu_config_build *b)
{
	MU_TRY(check_precision(b));
	warn_of_two_divisors(b);
	MU_TRY(check_optimizer(b));
	MU_TRY(check_offload(b));
	MU_TRY(check_schedule(b));
	MU_TRY(check_normalisation(b));
	MU_TRY(check_validation(b));
	MU_TRY(check_model(b));
	return check_freeze(b);
}
