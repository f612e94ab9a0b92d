/*
 * Chooses the detector and its options: layers of `detection:` from file, templates, test and
 * metric, and the command line's settings on top. A layer that names another detector than the one
 * below starts from that detector's defaults. `confirm`, `fdr`, `kind`, `season`, `zone` and
 * `holidays` belong to no detector and are kept.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/order.h"
#include "agent/base/when.h"
#include "agent/base/zone.h"
#include "conf/load.h"
#include "detectors/combine.h"
#include "detectors/fdr.h"

const char *const detection_belief_keys[DETECTION_BELIEFS + 1] = {
	"confirm", "fdr", "kind", "season", "zone", "holidays", NULL};
/* Those of them that commands may set: what is confirmed is the agent's. */
static const char *const *const season_keys = detection_belief_keys + 3;
static const char only_one[] = "detector and combine: use one of them";
static const char layers_mark[] = "layers of detection"; /* marks such a list: its `text` */

/* A copy of the base's options to change, or another detector's defaults. */
static void *base_options(
	const struct detection *base, const struct plugin *detector, struct arena *arena)
{
	void *options = arena_alloc(arena, detector->options_size);
	if (detector == base->detector)
		memcpy(options, base->options, detector->options_size);
	else
		field_defaults(detector->fields, options);
	return options;
}

struct detection detection_default(const struct schema *schema, struct arena *arena)
{
	const struct detection none = {0};
	const struct plugin *first = schema->detectors ? *schema->detectors : NULL;
	if (!first)
		return none;
	return (struct detection){.detector = first, .options = base_options(&none, first, arena)};
}

/* `shown` is the name as written: a value from the environment may be a secret. */
static bool unknown_detector(
	const struct schema *schema, const char *name, const char *shown, struct error *error)
{
	const char *names[PLUGIN_NAMES];
	size_t count = plugin_names(schema->detectors, false, names);
	struct buf all = {0};
	for (size_t i = 0; i < count && !field_suggest(name, names, count); i++)
		buf_printf(&all, "%s%s", i ? ", " : ": expected one of ", names[i]);
	error_set(error, ERROR_USAGE, "unknown detector \"%.80s\"%s", shown,
		all.data ? all.data : "");
	buf_free(&all);
	return field_hint(error, name, names, count);
}

/* The detector that the settings name, if any; `combine` names the detector of that name. */
static bool settings_detector(const struct schema *schema, const struct setting *settings,
	size_t count, const struct plugin **detector, struct error *error)
{
	const char *named = NULL;
	for (size_t i = 0; i < count; i++) {
		bool combines = strcmp(settings[i].name, DETECTION_COMBINE) == 0;
		if (!combines && strcmp(settings[i].name, "detector") != 0)
			continue;
		const char *name = combines ? DETECTION_COMBINE : settings[i].value;
		if (named && strcmp(named, name) != 0)
			return error_set(error, ERROR_USAGE, "%s", only_one);
		named = name;
		*detector = plugin_find(schema->detectors, name);
		if (!*detector)
			return unknown_detector(schema, name, name, error);
	}
	return true;
}

enum { MOST_DAYS = 10000 }; /* of `holidays` */

/* The days read so far: given, or in files with a day a line, which may have empty lines and
 * comments after a #. */
struct list {
	int64_t *days;
	size_t count;
};

static struct list list_new(struct arena *arena)
{
	return (struct list){arena_array(arena, MOST_DAYS, sizeof(int64_t)), 0};
}

static bool read_day(const char *text, int64_t *out)
{
	struct date date;
	long long year;
	int length = 0;

	if (sscanf(text, "%4lld-%2d-%2d%n", &year, &date.month, &date.day, &length) != 3 ||
		length != 10 || text[length] != '\0')
		return false;
	date.year = year;
	return when_from_date(date, out);
}

/* A day, with space around it and a comment behind it, or nothing. */
static bool read_line(struct list *list, char *line, struct error *error)
{
	size_t length = strcspn(line, "#\r\n");
	const char *text;

	while (length > 0 && isspace((unsigned char)line[length - 1]))
		length--;
	line[length] = '\0';
	text = line + strspn(line, " \t");
	if (!*text)
		return true;
	if (list->count == MOST_DAYS)
		return error_set(error, ERROR_USAGE, "more than %d days", MOST_DAYS);
	return read_day(text, &list->days[list->count++]) ||
	       error_set(error, ERROR_USAGE, "\"%.40s\" is not a date like 2026-12-25", text);
}

