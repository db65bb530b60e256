/* What ranks leave for their parent, and the one message it makes of that. SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"
#include "launch_inside.h"
#include "mural/comm.h"

static const char PREFIX[] = "mural: "; /* of mural_error_print */
enum { NOBODY = -1 }; /* no rank is about to be named in front of a message */
enum { NEW_LINE = 0x1f }; /* in a message that travels as one line */

static void file_name(char *path, size_t capacity, const char *folder, int rank)
{
	snprintf(path, capacity, "%s/rank-%d.txt", folder, rank);
}

/* A rank's file: only the first message counts. False if the folder is not there, as on another host. */
static bool write_file(const char *folder, int rank, const char *text)
{
	char path[4096];
	file_name(path, sizeof path, folder, rank);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return access(path, F_OK) == 0;
	fputs(text, file);
	return fclose(file) == 0;
}

/* From another host: one line on stderr, so that no other rank's words come between, for launch_message_receive. */
static void send(int rank, const char *text)
{
	char line[LAUNCH_MESSAGE_SIZE + 32];
	int n = snprintf(line, sizeof line - 1, "%c%d %s", LAUNCH_MARK, rank, text);
	for (int i = 0; i < n; i++)
		if (line[i] == '\n')
			line[i] = NEW_LINE;
	line[n] = '\n';
	fwrite(line, 1, (size_t)n + 1, stderr);
}

void launch_message_receive(const char *folder, char *line)
{
	char *text;
	long rank = strtol(line + 1, &text, 10);
	if (*text != ' ' || rank < 0 || rank > INT_MAX)
		return;
	for (char *c = ++text; *c; c++)
		if (*c == NEW_LINE)
			*c = '\n';
	write_file(folder, (int)rank, text);
}

static void leave_message(const char *folder, const mural_error *err, int rank)
{
	char text[LAUNCH_MESSAGE_SIZE] = "";
	mural_error plain = *err;
	plain.has_rank = false;
	FILE *out = fmemopen(text, sizeof text, "w");
	if (!out)
		return;
	/* A failure of another rank that nobody agreed on, because that rank is dead or stuck: the words name it. */
	bool of_another = err->status == MURAL_PEER && !err->has_rank;
	fprintf(out, "%d %d\n", (int)err->status, of_another ? NOBODY : err->has_rank ? err->rank : rank);
	mural_error_print(&plain, out);
	fclose(out);
	if (!write_file(folder, rank, text))
		send(rank, text);
}

/* Without a parent somebody has to speak, and only one. */
static bool is_mine_to_tell(const mural_error *err, int rank, bool opened)
{
	if (rank == 0)
		return true;
	if (err->has_rank)
		return false; /* agreed on: rank 0 has the lowest rank's message */
	/* Before the ranks could talk, all find the same mistakes; what only this host has is told here. */
	return opened || err->status != MURAL_USAGE;
}

void mural_report_failure(const mural_error *err, int rank, int size)
{
	bool opened = size > 1;
	if (!opened)
		mural_comm_launcher(NULL, &rank);
	const char *folder = getenv("MURAL_ERROR_DIR");
	if (getenv("MURAL_PARENT") && folder)
		leave_message(folder, err, rank);
	else if (is_mine_to_tell(err, rank, opened))
		mural_error_print(err, stderr);
}

/* Returns MURAL_OK if there is no such file, or none that we wrote. */
static mural_status read_message(const char *folder, int file_rank, int *rank, char *text, size_t capacity)
{
	char path[4096];
	int status = MURAL_OK;
	file_name(path, sizeof path, folder, file_rank);
	FILE *file = fopen(path, "r");
	if (!file)
		return MURAL_OK;
	if (fscanf(file, "%d %d", &status, rank) != 2 || fgetc(file) != '\n')
		status = MURAL_OK;
	text[fread(text, 1, capacity - 1, file)] = '\0';
	fclose(file);
	return status > MURAL_OK && status <= MURAL_STOPPED ? (mural_status)status : MURAL_OK;
}

static void add_range(char *list, size_t capacity, int first, int last)
{
	size_t used = strlen(list);
	const char *comma = used ? ", " : "";
	if (first == last)
		snprintf(list + used, capacity - used, "%s%d", comma, first);
	else
		snprintf(list + used, capacity - used, "%s%d-%d", comma, first, last);
}

/* Counts the ranks that left message->text, and lists those other than its own. */
static void merge(launch_message *m, const char *folder, int ranks)
{
	char text[sizeof m->text];
	int first = -1, about;
	for (int r = 0; r <= ranks; r++) {
		bool same = r < ranks && read_message(folder, r, &about, text, sizeof text) == m->status &&
		            strcmp(text, m->text) == 0;
		m->same += same;
		if (same && r != m->rank && first < 0)
			first = r;
		if ((!same || r == m->rank) && first >= 0) {
			add_range(m->same_ranks, sizeof m->same_ranks, first, r - 1);
			first = -1;
		}
	}
}

void launch_message_collect(launch_message *m, const char *folder, int ranks)
{
	char text[sizeof m->text];
	*m = (launch_message){.status = MURAL_OK};
	for (int r = 0; r < ranks; r++) {
		int about = r;
		mural_status status = read_message(folder, r, &about, text, sizeof text);
		/* The lowest rank that failed itself; one that only knows of another's failure is second best. */
		if (status == MURAL_OK || (m->status != MURAL_OK && status == MURAL_PEER))
			continue;
		m->status = status;
		m->rank = about;
		memcpy(m->text, text, sizeof text);
		if (status != MURAL_PEER)
			break;
	}
	if (m->status != MURAL_OK)
		merge(m, folder, ranks);
}

void launch_message_print(const launch_message *m, int ranks, FILE *out)
{
	size_t prefix = strlen(PREFIX);
	if (m->rank == NOBODY || m->same == ranks || strncmp(m->text, PREFIX, prefix) != 0) {
		fputs(m->text, out);
		return;
	}
	fprintf(out, "%srank %d of %d: %s", PREFIX, m->rank, ranks, m->text + prefix);
	if (m->same_ranks[0] && m->status != MURAL_PEER)
		fprintf(out, "       same on ranks %s\n", m->same_ranks);
}

void launch_message_remove(const char *folder, int ranks)
{
	char path[4096];
	for (int r = 0; r < ranks; r++) {
		file_name(path, sizeof path, folder, r);
		unlink(path);
	}
}
