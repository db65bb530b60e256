/* What train and eval do before and after their work: launch or join the ranks, settle the configuration, report.
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_CLI_SESSION_H
#define MURAL_CLI_SESSION_H

#include "command.h"
#include "mural/comm.h"

typedef struct session {
	run_arguments arguments;
	rank_choice choice;
	mural_comm *comm;
	const mural_comm_facts *ranks;
	mural_config config;
	mural_config_report *report; /* rank 0 only */
	mural_error err;
} session;

/* Returns true when the command should do its work; false when all is said and *code is the exit code (help, --show-config, the
 * parent of launched ranks, an error already reported). help: prints the command's text. */
bool session_begin(session *s, int argc, char **argv, bool evaluation, void (*help)(FILE *), int *code);

/* Reports s->err once over all ranks, closes, and returns the exit code. */
int session_end(session *s, mural_status status);

#endif
