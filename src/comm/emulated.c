/* The emulated collectives. A ring of what is in flight, in the order of its beginning; a handle's `request` is its number plus one.
 *
 *     first <= posted        ring[n % RING] is collective n
 *     .. first               settled: its handle's `ended` is known, and may lie ahead
 *     first .. posted        the inner comm is at it
 * SPDX-License-Identifier: MIT */
#include "comm/emulated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/version.h"
#include "comm/check.h"

enum { RING = 128 }; /* two inner collectives each: half of what the MPI table keeps in flight */

static const double BEAT = 0.5; /* seconds */

typedef struct in_flight {
	mu_pending inner, stamp;
	mu_pending *outer;
	double latest; /* when the last rank has begun, on rank 0's clock */
	double cost; /* seconds on the described links */
} in_flight;

typedef struct emulated_comm {
	mu_comm base;
	mu_comm *inner;
	mu_comm_facts facts;
	mu_links links;
	mu_link_node *nodes;
	int *seat_R;
	double byte_scale;
	double ahead; /* of rank 0's clock */
	mu_pulse *pulse; /* of the watch; NULL: nobody watches */
	double links_free; /* when the collective settled last has ended */
	mu_emulated_counts own, *counts; /* a group counts where its parent does */
	bool owns_inner; /* a group's was made for it */
	uint64_t first, posted;
	in_flight ring[RING];
} emulated_comm;

static const mu_comm_table table;

static emulated_comm *inside(const mu_comm *comm)
{
	return (emulated_comm *)comm;
}

/* The inner comm is through with the oldest one: its end is known from now on. */
static void settle(emulated_comm *self)
{
	in_flight *oldest = &self->ring[self->first++ % RING];
	double start = fmax(oldest->latest + self->ahead, self->links_free);
	double end = start + oldest->cost, really = oldest->inner.ended;
	self->counts->collectives++;
	self->counts->seconds += oldest->cost;
	if (really > end) {
		self->counts->late++;
		self->counts->late_seconds += really - end;
		end = really;
	}
	self->links_free = end;
	oldest->outer->ended = end;
}

static mural_status wait_oldest(emulated_comm *self, mural_error *err)
{
	in_flight *oldest = &self->ring[self->first % RING];
	const mu_comm_table *inner = self->inner->table;
	MU_TRY(inner->wait(self->inner, &oldest->stamp, err));
	MU_TRY(inner->wait(self->inner, &oldest->inner, err));
	settle(self);
	return MURAL_OK;
}

static mural_status test_oldest(emulated_comm *self, bool *settled, mural_error *err)
{
	in_flight *oldest = &self->ring[self->first % RING];
	const mu_comm_table *inner = self->inner->table;
	MU_TRY(inner->test(self->inner, &oldest->stamp, settled, err));
	if (*settled)
		MU_TRY(inner->test(self->inner, &oldest->inner, settled, err));
	if (*settled)
		settle(self);
	return MURAL_OK;
}

/* A place in the ring. The inner collective is the caller's to begin there: nothing is in flight if it is refused. */
static mural_status place(emulated_comm *self, mu_pending *outer, in_flight **slot, mural_error *err)
{
	MU_TRY(mu_comm_check_idle(outer, err));
	if (self->posted - self->first == RING)
		MU_TRY(wait_oldest(self, err));
	in_flight *new = &self->ring[self->posted % RING];
	*new = (in_flight){.outer = outer, .latest = mu_now() - self->ahead};
	*outer = (mu_pending){.begun = new->latest + self->ahead};
	*slot = new;
	return MURAL_OK;
}

/* The inner collective has begun: the reduction of the beginning follows it. */
static mural_status posted(emulated_comm *self, in_flight *slot, mu_collective collective, mural_error *err)
{
	slot->outer->bytes = slot->inner.bytes;
	slot->cost = mu_link_seconds(&self->links, collective, (double)slot->inner.bytes * self->byte_scale);
	slot->outer->request = (void *)(uintptr_t)++self->posted;
	return self->inner->table->all_reduce_begin(self->inner, &slot->latest, 1, MU_F64, MU_MAX, &slot->stamp, err);
}

static mural_status all_reduce(mu_comm *comm, void *buffer, size_t count, mu_dtype type, mu_reduce how,
                               mu_pending *pending, mural_error *err)
{
	emulated_comm *self = inside(comm);
	in_flight *slot;
	MU_TRY(place(self, pending, &slot, err));
	MU_TRY(self->inner->table->all_reduce_begin(self->inner, buffer, count, type, how, &slot->inner, err));
	return posted(self, slot, MU_ALL_REDUCE, err);
}

static mural_status broadcast(mu_comm *comm, void *buffer, size_t bytes, int root, mu_pending *pending,
                              mural_error *err)
{
	emulated_comm *self = inside(comm);
	in_flight *slot;
	MU_TRY(place(self, pending, &slot, err));
	MU_TRY(self->inner->table->broadcast_begin(self->inner, buffer, bytes, root, &slot->inner, err));
	return posted(self, slot, MU_BROADCAST, err);
}

