/*
 * Each next seed is drawn several times over, by the share of what the seeds so far leave, and that
 * draw is taken which leaves least (Arthur and Vassilvitskii 2007, "greedy").
 */
#include "detectors/kmeans_seed.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "detectors/distance.h"
#include "detectors/random.h"
#include "detectors/scratch.h"

enum { MOST_TRIALS = 16, BATCH = DISTANCE_ROWS };

/* Rows that may become the next seed, and what each would leave. */
struct seeding {
	const struct matrix *matrix;
	const struct distance *distance;
	const struct parallel *parallel;
	const float *squares;
	float *nearest; /* squared distance of each row to the nearest seed */
	float *trials;  /* rows, one after the other */
	float trial_squares[MOST_TRIALS];
	size_t trial_count, chosen;
	size_t part_count;
	double (*left)[MOST_TRIALS]; /* for each part */
	bool keep;                   /* note the nearest for the chosen one */
};

static float squared(const struct seeding *seeding, size_t row, size_t trial, float dot)
{
	float square = seeding->squares[row] + seeding->trial_squares[trial] - 2 * dot;

	return square > 0 ? square : 0;
}

static void try_rows(struct seeding *seeding, size_t first, size_t count, double *left)
{
	float dots[BATCH][MOST_TRIALS], *out[BATCH];
	const float *rows[BATCH];

	for (size_t i = 0; i < BATCH; i++) {
		rows[i] = matrix_row(seeding->matrix, first + (i < count ? i : 0));
		out[i] = dots[i];
	}
	seeding->distance->dots(
		rows, seeding->trials, seeding->trial_count, seeding->matrix->stride, out);
	for (size_t i = 0; i < count; i++)
		for (size_t trial = 0; trial < seeding->trial_count; trial++) {
			float *nearest = &seeding->nearest[first + i];
			float square = squared(seeding, first + i, trial, dots[i][trial]);

			if (square > *nearest)
				square = *nearest;
			left[trial] += (double)square;
			if (seeding->keep)
				*nearest = square;
		}
}

static void try_part(void *argument, size_t index)
{
	struct seeding *seeding = argument;
	size_t n = seeding->matrix->n, end = parts_begin(n, seeding->part_count, index + 1);
	double *left = seeding->left[index];

	memset(left, 0, sizeof seeding->left[index]);
	for (size_t row = parts_begin(n, seeding->part_count, index); row < end; row += BATCH)
		try_rows(seeding, row, end - row < BATCH ? end - row : BATCH, left);
}

static void set_trial(struct seeding *seeding, size_t trial, size_t row)
{
	size_t stride = seeding->matrix->stride;

	memcpy(seeding->trials + trial * stride, matrix_row(seeding->matrix, row),
		stride * sizeof *seeding->trials);
	seeding->trial_squares[trial] = seeding->squares[row];
}

/* A row, by its share in what is left; any row if nothing is. */
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

static double left_by(const struct seeding *seeding, size_t trial)
{
	double sum = 0;

	for (size_t part = 0; part < seeding->part_count; part++)
		sum += seeding->left[part][trial];
	return sum;
}

/* Draws the trials, takes the one that leaves least as the seed and returns what it leaves. */
static double choose_seed(
	struct seeding *seeding, size_t trials, double total, uint64_t *random, float *seed)
{
	size_t stride = seeding->matrix->stride, best = 0;

	seeding->trial_count = trials;
	seeding->keep = false;
	for (size_t trial = 0; trial < trials; trial++)
		set_trial(seeding, trial, draw(seeding, total, random));
	if (trials > 1)
		parts_run(seeding->parallel, try_part, seeding, seeding->part_count);
	for (size_t trial = 1; trial < trials; trial++)
		if (left_by(seeding, trial) < left_by(seeding, best))
			best = trial;
	memmove(seeding->trials, seeding->trials + best * stride, stride * sizeof *seeding->trials);
	seeding->trial_squares[0] = seeding->trial_squares[best];
	memcpy(seed, seeding->trials, stride * sizeof *seed);
	seeding->trial_count = 1;
	seeding->keep = true;
	parts_run(seeding->parallel, try_part, seeding, seeding->part_count);
	return left_by(seeding, 0);
}

void kmeans_seed(const struct matrix *matrix, const float *squares, size_t k,
	const struct parallel *parallel, uint64_t *random, float *centroids)
{
	size_t trials = 2 + (size_t)log((double)k), parts = parts_count(matrix->n);
	struct seeding seeding = {.matrix = matrix,
		.distance = distance_best(),
		.parallel = parallel,
		.squares = squares,
		.nearest = scratch_resize(NULL, matrix->n, sizeof *seeding.nearest),
		.trials =
			scratch_resize(NULL, MOST_TRIALS * matrix->stride, sizeof *seeding.trials),
		.part_count = parts,
		.left = scratch_resize(NULL, parts, sizeof *seeding.left)};
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
