/* Time. SPDX-License-Identifier: MIT */
#ifndef MU_BASE_CLOCK_H
#define MU_BASE_CLOCK_H

/* Monotonic seconds, the same clock for all threads of this host. */
double mu_now(void);

void mu_sleep(double seconds);

#endif
