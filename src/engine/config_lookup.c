/* Finding rows of the configuration table. SPDX-License-Identifier: MIT */
#include "engine/config_table.h"

#include <string.h>
#include <strings.h>

/* Bytes of the key before its last dot; 0 at the top level. */
static size_t block_bytes(const char *key)
{
	const char *dot = strrchr(key, '.');
	return dot ? (size_t)(dot - key) : 0;
}

const char *mu_config_name(size_t row)
{
	const char *key = mu_config_rows[row].key;
	size_t bytes = block_bytes(key);
	return bytes ? key + bytes + 1 : key;
}

size_t mu_config_find(const char *key)
{
	for (size_t i = 0; i < mu_config_row_count; i++) {
		const mu_config_row *row = &mu_config_rows[i];
		if (!strcmp(row->key, key))
			return i;
		size_t bytes = block_bytes(row->key);
		if (row->alias && bytes == block_bytes(key) && !memcmp(row->key, key, bytes) &&
		    !strcmp(row->alias, bytes ? key + bytes + 1 : key))
			return i;
	}
	return MU_CONFIG_NO_ROW;
}

size_t mu_config_block_of(size_t row)
{
	size_t bytes = block_bytes(mu_config_rows[row].key);
	if (bytes == 0)
		return MU_CONFIG_NO_ROW;
	while (row-- > 0)
		if (strlen(mu_config_rows[row].key) == bytes &&
		    !memcmp(mu_config_rows[row].key, mu_config_rows[row + 1].key, bytes))
			return row;
	return MU_CONFIG_NO_ROW;
}

size_t mu_config_find_in(size_t block, const char *name)
{
	for (size_t i = block == MU_CONFIG_NO_ROW ? 0 : block + 1; i < mu_config_row_count; i++) {
		const mu_config_row *row = &mu_config_rows[i];
		bool named = !strcmp(mu_config_name(i), name) || (row->alias && !strcmp(row->alias, name));
		if (named && mu_config_block_of(i) == block)
			return i;
	}
	return MU_CONFIG_NO_ROW;
}

const mu_config_optimizer *mu_config_find_optimizer(const char *name)
{
	for (size_t i = 0; i < mu_config_optimizer_count; i++) {
		const mu_config_optimizer *o = &mu_config_optimizers[i];
		if (o->exact ? !strcmp(o->name, name) : !strcasecmp(o->name, name))
			return o;
	}
	return NULL;
}
