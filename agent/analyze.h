/*
 * From a test's data to its change points: what `analyze`, `regressions` and the agent share.
 */
#ifndef AGENT_ANALYZE_H
#define AGENT_ANALYZE_H

#include "agent/engine/engine.h"
#include "agent/sampling.h"

/* The change points of one series. */
struct findings {
	const struct series *series;
	const struct change *changes; /* indices are of the series' axis */
	size_t count;
	struct season season; /* the cycles that were removed, and those that are undecided */
	const double *values; /* of the whole axis, without cycles; NULL until findings_values */
};

struct analysis {
	const struct test *test;
	const struct dataset *data;
	struct findings *findings; /* one for each series of the dataset, same order */
};

/* The detection of a metric of the test, as configured. */
const struct detection *analysis_configured(const struct test *test, const struct metric *metric);

/* Which cycles the detection removes, with the detector's default where none are set. */
enum season_mode analysis_season(const struct detection *detection);

/* The values without their cycles, those of the series where it has none. */
const double *findings_values(struct arena *arena, struct findings *findings);

/* The findings of a series in which nothing was looked for yet: with the cycles that its values are
 * seen to have. */
struct findings analysis_adjust(struct arena *arena, const struct series *series,
	const struct detection *detection, struct scratch *scratch);

/* Detects in out->values [from, to); indices are of the axis. Fails where that is too much work;
 * the error names the series. */
bool analysis_detect(struct arena *arena, const struct sampling *sampling,
	const struct detection *detection, size_t from, size_t to, struct scratch *scratch,
	struct findings *out, struct error *error) MUST_USE;

/* The detection of a metric of the test (see struct test), over which the settings of the command
 * line are laid. */
bool analysis_detection(struct arena *arena, const struct schema *schema, const struct test *test,
	const struct metric *metric, const struct setting *settings, size_t setting_count,
	struct detection *out, struct error *error) MUST_USE;

/*
 * Detects in each series with the detection of its metric (see struct test), over which the
 * settings of the command line have been laid. Everything lives in `arena`.
 */
bool analysis_run(struct arena *arena, const struct schema *schema, const struct test *test,
	const struct dataset *data, const struct setting *settings, size_t setting_count,
	struct scratch *scratch, struct analysis *out, struct error *error) MUST_USE;

#endif
