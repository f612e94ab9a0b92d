#include "conf/in_effect.h"

#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/utf8.h"
#include "agent/base/zone.h"
#include "conf/load.h"
#include "detectors/combine.h"

enum {
	VALUE_MOST = 8000, /* bytes of a value */
	BELIEF = 5,        /* options of a detection beside the detector's */
	SECTIONS = 6 + COMBINE_MOST + IN_EFFECT_METRICS,
};

struct section {
	struct arena *arena;
	const struct config *config;
	struct option_in_effect *items;
	size_t count;
	bool server; /* its options may be credentials */
};

/* Whether a number is set: one below the field's range stands for unset. */
static bool is_given(const struct field *field, const void *options)
{
	const void *value = (const char *)options + field->offset;

	switch (field->type) {
	case FIELD_INT:
	case FIELD_BYTES:
	case FIELD_DURATION:
		return *(const int64_t *)value >= 0 &&
		       (field->min <= 0 || (double)*(const int64_t *)value >= field->min);
	case FIELD_STRING:
	case FIELD_SECRET: return *(const char *const *)value != NULL;
	case FIELD_LIST: return ((const struct strings *)value)->count > 0;
	case FIELD_MAP: return ((const struct pairs *)value)->count > 0;
	case FIELD_BOOL:
	case FIELD_DOUBLE:
	case FIELD_CHOICE: break;
	}
	return true;
}

/* Appends the text without the parts of addresses that may be keys: user and password and, in a
 * server's address, the query. True if there were any. */
static bool put_open(struct buf *out, const char *text, bool server)
{
	bool hidden = false, address = false;
	const char *host;

	for (; (host = strstr(text, "://")); address = true) {
		size_t length = strcspn(host + 3, "/?# \t\n\"'");
		const char *at;

		host += 3;
		at = memrchr(host, '@', length);
		buf_append(out, text, (size_t)(host - text));
		if (at)
			buf_text(out, "***@");
		hidden |= at != NULL;
		text = at ? at + 1 : host;
	}
	if (server && address && strpbrk(text, "?#")) {
		buf_append(out, text, strcspn(text, "?#"));
		buf_text(out, "?***");
		return true;
	}
	buf_text(out, text);
	return hidden;
}

static bool put_map(
	struct buf *out, const struct pairs *map, bool closed, const struct config *config)
{
	for (size_t i = 0; i < map->count; i++)
		buf_printf(out, "%s%s=%s", i ? ", " : "", map->items[i].key,
			closed ? "***" : config_written(config, map->items[i].value));
	return closed;
}

static void put_list(struct buf *out, const struct strings *list, const struct config *config)
{
	for (size_t i = 0; i < list->count; i++)
		buf_printf(out, "%s%s", i ? ", " : "", config_written(config, list->items[i]));
}

/* The value as written in the file. True if part of it is hidden. */
static bool put_value(struct buf *out, const struct field *field, const void *options,
	const struct section *section)
{
	const void *value = (const char *)options + field->offset;
	const struct config *config = section->config;

	if (field->type == FIELD_STRING)
		return put_open(
			out, config_written(config, *(const char *const *)value), section->server);
	if (field->type == FIELD_MAP)
		return put_map(out, value, field->flags & FIELD_CLOSED, config);
	if (field->type == FIELD_LIST)
		put_list(out, value, config);
	else
		field_print(field, options, out);
	return field->type == FIELD_SECRET;
}

static const char *keep_value(struct section *section, struct buf *text)
{
	const char *value = text->data ? text->data : "";
	size_t length = utf8_cut(value, VALUE_MOST);

	value = value[length] ? arena_printf(section->arena, "%.*s ...", (int)length, value)
			      : arena_strdup(section->arena, value);
	buf_free(text);
	return value;
}

