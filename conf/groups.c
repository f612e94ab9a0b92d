/*
 * Groups of tests. Unlike Hunter's, a group may contain groups; each test is in a group once, at
 * its first place. A group that is a map has its tests under `tests`; with a `type` it is a
 * cluster.
 */
#include <string.h>

#include "agent/base/hash.h"
#include "conf/load.h"

enum { CHAIN_MAX = 50 };

struct group_state {
	const char *name;
	const struct yaml_node *node;     /* list of its tests */
	struct cluster_settings *cluster; /* or NULL */
	struct mutes mute;
	const struct test **tests;
	size_t count;
	struct dict members;
	bool open, done;
};

struct groups {
	struct loader *loader;
	struct group_state *items;
	size_t count;
	struct dict names;
};

static void resolve(struct groups *groups, struct group_state *group, int depth);

static void add_test(struct groups *groups, struct group_state *group, const struct test *test)
{
	const void **place = dict_place(&group->members, test->name);
	if (*place || !loader_spend(groups->loader, 1, group->node))
		return;
	*place = test;
	group->tests =
		arena_grow(groups->loader->arena, group->tests, group->count, sizeof *group->tests);
	group->tests[group->count++] = test;
}

static void report_unknown(struct groups *groups, const struct yaml_node *where,
	const struct scope *scope, const char *name)
{
	const struct config *config = groups->loader->config;
	const char *hint = loader_hint_in(
		groups->loader, name, config->tests, config->test_count, sizeof *config->tests);
	if (!*hint)
		hint = loader_hint_in(
			groups->loader, name, groups->items, groups->count, sizeof *groups->items);
	loader_error(where, scope, "unknown test \"%.200s\"%s", where->text, hint);
}

static void add_group(struct groups *groups, struct group_state *group,
	const struct yaml_node *where, const struct scope *scope, struct group_state *member,
	int depth)
{
	if (member->open || depth > CHAIN_MAX) {
		loader_error(where, scope,
			member->open ? "the group \"%.200s\" contains itself"
				     : "more than 50 groups deep at \"%.200s\"",
			member->name);
		return;
	}
	resolve(groups, member, depth + 1);
	for (size_t i = 0; i < member->count; i++)
		add_test(groups, group, member->tests[i]);
}

static void resolve(struct groups *groups, struct group_state *group, int depth)
{
	struct loader *loader = groups->loader;
	struct scope scope = {.loader = loader, .kind = "group", .name = group->name};
	if (group->done)
		return;
	group->open = true;
	for (size_t i = 0; i < group->node->count; i++) {
		const struct yaml_node *item = group->node->items[i];
		const char *missing = NULL;
		if (item->kind != YAML_SCALAR) {
			loader_error(item, &scope, "expected the name of a test");
			continue;
		}
		const char *name = loader_expand(loader, item, false, &missing);
		const struct test *test = dict_get(loader->tests, name);
		const struct group_state *member = dict_get(&groups->names, name);
		if (missing)
			loader_error(item, &scope, "${%s} is not set", missing);
		else if (test)
			add_test(groups, group, test);
		else if (member)
			add_group(groups, group, item, &scope,
				groups->items + (member - groups->items), depth);
		else
			report_unknown(groups, item, &scope, name);
	}
	group->open = false;
	group->done = true;
}

static const char *const tests_key[] = {"tests", NULL};

/* Of `type: cluster`: the series of its tests are clustered (agent/analysis). The schema declares
 * the options other than these. */
struct cluster_options {
	const char *type;
	int64_t interval;
	struct strings notify, mute;
};

const struct field group_fields[] = {
	OPTION_STRING(struct cluster_options, type, NULL, "cluster"),
	OPTION_DURATION(struct cluster_options, interval, NULL, 1000, (double)INT64_MAX,
		"clustering interval; default: agent.interval"),
	OPTION_LIST(struct cluster_options, notify,
		"receivers to notify, overriding `routes`; default: the receivers of the matching "
		"route, or all"),
	OPTION_LIST(struct cluster_options, mute,
		"mute times during which the group and its tests are not announced"),
	{0},
};

static const struct yaml_node *find_tests(const struct yaml_node *map, const struct scope *scope)
{
	const struct yaml_node *tests = yaml_get(map, "tests");

	if (tests && tests->kind == YAML_LIST && tests->count > 0)
		return tests;
	loader_error(tests ? tests : map, scope,
		tests ? "tests: expected a list of tests" : "\"tests\" is missing");
	return NULL;
}

