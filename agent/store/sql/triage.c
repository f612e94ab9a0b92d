/*
 * An accepted change that was to be announced is settled, and `owed`: when it is open again, it is
 * pending again. All that follows from what was said is in the same transaction.
 */
#include "agent/store/sql/triage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/store/sql/audit.h"
#include "agent/store/sql/rows.h"

/* In the audit log, where nobody has said it. */
static const struct actor itself = {"hunter-c", "agent"};

bool triage_settle(struct store_file *file, size_t *pending, struct error *error)
{
	if (!RUN(file, STATEMENT_OWE, error) || !RUN(file, STATEMENT_OWED_SETTLED, error) ||
		!RUN(file, STATEMENT_PAY, error))
		return false;
	*pending += (size_t)file->driver->changed(file);
	return RUN(file, STATEMENT_PAID, error);
}

bool triage_announce(struct store_file *file, int64_t change, unsigned what, struct error *error)
{
	return RUN(file, STATEMENT_SAY, error, v_id(change), v_id(what));
}

/* What is new of its triage is to be shown and said. */
static bool spread(struct store_file *file, int64_t change, struct error *error)
{
	return RUN(file, STATEMENT_AMEND, error, v_id(change)) &&
	       triage_announce(file, change, SAID_TRIAGED, error);
}

/* Adds the changes of the range that the call selects. */
static bool select_range(struct store_file *file, const struct store_triage *call,
	const struct id_range *range, struct owners *out, struct error *error)
{
	struct reader reader = {.binder = bind_to(file, call->message ? STATEMENT_SELECT_MESSAGE
								      : STATEMENT_SELECT),
		.arena = call->call.arena};
	struct binder *binder = &reader.binder;

	bind_integer(binder, range->from);
	bind_text(binder, call->test);
	bind_text(binder, call->commit);
	bind_integer(binder, range->to);
	if (call->message)
		bind_text(binder, call->message);
	else
		bind_integer(binder, call->range_count > 0);
	return owners_read(out, &reader, error);
}

static bool select_all(struct store_file *file, const struct store_triage *call, struct owners *out,
	struct error *error)
{
	static const struct id_range all = {1, ROWS_MOST};

	if (call->range_count == 0 && !call->message && !call->test && !call->commit)
		return error_set(error, ERROR_USAGE, "no changes are selected");
	for (size_t i = 0; i < call->range_count; i++)
		if (!select_range(file, call, &call->ranges[i], out, error))
			return false;
	if (call->range_count == 0 && !select_range(file, call, &all, out, error))
		return false;
	owners_sort(out, true);
	return true;
}

static bool read_selected(struct store_file *file, struct arena *arena,
	const struct owners *selected, struct record_rows *out, struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_RECORDS_OF), .arena = arena};

	bind_owners(&reader.binder, arena, selected);
	return read_records(&reader, out, error);
}

static const char *said(const char *before, const char *now)
{
	if (!now)
		return before;
	return *now ? now : NULL;
}

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* What the change's triage becomes. */
static struct triage result_of(const struct store_triage *call, const struct change_record *record)
{
	const struct triage *was = &record->triage, *says = &call->triage;
	struct triage out = *was;

	out.state = says->state ? says->state : was->state;
	out.owner = said(was->owner, says->owner);
	out.note = said(out.state == was->state ? was->note : NULL, says->note);
	out.link = said(was->link, says->link);
	if (says->until >= 0)
		out.until = says->until;
	else if (out.state != was->state)
		out.until = 0;
	if (out.state == TRIAGE_OPEN)
		out.until = 0;
	if (triage_passes_gates(out.state) && out.state != was->state)
		triage_measure(&out, &record->item.change);
	out.person = call->actor.person;
	out.time = call->now;
	out.version = was->version + 1;
	return out;
}

static bool is_same(const struct triage *a, const struct triage *b)
{
	return a->state == b->state && a->until == b->until && is_same_text(a->owner, b->owner) &&
	       is_same_text(a->note, b->note) && is_same_text(a->link, b->link);
}

