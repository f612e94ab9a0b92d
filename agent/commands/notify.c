/*
 * Each channel gets the message separately, in as many posts as it takes, with up to three
 * attempts; failed posts are not queued, as there is no agent to send them later.
 */
#include "agent/commands/notify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/gather.h"
#include "agent/core/hash.h"
#include "agent/core/when.h"
#include "agent/notify/announce.h"
#include "agent/notify/group.h"
#include "agent/notify/retry_policy.h"

const struct field notify_fields[] = {
	OPTION_LIST(struct notify_flags, notify_slack, "post the changes to these Slack channels",
		.flags = FIELD_MANY, .metavar = "CHANNEL..."),
	OPTION_STRING(struct notify_flags, cph_report_since, NULL, "post only changes from then on",
		.metavar = "DATE"),
	{0},
};

struct notify {
	struct arena *arena;
	const struct config *config;
	const struct receiver *receiver;
	struct strings channels;
	int64_t since, now; /* ms */
	struct change_record *records;
	size_t count, room, tests;
	struct engine *engine; /* while sending */
	enum exit_code code;
};

/* The message for one channel. */
struct post {
	struct notify *notify;
	const char *channel, *key, *payload, *receipt;
	struct attempt attempt;
	enum maybe_delivered maybe_delivered;
	int64_t tries;
};

static const struct receiver *find_slack(const struct config *config)
{
	for (size_t i = 0; i < config->receiver_count; i++)
		if (strcmp(config->receivers[i].notifier->name, slack_notifier.plugin.name) == 0)
			return &config->receivers[i];
	for (size_t i = 0; i < config->idle_count; i++)
		if (strcmp(config->idle[i].notifier->name, slack_notifier.plugin.name) == 0)
			return &config->idle[i];
	return NULL;
}

struct notify *notify_new(const struct notify_flags *flags, const struct config *config,
	const struct cli *cli, struct error *error)
{
	const struct receiver *receiver = find_slack(config);
	int64_t since = WHEN_ALWAYS;
	struct notify *notify;

	if (flags->cph_report_since &&
		!when_parse(flags->cph_report_since, cli->now, &since, error)) {
		(void)error_prefix(error, "--cph-report-since: ");
		return NULL;
	}
	error->kind = ERROR_NONE;
	if (flags->notify_slack.count == 0)
		return NULL;
	if (!receiver) {
		error_set(error, ERROR_USAGE, "--notify-slack: %s",
			config->missing ? config->missing
					: "the configuration has no section slack");
		return NULL;
	}
	if (!slack_notifier.accepts_destination(receiver->options, error)) {
		(void)error_prefix(error, "--notify-slack: ");
		return NULL;
	}
	notify = memory_new(1, sizeof *notify);
	*notify = (struct notify){.arena = arena_new(),
		.config = config,
		.receiver = receiver,
		.channels = flags->notify_slack,
		.since = since,
		.now = cli->now};
	return notify;
}

void notify_free(struct notify *notify)
{
	if (!notify)
		return;
	free(notify->records);
	arena_free(notify->arena);
	free(notify);
}

static void add_change(struct notify *notify, const struct analysis *analysis,
	const struct findings *findings, const struct change *change)
{
	struct change_record record = {
		.item = announce_change(notify->arena, analysis->test->name,
			analysis->test->environment, findings->series, change)};

	findings_basis(notify->arena, findings, change, &record.item);
	record.item.id = (int64_t)notify->count + 1;
	record.series = arena_strdup(notify->arena, findings->series->identity);
	announce_links(notify->arena, notify->config, &record);
	notify->records = memory_grow(
		notify->records, &notify->room, notify->count + 1, sizeof *notify->records);
	notify->records[notify->count++] = record;
}

void notify_add(struct notify *notify, const struct analysis *analysis)
{
	if (!notify)
		return;
	notify->tests++;
	for (size_t i = 0; i < analysis->data->count; i++) {
		const struct findings *findings = &analysis->findings[i];

		for (size_t j = 0; j < findings->count; j++) {
			const struct change *change = &findings->changes[j];

			if (findings->series->axis->times[change->index] >= notify->since &&
				!(findings->accepted && findings->accepted[j]))
				add_change(notify, analysis, findings, change);
		}
	}
}

