/* Is one rank the same training as R ranks? Run by tests/ranks/test_invariance.sh.
 *
 *     invariance dump FOLDER [option...]     alone: trains, writes each step's loss, and for the first steps the
 *                                            weights before and the summed gradient
 *     invariance check FOLDER [option...]    on any number of ranks: from the same weights, each step's summed gradient must
 *                                            agree per tensor; then a free run's losses must agree
 *     invariance gradients FOLDER [option...]    only the gradients of these
 *     invariance note FOLDER [option...]     writes the losses of a free run
 *     invariance near FOLDER [option...]     a free run's losses must be within 1 % of those noted: for narrow types
 *     invariance losses [option...]          prints the losses of a free run, bit for bit
 *     invariance begin [option...]           the first of them
 *
 * The task has everything that could depend on the number of ranks: dropout of all kinds, drop path, crops and flips,
 * label smoothing, accumulation, a short last batch. option: as `mural train` takes them.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_internal.h"

#define GRADIENT_STEPS 10 /* epochs have 5 steps, so two short last batches are among them */
#define FREE_STEPS 200
#define BEGIN_STEPS 40
/* Per tensor: |a - b| <= GRADIENT_WITHIN * |b| + FLOOR * |all gradients|. Sums of a few thousand fp32 terms in another order
 * differ by a few times 2^-24 sqrt(log n), about 2e-7; the floor serves tensors whose true gradient is almost zero. */
#define GRADIENT_WITHIN 1e-6
#define FLOOR 1e-8

static const char *const task[] = {
        "--model",
        "mu",
        "--image-size",
        "20x12",
        "--patch",
        "4",
        "--channels",
        "3",
        "--classes",
        "7",
        "--width",
        "48",
        "--heads",
        "3",
        "--mlp-width",
        "96",
        "--depth",
        "3",
        "--dropout",
        "0.1",
        "--attention-dropout",
        "0.1",
        "--drop-path",
        "0.2",
        "--label-smoothing",
        "0.1",
        "--init",
        "timm",
        "--data",
        "synthetic",
        "--synthetic-images",
        "100",
        "--crop-padding",
        "2",
        "--flip",
        "0.5",
        "--lr",
        "1e-4",
        "--weight-decay",
        "0.05",
        "--clip",
        "1",
        "--epochs",
        "40",
        "--seed",
        "11",
        "--batch",
        "24",
};

typedef struct trial {
	mural_comm *comm;
	mural_config config;
	mural_data *data;
	mural_engine *engine;
} trial;

static void must(mural_status status, const mural_error *err)
{
	if (status == MURAL_OK)
		return;
	mural_error_print(err, stderr);
	exit(mural_exit_code(status));
}

static void configure(trial *t, int argc, char **argv)
{
	size_t n = sizeof task / sizeof *task;
	const char **all = calloc(n + (size_t)argc, sizeof *all);
	memcpy(all, task, sizeof task);
	for (int i = 0; i < argc; i++)
		all[n + (size_t)i] = argv[i];
	mural_config_sources sources = {
	        .argc = (int)n + argc, .argv = all, .ranks = mural_comm_get_facts(t->comm)->size};
	mural_error err = {0};
	mural_config_report *report = NULL;
	must(mural_config_resolve(&t->config, &report, &sources, &err), &err);
	mural_config_report_free(report);
	free(all);
}

/* The engine's shares are those that were asked for. */
static void check_shares(const trial *t)
{
	const int *share_R = mural_engine_shares(t->engine);
	const bool equal = strcmp(t->config.balance.shares, "equal") == 0;
	char told[256] = "";
	size_t used = 0;
	for (int r = 0; share_R && r < mural_comm_get_facts(t->comm)->size; r++)
		used += (size_t)snprintf(told + used, sizeof told - used, "%s%d", r ? "," : "", share_R[r]);
	if (equal != !share_R || (!equal && strcmp(told, t->config.balance.shares) != 0)) {
		fprintf(stderr, "the engine's shares are '%s' and not '%s'\n", told, t->config.balance.shares);
		exit(1);
	}
}

