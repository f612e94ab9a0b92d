/*
 * Slack, by bot token (chat.postMessage, to any number of channels) or by incoming webhook (to its
 * fixed channel).
 *
 * Slack reports most errors in the body of a 200 response. They are classified (api.h) as
 * temporary, configuration errors and permanent; unknown errors are retried until the caller gives
 * up. If Slack rejects the blocks, the message is sent once more without its charts, which it has
 * not known for long, and then as plain text; if it rejects a reply, as a message of its own.
 *
 * If an earlier attempt may have arrived, a bot first checks the channel for the message, and
 * retries that as it would a post. A webhook cannot check, nor can a bot without the scope for it:
 * then the message is posted again.
 *
 * A payload holds one body per line; each is sent in a round of its own. The receipt is described
 * in receipt.h.
 *
 * With `picture: png` one more round uploads a picture into the thread. By then the message is
 * there and its receipt stored: whatever fails, it counts as sent.
 *
 * The webhook's address is a secret: error messages name its option, never the address.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/secret.h"
#include "agent/base/transfer.h"
#include "agent/base/utf8.h"
#include "notifiers/slack/api.h"
#include "notifiers/slack/follow_up.h"
#include "notifiers/slack/options.h"
#include "notifiers/slack/receipt.h"
#include "notifiers/slack/render.h"
#include "notifiers/slack/search.h"
#include "notifiers/slack/upload.h"

enum { REASON_MOST = 60, SPACING_MS = 1100 };

struct state {
	const char *body;             /* of this round */
	const char *thread;           /* ts of the message whose thread it goes into, or NULL */
	size_t part;                  /* from 1 */
	struct slack_receipt receipt; /* of the rounds before */
	bool bare;                    /* the blocks were rejected; sending those without charts */
	bool plain;                   /* these were, too; sending the text alone */
	bool looking;                 /* a search is in progress */
	bool unresolved; /* the search was denied: an earlier attempt may have arrived */
	struct slack_search search;
	bool uploading; /* all is posted; its picture follows */
	struct slack_upload upload;
};

static bool destinations(
	const void *context, struct arena *arena, struct strings *out, struct error *error)
{
	static const char *const webhook[] = {""};
	const struct slack_options *options = context;

	(void)arena;
	if (!slack_options_check(options, error)) {
		error->kind = ERROR_USAGE;
		return error_prefix(error, "slack: ");
	}
	if (slack_by_webhook(options)) {
		*out = (struct strings){.items = webhook, .count = 1};
		return true;
	}
	*out = options->channels;
	return true;
}

static bool accepts_destination(const void *options, struct error *error)
{
	return slack_by_bot(options) ||
	       error_set(error, ERROR_USAGE,
		       "slack: a bot_token is needed: the channel of a webhook is fixed");
}

static bool render(const struct message *message, const void *options, const char *destination,
	struct buf *payload, struct error *error)
{
	const struct slack_options *chosen = options;

	(void)error;
	slack_render(message, *destination ? destination : NULL, chosen->picture == SLACK_CHART,
		payload);
	return true;
}

static enum step fail_temporarily(struct attempt *attempt, const char *what)
{
	return slack_fail(attempt, true, ERROR_DATA, what);
}

/* Like fail_temporarily, but the message may have arrived. */
static enum step fail_in_doubt(struct attempt *attempt, const char *what)
{
	attempt->maybe_delivered =
		slack_by_bot(attempt->options) ? MAYBE_DELIVERED_CHECK : MAYBE_DELIVERED_BLIND;
	return fail_temporarily(attempt, what);
}

static enum step fail_by_config(struct attempt *attempt, const char *what)
{
	return slack_fail(attempt, false, ERROR_USAGE, what);
}

static enum step fail_permanently(struct attempt *attempt, const char *what)
{
	return slack_fail(attempt, false, ERROR_DATA, what);
}

/* The post as a reply in the thread, or, without one, as a message of its own, which is not shown
 * in the channel a second time. */
