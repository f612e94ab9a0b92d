/*
 * libcurl checks a certificate against the host of the URL only, so server_name replaces the
 * host in the URL, CONNECT_TO directs the connection to the original host, and a Host header
 * carries the original name.
 *
 * libcurl's errors about a proxy address quote it with its password. That is why the address is
 * parsed here first, and why such messages are not passed on.
 */
#include "agent/io/transport.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/base/buf.h"
#include "agent/base/when.h"

void transport_free(struct transport *transport)
{
	curl_slist_free_all(transport->connect_to);
	transport->connect_to = NULL;
}

const char *transport_bare_url(struct arena *arena, const char *url)
{
	CURLU *parts = curl_url();
	char *text = NULL;
	if (url && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
		curl_url_set(parts, CURLUPART_USER, NULL, 0) == CURLUE_OK &&
		curl_url_set(parts, CURLUPART_PASSWORD, NULL, 0) == CURLUE_OK)
		curl_url_get(parts, CURLUPART_URL, &text, 0);
	const char *out = arena_strdup(arena, text);
	curl_free(text);
	curl_url_cleanup(parts);
	return out;
}

static bool set_proxy(CURL *easy, const struct endpoint *endpoint, struct error *error)
{
	struct buf hosts = {0};
	buf_text(&hosts, "");
	for (size_t i = 0; i < endpoint->no_proxy.count; i++)
		buf_printf(&hosts, "%s%s", i ? "," : "", endpoint->no_proxy.items[i]);
	if (hosts.length > 0 ||
		endpoint->proxy) /* the environment's no_proxy does not apply to it */
		curl_easy_setopt(easy, CURLOPT_NOPROXY, hosts.data);
	buf_free(&hosts);
	if (!endpoint->proxy)
		return true;
	bool none = strcmp(endpoint->proxy, "none") == 0;
	CURLU *parts = curl_url();
	bool known = none || curl_url_set(parts, CURLUPART_URL, endpoint->proxy,
				     CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK;
	curl_url_cleanup(parts);
	if (!known)
		return error_set(error, ERROR_USAGE, "proxy: must be an address");
	curl_easy_setopt(easy, CURLOPT_PROXY, none ? "" : endpoint->proxy);
	return true;
}

bool transport_set(CURL *easy, const struct endpoint *endpoint, struct error *error)
{
	if (endpoint->socket)
		curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, endpoint->socket);
	if (endpoint->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, endpoint->ca_file);
	if (endpoint->insecure_skip_verify) {
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	return set_proxy(easy, endpoint, error);
}

/* Done once, for the first address: CONNECT_TO and the Host header. */
static void keep_way(
	struct transport *transport, struct arena *arena, CURLU *parts, struct curl_slist **headers)
{
	char *host = NULL, *port = NULL;
	if (transport->connect_to || curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
		curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK) {
		curl_free(host);
		return;
	}
	transport->connect_to = curl_slist_append(NULL, arena_printf(arena, "::%s:%s", host, port));
	const struct curl_slist *header = headers ? *headers : NULL;
	while (header && strncasecmp(header->data, "Host:", 5) != 0)
		header = header->next;
	if (headers && !header)
		*headers = curl_slist_append(*headers,
			strcmp(port, "443") == 0 ? arena_printf(arena, "Host: %s", host)
						 : arena_printf(arena, "Host: %s:%s", host, port));
	curl_free(host);
	curl_free(port);
}

const char *transport_aim(struct transport *transport, CURL *easy, struct arena *arena,
	const struct endpoint *endpoint, const char *url, bool own, struct curl_slist **headers,
	struct error *error)
{
	CURLU *parts = curl_url();
	char *renamed = NULL;
	bool tls = strncasecmp(url, "https:", 6) == 0;
	bool rename = own && (tls || !headers) && endpoint->server_name &&
		      curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK;
	if (rename) {
		keep_way(transport, arena, parts, headers);
		if (curl_url_set(parts, CURLUPART_HOST, endpoint->server_name, 0) != CURLUE_OK ||
			curl_url_get(parts, CURLUPART_URL, &renamed, 0) != CURLUE_OK) {
			curl_url_cleanup(parts);
			error_set(error, ERROR_USAGE, "server_name: must be a host name");
			return NULL;
		}
		if (headers)
			curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *headers);
	}
	const char *aimed = arena_strdup(arena, renamed ? renamed : url);
	curl_free(renamed);
	curl_url_cleanup(parts);
	curl_easy_setopt(easy, CURLOPT_CONNECT_TO, rename ? transport->connect_to : NULL);
	curl_easy_setopt(
		easy, CURLOPT_PIPEWAIT, tls ? 1L : 0L); /* to share one HTTP/2 connection */
	curl_easy_setopt(easy, CURLOPT_URL, aimed);
	return aimed;
}

