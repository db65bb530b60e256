/* How fast a device is with the work at hand: from its measured rates, from its description, or from what is publicly known of it.
 *
 * Rates are for so many ranks on a node. Between two of them every time is interpolated over the logarithm of the number; above
 * the largest, where the ranks divide the node's cores further, times grow in proportion.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "study/forecast_inside.h"

/* A model's rate counts for this model only. */
static bool is_model(const mural_forecast *f, const mural_cluster_rate *rate)
{
	return fabs(rate->flops_per_image / f->flops - 1) < 1e-6 &&
	       fabs(rate->parameters / f->work.parameters - 1) < 1e-6;
}

static mu_speed speed_of_rate(const mural_forecast *f, const mural_cluster_rate *rate)
{
	const mu_work *w = &f->work;
	mu_speed s = {.per_image = rate->seconds_per_image,
	              .per_batch = rate->seconds_per_batch,
	              .per_parameter = rate->update_seconds_per_parameter,
	              .per_update = rate->update_seconds,
	              .wait_share = rate->wait_share,
	              .load = rate->loader_seconds_per_image};
	if (rate->model[0])
		return s;
	s.per_image = f->flops * rate->seconds_per_flop + w->values_per_image * rate->seconds_per_value;
	s.per_batch = (double)w->n_units * rate->seconds_per_unit + w->parameters * rate->seconds_per_parameter;
	return s;
}

static double between(double low, double high, double t)
{
	return low + (high - low) * t;
}

static mu_speed mix(mu_speed low, mu_speed high, double t)
{
	return (mu_speed){.per_image = between(low.per_image, high.per_image, t),
	                  .per_batch = between(low.per_batch, high.per_batch, t),
	                  .per_parameter = between(low.per_parameter, high.per_parameter, t),
	                  .per_update = between(low.per_update, high.per_update, t),
	                  .wait_share = between(low.wait_share, high.wait_share, t),
	                  .load = between(low.load, high.load, t)};
}

static mu_speed times(mu_speed s, double factor)
{
	s.per_image *= factor;
	s.per_batch *= factor;
	s.per_parameter *= factor;
	s.per_update *= factor;
	s.load *= factor;
	return s;
}

/* The nearest rates below and above so many ranks; NULL where there is none. */
static void find_rates(const mural_forecast *f, uint32_t device, uint32_t ranks, bool of_model,
                       const mural_cluster_rate **below, const mural_cluster_rate **above)
{
	const mural_cluster *c = f->settings.cluster;
	*below = *above = NULL;
	for (uint32_t i = 0; i < c->n_rates; i++) {
		const mural_cluster_rate *rate = &c->rates[i];
		if (rate->device != device || rate->precision != f->config.engine.precision ||
		    (rate->model[0] != '\0') != of_model || (of_model && !is_model(f, rate)))
			continue;
		if (rate->ranks <= ranks && (!*below || rate->ranks > (*below)->ranks))
			*below = rate;
		if (rate->ranks >= ranks && (!*above || rate->ranks < (*above)->ranks))
			*above = rate;
	}
}

static bool from_rates(const mural_forecast *f, uint32_t device, uint32_t ranks, bool of_model, mu_speed *speed)
{
	const mural_cluster_rate *below, *above;
	find_rates(f, device, ranks, of_model, &below, &above);
	if (!below && !above)
		return false;
	if (!above)
		*speed = times(speed_of_rate(f, below), (double)ranks / below->ranks);
	else if (!below || below == above)
		*speed = speed_of_rate(f, above);
	else
		*speed = mix(speed_of_rate(f, below), speed_of_rate(f, above),
		             log((double)ranks / below->ranks) / log((double)above->ranks / below->ranks));
	return true;
}

static double peak_of(const mural_device_profile *known, mural_precision precision)
{
	double narrow = precision == MURAL_BF16 ? known->bf16_tflops : precision == MURAL_FP16 ? known->fp16_tflops : 0;
	return 1e12 * (narrow > 0 ? narrow : known->fp32_tflops);
}

/* An update reads and writes all state and weights, and reads the gradients. */
static double update_seconds(const mural_forecast *f, const mural_device_profile *known)
{
	const mu_work *w = &f->work;
	double bytes = 2 * (w->parameter_bytes + w->state_bytes) + w->gradient_bytes;
	return known ? bytes / known->memory_bytes_per_second : 0;
}

mu_speed mu_forecast_speed(const mural_forecast *f, uint32_t device, uint32_t ranks_on_node, mu_speed_source *source)
{
	const mural_cluster_device *d = &f->settings.cluster->devices[device];
	const mural_device_profile *known = f->known[device];
	mu_speed speed = {.per_image = mural_cluster_seconds(d, f->flops),
	                  .per_batch = d->seconds_per_batch,
	                  .per_parameter = update_seconds(f, known)};
	if (d->flops_per_image > 0)
		speed.per_image *= f->flops / d->flops_per_image;
	mu_speed_source from = MU_SPEED_UNKNOWN;
	mu_speed measured;
	if (from_rates(f, device, ranks_on_node, true, &measured))
		from = MU_SPEED_MEASURED_HERE;
	else if (from_rates(f, device, ranks_on_node, false, &measured))
		from = MU_SPEED_MEASURED;
	if (from != MU_SPEED_UNKNOWN) {
		speed = measured;
		if (f->settings.cluster->guessed)
			from = MU_SPEED_GUESSED;
	} else if (speed.per_image > 0) {
		from = MU_SPEED_DESCRIBED;
	} else if (known) {
		from = MU_SPEED_GUESSED;
		speed.per_image = f->flops / (peak_of(known, f->config.engine.precision) * MURAL_DEVICE_REACHED);
	}
	if (source)
		*source = from;
	return speed;
}
