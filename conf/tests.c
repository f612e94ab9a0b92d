/*
 * Turns the section `tests` into struct test. A test of a type that this binary has no source for,
 * or that lacks an environment variable or a server, is kept with the reason; the other tests are
 * not affected. A test need not name the only server of its type.
 */
#include <string.h>

#include "agent/base/hash.h"
#include "agent/base/label.h"
#include "conf/load.h"
#include "conf/mute.h"

/* The options of every test, independent of its source. */
const struct field test_fields[] = {
	OPTION_STRING_AS("source", struct test, given.source, NULL, "server, one of `sources`"),
	OPTION_STRING_AS(
		"was", struct test, given.was, NULL, "former name; its changes are inherited"),
	OPTION_DURATION(
		struct test, interval, NULL, 1000, (double)INT64_MAX, "interval between runs"),
	OPTION_ROW(BOOL, bool, "watch", struct test, given.watch,
		"run a file's test as soon as the file is written"),
	OPTION_DURATION(struct test, evaluation_delay, NULL, 0, EVALUATION_DELAY_MAX,
		"ignore points younger than this until a later run; default: "
		"agent.evaluation_delay"),
	OPTION_DURATION(struct test, stale_after, NULL, 1000, (double)INT64_MAX,
		"report the test if it has no new points for this long; default: "
		"agent.stale_after"),
	OPTION_BOOL(struct test, allow_empty, "accept a query that returns no series"),
	OPTION_BOOL(struct test, vanished,
		"report series that end while others continue, and their return; default: true"),
	OPTION_INT(struct test, max_series, NULL, 1, MAX_SERIES,
		"maximum number of series, default 100000; known series are kept, others dropped "
		"and logged"),
	OPTION_DURATION(struct test, window, NULL, 0, WINDOW_MAX,
		"time covered by a point: deployments within it are suspects; default: the longest "
		"range of the query, or the step"),
	OPTION_LIST(struct test, notify,
		"receivers to notify, overriding `routes`; default: the receivers of the matching "
		"route, or all"),
	OPTION_ROW(LIST, struct strings, "mute", struct test, given.mute,
		"mute times, from `mute_times`, during which it is not announced"),
	OPTION_LIST(struct test, tags, "tags of its Graphite events and Grafana annotations"),
	OPTION_LIST(struct test, annotate, "additional tags of its Grafana annotations"),
	OPTION_STRING_AS("commit_url", struct test, links.commit_url, NULL,
		"page about a commit; by default agent.commit_url, \"\": none"),
	OPTION_STRING_AS("compare_url", struct test, links.compare_url, NULL,
		"page about a range of commits; by default agent.compare_url, \"\": none"),
	OPTION_STRING_AS("dashboard", struct test, links.dashboard, NULL,
		"page that shows its series; by default agent.dashboard, \"\": none"),
	OPTION_STRING_AS("runbook", struct test, links.runbook, NULL,
		"runbook page; by default agent.runbook, \"\": none"),
	OPTION_STRING_AS("owner", struct test, links.owner, NULL,
		"its owner, shown in messages; by default agent.owner, \"\": none"),
	OPTION_STRING(struct test, environment, NULL,
		"label, tag, path part (path[2]) or attribute that names where a series was "
		"measured, to recognise changes of one environment; default: agent.environment, "
		"\"\": none"),
	OPTION_STRING(struct test, repository, NULL,
		"local clone of the measured code, to list the commits of a change; default: "
		"agent.repository, \"\": none",
		.flags = FIELD_FOLDER),
	OPTION_STRING(struct test, run_attribute, NULL,
		"attribute that identifies a run: consecutive points with the same value are one "
		"run; default: points with the same time"),
	OPTION_STRING(struct test, hash_attribute, NULL,
		"identifies the binary: runs with the same value cannot differ"),
	OPTION_STRING_AS("explained_by", struct test, given.control.explained_by, NULL,
		"TEST/METRIC of the load its metrics depend on, to compare at equal load"),
	OPTION_STRING_AS("relative_to", struct test, given.control.relative_to, NULL,
		"TEST/METRIC of a control to divide its metrics by: another region, the baseline"),
	{0},
};

