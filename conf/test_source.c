/*
 * Determines the type of a test and the server that has its data. A test need not name the only
 * server of its type.
 */
#include <string.h>

#include "conf/load.h"

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

const char *test_type_read(const struct yaml_node *map, const struct scope *scope)
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

void test_server_find(
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
