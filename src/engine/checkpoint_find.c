/* The sets of a run's folder. A name is a set's only as "step-" and digits: what is being written or removed has ".part" behind
 * it and is never looked at.
 * SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "engine/checkpoint.h"

#define FOLDER "checkpoints"
#define PREFIX "step-"
#define UNFINISHED ".part"
#define LATEST "latest"
#define BEST "best"

/* The number in "step-00000123"; false for any other name. */
static bool step_of(const char *name, uint64_t *step)
{
	char *end;
	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
		return false;
	name += strlen(PREFIX);
	if (strlen(name) < 8 || strspn(name, "0123456789") != strlen(name))
		return false;
	errno = 0;
	*step = strtoull(name, &end, 10);
	return errno == 0;
}

static bool is_leftover(const char *name)
{
	size_t n = strlen(name), ending = strlen(UNFINISHED);
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && n > ending && strcmp(name + n - ending, UNFINISHED) == 0;
}

mural_status mu_checkpoint_path(char set[MURAL_CHECKPOINT_PATH], const char *run_dir, uint64_t step, mural_error *err)
{
	/* Room for ".part" and the like stays. */
	int n = snprintf(set, MURAL_CHECKPOINT_PATH, "%s/" FOLDER "/" PREFIX "%08" PRIu64, run_dir, step);
	if (n > 0 && n < MURAL_CHECKPOINT_PATH - 16)
		return MURAL_OK;
	return mu_fail(err, MURAL_FAILED, NULL, "the path '%.40s...' is too long for checkpoints", run_dir);
}

/* The last part of a path, which may end in slashes; *before becomes where it begins. */
static const char *last_part(const char *path, char part[MU_CHECKPOINT_NAME], size_t *before)
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		n--;
	size_t from = n;
	while (from > 0 && path[from - 1] != '/')
		from--;
	*before = from;
	snprintf(part, MU_CHECKPOINT_NAME, "%.*s", (int)(n - from), path + from);
	return part;
}

void mu_checkpoint_run_of(char run_dir[MURAL_CHECKPOINT_PATH], const char *set)
{
	char part[MU_CHECKPOINT_NAME];
	size_t before;
	run_dir[0] = '\0';
	last_part(set, part, &before);
	char folder[MURAL_CHECKPOINT_PATH];
	snprintf(folder, sizeof folder, "%.*s", (int)before, set);
	if (strcmp(last_part(folder, part, &before), FOLDER) != 0)
		return;
	snprintf(run_dir, MURAL_CHECKPOINT_PATH, "%.*s", before ? (int)before : 1, before ? folder : ".");
	for (size_t n = strlen(run_dir); n > 1 && run_dir[n - 1] == '/'; n--)
		run_dir[n - 1] = '\0';
}

static int falling(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? 1 : -(*x > *y);
}

/* Steps of the sets below a run's folder, the newest first; the caller frees. NULL and 0 if there are none. */
static uint64_t *list_sets(const char *run_dir, size_t *n)
{
	char path[MU_CHECKPOINT_FILE];
	uint64_t *steps = NULL, step;
	*n = 0;
	snprintf(path, sizeof path, "%s/" FOLDER, run_dir);
	DIR *folder = opendir(path);
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		if (!step_of(entry->d_name, &step))
			continue;
		uint64_t *longer = realloc(steps, (*n + 1) * sizeof *steps);
		if (!longer)
			break;
		steps = longer;
		steps[(*n)++] = step;
	}
	if (folder)
		closedir(folder);
	if (*n)
		qsort(steps, *n, sizeof *steps, falling);
	return steps;
}

bool mu_checkpoint_any(const char *run_dir)
{
	size_t n;
	free(list_sets(run_dir, &n));
	return n > 0;
}

mural_status mural_checkpoint_verify(const char *set, mural_error *err)
{
	mu_manifest manifest;
	mural_status status = mu_manifest_read(&manifest, set, err);
	if (status == MURAL_OK)
		status = mu_manifest_verify(&manifest, set, err);
	mu_manifest_release(&manifest);
	return status;
}

/* A line of choice->refused. */
MU_PRINTF(2, 3) static void refuse(mural_checkpoint_choice *choice, const char *format, ...)
{
	size_t used = strlen(choice->refused);
	va_list arguments;
	if (used && used + 1 < sizeof choice->refused)
		choice->refused[used++] = '\n';
	va_start(arguments, format);
	vsnprintf(choice->refused + used, sizeof choice->refused - used, format, arguments);
	va_end(arguments);
}