static bool read_file(struct list *list, const char *path, struct error *error)
{
	char line[256];
	size_t number = 0;
	FILE *file = fopen(path, "re");
	bool good = true;

	if (!file)
		return error_set(error, ERROR_USAGE,
			"%.200s is neither a date (2026-12-25) nor a file with a date a line: %s",
			path, strerror(errno));
	while (good && fgets(line, sizeof line, file)) {
		number++;
		good = read_line(list, line, error) ||
		       error_prefix(error, "%.200s:%zu: ", path, number);
	}
	if (good && ferror(file))
		good = error_set(error, ERROR_USAGE, "cannot read %.200s", path);
	fclose(file);
	return good;
}

/* A text that begins with a digit and is not a path is meant as a date; else the file at `path`. */
static bool read_text(struct list *list, char *text, const char *path, struct error *error)
{
	return isdigit((unsigned char)*text) && !strchr(text, '/') ? read_line(list, text, error)
								   : read_file(list, path, error);
}

static struct holidays in_order(struct list list)
{
	qsort(list.days, list.count, sizeof *list.days, order_times);
	return (struct holidays){list.days, list.count};
}

bool holidays_parse(
	struct arena *arena, const char *texts, struct holidays *out, struct error *error)
{
	struct list list = list_new(arena);
	char *copy = arena_strdup(arena, texts), *rest;
	bool good = true;

	for (char *text = strtok_r(copy, ",", &rest); text && good;
		text = strtok_r(NULL, ",", &rest))
		good = read_text(&list, text, text, error);
	*out = in_order(list);
	return good || error_prefix(error, "holidays: ");
}

static struct holidays read_holidays(
	const struct yaml_node *node, const struct scope *scope, struct strings texts)
{
	struct list list = list_new(scope->loader->arena);

	for (size_t i = 0; i < texts.count; i++) {
		const struct yaml_node *where =
			node->kind == YAML_LIST && node->count == texts.count ? node->items[i]
									      : node;
		const char *text = texts.items[i];
		size_t before = list.count;
		struct error error;
		bool good = read_text(&list, arena_strdup(scope->loader->arena, text),
			loader_beside(scope->loader, where, text), &error);

		if (!good)
			loader_error(where, scope, "holidays: %s", error.text);
		else if (list.count == before)
			loader_warn(where, scope, "holidays: %.200s has no dates", text);
	}
	return in_order(list);
}

/* Applies an option that belongs to no detector. */
static bool set_belief(const char *name, const char *text, struct arena *arena,
	struct detection *out, struct error *error)
{
	if (strcmp(name, "confirm") == 0)
		return confirm_parse(text, &out->confirm, error);
	if (strcmp(name, "fdr") == 0)
		return fdr_parse(text, &out->fdr, error);
	if (strcmp(name, "kind") == 0)
		return season_parse_kind(text, &out->kind, error);
	if (strcmp(name, "season") == 0)
		return season_parse(text, &out->season, error);
	if (strcmp(name, "zone") == 0)
		return zone_read(arena, NULL, text, &out->zone, error) ||
		       error_prefix(error, "zone: ");
	return holidays_parse(arena, text, &out->holidays, error);
}

bool detection_overlay(const struct schema *schema, const struct detection *base,
	const struct setting *settings, size_t count, struct arena *arena, struct detection *out,
	struct error *error)
{
	const struct plugin *detector = base->detector;
	if (!settings_detector(schema, settings, count, &detector, error))
		return false;
	if (count == 0 || !detector) {
		*out = *base;
		return true;
	}
	void *options = base_options(base, detector, arena);
	*out = *base;
	for (size_t i = 0; i < count; i++) {
		const char *name = settings[i].name, *value = settings[i].value;
		const struct field *field = field_find(detector->fields, name);
		bool good = true;
		if (is_listed(season_keys, name))
			good = set_belief(name, value, arena, out, error);
		else if (strcmp(name, DETECTION_COMBINE) == 0)
			good = combine_parse(schema, detector, value, arena, options, error);
		else if (field)
			good = field_parse(field, options, value, arena, error);
		else if (strcmp(name, "detector") != 0)
			good = error_set(error, ERROR_USAGE,
				"the detector \"%s\" has no option \"%.80s\"", detector->name,
				name);
		if (!good)
			return false;
	}
	out->detector = detector;
	out->options = options;
	return !detector->check || detector->check(options, error);
}

