/*
 * The parts of `hunter-c evaluate`: running detectors on labelled series and counting, searching
 * for better options, and printing.
 */
#ifndef AGENT_EVALUATE_EVALUATE_H
#define AGENT_EVALUATE_EVALUATE_H

#include <stdio.h>

#include "agent/base/buf.h"
#include "agent/cli/cli.h"
#include "agent/evaluate/labelled.h"
#include "agent/model/change_record.h"
#include "detectors/detector.h"
#include "detectors/online_eval.h"
#include "detectors/season.h"

struct evaluate_options {
	struct strings truth, detector, series;
	int64_t jobs, max_line, count;
	int output; /* enum evaluate_output */
	bool tune, by_class, whole, from_triage;
	const char *confirm, *season, *zone, *holidays, *state_file, *label;
};

enum evaluate_output { EVALUATE_TEXT, EVALUATE_JSON };

/* A detector with options, and its text on the command line. */
struct contender {
	const char *name;
	const struct detector *detector;
	const void *options;
	enum season_mode season;   /* for series that have times */
	struct season_clock clock; /* of cycles */
};

enum { MARGINS = 3, MARGIN_MAIN = 2 };
extern const size_t evaluate_margins[MARGINS]; /* 0, 2, 5 */

struct judgement {
	const struct change_record *record;
	enum triage_state state; /* now */
	size_t at;               /* index in the series */
};

/* Whether this state means that the change is real, and worth announcing. */
bool judged_real(enum triage_state state);

/* The outcome of a triaged change. */
struct judged_outcome {
	const struct judgement *judgement;
	bool announced;
	size_t delay; /* points, if it was announced */
};

/* The announcements that the agent would have made, point by point. */
struct live {
	size_t points; /* that arrived while it watched */
	struct followed alarms;
	size_t truth;   /* labelled places */
	size_t *delays; /* of each that was detected */
	size_t seen;
	struct judged_outcome *outcomes; /* of each judgement, in the order of the series */
	size_t outcome_count;
};

/* How alarms are counted: detectors/online_eval.h. */
struct live_rule {
	struct confirm_rule rule;
	bool tracked;
};

/* The two that are printed, and how many there may be. */
enum { LIVE_CONFIRMED, LIVE_AT_ONCE, LIVES, LIVES_MOST = 8 };

/* Sums over series. */
struct standing {
	struct arena *arena;    /* has what it points to */
	const char *group;      /* their class */
	size_t series, changed; /* those that have labels */
	size_t points, found;
	size_t seasonal;                     /* series of which a cycle was removed */
	size_t flat_points, flat_found;      /* of series without labels */
	struct score_tally margins[MARGINS]; /* of labelled series */
	struct score_tally all;              /* of all series, at the main margin */
	double f1, cover, rand;              /* sums of each series' */
	struct live live[LIVES_MOST];
};

/* The result of one contender. */
struct result {
	const struct contender *contender;
	struct standing whole;
	struct standing *groups; /* in order of first appearance */
	size_t group_count;
	double seconds; /* of all threads, in the detector */
};

struct evaluation {
	const struct labelled_series *const *series;
	size_t count;
	struct live_rule
		rules[LIVES_MOST]; /* to evaluate by, point by point; the first is the agent's */
	size_t rule_count;
	bool live;   /* evaluated point by point, too, ... */
	bool sparse; /* ... at every tenth point where people judged nothing */
	size_t jobs;
	size_t unlabelled; /* series that were left out; for the output */
	/* Prints a progress line on stderr: series done of `total`, which it adds up itself. */
	bool progress;
	size_t done, total;
};

/* Fails if a series is too much work for the detector. Call result_free in any case. */
bool evaluate_contender(struct evaluation *evaluation, const struct contender *contender,
	struct result *out, struct error *error) MUST_USE;
void result_free(struct result *result);

/* Detects in the whole series, without its cycles; `room` holds as many changes as it has points.
 */
bool evaluate_find(const struct contender *contender, const struct labelled_series *series,
	struct scratch *scratch, struct change *room, size_t *count, bool *seasonal,
	struct error *error) MUST_USE;

/* Adds the results of a contender on other series. */
void result_add(struct result *sum, const struct result *one);

double per_thousand(double part, size_t whole);

/* The quantile of the delays at so many tenths, which sorts them; 0 if there are none. */
size_t live_delay(struct live *live, size_t tenths);

/* The outcomes of the triaged changes. */
struct judged {
	size_t said[TRIAGE_STATES], announced[TRIAGE_STATES];
	size_t real, found; /* those that are news */
	size_t other;       /* alarms where no change is recorded */
};

struct judged judged_of(const struct live *live);

/* F1 of alarms: wrong are those where nothing real is, whether people have judged it or not. */
double judged_f1(const struct live *live);

/* Appends the members of a JSON object about them. */
void judged_put_json(struct buf *out, const struct judged *judged);

/* Appends members of a JSON object: what each of the detectors achieved. */
void evaluate_put_json(struct buf *out, struct result *results, size_t count,
	const struct evaluation *evaluation, const char *rule);

/* Prints that object for people. `live`: with what was found point by point. */
void evaluate_print(const struct buf *text, bool live, bool by_class, FILE *out);

/* --from-triage: everything but the check of the flags. Prints errors; returns the exit code. */
int evaluate_triage(struct cli *cli);

/* --label: asks a person for the labels of series and offers the contenders' findings. Prints
 * errors; returns the exit code. */
int evaluate_label(struct cli *cli, const struct contender *proposers, size_t count);

enum { TUNED_MOST = 5 }; /* options that are searched, and confirm */

/* Settings found by a search on triaged changes. */
struct tuned {
	struct contender contender;
	struct live_rule rule;
	struct setting settings[TUNED_MOST]; /* those that differ from the given ones */
	size_t count;
	double f1, given_f1;
	size_t trials;
};

/* Tries options around the contender's, and confirmation other than the evaluation's first rule;
 * the best is the one with the highest F1 of alarms, then with the fewest settings, then the
 * earliest. Fails as tune_search does. */
bool tune_judged(struct evaluation *evaluation, const struct contender *contender,
	struct arena *arena, struct tuned *out, struct error *error) MUST_USE;

#endif
