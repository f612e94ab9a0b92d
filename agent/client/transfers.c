/*
 * Thousands of calls may be queued, few are in flight: curl_multi_poll's cost grows with the
 * handles it watches, and no server likes a crowd. Servers take turns, one call each, so that a
 * server with many tests does not starve the others.
 *
 * SIGPIPE is ignored from the first HTTP transfer on, as OpenSSL writes to sockets whose peer may
 * have gone.
 */
#include "agent/client/transfers.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/client/exchange.h"
#include "agent/core/clock.h"
#include "agent/core/log.h"

enum {
	MOST_FDS = 16,
	ANSWER_TIMES = 2, /* an answer and what is read from it */
	OVERTAKEN = 64    /* calls that may go before one that waits for room */
};

#define SAY_AGAIN INT64_C(600000) /* ms until it is said again that calls wait for memory */

struct client_request_list {
	struct client_request *first, *last;
};

struct host {
	char *origin;
	struct client_request_list waiting;
	size_t active, limit;
	size_t claim;   /* of its calls in flight, see count_claims */
	size_t typical; /* bytes of its last answers, about */
};

struct transfers {
	CURLM *multi; /* NULL until the first HTTP transfer */
	struct host **hosts;
	size_t host_count, host_capacity, turn;
	size_t active, running,
		waiting;      /* calls not released, handles in the multi, calls in queues */
	size_t held, budget;  /* bytes of answers */
	size_t overtakes;     /* calls that were started while one has waited for room */
	bool short_of_memory; /* calls wait for it */
	uint64_t starts, waits;
	int64_t said;                      /* clock_monotonic's time of the last warning, or 0 */
	struct client_request_list flying; /* in the multi, the oldest first */
	struct client_request_list ended;  /* done is to be called */
};

static void list_add(struct client_request_list *list, struct client_request *call)
{
	call->list = list;
	call->next = NULL;
	call->previous = list->last;
	*(list->last ? &list->last->next : &list->first) = call;
	list->last = call;
}

static void list_add_first(struct client_request_list *list, struct client_request *call)
{
	call->list = list;
	call->previous = NULL;
	call->next = list->first;
	*(list->first ? &list->first->previous : &list->last) = call;
	list->first = call;
}

static void list_remove(struct client_request *call)
{
	struct client_request_list *list = call->list;
	*(call->previous ? &call->previous->next : &list->first) = call->next;
	*(call->next ? &call->next->previous : &list->last) = call->previous;
	call->list = NULL;
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

static void multi_start(struct transfers *transfers)
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

/* The host of that origin; the newest call's limit counts, as a reload may have changed it. */
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

static void fail(struct transfers *transfers, struct client_request *call, const char *problem)
{
	call->failure = strdup(problem);
	call->reply = (struct reply){
		.kind = REPLY_UNREACHABLE, .retry_after = -1, .problem = call->failure};
	list_add(&transfers->ended, call);
}

/* What the host's next call is taken to need: what it needed before, or what others did. */
static size_t next_needs(const struct host *host)
{
	return host->waiting.first->wants ? host->waiting.first->wants : host->typical;
}

static void start_next(struct transfers *transfers, struct host *host)
{
	struct client_request *call = host->waiting.first;
	size_t needs = next_needs(host);
	list_remove(call);
	transfers->waiting--;
	transfers->active++;
	call->counted = true;
	call->age = call->age ? call->age : ++transfers->starts;
	struct error error;
	call->exchange = exchange_new(call->transfer, call, &transfers->held, needs, &error);
	if (!call->exchange) {
		fail(transfers, call, error.text);
		call->host = NULL;
		host_drop_if_idle(transfers, host);
		return;
	}
	multi_start(transfers);
	host->active++;
	transfers->running++;
	list_add(&transfers->flying, call);
	curl_multi_add_handle(transfers->multi, exchange_easy(call->exchange));
}

/* Sums up what the calls in flight need, by host. */
static void count_claims(struct transfers *transfers)
{
	for (size_t i = 0; i < transfers->host_count; i++)
		transfers->hosts[i]->claim = 0;
	for (const struct client_request *call = transfers->flying.first; call; call = call->next)
		call->host->claim += exchange_claim(call->exchange);
}

/* The budget, in equal parts for all hosts that are asked. */
static size_t share(const struct transfers *transfers)
{
	return transfers->budget / (transfers->host_count ? transfers->host_count : 1);
}

/* Whether there is memory for the host's next call. One whose size is not known yet needs some; a
 * host may have more than its share while half of all is free. */
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
	return transfers->active < TRANSFERS_AT_ONCE && host->waiting.first &&
	       host->active < host->limit;
}

/* Whether a call that was given up waits for memory alone. */
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

/* A message is sent whatever is being read: its answer is short. */
static bool may_start(struct transfers *transfers, const struct host *host)
{
	const struct client_request *call = host->waiting.first;
	if (transfers->active == 0 || call->transfer->once)
		return true;
	if (!has_memory(transfers, host))
		return false;
	bool overtakes = !call->wants && is_held_up(transfers);
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
	if (transfers->said && now - transfers->said < SAY_AGAIN)
		return;
	transfers->said = now;
	log_event(LEVEL_WARN,
		"reads wait: the answers in flight need all of agent.max_memory_in_flight",
		LOG_INT("bytes", ANSWER_TIMES * transfers->held),
		LOG_INT("limit", ANSWER_TIMES * transfers->budget),
		LOG_INT("waiting", transfers->waiting));
}

/* Starts what may be; servers take turns. Returns whether any call waits for memory alone. */
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
		start_next(transfers, host); /* the host may be gone now */
		passed = 0;
	}
	return short_of_memory;
}

static void start_calls(struct transfers *transfers)
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

