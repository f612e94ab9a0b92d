/*
 * Thousands of requests may be queued but few are in flight: curl_multi_poll's cost grows with
 * the number of handles, and servers suffer from bursts. Servers take turns, one request each,
 * so that a server with many tests does not starve the others.
 *
 * SIGPIPE is ignored from the first HTTP transfer on, as OpenSSL may write to sockets whose peer
 * has closed.
 */
#include "agent/io/transfers.h"

#include <assert.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/log.h"
#include "agent/io/exchange.h"

enum {
	MOST_FDS = 16,
	ANSWER_TIMES = 2, /* an answer and its parsed form */
	OVERTAKEN = 64    /* requests that may overtake one that waits for memory */
};

#define WARN_AGAIN INT64_C(600000) /* ms between warnings that requests wait for memory */

struct client_request_list {
	struct client_request *first, *last;
};

struct host {
	char *origin;
	struct client_request_list waiting;
	size_t active, limit;
	size_t claim;   /* of its requests in flight, see count_claims */
	size_t typical; /* bytes of its recent answers, smoothed */
};

struct transfers {
	CURLM *multi; /* NULL until the first HTTP transfer */
	struct host **hosts;
	size_t host_count, host_capacity, turn;
	size_t active, running,
		waiting;      /* requests not released, handles in the multi, requests in queues */
	size_t held, budget;  /* bytes of answers */
	size_t programs;      /* that share the limits; 0: one */
	size_t overtakes;     /* requests that were started while one waited for memory */
	bool short_of_memory; /* requests wait for memory */
	uint64_t starts, waits;
	int64_t warned;                    /* clock_monotonic's time of the last warning, or 0 */
	struct client_request_list flying; /* in the multi, the oldest first */
	struct client_request_list ended;  /* `done` has yet to be called */
};

static void list_add(struct client_request_list *list, struct client_request *request)
{
	request->list = list;
	request->next = NULL;
	request->previous = list->last;
	*(list->last ? &list->last->next : &list->first) = request;
	list->last = request;
}

static void list_add_first(struct client_request_list *list, struct client_request *request)
{
	request->list = list;
	request->previous = NULL;
	request->next = list->first;
	*(list->first ? &list->first->previous : &list->last) = request;
	list->first = request;
}

static void list_remove(struct client_request *request)
{
	struct client_request_list *list = request->list;
	*(request->previous ? &request->previous->next : &list->first) = request->next;
	*(request->next ? &request->next->previous : &list->last) = request->previous;
	request->list = NULL;
}

struct transfers *transfers_new(size_t memory)
{
	struct transfers *transfers = memory_new(1, sizeof *transfers);
	transfers_set_memory(transfers, memory);
	return transfers;
}

void transfers_set_memory(struct transfers *transfers, size_t memory)
{
	transfers->budget = memory / ANSWER_TIMES;
}

void transfers_share(struct transfers *transfers, size_t programs)
{
	transfers->programs = programs;
}

struct transfers_memory transfers_memory(const struct transfers *transfers)
{
	return (struct transfers_memory){ANSWER_TIMES * transfers->held, transfers->waits};
}

void transfers_free(struct transfers *transfers)
{
	if (!transfers)
		return;
	assert(transfers->active == 0 && transfers->host_count == 0);
	if (transfers->multi) {
		curl_multi_cleanup(transfers->multi);
		curl_global_cleanup();
	}
	free(transfers->hosts);
	free(transfers);
}

void transfers_prepare(struct transfers *transfers)
{
	if (transfers->multi)
		return;
	signal(SIGPIPE, SIG_IGN);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
		!(transfers->multi = curl_multi_init())) {
		fputs("hunter-c: libcurl cannot be initialised\n", stderr);
		abort();
	}
	curl_multi_setopt(transfers->multi, CURLMOPT_MAXCONNECTS, (long)TRANSFERS_AT_ONCE);
}

