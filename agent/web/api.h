/*
 * The API: what the agent knows and does, as JSON (docs/api.md).
 *
 * An answer is bounded in what it holds; where there is more, it says from where to go on. Nothing
 * here blocks: what has to be fetched or run is answered when it is there.
 */
#ifndef AGENT_WEB_API_H
#define AGENT_WEB_API_H

#include "agent/core/json_put.h"
#include "agent/http/server.h"
#include "agent/monitor/scheduler.h"

struct api {
	struct agent *agent;
	struct scheduler *watch;
	/* Reads the configuration again; NULL: nobody can. */
	void (*reload)(struct agent *agent, reload_done *done, void *context);
	size_t fetches; /* for /api/v1/series and /api/v1/why, under way */
};

/* For http_start, whose context is a struct pages that has an api. */
extern const struct route api_routes[];

/* What the routes' files share. */

struct api *api_of(void *context);

/* A parameter that is a number from 1 to `most`, by default `initial`. */
bool api_limit(const struct http_request *request, int64_t initial, int64_t most, int64_t *out,
	struct error *error) MUST_USE;

/* A parameter that is a date as people write it, by default `open`. */
bool api_date(const struct http_request *request, const char *name, int64_t now, int64_t open,
	int64_t *out, struct error *error) MUST_USE;

/* An answer for which a test's data is fetched; first in what the task's context points to. */
struct api_fetch {
	struct api *api;
	struct http_request *request;
};

/* The test of that name, if its data can be fetched now; else the request is answered. */
const struct test *api_fetch_test(
	const struct api *api, struct http_request *request, const char *name);

/* The task is its own from here on; api_fetch_end is to follow. */
void api_fetch_begin(struct api_fetch *fetch, struct task *task);

/* Has the data read, that of companions first; task->done follows. */
void api_fetch_data(struct task *task);

/* Answers with what http_buffer holds, or the error. */
void api_fetch_end(struct api_fetch *fetch, const struct error *error);

/* As those of json_put.h. */
void api_put_strings(struct buf *out, const char *key, const struct strings *values);

/* The routes. */
void api_get_tests(void *context, struct http_request *request);
void api_get_series(void *context, struct http_request *request);
void api_get_why(void *context, struct http_request *request);
void api_get_changes(void *context, struct http_request *request);
void api_post_run(void *context, struct http_request *request);
void api_post_reload(void *context, struct http_request *request);

#endif
