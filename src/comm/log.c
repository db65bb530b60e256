/* The log of collectives. SPDX-License-Identifier: MIT */
#include "comm/log.h"

static mu_comm_log_row *find(mu_comm_log *log, mu_collective collective, uint64_t bytes)
{
	for (size_t i = 0; i < log->n; i++)
		if (log->rows[i].collective == collective && log->rows[i].bytes == bytes)
			return &log->rows[i];
	return NULL;
}

static mu_comm_log_row *make(mu_comm_log *log, mu_collective collective, uint64_t bytes)
{
	if (log->n >= MU_COMM_LOG_ROWS && bytes > 0) {
		mu_comm_log_row *rest = find(log, collective, 0);
		return rest ? rest : make(log, collective, 0);
	}
	mu_comm_log_row *row = &log->rows[log->n++]; /* of kind and 0 there is one at most, so the rows suffice */
	*row = (mu_comm_log_row){.collective = collective, .bytes = bytes};
	return row;
}

void mu_comm_log_add(mu_comm_log *log, mu_collective collective, uint64_t bytes, double seconds)
{
	mu_comm_log_row *row = find(log, collective, bytes);
	if (!row)
		row = make(log, collective, bytes);
	row->count++;
	row->total_bytes += bytes;
	row->seconds += seconds;
}

double mu_comm_algorithm_bandwidth(double bytes, double seconds)
{
	return seconds > 0 ? bytes / seconds : 0;
}

double mu_comm_bus_bandwidth(mu_collective collective, double bytes, double seconds, int ranks)
{
	double shares[MU_COLLECTIVE_COUNT] = {
	        [MU_ALL_REDUCE] = 2, [MU_ALL_GATHER] = 1, [MU_REDUCE_SCATTER] = 1, [MU_ALL_TO_ALL] = 1};
	double algorithm = mu_comm_algorithm_bandwidth(bytes, seconds);
	if (collective == MU_BROADCAST)
		return algorithm;
	return algorithm * shares[collective] * (ranks - 1) / ranks;
}
