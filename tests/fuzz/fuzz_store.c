/*
 * The state file as somebody or something has left it: pages that are damaged, values that make no
 * sense, or no database at all. It is refused, or every value that comes out of it is in its range;
 * nothing crashes or goes on for ever, neither reading nor writing.
 *
 * The first byte of an input says what the rest is: patches of a whole file (offset, length,
 * bytes), values that replace those of its rows (column, kind, value), or a file. The values come
 * into a file that is in use.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "agent/store/backend.h"
#include "agent/store/sql/rows.h"
#include "agent/store/store.h"

enum { PATCHES, VALUES, WHOLE_FILE, MODES };

static char folder[64], path[128];
/* A file with a row or two in each table. */
static uint8_t *whole;
static size_t whole_size;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void remove_files(void)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".lock"};

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		char name[160];

		snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
		(void)unlink(name);
	}
}

static void remove_folder(void)
{
	remove_files();
	(void)rmdir(folder);
	free(whole);
}

static void write_file(const uint8_t *data, size_t size)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	require(file >= 0 && write(file, data, size) == (ssize_t)size);
	close(file);
}

static void execute(const char *sql)
{
	sqlite3 *database;

	require(sqlite3_open(path, &database) == SQLITE_OK);
	require(sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK);
	sqlite3_close(database);
}

static struct tx *open_file(void)
{
	struct error error;
	struct tx *tx = sqlite_backend.open(path, STORE_OWN, &error);

	require(tx != NULL);
	return tx;
}

/* Small pages make a small file, so that a patch hits something. */
static void make_file(void)
{
	FILE *file;

	sqlite_backend.close(open_file());
	whole = malloc(1 << 20);

	execute("INSERT INTO changes (id, test, series, branch, sign, time, state, news,"
		" first_seen, spacing, runs, updated, metric, direction, count_before, count_after,"
		" place_from, place_to)"
		" VALUES (1, 'test', 'series', '', 1, 1000, 1, 1, 2000, 60, 1, 2000, 'metric', -1,"
		" 30, 20, 1000, 1000), (2, 'test', 'series', '', -1, 3000, 3, 2, 2000, 60, 1, "
		"2000, 'metric',"
		" 1, 30, 20, 3000, 3000);"
		"INSERT INTO deliveries (id, key, receiver, destination, payload, state, attempts,"
		" created, updated) VALUES (1, 'k1', 'slack', '#perf', '{}', 1, 0, 5, 5),"
		" (2, 'k2', 'slack', '#perf', '{}', 2, 1, 5, 6);"
		"UPDATE deliveries SET receipt = '15.2' WHERE id = 2;"
		"INSERT INTO announced (change, delivery) VALUES (1, 1), (2, 2);"
		"INSERT INTO events VALUES (1, 6, 6, 2, 1000, 'slack', '#perf', NULL, NULL, NULL,"
		" NULL), (2, 7, 4, 2, 1000, NULL, NULL, NULL, NULL, 7, NULL);"
		"INSERT INTO series (test, series, branch, anchor, last_point, revised) VALUES"
		" ('test', 'series', '', 10, 3000, 0);"
		"INSERT INTO conditions VALUES ('source csv', 1, 5, 'down');"
		"INSERT INTO triage (change, triage, version, person, triaged, until,"
		" accepted_size, accepted_low, accepted_high) VALUES (1, 3, 1, 'ann', 5, 9, 8, 7, "
		"9);"
		"INSERT INTO silences (matchers, begins, until, created) VALUES ('a', 1, 2, 1);"
		"INSERT INTO events (time, person, origin, kind, change, detail) VALUES"
		" (5, 'ann', 'command line', 10, 1, 'expected, was open');"
		"INSERT INTO excerpts VALUES (1, "
		"x'0202020000000000000000000000000000f03f0000803f')");
	execute("PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM");
	file = fopen(path, "rb");
	require(file != NULL && whole != NULL);
	whole_size = fread(whole, 1, 1 << 20, file);
	fclose(file);
	sqlite_backend.close(open_file()); /* else the fuzzer would not get far */
}