static void set_defaults(const struct agent_settings *agent, struct test *test)
{
	test->interval = agent->interval;
	test->evaluation_delay = agent->evaluation_delay;
	test->stale_after = agent->stale_after;
	test->max_series = MAX_SERIES;
	test->vanished = true;
	test->window = -1;
	test->links = agent->links;
	test->environment = agent->environment;
	test->repository = agent->repository;
}

static struct strings mute_names(const struct mutes *mutes, struct arena *arena)
{
	const char **names = arena_array(arena, mutes->count, sizeof *names);
	for (size_t i = 0; i < mutes->count; i++)
		names[i] = mute_name(mutes->items[i]);
	return (struct strings){names, mutes->count};
}

struct own_options test_options_of(
	const struct config *config, const struct test *test, struct arena *arena)
{
	struct test *given = arena_alloc(arena, sizeof *given);
	struct test *usual = arena_alloc(arena, sizeof *usual);
	const char **all = arena_array(arena, config->receiver_count, sizeof *all);
	size_t count = 0;
	for (size_t i = 0; i < config->receiver_count; i++)
		if (!config->receivers[i].implicit)
			all[count++] = config->receivers[i].name;
	if (count == 0)
		all[count++] = "stdout";
	set_defaults(&config->agent, usual);
	*given = *test;
	given->given.source = test->server ? test->server->name : NULL;
	given->given.mute = mute_names(&test->mute, arena);
	if (test->routed)
		given->notify = (struct strings){0};
	else
		usual->notify = (struct strings){all, count};
	return (struct own_options){given, usual};
}

static void report_type(const struct yaml_node *where, const struct scope *scope, const char *type)
{
	static const char *const hunters[] = {"bigquery", "influxdb"};
	const char *names[PLUGIN_NAMES + 2];
	size_t count = plugin_names(scope->loader->source->schema->sources, false, names);
	for (size_t i = 0; i < sizeof hunters / sizeof *hunters; i++)
		names[count++] = hunters[i];
	loader_error(where, scope, "type: unknown type \"%.80s\"%s", where->text,
		loader_hint(scope->loader, type, names, count));
}

static void report_server(
	const struct yaml_node *where, const struct scope *scope, const char *name)
{
	const struct config *config = scope->loader->config;
	loader_error(where, scope, "source: unknown server \"%.80s\"%s", where->text,
		loader_hint_in(scope->loader, name, config->servers, config->server_count,
			sizeof *config->servers));
}

static const char *read_type(const struct yaml_node *map, const struct scope *scope)
{
	struct loader *loader = scope->loader;
	const struct yaml_node *type = yaml_get(map, "type");
	const struct yaml_node *source = yaml_get(map, "source");
	const char *missing = NULL;
	if (type && type->kind == YAML_SCALAR && !yaml_is_null(type)) {
		const char *name = loader_expand(loader, type, false, &missing);
		if (!missing &&
			(plugin_find(loader->source->schema->sources, name) || kind_find(name)))
			return name;
		if (!missing) {
			report_type(type, scope, name);
			return NULL;
		}
	} else if (source && source->kind == YAML_SCALAR) {
		const char *name = loader_expand(loader, source, false, &missing);
		const struct declared_section *declared = dict_get(&loader->servers, name);
		if (!missing && declared)
			return declared->server.source->name;
		if (!missing) {
			report_server(source, scope, name);
			return NULL;
		}
		type = source;
	}
	if (missing)
		loader_error(type, scope, "${%s} is not set", missing);
	else
		loader_error(map, scope, "\"type\" is missing");
	return NULL;
}

/* The server of that section or, if there is none, the only one of its type; *count: how many. */
static const struct declared_section *only_server(
	const struct loader *loader, const struct plugin *plugin, size_t *count)
{
	const struct declared_section *found = dict_get(&loader->servers, plugin->name),
				      *last = NULL;
	*count = 0;
	for (const struct declared_section *d = loader->first_server; d; d = d->next)
		if (d->server.source == plugin) {
			last = d;
			++*count;
		}
	return found || *count > 1 ? found : last;
}

