#include "agent/commands/records.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/when.h"
#include "agent/model/columns.h"
#include "agent/model/record_json.h"
#include "agent/report/csv.h"
#include "agent/report/table.h"
#include "notifiers/text.h"

/* What the object has of a column; nothing if that is missing, null, of another kind or out of
 * range. */
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
	} else if (text && when_parse_stamp(text, strlen(text), &time)) {
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

struct taking {
	struct arena *arena;
	bool (*take)(void *context, const struct change_record *record, json_t *object);
	void *context;
	bool broken; /* the answer has something else than changes */
};

static bool take_page(void *context, json_t *page)
{
	struct taking *taking = context;
	struct change_record record;
	json_t *object;
	bool wanted = true;
	size_t index;

	json_array_foreach(page, index, object)
	{
		taking->broken |= !record_read(taking->arena, object, &record);
		wanted = !taking->broken && taking->take(taking->context, &record, object);
		if (taking->broken)
			break;
	}
	return wanted;
}

bool records_of_agent(struct arena *arena, struct agent_api *api, const struct pairs *form,
	bool (*take)(void *context, const struct change_record *record, json_t *object),
	void *context, bool *more, struct error *error)
{
	struct taking taking = {arena, take, context, false};

	if (!agent_api_changes(api, form, take_page, &taking, more, error))
		return false;
	return !taking.broken ||
	       error_set(error, ERROR_STATE,
		       "%s: the response is not a list of changes: is it a hunter-c of this "
		       "version?",
		       agent_api_name(api));
}

/* Cells: static, the record's or in the arena; NULL for a blank one. */
struct cell {
	struct arena *arena;
	int64_t now;
	const struct change_record *record;
	const struct announcement *item;
};

/* The text in the arena; NULL if it is empty. */
static const char *filled(const struct cell *cell, struct buf *text)
{
	const char *copy = buf_keep(text, cell->arena);

	return *copy ? copy : NULL;
}

static const char *cell_id(const struct cell *cell)
{
	return arena_printf(cell->arena, "%" PRId64, cell->item->id);
}

static const char *time_text(const struct cell *cell, int64_t time)
{
	char text[WHEN_TEXT];

	return arena_strdup(cell->arena, when_format(time, text));
}

static const char *cell_time(const struct cell *cell)
{
	return time_text(cell, cell->item->time);
}

static const char *age(const struct cell *cell, int64_t time)
{
	char text[WHEN_TEXT];

	return arena_strdup(
		cell->arena, when_format_rough(cell->now > time ? cell->now - time : 0, text));
}

static const char *cell_age(const struct cell *cell)
{
	return age(cell, cell->item->time);
}

static const char *cell_test(const struct cell *cell)
{
	return cell->item->test;
}

static const char *cell_metric(const struct cell *cell)
{
	const char *branch = cell->record->branch;

	return *branch ? arena_printf(cell->arena, "%s (%s)", cell->item->metric, branch)
		       : cell->item->metric;
}

static const char *level(const struct cell *cell, double value)
{
	struct buf text = {0};

	text_level(&text, value);
	return buf_keep(&text, cell->arena);
}

static const char *cell_before(const struct cell *cell)
{
	return level(cell, cell->item->change.level_before);
}

static const char *cell_after(const struct cell *cell)
{
	return level(cell, cell->item->change.level_after);
}

static const char *cell_size(const struct cell *cell)
{
	struct buf text = {0};

	text_size(&text, &cell->item->change);
	return buf_keep(&text, cell->arena);
}

static const char *cell_percent(const struct cell *cell)
{
	double size = cell->item->change.size;

	return isnan(size) ? "new" : arena_printf(cell->arena, "%+.1f%%", size);
}

static const char *cell_pvalue(const struct cell *cell)
{
	return arena_printf(cell->arena, "%.2g", cell->item->change.pvalue);
}

static const char *cell_commits(const struct cell *cell)
{
	char scratch[2][TABLE_SCRATCH];
	const char *before, *after;

	announcement_range(cell->item, &before, &after);
	if (cell->item->suspects.known && cell->item->suspects.count == 0)
		return "no deployment";
	if (!before && !after)
		return NULL;
	return arena_printf(cell->arena, "%s..%s", before ? table_commit(before, scratch[0]) : "",
		after ? table_commit(after, scratch[1]) : "");
}

static const char *cell_state(const struct cell *cell)
{
	return change_state_names[cell->record->state];
}

/* The messages of a change that was announced long ago may have been pruned. */
static const char *cell_announced(const struct cell *cell)
{
	int64_t time = record_announced(cell->record);

	if (time != 0)
		return time_text(cell, time);
	switch (cell->record->news) {
	case NOTIFY_PENDING: return "waits";
	case NOTIFY_QUEUED:
	case NOTIFY_RECOVERY: return "queued";
	case NOTIFY_SILENT:
	case NOTIFY_HELD:
	case NOTIFY_COUNT: break;
	}
	return NULL;
}

static const char *cell_incident(const struct cell *cell)
{
	int64_t incident = cell->record->incident;

	return incident != 0 ? arena_printf(cell->arena, "i%" PRId64, incident) : NULL;
}

/* "trend over 2026-03-01 .. 2026-03-09, +1.0 a point", or the interval in which a step may lie. */
static const char *cell_place(const struct cell *cell)
{
	struct buf text = {0};

	buf_text(&text, cell->item->change.kind == CHANGE_TREND ? "trend" : "");
	text_course(&text, cell->item, &text_plain);
	text_place(&text, cell->item, &text_plain);
	return filled(cell, &text);
}

static const char *cell_attributes(const struct cell *cell)
{
	struct buf text = {0};

	text_attributes(&text, cell->item);
	return filled(cell, &text);
}

static const char *cell_triage(const struct cell *cell)
{
	enum triage_state state = cell->record->triage.state;

	return triage_state_names[state ? state : TRIAGE_OPEN];
}

/* Of triaged changes only. */
static const char *cell_triaged(const struct cell *cell)
{
	return cell->record->triage.state > TRIAGE_OPEN ? cell_triage(cell) : NULL;
}

static const char *cell_owner(const struct cell *cell)
{
	const char *owner = cell->record->triage.owner;

	return owner && *owner ? owner : cell->item->owner;
}

/* "ann, 2h ago" */
static const char *cell_person(const struct cell *cell)
{
	const struct triage *triage = &cell->record->triage;

	return triage->person && triage->time != 0
		       ? arena_printf(
				 cell->arena, "%s, %s ago", triage->person, age(cell, triage->time))
		       : triage->person;
}

static const char *cell_until(const struct cell *cell)
{
	int64_t until = cell->record->triage.until;

	return until != 0 ? arena_strndup(cell->arena, time_text(cell, until), 16) : NULL;
}

static const char *cell_note(const struct cell *cell)
{
	return cell->record->triage.note;
}

static const char *cell_link(const struct cell *cell)
{
	return cell->record->triage.link;
}

enum { NUMBER = 1, OPTIONAL = 2, LIST = 1 << RECORDS_LIST, INBOX = 1 << RECORDS_INBOX };

static const struct record_column {
	const char *header;
	unsigned style, views;
	const char *(*text)(const struct cell *cell);
} columns[] = {
	{"id", NUMBER, LIST | INBOX, cell_id},
	{"time", 0, LIST, cell_time},
	{"age", 0, INBOX, cell_age},
	{"test", 0, LIST | INBOX, cell_test},
	{"metric", 0, LIST | INBOX, cell_metric},
	{"before", NUMBER, LIST, cell_before},
	{"after", NUMBER, LIST, cell_after},
	{"change", NUMBER, LIST, cell_size},
	{"change", NUMBER, INBOX, cell_percent},
	{"p", NUMBER, LIST, cell_pvalue},
	{"commits", 0, LIST, cell_commits},
	{"commits", OPTIONAL, INBOX, cell_commits},
	{"state", 0, LIST | INBOX, cell_state},
	{"announced", 0, LIST, cell_announced},
	{"triage", OPTIONAL, LIST, cell_triaged},
	{"incident", OPTIONAL, LIST | INBOX, cell_incident},
	{"place", OPTIONAL, LIST, cell_place},
	{"attributes", OPTIONAL, LIST, cell_attributes},
	{"triage", 0, INBOX, cell_triage},
	{"owner", OPTIONAL, INBOX, cell_owner},
	{"triaged by", OPTIONAL, INBOX, cell_person},
	{"until", OPTIONAL, INBOX, cell_until},
	{"note", OPTIONAL, INBOX, cell_note},
	{"link", OPTIONAL, INBOX, cell_link},
};

enum { COLUMNS = sizeof columns / sizeof *columns };

void records_print(struct arena *arena, const struct record_row *rows, size_t count,
	enum record_view view, int64_t now, FILE *out)
{
	const char **cells = arena_array(arena, count * COLUMNS, sizeof *cells);
	const struct record_column *shown[COLUMNS];
	struct table_column heads[COLUMNS];
	size_t width = 0;

	for (size_t c = 0; c < COLUMNS; c++)
		if (columns[c].views & 1U << view) {
			heads[width] = (struct table_column){.header = columns[c].header,
				.number = columns[c].style & NUMBER,
				.optional = columns[c].style & OPTIONAL};
			shown[width++] = &columns[c];
		}
	for (size_t i = 0; i < count; i++)
		for (size_t c = 0; c < width; c++) {
			const struct cell cell = {
				arena, now, &rows[i].record, &rows[i].record.item};
			const char *text = shown[c]->text(&cell);

			cells[i * width + c] = text && *text ? text : NULL;
		}
	table_print(heads, width, cells, count, out);
}

void record_row_put(struct buf *out, const struct record_row *row)
{
	if (row->json)
		buf_text(out, row->json);
	else
		record_put_json(out, &row->record);
}

static const char *const csv_last[] = {"regression", "forward_change_percent", "announced",
	CSV_SUSPECTS, "triage=triage.state", "triage_owner=triage.owner", "triage_note=triage.note",
	"triage_person=triage.person", "triage_time=triage.time", "triage_until=triage.until",
	NULL};

/* All fields of a change, and what is derived from them. */
static const char *const *csv_fields(struct arena *arena)
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

void records_print_csv(
	struct arena *arena, const struct record_row *rows, size_t count, bool formulas, FILE *out)
{
	const char *const *fields = csv_fields(arena);

	csv_put_header(NULL, fields, formulas, out);
	for (size_t i = 0; i < count; i++) {
		struct buf text = {0};

		record_row_put(&text, &rows[i]);
		csv_put_row(NULL, text.data, fields, formulas, out);
		buf_free(&text);
	}
}
