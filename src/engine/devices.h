/* Who computes on what: every rank tells all the others what it was told to use and which cards it sees, and each draws the same
 * conclusions for all.
 *
 *     mural.ops          a rank gets
 *     auto               a card of its own, where every rank can have one; the processor, where no rank sees any; otherwise the
 *                        user has to say what is meant
 *     mixed              a card of its own while there are any on its host, then the processor
 *     cuda               a card of its own, or an error
 *     cuda:N             that card, whoever else has it
 *     cpu, reference     the processor
 *     cuda,cpu,...       one of these three for each rank
 *
 * "Of its own": the card of its slot in the host file, else the next of its host in the order of ranks. Ranks that see other cards
 * (a batch system gave one to each) count their own ones from 0.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_DEVICES_H
#define MU_ENGINE_DEVICES_H

#include "comm/comm.h"
#include "device/device.h"

typedef enum mu_wish { MU_WISH_AUTO, MU_WISH_MIXED, MU_WISH_CARD, MU_WISH_HOST } mu_wish;

/* Of one rank; all its bytes travel. */
typedef struct mu_seeker {
	char host[256];
	int32_t wish;
	int32_t number; /* of the card that it must be, or -1 */
	int32_t slot; /* of the host file, or -1 */
	mu_device_survey cards; /* that it sees */
} mu_seeker;

enum { MU_NO_CARD = -1 };

/* The rank's word of mural.ops: "cuda" of "cpu,cuda" for rank 1; the only one is everybody's. MURAL_USAGE: there are words for
 * another number of ranks. */
mural_status mu_devices_word(const char *ops, int ranks, int rank, char word[32], const char *where, mural_error *err);
/* What a word asks for. */
mu_wish mu_devices_wish(const char *word, int32_t *number);

/* card_R[r]: the card of rank r as its process counts them, or MU_NO_CARD. MURAL_USAGE, the same on all ranks: not everybody can
 * have what is asked for. */
mural_status mu_devices_choose(const mu_seeker *all, int ranks, int *card_R, const char *where, mural_error *err);

/* How many ranks compute on the card of this one, itself included. */
int mu_devices_sharing(const mu_seeker *all, int ranks, const int *card_R, int rank);

#endif
