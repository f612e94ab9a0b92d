/*
 * The option table and its checks.
 */
#include "notifiers/slack/options.h"

#include "agent/core/secret.h"

const struct field slack_fields[] = {
	OPTION_SECRET(struct slack_options, bot_token,
		"token of the bot that posts (scopes chat:write, and channels:read and "
		"channels:history to look before it posts again; for private channels groups:read "
		"and groups:history)",
		.alias = "token", .flags = FIELD_ENV),
	OPTION_STRING(struct slack_options, bot_token_file, NULL,
		"file that holds the token, read at each use"),
	OPTION_LIST(struct slack_options, channels,
		"channels the bot posts to, by name (#perf) or id", .alias = "channel",
		.flags = FIELD_ENV),
	OPTION_SECRET(struct slack_options, webhook_url,
		"incoming webhook, instead of a bot; its channel is fixed", .flags = FIELD_ENV),
	OPTION_STRING(struct slack_options, webhook_url_file, NULL,
		"file that holds the webhook's address, read at each use"),
	OPTION_STRING(
		struct slack_options, api_url, "https://slack.com/api/", "address of Slack's API"),
	{0},
};

bool slack_by_bot(const struct slack_options *options)
{
	return options->bot_token || options->bot_token_file;
}

bool slack_by_webhook(const struct slack_options *options)
{
	return options->webhook_url || options->webhook_url_file;
}

static bool check_channels(const struct strings *channels, struct error *error)
{
	for (size_t i = 0; i < channels->count; i++) {
		const char *name = channels->items[i] + (*channels->items[i] == '#');
		if (!*name)
			return error_set(error, ERROR_USAGE, "channels: one of them is empty");
		for (const char *at = name; *at; at++)
			if ((unsigned char)*at <= ' ' || *at == 0x7f)
				return error_set(error, ERROR_USAGE,
					"channels: \"%.80s\" has a blank or a control character "
					"in it",
					channels->items[i]);
	}
	return true;
}

/* Hunter's configurations have a token without channels; the command line names them. */
bool slack_check(const void *context, struct error *error)
{
	const struct slack_options *options = context;
	const char *webhook = options->webhook_url;
	if (slack_by_bot(options) && slack_by_webhook(options))
		return error_set(
			error, ERROR_USAGE, "give either a bot token or a webhook, not both");
	if (!slack_by_bot(options) && !slack_by_webhook(options))
		return error_set(
			error, ERROR_USAGE, "bot_token (with channels) or webhook_url is missing");
	if ((options->bot_token && !secret_check("bot_token", options->bot_token, error)) ||
		(webhook && !secret_check("webhook_url", webhook, error)))
		return false;
	if (webhook && transfer_url_problem(webhook))
		return error_set(
			error, ERROR_USAGE, "webhook_url: %s", transfer_url_problem(webhook));
	if (transfer_url_problem(options->api_url))
		return error_set(
			error, ERROR_USAGE, "api_url: %s", transfer_url_problem(options->api_url));
	if (slack_by_bot(options) && options->channels.count == 0)
		return error_set(error, ERROR_DATA,
			"channels is missing: name the channels that the bot posts to");
	return check_channels(&options->channels, error);
}
