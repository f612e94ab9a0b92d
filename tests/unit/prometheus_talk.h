/*
 * A talk with the Prometheus source: one question, the answers in order, and what was asked.
 * Includes what every test of it needs; cmocka's headers come before it.
 */
#ifndef TESTS_PROMETHEUS_TALK_H
#define TESTS_PROMETHEUS_TALK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "sources/prometheus/prometheus.h"

enum { HOUR = 3600000, MOST_TRANSFERS = 80 };

struct talk {
	struct query query;
	struct prometheus_options options;
	struct prometheus_server server;
	struct metric metrics[4];
	char *bodies[MOST_TRANSFERS];
	struct reply replies[MOST_TRANSFERS];
	struct transfer asked[MOST_TRANSFERS];
	int reply_count, asked_count;
	enum step end;
	struct error error;
};

static inline int set_up(void **state)
{
	struct talk *talk = calloc(1, sizeof *talk);
	*state = talk;
	talk->server = (struct prometheus_server){.endpoint = {.url = "http://prom:9090/base/",
							  .timeout = 30000,
							  .max_points = 1000000},
		.flavor = FLAVOR_PROMETHEUS};
	field_defaults(prometheus_source.plugin.fields, &talk->options);
	talk->options.query = "bench_throughput";
	talk->options.range = INT64_C(30) * 24 * HOUR;
	talk->query = (struct query){
		.arena = arena_new(),
		.test = "test",
		.options = &talk->options,
		.server = &talk->server,
		.metrics = talk->metrics,
		.since = WHEN_ALWAYS,
		.until = WHEN_NEVER,
		.now = 1795175999999,
	};
	for (int i = 0; i < 4; i++)
		talk->metrics[i].scale = 1;
	return 0;
}

static inline int tear_down(void **state)
{
	struct talk *talk = *state;
	arena_free(talk->query.arena);
	for (int i = 0; i < talk->reply_count; i++)
		free(talk->bodies[i]);
	free(talk);
	return 0;
}

static inline struct reply *say(struct talk *talk, int status, const char *body)
{
	struct reply *reply = &talk->replies[talk->reply_count];
	char *copy = talk->bodies[talk->reply_count++] = strdup(body);
	*reply = (struct reply){.kind = REPLY_ANSWER,
		.status = status,
		.retry_after = -1,
		.body = copy,
		.length = strlen(copy)};
	return reply;
}

static inline struct reply *say_file(struct talk *talk, int status, const char *name)
{
	char path[512], *text = NULL;
	size_t size = 0;
	snprintf(path, sizeof path, "%s/samples/prometheus/%s", HUNTER_TEST_DATA, name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_true(getdelim(&text, &size, EOF, file) > 0);
	fclose(file);
	struct reply *reply = say(talk, status, text);
	free(text);
	return reply;
}

static inline void run(struct talk *talk)
{
	const struct reply *last = NULL;
	for (;;) {
		struct transfer *next = &talk->asked[talk->asked_count];
		talk->end = prometheus_source.step(&talk->query, last, next, &talk->error);
		if (talk->end != STEP_TRANSFER)
			return;
		assert_true(talk->asked_count < talk->reply_count);
		last = &talk->replies[talk->asked_count++];
	}
}

static inline void done(struct talk *talk)
{
	run(talk);
	if (talk->end != STEP_DONE)
		fail_msg("%s", talk->error.text);
	assert_int_equal(talk->asked_count, talk->reply_count);
}

static inline void failed(struct talk *talk, const char *words)
{
	run(talk);
	assert_int_equal(talk->end, STEP_FAILED);
	if (!strstr(talk->error.text, words))
		fail_msg("\"%s\" lacks \"%s\"", talk->error.text, words);
}

#define TALK_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
