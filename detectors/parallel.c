/*
 * A part has at least 512 rows, so that starting it costs little compared with its work.
 */
#include "detectors/parallel.h"

enum { MOST_PARTS = 16, PART_ROWS = 512 };

size_t parts_count(size_t n)
{
	size_t parts = n / PART_ROWS;

	return parts < 1 ? 1 : parts > MOST_PARTS ? MOST_PARTS : parts;
}

size_t parts_begin(size_t n, size_t parts, size_t index)
{
	return n / parts * index + (index < n % parts ? index : n % parts);
}

void parts_run(const struct parallel *parallel, void (*part)(void *argument, size_t index),
	void *argument, size_t count)
{
	if (parallel && parallel->run) {
		parallel->run(parallel->context, part, argument, count);
		return;
	}
	for (size_t i = 0; i < count; i++)
		part(argument, i);
}
