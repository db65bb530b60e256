/* The loader: the same batches for any number of threads, the planned memory, no hang. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/philox.h"
#include "data/augment.h"
#include "data/loader.h"
#include "data/resize.h"
#include "support/data_files.h"

enum { SIDE = 8, PIXELS = SIDE * SIDE };

/* A host device that remembers what it was asked for. */
static size_t asked_bytes, given_bytes;
static bool refuse_memory;

static mural_status counted_allocate(mu_device_handle *device, mu_memory kind, size_t bytes, void **memory,
                                     mural_error *err)
{
	assert_int_equal(kind, MU_MEMORY_PINNED);
	asked_bytes += bytes;
	if (refuse_memory)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "none left");
	return mu_device_host.allocate(device, kind, bytes, memory, err);
}

static void counted_release(mu_device_handle *device, mu_memory kind, void *memory, size_t bytes)
{
	given_bytes += memory ? bytes : 0;
	mu_device_host.release(device, kind, memory, bytes);
}

typedef struct fixture {
	mural_data_config config;
	mural_data *data;
	mu_device_table table;
	mu_device device;
	mu_loader_settings settings;
} fixture;

static fixture *fixture_create(uint64_t images, uint64_t micro, uint64_t accumulation)
{
	fixture *f = calloc(1, sizeof *f);
	f->config = test_data_config("synthetic");
	f->config.synthetic_images = images;
	f->config.crop_padding = 2;
	f->config.flip = 0.5;
	assert_int_equal(mural_data_open(&f->data, &f->config, MURAL_SPLIT_TRAIN, 5, 1, SIDE, SIDE, 10, NULL),
	                 MURAL_OK);
	f->table = mu_device_host;
	f->table.allocate = counted_allocate;
	f->table.release = counted_release;
	assert_int_equal(mu_device_open(&f->device, &f->table, 0, NULL), MURAL_OK);
	asked_bytes = given_bytes = 0;
	f->settings = (mu_loader_settings){
	        .data = f->data,
	        .config = &f->config,
	        .sampler = {.images = images,
	                    .train_batch = micro * accumulation,
	                    .micro_batch = micro,
	                    .accumulation = accumulation,
	                    .ranks = 1},
	        .seed = 5,
	        .augment = true,
	        .epochs = 2,
	        .device = &f->device,
	        .channels = 1,
	        .height = SIDE,
	        .width = SIDE,
	};
	return f;
}

static void fixture_free(fixture *f)
{
	assert_int_equal(asked_bytes, given_bytes);
	mu_device_close(&f->device);
	mural_data_free(f->data);
	free(f);
}

static mu_loader *start(fixture *f, unsigned threads)
{
	mu_loader *loader;
	f->config.loader_threads = threads;
	assert_int_equal(mu_loader_create(&loader, &f->settings, NULL), MURAL_OK);
	return loader;
}

static mu_batch *next(mu_loader *loader)
{
	mu_batch *batch;
	double waited = -1;
	assert_int_equal(mu_loader_next(loader, &batch, &waited, NULL), MURAL_OK);
	assert_true(waited >= 0);
	return batch;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
	return hash;
}

/* Of everything in every batch, in order. */
static uint64_t hash_run(fixture *f, unsigned threads)
{
	mu_loader *loader = start(f, threads);
	uint64_t hash = 14695981039346656037u;
	size_t image_bytes = f->settings.channels * f->settings.height * f->settings.width;
	for (mu_batch *b; (b = next(loader)); mu_loader_give_back(loader, b)) {
		uint64_t numbers[] = {b->epoch, b->step, b->micro, b->first, b->planned, b->capacity, b->count};
		hash = hash_bytes(hash, numbers, sizeof numbers);
		hash = hash_bytes(hash, b->pixels, b->capacity * image_bytes);
		hash = hash_bytes(hash, b->cut_B, b->capacity * sizeof *b->cut_B);
		hash = hash_bytes(hash, b->stream_B, b->capacity * sizeof *b->stream_B);
		hash = hash_bytes(hash, b->labels, b->capacity * sizeof *b->labels);
		hash = hash_bytes(hash, b->index_B, b->capacity * sizeof *b->index_B);
	}
	mu_loader_free(loader);
	return hash;
}

