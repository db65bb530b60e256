/* What ranks on several hosts need: a host file in mpirun's own words, and the environment, which does not travel by itself.
 *
 * Passed on: variables whose names begin as below, and those of DeepSpeed's file .deepspeed_env (NAME=VALUE per line) in the
 * home and in the current folder, or the one that DS_ENV_FILE names. MPICH passes on everything; Open MPI is told the names.
 * MURAL_SLOTS tells each rank its slot, which is its card's number: "0,2,0,1" for ranks 0 to 3.
 * SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch_inside.h"

extern char **environ;

static const char *const passed_on[] = {"MURAL_", "NCCL",  "UCX",     "OMP_",
                                        "GOMP_",  "DNNL_", "ONEDNN_", "LD_LIBRARY_PATH="};

static mural_status out_of_memory(mural_error *err)
{
	err->status = MURAL_OUT_OF_MEMORY;
	snprintf(err->message, sizeof err->message, "no memory for starting ranks on other hosts");
	return err->status;
}

/* Open MPI reads "NAME slots=N", MPICH "NAME:N"; both fill the hosts in the file's order. */
static mural_status write_host_file(launch_hosts *l, const mural_hosts *hosts, bool open_mpi, const char *folder,
                                    mural_error *err)
{
	snprintf(l->file, sizeof l->file, "%s/hosts", folder);
	FILE *out = fopen(l->file, "we");
	for (size_t i = 0; out && i < mural_hosts_count(hosts); i++) {
		const mural_host *host = mural_hosts_get(hosts, i);
		fprintf(out, open_mpi ? "%s slots=%d\n" : "%s:%d\n", host->name, host->n_slots);
	}
	bool written = out && !ferror(out);
	if (out && fclose(out) == 0 && written)
		return MURAL_OK;
	err->status = MURAL_FAILED;
	snprintf(err->where, sizeof err->where, "%s", l->file);
	snprintf(err->message, sizeof err->message, "the host file for mpirun cannot be written: %s", strerror(errno));
	return err->status;
}

static mural_status set_slots(const mural_hosts *hosts, mural_error *err)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		return out_of_memory(err);
	for (size_t i = 0; i < mural_hosts_count(hosts); i++)
		for (int s = 0; s < mural_hosts_get(hosts, i)->n_slots; s++)
			fprintf(out, "%s%d", i || s ? "," : "", mural_hosts_get(hosts, i)->slots[s]);
	bool done = fclose(out) == 0 && setenv("MURAL_SLOTS", text, 1) == 0;
	free(text);
	return done ? MURAL_OK : out_of_memory(err);
}

static mural_status add_name(launch_hosts *l, const char *name, size_t length, mural_error *err)
{
	for (size_t i = 0; i < l->n_names; i++)
		if (strncmp(l->names[i], name, length) == 0 && l->names[i][length] == '\0')
			return MURAL_OK;
	char **more = realloc(l->names, (l->n_names + 1) * sizeof *more);
	if (!more)
		return out_of_memory(err);
	l->names = more;
	l->names[l->n_names] = strndup(name, length);
	return l->names[l->n_names++] ? MURAL_OK : out_of_memory(err);
}

/* NAME=VALUE goes into the environment. What is wrong is not shown: values may be secrets. */
static mural_status take_line(launch_hosts *l, const char *path, int number, char *line, mural_error *err)
{
	size_t length = strlen(line), name = 0;
	while (length > 0 && strchr("\r\n", line[length - 1]))
		line[--length] = '\0';
	line += strspn(line, " \t");
	if (!*line || *line == '#')
		return MURAL_OK;
	while (isalnum((unsigned char)line[name]) || line[name] == '_')
		name++;
	if (name == 0 || line[name] != '=' || isdigit((unsigned char)line[0])) {
		err->status = MURAL_USAGE;
		snprintf(err->where, sizeof err->where, "%s:%d", path, number);
		snprintf(err->message, sizeof err->message,
		         "expected NAME=VALUE, a variable to pass on to other hosts: letters, digits and \"_\" in "
		         "front of "
		         "the first \"=\"");
		return MURAL_USAGE;
	}
	line[name] = '\0';
	if (setenv(line, line + name + 1, 1) != 0)
		return out_of_memory(err);
	return add_name(l, line, name, err);
}

/* must_exist: the user named it. */
static mural_status take_file(launch_hosts *l, const char *path, bool must_exist, mural_error *err)
{
	char *line = NULL;
	size_t capacity = 0;
	mural_status status = MURAL_OK;
	FILE *in = fopen(path, "re");
	if (!in && !must_exist && errno == ENOENT)
		return MURAL_OK;
	if (!in) {
		err->status = MURAL_USAGE;
		snprintf(err->where, sizeof err->where, "%s%s", must_exist ? "environment variable DS_ENV_FILE: " : "",
		         path);
		snprintf(err->message, sizeof err->message, "cannot open the variables for other hosts: %s",
		         strerror(errno));
		return MURAL_USAGE;
	}
	for (int n = 1; status == MURAL_OK && getline(&line, &capacity, in) >= 0; n++)
		status = take_line(l, path, n, line, err);
	free(line);
	fclose(in);
	return status;
}

static mural_status take_files(launch_hosts *l, mural_error *err)
{
	const char *given = getenv("DS_ENV_FILE"), *home = getenv("HOME");
	const char *name = given && *given ? given : ".deepspeed_env";
	char path[4096];
	if (given && *given && access(name, F_OK) == 0)
		return take_file(l, name, true, err);
	mural_status status = MURAL_OK;
	if (home) {
		snprintf(path, sizeof path, "%s/%s", home, name);
		status = take_file(l, path, false, err);
	}
	bool found = home && access(path, F_OK) == 0;
	return status == MURAL_OK ? take_file(l, name, given && *given && !found, err) : status;
}

/* Names of the environment that begin as they should. */
static mural_status collect_names(launch_hosts *l, mural_error *err)
{
	for (char **entry = environ; *entry; entry++)
		for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
			if (strncmp(*entry, passed_on[i], strlen(passed_on[i])) == 0 &&
			    add_name(l, *entry, strcspn(*entry, "="), err) != MURAL_OK)
				return err->status;
	return MURAL_OK;
}

/* The slots choose cards; a shell's own choice is for this machine and would be applied to all. */
static void drop_visible_devices(void)
{
	if (!getenv("CUDA_VISIBLE_DEVICES"))
		return;
	unsetenv("CUDA_VISIBLE_DEVICES");
	fprintf(stderr, "mural: note: CUDA_VISIBLE_DEVICES is not used: the slots of the hosts choose cards\n");
}

mural_status launch_hosts_prepare(launch_hosts *l, const mural_hosts *hosts, bool open_mpi, const char *folder,
                                  mural_error *err)
{
	*l = (launch_hosts){0};
	drop_visible_devices();
	if (write_host_file(l, hosts, open_mpi, folder, err) != MURAL_OK || set_slots(hosts, err) != MURAL_OK ||
	    take_files(l, err) != MURAL_OK)
		return err->status;
	return collect_names(l, err);
}

void launch_hosts_release(launch_hosts *l)
{
	if (l->file[0])
		unlink(l->file);
	for (size_t i = 0; i < l->n_names; i++)
		free(l->names[i]);
	free(l->names);
	*l = (launch_hosts){0};
}
