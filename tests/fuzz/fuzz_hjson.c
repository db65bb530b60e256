/* Any bytes as HJSON and as plain JSON: read or refused, and what was read can be walked, printed and found again.
 *
 * SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hjson.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void walk(const mu_hjson *tree, const mu_hjson_value *value)
{
	char where[MU_HJSON_WHERE], path[MU_HJSON_PATH];
	size_t count = 0;
	mu_hjson_where(tree, value, where);
	mu_hjson_path(value, path);
	for (const mu_hjson_value *v = value->first; v; v = v->next, count++) {
		if (v->parent != value || (value->kind == MU_HJSON_OBJECT) != (v->key != NULL))
			abort();
		if (v->key && strcmp(mu_hjson_member(value, v->key)->key, v->key))
			abort();
		walk(tree, v);
	}
	if (count != value->count)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	for (int strict = 0; strict < 2; strict++) {
		mu_hjson *tree;
		mural_error err = {0};
		mu_hjson_source source = {"fuzz", (const char *)bytes, size, strict, MURAL_USAGE};
		mural_status status = mu_hjson_read(&tree, &source, &err);
		if ((status == MURAL_OK) != (tree != NULL) || (status != MURAL_OK) != (err.message[0] != '\0'))
			abort();
		/* A place is found by counting from the start: enough for a fuzzer's small files. */
		if (tree && size < 4096)
			walk(tree, mu_hjson_root(tree));
		mu_hjson_free(tree);
	}
	return 0;
}