static void prepare(void)
{
	if (whole)
		return;
	log_setup(LEVEL_ERROR, LOG_FORMAT_TEXT, NULL);
	snprintf(folder, sizeof folder, "%s/fuzz_store.XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	require(mkdtemp(folder) != NULL);
	snprintf(path, sizeof path, "%s/state.db", folder);
	make_file();
	(void)atexit(remove_folder);
}

/* Three bytes of offset, one of length, the bytes. */
static void patch(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(whole_size);

	memcpy(copy, whole, whole_size);
	while (size >= 4) {
		size_t offset =
			((size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2]) % whole_size;
		size_t length = data[3];

		data += 4;
		size -= 4;
		if (length > size)
			length = size;
		if (length > whole_size - offset)
			length = whole_size - offset;
		memcpy(copy + offset, data, length);
		data += length;
		size -= length;
	}
	write_file(copy, whole_size);
	free(copy);
}

static const char *const columns[] = {"changes SET id", "changes SET sign", "changes SET time",
	"changes SET state", "changes SET news", "changes SET first_seen", "changes SET spacing",
	"changes SET runs", "changes SET updated", "changes SET direction",
	"changes SET count_before", "changes SET count_after", "changes SET members",
	"changes SET kind", "changes SET place_from", "changes SET place_to",
	"changes SET level_before", "changes SET place_commit_before", "changes SET pvalue",
	"changes SET mean_before", "changes SET test", "changes SET series", "changes SET metric",
	"changes SET unit", "changes SET attributes", "changes SET suspects", "changes SET shared",
	"deliveries SET id", "deliveries SET state", "deliveries SET attempts",
	"deliveries SET created", "deliveries SET updated", "deliveries SET key",
	"deliveries SET payload", "deliveries SET thread", "deliveries SET receipt",
	"events SET kind", "events SET time", "events SET point", "series SET anchor",
	"series SET last_point", "conditions SET kind", "conditions SET since",
	"conditions SET text", "counts SET count", "deliveries SET attempt_started",
	"deliveries SET not_before", "announced SET change", "announced SET delivery",
	"events SET change", "changes SET environment_event", "changes SET recovered",
	"events SET due", "series SET revision", "series SET revised", "triage SET change",
	"triage SET triage", "triage SET version", "triage SET triaged", "triage SET until",
	"triage SET accepted_size", "triage SET owed", "triage SET renewals",
	"triage SET told_after", "triage SET owner", "silences SET id", "silences SET begins",
	"silences SET until", "silences SET ended", "silences SET matchers", "silences SET summed",
	"events SET id", "events SET person", "events SET detail", "deliveries SET amend",
	"deliveries SET reaction"};

/* What does not fit the column's type is refused by SQLite, and left out. */
static void set_value(
	sqlite3 *database, const char *column, uint8_t kind, const uint8_t *value, size_t length)
{
	char sql[100];
	sqlite3_stmt *statement;
	int64_t number = 0;

	memcpy(&number, value, length < 8 ? length : 8);
	snprintf(sql, sizeof sql, "UPDATE %s = ?", column);
	if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK)
		return; /* there is no such column */
	if (kind % 3 == 0)
		sqlite3_bind_int64(statement, 1, number);
	else if (kind % 3 == 1)
		sqlite3_bind_text(statement, 1, (const char *)value, (int)length, SQLITE_STATIC);
	(void)sqlite3_step(statement);
	sqlite3_finalize(statement);
}

static void set_values(const uint8_t *data, size_t size)
{
	sqlite3 *database;

	require(sqlite3_open(path, &database) == SQLITE_OK);
	require(sqlite3_exec(database, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL) ==
		SQLITE_OK);
	while (size >= 3) {
		const char *column = columns[data[0] % (sizeof columns / sizeof *columns)];
		uint8_t kind = data[1];
		size_t length = data[2];

		data += 3;
		size -= 3;
		if (length > size)
			length = size;
		set_value(database, column, kind, data, length);
		data += length;
		size -= length;
	}
	sqlite3_close(database);
}

static void check_time(int64_t time)
{
	require(time >= -ROWS_MOST && time <= ROWS_MOST);
}

static void check_record(const struct change_record *record)
{
	require(record->item.id > 0 && record->item.id <= ROWS_MOST);
	require(record->state >= 1 && record->state < CHANGE_STATES);
	require(record->news < NOTIFY_COUNT && record->sign >= -1 && record->sign <= 1);
	require(record->series && record->branch);
	require(record->item.spacing >= 0 && record->item.spacing <= ROWS_MOST &&
		record->runs >= 0);
	require(record->item.direction >= -1 && record->item.direction <= 1);
	require(record->item.change.count_after <= (size_t)ROWS_MOST);
	check_time(record->item.time);
	check_time(record->first_seen);
	check_time(record->updated);
	require(record->triage.state >= TRIAGE_OPEN && record->triage.state < TRIAGE_STATES);
	require(record->triage.version >= 0 && record->triage.renewals >= 0);
	check_time(record->triage.until);
}

