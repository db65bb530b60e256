/* Weight files that are not what they should be: one message each, nothing executed, nothing overrun.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/archive.h"
#include "support/data_files.h"
#include "weights/convert.h"
#include "weights/file.h"
#include "weights/pth_pickle.h"
#include "weights/zip.h"

static char *folder;
static char path[512];

static int make_folder(void **state)
{
	(void)state;
	folder = test_folder_create();
	snprintf(path, sizeof path, "%s/weights", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	test_folder_remove(folder);
	return 0;
}

static void write_file(const void *bytes, size_t n)
{
	test_file_write(folder, "weights", bytes, n);
}

static void refused(const char *words)
{
	mu_weights_file *file;
	mural_error err = {0};
	mural_status status = mu_weights_file_open(&file, path, &err);
	for (size_t i = 0; status == MURAL_OK && i < mu_weights_file_count(file); i++) {
		const mu_stored *tensor = mu_weights_file_at(file, i);
		float *to = malloc((tensor->elements + 1) * sizeof *to);
		assert_non_null(to);
		status = mu_weights_file_read(file, tensor, to, &err);
		free(to);
	}
	if (status == MURAL_OK || err.status == MURAL_OK)
		fail_msg("nothing was wrong, expected '%s'", words);
	mu_weights_file_free(file);
	if (!strstr(err.message, words))
		fail_msg("'%s' lacks '%s'", err.message, words);
	assert_int_equal(status, MURAL_DATA);
	assert_true(err.where[0]);
}

/* ---- Archives. ---- */

static void write_zip(const test_member *members, size_t n)
{
	size_t bytes;
	char *archive = test_archive(members, n, &bytes);
	write_file(archive, bytes);
	free(archive);
}

/* A state_dict of one tensor "w" of shape [rows, 2] and strides [stride, 1] in a float storage of `elements`. */
static size_t make_pickle(char *to, unsigned rows, unsigned stride, unsigned elements, unsigned offset)
{
	char *at = to;
#define TEXT(text)                                  \
	do {                                        \
		memcpy(at, text, sizeof(text) - 1); \
		at += sizeof(text) - 1;             \
	} while (0)
	TEXT("\x80\x02}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\n"
	     "X\1\0\0\0"
	     "0X\3\0\0\0cpuJ");
	test_put(&at, elements, 4);
	TEXT("tQJ");
	test_put(&at, offset, 4);
	TEXT("J");
	test_put(&at, rows, 4);
	TEXT("K\2\x86J");
	test_put(&at, stride, 4);
	TEXT("K\1\x86\x89"
	     "ccollections\nOrderedDict\n)RtRs.");
#undef TEXT
	return (size_t)(at - to);
}

static const float eight[8] = {0, 1, 2, 3, 4, 5, 6, 7};

/* A whole file of that tensor with eight numbers. */
static void write_pth(unsigned rows, unsigned stride, unsigned elements, unsigned offset, bool deflate)
{
	char pickle[512];
	size_t n = make_pickle(pickle, rows, stride, elements, offset);
	const test_member members[] = {{"a/data.pkl", pickle, n, false, 0},
	                               {"a/data/0", eight, sizeof eight, deflate, 0}};
	write_zip(members, 2);
}

static void a_small_pth_is_read(void **state)
{
	(void)state;
	mu_weights_file *file;
	float got[4];
	write_pth(2, 3, 8, 1, false);
	assert_int_equal(mu_weights_file_open(&file, path, NULL), MURAL_OK);
	const mu_stored *w = mu_weights_file_find(file, "w");
	assert_non_null(w);
	assert_int_equal(w->elements, 4);
	assert_int_equal(mu_weights_file_read(file, w, got, NULL), MURAL_OK);
	assert_memory_equal(got, ((const float[]){1, 2, 4, 5}), sizeof got);
	mu_weights_file_free(file);
}

/* Nobody writes into it, and nobody waits for that. */
static void a_pipe_is_refused(void **state)
{
	(void)state;
	mu_zip zip;
	mural_error err = {0};
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	refused("no weights: not a regular file");
	assert_int_equal(mu_zip_open(&zip, path, &err), MURAL_DATA);
	assert_string_equal(err.message, "no archive: not a regular file");
	mu_zip_release(&zip);
	assert_int_equal(unlink(path), 0);
}

