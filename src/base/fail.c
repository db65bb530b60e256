/* Failures and their words. SPDX-License-Identifier: MIT */
#include "base/fail.h"

#include <stdarg.h>
#include <string.h>

#include "base/version.h"

int mural_exit_code(mural_status status)
{
	switch (status) {
#define MURAL_X(name, code, text) \
	case name: return code;
		MURAL_STATUS_LIST(MURAL_X)
#undef MURAL_X
	}
	return 1;
}

const char *mural_status_text(mural_status status)
{
	switch (status) {
#define MURAL_X(name, code, text) \
	case name: return text;
		MURAL_STATUS_LIST(MURAL_X)
#undef MURAL_X
	}
	return "unknown status";
}

static void print_lines(FILE *out, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		fprintf(out, "       %.*s\n", (int)n, text);
		text += n;
		if (*text)
			text++;
	}
}

void mural_error_print(const mural_error *err, FILE *out)
{
	if (err->has_rank && err->status != MURAL_STOPPED) /* all ranks stop together */
		fprintf(out, "mural: rank %d: %s\n", err->rank, err->message);
	else
		fprintf(out, "mural: %s\n", err->message);
	print_lines(out, err->where);
	print_lines(out, err->context);
}

mural_status(mu_fail)(mural_error *err, mural_status status, const char *where, const char *format, ...)
{
	if (!err)
		return status;
	if (err->status != MURAL_OK)
		return err->status;
	err->status = status;
	va_list args;
	va_start(args, format);
	vsnprintf(err->message, sizeof err->message, format, args);
	va_end(args);
	snprintf(err->where, sizeof err->where, "%s", where ? where : "");
	return status;
}

void mu_context(mural_error *err, const char *format, ...)
{
	if (!err || err->status == MURAL_OK)
		return;
	size_t used = strlen(err->context);
	if (used + 1 >= sizeof err->context)
		return;
	va_list args;
	va_start(args, format);
	int n = vsnprintf(err->context + used, sizeof err->context - used, format, args);
	va_end(args);
	if (n < 0)
		return;
	used = strlen(err->context);
	if (used + 1 < sizeof err->context) {
		err->context[used] = '\n';
		err->context[used + 1] = '\0';
	}
}

mural_status mu_bug_at(mural_error *err, const char *file, int line, const char *what)
{
	return mu_fail(err, MURAL_BUG, NULL, "bug in Mural %s at %s:%d: %s; please report it with the command you ran",
	               MU_VERSION, file, line, what);
}

const char *mu_size_text(unsigned long long bytes)
{
	static _Thread_local char buffers[4][32];
	static _Thread_local unsigned next;
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	char *text = buffers[next++ % 4];
	double value = (double)bytes;
	size_t unit = 0;
	while (value >= 1024 && unit + 1 < sizeof units / sizeof *units) {
		value /= 1024;
		unit++;
	}
	if (unit == 0)
		snprintf(text, sizeof buffers[0], "%llu bytes", bytes);
	else
		snprintf(text, sizeof buffers[0], "%.1f %s", value, units[unit]);
	return text;
}
