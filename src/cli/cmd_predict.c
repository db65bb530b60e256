/* `mural predict`: classes of picture files. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "mural/predict.h"

#define SHOWN 5 /* classes per picture, unless --top says otherwise */

typedef struct predict_arguments {
	const char *weights, *labels, *top, *result, *threads;
	const char **pictures;
	size_t n, k;
	unsigned n_threads;
	bool json, help;
} predict_arguments;

static void help(void)
{
	printf("usage: mural predict IMAGE... --weights PATH [OPTIONS]\n"
	       "What is on PNG and JPEG files, prepared as the weights' origin does it.\n\n"
	       "  mural predict cat.jpg --weights runs/first\n"
	       "  mural predict *.png --weights vit.safetensors --labels classes.txt --top 3 --json\n\n"
	       "options:\n"
	       "  --weights PATH             a run's folder, a checkpoint, or any weights that `mural weights inspect` "
	       "knows\n"
	       "  --top K                    classes per image (default 5)\n"
	       "  --labels FILE              the name of a class per line; by default the weights' own names\n"
	       "  --json                     print JSON\n"
	       "  --result FILE              write the same as JSON\n"
	       "  --threads N                OpenMP threads (default: all cores)\n"
	       "  --help                     this text\n");
}

static mural_status usage(mural_error *err, const char *message, const char *argument)
{
	err->status = MURAL_USAGE;
	snprintf(err->message, sizeof err->message, "predict: %s '%.300s'; `mural predict --help` explains", message,
	         argument);
	return MURAL_USAGE;
}

static mural_status parse_count(const char *option, const char *text, size_t most, size_t *count, mural_error *err)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || value < 1 || value > most) {
		err->status = MURAL_USAGE;
		snprintf(err->message, sizeof err->message,
		         "argument %s: expected a whole number from 1 to %zu, got '%.80s'", option, most, text);
		return MURAL_USAGE;
	}
	*count = (size_t)value;
	return MURAL_OK;
}

/* Index of the option that argv[i] names, or `n`. */
static size_t find_option(const char *argument, const char *const *names, size_t n)
{
	size_t o = 0;
	for (; o < n; o++) {
		size_t length = strlen(names[o]);
		if (strncmp(argument, names[o], length) == 0 && (argument[length] == '\0' || argument[length] == '='))
			break;
	}
	return o;
}

static mural_status parse(predict_arguments *a, int argc, char **argv, mural_error *err)
{
	static const char *const names[] = {"--weights", "--labels", "--top", "--result", "--threads"};
	const char **values[] = {&a->weights, &a->labels, &a->top, &a->result, &a->threads};
	for (int i = 1; i < argc; i++) {
		size_t o = find_option(argv[i], names, 5);
		const char *equals = strchr(argv[i], '=');
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			a->help = true;
		else if (strcmp(argv[i], "--json") == 0)
			a->json = true;
		else if (o < 5 && equals)
			*values[o] = equals + 1;
		else if (o < 5 && i + 1 < argc)
			*values[o] = argv[++i];
		else if (o < 5)
			return usage(err, "a value is missing behind", argv[i]);
		else if (argv[i][0] == '-' && argv[i][1])
			return usage(err, "unknown argument", argv[i]);
		else
			a->pictures[a->n++] = argv[i];
	}
	size_t threads = 0;
	a->k = SHOWN;
	if (a->top && parse_count("--top", a->top, 1 << 24, &a->k, err) != MURAL_OK)
		return err->status;
	if (a->threads && parse_count("--threads", a->threads, 4096, &threads, err) != MURAL_OK)
		return err->status;
	a->n_threads = (unsigned)threads;
	if (!a->help && !a->weights)
		return usage(err, "expected --weights PATH, found", "nothing");
	if (!a->help && a->n == 0)
		return usage(err, "expected one image at least, found", "none");
	return MURAL_OK;
}

static void print(const mural_predictor *predictor, const predict_arguments *a, const float *probabilities,
                  size_t *labels)
{
	size_t classes = mural_predictor_facts(predictor)->model.classes;
	for (size_t i = 0; i < a->n; i++) {
		const float *row = probabilities + i * classes;
		mural_predictor_best(row, classes, a->k, labels);
		printf("%s\n", a->pictures[i]);
		for (size_t k = 0; k < a->k; k++) {
			const char *name = mural_predictor_class_name(predictor, labels[k]);
			if (name)
				printf("  %6.2f %%  %s\n", 100 * (double)row[labels[k]], name);
			else
				printf("  %6.2f %%  class %zu\n", 100 * (double)row[labels[k]], labels[k]);
		}
	}
}

static mural_status predict(predict_arguments *a, mural_error *err)
{
	mural_predictor *predictor;
	const mural_predictor_settings settings = {.weights = a->weights, .labels = a->labels, .threads = a->n_threads};
	mural_status status = mural_predictor_create(&predictor, &settings, err);
	if (status != MURAL_OK)
		return status;
	size_t classes = mural_predictor_facts(predictor)->model.classes;
	if (a->k > classes)
		a->k = classes;
	float *probabilities = calloc(a->n, classes * sizeof *probabilities);
	size_t *labels = calloc(a->k, sizeof *labels);
	if (!probabilities || !labels) {
		status = err->status = MURAL_OUT_OF_MEMORY;
		snprintf(err->message, sizeof err->message, "no memory for %zu images of %zu classes", a->n, classes);
	} else {
		status = mural_predictor_run(predictor, a->pictures, a->n, probabilities, err);
	}
	if (status == MURAL_OK && a->result)
		status = mural_predictor_write_json(predictor, a->result, a->pictures, a->n, probabilities, a->k, err);
	if (status == MURAL_OK && a->json)
		status = mural_predictor_print_json(predictor, stdout, a->pictures, a->n, probabilities, a->k, err);
	else if (status == MURAL_OK)
		print(predictor, a, probabilities, labels);
	free(probabilities);
	free(labels);
	mural_predictor_free(predictor);
	return status;
}

int command_predict(int argc, char **argv)
{
	predict_arguments a = {.pictures = calloc((size_t)argc, sizeof *a.pictures)};
	mural_error err = {0};
	mural_status status = MURAL_OUT_OF_MEMORY;
	if (a.pictures)
		status = parse(&a, argc, argv, &err);
	if (status == MURAL_OK && a.help)
		help();
	else if (status == MURAL_OK)
		status = predict(&a, &err);
	if (status != MURAL_OK)
		mural_error_print(&err, stderr);
	free(a.pictures);
	return mural_exit_code(status);
}
