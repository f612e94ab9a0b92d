/* The table's columns are chosen for people; JSON has everything, with the history. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/changes.h"
#include "agent/core/when.h"
#include "agent/report/csv.h"
#include "agent/report/table.h"
#include "agent/store/record_json.h"
#include "notifiers/text.h"

const char *const changes_output_names[] = {"text", "json", "csv", NULL};

enum column {
	COLUMN_TIME,
	COLUMN_TEST,
	COLUMN_METRIC,
	COLUMN_BEFORE,
	COLUMN_AFTER,
	COLUMN_PERCENT,
	COLUMN_PVALUE,
	COLUMN_COMMITS,
	COLUMN_STATE,
	COLUMN_ANNOUNCED,
	COLUMN_PLACE, /* optional columns, left out if empty */
	COLUMN_ATTRIBUTES,
	COLUMNS,
};

struct row {
	const char *cells[COLUMNS];
};

struct rows {
	const struct row *rows;
	size_t count, *at;
	const size_t *cells; /* for the columns shown */
};

static int compare(const void *a, const void *b)
{
	const struct change_record *left = a, *right = b;

	if (left->item.time != right->item.time)
		return left->item.time > right->item.time ? -1 : 1;
	return (right->item.id > left->item.id) - (right->item.id < left->item.id);
}

/* The text in the arena; NULL if it is empty. */
static const char *filled(struct arena *arena, struct buf *text)
{
	const char *copy = buf_keep(text, arena);

	return *copy ? copy : NULL;
}

static const char *level(struct arena *arena, double value)
{
	struct buf text = {0};

	text_level(&text, value);
	return buf_keep(&text, arena);
}

static const char *percent(struct arena *arena, const struct change *change)
{
	struct buf text = {0};

	text_size(&text, change);
	return buf_keep(&text, arena);
}

/* "trend over 2026-03-01 .. 2026-03-09, +1.0 a point", or the interval in which a step may lie. */
static const char *place(struct arena *arena, const struct announcement *item)
{
	struct buf text = {0};

	buf_text(&text, item->change.kind == CHANGE_TREND ? "trend" : "");
	text_course(&text, item, &text_plain);
	text_place(&text, item, &text_plain);
	return filled(arena, &text);
}

static const char *commits(struct arena *arena, const struct announcement *item)
{
	char scratch[2][TABLE_SCRATCH];
	const char *before, *after;

	announcement_range(item, &before, &after);
	if (item->suspects.known && item->suspects.count == 0)
		return "no deployment";
	if (!before && !after)
		return NULL;
	return arena_printf(arena, "%s..%s", before ? table_commit(before, scratch[0]) : "",
		after ? table_commit(after, scratch[1]) : "");
}

static const char *attributes(struct arena *arena, const struct announcement *item)
{
	struct buf text = {0};

	text_attributes(&text, item);
	return filled(arena, &text);
}

static const char *time_text(struct arena *arena, int64_t time)
{
	char text[WHEN_TEXT];

	return arena_strdup(arena, when_format(time, text));
}

/* The messages of a change that was announced long ago may have been pruned. */
static const char *announced(struct arena *arena, const struct change_record *record)
{
	int64_t time = record_announced(record);

	if (time != 0)
		return time_text(arena, time);
	switch (record->news) {
	case NOTIFY_PENDING: return "waits";
	case NOTIFY_QUEUED:
	case NOTIFY_RECOVERY: return "queued";
	case NOTIFY_SILENT:
	case NOTIFY_HELD:
	case NOTIFY_COUNT: break;
	}
	return NULL;
}

static struct row row_of(struct arena *arena, const struct change_record *record)
{
	const struct announcement *item = &record->item;

	return (struct row){{
		[COLUMN_TIME] = time_text(arena, item->time),
		[COLUMN_TEST] = item->test,
		[COLUMN_METRIC] = *record->branch ? arena_printf(arena, "%s (%s)", item->metric,
							    record->branch)
						  : item->metric,
		[COLUMN_BEFORE] = level(arena, item->change.level_before),
		[COLUMN_AFTER] = level(arena, item->change.level_after),
		[COLUMN_PERCENT] = percent(arena, &item->change),
		[COLUMN_PVALUE] = arena_printf(arena, "%.2g", item->change.pvalue),
		[COLUMN_COMMITS] = commits(arena, item),
		[COLUMN_STATE] = change_state_names[record->state],
		[COLUMN_ANNOUNCED] = announced(arena, record),
		[COLUMN_PLACE] = place(arena, item),
		[COLUMN_ATTRIBUTES] = attributes(arena, item),
	}};
}

static bool next_row(const void *context, bool first)
{
	const struct rows *rows = context;

	*rows->at = first ? 0 : *rows->at + 1;
	return *rows->at < rows->count;
}

static const char *cell(const void *context, size_t column, char scratch[TABLE_SCRATCH])
{
	const struct rows *rows = context;

	(void)scratch;
	return rows->rows[*rows->at].cells[rows->cells[column]];
}

static bool is_shown(const struct row *rows, size_t count, size_t column)
{
	bool shown = column < COLUMN_PLACE;

	for (size_t i = 0; i < count && !shown; i++)
		shown = rows[i].cells[column] != NULL;
	return shown;
}

