/*
 * The API: the agent's state and actions, as JSON (docs/reference/api.md).
 *
 * The size of an answer is bounded; if there is more, the answer says where to continue. Nothing
 * here blocks: requests that need a fetch or a run are answered when it is done.
 */
#ifndef AGENT_WEB_API_H
#define AGENT_WEB_API_H

#include "agent/http/request.h"
#include "agent/model/json_put.h"
#include "agent/web/datasets.h"
#include "agent/web/forms.h"
#include "agent/web/web.h"

struct api {
	struct agent *agent;
	struct watchers *watchers; /* see events.c */
	struct repositories *repositories;
	struct scheduler *scheduler;
	struct web_options options;
	size_t fetches;                    /* for /api/v1/why, in progress */
	struct datasets *datasets;         /* for plots */
	size_t plots;                      /* requests for plots in progress */
	struct silence_reaching *reaching; /* requests about silences that a worker has */
	struct arrivals *arrivals;         /* requests that report written data */
};

/* To be called after the engine was freed, or when no request is in progress. */
void api_silences_free(struct api *api);

/* For http_start, whose context is a struct api. The pages for monitoring need its agent's metrics
 * and the options alone. Pictures of changes and series are SVG and PNG, for rows of the page,
 * wikis and tickets. */
extern const struct route api_routes[], pages_routes[], picture_routes[];

/* The watchers (/api/v1/events). Makes agent->events, which ends with them; accepts NULL. */
struct watchers *watchers_new(struct agent *agent);
void watchers_free(struct watchers *watchers);

/* Reports of written data (/api/v1/arrived). To be freed like silences; accepts NULL. */
struct arrivals *arrivals_new(struct api *api);
void arrivals_free(struct arrivals *arrivals);

/* Helpers shared by the routes' files. */

struct api *api_of(const struct http_request *request);

/* The request's parameters; what is read of them lies in the arena. */
struct form api_form(struct http_request *request, struct arena *arena);

/* Sends the call to the store, which replies to its client; or answers with the form's error, and
 * frees it. `form`: or NULL. */
void api_ask(struct http_request *request, const struct form *form, struct store_call *call);

/* Whether the call failed, or the form; then the request is answered, and the call freed. */
bool api_failed(struct http_request *request, struct store_call *call);
bool api_wrong(struct http_request *request, const struct form *form);

/* Answers with the content of the request's buffer, and frees the call. */
void api_reply(struct http_request *request, struct store_call *call);

/* A page of a list in order of names: `limit` of them after the one in the request. */
struct api_page {
	const char *after; /* or NULL */
	int64_t limit;
	size_t listed, matching;
	const char *last, *next; /* next: the last one listed if there are more */
};

/* As requested. */
struct api_page api_page_begin(struct form *form, int64_t usual, int64_t most);
/* Counts one that matches; true if it is on the page. */
bool api_page_lists(struct api_page *page, const char *name) MUST_USE;
/* The end of the list: "], "total", "next". */
void api_page_end(const struct api_page *page, struct buf *out);

/* The user and origin of an action. An unauthenticated request may name its user (`person`). */
struct actor api_actor(struct http_request *request, struct form *form);

/* Viewers do not see the origin of other users' actions. */
void api_hide(const struct http_request *request, struct arena *arena, struct record_rows *records);

/* Adds a row to the audit log. */
void api_audit(struct agent *agent, const struct actor *actor, enum event_kind kind,
	const char *subject, const char *detail);

/* The routes. */
void api_get_me(struct http_request *request);
void api_get_agents(struct http_request *request);
void api_get_tests(struct http_request *request);
void api_get_clusters(struct http_request *request);
void api_get_status(struct http_request *request);
void api_get_configuration(struct http_request *request);
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
