/*
 * URLs are split by hand here, only as far as messages and joining need; libcurl parses those
 * that are requested. The user info ends at the last @ before the path, as a password may
 * contain one.
 */
#include "agent/base/transfer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/secret.h"

static const char *const redirect_choices[] = {"same-host", "any", "none", NULL};

const struct field endpoint_fields[] = {
	OPTION_STRING(struct endpoint, url, NULL, "server address, including its path prefix",
		.flags = FIELD_ENV),
	OPTION_STRING(struct endpoint, username, NULL, "user for basic authentication",
		.alias = "user", .flags = FIELD_ENV),
	OPTION_SECRET(struct endpoint, password, "password for basic authentication",
		.flags = FIELD_ENV | FIELD_EMPTY),
	OPTION_STRING(
		struct endpoint, password_file, NULL, "file with the password, read at each use"),
	OPTION_SECRET(struct endpoint, bearer_token, "token sent as Authorization: Bearer"),
	OPTION_STRING(
		struct endpoint, bearer_token_file, NULL, "file with the token, read at each use"),
	OPTION_MAP(
		struct endpoint, headers, "headers sent with each request", .flags = FIELD_CLOSED),
	OPTION_STRING(
		struct endpoint, ca_file, NULL, "trusted CA certificates, instead of the system's"),
	OPTION_STRING(struct endpoint, cert_file, NULL, "client certificate (PEM)"),
	OPTION_STRING(struct endpoint, key_file, NULL,
		"private key of the client certificate; optional if cert_file contains it"),
	OPTION_STRING(struct endpoint, server_name, NULL,
		"expected name in the server's certificate; default: the host of url"),
	OPTION_BOOL(struct endpoint, insecure_skip_verify, "accept any TLS certificate"),
	OPTION_SECRET(struct endpoint, proxy, /* endpoint_check reports an empty one */
		"http://, https:// or socks5h:// proxy, or none; default: https_proxy, http_proxy "
		"or all_proxy of the environment",
		.flags = FIELD_EMPTY),
	OPTION_LIST(struct endpoint, no_proxy,
		"hosts, domains and networks (10.0.0.0/8) reached without the proxy; default: "
		"no_proxy of the environment"),
	OPTION_CHOICE(struct endpoint, redirects, "same-host", redirect_choices,
		"redirects to follow; never from https to http"),
	OPTION_DURATION(struct endpoint, connect_timeout, "10s", 1, 3600e3, "connection timeout"),
	OPTION_DURATION(struct endpoint, timeout, "30s", 1, 3600e3, "total timeout of a request"),
	OPTION_DURATION(struct endpoint, retry_for, "1m", 0, 3600e3,
		"retry a source's failed request within this time, at most twice; 0: no retries"),
	OPTION_INT(struct endpoint, max_concurrent, "16", 1, 256,
		"maximum number of concurrent requests to this server"),
	OPTION_BYTES(struct endpoint, max_body, "64MB", 1024, 1e9,
		"maximum size of a response, uncompressed"),
	OPTION_INT(struct endpoint, max_points, "1000000", 1, 1e9,
		"maximum number of points of a source's series"),
	{0},
};

static bool is_proxy(const char *text)
{
	static const char *const schemes[] = {
		"http://", "https://", "socks4://", "socks4a://", "socks5://", "socks5h://"};
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
		if (strncasecmp(text, schemes[i], strlen(schemes[i])) == 0)
			return true;
	return strcmp(text, "none") == 0;
}

bool endpoint_check(const struct endpoint *endpoint, struct error *error)
{
	bool token = endpoint->bearer_token || endpoint->bearer_token_file;
	bool password = endpoint->password || endpoint->password_file;
	if (token && (endpoint->username || password))
		return error_set(error, ERROR_USAGE,
			"a bearer token and username or password: only one of them can be sent");
	if (endpoint->bearer_token && !secret_check("bearer_token", endpoint->bearer_token, error))
		return false;
	if (password && !endpoint->username)
		return error_set(error, ERROR_USAGE, "password requires username");
	if (endpoint->key_file && !endpoint->cert_file)
		return error_set(error, ERROR_USAGE, "key_file requires cert_file");
	if (endpoint->proxy && !is_proxy(endpoint->proxy))
		return error_set(error, ERROR_USAGE,
			"proxy: it must be an address like http://proxy:3128 or "
			"socks5h://proxy:1080, or none");
	return true;
}

/* The parts of "scheme://user@host:port/path?query#fragment"; `scheme` counts the "://". */
struct url_parts {
	size_t scheme, host, path, end;
};

