/*
 * Whether a lab is free is decided here, in the transaction that begins a bisection: no two run in
 * one lab, whoever begins them.
 */

#include <inttypes.h>

#include "agent/base/buf.h"
#include "agent/store/sql/events.h"
#include "agent/store/sql/rows.h"
#include "agent/store/sql/triage.h"

const char *const bisection_state_names[BISECTION_STATES + 1] = {
	[BISECTION_WAITING] = "waiting",
	[BISECTION_RUNNING] = "running",
	[BISECTION_OVER] = "over",
};

/* In the audit log, where the agent does it by itself. */
static const struct actor itself = {"hunter-c", "agent"};

static void read_row(struct sql_query *query, struct bisection_row *row)
{
	*row = (struct bisection_row){.id = read_id(query)};
	row->change = read_id(query);
	row->test = read_name(query);
	row->metric = read_name(query);
	row->lab = read_name(query);
	row->state = (enum bisection_state)read_choice(query, 1, BISECTION_STATES - 1);
	row->asked = read_time(query);
	row->begun = read_time_or(query, 0);
	row->ended = read_time_or(query, 0);
	row->runs = read_count(query);
	row->person = read_text(query);
	row->setup = read_text(query);
	row->end = read_text(query);
	row->verdict = read_text(query);
	row->cancelled = read_text(query);
	row->change_state = (enum change_state)read_choice(query, 1, CHANGE_STATES - 1);
	row->triage = (enum triage_state)read_choice(query, 1, TRIAGE_STATES - 1);
	row->culprit = read_culprit(query);
}

static void read_rows(struct sql_query query, struct bisection_rows *out)
{
	*out = (struct bisection_rows){0};
	while (query_next(&query)) {
		read_row(&query, ADD_ROW(query.tx, out->items, out->count));
	}
}

static void read_one(struct tx *tx, int64_t id, struct bisection_rows *out)
{
	read_rows(QUERY(tx, STATEMENT_BISECTIONS, v_id(id), v_id(0), v_id(0), v_id(INT64_MAX),
			  v_id(1), v_id(false)),
		out);
}

static void read_lines(struct tx *tx, enum bisection_line_kind kind, struct bisection_row *row)
{
	struct sql_query query = QUERY(tx, STATEMENT_BISECTION_LINES, v_id(row->id), v_id(kind));
	struct bisection_lines *out = &row->lines;

	while (query_next(&query)) {
		struct bisection_line *line = ADD_ROW(tx, out->items, out->count);

		line->number = read_count(&query);
		line->kind = (enum bisection_line_kind)read_choice(&query, 1, BISECTION_LINES - 1);
		line->run = read_count(&query);
		line->text = read_name(&query);
	}
}

static void read_due(struct tx *tx, struct store_bisections *call)
{
	struct sql_query query = QUERY(tx, STATEMENT_BISECTIONS_DUE,
		v_text(rows_names(tx, &call->due_tests)), v_id(call->due_since));

	read_records(&query, &call->due);
}

static void bisections_list(struct tx *tx, void *context)
{
	struct store_bisections *call = context;
	int64_t limit = call->limit > 0 && call->limit < STORE_BISECTIONS_MOST
				? call->limit
				: STORE_BISECTIONS_MOST;

	read_rows(
		QUERY(tx, STATEMENT_BISECTIONS, v_id(call->id), v_id(call->change),
			v_id(call->states), v_id(call->before_id > 0 ? call->before_id : INT64_MAX),
			v_id(limit + 1), v_id(call->lines)),
		&call->rows);
	call->more = (int64_t)call->rows.count > limit;
	call->rows.count -= call->more;
	call->last = call->rows.count > 0 ? call->rows.items[0].id : 0;
	for (size_t i = 0; i < call->rows.count && (call->lines || call->answers); i++)
		read_lines(tx, call->lines ? 0 : BISECTION_ANSWER, &call->rows.items[i]);
	if (call->due_tests.count != 0)
		read_due(tx, call);
}

STORE_DEFINE(bisections, .run = bisections_list, .lane = STORE_LISTS);

static void note(struct tx *tx, int64_t change, int64_t now, const struct actor *actor,
	enum event_kind kind, const char *detail)
{
	event_add(tx, &(struct event){.time = now,
			      .actor = actor->person ? *actor : itself,
			      .kind = kind,
			      .change = change,
			      .detail = detail});
}

static void check_change(struct tx *tx, struct store_bisection_ask *call)
{
	struct sql_query query = QUERY(tx, STATEMENT_BISECTION_CHANGE, v_id(call->change));

	call->missing = true;
	while (query_next(&query)) {
		call->missing = false;
		call->refused = !read_flag(&query);
	}
}

