/* The message and its time are stored in one transaction. */
#include "agent/service/heartbeat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/base/utf8.h"
#include "agent/fleet/fleet.h"
#include "agent/monitor/power.h"
#include "agent/service/remote_tests.h"

enum {
	LOOK_AGAIN = 1000,     /* ms, while waiting for the first runs */
	WAIT_MOST = 600000,    /* ms to wait for them at most */
	LOOK_ANYWAY = 3600000, /* ms, as the wall clock may be set */
	LOOK_AT_LEAD = 30000,  /* ms, in a fleet: until the next check for the leader */
	CHANGES_MOST = 1000,   /* counted at most */
	NAMED = 5,             /* listed by name at most */
	LONGEST = 100,
};
#define DAY INT64_C(86400000)
#define WEEK (7 * DAY)
#define LAST "heartbeat " /* in the store, and the receiver */

struct beat {
	char *receiver;
	int64_t last; /* ms, wall clock */
};

struct heartbeat {
	struct agent *agent;
	struct dispatcher *dispatcher;
	const struct scheduler *scheduler;
	struct beat *beats;
	size_t count;
	int64_t started; /* engine_now */
	bool asking;     /* waiting for the store */
	struct alarm alarm;
};

static void on_alarm(void *context)
{
	heartbeat_look(context);
}

/* Only the leader does this. */
static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	struct heartbeat *heartbeat = context;

	if (!shards->has[FLEET_LEADER])
		return;
	heartbeat->started = engine_now(heartbeat->agent->engine);
	heartbeat_restore(heartbeat, restored);
	heartbeat_look(heartbeat);
}

struct heartbeat *heartbeat_new(
	struct agent *agent, struct dispatcher *dispatcher, const struct scheduler *scheduler)
{
	struct heartbeat *heartbeat = memory_new(1, sizeof *heartbeat);

	*heartbeat = (struct heartbeat){.agent = agent,
		.dispatcher = dispatcher,
		.scheduler = scheduler,
		.started = engine_now(agent->engine),
		.alarm = {.call = on_alarm, .context = heartbeat}};
	fleet_listen(agent, &(struct fleet_listener){.gained = gained, .context = heartbeat});
	return heartbeat;
}

void heartbeat_free(struct heartbeat *heartbeat)
{
	if (!heartbeat)
		return;
	for (size_t i = 0; i < heartbeat->count; i++)
		free(heartbeat->beats[i].receiver);
	free(heartbeat->beats);
	free(heartbeat);
}

static struct beat *beat_of(struct heartbeat *heartbeat, const char *receiver)
{
	for (size_t i = 0; i < heartbeat->count; i++)
		if (strcmp(heartbeat->beats[i].receiver, receiver) == 0)
			return &heartbeat->beats[i];
	heartbeat->beats =
		memory_resize(heartbeat->beats, heartbeat->count + 1, sizeof *heartbeat->beats);
	heartbeat->beats[heartbeat->count] = (struct beat){memory_strdup(receiver), 0};
	return &heartbeat->beats[heartbeat->count++];
}

/* The first receiver that is due, or NULL and the ms until one is. The runs before it measure
 * what the heartbeat reports. */
static const char *find_due(struct heartbeat *heartbeat, int64_t *wait)
{
	const struct config *config = heartbeat->agent->config;
	bool *measures = &heartbeat->agent->measures;
	int64_t now = agent_now(heartbeat->agent);

	*wait = LOOK_ANYWAY;
	*measures = false;
	for (size_t i = 0; i < config->receiver_count; i++) {
		const struct receiver *receiver = &config->receivers[i];
		struct beat *beat;

		if (!receiver->heartbeat)
			continue;
		beat = beat_of(heartbeat, receiver->name);
		if (beat->last > now + DAY) /* the clock was wrong then */
			beat->last = now;
		*measures |= beat->last == 0 || beat->last + WEEK - now <= DAY;
		if (beat->last == 0 || beat->last + WEEK <= now)
			return receiver->name;
		if (beat->last + WEEK - now < *wait)
			*wait = beat->last + WEEK - now;
	}
	return NULL;
}

void heartbeat_restore(struct heartbeat *heartbeat, const struct store_restore *restored)
{
	const size_t skip = strlen(LAST);
	int64_t wait;

	for (size_t i = 0; i < restored->health.moment_count; i++)
		if (strncmp(restored->health.moments[i].name, LAST, skip) == 0)
			beat_of(heartbeat, restored->health.moments[i].name + skip)->last =
				restored->health.moments[i].time;
	(void)find_due(heartbeat, &wait);
}

static bool lists(const struct strings *notify, const char *receiver)
{
	for (size_t i = 0; notify && i < notify->count; i++)
		if (strcmp(notify->items[i], receiver) == 0)
			return true;
	return false;
}

