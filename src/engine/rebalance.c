/* The engine's part in unequal shares: what is known of links, and telling the loader and the ranks between two steps.
 * SPDX-License-Identifier: MIT */
#include "comm/emulated.h"
#include "comm/observed.h"
#include "engine/engine_internal.h"

/* Described links where there are any, else what a look at them told. */
static mu_balance_network network_of(const mural_engine *engine)
{
	const mu_store *store = &engine->store;
	const size_t first = engine->first_trained < store->n_units ? store->offset[engine->first_trained] : 0;
	const size_t element = mu_dtype_bytes(engine->reducer.settings.wire_type);
	mu_balance_network network = {.bytes = (double)((store->elements - first) * element),
	                              .overlap = engine->reducer.settings.overlap,
	                              .buckets = (int)engine->reducer.n_buckets};
	mu_emulated_links links;
	if (mu_emulated_described(mu_observed_inside(engine->comm), &links)) {
		network.nodes = links.links->nodes;
		network.n_nodes = links.links->n_nodes;
		network.seat = links.seat_R;
		network.algorithm = links.links->algorithm;
		network.bytes *= links.byte_scale;
	} else if (engine->probe.n_nodes > 1) {
		network.nodes = engine->probe.nodes;
		network.n_nodes = engine->probe.n_nodes;
		network.seat = engine->probe.seat_R;
		network.probed = true;
	}
	return network;
}

/* The loader learns what is known of coming steps. */
static mural_status tell_loader(mural_engine *engine, mural_error *err)
{
	const mu_sharing *sharing = &engine->sharing;
	return mu_loader_share(engine->loader, sharing->next_from, sharing->next_from ? sharing->next_R : NULL,
	                       sharing->settled, err);
}

/* Evaluations go on without those who are left out: their weights stay as they were. What was read ahead for them is read anew, and
 * memory for it taken anew, this once. */
static mural_status leave_out_of_evaluation(mural_engine *engine, mural_error *err)
{
	mu_sharing *sharing = &engine->sharing;
	for (int r = 0; r < sharing->ranks; r++)
		if (!sharing->member_R[r])
			sharing->capacity_R[r] = 0;
	for (size_t i = 0; i < MU_EVALUATED; i++) {
		mu_loader_free(engine->evaluated[i].loader);
		engine->evaluated[i].loader = NULL;
	}
	return mu_engine_keep_loaders(engine, err);
}

/* All ranks, between two steps: members reduce among themselves from now on. */
static mural_status regroup(mural_engine *engine, mural_error *err)
{
	mu_comm *group;
	mural_status status = engine->comm->table->group(engine->comm, engine->sharing.member_R, &group, err);
	MU_TRY(mu_comm_agree(engine->comm, status, err));
	mu_engine_close_group(engine);
	engine->group = group;
	engine->reducer.comm = group;
	return mu_comm_agree(engine->comm, leave_out_of_evaluation(engine, err), err);
}

void mu_engine_close_group(mural_engine *engine)
{
	if (engine->group)
		engine->group->table->close(engine->group);
	engine->group = NULL;
}

mural_status mu_engine_tell(mural_engine *engine, mural_status status, mural_error *err)
{
	const bool out = mu_sharing_is_out(&engine->sharing);
	const mu_news_own own = {.out = out, .stop_asked = engine->stop_asked, .status = status};
	mu_step_record record = *engine->ledger.seen;
	if (status != MURAL_OK && record.sums.failed == 0) /* a team of one has no sums of its own */
		record.sums.failed = 1;
	MU_TRY(mu_news_tell(&engine->news, engine->comm, &own, &record, err));
	if (out)
		status = mu_ledger_write(&engine->ledger, &record, err);
	else
		engine->ledger.seen->sums.stop_asked = record.sums.stop_asked;
	if (status != MURAL_OK || record.sums.failed > 0)
		return mu_comm_agree(engine->comm, status, err);
	const bool last = engine->steps_done + 1 >= engine->total_steps;
	return last ? mu_news_settle(&engine->news, engine->comm, err) : MURAL_OK;
}

mural_status mu_engine_begin_sharing(mural_engine *engine, mural_error *err)
{
	mural_status status = MURAL_OK;
	mu_emulated_links links;
	if (engine->sharing.kind == MU_SHARES_AUTO && engine->ranks->size > 1 &&
	    !mu_emulated_described(mu_observed_inside(engine->comm), &links))
		MU_TRY(mu_probe_links(&engine->probe, engine->comm, err));
	if (mu_sharing_moves(&engine->sharing)) {
		const mu_balance_network network = network_of(engine);
		status = mu_sharing_prepare(&engine->sharing, &network, &engine->config.balance, err);
	}
	MU_TRY(mu_comm_agree(engine->comm, status, err));
	MU_TRY(mu_sharing_begin(&engine->sharing, engine->steps_done, engine->comm, err));
	return engine->sharing.any_out ? regroup(engine, err) : MURAL_OK;
}

mural_status mu_engine_make_loader(mural_engine *engine, mu_loader_settings *settings, mural_error *err)
{
	const mu_sharing *sharing = &engine->sharing;
	settings->settled = sharing->next_from ? sharing->next_from : sharing->settled;
	MU_TRY(mu_loader_create(&engine->loader, settings, err));
	return sharing->next_from ? tell_loader(engine, err) : MURAL_OK;
}

mural_status mu_engine_share(mural_engine *engine, const mu_step_state *state, mural_error *err)
{
	mu_sharing *sharing = &engine->sharing;
	mu_sharing_news news;
	if (!mu_sharing_moves(sharing))
		return MURAL_OK;
	const mu_sharing_step step = {.planned = state->planned,
	                              .images = state->images,
	                              .micro_batches = state->micro,
	                              .seconds = state->own,
	                              .waited = state->exposed};
	mu_sharing_note(sharing, &step);
	MU_TRY(mu_sharing_go_on(sharing, engine->steps_done, engine->comm, &news, err));
	if (news.members)
		MU_TRY(regroup(engine, err));
	return news.loader ? tell_loader(engine, err) : MURAL_OK;
}

const int *mural_engine_shares(const mural_engine *engine)
{
	return engine->sharing.share_R;
}
