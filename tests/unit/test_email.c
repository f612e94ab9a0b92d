/* The notifier of mail: its headers, whatever the names; whom it is for; what it makes of answers.
 */
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/io/mail.h"
#include "delivery_talk.h"
#include "tests/unit/levels.h"

#define MADE INT64_C(1700000000000) /* 2023-11-14 22:13:20 */
#define PAYLOAD                                                                                    \
	"{\"event\":\"new\",\"subject\":\"1 regression\",\"text\":\"t\\n\",\"html\":\"<p>t\"}"
#define ID "<0a24d52c4c8d8de2c7f33e5ba0e5e1e5@example.com>"

static int setup(void **state)
{
	struct fixture *fixture = talk_new(&email_notifier, "", PAYLOAD);

	set_option(fixture, "url", "smtp://mail.example:587");
	set_option(fixture, "from", "Perf <perf@example.com>");
	set_option(fixture, "to", "ann@example.com");
	set_option(fixture, "to", "Bob <bob@example.com>");
	fixture->attempt.made = MADE;
	*state = fixture;
	return 0;
}

static const char *header(const struct fixture *fixture, const char *name)
{
	const struct pairs *headers = &fixture->transfer.mail->headers;

	for (size_t i = 0; i < headers->count; i++)
		if (strcmp(headers->items[i].key, name) == 0)
			return headers->items[i].value;
	return NULL;
}

static const char *subject(struct fixture *fixture, const char *text)
{
	struct buf payload = {0};

	buf_text(&payload, "{\"event\":\"new\",\"text\":\"\",\"html\":\"\",\"subject\":");
	buf_json_text(&payload, text);
	buf_char(&payload, '}');
	fixture->attempt.payload = buf_keep(&payload, fixture->arena);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	return header(fixture, "Subject");
}

static void test_headers(void **state)
{
	struct fixture *fixture = *state;
	const char *id;

	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(fixture->transfer.kind, TRANSFER_SMTP);
	assert_string_equal(fixture->transfer.mail->from, "perf@example.com");
	assert_int_equal(fixture->transfer.mail->to.count, 2);
	assert_string_equal(fixture->transfer.mail->to.items[1], "bob@example.com");
	assert_true(fixture->transfer.mail->starttls);
	assert_string_equal(header(fixture, "Date"), "Tue, 14 Nov 2023 22:13:20 +0000");
	assert_string_equal(header(fixture, "From"), "Perf <perf@example.com>");
	assert_string_equal(header(fixture, "To"), "ann@example.com, Bob <bob@example.com>");
	assert_string_equal(header(fixture, "Subject"), "1 regression");
	assert_null(header(fixture, "References"));
	assert_null(header(fixture, "Reply-To"));
	id = header(fixture, "Message-ID");
	assert_int_equal(strlen(id), strlen(ID));
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_string_equal(header(fixture, "Message-ID"), id);
	fixture->attempt.key = "k-2";
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_string_not_equal(header(fixture, "Message-ID"), id);
}

/* Also where the earlier message was not taken by all at once; nothing else becomes a header. */
static void test_threads(void **state)
{
	struct fixture *fixture = *state;
	const char *const others[] = {
		"", "1503.02 1", "<a\r\nBcc: eve@example.com>", "<a b@c>", "<", "x <a@b>"};

	fixture->attempt.thread = ID " bob@example.com";
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_string_equal(header(fixture, "In-Reply-To"), ID);
	assert_string_equal(header(fixture, "References"), ID);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		fixture->attempt.thread = others[i];
		assert_int_equal(begin(fixture), STEP_TRANSFER);
		assert_null(header(fixture, "References"));
	}
}

static void test_subjects(void **state)
{
	struct fixture *fixture = *state;

	assert_string_equal(subject(fixture, "p99 +20%"), "p99 +20%");
	assert_string_equal(subject(fixture, "a\r\nBcc: b"), "=?UTF-8?Q?a=0D=0ABcc=3A_b?=");
	assert_string_equal(
		subject(fixture, "=?UTF-8?Q?x?="), "=?UTF-8?Q?=3D=3FUTF=2D8=3FQ=3Fx=3F=3D?=");
	assert_string_equal(subject(fixture, "\xc3\xa4_b"), "=?UTF-8?Q?=C3=A4=5Fb?=");
	assert_string_equal(subject(fixture, ""), "");
	/* Words hold whole characters. */
	assert_string_equal(subject(fixture, "\xe5\x90\x8d\xe5\x90\x8d\xe5\x90\x8d\xe5\x90\x8d\xe5"
					     "\x90\x8d\xe5\x90\x8d"),
		"=?UTF-8?Q?=E5=90=8D=E5=90=8D=E5=90=8D=E5=90=8D=E5=90=8D?= =?UTF-8?Q?=E5=90=8D?=");
}

