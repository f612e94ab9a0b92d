/*
 * Whether a lab is free is decided here, in the transaction that begins a bisection: no two run in
 * one lab, not even of different agents.
 */

#include <inttypes.h>

#include "agent/base/buf.h"
#include "agent/store/sql/read.h"

/* The columns of a bisection, in the order of read_rows; from BISECTIONS JOIN CHANGES. */
#define BISECTION_COLUMNS                                                                          \
	"bisections.id, bisections.change, test, metric, lab, bisections.state, asked, begun,"     \
	" ended, bisections.runs, bisections.person, CASE WHEN ?6 != 0 THEN setup ELSE NULL END,"  \
	" outcome, verdict, cancelled, changes.state, coalesce(triage, @triage{open}), culprit"

#define WITH_CHANGE " JOIN changes ON changes.id = bisections.change" WITH_TRIAGE

static const char sql_bisections[] =
	"SELECT " BISECTION_COLUMNS " FROM bisections" WITH_CHANGE
	" WHERE (?1 = 0 OR bisections.id = ?1) AND (?2 = 0 OR bisections.change = ?2) AND (?3 = 0"
	" OR (?3 >> CAST(bisections.state AS INTEGER)) & 1 != 0) AND bisections.id < ?4 ORDER BY"
	" bisections.id DESC LIMIT ?5";

const char *const bisection_state_names[BISECTION_STATES + 1] = {
	[BISECTION_WAITING] = "waiting",
	[BISECTION_RUNNING] = "running",
	[BISECTION_OVER] = "over",
};

/* In the audit log, where the agent does it by itself. */
static const struct actor itself = {"hunter-c", "agent"};

static void read_rows(struct sql_query query, struct bisection_rows *out)
{
	*out = (struct bisection_rows){0};
	while (query_next(&query)) {
		struct bisection_row *row = ADD_ROW(query.tx, out->items, out->count);

		row->id = read_id(&query);
		row->change = read_id(&query);
		row->test = read_name(&query);
		row->metric = read_name(&query);
		row->lab = read_name(&query);
		row->state = (enum bisection_state)read_choice(&query, 1, BISECTION_STATES - 1);
		row->asked = read_time(&query);
		row->begun = read_time_or(&query, 0);
		row->ended = read_time_or(&query, 0);
		row->runs = read_count(&query);
		row->person = read_text(&query);
		row->setup = read_text(&query);
		row->end = read_text(&query);
		row->verdict = read_text(&query);
		row->cancelled = read_text(&query);
		row->change_state = (enum change_state)read_choice(&query, 1, CHANGE_STATES - 1);
		row->triage = (enum triage_state)read_choice(&query, 1, TRIAGE_STATES - 1);
		row->culprit = read_culprit(&query);
	}
}

static void read_one(struct tx *tx, int64_t id, struct bisection_rows *out)
{
	read_rows(QUERY(tx, sql_bisections, v_int(id), v_int(0), v_int(0), v_int(INT64_MAX),
			  v_int(1), v_int(false)),
		out);
}

static void read_lines(struct tx *tx, enum bisection_line_kind kind, struct bisection_row *row)
{
	struct sql_query query = QUERY(tx,
		"SELECT number, kind, run, line FROM bisection_events WHERE bisection = ?1 AND"
		" (?2 = 0 OR kind = ?2) ORDER BY number",
		v_int(row->id), v_int(kind));
	struct bisection_lines *out = &row->lines;

	while (query_next(&query)) {
		struct bisection_line *line = ADD_ROW(tx, out->items, out->count);

		line->number = read_count(&query);
		line->kind = (enum bisection_line_kind)read_choice(&query, 1, BISECTION_LINES - 1);
		line->run = read_count(&query);
		line->text = read_name(&query);
	}
}

