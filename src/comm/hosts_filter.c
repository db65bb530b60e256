/* Which of the hosts: DeepSpeed's --include and --exclude, and the limits.
 *
 * A filter is HOST or HOST:SLOT,SLOT..., joined by "@". An include without slots takes all of them, an exclude the whole host.
 * Slots are marked in place, first all checks, then what is not wanted goes; so order and numbers stay the file's.
 * SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "comm/hosts.h"

typedef struct filter {
	mural_hosts *hosts;
	const char *option; /* "--include" */
	bool include;
	bool *named; /* hosts that the filter has */
} filter;

/* "argument --include", and the host's line below it. */
static const char *place(const filter *f, const mural_host *host, char *out, size_t capacity)
{
	int n = snprintf(out, capacity, "argument %s%s", f->option, host && f->hosts->file ? "\n" : "");
	if (host && f->hosts->file)
		mu_host_where(f->hosts, host, out + n, capacity - (size_t)n);
	return out;
}

static mural_status unknown_host(const filter *f, const char *name, mural_error *err)
{
	char where[1024];
	const char **names = calloc(f->hosts->n, sizeof *names);
	if (!names)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for %zu names", f->hosts->n);
	for (size_t i = 0; i < f->hosts->n; i++)
		names[i] = f->hosts->hosts[i].name;
	const char *near = mu_nearest(name, names, f->hosts->n);
	snprintf(where, sizeof where, "argument %s%s%s", f->option, f->hosts->file ? "\n" : "",
	         f->hosts->file ? f->hosts->file : "");
	mural_status status =
	        mu_fail(err, MURAL_USAGE, where, "there is no host \"%.60s\"%s%s%s%s", name,
	                f->hosts->file ? " in the host file" : ": without a host file, only \"localhost\"",
	                near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
	free(names);
	return status;
}

static mural_status find_host(const filter *f, const char *name, size_t *i, mural_error *err)
{
	char where[1024];
	if (!*name)
		return mu_fail(err, MURAL_USAGE, place(f, NULL, where, sizeof where),
		               "expected hosts as \"HOST@HOST:SLOT,SLOT\", found an empty name");
	for (*i = 0; *i < f->hosts->n; ++*i)
		if (strcmp(f->hosts->hosts[*i].name, name) == 0)
			break;
	if (*i == f->hosts->n)
		return unknown_host(f, name, err);
	if (f->named[*i])
		return mu_fail(err, MURAL_USAGE, place(f, &f->hosts->hosts[*i], where, sizeof where),
		               "host \"%s\" stands twice in the filter: name it once with all its slots", name);
	f->named[*i] = true;
	return MURAL_OK;
}

/* Marks the slots in "0,2". */
static mural_status mark(const filter *f, const mural_host *host, const char *list, bool *marked, mural_error *err)
{
	char where[1024];
	int slot;
	for (const char *at = list;; at++) {
		size_t length = strcspn(at, ",");
		if (!mu_hosts_number(at, length, MURAL_HOST_SLOTS, &slot))
			return mu_fail(err, MURAL_USAGE, place(f, host, where, sizeof where),
			               "host \"%s\": expected slots as whole numbers and commas, found \"%.40s\"",
			               host->name, list);
		if (slot >= host->n_slots)
			return mu_fail(err, MURAL_USAGE, place(f, host, where, sizeof where),
			               "host \"%s\" has no slot %d: its slots are 0 to %d", host->name, slot,
			               host->n_slots - 1);
		if (marked[slot])
			return mu_fail(err, MURAL_USAGE, place(f, host, where, sizeof where),
			               "host \"%s\": slot %d stands twice", host->name, slot);
		marked[slot] = true;
		at += length;
		if (!*at)
			return MURAL_OK;
	}
}

static void keep_marked(mural_host *host, const bool *marked, bool wanted)
{
	int n = 0;
	for (int s = 0; s < host->n_slots; s++)
		if (marked[s] == wanted)
			host->slots[n++] = (short)s;
	host->n_slots = n;
}

static mural_status take_host(const filter *f, char *text, mural_error *err)
{
	bool marked[MURAL_HOST_SLOTS] = {false};
	size_t i = 0;
	char *list = strchr(text, ':');
	if (list)
		*list++ = '\0';
	MU_TRY(find_host(f, text, &i, err));
	mural_host *host = &f->hosts->hosts[i];
	if (list) {
		MU_TRY(mark(f, host, list, marked, err));
		keep_marked(host, marked, f->include);
	} else if (!f->include) {
		host->n_slots = 0;
	}
	return MURAL_OK;
}

/* Removes hosts that have no slot left, or that the include does not name. */
static void sweep(mural_hosts *hosts, const bool *named)
{
	size_t n = 0;
	for (size_t i = 0; i < hosts->n; i++)
		if (hosts->hosts[i].n_slots > 0 && (!named || named[i]))
			hosts->hosts[n++] = hosts->hosts[i];
	hosts->n = n;
}

static mural_status apply(mural_hosts *hosts, const char *option, bool include, const char *text, mural_error *err)
{
	mural_status status = MURAL_OK;
	filter f = {hosts, option, include, calloc(hosts->n, sizeof(bool))};
	char *copy = strdup(text), *next = copy, *piece;
	char where[1024];
	if (!f.named || !copy) {
		status = mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a filter of %zu hosts", hosts->n);
		goto out;
	}
	while ((piece = strsep(&next, "@")))
		MU_TRY_OUT(take_host(&f, piece, err));
	sweep(hosts, include ? f.named : NULL);
	if (hosts->n == 0)
		status = mu_fail(err, MURAL_USAGE, place(&f, NULL, where, sizeof where), "no host is left%s%s",
		                 hosts->file ? " of those in " : "", hosts->file ? hosts->file : "");
out:
	free(copy);
	free(f.named);
	return status;
}

static mural_status limit_nodes(mural_hosts *hosts, int nodes, mural_error *err)
{
	char where[1024];
	snprintf(where, sizeof where, "argument --num-nodes\n%s", hosts->file ? hosts->file : "no --hostfile");
	if ((size_t)nodes > hosts->n)
		return mu_fail(err, MURAL_USAGE, where, "expected at most %zu, the number of hosts, got %d", hosts->n,
		               nodes);
	hosts->n = (size_t)nodes;
	return MURAL_OK;
}

static mural_status limit_slots(mural_hosts *hosts, int slots, mural_error *err)
{
	char where[1024], line[1024];
	for (size_t i = 0; i < hosts->n; i++) {
		mural_host *host = &hosts->hosts[i];
		snprintf(where, sizeof where, "argument --num-gpus\n%s", mu_host_where(hosts, host, line, sizeof line));
		if (slots > host->n_slots)
			return mu_fail(err, MURAL_USAGE, where, "expected at most %d, the slots of host \"%s\", got %d",
			               host->n_slots, host->name, slots);
		host->n_slots = slots;
	}
	return MURAL_OK;
}

/* The first slots of the first hosts. */
static mural_status limit_ranks(mural_hosts *hosts, int ranks, mural_error *err)
{
	char where[1024];
	int there = mural_hosts_ranks(hosts);
	const mural_host *first = &hosts->hosts[0], *last = &hosts->hosts[hosts->n - 1];
	snprintf(where, sizeof where, "argument --ranks\n%s:%d-%d", hosts->file ? hosts->file : "", first->line,
	         last->line);
	if (!hosts->file)
		*strchr(where, '\n') = '\0';
	if (ranks > there)
		return mu_fail(err, MURAL_USAGE, where, "expected at most %d, the slots of %zu host%s, got %d", there,
		               hosts->n, hosts->n == 1 ? "" : "s", ranks);
	for (size_t i = 0; i < hosts->n; i++) {
		mural_host *host = &hosts->hosts[i];
		if (host->n_slots > ranks)
			host->n_slots = ranks;
		ranks -= host->n_slots;
	}
	sweep(hosts, NULL);
	return MURAL_OK;
}

mural_status mu_hosts_choose(mural_hosts *hosts, const mural_hosts_choice *choice, mural_error *err)
{
	bool filtered = choice->include || choice->exclude;
	if (choice->include && choice->exclude)
		return mu_fail(err, MURAL_USAGE, "argument --exclude",
		               "--include and --exclude do not go together: say what to take, or what to leave out");
	if (filtered && (choice->nodes > 0 || choice->slots_per_node > 0))
		return mu_fail(
		        err, MURAL_USAGE, choice->nodes > 0 ? "argument --num-nodes" : "argument --num-gpus",
		        "limits do not go together with --include and --exclude, which already choose hosts and slots");
	if (choice->include)
		MU_TRY(apply(hosts, "--include", true, choice->include, err));
	if (choice->exclude)
		MU_TRY(apply(hosts, "--exclude", false, choice->exclude, err));
	if (choice->nodes > 0)
		MU_TRY(limit_nodes(hosts, choice->nodes, err));
	if (choice->slots_per_node > 0)
		MU_TRY(limit_slots(hosts, choice->slots_per_node, err));
	return choice->ranks > 0 ? limit_ranks(hosts, choice->ranks, err) : MURAL_OK;
}
