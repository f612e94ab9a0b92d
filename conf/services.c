/*
 * The sections of other programs: servers (`prometheus:`, entries of `sources:`) and receivers
 * (`slack:`).
 *
 * A section without a plugin in this binary is checked against the keys of Hunter and Otava and
 * otherwise ignored. A section whose environment variables are not set disables only what uses it.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/secret.h"
#include "agent/base/transfer.h"
#include "conf/load.h"

enum { SERVERS_MAX = 1000, RECEIVERS_MAX = 1000 };

/* Why the file is unusable, or NULL. The secret it contains is wiped from memory. */
static const char *file_problem(
	struct loader *loader, const char *option, const char *path, bool secret)
{
	struct arena *scratch;
	struct error error;
	const char *content, *problem = NULL;
	if (access(path, R_OK) != 0)
		return arena_printf(loader->arena, "%s: cannot read \"%.200s\": %s", option, path,
			strerror(errno));
	if (!secret)
		return NULL;
	scratch = arena_new();
	if (!secret_read(scratch, option, path, &content, &error))
		problem = arena_strdup(loader->arena, error.text);
	arena_free(scratch);
	return problem;
}

static void report_file(
	const struct yaml_node *where, const struct scope *scope, const char *problem)
{
	if (!problem)
		return;
	loader_warn(where, scope, "%s", problem);
	loader_unreadable(where, scope, problem);
}

void services_check_secret(const struct yaml_node *where, const struct scope *scope,
	const char *option, const char *path)
{
	report_file(where, scope, file_problem(scope->loader, option, path, true));
}

/* At most one of a secret and its file may be given, and the file must contain a secret: otherwise
 * the mistake would surface only when a message is sent. */
static void check_files(
	const struct yaml_node *map, const struct scope *scope, const struct option_table *table)
{
	for (const struct field *field = table->fields; field && field->name; field++) {
		const char *path = field_is_file(field) ? field_text(field, table->options) : NULL;
		if (!path)
			continue;
		const struct field *secret = field_secret(table->fields, field);
		if (secret && field_text(secret, table->options))
			loader_error(map, scope, "\"%s\" and \"%s\" are both given", secret->name,
				field->name);
		report_file(
			map, scope, file_problem(scope->loader, field->name, path, secret != NULL));
	}
}

/* A secret is one non-empty line; an empty password counts as none. */
static void check_secrets(
	const struct yaml_node *map, const struct scope *scope, const struct option_table *table)
{
	for (const struct field *field = table->fields; field && field->name; field++) {
		struct error error;
		if (field->type != FIELD_SECRET)
			continue;
		const char *secret = field_text(field, table->options);
		if (secret && (*secret || !(field->flags & FIELD_EMPTY)) &&
			!secret_check(field->name, secret, &error))
			loader_complain(map, scope, &error);
	}
}

/* A line break would end the header and start another. */
static void check_headers(
	const struct yaml_node *map, const struct scope *scope, const struct endpoint *endpoint)
{
	const struct yaml_node *node = yaml_get(map, "headers");
	for (size_t i = 0; node && i < endpoint->headers.count; i++) {
		const struct pair *header = &endpoint->headers.items[i];
		if (!*header->key || strpbrk(header->key, " \t\r\n:"))
			loader_error(node, scope, "headers: \"%.80s\" is not a valid header name",
				header->key);
		else if (strpbrk(header->value, "\r\n"))
			loader_error(node, scope,
				"headers: the value of \"%.80s\" contains a line break",
				header->key);
	}
}

/*
 * The variables are about the server of the section, so they are not applied to a named server,
 * which would be sent another server's password. A secret's file overrides the environment.
 */
static void set_variables(struct loader *loader, const struct yaml_node *map,
	const struct reading *reading, const struct field *fields, void *options)
{
	loader_set_variables(fields, options, map, &reading->scope);
	for (const struct field *field = fields; field && field->name; field++) {
		const char *file = arena_printf(loader->arena, "%s_file", field->name);
		if (field->variable && field->type == FIELD_SECRET && yaml_get(map, file))
			*(const char **)(void *)((char *)options + field->offset) = NULL;
	}
}

