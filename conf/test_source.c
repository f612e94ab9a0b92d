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
	const char *names[100];
	size_t count = 0;
	for (const struct declared_section *d = scope->loader->first_server; d && count < 100;
		d = d->next)
		names[count++] = d->server.name;
	loader_error(where, scope, "source: unknown server \"%.80s\"%s", where->text,
		loader_hint(scope->loader, name, names, count));
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

static const struct declared_section *only_server(
	const struct loader *loader, const struct plugin *plugin)
{
	const struct declared_section *found = dict_get(&loader->servers, plugin->name);
	for (const struct declared_section *d = loader->first_server; d && !found; d = d->next) {
		if (d->server.source != plugin)
			continue;
		for (const struct declared_section *other = d->next; other; other = other->next)
			if (other->server.source == plugin)
				return NULL;
		found = d;
	}
	return found;
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

static bool any_server(const struct loader *loader, const struct plugin *plugin)
{
	for (const struct declared_section *d = loader->first_server; d; d = d->next)
		if (d->server.source == plugin)
			return true;
	return false;
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
	const struct declared_section *declared =
		name ? named_server(map, scope, plugin, name) : only_server(loader, plugin);
	if (declared) {
		test->server = &declared->server;
		if (!declared->unset.variable)
			return;
		loader_missing(&(struct scope){.loader = loader, .kind = declared->server.name},
			&declared->unset);
		loader_warn(declared->unset.where,
			&(struct scope){.loader = loader, .kind = declared->server.name},
			"${%s} is not set: its tests cannot run", declared->unset.variable);
		test->unsupported =
			arena_printf(loader->arena, "${%s} is not set", declared->unset.variable);
	} else if (!name && !plugin->endpoint && !any_server(loader, plugin)) {
		test->server = default_server(plugin, map, scope);
	} else if (!name && kind_find(plugin->name) && plugin->endpoint) {
		test->unsupported = arena_printf(loader->arena, "no section \"%s\"", plugin->name);
	} else if (!name) {
		loader_error(map, scope, "no server: add a section \"%s\" or \"source: NAME\"",
			plugin->name);
	}
}