/* The layer's detector, by default the one below; NULL if that is unusable, which has been reported
 * or noted. */
static const struct plugin *layer_detector(
	const struct yaml_node *map, const struct scope *scope, const struct plugin *below)
{
	struct loader *loader = scope->loader;
	const struct yaml_node *value = yaml_get(map, "detector");
	const struct yaml_node *combine = yaml_get(map, DETECTION_COMBINE);
	struct error error;
	if (combine && !loader_is_null(combine, scope, DETECTION_COMBINE)) {
		if (value && !yaml_is_null(value))
			loader_error(value, scope, "%s", only_one);
		return plugin_find(loader->source->schema->detectors, DETECTION_COMBINE);
	}
	if (!value || yaml_is_null(value))
		return below;
	if (value->kind != YAML_SCALAR) {
		loader_error(value, scope, "detector: expected a name");
		return NULL;
	}
	const char *missing = NULL;
	const char *name = loader_expand(loader, value, false, &missing);
	if (missing) {
		loader_unset(value, scope, missing);
		return NULL;
	}
	const struct plugin *detector = plugin_find(loader->source->schema->detectors, name);
	if (!detector) {
		unknown_detector(loader->source->schema, name, value->text, &error);
		loader_error(value, scope, "%s", error.text);
	}
	return detector;
}

/* Applies a layer's option that belongs to no detector; NULL: the layer has none. An error is that
 * of the text as written: an expanded variable may be a secret. */
static void layer_belief(const struct yaml_node *map, const struct scope *scope, const char *name,
	const char *text, struct detection *out)
{
	struct arena *arena = scope->loader->arena;
	struct detection next = *out;
	struct error error;
	if (!text)
		return;
	if (set_belief(name, text, arena, &next, &error))
		*out = next;
	else if (!set_belief(name, yaml_get(map, name)->text, arena, &next, &error))
		loader_complain(map, scope, &error);
}

struct detection detection_layer(
	const struct yaml_node *map, const struct scope *scope, const struct detection *base)
{
	static const char *const other_keys[] = {"detector", DETECTION_COMBINE, NULL};
	if (yaml_is_null(map) || !loader_is_kind(map, YAML_MAP, scope, "a map"))
		return *base;
	const struct plugin *detector = layer_detector(map, scope, base->detector);
	if (!detector)
		return *base;
	struct confirm_options confirm = {0};
	struct fdr_options fdr = {0};
	struct season_options season = {0};
	void *options = base_options(base, detector, scope->loader->arena);
	struct reading reading = {.scope = *scope,
		.tables = {{detector->fields, options}, {confirm_fields, &confirm},
			{fdr_fields, &fdr}, {season_fields, &season}},
		.other_keys = other_keys};
	options_read(map, map, &reading);
	const struct yaml_node *combine = yaml_get(map, DETECTION_COMBINE);
	if (combine && !yaml_is_null(combine))
		combine_read(combine, scope, detector, options);
	struct detection out = *base;
	out.detector = detector;
	out.options = options;
	const char *const texts[] = {
		confirm.confirm, fdr.fdr, season.kind, season.season, season.zone};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		layer_belief(map, scope, detection_belief_keys[i], texts[i], &out);
	const struct yaml_node *holidays = yaml_get(map, "holidays");
	if (holidays && !yaml_is_null(holidays))
		out.holidays = read_holidays(holidays, scope, season.holidays);
	return out;
}

void detection_check(
	const struct yaml_node *last, const struct scope *scope, const struct detection *detection)
{
	struct error error;
	const struct plugin *detector = detection->detector;
	if (!detector || !detector->check || (scope->unset && scope->unset->variable) ||
		last->kind != YAML_MAP)
		return;
	if (!detector->check(detection->options, &error))
		loader_complain(last, scope, &error);
}

bool detection_is_layers(const struct yaml_node *node)
{
	return node->kind == YAML_LIST && node->text == layers_mark;
}

