/*
 * Slack, by bot token (chat.postMessage, to any number of channels) or by incoming webhook (to the
 * channel it was made for).
 *
 * Slack says most of what goes wrong in the body of a 200. Its errors fall into three heaps: those
 * that pass (try again), those that somebody must mend (token, scope, channel) and those that will
 * never go through (a body it cannot read). An error that is not known is tried again; the caller
 * gives up in the end. Blocks that Slack refuses are sent once more as plain text.
 *
 * Where an earlier attempt may have arrived, a bot first looks for the message in the channel. A
 * webhook cannot look, and without the scope for it neither can a bot: then it is posted again.
 *
 * The webhook's address is itself a secret: messages name its option, never the address.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/secret.h"
#include "notifiers/slack_blocks.h"
#include "notifiers/slack_search.h"

enum { REASON_MOST = 60, SPACING_MS = 1100 };

static const char not_slack[] = "the answer is not Slack's";

struct slack_options {
	struct endpoint endpoint;
	const char *bot_token, *bot_token_file;
	const char *webhook_url, *webhook_url_file;
	const char *api_url;
	struct strings channels;
};

struct state {
	bool plain;   /* the blocks were refused, the text alone is under way */
	bool looking; /* the search is under way */
	struct slack_search search;
};

#define OPTION(member) offsetof(struct slack_options, member)

static const struct field slack_fields[] = {
	{.name = "bot_token",
		.alias = "token",
		.type = FIELD_SECRET,
		.offset = OPTION(bot_token),
		.flags = FIELD_ENV,
		.help = "token of the bot that posts (scopes chat:write, and channels:read and "
			"channels:history to look before it posts again; for private channels "
			"groups:read and groups:history)"},
	{.name = "bot_token_file",
		.type = FIELD_STRING,
		.offset = OPTION(bot_token_file),
		.help = "file that holds the token, read at each use"},
	{.name = "channels",
		.alias = "channel",
		.type = FIELD_LIST,
		.offset = OPTION(channels),
		.flags = FIELD_ENV,
		.help = "channels the bot posts to, by name (#perf) or id"},
	{.name = "webhook_url",
		.type = FIELD_SECRET,
		.offset = OPTION(webhook_url),
		.flags = FIELD_ENV,
		.help = "incoming webhook, instead of a bot; its channel is fixed"},
	{.name = "webhook_url_file",
		.type = FIELD_STRING,
		.offset = OPTION(webhook_url_file),
		.help = "file that holds the webhook's address, read at each use"},
	{.name = "api_url",
		.type = FIELD_STRING,
		.offset = OPTION(api_url),
		.initial = "https://slack.com/api/",
		.help = "address of Slack's API"},
	{0},
};

static bool by_bot(const struct slack_options *options)
{
	return options->bot_token || options->bot_token_file;
}

static bool by_webhook(const struct slack_options *options)
{
	return options->webhook_url || options->webhook_url_file;
}

/* A token without channels is what Hunter's files have, where the command line names them. */
static bool check(const void *context, struct error *error)
{
	const struct slack_options *options = context;
	const char *webhook = options->webhook_url;
	if (by_bot(options) && by_webhook(options))
		return error_set(
			error, ERROR_USAGE, "give either a bot token or a webhook, not both");
	if (!by_bot(options) && !by_webhook(options))
		return error_set(
			error, ERROR_USAGE, "bot_token (with channels) or webhook_url is missing");
	if ((options->bot_token && !*options->bot_token) || (webhook && !*webhook))
		return error_set(error, ERROR_DATA, "%s: it is empty",
			webhook ? "webhook_url" : "bot_token");
	if (webhook && strncmp(webhook, "https://", 8) != 0 && strncmp(webhook, "http://", 7) != 0)
		return error_set(
			error, ERROR_USAGE, "webhook_url: it must begin with http:// or https://");
	if (strncmp(options->api_url, "https://", 8) != 0 &&
		strncmp(options->api_url, "http://", 7) != 0)
		return error_set(
			error, ERROR_USAGE, "api_url: it must begin with http:// or https://");
	if (by_bot(options) && options->channels.count == 0)
		return error_set(
			error, ERROR_DATA, "channels is missing: where shall the bot post?");
	return true;
}

