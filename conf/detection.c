/*
 * Chooses the detector and its options: layers of `detection:` from file, templates, test and
 * metric, and the command line's settings on top. A layer that names another detector than the one
 * below starts from that detector's defaults. `confirm`, `fdr`, `kind`, `season`, `zone` and
 * `holidays` belong to no detector and are kept.
 */
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/zone.h"
#include "conf/load.h"
#include "detectors/combine.h"
#include "detectors/fdr.h"

const char *const detection_belief_keys[] = {
	"confirm", "fdr", "holidays", "kind", "season", "zone", NULL};
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

/* Applies a setting that belongs to no detector; *known is false for a detector's option. */
static bool lay_general(const struct setting *setting, struct arena *arena, struct detection *out,
	bool *known, struct error *error)
{
	*known = true;
	if (strcmp(setting->name, "season") == 0)
		return season_parse(setting->value, &out->season, error);
	if (strcmp(setting->name, "zone") == 0)
		return zone_read(arena, NULL, setting->value, &out->zone, error) ||
		       error_prefix(error, "zone: ");
	if (strcmp(setting->name, "holidays") == 0)
		return holidays_parse(arena, setting->value, &out->holidays, error);
	*known = false;
	return true;
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
		bool general;
		if (strcmp(settings[i].name, "detector") == 0)
			continue;
		if (!lay_general(&settings[i], arena, out, &general, error))
			return false;
		if (general)
			continue;
		if (strcmp(settings[i].name, DETECTION_COMBINE) == 0) {
			if (!combine_parse(
				    schema, detector, settings[i].value, arena, options, error))
				return false;
			continue;
		}
		const struct field *field = field_find(detector->fields, settings[i].name);
		if (!field)
			return error_set(error, ERROR_USAGE,
				"the detector \"%s\" has no option \"%.80s\"", detector->name,
				settings[i].name);
		if (!field_parse(field, options, settings[i].value, arena, error))
			return false;
	}
	out->detector = detector;
	out->options = options;
	return !detector->check || detector->check(options, error);
}

/* Notes the first variable that is not set. */
static void note_unset(struct unset *unset, const char *variable, const struct yaml_node *where)
{
	if (!unset->variable)
		*unset = (struct unset){variable, where};
}

/* The layer's detector, by default the one below; NULL if that is unusable, which has been reported
 * or noted. */
static const struct plugin *layer_detector(const struct yaml_node *map, const struct scope *scope,
	const struct plugin *below, struct unset *unset)
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
		note_unset(unset, missing, value);
		return NULL;
	}
	const struct plugin *detector = plugin_find(loader->source->schema->detectors, name);
	if (!detector) {
		unknown_detector(loader->source->schema, name, value->text, &error);
		loader_error(value, scope, "%s", error.text);
	}
	return detector;
}

/* The text of `name` as written, for messages: an expanded variable may be a secret. */
static const char *text_of(const struct yaml_node *map, const char *name)
{
	return yaml_get(map, name)->text;
}

/* Applies the layer's confirmation options; a text is NULL where the layer has none. */
static void layer_belief(const struct yaml_node *map, const struct scope *scope,
	const char *confirm, const char *fdr, struct detection *out)
{
	struct confirm_rule rule;
	struct error error;
	double share;
	if (confirm && confirm_parse(confirm, &rule, &error))
		out->confirm = rule;
	else if (confirm && !confirm_parse(text_of(map, "confirm"), &rule, &error))
		loader_complain(map, scope, &error);
	if (fdr && fdr_parse(fdr, &share, &error))
		out->fdr = share;
	else if (fdr && !fdr_parse(text_of(map, "fdr"), &share, &error))
		loader_complain(map, scope, &error);
}

/* The same for kinds and seasons. */
static void layer_season(const struct yaml_node *map, const struct scope *scope,
	const struct season_options *season, struct detection *out)
{
	enum series_kind kind;
	enum season_mode mode;
	const struct zone *zone;
	struct error error;
	if (season->kind && season_parse_kind(season->kind, &kind, &error))
		out->kind = kind;
	else if (season->kind && !season_parse_kind(text_of(map, "kind"), &kind, &error))
		loader_complain(map, scope, &error);
	if (season->season && season_parse(season->season, &mode, &error))
		out->season = mode;
	else if (season->season && !season_parse(text_of(map, "season"), &mode, &error))
		loader_complain(map, scope, &error);
	if (season->zone && zone_read(scope->loader->arena, NULL, season->zone, &zone, &error))
		out->zone = zone;
	else if (season->zone &&
		 !zone_read(scope->loader->arena, NULL, text_of(map, "zone"), &zone, &error)) {
		(void)error_prefix(&error, "zone: ");
		loader_complain(map, scope, &error);
	}
	const struct yaml_node *holidays = yaml_get(map, "holidays");
	if (holidays && !yaml_is_null(holidays))
		out->holidays = holidays_read(holidays, scope, season->holidays);
}

