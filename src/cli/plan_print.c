/* A plan in words and tables. SPDX-License-Identifier: MIT */
#include "plan_print.h"

#include <string.h>

static const char *size_text(double bytes, char text[32])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	int unit = 0;
	for (; bytes >= 1024 && unit < 4; unit++)
		bytes /= 1024;
	snprintf(text, 32, unit ? "%.2f %s" : "%.0f %s", bytes, units[unit]);
	return text;
}

static const char *time_text(double seconds, char text[32])
{
	if (seconds < 1)
		snprintf(text, 32, "%.4g ms", 1e3 * seconds);
	else if (seconds < 120)
		snprintf(text, 32, "%.4g s", seconds);
	else if (seconds < 7200)
		snprintf(text, 32, "%.3g min", seconds / 60);
	else
		snprintf(text, 32, "%.4g h", seconds / 3600);
	return text;
}

static void print_head(const mural_config *c, const mural_cluster *cluster, const mural_forecast_plan *p,
                       const plan_notes *notes)
{
	static const char *const precisions[] = {"fp32", "bf16", "fp16"};
	printf("%s at %zu x %zu, %s, %llu image%s x %llu on %d of %u device%s of '%s'\n", c->model.preset,
	       c->model.image_height, c->model.image_width, precisions[c->engine.precision],
	       (unsigned long long)p->step.micro_batch, p->step.micro_batch == 1 ? "" : "s",
	       (unsigned long long)p->step.accumulation, p->ranks, cluster->devices_in_all,
	       cluster->devices_in_all == 1 ? "" : "s", cluster->name);
	printf("speeds: %s%s\n", mural_forecast_source(p->forecast),
	       notes->here ? "; `mural plan --calibrate` measures" : "");
	if (notes->zero_stage > 0)
		printf("note: ZeRO stage %d was asked for; the engine runs stage 0, and so does this plan\n",
		       notes->zero_stage);
}

static void print_memory(const mural_forecast_plan *p, const plan_notes *notes)
{
	char text[32];
	printf("\nmemory of a rank");
	if (p->memory) {
		const mural_memory_plan *m = p->memory;
		const struct {
			const char *name;
			uint64_t bytes;
		} parts[] = {{"weights", m->parameters},         {"gradients", m->gradients},
		             {"optimizer state", m->optimizer},  {"activations", m->activations},
		             {"workspaces", m->scratch},         {"loader", m->loader},
		             {"checkpoint copy", m->checkpoint}, {"in all", m->total}};
		printf(", as the engine plans it on this machine's backend\n");
		for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
			printf("  %-16s %12s\n", parts[i].name, size_text((double)parts[i].bytes, text));
		printf("  buckets of gradients lie in the gradients; %s\n",
		       notes->loader_known ? "the copy is rank 0's" : "no data set was named, so no loader is counted");
	} else {
		printf(": not planned here: %s\n", notes->no_memory);
	}
	printf("weights, gradients and optimizer state by ZeRO stage\n");
	for (int stage = 0; stage <= 3; stage++) {
		mural_forecast_state s = mural_forecast_memory(p->forecast, stage, p->ranks);
		printf("  stage %d          %12s%s\n", stage, size_text(s.total, text),
		       stage == 0 ? "" : "   planned; the engine runs stage 0");
	}
}

static void print_step(const mural_forecast_plan *p)
{
	const mural_forecast_step *s = &p->step;
	char a[32], b[32];
	printf("\na step on %d device%s: %s, %.4g images/s\n", s->ranks, s->ranks == 1 ? "" : "s",
	       time_text(s->seconds, a), s->images_per_second);
	const struct {
		const char *name;
		double seconds;
	} parts[] = {{"waiting for data", s->data},
	             {"forward", s->forward},
	             {"backward", s->backward},
	             {"communication", s->exposed},
	             {"optimizer", s->optimizer}};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		printf("  %-16s %12s  %5.1f %%\n", parts[i].name, time_text(parts[i].seconds, a),
		       100 * parts[i].seconds / s->seconds);
	if (s->ranks > 1)
		printf("  another %s of communication hides behind backward; each rank hands over %s per step and "
		       "sends %s in a ring\n",
		       time_text(s->hidden, a), size_text(s->bytes, b), size_text(s->ring_bytes, (char[32]){0}));
}

