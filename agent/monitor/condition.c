/*
 * Outages of a source are numbered. A test counts its failures within one outage only, so that
 * failures caused by the source do not count against the test once the source is up again.
 *
 * Three things may be reported of a source: that it is down, and for each aspect that many of its
 * tests have it. They follow from a sum of views: without a fleet from this agent's own.
 */
#include "agent/monitor/condition.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/base/hash.h"
#include "agent/base/utf8.h"
#include "agent/base/when.h"

/*
 * What may be wrong with each source and test, looked up by name. The entry of a source that the
 * configuration has lost stays, as one of which nothing is known.
 */

enum health_phase {
	HEALTH_OK,
	HEALTH_REPORTED,
	HEALTH_SUPPRESSED, /* reported as one of many */
	HEALTH_OLD, /* true before the agent began to look: neither it nor its end is reported */
};

/* Whether one thing is wrong with a source or test, and since when. */
struct health_state {
	enum health_phase state;
	int64_t since;
	uint64_t failures; /* consecutive */
	bool awaited;      /* restored after a restart: unknown until its test has run */
};

/* How many tests of a source have one kind of condition. */
struct health_counts {
	size_t told, suppressed, old, awaited;
	size_t others; /* reported by other agents, ... */
	size_t used;   /* ... and here since that was learned */
};

/* The sum of all views of a source. */
struct sum {
	size_t known, down;
	int64_t since;
	const char *text;
	int64_t told[VIEW_ASPECTS], many[VIEW_ASPECTS];
	bool awaited[VIEW_ASPECTS];
};

struct source_health {
	const char *name;
	struct source_health *next;
	struct health_state down; /* for the tests that run here, ... */
	struct buf why;           /* ... as a sentence */
	int64_t clock;            /* monotonic clock at the first failure */
	uint64_t outages;         /* finished outages */
	int64_t answered; /* monotonic clock at the begin of the last run that it has answered;
			     WHEN_ALWAYS: none */
	size_t tests;     /* that this agent runs */
	struct health_counts counts[VIEW_ASPECTS];
	struct health_state is_down, many[VIEW_ASPECTS]; /* reported, by this agent */
	struct sum sum;                                  /* of the views that are judged */
};

struct test_health {
	char *name;
	struct test_health *next;
	struct source_health *source; /* NULL: it has not run yet */
	struct health_state states[VIEW_ASPECTS];
	int64_t failed;  /* monotonic clock at the last failure that counted */
	uint64_t outage; /* source.outages at the last failure */
	int64_t first;   /* monotonic clock at the first of the consecutive failures */
	bool seen;
	int64_t newest, arrived; /* newest: ms, point time; arrived: monotonic clock */
	int64_t usual; /* ms until a point is missed, as of the last arrival; 0: unknown */
};

struct conditions {
	bool shared;         /* in a fleet: sources are judged by the views of all agents */
	struct arena *arena; /* of sources */
	struct dict source_names, test_names;
	struct source_health *sources;
	struct test_health *tests;
	struct buf subjects[CONDITION_TURNS], texts[CONDITION_TURNS];
};

/* The entry of the source, added if missing. */
static struct source_health *source_of(struct conditions *conditions, const char *name)
{
	struct source_health *source =
		(struct source_health *)(uintptr_t)dict_get(&conditions->source_names, name);

	if (source)
		return source;
	source = arena_alloc(conditions->arena, sizeof *source);
	*source = (struct source_health){.name = arena_strdup(conditions->arena, name),
		.next = conditions->sources,
		.answered = WHEN_ALWAYS};
	*dict_place(&conditions->source_names, source->name) = source;
	conditions->sources = source;
	return source;
}

/* Adds the condition to the counts (step 1) or removes it (step SIZE_MAX, which is -1). */
static void health_counts_add(
	struct health_counts *counts, const struct health_state *state, size_t step)
{
	counts->told += state->state == HEALTH_REPORTED ? step : 0;
	counts->suppressed += state->state == HEALTH_SUPPRESSED ? step : 0;
	counts->old += state->state == HEALTH_OLD ? step : 0;
	counts->awaited += state->awaited ? step : 0;
}

