/*
 * docs/design/algorithms.md section 8: seeding (4), iteration (5), bounds (6), sums by part (7),
 * and the attempts on a sample that come first (3).
 */
#include "agent/analysis/kmeans.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "detectors/loops.h"
#include "detectors/random.h"

/* Work is split into parts by the number of rows alone, never by that of threads, so that sums over
 * parts are the same everywhere. A part has at least PART_ROWS rows, so that starting it costs
 * little compared with its work. */
enum { MOST_PARTS = 16, PART_ROWS = 512 };

static size_t parts_count(size_t n)
{
	size_t parts = n / PART_ROWS;

	return parts < 1 ? 1 : parts > MOST_PARTS ? MOST_PARTS : parts;
}

static size_t parts_begin(size_t n, size_t parts, size_t index)
{
	return n / parts * index + (index < n % parts ? index : n % parts);
}

static void parts_run(const struct parallel *parallel, void (*part)(void *argument, size_t index),
	void *argument, size_t count)
{
	if (parallel && parallel->run) {
		parallel->run(parallel->context, part, argument, count);
		return;
	}
	for (size_t i = 0; i < count; i++)
		part(argument, i);
}

/*
 * Seeding: greedy k-means++. For each seed several rows are drawn as trials, with probability
 * proportional to their squared distance to the nearest seed so far, and the trial that
 * leaves the smallest sum of these distances becomes the seed.
 */

enum { MOST_TRIALS = 16, SEED_BATCH = DOTS_ROWS };

/* The trials for the next seed, and the remainder of each: the sum, over all rows, of the squared
 * distance to the nearest seed. */
struct seeding {
	const struct matrix *matrix;
	const struct parallel *parallel;
	const float *squares; /* squared length of each row */
	float *nearest;       /* squared distance of each row to the nearest seed */
	float *trials;        /* copies of the rows that were drawn */
	float trial_squares[MOST_TRIALS];
	size_t trial_count;
	size_t part_count;
	double (*left)[MOST_TRIALS]; /* the remainder of each trial, by part of the rows */
	bool update;                 /* the only trial has become a seed: update `nearest` */
};

/* Adds up the remainders of the trials over up to SEED_BATCH rows. */
static void try_rows(struct seeding *seeding, size_t first, size_t count, double *left)
{
	float dots[SEED_BATCH][MOST_TRIALS], *out[SEED_BATCH];
	const float *rows[SEED_BATCH];

	for (size_t i = 0; i < SEED_BATCH; i++) {
		rows[i] = matrix_row(seeding->matrix, first + (i < count ? i : 0));
		out[i] = dots[i];
	}
	loops_best()->dots(
		rows, seeding->trials, seeding->trial_count, seeding->matrix->stride, out);
	for (size_t i = 0; i < count; i++)
		for (size_t trial = 0; trial < seeding->trial_count; trial++) {
			float *nearest = &seeding->nearest[first + i];
			float square = seeding->squares[first + i] + seeding->trial_squares[trial] -
				       2 * dots[i][trial];

			square = square > 0 ? square : 0;
			if (square > *nearest)
				square = *nearest;
			left[trial] += (double)square;
			if (seeding->update)
				*nearest = square;
		}
}

static void try_part(void *argument, size_t index)
{
	struct seeding *seeding = argument;
	size_t n = seeding->matrix->n, end = parts_begin(n, seeding->part_count, index + 1);
	double *left = seeding->left[index];

	memset(left, 0, sizeof seeding->left[index]);
	for (size_t row = parts_begin(n, seeding->part_count, index); row < end; row += SEED_BATCH)
		try_rows(seeding, row, end - row < SEED_BATCH ? end - row : SEED_BATCH, left);
}

/* Draws a row with probability nearest / total; any row if the total is 0. */
static size_t draw(const struct seeding *seeding, double total, uint64_t *random)
{
	size_t n = seeding->matrix->n;
	double at = random_unit(random) * total;

	if (total <= 0)
		return (size_t)(random_next(random) % n);
	for (size_t row = 0; row < n; row++) {
		at -= (double)seeding->nearest[row];
		if (at < 0)
			return row;
	}
	return n - 1;
}

/* The remainder of a trial over all rows: the parts' sums in order. */
static double left_by(const struct seeding *seeding, size_t trial)
{
	double sum = 0;

	for (size_t part = 0; part < seeding->part_count; part++)
		sum += seeding->left[part][trial];
	return sum;
}

