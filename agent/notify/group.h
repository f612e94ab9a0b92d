/*
 * Which changes are told together.
 *
 * Changes with one cause show in several metrics and tests at about the same time, so those of the
 * same time (within the tolerance of their series) or with the same first bad commit make a group,
 * and a group is a message. Many groups at once are not many messages: then all travel in one,
 * which lists them by date.
 */
#ifndef AGENT_NOTIFY_GROUP_H
#define AGENT_NOTIFY_GROUP_H

#include "agent/store/store.h"

enum { GROUPS_MOST = 3 }; /* messages at once; what is more becomes one */

struct group_of {
	const struct change_record **items; /* by time, test, worst first, metric */
	size_t count;
};

/* By time, test, worst first, metric. */
void group_sort(const struct change_record **records, size_t count);

/* The groups of the records, ordered by their first; in the arena, the records are borrowed.
 * Returns their number. */
size_t group_records(struct arena *arena, const struct change_record *const *records, size_t count,
	struct group_of **groups);

#endif
