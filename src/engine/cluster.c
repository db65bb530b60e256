/* The cluster file: HJSON to a checked struct, every mistake with file, line and key. docs/clusters.md is its specification.
 *
 * Tables of keys, one per kind of object, say what a key is called, in which unit it stands, where it goes and what it must be;
 * devices and links are named by their keys, nodes refer to those names.
 * SPDX-License-Identifier: MIT */
#include "mural/cluster.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "engine/cluster_read.h"

#define MOST_BYTES ((size_t)1 << 20) /* a description is some kilobytes */

#define IN_DEVICE(field) offsetof(mural_cluster_device, field)
static const mu_cluster_key device_keys[] = {
        {"seconds_per_image", true, 1, IN_DEVICE(seconds_per_image), false, false},
        {"seconds_per_batch", false, 1, IN_DEVICE(seconds_per_batch), false, false},
        {"gflop_per_image", true, 1e9, IN_DEVICE(flops_per_image), false, false},
        {"tflops", true, 1, IN_DEVICE(tflops), false, false},
        {"memory_gib", true, (double)(1 << 30), IN_DEVICE(memory_bytes), true, false},
        {"price_per_hour", false, 1, IN_DEVICE(price_per_hour), false, false},
        {"watts", true, 1, IN_DEVICE(watts), false, false},
};
#undef IN_DEVICE
static const mu_cluster_key link_keys[] = {
        {"gb_per_s", true, 1e9, offsetof(mural_cluster_link, bytes_per_second), false, true},
        {"latency_us", false, 1e-6, offsetof(mural_cluster_link, latency_seconds), false, false},
};
static const char *const device_others[] = {"rates"};
static const char *const top_keys[] = {"name", "currency", "algorithm", "devices", "links", "nodes"};
static const char *const node_keys[] = {"name", "count", "devices", "inside", "uplink"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The object `key` of named things, at most `most`. */
static mural_status read_named(const mu_cluster_reader *r, const char *key, size_t most, const mu_hjson_value **named)
{
	const mu_hjson_value *object = *named = mu_hjson_member(mu_hjson_root(r->tree), key);
	if (!object)
		return MURAL_OK;
	if (object->kind != MU_HJSON_OBJECT || object->count > most)
		return mu_cluster_bad(r, object, "an object of named entries, at most 64");
	MU_TRY(mu_cluster_check_keys(r, object, NULL, 0));
	for (const mu_hjson_value *v = object->first; v; v = v->next)
		if (!*v->key || strlen(v->key) >= MURAL_CLUSTER_NAME)
			return mu_cluster_bad(r, v, "a name of 1 to 63 bytes before the colon");
	return MURAL_OK;
}

static mural_status read_devices(mu_cluster_reader *r)
{
	const mu_hjson_value *named;
	MU_TRY(read_named(r, "devices", MURAL_CLUSTER_DEVICES, &named));
	if (!named || !named->first)
		return mu_cluster_missing(
		        r, named ? named : mu_hjson_root(r->tree), "devices",
		        "at least one kind of device, such as \"t4\": { \"seconds_per_image\": 0.036 }");
	for (const mu_hjson_value *v = named->first; v; v = v->next) {
		mural_cluster_device *device = &r->cluster->devices[r->cluster->n_devices++];
		strcpy(device->name, v->key);
		device->line = mu_hjson_line(r->tree, v);
		MU_TRY(mu_cluster_numbers(r, v, device_keys, COUNT(device_keys), device_others, COUNT(device_others),
		                          device));
		if (device->seconds_per_image > 0 && device->tflops > 0)
			return mu_cluster_bad(r, mu_hjson_member(v, "tflops"),
			                      "either seconds_per_image or tflops, not both");
		MU_TRY(mu_cluster_read_rates(r, mu_hjson_member(v, "rates"), r->cluster->n_devices - 1));
	}
	return MURAL_OK;
}

static mural_status read_links(mu_cluster_reader *r)
{
	const mu_hjson_value *named;
	MU_TRY(read_named(r, "links", MURAL_CLUSTER_LINKS, &named));
	for (const mu_hjson_value *v = named ? named->first : NULL; v; v = v->next) {
		mural_cluster_link *link = &r->cluster->links[r->cluster->n_links++];
		strcpy(link->name, v->key);
		MU_TRY(mu_cluster_numbers(r, v, link_keys, COUNT(link_keys), NULL, 0, link));
	}
	return MURAL_OK;
}

static mural_status find_link(const mu_cluster_reader *r, const mu_hjson_value *node, const char *key, bool needed,
                              const char *why, int32_t *index)
{
	const mural_cluster *c = r->cluster;
	const mu_hjson_value *value = mu_hjson_member(node, key);
	const char *known[MURAL_CLUSTER_LINKS];
	*index = -1;
	if (!value)
		return needed ? mu_cluster_missing(r, node, key, why) : MURAL_OK;
	if (value->kind != MU_HJSON_STRING)
		return mu_cluster_bad(r, value, "the name of a link");
	for (uint32_t i = 0; i < c->n_links; i++) {
		known[i] = c->links[i].name;
		if (strcmp(known[i], value->text) == 0)
			*index = (int32_t)i;
	}
	return *index >= 0 ? MURAL_OK : mu_cluster_unknown(r, value, "link", value->text, known, c->n_links);
}

/* "devices": { "t4": 8 } of a node. */
static mural_status read_slots(mu_cluster_reader *r, const mu_hjson_value *object, mural_cluster_node *node)
{
	const mural_cluster *c = r->cluster;
	const char *known[MURAL_CLUSTER_DEVICES] = {0};
	if (object->kind != MU_HJSON_OBJECT || object->count < 1 || object->count > MURAL_CLUSTER_SLOTS)
		return mu_cluster_bad(r, object, "an object of 1 to 8 kinds with their numbers, such as { \"t4\": 8 }");
	for (uint32_t i = 0; i < c->n_devices; i++)
		known[i] = c->devices[i].name;
	MU_TRY(mu_cluster_check_keys(r, object, NULL, 0));
	for (const mu_hjson_value *v = object->first; v; v = v->next) {
		uint32_t kind = 0;
		while (kind < c->n_devices && strcmp(c->devices[kind].name, v->key) != 0)
			kind++;
		if (kind == c->n_devices)
			return mu_cluster_unknown(r, v, "device", v->key, known, c->n_devices);
		node->slots[node->n_slots].device = kind;
		MU_TRY(mu_cluster_count(r, v, &node->slots[node->n_slots++].count));
	}
	return MURAL_OK;
}

static uint64_t devices_of(const mural_cluster_node *node)
{
	uint64_t devices = 0;
	for (uint32_t s = 0; s < node->n_slots; s++)
		devices += node->slots[s].count;
	return devices;
}

static mural_status read_node(mu_cluster_reader *r, const mu_hjson_value *object)
{
	mural_cluster *c = r->cluster;
	mural_cluster_node *node = &c->nodes[c->n_entries++];
	if (object->kind != MU_HJSON_OBJECT)
		return mu_cluster_bad(r, object, "an object { ... }");
	MU_TRY(mu_cluster_check_keys(r, object, node_keys, COUNT(node_keys)));
	snprintf(node->name, sizeof node->name, "node %u", c->n_entries);
	MU_TRY(mu_cluster_name(r, mu_hjson_member(object, "name"), "a name of 1 to 63 bytes", node->name,
	                       sizeof node->name));
	node->count = 1;
	const mu_hjson_value *count = mu_hjson_member(object, "count"), *devices = mu_hjson_member(object, "devices");
	if (count)
		MU_TRY(mu_cluster_count(r, count, &node->count));
	if (!devices)
		return mu_cluster_missing(r, object, "devices", "which devices this node has, such as { \"t4\": 8 }");
	MU_TRY(read_slots(r, devices, node));
	uint64_t in_all = c->devices_in_all + node->count * devices_of(node);
	if (in_all > MURAL_CLUSTER_MOST)
		return mu_cluster_bad(r, object, "at most 65536 devices in all");
	c->devices_in_all = (uint32_t)in_all;
	c->nodes_in_all += node->count;
	return MURAL_OK;
}

/* Once the number of nodes is known: which links are needed. */
static mural_status connect_nodes(mu_cluster_reader *r, const mu_hjson_value *nodes)
{
	mural_cluster *c = r->cluster;
	uint32_t i = 0;
	for (const mu_hjson_value *v = nodes->first; v; v = v->next, i++) {
		MU_TRY(find_link(r, v, "inside", devices_of(&c->nodes[i]) > 1,
		                 "the link between the devices of this node", &c->nodes[i].inside));
		MU_TRY(find_link(r, v, "uplink", c->nodes_in_all > 1, "the link from this node to the others",
		                 &c->nodes[i].uplink));
	}
	return MURAL_OK;
}

static mural_status read_nodes(mu_cluster_reader *r)
{
	const mu_hjson_value *nodes = mu_hjson_member(mu_hjson_root(r->tree), "nodes");
	if (!nodes)
		return mu_cluster_missing(r, mu_hjson_root(r->tree), "nodes", "a list of nodes [ { ... } ]");
	if (nodes->kind != MU_HJSON_ARRAY || nodes->count < 1 || nodes->count > MURAL_CLUSTER_NODES)
		return mu_cluster_bad(r, nodes, "a list of 1 to 128 nodes [ { ... } ]");
	for (const mu_hjson_value *v = nodes->first; v; v = v->next)
		MU_TRY(read_node(r, v));
	return connect_nodes(r, nodes);
}

static mural_status read_algorithm(const mu_cluster_reader *r)
{
	static const char *const words[] = {"auto", "ring", "tree"};
	const mu_hjson_value *value = mu_hjson_member(mu_hjson_root(r->tree), "algorithm");
	if (!value)
		return MURAL_OK;
	for (size_t i = 0; i < COUNT(words) && value->kind == MU_HJSON_STRING; i++)
		if (strcmp(value->text, words[i]) == 0) {
			r->cluster->algorithm = (mural_cluster_algorithm)i;
			return MURAL_OK;
		}
	return mu_cluster_bad(r, value, "\"auto\", \"ring\" or \"tree\"");
}

static mural_status read_cluster(mu_cluster_reader *r)
{
	mural_cluster *c = r->cluster;
	const mu_hjson_value *root = mu_hjson_root(r->tree);
	if (root->kind != MU_HJSON_OBJECT)
		return mu_cluster_bad(r, root, "an object { ... }");
	MU_TRY(mu_cluster_check_keys(r, root, top_keys, COUNT(top_keys)));
	strcpy(c->name, "cluster");
	MU_TRY(mu_cluster_name(r, mu_hjson_member(root, "name"), "a name of 1 to 63 bytes", c->name, sizeof c->name));
	MU_TRY(mu_cluster_name(r, mu_hjson_member(root, "currency"), "a currency such as \"EUR\", at most 7 bytes",
	                       c->currency, sizeof c->currency));
	MU_TRY(read_algorithm(r));
	MU_TRY(read_devices(r));
	MU_TRY(read_links(r));
	return read_nodes(r);
}

mural_status mural_cluster_read(mural_cluster **cluster, const char *path, mural_error *err)
{
	char *text = NULL;
	size_t bytes;
	mural_status status;
	mu_cluster_reader r = {.err = err};
	*cluster = NULL;
	MU_TRY_OUT(mu_file_read(path, "cluster file", MOST_BYTES, MURAL_USAGE, &text, &bytes, err));
	const mu_hjson_source source = {path, text, bytes, false, MURAL_USAGE};
	MU_TRY_OUT(mu_hjson_read(&r.tree, &source, err));
	r.cluster = calloc(1, sizeof *r.cluster);
	if (r.cluster)
		snprintf(r.cluster->file, sizeof r.cluster->file, "%.250s", path);
	status = r.cluster ? read_cluster(&r) : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a cluster");
out:
	if (status == MURAL_OK)
		*cluster = r.cluster;
	else
		free(r.cluster);
	mu_hjson_free(r.tree);
	free(text);
	return status;
}

void mural_cluster_free(mural_cluster *cluster)
{
	free(cluster);
}