/* Draws the trials, writes the one that leaves the least as the seed, and returns its remainder.
 * `total` is the remainder of the seeds so far. */
static double choose_seed(
	struct seeding *seeding, size_t trials, double total, uint64_t *random, float *seed)
{
	size_t stride = seeding->matrix->stride, best = 0;

	seeding->trial_count = trials;
	seeding->update = false;
	for (size_t trial = 0; trial < trials; trial++) {
		size_t row = draw(seeding, total, random);

		memcpy(seeding->trials + trial * stride, matrix_row(seeding->matrix, row),
			stride * sizeof *seeding->trials);
		seeding->trial_squares[trial] = seeding->squares[row];
	}
	if (trials > 1)
		parts_run(seeding->parallel, try_part, seeding, seeding->part_count);
	for (size_t trial = 1; trial < trials; trial++)
		if (left_by(seeding, trial) < left_by(seeding, best))
			best = trial;
	memmove(seeding->trials, seeding->trials + best * stride, stride * sizeof *seeding->trials);
	seeding->trial_squares[0] = seeding->trial_squares[best];
	memcpy(seed, seeding->trials, stride * sizeof *seed);
	seeding->trial_count = 1;
	seeding->update = true;
	parts_run(seeding->parallel, try_part, seeding, seeding->part_count);
	return left_by(seeding, 0);
}

/* Writes k centroids, which are rows of the matrix; 1 <= k <= n. The first seed has one trial, each
 * other one 2 + ln k. */
static void kmeans_seed(const struct matrix *matrix, const float *squares, size_t k,
	const struct parallel *parallel, uint64_t *random, float *centroids)
{
	size_t trials = 2 + (size_t)log((double)k), parts = parts_count(matrix->n);
	struct seeding seeding = {.matrix = matrix,
		.parallel = parallel,
		.squares = squares,
		.nearest = memory_new(matrix->n, sizeof *seeding.nearest),
		.trials = memory_new(MOST_TRIALS * matrix->stride, sizeof *seeding.trials),
		.part_count = parts,
		.left = memory_new(parts, sizeof *seeding.left)};
	double total = 0;

	trials = trials < MOST_TRIALS ? trials : MOST_TRIALS;
	for (size_t row = 0; row < matrix->n; row++)
		seeding.nearest[row] = FLT_MAX;
	for (size_t i = 0; i < k; i++)
		total = choose_seed(&seeding, i == 0 ? 1 : trials, total, random,
			centroids + i * matrix->stride);
	free(seeding.nearest);
	free(seeding.trials);
	free(seeding.left);
}

enum {
	ITERATIONS = 100,
	SAMPLE = 8192,
	SAMPLE_EACH = 32, /* rows of the sample for each cluster, at least */
	ATTEMPTS = 3,
	ATTEMPT_ITERATIONS = 12,
	BATCH = DOTS_ROWS
};

/* The lower bound is reduced by this share of the row's length, for the rounding of single
 * precision. */
#define SLACK 1e-3F

/* The sums over one part of the rows. They are kept between iterations: a row that changes its
 * cluster is subtracted from one and added to the other. */
struct part {
	double *sums;     /* of the rows of each cluster: k rows of `stride` */
	uint64_t *counts; /* of the rows of each cluster */
	double error;
	float farthest; /* largest distance of a row to its centroid; -1: used up */
	size_t farthest_row;
};

struct run {
	const struct matrix *matrix;
	const struct parallel *parallel;
	struct kmeans *result;
	struct part *parts;
	size_t part_count;
	float *squares;          /* squared length of each row */
	float *lower;            /* of each row: bound on the distance to any other centroid */
	float *centroid_squares; /* squared length of each centroid */
	float *half_gaps;        /* of each centroid: half the distance to the nearest other one */
	float *before;           /* the centroids before they moved */
	double *sum;             /* buffer for the rows of one cluster */
	bool first;              /* no row has a cluster yet */
	float most_moved, second_moved; /* the two largest moves of centroids */
	size_t most_moved_cluster;
};

/* The length that belongs to a squared length; rounding may have made that negative. */
static float length(float square)
{
	return sqrtf(square > 0 ? square : 0);
}

/* Computes the squared length of each centroid and half its distance to the nearest other one: a
 * row nearer to it than that cannot be nearer to any other (triangle inequality). O(k^2 w). */
