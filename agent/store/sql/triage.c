/*
 * An accepted change that was to be announced is settled, and `owed`: when it is open again, it is
 * pending again. All consequences of a triage are in the same transaction.
 */
#include "agent/store/sql/read.h"

#include "agent/base/order.h"
#include "agent/base/when.h"
#include <inttypes.h>
#include <math.h>

/* In the audit log, without a person. */
static const struct actor itself = {"hunter-c", "agent"};

/* Pending accepted changes become settled and owed; owed ones that are no longer accepted become
 * pending. */
void triage_settle(struct tx *tx, size_t *pending)
{
	RUN(tx, "UPDATE triage SET owed = 1 WHERE" ACCEPTED " AND change IN (SELECT id FROM"
		" changes @indexed{changes_pending} WHERE news = @news{pending})");
	RUN(tx, "UPDATE changes @indexed{changes_pending} SET news = @news{queued} WHERE news ="
		" @news{pending} AND (SELECT owed FROM triage WHERE change = id AND" ACCEPTED ") ="
		" 1");
	*pending += (size_t)CHANGED(tx,
		"UPDATE changes SET news = @news{pending} WHERE news = @news{queued} AND state"
		" @standing AND id IN (SELECT change FROM triage @indexed{triage_owed} WHERE owed"
		" = 1 AND triage < @triage{expected})");
	RUN(tx, "UPDATE triage @indexed{triage_owed} SET owed = 0 WHERE owed = 1 AND triage <"
		" @triage{expected} AND (SELECT news FROM changes WHERE id = change) ="
		" @news{pending}");
}

void triage_amend(struct tx *tx, struct value changes)
{
	RUN(tx,
		"UPDATE deliveries SET @to_amend WHERE" AMENDABLE " AND id"
		" IN (SELECT delivery FROM announced WHERE change IN @ids{?1} UNION"
		/* Those whose headline counts what their threads say. */
		" SELECT first.id FROM announced JOIN deliveries AS more ON more.id = delivery"
		" JOIN deliveries AS first ON first.key = more.thread WHERE change IN @ids{?1})",
		changes);
}

void triage_inherit(struct tx *tx, int64_t change, int64_t incident, const struct triage *inherited)
{
	size_t pending = 0;

	if (CHANGED(tx,
		    "INSERT INTO triage (change, triage, version, until, note, accepted_size,"
		    " accepted_low, accepted_high, person, triaged, inherited, owed) VALUES"
		    " (?1, ?2, 1, nullif(?3, 0), ?4, ?5, ?6, ?7, ?8, ?9, ?10, 1) ON CONFLICT"
		    " (change) DO NOTHING",
		    v_int(change), v_int(inherited->state), v_int(inherited->until),
		    v_text(inherited->note), v_number(inherited->size),
		    v_number(inherited->size_low), v_number(inherited->size_high),
		    v_text(itself.person), v_int(inherited->time), v_int(incident)) > 0) {
		event_add(tx,
			&(struct event){.time = inherited->time,
				.actor = itself,
				.kind = EVENT_TRIAGED,
				.change = change,
				.detail = arena_printf(tx->arena, "%s, inherited from i%" PRId64,
					triage_state_names[inherited->state], incident)});
		return;
	}
	RUN(tx,
		"UPDATE changes SET news = @news{pending}, reason = NULL WHERE id = ?1 AND news ="
		" @news{queued} AND state @standing",
		v_int(change));
	triage_settle(tx, &pending);
}

/* ?1 and ?4: ids from and to, ?2 test, ?3 commit, ?5 further criteria. */
#define SELECTED                                                                                   \
	" changes.id BETWEEN ?1 AND ?4 AND (?2 IS NULL OR @matches{?2,test}) AND (?3 IS NULL OR"   \
	" substr(commit_after, 1, length(?3)) = ?3 OR substr(place_commit_after, 1, length(?3)) =" \
	" ?3 OR @has_suspect)"

/* Adds the changes of the range that the call selects. */
static void select_range(struct tx *tx, const struct store_triage *call,
	const struct id_range *range, struct owners *out)
{
	const char *statement =
		call->message ? "SELECT changes.id FROM deliveries @indexed{deliveries_of_key}"
				" @ordered_join announced @indexed{announced_by} ON delivery = "
				"deliveries.id"
				" @ordered_join changes ON changes.id = announced.change WHERE key "
				"= ?5 AND" SELECTED
		: call->incident
			? "SELECT id FROM changes @indexed{changes_of_incident} WHERE incident ="
			  " ?5 AND state IN (@state{confirmed}, @state{moved}, @state{candidate})"
			  " AND" SELECTED
			/* By ids in any state. */
			: "SELECT id FROM changes WHERE (?5 != 0 OR state IN (@state{confirmed},"
			  " @state{moved}, @state{candidate})) "
			  "AND" SELECTED;
	struct value last = call->message    ? v_text(call->message)
			    : call->incident ? v_int(call->incident)
					     : v_int(call->range_count > 0);

	owners_read(
		out, QUERY(tx, statement, v_int(range->from), v_text(rows_pattern(tx, call->test)),
			     v_text(call->commit), v_int(range->to), last));
}