static void start(trial *t)
{
	const mural_model_config *m = &t->config.model;
	mural_error err = {0};
	must(mural_data_open(&t->data, &t->config.data, MURAL_SPLIT_TRAIN, t->config.run.seed, m->channels,
	                     m->image_height, m->image_width, m->classes, &err),
	     &err);
	mural_engine_settings settings = {.config = &t->config, .comm = t->comm, .training = true, .train = t->data};
	must(mural_engine_create(&t->engine, &settings, &err), &err);
	must(mural_engine_train_begin(t->engine, &err), &err);
	check_shares(t);
}

static void stop(trial *t)
{
	mural_engine_free(t->engine);
	mural_data_free(t->data);
}

static void transfer(const char *folder, const char *name, int step, float *values, size_t n, bool write)
{
	char path[1024];
	snprintf(path, sizeof path, "%s/%s.%d", folder, name, step);
	FILE *file = fopen(path, write ? "wb" : "rb");
	size_t done =
	        file ? (write ? fwrite(values, sizeof *values, n, file) : fread(values, sizeof *values, n, file)) : 0;
	if (!file || done != n || fclose(file) != 0) {
		fprintf(stderr, "cannot %s %s\n", write ? "write" : "read", path);
		exit(1);
	}
}

static double norm(const float *x, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (double)x[i] * x[i];
	return sqrt(sum);
}

static double distance(const float *a, const float *b, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
	return sqrt(sum);
}

/* Between a span of the engine, wherever it lies, and the host. */
static void copy_span(const mural_engine *engine, void *to, const void *from)
{
	const mu_device *device = &engine->device;
	mural_error err = {0};
	must(device->table->copy(device->queue, to, from, engine->store.elements * sizeof(float), &err), &err);
	must(device->table->wait(device->queue, &err), &err);
}

/* Returns how many tensors disagree; *worst becomes the largest share of the tolerance used. */
static int compare(const mural_engine *engine, int step, const float *got, const float *expected, double *worst)
{
	const mu_store *store = &engine->store;
	double all = norm(expected, store->elements);
	int bad = 0;
	for (size_t u = 0; u < store->n_units; u++) {
		for (size_t t = 0; t < store->units[u].n_tensors; t++) {
			const mu_tensor *tensor = &store->units[u].tensors[t];
			size_t at = store->offset[u] + tensor->offset;
			double size = norm(expected + at, tensor->elements),
			       off = distance(got + at, expected + at, tensor->elements);
			double limit = GRADIENT_WITHIN * size + FLOOR * all;
			if (off / limit > *worst)
				*worst = off / limit;
			if (off <= limit)
				continue;
			bad++;
			fprintf(stderr, "step %d: %s: |difference| %.3g of |gradient| %.3g (all: %.3g), limit %.3g\n",
			        step, tensor->name, off, size, all, limit);
		}
	}
	return bad;
}

/* One step's gradient from given weights; the update is left out. */
static void gradients_of(trial *t)
{
	mural_error err = {0};
	mu_step_state state;
	must(mu_engine_gradients(t->engine, &state, &err), &err);
	must(mu_engine_read(t->engine, MURAL_OK, &err), &err);
	t->engine->steps_done++;
}

static int check_gradients(trial *t, const char *folder)
{
	start(t);
	mu_store *store = &t->engine->store;
	float *expected = calloc(store->elements, sizeof *expected), *got = calloc(store->elements, sizeof *got);
	int bad = 0;
	double worst = 0;
	for (int step = 0; step < GRADIENT_STEPS; step++) {
		transfer(folder, "weights", step, got, store->elements, false);
		copy_span(t->engine, store->parameters, got);
		transfer(folder, "gradients", step, expected, store->elements, false);
		gradients_of(t);
		copy_span(t->engine, got, store->gradients);
		bad += compare(t->engine, step, got, expected, &worst);
	}
	if (mural_comm_get_facts(t->comm)->rank == 0)
		printf("gradients of %d steps: largest share of the tolerance used %.3f\n", GRADIENT_STEPS, worst);
	free(expected);
	free(got);
	stop(t);
	return bad;
}

static void free_run(trial *t, int steps, double *losses)
{
	mural_error err = {0};
	start(t);
	for (int step = 0; step < steps; step++) {
		mural_step_facts facts;
		must(mural_engine_step(t->engine, &facts, &err), &err);
		losses[step] = facts.loss;
	}
	stop(t);
}