static void measure_gaps(struct run *run)
{
	const struct kmeans *result = run->result;
	size_t stride = run->matrix->stride;

	for (size_t i = 0; i < result->k; i++) {
		const float *centroid = result->centroids + i * stride;
		float least = FLT_MAX;

		run->centroid_squares[i] = 0;
		for (size_t j = 0; j < stride; j++)
			run->centroid_squares[i] += centroid[j] * centroid[j];
		for (size_t j = 0; j < result->k; j++) {
			float square = j == i ? FLT_MAX
					      : loops_best()->square(centroid,
							result->centroids + j * stride, stride);

			least = square < least ? square : least;
		}
		run->half_gaps[i] = least == FLT_MAX ? FLT_MAX : 0.5F * length(least);
	}
}

static float own_distance(const struct run *run, size_t row)
{
	size_t stride = run->matrix->stride;

	return length(loops_best()->square(matrix_row(run->matrix, row),
		run->result->centroids + run->result->clusters[row] * stride, stride));
}

/*
 * Assigns a row to its nearest centroid, the first of equal ones, given its dot products with all
 * of them: the smallest |x - c|^2 is the largest 2 x c - |c|^2. The second nearest gives the bound.
 */
static void assign_row(struct run *run, size_t row, const float *dots)
{
	struct kmeans *result = run->result;
	float best = -FLT_MAX, second = -FLT_MAX;
	size_t cluster = 0;

	for (size_t i = 0; i < result->k; i++) {
		float nearness = 2 * dots[i] - run->centroid_squares[i];

		if (nearness > best) {
			second = best;
			best = nearness;
			cluster = i;
		} else if (nearness > second) {
			second = nearness;
		}
	}
	run->lower[row] = result->k == 1 ? FLT_MAX
					 : length(run->squares[row] - second) -
						   SLACK * length(run->squares[row]);
	result->clusters[row] = (uint32_t)cluster;
	result->distances[row] = own_distance(run, row);
}

/*
 * Whether another centroid may be nearer than the row's own. Since its last comparison with all
 * centroids no other one has come nearer than by the largest move of any other: the lower bound
 * falls by that. The distance to its own centroid is computed anew, as the error needs it.
 */
static bool may_change(struct run *run, size_t row)
{
	struct kmeans *result = run->result;
	size_t cluster = result->clusters[row];

	run->lower[row] -= cluster == run->most_moved_cluster ? run->second_moved : run->most_moved;
	result->distances[row] = own_distance(run, row);
	return result->distances[row] > run->lower[row] &&
	       result->distances[row] > run->half_gaps[cluster];
}

/* Adds a row to the sums of a cluster, or subtracts it. */
static void add_row(
	const struct run *run, struct part *part, size_t row, size_t cluster, bool subtract)
{
	const float *values = matrix_row(run->matrix, row);
	size_t stride = run->matrix->stride;
	double *sums = part->sums + cluster * stride, sign = subtract ? -1 : 1;

	for (size_t i = 0; i < stride; i++)
		sums[i] += sign * (double)values[i];
	part->counts[cluster] += subtract ? (uint64_t)-1 : 1;
}

/* Compares up to BATCH rows with all centroids and moves them to their clusters. `dots` has room
 * for BATCH k values. */
static void compare_rows(
	struct run *run, struct part *part, const size_t *rows, size_t count, float *dots)
{
	struct kmeans *result = run->result;
	const float *batch[BATCH];
	float *out[BATCH];

	for (size_t i = 0; i < BATCH; i++) {
		batch[i] = matrix_row(run->matrix, rows[i < count ? i : 0]);
		out[i] = dots + i * result->k;
	}
	loops_best()->dots(batch, result->centroids, result->k, run->matrix->stride, out);
	for (size_t i = 0; i < count; i++) {
		uint32_t before = result->clusters[rows[i]];

		assign_row(run, rows[i], out[i]);
		if (run->first)
			add_row(run, part, rows[i], result->clusters[rows[i]], false);
		else if (result->clusters[rows[i]] != before) {
			add_row(run, part, rows[i], before, true);
			add_row(run, part, rows[i], result->clusters[rows[i]], false);
		}
	}
}

