/* Which operations a rank computes with, and on which device. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/affinity.h"
#include "engine/devices.h"
#include "engine/engine_internal.h"
#include "kernels/cuda.h"

static const char *origin(const mural_engine *engine)
{
	return engine->report ? mural_config_origin(engine->report, "mural.ops") : NULL;
}

/* What this rank asks for and sees. A machine without a driver, a module or a card is one that sees none; *cuda is NULL there,
 * and that is a failure only for who insists: alone, so that the reason is told. */
static mural_status look_around(mural_engine *engine, mu_seeker *own, const mu_ops **cuda, char word[32],
                                mural_error *err)
{
	const mu_comm_facts *facts = engine->comm->table->facts(engine->comm);
	memset(own, 0, sizeof *own);
	memcpy(own->host, facts->host, sizeof own->host);
	own->wish = MU_WISH_HOST;
	own->slot = getenv("MURAL_SLOTS") ? mural_comm_slot(engine->comm) : -1;
	MU_TRY(mu_devices_word(engine->config.run.ops, engine->ranks->size, facts->rank, word, origin(engine), err));
	own->wish = mu_devices_wish(word, &own->number);
	if (own->wish == MU_WISH_HOST)
		return MURAL_OK;
	const mural_status status = mu_cuda_ops(cuda, own->wish == MU_WISH_CARD ? err : NULL);
	if (status != MURAL_OK)
		return own->wish == MU_WISH_CARD ? status : MURAL_OK;
	return (*cuda)->device->survey(&own->cards, err);
}

static mural_status take_table(mural_engine *engine, const char *word, const mu_ops *cuda, mural_error *err)
{
	const bool any = strcmp(word, "auto") == 0 || strcmp(word, "mixed") == 0 || word[0] == '\0';
	engine->ops = engine->card != MU_NO_CARD ? cuda : mu_ops_find(any ? "cpu" : word);
	if (engine->ops)
		return MURAL_OK;
	return mu_fail(err, MURAL_USAGE, origin(engine), "there is no operations table '%s' in this build", word);
}

static mural_status gather(mu_comm *comm, const mu_seeker *own, mu_seeker *all, mural_error *err)
{
	mu_pending pending = {0};
	MU_TRY(comm->table->all_gather_begin(comm, own, all, sizeof *own, MU_U8, &pending, err));
	return comm->table->wait(comm, &pending, err);
}

mural_status mu_engine_choose_device(mural_engine *engine, mural_error *err)
{
	const mu_comm_facts *facts = engine->comm->table->facts(engine->comm);
	const mu_ops *cuda = NULL;
	char word[32] = "";
	mu_seeker own;
	mu_seeker *all = calloc((size_t)facts->size, sizeof *all);
	int *card_R = calloc((size_t)facts->size, sizeof *card_R);
	mural_status status = look_around(engine, &own, &cuda, word, err);
	if (!all || !card_R)
		status = mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the devices of %d ranks", facts->size);
	status = mu_comm_agree(engine->comm, status, err);
	if (status != MURAL_OK || !all || !card_R)
		goto out;
	MU_TRY_OUT(gather(engine->comm, &own, all, err));
	MU_TRY_OUT(mu_devices_choose(all, facts->size, card_R, origin(engine), err));
	engine->card = card_R[facts->rank];
	engine->card_ranks = engine->card == MU_NO_CARD ? 0 : mu_devices_sharing(all, facts->size, card_R, facts->rank);
	status = take_table(engine, word, cuda, err);
out:
	free(card_R);
	free(all);
	return status;
}

mural_status mu_engine_open_device(mural_engine *engine, mural_error *err)
{
	mu_device_facts facts;
	const int number = engine->ops->device == &mu_device_host || engine->card < 0 ? 0 : engine->card;
	MU_TRY(mu_device_open(&engine->device, engine->ops->device, number, err));
	MU_TRY(engine->device.table->facts(engine->device.handle, &facts, err));
	engine->shared = facts.shares_host_memory;
	engine->free_bytes = facts.free_bytes;
	snprintf(engine->bus, sizeof engine->bus, "%s", facts.bus);
	engine->can_replay = facts.can_capture && !engine->config.run.eager;
	engine->threads = engine->config.run.threads;
	if (engine->threads == 0)
		engine->threads = (unsigned)mu_affinity_threads(engine->ranks->local_size);
	MU_TRY(engine->ops->open(engine->device.queue, (int)engine->threads, &engine->context, err));
	if (engine->ops->fix_algorithms)
		engine->ops->fix_algorithms(engine->context, engine->config.run.deterministic);
	return MURAL_OK;
}
