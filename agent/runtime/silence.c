#include "agent/runtime/silence.h"

#include <string.h>

#include "agent/base/dict.h"
#include "agent/base/label.h"

enum { NAMES_MOST = 1000 };

bool silence_selects(
	const struct config *config, const char *text, const struct silence_target *subject)
{
	struct arena *arena = arena_new();
	struct silence_asked asked = {
		.subject = subject, .groups = config_groups(config, subject->test)};
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

const struct silence *silence_of(const struct config *config, const struct silence_rows *silences,
	const struct change_record *record, int64_t now)
{
	struct silence_target subject = silence_target_of(record);
	const struct silence *found = NULL;

	for (size_t i = 0; i < silences->count; i++) {
		const struct silence *silence = &silences->items[i];

		if (silence_holds(silence, now) &&
			(!found || silence_end(silence) > silence_end(found)) &&
			silence_selects(config, silence->matchers, &subject))
			found = silence;
	}
	return found;
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

	for (size_t i = 0; i < SILENCE_NAMES; i++)
		add_name(&names, silence_names[i], strlen(silence_names[i]));
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

void silence_reach(const struct config *config, const char *text, const struct record_rows *open,
	struct arena *arena, struct matcher_effort *effort, struct silence_reach *out)
{
	struct matchers matchers;
	struct error error;

	*out = (struct silence_reach){0};
	if (!silence_compile(text, arena, &matchers, &error))
		return;
	for (size_t i = 0; i < config->test_count + open->count; i++) {
		const struct test *test = i < config->test_count ? &config->tests[i] : NULL;
		const struct change_record *change =
			test ? NULL : &open->items[i - config->test_count];
		struct silence_target subject = test ? (struct silence_target){.test = test->name}
						     : silence_target_of(change);
		struct silence_asked asked = {
			.subject = &subject, .groups = config_groups(config, subject.test)};

		if (effort && silence_is_costly(effort))
			break;
		if (test && silence_may_select(&matchers, &asked, effort)) {
			if (out->tests++ < SILENCE_REACH_SHOWN)
				out->first_tests[out->tests - 1] = test;
		} else if (change && silence_matches(&matchers, &asked, effort)) {
			if (out->changes++ < SILENCE_REACH_SHOWN)
				out->first_changes[out->changes - 1] = change;
		}
		silence_asked_free(&asked);
	}
	if (effort && silence_is_costly(effort))
		*out = (struct silence_reach){.problem = silence_costs(effort, arena)};
	else
		find_unknown(config, &matchers, open, arena, out);
	matchers_free(&matchers);
}
