/*
 * Replays a series point by point as the agent would have received it, and measures how large a
 * step has to be to be announced.
 *
 * It uses the agent's own series cache and matching, on a history that is cut before the
 * place. It reads and writes nothing.
 */
#ifndef AGENT_MONITOR_POWER_H
#define AGENT_MONITOR_POWER_H

#include "agent/monitor/news.h"

enum {
	POWER_POINTS = 24, /* within which a step has to be announced */
	POWER_SIZES = 10,
	POWER_PAST = 50000, /* points of history before the place that are replayed, plus those back
			       to the start of a window */
};

/* Work limit: a series takes some seconds at most, plus one run. */
#define POWER_STEPS DETECTOR_STEPS

extern const double power_sizes[POWER_SIZES]; /* percent, ascending */

struct power_request {
	const struct test *test;
	const struct dataset *data; /* the test's */
	const struct companions *companions;
	const struct series *series; /* one of the data in question, as it is judged */
	size_t front;                /* the first of its points that counts */
	int64_t max_age;             /* ms; WHEN_NEVER */
	struct arena *arena;         /* for reasons; NULL: none are wanted */
	struct scratch *scratch;
	uint64_t limit; /* on scratch_done, above which nothing new is begun; 0: none */
};

/* The fate of a change at a place while points arrive. Events are given as the number of points
 * from the place on that had arrived: 1 is the first point of the new level. 0: it did not
 * happen. */
struct arrival {
	bool cut;    /* stopped at the work limit */
	size_t seen; /* points that arrived */
	size_t found,
		told; /* found: recorded, as a candidate or confirmed; told: due for announcement */
	size_t lost;  /* no longer found, and not found at the end */
	bool back;    /* recorded as the end of another change, which announces it */
	bool waits;   /* a candidate when it was last found */
	const char *reason; /* as it was recorded last (struct change_record), ... */
	int64_t held_until; /* ... */
	double pvalue;      /* when it was first found, or announced; NaN */
};

/*
 * Replays the series point by point from the place on, up to `points` existing ones. `sign`:
 * direction of the change that is looked for near the place; the end of another change counts as
 * announced; 0: any. `values` replace the series' own. Fails if detection does; *out has no points
 * if fewer than ONLINE_FIRST lie before the place.
 */
bool power_arrive(const struct power_request *ask, const double *values, size_t place,
	size_t points, int sign, struct arrival *out, struct error *error) MUST_USE;

struct power_side {
	double smallest;                   /* percent; NaN: not even the largest is announced */
	struct arrival tries[POWER_SIZES]; /* of the sizes tried, from the largest down */
	bool anyway;  /* a change in that direction was announced there without a step; no size is
			 tried */
	bool cut;     /* stopped at the work limit: smaller sizes were not tried to the end */
	size_t tried; /* sizes tried; the last one may not have been announced */
};

struct power {
	size_t place; /* first point of the step */
	bool moved;   /* earlier than requested, so that POWER_POINTS follow */
	bool added;   /* level near 0: the step is in percent of the values' mean size */
	bool evened;  /* a change of the series near the place was removed first */
	struct power_side up, down;
};

/* `found` are the changes of the series. False without an error: too few points. */
bool power_measure(const struct power_request *ask, size_t place, const struct change *found,
	size_t count, struct power *out, struct error *error);

/* Measures at the usual place, POWER_POINTS before the newest point. */
bool power_typical(const struct power_request *ask, struct arena *arena, struct power *out,
	struct error *error);

#endif
