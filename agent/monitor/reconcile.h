/*
 * What is news: the changes that are known of one series against those that were found now.
 *
 * A change is known by its sign and its time, within a tolerance counted in points of the series,
 * because its index moves while points arrive and its place moves while the picture gets clearer.
 * The matching is one to one and the best there is: of all matchings it is the one whose pairs lie
 * nearest, so that it depends on no order of its input. What is left over may have moved further
 * (detectors/retraction.h): a known change that vanishes and a found one of its sign with no other
 * between them are the same. A known change that has no partner is gone only where the data would
 * have shown it; before the first points nothing can be found.
 */
#ifndef AGENT_MONITOR_RECONCILE_H
#define AGENT_MONITOR_RECONCILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/change.h"

struct arena;

#define RECONCILE_NONE SIZE_MAX

struct known {
	int64_t id;
	int64_t time; /* ms */
	int sign;     /* of the change: 1, 0, -1 */
	bool withdrawn;
	size_t followed; /* points that followed it when it was told; 0: it does not stand, and is
			    not looked for beyond the tolerance */
};

struct found {
	size_t index; /* into the times; distinct within one sign */
	int sign;
};

enum fate {
	FATE_SAME,
	FATE_MOVED,   /* found at another time */
	FATE_GONE,    /* not found where it should have been seen */
	FATE_OUTSIDE, /* the data do not cover it, nothing is known */
};

struct reconciliation {
	size_t *known_of; /* for each found change: the known one it is, or RECONCILE_NONE: it is
			     news */
	size_t *found_of; /* for each known change: the found one, or RECONCILE_NONE */
	enum fate *fates; /* for each known change */
};

/*
 * `times` are those of the existing points of the series, ascending. Known and found come in any
 * order. The result lives in the arena.
 */
void reconcile(struct arena *arena, const int64_t *times, size_t n, const struct known *known,
	size_t known_count, const struct found *found, size_t found_count,
	struct reconciliation *out);

#endif
