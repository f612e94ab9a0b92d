/*
 * Files that earlier versions have written, made by the words they made them with, are brought up
 * to date with all that they hold.
 */
#include "unit.h"

#include "agent/store/sql/work.h"
#include "agent/store/sqlite/file.h"
#include "agent/store/sqlite/schema.h"
#include "tests/unit/close.h"
#include "tests/unit/crash_vfs.h"
#include "tests/unit/store_talk.h"

static const char version_1[] =
	"CREATE TABLE changes (id INTEGER PRIMARY KEY, test TEXT NOT NULL, series TEXT NOT NULL,"
	" branch TEXT NOT NULL, sign INTEGER NOT NULL, time INTEGER NOT NULL,"
	" state INTEGER NOT NULL, news INTEGER NOT NULL, first_seen INTEGER NOT NULL,"
	" spacing INTEGER NOT NULL, updated INTEGER NOT NULL, metric TEXT NOT NULL, unit TEXT,"
	" direction INTEGER NOT NULL, pvalue REAL, mean_before REAL, mean_after REAL,"
	" stddev_before REAL, stddev_after REAL, count_before INTEGER NOT NULL,"
	" count_after INTEGER NOT NULL, magnitude REAL, commit_before TEXT, commit_after TEXT,"
	" version_before TEXT, version_after TEXT) STRICT;"
	"CREATE INDEX changes_of_series ON changes (test, series, branch);"
	"CREATE INDEX changes_of_state ON changes (state);"
	"CREATE INDEX changes_pending ON changes (id) WHERE news = 1;"
	"CREATE TABLE deliveries (id INTEGER PRIMARY KEY, key TEXT NOT NULL,"
	" receiver TEXT NOT NULL, destination TEXT NOT NULL, payload TEXT NOT NULL,"
	" state INTEGER NOT NULL, receipt TEXT, problem TEXT, attempts INTEGER NOT NULL,"
	" created INTEGER NOT NULL, updated INTEGER NOT NULL) STRICT;"
	"CREATE INDEX deliveries_queued ON deliveries (id) WHERE state = 1;"
	"CREATE TABLE announced (change INTEGER NOT NULL REFERENCES changes,"
	" delivery INTEGER NOT NULL REFERENCES deliveries,"
	" PRIMARY KEY (change, delivery)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE series (test TEXT NOT NULL, series TEXT NOT NULL, branch TEXT NOT NULL,"
	" run INTEGER NOT NULL, last_point INTEGER NOT NULL,"
	" PRIMARY KEY (test, series, branch)) STRICT, WITHOUT ROWID;"
	"INSERT INTO series VALUES ('db.read', 'p99', '', 3, 4);"
	"PRAGMA application_id = 1213550164; PRAGMA user_version = 1;";

static const char version_2[] =
	"DROP TABLE series;"
	"CREATE INDEX deliveries_settled ON deliveries (updated) WHERE state != 1;"
	"CREATE INDEX announced_by ON announced (delivery);"
	"PRAGMA user_version = 2;";

