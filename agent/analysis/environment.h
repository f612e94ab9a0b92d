/*
 * The environment, not the code: whether changes of one time are those of one runner or host.
 *
 * A test's `environment` names the label, tag, part of a path or attribute that says where a series
 * was measured. Changes of one time stand out if they hit at least ENVIRONMENT_LEAST series and
 * ENVIRONMENT_SHARE of those of one environment, and not the same tests elsewhere: of the same
 * series in other environments (same test, metric and labels, but for that one) at most
 * ENVIRONMENT_ELSEWHERE changed near that time. At least half of what is hit must have such a
 * counterpart, else a deployment explains it as well. What changed in most of the other
 * environments, too, is a change of its own and counts on neither side.
 *
 * Which way a series went does not matter: a slow runner makes latencies rise and throughputs fall,
 * and another kernel makes some tests faster and others slower. Pure: no clock, no store.
 * docs/environment.md says it for people.
 */
#ifndef AGENT_ANALYSIS_ENVIRONMENT_H
#define AGENT_ANALYSIS_ENVIRONMENT_H

#include "agent/analysis/analysis.h"
#include "notifiers/notifier.h"

enum {
	ENVIRONMENT_LEAST = 8,
	ENVIRONMENT_SHARE = 60,     /* percent */
	ENVIRONMENT_ELSEWHERE = 20, /* percent */
	ENVIRONMENT_POINTS = 5, /* of a level, that have to be of one environment by an attribute */
};

/* A change of a series, believed or not. */
struct environment_hit {
	int64_t time, spacing; /* ms */
	int sign, verdict;     /* verdict as announcement_verdict's */
	double size;           /* percent, or NaN */
};

/* A series that was measured in an environment. */
struct environment_series {
	uint64_t key;         /* what it shares with its counterparts in other environments */
	uint64_t environment; /* environment_hash; 0: it has none */
	const char *value;    /* of it */
	int64_t first, last;  /* ms, of its points */
	struct environment_hit *hits;
	size_t hit_count;
};

/* What a run of a test saw. */
struct environment_view {
	struct arena *arena;
	const char *label;
	struct environment_series *series;
	size_t count;
};

uint64_t environment_hash(const char *label, const char *value);

/* Of a series in that environment. The test's name counts without the environment's value, so that
 * fio.runner-7 and fio.runner-8 are the same test. */
uint64_t environment_key(
	const char *test, const char *identity, const char *label, const char *value);

/*
 * Appends where the series was measured from that point on, by its identity or by an attribute that
 * the next ENVIRONMENT_POINTS points (fewer if there are fewer; at axis->n the last ones) share.
 * False and nothing where nothing says so.
 */
bool environment_value(
	const char *label, const struct series *series, size_t index, struct buf *out);

/* Of a test that has an environment. A change counts where its series still is what it was then. */
struct environment_view *environment_look(const struct analysis *analysis);
void environment_view_free(struct environment_view *view); /* NULL is welcome */

/* Views that are looked at together; borrows them. */
struct environment_index;

struct environment_index *environment_index_new(
	const struct environment_view *const *views, size_t count);
void environment_index_free(struct environment_index *index); /* NULL is welcome */

/* What changed in an environment near a time. */
struct environment_tally {
	size_t total;      /* series of it that were there */
	size_t hit;        /* of which so many changed, and not in most of the others, ... */
	size_t everywhere; /* ... and so many changed everywhere */
	size_t compared;   /* of those that are hit, with a counterpart */
	size_t behind;     /* of the others: no ENVIRONMENT_POINTS points since then yet */
	size_t elsewhere, elsewhere_changed; /* counterparts of those that are hit */
	size_t up, down, worse, better;      /* of those that are hit */
	double size;                         /* percent, the median of theirs; NaN */
	int64_t time;                        /* ms, the same; the one asked for without any */
};

struct environment_tally environment_count(
	const struct environment_index *index, uint64_t environment, int64_t time, int64_t spacing);

bool environment_stands_out(const struct environment_tally *tally);

/* Whether it would if those that are behind changed, too. */
bool environment_may_stand_out(const struct environment_tally *tally);

/* Whatever stands out at or after `since` (ms), by time, in the arena; returns how many. */
size_t environment_events(const struct environment_view *const *views, size_t count, int64_t since,
	struct arena *arena, struct environment_event **events);

/* Sets an event's numbers. */
void environment_set(struct environment_event *event, const struct environment_tally *tally);

/* Whether what has that key changed near that time in most other environments. */
bool environment_is_everywhere(const struct environment_index *index, uint64_t key,
	uint64_t environment, int64_t time, int64_t spacing);

/* Whether the environment has a series of that key. */
bool environment_has(const struct environment_index *index, uint64_t key, uint64_t environment);

/* A change that an environment has, or may have, had. */
struct environment_moment {
	uint64_t environment;
	int64_t time, spacing; /* ms */
};

/* Whether most of what changed at one moment changed the same way at another, in another
 * environment: a rollout, say. */
bool environment_follows(const struct environment_index *index,
	const struct environment_moment *first, const struct environment_moment *then);

/* Whether most of what changed at the moment has gone the other way until then (ms): it is over. */
bool environment_is_over(const struct environment_index *index,
	const struct environment_moment *moment, int64_t until);

/*
 * Whether the change of a series of that key at `then` is the way back from what it did at `first`,
 * and belongs to the end of what hit the environment: most of what did has gone back there, to the
 * level it had before, and so has this, as far as their spread tells. What has a level of its own
 * now is none.
 */
bool environment_ends(const struct environment_index *index, uint64_t key,
	const struct environment_moment *first, const struct environment_moment *then, int sign);

/* Whether a series of that key in the environment changed near that time, and the other way
 * before. */
bool environment_returns(const struct environment_index *index, uint64_t key,
	const struct environment_moment *moment, int sign);

#endif
