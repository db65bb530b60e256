/* Unequal workers, the decisions: simulated ranks that are fast, slow, noisy, drifting; every claim of balance.h is counted here.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/balance.h"
#include "engine/balance_members.h"

enum { MOST = 8 };

/* A job as it really is; the balance sees only rows. */
typedef struct job {
	int ranks, batch;
	double a[MOST], b[MOST]; /* per micro-batch, per image */
	mu_balance_rank rank[MOST];
	double noise; /* relative, of each step of each rank */
	int busy_every; /* one step in so many takes three times as long, on one rank or another; 0: none does */
	mu_balance_network network;
	uint32_t random;

	mu_balance *balance;
	mu_balance_window window[MOST];
	bool member[MOST];
	int shares[MOST], until; /* steps until the next decision */
	int changes, removals;
} job;

static double uniform(job *j)
{
	j->random = j->random * 1664525u + 1013904223u;
	return (j->random >> 8) / (double)(1u << 24);
}

/* About normal, by the sum of uniforms. */
static double normal(job *j)
{
	double sum = -6;
	for (int i = 0; i < 12; i++)
		sum += uniform(j);
	return sum;
}

static double micro_batches(const job *j, int r, int images)
{
	return ceil((double)images / j->rank[r].micro);
}

static double exact(const job *j, int r, int images)
{
	return images > 0 ? j->a[r] * micro_batches(j, r, images) + j->b[r] * images : 0;
}

static double reduction(const job *j)
{
	mu_link_node room[MOST];
	if (j->network.nodes)
		return mu_balance_reduction(&j->network, j->member, j->ranks, j->network.bytes, room);
	return j->network.measured; /* here: as it is */
}

static void begin(job *j, bool may_remove)
{
	mural_error err = {0};
	mu_balance_settings settings = {.ranks = j->ranks,
	                                .global_batch = j->batch,
	                                .rank = j->rank,
	                                .network = j->network,
	                                .may_remove = may_remove};
	if (!j->network.nodes)
		settings.network.measured = 0;
	j->random = j->random ? j->random : 1;
	if (mu_balance_create(&j->balance, &settings, &err) != MURAL_OK)
		fail_msg("%s", err.message);
	for (int r = 0; r < j->ranks; r++)
		j->member[r] = true;
	memcpy(j->shares, mu_balance_shares(j->balance), sizeof(int) * (size_t)j->ranks);
	j->until = mu_balance_interval(j->balance);
}

static void decide(job *j)
{
	mu_balance_row rows[MOST];
	int sum = 0;
	for (int r = 0; r < j->ranks; r++)
		rows[r] = mu_balance_close(&j->window[r]);
	const mu_balance_decision *d = mu_balance_decide(j->balance, rows);
	j->changes += d->changed;
	j->removals += d->removed;
	assert_true(d->reason[0] != 0);
	if (!d->changed)
		assert_memory_equal(j->shares, d->shares, sizeof(int) * (size_t)j->ranks);
	for (int r = 0; r < j->ranks; r++) {
		j->shares[r] = d->shares[r];
		j->member[r] = d->member[r];
		sum += d->shares[r];
		assert_true(d->shares[r] >= 0 && d->shares[r] <= j->rank[r].capacity);
		assert_true(d->member[r] || d->shares[r] == 0);
	}
	assert_int_equal(sum, j->batch);
	j->until = mu_balance_interval(j->balance);
	assert_true(j->until >= 1);
}

/* Of a step in which the ranks compute so long. */
static double step_of(const job *j, const double *own)
{
	double longest = 0, ready = 0;
	for (int r = 0; r < j->ranks; r++) {
		longest = fmax(longest, own[r]);
		ready = fmax(ready, mu_balance_ready(&j->network, own[r], micro_batches(j, r, j->shares[r])));
	}
	return mu_balance_step_seconds(&j->network, longest, ready, reduction(j));
}

