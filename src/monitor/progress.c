/* The progress bar. Every print is one fwrite of a prepared text, so that lines of several writers do not mix.
 * SPDX-License-Identifier: MIT */
#include "monitor/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define RATE_SECONDS 5.0 /* memory of the smoothed rate: a hiccup fades, a lasting change shows within seconds */
#define BAR_SECONDS 0.1 /* a bar is redrawn at most so often: faster is flicker */
#define BAR_WIDEST 40 /* characters inside the brackets; wider tells nothing more */
#define BAR_NARROWEST 5
#define LINE_SIZE 1024

void mu_progress_init(mu_progress *progress, const mu_progress_settings *settings)
{
	*progress = (mu_progress){.settings = *settings, .shown_seconds = -1, .lock = PTHREAD_MUTEX_INITIALIZER};
}

void mu_duration_text(double seconds, char *text, size_t size)
{
	if (!(seconds >= 0 && seconds < 1e9)) {
		snprintf(text, size, "?");
		return;
	}
	unsigned long s = (unsigned long)(seconds + 0.5);
	unsigned long days = s / 86400, hours = s / 3600 % 24, minutes = s / 60 % 60;
	if (days > 0)
		snprintf(text, size, "%lu d %02lu:%02lu", days, hours, minutes);
	else if (hours > 0)
		snprintf(text, size, "%lu:%02lu:%02lu", hours, minutes, s % 60);
	else
		snprintf(text, size, "%lu:%02lu", minutes, s % 60);
}

/* Exponential moving average whose weight depends on the time that passed, not on the number of calls. */
static void measure_rate(mu_progress *progress, const mu_progress_point *point)
{
	double passed = point->seconds - progress->last_seconds;
	if (passed <= 0 || point->images < progress->last_images)
		return;
	double rate = (double)(point->images - progress->last_images) / passed;
	double weight = progress->images_per_second > 0 ? 1 - exp(-passed / RATE_SECONDS) : 1;
	progress->images_per_second += weight * (rate - progress->images_per_second);
	progress->last_images = point->images;
	progress->last_seconds = point->seconds;
}

static double seconds_left(const mu_progress *progress, const mu_progress_point *point)
{
	if (progress->images_per_second <= 0 || progress->settings.images < point->images)
		return NAN;
	return (double)(progress->settings.images - point->images) / progress->images_per_second;
}

/* Appends to `line`, never beyond it. */
MU_PRINTF(3, 4) static void append(char *line, size_t *used, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(line + *used, LINE_SIZE - *used, format, args);
	va_end(args);
	if (n > 0)
		*used = *used + (size_t)n < LINE_SIZE ? *used + (size_t)n : LINE_SIZE - 1;
}

/* What a narrow terminal does without, the first to go first. The percentage tells what the step does. */
enum {
	SHOW_ALL,
	WITHOUT_WAITS,
	WITHOUT_SCALE,
	WITHOUT_STEP,
	WITHOUT_BAR,
	WITHOUT_RATE,
	WITHOUT_ACCURACY,
	WITHOUT_LOSS
};

/* Everything behind the bar. */
static size_t describe(const mu_progress *progress, const mu_progress_point *point, int without, char *line)
{
	double rate = progress->images_per_second;
	size_t used = 0;
	char left[24];
	line[0] = '\0';
	if (without < WITHOUT_STEP)
		append(line, &used, "  step %llu/%llu", (unsigned long long)point->step,
		       (unsigned long long)progress->settings.steps);
	if (without < WITHOUT_LOSS)
		append(line, &used, "  loss %.4f", point->loss);
	if (without < WITHOUT_ACCURACY && !isnan(point->accuracy))
		append(line, &used, "  accuracy %.1f%%", 100 * point->accuracy);
	if (without < WITHOUT_SCALE && point->loss_scale > 0)
		append(line, &used, "  scale %.10g", point->loss_scale);
	if (without < WITHOUT_SCALE && point->skipped > 0)
		append(line, &used, "  skipped %llu", (unsigned long long)point->skipped);
	if (without < WITHOUT_RATE && rate > 0)
		append(line, &used, "  %.*f images/s", rate < 10 ? 2 : rate < 100 ? 1 : 0, rate);
	if (rate > 0) {
		mu_duration_text(seconds_left(progress, point), left, sizeof left);
		append(line, &used, "  %s left", left);
	}
	if (without < WITHOUT_WAITS && point->waits && point->waits[0])
		append(line, &used, "  %s", point->waits);
	return used;
}

static double fraction_done(const mu_progress *progress, const mu_progress_point *point)
{
	uint64_t steps = progress->settings.steps;
	return steps == 0 ? 1 : point->step >= steps ? 1 : (double)point->step / (double)steps;
}

static void append_bar(char *line, size_t *used, double fraction, int width)
{
	int filled = (int)(fraction * width);
	append(line, used, " [");
	for (int i = 0; i < width; i++)
		append(line, used, "%c", i < filled ? '=' : i == filled ? '>' : ' ');
	append(line, used, "]");
}

