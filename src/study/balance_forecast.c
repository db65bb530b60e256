/* Equal against balanced shares on a described cluster, by the functions that a run decides with. SPDX-License-Identifier: MIT */
#include "mural/balance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/version.h"
#include "engine/balance_advice.h"
#include "engine/reducer.h"

enum { ADVICE = 4096 };

struct mural_balance_forecast {
	size_t lines;
	mural_balance_line *line;
	int *shares; /* of all lines' splits, [lines][MURAL_BALANCE_KINDS][ranks] */
	char cluster[MURAL_CLUSTER_NAME];
	char advice[ADVICE];
};

/* What a line is worked out with: for the first `search.problem.ranks` ranks. */
typedef struct work {
	mural_place places[MURAL_BALANCE_RANKS];
	mu_balance_rank rank[MURAL_BALANCE_RANKS];
	mu_balance_model model[MURAL_BALANCE_RANKS];
	int seat[MURAL_BALANCE_RANKS], shares[MURAL_BALANCE_RANKS], team_shares[MURAL_BALANCE_RANKS];
	bool member[MURAL_BALANCE_RANKS], room[MURAL_BALANCE_RANKS], team_member[MURAL_BALANCE_RANKS];
	mu_link_node *nodes, *room_nodes;
	mu_balance_network network;
	mu_balance_search search;
	mu_balance_team team;
	double element_bytes;
} work;

/* Bytes of a gradient as it travels. */
static double wire_bytes(const mural_config *config)
{
	switch (config->engine.communication_type) {
	case MURAL_TYPE_FP32: return 4;
	case MURAL_TYPE_FP16:
	case MURAL_TYPE_BF16: return 2;
	case MURAL_TYPE_MODEL: break;
	}
	return config->engine.precision == MURAL_FP32 ? 4 : 2;
}

/* As the reducer cuts them, units being alike. */
static int count_buckets(const mural_config *config, double elements)
{
	double limit = fmax(elements / MU_BUCKETS, (double)MU_BUCKET_MIN);
	double buckets = ceil(elements / fmin(limit, (double)config->engine.reduce_bucket));
	return (int)fmax(1, fmin(buckets, (double)config->model.depth + 2));
}

static mu_link link_of(const mural_cluster *cluster, int32_t index)
{
	const mu_link none = {.bytes_per_second = 1}; /* never read: comm/link.h */
	return index < 0 ? none
	                 : (mu_link){cluster->links[index].bytes_per_second, cluster->links[index].latency_seconds};
}

static mu_algorithm algorithm_of(const mural_cluster *cluster)
{
	switch (cluster->algorithm) {
	case MURAL_CLUSTER_RING: return MU_ALGORITHM_RING;
	case MURAL_CLUSTER_TREE: return MU_ALGORITHM_TREE;
	case MURAL_CLUSTER_AUTO: break;
	}
	return MU_ALGORITHM_AUTO;
}

static mural_status describe_ranks(work *w, const mural_balance_settings *s, int ranks, mural_error *err)
{
	const mural_cluster *cluster = s->cluster;
	double flops = 3 * mural_model_forward_flops(&s->config->model);
	for (int r = 0; r < ranks; r++) {
		const mural_place *place = &w->places[r];
		const mural_cluster_device *device = &cluster->devices[place->device];
		double per_image = mural_cluster_seconds(device, flops);
		if (per_image <= 0)
			return mu_fail(err, MURAL_USAGE, NULL,
			               "the cluster '%s' does not tell how fast its device \"%s\" is; it needs "
			               "seconds_per_image or tflops there",
			               cluster->name, device->name);
		mu_balance_model_begin(&w->model[r], device->seconds_per_batch, per_image);
		w->seat[r] = (int)place->node;
		w->nodes[place->node].uplink = link_of(cluster, cluster->nodes[place->entry].uplink);
		w->nodes[place->node].inside = link_of(cluster, cluster->nodes[place->entry].inside);
	}
	return MURAL_OK;
}