/* Assigns the rows of a part, and updates its sums. */
static void assign_part(void *argument, size_t index)
{
	struct run *run = argument;
	struct part *part = &run->parts[index];
	size_t n = run->matrix->n, waiting = 0, rows[BATCH];
	size_t begin = parts_begin(n, run->part_count, index);
	size_t end = parts_begin(n, run->part_count, index + 1);
	float *dots = memory_new(BATCH * run->result->k, sizeof *dots);

	for (size_t row = begin; row < end; row++) {
		if (run->first || may_change(run, row))
			rows[waiting++] = row;
		if (waiting == BATCH || (waiting > 0 && row + 1 == end)) {
			compare_rows(run, part, rows, waiting, dots);
			waiting = 0;
		}
	}
	part->error = 0;
	part->farthest = -1;
	for (size_t row = begin; row < end; row++) {
		float distance = run->result->distances[row];

		part->error += (double)distance;
		if (distance > part->farthest) {
			part->farthest = distance;
			part->farthest_row = row;
		}
	}
	free(dots);
}

/* The row that lies farthest from its centroid, where an empty cluster starts again. Each part
 * gives one such row an iteration. */
static size_t farthest_row(struct run *run)
{
	struct part *farthest = &run->parts[0];

	for (size_t i = 1; i < run->part_count; i++)
		if (run->parts[i].farthest > farthest->farthest)
			farthest = &run->parts[i];
	farthest->farthest = -1;
	return farthest->farthest_row;
}

/* Moves a centroid to the mean of its rows. */
static void set_centroid(struct run *run, size_t cluster)
{
	size_t stride = run->matrix->stride;
	float *centroid = run->result->centroids + cluster * stride;
	uint64_t count = 0;

	memset(run->sum, 0, stride * sizeof *run->sum);
	for (size_t part = 0; part < run->part_count; part++) {
		const double *sums = run->parts[part].sums + cluster * stride;

		count += run->parts[part].counts[cluster];
		for (size_t i = 0; i < stride; i++)
			run->sum[i] += sums[i];
	}
	if (count == 0) {
		memcpy(centroid, matrix_row(run->matrix, farthest_row(run)),
			stride * sizeof *centroid);
		return;
	}
	for (size_t i = 0; i < stride; i++)
		centroid[i] = (float)(run->sum[i] / (double)count);
}

/* Moves all centroids and notes the two largest moves. */
static void move_centroids(struct run *run)
{
	struct kmeans *result = run->result;
	size_t stride = run->matrix->stride;

	memcpy(run->before, result->centroids, result->k * stride * sizeof *run->before);
	run->most_moved = run->second_moved = 0;
	for (size_t i = 0; i < result->k; i++) {
		float moved;

		set_centroid(run, i);
		moved = length(loops_best()->square(
			run->before + i * stride, result->centroids + i * stride, stride));
		if (moved > run->most_moved) {
			run->second_moved = run->most_moved;
			run->most_moved = moved;
			run->most_moved_cluster = i;
		} else if (moved > run->second_moved) {
			run->second_moved = moved;
		}
	}
}

/* Assigns all rows; returns the error. */
static double assign(struct run *run)
{
	double error = 0;

	measure_gaps(run);
	parts_run(run->parallel, assign_part, run, run->part_count);
	for (size_t i = 0; i < run->part_count; i++)
		error += run->parts[i].error;
	return error;
}

/* Lloyd's iteration from the centroids in the result. */
static void iterate(struct run *run, size_t iterations, double settled)
{
	struct kmeans *result = run->result;

	run->first = true;
	result->error = assign(run);
	run->first = false;
	for (result->iterations = 1; result->iterations < iterations; result->iterations++) {
		double before = result->error;

		move_centroids(run);
		result->error = assign(run);
		if (fabs(before - result->error) < settled)
			break;
	}
}

static struct kmeans *result_new(size_t n, size_t k, size_t stride)
{
	struct kmeans *result = memory_new(1, sizeof *result);

	*result = (struct kmeans){.k = k,
		.centroids = memory_new(k * stride, sizeof *result->centroids),
		.clusters = memory_new(n, sizeof *result->clusters),
		.distances = memory_new(n, sizeof *result->distances)};
	return result;
}

void kmeans_free(struct kmeans *result)
{
	if (!result)
		return;
	free(result->centroids);
	free(result->clusters);
	free(result->distances);
	free(result);
}

