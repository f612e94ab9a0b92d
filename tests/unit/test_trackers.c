/*
 * GitHub, GitLab and Jira: what is asked for in which order, and what becomes of each answer: one
 * issue for a message whatever is lost on the way, kept true, closed and opened again.
 */
#include "unit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "delivery_talk.h"
#include "tests/unit/levels.h"

#define START INT64_C(1625184000000) /* 2021-07-02 00:00:00 */

static const char hostile[] = "@all #12 [~ann] {color} https://evil.example `x`";
static const char payload[] =
	"{\"title\":\"1 regression\",\"text\":\"body\",\"commit\":\"6dcb09b5\"}";

static struct fixture *new_talk(void **state, const struct notifier *notifier)
{
	struct fixture *fixture = talk_new(notifier, "", payload);

	fixture->attempt.now = fixture->attempt.made = START;
	*state = fixture;
	return fixture;
}

static int github(void **state)
{
	struct fixture *fixture = new_talk(state, &github_notifier);

	set_option(fixture, "repository", "acme/shop");
	set_option(fixture, "token", "canary-1");
	return 0;
}

static int gitlab(void **state)
{
	struct fixture *fixture = new_talk(state, &gitlab_notifier);

	set_option(fixture, "project", "acme/shop");
	set_option(fixture, "token", "canary-1");
	return 0;
}

static int jira(void **state)
{
	struct fixture *fixture = new_talk(state, &jira_notifier);

	set_option(fixture, "project", "PERF");
	set_option(fixture, "url", "https://acme.example");
	set_option(fixture, "username", "bot@acme.example");
	set_option(fixture, "password", "canary-1");
	return 0;
}

/* The request that was asked for: method, the end of its address before a query, and a part of the
 * body. */
static void asked(struct fixture *fixture, enum step step, const char *method, const char *path,
	const char *part)
{
	const struct transfer *transfer = &fixture->transfer;
	size_t length = strcspn(transfer->url, "?"), end = strlen(path);

	if (step != STEP_TRANSFER)
		fail_msg("no request for %s but: %s", path, fixture->error.text);
	assert_string_equal(transfer->method, method);
	if (length < end || strncmp(transfer->url + length - end, path, end) != 0)
		fail_msg("%s is not %s", transfer->url, path);
	if (part && (!transfer->body || !strstr(transfer->body, part)))
		fail_msg("no %s in %s", part, transfer->body ? transfer->body : "nothing");
	assert_null(strstr(transfer->url, "canary"));
}

#define ASKED(step, method, path, part) asked(fixture, step, method, path, part)

static enum step follow(struct fixture *fixture, const struct reply *last)
{
	return notifier_step(
		fixture->notifier, &fixture->attempt, last, &fixture->transfer, &fixture->error);
}

static enum step told(struct fixture *fixture, int status, const char *body)
{
	const struct reply reply = {.kind = REPLY_ANSWER,
		.status = status,
		.retry_after = -1,
		.body = body,
		.length = strlen(body)};

	return follow(fixture, &reply);
}

/* A message about one change, whose receipt is that. */
struct amend {
	struct announced_change change;
	struct follow_up follow_up;
};

static struct amend *amend_of(
	struct fixture *fixture, const char *receipt, enum announced_state state)
{
	struct amend *amend = arena_alloc(fixture->arena, sizeof *amend);

	amend->change = (struct announced_change){.item = {.id = 1,
							  .test = "checkout",
							  .metric = hostile,
							  .direction = -1,
							  .time = START,
							  .change = {LEVELS(100, 124)}},
		.state = state};
	amend->follow_up =
		(struct follow_up){.kind = FOLLOW_UP_AMEND, .changes = &amend->change, .count = 1};
	fixture->attempt.follow_up = &amend->follow_up;
	fixture->attempt.receipt = receipt;
	return amend;
}

