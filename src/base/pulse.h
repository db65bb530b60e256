/* The pulse of a rank's work: what it does right now, and a count that grows whenever something got done.
 *
 * The working threads mark, another one looks (the comm thread, which tells the other ranks). All of it is atomic and nothing is
 * locked: a mark costs a few stores. A mark with NULL says that nothing is under way which has to get on.
 *
 *     mu_pulse_mark(pulse, "forward of unit", u);
 *     mu_pulse_beat(pulse);                          an image was read: alive, still doing the same
 *     mu_pulse_rest(pulse);                          between steps
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_PULSE_H
#define MU_BASE_PULSE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mu_pulse {
	_Atomic(const char *) doing; /* a literal; NULL at rest */
	_Atomic uint64_t number; /* of the unit, the micro-batch ... */
	_Atomic uint64_t step; /* from 1; 0 before the first */
	_Atomic uint64_t beats;
	char device[128]; /* fixed before anybody looks */
} mu_pulse;

/* pulse may be NULL: nobody watches. */
static inline void mu_pulse_beat(mu_pulse *pulse)
{
	if (pulse)
		atomic_fetch_add_explicit(&pulse->beats, 1, memory_order_relaxed);
}

static inline void mu_pulse_mark(mu_pulse *pulse, const char *doing, uint64_t number)
{
	if (!pulse)
		return;
	atomic_store_explicit(&pulse->number, number, memory_order_relaxed);
	atomic_store_explicit(&pulse->doing, doing, memory_order_relaxed);
	mu_pulse_beat(pulse);
}

static inline void mu_pulse_rest(mu_pulse *pulse)
{
	mu_pulse_mark(pulse, NULL, 0);
}

#endif
