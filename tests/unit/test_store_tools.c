/*
 * Looking at a state file and caring for it: beside a running store, without one, and when the file
 * is damaged.
 */
#include "unit.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "agent/store/sqlite/file.h"
#include "tests/unit/store_talk.h"

/* The names of the files there are, sorted. */
static void expect_files(const struct fixture *fixture, const char *expected)
{
	struct dirent **entries;
	int count = scandir(fixture->folder, &entries, NULL, alphasort);
	char names[400] = "";

	assert_true(count >= 0);
	for (int i = 0; i < count; i++) {
		if (entries[i]->d_name[0] != '.')
			sprintf(names + strlen(names), "%s ", entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	assert_string_equal(names, expected);
}

static size_t count_listed(const struct fixture *fixture)
{
	struct store_list *request = store_list_new(NULL, NULL);
	struct error error;
	size_t count;

	if (!store_tx(fixture->path, STORE_READ, &request->call, &error))
		fail_msg("%s", error.text);
	count = request->records.count;
	store_call_free(&request->call);
	return count;
}

static void read_fails(const struct fixture *fixture, const char *words)
{
	struct store_list *request = store_list_new(NULL, NULL);
	struct error error = {0};

	assert_false(store_tx(fixture->path, STORE_READ, &request->call, &error));
	store_call_free(&request->call);
	assert_int_equal(error.kind, ERROR_STATE);
	if (!strstr(error.text, words))
		fail_msg("\"%s\" does not say \"%s\"", error.text, words);
	assert_non_null(strstr(error.text, fixture->path));
}

static void close_fixture(struct fixture *fixture)
{
	store_close(fixture->store);
	fixture->store = NULL;
}

static void test_read_beside_a_running_store(void **state)
{
	struct fixture *fixture = *state;

	open_fixture(fixture);
	for (size_t i = 1; i <= 5; i++) {
		record_one(fixture, &example);
		assert_int_equal(count_listed(fixture), i);
	}
	expect_files(fixture, "state.db state.db-shm state.db-wal state.db.lock ");
}

struct taker {
	struct fixture *fixture; /* NULL: its agent has begun */
	bool removes;
	size_t count, answers;
};

/* An agent begins after the first change was read, and its file is removed. */
static bool take(struct store_list *list, const struct change_record *record)
{
	struct taker *taker = list->taker;

	taker->count = record ? taker->count + 1 : 0;
	if (!record || !taker->fixture)
		return true;
	open_fixture(taker->fixture);
	record_one(taker->fixture, &example);
	if (taker->removes)
		assert_int_equal(unlink(taker->fixture->path), 0);
	taker->fixture = NULL;
	return true;
}

static void taken(struct store_list *list)
{
	struct taker *taker = list->taker;

	taker->answers++;
}

static bool read_beside(struct taker *taker, struct error *error)
{
	struct fixture *fixture = taker->fixture;
	struct store_list *list = store_list_new(NULL, NULL);
	bool done;

	open_fixture(fixture);
	record_one(fixture, &example);
	close_fixture(fixture);
	list->take = take;
	list->taken = taken;
	list->taker = taker;
	done = store_tx(fixture->path, STORE_READ, &list->call, error);
	store_call_free(&list->call);
	return done;
}

/* What was read while an agent has taken the file over is read again, from the beginning. */
static void test_read_while_an_agent_begins(void **state)
{
	struct taker taker = {.fixture = *state};
	struct error error;

	if (!read_beside(&taker, &error))
		fail_msg("%s", error.text);
	assert_int_equal(taker.count, 2);
	assert_int_equal(taker.answers, 2);
}

static void test_read_while_the_file_goes_away(void **state)
{
	struct taker taker = {.fixture = *state, .removes = true};
	struct error error;

	assert_false(read_beside(&taker, &error));
	assert_non_null(strstr(error.text, "No such file"));
}

static void test_read_alone_makes_no_file(void **state)
{
	struct fixture *fixture = *state;

	open_fixture(fixture);
	record_one(fixture, &example);
	close_fixture(fixture);
	expect_files(fixture, "state.db state.db.lock ");
	assert_int_equal(count_listed(fixture), 1);
	expect_files(fixture, "state.db state.db.lock ");
}

/* What a process that died has left in its log is read, too, and left to the next agent. */
static void test_read_after_a_kill(void **state)
{
	struct fixture *fixture = *state, dead = *fixture;
	char copy[300];

	strcat(dead.folder, "/dead");
	snprintf(dead.path, sizeof dead.path, "%s/state.db", dead.folder);
	open_fixture(fixture);
	record_one(fixture, &example);
	snprintf(copy, sizeof copy, "cd %s && mkdir dead && cp state.db* dead && rm dead/*.lock",
		fixture->folder);
	assert_int_equal(system(copy), 0);
	close_fixture(fixture);
	assert_int_equal(count_listed(&dead), 1);
	expect_files(&dead, "state.db state.db-shm state.db-wal ");
	snprintf(copy, sizeof copy, "rm %s-shm", dead.path);
	assert_int_equal(system(copy), 0);
	read_fails(&dead, "without the index");
	expect_files(&dead, "state.db state.db-wal ");
}

static void test_read_of_odd_names(void **state)
{
	struct fixture *fixture = *state;

	strcat(fixture->path, "%20?x#y");
	open_fixture(fixture);
	record_one(fixture, &example);
	assert_int_equal(count_listed(fixture), 1);
	close_fixture(fixture);
	assert_int_equal(count_listed(fixture), 1);
	expect_files(fixture, "state.db%20?x#y state.db%20?x#y.lock ");
}

static void damage(const struct fixture *fixture, off_t offset)
{
	char holes[4096];
	int file = open(fixture->path, O_WRONLY);

	memset(holes, 0x5a, sizeof holes);
	assert_true(file >= 0);
	assert_int_equal(pwrite(file, holes, sizeof holes, offset), sizeof holes);
	close(file);
}

static void test_what_cannot_be_read(void **state)
{
	struct fixture *fixture = *state;

	read_fails(fixture, "does not exist yet");
	expect_files(fixture, "");
	database_with(fixture, "CREATE TABLE recipes (name TEXT)");
	read_fails(fixture, "another program");
	assert_int_equal(unlink(fixture->path), 0);
	open_fixture(fixture);
	close_fixture(fixture);
	database_with(fixture, "PRAGMA user_version = 99");
	read_fails(fixture, "made by another build of hunter-c");
	damage(fixture, 0);
	read_fails(fixture, "damaged");
}

static void test_a_table_that_is_missing_is_named(void **state)
{
	struct fixture *fixture = *state;
	struct store_list *list = store_list_new(NULL, NULL);
	struct error error = {0};

	open_fixture(fixture);
	close_fixture(fixture);
	database_with(fixture, "DROP TABLE conditions");
	list->about = "";
	assert_false(store_tx(fixture->path, STORE_READ, &list->call, &error));
	store_call_free(&list->call);
	assert_non_null(strstr(error.text, "cannot read it: no such table: conditions"));
}

/* A number that stands for nothing is not taken for something. */
static void test_strange_numbers(void **state)
{
	static const char *const strange[] = {"news = 5", "news = -1", "state = -5", "state = 0",
		"id = -1", "id = 9223372036854775806", "sign = 2", "direction = -2",
		"time = 9223372036854775806", "time = -9223372036854775807",
		"first_seen = 4611686018427387904", "updated = -4611686018427387904",
		"spacing = -1", "spacing = 9223372036854775806", "runs = -1", "count_after = -1",
		"count_before = 9223372036854775806", "members = -1",
		"recovered = 9223372036854775806"};
	struct fixture *fixture = *state;

	open_fixture(fixture);
	record_one(fixture, &example);
	close_fixture(fixture);
	for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
		char sql[200];

		snprintf(sql, sizeof sql,
			"DROP TABLE IF EXISTS good; CREATE TABLE good AS SELECT * FROM changes;"
			"UPDATE changes SET %s",
			strange[i]);
		spoil(fixture, sql);
		read_fails(fixture, "out of range or missing");
		database_with(fixture, "PRAGMA foreign_keys = OFF; DELETE FROM changes;"
				       " INSERT INTO changes SELECT * FROM good");
		assert_int_equal(count_listed(fixture), 1);
	}
}

static struct store_report check(const struct fixture *fixture, struct arena *arena)
{
	struct store_report report;
	struct error error;

	if (!store_check(fixture->path, arena, &report, &error))
		fail_msg("%s", error.text);
	return report;
}

static void expect_problem(const struct fixture *fixture, const char *words)
{
	struct arena *arena = arena_new();
	struct store_report report = check(fixture, arena);
	bool said = false;

	for (size_t i = 0; i < report.problems.count; i++)
		said |= strstr(report.problems.items[i], words) != NULL;
	if (!said)
		fail_msg("%zu problems, none says \"%s\" (%s)", report.problems.count, words,
			report.problems.count ? report.problems.items[0] : "");
	arena_free(arena);
}

static void expect_whole(const struct fixture *fixture)
{
	struct arena *arena = arena_new();
	struct store_report report = check(fixture, arena);

	if (report.problems.count > 0)
		fail_msg("%s", report.problems.items[0]);
	assert_int_equal(report.changes, 3);
	assert_int_equal(report.deliveries, 1);
	assert_int_equal(report.queued, 1);
	assert_true(report.size > 4096);
	arena_free(arena);
}

static void fill(struct fixture *fixture)
{
	open_fixture(fixture);
	record_one(fixture, &example);
	record_one(fixture, &example);
	queue_one(fixture, record_one(fixture, &example));
}

static void test_check_of_a_whole_file(void **state)
{
	struct fixture *fixture = *state;

	fill(fixture);
	expect_whole(fixture);
	close_fixture(fixture);
	expect_whole(fixture);
	expect_files(fixture, "state.db state.db.lock ");
}

static void test_check_finds_what_is_wrong(void **state)
{
	struct fixture *fixture = *state;

	fill(fixture);
	close_fixture(fixture);
	database_with(fixture, "DROP INDEX changes_of_time");
	expect_problem(fixture, "\"changes_of_time\" is missing");
	database_with(fixture, "CREATE INDEX changes_of_time ON changes (test)");
	expect_problem(fixture, "\"changes_of_time\" differs from the schema");
	database_with(fixture, "CREATE TABLE aaa (x)");
	expect_problem(fixture, "\"aaa\" is not part of the schema");
	database_with(fixture, "UPDATE counts SET count = 7 WHERE state = 3");
	expect_problem(fixture, "wrong count of changes in state 3: 7");
	spoil(fixture, "UPDATE changes SET time = 9223372036854775807 WHERE id = 2");
	expect_problem(fixture, "a row of changes is out of range: time 9223372036854775807");
	database_with(fixture, "INSERT INTO excerpts VALUES (1, x'00')");
	expect_problem(fixture, "cannot decode the points around change 1");
	spoil(fixture, "UPDATE deliveries SET state = -5");
	expect_problem(fixture, "a row of deliveries is out of range: state -5");
	database_with(fixture, "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'changes'");
	expect_problem(fixture, "table changes: the next id is already in use");
	database_with(fixture, "UPDATE changes SET environment_event = 9 WHERE id = 1");
	expect_problem(fixture, "a row of changes refers to a row of environments");
	database_with(fixture, "DELETE FROM changes");
	expect_problem(fixture, "a row of announced refers to a row of changes");
	damage(fixture, 8192);
	expect_problem(fixture, "");
	damage(fixture, 0);
	expect_problem(fixture, "not a database");
}

static void backup_fails(
	const struct fixture *fixture, const char *target, bool force, const char *words)
{
	struct error error = {0};
	int64_t size;

	assert_false(store_backup(fixture->path, target, force, &size, &error));
	assert_int_equal(error.kind, ERROR_STATE);
	if (!strstr(error.text, words))
		fail_msg("\"%s\" does not say \"%s\"", error.text, words);
}

static void test_backup_is_whole_and_replaces_nothing(void **state)
{
	struct fixture *fixture = *state, copied = **(struct fixture **)state;
	struct error error;
	int64_t size;

	snprintf(copied.path, sizeof copied.path, "%s/copy.db", fixture->folder);
	fill(fixture);
	assert_true(store_backup(fixture->path, copied.path, false, &size, &error));
	expect_files(fixture, "copy.db state.db state.db-shm state.db-wal state.db.lock ");
	record_one(fixture, &example);
	backup_fails(fixture, copied.path, false, "file exists");
	expect_whole(&copied);
	assert_true(store_backup(fixture->path, copied.path, true, &size, &error));
	assert_int_equal(count_listed(&copied), 4);
	close_fixture(fixture);
	assert_true(store_backup(fixture->path, copied.path, true, &size, &error));
	assert_int_equal(count_listed(&copied), 4);
	expect_files(fixture, "copy.db state.db state.db.lock ");
	backup_fails(fixture, "/nowhere/copy.db", false, "No such file");
	/* What was copied can be gone on with. */
	strcpy(fixture->path, copied.path);
	open_fixture(fixture);
	record_one(fixture, &example);
	assert_int_equal(count_listed(fixture), 5);
}

static ino_t ino_of_open(int file)
{
	struct stat status;

	assert_int_equal(fstat(file, &status), 0);
	return status.st_ino;
}

static ino_t ino_of(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status.st_ino;
}

/* What a killed backup has left is replaced by the next, but not what is still being written. */
static void test_backup_replaces_leftovers(void **state)
{
	struct fixture *fixture = *state;
	char target[256], left[300];
	struct error error;
	int64_t size = 0;
	int file;

	fill(fixture);
	close_fixture(fixture);
	snprintf(target, sizeof target, "%s/copy.db", fixture->folder);
	snprintf(left, sizeof left, "%s.new-backup", target);
	file = open(left, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(file, "half", 4), 4);
	assert_int_equal(flock(file, LOCK_EX), 0);
	backup_fails(fixture, target, false, "another backup is being written");
	close(file);
	assert_true(store_backup(fixture->path, target, false, &size, &error));
	assert_true(size > 4096);
	expect_files(fixture, "copy.db state.db state.db.lock ");

	/* It was killed when the backup had both names: the next one does not write into it. */
	assert_int_equal(link(target, left), 0);
	file = open(target, O_RDONLY);
	assert_true(store_backup(fixture->path, target, true, &size, &error));
	assert_int_equal(lseek(file, 0, SEEK_END), size);
	assert_int_not_equal(ino_of(target), ino_of_open(file));
	close(file);
	expect_files(fixture, "copy.db state.db state.db.lock ");
}

/* By whatever name. */
static void test_backup_spares_what_it_copies(void **state)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
	struct fixture *fixture = *state;
	char target[300], link[300];

	fill(fixture);
	snprintf(link, sizeof link, "%s/link.db", fixture->folder);
	for (size_t i = 0; i < 4; i++) {
		snprintf(target, sizeof target, "%s/../%s/state.db%s", fixture->folder,
			strrchr(fixture->folder, '/') + 1, suffixes[i]);
		backup_fails(fixture, target, true, "or one of its companions");
		assert_int_equal(symlink(target, link), 0);
		backup_fails(fixture, link, true, "or one of its companions");
		assert_int_equal(unlink(link), 0);
	}
	expect_whole(fixture);
	close_fixture(fixture);
	snprintf(target, sizeof target, "%s-wal", fixture->path);
	backup_fails(fixture, target, false, "or one of its companions");
	expect_whole(fixture);
	expect_files(fixture, "state.db state.db.lock ");
}

