/* What all commands say about their options in the same words. SPDX-License-Identifier: MIT */
#ifndef MURAL_CLI_USAGE_H
#define MURAL_CLI_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "mural/error.h"

/* MURAL_USAGE "argument OPTION: expected ..., got ...; `mural COMMAND --help` explains". command: "study"; found may be NULL. */
mural_status usage_wrong(const char *command, const char *option, const char *expected, const char *found,
                         mural_error *err);

/* A line of --help. value: NULL for a flag. */
void usage_option(FILE *out, const char *name, const char *value, const char *help);

/* A whole number from `least` to `most` at the beginning of text; *end is behind it. */
bool usage_whole(const char *text, char **end, uint64_t least, uint64_t most, uint64_t *value);

/* The whole of text, which may be NULL: a number from 1 to `most`, else usage_wrong. */
mural_status usage_count(const char *command, const char *option, const char *text, uint64_t most, uint64_t *count,
                         mural_error *err);

#endif
