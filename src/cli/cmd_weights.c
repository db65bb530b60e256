/* `mural weights`: what weights are, and under other names. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "mural/weights.h"

#define SHOWN_UNMATCHED 10 /* more are only counted */

typedef struct weights_arguments {
	const char *paths[2], *to, *result;
	int n_paths;
	bool ignore_unmatched, help;
} weights_arguments;

static void help(void)
{
	printf("usage: mural weights inspect PATH [--result FILE]\n"
	       "       mural weights convert PATH OUT --to torchvision|timm|huggingface [--ignore-unmatched]\n\n"
	       "inspect tells whose weights they are, for which model, and what is done to images.\n"
	       "convert writes them under another project's names. PATH: safetensors (also an index of several files), "
	       ".pth, "
	       ".npz,\n"
	       "or a folder with one of the usual names in it. OUT: NAME.safetensors, NAME.pth, or a new folder, which "
	       "also "
	       "gets the\n"
	       "configuration files that the project's library expects.\n\n"
	       "options:\n"
	       "  --to NAME                  whose names (convert)\n"
	       "  --ignore-unmatched         leave out tensors that the model has no place for (convert)\n"
	       "  --result FILE              write the same as JSON (inspect)\n"
	       "  --help                     this text\n");
}

static mural_status usage(mural_error *err, const char *message, const char *argument)
{
	err->status = MURAL_USAGE;
	snprintf(err->message, sizeof err->message, "weights: %s '%.300s'; `mural weights --help` explains", message,
	         argument);
	return MURAL_USAGE;
}

/* Is argv[*i] this option, as "--option value" or "--option=value"? */
static bool take_value(const char *option, int argc, char **argv, int *i, const char **value)
{
	size_t length = strlen(option);
	const char *argument = argv[*i];
	if (strncmp(argument, option, length) != 0 || (argument[length] != '=' && argument[length] != '\0'))
		return false;
	if (argument[length] == '=')
		*value = argument + length + 1;
	else if (*i + 1 < argc)
		*value = argv[++*i];
	else
		return false;
	return true;
}

static mural_status parse(weights_arguments *a, int argc, char **argv, mural_error *err)
{
	for (int i = 0; i < argc; i++) {
		if (take_value("--to", argc, argv, &i, &a->to) || take_value("--result", argc, argv, &i, &a->result))
			continue;
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			a->help = true;
		else if (strcmp(argv[i], "--ignore-unmatched") == 0)
			a->ignore_unmatched = true;
		else if (strcmp(argv[i], "--to") == 0 || strcmp(argv[i], "--result") == 0)
			return usage(err, "a value is missing behind", argv[i]);
		else if (argv[i][0] == '-' || a->n_paths == 2)
			return usage(err, "unknown argument", argv[i]);
		else
			a->paths[a->n_paths++] = argv[i];
	}
	return MURAL_OK;
}

/* ---- inspect. ---- */

static void print_floats(const char *what, const float *values, size_t n)
{
	printf("%s", what);
	for (size_t i = 0; i < n; i++)
		printf(" %g", (double)values[i]);
}

static void print_preprocess(const mural_preprocess *p, const mural_model_config *m)
{
	static const char *const ways[] = {"padded or cut, without resizing",
	                                   "resized to keep the aspect, the middle cut out", "squashed"};
	printf("images       %s", ways[p->resize]);
	if (p->resize == MURAL_RESIZE_BILINEAR && p->resize_side)
		printf(" of a short side of %u", p->resize_side);
	if (p->resize != MURAL_RESIZE_NONE)
		printf(", %s", p->filter == MURAL_FILTER_BICUBIC ? "bicubic" : "bilinear");
	print_floats("; mean", p->mean, m->channels);
	print_floats(", std", p->std, m->channels);
	printf(" (%s)\n", p->source);
}