static mural_status describe(work *w, const mural_balance_settings *s, int ranks, mural_error *err)
{
	const mural_config *config = s->config;
	double elements = (double)mural_model_parameters(&config->model);
	w->nodes = calloc(s->cluster->nodes_in_all, sizeof *w->nodes);
	w->room_nodes = calloc(s->cluster->nodes_in_all, sizeof *w->room_nodes);
	if (!w->nodes || !w->room_nodes)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for %u nodes", s->cluster->nodes_in_all);
	MU_TRY(mural_cluster_place(s->cluster, (mural_placement)config->emulation.placement, ranks, w->places, err));
	MU_TRY(describe_ranks(w, s, ranks, err));
	w->element_bytes = wire_bytes(config);
	w->network = (mu_balance_network){.nodes = w->nodes,
	                                  .n_nodes = (int)s->cluster->nodes_in_all,
	                                  .seat = w->seat,
	                                  .algorithm = algorithm_of(s->cluster),
	                                  .bytes = elements * w->element_bytes * config->emulation.link_scale,
	                                  .overlap = config->engine.overlap_comm,
	                                  .buckets = count_buckets(config, elements)};
	w->search = (mu_balance_search){.problem = {.grain = 1,
	                                            .rank = w->rank,
	                                            .model = w->model,
	                                            .member = w->member,
	                                            .network = &w->network},
	                                .bytes = w->network.bytes,
	                                .first_stays = true, /* as in a run */
	                                .nodes = w->room_nodes,
	                                .member = w->room,
	                                .shares = w->shares};
	w->team = (mu_balance_team){.member = w->team_member, .shares = w->team_shares};
	return MURAL_OK;
}

static void keep(mural_balance_line *line, mural_balance_kind kind, const work *w, int *room)
{
	mural_balance_split *split = &line->split[kind];
	*split = (mural_balance_split){.seconds = w->team.step,
	                               .computing = w->team.computing,
	                               .reduction = w->team.reduction,
	                               .images_per_second = line->batch / w->team.step,
	                               .shares = room};
	memcpy(room, w->team.shares, (size_t)line->ranks * sizeof *room);
	for (int r = 0; r < line->ranks; r++)
		split->members += w->team.member[r];
}

static void share_equally(work *w)
{
	mu_balance_problem *p = &w->search.problem;
	for (int r = 0; r < p->ranks; r++) {
		long long batch = p->global_batch;
		w->team.shares[r] = (int)(batch * (r + 1) / p->ranks - batch * r / p->ranks);
		w->team.member[r] = true;
	}
	p->reduction = mu_balance_reduction(&w->network, w->member, p->ranks, w->network.bytes, w->room_nodes);
	w->team.reduction = p->reduction;
	w->team.computing = mu_balance_longest(p, w->team.shares);
	w->team.step = mu_balance_expected(p, w->team.shares);
}

static void work_out(work *w, const mural_balance_settings *s, mural_balance_line *line, int *room)
{
	mu_balance_problem *p = &w->search.problem;
	p->ranks = line->ranks;
	p->global_batch = line->batch;
	for (int r = 0; r < line->ranks; r++) {
		w->member[r] = true;
		w->rank[r] = (mu_balance_rank){.capacity = line->batch,
		                               .micro = s->micro_batch > 0 ? s->micro_batch : line->batch};
	}
	share_equally(w);
	keep(line, MURAL_BALANCE_EQUAL, w, room);
	mu_balance_with_all(&w->search, &w->team);
	keep(line, MURAL_BALANCE_ALL, w, room + line->ranks);
	mu_balance_best_team(&w->search, &w->team);
	keep(line, MURAL_BALANCE_BEST, w, room + 2 * line->ranks);
}

static mural_status check(const mural_balance_settings *s, int ranks, mural_error *err)
{
	uint64_t batch =
	        s->batch_per_rank > 0 ? (uint64_t)ranks * (uint64_t)s->batch_per_rank : s->config->batch.train_batch;
	if (ranks > MURAL_BALANCE_RANKS)
		return mu_fail(err, MURAL_USAGE, NULL, "shares can be balanced over at most %d ranks, not over %d",
		               MURAL_BALANCE_RANKS, ranks);
	if (batch > INT32_MAX / 2 || batch < (uint64_t)ranks)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "a batch of %llu images cannot be shared out over %d ranks: expected at least one for "
		               "each, and at most %d in all",
		               (unsigned long long)batch, ranks, INT32_MAX / 2);
	return MURAL_OK;
}

/* What a run's end would say, for all ranks. */
static mural_status advise(mural_balance_forecast *f, work *w, mural_error *err)
{
	const mu_balance_problem *p = &w->search.problem;
	mu_balance *balance = NULL;
	for (int r = 0; r < p->ranks; r++) {
		w->rank[r].seconds_per_image = w->model[r].b;
		w->rank[r].seconds_per_micro = w->model[r].a;
	}
	const mu_balance_settings settings = {.ranks = p->ranks,
	                                      .global_batch = p->global_batch,
	                                      .rank = w->rank,
	                                      .network = w->network,
	                                      .first_stays = true};
	MU_TRY(mu_balance_create(&balance, &settings, err));
	mu_balance_advice_words(balance, w->element_bytes, NULL, f->advice, sizeof f->advice);
	mu_balance_free(balance);
	return MURAL_OK;
}

