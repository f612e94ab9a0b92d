/* Each channel gets the message separately. */
#include "agent/commands/notify.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/commands/gather.h"
#include "agent/commands/post.h"
#include "agent/decide/group.h"
#include "agent/notify/announce.h"

const struct field notify_fields[] = {
	OPTION_LIST(struct notify_flags, notify_slack, "post the changes to these Slack channels",
		.flags = FIELD_MANY, .metavar = "CHANNEL..."),
	OPTION_STRING(struct notify_flags, cph_report_since, NULL,
		"post only changes since this time", .metavar = "DATE"),
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
	int code;
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
		cli_plural(notify->tests), notify->since == WHEN_ALWAYS ? "" : ", since ",
		notify->since == WHEN_ALWAYS ? "" : when_format(notify->since, when));
	return (struct message){.kind = MESSAGE_NOTICE, .notice = notice};
}

static void failed(struct post *post, const struct error *error)
{
	struct notify *notify = post->context;

	notify->code = exit_stronger(notify->code, cli_fail(error));
}

int notify_send(struct notify *notify)
{
	struct message message = message_of(notify);
	struct post *posts = arena_array(notify->arena, notify->channels.count, sizeof *posts);
	struct error error;

	notify->engine = engine_new(&(struct engine_options){.jobs = 1}, &error);
	if (!notify->engine)
		return cli_fail(&error);
	for (size_t i = 0; i < notify->channels.count; i++) {
		posts[i] = (struct post){.engine = notify->engine,
			.arena = notify->arena,
			.receiver = notify->receiver,
			.destination = notify->channels.items[i],
			.now = notify->now,
			.failed = failed,
			.context = notify};
		post_send(&posts[i], &message);
	}
	(void)engine_run(notify->engine);
	(void)engine_free(notify->engine);
	return notify->code;
}