static double step_now(const job *j)
{
	double own[MOST];
	for (int r = 0; r < j->ranks; r++)
		own[r] = exact(j, r, j->shares[r]);
	return step_of(j, own);
}

static void step(job *j)
{
	double own[MOST];
	for (int r = 0; r < j->ranks; r++) {
		own[r] = exact(j, r, j->shares[r]) * exp(j->noise * normal(j));
		if (j->busy_every > 0 && uniform(j) * j->busy_every < 1)
			own[r] *= 3;
	}
	double together = step_of(j, own);
	for (int r = 0; r < j->ranks; r++)
		if (j->shares[r] > 0)
			mu_balance_step(&j->window[r], j->shares[r], micro_batches(j, r, j->shares[r]), own[r],
			                together - own[r]);
	if (--j->until == 0)
		decide(j);
}

/* The best that fixed shares can do, with the speeds as they are. */
static double best_step(const job *j, bool of_any_team)
{
	mu_balance_model model[MOST] = {0};
	bool member[MOST], best_member[MOST], all[MOST];
	int shares[MOST], best_shares[MOST];
	mu_link_node room[MOST];
	for (int r = 0; r < j->ranks; r++) {
		all[r] = true;
		mu_balance_model_begin(&model[r], j->a[r], j->b[r]);
	}
	mu_balance_network network = j->network;
	network.measured_ranks = network.nodes ? 0 : j->ranks;
	const mu_balance_search search = {.problem = {.ranks = j->ranks,
	                                              .global_batch = j->batch,
	                                              .grain = 1,
	                                              .rank = j->rank,
	                                              .model = model,
	                                              .member = all,
	                                              .network = &network},
	                                  .bytes = network.bytes,
	                                  .nodes = room,
	                                  .member = member,
	                                  .shares = shares};
	mu_balance_team team = {.member = best_member, .shares = best_shares};
	if (of_any_team)
		mu_balance_best_team(&search, &team);
	else
		mu_balance_with_all(&search, &team);
	return team.step;
}

static void end(job *j)
{
	mu_balance_free(j->balance);
	j->balance = NULL;
}

/* Ranks whose speeds differ by up to a factor of 4, with fixed costs, reductions, small and large batches. */
static job random_job(uint32_t seed)
{
	job j = {.random = seed * 7919 + 1, .noise = 0.02};
	j.ranks = 2 + (int)(uniform(&j) * 6);
	j.batch = j.ranks * (8 + (int)(uniform(&j) * 120));
	for (int r = 0; r < j.ranks; r++) {
		j.b[r] = 0.01 * pow(4, uniform(&j));
		j.a[r] = uniform(&j) < 0.5 ? 0 : 0.02 * uniform(&j);
		j.rank[r] = (mu_balance_rank){.capacity = j.batch, .micro = seed % 3 ? j.batch : 1 + j.batch / j.ranks};
	}
	j.network = (mu_balance_network){
	        .bytes = 1e6, .measured = 0.2 * uniform(&j), .overlap = uniform(&j) < 0.5, .buckets = 8};
	return j;
}

static void test_thirty_steps_reach_the_best_split(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 200; seed++) {
		job j = random_job(seed);
		begin(&j, false);
		for (int i = 0; i < 30; i++)
			step(&j);
		double now = step_now(&j), best = best_step(&j, false);
		if (now > 1.05 * best)
			fail_msg(
			        "seed %u: %d ranks, batch %d: a step of %.4f s after 30 steps, the best split has %.4f",
			        seed, j.ranks, j.batch, now, best);
		end(&j);
	}
}

