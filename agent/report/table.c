/*
 * The rules of alignment are tabulate's: a column is at least two wider than its header; numbers
 * get as many trailing blanks as their tail after the point (or after an "e" without a point) is
 * shorter than the longest one; then they are right-aligned. Headers of a table without rows are
 * left-aligned.
 *
 * Cells contain foreign data: neither control characters nor invalid UTF-8 reach the terminal.
 */
#include "agent/report/table.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "agent/base/number.h"
#include "agent/base/utf8.h"

enum { GAP = 2, HEADER_PADDING = 2 };

#define REPLACEMENT "\uFFFD"

/* Decodes one character and advances *text. Each invalid byte is a character of its own. */
static unsigned decode(const char **text)
{
	const unsigned char *s = (const unsigned char *)*text;
	size_t length = utf8_length(*text, strnlen(*text, 4));
	*text += length > 0 ? length : 1;
	if (length == 0)
		return 0xFFFD;
	unsigned code = length == 1 ? s[0] : s[0] & (0xFFU >> (length + 1));
	for (size_t i = 1; i < length; i++)
		code = code << 6 | (s[i] & 0x3F);
	return code;
}

static size_t code_width(unsigned code)
{
	static const struct {
		unsigned from, to;
		size_t width;
	} ranges[] = {
		{0x0300, 0x036F, 0},
		{0x1100, 0x115F, 2},
		{0x200B, 0x200F, 0},
		{0x2E80, 0x303E, 2},
		{0x3041, 0xA4CF, 2},
		{0xAC00, 0xD7A3, 2},
		{0xF900, 0xFAFF, 2},
		{0xFE00, 0xFE0F, 0},
		{0xFE30, 0xFE6F, 2},
		{0xFF00, 0xFF60, 2},
		{0xFFE0, 0xFFE6, 2},
		{0x1F300, 0x1F64F, 2},
		{0x1F900, 0x1F9FF, 2},
		{0x20000, 0x3FFFD, 2},
	};
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		if (code >= ranges[i].from && code <= ranges[i].to)
			return ranges[i].width;
	return 1;
}

size_t text_width(const char *text)
{
	size_t width = 0;
	while (*text)
		width += code_width(decode(&text));
	return width;
}

static void print_blanks(size_t count, FILE *out)
{
	for (size_t i = 0; i < count; i++)
		putc_unlocked(' ', out);
}

const char *table_commit(const char *text, char scratch[TABLE_SCRATCH])
{
	enum { FULL = 40, SHORT = 12 };

	if (!text || strlen(text) != FULL || strspn(text, "0123456789abcdefABCDEF") != FULL)
		return text;
	snprintf(scratch, TABLE_SCRATCH, "%.*s", SHORT, text);
	return scratch;
}

void text_print(const char *text, FILE *out)
{
	for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
		length = utf8_length(text, left);
		if (length == 0) {
			fputs(REPLACEMENT, out);
			length = 1;
		} else if (utf8_is_control(text, length)) {
			putc_unlocked(' ', out);
		} else {
			fwrite_unlocked(text, 1, length, out);
		}
	}
}

void text_line(FILE *out, const char *format, ...)
{
	struct buf text = {0};
	va_list arguments;

	va_start(arguments, format);
	buf_vprintf(&text, format, arguments);
	va_end(arguments);
	text_print(text.data, out);
	putc_unlocked('\n', out);
	buf_free(&text);
}

void text_print_padded(const char *text, size_t width, FILE *out)
{
	size_t taken = text_width(text);
	text_print(text, out);
	if (taken < width)
		print_blanks(width - taken, out);
}

void text_flush(struct buf *text, FILE *out)
{
	if (text->length > 0)
		fwrite(text->data, 1, text->length, out);
	buf_free(text);
}

void text_print_level(double value, const char *unit, FILE *out)
{
	char text[NUMBER_TEXT];

	number_display(value, text);
	fprintf(out, "%8s", text);
	if (!unit || !*unit)
		return;
	putc(' ', out);
	text_print(unit, out);
}

void text_print_size(double size, double low, double high, FILE *out)
{
	if (isnan(size)) {
		fputs("(new)", out);
		return;
	}
	bool tiny = size != 0 && fabs(size) < 0.05;

	fprintf(out, tiny ? "(%+6.2g%%" : "(%+6.1f%%", size);
	if (!tiny && isfinite(low) && isfinite(high))
		fprintf(out, " [%.1f, %.1f]", low, high);
	putc(')', out);
}

bool text_is_integer(const char *text)
{
	text += *text == '+' || *text == '-';
	return *text && !text[strspn(text, "0123456789")];
}

