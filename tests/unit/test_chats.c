/*
 * Microsoft Teams, Mattermost and Discord: what is written, within the limits at any size and with
 * nothing of what comes from outside as markup; and what becomes of each answer. The lines are
 * those of body.h.
 */
#include "unit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "delivery_talk.h"
#include "notifiers/body.h"
#include "tests/unit/levels.h"

#define START INT64_C(1625184000000) /* 2021-07-02 00:00:00 */

enum { MANY = 700, NAME = 120 };

static const char hostile[] = "@everyone <b>#12 [x](https://evil.example) ``www.evil.example``";

static int new_talk(void **state, const struct notifier *notifier, const char *url)
{
	struct fixture *fixture = talk_new(notifier, "", "{}");

	set_option(fixture, "url", url);
	*state = fixture;
	return 0;
}

static int discord(void **state)
{
	return new_talk(state, &discord_notifier, "https://discord.example/api/webhooks/1/canary");
}

static int mattermost(void **state)
{
	return new_talk(state, &mattermost_notifier, "https://chat.example/hooks/canary");
}

static int msteams(void **state)
{
	return new_talk(state, &msteams_notifier, "https://flow.example/invoke?sig=canary");
}

static struct announcement item_of(const char *test, const char *metric)
{
	return (struct announcement){.test = test,
		.metric = metric,
		.unit = "ms",
		.direction = -1,
		.time = START,
		.place_from = START,
		.place_to = START,
		.commit_before = "a1",
		.commit_after = hostile,
		.compare_url = "https://git.example/a1...b2",
		.owner = hostile,
		.dashboard = "https://grafana.example/d/1",
		.change = {LEVELS(100, 124)}};
}

