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
 * retries that as it would a post: Slack has no idempotency key, but each message carries the
 * delivery's key in its metadata, and the channel's history since the delivery was created is read,
 * page by page, until the key is found. Thread replies are not part of that history, unless the
 * channel shows them, too, so for a reply the thread is read first; it may still have been posted
 * outside of the thread, if that was gone or not yet known, or have become visible meanwhile. The
 * history needs the channel's id; for a name, the id is looked up in the bot's channels. Without
 * the scope for private channels Slack rejects a request for both kinds, so only the public ones
 * are requested then. A webhook cannot check, nor can a bot without the scope for it: then the
 * message is posted again, since a second one is better than none.
 *
 * A payload holds one body per line; each is sent in a round of its own. The receipt is described
 * in api.h.
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
#include "agent/model/json_put.h"
#include "notifiers/http_json.h"
#include "notifiers/slack/api.h"
#include "notifiers/slack/follow_up.h"
#include "notifiers/slack/options.h"
#include "notifiers/slack/render.h"

/* REQUEST_MS: of each of the three of a picture, so that later messages hardly wait. */
enum { SPACING_MS = 1100, REQUEST_MS = 5000, TITLE = 200, MOST_PAGES = 50 };

#define CLOCKS_APART INT64_C(3600000) /* ms, how far our clock may be ahead of Slack's */

struct state {
	const char *body;             /* of this round */
	const char *thread;           /* ts of the message whose thread it goes into, or NULL */
	size_t part;                  /* from 1 */
	struct slack_receipt receipt; /* of the rounds before */
	bool bare;                    /* the blocks were rejected; sending those without charts */
	bool plain;                   /* these were, too; sending the text alone */
	bool looking;                 /* a search is in progress */
	bool unresolved; /* the search was denied: an earlier attempt may have arrived */
	/* Of the search: the channel's id, once known; whether the scope for private channels is
	 * missing, and the thread was searched without a result. */
	const char *id;
	bool public_only, thread_read;
	unsigned pages;
	/*
	 * The upload of the picture once all is posted: Slack returns an address, receives the
	 * bytes there, and is given the thread.
	 */
	enum { UPLOAD_NOT, UPLOAD_ASK, UPLOAD_SEND, UPLOAD_COMPLETE } upload;
	struct illustration picture;
	struct endpoint bare_endpoint; /* of the place that Slack names: gets no credentials */
	const char *file, *title;      /* the picture's id and title */
};

static bool destinations(
	const void *context, struct arena *arena, struct strings *out, struct error *error)
{
	const struct slack_options *options = context;

	(void)arena;
	if (!slack_options_check(options, error)) {
		error->kind = ERROR_USAGE;
		return error_prefix(error, "slack: ");
	}
	if (!slack_by_webhook(options))
		*out = options->channels;
	return true;
}

static bool accepts_destination(const void *options, struct error *error)
{
	return slack_by_bot(options) ||
	       error_set(error, ERROR_USAGE,
		       "slack: a bot_token is needed: the channel of a webhook is fixed");
}

static bool render(const struct draft *draft)
{
	const struct slack_options *chosen = draft->options;

	slack_render(draft->message, *draft->destination ? draft->destination : NULL,
		chosen->picture == SLACK_CHART, draft->payload);
	return true;
}

/* A temporary failure after which the message may have arrived. */
static enum step fail_in_doubt(struct attempt *attempt, const char *what)
{
	attempt->maybe_delivered =
		slack_by_bot(attempt->options) ? MAYBE_DELIVERED_CHECK : MAYBE_DELIVERED_BLIND;
	return slack_fail(attempt, true, ERROR_DATA, what);
}

/* The post as a reply in the thread, or, without one, as a message of its own, which is not shown
 * in the channel a second time. */
