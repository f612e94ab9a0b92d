/*
 * Prints what users can write, one a line, as the program's own tables hold it: keys of the
 * configuration, options of detectors, flags, addresses and parameters of the API. Tests that try
 * all of them read it.
 */
#include <stdio.h>
#include <string.h>

#include "agent/analysis/shapes.h"
#include "agent/commands/commands.h"
#include "agent/web/api.h"
#include "conf/known_changes.h"
#include "conf/load.h"
#include "conf/web_config.h"
#include "detectors/confirm.h"
#include "detectors/detector.h"
#include "detectors/fdr.h"
#include "detectors/season.h"
#include "notifiers/notifier.h"
#include "sources/source.h"

static const char *const types[] = {[FIELD_BOOL] = "true or false",
	[FIELD_INT] = "integer",
	[FIELD_DOUBLE] = "number",
	[FIELD_STRING] = "text",
	[FIELD_SECRET] = "secret",
	[FIELD_DURATION] = "duration",
	[FIELD_BYTES] = "bytes",
	[FIELD_CHOICE] = "one of",
	[FIELD_LIST] = "list",
	[FIELD_MAP] = "map"};

static void put_field(const char *room, const char *name, const struct field *field, bool is_flag)
{
	printf("%s ", room);
	for (fputs(is_flag ? "--" : "", stdout); *name; name++)
		putchar(is_flag && *name == '_' ? '-' : *name);
	printf(": %s", types[field->type]);
	for (size_t i = 0; field->choices && field->choices[i]; i++)
		printf("%s%s", i ? "|" : " ", field->choices[i]);
	if (is_flag && field->letter)
		printf(", -%c", field->letter);
	if (field->variable)
		printf(", $%s", field->variable);
	putchar('\n');
}

static void put_fields(
	const char *kind, const char *owner, const struct field *fields, bool is_flag)
{
	char room[256];

	snprintf(room, sizeof room, "%s%s%s", kind, owner ? " " : "", owner ? owner : "");
	for (; fields && fields->name; fields++) {
		put_field(room, fields->name, fields, is_flag);
		if (fields->alias)
			put_field(room, fields->alias, fields, is_flag);
	}
}

static void put_commands(void)
{
	put_fields("flag of every command", NULL, common_fields, true);
	for (const struct command *const *each = commands; *each; each++) {
		printf("command %s: %s\n", (*each)->name,
			(*each)->arguments ? (*each)->arguments : "no arguments");
		for (const struct option_part *part = (*each)->parts; part && part->fields; part++)
			put_fields("flag of", (*each)->name, part->fields, true);
	}
}

static void put_configuration(void)
{
	put_fields("key of agent", NULL, agent_fields, false);
	put_fields("key of a test", NULL, test_fields, false);
	put_fields("key of a metric", NULL, metric_fields, false);
	put_fields("key of a cluster group", NULL, group_fields, false);
	put_fields("key of a cluster group", NULL, shape_fields, false);
	put_fields("key of a mute time", NULL, mute_fields, false);
	put_fields("key of a time of a mute time", NULL, mute_clock_fields, false);
	put_fields("key of a server or receiver with an address", NULL, endpoint_fields, false);
	put_fields("key of every receiver", NULL, receiver_fields, false);
	put_fields("key of a receiver's digest", NULL, digest_fields, false);
	put_fields("key of a test's bisect", NULL, test_bisect_fields, false);
	put_fields("key of a route", NULL, route_fields, false);
	put_fields("key of a known change", NULL, known_change_fields, false);
	put_fields("key of detection", NULL, confirm_fields, false);
	put_fields("key of detection", NULL, fdr_fields, false);
	put_fields("key of detection", NULL, season_fields, false);
	put_fields("key of web_config", NULL, web_fields, false);
	put_fields("key of web_config's tls_server_config", NULL, web_tls_fields, false);
	put_fields("key of web_config's token", NULL, web_token_fields, false);
	for (size_t i = 0; sources[i]; i++) {
		put_fields("key of a test of type", sources[i]->name, sources[i]->fields, false);
		put_fields("key of a server of type", sources[i]->name, sources[i]->server_fields,
			false);
	}
	for (size_t i = 0; notifiers[i]; i++)
		put_fields("key of receiver", notifiers[i]->name, notifiers[i]->fields, false);
	for (size_t i = 0; detectors[i]; i++)
		put_fields("option of detector", detectors[i]->name, detectors[i]->fields, false);
	for (size_t i = 0; sources[i]; i++)
		if (sources[i]->server_size > 0)
			printf("word of the configuration: %s\n", sources[i]->name);
	for (size_t i = 0; notifiers[i]; i++)
		printf("word of the configuration: %s\n", notifiers[i]->name);
	for (const struct compat_type *kind = kind_sections; kind->name; kind++)
		printf("word of the configuration: %s\n", kind->name);
}

static void put_routes(const struct route *routes)
{
	for (; routes->path; routes++) {
		printf("address: %s %s\n", routes->uses & HTTP_POST ? "POST" : "GET", routes->path);
		for (const char *at = routes->parameters; at && *at; at += strspn(at, " ")) {
			int length = (int)strcspn(at, " ");

			printf("parameter of %s: %.*s\n", routes->path, length, at);
			at += length;
		}
	}
}

int main(void)
{
	put_commands();
	put_configuration();
	put_routes(pages_routes);
	put_routes(api_routes);
	return fflush(stdout) == 0 ? 0 : 1;
}