static void enqueue(struct transfers *transfers, struct client_request *call)
{
	struct arena *arena = arena_new();
	const struct transfer *transfer = call->transfer;
	assert(transfer->endpoint);
	const char *origin = exchange_origin(arena, transfer->url);
	if (origin) {
		call->host = host_get(transfers, origin, transfer->endpoint->max_concurrent);
		list_add(&call->host->waiting, call);
		transfers->waiting++;
	} else {
		/* The address itself may be a secret: a webhook's is. */
		fail(transfers, call, "the address is no http:// or https:// URL");
	}
	arena_free(arena);
}

void transfers_start(struct transfers *transfers, struct client_request *call)
{
	assert(!call->list && !call->exchange);
	switch (call->transfer->kind) {
	case TRANSFER_HTTP:
		enqueue(transfers, call);
		start_calls(transfers);
		return;
	case TRANSFER_STDOUT:
	case TRANSFER_SMTP:
	case TRANSFER_EXEC: break;
	}
	fail(transfers, call, "this build sends by HTTP and to standard output only");
}

/* Takes the call out of the air. */
static void land(struct transfers *transfers, struct client_request *call)
{
	curl_multi_remove_handle(transfers->multi, exchange_easy(call->exchange));
	list_remove(call);
	transfers->running--;
	call->host->active--;
}

static void stop_running(struct transfers *transfers, struct client_request *call)
{
	land(transfers, call);
	host_drop_if_idle(transfers, call->host);
	call->host = NULL;
}

void transfers_release(struct transfers *transfers, struct client_request *call)
{
	if (call->list && call->list == &transfers->flying) {
		stop_running(transfers, call);
	} else if (call->list) {
		struct host *host = call->list == &transfers->ended ? NULL : call->host;
		list_remove(call);
		if (host) {
			transfers->waiting--;
			host_drop_if_idle(transfers, host);
		}
	}
	if (call->counted)
		transfers->active--;
	exchange_free(call->exchange);
	free(call->failure);
	*call = (struct client_request){.transfer = call->transfer, .done = call->done};
}

void transfers_wait(struct transfers *transfers, struct pollfd *fds, size_t count, int timeout)
{
	assert(count <= MOST_FDS);
	if (transfers->ended.first)
		timeout = 0;
	if (transfers->running == 0) {
		if (poll(fds, count, timeout) < 0)
			for (size_t i = 0; i < count; i++)
				fds[i].revents = 0; /* EINTR: nothing is known */
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
		struct client_request *call = NULL;
		curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&call);
		if (exchange_finish(call->exchange, code, &call->reply)) {
			call->host->typical = (3 * call->host->typical + call->reply.length) / 4;
			stop_running(transfers, call);
			list_add(&transfers->ended, call);
			continue;
		}
		curl_multi_remove_handle(transfers->multi, easy);
		curl_multi_add_handle(transfers->multi, easy);
	}
}

static bool is_older(const struct client_request *a, const struct client_request *b)
{
	return !b || a->age < b->age;
}

static bool goes_first(const struct client_request *a, const struct client_request *b)
{
	if (!b || a->host->claim != b->host->claim)
		return !b || a->host->claim > b->host->claim;
	return a->age > b->age;
}

/* Of the host that needs the most, the youngest call that needs something and may be asked again,
 * but not the oldest of all; NULL: there is none. */
static struct client_request *call_to_put_back(struct transfers *transfers)
{
	const struct client_request *oldest = NULL;
	struct client_request *found = NULL;
	count_claims(transfers);
	for (const struct client_request *call = transfers->flying.first; call; call = call->next)
		if (is_older(call, oldest))
			oldest = call;
	for (struct client_request *call = transfers->flying.first; call; call = call->next)
		if (call != oldest && !call->transfer->once && exchange_claim(call->exchange) > 0 &&
			goes_first(call, found))
			found = call;
	return found;
}

/* Before younger ones of its host. */
static void put_back(struct transfers *transfers, struct client_request *call)
{
	size_t needs = exchange_needs(call->exchange), claim = exchange_claim(call->exchange);
	if (needs == 0) /* nothing has come yet */
		needs = claim;
	call->wants = needs > call->wants ? needs : call->wants;
	land(transfers, call);
	exchange_free(call->exchange);
	call->exchange = NULL;
	call->counted = false;
	transfers->active--;
	transfers->waiting++;
	list_add_first(&call->host->waiting, call);
}

/* Whether a host that is asked for nothing, and may be, has to wait for others. */
static bool host_is_kept_out(const struct transfers *transfers)
{
	for (size_t i = 0; transfers->held >= transfers->budget && i < transfers->host_count; i++) {
		const struct host *host = transfers->hosts[i];
		if (host->active == 0 && may_ask(transfers, host) && !host->waiting.first->wants)
			return true;
	}
	return false;
}

/*
 * The answers in flight grow after they were asked for. As the oldest call goes on to its end, so
 * do all others in their turn; and as a call that was given up has what it needed then set aside
 * for it, few are asked for more than twice. A server that others wait for is cut to its share.
 */
static void bound_answers(struct transfers *transfers)
{
	struct client_request *call;
	while (transfers->held > transfers->budget && (call = call_to_put_back(transfers)))
		put_back(transfers, call);
	while (host_is_kept_out(transfers) && (call = call_to_put_back(transfers)) &&
		call->host->claim > share(transfers))
		put_back(transfers, call);
}

void transfers_run(struct transfers *transfers)
{
	start_calls(transfers);
	if (transfers->running > 0) {
		int running;
		curl_multi_perform(transfers->multi, &running);
		collect(transfers);
		bound_answers(transfers);
	}
	while (transfers->ended.first) {
		struct client_request *call = transfers->ended.first;
		list_remove(call);
		call->done(call);
	}
	start_calls(transfers);
}