/* Does so for all conditions of a test and the counts of its source. */
static void count_test(const struct test_health *test, size_t step)
{
	if (!test->source)
		return;
	test->source->tests += step;
	for (size_t i = 0; i < VIEW_ASPECTS; i++)
		health_counts_add(&test->source->counts[i], &test->states[i], step);
}

/* The test's entry, added if missing. A test that belonged to another source moves to this one's
 * counts. */
static struct test_health *test_of(
	struct conditions *conditions, const char *name, struct source_health *source)
{
	struct test_health *test =
		(struct test_health *)(uintptr_t)dict_get(&conditions->test_names, name);

	if (!test) {
		test = memory_new(1, sizeof *test);
		*test = (struct test_health){
			.name = memory_strdup(name), .next = conditions->tests};
		*dict_place(&conditions->test_names, test->name) = test;
		conditions->tests = test;
	}
	if (test->source != source) {
		count_test(test, SIZE_MAX);
		test->source = source;
		count_test(test, 1);
	}
	return test;
}

enum { FAILURES = 3, OUTAGE = 300000 };

/* State of one conditions_note call: its arguments, and the conditions it returns. */
struct note {
	struct conditions *conditions;
	const struct outcome *outcome;
	struct source_health *source;
	struct test_health *test;
	struct condition *turns;
	size_t count;
};

static const struct {
	enum condition_kind one, many;
} aspects[VIEW_ASPECTS] = {
	{CONDITION_TEST, CONDITION_MANY_FAIL},
	{CONDITION_STALE, CONDITION_MANY_STALE},
};

static const char *const prefixes[] = {[CONDITION_SOURCE] = "source ",
	[CONDITION_TEST] = "test ",
	[CONDITION_STALE] = "data ",
	[CONDITION_MANY_FAIL] = "tests of ",
	[CONDITION_MANY_STALE] = "data of "};

struct conditions *conditions_new(bool shared)
{
	struct conditions *conditions = memory_new(1, sizeof *conditions);

	conditions->shared = shared;
	conditions->arena = conditions->source_names.arena = arena_new();
	conditions->test_names.arena = arena_new();
	return conditions;
}

static void free_test(struct test_health *test)
{
	free(test->name);
	free(test);
}

void conditions_free(struct conditions *conditions)
{
	if (!conditions)
		return;
	for (size_t i = 0; i < CONDITION_TURNS; i++) {
		buf_free(&conditions->texts[i]);
		buf_free(&conditions->subjects[i]);
	}
	for (struct source_health *at = conditions->sources; at; at = at->next)
		buf_free(&at->why);
	for (struct test_health *next, *at = conditions->tests; at; at = next) {
		next = at->next;
		free_test(at);
	}
	arena_free(conditions->test_names.arena);
	arena_free(conditions->arena);
	free(conditions);
}

const char *condition_source(const struct test *test)
{
	return test->server ? test->server->name : test->source->name;
}

const char *condition_name(const struct condition *condition)
{
	return condition->subject + strlen(prefixes[condition->kind]);
}

static int64_t limit_of(const struct note *note)
{
	int64_t given = note->outcome->stale_after, usual = note->test->usual;

	return given > 0 ? given : usual > 0 ? usual : WHEN_NEVER;
}

/*
 * The sentences that receivers read about a condition: one for each kind, when it begins and when
 * it ends. Error texts are truncated, since servers may return long ones.
 */

enum { PROBLEM_MAX = 300 };

static int cut(const char *problem)
{
	return (int)utf8_cut(problem, PROBLEM_MAX);
}