static size_t layers_of(const struct yaml_node *const *node, const struct yaml_node *const **layers)
{
	*layers = detection_is_layers(*node) ? (*node)->items : node;
	return detection_is_layers(*node) ? (*node)->count : 1;
}

struct detection detection_read(
	const struct yaml_node *node, const struct scope *scope, const struct detection *base)
{
	struct detection out = *base;
	struct scope part = *scope;
	struct unset unset = {0}; /* of this detection alone, for its check */
	part.part = "detection";
	part.unset = &unset;
	if (!node)
		return out;
	const struct yaml_node *const *layers;
	size_t count = layers_of(&node, &layers);
	size_t errors = scope->loader->problems->errors;
	for (size_t i = 0; i < count; i++)
		out = detection_layer(layers[i], &part, &out);
	if (count > 0 && scope->loader->problems->errors == errors)
		detection_check(layers[count - 1], &part, &out);
	part.unset = scope->unset;
	if (unset.variable)
		loader_unset(unset.where, &part, unset.variable);
	return out;
}

const struct yaml_node *detection_layers(
	struct arena *arena, const struct yaml_node *below, const struct yaml_node *above)
{
	const struct yaml_node *const *lower, *const *upper;
	size_t n = layers_of(&below, &lower), m = layers_of(&above, &upper);
	const struct yaml_node **items = arena_array(arena, n + m, sizeof *items);
	memcpy(items, lower, n * sizeof *items);
	memcpy(items + n, upper, m * sizeof *items);
	struct yaml_node *list = arena_alloc(arena, sizeof *list);
	*list = *above;
	list->kind = YAML_LIST;
	list->text = layers_mark;
	list->items = items;
	list->count = n + m;
	return list;
}

/* Appends an option to the list in parentheses: "name=value". */
static void put_option(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, "%s%s=%s", out->length > 0 ? ", " : "", name, value);
}

static void put_options(
	struct buf *out, const struct plugin *detector, const void *options, struct arena *arena)
{
	void *usual = arena_alloc(arena, detector->options_size);
	field_defaults(detector->fields, usual);
	for (const struct field *field = detector->fields; field && field->name; field++) {
		struct buf value = {0}, initial = {0};
		field_print(field, options, &value);
		field_print(field, usual, &initial);
		const char *text = buf_keep(&value, arena);
		if (strcmp(text, buf_keep(&initial, arena)) != 0)
			put_option(out, field->name, text);
	}
}

void detection_beliefs(const struct detection *detection, struct arena *arena,
	const char *texts[DETECTION_BELIEFS])
{
	const struct confirm_rule *rule = &detection->confirm;
	size_t days = detection->holidays.count;
	texts[0] = rule->mode == CONFIRM_OFF      ? "off"
		   : rule->mode == CONFIRM_POINTS ? arena_printf(arena, "%zu points", rule->points)
						  : NULL;
	texts[1] = detection->fdr > 0 ? arena_printf(arena, "%.10g", detection->fdr) : NULL;
	texts[2] = detection->kind != KIND_AUTO ? series_kind_names[detection->kind] : NULL;
	texts[3] = detection->season != SEASON_UNSET ? season_mode_names[detection->season] : NULL;
	texts[4] = detection->zone ? zone_name(detection->zone) : NULL;
	texts[5] = days > 0 ? arena_printf(arena, "%zu days", days) : NULL;
}

const char *detection_text(
	const struct schema *schema, const struct detection *detection, struct arena *arena)
{
	struct buf list = {0};
	struct detection members[COMBINE_MOST];
	const char *texts[DETECTION_BELIEFS];
	size_t count = combine_members(schema, detection, members);
	put_options(&list, detection->detector, detection->options, arena);
	for (size_t i = 0; i < count; i++)
		put_option(&list,
			i ? "and" : arena_printf(arena, "%zu of", combine_need(detection)),
			detection_text(schema, &members[i], arena));
	detection_beliefs(detection, arena, texts);
	for (size_t i = 0; i < DETECTION_BELIEFS; i++)
		if (texts[i])
			put_option(&list, detection_belief_keys[i], texts[i]);
	const char *options = buf_keep(&list, arena);
	return *options ? arena_printf(arena, "%s(%s)", detection->detector->name, options)
			: detection->detector->name;
}
