/* What each rank is worth, and what would help. SPDX-License-Identifier: MIT */
#include "engine/balance_advice.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/balance_inside.h"

static const double BLOCK_OF_8_BITS = 1 + 4 / 256.0; /* bytes per element: one, and a float of scale per 256 of them */

const char *mu_balance_remedy_text(mu_balance_remedy remedy)
{
	static const char *const texts[] = {
#define MU_X(name, text) text,
	        MU_BALANCE_REMEDY_LIST(MU_X)
#undef MU_X
	};
	return texts[remedy];
}

mu_balance_worth mu_balance_worth_of(const mu_balance_search *search, int rank, mu_balance_team *room)
{
	mu_balance_worth worth = {0};
	mu_balance_with_all(search, room);
	double computing = room->computing, reduction = room->reduction;
	worth.with = room->step;
	mu_balance_without(search, rank, room);
	worth.without = room->step;
	if (room->step >= 0) {
		worth.computing_saved = room->computing - computing;
		worth.reduction_added = reduction - room->reduction;
	}
	return worth;
}

bool mu_balance_slow_link(const mu_balance_search *search, int rank)
{
	const mu_balance_network *network = search->problem.network;
	double others = INFINITY;
	if (!network->nodes)
		return false;
	const mu_link own = network->nodes[network->seat[rank]].uplink;
	for (int r = 0; r < search->problem.ranks; r++)
		if (search->problem.member[r] && network->seat[r] != network->seat[rank])
			others = fmin(others, network->nodes[network->seat[r]].uplink.bytes_per_second);
	/* Of two nodes that were looked at nobody knows whose link it is: it is what joins the later one. */
	if (network->probed && network->n_nodes == 2)
		return network->seat[rank] == 1;
	return isfinite(others) && own.bytes_per_second * 1.25 <= others;
}

mu_balance_verdict mu_balance_judge(const mu_balance_worth *worth, bool slow_link)
{
	if (worth->without < 0 || worth->without >= worth->with)
		return MU_BALANCE_HELPS;
	return slow_link ? MU_BALANCE_SLOW_LINK : MU_BALANCE_SLOW_DEVICE;
}

static mu_balance_offer offer_of(const mu_balance_search *search, mu_balance_remedy remedy, mu_balance_team *room)
{
	mu_balance_offer offer = {.remedy = remedy, .step = -1, .reduction = -1};
	double images = search->problem.global_batch;
	mu_balance_with_all(search, room);
	if (room->step < 0)
		return offer;
	offer.step = room->step;
	offer.reduction = room->reduction;
	offer.images_per_second = images / room->step;
	mu_balance_best_team(search, room);
	offer.best_images_per_second = images / room->step;
	for (int r = 0; r < search->problem.ranks; r++)
		offer.best_members += room->member[r];
	return offer;
}

static mu_balance_offer smaller(const mu_balance_search *search, mu_balance_remedy remedy, double by,
                                mu_balance_team *room)
{
	mu_balance_search other = *search;
	other.bytes *= by;
	return offer_of(&other, remedy, room);
}

static int slowest_node(const mu_balance_search *search)
{
	const mu_balance_network *network = search->problem.network;
	int slowest = -1;
	for (int r = 0; r < search->problem.ranks; r++) {
		int node = network->seat[r];
		if (search->problem.member[r] &&
		    (slowest < 0 ||
		     network->nodes[node].uplink.bytes_per_second < network->nodes[slowest].uplink.bytes_per_second))
			slowest = node;
	}
	return slowest;
}

/* The node with the slowest uplink hands its sum to a neighbour and gets the result back, bucket by bucket and both ways at once,
 * while the others reduce among themselves: bytes / bandwidth instead of the ring's 2 (n - 1) / n of it, and one bucket to fill
 * the pipe. */
static mu_balance_offer send_once(const mu_balance_search *search, mu_balance_team *room)
{
	const mu_balance_network *network = search->problem.network;
	mu_balance_offer offer = {.remedy = MU_BALANCE_SEND_ONCE, .step = -1, .reduction = -1};
	int slow = network->nodes ? slowest_node(search) : -1;
	if (slow < 0)
		return offer;
	int ranks = search->problem.ranks;
	for (int r = 0; r < ranks; r++)
		room->member[r] = search->problem.member[r] && network->seat[r] != slow;
	double others = mu_balance_reduction(network, room->member, ranks, search->bytes, search->nodes);
	double buckets = network->buckets > 1 ? network->buckets : 1;
	const mu_link link = network->nodes[slow].uplink;
	mu_balance_problem problem = search->problem;
	problem.reduction = fmax(others, buckets * link.latency + search->bytes / link.bytes_per_second) +
	                    link.latency + search->bytes / buckets / link.bytes_per_second;
	double step = mu_balance_solve(&problem, room->shares);
	double ring = mu_balance_reduction(network, problem.member, ranks, search->bytes, search->nodes);
	if (step < 0 || problem.reduction >= ring)
		return offer;
	offer.step = step;
	offer.reduction = problem.reduction;
	offer.images_per_second = offer.best_images_per_second = problem.global_batch / step;
	for (int r = 0; r < ranks; r++)
		offer.best_members += problem.member[r];
	return offer;
}

