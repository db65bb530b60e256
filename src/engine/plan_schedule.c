/* The learning rate over a run, by the functions that the run itself uses. SPDX-License-Identifier: MIT */
#include <math.h>

#include "base/files.h"
#include "base/json.h"
#include "base/number.h"
#include "base/version.h"
#include "data/sampler.h"
#include "engine/run_length.h"
#include "mural/plan.h"
#include "optim/schedule.h"

uint64_t mu_run_length(const mural_config *config, uint64_t steps_per_epoch, mural_schedule_config *schedule)
{
	const mural_run_config *run = &config->run;
	uint64_t total = steps_per_epoch * run->epochs;
	if (run->max_steps > 0 && run->max_steps < total)
		total = run->max_steps;
	*schedule = config->schedule;
	if (schedule->total_steps == 0)
		schedule->total_steps = total;
	if (schedule->kind == MURAL_SCHEDULE_COSINE && schedule->warmup_steps == 0)
		schedule->warmup_steps = (uint64_t)llround(schedule->warmup_epochs * (double)steps_per_epoch);
	return total;
}

enum { LOOKED_AT = 1 << 20, CSV_ROWS = 100000000 };

/* Update i of n that are spread evenly over the run, the first and the last among them. */
static uint64_t spread(const mural_schedule_plan *plan, uint64_t i, uint64_t n)
{
	return n > 1 ? 1 + (uint64_t)((double)(plan->steps - 1) * (double)i / (double)(n - 1)) : 1;
}

/* Of a longer run than LOOKED_AT updates only so many are asked. */
static void find_extremes(mural_schedule_plan *plan)
{
	uint64_t n = plan->steps < LOOKED_AT ? plan->steps : LOOKED_AT;
	plan->first = plan->lowest = plan->highest = mural_plan_schedule_at(plan, 1, NULL);
	plan->last = mural_plan_schedule_at(plan, plan->steps, NULL);
	for (uint64_t i = 0; i < n; i++) {
		double lr = mural_plan_schedule_at(plan, spread(plan, i, n), NULL);
		plan->lowest = fmin(plan->lowest, lr);
		plan->highest = fmax(plan->highest, lr);
	}
}

mural_status mural_plan_schedule(mural_schedule_plan *plan, const mural_config *config, uint64_t images,
                                 mural_error *err)
{
	const mu_sampler sampler = {.images = images,
	                            .train_batch = config->batch.train_batch,
	                            .micro_batch = config->batch.micro_batch,
	                            .accumulation = config->batch.accumulation,
	                            .ranks = config->ranks,
	                            .drop_last = config->data.drop_last};
	*plan = (mural_schedule_plan){.optimizer = config->optimizer};
	MU_TRY(mu_sampler_check(&sampler, err));
	plan->steps_per_epoch = mu_sampler_steps(&sampler);
	plan->steps = mu_run_length(config, plan->steps_per_epoch, &plan->schedule);
	find_extremes(plan);
	return MURAL_OK;
}

double mural_plan_schedule_at(const mural_schedule_plan *plan, uint64_t n, double *beta1)
{
	mu_schedule_point at = mu_schedule_at(&plan->schedule, &plan->optimizer, n);
	if (beta1)
		*beta1 = at.beta1;
	return at.lr;
}

mural_status mural_plan_schedule_write_csv(const mural_schedule_plan *plan, const char *path, mural_error *err)
{
	mu_file file = {0};
	if (plan->steps > CSV_ROWS)
		return mu_fail(err, MURAL_USAGE, path, "a row for each of %llu updates is too much; write JSON or SVG",
		               (unsigned long long)plan->steps);
	MU_TRY(mu_file_begin(&file, path, err));
	fputs("step,epoch,learning_rate,beta1\n", file.out);
	for (uint64_t n = 1; n <= plan->steps; n++) {
		char rate[MU_NUMBER_SIZE], first[MU_NUMBER_SIZE];
		double beta1, lr = mural_plan_schedule_at(plan, n, &beta1);
		fprintf(file.out, "%llu,%llu,%s,%s\n", (unsigned long long)n,
		        (unsigned long long)((n - 1) / plan->steps_per_epoch + 1), mu_number_text(lr, rate),
		        mu_number_text(beta1, first));
	}
	return mu_file_commit(&file, err);
}

mural_status mural_plan_schedule_write_json(const mural_schedule_plan *plan, const char *path, mural_error *err)
{
	enum { MOST_POINTS = 500 };
	uint64_t n = plan->steps < MOST_POINTS ? plan->steps : MOST_POINTS;
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json json;
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	mu_json_string(&json, "mural_version", MU_VERSION);
	mu_json_unsigned(&json, "steps", plan->steps);
	mu_json_unsigned(&json, "steps_per_epoch", plan->steps_per_epoch);
	mu_json_number(&json, "first", plan->first);
	mu_json_number(&json, "last", plan->last);
	mu_json_number(&json, "lowest", plan->lowest);
	mu_json_number(&json, "highest", plan->highest);
	mu_json_array_begin(&json, "points");
	for (uint64_t i = 0; i < n; i++) {
		mu_json_object_begin(&json, NULL);
		mu_json_unsigned(&json, "step", spread(plan, i, n));
		mu_json_number(&json, "learning_rate", mural_plan_schedule_at(plan, spread(plan, i, n), NULL));
		mu_json_object_end(&json);
	}
	mu_json_array_end(&json);
	mu_json_object_end(&json);
	return mu_file_commit(&file, err);
}
