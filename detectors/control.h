/*
 * Controls: what of a series another one explains is taken from it before a detector looks for
 * changes. The other is a control (another region, the baseline) that the series is divided by, or
 * the load it depends on, which is regressed out.
 *
 * Both are joined on time: a point counts with the nearest one of the other series within half a
 * step. A fitted control is frozen, as a season is: what it makes of a point depends on that point
 * and its partner alone. docs/seasons.md, "Load and controls".
 */
#ifndef DETECTORS_CONTROL_H
#define DETECTORS_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scratch;

enum control_mode {
	CONTROL_NONE,
	CONTROL_RATIO, /* relative to the other: what is left is value / other */
	CONTROL_LOAD,  /* explained by the other: what is left is at equal load */
};

/* Points of two series: `times` in ms, ascending, values NaN where missing. */
struct points {
	const double *values;
	const int64_t *times;
	size_t n;
};

enum { CONTROL_LEAST = 30 }; /* pairs of points, from which on a load is fitted */

struct control {
	enum control_mode mode;
	bool used;         /* the fit pays, or is a ratio; else values stay as they are */
	size_t joined;     /* pairs of points that it was fitted to */
	double explained;  /* share of the variance around the level, 0..1; of a load */
	int64_t tolerance; /* ms between a point and its partner, at most */
	double centre;     /* of the other's values: what is left is on the level that it has there;
			      of a load on the scale */
	bool log_values, log_load;        /* scales: logarithms where all is positive */
	double unit;                      /* of the load, where it has no logarithm */
	double slope, bend, lower, upper; /* of a load on its scale; beyond the limits a line */
};

/*
 * Fits the control. `known`: it was used before, and stays as long as it is of any use. The result
 * owns nothing. O(n) but for medians.
 */
struct control control_fit(enum control_mode mode, struct points series, struct points other,
	bool known, struct scratch *scratch);

/* Writes to each point's place its partner's value, NaN where it has none. */
void control_join(int64_t tolerance, struct points series, struct points other, double *out);

/* Whether its scales can take all these values and their partners: a logarithm fits positive ones
 * only. */
bool control_takes(
	const struct control *control, const double *values, const double *joined, size_t n);

/*
 * Writes what is left of the series' values; `joined` is what control_join made. NaN where a
 * partner is needed and there is none, or it is not positive in a ratio. `out` may be either.
 */
void control_remove(const struct control *control, const double *values, const double *joined,
	size_t n, double *out);

#endif
