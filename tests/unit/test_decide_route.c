/*
 * agent/decide/route: a row for each reason why a receiver gets a change, or does not.
 */
#include "unit.h"

#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/dict.h"
#include "agent/decide/route.h"
#include "agent/model/message.h"

enum { NEW = 1u << MESSAGE_NEW, OVER = 1u << MESSAGE_RECOVERED, BOTH = NEW | OVER };

enum { PERF, ONCALL, RECEIVERS };

static const struct receiver receivers[RECEIVERS] = {
	{.name = "perf", .events = BOTH}, {.name = "oncall", .events = NEW}};
static const size_t first[] = {PERF}, second[] = {ONCALL}, all[] = {PERF, ONCALL};

static const struct notify_route large = {
	.file = "h", .line = 2, .at_least = 20, .receivers = second, .receiver_count = 1};
static const struct notify_route better = {.file = "h", .line = 3, .verdict = -1, .nobody = true};
static const struct notify_route ends = {
	.file = "h", .line = 4, .events = OVER, .receivers = all, .receiver_count = 2};
static const struct notify_route on = {
	.file = "h", .line = 5, .go_on = true, .receivers = second, .receiver_count = 1};
static const struct notify_route rest = {
	.file = "h", .line = 6, .receivers = all, .receiver_count = 2};

static struct change_record change_of(const char *test, double size)
{
	return (struct change_record){.item = {.test = test,
					      .metric = "p99",
					      .direction = -1,
					      .change = {.size = size,
						      .mean_before = 100,
						      .mean_after = 100 + size,
						      .level_before = 100,
						      .level_after = 100 + size}},
		.series = "p99",
		.branch = "",
		.sign = size < 0 ? -1 : 1};
}

static void test_table(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct notify_route root; /* without file: there are no routes */
		const struct notify_route *routes[2];
		const char *test;
		double size;
		unsigned kinds;
		const char *reasons[RECEIVERS]; /* NULL: nothing leads to it */
		bool gets[RECEIVERS];
		const char *reason; /* of all */
	} rows[] = {
		{"no routes", {0}, {0}, "routed", 5, NEW,
			{"there are no routes", "there are no routes"}, {true, true},
			"there are no routes"},
		{"an unknown test", {0}, {0}, "gone", 5, NEW,
			{"there are no routes", "there are no routes"}, {true, true},
			"there are no routes"},
		{"notify wins", {.file = "h", .line = 1, .receivers = first, .receiver_count = 1},
			{0}, "own", 5, NEW, {NULL, "the test sets notify: routes do not apply"},
			{false, true}, "the test sets notify: routes do not apply"},
		{"the root", {.file = "h", .line = 1, .receivers = first, .receiver_count = 1},
			{&large}, "routed", 5, NEW, {"the route at h:1", NULL}, {true, false},
			"the route at h:1"},
		{"a child", {.file = "h", .line = 1, .receivers = first, .receiver_count = 1},
			{&large}, "routed", 20, NEW, {NULL, "the route at h:2"}, {false, true},
			"the route at h:2"},
		{"no route", {.file = "h", .line = 1}, {&large}, "routed", 5, NEW, {NULL, NULL},
			{false, false}, "no route matches it"},
		{"a root for nobody", {.file = "h", .line = 1, .nobody = true}, {&large}, "routed",
			5, NEW, {NULL, NULL}, {false, false}, "the route at h:1 has no receivers"},
		{"a child for nobody", {.file = "h", .line = 1}, {&better}, "routed", -5, NEW,
			{NULL, NULL}, {false, false}, "the route at h:3 has no receivers"},
		{"other events", {.file = "h", .line = 1, .receivers = second, .receiver_count = 1},
			{0}, "routed", 5, OVER, {NULL, "its events are new"}, {false, false},
			"none of its receivers has the event"},
		{"one of two has it", {.file = "h", .line = 1}, {&ends}, "routed", 5, OVER,
			{"the route at h:4", "its events are new"}, {true, false},
			"the route at h:4"},
		{"the first that matches", {.file = "h", .line = 1}, {&large, &rest}, "routed", 30,
			NEW, {NULL, "the route at h:2"}, {false, true}, "the route at h:2"},
		{"continue", {.file = "h", .line = 1}, {&on, &rest}, "routed", 5, NEW,
			{"the route at h:6", "the route at h:5"}, {true, true}, "the route at h:5"},
	};
	struct arena *arena = arena_new();
	struct dict topics = {.arena = arena};
	const struct route_topic own = {.receivers = second, .receiver_count = 1},
				 routed = {.routed = true, .receivers = all, .receiver_count = 2};

	*dict_place(&topics, "own") = &own;
	*dict_place(&topics, "routed") = &routed;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct notify_route root = rows[i].root, routes[2] = {0};
		struct router *router;
		struct change_record record = change_of(rows[i].test, rows[i].size);
		struct routed_rows found;

		while (root.count < 2 && rows[i].routes[root.count]) {
			routes[root.count] = *rows[i].routes[root.count];
			root.count++;
		}
		root.routes = routes;
		router = router_new(
			(struct routing){root.file ? &root : NULL, receivers, RECEIVERS, &topics});
		found = route_change(router, &record, rows[i].kinds, arena, NULL);
		if (strcmp(found.decision.reason, rows[i].reason) != 0)
			fail_msg("%s: %s", rows[i].name, found.decision.reason);
		assert_int_equal(found.decision.verdict,
			rows[i].gets[PERF] || rows[i].gets[ONCALL] ? PASS : DROP);
		for (size_t j = 0; j < RECEIVERS; j++) {
			const char *reason = NULL;

			for (size_t k = 0; k < found.count; k++)
				if (found.items[k].receiver == &receivers[j])
					reason = found.items[k].decision.reason;
			if (!reason != !rows[i].reasons[j] ||
				(reason && strcmp(reason, rows[i].reasons[j]) != 0))
				fail_msg("%s: %s: %s", rows[i].name, receivers[j].name,
					reason ? reason : "not led there");
			assert_int_equal(
				route_find(&found, &receivers[j]) != NULL, rows[i].gets[j]);
		}
		router_free(router);
	}
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