static void test_names(void **state)
{
	static const char *const names[][2] = {{"Bob <b@c.d>", "Bob <b@c.d>"},
		{"\"Bob, the builder\" <b@c.d>", "\"Bob, the builder\" <b@c.d>"},
		{"B\xc3\xb6"
		 "b <b@c.d>",
			"=?UTF-8?Q?B=C3=B6b?= <b@c.d>"},
		{"a \"b\" <b@c.d>", "=?UTF-8?Q?a_=22b=22?= <b@c.d>"}, {"<b@c.d>", "b@c.d"},
		{" b@c.d ", "b@c.d"}};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		set_option(fixture, "from", names[i][0]);
		assert_true(email_notifier.plugin.check(fixture->options, &fixture->error));
		assert_int_equal(begin(fixture), STEP_TRANSFER);
		assert_string_equal(header(fixture, "From"), names[i][1]);
		assert_string_equal(fixture->transfer.mail->from, "b@c.d");
	}
}

static void test_addresses_that_are_none(void **state)
{
	static const char *const none[] = {"", "b", "@c.d", "b@", "b c@d", "b@c d", "b@c>", "<b@c",
		"b@c.d, e@f.g", "b@c.d\r\nDATA", "\xc3\xb6@c.d", "b@\xc3\xb6.d", "B <b@c.d> x",
		"B <b@c.d>>"};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		set_option(fixture, "from", none[i]);
		assert_false(email_notifier.plugin.check(fixture->options, &fixture->error));
		assert_int_equal(fixture->error.kind, ERROR_USAGE);
	}
}

static void test_tls(void **state)
{
	struct fixture *fixture = *state;

	set_option(fixture, "url", "smtp://localhost");
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_false(fixture->transfer.mail->starttls);
	set_option(fixture, "tls", "required");
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_true(fixture->transfer.mail->starttls);
	set_option(fixture, "url", "smtp://mail.example");
	set_option(fixture, "tls", "none");
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_false(fixture->transfer.mail->starttls);
}

static enum step reply(struct fixture *fixture, enum mail_stage stage, int status,
	const struct mail_refusal *refusals, size_t count)
{
	const struct reply reply = {.kind = REPLY_ANSWER,
		.status = status,
		.stage = stage,
		.body = "words",
		.refusals = refusals,
		.refusal_count = count};

	assert_int_equal(begin(fixture), STEP_TRANSFER);
	return take(fixture, &reply);
}

/* The receipt is the Message-ID, and those who were put off are all that the next mail is for. */
static void test_put_off(void **state)
{
	struct fixture *fixture = *state;
	const struct mail_refusal later = {1, 450, "later"}, never = {0, 550, "never"};
	const char *id;

	assert_int_equal(reply(fixture, MAIL_CONTENT, 250, &later, 1), STEP_DONE);
	assert_true(fixture->attempt.more);
	assert_non_null(strstr(fixture->attempt.receipt, "> bob@example.com"));
	assert_null(fixture->attempt.notice);
	assert_int_equal(reply(fixture, MAIL_RECIPIENTS, 450, &later, 1), STEP_FAILED);
	assert_true(fixture->attempt.retry);
	assert_int_equal(fixture->transfer.mail->to.count, 1);
	assert_string_equal(fixture->transfer.mail->to.items[0], "bob@example.com");
	id = header(fixture, "Message-ID");
	assert_int_equal(reply(fixture, MAIL_RECIPIENTS, 550, &never, 1), STEP_DONE);
	assert_false(fixture->attempt.more);
	assert_string_equal(fixture->attempt.receipt, id);
	assert_string_equal(
		fixture->attempt.notice, "email: bob@example.com was refused (550 never)");
	/* Somebody who is no longer in `to` is not waited for. */
	fixture->attempt.receipt = ID " eve@example.com";
	assert_int_equal(begin(fixture), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, ID);
}

static void test_refusals(void **state)
{
	static const struct {
		enum mail_stage stage;
		int status;
		bool retry;
		enum error_kind kind;
	} cases[] = {{MAIL_GREETING, 421, true, ERROR_DATA}, {MAIL_LOGIN, 454, true, ERROR_DATA},
		{MAIL_LOGIN, 535, false, ERROR_USAGE}, {MAIL_SENDER, 550, false, ERROR_USAGE},
		{MAIL_RECIPIENTS, 550, false, ERROR_USAGE}, {MAIL_CONTENT, 451, true, ERROR_DATA},
		{MAIL_CONTENT, 554, false, ERROR_DATA}};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(
			reply(fixture, cases[i].stage, cases[i].status, NULL, 0), STEP_FAILED);
		assert_int_equal(fixture->attempt.retry, cases[i].retry);
		assert_int_equal(fixture->error.kind, cases[i].kind);
		assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_NO);
		assert_null(fixture->attempt.receipt);
	}
}

