/*
 * Controls: `explained_by` and `relative_to` of tests and metrics name the metric of a test, which
 * may be defined further down. So they are collected while tests are read, and resolved when all
 * are known.
 */
#include <stdlib.h>
#include <string.h>

#include "conf/load.h"

const char *const control_keys[] = {
	[CONTROL_LOAD] = "explained_by", [CONTROL_RATIO] = "relative_to"};

/* A rule that is not resolved yet. */
struct noted_control {
	struct control_rule *rule;
	const struct yaml_node *where;
	struct scope scope;
	enum { UNSEEN, OPEN, SEEN } state; /* for the detection of cycles */
	struct noted_control *next;
};

const struct control_rule *control_note(const struct yaml_node *map, const struct scope *scope,
	const struct control_options *options, const struct control_rule *base)
{
	struct loader *loader = scope->loader;
	enum control_mode mode = options->explained_by ? CONTROL_LOAD : CONTROL_RATIO;
	const char *text = options->explained_by ? options->explained_by : options->relative_to;
	if (options->explained_by && options->relative_to && *options->explained_by &&
		*options->relative_to)
		loader_error(yaml_get(map, control_keys[CONTROL_RATIO]), scope,
			"relative_to and explained_by: use one of them");
	if (!text)
		return base;
	if (!*text && options->relative_to) {
		text = options->relative_to;
		mode = CONTROL_RATIO;
	}
	if (!*text)
		return NULL;
	struct noted_control *noted = arena_alloc(loader->arena, sizeof *noted);
	noted->rule = arena_alloc(loader->arena, sizeof *noted->rule);
	*noted->rule = (struct control_rule){.mode = mode, .name = text};
	noted->where = yaml_get(map, control_keys[mode]);
	noted->scope = *scope;
	*loader->last_control = noted;
	loader->last_control = &noted->next;
	return noted->rule;
}

struct control_options control_options_of(const struct control_rule *rule)
{
	return (struct control_options){
		.explained_by = rule && rule->mode == CONTROL_LOAD ? rule->name : NULL,
		.relative_to = rule && rule->mode == CONTROL_RATIO ? rule->name : NULL};
}

static const struct metric *find_metric(const struct test *test, const char *name)
{
	for (size_t i = 0; i < test->metric_count; i++)
		if (strcmp(test->metrics[i].name, name) == 0)
			return &test->metrics[i];
	return NULL;
}

/* The test whose name ends before this slash. */
static const struct test *test_before(
	const struct loader *loader, const char *name, const char *slash)
{
	return dict_get(loader->tests, arena_strndup(loader->arena, name, (size_t)(slash - name)));
}

/* Names may contain slashes: the last slash counts that leaves a test with that metric, else the
 * last that leaves a test. */
static const struct test *split(
	const struct loader *loader, const struct control_rule *rule, const char **metric)
{
	const struct test *found = NULL;
	for (const char *at = rule->name; (at = strchr(at, '/')); at++) {
		const struct test *test = test_before(loader, rule->name, at);
		if (!test || (found && !find_metric(test, at + 1) && test->metric_count > 0))
			continue;
		found = test;
		*metric = at + 1;
	}
	return found;
}

/* The reference as written, for messages: an expanded variable may be a secret. */
static const char *shown(const struct noted_control *noted, const char *part)
{
	const char *text = noted->where->text;
	return strcmp(text, noted->rule->name) == 0 ? part : text;
}

static void report_no_test(struct loader *loader, const struct noted_control *noted)
{
	const struct config *config = loader->config;
	const char *name = noted->rule->name, *slash = strrchr(name, '/');
	const char **names = arena_array(loader->arena, config->test_count, sizeof *names);
	if (!slash || slash == name || !slash[1]) {
		loader_error(noted->where, &noted->scope, "%s: \"%.200s\" is not TEST/METRIC",
			control_keys[noted->rule->mode], noted->where->text);
		return;
	}
	for (size_t i = 0; i < config->test_count; i++)
		names[i] = config->tests[i].name;
	name = arena_strndup(loader->arena, name, (size_t)(slash - name));
	loader_error(noted->where, &noted->scope, "%s: unknown test \"%.200s\"%s",
		control_keys[noted->rule->mode], shown(noted, name),
		loader_hint(loader, name, names, config->test_count));
}

