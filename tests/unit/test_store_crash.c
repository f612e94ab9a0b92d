/*
 * The power fails: images of what the disk may hold then, in which writes since the last sync are
 * lost, torn or in another order (crash_vfs.h). Of each the store makes what it had answered for:
 * nothing that was recorded is lost, what may have been told is known to be, with its key, so that
 * it is not told as new, and the file is whole.
 *
 * A story from a seed is told to a store: changes are found, queued, sent and withdrawn, one step
 * after another, the agent ending now and then; from each story images are made of random moments.
 * HUNTER_TEST_FULL makes 1,200 images, else 120.
 */
#include "unit.h"

#include "tests/unit/crash_vfs.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/store_talk.h"

enum { STORIES = CASES(12), STEPS = 60, MOST_CHANGES = 6000, GROUP = 12, GROUP_LARGE = 400 };

#define START INT64_C(1700000000000)
#define HOUR INT64_C(3600000)

/* How far a change has come. */
enum phase { ABSENT, RECORDED, QUEUED, SENT, WITHDRAWN, PHASES };

/* When a phase of a change was asked of the store, and when the answer came: numbers of operations
 * on the disk; 0: not yet. */
struct passage {
	size_t begun, answered;
};

/* A group of changes that go through everything together; its key is its number. */
struct group {
	size_t first, count; /* changes */
	int64_t delivery;
	enum phase phase;
	struct passage passages[PHASES];
};

struct story {
	uint64_t random;
	struct group groups[STEPS];
	size_t group_count, change_count;
	int64_t ids[MOST_CHANGES];
};

static struct story story;

static void perform(struct fixture *fixture, struct store_call *call)
{
	ask(fixture, call);
	if (call->failed)
		fail_msg("%s", call->error->text);
	store_call_free(call);
}

static void begin_phase(struct group *group, enum phase phase)
{
	group->phase = phase;
	group->passages[phase].begun = crash_log.count + 1;
}

static void end_phase(struct group *group)
{
	group->passages[group->phase].answered = crash_log.count;
}

static void find(struct fixture *fixture)
{
	struct store_record *request = store_record_new(NULL, NULL);
	struct group *group = &story.groups[story.group_count++];
	bool large = random_below(&story.random, 15) == 0;

	*group = (struct group){.first = story.change_count,
		.count = large ? GROUP_LARGE : 1 + random_below(&story.random, GROUP)};
	story.change_count += group->count;
	request->records.items =
		arena_array(request->call.arena, group->count, sizeof *request->records.items);
	request->records.count = group->count;
	for (size_t i = 0; i < group->count; i++) {
		request->records.items[i] = example;
		request->records.items[i].item.time = START + (int64_t)(group->first + i) * HOUR;
	}
	begin_phase(group, RECORDED);
	ask(fixture, &request->call);
	assert_false(request->call.failed);
	for (size_t i = 0; i < group->count; i++)
		story.ids[group->first + i] = request->records.items[i].item.id;
	store_call_free(&request->call);
	end_phase(group);
}

static void queue_group(struct fixture *fixture, struct group *group)
{
	struct store_queue *request = store_queue_new(NULL, NULL);
	struct delivery delivery = {
		.key = arena_printf(request->call.arena, "key %zu", (size_t)(group - story.groups)),
		.receiver = "slack",
		.destination = "#perf",
		.payload = "{}",
		.now = START,
		.changes = &story.ids[group->first],
		.change_count = group->count};
	struct decided_change *settled;

	request->deliveries.items = &delivery;
	request->deliveries.count = 1;
	settled = arena_array(request->call.arena, group->count, sizeof *settled);
	for (size_t i = 0; i < group->count; i++)
		settled[i].id = delivery.changes[i];
	request->changes = settled;
	request->change_count = group->count;
	begin_phase(group, QUEUED);
	perform(fixture, &request->call);
	end_phase(group);
	group->delivery = delivery.id;
}

static void send_group(struct fixture *fixture, struct group *group)
{
	begin_phase(group, SENT);
	settle(fixture, group->delivery, DELIVERY_SENT, 1);
	end_phase(group);
}

