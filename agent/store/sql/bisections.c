/*
 * Whether a lab is free is decided here, in the transaction that begins a bisection: no two run in
 * one lab, whoever begins them.
 */

#include <inttypes.h>

#include "agent/base/buf.h"
#include "agent/store/sql/audit.h"
#include "agent/store/sql/rows.h"
#include "agent/store/sql/triage.h"

/* In the audit log, where the agent does it by itself. */
static const struct actor itself = {"hunter-c", "agent"};

static void read_row(struct reader *reader, struct bisection_row *row)
{
	*row = (struct bisection_row){.id = read_id(reader)};
	row->change = read_id(reader);
	row->test = read_name(reader);
	row->metric = read_name(reader);
	row->lab = read_name(reader);
	row->state = (enum bisection_state)read_choice(reader, 1, BISECTION_STATES - 1);
	row->asked = read_time(reader);
	row->begun = read_time_or(reader, 0);
	row->ended = read_time_or(reader, 0);
	row->runs = read_count(reader);
	row->person = read_text(reader);
	row->setup = read_text(reader);
	row->end = read_text(reader);
	row->verdict = read_text(reader);
	row->cancelled = read_text(reader);
	row->change_state = (enum change_state)read_choice(reader, 1, CHANGE_STATES - 1);
	row->triage = (enum triage_state)read_choice(reader, 1, TRIAGE_STATES - 1);
	row->culprit = read_culprit(reader);
}

/* With 0 all of them. */
struct selection {
	int64_t id, change;
	unsigned states;
	int64_t before_id, limit;
	bool whole; /* with the setup */
};

static bool read_rows(struct store_file *file, struct arena *arena,
	const struct selection *selection, struct bisection_rows *out, struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_BISECTIONS), .arena = arena};

	*out = (struct bisection_rows){0};
	bind_integer(&reader.binder, selection->id);
	bind_integer(&reader.binder, selection->change);
	bind_integer(&reader.binder, selection->states);
	bind_integer(&reader.binder, selection->before_id > 0 ? selection->before_id : INT64_MAX);
	bind_integer(&reader.binder, selection->limit);
	bind_integer(&reader.binder, selection->whole);
	while (reader_next(&reader, error)) {
		out->items = rows_grow(arena, out->items, &out->count, sizeof *out->items);
		read_row(&reader, &out->items[out->count - 1]);
	}
	return !reader.failed;
}

static bool read_one(struct store_file *file, struct arena *arena, int64_t id,
	struct bisection_rows *out, struct error *error)
{
	return read_rows(file, arena, &(struct selection){.id = id, .limit = 1}, out, error);
}

static bool read_lines(struct store_file *file, struct arena *arena, enum bisection_line_kind kind,
	struct bisection_row *row, struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_BISECTION_LINES), .arena = arena};
	struct bisection_lines *out = &row->lines;

	bind_integer(&reader.binder, row->id);
	bind_integer(&reader.binder, kind);
	while (reader_next(&reader, error)) {
		struct bisection_line *line;

		out->items = rows_grow(arena, out->items, &out->count, sizeof *out->items);
		line = &out->items[out->count - 1];
		*line = (struct bisection_line){.number = read_count(&reader)};
		line->kind = (enum bisection_line_kind)read_choice(&reader, 1, BISECTION_LINES - 1);
		line->run = read_count(&reader);
		line->text = read_name(&reader);
	}
	return !reader.failed;
}

static bool read_due(struct store_file *file, struct store_bisections *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct reader reader = {.binder = bind_to(file, STATEMENT_BISECTIONS_DUE), .arena = arena};

	bind_text(&reader.binder, rows_names(arena, &call->due_tests));
	bind_integer(&reader.binder, call->due_since);
	return read_records(&reader, &call->due, error);
}

