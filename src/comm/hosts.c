/* Host files: DeepSpeed's format, read strictly.
 *
 * A line is NAME slots=COUNT; what stands behind "#" is a comment. DeepSpeed ignores what follows the count and goes on alone when
 * the file is missing; here both are errors, because the run would be another one than was meant. Names are plain: they become
 * words of commands (so none begins with "-") and of filters (so no "@" and ":").
 * SPDX-License-Identifier: MIT */
#include "comm/hosts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "mural/comm.h"

enum { FILE_MOST = 1 << 20 }; /* bytes */
enum { SHOWN = 60 }; /* bytes of a wrong word in a message */

static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

const char *mu_host_where(const mural_hosts *hosts, const mural_host *host, char *out, size_t capacity)
{
	if (hosts->file)
		snprintf(out, capacity, "%s:%d", hosts->file, host->line);
	else
		snprintf(out, capacity, "%s", host->name);
	return out;
}

bool mu_hosts_number(const char *text, size_t length, int most, int *value)
{
	*value = 0;
	for (size_t i = 0; i < length; i++) {
		if (!isdigit((unsigned char)text[i]))
			return false;
		*value = *value * 10 + (text[i] - '0');
		if (*value > most)
			return false;
	}
	return length > 0;
}

/* Place for one more, all zero; NULL without memory. */
static mural_host *grow(mural_hosts *hosts)
{
	if (hosts->n == hosts->capacity) {
		size_t capacity = hosts->capacity ? hosts->capacity * 2 : 8;
		mural_host *more = realloc(hosts->hosts, capacity * sizeof *more);
		if (!more)
			return NULL;
		hosts->hosts = more;
		hosts->capacity = capacity;
	}
	mural_host *host = &hosts->hosts[hosts->n++];
	memset(host, 0, sizeof *host);
	return host;
}

static mural_status add(mural_hosts *hosts, const char *name, size_t length, int slots, int line, mural_error *err)
{
	char where[1024];
	if (hosts->n == MURAL_HOSTS_MOST) {
		snprintf(where, sizeof where, "%s:%d", hosts->file, line);
		return mu_fail(err, MURAL_USAGE, where, "more than %d hosts", MURAL_HOSTS_MOST);
	}
	mural_host *host = grow(hosts);
	if (!host)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for %zu hosts", hosts->n + 1);
	memcpy(host->name, name, length);
	host->line = line;
	host->n_slots = slots;
	for (int s = 0; s < slots; s++)
		host->slots[s] = (short)s;
	for (size_t i = 0; i + 1 < hosts->n; i++)
		if (strcmp(hosts->hosts[i].name, host->name) == 0)
			return mu_fail(
			        err, MURAL_USAGE, mu_host_where(hosts, host, where, sizeof where),
			        "host \"%s\" stands twice, first in line %d: give it one line with all its slots",
			        host->name, hosts->hosts[i].line);
	return MURAL_OK;
}

