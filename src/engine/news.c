/* News of steps where somebody is left out. SPDX-License-Identifier: MIT */
#include "engine/news.h"

void mu_news_fail(mu_news *news, mural_status status, mural_error *err)
{
	if (news->failure.status == MURAL_OK) {
		if (err && err->status != MURAL_OK)
			news->failure = *err;
		else
			mu_fail(&news->failure, status, NULL, "%s", mural_status_text(status));
	}
	if (err)
		*err = (mural_error){0};
}

static mural_status finish(mu_news *news, mu_comm *comm, mural_error *err)
{
	return news->pending.request ? comm->table->wait(comm, &news->pending, err) : MURAL_OK;
}

/* What is known is in force. status: this rank's own failure beside it. */
static mural_status obey(const mu_news *news, mu_comm *comm, mural_status status, mural_error *err)
{
	const mural_error *failure = &news->failure;
	if (news->told.failed == 0)
		return MURAL_OK;
	if (status != MURAL_OK || failure->status == MURAL_OK)
		return mu_comm_agree(comm, status, err);
	if (err)
		*err = *failure;
	return mu_comm_agree(comm, failure->status, err);
}

mural_status mu_news_tell(mu_news *news, mu_comm *comm, const mu_news_own *own, mu_step_record *record,
                          mural_error *err)
{
	MU_TRY(finish(news, comm, err));
	MU_TRY(obey(news, comm, own->status, err));
	const double stop_asked = news->told.stop_asked;
	news->told.record = (mu_step_record){0};
	news->told.failed = own->out && news->failure.status != MURAL_OK;
	news->told.stop_asked = own->out && own->stop_asked;
	if (comm->table->facts(comm)->rank == 0)
		news->told.record = *record;
	MU_TRY(comm->table->all_reduce_begin(comm, &news->told, sizeof news->told / sizeof(double), MU_F64, MU_SUM,
	                                     &news->pending, err));
	if (own->out) {
		MU_TRY(finish(news, comm, err));
		*record = news->told.record;
	}
	record->sums.stop_asked += stop_asked;
	return MURAL_OK;
}

mural_status mu_news_settle(mu_news *news, mu_comm *comm, mural_error *err)
{
	MU_TRY(finish(news, comm, err));
	return obey(news, comm, MURAL_OK, err);
}

void mu_news_release(mu_news *news, mu_comm *comm)
{
	finish(news, comm, NULL); /* what failed is told by whoever closes */
}