static void threads_change_nothing(void **state)
{
	(void)state;
	static const struct {
		size_t height;
		mural_resize resize;
		unsigned side;
	} cases[] = {{SIDE, MURAL_RESIZE_BILINEAR, 0}, {5, MURAL_RESIZE_NONE, 0},         {12, MURAL_RESIZE_NONE, 0},
	             {21, MURAL_RESIZE_BILINEAR, 0},   {SIDE, MURAL_RESIZE_BILINEAR, 30}, {5, MURAL_RESIZE_SQUASH, 0}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		fixture *f = fixture_create(101, 6, 3);
		f->settings.height = cases[i].height;
		f->settings.channels = i ? 3 : 1;
		f->config.resize = cases[i].resize;
		f->config.resize_side = cases[i].side;
		uint64_t inline_hash = hash_run(f, 0);
		for (unsigned prefetch = 1; prefetch <= 5; prefetch += 2) {
			f->config.prefetch = prefetch;
			assert_int_equal(hash_run(f, 0), inline_hash);
			assert_int_equal(hash_run(f, 1), inline_hash);
			assert_int_equal(hash_run(f, 3), inline_hash);
		}
		fixture_free(f);
	}
}

/* Batches hold what mu_resize makes of the set's images, and the plan is what is allocated. */
static void resizes_to_the_model(void **state)
{
	(void)state;
	enum { TALL = 20, WIDE = 13, REPEATED = 3 };
	fixture *f = fixture_create(7, 7, 1);
	f->settings.height = TALL;
	f->settings.width = WIDE;
	f->settings.channels = REPEATED;
	f->config.shuffle = false;
	mu_arena arena;
	mu_image_shape from = {1, SIDE, SIDE}, to = {REPEATED, TALL, WIDE};
	mu_arena_measure(&arena, "test");
	mu_resize_take(&arena, from, to, (mu_resize_wish){.how = MURAL_RESIZE_BILINEAR});
	size_t bytes = arena.high;
	void *block = aligned_alloc(MU_ARENA_ALIGN, bytes);
	mu_arena_reserve(&arena, "test", block, bytes);
	mu_resize resize = mu_resize_take(&arena, from, to, (mu_resize_wish){.how = MURAL_RESIZE_BILINEAR});
	mu_resize_prepare(&resize);
	uint8_t *scratch = malloc(mu_resize_scratch_bytes(&resize));

	mu_loader *loader = start(f, 2);
	assert_int_equal(asked_bytes, mu_loader_bytes(&f->settings));
	mu_batch *batch = next(loader);
	assert_int_equal(batch->count, 7);
	for (size_t b = 0; b < 7; b++) {
		uint8_t source[SIDE * SIDE], expected[REPEATED * TALL * WIDE];
		int32_t label;
		assert_int_equal(mu_data_read(f->data, b, source, &label, NULL), MURAL_OK);
		mu_resize_run(&resize, source, expected, scratch);
		assert_memory_equal(batch->pixels + b * sizeof expected, expected, sizeof expected);
	}
	mu_loader_give_back(loader, batch);
	mu_loader_free(loader);
	free(scratch);
	free(block);
	fixture_free(f);
}

static void refuses_wrong_resizing(void **state)
{
	(void)state;
	fixture *f = fixture_create(7, 7, 1);
	mu_loader *loader;
	mural_error err = {0};
	f->config.resize_side = SIDE - 1;
	assert_int_equal(mu_loader_create(&loader, &f->settings, &err), MURAL_USAGE);
	assert_string_equal(err.where, "data.resize_side");
	f->config.resize_side = 40000;
	assert_int_equal(mu_loader_create(&loader, &f->settings, NULL), MURAL_USAGE);
	f->config.resize_side = SIDE;
	f->config.resize = MURAL_RESIZE_SQUASH;
	assert_int_equal(mu_loader_create(&loader, &f->settings, NULL), MURAL_USAGE);
	fixture_free(f);
}