/* {"body": "TEXT", "state": "open"}, with JSON's escapes. */
static const char *issue_json(struct fixture *fixture, const char *text, const char *state)
{
	json_t *issue = json_pack(
		"{s:i, s:s, s:s, s:s}", "number", 12, "iid", "12", "body", text, "state", state);
	char *json;
	const char *kept;

	json_object_set_new(issue, "description", json_string(text));
	json = json_dumps(issue, JSON_COMPACT);
	kept = arena_strdup(fixture->arena, json);
	free(json);
	json_decref(issue);
	return kept;
}

static void test_create(void **state)
{
	struct fixture *fixture = *state;

	set_option(fixture, "labels", "perf,bot");
	set_option(fixture, "assignees", "ann");
	ASKED(begin(fixture), "POST", "/repos/acme/shop/issues", "\"title\":\"1 regression\"");
	assert_non_null(strstr(fixture->transfer.body, "<!-- hunter-c k-1 open 0 -->"));
	assert_non_null(strstr(fixture->transfer.body, "\"labels\":[\"perf\",\"bot\"]"));
	assert_string_equal(fixture->transfer.bearer, "canary-1");
	assert_non_null(strstr(fixture->transfer.url, "https://api.github.com/repos"));
	assert_int_equal(answer(fixture, 201, "{\"number\":12}"), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "issue 12");
}

/* What may have been made is looked for, page by page, before another is made. */
static void test_doubt(void **state)
{
	struct fixture *fixture = *state;
	const struct reply lost = {.kind = REPLY_AMBIGUOUS, .retry_after = -1, .problem = "reset"};
	struct buf page = {0};

	ASKED(begin(fixture), "POST", "/issues", NULL);
	assert_int_equal(take(fixture, &lost), STEP_FAILED);
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_CHECK);
	ASKED(begin(fixture), "GET", "/issues", NULL);
	assert_non_null(strstr(fixture->transfer.url, "since=2021-07-01T23:00:00Z"));
	assert_int_equal(answer(fixture, 503, "busy"), STEP_FAILED);
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_CHECK);
	buf_char(&page, '[');
	for (int i = 0; i < 100; i++)
		buf_printf(&page, "%s{\"number\":%d,\"body\":null}", i ? "," : "", i + 100);
	buf_char(&page, ']');
	ASKED(begin(fixture), "GET", "/issues", NULL);
	ASKED(answer(fixture, 200, page.data), "GET", "/issues", NULL);
	assert_non_null(strstr(fixture->transfer.url, "page=2"));
	assert_int_equal(answer(fixture, 200,
				 "[{\"number\":8,\"body\":\"hunter-c k-12 open 0\"},"
				 "{\"number\":7,\"body\":\"<!-- hunter-c k-1 over 3 -->\","
				 "\"pull_request\":{}},"
				 "{\"number\":9,\"body\":\"<!-- hunter-c k-1 open 0 -->\"}]"),
		STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "issue 9");
	fixture->attempt.maybe_delivered = MAYBE_DELIVERED_CHECK;
	ASKED(begin(fixture), "GET", "/issues", NULL);
	ASKED(answer(fixture, 200, "[]"), "POST", "/issues", "1 regression");
	assert_int_equal(answer(fixture, 502, ""), STEP_FAILED);
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_CHECK);
	buf_free(&page);
}

static void expect_failure(struct fixture *fixture, int status, const char *body, bool retry,
	enum error_kind kind, const char *words)
{
	fixture->attempt.maybe_delivered = MAYBE_DELIVERED_NO;
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, status, body), STEP_FAILED);
	assert_int_equal(fixture->attempt.retry, retry);
	assert_int_equal(fixture->error.kind, kind);
	if (!strstr(fixture->error.text, words))
		fail_msg("no %s in %s", words, fixture->error.text);
}