static const char *in_thread(struct arena *arena, const char *body, const char *thread)
{
	static const char shown[] = ",\"reply_broadcast\":true";
	const char *loud = thread ? NULL : strstr(body, shown);
	struct buf out = {0};

	if (loud)
		return arena_printf(
			arena, "%.*s%s", (int)(loud - body), body, loud + sizeof shown - 1);
	if (!thread || *body != '{')
		return body;
	buf_text(&out, "{\"thread_ts\":");
	buf_json_text(&out, thread);
	buf_printf(&out, ",%s", body + 1);
	return buf_keep(&out, arena);
}

static enum step post(struct attempt *attempt)
{
	const struct slack_options *options = attempt->options;
	const struct state *state = attempt->state;
	struct error problem;
	enum step step = slack_call(
		attempt, "chat.postMessage", in_thread(attempt->arena, state->body, state->thread));

	if (slack_by_webhook(options)) {
		if (!secret_pick(attempt->arena, options->webhook_url, "webhook_url_file",
			    options->webhook_url_file, &attempt->next->url, &problem))
			return slack_fail(attempt, false, ERROR_USAGE, problem.text);
		if (transfer_url_problem(attempt->next->url))
			return slack_fail(
				attempt, false, ERROR_USAGE, "webhook_url is not an https address");
	} else if (step == STEP_FAILED) {
		return step;
	}
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
	attempt->retry_after = -1;
	return STEP_DONE;
}

static enum step call_for_picture(struct attempt *attempt, const char *method, const char *body)
{
	enum step step = slack_call(attempt, method, body);

	attempt->next->timeout = REQUEST_MS;
	attempt->retry_after = -1;
	return step == STEP_FAILED ? without_picture(attempt, attempt->error->text) : step;
}

/* The round after the last post. */
static enum step begin_upload(struct attempt *attempt)
{
	struct state *state = attempt->state;
	struct buf query = {0}, title = {0};
	struct error error;

	if (!has_picture(attempt) || !state->receipt.stamp || !state->receipt.channel ||
		state->part != slack_body_count(attempt->payload) + 1)
		return STEP_DONE;
	if (!attempt->draw(attempt, &state->picture, &error))
		return without_picture(attempt, error.text);
	buf_clean(&title, state->picture.title ? state->picture.title : "change", TITLE);
	state->title = buf_keep(&title, attempt->arena);
	buf_printf(&query, "files.getUploadURLExternal?filename=change.png&length=%zu&alt_txt=",
		state->picture.length);
	transfer_encode(&query, state->title);
	state->upload = UPLOAD_ASK;
	return call_for_picture(attempt, buf_keep(&query, attempt->arena), NULL);
}

/* To where Slack wants it: over TLS, unless its API is not. */
static enum step send_picture(struct attempt *attempt, const char *url, const char *file)
{
	static const struct pair png[] = {{"Content-Type", "image/png"}};
	const struct slack_options *options = attempt->options;
	struct state *state = attempt->state;
	struct endpoint *bare = &state->bare_endpoint;

	if (!url || !file || transfer_url_problem(url) ||
		(strncmp(url, "https://", 8) != 0 && strncmp(options->api_url, "http://", 7) != 0))
		return without_picture(attempt, slack_alien);
	state->file = file;
	*bare = options->endpoint;
	bare->headers = (struct pairs){0};
	bare->username = bare->password = bare->password_file = NULL;
	bare->bearer_token = bare->bearer_token_file = NULL;
	state->upload = UPLOAD_SEND;
	attempt->retry_after = -1;
	*attempt->next = (struct transfer){.kind = TRANSFER_HTTP,
		.endpoint = bare,
		.method = "POST",
		.url = url,
		.headers = {png, 1},
		.body = state->picture.bytes,
		.body_length = state->picture.length,
		.timeout = REQUEST_MS};
	return STEP_TRANSFER;
}

static enum step uploaded(struct attempt *attempt, const struct reply *reply)
{
	struct arena *arena = attempt->arena;
	struct state *state = attempt->state;
	struct slack_answer answer;
	const char *url, *file;
	struct buf body = {0};

