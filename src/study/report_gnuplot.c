/* gnuplot, fed through a socket: no shell, no start-up file of the user's, and nothing from a file but numbers.
 *
 * The script goes in through a socket because, unlike a pipe, it can be written to without a signal when gnuplot has gone; the picture
 * comes back in a file in memory, so neither side can wait for the other. A gnuplot that has not finished after PATIENCE is killed.
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "study/report_inside.h"

#define PATIENCE 60 /* seconds for one figure, which takes 0.05 */
#define PICTURE_BYTES ((size_t)16 << 20)

extern char **environ;

/* ---- the script ---- */

static void number(FILE *out, double value, char after)
{
	char text[MU_NUMBER_SIZE];
	fprintf(out, "%s%c", mu_number_text(value, text), after);
}

static void print_range(FILE *out, const char *axis, double from, double to)
{
	fprintf(out, "set %srange [", axis);
	number(out, from, ':');
	number(out, to, ']');
	fputc('\n', out);
}

static void print_grid(FILE *out, const char *axis, const mu_tick *ticks, size_t n)
{
	fprintf(out, "set %stics scale 0 format '' (", axis);
	for (size_t i = 0; i < n; i++)
		number(out, ticks[i].at, i + 1 < n ? ',' : ')');
	fprintf(out, "\nset grid %stics lt 1 lw 1 lc rgb '%s'\n", axis, mu_grid_colour.light);
}

static void print_axes(FILE *out, const mu_scene *s)
{
	fprintf(out,
	        "set terminal svg size %d,%d dynamic noenhanced dashlength 1\n"
	        "set encoding utf8\nset decimalsign '.'\nunset key\nunset xtics\nunset ytics\n"
	        "set style fill solid 1.0 noborder\nset border 0\n",
	        s->width, s->height);
	fprintf(out, "set lmargin at screen %d./%d\nset rmargin at screen %d./%d\n", s->left, s->width, s->right,
	        s->width);
	fprintf(out, "set tmargin at screen %d./%d\nset bmargin at screen %d./%d\n", s->height - s->top, s->height,
	        s->height - s->bottom, s->height);
	print_range(out, "x", s->x0, s->x1);
	print_range(out, "y", s->y0, s->y1);
	if (s->figure->kind == MU_FIGURE_LANES)
		print_grid(out, "x", s->x_ticks, s->n_x);
	else
		print_grid(out, "y", s->y_ticks, s->n_y);
}

static void print_boxes(FILE *out, const mu_scene *s, size_t series)
{
	fprintf(out, "$b%zu << E\n", series);
	for (size_t b = 0; b < s->n_boxes; b++) {
		const mu_box *box = &s->boxes[b];
		if (box->series != series)
			continue;
		number(out, (box->x0 + box->x1) / 2, ' ');
		number(out, (box->y0 + box->y1) / 2, ' ');
		number(out, box->x0, ' ');
		number(out, box->x1, ' ');
		number(out, fmin(box->y0, box->y1), ' ');
		number(out, fmax(box->y0, box->y1), '\n');
	}
	fprintf(out, "E\n");
}

static void print_line(FILE *out, const mu_scene *s, size_t index)
{
	const mu_series *series = &s->figure->series[index];
	fprintf(out, "$l%zu << E\n", index);
	for (size_t i = 0; i < series->n; i++) {
		const mu_spot *spot = &series->spots[i];
		bool interval = isfinite(spot->low) && isfinite(spot->high);
		number(out, spot->x, ' ');
		number(out, spot->y, ' ');
		number(out, interval ? fmax(spot->low, s->y0) : spot->y, ' ');
		number(out, interval ? fmin(spot->high, s->y1) : spot->y, '\n');
	}
	fprintf(out, "E\n");
}

/* Intervals of bars, in their middle. */
static void print_intervals(FILE *out, const mu_scene *s, size_t series)
{
	fprintf(out, "$i%zu << E\n", series);
	for (size_t b = 0; b < s->n_boxes; b++) {
		const mu_box *box = &s->boxes[b];
		if (box->series != series || !isfinite(box->spot->low) || !isfinite(box->spot->high))
			continue;
		number(out, (box->x0 + box->x1) / 2, ' ');
		number(out, box->spot->y, ' ');
		number(out, fmax(box->spot->low, s->y0), ' ');
		number(out, fmin(box->spot->high, s->y1), '\n');
	}
	fprintf(out, "E\n");
}

static bool has_intervals(const mu_series *series)
{
	for (size_t i = 0; i < series->n; i++)
		if (isfinite(series->spots[i].low) && isfinite(series->spots[i].high))
			return true;
	return false;
}

static void print_plot(FILE *out, const mu_scene *s)
{
	const char *before = "plot ";
	for (size_t i = 0; i < s->figure->n_series; i++) {
		const mu_series *series = &s->figure->series[i];
		const char *colour = mu_palette[series->colour % MU_COLOURS].light;
		if (series->n == 0)
			continue;
		fputs(before, out);
		before = ", ";
		if (s->figure->kind != MU_FIGURE_LINES) {
			fprintf(out, "$b%zu using 1:2:3:4:5:6 with boxxyerror lc rgb '%s'", i, colour);
			if (has_intervals(series))
				fprintf(out, ", $i%zu using 1:2:3:4 with yerrorbars lw 1.5 lc rgb '%s'", i,
				        mu_ink_colour.light);
			continue;
		}
		fprintf(out, "$l%zu using 1:2 with lines lw 2 lc rgb '%s' dt %d", i, colour, series->dashed ? 2 : 1);
		if (has_intervals(series))
			fprintf(out, ", $l%zu using 1:2:3:4 with yerrorbars lw 1.5 lc rgb '%s'", i, colour);
	}
	fputc('\n', out);
}

