/*
 * Texts are compared byte by byte. A count, and a choice that may be 0, is 0 if an insert does not
 * name it.
 */
#include "agent/store/sql/schema.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/hash.h"
#include "agent/store/sql/statements.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* missing members are 0 */

enum { OPTIONAL = COLUMN_OPTIONAL, KEY = COLUMN_KEY };

#define ROW struct environment_event
const struct stored_column environment_columns[] = {
	{"id", COLUMN_ID, KEY, COLUMN_OF(id)},
	{"label", COLUMN_TEXT, COLUMN_OF(label)},
	{"value", COLUMN_TEXT, COLUMN_OF(value)},
	{"time", COLUMN_TIME, COLUMN_OF(time)},
	{"spacing", COLUMN_COUNT, COLUMN_OF(spacing)},
	{"hit", COLUMN_COUNT, COLUMN_OF(hit)},
	{"total", COLUMN_COUNT, COLUMN_OF(total)},
	{"up", COLUMN_COUNT, COLUMN_OF(up)},
	{"down", COLUMN_COUNT, COLUMN_OF(down)},
	{"worse", COLUMN_COUNT, COLUMN_OF(worse)},
	{"better", COLUMN_COUNT, COLUMN_OF(better)},
	{"size", COLUMN_NUMBER, COLUMN_OF(size)},
	{"elsewhere", COLUMN_COUNT, COLUMN_OF(elsewhere)},
	{"elsewhere_changed", COLUMN_COUNT, COLUMN_OF(elsewhere_changed)},
	{"told", COLUMN_COUNT, COLUMN_OF(told)},
	{"followed", COLUMN_CHOICE, 0, 0, 1, COLUMN_OF(followed)},
	{"created", COLUMN_TIME, COLUMN_OF(created)},
	{0},
};
#undef ROW

#define ROW struct incident
const struct stored_column incident_columns[] = {
	{"id", COLUMN_ID, KEY, COLUMN_OF(id)},
	{"opened", COLUMN_TIME, COLUMN_OF(opened)},
	{"joined", COLUMN_TIME, COLUMN_OF(joined)},
	{"until", COLUMN_TIME, COLUMN_OF(until)},
	{"cause", COLUMN_CHOICE, 0, 0, INCIDENT_CAUSES - 1, COLUMN_OF(cause)},
	{"words", COLUMN_TEXT, COLUMN_OF(words)},
	{0},
};
#undef ROW

/* `amend` counts updates of its changes since it was sent or last edited, NULL: nothing; `amended`:
 * how often it was edited; `reaction`: the reactions read last; `reminded`: time of the last
 * reminder; `kind`: the notifier that has written the payload. */
static const struct stored_column deliveries[] = {
	{"id", COLUMN_ID, KEY | COLUMN_SEQUENCE},
	{"key", COLUMN_TEXT},
	{"receiver", COLUMN_TEXT},
	{"destination", COLUMN_TEXT},
	{"payload", COLUMN_TEXT},
	{"state", COLUMN_CHOICE, 0, 1, DELIVERY_ABANDONED},
	{"receipt", COLUMN_TEXT, OPTIONAL},
	{"problem", COLUMN_TEXT, OPTIONAL},
	{"attempts", COLUMN_COUNT},
	{"created", COLUMN_TIME},
	{"updated", COLUMN_TIME},
	{"thread", COLUMN_TEXT, OPTIONAL},
	{"attempt_started", COLUMN_TIME, OPTIONAL},
	{"not_before", COLUMN_TIME, OPTIONAL},
	{"amend", COLUMN_COUNT, OPTIONAL},
	{"reaction", COLUMN_TEXT, OPTIONAL},
	{"amended", COLUMN_COUNT, OPTIONAL},
	{"reminded", COLUMN_TIME, OPTIONAL},
	{"kind", COLUMN_TEXT, OPTIONAL},
	{0},
};

/* When the change was and how large, as the message says it. */
static const struct stored_column announced[] = {
	{"change", COLUMN_ID, KEY, .refers = "changes"},
	{"delivery", COLUMN_ID, KEY, .refers = "deliveries"},
	{"told_time", COLUMN_TIME, OPTIONAL},
	{"told_size", COLUMN_NUMBER},
	{0},
};

/* The points around a change that is confirmed, as agent/model/excerpt.c packs them. */
static const struct stored_column excerpts[] = {
	{"change", COLUMN_ID, KEY, .refers = "changes"},
	{"points", COLUMN_BYTES},
	{0},
};

/* `accepted_...`: the size of the change when it was accepted. `owed`: its announcement was settled
 * by accepting it, and is due when it is open again. `told_after`: the last delivery of before it
 * was news again. */
