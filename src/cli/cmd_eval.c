/* mural eval. SPDX-License-Identifier: MIT */
#include <string.h>

#include "mural/run.h"
#include "session.h"

static void help(FILE *out)
{
	fprintf(out,
	        "usage: mural eval --weights PATH [OPTIONS]\n"
	        "       mural eval --run-dir FOLDER [--checkpoint best|latest|step-N] [OPTIONS]\n"
	        "Accuracy and loss of weights on a data set, all in all and class by class: every image exactly once, "
	        "on any\n"
	        "number of ranks.\n\n"
	        "  mural eval --weights runs/demo/weights.safetensors --data fashion-mnist\n"
	        "  mural eval --run-dir runs/demo --checkpoint best\n\n"
	        "options:\n");
	run_arguments_help(out, RUN_EVAL);
	fprintf(out,
	        "\nconfiguration (over the file, which is over the preset; in the file, what only training obeys may "
	        "stand):\n");
	mural_config_help_options(out, true);
}

static void print_worst(const mural_evaluate_result *result)
{
	for (size_t i = 0; result->n_worst > 1 && i < result->n_worst; i++) {
		const mural_class_score *score = &result->worst[i];
		printf("%s%s", i ? ", " : "worst classes: ", score->name);
		if (!score->name[0])
			printf("%zu", score->label);
		printf(" %.3f", (double)score->right / (double)score->images);
	}
	if (result->n_worst > 1)
		printf("\n");
}

static void print_summary(const mural_evaluate_result *result, int ranks)
{
	const mural_evaluation *all = &result->all;
	printf("accuracy %.4f, top-5 %.4f, loss %.4f over %llu images, %.1f images/s on %d rank%s\n", all->top1,
	       all->top5, all->loss, (unsigned long long)all->images, (double)all->images / all->seconds, ranks,
	       ranks == 1 ? "" : "s");
	print_worst(result);
}

/* Devices and links are those of this machine, whatever the training stood for. */
static void tell_cluster(const mural_config *config)
{
	if (config->emulation.cluster[0])
		printf("speed of this machine: an evaluation does not emulate the cluster of %s\n",
		       config->emulation.cluster);
}

/* The text has been checked. */
static mural_split split_of(const char *name)
{
	if (!name || strcmp(name, "test") == 0)
		return MURAL_SPLIT_TEST;
	return strcmp(name, "train") == 0 ? MURAL_SPLIT_TRAIN : MURAL_SPLIT_VALIDATION;
}

int command_eval(int argc, char **argv)
{
	session s;
	int code;
	if (!session_begin(&s, argc, argv, true, help, &code))
		return code;
	const mural_run_options options = {.result_path = s.arguments.result, .checkpoint = s.arguments.checkpoint};
	if (s.arguments.run_dir) /* wherever the run's configuration thinks that it lies */
		snprintf(s.config.run.run_dir, sizeof s.config.run.run_dir, "%s", s.arguments.run_dir);
	mural_evaluate_result result;
	mural_status status = mural_evaluate_run(&s.config, s.report, s.comm, s.arguments.weights,
	                                         split_of(s.arguments.split), &options, &result, &s.err);
	if (status == MURAL_OK && s.ranks->rank == 0) {
		print_summary(&result, s.ranks->size);
		tell_cluster(&s.config);
	}
	return session_end(&s, status);
}
