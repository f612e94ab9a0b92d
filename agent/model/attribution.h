/*
 * Which deployments can have caused a change (docs/configure/deployments.md): those between the
 * start of the last certainly good point and the end of the first certainly bad one. A point covers
 * a window of time, so a deployment within that window counts, even if the point carries the build
 * before.
 */
#ifndef AGENT_MODEL_ATTRIBUTION_H
#define AGENT_MODEL_ATTRIBUTION_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/arena.h"
#include "agent/model/change.h"

struct series;

enum { ATTRIBUTION_LISTED = 20 };

/* A build started to run. */
struct deployment {
	int64_t after; /* ms: not deployed yet by then; equal to `time` if that is exact, INT64_MIN
			  if there is no earlier point */
	int64_t time;  /* ms: deployed by then */
	const char *commit, *version; /* NULL if unknown */
};

/* By time. */
struct deployments {
	const struct deployment *items;
	size_t count;
};

/* The suspects of a change. Texts are commits, or versions if there are no commits. */
struct attribution {
	bool known; /* builds are known; otherwise all else is empty */
	bool timed; /* deployments have times of their own, not those of points */
	size_t count;
	const struct deployment *list; /* by time; if there are many, the first ones and the last */
	size_t listed;                 /* at most ATTRIBUTION_LISTED */
	int64_t since, until;   /* ms: from the start of the last certainly good point to the end of
				   the first certainly bad one */
	struct deployment last; /* the one before them; time INT64_MIN: unknown */
	int64_t corrections;    /* how often the suspects were corrected after the announcement */
	double share; /* share of a cluster's members that have these suspects; 0: of a single
			 series */
};

/* The texts are copied to the arena. */
struct attribution attribution_of(
	struct arena *arena, const struct series *series, const struct change *change);
struct attribution attribution_copy(struct arena *arena, const struct attribution *attribution);

/*
 * For a cluster, members nearest to its centre first: the deployments that most members suspect,
 * or all if not even half of the members share one. The texts are copied to the arena.
 */
struct attribution attribution_common(
	struct arena *arena, const struct attribution *members, size_t count);

/* Commit, else version; NULL if unknown. */
const char *deployment_name(const struct deployment *deployment);
bool deployment_same(const struct deployment *a, const struct deployment *b);

/* The build before the suspects, and the last suspect. Both NULL if there are no suspects; the
 * first also if it is unknown or the same: a build is never compared with itself. */
const char *attribution_from(const struct attribution *attribution);
const char *attribution_to(const struct attribution *attribution);
bool attribution_same(const struct attribution *a, const struct attribution *b);

/* Adds the fields that attribution_same compares. */
uint64_t attribution_hash(const struct attribution *attribution, uint64_t hash);

/* Whether a suspect is new although its time was covered before. */
bool attribution_gained(const struct attribution *now, const struct attribution *before);

#endif
