/* The journal: what is written is read, what does not fit is refused, a torn end is dropped. */
#include "unit.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/bisect/journal.h"

#define A "0123456789abcdef0123456789abcdef01234567"
#define B "1123456789abcdef0123456789abcdef01234567"
#define C "2123456789abcdef0123456789abcdef01234567"

static const char *const ids[] = {B, C};
static const char *const subjects[] = {"", "One \"x\"", "Two\n\xC3\xA4"};
static const char *const lines[] = {"ssh 'dev 1'"};

static struct journal_setup setup_of(void)
{
	return (struct journal_setup){.repository = "/src/a b",
		.good = A,
		.bad = C,
		.candidates = {ids, 2},
		.subjects = {subjects, 3},
		.options = {.workers = 2,
			.confidence = .95,
			.step = .061,
			.spread = (double)NAN,
			.direction = -1,
			.budget = 5000,
			.attempts = 2},
		.run = "make && ./bench \"$HUNTER_COMMIT\"",
		.extract = "json:p99",
		.lines = {lines, 1},
		.timeout = 60000,
		.merges = true,
		.change = 812,
		.test = "db.read",
		.metric = "p99",
		.at = INT64_C(1700000000000)};
}

static const struct bisect_run run_1 = {1, 0, 0, BISECT_ENDS, 1}, run_2 = {2, 1, 2, BISECT_ENDS, 1};
static const struct bisect_result result_1 = {1, 0, 0, BISECT_MEASURED, .1, 1700000001000, 250};

static void put_begin(struct buf *out, const struct bisect_run *run, int64_t at)
{
	journal_put(out, &(struct journal_entry){.kind = JOURNAL_BEGIN, .run = *run, .at = at});
}

static void put_result(struct buf *out, const struct bisect_result *result, const char *problem)
{
	journal_put(out, &(struct journal_entry){
				 .kind = JOURNAL_RESULT, .result = *result, .problem = problem});
}

static void put_note(struct buf *out, enum journal_kind kind, int64_t at)
{
	journal_put(out, &(struct journal_entry){.kind = kind, .at = at});
}

static void put_some(struct buf *out)
{
	struct journal_setup setup = setup_of();

	journal_put_setup(out, &setup);
	put_begin(out, &run_1, INT64_C(1700000001000));
	put_begin(out, &run_2, INT64_C(1700000001001));
	put_result(out, &result_1, NULL);
}

static void test_round_trip(void **state)
{
	struct journal_setup setup = setup_of();
	struct arena *arena = arena_new();
	struct buf text = {0}, again = {0};
	struct journal journal;
	struct error error;

	(void)state;
	put_some(&text);
	put_result(&text, &(struct bisect_result){2, 1, 2, BISECT_FAILED, 0, 1700000001001, 9},
		"a \"b\"\n");
	put_note(&text, JOURNAL_RESUMED, INT64_C(1700000100000));
	put_note(&text, JOURNAL_CANCELLED, INT64_C(1700000100001));
	assert_true(journal_read(arena, text.data, text.length, &journal, &error));
	assert_int_equal(journal.count, 6);
	assert_int_equal(journal.torn, 0);
	journal_put_setup(&text, &setup);
	journal_put_setup(&again, journal.setup);
	assert_memory_equal(text.data, again.data, again.length);
	assert_true(isnan(journal.setup->options.spread));
	assert_int_equal(journal.entries[1].run.position, 2);
	assert_true(journal.entries[2].result.value == .1);
	assert_int_equal(journal.entries[2].at, INT64_C(1700000001250));
	assert_int_equal(journal.entries[3].result.outcome, BISECT_FAILED);
	assert_string_equal(journal.entries[3].problem, "a \"b\"\n");
	assert_int_equal(journal.entries[4].kind, JOURNAL_RESUMED);
	assert_int_equal(journal.entries[5].kind, JOURNAL_CANCELLED);
	buf_free(&text);
	buf_free(&again);
	arena_free(arena);
}

