/*
 * A webhook: POSTs each message as a JSON document, for programs.
 *
 * docs/reference/webhook.schema.json defines the document; members are never removed, new ones are
 * optional, and anything else would be another `version`. The header Idempotency-Key identifies the
 * message, so that a receiver can drop duplicates; hence an attempt with an unclear result is
 * simply retried.
 *
 * With a secret, X-Hunter-Signature is the HMAC-SHA256 of the time stamp, a full stop and the body.
 * The address may contain a secret, so error messages do not show it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/secret.h"
#include "agent/base/sha256.h"
#include "agent/model/json_put.h"
#include "agent/model/record_json.h"
#include "notifiers/http_json.h"
#include "notifiers/text.h"

enum { VERSION = 1, ITEMS_MAX = 1000, NAME_MOST = 1000 };

struct webhook_options {
	struct endpoint endpoint;
	const char *secret, *secret_file;
};

static const struct field webhook_fields[] = {
	OPTION_SECRET(struct webhook_options, secret,
		"key of the signature in X-Hunter-Signature; default: unsigned"),
	OPTION_STRING(
		struct webhook_options, secret_file, NULL, "file with the key, read at each use"),
	{0},
};

static bool check(const void *context, struct error *error)
{
	const struct webhook_options *options = context;

	return http_json_check_webhook(&options->endpoint, error);
}

static void text_member(struct buf *out, const char *name, const char *text)
{
	json_put_clean(out, name, text, NAME_MOST);
}

static void render_item(struct buf *out, const struct announcement *item)
{
	const struct change *change = &item->change;
	struct announcement found = *item;

	found.members = item->members > 0 ? item->members : 1;
	if (change->kind != CHANGE_TREND)
		found.slope = (double)NAN;
	json_next(out);
	buf_char(out, '{');
	json_put(out, "id: %jd, incident: %jd id", item->id, item->incident);
	text_member(out, "test", item->test);
	json_put(out, "time: %jd time", item->time);
	text_member(out, "verdict", change_verdict_name(announcement_verdict(item)));
	json_put(out, "before: %g, after: %g, percent: %g", change->mean_before, change->mean_after,
		change->mean_before != 0 ? change_percent(change) : (double)NAN);
	announcement_put_attributes(out, item);
	text_member(out, "commit_url", item->commit_url);
	text_member(out, "compare_url", item->compare_url);
	text_member(out, "page", item->page);
	text_member(out, "dashboard", item->dashboard);
	text_member(out, "runbook", item->runbook);
	text_member(out, "owner", item->owner);
	if (item->status)
		text_member(out, "status", item->status);
	record_put_found(out, &found);
	announcement_put_suspects(out, &item->suspects, item->time);
	announcement_put_culprit(out, item);
	announcement_put_basis(out, item);
	json_put(out, "accepted_size: %g, recovered: %jd moment, recovered_level: %g}",
		item->accepted != 0 ? item->accepted : (double)NAN, item->over.time,
		item->over.time != 0 ? item->over.level : (double)NAN);
}

/* The worst of the message's changes. */
static void render_list(struct buf *out, const struct message *message)
{
	size_t count;
	const struct announcement **items = message_select(message, ITEMS_MAX, &count);

	json_put(out, "left_out: %zu, changes: [", message->count - count);
	for (size_t i = 0; i < count; i++)
		render_item(out, items[i]);
	buf_char(out, ']');
	free(items);
}

static void render_changes(struct buf *out, const struct message *message)
{
	struct tally tally = message_tally(message);
	struct buf summary = {0};

	if (message->summary) {
		text_summary(&summary, message, &text_plain);
		buf_text(&summary, "; ");
	}
	if (message->kind == MESSAGE_RECOVERED) {
		text_recoveries(&summary, message);
	} else if (message->environment) {
		text_environment(&summary, message->environment, &text_plain);
		buf_text(&summary, ", ");
		text_elsewhere(&summary, message->environment);
		text_early(&summary, message);
	} else
		text_tally(&summary, &tally);
	text_member(out, "continues", message->thread);
	text_member(out, "summary", summary.data);
	text_member(out, "silence", message->summary);
	environment_put_json(out, message->environment);
	json_put(out, "counts: {changes: %zu, tests: %zu, regressions: %zu, improvements: %zu}",
		tally.changes, tally.tests, tally.regressions, tally.improvements);
	render_list(out, message);
	buf_free(&summary);
}

