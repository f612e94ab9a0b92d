/*
 * The matchers of all routes are sorted by name. For a change, each name's value is looked up once;
 * bits cached for the value record which of its matchers hold. An expression is tried on a value
 * only when no other condition of the route has failed.
 */
#include "agent/notify/router.h"

#include <math.h>
#include <string.h>

#include "agent/base/dict.h"
#include "agent/model/message.h"
#include "agent/notify/silence.h"

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
	const struct config *config;
	struct arena *arena;
	const struct node *root; /* NULL: without routes */
	struct dict names;       /* -> struct named */
	struct dict by_notify;   /* test -> struct routed_receivers, without routes */
	struct routed_receivers all;
	uint64_t round;
	uint64_t *rounds; /* for each receiver: the round that last routed to it, ... */
	size_t *places;   /* ... and its place among those selected */
	struct question question;
	struct silence_target subject;
	struct silence_asked asked;
	const struct strings *tags; /* of the test */
	const struct named *looked_at;
	struct strings values;            /* of that */
	struct routed_receiver *selected; /* room for all receivers */
	size_t told_count;
	bool by_event; /* some route selects the kind */
	struct silence_index groups;
	bool nobody; /* set by a route */
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

static void prepare(struct router *router, const struct notify_route *route, struct node *node)
{
	struct route_condition *conditions =
		arena_array(router->arena, route->match.count, sizeof *conditions);
	struct node *nodes = arena_array(router->arena, route->count, sizeof *nodes);

	*node = (struct node){.route = route, .conditions = conditions, .nodes = nodes};
	router->by_event = router->by_event || route->events != 0;
	for (size_t i = 0; i < route->match.count; i++)
		conditions[i] = add_matcher(router, &route->match.items[i]);
	for (size_t i = 0; i < route->count; i++)
		prepare(router, &route->routes[i], &nodes[i]);
}

struct router *router_new(const struct config *config)
{
	struct arena *arena = arena_new();
	struct router *router = arena_alloc(arena, sizeof *router);
	struct routed_receiver *all = arena_array(arena, config->receiver_count, sizeof *all);
	struct node *root = NULL;

