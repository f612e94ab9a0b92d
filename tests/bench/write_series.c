/*
 * Writes generated series with their truth, as `hunter-c evaluate` reads them, a line each.
 *
 *     write_series [--series N] [--first SEED] [--hard|--service [--days N]]
 *
 * N of each class, from that seed on; with --service those of generate_service.h, which have times,
 * each of so many days.
 * Ramps and excursions have no place to be found at: their spans are unsure.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/generate.h"
#include "tests/bench/generate_service.h"

static void write_values(const double *values, size_t n)
{
	printf(", \"series\": [");
	for (size_t i = 0; i < n; i++) {
		if (isnan(values[i]))
			printf("%snull", i ? ", " : "");
		else
			printf("%s%.6g", i ? ", " : "", values[i]);
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
	write_values(series.values, series.n);
}

static void write_service(size_t number, uint64_t seed, size_t days)
{
	static struct service_series series;
	service_generate(number, seed, days, &series);
	const char *group = series.truth_count == 0  ? "flat"
			    : series.truth_count > 1 ? "several"
						     : "step";
	printf("{\"id\": \"%s/%llu\", \"class\": \"%s\", \"family\": \"%s\", \"group\": \"%s\", ",
		series.name, (unsigned long long)seed, series.name, service_families[series.family],
		group);
	printf("\"size\": %g, \"start\": %lld, \"step\": %lld, \"change_points\": [", series.size,
		(long long)series.start, (long long)series.step);
	for (size_t k = 0; k < series.truth_count; k++)
		printf("%s%zu", k ? ", " : "", series.truth[k]);
	printf("]");
	write_values(series.values, series.n);
}

int main(int argc, char **argv)
{
	size_t count = 50, days = 0;
	uint64_t first = 1;
	bool hard = false, service = false;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--hard") == 0)
			hard = true;
		else if (strcmp(argv[i], "--service") == 0)
			service = true;
		else if (i + 1 < argc && strcmp(argv[i], "--series") == 0)
			count = strtoul(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--first") == 0)
			first = strtoul(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--days") == 0)
			days = strtoul(argv[++i], NULL, 10);
		else {
			fprintf(stderr, "write_series: what is %s?\n", argv[i]);
			return 2;
		}
	}
	for (size_t k = 0; k < series_class_count && !service; k++)
		for (uint64_t i = 0; i < count && series_classes[k].hard == hard; i++)
			write_one(&series_classes[k], first + i);
	for (size_t k = 0; k < service_class_count && service; k++)
		for (uint64_t i = 0; i < count; i++)
			write_service(k, first + i, days);
	return 0;
}