/* Tests or sources without data, of one kind. */
struct lack {
	struct buf names;
	size_t count;
};

struct survey {
	const struct agent *agent;
	const char *receiver;
	const struct health_rows *health; /* with a receiver: for tests that run elsewhere */
	struct dict sources;              /* already counted */
	size_t tests, elsewhere, read, series, points;
	bool all_ran;
	struct lack down, failing, stale;
	double *smallest; /* percent, of the series that were measured */
	size_t measured, measured_tests;
};

static void add_lack(struct lack *lack, const char *name)
{
	if (lack->count++ < NAMED)
		buf_printf(&lack->names, "%s%.*s", lack->count > 1 ? ", " : "",
			(int)utf8_cut(name, LONGEST), name);
}

static void add_measured(struct survey *survey, const struct scheduler_test *state)
{
	if (state->measured == 0)
		return;
	survey->smallest = memory_resize(
		survey->smallest, survey->measured + state->measured, sizeof *survey->smallest);
	memcpy(survey->smallest + survey->measured, state->smallest,
		state->measured * sizeof *survey->smallest);
	survey->measured += state->measured;
	survey->measured_tests++;
}

static void survey_test(void *context, const struct scheduler_test *seen)
{
	struct survey *survey = context;
	const struct test *test = seen->test;
	const char *source = test->server ? test->server->name : test->source->name;
	bool elsewhere = remote_test_is(survey->agent, test);
	struct scheduler_test known;
	const struct scheduler_test *state = &known;

	survey->all_ran &= seen->last_run != 0 || elsewhere;
	if (!survey->receiver || !lists(&test->notify, survey->receiver))
		return;
	known = remote_test_state(survey->agent, seen, survey->health);
	survey->tests++;
	survey->elsewhere += elsewhere;
	survey->read += elsewhere ? state->down_since == 0 && !state->failing
				  : state->last_run != 0 && !state->failing;
	survey->series += state->series;
	survey->points += state->points;
	add_measured(survey, state);
	if (state->down_since != 0 && !dict_get(&survey->sources, source)) {
		*dict_place(&survey->sources, source) = test;
		add_lack(&survey->down, source);
	} else if (state->down_since == 0 && state->failing) {
		add_lack(&survey->failing, test->name);
	}
	if (state->down_since == 0 && !state->failing && state->stale)
		add_lack(&survey->stale, test->name);
}

static bool have_run(const struct heartbeat *heartbeat)
{
	struct survey survey = {.agent = heartbeat->agent, .all_ran = true};

	scheduler_each(heartbeat->scheduler, survey_test, &survey);
	return survey.all_ran ||
	       engine_now(heartbeat->agent->engine) - heartbeat->started >= WAIT_MOST;
}

static void put_lack(struct buf *out, struct lack *lack, const char *one, const char *many)
{
	if (lack->count == 0)
		return;
	buf_printf(
		out, "; %zu %s: %s", lack->count, lack->count == 1 ? one : many, lack->names.data);
	if (lack->count > NAMED)
		buf_printf(out, " and %zu more", lack->count - NAMED);
	buf_free(&lack->names);
}

