/*
 * The matchers of all routes are sorted by name. For a change, each name's value is looked up once;
 * bits cached for the value record which of its matchers hold. An expression is tried on a value
 * only when no other condition of the route has failed.
 */
#include "agent/decide/route.h"

#include <math.h>
#include <string.h>

#include "agent/base/dict.h"
#include "agent/decide/silence.h"
#include "agent/model/message.h"

enum { VALUES_MOST = 20000, BITS = 64 }; /* values cached for each name */

#define TAG "tag" /* the name for the tags of a test */

/* Bits for each matcher of a name: whether it was tried on a value, and whether it holds. */
struct outcome {
	uint64_t *tried, *holds;
};

/* A name that matchers use. */
struct named {
	const char *name; /* by silence_name */
	bool by_test;     /* all changes of a test have the same values */
	const struct matcher **matchers;
	size_t count;
	struct dict known;     /* values -> struct outcome */
	struct outcome *spare; /* when `known` is full */
	uint64_t round;        /* in which `outcome` was looked up */
	const struct outcome *outcome;
};

struct route_condition {
	struct named *named;
	size_t bit;
};

struct node {
	const struct notify_route *route;
	const char *reason; /* that its receivers get a change, or that it has none */
	const struct route_condition *conditions; /* one for each matcher */
	const struct node *nodes;                 /* one for each route of it */
};

/* The change or notice to route. */
struct question {
	const struct change_record *record; /* NULL: a notice */
	double size;                        /* percent; infinite: from zero */
	int verdict;
	unsigned kinds;
	bool possible; /* matchers on names that a notice lacks may hold */
};

struct router {
	struct routing routing;
	struct arena *arena;
	const struct node *root; /* NULL: without routes */
	struct dict names;       /* -> struct named */
	const size_t *all;       /* indices of all receivers */
	const char **unwanted;   /* for each receiver: that other events are chosen */
	bool by_event;           /* some route selects the kind */
	uint64_t round;
	uint64_t *rounds; /* for each receiver: the round that last led to it, ... */
	size_t *places;   /* ... and its place among those selected */
	/* Of the round: */
	struct question question;
	struct silence_target subject;
	struct silence_asked asked;
	const struct route_topic *topic; /* of the test, or NULL */
	const struct named *looked_at;
	struct strings values;   /* of that */
	struct routed *selected; /* room for all receivers */
	size_t selected_count;
	bool nobody;         /* set by a route */
	const char *nowhere; /* why there may be no receivers */
};

/* Making it */

static struct named *named_of(struct router *router, const char *name)
{
	const void **place = dict_place(&router->names, name);
	struct named *named;

	if (*place)
		return (struct named *)(uintptr_t)*place;
	named = arena_alloc(router->arena, sizeof *named);
	named->name = silence_name(name);
	named->by_test =
		strcmp(name, "test") == 0 || strcmp(name, "group") == 0 || strcmp(name, TAG) == 0;
	named->known.arena = router->arena;
	*place = named;
	return named;
}

static struct route_condition add_matcher(struct router *router, const struct matcher *matcher)
{
	struct named *named = named_of(router, matcher->name);

	named->matchers =
		arena_grow(router->arena, named->matchers, named->count, sizeof *named->matchers);
	named->matchers[named->count] = matcher;
	return (struct route_condition){named, named->count++};
}

static const char *describe(const struct router *router, const struct notify_route *route)
{
	const char *rest = route->receiver_count > 0 ? "" : " has no receivers";

	if (route->receiver_count == 0 && route == router->routing.root && !route->nobody)
		return "no route matches it";
	return arena_printf(router->arena, "the route at %s:%d%s", route->file, route->line, rest);
}

