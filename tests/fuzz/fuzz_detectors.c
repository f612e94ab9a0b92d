/*
 * Any doubles under any options: every detector ends, reports change points in order and in range,
 * and a stream fed in two pieces says the same as a full run. The first byte chooses detector and
 * options, the second where to cut; the rest are values, of eight bytes each or, for an odd first
 * byte, of one. The detectors without streams are run with options and runs that the same two bytes
 * choose.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "detectors/combine.h"
#include "detectors/edivisive/edivisive.h"
#include "detectors/edivisive/permutation.h"
#include "detectors/kernel.h"
#include "detectors/lookback.h"
#include "detectors/modes.h"
#include "detectors/stepfit.h"
#include "tests/unit/same_change.h"

enum { MOST = 600, MOST_OTHERS = 150 }; /* which are slower */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_changes(const struct change *changes, size_t count, size_t n)
{
	for (size_t i = 0; i < count; i++) {
		check(changes[i].index >= 1 && changes[i].index < n);
		check(i == 0 || changes[i].index > changes[i - 1].index);
		check(changes[i].pvalue >= 0 && changes[i].pvalue <= 1);
		check(changes[i].count_before > 0 && changes[i].count_after > 0);
	}
}

static size_t read_values(const uint8_t *data, size_t size, bool bytes, double *values)
{
	size_t n = bytes ? size : size / sizeof(double);
	n = n < MOST ? n : MOST;
	for (size_t i = 0; i < n; i++)
		values[i] = bytes ? (data[i] == 255 ? nan("") : data[i]) : 0;
	if (!bytes && n > 0)
		memcpy(values, data, n * sizeof(double));
	return n;
}

static void check_edivisive(uint8_t choice, size_t cut, const double *values, size_t n,
	struct scratch *scratch, struct change *changes)
{
	static const int64_t windows[] = {50, 2, 3, 5, 8, 13, 1000000, 20};
	struct edivisive_options options = {
		.window = windows[choice >> 1 & 7],
		.p_value = choice & 16   ? 1
			   : choice & 32 ? 0.2
					 : 0.001,
		.magnitude = choice & 64 ? 0.05 : 0,
		.profile = choice & 128 ? EDIVISIVE_OTAVA : EDIVISIVE_DEFAULT,
	};
	struct samples samples = {.values = values, .n = n};
	size_t count = edivisive_detector.detect(&samples, &options, scratch, changes), streamed;
	check_changes(changes, count, n);
	struct stream *stream = edivisive_detector.stream_new(&options, 0);
	cut = cut < n ? cut : n;
	edivisive_detector.stream_append(stream, values, cut, scratch, &streamed);
	const struct change *last =
		edivisive_detector.stream_append(stream, values + cut, n - cut, scratch, &streamed);
	check(streamed == count);
	check(same_changes(last, changes, count));
	edivisive_detector.stream_free(stream);
}

/* Runs of one to three points, and few hashes. */
static void choose_runs(uint8_t choice, size_t n, size_t *runs, uint64_t *hashes)
{
	size_t run = 0, each = 1 + choice % 3;
	for (size_t i = 0; i < n; i++) {
		run += i % each == 0;
		runs[i] = run;
		hashes[i] = choice & 64 ? run / 2 % 5 : 0;
	}
}

static void check_detect(const struct detector *detector, const void *options,
	const struct samples *samples, struct scratch *scratch, struct change *changes)
{
	struct error error;
	if (detector->plugin.check && !detector->plugin.check(options, &error))
		return;
	check_changes(changes, detector->detect(samples, options, scratch, changes), samples->n);
}

static void check_others(uint8_t choice, uint8_t more, const struct samples *samples,
	struct scratch *scratch, struct change *changes)
{
	static const double penalties[] = {1, 0.001, 1e6, 3};
	static const double thresholds[] = {0, 1e-3, 1, 50};
	const struct kernel_options kernel = {.penalty = penalties[choice & 3],
		.min_size = 1 + more % 9,
		.magnitude = choice & 4 ? 0.05 : 0};
	const struct modes_options modes = {.window = 2 + more % 60,
		.modes = 1 + choice % MODES_MOST,
		.apart = choice & 4 ? 0.02 : 0,
		.magnitude = choice & 8 ? 0.01 : 0};
	const struct lookback_options lookback = {.runs = 1 + more % 40,
		.best = choice & 3,
		.magnitude = choice & 4 ? 0.01 : 0,
		.floor = choice & 8 ? 2 : 0,
		.p_value = choice & 16 ? 1 : 0.05,
		.deviations = choice & 32 ? 0 : 2.576,
		.min_samples = 1 + more % 5};
	const struct stepfit_options stepfit = {.algorithm = choice % 6,
		.threshold = thresholds[more & 3],
		.min_stddev = choice & 8 ? 1e-300 : 0.001,
		.radius = 2 + (more >> 2) % 12};
	const struct edivisive_options edivisive = {.window = 20,
		.p_value = 0.05,
		.profile = choice & 64 ? EDIVISIVE_OTAVA : EDIVISIVE_DEFAULT};
	const struct combine_member members[] = {
		{"edivisive", &edivisive}, {"modes", &modes}, {"lookback", &lookback}};
	const struct combine_options combine = {
		.tolerance = more % 20, .need = 1 + choice % 3, .members = members, .count = 3};
	check_detect(&kernel_detector, &kernel, samples, scratch, changes);
	check_detect(&modes_detector, &modes, samples, scratch, changes);
	check_detect(&lookback_detector, &lookback, samples, scratch, changes);
	check_detect(&stepfit_detector, &stepfit, samples, scratch, changes);
	check_detect(&combine_detector, &combine, samples, scratch, changes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static size_t runs[MOST];
	static uint64_t hashes[MOST];
	static double values[MOST];
	static struct change changes[MOST];
	if (size < 2)
		return 0;
	struct scratch *scratch = scratch_new();
	size_t n = read_values(data + 2, size - 2, data[0] & 1, values);
	check_edivisive(data[0], 2 * (size_t)data[1], values, n, scratch, changes);
	choose_runs(data[1], n, runs, hashes);
	const struct samples all = {.values = values,
		.n = n < MOST_OTHERS ? n : MOST_OTHERS,
		.direction = data[1] % 3 - 1,
		.runs = data[1] & 128 ? runs : NULL,
		.hashes = data[1] & 64 ? hashes : NULL};
	check_others(data[0], data[1], &all, scratch, changes);
	if (n <= 24) {
		struct edivisive_permutation_options options = {
			.permutations = 19, .p_value = 0.1, .seed = data[1]};
		struct samples samples = {.values = values, .n = n};
		check_changes(changes,
			edivisive_permutation_detector.detect(&samples, &options, scratch, changes),
			n);
	}
	scratch_free(scratch);
	return 0;
}