/* By time, test, worst first. */
static const struct announcement *sorted(const struct notify *notify)
{
	struct announcement *items = arena_array(notify->arena, notify->count, sizeof *items);
	const struct change_record **records =
		arena_array(notify->arena, notify->count, sizeof *records);

	for (size_t i = 0; i < notify->count; i++)
		records[i] = &notify->records[i];
	group_sort(records, notify->count);
	for (size_t i = 0; i < notify->count; i++)
		items[i] = records[i]->item;
	return items;
}

static struct message message_of(const struct notify *notify)
{
	struct notice *notice;
	char when[WHEN_TEXT];

	if (notify->count > 0)
		return (struct message){.items = sorted(notify), .count = notify->count};
	notice = arena_alloc(notify->arena, sizeof *notice);
	*notice = (struct notice){.subject = "hunter-c did not detect any change points",
		.time = notify->now,
		.recovered = true};
	notice->text = arena_printf(notify->arena, "%zu test%s analyzed%s%s", notify->tests,
		notify->tests == 1 ? "" : "s", notify->since == WHEN_ALWAYS ? "" : ", since ",
		notify->since == WHEN_ALWAYS ? "" : when_format(notify->since, when));
	return (struct message){.kind = MESSAGE_NOTICE, .notice = notice};
}

static void carry(void *context);

static void give_up(struct post *post, const struct error *error)
{
	post->notify->code = exit_stronger(post->notify->code, (enum exit_code)cli_fail(error));
}

static void failed(struct post *post, const struct attempt *attempt, const struct error *error)
{
	struct failed_attempt setback = {.kind = error->kind,
		.retry = attempt->retry,
		.maybe_delivered = attempt->maybe_delivered,
		.retry_after = attempt->retry_after,
		.tries = ++post->tries,
		.once = true};
	int64_t wait;

	if (retry_policy_for(&setback, &wait) == RETRY_POLICY_TRY_AGAIN)
		engine_after(post->notify->engine, wait, carry, post);
	else
		give_up(post, error);
}

static void carried(struct attempt *attempt, bool done, const struct error *error, void *context)
{
	struct post *post = context;

	if (attempt->notice)
		log_message(LEVEL_WARN, attempt->notice);
	if (attempt->receipt)
		post->receipt = arena_strdup(post->notify->arena, attempt->receipt);
	post->maybe_delivered = attempt->maybe_delivered;
	if (!done) {
		failed(post, attempt, error);
	} else if (attempt->more) {
		post->tries = 0;
		engine_after(post->notify->engine, slack_notifier.spacing, carry, post);
	}
	arena_free(attempt->arena);
}

static void carry(void *context)
{
	struct post *post = context;
	struct notify *notify = post->notify;

	post->attempt = (struct attempt){.arena = arena_new(),
		.options = notify->receiver->options,
		.destination = post->channel,
		.key = post->key,
		.payload = post->payload,
		.made = notify->now,
		.now = notify->now,
		.maybe_delivered = post->maybe_delivered,
		.receipt = post->receipt,
		.retry_after = -1};
	engine_deliver(notify->engine, &slack_notifier, &post->attempt, carried, post);
}

/* The key identifies this run and this channel. */
static void begin(struct post *post, const struct message *message)
{
	struct notify *notify = post->notify;
	uint64_t sum = hash_add(HASH_START, post->channel, strlen(post->channel) + 1);
	struct message keyed = *message;
	struct buf payload = {0};
	struct error error;

	sum = hash_add(sum, &notify->now, sizeof notify->now);
	post->key = keyed.key = arena_printf(notify->arena, "%016" PRIx64, sum);
	if (slack_notifier.render(
		    &keyed, notify->receiver->options, post->channel, &payload, &error)) {
		post->payload = arena_strndup(notify->arena, payload.data, payload.length);
		carry(post);
	} else {
		give_up(post, &error);
	}
	buf_free(&payload);
}

enum exit_code notify_send(struct notify *notify)
{
	struct message message = message_of(notify);
	struct post *posts = arena_array(notify->arena, notify->channels.count, sizeof *posts);
	struct error error;

	notify->engine = engine_new(&(struct engine_options){.jobs = 1}, &error);
	if (!notify->engine)
		return (enum exit_code)cli_fail(&error);
	for (size_t i = 0; i < notify->channels.count; i++) {
		posts[i] = (struct post){.notify = notify, .channel = notify->channels.items[i]};
		begin(&posts[i], &message);
	}
	(void)engine_run(notify->engine);
	(void)engine_free(notify->engine);
	return notify->code;
}
