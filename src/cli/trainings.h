/* What the commands share that start trainings of their own, many of them: study and tune. SPDX-License-Identifier: MIT */
#ifndef MURAL_CLI_TRAININGS_H
#define MURAL_CLI_TRAININGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mural/error.h"

/* ---- values of options. ---- */

/* Whole numbers above 0 with commas between, at most `room` of them. text may be NULL: nothing was given. */
bool trainings_list(const char *text, uint32_t *list, size_t room, size_t *n);

/* ---- the trainings. ---- */

/* Options that a command sets for each of its trainings: own is ended by NULL. MURAL_USAGE when `argument` is one of them. */
mural_status trainings_refuse(const char *command, const char *const *own, const char *argument, mural_error *err);

/* Path of this program. */
mural_status trainings_program(char path[4096], mural_error *err);

/* From now on Ctrl-C and SIGTERM are a wish that trainings_stop_asked tells. */
void trainings_watch_stop(void);
bool trainings_stop_asked(void);

/* FOLDER/name to `to`; "-" is the standard output. */
mural_status trainings_copy(const char *folder, const char *name, const char *to, mural_error *err);

#endif
