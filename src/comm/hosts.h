/* Hosts, inside: a list that shrinks. SPDX-License-Identifier: MIT */
#ifndef MU_COMM_HOSTS_H
#define MU_COMM_HOSTS_H

#include "base/fail.h"
#include "mural/hosts.h"

struct mural_hosts {
	char *file; /* as given, or NULL */
	mural_host *hosts;
	size_t n, capacity;
};

/* hosts_filter.c: takes away what the choice does not want. */
mural_status mu_hosts_choose(mural_hosts *hosts, const mural_hosts_choice *choice, mural_error *err);

/* "hosts:3" in out; "localhost" without a file. */
const char *mu_host_where(const mural_hosts *hosts, const mural_host *host, char *out, size_t capacity);

/* Is this text, so long, a whole number up to `most`? Then it is in *value. */
bool mu_hosts_number(const char *text, size_t length, int most, int *value);

#endif
