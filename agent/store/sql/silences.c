/*
 * A silence is never changed except that it ends, and that its reminder and its summary were
 * queued.
 */
#include "agent/store/sql/read.h"

#include "agent/base/when.h"

/* With id 0 all: all there are, or those that are not over at `now` or not summed. */
static void read_silences(
	struct tx *tx, int64_t id, bool all, int64_t now, struct silence_rows *out)
{
	struct sql_query query = QUERY(tx,
		"SELECT @silences FROM silences WHERE (?1 = 0 OR id = ?1) AND (?2 != 0 OR summed"
		" = 0 OR (ended IS NULL AND until > ?3)) ORDER BY id",
		v_int(id), v_int(all), v_int(now));

	out->items = read_structs(&query, silence_columns, sizeof *out->items, &out->count);
}

void silences_load(struct tx *tx, struct silence_rows *out)
{
	read_silences(tx, 0, false, INT64_MAX, out);
}

STORE_DEFINE(silences)
{
	read_silences(tx, 0, call->all, call->now, &call->silences);
}

static void note(struct tx *tx, const struct store_silence *call, enum event_kind kind)
{
	const struct silence *silence = &call->written;
	char from[WHEN_TEXT], until[WHEN_TEXT];
	struct buf detail = {0};

	buf_printf(&detail, "silence %lld, %s to %s", (long long)silence->id,
		when_format_iso(silence->from, from), when_format_iso(silence->until, until));
	if (silence->owner)
		event_put_text(&detail, "owner", silence->owner);
	if (silence->reason)
		event_put_text(&detail, "reason", silence->reason);
	event_add(tx, &(struct event){.time = call->now,
			      .actor = call->actor,
			      .kind = kind,
			      .subject = silence->matchers,
			      .detail = buf_keep(&detail, tx->arena)});
}

/* Without an id: one with the same words and times. A request that is repeated, as its answer was
 * lost, begins and ends later. */
static const char sql_same[] =
	"SELECT id FROM silences WHERE matchers = ?1 AND (begins = ?2 AND until = ?3"
	/* one that begins at once, repeated within two minutes */
	" OR ?2 = ?7 AND begins = created AND created > ?7 - 120000 AND (until = ?3 OR until -"
	" begins = ?3 - ?2)) AND owner IS NOT DISTINCT FROM ?4 AND reason IS NOT DISTINCT FROM ?5"
	" AND person IS NOT DISTINCT FROM ?6 AND ended IS NULL";

STORE_DEFINE(silence, .writes = true)
{
	const struct silence *silence = &call->silence;
	const struct value words[] = {v_text(silence->matchers), v_int(silence->from),
		v_int(silence->until), v_text(silence->owner), v_text(silence->reason),
		v_text(silence->person), v_int(call->now)};
	const size_t count = sizeof words / sizeof *words;
	int64_t id = silence->id;
	bool ended = false, added = false;
	struct sql_query query;
	struct silence_rows now;

	if (id != 0 && silence->ended != 0)
		ended = CHANGED(tx,
				"UPDATE silences SET ended = ?2, ended_by = ?3 WHERE id = ?1 AND"
				" ended IS NULL",
				v_int(id), v_int(silence->ended), v_text(silence->ended_by)) > 0;
	if (id != 0)
		RUN(tx,
			"UPDATE silences SET reminded = @largest(reminded, ?2), summed ="
			" @largest(summed, ?3) WHERE id = ?1",
			v_int(id), v_int(silence->reminded), v_int(silence->summed));
	else
		id = query_ask(rows_query(tx, sql_same, words, count));
	added = id == 0;
	if (added) {
		query = rows_query(tx,
			"INSERT INTO silences (matchers, begins, until, owner, reason, person,"
			" created) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id",
			words, count);
		id = query_insert(&query);
	}
	read_silences(tx, id, true, 0, &now);
	call->found = now.count > 0;
	if (call->found)
		call->written = now.items[0];
	if (added || ended)
		note(tx, call, added ? EVENT_SILENCED : EVENT_SILENCE_ENDED);
}
