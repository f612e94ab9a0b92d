/*
 * Clusters that were planted are found, and the same ones however the work is cut.
 */
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/kmeans.h"
#include "agent/base/arena.h"
#include "detectors/loops.h"
#include "detectors/random.h"

enum { WIDTH = 61 };

static double noise(uint64_t *random)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += random_unit(random);
	return sum - 6;
}

/* Rows about `kinds` shapes, row i of kind i % kinds. */
static struct matrix planted(size_t n, size_t kinds, double spread, uint64_t seed)
{
	size_t stride = kmeans_stride(WIDTH);
	float *rows = memory_new(n * stride, sizeof *rows);

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < WIDTH; j++)
			rows[i * stride + j] =
				(float)(4 * sin((double)(j * (i % kinds + 1)) * 0.21) +
					spread * noise(&seed));
	return (struct matrix){rows, n, stride};
}

static void matrix_free(struct matrix *matrix)
{
	free((void *)(uintptr_t)matrix->rows);
}

static void run_backwards(
	void *context, void (*part)(void *argument, size_t index), void *argument, size_t count)
{
	++*(int *)context;
	while (count-- > 0)
		part(argument, count);
}

static void test_kernels_agree(void **state)
{
	(void)state;
	struct matrix matrix = planted(DOTS_ROWS + 10, 7, 1, 3);
	const struct loops *kernels[] = {&loops_plain, loops_best()};
	float out[2][DOTS_ROWS][10];

	for (int kernel = 0; kernel < 2; kernel++) {
		const float *rows[DOTS_ROWS];
		float *to[DOTS_ROWS];

		for (size_t i = 0; i < DOTS_ROWS; i++) {
			rows[i] = matrix.rows + i * matrix.stride;
			to[i] = out[kernel][i];
		}
		kernels[kernel]->dots(
			rows, matrix.rows + DOTS_ROWS * matrix.stride, 10, matrix.stride, to);
	}
	assert_memory_equal(out[0], out[1], sizeof out[0]);
	for (size_t i = 0; i < DOTS_ROWS; i++) {
		double sum = 0, squares = 0;
		const float *a = matrix.rows + i * matrix.stride;
		const float *b = matrix.rows + (DOTS_ROWS + 9) * matrix.stride;
		float square = kernels[0]->square(a, b, matrix.stride);

		for (size_t j = 0; j < WIDTH; j++) {
			sum += (double)a[j] * (double)b[j];
			squares += pow((double)a[j] - (double)b[j], 2);
		}
		assert_true(fabs(sum - (double)out[0][i][9]) < 1e-3);
		assert_true(fabs(squares - (double)square) < 1e-3);
		assert_true(square == kernels[1]->square(a, b, matrix.stride));
	}
	matrix_free(&matrix);
}

static void test_planted_clusters(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct matrix matrix = planted(3000, 9, 0.5, seed);
		struct kmeans *found =
			kmeans_new(&matrix, &(struct kmeans_options){.k = 9, .seed = seed});

		assert_int_equal(found->k, 9);
		for (size_t i = 0; i < matrix.n; i++) {
			assert_int_equal(found->clusters[i], found->clusters[i % 9]);
			assert_true(found->distances[i] < 8);
		}
		for (size_t i = 0; i < 9; i++)
			for (size_t j = 0; j < i; j++)
				assert_int_not_equal(found->clusters[i], found->clusters[j]);
		kmeans_free(found);
		matrix_free(&matrix);
	}
}

/* Each row is with its nearest centroid, each centroid amid its rows: the bounds hide nothing. */
static void test_result_is_settled(void **state)
{
	(void)state;
	struct matrix matrix = planted(5000, 40, 3, 11);
	struct kmeans *found =
		kmeans_new(&matrix, &(struct kmeans_options){.k = 25, .seed = 4, .settled = 1e-9});
	double error = 0;

	for (size_t i = 0; i < matrix.n; i++) {
		double least = HUGE_VAL, own = 0;

		for (size_t c = 0; c < found->k; c++) {
			double square = 0;

			for (size_t j = 0; j < WIDTH; j++)
				square += pow(
					(double)matrix.rows[i * matrix.stride + j] -
						(double)found->centroids[c * matrix.stride + j],
					2);
			if (c == found->clusters[i])
				own = sqrt(square);
			least = fmin(least, sqrt(square));
		}
		assert_true(own - least < 1e-3);
		error += own;
	}
	assert_true(fabs(error - found->error) < 1e-4 * error);
	kmeans_free(found);
	matrix_free(&matrix);
}

static void test_same_however_cut(void **state)
{
	(void)state;
	struct matrix matrix = planted(20000, 30, 4, 5);
	int calls = 0;
	struct parallel backwards = {run_backwards, &calls};
	struct kmeans_options options = {.k = 20, .seed = 9};
	struct kmeans *plain = kmeans_new(&matrix, &options), *cut, *other;

	options.parallel = &backwards;
	cut = kmeans_new(&matrix, &options);
	options.seed = 10;
	other = kmeans_new(&matrix, &options);
	assert_true(calls > 0);
	assert_true(plain->error == cut->error);
	assert_int_equal(plain->iterations, cut->iterations);
	assert_memory_equal(plain->clusters, cut->clusters, matrix.n * sizeof *plain->clusters);
	assert_memory_equal(plain->centroids, cut->centroids,
		plain->k * matrix.stride * sizeof *plain->centroids);
	assert_true(other->error != plain->error);
	assert_true(fabs(other->error - plain->error) < 0.02 * plain->error);
	kmeans_free(plain);
	kmeans_free(cut);
	kmeans_free(other);
	matrix_free(&matrix);
}

static void test_odd_sizes(void **state)
{
	(void)state;
	static const size_t sizes[][2] = {{0, 5}, {1, 5}, {2, 1}, {3, 3}, {5, 9}, {7, 2}};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct matrix matrix = planted(sizes[i][0], 3, 0, 1);
		struct kmeans *found =
			kmeans_new(&matrix, &(struct kmeans_options){.k = sizes[i][1], .seed = 1});

		assert_true(found->k <= sizes[i][0] && found->k <= sizes[i][1]);
		for (size_t row = 0; row < sizes[i][0]; row++)
			assert_true(found->clusters[row] < found->k);
		kmeans_free(found);
		matrix_free(&matrix);
	}
	assert_int_equal(kmeans_default_k(0), 0);
	assert_int_equal(kmeans_default_k(5), 5);
	assert_int_equal(kmeans_default_k(30000), 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernels_agree),
		cmocka_unit_test(test_planted_clusters),
		cmocka_unit_test(test_result_is_settled),
		cmocka_unit_test(test_same_however_cut),
		cmocka_unit_test(test_odd_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