static const char *hint(const struct problem *problem, const char *message)
{
	bool tls = strncmp(problem->here, "https:", 6) == 0;
	bool mail = strncmp(problem->here, "smtp", 4) == 0;
	if (strstr(message, "certificate required") || strstr(message, "bad certificate"))
		return " (the server requires a client certificate: cert_file, key_file)";
	if (strstr(message, "response 407"))
		return " (the proxy requires a user and password in its address)";
	if (tls && !problem->sent && !problem->endpoint->cert_file &&
		(problem->code == CURLE_RECV_ERROR || problem->code == CURLE_SEND_ERROR))
		return " (it may require a client certificate: cert_file, key_file)";
	if (problem->code == CURLE_SSL_CONNECT_ERROR && strstr(message, "wrong version number"))
		return mail ? " (the server does not speak TLS at once: is it smtp:// ?)"
			    : " (the server does not speak TLS: is it http:// ?)";
	if (mail && problem->code == CURLE_WEIRD_SERVER_REPLY)
		return " (the server does not speak SMTP)";
	if (problem->code == CURLE_UNSUPPORTED_PROTOCOL ||
		problem->code == CURLE_WEIRD_SERVER_REPLY ||
		(problem->code == CURLE_GOT_NOTHING && !tls))
		return " (the server does not speak HTTP: is it https:// ?)";
	bool verified = problem->code != CURLE_PEER_FAILED_VERIFICATION;
	if (!verified && (strstr(message, "expired") || strstr(message, "not yet valid")))
		return " (the server's certificate, or this machine's clock)";
	if (!verified && (strstr(message, "subject name") || strstr(message, "does not match")))
		return " (server_name sets the name that the certificate must have)";
	if (!verified)
		return " (ca_file sets the certificates to trust)";
	if (problem->code == CURLE_SSL_CERTPROBLEM)
		return " (cert_file, key_file)";
	if (problem->code == CURLE_COULDNT_RESOLVE_HOST)
		return " (check the host name in url)";
	return "";
}

/* "host:port" of the proxy that could not be reached, if it is one and not part of `here`. */
static const char *unreached_proxy(const struct problem *problem, struct arena *arena)
{
	char host[256];
	unsigned port;
	if (sscanf(problem->message, "Failed to connect to %255s port %u", host, &port) != 2)
		return NULL;
	const char *place = arena_printf(arena, "%s:%u", host, port);
	const char *asked = strstr(problem->here, "://");
	if (problem->endpoint->socket || problem->endpoint->server_name ||
		(asked && strcasecmp(asked + 3, place) == 0))
		return NULL;
	return strchr(host, ':') ? NULL : place; /* an IPv6 address can be written in two ways */
}

static const char *timed_out(const struct problem *problem, struct arena *arena)
{
	const struct endpoint *endpoint = problem->endpoint;
	char duration[WHEN_TEXT];
	if (problem->sent)
		return arena_printf(arena, "%s: no complete response within %s", problem->here,
			when_format_duration(endpoint->timeout, duration));
	return arena_printf(arena, "cannot reach %s: no connection within %s", problem->here,
		when_format_duration(endpoint->connect_timeout < endpoint->timeout
					     ? endpoint->connect_timeout
					     : endpoint->timeout,
			duration));
}

const char *problem_explain(const struct problem *problem, struct arena *arena)
{
	if (problem->body_too_big)
		return arena_printf(arena,
			"%s: response exceeds max_body (%lld bytes): shorten the range, narrow "
			"the query, or raise max_body",
			problem->here, (long long)problem->endpoint->max_body);
	if (problem->head_too_big)
		return arena_printf(arena, "%s: response headers are too large", problem->here);
	if (problem->code == CURLE_OPERATION_TIMEDOUT)
		return timed_out(problem, arena);
	long number = 0;
	curl_easy_getinfo(problem->easy, CURLINFO_OS_ERRNO, &number);
	const char *message = problem->message, *proxy = NULL;
	if (!*message || strstr(message, "Unsupported proxy"))
		message = *message ? "the proxy's address in the environment is not a URL"
				   : curl_easy_strerror(problem->code);
	if (problem->code == CURLE_COULDNT_CONNECT && number != 0) {
		proxy = unreached_proxy(problem, arena);
		message = strerror((int)number);
	}
	if (strncmp(message, "getpeername()", 13) == 0)
		message = "connection closed";
	const char *advice = hint(problem, message);
	if (proxy)
		return arena_printf(
			arena, "cannot reach %s: its proxy %s: %s", problem->here, proxy, message);
	return arena_printf(arena, problem->sent ? "%s: %s%s" : "cannot reach %s: %s%s",
		problem->here, message, advice);
}
