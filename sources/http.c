/*
 * The text of an HTML page is not shown, since it is markup or a login form. Graphite sends plain-
 * text errors as text/html, so for an error status the content decides.
 */
#include "sources/http.h"

#include <string.h>

#include "agent/base/secret.h"
#include "agent/base/utf8.h"

enum {
	GET_URL_MAX = 2000, /* longer ones use POST */
	LINE_MAX_SHOWN = 300,
};

const char *http_ask(
	const struct query *query, const char *path, struct buf *parameters, struct transfer *next)
{
	static const struct pair form[] = {{"Content-Type", "application/x-www-form-urlencoded"}};
	const struct endpoint *endpoint = query->server;
	const char *address = transfer_join_url(query->arena, endpoint->url, path);
	*next = (struct transfer){
		.kind = TRANSFER_HTTP, .endpoint = endpoint, .method = "GET", .url = address};
	if (strlen(address) + parameters->length < GET_URL_MAX) {
		if (parameters->length)
			next->url = arena_printf(query->arena, "%s?%s", address, parameters->data);
	} else {
		next->method = "POST";
		next->headers = (struct pairs){form, 1};
		next->body = arena_strndup(query->arena, parameters->data, parameters->length);
		next->body_length = parameters->length;
	}
	buf_free(parameters);
	return transfer_shown_url(query->arena, endpoint, address);
}

const char *http_error_line(struct arena *arena, const struct reply *reply, const char *text)
{
	while (*text == ' ' || *text == '\n' || *text == '\r' || *text == '\t')
		text++;
	size_t length = strcspn(text, "\r\n");
	size_t most = length < LINE_MAX_SHOWN ? length : LINE_MAX_SHOWN;
	char *line = secret_cut(arena, text, most, &reply->secrets);
	utf8_blank(line, ' ');
	return line;
}

bool http_error_is_page(const struct reply *reply)
{
	const char *text = reply->body + strspn(reply->body, " \t\r\n");
	bool named = reply->content_type && strstr(reply->content_type, "html");
	return *text == '<' || (named && reply->status == 200);
}

static const char *common_advice(const struct reply *reply, const char *message)
{
	if (reply->status == 401 || reply->status == 403)
		return ": check username and password, or bearer_token";
	if (reply->status == 404)
		return ": does url contain the server's path?";
	if (reply->status == 407)
		return ": the proxy requires a user and password in its address";
	if (reply->status >= 300 && reply->status < 400)
		return ": a redirect, which is not followed; set url to the final address";
	if (strstr(message, "HTTP request to an HTTPS server"))
		return ": use https:// in url";
	return "";
}

bool http_error_answer(const char *address, const struct reply *reply, const char *message,
	const char *advice, struct error *error)
{
	if (!http_error_is_page(reply))
		error_set(error, ERROR_DATA, "%s: status %d%s%s%s", address, reply->status,
			*message ? ": " : "", message,
			advice ? advice : common_advice(reply, message));
	else if (reply->status >= 500)
		error_set(error, ERROR_DATA,
			"%s: status %d with an HTML page: the server failed internally; "
			"see its log",
			address, reply->status);
	else
		error_set(error, ERROR_DATA,
			"%s: status %d with an HTML page: a login page, or not the address of the "
			"API",
			address, reply->status);
	if (reply->barred)
		error_set(error, ERROR_DATA, "%s (it points to %.200s; see redirects)", error->text,
			reply->barred);
	return false;
}
