/*
 * The requests are those of the engine's sources: transfers without an engine, carried out one at a
 * time. If an address cannot be reached at all the next is tried, and the first that answers is
 * kept: the socket may be closed to this user, who may have a token for the loopback address.
 */
#include "agent/cli/agent_api.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "agent/base/buf.h"
#include "agent/base/log.h"
#include "agent/base/network.h"
#include "agent/base/secret.h"
#include "agent/base/transfer.h"
#include "agent/io/transfers.h"
#include "conf/web_config.h"

enum { MOST_PLACES = 8, MOST_PAGES = 10000, TIMEOUT = 120000 };

static const char unix_prefix[] = "unix:";

struct agent_api {
	struct arena *arena;
	struct transfers *transfers;
	struct endpoint places[MOST_PLACES];
	const char *names[MOST_PLACES];
	const char *token; /* or NULL */
	size_t count, at;
};

static struct endpoint *add(struct agent_api *api, const struct agent_api_options *options,
	const char *name, const char *url)
{
	struct endpoint *endpoint = &api->places[api->count];

	field_defaults(endpoint_fields, endpoint);
	endpoint->url = url;
	endpoint->timeout = TIMEOUT;
	endpoint->redirects = REDIRECTS_NONE;
	endpoint->bearer_token = api->token;
	endpoint->ca_file = options->ca_file;
	api->names[api->count++] = name;
	return endpoint;
}

