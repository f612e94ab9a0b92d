/*
 * The one axis that series of different tests are put on.
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
 * Where series share their times, the grid has a point for each of these; where every series has
 * its own, times are cut into as many equal bins as a series has points in the middle.
 */
struct grid {
	int64_t *times; /* of each point, or where its bin begins; ms, ascending */
	size_t n;
};

struct grid grid_make(struct arena *arena, const struct grid_times *axes, size_t count);

/* Puts values on the grid: the mean of those that fall on a point, NaN where none does. `counts` is
 * room for grid->n. */
void grid_place(const struct grid *grid, const struct grid_times *axis, const double *values,
	double *out, size_t *counts);

#endif
