/* Parts of the parent that starts ranks: what mpirun says, and what the ranks left. SPDX-License-Identifier: MIT */
#ifndef MURAL_CLI_LAUNCH_INSIDE_H
#define MURAL_CLI_LAUNCH_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "mural/error.h"

/* Everything that arrives on mpirun's stderr: lines of the ranks go on to `out` as they come, unfinished ones (a progress bar)
 * included; mpirun's own banners and diagnostics are held back, to be shown only if nothing better explains a failure. */
typedef struct launch_filter {
	FILE *out;
	char line[4096];
	size_t used; /* of line */
	bool forwarding; /* the beginning of this line has been forwarded */
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

void launch_message_collect(launch_message *message, const char *folder, int ranks);
void launch_message_print(const launch_message *message, int ranks, FILE *out);
/* Removes the folder and the ranks' files. */
void launch_message_remove(const char *folder, int ranks);

#endif