/* 1, 2, 3 ... 8, 16, 32 ... and all. */
static int next_line(int n, int ranks)
{
	int next = n < 8 ? n + 1 : 2 * n;
	return next < ranks ? next : ranks;
}

static mural_status fill(mural_balance_forecast *f, work *w, const mural_balance_settings *s, int ranks,
                         mural_error *err)
{
	for (int n = 0; n < ranks; n = next_line(n, ranks))
		f->lines++;
	const size_t room = MURAL_BALANCE_KINDS * (size_t)ranks;
	f->line = calloc(f->lines, sizeof *f->line);
	f->shares = calloc(f->lines * room, sizeof *f->shares);
	if (!f->line || !f->shares)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to forecast %d ranks", ranks);
	snprintf(f->cluster, sizeof f->cluster, "%s", s->cluster->name);
	MU_TRY(describe(w, s, ranks, err));
	for (size_t i = 0; i < f->lines; i++) {
		mural_balance_line *line = &f->line[i];
		const int n = line->ranks = next_line(i > 0 ? f->line[i - 1].ranks : 0, ranks);
		line->batch = s->batch_per_rank > 0 ? n * s->batch_per_rank : (int)s->config->batch.train_batch;
		work_out(w, s, line, f->shares + i * room);
	}
	return advise(f, w, err);
}

mural_status mural_balance_forecast_create(mural_balance_forecast **forecast, const mural_balance_settings *settings,
                                           mural_error *err)
{
	uint32_t devices = settings->cluster->devices_in_all;
	int ranks = settings->ranks > 0             ? settings->ranks
	            : devices > MURAL_BALANCE_RANKS ? MURAL_BALANCE_RANKS
	                                            : (int)devices;
	*forecast = NULL;
	MU_TRY(check(settings, ranks, err));
	mural_balance_forecast *f = calloc(1, sizeof *f);
	work *w = calloc(1, sizeof *w);
	mural_status status = f && w ? fill(f, w, settings, ranks, err)
	                             : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a forecast");
	if (w) {
		free(w->nodes);
		free(w->room_nodes);
	}
	free(w);
	if (status == MURAL_OK)
		*forecast = f;
	else
		mural_balance_forecast_free(f);
	return status;
}

void mural_balance_forecast_free(mural_balance_forecast *f)
{
	if (!f)
		return;
	free(f->line);
	free(f->shares);
	free(f);
}

size_t mural_balance_forecast_lines(const mural_balance_forecast *f)
{
	return f->lines;
}

const mural_balance_line *mural_balance_forecast_line(const mural_balance_forecast *f, size_t i)
{
	return &f->line[i];
}

const char *mural_balance_forecast_advice(const mural_balance_forecast *f)
{
	return f->advice;
}

static void write_split(mu_json *json, const mural_balance_split *split, int ranks, const char *name)
{
	mu_json_object_begin(json, name);
	mu_json_number(json, "seconds", split->seconds);
	mu_json_number(json, "computing", split->computing);
	mu_json_number(json, "reduction", split->reduction);
	mu_json_number(json, "images_per_second", split->images_per_second);
	mu_json_integer(json, "members", split->members);
	mu_json_array_begin(json, "shares");
	for (int r = 0; r < ranks; r++)
		mu_json_integer(json, NULL, split->shares[r]);
	mu_json_array_end(json);
	mu_json_object_end(json);
}

mural_status mural_balance_forecast_write_json(const mural_balance_forecast *f, const char *path, mural_error *err)
{
	static const char *const names[MURAL_BALANCE_KINDS] = {"equal", "balanced", "best"};
	mu_file file = {0};
	mu_json json;
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	mu_json_string(&json, "mural_version", MU_VERSION);
	mu_json_string(&json, "cluster", f->cluster);
	mu_json_array_begin(&json, "lines");
	for (size_t i = 0; i < f->lines; i++) {
		const mural_balance_line *line = &f->line[i];
		mu_json_object_begin(&json, NULL);
		mu_json_integer(&json, "ranks", line->ranks);
		mu_json_integer(&json, "batch", line->batch);
		for (int kind = 0; kind < MURAL_BALANCE_KINDS; kind++)
			write_split(&json, &line->split[kind], line->ranks, names[kind]);
		mu_json_object_end(&json);
	}
	mu_json_array_end(&json);
	mu_json_string(&json, "advice", f->advice);
	mu_json_object_end(&json);
	return mu_file_commit(&file, err);
}
