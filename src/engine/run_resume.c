/* Where a run goes on from, and in which folder.
 *
 * It goes on in the folder of the run whose checkpoint it is, unless --run-dir names another: that one then begins with the
 * step after the checkpoint's. SPDX-License-Identifier: MIT */
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "comm/comm.h"
#include "engine/run_internal.h"

static const char ORIGIN[] = "argument --resume";

/* A line per reason, as mural_checkpoint_find has them. */
static void warn(const mu_run *r, const mural_checkpoint_choice *choice)
{
	FILE *out = r->options->warnings;
	if (!choice->refused[0] || !out)
		return;
	fprintf(out, "mural: warning: not the latest checkpoint: going on from %s\n", choice->set);
	for (const char *line = choice->refused; *line;) {
		size_t n = strcspn(line, "\n");
		fprintf(out, "       %.*s\n", (int)n, line);
		line += n + (line[n] == '\n');
	}
}

/* What --resume names, "auto" resolved. */
static mural_status place_to_look(const mu_run *r, const char **path, mural_error *err)
{
	const char *asked = r->options->resume;
	if (!asked || strcmp(asked, "auto") == 0) {
		*path = r->config->run.run_dir;
		if (!**path)
			return mu_fail(err, MURAL_USAGE, ORIGIN,
			               "expected --run-dir, or the path of a run or a checkpoint instead of auto: a "
			               "folder named by the time of day has no earlier run");
	} else {
		*path = asked;
	}
	return MURAL_OK;
}

static mural_status look(mu_run *r, mural_error *err)
{
	const char *path;
	mural_checkpoint_choice choice;
	MU_TRY(place_to_look(r, &path, err));
	MU_TRY(mural_checkpoint_find(&choice, path, err));
	if (choice.found) {
		warn(r, &choice);
		memcpy(r->set, choice.set, sizeof r->set);
		return MURAL_OK;
	}
	if (r->options->resume_if_any)
		return MURAL_OK;
	return mu_fail(
	        err, MURAL_USAGE, ORIGIN,
	        "there is no checkpoint in '%s'; leave --resume out to begin anew, or add --resume-if-any to begin "
	        "when there is none",
	        path);
}

/* An earlier attempt at this very run may have come further than where it began. */
static mural_status look_again(mu_run *r, mural_error *err)
{
	mural_checkpoint_choice choice;
	MU_TRY(mural_checkpoint_find(&choice, r->options->again_in, err));
	if (choice.found) {
		warn(r, &choice);
		memcpy(r->set, choice.set, sizeof r->set);
	}
	return MURAL_OK;
}

static mural_status choose(mu_run *r, mural_error *err)
{
	if (r->options->again_in)
		MU_TRY(look_again(r, err));
	if (r->set[0] || (!r->options->resume && !r->options->resume_if_any))
		return MURAL_OK;
	return look(r, err);
}

mural_status mu_run_choose_start(mu_run *r, mural_error *err)
{
	const mural_run_options *o = r->options;
	if (!o->resume && !o->resume_if_any && !o->again_in)
		return MURAL_OK;
	mural_status status = r->rank == 0 ? choose(r, err) : MURAL_OK;
	MU_TRY(mu_comm_agree(r->comm, status, err));
	return mu_comm_broadcast(r->comm, r->set, sizeof r->set, 0, err);
}

/* A run that ended before its first checkpoint leaves a folder that the next attempt may take over. */
static bool is_unfinished(const char *folder)
{
	char path[MU_CHECKPOINT_FILE];
	snprintf(path, sizeof path, "%s/result.json", folder);
	return access(path, F_OK) != 0;
}

static mural_status open_files(mu_run *r, mural_error *err)
{
	char source[MURAL_CHECKPOINT_PATH] = "";
	const char *asked = r->options->again_in ? r->options->again_in : r->config->run.run_dir;
	if (r->set[0])
		mu_checkpoint_run_of(source, r->set);
	bool goes_on = source[0] && (!asked[0] || mu_same_place(asked, source));
	mu_run_files_settings settings = {
	        .config = r->config,
	        .report = r->report,
	        .folder = goes_on ? source : asked,
	        .goes_on = goes_on,
	        .step = mural_engine_steps_done(r->engine),
	        .epochs = mural_engine_steps_done(r->engine) / mural_engine_steps_per_epoch(r->engine),
	        .result_path = r->options->result_path,
	        .validates = r->validation != NULL,
	        .overwrite = r->options->overwrite,
	        .balance = mu_sharing_moves(&r->engine->sharing),
	        .energy = r->energy.knows_processors || (r->energy.uses_gpus && r->energy.knows_gpus),
	};
	if (r->options->resume_if_any && !r->set[0] && asked[0] && is_unfinished(asked))
		settings.overwrite = true;
	if (r->options->again_in && !goes_on)
		settings.overwrite = true; /* our own earlier attempt's */
	MU_TRY(mu_run_files_create(&r->files, &settings, err));
	if (goes_on) /* in charge again, also if it was asked for by its name and there are later sets */
		MU_TRY(mu_checkpoint_point_to(source, "latest", settings.step, err));
	snprintf(r->folder, sizeof r->folder, "%s", r->files.folder);
	if (r->options->opened)
		r->options->opened(r->folder);
	return MURAL_OK;
}

mural_status mu_run_open_files(mu_run *r, mural_error *err)
{
	mural_status status = r->rank == 0 ? open_files(r, err) : MURAL_OK;
	MU_TRY(mu_comm_agree(r->comm, status, err));
	return mu_comm_broadcast(r->comm, r->folder, sizeof r->folder, 0, err);
}
