/* mural train. SPDX-License-Identifier: MIT */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "mural/comm.h"
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
	run_arguments_help(out, RUN_TRAIN);
	fprintf(out, "\nconfiguration (over the file, which is over the preset):\n");
	mural_config_help_options(out, false);
}

/* The best weights by validation, and what the last ones are called beside them. */
static const char *print_best(const mural_train_result *result)
{
	const mural_best_weights *best = &result->best;
	if (result->stopped_early)
		printf("stopped early: the validation images saw nothing better since epoch %llu, step %llu\n",
		       (unsigned long long)best->epoch, (unsigned long long)best->step);
	if (best->step == result->steps)
		return " of the last weights, the best by validation";
	if (best->step > 0)
		printf("test accuracy %.4f of the best weights by validation, of epoch %llu, step %llu; %s\n",
		       best->test_accuracy, (unsigned long long)best->epoch, (unsigned long long)best->step,
		       best->checkpoint);
	return result->validated ? " of the last weights" : "";
}

static void print_summary(const mural_train_result *result)
{
	const char *which = print_best(result);
	if (!isnan(result->test_accuracy)) /* not --measure-only */
		printf("test accuracy %.4f%s, ", result->test_accuracy, which);
	printf("train loss %.4f, %.1f images/s on %d rank%s, %.1f s; %s/result.json\n", result->train_loss,
	       result->images_per_second, result->ranks, result->ranks == 1 ? "" : "s", result->seconds,
	       result->run_dir);
}

static volatile sig_atomic_t stop;

static void ask_stop(int number)
{
	(void)number;
	stop = 1;
}

static bool stop_is_asked(void)
{
	return stop;
}

/* What is ignored stays so: a shell does that for jobs in the background. */
static void listen(int number, int flags)
{
	struct sigaction action = {.sa_handler = ask_stop, .sa_flags = SA_RESTART | flags}, before;
	sigemptyset(&action.sa_mask);
	if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(number, &action, NULL);
}

/* Alone, nobody turns Ctrl-C into SIGUSR1, so we do. Slurm sends SIGTERM to all ranks and kills them half a minute later
 * (mpirun would make it two seconds). A second one has its usual effect. */
static void listen_as_launched(void)
{
	const char *launcher;
	bool alone = mural_comm_launcher(&launcher, NULL) == 1;
	if (alone)
		listen(SIGINT, (int)SA_RESETHAND);
	if (alone || strcmp(launcher, "srun") == 0)
		listen(SIGTERM, (int)SA_RESETHAND);
}

/* In a restart, the run's folder. */
static const char *folder_of_restart(void)
{
	const char *folder = getenv("MURAL_PARENT") ? getenv("MURAL_AGAIN") : NULL;
	return folder && *folder ? folder : NULL;
}

int command_train(int argc, char **argv)
{
	session s;
	int code;
	listen(SIGUSR1, 0); /* a checkpoint and the end; before the ranks find each other, which takes a while */
	if (!session_begin(&s, argc, argv, false, help, &code))
		return code;
	listen_as_launched();
	const mural_run_options options = {
	        .progress = s.arguments.quiet ? NULL : stderr,
	        .result_path = s.arguments.result,
	        .overwrite = s.arguments.overwrite,
	        .warnings = stderr,
	        .resume = s.arguments.resume,
	        .resume_if_any = s.arguments.resume_if_any,
	        .again_in = folder_of_restart(),
	        .opened = mural_report_run,
	        .stop_asked = stop_is_asked,
	};
	mural_train_result result;
	mural_status status = mural_train_run(&s.config, s.report, s.comm, &options, &result, &s.err);
	if (status == MURAL_OK && s.ranks->rank == 0)
		print_summary(&result);
	return session_end(&s, status);
}
