/* Shares of the global batch as a person writes them: `mural.balance`. SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_SHARES_H
#define MU_ENGINE_SHARES_H

#include "mural/config.h"

typedef enum mu_shares_kind {
	MU_SHARES_EQUAL, /* "equal": every rank the same */
	MU_SHARES_AUTO, /* "auto": measured and decided on while the run goes on */
	MU_SHARES_GIVEN, /* "5,1": a number per rank */
	MU_SHARES_REPLAY /* "replay:FILE": the decisions of another run's balance.csv */
} mu_shares_kind;

#define MU_SHARES_REPLAY_WORD "replay:"
#define MU_SHARES_LARGEST 2147483647 /* images of a batch that is shared out */

/* False: the text is none of these. */
bool mu_shares_kind_of(const char *text, mu_shares_kind *kind);

/* The numbers of "5, 1" into share_R[room]; how many there are (also beyond room), or -1: not such a text. */
int mu_shares_read(const char *text, int *share_R, int room);

#endif