static void test_refusals(void **state)
{
	struct fixture *fixture = *state;

	expect_failure(fixture, 401, "{\"message\":\"Bad credentials\"}", false, ERROR_USAGE,
		"HTTP status 401: Bad credentials");
	expect_failure(fixture, 403, "{\"message\":\"Resource not accessible\"}", false,
		ERROR_USAGE, "Resource not accessible");
	expect_failure(fixture, 403, "{\"message\":\"You have exceeded a secondary rate limit\"}",
		true, ERROR_DATA, "secondary rate limit");
	assert_int_equal(fixture->attempt.retry_after, 60000);
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_NO);
	expect_failure(
		fixture, 404, "{\"message\":\"Not Found\"}", false, ERROR_USAGE, "Not Found");
	expect_failure(fixture, 410, "{\"message\":\"Issues has been disabled\"}", false,
		ERROR_USAGE, "disabled");
	expect_failure(fixture, 422,
		"{\"message\":\"Validation Failed\",\"errors\":[{\"field\":1}]}", false, ERROR_DATA,
		"Validation Failed: [{\"field\":1}]");
	expect_failure(fixture, 301, "", false, ERROR_USAGE, "301");
	expect_failure(fixture, 201, "{}", true, ERROR_DATA, "unexpected answer");
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_CHECK);
}

/* Labels and assignees that are refused are left out, and that is said. */
static void test_bare(void **state)
{
	struct fixture *fixture = *state;

	set_option(fixture, "assignees", "nobody");
	ASKED(begin(fixture), "POST", "/issues", "nobody");
	ASKED(answer(fixture, 422, "{\"message\":\"Validation Failed\"}"), "POST", "/issues", NULL);
	assert_null(strstr(fixture->transfer.body, "nobody"));
	assert_int_equal(answer(fixture, 201, "{\"number\":12}"), STEP_DONE);
	assert_non_null(strstr(fixture->attempt.notice, "without labels and assignees"));
}

/* More of an earlier message: a comment on its issue, once. */
static void test_thread(void **state)
{
	struct fixture *fixture = *state;

	fixture->attempt.thread = "issue 12";
	ASKED(begin(fixture), "POST", "/issues/12/comments", "<!-- hunter-c k-1 open 0 -->");
	assert_int_equal(answer(fixture, 201, "{\"id\":345}"), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "issue 12 comment 345");
	fixture->attempt.maybe_delivered = MAYBE_DELIVERED_CHECK;
	ASKED(begin(fixture), "GET", "/issues/12/comments", NULL);
	assert_int_equal(
		answer(fixture, 200, "[{\"id\":345,\"body\":\"hunter-c k-1 open 0\"}]"), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "issue 12 comment 345");
	fixture->attempt.maybe_delivered = MAYBE_DELIVERED_NO;
	ASKED(begin(fixture), "POST", "/issues/12/comments", NULL);
	ASKED(answer(fixture, 410, "{}"), "POST", "/shop/issues", NULL); /* it was deleted */
	assert_int_equal(answer(fixture, 201, "{\"number\":13}"), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "issue 13");
}

/* An issue that was closed is open again if more is reported. */
static void test_thread_of_a_closed_issue(void **state)
{
	struct fixture *fixture = *state;

	set_option(fixture, "close", "true");
	fixture->attempt.thread = "issue 12";
	ASKED(begin(fixture), "POST", "/issues/12/comments", NULL);
	ASKED(answer(fixture, 201, "{\"id\":345}"), "GET", "/issues/12", NULL);
	ASKED(answer(fixture, 200, issue_json(fixture, "hunter-c k-0 over 1", "closed")), "PATCH",
		"/issues/12", "{\"state\":\"open\"}");
	assert_int_equal(answer(fixture, 200, "{}"), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "issue 12 comment 345");
}

/* A reminder is a comment that neither opens an issue again nor holds it open. */
static void test_note(void **state)
{
	struct fixture *fixture = *state;

	set_option(fixture, "close", "true");
	fixture->attempt.thread = "issue 12";
	fixture->attempt.payload = "{\"title\":\"t\",\"text\":\"body\",\"note\":true}";
	ASKED(begin(fixture), "POST", "/issues/12/comments", "hunter-c k-1 note 0");
	assert_int_equal(answer(fixture, 201, "{\"id\":345}"), STEP_DONE);
	fixture->attempt.maybe_delivered = MAYBE_DELIVERED_CHECK;
	ASKED(begin(fixture), "GET", "/issues/12/comments", NULL);
	assert_int_equal(
		answer(fixture, 200, "[{\"id\":345,\"body\":\"hunter-c k-1 note 0\"}]"), STEP_DONE);
	fixture->attempt.key = "k-2";
	(void)amend_of(fixture, "issue 12", ANNOUNCED_RECOVERED);
	ASKED(follow(fixture, NULL), "GET", "/issues/12", NULL);
	ASKED(told(fixture, 200, issue_json(fixture, "hunter-c k-2 open 0", "open")), "GET",
		"/comments", NULL);
	ASKED(told(fixture, 200,
		      "[{\"id\":345,\"body\":\"hunter-c k-1 note 0\"},"
		      "{\"id\":346,\"body\":\"hunter-c k-2 said 1\"}]"),
		"PATCH", "/issues/12", "\"state\":\"closed\"");
}

