/*
 * Series of few points: docs/algorithms.md section 2.6. The test of two segments has to allow for
 * autocorrelation, which so few points cannot show. Here a place that `kernel` and `modes` both
 * find, and that Student's test does not reject, is a change.
 */
#include <math.h>
#include <stdlib.h>

#include "detectors/edivisive/chunk.h"
#include "detectors/kernel.h"
#include "detectors/modes.h"

enum { SHORT = 25, AGREED = 2 };
static const double MOST_CORRELATED = 0.9;
static const struct kernel_options kernel_options = {.penalty = 1, .min_size = LEAST_SIDE};
static const struct modes_options modes_options = {.window = 5, .modes = 6, .apart = 0.02};

/* The places of the kernel detector near which modes finds one, too. */
static size_t agreed_places(const struct samples *samples, size_t places[SHORT])
{
	struct change ours[SHORT], theirs[SHORT];
	struct scratch *scratch = scratch_new();
	size_t count = kernel_detector.detect(samples, &kernel_options, scratch, ours);
	size_t others = modes_detector.detect(samples, &modes_options, scratch, theirs), agreed = 0;
	scratch_free(scratch);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < others; j++)
			if (theirs[j].index <= ours[i].index + AGREED &&
				ours[i].index <= theirs[j].index + AGREED) {
				places[agreed++] = ours[i].index;
				break;
			}
	return agreed;
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
	double values[SHORT];
	if (n < 2 * LEAST_SIDE || n >= SHORT)
		return 0;
	for (size_t i = 0; i < n; i++)
		values[i] = chunk->x[i] + chunk->shift;
	const struct samples samples = {.values = values, .n = n};
	size_t count = agreed_places(&samples, places);
	for (size_t i = 0; i < count; i++) {
		size_t start = i > 0 ? places[i - 1] : 0, end = i + 1 < count ? places[i + 1] : n;
		double p = p_of(chunk->y, start, places[i], end);
		if (p < chunk->options.p_value)
			steps[found++] = (struct chunk_step){.tau = places[i], .p = p};
	}
	return found;
}
