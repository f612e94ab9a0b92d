/*
 * What a silence selects: its matchers, and the values that changes and notices have for them.
 */
#include "agent/notify/silence.h"

#include <string.h>

#include "agent/base/dict.h"
#include "agent/base/label.h"

enum { NAMES_MOST = 1000, EFFORT_MOST = 33000000 };

bool silence_is_costly(const struct matcher_effort *effort)
{
	return effort->exceeded || effort->steps > EFFORT_MOST;
}

const char *silence_costs(const struct matcher_effort *effort, struct arena *arena)
{
	if (!effort->exceeded)
		return "matching all tests and changes takes too long";
	return arena_printf(arena, "matching takes too long: %.200s", effort->exceeded->value);
}

int64_t silence_end(const struct silence *silence)
{
	return silence->ended != 0 && silence->ended < silence->until ? silence->ended
								      : silence->until;
}

/* Values of a change or notice */

/* The names that every target has, cheapest comparison first. Compiled matchers use these very
 * pointers as names, so that they need not be compared as texts. */
enum name { NAME_TEST, NAME_GROUP, NAME_BRANCH, NAME_DIRECTION, NAME_METRIC, NAME_SOURCE, NAMES };

static const char *const own_names[NAMES] = {
	"test", "group", "branch", "direction", "metric", "source"};

static struct strings one(struct silence_asked *asked, const char *value)
{
	asked->items[0] = value;
	return (struct strings){asked->items, value && *value};
}

static const char *bare_metric(struct silence_asked *asked)
{
	const char *series = asked->subject->series;

	if (!series || asked->bare.data)
		return asked->bare.data;
	buf_append(&asked->bare, series, strcspn(series, "{;"));
	return asked->bare.data;
}

static struct strings metrics_of(struct silence_asked *asked)
{
	const char *bare = bare_metric(asked);
	struct strings values = one(asked, asked->subject->metric);

	if (bare && *bare && (values.count == 0 || strcmp(bare, asked->subject->metric) != 0))
		asked->items[values.count++] = bare;
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

/* Consecutive silences often use the same label. */
static bool label_of(struct silence_asked *asked, const char *name)
{
	const char *series = asked->subject->series;

	if (!series)
		return false;
	if (!asked->label_name || strcmp(asked->label_name, name) != 0) {
		buf_clear(&asked->label);
		asked->label_name = name;
		asked->has_label = label_value(series, name, strlen(name), &asked->label);
	}
	return asked->has_label;
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
	if (label_of(asked, name))
		return one(asked, asked->label.data);
	return one(asked, strcmp(name, "environment") == 0 ? subject->environment : NULL);
}

struct strings silence_groups(const struct config *config, const char *test, struct arena *arena)
{
	const char **names = arena_array(arena, config->group_count, sizeof *names);
	size_t count = 0;

	for (size_t i = 0; test && i < config->group_count; i++) {
		const struct group *group = &config->groups[i];
		bool in = group->cluster && strcmp(group->name, test) == 0;

		for (size_t j = 0; j < group->count && !in; j++)
			in = strcmp(group->tests[j]->name, test) == 0;
		if (in)
			names[count++] = group->name;
	}
	return (struct strings){names, count};
}

/* A group may list a test more than once. */
static void add_group(struct silence_index *index, const char *test, const char *group)
{
	size_t number = name_index_add(&index->tests, test, strlen(test));
	struct group_names *names;

	if (number == index->count) {
		index->groups = arena_grow(
			index->arena, index->groups, index->count, sizeof *index->groups);
		index->groups[index->count++] = (struct group_names){0};
	}
	names = &index->groups[number];
	if (names->count > 0 && names->items[names->count - 1] == group)
		return;
	names->items = arena_grow(index->arena, names->items, names->count, sizeof *names->items);
	names->items[names->count++] = group;
}

static void make_index(struct silence_index *index)
{
	index->tests.dict.arena = index->arena;
	for (size_t i = 0; i < index->config->group_count; i++) {
		const struct group *group = &index->config->groups[i];

		if (group->cluster)
			add_group(index, group->name, group->name);
		for (size_t j = 0; j < group->count; j++)
			add_group(index, group->tests[j]->name, group->name);
	}
	index->made = true;
}

struct strings silence_index_groups(struct silence_index *index, const char *test)
{
	size_t number;

