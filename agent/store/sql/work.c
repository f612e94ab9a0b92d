/*
 * What a run, the dispatcher and the deliveries write; read.c has what returns rows.
 */
#include <math.h>
#include <stdlib.h>

#include "agent/store/sql/read.h"
#include "agent/store/sql/rows.h"
#include "agent/store/sql/triage.h"

/*
 * Pruning. References are deleted before the rows they point to: links before deliveries, history
 * and bisections before changes. A change within its series' range stays, whatever its state: it
 * would be found again and announced.
 *
 * The anchor of a vanished series never moves. Its checkpoint is deleted when its last point lies
 * before the anchors of the test's growing series; and a change without a checkpoint counts as
 * before its series' anchor if the test has any growing series. Otherwise a test whose label sets
 * come and go would leave rows forever.
 */

_Static_assert(CHANGE_CONFIRMED < CHANGE_MOVED && CHANGE_MOVED < CHANGE_WITHDRAWN &&
		       CHANGE_WITHDRAWN < CHANGE_CANDIDATE && CHANGE_CANDIDATE < CHANGE_RECOVERED,
	"STATEMENT_DOOM_UNTRACKED takes the states from one on");

/* Runs a statement whose only parameter is a time; adds the number of changed rows to `count`. */
static bool run(struct store_file *file, enum statement statement, int64_t before, int64_t *count,
	struct error *error)
{
	struct binder binder = bind_to(file, statement);

	bind_integer(&binder, before);
	if (!bind_finish(&binder, error))
		return false;
	if (count)
		*count += file->driver->changed(file);
	return true;
}

/* Adds the changes that the statement finds, whose first parameter is the time before which they
 * were last written. */
static bool doom_by(struct store_file *file, enum statement statement,
	const struct store_prune *call, struct owners *doomed, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = {.binder = bind_to(file, statement), .arena = arena};

	bind_integer(&reader.binder, call->before);
	if (statement == STATEMENT_DOOM_UNTRACKED)
		bind_integer(&reader.binder, call->thorough ? CHANGE_CONFIRMED : CHANGE_WITHDRAWN);
	else if (statement == STATEMENT_DOOM_ABSENT)
		bind_text(&reader.binder, rows_names(arena, &call->tests));
	return owners_read(doomed, &reader, error);
}

static bool doom(struct store_file *file, const struct store_prune *call, struct owners *doomed,
	struct error *error)
{
	if (!doom_by(file, STATEMENT_DOOM_WITHDRAWN, call, doomed, error) ||
		!doom_by(file, STATEMENT_DOOM_UNTRACKED, call, doomed, error) ||
		(call->thorough && !doom_by(file, STATEMENT_DOOM_OUTLIVED, call, doomed, error)) ||
		(call->tests.count > 0 &&
			!doom_by(file, STATEMENT_DOOM_ABSENT, call, doomed, error)))
		return false;
	owners_sort(doomed, true);
	return true;
}

/* Deletes rows of so many of them from the first on. */
static bool delete_of(struct store_file *file, enum statement statement,
	const struct owners *doomed, size_t first, size_t most, int64_t *count, struct error *error)
{
	struct binder binder = bind_to(file, statement);
	struct arena *scratch = arena_new();
	size_t left = doomed->count - first;
	bool done;

	bind_owners(&binder, scratch, doomed, first, left < most ? left : most);
	done = bind_finish(&binder, error);
	if (done && count)
		*count += file->driver->changed(file);
	arena_free(scratch);
	return done;
}

static bool delete_doomed(struct store_file *file, const struct owners *doomed,
	struct pruned *pruned, struct error *error)
{
	enum { AT_ONCE = 100000 };

	for (size_t i = 0; i < doomed->count; i += AT_ONCE)
		if (!delete_of(file, STATEMENT_DOOMED_TRIAGE, doomed, i, AT_ONCE, NULL, error) ||
			!delete_of(file, STATEMENT_DOOMED_EVENTS, doomed, i, AT_ONCE,
				&pruned->events, error) ||
			!delete_of(
				file, STATEMENT_DOOMED_EXCERPTS, doomed, i, AT_ONCE, NULL, error) ||
			!delete_of(file, STATEMENT_DOOMED_BISECTION_EVENTS, doomed, i, AT_ONCE,
				NULL, error) ||
			!delete_of(file, STATEMENT_DOOMED_BISECTIONS, doomed, i, AT_ONCE, NULL,
				error) ||
			!delete_of(file, STATEMENT_DOOMED_CHANGES, doomed, i, AT_ONCE,
				&pruned->changes, error))
			return false;
	return true;
}

