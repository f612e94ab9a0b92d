#include "agent/analysis/annotation_tags.h"

#include <string.h>

#include "sources/graphite/graphite.h"
#include "sources/graphite/target.h"

enum { TAGS_MOST = 100, DEPTH = 4 };

struct values {
	struct arena *arena;
	const char *test, *metric;
	const char *path, *prefix; /* in Graphite, or NULL */
	const char **tags;
	size_t count;
};

static const struct metric *find_metric(const struct test *test, const char *name)
{
	for (size_t i = 0; i < test->metric_count; i++) {
		size_t length = strlen(test->metrics[i].name);

		if (strncmp(test->metrics[i].name, name, length) == 0 &&
			(!name[length] || name[length] == '{'))
			return &test->metrics[i];
	}
	return NULL;
}

static const char *filled(struct arena *arena, const char *text, const char *branch)
{
	struct error error;
	const char *out;

	return text && target_fill_branch(arena, text, branch, &out, &error) ? out : NULL;
}

/* Sets prefix and path as the source builds them. */
static void set_graphite(struct values *values, const struct test *test,
	const struct metric *metric, const char *branch)
{
	const struct graphite_options *options = test->options;
	const char *suffix = metric ? filled(values->arena, metric->suffix, branch) : NULL;

	if (!test->source || strcmp(test->source->name, graphite_source.plugin.name) != 0)
		return;
	values->prefix = filled(values->arena,
		branch && options->branch_prefix ? options->branch_prefix : options->prefix,
		branch);
	if (values->prefix && suffix)
		values->path = arena_printf(values->arena, "%s.%s", values->prefix, suffix);
}

/* The value of a variable. *parts: each of its components becomes a tag. */
static const char *value_of(
	const struct values *values, const char *name, size_t length, bool *parts)
{
	const struct {
		const char *name, *value;
		bool parts;
	} known[] = {{"TEST_NAME", values->test, false}, {"METRIC_NAME", values->metric, false},
		{"GRAPHITE_PATH", values->path, false},
		{"GRAPHITE_PATH_COMPONENTS", values->path, true},
		{"GRAPHITE_PREFIX", values->prefix, false},
		{"GRAPHITE_PREFIX_COMPONENTS", values->prefix, true}};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strlen(known[i].name) == length && strncmp(known[i].name, name, length) == 0) {
			*parts = known[i].parts;
			return known[i].value;
		}
	return NULL;
}

/* Adds the tags of a template: `text` is the part still to expand, `done` the part before it. */
static void add(struct values *values, const char *done, const char *text, int depth)
{
	const char *start = strstr(text, "%{"), *end = start ? strchr(start, '}') : NULL, *value;
	bool parts = false;

	if (!end) {
		if (values->count < TAGS_MOST)
			values->tags[values->count++] =
				arena_printf(values->arena, "%s%s", done, text);
		return;
	}
	value = value_of(values, start + 2, (size_t)(end - start) - 2, &parts);
	done = arena_printf(values->arena, "%s%.*s", done, (int)(start - text), text);
	while (value && depth < DEPTH && values->count < TAGS_MOST) {
		size_t length = parts ? strcspn(value, ".") : strlen(value);

		add(values, arena_printf(values->arena, "%s%.*s", done, (int)length, value),
			end + 1, depth + 1);
		value = value[length] ? value + length + 1 : NULL;
	}
}

static void add_all(struct values *values, const struct strings *templates)
{
	for (size_t i = 0; i < templates->count; i++)
		add(values, "", templates->items[i], 0);
}

struct strings annotation_tags(
	struct arena *arena, const struct test *test, const char *name, const char *branch)
{
	const struct metric *metric = find_metric(test, name);
	struct values values = {.arena = arena, .test = test->name, .metric = name};

	if (test->tags.count + test->annotate.count + (metric ? metric->annotate.count : 0) == 0)
		return (struct strings){0};
	values.tags = arena_array(arena, TAGS_MOST, sizeof *values.tags);
	set_graphite(&values, test, metric, branch);
	add_all(&values, &test->tags);
	add_all(&values, &test->annotate);
	if (metric)
		add_all(&values, &metric->annotate);
	return (struct strings){values.tags, values.count};
}