static void run_open(struct run *run)
{
	size_t n = run->matrix->n, stride = run->matrix->stride, k = run->result->k;

	run->part_count = parts_count(n);
	run->parts = memory_new(run->part_count, sizeof *run->parts);
	for (size_t i = 0; i < run->part_count; i++) {
		run->parts[i].sums = memory_new(k * stride, sizeof *run->parts[i].sums);
		run->parts[i].counts = memory_new(k, sizeof *run->parts[i].counts);
	}
	run->squares = memory_new(n, sizeof *run->squares);
	run->lower = memory_new(n, sizeof *run->lower);
	run->centroid_squares = memory_new(k, sizeof *run->centroid_squares);
	run->half_gaps = memory_new(k, sizeof *run->half_gaps);
	run->before = memory_new(k * stride, sizeof *run->before);
	run->sum = memory_new(stride, sizeof *run->sum);
	run->most_moved_cluster = k;
	for (size_t row = 0; row < n; row++) {
		const float *values = matrix_row(run->matrix, row);

		for (size_t i = 0; i < stride; i++)
			run->squares[row] += values[i] * values[i];
	}
}

static void run_close(struct run *run)
{
	for (size_t i = 0; i < run->part_count; i++) {
		free(run->parts[i].sums);
		free(run->parts[i].counts);
	}
	free(run->parts);
	free(run->squares);
	free(run->lower);
	free(run->centroid_squares);
	free(run->half_gaps);
	free(run->before);
	free(run->sum);
}

/* A copy of evenly spaced rows from a random start: groups of neighbouring rows are all
 * represented. malloc. */
static float *sample_new(const struct matrix *matrix, size_t size, uint64_t *random)
{
	float *rows = memory_new(size * matrix->stride, sizeof *rows);
	double step = (double)matrix->n / (double)size, at = random_unit(random) * step;

	for (size_t i = 0; i < size; i++) {
		size_t row = (size_t)(at + (double)i * step);

		memcpy(rows + i * matrix->stride,
			matrix_row(matrix, row < matrix->n ? row : matrix->n - 1),
			matrix->stride * sizeof *rows);
	}
	return rows;
}

/* Of some seedings, each with an iteration, the one with the smallest error; on a sample if there
 * are many rows. */
static struct kmeans *best_attempt(
	const struct matrix *matrix, size_t k, const struct kmeans_options *options)
{
	uint64_t random = options->seed;
	size_t wanted = SAMPLE_EACH * k > SAMPLE ? SAMPLE_EACH * k : SAMPLE;
	struct matrix sample = *matrix;
	float *copy = NULL;
	struct kmeans *best = NULL;

	if (wanted < matrix->n) {
		copy = sample_new(matrix, wanted, &random);
		sample = (struct matrix){copy, wanted, matrix->stride};
	}
	for (size_t i = 0; i < ATTEMPTS; i++) {
		struct run run = {.matrix = &sample,
			.parallel = options->parallel,
			.result = result_new(sample.n, k, sample.stride)};
		bool better;

		run_open(&run);
		kmeans_seed(
			&sample, run.squares, k, options->parallel, &random, run.result->centroids);
		iterate(&run, ATTEMPT_ITERATIONS, 1);
		run_close(&run);
		better = !best || run.result->error < best->error;
		kmeans_free(better ? best : run.result);
		best = better ? run.result : best;
	}
	free(copy);
	return best;
}

struct kmeans *kmeans_new(const struct matrix *matrix, const struct kmeans_options *options)
{
	size_t k = options->k < matrix->n ? options->k : matrix->n;
	struct run run = {.matrix = matrix, .parallel = options->parallel};
	struct kmeans *start;

	if (k == 0)
		return result_new(matrix->n, 0, matrix->stride);
	start = best_attempt(matrix, k, options);
	run.result = result_new(matrix->n, k, matrix->stride);
	memcpy(run.result->centroids, start->centroids,
		k * matrix->stride * sizeof *start->centroids);
	kmeans_free(start);
	run_open(&run);
	iterate(&run, ITERATIONS, options->settled > 0 ? options->settled : 1);
	run_close(&run);
	return run.result;
}

size_t kmeans_stride(size_t width)
{
	return (width + FLOAT_LANES - 1) / FLOAT_LANES * FLOAT_LANES;
}

size_t kmeans_default_k(size_t n)
{
	size_t k = (size_t)(40.0 * (double)n / 30000) + 10;

	return k < n ? k : n;
}
