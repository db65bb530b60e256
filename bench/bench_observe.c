/* What watching costs, event by event: run by bench/run.sh profiling, which counts the events of a real step. Prints a line per
 * event, "name seconds". SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/log.h"
#include "comm/observed.h"
#include "monitor/scalars.h"
#include "monitor/trace.h"

enum { MANY = 1000000, SOME = 5000, ROUNDS = 5 };

static volatile double sink;

/* The best of some rounds. */
static double best(double (*round)(void))
{
	double least = round();
	for (int i = 1; i < ROUNDS; i++) {
		double seconds = round();
		least = seconds < least ? seconds : least;
	}
	return least;
}

static mu_trace trace;

static double spans(mu_trace *watched)
{
	double span = mu_trace_begin(watched), from = mu_now();
	for (int i = 0; i < MANY; i++)
		span = mu_trace_span(watched, MU_SPAN_FORWARD, (size_t)i & 7, span);
	sink = span;
	return (mu_now() - from) / MANY;
}

static double span_on(void)
{
	trace.n = 0;
	return spans(&trace);
}

static double span_off(void)
{
	/* opaque to the compiler, or the loop would be gone */
	mu_trace *volatile nobody = NULL;
	double from = mu_now();
	for (int i = 0; i < MANY; i++)
		sink = mu_trace_span(nobody, MU_SPAN_FORWARD, (size_t)i & 7, 0);
	return (mu_now() - from) / MANY;
}

static mu_comm_log comm_log;

static void heard(void *listener, const mu_comm_event *event)
{
	mu_comm_log_add(listener, event->collective, event->bytes, event->ended - event->started);
}

static double collectives(mu_comm *comm)
{
	double value = 0, from = mu_now();
	for (int i = 0; i < MANY; i++) {
		mu_pending pending = {0};
		comm->table->all_reduce_begin(comm, &value, 1, MU_F64, MU_SUM, &pending, NULL);
		comm->table->wait(comm, &pending, NULL);
	}
	return (mu_now() - from) / MANY;
}

static mu_comm *plain, *observed;

static double collective_on(void)
{
	return collectives(observed);
}

static double collective_off(void)
{
	return collectives(plain);
}

static mu_scalars scalars;

/* A step's curves: eight of them, as with wall_clock_breakdown. */
static double curves(void)
{
	static const char *const tags[] = {"Train/Samples/train_loss",
	                                   "Train/Samples/lr",
	                                   "Train/Samples/gradient_norm",
	                                   "Train/Samples/images_per_second",
	                                   "Train/Samples/elapsed_time_ms_forward",
	                                   "Train/Samples/elapsed_time_ms_backward",
	                                   "Train/Samples/elapsed_time_ms_backward_allreduce",
	                                   "Train/Samples/elapsed_time_ms_step"};
	double from = mu_now();
	for (int i = 0; i < SOME; i++) {
		mu_scalars_begin(&scalars, (uint64_t)i, from);
		for (size_t c = 0; c < sizeof tags / sizeof *tags; c++)
			mu_scalars_put(&scalars, tags[c], 0.1 * i);
		mu_scalars_end(&scalars, NULL);
	}
	return (mu_now() - from) / SOME;
}

static double curves_in(const char *events, const char *tables)
{
	const mu_scalars_settings settings = {.events_folder = events, .csv_folder = tables, .keep = UINT64_MAX};
	double seconds = mu_scalars_open(&scalars, &settings, NULL) ? -1 : best(curves);
	mu_scalars_close(&scalars);
	return seconds;
}

int main(void)
{
	char folder[] = "/tmp/mural-bench-XXXXXX", command[64];
	if (!mkdtemp(folder) || mu_trace_init(&trace, MANY, 1, 1, NULL) || mu_comm_open("self", &plain, NULL) ||
	    mu_observed_create(&observed, plain, heard, &comm_log, NULL))
		return 1;
	mu_trace_step(&trace, 1);
	printf("span_on %.3g\n", best(span_on));
	printf("span_off %.3g\n", best(span_off));
	printf("collective %.3g\n", best(collective_on) - best(collective_off));
	printf("tensorboard %.3g\n", curves_in(folder, NULL));
	printf("csv_monitor %.3g\n", curves_in(NULL, folder));
	observed->table->close(observed);
	plain->table->close(plain);
	mu_trace_release(&trace);
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}