static void tensors_outside_their_storage_are_refused(void **state)
{
	(void)state;
	write_pth(4, 3, 8, 0, false);
	refused("tensor 'w' reaches to element 10 of a storage of 8");
	write_pth(4, 2, 8, 1, false);
	refused("tensor 'w' reaches to element 8 of a storage of 8");
	write_pth(2, 2, 9, 0, false);
	refused("whose member has 32 bytes");
	write_pth(0x7fffffff, 0, 8, 0, false);
	refused("has more elements than its storage");
	write_pth(0x7fffffff, 0x7fffffff, 8, 0, false);
	refused("of a storage of 8");
}

static void damaged_archives_are_refused(void **state)
{
	(void)state;
	char pickle[512];
	size_t n = make_pickle(pickle, 4, 2, 8, 0), whole;
	test_member members[] = {{"a/data.pkl", pickle, n, false, 0}, {"a/data/0", eight, sizeof eight, false, 0}};
	char *archive = test_archive(members, 2, &whole);
	write_file(archive, whole - 1);
	refused("the table of members at its end is missing");
	archive[whole - 6]++; /* the table's place */
	write_file(archive, whole);
	refused("the archive is cut or damaged");
	archive[whole - 6]--;
	archive[strlen("a/data.pkl") + 30 + n + 30 + strlen("a/data/0")]++;
	write_file(archive, whole);
	refused("member 'a/data/0' is damaged: its checksum");
	free(archive);
	members[1].more = 100;
	write_zip(members, 2);
	refused("a member is said to reach behind its end");
	members[1].more = 0;
	members[1].name = "a/data.pkl";
	write_zip(members, 2);
	refused("the archive has two members 'a/data.pkl'");
	members[1].name = "a/data/1";
	write_zip(members, 2);
	refused("the storage '0' of tensor 'w' is missing");
	members[1].name = "a/data/0";
	members[1].deflate = true;
	write_zip(members, 2);
	refused("member 'a/data/0' is compressed, and torch.save never does that");
	members[1].more = 1 << 20;
	write_zip(members, 2);
	refused("two sizes contradict each other");
	write_file("PK\3\4", 4);
	refused("the archive is cut or damaged");
}

/* ---- Pickles. ---- */

static void pickle_refused(const char *bytes, size_t n, const char *words)
{
	mu_pth_tensor *tensors;
	size_t found;
	mural_error err = {0};
	assert_int_equal(mu_pth_pickle_read("p", (const uint8_t *)bytes, n, &tensors, &found, &err), MURAL_DATA);
	assert_null(tensors);
	if (!strstr(err.message, words))
		fail_msg("'%s' lacks '%s'", err.message, words);
}
#define PICKLE(text, words) pickle_refused("\x80\x02" text, sizeof("\x80\x02" text) - 1, words)

static void other_pickles_are_refused(void **state)
{
	(void)state;
	PICKLE("cos\nsystem\nX\2\0\0\0ls\x85R.", "the pickle names 'os.system'");
	PICKLE("cbuiltins\neval\n.", "the pickle names 'builtins.eval'");
	PICKLE("(S'ls'\nios\nsystem\n.", "the opcode STRING");
	PICKLE("}ios\nsystem\n.", "the opcode INST");
	PICKLE("\x8c\1a.", "the opcode SHORT_BINUNICODE");
	PICKLE("}X\1\0\0\0ah\7s.", "it refers to a value that it does not have");
	PICKLE("}.", "there is no tensor in it");
	PICKLE("].", "it holds no dictionary");
	PICKLE("ccollections\nOrderedDict\nK\1\x85R.", "an OrderedDict with arguments");
	PICKLE("ctorch\nFloatStorage\n)R.", "a call of a storage's type");
	PICKLE("K\1)R.", "a call of something that is no function");
	PICKLE("K\1Q.", "a reference that is none to a storage of a known type");
	PICKLE("u.", "items without a begin");
	PICKLE("(u.", "items without a container that takes them");
	PICKLE("}(K\1u.", "items without a container that takes them");
	PICKLE("\x87.", "more items than there are");
	PICKLE("}q\5.", "values are not numbered in order");
	PICKLE("}X\xff\xff\0\0.", "the file is cut");
	PICKLE("}", "the file is cut");
	PICKLE("R.", "finds nothing on the stack");
	pickle_refused("\x80\4.", 3, "expected a pickle of protocol 2");
	char pickle[512];
	size_t n = make_pickle(pickle, 2, 2, 8, 0);
	for (size_t i = 2; i < n; i++) {
		mu_pth_tensor *tensors;
		size_t found;
		assert_int_not_equal(mu_pth_pickle_read("p", (const uint8_t *)pickle, i, &tensors, &found, NULL),
		                     MURAL_OK);
	}
}