static const char version_3[] =
	"ALTER TABLE changes ADD COLUMN runs INTEGER NOT NULL DEFAULT 1;"
	"ALTER TABLE changes ADD COLUMN members INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE changes ADD COLUMN shared TEXT;"
	"ALTER TABLE deliveries ADD COLUMN thread TEXT;"
	"CREATE INDEX changes_of_time ON changes (time);"
	"CREATE TABLE history ("
	" change INTEGER NOT NULL REFERENCES changes, number INTEGER NOT NULL,"
	" event INTEGER NOT NULL, time INTEGER NOT NULL, point INTEGER NOT NULL,"
	" receiver TEXT, destination TEXT,"
	" PRIMARY KEY (change, number)) STRICT, WITHOUT ROWID;"
	"INSERT INTO history SELECT change,"
	" row_number() OVER (PARTITION BY change ORDER BY deliveries.updated, deliveries.id),"
	" 6, deliveries.updated, changes.time, receiver, destination FROM announced"
	" JOIN changes ON changes.id = change"
	" JOIN deliveries ON deliveries.id = delivery WHERE deliveries.state = 2;"
	"INSERT INTO history SELECT id,"
	" (SELECT coalesce(max(number), 0) + 1 FROM history WHERE change = id),"
	" iif(state = 2, 3, 4), updated, time, NULL, NULL FROM changes WHERE state IN (2, 3);"
	"CREATE TABLE series ("
	" test TEXT NOT NULL, series TEXT NOT NULL, branch TEXT NOT NULL,"
	" anchor INTEGER NOT NULL, last_point INTEGER NOT NULL,"
	" PRIMARY KEY (test, series, branch)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE conditions ("
	" subject TEXT PRIMARY KEY, kind INTEGER NOT NULL, since INTEGER NOT NULL,"
	" text TEXT NOT NULL) STRICT, WITHOUT ROWID;"
	"CREATE TABLE counts (state INTEGER PRIMARY KEY, count INTEGER NOT NULL) STRICT;"
	"INSERT INTO counts VALUES (1, 0), (2, 0), (3, 0), (4, 0);"
	"UPDATE counts SET count ="
	" (SELECT count(*) FROM changes WHERE changes.state = counts.state);"
	"CREATE TRIGGER counts_insert AFTER INSERT ON changes BEGIN"
	" UPDATE counts SET count = count + 1 WHERE state = new.state; END;"
	"CREATE TRIGGER counts_delete AFTER DELETE ON changes BEGIN"
	" UPDATE counts SET count = count - 1 WHERE state = old.state; END;"
	"CREATE TRIGGER counts_update AFTER UPDATE OF state ON changes"
	" WHEN old.state != new.state BEGIN"
	" UPDATE counts SET count = count - 1 WHERE state = old.state;"
	" UPDATE counts SET count = count + 1 WHERE state = new.state; END;"
	"PRAGMA user_version = 3;";

static const char version_4[] =
	"CREATE TABLE last_ids (name TEXT PRIMARY KEY, id INTEGER NOT NULL) STRICT, WITHOUT "
	"ROWID;"
	"INSERT INTO last_ids SELECT 'changes', coalesce(max(id), 0) FROM changes;"
	"INSERT INTO last_ids SELECT 'deliveries', coalesce(max(id), 0) FROM deliveries;"
	"CREATE TRIGGER last_ids_changes AFTER DELETE ON changes"
	" WHEN old.id > (SELECT id FROM last_ids WHERE name = 'changes') BEGIN"
	" UPDATE last_ids SET id = old.id WHERE name = 'changes'; END;"
	"CREATE TRIGGER last_ids_deliveries AFTER DELETE ON deliveries"
	" WHEN old.id > (SELECT id FROM last_ids WHERE name = 'deliveries') BEGIN"
	" UPDATE last_ids SET id = old.id WHERE name = 'deliveries'; END;"
	"ALTER TABLE deliveries ADD COLUMN attempt_started INTEGER;"
	"ALTER TABLE deliveries ADD COLUMN not_before INTEGER;"
	"UPDATE deliveries SET attempt_started = updated WHERE state = 1;"
	"CREATE INDEX deliveries_of_key ON deliveries (key);"
	"PRAGMA user_version = 4;";

static const char version_5[] = "ALTER TABLE changes ADD COLUMN attributes TEXT;"
				"UPDATE changes SET attributes = '[[\"machine\", \"m1\", \"m2\"]]'"
				" WHERE id = 1;"
				"PRAGMA user_version = 5;";

static const char version_6[] = "ALTER TABLE changes ADD COLUMN recovered INTEGER;"
				"ALTER TABLE changes ADD COLUMN recovered_level REAL;"
				"CREATE INDEX changes_recovery ON changes (id) WHERE news = 4;"
				"INSERT INTO counts VALUES (5, 0);"
				"ALTER TABLE series ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;"
				"ALTER TABLE series ADD COLUMN revised INTEGER NOT NULL DEFAULT 0;"
				"PRAGMA user_version = 6;";