	if (state->upload == UPLOAD_SEND && reply->kind == REPLY_ANSWER && reply->status == 200) {
		buf_text(&body, "{\"files\":[{\"id\":");
		buf_json_text(&body, state->file);
		json_put_text(&body, "title", state->title);
		buf_text(&body, "}]");
		json_put_text(&body, "channel_id", state->receipt.channel);
		json_put_text(&body, "thread_ts", state->receipt.thread);
		buf_char(&body, '}');
		state->upload = UPLOAD_COMPLETE;
		return call_for_picture(
			attempt, "files.completeUploadExternal", buf_keep(&body, arena));
	}
	answer = slack_read(arena, reply, false);
	if (answer.reason != SLACK_DONE)
		return without_picture(attempt, answer.words);
	url = json_keep(arena, answer.json, "upload_url");
	file = json_keep(arena, answer.json, "file_id");
	json_decref(answer.json);
	return state->upload == UPLOAD_ASK ? send_picture(attempt, url, file) : STEP_DONE;
}

/* The next request of the search: for channels, for the thread, or for the channel's history. */
static enum step look(struct attempt *attempt, const char *cursor)
{
	const struct state *state = attempt->state;
	bool in_thread = state->thread && !state->thread_read;
	int64_t since = attempt->made;
	struct buf out = {0};

	if (state->id) {
		buf_printf(&out, "conversations.%s?channel=", in_thread ? "replies" : "history");
		transfer_encode(&out, state->id);
		if (in_thread) {
			buf_text(&out, "&ts=");
			transfer_encode(&out, state->thread);
		}
		buf_printf(&out, "&include_all_metadata=true&limit=200&oldest=%lld",
			(long long)(since > CLOCKS_APART ? (since - CLOCKS_APART) / 1000 : 0));
	} else {
		buf_printf(&out, "users.conversations?exclude_archived=true&limit=999&types=%s",
			state->public_only ? "public_channel" : "public_channel%2Cprivate_channel");
	}
	if (cursor) {
		buf_text(&out, "&cursor=");
		transfer_encode(&out, cursor);
	}
	return slack_call(attempt, buf_keep(&out, attempt->arena), NULL);
}

