/*
 * The options of section `slack`: a bot with channels, or an incoming webhook.
 */
#ifndef NOTIFIERS_SLACK_OPTIONS_H
#define NOTIFIERS_SLACK_OPTIONS_H

#include "agent/core/transfer.h"

struct slack_options {
	struct endpoint endpoint;
	const char *bot_token, *bot_token_file;
	const char *webhook_url, *webhook_url_file;
	const char *api_url;
	struct strings channels;
};

extern const struct field slack_fields[];

bool slack_by_bot(const struct slack_options *options);
bool slack_by_webhook(const struct slack_options *options);

/* The check of slack_notifier. */
bool slack_check(const void *options, struct error *error);

#endif
