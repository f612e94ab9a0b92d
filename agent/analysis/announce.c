/*
 * Attributes on either side of the change are taken from the nearest points that have them.
 */
#include "agent/analysis/announce.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "agent/analysis/annotation_tags.h"
#include "agent/analysis/environment.h"
#include "agent/base/url_template.h"
#include "agent/model/columns.h"

/* The attribute of a point of this series; NULL if the point or the attribute is missing. */
static const char *value_at(const struct series *series, const struct column *column, size_t index)
{
	const char *value = column->values[index];

	return isnan(series->values[index]) || !value || !*value ? NULL : value;
}

/* The points between which a change lies. */
struct places {
	size_t from, to;
};

/*
 * The attribute of the last point before `places` and of the first point from there on. Points
 * without the attribute are skipped: the range has to contain the cause of the change.
 */
static void attribute(struct arena *arena, const struct series *series, const char *name,
	struct places places, const char **before, const char **after)
{
	const struct column *column = axis_column(series->axis, name);
	const char *value = NULL;

	if (!column)
		return;
	for (size_t at = places.to; at < series->axis->n && !value; at++)
		value = value_at(series, column, at);
	*after = arena_strdup(arena, value);
	value = NULL;
	for (size_t at = places.from; at > 0 && !value; at--)
		value = value_at(series, column, at - 1);
	*before = arena_strdup(arena, value);
}

/* Cuts a text to the length that a change record stores. */
static const char *shortened(struct arena *arena, const char *text)
{
	struct buf clean = {0};

	if (!text || strlen(text) <= ANNOUNCE_ATTRIBUTE_CHARS)
		return text;
	buf_clean(&clean, text, ANNOUNCE_ATTRIBUTE_CHARS);
	text = arena_strndup(arena, clean.data, clean.length);
	buf_free(&clean);
	return text;
}

/* Attributes other than commit and version that have a value at the change, up to the limit. */
static void other_attributes(
	struct arena *arena, const struct series *series, size_t index, struct announcement *item)
{
	const struct axis *axis = series->axis;
	size_t room =
		axis->column_count < RECORD_ATTRIBUTES ? axis->column_count : RECORD_ATTRIBUTES;
	struct attribute *items = arena_array(arena, room, sizeof *items);

	item->attributes = items;
	for (size_t i = 0; i < axis->column_count && item->attribute_count < room; i++) {
		const char *name = axis->columns[i].name;
		struct attribute *at = &items[item->attribute_count];

		if (strcmp(name, "commit") == 0 || strcmp(name, "version") == 0)
			continue;
		attribute(arena, series, name, (struct places){index, index}, &at->before,
			&at->after);
		if (!at->before && !at->after)
			continue;
		at->name = shortened(arena, arena_strdup(arena, name));
		at->before = shortened(arena, at->before);
		at->after = shortened(arena, at->after);
		item->attribute_count++;
	}
}

static void set_commits(struct arena *arena, const struct series *series, struct announcement *item)
{
	struct places found = {item->change.index, item->change.index};
	struct places all = {item->change.place_from, item->change.place_to};

	attribute(arena, series, "commit", found, &item->commit_before, &item->commit_after);
	attribute(arena, series, "version", found, &item->version_before, &item->version_after);
	attribute(arena, series, "commit", all, &item->place_commit_before,
		&item->place_commit_after);
	attribute(arena, series, "version", all, &item->place_version_before,
		&item->place_version_after);
}

/* The slope of a trend per point of its rise; points without a value do not count. */
static double slope_of(const struct series *series, const struct change *change)
{
	size_t points = 0;

	if (change->kind != CHANGE_TREND)
		return (double)NAN;
	for (size_t i = change->place_from; i <= change->place_to; i++)
		points += isnan(series->values[i]) ? 0 : 1;
	return (change->level_after - change->level_before) / (points > 0 ? (double)points : 1);
}

static const char *environment_of(
	struct arena *arena, const char *label, const struct series *series, size_t index)
{
	const char *copy = NULL;
	struct buf value = {0};

	if (label && environment_value(label, series, index, &value))
		copy = shortened(arena, arena_strndup(arena, value.data, value.length));
	buf_free(&value);
	return copy;
}

struct announcement announce_change(struct arena *arena, const char *test, const char *environment,
	const struct series *series, const struct change *change)
{
	const struct metric *metric = series->metric;
	struct announcement item = {.test = test,
		.metric = arena_strdup(arena, series->name),
		.unit = metric ? arena_strdup(arena, metric->unit) : NULL,
		.direction = metric ? metric->direction : 0,
		.time = series->axis->times[change->index],
		.place_from = series->axis->times[change->place_from],
		.place_to = series->axis->times[change->place_to],
		.suspects = attribution_of(arena, series, change),
		.slope = slope_of(series, change),
		.environment = environment_of(arena, environment, series, change->index),
		.change = *change};

	set_commits(arena, series, &item);
	other_attributes(arena, series, change->index, &item);
	return item;
}

struct announcement announce_copy(struct arena *arena, const struct announcement *item)
{
	struct attribute *attributes =
		arena_array(arena, item->attribute_count, sizeof *attributes);
	struct change_record record = {.item = *item};
	struct announcement *copy = &record.item;
	const char **const pages[] = {&copy->other, &copy->commit_url, &copy->compare_url,
		&copy->dashboard, &copy->runbook, &copy->page, &copy->owner};

