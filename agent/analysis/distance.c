/*
 * The vector build multiplies four rows by three columns at a time: the twelve running sums stay in
 * registers, seven loads feed twelve multiplications, and columns that do not fit into the nearest
 * cache are read once for four rows, so that memory bandwidth is not the limit.
 */
#include "agent/analysis/distance.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { LANES = DISTANCE_LANES, ROWS = DISTANCE_ROWS, COLUMNS = 3 };

/* Adds the lanes in the order of the vector build. */
static float add_lanes(const float lanes[LANES])
{
	float a = lanes[0] + lanes[4], b = lanes[1] + lanes[5];
	float c = lanes[2] + lanes[6], d = lanes[3] + lanes[7];

	return (a + c) + (b + d);
}

static float dot(const float *a, const float *b, size_t stride)
{
	float lanes[LANES] = {0};

	for (size_t i = 0; i < stride; i += LANES)
		for (size_t lane = 0; lane < LANES; lane++)
			lanes[lane] += a[i + lane] * b[i + lane];
	return add_lanes(lanes);
}

static void dots_scalar(const float *const *rows, const float *columns, size_t count, size_t stride,
	float *const *out)
{
	for (size_t column = 0; column < count; column++)
		for (size_t row = 0; row < ROWS; row++)
			out[row][column] = dot(rows[row], columns + column * stride, stride);
}

static float square_scalar(const float *a, const float *b, size_t stride)
{
	float lanes[LANES] = {0};

	for (size_t i = 0; i < stride; i += LANES)
		for (size_t lane = 0; lane < LANES; lane++) {
			float difference = a[i + lane] - b[i + lane];

			lanes[lane] += difference * difference;
		}
	return add_lanes(lanes);
}

static const struct distance scalar = {dots_scalar, square_scalar};

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))
#define AVX2_INLINE static inline __attribute__((target("avx2"), always_inline))

AVX2_INLINE float add_vector(__m256 lanes)
{
	__m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
	__m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));

	return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

AVX2_INLINE __m256 add_product(__m256 sum, __m256 a, __m256 b)
{
	return _mm256_add_ps(sum, _mm256_mul_ps(a, b));
}

AVX2_INLINE void dots_block(const float *const *rows, const float *columns, size_t count,
	size_t stride, size_t at, float *const *out)
{
	__m256 sums[ROWS][COLUMNS];

	for (size_t row = 0; row < ROWS; row++)
		for (size_t column = 0; column < count; column++)
			sums[row][column] = _mm256_setzero_ps();
	for (size_t i = 0; i < stride; i += LANES) {
		__m256 others[COLUMNS];

		for (size_t column = 0; column < count; column++)
			others[column] = _mm256_loadu_ps(columns + column * stride + i);
		for (size_t row = 0; row < ROWS; row++) {
			__m256 values = _mm256_loadu_ps(rows[row] + i);

			for (size_t column = 0; column < count; column++)
				sums[row][column] =
					add_product(sums[row][column], values, others[column]);
		}
	}
	for (size_t row = 0; row < ROWS; row++)
		for (size_t column = 0; column < count; column++)
			out[row][at + column] = add_vector(sums[row][column]);
}

AVX2 static void dots_avx2(const float *const *rows, const float *columns, size_t count,
	size_t stride, float *const *out)
{
	size_t at = 0;

	for (; at + COLUMNS <= count; at += COLUMNS)
		dots_block(rows, columns + at * stride, COLUMNS, stride, at, out);
	for (; at < count; at++)
		dots_block(rows, columns + at * stride, 1, stride, at, out);
}

AVX2 static float square_avx2(const float *a, const float *b, size_t stride)
{
	__m256 sum = _mm256_setzero_ps();

	for (size_t i = 0; i < stride; i += LANES) {
		__m256 difference = _mm256_sub_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));

		sum = add_product(sum, difference, difference);
	}
	return add_vector(sum);
}

static const struct distance avx2 = {dots_avx2, square_avx2};

const struct distance *distance_best(void)
{
	return __builtin_cpu_supports("avx2") ? &avx2 : &scalar;
}

#else

const struct distance *distance_best(void)
{
	return &scalar;
}

#endif

const struct distance *distance_scalar(void)
{
	return &scalar;
}

size_t distance_stride(size_t width)
{
	return (width + LANES - 1) / LANES * LANES;
}
