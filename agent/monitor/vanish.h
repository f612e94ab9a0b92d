/*
 * Series that vanish: label sets of a test that have no more points while the others go on.
 *
 * A series has ended when the test's newest point is further behind than its rhythm allows
 * (agent/monitor/rhythm.h). Those that end together are one piece of news, and so are those that
 * come back. Label sets that come and go (pods) say nothing by it: only who has lived for
 * VANISH_LIVED intervals counts. Of a series that is not in the answer at all nothing is concluded.
 */
#ifndef AGENT_MONITOR_VANISH_H
#define AGENT_MONITOR_VANISH_H

#include "agent/core/arena.h"
#include "agent/monitor/rhythm.h"
#include "agent/store/store.h"

enum {
	VANISH_LIVED = 20,
	VANISH_GROUPS = 3, /* that are told one by one; if there are more, all are one */
};

struct vanish_rule {
	struct rhythm_bounds bounds;
	int64_t since;  /* ms: what was missing before, when nobody looked, is not told */
	int64_t oldest; /* ms: nor what ended before that */
	const struct vanished *told;
	size_t told_count;
};

/* News about some series. */
struct vanish_news {
	bool back;
	struct vanished *series; /* `test` is NULL */
	size_t count, of;        /* of: those that there were, or are told to have vanished */
	int64_t first, ended;    /* ms, the first and the last of their last points */
	int64_t since;           /* ms, of those that are back: the first of their new points */
	int64_t least, most;     /* ms, for how long those that are back were away */
	const char *which;       /* "region=ap", or their names */
};

/* The news of a dataset, in the arena; returns how many. */
size_t vanish_look(const struct dataset *data, const struct vanish_rule *rule, struct arena *arena,
	struct vanish_news **news);

/* What people read of it, in the arena. */
const char *vanish_text(const struct vanish_news *news, const char *test, struct arena *arena);

#endif