static struct cluster_settings *read_cluster(
	const struct yaml_node *map, const struct scope *scope, const struct yaml_node **tests)
{
	struct loader *loader = scope->loader;
	const struct plugin *plugin = loader->source->schema->cluster;
	struct cluster_settings *settings = arena_alloc(loader->arena, sizeof *settings);
	void *options = arena_alloc(loader->arena, plugin ? plugin->options_size : 0);
	struct cluster_options common = {.interval = loader->config->agent.interval};
	struct reading reading = {.scope = *scope,
		.tables = {{group_fields, &common}, {plugin ? plugin->fields : NULL, options}},
		.other_keys = tests_key};

	if (plugin)
		field_defaults(plugin->fields, options);
	if (options_read_all(map, &reading) && common.type &&
		(!plugin || strcmp(common.type, plugin->name) != 0))
		loader_error(yaml_get(map, "type"), scope,
			"type: unknown type of group \"%.80s\"; the only one is cluster",
			common.type);
	*tests = find_tests(map, scope);
	*settings = (struct cluster_settings){.options = options,
		.interval = loader->source->interval ? loader->source->interval : common.interval,
		.mute = mutes_read(map, scope, &common.mute),
		.fingerprint = HASH_START};
	settings->notify = notify_read(map, scope, &common.notify, &settings->routed);
	fingerprint_fields(loader, &settings->fingerprint, group_fields, &common);
	fingerprint_list(loader, &settings->fingerprint, &settings->notify);
	if (plugin)
		fingerprint_fields(loader, &settings->fingerprint, plugin->fields, options);
	return settings;
}

struct plain_options {
	struct strings mute;
};

static const struct field plain_fields[] = {
	OPTION_LIST(
		struct plain_options, mute, "mute times during which its tests are not announced"),
	{0},
};

/* A list of tests with settings; without a type. */
static void read_plain(
	const struct yaml_node *map, const struct scope *scope, struct group_state *group)
{
	struct plain_options options = {0};
	struct reading reading = {
		.scope = *scope, .tables = {{plain_fields, &options}}, .other_keys = tests_key};

	options_read_all(map, &reading);
	group->mute = mutes_read(map, scope, &options.mute);
	group->node = yaml_get(map, "tests");
	if (!loader_is_null(group->node, scope, "tests"))
		loader_is_kind(group->node, YAML_LIST, scope, "a list of tests");
}

static void read_group(struct groups *groups, const struct yaml_entry *entry)
{
	struct loader *loader = groups->loader;
	struct group_state *group = &groups->items[groups->count++];
	group->name = loader_name(loader, entry->key);
	group->node = entry->value;
	group->members.arena = loader->arena;
	struct scope scope = {.loader = loader, .kind = "group", .name = group->name};
	if (entry->value->kind == YAML_MAP && yaml_get(entry->value, "type")) {
		loader_check_name(entry->key, &scope, group->name);
		group->cluster = read_cluster(entry->value, &scope, &group->node);
		group->mute = group->cluster->mute;
	} else if (yaml_get(entry->value, "tests")) {
		read_plain(entry->value, &scope, group);
	} else if (!loader_is_null(entry->value, &scope, NULL)) {
		loader_is_kind(entry->value, YAML_LIST, &scope, "a list of tests");
	}
	group->done = !group->node || group->node->kind != YAML_LIST;
	const void **place = dict_place(&groups->names, group->name);
	if (*place)
		loader_error(entry->key, &scope, "already defined");
	*place = group;
}

/* Where a group and a test have the same name commands take the group, so the test cannot be
 * selected alone. Changes of a cluster are recorded under its name. */
static void check_hiding(
	struct groups *groups, const struct group_state *group, const struct yaml_node *where)
{
	struct scope scope = {.loader = groups->loader, .kind = "group", .name = group->name};
	const struct test *test = dict_get(groups->loader->tests, group->name);
	if (test && group->cluster)
		loader_error(where, &scope, "a cluster cannot have the name of a test: %s:%d",
			test->file, test->line);
	else if (test && !(group->count == 1 && group->tests[0] == test))
		loader_warn(where, &scope, "hides the test of the same name at %s:%d", test->file,
			test->line);
}

/* The tests lie in an array of the loader. */
static void settle_members(struct loader *loader, const struct group_state *group)
{
	for (size_t i = 0; i < group->count; i++) {
		struct test *test = (struct test *)(uintptr_t)group->tests[i];

		if (group->cluster)
			group->cluster->fingerprint = hash_add(group->cluster->fingerprint,
				&test->fingerprint, sizeof test->fingerprint);
		if (group->mute.count > 0)
			test->mute = mutes_add(loader, &test->mute, &group->mute, group->node);
	}
}

void groups_read(struct loader *loader, const struct yaml_node *map)
{
	if (!map)
		return;
	struct groups groups = {.loader = loader,
		.items = arena_array(loader->arena, map->count, sizeof *groups.items),
		.names = {.arena = loader->arena}};
	struct group *out = arena_array(loader->arena, map->count, sizeof *out);
	struct dict *names = arena_alloc(loader->arena, sizeof *names);
	names->arena = loader->arena;
	for (size_t i = 0; i < map->count; i++)
		read_group(&groups, &map->entries[i]);
	for (size_t i = 0; i < map->count; i++)
		resolve(&groups, &groups.items[i], 1);
	for (size_t i = 0; i < map->count; i++)
		check_hiding(&groups, &groups.items[i], map->entries[i].key);
	for (size_t i = 0; i < map->count; i++) {
		settle_members(loader, &groups.items[i]);
		out[i] = (struct group){groups.items[i].name, groups.items[i].tests,
			groups.items[i].count, groups.items[i].cluster};
		*dict_place(names, out[i].name) = &out[i];
	}
	loader->config->groups = out;
	loader->config->group_count = map->count;
	loader->config->group_names = names;
}
