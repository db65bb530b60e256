/* Parameters of a schedule that do not go together, with each other or with the optimizer's rate.
 * SPDX-License-Identifier: MIT */
#include "engine/config_build.h"

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

/* DeepSpeed goes on all the same; a warm-up that the steps do not hold is hardly what was meant. */
static void warn_of_long_warmup(mu_config_build *b)
{
	const mural_schedule_config *s = &b->values.config.schedule;
	const size_t total = mu_config_find("scheduler.params.total_num_steps");
	const bool decays = s->kind == MURAL_SCHEDULE_WARMUP_DECAY || s->kind == MURAL_SCHEDULE_WARMUP_COSINE;
	if (decays && b->given[total].node && s->total_steps <= s->warmup_steps)
		mu_config_warn(b, "W-NOEFFECT", b->given[total].node, MU_CONFIG_NO_ROW,
		               "the %llu steps end before the warm-up of %llu does: there is no decay",
		               (unsigned long long)s->total_steps, (unsigned long long)s->warmup_steps);
}

mural_status mu_config_check_schedule(mu_config_build *b)
{
	const mural_schedule_config *s = &b->values.config.schedule;
	const bool warms_up = s->kind == MURAL_SCHEDULE_WARMUP || s->kind == MURAL_SCHEDULE_WARMUP_DECAY;
	warn_of_two_rates(b);
	warn_of_long_warmup(b);
	if (warms_up && s->min_lr > s->max_lr)
		return mu_config_fail_row(b, mu_config_find("scheduler.params.warmup_min_lr"),
		                          "expected at most the rate after the warm-up, %g, got %g", s->max_lr,
		                          s->min_lr);
	if (s->kind == MURAL_SCHEDULE_ONE_CYCLE && s->cycle_min_momentum > s->cycle_max_momentum)
		return mu_config_fail_row(b, mu_config_find("scheduler.params.cycle_min_mom"),
		                          "expected at most cycle_max_mom %g, got %g", s->cycle_max_momentum,
		                          s->cycle_min_momentum);
	if (s->kind == MURAL_SCHEDULE_ONE_CYCLE && s->cycle_min_lr > s->max_lr)
		return mu_config_fail_row(b, mu_config_find("scheduler.params.cycle_min_lr"),
		                          "expected at most cycle_max_lr %g, got %g", s->max_lr, s->cycle_min_lr);
	return MURAL_OK;
}
