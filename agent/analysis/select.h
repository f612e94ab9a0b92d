/*
 * Selection: which points and metrics of a test a command uses, as given by --since, --last,
 * --metrics and others.
 *
 * It applies in two places. Criteria that a source supports become part of the query (range,
 * branch, metrics); the others are applied to the dataset afterwards (commits, versions, the last N
 * points). For dates, since is inclusive and until is exclusive; bounds by commit or version are
 * both inclusive, as in Hunter.
 */
#ifndef AGENT_ANALYSIS_SELECT_H
#define AGENT_ANALYSIS_SELECT_H

#include "agent/base/arena.h"
#include "conf/config.h"
#include "sources/source.h"

/* ms: the range queried from servers if neither --since nor the test gives one. */
#define SELECTION_SERVER_RANGE (INT64_C(365) * 24 * 3600 * 1000)

struct selection_flags {
	const char *since, *since_commit, *since_version;
	const char *until, *until_commit, *until_version;
	const char *branch;
	int64_t last;
	struct strings metrics, attrs;
};

extern const struct field range_fields[];     /* --since, --until and --branch */
extern const struct field selection_fields[]; /* the others */

/* A bound by attribute: the attribute's name and value. */
struct select_mark {
	const char *attribute, *value; /* NULL: no bound */
};

struct selection {
	int64_t since, until; /* ms; WHEN_ALWAYS, WHEN_NEVER if not given */
	struct select_mark from, to;
	size_t last; /* 0: all */
	const char *branch;
	struct strings metrics, attributes; /* none: all */
};

/* Relative dates count from `now` (ms). Strings are borrowed from the flags. Fails on an invalid
 * date, two bounds for one side, since > until. */
bool selection_resolve(const struct selection_flags *flags, int64_t now, struct selection *out,
	struct error *error) MUST_USE;

/* Fails if --metrics contains a name that none of the tests can have; a test whose metrics are not
 * known in advance can have any. */
bool selection_check(const struct selection *selection, const struct test *const *tests,
	size_t count, struct error *error) MUST_USE;

/* Whether the test can have one of the requested metrics. */
bool selection_matches(const struct selection *selection, const struct test *test);

/* Sets the query's range, branch and metrics; query->now and arena must be set. */
void selection_query(
	const struct selection *selection, const struct test *test, struct query *query);

/*
 * The start of the query at `now` for a sliding range (ms): at least `range` before, and the same
 * for half a range, also after a restart. Detection windows are aligned to the first point; if
 * they slid with every run, noise would get a new chance to look like a change each time.
 */
int64_t selection_standing_since(int64_t now, int64_t range);

/*
 * Cuts the dataset to marks and `last`, in this order, and drops series that were not requested.
 * The error names the test and the unknown commit, version or metric.
 */
bool selection_apply(const struct selection *selection, const char *test, struct arena *arena,
	struct dataset *data, struct error *error) MUST_USE;

/*
 * Resolves the mark in this data: a value of four or more hexadecimal digits that is no point's
 * commit stands for the only commit that begins with it. Fails if several do, and names them.
 */
bool mark_resolve(const struct select_mark *mark, const char *test, const struct dataset *data,
	struct select_mark *out, struct error *error) MUST_USE;

/* The last (or first) point of the axis whose attribute has the mark's value; false if there is
 * none. */
bool mark_find(const struct select_mark *mark, const struct axis *axis, bool last, size_t *index);

/* The time of the mark's last (or first) point on any axis, ms; false if there is none. */
bool mark_time(
	const struct select_mark *mark, const struct dataset *data, bool last, int64_t *time);

/* Fails with "test "x": no point has commit "y"", and the most similar known value. */
bool mark_missing(const struct select_mark *mark, const char *test, const struct dataset *data,
	struct error *error);

#endif
