/* The host as a device: plain memory, a queue that runs at once. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proc.h"
#include "base/version.h"
#include "device/device.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

/* Of blocks so large the rounding to huge pages is nothing; smaller ones may lie beside each other on many ranks. */
#define LARGE ((size_t)64 << 20)

/* Handles carry no state: one address serves for all. */
static char host_handle, host_queue;

struct mu_event {
	double seconds;
};

static mural_status host_survey(mu_device_survey *survey, mural_error *err)
{
	(void)err;
	*survey = (mu_device_survey){.devices = 1};
	return MURAL_OK;
}

static mural_status host_open(int index, mu_device_handle **device, mural_error *err)
{
	if (index != 0)
		return mu_fail(err, MURAL_USAGE, NULL, "host device %d does not exist: a machine has one host", index);
	*device = (mu_device_handle *)(void *)&host_handle;
	return MURAL_OK;
}

static void host_close(mu_device_handle *device)
{
	(void)device;
}

static mural_status host_facts(mu_device_handle *device, mu_device_facts *facts, mural_error *err)
{
	(void)device;
	(void)err;
	*facts = (mu_device_facts){.shares_host_memory = true};
	mu_proc_processor(facts->name, sizeof facts->name);
	facts->total_bytes = mu_proc_bytes("/proc/meminfo", "MemTotal");
	facts->free_bytes = mu_proc_bytes("/proc/meminfo", "MemAvailable");
	return MURAL_OK;
}

/* Anonymous mappings: zero pages until touched, huge pages where the system gives them to who asks, returned whole. */
static mural_status host_allocate(mu_device_handle *device, mu_memory kind, size_t bytes, void **memory,
                                  mural_error *err)
{
	(void)device;
	(void)kind;
	void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "the host gave no %s of memory (%s available)",
		               MU_SIZE(bytes), MU_SIZE(mu_proc_bytes("/proc/meminfo", "MemAvailable")));
	if (bytes >= LARGE)
		madvise(p, bytes, MADV_HUGEPAGE); /* a wish: old or small kernels refuse */
	*memory = p;
	return MURAL_OK;
}

static void host_release(mu_device_handle *device, mu_memory kind, void *memory, size_t bytes)
{
	(void)device;
	(void)kind;
	if (!memory)
		return;
	ASAN_UNPOISON_MEMORY_REGION(memory, bytes); /* arenas leave gaps in it, and the addresses come again */
	munmap(memory, bytes ? bytes : 1);
}

static mural_status host_queue_create(mu_device_handle *device, mu_queue **queue, mural_error *err)
{
	(void)device;
	(void)err;
	*queue = (mu_queue *)(void *)&host_queue;
	return MURAL_OK;
}

static void host_queue_free(mu_queue *queue)
{
	(void)queue;
}

static mural_status host_copy(mu_queue *queue, void *to, const void *from, size_t bytes, mural_error *err)
{
	(void)queue;
	(void)err;
	memmove(to, from, bytes);
	return MURAL_OK;
}

static mural_status host_zero(mu_queue *queue, void *memory, size_t bytes, mural_error *err)
{
	(void)queue;
	(void)err;
	memset(memory, 0, bytes);
	return MURAL_OK;
}

static mural_status host_wait(mu_queue *queue, mural_error *err)
{
	(void)queue;
	(void)err;
	return MURAL_OK;
}

static mural_status host_event_create(mu_device_handle *device, mu_event **event, mural_error *err)
{
	(void)device;
	*event = calloc(1, sizeof **event);
	return *event ? MURAL_OK : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for an event");
}

static void host_event_free(mu_event *event)
{
	free(event);
}

static mural_status host_event_record(mu_event *event, mu_queue *queue, mural_error *err)
{
	(void)queue;
	(void)err;
	event->seconds = mu_now();
	return MURAL_OK;
}

static mural_status host_queue_wait_event(mu_queue *queue, mu_event *event, mural_error *err)
{
	(void)queue;
	(void)event;
	(void)err;
	return MURAL_OK;
}

static mural_status host_event_test(mu_event *event, bool *finished, mural_error *err)
{
	(void)event;
	(void)err;
	*finished = true;
	return MURAL_OK;
}

static mural_status host_event_seconds(mu_event *from, mu_event *to, double *seconds, mural_error *err)
{
	(void)err;
	*seconds = to->seconds - from->seconds;
	return MURAL_OK;
}

static mural_status no_capture(mural_error *err)
{
	return mu_fail(err, MURAL_USAGE, NULL, "the host device cannot capture work");
}

static mural_status host_capture_begin(mu_queue *queue, mural_error *err)
{
	(void)queue;
	return no_capture(err);
}

static mural_status host_capture_end(mu_queue *queue, mu_graph **graph, mural_error *err)
{
	(void)queue;
	(void)graph;
	return no_capture(err);
}

static mural_status host_graph_replay(mu_graph *graph, mu_queue *queue, mural_error *err)
{
	(void)graph;
	(void)queue;
	return no_capture(err);
}

static void host_graph_free(mu_graph *graph)
{
	(void)graph;
}

const mu_device_table mu_device_host = {
        .name = "host",
        .build_id = MU_BUILD_ID,
        .survey = host_survey,
        .open = host_open,
        .close = host_close,
        .facts = host_facts,
        .allocate = host_allocate,
        .release = host_release,
        .queue_create = host_queue_create,
        .queue_free = host_queue_free,
        .copy = host_copy,
        .zero = host_zero,
        .wait = host_wait,
        .event_create = host_event_create,
        .event_free = host_event_free,
        .event_record = host_event_record,
        .queue_wait_event = host_queue_wait_event,
        .event_test = host_event_test,
        .event_seconds = host_event_seconds,
        .capture_begin = host_capture_begin,
        .capture_end = host_capture_end,
        .graph_replay = host_graph_replay,
        .graph_free = host_graph_free,
};
