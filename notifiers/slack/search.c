/*
 * Reads a channel's history, or a thread first, for the metadata of a message.
 *
 * Where the bot may not read, the message is posted again, since a second one is better than none.
 * A temporary error and one that is not known (api.h) are retried.
 */
#include "notifiers/slack/search.h"

#include <jansson.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "notifiers/http_json.h"
#include "notifiers/slack/api.h"

enum { MOST_PAGES = 50 };

#define CLOCKS_APART INT64_C(3600000) /* ms, how far our clock may be ahead of Slack's */

static void ask(struct slack_search *search, const char *cursor)
{
	bool in_thread = search->thread && !search->thread_read;
	struct buf out = {0};
	int64_t oldest = search->since > CLOCKS_APART ? (search->since - CLOCKS_APART) / 1000 : 0;

	if (search->id) {
		buf_printf(&out, "conversations.%s?channel=", in_thread ? "replies" : "history");
		transfer_encode(&out, search->id);
		if (in_thread) {
			buf_text(&out, "&ts=");
			transfer_encode(&out, search->thread);
		}
		buf_printf(&out, "&include_all_metadata=true&limit=200&oldest=%lld",
			(long long)oldest);
	} else {
		buf_printf(&out, "users.conversations?exclude_archived=true&limit=999&types=%s",
			search->public_only ? "public_channel"
					    : "public_channel%2Cprivate_channel");
	}
	if (cursor) {
		buf_text(&out, "&cursor=");
		transfer_encode(&out, cursor);
	}
	search->question = buf_keep(&out, search->arena);
}

/* Channels are given by name, in lower case, or by id. */
void slack_search_begin(struct slack_search *search)
{
	const char *channel = search->channel;

	if (*channel && strchr("CDG", *channel) && channel[1] &&
		!channel[strspn(channel, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")])
		search->id = channel;
	ask(search, NULL);
}

static enum slack_found give_up(
	struct slack_search *search, enum slack_found found, const char *reason)
{
	search->reason = reason;
	return found;
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_text(object, name);

	return text ? text : "";
}

/* Not in the thread: continues with the channel. */
static enum slack_found absent(struct slack_search *search)
{
	if (!search->thread || search->thread_read)
		return SEARCH_ABSENT;
	search->thread_read = true;
	search->pages = 0;
	ask(search, NULL);
	return SEARCH_ON;
}

static enum slack_found refused(struct slack_search *search, const struct slack_answer *answer)
{
	if (answer->reason == SLACK_UNKNOWN || answer->reason == SLACK_TEMPORARY)
		return give_up(search, SEARCH_LATER, answer->words);
	if (answer->reason == SLACK_THREAD)
		return absent(search);
	if (strcmp(answer->error, "missing_scope") != 0 || search->id || search->public_only)
		return give_up(search, SEARCH_DENIED, answer->words);
	search->public_only = true;
	ask(search, NULL);
	return SEARCH_ON;
}

static enum slack_found next_page(
	struct slack_search *search, const json_t *answer, enum slack_found otherwise)
{
	const char *cursor = text_of(json_object_get(answer, "response_metadata"), "next_cursor");

	if (!*cursor)
		return otherwise;
	if (++search->pages >= MOST_PAGES)
		return give_up(search, SEARCH_DENIED, "the channel's history is too long");
	ask(search, cursor);
	return SEARCH_ON;
}

static enum slack_found take_channels(struct slack_search *search, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "channels");
	const char *name = search->channel + (*search->channel == '#');

	search->reason = "the bot is not in the channel";
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *channel = json_array_get(list, i);

		if (strcmp(text_of(channel, "name"), name) != 0 || !*text_of(channel, "id"))
			continue;
		search->id = arena_strdup(search->arena, text_of(channel, "id"));
		search->pages = 0;
		ask(search, NULL);
		return SEARCH_ON;
	}
	return next_page(search, answer, SEARCH_DENIED);
}

static enum slack_found take_messages(struct slack_search *search, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "messages");
	enum slack_found found;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *message = json_array_get(list, i);
		const json_t *metadata = json_object_get(message, "metadata");
		const json_t *payload = json_object_get(metadata, "event_payload");
		const json_t *part = json_object_get(payload, "part");

		/* The part is optional for messages of one. */
		if (strcmp(text_of(payload, "key"), search->key) != 0 ||
			(part ? json_integer_value(part) : 1) != (json_int_t)search->part)
			continue;
		search->stamp = arena_strdup(search->arena, text_of(message, "ts"));
		if (search->thread_read)
			search->thread = json_keep(search->arena, message, "thread_ts");
		return SEARCH_FOUND;
	}
	found = next_page(search, answer, SEARCH_ABSENT);
	return found == SEARCH_ABSENT ? absent(search) : found;
}

enum slack_found slack_search_take(struct slack_search *search, const struct reply *reply)
{
	struct slack_answer answer = slack_read(search->arena, reply, false);
	enum slack_found found;

	if (answer.reason == SLACK_UNKNOWN && reply->status == 400)
		answer.reason = SLACK_CONFIG;
	if (answer.reason != SLACK_DONE)
		return refused(search, &answer);
	found = search->id ? take_messages(search, answer.json)
			   : take_channels(search, answer.json);
	json_decref(answer.json);
	return found;
}
