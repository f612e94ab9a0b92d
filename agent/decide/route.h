/*
 * Which receivers get a change: those in `notify` of its test, or those selected by `routes`
 * (docs/configure/routing.md).
 *
 * A router caches which matchers hold for a value: as many changes share test, metric and labels,
 * hundreds of routes cost one look-up for each name they use. One thread uses it at a time.
 */
#ifndef AGENT_DECIDE_ROUTE_H
#define AGENT_DECIDE_ROUTE_H

#include "agent/base/buf.h"
#include "agent/decide/decision.h"
#include "agent/model/change_record.h"
#include "agent/model/route.h"

struct router;

/* Borrows what the routing points to. */
struct router *router_new(struct routing routing);
void router_free(struct router *router);

/* A receiver to which a change is led. */
struct routed {
	const struct receiver *receiver;
	unsigned kinds;          /* of the requested kinds of messages, those that lead to it */
	struct strings group_by; /* how changes are grouped for it; none: by incident */
	struct decision
		decision; /* PASS: it gets the change, and what leads there ("the route at
			     hunter.yaml:12"). DROP: none of the kinds is among its events */
};

struct routed_rows {
	const struct routed *items;
	size_t count;
	struct decision decision; /* PASS: some receiver gets the change; DROP: none, and why */
};

/* Where the change is led in messages of these kinds (bits 1 << enum message_kind), each kind
 * routed by itself; each receiver once, in the arena. Appends to `steps`, unless that is NULL, a
 * line for each route that was tried: "hunter.yaml:12: not taken: region=\"eu\" does not hold". The
 * reasons are the router's. */
struct routed_rows route_change(struct router *router, const struct change_record *record,
	unsigned kinds, struct arena *arena, struct buf *steps);

/* The receiver among them, if it gets the change; or NULL. */
const struct routed *route_find(const struct routed_rows *rows, const struct receiver *receiver);

/*
 * Whether routes send the receiver the change, but not in messages of these kinds. A receiver that
 * got the change before the routes were edited still gets its end.
 */
bool route_withholds(struct router *router, const struct change_record *record, unsigned kinds,
	const struct receiver *receiver);

/*
 * The receivers of notices about tests, which have a name, groups and tags, but no size, labels or
 * commit. A notice that gets no receiver, except by a route with `receivers: []`, goes to those of
 * all routes that a change of its test may take.
 */
struct strings route_notices(struct router *router, const char *const *tests, size_t count,
	unsigned kinds, struct arena *arena);

/* The names and the change's values of them, which are equal for changes of one message. */
const char *route_group(struct router *router, const struct change_record *record,
	const struct strings *names, struct arena *arena);

#endif