static json_t *render(struct fixture *fixture, const struct message *message)
{
	json_t *document;

	buf_clear(&fixture->out);
	assert_true(notifier_render(
		fixture->notifier, message, fixture->options, "", &fixture->out, &fixture->error));
	document = json_loadb(fixture->out.data, fixture->out.length, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(document);
	return document;
}

/* All text of the members of that name, one after the other. */
static void collect(json_t *value, const char *name, struct buf *out)
{
	const char *key;
	json_t *item;
	size_t index;

	if (json_is_array(value)) {
		json_array_foreach(value, index, item) collect(item, name, out);
	} else if (json_is_object(value)) {
		json_object_foreach(value, key, item)
		{
			if (json_is_string(item) && strcmp(key, name) == 0)
				buf_text(out, json_string_value(item));
			else
				collect(item, name, out);
		}
	}
}

static struct buf text_of(struct fixture *fixture, const struct message *message, const char *name)
{
	json_t *document = render(fixture, message);
	struct buf out = {0};

	collect(document, name, &out);
	json_decref(document);
	assert_true(out.length > 0);
	return out;
}

static void assert_within(const struct buf *text, const char *part)
{
	if (!strstr(text->data, part))
		fail_msg("no \"%s\" in:\n%s", part, text->data);
}

/* Many changes, of which those that fit are shown, and the others counted. */
static struct buf much(struct fixture *fixture, const char *name, size_t *size)
{
	struct announcement *items = calloc(MANY, sizeof *items);
	char(*names)[NAME] = calloc(MANY, sizeof *names);
	struct message message = {.key = "k", .items = items, .count = MANY};
	struct buf text;
	size_t shown = 0;
	char left[NAME];

	for (size_t i = 0; i < MANY; i++) {
		snprintf(names[i], NAME, "test-%zu %s", i, hostile);
		items[i] = item_of(names[i], "p99");
	}
	text = text_of(fixture, &message, name);
	*size = fixture->out.length;
	for (const char *at = text.data; (at = strstr(at, "+24%")); at++)
		shown++;
	assert_in_range(shown, 5, MANY - 1);
	snprintf(left, sizeof left, "%zu more change points are left out", MANY - shown);
	assert_within(&text, left);
	free(names);
	free(items);
	return text;
}

/* Names are code, in which nothing has a meaning; whatever else comes from outside is escaped. */
static void test_markdown(void **state)
{
	struct fixture *fixture = *state;
	const char *name = fixture->notifier == &discord_notifier ? "description" : "text";
	struct announcement item = item_of(hostile, "p99`");
	struct buf status = {0};
	struct message message = {.key = "k", .items = &item, .count = 1};
	struct buf text;

	buf_printf(&status, "%s milestone %%1, !12, ~bug, $4, 5%% of", hostile);
	item.status = status.data;
	text = text_of(fixture, &message, name);
	assert_within(&text, "**1 regression in ``` @everyone <b>#12");
	assert_within(&text, "- `` p99` ``: **+24%**  100 → 124 `ms`");
	assert_within(&text, ", @\xe2\x80\x8b"
			     "everyone \\<b\\>\\#\xe2\x80\x8b"
			     "12 \\[x\\]\\(https:\xe2\x80\x8b//evil.example\\) ");
	assert_within(&text, "\\`\\`www.\xe2\x80\x8b"
			     "evil.example");
	assert_within(&text, "milestone %\xe2\x80\x8b"
			     "1, \\!\xe2\x80\x8b"
			     "12, \\~\xe2\x80\x8b"
			     "bug, \\$\xe2\x80\x8b"
			     "4, 5% of");
	assert_within(&text, "<https://git.example/a1...b2>");
	assert_within(&text, "dashboard: <https://grafana.example/d/1>");
	buf_free(&text);
	buf_free(&status);
}

static void test_discord_limits(void **state)
{
	size_t size;
	struct buf text = much(*state, "description", &size);

	assert_in_range(text.length, 3000, 4096);
	buf_free(&text);
}

static void test_mattermost_limits(void **state)
{
	struct fixture *fixture = *state;
	size_t size;
	struct buf text = much(fixture, "text", &size);

	assert_in_range(text.length, 4500, 6000);
	assert_in_range(size, 4500, 7600);
	buf_free(&text);
}

static void test_mattermost_names(void **state)
{
	struct fixture *fixture = *state;
	struct announcement item = item_of("checkout", "p99");
	struct message message = {.key = "k", .items = &item, .count = 1};
	struct buf text;

	set_option(fixture, "channel", "perf");
	set_option(fixture, "username", "hunter");
	text = text_of(fixture, &message, "channel");
	assert_string_equal(text.data, "perf");
	buf_free(&text);
	text = text_of(fixture, &message, "username");
	assert_string_equal(text.data, "hunter");
	buf_free(&text);
}

static void test_card_limits(void **state)
{
	size_t size;
	struct buf text = much(*state, "text", &size);

	assert_in_range(size, 20000, 28 * 1024);
	buf_free(&text);
}

/* Plain runs, links as actions, none without text. */
static void test_card(void **state)
{
	struct fixture *fixture = *state;
	struct announcement item = item_of(hostile, "p99");
	struct message message = {.key = "k", .items = &item, .count = 1};
	json_t *document = render(fixture, &message), *card, *line, *runs;
	struct buf text = {0};

	card = json_object_get(
		json_array_get(json_object_get(document, "attachments"), 0), "content");
	assert_string_equal(json_string_value(json_object_get(card, "version")), "1.4");
	runs = json_object_get(json_array_get(json_object_get(card, "body"), 0), "inlines");
	line = json_array_get(runs, 0);
	assert_string_equal(json_string_value(json_object_get(line, "weight")), "Bolder");
	assert_non_null(strstr(json_string_value(json_object_get(line, "text")), hostile));
	assert_null(strstr(fixture->out.data, "\"text\":\"\""));
	assert_null(strstr(fixture->out.data, "\"TextBlock\""));
	assert_null(strstr(fixture->out.data, "canary"));
	collect(document, "url", &text);
	assert_string_equal(text.data, "https://git.example/a1...b2https://grafana.example/d/1");
	buf_free(&text);
	json_decref(document);
}

/* Of a change too long to be shown there is the title. */
static void test_nothing_fits(void **state)
{
	struct fixture *fixture = *state;
	struct announcement item = item_of("checkout", "p99");
	struct message message = {.key = "k", .items = &item, .count = 1};
	struct buf out = {0};

	(void)fixture;
	body_fit(&out, &message, &body_plain, 30);
	assert_string_equal(out.data, "1 regression in checkout\n");
	buf_clear(&out);
	body_fit(&out, &message, &body_html, 50);
	assert_string_equal(out.data, "<div style=\"margin-left:0em\">1 regression i</div>\n");
	buf_free(&out);
}

static void test_sentences(void **state)
{
	struct fixture *fixture = *state;
	const struct notice notice = {.subject = "prometheus", .text = "no answer", .time = START};
	struct message message = {.key = "k", .kind = MESSAGE_NOTICE, .notice = &notice};
	json_t *document = render(fixture, &message);

	assert_non_null(strstr(fixture->out.data, "prometheus"));
	assert_non_null(strstr(fixture->out.data, "no answer"));
	json_decref(document);
}

static void test_discord_request(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_string_equal(
		fixture->transfer.url, "https://discord.example/api/webhooks/1/canary?wait=true");
	assert_string_equal(fixture->transfer.method, "POST");
	set_option(fixture, "url", "https://discord.example/api/webhooks/1/canary?thread_id=7");
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_non_null(strstr(fixture->transfer.url, "canary?thread_id=7&wait=true"));
}

/* A webhook's address from a file, which is read each time. */
static void test_url_file(void **state)
{
	struct fixture *fixture = *state;
	char path[] = "/tmp/hunter-webhook-XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");

	fputs("https://flow.example/canary-2\n", file);
	fclose(file);
	assert_true(fixture->notifier->plugin.check(fixture->options, &fixture->error));
	set_option(fixture, "url_file", path);
	assert_false(fixture->notifier->plugin.check(fixture->options, &fixture->error));
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_non_null(strstr(fixture->transfer.url, "https://flow.example/canary-2"));
	remove(path);
	assert_int_equal(begin(fixture), STEP_FAILED);
	assert_int_equal(fixture->error.kind, ERROR_USAGE);
	assert_non_null(strstr(fixture->error.text, "url_file"));
}

