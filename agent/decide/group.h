/*
 * Groups changes that are announced together.
 *
 * A cause shows in several metrics and tests at about the same time. Changes of the same time
 * (within the tolerance of their series) or with the same first bad commit form a group, and a
 * group is one message. More than GROUPS_MOST groups at once become a single message, which lists
 * them by date.
 */
#ifndef AGENT_DECIDE_GROUP_H
#define AGENT_DECIDE_GROUP_H

#include "agent/model/change_record.h"

struct arena;

/* Messages at once for a receiver; beyond that, all become one. The second is for groups by names.
 */
enum { GROUPS_MOST = 3, GROUPS_BY_NAMES_MOST = 20 };

struct group_of {
	const struct change_record **items; /* by time, test, worst first, metric */
	size_t count;
	struct strings names; /* names it is grouped by; none: time and commit; ... */
	const char *key;      /* ... and the values, see router_group; or NULL */
};

/* Sorts by time, test, worst first, metric. */
void group_sort(const struct change_record **records, size_t count);

/* Groups the records; groups are ordered by their first record, live in the arena and borrow the
 * records. Returns their number. */
size_t group_records(struct arena *arena, const struct change_record *const *records, size_t count,
	struct group_of **groups);

/*
 * The messages for a receiver: the changes of one summary, those of one environment event, those
 * with the same key of the names by which they are grouped (group_by, keys, for each record;
 * without names the key is not read), and the others as group_records has them.
 */
size_t group_changes(struct arena *arena, const struct change_record **records,
	const struct strings *group_by, const char *const *keys, size_t count,
	struct group_of **groups);

#endif
