/* The search itself: which point is tried next, and when it is enough. It trains nothing: trials come through a function, so that
 * a simulated machine can stand in for the real one.
 *
 * Promising is the point that may be the fastest: the throughput that the model (tune_model.h) expects, with its uncertainty in the
 * point's favour. Of points that promise the same the one is tried of which most is expected, and never one whose micro-batch is far from
 * all that were tried. The search ends when nothing promises more
 * than the tolerance above the best measured point, or when the budget is spent.
 * SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_TUNE_SEARCH_H
#define MU_STUDY_TUNE_SEARCH_H

#include "study/tune_model.h"

typedef enum mu_tune_end {
	MU_TUNE_DONE,
	MU_TUNE_FAILED, /* `why` has its last words */
	MU_TUNE_NO_MEMORY, /* the same, of memory */
	MU_TUNE_STOPPED /* by the user: it does not count */
} mu_tune_end;

/* What one trial measured. */
typedef struct mu_tune_measure {
	mu_tune_end end;
	bool reused;
	double step, fixed; /* seconds per step; of that optimizer and waiting for other ranks */
	double error; /* standard error of step, a share of it; NaN when not known */
	double seconds; /* of the whole trial */
	char why[200];
} mu_tune_measure;

typedef struct mu_tune_search {
	mural_tune_result *result; /* with points; trials, choice and end are filled */
	double tolerance, budget, trial_seconds;
	uint32_t warm_up;
	/* Trains a point for warm_up + steps steps. A failure to try at all (no memory, no disk) ends the search. */
	mural_status (*measure)(void *context, size_t point, uint32_t round, uint32_t steps, mu_tune_measure *measure,
	                        mural_error *err);
	void *context;
	void (*tell)(void *context, const mural_tune_point *point, const mural_tune_trial *trial); /* may be NULL */
	void *tell_context;
	bool (*stop_asked)(void); /* may be NULL */
	mu_tune_model model;
} mu_tune_search;

/* MURAL_FAILED: trial after trial failed, with the last one's words. MURAL_STOPPED: by stop_asked or by a trial's end; what was
 * measured until then is in the result. */
mural_status mu_tune_search_run(mu_tune_search *search, mural_error *err);

/* tune_words.c: the choice in sentences, into result->why. */
void mu_tune_explain(mural_tune_result *result, const mu_tune_model *model, double tolerance);

#endif
