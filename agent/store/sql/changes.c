/*
 * Changes as runs find them: what is known of a test, what a run records, and other names for what
 * there is.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/sql/events.h"
#include "agent/store/sql/read.h"
#include "agent/store/sql/rows.h"
#include "agent/store/sql/schema.h"
#include "agent/store/sql/triage.h"

static void known(struct tx *tx, void *context)
{
	struct store_known *call = context;
	struct sql_query query = QUERY(tx, STATEMENT_KNOWN, v_text(call->test));

	read_all_known(&query, &call->records);
}

STORE_DEFINE(known, .run = known);

void store_load_checkpoints(struct tx *tx, const char *test, struct checkpoint_rows *out)
{
	struct sql_query query = QUERY(tx, STATEMENT_CHECKPOINTS, v_text(test));

	out->items = read_structs(&query, series_columns + 1, sizeof *out->items, &out->count);
}

static void checkpoints(struct tx *tx, void *context)
{
	struct store_checkpoints *call = context;

	store_load_checkpoints(tx, call->test, &call->checkpoints);
}

STORE_DEFINE(checkpoints, .run = checkpoints);

static void add_event(
	struct tx *tx, int64_t change, enum event_kind kind, int64_t now, int64_t point)
{
	event_add(tx, &(struct event){.kind = kind, .time = now, .change = change, .point = point});
}

static void write_end(struct tx *tx, int64_t id, const struct recovered *over)
{
	RUN(tx, STATEMENT_RECOVER, v_id(id), v_time(over->time),
		v_number(over->time != 0 ? over->level : (double)NAN));
}

/* What messages say of the change may differ from what is known now: they are to be edited. */
static void amend(struct tx *tx, int64_t change)
{
	RUN(tx, STATEMENT_AMEND, v_text(rows_id(tx, change)));
}

/* The same if it is much larger or smaller than they say. */
static void amend_size(struct tx *tx, int64_t change, double size)
{
	RUN(tx, STATEMENT_AMEND_GROWN, v_id(change), v_number(size));
	RUN(tx, STATEMENT_GROWN, v_id(change), v_number(size));
}

/* Stores the recovery of a change that is confirmed only now, with its event. */
static void note_end(struct tx *tx, const struct change_record *record, int64_t now)
{
	write_end(tx, record->item.id, &record->item.over);
	if (record->state == CHANGE_RECOVERED)
		add_event(tx, record->item.id, EVENT_RECOVERED, now, record->item.time);
}

static void write_excerpt(struct tx *tx, int64_t id, struct packed_excerpt excerpt)
{
	if (excerpt.length > 0)
		RUN(tx, STATEMENT_EXCERPT, v_id(id), v_bytes(excerpt.bytes, excerpt.length));
}

/* Gives the new records ids, all at once, and returns how many they are. */
static size_t number_records(struct tx *tx, const struct store_record *call)
{
	struct change_record *records = call->records.items;
	struct sql_query query;
	size_t at = 0, count = 0;

	for (size_t i = 0; i < call->records.count; i++)
		count += !records[i].confirmed;
	if (count == 0)
		return 0;
	query = QUERY(tx, STATEMENT_NEXT_CHANGES, v_id((int64_t)count));
	while (query_next(&query)) {
		while (at < call->records.count && records[at].confirmed)
			at++;
		if (at < call->records.count)
			records[at++].item.id = read_id(&query);
	}
	return count;
}

/* What is said of it, and what it belongs to, comes later; no event for its end, which was known
 * when it was found. */
static void insert_record(struct tx *tx, const struct change_record *record)
{
	struct sql_query query = sql_query_of(tx, STATEMENT_WRITE_CHANGES);
	struct change_record row = *record;

	row.updated = record->first_seen;
	row.runs = record->runs > 0 ? record->runs : 1;
	row.environment_event = row.incident = 0;
	row.item.culprit = NULL;
	if (record->state != CHANGE_RECOVERED)
		row.item.over = (struct recovered){.level = (double)NAN};
	bind_row(&query, change_columns, 0, &row);
	query_run(&query);
}

/* Fewer are sooner written one by one. */
enum { LOAD_LEAST = 10 };

static void insert_records(struct tx *tx, const struct record_rows *records, size_t count)
{
	bool load = count >= LOAD_LEAST;

	if (load)
		rows_load_begin(tx, STATEMENT_WRITE_CHANGES);
	for (size_t i = 0; i < records->count; i++)
		if (!records->items[i].confirmed)
			insert_record(tx, &records->items[i]);
	if (load) {
		rows_load_end(tx);
		rows_load_begin(tx, STATEMENT_WRITE_EXCERPTS);
	}
	for (size_t i = 0; i < records->count; i++)
		if (!records->items[i].confirmed && records->items[i].state != CHANGE_CANDIDATE &&
			records->items[i].item.excerpt.length > 0)
			RUN(tx, STATEMENT_WRITE_EXCERPTS, v_id(records->items[i].item.id),
				v_bytes(records->items[i].item.excerpt.bytes,
					records->items[i].item.excerpt.length));
	if (load)
		rows_load_end(tx);
}

