/*
 * Controls: the part of a series that another series explains is removed before a detector looks
 * for changes. The other series is a control (another region, the baseline), by which the series is
 * divided, or the load it depends on, which is regressed out. docs/design/algorithms.md section 7.
 *
 * Each point is paired with the nearest point of the other series within half a step. A fitted
 * control is frozen, like a season: the result for a point depends on that point and its partner
 * alone.
 */
#ifndef DETECTORS_CONTROL_H
#define DETECTORS_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scratch;

enum control_mode {
	CONTROL_NONE,
	CONTROL_RATIO, /* relative to the other: the result is value / other */
	CONTROL_LOAD,  /* explained by the other: the result is the value at equal load */
};

/* Points of two series: `times` in ms, ascending, values NaN where missing. */
struct points {
	const double *values;
	const int64_t *times;
	size_t n;
};

enum { CONTROL_LEAST = 30 }; /* pairs of points that a fit of the load needs */

struct control {
	enum control_mode mode;
	bool used;     /* false: the fit does not reduce the noise, and values stay as they are */
	size_t joined; /* pairs of points in the fit */
	double explained;  /* of a load: share of the variance around the level, 0..1 */
	int64_t tolerance; /* ms between a point and its partner, at most */
	double centre; /* median of the other's values, of a load on its scale: the result is the
			  value at that level */
	bool log_values, log_load; /* on a logarithmic scale, as all values are positive */
	double unit;               /* of a load that is not logarithmic */
	/* value = slope load + bend load^2 on the scales; outside of the limits the square is
	 * continued as its tangent */
	double slope, bend, lower, upper;
};

/*
 * Fits the control, in O(n log n). `known`: it was in use before and is kept as long as it helps.
 * The result owns nothing.
 */
struct control control_fit(enum control_mode mode, struct points series, struct points other,
	bool known, struct scratch *scratch);

/* Writes the partner's value for each point, NaN if it has none. */
void control_join(int64_t tolerance, struct points series, struct points other, double *out);

/* Whether the scales can represent these values and their partners: a logarithm needs positive
 * ones. */
bool control_takes(
	const struct control *control, const double *values, const double *joined, size_t n);

/*
 * Writes the values without the explained part; `joined` is the output of control_join. NaN where
 * the partner is missing, or not positive where that is needed. `out` may alias either input.
 */
void control_remove(const struct control *control, const double *values, const double *joined,
	size_t n, double *out);

#endif
