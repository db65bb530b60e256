/* Every image once, whoever looks. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "data/sampler.h"

/* A sampler whose shares fit: the batch triangle. */
static mu_sampler make(uint64_t images, int ranks, uint64_t micro, uint64_t accumulation, bool drop_last)
{
	return (mu_sampler){.images = images,
	                    .train_batch = micro * accumulation * (uint64_t)ranks,
	                    .micro_batch = micro,
	                    .accumulation = accumulation,
	                    .ranks = ranks,
	                    .drop_last = drop_last};
}

/* Walks all micro-batches of all ranks in order; positions must come one after another, shares must be even. */
static void walk(mu_sampler s)
{
	assert_int_equal(mu_sampler_check(&s, NULL), MURAL_OK);
	uint64_t next = 0, steps = mu_sampler_steps(&s);
	for (uint64_t step = 0; step < steps; step++) {
		mu_positions planned = mu_sampler_planned(&s, step);
		assert_int_equal(planned.first, step * s.train_batch);
		assert_true(planned.count >= 1 && planned.count <= s.train_batch);
		uint64_t least = UINT64_MAX, most = 0;
		for (s.rank = 0; s.rank < s.ranks; s.rank++) {
			mu_positions share = mu_sampler_share(&s, step);
			assert_int_equal(share.first, next);
			least = share.count < least ? share.count : least;
			most = share.count > most ? share.count : most;
			for (uint64_t micro = 0; micro < s.accumulation; micro++) {
				mu_positions part = mu_sampler_micro(&s, step, micro);
				assert_int_equal(part.first, next);
				assert_true(part.count <= s.micro_batch);
				next += part.count;
			}
			assert_int_equal(share.first + share.count, next);
		}
		assert_true(most - least <= 1);
		assert_int_equal(planned.first + planned.count, next);
	}
	uint64_t left_out = s.drop_last ? s.images % s.train_batch : 0;
	assert_int_equal(next, s.images - left_out);
}

static void every_image_once(void **state)
{
	(void)state;
	static const uint64_t images[] = {1, 2, 7, 60, 97, 256, 1000}, micros[] = {1, 3, 8},
	                      accumulations[] = {1, 2, 5};
	for (int ranks = 1; ranks <= 7; ranks++)
		for (size_t i = 0; i < sizeof images / sizeof *images; i++)
			for (size_t m = 0; m < 3; m++)
				for (size_t a = 0; a < 3; a++)
					for (int drop = 0; drop < 2; drop++) {
						mu_sampler s =
						        make(images[i], ranks, micros[m], accumulations[a], drop);
						if (s.images >= s.train_batch || !drop)
							walk(s);
					}
}

/* A batch that ranks do not divide: shares differ by one, the first ranks have more. */
static void uneven_shares(void **state)
{
	(void)state;
	mu_sampler s = {.images = 23, .train_batch = 10, .micro_batch = 2, .accumulation = 2, .ranks = 3};
	walk(s);
	static const uint64_t full[] = {4, 3, 3}, last[] = {1, 1, 1};
	for (s.rank = 0; s.rank < 3; s.rank++) {
		assert_int_equal(mu_sampler_share(&s, 0).count, full[s.rank]);
		assert_int_equal(mu_sampler_share(&s, 2).count, last[s.rank]);
	}
}

static void more_ranks_than_images(void **state)
{
	(void)state;
	mu_sampler s = make(3, 5, 2, 2, false);
	walk(s);
	static const uint64_t counts[] = {1, 1, 1, 0, 0};
	for (s.rank = 0; s.rank < 5; s.rank++)
		assert_int_equal(mu_sampler_share(&s, 0).count, counts[s.rank]);
}

/* The positions of a step are the same for any number of ranks with one global batch. */
static void same_union(void **state)
{
	(void)state;
	for (int ranks = 1; ranks <= 7; ranks++) {
		mu_sampler s = {
		        .images = 1000, .train_batch = 84, .micro_batch = 84, .accumulation = 1, .ranks = ranks};
		walk(s);
		assert_int_equal(mu_sampler_steps(&s), 12);
		assert_int_equal(mu_sampler_planned(&s, 5).first, 420);
		assert_int_equal(mu_sampler_planned(&s, 5).count, 84);
		assert_int_equal(mu_sampler_planned(&s, 11).count, 1000 - 11 * 84);
	}
}

