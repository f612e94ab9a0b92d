/*
 * Mail: whatever the sender, the names of test and metric, and the receipts are, headers are ASCII
 * without control characters, and what the notifier makes of an answer is said. The fields of the
 * input, each ended by a 0x1e, are sender, test, metric, the receipt of the thread and that of the
 * mail; the last two bytes are the status and the stage of an answer.
 */
#include <stdlib.h>
#include <string.h>

#include "notifiers/notifier.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
	if (!condition)
		abort();
}

/* The bytes up to a 0x1e, without NUL. */
static const char *field(struct arena *arena, const uint8_t **data, size_t *left)
{
	const uint8_t *end = memchr(*data, 0x1e, *left);
	size_t length = end ? (size_t)(end - *data) : *left;
	char *text = arena_strndup(arena, (const char *)*data, length);

	*data += length + (end != NULL);
	*left -= length + (end != NULL);
	return text;
}

static void set_option(struct arena *arena, void *options, const char *name, const char *value)
{
	struct error error;
	const struct field *found = field_find(email_notifier.plugin.fields, name);

	found = found ? found : field_find(endpoint_fields, name);
	check(field_parse(found, options, value, arena, &error));
}

static void check_mail(const struct transfer *transfer)
{
	const struct mail *mail = transfer->mail;

	check(transfer->kind == TRANSFER_SMTP && mail->to.count > 0);
	check(!strpbrk(mail->from, "<> \r\n"));
	for (size_t i = 0; i < mail->headers.count; i++)
		for (const char *at = mail->headers.items[i].value; *at; at++)
			check(*at >= ' ' && *at < 0x7f);
	check(!strstr(mail->html, "<script") && !strchr(mail->text, 0x1b));
}

static void play(struct attempt *attempt, int status, enum mail_stage stage)
{
	const struct mail_refusal refusal = {.status = 450 + status % 200, .words = "w"};
	const struct reply reply = {.kind = REPLY_ANSWER,
		.status = status,
		.stage = stage,
		.body = "words",
		.refusals = &refusal,
		.refusal_count = status % 2 ? 1 : 0};
	struct transfer transfer = {0};
	struct error error = {0};
	enum step step = notifier_step(&email_notifier, attempt, NULL, &transfer, &error);

	if (step == STEP_TRANSFER) {
		check_mail(&transfer);
		step = notifier_step(&email_notifier, attempt, &reply, &transfer, &error);
	}
	check(step != STEP_TRANSFER);
	if (step == STEP_FAILED)
		check(error.kind != ERROR_NONE && *error.text);
	else
		check(attempt->receipt && attempt->receipt[0] == '<');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	void *options = arena_alloc(arena, email_notifier.plugin.options_size);
	struct announcement item = {
		.direction = -1, .change = {.level_before = 1, .level_after = 2, .size = 100}};
	struct message message = {.key = "k", .items = &item, .count = 1};
	struct attempt attempt = {.arena = arena, .options = options, .key = "k"};
	struct buf payload = {0};
	struct error error;

	field_defaults(endpoint_fields, options);
	field_defaults(email_notifier.plugin.fields, options);
	set_option(arena, options, "url", "smtp://mail.example");
	set_option(arena, options, "to", "ann@example.com");
	set_option(arena, options, "from", field(arena, &data, &size));
	item.test = field(arena, &data, &size);
	item.metric = field(arena, &data, &size);
	attempt.thread = field(arena, &data, &size);
	attempt.receipt = field(arena, &data, &size);
	if (email_notifier.plugin.check(options, &error)) {
		check(notifier_render(&email_notifier, &message, options, "", &payload, &error));
		attempt.payload = payload.data;
		play(&attempt, size > 0 ? 200 + 2 * data[0] : 250,
			size > 1 ? data[1] % (MAIL_CONTENT + 1) : MAIL_CONTENT);
	}
	buf_free(&payload);
	arena_free(arena);
	return 0;
}
