/* Finding and opening modules. SPDX-License-Identifier: MIT */
#include "comm/module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/version.h"

/* The search as it goes: the file that was found, or the folders in which it was not. */
typedef struct search {
	const char *file;
	char path[4096];
	char tried[512];
} search;

static bool try_folder(search *s, const char *folder, size_t length, const char *suffix)
{
	size_t used = strlen(s->tried);
	if (length == 0)
		return false;
	if ((size_t)snprintf(s->path, sizeof s->path, "%.*s%s/%s", (int)length, folder, suffix, s->file) >=
	    sizeof s->path)
		return false;
	if (access(s->path, F_OK) == 0)
		return true;
	snprintf(s->tried + used, sizeof s->tried - used, "%s%.*s%s", used ? ", " : "", (int)length, folder, suffix);
	return false;
}

static bool try_environment(search *s)
{
	const char *at = getenv("MURAL_MODULE_PATH");
	while (at && *at) {
		size_t length = strcspn(at, ":");
		if (try_folder(s, at, length, ""))
			return true;
		at += length;
		at += *at == ':';
	}
	return false;
}

static bool try_beside_file(search *s, const char *file)
{
	const char *slash = strrchr(file, '/');
	if (!slash)
		return false;
	size_t folder = (size_t)(slash - file);
	return try_folder(s, file, folder, "/mural") || try_folder(s, file, folder, "/../lib/mural");
}

/* The file that this code was loaded from (libmural.so, or a program that links it statically), then the program's. */
static bool try_beside(search *s)
{
	Dl_info info;
	const char *code = dladdr((const void *)&mu_comm_self, &info) && info.dli_fname ? info.dli_fname : "";
	if (try_beside_file(s, code))
		return true;
	char program[4096];
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	if (n <= 0)
		return false;
	program[n] = '\0';
	return strcmp(program, code) != 0 && try_beside_file(s, program);
}

static mural_status open_module(const char *path, const mu_comm_module **module, mural_error *err)
{
	/* NOW: a missing symbol shall show here, not in the middle of a run. GLOBAL: Open MPI opens plugins of its own that
	 * expect to find libmpi's symbols. */
	void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!handle) {
		const char *why = dlerror();
		return mu_fail(err, MURAL_FAILED, path,
		               "the MPI module does not load: %s; is the MPI library it was built with installed?",
		               why ? why : "no reason was given");
	}
	const mu_comm_module *found = dlsym(handle, MU_COMM_MODULE_SYMBOL);
	if (!found)
		return mu_fail(err, MURAL_FAILED, path, "not a Mural module: it lacks the symbol %s",
		               MU_COMM_MODULE_SYMBOL);
	if (strcmp(found->build_id, MU_BUILD_ID) != 0)
		return mu_fail(err, MURAL_FAILED, path,
		               "the module was built for \"%.64s\", this is \"%s\": install modules and library of one "
		               "version, or set MURAL_MODULE_PATH to the right folder",
		               found->build_id, MU_BUILD_ID);
	*module = found;
	return MURAL_OK;
}

mural_status mu_comm_module_load(const char *file, const mu_comm_module **module, mural_error *err)
{
	search s = {.file = file};
	*module = NULL;
	if (try_environment(&s) || try_beside(&s) || try_folder(&s, MU_MODULE_DIR, strlen(MU_MODULE_DIR), ""))
		return open_module(s.path, module, err);
	return mu_fail(err, MURAL_FAILED, NULL,
	               "more than one rank needs MPI, and the module %s was not found in %s; build Mural with MPI "
	               "(Debian: libopenmpi-dev) or set MURAL_MODULE_PATH to the module's folder",
	               file, s.tried);
}
