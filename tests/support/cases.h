/* One case per row of the operations table; see trial.h for what a case is.
 *
 * Magnitudes handed to trial_expect are products and square-root sums of the largest inputs: what an output would be if
 * its terms had random signs; where an output is ill-conditioned (a norm of nearly equal numbers) the factor by which
 * it magnifies a rounding of its input is in it.
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_CASES_H
#define TESTS_SUPPORT_CASES_H

#include "trial.h"

typedef struct trial_case {
	const char *name;
	void (*run)(trial_side *side);
	size_t row; /* its place in mu_ops, where a table may have NULL; otherwise 0 */
} trial_case;

/* Terminated by a NULL name. */
extern const trial_case trial_cases[];

/* In device memory, as inputs. */
const mu_decision *trial_decision(trial_side *s, const mu_decision *decision);
const mu_micro *trial_micro(trial_side *s, size_t count, size_t planned);

void trial_case_patchify(trial_side *s);
void trial_case_embed(trial_side *s);
void trial_case_layernorm(trial_side *s);
void trial_case_linear(trial_side *s);
void trial_case_attention(trial_side *s);
void trial_case_dropout(trial_side *s);
void trial_case_drop_path(trial_side *s);
void trial_case_pool(trial_side *s);
void trial_case_cross_entropy(trial_side *s);
void trial_case_settle(trial_side *s);
void trial_case_adamw(trial_side *s);
void trial_case_sum_squares(trial_side *s);
void trial_case_cast(trial_side *s);
void trial_case_accumulate(trial_side *s);
void trial_case_sgd(trial_side *s);
void trial_case_lion(trial_side *s);
void trial_case_lamb(trial_side *s);
void trial_case_momentum(trial_side *s);
void trial_case_newton_schulz(trial_side *s);
void trial_case_tensor_norms(trial_side *s);
void trial_case_apply_update(trial_side *s);
void trial_case_ema(trial_side *s);

#endif