static struct url_parts url_split(const char *url)
{
	struct url_parts parts = {0};
	const char *colon = strstr(url, "://");
	if (colon)
		parts.scheme = (size_t)(colon - url) + 3;
	parts.path = parts.scheme + strcspn(url + parts.scheme, "/?#");
	parts.host = parts.scheme;
	for (size_t i = parts.scheme; i < parts.path; i++)
		if (url[i] == '@')
			parts.host = i + 1;
	parts.end = parts.path + strcspn(url + parts.path, "?#");
	return parts;
}

bool transfer_url_ambiguous(const char *url)
{
	struct url_parts parts = url_split(url);
	if (!strchr(url + parts.path, '@'))
		return false;
	return parts.host > parts.scheme ||
	       memchr(url + parts.scheme, ':', parts.path - parts.scheme) != NULL;
}

bool transfer_url_is_http(const char *url)
{
	return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

bool transfer_url_is_mail(const char *url)
{
	return strncasecmp(url, "smtp://", 7) == 0 || strncasecmp(url, "smtps://", 8) == 0;
}

/* Addresses that no host can have. */
static const char *spelling_problem(const char *url)
{
	struct url_parts parts = url_split(url);
	const char *host = url + parts.host, *end = url + parts.path, *colon = end;
	while (colon > host && colon[-1] >= '0' && colon[-1] <= '9')
		colon--;
	if (colon > host && colon[-1] == ':' &&
		(end - colon > 5 || strtol(colon, NULL, 10) > 65535))
		return "its port is above 65535";
	for (const char *at = url; *at; at++)
		if ((unsigned char)*at <= ' ' || *at == 0x7f)
			return "it contains a blank or a line break";
	return NULL;
}

const char *transfer_url_problem(const char *url)
{
	return transfer_url_is_http(url) ? spelling_problem(url)
					 : "it must begin with http:// or https://";
}

const char *transfer_mail_url_problem(const char *url)
{
	return transfer_url_is_mail(url) ? spelling_problem(url)
					 : "it must begin with smtp:// or smtps://";
}

bool transfer_host_is_local(const char *host, size_t length)
{
	static const char name[] = "localhost", *const loops[] = {"::1", "[::1]"};
	size_t n = sizeof name - 1;
	for (size_t i = 0; i < 2; i++)
		if (length == strlen(loops[i]) && memcmp(host, loops[i], length) == 0)
			return true;
	if (length > 4 && memcmp(host, "127.", 4) == 0)
		return strspn(host, "0123456789.") >= length;
	return length >= n && strncasecmp(host + length - n, name, n) == 0 &&
	       (length == n || host[length - n - 1] == '.');
}

bool transfer_url_is_local(const char *url)
{
	struct url_parts parts = url_split(url);
	const char *host = url + parts.host;
	size_t length = parts.path - parts.host;
	const char *closing = *host == '[' ? memchr(host, ']', length) : NULL;
	const char *colon = memchr(host, ':', length);
	if (closing)
		length = (size_t)(closing - host) + 1;
	else if (colon)
		length = (size_t)(colon - host);
	return transfer_host_is_local(host, length);
}

bool transfer_url_has_user(const char *url)
{
	struct url_parts parts = url_split(url);
	return parts.host > parts.scheme;
}

const char *transfer_safe_url(struct arena *arena, const char *url)
{
	struct url_parts parts = url_split(url);
	if (transfer_url_ambiguous(url))
		return arena_printf(arena, "%.*s...", (int)parts.scheme, url);
	return arena_printf(arena, "%.*s%.*s", (int)parts.scheme, url,
		(int)(parts.end - parts.host), url + parts.host);
}

const char *transfer_shown_url(
	struct arena *arena, const struct endpoint *endpoint, const char *url)
{
	const char *safe = transfer_safe_url(arena, url);
	if (!endpoint || !endpoint->shown)
		return safe;
	const char *base = transfer_join_url(arena, endpoint->url, "");
	size_t length = strlen(base) - 1;
	if (strncmp(safe, base, length) != 0)
		return safe;
	return transfer_join_url(arena, endpoint->shown, safe + length);
}

const char *transfer_join_url(struct arena *arena, const char *base, const char *path)
{
	struct url_parts parts = url_split(base);
	while (parts.end > parts.host && base[parts.end - 1] == '/')
		parts.end--;
	while (*path == '/')
		path++;
	return arena_printf(arena, "%.*s%.*s/%s", (int)parts.scheme, base,
		(int)(parts.end - parts.host), base + parts.host, path);
}

void transfer_encode(struct buf *out, const char *text)
{
	static const char hex[] = "0123456789ABCDEF";
	for (const char *at = text; *at; at++) {
		unsigned char c = (unsigned char)*at;
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || strchr("-._~", c);
		if (plain) {
			buf_char(out, (char)c);
			continue;
		}
		char escaped[3] = {'%', hex[c >> 4], hex[c & 15]};
		buf_append(out, escaped, sizeof escaped);
	}
}
