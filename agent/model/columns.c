#include "agent/model/columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/model/json_put.h"

#define ROW struct change_record

enum {
	FOUND = COLUMN_FOUND,
	COMPARED = COLUMN_COMPARED,
	OPTIONAL = COLUMN_OPTIONAL,
	HIDDEN = COLUMN_HIDDEN
};

const struct stored_column change_columns[] = {
	{"id", COLUMN_ID, COLUMN_KEY | COLUMN_SEQUENCE | COMPARED, COLUMN_OF(item.id)},
	{"test", COLUMN_TEXT, 0, COLUMN_OF(item.test)},
	{"series", COLUMN_TEXT, COMPARED, COLUMN_OF(series)},
	{"branch", COLUMN_TEXT, COMPARED, COLUMN_OF(branch)},
	{"metric", COLUMN_TEXT, FOUND, COLUMN_OF(item.metric)},
	{"unit", COLUMN_TEXT, FOUND | OPTIONAL, COLUMN_OF(item.unit)},
	{"direction", COLUMN_CHOICE, FOUND, -1, 1, COLUMN_OF(item.direction)},
	{"sign", COLUMN_CHOICE, COMPARED | HIDDEN, -1, 1, COLUMN_OF(sign)},
	{"time", COLUMN_TIME, COMPARED, COLUMN_OF(item.time)},
	{"state", COLUMN_CHOICE, COMPARED, 1, CHANGE_STATES - 1, COLUMN_OF(state),
		.names = change_state_names},
	{"news", COLUMN_CHOICE, COMPARED, 0, NOTIFY_COUNT - 1, COLUMN_OF(news),
		.names = notify_state_names},
	{"first_seen", COLUMN_TIME, COMPARED, COLUMN_OF(first_seen)},
	{"spacing", COLUMN_COUNT, COMPARED | HIDDEN, COLUMN_OF(item.spacing)},
	{"updated", COLUMN_TIME, 0, COLUMN_OF(updated)},
	{"runs", COLUMN_COUNT, COMPARED, COLUMN_OF(runs)},
	{"reason", COLUMN_TEXT, COMPARED | OPTIONAL, COLUMN_OF(reason)},
	{"held_until", COLUMN_TIME, COMPARED | OPTIONAL, COLUMN_OF(held_until)},
	{"pvalue", COLUMN_NUMBER, FOUND, COLUMN_OF(item.change.pvalue)},
	{"magnitude", COLUMN_NUMBER, FOUND, COLUMN_OF(item.change.magnitude)},
	{"mean_before", COLUMN_NUMBER, FOUND, COLUMN_OF(item.change.mean_before)},
	{"mean_after", COLUMN_NUMBER, FOUND, COLUMN_OF(item.change.mean_after)},
	{"stddev_before", COLUMN_NUMBER, FOUND, COLUMN_OF(item.change.stddev_before)},
	{"stddev_after", COLUMN_NUMBER, FOUND, COLUMN_OF(item.change.stddev_after)},
	{"count_before", COLUMN_COUNT, FOUND, COLUMN_OF(item.change.count_before)},
	{"count_after", COLUMN_COUNT, FOUND | COMPARED, COLUMN_OF(item.change.count_after)},
	{"kind", COLUMN_CHOICE, FOUND | COMPARED, CHANGE_STEP, CHANGE_TREND,
		COLUMN_OF(item.change.kind), .names = change_kind_names},
	{"level_before", COLUMN_NUMBER, FOUND | COMPARED, COLUMN_OF(item.change.level_before)},
	{"level_after", COLUMN_NUMBER, FOUND | COMPARED, COLUMN_OF(item.change.level_after)},
	{"size", COLUMN_NUMBER, FOUND, COLUMN_OF(item.change.size)},
	{"size_low", COLUMN_NUMBER, FOUND, COLUMN_OF(item.change.size_low)},
	{"size_high", COLUMN_NUMBER, FOUND, COLUMN_OF(item.change.size_high)},
	{"slope", COLUMN_NUMBER, FOUND, COLUMN_OF(item.slope)},
	{"place_from", COLUMN_TIME, FOUND | COMPARED, COLUMN_OF(item.place_from)},
	{"place_to", COLUMN_TIME, FOUND | COMPARED, COLUMN_OF(item.place_to)},
	{"place_commit_before", COLUMN_TEXT, FOUND | OPTIONAL, COLUMN_OF(item.place_commit_before)},
	{"place_commit_after", COLUMN_TEXT, FOUND | OPTIONAL, COLUMN_OF(item.place_commit_after)},
	{"place_version_before", COLUMN_TEXT, FOUND | OPTIONAL,
		COLUMN_OF(item.place_version_before)},
	{"place_version_after", COLUMN_TEXT, FOUND | OPTIONAL, COLUMN_OF(item.place_version_after)},
	{"commit_before", COLUMN_TEXT, FOUND | OPTIONAL, COLUMN_OF(item.commit_before)},
	{"commit_after", COLUMN_TEXT, FOUND | OPTIONAL, COLUMN_OF(item.commit_after)},
	{"version_before", COLUMN_TEXT, FOUND | OPTIONAL, COLUMN_OF(item.version_before)},
	{"version_after", COLUMN_TEXT, FOUND | OPTIONAL, COLUMN_OF(item.version_after)},
	{"members", COLUMN_COUNT, FOUND, COLUMN_OF(item.members)},
	{"shared", COLUMN_TEXT, FOUND | OPTIONAL, COLUMN_OF(item.shared)},
	{"environment", COLUMN_TEXT, FOUND | OPTIONAL, COLUMN_OF(item.environment)},
	{"environment_event", COLUMN_ID, OPTIONAL, .refers = "environments",
		COLUMN_OF(environment_event)},
	{"incident", COLUMN_ID, OPTIONAL, .refers = "incidents", COLUMN_OF(item.incident)},
	{"recovered", COLUMN_TIME, COMPARED | OPTIONAL, COLUMN_OF(item.over.time)},
	{"recovered_level", COLUMN_NUMBER, COMPARED, COLUMN_OF(item.over.level)},
	{"attributes", COLUMN_ATTRIBUTES, FOUND, COLUMN_OF(item)},
	{"suspects", COLUMN_SUSPECTS, FOUND | COMPARED, COLUMN_OF(item.suspects)},
	{"culprit", COLUMN_CULPRIT, 0, COLUMN_OF(item.culprit)}, {0}};

