/* state.json: where the run was. One description of the totals' numbers serves writing and reading.
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/hjson.h"
#include "base/json.h"
#include "base/version.h"
#include "engine/checkpoint.h"

#define FORMAT "mural-state"
#define VERSION 2
#define LARGEST ((size_t)256 << 20) /* bytes: a history of a million epochs */

typedef struct real {
	const char *key;
	size_t offset;
} real;

static const real sums_reals[] = {{"loss", offsetof(mu_epoch_sums, loss)},
                                  {"top1", offsetof(mu_epoch_sums, top1)},
                                  {"seconds", offsetof(mu_epoch_sums, seconds)}};
static const real totals_reals[] = {{"seconds", offsetof(mu_run_totals, seconds)},
                                    {"evaluation_seconds", offsetof(mu_run_totals, evaluation_seconds)},
                                    {"train_loss", offsetof(mu_run_totals, train_loss)},
                                    {"train_accuracy", offsetof(mu_run_totals, train_accuracy)},
                                    {"test_loss", offsetof(mu_run_totals, test_loss)},
                                    {"test_accuracy", offsetof(mu_run_totals, test_accuracy)},
                                    {"test_top5", offsetof(mu_run_totals, test_top5)}};
/* Not in the oldest sets: energy is not known then. */
static const real joules_reals[] = {{"processor_joules", offsetof(mu_joules, processor)},
                                    {"gpu_joules", offsetof(mu_joules, gpu)}};
static const real row_reals[] = {{"train_loss", offsetof(mu_epoch_row, train_loss)},
                                 {"train_accuracy", offsetof(mu_epoch_row, train_accuracy)},
                                 {"validation_loss", offsetof(mu_epoch_row, validation_loss)},
                                 {"validation_accuracy", offsetof(mu_epoch_row, validation_accuracy)},
                                 {"test_loss", offsetof(mu_epoch_row, test_loss)},
                                 {"test_accuracy", offsetof(mu_epoch_row, test_accuracy)},
                                 {"seconds", offsetof(mu_epoch_row, seconds)}};
static const real validated_reals[] = {{"loss", offsetof(mu_validated, loss)},
                                       {"top1", offsetof(mu_validated, top1)},
                                       {"top5", offsetof(mu_validated, top5)}};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static void write_reals(mu_json *json, const real *reals, size_t n, const void *from)
{
	for (size_t i = 0; i < n; i++) {
		double value;
		memcpy(&value, (const char *)from + reals[i].offset, sizeof value);
		mu_json_number(json, reals[i].key, value);
	}
}

static void write_validated(mu_json *json, const char *key, const mu_validated *validated)
{
	mu_json_line_begin(json, key);
	mu_json_unsigned(json, "step", validated->step);
	write_reals(json, validated_reals, COUNT(validated_reals), validated);
	mu_json_object_end(json);
}

static void write_validation(mu_json *json, const mu_validation *validation)
{
	mu_json_object_begin(json, "validation");
	write_validated(json, "last", &validation->last);
	write_validated(json, "best", &validation->best);
	write_validated(json, "reference", &validation->reference);
	mu_json_unsigned(json, "waited", validation->waited);
	mu_json_object_end(json);
}

static void write_totals(mu_json *json, const mu_run_totals *totals)
{
	mu_json_object_begin(json, "running_epoch");
	mu_json_unsigned(json, "images", totals->epoch.images);
	write_reals(json, sums_reals, COUNT(sums_reals), &totals->epoch);
	write_reals(json, joules_reals, COUNT(joules_reals), &totals->epoch.joules);
	mu_json_object_end(json);
	mu_json_object_begin(json, "totals");
	mu_json_unsigned(json, "images", totals->images);
	write_reals(json, totals_reals, COUNT(totals_reals), totals);
	write_reals(json, joules_reals, COUNT(joules_reals), &totals->joules);
	mu_json_object_end(json);
	mu_json_object_begin(json, "phase_seconds");
	for (int phase = 0; phase < MU_PHASE_COUNT; phase++)
		mu_json_number(json, mu_phase_text((mu_phase)phase), totals->phase_seconds[phase]);
	mu_json_object_end(json);
	write_validation(json, &totals->validation);
	mu_json_array_begin(json, "epochs");
	for (size_t i = 0; i < totals->n_epochs; i++) {
		mu_json_object_begin(json, NULL);
		mu_json_unsigned(json, "epoch", totals->epochs[i].epoch);
		write_reals(json, row_reals, COUNT(row_reals), &totals->epochs[i]);
		mu_json_object_end(json);
	}
	mu_json_array_end(json);
}

