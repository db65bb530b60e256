/* mural eval. SPDX-License-Identifier: MIT */
#include <string.h>

#include "mural/run.h"
#include "session.h"

static void help(FILE *out)
{
	fprintf(out, "usage: mural eval --weights FILE [OPTIONS]\n"
	             "Accuracy and loss of weights on a data set: every image exactly once, on any number of ranks.\n\n"
	             "  mural eval --config runs/demo/config.json --weights runs/demo/weights.safetensors\n\n"
	             "options:\n");
	run_arguments_help(out, true);
	fprintf(out, "\nconfiguration (over the file, which is over the preset):\n");
	mural_config_help_options(out);
}

static mural_status check_arguments(session *s, mural_split *split)
{
	const char *name = s->arguments.split ? s->arguments.split : "test";
	*split = strcmp(name, "train") == 0 ? MURAL_SPLIT_TRAIN : MURAL_SPLIT_TEST;
	if (strcmp(name, "train") != 0 && strcmp(name, "test") != 0) {
		s->err.status = MURAL_USAGE;
		snprintf(s->err.message, sizeof s->err.message, "argument --split: expected test or train, got %s",
		         name);
	} else if (!s->arguments.weights) {
		s->err.status = MURAL_USAGE;
		snprintf(s->err.message, sizeof s->err.message,
		         "argument --weights: expected a safetensors file to evaluate, got nothing");
	}
	return mural_comm_agree(s->comm, s->err.status, &s->err);
}

int command_eval(int argc, char **argv)
{
	session s;
	int code;
	if (!session_begin(&s, argc, argv, true, help, &code))
		return code;
	mural_split split;
	mural_evaluation evaluation;
	mural_status status = check_arguments(&s, &split);
	if (status == MURAL_OK) {
		const mural_run_options options = {.result_path = s.arguments.result};
		status = mural_evaluate_run(&s.config, s.report, s.comm, s.arguments.weights, split, &options,
		                            &evaluation, &s.err);
	}
	if (status == MURAL_OK && s.ranks->rank == 0)
		printf("accuracy %.4f, top-5 %.4f, loss %.4f over %llu images, %.1f images/s on %d rank%s\n",
		       evaluation.top1, evaluation.top5, evaluation.loss, (unsigned long long)evaluation.images,
		       (double)evaluation.images / evaluation.seconds, s.ranks->size, s.ranks->size == 1 ? "" : "s");
	return session_end(&s, status);
}
