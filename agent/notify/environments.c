/*
 * Runs on the loop's thread. The rule is evaluated only while a change of a test with an
 * environment is pending.
 */
#include "agent/notify/environments.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/decide/group.h"
#include "agent/io/timers.h"

/* ms: how long a change waits for runs of other tests, and for their confirmation; for how long an
 * event can be followed; the interval of evaluation. */
#define RUNS_MOST INT64_C(3600000)
#define CONFIRM_WAIT_MAX INT64_C(86400000)
#define FOLLOWED_WITHIN INT64_C(604800000)
enum { CONFIRM_WAIT_POINTS = 2, LOOK_LEAST = 1000 };
enum {
	GROWN_PERCENT = 125,
	GROWN_MORE = 3
}; /* since an event was announced, for it to be announced again */

/* Beside each event of the round. */
struct known_event {
	struct environment_moment moment;
	bool dirty;               /* other than the store has it */
	struct strings followers; /* environments that followed in this round, by name */
};

/* Which environment a record of this round belongs to. */
struct place {
	struct environment_moment moment; /* environment 0: none */
	uint64_t key;
};

/* The decision about one environment's changes near one time, in this round. */
struct ruling {
	struct environment_moment moment;
	struct decision decision;
	int64_t event; /* id, 0: none */
	bool late;     /* announced in an earlier round */
};

struct environments {
	struct agent *agent;
	struct alarm alarm;
	bool holds; /* a change, as of the last round */
	/* Of the round, in its arena: */
	struct arena *arena;
	struct seen_rows seen;                 /* the last runs of monitored tests, ... */
	const struct environment_view **views; /* ... what they saw, if it has records, ... */
	bool unseen;                           /* ... and some test has not run yet */
	struct environment_index *index;       /* of all views */
	struct environment_rows events;        /* those stored, then new ones */
	struct known_event *known;
	struct place *places; /* of its records */
	size_t record_count;
	struct ruling *rulings;
	size_t ruling_count;
};

static void look_again(void *context)
{
	const struct environments *environments = context;

	agent_hint(environments->agent, HINT_CHANGES);
}

/* What a run saw may decide about a change that is held. */
static void seen(void *context)
{
	const struct environments *environments = context;

	if (environments->holds)
		agent_hint(environments->agent, HINT_CHANGES);
}

struct environments *environments_new(struct agent *agent)
{
	struct environments *environments = memory_new(1, sizeof *environments);

	*environments = (struct environments){
		.agent = agent, .alarm = {.call = look_again, .context = environments}};
	agent_listen(agent, HINT_SEEN, seen, environments);
	return environments;
}

void environments_free(struct environments *environments)
{
	free(environments);
}

/* The event that lies in the place after the others becomes one of them. */
static struct known_event *add_event(struct environments *environments)
{
	size_t at = environments->events.count++;
	const struct environment_event *event = &environments->events.items[at];

	environments->known[at] =
		(struct known_event){.moment = {environment_hash(event->label, event->value),
					     event->time, event->spacing}};
	return &environments->known[at];
}

void environments_read(struct environments *environments, const struct store_pending *pending)
{
	size_t most = pending->environments.count + pending->records.count;
	struct arena *arena = pending->call.arena;

	environments->arena = arena;
	environments->seen = pending->seen;
	environments->known = arena_array(arena, most, sizeof *environments->known);
	environments->events = (struct environment_rows){
		arena_array(arena, most, sizeof *environments->events.items), 0};
	for (size_t i = 0; i < pending->environments.count; i++) {
		environments->events.items[i] = pending->environments.items[i];
		(void)add_event(environments);
	}
}

struct environment_rows environments_events(const struct environments *environments)
{
	return environments->events;
}

const struct environment_event *environments_find(const struct environment_rows *rows, int64_t id)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->items[i].id == id)
			return &rows->items[i];
	return NULL;
}

static int compare_runs(const void *a, const void *b)
{
	return strcmp(((const struct seen_run *)a)->test, ((const struct seen_run *)b)->test);
}

/* The test's last run; NULL: it has not run yet, or had another environment. */
static const struct seen_run *run_of(
	const struct environments *environments, const struct test *test)
{
	const struct seen_rows *seen = &environments->seen;
	const struct seen_run key = {.test = test->name};
	const struct seen_run *run =
		seen->count > 0 ? bsearch(&key, seen->items, seen->count, sizeof key, compare_runs)
				: NULL;

	return run && strcmp(run->label, test->environment) == 0 ? run : NULL;
}

