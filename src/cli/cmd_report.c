/* mural report: a run or a study as one page of HTML. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "mural/report.h"
#include "usage.h"

typedef struct report_arguments {
	const char *output, *title, *cluster, *placement, *result;
	bool quiet, help;
	const char **folders;
	size_t n_folders;
} report_arguments;

typedef struct option_row {
	const char *name, *value, *help; /* value: NULL for a flag */
	size_t offset;
} option_row;

#define AT(field) offsetof(report_arguments, field)
static const option_row rows[] = {
        {"--output", "FILE", "the page (default report.html in the first folder); figures go beside it", AT(output)},
        {"--title", "TEXT", "its heading", AT(title)},
        {"--cluster", "FILE", "a cluster file: prices and watts of its devices give money and joules", AT(cluster)},
        {"--placement", "pack|spread", "in which order ranks take its devices (default pack)", AT(placement)},
        {"--result", "FILE", "what was made, as JSON", AT(result)},
        {"--quiet", NULL, "only errors", AT(quiet)},
        {"--help", NULL, "this text", AT(help)},
};
#define ROWS (sizeof rows / sizeof *rows)

static void help(void)
{
	printf("usage: mural report FOLDER... [OPTIONS]\n"
	       "Shows runs and studies in words, figures and tables, as one page that needs nothing else.\n\n"
	       "  mural report runs/first\n"
	       "  mural report runs/strong runs/weak runs/batch --output report.html\n\n"
	       "A folder is a run's (steps.csv), a study's (study.json), or holds such folders.\n\n"
	       "options:\n");
	for (size_t i = 0; i < ROWS; i++)
		usage_option(stdout, rows[i].name, rows[i].value, rows[i].help);
}

static const option_row *find_row(const char *argument, const char **value)
{
	size_t length = strcspn(argument, "=");
	for (size_t i = 0; i < ROWS; i++)
		if (strlen(rows[i].name) == length && strncmp(rows[i].name, argument, length) == 0) {
			*value = argument[length] == '=' ? argument + length + 1 : NULL;
			return &rows[i];
		}
	return NULL;
}

static mural_status parse(report_arguments *a, int argc, char **argv, mural_error *err)
{
	bool only_folders = false;
	for (int i = 1; i < argc; i++) {
		const char *value = NULL;
		if (only_folders || argv[i][0] != '-') {
			a->folders[a->n_folders++] = argv[i];
			continue;
		}
		only_folders = strcmp(argv[i], "--") == 0;
		if (only_folders)
			continue;
		const option_row *row = find_row(argv[i], &value);
		if (!row)
			return usage_wrong("report", argv[i], "an option of `mural report`", "something else", err);
		void *field = (char *)a + row->offset;
		if (!row->value) {
			if (value)
				return usage_wrong("report", row->name, "no value", value, err);
			*(bool *)field = true;
			continue;
		}
		if (!value && i + 1 < argc)
			value = argv[++i];
		if (!value || !*value)
			return usage_wrong("report", row->name, row->value, NULL, err);
		*(const char **)field = value;
	}
	if (!a->help && a->n_folders == 0)
		return usage_wrong("report", "FOLDER", "the folder of a run or of a study", NULL, err);
	return MURAL_OK;
}

static void print_note(void *user, const char *words)
{
	(void)user;
	fprintf(stderr, "mural: note: %s\n", words);
}

static mural_status write_page(const report_arguments *a, mural_report_settings *settings, mural_error *err)
{
	mural_report_summary summary;
	mural_status status = mural_report_write(settings, &summary, err);
	if (summary.page[0] && !a->quiet)
		printf("%s\n%s: %zu figures, %zu of them drawn\n", summary.limit, summary.page, summary.figures,
		       summary.drawn);
	if (a->result && summary.page[0]) {
		mural_status told = mural_report_write_json(a->result, &summary, err);
		status = status == MURAL_OK ? told : status;
	}
	return status;
}

static mural_status run(const report_arguments *a, mural_error *err)
{
	mural_cluster *cluster = NULL;
	mural_report_settings settings = {
	        .n_folders = a->n_folders, .folders = a->folders, .output = a->output, .title = a->title};
	if (!a->quiet)
		settings.note = print_note;
	if (a->placement && strcmp(a->placement, "pack") != 0 && strcmp(a->placement, "spread") != 0)
		return usage_wrong("report", "--placement", "pack or spread", a->placement, err);
	settings.placement = a->placement && *a->placement == 's' ? MURAL_PLACE_SPREAD : MURAL_PLACE_PACK;
	mural_status status = a->cluster ? mural_cluster_read(&cluster, a->cluster, err) : MURAL_OK;
	settings.cluster = cluster;
	if (status == MURAL_OK)
		status = write_page(a, &settings, err);
	mural_cluster_free(cluster);
	return status;
}

int command_report(int argc, char **argv)
{
	mural_error err = {0};
	report_arguments a = {.folders = calloc((size_t)argc + 1, sizeof *a.folders)};
	mural_status status = MURAL_OUT_OF_MEMORY;
	if (a.folders)
		status = parse(&a, argc, argv, &err);
	if (status == MURAL_OK && a.help)
		help();
	else if (status == MURAL_OK)
		status = run(&a, &err);
	free(a.folders);
	if (status != MURAL_OK)
		mural_error_print(&err, stderr);
	return mural_exit_code(status);
}
