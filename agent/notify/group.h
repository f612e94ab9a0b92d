/*
 * Groups changes that are announced together.
 *
 * A cause shows in several metrics and tests at about the same time. Changes of the same time
 * (within the tolerance of their series) or with the same first bad commit form a group, and a
 * group is one message. More than GROUPS_MOST groups at once become a single message, which lists
 * them by date.
 */
#ifndef AGENT_NOTIFY_GROUP_H
#define AGENT_NOTIFY_GROUP_H

#include "agent/store/store.h"

enum { GROUPS_MOST = 3 }; /* messages at once; beyond that, all become one */

struct group_of {
	const struct change_record **items; /* by time, test, worst first, metric */
	size_t count;
};

/* Sorts by time, test, worst first, metric. */
void group_sort(const struct change_record **records, size_t count);

/* Groups the records; groups are ordered by their first record, live in the arena and borrow the
 * records. Returns their number. */
size_t group_records(struct arena *arena, const struct change_record *const *records, size_t count,
	struct group_of **groups);

#endif
