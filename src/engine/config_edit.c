/* A configuration file with some values changed: only their bytes are replaced, what is missing is put in at the beginning of its
 * block, and everything else, comments and order included, stays as its owner wrote it.
 *
 * One change at a time: the text is read, the place of the key found, the text around it joined with the new value, and so on; a
 * configuration is small. What was made is read back and has to be what was asked for.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "engine/config_build.h"

#define FILE_BYTES ((size_t)16 << 20)

/* The text under change. */
typedef struct draft {
	const char *name;
	char *text;
	size_t bytes;
	mural_error *err;
} draft;

static mural_status no_memory(const draft *d)
{
	return mu_fail(d->err, MURAL_OUT_OF_MEMORY, d->name, "no memory for the configuration");
}

/* Replaces `length` bytes at `at` by `with`. */
static mural_status splice(draft *d, size_t at, size_t length, const char *with)
{
	size_t more = strlen(with), bytes = d->bytes - length + more;
	char *text = malloc(bytes + 1);
	if (!text)
		return no_memory(d);
	memcpy(text, d->text, at);
	memcpy(text + at, with, more);
	memcpy(text + at + more, d->text + at + length, d->bytes - at - length);
	text[bytes] = '\0';
	free(d->text);
	d->text = text;
	d->bytes = bytes;
	return MURAL_OK;
}

/* The member that the first part of *key, or its other name in the last part, names; *key then points behind that part. */
static const mu_hjson_value *step_into(const mu_hjson_value *object, size_t row, const char **key)
{
	char part[128];
	size_t length = strcspn(*key, ".");
	snprintf(part, sizeof part, "%.*s", (int)length, *key);
	const mu_hjson_value *found = mu_hjson_member(object, part);
	bool last = (*key)[length] == '\0';
	if (!found && last && mu_config_rows[row].alias)
		found = mu_hjson_member(object, mu_config_rows[row].alias);
	if (found)
		*key += length + !last;
	return found;
}