static void test_check_of_an_empty_file(void **state)
{
	struct fixture *fixture = *state;
	struct arena *arena = arena_new();
	struct store_report report;
	struct error error;

	fclose(fopen(fixture->path, "w"));
	assert_false(store_check(fixture->path, arena, &report, &error));
	assert_non_null(strstr(error.text, "is empty"));
	arena_free(arena);
}

static void test_backup_of_a_damaged_file_is_none(void **state)
{
	struct fixture *fixture = *state;
	char target[200];

	snprintf(target, sizeof target, "%s/copy.db", fixture->folder);
	fill(fixture);
	close_fixture(fixture);
	damage(fixture, 8192);
	backup_fails(fixture, target, false, "damaged");
	expect_files(fixture, "state.db state.db.lock ");
}

/* The error names the state, not the file that would have been the copy. */
static void test_backup_of_another_builds_state(void **state)
{
	struct fixture *fixture = *state;
	char target[200], named[300];

	snprintf(target, sizeof target, "%s/copy.db", fixture->folder);
	snprintf(named, sizeof named, "state file %s was made by another build", fixture->path);
	fill(fixture);
	close_fixture(fixture);
	database_with(fixture, "PRAGMA user_version = 99");
	backup_fails(fixture, target, false, named);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_read_beside_a_running_store),
		CASE(test_read_while_an_agent_begins),
		CASE(test_read_while_the_file_goes_away),
		CASE(test_read_alone_makes_no_file),
		CASE(test_read_after_a_kill),
		CASE(test_read_of_odd_names),
		CASE(test_what_cannot_be_read),
		CASE(test_a_table_that_is_missing_is_named),
		CASE(test_strange_numbers),
		CASE(test_check_of_a_whole_file),
		CASE(test_check_finds_what_is_wrong),
		CASE(test_backup_is_whole_and_replaces_nothing),
		CASE(test_backup_replaces_leftovers),
		CASE(test_backup_spares_what_it_copies),
		CASE(test_check_of_an_empty_file),
		CASE(test_backup_of_a_damaged_file_is_none),
		CASE(test_backup_of_another_builds_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
