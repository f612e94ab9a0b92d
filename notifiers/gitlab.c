/*
 * GitLab, by its REST API v4.
 *
 * Comments on commits are the first notes of discussions, as only these can be edited later.
 * Assignees are named in a quick action, which takes logins; the API wants numbers.
 */
#include <string.h>

#include "notifiers/http_json.h"
#include "notifiers/tracker.h"

/* Documented limits: 1,048,576 characters of a text (too many to read), and 255 of a title. */
enum { TEXT = 60000, TITLE = 250, PAGE = 100 };

struct gitlab_options {
	struct tracker_options common;
	const char *project;
};

static const struct field gitlab_fields[] = {
	OPTION_STRING(struct gitlab_options, project, NULL,
		"path (GROUP/NAME) or number of the project whose issues or commits are written to",
		.flags = FIELD_REQUIRED),
	TRACKER_TOKEN(struct gitlab_options, "access token with the scope api (role: Reporter)"),
	TRACKER_ON(struct gitlab_options),
	TRACKER_LABELS(struct gitlab_options),
	TRACKER_ASSIGNEES(struct gitlab_options),
	{0},
};

static bool check(const void *context, struct error *error)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";
	const struct gitlab_options *options = context;

	if (!*options->project)
		return error_set(error, ERROR_USAGE, "project: it is empty");
	for (size_t i = 0; i < options->common.assignees.count; i++) {
		const char *login = options->common.assignees.items[i];

		if (!*login || login[strspn(login, allowed)])
			return error_set(
				error, ERROR_USAGE, "assignees: \"%.80s\" is not a login", login);
	}
	return tracker_check(&options->common, true, error);
}

static const struct tracker_call calls[] = {
	[TRACKER_LIST] = {"GET", {"/issues?scope=all&in=description&search=%k&order_by=created_at"
				  "&sort=desc&per_page=100&page=%p"}},
	[TRACKER_CREATE] = {"POST", {"/issues"}},
	[TRACKER_READ] = {"GET", {"/issues/%i"}},
	[TRACKER_WRITE] = {"PUT", {"/issues/%i"}},
	[TRACKER_COMMENTS] = {"GET",
		{"/issues/%i/notes?order_by=created_at&sort=desc&per_page=100&page=%p",
			"/repository/commits/%r/discussions?per_page=100&page=%p"}},
	[TRACKER_COMMENT] = {"POST", {"/issues/%i/notes", "/repository/commits/%r/discussions"}},
	[TRACKER_EDIT] = {"PUT", {"/issues/%i/notes/%c", "/repository/commits/%r/discussions/%c"}},
	[TRACKER_COMMIT] = {"GET", {"/repository/commits/%r"}},
	[TRACKER_HOME] = {"GET", {""}}};

static void home(struct buf *path, const void *context)
{
	const struct gitlab_options *options = context;

	buf_text(path, "api/v4/projects/");
	transfer_encode(path, options->project);
}

static json_t *body(const struct tracker_request *request, const void *context)
{
	static const char *const states[] = {[TRACKER_OPEN] = "reopen", [TRACKER_CLOSED] = "close"};
	const struct tracker_options *options = context;
	const struct strings *names = &options->assignees, *labels = &options->labels;
	bool create = request->ask == TRACKER_CREATE, write = request->ask == TRACKER_WRITE;
	struct buf text = {0}, joined = {0};
	json_t *body;

	if (request->text)
		buf_text(&text, request->text);
	for (size_t i = 0; i < names->count && create && !request->bare; i++)
		buf_printf(&text, "%s@%s", i == 0 ? "\n\n/assign " : " ", names->items[i]);
	for (size_t i = 0; i < labels->count && create && !request->bare; i++)
		buf_printf(&joined, "%s%s", i == 0 ? "" : ",", labels->items[i]);
	body = json_pack("{s:s*, s:s*, s:s*, s:s*}", "title", create ? request->title : NULL,
		create || write ? "description" : "body", text.data, "labels", joined.data,
		"state_event", write ? states[request->state] : NULL);
	buf_free(&joined);
	buf_free(&text);
	return body;
}

/* A discussion's id is its own and that of its first note. */
static bool item(
	const json_t *value, enum tracker_ask ask, struct arena *arena, struct tracker_item *out)
{
	const char *state = json_text(value, "state");
	bool comment = ask == TRACKER_COMMENTS || ask == TRACKER_COMMENT;
	const json_t *note = json_array_get(json_object_get(value, "notes"), 0);
	const json_t *text = json_object_get(note ? note : value, comment ? "body" : "description");
	const char *name = ask == TRACKER_COMMIT || comment ? "id" : "iid";

	out->id = tracker_id(arena, json_object_get(value, name));
	out->text = arena_strdup(arena, json_string_value(text));
	out->closed = state && strcmp(state, "closed") == 0;
	if (note && out->id) {
		const char *number = tracker_id(arena, json_object_get(note, "id"));

		out->id = number ? arena_printf(arena, "%s/notes/%s", out->id, number) : NULL;
	}
	return out->id != NULL;
}

static const struct tracker gitlab = {.calls = calls,
	.url = "https://gitlab.com",
	.home = home,
	.body = body,
	.style = &body_markdown,
	.title = TITLE,
	.text = TEXT,
	.hide_from = "<!-- ",
	.hide_to = " -->",
	.page = PAGE,
	.item = item};

const struct notifier gitlab_notifier = {
	.plugin = {.name = "gitlab",
		.summary = "an issue of GitLab for each message, or a comment on the commit",
		.fields = gitlab_fields,
		.options_size = sizeof(struct gitlab_options),
		.endpoint = true,
		.check = check},
	.spacing = TRACKER_SPACING,
	.events = TRACKER_EVENTS,
	.defaults = MESSAGES_OF_CHANGES,
	.render = tracker_render,
	.step = tracker_step,
	.shape = &gitlab,
	.amends = notifier_amends,
};
