/* Configurations from a text, for tests: the text becomes run.json in a fresh folder, the present one until the end.
 * SPDX-License-Identifier: MIT */
#ifndef MU_TEST_CONFIG_TEXT_H
#define MU_TEST_CONFIG_TEXT_H

#include "mural/config.h"

typedef struct mu_test_config {
	mural_config config;
	mural_config_report *report;
	mural_error err;
	mural_status status;
	char said[4096]; /* the error, or the warnings, a line each */
	char *shown; /* --show-config; NULL when refused */
} mu_test_config;

/* CMocka group set-up and tear-down: a fresh folder. */
int mu_test_config_enter(void **state);
int mu_test_config_leave(void **state);

/* text NULL: no file. options: separated by spaces, or NULL. */
mu_test_config mu_test_config_text(const char *text, const char *options, int ranks);
mu_test_config mu_test_config_file(const char *file, const char *options, int ranks);
void mu_test_config_free(mu_test_config *c);

#endif
