/*
 * Performs each kind of writing call; read.c has those that return rows.
 */
#include <math.h>

#include "agent/store/sqlite/audit.h"
#include "agent/store/sqlite/file.h"
#include "agent/store/sqlite/follow_ups.h"
#include "agent/store/sqlite/read.h"
#include "agent/store/sqlite/rows.h"
#include "agent/store/sqlite/silences.h"
#include "agent/store/sqlite/triage.h"

/*
 * Pruning. References are deleted before the rows they point to: links before deliveries, history
 * before changes. A change within its series' range stays, whatever its state: it would be found
 * again and announced.
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
		*count += store_file_changed(file);
	return true;
}

static bool run_plain(
	struct store_file *file, enum statement statement, int64_t *count, struct error *error)
{
	struct binder binder = bind_to(file, statement);

	if (!bind_finish(&binder, error))
		return false;
	if (count)
		*count += store_file_changed(file);
	return true;
}

static bool list_present(struct store_file *file, const struct strings *tests, struct error *error)
{
	if (!run_plain(file, STATEMENT_PRESENT_CLEAR, NULL, error))
		return false;
	for (size_t i = 0; i < tests->count; i++) {
		struct binder binder = bind_to(file, STATEMENT_PRESENT);

		bind_text(&binder, tests->items[i]);
		if (!bind_finish(&binder, error))
			return false;
	}
	return true;
}

static bool doom_untracked(
	struct store_file *file, const struct store_prune *call, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_DOOM_UNTRACKED);

	bind_integer(&binder, call->before);
	bind_integer(&binder, call->thorough ? CHANGE_CONFIRMED : CHANGE_WITHDRAWN);
	return bind_finish(&binder, error);
}

static bool doom(struct store_file *file, const struct store_prune *call, struct error *error)
{
	if (!run_plain(file, STATEMENT_DOOMED_CLEAR, NULL, error) ||
		!run(file, STATEMENT_DOOM_WITHDRAWN, call->before, NULL, error) ||
		!doom_untracked(file, call, error))
		return false;
	if (call->thorough && !run(file, STATEMENT_DOOM_OUTLIVED, call->before, NULL, error))
		return false;
	return call->tests.count == 0 ||
	       (list_present(file, &call->tests, error) &&
		       run(file, STATEMENT_DOOM_ABSENT, call->before, NULL, error));
}

static bool prune_links(
	struct store_file *file, const struct store_prune *call, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_PRUNE_LINKS);

	bind_integer(&binder, call->before);
	bind_text(&binder, follow_ups_names(call->call.arena, &call->keeping));
	return bind_finish(&binder, error);
}

static bool prune(struct store_file *file, struct store_prune *call, struct error *error)
{
	struct pruned *pruned = &call->pruned;
	int64_t before = call->before;

	*pruned = (struct pruned){0};
	return prune_links(file, call, error) &&
	       run(file, STATEMENT_PRUNE_DELIVERIES, before, &pruned->deliveries, error) &&
	       doom(file, call, error) && run_plain(file, STATEMENT_DOOMED_TRIAGE, NULL, error) &&
	       run_plain(file, STATEMENT_DOOMED_EVENTS, &pruned->events, error) &&
	       run_plain(file, STATEMENT_DOOMED_CHANGES, &pruned->changes, error) &&
	       run(file, STATEMENT_PRUNE_EVENTS, before, &pruned->events, error) &&
	       run(file, STATEMENT_PRUNE_VANISHED, before, &pruned->checkpoints, error) &&
	       run(file, STATEMENT_PRUNE_ENDED, before, NULL, error) &&
	       run(file, STATEMENT_PRUNE_ENVIRONMENTS, before, NULL, error) &&
	       run(file, STATEMENT_PRUNE_SILENCES, before, &pruned->silences, error) &&
	       run(file, STATEMENT_PRUNE_AUDIT, before, &pruned->audit, error) &&
	       (call->tests.count == 0 || run(file, STATEMENT_PRUNE_CHECKPOINTS, before,
						  &pruned->checkpoints, error)) &&
	       store_counts(file, &call->counts, error);
}

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

static bool insert_record(
	struct store_file *file, struct change_record *record, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_RECORD);

	bind_text(&binder, record->item.test);
	bind_text(&binder, record->series);
	bind_text(&binder, record->branch);
	bind_integer(&binder, record->sign);
	bind_time(&binder, record->item.time);
	bind_integer(&binder, record->state);
	bind_integer(&binder, record->news);
	bind_time(&binder, record->first_seen);
	bind_count(&binder, record->spacing);
	bind_count(&binder, record->runs > 0 ? record->runs : 1);
	bind_item(&binder, &record->item);
	if (!bind_finish(&binder, error))
		return false;
	record->item.id = store_file_inserted(file);
	/* No event: the recovery was known when the change was found. */
	return record->state != CHANGE_RECOVERED ||
	       write_end(file, record->item.id, &record->item.over, error);
}