static bool write_triage(
	struct store_file *file, int64_t id, const struct triage *triage, struct error *error)
{
	return RUN(file, STATEMENT_TRIAGE, error, v_id(id), v_id(triage->state),
		v_count(triage->version), v_text(triage->owner), v_text(triage->note),
		v_text(triage->link), v_text(triage->person), v_time(triage->time),
		v_time(triage->until), v_number(triage->size), v_number(triage->size_low),
		v_number(triage->size_high));
}

static void put_text(struct buf *out, const char *name, const char *before, const char *now)
{
	if (is_same_text(before, now))
		return;
	if (now)
		audit_put_text(out, name, now);
	else
		buf_printf(out, "; no %s", name);
}

/* "expected, was open; note: bigger cache; until: 2026-11-26T02:23:00Z": what has changed. */
static void put_detail(struct buf *out, const struct triage *was, const struct triage *is)
{
	char before[WHEN_TEXT], now[WHEN_TEXT];

	buf_text(out, triage_state_names[is->state]);
	if (is->state != was->state)
		buf_printf(out, ", was %s", triage_state_names[was->state]);
	put_text(out, "owner", was->owner, is->owner);
	put_text(out, "note", was->note, is->note);
	put_text(out, "link", was->link, is->link);
	put_text(out, "until", was->until != 0 ? when_format_iso(was->until, before) : NULL,
		is->until != 0 ? when_format_iso(is->until, now) : NULL);
}

/* Takes over the detail. */
static bool audit(struct store_file *file, int64_t change, const struct actor *actor,
	const char *action, int64_t now, struct buf *detail, struct error *error)
{
	bool done = audit_add(file,
		&(struct audit_entry){.time = now,
			.actor = *actor,
			.action = action,
			.change = change,
			.detail = detail->data},
		error);

	buf_free(detail);
	return done;
}

/* The recovery of a change that was none of the program's is not told. */
static bool drop_recovery(
	struct store_file *file, int64_t id, enum triage_state state, struct error *error)
{
	return !triage_is_accepted(state) || state == TRIAGE_EXPECTED ||
	       RUN(file, STATEMENT_DROP_RECOVERY, error, v_id(id));
}

static bool say_of(struct store_file *file, const struct store_triage *call,
	const struct change_record *record, const struct triage *result, struct error *error)
{
	struct buf detail = {0};

	put_detail(&detail, &record->triage, result);
	return write_triage(file, record->item.id, result, error) &&
	       spread(file, record->item.id, error) &&
	       drop_recovery(file, record->item.id, result->state, error) &&
	       audit(file, record->item.id, &call->actor, "triage", call->now, &detail, error);
}

/* Whether what is said of the record is news. */
static bool is_news(const struct store_triage *call, const struct change_record *record,
	const struct triage *result)
{
	return !is_same(result, &record->triage) &&
	       (call->said == 0 || call->said == record->triage.time);
}

/* Versions only grow, so that of several changes their sum is as it was only if each is. */
static bool was_seen(const struct store_triage *call)
{
	int64_t sum = 0;

	for (size_t i = 0; i < call->records.count; i++)
		sum += call->records.items[i].triage.version;
	return call->version < 0 || call->version == sum;
}

/* Says it of all records of which it is news. */
static bool say_of_all(struct store_file *file, struct store_triage *call, struct error *error)
{
	bool seen = was_seen(call);

	for (size_t i = 0; i < call->records.count; i++) {
		const struct change_record *record = &call->records.items[i];
		struct triage result = result_of(call, record);

		if (!is_news(call, record, &result))
			continue;
		if (!seen) {
			call->conflict = true;
			return true;
		}
		call->changed++;
		if (!call->dry_run && !say_of(file, call, record, &result, error))
			return false;
	}
	return true;
}

static bool write_reaction(
	struct store_file *file, const struct store_triage *call, struct error *error)
{
	return RUN(file, STATEMENT_REACTION, error, v_text(call->message), v_text(call->reaction));
}

static int compare_id(const void *key, const void *element)
{
	int64_t id = *(const int64_t *)key;
	const struct change_record *record = element;

	return (id > record->item.id) - (id < record->item.id);
}

