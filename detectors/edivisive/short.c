/*
 * Series of few points: docs/design/algorithms.md section 2.6. The test of two segments has to
 * allow for autocorrelation and for the choice of the place, for which so few points say too
 * little. Here a place that `kernel` finds, and that Student's test confirms, is a change.
 */
#include <math.h>

#include "detectors/edivisive/chunk.h"
#include "detectors/kernel.h"

/* The most points that are few; of a service, whose hours of the first day look like levels. */
enum { SHORT = 40, SHORT_SERVICE = 24 };
static const double MOST_CORRELATED = 0.9;
static const struct kernel_options kernel_options = {.penalty = 1, .min_size = LEAST_SIDE};

/* The places of the kernel detector. */
static size_t kernel_places(const struct chunk *chunk, size_t places[SHORT])
{
	double values[SHORT];
	struct change changes[SHORT];
	for (size_t i = 0; i < chunk->n; i++)
		values[i] = chunk->x[i] + chunk->shift;
	const struct samples samples = {.values = values, .n = chunk->n};
	struct scratch *scratch = scratch_new();
	size_t count = kernel_detector.detect(&samples, &kernel_options, scratch, changes);
	scratch_free(scratch);
	for (size_t i = 0; i < count; i++)
		places[i] = changes[i].index;
	return count;
}

/* Student's test with a common variance, inflated for autocorrelation. */
static double p_of(const double *y, size_t start, size_t tau, size_t end)
{
	struct moments before = moments_of(y + start, tau - start);
	struct moments after = moments_of(y + tau, end - tau);
	double within = before.squares + after.squares, df = (double)(end - start - 2);
	double shares = 1 / (double)before.n + 1 / (double)after.n;
	if (within <= 0)
		return 1;
	double r = (moments_lagged(y + start, before) + moments_lagged(y + tau, after)) / within;
	r = fmin(fmax(r, 0), MOST_CORRELATED);
	double variance = within / df * shares * (1 + r) / (1 - r);
	return student_two_sided((after.mean - before.mean) / sqrt(variance), df);
}

size_t chunk_short(const struct chunk *chunk, struct chunk_step *steps)
{
	size_t places[SHORT], n = chunk->n, found = 0;
	if (n < 2 * LEAST_SIDE || n > (chunk->excursion > 0 ? SHORT_SERVICE : SHORT))
		return 0;
	size_t count = kernel_places(chunk, places);
	for (size_t i = 0; i < count; i++) {
		size_t start = i > 0 ? places[i - 1] : 0, end = i + 1 < count ? places[i + 1] : n;
		double p = p_of(chunk->y, start, places[i], end);
		if (p < chunk->options.p_value)
			steps[found++] = (struct chunk_step){.tau = places[i], .p = p};
	}
	return found;
}
