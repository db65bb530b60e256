/* study.json: what was studied, on what, and each point compared. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/version.h"
#include "study/study_inside.h"

static void write_environment(mu_json *json)
{
	char host[256] = "", date[32] = "", processor[128] = "";
	time_t now = time(NULL);
	struct tm utc;
	(void)gethostname(host, sizeof host - 1);
	if (gmtime_r(&now, &utc))
		strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
	double load = NAN;
	(void)getloadavg(&load, 1);
	mu_proc_processor(processor, sizeof processor);
	mu_json_object_begin(json, "environment");
	mu_json_string(json, "mural_version", MU_VERSION);
	mu_json_string(json, "host", host);
	mu_json_string(json, "processor", processor);
	mu_json_integer(json, "cores", sysconf(_SC_NPROCESSORS_ONLN));
	mu_json_unsigned(json, "memory_bytes", mu_proc_bytes("/proc/meminfo", "MemTotal"));
	mu_json_string(json, "date", date);
	mu_json_number(json, "load", load);
	mu_json_object_end(json);
}

/* What all points have in common. */
static void write_common(const mu_study *study, mu_json *json)
{
	const mural_study_settings *s = &study->settings;
	const char *where = study->where.cluster ? "emulated cluster"
	                    : s->slurm           ? "Slurm"
	                    : study->where.hosts ? "hosts"
	                                         : "this machine";
	mu_json_string(json, "model", study->where.model);
	mu_json_string(json, "data", study->where.data);
	mu_json_string(json, "ranks_on", where);
	mu_json_string(json, "cluster", study->where.cluster ? study->where.cluster->name : NULL);
	mu_json_string(json, "hostfile", s->hosts.file);
	mu_json_string(json, "slurm", s->slurm);
	mu_json_array_begin(json, "arguments");
	for (int i = 0; i < s->argc; i++)
		mu_json_string(json, NULL, s->argv[i]);
	mu_json_array_end(json);
	mu_json_unsigned(json, "rounds", s->rounds);
	mu_json_unsigned(json, "steps", s->steps);
	mu_json_unsigned(json, "warm_up_steps", s->warm_up);
}

/* Of this start, so far. */
static void write_time(const mu_study *study, mu_json *json)
{
	double seconds = mu_now() - study->from;
	mu_json_object_begin(json, "time");
	mu_json_number(json, "seconds", seconds);
	mu_json_number(json, "training_seconds", study->training);
	mu_json_number(json, "own_seconds", seconds - study->training);
	mu_json_object_end(json);
}

static void write_interval(mu_json *json, const char *key, mu_interval in)
{
	char name[64];
	snprintf(name, sizeof name, "%s_low", key);
	mu_json_number(json, name, in.low);
	snprintf(name, sizeof name, "%s_high", key);
	mu_json_number(json, name, in.high);
}

static void write_comparison(const mu_comparison *c, mu_json *json)
{
	const struct {
		const char *key;
		double value;
		mu_interval in;
	} fractions[] = {{"speed_up", c->speed_up, c->speed_up_in},
	                 {"efficiency", c->efficiency, c->efficiency_in},
	                 {"serial_fraction", c->serial, c->serial_in},
	                 {"communication_fraction", c->communication, c->communication_in}};
	for (size_t i = 0; i < sizeof fractions / sizeof *fractions; i++) {
		mu_json_number(json, fractions[i].key, fractions[i].value);
		write_interval(json, fractions[i].key, fractions[i].in);
	}
}

static void write_medians(const mu_run_facts *m, mu_json *json)
{
	const struct {
		const char *key;
		double value;
	} numbers[] = {{"step_seconds", m->step},
	               {"data_seconds", m->data},
	               {"forward_seconds", m->forward},
	               {"backward_seconds", m->backward},
	               {"communication_exposed_seconds", m->exposed},
	               {"communication_hidden_seconds", m->hidden},
	               {"optimizer_seconds", m->optimizer},
	               {"imbalance_seconds", m->imbalance},
	               {"emulation_late_fraction", m->late},
	               {"images_per_second", m->images_per_second},
	               {"epoch_seconds", m->epoch},
	               {"train_loss", m->train_loss},
	               {"train_accuracy", m->train_accuracy},
	               {"test_accuracy", m->test_accuracy},
	               {"peak_memory_bytes", m->peak_memory_bytes}};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		mu_json_number(json, numbers[i].key, numbers[i].value);
}

static mural_status write_point(const mu_study *study, size_t p, mu_json *json, mural_error *err)
{
	const mu_point *point = &study->points[p];
	mu_comparison c = mu_study_compare(study, p);
	mu_study_seat seat;
	MU_TRY(mu_study_seat_of(study, point, &seat, err));
	mu_json_object_begin(json, NULL);
	mu_json_string(json, "name", point->name);
	mu_json_unsigned(json, "ranks", point->ranks);
	mu_json_unsigned(json, "batch_per_rank", point->batch);
	mu_json_unsigned(json, "accumulation", point->accumulation);
	for (mural_study_axis a = 0; a < MURAL_STUDY_AXES; a++)
		if (*mu_study_sets[a])
			mu_json_string(json, mu_study_sets[a] + strlen("--"), point->words[a]);
	mu_json_number(json, "dataset_fraction", point->fraction);
	mu_json_string(json, "device", seat.device);
	mu_json_bool(json, "several_nodes", seat.across);
	mu_json_unsigned(json, "rounds_measured", c.rounds);
	mu_json_string(json, "compared_with", study->points[c.base].name);
	write_medians(&c.median, json);
	write_comparison(&c, json);
	mu_json_object_end(json);
	return MURAL_OK;
}

mural_status mu_study_write_json(const mu_study *study, mural_error *err)
{
	char path[1100];
	mu_file file = {0};
	mu_json json;
	snprintf(path, sizeof path, "%.1000s/study.json", study->settings.folder);
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	mu_json_string(&json, "study", mu_study_kinds[study->settings.kind]);
	write_environment(&json);
	write_common(study, &json);
	write_time(study, &json);
	mu_json_array_begin(&json, "points");
	mural_status status = MURAL_OK;
	for (size_t p = 0; status == MURAL_OK && p < study->n_points; p++)
		status = write_point(study, p, &json, err);
	mu_json_array_end(&json);
	mu_json_object_end(&json);
	if (status == MURAL_OK)
		return mu_file_commit(&file, err);
	mu_file_abandon(&file);
	return status;
}
