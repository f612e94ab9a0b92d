/*
 * The common time axis of series of different tests.
 */
#ifndef AGENT_ANALYSIS_SHAPES_GRID_H
#define AGENT_ANALYSIS_SHAPES_GRID_H

#include <stddef.h>
#include <stdint.h>

struct arena;

/* The times of one series' points, ms, ascending. */
struct grid_times {
	const int64_t *times;
	size_t n;
};

/*
 * If series share their times, the grid has a point for each time; if every series has its own,
 * the range is cut into as many equal bins as the median series has points.
 */
struct grid {
	int64_t *times; /* of each point, or the start of its bin; ms, ascending */
	size_t n;
};

struct grid grid_make(struct arena *arena, const struct grid_times *axes, size_t count);

/* Puts values on the grid: the mean of those that fall on a point, NaN if none does. `counts` is
 * scratch space for grid->n numbers. */
void grid_place(const struct grid *grid, const struct grid_times *axis, const double *values,
	double *out, size_t *counts);

#endif
