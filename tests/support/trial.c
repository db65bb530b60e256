/* Arrays between guards, and the draws that fill them.
 *
 * Layout of a block:  | guard | array 0 | guard | array 1 | ... | guard |, guards at least 64 bytes of 0xff, which is
 * NaN in every floating type. In AddressSanitizer builds guards are closed to everyone but this file.
 * SPDX-License-Identifier: MIT */
#include "trial.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/reference/element.h"

#if defined(TRIAL_ASAN)
#include <sanitizer/asan_interface.h>
#define CLOSE(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define OPEN(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define CLOSE(p, n) ((void)(p), (void)(n))
#define OPEN(p, n) ((void)(p), (void)(n))
#endif

#define ALIGN 64 /* bytes: what arenas promise */
#define GUARD 64 /* bytes, at least: one vector */
#define FILL 0xff
#define ENUMERATED_FLAGS 6

mural_status trial_open(trial_side *side, const mu_ops *table, int threads, mural_error *err)
{
	*side = (trial_side){.table = table};
	mural_status status;
	mu_device_facts facts;
	MU_TRY(mu_device_open(&side->device, table->device, 0, err));
	MU_TRY_OUT(table->device->facts(side->device.handle, &facts, err));
	void *memory;
	MU_TRY_OUT(table->device->allocate(side->device.handle, MU_MEMORY_DEVICE, TRIAL_BLOCK_BYTES, &memory, err));
	side->block = memory;
	side->mirror = facts.shares_host_memory ? side->block : malloc(TRIAL_BLOCK_BYTES);
	status = side->mirror ? table->open(side->device.queue, threads, &side->context, err)
	                      : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a trial");
out:
	if (status != MURAL_OK)
		trial_close(side);
	return status;
}

static void forget_arrays(trial_side *side)
{
	for (size_t i = 0; i < side->n_arrays; i++)
		free(side->arrays[i].before);
	if (side->mirror)
		OPEN(side->mirror, side->used);
	side->n_arrays = side->used = 0;
}

void trial_close(trial_side *side)
{
	forget_arrays(side);
	if (side->context)
		side->table->close(side->context);
	if (side->mirror != side->block)
		free(side->mirror);
	if (side->block)
		side->table->device->release(side->device.handle, MU_MEMORY_DEVICE, side->block, TRIAL_BLOCK_BYTES);
	mu_device_close(&side->device);
	*side = (trial_side){0};
}

void trial_begin(trial_side *side, mu_dtype type, unsigned types, uint32_t seed)
{
	forget_arrays(side);
	side->type = type;
	side->types = types;
	side->seed = seed;
	side->draws = side->flags = 0;
	side->err = (mural_error){0};
	side->shape[0] = side->fault[0] = '\0';
}

MU_PRINTF(2, 3) static void fault(trial_side *side, const char *format, ...)
{
	if (side->fault[0])
		return;
	va_list args;
	va_start(args, format);
	vsnprintf(side->fault, sizeof side->fault, format, args);
	va_end(args);
}

void trial_note(trial_side *side, const char *format, ...)
{
	const size_t length = strlen(side->shape);
	va_list args;
	va_start(args, format);
	vsnprintf(side->shape + length, sizeof side->shape - length, format, args);
	va_end(args);
}

static mu_random_key draw_key(const trial_side *side)
{
	return mu_random_key_make(side->seed, MU_PURPOSE_TEST, 0);
}

size_t trial_below(trial_side *side, size_t n)
{
	return mu_random_below(draw_key(side), 0, side->draws++, (uint32_t)n);
}

bool trial_flag(trial_side *side, const char *name)
{
	const uint32_t number = side->flags++;
	const bool on = number < ENUMERATED_FLAGS ? side->seed >> number & 1 : trial_below(side, 2);
	trial_note(side, "%s%s ", on ? "" : "no-", name);
	return on;
}

size_t trial_size(trial_side *side, const char *name, size_t most)
{
	static const size_t sizes[] = {1, 2, 3, 5, 7, 16, 17, 31, 64, 65, 197, 384, 768};
	size_t n = sizeof sizes / sizeof *sizes;
	while (n > 1 && sizes[n - 1] > most)
		n--;
	const size_t size = sizes[trial_below(side, n)];
	trial_note(side, "%s=%zu ", name, size);
	return size;
}