static const char *said(const char *before, const char *now)
{
	if (!now)
		return before;
	return *now ? now : NULL;
}

/* The change's new triage. */
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
	out.inherited = says->state ? 0 : was->inherited;
	return out;
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

/* "expected, was open; note: bigger cache; until: 2026-11-26T02:23:00Z": the differences. */
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

/* A record and its new triage. */
struct verdict {
	const struct change_record *record;
	struct triage result;
};

/* A row for write_verdicts, as JSON: id, state, version, until, owner, note, link, three sizes, the
 * text of the audit log, and the incident that it was inherited from. */
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
	buf_printf(out, ",%" PRId64 "]", is->inherited);
	buf_free(&detail);
}

static void write_verdicts(struct tx *tx, const struct store_triage *call,
	const struct verdict *verdicts, size_t count)
{
	struct owners changes = {0}, foreign = {0};
	struct buf text = {0};
	struct value rows;

	for (size_t i = 0; i < count; i++) {
		enum triage_state state = verdicts[i].result.state;
		int64_t id = verdicts[i].record->item.id;

		buf_char(&text, i > 0 ? ',' : '[');
		put_row(&text, &verdicts[i]);
		owners_add(&changes, tx, id, i);
		if (triage_is_foreign(state))
			owners_add(&foreign, tx, id, i);
	}
	buf_char(&text, ']');
	rows = v_text(buf_keep(&text, tx->arena));
	RUN(tx,
		"INSERT INTO triage (change, triage, version, until, owner, note, link,"
		" accepted_size, accepted_low, accepted_high, person, triaged, inherited) SELECT"
		" CAST(said.value ->> 0 AS BIGINT), CAST(said.value ->> 1 AS BIGINT),"
		" CAST(said.value ->> 2 AS BIGINT), nullif(CAST(said.value ->> 3 AS BIGINT), 0),"
		" said.value ->> 4, said.value ->> 5, said.value ->> 6, CAST(said.value ->> 7 AS"
		" DOUBLE PRECISION), CAST(said.value ->> 8 AS DOUBLE PRECISION), CAST(said.value"
		" ->> 9 AS DOUBLE PRECISION), ?2, ?3, CAST(said.value ->> 11 AS BIGINT) FROM"
		" @pairs{?1,said} WHERE true ON CONFLICT"
		" (change) DO UPDATE SET triage = excluded.triage, version = excluded.version,"
		" owner = excluded.owner, note = excluded.note, link = excluded.link, person ="
		" excluded.person, triaged = excluded.triaged, until = excluded.until,"
		" accepted_size = excluded.accepted_size, accepted_low = excluded.accepted_low,"
		" accepted_high = excluded.accepted_high, inherited = excluded.inherited",
		rows, v_text(call->actor.person), v_int(call->now));
	triage_amend(tx, v_owners(tx, &changes));
	RUN(tx,
		"UPDATE events SET due = NULL, reason = 'the change is none of the program''s'"
		" WHERE change IN @ids{?1} AND kind = @event{recovered} AND due IS NOT NULL",
		v_owners(tx, &foreign));
	RUN(tx,
		"INSERT INTO events (time, kind, change, point, person, origin, subject, detail,"
		" due) SELECT ?3, @event{triaged}, changes.id, time, ?2, ?4, test || ' ' || metric,"
		" said.value ->> 10, CASE WHEN EXISTS (SELECT 1 FROM announced JOIN deliveries ON"
		" deliveries.id = delivery WHERE announced.change = changes.id AND"
		" deliveries.state != @delivery{abandoned}) THEN ?3 END FROM @pairs{?1,said} "
		"@ordered_join changes ON changes.id ="
		" CAST(said.value ->> 0 AS BIGINT) ORDER BY changes.id",
		rows, v_text(call->actor.person), v_int(call->now), v_text(call->actor.origin));
}

enum { AT_ONCE = 1000 }; /* in a statement */

