/* Shares as text and as numbers. SPDX-License-Identifier: MIT */
#include "engine/shares.h"

#include <stdlib.h>
#include <string.h>

int mu_shares_read(const char *text, int *share_R, int room)
{
	int n = 0;
	for (;; text++) {
		text += strspn(text, " ");
		size_t digits = strspn(text, "0123456789");
		unsigned long long value = digits > 0 && digits <= 10 ? strtoull(text, NULL, 10) : UINT64_MAX;
		if (value > MU_SHARES_LARGEST)
			return -1;
		if (n < room)
			share_R[n] = (int)value;
		n++;
		text += digits + strspn(text + digits, " ");
		if (!*text)
			return n;
		if (*text != ',')
			return -1;
	}
}

bool mu_shares_kind_of(const char *text, mu_shares_kind *kind)
{
	const size_t word = strlen(MU_SHARES_REPLAY_WORD);
	if (strcmp(text, "equal") == 0)
		*kind = MU_SHARES_EQUAL;
	else if (strcmp(text, "auto") == 0)
		*kind = MU_SHARES_AUTO;
	else if (strncmp(text, MU_SHARES_REPLAY_WORD, word) == 0 && text[word])
		*kind = MU_SHARES_REPLAY;
	else if (mu_shares_read(text, NULL, 0) > 0)
		*kind = MU_SHARES_GIVEN;
	else
		return false;
	return true;
}