static bool prune_links(
	struct store_file *file, const struct store_prune *call, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_PRUNE_LINKS);

	bind_integer(&binder, call->before);
	bind_text(&binder, rows_names(call->call.arena, &call->keeping));
	return bind_finish(&binder, error);
}

static bool prune_checkpoints(
	struct store_file *file, struct store_prune *call, struct error *error)
{
	struct binder binder;

	if (call->tests.count == 0)
		return true;
	binder = bind_to(file, STATEMENT_PRUNE_CHECKPOINTS);
	bind_integer(&binder, call->before);
	bind_text(&binder, rows_names(call->call.arena, &call->tests));
	if (!bind_finish(&binder, error))
		return false;
	call->pruned.checkpoints += file->driver->changed(file);
	return true;
}

static bool prune(struct store_file *file, void *context, struct error *error)
{
	struct store_prune *call = context;
	struct pruned *pruned = &call->pruned;
	struct owners doomed = {0};
	int64_t before = call->before;

	*pruned = (struct pruned){0};
	return prune_links(file, call, error) &&
	       run(file, STATEMENT_PRUNE_DELIVERIES, before, &pruned->deliveries, error) &&
	       doom(file, call, &doomed, error) && delete_doomed(file, &doomed, pruned, error) &&
	       run(file, STATEMENT_PRUNE_EVENTS, before, &pruned->events, error) &&
	       run(file, STATEMENT_PRUNE_VANISHED, before, &pruned->checkpoints, error) &&
	       run(file, STATEMENT_PRUNE_ENDED, before, NULL, error) &&
	       run(file, STATEMENT_PRUNE_ENVIRONMENTS, before, NULL, error) &&
	       run(file, STATEMENT_PRUNE_SILENCES, before, &pruned->silences, error) &&
	       run(file, STATEMENT_PRUNE_AUDIT, before, &pruned->audit, error) &&
	       run(file, STATEMENT_PRUNE_BISECTION_EVENTS, before, NULL, error) &&
	       prune_checkpoints(file, call, error) && store_counts(file, &call->counts, error);
}

const struct store_work store_prune_work = {.run = prune,
	.writes = true,
	.is_long = true,
	.counts = offsetof(struct store_prune, counts)};

/* Maximum number of repeatable events per change. */
enum { EVENTS_KEPT = 50 };

static bool add_event(struct store_file *file, int64_t change, enum event_kind kind, int64_t now,
	int64_t point, struct error *error)
{
	struct binder event = bind_to(file, STATEMENT_EVENT), forget;

	bind_integer(&event, change);
	bind_integer(&event, kind);
	bind_time(&event, now);
	bind_time(&event, point);
	if (!bind_finish(&event, error))
		return false;
	forget = bind_to(file, STATEMENT_FORGET_EVENT);
	bind_integer(&forget, change);
	bind_integer(&forget, EVENTS_KEPT);
	return bind_finish(&forget, error);
}

static bool write_end(
	struct store_file *file, int64_t id, const struct recovered *over, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_RECOVER);

	bind_integer(&binder, id);
	bind_time(&binder, over->time);
	bind_number(&binder, over->time != 0 ? over->level : (double)NAN);
	return bind_finish(&binder, error);
}

/* What messages say of the change may differ from what is known now: they are to be edited. */
static bool amend(struct store_file *file, int64_t change, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_AMEND);

	bind_integer(&binder, change);
	return bind_finish(&binder, error);
}

