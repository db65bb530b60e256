/* Queues, events and graphs of pretend cards. A queue is a thread; what fails in one is the whole card's failure, which every call
 * tells from then on, as CUDA does. SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "modules/pretend_card/pretend.h"

typedef struct task {
	struct task *next;
	pretend_work work;
	bool always; /* also on a card that has failed: others wait for it */
	size_t bytes;
	_Alignas(16) unsigned char argument[];
} task;

typedef struct list {
	task *first, *last;
} list;

struct mu_queue {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work, idle;
	list todo;
	bool busy, stop, capturing;
	list captured;
};

struct mu_event {
	pthread_mutex_t lock;
	pthread_cond_t reached;
	unsigned long recorded, done; /* numbers of the last record asked for, and made */
	double seconds;
	int users; /* whoever made it, and work that is to come */
};

struct mu_graph {
	list tasks;
};

static struct {
	pthread_mutex_t lock;
	mural_error err; /* of the first failure */
} card = {.lock = PTHREAD_MUTEX_INITIALIZER};

static mural_status failure(mural_error *err)
{
	pthread_mutex_lock(&card.lock);
	const mural_error found = card.err;
	pthread_mutex_unlock(&card.lock);
	return found.status == MURAL_OK ? MURAL_OK : mu_fail(err, found.status, NULL, "%s", found.message);
}

static void note_failure(const mural_error *err)
{
	pthread_mutex_lock(&card.lock);
	if (card.err.status == MURAL_OK)
		card.err = *err;
	pthread_mutex_unlock(&card.lock);
}

static void append(list *l, task *t)
{
	t->next = NULL;
	if (l->last)
		l->last->next = t;
	else
		l->first = t;
	l->last = t;
}

static void free_list(list *l)
{
	while (l->first) {
		task *t = l->first;
		l->first = t->next;
		free(t);
	}
	l->last = NULL;
}

static task *make_task(pretend_work work, const void *argument, size_t bytes, bool always)
{
	task *t = malloc(sizeof *t + bytes);
	if (!t)
		return NULL;
	t->work = work;
	t->always = always;
	t->bytes = bytes;
	memcpy(t->argument, argument, bytes);
	return t;
}

static mural_status no_memory(mural_error *err)
{
	return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a pretend card's work");
}

static void put(mu_queue *queue, task *t)
{
	pthread_mutex_lock(&queue->lock);
	append(queue->capturing ? &queue->captured : &queue->todo, t);
	pthread_cond_signal(&queue->work);
	pthread_mutex_unlock(&queue->lock);
}

mural_status pretend_enqueue(mu_queue *queue, pretend_work work, const void *argument, size_t bytes, mural_error *err)
{
	MU_TRY(failure(err));
	task *t = make_task(work, argument, bytes, false);
	if (!t)
		return no_memory(err);
	put(queue, t);
	return MURAL_OK;
}

bool pretend_captures(const mu_queue *queue)
{
	return queue->capturing;
}

static void run(task *t)
{
	mural_error err = {0};
	if (!t->always && failure(NULL) != MURAL_OK)
		return;
	if (t->work(t->argument, &err) != MURAL_OK)
		note_failure(&err);
}

static void *serve(void *argument)
{
	mu_queue *queue = argument;
	pthread_mutex_lock(&queue->lock);
	while (queue->todo.first || !queue->stop) {
		task *t = queue->todo.first;
		if (!t) {
			pthread_cond_wait(&queue->work, &queue->lock);
			continue;
		}
		queue->todo.first = t->next;
		if (!t->next)
			queue->todo.last = NULL;
		queue->busy = true;
		pthread_mutex_unlock(&queue->lock);
		run(t);
		free(t);
		pthread_mutex_lock(&queue->lock);
		queue->busy = false;
		if (!queue->todo.first)
			pthread_cond_broadcast(&queue->idle);
	}
	pthread_mutex_unlock(&queue->lock);
	return NULL;
}

mural_status pretend_queue_create(mu_device_handle *device, mu_queue **queue, mural_error *err)
{
	(void)device;
	mu_queue *made = calloc(1, sizeof *made);
	*queue = NULL;
	if (!made)
		return no_memory(err);
	pthread_mutex_init(&made->lock, NULL);
	pthread_cond_init(&made->work, NULL);
	pthread_cond_init(&made->idle, NULL);
	if (pthread_create(&made->thread, NULL, serve, made) != 0) {
		free(made);
		return mu_fail(err, MURAL_FAILED, NULL, "no thread for a pretend card");
	}
	*queue = made;
	return MURAL_OK;
}

