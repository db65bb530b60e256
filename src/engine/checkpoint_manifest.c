/* manifest.json: pretty JSON whose last member is the checksum of all bytes before it. So the manifest is checked before a byte
 * of it is believed:
 *
 *     {                                     <- the body begins
 *       "format": "mural-checkpoint",
 *       ...
 *       ],                                  <- and ends before this comma
 *       "xxh64": "0123456789abcdef"
 *     }
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/files.h"
#include "base/hjson.h"
#include "base/json.h"
#include "engine/checkpoint.h"

#define FORMAT "mural-checkpoint"
#define VERSION 3
#define VERSION_WHOLE 2 /* checksums of whole files, under another name */
#define SUM "xxh64_of_pieces"
#define SUM_WHOLE "xxh64"
#define TAIL ",\n  \"xxh64\": \"%016" PRIx64 "\"\n}\n"
#define TAIL_BYTES 34
#define CLOSING "\n}\n" /* of a pretty object; the tail takes its place */
#define LARGEST ((size_t)64 << 20) /* bytes: far above any number of shards */

static void path_in(char path[MU_CHECKPOINT_FILE], const char *folder, const char *name)
{
	snprintf(path, MU_CHECKPOINT_FILE, "%s/%s", folder, name);
}

static void describe(mu_json *json, const mu_manifest_file *file)
{
	char sum[17];
	snprintf(sum, sizeof sum, "%016" PRIx64, file->checksum);
	mu_json_object_begin(json, NULL);
	mu_json_string(json, "name", file->name);
	mu_json_unsigned(json, "bytes", file->bytes);
	mu_json_string(json, SUM, sum);
	mu_json_object_end(json);
}

const char *mu_metric_text(mural_metric metric)
{
	static const char *const texts[] = {[MURAL_METRIC_TOP1] = "top1", [MURAL_METRIC_LOSS] = "loss"};
	return (size_t)metric < sizeof texts / sizeof *texts ? texts[metric] : NULL;
}

static void write_note(mu_json *json, const mu_manifest_note *note)
{
	mu_json_object_begin(json, "validation");
	mu_json_unsigned(json, "best_step", note->best);
	mu_json_string(json, "metric", mu_metric_text(note->metric));
	mu_json_unsigned(json, "step", note->here.step);
	if (note->here.step) {
		mu_json_number(json, "loss", note->here.loss);
		mu_json_number(json, "top1", note->here.top1);
		mu_json_number(json, "top5", note->here.top5);
	}
	mu_json_object_end(json);
}