STORE_DEFINE(bisections, .lane = STORE_LISTS)
{
	int64_t limit = call->limit > 0 && call->limit < STORE_BISECTIONS_MOST
				? call->limit
				: STORE_BISECTIONS_MOST;
	struct sql_query query;

	read_rows(
		QUERY(tx, sql_bisections, v_int(call->id), v_int(call->change), v_int(call->states),
			v_int(call->before_id > 0 ? call->before_id : INT64_MAX), v_int(limit + 1),
			v_int(call->lines)),
		&call->rows);
	call->more = (int64_t)call->rows.count > limit;
	call->rows.count -= call->more;
	for (size_t i = 0; i < call->rows.count && (call->lines || call->answers); i++)
		read_lines(tx, call->lines ? 0 : BISECTION_ANSWER, &call->rows.items[i]);
	if (call->due_tests.count != 0) {
		query = QUERY(tx,
			"SELECT " RECORD_COLUMNS " FROM @changes_of_tests" WITH_TRIAGE
			" WHERE changes.state @standing AND direction * sign < 0 AND @waiting AND"
			" news != @news{silent} AND members = 0 AND first_seen >= ?2 AND NOT EXISTS"
			" (SELECT 1 FROM bisections WHERE change = changes.id) ORDER BY changes.id",
			v_names(tx, &call->due_tests), v_int(call->due_since));
		read_records(&query, &call->due);
	} else if (call->lines && call->rows.count > 0) {
		store_load_records(tx, v_one(tx, call->rows.items[0].change), &call->due);
	}
}

/* `report`: receivers that have the change are notified. */
static void note(struct tx *tx, int64_t change, int64_t now, const struct actor *actor,
	enum event_kind kind, const char *detail, bool report)
{
	event_add(tx, &(struct event){.time = now,
			      .due = report ? now : 0,
			      .actor = actor->person ? *actor : itself,
			      .kind = kind,
			      .change = change,
			      .detail = detail});
}

STORE_DEFINE(bisection_ask, .writes = true)
{
	struct sql_query query = QUERY(tx,
		/* Whether it stands */
		"SELECT CASE WHEN changes.state @standing AND @waiting THEN 1 ELSE"
		" 0 END FROM changes" WITH_TRIAGE " WHERE changes.id = ?1",
		v_int(call->change));
	int64_t id;

	call->missing = true;
	while (query_next(&query)) {
		call->missing = false;
		call->refused = !read_flag(&query);
	}
	if (call->missing || call->refused)
		return;
	id = query_ask(QUERY(tx,
		/* One of the change, ?2: in any state */
		"SELECT id FROM bisections WHERE change = ?1 AND (?2 != 0 OR state !="
		" @bisection{over}) ORDER BY id DESC LIMIT 1",
		v_int(call->change), v_int(!call->actor.person)));
	call->added = id == 0;
	if (call->added) {
		query = QUERY(tx,
			"INSERT INTO bisections (change, lab, state, asked, runs, person) VALUES"
			" (?1, ?2, @bisection{waiting}, ?3, 0, ?4) RETURNING id",
			v_int(call->change), v_text(call->lab), v_int(call->now),
			v_text(call->actor.person));
		id = query_insert(&query);
		note(tx, call->change, call->now, &call->actor, EVENT_BISECTION_ASKED,
			arena_printf(tx->arena, "bisection %" PRId64 ", lab %s", id, call->lab),
			false);
	}
	read_one(tx, id, &call->rows);
}

STORE_DEFINE(bisection_begin, .writes = true)
{
	call->begun =
		CHANGED(tx,
			"UPDATE bisections SET state = @bisection{running}, begun = ?2 WHERE id ="
			" ?1 AND state = @bisection{waiting} AND NOT EXISTS (SELECT 1 FROM"
			" bisections AS other WHERE other.lab = bisections.lab AND other.state ="
			" @bisection{running}) AND (SELECT count(*) FROM bisections AS other JOIN"
			" changes ON changes.id = other.change WHERE other.begun >= ?3 AND"
			" other.runs > 0 AND changes.test = (SELECT test FROM changes AS own WHERE"
			" own.id = bisections.change)) < ?4",
			v_int(call->bisection), v_int(call->now), v_int(call->since),
			v_int(call->most)) > 0;
	read_one(tx, call->bisection, &call->rows);
}

static void add_line(struct tx *tx, int64_t id, const struct bisection_line *line)
{
	if (line->kind == BISECTION_RESULT)
		RUN(tx,
			"DELETE FROM bisection_events WHERE bisection = ?1 AND run = ?2 AND kind"
			" = @line{answer}",
			v_int(id), v_int(line->run));
	RUN(tx,
		"INSERT INTO bisection_events SELECT ?1, coalesce(max(number), 0) + 1, ?2, ?3, ?4"
		" FROM bisection_events WHERE bisection = ?1",
		v_int(id), v_int(line->kind), v_int(line->run), v_text(line->text));
}