	if (!index->made)
		make_index(index);
	number = test ? name_index_find(&index->tests, test, strlen(test)) : NAME_INDEX_NONE;
	if (number == NAME_INDEX_NONE)
		return (struct strings){0};
	return (struct strings){index->groups[number].items, index->groups[number].count};
}

static struct strings asked_groups(struct silence_asked *asked)
{
	if (asked->index)
		return silence_index_groups(asked->index, asked->subject->test);
	if (asked->config)
		asked->groups = silence_groups(asked->config, asked->subject->test, asked->arena);
	asked->config = NULL;
	return asked->groups;
}

struct strings silence_values(void *context, const char *name)
{
	struct silence_asked *asked = context;
	const struct silence_target *subject = asked->subject;

	if (name == own_names[NAME_TEST])
		return one(asked, subject->test);
	if (name == own_names[NAME_METRIC])
		return metrics_of(asked);
	if (name == own_names[NAME_GROUP])
		return asked_groups(asked);
	if (name == own_names[NAME_DIRECTION])
		return directions_of(asked);
	if (name == own_names[NAME_BRANCH] && subject->branch && *subject->branch)
		return one(asked, subject->branch);
	if (name == own_names[NAME_SOURCE] && subject->source)
		return one(asked, subject->source);
	return attribute_of(asked, name);
}

static size_t number_of(const char *name)
{
	size_t at = 0;

	while (at < NAMES && strcmp(own_names[at], name) != 0)
		at++;
	return at;
}

const char *silence_name(const char *name)
{
	size_t number = number_of(name);

	return number < NAMES ? own_names[number] : name;
}

/* Cheap matchers first. */
static void sort(struct arena *arena, struct matchers *matchers)
{
	struct matcher *sorted = arena_array(arena, matchers->count, sizeof *sorted);
	size_t count = 0;

	for (size_t number = 0; number <= NAMES; number++)
		for (size_t i = 0; i < matchers->count; i++) {
			if (number_of(matchers->items[i].name) != number)
				continue;
			sorted[count] = matchers->items[i];
			if (number < NAMES)
				sorted[count].name = own_names[number];
			count++;
		}
	matchers->items = sorted;
}

bool silence_compile(
	const char *text, struct arena *arena, struct matchers *out, struct error *error)
{
	if (!matchers_parse(text, arena, out, error))
		return false;
	sort(arena, out);
	return true;
}

bool silence_compile_any(
	const char *text, struct arena *arena, struct matchers *out, struct error *error)
{
	if (!matchers_parse_any(text, arena, out, error))
		return false;
	sort(arena, out);
	return true;
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

bool silence_selects(
	const struct config *config, const char *text, const struct silence_target *subject)
{
	struct arena *arena = arena_new();
	struct silence_asked asked = {.subject = subject, .config = config, .arena = arena};
	struct matchers matchers;
	struct error error;
	bool found = silence_compile(text, arena, &matchers, &error);

	if (found) {
		found = silence_matches(&matchers, &asked, NULL);
		matchers_free(&matchers);
	}
	silence_asked_free(&asked);
	arena_free(arena);
	return found;
}

/* By the configuration alone: other names may have any value. */
bool silence_may_select(
	const struct matchers *matchers, struct silence_asked *asked, struct matcher_effort *effort)
{
	for (size_t i = 0; i < matchers->count; i++) {
		const struct matcher *matcher = &matchers->items[i];
		const struct matchers alone = {matcher, 1};

		if ((matcher->name == own_names[NAME_TEST] ||
			    matcher->name == own_names[NAME_GROUP]) &&
			!matchers_match(&alone, silence_values, asked, effort))
			return false;
	}
	return true;
}

/* Names that a matcher may have. */
struct known_names {
	struct arena *arena;
	struct dict dict;
	const char **items;
	size_t count;
};

static void add_name(struct known_names *names, const char *name, size_t length)
{
	const char *copy;

	if (length == 0 || names->count == NAMES_MOST)
		return;
	copy = arena_strndup(names->arena, name, length);
	if (dict_get(&names->dict, copy))
		return;
	*dict_place(&names->dict, copy) = names;
	names->items = arena_grow(names->arena, names->items, names->count, sizeof *names->items);
	names->items[names->count++] = copy;
}

static void add_test_names(struct known_names *names, const struct test *test)
{
	const char *single[] = {test->environment, test->run_attribute, test->hash_attribute};
	const struct field *field =
		test->source ? field_find(test->source->fields, "attributes") : NULL;
	const struct strings *listed =
		field && field->type == FIELD_LIST && test->options
			? (const void *)((const char *)test->options + field->offset)
			: NULL;

	for (size_t i = 0; i < sizeof single / sizeof *single; i++)
		if (single[i])
			add_name(names, single[i], strlen(single[i]));
	for (size_t i = 0; listed && i < listed->count; i++)
		add_name(names, listed->items[i], strlen(listed->items[i]));
}

static void add_record_names(struct known_names *names, const struct change_record *record)
{
	const char *at = label_set(record->series);
	struct label_text label;

	for (size_t i = 0; i < record->item.attribute_count; i++)
		add_name(names, record->item.attributes[i].name,
			strlen(record->item.attributes[i].name));
	while (at && label_next(&at, &label))
		add_name(names, label.key, label.key_length);
	for (at = strchr(record->series, ';'); at; at = strchr(at + 1, ';'))
		add_name(names, at + 1, strcspn(at + 1, "=;"));
}

static void find_unknown(const struct config *config, const struct matchers *matchers,
	const struct record_rows *open, struct arena *arena, struct silence_reach *out)
{
	struct known_names names = {.arena = arena, .dict = {.arena = arena}};
	static const char *const always[] = {"commit", "version", "environment"};

	for (size_t i = 0; i < NAMES; i++)
		add_name(&names, own_names[i], strlen(own_names[i]));
	for (size_t i = 0; i < sizeof always / sizeof *always; i++)
		add_name(&names, always[i], strlen(always[i]));
	for (size_t i = 0; i < config->test_count; i++)
		add_test_names(&names, &config->tests[i]);
	for (size_t i = 0; i < open->count; i++)
		add_record_names(&names, &open->items[i]);
	for (size_t i = 0; i < matchers->count && !out->unknown; i++)
		if (!strchr(matchers->items[i].name, '[') &&
			!dict_get(&names.dict, matchers->items[i].name))
			out->unknown = arena_strdup(arena, matchers->items[i].name);
	if (out->unknown)
		out->suggestion = field_suggest(out->unknown, names.items, names.count);
}

/* Matching many targets. */
struct reaching {
	const struct matchers *matchers;
	struct silence_index *index;
	struct matcher_effort *effort; /* or NULL */
	bool (*test)(const struct matchers *matchers, struct silence_asked *asked,
		struct matcher_effort *effort);
};

static bool may_go_on(const struct reaching *reaching)
{
	return !reaching->effort || !silence_is_costly(reaching->effort);
}

/* Memory allocated for a target is freed after it. */
static bool reaches(const struct reaching *reaching, const struct silence_target *subject)
{
	struct arena *arena = arena_new();
	struct silence_asked asked = {.subject = subject, .index = reaching->index, .arena = arena};
	bool found = reaching->test(reaching->matchers, &asked, reaching->effort);

	silence_asked_free(&asked);
	arena_free(arena);
	return found;
}

static void reach_tests(
	const struct reaching *reaching, const struct config *config, struct silence_reach *out)
{
	for (size_t i = 0; i < config->test_count && may_go_on(reaching); i++) {
		const struct silence_target subject = {.test = config->tests[i].name};

		if (!reaches(reaching, &subject))
			continue;
		if (out->tests < SILENCE_REACH_SHOWN)
			out->first_tests[out->tests] = &config->tests[i];
		out->tests++;
	}
}

static void reach_changes(
	const struct reaching *reaching, const struct record_rows *open, struct silence_reach *out)
{
	for (size_t i = 0; i < open->count && may_go_on(reaching); i++) {
		const struct silence_target subject = silence_target_of(&open->items[i]);

		if (!reaches(reaching, &subject))
			continue;
		if (out->changes < SILENCE_REACH_SHOWN)
			out->first_changes[out->changes] = &open->items[i];
		out->changes++;
	}
}

void silence_reach(const struct config *config, const char *text, const struct record_rows *open,
	struct arena *arena, struct matcher_effort *effort, struct silence_reach *out)
{
	struct silence_index index = {.config = config, .arena = arena};
	struct matchers matchers;
	struct reaching reaching = {&matchers, &index, effort, silence_may_select};
	struct error error;

	*out = (struct silence_reach){0};
	if (!silence_compile(text, arena, &matchers, &error))
		return;
	reach_tests(&reaching, config, out);
	reaching.test = silence_matches;
	reach_changes(&reaching, open, out);
	if (may_go_on(&reaching))
		find_unknown(config, &matchers, open, arena, out);
	else
		*out = (struct silence_reach){.problem = silence_costs(effort, arena)};
	matchers_free(&matchers);
}
