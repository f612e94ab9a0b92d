/*
 * The parts of `hunter-c evaluate`: one that lets detectors loose on labelled series and counts,
 * one that searches for better options, and those that print.
 */
#ifndef AGENT_COMMANDS_EVALUATE_H
#define AGENT_COMMANDS_EVALUATE_H

#include <stdio.h>

#include "agent/cli/cli.h"
#include "agent/commands/labelled.h"
#include "agent/core/buf.h"
#include "detectors/detector.h"
#include "detectors/online_eval.h"
#include "detectors/season.h"

/* A detector with options, as it was written on the command line. */
struct contender {
	const char *name;
	const struct detector *detector;
	const void *options;
	enum season_mode season;   /* of series that have times */
	struct season_clock clock; /* of cycles */
};

enum { MARGINS = 3, MARGIN_MAIN = 2 };
extern const size_t evaluate_margins[MARGINS]; /* 0, 2, 5 */

/* What the agent would have done, point by point. */
struct live {
	size_t points; /* that it saw coming */
	struct followed alarms;
	size_t truth;   /* labelled places */
	size_t *delays; /* of each that was seen */
	size_t seen, capacity;
};

enum { LIVE_CONFIRMED, LIVE_AT_ONCE, LIVES };

/* Sums over series. */
struct standing {
	const char *group;      /* their class */
	size_t series, changed; /* those that have labels */
	size_t points, found;
	size_t seasonal;                     /* series of which a cycle was removed */
	size_t flat_points, flat_found;      /* of series without labels */
	struct score_tally margins[MARGINS]; /* of series with labels */
	struct score_tally all;              /* of all series, at the main margin */
	double f1, cover, rand;              /* sums of each series' */
	struct live live[LIVES];
};

/* How one contender did. */
struct result {
	const struct contender *contender;
	struct standing whole;
	struct standing *groups; /* in the order in which they came */
	size_t group_count;
	double seconds; /* of all threads, in the detector */
};

struct evaluation {
	const struct labelled_series *const *series;
	size_t count;
	struct confirm_rule rule;
	bool live;  /* point by point, too */
	bool timed; /* some of the series have times, for those who print */
	size_t jobs;
	size_t unlabelled; /* series that were left out, for those who print */
	/* A line on stderr says how far it is: series done of `total`, which it adds up itself. */
	bool progress;
	size_t done, total;
};

/* Fails where a series is too much work for the detector. Free with result_free whatever happens.
 */
bool evaluate_contender(struct evaluation *evaluation, const struct contender *contender,
	struct result *out, struct error *error) MUST_USE;
void result_free(struct result *result);

double per_thousand(double part, size_t whole);

/* That many of ten of the delays are no longer, which sorts them; of none it is 0. */
size_t live_delay(struct live *live, size_t tenths);

/* What was found that is not labelled, a 1,000 points of all series. */
double retraction_wrong(const struct standing *standing);

void evaluate_put_text(struct buf *out, struct result *results, size_t count,
	const struct evaluation *evaluation, const char *rule, bool by_class);
void evaluate_put_json(struct buf *out, struct result *results, size_t count, const char *rule);

/* Options that were tried. */
struct trial {
	struct contender contender;
	double recall, precision, f1, wrong; /* over all series; wrong: a 1,000 points */
	bool frontier; /* no other trial sees as much with fewer wrong points */
};

struct trials {
	struct trial *items; /* the first is the contender as it was given */
	size_t count;
	size_t best; /* the highest F1; the nearest to the first on ties */
};

/* Tries options around the contender's. Fails where it has none of those that are searched, and as
 * evaluate_contender does. */
bool tune_search(struct evaluation *evaluation, const struct contender *contender,
	struct arena *arena, struct trials *out, struct error *error) MUST_USE;
void tune_put_text(struct buf *out, const struct trials *trials);
void tune_put_json(struct buf *out, const struct trials *trials);
void tune_put_svg(struct buf *out, const struct trials *trials);

#endif
