#include "agent/store/columns.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "agent/core/json_put.h"

#define OF(member)                                                                                 \
	.offset = offsetof(struct change_record, member),                                          \
	.size = sizeof((struct change_record *)0)->member

enum {
	FOUND = COLUMN_FOUND,
	COMPARED = COLUMN_COMPARED,
	OPTIONAL = COLUMN_OPTIONAL,
	HIDDEN = COLUMN_HIDDEN,
	DESCRIBES = COLUMN_DESCRIBES
};

const struct store_column change_columns[] = {
	{"id", COLUMN_ID, COLUMN_KEY | COLUMN_SEQUENCE | COMPARED, OF(item.id)},
	{"test", COLUMN_TEXT, 0, OF(item.test)}, {"series", COLUMN_TEXT, COMPARED, OF(series)},
	{"branch", COLUMN_TEXT, COMPARED, OF(branch)},
	{"metric", COLUMN_TEXT, FOUND, OF(item.metric)},
	{"unit", COLUMN_TEXT, FOUND | OPTIONAL, OF(item.unit)},
	{"direction", COLUMN_CHOICE, FOUND, -1, 1, OF(item.direction)},
	{"sign", COLUMN_CHOICE, COMPARED | HIDDEN, -1, 1, OF(sign)},
	{"time", COLUMN_TIME, COMPARED, OF(item.time)},
	{"state", COLUMN_CHOICE, COMPARED, 1, CHANGE_STATES - 1, OF(state),
		.names = change_state_names},
	{"news", COLUMN_CHOICE, COMPARED, 0, NOTIFY_COUNT - 1, OF(news),
		.names = notify_state_names},
	{"first_seen", COLUMN_TIME, COMPARED, OF(first_seen)},
	{"spacing", COLUMN_COUNT, COMPARED | HIDDEN, OF(spacing)},
	{"updated", COLUMN_TIME, 0, OF(updated)}, {"runs", COLUMN_COUNT, COMPARED, OF(runs)},
	{"pvalue", COLUMN_NUMBER, FOUND, OF(item.change.pvalue)},
	{"magnitude", COLUMN_NUMBER, FOUND, OF(item.change.magnitude)},
	{"mean_before", COLUMN_NUMBER, FOUND, OF(item.change.mean_before)},
	{"mean_after", COLUMN_NUMBER, FOUND, OF(item.change.mean_after)},
	{"stddev_before", COLUMN_NUMBER, FOUND, OF(item.change.stddev_before)},
	{"stddev_after", COLUMN_NUMBER, FOUND, OF(item.change.stddev_after)},
	{"count_before", COLUMN_COUNT, FOUND, OF(item.change.count_before)},
	{"count_after", COLUMN_COUNT, FOUND | COMPARED, OF(item.change.count_after)},
	{"kind", COLUMN_CHOICE, FOUND | DESCRIBES | COMPARED, CHANGE_STEP, CHANGE_TREND,
		OF(item.change.kind), .names = change_kind_names},
	{"level_before", COLUMN_NUMBER, FOUND | DESCRIBES | COMPARED, OF(item.change.level_before)},
	{"level_after", COLUMN_NUMBER, FOUND | DESCRIBES | COMPARED, OF(item.change.level_after)},
	{"size", COLUMN_NUMBER, FOUND | DESCRIBES, OF(item.change.size)},
	{"size_low", COLUMN_NUMBER, FOUND | DESCRIBES, OF(item.change.size_low)},
	{"size_high", COLUMN_NUMBER, FOUND | DESCRIBES, OF(item.change.size_high)},
	{"slope", COLUMN_NUMBER, FOUND | DESCRIBES, OF(item.slope)},
	{"place_from", COLUMN_TIME, FOUND | DESCRIBES | COMPARED, OF(item.place_from)},
	{"place_to", COLUMN_TIME, FOUND | DESCRIBES | COMPARED, OF(item.place_to)},
	{"place_commit_before", COLUMN_TEXT, FOUND | DESCRIBES | OPTIONAL,
		OF(item.place_commit_before)},
	{"place_commit_after", COLUMN_TEXT, FOUND | DESCRIBES | OPTIONAL,
		OF(item.place_commit_after)},
	{"place_version_before", COLUMN_TEXT, FOUND | DESCRIBES | OPTIONAL,
		OF(item.place_version_before)},
	{"place_version_after", COLUMN_TEXT, FOUND | DESCRIBES | OPTIONAL,
		OF(item.place_version_after)},
	{"commit_before", COLUMN_TEXT, FOUND | OPTIONAL, OF(item.commit_before)},
	{"commit_after", COLUMN_TEXT, FOUND | OPTIONAL, OF(item.commit_after)},
	{"version_before", COLUMN_TEXT, FOUND | OPTIONAL, OF(item.version_before)},
	{"version_after", COLUMN_TEXT, FOUND | OPTIONAL, OF(item.version_after)},
	{"members", COLUMN_COUNT, FOUND, OF(item.members)},
	{"shared", COLUMN_TEXT, FOUND | OPTIONAL, OF(item.shared)},
	{"environment", COLUMN_TEXT, FOUND | OPTIONAL, OF(item.environment)},
	{"environment_event", COLUMN_ID, OPTIONAL, .refers = "environments", OF(environment_event)},
	{"recovered", COLUMN_TIME, COMPARED | OPTIONAL, OF(item.over.time)},
	{"recovered_level", COLUMN_NUMBER, COMPARED, OF(item.over.level)},
	{"attributes", COLUMN_ATTRIBUTES, FOUND, OF(item)},
	{"suspects", COLUMN_SUSPECTS, FOUND | COMPARED, OF(item.suspects)},
	{"culprit", COLUMN_CULPRIT, 0, OF(item.culprit)}, {0}};