static void prepare(struct router *router, const struct notify_route *route, struct node *node)
{
	struct route_condition *conditions =
		arena_array(router->arena, route->match.count, sizeof *conditions);
	struct node *nodes = arena_array(router->arena, route->count, sizeof *nodes);

	*node = (struct node){.route = route,
		.reason = describe(router, route),
		.conditions = conditions,
		.nodes = nodes};
	router->by_event = router->by_event || route->events != 0;
	for (size_t i = 0; i < route->match.count; i++)
		conditions[i] = add_matcher(router, &route->match.items[i]);
	for (size_t i = 0; i < route->count; i++)
		prepare(router, &route->routes[i], &nodes[i]);
}

/* "its events are new, recovered" */
static const char *describe_events(struct arena *arena, unsigned events)
{
	const char *before = "its events are ";
	struct buf out = {0};

	for (size_t i = 0; i < MESSAGE_TEST; i++)
		if (events & 1u << i) {
			buf_printf(&out, "%s%s", before, message_kind_names[i]);
			before = ", ";
		}
	if (out.length == 0)
		buf_text(&out, "its events are none");
	return buf_keep(&out, arena);
}

struct router *router_new(struct routing routing)
{
	struct arena *arena = arena_new();
	struct router *router = arena_alloc(arena, sizeof *router);
	size_t count = routing.receiver_count;
	size_t *all = arena_array(arena, count, sizeof *all);
	struct node *root = NULL;

	*router = (struct router){.routing = routing,
		.arena = arena,
		.names = {.arena = arena},
		.all = all,
		.unwanted = arena_array(arena, count, sizeof *router->unwanted),
		.rounds = arena_array(arena, count, sizeof *router->rounds),
		.places = arena_array(arena, count, sizeof *router->places),
		.selected = arena_array(arena, count, sizeof *router->selected)};
	for (size_t i = 0; i < count; i++) {
		all[i] = i;
		router->unwanted[i] = describe_events(arena, routing.receivers[i].events);
	}
	if (routing.root) {
		root = arena_alloc(arena, sizeof *root);
		prepare(router, routing.root, root);
		router->root = root;
	}
	return router;
}

void router_free(struct router *router)
{
	if (!router)
		return;
	silence_asked_free(&router->asked);
	arena_free(router->arena);
}

/* Asking */

static void set_target(struct router *router, const struct silence_target *subject)
{
	const struct dict *topics = router->routing.topics;

	silence_asked_free(&router->asked);
	router->subject = *subject;
	router->topic = topics && subject->test ? dict_get(topics, subject->test) : NULL;
	router->asked = (struct silence_asked){.subject = &router->subject};
	if (router->topic)
		router->asked.groups = router->topic->groups;
	router->looked_at = NULL;
	router->round++;
	router->selected_count = 0;
	router->nobody = false;
	router->nowhere = "there is no receiver";
}

static struct strings values_of(struct router *router, const struct named *named)
{
	if (strcmp(named->name, TAG) == 0)
		return router->topic ? router->topic->tags : (struct strings){0};
	return silence_values(&router->asked, named->name);
}

static struct strings given(void *context, const char *name)
{
	(void)name;
	return *(const struct strings *)context;
}

/* The values of the last name that was looked up. */
static struct strings look_at_values(struct router *router, const struct named *named)
{
	if (router->looked_at != named)
		router->values = values_of(router, named);
	router->looked_at = named;
	return router->values;
}

/* The values as one text; the test's name stands for values that it determines. */
static const char *key_of(struct router *router, const struct named *named, struct buf *joined)
{
	struct strings values;

	if (named->by_test)
		return router->subject.test;
	values = look_at_values(router, named);
	if (values.count <= 1)
		return values.count == 1 ? values.items[0] : "";
	for (size_t i = 0; i < values.count; i++)
		buf_printf(joined, "%s%c", values.items[i], '\x1f');
	return joined->data;
}

