/*
 * /api/v1/events: events as they happen, for clients that keep the connection open (server-sent
 * events), or those since an id.
 *
 * Events that come close together are sent together, so that a storm costs each watcher a few wakes
 * a second. A watcher reads at its own pace from the events that are kept; one that falls behind
 * them is closed, and learns of the gap when it comes back.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/fleet/fleet.h"
#include "agent/runtime/events.h"
#include "agent/web/api.h"

enum {
	TOGETHER = 250, /* ms between two wakes */
	BEAT = 15000,   /* ms: a sign of life for proxies, and to notice clients that have left */
	RETRY = 2000,   /* ms until a client comes back, ... */
	RETRY_MORE = 2000, /* ... spread over so many more */
	MOST_PIECE = 8 << 10,
};

struct watcher {
	struct watchers *all;
	struct http_request *request;
	struct watcher *next, **link;
	uint64_t seen; /* number of the last event sent */
	bool greeted, resets;
	int64_t beat; /* engine_now when something was sent last */
};

struct watchers {
	struct agent *agent;
	struct watcher *first;
	size_t come;             /* ever */
	struct fleet_news fleet; /* the last of a fleet */
	struct alarm alarm;
	int64_t woken; /* engine_now */
	bool waits;    /* the alarm is set */
};

static void wake(void *context)
{
	struct watchers *all = context;

	all->waits = false;
	all->woken = engine_now(all->agent->engine);
	for (struct watcher *watcher = all->first; watcher; watcher = watcher->next)
		http_stream_wake(watcher->request);
}

static void news(void *context)
{
	struct watchers *all = context;
	int64_t now = engine_now(all->agent->engine);

	if (all->waits || !all->first)
		return;
	all->waits = true;
	engine_alarm(all->agent->engine, &all->alarm,
		now - all->woken >= TOGETHER ? now : all->woken + TOGETHER);
}

/* Another agent, or this one, has recorded changes or triage. */
static void news_of_fleet(void *context, const struct fleet_news *news)
{
	struct watchers *all = context;
	const struct fleet_news *last = &all->fleet;
	bool more = news->last_audit != last->last_audit || news->due_set != last->due_set ||
		    news->last_delivery != last->last_delivery;

	all->fleet = *news;
	if (more)
		events_untold(all->agent->events);
}

struct watchers *watchers_new(struct agent *agent)
{
	struct watchers *all = memory_new(1, sizeof *all);

	*all = (struct watchers){.agent = agent, .woken = engine_now(agent->engine) - TOGETHER};
	all->alarm = (struct alarm){.call = wake, .context = all};
	agent->events = events_new(agent, news, all);
	fleet_listen(agent, &(struct fleet_listener){.news = news_of_fleet, .context = all});
	return all;
}

void watchers_free(struct watchers *all)
{
	if (!all)
		return;
	events_free(all->agent->events);
	all->agent->events = NULL;
	free(all);
}

static void put_id(struct buf *out, const struct events *events, uint64_t number)
{
	char id[EVENTS_ID];

	buf_printf(out, "id: %s\n", events_id(events, number, id));
}

static bool next(void *context, struct buf *out)
{
	struct watcher *watcher = context;
	struct agent *agent = watcher->all->agent;
	const struct events *events = agent->events;
	struct event_news event;

	if (!watcher->greeted) {
		watcher->greeted = true;
		/* Another time for each, so that they do not come back all at once. */
		buf_printf(
			out, "retry: %zu\n", (size_t)RETRY + watcher->all->come * 617 % RETRY_MORE);
		if (watcher->resets)
			buf_text(out, "event: reset\ndata: {}\n");
		put_id(out, events, watcher->seen);
		buf_char(out, '\n');
	}
	if (!events_reaches(events, watcher->seen))
		return false;
	while (out->length < MOST_PIECE && events_next(events, watcher->seen, &event)) {
		watcher->seen = event.number;
		put_id(out, events, event.number);
		buf_printf(out, "event: %s\ndata: %s\n\n", event.kind, event.data);
	}
	if (out->length == 0 && engine_now(agent->engine) - watcher->beat >= BEAT)
		buf_text(out, ":\n\n");
	if (out->length > 0)
		watcher->beat = engine_now(agent->engine);
	return true;
}

static void end(void *context)
{
	struct watcher *watcher = context;

	*watcher->link = watcher->next;
	if (watcher->next)
		watcher->next->link = watcher->link;
	free(watcher);
}

static void listen_to(struct watchers *all, struct http_request *request, uint64_t seen, bool reset)
{
	struct watcher *watcher = memory_new(1, sizeof *watcher);

	*watcher = (struct watcher){.all = all,
		.request = request,
		.next = all->first,
		.link = &all->first,
		.seen = seen,
		.resets = reset};
	if (watcher->next)
		watcher->next->link = &watcher->next;
	all->first = watcher;
	all->come++;
	if (http_stream(request, &(struct http_stream){.type = "text/event-stream",
					 .every = BEAT,
					 .next = next,
					 .end = end,
					 .context = watcher}))
		return;
	end(watcher);
	http_fail(request, 503, "too many clients are listening: %d may, of one address %d",
		HTTP_LISTENERS, HTTP_LISTENERS_OF_ONE);
}

static void answer(
	const struct events *events, struct http_request *request, uint64_t seen, bool reset)
{
	struct buf *out = &request->buffer;
	struct event_news event;
	char id[EVENTS_ID];

	json_put(out, "{events: [");
	while (events_next(events, seen, &event)) {
		seen = event.number;
		json_put(out, "\n{event: %s, id: %s, data: %s json}", event.kind,
			events_id(events, seen, id), event.data);
	}
	json_put(out, "], id: %s, reset: %d bool}", events_id(events, seen, id), reset);
	http_send(request, 200);
}

void api_get_events(struct http_request *request)
{
	struct watchers *all = api_of(request)->watchers;
	const char *accept = http_header(request, "Accept");
	const char *after = http_header(request, "Last-Event-ID");
	const struct events *events = all->agent->events;
	uint64_t seen = events_last(events), number;
	bool reset = false;

	if (!after)
		after = http_parameter(request, "after");
	if (after && events_number(events, after, &number) && events_reaches(events, number))
		seen = number;
	else
		reset = after != NULL;
	if (all->agent->stopping)
		http_fail(request, 503, "the agent is stopping");
	else if (accept && strstr(accept, "text/event-stream"))
		listen_to(all, request, seen, reset);
	else
		answer(events, request, seen, reset);
}
