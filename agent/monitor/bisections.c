/*
 * It polls after events that may matter, and periodically. Each poll reads everything open from the
 * store and acts on that, so no event need be seen.
 */
#include "agent/monitor/bisections.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/fleet/fleet.h"
#include "agent/model/announcement.h"
#include "agent/monitor/bisect_work.h"
#include "agent/runtime/poll.h"
#include "conf/config.h"

enum {
	SOON = 1000,             /* ms after a change was recorded: known_changes may accept it */
	LOOK_AGAIN = 30000,      /* ms, after a failure; and while something is open */
	LOOK_FOR_ANSWERS = 5000, /* ms, in a fleet: labs may answer to another agent */
	LOOK_ANYWAY = 600000,    /* ms, if there are tests with `bisect` */
};
#define DAY INT64_C(86400000)
#define FOUND_WITHIN (7 * DAY) /* older changes are bisected only on request */

struct bisections {
	struct agent *agent;
	struct bisect_work **works, **ended; /* `ended` are to be freed */
	size_t work_count, ended_count;
	size_t waiting;
	struct poll poll;
	struct alarm alarm; /* when a work is due */
	struct fleet_news news;
};

static void look(void *context)
{
	struct bisections *all = context;

	poll_after(&all->poll, 0);
}

static const struct test *test_of(const struct bisections *all, const char *name)
{
	const struct config_ref *ref = all->agent->config_ref;

	for (size_t i = 0; i < ref->test_count; i++)
		if (strcmp(ref->tests[i]->name, name) == 0)
			return ref->tests[i];
	return NULL;
}

static bool has_tests(const struct bisections *all)
{
	const struct config_ref *ref = all->agent->config_ref;

	for (size_t i = 0; i < ref->test_count; i++)
		if (ref->tests[i]->bisect)
			return true;
	return false;
}

static struct bisect_work *work_of(const struct bisections *all, int64_t id)
{
	for (size_t i = 0; i < all->work_count; i++)
		if (all->works[i]->id == id)
			return all->works[i];
	return NULL;
}

/* Events that may matter. */

static bool concerns(const struct bisections *all, const char *test)
{
	const struct test *configured = test_of(all, test);

	for (size_t i = 0; i < all->work_count; i++)
		if (strcmp(all->works[i]->test, test) == 0)
			return true;
	return configured && configured->bisect;
}

static void seen(void *context, const struct store_call *answered)
{
	struct bisections *all = context;
	const struct store_record *record = (const struct store_record *)answered;
	const struct store_triage *triage = (const struct store_triage *)answered;
	const struct store_bisection_say *say = (const struct store_bisection_say *)answered;
	const struct store_bisection_ask *ask = (const struct store_bisection_ask *)answered;

	if (answered->failed)
		return;
	if (answered->work == &store_record_work &&
		record->records.count + record->update_count > 0 && concerns(all, record->test))
		poll_after(&all->poll, SOON);
	else if (answered->work == &store_triage_work && triage->changed > 0 && !triage->dry_run &&
		 (all->work_count + all->waiting > 0 || has_tests(all)))
		poll_after(&all->poll, 0);
	else if ((answered->work == &store_bisection_say_work && say->taken) ||
		 (answered->work == &store_bisection_ask_work && ask->added))
		poll_after(&all->poll, 0);
}

static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	(void)shards, (void)restored;
	look(context);
}

static void lost(void *context, const struct fleet_shards *shards)
{
	struct bisections *all = context;

	for (size_t i = all->work_count; i > 0; i--)
		if (shards->has[all->works[i - 1]->shard])
			bisect_work_drop(all->works[i - 1]);
}

/* Triage or changes were updated, perhaps those of this agent's tests. */
static void news(void *context, const struct fleet_news *latest)
{
	struct bisections *all = context;
	bool more =
		latest->last_audit != all->news.last_audit || latest->due_set != all->news.due_set;

	all->news = *latest;
	if (more && (all->work_count + all->waiting > 0 || has_tests(all)))
		poll_after(&all->poll, SOON);
}

/* Works. */

static void free_ended(struct bisections *all)
{
	while (all->ended_count > 0)
		bisect_work_free(all->ended[--all->ended_count]);
}