static void withdraw_group(struct fixture *fixture, struct group *group)
{
	struct store_record *request = store_record_new(NULL, NULL);

	request->updates = arena_array(request->call.arena, group->count, sizeof *request->updates);
	request->update_count = group->count;
	for (size_t i = 0; i < group->count; i++)
		request->updates[i] =
			(struct change_record_update){.id = story.ids[group->first + i],
				.time = START + (int64_t)(group->first + i) * HOUR,
				.now = START,
				.state = CHANGE_WITHDRAWN};
	begin_phase(group, WITHDRAWN);
	perform(fixture, &request->call);
	end_phase(group);
}

static void go_on_with(struct fixture *fixture, struct group *group)
{
	switch (group->phase) {
	case RECORDED: queue_group(fixture, group); break;
	case QUEUED: send_group(fixture, group); break;
	case SENT: withdraw_group(fixture, group); break;
	case ABSENT:
	case WITHDRAWN:
	case PHASES: break;
	}
}

static void tell_story(struct fixture *fixture, uint64_t seed)
{
	story = (struct story){.random = seed};
	open_fixture(fixture);
	for (size_t i = 0; i < STEPS; i++) {
		size_t choice = random_below(&story.random, 10);

		if (choice < 4 || story.group_count == 0)
			find(fixture);
		else if (choice < 9)
			go_on_with(fixture,
				&story.groups[random_below(&story.random, story.group_count)]);
		else
			reopen(fixture);
	}
	store_close(fixture->store);
	fixture->store = NULL;
}

/* What is made of each change in the file. */
#define PHASE_OF                                                                                   \
	"SELECT changes.id, CASE WHEN changes.state = 3 THEN 4 WHEN news = 1 THEN 1"               \
	" ELSE 1 + deliveries.state END, deliveries.key,"                                          \
	" (SELECT count(*) FROM announced WHERE change = changes.id) FROM changes"                 \
	" LEFT JOIN announced ON change = changes.id LEFT JOIN deliveries ON"                      \
	" deliveries.id = delivery ORDER BY changes.time"

struct found {
	int64_t id, deliveries;
	enum phase phase;
	char key[24];
};

/* By the order of the story. Returns how many. */
static size_t read_found(const struct fixture *fixture, struct found *found)
{
	sqlite3 *database;
	sqlite3_stmt *statement;
	size_t count = 0;

	assert_int_equal(sqlite3_open(fixture->path, &database), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(database, PHASE_OF, -1, &statement, NULL), SQLITE_OK);
	while (sqlite3_step(statement) == SQLITE_ROW) {
		const char *key = (const char *)sqlite3_column_text(statement, 2);

		assert_true(count < MOST_CHANGES);
		found[count].id = sqlite3_column_int64(statement, 0);
		found[count].phase = (enum phase)sqlite3_column_int(statement, 1);
		found[count].deliveries = sqlite3_column_int64(statement, 3);
		snprintf(found[count].key, sizeof found->key, "%s", key ? key : "");
		count++;
	}
	sqlite3_finalize(statement);
	sqlite3_close(database);
	return count;
}

/* How far the group was by then for sure, and, with `doubt`, how far it may have been. */
static enum phase phase_at(const struct group *group, size_t moment, bool maybe_delivered)
{
	enum phase phase = ABSENT;

	for (enum phase i = RECORDED; i < PHASES; i++) {
		const struct passage *passage = &group->passages[i];

		if (maybe_delivered ? passage->begun > 0 && passage->begun <= moment
				    : passage->answered > 0 && passage->answered <= moment)
			phase = i;
	}
	return phase;
}

/* All of a group is as far, at least as far as was answered, and no further than was asked. */
static void check_group(const struct group *group, const struct found *found, size_t count,
	size_t moment, const char *image)
{
	enum phase least = phase_at(group, moment, false), most = phase_at(group, moment, true);
	bool there = group->first + group->count <= count;
	enum phase phase = there ? found[group->first].phase : ABSENT;
	char key[24];

	if (!there && group->first < count)
		fail_msg("%s: half a group of changes is there", image);
	if (phase < least || phase > most)
		fail_msg("%s: a change is in phase %d, not %d..%d", image, (int)phase, (int)least,
			(int)most);
	snprintf(key, sizeof key, "key %zu", (size_t)(group - story.groups));
	for (size_t i = group->first; there && i < group->first + group->count; i++)
		if (found[i].id != story.ids[i] || found[i].phase != phase ||
			found[i].deliveries != (phase >= QUEUED) ||
			(phase >= QUEUED && strcmp(found[i].key, key) != 0))
			fail_msg("%s: change %zu is not as its group", image, i);
}

