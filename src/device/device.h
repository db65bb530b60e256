/* The devices table: bytes and queues, nothing about operations.
 *
 * A device allocates memory, moves bytes in order along a queue, marks places in a queue with events, and, where it
 * can, captures a queue's work to replay it. The host's queue runs everything at once in the calling thread, so its
 * events are free and it cannot capture. Ops tables run on a queue of the device that they belong to.
 * SPDX-License-Identifier: MIT */
#ifndef MU_DEVICE_DEVICE_H
#define MU_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fail.h"

typedef struct mu_device_handle mu_device_handle; /* one opened device; each table defines it */
typedef struct mu_queue mu_queue; /* work in order on one device */
typedef struct mu_event mu_event; /* a place in a queue */
typedef struct mu_graph mu_graph; /* captured work */

typedef enum mu_memory {
	MU_MEMORY_DEVICE, /* where the operations work */
	MU_MEMORY_PINNED /* host memory that the device copies from without staging; plain memory on the host device */
} mu_memory;

typedef struct mu_device_facts {
	char name[128]; /* "AMD EPYC 9654", "NVIDIA H200" */
	size_t total_bytes; /* memory of the device */
	size_t free_bytes; /* now */
	bool can_capture;
	bool shares_host_memory; /* device pointers may be read by the host */
	char bus[32]; /* "0000:3B:00.0": PCI address of a card, by which meters know it; "" of what is none */
} mu_device_facts;

/* What a process sees of one kind. */
typedef struct mu_device_survey {
	int devices;
	char first_bus[sizeof((mu_device_facts *)0)
	                       ->bus]; /* of number 0: processes that see other cards number them otherwise */
} mu_device_survey;

typedef struct mu_device_table {
	const char *name; /* "host", "cuda", "emulated" */
	const char *build_id; /* MU_BUILD_ID of the module */

	/* Opens nothing. */
	mural_status (*survey)(mu_device_survey *survey, mural_error *err);

	/* index: which device of this kind. Fails with MURAL_FAILED and a reason a person understands. */
	mural_status (*open)(int index, mu_device_handle **device, mural_error *err);
	void (*close)(mu_device_handle *device); /* NULL is fine */
	mural_status (*facts)(mu_device_handle *device, mu_device_facts *facts, mural_error *err);

	/* 64-byte aligned or better; contents undefined. The caller frees with release, which takes NULL. */
	mural_status (*allocate)(mu_device_handle *device, mu_memory kind, size_t bytes, void **memory,
	                         mural_error *err);
	void (*release)(mu_device_handle *device, mu_memory kind, void *memory, size_t bytes);

	mural_status (*queue_create)(mu_device_handle *device, mu_queue **queue, mural_error *err);
	void (*queue_free)(mu_queue *queue);
	/* Between host and device in any direction; asynchronous where the device is. */
	mural_status (*copy)(mu_queue *queue, void *to, const void *from, size_t bytes, mural_error *err);
	mural_status (*zero)(mu_queue *queue, void *memory, size_t bytes, mural_error *err);
	mural_status (*wait)(mu_queue *queue, mural_error *err); /* blocks until the queue is empty */

	mural_status (*event_create)(mu_device_handle *device, mu_event **event, mural_error *err);
	void (*event_free)(mu_event *event);
	mural_status (*event_record)(mu_event *event, mu_queue *queue, mural_error *err);
	mural_status (*queue_wait_event)(mu_queue *queue, mu_event *event, mural_error *err);
	/* Has the queue come to where the event was last recorded? Never blocks. What failed before it is told here. */
	mural_status (*event_test)(mu_event *event, bool *finished, mural_error *err);
	/* Seconds between two recorded and finished events. */
	mural_status (*event_seconds)(mu_event *from, mu_event *to, double *seconds, mural_error *err);

	/* Only where facts.can_capture; MURAL_USAGE otherwise. */
	mural_status (*capture_begin)(mu_queue *queue, mural_error *err);
	mural_status (*capture_end)(mu_queue *queue, mu_graph **graph, mural_error *err);
	mural_status (*graph_replay)(mu_graph *graph, mu_queue *queue, mural_error *err);
	void (*graph_free)(mu_graph *graph);
} mu_device_table;

extern const mu_device_table mu_device_host;

/* An opened device together with its table and its main queue: what upper floors pass around. */
typedef struct mu_device {
	const mu_device_table *table;
	mu_device_handle *handle;
	mu_queue *queue;
} mu_device;

/* On failure nothing stays open. */
mural_status mu_device_open(mu_device *device, const mu_device_table *table, int index, mural_error *err);
void mu_device_close(mu_device *device); /* NULL and all-zero structs are fine */

#endif
