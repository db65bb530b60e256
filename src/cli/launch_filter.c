/* Telling mpirun's words from the ranks'.
 *
 * mpirun merges the stderr of all ranks with its own; only the form of a line tells them apart. Open MPI writes banners
 * between two rules of dashes and diagnostics as "[host:pid] ...", MPICH boxes of equal signs; the event library inside mpirun warns
 * of a peer that went away as "[warn] ..."; a few lines of all are known by how they begin.
 * SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "launch_inside.h"

enum { RULE = 60 }; /* characters; Open MPI's has 74, PRRTE's 76, MPICH's 83 */
enum { BANNER_LINES = 60 }; /* a banner that has not ended by then is none */

static bool is_rule(const char *line, size_t n, char c)
{
	return n >= RULE && strspn(line, (char[]){c, '\0'}) >= n;
}

/* "[host:1234] ", "[host][[5627,1],0][file.c:266:function] ", "[mpiexec@host] ", "[proxy:0:0@host] " */
static bool is_tagged(const char *line)
{
	if (line[0] != '[')
		return false;
	size_t name = strcspn(line + 1, ":@] ");
	if (name > 0 && strncmp(line + 1 + name, "][[", 3) == 0)
		return true;
	if (name == 0 || (line[1 + name] != ':' && line[1 + name] != '@'))
		return false;
	if (strncmp(line, "[mpiexec@", 9) == 0 || strncmp(line, "[proxy:", 7) == 0)
		return true;
	size_t digits = strspn(line + 2 + name, "0123456789");
	return digits > 0 && line[2 + name + digits] == ']';
}

static bool is_known(const char *line)
{
	static const char *const openings[] = {"[warn] ", /* libevent's four levels */
	                                       "[err] ",
	                                       "[msg] ",
	                                       "[debug] ",
	                                       "mpirun: Forwarding signal ",
	                                       "prterun: Forwarding signal ",
	                                       "=   ",
	                                       "Abort(",
	                                       "YOUR APPLICATION TERMINATED WITH",
	                                       "This typically refers to a problem with your application",
	                                       "Please see the FAQ page for debugging suggestions"};
	for (size_t i = 0; i < sizeof openings / sizeof *openings; i++)
		if (strncmp(line, openings[i], strlen(openings[i])) == 0)
			return true;
	return false;
}

/* Is this whole line mpirun's? Follows banners. */
static bool is_mpiruns(launch_filter *f, const char *line, size_t n)
{
	if (is_rule(line, n, '-')) {
		f->banner_lines = f->banner_lines ? 0 : 1;
		return true;
	}
	if (f->banner_lines && ++f->banner_lines <= BANNER_LINES)
		return true;
	f->banner_lines = 0;
	return is_rule(line, n, '=') || is_tagged(line) || is_known(line);
}

/* Could a line that begins so become one of mpirun's? */
static bool may_become_mpiruns(const launch_filter *f)
{
	return f->banner_lines || strchr("[-=\x1e", f->line[0]) || (f->used < 40 && strchr("AYTP", f->line[0]));
}

static void hold(launch_filter *f, const char *line, size_t n)
{
	if (f->held_used + n + 1 >= sizeof f->held)
		return;
	memcpy(f->held + f->held_used, line, n);
	f->held[f->held_used + n] = '\n';
	f->held_used += n + 1;
	f->held[f->held_used] = '\0';
}

static void forward(launch_filter *f)
{
	fwrite(f->line, 1, f->used, f->out);
	fflush(f->out);
	f->used = 0;
}

/* The line is complete, its end included. */
static void end_line(launch_filter *f)
{
	char end = f->line[f->used - 1];
	f->line[f->used - 1] = '\0';
	bool message = !f->forwarding && f->line[0] == LAUNCH_MARK;
	bool nothing = f->had_nul && f->used == 1;
	bool held = !f->forwarding && !message && !nothing && is_mpiruns(f, f->line, f->used - 1);
	if (message)
		launch_message_receive(f->folder, f->line);
	if (held)
		hold(f, f->line, f->used - 1);
	f->line[f->used - 1] = end;
	if (held || message || nothing)
		f->used = 0;
	else
		forward(f);
	f->forwarding = f->had_nul = false;
}

