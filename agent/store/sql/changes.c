/*
 * Changes as runs find them: reads the known ones of a test, records those of a run, and renames
 * tests and metrics.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/sql/read.h"

STORE_DEFINE(known)
{
	struct sql_query query = QUERY(tx,
		"SELECT @compared, " TRIAGE_COLUMNS
		" FROM changes @indexed{changes_of_series} @triage_of_each WHERE test = ?1 ORDER"
		" BY series, branch, id",
		v_text(call->test));

	read_all_known(&query, &call->records);
}

void store_load_checkpoints(struct tx *tx, const char *test, struct checkpoint_rows *out)
{
	struct sql_query query = QUERY(tx,
		"SELECT series, branch, anchor, last_point, revision, revised FROM series WHERE"
		" test = ?1 ORDER BY series, branch",
		v_text(test));

	out->items = read_structs(&query, series_columns + 1, sizeof *out->items, &out->count);
}

STORE_DEFINE(checkpoints)
{
	store_load_checkpoints(tx, call->test, &call->checkpoints);
}

/* `report`: receivers that have it are notified. */
static void add_event(struct tx *tx, int64_t change, enum event_kind kind, int64_t now,
	int64_t point, bool report)
{
	event_add(tx, &(struct event){.kind = kind,
			      .time = now,
			      .change = change,
			      .point = point,
			      .due = report ? now : 0});
}

static void write_end(struct tx *tx, int64_t id, const struct recovered *over)
{
	RUN(tx, "UPDATE changes SET recovered = nullif(?2, 0), recovered_level = ?3 WHERE id = ?1",
		v_int(id), v_int(over->time),
		v_number(over->time != 0 ? over->level : (double)NAN));
}

/* Messages may show an outdated state of the change: marks them for an edit. */
static void amend(struct tx *tx, int64_t change)
{
	triage_amend(tx, v_one(tx, change));
}

/* True if messages have another size, by more than a tenth. */
static bool amend_size(struct tx *tx, int64_t change, double size)
{
	struct value id = v_int(change), now = v_number(size);
	bool grown = CHANGED(tx,
			     "UPDATE announced SET told_size = ?2 WHERE change = ?1 AND"
			     " abs(?2 - told_size) > 0.1 * abs(told_size)",
			     id, now) > 0;

	if (grown)
		amend(tx, change);
	RUN(tx, "UPDATE announced SET told_size = ?2 WHERE change = ?1 AND told_size IS NULL", id,
		now);
	return grown;
}

static void write_excerpt(struct tx *tx, int64_t id, struct packed_excerpt excerpt)
{
	if (excerpt.length > 0)
		RUN(tx,
			"INSERT INTO excerpts SELECT id, ?2 FROM changes WHERE id = ?1 ON"
			" CONFLICT (change) DO UPDATE SET points = excluded.points",
			v_int(id), v_bytes(excerpt.bytes, excerpt.length));
}

/* Gives the new records ids, all at once, and returns how many they are. */
static size_t number_records(struct tx *tx, const struct store_record *call)
{
	struct change_record *records = call->records.items;
	struct sql_query query;
	size_t at = 0, count = 0;

	for (size_t i = 0; i < call->records.count; i++)
		count += !records[i].confirmed;
	if (count == 0)
		return 0;
	query = QUERY(tx, "@next_changes", v_int((int64_t)count));
	while (query_next(&query)) {
		while (at < call->records.count && records[at].confirmed)
			at++;
		if (at < call->records.count)
			records[at++].item.id = read_id(&query);
	}
	return count;
}

/* Fewer are sooner written one by one. */
enum { LOAD_LEAST = 10 };

static void insert_records(struct tx *tx, const struct record_rows *records, size_t count)
{
	bool load = count >= LOAD_LEAST;

	if (load)
		rows_load_begin(tx, "@+changes");
	for (size_t i = 0; i < records->count; i++) {
		struct change_record row = records->items[i];

		if (row.confirmed)
			continue;
		/* Triage and incident come later; there is no event for its end, which was known
		 * when it was found. */
		row.updated = row.first_seen;
		row.runs = row.runs > 0 ? row.runs : 1;
		row.environment_event = row.item.incident = 0;
		row.item.culprit = NULL;
		if (row.state != CHANGE_RECOVERED)
			row.item.over = (struct recovered){.level = (double)NAN};
		row_run(sql_query_of(tx, "@+changes"), change_columns, &row);
	}
	if (load) {
		rows_load_end(tx);
		rows_load_begin(tx, "@+excerpts");
	}
	for (size_t i = 0; i < records->count; i++)
		if (!records->items[i].confirmed && records->items[i].state != CHANGE_CANDIDATE &&
			records->items[i].item.excerpt.length > 0)
			RUN(tx, "@+excerpts", v_int(records->items[i].item.id),
				v_bytes(records->items[i].item.excerpt.bytes,
					records->items[i].item.excerpt.length));
	if (load)
		rows_load_end(tx);
}