/* The same if it is much larger or smaller than they say. */
static bool amend_size(struct store_file *file, int64_t change, double size, struct error *error)
{
	static const enum statement statements[] = {STATEMENT_AMEND_GROWN, STATEMENT_GROWN};

	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
		struct binder binder = bind_to(file, statements[i]);

		bind_integer(&binder, change);
		bind_number(&binder, size);
		if (!bind_finish(&binder, error))
			return false;
	}
	return true;
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
	bind_record(&binder, 0, &row);
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
	bind_record(&binder, COLUMN_FOUND, &record);
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
	bind_owners(&reader.binder, reader.arena, &changes, 0, changes.count);
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
	struct binder binder = bind_to(file, STATEMENT_CONFIRM);

	bind_integer(&binder, record->item.id);
	bind_integer(&binder, record->sign);
	bind_time(&binder, record->item.time);
	bind_integer(&binder, record->state);
	bind_integer(&binder, record->news);
	bind_count(&binder, record->spacing);
	bind_count(&binder, record->runs);
	bind_time(&binder, record->updated);
	if (former) {
		former->state = record->state;
		former->time = record->item.time;
		former->members = record->item.members;
	}
	return bind_finish(&binder, error) &&
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

/* What the messages about the change say no longer holds. */
static bool retract(struct store_file *file, int64_t change, bool withdrawn, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_RETRACT);

	bind_integer(&binder, change);
	bind_integer(&binder, withdrawn ? 1 : 2);
	return bind_finish(&binder, error);
}

static bool update_record(struct store_file *file, const struct change_record_update *update,
	const struct formers *formers, size_t *pending, struct error *error)
{
	struct former *former = former_of(formers, update->id);
	struct binder binder;
	bool withdrawn;

	if (!note_update(file, update, former, &withdrawn, error))
		return false;
	if (former) {
		former->state = update->state;
		former->time = update->time;
		former->members = update->item ? update->item->members : former->members;
	}
	binder = bind_to(file, STATEMENT_UPDATE);
	bind_integer(&binder, update->id);
	bind_time(&binder, update->time);
	bind_integer(&binder, update->state);
	bind_time(&binder, update->now);
	bind_count(&binder, update->runs);
	bind_integer(&binder, update->silent);
	return bind_finish(&binder, error) &&
	       (update->state == CHANGE_CANDIDATE ||
		       write_excerpt(file, update->id, update->excerpt, error)) &&
	       (update->over.time == 0 || write_end(file, update->id, &update->over, error)) &&
	       (!update->item ||
		       (renew_item(file, update->id, update->item, error) &&
			       amend_size(file, update->id, update->item->change.size, error) &&
			       compare_with_accepted(file, former, &update->item->change,
				       update->now, pending, error))) &&
	       ((!update->corrected && !withdrawn) || retract(file, update->id, withdrawn, error));
}

static bool write_checkpoint(struct store_file *file, const char *test,
	const struct series_checkpoint *checkpoint, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_CHECKPOINT);

	bind_text(&binder, test);
	bind_text(&binder, checkpoint->series);
	bind_text(&binder, checkpoint->branch);
	bind_time(&binder, checkpoint->anchor);
	bind_time(&binder, checkpoint->last_point);
	bind_count(&binder, checkpoint->revision);
	bind_time(&binder, checkpoint->revised);
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

static bool amend_stale(struct store_file *file, int64_t delivery, int64_t change, int64_t updated,
	struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_AMEND_STALE);

	bind_integer(&binder, change);
	bind_integer(&binder, delivery);
	bind_time(&binder, updated);
	return bind_finish(&binder, error);
}

/* The change of that number is in the delivery, as its record was when the message was written. */
static bool announce(struct store_file *file, const struct delivery *delivery, size_t number,
	struct error *error)
{
	const struct change_record *as =
		number < delivery->record_count ? &delivery->records[number] : NULL;
	struct binder binder = bind_to(file, STATEMENT_ANNOUNCE);

	bind_integer(&binder, delivery->changes[number]);
	bind_integer(&binder, delivery->id);
	if (as)
		bind_time(&binder, as->item.time);
	else
		bind_null(&binder);
	bind_number(&binder, as ? as->item.change.size : (double)NAN);
	return bind_finish(&binder, error) &&
	       (!as || amend_stale(
			       file, delivery->id, delivery->changes[number], as->updated, error));
}

static bool tell(struct store_file *file, int64_t change, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_TELL);

	bind_integer(&binder, change);
	return bind_finish(&binder, error);
}

