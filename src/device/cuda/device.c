/* The devices table over the CUDA runtime: a queue is a non-blocking stream, an event an event, a graph a graph.
 *
 * Nothing here synchronises but `wait` (and memory that is given back). Streams do not block against the default stream,
 * so that nothing a library does there can order itself between our work. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "base/version.h"
#include "device/cuda/cuda.h"

struct mu_event {
	mu_device_handle *device;
	cudaEvent_t event;
};

struct mu_graph {
	cudaGraphExec_t exec;
};

mural_status mu_cuda_said(cudaError_t said, const char *what, mural_error *err)
{
	if (said == cudaSuccess)
		return MURAL_OK;
	(void)cudaGetLastError(); /* the next call shall not find it again */
	return mu_fail(err, said == cudaErrorMemoryAllocation ? MURAL_OUT_OF_MEMORY : MURAL_FAILED, NULL,
	               "the GPU refused %s: %s (%s); the cause may be an earlier operation", what,
	               cudaGetErrorString(said), cudaGetErrorName(said));
}

static mural_status make_current(const mu_device_handle *device, mural_error *err)
{
	return mu_cuda_said(cudaSetDevice(device->index), "to be made current", err);
}

static mural_status attribute(int *value, enum cudaDeviceAttr which, int index, mural_error *err)
{
	return mu_cuda_said(cudaDeviceGetAttribute(value, which, index), "a question about itself", err);
}

static mural_status cuda_survey(mu_device_survey *survey, mural_error *err)
{
	*survey = (mu_device_survey){.devices = 0};
	MU_TRY(mu_cuda_said(cudaGetDeviceCount(&survey->devices), "to be counted", err));
	return mu_cuda_said(cudaDeviceGetPCIBusId(survey->first_bus, (int)sizeof survey->first_bus, 0),
	                    "a question about its address", err);
}

static mural_status cuda_open(int index, mu_device_handle **device, mural_error *err)
{
	int count = 0, major = 0, minor = 0, shared = 0;
	*device = NULL;
	MU_TRY(mu_cuda_check(err));
	MU_TRY(mu_cuda_said(cudaGetDeviceCount(&count), "to be counted", err));
	if (index < 0 || index >= count)
		return mu_fail(err, MURAL_FAILED, NULL,
		               "GPU %d does not exist: this process sees %d (CUDA_VISIBLE_DEVICES chooses which)",
		               index, count);
	mu_device_handle d = {.index = index};
	MU_TRY(attribute(&d.multiprocessors, cudaDevAttrMultiProcessorCount, index, err));
	MU_TRY(attribute(&major, cudaDevAttrComputeCapabilityMajor, index, err));
	MU_TRY(attribute(&minor, cudaDevAttrComputeCapabilityMinor, index, err));
	MU_TRY(attribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, index, err));
	d.capability = 10 * major + minor;
	d.shared_bytes = (size_t)shared;
	MU_TRY(make_current(&d, err));
	*device = malloc(sizeof **device);
	if (!*device)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a device");
	**device = d;
	return MURAL_OK;
}

static void cuda_close(mu_device_handle *device)
{
	free(device);
}

static mural_status cuda_facts(mu_device_handle *device, mu_device_facts *facts, mural_error *err)
{
	struct cudaDeviceProp properties;
	*facts = (mu_device_facts){.can_capture = true};
	MU_TRY(make_current(device, err));
	MU_TRY(mu_cuda_said(cudaGetDeviceProperties(&properties, device->index), "a question about itself", err));
	snprintf(facts->name, sizeof facts->name, "%.127s", properties.name);
	MU_TRY(mu_cuda_said(cudaDeviceGetPCIBusId(facts->bus, (int)sizeof facts->bus, device->index),
	                    "a question about its address", err));
	return mu_cuda_said(cudaMemGetInfo(&facts->free_bytes, &facts->total_bytes), "a question about its memory",
	                    err);
}

static mural_status cuda_allocate(mu_device_handle *device, mu_memory kind, size_t bytes, void **memory,
                                  mural_error *err)
{
	size_t free_bytes = 0, total = 0;
	const size_t n = bytes ? bytes : 1;
	*memory = NULL;
	MU_TRY(make_current(device, err));
	const cudaError_t said =
	        kind == MU_MEMORY_PINNED ? cudaHostAlloc(memory, n, cudaHostAllocPortable) : cudaMalloc(memory, n);
	if (said != cudaErrorMemoryAllocation)
		return mu_cuda_said(said, "memory", err);
	(void)cudaGetLastError();
	(void)cudaMemGetInfo(&free_bytes, &total);
	if (kind == MU_MEMORY_PINNED)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "the host gave no %s of pinned memory", MU_SIZE(bytes));
	return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "GPU %d gave no %s of memory: %s of %s are free", device->index,
	               MU_SIZE(bytes), MU_SIZE(free_bytes), MU_SIZE(total));
}

static void cuda_release(mu_device_handle *device, mu_memory kind, void *memory, size_t bytes)
{
	(void)bytes;
	if (!memory || make_current(device, NULL) != MURAL_OK)
		return;
	if (kind == MU_MEMORY_PINNED)
		(void)cudaFreeHost(memory);
	else
		(void)cudaFree(memory);
}

