/*
 * Grafana: an annotation for each change, with the tags that Hunter gives them, over the places
 * where the new level may have begun.
 *
 * Every attempt compares: it fetches the existing annotations, then creates, changes and deletes
 * those that differ. So an attempt can be repeated at any point. The agent finds those of a message
 * by a tag with its key, wherever they are on the time axis; the commands find those of a test by
 * Hunter's tags and tell them apart by metric and time, as Hunter does, and leave those of the
 * agent alone.
 */
#include "notifiers/grafana.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/order.h"
#include "agent/base/utf8.h"
#include "agent/base/when.h"
#include "agent/model/json_put.h"
#include "notifiers/body.h"
#include "notifiers/http_json.h"

/* TAG_BYTES: of a tag, which Grafana's database may limit; TAGS_BYTES: of all of them as JSON,
 * Grafana's default limit (annotations.tags_length). */
enum { ITEMS_MAX = 1000, TAG_BYTES = 100, TAGS_BYTES = 500, TEXT_BYTES = 8000 };

static const char annotations_path[] = "api/annotations";

struct grafana_options {
	struct endpoint endpoint;
	const char *tag;
	bool annotate;
};

static const struct field grafana_fields[] = {
	OPTION_BOOL(struct grafana_options, annotate,
		"annotate announced changes; otherwise only analyze --update-grafana does (section "
		"grafana of Hunter's files)"),
	OPTION_STRING(struct grafana_options, tag, "hunter",
		"first tag of its annotations; otava for Otava's"),
	OPTION_STRING_AS("user", struct grafana_options, endpoint.username, NULL,
		"user name for basic authentication, like username"),
	{0},
};

static bool check(const void *context, struct error *error)
{
	const struct grafana_options *options = context;

	if (!options->tag || !*options->tag)
		return error_set(error, ERROR_USAGE, "tag: it is empty");
	return http_json_check_url(&options->endpoint, error);
}

static bool on_demand(const void *context)
{
	const struct grafana_options *options = context;

	return !options->annotate;
}

/* Tags, "KEYVALUE", as a JSON array: without those that have no value or would exceed the limit. */
static void put_tags(
	struct buf *out, const struct pair *tags, size_t count, const struct strings *more)
{
	size_t start = out->length;

	buf_char(out, '[');
	for (size_t i = 0; i < count + more->count; i++) {
		struct pair tag = i < count ? tags[i] : (struct pair){"", more->items[i - count]};
		size_t before = out->length, length;
		struct buf text = {0};

		if (!tag.value)
			continue;
		buf_text(&text, tag.key);
		buf_clean(&text, tag.value, TAG_BYTES);
		length = utf8_cut(text.data, TAG_BYTES);
		buf_text(out, before > start + 1 ? "," : "");
		buf_json_string(out, text.data, length);
		if (length == 0 || out->length - start >= TAGS_BYTES)
			out->length = before;
		buf_free(&text);
	}
	buf_char(out, ']');
}

/* By which those of a message are found. */
static void put_key_tags(struct buf *out, const char *key)
{
	buf_text(out, "\"tags\":");
	put_tags(out, &(struct pair){"message:", key}, 1, &(struct strings){0});
}

static void put_text(struct buf *out, const struct message *message)
{
	struct buf text = {0};

	body_fit(&text, message, &body_html, TEXT_BYTES);
	http_json_whole(out, "text", &text);
}

/* `key`: of the message, or NULL. */
static void put_item(struct buf *out, const struct grafana_options *options,
	const struct announcement *item, const char *key)
{
	const struct message message = {.kind = MESSAGE_NEW, .items = item, .count = 1};
	bool placed = item->place_from != 0 && item->place_to > item->place_from;
	char id[24];
	const struct pair tags[] = {{"", options->tag}, {"", "change-point"}, {"test:", item->test},
		{"metric:", item->metric}, {"change:", key ? id : NULL}, {"message:", key}};

	snprintf(id, sizeof id, "%" PRId64, item->id);
	buf_printf(out, "%s{\"time\":%" PRId64, out->data[out->length - 1] == '[' ? "" : ",",
		placed ? item->place_from : item->time);
	if (placed)
		buf_printf(out, ",\"timeEnd\":%" PRId64, item->place_to);
	buf_text(out, ",\"tags\":");
	put_tags(out, tags, sizeof tags / sizeof *tags, &item->tags);
	put_text(out, &message);
	buf_char(out, '}');
}

/* The annotations of a message, without withdrawn changes; `announced`: their state, or NULL. */
static void put_message(struct buf *out, const struct grafana_options *options,
	const struct message *message, const struct announced_change *announced)
{
	size_t count;
	const struct announcement **items = message_select(message, ITEMS_MAX, &count);

	buf_char(out, '{');
	put_key_tags(out, message->key);
	buf_text(out, ",\"annotations\":[");
	for (size_t i = 0; i < count; i++)
		if (!announced || announced[items[i] - message->items].state != ANNOUNCED_WITHDRAWN)
			put_item(out, options, items[i], message->key);
	buf_text(out, "]}");
	free(items);
}