/* Without configured metrics a test has those that its source returns. */
static bool check_metric(struct loader *loader, const struct noted_control *noted,
	const struct test *test, const char *metric)
{
	const char **names = arena_array(loader->arena, test->metric_count, sizeof *names);
	if (*metric && (test->metric_count == 0 || find_metric(test, metric)))
		return true;
	for (size_t i = 0; i < test->metric_count; i++)
		names[i] = test->metrics[i].name;
	loader_error(noted->where, &noted->scope,
		"%s: the test \"%.200s\" has no metric \"%.200s\"%s",
		control_keys[noted->rule->mode], test->name, shown(noted, metric),
		loader_hint(loader, metric, names, test->metric_count));
	return false;
}

static void look_up(struct loader *loader, struct noted_control *noted)
{
	struct control_rule *rule = noted->rule;
	const char *metric = "", *own = noted->scope.metric;
	const struct test *test = split(loader, rule, &metric);
	if (!test) {
		report_no_test(loader, noted);
		return;
	}
	if (!check_metric(loader, noted, test, metric))
		return;
	if (own && strcmp(test->name, noted->scope.name) == 0 && strcmp(metric, own) == 0) {
		loader_error(noted->where, &noted->scope, "%s: the metric refers to itself",
			control_keys[rule->mode]);
		return;
	}
	rule->test = test;
	rule->metric = metric;
}

const struct control_rule *control_of(
	const struct test *test, const struct detection *detection, const char *metric)
{
	const struct control_rule *rule = detection->control;
	if (!rule || !rule->test)
		return NULL;
	return rule->test == test && strcmp(rule->metric, metric) == 0 ? NULL : rule;
}

/* The rule of the metric that this rule names, or NULL. */
static const struct control_rule *next_rule(const struct control_rule *rule)
{
	const struct test *test = rule->test;
	if (!test)
		return NULL;
	const struct metric *metric = find_metric(test, rule->metric);
	const struct detection *detection =
		metric ? &test->detections[metric - test->metrics] : &test->detection;
	return control_of(test, detection, rule->metric);
}

static struct noted_control *noted_of(
	struct noted_control *const *sorted, size_t count, const struct control_rule *rule)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if ((uintptr_t)sorted[middle]->rule < (uintptr_t)rule)
			low = middle + 1;
		else
			high = middle;
	}
	return sorted[low];
}

static int compare_rules(const void *a, const void *b)
{
	uintptr_t left = (uintptr_t)(*(struct noted_control *const *)a)->rule;
	uintptr_t right = (uintptr_t)(*(struct noted_control *const *)b)->rule;
	return (left > right) - (left < right);
}

/* Each rule leads to at most one other, so a walk either ends or returns to itself. */
static void find_circles(struct noted_control *const *sorted, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct noted_control *at = sorted[i];
		while (at && at->state == UNSEEN) {
			at->state = OPEN;
			const struct control_rule *next = next_rule(at->rule);
			at = next ? noted_of(sorted, count, next) : NULL;
		}
		if (at && at->state == OPEN)
			loader_error(at->where, &at->scope,
				"%s: cycle: \"%.200s\" depends on this metric",
				control_keys[at->rule->mode], at->where->text);
		for (at = sorted[i]; at && at->state == OPEN;) {
			at->state = SEEN;
			const struct control_rule *next = next_rule(at->rule);
			at = next ? noted_of(sorted, count, next) : NULL;
		}
	}
}

void controls_read(struct loader *loader)
{
	size_t count = 0;
	for (struct noted_control *at = loader->first_control; at; at = at->next, count++)
		look_up(loader, at);
	struct noted_control **sorted = arena_array(loader->arena, count, sizeof *sorted);
	count = 0;
	for (struct noted_control *at = loader->first_control; at; at = at->next)
		sorted[count++] = at;
	if (count > 0)
		qsort(sorted, count, sizeof *sorted, compare_rules);
	find_circles(sorted, count);
}
