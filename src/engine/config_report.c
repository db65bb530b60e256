/* What the configuration says about itself: failures with places, warnings, origins. SPDX-License-Identifier: MIT */
#include "engine/config_build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mu_config_warn(mu_config_build *b, const char *code, const mu_hjson_value *node, size_t in_force,
                    const char *format, ...)
{
	mu_config_note *notes = realloc(b->notes, (b->n_notes + 1) * sizeof *notes);
	if (!notes) {
		b->no_memory = true;
		return;
	}
	b->notes = notes;
	mu_config_note *note = &notes[b->n_notes++];
	*note = (mu_config_note){.code = code, .node = node, .in_force = in_force};
	va_list args;
	va_start(args, format);
	vsnprintf(note->text, sizeof note->text, format, args);
	va_end(args);
}

static mural_status fail_at(mu_config_build *b, const char *where, const char *key, const char *format, va_list args)
{
	char text[900];
	vsnprintf(text, sizeof text, format, args);
	return mu_fail(b->err, MURAL_USAGE, where, "%s%s%s", key, *key ? ": " : "", text);
}

mural_status mu_config_fail(mu_config_build *b, const mu_hjson_value *node, const char *format, ...)
{
	char where[MU_HJSON_WHERE], path[MU_HJSON_PATH];
	mu_hjson_where(b->tree, node, where);
	mu_hjson_path(node, path);
	va_list args;
	va_start(args, format);
	mural_status status = fail_at(b, where, path, format, args);
	va_end(args);
	return status;
}

mural_status mu_config_fail_row(mu_config_build *b, size_t row, const char *format, ...)
{
	char where[MU_HJSON_WHERE];
	const mu_config_given *given = &b->given[row];
	const mu_hjson_value *node = given->option ? NULL : given->node ? given->node : given->automatic;
	if (given->option)
		snprintf(where, sizeof where, "argument %.*s", mu_config_option_bytes(given->option), given->option);
	else if (node)
		mu_hjson_where(b->tree, node, where);
	else
		snprintf(where, sizeof where, "%.480s", b->file ? b->file : "command line");
	va_list args;
	va_start(args, format);
	mural_status status = fail_at(b, where, mu_config_rows[row].key, format, args);
	va_end(args);
	return status;
}

const char *mu_config_origin_text(const mu_config_build *b, size_t row, char text[MU_HJSON_WHERE])
{
	const mu_config_given *given = &b->given[row];
	char where[MU_HJSON_WHERE] = "";
	if (given->automatic)
		mu_hjson_where(b->tree, given->automatic, where);
	switch (given->from) {
	case MU_FROM_FILE: return mu_hjson_where(b->tree, given->node, text);
	case MU_FROM_ARGUMENT:
		snprintf(text, MU_HJSON_WHERE, "argument %.*s", mu_config_option_bytes(given->option), given->option);
		break;
	case MU_FROM_PRESET: snprintf(text, MU_HJSON_WHERE, "preset %s", b->values.model); break;
	case MU_FROM_DERIVED:
	case MU_FROM_DEFAULT:
		snprintf(text, MU_HJSON_WHERE, "%s%s%.600s",
		         given->from == MU_FROM_DERIVED ? given->derived : "default",
		         *where ? ", for \"auto\" at " : "", where);
		break;
	}
	return text;
}

/* The node's place in the file; what has none comes last. */
static const char *place_of(const mu_config_note *note)
{
	return note->node ? note->node->key_raw ? note->node->key_raw : note->node->raw : NULL;
}

static int by_place(const void *a, const void *b)
{
	const char *x = place_of(a), *y = place_of(b);
	if (!x || !y)
		return (x == NULL) - (y == NULL);
	return (x > y) - (x < y);
}

