/*
 * Two weeks of an agent whose server fails for six hours each day, each day in another way: nothing
 * is concluded from what it answers then, and each outage is told once, and once when it is over.
 */
#include "unit.h"

#include "agent_world.h"
#include "peer.h"

enum { DAYS = 14, DOWN_FROM = 8, DOWN_UNTIL = 14, POINTS = 48, TESTS = 3 };

/* What the agent's clock says, for the server's threads. */
static _Atomic int64_t world_time;

static void note_time(struct world *world, const char *test, int64_t now)
{
	(void)world, (void)test;
	atomic_store(&world_time, now);
}

static void answer_well(int fd, int64_t now)
{
	struct buf body = {0};

	buf_text(&body, "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{"
			"\"metric\":{\"__name__\":\"up\"},\"values\":[");
	for (int64_t i = POINTS; i > 0; i--) {
		int64_t hour = now / HOUR - i + 1;

		buf_printf(&body, "%s[%lld,\"%lld\"]", i < POINTS ? "," : "",
			(long long)((START + hour * HOUR) / 1000),
			(long long)(1000 + (hour * hour % 7 + 7) % 7));
	}
	buf_text(&body, "]}]}}");
	peer_answer(fd, 200, "", body.data);
	buf_free(&body);
}

/* False: the connection is over. */
static bool answer_wrongly(int fd, int64_t way)
{
	switch (way) {
	case 0: peer_answer(fd, 500, "", "the disk is full"); return true;
	case 1: peer_answer(fd, 200, "", "<html><body>Please log in</body></html>"); return true;
	case 2: peer_answer(fd, 200, "", "{\"status\":\"success\",\"data\":{\"resul"); return true;
	case 3: peer_reset(fd); return false;
	case 4:
		peer_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"status\":");
		return false;
	case 5: peer_answer(fd, 200, "", ""); return true;
	default:
		peer_answer(fd, 422, "",
			"{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"timed "
			"out\"}");
		return true;
	}
}

static bool answer(struct peer *peer, int fd, const char *request)
{
	int64_t now = atomic_load(&world_time), hour = now / HOUR % 24;

	(void)peer, (void)request;
	if (hour >= DOWN_FROM && hour < DOWN_UNTIL)
		return answer_wrongly(fd, now / DAY % 7);
	answer_well(fd, now);
	return true;
}

static void test_two_weeks(void **state)
{
	struct peer *peer = peer_new(answer, NULL);
	struct world *world = world_new();
	char sections[200];

	(void)state;
	world->before = note_time;
	snprintf(sections, sizeof sections,
		"agent: {interval: 30m, max_age: never}\n"
		"prometheus: {url: '%s', retry_for: 0s}",
		peer->url);
	world_configure(world, sections, "{type: prometheus, query: up, range: 2d}", TESTS);
	live(world, DAYS * DAY);
	for (size_t i = 0; i < TESTS; i++)
		assert_in_range(world->tests[i].count, DAYS * 48 - 1, DAYS * 48 + 2);
	assert_int_equal(world->changes, 0);
	assert_int_equal(world->notices, 2 * DAYS);
	assert_int_equal(world->recovered, DAYS);
	world_free(world);
	peer_free(peer);
}

/* A week with a mute time of all tests: one that ends before the outage does, and one that does
 * not. */
static void live_muted(struct world *world, const char *start, const char *end)
{
	struct peer *peer = peer_new(answer, NULL);
	char sections[300];

	world->before = note_time;
	snprintf(sections, sizeof sections,
		"agent: {interval: 30m, max_age: never}\n"
		"mute_times: {m: {times: {start_time: '%s', end_time: '%s'}}}\n"
		"prometheus: {url: '%s', retry_for: 0s}",
		start, end, peer->url);
	world_configure(
		world, sections, "{type: prometheus, query: up, range: 2d, mute: m}", TESTS);
	live(world, 7 * DAY);
	peer_free(peer);
}

/* What is still so when the mute time ends is told then, by itself; and its end, as always. */
static void test_told_after_a_mute_time(void **state)
{
	struct world *world = world_new();

	(void)state;
	live_muted(world, "07:00", "11:00");
	assert_int_equal(world->notices, 14);
	assert_int_equal(world->notices_at[11], 7);
	assert_int_equal(world->notices_at[14], 7);
	world_free(world);
}

/* What is over by then is not told, and neither is its end. */
static void test_over_within_a_mute_time(void **state)
{
	struct world *world = world_new();

	(void)state;
	live_muted(world, "07:00", "16:00");
	assert_int_equal(world->notices, 0);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_weeks),
		cmocka_unit_test(test_told_after_a_mute_time),
		cmocka_unit_test(test_over_within_a_mute_time)};

	log_setup(LEVEL_ERROR, LOG_FORMAT_TEXT, stderr);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