static void end(struct tx *tx, struct store_bisection_write *call)
{
	int64_t change = call->rows.items[0].change;
	struct buf text = {0};

	RUN(tx,
		"UPDATE bisections SET state = @bisection{over}, ended = ?2, outcome = ?3, verdict"
		" = ?4, cancelled = coalesce(?5, cancelled) WHERE id = ?1 AND state !="
		" @bisection{over}",
		v_int(call->bisection), v_int(call->now), v_text(call->end), v_text(call->verdict),
		v_text(call->cancelled));
	if (call->culprit) {
		culprit_put(&text, call->culprit);
		RUN(tx, "UPDATE changes SET culprit = ?2 WHERE id = ?1", v_int(change),
			v_text(buf_keep(&text, tx->arena)));
		triage_amend(tx, v_one(tx, change));
	}
	note(tx, change, call->now, &itself, EVENT_BISECTION_ENDED,
		arena_printf(tx->arena, "bisection %" PRId64 ", %s%s%s", call->bisection, call->end,
			call->verdict ? ": " : "", call->verdict ? call->verdict : ""),
		call->culprit);
}

STORE_DEFINE(bisection_write, .writes = true)
{
	int64_t runs = 0;

	for (size_t i = 0; i < call->line_count; i++)
		runs += call->lines[i].kind == BISECTION_RESULT;
	call->gone = CHANGED(tx,
			     /* One that runs; ?2 NULL: as it is, ?3 how many runs have ended */
			     "UPDATE bisections SET setup = coalesce(?2, setup), runs = runs + ?3"
			     " WHERE id = ?1 AND state = @bisection{running}",
			     v_int(call->bisection), v_text(call->setup), v_int(runs)) == 0;
	if (call->gone)
		return;
	for (size_t i = 0; i < call->line_count; i++)
		add_line(tx, call->bisection, &call->lines[i]);
	read_one(tx, call->bisection, &call->rows);
	if (call->end && call->rows.count > 0) {
		end(tx, call);
		read_one(tx, call->bisection, &call->rows);
	}
}

static void cancel(struct tx *tx, struct store_bisection_say *call)
{
	call->taken =
		CHANGED(tx,
			"UPDATE bisections SET cancelled = coalesce(cancelled, ?2), state = CASE"
			" WHEN state = @bisection{waiting} THEN @bisection{over} ELSE state END,"
			" ended = CASE WHEN state = @bisection{waiting} THEN ?3 ELSE ended END,"
			" outcome = CASE WHEN state = @bisection{waiting} THEN 'cancelled' ELSE"
			" outcome END WHERE id = ?1 AND state != @bisection{over}",
			v_int(call->bisection), v_text(call->why), v_int(call->now)) > 0;
	if (call->taken)
		note(tx, call->rows.items[0].change, call->now, &call->actor,
			EVENT_BISECTION_CANCELLED,
			arena_printf(tx->arena, "bisection %" PRId64, call->bisection), false);
}

static void answer(struct tx *tx, struct store_bisection_say *call)
{
	struct sql_query query = QUERY(tx,
		/* State of run ?2: begun; it has an answer or a result */
		"SELECT count(CASE WHEN kind = @line{begin} THEN 1 END), count(CASE WHEN kind IN"
		" (@line{result}, @line{answer}) THEN 1 END) FROM bisection_events WHERE bisection"
		" = ?1 AND run = ?2",
		v_int(call->bisection), v_int(call->line.run));
	int64_t begun = 0, answered = 0;

	while (query_next(&query)) {
		begun = read_count(&query);
		answered = read_count(&query);
	}
	call->repeated = answered > 0;
	call->taken = call->rows.items[0].state == BISECTION_RUNNING && begun > 0 && answered == 0;
	if (call->taken)
		add_line(tx, call->bisection, &call->line);
}

STORE_DEFINE(bisection_say, .writes = true)
{
	read_one(tx, call->bisection, &call->rows);
	call->found = call->rows.count > 0;
	if (!call->found)
		return;
	if (call->cancel)
		cancel(tx, call);
	else
		answer(tx, call);
	read_one(tx, call->bisection, &call->rows);
}
