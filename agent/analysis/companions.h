/*
 * Companions: series of other tests by which a task's series are judged (`explained_by`,
 * `relative_to`), fetched before the task is submitted, with its range and branch.
 *
 * A task whose companions cannot be read fails like one whose own data cannot. A companion lives
 * as long as the tasks that use it; a pool keeps it longer, for later tasks.
 */
#ifndef AGENT_ANALYSIS_COMPANIONS_H
#define AGENT_ANALYSIS_COMPANIONS_H

#include "agent/io/engine.h"

struct pool_of_companions;

struct companions_way {
	struct pool_of_companions *pool; /* or NULL */
	/* Has the task's data read; keeps the configuration of its test until its release. */
	void (*submit)(void *context, struct task *task);
	void *context;
};

struct pool_of_companions *companions_pool_new(void);
void companions_pool_free(struct pool_of_companions *pool); /* NULL is allowed */

/*
 * Reads the series of other tests that the task needs, then calls `ready` with it on the loop's
 * thread; immediately if it needs none. If one cannot be read, the task has failed. Until then the
 * caller owns the task.
 */
void companions_fetch(
	const struct companions_way *way, struct task *task, void (*ready)(struct task *task));

/* The other tests whose data this one needs, possibly with duplicates; `out` has room for one more
 * than it has metrics. Returns how many. */
size_t companions_tests(const struct test *test, const struct test **out);

/* The memory of the data that were fetched for a task; NULL: 0. */
size_t companions_bytes(const struct companions *companions);

/* Whether all labels are the same, in the same order. */
bool companions_same_labels(const struct pairs *a, const struct pairs *b);

/*
 * The series that the rule names for one of the test's series: that of the metric or, if there are
 * several, the one with the same labels. `own` is the test's data; companions is NULL if none were
 * fetched. Fails if there is none.
 */
const struct series *companions_find(const struct companions *companions, const struct test *test,
	const struct control_rule *rule, const struct dataset *own, const struct series *series,
	struct error *error) MUST_USE;

#endif
