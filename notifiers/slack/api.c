/*
 * Error codes of chat.postMessage, chat.update, reactions.get, incoming webhooks,
 * users.conversations and conversations.history.
 */
#include "notifiers/slack/api.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/secret.h"
#include "notifiers/http_json.h"
#include "notifiers/slack/options.h"

enum { WORD_MOST = 60 };

const char slack_alien[] = "the answer is not Slack's";

static const char *const temporary[] = {
	"ratelimited", "rate_limited", "message_limit_exceeded", NULL};

static const char *const config[] = {"not_authed", "invalid_auth", "account_inactive",
	"token_revoked", "token_expired", "no_permission", "missing_scope",
	"not_allowed_token_type", "channel_not_found", "not_in_channel", "is_archived",
	"channel_is_archived", "restricted_action", "restricted_action_read_only_channel",
	"access_denied", "ekm_access_denied", "enterprise_is_restricted", "org_login_required",
	"two_factor_setup_required", "team_access_not_granted", "messages_tab_disabled",
	"no_service", "no_team", "action_prohibited", "posting_to_general_channel_denied",
	"invalid_token", "team_disabled", "unknown_method", NULL};

static const char *const permanent[] = {"no_text", "msg_too_long", "invalid_arguments",
	"invalid_arg_name", "invalid_array_arg", "invalid_charset", "invalid_form_data",
	"invalid_post_type", "missing_post_type", "invalid_payload", "invalid_json",
	"json_not_object", "metadata_too_large", "invalid_metadata_format",
	"invalid_metadata_schema", "metadata_must_be_sent_from_app", "too_many_attachments",
	"invalid_cursor", "invalid_limit", "invalid_ts_latest", "invalid_ts_oldest",
	"invalid_types", "method_not_supported_for_channel_type", "message_not_found",
	"bad_timestamp", "no_item_specified", "cant_update_message", "edit_window_closed",
	"is_inactive", "block_mismatch", "message_not_owned_by_app", NULL};

static const char *const blocks[] = {"invalid_blocks", "invalid_blocks_format",
	"msg_blocks_too_long", "invalid_attachments", NULL};

static const char *const thread[] = {"thread_not_found", "invalid_thread_ts",
	"cannot_reply_to_message", "restricted_action_thread_locked",
	"restricted_action_non_threadable_channel", NULL};

static enum slack_reason reason_of(const char *word)
{
	static const struct {
		enum slack_reason reason;
		const char *const *words;
	} classes[] = {{SLACK_TEMPORARY, temporary}, {SLACK_CONFIG, config},
		{SLACK_PERMANENT, permanent}, {SLACK_BLOCKS, blocks}, {SLACK_THREAD, thread}};

	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		for (const char *const *at = classes[i].words; *at; at++)
			if (strcmp(word, *at) == 0)
				return classes[i].reason;
	return SLACK_UNKNOWN;
}

/* A body that is one code; "" for any other. */
static const char *code_of(struct arena *arena, const struct reply *reply)
{
	size_t length = strspn(reply->body, "abcdefghijklmnopqrstuvwxyz0123456789_");
	const char *rest = reply->body + length;

	return length > WORD_MOST || rest[strspn(rest, "\r\n")]
		       ? ""
		       : arena_strndup(arena, reply->body, length);
}

/* {"ok": true, ...}, {"ok": false, "error": "missing_scope", "needed": "reactions:read"} */
static void read_json(struct arena *arena, const struct reply *reply, struct slack_answer *answer)
{
	json_t *json = json_loadb(reply->body, reply->length, 0, NULL);
	const json_t *ok = json_object_get(json, "ok");
	const char *error = json_text(json, "error");
	const char *needed = json_text(json, "needed");

	if (json_is_true(ok)) {
		answer->reason = SLACK_DONE;
		answer->json = json;
		return;
	}
	if (json_is_false(ok) && error) {
		answer->reason = reason_of(error);
		answer->error = secret_cut(arena, error, WORD_MOST, &reply->secrets);
		answer->words =
			needed && *needed
				? arena_printf(arena, "%s: %s", answer->error,
					  secret_cut(arena, needed, WORD_MOST, &reply->secrets))
				: answer->error;
	}
	json_decref(json);
}

