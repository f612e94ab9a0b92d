/*
 * When the points of one of detect's lines were measured: an array "times", or "start" and "step".
 */
#ifndef AGENT_COMMANDS_POINT_TIMES_H
#define AGENT_COMMANDS_POINT_TIMES_H

#include <stdint.h>

#include "agent/core/buf.h"
#include "agent/core/error.h"
#include "agent/core/scan.h"

/* What was read of a member that is one value. */
struct point_time {
	bool seen;
	const char *problem; /* what is wrong with it, or NULL */
	double number;       /* the step, in seconds */
	int64_t time;        /* the start, in ms */
};

struct point_times {
	int64_t *items; /* ms */
	size_t count, capacity;
	bool seen;
	const char *problem; /* what is wrong with "times", or NULL, ... */
	size_t bad;          /* ... and of which item; SIZE_MAX: of the whole */
	struct point_time start, step;
	struct buf text;
};

void point_times_clear(struct point_times *times);
void point_times_free(struct point_times *times);

/*
 * Read the array of time stamps (text or seconds since the epoch, as when_parse_stamp takes them),
 * the first time stamp, the seconds between points; or null, which is as if it were not there.
 * False for what is no JSON; what is not of the shape is told by point_times_check.
 */
bool point_times_read(struct point_times *times, struct scan *scan) MUST_USE;
bool point_times_read_start(struct point_times *times, struct scan *scan) MUST_USE;
bool point_times_read_step(struct point_times *times, struct scan *scan) MUST_USE;

/* Is it of the shape, and are there times for `n` points that do not go back? */
bool point_times_check(const struct point_times *times, size_t n, struct error *error) MUST_USE;

/* The time of each of the `n` points, in ms, of what was checked. NULL where there are none: a
 * start without a step, or a step alone, says nothing. */
const int64_t *point_times_list(struct point_times *times, size_t n);

#endif
