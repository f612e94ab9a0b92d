/*
 * Conditions: problems with the delivery of data, as opposed to the data.
 *
 * A pure state machine: it is fed the outcome of each run and reports when a source is down, a
 * test fails alone or a test's data are stale, and when that is over. It reads no clock and sends
 * nothing. A condition is reported once, however long it lasts; its end is reported only if its
 * beginning was.
 *
 * - A source (a server; for files the kind of source) is down when its runs fail and none succeeds
 *   in between: three of one test, or three in all over five minutes, so that a short failure of a
 *   server that many tests query is no outage. The first success ends it. While a source is down,
 *   failures of its tests do not count against them. A failure less than half an interval after the
 *   previous one (somebody ran the test in between) does not count again.
 * - A test fails alone when it has failed three times in a row while its source has answered other
 *   tests, or this one, in runs that began after the first failure. From then on its failures do
 * not count against its source.
 * - Data are stale when no newer point has arrived for `stale_after`, or, without that option, for
 *   longer than usual (agent/monitor/rhythm.h) as of the last arrival; data that were already stale
 *   at the first look are not reported. A failed run says nothing about staleness. Time is counted
 *   on the monotonic clock, so a jump of the wall clock makes nothing stale; only for data present
 *   at the first look the age of the newest point counts.
 * - Of the tests of one source that fail alone, or are stale, five are reported one by one; all
 *   others together are reported as one more condition.
 *
 * In a fleet each agent knows the tests that it runs itself. What it thinks of a source is its view
 * (conditions_views); the leader judges sources by the views of all (conditions_judge):
 *
 * - A source is down once more than half of the agents with a view report it, and up again once
 *   fewer than half do: an agent that cannot reach a server which the others can is no outage.
 * - Many of its tests fail, or have no new data, once any agent has one that is not reported one by
 *   one. That is over when no agent has, those reported one by one are fewer than that many again,
 *   and no test is still to be run; and when nothing about it has changed for a while, since the
 *   tests of an agent that has gone have no agent for a moment.
 * - So that five tests of a source are reported one by one by all agents together, an agent knows
 *   how many others have reported, and reports only its share of the rest before it learns that
 *   anew (conditions_others); a test beyond that share waits for its next run.
 */
#ifndef AGENT_MONITOR_CONDITION_H
#define AGENT_MONITOR_CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/buf.h"
#include "agent/store/store.h"
#include "conf/config.h"

struct conditions;

enum { CONDITION_TOLD_SINGLY = 5 }; /* tests of a source that are reported one by one */

/* The name of a test's source in conditions: its server's. A test without one counts under its kind
 * of source: if no file can be read any more, that is one condition. */
const char *condition_source(const struct test *test);

/* The name of the source or test, without the prefix of the subject. */
const char *condition_name(const struct condition *condition);

/* The outcome of a run. */
struct outcome {
	const char *test, *source; /* names */
	const char *problem;       /* why it failed; NULL: it succeeded */
	bool unasked;        /* no request was made, since nothing can be new; not a failure */
	bool answered;       /* failed although the source answered */
	int64_t newest;      /* ms, of its newest point; WHEN_ALWAYS: none */
	int64_t stale_after; /* ms; WHEN_NEVER; 0: use `usual` */
	int64_t since;    /* ms, wall clock: first look at the test; data that were stale by `usual`
			     then    are not reported */
	int64_t usual;    /* ms that the data are usually without a newer point; 0: unknown */
	int64_t interval; /* ms from run to run; 0: every run counts */
	int64_t now;      /* ms, wall clock */
	int64_t begun;    /* ms, monotonic: when the run began, ... */
	int64_t clock;    /* ... and now */
	size_t share;     /* so many tests of a source may be reported one by one before the
			     numbers of other agents are learned anew; 0: there are none */
};

/* `shared`: in a fleet. */
struct conditions *conditions_new(bool shared);
void conditions_free(struct conditions *conditions);

/* Restores a condition that an earlier process or leader reported and stored. */
void conditions_restore(struct conditions *conditions, const struct condition *condition);

/* Forgets what was reported of sources: another agent leads. */
void conditions_clear_reports(struct conditions *conditions);

/* Announces a test that is going to run; to be called after the restores. A condition reported for
 * many tests of its source is not over before this test has run. */
void conditions_expect(struct conditions *conditions, const char *test, const char *source);

/* Renames a test: its conditions go with it. */
void conditions_rename(struct conditions *conditions, const char *was, const char *test);

/* Notes a run and fills in the conditions that it begins or ends, in a fleet those of tests; their
 * texts are valid until the next call. Returns how many. */
enum { CONDITION_TURNS = 5 };
size_t conditions_note(struct conditions *conditions, const struct outcome *outcome,
	struct condition turns[CONDITION_TURNS]);

typedef void conditions_turn(void *context, const struct condition *condition);

/* On the leader of a fleet: judges all sources by these views; `settled`: nothing has changed for a
 * while. Calls back for each condition that begins or is over; its texts are valid during the call.
 */
void conditions_judge(struct conditions *conditions, const struct source_view *views, size_t count,
	int64_t now, bool settled, conditions_turn *turn, void *context);

/* Whether many tests of some source are reported: this ends only when it is judged as settled. */
bool conditions_wait(const struct conditions *conditions);

/*
 * Forgets tests and sources for which `keeps` returns false, because they are gone from the
 * configuration; calls `lost` for each reported condition, which is over now. With NULL they are
 * only another agent's: what this one has reported of sources stays.
 */
typedef bool conditions_keep(void *context, bool test, const char *name);
void conditions_retain(struct conditions *conditions, conditions_keep *keeps, conditions_turn *lost,
	void *context);

/* Notes how many tests of a source other agents have reported one by one: see struct outcome. */
void conditions_others(
	struct conditions *conditions, const struct source_view *views, size_t count);

/* Adds the agent's views of the sources of its own tests, unless `out` is NULL. Returns their hash.
 */
uint64_t conditions_views(const struct conditions *conditions, struct store_views *out);

/* Since when the source is known to be down; 0: it is not. */
int64_t conditions_down_since(const struct conditions *conditions, const char *source);

/* True if the test's data are stale. */
bool conditions_test_stale(const struct conditions *conditions, const char *test);

/* How many tests have stale data. */
size_t conditions_stale(const struct conditions *conditions);

#endif