/* Appends the sentence about a condition that begins or is over. */
static void put_text(const struct condition *condition, const struct note *note, struct buf *out)
{
	const struct outcome *outcome = note->outcome;
	const char *name = condition_name(condition);
	int64_t since = condition->since;
	bool over = condition->over;
	char time[WHEN_TEXT], limit[WHEN_TEXT] = "";

	if (over)
		when_format_rough(outcome->now > since ? outcome->now - since : 0, time);
	else
		when_format(since, time);
	if (condition->kind == CONDITION_STALE && !over)
		when_format_duration(limit_of(note), limit);
	switch (condition->kind) {
	case CONDITION_SOURCE:
		if (over)
			buf_printf(out, "source %s is up again, after %s", name, time);
		else
			buf_text(out, note->source->sum.text);
		break;
	case CONDITION_TEST:
		if (over)
			buf_printf(out, "test \"%s\" has recovered, after %s", name, time);
		else
			buf_printf(out, "test \"%s\" has failed since %s: %.*s", name, time,
				cut(outcome->problem), outcome->problem);
		break;
	case CONDITION_STALE:
		if (over && outcome->stale_after == WHEN_NEVER)
			buf_printf(out, "test \"%s\" is no longer checked for new data", name);
		else if (over)
			buf_printf(out, "test \"%s\" has new data again, after %s", name, time);
		else if (note->test->newest == WHEN_ALWAYS)
			buf_printf(
				out, "test \"%s\" has had no data for more than %s", name, limit);
		else
			buf_printf(out,
				"test \"%s\" has had no new data for more than %s: its last point "
				"is from %s",
				name, limit, time);
		break;
	case CONDITION_MANY_FAIL:
	case CONDITION_MANY_STALE:
		if (over)
			buf_printf(out,
				"source %s: the tests not reported individually have %s, after %s",
				name,
				condition->kind == CONDITION_MANY_FAIL ? "recovered"
								       : "new data again",
				time);
		else
			buf_printf(out,
				"source %s: more than %d tests %s; further ones are not reported "
				"individually",
				name, CONDITION_TOLD_SINGLY,
				condition->kind == CONDITION_MANY_FAIL ? "fail"
								       : "have no new data");
		break;
	}
}

/* The current or former condition of a subject; the subject's text is in the buffer. */
static struct condition condition_of(struct buf *subject, enum condition_kind kind,
	const char *name, const struct health_state *state)
{
	buf_clear(subject);
	buf_printf(subject, "%s%s", prefixes[kind], name);
	return (struct condition){.subject = subject->data,
		.kind = kind,
		.since = state->since,
		.text = "",
		.over = state->state == HEALTH_OK};
}

static void report(struct note *note, enum condition_kind kind, const char *name,
	const struct health_state *state)
{
	size_t at = note->count++;
	struct buf *text = &note->conditions->texts[at];

	note->turns[at] = condition_of(&note->conditions->subjects[at], kind, name, state);
	buf_clear(text);
	put_text(&note->turns[at], note, text);
	note->turns[at].text = text->data;
}

static void mark_known(struct note *note, enum view_aspect aspect)
{
	struct health_state *state = &note->test->states[aspect];

	note->source->counts[aspect].awaited -= state->awaited;
	state->awaited = false;
}

static void begin_aspect(struct note *note, enum view_aspect aspect)
{
	struct health_state *state = &note->test->states[aspect];
	struct health_counts *counts = &note->source->counts[aspect];
	bool suppressed = counts->told + counts->others >= CONDITION_TOLD_SINGLY;

	if (!suppressed && note->outcome->share > 0 && counts->used++ >= note->outcome->share)
		return; /* at its next run */
	mark_known(note, aspect);
	state->state = suppressed ? HEALTH_SUPPRESSED : HEALTH_REPORTED;
	health_counts_add(counts, state, 1);
	if (!suppressed)
		report(note, aspects[aspect].one, note->test->name, state);
}

