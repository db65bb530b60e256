/* Curves for people's tools: TensorBoard event files and DeepSpeed's CSV monitor, either, both or none.
 *
 * The CSV monitor keeps a file per curve, <folder>/<tag with / as _>.csv, with the columns "step" and the last part of the tag, and
 * appends to one that is there, under its one header.
 *
 *     mu_scalars_begin(&scalars, images);
 *     mu_scalars_put(&scalars, "Train/Samples/lr", lr);
 *     MU_TRY(mu_scalars_end(&scalars, err));
 * SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_SCALARS_H
#define MU_MONITOR_SCALARS_H

#include "monitor/csv.h"
#include "monitor/events.h"

enum { MU_SCALARS_MOST = 24 }; /* curves */

typedef struct mu_scalars { /* zero-initialise */
	mu_events events;
	char folder[PATH_MAX]; /* of CSV files; "" = none */
	bool anew;
	uint64_t keep;
	uint64_t x;
	mural_status status; /* of the row under way */
	mural_error failure;
	size_t n;
	struct {
		char tag[64];
		mu_csv csv;
	} curve[MU_SCALARS_MOST];
} mu_scalars;

typedef struct mu_scalars_settings {
	const char *events_folder, *csv_folder; /* NULL: not wanted */
	bool anew; /* the folders are the run's own: what an earlier run left in them is removed; else curves are appended to */
	uint64_t keep; /* a run that goes on: its x so far, beyond which tables are cut off; UINT64_MAX cuts nothing */
} mu_scalars_settings;

mural_status mu_scalars_open(mu_scalars *scalars, const mu_scalars_settings *settings, mural_error *err);
void mu_scalars_close(mu_scalars *scalars);

/* x: images so far, as in DeepSpeed. */
void mu_scalars_begin(mu_scalars *scalars, uint64_t x, double wall_time);
void mu_scalars_put(mu_scalars *scalars, const char *tag, double value);
mural_status mu_scalars_end(mu_scalars *scalars, mural_error *err);

#endif
