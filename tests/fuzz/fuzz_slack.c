/*
 * Slack's answers: whatever a server says, the notifier ends in sent, failed with words, or one
 * more post, and a search for an earlier one ends. The first byte chooses bot or webhook, the
 * status, whether there is a search and whether it goes into a thread, the rest is the body.
 */
#include <stdlib.h>
#include <string.h>

#include "notifiers/notifier.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int statuses[] = {200, 200, 200, 400, 404, 429, 500, 302};

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

static void play(struct arena *arena, const void *options, const struct reply *reply, bool doubtful,
	bool threaded)
{
	struct attempt attempt = {.arena = arena,
		.options = options,
		.destination = "#perf",
		.key = "k-1",
		.maybe_delivered = doubtful ? MAYBE_DELIVERED_CHECK : MAYBE_DELIVERED_NO,
		.thread = threaded ? "1503.02 1" : NULL,
		.payload =
			"{\"channel\":\"#perf\",\"text\":\"t\",\"blocks\":[]}\n{\"text\":\"2\"}"};
	struct transfer transfer;
	struct error error = {0};
	enum step step = notifier_step(&slack_notifier, &attempt, NULL, &transfer, &error);

	for (int posts = 0; step == STEP_TRANSFER; posts++) {
		check(posts < (doubtful ? 110 : 3));
		step = notifier_step(&slack_notifier, &attempt, reply, &transfer, &error);
	}
	if (step == STEP_FAILED)
		check(error.kind != ERROR_NONE && *error.text);
	else
		check(!attempt.more || attempt.receipt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	void *options = arena_alloc(arena, slack_notifier.plugin.options_size);
	struct reply reply = {.kind = REPLY_ANSWER, .retry_after = -1};

	if (size > 0) {
		field_defaults(slack_notifier.plugin.fields, options);
		if (data[0] & 8)
			set_option(arena, options, "webhook_url", "https://hooks.example/x");
		else
			set_option(arena, options, "bot_token", "xoxb");
		reply.status = statuses[data[0] & 7];
		reply.body = arena_strndup(arena, (const char *)data + 1, size - 1);
		reply.length = size - 1;
		play(arena, options, &reply, data[0] & 16, data[0] & 32);
	}
	arena_free(arena);
	return 0;
}