static void print_rows(const mural_cluster *cluster, const mural_forecast_plan *p)
{
	bool epochs = p->rows[0].epoch > 0, money = p->rows[0].money > 0, joules = p->rows[0].joules > 0;
	char a[32], b[32], c[32];
	printf("\nscaling: each device has the batch above (weak: its own images; strong: all share an epoch); at the "
	       "right the same global batch, divided\n");
	printf("%8s %9s %11s %11s %11s %7s", "devices", "batch", "step", "exposed", "images/s", "weak");
	if (epochs)
		printf(" %11s %7s", "epoch", "strong");
	printf("  %11s %7s", "divided", "");
	if (money)
		printf("  %9s", cluster->currency[0] ? cluster->currency : "price");
	if (joules)
		printf("  %9s", "kJ");
	printf("\n");
	for (size_t i = 0; i < p->n_rows; i++) {
		const mural_forecast_row *r = &p->rows[i];
		printf("%8d %9.0f %11s %11s %11.4g %6.1f%%", r->step.ranks, r->step.images,
		       time_text(r->step.seconds, a), time_text(r->step.exposed, b), r->step.images_per_second,
		       100 * r->efficiency);
		if (epochs)
			printf(" %11s %6.1f%%", time_text(r->epoch, c), 100 * r->strong_efficiency);
		if (r->same_batch_seconds > 0)
			printf("  %11s %6.1f%%", time_text(r->same_batch_seconds, c), 100 * r->same_batch_efficiency);
		else
			printf("  %11s %7s", "-", "");
		if (money)
			printf("  %9.3g", r->money);
		if (joules)
			printf("  %9.4g", r->joules / 1e3);
		printf("\n");
	}
	if (money || joules)
		printf("money and energy are of an epoch: devices alone, at their rated power\n");
}

/* The whole run, of which the table has epochs. */
static void print_run(const mural_config *c, const mural_cluster *cluster, const mural_forecast_plan *p,
                      const plan_notes *notes)
{
	double epoch = 0;
	const mural_forecast_point point = {.ranks = p->ranks};
	char a[32];
	if (notes->images == 0 || mural_forecast_epoch(p->forecast, &point, notes->images, &epoch, NULL) != MURAL_OK)
		return;
	double run = epoch * c->run.epochs;
	printf("\nthe run: %u epoch%s of %llu images on %d device%s, %s", c->run.epochs, c->run.epochs == 1 ? "" : "s",
	       (unsigned long long)notes->images, p->ranks, p->ranks == 1 ? "" : "s", time_text(run, a));
	if (p->step.price_per_hour > 0)
		printf(", %.3g %s", run / 3600 * p->step.price_per_hour,
		       cluster->currency[0] ? cluster->currency : "(no currency told)");
	if (p->step.watts > 0)
		printf(", %.4g kWh", run * p->step.watts / 3.6e6);
	printf("\n");
}

static void print_network(const mural_cluster *c, const mural_forecast_plan *p)
{
	const mural_forecast_answers *a = &p->answers;
	const mural_forecast_step *s = &a->network;
	char x[32], y[32];
	if (a->ten_gigabit_seconds > 0)
		printf("  a 10 Gb/s network: a step on %d devices takes %s instead of %s (%+.1f %%)\n", s->ranks,
		       time_text(a->ten_gigabit_seconds, x), time_text(s->seconds, y),
		       100 * (a->ten_gigabit_seconds / s->seconds - 1));
	else
		printf("  a 10 Gb/s network: all devices are in one node and need none\n");
	if (a->even_uplinks_seconds > 0)
		printf("  every reduction waits for the uplink of node %d ('%s', %.3g GB/s): as fast as the others "
		       "(%.3g GB/s) a step would take %s\n",
		       s->slowest_node, c->nodes[s->slowest_entry].name, s->slowest_uplink / 1e9,
		       s->other_uplinks / 1e9, time_text(a->even_uplinks_seconds, x));
	s = &p->step;
	if (s->slowness > 1.05)
		printf("  every step waits for rank %d, a '%s', which takes %.3g times as long as the fastest device\n",
		       s->slowest_rank, c->devices[s->slowest_device].name, s->slowness);
}

static void print_answers(const mural_cluster *c, const mural_forecast_plan *p, const plan_notes *notes)
{
	const mural_forecast_answers *a = &p->answers;
	char x[32];
	printf("\nin words\n");
	if (a->inefficient_from > 0)
		printf("  efficiency falls below 80 %% at %d devices (%.1f %%)\n", a->inefficient_from,
		       100 * a->last_efficiency);
	else
		printf("  efficiency stays at %.1f %% or above up to all %d device%s\n", 100 * a->last_efficiency,
		       a->looked_at, a->looked_at == 1 ? "" : "s");
	printf("  %llu image%s per device reach%s 95 %% of the best throughput (%.4g of %.4g images/s, which %llu "
	       "reach)\n",
	       (unsigned long long)a->batch, a->batch == 1 ? "" : "s", a->batch == 1 ? "es" : "",
	       a->batch_images_per_second, a->best_images_per_second, (unsigned long long)a->largest_batch);
	if (notes->largest_batch > 0)
		printf("  %llu is the largest micro-batch that fits into %s\n",
		       (unsigned long long)notes->largest_batch, size_text((double)notes->memory_limit, x));
	else if (p->memory)
		printf("  not even one image at a time fits into %s\n", size_text((double)notes->memory_limit, x));
	print_network(c, p);
}

void plan_print(const mural_config *config, const mural_cluster *cluster, const mural_forecast_plan *p,
                const plan_notes *notes)
{
	print_head(config, cluster, p, notes);
	print_memory(p, notes);
	print_step(p);
	print_rows(cluster, p);
	print_run(config, cluster, p, notes);
	print_answers(cluster, p, notes);
}
