/* What was measured of a device: "rates" in a cluster file. SPDX-License-Identifier: MIT */
#include <string.h>

#include "engine/cluster_read.h"

#define IN_RATE(field) offsetof(mural_cluster_rate, field)
static const mu_cluster_key keys[] = {
        {"gflop_per_image", true, 1e9, IN_RATE(flops_per_image), false, false},
        {"parameters", true, 1, IN_RATE(parameters), false, false},
        {"seconds_per_image", true, 1, IN_RATE(seconds_per_image), false, false},
        {"seconds_per_batch", false, 1, IN_RATE(seconds_per_batch), false, false},
        {"s_per_tflop", false, 1e-12, IN_RATE(seconds_per_flop), false, false},
        {"ns_per_value", false, 1e-9, IN_RATE(seconds_per_value), false, false},
        {"ns_per_parameter", false, 1e-9, IN_RATE(seconds_per_parameter), false, false},
        {"us_per_unit", false, 1e-6, IN_RATE(seconds_per_unit), false, false},
        {"update_ns_per_parameter", false, 1e-9, IN_RATE(update_seconds_per_parameter), false, false},
        {"update_us", false, 1e-6, IN_RATE(update_seconds), false, false},
        {"wait_share", false, 1, IN_RATE(wait_share), false, false},
        {"loader_us_per_image", false, 1e-6, IN_RATE(loader_seconds_per_image), false, false},
};
#undef IN_RATE
static const char *const others[] = {"model", "precision", "ranks"};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static mural_status read_precision(const mu_cluster_reader *r, const mu_hjson_value *object, mural_precision *precision)
{
	static const char *const words[] = {"fp32", "bf16", "fp16"}; /* in the order of mural_precision */
	const mu_hjson_value *value = mu_hjson_member(object, "precision");
	for (size_t i = 0; value && value->kind == MU_HJSON_STRING && i < COUNT(words); i++)
		if (strcmp(value->text, words[i]) == 0) {
			*precision = (mural_precision)i;
			return MURAL_OK;
		}
	return value ? mu_cluster_bad(r, value, "\"fp32\", \"bf16\" or \"fp16\"") : MURAL_OK;
}

/* One model's, or any model's: not half of each. */
static mural_status check_kind(const mu_cluster_reader *r, const mu_hjson_value *object, const mural_cluster_rate *rate)
{
	bool one = rate->model[0] != '\0';
	bool any = rate->seconds_per_flop > 0 || rate->seconds_per_value > 0 || rate->seconds_per_parameter > 0 ||
	           rate->seconds_per_unit > 0;
	if (one && !(rate->seconds_per_image > 0 && rate->flops_per_image > 0 && rate->parameters > 0))
		return mu_cluster_missing(r, object, "seconds_per_image",
		                          "a model's rate has seconds_per_image, gflop_per_image and parameters");
	if (!one && !any)
		return mu_cluster_missing(
		        r, object, "s_per_tflop",
		        "a rate of any model says how long operations, values, parameters or units take");
	return MURAL_OK;
}

static mural_status read_rate(mu_cluster_reader *r, const mu_hjson_value *object, uint32_t device)
{
	mural_cluster *c = r->cluster;
	if (c->n_rates == MURAL_CLUSTER_RATES)
		return mu_cluster_bad(r, object, "at most 64 rates in all");
	mural_cluster_rate *rate = &c->rates[c->n_rates++];
	MU_TRY(mu_cluster_numbers(r, object, keys, COUNT(keys), others, COUNT(others), rate));
	const mu_hjson_value *ranks = mu_hjson_member(object, "ranks");
	rate->device = device;
	rate->ranks = 1;
	if (ranks)
		MU_TRY(mu_cluster_count(r, ranks, &rate->ranks));
	MU_TRY(mu_cluster_name(r, mu_hjson_member(object, "model"), "a name of 1 to 63 bytes", rate->model,
	                       sizeof rate->model));
	MU_TRY(read_precision(r, object, &rate->precision));
	return check_kind(r, object, rate);
}

mural_status mu_cluster_read_rates(mu_cluster_reader *r, const mu_hjson_value *value, uint32_t device)
{
	if (value && value->kind != MU_HJSON_ARRAY)
		return mu_cluster_bad(r, value, "a list of rates [ { ... } ]");
	for (const mu_hjson_value *v = value ? value->first : NULL; v; v = v->next)
		MU_TRY(read_rate(r, v, device));
	return MURAL_OK;
}
