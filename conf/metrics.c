/*
 * A test's metrics: a list of names, or a map from names to options.
 */
#include <string.h>

#include "conf/load.h"

enum { METRIC_VALUES = 5 }; /* charged to the loader's budget for each metric */

/* The options of a metric besides `detection`, and the metric that is made of them. */
struct metric_options {
	struct metric metric;
	const char *was;
	double direction;
	struct control_options control;
};

const struct field metric_fields[] = {
	OPTION_STRING_AS("column", struct metric_options, metric.column, NULL,
		"column of the metric; default: its name"),
	OPTION_STRING_AS("suffix", struct metric_options, metric.suffix, NULL,
		"path below the test's prefix in Graphite"),
	OPTION_STRING_AS("query", struct metric_options, metric.query, NULL,
		"query of this metric, or target in Graphite", .alias = "target"),
	OPTION_DOUBLE(struct metric_options, direction, NULL, 0, 0,
		"1: higher is better, -1: lower is better, 0: either way"),
	OPTION_DEFAULT(DOUBLE, double, "scale", struct metric_options, metric.scale, "1",
		"factor applied to each value"),
	OPTION_STRING_AS("unit", struct metric_options, metric.unit, NULL, "the unit, for display"),
	OPTION_STRING(struct metric_options, was, NULL, "former name; its changes are inherited"),
	OPTION_ROW(LIST, struct strings, "annotate", struct metric_options, metric.annotate,
		"tags of its annotations in Grafana"),
	OPTION_STRING_AS("explained_by", struct metric_options, control.explained_by, NULL,
		"TEST/METRIC of the load it depends on, to compare at equal load; \"\": none, "
		"overriding the test"),
	OPTION_STRING_AS("relative_to", struct metric_options, control.relative_to, NULL,
		"TEST/METRIC of a control to divide it by; \"\": none"),
	{0},
};

struct own_options metric_options_of(
	const struct config *config, const struct test *test, size_t at, struct arena *arena)
{
	const struct metric *metric = &test->metrics[at];
	struct metric_options *given = arena_alloc(arena, sizeof *given);
	struct metric_options *usual = arena_alloc(arena, sizeof *usual);
	usual->metric.scale = 1;
	usual->control = control_options_of(test->detection.control);
	*given = (struct metric_options){.metric = *metric,
		.was = former_name(config, test->name, metric->name),
		.direction = metric->direction,
		.control = control_options_of(test->detections[at].control)};
	if (metric->column && strcmp(metric->column, metric->name) == 0)
		given->metric.column = NULL;
	return (struct own_options){given, usual};
}

/* How the test's metrics are read. */
struct metrics_reading {
	const struct scope *scope; /* of the test */
	struct test *test;
	bool hunters; /* a type that Hunter has: unknown keys are warnings, higher is better by
			 default */
	bool suffix;  /* required where there is no query */
	const struct yaml_node *where;
};

/* `map` is NULL for a bare name. */
static void read_options(struct metrics_reading *metrics, const struct yaml_node *key,
	const struct yaml_node *map, const struct scope *scope, struct metric *metric,
	const struct control_rule **control)
{
	static const char *const other_keys[] = {"detection", NULL};
	struct metric_options options = {0};
	struct reading reading = {.scope = *scope,
		.tables = {{metric_fields, &options}},
		.other_keys = other_keys,
		.lenient = metrics->hunters};
	field_defaults(metric_fields, &options);
	options.direction = metrics->hunters ? 1 : 0;
	options_read(map, key, &reading);
	if (options.direction != -1 && options.direction != 0 && options.direction != 1)
		loader_error(key, scope, "direction: %g: expected 1, -1 or 0", options.direction);
	if (options.metric.scale == 0)
		loader_error(key, scope, "scale: 0 would make all values equal");
	if (metrics->suffix && !options.metric.suffix && !options.metric.query)
		loader_error(key, scope, "\"suffix\" is missing");
	fingerprint_fields(scope->loader, &metrics->test->fingerprint, metric_fields, &options);
	options.metric.name = metric->name;
	*metric = options.metric;
	metric->direction = (options.direction > 0) - (options.direction < 0);
	metric->column = metric->column ? metric->column : metric->name;
	rename_note(map, scope, options.was);
	*control = control_note(map, scope, &options.control, metrics->test->detection.control);
}