/* What an agent that starts would tell: as news what is not queued, and what is, under its key. */
static void check_restored(struct fixture *fixture, size_t moment, const char *image)
{
	struct store_restore *request = restore(fixture);
	struct store_pending *due = pending(fixture);

	for (size_t i = 0; i < story.group_count; i++) {
		const struct group *group = &story.groups[i];
		enum phase least = phase_at(group, moment, false);
		size_t news = 0, queued = 0;

		for (size_t j = 0; j < due->records.count; j++)
			news += due->records.items[j].item.id >= story.ids[group->first] &&
				due->records.items[j].item.id <
					story.ids[group->first] + (int64_t)group->count;
		for (size_t j = 0; j < request->deliveries.count; j++)
			queued += atoi(request->deliveries.items[j].key + strlen("key ")) == (int)i;
		if (news > 0 && least >= QUEUED)
			fail_msg("%s: what may have been told is news", image);
		if (queued > 0 && least >= SENT)
			fail_msg("%s: what was sent waits to be sent", image);
		if (least == RECORDED && news != group->count && queued != 1)
			fail_msg("%s: a change that was found is told by nobody", image);
		if (least == QUEUED && queued != 1 && phase_at(group, moment, true) == QUEUED)
			fail_msg("%s: a message is lost", image);
	}
	store_call_free(&due->call);
	store_call_free(&request->call);
}

static void check_whole(const struct fixture *fixture, const char *image)
{
	struct arena *arena = arena_new();
	struct store_report report;
	struct error error;

	if (!store_check(fixture->path, arena, &report, &error))
		fail_msg("%s: %s", image, error.text);
	if (report.problems.count > 0)
		fail_msg("%s: %s", image, report.problems.items[0]);
	arena_free(arena);
}

static void check_image(struct fixture *fixture, size_t moment, const char *image)
{
	static struct found found[MOST_CHANGES];
	struct change_record another = example;
	struct error error;
	size_t count;

	fixture->store = open_store(fixture, &error);
	if (!fixture->store)
		fail_msg("%s: %s", image, error.text);
	count = read_found(fixture, found);
	for (size_t i = 0; i < story.group_count; i++)
		check_group(&story.groups[i], found, count, moment, image);
	check_restored(fixture, moment, image);
	another.item.time = START - HOUR;
	record_one(fixture, &another);
	store_close(fixture->store);
	fixture->store = NULL;
	check_whole(fixture, image);
	assert_int_equal(read_found(fixture, found), count + 1);
}

static void remove_files(const char *path)
{
	char command[300];

	snprintf(command, sizeof command, "rm -f %s*", path);
	assert_int_equal(system(command), 0);
}

/* A moment within the story; every other one is just before a sync, when the most is in doubt. */
static size_t choose_moment(uint64_t *random)
{
	size_t moment = 1 + random_below(random, crash_log.count);

	if (random_below(random, 2) == 0)
		while (moment < crash_log.count && crash_log.operations[moment].kind != CRASH_SYNC)
			moment++;
	return moment;
}

static void crash_story(struct fixture *fixture, uint64_t seed, size_t images)
{
	char telling[sizeof fixture->path];
	uint64_t random = seed;

	crash_begin(fixture->path);
	tell_story(fixture, seed);
	crash_end();
	strcpy(telling, fixture->path);
	for (size_t i = 0; i < images; i++) {
		enum crash_way way = (enum crash_way)random_below(&random, CRASH_WAYS);
		size_t moment = choose_moment(&random);
		char image[100];

		snprintf(image, sizeof image, "seed %d, image %zu (operation %zu of %zu, way %d)",
			(int)seed, i, moment, crash_log.count, (int)way);
		snprintf(fixture->path, sizeof fixture->path, "%s/image.db", fixture->folder);
		crash_make(fixture->path, moment, way, &random);
		check_image(fixture, moment, image);
		remove_files(fixture->path);
		strcpy(fixture->path, telling);
	}
	crash_forget();
	remove_files(fixture->path);
}

static void test_power_failures(void **state)
{
	struct fixture *fixture = *state;
	size_t images = getenv("HUNTER_TEST_FULL") ? 100 : 10;

	for (uint64_t seed = 1; seed <= STORIES; seed++)
		crash_story(fixture, seed, images);
}

int main(void)
{
	const struct CMUnitTest tests[] = {CASE(test_power_failures)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