/* Keeps the runs of monitored tests. */
static void make_index(struct environments *environments)
{
	const struct config_ref *config_ref = environments->agent->config_ref;
	struct arena *arena = environments->arena;
	struct seen_rows kept = {arena_array(arena, config_ref->test_count, sizeof *kept.items), 0};

	environments->views =
		arena_array(arena, config_ref->test_count, sizeof *environments->views);
	environments->unseen = false;
	for (size_t i = 0; i < config_ref->test_count; i++) {
		const struct test *test = config_ref->tests[i];
		const struct seen_run *run;

		if (!test->environment || test->unsupported)
			continue;
		run = run_of(environments, test);
		environments->unseen |= !run;
		if (!run)
			continue;
		environments->views[kept.count] = environment_view_read(arena, run->text);
		kept.items[kept.count++] = *run;
	}
	environments->seen = kept;
	environments->index = environment_index_new(arena, environments->views, kept.count);
}

static const char *label_of(
	const struct environments *environments, const struct change_record *record)
{
	const struct test *test = config_test(environments->agent->config, record->item.test);

	return test && record->item.environment && record->item.members == 0 ? test->environment
									     : NULL;
}

static struct place place_of(
	const struct environments *environments, const struct change_record *record)
{
	const char *label = label_of(environments, record);
	const char *value = record->item.environment;

	if (!label)
		return (struct place){0};
	return (struct place){
		{environment_hash(label, value), record->item.time, record->item.spacing},
		environment_key(record->item.test, record->series, label, value)};
}

static void begin_round(void *context, struct change_record *const *records, size_t count)
{
	struct environments *environments = context;
	bool any = false;

	environments->holds = false;
	environments->record_count = count;
	environments->ruling_count = 0;
	environments->places =
		arena_array(environments->arena, count, sizeof *environments->places);
	environments->rulings =
		arena_array(environments->arena, count, sizeof *environments->rulings);
	for (size_t i = 0; i < count; i++) {
		environments->places[i] = place_of(environments, records[i]);
		any |= environments->places[i].moment.environment != 0;
	}
	if (any)
		make_index(environments);
}

static bool is_near(const struct environment_moment *a, const struct environment_moment *b)
{
	return a->environment == b->environment &&
	       change_near(a->time, a->spacing, b->time, b->spacing);
}

/* The event that the moment belongs to. */
static struct environment_event *event_near(
	const struct environments *environments, const struct environment_moment *moment)
{
	for (size_t i = environments->events.count; i > 0; i--)
		if (is_near(&environments->known[i - 1].moment, moment))
			return &environments->events.items[i - 1];
	return NULL;
}

static void add_follower(struct arena *arena, struct strings *followers, const char *name)
{
	const char **names;
	size_t at = 0;

	while (at < followers->count && strcmp(followers->items[at], name) < 0)
		at++;
	if (at < followers->count && strcmp(followers->items[at], name) == 0)
		return;
	names = arena_grow(
		arena, (const char **)(uintptr_t)followers->items, followers->count, sizeof *names);
	memmove(names + at + 1, names + at, (followers->count++ - at) * sizeof *names);
	names[at] = name;
	followers->items = names;
}

/* Whether another environment changed in the same way before, so that neither was alone. */
static bool follows(struct environments *environments, const struct change_record *record,
	const struct environment_moment *moment)
{
	const char *label = label_of(environments, record);
	bool any = false;

	for (size_t i = 0; i < environments->events.count; i++) {
		struct environment_event *event = &environments->events.items[i];
		struct known_event *known = &environments->known[i];
		const struct environment_moment first = known->moment;

		if (strcmp(event->label, label) != 0 || first.environment == moment->environment ||
			moment->time - first.time > FOLLOWED_WITHIN ||
			(moment->time < first.time && !change_near(first.time, first.spacing,
							      moment->time, moment->spacing)) ||
			!environment_follows(environments->index, &first, moment) ||
			environment_is_over(environments->index, &first, moment->time))
			continue;
		any = true;
		if (event->followed && known->followers.count == 0)
			continue; /* as its thread says */
		event->followed = known->dirty = true;
		add_follower(environments->arena, &known->followers, record->item.environment);
	}
	return any;
}