/* Without any change of speed, few changes: noise and busy moments move nothing for long. */
static void test_ten_thousand_noisy_steps(void **state)
{
	(void)state;
	int most = 0, in_all = 0, late = 0;
	for (uint32_t seed = 1; seed <= 12; seed++) {
		job j = random_job(seed);
		j.noise = 0.02 + 0.01 * (seed % 4);
		j.busy_every = seed % 2 ? 25 : 0;
		begin(&j, false);
		for (int i = 0; i < 1000; i++)
			step(&j);
		int early = j.changes;
		for (int i = 1000; i < 10000; i++)
			step(&j);
		most = j.changes > most ? j.changes : most;
		in_all += j.changes;
		late += j.changes - early;
		double now = step_now(&j), best = best_step(&j, false);
		if (now > 1.06 * best)
			fail_msg("seed %u: a step of %.4f s after 10000 steps, the best split has %.4f", seed, now,
			         best);
		end(&j);
	}
	print_message("changes in 12 jobs of 10000 steps: %d, at most %d in one, %d after the first 1000 steps\n",
	              in_all, most, late);
	assert_true(most <= 10);
	assert_true(late <= 24);
}

/* Equal ranks: equal shares stay. */
static void test_homogeneous_job_is_left_alone(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 20; seed++) {
		job j = {.ranks = 8,
		         .batch = 512,
		         .noise = 0.02,
		         .random = seed,
		         .network = {.bytes = 1e6, .measured = 0.1}};
		for (int r = 0; r < 8; r++) {
			j.b[r] = 0.01;
			j.rank[r] = (mu_balance_rank){.capacity = 128, .micro = 64};
		}
		begin(&j, true);
		for (int i = 0; i < 2000; i++)
			step(&j);
		assert_int_equal(j.changes, 0);
		end(&j);
	}
}

static void test_drift_is_followed(void **state)
{
	(void)state;
	int slowest = 0;
	for (uint32_t seed = 1; seed <= 50; seed++) {
		job j = random_job(seed);
		begin(&j, false);
		for (int i = 0; i < 200; i++)
			step(&j);
		int r = (int)(seed % (unsigned)j.ranks), steps = 0;
		if (j.shares[r] == 0) {
			end(&j);
			continue;
		}
		double factor = seed % 2 ? 2 : 0.6;
		j.a[r] *= factor;
		j.b[r] *= factor;
		while (step_now(&j) > 1.05 * best_step(&j, false) && steps < 200) {
			step(&j);
			steps++;
		}
		slowest = steps > slowest ? steps : slowest;
		end(&j);
	}
	print_message("drift: within 5 %% of the new best split after at most %d steps\n", slowest);
	assert_true(slowest <= 48);
}

static const int seats[5] = {0, 1, 2, 3, 4};
static const mu_link_node nodes[5] = {{.uplink = {0.95e9, 30e-6}},
                                      {.uplink = {0.95e9, 30e-6}},
                                      {.uplink = {0.95e9, 30e-6}},
                                      {.uplink = {0.95e9, 30e-6}},
                                      {.uplink = {0.12e9, 50e-6}}};

/* The first `ranks` of the study's five. */
static job tesla(int ranks, int batch, bool overlap)
{
	static const double pace[5] = {0.0143, 0.0143, 0.0143, 0.045, 0.041};
	job j = {.ranks = ranks, .batch = batch, .noise = 0.01};
	j.network = (mu_balance_network){.nodes = nodes,
	                                 .n_nodes = 5,
	                                 .seat = seats,
	                                 .algorithm = MU_ALGORITHM_RING,
	                                 .bytes = 346.27e6,
	                                 .overlap = overlap,
	                                 .buckets = 8};
	for (int r = 0; r < ranks; r++) {
		j.b[r] = pace[r];
		j.rank[r] = (mu_balance_rank){.capacity = 80, .micro = 80};
	}
	return j;
}

/* Issue: equal shares show the study's shape, balanced ones never make an epoch longer by a worker more, and what is reached is at
 * least 90 % of the best split and team. */
