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
#include "notifiers/body.h"
#include "notifiers/http_json.h"

/* TAG_BYTES: of a tag, which Grafana's database may limit; TAGS_BYTES: of all of them as JSON,
 * Grafana's default limit (annotations.tags_length). */
enum { ITEMS_MAX = 1000, TAG_BYTES = 100, TAGS_BYTES = 500, TEXT_BYTES = 8000, REASON_CHARS = 200 };

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

/* Tags as a JSON array, without those that would exceed the limit. */
struct tags {
	struct buf *out;
	size_t start;
	bool any;
};

static void tags_begin(struct tags *tags, struct buf *out)
{
	*tags = (struct tags){.out = out, .start = out->length};
	buf_char(out, '[');
}

static void tags_add(struct tags *tags, const char *kind, const char *value)
{
	size_t before = tags->out->length, length;
	struct buf text = {0};

	buf_text(&text, kind);
	buf_clean(&text, value, TAG_BYTES);
	length = text.length > TAG_BYTES ? utf8_cut(text.data, TAG_BYTES) : text.length;
	buf_text(tags->out, tags->any ? "," : "");
	buf_json_string(tags->out, text.data, length);
	if (length == 0 || tags->out->length - tags->start >= TAGS_BYTES)
		tags->out->length = before;
	else
		tags->any = true;
	buf_free(&text);
}

static void tags_end(struct tags *tags)
{
	buf_char(tags->out, ']');
}

/* `key`: of the message, or NULL. */
static void put_tags(struct buf *out, const struct grafana_options *options,
	const struct announcement *item, const char *key)
{
	const struct strings *more = &item->tags;
	struct tags tags;
	char id[24];

	tags_begin(&tags, out);
	tags_add(&tags, "", options->tag);
	tags_add(&tags, "", "change-point");
	tags_add(&tags, "test:", item->test);
	tags_add(&tags, "metric:", item->metric);
	if (key) {
		snprintf(id, sizeof id, "%" PRId64, item->id);
		tags_add(&tags, "change:", id);
		tags_add(&tags, "message:", key);
	}
	for (size_t i = 0; i < more->count; i++)
		tags_add(&tags, "", more->items[i]);
	tags_end(&tags);
}

static void put_text(struct buf *out, const struct message *message)
{
	struct buf text = {0};

	body_fit(&text, message, &body_html, TEXT_BYTES);
	buf_text(out, ",\"text\":");
	buf_json_string(out, text.data ? text.data : "", text.length);
	buf_free(&text);
}

static void put_item(struct buf *out, const struct grafana_options *options,
	const struct announcement *item, const char *key)
{
	const struct message message = {.kind = MESSAGE_NEW, .items = item, .count = 1};
	bool placed = item->place_from != 0 && item->place_to > item->place_from;

	buf_printf(out, "{\"time\":%" PRId64, placed ? item->place_from : item->time);
	if (placed)
		buf_printf(out, ",\"timeEnd\":%" PRId64, item->place_to);
	buf_text(out, ",\"tags\":");
	put_tags(out, options, item, key);
	put_text(out, &message);
	buf_char(out, '}');
}

/* The annotations of a message, without withdrawn changes; `announced`: their state, or NULL. */
static void put_message(struct buf *out, const struct grafana_options *options,
	const struct message *message, const struct announced_change *announced)
{
	size_t count = message->count < ITEMS_MAX ? message->count : ITEMS_MAX;
	const struct announcement **items = memory_new(message->count + 1, sizeof *items);
	struct tags tags;
	bool any = false;

	if (count > 0)
		message_select(message, count, items);
	buf_text(out, "{\"tags\":");
	tags_begin(&tags, out);
	tags_add(&tags, "message:", message->key);
	tags_end(&tags);
	buf_text(out, ",\"annotations\":[");
	for (size_t i = 0; i < count; i++) {
		if (announced && announced[items[i] - message->items].state == ANNOUNCED_WITHDRAWN)
			continue;
		buf_text(out, any ? "," : "");
		put_item(out, options, items[i], message->key);
		any = true;
	}
	buf_text(out, "]}");
	free(items);
}

