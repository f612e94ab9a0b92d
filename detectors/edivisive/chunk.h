/*
 * The default profile of e-divisive on one chunk of a series: docs/design/algorithms.md
 * sections 2.1 to 2.6, by whose numbers steps are cited here.
 *
 * A chunk holds only existing values, scaled and shifted. Each step is a file: clip,
 * candidates, partition, test, passes, ramp, noise, short. A chunk may be evaluated again after it
 * has grown at its end; results that the new points cannot affect are kept, and the outcome is the
 * same as without.
 *
 * Intervals are [start, end), counted in the chunk. Work is charged to the scratch of the
 * workspace; once its budget is spent, results are meaningless and discarded by the caller. Nothing
 * else fails.
 */
#ifndef DETECTORS_EDIVISIVE_CHUNK_H
#define DETECTORS_EDIVISIVE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>

#include "detectors/edivisive/edivisive.h"
#include "detectors/edivisive/search.h"
#include "detectors/stats.h"
#include "detectors/tried.h"

/* A ramp from one level to another, over the points [start, end) of the chunk: 2.5, step 3. */
struct slope {
	size_t start, end;
	double from, to;
	double from_variance, to_variance, covariance, df; /* of the estimates of the levels */
};

/* A change point within a chunk, with its numbers: of clipped values, at most 2W on each side. */
struct chunk_step {
	size_t tau; /* first point of the new level */
	double p;
	double delta;    /* mean after - mean before, scaled */
	double strength; /* n1 n2 / (n1 + n2) delta^2: the sum of squares that it explains */
	bool separated;  /* stands by separation alone: the test does not confirm it */
	bool ramp;       /* stands for `slope`; p is the smallest of its steps */
	struct slope slope;
	size_t start, end; /* of its two segments when it was tested; end is 0 before that */
};

struct chunk_workspace;

struct chunk {
	struct edivisive_options options;
	const struct chunk_workspace *workspace; /* during an evaluation */
	size_t excursion;                        /* as in struct samples */
	size_t n, capacity;
	size_t decided; /* candidates before it are ignored: the previous chunk has decided there */
	double *x;      /* scaled values; belongs to the workspace, valid during an evaluation */
	double *sum;    /* of y before each point; belongs to the workspace like x */
	double *room; /* three buffers of n + ROOM values; of the workspace, too, as is the next */
	bool *marks;
	double shift; /* x = 2^exponent value - shift, of the last evaluation */
	int exponent;
	double *y;          /* x clipped */
	double *spread;     /* s of 2.2 for each block of CLIP_BLOCK points */
	size_t *candidates; /* of each window */
	bool filled;        /* pulses were removed from x in the last evaluation */
};

/* CHUNK_WINDOWS: a chunk has at most so many W points. REFINE_REACH: how far step 2 moves a point.
 * LEAST_SIDE: points that a split needs on each side. */
enum {
	CHUNK_WINDOWS = 7,
	CLIP_BLOCK = 25,
	CLIP_REACH = 25,
	REFINE_REACH = 5,
	LEAST_SIDE = 2,
	ROOM = 8
};

/* Points of a chunk that left the level and came back: [start, end). */
struct excursion {
	size_t start, end;
};

/* The unit of noise of a chunk, and the number of values after which it repeats: 1, or more where
 * values alternate. */
struct noise_unit {
	double size;
	size_t period;
};

/* Buffers of the search for the best partition: `edges` of the stretches between candidates; the
 * sums of the kernel over one stretch and each (`row`), over all segments that end with it
 * (`sums`); the least cost up to each edge (`best`), and where its last segment begins (`from`). */
struct partition {
	size_t *edges, *from;
	double *values, *row, *sums, *best;
	float *near, *columns; /* values relative to those of a stretch; sums of the kernel */
};

/* Buffers of an evaluation, which keep nothing between calls; in a scratch. */
struct chunk_workspace {
	struct scratch *scratch;
	double *x, *left, *right;
	double *reciprocals;      /* 1 / i at [i], as many as a window has points */
	double *plain, *weighted; /* one longer than the chunk, as is the next */
	double *sum;
	double *room; /* as in struct chunk */
	bool *marks;
	size_t *places; /* candidates, then those of them that are cuts */
	struct partition partition;
	struct chunk_step *steps;
	struct excursion *excursions;
};

/* An empty chunk; its arrays grow with realloc. chunk_free frees them, not the struct. */
struct chunk chunk_new(const struct edivisive_options *options, size_t excursion);
void chunk_free(struct chunk *chunk);

/* Drops kept results, for a chunk that begins elsewhere and ignores candidates before `decided`. */
void chunk_restart(struct chunk *chunk, size_t decided);