static void renew_item(struct tx *tx, int64_t id, const struct announcement *item)
{
	struct sql_query query =
		QUERY(tx, "UPDATE changes SET (@found) = (@found?2) WHERE id = ?1", v_int(id));
	const struct change_record record = {.item = *item};

	bind_row(&query, change_columns, COLUMN_FOUND, &record);
	query_run(&query);
}

/* A change before the call, or as updated by it: one call may contain a change more than once. */
struct former {
	int64_t id;
	enum change_state state; /* 0: there is none */
	int64_t time;
	size_t members;
	int64_t recoveries;   /* how many there were, but for those that nobody was to hear of */
	struct triage triage; /* its state and sizes; the state is 0 without triage */
};

struct formers {
	struct former *items; /* by id */
	size_t count;
};

static int compare_former(const void *key, const void *element)
{
	int64_t id = *(const int64_t *)key;
	const struct former *former = element;

	return (id > former->id) - (id < former->id);
}

/* NULL: there is no such change. */
static struct former *former_of(const struct formers *formers, int64_t id)
{
	return formers->count == 0 ? NULL
				   : bsearch(&id, formers->items, formers->count,
					     sizeof *formers->items, compare_former);
}

static void load_formers(struct tx *tx, const struct store_record *call, struct formers *out)
{
	struct sql_query query;
	struct owners changes = {0};

	for (size_t i = 0; i < call->records.count; i++)
		if (call->records.items[i].confirmed)
			owners_add(&changes, tx, call->records.items[i].item.id, i);
	for (size_t i = 0; i < call->update_count; i++)
		owners_add(&changes, tx, call->updates[i].id, i);
	if (changes.count == 0)
		return;
	query = QUERY(tx,
		"SELECT changes.id, changes.state, time, members, (SELECT count(*) FROM events"
		" WHERE change = changes.id AND kind = @event{recovered} AND reason IS NULL), "
		"coalesce(triage, 0),"
		" accepted_size, accepted_low, accepted_high FROM changes" WITH_TRIAGE
		" WHERE changes.id IN @ids{?1} ORDER BY changes.id",
		v_owners(tx, &changes));
	while (query_next(&query)) {
		struct former *former = ADD_ROW(tx, out->items, out->count);

		former->id = read_id(&query);
		former->state = (enum change_state)read_choice(&query, 1, CHANGE_STATES - 1);
		former->time = read_time(&query);
		former->members = (size_t)read_count(&query);
		former->recoveries = read_count(&query);
		former->triage.state = (enum triage_state)read_choice(&query, 0, TRIAGE_STATES - 1);
		former->triage.size = read_number(&query);
		former->triage.size_low = read_number(&query);
		former->triage.size_high = read_number(&query);
	}
}

/* A change that is withdrawn or over cannot have outgrown its accepted size. */
static void compare_with_accepted(struct tx *tx, struct former *former, const struct change *change,
	int64_t now, size_t *pending)
{
	if (former->triage.state <= TRIAGE_OPEN ||
		(former->state != CHANGE_CONFIRMED && former->state != CHANGE_MOVED) ||
		!triage_outgrown(&former->triage, change))
		return;
	triage_open_outgrown(tx, former->id, &former->triage, change, now, pending);
	former->triage.state = TRIAGE_OPEN;
}

