/*
 * Mail, by SMTP: each message is one mail to all addresses of `to`, as text and HTML.
 *
 * The Message-ID follows from the delivery's key, so an attempt that is repeated sends the same
 * mail, which most servers and readers show once; and it is the receipt, to which later messages
 * of the thread refer. While a server has put off some of several recipients, the receipt lists
 * them after the Message-ID, and the next attempts are for them alone.
 *
 * What is written into headers is ASCII without control characters: texts from outside are cleaned
 * and, where they are not plain, encoded (RFC 2047).
 */
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "agent/base/sha256.h"
#include "agent/base/utf8.h"
#include "notifiers/body.h"
#include "notifiers/http_json.h"

/* SUBJECT: characters, with the prefix. BODY: bytes of each of both; from 102 KB on Gmail cuts. */
enum {
	TITLE = 100,
	SUBJECT = 98,
	PREFIX = 40,
	BODY = 100000,
	LINES = 1000,
	ADDRESS = 254,
	NAME = 200
};

/* ENCODED: of an encoded word, so that one fits into a line with the header's name. ID: hexadecimal
 * digits. */
enum { ENCODED = 60, ID = 32 };

enum tls { TLS_AUTO, TLS_REQUIRED, TLS_NONE };

struct email_options {
	struct endpoint endpoint;
	const char *from, *subject_prefix, *reply_to;
	struct strings to;
	int tls;
	int picture;
};

static const char *const tls_choices[] = {"auto", "required", "none", NULL};

enum mail_picture { MAIL_PNG, MAIL_NO_PICTURE };

static const char *const picture_choices[] = {"png", "none", NULL};

static const struct field email_fields[] = {
	OPTION_STRING(struct email_options, from, NULL,
		"sender, like perf@example.com or Perf <perf@example.com>"),
	OPTION_LIST(struct email_options, to, "recipients; each message is one mail to all"),
	OPTION_STRING(struct email_options, reply_to, NULL, "reply address, if not the sender"),
	OPTION_STRING(
		struct email_options, subject_prefix, NULL, "prefix of subjects, such as [perf]"),
	OPTION_CHOICE(struct email_options, tls, "auto", tls_choices,
		"TLS on smtp:// by STARTTLS: auto requires it unless the server is this machine"),
	OPTION_CHOICE(struct email_options, picture, "png", picture_choices,
		"picture of the worst change: png or none"),
	{0},
};

/* "Perf <perf@example.com>": the name may be empty. */
struct address {
	const char *name, *bare;
};

static const char *trimmed(struct arena *arena, const char *text, size_t length)
{
	while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		length--;
	while (length > 0 && (*text == ' ' || *text == '\t'))
		text++, length--;
	if (length > 1 && *text == '"' && text[length - 1] == '"')
		text++, length -= 2;
	return arena_strndup(arena, text, length);
}

static struct address address_read(struct arena *arena, const char *text)
{
	const char *open = strrchr(text, '<');
	size_t length = strlen(text);
	bool named = open && text[length - 1] == '>';

	if (!named)
		return (struct address){"", trimmed(arena, text, length)};
	return (struct address){trimmed(arena, text, (size_t)(open - text)),
		arena_strndup(arena, open + 1, length - (size_t)(open - text) - 2)};
}

/* An unquoted local part and a domain, in ASCII. */
static bool is_address(const char *text)
{
	const char *at = strrchr(text, '@');

	if (!at || at == text || strlen(text) > ADDRESS || !at[1])
		return false;
	for (const char *c = text; *c; c++)
		if (c != at && !isalnum((unsigned char)*c) &&
			!strchr(c < at ? ".!#$%&'*+-/=?^_`{|}~" : ".-[]:", *c))
			return false;
	return true;
}

static bool check_address(const char *option, const char *text, struct error *error)
{
	struct arena *arena = arena_new();
	bool good = is_address(address_read(arena, text).bare);

	arena_free(arena);
	return good || error_set(error, ERROR_USAGE,
			       "%s: \"%s\" is not an address like perf@example.com or Perf "
			       "<perf@example.com>",
			       option, text);
}

