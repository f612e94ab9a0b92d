/*
 * From a test's data to its change points: what `analyze`, `regressions` and the agent share.
 */
#ifndef AGENT_ANALYSIS_ANALYSIS_H
#define AGENT_ANALYSIS_ANALYSIS_H

#include "agent/analysis/companions.h"
#include "agent/analysis/sampling.h"
#include "agent/engine/engine.h"

/* The change points of one series. */
struct findings {
	const struct series *series;
	const struct change *changes; /* indices are of the series' axis */
	size_t count;
	struct season season; /* the cycles that were removed, and those that are undecided */
	const double *values; /* of the whole axis, without cycles; NULL until findings_values */
	/* By which other series it is judged, or NULL; then what of it was used, the other's value
	 * at each point, and what is left, in which cycles were looked for. */
	const struct control_rule *rule;
	struct control control;
	const double *joined, *rest;
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
struct season_clock analysis_clock(const struct zone *zone);

/* The values in which cycles are looked for: those of the series, or what its control left. */
const double *findings_points(const struct findings *findings);

/* Sets which other series the change is judged by, and what that did at the same time. NULL for a
 * change that is none of the findings. */
void findings_basis(struct arena *arena, const struct findings *findings,
	const struct change *change, struct announcement *item);

/* The values without their cycles, those of the series where it has none. */
const double *findings_values(struct arena *arena, struct findings *findings);

/* Points of a series for control_fit and its like. */
struct points analysis_points(const struct series *series);

/*
 * The findings of a series in which nothing was looked for yet: with the cycles that its values are
 * seen to have, after what `other`, which the rule names, explains of them. Both are NULL where
 * there is no rule.
 */
struct findings analysis_adjust(struct arena *arena, const struct series *series,
	const struct detection *detection, const struct control_rule *rule,
	const struct series *other, struct scratch *scratch);

/* Sets what the control, which was fitted, leaves of the series in the findings. */
void analysis_control(struct arena *arena, const struct control_rule *rule,
	const struct control *control, const struct series *other, struct findings *findings);

/* The rule and the other series of one of the test's, NULL where it has none. Fails as
 * companions_find does; the error names the series. */
bool analysis_other(const struct test *test, const struct dataset *data,
	const struct companions *companions, const struct series *series,
	const struct detection *detection, const struct control_rule **rule,
	const struct series **other, struct error *error) MUST_USE;

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
 * settings of the command line have been laid. `companions` are the task's. Everything lives in
 * `arena`.
 */
bool analysis_run(struct arena *arena, const struct schema *schema, const struct test *test,
	const struct dataset *data, const struct companions *companions,
	const struct setting *settings, size_t setting_count, struct scratch *scratch,
	struct analysis *out, struct error *error) MUST_USE;

#endif