static void print_bar(mu_progress *progress, const mu_progress_point *point)
{
	enum { FRAME = 3 }; /* " [" and "]" */
	char line[LINE_SIZE], head[64], tail[LINE_SIZE];
	size_t used = 0;
	double fraction = fraction_done(progress, point);
	int columns = progress->settings.columns, without = SHOW_ALL, room;
	int n = snprintf(head, sizeof head, "epoch %llu/%llu", (unsigned long long)point->epoch,
	                 (unsigned long long)progress->settings.epochs);
	for (;; without++) {
		/* 5: " 100%"; the last column stays free, or some terminals wrap */
		room = columns - 1 - n - 5 - (int)describe(progress, point, without, tail);
		if (room >= (without < WITHOUT_BAR ? FRAME + BAR_NARROWEST : 0) || without == WITHOUT_LOSS)
			break;
	}
	append(line, &used, "%s", head);
	if (without < WITHOUT_BAR)
		append_bar(line, &used, fraction, room - FRAME < BAR_WIDEST ? room - FRAME : BAR_WIDEST);
	append(line, &used, " %3d%%%s", (int)(100 * fraction), tail);
	if (used > (size_t)columns - 1)
		used = (size_t)columns - 1;
	fprintf(progress->settings.out, "\r%.*s\033[K", (int)used, line);
	fflush(progress->settings.out);
	progress->bar_shown = true;
}

/* A terminal's bar is taken away first; the next step draws it again below. */
static void print_line(mu_progress *progress, const char *text)
{
	fprintf(progress->settings.out, "%s%s\n", progress->bar_shown ? "\r\033[K" : "", text);
	fflush(progress->settings.out);
	progress->bar_shown = false;
}

static void print_point(mu_progress *progress, const mu_progress_point *point)
{
	char line[LINE_SIZE], tail[LINE_SIZE];
	size_t used = 0;
	describe(progress, point, SHOW_ALL, tail);
	append(line, &used, "epoch %llu/%llu%s", (unsigned long long)point->epoch,
	       (unsigned long long)progress->settings.epochs, tail);
	print_line(progress, line);
}

static void show_step(mu_progress *progress, const mu_progress_point *point)
{
	const mu_progress_settings *settings = &progress->settings;
	measure_rate(progress, point);
	double since = progress->shown_seconds < 0 ? INFINITY : point->seconds - progress->shown_seconds;
	bool asked = settings->steps_per_print > 0 && point->step % settings->steps_per_print == 0;
	bool last = point->step == settings->steps;
	if (asked)
		print_point(progress, point);
	if (settings->columns > 0 && (asked || last || since >= BAR_SECONDS))
		print_bar(progress, point);
	else if (settings->columns == 0 && !asked && settings->seconds_per_line > 0 &&
	         since >= settings->seconds_per_line)
		print_point(progress, point);
	else if (!asked)
		return;
	progress->shown_seconds = point->seconds;
}

void mu_progress_step(mu_progress *progress, const mu_progress_point *point)
{
	if (!progress->settings.out)
		return;
	pthread_mutex_lock(&progress->lock);
	show_step(progress, point);
	pthread_mutex_unlock(&progress->lock);
}

void mu_progress_wait(mu_progress *progress, const char *text)
{
	const mu_progress_settings *settings = &progress->settings;
	if (!settings->out)
		return;
	pthread_mutex_lock(&progress->lock);
	if (settings->columns > 0) {
		fprintf(settings->out, "\r%.*s\033[K", settings->columns - 1, text);
		fflush(settings->out);
		progress->bar_shown = true;
	} else {
		print_line(progress, text);
	}
	pthread_mutex_unlock(&progress->lock);
}

void mu_progress_line(mu_progress *progress, const char *format, ...)
{
	char text[LINE_SIZE];
	if (!progress->settings.out)
		return;
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	pthread_mutex_lock(&progress->lock);
	print_line(progress, text);
	pthread_mutex_unlock(&progress->lock);
}

void mu_progress_finish(mu_progress *progress)
{
	pthread_mutex_lock(&progress->lock);
	if (progress->bar_shown) {
		fputc('\n', progress->settings.out);
		fflush(progress->settings.out);
		progress->bar_shown = false;
	}
	pthread_mutex_unlock(&progress->lock);
}

/* A width between 20 and LINE_SIZE columns, 0 if the text is not a number. */
static int parse_columns(const char *text)
{
	char *end;
	long columns = text ? strtol(text, &end, 10) : 0;
	if (!text || end == text || *end || columns <= 0)
		return 0;
	return columns < 20 ? 20 : columns >= LINE_SIZE ? LINE_SIZE - 1 : (int)columns;
}

int mu_progress_columns(FILE *out)
{
	int given = parse_columns(getenv("MURAL_TTY"));
	const char *terminal = getenv("TERM");
	struct winsize size;
	if (given > 0)
		return given;
	if (!out || !isatty(fileno(out)) || !terminal || strcmp(terminal, "dumb") == 0)
		return 0;
	char text[16] = "80";
	if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		snprintf(text, sizeof text, "%u", (unsigned)size.ws_col);
	return parse_columns(text);
}
