/*
 * Outages of a source are numbered. A test counts its failures within one outage only, so that
 * failures caused by the source do not count against the test once the source is up again.
 */
#include "agent/monitor/condition.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/dict.h"
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

/* Conditions of one test, and of all tests of a source together. */
enum aspect { ASPECT_FAILS, ASPECT_STALE, ASPECTS };

/* How many tests of a source have one kind of condition. */
struct health_counts {
	size_t told, suppressed, old, awaited;
	struct health_state many;
	size_t others;      /* reported by other agents, ... */
	size_t share, used; /* ... and how many more may be here; share 0: there is no other */
};

struct source_health {
	const char *name;
	struct source_health *next;
	struct health_state down;
	int64_t clock;    /* monotonic clock at the first failure */
	uint64_t outages; /* finished outages */
	int64_t answered; /* monotonic clock at the begin of the last run that it has answered;
			     WHEN_ALWAYS: none */
	struct health_counts counts[ASPECTS];
};

struct test_health {
	char *name;
	struct test_health *next;
	struct source_health *source; /* NULL: it has not run yet */
	struct health_state states[ASPECTS];
	int64_t failed;  /* monotonic clock at the last failure that counted */
	uint64_t outage; /* source.outages at the last failure */
	int64_t first;   /* monotonic clock at the first of the consecutive failures */
	bool seen;
	int64_t newest, arrived; /* newest: ms, point time; arrived: monotonic clock */
	int64_t usual; /* ms until a point is missed, as of the last arrival; 0: unknown */
};

struct conditions {
	struct arena *arena; /* of sources */
	struct dict source_names, test_names;
	struct source_health *sources;
	struct test_health *tests;
	int64_t since;
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
	for (size_t i = 0; i < ASPECTS && test->source; i++)
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
			.name = memory_strdup(name), .next = conditions->tests, .source = source};
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
} aspects[ASPECTS] = {
	{CONDITION_TEST, CONDITION_MANY_FAIL},
	{CONDITION_STALE, CONDITION_MANY_STALE},
};

static const char *const prefixes[] = {[CONDITION_SOURCE] = "source ",
	[CONDITION_TEST] = "test ",
	[CONDITION_STALE] = "data ",
	[CONDITION_MANY_FAIL] = "tests of ",
	[CONDITION_MANY_STALE] = "data of "};

struct conditions *conditions_new(void)
{
	struct conditions *conditions = memory_new(1, sizeof *conditions);

	conditions->arena = conditions->source_names.arena = arena_new();
	conditions->test_names.arena = arena_new();
	return conditions;
}