static int64_t add(struct tx *tx, struct store_bisection_ask *call)
{
	struct sql_query query = QUERY(tx, STATEMENT_BISECTION_ADD, v_id(call->change),
		v_text(call->lab), v_time(call->now), v_text(call->actor.person));
	int64_t id;

	call->added = true;
	id = query_insert(&query);
	note(tx, call->change, call->now, &call->actor, EVENT_BISECTION_ASKED,
		arena_printf(tx->arena, "bisection %" PRId64 ", lab %s", id, call->lab));
	return id;
}

static void bisections_ask(struct tx *tx, void *context)
{
	struct store_bisection_ask *call = context;
	int64_t id;

	check_change(tx, call);
	if (call->missing || call->refused)
		return;
	id = query_ask(
		QUERY(tx, STATEMENT_BISECTION_OF, v_id(call->change), v_id(!call->actor.person)));
	if (id == 0)
		id = add(tx, call);
	read_one(tx, id, &call->rows);
}

STORE_DEFINE(bisection_ask, .run = bisections_ask, .writes = true);

static void bisections_begin(struct tx *tx, void *context)
{
	struct store_bisection_begin *call = context;

	call->begun = CHANGED(tx, STATEMENT_BISECTION_BEGIN, v_id(call->bisection),
			      v_time(call->now), v_time(call->since), v_count(call->most)) > 0;
	read_one(tx, call->bisection, &call->rows);
}

STORE_DEFINE(bisection_begin, .run = bisections_begin, .writes = true);

static void add_line(struct tx *tx, int64_t id, const struct bisection_line *line)
{
	if (line->kind == BISECTION_RESULT)
		RUN(tx, STATEMENT_BISECTION_ANSWERED, v_id(id), v_id(line->run));
	RUN(tx, STATEMENT_BISECTION_LINE, v_id(id), v_id(line->kind), v_count(line->run),
		v_text(line->text));
}

static void write_setup(struct tx *tx, struct store_bisection_write *call)
{
	int64_t runs = 0;

	for (size_t i = 0; i < call->line_count; i++)
		runs += call->lines[i].kind == BISECTION_RESULT;
	call->gone = CHANGED(tx, STATEMENT_BISECTION_SETUP, v_id(call->bisection),
			     v_text(call->setup), v_count(runs)) == 0;
}

/* The messages about the change show it, and people are told. */
static void write_culprit(struct tx *tx, const struct store_bisection_write *call, int64_t change)
{
	struct buf text = {0};

	culprit_put(&text, call->culprit);
	RUN(tx, STATEMENT_BISECTION_CULPRIT, v_id(call->bisection),
		v_text(buf_keep(&text, tx->arena)));
	triage_announce(tx, rows_id(tx, change), SAID_CULPRIT);
}

static void end(struct tx *tx, struct store_bisection_write *call)
{
	int64_t change = call->rows.items[0].change;

	RUN(tx, STATEMENT_BISECTION_END, v_id(call->bisection), v_time(call->now),
		v_text(call->end), v_text(call->verdict), v_text(call->cancelled));
	if (call->culprit)
		write_culprit(tx, call, change);
	note(tx, change, call->now, &itself, EVENT_BISECTION_ENDED,
		arena_printf(tx->arena, "bisection %" PRId64 ", %s%s%s", call->bisection, call->end,
			call->verdict ? ": " : "", call->verdict ? call->verdict : ""));
}

static void bisections_write(struct tx *tx, void *context)
{
	struct store_bisection_write *call = context;

	write_setup(tx, call);
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

STORE_DEFINE(bisection_write, .run = bisections_write, .writes = true);

static void cancel(struct tx *tx, struct store_bisection_say *call)
{
	call->taken = CHANGED(tx, STATEMENT_BISECTION_CANCEL, v_id(call->bisection),
			      v_text(call->why), v_time(call->now)) > 0;
	if (call->taken)
		note(tx, call->rows.items[0].change, call->now, &call->actor,
			EVENT_BISECTION_CANCELLED,
			arena_printf(tx->arena, "bisection %" PRId64, call->bisection));
}

static void answer(struct tx *tx, struct store_bisection_say *call)
{
	struct sql_query query =
		QUERY(tx, STATEMENT_BISECTION_RUN, v_id(call->bisection), v_count(call->line.run));
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

static void bisections_say(struct tx *tx, void *context)
{
	struct store_bisection_say *call = context;

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

STORE_DEFINE(bisection_say, .run = bisections_say, .writes = true);