/* Whether the value equals the default, secrets included. */
static bool is_usual(const struct field *field, const void *options, const void *usual)
{
	struct buf now = {0}, initial = {0};
	bool same;

	if (is_given(field, options) != is_given(field, usual))
		return false;
	if (!is_given(field, options))
		return true;
	field_print(field, options, &now);
	field_print(field, usual, &initial);
	same = field->type != FIELD_SECRET && now.length == initial.length &&
	       (now.length == 0 || memcmp(now.data, initial.data, now.length) == 0);
	buf_free(&now);
	buf_free(&initial);
	return same;
}

static struct option_in_effect *add(struct section *section)
{
	section->items =
		arena_grow(section->arena, section->items, section->count, sizeof *section->items);
	return &section->items[section->count++];
}

static void add_field(
	struct section *section, const struct field *field, const void *options, const void *usual)
{
	struct option_in_effect *option = add(section);
	struct buf text = {0};

	*option = (struct option_in_effect){
		.name = field->name, .help = field->help, .usual = is_usual(field, options, usual)};
	if (!is_given(field, options))
		return;
	option->hidden = put_value(&text, field, options, section);
	option->value = keep_value(section, &text);
}

static void add_fields(
	struct section *section, const struct field *fields, const void *options, const void *usual)
{
	for (const struct field *field = fields; field && field->name; field++)
		if (!(field->flags & FIELD_HIDDEN) || !is_usual(field, options, usual))
			add_field(section, field, options, usual);
}

/* Adds the options of a table with defaults of its own. */
static void add_table(
	struct section *section, const struct field *fields, size_t size, const void *options)
{
	void *usual = arena_alloc(section->arena, size);

	if (!options)
		return;
	memset(usual, 0, size);
	field_defaults(fields, usual);
	add_fields(section, fields, options, usual);
}

static void add_text(
	struct section *section, const char *name, const char *help, const char *value, bool usual)
{
	*add(section) = (struct option_in_effect){
		.name = name, .help = help, .value = value, .usual = usual};
}

static const char *confirm_text(const struct confirm_rule *rule, struct arena *arena)
{
	if (rule->mode == CONFIRM_OFF)
		return "off";
	return rule->mode == CONFIRM_AUTO ? "auto"
					  : arena_printf(arena, "%zu points", rule->points);
}

static void add_detection(struct section *section, const struct detection *detection)
{
	struct arena *arena = section->arena;

	add_table(section, detection->detector->fields, detection->detector->options_size,
		detection->options);
	add_text(section, "confirm", confirm_fields->help, confirm_text(&detection->confirm, arena),
		detection->confirm.mode == CONFIRM_AUTO);
	add_text(section, "fdr", "false discovery rate of its series",
		detection->fdr > 0 ? arena_printf(arena, "%.10g", detection->fdr) : NULL,
		detection->fdr == 0);
	add_text(section, "kind", season_fields[0].help, series_kind_names[detection->kind],
		detection->kind == KIND_AUTO);
	add_text(section, "season", season_fields[1].help,
		detection->season == SEASON_UNSET ? NULL : season_mode_names[detection->season],
		detection->season == SEASON_UNSET);
	add_text(section, "zone", season_fields[2].help,
		detection->zone ? zone_name(detection->zone) : NULL, !detection->zone);
	add_text(section, "holidays", season_fields[3].help,
		detection->holidays.count > 0
			? arena_printf(arena, "%zu days", detection->holidays.count)
			: NULL,
		detection->holidays.count == 0);
}

static void end_section(struct options_in_effect *out, size_t *count, const char *of,
	const char *name, const struct section *section)
{
	out[(*count)++] = (struct options_in_effect){
		.of = of, .name = name, .items = section->items, .count = section->count};
}

static void add_server(struct options_in_effect *out, size_t *count, const struct config *config,
	const struct schema *schema, const struct server *server, struct arena *arena)
{
	const struct plugin *plugin = server->source;
	struct section section = {.arena = arena, .config = config, .server = true};

	add_table(&section, plugin->server_fields, plugin->server_size, server->options);
	if (plugin->endpoint)
		add_table(&section, schema->endpoint_fields, plugin->server_size, server->options);
	end_section(out, count, "server", server->name, &section);
}