static void write_body(FILE *out, const mu_manifest *manifest)
{
	mu_json json;
	mu_json_init(&json, out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	mu_json_string(&json, "format", FORMAT);
	mu_json_unsigned(&json, "version", VERSION);
	mu_json_unsigned(&json, "step", manifest->step);
	mu_json_unsigned(&json, "piece_bytes", manifest->piece);
	write_note(&json, &manifest->note);
	mu_json_array_begin(&json, "files");
	for (size_t i = 0; i < manifest->n_files; i++)
		describe(&json, &manifest->files[i]);
	mu_json_array_end(&json);
	mu_json_object_end(&json);
}

mural_status mu_manifest_write(const mu_manifest *manifest, const char *folder, mural_error *err)
{
	char path[MU_CHECKPOINT_FILE], *text = NULL;
	size_t bytes = 0;
	path_in(path, folder, MU_CHECKPOINT_MANIFEST);
	FILE *memory = open_memstream(&text, &bytes);
	if (!memory)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory for the manifest");
	mural_status status = MURAL_OK;
	write_body(memory, manifest);
	if (fclose(memory) != 0)
		status = mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory for the manifest");
	mu_file file = {0};
	if (status == MURAL_OK)
		status = mu_file_begin(&file, path, err);
	if (status == MURAL_OK) {
		size_t body = bytes - strlen(CLOSING);
		fwrite(text, 1, body, file.out);
		fprintf(file.out, TAIL, mu_checksum_of(text, body));
		status = mu_file_commit(&file, err);
	}
	free(text);
	return status;
}

static mural_status check_own_sum(const char *path, const char *text, size_t bytes, mural_error *err)
{
	char tail[TAIL_BYTES + 1];
	if (bytes > TAIL_BYTES) {
		snprintf(tail, sizeof tail, TAIL, mu_checksum_of(text, bytes - TAIL_BYTES));
		if (memcmp(text + bytes - TAIL_BYTES, tail, TAIL_BYTES) == 0)
			return MURAL_OK;
	}
	return mu_fail(err, MURAL_DATA, path, "the manifest was cut or changed: its own checksum does not fit");
}

/* A plain name: what a manifest says must not lead out of its folder. */
static bool is_plain_name(const char *name)
{
	return name && *name && *name != '.' && strlen(name) < MU_CHECKPOINT_NAME && !strchr(name, '/');
}

static bool take_file(mu_manifest_file *file, const mu_hjson_value *value, const char *key)
{
	const mu_hjson_value *name = mu_hjson_member(value, "name"), *bytes = mu_hjson_member(value, "bytes"),
	                     *sum = mu_hjson_member(value, key);
	char *end;
	if (!name || !bytes || !sum || !is_plain_name(name->text) || !bytes->number.whole || !sum->text)
		return false;
	snprintf(file->name, sizeof file->name, "%s", name->text);
	file->bytes = bytes->number.magnitude;
	file->checksum = strtoull(sum->text, &end, 16);
	return strlen(sum->text) == 16 && *end == '\0';
}

static double number_of(const mu_hjson_value *object, const char *key)
{
	const mu_hjson_value *value = mu_hjson_member(object, key);
	return value && value->kind == MU_HJSON_NUMBER ? value->number.value : NAN;
}

static bool take_note(mu_manifest_note *note, const mu_hjson_value *object)
{
	const mu_hjson_value *best = mu_hjson_member(object, "best_step"), *step = mu_hjson_member(object, "step"),
	                     *metric = mu_hjson_member(object, "metric");
	mural_metric m = 0;
	if (!best || !best->number.whole || !step || !step->number.whole || !metric || !metric->text)
		return false;
	while (mu_metric_text(m) && strcmp(mu_metric_text(m), metric->text) != 0)
		m++;
	*note = (mu_manifest_note){
	        .metric = m,
	        .best = best->number.magnitude,
	        .here = {step->number.magnitude, number_of(object, "loss"), number_of(object, "top1"),
	                 number_of(object, "top5")},
	};
	return mu_metric_text(m) != NULL;
}

/* How the files are summed up; false for a version that is not known. */
static bool take_piece(mu_manifest *manifest, const mu_hjson_value *version, const mu_hjson_value *piece)
{
	if (!version->number.whole || version->number.magnitude == VERSION_WHOLE)
		return version->number.whole;
	manifest->piece = piece && piece->number.whole ? piece->number.magnitude : 0;
	return version->number.magnitude == VERSION && manifest->piece > 0;
}

static bool take_tree(mu_manifest *manifest, const mu_hjson_value *root)
{
	const mu_hjson_value *format = mu_hjson_member(root, "format"), *version = mu_hjson_member(root, "version"),
	                     *step = mu_hjson_member(root, "step"), *files = mu_hjson_member(root, "files");
	if (!format || !format->text || strcmp(format->text, FORMAT) != 0 || !version || !step || !step->number.whole ||
	    !files || files->kind != MU_HJSON_ARRAY ||
	    !take_piece(manifest, version, mu_hjson_member(root, "piece_bytes")))
		return false;
	manifest->step = step->number.magnitude;
	if (!take_note(&manifest->note, mu_hjson_member(root, "validation")))
		return false;
	manifest->files = calloc(files->count + 1, sizeof *manifest->files);
	for (const mu_hjson_value *file = files->first; file && manifest->files; file = file->next)
		if (!take_file(&manifest->files[manifest->n_files++], file, manifest->piece ? SUM : SUM_WHOLE))
			return false;
	return manifest->files != NULL;
}

static mural_status parse(mu_manifest *manifest, const char *path, const char *text, size_t bytes, mural_error *err)
{
	mu_hjson *tree;
	const mu_hjson_source source = {.name = path, .text = text, .bytes = bytes, .strict = true, .kind = MURAL_DATA};
	MU_TRY(mu_hjson_read(&tree, &source, err));
	bool taken = take_tree(manifest, mu_hjson_root(tree));
	mu_hjson_free(tree);
	if (taken)
		return MURAL_OK;
	return mu_fail(err, MURAL_DATA, path,
	               "no manifest that this version of Mural can read (" FORMAT ", version %d or %d)", VERSION_WHOLE,
	               VERSION);
}

mural_status mu_manifest_read(mu_manifest *manifest, const char *folder, mural_error *err)
{
	char path[MU_CHECKPOINT_FILE], *text;
	size_t bytes;
	*manifest = (mu_manifest){0};
	path_in(path, folder, MU_CHECKPOINT_MANIFEST);
	MU_TRY(mu_file_read(path, "checkpoint's manifest", LARGEST, MURAL_DATA, &text, &bytes, err));
	mural_status status = check_own_sum(path, text, bytes, err);
	if (status == MURAL_OK)
		status = parse(manifest, path, text, bytes, err);
	free(text);
	return status;
}

static mural_status verify_file(const mu_manifest_file *file, uint64_t piece, const char *folder, mural_error *err)
{
	char path[MU_CHECKPOINT_FILE];
	uint64_t bytes, value;
	path_in(path, folder, file->name);
	MU_TRY(mu_checksum_file(path, piece, &bytes, &value, err));
	if (bytes != file->bytes)
		return mu_fail(err, MURAL_DATA, path, "the file has %llu bytes, and the manifest says %llu",
		               (unsigned long long)bytes, (unsigned long long)file->bytes);
	if (value != file->checksum)
		return mu_fail(err, MURAL_DATA, path,
		               "the file was changed: its checksum is %016" PRIx64
		               ", and the manifest says %016" PRIx64,
		               value, file->checksum);
	return MURAL_OK;
}

mural_status mu_manifest_verify(const mu_manifest *manifest, const char *folder, mural_error *err)
{
	for (size_t i = 0; i < manifest->n_files; i++)
		MU_TRY(verify_file(&manifest->files[i], manifest->piece, folder, err));
	return MURAL_OK;
}

void mu_manifest_release(mu_manifest *manifest)
{
	if (!manifest)
		return;
	free(manifest->files);
	*manifest = (mu_manifest){0};
}
