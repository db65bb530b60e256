/* --show-config: the configuration as HJSON with the origin of every value behind it. Made from the table, so it is
 * complete, and read back by the same table. SPDX-License-Identifier: MIT */
#include "engine/config_build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/number.h"

/* A string with JSON's escapes. */
static void write_text(FILE *out, const char *text)
{
	mu_json json;
	mu_json_init(&json, out, MU_JSON_COMPACT);
	mu_json_string(&json, NULL, text);
}

void mu_config_write_node(FILE *out, const mu_hjson_value *node)
{
	static const char brackets[][2] = {{'[', ']'}, {'{', '}'}};
	if (node->kind == MU_HJSON_STRING) {
		write_text(out, node->text);
		return;
	}
	if (node->kind != MU_HJSON_ARRAY && node->kind != MU_HJSON_OBJECT) {
		fprintf(out, "%.*s", (int)node->raw_bytes, node->raw);
		return;
	}
	const char *pair = brackets[node->kind == MU_HJSON_OBJECT];
	fputc(pair[0], out);
	for (const mu_hjson_value *v = node->first; v; v = v->next) {
		if (v != node->first)
			fputs(", ", out);
		if (v->key) {
			write_text(out, v->key);
			fputs(": ", out);
		}
		mu_config_write_node(out, v);
	}
	fputc(pair[1], out);
}

static uint64_t get_integer(const void *at, size_t size)
{
	uint64_t value;
	uint32_t four;
	bool one;
	if (size == sizeof value) {
		memcpy(&value, at, size);
		return value;
	}
	if (size == sizeof four) {
		memcpy(&four, at, size);
		return four;
	}
	memcpy(&one, at, sizeof one);
	return one;
}

static void write_choice(FILE *out, const char *choices, uint64_t index)
{
	while (index-- > 0)
		choices += strcspn(choices, "|") + 1;
	fprintf(out, "\"%.*s\"", (int)strcspn(choices, "|"), choices);
}

/* Numbers of a list, as [a, b]; `n` of them. */
static void write_list(FILE *out, const mu_config_row *row, const void *at, size_t n)
{
	char text[MU_NUMBER_SIZE];
	fputc('[', out);
	for (size_t i = 0; i < n; i++) {
		if (i)
			fputs(", ", out);
		if (row->type == MU_CONFIG_SIDES)
			fprintf(out, "%zu", ((const size_t *)at)[i]);
		else
			fputs(mu_number_text(row->type == MU_CONFIG_FLOATS ? (double)((const float *)at)[i]
			                                                   : ((const double *)at)[i],
			                     text),
			      out);
	}
	fputc(']', out);
}

/* The words of a set, as ["a", "b"]. */
static void write_set(FILE *out, const char *words, uint64_t bits)
{
	const char *comma = "";
	fputc('[', out);
	for (; bits; bits >>= 1) {
		size_t bytes = strcspn(words, "|");
		if (bits & 1) {
			fprintf(out, "%s\"%.*s\"", comma, (int)bytes, words);
			comma = ", ";
		}
		words += bytes + (words[bytes] == '|');
	}
	fputc(']', out);
}

void mu_config_write_value(FILE *out, const mu_config_values *values, size_t index)
{
	const mu_config_row *row = &mu_config_rows[index];
	const void *at = (const char *)values + row->offset;
	char text[MU_NUMBER_SIZE];
	switch (row->type) {
	case MU_CONFIG_BOOL: fputs(get_integer(at, sizeof(bool)) ? "true" : "false", out); break;
	case MU_CONFIG_WHOLE: fprintf(out, "%" PRIu64, get_integer(at, row->size)); break;
	case MU_CONFIG_REAL: fputs(mu_number_text(*(const double *)at, text), out); break;
	case MU_CONFIG_TEXT: write_text(out, at); break;
	case MU_CONFIG_SHARES: mu_config_shares_write(out, at); break;
	case MU_CONFIG_CHOICE: write_choice(out, row->range, get_integer(at, row->size)); break;
	case MU_CONFIG_FLOATS: write_list(out, row, at, values->config.model.channels); break;
	case MU_CONFIG_REALS:
	case MU_CONFIG_SIDES: write_list(out, row, at, 2); break;
	case MU_CONFIG_SET: write_set(out, row->range, get_integer(at, row->size)); break;
	case MU_CONFIG_BLOCK:
	case MU_CONFIG_ANY: break;
	}
}

