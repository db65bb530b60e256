/* After the first step Mural's own code allocates nothing: training steps and evaluations are watched call by call.
 *
 * The allocator is interposed. A call counts when its return address lies in this program, into which Mural is linked;
 * oneDNN, OpenMP and the C library allocate as they please. timeout: 120
 * SPDX-License-Identifier: MIT */
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/training.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WATCHES 0 /* the sanitizer has the allocator */
#else
#define WATCHES 1
#endif

static atomic_bool watching;
static atomic_int allocations;

#if WATCHES
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static uintptr_t begin, end; /* this program's code */

static void note(const void *caller)
{
	if (atomic_load(&watching) && (uintptr_t)caller >= begin && (uintptr_t)caller < end)
		atomic_fetch_add(&allocations, 1);
}

__attribute__((noinline)) void *malloc(size_t bytes)
{
	note(__builtin_return_address(0));
	return __libc_malloc(bytes);
}

__attribute__((noinline)) void *calloc(size_t n, size_t bytes)
{
	note(__builtin_return_address(0));
	return __libc_calloc(n, bytes);
}

__attribute__((noinline)) void *realloc(void *memory, size_t bytes)
{
	note(__builtin_return_address(0));
	return __libc_realloc(memory, bytes);
}

/* The first object is the program itself. */
static int find_code(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
			begin = info->dlpi_addr + part->p_vaddr;
			end = begin + part->p_memsz;
		}
	}
	return 1;
}
#endif

static void *volatile kept;

static void the_watch_sees_an_allocation(void **state)
{
	(void)state;
	if (!WATCHES)
		skip();
	atomic_store(&watching, true);
	kept = malloc(10);
	atomic_store(&watching, false);
	free(kept);
	assert_int_equal(atomic_exchange(&allocations, 0), 1);
}

static void steps_and_evaluations_allocate_nothing(void **state)
{
	(void)state;
	if (!WATCHES)
		skip();
	test_training t;
	mural_error err = {0};
	mural_step_facts step;
	mural_evaluation evaluation;
	uint64_t steps = 0;
	test_training_configure(&t,
	                        TEST_TRAINING_TINY " --attention-dropout 0.1 --flip 0.5 --epochs 4 --loader-threads 2");
	test_training_open(&t);
	assert_int_equal(mural_engine_train_begin(t.engine, &err), MURAL_OK);
	atomic_store(&watching, true);
	for (; test_training_step(&t, &step); steps++) {
		if (!step.epoch_ends)
			continue;
		assert_int_equal(mural_engine_evaluate(t.engine, t.test, &evaluation, &err), MURAL_OK);
		assert_int_equal(evaluation.images, mural_data_get_facts(t.test)->images);
	}
	atomic_store(&watching, false);
	assert_int_equal(steps, 16);
	assert_int_equal(atomic_load(&allocations), 0);
	test_training_close(&t);
}

int main(void)
{
#if WATCHES
	dl_iterate_phdr(find_code, NULL);
#endif
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_watch_sees_an_allocation),
	        cmocka_unit_test(steps_and_evaluations_allocate_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
