/*
 * From points with attributes to what detectors take: which of them were measured together and
 * with which binary.
 */
#ifndef AGENT_ANALYSIS_SAMPLING_H
#define AGENT_ANALYSIS_SAMPLING_H

#include "conf/config.h"
#include "detectors/detector.h"

/* Of the points of one axis. */
struct sampling {
	const struct axis *axis;
	const size_t *runs;     /* as in struct samples */
	const uint64_t *hashes; /* as in struct samples */
};

/*
 * Points in succession are one run if they have the same time, or where the test names an attribute
 * for it the same value of that; those without a value are runs of their own. Everything lives in
 * `arena`. ERROR_DATA if the axis has points but not an attribute that the test names.
 */
bool sampling_read(struct arena *arena, const struct test *test, const struct axis *axis,
	struct sampling *out, struct error *error) MUST_USE;

struct samples sampling_of(const struct sampling *sampling, const struct series *series);

#endif
