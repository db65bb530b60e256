/* What the runs of a study are and where: what their configuration says, the cluster they emulate, the hosts they run on.
 *
 * The program itself is asked (`mural train --show-config`), so a mistake is told before anything is written, in the words in which
 * a run would tell it. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/hjson.h"
#include "study/study_inside.h"

#define SHOWN_BYTES ((size_t)1 << 20)

/* ---- what the configuration says. ---- */

/* All of a temporary file as text with a NUL behind it; NULL: no memory, or too much. */
static char *text_of(FILE *file, size_t *bytes)
{
	char *text = malloc(SHOWN_BYTES);
	rewind(file);
	*bytes = text ? fread(text, 1, SHOWN_BYTES - 1, file) : 0;
	if (text)
		text[*bytes] = '\0';
	return text;
}

static const char *word_of(const mu_hjson_value *object, const char *key)
{
	const mu_hjson_value *value = mu_hjson_member(object, key);
	return value && value->kind == MU_HJSON_STRING ? value->text : "";
}

static mural_status take_facts(mu_study_where *where, const mu_hjson_value *root, mural_error *err)
{
	const mu_hjson_value *own = mu_hjson_member(root, "mural");
	const char *cluster = word_of(own, "cluster");
	snprintf(where->model, sizeof where->model, "%.63s", word_of(own, "model"));
	snprintf(where->data, sizeof where->data, "%.255s", word_of(mu_hjson_member(own, "data"), "path"));
	where->placement = strcmp(word_of(own, "placement"), "spread") == 0 ? MURAL_PLACE_SPREAD : MURAL_PLACE_PACK;
	return *cluster ? mural_cluster_read(&where->cluster, cluster, err) : MURAL_OK;
}

static mural_status read_shown(mu_study_where *where, FILE *out, mural_error *err)
{
	mu_hjson *tree = NULL;
	size_t bytes;
	char *text = text_of(out, &bytes);
	if (!text)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the runs' configuration");
	const mu_hjson_source source = {.name = "--show-config", .text = text, .bytes = bytes, .kind = MURAL_FAILED};
	mural_status status = mu_hjson_read(&tree, &source, err);
	if (status == MURAL_OK)
		status = take_facts(where, mu_hjson_root(tree), err);
	mu_hjson_free(tree);
	free(text);
	return status;
}

/* The program's own message becomes ours: its first line, and below it where. */
static mural_status pass_on(FILE *errors, int code, mural_error *err)
{
	static const char ours[] = "mural: ";
	size_t bytes;
	char *text = text_of(errors, &bytes);
	const char *message = text ? strstr(text, ours) : NULL;
	while (message && strncmp(message, "mural: warning", 14) == 0)
		message = strstr(message + 1, ours);
	const char *found = message ? message + strlen(ours) : "it ended without a word";
	size_t length = strcspn(found, "\n");
	const char *place = found[length] ? found + length + 1 + strspn(found + length + 1, " ") : "";
	mural_status status = mu_fail(err,
	                              code == 2   ? MURAL_USAGE
	                              : code == 3 ? MURAL_DATA
	                                          : MURAL_FAILED,
	                              NULL, "%.*s", (int)length, found);
	if (err && err->status == status)
		snprintf(err->where, sizeof err->where, "%.*s", (int)strcspn(place, "\n"), place);
	mu_context(err, "in the configuration of the study's runs");
	free(text);
	return status;
}

static mural_status ask(mu_study *study, const mu_command *command, mural_error *err)
{
	FILE *out = tmpfile(), *errors = tmpfile();
	mural_status status =
	        out && errors ? MURAL_OK : mu_fail(err, MURAL_FAILED, NULL, "cannot make temporary files");
	pid_t pid;
	MU_TRY_OUT(status);
	MU_TRY_OUT(mu_command_start(command, fileno(out), fileno(errors), &pid, err));
	int code = mu_command_await(command, pid);
	status = code == 0 ? read_shown(&study->where, out, err) : pass_on(errors, code, err);
out:
	if (out)
		fclose(out);
	if (errors)
		fclose(errors);
	return status;
}

bool mu_study_names_hosts(const mural_hosts_choice *hosts)
{
	return hosts->file || hosts->include || hosts->exclude || hosts->nodes > 0 || hosts->slots_per_node > 0;
}

mural_status mu_study_where_find(mu_study *study, mural_error *err)
{
	const mural_study_settings *s = &study->settings;
	const mu_point first = mu_study_point(s, 0);
	mu_study_command command = {0};
	mural_status status = MURAL_OK;
	if (mu_study_names_hosts(&s->hosts))
		MU_TRY_OUT(mural_hosts_open(&study->where.hosts, &s->hosts, err));
	MU_TRY_OUT(mu_study_command_make(&command, study, &first, true, err));
	MU_TRY_OUT(mu_command_end(&command.words, err));
	MU_TRY_OUT(ask(study, &command.words, err));
	if (study->where.cluster && (study->where.hosts || s->slurm))
		status = mu_fail(err, MURAL_USAGE, NULL,
		                 "a cluster is emulated on one machine: --cluster goes with neither hosts nor Slurm");
out:
	mu_study_command_release(&command);
	return status;
}

