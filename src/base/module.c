/* Finding and opening modules. SPDX-License-Identifier: MIT */
#include "base/module.h"

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
	static const char here;
	Dl_info info;
	const char *code = dladdr(&here, &info) && info.dli_fname ? info.dli_fname : "";
	if (try_beside_file(s, code))
		return true;
	char program[4096];
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	if (n <= 0)
		return false;
	program[n] = '\0';
	return strcmp(program, code) != 0 && try_beside_file(s, program);
}

static mural_status open_module(const mu_module_kind *kind, const char *path, const void **entry, mural_error *err)
{
	/* It stays open, as the module wants it next. */
	if (kind->driver && !dlopen(kind->driver, RTLD_LAZY | RTLD_LOCAL))
		return mu_fail(err, MURAL_FAILED, NULL, "%s", kind->no_driver);
	/* NOW: a missing symbol shall show here, not in the middle of a run. */
	void *handle = dlopen(path, RTLD_NOW | (kind->global ? RTLD_GLOBAL : RTLD_LOCAL));
	if (!handle) {
		const char *why = dlerror();
		return mu_fail(err, MURAL_FAILED, path,
		               "the %s module does not load: %s; is the %s library it was built with installed?",
		               kind->name, why ? why : "no reason was given", kind->name);
	}
	const void *found = dlsym(handle, kind->symbol);
	if (!found)
		return mu_fail(err, MURAL_FAILED, path, "not a Mural module: it lacks the symbol %s", kind->symbol);
	const char *build_id = *(const char *const *)found;
	if (strcmp(build_id, MU_BUILD_ID) != 0)
		return mu_fail(err, MURAL_FAILED, path,
		               "the module was built for \"%.64s\", this is \"%s\": install modules and library of one "
		               "version, or set MURAL_MODULE_PATH to the right folder",
		               build_id, MU_BUILD_ID);
	*entry = found;
	return MURAL_OK;
}

mural_status mu_module_load(const mu_module_kind *kind, const void **entry, mural_error *err)
{
	search s = {.file = kind->file};
	*entry = NULL;
	if (try_environment(&s) || try_beside(&s) || try_folder(&s, MU_MODULE_DIR, strlen(MU_MODULE_DIR), ""))
		return open_module(kind, s.path, entry, err);
	return mu_fail(err, MURAL_FAILED, NULL,
	               "%s, and the module %s was not found in %s; %s or set MURAL_MODULE_PATH to the module's folder",
	               kind->needed, kind->file, s.tried, kind->build);
}
