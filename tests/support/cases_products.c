/* Cases of the rows that multiply matrices: linear and attention. SPDX-License-Identifier: MIT */
#include <math.h>

#include "cases.h"

#define PRODUCTS 200000 /* multiply-adds of a forward: some ms by the reference */

void trial_case_linear(trial_side *s)
{
	static const char *const names[] = {"none", "erf", "tanh"};
	const bool bias = trial_flag(s, "bias"), input_gradient = trial_flag(s, "d_x");
	mu_linear op = {.type = s->type, .activation = (mu_activation)trial_below(s, 3)};
	const bool active = op.activation != MU_ACTIVATION_NONE;
	trial_note(s, "activation=%s ", names[op.activation]);
	op.in = trial_size(s, "in", 768);
	op.out = trial_size(s, "out", PRODUCTS / op.in);
	op.rows = trial_size(s, "rows", PRODUCTS / op.in / op.out);
	const size_t rows = op.rows, in = op.in, out = op.out;
	const double w_size = 2 / sqrt((double)in); /* pre then has a size of about 1 */
	op.x = trial_array(s, TRIAL_INPUT, "x", s->type, rows * in);
	op.w = trial_numbers(s, TRIAL_INPUT, "w", s->type, out * in, 0, w_size);
	op.b = bias ? trial_array(s, TRIAL_INPUT, "b", s->type, out) : NULL;
	op.pre = active ? trial_array(s, TRIAL_OUTPUT, "pre", s->type, rows * out) : NULL;
	op.y = trial_array(s, TRIAL_OUTPUT, "y", s->type, rows * out);
	op.d_y = trial_array(s, active ? TRIAL_ADDED : TRIAL_INPUT, "d_y", s->type, rows * out);
	op.d_x = input_gradient ? trial_array(s, TRIAL_OUTPUT, "d_x", s->type, rows * in) : NULL;
	op.d_w = trial_array(s, TRIAL_ADDED, "d_w", s->type, out * in);
	op.d_b = bias ? trial_array(s, TRIAL_ADDED, "d_b", s->type, out) : NULL;
	op.scratch = trial_scratch(s, s->table->linear_workspace(s->context, &op));
	trial_call(s, "linear_forward", s->table->linear_forward(s->context, &op, &s->err));
	trial_call(s, "linear_backward", s->table->linear_backward(s->context, &op, &s->err));

	const double pre_size = 1 + 2.2, d_pre_size = 1.2 * (active ? pre_size : 1), walk = sqrt((double)rows);
	trial_expect(s, op.y, s->type, in, pre_size);
	if (active) {
		trial_expect(s, op.pre, s->type, in, pre_size);
		trial_expect(s, op.d_y, s->type, in, d_pre_size);
	}
	if (input_gradient)
		trial_expect(s, op.d_x, s->type, out + in, d_pre_size * w_size * sqrt((double)out));
	trial_expect(s, op.d_w, s->type, rows + in, 1 + d_pre_size * walk);
	if (bias)
		trial_expect(s, op.d_b, s->type, rows + in, 1 + d_pre_size * walk);
}

void trial_case_attention(trial_side *s)
{
	static const size_t head_sizes[] = {16, 32, 64, 72, 80, 88, 96, 104, 112, 128};
	const size_t n_head_sizes = sizeof head_sizes / sizeof *head_sizes;
	mu_attention op = {.type = s->type, .head_size = head_sizes[trial_below(s, n_head_sizes)]};
	trial_note(s, "K=%zu ", op.head_size);
	op.images = trial_size(s, "B", 3);
	op.heads = trial_size(s, "H", 3);
	const size_t B = op.images, H = op.heads, K = op.head_size;
	/* one in sixteen has the tokens of a real image, whatever it costs */
	const size_t budget = (size_t)sqrt((double)PRODUCTS / (double)(B * H * K));
	op.tokens = trial_below(s, 16) ? trial_size(s, "N", budget) : trial_size(s, "N", B * H == 1 ? 197 : 65);
	op.dropout = trial_dropout(s, B);
	const size_t N = op.tokens, n = B * N * H * K;
	op.qkv = trial_numbers(s, TRIAL_INPUT, "qkv", s->type, 3 * n, 0, 2);
	op.o = trial_array(s, TRIAL_OUTPUT, "o", s->type, n);
	op.lse = trial_array(s, TRIAL_OUTPUT, "lse", trial_stat(s), B * H * N);
	op.d_o = trial_array(s, TRIAL_INPUT, "d_o", s->type, n);
	op.d_qkv = trial_array(s, TRIAL_OUTPUT, "d_qkv", s->type, 3 * n);
	op.scratch = trial_scratch(s, s->table->attention_workspace(s->context, &op));
	trial_call(s, "attention_forward", s->table->attention_forward(s->context, &op, &s->err));
	trial_call(s, "attention_backward", s->table->attention_backward(s->context, &op, &s->err));

	/* A score is a sum of K products of about 1.7 by 1.7 over sqrt(K); its error is a factor on p. */
	const double value_size = 2.2 * op.dropout.scale, score_size = 2.2 * 2.2;
	trial_expect(s, op.o, s->type, K + N, value_size * (1 + score_size));
	trial_expect(s, op.lse, s->type, K + N, score_size + log((double)N));
	trial_expect(s, op.d_qkv, s->type, K + N, value_size * 2.2 * (1 + score_size));
}