static bool destinations(
	const void *context, struct arena *arena, struct strings *out, struct error *error)
{
	static const char *const webhook[] = {""};
	const struct slack_options *options = context;

	(void)arena;
	if (!check(options, error)) {
		error->kind = ERROR_USAGE;
		return error_prefix(error, "slack: ");
	}
	if (by_webhook(options)) {
		*out = (struct strings){.items = webhook, .count = 1};
		return true;
	}
	*out = options->channels;
	return true;
}

static bool render(const struct message *message, const void *options, const char *destination,
	struct buf *payload, struct error *error)
{
	(void)options, (void)error;
	slack_render(message, *destination ? destination : NULL, payload);
	return true;
}

static enum step fail(struct delivery *delivery, bool retry, enum error_kind kind, const char *what,
	struct error *error)
{
	delivery->retry = retry;
	error_set(error, kind, "slack%s%s: %s", *delivery->destination ? " " : "",
		delivery->destination, what);
	return STEP_FAILED;
}

static enum step fail_for_now(struct delivery *delivery, const char *what, struct error *error)
{
	return fail(delivery, true, ERROR_DATA, what, error);
}

/* As fail_for_now, but the message may be there. */
static enum step fail_in_doubt(struct delivery *delivery, const char *what, struct error *error)
{
	delivery->doubt = by_bot(delivery->options) ? DOUBT_LOOK : DOUBT_BLIND;
	return fail_for_now(delivery, what, error);
}

static enum step fail_until_mended(struct delivery *delivery, const char *what, struct error *error)
{
	return fail(delivery, false, ERROR_USAGE, what, error);
}

static enum step fail_for_good(struct delivery *delivery, const char *what, struct error *error)
{
	return fail(delivery, false, ERROR_DATA, what, error);
}

/* The secret itself, or the one that the file holds. */
static bool secret(struct arena *arena, const char *value, const char *option, const char *path,
	const char **out, struct error *error)
{
	if (!value)
		return secret_read(arena, option, path, out, error);
	*out = value;
	return true;
}

static bool bot_token(struct delivery *delivery, const char **token, struct error *error)
{
	const struct slack_options *options = delivery->options;
	struct error problem;

	if (!by_bot(options))
		error_set(&problem, ERROR_USAGE, "bot_token is missing");
	else if (secret(delivery->arena, options->bot_token, "bot_token_file",
			 options->bot_token_file, token, &problem))
		return true;
	(void)fail_until_mended(delivery, problem.text, error);
	return false;
}

static enum step post(
	struct delivery *delivery, const char *body, struct transfer *next, struct error *error)
{
	static const struct pair json[] = {
		{.key = "Content-Type", .value = "application/json; charset=utf-8"}};
	const struct slack_options *options = delivery->options;
	struct error problem;

	*next = (struct transfer){.kind = TRANSFER_HTTP,
		.endpoint = &options->endpoint,
		.method = "POST",
		.headers = {.items = json, .count = 1},
		.body = body,
		.body_length = strlen(body)};
	if (by_webhook(options)) {
		if (!secret(delivery->arena, options->webhook_url, "webhook_url_file",
			    options->webhook_url_file, &next->url, &problem))
			return fail_until_mended(delivery, problem.text, error);
		if (strncmp(next->url, "https://", 8) != 0 && strncmp(next->url, "http://", 7) != 0)
			return fail_until_mended(
				delivery, "webhook_url is not an https address", error);
	} else {
		next->url =
			transfer_join_url(delivery->arena, options->api_url, "chat.postMessage");
		if (!bot_token(delivery, &next->bearer, error))
			return STEP_FAILED;
	}
	delivery->doubt = DOUBT_NONE;
	return STEP_TRANSFER;
}

