/*
 * Changes as runs find them: what is known of a test, what a run records, and other names for what
 * there is.
 */
#include <math.h>
#include <stdlib.h>

#include "agent/store/sql/read.h"
#include "agent/store/sql/rows.h"
#include "agent/store/sql/schema.h"
#include "agent/store/sql/triage.h"

static bool known(struct store_file *file, void *context, struct error *error)
{
	struct store_known *call = context;
	struct reader reader = open_reader(file, call->call.arena, STATEMENT_KNOWN);

	bind_text(&reader.binder, call->test);
	return read_all_known(&reader, &call->records, error);
}

const struct store_work store_known_work = {.run = known};

bool store_load_checkpoints(struct store_file *file, struct arena *arena, const char *test,
	struct checkpoint_rows *out, struct error *error)
{
	struct reader reader = open_reader(file, arena, STATEMENT_CHECKPOINTS);

	bind_text(&reader.binder, test);
	out->items =
		read_structs(&reader, series_columns + 1, sizeof *out->items, &out->count, error);
	return !reader.failed;
}

static bool checkpoints(struct store_file *file, void *context, struct error *error)
{
	struct store_checkpoints *call = context;

	return store_load_checkpoints(
		file, call->call.arena, call->test, &call->checkpoints, error);
}

const struct store_work store_checkpoints_work = {.run = checkpoints};

/* Maximum number of repeatable events per change. */
enum { EVENTS_KEPT = 50 };

static bool add_event(struct store_file *file, int64_t change, enum event_kind kind, int64_t now,
	int64_t point, struct error *error)
{
	return RUN(file, STATEMENT_EVENT, error, v_id(change), v_id(kind), v_time(now),
		       v_time(point)) &&
	       RUN(file, STATEMENT_FORGET_EVENT, error, v_id(change), v_id(EVENTS_KEPT));
}

static bool write_end(
	struct store_file *file, int64_t id, const struct recovered *over, struct error *error)
{
	return RUN(file, STATEMENT_RECOVER, error, v_id(id), v_time(over->time),
		v_number(over->time != 0 ? over->level : (double)NAN));
}

/* What messages say of the change may differ from what is known now: they are to be edited. */
static bool amend(struct store_file *file, int64_t change, struct error *error)
{
	return RUN(file, STATEMENT_AMEND, error, v_id(change));
}

/* The same if it is much larger or smaller than they say. */
static bool amend_size(struct store_file *file, int64_t change, double size, struct error *error)
{
	return RUN(file, STATEMENT_AMEND_GROWN, error, v_id(change), v_number(size)) &&
	       RUN(file, STATEMENT_GROWN, error, v_id(change), v_number(size));
}

/* Stores the recovery of a change that is confirmed only now, with its event. */
static bool note_end(struct store_file *file, const struct change_record *record, int64_t now,
	struct error *error)
{
	return write_end(file, record->item.id, &record->item.over, error) &&
	       (record->state != CHANGE_RECOVERED ||
		       add_event(file, record->item.id, EVENT_RECOVERED, now, record->item.time,
			       error));
}

static bool write_excerpt(
	struct store_file *file, int64_t id, struct packed_excerpt excerpt, struct error *error)
{
	struct binder binder;

	if (excerpt.length == 0)
		return true;
	binder = bind_to(file, STATEMENT_EXCERPT);
	bind_integer(&binder, id);
	bind_bytes(&binder, excerpt.bytes, excerpt.length);
	return bind_finish(&binder, error);
}

/* Gives the new records ids, all at once. */
static bool number_records(
	struct store_file *file, const struct store_record *call, struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_NEXT_CHANGES)};
	struct change_record *records = call->records.items;
	size_t at = 0;
	int64_t count = 0;

	for (size_t i = 0; i < call->records.count; i++)
		count += !records[i].confirmed;
	if (count == 0)
		return true;
	bind_integer(&reader.binder, count);
	while (reader_next(&reader, error)) {
		while (at < call->records.count && records[at].confirmed)
			at++;
		if (at < call->records.count)
			records[at++].item.id = read_id(&reader);
	}
	return !reader.failed;
}

/* What is said of it, and what it belongs to, comes later; no event for its end, which was known
 * when it was found. */
static bool insert_record(
	struct store_file *file, const struct change_record *record, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_WRITE_CHANGES);
	struct change_record row = *record;

	row.updated = record->first_seen;
	row.runs = record->runs > 0 ? record->runs : 1;
	row.environment_event = 0;
	row.item.culprit = NULL;
	if (record->state != CHANGE_RECOVERED)
		row.item.over = (struct recovered){.level = (double)NAN};
	bind_row(&binder, change_columns, 0, &row);
	return bind_finish(&binder, error);
}