static bool render(const struct draft *draft)
{
	struct buf *out = draft->payload;
	const struct message *message = draft->message;
	const struct grafana_options *options = draft->options;
	const struct pair tags[] = {{"", options->tag}, {"", "test"}, {"message:", message->key}};

	if (message->kind != MESSAGE_TEST) {
		put_message(out, options, message, NULL);
		return true;
	}
	/* A test annotation, deleted right after it was created. */
	buf_text(out, "{\"test\":true,");
	put_key_tags(out, message->key);
	buf_printf(out, ",\"annotations\":[{\"time\":%" PRId64 ",\"tags\":",
		message->notice ? message->notice->time : 0);
	put_tags(out, tags, sizeof tags / sizeof *tags, &(struct strings){0});
	put_text(out, message);
	buf_text(out, "}]}");
	return true;
}

void grafana_put_job(struct buf *payload, const void *context, const struct grafana_job *job)
{
	const struct grafana_options *options = context;
	const struct pair tags[] = {{"", options->tag}, {"", "change-point"}, {"test:", job->test}};

	buf_text(payload, "{\"tags\":");
	put_tags(payload, tags, sizeof tags / sizeof *tags, &(struct strings){0});
	if (job->from != WHEN_ALWAYS)
		buf_printf(payload, ",\"from\":%" PRId64, job->from);
	if (job->to != WHEN_NEVER)
		buf_printf(payload, ",\"to\":%" PRId64, job->to);
	buf_printf(payload, ",\"by_time\":%s,\"counts\":%s,\"annotations\":[",
		job->removes ? "false" : "true", job->counts ? "true" : "false");
	for (size_t i = 0; i < job->count; i++)
		put_item(payload, options, &job->items[i], NULL);
	buf_text(payload, "]}");
}

bool grafana_read_receipt(const char *receipt, struct grafana_result *result)
{
	return receipt && sscanf(receipt, "%zu %zu %zu %zu", &result->found, &result->created,
				  &result->changed, &result->removed) == 4;
}

/* An annotation, wanted or existing. */
struct note {
	int64_t id; /* of an existing one */
	int64_t from, to;
	const char *text;
	struct strings tags; /* sorted, each once */
	bool matched;
};

struct operation {
	const char *method;
	int64_t id;
	const struct note *note; /* NULL: DELETE */
};

struct work {
	struct note *wanted;
	size_t count;
	bool by_time, counts, tests, planned;
	struct operation *operations;
	size_t operation_count, next, refused, kept;
	const char *refusal;
	struct grafana_result result;
};

/* False if it is not an annotation. */
static bool read_note(struct arena *arena, const json_t *from, struct note *note)
{
	const json_t *time = json_object_get(from, "time"), *tags = json_object_get(from, "tags");
	const char *text = json_text(from, "text");
	const char **items = arena_array(arena, json_array_size(tags), sizeof *items);
	size_t count = 0;

	if (!json_is_integer(time))
		return false;
	for (size_t i = 0; i < json_array_size(tags); i++)
		if (json_is_string(json_array_get(tags, i)))
			items[count++] =
				arena_strdup(arena, json_string_value(json_array_get(tags, i)));
	qsort(items, count, sizeof *items, order_texts);
	*note = (struct note){.id = json_integer_value(json_object_get(from, "id")),
		.from = json_integer_value(time),
		.to = json_integer_value(json_object_get(from, "timeEnd")),
		.text = arena_strdup(arena, text ? text : "")};
	for (size_t i = 0; i < count; i++)
		if (i == 0 || strcmp(items[i - 1], items[i]) != 0)
			items[note->tags.count++] = items[i];
	note->tags.items = items;
	if (note->to < note->from)
		note->to = note->from;
	return true;
}

static size_t read_notes(struct arena *arena, const json_t *list, struct note *notes)
{
	size_t count = 0;

	for (size_t i = 0; i < json_array_size(list); i++)
		count += read_note(arena, json_array_get(list, i), &notes[count]);
	return count;
}

/* The rest of the tag with that prefix, or NULL. */
static const char *tag_of(const struct note *note, const char *prefix)
{
	size_t length = strlen(prefix);

	for (size_t i = 0; i < note->tags.count; i++)
		if (strncmp(note->tags.items[i], prefix, length) == 0)
			return note->tags.items[i] + length;
	return NULL;
}

