/*
 * Redirects are followed here and not by libcurl, which withholds Authorization from a foreign
 * host but passes on every other header, and some of those are keys. A GET follows up to five
 * hops, or, with endpoint.redirects, only those within the first request's host, and never goes
 * from https to http; once it has left the configured origin (scheme, host and port) it carries
 * neither credentials nor headers. A POST is followed only where the method is kept and the
 * origin is the same, since its body is meant for that origin alone.
 *
 * A server could redirect us to another one that only we can reach, and read that answer in our
 * error messages. So a failed answer from a foreign origin has no body here, and the driver
 * shows nothing of successful ones.
 *
 * A server that refuses a request may echo its secrets. They are blanked in a failed answer,
 * which is only read for its words; in others they are blanked where words are shown.
 *
 * Errors name the origin and not the path: the path of a webhook is its secret.
 */
#include "agent/io/exchange.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/secret.h"
#include "agent/base/transfer.h"
#include "agent/io/credentials.h"
#include "agent/io/transport.h"

enum { MOST_HOPS = 5, MOST_HEADER_BYTES = 256 << 10, MOST_AGE = 1 << 30 /* s */ };

#define LONGEST_WAIT INT64_C(1000000000000) /* ms; longer waits are cut to this */
#define FIRST_DATE 1000000000               /* s since 1970; less is a wait */

struct exchange {
	CURL *easy;
	const struct transfer *transfer;
	struct arena *arena;
	const char *origin; /* of the first request */
	const char *name;   /* of the server, for messages: of its socket, or NULL */
	const char *alias;  /* the same with server_name as its host, or equal to it */
	const char *here;   /* of the current request */
	const char *barred; /* the origin of a redirect that was not followed */
	struct curl_slist *headers;
	struct transport transport;
	struct buf body;
	struct strings secrets;
	size_t *held; /* the budget's counter, which includes `claim` */
	size_t claim, header_bytes;
	bool trusted; /* the origin is the endpoint's */
	bool foreign; /* a redirect has left the configured origin */
	bool too_big;
	int hops;
	int64_t spent; /* microseconds, in earlier hops */
	char message[CURL_ERROR_SIZE];
};

static char *to_lower(char *text)
{
	for (char *at = text; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	return text;
}

const char *exchange_origin(struct arena *arena, const char *url)
{
	CURLU *parts = curl_url();
	char *scheme = NULL, *host = NULL, *port = NULL;
	const char *origin = NULL;
	if (!url || curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK ||
		curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
		curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
		curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK) {
		/* not a URL */
	} else if (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) {
		origin = arena_printf(arena, "%s://%s:%s", scheme, to_lower(host), port);
	}
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(parts);
	return origin;
}

static void claim(struct exchange *exchange, size_t bytes)
{
	*exchange->held += bytes - exchange->claim;
	exchange->claim = bytes;
}

/* The Content-Length, 0 if it is missing or too large. Unpacked, the body may be larger. */
static size_t announced(const struct exchange *exchange)
{
	curl_off_t length = 0;

	curl_easy_getinfo(exchange->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	return length <= 0 || length > exchange->transfer->endpoint->max_body ? 0 : (size_t)length;
}

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
	struct exchange *exchange = context;
	size_t length = size * count;
	if (length > (size_t)exchange->transfer->endpoint->max_body - exchange->body.length) {
		exchange->too_big = true;
		return 0;
	}
	/* If its length is known, an answer counts in full from its first byte on. */
	size_t known = exchange->body.length == 0 ? announced(exchange) : 0;
	if (known > 0)
		buf_reserve(&exchange->body, known);
	buf_append(&exchange->body, data, length);
	known = known > exchange->body.length ? known : exchange->body.length;
	if (known > exchange->claim)
		claim(exchange, known);
	return length;
}

static size_t take_header(char *data, size_t size, size_t count, void *context)
{
	(void)data;
	struct exchange *exchange = context;
	exchange->header_bytes += size * count;
	return exchange->header_bytes > MOST_HEADER_BYTES ? 0 : size * count;
}

static void set_body(struct exchange *exchange)
{
	const struct transfer *transfer = exchange->transfer;
	if (strcmp(transfer->method, "GET") == 0)
		return;
	curl_easy_setopt(
		exchange->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)transfer->body_length);
	curl_easy_setopt(exchange->easy, CURLOPT_POSTFIELDS, transfer->body ? transfer->body : "");
	if (strcmp(transfer->method, "POST") != 0)
		curl_easy_setopt(exchange->easy, CURLOPT_CUSTOMREQUEST, transfer->method);
	exchange->headers = curl_slist_append(exchange->headers, "Expect:");
}