/* Each field of each batch against its definition. */
static void contents(void **state)
{
	(void)state;
	fixture *f = fixture_create(50, 8, 2);
	mu_loader *loader = start(f, 2);
	uint32_t order[50];
	uint8_t pixels[PIXELS], zeros[PIXELS] = {0};
	for (uint32_t epoch = 0; epoch < 2; epoch++) {
		mu_sampler_order(50, 5, epoch, true, order);
		for (uint64_t step = 0, position = 0; step < 4; step++)
			for (uint64_t micro = 0; micro < 2; micro++) {
				mu_batch *b = next(loader);
				assert_non_null(b);
				assert_int_equal(b->epoch, epoch);
				assert_int_equal(b->step, step);
				assert_int_equal(b->micro, micro);
				assert_int_equal(b->capacity, 8);
				assert_int_equal(b->planned, step < 3 ? 16 : 2);
				assert_int_equal(b->count, step < 3 ? 8 : micro ? 0 : 2);
				assert_int_equal(b->first, position);
				for (size_t i = 0; i < b->count; i++, position++) {
					int32_t label;
					mu_image_cut cut =
					        mu_augment_cut(&f->config, 5, mu_stream(epoch, (uint32_t)position));
					assert_int_equal(b->index_B[i], order[position]);
					assert_int_equal(b->stream_B[i], (uint64_t)epoch << 32 | position);
					assert_int_equal(mu_data_read(f->data, order[position], pixels, &label, NULL),
					                 MURAL_OK);
					assert_int_equal(b->labels[i], label);
					assert_memory_equal(b->pixels + i * PIXELS, pixels, PIXELS);
					assert_memory_equal(&b->cut_B[i], &cut, sizeof cut);
				}
				for (size_t i = b->count; i < 8; i++) {
					assert_memory_equal(b->pixels + i * PIXELS, zeros, PIXELS);
					assert_memory_equal(&b->cut_B[i], zeros, sizeof(mu_image_cut));
					assert_int_equal(b->labels[i], 0);
					assert_int_equal(b->stream_B[i], 0);
				}
				mu_loader_give_back(loader, b);
			}
	}
	assert_null(next(loader));
	assert_null(next(loader));
	mu_loader_free(loader);
	fixture_free(f);
}

/* What ranks see together, by position, is what one rank sees. */
static void ranks_share_the_same_images(void **state)
{
	(void)state;
	uint32_t alone[64] = {0}, together[64];
	for (int ranks = 1; ranks <= 5; ranks++) {
		fixture *f = fixture_create(50, 24, 1);
		f->settings.sampler.ranks = ranks;
		f->settings.epochs = 1;
		memset(together, 0xff, sizeof together);
		for (int rank = 0; rank < ranks; rank++) {
			f->settings.sampler.rank = rank;
			mu_loader *loader = start(f, 1);
			for (mu_batch *b; (b = next(loader)); mu_loader_give_back(loader, b)) {
				assert_int_equal(b->planned, b->step < 2 ? 24 : 2);
				for (size_t i = 0; i < b->count; i++)
					together[(uint32_t)b->stream_B[i]] = b->index_B[i];
			}
			mu_loader_free(loader);
		}
		if (ranks == 1)
			memcpy(alone, together, sizeof alone);
		assert_memory_equal(alone, together, sizeof alone);
		fixture_free(f);
	}
}

/* Shares change twice while two ranks' loaders run ahead: every position of every epoch is read once, by the rank whose share it
 * is, and nothing is read before its shares are settled. */
