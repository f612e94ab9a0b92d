/*
 * The default profile of e-divisive on one chunk of a series: docs/algorithms.md sections 2.1 to
 * 2.5.
 *
 * A chunk holds only existing values, scaled and shifted. Its steps are separate functions: clip,
 * windows, test, passes. A chunk may be evaluated again after it has grown at its end; results that
 * the new points cannot affect are kept, and the outcome is the same as without.
 */
#ifndef DETECTORS_EDIVISIVE_CHUNK_H
#define DETECTORS_EDIVISIVE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>

#include "detectors/edivisive/edivisive.h"
#include "detectors/edivisive/search.h"
#include "detectors/stats.h"
#include "detectors/tried.h"

/* A ramp from one level to another, over the points [start, end) of the chunk. */
struct slope {
	size_t start, end;
	double from, to;
	double from_variance, to_variance, covariance, df; /* of what is known of the levels */
};

/* The place and the numbers of one change point within a chunk; sides are capped to 2W points,
 * values clipped. */
struct chunk_step {
	size_t tau; /* first point of the new regime, counted in the chunk */
	double p;
	double delta;    /* mean after - mean before, scaled */
	double strength; /* n1 n2 / (n1 + n2) delta^2: what the point explains of the sum of squares
			  */
	double magnitude; /* as in struct change, but of the capped and clipped means */
	bool ramp;        /* it stands for `slope`; p is that of the surest of its steps */
	struct slope slope;
};

/* A window that was searched: [start, end), and how many candidates it and those before it found.
 */
struct chunk_window {
	size_t start, end, found;
};

enum { LAGS = 2 };

/* Of a chunk's y, before each point: their sum, that of their squares, and those of the products of
 * values one and two apart. */
struct prefix {
	double *sum, *squares, *products[LAGS];
};

struct chunk {
	struct edivisive_options options;
	size_t excursion; /* as in struct samples */
	size_t n, capacity;
	size_t decided; /* candidates before it are ignored */
	double *x; /* scaled and shifted; belongs to the workspace, valid during an evaluation */
	struct prefix prefix; /* of y; likewise */
	double shift;         /* x = 2^exponent value - shift, of the last evaluation */
	int exponent;
	double *y;          /* x clipped */
	double *spread;     /* for each block of CLIP_BLOCK points the s of step 1 */
	size_t *candidates; /* of all windows, ascending */
	struct chunk_window *windows;
	size_t window_count;
	bool filled; /* pulses were removed from x in the last evaluation */
};

/* A chunk has at most CHUNK_WINDOWS windows of points. */
enum { CHUNK_WINDOWS = 7, CLIP_BLOCK = 25, CLIP_REACH = 25, REFINE_REACH = 5, LEAST_SIDE = 2 };
#define RELAXED_P 0.1

/* An interval of a window between the candidates found so far, with its best split. */
struct interval {
	size_t start, end;
	struct split split; /* tau counts from start; 0 where the interval cannot be split */
	double tie;         /* a q closer than this is as good */
};

/* Points of a chunk that left the level and came back: [start, end). */
struct excursion {
	size_t start, end;
};

/* Those that were found; `chosen` has room for as many of their indices. */
struct excursions {
	struct excursion *items;
	size_t *chosen;
	size_t count;
};

/* Buffers of an evaluation, which keep nothing between calls. They belong to a scratch. */
struct chunk_workspace {
	struct scratch *scratch;
	double *x, *left, *right;
	double *reciprocals;      /* 1 / i at [i], as many as a window has points */
	double *plain, *weighted; /* one longer than the chunk */
	struct prefix prefix;     /* likewise */
	struct interval *intervals;
	struct chunk_step *steps;
	struct excursions *excursions;
	struct chunk *filled; /* for the chunk without its excursions */
};

/* An empty chunk; its arrays grow with realloc. chunk_free frees them, not the struct. */
struct chunk chunk_new(const struct edivisive_options *options, size_t excursion);
void chunk_free(struct chunk *chunk);

/* Drops kept results, for a chunk that begins elsewhere and takes no candidates before `decided`.
 */
void chunk_restart(struct chunk *chunk, size_t decided);