static void renew_item(struct tx *tx, int64_t id, const struct announcement *item)
{
	struct sql_query query = QUERY(tx, STATEMENT_RENEW, v_id(id));
	const struct change_record record = {.item = *item};

	bind_row(&query, change_columns, COLUMN_FOUND, &record);
	query_run(&query);
}

/* What a change was before the call, or what became of it in that: one call may be about a change
 * more than once. */
struct former {
	int64_t id;
	enum change_state state; /* 0: there is none */
	int64_t time;
	size_t members;
	struct triage triage; /* its state and sizes; the state is 0 if nobody has said anything */
};

struct formers {
	struct former *items; /* by id */
	size_t count;
};

static int compare_former(const void *key, const void *element)
{
	int64_t id = *(const int64_t *)key;
	const struct former *former = element;

	return (id > former->id) - (id < former->id);
}

/* NULL: there is no such change. */
static struct former *former_of(const struct formers *formers, int64_t id)
{
	return formers->count == 0 ? NULL
				   : bsearch(&id, formers->items, formers->count,
					     sizeof *formers->items, compare_former);
}

static void load_formers(struct tx *tx, const struct store_record *call, struct formers *out)
{
	struct sql_query query;
	struct owners changes = {0};

	for (size_t i = 0; i < call->records.count; i++)
		if (call->records.items[i].confirmed)
			owners_add(&changes, tx, call->records.items[i].item.id, i);
	for (size_t i = 0; i < call->update_count; i++)
		owners_add(&changes, tx, call->updates[i].id, i);
	if (changes.count == 0)
		return;
	query = QUERY(tx, STATEMENT_FORMERS, v_owners(tx, &changes));
	while (query_next(&query)) {
		struct former *former = ADD_ROW(tx, out->items, out->count);

		former->id = read_id(&query);
		former->state = (enum change_state)read_choice(&query, 1, CHANGE_STATES - 1);
		former->time = read_time(&query);
		former->members = (size_t)read_count(&query);
		former->triage.state = (enum triage_state)read_choice(&query, 0, TRIAGE_STATES - 1);
		former->triage.size = read_number(&query);
		former->triage.size_low = read_number(&query);
		former->triage.size_high = read_number(&query);
	}
}

/* Whether anything was said about one of them: nothing else that is recorded can be owed. */
static bool has_triaged(const struct formers *formers)
{
	for (size_t i = 0; i < formers->count; i++)
		if (formers->items[i].triage.state != 0)
			return true;
	return false;
}

/* What is withdrawn or over cannot have outgrown what was accepted. */
static void compare_with_accepted(struct tx *tx, struct former *former, const struct change *change,
	int64_t now, size_t *pending)
{
	if (former->triage.state <= TRIAGE_OPEN ||
		(former->state != CHANGE_CONFIRMED && former->state != CHANGE_MOVED) ||
		!triage_outgrown(&former->triage, change))
		return;
	triage_open_outgrown(tx, former->id, &former->triage, change, now, pending);
	former->triage.state = TRIAGE_OPEN;
}

static void confirm_record(struct tx *tx, const struct change_record *record,
	const struct formers *formers, size_t *pending)
{
	struct former *former = former_of(formers, record->item.id);

	if (!former)
		return;
	former->state = record->state;
	former->time = record->item.time;
	former->members = record->item.members;
	RUN(tx, STATEMENT_CONFIRM, v_id(record->item.id), v_id(record->sign),
		v_time(record->item.time), v_id(record->state), v_id(record->news),
		v_count(record->spacing), v_count(record->runs), v_time(record->updated),
		v_text(record->reason));
	renew_item(tx, record->item.id, &record->item);
	write_excerpt(tx, record->item.id, record->item.excerpt);
	if (record->state != CHANGE_RECOVERED)
		add_event(tx, record->item.id, EVENT_CONFIRMED, record->updated, record->item.time);
	note_end(tx, record, record->updated);
	amend(tx, record->item.id);
	compare_with_accepted(tx, former, &record->item.change, record->updated, pending);
}

/* The event for an update of a change with that state and time; 0: none. */
static enum event_kind event_of(
	enum change_state before, int64_t time_before, const struct change_record_update *update)
{
	if (update->state == CHANGE_WITHDRAWN)
		return before == CHANGE_WITHDRAWN ? 0 : EVENT_WITHDRAWN;
	if (update->state == CHANGE_RECOVERED && before != CHANGE_RECOVERED)
		return EVENT_RECOVERED;
	if (before == CHANGE_WITHDRAWN ||
		(before == CHANGE_RECOVERED && update->state != CHANGE_RECOVERED))
		return EVENT_RETURNED;
	if (before == CHANGE_CANDIDATE && update->state != CHANGE_CANDIDATE)
		return EVENT_CONFIRMED;
	return update->time != time_before ? EVENT_MOVED : 0;
}

/* True if it was withdrawn by this. */
static bool note_update(
	struct tx *tx, const struct change_record_update *update, const struct former *former)
{
	bool stretched = update->item && former->members != update->item->members;
	enum event_kind kind = event_of(former->state, former->time, update);