/* A delivery with this key is queued or sent already; it covers the changes of this one. */
static bool join_delivery(struct store_file *file, struct delivery *delivery, struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_QUEUED_BEFORE)};

	bind_text(&reader.binder, delivery->key);
	while (reader_next(&reader, error))
		delivery->id = read_id(&reader);
	delivery->state = DELIVERY_SENT;
	return !reader.failed;
}

/* Marks a message about changes of which people have said something already, or that have moved or
 * ended since it was written. */
static bool mark_late(struct store_file *file, int64_t delivery, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_AMEND_LATE);

	bind_integer(&binder, delivery);
	return bind_finish(&binder, error);
}

static bool queue_delivery(struct store_file *file, struct delivery *delivery, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_QUEUE);

	bind_text(&binder, delivery->key);
	bind_text(&binder, delivery->receiver);
	bind_text(&binder, delivery->destination);
	bind_text(&binder, delivery->payload);
	bind_text(&binder, delivery->thread);
	bind_time(&binder, delivery->now);
	bind_text(&binder, delivery->kind);
	if (!bind_insert(&binder, &delivery->id, error))
		return false;
	delivery->state = DELIVERY_QUEUED;
	if (delivery->id == 0 && !join_delivery(file, delivery, error))
		return false;
	for (size_t i = 0; i < delivery->change_count; i++)
		if (!announce(file, delivery, i, error))
			return false;
	return delivery->change_count == 0 || mark_late(file, delivery->id, error);
}

static bool write_condition(
	struct store_file *file, const struct condition *condition, struct error *error)
{
	struct binder binder =
		bind_to(file, condition->over ? STATEMENT_CONDITION_OVER : STATEMENT_CONDITION);

	bind_text(&binder, condition->subject);
	if (!condition->over) {
		bind_integer(&binder, condition->kind);
		bind_time(&binder, condition->since);
		bind_text(&binder, condition->text);
	}
	return bind_finish(&binder, error);
}

static bool write_moment(
	struct store_file *file, const struct store_moment *moment, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_MOMENT);

	bind_text(&binder, moment->name);
	bind_time(&binder, moment->time);
	return bind_finish(&binder, error);
}

static bool write_vanished(
	struct store_file *file, const struct vanished *vanished, struct error *error)
{
	struct binder binder =
		bind_to(file, vanished->back ? STATEMENT_VANISHED_BACK : STATEMENT_VANISHED);

	bind_text(&binder, vanished->test);
	bind_text(&binder, vanished->series);
	if (!vanished->back)
		bind_time(&binder, vanished->ended);
	return bind_finish(&binder, error);
}

static bool write_environment(
	struct store_file *file, const struct environment_event *event, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_ENVIRONMENT);

	bind_integer(&binder, event->id);
	bind_text(&binder, event->label);
	bind_text(&binder, event->value);
	bind_time(&binder, event->time);
	bind_count(&binder, event->spacing);
	bind_count(&binder, (int64_t)event->hit);
	bind_count(&binder, (int64_t)event->total);
	bind_count(&binder, (int64_t)event->up);
	bind_count(&binder, (int64_t)event->down);
	bind_count(&binder, (int64_t)event->worse);
	bind_count(&binder, (int64_t)event->better);
	bind_number(&binder, event->size);
	bind_count(&binder, (int64_t)event->elsewhere);
	bind_count(&binder, (int64_t)event->elsewhere_changed);
	bind_count(&binder, (int64_t)event->told);
	bind_integer(&binder, event->followed);
	bind_time(&binder, event->created);
	return bind_finish(&binder, error);
}

static bool write_member(
	struct store_file *file, const struct store_member *member, struct error *error)
{
	static const enum statement statements[] = {STATEMENT_MEMBER, STATEMENT_MEMBER_TOLD};

	for (size_t i = 0; i < (member->silent ? 2 : 1); i++) {
		struct binder binder = bind_to(file, statements[i]);

		bind_integer(&binder, member->change);
		bind_integer(&binder, member->event);
		if (!bind_finish(&binder, error))
			return false;
	}
	return !member->silent || amend(file, member->change, error);
}