double trial_between(trial_side *side, double low, double high)
{
	return low + (high - low) * mu_random_uniform(draw_key(side), 1, side->draws++);
}

mu_dropout_rule trial_dropout(trial_side *side, size_t images)
{
	static const double rates[] = {0, 0.1, 0.5};
	const double p = rates[trial_below(side, sizeof rates / sizeof *rates)];
	trial_note(side, "dropout=%g ", p);
	mu_dropout_rule rule = {.threshold = mu_drop_threshold(p), .scale = (float)(1 / (1 - p))};
	if (rule.threshold == 0)
		return rule;
	uint64_t *stream_B = malloc(images * sizeof *stream_B);
	for (size_t b = 0; stream_B && b < images; b++)
		stream_B[b] = mu_stream((uint32_t)trial_below(side, 1000), (uint32_t)trial_below(side, 1u << 31));
	rule.key = mu_random_key_make(side->seed, MU_PURPOSE_TEST, 1 + (uint32_t)trial_below(side, 1000));
	void *array = trial_array(side, TRIAL_INPUT | TRIAL_LOOSE, "stream_B", MU_I64, images);
	trial_fill(side, array, stream_B);
	rule.stream_B = array;
	free(stream_B);
	return rule;
}

/* Brings bytes of the mirror to the device. */
static void upload(trial_side *side, size_t offset, size_t bytes)
{
	if (side->mirror != side->block &&
	    side->table->device->copy(side->device.queue, side->block + offset, side->mirror + offset, bytes,
	                              &side->err) != MURAL_OK)
		fault(side, "upload failed: %s", side->err.message);
}

static bool has_input_bytes(const trial_array_entry *a)
{
	return (a->role & 3) == TRIAL_INPUT;
}

/* What an input must still be after a call. */
static void remember(trial_side *side, trial_array_entry *a)
{
	if (!has_input_bytes(a))
		return;
	if (!a->before)
		a->before = malloc(a->bytes + 1);
	if (a->before)
		memcpy(a->before, side->mirror + a->offset, a->bytes);
	else
		fault(side, "no memory to remember '%s'", a->name);
}

static void fill_random(trial_side *side, const trial_array_entry *a, double center, double spread)
{
	const mu_random_key key = draw_key(side);
	const uint64_t stream = 2 + (uint64_t)side->n_arrays;
	unsigned char *p = side->mirror + a->offset;
	if (a->type == MU_I32 || a->type == MU_I64) {
		memset(p, 0, a->bytes);
		return;
	}
	for (size_t i = 0; i < a->n; i++) {
		const uint32_t bits = mu_random_u32(key, stream, i);
		const double magnitude = 0.1 + (bits >> 1) / 2147483648.0;
		if (a->type == MU_U8)
			p[i] = (unsigned char)(bits >> 24);
		else
			mu_element_store(a->type, p, i, center + spread * (bits & 1 ? magnitude : -magnitude));
	}
}

void *trial_numbers(trial_side *side, unsigned role, const char *name, mu_dtype type, size_t n, double center,
                    double spread)
{
	const size_t element = mu_dtype_bytes(type), bytes = n * element, begin = side->used;
	size_t offset = (begin + GUARD + ALIGN - 1) / ALIGN * ALIGN;
	if (role & TRIAL_LOOSE)
		offset += element;
	const size_t end = offset + bytes + GUARD;
	if (side->n_arrays == TRIAL_MAX_ARRAYS || end > TRIAL_BLOCK_BYTES) {
		fputs("trial: too many or too large arrays; raise TRIAL_MAX_ARRAYS or TRIAL_BLOCK_BYTES\n", stderr);
		abort();
	}
	trial_array_entry *a = &side->arrays[side->n_arrays++];
	*a = (trial_array_entry){.name = name, .role = role, .type = type, .n = n, .bytes = bytes, .offset = offset};
	side->used = end;
	memset(side->mirror + begin, FILL, end - begin);
	const unsigned kind = role & 3;
	if (kind == TRIAL_INPUT || kind == TRIAL_ADDED)
		fill_random(side, a, center, spread);
	remember(side, a);
	upload(side, begin, end - begin);
	CLOSE(side->mirror + begin, offset - begin);
	CLOSE(side->mirror + offset + bytes, GUARD);
	return side->block + offset;
}

