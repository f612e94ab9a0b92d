/*
 * Arrays of names in detect's lines, one for each point: "runs" and "hashes".
 */
#ifndef AGENT_COMMANDS_MARKS_H
#define AGENT_COMMANDS_MARKS_H

#include <stdint.h>

#include "agent/core/error.h"
#include "agent/core/scan.h"

/* Each name is a string or a number. Equal ones are equal as they are written. */
struct marks {
	uint64_t *items; /* hashes of the names, 0 for null */
	size_t *numbers; /* of the runs they make, see marks_number */
	size_t count, capacity;
	bool seen;
	const char *problem; /* what is wrong with it, or NULL */
};

void marks_clear(struct marks *marks);
void marks_free(struct marks *marks);

/* Reads the array, or null, which is as if it were not there. False for what is no JSON; what is
 * not of the shape is told by marks_check. */
bool marks_read(struct marks *marks, struct scan *scan) MUST_USE;

/* Is it of the shape, and has it `n` items? */
bool marks_check(
	const struct marks *marks, const char *key, size_t n, struct error *error) MUST_USE;

/* Numbers that never fall: points in succession with the same name are one run. NULL where there
 * is no array. */
const size_t *marks_number(struct marks *marks);

#endif