/* Finds the cached outcome of the change's values for the name. */
static void look_up(struct router *router, struct named *named)
{
	size_t words = (named->count + BITS - 1) / BITS;
	struct buf joined = {0};
	const char *key = key_of(router, named, &joined);
	struct outcome *outcome = (struct outcome *)(uintptr_t)dict_get(&named->known, key);
	bool full = named->known.count >= VALUES_MOST;

	if (!outcome) {
		outcome = full && named->spare ? named->spare
					       : arena_alloc(router->arena, sizeof *outcome);
		if (!outcome->tried)
			outcome->tried = arena_array(router->arena, 2 * words, sizeof(uint64_t));
		outcome->holds = outcome->tried + words;
		memset(outcome->tried, 0, words * sizeof(uint64_t));
		if (full)
			named->spare = outcome;
		else
			*dict_place(&named->known, arena_strdup(router->arena, key)) = outcome;
	}
	named->round = router->round;
	named->outcome = outcome;
	buf_free(&joined);
}

/* Whether the matcher was tried on the value already. */
static bool is_known(struct router *router, const struct route_condition *condition)
{
	struct named *named = condition->named;

	if (named->round != router->round)
		look_up(router, named);
	return named->outcome->tried[condition->bit / BITS] >> condition->bit % BITS & 1;
}

static void try_it(struct router *router, const struct route_condition *condition)
{
	struct named *named = condition->named;
	const struct matchers alone = {named->matchers[condition->bit], 1};
	uint64_t bit = UINT64_C(1) << condition->bit % BITS;
	size_t word = condition->bit / BITS;
	struct strings values = look_at_values(router, named);

	named->outcome->tried[word] |= bit;
	named->outcome->holds[word] &= ~bit;
	if (matchers_match(&alone, given, &values, NULL))
		named->outcome->holds[word] |= bit;
}

static bool holds(struct router *router, const struct route_condition *condition)
{
	if (router->question.possible && !condition->named->by_test)
		return true;
	if (!is_known(router, condition))
		try_it(router, condition);
	return condition->named->outcome->holds[condition->bit / BITS] >> condition->bit % BITS & 1;
}

/* Cached outcomes come first, as they may make the others unnecessary. */
static bool hold_all(struct router *router, const struct node *node)
{
	size_t count = node->route->match.count;

	for (size_t i = 0; i < count && !router->question.possible; i++)
		if (is_known(router, &node->conditions[i]) && !holds(router, &node->conditions[i]))
			return false;
	for (size_t i = 0; i < count; i++)
		if (!holds(router, &node->conditions[i]))
			return false;
	return true;
}

static bool is_large(const struct question *question, const struct notify_route *route)
{
	return route->at_least <= 0 || question->possible ||
	       (question->record && question->size >= route->at_least);
}

static bool has_verdict(const struct question *question, const struct notify_route *route)
{
	return route->verdict == 0 || question->possible ||
	       (question->record && question->verdict == route->verdict);
}

static bool takes(struct router *router, const struct node *node)
{
	const struct notify_route *route = node->route;
	const struct question *question = &router->question;

	if ((route->events != 0 && (route->events & question->kinds) == 0) ||
		!is_large(question, route) || !has_verdict(question, route))
		return false;
	return hold_all(router, node);
}

static void add_receivers(struct router *router, const size_t *receivers, size_t count,
	struct strings group_by, const char *reason)
{
	for (size_t i = 0; i < count; i++) {
		size_t number = receivers[i];

		if (router->rounds[number] != router->round) {
			router->rounds[number] = router->round;
			router->places[number] = router->selected_count++;
			router->selected[router->places[number]] =
				(struct routed){.receiver = &router->routing.receivers[number],
					.group_by = group_by,
					.decision = {PASS, reason, 0}};
		}
		router->selected[router->places[number]].kinds |= router->question.kinds;
	}
}

/* Why the node does not match. */
static void put_refusal(struct router *router, const struct node *node, struct buf *out)
{
	const struct notify_route *route = node->route;
	const struct question *question = &router->question;

	buf_text(out, "not taken: ");
	for (size_t i = 0; i < route->match.count; i++)
		if (!holds(router, &node->conditions[i])) {
			matchers_print(&(struct matchers){&route->match.items[i], 1}, out);
			buf_text(out, " does not hold\n");
			return;
		}
	if (!is_large(question, route))
		buf_printf(out, "smaller than at_least: %g%%\n", route->at_least);
	else if (!has_verdict(question, route))
		buf_printf(out, "not %s\n", route->verdict > 0 ? "a regression" : "an improvement");
	else
		buf_text(out, "not among its events\n");
}

