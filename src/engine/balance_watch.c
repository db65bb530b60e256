/* Who waits for whom. SPDX-License-Identifier: MIT */
#include "engine/balance_watch.h"

#include <math.h>
#include <stdio.h>

static bool tells(const mu_balance_row *row, bool member)
{
	return member && row->steps > 0;
}

mu_balance_wait mu_balance_wait_of(const mu_balance_row *rows, const bool *member, int ranks)
{
	mu_balance_wait wait = {.slowest = -1, .links = INFINITY};
	double waited = 0;
	int others = -1;
	for (int r = 0; r < ranks; r++) {
		if (!tells(&rows[r], member[r]))
			continue;
		others++;
		waited += rows[r].waited;
		wait.links = fmin(wait.links, rows[r].waited);
		if (wait.slowest < 0 || rows[r].seconds > rows[wait.slowest].seconds)
			wait.slowest = r;
	}
	if (wait.slowest < 0)
		return (mu_balance_wait){.slowest = -1};
	wait.step = rows[wait.slowest].seconds + wait.links;
	if (others > 0)
		wait.waited = (waited - rows[wait.slowest].waited) / others - wait.links;
	wait.waited = fmax(0, wait.waited);
	return wait;
}

void mu_balance_wait_words(const mu_balance_wait *wait, const char *name, char *text, size_t bytes)
{
	text[0] = '\0';
	if (wait->slowest < 0 || wait->waited < 0.05 * wait->step)
		return;
	char number[24];
	snprintf(number, sizeof number, "rank %d", wait->slowest);
	snprintf(text, bytes, "waits %.2g s of %.2g s per step for %s", wait->waited, wait->step, name ? name : number);
}
