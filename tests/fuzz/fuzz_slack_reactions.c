/*
 * reactions.get and chat.update: whatever a server answers, a follow-up ends, and what it notes of
 * the reactions is read again to the same. The first byte chooses reading or editing and the
 * status; up to a line break follow notes of before, the rest is the body.
 */
#include <stdlib.h>
#include <string.h>

#include "notifiers/notifier.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int statuses[] = {200, 200, 200, 429};

static void check(bool condition)
{
	if (!condition)
		abort();
}

static void set_option(struct arena *arena, void *options, const char *name, const char *value)
{
	struct error error;

	check(field_parse(
		field_find(slack_notifier.plugin.fields, name), options, value, arena, &error));
}

static enum step play(struct attempt *attempt, const struct reply *reply)
{
	struct transfer transfer;
	struct error error = {0};
	enum step step = notifier_step(&slack_notifier, attempt, NULL, &transfer, &error);

	for (int requests = 0; step == STEP_TRANSFER; requests++) {
		check(requests < 3);
		step = notifier_step(&slack_notifier, attempt, reply, &transfer, &error);
	}
	check(step == STEP_DONE || (error.kind != ERROR_NONE && *error.text));
	return step;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct announced_change change = {.triage = {.state = TRIAGE_OPEN}};
	struct arena *arena = arena_new();
	void *options = arena_alloc(arena, slack_notifier.plugin.options_size);
	struct follow_up follow_up = {.changes = &change, .count = 1};
	struct attempt attempt = {.arena = arena,
		.options = options,
		.destination = "#perf",
		.key = "k-1",
		.now = 1625184000000,
		.follow_up = &follow_up,
		.receipt = "1.2 1 1.2 C1",
		.payload = "{\"channel\":\"#perf\",\"text\":\"t\",\"blocks\":[]}"};
	const uint8_t *line = size > 1 ? memchr(data + 1, '\n', size - 1) : NULL;
	struct reply reply = {.kind = REPLY_ANSWER, .retry_after = -1};
	const char *taken;

	if (line) {
		field_defaults(slack_notifier.plugin.fields, options);
		set_option(arena, options, "bot_token", "xoxb");
		set_option(arena, options, "triagers", "U1,U2");
		follow_up.kind = data[0] & 4 ? FOLLOW_UP_AMEND : FOLLOW_UP_READ;
		follow_up.taken =
			arena_strndup(arena, (const char *)data + 1, (size_t)(line - data - 1));
		reply.status = statuses[data[0] & 3];
		reply.length = size - (size_t)(line + 1 - data);
		reply.body = arena_strndup(arena, (const char *)line + 1, reply.length);
		if (play(&attempt, &reply) == STEP_DONE && follow_up.kind == FOLLOW_UP_READ) {
			taken = follow_up.taken;
			follow_up.state = 0;
			follow_up.undone = 0;
			check(play(&attempt, &reply) == STEP_DONE);
			check(follow_up.state == 0 && follow_up.undone == 0);
			check(strcmp(follow_up.taken, taken) == 0);
		}
	}
	arena_free(arena);
	return 0;
}