static const char version_7[] = "ALTER TABLE changes ADD COLUMN kind INTEGER;"
				"ALTER TABLE changes ADD COLUMN level_before REAL;"
				"ALTER TABLE changes ADD COLUMN level_after REAL;"
				"ALTER TABLE changes ADD COLUMN size REAL;"
				"ALTER TABLE changes ADD COLUMN size_low REAL;"
				"ALTER TABLE changes ADD COLUMN size_high REAL;"
				"ALTER TABLE changes ADD COLUMN slope REAL;"
				"ALTER TABLE changes ADD COLUMN place_from INTEGER;"
				"ALTER TABLE changes ADD COLUMN place_to INTEGER;"
				"ALTER TABLE changes ADD COLUMN place_commit_before TEXT;"
				"ALTER TABLE changes ADD COLUMN place_commit_after TEXT;"
				"ALTER TABLE changes ADD COLUMN place_version_before TEXT;"
				"ALTER TABLE changes ADD COLUMN place_version_after TEXT;"
				"PRAGMA user_version = 7;";

static const char version_8[] =
	"CREATE TABLE moments (name TEXT PRIMARY KEY, time INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
	"INSERT INTO moments VALUES ('heartbeat slack', 4000);"
	"PRAGMA user_version = 8;";

static const char version_9[] =
	"CREATE TABLE vanished (test TEXT NOT NULL, series TEXT NOT NULL, ended INTEGER NOT NULL,"
	" PRIMARY KEY (test, series)) STRICT, WITHOUT ROWID;"
	"INSERT INTO vanished VALUES ('db.read', 'p99', 4500);"
	"PRAGMA user_version = 9;";

static const char version_10[] = "ALTER TABLE changes ADD COLUMN suspects TEXT;"
				 "PRAGMA user_version = 10;";

static const char version_11[] =
	"ALTER TABLE changes ADD COLUMN environment TEXT;"
	"ALTER TABLE changes ADD COLUMN environment_event INTEGER;"
	"CREATE INDEX changes_of_environment ON changes (environment_event)"
	" WHERE environment_event IS NOT NULL;"
	"CREATE TABLE environments ("
	" id INTEGER PRIMARY KEY, label TEXT NOT NULL, value TEXT NOT NULL,"
	" time INTEGER NOT NULL, spacing INTEGER NOT NULL, hit INTEGER NOT NULL,"
	" total INTEGER NOT NULL, up INTEGER NOT NULL, down INTEGER NOT NULL,"
	" worse INTEGER NOT NULL, better INTEGER NOT NULL, size REAL, elsewhere INTEGER NOT NULL,"
	" elsewhere_changed INTEGER NOT NULL, told INTEGER NOT NULL, followed INTEGER NOT NULL,"
	" created INTEGER NOT NULL) STRICT;"
	"INSERT INTO environments VALUES (1, 'runner', 'runner-7', 1000, 60, 41, 43, 41, 0, 41, 0,"
	" 8.0, 86, 0, 41, 0, 3000);"
	"PRAGMA user_version = 11;";

/* One change that was announced twice and moved, one withdrawn, one to be told, one in a queue. */
static const char content[] =
	"INSERT INTO changes VALUES"
	" (1, 'db.read', 'p99', '', 1, 1000, 2, 2, 2000, 60, 5000, 'p99', 'ns', -1,"
	"  0.001, 1.5, 2.5, 0.25, 0.5, 30, 20, 0.6, 'a1', 'b2', NULL, NULL),"
	" (2, 'db.read', 'p50', '', -1, 1100, 3, 0, 2000, 60, 6000, 'p50', NULL, 0,"
	"  NULL, 1, 2, 0, 0, 9, 9, 1, NULL, NULL, 'v1', 'v2'),"
	" (3, 'db.write', 'p99', 'dev', 1, 1200, 1, 1, 2000, 60, 2000, 'p99', NULL, 1,"
	"  0, 1, 2, 0, 0, 9, 9, 1, NULL, NULL, NULL, NULL),"
	" (4, 'db.write', 'p99', '', 1, 1300, 1, 2, 2000, 60, 2000, 'p99', NULL, 1,"
	"  0, 1, 2, 0, 0, 9, 9, 1, NULL, NULL, NULL, NULL);"
	"INSERT INTO deliveries VALUES"
	" (1, 'k1', 'slack', '#perf', '{}', 2, '15.2', NULL, 1, 2500, 3000),"
	" (2, 'k2', 'slack', '#ops', '{}', 2, '15.3', NULL, 1, 2500, 3500),"
	" (3, 'k3', 'slack', '#perf', '{}', 1, NULL, NULL, 0, 2600, 2600);"
	"INSERT INTO announced VALUES (1, 1), (1, 2), (4, 3);";

