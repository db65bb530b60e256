/* Element types of spans, narrow copies of masters, accumulation in fp32, loss scaling: what precision means to a step.
 *
 *     type of parameters, activations     fp32, bf16 or fp16: the configuration's precision
 *     type of gradients                   the same, or fp32 by data_types.grad_accum_dtype
 *     type of gradients between ranks     the precision, or what communication_data_type says
 *     their size between ranks            each rank's share of the mean, times the ranks / gradient_predivide_factor if that is given
 *     weights that the optimizer changes  fp32: the parameters, or their masters, of which they are rounded copies
 *
 * With fp32 gradients of narrow parameters the optimizer works on masters as if they were the parameters, and the narrow copy
 * is made afterwards.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "engine/engine_internal.h"

mu_dtype mu_engine_type(const mural_config *config)
{
	switch (config->engine.precision) {
	case MURAL_BF16: return MU_BF16;
	case MURAL_FP16: return MU_F16;
	default: return MU_F32;
	}
}

mu_dtype mu_engine_gradient_type(const mural_config *config)
{
	return config->engine.grad_accum_type == MURAL_TYPE_FP32 ? MU_F32 : mu_engine_type(config);
}

mu_dtype mu_engine_wire_type(const mural_config *config)
{
	switch (config->engine.communication_type) {
	case MURAL_TYPE_FP32: return MU_F32;
	case MURAL_TYPE_FP16: return MU_F16;
	case MURAL_TYPE_BF16: return MU_BF16;
	default: return mu_engine_type(config);
	}
}

/* DeepSpeed sums means over each rank's own images, divided by the factor, and divides the sum by the ranks / the factor. With
 * prescale_gradients it sums shares of the mean over all images. Mural does that unless a factor asks for another size: the
 * gradient's sum, and what overflows, then does not depend on how many ranks there are. */
double mu_engine_divisor(const mural_config *config, int ranks)
{
	const mural_engine_config *e = &config->engine;
	return e->prescale_gradients || e->predivide_factor == 1 ? 1 : e->predivide_factor / ranks;
}

mural_status mu_engine_check_types(const mural_engine *engine, mural_error *err)
{
	const mu_dtype type = mu_engine_type(&engine->config);
	const char *key = type == MU_F16 ? "fp16.enabled" : "bf16.enabled";
	const char *where = engine->report && type != MU_F32 ? mural_config_origin(engine->report, key) : NULL;
	if (!engine->ops->supports(engine->context, type))
		return mu_fail(err, MURAL_USAGE, where,
		               "the \"%s\" operations cannot compute in %s on this machine; use another precision, or "
		               "--ops reference, which can and is slow",
		               engine->ops->name, mu_dtype_text(type));
	if (engine->training && mu_engine_gradient_type(&engine->config) != type && !engine->ops->accumulate)
		return mu_fail(
		        err, MURAL_USAGE, where,
		        "the \"%s\" operations cannot add up gradients in fp32 yet; leave data_types.grad_accum_dtype "
		        "out or use other operations",
		        engine->ops->name);
	return MURAL_OK;
}

mu_carried mu_engine_first_carried(const mural_config *config)
{
	const mural_engine_config *e = &config->engine;
	mu_carried carried = {.loss_scale = 1, .hysteresis = e->hysteresis};
	if (e->precision == MURAL_FP16)
		carried.loss_scale = e->loss_scale > 0 ? e->loss_scale : ldexp(1, (int)e->initial_scale_power);
	return carried;
}

mu_loss_scaling mu_engine_loss_scaling(const mural_config *config)
{
	const mural_engine_config *e = &config->engine;
	return (mu_loss_scaling){.dynamic = e->precision == MURAL_FP16 && e->loss_scale == 0,
	                         .consecutive = e->consecutive_hysteresis,
	                         .window = e->loss_scale_window,
	                         .hysteresis = e->hysteresis,
	                         .floor = e->min_loss_scale};
}

mural_status mu_engine_round_masters(mural_engine *engine, mural_error *err)
{
	const mu_store *store = &engine->store;
	const mu_cast call = {.n = store->elements,
	                      .from_type = MU_F32,
	                      .to_type = store->type,
	                      .from = store->master,
	                      .to = store->parameters};
	return store->master ? engine->ops->cast(engine->context, &call, err) : MURAL_OK;
}

mural_status mu_engine_accumulate(mural_engine *engine, size_t unit, mural_error *err)
{
	const mu_store *store = &engine->store;
	if (!store->partial)
		return MURAL_OK;
	const mu_accumulate call = {.type = store->type,
	                            .n = store->offset[unit + 1] - store->offset[unit],
	                            .x = mu_store_gradients(store, unit),
	                            .sum = (float *)store->gradients + store->offset[unit]};
	return engine->ops->accumulate(engine->context, &call, err);
}

mu_update mu_engine_update(const mural_engine *engine)
{
	const mu_store *store = &engine->store;
	const bool on_masters = store->settings.gradient_type != store->type;
	return (mu_update){.type = store->settings.gradient_type,
	                   .parameters = on_masters ? (void *)store->master : store->parameters,
	                   .master = on_masters ? NULL : store->master,
	                   .m = store->m,
	                   .v = store->v,
	                   .gradients = store->gradients,
	                   .work = store->direction,
	                   .scratch = engine->update_scratch,
	                   .decision = &engine->ledger.record->decision};
}
