/* Who gets which card. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/devices.h"

#define MOST 4

/* A rank per letter of `hosts`; cards: how many each sees, bus: the first. */
static void seat(mu_seeker *all, const char *hosts, const char *ops, const int *cards)
{
	const int ranks = (int)strlen(hosts);
	for (int r = 0; r < ranks; r++) {
		char word[32];
		all[r] = (mu_seeker){.slot = -1, .cards = {.devices = cards[r], .first_bus = "0000:01:00.0"}};
		snprintf(all[r].host, sizeof all[r].host, "%c", hosts[r]);
		assert_int_equal(mu_devices_word(ops, ranks, r, word, NULL, NULL), MURAL_OK);
		all[r].wish = (int32_t)mu_devices_wish(word, &all[r].number);
	}
}

static void cards_are_given(void **state)
{
	static const struct {
		const char *hosts, *ops;
		int cards[MOST], given[MOST];
	} rows[] = {
	        {"a", "auto", {2}, {0}},
	        {"a", "auto", {0}, {-1}},
	        {"aabb", "auto", {2, 2, 2, 2}, {0, 1, 0, 1}},
	        {"aabb", "auto", {0, 0, 0, 0}, {-1, -1, -1, -1}},
	        {"abab", "cuda", {2, 2, 2, 2}, {0, 0, 1, 1}},
	        {"aaa", "mixed", {2, 2, 2}, {0, 1, -1}},
	        {"aabb", "mixed", {1, 1, 0, 0}, {0, -1, -1, -1}},
	        {"aaa", "cpu,cuda,cuda", {2, 2, 2}, {-1, 0, 1}},
	        {"aaa", "cuda:1,cuda:1,cuda", {2, 2, 2}, {1, 1, 0}},
	        {"aa", "cpu", {2, 2}, {-1, -1}},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		mu_seeker all[MOST];
		int card_R[MOST];
		const int ranks = (int)strlen(rows[i].hosts);
		seat(all, rows[i].hosts, rows[i].ops, rows[i].cards);
		assert_int_equal(mu_devices_choose(all, ranks, card_R, NULL, NULL), MURAL_OK);
		assert_memory_equal(card_R, rows[i].given, (size_t)ranks * sizeof *card_R);
	}
}

static void too_few_cards_are_a_question(void **state)
{
	static const struct {
		const char *hosts, *ops;
		int cards[MOST];
		const char *words;
	} rows[] = {
	        {"aaa", "auto", {2, 2, 2}, "host a has 3 ranks for 2 GPUs: start 2 there"},
	        {"aab", "auto", {2, 2, 0}, "host b has 1 rank for 0 GPUs: start 0 there"},
	        {"aa", "cuda", {1, 1}, "host a has 2 ranks for 1 GPU: start 1 there"},
	        {"aa", "cuda:3", {1, 1}, "rank 0 is to use GPU 3 of host a and sees 1 GPU there"},
	        {"ab", "mixed", {0, 0}, "nothing to mix"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		mu_seeker all[MOST];
		int card_R[MOST];
		mural_error err = {0};
		seat(all, rows[i].hosts, rows[i].ops, rows[i].cards);
		assert_int_equal(mu_devices_choose(all, (int)strlen(rows[i].hosts), card_R, NULL, &err), MURAL_USAGE);
		if (!strstr(err.message, rows[i].words))
			fail_msg("'%s' lacks '%s'", err.message, rows[i].words);
	}
}

/* A batch system shows each rank a card of its own: all are number 0, and nobody shares. */
static void ranks_with_cards_of_their_own_count_from_zero(void **state)
{
	mu_seeker all[2];
	int card_R[2];
	(void)state;
	seat(all, "aa", "auto", (const int[]){1, 1});
	snprintf(all[1].cards.first_bus, sizeof all[1].cards.first_bus, "0000:02:00.0");
	assert_int_equal(mu_devices_choose(all, 2, card_R, NULL, NULL), MURAL_OK);
	assert_int_equal(card_R[0], 0);
	assert_int_equal(card_R[1], 0);
	assert_int_equal(mu_devices_sharing(all, 2, card_R, 1), 1);
}

static void a_slot_is_a_card(void **state)
{
	mu_seeker all[2];
	int card_R[2];
	(void)state;
	seat(all, "aa", "cuda", (const int[]){4, 4});
	all[0].slot = 3;
	all[1].slot = 1;
	assert_int_equal(mu_devices_choose(all, 2, card_R, NULL, NULL), MURAL_OK);
	assert_int_equal(card_R[0], 3);
	assert_int_equal(card_R[1], 1);
}

static void sharing_is_counted(void **state)
{
	mu_seeker all[3];
	int card_R[3];
	(void)state;
	seat(all, "aab", "cuda:0", (const int[]){1, 1, 1});
	assert_int_equal(mu_devices_choose(all, 3, card_R, NULL, NULL), MURAL_OK);
	assert_int_equal(mu_devices_sharing(all, 3, card_R, 0), 2);
	assert_int_equal(mu_devices_sharing(all, 3, card_R, 2), 1);
}

static void words_are_counted(void **state)
{
	char word[32];
	mural_error err = {0};
	(void)state;
	assert_int_equal(mu_devices_word("cuda", 3, 2, word, NULL, NULL), MURAL_OK);
	assert_string_equal(word, "cuda");
	assert_int_equal(mu_devices_word("cuda,cpu", 3, 0, word, NULL, &err), MURAL_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(cards_are_given),
	        cmocka_unit_test(too_few_cards_are_a_question),
	        cmocka_unit_test(ranks_with_cards_of_their_own_count_from_zero),
	        cmocka_unit_test(a_slot_is_a_card),
	        cmocka_unit_test(sharing_is_counted),
	        cmocka_unit_test(words_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