static mural_status cuda_queue_create(mu_device_handle *device, mu_queue **queue, mural_error *err)
{
	cudaStream_t stream;
	*queue = NULL;
	MU_TRY(make_current(device, err));
	MU_TRY(mu_cuda_said(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream", err));
	*queue = malloc(sizeof **queue);
	if (!*queue) {
		(void)cudaStreamDestroy(stream);
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a queue");
	}
	**queue = (mu_queue){.device = device, .stream = stream};
	return MURAL_OK;
}

static void cuda_queue_free(mu_queue *queue)
{
	if (queue && make_current(queue->device, NULL) == MURAL_OK)
		(void)cudaStreamDestroy(queue->stream);
	free(queue);
}

static mural_status cuda_copy(mu_queue *queue, void *to, const void *from, size_t bytes, mural_error *err)
{
	MU_TRY(make_current(queue->device, err));
	return mu_cuda_said(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue->stream), "a copy", err);
}

static mural_status cuda_zero(mu_queue *queue, void *memory, size_t bytes, mural_error *err)
{
	MU_TRY(make_current(queue->device, err));
	return mu_cuda_said(cudaMemsetAsync(memory, 0, bytes, queue->stream), "to clear memory", err);
}

static mural_status cuda_wait(mu_queue *queue, mural_error *err)
{
	MU_TRY(make_current(queue->device, err));
	return mu_cuda_said(cudaStreamSynchronize(queue->stream), "to finish its work", err);
}

static mural_status cuda_event_create(mu_device_handle *device, mu_event **event, mural_error *err)
{
	cudaEvent_t made;
	*event = NULL;
	MU_TRY(make_current(device, err));
	MU_TRY(mu_cuda_said(cudaEventCreate(&made), "an event", err));
	*event = malloc(sizeof **event);
	if (!*event) {
		(void)cudaEventDestroy(made);
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for an event");
	}
	**event = (mu_event){.device = device, .event = made};
	return MURAL_OK;
}

static void cuda_event_free(mu_event *event)
{
	if (event && make_current(event->device, NULL) == MURAL_OK)
		(void)cudaEventDestroy(event->event);
	free(event);
}

static mural_status cuda_event_record(mu_event *event, mu_queue *queue, mural_error *err)
{
	MU_TRY(make_current(queue->device, err));
	return mu_cuda_said(cudaEventRecord(event->event, queue->stream), "to record an event", err);
}

static mural_status cuda_queue_wait_event(mu_queue *queue, mu_event *event, mural_error *err)
{
	MU_TRY(make_current(queue->device, err));
	return mu_cuda_said(cudaStreamWaitEvent(queue->stream, event->event, 0), "to wait for an event", err);
}

static mural_status cuda_event_test(mu_event *event, bool *finished, mural_error *err)
{
	*finished = false;
	MU_TRY(make_current(event->device, err));
	const cudaError_t said = cudaEventQuery(event->event);
	if (said == cudaErrorNotReady) {
		(void)cudaGetLastError(); /* it is no failure */
		return MURAL_OK;
	}
	*finished = true;
	return mu_cuda_said(said, "to come to an event", err);
}

static mural_status cuda_event_seconds(mu_event *from, mu_event *to, double *seconds, mural_error *err)
{
	float milliseconds = 0;
	MU_TRY(make_current(from->device, err));
	MU_TRY(mu_cuda_said(cudaEventElapsedTime(&milliseconds, from->event, to->event), "the time of an event", err));
	*seconds = 1e-3 * (double)milliseconds;
	return MURAL_OK;
}

/* Thread-local: other threads may go on allocating, as loaders do. */
static mural_status cuda_capture_begin(mu_queue *queue, mural_error *err)
{
	MU_TRY(make_current(queue->device, err));
	return mu_cuda_said(cudaStreamBeginCapture(queue->stream, cudaStreamCaptureModeThreadLocal),
	                    "to begin a capture", err);
}

static mural_status cuda_capture_end(mu_queue *queue, mu_graph **graph, mural_error *err)
{
	cudaGraph_t captured = NULL;
	mural_status status;
	*graph = NULL;
	MU_TRY(make_current(queue->device, err));
	MU_TRY(mu_cuda_said(cudaStreamEndCapture(queue->stream, &captured), "to end a capture", err));
	mu_graph *made = malloc(sizeof *made);
	if (!made) {
		status = mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a graph");
	} else {
		status = mu_cuda_said(cudaGraphInstantiate(&made->exec, captured, 0), "a graph", err);
	}
	(void)cudaGraphDestroy(captured);
	if (status != MURAL_OK) {
		free(made);
		return status;
	}
	*graph = made;
	return MURAL_OK;
}

static mural_status cuda_graph_replay(mu_graph *graph, mu_queue *queue, mural_error *err)
{
	MU_TRY(make_current(queue->device, err));
	return mu_cuda_said(cudaGraphLaunch(graph->exec, queue->stream), "to replay a graph", err);
}

static void cuda_graph_free(mu_graph *graph)
{
	if (graph)
		(void)cudaGraphExecDestroy(graph->exec);
	free(graph);
}

const mu_device_table mu_device_cuda = {
        .name = "cuda",
        .build_id = MU_BUILD_ID,
        .survey = cuda_survey,
        .open = cuda_open,
        .close = cuda_close,
        .facts = cuda_facts,
        .allocate = cuda_allocate,
        .release = cuda_release,
        .queue_create = cuda_queue_create,
        .queue_free = cuda_queue_free,
        .copy = cuda_copy,
        .zero = cuda_zero,
        .wait = cuda_wait,
        .event_create = cuda_event_create,
        .event_free = cuda_event_free,
        .event_record = cuda_event_record,
        .queue_wait_event = cuda_queue_wait_event,
        .event_test = cuda_event_test,
        .event_seconds = cuda_event_seconds,
        .capture_begin = cuda_capture_begin,
        .capture_end = cuda_capture_end,
        .graph_replay = cuda_graph_replay,
        .graph_free = cuda_graph_free,
};