/* The same statement many times in a row is what databases are best at. */
static bool insert_records(
	struct store_file *file, const struct record_rows *records, struct error *error)
{
	for (size_t i = 0; i < records->count; i++)
		if (!records->items[i].confirmed && !insert_record(file, &records->items[i], error))
			return false;
	for (size_t i = 0; i < records->count; i++)
		if (!records->items[i].confirmed && records->items[i].state != CHANGE_CANDIDATE &&
			!write_excerpt(file, records->items[i].item.id,
				records->items[i].item.excerpt, error))
			return false;
	return true;
}

static bool renew_item(
	struct store_file *file, int64_t id, const struct announcement *item, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_RENEW);
	const struct change_record record = {.item = *item};

	bind_integer(&binder, id);
	bind_row(&binder, change_columns, COLUMN_FOUND, &record);
	return bind_finish(&binder, error);
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

static bool load_formers(struct store_file *file, const struct store_record *call,
	struct formers *out, struct error *error)
{
	struct reader reader = {
		.binder = bind_to(file, STATEMENT_FORMERS), .arena = call->call.arena};
	struct owners changes = {0};

	for (size_t i = 0; i < call->records.count; i++)
		if (call->records.items[i].confirmed)
			owners_add(&changes, reader.arena, call->records.items[i].item.id, i);
	for (size_t i = 0; i < call->update_count; i++)
		owners_add(&changes, reader.arena, call->updates[i].id, i);
	if (changes.count == 0)
		return true;
	bind_owners(&reader.binder, reader.arena, &changes);
	while (reader_next(&reader, error)) {
		struct former *former;

		out->items = rows_grow(reader.arena, out->items, &out->count, sizeof *former);
		former = &out->items[out->count - 1];
		*former = (struct former){.id = read_id(&reader)};
		former->state = (enum change_state)read_choice(&reader, 1, CHANGE_STATES - 1);
		former->time = read_time(&reader);
		former->members = (size_t)read_count(&reader);
		former->triage.state =
			(enum triage_state)read_choice(&reader, 0, TRIAGE_STATES - 1);
		former->triage.size = read_number(&reader);
		former->triage.size_low = read_number(&reader);
		former->triage.size_high = read_number(&reader);
	}
	return !reader.failed;
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
static bool compare_with_accepted(struct store_file *file, struct former *former,
	const struct change *change, int64_t now, size_t *pending, struct error *error)
{
	if (!former || former->triage.state <= TRIAGE_OPEN ||
		(former->state != CHANGE_CONFIRMED && former->state != CHANGE_MOVED) ||
		!triage_outgrown(&former->triage, change))
		return true;
	if (!triage_open_outgrown(file, former->id, &former->triage, change, now, pending, error))
		return false;
	former->triage.state = TRIAGE_OPEN;
	return true;
}

static bool confirm_record(struct store_file *file, const struct change_record *record,
	const struct formers *formers, size_t *pending, struct error *error)
{
	struct former *former = former_of(formers, record->item.id);

	if (former) {
		former->state = record->state;
		former->time = record->item.time;
		former->members = record->item.members;
	}
	return RUN(file, STATEMENT_CONFIRM, error, v_id(record->item.id), v_id(record->sign),
		       v_time(record->item.time), v_id(record->state), v_id(record->news),
		       v_count(record->spacing), v_count(record->runs), v_time(record->updated)) &&
	       renew_item(file, record->item.id, &record->item, error) &&
	       write_excerpt(file, record->item.id, record->item.excerpt, error) &&
	       (record->state == CHANGE_RECOVERED ||
		       add_event(file, record->item.id, EVENT_CONFIRMED, record->updated,
			       record->item.time, error)) &&
	       note_end(file, record, record->updated, error) &&
	       amend(file, record->item.id, error) &&
	       compare_with_accepted(
		       file, former, &record->item.change, record->updated, pending, error);
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

static bool note_update(struct store_file *file, const struct change_record_update *update,
	const struct former *former, bool *withdrawn, struct error *error)
{
	bool stretched = former && update->item && former->members != update->item->members;
	enum event_kind kind = former ? event_of(former->state, former->time, update) : 0;

	*withdrawn = kind == EVENT_WITHDRAWN;
	if ((kind != 0 || stretched || update->corrected) && !amend(file, update->id, error))
		return false;
	if ((kind == EVENT_MOVED || kind == EVENT_RETURNED || stretched) &&
		!triage_announce(file, update->id, SAID_UPDATED, error))
		return false;
	return kind == 0 || add_event(file, update->id, kind, update->now, update->time, error);
}

static bool update_record(struct store_file *file, const struct change_record_update *update,
	const struct formers *formers, size_t *pending, struct error *error)
{
	struct former *former = former_of(formers, update->id);
	bool withdrawn;

	if (!note_update(file, update, former, &withdrawn, error))
		return false;
	if (former) {
		former->state = update->state;
		former->time = update->time;
		former->members = update->item ? update->item->members : former->members;
	}
	return RUN(file, STATEMENT_UPDATE, error, v_id(update->id), v_time(update->time),
		       v_id(update->state), v_time(update->now), v_count(update->runs),
		       v_id(update->silent)) &&
	       (update->state == CHANGE_CANDIDATE ||
		       write_excerpt(file, update->id, update->excerpt, error)) &&
	       (update->over.time == 0 || write_end(file, update->id, &update->over, error)) &&
	       (!update->item ||
		       (renew_item(file, update->id, update->item, error) &&
			       amend_size(file, update->id, update->item->change.size, error) &&
			       compare_with_accepted(file, former, &update->item->change,
				       update->now, pending, error))) &&
	       ((!update->corrected && !withdrawn) ||
		       RUN(file, STATEMENT_RETRACT, error, v_id(update->id),
			       v_id(withdrawn ? 1 : 2)));
}

static bool write_checkpoint(struct store_file *file, const char *test,
	const struct series_checkpoint *checkpoint, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_CHECKPOINT);

	bind_text(&binder, test);
	bind_row(&binder, series_columns + 1, 0, checkpoint);
	return bind_finish(&binder, error);
}

static bool record_changes(struct store_file *file, struct store_record *call, struct error *error)
{
	struct formers formers = {0};

	if (!number_records(file, call, error) || !load_formers(file, call, &formers, error) ||
		!insert_records(file, &call->records, error))
		return false;
	for (size_t i = 0; i < call->records.count; i++)
		if (call->records.items[i].confirmed &&
			!confirm_record(
				file, &call->records.items[i], &formers, &call->renewed, error))
			return false;
	for (size_t i = 0; i < call->update_count; i++)
		if (!update_record(file, &call->updates[i], &formers, &call->renewed, error))
			return false;
	return (!has_triaged(&formers) || triage_settle(file, &call->renewed, error)) &&
	       store_counts(file, &call->counts, error);
}

static bool record(struct store_file *file, void *context, struct error *error)
{
	struct store_record *call = context;

	call->renewed = 0;
	for (size_t i = 0; i < call->checkpoints.count; i++)
		if (!write_checkpoint(file, call->test, &call->checkpoints.items[i], error))
			return false;
	return !store_record_counts(call) || record_changes(file, call, error);
}

const struct store_work store_record_work = {
	.run = record, .writes = true, .counts = offsetof(struct store_record, counts)};

static bool is_known(struct store_file *file, const char *test, const char *metric, int64_t *known,
	struct error *error)
{
	*known = 0;
	return metric ? ASK(file, STATEMENT_METRIC_KNOWN, known, error, v_text(test),
				v_text(metric))
		      : ASK(file, STATEMENT_TEST_KNOWN, known, error, v_text(test));
}

/* Parameters: (old, new) for tests, (test, old, new) for metrics. */
static bool move(struct store_file *file, const struct store_rename *rename, struct error *error)
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
		if (rename->metric ? !RUN(file, metrics[i], error, v_text(rename->test),
					     v_text(rename->was), v_text(rename->metric))
				   : !RUN(file, tests[i], error, v_text(rename->was),
					     v_text(rename->test)))
			return false;
	return true;
}

static bool rename_all(struct store_file *file, void *context, struct error *error)
{
	struct store_renames *call = context;

	for (size_t i = 0; i < call->rename_count; i++) {
		struct store_rename *rename = &call->renames[i];
		const char *test = rename->metric ? rename->test : rename->was;
		const char *metric = rename->metric ? rename->was : NULL;
		int64_t known, taken;

		if (!is_known(file, test, metric, &known, error) ||
			!is_known(file, rename->test, rename->metric, &taken, error))
			return false;
		rename->taken = known && taken;
		rename->moved = known && !taken;
		if (!rename->taken && !move(file, rename, error))
			return false;
	}
	return true;
}

const struct store_work store_renames_work = {.run = rename_all, .writes = true, .is_long = true};
