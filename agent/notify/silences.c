/*
 * The verdict on a pending change is kept by its id until the change is updated. Until then only
 * silences that were added or have begun since are matched, and all of them only when the one that
 * covered the change is over.
 *
 * Whether an expired silence held a change is not stored: it held those that it selects and that
 * were recorded before its end. So a restart loses nothing, and announces nothing twice, as the
 * message settles the changes.
 */
#include "agent/notify/silences.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/dict.h"
#include "agent/base/when.h"
#include "agent/decide/route.h"
#include "agent/fleet/fleet.h"
#include "conf/mute.h"

#define HOUR INT64_C(3600000)
enum {
	REMIND_PART = 4,
	EFFORT_MOST =
		4000000,   /* steps of a silence's expressions in an hour: a tenth of a second */
	WARNINGS_MOST = 3, /* about them, in an hour */
};

struct kept {
	struct arena *arena; /* owns the texts */
	struct silence silence;
	struct matchers matchers; /* see compile */
	bool begun, fresh;        /* as of the last check; was not at the last round's */
	bool summing;             /* had expired when the round began */
	size_t effort, warnings;  /* of its expressions, ... */
	int64_t effort_since;     /* ... ms: since then */
};

/* Whether the mute times of some tests hold, as of the last check. */
struct mute_state {
	const struct mutes *mutes;
	bool muted;
	int64_t from, until; /* ms: `muted` is right from .. until */
};

/* The verdict on a pending change. */
struct judged {
	int64_t id, updated;
	uint64_t generation;     /* of the silences that were matched */
	int64_t covered_by;      /* id; 0: none */
	struct mute_state *mute; /* of its test, in `tests`; NULL: none */
	bool muted;              /* as of the last check, ... */
	int64_t mute_until;      /* ... ms: until then */
	bool first;              /* checked for the first time */
	bool was_muted;          /* muted at one of the checks */
};

struct silences {
	struct agent *agent;
	struct notices *notices;
	void (*look)(void *context);
	void *context;
	struct kept **items; /* by id */
	size_t count;
	uint64_t generation;     /* of the configuration; another one invalidates all verdicts */
	uint64_t version;        /* counts silences noted, too */
	struct arena *tests;     /* of the mutes */
	struct dict mutes;       /* names of mute times -> struct mute_state */
	struct judged *verdicts; /* by id: on the records of the last round */
	size_t verdict_count, at;
	struct arena *texts; /* of the round's summaries */
	struct alarm alarm;
	int64_t now;            /* agent_now, of the round */
	int64_t mute_end;       /* ms: the first end of one that holds a change; WHEN_NEVER */
	size_t held, summing;   /* records; silences that are over */
	int64_t oldest;         /* ms: the oldest held regression; WHEN_NEVER */
	const char **summaries; /* in `texts` */
	size_t summary_count;
};

static bool is_live(const struct kept *kept, int64_t now)
{
	return silence_holds(&kept->silence, now);
}

static bool is_over(const struct kept *kept, int64_t now)
{
	return now >= silence_end(&kept->silence);
}

static void kept_free(struct kept *kept)
{
	matchers_free(&kept->matchers);
	arena_free(kept->arena);
}

/* NULL, after a warning, if the matchers cannot be parsed: a later version wrote the state. */
static struct kept *kept_new(const struct silence *silence)
{
	struct arena *arena = arena_new();
	struct kept *kept = arena_alloc(arena, sizeof *kept);
	struct error error;

	*kept = (struct kept){.arena = arena, .silence = *silence};
	kept->silence.matchers = arena_strdup(arena, silence->matchers);
	kept->silence.owner = arena_strdup(arena, silence->owner);
	kept->silence.reason = arena_strdup(arena, silence->reason);
	kept->silence.person = arena_strdup(arena, silence->person);
	kept->silence.ended_by = arena_strdup(arena, silence->ended_by);
	if (silence_compile(silence->matchers, arena, &kept->matchers, &error))
		return kept;
	log_event(LEVEL_ERROR, "silence ignored", LOG_INT("id", silence->id),
		LOG_TEXT("problem", error.text));
	arena_free(arena);
	return NULL;
}

