/* `mural data`: what is in a data set, is it whole, and where it comes from. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "mural/data.h"

#define SHOWN_CLASSES 20 /* more are only summed up */
#define SHOWN_BROKEN 20 /* the same for broken images */
#define SIDE 224 /* to which images of any size are brought to be read */

typedef struct data_arguments {
	const char *path, *format, *result, *to;
	bool help;
} data_arguments;

static void help(void)
{
	printf("usage: mural data inspect PATH [OPTIONS]\n"
	       "       mural data verify PATH [OPTIONS]\n"
	       "       mural data fetch cifar10|cifar100|fashion-mnist [--to FOLDER]\n\n"
	       "inspect tells what a data set holds, verify reads every image of it once and names those that are "
	       "broken,\n"
	       "fetch loads a data set, going on where an earlier fetch stopped, and checks its sum.\n"
	       "PATH: a folder, \"fashion-mnist\" or \"synthetic\", as for `mural train --data`.\n\n"
	       "options:\n"
	       "  --format NAME              the data's format when the folder does not tell\n"
	       "  --result FILE              write the same as JSON (inspect, verify)\n"
	       "  --to FOLDER                where fetch makes the set's folder (default: data)\n"
	       "  --help                     this text\n");
}

static mural_status usage(mural_error *err, const char *message, const char *argument)
{
	err->status = MURAL_USAGE;
	snprintf(err->message, sizeof err->message, "data: %s '%s'; `mural data --help` explains", message, argument);
	return MURAL_USAGE;
}

static mural_status parse(data_arguments *arguments, int argc, char **argv, mural_error *err)
{
	const struct {
		const char *name, **value;
	} options[] = {{"--format", &arguments->format}, {"--result", &arguments->result}, {"--to", &arguments->to}};
	for (int i = 0; i < argc; i++) {
		size_t o = 0, length = 0;
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			arguments->help = true;
			return MURAL_OK;
		}
		for (; o < 3; o++) {
			length = strlen(options[o].name);
			if (strncmp(argv[i], options[o].name, length) == 0 &&
			    (argv[i][length] == '\0' || argv[i][length] == '='))
				break;
		}
		if (o < 3 && argv[i][length] == '=')
			*options[o].value = argv[i] + length + 1;
		else if (o < 3 && i + 1 < argc)
			*options[o].value = argv[++i];
		else if (o < 3)
			return usage(err, "a value is missing behind", argv[i]);
		else if (argv[i][0] == '-' || arguments->path)
			return usage(err, "unknown argument", argv[i]);
		else
			arguments->path = argv[i];
	}
	return MURAL_OK;
}

/* ---- inspect and verify. ---- */

static void print_classes(const mural_data *data, const mural_data_survey *survey)
{
	const mural_data_facts *facts = mural_data_get_facts(data);
	if (facts->classes > SHOWN_CLASSES) {
		uint64_t least = UINT64_MAX, most = 0;
		for (size_t c = 0; survey && c < facts->classes; c++) {
			least = survey->images_per_class[c] < least ? survey->images_per_class[c] : least;
			most = survey->images_per_class[c] > most ? survey->images_per_class[c] : most;
		}
		if (survey)
			printf("  %-10s %llu to %llu images\n", "a class", (unsigned long long)least,
			       (unsigned long long)most);
		return;
	}
	for (size_t c = 0; c < facts->classes; c++) {
		const char *name = mural_data_class_name(data, c);
		if (!survey && !name)
			return;
		printf("  %10zu %-20s", c, name ? name : "");
		if (survey)
			printf(" %llu images", (unsigned long long)survey->images_per_class[c]);
		printf("\n");
	}
}

static void print_split(const char *title, const mural_data *data, const mural_data_survey *survey)
{
	const mural_data_facts *facts = mural_data_get_facts(data);
	printf("%s: %s in %s\n", title, facts->name, *facts->path ? facts->path : "no folder");
	printf("  %-10s %llu\n", "images", (unsigned long long)facts->images);
	if (facts->any_size)
		printf("  %-10s %zu channels, any size\n", "of", facts->channels);
	else
		printf("  %-10s %zu x %zu pixels, %zu channel%s\n", "of", facts->height, facts->width, facts->channels,
		       facts->channels == 1 ? "" : "s");
	printf("  %-10s %zu\n", "classes", facts->classes);
	print_classes(data, survey);
	if (!survey)
		return;
	printf("  %-10s", "mean, std");
	for (size_t c = 0; c < facts->channels; c++)
		printf("%s %.4f, %.4f", c ? " |" : "", survey->mean[c], survey->std[c]);
	printf("\n  %-10s %llu readable, %llu broken\n", "verified", (unsigned long long)survey->readable,
	       (unsigned long long)survey->broken);
}

static void print_missing(const char *title, const mural_error *why)
{
	printf("%s: none (%s%s%s)\n", title, why->message, *why->where ? ": " : "", why->where);
}

static void say_broken(void *user, uint64_t image, const mural_error *err)
{
	uint64_t *said = user;
	(void)image;
	if ((*said)++ < SHOWN_BROKEN)
		mural_error_print(err, stderr);
	else if (*said == SHOWN_BROKEN + 1)
		fprintf(stderr, "mural: more images are broken; the count follows\n");
}

