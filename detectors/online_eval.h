/*
 * Evaluates a detector point by point, as an agent uses it: the announcements, their time, and
 * their fate. docs/design/algorithms.md section 9.
 *
 * There are two ways to count. Tracked, a change is followed from run to run as the agent does: by
 * sign and nearest place, so that a change that moves is the same one; and one that is no longer
 * found stands while there is evidence (detectors/retraction.h). Untracked, alarms are matched at
 * the end by place alone, as other detectors have been measured.
 */
#ifndef DETECTORS_ONLINE_EVAL_H
#define DETECTORS_ONLINE_EVAL_H

#include "detectors/confirm.h"
#include "detectors/score.h"

enum {
	ONLINE_FIRST = 10,   /* points of a series at its first run */
	ONLINE_SAME = 5,     /* alarms at most this many points apart are the same */
	ONLINE_SETTLED = 50, /* points behind a change after which it should have been found */
};

struct follower;
struct follower *follower_new(const struct confirm_rule *rule, bool tracked);
void follower_free(struct follower *follower);

/* Processes the changes found among the first `seen` values. A candidate that is not among them is
 * dropped. */
void follower_take(struct follower *follower, const double *values, size_t seen,
	const struct change *changes, size_t count);

/*
 * Processes the changes found after the values themselves changed, because other cycles are
 * removed. A change that was not seen before and lies at least ONLINE_SETTLED points back is not
 * announced.
 */
void follower_accept(
	struct follower *follower, size_t seen, const struct change *changes, size_t count);

struct followed {
	size_t alarms, wrong;  /* announced; neither near a label nor in an unsure span */
	size_t withdrawn;      /* announced and withdrawn by the end */
	size_t true_withdrawn; /* ... although correct */
};

/* The counts at the end; `changes` are those of the last run. */
struct followed follower_judge(const struct follower *follower, const struct labels *labels,
	const struct change *changes, size_t count);

/* The number of points behind `place` at the first alarm near it; false: there was none. */
bool follower_delay(const struct follower *follower, size_t place, size_t *delay);

#endif