static void put_receivers(
	const struct router *router, const struct notify_route *route, struct buf *out)
{
	buf_text(out, route->receiver_count == 0 ? "tells nobody" : "tells ");
	for (size_t i = 0; i < route->receiver_count; i++)
		buf_printf(out, "%s%s", i > 0 ? ", " : "",
			router->routing.receivers[route->receivers[i]].name);
	buf_char(out, '\n');
}

/* A line of the walk: "hunter.yaml:12:   ". */
static void put_place(const struct notify_route *route, size_t depth, struct buf *out)
{
	buf_printf(out, "%s:%d: %*s", route->file, route->line, (int)(2 * depth), "");
}

/* False: the node does not match. Appends the decision to `out`, unless that is NULL. */
static bool pass(struct router *router, const struct node *node, size_t depth, struct buf *out)
{
	const struct notify_route *route = node->route;
	bool taken = false, takes_it = takes(router, node);

	if (out) {
		put_place(route, depth, out);
		if (!takes_it) {
			put_refusal(router, node, out);
			return false;
		}
		buf_text(out, depth == 0 ? "the root" : "taken");
		if (route->match.count > 0)
			buf_text(out, ": ");
		matchers_print(&route->match, out);
		buf_text(out, route->go_on ? ", and continues\n" : "\n");
	}
	if (!takes_it)
		return false;
	for (size_t i = 0; i < route->count; i++) {
		if (!pass(router, &node->nodes[i], depth + 1, out))
			continue;
		taken = true;
		if (!route->routes[i].go_on && !router->question.possible)
			break;
	}
	if (taken && !router->question.possible)
		return true;
	add_receivers(
		router, route->receivers, route->receiver_count, route->group_by, node->reason);
	router->nobody = router->nobody || route->nobody;
	if (route->receiver_count == 0)
		router->nowhere = node->reason;
	if (out) {
		put_place(route, depth + 1, out);
		put_receivers(router, route, out);
	}
	return true;
}

/* By the test's `notify`; of a test that is no longer configured, all. */
static void lead_by_notify(struct router *router, struct buf *out)
{
	const struct route_topic *topic = router->topic;
	const char *reason =
		router->root ? "the test sets notify: routes do not apply" : "there are no routes";

	if (topic)
		add_receivers(router, topic->receivers, topic->receiver_count, (struct strings){0},
			reason);
	else
		add_receivers(router, router->all, router->routing.receiver_count,
			(struct strings){0}, reason);
	if (out)
		buf_printf(out, "%s\n", reason);
}

static bool is_routed(const struct router *router)
{
	return router->root && (!router->topic || router->topic->routed);
}

/* Selects the receivers. Routes each kind by itself, as it may take a different route. */
static void lead(
	struct router *router, const struct change_record *record, unsigned kinds, struct buf *out)
{
	struct silence_target subject = silence_target_of(record);
	const struct change *change = &record->item.change;
	double from_zero = change->mean_before != 0 ? fabs(change_percent(change)) : HUGE_VAL;

	router->question = (struct question){.record = record,
		.size = isnan(change->size) ? from_zero : fabs(change->size),
		.verdict = subject.verdict,
		.kinds = kinds};
	set_target(router, &subject);
	if (!is_routed(router)) {
		lead_by_notify(router, out);
		return;
	}
	for (unsigned kind = 1; router->by_event && kind <= kinds; kind <<= 1)
		if (kinds & kind) {
			router->question.kinds = kind;
			(void)pass(router, router->root, 0, out);
		}
	if (!router->by_event)
		(void)pass(router, router->root, 0, out);
}

static struct decision decide(const struct router *router, const struct routed *routed)
{
	const char *unwanted = router->unwanted[routed->receiver - router->routing.receivers];

	return routed->receiver->events & routed->kinds ? routed->decision
							: (struct decision){DROP, unwanted, 0};
}

