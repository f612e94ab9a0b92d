/*
 * The router selects the receivers of a change: those in `notify` of its test, or those selected by
 * `routes` (conf/routes.c, docs/configure/routing.md).
 *
 * It is created for a configuration, or for a round of the dispatcher, and caches which matchers
 * hold for a value: as many changes share test, metric and labels, hundreds of routes cost one
 * look-up for each name they use. One thread uses it at a time.
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

/* A receiver of a change, the kinds of messages it gets (of the requested ones, by the routes
 * alone), and how changes are grouped for it. */
struct routed_receiver {
	const struct receiver *receiver;
	unsigned kinds;
	struct strings group_by; /* none: by incident */
};

struct routed_receivers {
	const struct routed_receiver *items;
	size_t count;
};

/* The receivers that get the change in messages of these kinds (bits 1 << enum message_kind), each
 * kind routed by itself; each receiver once, in the arena. `chosen`: only those that have one of
 * the kinds among their events. */
struct routed_receivers router_route(struct router *router, const struct change_record *record,
	unsigned kinds, bool chosen, struct arena *arena);

const struct routed_receiver *router_find(
	const struct routed_receivers *selected, const struct receiver *receiver);

/*
 * Whether routes send the receiver the change, but not in messages of these kinds. A receiver that
 * got the change before the routes were edited still gets its end.
 */
bool router_withholds(struct router *router, const struct change_record *record, unsigned kinds,
	const struct receiver *receiver);

/*
 * The receivers of notices about tests, which have a name, groups and tags, but no size, labels or
 * commit. A notice that gets no receiver, except by a route with `receivers: []`, goes to those of
 * all routes that a change of its test may take.
 */
struct strings router_route_notices(struct router *router, const char *const *tests, size_t count,
	unsigned kinds, struct arena *arena);

/* Appends the change's path through the routes, a line for each that was tried: "hunter.yaml:12:
 * not taken: region=\"eu\" does not hold". */
void router_explain(
	struct router *router, const struct change_record *record, unsigned kinds, struct buf *out);

/* The names and the change's values of them, which are equal for changes of one message. */
const char *router_group(struct router *router, const struct change_record *record,
	const struct strings *names, struct arena *arena);

#endif
