/*
 * Matches the known changes of one series with those found now, to see what is new.
 *
 * A change is identified by its sign and its time, within a tolerance counted in points of the
 * series, because its index moves while points arrive and its place moves while evidence grows.
 * The matching is one to one and optimal: of all matchings it is the one whose pairs lie nearest,
 * so it does not depend on the order of the input. Unmatched changes may have moved further
 * (detectors/retraction.h): a known change that is not found any more and a found one of the same
 * sign with no other between them are the same change. A known change without a partner is gone
 * only if the data would have shown it; before the first points nothing can be found. A known
 * change that has recovered is nothing that is found after its end.
 */
#ifndef AGENT_DECIDE_MATCH_H
#define AGENT_DECIDE_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/model/change.h"

struct arena;

#define MATCH_NONE SIZE_MAX

struct known {
	int64_t id;
	int64_t time; /* ms */
	int sign;     /* of the change: 1, 0, -1 */
	bool withdrawn;
	double before, after; /* its levels; equal: it is not searched for beyond the tolerance
				 unless it stands */
	size_t followed; /* points that followed it when it was announced; 0: it does not stand */
	int64_t over;    /* ms: when it had recovered; 0: it has not */
};

struct found {
	size_t index; /* into the times; distinct for each sign */
	int sign;
	double before, after; /* its levels */
};

enum fate {
	FATE_SAME,
	FATE_MOVED,   /* found at another time */
	FATE_GONE,    /* not found where the data should show it */
	FATE_OUTSIDE, /* not covered by the data: unknown */
};

struct matching {
	size_t *known_of; /* by found change: the known one it is, or MATCH_NONE: it is new */
	size_t *found_of; /* by known change: the found one, or MATCH_NONE */
	enum fate *fates; /* by known change */
};

/*
 * `times` are those of the existing points of the series, ascending. Known and found changes may
 * come in any order. The result lives in the arena.
 */
void match_changes(struct arena *arena, const int64_t *times, size_t n, const struct known *known,
	size_t known_count, const struct found *found, size_t found_count, struct matching *out);

#endif
