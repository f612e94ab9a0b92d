/*
 * Batches of lines: however the bytes arrive, in files or in pieces through a pipe, the same lines
 * come out.
 */
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/analysis/line_batch.h"
#include "agent/base/buf.h"

enum { MAX_LINE = 5000 };

/* A file of this content, whose name the caller frees after unlink. */
static char *write_file(const char *data, size_t length)
{
	char *name = strdup("/tmp/hunter-c-batch-XXXXXX");
	int fd = mkstemp(name);
	assert_true(fd >= 0);
	for (size_t done = 0; done < length;) {
		ssize_t wrote = write(fd, data + done, length - done);
		assert_true(wrote > 0);
		done += (size_t)wrote;
	}
	close(fd);
	return name;
}

/* "number:text" of each line, a cut one with its length alone, and what failed. */
static void put_lines(const struct batch *batch, struct buf *out)
{
	struct batch_line line;
	size_t offset = 0;
	for (uint64_t number = batch->line; batch_line(batch, &offset, &line); number++) {
		buf_printf(out, "%d:", (int)number);
		if (line.cut)
			buf_printf(out, "cut to %zu", line.length);
		else
			buf_append(out, line.text, line.length);
		buf_char(out, '|');
	}
}

static char *read_all(const char *const *files, size_t count)
{
	const struct strings names = {files, count};
	struct batch_reader *reader = batch_reader_new(&names, MAX_LINE);
	struct batch batch = {0};
	struct buf out = {0};
	struct error error;
	enum batch_step step;
	while ((step = batch_read(reader, &batch, &error)) != BATCH_END) {
		if (step == BATCH_FAILED)
			buf_text(&out, "failed|");
		else
			put_lines(&batch, &out);
	}
	batch_free(&batch);
	batch_reader_free(reader);
	return buf_steal(&out);
}

static void check_file(const char *content, const char *expected)
{
	char *name = write_file(content, strlen(content));
	char *lines = read_all((const char *const[]){name}, 1);
	assert_string_equal(lines, expected);
	free(lines);
	unlink(name);
	free(name);
}

static void splits_lines(void **state)
{
	(void)state;
	check_file("", "");
	check_file("a", "1:a|");
	check_file("a\n", "1:a|");
	check_file("\n", "1:|");
	check_file("a\n\nb", "1:a|2:|3:b|");
	check_file("a\r\nb\r\n\r\n", "1:a|2:b|3:|");
	check_file("a\rb\n", "1:a\rb|");
	check_file("\xEF\xBB\xBF"
		   "a\n\xEF\xBB\xBF\n",
		"1:a|2:\xEF\xBB\xBF|");
	check_file("\xEF\xBB\xBF", "");
}

static void files_follow_one_another(void **state)
{
	(void)state;
	char *first = write_file("a\nb", 3);
	char *empty = write_file("", 0);
	char *last = write_file("\xEF\xBB\xBF"
				"c\n",
		5);
	char *lines =
		read_all((const char *const[]){first, "/nonexistent/file", "/", empty, last}, 5);
	assert_string_equal(lines, "1:a|2:b|failed|failed|1:c|");
	free(lines);
	char *const names[] = {first, empty, last};
	for (size_t i = 0; i < 3; i++) {
		unlink(names[i]);
		free(names[i]);
	}
}

/* Lines of every length around the cap, and ones of many blocks. */
static void cuts_long_lines(void **state)
{
	(void)state;
	static const size_t lengths[] = {
		MAX_LINE - 1, MAX_LINE, MAX_LINE + 1, MAX_LINE + 2, 3000000};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		for (int form = 0; form < 3; form++) {
			static const char *const ends[] = {"\n", "\r\n", ""};
			struct buf text = {0}, expected = {0};
			buf_text(&text, "first\n");
			for (size_t k = 0; k < lengths[i]; k++)
				buf_char(&text, 'x');
			buf_text(&text, ends[form]);
			buf_text(&text, form < 2 ? "last\n" : "");
			buf_text(&expected, "1:first|2:");
			if (lengths[i] > MAX_LINE)
				buf_text(&expected, "cut to 4096");
			else
				buf_append(&expected, text.data + 6, lengths[i]);
			buf_text(&expected, form < 2 ? "|3:last|" : "|");
			check_file(text.data, expected.data);
			buf_free(&text);
			buf_free(&expected);
		}
	}
}

/* A pipe to read from as the standard input; returns the end to write to. */
static int standard_pipe(void)
{
	int ends[2];
	assert_return_code(pipe(ends), 0);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	return ends[1];
}

/*
 * Writes pieces until a line has ended since `from`, for else a batch_read would wait forever.
 * Returns the place up to which the text was written.
 */
static size_t write_pieces(int fd, const struct buf *text, size_t from, size_t piece)
{
	size_t to = from;
	while (to < text->length && (to == from || !memchr(text->data + from, '\n', to - from))) {
		size_t size = text->length - to < piece ? text->length - to : piece;
		assert_int_equal(write(fd, text->data + to, size), size);
		to += size;
	}
	return to;
}

/* What comes out when each piece is read as soon as it is written. */
static char *read_pieces(const struct buf *text, size_t piece)
{
	const char *const standard[] = {"-"};
	const struct strings names = {standard, 1};
	struct batch_reader *reader = batch_reader_new(&names, MAX_LINE);
	struct batch batch = {0};
	struct buf out = {0};
	struct error error;
	int fd = standard_pipe();
	for (size_t written = 0;
		(written = write_pieces(fd, text, written, piece)) < text->length;) {
		assert_int_equal(batch_read(reader, &batch, &error), BATCH_LINES);
		put_lines(&batch, &out);
	}
	close(fd);
	while (batch_read(reader, &batch, &error) == BATCH_LINES)
		put_lines(&batch, &out);
	batch_free(&batch);
	batch_reader_free(reader);
	return buf_steal(&out);
}

static void pieces_do_not_matter(void **state)
{
	(void)state;
	struct buf text = {0};
	for (int i = 0; i < 40; i++) {
		for (int k = 0; k < i % 7 * 9; k++)
			buf_char(&text, (char)('a' + k % 26));
		buf_text(&text, i % 5 == 0 ? "\r\n" : "\n");
	}
	char *name = write_file(text.data, text.length);
	char *whole = read_all((const char *const[]){name}, 1);
	int saved = dup(STDIN_FILENO);
	for (size_t piece = 1; piece < 200; piece += 6) {
		char *pieces = read_pieces(&text, piece);
		assert_string_equal(pieces, whole);
		free(pieces);
	}
	dup2(saved, STDIN_FILENO);
	close(saved);
	unlink(name);
	free(name);
	buf_free(&text);
	free(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits_lines),
		cmocka_unit_test(files_follow_one_another),
		cmocka_unit_test(cuts_long_lines),
		cmocka_unit_test(pieces_do_not_matter),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