static void test_commit(void **state)
{
	struct fixture *fixture = *state;

	set_option(fixture, "on", "commit");
	ASKED(begin(fixture), "GET", "/commits/6dcb09b5", NULL);
	ASKED(answer(fixture, 200, "{\"sha\":\"6dcb09b5b57875f3\"}"), "POST",
		"/commits/6dcb09b5b57875f3/comments", "k-1");
	assert_int_equal(answer(fixture, 201, "{\"id\":7}"), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "commit 6dcb09b5b57875f3 comment 7");
	ASKED(begin(fixture), "GET", "/commits/6dcb09b5", NULL);
	ASKED(answer(fixture, 422, "{\"message\":\"No commit found\"}"), "POST", "/issues", NULL);
	fixture->attempt.maybe_delivered = MAYBE_DELIVERED_CHECK;
	ASKED(begin(fixture), "GET", "/commits/6dcb09b5", NULL);
	ASKED(answer(fixture, 200, "{\"sha\":\"6dcb09b5b57875f3\"}"), "GET",
		"/commits/6dcb09b5b57875f3/comments", NULL);
	ASKED(answer(fixture, 200, "[]"), "POST", "/comments", NULL);
	(void)amend_of(fixture, "commit 6dcb09b5b57875f3 comment 7", ANNOUNCED_RECOVERED);
	ASKED(follow(fixture, NULL), "PATCH", "/repos/acme/shop/comments/7", "k-1 over 0");
	assert_int_equal(told(fixture, 200, "{}"), STEP_DONE);
}

/* What a follow-up has written, and what people have added below. */
static const char *written(struct fixture *fixture, const char *more)
{
	json_t *body = json_loads(fixture->transfer.body, 0, NULL);
	const char *text = arena_printf(
		fixture->arena, "%s%s", json_string_value(json_object_get(body, "body")), more);

	json_decref(body);
	return text;
}

/* Over, said once, then closed; nothing is written when it is so already; open again. */
static void test_amend(void **state)
{
	struct fixture *fixture = *state;
	struct amend *amend = amend_of(fixture, "issue 12", ANNOUNCED_RECOVERED);
	const char *text;

	amend->change.item.over = (struct recovered){START + 3600000, 100};
	set_option(fixture, "close", "true");
	ASKED(follow(fixture, NULL), "GET", "/issues/12", NULL);
	ASKED(told(fixture, 200,
		      issue_json(fixture, "old <!-- hunter-c k-1 open 0 -->\nMine.", "open")),
		"GET", "/issues/12/comments", NULL);
	ASKED(told(fixture, 200, "[{\"id\":1,\"body\":\"hunter-c k-1 said 11\"}]"), "POST",
		"/issues/12/comments", "All over: 1 recovered.");
	assert_non_null(strstr(fixture->transfer.body, "hunter-c k-1 said 1 -->"));
	ASKED(told(fixture, 201, "{\"id\":2}"), "PATCH", "/issues/12", "\"state\":\"closed\"");
	text = written(fixture, "");
	assert_non_null(strstr(text, "hunter-c k-1 over 1 -->\nMine."));
	assert_null(strstr(text, "old"));
	assert_non_null(strstr(text, "back to 100 after 1 h"));
	assert_int_equal(told(fixture, 200, "{}"), STEP_DONE);

	ASKED(follow(fixture, NULL), "GET", "/issues/12", NULL);
	assert_int_equal(told(fixture, 200, issue_json(fixture, text, "closed")), STEP_DONE);

	amend->change.state = ANNOUNCED_STANDS;
	amend->change.item.over = (struct recovered){0};
	ASKED(follow(fixture, NULL), "GET", "/issues/12", NULL);
	ASKED(told(fixture, 200, issue_json(fixture, text, "closed")), "GET", "/comments", NULL);
	ASKED(told(fixture, 200, "[]"), "POST", "/comments", "Open again: 1 open.");
	ASKED(told(fixture, 201, "{\"id\":3}"), "PATCH", "/issues/12", "\"state\":\"open\"");
	assert_non_null(strstr(fixture->transfer.body, "k-1 open 2"));
}

