/*
 * Selection: which points and metrics of a test a command looks at, as --since, --last, --metrics
 * and their like say.
 *
 * It acts in two places. What a source can use is put into the query (range, branch, metrics); what
 * only the data can tell is applied to the dataset afterwards (commits, versions, the last N
 * points). Since is inclusive and until is exclusive for dates; a commit or version names its own
 * points, so both its bounds are inclusive, as in Hunter.
 */
#ifndef AGENT_ANALYSIS_SELECT_H
#define AGENT_ANALYSIS_SELECT_H

#include "agent/core/arena.h"
#include "conf/config.h"
#include "sources/source.h"

/* How far back servers are asked when no --since is given, and their tests have no range; ms. */
#define SELECTION_SERVER_RANGE (INT64_C(365) * 24 * 3600 * 1000)

struct selection_flags {
	const char *since, *since_commit, *since_version;
	const char *until, *until_commit, *until_version;
	const char *branch;
	int64_t last;
	struct strings metrics, attrs;
};

extern const struct field selection_fields[];

/* A bound by attribute: the attribute's name and value. */
struct select_mark {
	const char *attribute, *value; /* NULL: no such bound */
};

struct selection {
	int64_t since, until; /* ms; WHEN_ALWAYS, WHEN_NEVER where not given */
	struct select_mark from, to;
	size_t last; /* 0: all */
	const char *branch;
	struct strings metrics, attributes; /* none: all */
};

/* Dates count from `now` (ms). Strings are borrowed from the flags. Fails on a bad date, two bounds
 * of one side, since > until. */
bool selection_resolve(const struct selection_flags *flags, int64_t now, struct selection *out,
	struct error *error) MUST_USE;

/* A name of --metrics that none of the tests can have is an error; tests whose metrics are known
 * only later have any. */
bool selection_check(const struct selection *selection, const struct test *const *tests,
	size_t count, struct error *error) MUST_USE;

/* Whether the test can have one of the metrics asked for. */
bool selection_matches(const struct selection *selection, const struct test *test);

/* Sets the query's range, branch and metrics; query->now and arena are set. */
void selection_query(
	const struct selection *selection, const struct test *test, struct query *query);

/*
 * From when on to ask at `now` for a range that slides (ms): at least `range` before, and the same
 * for half a range of nows, also after a restart. Windows of detection lie relative to the first
 * point; if they slid with every run, noise would get a new chance to look like a change each time.
 */
int64_t selection_standing_since(int64_t now, int64_t range);

/*
 * Cuts the dataset to marks and `last`, in this order, and drops series that were not asked for.
 * Names the test and the commit, version or metric that is not there.
 */
bool selection_apply(const struct selection *selection, const char *test, struct arena *arena,
	struct dataset *data, struct error *error) MUST_USE;

/*
 * What the mark means in this data: a commit that no point has, of four hexadecimal digits or more,
 * is taken as the beginning of the only one that begins so. Fails where several do, and names two.
 */
bool mark_resolve(const struct select_mark *mark, const char *test, const struct dataset *data,
	struct select_mark *out, struct error *error) MUST_USE;

/* The last (or first) point of the axis whose attribute has the mark's value; false if there is
 * none. */
bool mark_find(const struct select_mark *mark, const struct axis *axis, bool last, size_t *index);

/* The time of the mark's last (or first) point on any axis, ms; false if there is none. */
bool mark_time(
	const struct select_mark *mark, const struct dataset *data, bool last, int64_t *time);

/* Fails with "test "x": no point has commit "y"", and the nearest known value. */
bool mark_missing(const struct select_mark *mark, const char *test, const struct dataset *data,
	struct error *error);

#endif