/* Whatever a crash leaves of the last line is dropped; all whole lines before it are kept. */
static void test_torn(void **state)
{
	struct arena *arena = arena_new();
	struct buf text = {0};
	struct journal journal;
	struct error error;
	size_t whole = 0;

	(void)state;
	put_some(&text);
	for (size_t length = 0; length <= text.length; length++) {
		bool read = journal_read(arena, text.data, length, &journal, &error);

		whole += length > 0 && text.data[length - 1] == '\n';
		assert_int_equal(read, whole > 0);
		if (read) {
			assert_int_equal(journal.count, whole - 1);
			assert_int_equal(journal.torn > 0, text.data[length - 1] != '\n');
		}
	}
	buf_free(&text);
	arena_free(arena);
}

static void test_replay(void **state)
{
	struct arena *arena = arena_new();
	struct buf text = {0};
	const struct bisect_status *status;
	struct bisection *bisection;
	struct journal journal;
	struct error error;
	struct journal_times times;

	(void)state;
	put_some(&text);
	put_note(&text, JOURNAL_RESUMED, INT64_C(1700000061250));
	assert_true(journal_read(arena, text.data, text.length, &journal, &error));
	bisection = journal_replay(&journal, &times);
	status = bisection_status(bisection);
	assert_int_equal(status->phase, BISECT_ENDS);
	assert_int_equal(times.paused, 60000);
	assert_int_equal(times.first, INT64_C(1700000001000));
	assert_int_equal(times.last, INT64_C(1700000061250));
	bisection_free(bisection);
	buf_free(&text);
	arena_free(arena);
}

static void refuse(const char *line, const char *text)
{
	struct arena *arena = arena_new();
	struct buf all = {0};
	struct journal journal;
	struct error error;

	put_some(&all);
	buf_printf(&all, "%s\n", line);
	if (journal_read(arena, all.data, all.length, &journal, &error))
		fail_msg("%s is taken", line);
	assert_int_equal(strncmp(error.text, "line 5: ", 8), 0);
	if (!strstr(error.text, text))
		fail_msg("%s: %s", line, error.text);
	buf_free(&all);
	arena_free(arena);
}

#define BEGIN(id, worker, position, phase)                                                         \
	"{\"begin\": {\"id\": " #id ", \"worker\": " #worker ", \"position\": " #position          \
	", \"phase\": \"" phase "\", \"round\": 1, \"at\": 5}}"
#define RESULT(id, worker, position, rest)                                                         \
	"{\"result\": {\"id\": " #id ", \"worker\": " #worker ", \"position\": " #position         \
	", \"begun\": 1, \"lasted\": 2, \"problem\": null, " rest "}}"

static void test_what_does_not_fit(void **state)
{
	(void)state;
	refuse("", "not JSON");
	refuse("{}", "not an event");
	refuse("[]", "not an event");
	refuse("{\"begin\": 1}", "not an event");
	refuse("{\"hunter_bisect\": 2}", "different version");
	refuse("{\"hunter_bisect\": 1}", "missing or wrong");
	refuse(BEGIN(2, 0, 1, "search"), "has begun before");
	refuse(BEGIN(3, 2, 1, "search"), "no such position or worker");
	refuse(BEGIN(3, 0, 3, "search"), "no such position or worker");
	refuse(BEGIN(3, 0, -1, "search"), "\"position\"");
	refuse(BEGIN(0, 0, 1, "search"), "\"id\"");
	refuse(BEGIN(3, 0, 1, "over"), "\"phase\"");
	refuse(BEGIN(3, 0, 1, "x"), "\"phase\"");
	refuse(RESULT(3, 0, 1, "\"outcome\": \"failed\""), "no run with this id has begun");
	refuse(RESULT(2, 0, 2, "\"outcome\": \"failed\""), "no run with this id has begun");
	refuse(RESULT(2, 1, 1, "\"outcome\": \"failed\""), "no run with this id has begun");
	refuse(RESULT(2, 1, 2, "\"outcome\": \"measured\""), "\"value\"");
	refuse(RESULT(2, 1, 2, "\"outcome\": \"measured\", \"value\": null"), "\"value\"");
	refuse(RESULT(2, 1, 2, "\"outcome\": \"measured\", \"value\": 1e999"), "not JSON");
	refuse("{\"resumed\": {\"at\": -1}}", "\"at\"");
}

