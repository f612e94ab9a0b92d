/*
 * Writes generated series with their truth, as `hunter-c evaluate` reads them, a line each.
 *
 *     write_series [--series N] [--first SEED] [--hard]       N of each class, from that seed on
 *
 * Ramps and excursions have no place to be found at: their spans are unsure.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/generate.h"

static void write_values(const struct labelled *series)
{
	printf(", \"series\": [");
	for (size_t i = 0; i < series->n; i++) {
		if (isnan(series->values[i]))
			printf("%snull", i ? ", " : "");
		else
			printf("%s%.6g", i ? ", " : "", series->values[i]);
	}
	printf("]}\n");
}

static void write_one(const struct series_class *c, uint64_t seed)
{
	static struct labelled series;
	series_generate(c, seed, &series);
	printf("{\"id\": \"%s/%llu\", \"class\": \"%s\", \"change_points\": [", c->name,
		(unsigned long long)seed, c->name);
	for (size_t k = 0; k < series.truth_count && c->group <= GROUP_MULTI; k++)
		printf("%s%zu", k ? ", " : "", series.truth[k]);
	printf("]");
	size_t back = series.span_end < series.n ? series.span_end + 1 : series.n;
	if (series.span_end > 0)
		printf(", \"unsure\": [[%zu, %zu]]", series.span_start, back);
	if (c->dependent)
		printf(", \"dependent\": true");
	write_values(&series);
}

int main(int argc, char **argv)
{
	size_t count = 50;
	uint64_t first = 1;
	bool hard = false;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--hard") == 0)
			hard = true;
		else if (i + 1 < argc && strcmp(argv[i], "--series") == 0)
			count = strtoul(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--first") == 0)
			first = strtoul(argv[++i], NULL, 10);
		else {
			fprintf(stderr, "write_series: what is %s?\n", argv[i]);
			return 2;
		}
	}
	for (size_t k = 0; k < series_class_count; k++)
		for (uint64_t i = 0; i < count && series_classes[k].hard == hard; i++)
			write_one(&series_classes[k], first + i);
	return 0;
}