/* Peers of a Unix socket are users of this machine and need no token. */
static bool add_socket(struct agent_api *api, const struct agent_api_options *options,
	const char *name, struct error *error)
{
	const char *path = name + strlen(unix_prefix);
	struct endpoint *endpoint;

	if (*path != '/' || strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return error_set(error, ERROR_USAGE,
			"--agent: \"%.200s\": expected unix: and an absolute path of at most %zu "
			"bytes",
			name, sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
	endpoint = add(api, options, name, "http://localhost/");
	endpoint->socket = path;
	endpoint->bearer_token = NULL;
	endpoint->proxy = "none";
	return true;
}

static bool add_named(struct agent_api *api, const struct agent_api_options *options,
	const char *name, struct error *error)
{
	const char *problem = transfer_url_problem(name);

	if (strncmp(name, unix_prefix, strlen(unix_prefix)) == 0)
		return add_socket(api, options, name, error);
	if (problem && !transfer_url_is_http(name))
		problem = "expected http://, https:// or unix:/path";
	else if (!problem && transfer_url_has_user(name))
		problem = "it contains a user: use a token (--token-file)";
	else if (!problem && strpbrk(name, "?#"))
		problem = "it contains a query";
	if (problem)
		return error_set(error, ERROR_USAGE, "--agent: %s", problem);
	name = arena_strdup(api->arena, name);
	add(api, options, transfer_safe_url(api->arena, name), name);
	if (options->token_file && strncasecmp(name, "http:", 5) == 0 &&
		!transfer_url_is_local(name))
		log_event(LEVEL_WARN, "the token is sent unencrypted; use https://",
			LOG_TEXT("agent", transfer_safe_url(api->arena, name)));
	return true;
}

/* The agent's TLS settings in its configuration. */
struct agent_tls {
	bool unknown; /* the file cannot be read */
	const char *cert_file, *server_name;
};

/* "hunter.example.com" of "https://hunter.example.com:8443/x". */
static const char *host_of(struct arena *arena, const char *url)
{
	const char *host = url ? strstr(url, "://") : NULL;

	return host ? arena_strndup(arena, host + 3, strcspn(host + 3, ":/?#")) : NULL;
}

static struct agent_tls read_tls(struct arena *arena, const struct agent_settings *settings)
{
	struct problems problems = {.arena = arena};
	struct web_config *web;
	struct agent_tls tls = {0};

	if (!settings->web_config)
		return tls;
	web = web_config_read(settings->web_config, &problems);
	tls.unknown = !web;
	if (web && web->cert_file) {
		tls.cert_file = arena_strdup(arena, web->cert_file);
		tls.server_name = host_of(arena, settings->external_url);
	}
	web_config_free(web);
	return tls;
}

/* The address by which this machine reaches an entry of agent.listen: the loopback if it is for all
 * addresses. NULL: its port is unknown. */
static const char *reached_at(struct arena *arena, const char *listen, bool *loopback)
{
	const char *colon = strrchr(listen, ':');
	size_t length = (size_t)(colon - listen);
	bool brackets = *listen == '[';
	const char *host = arena_strndup(arena, listen + brackets, length - 2 * brackets);
	unsigned char address[NETWORK_ADDRESS];

	if (strtol(colon + 1, NULL, 10) == 0)
		return NULL;
	if (strcmp(host, "0.0.0.0") == 0)
		host = "127.0.0.1";
	else if (strcmp(host, "::") == 0)
		host = "::1";
	*loopback = transfer_host_is_local(host, strlen(host)) ||
		    (network_address(host, address) && network_is_loopback(address));
	return arena_printf(arena, strchr(host, ':') ? "[%s]%s" : "%s%s", host, colon);
}

/* The entries that are loopback addresses, or the others. The certificate is this machine's own
 * file, so it is trusted without an authority. */
static void add_addresses(struct agent_api *api, const struct agent_api_options *options,
	const struct strings *listen, const struct agent_tls *tls, bool loopbacks)
{
	for (size_t i = 0; i < listen->count && api->count < MOST_PLACES; i++) {
		bool loopback = false;
		const char *address = NULL, *url;
		struct endpoint *endpoint;

		if (strncmp(listen->items[i], unix_prefix, strlen(unix_prefix)) != 0)
			address = reached_at(api->arena, listen->items[i], &loopback);
		if (!address || loopback != loopbacks)
			continue;
		url = arena_printf(
			api->arena, "%s://%s/", tls->cert_file ? "https" : "http", address);
		endpoint = add(api, options, transfer_safe_url(api->arena, url), url);
		endpoint->proxy = "none";
		endpoint->server_name = tls->server_name;
		if (!options->ca_file)
			endpoint->ca_file = tls->cert_file;
	}
}

static bool add_configured(struct agent_api *api, const struct agent_api_options *options,
	const struct config *config, struct error *error)
{
	const struct agent_settings *settings = &config->agent;
	struct agent_tls tls = read_tls(api->arena, settings);

	for (size_t i = 0; i < settings->listen.count && api->count < MOST_PLACES; i++)
		if (strncmp(settings->listen.items[i], unix_prefix, strlen(unix_prefix)) == 0 &&
			!add_socket(api, options,
				arena_strdup(api->arena, settings->listen.items[i]), error))
			return false;
	if (!tls.unknown) {
		add_addresses(api, options, &settings->listen, &tls, true);
		add_addresses(api, options, &settings->listen, &tls, false);
	}
	if (api->count > 0)
		return true;
	if (tls.unknown)
		return error_set(error, ERROR_STATE,
			"cannot read %s to find the agent's address: give --agent, or "
			"set $HUNTER_AGENT",
			settings->web_config);
	return error_set(error, ERROR_STATE,
		"agent.listen has no address with a fixed port: add unix:/path to it, or give "
		"--agent (or $HUNTER_AGENT)");
}

static bool read_token(struct agent_api *api, const char *path, struct error *error)
{
	struct stat status;

	if (!path)
		return true;
	if (!secret_read(api->arena, "--token-file", path, &api->token, error) ||
		!secret_check("--token-file", api->token, error)) {
		error->kind = ERROR_USAGE;
		return false;
	}
	if (stat(path, &status) == 0 && status.st_mode & S_IROTH)
		log_event(LEVEL_WARN, "token file is readable by every user of this machine",
			LOG_TEXT("file", path));
	return true;
}

struct agent_api *agent_api_new(
	const struct agent_api_options *options, const struct config *config, struct error *error)
{
	struct agent_api *api = memory_new(1, sizeof *api);
	bool good;

	api->arena = arena_new();
	api->transfers = transfers_new(TRANSFERS_MEMORY);
	if (!read_token(api, options->token_file, error))
		good = false;
	else if (options->agent)
		good = add_named(api, options, options->agent, error);
	else if (config)
		good = add_configured(api, options, config, error);
	else
		good = error_set(error, ERROR_STATE,
			"the agent's address is unknown: give --agent, or set $HUNTER_AGENT");
	if (good)
		return api;
	agent_api_free(api);
	return NULL;
}

void agent_api_free(struct agent_api *api)
{
	if (!api)
		return;
	transfers_free(api->transfers);
	arena_free(api->arena);
	free(api);
}

const char *agent_api_name(const struct agent_api *api)
{
	return api->names[api->at];
}

static void put_form(struct buf *out, const struct pairs *form)
{
	for (size_t i = 0; form && i < form->count; i++) {
		if (!form->items[i].value)
			continue;
		if (out->length > 0)
			buf_char(out, '&');
		transfer_encode(out, form->items[i].key);
		buf_char(out, '=');
		transfer_encode(out, form->items[i].value);
	}
}

struct call {
	struct client_request request; /* first */
	bool ended;
};

static void note_end(struct client_request *request)
{
	((struct call *)request)->ended = true;
}

/* The agent's error text: {"error": "..."}. */
static const char *error_of(const json_t *document)
{
	return json_string_value(json_object_get(document, "error"));
}

/* Checks the status, after an answer that is not a success. */
static bool refuse(const struct agent_api *api, const struct reply *reply, const char *text,
	struct error *error)
{
	const char *name = agent_api_name(api), *to = reply->barred ? ", to " : "";
	const char *barred = reply->barred ? reply->barred : "";
	bool busy = reply->status == 429 || reply->status >= 500;

	if (!text)
		return error_set(error, ERROR_STATE,
			"%s: not a response of an agent (HTTP status %d%s%s): is it the right "
			"address?",
			name, reply->status, to, barred);
	if (reply->status == 401)
		return error_set(error, ERROR_USAGE,
			"%s: %s (--token-file, or $HUNTER_TOKEN_FILE, names the file with a token "
			"of the agent's web_config)",
			name, text);
	return error_set(error, busy ? ERROR_STATE : ERROR_USAGE, "%s: %s", name, text);
}

/* The server answers in JSON, but is not this API. */
static bool is_strange(const struct agent_api *api, const char *what, struct error *error)
{
	return error_set(error, ERROR_STATE,
		"%s: the response %s: is it a hunter-c of this version?", agent_api_name(api),
		what);
}

static json_t *read_answer(const struct agent_api *api, const struct reply *reply, const char *key,
	struct error *error)
{
	json_t *document = json_loadb(reply->body, reply->length, 0, NULL);
	bool good = document && reply->status >= 200 && reply->status <= 299;
	char lack[80];

	if (reply->kind == REPLY_ANSWER && (good ? json_object_get(document, key) != NULL
						 : reply->status == 409 && error_of(document)))
		return document;
	snprintf(lack, sizeof lack, "has no \"%s\"", key);
	if (reply->kind != REPLY_ANSWER)
		error_set(error, ERROR_STATE, "%s", reply->problem);
	else if (good)
		is_strange(api, lack, error);
	else
		refuse(api, reply, error_of(document), error);
	json_decref(document);
	return NULL;
}

json_t *agent_api_call(struct agent_api *api, const char *path, const struct pairs *form,
	const char *key, struct error *error)
{
	static const struct pair form_type = {"Content-Type", "application/x-www-form-urlencoded"};
	struct buf body = {0};
	json_t *document = NULL;
	bool unreached = true; /* nothing was sent */

	put_form(&body, form);
	buf_text(&body, "");
	for (size_t at = api->at; unreached && at < api->count; at++) {
		const struct endpoint *endpoint = &api->places[at];
		const struct transfer transfer = {.kind = TRANSFER_HTTP,
			.endpoint = endpoint,
			.method = form ? "POST" : "GET",
			.url = transfer_join_url(api->arena, endpoint->url, path),
			.headers = {&form_type, form ? 1 : 0},
			.body = form ? body.data : NULL,
			.body_length = form ? body.length : 0,
			.once = form != NULL};
		struct call call = {.request = {.transfer = &transfer, .done = note_end}};

		api->at = at;
		transfers_start(api->transfers, &call.request);
		for (transfers_run(api->transfers); !call.ended; transfers_run(api->transfers))
			transfers_wait(api->transfers, NULL, 0, -1);
		unreached = call.request.reply.kind == REPLY_UNREACHABLE;
		document = read_answer(api, &call.request.reply, key, error);
		transfers_release(api->transfers, &call.request);
	}
	buf_free(&body);
	return document;
}

bool agent_api_changes(struct agent_api *api, const struct pairs *form,
	bool (*keep)(void *context, json_t *page, bool *wanted), void *context, bool *more,
	struct error *error)
{
	json_int_t next = 0, before;
	bool wanted = false;

	for (int pages = 0; pages == 0 || (wanted && next > 0); pages++) {
		struct buf path = {0};
		json_t *document, *page;
		bool good;

		buf_text(&path, "/api/v1/changes?limit=1000");
		if (next > 0)
			buf_printf(&path, "&before=%" JSON_INTEGER_FORMAT, next);
		put_form(&path, form);
		before = next;
		document = agent_api_call(api, path.data, NULL, "changes", error);
		buf_free(&path);
		if (!document)
			return false;
		page = json_object_get(document, "changes");
		good = json_is_array(page) && keep(context, page, &wanted);
		next = json_integer_value(json_object_get(document, "next"));
		json_decref(document);
		if (!good)
			return is_strange(api, "is not a list of changes", error);
		if (wanted && next > 0 && (next == before || pages == MOST_PAGES))
			return is_strange(api, "does not end", error);
	}
	*more = next > 0;
	return true;
}
