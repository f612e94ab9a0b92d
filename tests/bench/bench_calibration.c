/*
 * What P means: false change points per 100 points of flat series, for the default profile, as a
 * table in Markdown. The promise is at most 5 P for independent points.
 *
 *     bench_calibration [SERIES]      (default 100,000 in all)
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "detectors/edivisive/edivisive.h"
#include "tests/bench/generate.h"

enum { LONGEST = 2000, LENGTHS = 6, LIMITS = 4, KINDS = 5 };

static const size_t lengths[LENGTHS] = {20, 50, 100, 200, 500, LONGEST};
static const double limits[LIMITS] = {0.05, 0.01, 0.001, 0.0001};
static const char *const kinds[KINDS] = {"normal", "uniform", "lognormal", "t, 3 df", "AR(1) 0.5"};

static double draw(size_t kind, uint64_t *state, double *last)
{
	double z = draw_normal(state);
	switch (kind) {
	case 1: return draw_unit(state);
	case 2: return exp(0.5 * z);
	case 3:
		return z / sqrt(pow(draw_normal(state), 2) + pow(draw_normal(state), 2) +
				   pow(draw_normal(state), 2));
	case 4: return *last = 0.5 * *last + z;
	default: return z;
	}
}

/* False change points for each limit, in `series` series of n points. */
static void measure(size_t kind, size_t n, size_t series, size_t out[static LIMITS])
{
	static double values[LONGEST];
	static struct change changes[LONGEST];
	struct edivisive_options options;
	struct scratch *scratch = scratch_new();
	uint64_t state = 1000 * kind + n;
	field_defaults(edivisive_detector.plugin.fields, &options);
	for (size_t s = 0; s < series; s++) {
		double last = 0;
		for (size_t i = 0; i < n; i++)
			values[i] = 100 + draw(kind, &state, &last);
		struct samples samples = {.values = values, .n = n};
		for (size_t k = 0; k < LIMITS; k++) {
			options.p_value = limits[k];
			out[k] += edivisive_detector.detect(&samples, &options, scratch, changes);
		}
	}
	scratch_free(scratch);
}

int main(int argc, char **argv)
{
	size_t series = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000, done = 0;
	printf("| noise | points | series | P = 0.05 | 0.01 | 0.001 | 0.0001 |\n"
	       "|---|--:|--:|--:|--:|--:|--:|\n");
	/* Short series are many: each length gets about as many points as the next. */
	const double shares[LENGTHS] = {0.4, 0.25, 0.15, 0.12, 0.06, 0.02};
	for (size_t kind = 0; kind < KINDS; kind++)
		for (size_t l = 0; l < LENGTHS; l++) {
			size_t count = (size_t)(shares[l] * (double)series / KINDS),
			       out[LIMITS] = {0};
			measure(kind, lengths[l], count, out);
			done += count;
			double hundreds = (double)(count * lengths[l]) / 100;
			printf("| %s | %zu | %zu |", kinds[kind], lengths[l], count);
			for (size_t k = 0; k < LIMITS; k++)
				printf(" %.2f P |", (double)out[k] / hundreds / limits[k]);
			printf("\n");
			fflush(stdout);
		}
	fprintf(stderr, "%zu series\n", done);
	return 0;
}