struct detection detection_layer(const struct yaml_node *map, const struct scope *scope,
	const struct detection *base, struct unset *unset)
{
	static const char *const other_keys[] = {"detector", DETECTION_COMBINE, NULL};
	if (yaml_is_null(map))
		return *base;
	if (map->kind != YAML_MAP) {
		loader_error(map, scope, "expected a map");
		return *base;
	}
	const struct plugin *detector = layer_detector(map, scope, base->detector, unset);
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
	struct unset own = options_read(map, map, &reading);
	note_unset(unset, own.variable, own.where);
	const struct yaml_node *combine = yaml_get(map, DETECTION_COMBINE);
	if (combine && !yaml_is_null(combine))
		combine_read(combine, scope, detector, options, unset);
	struct detection out = *base;
	out.detector = detector;
	out.options = options;
	layer_belief(map, scope, confirm.confirm, fdr.fdr, &out);
	layer_season(map, scope, &season, &out);
	return out;
}

void detection_check(const struct yaml_node *last, const struct scope *scope,
	const struct detection *detection, const struct unset *unset)
{
	struct error error;
	const struct plugin *detector = detection->detector;
	if (!detector || !detector->check || unset->variable || last->kind != YAML_MAP)
		return;
	if (!detector->check(detection->options, &error))
		loader_complain(last, scope, &error);
}

struct detection detection_read(const struct yaml_node *node, const struct scope *scope,
	const struct detection *base, struct unset *unset)
{
	struct detection out = *base;
	struct scope part = *scope;
	part.part = "detection";
	if (!node)
		return out;
	bool many = detection_is_layers(node);
	const struct yaml_node *const *layers = many ? node->items : &node;
	size_t count = many ? node->count : 1;
	size_t errors = scope->loader->problems->errors;
	for (size_t i = 0; i < count; i++)
		out = detection_layer(layers[i], &part, &out, unset);
	if (count > 0 && scope->loader->problems->errors == errors)
		detection_check(layers[count - 1], &part, &out, unset);
	return out;
}

bool detection_is_layers(const struct yaml_node *node)
{
	return node->kind == YAML_LIST && node->text == layers_mark;
}

const struct yaml_node *detection_layers(
	struct arena *arena, const struct yaml_node *below, const struct yaml_node *above)
{
	bool many_below = detection_is_layers(below), many_above = detection_is_layers(above);
	size_t n = many_below ? below->count : 1, m = many_above ? above->count : 1;
	const struct yaml_node **items = arena_array(arena, n + m, sizeof *items);
	for (size_t i = 0; i < n; i++)
		items[i] = many_below ? below->items[i] : below;
	for (size_t i = 0; i < m; i++)
		items[n + i] = many_above ? above->items[i] : above;
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

static void put_members(struct buf *out, const struct schema *schema,
	const struct detection *detection, struct arena *arena)
{
	struct detection members[COMBINE_MOST];
	size_t count = combine_members(schema, detection, members);
	for (size_t i = 0; i < count; i++)
		put_option(out, i ? "and" : arena_printf(arena, "%zu of", combine_need(detection)),
			detection_text(schema, &members[i], arena));
}

static void put_confirm(struct buf *out, const struct confirm_rule *rule, struct arena *arena)
{
	if (rule->mode == CONFIRM_OFF)
		put_option(out, "confirm", "off");
	if (rule->mode == CONFIRM_POINTS)
		put_option(out, "confirm", arena_printf(arena, "%zu points", rule->points));
}

const char *detection_text(
	const struct schema *schema, const struct detection *detection, struct arena *arena)
{
	struct buf list = {0};
	put_options(&list, detection->detector, detection->options, arena);
	put_members(&list, schema, detection, arena);
	put_confirm(&list, &detection->confirm, arena);
	if (detection->fdr > 0)
		put_option(&list, "fdr", arena_printf(arena, "%.10g", detection->fdr));
	if (detection->kind != KIND_AUTO)
		put_option(&list, "kind", series_kind_names[detection->kind]);
	if (detection->season != SEASON_UNSET)
		put_option(&list, "season", season_mode_names[detection->season]);
	if (detection->zone)
		put_option(&list, "zone", zone_name(detection->zone));
	if (detection->holidays.count > 0)
		put_option(&list, "holidays",
			arena_printf(arena, "%zu days", detection->holidays.count));
	const char *options = buf_keep(&list, arena);
	return *options ? arena_printf(arena, "%s(%s)", detection->detector->name, options)
			: detection->detector->name;
}
