/*
 * How the regressions of a test are bisected. Runs are made by a command on this machine, or by a
 * lab over HTTP, which has the options of the receiver `webhook`.
 */
#include <string.h>

#include "agent/base/database.h"
#include "agent/base/hash.h"
#include "agent/base/transfer.h"
#include "conf/load.h"
#include "conf/reference.h"

const struct field test_bisect_fields[] = {
	OPTION_STRING(struct bisect_settings, run, NULL,
		"command of a run, executed by /bin/sh in a work tree of the commit: exit status "
		"0, or 125 if the commit cannot be tested; or set `url`",
		.flags = FIELD_COMMAND),
	OPTION_STRING(struct bisect_settings, extract, NULL,
		"how to read the value from its output: json:PATH; default: the last number"),
	OPTION_DURATION(struct bisect_settings, timeout, "1h", 1000, 2592000000.0,
		"timeout of a run, local or in a lab"),
	OPTION_INT(struct bisect_settings, workers, "1", 1, BISECT_WORKERS,
		"parallel runs: the number of devices"),
	OPTION_LIST(struct bisect_settings, worker,
		"commands of remote workers, such as `ssh dev1`, one each, instead of `workers`",
		.flags = FIELD_COMMAND),
	OPTION_MAP(struct bisect_settings, environment,
		"environment variables of the commands, such as secrets; never shown; names must "
		"not begin with HUNTER_",
		.flags = FIELD_CLOSED),
	OPTION_DURATION(struct bisect_settings, budget, "1d", 60000, 2592000000.0,
		"time limit of a bisection; the remaining commits are reported"),
	OPTION_INT(struct bisect_settings, max_per_day, "3", 1, 1000,
		"maximum number of bisections started per test within 24 hours; others wait"),
	OPTION_DOUBLE(struct bisect_settings, confidence, "0.95", 0.5, 0.9999,
		"probability at which one commit counts as found"),
	OPTION_STRING(struct bisect_settings, lab, "default",
		"name of its devices: one bisection at a time per lab"),
	OPTION_STRING(struct bisect_settings, work, NULL,
		"folder for work trees; default: `bisect` beside the state file",
		.flags = FIELD_FOLDER),
	OPTION_LIST(struct bisect_settings, paths, "only commits that touch these paths"),
	{0},
};

enum { LONGEST_LAB = 100 };

static bool is_lab(const char *name)
{
	size_t length = strlen(name);

	return length > 0 && length <= LONGEST_LAB &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
		       length;
}

static void complain(const struct yaml_node *map, const struct scope *scope, const char *text)
{
	struct error error;

	error_set(&error, ERROR_USAGE, "%s", text);
	loader_complain(map, scope, &error);
}

static void check_extract(
	const struct yaml_node *map, const struct scope *scope, const char *extract)
{
	struct error error;

	if (!extract || !scope->loader->source->schema->extract_check ||
		scope->loader->source->schema->extract_check(extract, &error))
		return;
	if (strncmp(error.text, "extract", strlen("extract")) != 0)
		(void)error_prefix(&error, "extract: ");
	loader_complain(map, scope, &error);
}

static void check_environment(
	const struct yaml_node *map, const struct scope *scope, const struct pairs *environment)
{
	for (size_t i = 0; i < environment->count; i++) {
		const char *name = environment->items[i].key;
		struct error error;

		if (name[0] && !name[reference_name(name, name + strlen(name))] &&
			strncmp(name, "HUNTER_", strlen("HUNTER_")) != 0)
			continue;
		error_set(&error, ERROR_USAGE,
			"environment: \"%.80s\" is not the name of a variable, or one of ours",
			name);
		loader_complain(map, scope, &error);
	}
}

static void check_command(const struct yaml_node *map, const struct scope *scope,
	const struct bisect_settings *settings)
{
	check_extract(map, scope, settings->extract);
	check_environment(map, scope, &settings->environment);
	if (!*settings->run)
		complain(map, scope, "run: it is empty");
	if (settings->worker.count > BISECT_WORKERS)
		complain(map, scope, "worker: more than 64");
	if (!settings->work && database_is(scope->loader->config->agent.state))
		complain(map, scope, "\"work\", a folder, is missing: the state is a database");
}

static void check_lab(const struct yaml_node *map, const struct scope *scope,
	const struct bisect_settings *settings)
{
	struct error error;

	if (!settings->lab_plugin->check(settings->webhook, &error))
		loader_complain(map, scope, &error);
	if (settings->worker.count > 0)
		complain(map, scope, "worker: is for \"run\"; a lab has `workers`");
	if (settings->environment.count > 0)
		complain(map, scope, "environment: is for \"run\"; a lab gets headers");
	if (settings->extract)
		complain(map, scope, "extract: is for \"run\"; a lab returns the value");
}

static void check(const struct yaml_node *map, const struct scope *scope,
	const struct bisect_settings *settings, const struct test *test)
{
	if (!settings->run == !settings->webhook)
		complain(map, scope,
			settings->run ? "run and url are mutually exclusive"
				      : "\"run\", a command, or \"url\", a lab's, is missing");
	else if (settings->run)
		check_command(map, scope, settings);
	else
		check_lab(map, scope, settings);
	if (!is_lab(settings->lab))
		complain(map, scope,
			"lab: expected a name of letters, digits, \".\", \"_\" and \"-\"");
	if (!test->repository)
		loader_error(map, scope, "the test has no `repository` to bisect");
}

const struct bisect_settings *bisect_read(
	const struct yaml_node *map, const struct scope *context, const struct test *test)
{
	struct loader *loader = context->loader;
	struct bisect_settings *settings = arena_alloc(loader->arena, sizeof *settings);
	struct scope scope = *context;
	struct reading reading = {.tables = {{test_bisect_fields, settings}}};
	const struct plugin *lab = plugin_find(loader->source->schema->notifiers, "webhook");
	const struct field *shared = loader->source->schema->endpoint_fields;
	size_t errors = loader->problems->errors;
	struct unset unset = {0};
	void *webhook = NULL;

	scope.part = "bisect";
	scope.unset = &unset;
	if (!map || yaml_is_null(map) ||
		!loader_is_kind(
			map, YAML_MAP, &scope, "a map such as {run: \"make -s && ./bench\"}"))
		return NULL;
	reading.scope = scope;
	settings->lab_plugin = lab;
	if (lab) {
		webhook = arena_alloc(loader->arena, lab->options_size);
		reading.tables[1] = (struct option_table){lab->fields, webhook};
		reading.tables[2] = (struct option_table){shared, webhook};
	}
	for (size_t i = 0; i < READING_TABLES; i++)
		field_defaults(reading.tables[i].fields, reading.tables[i].options);
	options_read(map, map, &reading);
	if (yaml_get(map, "url"))
		settings->webhook = webhook;
	fingerprint_fields(loader, NULL, test_bisect_fields, settings);
	if (settings->webhook)
		fingerprint_fields(loader, NULL, shared, webhook);
	if (unset.variable) {
		loader_unset(unset.where, context, unset.variable);
		return NULL;
	}
	if (settings->webhook)
		services_check_endpoint(map, &scope, lab, webhook);
	if (errors == loader->problems->errors)
		check(map, &scope, settings, test);
	return settings;
}
