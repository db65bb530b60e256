/* mural train. SPDX-License-Identifier: MIT */
#include "mural/run.h"
#include "session.h"

static void help(FILE *out)
{
	fprintf(out, "usage: mural train [OPTIONS]\n"
	             "Trains a Vision Transformer on this machine or under mpirun or srun.\n\n"
	             "  mural train --model vit_ti_4 --image-size 28 --channels 1 --classes 10 --data fashion-mnist "
	             "--ranks 2\n"
	             "  mural train --config ds_config.json --run-dir runs/first\n"
	             "  mpirun -n 4 mural train --config ds_config.json\n\n"
	             "options:\n");
	run_arguments_help(out, false);
	fprintf(out, "\nconfiguration (over the file, which is over the preset):\n");
	mural_config_help_options(out);
}

static void print_summary(const mural_train_result *result)
{
	printf("test accuracy %.4f, train loss %.4f, %.1f images/s on %d rank%s, %.1f s; %s/result.json\n",
	       result->test_accuracy, result->train_loss, result->images_per_second, result->ranks,
	       result->ranks == 1 ? "" : "s", result->seconds, result->run_dir);
}

int command_train(int argc, char **argv)
{
	session s;
	int code;
	if (!session_begin(&s, argc, argv, false, help, &code))
		return code;
	const mural_run_options options = {
	        .progress = s.arguments.quiet ? NULL : stderr,
	        .result_path = s.arguments.result,
	        .overwrite = s.arguments.overwrite,
	};
	mural_train_result result;
	mural_status status = mural_train_run(&s.config, s.report, s.comm, &options, &result, &s.err);
	if (status == MURAL_OK && s.ranks->rank == 0)
		print_summary(&result);
	return session_end(&s, status);
}
