/* A balance's life, and what a rank tells. The decision itself is in balance_decide.c. SPDX-License-Identifier: MIT */
#include "engine/balance.h"

#include <stdlib.h>
#include <string.h>

#include "engine/balance_inside.h"

void mu_balance_step(mu_balance_window *window, double images, double micro_batches, double seconds, double waited)
{
	/* Another share: what came before says nothing of it. */
	if (window->steps > 0 && (window->images != images || window->micro_batches != micro_batches))
		window->steps = 0;
	int at = window->steps % MU_BALANCE_WINDOW;
	window->seconds[at] = seconds;
	window->waited[at] = waited;
	window->images = images;
	window->micro_batches = micro_batches;
	window->steps++;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Sorts. */
static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof *values, by_size);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

mu_balance_row mu_balance_close(mu_balance_window *window)
{
	int n = window->steps < MU_BALANCE_WINDOW ? window->steps : MU_BALANCE_WINDOW;
	mu_balance_row row = {.steps = window->steps};
	if (n > 0) {
		row.images = window->images;
		row.micro_batches = window->micro_batches;
		row.seconds = median(window->seconds, n);
		row.waited = median(window->waited, n);
	}
	window->steps = 0;
	return row;
}

static long long room_in_all(const mu_balance_settings *s)
{
	long long room = 0;
	for (int r = 0; r < s->ranks; r++)
		room += s->rank[r].capacity;
	return room;
}

static mural_status check_settings(const mu_balance_settings *s, mural_error *err)
{
	if (s->ranks > s->global_batch)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "a global batch of %d images is too small for %d ranks: each must be able to take one",
		               s->global_batch, s->ranks);
	for (int r = 0; r < s->ranks; r++)
		if (s->rank[r].capacity < 1)
			return mu_fail(err, MURAL_USAGE, NULL, "rank %d of %d has no room for even one image", r,
			               s->ranks);
	if (room_in_all(s) < s->global_batch)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "the ranks have room for %lld images in all, and the global batch has %d: %d do not "
		               "fit; make it smaller or let ranks accumulate more micro-batches",
		               room_in_all(s), s->global_batch, s->global_batch - (int)room_in_all(s));
	return s->shares ? mu_balance_check(s->shares, s, NULL, err) : MURAL_OK;
}

mural_status mu_balance_check(const int *shares, const mu_balance_settings *s, const char *where, mural_error *err)
{
	long long sum = 0;
	for (int r = 0; r < s->ranks; r++) {
		sum += shares[r];
		if (shares[r] < 0)
			return mu_fail(err, MURAL_USAGE, where, "rank %d cannot take %d images", r, shares[r]);
		if (shares[r] > s->rank[r].capacity)
			return mu_fail(err, MURAL_USAGE, where,
			               "rank %d is to take %d images per step and has room for %d", r, shares[r],
			               s->rank[r].capacity);
	}
	if (sum != s->global_batch)
		return mu_fail(err, MURAL_USAGE, where,
		               "the shares of %d ranks sum to %lld, and the global batch has %d images: %lld too %s",
		               s->ranks, sum, s->global_batch,
		               sum < s->global_batch ? s->global_batch - sum : sum - s->global_batch,
		               sum < s->global_batch ? "few" : "many");
	return MURAL_OK;
}

/* As even as whole bits allow; what does not fit goes to who has room. */
static void share_equally(mu_balance *b)
{
	int bits = b->global_batch / b->grain, left = b->global_batch;
	for (int r = 0; r < b->ranks; r++) {
		long long from = (long long)bits * r / b->ranks, to = (long long)bits * (r + 1) / b->ranks;
		int share = (int)(to - from) * b->grain + (r == b->ranks - 1 ? b->global_batch % b->grain : 0);
		b->shares[r] = share < b->rank[r].capacity ? share : b->rank[r].capacity / b->grain * b->grain;
		left -= b->shares[r];
	}
	for (int r = 0; r < b->ranks && left > 0; r++) {
		int more = b->rank[r].capacity - b->shares[r];
		more = more < left ? more / b->grain * b->grain : left;
		b->shares[r] += more;
		left -= more;
	}
}