/* Members of the setup, one after the other. */
static void test_setups(void **state)
{
	static const char *const swaps[][2] = {{"\"good\": \"" A, "\"good\": \"--x"},
		{"\"candidates\": [\"", "\"candidates\": [\"$(x)"},
		{"\"workers\": 2", "\"workers\": 65"}, {"\"workers\": 2", "\"workers\": 0"},
		{"\"confidence\": 0.95", "\"confidence\": 1"},
		{"\"attempts\": 2", "\"attempts\": 0"}, {"\"timeout\": 60000", "\"timeout\": 0"},
		{"\"run\": \"", "\"x\": \""}, {"\"direction\": -1", "\"direction\": -2"},
		{"\"at\": 1700000000000", "\"at\": \"x\""},
		{"\"into\": null", "\"into\": \"HEAD\""}, {"\"spread\": null", "\"spread\": -1"}};
	struct journal_setup setup = setup_of();
	struct arena *arena = arena_new();
	struct buf line = {0};
	struct journal journal;
	struct error error;

	(void)state;
	journal_put_setup(&line, &setup);
	for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++) {
		const char *at = strstr(line.data, swaps[i][0]);
		struct buf other = {0};

		assert_non_null(at);
		buf_append(&other, line.data, (size_t)(at - line.data));
		buf_printf(&other, "%s%s", swaps[i][1], at + strlen(swaps[i][0]));
		if (journal_read(arena, other.data, other.length, &journal, &error))
			fail_msg("%s is taken", swaps[i][1]);
		buf_free(&other);
	}
	buf_free(&line);
	arena_free(arena);
}

static void test_file(void **state)
{
	char folder[] = "/tmp/hunter-journal-XXXXXX", command[64];
	struct journal_setup setup = setup_of();
	struct arena *arena = arena_new();
	struct journal_file *file, *other;
	struct buf line = {0};
	struct journal journal;
	struct error error;
	const char *path;
	FILE *append;

	(void)state;
	assert_non_null(mkdtemp(folder));
	path = arena_printf(arena, "%s/journal", folder);
	file = journal_create(path, &setup, &error);
	assert_non_null(file);
	assert_null(journal_create(path, &setup, &error)); /* it is there */
	other = journal_open(arena, path, &journal, &error);
	assert_null(other);
	assert_non_null(strstr(error.text, "in use by another hunter-c"));
	put_begin(&line, &run_1, 5);
	assert_true(journal_write(file, &line, &error));
	assert_true(journal_look(arena, path, &journal, &error));
	assert_int_equal(journal.count, 1);
	journal_close(file);
	append = fopen(path, "a");
	assert_non_null(append);
	fputs("{\"result\": {\"id", append);
	fclose(append);
	file = journal_open(arena, path, &journal, &error);
	assert_non_null(file);
	assert_int_equal(journal.count, 1);
	assert_true(journal.torn > 0);
	buf_clear(&line);
	put_result(&line, &result_1, "x");
	assert_true(journal_write(file, &line, &error));
	journal_close(file);
	assert_true(journal_look(arena, path, &journal, &error));
	assert_int_equal(journal.count, 2);
	assert_int_equal(journal.torn, 0);
	buf_free(&line);
	arena_free(arena);
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

/* A line that has no room leaves no part of itself. */
static void test_no_room(void **state)
{
	char folder[] = "/tmp/hunter-journal-XXXXXX", command[64];
	struct journal_setup setup = setup_of();
	struct arena *arena = arena_new();
	struct journal_file *file;
	struct rlimit before, small;
	struct buf line = {0};
	struct journal journal;
	struct error error;
	const char *path;

	(void)state;
	assert_non_null(mkdtemp(folder));
	path = arena_printf(arena, "%s/journal", folder);
	file = journal_create(path, &setup, &error);
	assert_non_null(file);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	journal_put_setup(&line, &setup);
	small = before;
	small.rlim_cur = line.length + 20;
	buf_clear(&line);
	put_begin(&line, &run_1, 5);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_false(journal_write(file, &line, &error));
	assert_int_equal(error.kind, ERROR_STATE);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(journal_look(arena, path, &journal, &error));
	assert_int_equal(journal.count, 0);
	assert_int_equal(journal.torn, 0);
	assert_true(journal_write(file, &line, &error));
	assert_true(journal_look(arena, path, &journal, &error));
	assert_int_equal(journal.count, 1);
	journal_close(file);
	buf_free(&line);
	arena_free(arena);
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_what_does_not_fit),
		cmocka_unit_test(test_setups),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_no_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
