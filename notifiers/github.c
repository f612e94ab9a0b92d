/*
 * GitHub and GitHub Enterprise Server: the REST API of 2022-11-28.
 *
 * Issues that may exist are looked up in the list of issues, as the search index lags.
 */
#include <string.h>

#include "agent/base/when.h"
#include "notifiers/http_json.h"
#include "notifiers/tracker.h"

/* Documented: 65,536 characters of a text, and 256 of a title. */
enum { TEXT = 60000, TITLE = 250, PAGE = 100, EARLIER_MS = 3600000 };

struct github_options {
	struct tracker_options common;
	const char *repository;
};

static const struct field github_fields[] = {
	OPTION_STRING(struct github_options, repository, NULL,
		"OWNER/NAME of the repository whose issues or commits are written to",
		.flags = FIELD_REQUIRED),
	TRACKER_TOKEN(struct github_options,
		"token with write access to issues (fine-grained: Issues; on: commit: Contents)"),
	TRACKER_ON(struct github_options),
	TRACKER_LABELS(struct github_options),
	TRACKER_ASSIGNEES(struct github_options),
	{0},
};

static bool check(const void *context, struct error *error)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";
	const struct github_options *options = context;
	const char *name = options->repository;
	size_t owner = strspn(name, allowed);

	if (owner == 0 || name[owner] != '/' || !name[owner + 1] ||
		name[owner + 1 + strspn(name + owner + 1, allowed)])
		return error_set(error, ERROR_USAGE, "repository: it must be OWNER/NAME");
	return tracker_check(&options->common, true, error);
}

static const struct tracker_call calls[] = {
	[TRACKER_LIST] = {"GET",
		{"/issues?state=all&sort=created&direction=desc&since=%s&per_page=100&page=%p"}},
	[TRACKER_CREATE] = {"POST", {"/issues"}},
	[TRACKER_READ] = {"GET", {"/issues/%i"}},
	[TRACKER_WRITE] = {"PATCH", {"/issues/%i"}},
	[TRACKER_COMMENTS] = {"GET", {"/issues/%i/comments?per_page=100&page=%p",
					     "/commits/%r/comments?per_page=100&page=%p"}},
	[TRACKER_COMMENT] = {"POST", {"/issues/%i/comments", "/commits/%r/comments"}},
	[TRACKER_EDIT] = {"PATCH", {"/issues/comments/%c", "/comments/%c"}},
	[TRACKER_COMMIT] = {"GET", {"/commits/%r"}},
	[TRACKER_HOME] = {"GET", {""}}};

static void home(struct buf *path, const void *context)
{
	const struct github_options *options = context;

	buf_printf(path, "repos/%s", options->repository);
}

static void put_since(
	struct buf *path, const struct tracker_request *request, const struct attempt *attempt)
{
	char since[WHEN_TEXT];

	(void)request;
	buf_text(path, when_format_iso(attempt->made - EARLIER_MS, since));
}

static json_t *body(const struct tracker_request *request, const void *context)
{
	static const char *const states[] = {[TRACKER_OPEN] = "open", [TRACKER_CLOSED] = "closed"};
	const struct tracker_options *options = context;

	return json_pack("{s:s*, s:s*, s:s*, s:o*, s:o*}", "body", request->text, "state",
		request->ask == TRACKER_WRITE ? states[request->state] : NULL, "title",
		request->ask == TRACKER_CREATE ? request->title : NULL, "labels",
		tracker_array(request, &options->labels), "assignees",
		tracker_array(request, &options->assignees));
}

/* Pull requests are issues, too, for GitHub. */
static bool item(
	const json_t *value, enum tracker_ask ask, struct arena *arena, struct tracker_item *out)
{
	const char *state = json_text(value, "state");
	bool comment = ask == TRACKER_COMMENTS || ask == TRACKER_COMMENT;
	const char *name = ask == TRACKER_COMMIT ? "sha" : comment ? "id" : "number";

	out->id = tracker_id(arena, json_object_get(value, name));
	out->text = json_keep(arena, value, "body");
	out->closed = state && strcmp(state, "closed") == 0;
	return out->id && !json_object_get(value, "pull_request");
}

static const struct pair headers[] = {
	{"Accept", "application/vnd.github+json"}, {"X-GitHub-Api-Version", "2022-11-28"}};

static const struct tracker github = {.calls = calls,
	.url = "https://api.github.com",
	.headers = {headers, 2},
	.home = home,
	.put_search = put_since,
	.body = body,
	.style = &body_markdown,
	.title = TITLE,
	.text = TEXT,
	.hide_from = "<!-- ",
	.hide_to = " -->",
	.page = PAGE,
	.item = item};

const struct notifier github_notifier = {
	.plugin = {.name = "github",
		.summary = "an issue of GitHub for each message, or a comment on the commit",
		.fields = github_fields,
		.options_size = sizeof(struct github_options),
		.endpoint = true,
		.check = check},
	.spacing = TRACKER_SPACING,
	.events = TRACKER_EVENTS,
	.defaults = MESSAGES_OF_CHANGES,
	.render = tracker_render,
	.step = tracker_step,
	.shape = &github,
	.amends = notifier_amends,
};