/* After a crash between the comment and the issue the comment is found. */
static void test_said(void **state)
{
	struct fixture *fixture = *state;

	(void)amend_of(fixture, "issue 12", ANNOUNCED_WITHDRAWN);
	ASKED(follow(fixture, NULL), "GET", "/issues/12", NULL);
	ASKED(told(fixture, 200, issue_json(fixture, "hunter-c k-1 open 4", "open")), "GET",
		"/comments", NULL);
	ASKED(told(fixture, 200, "[{\"id\":1,\"body\":\"<!-- hunter-c k-1 said 5 -->\"}]"), "PATCH",
		"/issues/12", "k-1 over 5");
	assert_null(strstr(fixture->transfer.body, "state")); /* `close` was not asked for */
	assert_int_equal(told(fixture, 200, "{}"), STEP_DONE);
}

/* However long it is, what people have written stays; our own text makes room. */
static void test_room(void **state)
{
	struct fixture *fixture = *state;
	struct buf text = {0};
	const char *whole;

	(void)amend_of(fixture, "issue 12", ANNOUNCED_STANDS);
	buf_text(&text, "hunter-c k-1 open 0 -->\n");
	for (int i = 0; i < 7000; i++)
		buf_text(&text, "Ann: on it");
	buf_text(&text, ".");
	ASKED(follow(fixture, NULL), "GET", "/issues/12", NULL);
	ASKED(told(fixture, 200, issue_json(fixture, text.data, "open")), "PATCH", "/issues/12",
		"Ann: on it.");
	whole = written(fixture, "");
	assert_in_range(strlen(whole), 70000, 71500);
	assert_non_null(strstr(whole, "24%"));
	buf_free(&text);
}

/* Triage: all over, too. What stands only gets new text. */
static void test_triage(void **state)
{
	struct fixture *fixture = *state;
	struct amend *amend = amend_of(fixture, "issue 12", ANNOUNCED_STANDS);

	amend->change.triage =
		(struct triage){.state = TRIAGE_ACKNOWLEDGED, .version = 1, .person = hostile};
	ASKED(follow(fixture, NULL), "GET", "/issues/12", NULL);
	ASKED(told(fixture, 200, issue_json(fixture, "hunter-c k-1 open 0", "open")), "PATCH",
		"/issues/12",
		"acknowledged by @\xe2\x80\x8b"
		"all");
	amend->change.triage.state = TRIAGE_EXPECTED;
	ASKED(follow(fixture, NULL), "GET", "/issues/12", NULL);
	ASKED(told(fixture, 200, issue_json(fixture, "hunter-c k-1 open 0", "open")), "GET",
		"/comments", NULL);
	ASKED(told(fixture, 200, "[]"), "POST", "/comments", "All over: 1 expected.");
}