struct routed_rows route_change(struct router *router, const struct change_record *record,
	unsigned kinds, struct arena *arena, struct buf *steps)
{
	struct routed_rows rows = {0};
	struct routed *items;

	lead(router, record, kinds, steps);
	rows.decision = (struct decision){DROP,
		router->selected_count > 0 ? "none of its receivers has the event"
					   : router->nowhere,
		0};
	items = arena_array(arena, router->selected_count, sizeof *items);
	for (size_t i = 0; i < router->selected_count; i++) {
		items[i] = router->selected[i];
		items[i].decision = decide(router, &items[i]);
		if (rows.decision.verdict == DROP && items[i].decision.verdict == PASS)
			rows.decision = items[i].decision;
	}
	rows.items = items;
	rows.count = router->selected_count;
	return rows;
}

const struct routed *route_find(const struct routed_rows *rows, const struct receiver *receiver)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->items[i].receiver == receiver)
			return rows->items[i].decision.verdict == PASS ? &rows->items[i] : NULL;
	return NULL;
}

/* Whether the receiver gets the change in messages of these kinds. */
static bool gets(struct router *router, const struct change_record *record, unsigned kinds,
	const struct receiver *receiver)
{
	size_t number = (size_t)(receiver - router->routing.receivers);

	lead(router, record, kinds, NULL);
	return router->rounds[number] == router->round &&
	       (router->selected[router->places[number]].kinds & receiver->events) != 0;
}

bool route_withholds(struct router *router, const struct change_record *record, unsigned kinds,
	const struct receiver *receiver)
{
	return (receiver->events & kinds) != 0 && !gets(router, record, kinds, receiver) &&
	       is_routed(router) && gets(router, record, MESSAGES_ALL, receiver);
}

/* Notices */

static void lead_notice(struct router *router, const char *test, unsigned kinds, bool possible)
{
	router->question = (struct question){.kinds = kinds, .possible = possible};
	set_target(router, &(struct silence_target){.test = test});
	if (is_routed(router))
		(void)pass(router, router->root, 0, NULL);
	else
		lead_by_notify(router, NULL);
}

/* Stops once all receivers are in: there may be many tests. */
struct strings route_notices(struct router *router, const char *const *tests, size_t count,
	unsigned kinds, struct arena *arena)
{
	const struct routing *routing = &router->routing;
	bool *in = arena_array(arena, routing->receiver_count, sizeof *in);
	const char **names = arena_array(arena, routing->receiver_count, sizeof *names);
	size_t found = 0, most = 0;

	for (size_t i = 0; i < routing->receiver_count; i++)
		most += (routing->receivers[i].events & kinds) != 0;
	for (size_t i = 0; i < count && found < most; i++) {
		lead_notice(router, tests[i], kinds, false);
		if (router->selected_count == 0 && !router->nobody && is_routed(router))
			lead_notice(router, tests[i], kinds, true);
		for (size_t j = 0; j < router->selected_count; j++) {
			const struct receiver *receiver = router->selected[j].receiver;
			bool *is_in = &in[receiver - routing->receivers];

			if (*is_in || (receiver->events & kinds) == 0)
				continue;
			*is_in = true;
			names[found++] = receiver->name;
		}
	}
	return (struct strings){names, found};
}

/* Groups */

const char *route_group(struct router *router, const struct change_record *record,
	const struct strings *names, struct arena *arena)
{
	struct silence_target subject = silence_target_of(record);
	struct buf out = {0};

	set_target(router, &subject);
	for (size_t i = 0; i < names->count; i++)
		buf_printf(&out, "%s,", names->items[i]);
	for (size_t i = 0; i < names->count; i++) {
		struct named named = {.name = silence_name(names->items[i])};
		struct strings values = values_of(router, &named);

		for (size_t j = 0; j < values.count; j++)
			buf_printf(&out, "%s%c", values.items[j], '\x1f');
		buf_char(&out, '\x1e');
	}
	return buf_keep(&out, arena);
}