static void check_restored(struct fixture *fixture)
{
	struct store_restore *request = restore(fixture);
	struct store_pending *due = pending(fixture);

	assert_int_equal(due->records.count, 1);
	assert_int_equal(due->records.items[0].item.id, 3);
	assert_string_equal(due->records.items[0].branch, "dev");
	assert_int_equal(due->records.items[0].runs, 1);
	assert_int_equal(due->records.items[0].item.members, 0);
	assert_null(due->records.items[0].item.shared);
	assert_int_equal(due->recoveries.count + due->retractions.count, 0);
	store_call_free(&due->call);
	assert_int_equal(request->deliveries.count, 1);
	assert_string_equal(request->deliveries.items[0].key, "k3");
	assert_null(request->deliveries.items[0].thread);
	assert_int_equal(request->counts.states[CHANGE_CONFIRMED], 2);
	assert_int_equal(request->counts.states[CHANGE_MOVED], 1);
	assert_int_equal(request->counts.states[CHANGE_WITHDRAWN], 1);
	assert_int_equal(request->counts.states[CHANGE_CANDIDATE], 0);
	assert_int_equal(request->counts.states[CHANGE_RECOVERED], 0);
	store_call_free(&request->call);
}

static void check_event(
	const struct event *event, enum event_kind kind, int64_t time, const char *destination)
{
	assert_int_equal(event->kind, kind);
	assert_int_equal(event->time, time);
	if (destination)
		assert_string_equal(event->destination, destination);
	else
		assert_null(event->destination);
}

/* Its levels are its means, and it lies where it was found. */
static void check_description(const struct announcement *item)
{
	assert_int_equal(item->change.kind, CHANGE_STEP);
	assert_close(item->change.level_before, 1.5, 0);
	assert_close(item->change.level_after, 2.5, 0);
	assert_close(item->change.size, 200.0 / 3, 1e-15);
	assert_true(isnan(item->change.size_low) && isnan(item->change.size_high));
	assert_true(isnan(item->slope));
	assert_int_equal(item->place_from, 1000);
	assert_int_equal(item->place_to, 1000);
	assert_string_equal(item->place_commit_before, "a1");
	assert_string_equal(item->place_commit_after, "b2");
	assert_null(item->place_version_before);
	assert_false(item->suspects.known);
}

/* What an earlier version did not write down is not made up. */
static void check_history(struct fixture *fixture)
{
	struct store_list *request = store_list_new(NULL, NULL);
	const struct change_record *withdrawn, *moved;

	ask(fixture, &request->call);
	assert_false(request->call.failed);
	assert_int_equal(request->records.count, 4);
	moved = &request->records.items[3];
	assert_int_equal(moved->item.id, 1);
	assert_int_equal(moved->event_count, 4);
	check_description(&moved->item);
	check_event(&moved->events[0], EVENT_FOUND, 2000, NULL);
	check_event(&moved->events[1], EVENT_ANNOUNCED, 3000, "#perf");
	check_event(&moved->events[2], EVENT_ANNOUNCED, 3500, "#ops");
	check_event(&moved->events[3], EVENT_MOVED, 5000, NULL);
	withdrawn = &request->records.items[2];
	assert_string_equal(withdrawn->item.version_after, "v2");
	assert_int_equal(withdrawn->event_count, 2);
	check_event(&withdrawn->events[1], EVENT_WITHDRAWN, 6000, NULL);
	assert_int_equal(request->records.items[1].event_count, 1);
	store_call_free(&request->call);
}

static void bring_up_to_date(struct fixture *fixture)
{
	char version[60];

	open_fixture(fixture);
	check_restored(fixture);
	check_history(fixture);
	reopen(fixture);
	check_restored(fixture);
	snprintf(version, sizeof version, "pragma_user_version WHERE user_version = %d",
		STORE_VERSION);
	assert_int_equal(count_rows(fixture, version), 1);
	assert_int_equal(count_rows(fixture, "series"), 0);
}

static void test_version_1(void **state)
{
	struct fixture *fixture = *state;

	database_with(fixture, version_1);
	database_with(fixture, content);
	bring_up_to_date(fixture);
}