static const struct stored_column triage[] = {
	{"change", COLUMN_ID, KEY, .refers = "changes"},
	{"triage", COLUMN_CHOICE, 0, TRIAGE_OPEN, TRIAGE_STATES - 1},
	{"version", COLUMN_ID},
	{"owner", COLUMN_TEXT, OPTIONAL},
	{"note", COLUMN_TEXT, OPTIONAL},
	{"link", COLUMN_TEXT, OPTIONAL},
	{"person", COLUMN_TEXT, OPTIONAL},
	{"triaged", COLUMN_TIME},
	{"until", COLUMN_TIME, OPTIONAL},
	{"accepted_size", COLUMN_NUMBER},
	{"accepted_low", COLUMN_NUMBER},
	{"accepted_high", COLUMN_NUMBER},
	{"inherited", COLUMN_COUNT},
	{"owed", COLUMN_CHOICE, 0, 0, 1},
	{"renewals", COLUMN_COUNT},
	{"told_after", COLUMN_COUNT},
	{0},
};

#define ROW struct series_checkpoint
const struct stored_column series_columns[] = {
	{"test", COLUMN_TEXT, KEY},
	{"series", COLUMN_TEXT, KEY, COLUMN_OF(series)},
	{"branch", COLUMN_TEXT, KEY, COLUMN_OF(branch)},
	{"anchor", COLUMN_TIME, COLUMN_OF(anchor)},
	{"last_point", COLUMN_TIME, COLUMN_OF(last_point)},
	{"revision", COLUMN_COUNT, COLUMN_OF(revision)},
	{"revised", COLUMN_TIME, COLUMN_OF(revised)},
	{0},
};
#undef ROW

#define ROW struct seen_run
const struct stored_column seen_columns[] = {
	{"test", COLUMN_TEXT, KEY, COLUMN_OF(test)},
	{"label", COLUMN_TEXT, COLUMN_OF(label)},
	{"ended", COLUMN_TIME, COLUMN_OF(ended)},
	{"text", COLUMN_TEXT, COLUMN_OF(text)},
	{0},
};
#undef ROW

#define ROW struct condition
const struct stored_column condition_columns[] = {
	{"subject", COLUMN_TEXT, KEY, COLUMN_OF(subject)},
	{"kind", COLUMN_CHOICE, 0, CONDITION_SOURCE, CONDITION_MANY_STALE, COLUMN_OF(kind)},
	{"since", COLUMN_TIME, COLUMN_OF(since)},
	{"text", COLUMN_TEXT, COLUMN_OF(text)},
	{0},
};
#undef ROW

/* Times of events that must not happen again, or not soon. */
#define ROW struct stored_moment
const struct stored_column moment_columns[] = {
	{"name", COLUMN_TEXT, KEY, COLUMN_OF(name)},
	{"time", COLUMN_TIME, COLUMN_OF(time)},
	{0},
};
#undef ROW

#define ROW struct vanished
const struct stored_column vanished_columns[] = {
	{"test", COLUMN_TEXT, KEY, COLUMN_OF(test)},
	{"series", COLUMN_TEXT, KEY, COLUMN_OF(series)},
	{"ended", COLUMN_TIME, COLUMN_OF(ended)},
	{0},
};
#undef ROW

#define ROW struct silence
const struct stored_column silence_columns[] = {
	{"id", COLUMN_ID, KEY | COLUMN_SEQUENCE, COLUMN_OF(id)},
	{"matchers", COLUMN_TEXT, COLUMN_OF(matchers)},
	{"begins", COLUMN_TIME, COLUMN_OF(from)},
	{"until", COLUMN_TIME, COLUMN_OF(until)},
	{"owner", COLUMN_TEXT, OPTIONAL, COLUMN_OF(owner)},
	{"reason", COLUMN_TEXT, OPTIONAL, COLUMN_OF(reason)},
	{"person", COLUMN_TEXT, OPTIONAL, COLUMN_OF(person)},
	{"created", COLUMN_TIME, COLUMN_OF(created)},
	{"ended", COLUMN_TIME, OPTIONAL, COLUMN_OF(ended)},
	{"ended_by", COLUMN_TEXT, OPTIONAL, COLUMN_OF(ended_by)},
	{"reminded", COLUMN_CHOICE, 0, 0, 1, COLUMN_OF(reminded)},
	{"summed", COLUMN_CHOICE, 0, 0, 1, COLUMN_OF(summed)},
	{0},
};
#undef ROW