static bool write_health(
	struct store_file *file, const struct health_rows *health, struct error *error)
{
	for (size_t i = 0; i < health->condition_count; i++)
		if (!write_condition(file, &health->conditions[i], error))
			return false;
	for (size_t i = 0; i < health->moment_count; i++)
		if (!write_moment(file, &health->moments[i], error))
			return false;
	for (size_t i = 0; i < health->vanished_count; i++)
		if (!write_vanished(file, &health->vanished[i], error))
			return false;
	return true;
}

static bool retracted(
	struct store_file *file, const struct retraction *retraction, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_RETRACTED);

	bind_integer(&binder, retraction->message.records[0].item.id);
	bind_integer(&binder, retraction->message.id);
	bind_integer(&binder, retraction->corrected ? 2 : 1);
	return bind_finish(&binder, error);
}

static bool said(struct store_file *file, const struct said *at, struct error *error)
{
	const struct change_record *record = &at->message.records[0];
	struct binder binder = bind_to(file, STATEMENT_SAID_DONE);

	bind_integer(&binder, record->item.id);
	bind_integer(&binder, at->message.id);
	bind_integer(&binder, at->what);
	bind_count(&binder, record->triage.version);
	bind_time(&binder, record->item.time);
	return bind_finish(&binder, error);
}

static bool reminded(struct store_file *file, int64_t delivery, int64_t now, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_REMINDED);

	bind_integer(&binder, delivery);
	bind_time(&binder, now);
	return bind_finish(&binder, error);
}

static bool is_health_alone(const struct store_queue *call)
{
	return call->deliveries.count + call->told_count + call->retracted.count +
		       call->said.count + call->environments.count + call->member_count +
		       call->reminded_count ==
	       0;
}

/* Members come after the messages, as silent changes count as announced by them. */
static bool queue(struct store_file *file, void *context, struct error *error)
{
	struct store_queue *call = context;

	call->due = (struct store_due){0};
	for (size_t i = 0; i < call->deliveries.count; i++)
		if (!queue_delivery(file, &call->deliveries.items[i], error))
			return false;
	for (size_t i = 0; i < call->told_count; i++)
		if (!tell(file, call->told[i], error))
			return false;
	for (size_t i = 0; i < call->retracted.count; i++)
		if (!retracted(file, &call->retracted.items[i], error))
			return false;
	for (size_t i = 0; i < call->said.count; i++)
		if (!said(file, &call->said.items[i], error))
			return false;
	for (size_t i = 0; i < call->environments.count; i++)
		if (!write_environment(file, &call->environments.items[i], error))
			return false;
	for (size_t i = 0; i < call->member_count; i++)
		if (!write_member(file, &call->members[i], error))
			return false;
	for (size_t i = 0; i < call->reminded_count; i++)
		if (!reminded(file, call->reminded[i], call->now, error))
			return false;
	return write_health(file, &call->health, error) &&
	       (is_health_alone(call) || store_due(file, &call->due, error));
}

const struct store_work store_queue_work = {.run = queue, .writes = true};

/* Runs a statement about the delivery, optionally with the time. */
static bool run_for(struct store_file *file, enum statement statement,
	const struct delivery *delivery, bool timed, struct error *error)
{
	struct binder binder = bind_to(file, statement);

	bind_integer(&binder, delivery->id);
	if (timed)
		bind_time(&binder, delivery->now);
	return bind_finish(&binder, error);
}

static bool load_payload(struct store_file *file, struct arena *arena, struct delivery *delivery,
	struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_PAYLOAD), .arena = arena};

	delivery->payload = delivery->thread_receipt = NULL;
	bind_integer(&reader.binder, delivery->id);
	while (reader_next(&reader, error)) {
		delivery->payload = read_text(&reader);
		delivery->thread_receipt = read_text(&reader);
	}
	return !reader.failed && store_members(file, arena, delivery, 1, error);
}

static bool attempt(struct store_file *file, void *context, struct error *error)
{
	struct store_attempt *call = context;
	struct delivery *delivery = &call->delivery;

	if (!run_for(file, STATEMENT_POINTLESS, delivery, true, error))
		return false;
	delivery->state = file->driver->changed(file) > 0 ? DELIVERY_ABANDONED : DELIVERY_QUEUED;
	if (!run_for(file,
		    delivery->state == DELIVERY_ABANDONED ? STATEMENT_UNTELL : STATEMENT_ATTEMPT,
		    delivery, delivery->state == DELIVERY_QUEUED, error))
		return false;
	if (delivery->state == DELIVERY_ABANDONED &&
		!run_for(file, STATEMENT_OWE_DELIVERY, delivery, false, error))
		return false;
	call->worst = NULL;
	return load_payload(file, call->call.arena, delivery, error) &&
	       (!call->pictured || delivery->state != DELIVERY_QUEUED ||
		       store_worst(file, call->call.arena, delivery->records,
			       delivery->record_count, &call->worst, error));
}