static void test_version_2(void **state)
{
	struct fixture *fixture = *state;

	database_with(fixture, version_1);
	database_with(fixture, version_2);
	database_with(fixture, content);
	bring_up_to_date(fixture);
}

static void test_version_3(void **state)
{
	struct fixture *fixture = *state;

	database_with(fixture, version_1);
	database_with(fixture, version_2);
	database_with(fixture, content);
	database_with(fixture, version_3);
	bring_up_to_date(fixture);
	fixture->queued = 3;
	assert_int_equal(record_one(fixture, &example), 5);
	assert_int_equal(queue_one(fixture, 5), 4);
}

/* Versions that had no columns for what is told now: their changes get them when they are seen
 * again. */
static void check_renewed(struct fixture *fixture)
{
	struct announcement item = example.item;
	struct change_record_update update = {
		.id = 1, .time = 1000, .now = 7000, .state = CHANGE_MOVED, .item = &item};
	struct store_known *of_test;
	struct store_record *recording;

	bring_up_to_date(fixture);
	of_test = known(fixture, "db.read");
	assert_int_equal(of_test->records.count, 2);
	assert_int_equal(of_test->records.items[1].item.id, 1);
	assert_int_equal(of_test->records.items[1].item.change.kind, CHANGE_STEP);
	assert_int_equal(of_test->records.items[1].item.place_to, 1000);
	store_call_free(&of_test->call);
	recording = store_record_new(NULL, NULL);
	recording->updates = &update;
	recording->update_count = 1;
	ask(fixture, &recording->call);
	assert_false(recording->call.failed);
	store_call_free(&recording->call);
	of_test = known(fixture, "db.read");
	assert_int_equal(of_test->records.items[1].item.change.kind, CHANGE_TREND);
	assert_int_equal(of_test->records.items[1].item.place_to, item.place_to);
	store_call_free(&of_test->call);
}

static void make_version_5(struct fixture *fixture)
{
	database_with(fixture, version_1);
	database_with(fixture, version_2);
	database_with(fixture, content);
	database_with(fixture, version_3);
	database_with(fixture, version_4);
	database_with(fixture, version_5);
}

static void test_version_5(void **state)
{
	struct fixture *fixture = *state;

	make_version_5(fixture);
	check_renewed(fixture);
}

static void test_version_6(void **state)
{
	struct fixture *fixture = *state;

	make_version_5(fixture);
	database_with(fixture, version_6);
	check_renewed(fixture);
}

static void make_version_8(struct fixture *fixture)
{
	make_version_5(fixture);
	database_with(fixture, version_6);
	database_with(fixture, version_7);
	database_with(fixture, version_8);
}

/* When a receiver was told what is not to happen again soon is kept. */
static void check_moments(struct fixture *fixture)
{
	check_renewed(fixture);
	assert_int_equal(count_rows(fixture, "moments WHERE time = 4000"), 1);
}

static void test_version_8(void **state)
{
	struct fixture *fixture = *state;

	make_version_8(fixture);
	check_moments(fixture);
}

/* And which series were told to have vanished. */
static void test_version_9(void **state)
{
	struct fixture *fixture = *state;

	make_version_8(fixture);
	database_with(fixture, version_9);
	check_moments(fixture);
	assert_int_equal(count_rows(fixture, "vanished WHERE ended = 4500"), 1);
}

static void test_version_10(void **state)
{
	struct fixture *fixture = *state;

	make_version_8(fixture);
	database_with(fixture, version_9);
	database_with(fixture, version_10);
	check_moments(fixture);
	assert_int_equal(count_rows(fixture, "vanished WHERE ended = 4500"), 1);
}

static void make_version_11(struct fixture *fixture)
{
	make_version_8(fixture);
	database_with(fixture, version_9);
	database_with(fixture, version_10);
	database_with(fixture, version_11);
}

static void test_version_11(void **state)
{
	struct fixture *fixture = *state;

	make_version_11(fixture);
	check_moments(fixture);
	assert_int_equal(count_rows(fixture, "set_aside"), 0);
	assert_int_equal(count_rows(fixture, "environments WHERE value = 'runner-7'"), 1);
}

static void remove_files(const struct fixture *fixture)
{
	char command[300];

	snprintf(command, sizeof command, "rm -f %s*", fixture->path);
	assert_int_equal(system(command), 0);
}