static void end_aspect(struct note *note, enum view_aspect aspect)
{
	struct health_state *state = &note->test->states[aspect];
	struct health_counts *counts = &note->source->counts[aspect];
	bool told = state->state == HEALTH_REPORTED;

	mark_known(note, aspect);
	health_counts_add(counts, state, SIZE_MAX);
	state->state = HEALTH_OK;
	if (told)
		report(note, aspects[aspect].one, note->test->name, state);
}

static void count_failure(struct health_state *state, int64_t now)
{
	if (state->failures++ == 0 && !state->state)
		state->since = now;
}

/* A run that began before the first failure says nothing of what came after that: its answer may be
 * as old. */
static void note_answer(struct note *note)
{
	struct source_health *source = note->source;
	int64_t begun = note->outcome->begun;

	source->answered = begun > source->answered ? begun : source->answered;
	if (source->down.failures > 0 && begun < source->clock)
		return;
	source->down.failures = 0;
	source->outages += source->down.state != HEALTH_OK;
	source->down.state = HEALTH_OK;
}

/* Counts the failed run against its test and, unless the test is known to fail or the source has
 * answered, against its source. */
static void note_failure(struct note *note)
{
	struct source_health *source = note->source;
	struct test_health *test = note->test;
	struct health_state *fails = &test->states[VIEW_FAILS];
	int64_t now = note->outcome->now, clock = note->outcome->clock;
	bool answered = note->outcome->answered;
	const char *problem = note->outcome->problem;
	char time[WHEN_TEXT];

	if (fails->state)
		return;
	if (fails->failures == 0)
		test->first = clock;
	if (test->outage != source->outages)
		fails->failures = 0;
	test->outage = source->outages;
	if (fails->failures > 0 && clock - test->failed < note->outcome->interval / 2)
		return;
	test->failed = clock;
	count_failure(fails, now);
	if (!answered && source->down.failures == 0)
		source->clock = clock;
	if (!answered)
		count_failure(&source->down, now);
	if (source->down.state)
		return;
	if (fails->failures >= FAILURES && (answered || source->answered > test->first)) {
		begin_aspect(note, VIEW_FAILS);
	} else if (!answered && source->down.failures >= FAILURES &&
		   (fails->failures >= FAILURES || clock - source->clock >= OUTAGE)) {
		source->down.state = HEALTH_REPORTED;
		buf_clear(&source->why);
		buf_printf(&source->why,
			"source %s is down: no run has succeeded since %s; test \"%s\": %.*s",
			source->name, when_format(source->down.since, time), test->name,
			cut(problem), problem);
	}
}

/* A newest point that is older than before (a sliding range, deleted data) is not an arrival. */
static void note_arrival(struct note *note)
{
	const struct outcome *outcome = note->outcome;
	struct test_health *test = note->test;
	struct health_state *state = &test->states[VIEW_STALE];
	int64_t age = 0, limit;
	bool given = outcome->stale_after != 0, stale;

	if (!test->seen && outcome->newest != WHEN_ALWAYS && outcome->now > outcome->newest)
		age = outcome->now - outcome->newest;
	if (!test->seen || outcome->newest > test->newest) {
		test->arrived = outcome->clock - age;
		test->newest = outcome->newest;
		test->usual = outcome->usual;
	}
	test->seen = true;
	/* After a restart the points may be gone from which the usual interval was derived: a
	 * reported condition stays. */
	if (!given && test->usual == 0 && state->state && test->newest <= state->since)
		return;
	limit = limit_of(note);
	stale = limit != WHEN_NEVER && outcome->clock - test->arrived > limit;
	if (stale == (state->state != HEALTH_OK))
		return;
	if (!stale) {
		end_aspect(note, VIEW_STALE);
		return;
	}
	state->since = test->newest == WHEN_ALWAYS ? outcome->now : test->newest;
	if (given || test->newest + limit >= outcome->since) {
		begin_aspect(note, VIEW_STALE);
		return;
	}
	mark_known(note, VIEW_STALE);
	state->state = HEALTH_OLD;
	health_counts_add(&note->source->counts[VIEW_STALE], state, 1);
}