/* For chunks of up to n values. */
struct chunk_workspace chunk_workspace_new(
	const struct edivisive_options *options, size_t n, struct scratch *scratch);

/*
 * Evaluates n values; the first ones must be those of the last evaluation since the chunk's start.
 * Leaves the change points in workspace->steps and returns their number.
 */
size_t chunk_evaluate(struct chunk *chunk, const double *values, size_t n,
	const struct chunk_workspace *workspace);

/* 2.2: fills `spread` from x, whose first `known` values are as before. */
void chunk_spread(struct chunk *chunk, size_t known);

/* 2.2: writes the pulses of x from left to right and returns their number. */
size_t chunk_pulses(const struct chunk *chunk, struct excursion *out);

/* Replaces these points of x by their neighbours, mirrored: half from the left, half from the
 * right. */
void chunk_mirror(struct chunk *chunk, const struct excursion *excursion);

/* 2.2: fills y from x, whose first `known` values are as before. y holds `kept` values of the last
 * evaluation; returns how many of its first values have not changed. */
size_t chunk_clip(struct chunk *chunk, size_t known, size_t kept);

/* 2.3: fills `candidates` and returns their number; the first `same` values of y are as before. */
size_t chunk_windows(struct chunk *chunk, size_t same);

/* Fills `sum` from y; all functions below need it. */
void chunk_add_up(const struct chunk *chunk);

/* 2.3: the unit of noise of y; of size 0: its values are all equal. */
struct noise_unit chunk_noise_unit(const struct chunk *chunk);

/* 2.3: writes the candidates, the first `found` ones of the windows among them, and returns their
 * number. */
size_t chunk_places(const struct chunk *chunk, double unit, size_t found, size_t *places);

/* 2.3: keeps those of the first `count` workspace->places that are cuts of the best partition, and
 * returns their number. unit > 0. */
size_t chunk_partition(const struct chunk *chunk, struct noise_unit noise, size_t count);

/* The test of 2.4 between the segments [start, tau) and [tau, end). */
struct chunk_step chunk_test(const struct chunk *chunk, size_t start, size_t tau, size_t end);

/* 2.4: whether the nearest values on both sides lie apart, with a sharp step between them. */
bool chunk_separated(const struct chunk *chunk, size_t start, size_t tau, size_t end);

/* Whether the step at tau stands out from movements within its segments: an edge, not a part of a
 * ramp or of a wandering level. */
bool chunk_is_sharp(const struct chunk *chunk, size_t start, size_t tau, size_t end);

/* The same as chunk_test for the trace: p also where it is above the limit, and the means in
 * the unit of the series. */
struct opinion {
	double p, before, after;
};

struct opinion chunk_opinion(const struct chunk *chunk, size_t start, size_t tau, size_t end);

/* 2.5, step 2: the place within REFINE_REACH of tau that leaves the least sum of squares, the first
 * of equal ones. */
size_t chunk_best_place(const struct chunk *chunk, size_t start, size_t tau, size_t end);

/* 2.5, step 3: if a ramp fits [start, end) better than these steps, writes it and returns its
 * place; else 0. */
size_t chunk_ramp(const struct chunk *chunk, size_t start, const struct chunk_step *steps,
	size_t count, size_t end, struct slope *slope);

/* 2.5, step 5: whether [start, end), which contains no step, has a trend; writes its change point.
 */
bool chunk_trend(const struct chunk *chunk, size_t start, size_t end, struct chunk_step *out);

/* 2.5, step 4, stays: the index of the weakest step that is only a change between two modes;
 * `count` if there is none. */
size_t chunk_stays(const struct chunk *chunk, const struct chunk_step *steps, size_t count);

/* 2.5, step 4, wandering: the index of the weakest step that is only a movement of a wandering
 * level; `count` if there is none. Writes the largest usual movement, in heights of that step. */
size_t chunk_wanders(
	const struct chunk *chunk, const struct chunk_step *steps, size_t count, double *usual);

/* 2.5, step 4, drift: whether the step between the two segments of [start, end) is better explained
 * by a slow drift that is too small to report. */
bool chunk_drifts(
	const struct chunk *chunk, size_t start, const struct chunk_step *step, size_t end);

/* 2.6: writes the changes of a whole series of few points in which nothing else was found; returns
 * their number. */
size_t chunk_short(const struct chunk *chunk, struct chunk_step *steps);

/* The passes of 2.5 on the first `count` workspace->places: leaves the change points in
 * workspace->steps and returns their number. */
size_t chunk_passes(const struct chunk *chunk, size_t count);

#endif