/* Ids that rows had which are gone are not given again. */
static void test_version_11_keeps_its_last_ids(void **state)
{
	struct fixture *fixture = *state;

	make_version_11(fixture);
	database_with(fixture,
		"DELETE FROM announced WHERE delivery = 3;"
		"DELETE FROM deliveries WHERE id = 3; DELETE FROM changes WHERE id = 4;"
		"UPDATE last_ids SET id = 8 WHERE name = 'deliveries'");
	open_fixture(fixture);
	fixture->queued = 3;
	assert_int_equal(record_one(fixture, &example), 5);
	assert_int_equal(queue_one(fixture, 5), 9);
	assert_int_equal(count_rows(fixture, "set_aside"), 0);
}

static void expect_whole(const struct fixture *fixture, const char *what)
{
	struct arena *arena = arena_new();
	struct store_report report;
	struct error error;

	if (!store_check(fixture->path, arena, &report, &error))
		fail_msg("%s: %s", what, error.text);
	if (report.problems.count > 0)
		fail_msg("%s: %s", what, report.problems.items[0]);
	arena_free(arena);
}

/* Rows that contradict one another or make no sense are mended or left out, and kept as they were;
 * all others are as before, and nothing that waits to be told is lost with them. */
static void test_contradictions_are_set_aside(void **state)
{
	static const struct {
		const char *spoiled, *then, *aside;
	} cases[] = {
		{"UPDATE changes SET state = 77 WHERE id = 2",
			"(SELECT count(*) AS n FROM changes) WHERE n = 3",
			"source = 'changes' AND mended = 0 AND json_extract(row, '$[6]') = 77"},
		{"UPDATE changes SET id = -1 WHERE id = 2",
			"(SELECT count(*) AS n FROM changes) WHERE n = 3",
			"json_extract(row, '$[0]') = -1"},
		{"UPDATE changes SET environment_event = 1 WHERE id = 1;"
		 "UPDATE changes SET environment_event = 99 WHERE id = 2",
			"changes WHERE id = 2 AND environment_event IS NULL",
			"mended = 1 AND json_extract(row, '$[47]') = 99"},
		{"UPDATE deliveries SET key = 'k1'", "deliveries WHERE key = 'k1-2' AND id = 2",
			"mended = 1 AND json_extract(row, '$[0]') = 2"},
		{"UPDATE deliveries SET attempts = -1 WHERE id = 3",
			"changes WHERE id = 4 AND news = 1",
			"source = 'deliveries' AND mended = 0"},
		{"INSERT INTO announced VALUES (9, 1)",
			"announced WHERE change = 1 AND delivery = 1",
			"source = 'announced' AND row = '[9,1]'"},
		{"INSERT INTO announced VALUES (1, 9)",
			"announced WHERE change = 1 AND delivery = 1",
			"source = 'announced' AND row = '[1,9]'"},
		{"INSERT INTO history VALUES (9, 1, 3, 5, 5, NULL, NULL)",
			"history WHERE change = 1 AND number = 1", "row = '[9,1,3,5,5,null,null]'"},
		{"UPDATE history SET event = 0 WHERE change = 2",
			"history WHERE change = 1 AND number = 1", "source = 'history'"},
		{"INSERT INTO series VALUES ('a', 'b', '', 5, 6, -1, 0)", "moments",
			"source = 'series'"},
		{"INSERT INTO conditions VALUES ('source csv', 6, 5, 'down')", "moments",
			"source = 'conditions'"},
		{"UPDATE counts SET count = -4", "counts WHERE state = 1 AND count = 2", "0"},
		{"DELETE FROM counts; DELETE FROM last_ids", "counts WHERE state = 1 AND count = 2",
			"0"},
		{"UPDATE last_ids SET id = 9223372036854775807",
			"sqlite_sequence WHERE name = 'changes' AND seq = 4", "0"},
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char rows[150];

		make_version_11(fixture);
		database_with(fixture, cases[i].spoiled);
		open_fixture(fixture);
		snprintf(rows, sizeof rows, "set_aside WHERE %s", cases[i].aside);
		if (count_rows(fixture, rows) != (strcmp(cases[i].aside, "0") != 0))
			fail_msg("%s: not set aside", cases[i].spoiled);
		if (count_rows(fixture, cases[i].then) != 1)
			fail_msg("%s: not so: %s", cases[i].spoiled, cases[i].then);
		assert_int_equal(count_rows(fixture, "environments"), 1);
		store_close(fixture->store);
		fixture->store = NULL;
		expect_whole(fixture, cases[i].spoiled);
		remove_files(fixture);
	}
}