void pretend_queue_free(mu_queue *queue)
{
	if (!queue)
		return;
	pthread_mutex_lock(&queue->lock);
	queue->stop = true;
	pthread_cond_signal(&queue->work);
	pthread_mutex_unlock(&queue->lock);
	pthread_join(queue->thread, NULL);
	free_list(&queue->captured);
	pthread_cond_destroy(&queue->work);
	pthread_cond_destroy(&queue->idle);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

static mural_status refuse_capture(const mu_queue *queue, const char *what, mural_error *err)
{
	if (!queue->capturing)
		return MURAL_OK;
	return mu_fail(err, MURAL_FAILED, NULL, "the pretend card refuses %s while it captures", what);
}

mural_status pretend_wait(mu_queue *queue, mural_error *err)
{
	MU_TRY(refuse_capture(queue, "to be waited for", err));
	pthread_mutex_lock(&queue->lock);
	while (queue->todo.first || queue->busy)
		pthread_cond_wait(&queue->idle, &queue->lock);
	pthread_mutex_unlock(&queue->lock);
	return failure(err);
}

/* ---- Events. ---- */

typedef struct moment {
	mu_event *event;
	unsigned long number;
} moment;

static void leave(mu_event *event)
{
	pthread_mutex_lock(&event->lock);
	const bool last = --event->users == 0;
	pthread_mutex_unlock(&event->lock);
	if (!last)
		return;
	pthread_cond_destroy(&event->reached);
	pthread_mutex_destroy(&event->lock);
	free(event);
}

static mural_status reach(void *argument, mural_error *err)
{
	(void)err;
	const moment *m = argument;
	pthread_mutex_lock(&m->event->lock);
	m->event->done = m->number;
	m->event->seconds = mu_now();
	pthread_cond_broadcast(&m->event->reached);
	pthread_mutex_unlock(&m->event->lock);
	leave(m->event);
	return MURAL_OK;
}

static mural_status await(void *argument, mural_error *err)
{
	(void)err;
	const moment *m = argument;
	pthread_mutex_lock(&m->event->lock);
	while (m->event->done < m->number)
		pthread_cond_wait(&m->event->reached, &m->event->lock);
	pthread_mutex_unlock(&m->event->lock);
	leave(m->event);
	return MURAL_OK;
}

static mural_status queue_moment(mu_queue *queue, mu_event *event, bool record, mural_error *err)
{
	moment m = {.event = event};
	MU_TRY(refuse_capture(queue, "an event", err));
	MU_TRY(failure(err));
	pthread_mutex_lock(&event->lock);
	event->recorded += record;
	event->users++;
	m.number = event->recorded;
	pthread_mutex_unlock(&event->lock);
	task *t = make_task(record ? reach : await, &m, sizeof m, true);
	if (!t)
		abort(); /* a test's machine without 64 bytes */
	put(queue, t);
	return MURAL_OK;
}

mural_status pretend_event_create(mu_device_handle *device, mu_event **event, mural_error *err)
{
	(void)device;
	mu_event *made = calloc(1, sizeof *made);
	*event = made;
	if (!made)
		return no_memory(err);
	made->users = 1;
	pthread_mutex_init(&made->lock, NULL);
	pthread_cond_init(&made->reached, NULL);
	return MURAL_OK;
}

void pretend_event_free(mu_event *event)
{
	if (event)
		leave(event);
}

mural_status pretend_event_record(mu_event *event, mu_queue *queue, mural_error *err)
{
	return queue_moment(queue, event, true, err);
}

mural_status pretend_queue_wait_event(mu_queue *queue, mu_event *event, mural_error *err)
{
	return queue_moment(queue, event, false, err);
}

mural_status pretend_event_test(mu_event *event, bool *finished, mural_error *err)
{
	pthread_mutex_lock(&event->lock);
	*finished = event->done == event->recorded;
	pthread_mutex_unlock(&event->lock);
	return failure(err);
}

mural_status pretend_event_seconds(mu_event *from, mu_event *to, double *seconds, mural_error *err)
{
	bool one, other;
	MU_TRY(pretend_event_test(from, &one, err));
	MU_TRY(pretend_event_test(to, &other, err));
	if (!one || !other)
		return mu_fail(err, MURAL_FAILED, NULL, "the pretend card has not come to an event yet");
	*seconds = to->seconds - from->seconds;
	return MURAL_OK;
}

/* ---- Graphs. ---- */

mural_status pretend_capture_begin(mu_queue *queue, mural_error *err)
{
	MU_TRY(refuse_capture(queue, "to capture", err));
	MU_TRY(failure(err));
	pthread_mutex_lock(&queue->lock);
	queue->capturing = true;
	pthread_mutex_unlock(&queue->lock);
	return MURAL_OK;
}

mural_status pretend_capture_end(mu_queue *queue, mu_graph **graph, mural_error *err)
{
	*graph = calloc(1, sizeof **graph);
	pthread_mutex_lock(&queue->lock);
	queue->capturing = false;
	list captured = queue->captured;
	queue->captured = (list){0};
	pthread_mutex_unlock(&queue->lock);
	if (*graph)
		(*graph)->tasks = captured;
	else
		free_list(&captured);
	return *graph ? MURAL_OK : no_memory(err);
}

mural_status pretend_graph_replay(mu_graph *graph, mu_queue *queue, mural_error *err)
{
	for (const task *t = graph->tasks.first; t; t = t->next)
		MU_TRY(pretend_enqueue(queue, t->work, t->argument, t->bytes, err));
	return MURAL_OK;
}

void pretend_graph_free(mu_graph *graph)
{
	if (graph)
		free_list(&graph->tasks);
	free(graph);
}