/* A dictionary that holds itself ends nobody's search. */
static void a_pickle_in_a_circle_is_refused(void **state)
{
	(void)state;
	PICKLE("}q\0X\5\0\0\0modelh\0s.", "there is no tensor in it");
}

/* ---- npz. ---- */

static size_t make_npy(char *to, const char *header, const void *data, size_t n)
{
	size_t length = strlen(header);
	memcpy(to, "\x93NUMPY\1\0", 8);
	to[8] = (char)(length & 0xff);
	to[9] = (char)(length >> 8);
	memcpy(to + 10, header, length);
	memcpy(to + 10 + length, data, n);
	return 10 + length + n;
}

static void write_npz(const char *header, size_t bytes, bool deflate)
{
	char npy[1024];
	const test_member members[] = {{"w.npy", npy, make_npy(npy, header, eight, bytes), deflate, 0}};
	write_zip(members, 1);
}

static void npz_is_read(void **state)
{
	(void)state;
	for (int deflate = 0; deflate < 2; deflate++) {
		mu_weights_file *file;
		float got[8];
		write_npz("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }\n", sizeof eight, deflate);
		assert_int_equal(mu_weights_file_open(&file, path, NULL), MURAL_OK);
		const mu_stored *w = mu_weights_file_find(file, "w");
		assert_non_null(w);
		assert_int_equal(w->n_dims, 2);
		assert_int_equal(mu_weights_file_read(file, w, got, NULL), MURAL_OK);
		assert_memory_equal(got, eight, sizeof got);
		mu_weights_file_free(file);
	}
}