void bisections_work_due(struct bisections *all)
{
	for (size_t i = 0; i < all->work_count; i++) {
		int64_t due = bisect_work_due(all->works[i]);

		if (due != WHEN_NEVER && !all->agent->stopping)
			engine_alarm_aside(all->agent->engine, &all->alarm, due);
	}
}

/* It is freed later: the caller may still use it. */
void bisections_work_ended(struct bisections *all, struct bisect_work *work)
{
	bool told = work->told;
	size_t at = 0;

	while (at < all->work_count && all->works[at] != work)
		at++;
	if (at == all->work_count)
		return;
	all->works[at] = all->works[--all->work_count];
	all->ended = memory_resize(all->ended, all->ended_count + 1, sizeof *all->ended);
	all->ended[all->ended_count++] = work;
	if (told && !all->agent->stopping)
		agent_hint(all->agent, HINT_TRIAGE);
	poll_after(&all->poll, told ? 0 : SOON);
}

static void take_up(struct bisections *all, const struct bisection_row *row)
{
	const struct test *test = test_of(all, row->test);

	all->works = memory_resize(all->works, all->work_count + 1, sizeof *all->works);
	all->works[all->work_count++] =
		bisect_work_new(all->agent, row, test, fleet_shard_of_test(test->name), all);
}

/* A look. */

/* Why a bisection is of no use any more, or NULL. */
static const char *needless(
	const struct bisections *all, const struct bisection_row *row, struct arena *arena)
{
	const struct test *test = test_of(all, row->test);

	if (row->cancelled)
		return row->cancelled;
	if (row->change_state == CHANGE_WITHDRAWN)
		return "the change was withdrawn";
	if (row->change_state == CHANGE_RECOVERED)
		return "the change has recovered";
	if (row->triage >= TRIAGE_EXPECTED)
		return arena_printf(
			arena, "the change was triaged as %s", triage_state_names[row->triage]);
	return test && test->bisect ? NULL : "`bisect` was removed from the test";
}

static void begun(struct store_bisection_begin *begin)
{
	struct bisections *all = begin->call.context;

	if (!begin->call.failed && begin->begun && !all->agent->stopping && begin->rows.count > 0) {
		const struct bisection_row *row = &begin->rows.items[0];
		const struct test *test = test_of(all, row->test);

		log_event(LEVEL_INFO, "bisection started", LOG_INT("id", row->id),
			LOG_INT("change", row->change), LOG_TEXT("test", row->test),
			LOG_TEXT("metric", row->metric), LOG_TEXT("lab", row->lab));
		if (test && test->bisect && !work_of(all, row->id))
			take_up(all, row);
	}
	store_call_free(&begin->call);
}

/* A call about a test of that shard. */
static void submit(struct bisections *all, struct store_call *call, int shard)
{
	fleet_fence(all->agent, call, shard);
	store_client_call(all->agent, call);
}

static void see_row(struct bisections *all, const struct bisection_row *row, struct arena *arena)
{
	const struct test *test = test_of(all, row->test);
	const char *why = needless(all, row, arena);
	struct bisect_work *work = work_of(all, row->id);
	/* Only the name is known of a test that is no longer configured. */
	int shard = test ? fleet_shard_of_test(test->name) : FLEET_LEADER;
	int64_t now = agent_now(all->agent);

	if (!fleet_holds(all->agent, shard))
		return;
	all->waiting += row->state == BISECTION_WAITING;
	if (row->state == BISECTION_WAITING && why) {
		struct store_bisection_say *say = store_bisection_say_new(NULL, NULL);

		say->bisection = row->id;
		say->now = now;
		say->cancel = true;
		say->actor = (struct actor){"hunter-c", "agent"};
		say->why = arena_strdup(say->call.arena, why);
		submit(all, &say->call, shard);
	} else if (row->state == BISECTION_WAITING) {
		struct store_bisection_begin *begin = store_bisection_begin_new(begun, all);

		begin->bisection = row->id;
		begin->now = now;
		begin->since = now - DAY;
		begin->most = test->bisect->max_per_day;
		submit(all, &begin->call, shard);
	} else if (work && why) {
		bisect_work_cancel(work, why);
	} else if (work) {
		bisect_work_answers(work, &row->lines);
	} else if (why) { /* no agent can resume it */
		struct store_bisection_write *write = store_bisection_write_new(NULL, NULL);

		write->bisection = row->id;
		write->now = now;
		write->end = "cancelled";
		write->cancelled = arena_strdup(write->call.arena, why);
		submit(all, &write->call, shard);
		metrics_add(all->agent->metrics, METRIC_BISECTIONS_ENDED, 1, "cancelled");
	} else {
		take_up(all, row);
	}
}