/* The host of that origin; the newest request's limit applies, as a reload may have changed it. */
static struct host *host_get(struct transfers *transfers, const char *origin, int64_t limit)
{
	struct host *host = NULL;
	for (size_t i = 0; i < transfers->host_count && !host; i++)
		if (strcmp(transfers->hosts[i]->origin, origin) == 0)
			host = transfers->hosts[i];
	if (!host) {
		transfers->hosts = memory_grow(transfers->hosts, &transfers->host_capacity,
			transfers->host_count + 1, sizeof(struct host *));
		host = memory_new(1, sizeof *host);
		host->origin = strdup(origin);
		transfers->hosts[transfers->host_count++] = host;
	}
	host->limit = limit > 0 ? (size_t)limit : 16;
	return host;
}

static void host_drop_if_idle(struct transfers *transfers, struct host *host)
{
	if (host->active > 0 || host->waiting.first)
		return;
	size_t at = 0;
	while (transfers->hosts[at] != host)
		at++;
	transfers->host_count--;
	memmove(&transfers->hosts[at], &transfers->hosts[at + 1],
		(transfers->host_count - at) * sizeof(struct host *));
	if (transfers->turn > at)
		transfers->turn--;
	free(host->origin);
	free(host);
}

static void fail(struct transfers *transfers, struct client_request *request, const char *problem)
{
	request->failure = strdup(problem);
	request->reply = (struct reply){
		.kind = REPLY_UNREACHABLE, .retry_after = -1, .problem = request->failure};
	list_add(&transfers->ended, request);
}

/* The expected memory of the host's next request: that of its earlier ones, else that of other
 * hosts' requests. */
static size_t next_needs(const struct host *host)
{
	return host->waiting.first->wants ? host->waiting.first->wants : host->typical;
}

static void start_next(struct transfers *transfers, struct host *host)
{
	struct client_request *request = host->waiting.first;
	size_t needs = next_needs(host);
	list_remove(request);
	transfers->waiting--;
	transfers->active++;
	request->counted = true;
	request->age = request->age ? request->age : ++transfers->starts;
	struct error error;
	request->exchange =
		exchange_new(request->transfer, request, &transfers->held, needs, &error);
	if (!request->exchange) {
		fail(transfers, request, error.text);
		request->host = NULL;
		host_drop_if_idle(transfers, host);
		return;
	}
	transfers_prepare(transfers);
	host->active++;
	transfers->running++;
	list_add(&transfers->flying, request);
	curl_multi_add_handle(transfers->multi, exchange_easy(request->exchange));
}

/* Adds up the memory of the requests in flight, by host. */
static void count_claims(struct transfers *transfers)
{
	for (size_t i = 0; i < transfers->host_count; i++)
		transfers->hosts[i]->claim = 0;
	for (const struct client_request *request = transfers->flying.first; request;
		request = request->next)
		request->host->claim += exchange_claim(request->exchange);
}

/* The budget divided by the number of hosts with requests. */
static size_t share(const struct transfers *transfers)
{
	return transfers->budget / (transfers->host_count ? transfers->host_count : 1);
}

/* Whether there is memory for the host's next request. One of unknown size needs some; a host
 * may exceed its share while half of the budget is free. */
static bool has_memory(const struct transfers *transfers, const struct host *host)
{
	size_t wants = next_needs(host), all;
	wants = wants ? wants : 1;
	all = transfers->held + wants;
	if (all > transfers->budget)
		return false;
	return all <= transfers->budget / 2 || host->claim == 0 ||
	       host->claim + wants <= share(transfers);
}

static bool may_ask(const struct transfers *transfers, const struct host *host)
{
	size_t limit = host->limit / (transfers->programs ? transfers->programs : 1);

	return transfers->active < TRANSFERS_AT_ONCE && host->waiting.first &&
	       host->active < (limit ? limit : 1);
}

/* Whether a request that was given up waits for memory only. */
static bool is_held_up(const struct transfers *transfers)
{
	for (size_t i = 0; i < transfers->host_count; i++) {
		const struct host *host = transfers->hosts[i];
		if (may_ask(transfers, host) && host->waiting.first->wants &&
			!has_memory(transfers, host))
			return true;
	}
	return false;
}