static void test_the_studys_cluster(void **state)
{
	(void)state;
	for (int policy = 0; policy < 4; policy++) {
		bool overlap = policy & 1, fixed = policy & 2;
		double equal_before = INFINITY, balanced_before = INFINITY;
		for (int ranks = 1; ranks <= 5; ranks++) {
			job j = tesla(ranks, fixed ? 80 : 16 * ranks, overlap);
			begin(&j, true);
			double equal = step_now(&j) / j.batch;
			for (int i = 0; i < 40; i++)
				step(&j);
			double now = step_now(&j) / j.batch, best = best_step(&j, true) / j.batch;
			print_message("%s, overlap %s, %d: %.4f s per image equal, %.4f balanced, %.4f best\n",
			              fixed ? "80 images" : "16 each", overlap ? "on" : "off", ranks, equal, now, best);
			assert_true(best >= 0.9 * now);
			assert_true(now <= balanced_before * 1.001);
			assert_true(now <= equal * 1.001);
			if (!overlap && !fixed && ranks == 2)
				assert_true(equal > equal_before);
			if (ranks >= 4)
				assert_true(equal > equal_before);
			equal_before = equal;
			balanced_before = now;
			end(&j);
		}
	}
}

/* Who may not remove says what it would bring. */
static void test_removal_is_proposed(void **state)
{
	(void)state;
	mu_balance_row rows[5] = {0};
	job j = tesla(5, 80, false);
	begin(&j, false);
	for (int i = 0; i < 3; i++)
		step(&j);
	for (int r = 0; r < 5; r++)
		rows[r] = (mu_balance_row){4, 16, 1, 16 * j.b[r], 4.6};
	const mu_balance_decision *d = mu_balance_decide(j.balance, rows);
	assert_true(d->changed && !d->removed);
	assert_non_null(strstr(d->reason, "; without ranks 3, 4 a step of 0.8731 s is expected instead of "));
	assert_non_null(strstr(d->reason, "since the reduction takes 0.487 s instead of 4.62"));
	end(&j);
}

static void test_first_words(void **state)
{
	(void)state;
	mu_balance_row rows[2] = {{4, 8, 1, 0.8, 0}, {4, 8, 1, 0.4, 0.4}};
	job j = {.ranks = 2, .batch = 16};
	for (int r = 0; r < 2; r++)
		j.rank[r] = (mu_balance_rank){.capacity = 16, .micro = 16};
	begin(&j, false);
	const mu_balance_decision *d = mu_balance_decide(j.balance, rows);
	assert_true(d->changed);
	assert_int_equal(d->shares[0], 5);
	assert_int_equal(d->shares[1], 11);
	assert_string_equal(d->reason,
	                    "shares 8 8 become 5 11: a step of 0.55 s instead of 0.8 is expected (31.2 % less); "
	                    "an image takes rank 1 50 ms and rank 0 100 ms");
	end(&j);
}

/* The same rows, the same bits: ranks agree without talking, and a log replays. */
static void test_replay_is_exact(void **state)
{
	(void)state;
	job j = random_job(5), k = random_job(5);
	begin(&j, true);
	begin(&k, true);
	for (int i = 0; i < 500; i++) {
		step(&j);
		step(&k);
		assert_memory_equal(j.shares, k.shares, sizeof j.shares);
	}
	assert_true(j.changes > 0);
	end(&j);
	end(&k);
}

/* A row from a rank with nothing to tell (share 0, an epoch's short end) changes nothing. */
static void test_empty_rows(void **state)
{
	(void)state;
	mu_balance_row rows[3] = {0};
	job j = {.ranks = 3, .batch = 12};
	for (int r = 0; r < 3; r++)
		j.rank[r] = (mu_balance_rank){.capacity = 12, .micro = 4};
	begin(&j, true);
	for (int i = 0; i < 10; i++) {
		const mu_balance_decision *d = mu_balance_decide(j.balance, rows);
		assert_false(d->changed);
		assert_string_equal(d->reason, "shares stay: rank 0 has not been measured yet");
	}
	end(&j);
}

