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

int command_eval(int argc, char **argv)
{
	session s;
	int code;
	if (!session_begin(&s, argc, argv, true, help, &code))
		return code;
	const mural_run_options options = {.result_path = s.arguments.result};
	bool train = s.arguments.split && strcmp(s.arguments.split, "train") == 0;
	mural_evaluation evaluation;
	mural_status status =
	        mural_evaluate_run(&s.config, s.report, s.comm, s.arguments.weights,
	                           train ? MURAL_SPLIT_TRAIN : MURAL_SPLIT_TEST, &options, &evaluation, &s.err);
	if (status == MURAL_OK && s.ranks->rank == 0)
		printf("accuracy %.4f, top-5 %.4f, loss %.4f over %llu images, %.1f images/s on %d rank%s\n",
		       evaluation.top1, evaluation.top5, evaluation.loss, (unsigned long long)evaluation.images,
		       (double)evaluation.images / evaluation.seconds, s.ranks->size, s.ranks->size == 1 ? "" : "s");
	return session_end(&s, status);
}