static void read_metric(struct metrics_reading *metrics, const struct yaml_entry *entry,
	struct metric *metric, struct detection *detection)
{
	struct scope scope = *metrics->scope;
	scope.metric = metric->name = loader_name(scope.loader, entry->key);
	const struct yaml_node *map = entry->value;
	loader_check_name(entry->key, &scope, metric->name);
	if (map && map->kind != YAML_MAP) {
		if (!yaml_is_null(map))
			loader_error(
				map, &scope, "expected a map of options, like {direction: -1}");
		map = NULL;
	}
	const struct control_rule *control;
	read_options(metrics, entry->key, map, &scope, metric, &control);
	*detection = detection_read(yaml_get(map, "detection"), &scope, &metrics->test->detection);
	detection->control = control;
}

/* Turns a list of distinct names into entries without values. */
static struct yaml_entry *entries_of_list(
	struct metrics_reading *metrics, const struct yaml_node *list, size_t *count)
{
	struct loader *loader = metrics->scope->loader;
	struct yaml_entry *entries = arena_array(loader->arena, list->count, sizeof *entries);
	struct dict seen = {.arena = loader->arena};
	*count = 0;
	for (size_t i = 0; i < list->count; i++) {
		const struct yaml_node *item = list->items[i];
		if (item->kind != YAML_SCALAR || yaml_is_null(item)) {
			loader_error(item, metrics->scope,
				"metrics: a list holds only names; for options use a map, like "
				"{p99: {direction: -1}}");
			continue;
		}
		const void **place = dict_place(&seen, item->text);
		if (!*place)
			entries[(*count)++] = (struct yaml_entry){item, NULL};
		*place = item;
	}
	return entries;
}

static void read_entries(
	struct metrics_reading *metrics, const struct yaml_entry *entries, size_t count)
{
	struct arena *arena = metrics->scope->loader->arena;
	if (!loader_spend(metrics->scope->loader, METRIC_VALUES * count, metrics->where))
		return;
	struct metric *metric = arena_array(arena, count, sizeof *metric);
	struct detection *detection = arena_array(arena, count, sizeof *detection);
	struct dict names = {.arena = arena};
	for (size_t i = 0; i < count; i++) {
		read_metric(metrics, &entries[i], &metric[i], &detection[i]);
		const void **place = dict_place(&names, metric[i].name);
		if (*place)
			loader_error(entries[i].key, metrics->scope,
				"metrics: duplicate name \"%.80s\"", entries[i].key->text);
		*place = &metric[i];
	}
	metrics->test->metrics = metric;
	metrics->test->detections = detection;
	metrics->test->metric_count = count;
}

void metrics_read(
	const struct yaml_node *map, const struct scope *scope, const char *type, struct test *test)
{
	const struct yaml_node *node = yaml_get(map, "metrics");
	struct metrics_reading metrics = {.scope = scope,
		.test = test,
		.where = node,
		.hunters = kind_find(type) != NULL,
		.suffix = strcmp(type, "graphite") == 0 && !yaml_get(map, "target")};
	if (!node || loader_is_null(node, scope, "metrics"))
		return;
	if (node->kind == YAML_MAP) {
		read_entries(&metrics, node->entries, node->count);
	} else if (node->kind == YAML_LIST) {
		size_t count;
		const struct yaml_entry *entries = entries_of_list(&metrics, node, &count);
		read_entries(&metrics, entries, count);
	} else {
		loader_error(node, scope, "metrics: expected a list or a map");
	}
}
