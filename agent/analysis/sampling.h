/*
 * From points with attributes to the input of detectors: which points were measured together, and
 * with which binary.
 */
#ifndef AGENT_ANALYSIS_SAMPLING_H
#define AGENT_ANALYSIS_SAMPLING_H

#include "conf/config.h"
#include "detectors/detector.h"

/* Sampling of the points of one axis. */
struct sampling {
	const struct axis *axis;
	const size_t *runs;     /* as in struct samples */
	const uint64_t *hashes; /* as in struct samples */
};

/*
 * Consecutive points form one run if they have the same time or, if the test names an attribute
 * for it, the same value of that; points without a value are runs of their own. Everything lives
 * in `arena`. ERROR_DATA if the axis has points but lacks an attribute that the test names.
 */
bool sampling_read(struct arena *arena, const struct test *test, const struct axis *axis,
	struct sampling *out, struct error *error) MUST_USE;

struct samples sampling_of(const struct sampling *sampling, const struct series *series);

#endif
