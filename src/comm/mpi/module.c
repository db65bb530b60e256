/* The collectives table over MPI, opened at run time: what the caller's threads see.
 *
 * Begin posts a job and returns; wait sleeps until the comm thread has finished it. A handle's `request` is its job's number
 * plus one. See inside.h for the ring and thread.c for the other side.
 * SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/version.h"
#include "comm/check.h"
#include "comm/module.h"
#include "comm/mpi/inside.h"

static const mu_comm_table table;

static mu_mpi_group *group_of(const mu_comm *comm)
{
	return (mu_mpi_group *)comm;
}

static mu_mpi_comm *inside(const mu_comm *comm)
{
	return group_of(comm)->ring;
}

/* A collective that never ends because MPI failed: the failure goes to everybody who asks. */
static mural_status report(const mu_mpi_comm *comm, mural_error *err)
{
	const mural_error *failure = &comm->failure;
	if (failure->status == MURAL_OK)
		return MURAL_OK;
	return mu_fail(err, failure->status, failure->where, "%s", failure->message);
}

static mural_status start_thread(mu_mpi_comm *comm, mural_error *err)
{
	sigset_t all, before;
	/* Signals are for the program's own threads. Threads that MPI starts inherit this. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int code = pthread_create(&comm->thread, NULL, mu_mpi_thread, comm);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code ? mu_fail(err, MURAL_FAILED, NULL, "the thread for MPI cannot be started (code %d)", code)
	            : MURAL_OK;
}

static void stop_thread(mu_mpi_comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	comm->order = MU_MPI_CLOSE;
	pthread_cond_signal(&comm->work);
	pthread_mutex_unlock(&comm->lock);
	pthread_join(comm->thread, NULL);
}

static void release(mu_mpi_comm *comm)
{
	pthread_cond_destroy(&comm->done);
	pthread_cond_destroy(&comm->work);
	pthread_mutex_destroy(&comm->lock);
	for (mu_mpi_group *group = comm->groups, *next; group; group = next) {
		next = group->next;
		free(group);
	}
	free(comm);
}

static size_t call_limit(void)
{
	const char *text = getenv("MURAL_MPI_CALL_BYTES");
	unsigned long long limit = text ? strtoull(text, NULL, 10) : 0;
	return limit > 0 && limit <= 1u << 30 ? (size_t)limit : 1u << 30;
}

/* `work` is waited for until a time by mu_now()'s clock. */
static void init_lock(mu_mpi_comm *comm)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&comm->lock, NULL);
	pthread_cond_init(&comm->work, &monotonic);
	pthread_cond_init(&comm->done, NULL);
	pthread_condattr_destroy(&monotonic);
}

static mural_status mpi_open(mu_comm **out, mural_error *err)
{
	*out = NULL;
	mu_mpi_comm *comm = calloc(1, sizeof *comm);
	if (!comm)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the MPI ring");
	comm->world.base.table = &table;
	comm->world.ring = comm;
	comm->world.among = MPI_COMM_NULL;
	comm->add_bf16 = comm->add_f16 = MPI_OP_NULL;
	comm->limit = call_limit();
	comm->heart.sending = comm->heart.receiving = MPI_REQUEST_NULL;
	init_lock(comm);
	mural_status status = start_thread(comm, err);
	if (status != MURAL_OK) {
		release(comm);
		return status;
	}
	pthread_mutex_lock(&comm->lock);
	while (!comm->opened)
		pthread_cond_wait(&comm->done, &comm->lock);
	status = report(comm, err);
	pthread_mutex_unlock(&comm->lock);
	if (status != MURAL_OK) {
		stop_thread(comm);
		release(comm);
		return status;
	}
	*out = &comm->world.base;
	return MURAL_OK;
}

/* A group goes with its ring. */
static void mpi_close(mu_comm *comm)
{
	if (!comm || group_of(comm) != &inside(comm)->world)
		return;
	stop_thread(inside(comm));
	release(inside(comm));
}

/* MPI_Abort ends this process too. If the comm thread does not come to it, or it does not return, a second is enough. */
static void mpi_abort(mu_comm *comm, int code)
{
	mu_mpi_comm *self = inside(comm);
	pthread_mutex_lock(&self->lock);
	self->order = MU_MPI_ABORT;
	self->code = code;
	pthread_cond_signal(&self->work);
	pthread_mutex_unlock(&self->lock);
	mu_sleep(1.0);
	_exit(code);
}