/* Reports that a condition of the source begins or is over. */
static void turn_source(
	struct note *note, enum condition_kind kind, struct health_state *reported, int64_t since)
{
	if (reported->state)
		reported->state = HEALTH_OK;
	else
		*reported = (struct health_state){.state = HEALTH_REPORTED, .since = since};
	report(note, kind, note->source->name, reported);
}

/* The store does not say which tests were reported as one of many, so after a restart this is not
 * over before all tests have run. */
static void judge_source(struct note *note, bool settled)
{
	struct source_health *source = note->source;
	const struct sum *sum = &source->sum;

	if (source->is_down.state ? 2 * sum->down < sum->known : 2 * sum->down > sum->known)
		turn_source(note, CONDITION_SOURCE, &source->is_down, sum->since);
	for (size_t a = 0; a < VIEW_ASPECTS; a++) {
		bool over = sum->many[a] == 0 && sum->told[a] < CONDITION_TOLD_SINGLY &&
			    !sum->awaited[a] && settled && sum->known > 0;

		if (source->many[a].state ? over : sum->many[a] > 0)
			turn_source(note, aspects[a].many, &source->many[a], note->outcome->now);
	}
}

/* Without a fleet: by this agent's view. */
static void judge_alone(struct note *note)
{
	struct source_health *source = note->source;

	if (note->conditions->shared)
		return;
	source->sum = (struct sum){.known = source->down.state || source->answered != WHEN_ALWAYS,
		.down = source->down.state != HEALTH_OK,
		.since = source->down.since,
		.text = source->why.data};
	for (size_t a = 0; a < VIEW_ASPECTS; a++) {
		source->sum.told[a] = (int64_t)source->counts[a].told;
		source->sum.many[a] = (int64_t)source->counts[a].suppressed;
		source->sum.awaited[a] = source->counts[a].awaited > 0;
	}
	judge_source(note, !note->outcome->problem);
}

void conditions_judge(struct conditions *conditions, const struct source_view *views, size_t count,
	int64_t now, bool settled, conditions_turn *turn, void *context)
{
	const struct outcome outcome = {.now = now};

	for (struct source_health *at = conditions->sources; at; at = at->next)
		at->sum = (struct sum){0};
	for (size_t i = 0; i < count; i++) {
		const struct source_view *view = &views[i];
		struct sum *sum = &source_of(conditions, view->source)->sum;

		sum->known += view->verdict != VIEW_NONE;
		for (size_t a = 0; a < VIEW_ASPECTS; a++) {
			sum->awaited[a] |= view->awaited;
			sum->told[a] += view->told[a];
			sum->many[a] += view->many[a];
		}
		if (view->verdict == VIEW_DOWN && (sum->down++ == 0 || view->since < sum->since)) {
			sum->since = view->since;
			sum->text = view->text;
		}
	}
	for (struct source_health *at = conditions->sources; at; at = at->next) {
		struct condition turns[CONDITION_TURNS];
		struct note note = {.conditions = conditions,
			.outcome = &outcome,
			.source = at,
			.turns = turns};

		judge_source(&note, settled);
		for (size_t i = 0; i < note.count; i++)
			turn(context, &turns[i]);
	}
}

bool conditions_wait(const struct conditions *conditions)
{
	for (const struct source_health *at = conditions->sources; at; at = at->next)
		if (at->many[VIEW_FAILS].state || at->many[VIEW_STALE].state)
			return true;
	return false;
}

size_t conditions_note(struct conditions *conditions, const struct outcome *outcome,
	struct condition turns[CONDITION_TURNS])
{
	struct source_health *source = source_of(conditions, outcome->source);
	struct note note = {.conditions = conditions,
		.outcome = outcome,
		.source = source,
		.test = test_of(conditions, outcome->test, source),
		.turns = turns};
	struct health_state *fails = &note.test->states[VIEW_FAILS];

