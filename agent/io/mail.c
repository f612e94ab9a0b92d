/*
 * libcurl reports the code of the last answer, but neither its command nor which of several
 * recipients was refused. So its debug function follows the dialogue: each command sets the stage,
 * and the answer that follows belongs to it. Nothing that is sent is kept.
 *
 * A message begins to leave after the answer to DATA. If it is cut off from then on, the server may
 * have taken it, as the end of the message may have arrived and only the answer is missing.
 */
#include "agent/io/mail.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/base/buf.h"
#include "agent/base/secret.h"
#include "agent/base/utf8.h"
#include "agent/io/credentials.h"
#include "agent/io/transport.h"

enum { MOST_WORDS = 300, MOST_KEPT = 4096, LINE = 76, CODE = 3, GOODBYE = 421 };

#define FAREWELL 2L /* s that the answer to QUIT may take */

struct mailing {
	const struct transfer *transfer;
	struct arena *arena;
	CURL *easy;
	curl_mime *mime;
	struct curl_slist *headers, *to;
	struct transport transport;
	struct strings secrets;
	enum mail_stage stage;
	bool content;     /* the message is being sent, or was */
	bool quits;       /* QUIT was sent */
	int status;       /* of the last answer; 0: none yet */
	struct buf words; /* of the last answer */
	size_t recipients;
	struct mail_refusal *refusals;
	size_t refusal_count;
	char message[CURL_ERROR_SIZE];
};

static bool begins(const char *data, size_t length, const char *with)
{
	size_t needed = strlen(with);

	return length >= needed && strncasecmp(data, with, needed) == 0;
}

/* A login's lines after AUTH are none of these. After GOODBYE nothing is answered, although libcurl
 * continues if the answer was for a recipient. */
static void note_command(struct mailing *mailing, const char *data, size_t length)
{
	static const struct {
		const char *verb;
		enum mail_stage stage;
	} commands[] = {{"EHLO ", MAIL_HELLO}, {"HELO ", MAIL_HELLO}, {"STARTTLS\r", MAIL_TLS},
		{"AUTH ", MAIL_LOGIN}, {"MAIL FROM:", MAIL_SENDER}, {"RCPT TO:", MAIL_RECIPIENTS},
		{"DATA\r", MAIL_CONTENT}};

	if (mailing->status == GOODBYE)
		return;
	if (begins(data, length, "QUIT\r")) {
		mailing->quits = true;
		curl_easy_setopt(mailing->easy, CURLOPT_SERVER_RESPONSE_TIMEOUT, FAREWELL);
		return;
	}
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (begins(data, length, commands[i].verb))
			mailing->stage = commands[i].stage;
	mailing->recipients += begins(data, length, "RCPT TO:");
	mailing->status = 0;
	buf_clear(&mailing->words);
}

static const char *words_of(const struct mailing *mailing)
{
	char *words = arena_strndup(mailing->arena, mailing->words.data ? mailing->words.data : "",
		mailing->words.length);

	utf8_blank(words, ' ');
	return secret_cut(mailing->arena, words, MOST_WORDS, &mailing->secrets);
}

/* A line of an answer: "250-SIZE 1000", the last one "250 HELP". */
static void note_answer(struct mailing *mailing, const char *data, size_t length)
{
	char digits[CODE + 1] = "";
	int code;

	while (length > 0 && (unsigned char)data[length - 1] <= ' ')
		length--;
	memcpy(digits, data, length < CODE ? length : CODE);
	code = strspn(digits, "0123456789") == CODE ? atoi(digits) : 0;
	if (mailing->quits || code == 0)
		return;
	if (length > CODE + 1 && mailing->words.length + length < MOST_KEPT) {
		if (mailing->words.length > 0)
			buf_char(&mailing->words, ' ');
		buf_append(&mailing->words, data + CODE + 1, length - CODE - 1);
	}
	if (length > CODE && data[CODE] == '-')
		return;
	mailing->status = code;
	if (mailing->stage == MAIL_RECIPIENTS && mailing->status >= 400 &&
		mailing->refusal_count < mailing->recipients &&
		mailing->recipients <= mailing->transfer->mail->to.count)
		mailing->refusals[mailing->refusal_count++] =
			(struct mail_refusal){.recipient = mailing->recipients - 1,
				.status = mailing->status,
				.words = words_of(mailing)};
}