/* Checks options that were read from `map`; `endpoint`: theirs, or NULL. */
static void check_options(const struct yaml_node *map, const struct scope *scope,
	const struct option_table *tables, size_t count, struct endpoint *endpoint, bool complete)
{
	struct error error;

	if (endpoint) {
		const char *written = config_written(scope->loader->config, endpoint->url);

		endpoint->shown = written != endpoint->url ? written : NULL;
		if (complete && !endpoint_check(endpoint, &error))
			loader_complain(map, scope, &error);
		check_headers(map, scope, endpoint);
	}
	for (size_t i = 0; i < count; i++) {
		check_secrets(map, scope, &tables[i]);
		check_files(map, scope, &tables[i]);
	}
}

/* Reads the options of a server or receiver; `more` are fields of another struct. */
static const void *read_options(struct loader *loader, const struct yaml_node *map,
	const struct reading *like, const struct field *fields, size_t size, bool endpoint,
	const struct option_table *more)
{
	void *options = arena_alloc(loader->arena, size);
	struct reading reading = *like;
	size_t count = 0;
	if (more)
		reading.tables[count++] = *more;
	if (fields)
		reading.tables[count++] = (struct option_table){fields, options};
	if (endpoint)
		reading.tables[count++] =
			(struct option_table){loader->source->schema->endpoint_fields, options};
	for (size_t i = 0; i < count; i++)
		field_defaults(reading.tables[i].fields, reading.tables[i].options);
	if (!reading.scope.name)
		set_variables(loader, map, &reading, fields, options);
	options_read(map, map, &reading);
	check_options(map, &reading.scope, reading.tables, count, endpoint ? options : NULL,
		!reading.scope.unset->variable);
	return options;
}

void services_check_endpoint(const struct yaml_node *map, const struct scope *scope,
	const struct plugin *plugin, void *options)
{
	const struct option_table tables[] = {{plugin->fields, options},
		{scope->loader->source->schema->endpoint_fields, options}};

	check_options(map, scope, tables, sizeof tables / sizeof *tables, options, true);
}

/* An address, if given, must be valid for libcurl; `mail`: one of a mail server. */
static void check_url(
	const struct yaml_node *map, const char *url, bool mail, const struct reading *reading)
{
	const struct yaml_node *where = yaml_get(map, "url");
	const char *problem = mail ? transfer_mail_url_problem(url) : transfer_url_problem(url);
	if (transfer_url_ambiguous(url))
		loader_error(where, &reading->scope,
			"url: in a password write \"/\", \"?\" and \"#\" as %%2F, %%3F and %%23, "
			"and after the host \"@\" as %%40; or use username and password");
	else if (problem)
		(reading->lenient ? loader_warn : loader_error)(
			where, &reading->scope, "url: %s", problem);
}

/* Takes a section, whose unset variable is noted; NULL after a report if there are too many. */
static struct declared_section *declare(const struct yaml_node *map, struct reading *reading,
	struct dict *all, size_t most, const char *name)
{
	struct declared_section *declared;

	if (all->count == most) {
		loader_error(map, &reading->scope.loader->root, "more than 1,000 %s",
			all == &reading->scope.loader->servers ? "servers" : "receivers");
		return NULL;
	}
	declared = arena_alloc(reading->scope.loader->arena, sizeof *declared);
	reading->scope.unset = &declared->unset;
	declared->scope = reading->scope;
	declared->node = map;
	*dict_place(all, name) = declared;
	return declared;
}

