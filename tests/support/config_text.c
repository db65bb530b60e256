/* Configurations from a text, for tests. SPDX-License-Identifier: MIT */
#include "support/config_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

int mu_test_config_enter(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/mural-config-XXXXXX");
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

int mu_test_config_leave(void **state)
{
	(void)state;
	unlink("run.json");
	return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static void keep_words(mu_test_config *c)
{
	FILE *out = fmemopen(c->said, sizeof c->said, "w");
	if (!out)
		abort();
	if (c->status != MURAL_OK)
		mural_error_print(&c->err, out);
	for (size_t i = 0; c->status == MURAL_OK && i < mural_config_warnings(c->report); i++)
		fprintf(out, "%s\n", mural_config_warning(c->report, i));
	fclose(out);
	if (c->status != MURAL_OK)
		return;
	size_t bytes;
	out = open_memstream(&c->shown, &bytes);
	if (!out)
		abort();
	mural_config_print(&c->config, c->report, out);
	fclose(out);
}

mu_test_config mu_test_config_file(const char *file, const char *options, int ranks)
{
	mu_test_config c = {0};
	const char *argv[64];
	int argc = 0;
	char *copy = strdup(options ? options : ""), *rest = NULL;
	for (char *word = strtok_r(copy, " ", &rest); word && argc < 64; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	mural_config_sources sources = {.file = file, .argc = argc, .argv = argv, .ranks = ranks};
	c.status = mural_config_resolve(&c.config, &c.report, &sources, &c.err);
	keep_words(&c);
	free(copy);
	return c;
}

mu_test_config mu_test_config_text(const char *text, const char *options, int ranks)
{
	if (!text)
		return mu_test_config_file(NULL, options, ranks);
	FILE *out = fopen("run.json", "wb");
	if (!out || fputs(text, out) < 0 || fclose(out) != 0)
		abort();
	return mu_test_config_file("run.json", options, ranks);
}

void mu_test_config_free(mu_test_config *c)
{
	mural_config_report_free(c->report);
	free(c->shown);
}
