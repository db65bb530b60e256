/* A cluster, described in a file: devices, the links inside and between its nodes, what an hour costs.
 *
 * Used to emulate it (`--cluster FILE`: real ranks on one machine, as slow as described) and to plan for it. docs/clusters.md
 * specifies the file; examples/clusters/ has some.
 *
 *     mural_cluster *cluster;
 *     mural_cluster_read(&cluster, "examples/clusters/tesla.json", &err);
 *     mural_cluster_place(cluster, MURAL_PLACE_PACK, ranks, places, &err);
 *     cluster->devices[places[r].device].seconds_per_image ...
 *     mural_cluster_free(cluster);
 *
 * The struct is plain data: it may be copied and sent as bytes.
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_CLUSTER_H
#define MURAL_CLUSTER_H

#include <stdint.h>

#include "mural/comm.h"
#include "mural/config.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MURAL_CLUSTER_NAME 64 /* bytes of a name */
#define MURAL_CLUSTER_DEVICES 64 /* kinds */
#define MURAL_CLUSTER_LINKS 64 /* kinds */
#define MURAL_CLUSTER_NODES 128 /* entries of "nodes"; each may stand for many nodes */
#define MURAL_CLUSTER_SLOTS 8 /* kinds of devices in one node */
#define MURAL_CLUSTER_MOST 65536 /* devices in all */
#define MURAL_CLUSTER_RATES 64 /* measured rows in all */

typedef struct mural_cluster_device {
	char name[MURAL_CLUSTER_NAME];
	/* How fast it is. Neither of the first and third told: as fast as the machine that emulates it. */
	double seconds_per_image; /* forward and backward; 0: tflops says */
	double seconds_per_batch; /* once per micro-batch, however few images it has */
	double flops_per_image; /* of the model that seconds_per_image is for, forward and backward: forecasts of others scale; 0: as it is */
	double tflops; /* 1e12 floating-point operations per second reached while training; 0: seconds_per_image says */
	uint64_t memory_bytes; /* 0: not told */
	double price_per_hour, watts; /* of one device; 0: not told */
	uint32_t line; /* where it stands in the file */
} mural_cluster_device;

/* What ranks reach on such devices, measured (`mural plan --calibrate`): more than one number says. The ranks of a node may share its
 * cores, so a rate is for so many ranks on one node; between two rates a forecast interpolates. A micro-batch of c images lasts,
 * forward and backward,
 *
 *     of one model  seconds_per_batch + c seconds_per_image
 *     of any        units seconds_per_unit + parameters seconds_per_parameter + c (operations seconds_per_flop + values
 *                   seconds_per_value)                                                       units: depth + 2
 *
 * where values are what forward writes: 8 width + 2 mlp_width per token and block, and attention's heads x tokens^2. */
typedef struct mural_cluster_rate {
	uint32_t device; /* index into devices */
	uint32_t ranks; /* on the node; default 1 */
	mural_precision precision;
	char model[MURAL_CLUSTER_NAME]; /* "" = any */
	double flops_per_image, parameters; /* one model: told by these, operations forward and backward */
	double seconds_per_image, seconds_per_batch; /* one model */
	double seconds_per_flop, seconds_per_value, seconds_per_parameter, seconds_per_unit; /* any model */
	double update_seconds_per_parameter, update_seconds; /* the optimizer's; the second whatever the model */
	double wait_share; /* of forward and backward: what ranks wait for each other because none is always equally fast */
	double loader_seconds_per_image; /* a rank's loader, all its threads together; 0: not told */
} mural_cluster_rate;

typedef struct mural_cluster_link {
	char name[MURAL_CLUSTER_NAME];
	double bytes_per_second; /* in each direction, > 0 */
	double latency_seconds; /* >= 0 */
} mural_cluster_link;

typedef struct mural_cluster_node {
	char name[MURAL_CLUSTER_NAME];
	uint32_t count; /* so many alike, >= 1 */
	uint32_t n_slots;
	struct {
		uint32_t device, count; /* index into devices; so many of them */
	} slots[MURAL_CLUSTER_SLOTS];
	int32_t inside, uplink; /* index into links; -1 where none is needed: one device, one node */
} mural_cluster_node;

typedef enum mural_cluster_algorithm {
	MURAL_CLUSTER_AUTO, /* the cheaper of the two, for each collective */
	MURAL_CLUSTER_RING,
	MURAL_CLUSTER_TREE
} mural_cluster_algorithm;

typedef struct mural_cluster {
	char name[MURAL_CLUSTER_NAME];
	char file[256]; /* it was read from; "" = none */
	char currency[8]; /* "EUR"; "" = not told */
	bool guessed; /* no file and no measurement: mural_cluster_here */
	mural_cluster_algorithm algorithm;
	uint32_t n_devices, n_links, n_entries, n_rates;
	uint32_t nodes_in_all, devices_in_all;
	mural_cluster_device devices[MURAL_CLUSTER_DEVICES];
	mural_cluster_link links[MURAL_CLUSTER_LINKS];
	mural_cluster_node nodes[MURAL_CLUSTER_NODES];
	mural_cluster_rate rates[MURAL_CLUSTER_RATES];
} mural_cluster;

typedef enum mural_placement {
	MURAL_PLACE_PACK, /* fill a node, then the next */
	MURAL_PLACE_SPREAD /* the first device of each node, then the second of each ... */
} mural_placement;

/* Where a rank sits. */
typedef struct mural_place {
	uint32_t entry; /* of nodes */
	uint32_t node; /* from 0, over the whole cluster */
	uint32_t device; /* of devices */
} mural_place;

/* Reads and checks a file. MURAL_USAGE names file:line:column: key, what was expected and what was found. The caller frees
 * *cluster; on failure it is NULL. */
MURAL_API mural_status mural_cluster_read(mural_cluster **cluster, const char *path, mural_error *err);
MURAL_API void mural_cluster_free(mural_cluster *cluster);

/* places: [ranks]. MURAL_USAGE if the cluster has fewer devices. */
MURAL_API mural_status mural_cluster_place(const mural_cluster *cluster, mural_placement placement, int ranks,
                                           mural_place *places, mural_error *err);

/* Seconds that a device takes for one image, forward and backward, of a model with so many operations per image; 0: not told. */
MURAL_API double mural_cluster_seconds(const mural_cluster_device *device, double flops_per_image);

/* All ranks, with the same cluster: *emulated does what comm does, as slowly as the cluster's links would. comm is borrowed and
 * outlives *emulated, whose mural_comm_close leaves it open. byte_scale: each byte counts as so many, so that a small model can
 * stand for a large one; 1 = as it is. One thread at a time may use *emulated. */
MURAL_API mural_status mural_comm_emulate(mural_comm **emulated, mural_comm *comm, const mural_cluster *cluster,
                                          mural_placement placement, double byte_scale, mural_error *err);

#ifdef __cplusplus
}
#endif
#endif