static int listen_in(CURL *easy, curl_infotype type, char *data, size_t length, void *context)
{
	struct mailing *mailing = context;

	(void)easy;
	if (type == CURLINFO_HEADER_OUT) {
		note_command(mailing, data, length);
	} else if (type == CURLINFO_HEADER_IN) {
		note_answer(mailing, data, length);
	} else if (type == CURLINFO_DATA_OUT && !mailing->content) {
		mailing->content = true;
		mailing->status = 0;
		buf_clear(&mailing->words);
	}
	return 0;
}

/* Otherwise libcurl writes received data to standard output. */
static size_t drop(char *data, size_t size, size_t count, void *context)
{
	(void)data, (void)context;
	return size * count;
}

const char *mail_fold(struct arena *arena, const char *name, const char *value)
{
	struct buf out = {0};
	size_t used = strlen(name) + 1, begin;

	buf_printf(&out, "%s: ", name);
	begin = out.length;
	while (*value) {
		size_t word = 1 + strcspn(value + 1, " ");

		if (used + word > LINE && out.length > begin && *value == ' ') {
			buf_text(&out, "\r\n");
			used = 0;
		}
		buf_append(&out, value, word);
		used += word;
		value += word;
	}
	return buf_keep(&out, arena);
}

static bool is_safe(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

static bool add_headers(struct mailing *mailing, const struct pairs *headers, struct error *error)
{
	for (size_t i = 0; i < headers->count; i++) {
		const struct pair *pair = &headers->items[i];

		if (!is_safe(pair->key) || strpbrk(pair->key, ": ") || !is_safe(pair->value))
			return error_set(error, ERROR_DATA, "header %s contains a line break",
				is_safe(pair->key) ? pair->key : "");
		mailing->headers = curl_slist_append(
			mailing->headers, mail_fold(mailing->arena, pair->key, pair->value));
	}
	return true;
}

static bool add_address(
	struct mailing *mailing, struct curl_slist **list, const char *address, struct error *error)
{
	if (!is_safe(address) || strpbrk(address, "<> "))
		return error_set(error, ERROR_DATA, "an address has a blank or a line break");
	*list = curl_slist_append(*list, arena_printf(mailing->arena, "<%s>", address));
	return true;
}

/* libcurl's encoder knows no other end of a line than CR LF. */
static const char *with_crlf(struct arena *arena, const char *text)
{
	struct buf out = {0};

	for (const char *end; *text; text = end + (*end != '\0')) {
		end = text + strcspn(text, "\n");
		buf_append(&out, text, (size_t)(end - text));
		buf_text(&out, "\r\n");
	}
	return buf_keep(&out, arena);
}

static void add_text(struct mailing *mailing, curl_mime *mime, const char *text, const char *type)
{
	curl_mimepart *part = curl_mime_addpart(mime);

	curl_mime_data(part, with_crlf(mailing->arena, text), CURL_ZERO_TERMINATED);
	curl_mime_type(part, type);
	curl_mime_encoder(part, "quoted-printable");
}

/* The HTML, with its picture in a part that has both. The picture is inline, so that readers do not
 * list it as an attachment. */
static void add_html(struct mailing *mailing)
{
	const struct mail *mail = mailing->transfer->mail;
	curl_mime *both = mail->picture ? curl_mime_init(mailing->easy) : NULL;
	curl_mimepart *part;
	struct curl_slist *headers;

	add_text(mailing, both ? both : mailing->mime, mail->html, "text/html; charset=utf-8");
	if (!both)
		return;
	part = curl_mime_addpart(both);
	headers = curl_slist_append(
		NULL, arena_printf(mailing->arena, "Content-ID: <%s>", mail->picture_id));
	headers =
		curl_slist_append(headers, "Content-Disposition: inline; filename=\"change.png\"");
	curl_mime_data(part, mail->picture, mail->picture_length);
	curl_mime_type(part, "image/png");
	curl_mime_encoder(part, "base64");
	curl_mime_headers(part, headers, 1);
	part = curl_mime_addpart(mailing->mime);
	curl_mime_subparts(part, both);
	curl_mime_type(part, "multipart/related");
}

static bool set_message(struct mailing *mailing, struct error *error)
{
	const struct mail *mail = mailing->transfer->mail;
	struct curl_slist *from = NULL;
	bool good = add_headers(mailing, &mail->headers, error) &&
		    add_headers(mailing, &mailing->transfer->endpoint->headers, error) &&
		    add_address(mailing, &from, mail->from, error);

	for (size_t i = 0; good && i < mail->to.count; i++)
		good = add_address(mailing, &mailing->to, mail->to.items[i], error);
	if (good)
		curl_easy_setopt(mailing->easy, CURLOPT_MAIL_FROM, from->data);
	curl_slist_free_all(from);
	mailing->headers =
		curl_slist_append(mailing->headers, "Content-Type: multipart/alternative");
	mailing->mime = curl_mime_init(mailing->easy);
	add_text(mailing, mailing->mime, mail->text, "text/plain; charset=utf-8");
	add_html(mailing);
	curl_easy_setopt(mailing->easy, CURLOPT_MAIL_RCPT, mailing->to);
	curl_easy_setopt(mailing->easy, CURLOPT_MAIL_RCPT_ALLLOWFAILS, 1L);
	curl_easy_setopt(mailing->easy, CURLOPT_HTTPHEADER, mailing->headers);
	curl_easy_setopt(mailing->easy, CURLOPT_MIMEPOST, mailing->mime);
	return good;
}

/* Without user info, which credentials_set has removed; NULL: not an SMTP URL. */
static const char *bare_url(struct arena *arena, const char *url)
{
	return url && transfer_url_is_mail(url) ? transport_bare_url(arena, url) : NULL;
}

static bool prepare(struct mailing *mailing, struct error *error)
{
	const struct transfer *transfer = mailing->transfer;
	const struct endpoint *endpoint = transfer->endpoint;
	const char *url = bare_url(mailing->arena, transfer->url);
	struct curl_slist *unused = NULL;
	CURL *easy = mailing->easy;
	bool good;

	if (!url)
		return error_set(
			error, ERROR_USAGE, "the address is not an smtp:// or smtps:// URL");
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, mailing->message);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a hanging DNS */
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
	curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
	curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
	curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
	curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
	curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, listen_in);
	curl_easy_setopt(easy, CURLOPT_DEBUGDATA, mailing);
	curl_easy_setopt(easy, CURLOPT_USE_SSL,
		(long)(transfer->mail->starttls ? CURLUSESSL_ALL : CURLUSESSL_NONE));
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)endpoint->timeout);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)endpoint->connect_timeout);
	curl_easy_setopt(
		easy, CURLOPT_SERVER_RESPONSE_TIMEOUT, (long)((endpoint->timeout + 999) / 1000));
	/* A token is a user's, and the user the sender. */
	if (endpoint->bearer_token || endpoint->bearer_token_file)
		curl_easy_setopt(easy, CURLOPT_USERNAME, transfer->mail->from);
	good = transport_set(easy, endpoint, error) &&
	       credentials_set(
		       easy, mailing->arena, transfer, true, &unused, &mailing->secrets, error) &&
	       set_message(mailing, error) &&
	       transport_aim(
		       &mailing->transport, easy, mailing->arena, endpoint, url, true, NULL, error);
	curl_slist_free_all(unused);
	return good;
}

