/*
 * agent/decide/recover: what becomes of known changes, and of those that end them, by what is found
 * now. Each row is a series with one step up and perhaps one back down.
 */
#include "unit.h"

#include <string.h>

#include "agent/base/arena.h"
#include "agent/decide/recover.h"

enum { N = 120, UP = 40, DOWN = 80 };

enum shape { STAYS, COMES_BACK, COMES_BACK_SOON, COMES_BACK_LATE, GOES_BEYOND, RETURNS };

/* Where the level of RETURNS is up again. */
enum { AGAIN = N - 15 };

/* Found: the step up, and the way back if there is one. */
enum { FOUND_UP = 1, FOUND_DOWN = 2 };

static struct change step(size_t index, double before, double after)
{
	return (struct change){.index = index,
		.level_before = before,
		.level_after = after,
		.place_from = index,
		.place_to = index};
}

/* The step down is at DOWN, after ten points, or so late that there are two points of it. */
static size_t down_of(enum shape shape)
{
	return shape == COMES_BACK_LATE ? N - 2 : shape == COMES_BACK_SOON ? UP + 10 : DOWN;
}

static double after(enum shape shape)
{
	return shape == STAYS ? 110 : shape == GOES_BEYOND ? 80 : 100;
}

static size_t make(
	enum shape shape, unsigned found, double *values, int64_t *times, struct change *changes)
{
	size_t count = 0;

	for (size_t i = 0; i < N; i++) {
		double level = i < UP ? 100 : i < down_of(shape) ? 110 : after(shape);

		if (shape == RETURNS && i >= AGAIN)
			level = 110;

		values[i] = level + (i % 3 == 0 ? 0.5 : i % 3 == 1 ? -0.5 : 0);
		times[i] = (int64_t)i * 1000;
	}
	if (found & FOUND_UP)
		changes[count++] = step(UP, 100, 110);
	if (found & FOUND_DOWN)
		changes[count++] = step(down_of(shape), 110, after(shape));
	if (shape == RETURNS)
		changes[count++] = step(AGAIN, 100, 110);
	return count;
}

