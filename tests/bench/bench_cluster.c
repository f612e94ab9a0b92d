/*
 * What clustering takes: k-means over many series, on all cores, beside plain Lloyd iterations from
 * random starts on one, which are also what its error is held against. Prints rows for
 * tests/bench/run.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/analysis/cluster.h"
#include "agent/analysis/kmeans.h"
#include "agent/base/arena.h"
#include "agent/base/clock.h"
#include "agent/io/parallel.h"
#include "detectors/loops.h"
#include "detectors/random.h"

enum { POINTS = 250, SERIES = 40000, MANY = 400000, K = 50, STARTS = 3, ITERATIONS = 100 };

static double noise(uint64_t *random)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += random_unit(random);
	return sum - 6;
}

/* Noise, some of it autocorrelated, some with waves; every seventh series has a step. */
static void fill(double *values, size_t i, uint64_t *random)
{
	double step = i % 7 == 0 ? 6 * random_unit(random) : 0, rho = 0.45 * (double)(i % 3),
	       last = 0;
	size_t at = 50 + 10 * (i % 15);

	for (size_t j = 0; j < POINTS; j++) {
		last = rho * last + noise(random);
		values[j] = last + (j >= at ? step : 0) +
			    (i % 5 == 0 ? sin(0.1 * (double)(j * (1 + i % 4))) : 0);
	}
}

static struct matrix generate(size_t n)
{
	size_t stride = kmeans_stride(POINTS);
	float *rows = memory_new(n * stride, sizeof *rows);
	double values[POINTS];
	uint64_t random = 7;

	for (size_t i = 0; i < n; i++) {
		fill(values, i, &random);
		if (!cluster_shape(values, POINTS, rows + i * stride, stride))
			abort();
	}
	return (struct matrix){rows, n, stride};
}

static size_t nearest(const struct matrix *matrix, size_t row, const float *centroids, float *least)
{
	const struct loops *distance = loops_best();
	size_t best = 0;

	*least = HUGE_VAL;
	for (size_t i = 0; i < K; i++) {
		float square = distance->square(
			matrix_row(matrix, row), centroids + i * matrix->stride, matrix->stride);

		if (square < *least) {
			*least = square;
			best = i;
		}
	}
	return best;
}

/* One round of Lloyd's: every row to its nearest centroid, every centroid to the mean. */
static double round_of(const struct matrix *matrix, float *centroids)
{
	size_t stride = matrix->stride, counts[K] = {0};
	double *sums = memory_new(K * stride, sizeof *sums), error = 0;

	memset(sums, 0, K * stride * sizeof *sums);
	for (size_t row = 0; row < matrix->n; row++) {
		float square;
		size_t cluster = nearest(matrix, row, centroids, &square);

		error += sqrt((double)square);
		counts[cluster]++;
		for (size_t i = 0; i < stride; i++)
			sums[cluster * stride + i] += (double)matrix_row(matrix, row)[i];
	}
	for (size_t i = 0; i < K * stride; i++)
		if (counts[i / stride] > 0)
			centroids[i] = (float)(sums[i] / (double)counts[i / stride]);
	free(sums);
	return error;
}

static double plain(const struct matrix *matrix, uint64_t seed)
{
	size_t stride = matrix->stride;
	float *centroids = memory_new(K * stride, sizeof *centroids);
	double error = HUGE_VAL, before;

	for (size_t i = 0; i < K; i++)
		memcpy(centroids + i * stride,
			matrix_row(matrix, (size_t)(random_unit(&seed) * (double)matrix->n)),
			stride * sizeof *centroids);
	for (size_t i = 0; i < ITERATIONS; i++) {
		before = error;
		error = round_of(matrix, centroids);
		if (before - error < 1)
			break;
	}
	free(centroids);
	return error;
}

static double megabytes(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss / 1024;
}

/* Of all threads. */
static double processor(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* The fastest of several seeds; returns the error of the first. */
static double clustered(const struct matrix *matrix, const struct parallel *parallel, int seeds)
{
	double least = HUGE_VAL, cpu = HUGE_VAL, first = 0, before = megabytes();

	for (int seed = 1; seed <= seeds; seed++) {
		int64_t start = clock_monotonic_ns();
		double used = processor();
		struct kmeans *found = kmeans_new(
			matrix, &(struct kmeans_options){
					.k = K, .seed = (uint64_t)seed, .parallel = parallel});

		least = fmin(least, 1e-9 * (double)(clock_monotonic_ns() - start));
		cpu = fmin(cpu, processor() - used);
		if (seed == 1)
			first = found->error;
		kmeans_free(found);
	}
	printf("cluster\tk-means, %zu x %d points, k = %d, CPU %.1f s\t%.3g s\t%.0f series/s\t"
	       "+%.0f MB\n",
		matrix->n, POINTS, K, cpu, least, (double)matrix->n / least, megabytes() - before);
	fflush(stdout);
	return first;
}

static void compare(const struct matrix *matrix, double error)
{
	double best = HUGE_VAL, used = processor();

	for (uint64_t seed = 1; seed <= STARTS; seed++)
		best = fmin(best, plain(matrix, seed));
	used = (processor() - used) / STARTS;
	printf("cluster\tplain Lloyd from a random start, CPU %.1f s\t%.3g s\t\t\n", used, used);
	printf("cluster\tour error / the best of %d such\t%.4f\t\t\n", STARTS, error / best);
}

int main(void)
{
	struct team team = {0};
	struct parallel parallel = team_parallel(&team);
	struct matrix matrix = generate(SERIES);
	double error = clustered(&matrix, &parallel, 3);

	compare(&matrix, error);
	free((void *)(uintptr_t)matrix.rows);
	matrix = generate(MANY);
	clustered(&matrix, &parallel, 1);
	free((void *)(uintptr_t)matrix.rows);
	return 0;
}
