/*
 * libcurl checks a certificate against the host of the URL and knows no other name, so a
 * server_name takes the host's place in the URL, CONNECT_TO sends the connection where it would
 * have gone, and a Host header says what it would have said.
 *
 * libcurl's messages about a proxy's address quote all of it with its password. That is why the
 * address is parsed here first.
 */
#include "agent/client/transport.h"

#include <string.h>
#include <strings.h>

#include "agent/core/buf.h"

void transport_free(struct transport *transport)
{
	curl_slist_free_all(transport->connect_to);
	transport->connect_to = NULL;
}

static bool check_proxy(const char *proxy, struct error *error)
{
	CURLU *parts = curl_url();
	bool known =
		curl_url_set(parts, CURLUPART_URL, proxy, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK;
	curl_url_cleanup(parts);
	return known || error_set(error, ERROR_USAGE, "proxy: it must be an address");
}

static bool set_proxy(CURL *easy, const struct endpoint *endpoint, struct error *error)
{
	struct buf hosts = {0};
	buf_text(&hosts, "");
	for (size_t i = 0; i < endpoint->no_proxy.count; i++)
		buf_printf(&hosts, "%s%s", i ? "," : "", endpoint->no_proxy.items[i]);
	if (hosts.length > 0 || endpoint->proxy) /* no_proxy of the environment is not for it */
		curl_easy_setopt(easy, CURLOPT_NOPROXY, hosts.data);
	buf_free(&hosts);
	if (!endpoint->proxy)
		return true;
	bool none = strcmp(endpoint->proxy, "none") == 0;
	if (!none && !check_proxy(endpoint->proxy, error))
		return false;
	curl_easy_setopt(easy, CURLOPT_PROXY, none ? "" : endpoint->proxy);
	return true;
}

bool transport_set(CURL *easy, const struct endpoint *endpoint, struct error *error)
{
	if (endpoint->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, endpoint->ca_file);
	if (endpoint->insecure_skip_verify) {
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	return set_proxy(easy, endpoint, error);
}

static bool names_host(const struct curl_slist *headers)
{
	for (; headers; headers = headers->next)
		if (strncasecmp(headers->data, "Host:", 5) == 0)
			return true;
	return false;
}

/* Once, for the address that was asked first: where to connect and what to say. */
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
	if (!names_host(*headers))
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
	bool rename = own && tls && endpoint->server_name &&
		      curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK;
	if (rename) {
		keep_way(transport, arena, parts, headers);
		if (curl_url_set(parts, CURLUPART_HOST, endpoint->server_name, 0) != CURLUE_OK ||
			curl_url_get(parts, CURLUPART_URL, &renamed, 0) != CURLUE_OK) {
			curl_url_cleanup(parts);
			error_set(error, ERROR_USAGE, "server_name: it must be the name of a host");
			return NULL;
		}
		curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *headers);
	}
	const char *aimed = arena_strdup(arena, renamed ? renamed : url);
	curl_free(renamed);
	curl_url_cleanup(parts);
	curl_easy_setopt(easy, CURLOPT_CONNECT_TO, rename ? transport->connect_to : NULL);
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, tls ? 1L : 0L); /* for HTTP/2 on one connection */
	curl_easy_setopt(easy, CURLOPT_URL, aimed);
	return aimed;
}
