/*
 * Vanished series: label sets of a test that get no more points while the others do.
 *
 * A series has ended when the test's newest point is further ahead than its rhythm allows
 * (agent/monitor/rhythm.h). Series that end together are reported together, and so are those that
 * come back. Label sets that come and go (pods) are never reported: those that others replaced, and
 * those of a metric half of whose series came or went within a week; nor are those that did not
 * exist for VANISH_LIVED intervals. A series that is missing from the answer altogether is not
 * judged.
 */
#ifndef AGENT_MONITOR_VANISH_H
#define AGENT_MONITOR_VANISH_H

#include "agent/base/arena.h"
#include "agent/monitor/rhythm.h"
#include "agent/store/store.h"

enum {
	VANISH_LIVED = 20,
	VANISH_GROUPS = 3, /* reported one by one; if there are more, all are reported as one */
};

struct vanish_rule {
	struct rhythm_bounds bounds;
	int64_t since;  /* ms of the first run: series missing before are not reported */
	int64_t oldest; /* ms: nor those that ended before that */
	const struct vanished *told;
	size_t told_count;
};

/* A report about some series. */
struct vanish_news {
	bool back;
	struct vanished *series; /* `test` is NULL */
	size_t count, of;        /* of: all series that there were, or were reported as vanished */
	int64_t first, ended;    /* ms, earliest and latest of their last points */
	int64_t since;           /* ms, if they are back: earliest of their new points */
	int64_t least, most;     /* ms, if they are back: shortest and longest absence */
	const char *which;       /* "region=ap", or their names */
};

/* Finds the reports about a dataset, in the arena; returns their number. */
size_t vanish_find(const struct dataset *data, const struct vanish_rule *rule, struct arena *arena,
	struct vanish_news **news);

/* The text of a report, in the arena. */
const char *vanish_text(const struct vanish_news *news, const char *test, struct arena *arena);

#endif
