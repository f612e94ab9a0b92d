/*
 * Any doubles under any options: every detector ends, reports change points in order and in range,
 * and a stream fed in two pieces says the same as a full run. The first byte chooses detector and
 * options, the second where to cut; the rest are values, of eight bytes each or, for an odd first
 * byte, of one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "detectors/edivisive.h"
#include "detectors/edivisive_permutation.h"

enum { MOST = 600 };

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
	struct stream *stream = edivisive_detector.stream_new(&options);
	cut = cut < n ? cut : n;
	edivisive_detector.stream_append(stream, values, cut, scratch, &streamed);
	const struct change *last =
		edivisive_detector.stream_append(stream, values + cut, n - cut, scratch, &streamed);
	check(streamed == count);
	check(count == 0 || memcmp(last, changes, count * sizeof(*changes)) == 0);
	edivisive_detector.stream_free(stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static double values[MOST];
	static struct change changes[MOST];
	if (size < 2)
		return 0;
	struct scratch *scratch = scratch_new();
	size_t n = read_values(data + 2, size - 2, data[0] & 1, values);
	check_edivisive(data[0], 2 * (size_t)data[1], values, n, scratch, changes);
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
