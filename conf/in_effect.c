#include "conf/in_effect.h"

#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/utf8.h"
#include "conf/load.h"
#include "detectors/combine.h"

enum {
	VALUE_MOST = 8000, /* bytes of a value */
	SECTIONS = 6 + COMBINE_MOST + IN_EFFECT_METRICS,
};

/* The sections so far; options are added to the last one. */
struct listing {
	struct arena *arena;
	const struct config *config;
	const struct schema *schema;
	struct options_in_effect *sections;
	size_t count;
	struct option_in_effect *items; /* of the last section */
	bool server;                    /* its options may be credentials */
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
	const struct listing *listing)
{
	const void *value = (const char *)options + field->offset;
	const struct config *config = listing->config;

	if (field->type == FIELD_STRING)
		return put_open(
			out, config_written(config, *(const char *const *)value), listing->server);
	if (field->type == FIELD_MAP)
		return put_map(out, value, field->flags & FIELD_CLOSED, config);
	if (field->type == FIELD_LIST)
		put_list(out, value, config);
	else
		field_print(field, options, out);
	return field->type == FIELD_SECRET;
}

static const char *keep_value(struct arena *arena, struct buf *text)
{
	const char *value = text->data ? text->data : "";
	size_t length = utf8_cut(value, VALUE_MOST);

	value = value[length] ? arena_printf(arena, "%.*s ...", (int)length, value)
			      : arena_strdup(arena, value);
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

static void begin(struct listing *listing, const char *of, const char *name, bool server)
{
	listing->sections[listing->count++] = (struct options_in_effect){.of = of, .name = name};
	listing->items = NULL;
	listing->server = server;
}

static void add(struct listing *listing, struct option_in_effect option)
{
	struct options_in_effect *section = &listing->sections[listing->count - 1];

	section->items = listing->items =
		arena_grow(listing->arena, listing->items, section->count, sizeof *listing->items);
	listing->items[section->count++] = option;
}

static void add_fields(
	struct listing *listing, const struct field *fields, const void *options, const void *usual)
{
	for (const struct field *field = fields; field && field->name; field++) {
		struct option_in_effect option = {.name = field->name,
			.help = field->help,
			.usual = is_usual(field, options, usual)};
		struct buf text = {0};

		if (field->flags & FIELD_HIDDEN && option.usual)
			continue;
		if (is_given(field, options)) {
			option.hidden = put_value(&text, field, options, listing);
			option.value = keep_value(listing->arena, &text);
		}
		add(listing, option);
	}
}

/* Adds the options of a table with defaults of its own. */
static void add_table(
	struct listing *listing, const struct field *fields, size_t size, const void *options)
{
	void *usual = arena_alloc(listing->arena, size);

	if (!options)
		return;
	field_defaults(fields, usual);
	add_fields(listing, fields, options, usual);
}

static void add_detection(struct listing *listing, const struct detection *detection)
{
	const struct pair known[DETECTION_BELIEFS] = {{confirm_fields->help, "auto"},
		{"false discovery rate of its series", NULL},
		{season_fields[0].help, series_kind_names[KIND_AUTO]},
		{season_fields[1].help, NULL}, {season_fields[2].help, NULL},
		{season_fields[3].help, NULL}};
	const char *texts[DETECTION_BELIEFS];
	struct detection members[COMBINE_MOST];
	size_t count = combine_members(listing->schema, detection, members);

	begin(listing, "detection", detection->detector->name, false);
	add_table(listing, detection->detector->fields, detection->detector->options_size,
		detection->options);
	detection_beliefs(detection, listing->arena, texts);
	for (size_t i = 0; i < DETECTION_BELIEFS; i++)
		add(listing, (struct option_in_effect){.name = detection_belief_keys[i],
				     .help = known[i].key,
				     .value = texts[i] ? texts[i] : known[i].value,
				     .usual = !texts[i]});
	for (size_t i = 0; i < count; i++)
		add_detection(listing, &members[i]);
}

static void add_metric(struct listing *listing, const struct test *test, size_t at)
{
	struct arena *arena = listing->arena;
	struct own_options own = metric_options_of(listing->config, test, at, arena);
	const char *detection = detection_text(listing->schema, &test->detections[at], arena);
	const char *usual = detection_text(listing->schema, &test->detection, arena);

	begin(listing, "metric", test->metrics[at].name, false);
	add_fields(listing, metric_fields, own.given, own.usual);
	add(listing, (struct option_in_effect){.name = "detection",
			     .help = "detector and its options that differ from the defaults",
			     .value = detection,
			     .usual = strcmp(detection, usual) == 0});
}

/* Adds a server's options, or a lab's. */
static void add_server(struct listing *listing, const struct field *fields, size_t size,
	bool endpoint, const void *options)
{
	add_table(listing, fields, size, options);
	if (endpoint)
		add_table(listing, listing->schema->endpoint_fields, size, options);
}

size_t test_in_effect(const struct config *config, const struct schema *schema,
	const struct test *test, struct arena *arena, const struct options_in_effect **out)
{
	struct listing listing = {.arena = arena,
		.config = config,
		.schema = schema,
		.sections = arena_array(arena, SECTIONS, sizeof *listing.sections)};
	struct own_options own = test_options_of(config, test, arena);
	const struct bisect_settings *bisect = test->bisect;
	const struct server *server = test->server;

	*out = listing.sections;
	begin(&listing, "test", test->name, false);
	add_fields(&listing, test_fields, own.given, own.usual);
	if (test->source) {
		begin(&listing, "source", test->source->name, false);
		add_table(
			&listing, test->source->fields, test->source->options_size, test->options);
	}
	if (server) {
		begin(&listing, "server", server->name, true);
		add_server(&listing, server->source->server_fields, server->source->server_size,
			server->source->endpoint, server->options);
	}
	if (test->detection.detector)
		add_detection(&listing, &test->detection);
	if (bisect) {
		begin(&listing, "bisect", bisect->lab, false);
		add_table(&listing, test_bisect_fields, sizeof *bisect, bisect);
	}
	if (bisect && bisect->webhook) {
		begin(&listing, "lab", bisect->lab, true);
		add_server(&listing, bisect->lab_plugin->fields, bisect->lab_plugin->options_size,
			true, bisect->webhook);
	}
	for (size_t i = 0; i < test->metric_count && i < IN_EFFECT_METRICS; i++)
		add_metric(&listing, test, i);
	return listing.count;
}

const char *server_address(const struct config *config, const struct schema *schema,
	const struct server *server, struct arena *arena)
{
	const struct plugin *plugin = server->source;
	const struct field *field =
		field_find(plugin->endpoint ? schema->endpoint_fields : plugin->server_fields,
			plugin->endpoint ? "url" : "hostname");
	const struct listing listing = {.config = config, .server = true};
	struct buf text = {0};

	if (!field || !is_given(field, server->options))
		return NULL;
	(void)put_value(&text, field, server->options, &listing);
	return keep_value(arena, &text);
}
