/*
 * A silence is never changed except that it ends, and that its reminder and its summary were
 * queued.
 */
#include "agent/store/sql/silences.h"

#include "agent/base/when.h"
#include "agent/store/sql/audit.h"
#include "agent/store/sql/rows.h"
#include "agent/store/sql/schema.h"

/* With id 0 all: all there are, or those that are not over at `now` or not summed. */
static bool read_silences(struct store_file *file, struct arena *arena, int64_t id, bool all,
	int64_t now, struct silence_rows *out, struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_SILENCES), .arena = arena};

	bind_integer(&reader.binder, id);
	bind_integer(&reader.binder, all);
	bind_integer(&reader.binder, now);
	out->items = read_structs(&reader, silence_columns, sizeof *out->items, &out->count, error);
	return !reader.failed;
}

bool silences_load(
	struct store_file *file, struct arena *arena, struct silence_rows *out, struct error *error)
{
	return read_silences(file, arena, 0, false, INT64_MAX, out, error);
}

static bool silences_list(struct store_file *file, void *context, struct error *error)
{
	struct store_silences *call = context;

	return read_silences(
		file, call->call.arena, 0, call->all, call->now, &call->silences, error);
}

const struct store_work store_silences_work = {.run = silences_list};

static void bind_silence(struct binder *binder, const struct silence *silence)
{
	bind_text(binder, silence->matchers);
	bind_time(binder, silence->from);
	bind_time(binder, silence->until);
	bind_text(binder, silence->owner);
	bind_text(binder, silence->reason);
	bind_text(binder, silence->person);
}

/* 0: there is none with the same words and times. A request that is repeated, as its answer was
 * lost, begins and ends later. */
static bool find_same(
	struct store_file *file, const struct silence *silence, int64_t *id, struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_SILENCE_SAME)};

	*id = 0;
	bind_silence(&reader.binder, silence);
	bind_time(&reader.binder, silence->created);
	while (reader_next(&reader, error))
		*id = read_id(&reader);
	return !reader.failed;
}

static bool audit(struct store_file *file, const struct store_silence *call, const char *action,
	struct error *error)
{
	const struct silence *silence = &call->silence;
	char from[WHEN_TEXT], until[WHEN_TEXT];
	struct buf detail = {0};

	buf_printf(&detail, "silence %lld, %s to %s", (long long)silence->id,
		when_format_iso(silence->from, from), when_format_iso(silence->until, until));
	if (silence->owner)
		audit_put_text(&detail, "owner", silence->owner);
	if (silence->reason)
		audit_put_text(&detail, "reason", silence->reason);
	return audit_add(file,
		&(struct audit_entry){.time = call->now,
			.actor = call->actor,
			.action = action,
			.subject = silence->matchers,
			.detail = buf_keep(&detail, call->call.arena)},
		error);
}

static bool add(struct store_file *file, struct store_silence *call, struct error *error)
{
	struct binder binder;

	if (!find_same(file, &call->silence, &call->silence.id, error))
		return false;
	if (call->silence.id != 0)
		return true;
	binder = bind_to(file, STATEMENT_SILENCE_ADD);
	bind_silence(&binder, &call->silence);
	bind_time(&binder, call->now);
	return bind_insert(&binder, &call->silence.id, error) &&
	       audit(file, call, "silence", error);
}

static bool end(
	struct store_file *file, const struct store_silence *call, bool *ended, struct error *error)
{
	if (!RUN(file, STATEMENT_SILENCE_END, error, v_id(call->silence.id),
		    v_time(call->silence.ended), v_text(call->silence.ended_by)))
		return false;
	*ended = file->driver->changed(file) > 0;
	return true;
}

static bool note(struct store_file *file, const struct silence *silence, struct error *error)
{
	return RUN(file, STATEMENT_SILENCE_NOTE, error, v_id(silence->id), v_id(silence->reminded),
		v_id(silence->summed));
}

static bool silence_write(struct store_file *file, void *context, struct error *error)
{
	struct store_silence *call = context;
	int64_t asked = call->silence.id;
	struct silence_rows now;
	bool ended = false;

	if (asked == 0 ? !add(file, call, error)
		       : (call->silence.ended != 0 && !end(file, call, &ended, error)) ||
				 !note(file, &call->silence, error))
		return false;
	if (!read_silences(file, call->call.arena, call->silence.id, true, 0, &now, error))
		return false;
	call->found = now.count > 0;
	if (call->found)
		call->silence = now.items[0];
	return !ended || audit(file, call, "end silence", error);
}

const struct store_work store_silence_work = {.run = silence_write, .writes = true};