void conditions_since(struct conditions *conditions, int64_t since)
{
	conditions->since = since;
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

void condition_subject(enum condition_kind kind, const char *name, struct buf *out)
{
	buf_printf(out, "%s%s", prefixes[kind], name);
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
	char time[WHEN_TEXT], limit[WHEN_TEXT];

	if (over) {
		when_format_rough(outcome->now > since ? outcome->now - since : 0, time);
	} else {
		when_format(since, time);
		when_format_duration(limit_of(note), limit);
	}
	switch (condition->kind) {
	case CONDITION_SOURCE:
		if (over)
			buf_printf(out, "source %s is up again, after %s", name, time);
		else
			buf_printf(out,
				"source %s is down: no run has succeeded since %s; test \"%s\": "
				"%.*s",
				name, time, outcome->test, cut(outcome->problem), outcome->problem);
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

void condition_say(const struct condition *condition, int64_t now, struct buf *out)
{
	const struct outcome outcome = {.now = now, .test = "", .problem = ""};
	struct test_health test = {0};

	put_text(condition, &(struct note){.outcome = &outcome, .test = &test}, out);
}

/* The current or former condition of a subject; the subject's text is in the buffer. */
static struct condition condition_of(struct buf *subject, enum condition_kind kind,
	const char *name, const struct health_state *state)
{
	buf_clear(subject);
	condition_subject(kind, name, subject);
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

static void mark_known(struct note *note, enum aspect aspect)
{
	struct health_state *state = &note->test->states[aspect];

	note->source->counts[aspect].awaited -= state->awaited;
	state->awaited = false;
}

static void begin(struct note *note, enum aspect aspect)
{
	struct health_state *state = &note->test->states[aspect];
	struct health_counts *counts = &note->source->counts[aspect];
	bool suppressed = counts->told + counts->others >= CONDITION_TOLD_SINGLY;

	if (!suppressed && counts->share > 0 && counts->used++ >= counts->share)
		return; /* at its next run */
	mark_known(note, aspect);
	state->state = suppressed ? HEALTH_SUPPRESSED : HEALTH_REPORTED;
	health_counts_add(counts, state, 1);
	if (!suppressed)
		report(note, aspects[aspect].one, note->test->name, state);
	if (!suppressed || counts->many.state)
		return;
	counts->many = (struct health_state){.state = HEALTH_REPORTED, .since = note->outcome->now};
	report(note, aspects[aspect].many, note->source->name, &counts->many);
}

/* The store does not say which tests were reported as one of many, so after a restart this is not
 * over before all tests have run. */
static void end_many(struct note *note, enum aspect aspect)
{
	struct health_counts *counts = &note->source->counts[aspect];

	if (!counts->many.state || counts->awaited > 0 || counts->suppressed > 0 ||
		counts->told >= CONDITION_TOLD_SINGLY)
		return;
	counts->many.state = HEALTH_OK;
	report(note, aspects[aspect].many, note->source->name, &counts->many);
}

static void end(struct note *note, enum aspect aspect)
{
	struct health_state *state = &note->test->states[aspect];
	struct health_counts *counts = &note->source->counts[aspect];
	bool told = state->state == HEALTH_REPORTED;

	mark_known(note, aspect);
	health_counts_add(counts, state, SIZE_MAX);
	state->state = HEALTH_OK;
	if (told)
		report(note, aspects[aspect].one, note->test->name, state);
	end_many(note, aspect);
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
	if (!source->down.state)
		return;
	source->down.state = HEALTH_OK;
	source->outages++;
	report(note, CONDITION_SOURCE, source->name, &source->down);
}

/* Counts the failed run against its test and, unless the test is known to fail or the source has
 * answered, against its source. */
static void note_failure(struct note *note)
{
	struct source_health *source = note->source;
	struct test_health *test = note->test;
	struct health_state *fails = &test->states[ASPECT_FAILS];
	int64_t now = note->outcome->now, clock = note->outcome->clock;
	bool answered = note->outcome->answered;

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
		begin(note, ASPECT_FAILS);
	} else if (!answered && source->down.failures >= FAILURES &&
		   (fails->failures >= FAILURES || clock - source->clock >= OUTAGE)) {
		source->down.state = HEALTH_REPORTED;
		report(note, CONDITION_SOURCE, source->name, &source->down);
	}
}

/* A newest point that is older than before (a sliding range, deleted data) is not an arrival. */
static void note_arrival(struct note *note)
{
	const struct outcome *outcome = note->outcome;
	struct test_health *test = note->test;
	struct health_state *state = &test->states[ASPECT_STALE];
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
		end(note, ASPECT_STALE);
		return;
	}
	state->since = test->newest == WHEN_ALWAYS ? outcome->now : test->newest;
	if (given || test->newest + limit >= note->conditions->since) {
		begin(note, ASPECT_STALE);
		return;
	}
	mark_known(note, ASPECT_STALE);
	state->state = HEALTH_OLD;
	health_counts_add(&note->source->counts[ASPECT_STALE], state, 1);
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
	struct health_state *fails;

	if (outcome->unasked) {
		note_arrival(&note);
		return note.count;
	}
	if (!outcome->problem || outcome->answered)
		note_answer(&note);
	fails = &note.test->states[ASPECT_FAILS];
	if (outcome->problem) {
		note_failure(&note);
	} else {
		if (fails->state)
			end(&note, ASPECT_FAILS);
		fails->failures = 0;
	}
	if (!outcome->problem || outcome->newest != WHEN_ALWAYS)
		note_arrival(&note);
	/* After a successful run the state of the test is known. */
	for (enum aspect a = 0; a < ASPECTS && !outcome->problem; a++) {
		if (!note.test->states[a].awaited)
			continue;
		mark_known(&note, a);
		end_many(&note, a);
	}
	return note.count;
}

void conditions_restore(struct conditions *conditions, const struct condition *condition)
{
	const char *name = condition_name(condition);
	bool stale = condition->kind == CONDITION_STALE || condition->kind == CONDITION_MANY_STALE;
	enum aspect aspect = stale ? ASPECT_STALE : ASPECT_FAILS;
	struct health_state *state;

	if (condition->kind == CONDITION_TEST || condition->kind == CONDITION_STALE)
		state = &test_of(conditions, name, NULL)->states[aspect];
	else if (condition->kind == CONDITION_SOURCE)
		state = &source_of(conditions, name)->down;
	else
		state = &source_of(conditions, name)->counts[aspect].many;
	*state = (struct health_state){.state = HEALTH_REPORTED, .since = condition->since};
}

void conditions_expect(struct conditions *conditions, const char *test, const char *source)
{
	struct test_health *subject = test_of(conditions, test, source_of(conditions, source));

	count_test(subject, SIZE_MAX);
	for (size_t a = 0; a < ASPECTS; a++)
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

	if (!old || (heir && (heir->source || heir->states[ASPECT_FAILS].state ||
				     heir->states[ASPECT_STALE].state)))
		return;
	heir = test_of(conditions, test, NULL);
	known = *old;
	known.name = heir->name;
	known.next = heir->next;
	*old = (struct test_health){.name = old->name, .next = old->next};
	*heir = known;
}

/* Reports the end of a condition whose subject is gone. */
static void lose(struct conditions *conditions, const struct health_state *state,
	enum condition_kind kind, const char *name, conditions_lost *lost, void *context)
{
	struct condition condition;

	if (state->state != HEALTH_REPORTED || !lost)
		return;
	condition = condition_of(&conditions->subjects[0], kind, name, state);
	condition.over = true;
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
	struct conditions *conditions, conditions_keep *keeps, conditions_lost *lost, void *context)
{
	for (struct source_health *at = conditions->sources; at; at = at->next) {
		if (keeps(context, false, at->name))
			continue;
		lose(conditions, &at->down, CONDITION_SOURCE, at->name, lost, context);
		at->down = (struct health_state){0};
		at->answered = WHEN_ALWAYS;
		for (size_t a = 0; a < ASPECTS; a++) {
			struct health_state *many = &at->counts[a].many;

			lose(conditions, many, aspects[a].many, at->name, lost, context);
			*many = (struct health_state){0};
		}
	}
	arena_free(conditions->test_names.arena); /* as names cannot be removed */
	conditions->test_names = (struct dict){.arena = arena_new()};
	for (struct test_health *at, **place = &conditions->tests; (at = *place);) {
		if (keeps(context, true, at->name)) {
			*dict_place(&conditions->test_names, at->name) = at;
			place = &at->next;
			continue;
		}
		for (size_t a = 0; a < ASPECTS; a++)
			lose(conditions, &at->states[a], aspects[a].one, at->name, lost, context);
		count_test(at, SIZE_MAX);
		*place = at->next;
		free_test(at);
	}
}

void conditions_others(struct conditions *conditions, const char *source,
	const int64_t told[VIEW_ASPECTS], size_t share)
{
	struct source_health *at = source_of(conditions, source);

	for (size_t a = 0; a < ASPECTS; a++) {
		at->counts[a].others = (size_t)told[a];
		at->counts[a].share = share;
		at->counts[a].used = 0;
	}
}

void conditions_view(
	const struct conditions *conditions, const char *source, struct source_view *view)
{
	const struct source_health *health = dict_get(&conditions->source_names, source);

	*view = (struct source_view){.source = source, .own = true, .text = ""};
	if (!health)
		return;
	view->verdict = health->down.state                ? VIEW_DOWN
			: health->answered != WHEN_ALWAYS ? VIEW_UP
							  : VIEW_NONE;
	view->since = health->down.state ? health->down.since : 0;
	for (size_t a = 0; a < ASPECTS; a++) {
		view->told[a] = (int64_t)health->counts[a].told;
		view->many[a] = (int64_t)health->counts[a].suppressed;
		view->awaited |= health->counts[a].awaited > 0;
	}
}

int64_t conditions_down_since(const struct conditions *conditions, const char *source)
{
	const struct source_health *health = dict_get(&conditions->source_names, source);

	return health && health->down.state ? health->down.since : 0;
}

bool conditions_test_stale(const struct conditions *conditions, const char *name)
{
	const struct test_health *test = dict_get(&conditions->test_names, name);

	return test && test->states[ASPECT_STALE].state;
}

size_t conditions_stale(const struct conditions *conditions)
{
	size_t count = 0;

	for (const struct source_health *at = conditions->sources; at; at = at->next) {
		const struct health_counts *counts = &at->counts[ASPECT_STALE];

		count += counts->told + counts->suppressed + counts->old;
	}
	return count;
}