static void test_table(void **state)
{
	static const struct {
		const char *name;
		enum shape shape;
		unsigned found;
		int direction;
		enum change_state known; /* of the step up; 0: it is unknown */
		enum notify_state news;
		enum ending ending; /* of the known one */
		bool covered;       /* the way back is announced as its end */
	} rows[] = {
		{"open, and stays", STAYS, FOUND_UP, -1, CHANGE_CONFIRMED, NOTIFY_QUEUED,
			ENDING_NONE, false},
		{"open, and is back", COMES_BACK, FOUND_UP | FOUND_DOWN, -1, CHANGE_CONFIRMED,
			NOTIFY_QUEUED, ENDING_OVER, true},
		{"moved, and is back", COMES_BACK, FOUND_UP | FOUND_DOWN, -1, CHANGE_MOVED,
			NOTIFY_QUEUED, ENDING_OVER, true},
		{"without a direction", COMES_BACK, FOUND_UP | FOUND_DOWN, 0, CHANGE_CONFIRMED,
			NOTIFY_QUEUED, ENDING_OVER, true},
		{"an improvement that is undone", COMES_BACK, FOUND_UP | FOUND_DOWN, 1,
			CHANGE_CONFIRMED, NOTIFY_QUEUED, ENDING_NONE, false},
		{"nobody was told", COMES_BACK, FOUND_UP | FOUND_DOWN, -1, CHANGE_CONFIRMED,
			NOTIFY_SILENT, ENDING_OVER, false},
		{"goes beyond: over, and news", GOES_BEYOND, FOUND_UP | FOUND_DOWN, -1,
			CHANGE_CONFIRMED, NOTIFY_QUEUED, ENDING_OVER, false},
		{"not found, an excursion", COMES_BACK_SOON, 0, -1, CHANGE_CONFIRMED, NOTIFY_QUEUED,
			ENDING_OVER, false},
		{"not found, and too long for one", COMES_BACK, 0, -1, CHANGE_CONFIRMED,
			NOTIFY_QUEUED, ENDING_NONE, false},
		{"not found, and withdrawn", COMES_BACK_SOON, 0, -1, CHANGE_WITHDRAWN, NOTIFY_HELD,
			ENDING_NONE, false},
		{"recovered, and still over", COMES_BACK, FOUND_UP | FOUND_DOWN, -1,
			CHANGE_RECOVERED, NOTIFY_QUEUED, ENDING_NONE, true},
		{"recovered, and its level is the last", STAYS, FOUND_UP, -1, CHANGE_RECOVERED,
			NOTIFY_QUEUED, ENDING_BACK, false},
		{"unknown: told with its end", COMES_BACK, FOUND_UP | FOUND_DOWN, -1, 0,
			NOTIFY_SILENT, ENDING_NONE, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct arena *arena = arena_new();
		struct change changes[2] = {0};
		double values[N];
		int64_t times[N];
		const bool silent[2] = {false, false};
		struct closing closing = {.arena = arena,
			.times = times,
			.values = values,
			.n = N,
			.changes = changes,
			.count = make(rows[i].shape, rows[i].found, values, times, changes),
			.silent = silent,
			.oldest = INT64_MIN,
			.direction = rows[i].direction};
		struct change_record known = {.item = {.id = 1, .time = UP * 1000},
			.sign = 1,
			.state = rows[i].known,
			.news = rows[i].news};
		size_t count = rows[i].known != 0, of[2] = {MATCH_NONE, MATCH_NONE},
		       to = MATCH_NONE;
		enum fate fate = FATE_GONE;
		const struct matching result = {of, &to, &fate};

		known.item.change = step(UP, 100, 110);
		known.item.change.count_after = 5;
		if (rows[i].known == CHANGE_RECOVERED)
			known.item.over = (struct recovered){DOWN * 1000, 100};
		if (count > 0 && rows[i].found & FOUND_UP) {
			of[0] = to = 0;
			fate = FATE_SAME;
		}
		print_message("%s\n", rows[i].name);
		recover_judge(&closing, &known, rows[i].known == CHANGE_RECOVERED ? 0 : count,
			count, &result);
		if (count > 0)
			assert_int_equal(closing.closures[0].ending, rows[i].ending);
		if (rows[i].found & FOUND_DOWN)
			assert_int_equal(closing.covered[closing.count - 1], rows[i].covered);
		if (rows[i].ending == ENDING_OVER) {
			assert_int_equal(closing.closures[0].over.time,
				(int64_t)down_of(rows[i].shape) * 1000);
		}
		arena_free(arena);
	}
}

/* Two points do not decide. */
static void test_waits(void **state)
{
	struct arena *arena = arena_new();
	struct change changes[2];
	double values[N];
	int64_t times[N];
	const bool silent[2] = {false, false};
	struct closing closing = {.arena = arena,
		.times = times,
		.values = values,
		.n = N,
		.changes = changes,
		.count = make(COMES_BACK_LATE, FOUND_UP | FOUND_DOWN, values, times, changes),
		.silent = silent,
		.direction = -1};
	struct change_record known = {.item = {.id = 1, .time = UP * 1000},
		.sign = 1,
		.state = CHANGE_CONFIRMED,
		.news = NOTIFY_QUEUED};
	size_t of[2] = {0, MATCH_NONE}, to = 0;
	enum fate fate = FATE_SAME;

	(void)state;
	known.item.change = changes[0];
	recover_judge(&closing, &known, 1, 1, &(struct matching){of, &to, &fate});
	assert_int_equal(closing.closures[0].ending, ENDING_NONE);
	assert_true(closing.waiting);
	assert_int_equal(closing.doubts[1], DOUBT_END);
	assert_false(closing.covered[1]);
	arena_free(arena);
}

/* Days off whose cycle is not known yet end nothing before they are over, nor if the level is there
 * again then. */
static void test_days_off(void **state)
{
	static const struct {
		enum shape shape;
		int64_t now;
		enum ending ending;
	} rows[] = {{COMES_BACK, 99, ENDING_NONE}, {COMES_BACK, 100, ENDING_OVER},
		{RETURNS, 99, ENDING_NONE}, {RETURNS, 100, ENDING_NONE}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct arena *arena = arena_new();
		struct change changes[3];
		double values[N];
		int64_t times[N];
		const int64_t until[3] = {0, 100, 0};
		const bool silent[3] = {false, false, false};
		struct closing closing = {.arena = arena,
			.times = times,
			.values = values,
			.n = N,
			.changes = changes,
			.count = make(rows[i].shape, FOUND_UP | FOUND_DOWN, values, times, changes),
			.silent = silent,
			.until = until,
			.now = rows[i].now,
			.direction = -1};
		struct change_record known = {.item = {.id = 1, .time = UP * 1000},
			.sign = 1,
			.state = CHANGE_CONFIRMED,
			.news = NOTIFY_QUEUED};
		size_t of[3] = {0, MATCH_NONE, MATCH_NONE}, to = 0;
		enum fate fate = FATE_SAME;

		known.item.change = changes[0];
		recover_judge(&closing, &known, 1, 1, &(struct matching){of, &to, &fate});
		assert_int_equal(closing.closures[0].ending, rows[i].ending);
		arena_free(arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),
		cmocka_unit_test(test_waits), cmocka_unit_test(test_days_off)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
