/* Pretend cards: a CUDA module for machines without one, to be offered under the name mural_cuda.so.
 *
 * A card's memory has two addresses. The one that everybody is given may not be touched: a read or a write of it by the host ends
 * the process. The other one only copies and operations know, which find it here. A queue is a thread that does what it is told in
 * order, later: whoever reads a result without waiting finds what was there before. The operations are the processor's, so a
 * training on these cards gives the bits of one on the processor.
 *
 *     PRETEND_CARDS=N                how many there are: 2
 *     PRETEND_CARD_VISIBLE=N,M       those that this process sees: all. As CUDA_VISIBLE_DEVICES
 *     PRETEND_CARD_BYTES=N           memory of each: 1 GiB
 *     PRETEND_CARD_REFERENCE=1       operations of the reference, which rounds otherwise
 *     PRETEND_CARD_NO_BF16=1         a card that cannot compute in bf16
 *     PRETEND_CARD_IMAGE_US=N        takes so many microseconds longer for each image
 *     PRETEND_CARD_FAILS_AT=N        its n-th operation fails, and everything behind it
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_MODULES_PRETEND_CARD_PRETEND_H
#define TESTS_MODULES_PRETEND_CARD_PRETEND_H

#include "device/device.h"

/* memory.c: the one address and the other. */
mural_status pretend_allocate(mu_memory kind, size_t bytes, void **memory, mural_error *err);
void pretend_release(void *memory);
size_t pretend_taken(void); /* bytes of device memory */
/* Where the card finds what lies at a device address; any other address is returned as it is. */
void *pretend_inside(const void *address);
bool pretend_is_device(const void *address);
bool pretend_is_pinned(const void *address);

/* queue.c: work in order. The argument is copied and aligned to 16 bytes. */
typedef mural_status (*pretend_work)(void *argument, mural_error *err);
mural_status pretend_enqueue(mu_queue *queue, pretend_work work, const void *argument, size_t bytes, mural_error *err);
bool pretend_captures(const mu_queue *queue);

mural_status pretend_queue_create(mu_device_handle *device, mu_queue **queue, mural_error *err);
void pretend_queue_free(mu_queue *queue);
mural_status pretend_wait(mu_queue *queue, mural_error *err);
mural_status pretend_event_create(mu_device_handle *device, mu_event **event, mural_error *err);
void pretend_event_free(mu_event *event);
mural_status pretend_event_record(mu_event *event, mu_queue *queue, mural_error *err);
mural_status pretend_queue_wait_event(mu_queue *queue, mu_event *event, mural_error *err);
mural_status pretend_event_test(mu_event *event, bool *finished, mural_error *err);
mural_status pretend_event_seconds(mu_event *from, mu_event *to, double *seconds, mural_error *err);
mural_status pretend_capture_begin(mu_queue *queue, mural_error *err);
mural_status pretend_capture_end(mu_queue *queue, mu_graph **graph, mural_error *err);
mural_status pretend_graph_replay(mu_graph *graph, mu_queue *queue, mural_error *err);
void pretend_graph_free(mu_graph *graph);

/* device.c */
extern const mu_device_table pretend_device;

#endif