/* While something of a comment is open, the issue stays open; its end closes it. */
static void test_comments_hold_open(void **state)
{
	struct fixture *fixture = *state;

	set_option(fixture, "close", "true");
	(void)amend_of(fixture, "issue 12", ANNOUNCED_RECOVERED);
	ASKED(follow(fixture, NULL), "GET", "/issues/12", NULL);
	ASKED(told(fixture, 200, issue_json(fixture, "hunter-c k-1 open 0", "open")), "GET",
		"/comments", NULL);
	ASKED(told(fixture, 200,
		      "[{\"id\":1,\"body\":\"hunter-c k-2 open 0\"},"
		      "{\"id\":2,\"body\":\"hunter-c k-1 said 1\"}]"),
		"PATCH", "/issues/12", "k-1 over 1");
	assert_null(strstr(fixture->transfer.body, "state"));
	assert_int_equal(told(fixture, 200, "{}"), STEP_DONE);

	fixture->attempt.key = "k-2";
	(void)amend_of(fixture, "issue 12 comment 1", ANNOUNCED_RECOVERED);
	ASKED(follow(fixture, NULL), "PATCH", "/issues/comments/1", "k-2 over 0");
	ASKED(told(fixture, 200, "{}"), "GET", "/issues/12", NULL);
	ASKED(told(fixture, 200, issue_json(fixture, "hunter-c k-1 over 1", "open")), "GET",
		"/comments", NULL);
	ASKED(told(fixture, 200, "[{\"id\":1,\"body\":\"hunter-c k-2 over 0\"}]"), "PATCH",
		"/issues/12", "{\"state\":\"closed\"}");
	assert_int_equal(told(fixture, 200, "{}"), STEP_DONE);
}

static void test_deleted(void **state)
{
	struct fixture *fixture = *state;
	struct amend *amend = amend_of(fixture, "issue 12", ANNOUNCED_STANDS);

	ASKED(follow(fixture, NULL), "GET", "/issues/12", NULL);
	ASKED(told(fixture, 404, "{}"), "GET", "/repos/acme/shop", NULL);
	assert_int_equal(told(fixture, 404, "{}"), STEP_FAILED); /* the token may not see it */
	assert_int_equal(fixture->error.kind, ERROR_USAGE);
	assert_false(amend->follow_up.gone);
	ASKED(follow(fixture, NULL), "GET", "/issues/12", NULL);
	assert_int_equal(told(fixture, 410, "{}"), STEP_FAILED);
	assert_true(amend->follow_up.gone);
	assert_true(amend->follow_up.deleted);
	amend->follow_up.gone = amend->follow_up.deleted = false;
	fixture->attempt.receipt = "commit 6dcb09b5 comment 7";
	ASKED(follow(fixture, NULL), "PATCH", "/comments/7", NULL);
	ASKED(told(fixture, 404, "{}"), "GET", "/repos/acme/shop", NULL);
	assert_int_equal(told(fixture, 200, "{}"), STEP_FAILED);
	assert_true(amend->follow_up.deleted);
	fixture->attempt.receipt = "nonsense";
	assert_int_equal(follow(fixture, NULL), STEP_FAILED);
}

static void test_render(void **state)
{
	struct fixture *fixture = *state;
	struct announcement item = {.test = "checkout",
		.metric = hostile,
		.direction = -1,
		.time = START,
		.commit_after = "6dcb09b5",
		.change = {LEVELS(100, 124)}};
	struct message message = {.key = "k-1", .items = &item, .count = 1};
	json_t *document;
	const char *title;

	assert_true(notifier_render(
		fixture->notifier, &message, fixture->options, "", &fixture->out, &fixture->error));
	document = json_loadb(fixture->out.data, fixture->out.length, 0, NULL);
	title = json_string_value(json_object_get(document, "title"));
	assert_non_null(strstr(title, "1 regression in checkout: @\xe2\x80\x8b"
				      "all #\xe2\x80\x8b"
				      "12"));
	assert_string_equal(json_string_value(json_object_get(document, "commit")), "6dcb09b5");
	assert_non_null(strstr(json_string_value(json_object_get(document, "text")), "24%"));
	json_decref(document);
}

