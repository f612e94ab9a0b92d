/*
 * libcurl's messages are good and are passed on, but for those that quote a proxy's address with
 * its password. What to do about it is added where it is known.
 */
#include "agent/client/problem.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/core/when.h"

static const char *certificate_hint(const char *message)
{
	if (strstr(message, "expired") || strstr(message, "not yet valid"))
		return " (the server's certificate, or this machine's clock)";
	if (strstr(message, "subject name") || strstr(message, "does not match"))
		return " (server_name says which name the certificate must hold)";
	return " (ca_file names the certificates to trust)";
}

static const char *hint(const struct problem *problem, const char *message)
{
	bool tls = strncmp(problem->here, "https:", 6) == 0;
	if (strstr(message, "certificate required") || strstr(message, "bad certificate"))
		return " (the server wants to see a certificate of ours: cert_file, key_file)";
	if (strstr(message, "response 407"))
		return " (the proxy wants a user and password within its address)";
	if (tls && !problem->sent && !problem->endpoint->cert_file &&
		(problem->code == CURLE_RECV_ERROR || problem->code == CURLE_SEND_ERROR))
		return " (perhaps it wants to see a certificate of ours: cert_file, key_file)";
	if (problem->code == CURLE_SSL_CONNECT_ERROR && strstr(message, "wrong version number"))
		return " (no TLS is spoken there: is it http:// ?)";
	if (problem->code == CURLE_UNSUPPORTED_PROTOCOL ||
		problem->code == CURLE_WEIRD_SERVER_REPLY ||
		(problem->code == CURLE_GOT_NOTHING && !tls))
		return " (no HTTP is spoken there: is it https:// ?)";
	if (problem->code == CURLE_PEER_FAILED_VERIFICATION)
		return certificate_hint(message);
	if (problem->code == CURLE_SSL_CERTPROBLEM)
		return " (cert_file, key_file)";
	if (problem->code == CURLE_COULDNT_RESOLVE_HOST)
		return " (is it spelled right in url?)";
	return "";
}

/* "host:port" of the proxy that was not reached, where it is one and no part of `here`. */
static const char *unreached_proxy(const struct problem *problem, struct arena *arena)
{
	char host[256];
	unsigned port;
	if (sscanf(problem->message, "Failed to connect to %255s port %u", host, &port) != 2)
		return NULL;
	const char *place = arena_printf(arena, "%s:%u", host, port);
	const char *asked = strstr(problem->here, "://");
	if (problem->endpoint->server_name || (asked && strcasecmp(asked + 3, place) == 0))
		return NULL;
	return strchr(host, ':') ? NULL : place; /* an IPv6 address is written in two ways */
}

static const char *timed_out(const struct problem *problem, struct arena *arena)
{
	const struct endpoint *endpoint = problem->endpoint;
	char duration[WHEN_TEXT];
	if (problem->sent)
		return arena_printf(arena, "%s: no whole answer within %s", problem->here,
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
			"%s: the answer is larger than max_body, %lld bytes: ask for less, or "
			"raise it",
			problem->here, (long long)problem->endpoint->max_body);
	if (problem->head_too_big)
		return arena_printf(
			arena, "%s: the headers of the answer are too large", problem->here);
	if (problem->code == CURLE_OPERATION_TIMEDOUT)
		return timed_out(problem, arena);
	long number = 0;
	curl_easy_getinfo(problem->easy, CURLINFO_OS_ERRNO, &number);
	const char *message = problem->message, *proxy = NULL;
	if (!*message || strstr(message, "Unsupported proxy"))
		message = *message ? "the proxy's address in the environment is no URL"
				   : curl_easy_strerror(problem->code);
	if (problem->code == CURLE_COULDNT_CONNECT && number != 0) {
		proxy = unreached_proxy(problem, arena);
		message = strerror((int)number);
	}
	if (strncmp(message, "getpeername()", 13) == 0)
		message = "the connection was closed";
	const char *advice = hint(problem, message);
	if (proxy)
		return arena_printf(
			arena, "cannot reach %s: its proxy %s: %s", problem->here, proxy, message);
	return arena_printf(arena, problem->sent ? "%s: %s%s" : "cannot reach %s: %s%s",
		problem->here, message, advice);
}
