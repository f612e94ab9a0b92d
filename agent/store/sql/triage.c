/*
 * An accepted change that was to be announced is settled, and `owed`: when it is open again, it is
 * pending again. All that follows from what was said is in the same transaction.
 */
#include "agent/store/sql/triage.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/order.h"
#include "agent/base/when.h"
#include "agent/store/sql/events.h"
#include "agent/store/sql/rows.h"

/* In the audit log, where nobody has said it. */
static const struct actor itself = {"hunter-c", "agent"};

void triage_settle(struct tx *tx, size_t *pending)
{
	RUN(tx, STATEMENT_OWE);
	RUN(tx, STATEMENT_OWED_SETTLED);
	*pending += (size_t)CHANGED(tx, STATEMENT_PAY);
	RUN(tx, STATEMENT_PAID);
}

void triage_announce(struct tx *tx, const char *changes, unsigned what)
{
	RUN(tx, STATEMENT_AMEND, v_text(changes));
	RUN(tx, STATEMENT_SAY, v_text(changes), v_id(what));
}

/* Adds the changes of the range that the call selects. */
static void select_range(struct tx *tx, const struct store_triage *call,
	const struct id_range *range, struct owners *out)
{
	enum statement statement = call->message    ? STATEMENT_SELECT_MESSAGE
				   : call->incident ? STATEMENT_SELECT_INCIDENT
						    : STATEMENT_SELECT;
	struct value last = call->message    ? v_text(call->message)
			    : call->incident ? v_id(call->incident)
					     : v_id(call->range_count > 0);
	struct sql_query query = QUERY(tx, statement, v_id(range->from),
		v_text(rows_pattern(tx, call->test)), v_text(call->commit), v_id(range->to), last);

	owners_read(out, &query);
}

static void select_all(struct tx *tx, const struct store_triage *call, struct owners *out)
{
	static const struct id_range all = {1, ROWS_MOST};

	if (call->range_count == 0 && !call->message && !call->incident && !call->test &&
		!call->commit)
		tx_fail(tx, ERROR_USAGE, "no changes are selected");
	for (size_t i = 0; i < call->range_count; i++)
		select_range(tx, call, &call->ranges[i], out);
	if (call->range_count == 0)
		select_range(tx, call, &all, out);
	owners_sort(out, true);
}

static void read_selected(struct tx *tx, const struct owners *selected, struct record_rows *out)
{
	struct sql_query query = QUERY(tx, STATEMENT_RECORDS_OF, v_owners(tx, selected));

	read_records(&query, out);
}

static const char *said(const char *before, const char *now)
{
	if (!now)
		return before;
	return *now ? now : NULL;
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
	return a->state == b->state && a->until == b->until && order_same(a->owner, b->owner) &&
	       order_same(a->note, b->note) && order_same(a->link, b->link);
}

static void put_text(struct buf *out, const char *name, const char *before, const char *now)
{
	if (order_same(before, now))
		return;
	if (now)
		event_put_text(out, name, now);
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

/* A record of which something is said, and what its triage becomes. */
struct verdict {
	const struct change_record *record;
	struct triage result;
};

/* A row of STATEMENT_TRIAGE, as JSON. */
static void put_row(struct buf *out, const struct verdict *verdict)
{
	const struct triage *is = &verdict->result;
	const char *const texts[] = {is->owner, is->note, is->link};
	const double sizes[] = {is->size, is->size_low, is->size_high};
	struct buf detail = {0};

	buf_printf(out, "[%" PRId64 ",%d,%" PRId64 ",%" PRId64, verdict->record->item.id,
		(int)is->state, is->version, is->until);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		buf_char(out, ',');
		buf_json_text(out, texts[i]);
	}
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		buf_char(out, ',');
		buf_json_number(out, sizes[i]);
	}
	put_detail(&detail, &verdict->record->triage, is);
	buf_char(out, ',');
	buf_json_text(out, detail.data);
	buf_char(out, ']');
	buf_free(&detail);
}

