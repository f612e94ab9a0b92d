/*
 * Controls: `explained_by` and `relative_to` of tests and metrics name the metric of a test, which
 * may be defined further down. So they are collected while tests are read, and resolved when all
 * are known.
 */
#include <string.h>

#include "conf/load.h"

const char *const control_keys[] = {
	[CONTROL_LOAD] = "explained_by", [CONTROL_RATIO] = "relative_to"};

/* A rule that is not resolved yet; begins with it. */
struct noted_control {
	struct control_rule rule;
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
	noted->rule = (struct control_rule){.mode = mode, .name = text};
	noted->where = yaml_get(map, control_keys[mode]);
	noted->scope = *scope;
	*loader->last_control = noted;
	loader->last_control = &noted->next;
	return &noted->rule;
}

struct control_options control_options_of(const struct control_rule *rule)
{
	return (struct control_options){
		.explained_by = rule && rule->mode == CONTROL_LOAD ? rule->name : NULL,
		.relative_to = rule && rule->mode == CONTROL_RATIO ? rule->name : NULL};
}

const struct metric *test_metric(const struct test *test, const char *name)
{
	for (size_t i = 0; i < test->metric_count; i++)
		if (strcmp(test->metrics[i].name, name) == 0)
			return &test->metrics[i];
	return NULL;
}

/* Names may contain slashes: the last slash counts that leaves a test with that metric, else the
 * last that leaves a test. */
static const struct test *split(
	const struct loader *loader, const struct control_rule *rule, const char **metric)
{
	const struct test *found = NULL;
	for (const char *at = rule->name; (at = strchr(at, '/')); at++) {
		const struct test *test = dict_get(loader->tests,
			arena_strndup(loader->arena, rule->name, (size_t)(at - rule->name)));
		if (!test || (found && !test_metric(test, at + 1) && test->metric_count > 0))
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
	return strcmp(text, noted->rule.name) == 0 ? part : text;
}

static void report_no_test(struct loader *loader, const struct noted_control *noted)
{
	const struct config *config = loader->config;
	const char *name = noted->rule.name, *slash = strrchr(name, '/');
	if (!slash || slash == name || !slash[1]) {
		loader_error(noted->where, &noted->scope, "%s: \"%.200s\" is not TEST/METRIC",
			control_keys[noted->rule.mode], noted->where->text);
		return;
	}
	name = arena_strndup(loader->arena, name, (size_t)(slash - name));
	loader_error(noted->where, &noted->scope, "%s: unknown test \"%.200s\"%s",
		control_keys[noted->rule.mode], shown(noted, name),
		loader_hint_in(
			loader, name, config->tests, config->test_count, sizeof *config->tests));
}

/* Without configured metrics a test has those that its source returns. */
static void look_up(struct loader *loader, struct noted_control *noted)
{
	struct control_rule *rule = &noted->rule;
	const char *metric = "", *own = noted->scope.metric;
	const struct test *test = split(loader, rule, &metric);
	if (!test) {
		report_no_test(loader, noted);
	} else if (!*metric || (test->metric_count > 0 && !test_metric(test, metric))) {
		loader_error(noted->where, &noted->scope,
			"%s: the test \"%.200s\" has no metric \"%.200s\"%s",
			control_keys[rule->mode], test->name, shown(noted, metric),
			loader_hint_in(loader, metric, test->metrics, test->metric_count,
				sizeof *test->metrics));
	} else if (own && strcmp(test->name, noted->scope.name) == 0 && strcmp(metric, own) == 0) {
		loader_error(noted->where, &noted->scope, "%s: the metric refers to itself",
			control_keys[rule->mode]);
	} else {
		rule->test = test;
		rule->metric = metric;
	}
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
static struct noted_control *next_rule(const struct noted_control *noted)
{
	const struct control_rule *rule = &noted->rule;
	const struct test *test = rule->test;
	if (!test)
		return NULL;
	const struct metric *metric = test_metric(test, rule->metric);
	const struct detection *detection =
		metric ? &test->detections[metric - test->metrics] : &test->detection;
	return (struct noted_control *)(uintptr_t)control_of(test, detection, rule->metric);
}

/* Each rule leads to at most one other, so a walk either ends or returns to itself. */
static void find_circles(struct noted_control *from)
{
	struct noted_control *at = from;
	for (; at && at->state == UNSEEN; at = next_rule(at))
		at->state = OPEN;
	if (at && at->state == OPEN)
		loader_error(at->where, &at->scope, "%s: cycle: \"%.200s\" depends on this metric",
			control_keys[at->rule.mode], at->where->text);
	for (at = from; at && at->state == OPEN; at = next_rule(at))
		at->state = SEEN;
}

void controls_read(struct loader *loader)
{
	for (struct noted_control *at = loader->first_control; at; at = at->next)
		look_up(loader, at);
	for (struct noted_control *at = loader->first_control; at; at = at->next)
		find_circles(at);
}
