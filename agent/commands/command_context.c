/*
 * A wrong flag is reported once and before any work, not once per test: the detection flags are
 * tried on every detection of the tests, the metrics' names against all tests together.
 */
#include "agent/commands/command_context.h"

#include <fnmatch.h>
#include <string.h>

#include "agent/io/engine.h"

/* Drops tests that can have none of the requested metrics; selection_check has made sure that
 * others can. */
static void drop_unasked(struct command_context *ask)
{
	const struct test **kept = arena_array(ask->cli->arena, ask->count, sizeof *kept);
	size_t count = 0;
	for (size_t i = 0; i < ask->count; i++) {
		if (selection_matches(&ask->selection, ask->tests[i]))
			kept[count++] = ask->tests[i];
		else
			log_event(LEVEL_WARN, "skipped: test has none of the requested metrics",
				LOG_TEXT("test", ask->tests[i]->name));
	}
	ask->tests = kept;
	ask->count = count;
}

/* Tries the settings on every detection; `arena` is for temporary data. */
static bool check_settings(
	const struct command_context *ask, struct arena *arena, struct error *error)
{
	if (ask->setting_count == 0)
		return true;
	const struct plugin *tried = NULL;
	struct detection detection;
	for (size_t i = 0; i < ask->count; i++) {
		const struct test *test = ask->tests[i];
		for (size_t m = 0; m <= test->metric_count; m++) {
			const struct detection *base =
				m < test->metric_count ? &test->detections[m] : &test->detection;
			if (base->detector == tried)
				continue;
			tried = base->detector;
			if (!detection_overlay(ask->schema, base, ask->settings, ask->setting_count,
				    arena, &detection, error)) {
				detection_flag_error(error);
				return false;
			}
		}
	}
	return true;
}

static bool prepare(
	struct command_context *ask, const struct selection_flags *flags, struct error *error)
{
	struct cli *cli = ask->cli;
	if (!selection_resolve(flags, cli->now, &ask->selection, error) ||
		!config_select(ask->config, &cli->arguments, cli->arena, &ask->tests, &ask->count,
			error) ||
		!selection_check(&ask->selection, ask->tests, ask->count, error))
		return false;
	drop_unasked(ask);
	struct arena *arena = arena_new();
	bool fine = check_settings(ask, arena, error);
	arena_free(arena);
	return fine;
}

bool command_context_prepare(struct command_context *ask, struct cli *cli,
	const struct selection_flags *selection, const struct detection_flags *detection,
	const struct strings *known_changes, int *code)
{
	struct config_source source = cli_config_source();
	struct error error;
	*ask = (struct command_context){.cli = cli, .schema = &cli_schema};
	if (!detection_flags_check(detection, &error)) {
		*code = cli_fail(&error);
		return false;
	}
	ask->otava = detection->profile && strcmp(detection->profile, "otava") == 0;
	struct detection_flags flags = *detection;
	if (flags.orig_edivisive && ask->otava)
		flags.profile = NULL; /* then only the output format applies: the original has no
					 profiles */
	ask->setting_count = detection_flag_settings(&flags, ask->settings);
	source.known_changes = *known_changes;
	ask->config = cli_config_from(cli, &source);
	if (!ask->config) {
		*code = EXIT_USAGE;
		return false;
	}
	if (prepare(ask, selection, &error))
		return true;
	*code = cli_fail(&error);
	return false;
}

bool command_lacks_data(const struct task *task, struct error *error)
{
	const char *branch = task->query.branch;

	if (!branch)
		return error_set(error, ERROR_DATA, "test \"%s\": no data in the selected range",
			task->test->name);
	return error_set(error, ERROR_DATA,
		"test \"%s\": no data in the selected range on branch \"%s\"", task->test->name,
		branch);
}

const struct test *single_test(struct cli *cli, const char *name, struct error *error)
{
	const struct strings names = {&name, 1};
	const struct test *const *tests;
	size_t count;

	if (!config_select(cli->config, &names, cli->arena, &tests, &count, error))
		return NULL;
	if (count == 1)
		return tests[0];
	error_set(error, ERROR_USAGE, "\"%.200s\" matches %zu tests; %s takes one", name, count,
		cli->command->name);
	return NULL;
}

bool any_matches(const struct strings *names, const char *pattern)
{
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->items[i], pattern) == 0 ||
			fnmatch(pattern, names->items[i], 0) == 0)
			return true;
	return false;
}

const char *test_option(const struct test *test, const char *name)
{
	const struct field *field = test->options ? field_find(test->source->fields, name) : NULL;
	return field ? *(const char *const *)((const char *)test->options + field->offset) : NULL;
}
