/* Names of classes: a growing list of texts that its data set owns. SPDX-License-Identifier: MIT */
#ifndef MU_DATA_CLASS_NAMES_H
#define MU_DATA_CLASS_NAMES_H

#include "base/fail.h"

#define MU_CLASS_NAME_BYTES 255 /* of one name, at most */

typedef struct mu_class_names {
	char **names; /* [n], by label */
	size_t n;
} mu_class_names;

/* Copies `length` bytes; unprintable ones become '?'. MURAL_DATA for an empty or overlong name, without a place. */
mural_status mu_class_names_add(mu_class_names *names, const char *text, size_t length, mural_error *err);
/* Adds the lines of a text file but for empty ones. */
mural_status mu_class_names_read(mu_class_names *names, const char *path, mural_error *err);
void mu_class_names_release(mu_class_names *names);

#endif