/* The server that `source:` names, or NULL after a report. */
static const struct declared_section *named_server(const struct yaml_node *map,
	const struct scope *scope, const struct plugin *plugin, const char *name)
{
	const struct declared_section *declared = dict_get(&scope->loader->servers, name);
	const struct yaml_node *where = yaml_get(map, "source");
	if (declared && declared->server.source == plugin)
		return declared;
	if (declared)
		loader_error(where, scope, "source: \"%.80s\" is of type %s, not %s", where->text,
			declared->server.source->name, plugin->name);
	else
		report_server(where, scope, name);
	return NULL;
}

/* A server that needs no configured address: the environment provides it (PGHOST). */
static const struct server *default_server(
	const struct plugin *plugin, const struct yaml_node *map, const struct scope *scope)
{
	struct server *server = arena_alloc(scope->loader->arena, sizeof *server);
	void *options = arena_alloc(scope->loader->arena, plugin->server_size);
	field_defaults(plugin->server_fields, options);
	loader_set_variables(plugin->server_fields, options, map, scope);
	*server = (struct server){plugin->name, plugin, options};
	return server;
}

static void find_server(
	const struct yaml_node *map, const struct scope *scope, const char *name, struct test *test)
{
	struct loader *loader = scope->loader;
	const struct plugin *plugin = test->source;
	size_t count;
	const struct declared_section *declared = only_server(loader, plugin, &count);
	if (name)
		declared = named_server(map, scope, plugin, name);
	if (declared) {
		const struct scope server = {.loader = loader, .kind = declared->server.name};
		test->server = &declared->server;
		if (!declared->unset.variable)
			return;
		loader_missing(&server, &declared->unset);
		loader_warn(declared->unset.where, &server,
			"${%s} is not set: its tests cannot run", declared->unset.variable);
		test->unsupported =
			arena_printf(loader->arena, "${%s} is not set", declared->unset.variable);
	} else if (!name && !plugin->endpoint && count == 0) {
		test->server = default_server(plugin, map, scope);
	} else if (!name && kind_find(plugin->name) && plugin->endpoint) {
		test->unsupported = arena_printf(loader->arena, "no section \"%s\"", plugin->name);
	} else if (!name) {
		loader_error(map, scope, "no server: add a section \"%s\" or \"source: NAME\"",
			plugin->name);
	}
}

static const char *const other_keys[] = {"type", "inherit", "metrics", "detection", "bisect", NULL};

static bool is_csv_option(const char *name)
{
	return strcmp(name, "delimiter") == 0 || strcmp(name, "quote_char") == 0 ||
	       strcmp(name, "quotechar") == 0;
}

/* Drops keys without effect and adds those of Otava's section `csv`, which override the tests'. */
static void complete_csv_options(const struct yaml_node *map, const struct scope *scope,
	const struct field *field, void *options)
{
	struct loader *loader = scope->loader;
	struct pairs *given = (struct pairs *)(void *)((char *)options + field->offset);
	const struct yaml_node *nested = yaml_get(map, "csv_options");
	size_t more = loader->csv ? loader->csv->count : 0, count = 0;
	struct pair *pairs = arena_array(loader->arena, given->count + more, sizeof *pairs);
	for (size_t i = 0; i < given->count; i++)
		if (is_csv_option(given->items[i].key))
			pairs[count++] = given->items[i];
	for (size_t i = 0; nested && nested->kind == YAML_MAP && i < nested->count; i++)
		if (!is_csv_option(nested->entries[i].key->text))
			loader_warn(nested->entries[i].key, scope,
				"csv_options: unknown key \"%.80s\"", nested->entries[i].key->text);
	for (size_t i = 0; i < more; i++) {
		const struct yaml_entry *entry = &loader->csv->entries[i];
		const char *missing = NULL;
		if (is_csv_option(entry->key->text) && entry->value->kind == YAML_SCALAR)
			pairs[count++] = (struct pair){entry->key->text,
				loader_expand(loader, entry->value, true, &missing)};
	}
	*given = (struct pairs){pairs, count};
}

/* Notes an unset variable as a blocker if the test could run otherwise. */
static void note_unset(const struct scope *scope, struct test *test)
{
	const struct unset *unset = scope->unset;
	if (!unset->variable || test->unsupported)
		return;
	loader_missing(scope, unset);
	loader_warn(unset->where, scope, "${%s} is not set: the test cannot run", unset->variable);
	test->unsupported = arena_printf(scope->loader->arena, "${%s} is not set", unset->variable);
}

