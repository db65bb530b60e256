/* Walking class folders. Links to folders are followed; a depth limit ends circles. SPDX-License-Identifier: MIT */
#include "data/image_list.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define MAX_DEPTH 16 /* folders below a class */

typedef enum ending { NO_IMAGE, READABLE, UNREADABLE } ending;

static ending ending_of(const char *name)
{
	static const struct {
		const char *text;
		ending kind;
	} endings[] = {{"png", READABLE},    {"jpg", READABLE},   {"jpeg", READABLE},  {"ppm", UNREADABLE},
	               {"bmp", UNREADABLE},  {"pgm", UNREADABLE}, {"tif", UNREADABLE}, {"tiff", UNREADABLE},
	               {"webp", UNREADABLE}, {"gif", UNREADABLE}};
	const char *dot = strrchr(name, '.');
	for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
		if (strcasecmp(dot + 1, endings[i].text) == 0)
			return endings[i].kind;
	return NO_IMAGE;
}

static mural_status join(char path[PATH_MAX], const char *folder, const char *name, mural_error *err)
{
	if (snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
		return mu_fail(err, MURAL_DATA, folder, "a path in this folder is longer than %d bytes", PATH_MAX - 1);
	return MURAL_OK;
}

static mural_status open_folder(DIR **dir, const char *folder, mural_error *err)
{
	*dir = opendir(folder);
	if (!*dir)
		return mu_fail(err, MURAL_DATA, folder, "cannot open the folder: %s", strerror(errno));
	return MURAL_OK;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A class is found again by its name, which people read in messages and tables: it must be the folder's to the byte. */
static mural_status add_class(mu_class_names *classes, const char *folder, const char *name, mural_error *err)
{
	MU_TRY(mu_class_names_add(classes, name, strlen(name), err));
	const char *added = classes->names[classes->n - 1];
	if (strcmp(added, name) == 0)
		return MURAL_OK;
	return mu_fail(
	        err, MURAL_DATA, folder,
	        "the name of the class folder '%s' has a character (shown as '?') that cannot be printed, such as a "
	        "tab or a line end: rename it",
	        added);
}

mural_status mu_list_classes(mu_class_names *classes, const char *folder, mural_error *err)
{
	DIR *dir;
	mural_status status = MURAL_OK;
	MU_TRY(open_folder(&dir, folder, err));
	for (struct dirent *entry; status == MURAL_OK && (entry = readdir(dir));) {
		char path[PATH_MAX];
		struct stat facts;
		if (entry->d_name[0] == '.')
			continue;
		status = join(path, folder, entry->d_name, err);
		if (status == MURAL_OK && stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
			status = add_class(classes, folder, entry->d_name, err);
	}
	closedir(dir);
	if (status == MURAL_OK && classes->n == 0)
		return mu_fail(err, MURAL_DATA, folder, "expected a folder for each class, found none");
	if (classes->n)
		qsort(classes->names, classes->n, sizeof *classes->names, by_bytes);
	return status;
}

static mural_status add_file(mu_image_list *list, const char *path, size_t folder_bytes, uint32_t label,
                             mural_error *err)
{
	if (list->n == UINT32_MAX)
		return mu_fail(err, MURAL_DATA, path, "expected at most %u images in a set, found more", UINT32_MAX);
	if (list->n == list->room) {
		size_t room = 2 * list->room + 256;
		mu_image_file *grown = realloc(list->files, room * sizeof *grown);
		if (!grown)
			return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to list %zu images", room);
		list->files = grown;
		list->room = room;
	}
	mu_image_file *file = &list->files[list->n];
	*file = (mu_image_file){strdup(path), folder_bytes, label};
	if (!file->path)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to list the images");
	list->n++;
	return MURAL_OK;
}

static mural_status walk(mu_image_list *list, const char *folder, uint32_t label, unsigned depth, mural_error *err);

static mural_status take_entry(mu_image_list *list, const char *folder, const char *name, uint32_t label,
                               unsigned depth, mural_error *err)
{
	char path[PATH_MAX];
	struct stat facts;
	MU_TRY(join(path, folder, name, err));
	if (stat(path, &facts) != 0)
		return mu_fail(err, MURAL_DATA, path, "cannot look at the file: %s", strerror(errno));
	if (S_ISDIR(facts.st_mode))
		return walk(list, path, label, depth + 1, err);
	ending kind = ending_of(name);
	if (kind == UNREADABLE)
		return mu_fail(err, MURAL_DATA, path,
		               "expected PNG or JPEG; other images cannot be read yet: convert or remove it");
	return kind == READABLE ? add_file(list, path, strlen(folder), label, err) : MURAL_OK;
}

static mural_status walk(mu_image_list *list, const char *folder, uint32_t label, unsigned depth, mural_error *err)
{
	DIR *dir;
	mural_status status = MURAL_OK;
	if (depth > MAX_DEPTH)
		return mu_fail(err, MURAL_DATA, folder,
		               "folders are nested more than %d deep; is there a link in a circle?", MAX_DEPTH);
	MU_TRY(open_folder(&dir, folder, err));
	for (struct dirent *entry; status == MURAL_OK && (entry = readdir(dir));)
		if (entry->d_name[0] != '.')
			status = take_entry(list, folder, entry->d_name, label, depth, err);
	closedir(dir);
	return status;
}

/* By class, folder, name. */
static int in_order(const void *left, const void *right)
{
	const mu_image_file *a = left, *b = right;
	size_t common = a->folder_bytes < b->folder_bytes ? a->folder_bytes : b->folder_bytes;
	if (a->label != b->label)
		return a->label < b->label ? -1 : 1;
	int folders = memcmp(a->path, b->path, common);
	if (folders != 0 || a->folder_bytes != b->folder_bytes)
		return folders != 0 ? folders : a->folder_bytes < b->folder_bytes ? -1 : 1;
	return strcmp(a->path, b->path);
}

mural_status mu_list_images(mu_image_list *list, const char *folder, const mu_class_names *classes, mural_error *err)
{
	for (size_t c = 0; c < classes->n; c++) {
		char path[PATH_MAX];
		size_t before = list->n;
		struct stat facts;
		MU_TRY(join(path, folder, classes->names[c], err));
		if (stat(path, &facts) != 0)
			continue;
		MU_TRY(walk(list, path, (uint32_t)c, 0, err));
		if (list->n == before)
			return mu_fail(
			        err, MURAL_DATA, path,
			        "expected PNG or JPEG images of this class, found none; remove the folder or fill "
			        "it");
	}
	if (list->n == 0)
		return mu_fail(err, MURAL_DATA, folder, "expected images in the folders of the classes, found none");
	qsort(list->files, list->n, sizeof *list->files, in_order);
	return MURAL_OK;
}

void mu_image_list_release(mu_image_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->files[i].path);
	free(list->files);
	*list = (mu_image_list){0};
}