/* A test annotation, deleted right after it was created. */
static void put_test(
	struct buf *out, const struct grafana_options *options, const struct message *message)
{
	struct tags tags;

	buf_text(out, "{\"test\":true,\"tags\":");
	tags_begin(&tags, out);
	tags_add(&tags, "message:", message->key);
	tags_end(&tags);
	buf_printf(out, ",\"annotations\":[{\"time\":%" PRId64 ",\"tags\":",
		message->notice ? message->notice->time : 0);
	tags_begin(&tags, out);
	tags_add(&tags, "", options->tag);
	tags_add(&tags, "", "test");
	tags_add(&tags, "message:", message->key);
	tags_end(&tags);
	put_text(out, message);
	buf_text(out, "}]}");
}

static bool render(const struct message *message, const void *options, const char *destination,
	struct buf *payload, struct error *error)
{
	(void)destination, (void)error;
	if (message->kind == MESSAGE_TEST)
		put_test(payload, options, message);
	else
		put_message(payload, options, message, NULL);
	return true;
}

void grafana_put_job(struct buf *payload, const void *context, const struct grafana_job *job)
{
	const struct grafana_options *options = context;
	struct tags tags;

	buf_text(payload, "{\"tags\":");
	tags_begin(&tags, payload);
	tags_add(&tags, "", options->tag);
	tags_add(&tags, "", "change-point");
	if (job->test)
		tags_add(&tags, "test:", job->test);
	tags_end(&tags);
	if (job->from != WHEN_ALWAYS)
		buf_printf(payload, ",\"from\":%" PRId64, job->from);
	if (job->to != WHEN_NEVER)
		buf_printf(payload, ",\"to\":%" PRId64, job->to);
	buf_printf(payload, ",\"by_time\":%s,\"counts\":%s,\"annotations\":[",
		job->removes ? "false" : "true", job->counts ? "true" : "false");
	for (size_t i = 0; i < job->count; i++) {
		buf_text(payload, i > 0 ? "," : "");
		put_item(payload, options, &job->items[i], NULL);
	}
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

static struct strings read_tags(struct arena *arena, const json_t *list)
{
	size_t count = 0, kept = 0;
	const char **items = arena_array(arena, json_array_size(list) + 1, sizeof *items);

	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_is_string(json_array_get(list, i)))
			items[count++] =
				arena_strdup(arena, json_string_value(json_array_get(list, i)));
	qsort(items, count, sizeof *items, order_texts);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || strcmp(items[kept - 1], items[i]) != 0)
			items[kept++] = items[i];
	return (struct strings){items, kept};
}

/* False if it is not an annotation. */
static bool read_note(struct arena *arena, const json_t *from, struct note *note)
{
	const json_t *time = json_object_get(from, "time"), *end = json_object_get(from, "timeEnd");
	const char *text = json_string_value(json_object_get(from, "text"));

	if (!json_is_integer(time))
		return false;
	*note = (struct note){.id = json_integer_value(json_object_get(from, "id")),
		.from = json_integer_value(time),
		.to = json_integer_value(end),
		.text = arena_strdup(arena, text ? text : ""),
		.tags = read_tags(arena, json_object_get(from, "tags"))};
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

/* Whether both annotate the same change. */
static bool same_change(const struct work *work, const struct note *a, const struct note *b)
{
	if (work->by_time)
		return a->from == b->from && order_same(tag_of(a, "metric:"), tag_of(b, "metric:"));
	return order_same(tag_of(a, "change:"), tag_of(b, "change:"));
}

static bool same_note(const struct note *a, const struct note *b)
{
	bool same = a->from == b->from && a->to == b->to && strcmp(a->text, b->text) == 0 &&
		    a->tags.count == b->tags.count;

	for (size_t i = 0; same && i < a->tags.count; i++)
		same = strcmp(a->tags.items[i], b->tags.items[i]) == 0;
	return same;
}

/* An annotation by the agent, which commands leave alone. */
static bool is_foreign(const struct work *work, const struct note *note)
{
	return work->by_time && tag_of(note, "change:");
}

static void add_operation(
	struct work *work, const char *method, const struct note *there, const struct note *wanted)
{
	work->operations[work->operation_count++] =
		(struct operation){method, there ? there->id : 0, wanted};
}

static void plan_for(struct work *work, const struct note *wanted, struct note *there, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (there[i].matched || !same_change(work, wanted, &there[i]))
			continue;
		there[i].matched = true;
		if (is_foreign(work, &there[i]) || same_note(wanted, &there[i]))
			work->kept++;
		else
			add_operation(work, "PATCH", &there[i], wanted);
		return;
	}
	add_operation(work, "POST", NULL, wanted);
}