static void set_limits(struct exchange *exchange)
{
	const struct endpoint *endpoint = exchange->transfer->endpoint;
	CURL *easy = exchange->easy;
	int64_t allowed = exchange->transfer->timeout;
	if (allowed <= 0 || allowed > endpoint->timeout)
		allowed = endpoint->timeout;
	int64_t left = allowed - exchange->spent / 1000;
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(left > 0 ? left : 1));
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)endpoint->connect_timeout);
	curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)endpoint->max_body);
}

static void set_handle(struct exchange *exchange, void *context)
{
	CURL *easy = exchange->easy;
	curl_easy_setopt(easy, CURLOPT_PRIVATE, context);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->message);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "hunter-c/" HUNTER_VERSION);
	curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
	/* libcurl silently repeats a request if a reused connection is closed instead of answered.
	 * On a fresh connection a request is sent once. */
	if (exchange->transfer->once) {
		curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
		curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	}
	set_limits(exchange);
}

static const char *aim(struct exchange *exchange, const char *url, bool own, struct error *error)
{
	return transport_aim(&exchange->transport, exchange->easy, exchange->arena,
		exchange->transfer->endpoint, url, own, &exchange->headers, error);
}

struct exchange *exchange_new(const struct transfer *transfer, void *context, size_t *held,
	size_t wants, struct error *error)
{
	struct exchange *exchange = memory_new(1, sizeof *exchange);
	exchange->transfer = transfer;
	exchange->held = held;
	claim(exchange, wants);
	exchange->arena = arena_new();
	exchange->easy = curl_easy_init();
	if (!exchange->easy)
		abort();
	exchange->origin = exchange->here = exchange_origin(exchange->arena, transfer->url);
	const struct endpoint *endpoint = transfer->endpoint;
	const char *configured =
		endpoint->url ? exchange_origin(exchange->arena, endpoint->url) : exchange->origin;
	if (endpoint->socket)
		exchange->name = arena_printf(exchange->arena, "unix:%s", endpoint->socket);
	bool trusted = configured && strcmp(configured, exchange->origin) == 0;
	exchange->trusted = trusted;

	set_handle(exchange, context);
	set_body(exchange);
	if (!transport_set(exchange->easy, endpoint, error) ||
		!credentials_set(exchange->easy, exchange->arena, transfer, trusted,
			&exchange->headers, &exchange->secrets, error)) {
		exchange_free(exchange);
		return NULL;
	}
	const char *aimed = aim(exchange, transfer->url, trusted, error);
	if (!aimed) {
		exchange_free(exchange);
		return NULL;
	}
	exchange->alias = exchange_origin(exchange->arena, aimed);
	return exchange;
}

void exchange_free(struct exchange *exchange)
{
	if (!exchange)
		return;
	claim(exchange, 0);
	curl_easy_cleanup(exchange->easy);
	for (struct curl_slist *header = exchange->headers; header; header = header->next)
		explicit_bzero(header->data, strlen(header->data));
	curl_slist_free_all(exchange->headers);
	transport_free(&exchange->transport);
	buf_free(&exchange->body);
	arena_free(exchange->arena);
	free(exchange);
}

CURL *exchange_easy(struct exchange *exchange)
{
	return exchange->easy;
}

size_t exchange_claim(const struct exchange *exchange)
{
	return exchange->claim;
}

/* An answer of unknown length is assumed to be at most twice what has been received. */
size_t exchange_needs(const struct exchange *exchange)
{
	size_t length = exchange->body.length, known = length > 0 ? announced(exchange) : 0;
	size_t most = (size_t)exchange->transfer->endpoint->max_body;
	size_t needs = length <= known ? known : 2 * length;

	return needs < most ? needs : most;
}

static int64_t took_now(CURL *easy)
{
	curl_off_t took = 0;
	curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &took);
	return (int64_t)took;
}

static const char *header_value(CURL *easy, const char *name)
{
	struct curl_header *header;
	return curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK
		       ? header->value
		       : NULL;
}