mural_status mu_checkpoint_state_write(const char *path, const mu_checkpoint_state *state, const mu_match *matches,
                                       size_t n_matches, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json json;
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	mu_json_string(&json, "format", FORMAT);
	mu_json_unsigned(&json, "version", VERSION);
	mu_json_string(&json, "mural_version", MU_VERSION);
	mu_json_unsigned(&json, "step", state->step);
	mu_json_unsigned(&json, "updates_applied", (uint64_t)state->carried.applied);
	mu_json_unsigned(&json, "updates_skipped", (uint64_t)state->carried.skipped);
	mu_json_number(&json, "loss_scale", state->carried.loss_scale);
	mu_json_unsigned(&json, "clean_updates", (uint64_t)state->carried.clean);
	mu_json_unsigned(&json, "hysteresis", (uint64_t)state->carried.hysteresis);
	mu_json_unsigned(&json, "epoch", state->epoch);
	mu_json_unsigned(&json, "step_in_epoch", state->step_in_epoch);
	mu_json_integer(&json, "ranks", state->ranks);
	mu_json_object_begin(&json, "must_match");
	for (size_t i = 0; i < n_matches; i++)
		mu_json_string(&json, matches[i].key, matches[i].value);
	mu_json_object_end(&json);
	write_totals(&json, &state->totals);
	mu_json_object_end(&json);
	return mu_file_commit(&file, err);
}

/* Reading: the first thing that is not as expected is kept as the dotted path of what was looked for. */
typedef struct reader {
	const char *missing;
} reader;

static uint64_t read_whole(reader *r, const mu_hjson_value *object, const char *key)
{
	const mu_hjson_value *value = mu_hjson_member(object, key);
	if (value && value->kind == MU_HJSON_NUMBER && value->number.whole && !value->number.negative)
		return value->number.magnitude;
	r->missing = key;
	return 0;
}

static double read_real(reader *r, const mu_hjson_value *object, const char *key)
{
	const mu_hjson_value *value = mu_hjson_member(object, key);
	if (value && value->kind == MU_HJSON_NUMBER)
		return value->number.value;
	if (!value || value->kind != MU_HJSON_NULL)
		r->missing = key;
	return NAN;
}

static void read_reals(reader *r, const mu_hjson_value *object, const real *reals, size_t n, void *to)
{
	for (size_t i = 0; i < n; i++) {
		const double value = read_real(r, object, reals[i].key);
		memcpy((char *)to + reals[i].offset, &value, sizeof value);
	}
}

static void read_validated(reader *r, const mu_hjson_value *object, const char *key, mu_validated *validated)
{
	const mu_hjson_value *from = mu_hjson_member(object, key);
	validated->step = read_whole(r, from, "step");
	read_reals(r, from, validated_reals, COUNT(validated_reals), validated);
}

static void read_validation(reader *r, const mu_hjson_value *object, mu_validation *validation)
{
	read_validated(r, object, "last", &validation->last);
	read_validated(r, object, "best", &validation->best);
	read_validated(r, object, "reference", &validation->reference);
	validation->waited = read_whole(r, object, "waited");
}

static void read_joules(reader *r, const mu_hjson_value *object, mu_joules *joules)
{
	*joules = (mu_joules){NAN, NAN};
	if (mu_hjson_member(object, joules_reals[0].key))
		read_reals(r, object, joules_reals, COUNT(joules_reals), joules);
}

static void read_rows(reader *r, const mu_hjson_value *list, mu_run_totals *totals)
{
	if (!list || list->kind != MU_HJSON_ARRAY) {
		r->missing = "epochs";
		return;
	}
	for (const mu_hjson_value *value = list->first; value; value = value->next) {
		mu_epoch_row *row = &totals->epochs[totals->n_epochs++];
		row->epoch = (uint32_t)read_whole(r, value, "epoch");
		read_reals(r, value, row_reals, COUNT(row_reals), row);
	}
}