static void plan(struct arena *arena, struct work *work, struct note *there, size_t count)
{
	work->planned = true;
	work->result.found = count;
	if (work->counts)
		return;
	work->operations = arena_array(arena, work->count + count + 1, sizeof *work->operations);
	for (size_t i = 0; i < work->count; i++)
		plan_for(work, &work->wanted[i], there, count);
	for (size_t i = 0; i < count; i++)
		if (!there[i].matched && !is_foreign(work, &there[i]))
			add_operation(work, "DELETE", &there[i], NULL);
}

static const char *note_json(struct arena *arena, const struct note *note)
{
	struct buf out = {0};

	buf_printf(&out, "{\"time\":%" PRId64 ",\"timeEnd\":%" PRId64 ",\"tags\":[", note->from,
		note->to);
	for (size_t i = 0; i < note->tags.count; i++) {
		buf_text(&out, i > 0 ? "," : "");
		buf_json_text(&out, note->tags.items[i]);
	}
	buf_text(&out, "],\"text\":");
	buf_json_text(&out, note->text);
	buf_char(&out, '}');
	return buf_keep(&out, arena);
}

static const char *address(struct attempt *attempt)
{
	const struct grafana_options *options = attempt->options;

	return transfer_join_url(attempt->arena, options->endpoint.url, "api/annotations");
}

/* The next request, or the end. */
static enum step go_on(struct attempt *attempt)
{
	const struct grafana_options *options = attempt->options;
	struct work *work = attempt->state;
	const struct grafana_result *result = &work->result;
	const char *url = address(attempt);

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

	buf_printf(&url, "%s?limit=%d", address(attempt), GRAFANA_MOST);
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

/* "HTTP status 403: You'll need additional permissions" */
static const char *words_of(struct arena *arena, const struct reply *reply)
{
	json_t *answer = json_loadb(reply->body, reply->length, 0, NULL);
	const char *message = json_string_value(json_object_get(answer, "message"));
	struct buf words = {0};

	buf_printf(&words, "HTTP status %d", reply->status);
	if (message && *message) {
		buf_text(&words, ": ");
		buf_clean(&words, message, REASON_CHARS);
	}
	json_decref(answer);
	return buf_keep(&words, arena);
}

/* A missing annotation need not be deleted, and is recreated if wanted. A refused one does not hold
 * back the others. */
static enum step take_refusal(struct attempt *attempt, const struct reply *reply)
{
	struct work *work = attempt->state;
	bool passes = http_json_passes(reply->status);
	bool about_this = reply->status == 400 || reply->status == 413 || reply->status == 422;
	const char *words = words_of(attempt->arena, reply);

	if (work->planned && reply->status == 404 && work->operations[work->next].id > 0) {
		struct operation *operation = &work->operations[work->next];

		if (operation->note)
			*operation = (struct operation){"POST", 0, operation->note};
		else
			work->next++;
		return go_on(attempt);
	}
	if (work->planned && about_this) {
		work->refused++;
		work->refusal = words;
		work->next++;
		return go_on(attempt);
	}
	return notifier_fail(
		attempt, passes, passes || about_this ? ERROR_DATA : ERROR_USAGE, words);
}

static const struct http_json shape = {.request = first_request,
	.answer = read_answer,
	.refusal = take_refusal,
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
