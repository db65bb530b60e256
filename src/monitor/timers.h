/* Where the time of a step goes: seconds per phase, of the current step and of all steps.
 *
 * A lap costs one clock reading, so timers are always on. One owner per struct, no locks.
 *
 *     double t = mu_now();
 *     ... forward ...
 *     t = mu_timers_lap(&timers, MU_PHASE_FORWARD, t);
 *     ... backward ...
 *     t = mu_timers_lap(&timers, MU_PHASE_BACKWARD, t);
 *     mu_timers_end_step(&timers);
 *
 * Exposed communication is time that the trainer stood waiting; hidden is the rest of the time that messages were under
 * way, while it computed. Hidden time is therefore part of the other phases' time and not of their sum.
 * SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_TIMERS_H
#define MU_MONITOR_TIMERS_H

#include <stdint.h>

/* X(enum, name). The names are the stems of the columns of steps.csv and of the keys of result.json. */
#define MU_PHASE_LIST(X)                                  \
	X(MU_PHASE_DATA, "data") /* waiting for images */ \
	X(MU_PHASE_FORWARD, "forward")                    \
	X(MU_PHASE_BACKWARD, "backward")                  \
	X(MU_PHASE_EXPOSED, "communication_exposed")      \
	X(MU_PHASE_HIDDEN, "communication_hidden")        \
	X(MU_PHASE_OPTIMIZER, "optimizer")

typedef enum mu_phase {
#define MU_X(name, text) name,
	MU_PHASE_LIST(MU_X)
#undef MU_X
	        MU_PHASE_COUNT
} mu_phase;

typedef struct mu_timers { /* zero-initialise */
	double step[MU_PHASE_COUNT]; /* the step under way */
	double last[MU_PHASE_COUNT]; /* the step that ended last */
	double total[MU_PHASE_COUNT]; /* all steps that have ended */
	uint64_t steps;
} mu_timers;

/* "data", "forward", ... */
const char *mu_phase_text(mu_phase phase);

/* Adds to the step under way. Negative amounts (two clocks that disagree by a tick) count as 0. */
void mu_timers_add(mu_timers *timers, mu_phase phase, double seconds);
/* Adds the seconds since `since` and returns now. */
double mu_timers_lap(mu_timers *timers, mu_phase phase, double since);
/* Seconds that messages were under way, and seconds of them that the trainer waited: adds exposed and hidden. */
void mu_timers_communication(mu_timers *timers, double under_way, double waited);
/* Moves the step under way to `last` and `total`. */
void mu_timers_end_step(mu_timers *timers);

#endif