/* A type of Hunter or Otava that this binary has no source for: its keys are checked and otherwise
 * ignored. */
static void keep_unsupported(struct loader *loader, const struct yaml_node *map,
	struct reading *reading, const struct compat_type *kind, struct test *test)
{
	for (const char *const *key = kind->required; *key; key++)
		if (!yaml_get(map, *key))
			loader_error(map, &reading->scope, "\"%s\" is missing", *key);
	options_read(map, map, reading);
	kind_check(kind, map, &reading->scope);
	if (kind->never)
		test->unsupported = kind->never;
	else
		test->unsupported = arena_printf(
			loader->arena, "this version cannot read tests of type \"%s\"", kind->name);
}

/* Whether points of the test can have the attribute. Tables have the listed attributes, JSON files
 * any, servers labels. */
static bool may_have_attribute(const struct test *test, const char *name)
{
	const struct field *field = NULL;
	const struct strings *listed;

	if (test->source && field_find(test->source->fields, "time_column"))
		field = field_find(test->source->fields, "attributes");
	if (!field || !test->options)
		return true;
	listed = (const void *)((const char *)test->options + field->offset);
	for (size_t i = 0; i < listed->count; i++)
		if (strcmp(listed->items[i], name) == 0)
			return true;
	return false;
}

/* The agent's default may be meant for other tests and is not reported. A part of a path, path[2],
 * refers to the name of a series. */
static void check_environment(
	const struct yaml_node *map, const struct scope *scope, const struct test *test)
{
	struct error error;

	if (!yaml_get(map, "environment") || !test->environment ||
		!label_is_name(test->environment, strlen(test->environment)) ||
		strchr(test->environment, '[') || may_have_attribute(test, test->environment))
		return;
	error_set(&error, ERROR_DATA,
		"environment: \"%.80s\" is not an attribute of the test; add it to attributes",
		test->environment);
	loader_complain(map, scope, &error);
}

/* The file that the test reads, if it is watched. */
static void read_watch(const struct yaml_node *map, const struct scope *scope, struct test *test)
{
	const struct field *file = test->source ? field_find(test->source->fields, "file") : NULL;
	if (file && file->type == FIELD_STRING && test->options)
		test->watched = field_text(file, test->options);
	else
		loader_error(yaml_get(map, "watch"), scope, "watch: the test reads no file");
}

/* Runs the plugin's check on options and metrics that were read without an error. */
static void check(const struct yaml_node *map, const struct scope *scope, const struct test *test)
{
	const struct plugin *plugin = test->source;
	struct error error;
	if (plugin->check && !plugin->check(test->options, &error))
		loader_complain(map, scope, &error);
	else if (plugin->check_metrics &&
		 !plugin->check_metrics(test->options, test->metrics, test->metric_count, &error))
		loader_complain(map, scope, &error);
}

/* True if all variables that its options need are set. */
static bool read_options(struct loader *loader, const struct yaml_node *map,
	struct reading *reading, struct test *test)
{
	const struct plugin *plugin = test->source;
	void *options = arena_alloc(loader->arena, plugin->options_size);
	field_defaults(plugin->fields, options);
	test->options = options;
	reading->tables[1] = (struct option_table){plugin->fields, options};
	options_read(map, map, reading);
	note_unset(&reading->scope, test);
	const struct field *csv = field_find(plugin->fields, "csv_options");
	if (csv && csv->type == FIELD_MAP)
		complete_csv_options(map, &reading->scope, csv, options);
	if (plugin->server_size > 0)
		find_server(map, &reading->scope, test->given.source, test);
	else if (test->given.source)
		(kind_find(plugin->name) != NULL ? loader_warn : loader_error)(
			yaml_get(map, "source"), &reading->scope,
			"source: tests of type \"%s\" use no server", plugin->name);
	return !reading->scope.unset->variable;
}

