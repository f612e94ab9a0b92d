/*
 * A change as it is announced, and the common data of an environment event.
 */
#ifndef AGENT_MODEL_ANNOUNCEMENT_H
#define AGENT_MODEL_ANNOUNCEMENT_H

#include "agent/base/field.h"
#include "agent/base/url_template.h"
#include "agent/model/attribution.h"
#include "agent/model/culprit.h"
#include "agent/model/excerpt.h"

/* An attribute of the points other than commit and version. */
struct attribute {
	const char *name, *before,
		*after; /* values at the points of commit_before and commit_after */
};

/* How a change recovered. */
struct recovered {
	int64_t time; /* ms, of the first point at the old level; 0: not recovered */
	double level;
};

/* The other series that a series is judged by. */
enum basis {
	BASIS_NONE,   /* none */
	BASIS_LOAD,   /* the change at equal load */
	BASIS_RATIO,  /* the change relative to a control */
	BASIS_UNUSED, /* a load without influence: the change of the raw values */
};

/* A change as it is announced. Strings are borrowed. */
struct announcement {
	int64_t id;                       /* the store's, stable across restarts */
	int64_t incident;                 /* id of the incident that it is in; 0: none */
	const char *test, *metric, *unit; /* unit may be NULL */
	int direction; /* the metric's: 1 higher is better, -1 lower is better, 0 either way */
	enum basis basis;
	int64_t time;    /* ms, first point of the new level */
	int64_t spacing; /* ms between points of the series, near the change; 0: unknown */
	struct change change;
	/* Attributes at the last point before and the first point of the new level; NULL if
	 * unknown. */
	const char *commit_before, *commit_after;
	const char *version_before, *version_after;
	/*
	 * The range in which the new level began, by change.place_from and place_to; of a trend,
	 * its start and end. With the attributes of the last point that is certainly before it and
	 * the first that is certainly after it.
	 */
	int64_t place_from, place_to; /* ms */
	const char *place_commit_before, *place_commit_after;
	const char *place_version_before, *place_version_after;
	struct attribution suspects;   /* the deployments that may have caused it */
	const struct culprit *culprit; /* the result of its last bisection, or NULL */
	double slope;                  /* of a trend: rise per point; else NaN */
	const struct attribute *attributes;
	size_t attribute_count;
	/* Of a cluster: the number of series that moved alike, including this one, and their common
	 * label ("96% renderer=gpu"). 0 and NULL for a single series. */
	size_t members;
	const char *shared;
	const char *environment; /* where the series was measured (the test's `environment`); NULL
				    if unknown */
	struct recovered over;
	const char *other;  /* TEST/METRIC, NULL without a basis */
	bool other_changed; /* at the time of this change, ... */
	double other_size;  /* ... by this percentage; else 0 */
	/* Pages about the commit, the commit range, the series, the runbook, and the agent's own
	 * about the change: escaped http(s) URLs; NULL if unknown. */
	const char *commit_url, *compare_url, *dashboard, *runbook, *page;
	const char *owner;             /* or NULL */
	struct packed_excerpt excerpt; /* the points around it, if they are to be shown or stored */
	/* For a message: */
	double accepted;     /* percent: the accepted size that it has outgrown; else 0 */
	struct strings tags; /* configured tags of its annotation */
	const char *status;  /* its triage since: "expected by ann"; or NULL */
	/* Templates and values of dashboard, runbook and owner; NULL: unknown. */
	const struct url_templates *templates;
	const struct url_values *values;
	/* Set by digests only (notifiers/digest.h). The changes of a crowd, `members` of them,
	 * worst first; and the label text that all series of the test share, which was cut from the
	 * names. */
	const struct announcement *const *folded;
	const char *common;
};

/* Changes at one time of most series of one environment, but not of the same tests elsewhere
 * (agent/analysis/environment.h). Strings are borrowed. */
struct environment_event {
	int64_t id;                /* of its first change, stable across restarts */
	const char *label, *value; /* "runner", "runner-7" */
	int64_t time,
		spacing;   /* ms; median of the changes' times, and the base of their tolerance */
	size_t hit, total; /* series of the environment: changed ones, and all */
	size_t up, down, worse, better;      /* of the changed ones */
	double size;                         /* percent, their median; NaN if none has a size */
	size_t elsewhere, elsewhere_changed; /* the same tests in other environments */
	size_t told;                         /* `hit` at its last announcement; 0: not announced */
	bool followed;                       /* another environment changed in the same way later */
	int64_t created;                     /* ms, wall clock */
	/* Its changes in the store when it was read: those not recovered, and those whose recovery
	 * was reported. */
	size_t standing, back;
};

/* 1 for a regression in the metric's direction, -1 for an improvement, 0 for neither; by the
 * levels, which outliers do not affect. */
int announcement_verdict(const struct announcement *item);

/* True where both items have the same attributes, the same place, and the same range of commits and
 * versions. */
bool announcement_same_range(const struct announcement *a, const struct announcement *b);

/* The version before the suspects and the last suspect, by commit or else by version; both NULL
 * without known deployments. Where deployments are unknown, as for a cluster, the last good and the
 * first bad one. */
void announcement_range(const struct announcement *item, const char **before, const char **after);

/* The most likely first bad one if the range has several candidates; else NULL. */
const char *announcement_likely(const struct announcement *item);

/* The commit that the item's commit_url is about, or NULL. */
const char *announcement_commit(const struct announcement *item);

/* The item's cause in one name: the likely commit of the range, or its version; NULL where
 * announcement_range has none, so that no list names a commit that no message does, and for a
 * trend, whose last commit is only the newest. */
const char *announcement_bad(const struct announcement *item);

/* Negative if `a` is more important than `b`. */
int announcement_compare_weight(const struct announcement *a, const struct announcement *b);

#endif
