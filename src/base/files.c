/* Files: written beside, synced, renamed (as git's lockfiles). SPDX-License-Identifier: MIT */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE ((size_t)4 << 20) /* bytes between two looks at `stop` */
#define PUSH ((size_t)16 << 20) /* bytes that the system is told to write at once */
#define DIRECT ((size_t)16 << 20) /* bytes of one write past the page cache: enough for a disk to be busy between two */

static mural_status fail(mural_error *err, const char *path, const char *what)
{
	int reason = errno;
	return mu_fail(err, MURAL_FAILED, path, "%s: %s", what, strerror(reason));
}

static mural_status too_long(const char *path, mural_error *err)
{
	return mu_fail(err, MURAL_FAILED, NULL, "the path '%.40s...' is longer than %d characters", path,
	               PATH_MAX - 64);
}

/* The folder that holds `path`: "." for a bare name. */
static void folder_of(const char *path, char folder[PATH_MAX])
{
	snprintf(folder, PATH_MAX, "%s", path);
	char *slash = strrchr(folder, '/');
	if (!slash)
		snprintf(folder, PATH_MAX, ".");
	else if (slash == folder)
		slash[1] = '\0';
	else
		*slash = '\0';
}

static mural_status make_folder(const char *path, mural_error *err)
{
	struct stat facts;
	if (mkdir(path, 0777) == 0)
		return MURAL_OK;
	int reason = errno;
	if (stat(path, &facts) == 0) {
		if (S_ISDIR(facts.st_mode))
			return MURAL_OK;
		reason = ENOTDIR;
	}
	errno = reason;
	return fail(err, path, "cannot make the folder");
}

mural_status mu_make_folders(const char *path, mural_error *err)
{
	char part[PATH_MAX];
	if (strlen(path) >= sizeof part)
		return too_long(path, err);
	snprintf(part, sizeof part, "%s", path);
	for (char *at = part + 1; *part && *at; at++) {
		if (*at != '/' || at[-1] == '/')
			continue;
		*at = '\0';
		MU_TRY(make_folder(part, err));
		*at = '/';
	}
	return make_folder(part, err);
}

