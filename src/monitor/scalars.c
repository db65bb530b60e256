/* Curves. SPDX-License-Identifier: MIT */
#include "monitor/scalars.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"

mural_status mu_scalars_open(mu_scalars *scalars, const mu_scalars_settings *settings, mural_error *err)
{
	memset(scalars, 0, sizeof *scalars);
	scalars->keep = settings->keep;
	scalars->anew = settings->anew;
	if (settings->events_folder && settings->anew)
		mu_events_remove(settings->events_folder);
	if (settings->events_folder)
		MU_TRY(mu_events_open(&scalars->events, settings->events_folder, err));
	if (!settings->csv_folder)
		return MURAL_OK;
	if (strlen(settings->csv_folder) + sizeof scalars->curve[0].tag + 8 > sizeof scalars->folder)
		return mu_fail(err, MURAL_USAGE, NULL, "the folder for the CSV monitor has too long a name");
	strcpy(scalars->folder, settings->csv_folder);
	return mu_make_folders(scalars->folder, err);
}

void mu_scalars_close(mu_scalars *scalars)
{
	if (!scalars)
		return;
	mu_events_close(&scalars->events);
	for (size_t i = 0; i < scalars->n; i++)
		mu_csv_close(&scalars->curve[i].csv);
	scalars->n = 0;
}

/* The file of one curve, as DeepSpeed names it. */
static mural_status open_curve(const mu_scalars *scalars, const char *tag, mu_csv *csv, mural_error *err)
{
	char path[PATH_MAX], header[80];
	const char *last = strrchr(tag, '/');
	int at = snprintf(path, sizeof path, "%s/", scalars->folder);
	snprintf(path + at, sizeof path - (size_t)at, "%s.csv", tag);
	for (char *p = path + at; *p; p++)
		if (*p == '/')
			*p = '_';
	snprintf(header, sizeof header, "step,%s", last ? last + 1 : tag);
	if (scalars->anew)
		unlink(path);
	if (scalars->keep < UINT64_MAX)
		MU_TRY(mu_csv_cut(path, 0, scalars->keep, err));
	return mu_csv_open(csv, path, header, err);
}

static mural_status find_curve(mu_scalars *scalars, const char *tag, mu_csv **csv, mural_error *err)
{
	for (size_t i = 0; i < scalars->n; i++)
		if (strcmp(scalars->curve[i].tag, tag) == 0) {
			*csv = &scalars->curve[i].csv;
			return MURAL_OK;
		}
	if (scalars->n == MU_SCALARS_MOST || strlen(tag) >= sizeof scalars->curve[0].tag)
		return mu_bug(err, "more curves, or longer names, than the monitor has room for");
	*csv = &scalars->curve[scalars->n].csv;
	strcpy(scalars->curve[scalars->n++].tag, tag);
	return open_curve(scalars, tag, *csv, err);
}

static mural_status put_in_table(mu_scalars *scalars, const char *tag, double value, mural_error *err)
{
	mu_csv *csv = NULL;
	MU_TRY(find_curve(scalars, tag, &csv, err));
	mu_csv_unsigned(csv, scalars->x);
	mu_csv_number(csv, value);
	return mu_csv_end_row(csv, err);
}

void mu_scalars_begin(mu_scalars *scalars, uint64_t x, double wall_time)
{
	scalars->x = x;
	scalars->status = MURAL_OK;
	scalars->failure = (mural_error){0};
	if (scalars->events.opened)
		mu_events_begin(&scalars->events, x, wall_time);
}

void mu_scalars_put(mu_scalars *scalars, const char *tag, double value)
{
	if (scalars->events.opened)
		mu_events_value(&scalars->events, tag, value);
	if (scalars->folder[0] && scalars->status == MURAL_OK)
		scalars->status = put_in_table(scalars, tag, value, &scalars->failure);
}

mural_status mu_scalars_end(mu_scalars *scalars, mural_error *err)
{
	if (scalars->status != MURAL_OK)
		return mu_fail(err, scalars->status, scalars->failure.where, "%s", scalars->failure.message);
	return scalars->events.opened ? mu_events_end(&scalars->events, err) : MURAL_OK;
}
