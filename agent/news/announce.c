/*
 * See announce.h.
 */
#include "agent/news/announce.h"

#include <math.h>
#include <string.h>

#include "agent/core/link.h"
#include "notifiers/text.h"

/* The attribute of a point of this series; NULL if the point or the attribute is missing. */
static const char *value_at(const struct series *series, const struct column *column, size_t index)
{
	const char *value = column->values[index];

	return isnan(series->values[index]) || !value || !*value ? NULL : value;
}

/*
 * The attribute of the last point before the change and of the first one from it on. A row may lack
 * it: then the next one that has it counts, as the range must hold what caused the change.
 */
static void attribute(struct arena *arena, const struct series *series, const char *name,
	size_t index, const char **before, const char **after)
{
	const struct column *column = axis_column(series->axis, name);
	const char *value = NULL;

	if (!column)
		return;
	for (size_t at = index; at < series->axis->n && !value; at++)
		value = value_at(series, column, at);
	*after = arena_strdup(arena, value);
	value = NULL;
	for (size_t at = index; at > 0 && !value; at--)
		value = value_at(series, column, at - 1);
	*before = arena_strdup(arena, value);
}

/* A text as long as a change keeps it. */
static const char *shortened(struct arena *arena, const char *text)
{
	struct buf clean = {0};

	if (!text || strlen(text) <= ANNOUNCE_ATTRIBUTE_CHARS)
		return text;
	text_clean(&clean, text, ANNOUNCE_ATTRIBUTE_CHARS);
	text = arena_strndup(arena, clean.data, clean.length);
	buf_free(&clean);
	return text;
}

/* What the points have besides commit and version: the first of these attributes that say
 * something. */
static void other_attributes(
	struct arena *arena, const struct series *series, size_t index, struct announcement *item)
{
	const struct axis *axis = series->axis;
	size_t room = axis->column_count < ANNOUNCE_ATTRIBUTES_MAX ? axis->column_count
								   : ANNOUNCE_ATTRIBUTES_MAX;
	struct attribute *items = arena_array(arena, room, sizeof *items);

	item->attributes = items;
	for (size_t i = 0; i < axis->column_count && item->attribute_count < room; i++) {
		const char *name = axis->columns[i].name;
		struct attribute *at = &items[item->attribute_count];

		if (strcmp(name, "commit") == 0 || strcmp(name, "version") == 0)
			continue;
		attribute(arena, series, name, index, &at->before, &at->after);
		if (!at->before && !at->after)
			continue;
		at->name = shortened(arena, arena_strdup(arena, name));
		at->before = shortened(arena, at->before);
		at->after = shortened(arena, at->after);
		item->attribute_count++;
	}
}

struct announcement announce_change(struct arena *arena, const char *test,
	const struct series *series, const struct change *change)
{
	const struct metric *metric = series->metric;
	struct announcement item = {.test = test,
		.metric = arena_strdup(arena, series->name),
		.unit = metric ? arena_strdup(arena, metric->unit) : NULL,
		.direction = metric ? metric->direction : 0,
		.time = series->axis->times[change->index],
		.change = *change};

	attribute(arena, series, "commit", change->index, &item.commit_before, &item.commit_after);
	attribute(
		arena, series, "version", change->index, &item.version_before, &item.version_after);
	other_attributes(arena, series, change->index, &item);
	return item;
}

void announce_links(struct arena *arena, const struct test *test, struct announcement *item)
{
	struct link_values values = {.commit = item->commit_after};

	if (!test)
		return;
	announcement_range(item, &values.before, &values.after);
	item->commit_url = link_expand(arena, test->commit_url, &values);
	item->compare_url = link_expand(arena, test->compare_url, &values);
}
