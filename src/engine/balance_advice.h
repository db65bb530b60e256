/* Slow devices and slow links told apart, and what would help.
 *
 * For each rank: the best step with it and without it, the global batch being the same. What it brings is computing that others need
 * not do; what it costs is what the reduction takes longer because of it. A slow device brings little, a slow link costs much, and
 * only the latter is helped by sending less.
 *
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_BALANCE_ADVICE_H
#define MU_ENGINE_BALANCE_ADVICE_H

#include "engine/balance.h"
#include "engine/balance_members.h"

/* A rank's worth. Seconds of a step, each time with the best shares. */
typedef struct mu_balance_worth {
	double with, without; /* without: -1 when the others have no room for its images */
	double computing_saved; /* that the others would need longer without it */
	double reduction_added; /* that the reduction would be shorter without it */
} mu_balance_worth;

typedef enum mu_balance_verdict {
	MU_BALANCE_HELPS,
	MU_BALANCE_SLOW_DEVICE, /* costs more than it brings, since it brings so little */
	MU_BALANCE_SLOW_LINK /* costs more than it brings, since the reduction waits for its node's link */
} mu_balance_verdict;

mu_balance_worth mu_balance_worth_of(const mu_balance_search *search, int rank, mu_balance_team *room);
/* link: of the rank's node is slower than those of the other members, by a quarter or more. */
mu_balance_verdict mu_balance_judge(const mu_balance_worth *worth, bool slow_link);
bool mu_balance_slow_link(const mu_balance_search *search, int rank);

/* X(enum, words). */
#define MU_BALANCE_REMEDY_LIST(X)                                                               \
	X(MU_BALANCE_SIXTEEN_BIT, "16-bit gradients")                                           \
	X(MU_BALANCE_EIGHT_BIT, "8-bit gradients with a scale per 256")                         \
	X(MU_BALANCE_SEND_ONCE, "a reduction that sends the slow node's data once")             \
	X(MU_BALANCE_ACCUMULATE, "two batches per reduction, so a global batch twice as large") \
	X(MU_BALANCE_REMOVE, "leaving ranks out")

typedef enum mu_balance_remedy {
#define MU_X(name, text) name,
	MU_BALANCE_REMEDY_LIST(MU_X)
#undef MU_X
	        MU_BALANCE_REMEDIES
} mu_balance_remedy;

const char *mu_balance_remedy_text(mu_balance_remedy remedy);

/* What a remedy would bring, each time with the best shares: with all who may take part, and with the best team of them. */
typedef struct mu_balance_offer {
	mu_balance_remedy remedy;
	double step, reduction; /* seconds, with all; -1: it does not apply */
	double images_per_second; /* with all */
	double best_images_per_second; /* with the best team */
	int best_members;
} mu_balance_offer;

/* offers: [MU_BALANCE_REMEDIES], in the order of the list. element_bytes: of a gradient as it travels, 4 for fp32. */
void mu_balance_offers(const mu_balance_search *search, double element_bytes, mu_balance_team *room,
                       mu_balance_offer *offers);

/* The same for a run under way: with the speeds measured so far. false while not every rank is known. */
bool mu_balance_advise(mu_balance *balance, double element_bytes, mu_balance_offer *offers);

/* What a run's end or report says: which ranks cost more than they bring and why, and what would help most. A line each, into text;
 * "" when there is nothing to say. names: [ranks], "rank 3 (host b)" or NULL. */
void mu_balance_advice_words(mu_balance *balance, double element_bytes, const char *const *names, char *text,
                             size_t bytes);

#endif
