/*
 * What the store does for each kind of request: rows in, rows out, everything bound.
 *
 * NaN has no place in SQLite: it is bound as NULL and read back as NaN.
 */
#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "agent/news/store_file.h"

/* Binds values one after the other. */
struct binder {
	sqlite3_stmt *statement;
	int column;
};

static void bind_integer(struct binder *binder, int64_t value)
{
	sqlite3_bind_int64(binder->statement, ++binder->column, value);
}

static void bind_number(struct binder *binder, double value)
{
	sqlite3_bind_double(binder->statement, ++binder->column, value);
}

static void bind_text(struct binder *binder, const char *text)
{
	sqlite3_bind_text(binder->statement, ++binder->column, text, -1, SQLITE_STATIC);
}

/* Reads columns one after the other; text is copied to the arena. */
struct reader {
	sqlite3_stmt *statement;
	struct arena *arena;
	int column;
};

static int64_t read_integer(struct reader *reader)
{
	return sqlite3_column_int64(reader->statement, reader->column++);
}

static double read_number(struct reader *reader)
{
	int column = reader->column++;

	if (sqlite3_column_type(reader->statement, column) == SQLITE_NULL)
		return (double)NAN;
	return sqlite3_column_double(reader->statement, column);
}

static const char *read_text(struct reader *reader)
{
	return arena_strdup(reader->arena,
		(const char *)sqlite3_column_text(reader->statement, reader->column++));
}

/* Runs a statement that gives no rows. */
static bool finish(struct store_file *file, sqlite3_stmt *statement, struct error *error)
{
	bool done = sqlite3_step(statement) == SQLITE_DONE;

	if (!done)
		store_file_fail(file, "write to it", error);
	sqlite3_reset(statement);
	return done;
}

/* Grows an array in the arena by one item of `size` bytes and returns its place. */
static void *grow(struct arena *arena, void *items, size_t *count, size_t size)
{
	size_t used = *count;

	if ((used & (used - 1)) == 0) {
		void *bigger = arena_array(arena, used == 0 ? 1 : 2 * used, size);

		if (used > 0)
			memcpy(bigger, items, used * size);
		items = bigger;
	}
	*count = used + 1;
	return items;
}

static void bind_item(struct binder *binder, const struct announcement *item)
{
	bind_text(binder, item->metric);
	bind_text(binder, item->unit);
	bind_integer(binder, item->direction);
	bind_number(binder, item->change.pvalue);
	bind_number(binder, item->change.mean_before);
	bind_number(binder, item->change.mean_after);
	bind_number(binder, item->change.stddev_before);
	bind_number(binder, item->change.stddev_after);
	bind_integer(binder, (int64_t)item->change.count_before);
	bind_integer(binder, (int64_t)item->change.count_after);
	bind_number(binder, item->change.magnitude);
	bind_text(binder, item->commit_before);
	bind_text(binder, item->commit_after);
	bind_text(binder, item->version_before);
	bind_text(binder, item->version_after);
}

static void read_item(struct reader *reader, struct announcement *item)
{
	item->metric = read_text(reader);
	item->unit = read_text(reader);
	item->direction = (int)read_integer(reader);
	item->change.pvalue = read_number(reader);
	item->change.mean_before = read_number(reader);
	item->change.mean_after = read_number(reader);
	item->change.stddev_before = read_number(reader);
	item->change.stddev_after = read_number(reader);
	item->change.count_before = (size_t)read_integer(reader);
	item->change.count_after = (size_t)read_integer(reader);
	item->change.magnitude = read_number(reader);
	item->commit_before = read_text(reader);
	item->commit_after = read_text(reader);
	item->version_before = read_text(reader);
	item->version_after = read_text(reader);
}

static void read_pending(struct reader *reader, struct record *record)
{
	record->item.id = read_integer(reader);
	record->item.test = read_text(reader);
	record->series = read_text(reader);
	record->branch = read_text(reader);
	record->sign = (int)read_integer(reader);
	record->item.time = read_integer(reader);
	record->state = (enum change_state)read_integer(reader);
	record->news = (enum news)read_integer(reader);
	record->first_seen = read_integer(reader);
	record->spacing = read_integer(reader);
	read_item(reader, &record->item);
}

