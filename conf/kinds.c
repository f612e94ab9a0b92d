/*
 * The types of tests and sections that Hunter and Otava know, with their keys. Where this binary
 * has a plugin of that name the plugin's table is used; other sections and tests are checked
 * against these keys and otherwise ignored.
 */
#include <string.h>

#include "conf/load.h"

static const char *const none[] = {NULL};
static const char *const file[] = {"file", NULL};
static const char *const prefix[] = {"prefix", NULL};
static const char *const query[] = {"query", NULL};

static const char *const csv_keys[] = {"file", "time_column", "attributes", "csv_options", NULL};
static const char *const json_keys[] = {"file", "base_branch", NULL};
static const char *const graphite_keys[] = {"prefix", "branch_prefix", NULL};
static const char *const sql_keys[] = {
	"query", "update_statement", "time_column", "attributes", NULL};
static const char *const influxdb_keys[] = {
	"query", "query_language", "time_column", "attributes", NULL};

static const struct compat_type test_kinds[] = {
	{"csv", csv_keys, file, NULL},
	{"json", json_keys, file, NULL},
	{"histostat", file, file, NULL},
	{"graphite", graphite_keys, prefix, NULL},
	{"postgres", sql_keys, query, NULL},
	{"bigquery", sql_keys, query, "BigQuery is not supported"},
	{"influxdb", influxdb_keys, query, "InfluxDB is not supported"},
	{NULL, NULL, NULL, NULL},
};

const char *const kind_all_keys[] = {"file", "time_column", "attributes", "csv_options",
	"base_branch", "prefix", "branch_prefix", "query", "update_statement", "query_language",
	NULL};

static const char *const graphite_section[] = {"url", "suffixes", "timeout", NULL};
static const char *const grafana_section[] = {"url", "user", "password", "digest", NULL};
static const char *const slack_section[] = {
	"token", "bot_token", "channel", "channels", "digest", NULL};
static const char *const postgres_section[] = {
	"hostname", "port", "username", "password", "database", NULL};
static const char *const bigquery_section[] = {"project_id", "dataset", "credentials", NULL};
static const char *const influxdb_section[] = {"host", "database", "token", NULL};
static const char *const csv_section[] = {"delimiter", "quote_char", "quotechar", NULL};
static const char *const fallout_section[] = {"url", "user", "token", NULL};

const struct compat_type kind_sections[COMPAT_SECTIONS + 1] = {
	{"graphite", graphite_section, none, NULL},
	{"grafana", grafana_section, none, NULL},
	{"slack", slack_section, none, NULL},
	{"postgres", postgres_section, none, NULL},
	{"bigquery", bigquery_section, none, NULL},
	{"influxdb", influxdb_section, none, NULL},
	{"csv", csv_section, none, NULL},
	{"fallout", fallout_section, none, NULL},
	{NULL, NULL, NULL, NULL},
};

static const struct compat_type *find(const struct compat_type *kinds, const char *name)
{
	for (const struct compat_type *kind = kinds; kind->name; kind++)
		if (strcmp(kind->name, name) == 0)
			return kind;
	return NULL;
}

const struct compat_type *kind_find(const char *name)
{
	return find(test_kinds, name);
}

const struct compat_type *kind_section(const char *name)
{
	return find(kind_sections, name);
}

void kind_check(
	const struct compat_type *kind, const struct yaml_node *map, const struct scope *scope)
{
	static const char *const lists[] = {
		"attributes", "suffixes", "channel", "channels", "csv_options", NULL};
	for (size_t i = 0; i < map->count; i++) {
		const char *key = map->entries[i].key->text;
		const struct yaml_node *value = map->entries[i].value;
		if (is_listed(kind->keys, key) && !is_listed(lists, key) &&
			value->kind != YAML_SCALAR)
			loader_error(value, scope, "%s: expected one value, not a %s", key,
				value->kind == YAML_MAP ? "map" : "list");
	}
}