	if (kind == EVENT_MOVED || kind == EVENT_RETURNED || stretched)
		triage_announce(tx, rows_id(tx, update->id), SAID_UPDATED);
	else if (kind != 0 || update->corrected)
		amend(tx, update->id);
	if (kind != 0)
		add_event(tx, update->id, kind, update->now, update->time);
	return kind == EVENT_WITHDRAWN;
}

static void update_record(struct tx *tx, const struct change_record_update *update,
	const struct formers *formers, size_t *pending)
{
	struct former *former = former_of(formers, update->id);
	bool withdrawn;

	if (!former)
		return;
	withdrawn = note_update(tx, update, former);
	former->state = update->state;
	former->time = update->time;
	former->members = update->item ? update->item->members : former->members;
	RUN(tx, STATEMENT_UPDATE, v_id(update->id), v_time(update->time), v_id(update->state),
		v_time(update->now), v_count(update->runs), v_id(update->silent),
		v_text(update->reason), v_time(update->held_until));
	if (update->state != CHANGE_CANDIDATE)
		write_excerpt(tx, update->id, update->excerpt);
	if (update->over.time != 0)
		write_end(tx, update->id, &update->over);
	if (update->item) {
		renew_item(tx, update->id, update->item);
		amend_size(tx, update->id, update->item->change.size);
		compare_with_accepted(tx, former, &update->item->change, update->now, pending);
	}
	if (update->corrected || withdrawn)
		RUN(tx, STATEMENT_RETRACT, v_id(update->id), v_id(withdrawn ? 1 : 2));
}

static void write_checkpoint(
	struct tx *tx, const char *test, const struct series_checkpoint *checkpoint)
{
	struct sql_query query = QUERY(tx, STATEMENT_CHECKPOINT, v_text(test));

	bind_row(&query, series_columns + 1, 0, checkpoint);
	query_run(&query);
}

static void record_changes(struct tx *tx, struct store_record *call)
{
	struct formers formers = {0};
	size_t count = number_records(tx, call);

	load_formers(tx, call, &formers);
	insert_records(tx, &call->records, count);
	for (size_t i = 0; i < call->records.count; i++)
		if (call->records.items[i].confirmed)
			confirm_record(tx, &call->records.items[i], &formers, &call->renewed);
	for (size_t i = 0; i < call->update_count; i++)
		update_record(tx, &call->updates[i], &formers, &call->renewed);
	if (has_triaged(&formers))
		triage_settle(tx, &call->renewed);
	store_counts(tx);
}

static void record(struct tx *tx, void *context)
{
	struct store_record *call = context;

	for (size_t i = 0; i < call->checkpoints.count;
		i++) /* which leave all counts as they are */
		write_checkpoint(tx, call->test, &call->checkpoints.items[i]);
	if (call->records.count + call->update_count > 0)
		record_changes(tx, call);
}

STORE_DEFINE(record, .run = record, .writes = true);

static bool is_known(struct tx *tx, const char *test, const char *metric)
{
	return (metric ? query_ask(QUERY(tx, STATEMENT_METRIC_KNOWN, v_text(test), v_text(metric)))
		       : query_ask(QUERY(tx, STATEMENT_TEST_KNOWN, v_text(test)))) != 0;
}

/* Parameters: (old, new) for tests, (test, old, new) for metrics. */
static void move(struct tx *tx, const struct store_rename *rename)
{
	static const enum statement tests[] = {STATEMENT_RENAME_CHANGES, STATEMENT_RENAME_SERIES,
		STATEMENT_REPLACE_VANISHED, STATEMENT_RENAME_VANISHED, STATEMENT_REPLACE_CONDITIONS,
		STATEMENT_RENAME_CONDITIONS, STATEMENT_REPLACE_MOMENTS, STATEMENT_RENAME_MOMENTS};
	static const enum statement metrics[] = {STATEMENT_RENAME_METRIC_CHANGES,
		STATEMENT_RENAME_METRIC_SERIES, STATEMENT_REPLACE_METRIC_VANISHED,
		STATEMENT_RENAME_METRIC_VANISHED};
	size_t count =
		rename->metric ? sizeof metrics / sizeof *metrics : sizeof tests / sizeof *tests;

	for (size_t i = 0; i < count; i++)
		if (rename->metric)
			RUN(tx, metrics[i], v_text(rename->test), v_text(rename->was),
				v_text(rename->metric));
		else
			RUN(tx, tests[i], v_text(rename->was), v_text(rename->test));
}

static void rename_all(struct tx *tx, void *context)
{
	struct store_renames *call = context;

	for (size_t i = 0; i < call->rename_count; i++) {
		struct store_rename *rename = &call->renames[i];
		const char *test = rename->metric ? rename->test : rename->was;
		const char *metric = rename->metric ? rename->was : NULL;
		bool known = is_known(tx, test, metric);
		bool taken = is_known(tx, rename->test, rename->metric);

		rename->taken = known && taken;
		rename->moved = known && !taken;
		if (!rename->taken)
			move(tx, rename);
	}
}

STORE_DEFINE(renames, .run = rename_all, .writes = true, .is_long = true);
