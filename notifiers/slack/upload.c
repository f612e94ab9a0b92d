#include "notifiers/slack/upload.h"

#include <jansson.h>
#include <string.h>

#include "notifiers/slack/api.h"
#include "notifiers/slack/options.h"

/* REQUEST_MS: of each of the three, so that later messages hardly wait. */
enum { REQUEST_MS = 5000, TITLE = 200 };

static void put_title(struct buf *out, const struct slack_upload *upload)
{
	buf_clean(out, upload->picture.title ? upload->picture.title : "change", TITLE);
}

enum step slack_upload_begin(struct slack_upload *upload, struct attempt *attempt)
{
	struct buf query = {0}, title = {0};
	enum step step;

	put_title(&title, upload);
	buf_printf(&query, "files.getUploadURLExternal?filename=change.png&length=%zu&alt_txt=",
		upload->picture.length);
	transfer_encode(&query, title.data);
	upload->stage = UPLOAD_ASK;
	buf_free(&title);
	step = slack_call(attempt, buf_keep(&query, attempt->arena), NULL);
	attempt->next->timeout = REQUEST_MS;
	return step;
}

/* Where Slack wants it: over TLS, unless its API is not. */
static bool is_place(const struct attempt *attempt, const char *url)
{
	const struct slack_options *options = attempt->options;

	return !transfer_url_problem(url) &&
	       (strncmp(url, "https://", 8) == 0 || strncmp(options->api_url, "http://", 7) == 0);
}

static enum step send(struct slack_upload *upload, struct attempt *attempt, const json_t *answer,
	const char **reason)
{
	static const struct pair png[] = {{"Content-Type", "image/png"}};
	const struct slack_options *options = attempt->options;
	const char *url = json_string_value(json_object_get(answer, "upload_url"));
	const char *file = json_string_value(json_object_get(answer, "file_id"));

	if (!url || !file || !is_place(attempt, url)) {
		*reason = slack_alien;
		return STEP_FAILED;
	}
	upload->file = arena_strdup(attempt->arena, file);
	upload->bare = options->endpoint;
	upload->bare.headers = (struct pairs){0};
	upload->bare.username = upload->bare.password = upload->bare.password_file = NULL;
	upload->bare.bearer_token = upload->bare.bearer_token_file = NULL;
	upload->stage = UPLOAD_SEND;
	*attempt->next = (struct transfer){.kind = TRANSFER_HTTP,
		.endpoint = &upload->bare,
		.method = "POST",
		.url = arena_strdup(attempt->arena, url),
		.headers = {png, 1},
		.body = upload->picture.bytes,
		.body_length = upload->picture.length,
		.timeout = REQUEST_MS};
	return STEP_TRANSFER;
}

static enum step complete(struct slack_upload *upload, struct attempt *attempt)
{
	struct buf body = {0}, title = {0};
	enum step step;

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
	step = slack_call(attempt, "files.completeUploadExternal", buf_keep(&body, attempt->arena));
	attempt->next->timeout = REQUEST_MS;
	return step;
}

enum step slack_upload_take(struct slack_upload *upload, struct attempt *attempt,
	const struct reply *reply, const char **reason)
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
	if (upload->stage == UPLOAD_SEND) {
		*reason = attempt->error->text;
		return complete(upload, attempt);
	}
	answer = json_loadb(reply->body, reply->length, 0, NULL);
	if (!json_is_true(json_object_get(answer, "ok")))
		*reason = slack_words(attempt->arena, answer, reply);
	else if (upload->stage == UPLOAD_ASK)
		step = send(upload, attempt, answer, reason);
	else
		step = STEP_DONE;
	json_decref(answer);
	return step;
}