static void confirm_record(struct tx *tx, const struct change_record *record,
	const struct formers *formers, size_t *pending)
{
	struct former *former = former_of(formers, record->item.id);

	if (!former)
		return;
	former->state = record->state;
	former->time = record->item.time;
	former->members = record->item.members;
	former->recoveries += record->state == CHANGE_RECOVERED;
	RUN(tx,
		"UPDATE changes SET sign = ?2, time = ?3, state = ?4, news = ?5, spacing = ?6,"
		" runs = ?7, updated = ?8, reason = ?9, held_until = NULL WHERE id = ?1",
		v_int(record->item.id), v_int(record->sign), v_int(record->item.time),
		v_int(record->state), v_int(record->news), v_int(record->item.spacing),
		v_int(record->runs), v_int(record->updated), v_text(record->reason));
	renew_item(tx, record->item.id, &record->item);
	write_excerpt(tx, record->item.id, record->item.excerpt);
	write_end(tx, record->item.id, &record->item.over);
	add_event(tx, record->item.id,
		record->state == CHANGE_RECOVERED ? EVENT_RECOVERED : EVENT_CONFIRMED,
		record->updated, record->item.time, false);
	amend(tx, record->item.id);
	compare_with_accepted(tx, former, &record->item.change, record->updated, pending);
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

/* A change that is withdrawn, or over, before it was announced is announced if it returns. One that
 * some receivers have goes on waiting for the others. */
static void settle_news(struct tx *tx, int64_t change)
{
	RUN(tx,
		"UPDATE changes SET news = @news{held} WHERE id = ?1 AND news = @news{pending} AND"
		" NOT EXISTS (SELECT 1 FROM announced WHERE change = ?1)",
		v_int(change));
}

/*
 * Receivers of a change are notified when it has moved, grown, ended, was withdrawn or corrected,
 * or returned. The recovery of one that was announced is reported, unless the update is `silent`,
 * the change has recovered before, or was none of the program's.
 */
static void note_update(
	struct tx *tx, const struct change_record_update *update, struct former *former)
{
	bool stretched = update->item && former->members != update->item->members;
	enum event_kind kind = event_of(former->state, former->time, update);
	bool ended = kind == EVENT_RECOVERED;
	bool quiet = ended && (update->silent || former->recoveries > 0);
	bool foreign = ended && triage_is_foreign(former->triage.state);

	former->recoveries += ended;
	if (update->state == CHANGE_WITHDRAWN || (ended && (quiet || !foreign)))
		settle_news(tx, update->id);
	if (kind != 0 || stretched || update->corrected)
		amend(tx, update->id);
	if (kind != 0)
		add_event(tx, update->id, kind, update->now, update->time,
			ended ? !quiet && !foreign &&
					query_ask(QUERY(tx,
						"SELECT count(*) FROM changes WHERE id = ?1 AND"
						" news IN (@news{pending}, @news{queued})",
						v_int(update->id))) != 0
			      : kind != EVENT_CONFIRMED);
	else if (stretched)
		add_event(tx, update->id, EVENT_GROWN, update->now, update->time, true);
	if (update->corrected && kind != EVENT_WITHDRAWN)
		add_event(tx, update->id, EVENT_CORRECTED, update->now, update->time, true);
}

static void update_record(struct tx *tx, const struct change_record_update *update,
	const struct formers *formers, size_t *pending)
{
	struct former *former = former_of(formers, update->id);

	if (!former)
		return;
	note_update(tx, update, former);
	former->state = update->state;
	former->time = update->time;
	former->members = update->item ? update->item->members : former->members;
	RUN(tx,
		"UPDATE changes SET time = ?2, state = ?3, updated = ?4, recovered = CASE WHEN ?3"
		" = @state{recovered} THEN recovered ELSE NULL END, recovered_level = CASE WHEN ?3"
		" = @state{recovered} THEN recovered_level ELSE NULL END, runs = CASE WHEN ?5 = 0"
		" THEN runs ELSE ?5 END, reason = coalesce(?6, reason), held_until = nullif(?7, 0)"
		" WHERE id = ?1",
		v_int(update->id), v_int(update->time), v_int(update->state), v_int(update->now),
		v_int(update->runs), v_text(update->reason), v_int(update->held_until));
	if (update->state != CHANGE_CANDIDATE)
		write_excerpt(tx, update->id, update->excerpt);
	if (update->over.time != 0)
		write_end(tx, update->id, &update->over);
	if (!update->item)
		return;
	renew_item(tx, update->id, update->item);
	if (amend_size(tx, update->id, update->item->change.size))
		add_event(tx, update->id, EVENT_GROWN, update->now, update->time, true);
	compare_with_accepted(tx, former, &update->item->change, update->now, pending);
}

static void record_changes(struct tx *tx, struct store_record *call)
{
	struct formers formers = {0};
	size_t count = number_records(tx, call);
	bool triaged = false;

	load_formers(tx, call, &formers);
	for (size_t i = 0; i < formers.count; i++)
		triaged |= formers.items[i].triage.state != 0;
	insert_records(tx, &call->records, count);
	for (size_t i = 0; i < call->records.count; i++)
		if (call->records.items[i].confirmed)
			confirm_record(tx, &call->records.items[i], &formers, &call->renewed);
	for (size_t i = 0; i < call->update_count; i++)
		update_record(tx, &call->updates[i], &formers, &call->renewed);
	if (triaged) /* only then can an announcement be owed */
		triage_settle(tx, &call->renewed);
	store_counts(tx);
}

STORE_DEFINE(record, .writes = true)
{
	for (size_t i = 0; i < call->checkpoints.count; i++)
		row_run(QUERY(tx, "@=series", v_text(call->test)), series_columns + 1,
			&call->checkpoints.items[i]);
	if (call->seen)
		RUN(tx,
			"INSERT INTO seen (@seen) VALUES (?1, ?2, ?3, coalesce(?4, '')) ON"
			" CONFLICT (test) DO UPDATE SET label = excluded.label, ended ="
			" excluded.ended, text = coalesce(?4, seen.text)",
			v_text(call->seen->test), v_text(call->seen->label),
			v_int(call->seen->ended), v_text(call->seen->text));
	/* Neither changes the counts. */
	if (call->records.count + call->update_count > 0)
		record_changes(tx, call);
}

/* ?1 test, ?2 metric: the series of the metric, by identity. */
#define OF_METRIC                                                                                  \
	" WHERE test = ?1 AND (series = ?2 OR substr(series, 1, length(?2) + 1) = ?2 || '{')"

/* ?3 the metric's new name */
#define RENAMED(column) " ?3 || substr(" column ", length(?2) + 1)"

static bool is_known(struct tx *tx, const char *test, const char *metric)
{
	return (metric ? query_ask(QUERY(tx,
				 "SELECT EXISTS (SELECT 1 FROM changes" OF_METRIC ") OR EXISTS"
				 " (SELECT 1 FROM series" OF_METRIC ")",
				 v_text(test), v_text(metric)))
		       : query_ask(QUERY(tx,
				 "SELECT EXISTS (SELECT 1 FROM changes WHERE test = ?1) OR EXISTS"
				 " (SELECT 1 FROM series WHERE test = ?1)",
				 v_text(test)))) != 0;
}

/* Rows that have the new name already are replaced. */
static void move_test(struct tx *tx, struct value was, struct value test)
{
	RUN(tx, "UPDATE changes SET test = ?2 WHERE test = ?1", was, test);
	RUN(tx, "UPDATE series SET test = ?2 WHERE test = ?1", was, test);
	RUN(tx,
		"DELETE FROM vanished WHERE test = ?2 AND ?1 != ?2 AND series IN (SELECT series"
		" FROM vanished WHERE test = ?1)",
		was, test);
	RUN(tx, "UPDATE vanished SET test = ?2 WHERE test = ?1", was, test);
	RUN(tx,
		"DELETE FROM conditions WHERE subject IN ('test ' || ?2, 'data ' || ?2) AND ?1 !="
		" ?2 AND substr(subject, 1, 5) || ?1 IN (SELECT subject FROM conditions)",
		was, test);
	RUN(tx,
		"UPDATE conditions SET subject = substr(subject, 1, 5) || ?2 WHERE subject IN"
		" ('test ' || ?1, 'data ' || ?1)",
		was, test);
	RUN(tx,
		"DELETE FROM moments WHERE name = 'series ' || ?2 AND ?1 != ?2 AND 'series ' ||"
		" ?1 IN (SELECT name FROM moments)",
		was, test);
	RUN(tx, "UPDATE moments SET name = 'series ' || ?2 WHERE name = 'series ' || ?1", was,
		test);
}

static void move_metric(struct tx *tx, struct value test, struct value was, struct value metric)
{
	RUN(tx,
		"UPDATE changes SET series =" RENAMED(
			"series") ", metric = CASE WHEN"
				  " substr(metric, 1, length(?2)) = ?2 THEN" RENAMED(
					  "metric") " ELSE metric END" OF_METRIC,
		test, was, metric);
	RUN(tx, "UPDATE series SET series =" RENAMED("series") OF_METRIC, test, was, metric);
	RUN(tx,
		"DELETE FROM vanished WHERE test = ?1 AND ?2 != ?3 AND series IN (SELECT" RENAMED(
			"series") " FROM vanished" OF_METRIC ")",
		test, was, metric);
	RUN(tx, "UPDATE vanished SET series =" RENAMED("series") OF_METRIC, test, was, metric);
}

STORE_DEFINE(renames, .writes = true, .is_long = true)
{
	for (size_t i = 0; i < call->rename_count; i++) {
		struct store_rename *rename = &call->renames[i];
		const char *test = rename->metric ? rename->test : rename->was;
		const char *metric = rename->metric ? rename->was : NULL;
		bool known = is_known(tx, test, metric);
		bool taken = is_known(tx, rename->test, rename->metric);

		rename->taken = known && taken;
		rename->moved = known && !taken;
		if (rename->metric && !rename->taken)
			move_metric(tx, v_text(test), v_text(metric), v_text(rename->metric));
		else if (!rename->taken)
			move_test(tx, v_text(test), v_text(rename->test));
	}
}