/* Walks all ranks and micro-batches with given shares: positions one after another, none above its share or its capacity. */
static void walk_given(const int *share_R, int ranks, uint64_t batch, uint64_t images, uint64_t micro_batch)
{
	mu_sampler s = {
	        .images = images, .train_batch = batch, .micro_batch = micro_batch, .ranks = ranks, .share_R = share_R};
	s.accumulation = 1;
	assert_int_equal(mu_sampler_check(&s, NULL), MURAL_OK);
	uint64_t next = 0;
	for (uint64_t step = 0; step < mu_sampler_steps(&s); step++) {
		mu_positions planned = mu_sampler_planned(&s, step);
		assert_int_equal(planned.first, next);
		for (s.rank = 0; s.rank < ranks; s.rank++) {
			mu_positions share = mu_sampler_share(&s, step);
			assert_int_equal(share.first, next);
			assert_true(share.count <= (uint64_t)share_R[s.rank]);
			if (planned.count == batch)
				assert_int_equal(share.count, share_R[s.rank]);
			uint64_t micros = mu_sampler_micros(&s, step), least = UINT64_MAX, most = 0;
			assert_int_equal(micros, share.count ? (share.count + micro_batch - 1) / micro_batch : 1);
			for (uint64_t micro = 0; micro < micros; micro++) {
				mu_positions part = mu_sampler_micro(&s, step, micro);
				assert_int_equal(part.first, next);
				next += part.count;
				least = part.count < least ? part.count : least;
				most = part.count > most ? part.count : most;
			}
			assert_true(most <= micro_batch && most - least <= 1);
			assert_int_equal(share.first + share.count, next);
		}
		assert_int_equal(planned.first + planned.count, next);
	}
	assert_int_equal(next, images);
}

static void given_shares(void **state)
{
	(void)state;
	static const struct {
		int share_R[5], ranks;
		uint64_t batch;
	} cases[] = {{{5, 1}, 2, 6},
	             {{0, 6}, 2, 6},
	             {{6, 0}, 2, 6},
	             {{3, 2, 1}, 3, 6},
	             {{24, 24, 24, 8, 0}, 5, 80},
	             {{7}, 1, 7},
	             {{0, 0, 1}, 3, 1},
	             {{1, 1000, 1, 1, 1}, 5, 1004}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (uint64_t images = 1; images < 3 * cases[i].batch; images += 1 + cases[i].batch / 7)
			for (uint64_t micro = 1; micro < 9; micro += 3)
				walk_given(cases[i].share_R, cases[i].ranks, cases[i].batch, images, micro);
}

/* A short last batch is scaled down: 4 of 6 positions, at floor(sum * 4 / 6). */
static void short_given_shares(void **state)
{
	(void)state;
	static const int share_R[] = {3, 2, 1}, expected[] = {2, 1, 1};
	mu_sampler s = {
	        .images = 10, .train_batch = 6, .micro_batch = 2, .accumulation = 1, .ranks = 3, .share_R = share_R};
	for (s.rank = 0; s.rank < 3; s.rank++)
		assert_int_equal(mu_sampler_share(&s, 1).count, expected[s.rank]);
}

static void refuses_wrong_shares(void **state)
{
	(void)state;
	mural_error err = {0};
	static const int wrong[] = {3, 2, 2}, negative[] = {7, -1, 0};
	mu_sampler s = {
	        .images = 10, .train_batch = 6, .micro_batch = 2, .accumulation = 1, .ranks = 3, .share_R = wrong};
	assert_int_equal(mu_sampler_check(&s, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "the shares of 3 ranks sum to 7 images, and the batch has 6"));
	s.share_R = negative;
	assert_int_equal(mu_sampler_check(&s, NULL), MURAL_BUG);
}

static void refuses(void **state)
{
	(void)state;
	mural_error err = {0};
	mu_sampler s = make(0, 1, 4, 1, false);
	assert_int_equal(mu_sampler_check(&s, &err), MURAL_DATA);
	s = make(10, 2, 8, 1, true);
	err = (mural_error){0};
	assert_int_equal(mu_sampler_check(&s, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "10 images are fewer than one batch of 16"));
	s = (mu_sampler){.images = 100, .train_batch = 10, .micro_batch = 2, .accumulation = 2, .ranks = 2};
	err = (mural_error){0};
	assert_int_equal(mu_sampler_check(&s, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "share of 5 images does not fit 2 micro-batches of 2"));
	s.rank = 2;
	err = (mural_error){0};
	assert_int_equal(mu_sampler_check(&s, &err), MURAL_BUG);
}

static void order_is_a_permutation(void **state)
{
	(void)state;
	static const uint64_t sizes[] = {1, 2, 3, 10, 997, 4096};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint64_t n = sizes[i];
		uint32_t *order = malloc(n * sizeof *order);
		uint8_t *seen = calloc(n, 1);
		mu_sampler_order(n, 5, 3, true, order);
		for (uint64_t p = 0; p < n; p++) {
			assert_true(order[p] < n);
			assert_int_equal(seen[order[p]]++, 0);
		}
		mu_sampler_order(n, 5, 3, false, order);
		for (uint64_t p = 0; p < n; p++)
			assert_int_equal(order[p], p);
		free(order);
		free(seen);
	}
}