void mu_study_where_release(mu_study_where *where)
{
	mural_cluster_free(where->cluster);
	mural_hosts_free(where->hosts);
	*where = (mu_study_where){0};
}

uint32_t mu_study_where_most(const mu_study_where *where)
{
	if (where->cluster)
		return where->cluster->devices_in_all;
	return where->hosts ? (uint32_t)mural_hosts_ranks(where->hosts) : 0;
}

/* ---- where a point's ranks sit. ---- */

static mural_placement placement_of(const mu_study_where *where, const mu_point *point)
{
	const char *word = point->words[MURAL_AXIS_PLACEMENT];
	if (!word)
		return where->placement;
	return strcmp(word, "spread") == 0 ? MURAL_PLACE_SPREAD : MURAL_PLACE_PACK;
}

/* taken[h]: slots of host h that the point uses. Host by host, or one of each in turn. */
static void share_out(const mu_study_where *where, const mu_point *point, int *taken)
{
	size_t n = mural_hosts_count(where->hosts);
	bool spread = placement_of(where, point) == MURAL_PLACE_SPREAD;
	for (uint32_t left = point->ranks; left > 0;)
		for (size_t h = 0; h < n && left > 0; h++) {
			int free_slots = mural_hosts_get(where->hosts, h)->n_slots - taken[h];
			int more = free_slots == 0 ? 0 : spread ? 1 : free_slots < (int)left ? free_slots : (int)left;
			taken[h] += more;
			left -= (uint32_t)more;
		}
}

static void write_filter(FILE *out, const mu_study_where *where, const int *taken)
{
	const char *between = "";
	for (size_t h = 0; h < mural_hosts_count(where->hosts); h++) {
		const mural_host *host = mural_hosts_get(where->hosts, h);
		for (int i = 0; i < taken[h]; i++)
			if (i == 0)
				fprintf(out, "%s%s:%d", between, host->name, host->slots[i]);
			else
				fprintf(out, ",%d", host->slots[i]);
		between = taken[h] > 0 ? "@" : between;
	}
}

mural_status mu_study_slots(const mu_study_where *where, const mu_point *point, char **filter, mural_error *err)
{
	size_t bytes;
	*filter = NULL;
	int *taken = calloc(mural_hosts_count(where->hosts), sizeof *taken);
	FILE *out = taken ? open_memstream(filter, &bytes) : NULL;
	if (out) {
		share_out(where, point, taken);
		write_filter(out, where, taken);
		if (fclose(out)) {
			free(*filter);
			*filter = NULL;
		}
	}
	free(taken);
	return *filter ? MURAL_OK : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the names of hosts");
}

static bool hosts_across(const mu_study_where *where, const mu_point *point)
{
	bool spread = placement_of(where, point) == MURAL_PLACE_SPREAD;
	size_t n = mural_hosts_count(where->hosts);
	return n > 1 && (spread || (int)point->ranks > mural_hosts_get(where->hosts, 0)->n_slots);
}

static mural_status cluster_seat(const mu_study *study, const mu_point *point, mu_study_seat *seat, mural_error *err)
{
	const mural_cluster *cluster = study->where.cluster;
	mural_placement placement = placement_of(&study->where, point);
	mural_place *places = calloc(point->ranks, sizeof *places);
	if (!places)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to place %u ranks", point->ranks);
	mural_status status = mural_cluster_place(cluster, placement, (int)point->ranks, places, err);
	snprintf(seat->cluster, sizeof seat->cluster, "%s", cluster->name);
	if (status == MURAL_OK) {
		snprintf(seat->device, sizeof seat->device, "%s", cluster->devices[places[0].device].name);
		uint32_t devices = 0; /* of the first rank's node */
		for (uint32_t s = 0; s < cluster->nodes[places[0].entry].n_slots; s++)
			devices += cluster->nodes[places[0].entry].slots[s].count;
		seat->across = cluster->nodes_in_all > 1 && (placement == MURAL_PLACE_SPREAD || devices == 1);
	}
	for (uint32_t r = 1; status == MURAL_OK && r < point->ranks; r++) {
		seat->across |= places[r].node != places[0].node;
		if (places[r].device != places[0].device)
			snprintf(seat->device, sizeof seat->device, "mixed");
	}
	free(places);
	return status;
}

mural_status mu_study_seat_of(const mu_study *study, const mu_point *point, mu_study_seat *seat, mural_error *err)
{
	*seat = (mu_study_seat){.device = "cpu", .cluster = "this"};
	if (study->where.cluster)
		return cluster_seat(study, point, seat, err);
	(void)gethostname(seat->cluster, sizeof seat->cluster - 1);
	seat->across = study->where.hosts && hosts_across(&study->where, point);
	return MURAL_OK;
}
