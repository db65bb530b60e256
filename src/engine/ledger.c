/* Per-step values on their way between host and device. SPDX-License-Identifier: MIT */
#include "engine/ledger.h"

void mu_ledger_take(mu_ledger *ledger, const mu_device *device, bool shared, mu_arena *model, mu_arena *pinned)
{
	const size_t rates = MU_LEDGER_RATES * sizeof(mu_rate);
	*ledger = (mu_ledger){.device = *device,
	                      .shared = shared,
	                      .record = mu_arena_take(model, sizeof(mu_step_record)),
	                      .rates = mu_arena_take(model, rates),
	                      .bytes = mu_arena_padded(sizeof(mu_step_record)) + mu_arena_padded(rates)};
	ledger->seen = shared ? ledger->record : mu_arena_take(pinned, sizeof(mu_step_record));
	ledger->next_rates = shared ? ledger->rates : mu_arena_take(pinned, rates);
}

/* From the host's view to the device, where they are apart. */
static mural_status put(mu_ledger *ledger, void *to, const void *from, size_t bytes, mural_error *err)
{
	return ledger->shared ? MURAL_OK : ledger->device.table->copy(ledger->device.queue, to, from, bytes, err);
}

static mural_status get(mu_ledger *ledger, void *to, const void *from, size_t bytes, mural_error *err)
{
	MU_TRY(put(ledger, to, from, bytes, err));
	return ledger->device.table->wait(ledger->device.queue, err);
}

mural_status mu_ledger_write(mu_ledger *ledger, const mu_step_record *record, mural_error *err)
{
	*ledger->seen = *record;
	MU_TRY(put(ledger, ledger->record, ledger->seen, sizeof *ledger->seen, err));
	return ledger->device.table->wait(ledger->device.queue, err);
}

mural_status mu_ledger_start(mu_ledger *ledger, const mu_carried *carried, mural_error *err)
{
	const mu_step_record first = {.carried = *carried};
	ledger->rates_until = 0;
	return mu_ledger_write(ledger, &first, err);
}

mural_status mu_ledger_refill(mu_ledger *ledger, const mural_schedule_config *schedule,
                              const mural_optimizer_config *optimizer, mural_error *err)
{
	const uint64_t applied = (uint64_t)ledger->seen->carried.applied;
	if (ledger->rates_until > applied + MU_LEDGER_RATES / 2)
		return MURAL_OK;
	for (uint64_t n = applied + 1; n <= applied + MU_LEDGER_RATES; n++) {
		const mu_schedule_point at = mu_schedule_at(schedule, optimizer, n);
		ledger->next_rates[(n - 1) % MU_LEDGER_RATES] = (mu_rate){at.lr, at.beta1, at.beta2};
	}
	ledger->rates_until = applied + MU_LEDGER_RATES;
	return put(ledger, ledger->rates, ledger->next_rates, MU_LEDGER_RATES * sizeof(mu_rate), err);
}

mural_status mu_ledger_clear(mu_ledger *ledger, mural_error *err)
{
	const size_t bytes = offsetof(mu_step_record, carried); /* sums and squares come first */
	return ledger->device.table->zero(ledger->device.queue, ledger->record, bytes, err);
}

/* One rank's sums are those of all: only what the host knows has to be said, and only if it is so. */
static mural_status mark_alone(mu_ledger *ledger, bool failed, bool stop_asked, mural_error *err)
{
	static const double one = 1;
	const mu_device *device = &ledger->device;
	mu_step_sums *sums = &ledger->record->sums;
	if (stop_asked)
		MU_TRY(device->table->copy(device->queue, &sums->stop_asked, &one, sizeof one, err));
	return failed ? device->table->copy(device->queue, &sums->failed, &one, sizeof one, err) : MURAL_OK;
}

mural_status mu_ledger_sum(mu_ledger *ledger, mu_comm *comm, mural_status status, bool stop_asked, mural_error *err)
{
	mu_step_sums *sums = &ledger->seen->sums;
	if (comm->table->facts(comm)->size == 1)
		return mark_alone(ledger, status != MURAL_OK, stop_asked, err);
	if (status == MURAL_OK)
		status = get(ledger, sums, &ledger->record->sums, sizeof *sums, err);
	if (status != MURAL_OK)
		*sums = (mu_step_sums){.failed = 1};
	sums->stop_asked = stop_asked;
	MU_TRY(mu_comm_all_reduce(comm, sums, MU_STEP_SUMS, MU_F64, MU_SUM, err));
	return put(ledger, &ledger->record->sums, sums, sizeof *sums, err);
}

mural_status mu_ledger_read(mu_ledger *ledger, mural_error *err)
{
	return get(ledger, ledger->seen, ledger->record, sizeof *ledger->seen, err);
}
