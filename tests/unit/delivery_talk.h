/*
 * A talk with a notifier: its options, one delivery, what it asks for, and what it is answered.
 * cmocka's headers come before it.
 */
#ifndef TESTS_DELIVERY_TALK_H
#define TESTS_DELIVERY_TALK_H

#include <stdlib.h>
#include <string.h>

#include "notifiers/notifier.h"

struct fixture {
	const struct notifier *notifier;
	struct arena *arena;
	void *options;
	struct attempt attempt;
	struct transfer transfer;
	struct error error;
	struct buf out;
};

static inline void set_option(struct fixture *fixture, const char *name, const char *value)
{
	const struct field *field = field_find(fixture->notifier->plugin.fields, name);

	if (!field)
		field = field_find(endpoint_fields, name);
	assert_non_null(field);
	if (!field_parse(field, fixture->options, value, fixture->arena, &fixture->error))
		fail_msg("%s", fixture->error.text);
}

/* With the notifier's defaults, and a delivery to `destination`. */
static inline struct fixture *talk_new(
	const struct notifier *notifier, const char *destination, const char *payload)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);

	fixture->notifier = notifier;
	fixture->arena = arena_new();
	fixture->options = arena_alloc(fixture->arena, notifier->plugin.options_size);
	field_defaults(endpoint_fields, fixture->options);
	field_defaults(notifier->plugin.fields, fixture->options);
	fixture->attempt = (struct attempt){.arena = fixture->arena,
		.options = fixture->options,
		.destination = destination,
		.key = "k-1",
		.payload = payload};
	return fixture;
}

static inline int teardown(void **state)
{
	struct fixture *fixture = *state;

	buf_free(&fixture->out);
	arena_free(fixture->arena);
	free(fixture);
	return 0;
}

static inline enum step take(struct fixture *fixture, const struct reply *last)
{
	return notifier_step(
		fixture->notifier, &fixture->attempt, last, &fixture->transfer, &fixture->error);
}

static inline enum step begin(struct fixture *fixture)
{
	return take(fixture, NULL);
}

static inline enum step answer(struct fixture *fixture, int status, const char *body)
{
	const struct reply reply = {.kind = REPLY_ANSWER,
		.status = status,
		.retry_after = -1,
		.body = body,
		.length = strlen(body)};

	return take(fixture, &reply);
}

#endif
