/* Cards and ranks. SPDX-License-Identifier: MIT */
#include "engine/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count_words(const char *ops)
{
	int n = 1;
	for (; *ops; ops++)
		n += *ops == ',';
	return n;
}

mural_status mu_devices_word(const char *ops, int ranks, int rank, char word[32], const char *where, mural_error *err)
{
	const int words = count_words(ops);
	if (words > 1 && words != ranks)
		return mu_fail(err, MURAL_USAGE, where,
		               "expected one word for all, or one for each of %d ranks, got %d (%.200s)", ranks, words,
		               ops);
	for (int r = 0; words > 1 && r < rank; r++)
		ops = strchr(ops, ',') + 1;
	snprintf(word, 32, "%.*s", (int)strcspn(ops, ","), ops);
	return MURAL_OK;
}

mu_wish mu_devices_wish(const char *word, int32_t *number)
{
	*number = -1;
	if (word[0] == '\0' || strcmp(word, "auto") == 0)
		return MU_WISH_AUTO;
	if (strcmp(word, "mixed") == 0)
		return MU_WISH_MIXED;
	if (strncmp(word, "cuda", 4) != 0)
		return MU_WISH_HOST;
	if (word[4] == ':')
		*number = (int32_t)strtol(word + 5, NULL, 10);
	return MU_WISH_CARD;
}

static bool same_cards(const mu_seeker *a, const mu_seeker *b)
{
	return strcmp(a->host, b->host) == 0 && strcmp(a->cards.first_bus, b->cards.first_bus) == 0;
}

/* The card that rank r would have, whether it exists or not. */
static int card_of(const mu_seeker *all, int r)
{
	const mu_seeker *own = &all[r];
	int before = 0;
	if (own->number >= 0)
		return own->number;
	if (own->slot >= 0 && own->slot < own->cards.devices)
		return own->slot;
	for (int other = 0; other < r; other++)
		before += all[other].wish != MU_WISH_HOST && all[other].number < 0 && same_cards(&all[other], own);
	return before;
}

static int ranks_there(const mu_seeker *all, int ranks, const mu_seeker *own)
{
	int n = 0;
	for (int r = 0; r < ranks; r++)
		n += all[r].wish != MU_WISH_HOST && strcmp(all[r].host, own->host) == 0;
	return n;
}

static const char *plural(int n)
{
	return n == 1 ? "" : "s";
}

static mural_status too_few(const mu_seeker *all, int ranks, int r, const char *where, mural_error *err)
{
	const mu_seeker *own = &all[r];
	const int cards = own->cards.devices, there = ranks_there(all, ranks, own);
	if (own->number >= 0)
		return mu_fail(err, MURAL_USAGE, where,
		               "rank %d is to use GPU %d of host %.64s and sees %d GPU%s there", r, own->number,
		               own->host, cards, plural(cards));
	return mu_fail(
	        err, MURAL_USAGE, where,
	        "host %.64s has %d rank%s for %d GPU%s: start %d there, or say what is meant: --ops mixed (GPUs "
	        "first, then processors), --ops cpu, or a word for each rank, such as --ops cuda:0,cuda:0 for two "
	        "on one card",
	        own->host, there, plural(there), cards, plural(cards), cards);
}

mural_status mu_devices_choose(const mu_seeker *all, int ranks, int *card_R, const char *where, mural_error *err)
{
	bool any = false;
	for (int r = 0; r < ranks; r++)
		any |= all[r].cards.devices > 0;
	for (int r = 0; r < ranks; r++) {
		const int card = card_of(all, r);
		const bool there = card < all[r].cards.devices;
		const bool must = all[r].wish == MU_WISH_CARD || (all[r].wish == MU_WISH_AUTO && any);
		card_R[r] = there && all[r].wish != MU_WISH_HOST ? card : MU_NO_CARD;
		if (must && !there)
			return too_few(all, ranks, r, where, err);
		if (all[r].wish == MU_WISH_MIXED && !any)
			return mu_fail(err, MURAL_USAGE, where,
			               "no rank sees a GPU, so there is nothing to mix: use --ops cpu");
	}
	return MURAL_OK;
}

int mu_devices_sharing(const mu_seeker *all, int ranks, const int *card_R, int rank)
{
	int n = 0;
	for (int r = 0; r < ranks; r++)
		n += card_R[r] != MU_NO_CARD && card_R[r] == card_R[rank] && same_cards(&all[r], &all[rank]);
	return n;
}
