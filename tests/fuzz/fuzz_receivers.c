/*
 * Answers to receivers: whatever a server says, an attempt and a follow-up end, and fail with
 * words. The first byte chooses the receiver, the second the status, and whether it is a follow-up
 * and in doubt; the rest is the body.
 */
#include <stdlib.h>
#include <string.h>

#include "notifiers/notifier.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REQUESTS = 200 };

static const int statuses[] = {200, 201, 400, 403, 404, 410, 422, 429, 501, 204};

/* With the options that it needs; new ones come last, as the corpus has their numbers. */
static const struct {
	const struct notifier *notifier;
	const char *options[4][2];
} receivers[] = {
	{&discord_notifier, {{"url", "https://discord.example/api/webhooks/1/x"}}},
	{&mattermost_notifier, {{"url", "https://chat.example/hooks/x"}}},
	{&msteams_notifier, {{"url", "https://flow.example/invoke?sig=x"}}},
	{&alertmanager_notifier, {{"urls", "http://am1.example:9093,http://am2.example:9093"}}},
	{&pagerduty_notifier, {{"routing_key", "0123456789abcdef0123456789abcdef"}}},
	{&grafana_notifier, {{"url", "https://grafana.example/"}}},
	{&github_notifier, {{"repository", "acme/shop"}, {"token", "x"}, {"close", "true"}}},
	{&gitlab_notifier,
		{{"project", "acme/shop"}, {"token", "x"}, {"on", "commit"}, {"close", "true"}}},
	{&jira_notifier, {{"project", "PERF"}, {"url", "https://jira.example"}, {"close", "true"}}},
};

static void check(bool condition)
{
	if (!condition)
		abort();
}

static void set_options(struct arena *arena, void *options, const struct plugin *plugin,
	const char *const given[4][2])
{
	struct error error;

	field_defaults(endpoint_fields, options);
	field_defaults(plugin->fields, options);
	for (size_t i = 0; i < 4 && given[i][0]; i++) {
		const struct field *field = field_find(plugin->fields, given[i][0]);

		field = field ? field : field_find(endpoint_fields, given[i][0]);
		check(field && field_parse(field, options, given[i][1], arena, &error));
	}
}

static void play(
	const struct notifier *notifier, struct attempt *attempt, const struct reply *reply)
{
	struct transfer transfer;
	struct error error = {0};
	const struct reply *last = NULL;
	enum step step;
	int requests = 0;

	while ((step = notifier_step(notifier, attempt, last, &transfer, &error)) ==
		STEP_TRANSFER) {
		check(requests++ < REQUESTS && transfer.url && transfer.method);
		last = reply;
	}
	check(step == STEP_DONE || (error.kind != ERROR_NONE && *error.text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena;
	struct announced_change change = {.item = {.id = 1,
						  .commit_after = "6dcb09b5",
						  .test = "checkout",
						  .metric = "p99",
						  .direction = -1,
						  .change = {.level_before = 1, .level_after = 2}}};
	struct follow_up follow_up = {.kind = FOLLOW_UP_AMEND, .changes = &change, .count = 1};
	struct reply reply = {.kind = REPLY_ANSWER, .retry_after = -1};
	struct attempt attempt = {.destination = "", .key = "k-1", .receipt = NULL, .thread = NULL};
	struct buf payload = {0};
	struct error error;

	if (size < 2)
		return 0;
	arena = arena_new();
	size_t which = data[0] % (sizeof receivers / sizeof *receivers);
	const struct notifier *notifier = receivers[which].notifier;
	void *options = arena_alloc(arena, notifier->plugin.options_size);

	set_options(arena, options, &notifier->plugin, receivers[which].options);
	struct message message = {.key = "k-1", .items = &change.item, .count = 1};

	check(notifier_render(notifier, &message, options, "", &payload, &error));
	attempt.arena = arena;
	attempt.options = options;
	attempt.payload = buf_keep(&payload, arena);
	attempt.maybe_delivered = data[1] & 64 ? MAYBE_DELIVERED_CHECK : MAYBE_DELIVERED_NO;
	if (notifier->follow_up && data[1] & 128) {
		attempt.follow_up = &follow_up;
		attempt.receipt = data[1] & 64 ? "issue 12 comment 3" : "issue 12";
		change.state = data[1] & 32 ? ANNOUNCED_RECOVERED : ANNOUNCED_STANDS;
	} else if (data[1] & 32)
		attempt.thread = "issue 12";
	reply.status = statuses[(data[1] & 31) % (sizeof statuses / sizeof *statuses)];
	reply.body = arena_strndup(arena, (const char *)data + 2, size - 2);
	reply.length = size - 2;
	play(notifier, &attempt, &reply);
	arena_free(arena);
	return 0;
}