/* Channels are given by name, in lower case, or by id. */
static enum step first_step(struct attempt *attempt)
{
	struct arena *arena = attempt->arena;
	struct state *state = arena_alloc(arena, sizeof *state);
	bool bot = slack_by_bot(attempt->options);
	const char *thread = slack_receipt_read(arena, attempt->thread).thread;
	const char *channel = attempt->destination;

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
	if (*channel && strchr("CDG", *channel) && channel[1] &&
		!channel[strspn(channel, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")])
		state->id = channel;
	return look(attempt, NULL);
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

static enum step denied(struct attempt *attempt, const char *reason)
{
	struct state *state = attempt->state;

	state->unresolved = true;
	attempt->notice = arena_printf(attempt->arena,
		"slack %s: cannot check whether a message has arrived (%s): posting it again, "
		"possibly twice",
		attempt->destination, reason);
	state->looking = false;
	return post(attempt);
}

/* Not in the thread: continues with the channel. */
static enum step absent(struct attempt *attempt)
{
	struct state *state = attempt->state;

	if (!state->thread || state->thread_read) {
		state->looking = false;
		return post(attempt);
	}
	state->thread_read = true;
	state->pages = 0;
	return look(attempt, NULL);
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_text(object, name);

	return text ? text : "";
}

static bool is_channel(const struct attempt *attempt, const json_t *channel)
{
	const char *name = attempt->destination + (*attempt->destination == '#');

	return strcmp(text_of(channel, "name"), name) == 0 && *text_of(channel, "id");
}

/* The part is optional for messages of one. */
static bool is_message(const struct attempt *attempt, const json_t *message)
{
	const struct state *state = attempt->state;
	const json_t *metadata = json_object_get(message, "metadata");
	const json_t *payload = json_object_get(metadata, "event_payload");
	const json_t *part = json_object_get(payload, "part");

	return strcmp(text_of(payload, "key"), attempt->key) == 0 &&
	       (part ? json_integer_value(part) : 1) == (json_int_t)state->part;
}

/* A page of channels or messages. */
static enum step take_page(struct attempt *attempt, const json_t *answer)
{
	struct state *state = attempt->state;
	const json_t *list = json_object_get(answer, state->id ? "messages" : "channels");
	const char *cursor = text_of(json_object_get(answer, "response_metadata"), "next_cursor");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);

		if (!(state->id ? is_message : is_channel)(attempt, item))
			continue;
		if (state->id) {
			if (state->thread_read)
				state->thread = json_keep(attempt->arena, item, "thread_ts");
			return posted(attempt, json_keep(attempt->arena, item, "ts"), state->id);
		}
		state->id = json_keep(attempt->arena, item, "id");
		state->pages = 0;
		return look(attempt, NULL);
	}
	if (!*cursor)
		return state->id ? absent(attempt)
				 : denied(attempt, "the bot is not in the channel");
	return ++state->pages >= MOST_PAGES ? denied(attempt, "the channel's history is too long")
					    : look(attempt, cursor);
}

static enum step looked(struct attempt *attempt, const struct reply *reply)
{
	struct state *state = attempt->state;
	struct slack_answer answer = slack_read(attempt->arena, reply, false);
	enum step step;

	if (answer.reason == SLACK_DONE) {
		step = take_page(attempt, answer.json);
		json_decref(answer.json);
		return step;
	}
	if (answer.reason == SLACK_TEMPORARY ||
		(answer.reason == SLACK_UNKNOWN && reply->status != 400))
		return fail_in_doubt(attempt, answer.words);
	if (answer.reason == SLACK_THREAD)
		return absent(attempt);
	if (strcmp(answer.error, "missing_scope") != 0 || state->id || state->public_only)
		return denied(attempt, answer.words);
	state->public_only = true;
	return look(attempt, NULL);
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
	if (!state->bare && (plain = slack_simpler(attempt->arena, state->body, true))) {
		state->bare = true;
		state->body = plain;
		return true;
	}
	if (!(plain = slack_simpler(attempt->arena, state->body, false)))
		return false;
	state->plain = true;
	state->body = plain;
	return true;
}

/* {"ok": true, "channel": "C1", "ts": "1503435956.000247"} */
static enum step take_post(struct attempt *attempt, const struct reply *reply)
{
	struct arena *arena = attempt->arena;
	struct slack_answer answer = slack_read(arena, reply, slack_by_webhook(attempt->options));
	const char *stamp, *channel;

	if (answer.reason == SLACK_UNKNOWN)
		return fail_in_doubt(attempt, answer.words);
	if (answer.reason != SLACK_DONE)
		return simpler(attempt, answer.reason) ? post(attempt)
						       : slack_refused(attempt, &answer);
	stamp = json_keep(arena, answer.json, "ts");
	channel = json_keep(arena, answer.json, "channel");
	json_decref(answer.json);
	return stamp || slack_body_count(attempt->payload) == 1
		       ? posted(attempt, stamp, channel)
		       : fail_in_doubt(attempt, slack_alien);
}

static enum step step(struct attempt *attempt, const struct reply *last)
{
	const struct state *state = attempt->state;
	enum step step = !last            ? first_step(attempt)
			 : state->upload  ? uploaded(attempt, last)
			 : state->looking ? looked(attempt, last)
					  : take_post(attempt, last);

	state = attempt->state;
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
	.gathers = true,
	.destinations = destinations,
	.accepts_destination = accepts_destination,
	.render = render,
	.step = step,
	.amends = amends,
	.listens = listens,
	.pictures = pictures,
	.follow_up = slack_follow_up,
};
