/*
 * Jira Cloud and Jira Data Center, by the REST API v2, whose texts are in wiki markup.
 *
 * Cloud has basic authentication with an API token as the password, a Data Center has tokens of its
 * own. An issue is looked for by the key in its description, which Cloud's search finds only after
 * a while. Its state changes by a transition into one of the category "done", or out of it.
 */
#include <string.h>

#include "agent/base/order.h"
#include "notifiers/http_json.h"
#include "notifiers/tracker.h"

/* Documented: 32,767 characters of a text, and 255 of a summary. */
enum { TEXT = 30000, SUMMARY = 250, CLOUD_LAG = 60000, LAG = 5000 };

struct jira_options {
	struct tracker_options common;
	const char *project, *type;
};

static const struct field jira_fields[] = {
	OPTION_STRING(struct jira_options, project, NULL, "key of the project, as PERF",
		.flags = FIELD_REQUIRED),
	OPTION_STRING(struct jira_options, type, "Task", "type of new issues"),
	TRACKER_TOKEN(struct jira_options, "personal access token (Data Center); for Cloud, set "
					   "username and an API token as password"),
	TRACKER_LABELS(struct jira_options),
	OPTION_STRING_AS("assignee", struct jira_options, common.assignee, NULL,
		"assignee of new issues: an account id (Cloud) or a login"),
	{0},
};

static bool check(const void *context, struct error *error)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	const struct jira_options *options = context;
	const char *project = options->project;

	if (!*project || project[strspn(project, allowed)])
		return error_set(error, ERROR_USAGE, "project: it must be a key such as PERF");
	if (!http_json_check_url(&options->common.endpoint, error))
		return false;
	return tracker_check(&options->common, false, error);
}

/* All punctuation with a meaning; a zero-width space ends addresses and mentions. */
static void escape(struct buf *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (text[i] && strchr("\\{}[]()*_-+^~?!|#", text[i]))
			buf_char(out, '\\');
		buf_char(out, text[i]);
		if (text[i] == '@' || (text[i] == ':' && i + 1 < length && text[i + 1] == '/'))
			buf_text(out, "\xe2\x80\x8b");
	}
}

static void link(struct buf *out, const char *url)
{
	buf_char(out, '[');
	for (; *url; url++)
		if (strchr("[]|{}\\", *url))
			buf_printf(out, "%%%02X", (unsigned)(unsigned char)*url);
		else
			buf_char(out, *url);
	buf_char(out, ']');
}

static const struct body_style wiki = {.text = &text_utc,
	.escape = escape,
	.link = link,
	.begin = {"*"},
	.end = "*",
	.open = {"", "\n", "* ", "** "},
	.close = "\n",
	.gap = "\n"};

static bool is_cloud(const struct jira_options *options)
{
	return options->common.endpoint.username != NULL;
}

/* The nodes of a Data Center share it. */
static int64_t lag(const void *options)
{
	return is_cloud(options) ? CLOUD_LAG : LAG;
}

static const struct tracker_call calls[] = {
	[TRACKER_LIST] = {"GET", {"%s&fields=description,status&maxResults=50"}},
	[TRACKER_CREATE] = {"POST", {"issue"}},
	[TRACKER_READ] = {"GET", {"issue/%i?fields=description,status"}},
	[TRACKER_WRITE] = {"PUT", {"issue/%i"}},
	[TRACKER_COMMENTS] = {"GET", {"issue/%i/comment?orderBy=-created&maxResults=100"}},
	[TRACKER_COMMENT] = {"POST", {"issue/%i/comment"}},
	[TRACKER_EDIT] = {"PUT", {"issue/%i/comment/%c"}},
	[TRACKER_WAYS] = {"GET", {"issue/%i/transitions"}},
	[TRACKER_MOVE] = {"POST", {"issue/%i/transitions"}},
	[TRACKER_HOME] = {"GET", {"project/%s"}}};

static void home(struct buf *path, const void *options)
{
	(void)options;
	buf_text(path, "rest/api/2/");
}

/* Of TRACKER_HOME: the project. */
static void put_search(
	struct buf *path, const struct tracker_request *request, const struct attempt *attempt)
{
	const struct jira_options *options = attempt->options;
	struct buf jql = {0};

	if (request->ask == TRACKER_HOME) {
		buf_text(path, options->project);
		return;
	}
	buf_printf(&jql, "project = \"%s\" AND description ~ \"%s\" ORDER BY created DESC",
		options->project, request->key);
	buf_text(path, is_cloud(options) != request->other ? "search/jql?jql=" : "search?jql=");
	transfer_encode(path, jql.data);
	buf_free(&jql);
}

static json_t *body(const struct tracker_request *request, const void *context)
{
	const struct jira_options *options = context;
	const char *assignee = request->bare ? NULL : options->common.assignee;

	if (request->ask == TRACKER_MOVE)
		return json_pack("{s:{s:s}}", "transition", "id", request->way);
	if (request->ask == TRACKER_WRITE)
		return json_pack("{s:{s:s}}", "fields", "description", request->text);
	if (request->ask != TRACKER_CREATE)
		return json_pack("{s:s}", "body", request->text);
	return json_pack("{s:{s:{s:s}, s:{s:s}, s:s, s:s, s:o*, s:o*}}", "fields", "project", "key",
		options->project, "issuetype", "name", options->type, "summary", request->title,
		"description", request->text, "labels",
		tracker_array(request, &options->common.labels), "assignee",
		assignee ? json_pack("{s:s}", is_cloud(options) ? "accountId" : "name", assignee)
			 : NULL);
}

static const json_t *list(const json_t *answer, enum tracker_ask ask)
{
	return json_object_get(answer, ask == TRACKER_COMMENTS ? "comments"
				       : ask == TRACKER_WAYS   ? "transitions"
							       : "issues");
}

static bool item(
	const json_t *value, enum tracker_ask ask, struct arena *arena, struct tracker_item *out)
{
	const json_t *fields = json_object_get(value, "fields");
	const json_t *status = ask == TRACKER_WAYS ? json_object_get(value, "to")
						   : json_object_get(fields, "status");
	const char *category = json_text(json_object_get(status, "statusCategory"), "key");
	bool inner = ask == TRACKER_COMMENTS || ask == TRACKER_COMMENT || ask == TRACKER_WAYS;
	const json_t *text =
		inner ? json_object_get(value, "body") : json_object_get(fields, "description");

	out->id = tracker_id(arena, json_object_get(value, inner ? "id" : "key"));
	out->text = arena_strdup(arena, json_string_value(text));
	out->closed = order_same(category, "done");
	out->fresh = order_same(category, "new");
	return out->id != NULL;
}

static const struct tracker jira = {.calls = calls,
	.home = home,
	.put_search = put_search,
	.body = body,
	.style = &wiki,
	.title = SUMMARY,
	.text = TEXT,
	.hide_from = "----\n",
	.hide_to = "",
	.page = UINT32_MAX,
	.lag = lag,
	.moves = true,
	.list = list,
	.item = item};

const struct notifier jira_notifier = {
	.plugin = {.name = "jira",
		.summary = "an issue of Jira for each message",
		.fields = jira_fields,
		.options_size = sizeof(struct jira_options),
		.endpoint = true,
		.check = check},
	.spacing = TRACKER_SPACING,
	.events = TRACKER_EVENTS,
	.defaults = MESSAGES_OF_CHANGES,
	.render = tracker_render,
	.step = tracker_step,
	.shape = &jira,
	.amends = notifier_amends,
};
