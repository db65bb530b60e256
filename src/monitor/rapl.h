/* Energy of this host's processors and memory, from the counters that Linux shows under /sys/class/powercap (Intel's RAPL,
 * which AMD's processors have as well).
 *
 * Counted are the domains "package-N" and, beside them, "dram"; "core" and "uncore" lie inside a package, "psys" around all.
 * A counter runs from 0 to max_energy_range_uj and begins anew, after 20 minutes to some hours under load, so it has to be
 * read more often than that. It counts the whole host, other programs included.
 * SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_RAPL_H
#define MU_MONITOR_RAPL_H

#include <stddef.h>
#include <stdint.h>

#define MU_RAPL_DOMAINS 32

typedef struct mu_rapl_domain {
	int fd;
	uint64_t last, range; /* microjoules */
} mu_rapl_domain;

typedef struct mu_rapl { /* zero-initialise */
	mu_rapl_domain domains[MU_RAPL_DOMAINS];
	size_t n; /* 0: nothing can be measured, and `why` says so */
	uint64_t microjoules; /* since it was opened */
	char names[128]; /* "package-0, dram" */
	char why[256]; /* "" when it works */
} mu_rapl;

/* Finds and reads the counters. One that is there and cannot be read makes the whole unmeasurable: half a sum is no sum. */
void mu_rapl_open(mu_rapl *rapl);
void mu_rapl_close(mu_rapl *rapl); /* all-zero is fine */

/* Joules since it was opened; NaN when that cannot be measured. */
double mu_rapl_joules(mu_rapl *rapl);

#endif
