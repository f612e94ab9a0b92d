/*
 * The schema the configuration is checked against: the registries of this binary, as plain tables.
 */
#include "agent/analysis/shapes.h"
#include "agent/cli/cli.h"
#include "detectors/detector.h"
#include "notifiers/notifier.h"
#include "sources/source.h"

static const struct plugin *source_plugins(struct arena *arena)
{
	size_t count = 0;
	while (sources[count])
		count++;
	struct plugin *plugins = arena_array(arena, count + 1, sizeof *plugins);
	for (size_t i = 0; i < count; i++)
		plugins[i] = (struct plugin){.name = sources[i]->name,
			.fields = sources[i]->fields,
			.options_size = sources[i]->options_size,
			.server_fields = sources[i]->server_fields,
			.server_size = sources[i]->server_size,
			.check = sources[i]->check,
			.check_metrics = sources[i]->check_metrics,
			.endpoint = sources[i]->server_size > 0 && sources[i]->step};
	return plugins;
}

static const struct plugin *notifier_plugins(struct arena *arena)
{
	size_t count = 0;
	while (notifiers[count])
		count++;
	struct plugin *plugins = arena_array(arena, count + 1, sizeof *plugins);
	for (size_t i = 0; i < count; i++)
		plugins[i] = (struct plugin){.name = notifiers[i]->name,
			.fields = notifiers[i]->fields,
			.options_size = notifiers[i]->options_size,
			.check = notifiers[i]->check,
			.endpoint = notifiers[i]->http};
	return plugins;
}

static const struct plugin *detector_plugins(struct arena *arena)
{
	size_t count = 0;
	while (detectors[count])
		count++;
	struct plugin *plugins = arena_array(arena, count + 1, sizeof *plugins);
	for (size_t i = 0; i < count; i++)
		plugins[i] = (struct plugin){.name = detectors[i]->name,
			.fields = detectors[i]->fields,
			.options_size = detectors[i]->options_size,
			.check = detectors[i]->check};
	return plugins;
}

static const struct plugin cluster_plugin = {
	.name = "cluster", .fields = shape_fields, .options_size = sizeof(struct shape_options)};

const struct schema *cli_schema(struct arena *arena)
{
	struct schema *schema = arena_alloc(arena, sizeof *schema);
	schema->sources = source_plugins(arena);
	schema->notifiers = notifier_plugins(arena);
	schema->detectors = detector_plugins(arena);
	schema->endpoint_fields = endpoint_fields;
	schema->cluster = &cluster_plugin;
	return schema;
}