static void shares_change_while_reading(void **state)
{
	(void)state;
	enum { RANKS = 2, BATCH = 6, IMAGES = 32, STEPS = 6, EPOCHS = 3, LEAD = 2, AT_FIRST = 3 };
	static const int shares[][RANKS] = {{3, 3}, {6, 0}, {1, 5}};
	static const uint64_t from[] = {0, AT_FIRST + LEAD, 9 + LEAD}; /* of the run; decided LEAD steps before */
	for (unsigned threads = 0; threads <= 3; threads++) {
		uint8_t seen[EPOCHS][IMAGES] = {{0}};
		fixture *f = fixture_create(IMAGES, 2, 3);
		f->settings.epochs = EPOCHS;
		f->settings.sampler.ranks = RANKS;
		f->settings.sampler.share_R = shares[0];
		f->settings.settled = AT_FIRST + LEAD;
		for (int rank = 0; rank < RANKS; rank++) {
			f->settings.sampler.rank = rank;
			mu_loader *loader = start(f, threads);
			mu_sampler s = f->settings.sampler;
			for (uint64_t step = 0; step < (uint64_t)STEPS * EPOCHS; step++) {
				int now = step < from[1] ? 0 : step < from[2] ? 1 : 2;
				if (step == AT_FIRST)
					assert_int_equal(mu_loader_share(loader, from[1], shares[1], from[2], NULL),
					                 MURAL_OK);
				if (step == 9)
					assert_int_equal(mu_loader_share(loader, from[2], shares[2], UINT64_MAX, NULL),
					                 MURAL_OK);
				s.share_R = shares[now];
				uint64_t micros = mu_sampler_micros(&s, step % STEPS);
				for (uint64_t micro = 0; micro < micros; micro++) {
					mu_batch *b = next(loader);
					mu_positions expected = mu_sampler_micro(&s, step % STEPS, micro);
					assert_non_null(b);
					assert_int_equal(b->epoch * STEPS + b->step, step);
					assert_int_equal(b->micro, micro);
					assert_int_equal(b->micros, micros);
					assert_int_equal(b->first, expected.first);
					assert_int_equal(b->count, expected.count);
					for (size_t i = 0; i < b->count; i++)
						seen[b->epoch][(uint32_t)b->stream_B[i]]++;
					mu_loader_give_back(loader, b);
				}
			}
			assert_null(next(loader));
			mu_loader_free(loader);
		}
		for (size_t i = 0; i < (size_t)EPOCHS * IMAGES; i++)
			assert_int_equal(seen[i / IMAGES][i % IMAGES], 1);
		fixture_free(f);
	}
}

static void refuses_shares_too_late(void **state)
{
	(void)state;
	static const int before[] = {6}, after[] = {6};
	fixture *f = fixture_create(32, 2, 3);
	f->settings.sampler.share_R = before;
	f->settings.settled = 2;
	mu_loader *loader = start(f, 1);
	mu_batch *b;
	double waited;
	assert_int_equal(mu_loader_share(loader, 1, after, 9, NULL), MURAL_BUG); /* may have been read */
	assert_int_equal(mu_loader_share(loader, 10, after, 9, NULL), MURAL_BUG); /* would be read with the old ones */
	assert_int_equal(mu_loader_share(loader, 0, NULL, 1, NULL), MURAL_BUG); /* unsettles */
	for (int i = 0; i < 6; i++)
		mu_loader_give_back(loader, next(loader));
	assert_int_equal(mu_loader_next(loader, &b, &waited, NULL), MURAL_BUG); /* nobody will ever settle it */
	assert_int_equal(mu_loader_share(loader, 2, after, 9, NULL), MURAL_OK);
	assert_int_equal(next(loader)->step, 2);
	mu_loader_free(loader);
	fixture_free(f);
}

static void evaluation_changes_no_image(void **state)
{
	(void)state;
	fixture *f = fixture_create(20, 8, 1);
	f->settings.augment = false;
	f->config.shuffle = false;
	f->settings.epochs = 1;
	mu_loader *loader = start(f, 1);
	uint32_t seen = 0;
	for (mu_batch *b; (b = next(loader)); mu_loader_give_back(loader, b))
		for (size_t i = 0; i < b->count; i++) {
			mu_image_cut none = {0};
			assert_memory_equal(&b->cut_B[i], &none, sizeof none);
			assert_int_equal(b->index_B[i], seen++);
		}
	assert_int_equal(seen, 20);
	mu_loader_free(loader);
	fixture_free(f);
}

