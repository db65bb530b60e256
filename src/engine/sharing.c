/* Shares of a training's batches. SPDX-License-Identifier: MIT */
#include "engine/sharing.h"

#include <stdlib.h>

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

mural_status mu_sharing_init(mu_sharing *sharing, const mural_config *config, const mu_comm_facts *ranks, bool training,
                             mural_error *err)
{
	const size_t n = (size_t)ranks->size;
	*sharing = (mu_sharing){.ranks = ranks->size, .rank = ranks->rank, .capacity = config->batch.micro_batch};
	if (!training || config->balance.shares[0] == '\0')
		return MURAL_OK;
	if (!mu_shares_kind_of(config->balance.shares, &sharing->kind))
		return mu_bug(err, "shares of the batch in words that nobody knows");
	if (sharing->kind == MU_SHARES_EQUAL)
		return MURAL_OK;
	sharing->share_R = calloc(n, sizeof *sharing->share_R);
	sharing->capacity_R = calloc(n, sizeof *sharing->capacity_R);
	if (!sharing->share_R || !sharing->capacity_R)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the shares of %zu ranks", n);
	return take_given(sharing, config, err);
}

void mu_sharing_release(mu_sharing *sharing)
{
	if (!sharing)
		return;
	free(sharing->share_R);
	free(sharing->capacity_R);
	*sharing = (mu_sharing){0};
}

mural_status mu_sharing_meet(mu_sharing *sharing, mu_comm *comm, mural_error *err)
{
	mu_pending pending = {0};
	if (sharing->kind == MU_SHARES_EQUAL)
		return MURAL_OK;
	sharing->capacity_R[sharing->rank] = (int)sharing->capacity;
	MU_TRY(comm->table->all_gather_begin(comm, &sharing->capacity_R[sharing->rank], sharing->capacity_R, 1, MU_I32,
	                                     &pending, err));
	return comm->table->wait(comm, &pending, err);
}

uint64_t mu_sharing_most_micros(const mu_sharing *sharing, const mural_batch_config *batch)
{
	if (sharing->kind == MU_SHARES_EQUAL)
		return batch->accumulation;
	const uint64_t most =
	        sharing->kind == MU_SHARES_GIVEN ? (uint64_t)sharing->share_R[sharing->rank] : batch->train_batch;
	return most == 0 ? 1 : divide_up(most, sharing->capacity);
}