static void add_server(struct loader *loader, const struct yaml_node *map,
	const struct plugin *plugin, struct reading *reading, const char *name)
{
	struct declared_section *declared =
		declare(map, reading, &loader->servers, SERVERS_MAX, name);
	const struct endpoint *endpoint;
	if (!declared)
		return;
	declared->server.name = name;
	declared->server.source = plugin;
	declared->server.options = endpoint = read_options(loader, map, reading,
		plugin->server_fields, plugin->server_size, plugin->endpoint, NULL);
	/* A server needs an address, except in Hunter's files. */
	if (plugin->endpoint && !declared->unset.variable) {
		if (endpoint->url && *endpoint->url)
			check_url(map, endpoint->url, false, reading);
		else
			(reading->lenient ? loader_warn : loader_error)(
				map, &reading->scope, "\"url\" is missing");
	}
	*loader->last_server = declared;
	loader->last_server = &declared->next;
}

/* Warns of a server's settings that receivers share but ignore. */
static void check_unheeded(const struct yaml_node *map, const struct scope *scope)
{
	static const char *const keys[] = {"retry_for", "max_points"};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (yaml_get(map, keys[i]))
			loader_warn(yaml_get(map, keys[i]), scope,
				"%s: applies to sources only and has no effect here", keys[i]);
}

static void add_receiver(struct loader *loader, const struct yaml_node *map,
	const struct plugin *plugin, struct reading *reading, const char *name)
{
	size_t errors = loader->problems->errors;
	struct declared_section *declared =
		declare(map, reading, &loader->receivers, RECEIVERS_MAX, name);
	struct receiver_options common = {0};
	const struct endpoint *endpoint;
	struct error error;
	if (!declared)
		return;
	declared->receiver.name = name;
	declared->receiver.notifier = plugin;
	declared->receiver.options = endpoint =
		read_options(loader, map, reading, plugin->fields, plugin->options_size,
			plugin->endpoint, &(struct option_table){receiver_fields, &common});
	receiver_settle(map, &reading->scope, &common, &declared->receiver);
	/* The notifier's own check decides whether an address is required. */
	if (plugin->endpoint && !declared->unset.variable && endpoint->url && *endpoint->url)
		check_url(map, endpoint->url, plugin->mail, reading);
	if (plugin->endpoint)
		check_unheeded(map, &reading->scope);
	declared->on_demand = reading->lenient && plugin->on_demand &&
			      plugin->on_demand(declared->receiver.options);
	if (!declared->on_demand && !declared->unset.variable &&
		errors == loader->problems->errors && plugin->check &&
		!plugin->check(declared->receiver.options, &error)) {
		declared->useless = true;
		loader_complain(map, &reading->scope, &error);
		loader_note_blocker(map, &reading->scope, error.text);
	}
	*loader->last_receiver = declared;
	loader->last_receiver = &declared->next;
}

/* Checks the keys of a section without a plugin and the types of their values. */
static void check_keys(
	struct loader *loader, const struct yaml_node *map, const struct compat_type *kind)
{
	struct reading reading = {.scope = {.loader = loader, .kind = kind->name},
		.other_keys = kind->keys,
		.lenient = true};
	options_read(map, map, &reading);
	kind_check(kind, map, &reading.scope);
	const struct yaml_node *url = yaml_get(map, "url");
	const char *missing = NULL;
	if (!url || url->kind != YAML_SCALAR || yaml_is_null(url))
		return;
	const char *text = loader_expand(loader, url, true, &missing);
	if (!missing && *text && transfer_url_problem(text))
		loader_warn(url, &reading.scope, "url: %s", transfer_url_problem(text));
}

/* The digest is no option: its value is a map of its own. */
static const char *const receiver_keys[] = {"digest", NULL};