/* Rows about a change stay when that is pruned. */
#define ROW struct event
const struct stored_column event_columns[] = {
	{"id", COLUMN_ID, KEY | COLUMN_SEQUENCE, COLUMN_OF(id)},
	{"time", COLUMN_TIME, COLUMN_OF(time)},
	{"kind", COLUMN_CHOICE, 0, EVENT_CONFIRMED, EVENT_KINDS - 1, COLUMN_OF(kind)},
	{"change", COLUMN_ID, OPTIONAL, COLUMN_OF(change)},
	{"point", COLUMN_TIME, OPTIONAL, COLUMN_OF(point)},
	{"person", COLUMN_TEXT, OPTIONAL, COLUMN_OF(actor.person)},
	{"origin", COLUMN_TEXT, OPTIONAL, COLUMN_OF(actor.origin)},
	{"subject", COLUMN_TEXT, OPTIONAL, COLUMN_OF(subject)},
	{"detail", COLUMN_TEXT, OPTIONAL, COLUMN_OF(detail)},
	{"due", COLUMN_TIME, OPTIONAL, COLUMN_OF(due)},
	{"reason", COLUMN_TEXT, OPTIONAL, COLUMN_OF(reason)},
	{0},
};
#undef ROW

static const struct stored_column bisections[] = {
	{"id", COLUMN_ID, KEY | COLUMN_SEQUENCE},
	{"change", COLUMN_ID, .refers = "changes"},
	{"lab", COLUMN_TEXT},
	{"state", COLUMN_CHOICE, 0, BISECTION_WAITING, BISECTION_OVER},
	{"asked", COLUMN_TIME},
	{"begun", COLUMN_TIME, OPTIONAL},
	{"ended", COLUMN_TIME, OPTIONAL},
	{"runs", COLUMN_COUNT},
	{"person", COLUMN_TEXT, OPTIONAL},
	{"setup", COLUMN_TEXT, OPTIONAL},
	{"outcome", COLUMN_TEXT, OPTIONAL},
	{"verdict", COLUMN_TEXT, OPTIONAL},
	{"cancelled", COLUMN_TEXT, OPTIONAL},
	{0},
};

static const struct stored_column bisection_events[] = {
	{"bisection", COLUMN_ID, KEY, .refers = "bisections"},
	{"number", COLUMN_COUNT, KEY},
	{"kind", COLUMN_CHOICE, 0, BISECTION_BEGIN, BISECTION_ANSWER},
	{"run", COLUMN_COUNT},
	{"line", COLUMN_TEXT},
	{0},
};

#define TABLE(name, columns)                                                                       \
	{                                                                                          \
		name, "@<" name, "@+" name, columns                                                \
	}

const struct sql_table schema_tables[STORE_TABLES] = {TABLE("environments", environment_columns),
	TABLE("incidents", incident_columns), TABLE("changes", change_columns),
	TABLE("deliveries", deliveries), TABLE("announced", announced), TABLE("excerpts", excerpts),
	TABLE("triage", triage), TABLE("series", series_columns), TABLE("seen", seen_columns),
	TABLE("conditions", condition_columns), TABLE("moments", moment_columns),
	TABLE("vanished", vanished_columns), TABLE("silences", silence_columns),
	TABLE("events", event_columns), TABLE("bisections", bisections),
	TABLE("bisection_events", bisection_events)};

const char *const schema_sequences[SCHEMA_SEQUENCES] = {
	"changes", "deliveries", "silences", "events", "bisections"};

static const char indexes[] =
	"CREATE INDEX changes_of_series ON changes (test, series, branch);\n"
	"CREATE INDEX changes_of_state ON changes (state, id);\n"
	"CREATE INDEX changes_of_time ON changes (time);\n"
	/* The inbox in its order (BADNESS in lists.c). */
	"CREATE INDEX changes_open ON changes ((direction * sign), (-coalesce(abs(size), 1e308)),"
	" (-id)) WHERE state @standing;\n"
	"CREATE INDEX changes_pending ON changes (id) WHERE news = @news{pending};\n"
	"CREATE INDEX changes_of_environment ON changes (environment_event)"
	" WHERE environment_event IS NOT NULL;\n"
	"CREATE INDEX changes_of_incident ON changes (incident) WHERE incident IS NOT NULL;\n"
	"CREATE INDEX incidents_until ON incidents (until);\n"
	/* By it the change that another ends is found (ENDS in words.h). */
	"CREATE INDEX changes_recovered ON changes (test, series, branch, recovered)"
	" WHERE state = @state{recovered};\n"
	"CREATE UNIQUE INDEX deliveries_once ON deliveries (key) WHERE state !="
	" @delivery{abandoned};\n"
	"CREATE INDEX deliveries_queued ON deliveries (id) WHERE state = @delivery{queued};\n"
	"CREATE INDEX deliveries_settled ON deliveries (updated) WHERE state !="
	" @delivery{queued};\n"
	"CREATE INDEX deliveries_of_key ON deliveries (key);\n"
	"CREATE INDEX deliveries_to_amend ON deliveries (id) WHERE amend IS NOT NULL;\n"
	"CREATE INDEX deliveries_kept ON deliveries (receiver, id)"
	" WHERE state = @delivery{sent} AND receipt IS NOT NULL;\n"
	"CREATE INDEX announced_by ON announced (delivery);\n"
	"CREATE INDEX triage_until ON triage (until) WHERE until IS NOT NULL;\n"
	"CREATE INDEX triage_owed ON triage (change) WHERE owed = 1 AND triage <"
	" @triage{expected};\n"
	"CREATE INDEX events_of_change ON events (change, id);\n"
	"CREATE INDEX events_due ON events (id) WHERE due IS NOT NULL;\n"
	"CREATE INDEX events_audit ON events (id) WHERE kind >= @event{triaged};\n"
	"CREATE INDEX bisections_of_change ON bisections (change);\n"
	"CREATE INDEX bisections_open ON bisections (id) WHERE state != @bisection{over};\n"
	"CREATE INDEX bisections_begun ON bisections (begun) WHERE begun IS NOT NULL;\n";

