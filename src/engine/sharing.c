/* Shares of a training's batches. SPDX-License-Identifier: MIT */
#include "engine/sharing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the first rank tells: whether shares change, and how many steps there are until the next meeting; the shares follow. */
enum { CHANGED, INTERVAL, HEAD };

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

static mural_status take_given(mu_sharing *sharing, const mural_config *config, mural_error *err)
{
	uint64_t sum = 0;
	const int n = mu_shares_read(config->balance.shares, sharing->share_R, sharing->ranks);
	for (int r = 0; n == sharing->ranks && r < n; r++)
		sum += (uint64_t)sharing->share_R[r];
	if (n != sharing->ranks || sum != config->batch.train_batch)
		return mu_fail(err, MURAL_USAGE, "mural.balance",
		               "expected a share for each of %d ranks, %llu images together, got '%s'", sharing->ranks,
		               (unsigned long long)config->batch.train_batch, config->balance.shares);
	const uint64_t own = (uint64_t)sharing->share_R[sharing->rank];
	sharing->capacity = own == 0 ? 1 : divide_up(own, divide_up(own, config->batch.micro_batch));
	return MURAL_OK;
}

/* As even as whole numbers allow. */
static void take_equal(mu_sharing *sharing, uint64_t batch)
{
	for (uint64_t r = 0, n = (uint64_t)sharing->ranks; r < n; r++)
		sharing->share_R[r] = (int)(batch * (r + 1) / n - batch * r / n);
	if (sharing->capacity > batch)
		sharing->capacity = batch;
}

static bool allocate(mu_sharing *sharing)
{
	const size_t n = (size_t)sharing->ranks;
	sharing->share_R = calloc(n, sizeof *sharing->share_R);
	sharing->capacity_R = calloc(n, sizeof *sharing->capacity_R);
	sharing->next_R = calloc(n, sizeof *sharing->next_R);
	sharing->rows = calloc(n, sizeof *sharing->rows);
	sharing->message = calloc(n + HEAD, sizeof *sharing->message);
	sharing->name_R = calloc(n, sizeof *sharing->name_R);
	sharing->member_R = calloc(n, sizeof *sharing->member_R);
	sharing->next_member_R = calloc(n, sizeof *sharing->next_member_R);
	for (size_t r = 0; sharing->member_R && r < n; r++)
		sharing->member_R[r] = true;
	return sharing->share_R && sharing->capacity_R && sharing->next_R && sharing->rows && sharing->message &&
	       sharing->member_R && sharing->next_member_R && sharing->name_R;
}

mural_status mu_sharing_init(mu_sharing *sharing, const mural_config *config, const mu_comm_facts *ranks, bool training,
                             mural_error *err)
{
	*sharing = (mu_sharing){.ranks = ranks->size,
	                        .rank = ranks->rank,
	                        .capacity = config->batch.micro_batch,
	                        .batch = (int)config->batch.train_batch,
	                        .meet_after = UINT64_MAX};
	if (!training || config->balance.shares[0] == '\0')
		return MURAL_OK;
	if (!mu_shares_kind_of(config->balance.shares, &sharing->kind))
		return mu_bug(err, "shares of the batch in words that nobody knows");
	if (sharing->kind == MU_SHARES_EQUAL)
		return MURAL_OK;
	if (!allocate(sharing))
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the shares of %d ranks", sharing->ranks);
	if (sharing->kind == MU_SHARES_GIVEN)
		return take_given(sharing, config, err);
	take_equal(sharing, config->batch.train_batch);
	return MURAL_OK;
}

void mu_sharing_release(mu_sharing *sharing)
{
	if (!sharing)
		return;
	mu_balance_free(sharing->balance);
	free(sharing->share_R);
	free(sharing->capacity_R);
	free(sharing->next_R);
	free(sharing->name_R);
	free(sharing->member_R);
	free(sharing->next_member_R);
	free(sharing->rows);
	free(sharing->message);
	mu_sharing_log_release(&sharing->log);
	*sharing = (mu_sharing){0};
}

static mural_status gather(mu_comm *comm, const void *mine, void *all, size_t count, mu_dtype type, mural_error *err)
{
	mu_pending pending = {0};
	MU_TRY(comm->table->all_gather_begin(comm, mine, all, count, type, &pending, err));
	return comm->table->wait(comm, &pending, err);
}

mural_status mu_sharing_introduce(mu_sharing *sharing, mu_comm *comm, mural_error *err)
{
	const int own = (int)sharing->capacity;
	char name[MU_SHARING_NAME] = "";
	if (!sharing->share_R)
		return MURAL_OK;
	MU_TRY(gather(comm, &own, sharing->capacity_R, 1, MU_I32, err));
	snprintf(name, sizeof name, "rank %d (host %.64s)", sharing->rank, comm->table->facts(comm)->host);
	return gather(comm, name, sharing->name_R, sizeof name, MU_U8, err);
}