void launch_filter_feed(launch_filter *f, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		f->had_nul = f->had_nul || bytes[i] == '\0';
		if (bytes[i] == '\0') /* Open MPI 5 strews them */
			continue;
		f->line[f->used++] = bytes[i];
		if (bytes[i] == '\n' || bytes[i] == '\r') {
			end_line(f);
		} else if (f->used == sizeof f->line - 1) {
			forward(f); /* no banner has such lines */
			f->forwarding = true;
		}
	}
}

void launch_filter_idle(launch_filter *f)
{
	if (f->used == 0 || (!f->forwarding && may_become_mpiruns(f)))
		return;
	forward(f);
	f->forwarding = true;
}

void launch_filter_end(launch_filter *f)
{
	if (f->used || f->forwarding) /* what we say next shall not stand behind a progress bar */
		launch_filter_feed(f, "\n", 1);
}

/* The number behind `label` and blanks, looked for from `text` on; -1 if it is not there. */
static int number_after(const char *text, const char *label)
{
	const char *at = text ? strstr(text, label) : NULL;
	if (!at)
		return -1;
	at += strlen(label);
	at += strspn(at, " ");
	return isdigit((unsigned char)*at) ? atoi(at) : -1;
}

static void word_after(const char *text, const char *label, char *word, size_t capacity)
{
	const char *at = strstr(text, label);
	if (!at)
		return;
	at += strlen(label);
	snprintf(word, capacity, "%.*s", (int)strcspn(at, " "), at);
}

static int at_least(int n, int least)
{
	return n < least ? least : n;
}

/* "... noticed that process rank 1 with PID 71 on node c12 exited on signal 9 (Killed)." or
 * "... The first process to do so was:\n  Process name: [[5627,1],1]\n  Exit code:    3", in Open MPI 5 with
 * "[prterun-c12-5627@1,1]" */
static bool find_in_open_mpi(const char *text, launch_death *death)
{
	const char *killed = strstr(text, "noticed that process rank ");
	if (killed && number_after(killed, "exited on signal") > 0) {
		death->signal = number_after(killed, "exited on signal");
		death->rank = number_after(killed, "process rank");
		word_after(killed, "on node ", death->host, sizeof death->host);
		return true;
	}
	const char *ended = strstr(text, "Process name: [");
	if (!ended || number_after(ended, "Exit code:") <= 0)
		return false;
	death->code = number_after(ended, "Exit code:");
	death->rank = number_after(ended, strncmp(ended, "Process name: [[", 16) == 0 ? "]," : "@1,");
	return true;
}

/* "=   RANK 1 PID 71 RUNNING AT c12\n=   KILLED BY SIGNAL: 9 (Killed)"; older ones name no rank and say "EXIT CODE: 9" of both,
 * and "(signal 9)" below the box. */
static void find_in_mpich(const char *text, launch_death *death)
{
	const char *box = strstr(text, "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES");
	if (!box)
		return;
	death->signal = at_least(number_after(box, "KILLED BY SIGNAL:"), 0);
	if (death->signal == 0)
		death->signal = at_least(number_after(box, "(signal"), 0);
	if (death->signal == 0)
		death->code = at_least(number_after(box, "EXIT CODE:"), 0);
	death->rank = number_after(box, "RANK ");
	word_after(box, "RUNNING AT ", death->host, sizeof death->host);
}

void launch_filter_find_death(const launch_filter *f, launch_death *death)
{
	/* Open MPI 5 breaks its lines anywhere. */
	char text[sizeof f->held];
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = f->held[i] == '\n' ? ' ' : f->held[i];
	*death = (launch_death){.rank = -1};
	if (!find_in_open_mpi(text, death))
		find_in_mpich(text, death);
}
