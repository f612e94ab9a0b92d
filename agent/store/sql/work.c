/*
 * What a run, the dispatcher and the deliveries write; read.c has what returns rows.
 */
#include <math.h>
#include <stdlib.h>

#include "agent/store/sql/read.h"
#include "agent/store/sql/rows.h"
#include "agent/store/sql/schema.h"
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

/* Deletes what is before the time, and not of these names if there are any; adds the number of rows
 * to `count`. */
static bool delete_before(struct store_file *file, enum statement statement, int64_t before,
	const char *names, int64_t *count, struct error *error)
{
	bool done = names ? RUN(file, statement, error, v_id(before), v_text(names))
			  : RUN(file, statement, error, v_id(before));

	if (done && count)
		*count += file->driver->changed(file);
	return done;
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

/* What refers to a change is deleted before it. */
static bool delete_doomed(struct store_file *file, const struct owners *doomed,
	struct pruned *pruned, struct error *error)
{
	enum { AT_ONCE = 100000 };
	static const enum statement statements[] = {STATEMENT_DOOMED_TRIAGE,
		STATEMENT_DOOMED_EXCERPTS, STATEMENT_DOOMED_BISECTION_EVENTS,
		STATEMENT_DOOMED_BISECTIONS, STATEMENT_DOOMED_EVENTS, STATEMENT_DOOMED_CHANGES};
	enum { ALL = sizeof statements / sizeof *statements };
	int64_t *const counts[ALL] = {[ALL - 2] = &pruned->events, [ALL - 1] = &pruned->changes};
	bool done = true;

	for (size_t i = 0; done && i < doomed->count; i += AT_ONCE) {
		size_t left = doomed->count - i;
		struct arena *scratch = arena_new();
		const char *ids = owners_json(scratch, doomed, i, left < AT_ONCE ? left : AT_ONCE);

		for (size_t j = 0; done && j < ALL; j++) {
			done = RUN(file, statements[j], error, v_text(ids));
			if (done && counts[j])
				*counts[j] += file->driver->changed(file);
		}
		arena_free(scratch);
	}
	return done;
}

static bool prune(struct store_file *file, void *context, struct error *error)
{
	struct store_prune *call = context;
	struct pruned *pruned = &call->pruned;
	struct owners doomed = {0};
	int64_t before = call->before;
	const struct {
		enum statement statement;
		int64_t *count;
	} old[] = {{STATEMENT_PRUNE_EVENTS, &pruned->events},
		{STATEMENT_PRUNE_VANISHED, &pruned->checkpoints}, {STATEMENT_PRUNE_ENDED, NULL},
		{STATEMENT_PRUNE_ENVIRONMENTS, NULL}, {STATEMENT_PRUNE_SILENCES, &pruned->silences},
		{STATEMENT_PRUNE_AUDIT, &pruned->audit}, {STATEMENT_PRUNE_BISECTION_EVENTS, NULL}};
	const char *tests = rows_names(call->call.arena, &call->tests);
	const char *keeping = rows_names(call->call.arena, &call->keeping);

	*pruned = (struct pruned){0};
	if (!delete_before(file, STATEMENT_PRUNE_LINKS, before, keeping, NULL, error) ||
		!delete_before(file, STATEMENT_PRUNE_DELIVERIES, before, NULL, &pruned->deliveries,
			error) ||
		!doom(file, call, &doomed, error) || !delete_doomed(file, &doomed, pruned, error))
		return false;
	for (size_t i = 0; i < sizeof old / sizeof *old; i++)
		if (!delete_before(file, old[i].statement, before, NULL, old[i].count, error))
			return false;
	return (call->tests.count == 0 || delete_before(file, STATEMENT_PRUNE_CHECKPOINTS, before,
						  tests, &pruned->checkpoints, error)) &&
	       store_counts(file, &call->counts, error);
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

/* The change of that number is in the delivery, as its record was when the message was written. */
static bool announce(struct store_file *file, const struct delivery *delivery, size_t number,
	struct error *error)
{
	const struct change_record *as =
		number < delivery->record_count ? &delivery->records[number] : NULL;
	int64_t change = delivery->changes[number];

	if (!RUN(file, STATEMENT_ANNOUNCE, error, v_id(change), v_id(delivery->id),
		    as ? v_time(as->item.time) : v_null(),
		    v_number(as ? as->item.change.size : (double)NAN)))
		return false;
	return !as || RUN(file, STATEMENT_AMEND_STALE, error, v_id(change), v_id(delivery->id),
			      v_time(as->updated));
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
	if (delivery->id == 0) { /* one with this key is queued or sent: it covers the changes */
		delivery->state = DELIVERY_SENT;
		if (!ASK(file, STATEMENT_QUEUED_BEFORE, &delivery->id, error,
			    v_text(delivery->key)))
			return false;
	}
	for (size_t i = 0; i < delivery->change_count; i++)
		if (!announce(file, delivery, i, error))
			return false;
	/* People may have said something already, or the changes moved or ended meanwhile. */
	return delivery->change_count == 0 ||
	       RUN(file, STATEMENT_AMEND_LATE, error, v_id(delivery->id));
}

static bool write_condition(
	struct store_file *file, const struct condition *condition, struct error *error)
{
	if (condition->over)
		return RUN(file, STATEMENT_CONDITION_OVER, error, v_text(condition->subject));
	return RUN(file, STATEMENT_CONDITION, error, v_text(condition->subject),
		v_id(condition->kind), v_time(condition->since), v_text(condition->text));
}

static bool write_vanished(
	struct store_file *file, const struct vanished *vanished, struct error *error)
{
	if (vanished->back)
		return RUN(file, STATEMENT_VANISHED_BACK, error, v_text(vanished->test),
			v_text(vanished->series));
	return RUN(file, STATEMENT_VANISHED, error, v_text(vanished->test),
		v_text(vanished->series), v_time(vanished->ended));
}

static bool write_environment(
	struct store_file *file, const struct environment_event *event, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_ENVIRONMENT);

	bind_row(&binder, environment_columns, 0, event);
	return bind_finish(&binder, error);
}

static bool write_member(
	struct store_file *file, const struct store_member *member, struct error *error)
{
	struct value change = v_id(member->change), event = v_id(member->event);

	return RUN(file, STATEMENT_MEMBER, error, change, event) &&
	       (!member->silent || (RUN(file, STATEMENT_MEMBER_TOLD, error, change, event) &&
					   amend(file, member->change, error)));
}

static bool write_health(
	struct store_file *file, const struct health_rows *health, struct error *error)
{
	for (size_t i = 0; i < health->condition_count; i++)
		if (!write_condition(file, &health->conditions[i], error))
			return false;
	for (size_t i = 0; i < health->moment_count; i++)
		if (!RUN(file, STATEMENT_MOMENT, error, v_text(health->moments[i].name),
			    v_time(health->moments[i].time)))
			return false;
	for (size_t i = 0; i < health->vanished_count; i++)
		if (!write_vanished(file, &health->vanished[i], error))
			return false;
	return true;
}

static bool retracted(
	struct store_file *file, const struct retraction *retraction, struct error *error)
{
	return RUN(file, STATEMENT_RETRACTED, error, v_id(retraction->message.records[0].item.id),
		v_id(retraction->message.id), v_id(retraction->corrected ? 2 : 1));
}

static bool said(struct store_file *file, const struct said *at, struct error *error)
{
	const struct change_record *record = &at->message.records[0];

	return RUN(file, STATEMENT_SAID_DONE, error, v_id(record->item.id), v_id(at->message.id),
		v_id(at->what), v_count(record->triage.version), v_time(record->item.time));
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
		if (!RUN(file, STATEMENT_TELL, error, v_id(call->told[i])))
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
		if (!RUN(file, STATEMENT_REMINDED, error, v_id(call->reminded[i]),
			    v_time(call->now)))
			return false;
	return write_health(file, &call->health, error) &&
	       (is_health_alone(call) || store_due(file, &call->due, error));
}

const struct store_work store_queue_work = {.run = queue, .writes = true};

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

	if (!RUN(file, STATEMENT_POINTLESS, error, v_id(delivery->id), v_time(delivery->now)))
		return false;
	delivery->state = file->driver->changed(file) > 0 ? DELIVERY_ABANDONED : DELIVERY_QUEUED;
	if (delivery->state == DELIVERY_QUEUED &&
		!RUN(file, STATEMENT_ATTEMPT, error, v_id(delivery->id), v_time(delivery->now)))
		return false;
	if (delivery->state == DELIVERY_ABANDONED &&
		(!RUN(file, STATEMENT_UNTELL, error, v_id(delivery->id)) ||
			!RUN(file, STATEMENT_OWE_DELIVERY, error, v_id(delivery->id))))
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
	return RUN(file, STATEMENT_SETTLE, error, v_id(delivery->id), v_id(state),
		v_text(delivery->receipt), v_text(delivery->problem), v_count(delivery->attempts),
		v_time(delivery->now), v_id(delivery->begun), v_time(delivery->not_before));
}

/* Its changes that were withdrawn meanwhile are to be retracted. */
static bool retract_late(struct store_file *file, struct store_settle *call, struct error *error)
{
	struct store_due due;

	if (!RUN(file, STATEMENT_RETRACT_LATE, error, v_id(call->delivery.id)))
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
		       (RUN(file, STATEMENT_ARRIVED, error, v_id(delivery->id),
				v_time(delivery->now)) &&
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
			!RUN(file, STATEMENT_REOPEN, error, v_id(given_up->items[i].id)))
			return false;
	return triage_settle(file, &pending, error);
}

const struct store_work store_reopen_work = {.run = reopen, .writes = true};

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

static bool probe(struct store_file *file, void *context, struct error *error)
{
	(void)context;
	return RUN(file, STATEMENT_PROBE, error);
}

const struct store_work store_probe_work = {.run = probe, .writes = true};