static void test_gitlab(void **state)
{
	struct fixture *fixture = *state;
	struct amend *amend;

	set_option(fixture, "assignees", "ann,bob");
	set_option(fixture, "labels", "perf");
	set_option(fixture, "close", "true");
	set_option(fixture, "url", "https://git.example/");
	ASKED(begin(fixture), "POST", "/projects/acme%2Fshop/issues", "/assign @ann @bob");
	assert_non_null(strstr(fixture->transfer.url, "https://git.example/api/v4/projects"));
	assert_int_equal(answer(fixture, 201, "{\"iid\":12,\"id\":99}"), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "issue 12");
	fixture->attempt.maybe_delivered = MAYBE_DELIVERED_CHECK;
	ASKED(begin(fixture), "GET", "/issues", NULL);
	assert_non_null(strstr(fixture->transfer.url, "search=k-1&"));
	assert_int_equal(
		answer(fixture, 200, "[{\"iid\":9,\"description\":\"hunter-c k-1 open 0\"}]"),
		STEP_DONE);
	amend = amend_of(fixture, "issue 12", ANNOUNCED_RECOVERED);
	ASKED(follow(fixture, NULL), "GET", "/issues/12", NULL);
	ASKED(told(fixture, 200, issue_json(fixture, "hunter-c k-1 open 0", "opened")), "GET",
		"/issues/12/notes", NULL);
	ASKED(told(fixture, 200, "[]"), "POST", "/issues/12/notes", "All over");
	ASKED(told(fixture, 201, "{\"id\":3}"), "PUT", "/issues/12", "\"state_event\":\"close\"");
	assert_int_equal(told(fixture, 200, "{}"), STEP_DONE);
	ASKED(follow(fixture, NULL), "GET", "/issues/12", NULL);
	ASKED(told(fixture, 404, "{\"message\":\"404 Not found\"}"), "GET",
		"/api/v4/projects/acme%2Fshop", NULL);
	assert_int_equal(told(fixture, 200, "{}"), STEP_FAILED);
	assert_true(amend->follow_up.gone && amend->follow_up.deleted);
	assert_non_null(strstr(fixture->error.text, "404 Not found"));
}

static void test_gitlab_commit(void **state)
{
	struct fixture *fixture = *state;

	set_option(fixture, "on", "commit");
	ASKED(begin(fixture), "GET", "/repository/commits/6dcb09b5", NULL);
	ASKED(answer(fixture, 200, "{\"id\":\"6dcb09b5b57875f3\"}"), "POST",
		"/commits/6dcb09b5b57875f3/discussions", "k-1");
	assert_int_equal(answer(fixture, 201, "{\"id\":\"d1\",\"notes\":[{\"id\":7}]}"), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "commit 6dcb09b5b57875f3 comment d1/notes/7");
	(void)amend_of(fixture, fixture->attempt.receipt, ANNOUNCED_RECOVERED);
	ASKED(follow(fixture, NULL), "PUT", "/discussions/d1/notes/7", "k-1 over 0");
}

static void test_jira(void **state)
{
	struct fixture *fixture = *state;
	const char issue[] = "{\"key\":\"PERF-1\",\"fields\":{\"description\":\"hunter-c k-1 open "
			     "0\",\"status\":{\"statusCategory\":{\"key\":\"new\"}}}}";

	set_option(fixture, "assignee", "5b10ac8d82e05b22cc7d4ef5");
	set_option(fixture, "close", "true");
	ASKED(begin(fixture), "POST", "/rest/api/2/issue", "\"project\":{\"key\":\"PERF\"}");
	assert_non_null(strstr(fixture->transfer.body, "\"accountId\":\"5b10"));
	assert_null(fixture->transfer.bearer);
	assert_int_equal(answer(fixture, 201, "{\"id\":\"1\",\"key\":\"PERF-1\"}"), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "issue PERF-1");
	(void)amend_of(fixture, "issue PERF-1", ANNOUNCED_RECOVERED);
	ASKED(follow(fixture, NULL), "GET", "/issue/PERF-1", NULL);
	ASKED(told(fixture, 200, issue), "GET", "/issue/PERF-1/comment", NULL);
	ASKED(told(fixture, 200, "{\"comments\":[]}"), "POST", "/comment", "All over");
	/* First the state, then the mark that says so: what is lost between is done again. */
	ASKED(told(fixture, 201, "{\"id\":\"5\"}"), "GET", "/issue/PERF-1/transitions", NULL);
	ASKED(told(fixture, 200,
		      "{\"transitions\":[{\"id\":\"4\",\"to\":{\"statusCategory\":{\"key\":\"new\"}"
		      "}},"
		      "{\"id\":\"31\",\"to\":{\"statusCategory\":{\"key\":\"done\"}}}]}"),
		"POST", "/issue/PERF-1/transitions", "{\"transition\":{\"id\":\"31\"}}");
	ASKED(told(fixture, 204, ""), "PUT", "/issue/PERF-1", "k-1 over 1");
	assert_non_null(strstr(fixture->transfer.body, "@\xe2\x80\x8b"
						       "all \\\\#12 \\\\[\\\\~ann\\\\]"));
	assert_int_equal(told(fixture, 204, ""), STEP_DONE);
	ASKED(follow(fixture, NULL), "GET", "/issue/PERF-1", NULL);
	ASKED(told(fixture, 200, issue), "GET", "/issue/PERF-1/comment", NULL);
	ASKED(told(fixture, 200, "{\"comments\":[]}"), "POST", "/comment", NULL);
	ASKED(told(fixture, 201, "{\"id\":\"5\"}"), "GET", "/issue/PERF-1/transitions", NULL);
	ASKED(told(fixture, 200, "{\"transitions\":[]}"), "PUT", "/issue/PERF-1", "k-1 over 1");
	assert_non_null(strstr(fixture->attempt.notice, "no transition to close it"));
}

