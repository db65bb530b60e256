/* A study's files: study.csv by run, study.json by point, epochs.csv for predictions. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/number.h"
#include "base/proc.h"
#include "base/version.h"
#include "study/study_inside.h"

static mural_status begin(const mu_study *study, const char *name, mu_file *file, mural_error *err)
{
	char path[1100];
	snprintf(path, sizeof path, "%.1000s/%s", study->settings->folder, name);
	return mu_file_begin(file, path, err);
}

static void cell(FILE *out, double value)
{
	char text[MU_NUMBER_SIZE];
	fprintf(out, ",%s", isfinite(value) ? mu_number_text(value, text) : "");
}

/* Words of a run that failed, as one quoted cell. */
static void quoted(FILE *out, const char *text)
{
	fputs(",\"", out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text == '\n' ? ' ' : *text, out);
	}
	fputc('"', out);
}

static void write_run(const mu_point *p, uint32_t round, const mu_run_facts *f, FILE *out)
{
	const double values[] = {f->step,           f->data,          f->forward,           f->backward, f->exposed,
	                         f->hidden,         f->optimizer,     f->images_per_second, f->epoch,    f->train_loss,
	                         f->train_accuracy, f->test_accuracy, f->peak_memory_bytes};
	fprintf(out, "%s,%u,%u,%u,%u,%s,%s,%.9g,%s,%zu", p->name, round + 1, p->ranks, p->batch, p->accumulation,
	        p->precision, p->optimizer ? p->optimizer : "", p->fraction, f->done ? "measured" : "failed", f->steps);
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		cell(out, f->done ? values[i] : NAN);
	quoted(out, f->why);
	fputc('\n', out);
}

static bool was_started(const mu_run_facts *f)
{
	return f->done || *f->why;
}

static mural_status write_runs(const mu_study *study, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(begin(study, "study.csv", &file, err));
	fprintf(file.out,
	        "point,round,ranks,batch_per_rank,accumulation,precision,optimizer,dataset_fraction,status,steps,"
	        "step_seconds,data_seconds,forward_seconds,backward_seconds,communication_exposed_seconds,"
	        "communication_hidden_seconds,optimizer_seconds,images_per_second,epoch_seconds,train_loss,"
	        "train_accuracy,test_accuracy,peak_memory_bytes,words\n");
	for (uint32_t r = 0; r < study->settings->rounds; r++)
		for (size_t p = 0; p < study->n_points; p++)
			if (was_started(mu_study_facts(study, r, p)))
				write_run(&study->points[p], r, mu_study_facts(study, r, p), file.out);
	return mu_file_commit(&file, err);
}

/* The columns of the study's epoch-times.csv; one node, this one. */
static mural_status write_epochs(const mu_study *study, mural_error *err)
{
	mu_file file = {0};
	char host[256] = "this";
	(void)gethostname(host, sizeof host - 1);
	MU_TRY(begin(study, "epochs.csv", &file, err));
	fprintf(file.out, "cluster,gpu,placement,dataset,gpus,precision,batch_per_gpu,dataset_fraction,"
	                  "epoch_seconds_median,images_per_epoch\n");
	for (size_t p = 0; p < study->n_points; p++) {
		const mu_point *point = &study->points[p];
		mu_comparison c = mu_study_compare(study, p);
		if (!c.median.done || point->accumulation > 1 || !(c.median.epoch > 0))
			continue;
		fprintf(file.out, "%s,cpu,intra-node,as configured,%u,%s,%u,%.9g,%.6g,%.0f\n", host, point->ranks,
		        point->precision, point->batch, point->fraction, c.median.epoch, c.median.images_per_epoch);
	}
	return mu_file_commit(&file, err);
}

static void write_environment(mu_json *json)
{
	char host[256] = "", date[32] = "";
	time_t now = time(NULL);
	struct tm utc;
	(void)gethostname(host, sizeof host - 1);
	if (gmtime_r(&now, &utc))
		strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
	double load = NAN;
	(void)getloadavg(&load, 1);
	mu_json_object_begin(json, "environment");
	mu_json_string(json, "mural_version", MU_VERSION);
	mu_json_string(json, "host", host);
	mu_json_string(json, "date", date);
	mu_json_integer(json, "cores", sysconf(_SC_NPROCESSORS_ONLN));
	mu_json_number(json, "load", load);
	mu_json_object_end(json);
}

static void write_point(const mu_study *study, size_t p, mu_json *json)
{
	const mu_point *point = &study->points[p];
	mu_comparison c = mu_study_compare(study, p);
	const mu_run_facts *m = &c.median;
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
	               {"images_per_second", m->images_per_second},
	               {"epoch_seconds", m->epoch},
	               {"train_loss", m->train_loss},
	               {"train_accuracy", m->train_accuracy},
	               {"test_accuracy", m->test_accuracy},
	               {"peak_memory_bytes", m->peak_memory_bytes},
	               {"speed_up", c.speed_up},
	               {"speed_up_low", c.low},
	               {"speed_up_high", c.high},
	               {"efficiency", c.efficiency},
	               {"serial_fraction", c.serial},
	               {"communication_fraction", c.communication}};
	mu_json_object_begin(json, NULL);
	mu_json_string(json, "name", point->name);
	mu_json_unsigned(json, "ranks", point->ranks);
	mu_json_unsigned(json, "batch_per_rank", point->batch);
	mu_json_unsigned(json, "accumulation", point->accumulation);
	mu_json_string(json, "precision", point->precision);
	mu_json_string(json, "optimizer", point->optimizer);
	mu_json_number(json, "dataset_fraction", point->fraction);
	mu_json_unsigned(json, "rounds_measured", c.rounds);
	mu_json_string(json, "compared_with", study->points[c.base].name);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		mu_json_number(json, numbers[i].key, numbers[i].value);
	mu_json_object_end(json);
}

static mural_status write_points(const mu_study *study, mural_error *err)
{
	static const char *const kinds[] = {
#define MURAL_X(name, text, help) text,
	        MURAL_STUDY_LIST(MURAL_X)
#undef MURAL_X
	};
	mu_file file = {0};
	mu_json json;
	MU_TRY(begin(study, "study.json", &file, err));
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	mu_json_string(&json, "study", kinds[study->settings->kind]);
	write_environment(&json);
	mu_json_array_begin(&json, "arguments");
	for (int i = 0; i < study->settings->argc; i++)
		mu_json_string(&json, NULL, study->settings->argv[i]);
	mu_json_array_end(&json);
	mu_json_unsigned(&json, "rounds", study->settings->rounds);
	mu_json_unsigned(&json, "steps", study->settings->steps);
	mu_json_unsigned(&json, "warm_up_steps", study->settings->warm_up);
	mu_json_array_begin(&json, "points");
	for (size_t p = 0; p < study->n_points; p++)
		write_point(study, p, &json);
	mu_json_array_end(&json);
	mu_json_object_end(&json);
	return mu_file_commit(&file, err);
}

mural_status mu_study_write(const mu_study *study, mural_error *err)
{
	MU_TRY(write_runs(study, err));
	MU_TRY(write_epochs(study, err));
	return write_points(study, err);
}