/* Starting at (epoch, step) gives what a run from the start gives from there. */
static void resumes_anywhere(void **state)
{
	(void)state;
	fixture *f = fixture_create(50, 4, 2);
	f->settings.epochs = 3;
	mu_loader *whole = start(f, 1);
	f->settings.first_epoch = 1;
	f->settings.first_step = 3;
	mu_loader *late = start(f, 2);
	unsigned compared = 0;
	for (mu_batch *a; (a = next(whole)); mu_loader_give_back(whole, a)) {
		if (a->epoch < 1 || (a->epoch == 1 && a->step < 3))
			continue;
		mu_batch *b = next(late);
		assert_non_null(b);
		assert_int_equal(a->epoch, b->epoch);
		assert_int_equal(a->step, b->step);
		assert_memory_equal(a->index_B, b->index_B, a->capacity * sizeof *a->index_B);
		assert_memory_equal(a->pixels, b->pixels, a->capacity * PIXELS);
		mu_loader_give_back(late, b);
		compared++;
	}
	assert_null(next(late));
	assert_int_equal(compared, (7 - 3 + 7) * 2);
	mu_loader_free(whole);
	mu_loader_free(late);
	f->settings.first_step = 7; /* the end of an epoch is the start of the next */
	late = start(f, 1);
	mu_batch *b = next(late);
	assert_int_equal(b->epoch, 2);
	assert_int_equal(b->step, 0);
	mu_loader_free(late);
	f->settings.first_epoch = 3;
	f->settings.first_step = 0;
	late = start(f, 1);
	assert_null(next(late));
	mu_loader_free(late);
	fixture_free(f);
}

static void plan_is_exact(void **state)
{
	(void)state;
	for (unsigned threads = 0; threads <= 3; threads++) {
		fixture *f = fixture_create(33, 5, 2);
		f->config.loader_threads = threads;
		f->settings.width = threads == 2 ? 10 : SIDE;
		size_t planned = mu_loader_bytes(&f->settings);
		mu_loader *loader = start(f, threads);
		assert_int_equal(asked_bytes, planned);
		assert_true(planned >= 4 * 5 * SIDE * f->settings.width);
		mu_batch *b = next(loader);
		assert_int_equal((uintptr_t)b->pixels % 64, 0);
		mu_loader_free(loader);
		fixture_free(f);
	}
}

/* Freed at once, with everything taken, half-way, after the end. */
static void free_at_any_moment(void **state)
{
	(void)state;
	for (unsigned taken = 0; taken < 24; taken++)
		for (unsigned threads = 0; threads <= 3; threads++) {
			fixture *f = fixture_create(60, 6, 1);
			mu_loader *loader = start(f, threads);
			for (unsigned i = 0; i < taken; i++) {
				mu_batch *b = next(loader);
				if (!b)
					break;
				if (taken > 3 || i % 2)
					mu_loader_give_back(loader, b);
			}
			mu_loader_free(loader);
			fixture_free(f);
		}
	mu_loader_free(NULL);
}

static void all_batches_held(void **state)
{
	(void)state;
	for (unsigned threads = 0; threads <= 2; threads++) {
		fixture *f = fixture_create(60, 6, 1);
		mu_loader *loader = start(f, threads);
		mu_batch *held[4], *none;
		double waited;
		for (int i = 0; i < 4; i++)
			assert_int_equal((held[i] = next(loader))->step, i);
		assert_int_equal(mu_loader_next(loader, &none, &waited, NULL), MURAL_BUG);
		for (int i = 3; i >= 0; i--) /* any order */
			mu_loader_give_back(loader, held[i]);
		for (int i = 4; i < 20; i++) {
			mu_batch *b = next(loader);
			assert_int_equal(b->step, i % 10);
			mu_loader_give_back(loader, b);
		}
		assert_null(next(loader));
		mu_loader_free(loader);
		fixture_free(f);
	}
}

/* A format whose images from the 18th on cannot be read; with `later_first`, that one fails only after another did. */
static atomic_uint failed_reads;
static bool later_first;

static mural_status broken_read(const mural_data *data, uint64_t index, uint8_t *pixels, int32_t *label,
                                mural_error *err)
{
	while (index == 18 && later_first && atomic_load(&failed_reads) == 0)
		mu_sleep(1e-4);
	if (index >= 18) {
		atomic_fetch_add(&failed_reads, 1);
		return mu_fail(err, MURAL_DATA, "made-up.bin:7", "image %d is damaged", (int)index);
	}
	memset(pixels, 1, data->facts.height * data->facts.width);
	*label = 1;
	return MURAL_OK;
}

