/* Parts of the parent that starts ranks: what mpirun says, and what the ranks left. SPDX-License-Identifier: MIT */
#ifndef MURAL_CLI_LAUNCH_INSIDE_H
#define MURAL_CLI_LAUNCH_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "launch.h"

enum { LAUNCH_MARK = 0x1e }; /* begins a line that is a rank's message from another host */
enum { LAUNCH_MESSAGE_SIZE = 3584 }; /* more than a mural_error has; less than a pipe takes at once */

/* Everything that arrives on mpirun's stderr: lines of the ranks go on to `out` as they come, unfinished ones (a progress bar)
 * included; mpirun's own banners and diagnostics are held back, to be shown only if nothing better explains a failure. */
typedef struct launch_filter {
	FILE *out;
	const char *folder; /* where ranks' messages are kept */
	char line[4096];
	size_t used; /* of line */
	bool forwarding; /* the beginning of this line has been forwarded */
	bool had_nul; /* in this line, and left out */
	int banner_lines; /* > 0: inside a banner */
	char held[32768]; /* the first of what was held back */
	size_t held_used;
} launch_filter;

void launch_filter_feed(launch_filter *filter, const char *bytes, size_t n);
/* Nothing came for a while: forwards the beginning of a line, unless it may become one of mpirun's. */
void launch_filter_idle(launch_filter *filter);
void launch_filter_end(launch_filter *filter);

/* What mpirun says of the rank that ended first. */
typedef struct launch_death {
	int signal; /* that killed it, or 0 */
	int code; /* that it ended with, or 0; both 0: mpirun says nothing of the kind */
	int rank; /* -1 if it does not say which */
	char host[256];
} launch_death;

void launch_filter_find_death(const launch_filter *filter, launch_death *death);

/* The one message that stands for what the ranks left in `folder`. status: MURAL_OK if they left nothing. */
typedef struct launch_message {
	mural_status status;
	int rank; /* it is about, -1 if the text says so itself */
	int same; /* ranks that left the very same */
	char same_ranks[256]; /* "4-7, 9": those other than rank */
	char text[4096]; /* as mural_error_print has it, without the rank */
} launch_message;

/* A line with the mark, its end taken away: into the rank's file as if it had left it there. Changes the line. */
void launch_message_receive(const char *folder, char *line);
void launch_message_collect(launch_message *message, const char *folder, int ranks);
void launch_message_print(const launch_message *message, int ranks, FILE *out);
/* Removes the ranks' files. */
void launch_message_remove(const char *folder, int ranks);

/* Seconds by a clock that never goes back. */
double launch_now(void);
/* Fills err; returns status. */
mural_status launch_refuse(mural_error *err, mural_status status, const char *message);

/* Becomes the program words[0], found in PATH, with the null device for its input; out (-1: ours) and errors are its streams.
 * Does not return. */
void launch_become(const char *const *words, int out, int errors);

/* What mpirun needs for ranks on several hosts. */
typedef struct launch_hosts {
	char file[300]; /* a host file in its own words; "" until written */
	char **names; /* environment variables to pass on */
	size_t n_names;
} launch_hosts;

/* Writes the file into `folder` and sets the environment. Release in any case. */
mural_status launch_hosts_prepare(launch_hosts *prepared, const mural_hosts *hosts, bool open_mpi, const char *folder,
                                  mural_error *err);
void launch_hosts_release(launch_hosts *prepared);

/* mpirun's command line, and what is made for it. Zero-initialise; release in any case. */
typedef struct launch_command {
	const launch_request *request; /* borrowed */
	const char *launcher; /* "mpirun" */
	char version[512]; /* what `mpirun --version` prints first */
	bool open_mpi;
	char folder[256]; /* for messages and files, our own */
	char program[4096];
	char count[16];
	launch_hosts hosts; /* empty without hosts */
	const char **words; /* NULL at the end */
	int n_words;
	char why[256]; /* of the extra flags */
} launch_command;

/* Asks hosts if that is wanted, makes the folder, sets the environment, composes the words. */
mural_status launch_command_prepare(launch_command *command, const launch_request *request, mural_error *err);
/* On stderr. */
void launch_command_announce(const launch_command *command);
void launch_command_release(launch_command *command);

/* How often ranks are started again after one of them died. */
typedef struct launch_restarts {
	int most, done;
	bool elsewhere; /* rank 0 may be on another host, and its run's folder not known here */
} launch_restarts;

/* Ranks have died, and it has been said. If they are to be started again: says from where, waits, sets MURAL_AGAIN for them and
 * returns true. false: this is the end; *code is changed if a signal came meanwhile (`signals`: a signalfd). */
bool launch_restart(launch_restarts *restarts, const char *folder, int signals, int *code);
/* Removes the file with the run's folder. */
void launch_restart_forget(const char *folder);

/* Is it this machine? */
bool launch_is_here(const char *host);
/* Are all of them? */
bool launch_hosts_are_here(const mural_hosts *hosts);

/* Can the hosts be reached, and do they have our folder and this program? MURAL_FAILED if not reached, MURAL_USAGE for the rest. */
mural_status launch_ask_hosts(const mural_hosts *hosts, const char *program, mural_error *err);

#endif
