/*
 * What a gate decides of branches: how many of 10,000 that change nothing are called worse, and how
 * many that are slower are found, by noise and number of runs, as a table in Markdown; in brackets,
 * of how many it asks for another run. Main has 110 runs, and its last level, as the default
 * profile finds it, is the baseline.
 *
 *     bench_gate [BRANCHES]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/analysis/compare.h"
#include "detectors/edivisive/edivisive.h"
#include "tests/bench/generate.h"

enum { MAIN = 110, MOST = 10, COUNTS = 5, KINDS = 6, CASES = 4 };

static const int counts[COUNTS] = {1, 2, 3, 5, MOST};
static const char *const kinds[KINDS] = {
	"normal", "uniform", "lognormal", "t, 3 df", "AR(1) 0.5", "normal, 2% at +10 sd"};
static const double factors[CASES] = {1, 1.05, 1.1, 1.5};
static const double NOISE = 0.02, P = 0.001;

static double draw(size_t kind, uint64_t *state, double *last)
{
	double z = draw_normal(state);
	switch (kind) {
	case 1: return draw_unit(state) * sqrt(12);
	case 2: return exp(0.5 * z) / 0.604;
	case 3:
		return z / sqrt(pow(draw_normal(state), 2) + pow(draw_normal(state), 2) +
				   pow(draw_normal(state), 2));
	case 4: return *last = 0.5 * *last + sqrt(0.75) * z;
	case 5: return draw_unit(state) < 0.02 ? z + 10 : z;
	default: return z;
	}
}

/* How many of the branches are worse, and how many may be. */
struct verdicts {
	size_t worse, open;
};

/* Judges a branch of the last points, as `regressions --branch` does. */
static void judge(
	const double *values, size_t after, struct findings *main, struct verdicts *verdicts)
{
	struct compare_span span = stable_span(main, MAIN);
	struct comparison comparison =
		compare_spans(values, span, values, (struct compare_span){MAIN, MAIN + after});
	bool worse = comparison_is_regression(&comparison, -1, P);

	comparison.pvalue = comparison.plain_pvalue;
	verdicts->worse += worse;
	verdicts->open += !worse && comparison_is_regression(&comparison, -1, P);
}

static void measure(size_t kind, size_t branches, struct verdicts out[static COUNTS][CASES])
{
	static struct change changes[MAIN];
	struct edivisive_options options;
	struct scratch *scratch = scratch_new();
	uint64_t state = 77 + kind;
	struct axis axis = {.n = MAIN};
	struct series series = {.axis = &axis};
	field_defaults(edivisive_detector.plugin.fields, &options);
	for (size_t b = 0; b < branches; b++) {
		double values[MAIN + MOST], last = 0;
		for (size_t i = 0; i < MAIN + MOST; i++)
			values[i] = 20 * (1 + NOISE * draw(kind, &state, &last));
		struct samples samples = {.values = values, .n = MAIN};
		struct findings found = {.series = &series, .changes = changes};
		found.count = edivisive_detector.detect(&samples, &options, scratch, changes);
		for (size_t f = 0; f < CASES; f++) {
			double run[MAIN + MOST];
			for (size_t i = 0; i < MAIN + MOST; i++)
				run[i] = i < MAIN ? values[i] : values[i] + 20 * (factors[f] - 1);
			for (size_t c = 0; c < COUNTS; c++)
				judge(run, (size_t)counts[c], &found, &out[c][f]);
		}
	}
	scratch_free(scratch);
}

int main(int argc, char **argv)
{
	size_t branches = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
	printf("| noise | runs | unchanged, of %zu | +5%% | +10%% | +50%% "
	       "|\n|---|--:|--:|--:|--:|--:|\n",
		branches);
	for (size_t kind = 0; kind < KINDS; kind++) {
		struct verdicts out[COUNTS][CASES] = {0};
		measure(kind, branches, out);
		for (size_t c = 0; c < COUNTS; c++) {
			printf("| %s | %d | %zu (%zu) |", kinds[kind], counts[c], out[c][0].worse,
				out[c][0].open);
			for (size_t f = 1; f < CASES; f++)
				printf(" %.1f%% (%.1f%%) |",
					100 * (double)out[c][f].worse / (double)branches,
					100 * (double)out[c][f].open / (double)branches);
			printf("\n");
		}
		fflush(stdout);
	}
	return 0;
}
