/* Shared by the readers of a cluster file: what they say about mistakes, and tables of numeric keys.
 *
 *     cluster.c        devices, links, nodes
 *     cluster_rates.c  what was measured of a device
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_CLUSTER_READ_H
#define MU_ENGINE_CLUSTER_READ_H

#include "base/hjson.h"
#include "mural/cluster.h"

typedef struct mu_cluster_reader {
	mu_hjson *tree;
	mural_cluster *cluster;
	mural_error *err;
} mu_cluster_reader;

/* A number in an object. */
typedef struct mu_cluster_key {
	const char *key;
	bool above_0; /* else 0 is fine */
	double unit; /* one in the file is so many of the field's */
	size_t offset; /* of a double, or of a uint64_t for bytes */
	bool bytes;
	bool required;
} mu_cluster_key;

/* MURAL_USAGE in words: the value is not what was expected; a key is missing; a name or key is unknown. */
mural_status mu_cluster_bad(const mu_cluster_reader *r, const mu_hjson_value *value, const char *expected);
mural_status mu_cluster_missing(const mu_cluster_reader *r, const mu_hjson_value *object, const char *key,
                                const char *why);
mural_status mu_cluster_unknown(const mu_cluster_reader *r, const mu_hjson_value *value, const char *what,
                                const char *word, const char *const *known, size_t n);

/* Members with unknown names (known NULL: any may stand), and names given twice. A key that starts with _ is a comment. */
mural_status mu_cluster_check_keys(const mu_cluster_reader *r, const mu_hjson_value *object, const char *const *known,
                                   size_t n);
/* A name into to[size], if value is not NULL. */
mural_status mu_cluster_name(const mu_cluster_reader *r, const mu_hjson_value *value, const char *expected, char *to,
                             size_t size);
/* 1 .. MURAL_CLUSTER_MOST. */
mural_status mu_cluster_count(const mu_cluster_reader *r, const mu_hjson_value *value, uint32_t *count);
/* The numbers of an object into the struct at `to`; others: keys that it may have besides. */
mural_status mu_cluster_numbers(const mu_cluster_reader *r, const mu_hjson_value *object, const mu_cluster_key *keys,
                                size_t n, const char *const *others, size_t n_others, void *to);

/* "rates" of the cluster's device number `device`; value NULL: it has none. */
mural_status mu_cluster_read_rates(mu_cluster_reader *r, const mu_hjson_value *value, uint32_t device);

#endif
