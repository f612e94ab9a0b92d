/*
 * The options of section `slack`: a bot with channels, or an incoming webhook.
 */
#ifndef NOTIFIERS_SLACK_OPTIONS_H
#define NOTIFIERS_SLACK_OPTIONS_H

#include "agent/base/transfer.h"
#include "agent/model/triage.h"

/* The pictures of a message's worst changes. */
enum slack_picture { SLACK_CHART, SLACK_PNG, SLACK_NO_PICTURE };

struct slack_options {
	struct endpoint endpoint;
	const char *bot_token, *bot_token_file;
	const char *webhook_url, *webhook_url_file;
	const char *api_url;
	int picture; /* enum slack_picture */
	struct strings channels;
	struct strings triagers; /* ids of users */
	struct pairs reactions;  /* emoji, with or without colons -> triage state; none: default */
};

extern const struct field slack_fields[];

bool slack_by_bot(const struct slack_options *options);
bool slack_by_webhook(const struct slack_options *options);

/* Whether the user's reactions count. */
bool slack_triager(const struct slack_options *options, const char *user);

/* The triage state of a reaction; false: none. Skin tones do not matter. */
bool slack_reaction_state(
	const struct slack_options *options, const char *emoji, enum triage_state *state);

/* The emoji of a triage state, its name without colons, of that length; or NULL. */
const char *slack_emoji_of(
	const struct slack_options *options, enum triage_state state, size_t *length);

/* The check of slack_notifier. */
bool slack_options_check(const void *options, struct error *error);

#endif