static void print_script(FILE *out, const mu_scene *s)
{
	print_axes(out, s);
	for (size_t i = 0; i < s->figure->n_series; i++)
		if (s->figure->kind == MU_FIGURE_LINES)
			print_line(out, s, i);
		else
			print_boxes(out, s, i);
	for (size_t i = 0; i < s->figure->n_series; i++)
		if (s->figure->kind == MU_FIGURE_BARS)
			print_intervals(out, s, i);
	print_plot(out, s);
}

/* ---- the process ---- */

typedef struct process {
	pid_t pid;
	int in; /* our end of the socket */
	FILE *picture, *words;
} process;

/* A file in memory. */
static FILE *unnamed(void)
{
	int fd = memfd_create("gnuplot", MFD_CLOEXEC);
	FILE *file = fd >= 0 ? fdopen(fd, "w+") : NULL;
	if (!file && fd >= 0)
		close(fd);
	return file;
}

static mural_status start(process *p, const char *program, mural_error *err)
{
	const char *const argv[] = {program, "-d", "-", NULL};
	const struct timeval patience = {.tv_sec = PATIENCE};
	int ends[2];
	posix_spawn_file_actions_t actions;
	p->picture = unnamed();
	p->words = unnamed();
	if (!p->picture || !p->words || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return mu_fail(err, MURAL_FAILED, NULL, "cannot prepare a process for gnuplot: %s", strerror(errno));
	p->in = ends[0];
	setsockopt(p->in, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	int failed = posix_spawn_file_actions_init(&actions);
	if (!failed) {
		posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
		posix_spawn_file_actions_adddup2(&actions, fileno(p->picture), STDOUT_FILENO);
		posix_spawn_file_actions_adddup2(&actions, fileno(p->words), STDERR_FILENO);
		failed = posix_spawnp(&p->pid, program, &actions, NULL, (char *const *)argv, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(ends[1]);
	if (failed) {
		p->pid = 0;
		if (failed == ENOENT)
			return mu_fail(err, MURAL_FAILED, program, "gnuplot is not installed (Debian: gnuplot-nox)");
		return mu_fail(err, MURAL_FAILED, program, "cannot start gnuplot: %s", strerror(failed));
	}
	return MURAL_OK;
}

/* A gnuplot that has gone or hangs stops reading; its end tells. */
static void feed(const process *p, const char *text, size_t bytes)
{
	while (bytes > 0) {
		ssize_t n = send(p->in, text, bytes, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		text += n;
		bytes -= (size_t)n;
	}
	shutdown(p->in, SHUT_WR);
}

/* Waits for its end; -1: it was killed for being too slow. */
static int await(const process *p)
{
	const struct timespec nap = {.tv_nsec = 2000000};
	double from = mu_now();
	int status = 0;
	for (;;) {
		pid_t gone = waitpid(p->pid, &status, WNOHANG);
		if (gone == p->pid || (gone < 0 && errno != EINTR))
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
		if (mu_now() - from > PATIENCE) {
			kill(p->pid, SIGKILL);
			while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
				;
			return -1;
		}
		nanosleep(&nap, NULL);
	}
}

static mural_status take_picture(const process *p, const char *program, char **svg, mural_error *err)
{
	if (fseek(p->picture, 0, SEEK_END) != 0)
		return mu_fail(err, MURAL_FAILED, program, "cannot read gnuplot's picture: %s", strerror(errno));
	long bytes = ftell(p->picture);
	rewind(p->picture);
	if (bytes <= 0 || (size_t)bytes > PICTURE_BYTES)
		return mu_fail(err, MURAL_FAILED, program, "gnuplot made no picture");
	*svg = malloc((size_t)bytes + 1);
	if (!*svg)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a picture of %s", MU_SIZE(bytes));
	(*svg)[fread(*svg, 1, (size_t)bytes, p->picture)] = '\0';
	return MURAL_OK;
}

static mural_status complain(const process *p, const char *program, int code, mural_error *err)
{
	char words[256] = "";
	rewind(p->words);
	while (fgets(words, sizeof words, p->words) && strspn(words, " \t\r\n") == strlen(words))
		;
	words[strcspn(words, "\n")] = '\0';
	if (code < 0)
		return mu_fail(err, MURAL_FAILED, program, "gnuplot did not finish within %d s", PATIENCE);
	return mu_fail(err, MURAL_FAILED, program, "gnuplot failed (exit code %d): %s", code,
	               *words ? words : "no words");
}

static mural_status run(const char *program, const char *script, size_t bytes, char **svg, mural_error *err)
{
	process p = {.in = -1};
	mural_status status = start(&p, program, err);
	if (status == MURAL_OK) {
		feed(&p, script, bytes);
		int code = await(&p);
		status = code == 0 ? take_picture(&p, program, svg, err) : complain(&p, program, code, err);
	}
	if (p.in >= 0)
		close(p.in);
	if (p.picture)
		fclose(p.picture);
	if (p.words)
		fclose(p.words);
	return status;
}

mural_status mu_gnuplot_draw(const mu_scene *scene, const char *program, char **svg, mural_error *err)
{
	char *script = NULL;
	size_t bytes = 0;
	*svg = NULL;
	FILE *out = open_memstream(&script, &bytes);
	if (out)
		print_script(out, scene);
	if (!out || fclose(out) != 0) {
		free(script);
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for gnuplot's script");
	}
	mural_status status = run(program, script, bytes, svg, err);
	free(script);
	return status;
}