bool column_range(const struct store_column *column, int64_t *first, int64_t *last)
{
	*first = column->type == COLUMN_TIME ? -ROWS_MOST : column->type == COLUMN_ID;
	*last = ROWS_MOST;
	if (column->type == COLUMN_CHOICE) {
		*first = column->first;
		*last = column->last;
	}
	return column->type <= COLUMN_CHOICE;
}

void *column_member(const struct store_column *column, struct change_record *record)
{
	return (char *)record + column->offset;
}

int64_t column_integer(const struct store_column *column, const struct change_record *record)
{
	const void *member = (const char *)record + column->offset;

	return column->size == sizeof(int) ? *(const int *)member : *(const int64_t *)member;
}

void column_set(const struct store_column *column, struct change_record *record, int64_t value)
{
	if (column->size == sizeof(int))
		*(int *)column_member(column, record) = (int)value;
	else
		*(int64_t *)column_member(column, record) = value;
}

const char *column_text(const struct store_column *column, const struct change_record *record)
{
	return *(const char *const *)(const void *)((const char *)record + column->offset);
}

double column_number(const struct store_column *column, const struct change_record *record)
{
	return *(const double *)(const void *)((const char *)record + column->offset);
}

bool column_is_shown(const struct store_column *column)
{
	return column->type <= COLUMN_TEXT && !(column->uses & COLUMN_HIDDEN);
}

const char *column_format(const struct store_column *column, const struct change_record *record,
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
	const struct store_column *column, const struct change_record *record, struct buf *out)
{
	char scratch[WHEN_TEXT];
	const char *text;

	if (column->type == COLUMN_NUMBER) {
		json_put_number(out, column->name, column_number(column, record));
		return;
	}
	text = column_format(column, record, scratch);
	if (text && column->type != COLUMN_TIME && column->type != COLUMN_TEXT && !column->names)
		buf_printf(out, ", \"%s\": %s", column->name, text);
	else
		json_put_text(out, column->name, text);
}