bool column_range(const struct stored_column *column, int64_t *first, int64_t *last)
{
	*first = column->type == COLUMN_TIME ? -ROWS_MOST : column->type == COLUMN_ID;
	*last = ROWS_MOST;
	if (column->type == COLUMN_CHOICE) {
		*first = column->first;
		*last = column->last;
	}
	return column->type <= COLUMN_CHOICE;
}

void *column_member(const struct stored_column *column, void *row)
{
	return (char *)row + column->offset;
}

int64_t column_integer(const struct stored_column *column, const void *row)
{
	const void *member = (const char *)row + column->offset;

	if (column->size == sizeof(bool))
		return *(const bool *)member;
	return column->size == sizeof(int) ? *(const int *)member : *(const int64_t *)member;
}

void column_set(const struct stored_column *column, void *row, int64_t value)
{
	if (column->size == sizeof(bool))
		*(bool *)column_member(column, row) = value != 0;
	else if (column->size == sizeof(int))
		*(int *)column_member(column, row) = (int)value;
	else
		*(int64_t *)column_member(column, row) = value;
}

const char *column_text(const struct stored_column *column, const void *row)
{
	return *(const char *const *)(const void *)((const char *)row + column->offset);
}

double column_number(const struct stored_column *column, const void *row)
{
	return *(const double *)(const void *)((const char *)row + column->offset);
}

bool column_is_shown(const struct stored_column *column)
{
	return column->type <= COLUMN_TEXT && !(column->uses & COLUMN_HIDDEN);
}

const char *column_format(const struct stored_column *column, const struct change_record *record,
	char scratch[WHEN_TEXT])
{
	const char *text;
	int64_t value;

	if (column->type == COLUMN_TEXT) {
		text = column_text(column, record);
		return text && *text ? text : NULL;
	}
	value = column_integer(column, record);
	if (value == 0 && column->uses & COLUMN_OPTIONAL)
		return NULL;
	if (column->names)
		return column->names[value];
	if (column->type == COLUMN_TIME)
		return when_format_iso(value, scratch);
	snprintf(scratch, WHEN_TEXT, "%" PRId64, value);
	return scratch;
}

void column_put_json(
	const struct stored_column *column, const struct change_record *record, struct buf *out)
{
	char scratch[WHEN_TEXT];
	const char *text;

	if (column->type == COLUMN_NUMBER) {
		json_put_number(out, column->name, column_number(column, record));
		return;
	}
	text = column_format(column, record, scratch);
	if (text && column->refers && strcmp(column->refers, "incidents") == 0)
		buf_printf(out, ", \"%s\": \"i%s\"", column->name, text);
	else if (text && column->type != COLUMN_TIME && column->type != COLUMN_TEXT &&
		 !column->names)
		buf_printf(out, ", \"%s\": %s", column->name, text);
	else
		json_put_text(out, column->name, text);
}
