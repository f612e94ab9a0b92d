/*
 * Which changes share a message.
 *
 * Those of one incident, or those with equal values of the names that a route groups by. More
 * than GROUPS_MOST incidents at once become one message, a list: a first look at many series, for
 * example.
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
	struct strings names; /* names it is grouped by; none: by incident; ... */
	const char *key;      /* ... and the values, see route_group; or NULL */
	bool first_look;      /* a list, of which most were there before the series were seen */
};

/* Sorts by time, test, worst first, metric. */
void group_sort(const struct change_record **records, size_t count);

/*
 * The messages for a receiver: the changes of one summary, those of one environment event, those
 * with the same key of the names by which they are grouped (group_by, keys, for each record;
 * without names the key is not read), and of the others those of one incident. They are ordered by
 * their first records, live in the arena and borrow the records. Returns their number.
 */
size_t group_changes(struct arena *arena, const struct change_record *const *records,
	const struct strings *group_by, const char *const *keys, size_t count,
	struct group_of **groups);

#endif
