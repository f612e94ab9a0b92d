#include "notifiers/slack/upload.h"

#include <jansson.h>
#include <string.h>

#include "agent/base/secret.h"
#include "notifiers/slack/options.h"

/* REQUEST_MS: of each of the three, so that later messages hardly wait. */
enum { REQUEST_MS = 5000, TITLE = 200, REASON = 60 };

static const char not_slack[] = "the answer is not Slack's";

static struct transfer request(const struct slack_upload *upload, const struct attempt *attempt,
	const char *method, const char *name)
{
	const struct slack_options *options = attempt->options;

	return (struct transfer){.kind = TRANSFER_HTTP,
		.endpoint = &options->endpoint,
		.method = method,
		.url = transfer_join_url(attempt->arena, options->api_url, name),
		.bearer = upload->token,
		.timeout = REQUEST_MS};
}

static void put_title(struct buf *out, const struct slack_upload *upload)
{
	buf_clean(out, upload->picture.title ? upload->picture.title : "change", TITLE);
}

void slack_upload_begin(struct slack_upload *upload, struct attempt *attempt, struct transfer *next)
{
	struct buf query = {0}, title = {0};

	put_title(&title, upload);
	buf_printf(&query, "files.getUploadURLExternal?filename=change.png&length=%zu&alt_txt=",
		upload->picture.length);
	transfer_encode(&query, title.data);
	upload->stage = UPLOAD_ASK;
	*next = request(upload, attempt, "GET", buf_keep(&query, attempt->arena));
	buf_free(&title);
}

/* Where Slack wants it: over TLS, unless its API is not. */
static bool is_place(const struct attempt *attempt, const char *url)
{
	const struct slack_options *options = attempt->options;

	return !transfer_url_problem(url) &&
	       (strncmp(url, "https://", 8) == 0 || strncmp(options->api_url, "http://", 7) == 0);
}

static enum step send(struct slack_upload *upload, struct attempt *attempt, const json_t *answer,
	struct transfer *next, const char **reason)
{
	static const struct pair png[] = {{"Content-Type", "image/png"}};
	const struct slack_options *options = attempt->options;
	const char *url = json_string_value(json_object_get(answer, "upload_url"));
	const char *file = json_string_value(json_object_get(answer, "file_id"));

	if (!url || !file || !is_place(attempt, url)) {
		*reason = not_slack;
		return STEP_FAILED;
	}
	upload->file = arena_strdup(attempt->arena, file);
	upload->bare = options->endpoint;
	upload->bare.headers = (struct pairs){0};
	upload->bare.username = upload->bare.password = upload->bare.password_file = NULL;
	upload->bare.bearer_token = upload->bare.bearer_token_file = NULL;
	upload->stage = UPLOAD_SEND;
	*next = (struct transfer){.kind = TRANSFER_HTTP,
		.endpoint = &upload->bare,
		.method = "POST",
		.url = arena_strdup(attempt->arena, url),
		.headers = {png, 1},
		.body = upload->picture.bytes,
		.body_length = upload->picture.length,
		.timeout = REQUEST_MS};
	return STEP_TRANSFER;
}

static enum step complete(
	struct slack_upload *upload, struct attempt *attempt, struct transfer *next)
{
	static const struct pair json[] = {{"Content-Type", "application/json; charset=utf-8"}};
	struct buf body = {0}, title = {0};

	put_title(&title, upload);
	buf_text(&body, "{\"files\":[{\"id\":");
	buf_json_text(&body, upload->file);
	buf_text(&body, ",\"title\":");
	buf_json_text(&body, title.data);
	buf_text(&body, "}],\"channel_id\":");
	buf_json_text(&body, upload->channel);
	buf_text(&body, ",\"thread_ts\":");
	buf_json_text(&body, upload->thread);
	buf_char(&body, '}');
	buf_free(&title);
	upload->stage = UPLOAD_COMPLETE;
	*next = request(upload, attempt, "POST", "files.completeUploadExternal");
	next->headers = (struct pairs){json, 1};
	next->body_length = body.length;
	next->body = buf_keep(&body, attempt->arena);
	return STEP_TRANSFER;
}

static const char *reason_of(
	const struct attempt *attempt, const struct reply *reply, const json_t *answer)
{
	const char *word = json_string_value(json_object_get(answer, "error"));

	return word ? secret_cut(attempt->arena, word, REASON, &reply->secrets) : not_slack;
}

enum step slack_upload_take(struct slack_upload *upload, struct attempt *attempt,
	const struct reply *reply, struct transfer *next, const char **reason)
{
	enum step step = STEP_FAILED;
	json_t *answer;

	if (reply->kind != REPLY_ANSWER || reply->status != 200) {
		*reason = reply->kind == REPLY_ANSWER
				  ? arena_printf(attempt->arena, "HTTP status %d", reply->status)
			  : reply->problem ? arena_strdup(attempt->arena, reply->problem)
					   : "no answer";
		return STEP_FAILED;
	}
	if (upload->stage == UPLOAD_SEND)
		return complete(upload, attempt, next);
	answer = json_loadb(reply->body, reply->length, 0, NULL);
	if (!json_is_true(json_object_get(answer, "ok")))
		*reason = reason_of(attempt, reply, answer);
	else if (upload->stage == UPLOAD_ASK)
		step = send(upload, attempt, answer, next, reason);
	else
		step = STEP_DONE;
	json_decref(answer);
	return step;
}