const struct store_work store_attempt_work = {.run = attempt, .writes = true};

static bool write_outcome(struct store_file *file, const struct delivery *delivery,
	enum delivery_state state, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_SETTLE);

	bind_integer(&binder, delivery->id);
	bind_integer(&binder, state);
	bind_text(&binder, delivery->receipt);
	bind_text(&binder, delivery->problem);
	bind_count(&binder, delivery->attempts);
	bind_time(&binder, delivery->now);
	bind_integer(&binder, delivery->begun);
	bind_time(&binder, delivery->not_before);
	return bind_finish(&binder, error);
}

/* Its changes that were withdrawn meanwhile are to be retracted. */
static bool retract_late(struct store_file *file, struct store_settle *call, struct error *error)
{
	struct store_due due;

	if (!run_for(file, STATEMENT_RETRACT_LATE, &call->delivery, false, error))
		return false;
	call->retracts = file->driver->changed(file) > 0;
	if (!store_due(file, &due, error))
		return false;
	call->retracts |= due.said > 0;
	return true;
}

static bool settle(struct store_file *file, void *context, struct error *error)
{
	struct store_settle *call = context;
	const struct delivery *delivery = &call->delivery;

	return write_outcome(file, delivery, delivery->state, error) &&
	       (delivery->state != DELIVERY_SENT ||
		       (run_for(file, STATEMENT_ARRIVED, delivery, true, error) &&
			       retract_late(file, call, error)));
}

const struct store_work store_settle_work = {.run = settle, .writes = true};

static bool reopen(struct store_file *file, void *context, struct error *error)
{
	struct store_reopen *call = context;
	const struct delivery_rows *given_up = &call->deliveries;
	size_t pending = 0;

	for (size_t i = 0; i < given_up->count; i++)
		if (!write_outcome(file, &given_up->items[i], DELIVERY_ABANDONED, error) ||
			!run_for(file, STATEMENT_REOPEN, &given_up->items[i], false, error))
			return false;
	return triage_settle(file, &pending, error);
}

const struct store_work store_reopen_work = {.run = reopen, .writes = true};

static bool is_known(struct store_file *file, const char *test, const char *metric, bool *known,
	struct error *error)
{
	struct reader reader = {
		.binder = bind_to(file, metric ? STATEMENT_METRIC_KNOWN : STATEMENT_TEST_KNOWN)};

	bind_text(&reader.binder, test);
	if (metric)
		bind_text(&reader.binder, metric);
	*known = false;
	while (reader_next(&reader, error))
		*known = read_choice(&reader, 0, 1) == 1;
	return !reader.failed;
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
	const enum statement *all = rename->metric ? metrics : tests;
	size_t count =
		rename->metric ? sizeof metrics / sizeof *metrics : sizeof tests / sizeof *tests;

	for (size_t i = 0; i < count; i++) {
		struct binder binder = bind_to(file, all[i]);

		if (rename->metric)
			bind_text(&binder, rename->test);
		bind_text(&binder, rename->was);
		bind_text(&binder, rename->metric ? rename->metric : rename->test);
		if (!bind_finish(&binder, error))
			return false;
	}
	return true;
}

static bool rename_all(struct store_file *file, void *context, struct error *error)
{
	struct store_renames *call = context;

	for (size_t i = 0; i < call->rename_count; i++) {
		struct store_rename *rename = &call->renames[i];
		const char *test = rename->metric ? rename->test : rename->was;
		const char *metric = rename->metric ? rename->was : NULL;
		bool known, taken;

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

static bool probe(struct store_file *file, void *context, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_PROBE);

	(void)context;
	return bind_finish(&binder, error);
}

const struct store_work store_probe_work = {.run = probe, .writes = true};