static uint64_t moved(const uint32_t *a, const uint32_t *b, uint64_t n)
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < n; i++)
		count += a[i] != b[i];
	return count;
}

static void order_depends_on_seed_and_epoch(void **state)
{
	(void)state;
	uint32_t a[1000], b[1000];
	mu_sampler_order(1000, 1, 0, true, a);
	mu_sampler_order(1000, 1, 0, true, b);
	assert_int_equal(moved(a, b, 1000), 0);
	mu_sampler_order(1000, 1, 1, true, b);
	assert_true(moved(a, b, 1000) > 980);
	mu_sampler_order(1000, 2, 0, true, b);
	assert_true(moved(a, b, 1000) > 980);
}

/* Part of the reproducibility promise: these values never change. Computed by tests/golden/data_draws.py. */
static void golden_order(void **state)
{
	(void)state;
	static const uint32_t expected[] = {314, 465, 468, 418, 324, 55,  474, 510,
	                                    15,  184, 507, 85,  436, 405, 482, 320};
	uint32_t order[600];
	mu_sampler_order(600, 42, 7, true, order);
	assert_memory_equal(order, expected, sizeof expected);
}

/* Each image is as likely in each place: 20000 shuffles of 4, all 24 orders near 20000 / 24 (standard deviation 28). */
static void order_is_uniform(void **state)
{
	(void)state;
	unsigned counts[256] = {0}, kinds = 0;
	for (uint32_t epoch = 0; epoch < 20000; epoch++) {
		uint32_t o[4];
		mu_sampler_order(4, 9, epoch, true, o);
		counts[o[0] | o[1] << 2 | o[2] << 4 | o[3] << 6]++;
	}
	for (int i = 0; i < 256; i++)
		if (counts[i]) {
			kinds++;
			assert_in_range(counts[i], 833 - 150, 833 + 150);
		}
	assert_int_equal(kinds, 24);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_image_once),       cmocka_unit_test(uneven_shares),
	        cmocka_unit_test(more_ranks_than_images), cmocka_unit_test(same_union),
	        cmocka_unit_test(given_shares),           cmocka_unit_test(short_given_shares),
	        cmocka_unit_test(refuses_wrong_shares),   cmocka_unit_test(refuses),
	        cmocka_unit_test(order_is_a_permutation), cmocka_unit_test(order_depends_on_seed_and_epoch),
	        cmocka_unit_test(golden_order),           cmocka_unit_test(order_is_uniform),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
