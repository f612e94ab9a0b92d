/*
 * Only whether two names are equal matters, so their hashes are kept.
 */
#include "agent/commands/marks.h"

#include <stdlib.h>

#include "agent/core/arena.h"
#include "agent/core/hash.h"

void marks_clear(struct marks *marks)
{
	marks->count = 0;
	marks->seen = false;
	marks->problem = NULL;
}

void marks_free(struct marks *marks)
{
	free(marks->items);
	free(marks->numbers);
}

static void add_mark(struct marks *marks, uint64_t mark)
{
	marks->items =
		memory_grow(marks->items, &marks->capacity, marks->count + 1, sizeof *marks->items);
	marks->items[marks->count++] = mark;
}

static bool read_mark(struct marks *marks, struct scan *scan)
{
	const char *from = scan->at;
	if (!scan_value(scan))
		return false;
	bool names = *from == '"' || *from == '-' || (*from >= '0' && *from <= '9');
	if (!names && *from != 'n')
		marks->problem = "has what is neither a string nor a number";
	add_mark(marks, names ? hash_add(HASH_START, from, (size_t)(scan->at - from)) | 1 : 0);
	return true;
}

bool marks_read(struct marks *marks, struct scan *scan)
{
	marks_clear(marks);
	if (scan_word(scan, "null"))
		return true;
	marks->seen = true;
	if (!scan_open(scan, '[')) {
		marks->problem = "is not an array";
		return scan_value(scan);
	}
	while (scan_item(scan))
		if (!read_mark(marks, scan))
			return false;
	return !scan->problem;
}

bool marks_check(const struct marks *marks, const char *key, size_t n, struct error *error)
{
	if (marks->problem)
		return error_set(error, ERROR_DATA, "\"%s\" %s", key, marks->problem);
	if (marks->seen && marks->count != n)
		return error_set(error, ERROR_DATA, "\"%s\" has %zu items and \"series\" %zu", key,
			marks->count, n);
	return true;
}

const size_t *marks_number(struct marks *marks)
{
	if (!marks->seen)
		return NULL;
	marks->numbers = memory_resize(marks->numbers, marks->count + 1, sizeof *marks->numbers);
	marks->numbers[0] = 0;
	for (size_t i = 1; i < marks->count; i++) {
		bool same = marks->items[i] != 0 && marks->items[i] == marks->items[i - 1];
		marks->numbers[i] = marks->numbers[i - 1] + !same;
	}
	return marks->numbers;
}
