/* Values that do not go together. SPDX-License-Identifier: MIT */
#include "engine/config_build.h"

#include <math.h>
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

/* A scale that stays as it is has no use for what makes it grow and shrink. */
static void warn_of_static_scale(mu_config_build *b)
{
	static const char *const dynamic[] = {"initial_scale_power", "loss_scale_window", "hysteresis",
	                                      "consecutive_hysteresis", "min_loss_scale"};
	const double scale = b->values.config.engine.loss_scale;
	for (size_t i = 0; i < sizeof dynamic / sizeof *dynamic && scale > 0; i++) {
		const size_t row = mu_config_find_in(mu_config_find("fp16"), dynamic[i]);
		if (mu_config_differs(b, row))
			mu_config_warn(b, "W-NOEFFECT", b->given[row].node, MU_CONFIG_NO_ROW,
			               "is for a dynamic scale, and fp16.loss_scale %g is a fixed one; 0 is dynamic",
			               scale);
	}
}

static mural_status check_scale(mu_config_build *b)
{
	const mural_engine_config *e = &b->values.config.engine;
	const double first = ldexp(1, (int)e->initial_scale_power);
	if (!b->values.fp16)
		return MURAL_OK;
	warn_of_static_scale(b);
	if (e->loss_scale == 0 && e->min_loss_scale > first)
		return mu_config_fail_row(b, mu_config_find("fp16.min_loss_scale"),
		                          "expected at most the first scale, 2^%u = %g by fp16.initial_scale_power, "
		                          "got %g",
		                          e->initial_scale_power, first, e->min_loss_scale);
	return MURAL_OK;
}

static mural_status check_precision(mu_config_build *b)
{
	size_t fp16 = mu_config_find("fp16.enabled"), bf16 = mu_config_find("bf16.enabled");
	char where[2 * MU_HJSON_WHERE], one[MU_HJSON_WHERE];
	if (!b->values.fp16 || !b->values.bf16) {
		MU_TRY(check_scale(b));
		return check_types(b);
	}
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
	MU_TRY(mu_config_check_schedule(b));
	MU_TRY(check_normalisation(b));
	MU_TRY(check_validation(b));
	MU_TRY(check_model(b));
	return check_freeze(b);
}
