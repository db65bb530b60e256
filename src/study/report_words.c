/* The first paragraph: what limits a run, and what to change. A share of a step below LITTLE is not worth a word; the largest of those
 * above it is the limit, and if there is none, computing is, which is as it should be. SPDX-License-Identifier: MIT */
#include <string.h>

#include "study/report_inside.h"

#define LITTLE 0.10 /* of a step */

const char *mu_report_short(double value, char text[MU_SHORT_SIZE])
{
	double size = fabs(value);
	if (!isfinite(value))
		snprintf(text, MU_SHORT_SIZE, "-");
	else if (size >= 1000 && size < 1e7)
		snprintf(text, MU_SHORT_SIZE, "%.0f", value);
	else if (size >= 100 && size < 1000)
		snprintf(text, MU_SHORT_SIZE, "%.4g", value);
	else
		snprintf(text, MU_SHORT_SIZE, "%.3g", value);
	for (char *at = text; *at; at++)
		if (*at == ',') /* of some locales */
			*at = '.';
	return text;
}

const char *mu_report_ranks(double ranks, char text[MU_SHORT_SIZE])
{
	snprintf(text, MU_SHORT_SIZE, ranks == 1 ? "%.0f rank" : "%.0f ranks", ranks);
	return text;
}

static double share(const mu_limit_facts *f, mu_phase phase)
{
	double part = f->times.phase[phase] / f->times.step;
	return isfinite(part) ? part : 0;
}

mu_limit mu_report_limit(const mu_limit_facts *f)
{
	static const struct {
		mu_phase phase;
		mu_limit limit;
	} ways[] = {{MU_PHASE_EXPOSED, MU_LIMIT_COMMUNICATION},
	            {MU_PHASE_DATA, MU_LIMIT_DATA},
	            {MU_PHASE_OPTIMIZER, MU_LIMIT_OPTIMIZER}};
	mu_limit limit = MU_LIMIT_COMPUTE;
	double most = LITTLE;
	if (!(f->times.step > 0))
		return MU_LIMIT_UNKNOWN;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		if (share(f, ways[i].phase) >= most) {
			most = share(f, ways[i].phase);
			limit = ways[i].limit;
		}
	/* Waiting for a slow rank is no communication; and when rank 0 is the slow one, only the others wait. */
	double unequal = f->imbalance / f->times.step;
	if (unequal >= LITTLE && unequal >= most / 2)
		limit = MU_LIMIT_IMBALANCE;
	return limit;
}

void mu_report_say_limit(FILE *out, const mu_limit_facts *f)
{
	char step[MU_SHORT_SIZE], ranks[MU_SHORT_SIZE], batch[MU_SHORT_SIZE + 40] = "";
	double waits = 100 * share(f, MU_PHASE_EXPOSED),
	       computes = 100 * (share(f, MU_PHASE_FORWARD) + share(f, MU_PHASE_BACKWARD));
	if (isfinite(f->ranks))
		mu_report_ranks(f->ranks, ranks);
	else
		snprintf(ranks, sizeof ranks, "these ranks");
	if (isfinite(f->batch))
		snprintf(batch, sizeof batch, " and %s images each", mu_report_short(f->batch, step));
	mu_report_short(f->times.step, step);
	switch (mu_report_limit(f)) {
	case MU_LIMIT_COMMUNICATION:
		fprintf(out,
		        "Communication limits this: with %s%s, a rank only waits for the others for %.0f %% of a step "
		        "of %s s",
		        ranks, batch, waits, step);
		break;
	case MU_LIMIT_DATA:
		fprintf(out, "Images limit this: with %s%s, training waits for them for %.0f %% of a step of %s s",
		        ranks, batch, 100 * share(f, MU_PHASE_DATA), step);
		break;
	case MU_LIMIT_IMBALANCE:
		fprintf(out, "Unequal ranks limit this: of %s, ", ranks);
		if (f->slowest >= 0)
			fprintf(out, "rank %d", f->slowest);
		else
			fprintf(out, "the slowest one");
		fprintf(out, " computes %.0f %% of a step of %s s longer than the mean, and the others wait for it",
		        100 * f->imbalance / f->times.step, step);
		break;
	case MU_LIMIT_OPTIMIZER:
		fprintf(out,
		        "The optimizer limits this: with %s%s, updating the parameters takes %.0f %% of a step of %s s",
		        ranks, batch, 100 * share(f, MU_PHASE_OPTIMIZER), step);
		break;
	case MU_LIMIT_COMPUTE:
		fprintf(out,
		        "Computing limits this, as it should: with %s%s, forward and backward take %.0f %% of a step "
		        "of %s s",
		        ranks, batch, computes, step);
		break;
	case MU_LIMIT_UNKNOWN: fprintf(out, "What limits this is not known: there are no times of its steps"); break;
	}
	fprintf(out, ". ");
}

