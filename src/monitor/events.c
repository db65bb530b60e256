/* Event files. SPDX-License-Identifier: MIT */
#include "monitor/events.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"

enum { HEADER = 12, FOOTER = 4, WIRE_VARINT = 0, WIRE_8_BYTES = 1, WIRE_BYTES = 2, WIRE_4_BYTES = 5 };

/* Bit by bit: events are some hundred bytes, a table would cost more cache than it saves time. */
uint32_t mu_crc32c(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint32_t crc = 0xffffffffu;
	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

uint32_t mu_crc32c_masked(const void *bytes, size_t n)
{
	uint32_t crc = mu_crc32c(bytes, n);
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* Little-endian, whatever the machine is. */
static void put_number(unsigned char *to, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (unsigned char)(value >> 8 * i);
}

static void add(mu_events *events, const void *bytes, size_t n)
{
	if (n > sizeof events->record - FOOTER - events->used) {
		events->overflow = true;
		return;
	}
	memcpy(events->record + events->used, bytes, n);
	events->used += n;
}

static void add_varint(mu_events *events, uint64_t value)
{
	unsigned char text[10];
	size_t n = 0;
	do
		text[n++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
	while (value >>= 7);
	add(events, text, n);
}

static void add_key(mu_events *events, unsigned field, unsigned wire)
{
	add_varint(events, field << 3 | wire);
}

static void add_fixed(mu_events *events, uint64_t value, size_t bytes)
{
	unsigned char text[8];
	put_number(text, value, bytes);
	add(events, text, bytes);
}

static size_t varint_bytes(uint64_t value)
{
	size_t n = 1;
	while (value >>= 7)
		n++;
	return n;
}

void mu_events_begin(mu_events *events, uint64_t step, double wall_time)
{
	uint64_t bits;
	memcpy(&bits, &wall_time, sizeof bits);
	events->used = HEADER;
	events->overflow = false;
	add_key(events, 1, WIRE_8_BYTES);
	add_fixed(events, bits, 8);
	add_key(events, 2, WIRE_VARINT);
	add_varint(events, step);
}

void mu_events_value(mu_events *events, const char *tag, double value)
{
	float single = (float)value;
	uint32_t bits;
	memcpy(&bits, &single, sizeof bits);
	size_t tag_bytes = strlen(tag), inner = 1 + varint_bytes(tag_bytes) + tag_bytes + 5;
	/* A Summary per value: fields of the same number merge, so readers see one. */
	add_key(events, 5, WIRE_BYTES);
	add_varint(events, 1 + varint_bytes(inner) + inner);
	add_key(events, 1, WIRE_BYTES);
	add_varint(events, inner);
	add_key(events, 1, WIRE_BYTES);
	add_varint(events, tag_bytes);
	add(events, tag, tag_bytes);
	add_key(events, 2, WIRE_4_BYTES);
	add_fixed(events, bits, 4);
}

static mural_status cannot_write(const mu_events *events, mural_error *err)
{
	return mu_fail(err, MURAL_FAILED, events->path, "the event file cannot be written: %s", strerror(errno));
}

mural_status mu_events_end(mu_events *events, mural_error *err)
{
	if (events->overflow)
		return mu_bug(err, "an event is larger than its record");
	unsigned char *data = events->record + HEADER;
	size_t n = events->used - HEADER, total = events->used + FOOTER, done = 0;
	put_number(events->record, n, 8);
	put_number(events->record + 8, mu_crc32c_masked(events->record, 8), 4);
	put_number(data + n, mu_crc32c_masked(data, n), 4);
	while (done < total) {
		ssize_t wrote = write(events->fd, events->record + done, total - done);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return cannot_write(events, err);
		done += (size_t)wrote;
	}
	return MURAL_OK;
}

static mural_status write_version(mu_events *events, double now, mural_error *err)
{
	static const char version[] = "brain.Event:2";
	uint64_t bits;
	memcpy(&bits, &now, sizeof bits);
	events->used = HEADER;
	events->overflow = false;
	add_key(events, 1, WIRE_8_BYTES);
	add_fixed(events, bits, 8);
	add_key(events, 3, WIRE_BYTES);
	add_varint(events, sizeof version - 1);
	add(events, version, sizeof version - 1);
	return mu_events_end(events, err);
}

mural_status mu_events_open(mu_events *events, const char *folder, mural_error *err)
{
	char host[256] = "localhost";
	time_t now = time(NULL);
	*events = (mu_events){.fd = -1};
	MU_TRY(mu_make_folders(folder, err));
	if (gethostname(host, sizeof host - 1) != 0)
		strcpy(host, "localhost");
	int n = snprintf(events->path, sizeof events->path, "%s/events.out.tfevents.%lld.%s.%ld", folder,
	                 (long long)now, host, (long)getpid());
	if (n < 0 || (size_t)n >= sizeof events->path)
		return mu_fail(err, MURAL_USAGE, NULL, "the folder for event files has too long a name");
	events->fd = open(events->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (events->fd < 0)
		return cannot_write(events, err);
	events->opened = true;
	return write_version(events, (double)now, err);
}

void mu_events_remove(const char *folder)
{
	DIR *open = opendir(folder);
	const struct dirent *entry;
	while (open && (entry = readdir(open)) != NULL)
		if (strstr(entry->d_name, "tfevents"))
			unlinkat(dirfd(open), entry->d_name, 0);
	if (open)
		closedir(open);
}

void mu_events_close(mu_events *events)
{
	if (events && events->opened)
		close(events->fd);
	if (events)
		*events = (mu_events){0};
}