static mural_status make_balance(mu_sharing *sharing, const mu_balance_network *network, bool may_remove,
                                 mural_error *err)
{
	mu_balance_rank *ranks = calloc((size_t)sharing->ranks, sizeof *ranks);
	if (!ranks)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to balance %d ranks", sharing->ranks);
	for (int r = 0; r < sharing->ranks; r++) /* whoever holds one image can take them all, one after the other */
		ranks[r] = (mu_balance_rank){.capacity = sharing->batch, .micro = sharing->capacity_R[r]};
	const mu_balance_settings settings = {.ranks = sharing->ranks,
	                                      .global_batch = sharing->batch,
	                                      .rank = ranks,
	                                      .network = *network,
	                                      .shares = sharing->share_R,
	                                      .first_stays = true,
	                                      .may_remove = may_remove};
	mural_status status = mu_balance_create(&sharing->balance, &settings, err);
	free(ranks);
	return status;
}

mural_status mu_sharing_prepare(mu_sharing *sharing, const mu_balance_network *network,
                                const mural_balance_config *config, mural_error *err)
{
	if (sharing->rank > 0 || sharing->ranks == 1)
		return MURAL_OK;
	if (sharing->kind == MU_SHARES_REPLAY)
		return mu_sharing_log_read(&sharing->log, config->shares + strlen(MU_SHARES_REPLAY_WORD),
		                           sharing->ranks, sharing->batch, err);
	return sharing->kind == MU_SHARES_AUTO ? make_balance(sharing, network, config->remove, err) : MURAL_OK;
}

/* All ranks: the first one's log. */
static mural_status share_log(mu_sharing *sharing, mu_comm *comm, mural_error *err)
{
	mu_sharing_log *log = &sharing->log;
	int64_t n = (int64_t)log->n;
	MU_TRY(mu_comm_broadcast(comm, &n, sizeof n, 0, err));
	const size_t bytes = (size_t)n * (size_t)(1 + sharing->ranks) * sizeof *log->changes;
	if (sharing->rank > 0) {
		*log = (mu_sharing_log){.ranks = sharing->ranks, .n = (size_t)n, .changes = malloc(bytes)};
		if (!log->changes)
			mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for %lld changes of shares", (long long)n);
	}
	MU_TRY(mu_comm_agree(comm, log->changes ? MURAL_OK : MURAL_OUT_OF_MEMORY, err));
	return mu_comm_broadcast(comm, log->changes, bytes, 0, err);
}

/* Becomes what is next. */
static void take_change(mu_sharing *sharing, size_t i)
{
	const int64_t *change = mu_sharing_log_change(&sharing->log, i);
	sharing->next_from = (uint64_t)change[0];
	for (int r = 0; r < sharing->ranks; r++) {
		sharing->next_R[r] = change[1 + r] < 0 ? 0 : (int)change[1 + r];
		sharing->next_member_R[r] = change[1 + r] >= 0;
	}
}

/* Next becomes now. */
static void take_next(mu_sharing *sharing)
{
	const size_t n = (size_t)sharing->ranks;
	memcpy(sharing->share_R, sharing->next_R, n * sizeof *sharing->share_R);
	memcpy(sharing->member_R, sharing->next_member_R, n * sizeof *sharing->member_R);
	sharing->next_from = 0;
	sharing->any_out = false;
	for (int r = 0; r < sharing->ranks; r++)
		sharing->any_out |= !sharing->member_R[r];
}

/* The log's next change for the loader, and how far that settles. */
static void look_ahead(mu_sharing *sharing)
{
	const mu_sharing_log *log = &sharing->log;
	sharing->next_from = 0;
	if (sharing->log_at < log->n)
		take_change(sharing, sharing->log_at++);
	sharing->settled = UINT64_MAX;
	if (sharing->log_at < log->n)
		sharing->settled = (uint64_t)mu_sharing_log_change(log, sharing->log_at)[0];
}

/* Somebody who comes back would have old weights. */
static mural_status check_returns(const mu_sharing *sharing, mural_error *err)
{
	for (size_t i = sharing->log_at; i < sharing->log.n; i++) {
		const int64_t *before = mu_sharing_log_change(&sharing->log, i - 1),
		              *after = before + 1 + sharing->ranks;
		for (int r = 0; r < sharing->ranks; r++)
			if (before[1 + r] < 0 && after[1 + r] >= 0)
				return mu_fail(
				        err, MURAL_USAGE, NULL,
				        "the shares to replay leave rank %d out and take it in again from step %lld "
				        "on, "
				        "where that run went on from a checkpoint: replay it in the same two parts",
				        r, (long long)after[0] + 1);
	}
	return MURAL_OK;
}