static enum step look(struct delivery *delivery, struct transfer *next, struct error *error)
{
	const struct slack_options *options = delivery->options;
	struct state *state = delivery->state;

	*next = (struct transfer){
		.kind = TRANSFER_HTTP, .endpoint = &options->endpoint, .method = "GET"};
	next->url = transfer_join_url(delivery->arena, options->api_url, state->search.question);
	return bot_token(delivery, &next->bearer, error) ? STEP_TRANSFER : STEP_FAILED;
}

static enum step begin(struct delivery *delivery, struct transfer *next, struct error *error)
{
	struct state *state = arena_alloc(delivery->arena, sizeof *state);

	delivery->state = state;
	if (delivery->doubt == DOUBT_NONE || !by_bot(delivery->options))
		return post(delivery, delivery->payload, next, error);
	state->looking = true;
	state->search = (struct slack_search){.arena = delivery->arena,
		.channel = delivery->destination,
		.key = delivery->key,
		.since = delivery->made};
	slack_search_begin(&state->search);
	return look(delivery, next, error);
}

static enum step looked(struct delivery *delivery, const struct reply *reply, struct transfer *next,
	struct error *error)
{
	struct state *state = delivery->state;
	struct slack_search *search = &state->search;

	switch (slack_search_take(search, reply)) {
	case SEARCH_ON: return look(delivery, next, error);
	case SEARCH_FOUND: delivery->receipt = search->stamp; return STEP_DONE;
	case SEARCH_LATER: return fail_in_doubt(delivery, search->reason, error);
	case SEARCH_DENIED:
		delivery->notice = arena_printf(delivery->arena,
			"slack %s: it cannot be looked up whether a message has arrived (%s), so it"
			" is posted again and may be there twice",
			delivery->destination, search->reason);
		break;
	case SEARCH_ABSENT: break;
	}
	state->looking = false;
	return post(delivery, delivery->payload, next, error);
}

static bool among(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(word, *list) == 0)
			return true;
	return false;
}

/* The message without its blocks, in the arena; NULL if it is no message of ours. */
static const char *without_blocks(struct arena *arena, const char *payload)
{
	json_t *message = json_loads(payload, 0, NULL);
	char *text = NULL;
	const char *plain;

	if (message && json_object_del(message, "blocks") == 0)
		text = json_dumps(message, JSON_COMPACT);
	plain = arena_strdup(arena, text);
	free(text);
	json_decref(message);
	return plain;
}

static enum step refused(
	struct delivery *delivery, const char *reason, struct transfer *next, struct error *error)
{
	static const char *const mend[] = {"not_authed", "invalid_auth", "account_inactive",
		"token_revoked", "token_expired", "no_permission", "missing_scope",
		"not_allowed_token_type", "channel_not_found", "not_in_channel", "is_archived",
		"channel_is_archived", "restricted_action", "access_denied", "ekm_access_denied",
		"enterprise_is_restricted", "org_login_required", "two_factor_setup_required",
		"team_access_not_granted", "messages_tab_disabled", "no_service", "no_team",
		"action_prohibited", "posting_to_general_channel_denied", "invalid_token", NULL};
	static const char *const blocks[] = {"invalid_blocks", "invalid_blocks_format",
		"msg_blocks_too_long", "invalid_attachments", NULL};
	static const char *const forever[] = {"no_text", "msg_too_long", "invalid_arguments",
		"invalid_arg_name", "invalid_array_arg", "invalid_charset", "invalid_form_data",
		"invalid_post_type", "missing_post_type", "invalid_payload", "invalid_json",
		"json_not_object", "metadata_too_large", "invalid_metadata_format",
		"too_many_attachments", NULL};
	static const char *const not_yet[] = {
		"ratelimited", "rate_limited", "message_limit_exceeded", NULL};
	struct state *state = delivery->state;
	const char *plain;

