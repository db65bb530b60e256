/* Heartbeats: every rank tells the one behind it in the ring how it is, about ten times per limit, and hears the one before it.
 *
 *     rank 0 ──► rank 1 ──► ... ──► rank n - 1 ──► rank 0
 *
 * The comm thread carries them, so they go on while the others compute. A beat has all that a message about its sender needs,
 * because after the last one there is nobody to ask. The last beat of a watch says goodbye: from then on silence is no news.
 *
 * Each beat also tells for whom the ranks wait, by what its sender knows of itself and heard from those before it: so the news of a
 * rank that stalls goes around the ring, and every rank can tell of it while it lasts. Who waits long beats more often, and news are
 * fast then. A rumour about the hearer itself is dropped, and one that a silent rank told last: nothing circulates for ever.
 *
 * Only time counts that this thread was awake in: after a pause of the whole process (a laptop's lid, SIGSTOP) nobody is accused of
 * having been silent meanwhile. What keeps a rank from being stuck is judged by itself: see tell().
 * SPDX-License-Identifier: MIT */
#include "comm/mpi/inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { TAG = 1 };
static const double PER_LIMIT = 10; /* beats */
static const double LONGEST_PAUSE = 2; /* seconds between beats */
static const double BUSY =
        0.01; /* of a processor: more is work, if only of a process that gets hardly any; the comm thread is not counted */
static const double LONG_WAIT = 0.5, FAST_PAUSE = 0.1; /* seconds: who waits so long beats so often */
static const double OF_LIMIT =
        0.1; /* a rank is stuck or silent, for a stall to be told, from so much of the limit on */
static const double PATIENCE = 5; /* seconds for a failure to be picked up in a collective, before all are ended */
static const double PARTING = 10; /* seconds for the goodbye of the rank before this one */

