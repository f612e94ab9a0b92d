/*
 * The option table and its checks.
 */
#include "notifiers/slack/options.h"

#include <string.h>

#include "agent/base/arena.h"

static const char *const pictures[] = {"chart", "png", "none", NULL};

const struct field slack_fields[] = {
	OPTION_SECRET(struct slack_options, bot_token,
		"bot token (scopes chat:write, and channels:read and channels:history to check "
		"before posting again; for private channels groups:read and groups:history)",
		.alias = "token", .flags = FIELD_ENV),
	OPTION_STRING(struct slack_options, bot_token_file, NULL,
		"file with the token, read at each use"),
	OPTION_LIST(struct slack_options, channels,
		"channels the bot posts to, by name (#perf) or id", .alias = "channel",
		.flags = FIELD_ENV),
	OPTION_LIST(struct slack_options, triagers,
		"ids of the users (U012AB3CD) whose reactions triage the changes of a message "
		"(scope reactions:read); default: reactions are not read"),
	OPTION_MAP(struct slack_options, reactions,
		"triage state of each emoji: open, acknowledged, expected, ignored, infra, false "
		"or fixed; default: eyes: acknowledged, white_check_mark: expected, no_bell: "
		"ignored, x: false, construction: infra"),
	OPTION_CHOICE(struct slack_options, picture, "chart", pictures,
		"picture of the worst changes: chart (Slack's own, at most two), png (of the "
		"worst, in the thread; needs the scope files:write) or none"),
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
					"channels: \"%.80s\" contains a blank or a control "
					"character",
					channels->items[i]);
	}
	return true;
}

static const struct pair usual_reactions[] = {{"eyes", "acknowledged"},
	{"white_check_mark", "expected"}, {"no_bell", "ignored"}, {"x", "false"},
	{"construction", "infra"}};

static struct pairs reactions_of(const struct slack_options *options)
{
	if (options->reactions.count > 0)
		return options->reactions;
	return (struct pairs){usual_reactions, sizeof usual_reactions / sizeof *usual_reactions};
}

/* The name without colons around it, and without a skin tone (thumbsup::skin-tone-2). */
static const char *emoji_name(const char *text, size_t *length)
{
	text += *text == ':';
	*length = strcspn(text, ":");
	return text;
}

bool slack_triager(const struct slack_options *options, const char *user)
{
	for (size_t i = 0; i < options->triagers.count; i++)
		if (strcmp(options->triagers.items[i], user) == 0)
			return true;
	return false;
}

static bool same_emoji(const char *a, const char *b)
{
	size_t length_a, length_b;

	a = emoji_name(a, &length_a);
	b = emoji_name(b, &length_b);
	return length_a == length_b && memcmp(a, b, length_a) == 0;
}

bool slack_reaction_state(
	const struct slack_options *options, const char *emoji, enum triage_state *state)
{
	struct pairs map = reactions_of(options);

	for (size_t i = 0; i < map.count; i++)
		if (same_emoji(map.items[i].key, emoji))
			return triage_state_named(map.items[i].value, state);
	return false;
}

const char *slack_emoji_of(
	const struct slack_options *options, enum triage_state state, size_t *length)
{
	struct pairs map = reactions_of(options);

	for (size_t i = 0; i < map.count; i++)
		if (strcmp(map.items[i].value, triage_state_names[state]) == 0)
			return emoji_name(map.items[i].key, length);
	return NULL;
}

static bool check_triagers(const struct slack_options *options, struct error *error)
{
	static const char id[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	if (options->triagers.count > 0 && slack_by_webhook(options))
		return error_set(error, ERROR_USAGE,
			"triagers: a bot_token is needed: a webhook cannot read reactions");
	for (size_t i = 0; i < options->triagers.count; i++) {
		const char *user = options->triagers.items[i];

		if ((*user != 'U' && *user != 'W') || strlen(user) < 3 || user[strspn(user, id)])
			return error_set(error, ERROR_USAGE,
				"triagers: \"%.80s\" is not the id of a Slack user, such as "
				"U012AB3CD (in the profile: Copy member ID)",
				user);
	}
	return true;
}

static bool check_reactions(const struct pairs *reactions, struct error *error)
{
	for (size_t i = 0; i < reactions->count; i++) {
		const struct pair *pair = &reactions->items[i];
		enum triage_state state;
		size_t length;
		const char *name = emoji_name(pair->key, &length);

		if (length == 0 || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_+'-:")])
			return error_set(error, ERROR_USAGE,
				"reactions: \"%.80s\" is not the name of an emoji, such as eyes",
				pair->key);
		for (size_t k = 0; k < i; k++)
			if (same_emoji(reactions->items[k].key, pair->key))
				return error_set(error, ERROR_USAGE,
					"reactions: \"%.80s\" is listed twice", pair->key);
		if (triage_state_named(pair->value, &state))
			continue;
		error_set(error, ERROR_USAGE, "reactions: %.80s: \"%.80s\" is not a triage state",
			pair->key, pair->value);
		return field_hint(error, pair->value, triage_state_names + TRIAGE_OPEN,
			TRIAGE_STATES - TRIAGE_OPEN);
	}
	return true;
}

/* Hunter's configurations have a token without channels; the command line names them. */
bool slack_options_check(const void *context, struct error *error)
{
	const struct slack_options *options = context;
	const char *webhook = options->webhook_url;
	if (slack_by_bot(options) && slack_by_webhook(options))
		return error_set(
			error, ERROR_USAGE, "give either a bot token or a webhook, not both");
	if (!slack_by_bot(options) && !slack_by_webhook(options))
		return error_set(
			error, ERROR_USAGE, "bot_token (with channels) or webhook_url is missing");
	if (webhook && transfer_url_problem(webhook))
		return error_set(
			error, ERROR_USAGE, "webhook_url: %s", transfer_url_problem(webhook));
	if (transfer_url_problem(options->api_url))
		return error_set(
			error, ERROR_USAGE, "api_url: %s", transfer_url_problem(options->api_url));
	if (options->picture == SLACK_PNG && slack_by_webhook(options))
		return error_set(error, ERROR_USAGE,
			"picture: png needs a bot_token: a webhook cannot upload");
	if (!check_triagers(options, error) || !check_reactions(&options->reactions, error))
		return false;
	if (slack_by_bot(options) && options->channels.count == 0)
		return error_set(
			error, ERROR_DATA, "channels is missing: list the channels to post to");
	return check_channels(&options->channels, error);
}
