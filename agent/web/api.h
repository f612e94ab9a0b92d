/*
 * The API: the agent's state and actions, as JSON (docs/reference/api.md).
 *
 * The size of an answer is bounded; if there is more, the answer says where to continue. Nothing
 * here blocks: requests that need a fetch or a run are answered when it is done.
 */
#ifndef AGENT_WEB_API_H
#define AGENT_WEB_API_H

#include "agent/http/server.h"
#include "agent/model/json_put.h"
#include "agent/monitor/scheduler.h"

struct api {
	struct agent *agent;
	struct watchers *watchers; /* see events.c; NULL: no watchers allowed */
	struct repositories *repositories;
	struct scheduler *scheduler;
	struct delivery_manager *delivery_manager; /* NULL: no events */
	/* Reads the configuration again; NULL: not supported. */
	void (*reload)(struct agent *agent, reload_done *done, void *context);
	/* Called after triage, and with a silence as stored; either may be NULL. */
	void (*triaged)(void *context);
	void (*silenced)(void *context, const struct silence *silence);
	void *context;                     /* of these two */
	size_t fetches;                    /* for /api/v1/series and /api/v1/why, in progress */
	struct datasets *datasets;         /* for plots, see plots.h */
	size_t plots;                      /* requests for plots in progress */
	struct silence_reaching *reaching; /* requests about silences that a worker has */
	struct arrivals *arrivals;         /* requests that report written data */
};

/* To be called after the engine was freed, or when no request is in progress. */
void api_silences_free(struct api *api);

/* For http_start, whose context is a struct pages that has an api. */
extern const struct route api_routes[];

/* The watchers (/api/v1/events). Makes agent->events, which ends with them; accepts NULL. */
struct watchers *watchers_new(struct agent *agent);
void watchers_free(struct watchers *watchers);

/* Reports of written data (/api/v1/arrived). To be freed like silences; accepts NULL. */
struct arrivals *arrivals_new(struct api *api);
void arrivals_free(struct arrivals *arrivals);

/* Helpers shared by the routes' files. */

struct api *api_of(const struct http_request *request);

/* Sends the call to the store, which replies to its client; or answers, and frees it, if the agent
 * is stopping or the request is wrong, as `wrong` says; else NULL. */
void api_ask(struct agent *agent, struct http_request *request, struct store_call *call,
	const struct error *wrong);

/* Whether the call failed; then the request is answered. */
bool api_failed(struct http_request *request, const struct store_call *call);

/* A parameter that is a number from `least` to `most`; *out stays as it is if it is missing. */
bool api_number(const struct http_request *request, const char *name, int64_t least, int64_t most,
	int64_t *out, struct error *error) MUST_USE;
/* The parameter `limit`, from 1 on; `initial` if missing. */
bool api_limit(const struct http_request *request, int64_t initial, int64_t most, int64_t *out,
	struct error *error) MUST_USE;

/* A parameter that is true or false; false if missing. */
bool api_bool(const struct http_request *request, const char *name, bool *out,
	struct error *error) MUST_USE;

/* A parameter that is one of the names, which end with NULL: its index; *out stays as it is if it
 * is missing. And one that is a list of those from the first on: bits 1 << index. */
bool api_choice(const struct http_request *request, const char *name, const char *const *names,
	int *out, struct error *error) MUST_USE;
bool api_choices(const struct http_request *request, const char *name, const char *const *names,
	int first, unsigned *out, struct error *error) MUST_USE;

/* A parameter of up to API_WORDS words, in the request's arena; none if missing. */
enum { API_WORDS = 16 };
bool api_words(struct http_request *request, const char *name, struct strings *out,
	struct error *error) MUST_USE;

/* A page of a list in order of names: `limit` of them after the one in the request. */
struct api_page {
	const char *after; /* or NULL */
	int64_t limit;
	size_t listed, matching;
	const char *last, *next; /* next: the last one listed if there are more */
};

/* As requested. */
bool api_page_begin(struct api_page *page, const struct http_request *request, int64_t initial,
	int64_t most, struct error *error) MUST_USE;
/* Counts one that matches; true if it is on the page, after its comma. */
bool api_page_lists(struct api_page *page, const char *name, struct buf *out) MUST_USE;
/* The end of the list: "], "total", "next". */
void api_page_end(const struct api_page *page, struct buf *out);

/* A parameter that is a date as users write it; `open` if missing. */
bool api_date(const struct http_request *request, const char *name, int64_t now, int64_t open,
	int64_t *out, struct error *error) MUST_USE;

/* A parameter that is an id; 0 if missing. `of`: "a change". */
bool api_id(const struct http_request *request, const char *name, const char *of, int64_t *out,
	struct error *error) MUST_USE;

/* The user and origin of an action. An unauthenticated request may name its user (`person`). */
bool api_actor(struct http_request *request, struct actor *out, struct error *error) MUST_USE;

/* Viewers do not see the origin of other users' actions. */
void api_hide(const struct http_request *request, struct arena *arena, struct record_rows *records);

/* A request's parameters, for agent/web/forms.h. */
const char *api_form(void *request, const char *name);

/* Adds a row to the audit log. */
void api_audit(struct agent *agent, const struct actor *actor, enum event_kind kind,
	const char *subject, const char *detail);

/* A request that waits for a test's data; the first member of the task's context. */
struct api_fetch {
	struct http_request *request;
};

/* The test of that name, if its data can be fetched now; otherwise answers with an error. */
const struct test *api_fetch_test(struct http_request *request, const char *name);

/* Takes over the task; api_fetch_end must follow. */
void api_fetch_begin(struct api_fetch *fetch, struct task *task);

/* Reads the data, that of companions first; task->done follows. */
void api_fetch_data(struct task *task);

/* Answers with the content of http_buffer, or the error. */
void api_fetch_end(struct api_fetch *fetch, const struct error *error);

/* The routes. */
void api_get_me(struct http_request *request);
void api_get_agents(struct http_request *request);
void api_get_tests(struct http_request *request);
void api_get_clusters(struct http_request *request);
void api_get_status(struct http_request *request);
void api_get_configuration(struct http_request *request);
void api_get_series(struct http_request *request);
void api_get_plot(struct http_request *request);
void api_get_why(struct http_request *request);
void api_get_change(struct http_request *request);
void api_get_changes(struct http_request *request);
void api_get_inbox(struct http_request *request);
void api_post_triage(struct http_request *request);
void api_get_audit(struct http_request *request);
void api_get_silences(struct http_request *request);
void api_get_silence_preview(struct http_request *request);
void api_post_silence(struct http_request *request);
void api_post_silence_end(struct http_request *request);
void api_post_arrived(struct http_request *request);
void api_post_run(struct http_request *request);
void api_post_reload(struct http_request *request);
void api_get_bisections(struct http_request *request);
void api_get_bisection(struct http_request *request);
void api_post_bisection(struct http_request *request);
void api_post_bisection_cancel(struct http_request *request);
void api_post_bisection_result(struct http_request *request);
void api_get_commits(struct http_request *request);
void api_get_events(struct http_request *request);

#endif
