/* Where numbers stopped being finite: after a step whose loss or gradient is not, everything that the step used is still there
 * to be looked at. In the order of computation: weights, then what each unit's forward left of the last micro-batch, then
 * the summed gradients, from the head down. Ranks have different images, so the earliest place of all ranks counts.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "engine/engine_internal.h"

typedef struct range {
	const void *x;
	size_t elements;
	mu_dtype type;
} range;

/* As many elements at a time as the norm's scratch was planned for. */
static mural_status is_finite(mural_engine *engine, range what, bool *finite, mural_error *err)
{
	mu_ledger *ledger = &engine->ledger;
	const mu_device *device = &engine->device;
	MU_TRY(device->table->zero(device->queue, &ledger->record->squares, sizeof(double), err));
	for (size_t at = 0; at < what.elements; at += engine->store.elements) {
		const size_t rest = what.elements - at;
		const mu_sum_squares call = {.type = what.type,
		                             .n = rest < engine->store.elements ? rest : engine->store.elements,
		                             .x = (const char *)what.x + at * mu_dtype_bytes(what.type),
		                             .sum = &ledger->record->squares,
		                             .scratch = engine->norm_scratch};
		MU_TRY(engine->ops->sum_squares(engine->context, &call, err));
	}
	MU_TRY(mu_ledger_read(ledger, err));
	*finite = isfinite(ledger->seen->squares);
	return MURAL_OK;
}

/* Places are numbered in the order in which they are looked at: three kinds of all units. */
enum { WEIGHTS, OUTPUT, GRADIENT, KINDS };

static range range_of(const mural_engine *engine, const mu_step_state *state, size_t place)
{
	const mu_store *store = &engine->store;
	const size_t n = store->n_units, kind = place / n, unit = kind == GRADIENT ? n - 1 - place % n : place % n;
	range what = {.elements = store->offset[unit + 1] - store->offset[unit], .type = store->type};
	if (kind == WEIGHTS) {
		what.x = mu_store_parameters(store, unit);
	} else if (kind == OUTPUT) {
		what.x = mu_vit_left_by(engine->train_pass, unit, &what.elements);
		what.elements = state->empty ? 0 : what.elements;
	} else {
		what.type = store->settings.gradient_type;
		what.x = (const char *)store->gradients + store->offset[unit] * mu_dtype_bytes(what.type);
	}
	return what;
}

static void tell(const mural_engine *engine, size_t place, char text[MU_FAULT_TEXT])
{
	static const char *const what[KINDS] = {"the weights of", "the output of", "the gradient of"};
	const size_t n = engine->store.n_units, kind = place / n,
	             unit = kind == GRADIENT ? n - 1 - place % n : place % n;
	char name[32] = "the patch embedding";
	if (unit == n - 1)
		snprintf(name, sizeof name, "the head");
	else if (unit > 0)
		snprintf(name, sizeof name, "block %zu", unit - 1);
	snprintf(text, MU_FAULT_TEXT, "; it began in %s %s", what[kind], name);
}

mural_status mu_engine_find_fault(mural_engine *engine, const mu_step_state *state, char text[MU_FAULT_TEXT],
                                  mural_error *err)
{
	const size_t places = KINDS * engine->store.n_units;
	int64_t first = 0;
	bool finite = true;
	mural_status status = MURAL_OK;
	text[0] = '\0';
	while ((size_t)first < places && status == MURAL_OK) {
		status = is_finite(engine, range_of(engine, state, (size_t)first), &finite, err);
		if (!finite)
			break;
		first++;
	}
	MU_TRY(mu_comm_agree(engine->comm, status, err));
	MU_TRY(mu_comm_all_reduce(engine->comm, &first, 1, MU_I64, MU_MIN, err));
	if ((size_t)first < places)
		tell(engine, (size_t)first, text);
	return MURAL_OK;
}
