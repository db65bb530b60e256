/* Who sits where: every rank tells all the others. SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/affinity.h"
#include "base/proc.h"
#include "comm/comm.h"
#include "mural/info.h"

/* "0-3,8" of a mask. */
static void write_cpus(const mu_cpu_mask *mask, char *text, size_t capacity)
{
	size_t used = 0;
	text[0] = '\0';
	for (int first = 0; first < MU_CPU_MAX; first++) {
		int last = first;
		if (!mu_cpu_mask_has(mask, first))
			continue;
		while (last + 1 < MU_CPU_MAX && mu_cpu_mask_has(mask, last + 1))
			last++;
		if (capacity - used < 16) {
			snprintf(text + used, capacity - used, "...");
			return;
		}
		used += (size_t)snprintf(text + used, capacity - used, first == last ? "%s%d" : "%s%d-%d",
		                         used ? "," : "", first, last);
		first = last;
	}
}

mural_status mural_info_seats(mural_comm *comm, mural_seat *seats, mural_error *err)
{
	const mu_comm_facts *facts = comm->table->facts(comm);
	mural_seat *own = &seats[facts->rank];
	mu_pending pending = {0};
	mu_cpu_mask mask;
	memset(own, 0, sizeof *own); /* all its bytes travel */
	own->rank = facts->rank;
	own->local_rank = facts->local_rank;
	own->slot = mural_comm_slot(comm);
	own->cores = mural_cores();
	memcpy(own->host, facts->host, sizeof own->host);
	mu_cpu_mask_read(&mask);
	write_cpus(&mask, own->cpus, sizeof own->cpus);
	mu_proc_processor(own->device, sizeof own->device);
	MU_TRY(comm->table->all_gather_begin(comm, own, seats, sizeof *own, MU_U8, &pending, err));
	return comm->table->wait(comm, &pending, err);
}
