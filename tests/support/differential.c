/* The loop over cases, types and seeds. SPDX-License-Identifier: MIT */
#include "differential.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FAILURES 8 /* of one case and type: enough to see the pattern */

const trial_case trial_cases[] = {
        {"patchify", trial_case_patchify, 0},
        {"embed", trial_case_embed, 0},
        {"layernorm", trial_case_layernorm, 0},
        {"linear", trial_case_linear, 0},
        {"attention", trial_case_attention, 0},
        {"dropout", trial_case_dropout, 0},
        {"drop_path", trial_case_drop_path, 0},
        {"pool", trial_case_pool, 0},
        {"cross_entropy", trial_case_cross_entropy, 0},
        {"settle", trial_case_settle, 0},
        {"adamw", trial_case_adamw, 0},
        {"sum_squares", trial_case_sum_squares, 0},
        {"cast", trial_case_cast, 0},
        {"accumulate", trial_case_accumulate, offsetof(mu_ops, accumulate)},
        {"sgd", trial_case_sgd, offsetof(mu_ops, sgd)},
        {"lion", trial_case_lion, offsetof(mu_ops, lion)},
        {"lamb", trial_case_lamb, offsetof(mu_ops, lamb)},
        {"momentum", trial_case_momentum, offsetof(mu_ops, momentum)},
        {"newton_schulz", trial_case_newton_schulz, offsetof(mu_ops, newton_schulz)},
        {"tensor_norms", trial_case_tensor_norms, offsetof(mu_ops, tensor_norms)},
        {"apply_update", trial_case_apply_update, offsetof(mu_ops, apply_update)},
        {"ema", trial_case_ema, offsetof(mu_ops, ema)},
        {NULL, NULL, 0},
};

/* The reference, and the table on trial once alone and once as a team whose size divides nothing. */
typedef struct bench {
	const mu_ops *table;
	trial_side reference, alone, team;
	unsigned types;
} bench;

#define TEAM 3

static mural_status bench_open(bench *b, const mu_ops *table, void (*prepare)(mu_ops_context *), mural_error *err)
{
	*b = (bench){.table = table};
	MU_TRY(trial_open(&b->reference, &mu_ops_reference, 1, err));
	MU_TRY(trial_open(&b->alone, table, 1, err));
	MU_TRY(trial_open(&b->team, table, TEAM, err));
	if (prepare) {
		prepare(b->alone.context);
		prepare(b->team.context);
	}
	for (int type = 0; type < MU_DTYPE_COUNT; type++)
		b->types |= (unsigned)table->supports(b->alone.context, (mu_dtype)type) << type;
	return MURAL_OK;
}

static void bench_close(bench *b)
{
	trial_close(&b->reference);
	trial_close(&b->alone);
	trial_close(&b->team);
}

/* One trial; returns the largest error in units of its tolerance. */
static double run_trial(bench *b, const trial_case *c, mu_dtype type, uint32_t seed, trial_side **tested)
{
	const mu_random_key key = mu_random_key_make(seed, MU_PURPOSE_TEST, 1);
	*tested = mu_random_below(key, 0, 0, 2) ? &b->team : &b->alone;
	trial_begin(&b->reference, type, b->types, seed);
	trial_begin(*tested, type, b->types, seed);
	c->run(&b->reference);
	c->run(*tested);
	return trial_compare(&b->reference, *tested);
}

static bool is_built(const mu_ops *table, const trial_case *c)
{
	static void (*const null)(void);
	return !c->row || memcmp((const char *)table + c->row, &null, sizeof null) != 0;
}

static size_t run_case(bench *b, const trial_case *c, mu_dtype type, const differential_options *options)
{
	size_t failures = 0;
	double worst = 0;
	for (size_t i = 0; i < options->trials && failures < MOST_FAILURES; i++) {
		const uint32_t seed = options->seed + (uint32_t)i;
		trial_side *tested;
		worst = fmax(worst, run_trial(b, c, type, seed, &tested));
		if (!tested->fault[0])
			continue;
		failures++;
		if (options->out)
			fprintf(options->out,
			        "%s %s %s: %s\n  with %s%s\n"
			        "  replay: MURAL_TEST_SEED=%u MURAL_TEST_CASES=1 MURAL_TEST_ONLY=%s\n",
			        b->table->name, c->name, mu_dtype_text(type), tested->fault, tested->shape,
			        tested == &b->team ? "team" : "alone", (unsigned)seed, c->name);
	}
	if (options->out)
		fprintf(options->out, "%-10s %-14s %-5s %4zu trials, %zu failed, largest error %.2f of its tolerance\n",
		        b->table->name, c->name, mu_dtype_text(type), options->trials, failures, worst);
	return failures;
}

size_t differential_run(const mu_ops *table, const differential_options *options)
{
	bench b;
	mural_error err = {0};
	size_t failures = 0;
	if (bench_open(&b, table, options->prepare, &err) != MURAL_OK) {
		if (options->out)
			fprintf(options->out, "table '%s' does not open: %s\n", table->name, err.message);
		failures = 1;
	}
	for (const trial_case *c = trial_cases; c->name && err.status == MURAL_OK; c++) {
		if (!is_built(table, c)) {
			if (options->out)
				fprintf(options->out, "%-10s %-14s is not built\n", table->name, c->name);
			continue;
		}
		for (int type = 0; type < MU_DTYPE_COUNT; type++)
			if (b.types >> type & 1 && (!options->only || strcmp(options->only, c->name) == 0))
				failures += run_case(&b, c, (mu_dtype)type, options);
	}
	bench_close(&b);
	return failures;
}

static size_t number_from_environment(const char *name, size_t otherwise)
{
	const char *text = getenv(name);
	return text && *text ? (size_t)strtoul(text, NULL, 10) : otherwise;
}

differential_options differential_options_from_environment(size_t trials)
{
	return (differential_options){.seed = (uint32_t)number_from_environment("MURAL_TEST_SEED", 1),
	                              .trials = number_from_environment("MURAL_TEST_CASES", trials),
	                              .only = getenv("MURAL_TEST_ONLY"),
	                              .out = stdout};
}
