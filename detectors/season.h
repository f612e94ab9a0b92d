/*
 * Seasons: the daily and weekly cycles of service metrics, found and removed before a detector
 * looks for changes.
 *
 * A cycle is a profile: for each part of the local day or week how far values lie above or below
 * their surroundings, on a scale (logarithm, square root or as they are) that makes its size
 * independent of the level. It is accepted only where it predicts points that it was not made from,
 * so that a series without a cycle stays as it is, bit for bit. docs/algorithms.md, "Seasons".
 *
 * A fitted season is frozen: what it makes of a point depends on that point alone, so a series that
 * grows by some points has the same adjusted values as one that was adjusted as a whole.
 */
#ifndef DETECTORS_SEASON_H
#define DETECTORS_SEASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/field.h"

struct scratch;
struct zone;

struct season_options {
	const char *season; /* "auto", "none", "day", "week" */
	const char *zone;   /* "Europe/Berlin" */
};

extern const struct field season_fields[];

enum season_mode {
	SEASON_UNSET, /* what the detector does by default */
	SEASON_AUTO,  /* cycles that pay */
	SEASON_NONE,
	SEASON_DAY,  /* a daily one, if it pays at all */
	SEASON_WEEK, /* a daily and a weekly one, if they pay at all */
};

enum { SEASON_LEAST = 14 }; /* points, below which nothing is fitted */

/* Bits of struct season's `cycles` and `undecided`. */
enum { SEASON_DAILY = 1, SEASON_WEEKLY = 2 };

enum season_scale { SCALE_RAW, SCALE_LOG, SCALE_ROOT };

/* What clocks show at `ms` (since 1970-01-01 UTC), as if that were UTC, and the zone that it is
 * asked for; both are borrowed. UTC where `local` is NULL. */
struct season_clock {
	int64_t (*local)(const struct zone *zone, int64_t ms);
	const struct zone *zone;
};

struct season {
	unsigned cycles;    /* that were accepted; 0: values stay as they are */
	unsigned undecided; /* that may be there, and too few points yet to tell */
	double explained;   /* share of the variance around the level, 0..1 */
	size_t excursion;   /* as in struct samples: more where points come as those of a service
			       do, at least 4 regular ones a day, cycles or not */
	enum season_scale scale;
	struct season_clock clock;
	int64_t origin;  /* ms into the local week, which begins on Monday; the middle of the
			    first... */
	size_t cells;    /* ... of so many equal parts of the week */
	double *profile; /* for each what is taken from values of its time: a factor that they are
			    divided by (logarithm), else a difference on the scale; on the whole
			    it changes nothing */
};

/* Reads the option's text: `season: "month" is none of auto, none, day, week`. */
bool season_parse(const char *text, enum season_mode *mode, struct error *error) MUST_USE;

/*
 * Fits what `mode` asks for to a series: `times` in ms, ascending, or NULL where they are not
 * known, and then there is no season; NaN where missing. Needs a
 * regular cadence; at least 4 points a day and three days for a daily cycle, one point a day and
 * two weeks for a weekly one. Cycles that were accepted before (`known`, bits) stay as long as they
 * are of any use. O(n log n). Free with season_free, whatever was found.
 */
struct season season_fit(enum season_mode mode, struct season_clock clock, unsigned known,
	const double *values, const int64_t *times, size_t n, struct scratch *scratch);
void season_free(struct season *season);

/* Whether the season's scale can take all these values: a logarithm fits positive ones only. */
bool season_takes(const struct season *season, const double *values, size_t n);

/* Writes the values without the cycles. `out` may be `values`. */
void season_remove(const struct season *season, const int64_t *times, const double *values,
	size_t n, double *out);

#endif