static mural_status all_gather(mu_comm *comm, const void *mine, void *gathered, size_t count, mu_dtype type,
                               mu_pending *pending, mural_error *err)
{
	emulated_comm *self = inside(comm);
	in_flight *slot;
	MU_TRY(place(self, pending, &slot, err));
	MU_TRY(self->inner->table->all_gather_begin(self->inner, mine, gathered, count, type, &slot->inner, err));
	return posted(self, slot, MU_ALL_GATHER, err);
}

static mural_status reduce_scatter(mu_comm *comm, const void *buffer, void *mine, size_t count, mu_dtype type,
                                   mu_pending *pending, mural_error *err)
{
	emulated_comm *self = inside(comm);
	in_flight *slot;
	MU_TRY(place(self, pending, &slot, err));
	MU_TRY(self->inner->table->reduce_scatter_begin(self->inner, buffer, mine, count, type, &slot->inner, err));
	return posted(self, slot, MU_REDUCE_SCATTER, err);
}

static mural_status all_to_all(mu_comm *comm, const void *from, void *to, size_t count, mu_dtype type,
                               mu_pending *pending, mural_error *err)
{
	emulated_comm *self = inside(comm);
	in_flight *slot;
	MU_TRY(place(self, pending, &slot, err));
	MU_TRY(self->inner->table->all_to_all_begin(self->inner, from, to, count, type, &slot->inner, err));
	return posted(self, slot, MU_ALL_TO_ALL, err);
}

static mural_status barrier(mu_comm *comm, mu_pending *pending, mural_error *err)
{
	emulated_comm *self = inside(comm);
	in_flight *slot;
	MU_TRY(place(self, pending, &slot, err));
	MU_TRY(self->inner->table->barrier_begin(self->inner, &slot->inner, err));
	return posted(self, slot, MU_BARRIER, err);
}

static mural_status test(mu_comm *comm, mu_pending *pending, bool *finished, mural_error *err)
{
	emulated_comm *self = inside(comm);
	uint64_t number = (uintptr_t)pending->request;
	*finished = true;
	while (*finished && self->first < number)
		MU_TRY(test_oldest(self, finished, err));
	*finished = *finished && (number == 0 || mu_now() >= pending->ended);
	if (*finished)
		pending->request = NULL;
	return MURAL_OK;
}

/* A link may take longer than a rank may be silent: waiting for it is getting on. */
static void wait_until(emulated_comm *self, double moment)
{
	double left;
	while ((left = moment - mu_now()) > 0) {
		mu_sleep(left < BEAT ? left : BEAT);
		mu_pulse_beat(self->pulse);
	}
}

static mural_status wait_finished(mu_comm *comm, mu_pending *pending, mural_error *err)
{
	emulated_comm *self = inside(comm);
	uint64_t number = (uintptr_t)pending->request;
	while (self->first < number)
		MU_TRY(wait_oldest(self, err));
	pending->request = NULL;
	if (number > 0)
		wait_until(self, pending->ended);
	return MURAL_OK;
}

static mural_status never_opened(mu_comm **comm, mural_error *err)
{
	*comm = NULL;
	return mu_bug(err, "emulated collectives are made around others, not opened");
}

static void close_emulated(mu_comm *comm)
{
	if (!comm)
		return;
	emulated_comm *self = inside(comm);
	while (self->first < self->posted && wait_oldest(self, NULL) == MURAL_OK)
		continue; /* the inner comm must not write into what is freed here */
	if (self->owns_inner)
		self->inner->table->close(self->inner);
	free(self->nodes);
	free(self->seat_R);
	free(self);
}

static void abort_all(mu_comm *comm, int code)
{
	mu_comm *inner = inside(comm)->inner;
	inner->table->abort(inner, code);
}

static void watch_inner(mu_comm *comm, const mu_comm_watch *watch)
{
	mu_comm *inner = inside(comm)->inner;
	inside(comm)->pulse = watch ? watch->pulse : NULL;
	inner->table->watch(inner, watch);
}

static const mu_comm_facts *facts(const mu_comm *comm)
{
	return &inside(comm)->facts;
}

/* The nodes on which members sit, and the seat of each member among them; both have room for all. Returns how many nodes. */
static int gather_seats(const emulated_comm *self, const bool *member_R, mu_link_node *nodes, int *seat_R)
{
	int n_nodes = 0;
	for (int i = 0; i < self->links.n_nodes; i++) {
		int ranks = 0;
		for (int r = 0, member = 0; r < self->facts.size; member += member_R[r++])
			if (member_R[r] && self->seat_R[r] == i) {
				seat_R[member] = n_nodes;
				ranks++;
			}
		if (ranks == 0)
			continue;
		nodes[n_nodes] = self->nodes[i];
		nodes[n_nodes++].ranks = ranks;
	}
	return n_nodes;
}