void mu_report_say_change(FILE *out, const mu_limit_facts *f)
{
	switch (mu_report_limit(f)) {
	case MU_LIMIT_COMMUNICATION:
		fprintf(out, "Give each rank more images per step (--micro-batch) or several micro-batches before a "
		             "reduction (--accumulation), send half the bytes (--bf16), ");
		if (!(f->times.phase[MU_PHASE_HIDDEN] > 0.01 * f->times.step))
			fprintf(out, "let it overlap with backward (--overlap-comm), ");
		fprintf(out, "or use faster links between the ranks. ");
		break;
	case MU_LIMIT_DATA:
		fprintf(out, "Read with more threads (--loader-threads) and further ahead (--prefetch), resize on the "
		             "device "
		             "(--resize-on device) or store the images at the model's size. ");
		break;
	case MU_LIMIT_IMBALANCE:
		fprintf(out, "Give that rank fewer images (--balance) or leave its device out; if all devices are "
		             "alike, look "
		             "for another program on its host. ");
		break;
	case MU_LIMIT_OPTIMIZER:
		fprintf(out,
		        "Take more images per update (--micro-batch, --accumulation): an update costs the same for any "
		        "number of them. ");
		break;
	case MU_LIMIT_COMPUTE:
		fprintf(out,
		        "More or faster devices would help, and so would a smaller type (--bf16) where the device has "
		        "it. ");
		break;
	case MU_LIMIT_UNKNOWN: break;
	}
}

mu_limit_facts mu_report_facts_of_run(const mu_report_run *run)
{
	return (mu_limit_facts){.ranks = run->ranks,
	                        .batch = run->images_per_step / run->ranks,
	                        .times = run->times,
	                        .imbalance = run->imbalance,
	                        .slowest = run->slowest};
}

mu_limit_facts mu_report_facts_of_point(const mu_report_point *point)
{
	return (mu_limit_facts){.ranks = point->ranks,
	                        .batch = point->batch * point->accumulation,
	                        .times = point->times,
	                        .imbalance = point->imbalance,
	                        .slowest = point->run ? point->run->slowest : -1};
}

void mu_report_say_run(FILE *out, const mu_report_run *run)
{
	char a[MU_SHORT_SIZE], b[MU_SHORT_SIZE];
	mu_limit_facts facts = mu_report_facts_of_run(run);
	mu_report_say_limit(out, &facts);
	mu_report_say_change(out, &facts);
	if (isfinite(run->images_per_second))
		fprintf(out, "It trained %s images per second", mu_report_short(run->images_per_second, a));
	if (isfinite(run->images_per_second) && isfinite(run->test_accuracy))
		fprintf(out, " and reached %s %% on the test images", mu_report_short(100 * run->test_accuracy, b));
	if (isfinite(run->images_per_second))
		fprintf(out, ". ");
	if (run->stalls > 0)
		fprintf(out, "The ranks waited for one that stalled %s, %s s in all: stalls.csv tells for which. ",
		        run->stalls == 1 ? "once" : "more than once", mu_report_short(run->stalled, a));
	if (isfinite(run->train_loss) && run->n_steps > 1 && run->loss[run->n_steps - 1] > run->loss[0])
		fprintf(out, "The loss is higher at the end than at the start: a lower learning rate may help. ");
}