/* For chunks of up to n values. */
struct chunk_workspace chunk_workspace_new(
	const struct edivisive_options *options, size_t n, struct scratch *scratch);

/*
 * Evaluates n values, which begin with those of the last evaluation since the chunk's start. Leaves
 * the change points in room->steps and returns their number.
 */
size_t chunk_evaluate(
	struct chunk *chunk, const double *values, size_t n, const struct chunk_workspace *room);

/* Step 1. Fills `spread` from x, of which the first `known` values are as before. */
void chunk_spread(struct chunk *chunk, size_t known);

/* Finds the pulses of x: writes them to `out`, from left to right, and returns their number. */
size_t chunk_pulses(const struct chunk *chunk, struct excursion *out);

/* Replaces these points of x by their neighbours, mirrored: half from the left, half from the
 * right. */
void chunk_mirror(struct chunk *chunk, const struct excursion *excursion);

/* Fills y from x, of which the first `known` values are as before. y holds `kept` values of the
 * last time; returns how many of its first values are the same now. */
size_t chunk_clip(struct chunk *chunk, size_t known, size_t kept);

/* Step 2. Fills candidates and returns their number; the first `same`
 * values of y are as before. */
size_t chunk_windows(struct chunk *chunk, size_t same, const struct chunk_workspace *room);

/* Fills the prefix sums, which the tests need, from y. */
void chunk_add_up(const struct chunk *chunk);

/* The test of step 2 on the interval [start, end) split at tau: is its p at most RELAXED_P? */
bool relaxed_test(const struct chunk *chunk, size_t start, size_t tau, size_t end);

/* Steps 3 and 4 for the segments [start, tau) and [tau, end). */
struct chunk_step chunk_test(const struct chunk *chunk, size_t start, size_t tau, size_t end);

/* The result of steps 3 and 4 for that split, for diagnostics: p without the limit up to which it
 * is computed, whether the ranks agree, and the means of the unclipped values. */
struct opinion {
	double p, before, after;
	bool agrees;
};

struct opinion chunk_opinion(const struct chunk *chunk, size_t start, size_t tau, size_t end);

/* Step 7: the place within REFINE_REACH of tau that leaves the least sum of squares within the
 * sides that chunk_test would take, the first of equal ones. */
size_t chunk_best_place(const struct chunk *chunk, size_t start, size_t tau, size_t end);

/* The place where a ramp has become visible that fits [start, end) better than steps at one or two
 * places; 0 if there is none. */
size_t chunk_ramp(const struct chunk *chunk, const struct chunk_workspace *room, size_t start,
	const struct chunk_step *steps, size_t count, size_t end, struct slope *slope);

/* The ramp that fits [start, end) best. */
struct slope chunk_slope(
	const struct chunk *chunk, const struct chunk_workspace *room, size_t start, size_t end);

/* Whether [start, end), which contains no step, is a trend: a ramp that chance produces less often
 * than once in 1/p_value times. Its place goes to *out. */
bool chunk_trend(const struct chunk *chunk, const struct chunk_workspace *room, size_t start,
	size_t end, struct chunk_step *out);

/* The weakest of the steps that are merely a change between two levels that the values hold for a
 * while and leave again; `count` if there is none. */
size_t chunk_stays(const struct chunk *chunk, const struct chunk_step *steps, size_t count);

/*
 * The weakest of the steps that are no more than the movements of a wandering level; `count` if
 * there is none.
 */
size_t chunk_wanders(const struct chunk *chunk, const struct chunk_step *steps, size_t count);

/* Whether the step between two segments of [start, end) is better explained by a slow drift that is
 * too small to report. */
bool chunk_drifts(const struct chunk *chunk, const struct chunk_workspace *room, size_t start,
	const struct chunk_step *step, size_t end);

/* The changes of a whole series of few points in which nothing else was found: writes them to
 * `steps` and returns their number. */
size_t chunk_short(const struct chunk *chunk, struct chunk_step *steps);

/* Steps 5 to 8 on the first `count` candidates in room->steps. Returns how many remain; the dropped
 * excursions are in room->excursions. */
size_t chunk_passes(const struct chunk *chunk, size_t count, const struct chunk_workspace *room);

#endif