static mural_status begin_replay(mu_sharing *sharing, uint64_t steps, mu_comm *comm, mural_error *err)
{
	MU_TRY(share_log(sharing, comm, err));
	while (sharing->log_at < sharing->log.n &&
	       (uint64_t)mu_sharing_log_change(&sharing->log, sharing->log_at)[0] <= steps)
		sharing->log_at++;
	if (sharing->log_at == 0) {
		const int64_t first = mu_sharing_log_change(&sharing->log, 0)[0];
		return mu_comm_agree(comm,
		                     mu_fail(err, MURAL_USAGE, NULL,
		                             "the shares to replay begin with step %lld, and the run with step %llu",
		                             (long long)first + 1, (unsigned long long)steps + 1),
		                     err);
	}
	take_change(sharing, sharing->log_at - 1);
	take_next(sharing);
	look_ahead(sharing);
	return mu_comm_agree(comm, check_returns(sharing, err), err);
}

enum { FIRST_MEETING = 4 }; /* steps: the first of a run is no measure, and three are enough for a median */

mural_status mu_sharing_begin(mu_sharing *sharing, uint64_t steps, mu_comm *comm, mural_error *err)
{
	sharing->settled = UINT64_MAX;
	if (sharing->ranks == 1)
		return MURAL_OK;
	if (sharing->kind == MU_SHARES_REPLAY)
		return begin_replay(sharing, steps, comm, err);
	if (sharing->kind != MU_SHARES_AUTO)
		return MURAL_OK;
	sharing->meet_after = steps + FIRST_MEETING;
	sharing->settled = sharing->meet_after + MU_SHARING_LEAD;
	return MURAL_OK;
}

void mu_sharing_note(mu_sharing *sharing, const mu_sharing_step *step)
{
	if (sharing->meet_after != UINT64_MAX && step->planned == (uint64_t)sharing->batch)
		mu_balance_step(&sharing->window, (double)step->images, (double)step->micro_batches, step->seconds,
		                step->waited);
}

/* The first rank's part of a meeting. */
static void decide(mu_sharing *sharing)
{
	const mu_balance_decision *d = sharing->decision = mu_balance_decide(sharing->balance, sharing->rows);
	sharing->message[CHANGED] = d->changed;
	sharing->message[INTERVAL] = mu_balance_interval(sharing->balance);
	for (int r = 0; r < sharing->ranks; r++)
		sharing->message[HEAD + r] = d->member[r] ? d->shares[r] : -1;
}

/* What was decided. Rows of steps with the old shares would tell nothing of the new ones. */
static void obey(mu_sharing *sharing, uint64_t steps)
{
	const bool changed = sharing->message[CHANGED] != 0;
	const uint64_t from = steps + (changed ? MU_SHARING_LEAD : 0);
	sharing->met = steps;
	sharing->meetings++;
	sharing->meet_after = from + (uint64_t)sharing->message[INTERVAL];
	sharing->settled = sharing->meet_after + MU_SHARING_LEAD;
	sharing->next_from = changed ? from : 0;
	for (int r = 0; changed && r < sharing->ranks; r++) {
		const int share = sharing->message[HEAD + r];
		sharing->next_R[r] = share < 0 ? 0 : share;
		sharing->next_member_R[r] = share >= 0;
	}
}

static mural_status meet(mu_sharing *sharing, uint64_t steps, mu_comm *comm, mural_error *err)
{
	const mu_balance_row own = mu_balance_close(&sharing->window);
	MU_TRY(gather(comm, &own, sharing->rows, sizeof own / sizeof(double), MU_F64, err));
	if (sharing->rank == 0)
		decide(sharing);
	MU_TRY(mu_comm_broadcast(comm, sharing->message, (HEAD + (size_t)sharing->ranks) * sizeof *sharing->message, 0,
	                         err));
	obey(sharing, steps);
	return MURAL_OK;
}

/* What was known beforehand comes into force. */
static void turn(mu_sharing *sharing, mu_sharing_news *news)
{
	news->members = memcmp(sharing->member_R, sharing->next_member_R,
	                       (size_t)sharing->ranks * sizeof *sharing->member_R) != 0;
	sharing->turned = sharing->next_from;
	sharing->changes++;
	sharing->window.steps = 0;
	take_next(sharing);
	if (sharing->kind != MU_SHARES_REPLAY)
		return;
	look_ahead(sharing);
	news->loader = true;
}

mural_status mu_sharing_go_on(mu_sharing *sharing, uint64_t steps, mu_comm *comm, mu_sharing_news *news,
                              mural_error *err)
{
	*news = (mu_sharing_news){0};
	if (sharing->next_from > 0 && steps == sharing->next_from)
		turn(sharing, news);
	if (steps != sharing->meet_after)
		return MURAL_OK;
	news->loader = true;
	return meet(sharing, steps, comm, err);
}

uint64_t mu_sharing_most_micros(const mu_sharing *sharing, const mural_batch_config *batch)
{
	if (sharing->kind == MU_SHARES_EQUAL)
		return batch->accumulation;
	const uint64_t most =
	        sharing->kind == MU_SHARES_GIVEN ? (uint64_t)sharing->share_R[sharing->rank] : batch->train_batch;
	return most == 0 ? 1 : divide_up(most, sharing->capacity);
}
