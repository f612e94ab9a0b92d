/*
 * Microsoft Teams, by the webhook of a workflow ("post to a channel when a webhook request is
 * received"): an adaptive card.
 *
 * The card consists of text runs, which know no Markdown, so that no name can become any. The
 * address holds the secret, so error messages do not show it. After a lost answer the card is sent
 * again, as it cannot be looked up.
 */
#include <jansson.h>
#include <string.h>

#include "notifiers/body.h"
#include "notifiers/http_json.h"

/* Documented: 28 KB of a message, and 4 requests a second. */
enum { CARD = 26000, SPACING_MS = 1000 };

#define RUN(attributes) "{\"type\":\"TextRun\"," attributes "\"text\":\""
#define STRONG "\"weight\":\"Bolder\","
#define COLOR(color) STRONG "\"color\":\"" color "\","
#define LINE(indent) "{\"type\":\"RichTextBlock\",\"inlines\":[" RUN("") indent
#define STEP "\\u00a0\\u00a0\\u00a0"

/* All text is within a run: a mark or a link ends it, and begins another. */
static void run(struct buf *out, const char *text, size_t length)
{
	struct buf quoted = {0};

	buf_json_string(&quoted, text, length);
	buf_append(out, quoted.data + 1, quoted.length - 2);
	buf_free(&quoted);
}

static void link(struct buf *out, const char *url)
{
	buf_text(out,
		"\"},{\"type\":\"TextRun\",\"selectAction\":{\"type\":\"Action.OpenUrl\",\"url\":");
	buf_json_text(out, url);
	buf_text(out, "},\"text\":\"");
	run(out, url, strlen(url));
	buf_text(out, "\"}," RUN(""));
}

static const struct body_style card = {.text = &text_utc,
	.escape = run,
	.link = link,
	.begin = {"\"}," RUN(STRONG), "\"}," RUN(COLOR("Attention")), "\"}," RUN(COLOR("Good")),
		"\"}," RUN(COLOR("Attention")), "\"}," RUN(COLOR("Good"))},
	.end = "\"}," RUN(""),
	.open = {LINE(""), LINE(STEP), LINE(STEP STEP), LINE(STEP STEP STEP)},
	.close = " \"}]},",
	.gap = ""};

/* Appends the blocks without runs that have no text, as where a line begins with a mark. */
static void put_blocks(struct buf *out, const struct buf *body)
{
	static const char empty[] = RUN("") "\"},";
	const char *at = body->data, *end = body->data + body->length - 1, *next;

	while ((next = strstr(at, empty)) != NULL) {
		buf_append(out, at, (size_t)(next - at));
		at = next + sizeof empty - 1;
	}
	buf_append(out, at, (size_t)(end - at));
}

static bool render(const struct draft *draft)
{
	struct buf body = {0};

	body_fit(&body, draft->message, &card, CARD);
	buf_text(draft->payload,
		"{\"type\":\"message\",\"attachments\":[{\"contentType\":"
		"\"application/vnd.microsoft.card.adaptive\",\"content\":{\"type\":"
		"\"AdaptiveCard\",\"version\":\"1.4\",\"body\":[");
	if (body.length > 0)
		put_blocks(draft->payload, &body);
	buf_text(draft->payload, "]}}]}");
	buf_free(&body);
	return true;
}

/* A workflow that is switched off or gone is a 400, too: {"error": {"code":
 * "WorkflowTriggerIsNotEnabled", "message": ...}}. */
static enum step refusal(struct attempt *attempt, const struct reply *reply)
{
	json_t *answer = json_loadb(reply->body, reply->length, 0, NULL);
	const char *code = json_text(json_object_get(answer, "error"), "code");
	bool off = code && strncmp(code, "Workflow", 8) == 0 && reply->status == 400;

	json_decref(answer);
	if (off)
		return notifier_fail(
			attempt, false, ERROR_USAGE, "the workflow is disabled or deleted");
	return http_json_refused(attempt, reply);
}

static const struct http_json msteams = {
	.request = channel_request, .refusal = refusal, .doubt = MAYBE_DELIVERED_BLIND};

const struct notifier msteams_notifier = {
	.plugin = {.name = "msteams",
		.summary = "post to a channel of Microsoft Teams, by a workflow's webhook",
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
	.shape = &msteams,
};