static void expect(const mu_balance_settings *settings, const char *words)
{
	mural_error err = {0};
	mu_balance *balance = NULL;
	assert_int_equal(mu_balance_create(&balance, settings, &err), MURAL_USAGE);
	assert_null(balance);
	if (!strstr(err.message, words))
		fail_msg("\"%s\" lacks \"%s\"", err.message, words);
}

static void test_bad_input(void **state)
{
	(void)state;
	mu_balance_rank rank[3] = {
	        {.capacity = 4, .micro = 4}, {.capacity = 4, .micro = 4}, {.capacity = 4, .micro = 4}};
	const int few[3] = {4, 4, 3}, much[3] = {5, 4, 3}, below[3] = {-1, 4, 4};
	mu_balance_settings s = {.ranks = 3, .global_batch = 13, .rank = rank};
	expect(&s, "room for 12 images in all, and the global batch has 13: 1 do not fit");
	s.global_batch = 2;
	expect(&s, "a global batch of 2 images is too small for 3 ranks");
	s.global_batch = 12;
	s.shares = few;
	expect(&s, "the shares of 3 ranks sum to 11, and the global batch has 12 images: 1 too few");
	s.shares = much;
	expect(&s, "rank 0 is to take 5 images per step and has room for 4");
	s.shares = below;
	expect(&s, "rank 0 cannot take -1 images");
	s.shares = NULL;
	rank[1].capacity = 0;
	expect(&s, "rank 1 of 3 has no room for even one image");
}

/* A window keeps medians, the newest steps, and one share only. */
static void test_window(void **state)
{
	(void)state;
	mu_balance_window w = {0};
	for (int i = 0; i < 5; i++)
		mu_balance_step(&w, 8, 1, i == 2 ? 100 : 1 + i * 0.1, 0.5);
	mu_balance_row row = mu_balance_close(&w);
	assert_true(row.steps == 5 && row.images == 8 && row.micro_batches == 1);
	assert_true(fabs(row.seconds - 1.3) < 1e-12 && row.waited == 0.5);
	row = mu_balance_close(&w);
	assert_true(row.steps == 0 && row.seconds == 0);
	for (int i = 0; i < 1000; i++)
		mu_balance_step(&w, 8, 1, i, 0);
	row = mu_balance_close(&w);
	assert_true(row.steps == 1000 && row.seconds > 900);
	mu_balance_step(&w, 8, 1, 1, 0);
	mu_balance_step(&w, 9, 1, 2, 0);
	row = mu_balance_close(&w);
	assert_true(row.steps == 1 && row.images == 9 && row.seconds == 2);
}

/* Capacities too small for equal shares: who has room takes more, from the first step on. */
static void test_first_shares_fit(void **state)
{
	(void)state;
	job j = {.ranks = 3, .batch = 30};
	const int room[3] = {4, 20, 12};
	for (int r = 0; r < 3; r++)
		j.rank[r] = (mu_balance_rank){.capacity = room[r], .micro = 4};
	begin(&j, false);
	assert_int_equal(j.shares[0], 4);
	assert_int_equal(j.shares[1], 16);
	assert_int_equal(j.shares[2], 10);
	end(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_thirty_steps_reach_the_best_split),
	        cmocka_unit_test(test_ten_thousand_noisy_steps),
	        cmocka_unit_test(test_homogeneous_job_is_left_alone),
	        cmocka_unit_test(test_drift_is_followed),
	        cmocka_unit_test(test_the_studys_cluster),
	        cmocka_unit_test(test_removal_is_proposed),
	        cmocka_unit_test(test_first_words),
	        cmocka_unit_test(test_replay_is_exact),
	        cmocka_unit_test(test_empty_rows),
	        cmocka_unit_test(test_bad_input),
	        cmocka_unit_test(test_window),
	        cmocka_unit_test(test_first_shares_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