	for (const struct stored_column *column = change_columns; column->name; column++) {
		const char **text = column_member(column, &record);

		if (column->type == COLUMN_TEXT)
			*text = arena_strdup(arena, *text);
	}
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
		*pages[i] = arena_strdup(arena, *pages[i]);
	for (size_t i = 0; i < item->attribute_count; i++)
		attributes[i] = (struct attribute){arena_strdup(arena, item->attributes[i].name),
			arena_strdup(arena, item->attributes[i].before),
			arena_strdup(arena, item->attributes[i].after)};
	copy->excerpt = (struct packed_excerpt){0};
	copy->templates = NULL;
	copy->values = NULL;
	copy->tags = (struct strings){0};
	copy->attributes = attributes;
	copy->suspects = attribution_copy(arena, &item->suspects);
	copy->culprit = culprit_copy(arena, item->culprit);
	return *copy;
}

/* Margin of {from} and {to} on either side of a change: in points, or in ms if the spacing is
 * unknown. */
enum { AROUND_POINTS = 50, AROUND = 86400000 };

static const char *if_same(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0 ? a : NULL;
}

/* The templates that all tests of a cluster share. */
static const struct url_templates *shared_templates(struct arena *arena, const struct group *group)
{
	struct url_templates *links = arena_alloc(arena, sizeof *links);

	*links = group->tests[0]->links;
	for (size_t i = 1; i < group->count; i++) {
		const struct url_templates *other = &group->tests[i]->links;

		links->commit_url = if_same(links->commit_url, other->commit_url);
		links->compare_url = if_same(links->compare_url, other->compare_url);
		links->dashboard = if_same(links->dashboard, other->dashboard);
		links->runbook = if_same(links->runbook, other->runbook);
		links->owner = if_same(links->owner, other->owner);
	}
	return links;
}

/* The metric's name without labels, which have placeholders of their own. */
static const char *metric_name(struct arena *arena, const char *metric)
{
	size_t length = strcspn(metric, "{");

	return length > 0 ? arena_strndup(arena, metric, length) : metric;
}

/* A cluster has no {metric} and {labels}: they would be those of one of its members. */
static void set_links(
	struct arena *arena, const struct url_templates *links, struct change_record *record)
{
	struct announcement *item = &record->item;
	bool cluster = item->members > 0;
	int64_t around = item->spacing > 0 ? AROUND_POINTS * item->spacing : AROUND;
	struct url_values *values;

	if (!links || !(links->commit_url || links->compare_url || links->dashboard ||
			      links->runbook || links->owner))
		return;
	values = arena_alloc(arena, sizeof *values);
	*values = (struct url_values){.commit = announcement_commit(item),
		.test = item->test,
		.metric = cluster ? NULL : metric_name(arena, item->metric),
		.series = cluster ? NULL : record->series};
	announcement_range(item, &values->before, &values->after);
	values->from = arena_printf(arena, "%" PRId64, item->place_from - around);
	values->to = arena_printf(arena, "%" PRId64, item->place_to + around);
	item->commit_url = url_template_expand(arena, links->commit_url, values, true);
	item->compare_url = url_template_expand(arena, links->compare_url, values, true);
	item->dashboard = url_template_expand(arena, links->dashboard, values, true);
	item->runbook = url_template_expand(arena, links->runbook, values, true);
	item->owner = url_template_expand(arena, links->owner, values, false);
	item->templates = links;
	item->values = values;
}

void announce_links_by(struct arena *arena, const struct test *test, struct change_record *record)
{
	set_links(arena, test ? &test->links : NULL, record);
	if (test)
		record->item.tags = annotation_tags(arena, test, record->item.metric, NULL);
}

void announce_page(struct arena *arena, const struct config *config, struct announcement *item)
{
	const char *base = config->agent.external_url;
	size_t length = base ? strcspn(base, "?#") : 0;

	if (length == 0 || item->id <= 0 || strcspn(base, "<>|\"\\ ") < length)
		return; /* it must not end a link early */
	item->page = arena_printf(arena, "%.*s%schange/%" PRId64, (int)length, base,
		base[length - 1] == '/' ? "" : "/", item->id);
}

void announce_links(struct arena *arena, const struct config *config, struct change_record *record)
{
	const struct test *test = config_test(config, record->item.test);
	const struct group *group = test ? NULL : config_group(config, record->item.test);

	announce_page(arena, config, &record->item);
	if (group && group->cluster && group->count > 0)
		set_links(arena, shared_templates(arena, group), record);
	else
		announce_links_by(arena, test, record);
}

struct announced_change announce_now(struct arena *arena, const struct config *config,
	const struct change_record *record, int64_t now)
{
	struct change_record copy = *record;

	record_by_clock(&copy, now);
	announce_links(arena, config, &copy);
	return (struct announced_change){.item = copy.item,
		.told = copy.item.time,
		.state = copy.state == CHANGE_WITHDRAWN   ? ANNOUNCED_WITHDRAWN
			 : copy.state == CHANGE_RECOVERED ? ANNOUNCED_RECOVERED
							  : ANNOUNCED_STANDS,
		.triage = copy.triage};
}