static int compare(const void *a, const void *b)
{
	const double *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

static void put_percent(struct buf *out, double percent)
{
	buf_printf(out, "%s%.0f%%", isfinite(percent) ? "" : "over ",
		isfinite(percent) ? percent : power_sizes[POWER_SIZES - 1]);
}

/* The smallest step that would be announced. */
static void put_smallest(struct buf *out, struct survey *survey)
{
	const double *sizes = survey->smallest;
	size_t n = survey->measured;

	if (n == 0) {
		if (survey->tests > 0)
			buf_text(out, "; smallest detectable change unknown");
		return;
	}
	qsort(survey->smallest, n, sizeof *survey->smallest, compare);
	buf_text(out, "; smallest detectable change: ");
	put_percent(out, sizes[(n - 1) / 2]);
	if (sizes[n - 1] > sizes[(n - 1) / 2]) {
		buf_text(out, " in half of the series, ");
		put_percent(out, sizes[n - 1]);
		buf_text(out, " in all");
	}
	buf_printf(out, " (measured: %zu series of %zu of %zu tests)", n, survey->measured_tests,
		survey->tests);
	free(survey->smallest);
}

/* Changes of the receiver's tests found in the last week. */
static size_t count_changes(
	const struct heartbeat *heartbeat, const struct store_list *list, const char *receiver)
{
	size_t count = 0;

	for (size_t i = 0; i < list->records.count; i++) {
		const struct change_record *record = &list->records.items[i];

		count +=
			record->first_seen >= list->filter.updated &&
			record->state != CHANGE_CANDIDATE && record->state != CHANGE_WITHDRAWN &&
			lists(config_notify(heartbeat->agent->config, record->item.test), receiver);
	}
	return count;
}

/* True if no source is down, and no test failing or stale. */
static bool describe(const struct heartbeat *heartbeat, const struct store_list *list,
	const char *receiver, struct buf *out)
{
	struct survey survey = {.agent = heartbeat->agent,
		.receiver = receiver,
		.health = &list->health,
		.sources = {.arena = list->call.arena}};
	size_t changes = count_changes(heartbeat, list, receiver);
	bool well;

	scheduler_each(heartbeat->scheduler, survey_test, &survey);
	well = survey.down.count + survey.failing.count + survey.stale.count == 0;
	buf_printf(out, "hunter-c is running: read %zu of %zu tests ", survey.read, survey.tests);
	if (survey.elsewhere > 0)
		buf_printf(out, "by %zu agents", fleet_size(heartbeat->agent));
	else
		buf_printf(out, "(%zu series, %zu points)", survey.series, survey.points);
	buf_printf(out, ", %s%zu %s found in the last 7 days", list->more ? "more than " : "",
		changes, changes == 1 ? "change was" : "changes were");
	put_lack(out, &survey.down, "source is down", "sources are down");
	put_lack(out, &survey.failing, "test fails", "tests fail");
	put_lack(out, &survey.stale, "test has no new data", "tests have no new data");
	if (well)
		buf_text(out, "; all of them have data");
	put_smallest(out, &survey);
	return well;
}

/* False: it could not be rendered; it is retried. */
static bool send_heartbeat(
	struct heartbeat *heartbeat, const struct store_list *list, const struct receiver *receiver)
{
	int64_t now = agent_now(heartbeat->agent);
	struct store_queue *request = store_queue_new(NULL, NULL);
	struct buf text = {0};
	bool well = describe(heartbeat, list, receiver->name, &text);
	struct notice notice = {
		.subject = "hunter-c", .text = text.data, .time = now, .recovered = well};
	const struct message message = {.kind = MESSAGE_HEARTBEAT, .notice = &notice};
	bool told;

	request->health.moments = arena_alloc(request->call.arena, sizeof *request->health.moments);
	*request->health.moments = (struct stored_moment){
		arena_printf(request->call.arena, "%s%s", LAST, receiver->name), now};
	request->health.moment_count = 1;
	told = dispatcher_message(heartbeat->dispatcher, &message, receiver, request);
	if (told)
		beat_of(heartbeat, receiver->name)->last = now;
	buf_free(&text);
	return told;
}

static void arm(struct heartbeat *heartbeat, int64_t wait)
{
	struct agent *agent = heartbeat->agent;

	if (!agent->once && !agent->stopping)
		engine_alarm(agent->engine, &heartbeat->alarm, engine_now(agent->engine) + wait);
}

/* The receiver whose heartbeat is being prepared. */
struct beat_asked {
	struct heartbeat *heartbeat;
	const char *receiver;
};

static void listed(struct store_list *list)
{
	const struct beat_asked *asked = list->call.context;
	struct heartbeat *heartbeat = asked->heartbeat;
	const struct receiver *receiver = agent_receiver(heartbeat->agent, asked->receiver);
	bool well = !list->call.failed;

	heartbeat->asking = false;
	if (well && receiver && receiver->heartbeat)
		well = send_heartbeat(heartbeat, list, receiver);
	store_call_free(&list->call);
	if (well)
		heartbeat_look(heartbeat);
	else
		arm(heartbeat, LOOK_ANYWAY);
}

static void ask(struct heartbeat *heartbeat, const char *receiver)
{
	struct store_list *list = store_list_new(listed, NULL);
	struct beat_asked *asked = arena_alloc(list->call.arena, sizeof *asked);

	*asked = (struct beat_asked){heartbeat, arena_strdup(list->call.arena, receiver)};
	list->call.context = asked;
	list->filter.updated = agent_now(heartbeat->agent) - WEEK;
	list->filter.limit = CHANGES_MOST;
	if (heartbeat->agent->fleet)
		list->about = "";
	heartbeat->asking = true;
	store_client_call(heartbeat->agent, &list->call);
}

void heartbeat_look(struct heartbeat *heartbeat)
{
	const char *due;
	int64_t wait;

	if (heartbeat->asking || heartbeat->agent->stopping)
		return;
	if (!fleet_holds(heartbeat->agent, FLEET_LEADER)) {
		heartbeat->agent->measures = false;
		arm(heartbeat, LOOK_AT_LEAD);
		return;
	}
	due = find_due(heartbeat, &wait);
	if (due && have_run(heartbeat))
		ask(heartbeat, due);
	else
		arm(heartbeat, due ? LOOK_AGAIN : wait);
}