/* Messages are always sent: their answers are short. */
static bool may_start(struct transfers *transfers, const struct host *host)
{
	const struct client_request *request = host->waiting.first;
	if (transfers->active == 0 || request->transfer->once)
		return true;
	if (!has_memory(transfers, host))
		return false;
	bool overtakes = !request->wants && is_held_up(transfers);
	if (overtakes && transfers->overtakes >= OVERTAKEN)
		return false;
	transfers->overtakes = overtakes ? transfers->overtakes + 1 : 0;
	return true;
}

static void note_wait(struct transfers *transfers)
{
	int64_t now = clock_monotonic();
	if (!transfers->short_of_memory)
		transfers->waits++;
	transfers->short_of_memory = true;
	if (transfers->warned && now - transfers->warned < WARN_AGAIN)
		return;
	transfers->warned = now;
	log_event(LEVEL_WARN, "reads throttled: agent.max_memory_in_flight reached",
		LOG_INT("bytes", ANSWER_TIMES * transfers->held),
		LOG_INT("limit", ANSWER_TIMES * transfers->budget),
		LOG_INT("waiting", transfers->waiting));
}

/* Starts the requests that may start; servers take turns. Returns whether any waits for memory
 * alone. */
static bool start_in_turn(struct transfers *transfers)
{
	bool short_of_memory = false;
	for (size_t passed = 0; passed < transfers->host_count && transfers->waiting > 0;) {
		if (transfers->turn >= transfers->host_count)
			transfers->turn = 0;
		struct host *host = transfers->hosts[transfers->turn++];
		passed++;
		if (!may_ask(transfers, host))
			continue;
		if (!may_start(transfers, host)) {
			short_of_memory = true;
			continue;
		}
		host->claim += next_needs(host);
		start_next(transfers, host); /* may have freed the host */
		passed = 0;
	}
	return short_of_memory;
}

static void start_requests(struct transfers *transfers)
{
	if (transfers->waiting == 0) {
		transfers->short_of_memory = false;
		return;
	}
	count_claims(transfers);
	if (start_in_turn(transfers))
		note_wait(transfers);
	else
		transfers->short_of_memory = false;
}

void transfers_start(struct transfers *transfers, struct client_request *request)
{
	struct arena *arena = arena_new();
	const struct transfer *transfer = request->transfer;
	assert(transfer->kind == TRANSFER_HTTP && transfer->endpoint);
	assert(!request->list && !request->exchange);
	const char *origin = exchange_origin(arena, transfer->url);
	if (origin) {
		request->host = host_get(transfers, origin, transfer->endpoint->max_concurrent);
		list_add(&request->host->waiting, request);
		transfers->waiting++;
	} else {
		/* The address itself may be a secret, as a webhook's is. */
		fail(transfers, request, "the address is not an http:// or https:// URL");
	}
	arena_free(arena);
	start_requests(transfers);
}

/* Takes the request out of the multi handle. */
static void land(struct transfers *transfers, struct client_request *request)
{
	curl_multi_remove_handle(transfers->multi, exchange_easy(request->exchange));
	list_remove(request);
	transfers->running--;
	request->host->active--;
}

static void stop_running(struct transfers *transfers, struct client_request *request)
{
	land(transfers, request);
	host_drop_if_idle(transfers, request->host);
	request->host = NULL;
}

void transfers_release(struct transfers *transfers, struct client_request *request)
{
	if (request->list && request->list == &transfers->flying) {
		stop_running(transfers, request);
	} else if (request->list) {
		struct host *host = request->list == &transfers->ended ? NULL : request->host;
		list_remove(request);
		if (host) {
			transfers->waiting--;
			host_drop_if_idle(transfers, host);
		}
	}
	if (request->counted)
		transfers->active--;
	exchange_free(request->exchange);
	free(request->failure);
	*request = (struct client_request){.transfer = request->transfer, .done = request->done};
}