static void many_rows(struct fixture *fixture)
{
	make_version_11(fixture);
	database_with(fixture,
		"WITH RECURSIVE n (i) AS (SELECT 5 UNION ALL SELECT i + 1 FROM n WHERE i < 400)"
		" INSERT INTO changes SELECT i, 'db.read', 'p' || i, '', 1, 1000 + i, 1, 2, 2000, "
		"60,"
		" 5000, 'p' || i, 'ns', -1, 0.001, 1.5, 2.5, 0.25, 0.5, 30, 20, 0.6, 'a1', 'b2', "
		"NULL,"
		" NULL, 1, 0, NULL, NULL, NULL, NULL, 0, 1, 2, 3, 4, 5, 6, 1000, 1000, NULL, NULL,"
		" NULL, NULL, NULL, 'runner-7', 1 FROM n;"
		"WITH RECURSIVE n (i) AS (SELECT 5 UNION ALL SELECT i + 1 FROM n WHERE i < 400)"
		" INSERT INTO deliveries (id, key, receiver, destination, payload, state, attempts,"
		" created, updated) SELECT i, 'k' || i, 'slack', '#perf', '{}', 1 + i % 3, 0, 5, i"
		" FROM n; INSERT INTO announced SELECT id, id FROM changes WHERE id > 4;"
		"INSERT INTO history SELECT id, 1, 2, 5, 5, NULL, NULL FROM changes WHERE id > 4;"
		"PRAGMA journal_mode = WAL");
}

/* How much a file holds, of each kind of row another multiple. */
static int64_t sum_of(const struct fixture *fixture)
{
	static const char *const tables[] = {"changes", "deliveries", "announced", "history",
		"environments", "moments", "vanished"};
	int64_t sum = 0;

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		sum = 100 * sum + count_rows(fixture, tables[i]);
	return sum;
}

/* The power fails while a file is brought up to date: it is of the version it had or of this one,
 * whole and with all its rows, and is brought up to date when it is opened next. */
static void test_power_failures(void **state)
{
	struct fixture *fixture = *state;
	size_t images = getenv("HUNTER_TEST_FULL") ? 200 : 20, before = 0;
	char telling[sizeof fixture->path];
	uint64_t random = 1;
	int64_t sum;
	size_t start;

	crash_begin(fixture->path);
	many_rows(fixture);
	sum = sum_of(fixture);
	start = crash_log.count;
	open_fixture(fixture);
	store_close(fixture->store);
	fixture->store = NULL;
	crash_end();
	strcpy(telling, fixture->path);
	snprintf(fixture->path, sizeof fixture->path, "%s/image.db", fixture->folder);
	for (size_t i = 0; i < images; i++) {
		size_t moment = start + random_below(&random, crash_log.count - start);
		char image[60];

		snprintf(image, sizeof image, "image %zu, operation %zu of %zu", i, moment,
			crash_log.count);
		crash_make(fixture->path, moment, (enum crash_way)(i % CRASH_WAYS), &random);
		before +=
			(size_t)count_rows(fixture, "pragma_user_version WHERE user_version = 11");
		open_fixture(fixture);
		if (sum_of(fixture) != sum || count_rows(fixture, "set_aside") != 0)
			fail_msg("%s: rows are missing", image);
		store_close(fixture->store);
		fixture->store = NULL;
		expect_whole(fixture, image);
		remove_files(fixture);
	}
	crash_forget();
	assert_true(before > 0 && before < images);
}

