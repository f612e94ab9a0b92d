/*
 * Which deployments a change can come from (docs/deployments.md): those that happened between the
 * beginning of the last point that is surely good and the end of the first that is surely bad. A
 * point is a window in time, so what was deployed within one counts, even if the point carries the
 * build before.
 */
#ifndef CORE_ATTRIBUTION_H
#define CORE_ATTRIBUTION_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/arena.h"
#include "agent/core/change.h"

struct series;

enum { ATTRIBUTION_LISTED = 20 };

/* That another build began to run. */
struct deployment {
	int64_t after; /* ms: by then it had not; as `time` where that is exact, INT64_MIN where
			  nobody looked before */
	int64_t time;  /* ms: by then it had */
	const char *commit, *version; /* NULL where unknown */
};

/* By time. */
struct deployments {
	const struct deployment *items;
	size_t count;
};

/* The suspects of a change. Texts are commits, or versions where there are no commits. */
struct attribution {
	bool known; /* something is known of what ran; else all of it is empty */
	bool timed; /* the deployments have times of their own, not those of points */
	size_t count;
	const struct deployment *list; /* in order of time; of many the first ones and the last */
	size_t listed;                 /* at most ATTRIBUTION_LISTED */
	int64_t since, until; /* ms: from the beginning of the last surely good point to the end of
				 the first surely bad one */
	struct deployment last; /* the one before them all; time INT64_MIN: none is known */
	int64_t corrections;    /* how often others were told later, of an announced change */
	double share; /* of a cluster's members, those of which they are; 0: of one series */
};

/* The texts are copied to the arena. */
struct attribution attribution_of(
	struct arena *arena, const struct series *series, const struct change *change);
struct attribution attribution_copy(struct arena *arena, const struct attribution *attribution);

/*
 * Of a crowd, nearest to its centre first: the deployments that most of its members suspect; where
 * not even half of them share one, all of them. The texts are copied to the arena.
 */
struct attribution attribution_common(
	struct arena *arena, const struct attribution *members, size_t count);

/* Commit, else version; NULL where neither is known. */
const char *deployment_name(const struct deployment *deployment);
bool deployment_same(const struct deployment *a, const struct deployment *b);

/* What ran before the suspects, and the last of them. Both NULL where there are none; the first one
 * also where it is not known, or where it is the same: a build is never compared with itself. */
const char *attribution_from(const struct attribution *attribution);
const char *attribution_to(const struct attribution *attribution);
bool attribution_same(const struct attribution *a, const struct attribution *b);

/* Adds what makes one another than attribution_same. */
uint64_t attribution_hash(const struct attribution *attribution, uint64_t hash);

/* One of the suspects is one that was not known before, though looked for at its time. */
bool attribution_gained(const struct attribution *now, const struct attribution *before);

#endif
