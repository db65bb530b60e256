/* Event files byte by byte: the checksum's published values, records that a strict reader accepts, appended runs; and the CSV monitor
 * beside them. The reader here is a second, tiny one, written from the format's description. SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "monitor/scalars.h"

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/mural-events-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}

/* RFC 3720, B.4: CRC-32C of 32 bytes of 0, of 0xff, and of 0 .. 31. */
static void the_checksum_is_castagnolis(void **state)
{
	(void)state;
	unsigned char bytes[32] = {0};
	assert_int_equal(mu_crc32c(bytes, 32), 0x8a9136aau);
	memset(bytes, 0xff, 32);
	assert_int_equal(mu_crc32c(bytes, 32), 0x62a8ab43u);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char)i;
	assert_int_equal(mu_crc32c(bytes, 32), 0x46dd794eu);
	assert_int_equal(mu_crc32c("123456789", 9), 0xe3069283u);
	/* rotate right by 15, add 0xa282ead8 */
	assert_int_equal(mu_crc32c_masked("123456789", 9), 0xc78ab0e5u);
}

static uint64_t number(const unsigned char *at, size_t bytes)
{
	uint64_t value = 0;
	for (size_t i = bytes; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

typedef struct event {
	double wall_time;
	uint64_t step;
	char version[32];
	int n;
	struct {
		char tag[64];
		float value;
	} values[16];
} event;

static uint64_t varint(const unsigned char **at)
{
	uint64_t value = 0;
	for (int shift = 0;; shift += 7) {
		value |= (uint64_t)(**at & 0x7f) << shift;
		if (!(*(*at)++ & 0x80))
			return value;
	}
}

static void read_value(const unsigned char *at, const unsigned char *end, event *e)
{
	assert_true(e->n < 16);
	while (at < end) {
		uint64_t key = varint(&at);
		if (key == (1 << 3 | 2)) {
			uint64_t bytes = varint(&at);
			assert_true(bytes < sizeof e->values[0].tag);
			memcpy(e->values[e->n].tag, at, bytes);
			at += bytes;
		} else {
			assert_int_equal(key, 2 << 3 | 5);
			memcpy(&e->values[e->n].value, at, 4);
			at += 4;
		}
	}
	assert_ptr_equal(at, end);
	e->n++;
}

static void read_event(const unsigned char *at, const unsigned char *end, event *e)
{
	memset(e, 0, sizeof *e);
	while (at < end) {
		uint64_t key = varint(&at), bytes;
		switch (key) {
		case 1 << 3 | 1:
			memcpy(&e->wall_time, at, 8);
			at += 8;
			break;
		case 2 << 3 | 0: e->step = varint(&at); break;
		case 3 << 3 | 2:
			bytes = varint(&at);
			memcpy(e->version, at, bytes);
			at += bytes;
			break;
		default:
			assert_int_equal(key, 5 << 3 | 2);
			bytes = varint(&at);
			const unsigned char *inner = at;
			at += bytes;
			while (inner < at) {
				assert_int_equal(varint(&inner), 1 << 3 | 2);
				bytes = varint(&inner);
				read_value(inner, inner + bytes, e);
				inner += bytes;
			}
		}
	}
	assert_ptr_equal(at, end);
}

/* Records of the only event file of the folder; every checksum must hold. */
static int read_file(event *events, int most)
{
	char path[512] = "";
	DIR *open = opendir(folder);
	const struct dirent *entry;
	int n = 0;
	assert_non_null(open);
	while ((entry = readdir(open)) != NULL)
		if (strncmp(entry->d_name, "events.out.tfevents.", 20) == 0) {
			assert_string_equal(path, "");
			snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		}
	closedir(open);
	char *text;
	size_t bytes;
	assert_int_equal(mu_file_read(path, "events", 1 << 20, MURAL_DATA, &text, &bytes, NULL), MURAL_OK);
	const unsigned char *at = (const unsigned char *)text, *end = at + bytes;
	while (at < end && n < most) {
		uint64_t length = number(at, 8);
		assert_int_equal(number(at + 8, 4), mu_crc32c_masked(at, 8));
		assert_true((uint64_t)(end - at) >= length + 16);
		assert_int_equal(number(at + 12 + length, 4), mu_crc32c_masked(at + 12, length));
		read_event(at + 12, at + 12 + length, &events[n++]);
		at += length + 16;
	}
	assert_ptr_equal(at, end);
	free(text);
	return n;
}

static void records_are_what_a_strict_reader_expects(void **state)
{
	(void)state;
	static mu_events events;
	event read[4];
	assert_int_equal(mu_events_open(&events, folder, NULL), MURAL_OK);
	mu_events_begin(&events, 300, 1.5e9);
	mu_events_value(&events, "Train/Samples/lr", 0.25);
	mu_events_value(&events, "Train/Samples/train_loss", -2.5);
	assert_int_equal(mu_events_end(&events, NULL), MURAL_OK);
	mu_events_begin(&events, UINT64_MAX >> 1, 2);
	mu_events_value(&events, "a", 1);
	assert_int_equal(mu_events_end(&events, NULL), MURAL_OK);
	mu_events_close(&events);
	assert_int_equal(read_file(read, 4), 3);
	assert_string_equal(read[0].version, "brain.Event:2");
	assert_int_equal(read[1].step, 300);
	assert_true(read[1].wall_time == 1.5e9);
	assert_int_equal(read[1].n, 2);
	assert_string_equal(read[1].values[0].tag, "Train/Samples/lr");
	assert_true(read[1].values[0].value == 0.25f);
	assert_string_equal(read[1].values[1].tag, "Train/Samples/train_loss");
	assert_true(read[1].values[1].value == -2.5f);
	assert_int_equal(read[2].step, UINT64_MAX >> 1);
	mu_events_remove(folder);
	mu_events_begin(&events, 1, 1);
	for (int i = 0; i < 100; i++)
		mu_events_value(&events, "a tag as long as the longest that anybody would give a curve", 1);
	assert_int_equal(mu_events_end(&events, NULL), MURAL_BUG);
}

static void write_points(mu_scalars *scalars, uint64_t from, uint64_t to)
{
	for (uint64_t x = from; x <= to; x += 10) {
		mu_scalars_begin(scalars, x, 1);
		mu_scalars_put(scalars, "Train/Samples/lr", (double)x / 4);
		assert_int_equal(mu_scalars_end(scalars, NULL), MURAL_OK);
	}
}

static void assert_table(const char *expected)
{
	char path[128], *text;
	size_t bytes;
	snprintf(path, sizeof path, "%s/Train_Samples_lr.csv", folder);
	assert_int_equal(mu_file_read(path, "table", 1 << 20, MURAL_DATA, &text, &bytes, NULL), MURAL_OK);
	assert_string_equal(text, expected);
	free(text);
}

/* As DeepSpeed names it; one header however often the run goes on; nothing from beyond the checkpoint. */
static void the_csv_monitor_goes_on(void **state)
{
	(void)state;
	static mu_scalars scalars;
	event read[4];
	mu_scalars_settings settings = {
	        .events_folder = folder, .csv_folder = folder, .anew = true, .keep = UINT64_MAX};
	assert_int_equal(mu_scalars_open(&scalars, &settings, NULL), MURAL_OK);
	write_points(&scalars, 10, 30);
	mu_scalars_close(&scalars);
	assert_table("step,lr\n10,2.5\n20,5\n30,7.5\n");
	assert_int_equal(read_file(read, 4), 4);

	settings = (mu_scalars_settings){.csv_folder = folder, .keep = 20};
	assert_int_equal(mu_scalars_open(&scalars, &settings, NULL), MURAL_OK);
	write_points(&scalars, 30, 30);
	mu_scalars_close(&scalars);
	assert_table("step,lr\n10,2.5\n20,5\n30,7.5\n");

	settings.keep = UINT64_MAX;
	assert_int_equal(mu_scalars_open(&scalars, &settings, NULL), MURAL_OK);
	write_points(&scalars, 10, 10);
	mu_scalars_close(&scalars);
	assert_table("step,lr\n10,2.5\n20,5\n30,7.5\n10,2.5\n");

	settings.events_folder = folder;
	settings.anew = true;
	assert_int_equal(mu_scalars_open(&scalars, &settings, NULL), MURAL_OK);
	write_points(&scalars, 10, 10);
	mu_scalars_close(&scalars);
	assert_table("step,lr\n10,2.5\n");
	assert_int_equal(read_file(read, 4), 2);
}

static void a_full_disk_is_said(void **state)
{
	(void)state;
	static mu_events events;
	mural_error err = {0};
	assert_int_equal(mu_events_open(&events, folder, NULL), MURAL_OK);
	close(events.fd);
	FILE *full = fopen("/dev/full", "w");
	if (!full)
		skip();
	events.fd = dup(fileno(full));
	fclose(full);
	mu_events_begin(&events, 1, 1);
	mu_events_value(&events, "a", 1);
	assert_int_equal(mu_events_end(&events, &err), MURAL_FAILED);
	assert_non_null(strstr(err.message, "event file cannot be written"));
	mu_events_close(&events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_checksum_is_castagnolis),
	        cmocka_unit_test_setup_teardown(records_are_what_a_strict_reader_expects, make_folder, remove_folder),
	        cmocka_unit_test_setup_teardown(the_csv_monitor_goes_on, make_folder, remove_folder),
	        cmocka_unit_test_setup_teardown(a_full_disk_is_said, make_folder, remove_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