static void add_detections(struct options_in_effect *out, size_t *count,
	const struct config *config, const struct schema *schema, const struct detection *detection,
	struct arena *arena)
{
	struct detection members[COMBINE_MOST];
	size_t member_count = combine_members(schema, detection, members);
	struct section section = {.arena = arena, .config = config};

	add_detection(&section, detection);
	end_section(out, count, "detection", detection->detector->name, &section);
	for (size_t i = 0; i < member_count; i++) {
		section = (struct section){.arena = arena, .config = config};
		add_detection(&section, &members[i]);
		end_section(out, count, "detection", members[i].detector->name, &section);
	}
}

static void add_metric(struct options_in_effect *out, size_t *count, const struct config *config,
	const struct schema *schema, const struct test *test, size_t at, struct arena *arena)
{
	struct section section = {.arena = arena, .config = config};
	struct own_options own = metric_options_of(config, test, at, arena);
	const char *detection = detection_text(schema, &test->detections[at], arena);

	add_fields(&section, metric_fields, own.given, own.usual);
	add_text(&section, "detection", "detector and its options that differ from the defaults",
		detection, strcmp(detection, detection_text(schema, &test->detection, arena)) == 0);
	end_section(out, count, "metric", test->metrics[at].name, &section);
}

/* The lab is another server. */
static void add_bisect(struct options_in_effect *out, size_t *count, const struct config *config,
	const struct schema *schema, const struct bisect_settings *bisect, struct arena *arena)
{
	const struct plugin *plugin = bisect->lab_plugin;
	struct section own = {.arena = arena, .config = config};
	struct section lab = {.arena = arena, .config = config, .server = true};

	add_table(&own, test_bisect_fields, sizeof *bisect, bisect);
	end_section(out, count, "bisect", bisect->lab, &own);
	if (!bisect->webhook)
		return;
	add_table(&lab, plugin->fields, plugin->options_size, bisect->webhook);
	add_table(&lab, schema->endpoint_fields, plugin->options_size, bisect->webhook);
	end_section(out, count, "lab", bisect->lab, &lab);
}

size_t test_in_effect(const struct config *config, const struct schema *schema,
	const struct test *test, struct arena *arena, const struct options_in_effect **out)
{
	struct options_in_effect *sections = arena_array(arena, SECTIONS, sizeof *sections);
	struct section common = {.arena = arena, .config = config}, source = common;
	struct own_options own = test_options_of(config, test, arena);
	size_t count = 0;

	*out = sections;
	add_fields(&common, test_fields, own.given, own.usual);
	end_section(sections, &count, "test", test->name, &common);
	if (test->source) {
		add_table(&source, test->source->fields, test->source->options_size, test->options);
		end_section(sections, &count, "source", test->source->name, &source);
	}
	if (test->server)
		add_server(sections, &count, config, schema, test->server, arena);
	if (test->detection.detector)
		add_detections(sections, &count, config, schema, &test->detection, arena);
	if (test->bisect)
		add_bisect(sections, &count, config, schema, test->bisect, arena);
	for (size_t i = 0; i < test->metric_count && i < IN_EFFECT_METRICS; i++)
		add_metric(sections, &count, config, schema, test, i, arena);
	return count;
}

const char *server_address(const struct config *config, const struct schema *schema,
	const struct server *server, struct arena *arena)
{
	const struct plugin *plugin = server->source;
	const struct field *field =
		field_find(plugin->endpoint ? schema->endpoint_fields : plugin->server_fields,
			plugin->endpoint ? "url" : "hostname");
	struct section section = {.arena = arena, .config = config, .server = true};
	struct buf text = {0};

	if (!field || !is_given(field, server->options))
		return NULL;
	(void)put_value(&text, field, server->options, &section);
	return keep_value(&section, &text);
}
