/*
 * Conditions: what is wrong with the data's way here, not in the data.
 *
 * A pure state machine. It is told how each run of a test ended and says when people should know
 * that a source is down, that a test fails alone, or that a test's data have stopped arriving, and
 * when that is over. It looks at no clock and writes to nobody. What has begun is told once,
 * however long it lasts, and what is over is told only if its beginning was:
 *
 * - A source (a server; for files the kind of source) is down when its runs fail and none succeeds
 *   in between: three of one test, or three in all over five minutes, so that the blink of a server
 *   that many tests ask is no outage. Its first success ends that. While it is down, its tests'
 *   failures are its own. A test that fails again before half of its interval is over, as somebody
 *   has run it between, has not failed twice.
 * - A test fails alone when it has failed three times in a row and its source has answered others
 *   meanwhile, or the test itself. From then on it says nothing about its source.
 * - Data are stale when no newer point has come for `stale_after`, or where that is not given, for
 *   longer than is usual (agent/monitor/rhythm.h) when the last one came; data that were so before
 *   anybody looked for it are stale without a word. A failed run tells nothing about that. The time
 * is counted on the monotonic clock, so that a wall clock that jumps makes nothing stale; only for
 * what was there at the first look the age of the point counts.
 * - Of the tests of one source that fail alone, or are stale, five are told one by one. The rest is
 *   one more notice, however many they are.
 */
#ifndef AGENT_MONITOR_CONDITION_H
#define AGENT_MONITOR_CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/store/store.h"

struct conditions;

/* The name of the source or test within a subject. */
const char *condition_name(const struct condition *condition);

/* How a run ended. */
struct outcome {
	const char *test, *source; /* names */
	const char *problem;       /* why it failed; NULL: it went well */
	bool unasked;        /* nothing was asked, as there can be nothing new; it has not failed */
	bool answered;       /* of one that failed: its source is well all the same */
	int64_t newest;      /* ms, of its newest point; WHEN_ALWAYS: there is none */
	int64_t stale_after; /* ms; WHEN_NEVER; 0: by `usual` */
	int64_t usual;       /* ms, that the data may be without a newer point; 0: nobody knows */
	int64_t interval;    /* ms, from run to run; 0: every run counts */
	int64_t now;         /* ms, wall clock */
	int64_t clock;       /* ms, monotonic */
};

struct conditions *conditions_new(void);
void conditions_free(struct conditions *conditions);

/* Since when somebody has looked whether data are without the points that are usual, ms, wall
 * clock: what was so before is not told. */
void conditions_since(struct conditions *conditions, int64_t since);

/* Takes up what an earlier process told and stored. */
void conditions_restore(struct conditions *conditions, const struct condition *condition);

/* A test that will run, after what was told is restored: what was told of many tests of its source
 * is not over before it has run. */
void conditions_expect(struct conditions *conditions, const char *test, const char *source);

/* A test has another name now: what was told of it is the new name's. */
void conditions_rename(struct conditions *conditions, const char *was, const char *test);

/* Notes a run and fills in what has begun or is over by it; their texts are good until the next
 * call. Returns how many. */
enum { CONDITION_TURNS = 5 };
size_t conditions_note(struct conditions *conditions, const struct outcome *outcome,
	struct condition turns[CONDITION_TURNS]);

/*
 * Forgets the tests and sources that `keeps` does not want any more, as the configuration has lost
 * them: `lost` gets each condition that was told, which is over now.
 */
typedef bool conditions_keep(void *context, bool test, const char *name);
typedef void conditions_lost(void *context, const struct condition *condition);
void conditions_retain(struct conditions *conditions, conditions_keep *keeps, conditions_lost *lost,
	void *context);

/* False while the source is known to be down. */
bool conditions_up(const struct conditions *conditions, const char *source);

/* True if the test's data are stale now. */
bool conditions_test_stale(const struct conditions *conditions, const char *test);

/* How many tests have stale data now. */
size_t conditions_stale(const struct conditions *conditions);

#endif
