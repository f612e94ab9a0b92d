/*
 * Discord, by a channel's webhook: an embed with the message in Markdown.
 *
 * The address holds the secret, so error messages do not show it. It has no idempotency key and
 * cannot be queried, so after a lost answer the message is sent again.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "notifiers/body.h"
#include "notifiers/http_json.h"

/* Documented: 4,096 characters of a description. Discord allows a webhook 5 messages in 2 s. */
enum { DESCRIPTION = 4000, SPACING_MS = 1000, LONGEST_WAIT_S = 86400 };

static bool render(const struct draft *draft)
{
	struct buf body = {0};

	body_fit(&body, draft->message, &body_markdown, DESCRIPTION);
	buf_printf(draft->payload, "{\"allowed_mentions\":{\"parse\":[]},\"embeds\":[{\"color\":%u",
		body_color(draft->message));
	http_json_whole(draft->payload, "description", &body);
	buf_text(draft->payload, "}]}");
	return true;
}

/* With wait=true Discord answers when the message is saved. */
static bool request(struct attempt *attempt)
{
	if (!channel_request(attempt))
		return false;
	attempt->next->url = arena_printf(attempt->arena, "%s%cwait=true", attempt->next->url,
		strchr(attempt->next->url, '?') ? '&' : '?');
	return true;
}

/* {"message": "You are being rate limited.", "retry_after": 64.57}: s, also without a header. */
static enum step refusal(struct attempt *attempt, const struct reply *reply)
{
	json_t *answer = json_loadb(reply->body, reply->length, 0, NULL);
	double wait = json_number_value(json_object_get(answer, "retry_after"));

	if (reply->status == 429 && reply->retry_after < 0 && wait > 0)
		attempt->retry_after = (int64_t)(1000 * ceil(fmin(wait, LONGEST_WAIT_S)));
	json_decref(answer);
	return http_json_refused(attempt, reply);
}

static const struct http_json discord = {
	.request = request, .refusal = refusal, .doubt = MAYBE_DELIVERED_BLIND};

const struct notifier discord_notifier = {
	.plugin = {.name = "discord",
		.summary = "post to a channel of Discord, by its webhook",
		.fields = channel_fields,
		.options_size = sizeof(struct channel_options),
		.endpoint = true,
		.check = channel_check},
	.spacing = SPACING_MS,
	.events = MESSAGES_ALL,
	.defaults = MESSAGES_USUAL,
	.gathers = true,
	.render = render,
	.step = http_json_step,
	.shape = &discord,
};