static bool same_note(const struct note *a, const struct note *b)
{
	bool same = a->from == b->from && a->to == b->to && strcmp(a->text, b->text) == 0 &&
		    a->tags.count == b->tags.count;

	for (size_t i = 0; same && i < a->tags.count; i++)
		same = strcmp(a->tags.items[i], b->tags.items[i]) == 0;
	return same;
}

/* The existing annotation of the same change, or NULL. */
static struct note *find_note(
	const struct work *work, const struct note *wanted, struct note *there, size_t count)
{
	const char *tag = work->by_time ? "metric:" : "change:";

	for (size_t i = 0; i < count; i++)
		if (!there[i].matched && (!work->by_time || wanted->from == there[i].from) &&
			order_same(tag_of(wanted, tag), tag_of(&there[i], tag)))
			return &there[i];
	return NULL;
}

/* Commands leave annotations by the agent alone. */
static void plan(struct arena *arena, struct work *work, struct note *there, size_t count)
{
	struct operation *operations = arena_array(arena, work->count + count, sizeof *operations);
	size_t planned = 0;

	work->planned = true;
	work->result.found = count;
	if (work->counts)
		return;
	for (size_t i = 0; i < work->count; i++) {
		const struct note *wanted = &work->wanted[i];
		struct note *note = find_note(work, wanted, there, count);

		if (!note) {
			operations[planned++] = (struct operation){"POST", 0, wanted};
			continue;
		}
		note->matched = true;
		if ((work->by_time && tag_of(note, "change:")) || same_note(wanted, note))
			work->kept++;
		else
			operations[planned++] = (struct operation){"PATCH", note->id, wanted};
	}
	for (size_t i = 0; i < count; i++)
		if (!there[i].matched && !(work->by_time && tag_of(&there[i], "change:")))
			operations[planned++] = (struct operation){"DELETE", there[i].id, NULL};
	work->operations = operations;
	work->operation_count = planned;
}

static const char *note_json(struct arena *arena, const struct note *note)
{
	struct buf out = {0};

	buf_printf(&out, "{\"time\":%" PRId64 ",\"timeEnd\":%" PRId64, note->from, note->to);
	json_put(&out, "tags: %p", &note->tags);
	json_put_text(&out, "text", note->text);
	buf_char(&out, '}');
	return buf_keep(&out, arena);
}

/* The next request, or the end. */
static enum step go_on(struct attempt *attempt)
{
	const struct grafana_options *options = attempt->options;
	struct work *work = attempt->state;
	const struct grafana_result *result = &work->result;
	const char *url =
		transfer_join_url(attempt->arena, options->endpoint.url, annotations_path);

	if (work->next < work->operation_count) {
		const struct operation *operation = &work->operations[work->next];

		if (operation->id > 0)
			url = arena_printf(attempt->arena, "%s/%" PRId64, url, operation->id);
		*attempt->next = http_json_request(attempt, &options->endpoint, operation->method,
			url, operation->note ? note_json(attempt->arena, operation->note) : NULL,
			(struct pairs){0});
		return STEP_TRANSFER;
	}
	if (work->refused > 0 && work->refused == result->created + result->changed +
							  result->removed + work->refused +
							  work->kept)
		return notifier_fail(attempt, false, ERROR_DATA, work->refusal);
	if (work->refused > 0)
		attempt->notice = arena_printf(attempt->arena,
			"grafana: %zu annotations were refused: %s", work->refused, work->refusal);
	attempt->receipt = arena_printf(attempt->arena, "%zu %zu %zu %zu", result->found,
		result->created, result->changed, result->removed);
	return STEP_DONE;
}

/* The payload of a follow-up: the message's current state. */
static const char *amended(struct attempt *attempt)
{
	const struct follow_up *follow_up = attempt->follow_up;
	struct message message =
		body_of_announced(attempt->arena, follow_up->changes, follow_up->count);
	struct buf payload = {0};

	message.key = attempt->key;
	put_message(&payload, attempt->options, &message, follow_up->changes);
	return buf_keep(&payload, attempt->arena);
}

static struct transfer fetch(struct attempt *attempt, const json_t *payload)
{
	const struct grafana_options *options = attempt->options;
	static const char *const ends[] = {"from", "to"};
	const json_t *tags = json_object_get(payload, "tags");
	struct buf url = {0};

	buf_printf(&url, "%s?limit=%d",
		transfer_join_url(attempt->arena, options->endpoint.url, annotations_path),
		GRAFANA_MOST);
	for (size_t i = 0; i < json_array_size(tags); i++) {
		buf_text(&url, "&tags=");
		transfer_encode(&url, json_string_value(json_array_get(tags, i)));
	}
	for (size_t i = 0; i < 2; i++)
		if (json_object_get(payload, ends[i]))
			buf_printf(&url, "&%s=%" JSON_INTEGER_FORMAT, ends[i],
				json_integer_value(json_object_get(payload, ends[i])));
	return (struct transfer){.kind = TRANSFER_HTTP,
		.endpoint = &options->endpoint,
		.method = "GET",
		.url = buf_keep(&url, attempt->arena)};
}

