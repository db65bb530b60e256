/* Names of classes. SPDX-License-Identifier: MIT */
#include "data/class_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"

#define MAX_FILE ((size_t)16 << 20) /* bytes of a list of names */

mural_status mu_class_names_add(mu_class_names *names, const char *text, size_t length, mural_error *err)
{
	if (length == 0 || length > MU_CLASS_NAME_BYTES)
		return mu_fail(err, MURAL_DATA, NULL, "the name of class %zu has %zu bytes, expected 1 to %d", names->n,
		               length, MU_CLASS_NAME_BYTES);
	bool full = (names->n & (names->n - 1)) == 0; /* room doubles at every power of two */
	if (full) {
		char **grown = realloc(names->names, (names->n ? 2 * names->n : 1) * sizeof *grown);
		if (!grown)
			return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the names of classes");
		names->names = grown;
	}
	char *name = malloc(length + 1);
	if (!name)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the names of classes");
	for (size_t i = 0; i < length; i++)
		name[i] = (unsigned char)text[i] < ' ' || text[i] == 127 ? '?' : text[i];
	name[length] = '\0';
	names->names[names->n++] = name;
	return MURAL_OK;
}

mural_status mu_class_names_read(mu_class_names *names, const char *path, mural_error *err)
{
	char *text;
	size_t bytes;
	MU_TRY(mu_file_read(path, "file with class names", MAX_FILE, MURAL_DATA, &text, &bytes, err));
	mural_status status = MURAL_OK;
	for (char *line = text; line < text + bytes && status == MURAL_OK;) {
		size_t length = strcspn(line, "\r\n");
		if (length)
			status = mu_class_names_add(names, line, length, err);
		line += length + 1;
	}
	free(text);
	if (status != MURAL_OK)
		mu_context(err, "while reading %s", path);
	return status;
}

void mu_class_names_release(mu_class_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->names[i]);
	free(names->names);
	*names = (mu_class_names){0};
}
