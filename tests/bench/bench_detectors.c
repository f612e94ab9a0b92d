/*
 * How fast detection is, on one core, without reading or printing anything: one table row a case.
 * Series are seeded; every second one holds a step of 5% in 2% noise, the others none. Each case is
 * timed several times over all its series and the best time counts. Peak memory is the process's so
 * far.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "detectors/edivisive/edivisive.h"

enum { ROUNDS = 7, APPENDS = 1000 };

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* xorshift64*, seeded with anything but 0. */
static double unit(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (double)((*state * 0x2545f4914f6cdd1d) >> 11) * 0x1p-53;
}

static double normal(uint64_t *state)
{
	return sqrt(-2 * log(unit(state) + 1e-300)) * cos(2 * M_PI * unit(state));
}

static double *make_series(size_t count, size_t n)
{
	uint64_t state = 42;
	double *values = malloc(count * n * sizeof(double));
	if (!values)
		abort();
	for (size_t s = 0; s < count; s++) {
		size_t at = s % 2 ? n / 4 + (size_t)(unit(&state) * (double)n / 2) : n;
		for (size_t i = 0; i < n; i++)
			values[s * n + i] = 100 + 2 * normal(&state) + (i >= at ? 5 : 0);
	}
	return values;
}

static void print_row(const char *what, size_t n, double seconds, double runs, size_t found)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	printf("%-44s %8zu %10.2f us %12.0f /s %8zu %8.1f MB\n", what, n, seconds / runs * 1e6,
		runs / seconds, found, (double)usage.ru_maxrss / 1024);
}

static void bench_detect(const char *what, int profile, size_t count, size_t n)
{
	struct edivisive_options options = {.window = 50, .p_value = 0.001, .profile = profile};
	struct scratch *scratch = scratch_new();
	double *values = make_series(count, n), best = HUGE_VAL;
	struct change *changes = malloc(n * sizeof(*changes));
	size_t found = 0;
	for (int round = 0; round < ROUNDS; round++) {
		double start = now();
		found = 0;
		for (size_t s = 0; s < count; s++) {
			struct samples samples = {.values = values + s * n, .n = n};
			found += edivisive_detector.detect(&samples, &options, scratch, changes);
		}
		best = fmin(best, now() - start);
	}
	print_row(what, n, best, (double)count, found);
	free(changes);
	free(values);
	scratch_free(scratch);
}

/* Streams of n values get APPENDS more, one at a time. */
static void bench_append(const char *what, int profile, size_t count, size_t n)
{
	struct edivisive_options options = {.window = 50, .p_value = 0.001, .profile = profile};
	struct scratch *scratch = scratch_new();
	size_t length = n + APPENDS, found = 0;
	double *values = make_series(count, length), best = HUGE_VAL;
	for (int round = 0; round < ROUNDS; round++) {
		double sum = 0;
		found = 0;
		for (size_t s = 0; s < count; s++) {
			size_t changes = 0;
			const double *series = values + s * length;
			struct stream *stream = edivisive_detector.stream_new(&options, 0);
			edivisive_detector.stream_append(stream, series, n, scratch, &changes);
			double start = now();
			for (size_t i = n; i < length; i++)
				edivisive_detector.stream_append(
					stream, series + i, 1, scratch, &changes);
			sum += now() - start;
			found += changes;
			edivisive_detector.stream_free(stream);
		}
		best = fmin(best, sum);
	}
	print_row(what, n, best, (double)(count * APPENDS), found);
	free(values);
	scratch_free(scratch);
}

int main(void)
{
	printf("%-44s %8s %13s %15s %8s %11s\n", "work", "points", "each", "rate", "found", "peak");
	bench_detect("edivisive, profile otava", EDIVISIVE_OTAVA, 1000, 200);
	bench_detect("edivisive, profile otava", EDIVISIVE_OTAVA, 200, 1000);
	bench_detect("edivisive, profile otava", EDIVISIVE_OTAVA, 20, 10000);
	bench_detect("edivisive, default profile", EDIVISIVE_DEFAULT, 1000, 200);
	bench_detect("edivisive, default profile", EDIVISIVE_DEFAULT, 200, 1000);
	bench_detect("edivisive, default profile", EDIVISIVE_DEFAULT, 20, 10000);
	bench_append("one point appended, default profile", EDIVISIVE_DEFAULT, 20, 1000);
	bench_append("one point appended, default profile", EDIVISIVE_DEFAULT, 4, 100000);
	bench_append("one point appended, profile otava", EDIVISIVE_OTAVA, 20, 1000);
	return 0;
}