/* Refuses headers that every mail has; a Bcc would be visible to all. */
static bool check_headers(const struct pairs *headers, struct error *error)
{
	static const char *const own[] = {"Date", "From", "Sender", "To", "Cc", "Bcc", "Reply-To",
		"Subject", "Message-ID", "In-Reply-To", "References", "List-Id", "MIME-Version",
		"Content-Type", "Content-Transfer-Encoding", "Auto-Submitted"};

	for (size_t i = 0; i < headers->count; i++)
		for (size_t j = 0; j < sizeof own / sizeof *own; j++)
			if (strcasecmp(headers->items[i].key, own[j]) == 0)
				return error_set(error, ERROR_USAGE,
					"headers: %s cannot be set here", own[j]);
	return true;
}

static bool check(const void *context, struct error *error)
{
	const struct email_options *options = context;
	const char *url = options->endpoint.url;

	if (!url || !*url)
		return error_set(error, ERROR_USAGE, "\"url\" is missing");
	if (transfer_mail_url_problem(url))
		return error_set(error, ERROR_USAGE, "url: %s", transfer_mail_url_problem(url));
	if (strncasecmp(url, "smtps://", 8) == 0 && options->tls == TLS_NONE)
		return error_set(error, ERROR_USAGE, "tls: none contradicts smtps:// in url");
	if (!check_headers(&options->endpoint.headers, error))
		return false;
	if (!options->from)
		return error_set(error, ERROR_USAGE, "\"from\" is missing");
	if (options->to.count == 0)
		return error_set(error, ERROR_USAGE, "\"to\" is missing");
	if (options->subject_prefix && strlen(options->subject_prefix) > PREFIX)
		return error_set(error, ERROR_USAGE,
			"subject_prefix: it is longer than %d characters", PREFIX);
	for (size_t i = 0; i < options->to.count; i++)
		if (!check_address("to", options->to.items[i], error))
			return false;
	return check_address("from", options->from, error) &&
	       (!options->reply_to || check_address("reply_to", options->reply_to, error));
}

/* The stored payload: {"event": "new", "subject": ..., "text": ..., "html": ...}. The subject is
 * the title after the prefix. */
static bool render(const struct draft *draft)
{
	const struct email_options *options = draft->options;
	const struct message *message = draft->message;
	struct buf *out = draft->payload;
	struct buf title = {0}, subject = {0}, text = {0}, html = {0};

	if (options->subject_prefix && *options->subject_prefix)
		buf_printf(&title, "%s ", options->subject_prefix);
	body_title(&title, message);
	buf_clean(&subject, title.data ? title.data : "", SUBJECT);
	body_fit(&text, message, &body_plain, BODY);
	buf_text(&html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
			"<meta name=\"color-scheme\" content=\"light dark\">\n"
			"<meta name=\"supported-color-schemes\" content=\"light dark\">\n"
			"<style>:root { color-scheme: light dark }</style>\n<title>");
	buf_markup(&html, subject.data, subject.length);
	buf_text(&html, "</title>\n</head>\n"
			"<body style=\"font-family: sans-serif; line-height: 1.4\">\n");
	body_fit(&html, message, &body_html, BODY);
	buf_text(&html, "</body>\n</html>\n");
	buf_printf(out, "{\"event\":\"%s\"", message_kind_names[message->kind]);
	http_json_whole(out, "subject", &subject);
	http_json_whole(out, "text", &text);
	http_json_whole(out, "html", &html);
	buf_char(out, '}');
	buf_free(&title);
	return true;
}

/* Whether a header can hold the text unencoded; "=?" would start an encoded word. */
static bool is_plain(const char *text)
{
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < ' ' || (unsigned char)*at >= 0x7f)
			return false;
	return !strstr(text, "=?");
}

