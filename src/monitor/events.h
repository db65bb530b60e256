/* TensorBoard's event files, written by hand: TFRecords of Event messages in protocol-buffer encoding.
 *
 *     record   length u64, masked CRC-32C of those 8 bytes, data, masked CRC-32C of data; all little-endian
 *     mask     rotate right by 15, add 0xa282ead8
 *     Event    1 wall_time double, 2 step varint, 3 file_version string (first record only: "brain.Event:2"), 5 summary
 *     Summary  1 value, repeated: 1 tag string, 2 simple_value float
 *
 * Each Event reaches the file whole, in one write: TensorBoard can follow along, and a killed run leaves at most a torn last record,
 * which readers take for the end. A run that goes on opens a new file in the same folder.
 * SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_EVENTS_H
#define MU_MONITOR_EVENTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

typedef struct mu_events { /* zero-initialise */
	bool opened;
	int fd;
	char path[PATH_MAX];
	unsigned char record[4096]; /* header, then the event so far */
	size_t used;
	bool overflow;
} mu_events;

/* Makes the folder and a new file events.out.tfevents.<seconds>.<host>.<pid> in it. */
mural_status mu_events_open(mu_events *events, const char *folder, mural_error *err);
void mu_events_close(mu_events *events); /* NULL and all-zero structs are fine */

/* Removes the event files of a folder; one that is not there is fine. */
void mu_events_remove(const char *folder);

/* Some values with the same x: begin, values, end. Values that are not finite are written as they are; TensorBoard shows them so. */
void mu_events_begin(mu_events *events, uint64_t step, double wall_time);
void mu_events_value(mu_events *events, const char *tag, double value);
/* MURAL_FAILED: the disk did not take it. MURAL_BUG: more than fits. */
mural_status mu_events_end(mu_events *events, mural_error *err);

/* CRC-32C (Castagnoli), and as records keep it. */
uint32_t mu_crc32c(const void *bytes, size_t n);
uint32_t mu_crc32c_masked(const void *bytes, size_t n);

#endif
