/* Known to DeepSpeed, not in Mural: what only tunes or logs is a warning, what changes the result is refused before
 * training. A value that is the default asks for nothing. SPDX-License-Identifier: MIT */
#include "engine/config_build.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Something enabled anywhere inside, or, where nothing says so, anything at all. */
static bool any_active(const mu_hjson_value *v, bool *says)
{
	bool on = false;
	if (v->key && !strcmp(v->key, "enabled")) {
		*says = true;
		on = (v->kind == MU_HJSON_BOOL && v->boolean) ||
		     (v->kind == MU_HJSON_STRING && !strcasecmp(v->text, "true"));
	}
	for (const mu_hjson_value *child = v->first; child; child = child->next)
		on |= any_active(child, says);
	return on;
}

bool mu_config_differs(const mu_config_build *b, size_t row)
{
	const mu_config_row *r = &mu_config_rows[row];
	const mu_hjson_value *node = b->given[row].node;
	mu_config_items fallback;
	bool says = false;
	if (!node)
		return false;
	if (r->type == MU_CONFIG_BLOCK)
		return mu_config_active(b, row);
	if (r->type == MU_CONFIG_ANY) {
		if (node->kind == MU_HJSON_OBJECT || node->kind == MU_HJSON_ARRAY)
			return any_active(node, &says) || (!says && node->count > 0);
		const char *text = node->kind == MU_HJSON_STRING ? node->text : node->raw;
		size_t bytes = node->kind == MU_HJSON_STRING ? strlen(text) : node->raw_bytes;
		return !r->fallback || strlen(r->fallback) != bytes || memcmp(text, r->fallback, bytes);
	}
	return !r->fallback || !mu_config_from_text(&fallback, row, r->fallback) ||
	       !mu_config_same(row, &b->given[row].file, &fallback);
}

bool mu_config_active(const mu_config_build *b, size_t block)
{
	size_t enabled = mu_config_find_in(block, "enabled");
	if (enabled != MU_CONFIG_NO_ROW)
		return mu_config_differs(b, enabled);
	for (size_t i = block + 1; i < mu_config_row_count; i++)
		if (mu_config_block_of(i) == block && mu_config_differs(b, i))
			return true;
	return false;
}

/* A block with settings and without the word that switches it on, in the file or as an argument. */
static void warn_not_enabled(mu_config_build *b)
{
	for (size_t i = 0; i < mu_config_row_count; i++) {
		const mu_hjson_value *block = b->given[i].node;
		size_t enabled = mu_config_find_in(i, "enabled");
		if (block && block->count > 0 && enabled != MU_CONFIG_NO_ROW && !b->given[enabled].option &&
		    !mu_hjson_member(block, "enabled"))
			mu_config_warn(b, "W-NOEFFECT", block, MU_CONFIG_NO_ROW,
			               "does nothing without \"enabled\": true%s",
			               i == mu_config_find("comms_logger") ? "" : ", in DeepSpeed either");
	}
}

void mu_config_warn_unsupported(mu_config_build *b)
{
	char found[MU_CONFIG_WORDS];
	warn_not_enabled(b);
	for (size_t i = 0; i < mu_config_row_count; i++)
		if (mu_config_rows[i].support == MU_CONFIG_TUNES && mu_config_differs(b, i))
			mu_config_warn(
			        b, "W-UNSUPPORTED", b->given[i].node, MU_CONFIG_NO_ROW,
			        "known to DeepSpeed, does nothing in Mural, ignored, got %s; the result is the same",
			        mu_config_found(b->given[i].node, found));
}

static mural_status not_supported(const mural_config_report *report, const char *key, const char *value,
                                  const char *instead, mural_error *err)
{
	return mu_fail(err, MURAL_USAGE, report ? mural_config_origin(report, key) : NULL, "%s %s is not supported%s",
	               key, value, instead);
}

/* A block says what it wants by "enabled", or else by its first key that is not the default. */
static size_t telling_row(const mural_config_report *report, size_t row)
{
	if (mu_config_rows[row].type != MU_CONFIG_BLOCK)
		return row;
	size_t enabled = mu_config_find_in(row, "enabled");
	if (enabled != MU_CONFIG_NO_ROW)
		return enabled;
	for (size_t i = row + 1; i < mu_config_row_count; i++)
		if (mu_config_block_of(i) == row && report->value[i])
			return telling_row(report, i);
	return row;
}

/* Rows without a field that change the result. */
static mural_status check_refused(const mural_config_report *report, mural_error *err)
{
	for (size_t i = 0; report && i < mu_config_row_count; i++)
		if (report->refused[i]) {
			char value[64];
			size_t row = telling_row(report, i);
			snprintf(value, sizeof value, "%.60s", report->value[row] ? report->value[row] : "");
			return not_supported(report, mu_config_rows[row].key, value,
			                     ", and it would change the result: remove it", err);
		}
	return MURAL_OK;
}

mural_status mural_config_check_supported(const mural_config *config, const mural_config_report *report,
                                          mural_error *err)
{
	static const char *const devices[] = {"none", "cpu", "nvme"};
	const mural_engine_config *e = &config->engine;
	char value[40];
	if (config->optimizer.kind == MURAL_OPTIMIZER_OTHER) {
		snprintf(value, sizeof value, "\"%s\"", config->optimizer.name);
		return not_supported(report, "optimizer.type", value,
		                     " yet: this build has Adam, AdamW, SGD, Lamb, Lion and Muon", err);
	}
	snprintf(value, sizeof value, "%d", e->zero_stage);
	if (e->zero_stage > 0)
		return not_supported(report, "zero_optimization.stage", value, " yet: this build has stage 0", err);
	if (e->offload_optimizer != MURAL_OFFLOAD_NONE)
		return not_supported(report, "zero_optimization.offload_optimizer.device",
		                     devices[e->offload_optimizer], " yet", err);
	if (e->offload_param != MURAL_OFFLOAD_NONE)
		return not_supported(report, "zero_optimization.offload_param.device", devices[e->offload_param],
		                     " yet", err);
	return check_refused(report, err);
}