/* Moves the set that `latest` names to the front. */
static void prefer_latest(mural_checkpoint_choice *choice, const char *run_dir, uint64_t *steps, size_t n)
{
	char path[MU_CHECKPOINT_FILE], *text;
	size_t bytes, i = 0;
	uint64_t step;
	mural_error err = {0};
	snprintf(path, sizeof path, "%s/" FOLDER "/" LATEST, run_dir);
	if (mu_file_read(path, "name of the latest checkpoint", 256, MURAL_DATA, &text, &bytes, &err) != MURAL_OK) {
		refuse(choice, "%s: %s", path, err.message);
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	bool named = step_of(text, &step);
	while (named && i < n && steps[i] != step)
		i++;
	if (!named || i == n) {
		refuse(choice, "%s: names '%.60s', and there is no such set", path, text);
	} else {
		memmove(steps + 1, steps, i * sizeof *steps);
		steps[0] = step;
	}
	free(text);
}

static mural_status choose(mural_checkpoint_choice *choice, const char *run_dir, uint64_t *steps, size_t n,
                           mural_error *err)
{
	char set[MURAL_CHECKPOINT_PATH];
	prefer_latest(choice, run_dir, steps, n);
	for (size_t i = 0; i < n; i++) {
		mural_error why = {0};
		MU_TRY(mu_checkpoint_path(set, run_dir, steps[i], err));
		mural_status status = mural_checkpoint_verify(set, &why);
		if (status == MURAL_OK) {
			memcpy(choice->set, set, sizeof set);
			choice->step = steps[i];
			choice->found = true;
			return MURAL_OK;
		}
		refuse(choice, "%s: %s", why.where, why.message);
	}
	return mu_fail(err, MURAL_DATA, choice->refused, "none of the %zu checkpoint%s of '%s' is whole", n,
	               n == 1 ? "" : "s", run_dir);
}

mural_status mural_checkpoint_find(mural_checkpoint_choice *choice, const char *path, mural_error *err)
{
	char part[MU_CHECKPOINT_NAME];
	size_t before, n;
	*choice = (mural_checkpoint_choice){0};
	if (strlen(path) >= MURAL_CHECKPOINT_PATH - 64)
		return mu_fail(err, MURAL_USAGE, NULL, "the path '%.40s...' is too long", path);
	if (step_of(last_part(path, part, &before), &choice->step)) {
		mural_status status = mural_checkpoint_verify(path, err);
		if (status != MURAL_OK)
			mu_context(err, "'%s' was asked for by its name; of the run's folder another set is taken",
			           path);
		choice->found = status == MURAL_OK;
		snprintf(choice->set, sizeof choice->set, "%s", path);
		return status;
	}
	uint64_t *steps = list_sets(path, &n);
	mural_status status = n ? choose(choice, path, steps, n, err) : MURAL_OK;
	free(steps);
	return status;
}

mural_status mural_checkpoint_find_best(mural_checkpoint_choice *choice, const char *run_dir, mural_error *err)
{
	mu_manifest manifest;
	MU_TRY(mural_checkpoint_find(choice, run_dir, err));
	if (!choice->found)
		return MURAL_OK;
	mural_status status = mu_manifest_read(&manifest, choice->set, err);
	uint64_t best = manifest.note.best;
	mu_manifest_release(&manifest);
	MU_TRY(status);
	if (best == 0)
		*choice = (mural_checkpoint_choice){0};
	if (best == choice->step)
		return MURAL_OK;
	choice->step = best;
	MU_TRY(mu_checkpoint_path(choice->set, run_dir, best, err));
	return mural_checkpoint_verify(choice->set, err);
}

static void remove_files(const char *path)
{
	char file[MU_CHECKPOINT_FILE + 256];
	DIR *folder = opendir(path);
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
		unlink(file);
	}
	if (folder)
		closedir(folder);
	rmdir(path);
}

/* A set loses its name first, so that a half-removed one is never taken for a set. */
void mu_checkpoint_remove(const char *set)
{
	char part[MU_CHECKPOINT_FILE];
	snprintf(part, sizeof part, "%s" UNFINISHED, set);
	remove_files(part);
	if (rename(set, part) == 0)
		remove_files(part);
}

static void remove_leftovers(const char *run_dir)
{
	char path[MU_CHECKPOINT_FILE], leftover[MU_CHECKPOINT_FILE + 256];
	snprintf(path, sizeof path, "%s/" FOLDER, run_dir);
	DIR *folder = opendir(path);
	for (struct dirent *entry; folder && (entry = readdir(folder));)
		if (is_leftover(entry->d_name)) {
			snprintf(leftover, sizeof leftover, "%s/%s", path, entry->d_name);
			remove_files(leftover);
		}
	if (folder)
		closedir(folder);
}

/* Step of the best set as this one knows it; 0: none, or it does not say. */
static uint64_t best_of(const char *run_dir, uint64_t step)
{
	char set[MURAL_CHECKPOINT_PATH];
	mu_manifest manifest = {0};
	if (mu_checkpoint_path(set, run_dir, step, NULL) == MURAL_OK)
		(void)mu_manifest_read(&manifest, set, NULL);
	uint64_t best = manifest.note.best;
	mu_manifest_release(&manifest);
	return best;
}

/* A set that stays keeps its best one: whoever goes on from it finds that, too. */
void mu_checkpoint_prune(const char *run_dir, uint64_t step, unsigned keep)
{
	char set[MURAL_CHECKPOINT_PATH];
	size_t n, first = 0, behind;
	uint64_t *steps = list_sets(run_dir, &n);
	while (first < n && steps[first] > step)
		first++;
	behind = n - first < keep ? n : first + keep;
	bool *stays = calloc(n + 1, sizeof *stays);
	for (size_t i = first; i < behind && stays; i++) {
		uint64_t best = best_of(run_dir, steps[i]);
		stays[i] = true;
		for (size_t j = i; j < n; j++)
			stays[j] |= steps[j] == best;
	}
	for (size_t i = 0; i < n && stays; i++)
		if (!stays[i] && mu_checkpoint_path(set, run_dir, steps[i], NULL) == MURAL_OK)
			mu_checkpoint_remove(set);
	free(stays);
	free(steps);
	remove_leftovers(run_dir);
}

void mu_checkpoint_clear(const char *run_dir)
{
	char path[MU_CHECKPOINT_FILE];
	snprintf(path, sizeof path, "%s/" FOLDER "/" LATEST, run_dir);
	unlink(path);
	snprintf(path, sizeof path, "%s/" FOLDER "/" BEST, run_dir);
	unlink(path);
	mu_checkpoint_prune(run_dir, 0, 0);
	snprintf(path, sizeof path, "%s/" FOLDER, run_dir);
	rmdir(path);
}