/* Applies it to all records that it changes. */
static void say_of_all(struct tx *tx, struct store_triage *call)
{
	struct verdict *verdicts = arena_array(tx->arena, call->records.count, sizeof *verdicts);
	int64_t sum = 0;

	for (size_t i = 0; i < call->records.count; i++)
		sum += call->records.items[i].triage.version;
	for (size_t i = 0; i < call->records.count; i++) {
		const struct change_record *record = &call->records.items[i];
		const struct triage *was = &record->triage;
		struct triage result = result_of(call, record);

		if ((result.state == was->state && result.until == was->until &&
			    result.inherited == was->inherited &&
			    order_same(result.owner, was->owner) &&
			    order_same(result.note, was->note) &&
			    order_same(result.link, was->link)) ||
			(call->said != 0 && call->said != was->time))
			continue;
		/* Versions only grow, so that of several their sum is as it was only if each is. */
		call->conflict = call->version >= 0 && call->version != sum;
		if (call->conflict)
			return;
		verdicts[call->changed++] = (struct verdict){record, result};
	}
	for (size_t i = 0; !call->dry_run && i < call->changed; i += AT_ONCE)
		write_verdicts(tx, call, &verdicts[i],
			call->changed - i < AT_ONCE ? call->changed - i : AT_ONCE);
}

STORE_DEFINE(triage, .writes = true, .is_long = true)
{
	static const struct id_range all = {1, ROWS_MOST};
	struct owners selected = {0};

	if (call->range_count == 0 && !call->message && !call->incident && !call->test &&
		!call->commit)
		tx_fail(tx, ERROR_USAGE, "no changes are selected");
	for (size_t i = 0; i < call->range_count; i++) {
		const struct id_range *range = &call->ranges[i];
		size_t before = selected.count;

		select_range(tx, call, range, &selected);
		call->missing |= call->each && range->from == range->to && selected.count == before;
	}
	if (call->range_count == 0)
		select_range(tx, call, &all, &selected);
	owners_sort(&selected, true);
	store_load_records(tx, v_owners(tx, &selected), &call->records);
	for (size_t i = 0; i < call->records.count; i++)
		record_by_clock(&call->records.items[i], call->now);
	if (call->missing)
		return;
	say_of_all(tx, call);
	if (call->dry_run)
		return;
	if (call->reaction && call->message)
		RUN(tx,
			"UPDATE deliveries @indexed{deliveries_of_key} SET reaction = ?2 WHERE"
			" key = ?1 AND state != @delivery{abandoned}",
			v_text(call->message), v_text(call->reaction));
	if (call->changed > 0) {
		triage_settle(tx, &call->pending);
		store_load_records(tx, v_owners(tx, &selected), &call->records);
	}
}

/* Opens the change, with the reason for the audit log, which is taken over. */
static void open_again(struct tx *tx, int64_t id, int64_t now, struct buf *reason)
{
	RUN(tx,
		"UPDATE triage SET triage = @triage{open}, version = version + 1, person = ?2,"
		" triaged = ?3, until = NULL, note = NULL, inherited = 0 WHERE change = ?1",
		v_int(id), v_text(itself.person), v_int(now));
	triage_amend(tx, v_one(tx, id));
	event_add(tx, &(struct event){.time = now,
			      .due = now,
			      .actor = itself,
			      .kind = EVENT_REOPENED,
			      .change = id,
			      .detail = buf_keep(reason, tx->arena)});
}

STORE_DEFINE(reopen_due, .writes = true, .is_long = true)
{
	struct sql_query query = QUERY(tx,
		"SELECT change FROM triage @indexed{triage_until} WHERE until IS NOT NULL AND"
		" until <= ?1",
		v_int(call->now));
	struct owners expired = {0};
	char until[WHEN_TEXT];

	owners_read(&expired, query);
	if (expired.count > 0) {
		store_load_records(tx, v_owners(tx, &expired), &call->records);
		for (size_t i = 0; i < call->records.count; i++) {
			const struct change_record *record = &call->records.items[i];
			struct buf reason = {0};

			buf_printf(&reason, "open, was %s until %s",
				triage_state_names[record->triage.state],
				when_format_iso(record->triage.until, until));
			open_again(tx, record->item.id, call->now, &reason);
		}
		triage_settle(tx, &call->pending);
		store_load_records(tx, v_owners(tx, &expired), &call->records);
	}
	call->next = query_ask(
		QUERY(tx, "SELECT coalesce(min(until), 0) FROM triage @indexed{triage_until}"
			  " WHERE until IS NOT NULL"));
}

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
	RUN(tx,
		/* The change is news again, as if no receiver had it. */
		"UPDATE triage SET renewals = renewals + 1, owed = 0, told_after ="
		" @last_id{deliveries} WHERE change = ?1",
		v_int(id));
	*pending += (size_t)CHANGED(tx,
		"UPDATE changes SET news = @news{pending} WHERE id = ?1 AND news IN"
		" (@news{silent}, @news{queued}) AND state @standing",
		v_int(id));
}
