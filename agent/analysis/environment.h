/*
 * Distinguishes changes of the environment from changes of the code: whether simultaneous changes
 * are those of one runner or host. See docs/configure/environment.md.
 *
 * A test's `environment` names the label, tag, part of a path or attribute with the place of
 * measurement. This module counts, agent/decide/environment.h decides.
 *
 * The direction does not matter: a slow runner makes latencies rise and throughputs fall, and
 * another kernel makes some tests faster and others slower. Pure functions: no clock, no store.
 */
#ifndef AGENT_ANALYSIS_ENVIRONMENT_H
#define AGENT_ANALYSIS_ENVIRONMENT_H

#include "agent/analysis/analysis.h"
#include "agent/decide/environment.h"
#include "agent/model/announcement.h"

enum { ENVIRONMENT_POINTS = 5 }; /* consecutive points that must have the attribute's value */

/* A change of a series, confirmed or not. */
struct environment_hit {
	int64_t time, spacing; /* ms */
	int sign, verdict;     /* verdict: see announcement_verdict */
	double size;           /* percent, or NaN */
};

/* A series that was measured in an environment. */
struct environment_series {
	uint64_t key;         /* the same for its counterparts in other environments */
	uint64_t environment; /* environment_hash; 0: none */
	int64_t first, last;  /* ms, of its points */
	struct environment_hit *hits;
	size_t hit_count;
};

/* The observations of one run of a test. */
struct environment_view {
	struct environment_series *series;
	size_t count;
};

uint64_t environment_hash(const char *label, const char *value);

/* The key of a series in that environment. The environment's value is left out of the test's name,
 * so that fio.runner-7 and fio.runner-8 are the same test. */
uint64_t environment_key(
	const char *test, const char *identity, const char *label, const char *value);

/*
 * Appends where the series was measured from that point on, taken from its identity or from an
 * attribute that the next ENVIRONMENT_POINTS points share (fewer if there are fewer; at axis->n the
 * last ones). False, and nothing appended, if neither names it.
 */
bool environment_value(
	const char *label, const struct series *series, size_t index, struct buf *out);

/* The view of a test with an environment. A change counts if its series still has the environment
 * that it had then. */
struct environment_view *environment_look(struct arena *arena, const struct analysis *analysis);

/* The same as text, without the names of environments; and such a text as a view. */
const char *environment_view_put(struct arena *arena, const struct environment_view *view);
const struct environment_view *environment_view_read(struct arena *arena, const char *text);

/* Views that are evaluated together; borrows them, in the arena. */
struct environment_index;

struct environment_index *environment_index_new(
	struct arena *arena, const struct environment_view *const *views, size_t count);

struct environment_tally environment_count(
	const struct environment_index *index, uint64_t environment, int64_t time, int64_t spacing);

/* Sets an event's numbers. */
void environment_set(struct environment_event *event, const struct environment_tally *tally);

/* Whether series with that key changed near that time in most other environments. */
bool environment_is_everywhere(const struct environment_index *index, uint64_t key,
	uint64_t environment, int64_t time, int64_t spacing);

/* Whether the environment has a series with that key. */
bool environment_has(const struct environment_index *index, uint64_t key, uint64_t environment);

/* A change that an environment has, or may have. */
struct environment_moment {
	uint64_t environment;
	int64_t time, spacing; /* ms */
};

/* Whether most series that changed at one moment changed in the same direction at another moment in
 * another environment, as in a rollout. */
bool environment_follows(const struct environment_index *index,
	const struct environment_moment *first, const struct environment_moment *then);

/* Whether the event is over: most series that changed then are back at their previous level by
 * `until` (ms). */
bool environment_is_over(const struct environment_index *index,
	const struct environment_moment *moment, int64_t until);

/*
 * Whether the change of a series with that key at `then` undoes its change at `first`, as part of
 * the end of an environment event: most affected series went back to their previous level there,
 * and so did this one, within their spread. A series that reached a new level is not part of it.
 */
bool environment_ends(const struct environment_index *index, uint64_t key,
	const struct environment_moment *first, const struct environment_moment *then, int sign);

/* Whether a series with that key in the environment changed near that time, and in the other
 * direction before. */
bool environment_returns(const struct environment_index *index, uint64_t key,
	const struct environment_moment *moment, int sign);

#endif