/* Series repeat from row to row: each name is copied once. */
static void read_known(struct reader *reader, const struct record *last, struct record *record)
{
	const char *series = (const char *)sqlite3_column_text(reader->statement, 1);

	record->item.id = read_integer(reader);
	if (last && strcmp(last->series, series) == 0) {
		record->series = last->series;
		reader->column++;
	} else {
		record->series = read_text(reader);
	}
	record->branch = read_text(reader);
	record->sign = (int)read_integer(reader);
	record->item.time = read_integer(reader);
	record->state = (enum change_state)read_integer(reader);
}

static void read_parcel(struct reader *reader, struct parcel *parcel)
{
	parcel->id = read_integer(reader);
	parcel->key = read_text(reader);
	parcel->receiver = read_text(reader);
	parcel->destination = read_text(reader);
	parcel->payload = read_text(reader);
	parcel->state = (enum parcel_state)read_integer(reader);
	parcel->receipt = read_text(reader);
	parcel->attempts = read_integer(reader);
	parcel->now = read_integer(reader);
	parcel->restored = true;
}

static bool load_records(struct store_file *file, struct store_request *request,
	sqlite3_stmt *statement, struct error *error)
{
	int result;

	request->record_count = 0;
	while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
		struct reader reader = {.statement = statement, .arena = request->arena};
		size_t count = request->record_count;

		request->records = grow(request->arena, request->records, &request->record_count,
			sizeof *request->records);
		if (request->kind == STORE_RESTORE)
			read_pending(&reader, &request->records[count]);
		else
			read_known(&reader, count > 0 ? &request->records[count - 1] : NULL,
				&request->records[count]);
	}
	sqlite3_reset(statement);
	return result == SQLITE_DONE || store_file_fail(file, "read it", error);
}

/* Both the records and what has been told come in the order of the changes. */
static bool load_told(struct store_file *file, struct store_request *request, struct error *error)
{
	sqlite3_stmt *statement = store_file_statement(file, STATEMENT_RESTORE_TOLD);
	size_t at = 0;
	int result;

	while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
		struct reader reader = {.statement = statement, .arena = request->arena};
		int64_t id = read_integer(&reader);

		while (at < request->record_count && request->records[at].item.id < id)
			at++;
		if (at < request->record_count && request->records[at].item.id == id) {
			record_told(request->arena, &request->records[at], read_text(&reader));
			request->records[at].told_stored = request->records[at].told.count;
		}
	}
	sqlite3_reset(statement);
	return result == SQLITE_DONE || store_file_fail(file, "read it", error);
}

static bool load_parcels(
	struct store_file *file, struct store_request *request, struct error *error)
{
	sqlite3_stmt *statement = store_file_statement(file, STATEMENT_RESTORE_PARCELS);
	int result;

	request->parcel_count = 0;
	while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
		struct reader reader = {.statement = statement, .arena = request->arena};
		size_t count = request->parcel_count;

		request->parcels = grow(request->arena, request->parcels, &request->parcel_count,
			sizeof *request->parcels);
		read_parcel(&reader, &request->parcels[count]);
	}
	sqlite3_reset(statement);
	return result == SQLITE_DONE || store_file_fail(file, "read it", error);
}

static bool count_states(
	struct store_file *file, struct store_request *request, struct error *error)
{
	sqlite3_stmt *statement = store_file_statement(file, STATEMENT_RESTORE_COUNTS);
	int result;

	while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
		int64_t state = sqlite3_column_int64(statement, 0);

		if (state > 0 && state < CHANGE_STATES)
			request->state_counts[state] = sqlite3_column_int64(statement, 1);
	}
	sqlite3_reset(statement);
	return result == SQLITE_DONE || store_file_fail(file, "read it", error);
}

static bool insert_record(struct store_file *file, struct record *record, struct error *error)
{
	struct binder binder = {store_file_statement(file, STATEMENT_RECORD), 0};

	bind_text(&binder, record->item.test);
	bind_text(&binder, record->series);
	bind_text(&binder, record->branch);
	bind_integer(&binder, record->sign);
	bind_integer(&binder, record->item.time);
	bind_integer(&binder, record->state);
	bind_integer(&binder, record->news);
	bind_integer(&binder, record->first_seen);
	bind_integer(&binder, record->spacing);
	bind_item(&binder, &record->item);
	if (!finish(file, binder.statement, error))
		return false;
	record->item.id = sqlite3_last_insert_rowid(store_file_database(file));
	return true;
}

