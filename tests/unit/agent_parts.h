/*
 * An agent for tests: its engine, store and watch over a configuration that the test writes. What
 * it tells goes nowhere.
 */
#ifndef TESTS_UNIT_AGENT_PARTS_H
#define TESTS_UNIT_AGENT_PARTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/cli/cli.h"
#include "agent/deliver/delivery_manager.h"
#include "agent/fleet/fleet.h"
#include "agent/monitor/scheduler.h"
#include "agent/notify/dispatcher.h"
#include "tests/unit/folder.h"

struct parts {
	char folder[64], path[96], state[96];
	struct arena *arena;
	struct config_source source;
	struct strings names; /* of tests: all */
	struct agent agent;
	struct delivery_manager *delivery_manager;
	struct dispatcher *dispatcher;
	struct expected *expected;
	struct scheduler *scheduler;
};

static inline const char *parts_env(void *context, const char *name)
{
	(void)context, (void)name;
	return NULL;
}

static inline void parts_post(
	void *engine, void (*call)(void *argument), void (*drop)(void *argument), void *argument)
{
	engine_post(engine, call, drop, argument);
}

static inline void parts_write(const struct parts *parts, const char *name, const char *text)
{
	char path[160];

	snprintf(path, sizeof path, "%s/%s", parts->folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* A folder with a hunter.yaml of this text, in which each %s is the folder. */
static inline void parts_configure(const struct parts *parts, const char *yaml)
{
	struct buf text = {0};

	for (const char *at = yaml, *hit; *at; at = hit + 2) {
		hit = strstr(at, "%s");
		if (!hit) {
			buf_text(&text, at);
			break;
		}
		buf_printf(&text, "%.*s%s", (int)(hit - at), at, parts->folder);
	}
	parts_write(parts, "hunter.yaml", text.data ? text.data : "");
	buf_free(&text);
}

static inline struct parts *parts_make(const char *yaml, bool jumping, bool fleet)
{
	struct parts *parts = calloc(1, sizeof *parts);
	struct problems problems = {0};
	struct error error;

	folder_new(parts->folder, sizeof parts->folder);
	snprintf(parts->path, sizeof parts->path, "%s/hunter.yaml", parts->folder);
	snprintf(parts->state, sizeof parts->state, "%s/state.db", parts->folder);
	parts_configure(parts, yaml);
	parts->arena = problems.arena = arena_new();
	parts->source = (struct config_source){.schema = &cli_schema, .env = parts_env};
	struct config *config = config_load(parts->path, &parts->source, &problems);
	if (!config)
		fail_msg("%s", problems.items[0].text);
	struct config_ref *config_ref = config_ref_of(config, &parts->names, &error);
	if (!config_ref)
		fail_msg("%s", error.text);
	parts->agent = (struct agent){.config_ref = config_ref,
		.config = config_ref->config,
		.schema = parts->source.schema,
		.now = clock_wall,
		.metrics = metrics_new()};
	parts->agent.engine =
		engine_new(&(struct engine_options){.jobs = 1, .jumping = jumping}, &error);
	parts->agent.store = store_open(parts->state, parts_post, parts->agent.engine, &error);
	assert_non_null(parts->agent.store);
	if (fleet)
		fleet_scripted(&parts->agent);
	parts->delivery_manager = delivery_manager_new(&parts->agent);
	parts->dispatcher = dispatcher_new(&parts->agent);
	parts->expected = expected_new(&parts->agent);
	parts->scheduler = scheduler_new(&parts->agent, parts->expected);
	dispatcher_filter(parts->dispatcher, scheduler_filter(parts->scheduler));
	return parts;
}

static inline struct parts *parts_new_with(const char *yaml, bool jumping)
{
	return parts_make(yaml, jumping, false);
}

/* The agent is one of a fleet, and holds what the test gives it by fleet_script. */
static inline struct parts *parts_new_fleet(const char *yaml)
{
	return parts_make(yaml, false, true);
}

static inline struct parts *parts_new(const char *yaml)
{
	return parts_new_with(yaml, false);
}

/* The engine's guests are the caller's to remove before. */
static inline void parts_free(struct parts *parts)
{
	char command[128];

	store_close(parts->agent.store);
	assert_true(engine_free(parts->agent.engine));
	fleet_free(&parts->agent);
	scheduler_free(parts->scheduler);
	expected_free(parts->expected);
	dispatcher_free(parts->dispatcher);
	delivery_manager_free(parts->delivery_manager);
	metrics_free(parts->agent.metrics);
	config_ref_release(parts->agent.config_ref);
	arena_free(parts->arena);
	snprintf(command, sizeof command, "rm -rf %s", parts->folder);
	assert_int_equal(system(command), 0);
	free(parts);
}

#endif