/* Encoded words, each of whole characters. */
static const char *encoded(struct arena *arena, const char *text)
{
	static const char head[] = "=?UTF-8?Q?", tail[] = "?=";
	size_t left = strlen(text), used = 0;
	struct buf out = {0};

	while (left > 0) {
		size_t length = utf8_length(text, left), width;
		bool kept = *text == ' ' || (length == 1 && isalnum((unsigned char)*text));

		length = length == 0 ? 1 : length;
		width = kept ? 1 : 3 * length;
		if (used == 0 || used + width + sizeof tail - 1 > ENCODED) {
			buf_printf(&out, "%s%s", used == 0 ? "" : "?= ", head);
			used = sizeof head - 1;
		}
		used += width;
		if (kept)
			buf_char(&out, *text == ' ' ? '_' : *text);
		for (size_t i = 0; i < length && !kept; i++)
			buf_printf(&out, "=%02X", (unsigned)(unsigned char)text[i]);
		text += length;
		left -= length;
	}
	if (used > 0)
		buf_text(&out, tail);
	return buf_keep(&out, arena);
}

/* "Perf <perf@example.com>", the name quoted or encoded where it needs to be. */
static const char *mailbox(struct arena *arena, const char *text)
{
	struct address address = address_read(arena, text);
	struct buf out = {0}, name = {0};
	bool plain;

	if (!*address.name)
		return address.bare;
	buf_clean(&name, address.name, NAME);
	plain = is_plain(name.data);
	for (const char *at = name.data; *at && plain; at++)
		plain = isalnum((unsigned char)*at) || strchr(" -_", *at);
	if (plain)
		buf_text(&out, name.data);
	else if (is_plain(name.data) && !strpbrk(name.data, "\"\\"))
		buf_printf(&out, "\"%s\"", name.data);
	else
		buf_text(&out, encoded(arena, name.data));
	buf_printf(&out, " <%s>", address.bare);
	buf_free(&name);
	return buf_keep(&out, arena);
}

static const char *mailboxes(struct arena *arena, const struct strings *list)
{
	struct buf out = {0};

	for (size_t i = 0; i < list->count; i++)
		buf_printf(&out, "%s%s", i > 0 ? ", " : "", mailbox(arena, list->items[i]));
	return buf_keep(&out, arena);
}

/* "Mon, 23 Nov 2026 05:58:18 +0000": the program has no locale but C. */
static const char *date(struct arena *arena, int64_t time)
{
	time_t seconds = (time_t)(time / 1000);
	struct tm tm = {0};
	char text[64];

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S +0000", &tm);
	return arena_strdup(arena, text);
}

static const char *domain_of(struct arena *arena, const char *address)
{
	return strrchr(address_read(arena, address).bare, '@') + 1;
}

static const char *message_id(
	struct arena *arena, const struct email_options *options, const char *key)
{
	unsigned char sum[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	sha256(key, strlen(key), sum);
	sha256_hex(sum, hex);
	return arena_printf(arena, "<%.*s@%s>", ID, hex, domain_of(arena, options->from));
}

/* The Message-ID of a receipt; the rest of it cannot be one. */
static const char *id_of(struct arena *arena, const char *receipt)
{
	const char *end = receipt && *receipt == '<' ? strchr(receipt, '>') : NULL;
	const char *id = end ? arena_strndup(arena, receipt, (size_t)(end + 1 - receipt)) : NULL;

	return id && is_plain(id) && !strchr(id, ' ') ? id : NULL;
}

static struct pairs headers_of(
	const struct attempt *attempt, const char *event, const char *subject)
{
	const struct email_options *options = attempt->options;
	struct arena *arena = attempt->arena;
	const char *id = id_of(arena, attempt->receipt), *thread = id_of(arena, attempt->thread);
	const struct pair all[] = {{"Date", date(arena, attempt->made)},
		{"From", mailbox(arena, options->from)}, {"To", mailboxes(arena, &options->to)},
		{"Reply-To", options->reply_to ? mailbox(arena, options->reply_to) : NULL},
		{"Subject", is_plain(subject) ? subject : encoded(arena, subject)},
		{"Message-ID", id ? id : message_id(arena, options, attempt->key)},
		{"In-Reply-To", thread}, {"References", thread},
		{"Auto-Submitted", "auto-generated"}, {"X-Auto-Response-Suppress", "All"},
		{"List-Id", arena_printf(arena, "hunter-c <hunter-c.%s>",
				    domain_of(arena, options->from))},
		{"X-Hunter-Event", event}};
	struct pair *headers = arena_array(arena, sizeof all / sizeof *all, sizeof *headers);
	size_t count = 0;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].value)
			headers[count++] = all[i];
	return (struct pairs){headers, count};
}

