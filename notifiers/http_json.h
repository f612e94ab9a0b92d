/*
 * Common to receivers that take JSON over HTTP: sending a request, and the meaning of an answer's
 * status.
 *
 * 2xx is success. 408, 425, 429 and 5xx are temporary: they are retried, not before Retry-After.
 * 400, 413, 415 and 422 are about this message and permanent. The rest (a redirect, 401, 404, 410
 * ...) concern address or credentials and need a change of the configuration.
 */
#ifndef NOTIFIERS_HTTP_JSON_H
#define NOTIFIERS_HTTP_JSON_H

#include <jansson.h>

#include "notifiers/notifier.h"

struct http_json {
	/*
	 * Sets `next` to the first request of the attempt, or of the follow-up; false with an error
	 * of the configuration. Its headers are those of http_json_request, or its own.
	 */
	bool (*request)(struct attempt *attempt);
	/*
	 * Optional: takes a 2xx answer. STEP_DONE (having set the receipt, if the notifier needs
	 * one), STEP_TRANSFER with the next request, or STEP_FAILED, by notifier_fail.
	 */
	enum step (*answer)(struct attempt *attempt, const struct reply *reply);
	/*
	 * Optional: takes any other answer first. STEP_FAILED by http_json_refused for the usual
	 * meaning of its status.
	 */
	enum step (*refusal)(struct attempt *attempt, const struct reply *reply);
	bool explains; /* the words of its errors are shown: they do not repeat a secret address */
	/* Whether a request without an answer may have had its effect, and how that is found out;
	 * MAYBE_DELIVERED_NO where repeating it does no harm. */
	enum maybe_delivered doubt;
};

/* A notifier's `step`, for messages and follow-ups; its `shape` is a struct http_json. */
enum step http_json_step(struct attempt *attempt, const struct reply *last);

/* A request with a JSON body to that address, with Content-Type; `headers` are added; all arguments
 * are borrowed. */
struct transfer http_json_request(struct attempt *attempt, const struct endpoint *endpoint,
	const char *method, const char *url, const char *body, struct pairs headers);

/* Sets `next` to the first request of attempt->queue and takes it from there; false at its end. */
bool http_json_next(struct attempt *attempt);

/* The text of an object's member, or NULL; and a copy in the arena. */
const char *json_text(const json_t *object, const char *name);
const char *json_keep(struct arena *arena, const json_t *object, const char *name);

/* Members of a payload, unless they are empty: text from outside, cleaned and cut; and text of our
 * own, which may have several lines, and is freed; and any text, as it is, which is freed, too. */
void http_json_text(struct buf *out, const char *name, const char *text, size_t most);
void http_json_lines(struct buf *out, const char *name, struct buf *text);
void http_json_whole(struct buf *out, const char *name, struct buf *text);

/* STEP_FAILED: by the status; an invalid answer is temporary. */
enum step http_json_refused(struct attempt *attempt, const struct reply *reply);

/* "HTTP status 400: invalid label set", with the words of a JSON answer in the arena, without these
 * secrets; NULL: it has none. */
const char *http_json_words(
	struct arena *arena, const struct reply *reply, const struct strings *secrets);

/* Whether the status means that the same request may succeed later. */
bool http_json_passes(int status);

/* Checks that `url` is there and is one. */
bool http_json_check_url(const struct endpoint *endpoint, struct error *error) MUST_USE;

/* The same, and that it holds no user and password. */
bool http_json_check_webhook(const struct endpoint *endpoint, struct error *error) MUST_USE;

/*
 * The channel of a chat, by its incoming webhook: the options of such a receiver begin with these.
 * The address is a secret, and may be kept in a file that is read at each use. The request posts
 * the payload. A lost answer means that the message is posted again: it cannot be looked up.
 */
struct channel_options {
	struct endpoint endpoint;
	const char *url_file;
};

extern const struct field channel_fields[];
#define CHANNEL_URL_FILE "file with the webhook's address, instead of url; read at each use"
bool channel_check(const void *options, struct error *error) MUST_USE;
bool channel_request(struct attempt *attempt) MUST_USE;

#endif