void transfers_wait(struct transfers *transfers, struct pollfd *fds, size_t count, int timeout)
{
	assert(count <= MOST_FDS);
	if (transfers->ended.first)
		timeout = 0;
	if (transfers->running == 0) {
		if (poll(fds, count, timeout) < 0)
			for (size_t i = 0; i < count; i++)
				fds[i].revents = 0; /* EINTR: revents is undefined */
		return;
	}
	struct curl_waitfd extra[MOST_FDS];
	for (size_t i = 0; i < count; i++)
		extra[i] = (struct curl_waitfd){.fd = fds[i].fd, .events = CURL_WAIT_POLLIN};
	curl_multi_poll(
		transfers->multi, extra, (unsigned)count, timeout < 0 ? INT_MAX : timeout, NULL);
	for (size_t i = 0; i < count; i++)
		fds[i].revents = extra[i].revents;
}

static void collect(struct transfers *transfers)
{
	CURLMsg *message;
	int left;
	while ((message = curl_multi_info_read(transfers->multi, &left))) {
		CURL *easy = message->easy_handle;
		CURLcode code = message->data.result;
		struct client_request *request = NULL;
		curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&request);
		if (exchange_finish(request->exchange, code, &request->reply)) {
			request->host->typical =
				(3 * request->host->typical + request->reply.length) / 4;
			stop_running(transfers, request);
			list_add(&transfers->ended, request);
			continue;
		}
		curl_multi_remove_handle(transfers->multi, easy);
		curl_multi_add_handle(transfers->multi, easy);
	}
}

static bool goes_first(const struct client_request *a, const struct client_request *b)
{
	if (!b || a->host->claim != b->host->claim)
		return !b || a->host->claim > b->host->claim;
	return a->age > b->age;
}

/* The youngest retryable request with a claim of the host that needs the most, but never the
 * oldest of all; NULL: none. */
static struct client_request *request_to_put_back(struct transfers *transfers)
{
	const struct client_request *oldest = NULL;
	struct client_request *found = NULL;
	count_claims(transfers);
	for (const struct client_request *request = transfers->flying.first; request;
		request = request->next)
		if (!oldest || request->age < oldest->age)
			oldest = request;
	for (struct client_request *request = transfers->flying.first; request;
		request = request->next)
		if (request != oldest && !request->transfer->once &&
			exchange_claim(request->exchange) > 0 && goes_first(request, found))
			found = request;
	return found;
}

/* Queues it before younger ones of its host. */
static void put_back(struct transfers *transfers, struct client_request *request)
{
	size_t needs = exchange_needs(request->exchange), claim = exchange_claim(request->exchange);
	if (needs == 0) /* nothing received yet */
		needs = claim;
	request->wants = needs > request->wants ? needs : request->wants;
	land(transfers, request);
	exchange_free(request->exchange);
	request->exchange = NULL;
	request->counted = false;
	transfers->active--;
	transfers->waiting++;
	list_add_first(&request->host->waiting, request);
}

/* Whether a host with queued requests has none in flight and waits for others. */
static bool host_is_kept_out(const struct transfers *transfers)
{
	for (size_t i = 0; transfers->held >= transfers->budget && i < transfers->host_count; i++) {
		const struct host *host = transfers->hosts[i];
		if (host->active == 0 && may_ask(transfers, host) && !host->waiting.first->wants)
			return true;
	}
	return false;
}

void transfers_run(struct transfers *transfers)
{
	struct client_request *request;
	start_requests(transfers);
	if (transfers->running > 0) {
		int running;
		curl_multi_perform(transfers->multi, &running);
		collect(transfers);
	}
	/* Answers in flight may grow beyond their estimate. The oldest request always completes, so
	 * all others get their turn; a request that was given up restarts with the memory it then
	 * needed, so few are made more than twice. A server that keeps others waiting is cut to its
	 * share. */
	while (transfers->held > transfers->budget && (request = request_to_put_back(transfers)))
		put_back(transfers, request);
	while (host_is_kept_out(transfers) && (request = request_to_put_back(transfers)) &&
		request->host->claim > share(transfers))
		put_back(transfers, request);
	while ((request = transfers->ended.first)) {
		list_remove(request);
		request->done(request);
	}
	start_requests(transfers);
}