static bool update_record(
	struct store_file *file, const struct record_update *update, struct error *error)
{
	struct binder binder = {store_file_statement(file, STATEMENT_UPDATE), 0};

	bind_integer(&binder, update->id);
	bind_integer(&binder, update->time);
	bind_integer(&binder, update->state);
	bind_integer(&binder, update->now);
	return finish(file, binder.statement, error);
}

static bool record(struct store_file *file, struct store_request *request, struct error *error)
{
	for (size_t i = 0; i < request->record_count; i++)
		if (!insert_record(file, &request->records[i], error))
			return false;
	for (size_t i = 0; i < request->update_count; i++)
		if (!update_record(file, &request->updates[i], error))
			return false;
	return true;
}

static bool announce(struct store_file *file, int64_t change, int64_t delivery, struct error *error)
{
	struct binder binder = {store_file_statement(file, STATEMENT_ANNOUNCE), 0};

	bind_integer(&binder, change);
	bind_integer(&binder, delivery);
	return finish(file, binder.statement, error);
}

static bool tell(struct store_file *file, int64_t change, struct error *error)
{
	struct binder binder = {store_file_statement(file, STATEMENT_TELL), 0};

	bind_integer(&binder, change);
	return finish(file, binder.statement, error);
}

static bool queue(struct store_file *file, struct parcel *parcel, struct error *error)
{
	struct binder binder = {store_file_statement(file, STATEMENT_QUEUE), 0};

	bind_text(&binder, parcel->key);
	bind_text(&binder, parcel->receiver);
	bind_text(&binder, parcel->destination);
	bind_text(&binder, parcel->payload);
	bind_integer(&binder, PARCEL_QUEUED);
	bind_integer(&binder, parcel->now);
	if (!finish(file, binder.statement, error))
		return false;
	parcel->id = sqlite3_last_insert_rowid(store_file_database(file));
	parcel->state = PARCEL_QUEUED;
	for (size_t i = 0; i < parcel->change_count; i++)
		if (!announce(file, parcel->changes[i], parcel->id, error))
			return false;
	return true;
}

static bool settle(struct store_file *file, const struct parcel *parcel, struct error *error)
{
	struct binder binder = {store_file_statement(file, STATEMENT_SETTLE), 0};

	bind_integer(&binder, parcel->id);
	bind_integer(&binder, parcel->state);
	bind_text(&binder, parcel->receipt);
	bind_text(&binder, parcel->problem);
	bind_integer(&binder, parcel->attempts);
	bind_integer(&binder, parcel->now);
	return finish(file, binder.statement, error);
}

/* A delivery's links go first, as it is they who point. */
static bool prune(struct store_file *file, int64_t before, struct error *error)
{
	struct binder links = {store_file_statement(file, STATEMENT_PRUNE_LINKS), 0};
	struct binder parcels = {store_file_statement(file, STATEMENT_PRUNE), 0};

	bind_integer(&links, before);
	bind_integer(&parcels, before);
	return finish(file, links.statement, error) && finish(file, parcels.statement, error);
}

bool store_file_perform(struct store_file *file, struct store_request *request, struct error *error)
{
	sqlite3_stmt *statement;

	switch (request->kind) {
	case STORE_RESTORE:
		statement = store_file_statement(file, STATEMENT_RESTORE_RECORDS);
		return load_records(file, request, statement, error) &&
		       load_told(file, request, error) && load_parcels(file, request, error) &&
		       count_states(file, request, error);
	case STORE_KNOWN:
		statement = store_file_statement(file, STATEMENT_KNOWN);
		sqlite3_bind_text(statement, 1, request->test, -1, SQLITE_STATIC);
		return load_records(file, request, statement, error);
	case STORE_RECORD: return record(file, request, error);
	case STORE_QUEUE:
		for (size_t i = 0; i < request->parcel_count; i++)
			if (!queue(file, &request->parcels[i], error))
				return false;
		for (size_t i = 0; i < request->told_count; i++)
			if (!tell(file, request->told[i], error))
				return false;
		return true;
	case STORE_SETTLE:
		for (size_t i = 0; i < request->parcel_count; i++)
			if (!settle(file, &request->parcels[i], error))
				return false;
		return true;
	case STORE_PRUNE: return prune(file, request->before, error);
	}
	return error_set(error, ERROR_STATE, "unknown request %d", (int)request->kind);
}