/* The fields of mu_config_values that mural_config does not have, from those it has. */
mu_config_values mu_config_values_of(const mural_config *config)
{
	mu_config_values v = {.config = *config};
	v.fp16 = config->engine.precision == MURAL_FP16;
	v.bf16 = config->engine.precision == MURAL_BF16;
	v.adam_w_mode = config->optimizer.kind != MURAL_OPTIMIZER_ADAM;
	v.param_type = MURAL_TYPE_MODEL;
	v.muon_lr = config->optimizer.lr;
	snprintf(v.model, sizeof v.model, "%s", config->model.preset);
	if (config->schedule.kind >= MURAL_SCHEDULE_WARMUP)
		v.scheduler = (int)config->schedule.kind - (int)MURAL_SCHEDULE_WARMUP;
	else
		v.own_schedule = (int)config->schedule.kind;
	for (size_t i = 0; i < mu_config_optimizer_count; i++)
		if (!strcasecmp(mu_config_optimizers[i].name, config->optimizer.name))
			snprintf(v.optimizer_type, sizeof v.optimizer_type, "%s", mu_config_optimizers[i].name);
	return v;
}

typedef struct printer {
	FILE *out;
	size_t open[8]; /* rows of the blocks open now */
	size_t depth;
	const mu_config_values *values;
	const mural_config_report *report;
	unsigned optimizer;
} printer;

static void indent(const printer *p)
{
	for (size_t i = 0; i <= p->depth; i++)
		fputs("  ", p->out);
}

/* Closes and opens blocks until `block` is the innermost open one. */
static void enter(printer *p, size_t block)
{
	size_t chain[8], n = 0;
	for (size_t i = block; i != MU_CONFIG_NO_ROW && n < 8; i = mu_config_block_of(i))
		chain[n++] = i;
	size_t common = 0;
	while (common < n && common < p->depth && p->open[common] == chain[n - 1 - common])
		common++;
	while (p->depth > common) {
		p->depth--;
		indent(p);
		fputs("},\n", p->out);
	}
	while (p->depth < n) {
		size_t row = chain[n - 1 - p->depth];
		indent(p);
		fprintf(p->out, "\"%s\": {\n", mu_config_name(row));
		p->open[p->depth++] = row;
	}
}

static bool is_key(size_t row, const char *key)
{
	return !strcmp(mu_config_rows[row].key, key);
}

static bool shown(const printer *p, size_t row)
{
	const mu_config_row *r = &mu_config_rows[row];
	const mural_config *c = &p->values->config;
	if (r->type == MU_CONFIG_BLOCK || !mu_config_applies(row, p->optimizer, c->schedule.kind))
		return false;
	if (!mu_config_stored(row))
		return p->report && p->report->value[row];
	if (r->type == MU_CONFIG_FLOATS)
		return c->data.normalise_given;
	return !is_key(row, "scheduler.params.total_num_steps") || c->schedule.total_steps > 0;
}

static void print_row(printer *p, size_t row)
{
	enter(p, mu_config_block_of(row));
	indent(p);
	fprintf(p->out, "\"%s\": ", mu_config_name(row));
	if (mu_config_stored(row))
		mu_config_write_value(p->out, p->values, row);
	else
		fputs(p->report->value[row], p->out);
	fprintf(p->out, ", # %s\n", p->report ? p->report->origin[row] : "origin not kept");
}

void mural_config_print(const mural_config *config, const mural_config_report *report, FILE *out)
{
	mu_config_values values = mu_config_values_of(config);
	const mu_config_optimizer *optimizer = mu_config_find_optimizer(values.optimizer_type);
	printer p = {.out = out,
	             .values = &values,
	             .report = report,
	             .optimizer = optimizer ? optimizer->bit : MU_OPT_ADAMW};
	size_t total = mu_config_find("scheduler.params.total_num_steps");
	fprintf(out, "# resolved for %d rank%s\n{\n", config->ranks, config->ranks == 1 ? "" : "s");
	for (size_t i = 0; i < mu_config_row_count; i++) {
		if (shown(&p, i)) {
			print_row(&p, i);
		} else if (i == total && mu_config_applies(i, p.optimizer, config->schedule.kind)) {
			enter(&p, mu_config_block_of(i));
			indent(&p);
			fprintf(out, "\"total_num_steps\": \"auto\", # counted from the epochs\n");
		}
	}
	enter(&p, MU_CONFIG_NO_ROW);
	fputs("}\n", out);
}