static void put_column(struct buf *out, const struct stored_column *column, bool alone,
	const struct sql_words *words)
{
	int64_t first, last;
	bool whole = column_range(column, &first, &last);
	const char *type = words->text;

	if (column->uses & COLUMN_SEQUENCE)
		type = words->sequence;
	else if (whole)
		type = words->integer;
	else if (column->type == COLUMN_NUMBER)
		type = words->number;
	else if (column->type == COLUMN_BYTES)
		type = words->bytes;
	buf_printf(out, "\n\t%s %s", column->name, type);
	if (alone && !(column->uses & COLUMN_SEQUENCE))
		buf_text(out, " PRIMARY KEY");
	if (column->type <= COLUMN_BYTES && column->type != COLUMN_NUMBER &&
		!(column->uses & OPTIONAL))
		buf_text(out, " NOT NULL");
	if (whole)
		buf_printf(out, " CHECK (%s BETWEEN %" PRId64 " AND %" PRId64 ")", column->name,
			first, last);
	if (column->type == COLUMN_BYTES)
		buf_printf(out, " CHECK (%s(%s) BETWEEN 1 AND %d)", words->length, column->name,
			EXCERPT_BYTES);
	if (whole && first == 0 && !(column->uses & (OPTIONAL | KEY)))
		buf_text(out, " DEFAULT 0");
	if (column->refers)
		buf_printf(out, " REFERENCES %s", column->refers);
	buf_char(out, ',');
}

void schema_put_columns(struct buf *out, const struct stored_column *columns, unsigned uses,
	const char *before, int first)
{
	const char *comma = "";

	for (; columns->name; columns++) {
		if (uses != 0 && !(columns->uses & uses))
			continue;
		if (first > 0)
			buf_printf(out, "%s?%d", comma, first++);
		else
			buf_printf(out, "%s%s%s", comma, before, columns->name);
		comma = ", ";
	}
}

int schema_keys(const struct sql_table *table)
{
	int keys = 0;

	while (table->columns[keys].uses & KEY)
		keys++;
	return keys;
}

char *schema_text_new(const struct sql_words *words)
{
	struct buf out = {0};

	for (size_t i = 0; i < STORE_TABLES; i++) {
		const struct sql_table *table = &schema_tables[i];
		bool alone = schema_keys(table) == 1;
		bool by_rows = alone && table->columns[0].type == COLUMN_ID;

		buf_printf(&out, "CREATE TABLE %s (", table->name);
		for (const struct stored_column *column = table->columns; column->name; column++)
			put_column(&out, column, alone && column->uses & KEY, words);
		if (alone) {
			out.length--;
		} else {
			buf_text(&out, "\n\tPRIMARY KEY (");
			schema_put_columns(&out, table->columns, KEY, "", 0);
			buf_char(&out, ')');
		}
		buf_printf(&out, ")%s;\n", by_rows ? words->rows : words->keyed);
	}
	statement_put(&out, words, indexes);
	buf_text(&out, words->more);
	return out.data;
}

int64_t schema_version(const struct sql_words *words)
{
	char *text = schema_text_new(words);
	uint64_t hash = hash_add(HASH_START, text, strlen(text));

	free(text);
	return (int64_t)(hash % INT32_MAX) + 1;
}

bool schema_check(
	const char *label, int64_t version, const struct sql_words *words, struct error *error)
{
	return version == schema_version(words) ||
	       error_set(error, ERROR_STATE,
		       "%s was made by another build of hunter-c, whose tables differ: open it with"
		       " that build, or start with a new state",
		       label);
}