/* What is only tried leaves a file of an earlier version in its version. */
static void test_copy_of_an_earlier_version(void **state)
{
	struct fixture *fixture = *state;
	struct store_pending *request = store_pending_new(NULL, NULL);
	struct store_file *copy;
	struct error error;

	database_with(fixture, version_1);
	database_with(fixture, version_2);
	database_with(fixture, content);
	copy = store_file_copy(fixture->path, &error);
	if (!copy)
		fail_msg("%s", error.text);
	assert_true(store_file_begin(copy, true, &error));
	assert_true(sql_perform(copy, &request->call, &error));
	assert_int_equal(request->records.count, 1);
	store_file_rollback(copy);
	store_call_free(&request->call);
	store_file_close(copy);
	assert_int_equal(count_rows(fixture, "pragma_user_version WHERE user_version = 2"), 1);
	bring_up_to_date(fixture);
}

/* A migration that fails leaves the file in the version it had. */
static void test_failed_migration_changes_nothing(void **state)
{
	struct fixture *fixture = *state;

	database_with(fixture, version_1);
	database_with(fixture, version_2);
	database_with(fixture, content);
	database_with(fixture, "CREATE TABLE conditions (x)");
	refused(fixture, "cannot migrate it: table conditions already exists");
	assert_int_equal(count_rows(fixture, "pragma_user_version WHERE user_version = 2"), 1);
	assert_int_equal(count_rows(fixture, "sqlite_schema WHERE name = 'history'"), 0);
	database_with(fixture, "DROP TABLE conditions");
	bring_up_to_date(fixture);
}

/* One of before what people say: nobody has said anything, and nothing is news by that. */
static void test_version_13(void **state)
{
	struct fixture *fixture = *state;

	make_version_11(fixture);
	database_with(fixture, store_migrations[11]);
	database_with(fixture, store_migrations[12]);
	database_with(fixture, "PRAGMA user_version = 13");
	assert_int_equal(count_rows(fixture, "changes WHERE news = 1"), 1);
	check_moments(fixture);
	assert_int_equal(count_rows(fixture, "changes WHERE news = 1"), 1);
	assert_int_equal(count_rows(fixture, "triage"), 0);
	assert_int_equal(count_rows(fixture, "silences"), 0);
	assert_int_equal(count_rows(fixture, "audit"), 0);
}

/* One of before the points around changes: there are none of them, and nothing is news. */
static void test_version_15(void **state)
{
	struct fixture *fixture = *state;

	make_version_11(fixture);
	for (int version = 11; version < 15; version++)
		database_with(fixture, store_migrations[version]);
	database_with(fixture, "PRAGMA user_version = 15");
	assert_int_equal(count_rows(fixture, "changes WHERE news = 1"), 1);
	check_moments(fixture);
	assert_int_equal(count_rows(fixture, "changes WHERE news = 1"), 1);
	assert_int_equal(count_rows(fixture, "announced WHERE said IS NOT NULL"), 0);
	assert_int_equal(count_rows(fixture, "deliveries WHERE amend IS NOT NULL"), 0);
	assert_int_equal(count_rows(fixture, "excerpts"), 0);
}

/* One of before bisections; what is to be said of changes stays. */
static void test_version_16(void **state)
{
	struct fixture *fixture = *state;
	int64_t before;

	make_version_11(fixture);
	for (int version = 11; version < 16; version++)
		database_with(fixture, store_migrations[version]);
	database_with(fixture, "UPDATE announced SET said = 3, told_size = 1.5, told_time = 7");
	database_with(fixture, "PRAGMA user_version = 16");
	before = count_rows(fixture, "announced WHERE said = 3");
	assert_true(before > 0);
	open_fixture(fixture);
	assert_int_equal(count_rows(fixture,
				 "announced WHERE said = 3 AND told_size = 1.5 AND told_time = 7"),
		before);
	assert_int_equal(count_rows(fixture, "changes WHERE culprit IS NOT NULL"), 0);
	assert_int_equal(count_rows(fixture, "bisections"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_version_1),
		CASE(test_version_2),
		CASE(test_version_3),
		CASE(test_version_5),
		CASE(test_version_6),
		CASE(test_version_8),
		CASE(test_version_9),
		CASE(test_version_10),
		CASE(test_version_11),
		CASE(test_version_11_keeps_its_last_ids),
		CASE(test_version_13),
		CASE(test_version_15),
		CASE(test_version_16),
		CASE(test_contradictions_are_set_aside),
		CASE(test_power_failures),
		CASE(test_copy_of_an_earlier_version),
		CASE(test_failed_migration_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