/* Opens a new name next to the final one. O_EXCL and a number of our own: two processes or threads never share it. */
static int open_beside(mu_file *file)
{
	static atomic_uint number;
	for (int attempt = 0; attempt < 100; attempt++) {
		snprintf(file->beside, sizeof file->beside, "%.*s.%ld-%u.part", PATH_MAX - 64, file->path,
		         (long)getpid(), atomic_fetch_add(&number, 1));
		int fd = open(file->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

/* /dev/stdout may lead to a regular file that a shell holds open: replacing it would cut the shell's file off. */
static bool is_device_name(const char *path)
{
	return strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0;
}

/* Sets path and beside, opens. */
static int open_for(mu_file *file, const char *path)
{
	struct stat facts;
	file->beside[0] = '\0';
	snprintf(file->path, sizeof file->path, "%s", path);
	if (stat(path, &facts) == 0) {
		if (S_ISDIR(facts.st_mode)) {
			errno = EISDIR;
			return -1;
		}
		if (!S_ISREG(facts.st_mode) || is_device_name(path))
			return open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
		char *target = realpath(path, NULL);
		if (!target)
			return -1;
		snprintf(file->path, sizeof file->path, "%s", target);
		free(target);
	}
	return open_beside(file);
}

mural_status mu_file_begin(mu_file *file, const char *path, mural_error *err)
{
	char folder[PATH_MAX];
	*file = (mu_file){0};
	mu_checksum_run_init(&file->sum, MU_CHECKSUM_PIECE);
	if (strlen(path) >= PATH_MAX - 64)
		return too_long(path, err);
	if (*path == '\0')
		return mu_fail(err, MURAL_FAILED, NULL, "cannot write a file whose name is empty");
	folder_of(path, folder);
	MU_TRY(mu_make_folders(folder, err));
	int fd = open_for(file, path);
	if (fd < 0)
		return fail(err, path, "cannot write the file");
	file->out = fdopen(fd, "w");
	if (!file->out) {
		mural_status status = fail(err, path, "cannot write the file");
		close(fd);
		if (*file->beside)
			unlink(file->beside);
		return status;
	}
	return MURAL_OK;
}

/* Has the system begin with what was written since the last time. A hint: what cannot take it is synced at the end. */
static void push(mu_file *file)
{
	if (*file->beside && file->put - file->pushed >= PUSH && fflush(file->out) == 0) {
		sync_file_range(fileno(file->out), (off64_t)file->pushed, (off64_t)(file->put - file->pushed),
		                SYNC_FILE_RANGE_WRITE);
		file->pushed = file->put;
	}
}

static mural_status given_up(const mu_file *file, mural_error *err)
{
	return mu_fail(err, MURAL_STOPPED, file->path, "writing the file was given up");
}

mural_status mu_file_put(mu_file *file, const void *bytes, size_t n, const atomic_bool *stop, mural_error *err)
{
	const char *at = bytes;
	while (n > 0) {
		size_t piece = n < PIECE ? n : PIECE;
		if (stop && atomic_load(stop))
			return given_up(file, err);
		if (fwrite(at, 1, piece, file->out) != piece)
			return fail(err, file->path, "cannot write the file");
		mu_checksum_run_add(&file->sum, at, piece);
		file->put += piece;
		push(file);
		at += piece;
		n -= piece;
	}
	return MURAL_OK;
}

/* Past the page cache, or through it. false: the file system has no such choice, and does the other thing. */
static bool go_direct(int fd, bool direct)
{
	int flags = fcntl(fd, F_GETFL);
	return flags >= 0 && fcntl(fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

/* Bytes written at the file's end so far, at most n; -1 with errno. */
static ssize_t write_there(const mu_file *file, const void *bytes, size_t n)
{
	ssize_t written;
	do
		written = pwrite(fileno(file->out), bytes, n, (off_t)file->put);
	while (written < 0 && errno == EINTR);
	if (written == 0)
		errno = EIO;
	return written > 0 ? written : -1;
}

mural_status mu_file_put_pages(mu_file *file, const void *bytes, size_t n, const atomic_bool *stop, mural_error *err)
{
	const char *at = bytes;
	if (!*file->beside)
		return mu_file_put(file, bytes, n, stop, err); /* a device or a pipe has no places */
	int fd = fileno(file->out);
	bool direct = go_direct(fd, true);
	while (n > 0) {
		/* A part of a page, what the disk left over of a request or what it does not like goes the plain way. */
		if (direct && (n < MU_FILE_PAGE || file->put % MU_FILE_PAGE))
			direct = !go_direct(fd, false);
		size_t piece = n < DIRECT ? n : DIRECT;
		if (direct)
			piece -= piece % MU_FILE_PAGE;
		if (stop && atomic_load(stop))
			return given_up(file, err);
		ssize_t written = write_there(file, at, piece);
		if (written < 0 && errno == EINVAL && direct && go_direct(fd, false)) {
			direct = false;
			continue;
		}
		if (written < 0)
			return fail(err, file->path, "cannot write the file");
		file->put += (uint64_t)written;
		at += written;
		n -= (size_t)written;
		if (!direct)
			push(file);
	}
	return MURAL_OK;
}

void mu_file_abandon(mu_file *file)
{
	if (!file || !file->out)
		return;
	fclose(file->out);
	file->out = NULL;
	if (*file->beside)
		unlink(file->beside);
}

bool mu_same_place(const char *a, const char *b)
{
	struct stat x, y;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void mu_sync_folder_of(const char *path)
{
	char folder[PATH_MAX];
	folder_of(path, folder);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

mural_status mu_file_commit(mu_file *file, mural_error *err)
{
	if (!file->out)
		return mu_bug(err, "commit of a file that is not open");
	bool direct = !*file->beside;
	bool written = !ferror(file->out) && fflush(file->out) == 0 && (direct || fsync(fileno(file->out)) == 0);
	if (!written) {
		mural_status status = fail(err, file->path, "cannot write the file");
		mu_file_abandon(file);
		return status;
	}
	bool closed = fclose(file->out) == 0;
	file->out = NULL;
	if (direct)
		return closed ? MURAL_OK : fail(err, file->path, "cannot write the file");
	if (!closed || rename(file->beside, file->path) != 0) {
		mural_status status = fail(err, file->path, "cannot give the file its name");
		unlink(file->beside);
		return status;
	}
	mu_sync_folder_of(file->path);
	return MURAL_OK;
}

/* Reads to the end of anything readable, growing the buffer; one byte more than the limit tells that it is larger. */
static mural_status read_all(FILE *in, const char *path, const char *what, size_t limit, mural_status kind, char **text,
                             size_t *bytes, mural_error *err)
{
	size_t capacity = 0, used = 0;
	char *buffer = NULL;
	for (;;) {
		if (used == capacity) {
			capacity = capacity ? capacity * 2 : 65536;
			char *larger = realloc(buffer, capacity + 1);
			if (!larger) {
				free(buffer);
				return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to read the %s", what);
			}
			buffer = larger;
		}
		size_t n = fread(buffer + used, 1, capacity - used, in);
		used += n;
		if (n == 0 || used > limit)
			break;
	}
	if (ferror(in) || used > limit) {
		mural_status status =
		        ferror(in) ? mu_fail(err, kind, path, "cannot read the %s: %s", what, strerror(errno))
		                   : mu_fail(err, kind, path, "the %s is larger than %s", what, MU_SIZE(limit));
		free(buffer);
		return status;
	}
	buffer[used] = '\0';
	*text = buffer;
	*bytes = used;
	return MURAL_OK;
}

int mu_open_to_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		fcntl(fd, F_SETFL, 0); /* reads wait, where there is a writer */
	return fd;
}

mural_status mu_file_read(const char *path, const char *what, size_t limit, mural_status kind, char **text,
                          size_t *bytes, mural_error *err)
{
	*text = NULL;
	*bytes = 0;
	int fd = kind == MURAL_USAGE ? open(path, O_RDONLY | O_CLOEXEC) : mu_open_to_read(path);
	FILE *in = fd < 0 ? NULL : fdopen(fd, "rb");
	if (!in) {
		int reason = errno;
		if (fd >= 0)
			close(fd);
		return mu_fail(err, kind, path, "cannot open the %s: %s", what, strerror(reason));
	}
	mural_status status = read_all(in, path, what, limit, kind, text, bytes, err);
	fclose(in);
	return status;
}