/* "smtp://mail.example:587" */
static const char *server_of(struct arena *arena, const char *url)
{
	const char *bare = bare_url(arena, url);
	size_t scheme = bare ? strcspn(bare, ":") + 3 : 0;

	return bare ? arena_strndup(arena, bare, scheme + strcspn(bare + scheme, "/?#")) : "mail";
}

static const char *explain(struct mailing *mailing, CURLcode code)
{
	const struct transfer *transfer = mailing->transfer;
	struct arena *arena = mailing->arena;
	const char *server = server_of(arena, transfer->url);
	curl_off_t connected = 0;
	curl_easy_getinfo(mailing->easy, CURLINFO_CONNECT_TIME_T, &connected);
	const struct problem problem = {.easy = mailing->easy,
		.code = code,
		.message = mailing->message,
		.endpoint = transfer->endpoint,
		.here = server,
		.sent = connected > 0};

	if (code == CURLE_USE_SSL_FAILED)
		return arena_printf(arena,
			"%s: the server does not offer STARTTLS (smtps:// if it expects TLS from "
			"the beginning; tls: none sends in clear text)",
			server);
	if (code == CURLE_LOGIN_DENIED)
		return arena_printf(
			arena, "%s: the server offers no supported login method", server);
	if (code == CURLE_OPERATION_TIMEDOUT && connected > 0 && mailing->stage == MAIL_GREETING &&
		mailing->status == 0 && strncmp(server, "smtp:", 5) == 0)
		return arena_printf(
			arena, "%s (is it smtps:// ?)", problem_explain(&problem, arena));
	return problem_explain(&problem, arena);
}