static void ask_for(struct bisections *all, const struct change_record *record)
{
	const struct test *test = test_of(all, record->item.test);
	struct store_bisection_ask *ask;
	const char *good, *bad;

	announcement_range(&record->item, &good, &bad);
	if (!test || !test->bisect || !good || !bad ||
		!fleet_holds(all->agent, fleet_shard_of_test(test->name)))
		return;
	ask = store_bisection_ask_new(NULL, NULL);
	ask->change = record->item.id;
	ask->now = agent_now(all->agent);
	ask->lab = arena_strdup(ask->call.arena, test->bisect->lab);
	submit(all, &ask->call, fleet_shard_of_test(test->name));
}

/* How long until the next look, if nothing happens. */
static int64_t rest_of(const struct bisections *all)
{
	for (size_t i = 0; i < all->work_count; i++)
		if (fleet_is_shared(all->agent) && all->works[i]->settings->webhook)
			return LOOK_FOR_ANSWERS;
	if (all->work_count + all->waiting > 0)
		return LOOK_AGAIN;
	return has_tests(all) ? LOOK_ANYWAY : WHEN_NEVER;
}

static void listed(struct store_bisections *list)
{
	struct bisections *all = list->call.context;
	int64_t rest;

	if (!list->call.failed && !all->agent->stopping) {
		all->waiting = 0;
		for (size_t i = list->rows.count; i > 0; i--)
			see_row(all, &list->rows.items[i - 1], list->call.arena);
		for (size_t i = 0; i < list->due.count; i++)
			ask_for(all, &list->due.items[i]);
	}
	rest = list->call.failed ? LOOK_AGAIN : rest_of(all);
	store_call_free(&list->call);
	poll_answered(&all->poll, rest);
}

static void ask(void *context)
{
	struct bisections *all = context;
	const struct config_ref *ref = all->agent->config_ref;
	struct store_bisections *list;
	const char **names;

	free_ended(all);
	list = store_bisections_new(listed, all);
	list->states = 1u << BISECTION_WAITING | 1u << BISECTION_RUNNING;
	list->answers = true;
	names = arena_array(list->call.arena, ref->test_count, sizeof *names);
	list->due_tests.items = names;
	for (size_t i = 0; i < ref->test_count; i++)
		if (ref->tests[i]->bisect &&
			fleet_holds(all->agent, fleet_shard_of_test(ref->tests[i]->name)))
			names[list->due_tests.count++] =
				arena_strdup(list->call.arena, ref->tests[i]->name);
	list->due_since = agent_now(all->agent) - FOUND_WITHIN;
	store_client_call(all->agent, &list->call);
}

static void tick(void *context)
{
	struct bisections *all = context;

	if (all->agent->stopping)
		return;
	free_ended(all);
	for (size_t i = all->work_count; i > 0; i--)
		bisect_work_tick(all->works[i - 1]);
	bisections_work_due(all);
}

static void collect(void *context)
{
	const struct bisections *all = context;

	metrics_set(all->agent->metrics, METRIC_BISECTIONS, (double)all->work_count, "running");
	metrics_set(all->agent->metrics, METRIC_BISECTIONS, (double)all->waiting, "waiting");
}

struct bisections *bisections_new(struct agent *agent)
{
	struct bisections *all = memory_new(1, sizeof *all);

	*all = (struct bisections){.agent = agent,
		.poll = {.agent = agent, .ask = ask, .context = all, .aside = true},
		.alarm = {.call = tick, .context = all}};
	agent->seen = seen;
	agent->seer = all;
	agent_listen(agent, HINT_LOOK, look, all);
	agent_listen(agent, HINT_METRICS, collect, all);
	fleet_listen(agent, &(struct fleet_listener){
				    .gained = gained, .lost = lost, .news = news, .context = all});
	return all;
}

void bisections_free(struct bisections *all)
{
	if (!all)
		return;
	free_ended(all);
	for (size_t i = 0; i < all->work_count; i++)
		bisect_work_free(all->works[i]);
	free(all->works);
	free(all->ended);
	free(all);
}
