/* Launch, configuration, failure. SPDX-License-Identifier: MIT */
#include "session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launch.h"
#include "mural/engine.h"

static int fail_alone(session *s)
{
	mural_report_failure(&s->err, 0, 1);
	rank_choice_release(&s->choice);
	free(s->arguments.argv);
	return mural_exit_code(s->err.status);
}

static mural_status resolve(session *s, int ranks, bool evaluation)
{
	const mural_config_sources sources = {
	        .file = s->arguments.config_file,
	        .argc = s->arguments.argc,
	        .argv = s->arguments.argv,
	        .ranks = ranks,
	        .weights = s->arguments.weights,
	        .evaluation = evaluation,
	};
	return mural_config_resolve(&s->config, &s->report, &sources, &s->err);
}

static void print_warnings(const session *s)
{
	for (size_t i = 0; i < mural_config_warnings(s->report); i++)
		fprintf(stderr, "mural: warning: %s\n", mural_config_warning(s->report, i));
}

/* --show-config: what these ranks would do, without starting any. */
static int show_config(session *s, bool evaluation)
{
	if (resolve(s, s->choice.ranks > 0 ? s->choice.ranks : 1, evaluation) != MURAL_OK)
		return fail_alone(s);
	rank_choice_release(&s->choice);
	print_warnings(s);
	mural_config_print(&s->config, s->report, stdout);
	mural_error unsupported = {0};
	if (mural_config_check_supported(&s->config, s->report, &unsupported) != MURAL_OK) {
		fprintf(stderr, "mural: note: this build cannot run it: %s\n", unsupported.message);
		if (unsupported.where[0])
			fprintf(stderr, "       %s\n", unsupported.where);
	}
	mural_config_report_free(s->report);
	free(s->arguments.argv);
	return 0;
}

/* The ranks read the configuration again: a pipe would be empty, or not be there, or keep them waiting. */
static mural_status check_rereadable(session *s)
{
	struct stat facts;
	const char *file = s->arguments.config_file;
	if (!file || stat(file, &facts) != 0 || S_ISDIR(facts.st_mode))
		return MURAL_OK; /* its reader has better words */
	if (S_ISREG(facts.st_mode) && strncmp(file, "/dev/", 5) != 0)
		return MURAL_OK;
	s->err.status = MURAL_USAGE;
	snprintf(s->err.where, sizeof s->err.where, "argument --config");
	snprintf(s->err.message, sizeof s->err.message,
	         "'%.300s' can be read once only, and with --ranks each start reads the configuration again: save it "
	         "in a "
	         "file",
	         file);
	return MURAL_USAGE;
}

/* Checks before ranks are started, so that a mistake is told once and at once. */
static int launch(session *s, int argc, char **argv, bool evaluation)
{
	if (check_rereadable(s) != MURAL_OK || resolve(s, s->choice.ranks, evaluation) != MURAL_OK ||
	    mural_config_check_supported(&s->config, s->report, &s->err) != MURAL_OK)
		return fail_alone(s);
	mural_config_report_free(s->report);
	free(s->arguments.argv);
	int code = rank_choice_start(&s->choice, &s->arguments, argc, argv, !evaluation);
	rank_choice_release(&s->choice);
	return code;
}

/* Rank 0 resolves; everybody gets its struct or learns why there is none. */
static mural_status settle(session *s, bool evaluation)
{
	mural_status status = MURAL_OK;
	int wanted = s->choice.ranks;
	if (wanted > 0 && wanted != s->ranks->size) {
		status = s->err.status = MURAL_USAGE;
		snprintf(s->err.message, sizeof s->err.message,
		         "argument --ranks: expected %d, the number of ranks that the launcher started, got %d",
		         s->ranks->size, wanted);
	} else if (s->ranks->rank == 0) {
		status = resolve(s, s->ranks->size, evaluation);
		if (status == MURAL_OK)
			status = mural_config_check_supported(&s->config, s->report, &s->err);
	}
	status = mural_config_share(&s->config, s->comm, status, &s->err);
	if (status == MURAL_OK && s->report)
		print_warnings(s);
	return status;
}

/* In another thread, while this one may be anywhere. */
static void report_lost(const mural_error *err, void *argument)
{
	const session *s = argument;
	mural_report_failure(err, s->ranks->rank, s->ranks->size);
}

/* Only the parent of ranks can start them again. */
static mural_status check_restarts(session *s)
{
	bool launched = mural_comm_launcher(NULL, NULL) != 1;
	if (s->arguments.max_restarts == 0 || s->choice.start || (launched && getenv("MURAL_PARENT")))
		return MURAL_OK;
	s->err.status = MURAL_USAGE;
	snprintf(s->err.where, sizeof s->err.where, "argument --max-restarts");
	snprintf(s->err.message, sizeof s->err.message, "only ranks that --ranks starts are started again; %s",
	         launched ? "under your own mpirun or srun let the job's script do it, with --resume-if-any"
	                  : "give --ranks 2 or more");
	return MURAL_USAGE;
}

bool session_begin(session *s, int argc, char **argv, bool evaluation, void (*help)(FILE *), int *code)
{
	*s = (session){0};
	if (run_arguments_parse(&s->arguments, argc, argv, evaluation ? RUN_EVAL : RUN_TRAIN, &s->err) != MURAL_OK) {
		*code = fail_alone(s);
		return false;
	}
	const run_arguments *arguments = &s->arguments;
	if (arguments->help || arguments->help_config) {
		if (arguments->help)
			help(stdout);
		else
			mural_config_help(stdout, false);
		free(s->arguments.argv);
		*code = 0;
		return false;
	}
	if (rank_choice_make(&s->choice, arguments, &s->err) != MURAL_OK) {
		*code = fail_alone(s);
		return false;
	}
	if (arguments->show_config) {
		*code = show_config(s, evaluation);
		return false;
	}
	if (check_restarts(s) != MURAL_OK) {
		*code = fail_alone(s);
		return false;
	}
	if (s->choice.start) {
		*code = launch(s, argc, argv, evaluation);
		return false;
	}
	if (mural_comm_open(&s->comm, "auto", &s->err) != MURAL_OK) {
		*code = fail_alone(s);
		return false;
	}
	s->ranks = mural_comm_get_facts(s->comm);
	mural_comm_on_lost(s->comm, report_lost, s);
	mural_status status = settle(s, evaluation);
	if (status == MURAL_OK)
		return true;
	*code = session_end(s, status);
	return false;
}

int session_end(session *s, mural_status status)
{
	if (status != MURAL_OK)
		mural_report_failure(&s->err, s->ranks->rank, s->ranks->size);
	if (s->report && status == MURAL_OK)
		print_warnings(s);
	mural_config_report_free(s->report);
	free(s->arguments.argv);
	/* mpirun passes on the code of whichever rank ends first. */
	int code = mural_exit_code(status == MURAL_PEER && s->err.cause != MURAL_OK ? s->err.cause : status);
	/* A failure that the others may not know of: they must not be left waiting. */
	if (status != MURAL_OK && !s->err.has_rank && s->ranks->size > 1)
		mural_comm_abort(s->comm, code);
	mural_comm_close(s->comm);
	return code;
}