static void failures_come_in_turn(void **state)
{
	(void)state;
	for (unsigned threads = 0; threads <= 3; threads++) {
		fixture *f = fixture_create(60, 4, 1);
		failed_reads = 0;
		later_first = threads > 1;
		const mu_format *good = f->data->format;
		mu_format broken = *good;
		broken.read = broken_read;
		f->data->format = &broken;
		f->config.shuffle = false;
		mu_loader *loader = start(f, threads);
		for (int i = 0; i < 4; i++)
			mu_loader_give_back(loader, next(loader));
		for (int again = 0; again < 3; again++) {
			mu_batch *batch;
			double waited;
			mural_error err = {0};
			assert_int_equal(mu_loader_next(loader, &batch, &waited, &err), MURAL_DATA);
			assert_null(batch);
			assert_string_equal(err.message, "image 18 is damaged");
			assert_string_equal(err.where, "made-up.bin:7");
			assert_string_equal(err.context, "while loading image 18 of synthetic for epoch 0, step 4\n");
		}
		mu_loader_free(loader);
		assert_in_range(failed_reads, 1, threads ? threads : 1); /* nobody starts another batch */
		f->data->format = good;
		fixture_free(f);
	}
}

static void more_ranks_than_images(void **state)
{
	(void)state;
	fixture *f = fixture_create(2, 3, 1);
	f->settings.sampler.ranks = 3;
	f->settings.sampler.rank = 2;
	f->settings.sampler.train_batch = 9;
	mu_loader *loader = start(f, 1);
	for (uint32_t epoch = 0; epoch < 2; epoch++) {
		mu_batch *b = next(loader);
		assert_int_equal(b->epoch, epoch);
		assert_int_equal(b->count, 0);
		assert_int_equal(b->planned, 2);
		mu_loader_give_back(loader, b);
	}
	assert_null(next(loader));
	mu_loader_free(loader);
	fixture_free(f);
}

static void refuses(void **state)
{
	(void)state;
	fixture *f = fixture_create(20, 4, 1);
	mu_loader *loader;
	mural_error err = {0};
	f->config.prefetch = 0;
	assert_int_equal(mu_loader_create(&loader, &f->settings, &err), MURAL_USAGE);
	assert_string_equal(err.where, "data.prefetch");
	f->config.prefetch = 2;
	f->config.loader_threads = 1000;
	assert_int_equal(mu_loader_create(&loader, &f->settings, NULL), MURAL_USAGE);
	f->config.loader_threads = 1;
	f->config.flip = 2;
	assert_int_equal(mu_loader_create(&loader, &f->settings, NULL), MURAL_USAGE);
	f->config.flip = 0;
	f->settings.sampler.drop_last = true;
	f->settings.sampler.train_batch = 21;
	f->settings.sampler.micro_batch = 21;
	assert_int_equal(mu_loader_create(&loader, &f->settings, NULL), MURAL_USAGE);
	f->settings.sampler.micro_batch = UINT64_MAX / 4;
	f->settings.sampler.drop_last = false;
	assert_int_equal(mu_loader_create(&loader, &f->settings, NULL), MURAL_OUT_OF_MEMORY);
	f->settings.sampler.micro_batch = 21;
	f->data->facts.channels = 2;
	err = (mural_error){0};
	assert_int_equal(mu_loader_create(&loader, &f->settings, &err), MURAL_DATA);
	assert_string_equal(err.message, "the model takes images of 1 channels, the data set has 2");
	f->data->facts.channels = 1;
	refuse_memory = true;
	assert_int_equal(mu_loader_create(&loader, &f->settings, NULL), MURAL_OUT_OF_MEMORY);
	refuse_memory = false;
	assert_null(loader);
	asked_bytes = given_bytes;
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(threads_change_nothing),
	        cmocka_unit_test(resizes_to_the_model),
	        cmocka_unit_test(refuses_wrong_resizing),
	        cmocka_unit_test(contents),
	        cmocka_unit_test(ranks_share_the_same_images),
	        cmocka_unit_test(shares_change_while_reading),
	        cmocka_unit_test(refuses_shares_too_late),
	        cmocka_unit_test(evaluation_changes_no_image),
	        cmocka_unit_test(resumes_anywhere),
	        cmocka_unit_test(plan_is_exact),
	        cmocka_unit_test(free_at_any_moment),
	        cmocka_unit_test(all_batches_held),
	        cmocka_unit_test(failures_come_in_turn),
	        cmocka_unit_test(more_ranks_than_images),
	        cmocka_unit_test(refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