static void other_npz_are_refused(void **state)
{
	(void)state;
	for (int deflate = 0; deflate < 2; deflate++) {
		write_npz("{'descr': '>f4', 'fortran_order': False, 'shape': (8,), }", 32, deflate);
		refused("array 'w.npy' is of type '>f4'");
		write_npz("{'descr': '<f4', 'fortran_order': True, 'shape': (8,), }", 32, deflate);
		refused("array 'w.npy' is not row-major");
		write_npz("{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }", 32, deflate);
		refused("has 9 elements by its shape and 32 bytes");
		write_npz("{'descr': '<f4', 'fortran_order': False, 'shape': (8,), }", 31, deflate);
		refused("has 8 elements by its shape and 31 bytes");
		write_npz("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 32, deflate);
		refused("too many elements");
		write_npz("{'descr': '<f4', 'fortran_order': False, 'shape': (-8,), }", 32, deflate);
		refused("its shape is no short list of counts");
		write_npz("{'descr': '<f4', 'fortran_order': False, 'shape': (8", 32, deflate);
		refused("damaged header");
		write_npz("{'fortran_order': False, 'shape': (8,), }", 32, deflate);
		refused("there is no 'descr'");
		write_npz("{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }", 32, deflate);
		refused("tensor 'w' is of type I64");
	}
	const test_member short_one[] = {{"w.npy", "\x93NUMPY\1\0\xff\xff", 10, true, 0}};
	write_zip(short_one, 1);
	refused("damaged header");
	const test_member stranger[] = {{"readme", "hello", 5, false, 0}};
	write_zip(stranger, 1);
	refused("member 'readme' is no NumPy array, and there is no data.pkl");
	char npy[256];
	size_t n = make_npy(npy, "{'descr': '<f4', 'fortran_order': False, 'shape': (8,), }", eight, sizeof eight);
	const test_member lying[] = {{"w.npy", npy, n, true, 4}};
	write_zip(lying, 1);
	refused("it cannot be unpacked to");
}

/* ---- Several safetensors files, and what is none of these. ---- */

static void write_index(const char *text)
{
	test_file_write(folder, "weights.json", text, strlen(text));
	snprintf(path, sizeof path, "%s/weights.json", folder);
}

static void other_indexes_are_refused(void **state)
{
	(void)state;
	static const char shard[] =
	        "\x38\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}   \0\0\0\0";
	test_file_write(folder, "one", shard, 8 + 0x38 + 4);
	write_index("{\"weight_map\": {\"w\": \"../one\"}}");
	refused("'../one' is no name of a file in the index's folder");
	write_index("{\"weight_map\": {\"w\": \"none\"}}");
	refused("No such file");
	write_index("{\"weight_map\": {\"v\": \"one\"}}");
	refused("tensor 'v' is missing in 'one'");
	write_index("{\"weight_map\": {\"w\": 3}}");
	refused("the index names no file for tensor 'w'");
	write_index("{\"weights\": {}}");
	refused("expected an object 'weight_map'");
	write_index("{\"weight_map\": {\"w\": \"one\"");
	refused("expected");
	write_index("{\"weight_map\": {\"w\": \"one\"}}");
	mu_weights_file *file;
	assert_int_equal(mu_weights_file_open(&file, path, NULL), MURAL_OK);
	assert_string_equal(mu_weights_file_format(file), "safetensors in 1 file");
	mu_weights_file_free(file);
	snprintf(path, sizeof path, "%s/weights", folder);
}

static void other_formats_are_named(void **state)
{
	(void)state;
	static const char old[] = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19.";
	write_file(old, sizeof old - 1);
	refused("PyTorch's format from before version 1.6");
	write_file("\x80\4\x95", 3);
	refused("this is a bare Python pickle");
	write_file("\x93NUMPY\1\0", 8);
	refused("this is a single NumPy array");
	write_file("", 0);
	refused("no safetensors file");
	char where[600];
	mu_weights_file *file;
	mural_error err = {0};
	snprintf(where, sizeof where, "%s/none", folder);
	assert_int_equal(mu_weights_file_open(&file, where, &err), MURAL_DATA);
	assert_non_null(strstr(err.message, "No such file"));
	err = (mural_error){0};
	assert_int_equal(mu_weights_file_open(&file, folder, &err), MURAL_DATA);
	assert_non_null(strstr(err.message, "there are no weights in this folder"));
}

/* ---- Numbers. ---- */

/* The first bytes of safetensors are a length, and may be what another format begins with. */
static void safetensors_of_any_header_are_read(void **state)
{
	(void)state;
	enum { FROM = 0x100, TO = 0x600, TENSOR = 8 };
	static const char text[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
	static char bytes[8 + TO + TENSOR];
	for (size_t n = FROM; n < TO; n++) {
		mu_weights_file *file;
		mural_error err = {0};
		memset(bytes, 0, 8);
		bytes[0] = (char)(n & 0xff);
		bytes[1] = (char)(n >> 8);
		memset(bytes + 8, ' ', n);
		memcpy(bytes + 8, text, sizeof text - 1);
		memset(bytes + 8 + n, 0, TENSOR);
		write_file(bytes, 8 + n + TENSOR);
		if (mu_weights_file_open(&file, path, &err) != MURAL_OK)
			fail_msg("a header of %zu bytes: %s", n, err.message);
		assert_string_equal(mu_weights_file_format(file), "safetensors");
		mu_weights_file_free(file);
	}
}

static void halves_become_floats(void **state)
{
	(void)state;
	static const uint16_t halves[] = {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x83ff, 0x7c00, 0x3555};
	static const float wanted[] = {1, -2, 65504, 0x1p-14f, 0x1p-24f, -0x1.ff8p-15f, INFINITY, 0x1.554p-2f};
	static const uint16_t brains[] = {0x3f80, 0xc000, 0x7f80, 0x0001};
	static const float wanted_brains[] = {1, -2, INFINITY, 0x1p-133f};
	static const double doubles[] = {1.0 / 3, -1e300};
	static const float wanted_doubles[] = {(float)(1.0 / 3), -INFINITY};
	float got[8];
	mu_to_floats(MU_F16, halves, 8, got);
	assert_memory_equal(got, wanted, sizeof wanted);
	mu_to_floats(MU_BF16, brains, 4, got);
	assert_memory_equal(got, wanted_brains, sizeof wanted_brains);
	mu_to_floats(MU_F64, doubles, 2, got);
	assert_memory_equal(got, wanted_doubles, sizeof wanted_doubles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_small_pth_is_read),
	        cmocka_unit_test(a_pipe_is_refused),
	        cmocka_unit_test(tensors_outside_their_storage_are_refused),
	        cmocka_unit_test(damaged_archives_are_refused),
	        cmocka_unit_test(other_pickles_are_refused),
	        cmocka_unit_test(a_pickle_in_a_circle_is_refused),
	        cmocka_unit_test(npz_is_read),
	        cmocka_unit_test(other_npz_are_refused),
	        cmocka_unit_test(other_indexes_are_refused),
	        cmocka_unit_test(other_formats_are_named),
	        cmocka_unit_test(safetensors_of_any_header_are_read),
	        cmocka_unit_test(halves_become_floats),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