static void render_sections(struct buf *out, const struct message *message)
{
	json_key(out, "sections");
	buf_char(out, '[');
	for (size_t i = 0; i < message->section_count; i++) {
		const struct digest_section *section = &message->sections[i];

		json_put(out, "{title: %s, lines: %p, more: %zu}", section->title, &section->lines,
			section->more);
	}
	buf_char(out, ']');
}

static bool render(const struct draft *draft)
{
	struct buf *out = draft->payload;
	const struct message *message = draft->message;
	static const char *const kinds[MESSAGE_KINDS] = {[MESSAGE_NEW] = "changes",
		[MESSAGE_UPDATED] = "changes",
		[MESSAGE_RECOVERED] = "recovered",
		[MESSAGE_WITHDRAWN] = "withdrawn",
		[MESSAGE_TRIAGED] = "triaged",
		[MESSAGE_REMINDER] = "reminder",
		[MESSAGE_DIGEST] = "digest",
		[MESSAGE_NOTICE] = "notice",
		[MESSAGE_HEARTBEAT] = "notice",
		[MESSAGE_TEST] = "test"};

	json_put(out, "{version: %d, kind: %s", VERSION,
		message->notice && message->kind == MESSAGE_UPDATED ? "updated"
								    : kinds[message->kind]);
	text_member(out, "key", message->key);
	if (message->notice) {
		text_member(out, "summary", message->notice->text);
		text_member(out, "subject", message->notice->subject);
		json_put(out, "since: %jd time, ended: %jd moment, recovered: %d bool",
			message->notice->time, message->notice->ended, message->notice->recovered);
	}
	if (message->notice && message->count > 0) {
		text_member(out, "continues", message->thread);
		render_list(out, message);
	}
	if (!message->notice)
		render_changes(out, message);
	if (message->kind == MESSAGE_DIGEST)
		render_sections(out, message);
	buf_char(out, '}');
	return true;
}

static const char *sign(
	struct arena *arena, const char *secret, const char *stamp, const char *body)
{
	unsigned char sum[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	const char *text = arena_printf(arena, "%s.%s", stamp, body);

	sha256_hmac(secret, secret_length(secret), text, strlen(text), sum);
	sha256_hex(sum, hex);
	return arena_printf(arena, "sha256=%s", hex);
}

static bool post(struct attempt *attempt)
{
	const struct webhook_options *options = attempt->options;
	const char *secret = options->secret;
	const char *stamp = arena_printf(attempt->arena, "%lld", (long long)(attempt->now / 1000));
	struct pair headers[3] = {{"Idempotency-Key", attempt->key}};
	size_t count = 1;

	if (options->secret_file && !secret_read(attempt->arena, "secret_file",
					    options->secret_file, &secret, attempt->error))
		return false;
	if (secret) {
		headers[count++] = (struct pair){"X-Hunter-Timestamp", stamp};
		headers[count++] = (struct pair){"X-Hunter-Signature",
			sign(attempt->arena, secret, stamp, attempt->payload)};
	}
	*attempt->next = http_json_request(attempt, &options->endpoint, "POST",
		options->endpoint.url, attempt->payload, (struct pairs){headers, count});
	return true;
}

static const struct http_json shape = {.request = post};

const struct notifier webhook_notifier = {
	.plugin = {.name = "webhook",
		.summary = "post JSON to an address, for programs",
		.fields = webhook_fields,
		.options_size = sizeof(struct webhook_options),
		.endpoint = true,
		.check = check},
	.events = MESSAGES_ALL,
	.defaults = MESSAGES_OF_CHANGES | 1u << MESSAGE_RECOVERED | 1u << MESSAGE_NOTICE |
		    1u << MESSAGE_HEARTBEAT,
	.brief = true,
	.render = render,
	.step = http_json_step,
	.shape = &shape,
};
