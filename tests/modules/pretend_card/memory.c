/* Memory of pretend cards: one half of a mapping that nobody may touch, and one that is where the bytes are.
 *
 *     device address              inside
 *     | no access, bytes          | bytes, full of what is no number |
 * SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "modules/pretend_card/pretend.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#define RANGES 256
#define POISON 0xff /* NaN in every type of floating point */

typedef struct range {
	char *memory;
	size_t bytes; /* whole pages */
	bool pinned;
} range;

static range ranges[RANGES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t whole_pages(size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	return bytes ? (bytes + page - 1) / page * page : page;
}

static size_t mapped(const range *r)
{
	return r->pinned ? r->bytes : 2 * r->bytes;
}

/* NULL: memory of the host. The lock is held. */
static const range *find(const void *address)
{
	const char *at = address;
	for (size_t i = 0; i < RANGES; i++)
		if (ranges[i].memory && at >= ranges[i].memory && at < ranges[i].memory + ranges[i].bytes)
			return &ranges[i];
	return NULL;
}

static bool keep(const range *made)
{
	bool kept = false;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < RANGES && !kept; i++)
		if (!ranges[i].memory) {
			ranges[i] = *made;
			kept = true;
		}
	pthread_mutex_unlock(&lock);
	return kept;
}

mural_status pretend_allocate(mu_memory kind, size_t bytes, void **memory, mural_error *err)
{
	range made = {.bytes = whole_pages(bytes), .pinned = kind == MU_MEMORY_PINNED};
	*memory = NULL;
	void *p = mmap(NULL, mapped(&made), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no %s for a pretend card", MU_SIZE(bytes));
	made.memory = p;
	memset(made.memory + (mapped(&made) - made.bytes), POISON, made.bytes);
	if ((!made.pinned && mprotect(p, made.bytes, PROT_NONE) != 0) || !keep(&made)) {
		munmap(p, mapped(&made));
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "a pretend card has no more than %d blocks", RANGES);
	}
	*memory = p;
	return MURAL_OK;
}

void pretend_release(void *memory)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; memory && i < RANGES; i++)
		if (ranges[i].memory == memory) {
			/* Arenas leave gaps in it, and the addresses come again. */
			ASAN_UNPOISON_MEMORY_REGION(memory, mapped(&ranges[i]));
			munmap(memory, mapped(&ranges[i]));
			ranges[i] = (range){0};
		}
	pthread_mutex_unlock(&lock);
}

size_t pretend_taken(void)
{
	size_t bytes = 0;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < RANGES; i++)
		bytes += ranges[i].memory && !ranges[i].pinned ? ranges[i].bytes : 0;
	pthread_mutex_unlock(&lock);
	return bytes;
}

static range look_up(const void *address)
{
	pthread_mutex_lock(&lock);
	const range *found = find(address);
	const range copy = found ? *found : (range){0};
	pthread_mutex_unlock(&lock);
	return copy;
}

void *pretend_inside(const void *address)
{
	const range r = look_up(address);
	return (char *)(uintptr_t)address + (r.memory && !r.pinned ? r.bytes : 0);
}

bool pretend_is_device(const void *address)
{
	const range r = look_up(address);
	return r.memory && !r.pinned;
}

bool pretend_is_pinned(const void *address)
{
	return look_up(address).pinned;
}