static void check_delivery(const struct delivery *delivery)
{
	require(delivery->id > 0 && delivery->key && delivery->receiver && delivery->destination);
	require(delivery->state >= 1 && delivery->state <= DELIVERY_ABANDONED &&
		delivery->attempts >= 0);
	check_time(delivery->now);
	check_time(delivery->not_before);
	for (size_t i = 0; i < delivery->record_count; i++)
		check_record(&delivery->records[i]);
}

static void check_records(struct record_rows records)
{
	for (size_t i = 0; i < records.count; i++)
		check_record(&records.items[i]);
}

static void check_deliveries(struct delivery_rows deliveries)
{
	for (size_t i = 0; i < deliveries.count; i++)
		check_delivery(&deliveries.items[i]);
}

static void check_checkpoints(struct checkpoint_rows checkpoints)
{
	for (size_t i = 0; i < checkpoints.count; i++) {
		require(checkpoints.items[i].series && checkpoints.items[i].branch);
		check_time(checkpoints.items[i].anchor);
		check_time(checkpoints.items[i].last_point);
	}
}

static void check_health(const struct health_rows *health)
{
	for (size_t i = 0; i < health->condition_count; i++) {
		require(health->conditions[i].subject && health->conditions[i].text);
		check_time(health->conditions[i].since);
	}
	for (size_t i = 0; i < health->moment_count; i++) {
		require(health->moments[i].name);
		check_time(health->moments[i].time);
	}
	for (size_t i = 0; i < health->vanished_count; i++) {
		require(health->vanished[i].test && health->vanished[i].series);
		check_time(health->vanished[i].ended);
	}
}

static void check_restored(const struct store_restore *restored)
{
	check_deliveries(restored->deliveries);
	check_health(&restored->health);
}

static void check_incidents(const struct store_incidents *found)
{
	for (size_t i = 0; i < found->incidents.count; i++)
		check_record(found->incidents.items[i].first);
	for (size_t i = 0; i < found->messages.count; i++)
		check_record(found->messages.items[i].message.records);
	for (size_t i = 0; i < found->series_count; i++)
		require(found->series[i].test && found->series[i].series);
}

static void check_pending(const struct store_pending *pending)
{
	check_records(pending->records);
	for (size_t i = 0; i < pending->seen.count; i++) {
		require(pending->seen.items[i].test && pending->seen.items[i].label);
		require(pending->seen.items[i].text);
		check_time(pending->seen.items[i].ended);
	}
	for (size_t i = 0; i < pending->events.count; i++) {
		if (pending->events.items[i].record)
			check_record(pending->events.items[i].record);
		check_deliveries(pending->events.items[i].messages);
	}
}

static void check_listed(const struct store_list *list)
{
	check_records(list->records);
	check_checkpoints(list->checkpoints);
	check_health(&list->health);
}

/* Performs the call; false if it fails. */
static bool perform(struct tx *tx, struct store_call *call)
{
	struct error error;
	bool done;

	tx->call = call;
	tx->arena = call->arena;
	tx->error = &error;
	sqlite_backend.begin(tx, call->work->writes);
	if (!tx->failed)
		call->work->run(tx, call);
	done = !tx->failed;
	for (int state = 1; done && call->counts && state < CHANGE_STATES; state++)
		require(call->counts->states[state] >= 0);
	if (done)
		sqlite_backend.commit(tx);
	sqlite_backend.rollback(tx);
	return done;
}

static void read_said(struct tx *tx)
{
	struct store_silences *silences = store_silences_new(NULL, NULL);
	struct store_audit *audit = store_audit_new(NULL, NULL);

	silences->all = true;
	if (perform(tx, &silences->call))
		for (size_t i = 0; i < silences->silences.count; i++) {
			require(silences->silences.items[i].matchers != NULL);
			check_time(silences->silences.items[i].until);
		}
	if (perform(tx, &audit->call))
		for (size_t i = 0; i < audit->entry_count; i++) {
			require(event_names[audit->entries[i].kind] != NULL);
			check_time(audit->entries[i].time);
		}
	store_call_free(&silences->call);
	store_call_free(&audit->call);
}