static double seconds_of(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double processor_seconds(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

static double pause_between(double limit)
{
	return limit / PER_LIMIT < LONGEST_PAUSE ? limit / PER_LIMIT : LONGEST_PAUSE;
}

static int neighbour(const mu_mpi_comm *comm, int distance)
{
	return (comm->world.facts.rank + distance + comm->world.facts.size) % comm->world.facts.size;
}

bool mu_mpi_heart_calls(const mu_mpi_comm *comm)
{
	const mu_mpi_heart *h = &comm->heart;
	return comm->world.facts.size > 1 && (h->on || h->alive) && (!h->alive || mu_now() >= h->due);
}

/* What this rank says of itself. It gets on if it has nothing to do or waits for others (those are asked then), marks its pulse, or
 * computes. */
static void tell(mu_mpi_comm *comm, double awake)
{
	mu_mpi_heart *h = &comm->heart;
	mu_mpi_beat *beat = &h->out;
	const char *doing = NULL;
	uint64_t beats = h->beats;
	pthread_mutex_lock(&comm->lock);
	bool waits = h->waiting > 0;
	if (h->waits != h->waits_seen)
		h->works = 0;
	h->waits_seen = h->waits;
	beat->watched = h->on;
	if (h->on && h->pulse) {
		const mu_pulse *pulse = h->pulse;
		doing = atomic_load_explicit(&pulse->doing, memory_order_relaxed);
		beats = atomic_load_explicit(&pulse->beats, memory_order_relaxed);
		beat->number = atomic_load_explicit(&pulse->number, memory_order_relaxed);
		beat->step = atomic_load_explicit(&pulse->step, memory_order_relaxed);
		snprintf(beat->device, sizeof beat->device, "%s", pulse->device);
	}
	pthread_mutex_unlock(&comm->lock);
	double processor = processor_seconds();
	bool gets_on = waits || !doing || beats != h->beats || processor - h->processor > BUSY * awake;
	beat->idle = gets_on ? 0 : beat->idle + awake;
	h->works = waits ? fmin(h->works, 0) - awake : fmax(h->works, 0) + awake;
	h->beats = beats;
	h->processor = processor;
	snprintf(beat->doing, sizeof beat->doing, "%s", waits ? "waiting for other ranks" : doing ? doing : "");
	snprintf(beat->host, sizeof beat->host, "%.63s", comm->world.facts.host);
}

static bool is_worse(const mu_comm_stall *a, const mu_comm_stall *b)
{
	return a->kind != b->kind ? a->kind > b->kind : a->seconds > b->seconds;
}

/* A rank by its beat. */
static mu_comm_stall blame(const mu_mpi_beat *beat, int rank, mu_stall_kind kind, double seconds)
{
	mu_comm_stall stall = {
	        .kind = kind, .rank = rank, .seconds = seconds, .number = beat->number, .step = beat->step};
	snprintf(stall.doing, sizeof stall.doing, "%s", beat->doing);
	snprintf(stall.host, sizeof stall.host, "%s", beat->host);
	snprintf(stall.device, sizeof stall.device, "%s", beat->device);
	return stall;
}

/* This rank, the one before it, and those of whom that one has heard. */
static void find_worst(mu_mpi_comm *comm, double limit)
{
	mu_mpi_heart *h = &comm->heart;
	const mu_mpi_beat *heard = &h->heard;
	const int own = comm->world.facts.rank;
	mu_comm_stall *worst = &h->out.worst;
	*worst = (mu_comm_stall){.rank = own};
	if (h->out.idle > OF_LIMIT * limit)
		*worst = blame(&h->out, own, MU_STALL_STUCK, h->out.idle);
	else if (h->works > 0 && h->out.doing[0])
		*worst = blame(&h->out, own, MU_STALL_WORKS, h->works);
	if (!heard->watched)
		return;
	if (h->silent > OF_LIMIT * limit + 2 * pause_between(limit)) {
		const mu_comm_stall silent = blame(heard, neighbour(comm, -1), MU_STALL_SILENT, h->silent);
		*worst = is_worse(&silent, worst) ? silent : *worst;
	} else if (heard->worst.rank != own && is_worse(&heard->worst, worst)) {
		*worst = heard->worst;
	}
}

/* Sends h->out once the one before it is gone; *sent tells. A rank that does not listen so gets no heap of beats. */
static int send(mu_mpi_comm *comm, bool *sent)
{
	mu_mpi_heart *h = &comm->heart;
	int finished = 1;
	int code = MPI_Test(&h->sending, &finished, MPI_STATUS_IGNORE);
	*sent = finished && !code;
	if (!*sent)
		return code;
	h->sent = h->out;
	return MPI_Isend(&h->sent, (int)sizeof h->sent, MPI_BYTE, neighbour(comm, 1), TAG, comm->world.among,
	                 &h->sending);
}

static int listen(mu_mpi_comm *comm)
{
	mu_mpi_heart *h = &comm->heart;
	return MPI_Irecv(&h->in, (int)sizeof h->in, MPI_BYTE, neighbour(comm, -1), TAG, comm->world.among,
	                 &h->receiving);
}

/* Takes all beats that have come. */
static int hear(mu_mpi_comm *comm)
{
	mu_mpi_heart *h = &comm->heart;
	for (int finished = 1; finished;) {
		int code = MPI_Test(&h->receiving, &finished, MPI_STATUS_IGNORE);
		if (!code && finished) {
			h->heard = h->in;
			h->silent = 0;
			code = listen(comm);
		}
		if (code)
			return code;
	}
	return MPI_SUCCESS;
}

static int begin(mu_mpi_comm *comm)
{
	mu_mpi_heart *h = &comm->heart;
	int code = h->receiving == MPI_REQUEST_NULL ? listen(comm) : MPI_SUCCESS;
	h->alive = true;
	h->heard = (mu_mpi_beat){.watched = true};
	h->works = 0;
	h->out = (mu_mpi_beat){0};
	h->silent = 0;
	h->last = mu_now();
	h->processor = processor_seconds();
	return code;
}

/* "rank 1 of 4 (node c12, NVIDIA H200)" */
static void name_neighbour(const mu_mpi_comm *comm, char *text, size_t capacity)
{
	const mu_mpi_beat *heard = &comm->heart.heard;
	int n = snprintf(text, capacity, "rank %d of %d", neighbour(comm, -1), comm->world.facts.size);
	if (heard->host[0])
		snprintf(text + n, capacity - (size_t)n, " (node %s%s%s)", heard->host, heard->device[0] ? ", " : "",
		         heard->device);
}

static void describe_work(const mu_mpi_beat *heard, char *text, size_t capacity)
{
	if (!heard->host[0])
		snprintf(text, capacity, "nothing yet");
	else if (!heard->doing[0])
		snprintf(text, capacity, "at rest after step %llu", (unsigned long long)heard->step);
	else
		snprintf(text, capacity, "%s (%llu), step %llu", heard->doing, (unsigned long long)heard->number,
		         (unsigned long long)heard->step);
}

/* Nothing works on this rank from now on. */
static void accuse(mu_mpi_comm *comm, double limit)
{
	mu_mpi_heart *h = &comm->heart;
	char who[320], work[160], where[64];
	mural_error err = {0};
	name_neighbour(comm, who, sizeof who);
	describe_work(&h->heard, work, sizeof work);
	snprintf(where, sizeof where, "mural.hang_seconds = %g", limit);
	if (h->silent > limit)
		mu_fail(&err, MURAL_PEER, where,
		        "%s was not heard of for %.0f s: its process is stopped or its host is lost; "
		        "last operation: %s",
		        who, h->silent, work);
	else
		mu_fail(&err, MURAL_PEER, where, "%s is stuck: nothing done for %.0f s; last operation: %s", who,
		        h->heard.idle, work);
	h->accused = mu_now();
	mu_mpi_break(comm, &err);
}

/* The failure has reached nobody who would act on it. */
static void end_all(mu_mpi_comm *comm)
{
	int code = mural_exit_code(MURAL_PEER);
	if (comm->world.base.lost)
		comm->world.base.lost(&comm->failure, comm->world.base.lost_argument);
	MPI_Abort(MPI_COMM_WORLD, code);
	_exit(code);
}

int mu_mpi_heart_round(mu_mpi_comm *comm)
{
	mu_mpi_heart *h = &comm->heart;
	bool sent;
	pthread_mutex_lock(&comm->lock);
	double limit = h->seconds;
	pthread_mutex_unlock(&comm->lock);
	int code = h->alive ? MPI_SUCCESS : begin(comm);
	double now = mu_now(), pause = pause_between(limit), awake = now - h->last;
	if (awake > 2 * pause)
		awake = 2 * pause;
	h->last = now;
	tell(comm, awake);
	h->due = now + (h->works < -LONG_WAIT && pause > FAST_PAUSE ? FAST_PAUSE : pause);
	if (!code)
		code = hear(comm);
	find_worst(comm, limit);
	if (!code)
		code = send(comm, &sent);
	if (code)
		return code;
	h->alive = h->out.watched || !sent; /* the goodbye has to get through */
	h->silent += awake;
	pthread_mutex_lock(&comm->lock); /* the watch does not end meanwhile */
	if (h->stalled && h->on)
		h->stalled(&h->out.worst, h->argument);
	pthread_mutex_unlock(&comm->lock);
	if (!h->out.watched)
		return MPI_SUCCESS;
	if (h->accused == 0 && h->heard.watched && (h->silent > limit || h->heard.idle > limit))
		accuse(comm, limit);
	if (h->accused > 0 && now > h->accused + PATIENCE)
		end_all(comm);
	return MPI_SUCCESS;
}

void mu_mpi_heart_end(mu_mpi_comm *comm)
{
	mu_mpi_heart *h = &comm->heart;
	if (h->receiving == MPI_REQUEST_NULL)
		return;
	h->on = false; /* nobody calls any more */
	int gone = 0, code = MPI_SUCCESS;
	for (double end = mu_now() + PARTING; !code && mu_now() < end && (h->alive || h->heard.watched || !gone);) {
		if (h->alive)
			code = mu_mpi_heart_round(comm);
		else
			code = hear(comm);
		if (!code)
			code = MPI_Test(&h->sending, &gone, MPI_STATUS_IGNORE);
		mu_sleep(1e-3);
	}
	MPI_Cancel(&h->receiving);
	MPI_Wait(&h->receiving, MPI_STATUS_IGNORE);
	if (!gone)
		MPI_Request_free(&h->sending);
}