	if (!outcome->unasked && (!outcome->problem || outcome->answered))
		note_answer(&note);
	judge_alone(&note); /* the end of an outage is reported before those of its tests */
	if (outcome->problem) {
		note_failure(&note);
	} else if (!outcome->unasked) {
		if (fails->state)
			end_aspect(&note, VIEW_FAILS);
		fails->failures = 0;
	}
	if (!outcome->problem || outcome->newest != WHEN_ALWAYS)
		note_arrival(&note);
	/* After a successful run the state of the test is known. */
	for (enum view_aspect a = 0; a < VIEW_ASPECTS; a++)
		if (!outcome->problem && !outcome->unasked)
			mark_known(&note, a);
	judge_alone(&note);
	return note.count;
}

void conditions_restore(struct conditions *conditions, const struct condition *condition)
{
	const char *name = condition_name(condition);
	const struct health_state state = {.state = HEALTH_REPORTED, .since = condition->since};
	size_t aspect = 0;

	while (aspects[aspect].one != condition->kind && aspects[aspect].many != condition->kind &&
		aspect + 1 < VIEW_ASPECTS)
		aspect++;
	if (condition->kind == aspects[aspect].one) {
		test_of(conditions, name, NULL)->states[aspect] = state;
		return;
	}
	struct source_health *source = source_of(conditions, name);

	if (condition->kind != CONDITION_SOURCE) {
		source->many[aspect] = state;
		return;
	}
	source->is_down = state;
	if (!conditions->shared)
		source->down = state;
}

void conditions_clear_reports(struct conditions *conditions)
{
	for (struct source_health *at = conditions->sources; at; at = at->next) {
		at->is_down = (struct health_state){0};
		memset(at->many, 0, sizeof at->many);
	}
}

void conditions_expect(struct conditions *conditions, const char *test, const char *source)
{
	struct test_health *subject = test_of(conditions, test, source_of(conditions, source));

	count_test(subject, SIZE_MAX);
	for (size_t a = 0; a < VIEW_ASPECTS; a++)
		subject->states[a].awaited = true;
	count_test(subject, 1);
}

/* The counts of its source stay as they are. */
void conditions_rename(struct conditions *conditions, const char *was, const char *test)
{
	struct test_health *old =
		(struct test_health *)(uintptr_t)dict_get(&conditions->test_names, was);
	struct test_health *heir =
		(struct test_health *)(uintptr_t)dict_get(&conditions->test_names, test);
	struct test_health known;

	if (!old || (heir && (heir->source || heir->states[VIEW_FAILS].state ||
				     heir->states[VIEW_STALE].state)))
		return;
	heir = test_of(conditions, test, NULL);
	known = *old;
	known.name = heir->name;
	known.next = heir->next;
	*old = (struct test_health){.name = old->name, .next = old->next};
	*heir = known;
}

/* Reports the end of a condition whose subject is gone. */
static void lose(struct conditions *conditions, struct health_state *state,
	enum condition_kind kind, const char *name, conditions_turn *lost, void *context)
{
	struct condition condition;

	if (state->state != HEALTH_REPORTED || !lost)
		return;
	state->state = HEALTH_OK;
	condition = condition_of(&conditions->subjects[0], kind, name, state);
	buf_clear(&conditions->texts[0]);
	buf_printf(&conditions->texts[0],
		kind == CONDITION_TEST || kind == CONDITION_STALE
			? "test \"%s\" is no longer configured"
			: "source %s is no longer used",
		name);
	condition.text = conditions->texts[0].data;
	lost(context, &condition);
}

