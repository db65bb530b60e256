/* include/mural/comm.h: the team as programs outside the library see it. SPDX-License-Identifier: MIT */
#include "base/affinity.h"
#include "comm/comm.h"
#include "comm/place.h"

int mural_comm_launcher(const char **launcher, int *rank)
{
	if (rank)
		*rank = mu_comm_launcher_rank();
	return mu_comm_launcher(launcher);
}

mural_status mural_comm_open(mural_comm **comm, const char *name, mural_error *err)
{
	MU_TRY(mu_comm_open(name, comm, err));
	mural_status status = mu_comm_place(*comm, NULL, err);
	if (status != MURAL_OK)
		*comm = NULL; /* not closed: that would wait for ranks that may never come */
	return status;
}

void mural_comm_close(mural_comm *comm)
{
	if (comm)
		comm->table->close(comm);
}

void mural_comm_abort(mural_comm *comm, int code)
{
	comm->table->abort(comm, code);
}

void mural_comm_on_lost(mural_comm *comm, void (*lost)(const mural_error *err, void *argument), void *argument)
{
	comm->lost_argument = argument;
	comm->lost = lost;
}

const mural_comm_facts *mural_comm_get_facts(const mural_comm *comm)
{
	return comm->table->facts(comm);
}

int mural_comm_slot(const mural_comm *comm)
{
	return mu_comm_slot(comm->table->facts(comm));
}

mural_status mural_comm_agree(mural_comm *comm, mural_status status, mural_error *err)
{
	return mu_comm_agree(comm, status, err);
}

int mural_cores(void)
{
	return mu_affinity_cores();
}