/* No length, last chunk or HTTP/2 frame marked the end of the body. */
static bool is_open_ended(CURL *easy)
{
	long version = 0;
	curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
	if (version >= CURL_HTTP_VERSION_2_0)
		return false;
	const char *coding = header_value(easy, "Transfer-Encoding");
	return !(coding && strcasestr(coding, "chunked")) && !header_value(easy, "Content-Length");
}

static bool same_host(const char *a, const char *b)
{
	const char *host_a = strstr(a, "://"), *host_b = strstr(b, "://");
	size_t length_a = (size_t)(strrchr(a, ':') - host_a);
	size_t length_b = (size_t)(strrchr(b, ':') - host_b);

	return length_a == length_b && memcmp(host_a, host_b, length_a) == 0;
}

/* Whether a redirect to that origin may be followed; server_name counts as the same host. */
static bool is_allowed(const struct exchange *exchange, const char *origin)
{
	bool tls = strncmp(exchange->here, "https:", 6) == 0;

	if (tls && strncmp(origin, "https:", 6) != 0)
		return false;
	switch ((enum redirects)exchange->transfer->endpoint->redirects) {
	case REDIRECTS_ANY: return true;
	case REDIRECTS_NONE: return false;
	case REDIRECTS_SAME_HOST: break;
	}
	return same_host(origin, exchange->origin) || same_host(origin, exchange->alias);
}

/* The origin of a server that was not configured, as it may be shown. */
static const char *shown(const struct exchange *exchange, const char *origin)
{
	char *copy = arena_strdup(exchange->arena, origin);
	secret_mask(copy, strlen(copy), &exchange->secrets);
	return copy;
}

/* Points the handle at the redirect's target, if it may be followed. */
static bool follow(struct exchange *exchange, int status)
{
	bool get = strcmp(exchange->transfer->method, "GET") == 0;
	bool kept = status == 307 || status == 308;
	if (status < 301 || status > 308 || (!kept && status > 303) || exchange->hops == MOST_HOPS)
		return false;
	const char *target = NULL, *origin;
	/* libcurl would put the handle's user info into it, and a server has none to give. */
	curl_easy_getinfo(exchange->easy, CURLINFO_REDIRECT_URL, &target);
	target = transport_bare_url(exchange->arena, target);
	origin = exchange_origin(exchange->arena, target);
	bool same = origin && !exchange->foreign &&
		    (strcmp(origin, exchange->origin) == 0 || strcmp(origin, exchange->alias) == 0);
	if (!origin || (!get && !(kept && same)))
		return false;
	/* A server that knows a secret can put it into a host name, which is lower-cased from then
	 * on. */
	for (size_t i = 0, count = same ? 0 : exchange->secrets.count; i < count; i++)
		strings_add(&exchange->secrets, exchange->arena,
			to_lower(arena_strdup(exchange->arena, exchange->secrets.items[i])));
	if (!is_allowed(exchange, origin)) {
		exchange->barred = shown(exchange, origin);
		return false;
	}

	exchange->spent += took_now(exchange->easy);
	exchange->hops++;
	exchange->here = same ? exchange->origin : origin;
	if (!same) {
		credentials_forget(exchange->easy);
		exchange->foreign = true;
	}
	claim(exchange, 0);
	buf_clear(&exchange->body);
	exchange->header_bytes = 0;
	set_limits(exchange);
	struct error error;
	return aim(exchange, target, same && exchange->trusted, &error) != NULL;
}

/* Seconds, rounded up, or a date; never too early. */
int64_t exchange_retry_after(const char *value, int64_t now)
{
	while (*value == ' ' || *value == '\t')
		value++;
	size_t digits = strspn(value, "0123456789");
	size_t point = digits + (digits > 0 && value[digits] == '.');
	size_t end = point + (point > digits ? strspn(value + point, "0123456789") : 0);
	if (digits > 0 && value[end + strspn(value + end, " \t")] == '\0')
		return digits > 9 ? LONGEST_WAIT
				  : 1000 * (strtoll(value, NULL, 10) + (end > point));
	if (!strpbrk(value, ":") || digits > 0)
		return -1;
	int64_t when = (int64_t)curl_getdate(value, NULL);
	if (when < 0)
		return -1;
	return when > now ? (when - now) * 1000 : 0;
}