static void expect(struct fixture *fixture, int status, const char *body, bool retry,
	enum error_kind kind, const char *words)
{
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, status, body), STEP_FAILED);
	assert_int_equal(fixture->attempt.retry, retry);
	assert_int_equal(fixture->error.kind, kind);
	assert_non_null(strstr(fixture->error.text, words));
	assert_null(strstr(fixture->error.text, "canary"));
}

static void test_discord_answers(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, "{\"id\":\"1\"}"), STEP_DONE);
	expect(fixture, 429, "{\"retry_after\": 64.57, \"global\": false}", true, ERROR_DATA,
		"discord: HTTP status 429");
	assert_int_equal(fixture->attempt.retry_after, 65000);
	expect(fixture, 429, "nonsense", true, ERROR_DATA, "429");
	assert_int_equal(fixture->attempt.retry_after, -1);
	expect(fixture, 429, "{\"retry_after\": 1e300}", true, ERROR_DATA, "429");
	assert_int_equal(fixture->attempt.retry_after, 86400000);
	expect(fixture, 400, "{\"code\":50035}", false, ERROR_DATA, "400");
	expect(fixture, 401, "{\"code\":50027}", false, ERROR_USAGE, "401");
	expect(fixture, 404, "{\"code\":10015}", false, ERROR_USAGE, "404");
	expect(fixture, 502, "", true, ERROR_DATA, "502");
}

static void test_mattermost_answers(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, "ok"), STEP_DONE);
	expect(fixture, 400, "{\"id\":\"web.incoming_webhook.invalid.app_error\"}", false,
		ERROR_USAGE, "mattermost: no such webhook");
	expect(fixture, 501, "{\"id\":\"web.incoming_webhook.disabled.app_error\"}", false,
		ERROR_USAGE, "allows no incoming webhooks");
	expect(fixture, 400, "{\"id\":\"web.incoming_webhook.parse.app_error\"}", false, ERROR_DATA,
		"400");
	expect(fixture, 403, "{\"id\":\"web.incoming_webhook.channel_locked.app_error\"}", false,
		ERROR_USAGE, "403");
	expect(fixture, 501, "not JSON", true, ERROR_DATA, "501");
}

/* After a lost answer nobody can be asked. */
static void test_msteams_answers(void **state)
{
	struct fixture *fixture = *state;
	const struct reply lost = {.kind = REPLY_AMBIGUOUS, .retry_after = -1, .problem = "reset"};

	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.url, "https://flow.example/invoke?sig=canary");
	assert_int_equal(answer(fixture, 202, ""), STEP_DONE);
	expect(fixture, 413, "", false, ERROR_DATA, "msteams: HTTP status 413");
	expect(fixture, 401, "", false, ERROR_USAGE, "401");
	expect(fixture, 400, "{\"error\":{\"code\":\"WorkflowTriggerIsNotEnabled\"}}", false,
		ERROR_USAGE, "disabled");
	expect(fixture, 400, "{\"error\":{\"code\":\"TriggerInputSchemaMismatch\"}}", false,
		ERROR_DATA, "400");
	expect(fixture, 429, "", true, ERROR_DATA, "429");
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(take(fixture, &lost), STEP_FAILED);
	assert_true(fixture->attempt.retry);
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_BLIND);
}

#define TALK(kind, test)                                                                           \
	{                                                                                          \
#kind " " #test, test, kind, teardown, NULL                                        \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TALK(discord, test_markdown),
		TALK(discord, test_discord_limits),
		TALK(discord, test_sentences),
		TALK(discord, test_url_file),
		TALK(discord, test_discord_request),
		TALK(discord, test_discord_answers),
		TALK(mattermost, test_markdown),
		TALK(mattermost, test_mattermost_limits),
		TALK(mattermost, test_mattermost_names),
		TALK(mattermost, test_sentences),
		TALK(mattermost, test_url_file),
		TALK(mattermost, test_mattermost_answers),
		TALK(msteams, test_card),
		TALK(msteams, test_card_limits),
		TALK(msteams, test_nothing_fits),
		TALK(msteams, test_sentences),
		TALK(msteams, test_url_file),
		TALK(msteams, test_msteams_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