static mural_status make_group(emulated_comm *self, mu_comm *inner, const bool *member_R, mu_comm **made,
                               mural_error *err)
{
	mu_link_node *nodes = calloc((size_t)self->links.n_nodes, sizeof *nodes);
	int *seat_R = calloc((size_t)self->facts.size, sizeof *seat_R);
	mural_status status = mu_comm_agree(inner, nodes && seat_R ? MURAL_OK : MURAL_OUT_OF_MEMORY, err);
	if (status == MURAL_OK && nodes && seat_R) {
		const mu_emulated_settings settings = {.n_nodes = gather_seats(self, member_R, nodes, seat_R),
		                                       .nodes = nodes,
		                                       .seat_R = seat_R,
		                                       .algorithm = self->links.algorithm,
		                                       .byte_scale = self->byte_scale,
		                                       .cluster = "a group's cluster"};
		status = mu_emulated_create(made, inner, &settings, err);
	}
	free(nodes);
	free(seat_R);
	return status;
}

/* On the links of its members. It does not know when the parent's use them: what is long waits for one before the other. */
static mural_status group(mu_comm *comm, const bool *member_R, mu_comm **made, mural_error *err)
{
	emulated_comm *self = inside(comm);
	mu_comm *inner;
	*made = NULL;
	MU_TRY(self->inner->table->group(self->inner, member_R, &inner, err));
	if (!inner)
		return MURAL_OK;
	mural_status status = make_group(self, inner, member_R, made, err);
	if (status != MURAL_OK || !*made) {
		inner->table->close(inner);
		return status;
	}
	inside(*made)->counts = self->counts;
	inside(*made)->owns_inner = true;
	inside(*made)->pulse = self->pulse;
	return MURAL_OK;
}

static const mu_comm_table table = {
        .name = "emulated",
        .build_id = MU_BUILD_ID,
        .open = never_opened,
        .close = close_emulated,
        .abort = abort_all,
        .facts = facts,
        .all_reduce_begin = all_reduce,
        .broadcast_begin = broadcast,
        .all_gather_begin = all_gather,
        .reduce_scatter_begin = reduce_scatter,
        .all_to_all_begin = all_to_all,
        .barrier_begin = barrier,
        .test = test,
        .wait = wait_finished,
        .group = group,
        .watch = watch_inner,
};

static mural_status check(const mu_emulated_settings *settings, int size, mural_error *err)
{
	int ranks = 0;
	for (int i = 0; i < settings->n_nodes; i++)
		ranks += settings->nodes[i].ranks;
	return ranks == size ? MURAL_OK
	                     : mu_bug(err, "the nodes of an emulated comm hold more or fewer ranks than there are");
}

/* Node after node, where nobody says otherwise. */
static void take_seats(int *seat_R, const mu_emulated_settings *settings, int size)
{
	if (settings->seat_R) {
		memcpy(seat_R, settings->seat_R, (size_t)size * sizeof *seat_R);
		return;
	}
	for (int i = 0, r = 0; i < settings->n_nodes; i++)
		for (int n = 0; n < settings->nodes[i].ranks; n++)
			seat_R[r++] = i;
}

mural_status mu_emulated_create(mu_comm **comm, mu_comm *inner, const mu_emulated_settings *settings, mural_error *err)
{
	*comm = NULL;
	const mu_comm_facts *real = inner->table->facts(inner);
	MU_TRY(check(settings, real->size, err));
	emulated_comm *self = calloc(1, sizeof *self);
	size_t bytes = (size_t)settings->n_nodes * sizeof *self->nodes;
	mu_link_node *nodes = malloc(bytes);
	int *seat_R = malloc((size_t)real->size * sizeof *seat_R);
	if (!self || !nodes || !seat_R) {
		free(self);
		free(nodes);
		free(seat_R);
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for emulated links");
	}
	memcpy(nodes, settings->nodes, bytes);
	take_seats(seat_R, settings, real->size);
	self->base.table = &table;
	self->inner = inner;
	self->counts = &self->own;
	self->nodes = nodes;
	self->seat_R = seat_R;
	self->links = (mu_links){
	        .nodes = nodes, .n_nodes = settings->n_nodes, .ranks = real->size, .algorithm = settings->algorithm};
	self->byte_scale = settings->byte_scale;
	self->facts = *real;
	snprintf(self->facts.library, sizeof self->facts.library, "%.50s on emulated links of %.50s", real->library,
	         settings->cluster);
	double uncertainty;
	mural_status status = mu_comm_clock_offset(inner, &self->ahead, &uncertainty, err);
	if (status == MURAL_OK)
		*comm = &self->base;
	else
		close_emulated(&self->base);
	return status;
}

bool mu_emulated_described(const mu_comm *comm, mu_emulated_links *described)
{
	if (comm->table != &table)
		return false;
	const emulated_comm *self = inside(comm);
	*described = (mu_emulated_links){.links = &self->links, .seat_R = self->seat_R, .byte_scale = self->byte_scale};
	return true;
}

bool mu_emulated_read(const mu_comm *comm, mu_emulated_counts *counts)
{
	if (comm->table != &table)
		return false;
	*counts = *inside(comm)->counts;
	return true;
}
