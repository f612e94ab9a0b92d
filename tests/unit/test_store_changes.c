/*
 * What the store remembers of changes beside what waits: history, lists, checkpoints of series,
 * conditions, what was sent lately; and what it forgets.
 */
#include "unit.h"
#include <math.h>
#include <semaphore.h>
#include <sys/stat.h>

#include "agent/store/sqlite/file.h"
#include "tests/unit/store_talk.h"

static void update(struct fixture *fixture, struct change_record_update update)
{
	struct store_record *request = store_record_new(NULL, NULL);

	request->updates = &update;
	request->update_count = 1;
	done(fixture, &request->call);
}

static struct store_list *list(struct fixture *fixture, struct change_filter filter)
{
	struct store_list *request = store_list_new(NULL, NULL);

	request->filter = filter;
	ask(fixture, &request->call);
	if (request->call.failed)
		fail_msg("%s", request->call.error->text);
	return request;
}

static int64_t record_named(struct fixture *fixture, const char *test, const char *series,
	enum change_state state, int64_t time)
{
	struct change_record record = example;

	record.item.test = test;
	record.series = series;
	record.state = state;
	record.news = NOTIFY_SILENT;
	record.item.time = time;
	return record_one(fixture, &record);
}

static void check_event(
	const struct event *event, enum event_kind kind, int64_t time, int64_t point)
{
	assert_int_equal(event->kind, kind);
	assert_int_equal(event->time, time);
	assert_int_equal(event->point, point);
	if (kind != EVENT_ANNOUNCED) {
		assert_null(event->actor.person);
		return;
	}
	assert_string_equal(event->actor.person, "slack");
	assert_string_equal(event->actor.origin, "#perf");
}

static void test_history_tells_what_happened(void **state)
{
	struct fixture *fixture = *state;
	struct store_list *request;
	const struct event *events;
	int64_t id, found = example.first_seen, time = example.item.time;

	open_fixture(fixture);
	id = record_one(fixture, &example);
	settle(fixture, queue_one(fixture, id), DELIVERY_QUEUED, 1);
	update(fixture, (struct change_record_update){id, time + 1, 20, .state = CHANGE_MOVED});
	update(fixture, (struct change_record_update){id, time + 1, 21, .state = CHANGE_MOVED});
	update(fixture, (struct change_record_update){id, time + 1, 22, .state = CHANGE_WITHDRAWN});
	update(fixture, (struct change_record_update){id, time + 1, 23, .state = CHANGE_WITHDRAWN});
	update(fixture, (struct change_record_update){id, time + 2, 24, .state = CHANGE_MOVED});
	settle(fixture, 1, DELIVERY_SENT, 2);
	reopen(fixture);
	request = list(fixture, (struct change_filter){0});
	assert_int_equal(request->records.count, 1);
	assert_int_equal(request->records.items[0].event_count, 5);
	events = request->records.items[0].events;
	check_event(&events[0], EVENT_FOUND, found, time + 1);
	check_event(&events[1], EVENT_MOVED, 20, time + 1);
	check_event(&events[2], EVENT_WITHDRAWN, 22, time + 1);
	check_event(&events[3], EVENT_RETURNED, 24, time + 2);
	check_event(&events[4], EVENT_ANNOUNCED, 9, time + 2);
	assert_int_equal(request->records.items[0].state, CHANGE_MOVED);
	assert_int_equal(request->records.items[0].news, NOTIFY_QUEUED);
	assert_int_equal(request->records.items[0].updated, 24);
	assert_false(request->more);
	store_call_free(&request->call);
}

/* A change that moves to and fro for ever does not fill the disk; what was said is kept. */
static void test_history_is_bounded(void **state)
{
	struct fixture *fixture = *state;
	struct store_list *request;
	int64_t id;

	open_fixture(fixture);
	id = record_one(fixture, &example);
	settle(fixture, queue_one(fixture, id), DELIVERY_SENT, 1);
	for (int64_t i = 1; i <= 200; i++)
		update(fixture, (struct change_record_update){id, i, i, .state = CHANGE_MOVED});
	request = list(fixture, (struct change_filter){0});
	assert_int_equal(request->records.items[0].event_count, 52);
	assert_int_equal(request->records.items[0].events[1].kind, EVENT_ANNOUNCED);
	check_event(&request->records.items[0].events[51], EVENT_MOVED, 200, 200);
	store_call_free(&request->call);

	/* All that is too old goes, not just the next one. */
	database_with(fixture, "INSERT INTO events (id, time, kind, change, point) SELECT id + "
			       "1000, time, 3, change, point FROM events WHERE kind != 6");
	update(fixture, (struct change_record_update){id, 201, 201, .state = CHANGE_MOVED});
	assert_int_equal(count_rows(fixture, "events WHERE kind != 6"), 50);
}

static void check_counts(struct fixture *fixture, int64_t confirmed, int64_t moved,
	int64_t withdrawn, int64_t candidates)
{
	struct store_restore *request = restore(fixture);

	assert_int_equal(request->call.counts->states[CHANGE_CONFIRMED], confirmed);
	assert_int_equal(request->call.counts->states[CHANGE_MOVED], moved);
	assert_int_equal(request->call.counts->states[CHANGE_WITHDRAWN], withdrawn);
	assert_int_equal(request->call.counts->states[CHANGE_CANDIDATE], candidates);
	store_call_free(&request->call);
}

/* A candidate is not to be told; one that is confirmed is, with its numbers of then. */
static void test_candidate_is_confirmed(void **state)
{
	struct fixture *fixture = *state;
	struct change_record confirmed = example;
	struct store_known *of_test;
	struct store_record *recording;
	struct store_pending *due;
	struct store_list *listed;

	confirmed.state = CHANGE_CANDIDATE;
	confirmed.news = NOTIFY_HELD;
	confirmed.runs = 1;
	open_fixture(fixture);
	confirmed.item.id = record_one(fixture, &confirmed);
	check_counts(fixture, 0, 0, 0, 1);
	of_test = known(fixture, "db.read");
	assert_int_equal(of_test->records.items[0].runs, 1);
	assert_int_equal(of_test->records.items[0].first_seen, example.first_seen);
	assert_int_equal(of_test->records.items[0].news, NOTIFY_HELD);
	assert_int_equal(
		of_test->records.items[0].item.change.count_after, example.item.change.count_after);
	store_call_free(&of_test->call);
	update(fixture, (struct change_record_update){confirmed.item.id, example.item.time, 30,
				.state = CHANGE_CANDIDATE, .runs = 2});
	recording = store_record_new(NULL, NULL);
	confirmed.confirmed = true;
	confirmed.state = CHANGE_CONFIRMED;
	confirmed.news = NOTIFY_PENDING;
	confirmed.runs = 3;
	confirmed.updated = 40;
	confirmed.first_seen = 1;
	confirmed.item.change.mean_after = 99;
	confirmed.item.members = 1336;
	confirmed.item.shared = "96% renderer=gpu";
	recording->records.items = &confirmed;
	recording->records.count = 1;
	done(fixture, &recording->call);
	check_counts(fixture, 1, 0, 0, 0);
	due = pending(fixture);
	assert_int_equal(due->records.count, 1);
	assert_int_equal(due->records.items[0].item.id, confirmed.item.id);
	assert_int_equal(due->records.items[0].runs, 3);
	assert_int_equal(due->records.items[0].first_seen, example.first_seen);
	assert_true(due->records.items[0].item.change.mean_after == 99);
	assert_int_equal(due->records.items[0].item.members, 1336);
	assert_string_equal(due->records.items[0].item.shared, "96% renderer=gpu");
	store_call_free(&due->call);
	listed = list(fixture, (struct change_filter){0});
	assert_int_equal(listed->records.items[0].event_count, 2);
	check_event(&listed->records.items[0].events[1], EVENT_CONFIRMED, 40, example.item.time);
	store_call_free(&listed->call);
}

/* What was withdrawn before anybody was told is news when it returns, what some were told is not;
 * neither waits to be told. */