bool services_section(struct loader *loader, const struct yaml_entry *section)
{
	const char *name = section->key->text;
	const struct schema *schema = loader->source->schema;
	const struct plugin *source = plugin_find(schema->sources, name);
	const struct plugin *notifier = plugin_find(schema->notifiers, name);
	const struct compat_type *kind = kind_section(name);
	struct reading reading = {.scope = {.loader = loader, .kind = name},
		.other_keys = kind ? kind->keys : NULL,
		.lenient = kind != NULL,
		.dollar = kind != NULL};
	bool server = source && source->server_size > 0;
	if (!server && !notifier && !kind)
		return false;
	if (yaml_is_null(section->value) ||
		!loader_is_kind(section->value, YAML_MAP, &reading.scope, "a map"))
		return true;
	if (server)
		add_server(loader, section->value, source, &reading, name);
	if (notifier && !kind)
		reading.other_keys = receiver_keys;
	if (notifier)
		add_receiver(loader, section->value, notifier, &reading, name);
	if (strcmp(name, "csv") == 0)
		loader->csv = section->value;
	if (!server && !notifier)
		check_keys(loader, section->value, kind);
	return true;
}

/* "type: unknown type of server", "unknown kind of receiver" */
static void report_unknown(const struct yaml_node *where, const struct scope *scope,
	const struct plugin *const *plugins, bool servers, const char *what)
{
	const char *names[PLUGIN_NAMES];
	size_t count = plugin_names(plugins, servers, names);
	const char *word = where->kind == YAML_SCALAR ? where->text : "";
	loader_error(where, scope, "%s \"%.80s\"%s", what, word,
		loader_hint(scope->loader, word, names, count));
}

static void read_source(struct loader *loader, const struct yaml_entry *entry)
{
	static const char *const other_keys[] = {"type", NULL};
	struct reading reading = {
		.scope = {.loader = loader, .kind = "source", .name = entry->key->text},
		.other_keys = other_keys};
	if (!loader_is_kind(entry->value, YAML_MAP, &reading.scope, "a map"))
		return;
	const struct yaml_node *type = yaml_get(entry->value, "type");
	if (!type) {
		loader_error(entry->key, &reading.scope, "\"type\" is missing");
		return;
	}
	const struct plugin *plugin =
		type->kind == YAML_SCALAR ? plugin_find(loader->source->schema->sources, type->text)
					  : NULL;
	if (!plugin || plugin->server_size == 0) {
		report_unknown(type, &reading.scope, loader->source->schema->sources, true,
			"type: unknown type of server");
		return;
	}
	const struct declared_section *before = dict_get(&loader->servers, entry->key->text);
	if (before) {
		loader_error(entry->key, &reading.scope,
			"the section at %s:%d defines a server of the same name",
			before->node->file, before->node->line);
		return;
	}
	add_server(loader, entry->value, plugin, &reading, entry->key->text);
}

void services_sources(struct loader *loader, const struct yaml_node *map)
{
	for (size_t i = 0; map && i < map->count; i++)
		read_source(loader, &map->entries[i]);
}

/* The entry with the kind; NULL after a report. A section's name is taken by its kind. */
static const struct yaml_entry *find_kind(
	const struct yaml_entry *entry, const struct scope *scope, const char *name)
{
	const struct schema *schema = scope->loader->source->schema;
	const struct yaml_node *map = entry->value;
	const struct declared_section *before = dict_get(&scope->loader->receivers, name);
	if (map->kind != YAML_MAP || map->count != 1) {
		loader_error(entry->key, scope,
			"expected one kind with its options, like {slack: {channels: "
			"[\"#perf\"]}}");
		return NULL;
	}
	if (!plugin_find(schema->notifiers, map->entries[0].key->text)) {
		report_unknown(map->entries[0].key, scope, schema->notifiers, false,
			"unknown kind of receiver");
		return NULL;
	}
	if (before) {
		loader_error(entry->key, scope,
			"the section at %s:%d defines a receiver of the same name",
			before->node->file, before->node->line);
		return NULL;
	}
	if (plugin_find(schema->notifiers, name) && strcmp(name, map->entries[0].key->text) != 0) {
		loader_error(entry->key, scope, "a receiver of another kind has this name");
		return NULL;
	}
	return &map->entries[0];
}