/* The default is all receivers, or stdout if there are none. */
struct strings notify_read(const struct yaml_node *map, const struct scope *scope,
	const struct strings *given, bool *routed)
{
	struct loader *loader = scope->loader;
	const struct yaml_node *node = yaml_get(map, "notify");
	*routed = loader->config->routes != NULL && given->count == 0;
	for (size_t i = 0; i < given->count; i++) {
		const char *name = given->items[i];
		if (strcmp(name, "stdout") != 0 && !dict_get(&loader->receivers, name))
			receiver_report_unknown(loader_item(loader, node, name), scope, "notify",
				config_written(loader->config, name));
	}
	if (node && node->kind == YAML_LIST && node->count == 0)
		loader_error(
			node, scope, "notify: empty list; leave notify out to use all receivers");
	if (given->count == 0 || loader->source->stdout_only)
		return loader->all_receivers;
	return *given;
}

static void read_test(struct loader *loader, const struct yaml_node *map,
	const struct yaml_node *own, const char *name, struct test *test)
{
	struct unset unset = {0};
	struct scope scope = {.loader = loader, .kind = "test", .name = name, .unset = &unset};
	const char *type = read_type(map, &scope);
	if (!type)
		return;
	test->fingerprint = HASH_START;
	set_defaults(&loader->config->agent, test);
	const struct compat_type *kind = kind_find(type);
	struct reading reading = {.scope = scope,
		.tables = {{test_fields, test}},
		.other_keys = other_keys,
		.harmless_keys = kind ? kind_all_keys : NULL,
		.lenient = kind != NULL};
	size_t errors = loader->problems->errors;
	bool whole = false;
	test->source = plugin_find(loader->source->schema->sources, type);
	reading.own = test->source ? own : NULL;
	reading.type = type;
	if (test->source)
		whole = read_options(loader, map, &reading, test);
	else
		keep_unsupported(loader, map, &reading, kind, test);
	fingerprint_fields(loader, &test->fingerprint, test_fields, test);
	if (loader->source->interval)
		test->interval = loader->source->interval;
	if (test->given.watch)
		read_watch(map, &scope, test);
	loader_check_links(map, &scope, &test->links);
	loader_check_environment(map, &scope, test->environment);
	if (test->environment && !*test->environment)
		test->environment = NULL;
	if (test->repository && !*test->repository)
		test->repository = NULL;
	if (whole)
		check_environment(map, &scope, test);
	rename_note(map, &scope, test->given.was);
	test->detection =
		detection_read(yaml_get(map, "detection"), &scope, &loader->config->detection);
	test->bisect = bisect_read(yaml_get(map, "bisect"), &scope, test);
	test->detection.control = control_note(map, &scope, &test->given.control, NULL);
	test->notify = notify_read(map, &scope, &test->notify, &test->routed);
	test->mute = mutes_read(map, &scope, &test->given.mute);
	metrics_read(map, &scope, type, test);
	note_unset(&scope, test);
	fingerprint_test(loader, test);
	if (whole && !unset.variable && errors == loader->problems->errors)
		check(map, &scope, test);
}

static void read_entry(struct loader *loader, const struct yaml_entry *entry, struct test *test)
{
	const char *name = loader_name(loader, entry->key);
	struct scope scope = {.loader = loader, .kind = "test", .name = name};
	const struct yaml_node *merged = NULL;
	test->name = name;
	test->file = entry->key->file;
	test->line = entry->key->line;
	const void **place = dict_place(loader->tests, name);
	const struct test *before = *place;
	*place = test;
	if (before)
		loader_error(
			entry->key, &scope, "already defined at %s:%d", before->file, before->line);
	loader_check_name(entry->key, &scope, name);
	if (entry->value->kind == YAML_MAP)
		merged = templates_resolve(loader, name, entry->value);
	else
		loader_error(entry->key, &scope, "expected a map");
	if (merged)
		read_test(loader, merged, entry->value, name, test);
}

void tests_read(struct loader *loader, const struct yaml_node *map)
{
	if (!map)
		return;
	struct test *tests = arena_array(loader->arena, map->count, sizeof *tests);
	for (size_t i = 0; i < map->count; i++)
		read_entry(loader, &map->entries[i], &tests[i]);
	loader->config->tests = tests;
	loader->config->test_count = map->count;
}
