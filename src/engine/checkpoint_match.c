/* What must be the same when a run goes on: the model's shape, and what decides which images a step sees and what its moments
 * mean. Learning rates, epochs, ranks, micro-batches and augmentation may change.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <strings.h>

#include "base/number.h"
#include "engine/checkpoint.h"

typedef struct list {
	mu_match *matches;
	size_t n;
} list;

static mu_match *next(list *l, const char *key)
{
	mu_match *match = &l->matches[l->n++];
	match->key = key;
	return match;
}

static void number(list *l, const char *key, uint64_t value)
{
	mu_match *match = next(l, key);
	snprintf(match->value, sizeof match->value, "%llu", (unsigned long long)value);
}

static void text(list *l, const char *key, const char *value)
{
	mu_match *match = next(l, key);
	snprintf(match->value, sizeof match->value, "%s", value);
}

static void sides(list *l, const char *key, size_t height, size_t width)
{
	mu_match *match = next(l, key);
	snprintf(match->value, sizeof match->value, "%zux%zu", height, width);
}

static void model_shape(list *l, const mural_model_config *m)
{
	sides(l, "mural.image_size", m->image_height, m->image_width);
	number(l, "mural.patch", m->patch);
	number(l, "mural.channels", m->channels);
	number(l, "mural.depth", m->depth);
	number(l, "mural.width", m->width);
	number(l, "mural.heads", m->heads);
	number(l, "mural.mlp_width", m->mlp_width);
	number(l, "mural.classes", m->classes);
	text(l, "mural.pool", m->pool == MURAL_POOL_MEAN ? "mean" : "token");
	text(l, "mural.class_token", m->class_token ? "true" : "false");
	text(l, "mural.gelu", m->gelu == MURAL_GELU_TANH ? "tanh" : "erf");
}

/* Which images choose the best weights, and by what. validation: NULL without any. */
static void validation_set(list *l, const mural_config *config, const mural_data_facts *validation)
{
	char share[MU_NUMBER_SIZE];
	text(l, "mural.data.validation_fraction", mu_number_text(config->data.validation_fraction, share));
	text(l, "the validation set", validation ? validation->name : "none");
	number(l, "the number of validation images", validation ? validation->images : 0);
	text(l, "mural.best_metric", validation ? mu_metric_text(config->validation.metric) : "none");
}

size_t mu_checkpoint_match(mu_match matches[MU_MATCHES], const mural_config *config, const mural_data_facts *train,
                           const mural_data_facts *validation)
{
	list l = {.matches = matches};
	model_shape(&l, &config->model);
	number(&l, "mural.seed", config->run.seed);
	number(&l, "train_batch_size", config->batch.train_batch);
	text(&l, "optimizer.type", config->optimizer.name);
	text(&l, "mural.ema", config->optimizer.ema_decay > 0 ? "on" : "off");
	text(&l, "the data set", train->name);
	number(&l, "the number of training images", train->images);
	text(&l, "mural.data.shuffle", config->data.shuffle ? "true" : "false");
	text(&l, "dataloader_drop_last", config->data.drop_last ? "true" : "false");
	validation_set(&l, config, validation);
	return l.n;
}