/* Whether there is a single id without a change. */
static bool lacks_one(const struct store_triage *call)
{
	const struct record_rows *records = &call->records;

	for (size_t i = 0; i < call->range_count; i++)
		if (call->ranges[i].from == call->ranges[i].to &&
			(records->count == 0 ||
				!bsearch(&call->ranges[i].from, records->items, records->count,
					sizeof *records->items, compare_id)))
			return true;
	return false;
}

static bool triage_say(struct store_file *file, void *context, struct error *error)
{
	struct store_triage *call = context;
	struct arena *arena = call->call.arena;
	struct owners selected = {0};

	call->records = (struct record_rows){0};
	call->changed = 0;
	call->pending = 0;
	call->conflict = false;
	if (!select_all(file, call, &selected, error) ||
		!read_selected(file, arena, &selected, &call->records, error))
		return false;
	for (size_t i = 0; i < call->records.count; i++)
		record_by_clock(&call->records.items[i], call->now);
	call->missing = call->each && lacks_one(call);
	if (call->missing)
		return true;
	if (!say_of_all(file, call, error) || (call->reaction && call->message && !call->dry_run &&
						      !write_reaction(file, call, error)))
		return false;
	return call->changed == 0 || call->dry_run ||
	       (triage_settle(file, &call->pending, error) &&
		       read_selected(file, arena, &selected, &call->records, error));
}

const struct store_work store_triage_work = {.run = triage_say, .writes = true, .is_long = true};

/* Opens the change, with the reason for the audit log, which is taken over. */
static bool open_again(
	struct store_file *file, int64_t id, int64_t now, struct buf *reason, struct error *error)
{
	return RUN(file, STATEMENT_OPEN, error, v_id(id), v_text(itself.person), v_time(now)) &&
	       spread(file, id, error) && audit(file, id, &itself, "reopen", now, reason, error);
}

static bool open_expired(
	struct store_file *file, const struct store_reopen_due *call, struct error *error)
{
	for (size_t i = 0; i < call->records.count; i++) {
		const struct change_record *record = &call->records.items[i];
		struct buf reason = {0};
		char until[WHEN_TEXT];

		buf_printf(&reason, "open, was %s until %s",
			triage_state_names[record->triage.state],
			when_format_iso(record->triage.until, until));
		if (!open_again(file, record->item.id, call->now, &reason, error))
			return false;
	}
	return true;
}

static bool triage_reopen_due(struct store_file *file, void *context, struct error *error)
{
	struct store_reopen_due *call = context;
	struct arena *arena = call->call.arena;
	struct reader reader = {.binder = bind_to(file, STATEMENT_EXPIRED), .arena = arena};
	struct owners expired = {0};

	call->pending = 0;
	call->records = (struct record_rows){0};
	bind_time(&reader.binder, call->now);
	if (!owners_read(&expired, &reader, error))
		return false;
	if (expired.count > 0 &&
		(!read_selected(file, arena, &expired, &call->records, error) ||
			!open_expired(file, call, error) ||
			!triage_settle(file, &call->pending, error) ||
			!read_selected(file, arena, &expired, &call->records, error)))
		return false;
	return ASK(file, STATEMENT_NEXT_EXPIRY, &call->next, error);
}

const struct store_work store_reopen_due_work = {
	.run = triage_reopen_due, .writes = true, .is_long = true};

static void put_size(struct buf *out, double size)
{
	if (isnan(size))
		buf_text(out, "an unknown size");
	else
		buf_printf(out, "%+.1f%%", size);
}

bool triage_open_outgrown(struct store_file *file, int64_t id, const struct triage *accepted,
	const struct change *change, int64_t now, size_t *pending, struct error *error)
{
	struct buf reason = {0};

	buf_printf(&reason, "open, was %s: ", triage_state_names[accepted->state]);
	put_size(&reason, change->size);
	buf_text(&reason, ", and ");
	put_size(&reason, accepted->size);
	buf_text(&reason, triage_is_accepted(accepted->state) ? " was accepted" : " was known");
	if (!open_again(file, id, now, &reason, error) ||
		!RUN(file, STATEMENT_RENEW_TRIAGE, error, v_id(id)) ||
		!RUN(file, STATEMENT_RENEW_NEWS, error, v_id(id)))
		return false;
	*pending += (size_t)file->driver->changed(file);
	return true;
}