static void test_doubt(void **state)
{
	struct fixture *fixture = *state;
	struct reply last = {.kind = REPLY_AMBIGUOUS, .problem = "cut off"};

	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(take(fixture, &last), STEP_FAILED);
	assert_true(fixture->attempt.retry);
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_BLIND);
	last = (struct reply){.kind = REPLY_UNREACHABLE, .stage = MAIL_TLS, .problem = "no TLS"};
	assert_int_equal(take(fixture, &last), STEP_FAILED);
	assert_false(fixture->attempt.retry);
	assert_int_equal(fixture->error.kind, ERROR_USAGE);
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_NO);
}

/* What was rendered is what is sent, and no name is markup or a second line of the subject. */
static void test_render(void **state)
{
	struct fixture *fixture = *state;
	struct announcement item = {.test = "<b>\nBcc: eve@example.com",
		.metric = "p99\x1b\"'&",
		.direction = -1,
		.time = MADE,
		.change = {LEVELS(100, 120)},
		.runbook = "https://wiki.example/?a=1&b=%22"};
	struct message message = {.key = "k", .items = &item, .count = 1};
	const struct mail *mail;

	set_option(fixture, "subject_prefix", "[perf]");
	assert_true(notifier_render(
		&email_notifier, &message, fixture->options, "", &fixture->out, &fixture->error));
	fixture->attempt.payload = fixture->out.data;
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	mail = fixture->transfer.mail;
	assert_string_equal(
		header(fixture, "Subject"), "[perf] 1 regression in <b> Bcc: eve@example.com");
	assert_non_null(strstr(mail->text, "  <b> Bcc: eve@example.com\n"));
	assert_non_null(strstr(mail->text, "runbook: https://wiki.example/?a=1&b=%22\n"));
	assert_non_null(strstr(mail->html, "&lt;b&gt; Bcc: eve@example.com"));
	assert_non_null(strstr(mail->html, "p99 &quot;&#39;&amp;"));
	assert_non_null(strstr(mail->html, "href=\"https://wiki.example/?a=1&amp;b=%22\""));
	assert_null(strstr(mail->html, "<b>"));
}

static void test_long_messages(void **state)
{
	enum { MANY = 5000 };
	struct fixture *fixture = *state;
	struct announcement *items = calloc(MANY, sizeof *items);
	struct message message = {.key = "k", .items = items, .count = MANY};

	for (size_t i = 0; i < MANY; i++)
		items[i] = (struct announcement){.test = arena_printf(fixture->arena, "%0200zu", i),
			.metric = "p99",
			.direction = -1,
			.time = MADE + (int64_t)i,
			.change = {LEVELS(100, 120)}};
	assert_true(notifier_render(
		&email_notifier, &message, fixture->options, "", &fixture->out, &fixture->error));
	fixture->attempt.payload = fixture->out.data;
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_in_range(strlen(fixture->transfer.mail->html), 30000, 101000);
	assert_in_range(strlen(fixture->transfer.mail->text), 30000, 101000);
	assert_in_range(strlen(header(fixture, "Subject")), 20, 300);
	assert_non_null(strstr(fixture->transfer.mail->text, "are left out"));
	free(items);
}

static void test_folding(void **state)
{
	struct fixture *fixture = *state;
	struct arena *arena = fixture->arena;
	char word[201], long_line[300];

	assert_string_equal(mail_fold(arena, "To", "a b"), "To: a b");
	assert_string_equal(mail_fold(arena, "To", ""), "To: ");
	assert_string_equal(mail_fold(arena, "To", " a: b  c "), "To:  a: b  c ");
	assert_string_equal(mail_fold(arena, "Subject",
				    "0123456789 0123456789 0123456789 0123456789 0123456789 "
				    "0123456789 0123456789"),
		"Subject: 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789\r\n"
		" 0123456789");
	memset(word, 'x', 200);
	word[200] = '\0';
	snprintf(long_line, sizeof long_line, "S: a\r\n %s\r\n b", word);
	assert_string_equal(mail_fold(arena, "S", arena_printf(arena, "a %s b", word)), long_line);
	snprintf(long_line, sizeof long_line, "S: %s", word);
	assert_string_equal(mail_fold(arena, "S", word), long_line);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_headers),
		TEST(test_threads),
		TEST(test_subjects),
		TEST(test_names),
		TEST(test_addresses_that_are_none),
		TEST(test_tls),
		TEST(test_put_off),
		TEST(test_refusals),
		TEST(test_doubt),
		TEST(test_render),
		TEST(test_long_messages),
		TEST(test_folding),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