/* Whether tests that could add evidence have not run since; `count`: their series in this
 * environment. */
static bool awaits(const struct environments *environments, int64_t since,
	const struct environment_moment *moment, size_t *count)
{
	bool any = environments->unseen;

	*count = any ? ENVIRONMENT_LEAST : 0;
	for (size_t i = 0; i < environments->seen.count; i++) {
		const struct environment_view *view = environments->views[i];

		for (size_t j = 0; environments->seen.items[i].ended < since && j < view->count;
			j++) {
			bool inside = view->series[j].environment == moment->environment;

			*count += inside;
			any = any || inside || /* it has the same test */
			      environment_has(environments->index, view->series[j].key,
				      moment->environment);
		}
	}
	return any;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Confirmation sets `updated`. `first_seen` bounds the wait of a change that keeps moving. */
static int64_t confirmation_time_left(
	const struct environments *environments, const struct change_record *record)
{
	int64_t most = record->item.spacing < CONFIRM_WAIT_MAX
			       ? CONFIRM_WAIT_POINTS * record->item.spacing
			       : CONFIRM_WAIT_MAX;
	int64_t since = record->updated > record->first_seen ? record->updated : record->first_seen;

	most = least(most, CONFIRM_WAIT_MAX);
	since = least(since, record->first_seen + CHANGE_TOLERANCE * most);
	return since + most - agent_now(environments->agent);
}

/* Whether the moment is the recovery of an announced event of its environment; with a record:
 * whether that change is part of one. */
static bool is_recovery(const struct environments *environments,
	const struct environment_moment *moment, const struct change_record *record, uint64_t key)
{
	const struct environment_index *index = environments->index;
	int64_t tolerance = CHANGE_TOLERANCE * moment->spacing;

	for (size_t i = 0; i < environments->events.count; i++) {
		const struct environment_moment *first = &environments->known[i].moment;

		if (first->environment != moment->environment || first->time >= moment->time)
			continue;
		if (record ? environment_ends(index, key, first, moment, record->sign)
			   : !environment_is_over(index, first, moment->time - tolerance) &&
					environment_is_over(index, first, moment->time + tolerance))
			return true;
	}
	return false;
}

/* How many records of the round would be part of the event. */
static size_t count_ready(
	const struct environments *environments, const struct environment_moment *moment)
{
	size_t count = 0;

	for (size_t i = 0; i < environments->record_count; i++) {
		const struct place *place = &environments->places[i];

		if (place->moment.environment == moment->environment &&
			is_near(&place->moment, moment) &&
			!environment_is_everywhere(environments->index, place->key,
				moment->environment, moment->time, moment->spacing))
			count++;
	}
	return count;
}

static void begin_event(struct environments *environments, const struct change_record *record,
	const struct environment_tally *tally, struct ruling *ruling)
{
	struct environment_event *event = &environments->events.items[environments->events.count];

	*event = (struct environment_event){.id = record->item.id,
		.label = arena_strdup(environments->arena, label_of(environments, record)),
		.value = record->item.environment,
		.time = tally->time,
		.spacing = record->item.spacing,
		.told = tally->hit,
		.created = agent_now(environments->agent)};

	environment_set(event, tally);
	add_event(environments)->dirty = true;
	log_event(LEVEL_INFO, ruling->decision.reason, LOG_TEXT("label", event->label),
		LOG_TEXT("value", event->value), LOG_INT("changed", event->hit),
		LOG_INT("series", event->total));
	ruling->event = event->id;
	ruling->moment.time = event->time;
}

/* New changes that belong to an announced event go into its thread, with a new message if it has
 * grown a lot: then true. */
static bool follow_event(struct environments *environments, struct environment_event *event,
	const struct environment_tally *tally, struct ruling *ruling)
{
	ruling->event = event->id;
	ruling->late = true;
	if (tally->hit <= event->hit)
		return false;
	environment_set(event, tally);
	environments->known[event - environments->events.items].dirty = true;
	if (100 * tally->hit < GROWN_PERCENT * event->told || tally->hit < event->told + GROWN_MORE)
		return false;
	event->told = tally->hit;
	return true;
}

static void decide(struct environments *environments, const struct change_record *record,
	struct ruling *ruling)
{
	const struct environment_moment *moment = &ruling->moment;
	struct environment_event *known = event_near(environments, moment);
	const struct agent *agent = environments->agent;
	int64_t now = engine_now(agent->engine), interval, since, left;
	struct environment_case at = {.tally = environment_count(environments->index,
					      moment->environment, moment->time, moment->spacing)};

	at.is_event = known != NULL;
	at.has_grown = known && follow_event(environments, known, &at.tally, ruling);
	at.follows = !known && follows(environments, record, moment);
	if (!known && !at.follows) {
		interval = config_interval(agent->config, record->item.test);
		at.runs = agent->once ? 0 : record->handed + least(interval, RUNS_MOST) - now;
		/* A restart, after which it is handed over again, adds no evidence. */
		since = least(record->updated, agent_now(agent) - (now - record->handed));
		at.awaits = at.runs > 0 && awaits(environments, since, moment, &at.more);
		/* A single pass need not have run the test. */
		at.unknown = agent->once && at.tally.total == 0;
		at.confirmation = confirmation_time_left(environments, record);
		if (environment_stands_out(&at.tally)) {
			at.ready = count_ready(environments, moment);
			at.is_end = is_recovery(environments, moment, NULL, 0);
		}
	}
	ruling->decision = environment_decide(&at);
	if (ruling->decision.verdict == HOLD) {
		left = ruling->decision.until < LOOK_LEAST ? LOOK_LEAST : ruling->decision.until;
		environments->holds = true;
		if (!agent->once) /* the next round takes it up */
			engine_alarm(agent->engine, &environments->alarm, now + left);
	} else if (ruling->decision.reason == environment_one_event) {
		begin_event(environments, record, &at.tally, ruling);
	}
}

static struct ruling *ruling_of(struct environments *environments,
	const struct change_record *record, const struct environment_moment *moment)
{
	struct ruling *ruling;

	for (size_t i = 0; i < environments->ruling_count; i++)
		if (is_near(&environments->rulings[i].moment, moment))
			return &environments->rulings[i];
	ruling = &environments->rulings[environments->ruling_count++];
	*ruling = (struct ruling){.moment = *moment};
	decide(environments, record, ruling);
	return ruling;
}

static struct decision judge(void *context, struct change_record *record)
{
	struct environments *environments = context;
	struct place place = place_of(environments, record);
	const struct ruling *ruling;
	const struct decision pass = {0};

	if (record->environment_event != 0 || place.moment.environment == 0)
		return pass;
	if (environment_is_everywhere(environments->index, place.key, place.moment.environment,
		    place.moment.time, place.moment.spacing))
		return pass;
	if (is_recovery(environments, &place.moment, record, place.key))
		return (struct decision){DROP, "part of the recovery of its environment", 0};
	ruling = ruling_of(environments, record, &place.moment);
	if (ruling->decision.verdict == HOLD)
		return ruling->decision;
	if (ruling->late &&
		environment_returns(environments->index, place.key, &place.moment, record->sign))
		return pass;
	record->environment_event = ruling->event;
	return ruling->decision;
}

struct filter environments_filter(struct environments *environments)
{
	return (struct filter){.name = "environment",
		.begin = begin_round,
		.judge = judge,
		.context = environments};
}

void environments_write(const struct environments *environments, struct store_queue *request)
{
	const struct environment_rows *events = &environments->events;

	request->environments.items =
		arena_array(request->call.arena, events->count, sizeof *events->items);
	for (size_t i = 0; i < events->count; i++)
		if (environments->known[i].dirty)
			request->environments.items[request->environments.count++] =
				events->items[i];
}

const struct environment_event *environments_followed(
	const struct environments *environments, size_t *at, const char **value)
{
	while (*at < environments->events.count) {
		const struct strings *followers = &environments->known[*at].followers;
		struct buf names = {0};

		for (size_t i = 0; i < followers->count; i++)
			buf_printf(&names, "%s%s", i > 0 ? ", " : "", followers->items[i]);
		(*at)++;
		if (followers->count == 0)
			continue;
		*value = buf_keep(&names, environments->arena);
		return &environments->events.items[*at - 1];
	}
	return NULL;
}