static const char *in_thread(struct arena *arena, const char *body, const char *thread)
{
	static const char shown[] = ",\"reply_broadcast\":true";
	const char *loud = thread ? NULL : strstr(body, shown);
	struct buf out = {0};
	const char *whole;

	if (loud)
		return arena_printf(
			arena, "%.*s%s", (int)(loud - body), body, loud + sizeof shown - 1);
	if (!thread || *body != '{')
		return body;
	buf_text(&out, "{\"thread_ts\":");
	buf_json_text(&out, thread);
	buf_printf(&out, ",%s", body + 1);
	whole = arena_strndup(arena, out.data, out.length);
	buf_free(&out);
	return whole;
}

static enum step post(struct attempt *attempt)
{
	const struct slack_options *options = attempt->options;
	const struct state *state = attempt->state;
	bool webhook = slack_by_webhook(options);
	struct error problem;
	enum step step = slack_call(
		attempt, "chat.postMessage", in_thread(attempt->arena, state->body, state->thread));

	if (!webhook && step == STEP_FAILED)
		return step;
	if (webhook && !slack_secret(attempt->arena, options->webhook_url, "webhook_url_file",
			       options->webhook_url_file, &attempt->next->url, &problem))
		return fail_by_config(attempt, problem.text);
	if (webhook && transfer_url_problem(attempt->next->url))
		return fail_by_config(attempt, "webhook_url is not an https address");
	attempt->maybe_delivered = MAYBE_DELIVERED_NO;
	return STEP_TRANSFER;
}

/* Whether a picture belongs in the thread of the message. */
static bool has_picture(const struct attempt *attempt)
{
	const struct slack_options *options = attempt->options;

	return attempt->draw && options->picture == SLACK_PNG && slack_by_bot(options) &&
	       strstr(attempt->payload, "\"event_type\":\"hunter_c_changes\"");
}

static enum step without_picture(struct attempt *attempt, const char *reason)
{
	attempt->notice = arena_printf(attempt->arena, "slack %s: messages have no picture (%s)",
		attempt->destination, reason);
	return STEP_DONE;
}

/* The round after the last post. */
static enum step begin_upload(struct attempt *attempt)
{
	struct state *state = attempt->state;
	struct slack_upload *upload = &state->upload;
	struct error error;

	if (!has_picture(attempt) || !state->receipt.stamp || !state->receipt.channel ||
		state->part != slack_body_count(attempt->payload) + 1)
		return STEP_DONE;
	if (!attempt->draw(attempt, &upload->picture, &error))
		return without_picture(attempt, error.text);
	upload->thread = state->receipt.thread;
	upload->channel = state->receipt.channel;
	state->uploading = true;
	return slack_upload_begin(upload, attempt) == STEP_TRANSFER
		       ? STEP_TRANSFER
		       : without_picture(attempt, attempt->error->text);
}

static enum step uploaded(struct attempt *attempt, const struct reply *reply)
{
	struct state *state = attempt->state;
	const char *reason = "";
	enum step step = slack_upload_take(&state->upload, attempt, reply, &reason);

	attempt->retry_after = -1;
	return step == STEP_FAILED ? without_picture(attempt, reason) : step;
}

static enum step first_step(struct attempt *attempt)
{
	struct arena *arena = attempt->arena;
	struct state *state = arena_alloc(arena, sizeof *state);
	bool bot = slack_by_bot(attempt->options);
	const char *thread = slack_receipt_read(arena, attempt->thread).thread;

