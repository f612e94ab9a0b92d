#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "sources/files/delimited.h"
#include "tests/unit/memory_input.h"

/* Rows as text: cells in brackets, rows by line number, ended by "end" or the error. */
static char *rows_of(struct input *input, char delimiter, char quote)
{
	struct delimited *reader = delimited_new(input, delimiter, quote);
	struct buf text = {0};
	struct error error;
	struct row row;
	enum delimited_step step;

	while ((step = delimited_next(reader, &row, &error)) == DELIMITED_ROW) {
		buf_printf(&text, "%zu:", row.line);
		for (size_t i = 0; i < row.count; i++)
			buf_printf(&text, "[%.*s]", (int)row.cells[i].length, row.cells[i].text);
		buf_char(&text, ' ');
	}
	buf_text(&text, step == DELIMITED_END ? "end" : error.text);
	delimited_free(reader);
	return buf_steal(&text);
}

static void check(const char *bytes, size_t length, char quote, const char *expected)
{
	struct input input = input_bytes("data", bytes, length);
	char *rows = rows_of(&input, ',', quote);

	assert_string_equal(rows, expected);
	free(rows);
}

#define CHECK(text, expected) check((text), sizeof(text) - 1, '"', (expected))

static void plain(void **state)
{
	(void)state;
	CHECK("", "end");
	CHECK("a", "1:[a] end");
	CHECK("a,b\n1,2\n", "1:[a][b] 2:[1][2] end");
	CHECK("a,b\r\n1,2\r\n", "1:[a][b] 2:[1][2] end");
	CHECK("a,b\r1,2\r", "1:[a][b] 2:[1][2] end");
	CHECK("a,\n,b\n,", "1:[a][] 2:[][b] 3:[][] end");
	CHECK("\xEF\xBB\xBF"
	      "a,b",
		"1:[a][b] end");
	CHECK("\n\na\n\r\n\nb\n\n", "3:[a] 6:[b] end");
}

static void quotes(void **state)
{
	(void)state;
	CHECK("\"a,b\",c", "1:[a,b][c] end");
	CHECK("\"a \"\"b\"\"\"\n", "1:[a \"b\"] end");
	CHECK("\"\"\n\"\"\"\"\n", "1:[] 2:[\"] end");
	CHECK("\"two\nlines\r\nthree\",x\nnext", "1:[two\nlines\r\nthree][x] 4:[next] end");
	CHECK("a\"b,\"c\"d\"e\n", "1:[a\"b][cd\"e] end");
	CHECK("\"a\"", "1:[a] end");
	check("'a,b',\"c", 8, '\'', "1:[a,b][\"c] end");
	check("\"a,b\"", 5, '\0', "1:[\"a][b\"] end");
}

static void failures(void **state)
{
	(void)state;
	CHECK("t,caf\xE9,\xC3\xA9\n\"x\xC3\",\xE2\x82\n", "1:[t][caf?][\xC3\xA9] 2:[x?][??] end");
	CHECK("a\n\"b\nc\n", "1:[a] data:2: this row opens a quote that is never closed");
	CHECK("\"", "data:1: this row opens a quote that is never closed");
	CHECK("a\nb\0c\n", "1:[a] data:2: a NUL byte (is this a text file?)");
	CHECK("\"b\0c\"\n", "data:1: a NUL byte (is this a text file?)");
	CHECK("\xFF\xFE"
	      "a\0",
		"data:1: the file is in UTF-16; UTF-8 is needed");
}

/* What a pipe brings in pieces of any size is what the whole brings; cells cross every boundary of
 * the block. */
static void any_boundary(void **state)
{
	struct buf text = {0};
	int ends[2];

	(void)state;
	for (int i = 0; text.length < 600000; i++)
		buf_printf(&text, "%d,\"x,%d\"\"\r\n\",%s\r\n", i, i,
			i % 100 ? "" : "a longer cell than the others");
	struct input whole = input_bytes("data", text.data, text.length);
	char *expected = rows_of(&whole, ',', '"');
	assert_non_null(strstr(expected, "1:[0][x,0\"\r\n][a longer"));
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		for (size_t at = 0, step = 1; at < text.length;
			at += step, step = step % 5000 + 7) {
			size_t left = text.length - at;
			if (write(ends[1], text.data + at, left < step ? left : step) < 0)
				_exit(1);
		}
		_exit(0);
	}
	close(ends[1]);
	struct input piped = input_descriptor("data", ends[0]);
	char *rows = rows_of(&piped, ',', '"');
	input_close(&piped);
	assert_string_equal(rows, expected);
	free(rows);
	free(expected);
	buf_free(&text);
}

static void limits(void **state)
{
	struct buf text = {0};
	char *rows;

	(void)state;
	for (int i = 0; i < DELIMITED_COLUMNS_MAX; i++)
		buf_char(&text, ',');
	struct input wide = input_bytes("data", text.data, text.length);
	rows = rows_of(&wide, ',', '"');
	assert_string_equal(rows, "data:1: more than 16384 columns");
	free(rows);
	struct input fits = input_bytes("data", text.data, text.length - 1);
	rows = rows_of(&fits, ',', '"');
	assert_int_equal(strlen(rows), 2 + 2 * DELIMITED_COLUMNS_MAX + 4);
	free(rows);

	buf_clear(&text);
	buf_reserve(&text, DELIMITED_ROW_MAX + 10);
	memset(text.data, 'x', DELIMITED_ROW_MAX + 10);
	struct input broad = input_bytes("data", text.data, DELIMITED_ROW_MAX + 10);
	rows = rows_of(&broad, ',', '"');
	assert_string_equal(rows, "data:1: a row larger than 64 MB (is a quote not closed?)");
	free(rows);
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),
		cmocka_unit_test(quotes),
		cmocka_unit_test(failures),
		cmocka_unit_test(any_boundary),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