void conditions_retain(
	struct conditions *conditions, conditions_keep *keeps, conditions_turn *lost, void *context)
{
	for (struct source_health *at = conditions->sources; at; at = at->next) {
		if (keeps(context, false, at->name))
			continue;
		lose(conditions, &at->is_down, CONDITION_SOURCE, at->name, lost, context);
		at->down = (struct health_state){0};
		at->answered = WHEN_ALWAYS;
		for (size_t a = 0; a < VIEW_ASPECTS; a++)
			lose(conditions, &at->many[a], aspects[a].many, at->name, lost, context);
	}
	arena_free(conditions->test_names.arena); /* as names cannot be removed */
	conditions->test_names = (struct dict){.arena = arena_new()};
	for (struct test_health *at, **place = &conditions->tests; (at = *place);) {
		if (keeps(context, true, at->name)) {
			*dict_place(&conditions->test_names, at->name) = at;
			place = &at->next;
			continue;
		}
		count_test(at, SIZE_MAX);
		for (size_t a = 0; a < VIEW_ASPECTS; a++)
			lose(conditions, &at->states[a], aspects[a].one, at->name, lost, context);
		*place = at->next;
		free_test(at);
	}
}

void conditions_others(struct conditions *conditions, const struct source_view *views, size_t count)
{
	for (struct source_health *at = conditions->sources; at; at = at->next)
		for (size_t a = 0; a < VIEW_ASPECTS; a++)
			at->counts[a].others = at->counts[a].used = 0;
	for (size_t i = 0; i < count; i++) {
		struct source_health *source = source_of(conditions, views[i].source);

		for (size_t a = 0; a < VIEW_ASPECTS && !views[i].own; a++)
			source->counts[a].others += (size_t)views[i].told[a];
	}
}

static struct source_view view_of(const struct source_health *source)
{
	struct source_view view = {.source = source->name,
		.own = true,
		.verdict = source->down.state                ? VIEW_DOWN
			   : source->answered != WHEN_ALWAYS ? VIEW_UP
							     : VIEW_NONE,
		.text = ""};

	if (source->down.state) {
		view.since = source->down.since;
		view.text = source->why.data;
	}
	for (size_t a = 0; a < VIEW_ASPECTS; a++) {
		view.told[a] = (int64_t)source->counts[a].told;
		view.many[a] = (int64_t)source->counts[a].suppressed;
		view.awaited |= source->counts[a].awaited > 0;
	}
	return view;
}

uint64_t conditions_views(const struct conditions *conditions, struct store_views *out)
{
	struct arena *arena = out ? out->call.arena : NULL;
	struct source_view *list = NULL;
	uint64_t hash = HASH_START;

	for (const struct source_health *at = conditions->sources; at; at = at->next) {
		struct source_view view = view_of(at);

		if (at->tests == 0)
			continue;
		hash = hash_add(hash, at->name, strlen(at->name) + 1);
		hash = hash_add(hash, &view.verdict, sizeof view.verdict);
		hash = hash_add(hash, &view.since, sizeof view.since);
		hash = hash_add(hash, view.told, sizeof view.told);
		hash = hash_add(hash, view.many, sizeof view.many);
		hash = hash_add(hash, &view.awaited, sizeof view.awaited);
		if (!out)
			continue;
		view.source = arena_strdup(arena, view.source);
		view.text = arena_strdup(arena, view.text);
		list = arena_grow(arena, list, out->write_count, sizeof *list);
		list[out->write_count++] = view;
	}
	if (out)
		out->write = list;
	return hash;
}

int64_t conditions_down_since(const struct conditions *conditions, const char *source)
{
	const struct source_health *health = dict_get(&conditions->source_names, source);

	return health && health->down.state ? health->down.since : 0;
}

bool conditions_test_stale(const struct conditions *conditions, const char *name)
{
	const struct test_health *test = dict_get(&conditions->test_names, name);

	return test && test->states[VIEW_STALE].state;
}

size_t conditions_stale(const struct conditions *conditions)
{
	size_t count = 0;

	for (const struct source_health *at = conditions->sources; at; at = at->next) {
		const struct health_counts *counts = &at->counts[VIEW_STALE];

		count += counts->told + counts->suppressed + counts->old;
	}
	return count;
}
