/*
 * Mattermost, by an incoming webhook: an attachment with the message in Markdown.
 *
 * The address holds the secret, so error messages do not show it. It has no idempotency key and
 * cannot be queried, so after a lost answer the message is posted again.
 */
#include <jansson.h>
#include <string.h>

#include "notifiers/body.h"
#include "notifiers/http_json.h"

/* Servers before 7.0 take 7,600 characters of attachments as JSON; a post has 16,383. */
enum { TEXT = 6000, OPTION_MOST = 2000, SPACING_MS = 200 };

struct mattermost_options {
	struct channel_options common;
	const char *channel, *username, *icon_url;
};

static const struct field mattermost_fields[] = {
	OPTION_STRING_AS(
		"url_file", struct mattermost_options, common.url_file, NULL, CHANNEL_URL_FILE),
	OPTION_STRING(struct mattermost_options, channel, NULL,
		"channel other than the webhook's, or @user"),
	OPTION_STRING(struct mattermost_options, username, NULL,
		"user name of the posts, if the server allows it"),
	OPTION_STRING(struct mattermost_options, icon_url, NULL,
		"icon of the posts, if the server allows it"),
	{0},
};

static bool render(const struct draft *draft)
{
	struct buf *out = draft->payload;
	const struct mattermost_options *options = draft->options;
	struct buf text = {0};

	buf_printf(out, "{\"attachments\":[{\"color\":\"#%06x\"", body_color(draft->message));
	body_title(&text, draft->message);
	http_json_whole(out, "fallback", &text);
	body_fit(&text, draft->message, &body_markdown, TEXT);
	http_json_whole(out, "text", &text);
	buf_text(out, "}]");
	http_json_text(out, "channel", options->channel, OPTION_MOST);
	http_json_text(out, "username", options->username, OPTION_MOST);
	http_json_text(out, "icon_url", options->icon_url, OPTION_MOST);
	buf_char(out, '}');
	return true;
}

/* A webhook that does not exist is a 400, and where webhooks are switched off it is a 501: {"id":
 * "web.incoming_webhook.invalid.app_error", ...}. */
static enum step refusal(struct attempt *attempt, const struct reply *reply)
{
	json_t *answer = json_loadb(reply->body, reply->length, 0, NULL);
	const char *id = json_text(answer, "id");
	const char *what = !id || (reply->status != 400 && reply->status != 501) ? NULL
			   : strstr(id, ".invalid.")                             ? "no such webhook"
			   : strstr(id, ".disabled.") ? "the server allows no incoming webhooks"
						      : NULL;

	json_decref(answer);
	if (what)
		return notifier_fail(attempt, false, ERROR_USAGE, what);
	return http_json_refused(attempt, reply);
}

static const struct http_json mattermost = {
	.request = channel_request, .refusal = refusal, .doubt = MAYBE_DELIVERED_BLIND};

const struct notifier mattermost_notifier = {
	.plugin = {.name = "mattermost",
		.summary = "post to a channel of Mattermost, by an incoming webhook",
		.fields = mattermost_fields,
		.options_size = sizeof(struct mattermost_options),
		.endpoint = true,
		.check = channel_check},
	.spacing = SPACING_MS,
	.events = MESSAGES_ALL,
	.defaults = MESSAGES_USUAL,
	.gathers = true,
	.render = render,
	.step = http_json_step,
	.shape = &mattermost,
};
