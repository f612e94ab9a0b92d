/*
 * Error codes of chat.postMessage, chat.update, reactions.get, incoming webhooks,
 * users.conversations and conversations.history.
 */
#include "notifiers/slack/reason.h"

#include <stddef.h>
#include <string.h>

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

enum slack_reason slack_reason(const char *word)
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
