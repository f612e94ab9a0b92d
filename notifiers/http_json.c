/*
 * An attempt with an unclear result keeps its doubt until the next request is made.
 */
#include "notifiers/http_json.h"

#include <string.h>

#include "agent/base/secret.h"

enum step http_json_fail(const struct http_json *shape, struct attempt *attempt, bool retry,
	enum error_kind kind, const char *what, struct error *error)
{
	attempt->retry = retry;
	error_set(error, kind, "%s: %s", shape->name, what);
	return STEP_FAILED;
}

bool http_json_passes(int status)
{
	return status == 408 || status == 425 || status == 429 || status >= 500;
}

/* Hints for statuses that are not self-explanatory. */
static const char *hint_of(int status)
{
	if (status >= 300 && status < 400)
		return ": a redirect, which is not followed";
	if (status == 401 || status == 403)
		return ": the credentials are not accepted";
	return status == 404 || status == 410 ? ": nothing at this address" : "";
}

enum step http_json_refused(const struct http_json *shape, struct attempt *attempt,
	const struct reply *reply, struct error *error)
{
	int status = reply->kind == REPLY_ANSWER ? reply->status : reply->cut_status;
	bool passes = http_json_passes(status);
	bool body = status == 400 || status == 413 || status == 415 || status == 422;

	return http_json_fail(shape, attempt, passes, passes || body ? ERROR_DATA : ERROR_USAGE,
		arena_printf(attempt->arena, "HTTP status %d%s", status, hint_of(status)), error);
}

/* The status decides, whatever happens to the body. */
static enum step read_answer(const struct http_json *shape, struct attempt *attempt,
	const struct reply *reply, struct transfer *next, struct error *error)
{
	int status = reply->kind == REPLY_ANSWER ? reply->status : reply->cut_status;

	attempt->retry_after = reply->retry_after;
	if (status >= 200 && status < 300) {
		if (!shape->answer)
			return STEP_DONE;
		if (reply->kind == REPLY_ANSWER)
			return shape->answer(attempt, reply, next, error);
	} else if (status >= 300) {
		return shape->refusal && reply->kind == REPLY_ANSWER
			       ? shape->refusal(attempt, reply, next, error)
			       : http_json_refused(shape, attempt, reply, error);
	}
	if (reply->kind != REPLY_UNREACHABLE)
		attempt->maybe_delivered = shape->doubt;
	return http_json_fail(shape, attempt, true, ERROR_DATA,
		reply->problem ? reply->problem : "no answer", error);
}

enum step http_json_step(const struct http_json *shape, struct attempt *attempt,
	const struct reply *last, struct transfer *next, struct error *error)
{
	attempt->retry = false;
	attempt->retry_after = -1;
	if (last) {
		attempt->maybe_delivered = MAYBE_DELIVERED_NO;
		return read_answer(shape, attempt, last, next, error);
	}
	/* `request` may look at what an earlier attempt has left in doubt. */
	if (shape->request(attempt, next, error)) {
		attempt->maybe_delivered = MAYBE_DELIVERED_NO;
		return STEP_TRANSFER;
	}
	attempt->maybe_delivered = MAYBE_DELIVERED_NO;
	return http_json_fail(shape, attempt, false, ERROR_USAGE,
		arena_strdup(attempt->arena, error->text), error);
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

bool http_json_amends(const void *options)
{
	(void)options;
	return true;
}

bool http_json_destination(
	const void *options, struct arena *arena, struct strings *out, struct error *error)
{
	static const char *const one[] = {""};

	(void)options, (void)arena, (void)error;
	*out = (struct strings){.items = one, .count = 1};
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

bool http_json_check_webhook(
	const struct endpoint *endpoint, const char *url_file, struct error *error)
{
	if (endpoint->url && url_file)
		return error_set(error, ERROR_USAGE, "url and url_file are mutually exclusive");
	if (!url_file && !http_json_check_url(endpoint, error))
		return false;
	return url_file || !transfer_url_has_user(endpoint->url) ||
	       error_set(error, ERROR_USAGE,
		       "url: put user and password into \"username\" and \"password_file\"");
}

bool http_json_webhook(struct attempt *attempt, const struct endpoint *endpoint,
	const char *url_file, const char **url, struct error *error)
{
	*url = endpoint->url;
	if (!url_file)
		return true;
	if (!secret_read(attempt->arena, "url_file", url_file, url, error))
		return false;
	return !transfer_url_problem(*url) || error_set(error, ERROR_USAGE, "url_file \"%s\": %s",
						      url_file, transfer_url_problem(*url));
}
