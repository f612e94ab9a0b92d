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
	TRACKER_ASSIGNEES(struct github_options, "assignees of new issues, by login"),
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

static void ask(const struct tracker_request *request, struct attempt *attempt)
{
	static const struct pair headers[] = {
		{"Accept", "application/vnd.github+json"}, {"X-GitHub-Api-Version", "2022-11-28"}};
	const struct github_options *options = attempt->options;
	const struct tracker_target *target = &request->target;
	const char *base = options->common.endpoint.url ? options->common.endpoint.url
							: "https://api.github.com";
	const char *issue = target->issue ? target->issue : "", *method = "GET";
	struct buf path = {0};
	json_t *body = NULL;
	char since[WHEN_TEXT];

	buf_printf(&path, "repos/%s/", options->repository);
	switch (request->ask) {
	case TRACKER_LIST:
		buf_printf(&path,
			"issues?state=all&sort=created&direction=desc&since=%s&per_page=%d&page=%u",
			when_format_iso(attempt->made - EARLIER_MS, since), PAGE, request->page);
		break;
	case TRACKER_CREATE:
		method = "POST";
		buf_text(&path, "issues");
		body = json_pack("{s:s, s:s}", "title", request->title, "body", request->text);
		if (options->common.labels.count > 0 && !request->bare)
			json_object_set_new(body, "labels", tracker_array(&options->common.labels));
		if (options->common.assignees.count > 0 && !request->bare)
			json_object_set_new(
				body, "assignees", tracker_array(&options->common.assignees));
		break;
	case TRACKER_READ: buf_printf(&path, "issues/%s", issue); break;
	case TRACKER_WRITE:
		method = "PATCH";
		buf_printf(&path, "issues/%s", issue);
		body = json_object();
		if (request->text)
			json_object_set_new(body, "body", json_string(request->text));
		if (request->state != TRACKER_KEEP)
			json_object_set_new(body, "state",
				json_string(request->state == TRACKER_OPEN ? "open" : "closed"));
		break;
	case TRACKER_COMMENTS:
		buf_printf(&path, "%s/%s/comments?per_page=%d&page=%u",
			target->issue ? "issues" : "commits",
			target->issue ? issue : target->commit, PAGE, request->page);
		break;
	case TRACKER_COMMENT:
		method = "POST";
		buf_printf(&path, "%s/%s/comments", target->issue ? "issues" : "commits",
			target->issue ? issue : target->commit);
		body = json_pack("{s:s}", "body", request->text);
		break;
	case TRACKER_EDIT:
		method = "PATCH";
		buf_printf(&path, "%scomments/%s", target->issue ? "issues/" : "", target->comment);
		body = json_pack("{s:s}", "body", request->text);
		break;
	case TRACKER_COMMIT:
		buf_text(&path, "commits/");
		transfer_encode(&path, target->commit);
		break;
	case TRACKER_HOME:
		buf_clear(&path);
		buf_printf(&path, "repos/%s", options->repository);
		break;
	case TRACKER_WAYS:
	case TRACKER_MOVE: break;
	}
	tracker_send(attempt, method, base, buf_keep(&path, attempt->arena), body,
		(struct pairs){headers, sizeof headers / sizeof *headers});
}

static const json_t *list(const json_t *answer, enum tracker_ask ask)
{
	(void)ask;
	return answer;
}

/* Pull requests are issues, too, for GitHub. */
static bool item(
	const json_t *value, enum tracker_ask ask, struct arena *arena, struct tracker_item *out)
{
	const char *state = json_string_value(json_object_get(value, "state"));
	bool comment = ask == TRACKER_COMMENTS || ask == TRACKER_COMMENT;
	const char *name = ask == TRACKER_COMMIT ? "sha" : comment ? "id" : "number";

	out->id = tracker_id(arena, json_object_get(value, name));
	out->text = arena_strdup(arena, json_string_value(json_object_get(value, "body")));
	out->closed = state && strcmp(state, "closed") == 0;
	return out->id && !json_object_get(value, "pull_request");
}

static const struct tracker github = {.style = &body_markdown,
	.title = TITLE,
	.text = TEXT,
	.hide_from = "<!-- ",
	.hide_to = " -->",
	.page = PAGE,
	.ask = ask,
	.list = list,
	.item = item};

static bool render(const struct message *message, const void *options, const char *destination,
	struct buf *payload, struct error *error)
{
	(void)options, (void)destination, (void)error;
	tracker_render(&github, message, payload);
	return true;
}

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
	.render = render,
	.step = tracker_step,
	.shape = &github,
	.amends = notifier_amends,
};