typedef struct data_set {
	mural_data *splits[2];
	mural_data_survey surveys[2];
	mural_error missing[2]; /* why a split is not there */
} data_set;

/* Opens what is there; nothing there is an error. */
static mural_status open_splits(data_set *set, const data_arguments *arguments, mural_error *err)
{
	mural_data_config config = {.fraction = 1, .resize = MURAL_RESIZE_BILINEAR, .synthetic_images = 1024};
	if (snprintf(config.path, sizeof config.path, "%s", arguments->path) >= (int)sizeof config.path)
		return usage(err, "the path is too long:", arguments->path);
	if (arguments->format) {
		mural_status status = mural_data_format_find(&config.format, arguments->format, err);
		if (status != MURAL_OK)
			return status;
	}
	for (int s = 0; s < 2; s++)
		mural_data_open(&set->splits[s], &config, (mural_split)s, 0, 3, SIDE, SIDE, 0, &set->missing[s]);
	if (set->splits[0] || set->splits[1])
		return MURAL_OK;
	*err = set->missing[0];
	return err->status;
}

static mural_status survey_splits(data_set *set, mural_error *err)
{
	uint64_t said = 0;
	for (int s = 0; s < 2; s++) {
		mural_status status = MURAL_OK;
		if (set->splits[s])
			status = mural_data_survey_take(&set->surveys[s], set->splits[s], say_broken, &said, err);
		if (status != MURAL_OK)
			return status;
	}
	return MURAL_OK;
}

/* A set with one split can be looked at, but is not whole. */
static mural_status judge(const data_set *set, mural_error *err)
{
	for (int s = 0; s < 2; s++)
		if (!set->splits[s]) {
			*err = set->missing[s];
			return err->status;
		}
	uint64_t broken = set->surveys[0].broken + set->surveys[1].broken;
	if (broken == 0)
		return MURAL_OK;
	err->status = MURAL_DATA;
	snprintf(err->message, sizeof err->message, "%llu image%s cannot be read: mend or remove %s",
	         (unsigned long long)broken, broken == 1 ? "" : "s", broken == 1 ? "it" : "them");
	return MURAL_DATA;
}

static mural_status look(data_set *set, const data_arguments *arguments, bool verify, mural_error *err)
{
	static const char *const titles[] = {"training set", "test set"};
	const mural_data_survey *surveys[2] = {NULL, NULL};
	mural_status status = open_splits(set, arguments, err);
	if (status == MURAL_OK && verify)
		status = survey_splits(set, err);
	if (status != MURAL_OK)
		return status;
	for (int s = 0; s < 2; s++) {
		surveys[s] = verify && set->splits[s] ? &set->surveys[s] : NULL;
		if (set->splits[s])
			print_split(titles[s], set->splits[s], surveys[s]);
		else if (!verify)
			print_missing(titles[s], &set->missing[s]);
	}
	fflush(stdout);
	const mural_data *splits[2] = {set->splits[0], set->splits[1]};
	if (arguments->result)
		status = mural_data_write_json(arguments->result, splits, surveys, err);
	return status == MURAL_OK && verify ? judge(set, err) : status;
}

static mural_status inspect(const data_arguments *arguments, bool verify, mural_error *err)
{
	data_set set = {0};
	if (!arguments->path)
		return usage(err, "a data set is missing behind", verify ? "verify" : "inspect");
	if (arguments->to)
		return usage(err, "this option belongs to fetch:", "--to");
	mural_status status = look(&set, arguments, verify, err);
	for (int s = 0; s < 2; s++) {
		mural_data_survey_release(&set.surveys[s]);
		mural_data_free(set.splits[s]);
	}
	return status;
}

static mural_status fetch(const data_arguments *arguments, mural_error *err)
{
	char folder[1024];
	if (!arguments->path)
		return usage(err, "a data set is missing behind", "fetch");
	if (arguments->format || arguments->result)
		return usage(err, "fetch has no option", arguments->format ? "--format" : "--result");
	mural_status status = mural_data_fetch(arguments->path, arguments->to ? arguments->to : "data",
	                                       isatty(STDERR_FILENO), folder, sizeof folder, err);
	if (status == MURAL_OK)
		printf("%s is in %s; train with --data %s\n", arguments->path, folder, folder);
	return status;
}

static mural_status act(const char *action, const data_arguments *arguments, mural_error *err)
{
	if (strcmp(action, "inspect") == 0 || strcmp(action, "verify") == 0)
		return inspect(arguments, action[0] == 'v', err);
	if (strcmp(action, "fetch") == 0)
		return fetch(arguments, err);
	return usage(err, "expected inspect, verify or fetch, found", action);
}

int command_data(int argc, char **argv)
{
	data_arguments arguments = {0};
	mural_error err = {0};
	const char *action = argc > 1 ? argv[1] : "";
	mural_status status = argc > 1 ? parse(&arguments, argc - 2, argv + 2, &err) : MURAL_OK;
	if (arguments.help || strcmp(action, "--help") == 0 || strcmp(action, "-h") == 0) {
		help();
		return 0;
	}
	if (status == MURAL_OK)
		status = act(action, &arguments, &err);
	if (status != MURAL_OK)
		mural_error_print(&err, stderr);
	return mural_exit_code(status);
}
