/*
 * The section `routes`: a tree that selects the receivers of changes. It is a route without
 * conditions, or the list of that one's routes.
 *
 * Aliases can make a short file a large tree, so the number of routes and their depth are limited.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/hash.h"
#include "agent/base/label.h"
#include "conf/load.h"

struct route_options {
	struct strings match, events, receivers, group_by;
	const char *at_least;
	int verdict;
	bool go_on;
};

static const char *const verdicts[] = {"any", "regression", "improvement", NULL};

const struct field route_fields[] = {
	OPTION_LIST(struct route_options, match,
		"matchers, all of which must match: ['test=~\"db.*\"', 'region=\"eu\"']"),
	OPTION_STRING(struct route_options, at_least, NULL,
		"only changes of this size or more, up or down: 10%"),
	OPTION_CHOICE(struct route_options, verdict, "any", verdicts,
		"only regressions, or only improvements"),
	OPTION_LIST(struct route_options, events, "only these events, see receivers"),
	OPTION_LIST(struct route_options, receivers,
		"receivers of changes that no child route matches; []: none; default: those of the "
		"parent route"),
	OPTION_LIST(struct route_options, group_by,
		"group changes with equal values of these into one message: commit, test, "
		"environment, metric, an attribute or a label; default: the incident"),
	OPTION_ROW(BOOL, bool, "continue", struct route_options, go_on,
		"continue with the next route"),
	{0},
};

static const char *const other_keys[] = {"routes", NULL};

/* State while the tree is read. */
struct reader {
	struct loader *loader;
	struct scope scope;
	struct dict numbers; /* of receivers, by name: places in `named` */
	size_t errors;       /* before */
	bool *named;         /* for each receiver: whether a route names it */
	bool exhausted;
};

static void read_routes(struct reader *reader, const struct yaml_node *list,
	struct notify_route *parent, size_t depth);

static void add_matchers(struct reader *reader, const struct yaml_node *where, const char *text,
	struct notify_route *route)
{
	struct loader *loader = reader->loader;
	struct matcher *all;
	struct matchers matchers;
	struct error error;

	if (!matchers_parse(text, loader->arena, false, &matchers, &error)) {
		loader_error(where, &reader->scope, "match: %s", error.text);
		return;
	}
	if (route->match.count + matchers.count > MATCHERS_MOST) {
		loader_error(where, &reader->scope, "match: more than %d matchers", MATCHERS_MOST);
		matchers_free(&matchers);
		return;
	}
	all = arena_array(loader->arena, route->match.count + matchers.count, sizeof *all);
	if (route->match.count > 0)
		memcpy(all, route->match.items, route->match.count * sizeof *all);
	memcpy(all + route->match.count, matchers.items, matchers.count * sizeof *all);
	route->match =
		(struct matchers){.items = all, .count = route->match.count + matchers.count};
}

/* Item by item, so that an error is reported at its own. */
static void read_match(
	struct reader *reader, const struct yaml_node *map, struct notify_route *route)
{
	const struct yaml_node *node = yaml_get(map, "match"), *const * items;
	size_t count = node && !yaml_is_null(node) ? yaml_items(&node, &items) : 0;

	for (size_t i = 0; i < count; i++)
		if (items[i]->kind == YAML_SCALAR)
			add_matchers(
				reader, items[i], loader_name(reader->loader, items[i]), route);
}

/* "10%" or "10" */
static void read_size(
	struct reader *reader, const struct yaml_node *map, const char *text, double *size)
{
	char *end = NULL;
	double value = text ? strtod(text, &end) : 0;

	if (text && (end == text || (*end && strcmp(end, "%") != 0) || !(value > 0) || value > 1e9))
		loader_error(yaml_get(map, "at_least"), &reader->scope,
			"at_least: expected a size such as 10%%");
	else if (text && !*end && value < 1)
		loader_error(yaml_get(map, "at_least"), &reader->scope,
			"at_least: %s would be %s%%: write %g%%, or %s%% if that is meant", text,
			text, 100 * value, text);
	else
		*size = value;
}

static void read_receivers(struct reader *reader, const struct yaml_node *map,
	const struct strings *given, struct notify_route *route)
{
	struct loader *loader = reader->loader;
	const struct yaml_node *node = yaml_get(map, "receivers"), *const * items;
	size_t *numbers, count;

	if (!node || yaml_is_null(node))
		return;
	count = yaml_items(&node, &items);
	for (size_t i = 0; i < count; i++) {
		const struct yaml_node *item = items[i];
		const char *missing = NULL;
		const char *name = item->kind == YAML_SCALAR
					   ? loader_expand(loader, item, false, &missing)
					   : NULL;

		if (name && !missing && !dict_get(&reader->numbers, name) &&
			!dict_get(&loader->receivers, name))
			receiver_report_unknown(item, &reader->scope, "receivers", item->text);
	}
	numbers = arena_array(loader->arena, given->count, sizeof *numbers);
	route->receiver_count = 0;
	for (size_t i = 0; i < given->count; i++) {
		const bool *place = dict_get(&reader->numbers, given->items[i]);

		if (place)
			numbers[route->receiver_count++] = (size_t)(place - reader->named);
	}
	for (size_t i = 0; i < route->receiver_count; i++)
		reader->named[numbers[i]] = true;
	route->receivers = numbers;
	route->nobody = given->count == 0;
}