/* Its search is behind: it is asked a minute after what may have been made, by two addresses. */
static void test_jira_doubt(void **state)
{
	struct fixture *fixture = *state;
	const struct reply lost = {.kind = REPLY_AMBIGUOUS, .retry_after = -1, .problem = "reset"};

	ASKED(begin(fixture), "POST", "/issue", NULL);
	assert_int_equal(take(fixture, &lost), STEP_FAILED);
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_CHECK);
	assert_int_equal(fixture->attempt.retry_after, 60000);
	fixture->attempt.now = START + 20000;
	assert_int_equal(begin(fixture), STEP_FAILED);
	assert_true(fixture->attempt.retry);
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_CHECK);
	fixture->attempt.now = START + 60000;
	ASKED(begin(fixture), "GET", "/search/jql", NULL);
	ASKED(answer(fixture, 404, "{}"), "GET", "/rest/api/2/search", NULL);
	assert_int_equal(
		answer(fixture, 200,
			"{\"issues\":[{\"key\":\"PERF-7\",\"fields\":{\"description\":\"---- "
			"hunter-c k-1 open 0\"}}]}"),
		STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "issue PERF-7");
}

static bool accepts(struct fixture *fixture)
{
	return fixture->notifier->plugin.check(fixture->options, &fixture->error);
}

static void test_check(void **state)
{
	struct fixture *fixture = *state;

	assert_true(accepts(fixture));
	set_option(fixture, "repository", "shop");
	assert_false(accepts(fixture));
	set_option(fixture, "repository", "acme/shop/../x");
	assert_false(accepts(fixture));
	set_option(fixture, "repository", "acme/shop");
	set_option(fixture, "url", "ftp://x");
	assert_false(accepts(fixture));
}

#define TALK(kind, test)                                                                           \
	{                                                                                          \
#kind " " #test, test, kind, teardown, NULL                                        \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TALK(github, test_create),
		TALK(github, test_doubt),
		TALK(github, test_refusals),
		TALK(github, test_bare),
		TALK(github, test_thread),
		TALK(github, test_thread_of_a_closed_issue),
		TALK(github, test_note),
		TALK(github, test_commit),
		TALK(github, test_amend),
		TALK(github, test_said),
		TALK(github, test_room),
		TALK(github, test_triage),
		TALK(github, test_comments_hold_open),
		TALK(github, test_deleted),
		TALK(github, test_render),
		TALK(github, test_check),
		TALK(gitlab, test_render),
		TALK(gitlab, test_gitlab),
		TALK(gitlab, test_gitlab_commit),
		TALK(jira, test_render),
		TALK(jira, test_jira),
		TALK(jira, test_jira_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