static void read_receiver(struct loader *loader, const struct yaml_entry *entry)
{
	const char *name = loader_name(loader, entry->key);
	struct reading reading = {.scope = {.loader = loader, .kind = "receiver", .name = name},
		.other_keys = receiver_keys};
	loader_check_name(entry->key, &reading.scope, name);
	const struct yaml_entry *kind = find_kind(entry, &reading.scope, name);
	if (!kind)
		return;
	const struct yaml_node *map =
		yaml_is_null(kind->value) ? yaml_empty_map(loader->arena, kind->key) : kind->value;
	if (loader_is_kind(map, YAML_MAP, &reading.scope, "a map"))
		add_receiver(loader, map,
			plugin_find(loader->source->schema->notifiers, kind->key->text), &reading,
			name);
}

void services_receivers(struct loader *loader, const struct yaml_node *map)
{
	for (size_t i = 0; map && i < map->count; i++)
		read_receiver(loader, &map->entries[i]);
}

static void caution(const struct declared_section *declared, const struct field *fields,
	const void *options, bool endpoint)
{
	const struct scope *scope = &declared->scope;
	const struct field *shared = scope->loader->source->schema->endpoint_fields;
	if (fields)
		caution_options(declared->node, scope, fields, options, endpoint ? options : NULL);
	if (endpoint)
		caution_options(declared->node, scope, shared, options, options);
}

void services_caution(struct loader *loader)
{
	for (const struct declared_section *d = loader->first_server; d; d = d->next)
		caution(d, d->server.source->server_fields, d->server.options,
			d->server.source->endpoint);
	for (const struct declared_section *d = loader->first_receiver; d; d = d->next)
		caution(d, d->receiver.notifier->fields, d->receiver.options,
			d->receiver.notifier->endpoint);
}

/* Builds the arrays of servers and receivers; stdout is always a receiver. */
void services_finish(struct loader *loader)
{
	struct config *config = loader->config;
	const struct plugin *out = plugin_find(loader->source->schema->notifiers, "stdout");
	struct server *servers = arena_array(loader->arena, loader->servers.count, sizeof *servers);
	struct receiver *receivers =
		arena_array(loader->arena, loader->receivers.count + 1, sizeof *receivers);
	struct receiver *idle = arena_array(loader->arena, loader->receivers.count, sizeof *idle);
	for (const struct declared_section *d = loader->first_server; d; d = d->next)
		servers[config->server_count++] = d->server;
	for (const struct declared_section *d = loader->first_receiver; d; d = d->next) {
		if (loader->source->stdout_only && strcmp(d->receiver.name, "stdout") != 0)
			continue;
		if (d->unset.variable && !d->on_demand)
			loader_missing(&d->scope, &d->unset);
		else if (!d->useless && !d->on_demand)
			receivers[config->receiver_count++] = d->receiver;
		else {
			idle[config->idle_count++] = d->receiver;
			idle[config->idle_count - 1].unset = d->unset.variable;
		}
	}
	bool implicit = out && !dict_get(&loader->receivers, "stdout");
	if (implicit) {
		void *options = arena_alloc(loader->arena, out->options_size);
		field_defaults(out->fields, options);
		struct receiver receiver = {
			.name = "stdout", .notifier = out, .options = options, .implicit = true};
		receiver_settle(NULL, &(struct scope){.loader = loader, .kind = "stdout"},
			&(struct receiver_options){0}, &receiver);
		receivers[config->receiver_count++] = receiver;
	}
	for (size_t i = 0; i < config->receiver_count; i++)
		fingerprint_receiver(loader, &receivers[i]);
	const char **names = arena_array(loader->arena, config->receiver_count + 1, sizeof *names);
	size_t count = 0;
	for (; count < config->receiver_count; count++)
		names[count] = receivers[count].name;
	if (count > 1 && implicit)
		count--;
	loader->all_receivers = (struct strings){names, count};
	config->servers = servers;
	config->receivers = receivers;
	config->idle = idle;
}