static void read_names(struct reader *reader, const struct yaml_node *map,
	const struct strings *given, struct notify_route *route)
{
	const struct yaml_node *node = yaml_get(map, "group_by");

	if (!node || yaml_is_null(node))
		return;
	if (given->count > ROUTE_NAMES_MOST)
		loader_error(
			node, &reader->scope, "group_by: more than %d names", ROUTE_NAMES_MOST);
	for (size_t i = 0; i < given->count; i++)
		if (!label_is_name(given->items[i], strlen(given->items[i])))
			loader_error(node, &reader->scope,
				"group_by: expected names such as commit, test, environment or "
				"region");
	route->group_by = *given;
}

/* Adds it to the configuration's hash. */
static void add_to_hash(struct loader *loader, const struct notify_route *route,
	const struct route_options *options, size_t depth)
{
	struct config *config = loader->config;
	struct buf text = {0};

	matchers_print(&route->match, &text);
	fingerprint_fields(loader, NULL, route_fields, options);
	fingerprint_text(loader, NULL, text.data);
	config->hash = hash_add(config->hash, &depth, sizeof depth);
	buf_free(&text);
}

static void read_options(struct reader *reader, const struct yaml_node *map,
	struct notify_route *route, size_t depth)
{
	static const int signs[] = {0, 1, -1};
	struct loader *loader = reader->loader;
	struct route_options options = {0};
	struct reading reading = {.scope = reader->scope,
		.tables = {{route_fields, &options}},
		.other_keys = other_keys};

	if (!options_read_all(map, &reading))
		return;
	read_match(reader, map, route);
	read_size(reader, map, options.at_least, &route->at_least);
	route->verdict = signs[options.verdict];
	route->events = events_read(map, &reader->scope, &options.events, UINT_MAX);
	route->go_on = options.go_on;
	read_receivers(reader, map, &options.receivers, route);
	read_names(reader, map, &options.group_by, route);
	add_to_hash(loader, route, &options, depth);
}

static bool has_conditions(const struct notify_route *route)
{
	return route->match.count > 0 || route->at_least > 0 || route->verdict != 0 ||
	       route->events != 0;
}

/* `route` has its inherited values. */
static void read_route(struct reader *reader, const struct yaml_node *map,
	struct notify_route *route, size_t depth)
{

	route->file = map->file;
	route->line = map->line;
	if (!loader_is_kind(map, YAML_MAP, &reader->scope,
		    "a route such as {match: ['test=~\"db.*\"'], receivers: [db]}"))
		return;
	read_options(reader, map, route, depth);
	if (yaml_get(map, "routes"))
		read_routes(reader, yaml_get(map, "routes"), route, depth + 1);
}

static void read_routes(struct reader *reader, const struct yaml_node *list,
	struct notify_route *parent, size_t depth)
{
	struct loader *loader = reader->loader;
	const struct notify_route *last = NULL; /* matches everything */
	struct notify_route *routes;

	if (loader_is_null(list, &reader->scope, NULL) ||
		!loader_is_kind(list, YAML_LIST, &reader->scope, "a list of routes"))
		return;
	bool deep = depth > ROUTE_DEPTH_MOST;
	if (!reader->exhausted &&
		(deep || loader->config->route_count + list->count > ROUTES_MOST)) {
		loader_error(list, &reader->scope,
			deep ? "more than 20 levels of routes" : "more than 10,000 routes");
		reader->exhausted = true;
	}
	if (reader->exhausted)
		return;
	loader->config->route_count += list->count;
	routes = arena_array(loader->arena, list->count, sizeof *routes);
	parent->routes = routes;
	for (size_t i = 0; i < list->count; i++) {
		routes[i].receivers = parent->receivers;
		routes[i].receiver_count = parent->receiver_count;
		routes[i].group_by = parent->group_by;
		routes[i].nobody = parent->nobody;
		parent->count++;
		read_route(reader, list->items[i], &routes[i], depth);
		if (last && loader->problems->errors == reader->errors)
			loader_warn(list->items[i], &reader->scope,
				"never reached: the route at %s:%d matches everything", last->file,
				last->line);
		else if (!last && !has_conditions(&routes[i]) && !routes[i].go_on)
			last = &routes[i];
	}
}

static void check_root(
	struct reader *reader, const struct yaml_node *node, const struct notify_route *root)
{
	/* Whether a change can reach it, which has no receivers. */
	bool loses = root->receiver_count == 0 && !root->nobody;

