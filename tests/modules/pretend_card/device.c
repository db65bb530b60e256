/* The devices table of pretend cards. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "modules/pretend_card/pretend.h"

#define MOST 16

struct mu_device_handle {
	int number; /* of the machine's cards */
};

static size_t setting(const char *name, size_t otherwise)
{
	const char *text = getenv(name);
	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* Numbers of the cards that this process sees. */
static int visible(int numbers[MOST])
{
	const char *text = getenv("PRETEND_CARD_VISIBLE");
	const int cards = (int)setting("PRETEND_CARDS", 2);
	int n = 0;
	if (!text)
		for (; n < cards && n < MOST; n++)
			numbers[n] = n;
	while (text && *text && n < MOST) {
		char *end;
		numbers[n++] = (int)strtol(text, &end, 10);
		text = *end == ',' ? end + 1 : "";
	}
	return n;
}

static void write_bus(int number, char bus[sizeof((mu_device_facts *)0)->bus])
{
	snprintf(bus, sizeof((mu_device_facts *)0)->bus, "0000:%02X:00.0", (unsigned)number + 0x3b);
}

static mural_status card_survey(mu_device_survey *survey, mural_error *err)
{
	int numbers[MOST];
	(void)err;
	*survey = (mu_device_survey){.devices = visible(numbers)};
	if (survey->devices > 0)
		write_bus(numbers[0], survey->first_bus);
	return MURAL_OK;
}

static mural_status card_open(int index, mu_device_handle **device, mural_error *err)
{
	int numbers[MOST];
	const int n = visible(numbers);
	*device = NULL;
	if (index < 0 || index >= n)
		return mu_fail(err, MURAL_FAILED, NULL, "pretend card %d does not exist: this process sees %d", index,
		               n);
	*device = malloc(sizeof **device);
	if (!*device)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a pretend card");
	(*device)->number = numbers[index];
	return MURAL_OK;
}

static void card_close(mu_device_handle *device)
{
	free(device);
}

static mural_status card_facts(mu_device_handle *device, mu_device_facts *facts, mural_error *err)
{
	(void)err;
	*facts = (mu_device_facts){.can_capture = true};
	snprintf(facts->name, sizeof facts->name, "Pretend Card %d", device->number);
	write_bus(device->number, facts->bus);
	facts->total_bytes = setting("PRETEND_CARD_BYTES", (size_t)1 << 30);
	const size_t taken = pretend_taken();
	facts->free_bytes = taken < facts->total_bytes ? facts->total_bytes - taken : 0;
	return MURAL_OK;
}

static mural_status card_allocate(mu_device_handle *device, mu_memory kind, size_t bytes, void **memory,
                                  mural_error *err)
{
	mu_device_facts facts;
	MU_TRY(card_facts(device, &facts, err));
	if (kind == MU_MEMORY_DEVICE && bytes > facts.free_bytes)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "a pretend card gave no %s of memory", MU_SIZE(bytes));
	return pretend_allocate(kind, bytes, memory, err);
}

static void card_release(mu_device_handle *device, mu_memory kind, void *memory, size_t bytes)
{
	(void)device;
	(void)kind;
	(void)bytes;
	pretend_release(memory);
}

/* ---- Copies. Host memory that is not pinned is read before the call returns, and written before it does, as CUDA has it. ---- */

typedef struct copy {
	void *to;
	const void *from; /* NULL: what follows this struct */
	size_t bytes;
} copy;

static mural_status do_copy(void *argument, mural_error *err)
{
	const copy *c = argument;
	(void)err;
	memmove(c->to, c->from ? c->from : c + 1, c->bytes);
	return MURAL_OK;
}

static bool is_pageable(const void *address)
{
	return !pretend_is_device(address) && !pretend_is_pinned(address);
}

static mural_status copy_from_pageable(mu_queue *queue, const copy *c, mural_error *err)
{
	copy *with_bytes = malloc(sizeof *with_bytes + c->bytes);
	if (!with_bytes)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a pretend card's copy");
	*with_bytes = (copy){.to = c->to, .bytes = c->bytes};
	memcpy(with_bytes + 1, c->from, c->bytes);
	const mural_status status = pretend_enqueue(queue, do_copy, with_bytes, sizeof *with_bytes + c->bytes, err);
	free(with_bytes);
	return status;
}

static mural_status card_copy(mu_queue *queue, void *to, const void *from, size_t bytes, mural_error *err)
{
	const copy c = {.to = pretend_inside(to), .from = pretend_inside(from), .bytes = bytes};
	const bool pageable_from = is_pageable(from), pageable_to = is_pageable(to);
	if ((pageable_from || pageable_to) && pretend_captures(queue))
		return mu_fail(err, MURAL_FAILED, NULL, "a pretend card cannot capture a copy of pageable memory");
	if (pageable_from)
		MU_TRY(copy_from_pageable(queue, &c, err));
	else
		MU_TRY(pretend_enqueue(queue, do_copy, &c, sizeof c, err));
	return pageable_to ? pretend_wait(queue, err) : MURAL_OK;
}

static mural_status do_zero(void *argument, mural_error *err)
{
	const copy *c = argument;
	(void)err;
	memset(c->to, 0, c->bytes);
	return MURAL_OK;
}

static mural_status card_zero(mu_queue *queue, void *memory, size_t bytes, mural_error *err)
{
	if (!pretend_is_device(memory))
		return mu_fail(err, MURAL_FAILED, NULL, "a pretend card was told to clear the host's memory");
	const copy c = {.to = pretend_inside(memory), .bytes = bytes};
	return pretend_enqueue(queue, do_zero, &c, sizeof c, err);
}

const mu_device_table pretend_device = {
        .name = "cuda",
        .build_id = MU_BUILD_ID,
        .survey = card_survey,
        .open = card_open,
        .close = card_close,
        .facts = card_facts,
        .allocate = card_allocate,
        .release = card_release,
        .queue_create = pretend_queue_create,
        .queue_free = pretend_queue_free,
        .copy = card_copy,
        .zero = card_zero,
        .wait = pretend_wait,
        .event_create = pretend_event_create,
        .event_free = pretend_event_free,
        .event_record = pretend_event_record,
        .queue_wait_event = pretend_queue_wait_event,
        .event_test = pretend_event_test,
        .event_seconds = pretend_event_seconds,
        .capture_begin = pretend_capture_begin,
        .capture_end = pretend_capture_end,
        .graph_replay = pretend_graph_replay,
        .graph_free = pretend_graph_free,
};