static bool bisections_list(struct store_file *file, void *context, struct error *error)
{
	struct store_bisections *call = context;
	int64_t limit = call->limit > 0 && call->limit < STORE_BISECTIONS_MOST
				? call->limit
				: STORE_BISECTIONS_MOST;
	struct selection selection = {
		call->id, call->change, call->states, call->before_id, limit + 1, call->lines};
	struct arena *arena = call->call.arena;

	call->due = (struct record_rows){0};
	if (!read_rows(file, arena, &selection, &call->rows, error))
		return false;
	call->more = (int64_t)call->rows.count > limit;
	call->rows.count -= call->more;
	call->last = call->rows.count > 0 ? call->rows.items[0].id : 0;
	for (size_t i = 0; i < call->rows.count && (call->lines || call->answers); i++)
		if (!read_lines(file, arena, call->lines ? 0 : BISECTION_ANSWER,
			    &call->rows.items[i], error))
			return false;
	return call->due_tests.count == 0 || read_due(file, call, error);
}

const struct store_work store_bisections_work = {.run = bisections_list, .lane = STORE_LISTS};

static bool note(struct store_file *file, int64_t change, int64_t now, const struct actor *actor,
	const char *action, const char *detail, struct error *error)
{
	return audit_add(file,
		&(struct audit_entry){.time = now,
			.actor = actor->person ? *actor : itself,
			.action = action,
			.change = change,
			.detail = detail},
		error);
}

/* The last one of the change; 0: none. */
static bool find(
	struct store_file *file, int64_t change, bool whatever, int64_t *id, struct error *error)
{
	*id = 0;
	return ASK(file, STATEMENT_BISECTION_OF, id, error, v_id(change), v_id(whatever));
}

static bool check_change(
	struct store_file *file, struct store_bisection_ask *call, struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_BISECTION_CHANGE)};

	call->missing = true;
	call->refused = false;
	bind_integer(&reader.binder, call->change);
	while (reader_next(&reader, error)) {
		call->missing = false;
		call->refused = read_choice(&reader, 0, 1) == 0;
	}
	return !reader.failed;
}

static bool add(
	struct store_file *file, struct store_bisection_ask *call, int64_t *id, struct error *error)
{
	struct binder binder = bind_to(file, STATEMENT_BISECTION_ADD);

	bind_integer(&binder, call->change);
	bind_text(&binder, call->lab);
	bind_time(&binder, call->now);
	bind_text(&binder, call->actor.person);
	call->added = true;
	return bind_insert(&binder, id, error) &&
	       note(file, call->change, call->now, &call->actor, "bisect",
		       arena_printf(
			       call->call.arena, "bisection %" PRId64 ", lab %s", *id, call->lab),
		       error);
}

static bool bisections_ask(struct store_file *file, void *context, struct error *error)
{
	struct store_bisection_ask *call = context;
	int64_t id;

	call->added = false;
	call->rows = (struct bisection_rows){0};
	if (!check_change(file, call, error))
		return false;
	if (call->missing || call->refused)
		return true;
	if (!find(file, call->change, !call->actor.person, &id, error) ||
		(id == 0 && !add(file, call, &id, error)))
		return false;
	return read_one(file, call->call.arena, id, &call->rows, error);
}

const struct store_work store_bisection_ask_work = {.run = bisections_ask, .writes = true};

static bool is_lab_busy(struct store_file *file, int64_t id, bool *busy, struct error *error)
{
	int64_t found = 0;
	bool done = ASK(file, STATEMENT_BISECTION_LAB, &found, error, v_id(id));

	*busy = found != 0;
	return done;
}

static bool bisections_begin(struct store_file *file, void *context, struct error *error)
{
	struct store_bisection_begin *call = context;

	if (!RUN(file, STATEMENT_BISECTION_BEGIN, error, v_id(call->bisection), v_time(call->now),
		    v_time(call->since), v_count(call->most)))
		return false;
	call->begun = file->driver->changed(file) > 0;
	call->lab_busy = false;
	return read_one(file, call->call.arena, call->bisection, &call->rows, error) &&
	       (call->begun || is_lab_busy(file, call->bisection, &call->lab_busy, error));
}

const struct store_work store_bisection_begin_work = {.run = bisections_begin, .writes = true};

static bool add_line(
	struct store_file *file, int64_t id, const struct bisection_line *line, struct error *error)
{
	if (line->kind == BISECTION_RESULT &&
		!RUN(file, STATEMENT_BISECTION_ANSWERED, error, v_id(id), v_id(line->run)))
		return false;
	return RUN(file, STATEMENT_BISECTION_LINE, error, v_id(id), v_id(line->kind),
		v_count(line->run), v_text(line->text));
}