/* "W-UNKNOWN: run.json:3:3: key: text, value in force 60". */
static char *note_text(const mu_config_build *b, const mu_config_note *note)
{
	char *text = NULL, where[MU_HJSON_WHERE] = "";
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	if (note->node)
		mu_hjson_where(b->tree, note->node, where);
	fprintf(out, "%s: %s%s%s", note->code, where, *where ? ": " : "", note->text);
	if (note->in_force != MU_CONFIG_NO_ROW && mu_config_stored(note->in_force)) {
		bool question = note->text[strlen(note->text) - 1] == '?';
		fprintf(out, "%s %s in force: ", question ? "" : ";", mu_config_rows[note->in_force].key);
		mu_config_write_value(out, &b->values, note->in_force);
		if (b->given[note->in_force].from == MU_FROM_DEFAULT)
			fprintf(out, " (default)");
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static char *value_text(const mu_config_build *b, size_t row)
{
	const mu_config_given *given = &b->given[row];
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	if (mu_config_rows[row].type == MU_CONFIG_BOOL)
		fputs(given->file.item[0].boolean ? "true" : "false", out);
	else
		mu_config_write_node(out, given->node);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* Rows that only the report remembers: given in the file, and without a field. */
static bool only_in_report(const mu_config_build *b, size_t row)
{
	return b->given[row].node && !mu_config_stored(row) && mu_config_rows[row].type != MU_CONFIG_BLOCK;
}

static mural_status fill_report(mural_config_report *report, mu_config_build *b)
{
	char text[MU_HJSON_WHERE];
	for (size_t i = 0; i < mu_config_row_count; i++) {
		report->origin[i] = strdup(mu_config_origin_text(b, i, text));
		if (only_in_report(b, i))
			report->value[i] = value_text(b, i);
		if (!report->origin[i] || (only_in_report(b, i) && !report->value[i]))
			return MURAL_OUT_OF_MEMORY;
		report->refused[i] = mu_config_rows[i].support == MU_CONFIG_CHANGES && mu_config_differs(b, i);
	}
	if (b->n_notes)
		qsort(b->notes, b->n_notes, sizeof *b->notes, by_place);
	report->warnings = calloc(b->n_notes + 1, sizeof *report->warnings);
	if (!report->warnings)
		return MURAL_OUT_OF_MEMORY;
	while (report->n_warnings < b->n_notes) {
		char *warning = note_text(b, &b->notes[report->n_warnings]);
		if (!warning)
			return MURAL_OUT_OF_MEMORY;
		report->warnings[report->n_warnings++] = warning;
	}
	return b->no_memory ? MURAL_OUT_OF_MEMORY : MURAL_OK;
}

/* Strict: the first warning fails, all are told. */
static mural_status fail_on_warnings(const mu_config_build *b, const mural_config_report *report)
{
	if (!b->values.config.run.strict || report->n_warnings == 0)
		return MURAL_OK;
	mural_status status =
	        mu_fail(b->err, MURAL_USAGE, b->file, "%zu warning%s, which strict configuration makes errors: %s",
	                report->n_warnings, report->n_warnings == 1 ? "" : "s", report->warnings[0]);
	for (size_t i = 1; i < report->n_warnings; i++)
		mu_context(b->err, "%s", report->warnings[i]);
	return status;
}

mural_status mu_config_make_report(mural_config_report **report, mu_config_build *b)
{
	mural_config_report *made = calloc(1, sizeof *made);
	mural_status status = made ? fill_report(made, b) : MURAL_OUT_OF_MEMORY;
	if (status != MURAL_OK)
		mu_fail(b->err, status, b->file, "no memory for the configuration");
	else
		status = fail_on_warnings(b, made);
	if (status == MURAL_OK && report)
		*report = made;
	else
		mural_config_report_free(made);
	return status;
}

void mural_config_report_free(mural_config_report *report)
{
	if (!report)
		return;
	for (size_t i = 0; i < mu_config_row_count; i++) {
		free(report->origin[i]);
		free(report->value[i]);
	}
	for (size_t i = 0; i < report->n_warnings; i++)
		free(report->warnings[i]);
	free(report->warnings);
	free(report);
}

size_t mural_config_warnings(const mural_config_report *report)
{
	return report ? report->n_warnings : 0;
}

const char *mural_config_warning(const mural_config_report *report, size_t i)
{
	return report && i < report->n_warnings ? report->warnings[i] : NULL;
}

const char *mural_config_origin(const mural_config_report *report, const char *key)
{
	size_t row = mu_config_find(key);
	return report && row != MU_CONFIG_NO_ROW ? report->origin[row] : NULL;
}