static bool first_request(struct attempt *attempt)
{
	struct work *work = arena_alloc(attempt->arena, sizeof *work);
	json_t *payload =
		json_loads(attempt->follow_up ? amended(attempt) : attempt->payload, 0, NULL);
	const json_t *wanted = json_object_get(payload, "annotations");

	attempt->state = work;
	*work = (struct work){.by_time = json_is_true(json_object_get(payload, "by_time")),
		.counts = json_is_true(json_object_get(payload, "counts")),
		.tests = json_is_true(json_object_get(payload, "test"))};
	work->wanted =
		arena_array(attempt->arena, json_array_size(wanted) + 1, sizeof *work->wanted);
	work->count = read_notes(attempt->arena, wanted, work->wanted);
	*attempt->next = fetch(attempt, payload);
	json_decref(payload);
	if (!payload)
		return error_set(attempt->error, ERROR_DATA, "its stored text is damaged");
	return true;
}

static enum step take_list(struct attempt *attempt, const json_t *list)
{
	struct note *there;
	bool named = true;
	size_t count;

	if (!json_is_array(list))
		return notifier_fail(
			attempt, true, ERROR_DATA, "not an answer of Grafana: is url its address?");
	there = arena_array(attempt->arena, json_array_size(list) + 1, sizeof *there);
	count = read_notes(attempt->arena, list, there);
	for (size_t i = 0; i < count; i++)
		named = named && there[i].id > 0;
	if (!named || count < json_array_size(list))
		return notifier_fail(attempt, true, ERROR_DATA,
			"not an answer of Grafana: an annotation without id or time");
	plan(attempt->arena, attempt->state, there, count);
	return go_on(attempt);
}

/* The request of the current operation has succeeded. */
static enum step take_done(struct attempt *attempt, const json_t *answer)
{
	struct work *work = attempt->state;
	struct operation *operation = &work->operations[work->next];
	bool posted = strcmp(operation->method, "POST") == 0;
	int64_t id = json_integer_value(json_object_get(answer, "id"));

	if (!json_is_object(answer) || (posted && id <= 0)) {
		attempt->maybe_delivered = MAYBE_DELIVERED_CHECK;
		return notifier_fail(
			attempt, true, ERROR_DATA, "not an answer of Grafana to an annotation");
	}
	if (posted && work->tests) {
		*operation = (struct operation){"DELETE", id, NULL};
		return go_on(attempt);
	}
	*(posted                  ? &work->result.created
		: operation->note ? &work->result.changed
				  : &work->result.removed) += 1;
	work->next++;
	return go_on(attempt);
}

static enum step read_answer(struct attempt *attempt, const struct reply *reply)
{
	const struct work *work = attempt->state;
	json_t *answer = json_loadb(reply->body, reply->length, 0, NULL);
	enum step step = work->planned ? take_done(attempt, answer) : take_list(attempt, answer);

	json_decref(answer);
	return step;
}

/* A missing annotation need not be deleted, and is recreated if wanted. A refused one does not hold
 * back the others. */
static enum step take_refusal(struct attempt *attempt, const struct reply *reply)
{
	struct work *work = attempt->state;
	struct operation *operation = work->planned ? &work->operations[work->next] : NULL;
	const char *words;

	if (operation && reply->status == 404 && operation->id > 0) {
		if (operation->note)
			*operation = (struct operation){"POST", 0, operation->note};
		else
			work->next++;
		return go_on(attempt);
	}
	if (operation && (reply->status == 400 || reply->status == 413 || reply->status == 422)) {
		words = http_json_words(attempt->arena, reply, &reply->secrets);
		work->refused++;
		work->refusal =
			words ? words
			      : arena_printf(attempt->arena, "HTTP status %d", reply->status);
		work->next++;
		return go_on(attempt);
	}
	return http_json_refused(attempt, reply);
}

static const struct http_json shape = {.request = first_request,
	.answer = read_answer,
	.refusal = take_refusal,
	.explains = true,
	.doubt = MAYBE_DELIVERED_CHECK};

const struct notifier grafana_notifier = {
	.plugin = {.name = "grafana",
		.summary = "annotate Grafana's dashboards with the changes",
		.fields = grafana_fields,
		.options_size = sizeof(struct grafana_options),
		.endpoint = true,
		.check = check,
		.on_demand = on_demand},
	.events = MESSAGES_OF_CHANGES,
	.defaults = MESSAGES_OF_CHANGES,
	.render = render,
	.step = http_json_step,
	.shape = &shape,
	.amends = notifier_amends,
};