	attempt->state = state;
	state->receipt = slack_receipt_read(arena, attempt->receipt);
	state->part = state->receipt.posts + 1;
	state->body = slack_body(arena, attempt->payload, state->receipt.posts);
	if (!state->body)
		return begin_upload(attempt);
	if (bot)
		state->thread = state->receipt.thread ? state->receipt.thread : thread;
	if (attempt->maybe_delivered == MAYBE_DELIVERED_NO || !bot)
		return post(attempt);
	state->looking = true;
	state->search = (struct slack_search){.arena = arena,
		.channel = attempt->destination,
		.key = attempt->key,
		.part = state->part,
		.thread = state->thread,
		.since = attempt->made};
	slack_search_begin(&state->search);
	return slack_call(attempt, state->search.question, NULL);
}

/* The body of this round has arrived, with that ts, in the channel of that id; NULL if Slack did
 * not return them. */
static enum step posted(struct attempt *attempt, const char *stamp, const char *channel)
{
	struct state *state = attempt->state;
	struct slack_receipt receipt = {.thread = state->thread ? state->thread : stamp,
		.posts = state->part,
		.stamp = state->part == 1 ? stamp : state->receipt.stamp,
		.channel = state->part == 1 ? channel : state->receipt.channel};

	if (receipt.thread)
		attempt->receipt = slack_receipt(attempt->arena, &receipt);
	attempt->more = receipt.thread && (state->part < slack_body_count(attempt->payload) ||
						  (has_picture(attempt) && receipt.channel));
	return STEP_DONE;
}

static enum step looked(struct attempt *attempt, const struct reply *reply)
{
	struct state *state = attempt->state;
	struct slack_search *search = &state->search;

	switch (slack_search_take(search, reply)) {
	case SEARCH_ON: return slack_call(attempt, state->search.question, NULL);
	case SEARCH_FOUND:
		state->thread = search->thread;
		return posted(attempt, search->stamp, search->id);
	case SEARCH_LATER: return fail_in_doubt(attempt, search->reason);
	case SEARCH_DENIED:
		state->unresolved = true;
		attempt->notice = arena_printf(attempt->arena,
			"slack %s: cannot check whether a message has arrived (%s): posting it "
			"again, possibly twice",
			attempt->destination, search->reason);
		break;
	case SEARCH_ABSENT: break;
	}
	state->looking = false;
	return post(attempt);
}

/* Posts the message again in a simpler form; false if that was tried already. */
static bool simpler(struct attempt *attempt, enum slack_reason reason)
{
	struct state *state = attempt->state;
	const char *plain;

	if (reason == SLACK_THREAD && state->thread) {
		state->thread = NULL;
		return true;
	}
	if (reason != SLACK_BLOCKS || state->plain)
		return false;
	if (!state->bare && (plain = slack_without_charts(attempt->arena, state->body))) {
		state->bare = true;
		state->body = plain;
		return true;
	}
	if (!(plain = slack_without_blocks(attempt->arena, state->body)))
		return false;
	state->plain = true;
	state->body = plain;
	return true;
}

static enum step refused(struct attempt *attempt, const char *word)
{
	enum slack_reason reason = slack_reason(word);

	switch (reason) {
	case SLACK_UNKNOWN: break;
	case SLACK_TEMPORARY: return fail_temporarily(attempt, word);
	case SLACK_CONFIG: return fail_by_config(attempt, word);
	case SLACK_PERMANENT: return fail_permanently(attempt, word);
	case SLACK_BLOCKS:
	case SLACK_THREAD:
		return simpler(attempt, reason) ? post(attempt) : fail_permanently(attempt, word);
	}
	return fail_in_doubt(attempt, word);
}

/*
 * Slack's error code in a body. Anything else is not shown: an error page may repeat the request's
 * address, and a webhook's address is a secret.
 */
static const char *reason_word(struct attempt *attempt, const struct reply *reply)
{
	size_t length = strspn(reply->body, "abcdefghijklmnopqrstuvwxyz0123456789_");
	const char *rest = reply->body + length;

	if (length == 0 || length > REASON_MOST || rest[strspn(rest, "\r\n")])
		return slack_alien;
	return arena_strndup(attempt->arena, reply->body, length);
}