static bool renew_item(
	struct store_file *file, int64_t id, const struct announcement *item, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_RENEW);

	bind_integer(&binder, id);
	bind_item(&binder, item);
	return bind_finish(&binder, error);
}

static bool confirm_record(struct store_file *file, const struct change_record *record,
	size_t *pending, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_CONFIRM);

	bind_integer(&binder, record->item.id);
	bind_integer(&binder, record->sign);
	bind_time(&binder, record->item.time);
	bind_integer(&binder, record->state);
	bind_integer(&binder, record->news);
	bind_count(&binder, record->spacing);
	bind_count(&binder, record->runs);
	bind_time(&binder, record->updated);
	return bind_finish(&binder, error) &&
	       renew_item(file, record->item.id, &record->item, error) &&
	       (record->state == CHANGE_RECOVERED ||
		       add_event(file, record->item.id, EVENT_CONFIRMED, record->updated,
			       record->item.time, error)) &&
	       note_end(file, record, record->updated, error) &&
	       amend(file, record->item.id, error) &&
	       triage_compare(file, record->item.id, &record->item.change, record->updated, pending,
		       error);
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
	bool *withdrawn, struct error *error)
{
	struct reader before = {.binder = bind_to(file, STATEMENT_STATE_OF)};
	bool stretched = false;
	enum event_kind kind = 0;

	bind_integer(&before.binder, update->id);
	while (reader_next(&before, error)) {
		enum change_state state =
			(enum change_state)read_choice(&before, 1, CHANGE_STATES - 1);

		kind = event_of(state, read_time(&before), update);
		stretched = update->item && (size_t)read_count(&before) != update->item->members;
	}
	if (before.failed)
		return false;
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
	size_t *pending, struct error *error)
{
	struct binder binder;
	bool withdrawn;

	if (!note_update(file, update, &withdrawn, error))
		return false;
	binder = bind_to(file, STATEMENT_UPDATE);
	bind_integer(&binder, update->id);
	bind_time(&binder, update->time);
	bind_integer(&binder, update->state);
	bind_time(&binder, update->now);
	bind_count(&binder, update->runs);
	bind_integer(&binder, update->silent);
	return bind_finish(&binder, error) &&
	       (update->over.time == 0 || write_end(file, update->id, &update->over, error)) &&
	       (!update->item ||
		       (renew_item(file, update->id, update->item, error) &&
			       amend_size(file, update->id, update->item->change.size, error) &&
			       triage_compare(file, update->id, &update->item->change, update->now,
				       pending, error))) &&
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

static bool record(struct store_file *file, struct store_record *call, struct error *error)
{
	call->renewed = 0;
	for (size_t i = 0; i < call->records.count; i++) {
		struct change_record *at = &call->records.items[i];

		if (!(at->confirmed ? confirm_record(file, at, &call->renewed, error)
				    : insert_record(file, at, error)))
			return false;
	}
	for (size_t i = 0; i < call->update_count; i++)
		if (!update_record(file, &call->updates[i], &call->renewed, error))
			return false;
	for (size_t i = 0; i < call->checkpoints.count; i++)
		if (!write_checkpoint(file, call->test, &call->checkpoints.items[i], error))
			return false;
	return triage_settle(file, &call->renewed, error) &&
	       store_counts(file, &call->counts, error);
}

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
	if (!bind_finish(&binder, error))
		return false;
	delivery->id = store_file_inserted(file);
	delivery->state = DELIVERY_QUEUED;
	if (store_file_changed(file) == 0 && !join_delivery(file, delivery, error))
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

/* Members come after the messages, as silent changes count as announced by them. */
static bool queue(struct store_file *file, struct store_queue *call, struct error *error)
{
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
	return write_health(file, &call->health, error) && store_due(file, &call->due, error);
}

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
	return !reader.failed && store_members(file, arena, delivery, error);
}

