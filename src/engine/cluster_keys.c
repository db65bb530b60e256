/* Keys and numbers of a cluster file, and what is said of wrong ones. SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "base/nearest.h"
#include "engine/cluster_read.h"
#include "engine/config_build.h"

enum { MOST_KEYS = 32 };

mural_status mu_cluster_bad(const mu_cluster_reader *r, const mu_hjson_value *value, const char *expected)
{
	char where[MU_HJSON_WHERE], found[MU_CONFIG_WORDS];
	return mu_fail(r->err, MURAL_USAGE, mu_hjson_where(r->tree, value, where), "expected %s, got %s", expected,
	               mu_config_found(value, found));
}

mural_status mu_cluster_missing(const mu_cluster_reader *r, const mu_hjson_value *object, const char *key,
                                const char *why)
{
	char where[MU_HJSON_WHERE];
	return mu_fail(r->err, MURAL_USAGE, mu_hjson_where(r->tree, object, where), "\"%s\" is missing here: %s", key,
	               why);
}

mural_status mu_cluster_unknown(const mu_cluster_reader *r, const mu_hjson_value *value, const char *what,
                                const char *word, const char *const *known, size_t n)
{
	char where[MU_HJSON_WHERE];
	const char *nearest = n ? mu_nearest(word, known, n) : NULL;
	return mu_fail(r->err, MURAL_USAGE, mu_hjson_where(r->tree, value, where), "there is no %s \"%.60s\"%s%s%s",
	               what, word, nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

mural_status mu_cluster_check_keys(const mu_cluster_reader *r, const mu_hjson_value *object, const char *const *known,
                                   size_t n)
{
	for (const mu_hjson_value *v = object->first; v; v = v->next) {
		size_t i = 0;
		while (known && i < n && strcmp(v->key, known[i]) != 0)
			i++;
		if (v->earlier)
			return mu_cluster_bad(r, v, "each key once");
		if (known && i == n && v->key[0] != '_')
			return mu_cluster_unknown(r, v, "key", v->key, known, n);
	}
	return MURAL_OK;
}

mural_status mu_cluster_name(const mu_cluster_reader *r, const mu_hjson_value *value, const char *expected, char *to,
                             size_t size)
{
	if (!value)
		return MURAL_OK;
	if (value->kind != MU_HJSON_STRING || strlen(value->text) >= size || !*value->text)
		return mu_cluster_bad(r, value, expected);
	strcpy(to, value->text);
	return MURAL_OK;
}

mural_status mu_cluster_count(const mu_cluster_reader *r, const mu_hjson_value *value, uint32_t *count)
{
	if (value->kind != MU_HJSON_NUMBER || !value->number.whole || value->number.negative ||
	    value->number.magnitude < 1 || value->number.magnitude > MURAL_CLUSTER_MOST)
		return mu_cluster_bad(r, value, "a whole number from 1 to 65536");
	*count = (uint32_t)value->number.magnitude;
	return MURAL_OK;
}

static mural_status read_number(const mu_cluster_reader *r, const mu_hjson_value *object, const mu_cluster_key *key,
                                void *to)
{
	const mu_hjson_value *value = mu_hjson_member(object, key->key);
	const char *expected = key->above_0 ? "a number above 0" : "a number of 0 or more";
	if (!value)
		return key->required ? mu_cluster_missing(r, object, key->key, expected) : MURAL_OK;
	double number = value->kind == MU_HJSON_NUMBER ? value->number.value * key->unit : NAN;
	if (!isfinite(number) || !(key->above_0 ? number > 0 : number >= 0) || number > 1e18)
		return mu_cluster_bad(r, value, expected);
	if (key->bytes)
		*(uint64_t *)(void *)((char *)to + key->offset) = (uint64_t)number;
	else
		*(double *)(void *)((char *)to + key->offset) = number;
	return MURAL_OK;
}

mural_status mu_cluster_numbers(const mu_cluster_reader *r, const mu_hjson_value *object, const mu_cluster_key *keys,
                                size_t n, const char *const *others, size_t n_others, void *to)
{
	const char *known[MOST_KEYS];
	size_t n_known = 0;
	if (object->kind != MU_HJSON_OBJECT)
		return mu_cluster_bad(r, object, "an object { ... }");
	for (size_t i = 0; i < n && n_known < MOST_KEYS; i++)
		known[n_known++] = keys[i].key;
	for (size_t i = 0; i < n_others && n_known < MOST_KEYS; i++)
		known[n_known++] = others[i];
	MU_TRY(mu_cluster_check_keys(r, object, known, n_known));
	for (size_t i = 0; i < n; i++)
		MU_TRY(read_number(r, object, &keys[i], to));
	return MURAL_OK;
}