void *trial_array(trial_side *side, unsigned role, const char *name, mu_dtype type, size_t n)
{
	return trial_numbers(side, role, name, type, n, 0, 1);
}

void *trial_scratch(trial_side *side, size_t bytes)
{
	return trial_array(side, TRIAL_SCRATCH, "scratch", MU_U8, bytes);
}

static trial_array_entry *entry(const trial_side *side, const void *array)
{
	for (size_t i = 0; i < side->n_arrays; i++)
		if (side->block + side->arrays[i].offset == array)
			return (trial_array_entry *)&side->arrays[i];
	fputs("trial: a case names an array that it did not declare\n", stderr);
	abort();
}

void trial_fill(trial_side *side, void *array, const void *from)
{
	trial_array_entry *a = entry(side, array);
	if (!from) {
		fault(side, "no memory to fill '%s'", a->name);
		return;
	}
	memcpy(side->mirror + a->offset, from, a->bytes);
	remember(side, a);
	upload(side, a->offset, a->bytes);
}

void trial_release(trial_side *side, const void *array)
{
	trial_array_entry *a = entry(side, array);
	a->role = (a->role & TRIAL_LOOSE) | TRIAL_ADDED;
}

/* Bytes [begin, end) must still be guard. */
static void check_guard(trial_side *side, const char *row, const char *where, const char *name, size_t begin,
                        size_t end)
{
	OPEN(side->mirror + begin, end - begin);
	for (size_t i = begin; i < end; i++)
		if (side->mirror[i] != FILL) {
			fault(side, "%s wrote outside: %zu bytes into the guard %s '%s'", row, i - begin, where, name);
			break;
		}
	CLOSE(side->mirror + begin, end - begin);
}

static void check_arrays(trial_side *side, const char *row)
{
	size_t end = 0;
	for (size_t i = 0; i < side->n_arrays; i++) {
		const trial_array_entry *a = &side->arrays[i];
		check_guard(side, row, "before", a->name, end, a->offset);
		end = a->offset + a->bytes + GUARD;
		check_guard(side, row, "after", a->name, end - GUARD, end);
		if (has_input_bytes(a) && a->before && memcmp(a->before, side->mirror + a->offset, a->bytes) != 0)
			fault(side, "%s changed its input '%s'", row, a->name);
	}
}

void trial_call(trial_side *side, const char *row, mural_status status)
{
	const mu_device_table *device = side->table->device;
	if (status == MURAL_OK && side->mirror != side->block) {
		OPEN(side->mirror, side->used);
		status = device->copy(side->device.queue, side->mirror, side->block, side->used, &side->err);
	}
	if (status == MURAL_OK)
		status = device->wait(side->device.queue, &side->err);
	if (status != MURAL_OK)
		fault(side, "%s failed: %s", row, side->err.message);
	check_arrays(side, row);
}

double trial_largest(const trial_side *side, const void *array)
{
	if (!array)
		return 0;
	const trial_array_entry *a = entry(side, array);
	double largest = 0;
	for (size_t i = 0; i < a->n; i++)
		largest = fmax(largest, fabs(mu_element_load(a->type, side->mirror + a->offset, i)));
	return largest;
}

mu_dtype trial_stat(const trial_side *side)
{
	return mu_stat_type(side->type);
}

void trial_expect(trial_side *side, const void *array, mu_dtype accuracy, size_t length, double magnitude)
{
	trial_array_entry *a = entry(side, array);
	a->expected = true;
	a->accuracy = accuracy;
	a->length = length;
	a->magnitude = magnitude;
}

void trial_expect_bits(trial_side *side, const void *array)
{
	trial_expect(side, array, MU_F64, 0, 0);
}