	for (size_t i = 0; i < root->count; i++)
		loses = loses && has_conditions(&root->routes[i]);
	if (has_conditions(root) || root->go_on)
		loader_error(node, &reader->scope,
			"the first route matches everything: put its conditions into one of its "
			"`routes`");
	else if (reader->loader->source->cautious && loses)
		loader_warn(node, &reader->scope,
			"changes that match no route are not announced: add a final route without "
			"conditions, or use {receivers: [...], routes: [...]}");
}

void routes_read(struct loader *loader)
{
	struct config *config = loader->config;
	const struct yaml_node *node = loader->routes;
	struct reader reader = {.loader = loader,
		.scope = {.loader = loader, .kind = "routes"},
		.errors = loader->problems->errors,
		.numbers = {.arena = loader->arena},
		.named = arena_array(loader->arena, config->receiver_count, sizeof(bool))};
	struct notify_route *root;
	const char **names;
	size_t count = 0;

	if (!node || loader->source->stdout_only || loader_is_null(node, &reader.scope, NULL))
		return;
	for (size_t i = 0; i < config->receiver_count; i++)
		*dict_place(&reader.numbers, config->receivers[i].name) = &reader.named[i];
	root = arena_alloc(loader->arena, sizeof *root);
	config->routes = root;
	root->file = node->file;
	root->line = node->line;
	if (node->kind == YAML_LIST)
		read_routes(&reader, node, root, 1);
	else
		read_route(&reader, node, root, 0);
	check_root(&reader, node, root);
	names = arena_array(loader->arena, config->receiver_count, sizeof *names);
	for (size_t i = 0; i < config->receiver_count; i++)
		if (reader.named[i])
			names[count++] = config->receivers[i].name;
	if (count > 0)
		loader->all_receivers = (struct strings){names, count};
	else if (!config->missing)
		loader_error(node, &reader.scope, "no route names a receiver");
}

/* The topics, while they are collected. */
struct topics {
	const struct config *config;
	struct dict *dict;
	/* The receivers of the last topic, which many have in common. */
	struct strings notify;
	const size_t *receivers;
	size_t receiver_count;
};

static struct route_topic *topic_of(const struct topics *topics, const char *name)
{
	const void **place = dict_place(topics->dict, name);

	if (!*place)
		*place = arena_alloc(topics->config->arena, sizeof(struct route_topic));
	return (struct route_topic *)(uintptr_t)*place;
}

static bool names_receiver(const struct strings *notify, const struct receiver *receiver)
{
	for (size_t i = 0; i < notify->count; i++)
		if (strcmp(notify->items[i], receiver->name) == 0)
			return true;
	return false;
}

static void add_topic(struct topics *topics, const char *name, const struct strings *notify,
	bool routed, const struct strings *tags)
{
	const struct config *config = topics->config;
	struct route_topic *topic = topic_of(topics, name);

	if (!topics->receivers || notify->items != topics->notify.items ||
		notify->count != topics->notify.count) {
		size_t most = notify->count < config->receiver_count ? notify->count
								     : config->receiver_count;
		size_t *receivers = arena_array(config->arena, most, sizeof *receivers);

		topics->receiver_count = 0;
		for (size_t i = 0; i < config->receiver_count; i++)
			if (names_receiver(notify, &config->receivers[i]))
				receivers[topics->receiver_count++] = i;
		topics->receivers = receivers;
		topics->notify = *notify;
	}
	topic->routed = routed;
	topic->receivers = topics->receivers;
	topic->receiver_count = topics->receiver_count;
	topic->tags = tags ? *tags : (struct strings){0};
}

/* A group may list a test more than once. */
static void add_groups(struct topics *topics, const struct group *group)
{
	for (size_t i = 0; i < group->count + (group->cluster != NULL); i++) {
		const char *test = i < group->count ? group->tests[i]->name : group->name;
		struct strings *groups = &topic_of(topics, test)->groups;

		if (groups->count == 0 || groups->items[groups->count - 1] != group->name)
			strings_add(groups, topics->config->arena, group->name);
	}
}

void topics_make(struct config *config)
{
	struct topics topics = {
		.config = config, .dict = arena_alloc(config->arena, sizeof *topics.dict)};

	topics.dict->arena = config->arena;
	for (size_t i = 0; i < config->group_count; i++) {
		const struct cluster_settings *cluster = config->groups[i].cluster;

		if (cluster)
			add_topic(&topics, config->groups[i].name, &cluster->notify,
				cluster->routed, NULL);
		add_groups(&topics, &config->groups[i]);
	}
	for (size_t i = 0; i < config->test_count; i++) {
		const struct test *test = &config->tests[i];

		add_topic(&topics, test->name, &test->notify, test->routed, &test->tags);
	}
	config->topics = topics.dict;
}

static void free_routes(const struct notify_route *routes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		matchers_free((struct matchers *)(uintptr_t)&routes[i].match);
		free_routes(routes[i].routes, routes[i].count);
	}
}

void routes_free(const struct config *config)
{
	free_routes(config->routes, config->routes ? 1 : 0);
}