static const mu_comm_facts *mpi_facts(const mu_comm *comm)
{
	return &group_of(comm)->facts;
}

static mural_status post(mu_comm *base, mu_mpi_job job, size_t bytes, mu_pending *pending, mural_error *err)
{
	mu_mpi_comm *comm = inside(base);
	MU_TRY(mu_comm_check_idle(pending, err));
	pending->begun = mu_now();
	pending->ended = 0;
	pending->bytes = bytes;
	job.pending = pending;
	job.group = group_of(base);
	job.busy = true;
	mu_mpi_plan(comm, &job);
	pthread_mutex_lock(&comm->lock);
	mu_mpi_job *slot;
	comm->heart.waiting++;
	comm->heart.waits++;
	while ((slot = &comm->ring[comm->posted % MU_MPI_RING])->busy && comm->failure.status == MURAL_OK)
		pthread_cond_wait(&comm->done, &comm->lock);
	comm->heart.waiting--;
	mural_status status = report(comm, err);
	if (status == MURAL_OK) {
		*slot = job;
		comm->posted++;
		pending->request = (void *)(uintptr_t)comm->posted;
		pthread_cond_signal(&comm->work);
	}
	pthread_mutex_unlock(&comm->lock);
	return status;
}

static mural_status all_reduce(mu_comm *comm, void *buffer, size_t count, mu_dtype type, mu_reduce how,
                               mu_pending *pending, mural_error *err)
{
	MU_TRY(mu_comm_check_reduce(type, how, err));
	mu_mpi_job job = {
	        .kind = MU_MPI_ALL_REDUCE, .from = buffer, .to = buffer, .count = count, .type = type, .how = how};
	job.width = mu_dtype_bytes(type);
	return post(comm, job, count * job.width, pending, err);
}

static mural_status broadcast(mu_comm *comm, void *buffer, size_t bytes, int root, mu_pending *pending,
                              mural_error *err)
{
	MU_TRY(mu_comm_check_root(mpi_facts(comm), root, err));
	mu_mpi_job job = {
	        .kind = MU_MPI_BROADCAST, .from = buffer, .to = buffer, .count = bytes, .width = 1, .root = root};
	return post(comm, job, bytes, pending, err);
}

static mural_status post_blocks(mu_comm *comm, mu_mpi_kind kind, const void *from, void *to, size_t count,
                                mu_dtype type, mu_pending *pending, mural_error *err)
{
	mu_mpi_job job = {.kind = kind, .from = from, .to = to, .count = count, .type = type, .how = MU_SUM};
	job.width = mu_dtype_bytes(type);
	return post(comm, job, count * job.width * (size_t)mpi_facts(comm)->size, pending, err);
}

static mural_status all_gather(mu_comm *comm, const void *mine, void *gathered, size_t count, mu_dtype type,
                               mu_pending *pending, mural_error *err)
{
	return post_blocks(comm, MU_MPI_ALL_GATHER, mine, gathered, count, type, pending, err);
}

static mural_status reduce_scatter(mu_comm *comm, const void *buffer, void *mine, size_t count, mu_dtype type,
                                   mu_pending *pending, mural_error *err)
{
	MU_TRY(mu_comm_check_reduce(type, MU_SUM, err));
	return post_blocks(comm, MU_MPI_REDUCE_SCATTER, buffer, mine, count, type, pending, err);
}

static mural_status all_to_all(mu_comm *comm, const void *from, void *to, size_t count, mu_dtype type,
                               mu_pending *pending, mural_error *err)
{
	return post_blocks(comm, MU_MPI_ALL_TO_ALL, from, to, count, type, pending, err);
}

static mural_status barrier(mu_comm *comm, mu_pending *pending, mural_error *err)
{
	return post(comm, (mu_mpi_job){.kind = MU_MPI_BARRIER}, 0, pending, err);
}