static bool write_setup(
	struct store_file *file, struct store_bisection_write *call, struct error *error)
{
	int64_t runs = 0;

	for (size_t i = 0; i < call->line_count; i++)
		runs += call->lines[i].kind == BISECTION_RESULT;
	if (!RUN(file, STATEMENT_BISECTION_SETUP, error, v_id(call->bisection), v_text(call->setup),
		    v_count(runs)))
		return false;
	call->gone = file->driver->changed(file) == 0;
	return true;
}

/* The messages about the change show it, and people are told. */
static bool write_culprit(struct store_file *file, const struct store_bisection_write *call,
	int64_t change, struct error *error)
{
	struct buf text = {0};

	culprit_put(&text, call->culprit);
	return RUN(file, STATEMENT_BISECTION_CULPRIT, error, v_id(call->bisection),
		       v_text(buf_keep(&text, call->call.arena))) &&
	       RUN(file, STATEMENT_AMEND, error, v_id(change)) &&
	       triage_announce(file, change, SAID_CULPRIT, error);
}

static bool end(struct store_file *file, struct store_bisection_write *call, struct error *error)
{
	int64_t change = call->rows.items[0].change;

	if (!RUN(file, STATEMENT_BISECTION_END, error, v_id(call->bisection), v_time(call->now),
		    v_text(call->end), v_text(call->verdict), v_text(call->cancelled)) ||
		(call->culprit && !write_culprit(file, call, change, error)))
		return false;
	return note(file, change, call->now, &itself, "bisection",
		arena_printf(call->call.arena, "bisection %" PRId64 ", %s%s%s", call->bisection,
			call->end, call->verdict ? ": " : "", call->verdict ? call->verdict : ""),
		error);
}

static bool bisections_write(struct store_file *file, void *context, struct error *error)
{
	struct store_bisection_write *call = context;

	if (!write_setup(file, call, error))
		return false;
	if (call->gone)
		return true;
	for (size_t i = 0; i < call->line_count; i++)
		if (!add_line(file, call->bisection, &call->lines[i], error))
			return false;
	if (!read_one(file, call->call.arena, call->bisection, &call->rows, error))
		return false;
	return !call->end || call->rows.count == 0 ||
	       (end(file, call, error) &&
		       read_one(file, call->call.arena, call->bisection, &call->rows, error));
}

const struct store_work store_bisection_write_work = {.run = bisections_write, .writes = true};

static bool cancel(struct store_file *file, struct store_bisection_say *call, struct error *error)
{
	if (!RUN(file, STATEMENT_BISECTION_CANCEL, error, v_id(call->bisection), v_text(call->why),
		    v_time(call->now)))
		return false;
	call->taken = file->driver->changed(file) > 0;
	return !call->taken ||
	       note(file, call->rows.items[0].change, call->now, &call->actor, "cancel bisection",
		       arena_printf(call->call.arena, "bisection %" PRId64, call->bisection),
		       error);
}

static bool answer(struct store_file *file, struct store_bisection_say *call, struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_BISECTION_RUN)};
	int64_t begun = 0, answered = 0;

	bind_integer(&reader.binder, call->bisection);
	bind_count(&reader.binder, call->line.run);
	while (reader_next(&reader, error)) {
		begun = read_count(&reader);
		answered = read_count(&reader);
	}
	if (reader.failed)
		return false;
	call->repeated = answered > 0;
	call->taken = call->rows.items[0].state == BISECTION_RUNNING && begun > 0 && answered == 0;
	return !call->taken || add_line(file, call->bisection, &call->line, error);
}

static bool bisections_say(struct store_file *file, void *context, struct error *error)
{
	struct store_bisection_say *call = context;
	struct arena *arena = call->call.arena;

	call->taken = call->repeated = false;
	if (!read_one(file, arena, call->bisection, &call->rows, error))
		return false;
	call->found = call->rows.count > 0;
	if (!call->found)
		return true;
	return (call->cancel ? cancel(file, call, error) : answer(file, call, error)) &&
	       read_one(file, arena, call->bisection, &call->rows, error);
}

const struct store_work store_bisection_say_work = {.run = bisections_say, .writes = true};