/* All, or those that the receipt lists as put off. */
static struct strings recipients(const struct attempt *attempt)
{
	const struct email_options *options = attempt->options;
	const char **items = arena_array(attempt->arena, options->to.count, sizeof *items);
	const char *due = attempt->receipt ? strchr(attempt->receipt, ' ') : NULL;
	size_t count = 0;

	for (size_t i = 0; i < options->to.count; i++) {
		const char *bare = address_read(attempt->arena, options->to.items[i]).bare;

		if (!due || strstr(arena_printf(attempt->arena, "%s ", due),
				    arena_printf(attempt->arena, " %s ", bare)))
			items[count++] = bare;
	}
	return (struct strings){items, count};
}

static enum step finished(struct attempt *attempt)
{
	const struct email_options *options = attempt->options;
	const char *id = id_of(attempt->arena, attempt->receipt);

	attempt->receipt = id ? id : message_id(attempt->arena, options, attempt->key);
	return STEP_DONE;
}

static bool pictures(const void *context)
{
	const struct email_options *options = context;

	return options->picture == MAIL_PNG;
}

/* The page with the picture at its end. */
static const char *illustrated(
	struct arena *arena, const char *html, const char *id, const struct illustration *picture)
{
	const char *end = strstr(html, "</body>");
	size_t length = end ? (size_t)(end - html) : strlen(html);
	struct buf out = {0}, title = {0};

	buf_clean(&title, picture->title ? picture->title : "", TITLE);
	buf_append(&out, html, length);
	buf_printf(&out, "<p><img src=\"cid:%s\" width=\"%u\" height=\"%u\" alt=\"", id,
		picture->width, picture->height);
	body_html.escape(&out, title.data ? title.data : "", title.length);
	buf_printf(&out, "\"></p>\n%s", html + length);
	buf_free(&title);
	return buf_keep(&out, arena);
}

/* Adds a picture to messages about new changes; a mail is sent without it on failure. */
static void illustrate(struct attempt *attempt, const char *event, struct mail *mail)
{
	const struct email_options *options = attempt->options;
	struct illustration picture;
	struct error error;

	if (!attempt->draw || (strcmp(event, message_kind_names[MESSAGE_NEW]) != 0 &&
				      strcmp(event, message_kind_names[MESSAGE_UPDATED]) != 0))
		return;
	if (!attempt->draw(attempt, &picture, &error)) {
		attempt->notice = arena_printf(
			attempt->arena, "email: mails have no pictures: %s", error.text);
		return;
	}
	mail->picture = picture.bytes;
	mail->picture_length = picture.length;
	mail->picture_id = arena_printf(attempt->arena, "picture.%s@%s", attempt->key,
		domain_of(attempt->arena, options->from));
	mail->html = illustrated(attempt->arena, mail->html, mail->picture_id, &picture);
}

static enum step send(struct attempt *attempt)
{
	const struct email_options *options = attempt->options;
	const char *url = options->endpoint.url;
	struct arena *arena = attempt->arena;
	json_t *payload = json_loads(attempt->payload, 0, NULL);
	const char *event = json_keep(arena, payload, "event");
	const char *subject = json_keep(arena, payload, "subject");
	struct mail *mail = arena_alloc(arena, sizeof *mail);

	*mail = (struct mail){.from = address_read(arena, options->from).bare,
		.to = recipients(attempt),
		.text = json_keep(arena, payload, "text"),
		.html = json_keep(arena, payload, "html"),
		.starttls = options->tls == TLS_REQUIRED ||
			    (options->tls == TLS_AUTO && !transfer_url_is_local(url))};
	json_decref(payload);
	if (!event || !subject || !mail->text || !mail->html)
		return notifier_fail(attempt, false, ERROR_DATA, "the stored message is damaged");
	mail->headers = headers_of(attempt, event, subject);
	illustrate(attempt, event, mail);
	attempt->state = mail;
	if (mail->to.count == 0) /* those put off are no longer in `to` */
		return finished(attempt);
	*attempt->next = (struct transfer){
		.kind = TRANSFER_SMTP, .endpoint = &options->endpoint, .url = url, .mail = mail};
	return STEP_TRANSFER;
}