/* "a": { "b": VALUE } of the key "a.b"; the caller frees it. */
static char *item_text(const char *key, const char *value)
{
	char *text = NULL;
	size_t bytes, depth = 0;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	for (const char *dot; (dot = strchr(key, '.')); key = dot + 1, depth++)
		fprintf(out, "\"%.*s\": { ", (int)(dot - key), key);
	fprintf(out, "\"%s\": %s", key, value);
	while (depth-- > 0)
		fputs(" }", out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* A member more at the beginning of an object, indented as the one that was the first; in a root without braces at the end. */
static mural_status insert(draft *d, const mu_hjson *tree, const mu_hjson_value *object, const char *item)
{
	char *text = NULL;
	size_t length, at = d->bytes;
	const mu_hjson_value *first = object->first;
	bool bare = object->raw_bytes == 0 || *object->raw != '{';
	FILE *out = open_memstream(&text, &length);
	if (!out)
		return no_memory(d);
	if (bare) {
		fprintf(out, "%s%s\n", d->bytes > 0 && d->text[d->bytes - 1] != '\n' ? "\n" : "", item);
	} else {
		size_t key = first ? mu_hjson_offset(tree, first->key_raw) : 0, line = key;
		at = mu_hjson_offset(tree, object->raw) + 1;
		while (line > at && (d->text[line - 1] == ' ' || d->text[line - 1] == '\t'))
			line--;
		if (first && line > at && d->text[line - 1] == '\n')
			fprintf(out, "\n%.*s%s,", (int)(key - line), d->text + line, item);
		else
			fprintf(out, " %s%s", item, first ? "," : " ");
	}
	mural_status status = fclose(out) == 0 ? splice(d, at, 0, text) : no_memory(d);
	free(text);
	return status;
}

static mural_status change(draft *d, size_t row, const char *value)
{
	const mu_hjson_source source = {.name = d->name, .text = d->text, .bytes = d->bytes, .kind = MURAL_USAGE};
	const char *left = mu_config_rows[row].key;
	mu_hjson *tree;
	MU_TRY(mu_hjson_read(&tree, &source, d->err));
	const mu_hjson_value *at = mu_hjson_root(tree), *next;
	while (*left && (next = step_into(at, row, &left)))
		at = next;
	mural_status status = MURAL_OK;
	if (*left == '\0') {
		status = splice(d, mu_hjson_offset(tree, at->raw), at->raw_bytes, value);
	} else {
		char *item = item_text(left, value);
		status = item ? insert(d, tree, at, item) : no_memory(d);
		free(item);
	}
	mu_hjson_free(tree);
	return status;
}

static bool from_argument(const mural_config_report *report, size_t row)
{
	return report && mu_config_stored(row) && strncmp(report->origin[row], "argument ", 9) == 0;
}

/* A block "optimizer" changes defaults by being there, so one that arguments bring into a file is written as a whole. */
static bool brings_optimizer(const draft *d, const mural_config_report *report)
{
	const mu_hjson_source source = {.name = d->name, .text = d->text, .bytes = d->bytes, .kind = MURAL_USAGE};
	mu_hjson *tree;
	if (mu_hjson_read(&tree, &source, NULL) != MURAL_OK)
		return false; /* the first change tells */
	bool brings = false, there = mu_hjson_member(mu_hjson_root(tree), "optimizer") != NULL;
	mu_hjson_free(tree);
	for (size_t row = 0; !there && row < mu_config_row_count; row++)
		brings |= from_argument(report, row) && strncmp(mu_config_rows[row].key, "optimizer.", 10) == 0;
	return brings;
}

static bool is_of_optimizer(size_t row, const mu_config_values *values)
{
	const mu_config_optimizer *optimizer = mu_config_find_optimizer(values->optimizer_type);
	return optimizer && mu_config_stored(row) && strncmp(mu_config_rows[row].key, "optimizer.", 10) == 0 &&
	       mu_config_applies(row, optimizer->bit, values->config.schedule.kind);
}

static bool is_named(size_t row, const char *const *keys)
{
	for (; *keys; keys++)
		if (strcmp(mu_config_rows[row].key, *keys) == 0)
			return true;
	return false;
}

static mural_status change_all(draft *d, const mural_config *config, const mural_config_report *report,
                               const char *const *keys)
{
	const mu_config_values values = mu_config_values_of(config);
	const bool optimizer = brings_optimizer(d, report);
	for (size_t row = 0; row < mu_config_row_count; row++) {
		char *value = NULL;
		size_t bytes;
		if (!from_argument(report, row) && !is_named(row, keys) &&
		    !(optimizer && is_of_optimizer(row, &values)))
			continue;
		FILE *out = open_memstream(&value, &bytes);
		if (!out)
			return no_memory(d);
		mu_config_write_value(out, &values, row);
		mural_status status = fclose(out) == 0 ? change(d, row, value) : no_memory(d);
		free(value);
		if (status != MURAL_OK)
			return status;
	}
	return MURAL_OK;
}

/* Every value in force as text; the caller frees it. */
static char *print(const mural_config *config)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	mural_config_print(config, NULL, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* Read for as many ranks, the file at `path` has to be this configuration. */
static mural_status check(const char *path, const draft *d, const mural_config *config)
{
	mural_config again;
	const mural_config_sources sources = {.file = path, .ranks = config->ranks};
	MU_TRY(mural_config_resolve(&again, NULL, &sources, d->err));
	char *wanted = print(config), *found = print(&again);
	mural_status status = wanted && found ? MURAL_OK : no_memory(d);
	if (status == MURAL_OK && strcmp(wanted, found) != 0) {
		size_t at = 0;
		while (wanted[at] == found[at])
			at++;
		while (at > 0 && wanted[at - 1] != '\n')
			at--;
		status = mu_fail(d->err, MURAL_FAILED, d->name,
		                 "the changed configuration would read otherwise: expected %.*s, found %.*s",
		                 (int)strcspn(wanted + at, "#\n"), wanted + at, (int)strcspn(found + at, "#\n"),
		                 found + at);
	}
	free(wanted);
	free(found);
	return status;
}

static mural_status write_draft(const draft *d, const mural_config *config, const char *path)
{
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, d->err));
	fwrite(d->text, 1, d->bytes, file.out);
	mural_status status = MURAL_OK;
	if (file.beside[0]) { /* else a pipe or a device: what went into it is gone */
		(void)fflush(file.out); /* a failure shows at the commit */
		status = check(file.beside, d, config);
	}
	if (status == MURAL_OK)
		return mu_file_commit(&file, d->err);
	mu_file_abandon(&file);
	return status;
}

mural_status mural_config_save(const char *path, const mural_config_edit *edit, mural_error *err)
{
	draft d = {.name = edit->file ? edit->file : path, .err = err};
	size_t bytes = 0;
	mural_status status = MURAL_OK;
	if (edit->file) {
		status = mu_file_read(edit->file, "configuration file", FILE_BYTES, MURAL_USAGE, &d.text, &bytes, err);
		d.bytes = bytes;
		if (status == MURAL_OK)
			status = change_all(&d, edit->config, edit->report, edit->keys);
	} else {
		FILE *out = open_memstream(&d.text, &d.bytes);
		if (out)
			mural_config_print(edit->config, edit->report, out);
		if (!out || fclose(out) != 0)
			status = no_memory(&d);
	}
	if (status == MURAL_OK)
		status = write_draft(&d, edit->config, path);
	free(d.text);
	return status;
}
