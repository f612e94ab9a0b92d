/*
 * An attempt with an unclear result keeps its doubt until the next request is made.
 */
#include "notifiers/http_json.h"

#include <string.h>

#include <jansson.h>
#include <stdlib.h>

#include "agent/base/secret.h"

enum { WORDS_MOST = 200 };

const char *json_text(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

const char *json_keep(struct arena *arena, const json_t *object, const char *name)
{
	return arena_strdup(arena, json_text(object, name));
}

bool http_json_passes(int status)
{
	return status == 408 || status == 425 || status == 429 || status >= 500;
}

/* Of the forms {"message": "Validation Failed", "errors": [...]}, {"message": ..., "errors":
 * ["..."]},
 * {"error": ...}, {"errorMessages": ["..."], "errors": {"assignee": "..."}}, or a string. */
const char *http_json_words(
	struct arena *arena, const struct reply *reply, const struct strings *secrets)
{
	json_t *answer = json_loadb(reply->body, reply->length, JSON_DECODE_ANY, NULL);
	const json_t *errors = json_object_get(answer, "errors");
	const json_t *const places[] = {answer, json_array_get(errors, 0),
		json_object_get(answer, "message"), json_object_get(answer, "error"),
		json_array_get(json_object_get(answer, "errorMessages"), 0)};
	const json_t *details = json_is_object(places[2]) ? places[2] : errors;
	const char *words = NULL;
	struct buf out = {0}, clean = {0};
	char *text = NULL;

	for (size_t i = 0; i < sizeof places / sizeof *places && !words; i++)
		words = json_string_value(places[i]);
	if (json_object_size(details) > 0 || json_is_object(json_array_get(details, 0)))
		text = json_dumps(details, JSON_COMPACT);
	buf_printf(&out, "HTTP status %d", reply->status);
	if (words)
		buf_printf(&out, ": %s", words);
	if (text)
		buf_printf(&out, ": %s", text);
	buf_clean(&clean, secret_cut(arena, out.data, WORDS_MOST, secrets), WORDS_MOST);
	words = words || text ? buf_keep(&clean, arena) : NULL;
	buf_free(&clean);
	buf_free(&out);
	free(text);
	json_decref(answer);
	return words;
}

/* With hints for statuses that are not self-explanatory. */
enum step http_json_refused(struct attempt *attempt, const struct reply *reply)
{
	const struct http_json *shape = attempt->notifier->shape;
	int status = reply->kind == REPLY_ANSWER ? reply->status : reply->cut_status;
	bool passes = http_json_passes(status);
	bool body = status == 400 || status == 413 || status == 415 || status == 422;
	const char *words = shape->explains && !passes && reply->kind == REPLY_ANSWER
				    ? http_json_words(attempt->arena, reply, &reply->secrets)
				    : NULL;

	if (!words)
		words = arena_printf(attempt->arena, "HTTP status %d%s", status,
			status >= 300 && status < 400    ? ": a redirect, which is not followed"
			: status == 401 || status == 403 ? ": the credentials are not accepted"
			: status == 404 || status == 410 ? ": nothing at this address"
							 : "");
	return notifier_fail(attempt, passes, passes || body ? ERROR_DATA : ERROR_USAGE, words);
}

/* The status decides, even if the body is incomplete. */
static enum step read_answer(struct attempt *attempt, const struct reply *reply)
{
	const struct http_json *shape = attempt->notifier->shape;
	bool whole = reply->kind == REPLY_ANSWER;
	int status = whole ? reply->status : reply->cut_status;

	if (status >= 200 && status < 300) {
		if (!shape->answer)
			return STEP_DONE;
		if (whole)
			return shape->answer(attempt, reply);
	} else if (status >= 300) {
		return shape->refusal && whole ? shape->refusal(attempt, reply)
					       : http_json_refused(attempt, reply);
	}
	if (reply->kind != REPLY_UNREACHABLE)
		attempt->maybe_delivered = shape->doubt;
	return notifier_fail(
		attempt, true, ERROR_DATA, reply->problem ? reply->problem : "no answer");
}

enum step http_json_step(struct attempt *attempt, const struct reply *last)
{
	const struct http_json *shape = attempt->notifier->shape;
	bool good;

	if (last) {
		attempt->maybe_delivered = MAYBE_DELIVERED_NO;
		return read_answer(attempt, last);
	}
	attempt->queued = 0;
	/* `request` may read the state that an earlier attempt left in doubt. */
	good = shape->request(attempt);
	attempt->maybe_delivered = MAYBE_DELIVERED_NO;
	return good ? STEP_TRANSFER
		    : notifier_fail(attempt, false, ERROR_USAGE,
			      arena_strdup(attempt->arena, attempt->error->text));
}

struct transfer http_json_request(struct attempt *attempt, const struct endpoint *endpoint,
	const char *method, const char *url, const char *body, struct pairs headers)
{
	struct pair *all = arena_array(attempt->arena, headers.count + 1, sizeof *all);

	all[0] = (struct pair){"Content-Type", "application/json"};
	for (size_t i = 0; i < headers.count; i++)
		all[i + 1] = headers.items[i];
	return (struct transfer){.kind = TRANSFER_HTTP,
		.endpoint = endpoint,
		.method = method,
		.url = url,
		.headers = {all, headers.count + 1},
		.body = body,
		.body_length = body ? strlen(body) : 0};
}

void http_json_text(struct buf *out, const char *name, const char *text, size_t most)
{
	struct buf clean = {0};

	if (text)
		buf_clean(&clean, text, most);
	http_json_lines(out, name, &clean);
}

void http_json_lines(struct buf *out, const char *name, struct buf *text)
{
	while (text->length > 0 && text->data[text->length - 1] == '\n')
		text->data[--text->length] = '\0';
	if (text->length > 0)
		http_json_whole(out, name, text);
	buf_free(text);
}

void http_json_whole(struct buf *out, const char *name, struct buf *text)
{
	buf_printf(out, "%s\"%s\":", out->data[out->length - 1] == '{' ? "" : ",", name);
	buf_json_string(out, text->data ? text->data : "", text->length);
	buf_free(text);
}

bool http_json_next(struct attempt *attempt)
{
	if (attempt->queued == 0)
		return false;
	*attempt->next = *attempt->queue++;
	attempt->queued--;
	return true;
}

bool http_json_check_url(const struct endpoint *endpoint, struct error *error)
{
	if (!endpoint->url || !*endpoint->url)
		return error_set(error, ERROR_USAGE, "\"url\" is missing");
	if (transfer_url_problem(endpoint->url))
		return error_set(
			error, ERROR_USAGE, "url: %s", transfer_url_problem(endpoint->url));
	return true;
}

bool http_json_check_webhook(const struct endpoint *endpoint, struct error *error)
{
	if (!http_json_check_url(endpoint, error))
		return false;
	return !transfer_url_has_user(endpoint->url) ||
	       error_set(error, ERROR_USAGE,
		       "url: put user and password into \"username\" and \"password_file\"");
}

const struct field channel_fields[] = {
	OPTION_STRING(struct channel_options, url_file, NULL, CHANNEL_URL_FILE), {0}};

bool channel_check(const void *context, struct error *error)
{
	const struct channel_options *options = context;

	if (!options->url_file)
		return http_json_check_webhook(&options->endpoint, error);
	return !options->endpoint.url ||
	       error_set(error, ERROR_USAGE, "url and url_file are mutually exclusive");
}

bool channel_request(struct attempt *attempt)
{
	const struct channel_options *options = attempt->options;
	const char *file = options->url_file, *url = options->endpoint.url, *problem;

	if (file && !secret_read(attempt->arena, "url_file", file, &url, attempt->error))
		return false;
	problem = file ? transfer_url_problem(url) : NULL;
	if (problem)
		return error_set(attempt->error, ERROR_USAGE, "url_file \"%s\": %s", file, problem);
	*attempt->next = http_json_request(
		attempt, &options->endpoint, "POST", url, attempt->payload, (struct pairs){0});
	return true;
}
