/*
 * Receivers, and the routes that lead changes to them. Filled by conf, read by
 * agent/decide/route.h.
 */
#ifndef AGENT_MODEL_ROUTE_H
#define AGENT_MODEL_ROUTE_H

#include "agent/base/matcher.h"
#include "agent/base/plugin.h"

/* When a digest is sent: at that time on these days. */
struct digest_times {
	int64_t at;    /* minutes after midnight */
	unsigned days; /* bits 1 << day, Sunday is 0 */
	const struct zone *zone;
};

struct receiver {
	const char *name; /* as in a test's `notify:`; of a section the notifier's */
	const struct plugin *notifier;
	const void *options;
	bool chose_events;    /* `events` is given */
	bool implicit;        /* the terminal, not configured in the file */
	bool heartbeat;       /* sends a weekly heartbeat */
	unsigned events;      /* events to send: bits 1 << enum message_kind */
	int64_t remind_after; /* ms until a reminder of untriaged regressions, and between
				 reminders; 0: never */
	const struct digest_times *digest; /* or NULL */
	const char *unset;    /* for one that only commands use: an unset variable that its options
				 need, or NULL */
	uint64_t fingerprint; /* of its own options; see struct test */
};

/*
 * A node of the tree of routes. A change that matches its conditions goes to the first of its
 * routes that matches, and to the next ones as long as these have `continue`; or, if none matches,
 * to its receivers.
 */
struct notify_route {
	const char *file; /* where it is defined */
	int line;
	struct matchers match; /* all must hold */
	double at_least;       /* percent, the change's size; 0: any */
	int verdict;           /* 1: regressions only, -1: improvements only, 0: both */
	unsigned events;       /* bits 1 << enum message_kind; 0: all */
	bool go_on;            /* `continue` */
	bool nobody;           /* `receivers: []`, its own or that of the route that it is in */
	/* Its own, or those of the route that it is in: indices of receivers, and the names of
	 * values by which changes are grouped; none: by incident. */
	const size_t *receivers;
	size_t receiver_count;
	struct strings group_by;
	const struct notify_route *routes;
	size_t count;
};

/* What routing knows of a test or cluster. */
struct route_topic {
	bool routed;             /* routes select its receivers; else: */
	const size_t *receivers; /* those of its `notify`, indices */
	size_t receiver_count;
	struct strings tags;
	struct strings groups; /* that it is in; a cluster is its own */
};

/* Everything that selects receivers. */
struct routing {
	const struct notify_route *root; /* NULL: there are no routes */
	const struct receiver *receivers;
	size_t receiver_count;
	const struct dict *topics; /* name -> struct route_topic; or NULL */
};

#endif
