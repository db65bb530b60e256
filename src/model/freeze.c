/* Which tensors are not trained. SPDX-License-Identifier: MIT */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/vit.h"

/* A list's item, and what it froze. */
typedef struct item {
	char text[128];
	size_t first_unit, last_unit; /* of `embed`, `blocks`, `block A-B`, `head` */
	bool units; /* otherwise a pattern of names */
	size_t tensors;
} item;

static mural_status malformed(const char *text, const mu_vit *vit, mural_error *err)
{
	return mu_fail(err, MURAL_USAGE, NULL,
	               "'%.100s' cannot be frozen: expected embed, blocks, blocks.A-B with blocks 0 .. %zu, head, or a "
	               "pattern of tensor names such as *.ln_1.*",
	               text, vit->config.depth - 1);
}

static bool read_number(const char **text, size_t *number)
{
	char *end;
	if (**text < '0' || **text > '9')
		return false;
	*number = strtoul(*text, &end, 10);
	*text = end;
	return true;
}

/* "3" or "0-5" after "blocks.". */
static bool read_blocks(const char *range, const mu_vit *vit, item *it)
{
	size_t first, last;
	if (!read_number(&range, &first))
		return false;
	last = first;
	if (*range == '-' && (range++, !read_number(&range, &last)))
		return false;
	it->first_unit = first + 1;
	it->last_unit = last + 1;
	return *range == '\0' && first <= last && last < vit->config.depth;
}

static mural_status read_item(const char *text, size_t bytes, const mu_vit *vit, item *it, mural_error *err)
{
	*it = (item){.units = true};
	while (bytes && *text == ' ')
		text++, bytes--;
	while (bytes && text[bytes - 1] == ' ')
		bytes--;
	snprintf(it->text, sizeof it->text, "%.*s", (int)bytes, text);
	if (bytes == 0 || bytes >= sizeof it->text)
		return malformed(it->text, vit, err);
	if (strcmp(it->text, "embed") == 0)
		return MURAL_OK;
	if (strcmp(it->text, "head") == 0)
		it->first_unit = it->last_unit = vit->n_units - 1;
	else if (strcmp(it->text, "blocks") == 0)
		it->first_unit = 1, it->last_unit = vit->n_units - 2;
	else if (strncmp(it->text, "blocks.", 7) != 0)
		it->units = false;
	else if (!read_blocks(it->text + 7, vit, it))
		return malformed(it->text, vit, err);
	return MURAL_OK;
}

static void freeze_item(mu_vit *vit, item *it)
{
	for (size_t u = 0; u < vit->n_units; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors; i++) {
			mu_tensor *tensor = &vit->units[u].tensors[i];
			const bool meant = it->units ? u >= it->first_unit && u <= it->last_unit
			                             : fnmatch(it->text, tensor->name, 0) == 0;
			if (!meant)
				continue;
			tensor->flags |= MU_TENSOR_FROZEN;
			it->tensors++;
		}
}

size_t mu_vit_first_trained(const mu_vit *vit)
{
	for (size_t u = 0; u < vit->n_units; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors; i++)
			if (!(vit->units[u].tensors[i].flags & MU_TENSOR_FROZEN))
				return u;
	return vit->n_units;
}

mural_status mu_vit_freeze(mu_vit *vit, const char *list, mural_error *err)
{
	for (const char *at = list; *list && at;) {
		const size_t bytes = strcspn(at, ",");
		item it;
		MU_TRY(read_item(at, bytes, vit, &it, err));
		freeze_item(vit, &it);
		if (it.tensors == 0)
			return mu_fail(err, MURAL_USAGE, NULL, "'%s' freezes nothing: no tensor has such a name",
			               it.text);
		at = at[bytes] ? at + bytes + 1 : NULL;
	}
	if (mu_vit_first_trained(vit) == vit->n_units)
		return mu_fail(err, MURAL_USAGE, NULL, "all tensors are frozen ('%.100s'): nothing is left to train",
		               list);
	return MURAL_OK;
}