static void print_table(
	struct arena *arena, const struct change_record *records, size_t count, FILE *out)
{
	struct row *cells = arena_array(arena, count, sizeof *cells);
	size_t at = 0, shown[COLUMNS];
	struct rows rows = {cells, count, &at, shown};
	const struct table_column all[COLUMNS] = {
		[COLUMN_TIME] = {.header = "time"},
		[COLUMN_TEST] = {.header = "test"},
		[COLUMN_METRIC] = {.header = "metric"},
		[COLUMN_BEFORE] = {.header = "before", .number = true},
		[COLUMN_AFTER] = {.header = "after", .number = true},
		[COLUMN_PERCENT] = {.header = "change", .number = true},
		[COLUMN_PVALUE] = {.header = "p", .number = true},
		[COLUMN_COMMITS] = {.header = "commits"},
		[COLUMN_STATE] = {.header = "state"},
		[COLUMN_ANNOUNCED] = {.header = "announced"},
		[COLUMN_PLACE] = {.header = "place"},
		[COLUMN_ATTRIBUTES] = {.header = "attributes"},
	};
	struct table_column columns[COLUMNS];
	struct table table = {.columns = columns, .next = next_row, .cell = cell, .context = &rows};

	for (size_t i = 0; i < count; i++)
		cells[i] = row_of(arena, &records[i]);
	for (size_t i = 0; i < COLUMNS; i++)
		if (is_shown(cells, count, i)) {
			shown[table.column_count] = i;
			columns[table.column_count++] = all[i];
		}
	table_measure(&table);
	table_print_header(&table, out);
	for (bool row = next_row(&rows, true); row; row = next_row(&rows, false))
		table_print_row(&table, out);
}

static void print_json(const struct change_record *records, size_t count, bool more, FILE *out)
{
	fputs("{\"changes\": [", out);
	for (size_t i = 0; i < count; i++) {
		struct buf text = {0};

		buf_text(&text, i > 0 ? ",\n  " : "\n  ");
		record_put_json(&text, &records[i]);
		fwrite(text.data, 1, text.length, out);
		buf_free(&text);
	}
	fprintf(out, "%s], \"more\": %s}\n", count > 0 ? "\n" : "", more ? "true" : "false");
}

static void print_csv_description(const struct announcement *item, bool formulas, FILE *out)
{
	const char *const texts[] = {item->place_commit_before, item->place_commit_after,
		item->place_version_before, item->place_version_after};
	char time[WHEN_TEXT];

	csv_put_levels(&item->change, out);
	csv_put_number(item->slope, out);
	fprintf(out, ",%s", when_format_iso(item->place_from, time));
	fprintf(out, ",%s", when_format_iso(item->place_to, time));
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		putc(',', out);
		csv_put_text(texts[i], formulas, out);
	}
	csv_put_suspects(&item->suspects, formulas, out);
}

static void print_csv_row(const struct change_record *record, bool formulas, FILE *out)
{
	const struct announcement *item = &record->item;
	const int64_t told = record_announced(record);
	char time[WHEN_TEXT];
	const char *const texts[] = {item->commit_before, item->commit_after, item->version_before,
		item->version_after, change_state_names[record->state],
		notify_state_names[record->news]};

	fprintf(out, "%" PRId64 ",%s,", item->id, when_format_iso(item->time, time));
	csv_put_text(item->test, formulas, out);
	putc(',', out);
	csv_put_text(item->metric, formulas, out);
	putc(',', out);
	csv_put_text(record->branch, formulas, out);
	csv_put_means(&item->change, out);
	fputs(announcement_verdict(item) >= 0 ? ",yes" : ",no", out);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		putc(',', out);
		csv_put_text(texts[i], formulas, out);
	}
	fprintf(out, ",%s", when_format_iso(record->first_seen, time));
	fprintf(out, ",%s", told != 0 ? when_format_iso(told, time) : "");
	print_csv_description(item, formulas, out);
	putc('\n', out);
}

static void print_csv(const struct change_record *records, size_t count, bool formulas, FILE *out)
{
	fputs("id,time,test,metric,branch," CSV_MEANS ",regression,commit_before,commit_after,"
	      "version_before,version_after,state,news,first_seen,announced," CSV_LEVELS
	      ",slope,place_from,place_to,place_commit_before,place_commit_after,"
	      "place_version_before,place_version_after," CSV_SUSPECTS "\n",
		out);
	for (size_t i = 0; i < count; i++)
		print_csv_row(&records[i], formulas, out);
}

void changes_print(
	const struct store_list *list, enum changes_output output, bool formulas, FILE *out)
{
	size_t count = list->records.count;

	if (count > 0)
		qsort(list->records.items, count, sizeof *list->records.items, compare);
	switch (output) {
	case CHANGES_TEXT: print_table(list->call.arena, list->records.items, count, out); break;
	case CHANGES_JSON: print_json(list->records.items, count, list->more, out); break;
	case CHANGES_CSV: print_csv(list->records.items, count, formulas, out); break;
	}
}
