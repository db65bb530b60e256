/* The table of collectives: at the end of a run, and in its result. SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "engine/observe.h"

/* A rank's row of that kind and size; NULL: it has none. */
static const mu_comm_log_row *find(const mu_comm_log *log, const mu_comm_log_row *like)
{
	for (size_t i = 0; i < log->n; i++)
		if (log->rows[i].collective == like->collective && log->rows[i].bytes == like->bytes)
			return &log->rows[i];
	return NULL;
}

/* Row by row of the first rank's log: who is left out of the reductions has not all of them. Waiting is what a row took here beyond
 * the rank where it took least: that one came last and waited for nobody. */
mural_status mu_observe_waiting(mu_observe *o, double *waiting, mural_error *err)
{
	mu_comm_log first = o->log;
	MU_TRY(mu_comm_broadcast(o->plain, &first, sizeof first, 0, err));
	for (size_t i = 0; i < first.n; i++) {
		const mu_comm_log_row *own = find(&o->log, &first.rows[i]);
		waiting[i] = own ? own->seconds : INFINITY;
	}
	MU_TRY(mu_comm_all_reduce(o->plain, waiting, first.n, MU_F64, MU_MIN, err));
	for (size_t i = 0; o->rank == 0 && i < first.n; i++)
		waiting[i] = o->log.rows[i].seconds - waiting[i];
	return MURAL_OK;
}

static double algorithm(const mu_comm_log_row *row)
{
	return mu_comm_algorithm_bandwidth((double)row->total_bytes, row->seconds) / 1e9;
}

static double bus(const mu_observe *o, const mu_comm_log_row *row)
{
	return mu_comm_bus_bandwidth(row->collective, (double)row->total_bytes, row->seconds, o->ranks) / 1e9;
}

void mu_observe_print_comms(mu_observe *o, const double *waiting)
{
	mu_progress_line(o->progress, "%-15s %12s %8s %12s %12s %12s %10s %10s", "collective", "size", "count",
	                 "total ms", "mean ms", "waiting ms", "alg GB/s", "bus GB/s");
	for (size_t i = 0; i < o->log.n; i++) {
		const mu_comm_log_row *row = &o->log.rows[i];
		mu_progress_line(o->progress, "%-15s %12s %8llu %12.3f %12.3f %12.3f %10.3f %10.3f",
		                 mu_collective_text(row->collective), row->bytes ? MU_SIZE(row->bytes) : "-",
		                 (unsigned long long)row->count, 1e3 * row->seconds,
		                 1e3 * row->seconds / (double)row->count, 1e3 * waiting[i], algorithm(row),
		                 bus(o, row));
	}
}

void mu_observe_write_comms(const mu_observe *o, mu_json *json)
{
	mu_json_array_begin(json, "collectives");
	for (size_t i = 0; i < o->log.n; i++) {
		const mu_comm_log_row *row = &o->log.rows[i];
		mu_json_object_begin(json, NULL);
		mu_json_string(json, "operation", mu_collective_text(row->collective));
		mu_json_unsigned(json, "bytes", row->bytes);
		mu_json_unsigned(json, "count", row->count);
		mu_json_unsigned(json, "total_bytes", row->total_bytes);
		mu_json_number(json, "seconds", row->seconds);
		mu_json_number(json, "algorithm_gb_per_s", algorithm(row));
		mu_json_number(json, "bus_gb_per_s", bus(o, row));
		mu_json_object_end(json);
	}
	mu_json_array_end(json);
}