/* {"ok": true, "channel": "C1", "ts": "1503435956.000247"} or {"ok": false, "error": "..."} */
static enum step api_answer(struct attempt *attempt, const struct reply *reply)
{
	json_t *answer = json_loadb(reply->body, reply->length, 0, NULL);
	json_t *ok = json_object_get(answer, "ok");
	const char *stamp = json_string_value(json_object_get(answer, "ts"));
	const char *channel = json_string_value(json_object_get(answer, "channel"));
	const char *reason = json_string_value(json_object_get(answer, "error"));
	enum step step;

	if (json_is_true(ok) && (stamp || slack_body_count(attempt->payload) == 1)) {
		step = posted(attempt, arena_strdup(attempt->arena, stamp),
			arena_strdup(attempt->arena, channel));
	} else if (json_is_false(ok) && reason) {
		step = refused(
			attempt, secret_cut(attempt->arena, reason, REASON_MOST, &reply->secrets));
	} else {
		step = fail_in_doubt(attempt, slack_alien);
	}
	json_decref(answer);
	return step;
}

static enum step http_error(struct attempt *attempt, const struct reply *reply)
{
	const char *words = reason_word(attempt, reply);
	const char *what = arena_printf(attempt->arena, "HTTP status %d: %s", reply->status, words);

	if (reply->status == 429)
		return fail_temporarily(attempt, "too many messages (HTTP status 429)");
	if (reply->status >= 500 || reply->status == 408 || reply->status < 300)
		return fail_in_doubt(attempt, what);
	if (reply->status == 400)
		return refused(attempt, words);
	return fail_by_config(attempt, what);
}

static enum step proceed(struct attempt *attempt, const struct reply *last)
{
	const struct state *state;

	if (!last)
		return first_step(attempt);
	state = attempt->state;
	if (state->uploading)
		return uploaded(attempt, last);
	if (state->looking)
		return looked(attempt, last);
	if (last->kind == REPLY_UNREACHABLE)
		return fail_temporarily(attempt, last->problem ? last->problem : "not reachable");
	if (last->kind != REPLY_ANSWER)
		return fail_in_doubt(attempt, last->problem ? last->problem : "no answer");
	if (last->status != 200)
		return http_error(attempt, last);
	if (slack_by_bot(attempt->options))
		return api_answer(attempt, last);
	if (strcmp(reason_word(attempt, last), "ok") == 0)
		return posted(attempt, NULL, NULL);
	return fail_in_doubt(attempt, reason_word(attempt, last));
}

static enum step step(struct attempt *attempt, const struct reply *last)
{
	enum step step = proceed(attempt, last);
	const struct state *state = attempt->state;

	if (step == STEP_FAILED && state->unresolved)
		attempt->maybe_delivered = MAYBE_DELIVERED_CHECK;
	return step;
}

static bool amends(const void *options)
{
	return slack_by_bot(options);
}

static bool pictures(const void *context)
{
	const struct slack_options *options = context;

	return options->picture == SLACK_PNG;
}

static bool listens(const void *context)
{
	const struct slack_options *options = context;

	return slack_by_bot(options) && options->triagers.count > 0;
}

const struct notifier slack_notifier = {
	.plugin = {.name = "slack",
		.summary = "post to Slack channels, by bot token or incoming webhook",
		.fields = slack_fields,
		.options_size = sizeof(struct slack_options),
		.endpoint = true,
		.check = slack_options_check},
	.spacing = SPACING_MS,
	.events = MESSAGES_ALL,
	.defaults = MESSAGES_OF_CHANGES | 1u << MESSAGE_RECOVERED | 1u << MESSAGE_WITHDRAWN |
		    1u << MESSAGE_NOTICE | 1u << MESSAGE_HEARTBEAT,
	.brief = true,
	.destinations = destinations,
	.accepts_destination = accepts_destination,
	.render = render,
	.step = step,
	.amends = amends,
	.listens = listens,
	.pictures = pictures,
	.follow_up = slack_follow_up,
};