/* Under the lock. */
static bool in_flight(const mu_mpi_comm *comm, const mu_pending *pending)
{
	uint64_t number = (uintptr_t)pending->request;
	if (number == 0 || number + MU_MPI_RING <= comm->posted)
		return false; /* its place was taken by a later job, so it has finished */
	return comm->ring[(number - 1) % MU_MPI_RING].busy;
}

/* Under the lock, when it is no longer in flight or MPI has failed. */
static mural_status settle(const mu_mpi_comm *comm, mu_pending *pending, mural_error *err)
{
	bool unfinished = in_flight(comm, pending);
	pending->request = NULL;
	return unfinished ? report(comm, err) : MURAL_OK;
}

static mural_status test(mu_comm *base, mu_pending *pending, bool *finished, mural_error *err)
{
	mu_mpi_comm *comm = inside(base);
	mural_status status = MURAL_OK;
	pthread_mutex_lock(&comm->lock);
	*finished = !in_flight(comm, pending) || comm->failure.status != MURAL_OK;
	if (*finished)
		status = settle(comm, pending, err);
	pthread_mutex_unlock(&comm->lock);
	return status;
}

static mural_status wait_finished(mu_comm *base, mu_pending *pending, mural_error *err)
{
	mu_mpi_comm *comm = inside(base);
	pthread_mutex_lock(&comm->lock);
	comm->heart.waiting++;
	comm->heart.waits++;
	while (in_flight(comm, pending) && comm->failure.status == MURAL_OK)
		pthread_cond_wait(&comm->done, &comm->lock);
	comm->heart.waiting--;
	mural_status status = settle(comm, pending, err);
	pthread_mutex_unlock(&comm->lock);
	return status;
}

static mural_status mpi_group(mu_comm *base, const bool *member_R, mu_comm **group, mural_error *err)
{
	mu_mpi_comm *comm = inside(base);
	mu_pending pending = {0};
	mu_mpi_group *made = calloc(1, sizeof *made);
	*group = NULL;
	const bool member = made && member_R[mpi_facts(base)->rank];
	if (made) {
		made->base.table = &table;
		made->ring = comm;
		made->among = MPI_COMM_NULL;
		made->facts = *mpi_facts(base);
		made->next = comm->groups;
		comm->groups = made;
	}
	MU_TRY(post(base, (mu_mpi_job){.kind = MU_MPI_GROUP, .to = made, .count = member}, 0, &pending, err));
	MU_TRY(wait_finished(base, &pending, err));
	if (member)
		*group = &made->base;
	return made ? MURAL_OK : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a group of ranks");
}

static void mpi_watch(mu_comm *base, const mu_comm_watch *watch)
{
	mu_mpi_comm *comm = inside(base);
	pthread_mutex_lock(&comm->lock);
	comm->heart.on = watch && watch->seconds > 0;
	comm->heart.pulse = watch ? watch->pulse : NULL;
	comm->heart.stalled = watch ? watch->stalled : NULL;
	comm->heart.argument = watch ? watch->argument : NULL;
	if (comm->heart.on)
		comm->heart.seconds = watch->seconds;
	pthread_cond_signal(&comm->work);
	pthread_mutex_unlock(&comm->lock);
}

static const mu_comm_table table = {
        .name = "mpi",
        .build_id = MU_BUILD_ID,
        .open = mpi_open,
        .close = mpi_close,
        .abort = mpi_abort,
        .facts = mpi_facts,
        .all_reduce_begin = all_reduce,
        .broadcast_begin = broadcast,
        .all_gather_begin = all_gather,
        .reduce_scatter_begin = reduce_scatter,
        .all_to_all_begin = all_to_all,
        .barrier_begin = barrier,
        .test = test,
        .wait = wait_finished,
        .group = mpi_group,
        .watch = mpi_watch,
};

#if defined(OPEN_MPI)
#define FLAVOUR "openmpi"
#elif defined(MPICH_VERSION) || defined(MPICH)
#define FLAVOUR "mpich"
#else
#define FLAVOUR "mpi"
#endif

extern MURAL_API const mu_comm_module mu_comm_module_entry;
const mu_comm_module mu_comm_module_entry = {
        .build_id = MU_BUILD_ID,
        .flavour = FLAVOUR,
        .table = &table,
        .library = mu_mpi_library,
        .needs_pmix = mu_mpi_needs_pmix,
};
