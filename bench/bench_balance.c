/* What balancing costs a job of equal ranks: the time of each event, and events per step times that. A decision is made every 10 steps
 * once shares have settled, a step is noted on each rank, and a meeting sends one row per rank and one message back; the last two are
 * timed by bench_comm. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/balance.h"

enum { MOST = 256, DECISIONS = 200, STEPS = 10 };

static mu_balance_window window[MOST];

/* Equal ranks with 1 % of noise; seconds of a decision and of noting a step. */
static int measure(int ranks, double *decision, double *step)
{
	static mu_balance_rank rank[MOST];
	static mu_balance_row rows[MOST];
	mu_balance *balance;
	mural_error err = {0};
	for (int r = 0; r < ranks; r++)
		rank[r] = (mu_balance_rank){.capacity = 64 * ranks, .micro = 64};
	const mu_balance_settings settings = {.ranks = ranks, .global_batch = 64 * ranks, .rank = rank};
	if (mu_balance_create(&balance, &settings, &err) != MURAL_OK) {
		mural_error_print(&err, stderr);
		return 1;
	}
	*decision = *step = 0;
	for (int d = 0; d < DECISIONS; d++) {
		double from = mu_now();
		for (int s = 0; s < STEPS; s++)
			for (int r = 0; r < ranks; r++)
				mu_balance_step(&window[r], 64, 1, 0.1 * (1 + 0.01 * sin(d * 10 + s + 7 * r)), 0.01);
		*step += mu_now() - from;
		for (int r = 0; r < ranks; r++)
			rows[r] = mu_balance_close(&window[r]);
		from = mu_now();
		(void)mu_balance_decide(balance, rows);
		*decision += mu_now() - from;
	}
	*decision /= DECISIONS;
	*step /= (double)DECISIONS * STEPS * ranks;
	mu_balance_free(balance);
	return 0;
}

int main(void)
{
	const int sizes[] = {2, 4, 8, 16, 64, 256};
	printf("ranks  a decision, us  noting a step, us  per step without messages, us\n");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		double decision, step;
		if (measure(sizes[i], &decision, &step))
			return 1;
		printf("%5d %15.2f %18.3f %30.2f\n", sizes[i], 1e6 * decision, 1e6 * step,
		       1e6 * (decision / STEPS + step));
	}
	return 0;
}
