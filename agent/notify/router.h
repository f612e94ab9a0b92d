/*
 * The router says who is told of a change: the receivers in `notify` of its test, or those to which
 * `routes` lead (conf/routes.c, docs/routing.md).
 *
 * It is made once for a configuration, or for a round of the dispatcher, and remembers which
 * matchers hold for a value: many changes have the same test, metric and labels, so that hundreds
 * of routes cost a look-up for each name that they ask for. One thread uses it at a time.
 */
#ifndef AGENT_NOTIFY_ROUTER_H
#define AGENT_NOTIFY_ROUTER_H

#include "agent/base/buf.h"
#include "agent/store/store.h"
#include "conf/config.h"

struct router;

/* Borrows the configuration. */
struct router *router_new(const struct config *config);
void router_free(struct router *router);

/* A receiver that is told, by messages of which kinds (of those that were asked for, by the routes
 * alone), and how changes are grouped for it. */
struct routed_receiver {
	const struct receiver *receiver;
	unsigned kinds;
	struct strings group_by; /* none: by time and commit */
};

struct routed_receivers {
	const struct routed_receiver *items;
	size_t count;
};

/* Who is told of the change by messages of these kinds (bits 1 << enum message_kind), each of which
 * passes the routes by itself; each receiver once, in the arena. */
struct routed_receivers router_route(struct router *router, const struct change_record *record,
	unsigned kinds, struct arena *arena);

/* The same, whatever events the receivers have chosen. */
struct routed_receivers router_route_all(struct router *router, const struct change_record *record,
	unsigned kinds, struct arena *arena);

const struct routed_receiver *router_find(
	const struct routed_receivers *told, const struct receiver *receiver);

/*
 * Whether routes tell the receiver of the change, but not by messages of these kinds. Who was told
 * of a change before the routes were changed is not withheld its end.
 */
bool router_withholds(struct router *router, const struct change_record *record, unsigned kinds,
	const struct receiver *receiver);

/*
 * The names of those who are told of what is wrong with tests, each of which has a name, groups and
 * tags, but no size, labels or commit. If routes lead to nobody for one, of the receivers of all
 * routes that a change of it may take.
 */
struct strings router_route_notices(struct router *router, const char *const *tests, size_t count,
	unsigned kinds, struct arena *arena);

/* Of one test. */
struct strings router_route_notice(
	struct router *router, const char *test, unsigned kinds, struct arena *arena);

/* Appends how the change passes the routes, a line for each that was tried:
 * "hunter.yaml:12: not taken: region=\"eu\" does not hold". */
void router_explain(
	struct router *router, const struct change_record *record, unsigned kinds, struct buf *out);

/* Appends the change's values of these names, which are equal for changes of one message. */
void router_group(struct router *router, const struct change_record *record,
	const struct strings *names, struct buf *out);

#endif
