/* The images below one folder, class by class. SPDX-License-Identifier: MIT */
#ifndef MU_DATA_IMAGE_LIST_H
#define MU_DATA_IMAGE_LIST_H

#include <stdint.h>

#include "data/class_names.h"

typedef struct mu_image_file {
	char *path; /* whole, malloc'ed */
	size_t folder_bytes; /* of it: the folder the file lies in */
	uint32_t label;
} mu_image_file;

typedef struct mu_image_list {
	mu_image_file
	        *files; /* [n], by class, then by folder, then by name, each by bytes: as torchvision lists them */
	size_t n, room;
} mu_image_list;

/* Adds the names of the folders in `folder` but for hidden ones, sorted by bytes. MURAL_DATA when there are none, or when one
 * has a name with control characters. */
mural_status mu_list_classes(mu_class_names *classes, const char *folder, mural_error *err);

/* Lists folder/CLASS for each class whose folder is there, sub-folders included. Files without an image's ending are left
 * out; an image of a kind that cannot be read, or a class folder without images, is MURAL_DATA. */
mural_status mu_list_images(mu_image_list *list, const char *folder, const mu_class_names *classes, mural_error *err);
void mu_image_list_release(mu_image_list *list);

#endif