/* A temporary refusal takes precedence: one recipient that may be accepted later makes a retry
 * worthwhile. */
static void prefer_passing(struct mailing *mailing)
{
	for (size_t i = 0; mailing->stage == MAIL_RECIPIENTS && i < mailing->refusal_count; i++)
		if (mailing->status >= 500 && mailing->refusals[i].status < 500) {
			mailing->status = mailing->refusals[i].status;
			buf_clear(&mailing->words);
			buf_text(&mailing->words, mailing->refusals[i].words);
		}
}

static void finish(struct mailing *mailing, CURLcode code, struct reply *reply)
{
	curl_off_t took = 0;

	curl_easy_getinfo(mailing->easy, CURLINFO_TOTAL_TIME_T, &took);
	prefer_passing(mailing);
	*reply = (struct reply){.kind = REPLY_ANSWER,
		.status = mailing->status,
		.retry_after = -1,
		.stage = mailing->stage,
		.refusals = mailing->refusals,
		.refusal_count = mailing->refusal_count,
		.secrets = mailing->secrets,
		.took = (int64_t)took,
		.body = words_of(mailing)};
	reply->length = strlen(reply->body);
	if (code == CURLE_OK || mailing->status >= 400)
		return;
	reply->kind = mailing->content ? REPLY_AMBIGUOUS : REPLY_UNREACHABLE;
	reply->status = 0;
	reply->problem = explain(mailing, code);
	reply->stage = code == CURLE_USE_SSL_FAILED ? MAIL_TLS
		       : code == CURLE_LOGIN_DENIED ? MAIL_LOGIN
						    : MAIL_GREETING;
}

void mail_send(const struct transfer *transfer, struct arena *arena, struct reply *reply)
{
	struct mailing mailing = {.transfer = transfer,
		.arena = arena,
		.easy = curl_easy_init(),
		.words = {.secret = true}};
	struct error error;

	if (!mailing.easy)
		abort();
	mailing.refusals =
		arena_array(arena, transfer->mail->to.count + 1, sizeof *mailing.refusals);
	if (prepare(&mailing, &error))
		finish(&mailing, curl_easy_perform(mailing.easy), reply);
	else
		*reply = (struct reply){.kind = REPLY_UNREACHABLE,
			.retry_after = -1,
			.body = "",
			.problem = arena_strdup(arena, error.text)};
	curl_easy_cleanup(mailing.easy);
	curl_mime_free(mailing.mime);
	curl_slist_free_all(mailing.headers);
	curl_slist_free_all(mailing.to);
	transport_free(&mailing.transport);
	buf_free(&mailing.words);
}
