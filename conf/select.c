/*
 * Selects tests of a configuration by name, group or pattern.
 */
#include <fnmatch.h>
#include <string.h>

#include "agent/base/dict.h"
#include "conf/config.h"

const struct test *config_test(const struct config *config, const char *name)
{
	return config->test_names ? dict_get(config->test_names, name) : NULL;
}

const struct group *config_group(const struct config *config, const char *name)
{
	return config->group_names ? dict_get(config->group_names, name) : NULL;
}

struct strings config_topics(const struct config *config, struct arena *arena)
{
	size_t count = 0;
	const char **names =
		arena_array(arena, config->test_count + config->group_count, sizeof *names);

	for (size_t i = 0; i < config->test_count; i++)
		names[count++] = arena_strdup(arena, config->tests[i].name);
	for (size_t i = 0; i < config->group_count; i++)
		if (config->groups[i].cluster)
			names[count++] = arena_strdup(arena, config->groups[i].name);
	return (struct strings){names, count};
}

static const struct cluster_settings *cluster_of(const struct config *config, const char *name)
{
	const struct group *group = config_group(config, name);

	return group ? group->cluster : NULL;
}

const struct strings *config_notify(const struct config *config, const char *topic)
{
	const struct test *test = config_test(config, topic);
	const struct cluster_settings *cluster = cluster_of(config, topic);

	return test ? &test->notify : cluster ? &cluster->notify : NULL;
}

const struct route_topic *config_topic(const struct config *config, const char *topic)
{
	return config->topics && topic ? dict_get(config->topics, topic) : NULL;
}

struct routing config_routing(const struct config *config)
{
	return (struct routing){
		config->routes, config->receivers, config->receiver_count, config->topics};
}

struct strings config_groups(const struct config *config, const char *topic)
{
	const struct route_topic *found = config_topic(config, topic);

	return found ? found->groups : (struct strings){0};
}

bool config_routed(const struct config *config, const char *topic)
{
	const struct route_topic *found = config_topic(config, topic);

	return config->routes && (!found || found->routed);
}

const struct mutes *config_mutes(const struct config *config, const char *topic)
{
	const struct test *test = config_test(config, topic);
	const struct cluster_settings *cluster = cluster_of(config, topic);

	return test ? &test->mute : cluster ? &cluster->mute : NULL;
}

int64_t config_interval(const struct config *config, const char *topic)
{
	const struct test *test = config_test(config, topic);
	const struct cluster_settings *cluster = cluster_of(config, topic);

	return test ? test->interval : cluster ? cluster->interval : 0;
}

/* The tests selected so far, each once. */
struct selection {
	const struct config *config;
	const struct test **tests;
	size_t count;
	bool *chosen; /* by index into config->tests */
};

static void choose(struct selection *selection, const struct test *test)
{
	bool *chosen = &selection->chosen[test - selection->config->tests];
	if (*chosen)
		return;
	*chosen = true;
	selection->tests[selection->count++] = test;
}

static bool choose_pattern(struct selection *selection, const char *pattern)
{
	const struct config *config = selection->config;
	bool any = false;
	if (!strpbrk(pattern, "*?["))
		return false;
	for (size_t i = 0; i < config->test_count; i++) {
		if (fnmatch(pattern, config->tests[i].name, 0) != 0)
			continue;
		choose(selection, &config->tests[i]);
		any = true;
	}
	return any;
}

static bool unknown(
	const struct config *config, const char *name, struct arena *arena, struct error *error)
{
	size_t count = 0;
	const char **names =
		arena_array(arena, config->test_count + config->group_count, sizeof *names);
	for (size_t i = 0; i < config->test_count; i++)
		names[count++] = config->tests[i].name;
	for (size_t i = 0; i < config->group_count; i++)
		names[count++] = config->groups[i].name;
	error_set(error, ERROR_USAGE, "no test or group \"%.200s\" in %.200s", name, config->path);
	return field_hint(error, name, names, count);
}

/* As in Hunter, a group takes precedence over a test of the same name. */
static bool choose_name(
	struct selection *selection, const char *name, struct arena *arena, struct error *error)
{
	const struct group *group = config_group(selection->config, name);
	const struct test *test = config_test(selection->config, name);
	if (group)
		for (size_t i = 0; i < group->count; i++)
			choose(selection, group->tests[i]);
	else if (test)
		choose(selection, test);
	else if (!choose_pattern(selection, name))
		return unknown(selection->config, name, arena, error);
	return true;
}

bool config_select(const struct config *config, const struct strings *names, struct arena *arena,
	const struct test *const **tests, size_t *count, struct error *error)
{
	struct selection selection = {.config = config,
		.tests = arena_array(arena, config->test_count, sizeof *selection.tests),
		.chosen = arena_array(arena, config->test_count, sizeof *selection.chosen)};
	for (size_t i = 0; i < names->count; i++)
		if (!choose_name(&selection, names->items[i], arena, error))
			return false;
	for (size_t i = 0; names->count == 0 && i < config->test_count; i++)
		choose(&selection, &config->tests[i]);
	*tests = selection.tests;
	*count = selection.count;
	return true;
}
