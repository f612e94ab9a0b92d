/*
 * Labelled series as services and CI have them: daily and weekly cycles of several shapes, outages,
 * drift, saturation, counts, modes that stick, bad days, with steps in them or without.
 *
 * As in generate.h a class says what a series is made of and a seed which one it is; of each eight
 * seeds in succession four have no step, three have one, of 5, 10 and 20%, and one has three steps
 * of 10 to 20%.
 */
#ifndef TESTS_BENCH_GENERATE_SERVICE_H
#define TESTS_BENCH_GENERATE_SERVICE_H

#include <stddef.h>
#include <stdint.h>

enum service_family { FAMILY_SEASONAL, FAMILY_LEVEL, FAMILY_CI, FAMILIES };
extern const char *const service_families[FAMILIES]; /* "seas", "flat", "ci" */

enum { SERVICE_MOST = 120000, SERVICE_STEPS = 3 };

extern const size_t service_class_count;

struct service_series {
	const char *name; /* of the class */
	enum service_family family;
	int64_t start, step; /* seconds, since 1970 and between points */
	double values[SERVICE_MOST];
	size_t n;
	size_t truth[SERVICE_STEPS]; /* first points of new levels */
	size_t truth_count;
	double size; /* of the one step, as a share; 0 where there are none or several */
};

/* Series number `seed` of the class of that number, over so many days; 0: as many as the class has.
 * At most SERVICE_MOST points. */
void service_generate(size_t number, uint64_t seed, size_t days, struct service_series *out);

#endif