bool text_is_number(const char *text)
{
	size_t length = strlen(text);
	double value;

	if (length > 0 && strspn(text, "+-.0123456789eE") == length)
		return number_parse(text, length, &value) && isfinite(value); /* "12e4567" may be a
										 commit */
	return strcasecmp(text, "inf") == 0 || strcasecmp(text, "-inf") == 0 ||
	       strcasecmp(text, "nan") == 0;
}

/* The point and the characters after it, or an "e" without one; 0 if there is neither. */
static int tail_of(const char *text)
{
	const char *point = strrchr(text, '.');

	if (!point)
		point = strpbrk(text, "eE");
	return point ? (int)strlen(point) : 0;
}

void table_measure(struct table *table, const char *const *cells)
{
	table->rows++;
	for (size_t c = 0; c < table->column_count; c++) {
		struct table_column *column = &table->columns[c];
		const char *text = cells[c] ? cells[c] : "";
		int tail = column->number ? tail_of(text) : 0;
		int head = (int)text_width(text) - tail;

		column->head = head > column->head ? head : column->head;
		column->tail = tail > column->tail ? tail : column->tail;
	}
}

/* One line of cells, without trailing blanks: blanks are held back until something follows. */
struct line {
	FILE *out;
	size_t blanks;
};

static void line_put(
	struct line *line, size_t before, const char *text, const char *color, size_t after)
{
	line->blanks += before;
	if (*text) {
		print_blanks(line->blanks, line->out);
		line->blanks = 0;
		fputs(color ? color : "", line->out);
		text_print(text, line->out);
		fputs(color ? "\033[0m" : "", line->out);
	}
	line->blanks += after + GAP;
}

void table_print_header(struct table *table, FILE *out)
{
	struct line line = {out, 0};
	const char *gap = "\n";

	for (size_t c = 0; c < table->column_count; c++) {
		struct table_column *column = &table->columns[c];

		if (!column->header)
			continue;
		size_t header = text_width(column->header),
		       cells = (size_t)(column->head + column->tail);
		size_t width = header + HEADER_PADDING > cells ? header + HEADER_PADDING : cells;
		bool right = column->number && table->rows > 0;

		column->width = column->width > width ? column->width : width;
		line_put(&line, right ? column->width - header : 0, column->header, NULL,
			right ? 0 : column->width - header);
	}
	for (size_t c = 0; c < table->column_count; c++) {
		if (!table->columns[c].header)
			continue;
		fputs(gap, out);
		gap = "  ";
		for (size_t i = 0; i < table->columns[c].width; i++)
			putc_unlocked('-', out);
	}
	putc_unlocked('\n', out);
}

/* A number whose tail is shorter than the longest gets blanks instead. */
void table_print_row(const struct table *table, const char *const *cells, FILE *out)
{
	struct line line = {out, 0};

	for (size_t c = 0; c < table->column_count; c++) {
		const struct table_column *column = &table->columns[c];
		const char *text = cells[c] ? cells[c] : "";
		size_t room = column->width - text_width(text);
		size_t after = column->number ? (size_t)(column->tail - tail_of(text)) : room;

		if (column->header)
			line_put(&line, room - after, text, NULL, after);
	}
	putc_unlocked('\n', out);
}

static void print_notes(
	const struct table *table, const struct table_note *notes, bool second, FILE *out)
{
	struct line line = {out, 0};

	for (size_t c = 0; c < table->column_count; c++) {
		const char *text = second ? notes[c].second : notes[c].text;
		size_t width = text_width(text ? text : ""), room = table->columns[c].width;

		line_put(&line, width < room ? room - width : 0, text ? text : "",
			second ? NULL : notes[c].color, 0);
	}
	putc_unlocked('\n', out);
}

static void print_dots(const struct table *table, const struct table_note *notes, FILE *out)
{
	size_t blanks = 0;

	for (size_t c = 0; c < table->column_count; c++) {
		size_t width = table->columns[c].width;

		if (notes[c].text) {
			print_blanks(blanks, out);
			for (size_t i = 0; i < width; i++)
				fputs("\u00b7", out);
			width = blanks = 0;
		}
		blanks += width + GAP;
	}
	putc_unlocked('\n', out);
}

void table_print_notes(const struct table *table, const struct table_note *notes, FILE *out)
{
	bool second = false;

	for (size_t c = 0; c < table->column_count; c++)
		second = second || notes[c].second;
	print_dots(table, notes, out);
	print_notes(table, notes, false, out);
	if (second)
		print_notes(table, notes, true, out);
	print_dots(table, notes, out);
}
