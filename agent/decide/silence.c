/*
 * The matchers of silences, and the values that changes and notices have for them.
 */
#include "agent/decide/silence.h"

#include <string.h>

#include "agent/base/label.h"

enum { EFFORT_MOST = 33000000 };

bool silence_is_costly(const struct matcher_effort *effort)
{
	return effort->exceeded || effort->steps > EFFORT_MOST;
}

const char *silence_costs(const struct matcher_effort *effort, struct arena *arena)
{
	if (!effort->exceeded)
		return "matching all tests and changes is too slow";
	return arena_printf(arena, "matching takes too long: %.200s", effort->exceeded->value);
}

bool silence_holds(const struct silence *silence, int64_t now)
{
	return silence->from <= now && now < silence_end(silence);
}

int64_t silence_end(const struct silence *silence)
{
	return silence->ended != 0 && silence->ended < silence->until ? silence->ended
								      : silence->until;
}

/* Values of a change or notice */

/* The names that every target has, cheapest comparison first. Compiled matchers use these very
 * pointers as names, so that they need not be compared as texts. */
enum name {
	NAME_TEST,
	NAME_GROUP,
	NAME_BRANCH,
	NAME_DIRECTION,
	NAME_METRIC,
	NAME_SOURCE,
};

const char *const silence_names[SILENCE_NAMES] = {
	"test", "group", "branch", "direction", "metric", "source"};

static struct strings one(struct silence_asked *asked, const char *value)
{
	asked->items[0] = value;
	return (struct strings){asked->items, value && *value};
}

static struct strings metrics_of(struct silence_asked *asked)
{
	const char *series = asked->subject->series;
	struct strings values = one(asked, asked->subject->metric);

	if (series && !asked->bare.data)
		buf_append(&asked->bare, series, strcspn(series, "{;"));
	if (asked->bare.length > 0 &&
		(values.count == 0 || strcmp(asked->bare.data, asked->subject->metric) != 0))
		asked->items[values.count++] = asked->bare.data;
	return values;
}

/* "up" and "down" follow the values, "regression" and "improvement" the metric's direction. */
static struct strings directions_of(struct silence_asked *asked)
{
	const struct silence_target *subject = asked->subject;
	struct strings values = {asked->items, 0};

	if (subject->sign != 0)
		asked->items[values.count++] = subject->sign > 0 ? "up" : "down";
	if (subject->verdict != 0)
		asked->items[values.count++] = subject->verdict > 0 ? "regression" : "improvement";
	return values;
}

static struct strings attribute_of(struct silence_asked *asked, const char *name)
{
	const struct silence_target *subject = asked->subject;

	for (size_t i = 0; i < subject->attribute_count; i++)
		if (strcmp(subject->attributes[i].name, name) == 0)
			return one(asked, subject->attributes[i].after
						  ? subject->attributes[i].after
						  : subject->attributes[i].before);
	if (strcmp(name, "commit") == 0 && subject->commit)
		return one(asked, subject->commit);
	if (strcmp(name, "version") == 0 && subject->version)
		return one(asked, subject->version);
	/* Consecutive silences often use the same label. */
	if (subject->series && (!asked->label_name || strcmp(asked->label_name, name) != 0)) {
		buf_clear(&asked->label);
		asked->label_name = name;
		asked->has_label = label_value(subject->series, name, strlen(name), &asked->label);
	}
	if (asked->has_label)
		return one(asked, asked->label.data);
	return one(asked, strcmp(name, "environment") == 0 ? subject->environment : NULL);
}

struct strings silence_values(void *context, const char *name)
{
	struct silence_asked *asked = context;
	const struct silence_target *subject = asked->subject;

	if (name == silence_names[NAME_TEST])
		return one(asked, subject->test);
	if (name == silence_names[NAME_METRIC])
		return metrics_of(asked);
	if (name == silence_names[NAME_GROUP])
		return asked->groups;
	if (name == silence_names[NAME_DIRECTION])
		return directions_of(asked);
	if (name == silence_names[NAME_BRANCH] && subject->branch && *subject->branch)
		return one(asked, subject->branch);
	if (name == silence_names[NAME_SOURCE] && subject->source)
		return one(asked, subject->source);
	return attribute_of(asked, name);
}

static size_t number_of(const char *name)
{
	size_t at = 0;

	while (at < SILENCE_NAMES && strcmp(silence_names[at], name) != 0)
		at++;
	return at;
}

const char *silence_name(const char *name)
{
	size_t number = number_of(name);

	return number < SILENCE_NAMES ? silence_names[number] : name;
}

/* Cheap matchers first. */
static bool sort(struct arena *arena, struct matchers *matchers)
{
	struct matcher *sorted = arena_array(arena, matchers->count, sizeof *sorted);
	size_t count = 0;

	for (size_t number = 0; number <= SILENCE_NAMES; number++)
		for (size_t i = 0; i < matchers->count; i++) {
			if (number_of(matchers->items[i].name) != number)
				continue;
			sorted[count] = matchers->items[i];
			if (number < SILENCE_NAMES)
				sorted[count].name = silence_names[number];
			count++;
		}
	matchers->items = sorted;
	return true;
}

bool silence_compile(
	const char *text, struct arena *arena, struct matchers *out, struct error *error)
{
	return matchers_parse(text, arena, true, out, error) && sort(arena, out);
}

bool silence_compile_any(
	const char *text, struct arena *arena, struct matchers *out, struct error *error)
{
	return matchers_parse(text, arena, false, out, error) && sort(arena, out);
}

void silence_asked_free(struct silence_asked *asked)
{
	buf_free(&asked->bare);
	buf_free(&asked->label);
}

bool silence_matches(
	const struct matchers *matchers, struct silence_asked *asked, struct matcher_effort *effort)
{
	return matchers_match(matchers, silence_values, asked, effort);
}

struct silence_target silence_target_of(const struct change_record *record)
{
	const struct announcement *item = &record->item;

	return (struct silence_target){.test = item->test,
		.metric = item->metric,
		.series = record->series,
		.branch = record->branch,
		.sign = record->sign,
		.verdict = announcement_verdict(item),
		.attributes = item->attributes,
		.attribute_count = item->attribute_count,
		.environment = item->environment,
		.commit = item->commit_after,
		.version = item->version_after};
}

/* By the configuration alone: other names may have any value. */
bool silence_may_select(
	const struct matchers *matchers, struct silence_asked *asked, struct matcher_effort *effort)
{
	for (size_t i = 0; i < matchers->count; i++) {
		const struct matcher *matcher = &matchers->items[i];
		const struct matchers alone = {matcher, 1};

		if ((matcher->name == silence_names[NAME_TEST] ||
			    matcher->name == silence_names[NAME_GROUP]) &&
			!matchers_match(&alone, silence_values, asked, effort))
			return false;
	}
	return true;
}