static bool attempt(struct store_file *file, struct store_attempt *call, struct error *error)
{
	struct delivery *delivery = &call->delivery;

	if (!run_for(file, STATEMENT_POINTLESS, delivery, true, error))
		return false;
	delivery->state = store_file_changed(file) > 0 ? DELIVERY_ABANDONED : DELIVERY_QUEUED;
	if (!run_for(file,
		    delivery->state == DELIVERY_ABANDONED ? STATEMENT_UNTELL : STATEMENT_ATTEMPT,
		    delivery, delivery->state == DELIVERY_QUEUED, error))
		return false;
	if (delivery->state == DELIVERY_ABANDONED &&
		!run_for(file, STATEMENT_OWE_DELIVERY, delivery, false, error))
		return false;
	return load_payload(file, call->call.arena, delivery, error);
}

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
	call->retracts = store_file_changed(file) > 0;
	if (!store_due(file, &due, error))
		return false;
	call->retracts |= due.said > 0;
	return true;
}

static bool settle(struct store_file *file, struct store_settle *call, struct error *error)
{
	const struct delivery *delivery = &call->delivery;

	return write_outcome(file, delivery, delivery->state, error) &&
	       (delivery->state != DELIVERY_SENT ||
		       (run_for(file, STATEMENT_ARRIVED, delivery, true, error) &&
			       retract_late(file, call, error)));
}

static bool reopen(struct store_file *file, struct store_reopen *call, struct error *error)
{
	const struct delivery_rows *given_up = &call->deliveries;
	size_t pending = 0;

	for (size_t i = 0; i < given_up->count; i++)
		if (!write_outcome(file, &given_up->items[i], DELIVERY_ABANDONED, error) ||
			!run_for(file, STATEMENT_REOPEN, &given_up->items[i], false, error))
			return false;
	return triage_settle(file, &pending, error);
}

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
		STATEMENT_RENAME_VANISHED, STATEMENT_RENAME_CONDITIONS, STATEMENT_RENAME_MOMENTS};
	static const enum statement metrics[] = {STATEMENT_RENAME_METRIC_CHANGES,
		STATEMENT_RENAME_METRIC_SERIES, STATEMENT_RENAME_METRIC_VANISHED};
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

static bool rename_all(struct store_file *file, struct store_renames *call, struct error *error)
{
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

static bool probe(struct store_file *file, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_PROBE);

	return bind_finish(&binder, error);
}

bool store_file_perform(struct store_file *file, struct store_call *call, struct error *error)
{
	switch (call->kind) {
	case STORE_RESTORE: return store_restore(file, (struct store_restore *)call, error);
	case STORE_KNOWN: return store_known(file, (struct store_known *)call, error);
	case STORE_CHECKPOINTS:
		return store_checkpoints(file, (struct store_checkpoints *)call, error);
	case STORE_RECORD: return record(file, (struct store_record *)call, error);
	case STORE_QUEUE: return queue(file, (struct store_queue *)call, error);
	case STORE_PENDING: return store_pending(file, (struct store_pending *)call, error);
	case STORE_REMINDERS: return store_reminders(file, (struct store_reminders *)call, error);
	case STORE_SETTLE: return settle(file, (struct store_settle *)call, error);
	case STORE_ATTEMPT: return attempt(file, (struct store_attempt *)call, error);
	case STORE_REOPEN: return reopen(file, (struct store_reopen *)call, error);
	case STORE_LIST: return store_list(file, (struct store_list *)call, error);
	case STORE_PRUNE: return prune(file, (struct store_prune *)call, error);
	case STORE_RENAMES: return rename_all(file, (struct store_renames *)call, error);
	case STORE_TRIAGE: return triage_say(file, (struct store_triage *)call, error);
	case STORE_REOPEN_DUE:
		return triage_reopen_due(file, (struct store_reopen_due *)call, error);
	case STORE_SILENCE: return silence_write(file, (struct store_silence *)call, error);
	case STORE_SILENCES: return silences_list(file, (struct store_silences *)call, error);
	case STORE_AUDIT: return audit_list(file, (struct store_audit *)call, error);
	case STORE_AUDIT_ADD:
		return audit_add(file, &((struct store_audit_add *)call)->entry, error);
	case STORE_FOLLOW_UPS: return follow_ups_read(file, (struct store_follow_ups *)call, error);
	case STORE_AMENDED: return follow_ups_amended(file, (struct store_amended *)call, error);
	case STORE_SEND_ANEW:
		return follow_ups_send_anew(file, (struct store_send_anew *)call, error);
	case STORE_PROBE: return probe(file, error);
	}
	return error_set(error, ERROR_STATE, "unknown call %d", (int)call->kind);
}
