/* The ledger: per-step values (kernels/ops.h) in device memory, and what the host sees of them.
 *
 * Everything that changes from step to step is written and read by operations, in the order of the queue. The host zeroes
 * the sums when a step begins, copies learning rates up now and then, and copies the record down once per step. Where
 * the host shares the device's memory, its view is the record itself and nothing is copied.
 *
 *     device:  | record: sums, squares | carried | decision |   | ring of MU_LEDGER_RATES learning rates |
 *     host:    the same, pinned; or the device's
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_LEDGER_H
#define MU_ENGINE_LEDGER_H

#include "base/arena.h"
#include "comm/comm.h"
#include "kernels/ops.h"
#include "optim/schedule.h"

/* Updates that the device can go on for without a word from the host; the host refills the ring when half is used. */
#define MU_LEDGER_RATES 512

typedef struct mu_ledger {
	mu_device device; /* borrowed */
	bool shared; /* the host reads the device's memory */
	mu_step_record *record; /* device */
	mu_rate *rates; /* device, [MU_LEDGER_RATES] */
	mu_step_record *seen; /* host: as of the last read */
	mu_rate *next_rates; /* host */
	uint64_t rates_until; /* the ring holds updates up to this number */
	size_t bytes; /* of device memory */
} mu_ledger;

/* Device memory from `model`, host memory from `pinned`. */
void mu_ledger_take(mu_ledger *ledger, const mu_device *device, bool shared, mu_arena *model, mu_arena *pinned);

/* All zero but `carried`, on both sides; the ring is empty. */
mural_status mu_ledger_start(mu_ledger *ledger, const mu_carried *carried, mural_error *err);

/* Learning rates for the coming updates, if it is time. The host must have seen the last step. */
mural_status mu_ledger_refill(mu_ledger *ledger, const mural_schedule_config *schedule,
                              const mural_optimizer_config *optimizer, mural_error *err);

/* Zero sums and squares. */
mural_status mu_ledger_clear(mu_ledger *ledger, mural_error *err);

/* All ranks: adds the sums up over the ranks, with this rank's failure and wish to stop. If this rank failed (status), its
 * other sums do not count. Returns MURAL_OK whatever status is. */
mural_status mu_ledger_sum(mu_ledger *ledger, mu_comm *comm, mural_status status, bool stop_asked, mural_error *err);

/* The record as another rank has it, on both sides. */
mural_status mu_ledger_write(mu_ledger *ledger, const mu_step_record *record, mural_error *err);

/* Waits for the queue; `seen` is then the record. */
mural_status mu_ledger_read(mu_ledger *ledger, mural_error *err);

#endif