/* Twice the images for one reduction, each rank taking what it takes now twice. */
static mu_balance_offer accumulate(const mu_balance_search *search, mu_balance_team *room)
{
	mu_balance_search other = *search;
	if (search->problem.global_batch > (1 << 29))
		return (mu_balance_offer){.remedy = MU_BALANCE_ACCUMULATE, .step = -1, .reduction = -1};
	other.problem.global_batch *= 2;
	other.problem.passes = 2;
	return offer_of(&other, MU_BALANCE_ACCUMULATE, room);
}

void mu_balance_offers(const mu_balance_search *search, double element_bytes, mu_balance_team *room,
                       mu_balance_offer *offers)
{
	const mu_balance_offer none = {.step = -1, .reduction = -1};
	offers[MU_BALANCE_SIXTEEN_BIT] =
	        element_bytes > 2 ? smaller(search, MU_BALANCE_SIXTEEN_BIT, 2 / element_bytes, room) : none;
	offers[MU_BALANCE_SIXTEEN_BIT].remedy = MU_BALANCE_SIXTEEN_BIT;
	offers[MU_BALANCE_EIGHT_BIT] = smaller(search, MU_BALANCE_EIGHT_BIT, BLOCK_OF_8_BITS / element_bytes, room);
	offers[MU_BALANCE_SEND_ONCE] = send_once(search, room);
	offers[MU_BALANCE_ACCUMULATE] = accumulate(search, room);
	offers[MU_BALANCE_REMOVE] = offer_of(search, MU_BALANCE_REMOVE, room);
}

bool mu_balance_advise(mu_balance *b, double element_bytes, mu_balance_offer *offers)
{
	for (int r = 0; r < b->ranks; r++)
		if (b->member[r] && b->model[r].b <= 0)
			return false;
	const mu_balance_search search = mu_balance_search_of(b);
	mu_balance_offers(&search, element_bytes, &b->best, offers);
	return true;
}

/* ---- words. ---- */

typedef struct writer {
	char *text;
	size_t bytes, used;
} writer;

MU_PRINTF(2, 3) static void add(writer *w, const char *format, ...)
{
	va_list arguments;
	if (w->used + 1 >= w->bytes)
		return;
	va_start(arguments, format);
	int n = vsnprintf(w->text + w->used, w->bytes - w->used, format, arguments);
	va_end(arguments);
	w->used += n > 0 ? (size_t)n : 0;
	if (w->used >= w->bytes)
		w->used = w->bytes - 1;
}

static void add_rank(writer *w, const char *const *names, int rank)
{
	if (names && names[rank])
		add(w, "%s", names[rank]);
	else
		add(w, "rank %d", rank);
}

/* What rank r would do to the best team, of which it is none. */
static void add_worth(writer *w, const mu_balance_search *search, const char *const *names, int rank,
                      mu_balance_team *room)
{
	const mu_balance_worth worth = mu_balance_worth_of(search, rank, room);
	const mu_balance_verdict verdict = mu_balance_judge(&worth, mu_balance_slow_link(search, rank));
	if (verdict == MU_BALANCE_HELPS)
		return;
	add_rank(w, names, rank);
	add(w, " costs more than it brings: ");
	if (verdict == MU_BALANCE_SLOW_LINK)
		add(w, "its link makes the reduction %.3g s longer, and its computing saves %.3g s",
		    worth.reduction_added, worth.computing_saved);
	else
		add(w, "its computing saves %.3g s, and the reduction is %.3g s longer with it", worth.computing_saved,
		    worth.reduction_added);
	add(w, "; a step of %.3g s would take %.3g s without it\n", worth.with, worth.without);
}

static void add_offers(writer *w, const mu_balance_offer *offers, double now, int members)
{
	add(w, "what would help, in images/s, now %.1f:", now);
	for (int o = 0; o < MU_BALANCE_REMEDIES; o++) {
		if (offers[o].step < 0 || offers[o].best_images_per_second < 1.02 * now)
			continue;
		add(w, " %s", mu_balance_remedy_text(offers[o].remedy));
		if (o != MU_BALANCE_REMOVE)
			add(w, " %.1f", offers[o].images_per_second);
		if (offers[o].best_members < members)
			add(w, o == MU_BALANCE_REMOVE ? " (%d of %d stay) %.1f" : " (with %d of %d ranks %.1f)",
			    offers[o].best_members, members, offers[o].best_images_per_second);
		add(w, ";");
	}
	w->text[w->used - 1] = '\n';
}

void mu_balance_advice_words(mu_balance *b, double element_bytes, const char *const *names, char *text, size_t bytes)
{
	mu_balance_offer offers[MU_BALANCE_REMEDIES];
	writer w = {.text = text, .bytes = bytes};
	text[0] = '\0';
	if (!mu_balance_advise(b, element_bytes, offers) || offers[MU_BALANCE_REMOVE].step < 0)
		return;
	mu_balance_search search = mu_balance_search_of(b);
	double now = offers[MU_BALANCE_REMOVE].images_per_second, most = 0;
	int members = 0;
	mu_balance_best_team(&search, &b->better);
	search.problem.member = b->better.member;
	for (int r = 0; r < b->ranks; r++) {
		members += b->member[r];
		if (b->better.member[r] || !b->member[r])
			continue;
		b->better.member[r] = true;
		add_worth(&w, &search, names, r, &b->best);
		b->better.member[r] = false;
	}
	for (int o = 0; o < MU_BALANCE_REMEDIES; o++)
		most = fmax(most, offers[o].step > 0 ? offers[o].best_images_per_second : 0);
	if (members > 1 && most >= 1.02 * now)
		add_offers(&w, offers, now, members);
}