/* Date has whole seconds, and a cache keeps the old one. */
static void compare_clocks(CURL *easy, struct reply *reply)
{
	const char *date = header_value(easy, "Date"), *age = header_value(easy, "Age");
	int64_t when = date ? (int64_t)curl_getdate(date, NULL) : -1;
	long long kept = age ? strtoll(age, NULL, 10) : 0;

	reply->dated = when >= 0;
	if (kept < 0 || kept > MOST_AGE)
		reply->dated = false;
	if (reply->dated)
		reply->ahead = ((int64_t)time(NULL) - when - (int64_t)kept) * 1000;
}

/* A date is in s since 1970, which no wait is as long as. */
int64_t exchange_reset_after(const char *remaining, const char *reset, int64_t now)
{
	char *end;
	long long when = strtoll(reset, &end, 10);

	if (end == reset || when < 0 || remaining[strspn(remaining, " \t")] != '0' ||
		strtoll(remaining, NULL, 10) != 0)
		return -1;
	if (when > LONGEST_WAIT / 1000 + now)
		return LONGEST_WAIT;
	if (when >= FIRST_DATE)
		when = when > now ? when - now : 0;
	return 1000 * ((int64_t)when + (*end == '.'));
}

static int64_t retry_after(CURL *easy)
{
	static const char *const limits[][2] = {{"X-RateLimit-Remaining", "X-RateLimit-Reset"},
		{"RateLimit-Remaining", "RateLimit-Reset"}};
	const char *date = header_value(easy, "Date"), *later;
	int64_t now = date ? (int64_t)curl_getdate(date, NULL) : -1, wait = -1;
	if (now < 0)
		now = (int64_t)time(NULL);
	later = header_value(easy, "Retry-After");
	if (later)
		wait = exchange_retry_after(later, now);
	for (size_t i = 0; i < sizeof limits / sizeof *limits && wait < 0; i++) {
		const char *remaining = header_value(easy, limits[i][0]);
		const char *reset = header_value(easy, limits[i][1]);
		if (remaining && reset)
			wait = exchange_reset_after(remaining, reset, now);
	}
	return wait;
}

bool exchange_finish(struct exchange *exchange, CURLcode code, struct reply *reply)
{
	long status = 0, request = 0;
	curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_OK && follow(exchange, (int)status))
		return false;
	*reply = (struct reply){.retry_after = -1,
		.body = exchange->body.data ? exchange->body.data : "",
		.secrets = exchange->secrets};
	reply->length = exchange->body.length;
	claim(exchange, exchange->body.length);
	reply->took = exchange->spent + took_now(exchange->easy);
	reply->redirected = exchange->foreign ? shown(exchange, exchange->here) : NULL;
	reply->barred = exchange->barred;
	if (code == CURLE_OK) {
		reply->kind = REPLY_ANSWER;
		if (status < 200 || status > 299) {
			secret_mask(exchange->body.data, exchange->body.length, &exchange->secrets);
			if (exchange->foreign) {
				reply->body = "";
				reply->length = 0;
			}
		}
		reply->status = (int)status;
		reply->retry_after = retry_after(exchange->easy);
		compare_clocks(exchange->easy, reply);
		reply->open_ended = is_open_ended(exchange->easy);
		char *type = NULL;
		curl_easy_getinfo(exchange->easy, CURLINFO_CONTENT_TYPE, &type);
		reply->content_type = type;
		return true;
	}
	curl_easy_getinfo(exchange->easy, CURLINFO_REQUEST_SIZE, &request);
	bool sent = request > 0 || exchange->hops > 0;
	reply->kind = sent ? REPLY_AMBIGUOUS : REPLY_UNREACHABLE;
	reply->cut_status = (int)status;
	if (exchange->too_big || code == CURLE_FILESIZE_EXCEEDED)
		reply->kind = REPLY_TOO_BIG;
	const struct problem problem = {
		.easy = exchange->easy,
		.code = code,
		.message = exchange->message,
		.endpoint = exchange->transfer->endpoint,
		.here = reply->redirected ? reply->redirected
			: exchange->name  ? exchange->name
					  : exchange->here,
		.sent = sent,
		.body_too_big = reply->kind == REPLY_TOO_BIG,
		.head_too_big = exchange->header_bytes > MOST_HEADER_BYTES,
	};
	reply->problem = problem_explain(&problem, exchange->arena);
	return true;
}
