/*
 * Groups of `type: cluster`: tests whose series are clustered (agent/analysis). The schema declares
 * the options other than `interval` and `notify`.
 */
#include <string.h>

#include "agent/base/hash.h"
#include "conf/load.h"

struct common {
	const char *type;
	int64_t interval;
	struct strings notify, mute;
};

const struct field group_fields[] = {
	OPTION_STRING(struct common, type, NULL, "cluster"),
	OPTION_DURATION(struct common, interval, NULL, 1000, (double)INT64_MAX,
		"clustering interval; default: agent.interval"),
	OPTION_LIST(struct common, notify,
		"receivers to notify, overriding `routes`; default: the receivers of the matching "
		"route, or all"),
	OPTION_LIST(struct common, mute,
		"mute times during which the group and its tests are not announced"),
	{0},
};

static const char *const other_keys[] = {"tests", NULL};

static const struct yaml_node *find_tests(const struct yaml_node *map, const struct scope *scope)
{
	const struct yaml_node *tests = yaml_get(map, "tests");

	if (tests && tests->kind == YAML_LIST && tests->count > 0)
		return tests;
	loader_error(tests ? tests : map, scope,
		tests ? "tests: expected a list of tests" : "\"tests\" is missing");
	return NULL;
}

struct cluster_settings *cluster_read(
	const struct yaml_node *map, const struct scope *scope, const struct yaml_node **tests)
{
	struct loader *loader = scope->loader;
	const struct plugin *plugin = loader->source->schema->cluster;
	struct cluster_settings *settings = arena_alloc(loader->arena, sizeof *settings);
	void *options = arena_alloc(loader->arena, plugin ? plugin->options_size : 0);
	struct common common = {.interval = loader->config->agent.interval};
	struct reading reading = {.scope = *scope,
		.tables = {{group_fields, &common}, {plugin ? plugin->fields : NULL, options}},
		.other_keys = other_keys};

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