static bool allocate(mu_balance *b, size_t ranks, size_t nodes)
{
	b->rank = calloc(ranks, sizeof *b->rank);
	b->model = calloc(ranks, sizeof *b->model);
	b->pooled = calloc(ranks, sizeof *b->pooled);
	b->seat = calloc(ranks, sizeof *b->seat);
	b->nodes = calloc(nodes + 1, sizeof *b->nodes);
	b->room_nodes = calloc(nodes + 1, sizeof *b->room_nodes);
	int **const shares[] = {&b->shares, &b->better.shares, &b->best.shares, &b->room_shares, &b->room_order};
	bool **const members[] = {&b->member, &b->better.member, &b->best.member, &b->room_member, &b->leaving};
	bool fine = b->rank && b->model && b->pooled && b->seat && b->nodes && b->room_nodes;
	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
		fine = (*shares[i] = calloc(ranks, sizeof **shares[i])) && fine;
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		fine = (*members[i] = calloc(ranks, sizeof **members[i])) && fine;
	return fine;
}

static void fill(mu_balance *b, const mu_balance_settings *s)
{
	size_t ranks = (size_t)s->ranks;
	b->ranks = s->ranks;
	b->global_batch = s->global_batch;
	b->grain = s->grain > 1 ? s->grain : 1;
	b->may_remove = s->may_remove;
	b->first_stays = s->first_stays;
	b->caution = 1;
	b->between_searches = 1;
	b->network = s->network;
	memcpy(b->rank, s->rank, ranks * sizeof *b->rank);
	if (s->network.nodes) {
		memcpy(b->nodes, s->network.nodes, (size_t)s->network.n_nodes * sizeof *b->nodes);
		memcpy(b->seat, s->network.seat, ranks * sizeof *b->seat);
		b->network.nodes = b->nodes;
		b->network.seat = b->seat;
	}
	if (!mu_balance_described(&s->network))
		b->network.overlap = false; /* balance_links.h */
	for (int r = 0; r < s->ranks; r++) {
		b->member[r] = true;
		if (b->rank[r].micro < 1)
			b->rank[r].micro = 1;
		mu_balance_model_begin(&b->model[r], s->rank[r].seconds_per_micro, s->rank[r].seconds_per_image);
	}
	memcpy(b->pooled, b->model, ranks * sizeof *b->pooled);
	if (s->shares)
		memcpy(b->shares, s->shares, ranks * sizeof *b->shares);
	else
		share_equally(b);
	b->decision = (mu_balance_decision){.shares = b->shares, .member = b->member, .drifted = -1};
}

mural_status mu_balance_create(mu_balance **balance, const mu_balance_settings *settings, mural_error *err)
{
	*balance = NULL;
	MU_TRY(check_settings(settings, err));
	mu_balance *b = calloc(1, sizeof *b);
	if (!b ||
	    !allocate(b, (size_t)settings->ranks, settings->network.nodes ? (size_t)settings->network.n_nodes : 0)) {
		mu_balance_free(b);
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to balance %d ranks", settings->ranks);
	}
	fill(b, settings);
	*balance = b;
	return MURAL_OK;
}

static void free_team(mu_balance_team *team)
{
	free(team->member);
	free(team->shares);
}

void mu_balance_free(mu_balance *b)
{
	if (!b)
		return;
	free(b->rank);
	free(b->model);
	free(b->pooled);
	free(b->seat);
	free(b->nodes);
	free(b->room_nodes);
	free(b->shares);
	free(b->member);
	free(b->room_member);
	free(b->room_shares);
	free(b->room_order);
	free(b->leaving);
	free_team(&b->better);
	free_team(&b->best);
	free(b);
}

const int *mu_balance_shares(const mu_balance *balance)
{
	return balance->shares;
}

void mu_balance_pace(const mu_balance *balance, int rank, double *seconds_per_image, double *seconds_per_micro)
{
	*seconds_per_image = balance->model[rank].b;
	*seconds_per_micro = balance->model[rank].a;
}
