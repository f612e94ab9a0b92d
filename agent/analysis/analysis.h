/*
 * From a test's data to its change points; shared by `analyze`, `regressions` and the agent.
 */
#ifndef AGENT_ANALYSIS_ANALYSIS_H
#define AGENT_ANALYSIS_ANALYSIS_H

#include "agent/analysis/companions.h"
#include "agent/analysis/sampling.h"
#include "agent/io/engine.h"

/* The change points of one series. */
struct findings {
	const struct series *series;
	const struct change *changes; /* indices on the series' axis */
	size_t count;
	struct season season; /* cycles that were removed, and those still undecided */
	const double *values; /* for the whole axis, without cycles; NULL until findings_values */
	/* The rule by which another series explains or scales it, or NULL; then the part used, the
	 * other's value at each point, and the remainder, in which cycles are looked for. */
	const struct control_rule *rule;
	const struct series *other;
	struct control control;
	const double *joined, *rest;
	/* By change: why it does not count as a regression, NULL if it does; NULL: all count. */
	const char *const *accepted;
};

struct analysis {
	const struct test *test;
	const struct dataset *data;
	struct findings *findings; /* one for each series of the dataset, in the same order */
};

/* The detection of a metric of the test, as configured. */
const struct detection *analysis_configured(const struct test *test, const struct metric *metric);

/* Whether it is the default: edivisive by its own profile. */
bool analysis_is_own(const struct detection *detection);

/* Which cycles the detection removes; the detector's default if none are set. */
enum season_mode analysis_season(const struct detection *detection);
struct season_clock analysis_clock(const struct detection *detection);

/* Whether the series is a service's, by the configuration, else by its points: regular and
 * frequent ones, of which few bring another commit or version. */
bool analysis_is_service(const struct detection *detection, const struct findings *findings);

/* The values in which cycles are looked for: those of the series, or the remainder after its
 * control. */
const double *findings_points(const struct findings *findings);

/* Sets by which other series the change is judged, and how that one changed at the same time. NULL
 * for a change that is not among the findings. */
void findings_basis(struct arena *arena, const struct findings *findings,
	const struct change *change, struct announcement *item);

/* The values without cycles; the series' own if it has none. */
const double *findings_values(struct arena *arena, struct findings *findings);

/* The existing points of a series. Rows without a value, and those without a partner in the series'
 * control, are left out. */
struct prepared {
	const int64_t *times;
	const double *points;    /* findings_points */
	const double *values;    /* findings_values */
	const size_t *positions; /* by point of the axis: the number of existing points before it */
	size_t n;
};

struct prepared findings_prepared(struct arena *arena, struct findings *findings);

/* The values of other points of a series, a branch's, as if they were `model`'s own: without the
 * model's cycles, and by its control. Few points show neither. */
const double *findings_values_as(
	struct arena *arena, struct findings *findings, struct findings *model);

/* The points of a series, in the form that control_fit takes. */
struct points analysis_points(const struct series *series);

/*
 * The findings of a series before detection: its cycles are fitted, after removing what `other`,
 * the series named by the rule, explains. Both are NULL if there is no rule.
 */
struct findings analysis_adjust(struct arena *arena, const struct series *series,
	const struct detection *detection, const struct control_rule *rule,
	const struct series *other, struct scratch *scratch);

/* Sets the remainder of the series after a fitted control. */
void analysis_control(struct arena *arena, const struct control_rule *rule,
	const struct control *control, const struct series *other, struct findings *findings);

/* The rule and the other series for one of the test's series, NULL if it has none. Fails as
 * companions_find does; the error names the series. */
bool analysis_other(struct arena *arena, const struct test *test, const struct dataset *data,
	const struct companions *companions, const struct series *series,
	const struct detection *detection, const struct control_rule **rule,
	const struct series **other, struct error *error) MUST_USE;

/* Detects in out->values [from, to); indices are on the axis. Fails if the work limit is exceeded;
 * the error names the series. */
bool analysis_detect(struct arena *arena, const struct sampling *sampling,
	const struct detection *detection, size_t from, size_t to, struct scratch *scratch,
	struct findings *out, struct error *error) MUST_USE;

/* The detection of a metric of the test (see struct test), overridden by the settings of the
 * command line. */
bool analysis_detection(struct arena *arena, const struct schema *schema, const struct test *test,
	const struct metric *metric, const struct setting *settings, size_t setting_count,
	struct detection *out, struct error *error) MUST_USE;

/*
 * Detects in each series with the detection of its metric (see struct test), overridden by the
 * settings of the command line. `companions` are the task's. Everything lives in `arena`.
 */
bool analysis_run(struct arena *arena, const struct schema *schema, const struct test *test,
	const struct dataset *data, const struct companions *companions,
	const struct setting *settings, size_t setting_count, struct scratch *scratch,
	struct analysis *out, struct error *error) MUST_USE;

#endif