struct slack_answer slack_read(struct arena *arena, const struct reply *reply, bool webhook)
{
	struct slack_answer answer = {.reason = SLACK_UNKNOWN, .error = "", .words = slack_alien};
	int status = reply->status;
	const char *code;

	if (reply->kind != REPLY_ANSWER) {
		if (reply->kind == REPLY_UNREACHABLE)
			answer.reason = SLACK_TEMPORARY;
		answer.words = reply->problem ? arena_strdup(arena, reply->problem) : "no answer";
		return answer;
	}
	if (status == 200 && !webhook) {
		read_json(arena, reply, &answer);
		return answer;
	}
	code = code_of(arena, reply);
	if (status == 200) {
		if (strcmp(code, "ok") == 0)
			answer.reason = SLACK_DONE;
		else if (*code)
			answer.words = code;
		return answer;
	}
	answer.words = arena_printf(arena, "HTTP status %d%s%s", status, *code ? ": " : "", code);
	if (status == 429) {
		answer.reason = SLACK_TEMPORARY;
		answer.words = "too many messages (HTTP status 429)";
	} else if (status == 400)
		answer.reason = reason_of(code);
	else if (status >= 300 && status < 500 && status != 408)
		answer.reason = SLACK_CONFIG;
	return answer;
}

enum step slack_fail(struct attempt *attempt, bool retry, enum error_kind kind, const char *what)
{
	attempt->retry = retry;
	error_set(attempt->error, kind, "slack%s%s: %s", *attempt->destination ? " " : "",
		attempt->destination, what);
	return STEP_FAILED;
}

enum step slack_refused(struct attempt *attempt, const struct slack_answer *answer)
{
	return slack_fail(attempt,
		answer->reason == SLACK_UNKNOWN || answer->reason == SLACK_TEMPORARY,
		answer->reason == SLACK_CONFIG ? ERROR_USAGE : ERROR_DATA, answer->words);
}

enum step slack_call(struct attempt *attempt, const char *method, const char *body)
{
	static const struct pair json[] = {{"Content-Type", "application/json; charset=utf-8"}};
	const struct slack_options *options = attempt->options;
	struct error problem;

	*attempt->next = (struct transfer){.kind = TRANSFER_HTTP,
		.endpoint = &options->endpoint,
		.method = body ? "POST" : "GET",
		.url = transfer_join_url(attempt->arena, options->api_url, method),
		.headers = {json, body != NULL},
		.body = body,
		.body_length = body ? strlen(body) : 0};
	if (!slack_by_bot(options))
		return slack_fail(attempt, false, ERROR_USAGE, "bot_token is missing");
	if (!secret_pick(attempt->arena, options->bot_token, "bot_token_file",
		    options->bot_token_file, &attempt->next->bearer, &problem))
		return slack_fail(attempt, false, ERROR_USAGE, problem.text);
	return STEP_TRANSFER;
}

enum { WORDS = 4 };

struct slack_receipt slack_receipt_read(struct arena *arena, const char *text)
{
	char *rest = arena_strdup(arena, text ? text : "");
	const char *words[WORDS];

	for (size_t i = 0; i < WORDS; i++)
		words[i] = strtok_r(rest, " ", &rest);
	if (!words[0])
		return (struct slack_receipt){0};
	return (struct slack_receipt){.thread = words[0],
		.posts = words[1] ? strtoul(words[1], NULL, 10) : 1,
		.stamp = words[2],
		.channel = words[3]};
}

/* Words of a server: a blank within would split them. */
static bool is_word(const char *text)
{
	return text && *text && !strchr(text, ' ');
}

const char *slack_receipt(struct arena *arena, const struct slack_receipt *receipt)
{
	if (!is_word(receipt->stamp) || !is_word(receipt->channel))
		return arena_printf(arena, "%s %zu", receipt->thread, receipt->posts);
	return arena_printf(arena, "%s %zu %s %s", receipt->thread, receipt->posts, receipt->stamp,
		receipt->channel);
}