static void read_totals(reader *r, const mu_hjson_value *root, mu_run_totals *totals)
{
	const mu_hjson_value *sums = mu_hjson_member(root, "running_epoch"), *all = mu_hjson_member(root, "totals"),
	                     *phases = mu_hjson_member(root, "phase_seconds");
	totals->epoch.images = read_whole(r, sums, "images");
	read_reals(r, sums, sums_reals, COUNT(sums_reals), &totals->epoch);
	read_joules(r, sums, &totals->epoch.joules);
	totals->images = read_whole(r, all, "images");
	read_reals(r, all, totals_reals, COUNT(totals_reals), totals);
	read_joules(r, all, &totals->joules);
	for (int phase = 0; phase < MU_PHASE_COUNT; phase++)
		totals->phase_seconds[phase] = read_real(r, phases, mu_phase_text((mu_phase)phase));
	read_validation(r, mu_hjson_member(root, "validation"), &totals->validation);
	read_rows(r, mu_hjson_member(root, "epochs"), totals);
}

static void read_carried(reader *r, const mu_hjson_value *root, mu_carried *carried)
{
	carried->applied = (double)read_whole(r, root, "updates_applied");
	if (!mu_hjson_member(root, "loss_scale")) /* a state of fp32 from before there was one */
		return;
	carried->skipped = (double)read_whole(r, root, "updates_skipped");
	carried->loss_scale = read_real(r, root, "loss_scale");
	carried->clean = (double)read_whole(r, root, "clean_updates");
	carried->hysteresis = (double)read_whole(r, root, "hysteresis");
	if (!(carried->loss_scale > 0))
		r->missing = "loss_scale";
}

/* All that differs, in one message. */
static mural_status compare(const char *path, const mu_hjson_value *theirs, const mu_match *matches, size_t n,
                            mural_error *err)
{
	char all[800] = "";
	for (size_t i = 0; i < n; i++) {
		const mu_hjson_value *value = mu_hjson_member(theirs, matches[i].key);
		const char *found = value && value->text ? value->text : "unknown";
		size_t used = strlen(all);
		if (strcmp(found, matches[i].value) != 0)
			snprintf(all + used, sizeof all - used, "%s%s is %.80s there and %s here", used ? ", " : "",
			         matches[i].key, found, matches[i].value);
	}
	if (!all[0])
		return MURAL_OK;
	return mu_fail(err, MURAL_USAGE, path, "the checkpoint is of another training: %s", all);
}

static mural_status read_tree(const char *path, const mu_hjson_value *root, mu_checkpoint_state *state,
                              const mu_match *matches, size_t n_matches, mural_error *err)
{
	reader r = {0};
	const mu_hjson_value *format = mu_hjson_member(root, "format"), *rows = mu_hjson_member(root, "epochs");
	if (!format || !format->text || strcmp(format->text, FORMAT) != 0 || read_whole(&r, root, "version") != VERSION)
		return mu_fail(err, MURAL_DATA, path,
		               "no state that this version of Mural can read (" FORMAT ", version %d)", VERSION);
	MU_TRY(compare(path, mu_hjson_member(root, "must_match"), matches, n_matches, err));
	state->totals.epochs = calloc((rows ? rows->count : 0) + 1, sizeof *state->totals.epochs);
	if (!state->totals.epochs)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory for the history of the run");
	state->step = read_whole(&r, root, "step");
	read_carried(&r, root, &state->carried);
	state->epoch = read_whole(&r, root, "epoch");
	state->step_in_epoch = read_whole(&r, root, "step_in_epoch");
	uint64_t ranks = read_whole(&r, root, "ranks");
	if (ranks > INT_MAX)
		r.missing = "ranks";
	state->ranks = (int)ranks;
	read_totals(&r, root, &state->totals);
	if (r.missing)
		return mu_fail(err, MURAL_DATA, path, "the checkpoint's state lacks '%s', or it is of another kind",
		               r.missing);
	return MURAL_OK;
}

mural_status mu_checkpoint_state_read(const char *path, mu_checkpoint_state *state, const mu_match *matches,
                                      size_t n_matches, mural_error *err)
{
	char *text;
	size_t bytes;
	mu_hjson *tree;
	*state = (mu_checkpoint_state){0};
	MU_TRY(mu_file_read(path, "checkpoint's state", LARGEST, MURAL_DATA, &text, &bytes, err));
	const mu_hjson_source source = {.name = path, .text = text, .bytes = bytes, .strict = true, .kind = MURAL_DATA};
	mural_status status = mu_hjson_read(&tree, &source, err);
	if (status == MURAL_OK)
		status = read_tree(path, mu_hjson_root(tree), state, matches, n_matches, err);
	mu_hjson_free(tree);
	free(text);
	return status;
}