/* The words of a line for a message: nothing that a terminal would obey. */
static void show(const char *text, size_t length, char out[SHOWN + 4])
{
	size_t n = length < SHOWN ? length : SHOWN;
	for (size_t i = 0; i < n; i++)
		out[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
	strcpy(out + n, length > SHOWN ? "..." : "");
}

static bool is_name(const char *text, size_t length)
{
	size_t most = sizeof((mural_host *)NULL)->name - 1;
	return length > 0 && length <= most && text[0] != '-' && strspn(text, LETTERS) >= length;
}

/* text: `length` bytes without a line end, comment or blanks at the ends. */
static mural_status parse_line(mural_hosts *hosts, const char *text, size_t length, int line, mural_error *err)
{
	char where[1024], shown[SHOWN + 4];
	size_t name = 0, gap;
	int slots;
	while (name < length && !isspace((unsigned char)text[name]))
		name++;
	for (gap = name; gap < length && isspace((unsigned char)text[gap]);)
		gap++;
	const char *count = text + gap;
	snprintf(where, sizeof where, "%s:%d", hosts->file, line);
	if (!is_name(text, name)) {
		show(text, name, shown);
		return mu_fail(err, MURAL_USAGE, where,
		               "expected a host's name (letters, digits, \".\", \"-\", \"_\"), found \"%s\"%s", shown,
		               memchr(text, '@', name) ? ": user names belong into ~/.ssh/config" : "");
	}
	if (length - gap < 6 || memcmp(count, "slots=", 6) != 0) {
		show(text, length, shown);
		return mu_fail(err, MURAL_USAGE, where, "expected \"%.*s slots=COUNT\", found \"%s\"", (int)name, text,
		               shown);
	}
	if (mu_hosts_number(count + 6, length - gap - 6, MURAL_HOST_SLOTS, &slots) && slots > 0)
		return add(hosts, text, name, slots, line, err);
	show(count, length - gap, shown);
	return mu_fail(err, MURAL_USAGE, where,
	               "host \"%.*s\": expected slots=COUNT with a whole number from 1 to %d and nothing behind it, "
	               "found \"%s\"",
	               (int)name, text, MURAL_HOST_SLOTS, shown);
}

static mural_status parse(mural_hosts *hosts, const char *text, size_t bytes, mural_error *err)
{
	int line = 1;
	for (size_t at = 0; at < bytes; line++) {
		const char *begin = text + at;
		const char *end = memchr(begin, '\n', bytes - at);
		size_t length = end ? (size_t)(end - begin) : bytes - at;
		at += length + 1;
		const char *comment = memchr(begin, '#', length);
		if (comment)
			length = (size_t)(comment - begin);
		while (length > 0 && isspace((unsigned char)begin[length - 1]))
			length--;
		for (; length > 0 && isspace((unsigned char)*begin); length--)
			begin++;
		if (length > 0)
			MU_TRY(parse_line(hosts, begin, length, line, err));
	}
	if (hosts->n == 0)
		return mu_fail(err, MURAL_USAGE, hosts->file,
		               "the host file names no host: expected lines \"NAME slots=COUNT\"");
	return MURAL_OK;
}

static mural_status read_file(mural_hosts *hosts, const char *path, mural_error *err)
{
	char *text;
	size_t bytes;
	hosts->file = strdup(path);
	if (!hosts->file)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the name of the host file");
	MU_TRY(mu_file_read(path, "host file", FILE_MOST, MURAL_USAGE, &text, &bytes, err));
	mural_status status = parse(hosts, text, bytes, err);
	free(text);
	return status;
}

static mural_status use_this_machine(mural_hosts *hosts, mural_error *err)
{
	int cores = mural_cores();
	return add(hosts, "localhost", strlen("localhost"), cores < MURAL_HOST_SLOTS ? cores : MURAL_HOST_SLOTS, 0,
	           err);
}

mural_status mural_hosts_open(mural_hosts **out, const mural_hosts_choice *choice, mural_error *err)
{
	*out = NULL;
	mural_hosts *hosts = calloc(1, sizeof *hosts);
	if (!hosts)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a list of hosts");
	mural_status status = choice->file ? read_file(hosts, choice->file, err) : use_this_machine(hosts, err);
	if (status == MURAL_OK)
		status = mu_hosts_choose(hosts, choice, err);
	if (status != MURAL_OK) {
		mural_hosts_free(hosts);
		return status;
	}
	*out = hosts;
	return MURAL_OK;
}

void mural_hosts_free(mural_hosts *hosts)
{
	if (!hosts)
		return;
	free(hosts->hosts);
	free(hosts->file);
	free(hosts);
}

size_t mural_hosts_count(const mural_hosts *hosts)
{
	return hosts->n;
}

const mural_host *mural_hosts_get(const mural_hosts *hosts, size_t i)
{
	return &hosts->hosts[i];
}

int mural_hosts_ranks(const mural_hosts *hosts)
{
	int ranks = 0;
	for (size_t i = 0; i < hosts->n; i++)
		ranks += hosts->hosts[i].n_slots;
	return ranks;
}

const char *mural_hosts_file(const mural_hosts *hosts)
{
	return hosts->file;
}