/* The place of the silence with that id, or where it would be. */
static size_t place_of(const struct silences *silences, int64_t id)
{
	size_t low = 0, high = silences->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (silences->items[middle]->silence.id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct kept *find(const struct silences *silences, int64_t id)
{
	size_t at = place_of(silences, id);

	return at < silences->count && silences->items[at]->silence.id == id ? silences->items[at]
									     : NULL;
}

static void drop(struct silences *silences, size_t at)
{
	kept_free(silences->items[at]);
	silences->count--;
	memmove(silences->items + at, silences->items + at + 1,
		(silences->count - at) * sizeof *silences->items);
}

/* Adds it, or replaces the one of its id. */
static void put(struct silences *silences, const struct silence *silence)
{
	struct kept *kept = silence->summed ? NULL : kept_new(silence);
	size_t at = place_of(silences, silence->id);
	bool known = at < silences->count && silences->items[at]->silence.id == silence->id;

	silences->version++;
	if (known)
		drop(silences, at);
	if (!kept)
		return;
	silences->items =
		memory_resize(silences->items, silences->count + 1, sizeof(*silences->items));
	memmove(silences->items + at + 1, silences->items + at,
		(silences->count - at) * sizeof *silences->items);
	silences->items[at] = kept;
	silences->count++;
}

/* Limits the cost of its expressions per hour; earlier verdicts stay. */
static bool selects(struct kept *kept, struct silence_asked *asked)
{
	struct matcher_effort effort = {0};
	bool within = kept->effort < EFFORT_MOST;
	bool found = within && silence_matches(&kept->matchers, asked, &effort);

	kept->effort += effort.steps;
	if (effort.exceeded && kept->warnings++ < WARNINGS_MOST)
		log_event(LEVEL_WARN, "silence expression too slow: treated as not matching",
			LOG_INT("id", kept->silence.id),
			LOG_TEXT("expression", effort.exceeded->value));
	if (within && kept->effort >= EFFORT_MOST)
		log_event(LEVEL_WARN, "silence expressions too slow: silence suspended for an hour",
			LOG_INT("id", kept->silence.id),
			LOG_TEXT("matchers", kept->silence.matchers));
	return found;
}

/* The silence that covers the record, of all or of those that are fresh; 0: none. */
static int64_t cover_of(struct silences *silences, const struct change_record *record, bool all)
{
	struct silence_target subject = silence_target_of(record);
	struct silence_asked asked = {.subject = &subject,
		.groups = config_groups(silences->agent->config, subject.test)};
	int64_t found = 0;

	for (size_t i = 0; i < silences->count && found == 0; i++) {
		struct kept *kept = silences->items[i];

		if ((all || kept->fresh) && is_live(kept, silences->now) && selects(kept, &asked))
			found = kept->silence.id;
	}
	silence_asked_free(&asked);
	return found;
}

/* One for all tests with the same mute times; NULL: the test has none. */
static struct mute_state *mute_state_of(struct silences *silences, const char *test)
{
	const struct mutes *mutes = test ? config_mutes(silences->agent->config, test) : NULL;
	struct mute_state *state;
	struct buf names = {0};

	if (!mutes || mutes->count == 0)
		return NULL;
	for (size_t i = 0; i < mutes->count; i++)
		buf_printf(&names, "%s\n", mute_name(mutes->items[i]));
	state = (struct mute_state *)(uintptr_t)dict_get(&silences->mutes, names.data);
	if (!state) {
		state = arena_alloc(silences->tests, sizeof *state);
		*state = (struct mute_state){.mutes = mutes};
		*dict_place(&silences->mutes, arena_strdup(silences->tests, names.data)) = state;
	}
	buf_free(&names);
	return state;
}

static bool is_muted(struct mute_state *state, int64_t now)
{
	if (state && (now < state->from || now >= state->until)) {
		state->from = now;
		state->muted = mute_find(state->mutes, now, &state->until) != NULL;
	}
	return state && state->muted;
}

static void judge_record(struct silences *silences, const struct change_record *record, bool fresh,
	struct judged *verdict)
{
	const struct kept *cover = find(silences, verdict->covered_by);
	bool all = verdict->generation != silences->generation ||
		   verdict->updated != record->updated ||
		   (verdict->covered_by != 0 && !(cover && is_live(cover, silences->now)));

	verdict->first = verdict->generation == 0;
	if (all)
		verdict->mute = mute_state_of(silences, record->item.test);
	if (all || (fresh && verdict->covered_by == 0))
		verdict->covered_by = cover_of(silences, record, all);
	verdict->muted = is_muted(verdict->mute, silences->now);
	verdict->mute_until = verdict->mute ? verdict->mute->until : 0;
	verdict->was_muted |= verdict->muted;
	verdict->generation = silences->generation;
	verdict->updated = record->updated;
}

/* New verdicts on the records, which are sorted by id, based on earlier ones. */
static void judge_all(struct silences *silences, struct change_record *const *records, size_t count)
{
	struct judged *old = silences->verdicts;
	struct judged *verdicts = memory_new(count, sizeof *verdicts);
	size_t at = 0;
	bool fresh = false;

	for (size_t i = 0; i < silences->count; i++)
		fresh |= silences->items[i]->fresh;
	for (size_t i = 0; i < count; i++) {
		int64_t id = records[i]->item.id;

		while (at < silences->verdict_count && old[at].id < id)
			at++;
		verdicts[i] = at < silences->verdict_count && old[at].id == id
				      ? old[at]
				      : (struct judged){.id = id, .updated = INT64_MIN};
		judge_record(silences, records[i], fresh, &verdicts[i]);
	}
	for (size_t i = 0; i < silences->count; i++)
		silences->items[i]->fresh = false;
	free(old);
	silences->verdicts = verdicts;
	silences->verdict_count = count;
	silences->at = 0;
}

static void put_summary(const struct kept *kept, struct buf *out)
{
	const struct silence *silence = &kept->silence;
	bool early = silence->ended != 0;

	buf_printf(out, "silence %lld", (long long)silence->id);
	if (silence->owner || silence->person)
		buf_printf(out, " of %s", silence->owner ? silence->owner : silence->person);
	buf_text(out, early && silence->ended_by ? " was ended by " : " is over");
	if (early && silence->ended_by)
		buf_text(out, silence->ended_by);
	if (silence->reason)
		buf_printf(out, ": %s", silence->reason);
}

/* The last expired silence that held the record. */
static const struct kept *held_by(struct silences *silences, const struct change_record *record)
{
	struct silence_target subject;
	struct silence_asked asked = {.subject = &subject};
	const struct kept *found = NULL;

	if (silences->summing == 0)
		return NULL;
	subject = silence_target_of(record);
	for (size_t i = 0; i < silences->count; i++) {
		struct kept *kept = silences->items[i];
		int64_t end = silence_end(&kept->silence);

		if (!kept->summing || end <= kept->silence.from || record->updated > end ||
			(found && end < silence_end(&found->silence)))
			continue;
		asked.groups = config_groups(silences->agent->config, subject.test);
		if (selects(kept, &asked))
			found = kept;
	}
	silence_asked_free(&asked);
	return found;
}

static void summarize(
	struct silences *silences, struct change_record *record, const struct mutes *mutes)
{
	const struct kept *kept = held_by(silences, record);
	const struct mute_time *mute =
		!kept && mutes ? mute_find(mutes, record->updated, NULL) : NULL;
	struct buf text = {0};

	if (kept)
		put_summary(kept, &text);
	else if (mute)
		buf_printf(&text, "mute time %s is over", mute_name(mute));
	else
		return;
	/* Equal texts become the same pointer, which makes their changes one message. */
	for (size_t i = 0; i < silences->summary_count; i++)
		if (strcmp(silences->summaries[i], text.data) == 0)
			record->summary = silences->summaries[i];
	if (!record->summary) {
		record->summary = arena_strdup(silences->texts, text.data);
		silences->summaries = arena_grow(silences->texts, silences->summaries,
			silences->summary_count, sizeof *silences->summaries);
		silences->summaries[silences->summary_count++] = record->summary;
	}
	buf_free(&text);
}

void silences_summarize(struct silences *silences, struct change_record *record)
{
	summarize(silences, record, config_mutes(silences->agent->config, record->item.test));
}

static struct decision judge(void *context, struct change_record *record)
{
	struct silences *silences = context;
	const struct judged *verdict = &silences->verdicts[silences->at++];

	assert(verdict->id == record->item.id);
	if (verdict->covered_by != 0)
		return (struct decision){HOLD, "covered by a silence", 0};
	if (verdict->muted)
		return (struct decision){HOLD, "in a mute time of its test", verdict->mute_until};
	summarize(silences, record,
		verdict->mute && (verdict->first || verdict->was_muted) ? verdict->mute->mutes
									: NULL);
	return (struct decision){0};
}

static void set_metrics(struct silences *silences)
{
	struct metrics *metrics = silences->agent->metrics;
	size_t live = 0, ahead = 0;

	for (size_t i = 0; i < silences->count; i++) {
		live += is_live(silences->items[i], silences->now);
		ahead += silences->items[i]->silence.from > silences->now &&
			 !is_over(silences->items[i], silences->now);
	}
	metrics_set(metrics, METRIC_SILENCES, (double)live, "active");
	metrics_set(metrics, METRIC_SILENCES, (double)ahead, "pending");
	metrics_set(metrics, METRIC_SILENCED, (double)silences->held, NULL);
	metrics_set(metrics, METRIC_SILENCED_AGE,
		silences->oldest == WHEN_NEVER ? 0
					       : (double)(silences->now - silences->oldest) / 1000,
		NULL);
}

static void count_held(struct silences *silences, struct change_record *const *records)
{
	silences->held = 0;
	silences->oldest = silences->mute_end = WHEN_NEVER;
	for (size_t i = 0; i < silences->verdict_count; i++) {
		const struct judged *verdict = &silences->verdicts[i];

		if (verdict->covered_by == 0 && !verdict->muted)
			continue;
		silences->held++;
		if (announcement_verdict(&records[i]->item) > 0 &&
			records[i]->first_seen < silences->oldest)
			silences->oldest = records[i]->first_seen;
		if (verdict->muted && verdict->mute_until < silences->mute_end)
			silences->mute_end = verdict->mute_until;
	}
}

/* Notes which silences have begun by now. */
static void look_at_times(struct silences *silences)
{
	silences->now = agent_now(silences->agent);
	for (size_t i = 0; i < silences->count; i++) {
		struct kept *kept = silences->items[i];
		bool live = is_live(kept, silences->now);

		if (live && !kept->begun)
			kept->fresh = true;
		kept->begun = live;
		if (silences->now >= kept->effort_since + HOUR ||
			silences->now < kept->effort_since) {
			kept->effort = kept->warnings = 0;
			kept->effort_since = silences->now;
		}
	}
}

static int64_t remind_at(const struct silence *silence)
{
	int64_t before = (silence->until - silence->from) / REMIND_PART;

	return silence->until - (before < HOUR ? before : HOUR);
}

static int64_t earliest(int64_t time, int64_t other, int64_t now)
{
	return other > now && other < time ? other : time;
}

/* The wall clock may be set, so the alarm comes at least once an hour. */
static void set_alarm(struct silences *silences)
{
	struct engine *engine = silences->agent->engine;
	int64_t now = silences->now, next = earliest(WHEN_NEVER, silences->mute_end, now);

	for (size_t i = 0; i < silences->count; i++) {
		const struct silence *silence = &silences->items[i]->silence;

		next = earliest(next, silence->from, now);
		next = earliest(next, silence_end(silence), now);
		if (!silence->reminded && silence->ended == 0)
			next = earliest(next, remind_at(silence), now);
	}
	if (silences->agent->once || (silences->count == 0 && silences->held == 0))
		return;
	engine_alarm(engine, &silences->alarm,
		engine_now(engine) + (next - now < HOUR ? next - now : HOUR));
}

static void begin_round(void *context, struct change_record *const *records, size_t count)
{
	struct silences *silences = context;

	arena_free(silences->texts);
	silences->texts = arena_new();
	silences->summaries = NULL;
	silences->summary_count = 0;
	look_at_times(silences);
	silences->summing = 0;
	for (size_t i = 0; i < silences->count; i++) {
		silences->items[i]->summing = is_over(silences->items[i], silences->now);
		silences->summing += silences->items[i]->summing;
	}
	judge_all(silences, records, count);
	count_held(silences, records);
	set_metrics(silences);
	set_alarm(silences);
}

void silences_forget(struct silences *silences)
{
	silences->verdict_count = silences->at = silences->held = 0;
	silences->oldest = silences->mute_end = WHEN_NEVER;
	set_metrics(silences);
}

struct filter silences_filter(struct silences *silences)
{
	return (struct filter){
		.name = "silence", .begin = begin_round, .judge = judge, .context = silences};
}

/* Losing the answer costs nothing: its message settles what the silence held. */
static void store(struct silences *silences, const struct kept *kept, bool summed)
{
	struct store_silence *request = store_silence_new(NULL, NULL);

	request->silence = (struct silence){
		.id = kept->silence.id, .reminded = kept->silence.reminded, .summed = summed};
	request->actor = (struct actor){"hunter-c", "agent"};
	request->now = agent_now(silences->agent);
	fleet_fence(silences->agent, &request->call, FLEET_LEADER);
	store_client_call(silences->agent, &request->call);
}

void silences_written(struct silences *silences, bool stored)
{
	for (size_t i = silences->count; i > 0 && stored; i--) {
		if (!silences->items[i - 1]->summing)
			continue;
		store(silences, silences->items[i - 1], true);
		drop(silences, i - 1);
	}
	for (size_t i = 0; i < silences->count; i++)
		silences->items[i]->summing = false;
}

/* Reminders */

/* The receivers of changes that it may select. */
static struct strings receivers_of(
	struct silences *silences, struct kept *kept, struct arena *arena)
{
	const struct config *config = silences->agent->config;
	struct strings topics = config_topics(config, arena);
	const char **tests = arena_array(arena, topics.count, sizeof *tests);
	struct router *router = router_new(config_routing(config));
	struct strings receivers;
	size_t count = 0;

	for (size_t i = 0; i < topics.count; i++) {
		struct silence_target subject = {.test = topics.items[i]};
		struct silence_asked asked = {
			.subject = &subject, .groups = config_groups(config, topics.items[i])};

		if (silence_may_select(&kept->matchers, &asked, NULL))
			tests[count++] = topics.items[i];
		silence_asked_free(&asked);
	}
	receivers = route_notices(router, tests, count, 1u << MESSAGE_NOTICE, arena);
	router_free(router);
	return receivers;
}

/* Same text after a restart, so that the delivery is recognised. */
static void remind(struct silences *silences, struct kept *kept)
{
	const struct silence *silence = &kept->silence;
	struct arena *arena = arena_new();
	struct strings receivers = receivers_of(silences, kept, arena);
	struct store_queue *request = store_queue_new(NULL, NULL);
	struct buf text = {0};
	char until[WHEN_TEXT];

	if (silence->owner || silence->person)
		buf_printf(&text, "the silence of %s",
			silence->owner ? silence->owner : silence->person);
	else
		buf_text(&text, "it");
	buf_printf(&text, " ends at %s", when_format(silence->until, until));
	if (silence->reason)
		buf_printf(&text, " (%s)", silence->reason);
	buf_printf(&text, "; held changes are then announced (matchers: %s)", silence->matchers);
	fleet_fence(silences->agent, &request->call, FLEET_LEADER);
	notices_queue(silences->notices,
		&(struct notice){
			.subject = arena_printf(arena, "silence %lld", (long long)silence->id),
			.text = text.data,
			.time = silence->until},
		&receivers, request);
	kept->silence.reminded = true;
	store(silences, kept, false);
	buf_free(&text);
	arena_free(arena);
}

/* Their life */

static void tick(void *context)
{
	struct silences *silences = context;
	bool due = silences->held > 0;

	if (silences->agent->stopping)
		return;
	look_at_times(silences);
	for (size_t i = 0; i < silences->count; i++) {
		struct kept *kept = silences->items[i];
		const struct silence *silence = &kept->silence;

		due = due || is_over(kept, silences->now);
		if (!silence->reminded && silence->ended == 0 && is_live(kept, silences->now) &&
			silences->now >= remind_at(silence) &&
			fleet_holds(silences->agent, FLEET_LEADER))
			remind(silences, kept);
	}
	set_metrics(silences);
	set_alarm(silences);
	if (due)
		silences->look(silences->context);
}

void silences_note(struct silences *silences, const struct silence *silence)
{
	put(silences, silence);
	tick(silences);
}

void silences_restore(struct silences *silences, const struct silence_rows *rows)
{
	size_t row = rows->count;

	for (size_t i = silences->count; i > 0; i--) {
		int64_t id = silences->items[i - 1]->silence.id;

		while (row > 0 && rows->items[row - 1].id > id)
			row--;
		if (row > 0 && rows->items[row - 1].id == id)
			continue;
		drop(silences, i - 1);
		silences->version++;
	}
	for (size_t i = 0; i < rows->count; i++) {
		struct silence silence = rows->items[i];
		const struct kept *kept = find(silences, silence.id);

		silence.reminded |= kept && kept->silence.reminded; /* being written */
		if (!kept || kept->silence.ended != silence.ended ||
			kept->silence.until != silence.until ||
			kept->silence.reminded != silence.reminded || silence.summed)
			put(silences, &silence);
	}
	tick(silences);
}

static void forget_tests(struct silences *silences)
{
	arena_free(silences->tests);
	silences->tests = arena_new();
	silences->mutes = (struct dict){.arena = silences->tests};
	silences->generation++;
	silences->version++;
}

void silences_adopt(struct silences *silences)
{
	forget_tests(silences);
	if (silences->held > 0)
		silences->look(silences->context);
}

struct silences *silences_new(
	struct agent *agent, struct notices *notices, void (*look)(void *context), void *context)
{
	struct silences *silences = memory_new(1, sizeof *silences);

	*silences = (struct silences){.agent = agent,
		.notices = notices,
		.look = look,
		.context = context,
		.texts = arena_new(),
		.mute_end = WHEN_NEVER,
		.oldest = WHEN_NEVER,
		.alarm = {.call = tick, .context = silences}};
	forget_tests(silences);
	silences->now = agent_now(agent);
	set_metrics(silences);
	return silences;
}

void silences_free(struct silences *silences)
{
	if (!silences)
		return;
	for (size_t i = 0; i < silences->count; i++)
		kept_free(silences->items[i]);
	free(silences->items);
	free(silences->verdicts);
	arena_free(silences->texts);
	arena_free(silences->tests);
	free(silences);
}

/* Notices */

static bool holds_one(struct silences *silences, const struct silence_target *subject, int64_t now,
	int64_t *until)
{
	struct mute_state *mute = mute_state_of(silences, subject->test);
	struct silence_asked asked = {.subject = subject,
		.groups = config_groups(silences->agent->config, subject->test)};
	bool found = is_muted(mute, now);

	if (found)
		*until = mute->until;
	for (size_t i = 0; i < silences->count && !found; i++)
		if (is_live(silences->items[i], now) && selects(silences->items[i], &asked)) {
			*until = silence_end(&silences->items[i]->silence);
			found = true;
		}
	silence_asked_free(&asked);
	return found;
}

bool silences_hold(struct silences *silences, const struct silence_target *subject, int64_t *until)
{
	const struct config *config = silences->agent->config;
	int64_t now = agent_now(silences->agent), first = WHEN_NEVER;
	bool any = false;

	if (holds_one(silences, subject, now, until))
		return true;
	if (subject->test || !subject->source)
		return false;
	for (size_t i = 0; i < config->test_count; i++) {
		const struct test *test = &config->tests[i];
		struct silence_target part = {.test = test->name, .source = subject->source};

		if (!test->source || strcmp(test->server ? test->server->name : test->source->name,
					     subject->source) != 0)
			continue;
		if (!holds_one(silences, &part, now, until))
			return false;
		first = *until < first ? *until : first;
		any = true;
	}
	*until = first;
	return any;
}

uint64_t silences_version(const struct silences *silences)
{
	return silences->version;
}