	*router = (struct router){.config = config,
		.arena = arena,
		.names = {.arena = arena},
		.groups = {config, arena, NULL},
		.by_notify = {.arena = arena},
		.all = {all, config->receiver_count},
		.rounds = arena_array(arena, config->receiver_count, sizeof *router->rounds),
		.selected = arena_array(arena, config->receiver_count, sizeof *router->selected),
		.places = arena_array(arena, config->receiver_count, sizeof *router->places)};
	for (size_t i = 0; i < config->receiver_count; i++)
		all[i].receiver = &config->receivers[i];
	if (config->routes) {
		root = arena_alloc(arena, sizeof *root);
		prepare(router, config->routes, root);
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
	const struct test *test = config_test(router->config, subject->test);

	silence_asked_free(&router->asked);
	router->subject = *subject;
	router->asked = (struct silence_asked){.subject = &router->subject};
	router->tags = test ? &test->tags : NULL;
	router->looked_at = NULL;
	router->round++;
	router->told_count = 0;
	router->nobody = false;
}

static struct strings values_of(struct router *router, const struct named *named)
{
	if (strcmp(named->name, "group") == 0)
		return silence_index_groups(&router->groups, router->subject.test);
	if (router->tags && strcmp(named->name, TAG) == 0)
		return *router->tags;
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

static void add_receivers(struct router *router, const struct notify_route *route)
{
	router->nobody = router->nobody || route->nobody;
	for (size_t i = 0; i < route->receiver_count; i++) {
		size_t number = route->receivers[i];

		if (router->rounds[number] != router->round) {
			router->rounds[number] = router->round;
			router->places[number] = router->told_count++;
			router->selected[router->places[number]] = (struct routed_receiver){
				&router->config->receivers[number], 0, route->group_by};
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
			router->config->receivers[route->receivers[i]].name);
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
	add_receivers(router, route);
	if (out) {
		put_place(route, depth + 1, out);
		put_receivers(router, route, out);
	}
	return true;
}

static void ask(struct router *router, const struct change_record *record, unsigned kinds)
{
	struct silence_target subject = silence_target_of(record);
	const struct change *change = &record->item.change;
	double from_zero = change->mean_before != 0 ? fabs(change_percent(change)) : HUGE_VAL;

	router->question = (struct question){.record = record,
		.size = isnan(change->size) ? from_zero : fabs(change->size),
		.verdict = subject.verdict,
		.kinds = kinds};
	set_target(router, &subject);
}

/* The receivers in the test's `notify`; if the test is no longer configured, all. */
static struct routed_receivers named_receivers(struct router *router, const char *test)
{
	const struct strings *notify = config_notify(router->config, test);
	struct routed_receivers *selected =
		(struct routed_receivers *)(uintptr_t)dict_get(&router->by_notify, test);
	struct routed_receiver *items;

	if (!notify)
		return router->all;
	if (selected)
		return *selected;
	selected = arena_alloc(router->arena, sizeof *selected);
	items = arena_array(router->arena, notify->count, sizeof *items);
	for (size_t i = 0; i < router->all.count; i++)
		for (size_t j = 0; j < notify->count; j++)
			if (strcmp(notify->items[j], router->all.items[i].receiver->name) == 0)
				items[selected->count++] = router->all.items[i];
	selected->items = items;
	*dict_place(&router->by_notify, arena_strdup(router->arena, test)) = selected;
	return *selected;
}

/* Routes each kind by itself, as it may take a different route. */
static struct routed_receivers lead_routed(
	struct router *router, const struct change_record *record, unsigned kinds)
{
	ask(router, record, kinds);
	for (unsigned kind = 1; router->by_event && kind <= kinds; kind <<= 1)
		if (kinds & kind) {
			router->question.kinds = kind;
			(void)pass(router, router->root, 0, NULL);
		}
	if (!router->by_event)
		(void)pass(router, router->root, 0, NULL);
	return (struct routed_receivers){router->selected, router->told_count};
}

struct routed_receivers router_route(struct router *router, const struct change_record *record,
	unsigned kinds, bool chosen, struct arena *arena)
{
	bool routed = config_routed(router->config, record->item.test);
	struct routed_receivers selected = routed ? lead_routed(router, record, kinds)
						  : named_receivers(router, record->item.test);
	struct routed_receiver *items = arena_array(arena, selected.count, sizeof *items);
	size_t count = 0;

	for (size_t i = 0; i < selected.count; i++) {
		items[count] = selected.items[i];
		if (!routed)
			items[count].kinds = kinds;
		count += !chosen || (items[count].receiver->events & items[count].kinds) != 0;
	}
	return (struct routed_receivers){items, count};
}

const struct routed_receiver *router_find(
	const struct routed_receivers *selected, const struct receiver *receiver)
{
	for (size_t i = 0; i < selected->count; i++)
		if (selected->items[i].receiver == receiver)
			return &selected->items[i];
	return NULL;
}

bool router_withholds(struct router *router, const struct change_record *record, unsigned kinds,
	const struct receiver *receiver)
{
	struct arena *arena;
	struct routed_receivers selected;
	bool withheld;

	if (!config_routed(router->config, record->item.test))
		return false;
	arena = arena_new();
	selected = router_route(router, record, kinds, true, arena);
	withheld = !router_find(&selected, receiver) && (receiver->events & kinds);
	if (withheld) {
		selected = router_route(router, record, MESSAGES_ALL, true, arena);
		withheld = router_find(&selected, receiver) != NULL;
	}
	arena_free(arena);
	return withheld;
}

/* Notices */

static void ask_notice(struct router *router, const char *test, unsigned kinds, bool possible)
{
	router->question = (struct question){.kinds = kinds, .possible = possible};
	set_target(router, &(struct silence_target){.test = test});
	(void)pass(router, router->root, 0, NULL);
}

static struct routed_receivers lead_notice(struct router *router, const char *test, unsigned kinds)
{
	if (!config_routed(router->config, test))
		return named_receivers(router, test);
	ask_notice(router, test, kinds, false);
	if (router->told_count == 0 && !router->nobody)
		ask_notice(router, test, kinds, true);
	return (struct routed_receivers){router->selected, router->told_count};
}

/* Stops once all receivers are in: there may be many tests. */
struct strings router_route_notices(struct router *router, const char *const *tests, size_t count,
	unsigned kinds, struct arena *arena)
{
	const struct config *config = router->config;
	bool *in = arena_array(arena, config->receiver_count, sizeof *in);
	const char **names = arena_array(arena, config->receiver_count, sizeof *names);
	size_t found = 0, most = 0;

	for (size_t i = 0; i < config->receiver_count; i++)
		most += (config->receivers[i].events & kinds) != 0;
	for (size_t i = 0; i < count && found < most; i++) {
		struct routed_receivers selected = lead_notice(router, tests[i], kinds);

		for (size_t j = 0; j < selected.count; j++) {
			const struct receiver *receiver = selected.items[j].receiver;
			bool *is_in = &in[receiver - config->receivers];

			if (*is_in || (receiver->events & kinds) == 0)
				continue;
			*is_in = true;
			names[found++] = receiver->name;
		}
	}
	return (struct strings){names, found};
}

/* Explaining */

void router_explain(
	struct router *router, const struct change_record *record, unsigned kinds, struct buf *out)
{
	if (!router->root)
		return;
	ask(router, record, kinds);
	(void)pass(router, router->root, 0, out);
}

/* Groups */

const char *router_group(struct router *router, const struct change_record *record,
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