/* "ann@example.com was refused (550 no such user)" of those refused for good. */
static void note_refused(struct attempt *attempt, const struct reply *reply)
{
	const struct mail *mail = attempt->state;
	struct buf text = {0};

	for (size_t i = 0; i < reply->refusal_count; i++) {
		const struct mail_refusal *refusal = &reply->refusals[i];

		if (refusal->status >= 500)
			buf_printf(&text, "%s%s was refused (%d %s)",
				text.length > 0 ? ", " : "email: ",
				mail->to.items[refusal->recipient], refusal->status,
				refusal->words);
	}
	if (text.length > 0)
		attempt->notice = buf_keep(&text, attempt->arena);
}

/* The mail was taken for all that were not refused. */
static enum step taken(struct attempt *attempt, const struct reply *reply)
{
	const struct mail *mail = attempt->state;
	struct buf receipt = {0};
	enum step step = finished(attempt);

	note_refused(attempt, reply);
	buf_text(&receipt, attempt->receipt);
	for (size_t i = 0; i < reply->refusal_count; i++)
		if (reply->refusals[i].status < 500) {
			attempt->more = true;
			buf_printf(&receipt, " %s", mail->to.items[reply->refusals[i].recipient]);
		}
	attempt->receipt = buf_keep(&receipt, attempt->arena);
	return step;
}

/* 4xx is temporary. Of permanent failures, content concerns this mail; the rest is configuration,
 * except for recipients when some have got the mail. */
static enum step refused(struct attempt *attempt, const struct reply *reply)
{
	static const char *const stages[] = {[MAIL_GREETING] = "connection",
		[MAIL_HELLO] = "connection",
		[MAIL_TLS] = "TLS",
		[MAIL_LOGIN] = "login",
		[MAIL_SENDER] = "sender",
		[MAIL_RECIPIENTS] = "recipients",
		[MAIL_CONTENT] = "message"};
	bool passes = reply->status < 500, content = reply->stage == MAIL_CONTENT;

	if (!passes && reply->stage == MAIL_RECIPIENTS && id_of(attempt->arena, attempt->receipt)) {
		note_refused(attempt, reply);
		return finished(attempt);
	}
	return notifier_fail(attempt, passes, passes || content ? ERROR_DATA : ERROR_USAGE,
		arena_printf(attempt->arena, "%s refused: %d %s", stages[reply->stage],
			reply->status, reply->body));
}

static enum step step(struct attempt *attempt, const struct reply *last)
{
	bool config_error;

	attempt->maybe_delivered = MAYBE_DELIVERED_NO;
	if (!last)
		return send(attempt);
	if (last->kind == REPLY_ANSWER)
		return last->status < 400 ? taken(attempt, last) : refused(attempt, last);
	if (last->kind == REPLY_AMBIGUOUS)
		attempt->maybe_delivered = MAYBE_DELIVERED_BLIND;
	config_error = last->kind == REPLY_UNREACHABLE &&
		       (last->stage == MAIL_TLS || last->stage == MAIL_LOGIN);
	return notifier_fail(attempt, !config_error, config_error ? ERROR_USAGE : ERROR_DATA,
		last->problem ? last->problem : "no answer");
}

const struct notifier email_notifier = {
	.plugin = {.name = "email",
		.summary = "send mail by SMTP",
		.fields = email_fields,
		.options_size = sizeof(struct email_options),
		.endpoint = true,
		.mail = true,
		.check = check},
	.events = MESSAGES_ALL,
	.defaults = MESSAGES_USUAL,
	.gathers = true,
	.threads = true,
	.render = render,
	.step = step,
	.pictures = pictures,
};