static void print_unmatched(const mural_weights *weights)
{
	size_t n = 0;
	while (mural_weights_unmatched(weights, n))
		n++;
	if (n)
		printf("unmatched    %zu tensors have no place in the model:\n", n);
	for (size_t i = 0; i < n && i < SHOWN_UNMATCHED; i++)
		printf("             %s\n", mural_weights_unmatched(weights, i));
	if (n > SHOWN_UNMATCHED)
		printf("             ...\n");
}

static void print_facts(const mural_weights *weights)
{
	const mural_weights_facts *f = mural_weights_get_facts(weights);
	const mural_model_config *m = &f->model;
	printf("%s: %s\n", f->path, f->format);
	printf("origin       %s\n", f->origin);
	printf("tensors      %llu of %llu parameters, %s\n", (unsigned long long)f->tensors,
	       (unsigned long long)f->parameters, f->types);
	printf("model        %s: width %zu, %zu blocks, %zu heads (%s), MLP width %zu\n", m->preset, m->width, m->depth,
	       m->heads, f->heads_from, m->mlp_width);
	printf("image        %zu x %zu, %zu channel%s, patches of %zu\n", m->image_height, m->image_width, m->channels,
	       m->channels == 1 ? "" : "s", m->patch);
	printf("details      pool %s, %s class token, norm eps %g, gelu %s\n",
	       m->pool == MURAL_POOL_MEAN ? "mean" : "token", m->class_token ? "with" : "no", m->norm_eps,
	       m->gelu == MURAL_GELU_TANH ? "tanh" : "erf");
	if (m->classes)
		printf("classes      %zu%s\n", m->classes, f->class_names ? ", with names" : "");
	else
		printf("classes      no classifier\n");
	print_preprocess(&f->preprocess, m);
	print_unmatched(weights);
}

static mural_status inspect(const weights_arguments *a, mural_error *err)
{
	mural_weights *weights;
	mural_status status = mural_weights_open(&weights, a->paths[0], err);
	if (status == MURAL_OK && a->result)
		status = mural_weights_write_json(weights, a->result, err);
	if (status == MURAL_OK)
		print_facts(weights);
	mural_weights_free(weights);
	return status;
}

/* ---- convert. ---- */

static mural_status convert(const weights_arguments *a, mural_error *err)
{
	static const char *const names[] = {"torchvision", "timm", "huggingface"};
	mural_weights_conversion conversion = {
	        .from = a->paths[0], .to = a->paths[1], .ignore_unmatched = a->ignore_unmatched};
	char notes[MURAL_WEIGHTS_NOTES];
	int naming = 0;
	while (naming < 3 && a->to && strcmp(names[naming], a->to) != 0)
		naming++;
	if (!a->to || naming == 3)
		return usage(err, "expected --to torchvision, timm or huggingface, found", a->to ? a->to : "nothing");
	conversion.naming = (mural_naming)naming;
	mural_status status = mural_weights_convert(&conversion, notes, err);
	if (status == MURAL_OK && notes[0])
		fprintf(stderr, "%s\n", notes);
	return status;
}

int command_weights(int argc, char **argv)
{
	weights_arguments a = {0};
	mural_error err = {0};
	const char *what = argc > 1 ? argv[1] : "";
	mural_status status = argc > 1 ? parse(&a, argc - 2, argv + 2, &err) : MURAL_OK;
	if (a.help || strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0) {
		help();
		return 0;
	}
	if (status == MURAL_OK && strcmp(what, "inspect") == 0 && a.n_paths == 1)
		status = inspect(&a, &err);
	else if (status == MURAL_OK && strcmp(what, "convert") == 0 && a.n_paths == 2)
		status = convert(&a, &err);
	else if (status == MURAL_OK)
		status = usage(&err, "expected `inspect PATH` or `convert PATH OUT --to NAME`, found",
		               what[0] ? what : "nothing");
	if (status != MURAL_OK)
		mural_error_print(&err, stderr);
	return mural_exit_code(status);
}
