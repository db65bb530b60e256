/* Fetching a data set.
 *
 * Each file is loaded into NAME.part, which curl goes on with after an interruption, and gets its name only when its
 * checksum is right. What is there and right is not loaded again. In the end the set is opened, both splits, as a
 * training would open it: so "done" means that it can be trained on.
 * SPDX-License-Identifier: MIT */
#include "data/fetch.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/md5.h"

extern char **environ;

/* Checksums: the data sets' own pages. */
static const mu_fetch_set sets[] = {
        {.name = "cifar10",
         .format = MURAL_DATA_CIFAR10,
         .source = "https://www.cs.toronto.edu/~kriz",
         .files = {{"cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"}},
         .archive = true,
         .folder = "cifar-10-batches-bin"},
        {.name = "cifar100",
         .format = MURAL_DATA_CIFAR100,
         .source = "https://www.cs.toronto.edu/~kriz",
         .files = {{"cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"}},
         .archive = true,
         .folder = "cifar-100-binary"},
        {.name = "fashion-mnist",
         .format = MURAL_DATA_IDX,
         .source = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
         .files = {{"train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
                   {"train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"},
                   {"t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"},
                   {"t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"}},
         .folder = "fashion-mnist"},
};

/* Runs a program to its end. *code: its exit code, or 128 and a signal. */
static mural_status run(const char *const *argv, int *code, mural_error *err)
{
	pid_t child;
	*code = 0;
	int state, failed = posix_spawnp(&child, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ);
	if (failed)
		return mu_fail(err, MURAL_FAILED, argv[0], "cannot start %s: %s; install it", argv[0],
		               strerror(failed));
	while (waitpid(child, &state, 0) < 0)
		if (errno != EINTR)
			return mu_fail(err, MURAL_FAILED, argv[0], "cannot wait for %s: %s", argv[0], strerror(errno));
	*code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
	return MURAL_OK;
}

static mural_status explain_curl(int code, const char *url, const char *part, mural_error *err)
{
	switch (code) {
	case 5:
	case 6:
	case 7:
	case 28:
		return mu_fail(err, MURAL_FAILED, url,
		               "cannot reach the server: is this machine offline? Load the file on another machine "
		               "into %s and run this again, or set https_proxy",
		               part);
	case 22: return mu_fail(err, MURAL_FAILED, url, "the server does not give the file (curl's exit code 22)");
	case 23: return mu_fail(err, MURAL_FAILED, part, "cannot write what was loaded: is the disk full?");
	default:
		return mu_fail(err, MURAL_FAILED, url,
		               "curl stopped with exit code %d; run this again to go on where it stopped", code);
	}
}

/* Loads the rest of `part`. */
static mural_status load(const char *url, const char *part, bool progress, mural_error *err)
{
	const char *argv[] = {"curl",       "--fail",
	                      "--location", "--retry",
	                      "3",          "--connect-timeout",
	                      "20",         "--continue-at",
	                      "-",          "--output",
	                      part,         progress ? "--progress-bar" : "--silent",
	                      "--",         url,
	                      NULL};
	int code;
	MU_TRY(run(argv, &code, err));
	return code == 0 ? MURAL_OK : explain_curl(code, url, part, err);
}

static mural_status is_right(const char *path, const char *md5, bool *right, mural_error *err)
{
	char found[33];
	*right = false;
	if (access(path, F_OK) != 0)
		return MURAL_OK;
	MU_TRY(mu_md5_file(path, found, err));
	*right = strcmp(found, md5) == 0;
	return MURAL_OK;
}

/* Leaves the whole, checked file under `path`. */
static mural_status fetch_file(const char *url, const char *path, const char *md5, bool progress, mural_error *err)
{
	char part[PATH_MAX];
	bool right;
	MU_TRY(is_right(path, md5, &right, err));
	if (right)
		return MURAL_OK;
	if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
		return mu_fail(err, MURAL_USAGE, path, "the path is longer than %d bytes", PATH_MAX - 6);
	MU_TRY(is_right(part, md5, &right, err)); /* whole, but nobody had the time to rename it */
	if (!right) {
		MU_TRY(load(url, part, progress, err));
		MU_TRY(is_right(part, md5, &right, err));
	}
	if (!right) {
		remove(part);
		return mu_fail(err, MURAL_DATA, url,
		               "what was loaded is not the file: its MD5 is not %s; it was removed, run this again",
		               md5);
	}
	if (rename(part, path) != 0)
		return mu_fail(err, MURAL_FAILED, path, "cannot rename the loaded file: %s", strerror(errno));
	return MURAL_OK;
}

static mural_status unpack(const char *archive, const char *target, mural_error *err)
{
	const char *argv[] = {"tar",    "--extract", "--gzip", "--no-same-owner", "--directory", target,
	                      "--file", archive,     NULL};
	int code;
	MU_TRY(run(argv, &code, err));
	if (code != 0)
		return mu_fail(err, MURAL_FAILED, archive,
		               "cannot unpack the archive (tar's exit code %d): is the disk full?", code);
	if (remove(archive) != 0)
		return mu_fail(err, MURAL_FAILED, archive, "cannot remove the unpacked archive: %s", strerror(errno));
	return MURAL_OK;
}

static mural_status fetch_files(const mu_fetch_set *set, const char *into, bool progress, mural_error *err)
{
	for (size_t i = 0; i < MU_FETCH_FILES && set->files[i].name; i++) {
		char url[512], path[PATH_MAX];
		snprintf(url, sizeof url, "%s/%s", set->source, set->files[i].name);
		snprintf(path, sizeof path, "%s/%s", into, set->files[i].name);
		MU_TRY(fetch_file(url, path, set->files[i].md5, progress, err));
		if (set->archive)
			MU_TRY(unpack(path, into, err));
	}
	return MURAL_OK;
}

static mural_status open_both(const mu_fetch_set *set, const char *folder, mural_error *err)
{
	mural_data_config config = {.format = set->format, .fraction = 1};
	snprintf(config.path, sizeof config.path, "%s", folder);
	for (mural_split split = MURAL_SPLIT_TRAIN; split <= MURAL_SPLIT_TEST; split++) {
		mural_data *data;
		MU_TRY(mural_data_open(&data, &config, split, 0, 0, 0, 0, 0, err));
		mural_data_free(data);
	}
	return MURAL_OK;
}

mural_status mu_fetch_run(const mu_fetch_set *set, const char *target, bool progress, char *folder, size_t folder_bytes,
                          mural_error *err)
{
	if (snprintf(folder, folder_bytes, "%s/%s", target, set->folder) >= (int)folder_bytes)
		return mu_fail(err, MURAL_USAGE, target, "the path of the folder is longer than %zu bytes",
		               folder_bytes - 1);
	if (open_both(set, folder, NULL) == MURAL_OK)
		return MURAL_OK;
	const char *into = set->archive ? target : folder;
	MU_TRY(mu_make_folders(into, err));
	MU_TRY(fetch_files(set, into, progress, err));
	return open_both(set, folder, err);
}

mural_status mural_data_fetch(const char *name, const char *target, bool progress, char *folder, size_t folder_bytes,
                              mural_error *err)
{
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
		if (strcmp(sets[i].name, name) == 0)
			return mu_fetch_run(&sets[i], target, progress, folder, folder_bytes, err);
	return mu_fail(err, MURAL_USAGE, NULL,
	               "there is no data set '%s' to fetch; there are cifar10, cifar100 and "
	               "fashion-mnist",
	               name);
}
