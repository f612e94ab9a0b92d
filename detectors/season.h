/*
 * Seasons: the daily and weekly cycles of service metrics, found and removed before a detector
 * looks for changes.
 *
 * A cycle is a profile: for each part of the local day or week, how far values lie above or below
 * their surroundings, on a scale (logarithm, square root or linear) that makes its size independent
 * of the level. It is accepted only where it predicts points that it was not fitted to, so that a
 * series without a cycle stays the same, bit for bit. docs/design/algorithms.md section 3.
 *
 * A fitted season is frozen: the adjusted value of a point depends on that point alone, so a series
 * that grows has the same adjusted values as one that was adjusted as a whole.
 */
#ifndef DETECTORS_SEASON_H
#define DETECTORS_SEASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/field.h"

struct scratch;
struct zone;

struct season_options {
	const char *kind;   /* "auto", "service", "benchmark" */
	const char *season; /* "auto", "none", "day", "week" */
	const char *zone;   /* "Europe/Berlin" */
	struct strings holidays;
};

extern const struct field season_fields[];

/* The kind of a series, which decides how patient the agent is (detectors/precedent.h). */
enum series_kind {
	KIND_AUTO, /* decided by season_is_frequent and by the commits of points */
	KIND_SERVICE,
	KIND_BENCHMARK,
};

extern const char *const series_kind_names[];

enum season_mode {
	SEASON_UNSET, /* the detector's default */
	SEASON_AUTO,  /* cycles that reduce the noise enough */
	SEASON_NONE,
	SEASON_DAY,  /* a daily cycle, if it helps at all */
	SEASON_WEEK, /* a daily and a weekly cycle, if they help at all */
};

extern const char *const season_mode_names[]; /* of those that can be chosen */

enum { SEASON_LEAST = 14 }; /* points below which nothing is fitted */

/* Bits of struct season's `cycles` and `undecided`. */
enum { SEASON_DAILY = 1, SEASON_WEEKLY = 2 };

enum season_scale { SCALE_RAW, SCALE_LOG, SCALE_ROOT };

/* Days that are no working days: their local midnights as if they were UTC (ms), ascending. */
struct holidays {
	const int64_t *days;
	size_t count;
};

/* The local time of `ms` (since 1970-01-01 UTC), as if it were UTC, the zone passed to it, and the
 * holidays that people have named; all are borrowed. UTC if `local` is NULL. */
struct season_clock {
	int64_t (*local)(const struct zone *zone, int64_t ms);
	const struct zone *zone;
	struct holidays holidays;
};

/* How far the profile swings on a day: its power (logarithm) or factor, and the factor that then
 * makes its mean 1 (logarithm). */
struct swing {
	double size, level;
};

struct season {
	unsigned cycles;    /* accepted cycles; 0: values stay as they are */
	unsigned undecided; /* cycles that may exist, undecided with so few points */
	double explained;   /* share of the variance around the level, 0..1 */
	size_t excursion;   /* as in struct samples: larger for series sampled like a service's, at
			       least 4 regular points a day, with or without cycles */
	int64_t step;       /* ms between points, on a grid that most of them keep; 0: irregular */
	enum season_scale scale;
	double offset, factor; /* SCALE_ROOT: added below the root; of the values without cycles */
	struct season_clock clock;
	size_t cells;     /* equal parts of the local week, which begins on Monday */
	int64_t origin;   /* ms into that week: the middle of the first part */
	double *profile;  /* the correction of each part: the factor by which values are divided
			     (logarithm), else the difference on the scale that is subtracted;
			     1 or 0 on average */
	int64_t *sundays; /* days that pass as Sundays, as in struct holidays: those that people
			     have named, unless they look like any other, and those found */
	size_t sunday_count;
	struct swing
		*swings; /* of each local day from `first_day` on; later ones are as the last */
	size_t swing_count;
	int64_t first_day; /* its local midnight */
};

/* Parse the options' texts; an invalid text is an error. */
bool season_parse_kind(const char *text, enum series_kind *kind, struct error *error) MUST_USE;
bool season_parse(const char *text, enum season_mode *mode, struct error *error) MUST_USE;

/*
 * Fits the cycles that `mode` selects to a series: `times` in ms, ascending, or NULL if unknown,
 * which means no season; values NaN where missing. Needs a regular cadence; at least 4 points a day
 * and three days for a daily cycle, one point a day and two weeks for a weekly one. Cycles accepted
 * before (`known`, bits) are kept as long as they help. O(n log n). Free the result with
 * season_free in any case.
 */
struct season season_fit(enum season_mode mode, struct season_clock clock, unsigned known,
	const double *values, const int64_t *times, size_t n, struct scratch *scratch);
void season_free(struct season *season);

int64_t season_local(const struct season_clock *clock, int64_t ms);
/* The local midnight of a local time; whether that day is a weekend or has been named as a holiday;
 * both as if they were UTC. */
int64_t season_day(int64_t local);
bool season_is_off(const struct season_clock *clock, int64_t day);
bool season_is_holiday(const struct season_clock *clock, int64_t day);

/* Whether the series is sampled as services are: regularly, at least every two hours. */
bool season_is_frequent(const struct season *season);

/* Whether the season's scale can represent all these values: a logarithm needs positive ones. */
bool season_takes(const struct season *season, const double *values, size_t n);

/* Writes the values without the cycles. `out` may alias `values`. */
void season_remove(const struct season *season, const int64_t *times, const double *values,
	size_t n, double *out);

/* The same as if all were of Sundays; false, and nothing is written, unless weeks are known and
 * `times` begin near midnight on a working day. */
bool season_remove_sundays(const struct season *season, const int64_t *times, const double *values,
	size_t n, double *out);

/*
 * Keeps the season of a growing series up to date: of the agent's series, and of the labelled ones
 * that `evaluate` processes point by point.
 *
 * A season is frozen between fits, since a new fit changes all values of the series. It is fitted
 * again once a day, by the times of the points, and when values arrive that its scale cannot
 * represent.
 */
#define REFIT_EVERY INT64_C(86400000) /* ms between fits, by the points' times */

struct refit {
	struct season season;
	bool fitted;
	bool few;   /* the last fit had too few points to find anything */
	int64_t at; /* ms: the last point of that fit */
};

/* Calls season_fit if a fit is due; n > 0. True if the season has changed, and with it all adjusted
 * values. */
bool refit_season(struct refit *refit, enum season_mode mode, struct season_clock clock,
	const double *values, const int64_t *times, size_t n, struct scratch *scratch);
void refit_free(struct refit *refit);

#endif