/* within: of the first 50 losses and of all, relative. */
static int check_losses(trial *t, const char *folder, const double within[2])
{
	double losses[FREE_STEPS], early = 0, late = 0;
	free_run(t, FREE_STEPS, losses);
	char path[1024];
	snprintf(path, sizeof path, "%s/losses", folder);
	FILE *file = fopen(path, "r");
	for (int step = 0; step < FREE_STEPS; step++) {
		double expected;
		if (!file || fscanf(file, "%lf", &expected) != 1) {
			fprintf(stderr, "%s: loss of step %d is missing\n", path, step);
			return 1;
		}
		double off = fabs(losses[step] - expected) / expected;
		if (step < 50)
			early = fmax(early, off);
		late = fmax(late, off);
	}
	fclose(file);
	if (mural_comm_get_facts(t->comm)->rank == 0)
		printf("losses: relative difference %.3g over 50 steps (limit %g), %.3g over %d (limit %g)\n", early,
		       within[0], late, FREE_STEPS, within[1]);
	return !(early <= within[0] && late <= within[1]);
}

static void note(trial *t, const char *folder)
{
	double losses[FREE_STEPS];
	char path[1024];
	free_run(t, FREE_STEPS, losses);
	snprintf(path, sizeof path, "%s/losses", folder);
	FILE *file = fopen(path, "w");
	if (!file)
		exit(1);
	for (int step = 0; step < FREE_STEPS; step++)
		fprintf(file, "%.17g\n", losses[step]);
	fclose(file);
}

static void dump(trial *t, const char *folder)
{
	start(t);
	mu_store *store = &t->engine->store;
	mural_error err = {0};
	char path[1024];
	snprintf(path, sizeof path, "%s/losses", folder);
	FILE *file = fopen(path, "w");
	if (!file)
		exit(1);
	/* A second engine supplies the gradients, so that this one trains undisturbed. */
	trial other = *t;
	start(&other);
	for (int step = 0; step < FREE_STEPS; step++) {
		if (step < GRADIENT_STEPS) {
			mu_store *copy = &other.engine->store;
			transfer(folder, "weights", step, store->parameters, store->elements, true);
			memcpy(copy->parameters, store->parameters, store->elements * sizeof(float));
			gradients_of(&other);
			transfer(folder, "gradients", step, copy->gradients, store->elements, true);
		}
		mural_step_facts facts;
		must(mural_engine_step(t->engine, &facts, &err), &err);
		fprintf(file, "%.17g\n", facts.loss);
	}
	fclose(file);
	stop(&other);
	stop(t);
}

static void print_losses(trial *t, int steps)
{
	double losses[FREE_STEPS];
	free_run(t, steps, losses);
	for (int step = 0; step < steps && mural_comm_get_facts(t->comm)->rank == 0; step++)
		printf("%a\n", losses[step]);
}

int main(int argc, char **argv)
{
	bool begin = argc >= 2 && strcmp(argv[1], "begin") == 0;
	bool losses = begin || (argc >= 2 && strcmp(argv[1], "losses") == 0);
	if (argc < 3 && !losses)
		return 2;
	trial t = {0};
	mural_error err = {0};
	must(mural_comm_open(&t.comm, "auto", &err), &err);
	int used = losses ? 2 : 3, bad = 0;
	configure(&t, argc - used, argv + used);
	if (losses)
		print_losses(&t, begin ? BEGIN_STEPS : FREE_STEPS);
	else if (strcmp(argv[1], "dump") == 0)
		dump(&t, argv[2]);
	else if (strcmp(argv[1], "note") == 0)
		note(&t, argv[2]);
	else if (strcmp(argv[1], "near") == 0)
		bad = check_losses(&t, argv[2], (const double[]){0.01, 0.01});
	else if (strcmp(argv[1], "gradients") == 0)
		bad = check_gradients(&t, argv[2]);
	else
		bad = check_gradients(&t, argv[2]) + check_losses(&t, argv[2], (const double[]){1e-6, 1e-5});
	mural_comm_close(t.comm);
	return bad > 0;
}