static void read_all(struct tx *tx)
{
	struct store_restore *restore = store_restore_new(NULL, NULL);
	struct store_known *known = store_known_new(NULL, NULL);
	struct store_checkpoints *checkpoints = store_checkpoints_new(NULL, NULL);
	struct store_pending *pending = store_pending_new(NULL, NULL);
	struct store_incidents *found = store_incidents_new(NULL, NULL);
	struct store_list *list = store_list_new(NULL, NULL);
	struct store_excerpts *excerpts = store_excerpts_new(NULL, NULL);
	const int64_t ids[] = {1, 2};

	excerpts->changes = ids;
	excerpts->change_count = 2;
	known->test = checkpoints->test = list->about = "test";
	found->sampled = restore->counted = true;
	if (perform(tx, &restore->call))
		check_restored(restore);
	if (perform(tx, &known->call))
		check_records(known->records);
	if (perform(tx, &checkpoints->call))
		check_checkpoints(checkpoints->checkpoints);
	if (perform(tx, &pending->call))
		check_pending(pending);
	if (perform(tx, &found->call))
		check_incidents(found);
	if (perform(tx, &list->call))
		check_listed(list);
	if (perform(tx, &excerpts->call))
		for (size_t i = 0; i < excerpts->count; i++)
			check_record(&excerpts->items[i].record);
	store_call_free(&excerpts->call);
	store_call_free(&restore->call);
	store_call_free(&known->call);
	store_call_free(&checkpoints->call);
	store_call_free(&pending->call);
	store_call_free(&found->call);
	store_call_free(&list->call);
	read_said(tx);
}

/* What people say: of the changes that are there, and of what has expired. */
static void speak(struct tx *tx)
{
	struct id_range range = {1, 9};
	struct store_triage *said = store_triage_new(NULL, NULL);
	struct store_reopen_due *due = store_reopen_due_new(NULL, NULL);
	struct store_silence *silence = store_silence_new(NULL, NULL);

	said->ranges = &range;
	said->range_count = 1;
	said->triage = (struct triage){.state = TRIAGE_IGNORED, .note = "n", .until = 6000};
	said->version = -1;
	said->now = 5000;
	due->now = 5500;
	silence->silence = (struct silence){.id = 1, .ended = 5, .summed = true};
	silence->now = 5;
	(void)perform(tx, &due->call);
	if (perform(tx, &said->call))
		check_records(said->records);
	if (perform(tx, &silence->call) && silence->found)
		require(silence->written.matchers != NULL);
	store_call_free(&said->call);
	store_call_free(&due->call);
	store_call_free(&silence->call);
}

static void write_all(struct tx *tx)
{
	struct delivery delivery = {.id = 1, .state = DELIVERY_SENT, .now = 7};
	struct change_record_update update = {
		.id = 1, .time = 4000, .now = 5000, .state = CHANGE_MOVED, .runs = 2};
	struct store_attempt *attempt = store_attempt_new(NULL, NULL);
	struct store_settle *reroute = store_settle_new(NULL, NULL);
	struct store_settle *settle = store_settle_new(NULL, NULL);
	struct store_prune *prune = store_prune_new(NULL, NULL);
	struct store_record *record = store_record_new(NULL, NULL);
	struct store_call *probe = store_probe_new();

	attempt->delivery = settle->delivery = delivery;
	reroute->delivery = (struct delivery){.id = 1, .state = DELIVERY_ABANDONED, .now = 7};
	reroute->reroutes = true;
	prune->before = 1000000;
	prune->thorough = true;
	record->updates = &update;
	record->update_count = 1;
	(void)perform(tx, &attempt->call);
	(void)perform(tx, &reroute->call);
	(void)perform(tx, &settle->call);
	(void)perform(tx, &prune->call);
	(void)perform(tx, probe);
	(void)perform(tx, &record->call);
	store_call_free(&attempt->call);
	store_call_free(&reroute->call);
	store_call_free(&settle->call);
	store_call_free(&prune->call);
	store_call_free(&record->call);
	store_call_free(probe);
}

/* All that is asked of it in a life. */
static void use(struct tx *tx)
{
	read_all(tx);
	speak(tx);
	write_all(tx);
}

/* Returns how many problems it has; 1 if it cannot be checked. */
static size_t check_file(void)
{
	struct arena *arena = arena_new();
	struct store_report report;
	struct error error;
	size_t problems = store_check(path, arena, &report, &error) ? report.problems.count : 1;

	arena_free(arena);
	return problems;
}

static struct tx *open_with_values(const uint8_t *data, size_t size)
{
	struct tx *tx;

	write_file(whole, whole_size);
	tx = open_file();
	set_values(data, size);
	return tx;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tx *tx = NULL;
	struct error error;

	prepare();
	remove_files();
	if (size > 0 && data[0] % MODES == VALUES)
		tx = open_with_values(data + 1, size - 1);
	else if (size > 0 && data[0] % MODES == PATCHES)
		patch(data + 1, size - 1);
	else
		write_file(size > 0 ? data + 1 : data, size > 0 ? size - 1 : 0);
	(void)check_file();
	if (!tx)
		tx = sqlite_backend.open(path, STORE_OWN, &error);
	if (tx) {
		use(tx);
		sqlite_backend.close(tx);
	}
	return 0;
}
