/* CSV files as tables: what RFC 4180 allows, what is refused, and where it stands. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "study/csv_table.h"
#include "support/data_files.h"

static char *folder;
static char path[512];

static int setup(void **state)
{
	(void)state;
	folder = test_folder_create();
	snprintf(path, sizeof path, "%s/table.csv", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	test_folder_remove(folder);
	return 0;
}

static mural_status read_text(mu_csv_table *table, const char *text, mural_error *err)
{
	*err = (mural_error){0};
	test_file_write(folder, "table.csv", text, strlen(text));
	return mu_csv_table_read(table, path, err);
}

static void test_plain(void **state)
{
	(void)state;
	mu_csv_table table;
	mural_error err;
	assert_int_equal(read_text(&table, "a,b,c\n1,,3\nx, y ,z\n", &err), MURAL_OK);
	assert_int_equal(table.n_columns, 3);
	assert_int_equal(table.n_rows, 2);
	assert_string_equal(table.rows[0].cells[1], "");
	assert_string_equal(table.rows[1].cells[1], " y ");
	assert_string_equal(table.rows[1].raw, "x, y ,z");
	assert_int_equal(table.rows[1].line, 3);
	assert_int_equal(mu_csv_table_column(&table, "c"), 2);
	assert_int_equal(mu_csv_table_column(&table, "C"), -1);
	mu_csv_table_release(&table);
}

static void test_quotes(void **state)
{
	(void)state;
	mu_csv_table table;
	mural_error err;
	assert_int_equal(read_text(&table, "a,b\n\"x, \"\"y\"\"\",\"two\nlines\"\n\"\",end", &err), MURAL_OK);
	assert_int_equal(table.n_rows, 2);
	assert_string_equal(table.rows[0].cells[0], "x, \"y\"");
	assert_string_equal(table.rows[0].cells[1], "two\nlines");
	assert_string_equal(table.rows[0].raw, "\"x, \"\"y\"\"\",\"two\nlines\"");
	assert_string_equal(table.rows[1].cells[0], "");
	assert_int_equal(table.rows[1].line, 4);
	mu_csv_table_release(&table);
}

static void test_other_systems(void **state)
{
	(void)state;
	mu_csv_table table;
	mural_error err;
	assert_int_equal(read_text(&table,
	                           "\xef\xbb\xbf"
	                           "a,b\r\n\r\n1,2\r\n\n",
	                           &err),
	                 MURAL_OK);
	assert_int_equal(table.n_rows, 1);
	assert_string_equal(table.header.cells[0], "a");
	assert_string_equal(table.header.cells[1], "b");
	assert_string_equal(table.header.raw, "a,b");
	assert_string_equal(table.rows[0].cells[1], "2");
	assert_string_equal(table.rows[0].raw, "1,2");
	mu_csv_table_release(&table);
}

static void test_refused(void **state)
{
	(void)state;
	const struct {
		const char *text, *says, *line;
	} rows[] = {
	        {"", "empty", ":1"},
	        {"\n\n", "empty", ":3"},
	        {"a,b\n1,2,3\n", "more cells", ":2"},
	        {"a,b\n1,2\n3\n", "fewer cells", ":3"},
	        {"a,b\n\"1,2\n", "no closing quote", ":3"},
	        {"a,b\n\"1\"x,2\n", "behind a closing quote", ":2"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		mu_csv_table table;
		mural_error err;
		assert_int_equal(read_text(&table, rows[i].text, &err), MURAL_DATA);
		assert_non_null(strstr(err.message, rows[i].says));
		assert_non_null(strstr(err.where, rows[i].line));
		assert_null(table.rows);
	}
	mu_csv_table table;
	mural_error err = {0};
	test_file_write(folder, "table.csv", "a\0b\n", 4);
	assert_int_equal(mu_csv_table_read(&table, path, &err), MURAL_DATA);
	assert_non_null(strstr(err.message, "NUL"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_plain),
	        cmocka_unit_test(test_quotes),
	        cmocka_unit_test(test_other_systems),
	        cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
