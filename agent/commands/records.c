#include "agent/commands/records.h"

#include <math.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/model/columns.h"
#include "agent/model/incident.h"
#include "agent/report/document.h"

/* The object's value of a column; none if it is missing, null, of another type or out of range. */
static void read_column(
	struct arena *arena, const struct stored_column *column, const json_t *value, void *row)
{
	const char *text = json_string_value(value);
	int64_t time, number = json_integer_value(value), first, last;

	if (column->type == COLUMN_NUMBER) {
		*(double *)column_member(column, row) =
			json_is_number(value) ? json_number_value(value) : (double)NAN;
	} else if (column->type == COLUMN_TEXT) {
		*(const char **)column_member(column, row) = arena_strdup(arena, text);
	} else if (json_is_integer(value)) {
		if (column_range(column, &first, &last) && number >= first && number <= last)
			column_set(column, row, number);
	} else if (text && column->names) {
		for (int i = column->first; i <= column->last; i++)
			if (column->names[i] && strcmp(column->names[i], text) == 0)
				column_set(column, row, i);
	} else if (text &&
		   (when_parse_stamp(text, strlen(text), &time) || incident_parse(text, &time))) {
		column_set(column, row, time);
	}
}

static const char *text_of(struct arena *arena, const json_t *object, const char *key)
{
	return arena_strdup(arena, json_string_value(json_object_get(object, key)));
}

static int64_t time_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	int64_t time;

	return text && when_parse_stamp(text, strlen(text), &time) ? time : 0;
}

static double number_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static struct triage triage_of(struct arena *arena, const json_t *object)
{
	const char *state = json_string_value(json_object_get(object, "state"));
	struct triage triage = {.owner = text_of(arena, object, "owner"),
		.note = text_of(arena, object, "note"),
		.link = text_of(arena, object, "link"),
		.person = text_of(arena, object, "person"),
		.time = time_of(object, "time"),
		.until = time_of(object, "until"),
		.size = number_of(object, "size"),
		.size_low = number_of(object, "size_low"),
		.size_high = number_of(object, "size_high")};

	if (!state || !triage_state_named(state, &triage.state))
		triage.state = TRIAGE_OPEN;
	return triage;
}

/* How many there are, and their range. */
static struct attribution suspects_of(struct arena *arena, const json_t *object)
{
	json_int_t count = json_integer_value(json_object_get(object, "count"));
	struct deployment *to = arena_alloc(arena, sizeof *to);
	struct attribution out = {.known = json_is_object(object), .last.time = INT64_MIN};

	if (count <= 0)
		return out;
	to->commit = text_of(arena, object, "to");
	out.last.commit = text_of(arena, object, "from");
	out.last.time = out.last.commit ? 0 : INT64_MIN;
	out.count = (size_t)count;
	out.list = to;
	out.listed = 1;
	return out;
}

bool record_read(struct arena *arena, const json_t *object, struct change_record *out)
{
	struct event *event = arena_alloc(arena, sizeof *event);

	*out = (struct change_record){.state = CHANGE_CONFIRMED, .item.time = WHEN_NEVER};
	for (const struct stored_column *column = change_columns; column->name; column++)
		if (column_is_shown(column))
			read_column(arena, column, json_object_get(object, column->name), out);
	out->branch = out->branch ? out->branch : "";
	out->triage = triage_of(arena, json_object_get(object, "triage"));
	out->sign = change_sign(&out->item.change);
	out->item.owner = text_of(arena, object, "owner");
	out->item.suspects = suspects_of(arena, json_object_get(object, "suspects"));
	*event = (struct event){.kind = EVENT_ANNOUNCED, .time = time_of(object, "announced")};
	out->events = event;
	out->event_count = event->time != 0;
	return out->item.id > 0 && out->series && out->item.test && out->item.metric &&
	       out->item.time != WHEN_NEVER;
}

const char *const records_list[] = {"id", "@time", "test", "metric", "branch",
	"before=level_before", "after=level_after", "%change %=size", "p=pvalue",
	"last good=suspects.from", "first bad=suspects.to", "suspects=suspects.count", "state",
	"@announced", "reason", "triage=triage.state", "incident", NULL};

const char *const records_inbox[] = {"id", "@time", "test", "metric", "branch", "%change %=size",
	"last good=suspects.from", "first bad=suspects.to", "state", "incident",
	"triage=triage.state", "owner=triage.owner", "triaged by=triage.person",
	"@until=triage.until", "note=triage.note", "link=triage.link", NULL};

static const char *const csv_last[] = {"regression", "forward_change_percent", "announced",
	DOCUMENT_SUSPECTS, "triage=triage.state", "triage_owner=triage.owner",
	"triage_note=triage.note", "triage_person=triage.person", "triage_time=triage.time",
	"triage_until=triage.until", NULL};

const char *const *records_columns(struct arena *arena)
{
	const char **fields = NULL;
	size_t count = 0;

	for (const struct stored_column *column = change_columns; column->name; column++)
		if (column_is_shown(column)) {
			fields = arena_grow(arena, fields, count, sizeof *fields);
			fields[count++] = column->name;
		}
	for (size_t i = 0; i < sizeof csv_last / sizeof *csv_last; i++) {
		fields = arena_grow(arena, fields, count, sizeof *fields);
		fields[count++] = csv_last[i];
	}
	return fields;
}