static void write_verdicts(struct tx *tx, const struct store_triage *call,
	const struct verdict *verdicts, size_t count)
{
	struct owners changes = {0}, foreign = {0}; /* foreign: none of the program's */
	struct buf text = {0};
	const char *rows;

	for (size_t i = 0; i < count; i++) {
		enum triage_state state = verdicts[i].result.state;
		int64_t id = verdicts[i].record->item.id;

		buf_char(&text, i > 0 ? ',' : '[');
		put_row(&text, &verdicts[i]);
		owners_add(&changes, tx, id, i);
		if (triage_is_accepted(state) && state != TRIAGE_EXPECTED)
			owners_add(&foreign, tx, id, i);
	}
	buf_char(&text, ']');
	rows = buf_keep(&text, tx->arena);
	RUN(tx, STATEMENT_TRIAGE, v_text(rows), v_text(call->actor.person), v_time(call->now));
	triage_announce(tx, owners_json(tx, &changes, 0, count), SAID_TRIAGED);
	RUN(tx, STATEMENT_DROP_RECOVERY, v_text(owners_json(tx, &foreign, 0, foreign.count)));
	RUN(tx, STATEMENT_TRIAGED, v_text(rows), v_text(call->actor.person), v_time(call->now),
		v_text(call->actor.origin));
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

enum { AT_ONCE = 1000 }; /* in a statement */

/* Says it of all records of which it is news. */
static void say_of_all(struct tx *tx, struct store_triage *call)
{
	struct verdict *verdicts = arena_array(tx->arena, call->records.count, sizeof *verdicts);
	bool seen = was_seen(call);

	for (size_t i = 0; i < call->records.count; i++) {
		const struct change_record *record = &call->records.items[i];
		struct triage result = result_of(call, record);

		if (!is_news(call, record, &result))
			continue;
		if (!seen) {
			call->conflict = true;
			return;
		}
		verdicts[call->changed++] = (struct verdict){record, result};
	}
	for (size_t i = 0; !call->dry_run && i < call->changed; i += AT_ONCE)
		write_verdicts(tx, call, &verdicts[i],
			call->changed - i < AT_ONCE ? call->changed - i : AT_ONCE);
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

static void triage_say(struct tx *tx, void *context)
{
	struct store_triage *call = context;
	struct owners selected = {0};

	select_all(tx, call, &selected);
	read_selected(tx, &selected, &call->records);
	for (size_t i = 0; i < call->records.count; i++)
		record_by_clock(&call->records.items[i], call->now);
	call->missing = call->each && lacks_one(call);
	if (call->missing)
		return;
	say_of_all(tx, call);
	if (call->dry_run)
		return;
	if (call->reaction && call->message)
		RUN(tx, STATEMENT_REACTION, v_text(call->message), v_text(call->reaction));
	if (call->changed > 0) {
		triage_settle(tx, &call->pending);
		read_selected(tx, &selected, &call->records);
	}
}

STORE_DEFINE(triage, .run = triage_say, .writes = true, .is_long = true);

/* Opens the change, with the reason for the audit log, which is taken over. */
static void open_again(struct tx *tx, int64_t id, int64_t now, struct buf *reason)
{
	RUN(tx, STATEMENT_OPEN, v_id(id), v_text(itself.person), v_time(now));
	triage_announce(tx, rows_id(tx, id), SAID_TRIAGED);
	event_add(tx, &(struct event){.time = now,
			      .actor = itself,
			      .kind = EVENT_REOPENED,
			      .change = id,
			      .detail = buf_keep(reason, tx->arena)});
}

static void open_expired(struct tx *tx, const struct store_reopen_due *call)
{
	for (size_t i = 0; i < call->records.count; i++) {
		const struct change_record *record = &call->records.items[i];
		struct buf reason = {0};
		char until[WHEN_TEXT];

		buf_printf(&reason, "open, was %s until %s",
			triage_state_names[record->triage.state],
			when_format_iso(record->triage.until, until));
		open_again(tx, record->item.id, call->now, &reason);
	}
}

static void triage_reopen_due(struct tx *tx, void *context)
{
	struct store_reopen_due *call = context;
	struct sql_query query = QUERY(tx, STATEMENT_EXPIRED, v_time(call->now));
	struct owners expired = {0};

	owners_read(&expired, &query);
	if (expired.count > 0) {
		read_selected(tx, &expired, &call->records);
		open_expired(tx, call);
		triage_settle(tx, &call->pending);
		read_selected(tx, &expired, &call->records);
	}
	call->next = query_ask(QUERY(tx, STATEMENT_NEXT_EXPIRY));
}

STORE_DEFINE(reopen_due, .run = triage_reopen_due, .writes = true, .is_long = true);

static void put_size(struct buf *out, double size)
{
	if (isnan(size))
		buf_text(out, "an unknown size");
	else
		buf_printf(out, "%+.1f%%", size);
}

void triage_open_outgrown(struct tx *tx, int64_t id, const struct triage *accepted,
	const struct change *change, int64_t now, size_t *pending)
{
	struct buf reason = {0};

	buf_printf(&reason, "open, was %s: ", triage_state_names[accepted->state]);
	put_size(&reason, change->size);
	buf_text(&reason, ", and ");
	put_size(&reason, accepted->size);
	buf_text(&reason, triage_is_accepted(accepted->state) ? " was accepted" : " was known");
	open_again(tx, id, now, &reason);
	RUN(tx, STATEMENT_RENEW_TRIAGE, v_id(id));
	*pending += (size_t)CHANGED(tx, STATEMENT_RENEW_NEWS, v_id(id));
}