static void test_withdrawn_while_pending(void **state)
{
	struct fixture *fixture = *state;
	struct change_record_update withdrawal = {
		.time = example.item.time, .state = CHANGE_WITHDRAWN};
	static const enum notify_state after[] = {
		NOTIFY_HELD, NOTIFY_PENDING, NOTIFY_QUEUED, NOTIFY_SILENT};
	struct change_record silent = example;
	struct store_known *of_test;
	struct store_restore *restored;
	struct store_pending *due;
	int64_t ids[4];

	silent.news = NOTIFY_SILENT;
	open_fixture(fixture);
	for (int i = 0; i < 4; i++)
		ids[i] = record_one(fixture, i < 3 ? &example : &silent);
	queue_for(fixture, ids[1], "slack", false);
	queue_for(fixture, ids[2], "slack", true);
	for (int i = 0; i < 4; i++) {
		withdrawal.id = ids[i];
		update(fixture, withdrawal);
	}
	of_test = known(fixture, "db.read");
	assert_int_equal(of_test->records.count, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(of_test->records.items[i].news, after[i]);
	store_call_free(&of_test->call);
	restored = restore(fixture);
	assert_int_equal(restored->call.counts->due.changes, 0);
	store_call_free(&restored->call);
	/* Found again: the second is still to be announced to others. */
	withdrawal.state = CHANGE_CONFIRMED;
	withdrawal.id = ids[1];
	update(fixture, withdrawal);
	due = pending(fixture);
	assert_int_equal(due->records.count, 1);
	assert_int_equal(due->records.items[0].told.count, 1);
	store_call_free(&due->call);
}

static const struct change_record *record_of(struct record_rows records, int64_t id)
{
	for (size_t i = 0; i < records.count; i++)
		if (records.items[i].item.id == id)
			return &records.items[i];
	fail_msg("change %lld is not there", (long long)id);
	return NULL;
}

/* Changes in all states of being told, in the order of what becomes of them. */
static void record_kinds(struct fixture *fixture, int64_t ids[5])
{
	struct change_record silent = example;

	silent.news = NOTIFY_SILENT;
	open_fixture(fixture);
	for (int i = 0; i < 5; i++)
		ids[i] = record_one(fixture, i < 4 ? &example : &silent);
	settle(fixture, queue_for(fixture, ids[1], "slack", false), DELIVERY_SENT, 1);
	settle(fixture, queue_for(fixture, ids[2], "slack", true), DELIVERY_SENT, 1);
	queue_for(fixture, ids[3], "slack", true);
}

static void recover(struct fixture *fixture, int64_t id, bool silent)
{
	update(fixture,
		(struct change_record_update){id, example.item.time, 30, .state = CHANGE_RECOVERED,
			.over = {example.item.time + 5000, 1.75}, .silent = silent});
}

/* The id that the change of that id is said to end. */
static int64_t ended_by(struct fixture *fixture, int64_t id)
{
	struct store_list *request = list(fixture, (struct change_filter){0});
	int64_t ends = record_of(request->records, id)->ends;

	store_call_free(&request->call);
	return ends;
}

/* One of the other direction, where the first has recovered; then what is as near, but no end. */
static void test_what_a_change_ends(void **state)
{
	struct fixture *fixture = *state;
	struct change_record other = example;
	int64_t begun, end, late, same, elsewhere;

	open_fixture(fixture);
	begun = record_one(fixture, &example);
	recover(fixture, begun, true);
	other.sign = -example.sign;
	other.item.time = example.item.time + 5000 + 5 * example.item.spacing;
	end = record_one(fixture, &other);
	other.item.time++;
	late = record_one(fixture, &other);
	other.item.time = example.item.time + 5000;
	other.series = "another";
	elsewhere = record_one(fixture, &other);
	other.series = example.series;
	other.sign = example.sign;
	same = record_one(fixture, &other);
	assert_int_equal(ended_by(fixture, end), begun);
	assert_int_equal(ended_by(fixture, late), 0);
	assert_int_equal(ended_by(fixture, elsewhere), 0);
	assert_int_equal(ended_by(fixture, same), 0);
	assert_int_equal(ended_by(fixture, begun), 0);
}

static struct store_pending *recovered(struct fixture *fixture, size_t count)
{
	struct store_restore *restored;
	struct store_pending *over;

	reopen(fixture);
	restored = restore(fixture);
	assert_int_equal(restored->call.counts->due.events, count);
	store_call_free(&restored->call);
	over = pending(fixture);
	assert_int_equal(over->events.count, count);
	return over;
}

/* That a change is over is to be told to those who were told of it, and until it is. */
static void test_recovery_is_to_be_told(void **state)
{
	static const enum notify_state after[] = {
		NOTIFY_HELD, NOTIFY_PENDING, NOTIFY_QUEUED, NOTIFY_QUEUED, NOTIFY_SILENT};
	struct fixture *fixture = *state;
	struct store_known *of_test;
	struct store_pending *over;
	struct store_list *listed;
	int64_t ids[5];

	record_kinds(fixture, ids);
	for (int i = 0; i < 5; i++)
		recover(fixture, ids[i], false);
	of_test = known(fixture, "db.read");
	for (int i = 0; i < 5; i++) {
		assert_int_equal(record_of(of_test->records, ids[i])->state, CHANGE_RECOVERED);
		assert_int_equal(record_of(of_test->records, ids[i])->news, after[i]);
	}
	store_call_free(&of_test->call);
	over = recovered(fixture, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct change_record *record = over->events.items[i].record;
		const struct delivery_rows *messages = &over->events.items[i].messages;

		assert_int_equal(record->item.id, ids[i + 1]);
		assert_int_equal(record->item.over.time, example.item.time + 5000);
		assert_true(record->item.over.level == 1.75);
		assert_int_equal(over->events.items[i].event.kind, EVENT_RECOVERED);
		assert_int_equal(messages->count, 1);
		assert_int_equal(messages->items[0].key[1], '1' + (int)i);
		assert_string_equal(messages->items[0].receiver, "slack");
	}
	assert_int_equal(settle_events(fixture, &over->events), 0);
	store_call_free(&over->call);
	store_call_free(&recovered(fixture, 0)->call);
	listed = list(fixture, (struct change_filter){.states = 1U << CHANGE_RECOVERED});
	assert_int_equal(listed->records.count, 5);
	assert_int_equal(listed->records.items[4].event_count, 2);
	check_event(&listed->records.items[4].events[1], EVENT_RECOVERED, 30, example.item.time);
	store_call_free(&listed->call);
	recover(fixture, ids[2], false);
	store_call_free(&recovered(fixture, 0)->call);
}

/* A recovery that nobody was to hear of, as the level left again before it was reported, does not
 * keep the next one back. */
static void test_recovery_after_a_dip(void **state)
{
	struct fixture *fixture = *state;
	struct store_pending *due;
	int64_t id;

	open_fixture(fixture);
	id = record_one(fixture, &example);
	settle(fixture, queue_one(fixture, id), DELIVERY_SENT, 1);
	recover(fixture, id, false);
	update(fixture, (struct change_record_update){
				id, example.item.time, 40, .state = CHANGE_CONFIRMED});
	due = pending(fixture);
	assert_int_equal(due->events.items[0].event.kind, EVENT_RECOVERED);
	due->events.items[0].event.reason = "the change is not over any more";
	due->events.items[0].event.due = 0;
	assert_int_equal(settle_events(fixture, &due->events), 0);
	store_call_free(&due->call);
	recover(fixture, id, false);
	store_call_free(&recovered(fixture, 1)->call);
}

/* One that waits to be told, and whose end is told with another change, is told no more. */
static void test_silent_recovery_of_what_waits(void **state)
{
	struct fixture *fixture = *state;
	struct store_pending *waiting;
	struct store_restore *restored;
	struct store_known *of_test;
	int64_t ids[5];

	record_kinds(fixture, ids);
	waiting = pending(fixture);
	assert_int_equal(waiting->records.count, 2);
	store_call_free(&waiting->call);
	recover(fixture, ids[0], true);
	recover(fixture, ids[1], true);
	waiting = recovered(fixture, 0);
	assert_int_equal(waiting->records.count, 0);
	store_call_free(&waiting->call);
	restored = restore(fixture);
	assert_int_equal(restored->call.counts->due.changes, 0);
	store_call_free(&restored->call);
	waiting = pending(fixture);
	store_call_free(&waiting->call);
	of_test = known(fixture, "db.read");
	assert_int_equal(record_of(of_test->records, ids[0])->news, NOTIFY_HELD);
	assert_int_equal(record_of(of_test->records, ids[1])->news, NOTIFY_PENDING);
	store_call_free(&of_test->call);
	/* It was a dip: the receivers that had not got it yet get it now. */
	update(fixture, (struct change_record_update){
				ids[1], example.item.time, 60, .state = CHANGE_CONFIRMED});
	waiting = pending(fixture);
	assert_int_equal(waiting->records.count, 1);
	store_call_free(&waiting->call);
}

/* Messages that are forgotten leave in the history whom they told. */
static void test_recovery_of_what_was_told_long_ago(void **state)
{
	struct fixture *fixture = *state;
	struct store_prune *pruning;
	struct store_pending *over;
	int64_t ids[5];

	record_kinds(fixture, ids);
	recover(fixture, ids[1], true);
	recover(fixture, ids[4], true);
	pruning = store_prune_new(NULL, NULL);
	pruning->before = 100;
	done(fixture, &pruning->call);
	recover(fixture, ids[2], false);
	over = recovered(fixture, 1);
	assert_int_equal(over->events.items[0].record->item.id, ids[2]);
	assert_int_equal(over->events.items[0].messages.count, 1);
	assert_string_equal(over->events.items[0].messages.items[0].key, "");
	assert_string_equal(over->events.items[0].messages.items[0].receiver, "slack");
	assert_string_equal(over->events.items[0].messages.items[0].destination, "#perf");
	store_call_free(&over->call);
}

/* Its message was on the way to the outbox when it recovered: then it is told, and its end, too. */
static void test_recovery_meets_its_message(void **state)
{
	struct fixture *fixture = *state;
	int64_t id;

	open_fixture(fixture);
	id = record_one(fixture, &example);
	recover(fixture, id, false);
	store_call_free(&recovered(fixture, 0)->call);
	queue_one(fixture, id);
	store_call_free(&recovered(fixture, 1)->call);
}

/* The same of one that was withdrawn meanwhile. */
static void test_withdrawal_meets_its_message(void **state)
{
	struct fixture *fixture = *state;
	struct store_pending *due;
	int64_t id;

	open_fixture(fixture);
	id = record_one(fixture, &example);
	update(fixture, (struct change_record_update){
				id, example.item.time, 30, .state = CHANGE_WITHDRAWN});
	queue_one(fixture, id);
	due = pending(fixture);
	assert_int_equal(due->events.count, 1);
	assert_int_equal(due->events.items[0].event.kind, EVENT_WITHDRAWN);
	store_call_free(&due->call);
}

static void test_update_renews_numbers(void **state)
{
	struct fixture *fixture = *state;
	struct announcement item = example.item;
	struct store_pending *due;
	struct store_known *of_test;
	int64_t id;

	open_fixture(fixture);
	id = record_one(fixture, &example);
	item.change.pvalue = 0.25;
	item.commit_after = NULL;
	item.change.level_after = 4;
	item.place_to += 60000;
	item.place_commit_after = "b4";
	update(fixture, (struct change_record_update){id, example.item.time, 50,
				.state = CHANGE_CONFIRMED, .runs = 7, .item = &item});
	due = pending(fixture);
	assert_true(due->records.items[0].item.change.pvalue == 0.25);
	assert_null(due->records.items[0].item.commit_after);
	assert_string_equal(due->records.items[0].item.commit_before, "a1");
	assert_int_equal(due->records.items[0].runs, 7);
	assert_true(due->records.items[0].item.change.level_after == 4);
	assert_int_equal(due->records.items[0].item.place_to, item.place_to);
	assert_string_equal(due->records.items[0].item.place_commit_after, "b4");
	store_call_free(&due->call);
	of_test = known(fixture, "db.read");
	assert_int_equal(of_test->records.items[0].item.change.kind, CHANGE_TREND);
	assert_true(of_test->records.items[0].item.change.level_before == 1.25);
	assert_true(of_test->records.items[0].item.change.level_after == 4);
	assert_int_equal(of_test->records.items[0].item.place_from, item.place_from);
	assert_int_equal(of_test->records.items[0].item.place_to, item.place_to);
	store_call_free(&of_test->call);
	update(fixture, (struct change_record_update){
				id, example.item.time, 60, .state = CHANGE_CONFIRMED});
	due = pending(fixture);
	assert_int_equal(due->records.items[0].runs, 7);
	assert_true(due->records.items[0].item.change.pvalue == 0.25);
	store_call_free(&due->call);
}

static struct packed_excerpt pack_three(struct arena *arena, double last)
{
	const double values[] = {10, 12, last};
	const int64_t times[] = {1000, 2000, 3000};

	return excerpt_pack(arena, times, values, 3, 1, 1);
}

/* What is stored around these changes, "7: 10 12 14" each. */
static void check_excerpts(
	struct fixture *fixture, const int64_t *ids, size_t count, const char *expected)
{
	struct store_excerpts *request = store_excerpts_new(NULL, NULL);
	struct buf text = {0};

	request->changes = ids;
	request->change_count = count;
	ask(fixture, &request->call);
	if (request->call.failed)
		fail_msg("%s", request->call.error->text);
	for (size_t i = 0; i < request->count; i++) {
		const struct excerpted *item = &request->items[i];

		buf_printf(&text, "%s%d:", i > 0 ? ", " : "", (int)item->record.item.id);
		assert_string_equal(item->record.item.metric, "p99");
		for (size_t k = 0; k < item->excerpt.n; k++) {
			assert_int_equal(item->excerpt.times[k], 1000 * ((int)k + 1));
			buf_printf(&text, " %g", item->excerpt.values[k]);
		}
	}
	buf_char(&text, 0);
	assert_string_equal(text.data, expected);
	buf_free(&text);
	store_call_free(&request->call);
}

/* Of what is confirmed, not of candidates; as it was written last; in the order asked for. */
static void test_points_around_changes(void **state)
{
	struct fixture *fixture = *state;
	struct arena *arena = arena_new();
	struct change_record confirmed = example, candidate = example;
	int64_t ids[] = {2, 99, 1, 2};

	open_fixture(fixture);
	confirmed.item.excerpt = candidate.item.excerpt = pack_three(arena, 14);
	candidate.state = CHANGE_CANDIDATE;
	candidate.news = NOTIFY_HELD;
	assert_int_equal(record_one(fixture, &confirmed), 1);
	assert_int_equal(record_one(fixture, &candidate), 2);
	check_excerpts(fixture, ids, 4, "2:, 1: 10 12 14, 2:");
	candidate = confirmed;
	candidate.confirmed = true;
	candidate.item.id = 2;
	candidate.item.excerpt = pack_three(arena, 15);
	assert_int_equal(record_one(fixture, &candidate), 2);
	update(fixture,
		(struct change_record_update){.id = 1, .time = 5, .state = CHANGE_WITHDRAWN});
	reopen(fixture);
	check_excerpts(fixture, ids, 4, "2: 10 12 15, 1: 10 12 14, 2: 10 12 15");
	update(fixture, (struct change_record_update){.id = 1,
				.time = 5,
				.state = CHANGE_MOVED,
				.excerpt = pack_three(arena, 16)});
	check_excerpts(fixture, ids, 3, "2: 10 12 15, 1: 10 12 16");
	/* One that nobody knows any more takes none with it, and a candidate gets none. */
	update(fixture, (struct change_record_update){.id = 77,
				.time = 5,
				.state = CHANGE_MOVED,
				.excerpt = pack_three(arena, 16)});
	assert_int_equal(count_rows(fixture, "excerpts"), 2);
	/* One that cannot be read is as none. */
	database_with(fixture, state_is_database()
				       ? "UPDATE excerpts SET points = '\\xff' WHERE change = 1"
				       : "UPDATE excerpts SET points = x'ff' WHERE change = 1");
	check_excerpts(fixture, ids, 3, "2: 10 12 15, 1:");
	arena_free(arena);
}

static void check_list(struct fixture *fixture, struct change_filter filter, const char *expected)
{
	struct store_list *request = list(fixture, filter);
	char ids[200] = "";

	for (size_t i = 0; i < request->records.count; i++)
		sprintf(ids + strlen(ids), "%d ", (int)request->records.items[i].item.id);
	if (request->more)
		strcat(ids, "...");
	assert_string_equal(ids, expected);
	store_call_free(&request->call);
}

/* One that changed in a test, with this commit, and in such a size. */
static int64_t record_like(struct fixture *fixture, const char *test, const char *commit,
	int64_t time, double size, int direction, size_t members)
{
	struct change_record record = example;

	record.item.test = test;
	record.item.time = time;
	record.item.commit_after = commit;
	record.item.place_commit_after = commit;
	record.item.version_after = NULL;
	record.item.change.size = size;
	record.item.direction = direction;
	record.item.members = members;
	record.news = NOTIFY_SILENT;
	return record_one(fixture, &record);
}

/* The change; "3 commit message, 2 cluster (of 2)". */
static void check_story(struct fixture *fixture, int64_t change, size_t limit, const char *expected,
	int64_t cluster)
{
	static const char *const tests[] = {"db.read", "db.write"};
	static const struct store_cluster clusters[] = {
		{"other", {tests + 1, 1}}, {"frames", {tests, 1}}};
	struct store_story *call = store_story_new(NULL, NULL);
	struct buf text = {0};

	call->change = change;
	call->limit = limit;
	call->clusters = clusters;
	call->cluster_count = 2;
	ask(fixture, &call->call);
	assert_false(call->call.failed);
	assert_int_equal(call->records.count, 1);
	assert_int_equal(call->records.items[0].item.id, change);
	assert_int_equal(call->cluster, cluster);
	for (size_t i = 0; i < call->related_count; i++) {
		buf_printf(&text, "%s%d", i ? ", " : "", (int)call->related[i].record.item.id);
		for (int bit = 0; bit < RELATIONS; bit++)
			if (call->related[i].relations >> bit & 1)
				buf_printf(&text, " %s", relation_names[bit]);
	}
	buf_printf(&text, " (of %zu)", call->related_total);
	assert_string_equal(text.data, expected);
	buf_free(&text);
	store_call_free(&call->call);
}

/* What stands before what does not, the worst first, and what only a message tells of last. */
static void test_what_is_related_to_a_change(void **state)
{
	const int64_t time = example.item.time, day = 86400000;
	struct fixture *fixture = *state;
	struct store_story *none = store_story_new(NULL, NULL);
	int64_t message;

	open_fixture(fixture);
	assert_int_equal(record_like(fixture, "db.read", "b2", time, 10, -1, 0), 1);
	assert_int_equal(record_like(fixture, "db.write", "b2", time + day, 20, -1, 0), 2);
	assert_int_equal(record_like(fixture, "db.list", "b2", time - 6 * day, 90, 1, 0), 3);
	assert_int_equal(record_like(fixture, "db.list", "b2", time, 30, -1, 0), 4);
	assert_int_equal(record_like(fixture, "db.scan", "b3", time, 95, -1, 0), 5);
	assert_int_equal(record_like(fixture, "db.scan", "b3", time, 99, -1, 0), 6);
	assert_int_equal(record_like(fixture, "db.late", "b2", time + 9 * day, 9, -1, 0), 7);
	assert_int_equal(record_like(fixture, "frames", NULL, time + 300000, 15, -1, 20), 8);
	assert_int_equal(record_like(fixture, "frames", NULL, time + 300001, 15, -1, 20), 9);
	assert_int_equal(record_like(fixture, "db.read", "b9", time + 60000, 5, -1, 0), 10);
	update(fixture, (struct change_record_update){4, time, 20, .state = CHANGE_WITHDRAWN});
	message = queue_one(fixture, 1);
	database_with(fixture,
		"INSERT INTO announced (change, delivery) VALUES (2, 1), (6, 1);"
		"INSERT INTO environments (id, label, value, time, spacing, hit, total, up, down,"
		" worse, better, elsewhere, elsewhere_changed, told, followed, created)"
		" VALUES (5, 'host', 'a', 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 1);"
		"UPDATE changes SET environment_event = 5 WHERE id IN (1, 5)");
	assert_int_equal(message, 1);
	check_story(fixture, 1, 20,
		"8 cluster, 5 environment, 2 commit message, 10 cluster, 3 commit, 4 commit, 6 "
		"message (of 7)",
		8);
	check_story(fixture, 1, 2, "8 cluster, 5 environment (of 7)", 8);
	/* Of the cluster: its members, in the group's test and near enough. */
	check_story(fixture, 8, 20, "1 cluster, 10 cluster (of 2)", 0);
	check_story(fixture, 7, 20, " (of 0)", 0);
	none->change = 11;
	none->limit = 1;
	ask(fixture, &none->call);
	assert_int_equal(none->records.count, 0);
	assert_false(none->pruned);
	store_call_free(&none->call);
}

/* Few tests that match are found by their names, more than a hundred by a scan. */
static void test_list_by_pattern(void **state)
{
	struct fixture *fixture = *state;

	open_fixture(fixture);
	for (int i = 0; i <= 100; i++) {
		char name[8];

		snprintf(name, sizeof name, "n%03d", i);
		record_named(fixture, name, "p99", CHANGE_CONFIRMED, 1000 + i);
	}
	check_list(fixture, (struct change_filter){.test = "m*"}, "");
	check_list(fixture, (struct change_filter){.test = "n00[01]"}, "2 1 ");
	check_list(fixture, (struct change_filter){.test = "n0*", .limit = 2}, "100 99 ...");
	check_list(fixture, (struct change_filter){.test = "n0*", .until = 1002}, "2 1 ");
	check_list(fixture, (struct change_filter){.test = "n*", .limit = 2}, "101 100 ...");
	check_list(fixture, (struct change_filter){.test = "n*", .until = 1002}, "2 1 ");
}

static void test_list_gives_what_is_asked_for(void **state)
{
	struct fixture *fixture = *state;
	unsigned withdrawn = 1U << CHANGE_WITHDRAWN, moved = 1U << CHANGE_MOVED;
	static const char *const one[] = {"a[b"}, *const pattern[] = {"db.*"},
				 *const two[] = {"net", "db.read"};

	open_fixture(fixture);
	record_named(fixture, "db.read", "p99", CHANGE_CONFIRMED, 1000);
	record_named(fixture, "db.read", "p50", CHANGE_WITHDRAWN, 2000);
	record_named(fixture, "db.write", "p99", CHANGE_MOVED, 3000);
	record_named(fixture, "net", "p99", CHANGE_WITHDRAWN, 1500);
	record_named(fixture, "a[b", "p99", CHANGE_CONFIRMED, -5);
	check_list(fixture, (struct change_filter){0}, "5 4 3 2 1 ");
	check_list(fixture, (struct change_filter){.limit = 2}, "5 4 ...");
	check_list(fixture, (struct change_filter){.limit = 2, .before_id = 4}, "3 2 ...");
	check_list(fixture, (struct change_filter){.limit = 2, .before_id = 3}, "2 1 ");
	check_list(fixture, (struct change_filter){.states = withdrawn}, "4 2 ");
	check_list(fixture, (struct change_filter){.states = withdrawn | moved}, "4 3 2 ");
	check_list(fixture, (struct change_filter){.since = 1500}, "4 3 2 ");
	check_list(fixture, (struct change_filter){.until = 1500}, "5 1 ");
	check_list(fixture, (struct change_filter){.since = 1500, .until = 2000}, "4 ");
	check_list(fixture, (struct change_filter){.since = 1500, .states = moved}, "3 ");
	check_list(fixture, (struct change_filter){.since = 1000, .limit = 1}, "4 ...");
	check_list(fixture, (struct change_filter){.test = "db.read"}, "2 1 ");
	check_list(fixture, (struct change_filter){.test = "db.read", .states = withdrawn}, "2 ");
	check_list(fixture, (struct change_filter){.test = "db.*"}, "3 2 1 ");
	check_list(fixture, (struct change_filter){.test = "db.*", .limit = 1}, "3 ...");
	check_list(fixture, (struct change_filter){.test = "*[!d]", .since = 1500}, "4 3 ");
	check_list(fixture, (struct change_filter){.test = "a\\[b"}, "5 ");
	check_list(fixture, (struct change_filter){.test = "a[b"}, "5 ");
	check_list(fixture, (struct change_filter){.names = {one, 1}}, "5 ");
	check_list(fixture, (struct change_filter){.names = {pattern, 1}}, "");
	check_list(fixture, (struct change_filter){.names = {two, 2}, .test = "db.*"}, "2 1 ");
	check_list(fixture, (struct change_filter){.names = {two, 2}, .limit = 2}, "4 2 ...");
	check_list(fixture, (struct change_filter){.names = {two, 2}, .since = 1500}, "4 2 ");
	update(fixture,
		(struct change_record_update){2, 2000, 9000000000000, .state = CHANGE_WITHDRAWN});
	check_list(fixture, (struct change_filter){.updated = 9000000000000}, "2 ");
	check_list(fixture, (struct change_filter){.updated = 9000000000001}, "");
	check_list(fixture, (struct change_filter){.test = "nothing' OR 1=1 --"}, "");
}

/* Keeps the thread that has the answer until it may go on. */
struct gate {
	struct loop *loop;
	sem_t arrived, open;
	bool closed;
};

static void post_through_gate(
	void *context, void (*call)(void *argument), void (*drop)(void *argument), void *request)
{
	struct gate *gate = context;
	struct store_call *answer = request;

	if (answer->work == &store_list_work && gate->closed) {
		sem_post(&gate->arrived);
		sem_wait(&gate->open);
	}
	post(gate->loop, call, drop, request);
}

static void wait_for_answer(struct fixture *fixture, size_t number)
{
	while (fixture->answers < number)
		run_one(&fixture->loop);
}

/* However long a list takes, the agent's work does not wait for it. */
static void test_lists_hold_nothing_up(void **state)
{
	struct fixture *fixture = *state;
	struct gate gate = {.loop = &fixture->loop, .closed = true};
	struct timespec limit;
	struct error error;

	sem_init(&gate.arrived, 0, 0);
	sem_init(&gate.open, 0, 0);
	fixture->store = store_open(fixture->path, post_through_gate, &gate, &error);
	assert_non_null(fixture->store);
	submit(fixture, &store_list_new(NULL, NULL)->call);
	sem_wait(&gate.arrived);
	submit(fixture, store_probe_new());
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 60;
	pthread_mutex_lock(&fixture->loop.mutex);
	while (fixture->loop.count == 0 &&
		pthread_cond_timedwait(&fixture->loop.filled, &fixture->loop.mutex, &limit) == 0)
		continue;
	pthread_mutex_unlock(&fixture->loop.mutex);
	gate.closed = false;
	sem_post(&gate.open);
	wait_for_answer(fixture, 1);
	assert_ptr_equal(fixture->answer->work, &store_probe_work);
	store_call_free(fixture->answer);
	wait_for_answer(fixture, 2);
	assert_ptr_equal(fixture->answer->work, &store_list_work);
	assert_false(fixture->answer->failed);
	store_call_free(fixture->answer);
	sem_destroy(&gate.arrived);
	sem_destroy(&gate.open);
}

/* What a taker has seen; each is taken only if its id is odd. */
struct seen {
	int64_t ids[16];
	size_t count, ended;
};

static bool see(struct store_list *list, const struct change_record *record)
{
	struct seen *seen = list->taker;

	if (!record)
		return false;
	seen->ids[seen->count++] = record->item.id;
	return record->item.id % 2 == 1;
}

static void see_end(struct store_list *list)
{
	((struct seen *)list->taker)->ended++;
}

static struct store_list *list_seen(
	struct fixture *fixture, struct change_filter filter, int64_t looks, struct seen *seen)
{
	struct store_list *request = store_list_new(NULL, NULL);

	*seen = (struct seen){0};
	request->filter = filter;
	request->looks = looks;
	request->take = see;
	request->taken = see_end;
	request->taker = seen;
	ask(fixture, &request->call);
	if (request->call.failed)
		fail_msg("%s", request->call.error->text);
	assert_int_equal(request->records.count, 0);
	assert_int_equal(seen->ended, 1);
	return request;
}

static void check_seen(const struct seen *seen, const int64_t *ids, size_t count)
{
	assert_int_equal(seen->count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(seen->ids[i], ids[i]);
}

/* A list that is shown rather than kept: state by state, the last first; the limit counts what is
 * taken, `looks` also the others. */
static void test_a_list_is_shown(void **state)
{
	struct fixture *fixture = *state;
	struct store_list *request;
	struct seen seen;

	open_fixture(fixture);
	for (int64_t i = 1; i <= 6; i++)
		assert_int_equal(record_named(fixture, i < 4 ? "a" : "b", "x",
					 i == 2 ? CHANGE_MOVED : CHANGE_CONFIRMED, i),
			i);
	request = list_seen(fixture, (struct change_filter){0}, 0, &seen);
	check_seen(&seen, (const int64_t[]){6, 5, 4, 3, 1, 2}, 6);
	assert_false(request->more);
	store_call_free(&request->call);
	request = list_seen(fixture, (struct change_filter){.limit = 2}, 0, &seen);
	check_seen(&seen, (const int64_t[]){6, 5, 4, 3, 2}, 5);
	assert_true(request->more);
	store_call_free(&request->call);
	request = list_seen(fixture, (struct change_filter){0}, 3, &seen);
	check_seen(&seen, (const int64_t[]){6, 5, 4, 2}, 4);
	assert_true(request->more);
	store_call_free(&request->call);
	request = list_seen(fixture, (struct change_filter){0}, 5, &seen);
	check_seen(&seen, (const int64_t[]){6, 5, 4, 3, 1, 2}, 6);
	assert_false(request->more);
	store_call_free(&request->call);
	request = list_seen(fixture,
		(struct change_filter){.test = "a", .states = 1U << CHANGE_CONFIRMED}, 0, &seen);
	check_seen(&seen, (const int64_t[]){3, 1}, 2);
	store_call_free(&request->call);
	request = list_seen(fixture, (struct change_filter){.since = 3, .until = 6}, 0, &seen);
	check_seen(&seen, (const int64_t[]){5, 4, 3}, 3);
	store_call_free(&request->call);
}

static void test_checkpoints_are_of_one_test(void **state)
{
	struct fixture *fixture = *state;
	struct store_record *recording;
	struct store_checkpoints *places;
	struct series_checkpoint rows[] = {
		{"p99", "", 10, 20, 3, 15}, {"p50", "dev", 11, 21, 0, 0}};

	open_fixture(fixture);
	for (int64_t i = 0; i < 2; i++) {
		recording = store_record_new(NULL, NULL);
		recording->test = "db.read";
		recording->checkpoints.items = rows;
		recording->checkpoints.count = 2;
		done(fixture, &recording->call);
		rows[0].last_point = 120;
		rows[0].anchor = 110;
	}
	reopen(fixture);
	places = store_checkpoints_new(NULL, NULL);
	places->test = "db.read";
	ask(fixture, &places->call);
	assert_int_equal(places->checkpoints.count, 2);
	assert_string_equal(places->checkpoints.items[0].series, "p50");
	assert_string_equal(places->checkpoints.items[0].branch, "dev");
	assert_int_equal(places->checkpoints.items[0].anchor, 11);
	assert_int_equal(places->checkpoints.items[0].last_point, 21);
	assert_string_equal(places->checkpoints.items[1].series, "p99");
	assert_int_equal(places->checkpoints.items[1].anchor, 110);
	assert_int_equal(places->checkpoints.items[1].last_point, 120);
	assert_int_equal(places->checkpoints.items[1].revision, 3);
	assert_int_equal(places->checkpoints.items[1].revised, 15);
	store_call_free(&places->call);
	places = store_checkpoints_new(NULL, NULL);
	places->test = "db";
	ask(fixture, &places->call);
	assert_int_equal(places->checkpoints.count, 0);
	store_call_free(&places->call);
}

static void test_moments_and_vanished_series(void **state)
{
	struct fixture *fixture = *state;
	struct stored_moment moments[] = {{"stale", 5}, {"series a", 6}};
	struct vanished vanished[] = {{.test = "a", .series = "x", .ended = 7},
		{.test = "a", .series = "y", .ended = 8}, {.test = "b", .series = "x", .ended = 9}};
	struct store_queue *queuing;
	struct store_restore *restored;

	open_fixture(fixture);
	for (int round = 0; round < 2; round++) {
		queuing = store_queue_new(NULL, NULL);
		queuing->health.moments = moments;
		queuing->health.moment_count = 2;
		queuing->health.vanished = vanished;
		queuing->health.vanished_count = 3;
		done(fixture, &queuing->call);
		moments[1].time = 60;
		vanished[0].back = vanished[2].back = true;
	}
	reopen(fixture);
	restored = restore(fixture);
	assert_int_equal(restored->health.moment_count, 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(restored->health.moments[i].time,
			strcmp(restored->health.moments[i].name, "stale") == 0 ? 5 : 60);
	assert_int_equal(restored->health.vanished_count, 1);
	assert_string_equal(restored->health.vanished[0].test, "a");
	assert_string_equal(restored->health.vanished[0].series, "y");
	assert_int_equal(restored->health.vanished[0].ended, 8);
	store_call_free(&restored->call);
}

static struct store_rename rename_one(
	struct fixture *fixture, const char *test, const char *metric, const char *was)
{
	struct store_rename rename = {.test = test, .metric = metric, .was = was};
	struct store_renames *request = store_renames_new(NULL, NULL);

	request->renames = &rename;
	request->rename_count = 1;
	done(fixture, &request->call);
	return rename;
}

static void test_renamed(void **state)
{
	struct fixture *fixture = *state;
	struct store_rename rename;

	open_fixture(fixture);
	reopen(fixture);
	rename = rename_one(fixture, "new", NULL, "old");
	assert_false(rename.moved || rename.taken); /* nothing is known */
	database_with(fixture, "INSERT INTO series VALUES ('old', 'p9{a=\"1\"}', '', 1, 2, 0, 0),"
			       " ('old', 'p99', '', 1, 2, 0, 0), ('other', 'p9', '', 1, 2, 0, 0);"
			       "INSERT INTO vanished VALUES ('old', 'p9{a=\"1\"}', 7);"
			       "INSERT INTO moments VALUES ('series old', 5), ('stale', 4);"
			       "INSERT INTO conditions VALUES ('data old', 3, 5, 'x'), ('source "
			       "old', 1, 5, 'x');");
	rename = rename_one(fixture, "other", NULL, "old");
	assert_true(rename.taken && !rename.moved);
	assert_int_equal(count_rows(fixture, "series WHERE test = 'old'"), 2);
	for (int i = 0; i < 2; i++) {
		rename = rename_one(fixture, "new", NULL, "old");
		assert_true(rename.moved == (i == 0) && !rename.taken);
	}
	assert_int_equal(count_rows(fixture, "series WHERE test = 'new'"), 2);
	assert_int_equal(count_rows(fixture, "vanished WHERE test = 'new'"), 1);
	assert_int_equal(count_rows(fixture, "moments WHERE name = 'series new'"), 1);
	assert_int_equal(count_rows(fixture, "conditions WHERE subject = 'data new'"), 1);
	assert_int_equal(count_rows(fixture, "conditions WHERE subject = 'source old'"), 1);

	rename = rename_one(fixture, "new", "p99", "p9");
	assert_true(rename.taken);
	rename = rename_one(fixture, "new", "p90", "p9");
	assert_true(rename.moved);
	assert_int_equal(count_rows(fixture, "series WHERE series = 'p90{a=\"1\"}'"), 1);
	assert_int_equal(count_rows(fixture, "vanished WHERE series = 'p90{a=\"1\"}'"), 1);
	assert_int_equal(count_rows(fixture, "series WHERE series IN ('p9', 'p99')"), 2);
}

static void test_conditions_last_until_they_are_over(void **state)
{
	struct fixture *fixture = *state;
	struct condition conditions[] = {
		{"source prometheus", CONDITION_SOURCE, 5, "no answer", false},
		{"data db.read", CONDITION_STALE, 6, "no point since noon", false}};
	struct store_queue *queuing;
	struct store_restore *restored;

	open_fixture(fixture);
	for (int i = 0; i < 2; i++) {
		queuing = store_queue_new(NULL, NULL);
		queuing->health.conditions = conditions;
		queuing->health.condition_count = 2;
		done(fixture, &queuing->call);
		conditions[0].text = "no route";
		conditions[1].over = true;
	}
	reopen(fixture);
	restored = restore(fixture);
	assert_int_equal(restored->health.condition_count, 1);
	assert_string_equal(restored->health.conditions[0].subject, "source prometheus");
	assert_string_equal(restored->health.conditions[0].text, "no route");
	assert_int_equal(restored->health.conditions[0].kind, CONDITION_SOURCE);
	assert_int_equal(restored->health.conditions[0].since, 5);
	assert_false(restored->health.conditions[0].over);
	store_call_free(&restored->call);
}

/* An event is due about changes with a message that was not given up: sent, or begun. */
static void test_messages_about_changes(void **state)
{
	struct fixture *fixture = *state;
	struct store_record *request;
	struct store_pending *due;
	int64_t ids[4];

	open_fixture(fixture);
	for (size_t i = 0; i < 4; i++)
		ids[i] = record_one(fixture, &example);
	settle(fixture, queue_one(fixture, ids[1]), DELIVERY_SENT, 1);
	settle(fixture, queue_for(fixture, ids[1], "other", true), DELIVERY_SENT, 1);
	settle(fixture, queue_one(fixture, ids[2]), DELIVERY_ABANDONED, 1);
	store_call_free(&begin_attempt(fixture, queue_one(fixture, ids[3]))->call);
	request = store_record_new(NULL, NULL);
	request->updates = arena_array(request->call.arena, 4, sizeof *request->updates);
	for (size_t i = 0; i < 4; i++)
		request->updates[request->update_count++] = (struct change_record_update){
			.id = ids[i], .time = 1, .now = 8, .state = CHANGE_WITHDRAWN};
	ask(fixture, &request->call);
	assert_false(request->call.failed);
	assert_int_equal(request->call.counts->due.events, 2);
	due = pending(fixture);
	assert_int_equal(due->events.count, 2);
	assert_int_equal(due->events.items[0].messages.count, 2);
	assert_int_equal(due->events.items[0].record->item.id, ids[1]);
	assert_string_equal(due->events.items[0].record->item.metric, example.item.metric);
	for (size_t i = 0; i < 2; i++) {
		const struct delivery *delivery = &due->events.items[0].messages.items[i];

		assert_string_equal(delivery->receiver, i == 0 ? "slack" : "other");
		assert_string_equal(delivery->receipt, "1503435956.000247");
	}
	assert_int_equal(due->events.items[1].record->item.id, ids[3]);
	assert_int_equal(due->events.items[1].messages.count, 1);
	assert_null(due->events.items[1].messages.items[0].receipt);
	store_call_free(&request->call);
	store_call_free(&due->call);
}

static struct store_incidents *incidents_at(struct fixture *fixture, int64_t now)
{
	struct store_incidents *found = store_incidents_new(NULL, NULL);
	struct event_told *event = arena_alloc(found->call.arena, sizeof *event);

	*event = (struct event_told){.event = 99,
		.environment = "r7",
		.from = example.item.time,
		.to = example.item.time};
	found->now = now;
	found->events = event;
	found->event_count = 1;
	ask(fixture, &found->call);
	return found;
}

/* Records a change that is told with that key, in the thread of another message or NULL. */
static int64_t tell(struct fixture *fixture, struct change_record record, const char *environment,
	int64_t incident, const char *key, const char *thread)
{
	struct store_queue *queue = store_queue_new(NULL, NULL);
	struct decided_change *settled;
	struct arena *arena = queue->call.arena;
	struct delivery *delivery = arena_alloc(arena, sizeof *delivery);
	struct incident *opened = arena_alloc(arena, sizeof *opened);
	struct store_member *member = arena_alloc(arena, sizeof *member);
	int64_t *id = arena_alloc(arena, sizeof *id);

	record.item.environment = environment;
	*id = record_one(fixture, &record);
	*opened = (struct incident){.id = incident == 0 ? *id : incident,
		.opened = 1,
		.joined = 2,
		.until = 50,
		.words = ""};
	*member = (struct store_member){.change = *id, .incident = opened->id};
	*delivery = (struct delivery){.key = key,
		.receiver = "slack",
		.destination = "#perf",
		.payload = "{}",
		.thread = thread,
		.now = 6,
		.changes = id,
		.change_count = 1};
	queue->deliveries = (struct delivery_rows){delivery, 1};
	queue->incidents = opened;
	queue->members = member;
	queue->incident_count = queue->member_count = 1;
	settled = arena_alloc(queue->call.arena, sizeof *settled);
	settled->id = *id;
	queue->changes = settled;
	queue->change_count = 1;
	incident = *id;
	done(fixture, &queue->call);
	return incident;
}

/* The first message about an incident that others may join is there for those that continue it; of
 * an environment event what was told before, if it showed nowhere else. */
static void test_messages_of_incidents(void **state)
{
	struct fixture *fixture = *state;
	struct store_incidents *found;
	int64_t first;

	open_fixture(fixture);
	first = tell(fixture, example, "r7", 0, "k1", NULL);
	(void)tell(fixture, example, "r7", first, "k2", "k1");
	reopen(fixture);
	found = incidents_at(fixture, 50);
	assert_int_equal(found->incidents.count, 1);
	assert_int_equal(found->incidents.items[0].first->item.id, first);
	assert_int_equal(found->messages.count, 2);
	assert_int_equal(found->messages.items[0].incident, first);
	assert_null(found->messages.items[0].message.thread);
	assert_string_equal(found->messages.items[1].message.thread, "k1");
	assert_float_equal(found->messages.items[1].worst.regression, 140, 0.01);
	assert_float_equal(found->messages.items[1].worst.other, 0, 0);
	assert_string_equal(found->messages.items[0].message.key, "k1");
	assert_int_equal(found->messages.items[0].message.records[0].item.id, first);
	assert_string_equal(found->messages.items[0].message.records[0].item.commit_after, "b2");
	assert_int_equal(found->series_count, 0);
	assert_int_equal(found->events[0].early_count, 1);
	assert_string_equal(found->events[0].early[0].destination, "#perf");
	assert_int_equal(found->events[0].early[0].count, 2);
	store_call_free(&found->call);
	found = incidents_at(fixture, 51);
	assert_int_equal(found->incidents.count + found->messages.count, 0);
	store_call_free(&found->call);
	(void)tell(fixture, example, "r8", first, "k3", "k1");
	found = incidents_at(fixture, 50);
	assert_int_equal(found->messages.count, 3);
	assert_int_equal(found->events[0].early_count, 0);
	store_call_free(&found->call);
}

/* What grows within a thread edits the first message, too, which names the worst. */
static void test_growth_in_a_thread(void **state)
{
	struct fixture *fixture = *state;
	struct announcement item = example.item;
	int64_t first, second;

	open_fixture(fixture);
	first = tell(fixture, example, "r7", 0, "k1", NULL);
	second = tell(fixture, example, "r7", first, "k2", "k1");
	for (int i = 0; i < 2; i++) {
		item.change.size *= i == 0 ? 1.05 : 2;
		update(fixture, (struct change_record_update){second, example.item.time, 50,
					.state = CHANGE_CONFIRMED, .runs = 7, .item = &item});
		assert_int_equal(count_rows(fixture, "deliveries WHERE amend = 1"), 2 * i);
	}
}

/* A receipt once stored outlives an attempt that brings none. */
static void test_receipt_is_kept(void **state)
{
	struct fixture *fixture = *state;
	struct delivery delivery = {.state = DELIVERY_QUEUED, .problem = "reset", .now = 11};
	struct store_settle *settling;
	struct store_restore *restored;

	open_fixture(fixture);
	delivery.id = queue_one(fixture, record_one(fixture, &example));
	settle(fixture, delivery.id, DELIVERY_QUEUED, 1);
	settling = store_settle_new(NULL, NULL);
	settling->delivery = delivery;
	done(fixture, &settling->call);
	restored = restore(fixture);
	assert_string_equal(restored->deliveries.items[0].receipt, "1503435956.000247");
	store_call_free(&restored->call);
}

/* A series with points until then. */
static void checkpoint_until(
	struct fixture *fixture, const char *test, const char *series, int64_t anchor, int64_t last)
{
	struct store_record *request = store_record_new(NULL, NULL);
	struct series_checkpoint row = {series, "", anchor, last, 1, 0};

	request->test = test;
	request->checkpoints.items = &row;
	request->checkpoints.count = 1;
	done(fixture, &request->call);
}

static void checkpoint_at(
	struct fixture *fixture, const char *test, const char *series, int64_t anchor)
{
	checkpoint_until(fixture, test, series, anchor, anchor + 5);
}

/* A label tells by how few of the unchanged series have it: those of an open incident have changed.
 */
static void test_series_of_incidents_are_not_unchanged(void **state)
{
	struct fixture *fixture = *state;
	struct store_incidents *found;

	open_fixture(fixture);
	checkpoint_at(fixture, example.item.test, example.series, 1);
	checkpoint_at(fixture, example.item.test, "rest", 1);
	(void)tell(fixture, example, "r7", 0, "k1", NULL);
	for (int64_t now = 50; now <= 51; now++) {
		found = store_incidents_new(NULL, NULL);
		found->now = now;
		found->sampled = true;
		ask(fixture, &found->call);
		assert_false(found->call.failed);
		assert_int_equal(found->incidents.count, now == 50);
		assert_int_equal(found->series_count, now == 50 ? 1 : 2);
		store_call_free(&found->call);
	}
}

static struct pruned prune(
	struct fixture *fixture, int64_t before, struct strings tests, bool thorough)
{
	struct store_prune *request = store_prune_new(NULL, NULL);
	struct pruned pruned;

	request->before = before;
	request->tests = tests;
	request->thorough = thorough;
	ask(fixture, &request->call);
	assert_false(request->call.failed);
	pruned = request->pruned;
	store_call_free(&request->call);
	return pruned;
}

/* What lies within the range of its series would be found again, and so is never forgotten. */
static void test_prune_keeps_what_would_be_found_again(void **state)
{
	struct fixture *fixture = *state;
	const char *const names[] = {"db.read"};
	const int64_t seen = example.first_seen;
	struct pruned pruned;

	open_fixture(fixture);
	record_named(fixture, "db.read", "p99", CHANGE_WITHDRAWN, 1000);
	record_named(fixture, "db.read", "p99", CHANGE_WITHDRAWN, 2000);
	record_named(fixture, "db.read", "p99", CHANGE_CONFIRMED, 1000);
	record_named(fixture, "db.read", "p99", CHANGE_CONFIRMED, 2000);
	record_named(fixture, "db.read", "no checkpoint", CHANGE_WITHDRAWN, 1000);
	record_named(fixture, "gone", "p99", CHANGE_CONFIRMED, 1000);
	record_named(fixture, "db.read", "p99", CHANGE_CANDIDATE, 1999);
	update(fixture, (struct change_record_update){1, 1000, seen, .state = CHANGE_CONFIRMED});
	update(fixture, (struct change_record_update){1, 1000, seen, .state = CHANGE_WITHDRAWN});
	checkpoint_at(fixture, "db.read", "p99", 2000);
	pruned = prune(fixture, seen, (struct strings){names, 1}, true);
	assert_int_equal(pruned.changes, 0);
	checkpoint_at(fixture, "gone", "p99", 2000);
	pruned = prune(fixture, seen + 1, (struct strings){0}, false);
	assert_int_equal(pruned.changes, 2);
	assert_int_equal(pruned.events, 2);
	assert_int_equal(pruned.checkpoints, 0);
	check_list(fixture, (struct change_filter){0}, "6 5 4 3 2 ");
	check_counts(fixture, 3, 0, 2, 0);
	pruned = prune(fixture, seen + 1, (struct strings){names, 1}, false);
	assert_int_equal(pruned.changes, 1);
	assert_int_equal(pruned.checkpoints, 1);
	check_list(fixture, (struct change_filter){0}, "5 4 3 2 ");
	pruned = prune(fixture, seen + 1, (struct strings){names, 1}, true);
	assert_int_equal(pruned.changes, 1);
	check_list(fixture, (struct change_filter){0}, "5 4 2 ");
	check_counts(fixture, 1, 0, 2, 0);
}

/* Label sets that come and go leave nothing; those of a test without any that grows stay. */
static void test_prune_forgets_what_has_vanished(void **state)
{
	struct fixture *fixture = *state;
	const int64_t before = example.first_seen + 1, grows = before + 1000;
	const char *const names[] = {"pods", "files"};
	struct pruned pruned;

	open_fixture(fixture);
	for (int i = 0; i < 3; i++) {
		const char *series = i == 0 ? "pod 0" : i == 1 ? "pod 1" : "pod 2";

		record_named(fixture, "pods", series, CHANGE_WITHDRAWN, 1500);
		record_named(fixture, "pods", series, CHANGE_CONFIRMED, 1600);
		checkpoint_until(fixture, "pods", series, 1000, i < 2 ? 2000 : 3000);
	}
	record_named(fixture, "files", "a", CHANGE_WITHDRAWN, 1500);
	checkpoint_until(fixture, "files", "a", 1000, 2000);
	checkpoint_until(fixture, "pods", "pod 3", 2001, grows);
	pruned = prune(fixture, before, (struct strings){names, 2}, false);
	assert_int_equal(pruned.changes, 0);
	assert_int_equal(pruned.checkpoints, 2);
	pruned = prune(fixture, before, (struct strings){names, 2}, false);
	assert_int_equal(pruned.checkpoints, 0);
	check_list(fixture, (struct change_filter){0}, "7 6 5 4 2 ");
	pruned = prune(fixture, before, (struct strings){names, 2}, true);
	check_list(fixture, (struct change_filter){0}, "7 6 5 ");
}

/* What is to be told is told, however old; its message outlives it not, but keeps it. */
static void test_prune_keeps_what_is_to_be_told(void **state)
{
	struct fixture *fixture = *state;
	struct change_record old = example;
	const char *const names[] = {"other"};
	int64_t later = example.first_seen + 1, attempt;

	old.item.time = 5;
	open_fixture(fixture);
	record_one(fixture, &old);
	checkpoint_at(fixture, old.item.test, old.series, 1000);
	assert_int_equal(prune(fixture, later, (struct strings){names, 1}, true).changes, 0);
	attempt = queue_one(fixture, 1);
	assert_int_equal(prune(fixture, later, (struct strings){names, 1}, true).changes, 0);
	settle(fixture, attempt, DELIVERY_SENT, 1);
	assert_int_equal(prune(fixture, 9, (struct strings){names, 1}, true).deliveries, 0);
	assert_int_equal(prune(fixture, later, (struct strings){names, 1}, true).changes, 1);
	assert_int_equal(count_rows(fixture, "events"), 0);
	assert_int_equal(count_rows(fixture, "announced"), 0);
}

/* A change that was told long ago and is over stays until that is told, whatever else would let it
 * go: its series goes on without it, has vanished, or is of a test that is gone. */
static void test_prune_keeps_an_end_that_is_to_be_told(void **state)
{
	static const char *const names[] = {"other"};
	const struct strings left = {names, 1}, none = {0};
	struct fixture *fixture = *state;
	struct change_record old = example;
	struct store_pending *due;
	int64_t later = example.first_seen + 1, id;

	old.item.time = 5;
	open_fixture(fixture);
	for (int i = 0; i < 2; i++) {
		old.series = i == 0 ? example.series : "vanished";
		id = record_one(fixture, &old);
		settle(fixture, queue_for(fixture, id, "slack", true), DELIVERY_SENT, 1);
		update(fixture, (struct change_record_update){
					id, 5, 30, .state = CHANGE_RECOVERED, .over = {7, 1.75}});
	}
	checkpoint_until(fixture, old.item.test, example.series, 1000, later);
	assert_int_equal(prune(fixture, later, none, false).deliveries, 2);
	assert_int_equal(prune(fixture, later, none, true).changes, 0);
	assert_int_equal(prune(fixture, later, left, true).changes, 0);
	due = pending(fixture);
	assert_int_equal(due->events.count, 2);
	assert_int_equal(settle_events(fixture, &due->events), 0);
	store_call_free(&due->call);
	assert_int_equal(prune(fixture, later, none, false).changes, 2);
}

static void forget_all(struct fixture *fixture)
{
	struct store_prune *request = store_prune_new(NULL, NULL);

	request->before = INT64_C(1800000000000);
	request->tests = (struct strings){(const char *[]){"another"}, 1};
	ask(fixture, &request->call);
	assert_false(request->call.failed);
	store_call_free(&request->call);
	assert_int_equal(count_rows(fixture, "changes"), 0);
	assert_int_equal(count_rows(fixture, "deliveries"), 0);
}

/* People have been told the ids, and may ask for them. */
static void test_ids_never_come_back(void **state)
{
	struct fixture *fixture = *state;

	struct arena *arena = arena_new();
	struct change_record record = example;

	open_fixture(fixture);
	record.item.excerpt = pack_three(arena, 14);
	for (int64_t id = 1; id <= 3; id++) {
		assert_int_equal(record_one(fixture, &record), id);
		assert_int_equal(queue_one(fixture, id), id);
		settle(fixture, id, DELIVERY_SENT, 1);
	}
	forget_all(fixture);
	assert_int_equal(count_rows(fixture, "excerpts"), 0);
	arena_free(arena);
	reopen(fixture);
	assert_int_equal(record_one(fixture, &example), 4);
	assert_int_equal(queue_one(fixture, 4), 4);
	settle(fixture, 4, DELIVERY_SENT, 1);
	forget_all(fixture);
	assert_int_equal(record_one(fixture, &example), 5);
	assert_int_equal(queue_one(fixture, 5), 5);
}

static void test_prune_cuts_history(void **state)
{
	struct fixture *fixture = *state;
	struct store_pending *due;
	int64_t id;

	open_fixture(fixture);
	id = record_one(fixture, &example);
	settle(fixture, queue_one(fixture, id), DELIVERY_SENT, 1);
	update(fixture, (struct change_record_update){id, 1, 10, .state = CHANGE_MOVED});
	update(fixture, (struct change_record_update){id, 2, 20, .state = CHANGE_MOVED});
	assert_int_equal(prune(fixture, 21, (struct strings){0}, false).events, 0);
	due = pending(fixture);
	assert_int_equal(settle_events(fixture, &due->events), 0);
	store_call_free(&due->call);
	assert_int_equal(prune(fixture, 20, (struct strings){0}, false).events, 1);
	assert_int_equal(count_rows(fixture, "events"), 2);
	assert_int_equal(prune(fixture, 21, (struct strings){0}, false).events, 1);
	assert_int_equal(count_rows(fixture, "events WHERE kind = 6"), 1);
}

static void test_probe_and_size(void **state)
{
	struct fixture *fixture = *state;
	int64_t size;

	open_fixture(fixture);
	size = store_size(fixture->store);
	assert_true(size > 4096);
	done(fixture, store_probe_new());
	if (state_is_database()) {
		assert_int_equal(count_rows(fixture, "schema WHERE probed = 1"), 1);
		return;
	}
	assert_true(store_size(fixture->store) > size);
	assert_int_equal(
		count_rows(fixture, "pragma_application_id WHERE application_id = 1213550164"), 1);
}

static int64_t log_size(const struct fixture *fixture)
{
	char name[220];
	struct stat status;

	snprintf(name, sizeof name, "%s-wal", fixture->path);
	assert_int_equal(stat(name, &status), 0);
	return status.st_size;
}

/* A big transaction makes the log long; it does not stay so. */
static void test_log_is_bounded(void **state)
{
	struct fixture *fixture = *state;
	struct store_record *request = store_record_new(NULL, NULL);

	open_fixture(fixture);
	request->records.count = 80000;
	request->records.items = arena_array(
		request->call.arena, request->records.count, sizeof *request->records.items);
	for (size_t i = 0; i < request->records.count; i++)
		request->records.items[i] = example;
	done(fixture, &request->call);
	assert_true(log_size(fixture) > 9 << 20);
	for (int i = 0; i < 3; i++)
		record_one(fixture, &example);
	assert_true(log_size(fixture) <= 8 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_history_tells_what_happened),
		CASE(test_history_is_bounded),
		CASE(test_candidate_is_confirmed),
		CASE(test_withdrawn_while_pending),
		CASE(test_recovery_is_to_be_told),
		CASE(test_recovery_after_a_dip),
		CASE(test_silent_recovery_of_what_waits),
		CASE(test_recovery_of_what_was_told_long_ago),
		CASE(test_recovery_meets_its_message),
		CASE(test_withdrawal_meets_its_message),
		CASE(test_update_renews_numbers),
		CASE(test_points_around_changes),
		CASE(test_what_is_related_to_a_change),
		CASE(test_what_a_change_ends),
		CASE(test_list_by_pattern),
		CASE(test_list_gives_what_is_asked_for),
		CASE(test_a_list_is_shown),
		CASE(test_lists_hold_nothing_up),
		CASE(test_checkpoints_are_of_one_test),
		CASE(test_conditions_last_until_they_are_over),
		CASE(test_renamed),
		CASE(test_moments_and_vanished_series),
		CASE(test_messages_of_incidents),
		CASE(test_growth_in_a_thread),
		CASE(test_series_of_incidents_are_not_unchanged),
		CASE(test_messages_about_changes),
		CASE(test_receipt_is_kept),
		CASE(test_prune_keeps_what_would_be_found_again),
		CASE(test_prune_forgets_what_has_vanished),
		CASE(test_prune_keeps_what_is_to_be_told),
		CASE(test_prune_keeps_an_end_that_is_to_be_told),
		CASE(test_ids_never_come_back),
		CASE(test_prune_cuts_history),
		CASE(test_probe_and_size),
		FILE_CASE(test_log_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