	if (among(reason, blocks) && !state->plain &&
		(plain = without_blocks(delivery->arena, delivery->payload))) {
		state->plain = true;
		return post(delivery, plain, next, error);
	}
	if (among(reason, mend))
		return fail_until_mended(delivery, reason, error);
	if (among(reason, forever) || among(reason, blocks))
		return fail_for_good(delivery, reason, error);
	if (among(reason, not_yet))
		return fail_for_now(delivery, reason, error);
	return fail_in_doubt(delivery, reason, error);
}

/*
 * Slack's one-word reason in a body. Anything else is not shown: an error page may repeat the
 * address it was asked for, and a webhook's address is a secret.
 */
static const char *reason_word(struct delivery *delivery, const struct reply *reply)
{
	size_t length = strspn(reply->body, "abcdefghijklmnopqrstuvwxyz0123456789_");
	const char *rest = reply->body + length;

	if (length == 0 || length > REASON_MOST || rest[strspn(rest, "\r\n")])
		return not_slack;
	return arena_strndup(delivery->arena, reply->body, length);
}

/* {"ok": true, "channel": "C1", "ts": "1503435956.000247"} or {"ok": false, "error": "..."} */
static enum step api_answer(struct delivery *delivery, const struct reply *reply,
	struct transfer *next, struct error *error)
{
	json_t *answer = json_loadb(reply->body, reply->length, 0, NULL);
	json_t *ok = json_object_get(answer, "ok");
	const char *stamp = json_string_value(json_object_get(answer, "ts"));
	const char *reason = json_string_value(json_object_get(answer, "error"));
	enum step step;

	if (json_is_true(ok)) {
		delivery->receipt = stamp ? arena_strdup(delivery->arena, stamp) : NULL;
		step = STEP_DONE;
	} else if (json_is_false(ok) && reason) {
		step = refused(delivery,
			arena_strndup(delivery->arena, reason, strnlen(reason, REASON_MOST)), next,
			error);
	} else {
		step = fail_in_doubt(delivery, not_slack, error);
	}
	json_decref(answer);
	return step;
}

static enum step http_error(struct delivery *delivery, const struct reply *reply,
	struct transfer *next, struct error *error)
{
	const char *words = reason_word(delivery, reply);
	const char *what =
		arena_printf(delivery->arena, "HTTP status %d: %s", reply->status, words);

	if (reply->status == 429)
		return fail_for_now(delivery, "too many messages (HTTP status 429)", error);
	if (reply->status >= 500 || reply->status == 408 || reply->status < 300)
		return fail_in_doubt(delivery, what, error);
	if (reply->status < 400)
		return fail_for_now(delivery, what, error);
	if (reply->status == 400)
		return refused(delivery, words, next, error);
	return fail_until_mended(delivery, what, error);
}

static enum step step(struct delivery *delivery, const struct reply *last, struct transfer *next,
	struct error *error)
{
	delivery->retry = false;
	delivery->retry_after = -1;
	if (!last)
		return begin(delivery, next, error);
	delivery->retry_after = last->retry_after;
	if (((struct state *)delivery->state)->looking)
		return looked(delivery, last, next, error);
	if (last->kind == REPLY_UNREACHABLE)
		return fail_for_now(
			delivery, last->problem ? last->problem : "not reachable", error);
	if (last->kind != REPLY_ANSWER)
		return fail_in_doubt(delivery, last->problem ? last->problem : "no answer", error);
	if (last->status != 200)
		return http_error(delivery, last, next, error);
	if (by_bot(delivery->options))
		return api_answer(delivery, last, next, error);
	if (strcmp(reason_word(delivery, last), "ok") == 0)
		return STEP_DONE;
	return fail_in_doubt(delivery, reason_word(delivery, last), error);
}

const struct notifier slack_notifier = {
	.name = "slack",
	.summary = "posts to Slack channels, by bot token or incoming webhook",
	.fields = slack_fields,
	.options_size = sizeof(struct slack_options),
	.http = true,
	.check = check,
	.spacing = SPACING_MS,
	.destinations = destinations,
	.render = render,
	.step = step,
};
