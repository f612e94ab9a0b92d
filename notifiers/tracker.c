/*
 * An attempt is a chain of requests, each after the answer to the one before. After a lost answer
 * the chain starts again and first looks for what may exist; every write can be repeated.
 */
#include "notifiers/tracker.h"
#include "notifiers/http_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/secret.h"
#include "agent/base/utf8.h"

enum {
	PAGES_MOST = 10,

	LIMIT_WAIT_MS = 60000,
	NAME_CHARS = 120,
	MARK_BYTES = 120,
	TEXT_LEAST = 1000,
	TURNS_MOST = 1000000
};

const char *const tracker_on_names[] = {"issue", "commit", NULL};

/* The purpose of reading the comments. */
enum purpose { LOOK_FOR_OWN, LOOK_FOR_TURN, LOOK_FOR_OPEN };

struct session {
	const struct tracker *tracker;
	struct attempt *attempt;
	const struct tracker_options *options;
	struct arena *arena;
	struct tracker_request request; /* the last one */
	struct tracker_target target;   /* of this message */
	const char *title, *text, *commit;
	const char *token;
	const char *words; /* of a 404 */
	bool note;         /* not about changes, such as a reminder's */
	bool doubt;        /* an earlier attempt may have created it */
	bool made;         /* this attempt has */
	bool over;         /* all changes are over */
	bool standing;     /* another comment has open changes */
	bool commented;    /* the change between open and over */
	enum purpose purpose;
	int64_t turns;            /* number of changes between open and over */
	struct message message;   /* the amended one */
	const char *rest;         /* text that users have written below */
	enum tracker_state state; /* wanted for the issue */
	bool closed;              /* the issue's current state */
};

/* Its word is "open", "over", or "note" of a text that is about neither, such as a reminder. */
struct mark {
	bool found, open, over;
	int64_t turns;
	const char *end; /* behind it in the text */
};

/* "hunter-c 6bcdf7e359d07792 open 2"; the last one of any message if `key` is NULL. */
static struct mark find_mark(const char *text, const char *key)
{
	static const char head[] = "hunter-c ";
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
	struct mark mark = {0};

	while (text && (text = strstr(text, head)) != NULL) {
		const char *at = text += sizeof head - 1;
		size_t length = strspn(at, digits);
		bool same =
			key ? length == strlen(key) && memcmp(at, key, length) == 0 : length > 0;
		bool open = strncmp(at + length, " open ", 6) == 0;
		bool over = strncmp(at + length, " over ", 6) == 0;
		char *end;

		if (!same || (!open && !over && strncmp(at + length, " note ", 6) != 0))
			continue;
		mark = (struct mark){.found = true, .open = open, .over = over};
		mark.turns = strtoll(at + length + 6, &end, 10);
		if (mark.turns < 0 || mark.turns > TURNS_MOST)
			mark.turns = 0;
		mark.end = end;
		if (key)
			return mark;
	}
	return mark;
}

static void put_mark(
	struct buf *out, const struct session *session, const char *state, int64_t turns)
{
	buf_printf(out, "\n%shunter-c %s %s %" PRId64 "%s", session->tracker->hide_from,
		session->attempt->key, state, turns, session->tracker->hide_to);
}

/* The text with its mark, and the text that users have written below. */
static const char *with_mark(const struct session *session, int64_t turns)
{
	const char *state = session->over ? "over" : "open";
	struct buf out = {0};

	buf_text(&out, session->text);
	while (out.length > 0 && out.data[out.length - 1] == '\n')
		out.length--;
	buf_text(&out, "\n");
	put_mark(&out, session, session->note ? "note" : state, turns);
	if (session->rest)
		buf_text(&out, session->rest);
	return buf_keep(&out, session->arena);
}

/* "issue 12", "issue 12 comment 345", "commit 6dcb09b5 comment 345" */
static struct tracker_target target_read(struct arena *arena, const char *receipt)
{
	struct tracker_target target = {0};
	char *rest = arena_strdup(arena, receipt ? receipt : "");
	const char *kind, *id;

	while ((kind = strtok_r(rest, " ", &rest)) != NULL &&
		(id = strtok_r(rest, " ", &rest)) != NULL) {
		if (strcmp(kind, "issue") == 0)
			target.issue = id;
		else if (strcmp(kind, "commit") == 0)
			target.commit = id;
		else if (strcmp(kind, "comment") == 0)
			target.comment = id;
	}
	return target;
}

static enum step fail(struct session *session, bool retry, const char *what)
{
	return notifier_fail(session->attempt, retry, ERROR_DATA, what);
}

static const char *path_of(const struct session *session, const char *path)
{
	const struct tracker_target *target = &session->target;
	struct buf out = {0};

	session->tracker->home(&out, session->options);
	for (; *path; path++)
		if (*path != '%')
			buf_char(&out, *path);
		else if (*++path == 'i')
			buf_text(&out, target->issue);
		else if (*path == 'r')
			transfer_encode(&out, target->commit);
		else if (*path == 'c')
			buf_text(&out, target->comment);
		else if (*path == 'k')
			transfer_encode(&out, session->request.key);
		else if (*path == 'p')
			buf_printf(&out, "%u", session->request.page);
		else
			session->tracker->put_search(&out, &session->request, session->attempt);
	return buf_keep(&out, session->arena);
}

/* The next page, if the request is the same and `page` has not been set to 0. */
static enum step ask(struct session *session, enum tracker_ask what)
{
	const struct tracker *tracker = session->tracker;
	const struct tracker_call *call = &tracker->calls[what];
	const struct endpoint *endpoint = &session->options->endpoint;
	struct tracker_request *request = &session->request;
	json_t *body;
	char *text;

	request->page = what == request->ask ? request->page + 1 : 1;
	request->ask = what;
	request->key = session->attempt->key;
	body = *call->method == 'G' ? NULL : tracker->body(request, session->options);
	text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	*session->attempt->next = http_json_request(session->attempt, endpoint, call->method,
		transfer_join_url(session->arena, endpoint->url ? endpoint->url : tracker->url,
			path_of(session, call->path[!session->target.issue && call->path[1]])),
		arena_strdup(session->arena, text), tracker->headers);
	session->attempt->next->bearer = session->token;
	free(text);
	json_decref(body);
	return STEP_TRANSFER;
}

static enum step ask_comments(struct session *session, enum purpose purpose)
{
	session->purpose = purpose;
	session->request.page = 0;
	return ask(session, TRACKER_COMMENTS);
}

static enum step write_text(struct session *session, enum tracker_ask how)
{
	if (how == TRACKER_CREATE)
		session->target = (struct tracker_target){0};
	session->request.title = session->title;
	session->request.text = with_mark(session, 0);
	return ask(session, how);
}

/* Looks up an existing issue or comment first, after a lost answer. */
static enum step make(struct session *session)
{
	session->request.page = 0;
	if (session->target.issue || session->target.commit)
		return session->doubt ? ask_comments(session, LOOK_FOR_OWN)
				      : write_text(session, TRACKER_COMMENT);
	return session->doubt ? ask(session, TRACKER_LIST) : write_text(session, TRACKER_CREATE);
}

static int64_t lag_of(const struct session *session)
{
	return session->tracker->lag ? session->tracker->lag(session->options) : 0;
}

/* A trend has no commit, nor has a crowd of changes that suspect different ones. */
static enum step begin_message(struct session *session)
{
	struct attempt *attempt = session->attempt;
	struct arena *arena = session->arena;
	int64_t since = attempt->now - attempt->made;
	json_t *payload = json_loads(attempt->payload ? attempt->payload : "", 0, NULL);

	session->title = json_keep(arena, payload, "title");
	session->text = json_keep(arena, payload, "text");
	session->commit = json_keep(arena, payload, "commit");
	session->note = json_is_true(json_object_get(payload, "note"));
	json_decref(payload);
	if (!session->title || !session->text)
		return fail(session, false, "the message is unreadable");
	if (session->doubt && since >= 0 && since < lag_of(session)) {
		attempt->retry_after = lag_of(session) - since;
		return fail(session, true, "an issue may have been made, and is not found yet");
	}
	session->target = target_read(arena, attempt->thread);
	session->target.comment = NULL;
	if (session->options->on != TRACKER_ON_COMMIT || !session->commit)
		return make(session);
	session->target = (struct tracker_target){.commit = session->commit};
	return ask(session, TRACKER_COMMIT);
}

/* Renders the text to fit beside that of the users, which is never cut. */
static void fit_text(struct session *session)
{
	size_t taken = MARK_BYTES + (session->rest ? strlen(session->rest) : 0);
	size_t most = session->tracker->text;
	struct buf text = {0};

	body_fit(&text, &session->message, session->tracker->style,
		taken + TEXT_LEAST < most ? most - taken : TEXT_LEAST);
	session->text = buf_keep(&text, session->arena);
}

static enum step begin_amend(struct session *session)
{
	struct follow_up *follow_up = session->attempt->follow_up;

	session->target = target_read(session->arena, session->attempt->receipt);
	if (follow_up->kind != FOLLOW_UP_AMEND ||
		(!session->target.issue && !session->target.commit)) {
		follow_up->gone = true;
		return fail(session, false, "no issue recorded for the message");
	}
	session->over = true;
	for (size_t i = 0; i < follow_up->count; i++)
		session->over = session->over && announced_is_over(&follow_up->changes[i]);
	session->message = body_of_announced(session->arena, follow_up->changes, follow_up->count);
	fit_text(session);
	return session->target.comment ? write_text(session, TRACKER_EDIT)
				       : ask(session, TRACKER_READ);
}

static enum step done(struct session *session)
{
	const struct tracker_target *target = &session->target;

	if (!session->attempt->follow_up)
		session->attempt->receipt = arena_printf(session->arena, "%s %s%s%s",
			target->issue ? "issue" : "commit",
			target->issue ? target->issue : target->commit,
			target->comment ? " comment " : "", target->comment ? target->comment : "");
	return STEP_DONE;
}

/* After a comment: its changes, too, decide whether the issue is closed. */
static enum step settle(struct session *session)
{
	session->made = true;
	if (session->note || !session->target.issue || !session->options->close)
		return done(session);
	return ask(session, TRACKER_READ);
}

/* "1 recovered, 1 no longer found, 2 expected" */
static void put_ends(struct buf *out, const struct follow_up *follow_up)
{
	enum { RECOVERED, WITHDRAWN, TRIAGED, KINDS = TRIAGED + TRIAGE_STATES };
	const char *names[KINDS] = {"recovered", "no longer found"}, *between = "";
	size_t counts[KINDS] = {0};

	memcpy(names + TRIAGED, triage_state_names, TRIAGE_STATES * sizeof *names);
	for (size_t i = 0; i < follow_up->count; i++) {
		const struct announced_change *change = &follow_up->changes[i];
		enum triage_state state = change->triage.state;

		counts[change->state == ANNOUNCED_RECOVERED ? RECOVERED
			: change->state == ANNOUNCED_WITHDRAWN
				? WITHDRAWN
				: TRIAGED + (state ? state : TRIAGE_OPEN)]++;
	}
	for (size_t i = 0; i < KINDS; i++)
		if (counts[i] > 0) {
			buf_printf(out, "%s%zu %s", between, counts[i], names[i]);
			between = ", ";
		}
}

/* The mark is written last: until then the state is retried. */
static enum step write_state(struct session *session)
{
	bool moves = session->tracker->moves, close = session->request.state == TRACKER_CLOSED;

	if (moves && session->request.state != TRACKER_KEEP && session->closed != close)
		return ask(session, TRACKER_WAYS);
	if (moves && !session->request.text)
		return done(session);
	return ask(session, TRACKER_WRITE);
}

static enum step write_issue(struct session *session)
{
	bool close = session->options->close && session->over && !session->standing;

	session->request.text = with_mark(session, session->turns);
	session->request.state = TRACKER_KEEP;
	if (session->commented && (close || !session->over))
		session->request.state = close ? TRACKER_CLOSED : TRACKER_OPEN;
	return write_state(session);
}

/* The existing issue; `commented` from here on: its open state has changed, which is or will be
 * commented. */
static enum step take_issue(struct session *session, const struct tracker_item *issue)
{
	struct mark mark = find_mark(issue->text, session->attempt->key);

	session->closed = issue->closed;
	session->turns = mark.turns;
	session->rest = mark.found ? strchr(mark.end, '\n') : NULL;
	if (session->rest)
		fit_text(session);
	if (mark.found && mark.over == session->over)
		return strcmp(with_mark(session, session->turns), issue->text) == 0
			       ? done(session)
			       : write_issue(session);
	if (!mark.found && !session->over)
		return write_issue(session);
	session->turns++;
	return ask_comments(session, LOOK_FOR_TURN);
}

/* Changes the state of the issue, not its text. */
static enum step turn_issue(struct session *session, enum tracker_state state)
{
	session->request.text = NULL;
	session->request.state = state;
	return write_state(session);
}

/* Reads a comment; true if it is the one looked for. */
static bool take_comment(struct session *session, const struct tracker_item *item)
{
	const char *key = session->attempt->key, *sign, *at;

	if (session->purpose == LOOK_FOR_OWN) {
		if (!find_mark(item->text, key).found)
			return false;
		session->target.comment = item->id;
		return true;
	}
	sign = arena_printf(session->arena, "hunter-c %s said %" PRId64, key, session->turns);
	at = session->purpose == LOOK_FOR_TURN && item->text ? strstr(item->text, sign) : NULL;
	if (at && !(at[strlen(sign)] >= '0' && at[strlen(sign)] <= '9'))
		session->commented = true;
	session->standing = session->standing || find_mark(item->text, NULL).open;
	return false;
}

static enum step comments_read(struct session *session)
{
	struct buf out = {0};

	if (session->purpose == LOOK_FOR_OWN)
		return write_text(session, TRACKER_COMMENT);
	if (session->purpose == LOOK_FOR_OPEN)
		return session->standing ? done(session) : turn_issue(session, TRACKER_CLOSED);
	if (session->commented)
		return write_issue(session);
	session->commented = true;
	buf_text(&out, session->over ? "All over: " : "Open again: ");
	put_ends(&out, session->attempt->follow_up);
	buf_text(&out, ".\n");
	put_mark(&out, session, "said", session->turns);
	session->request.text = buf_keep(&out, session->arena);
	return ask(session, TRACKER_COMMENT);
}

static bool read_item(
	struct session *session, const json_t *value, enum tracker_ask of, struct tracker_item *out)
{
	*out = (struct tracker_item){0};
	return session->tracker->item(value, of, session->arena, out) && out->id;
}

static enum step take_list(struct session *session, const json_t *answer)
{
	enum tracker_ask what = session->request.ask;
	const json_t *list = session->tracker->list ? session->tracker->list(answer, what) : answer;
	size_t count = json_array_size(list);
	struct tracker_item item;

	if (!json_is_array(list))
		return fail(session, true, "the answer is no list");
	for (size_t i = 0; i < count; i++) {
		if (!read_item(session, json_array_get(list, i), what, &item))
			continue;
		if (what == TRACKER_COMMENTS) {
			if (take_comment(session, &item))
				return settle(session);
		} else if (find_mark(item.text, session->attempt->key).found) {
			session->target.issue = item.id;
			return done(session);
		}
	}
	if (count >= session->tracker->page && session->request.page < PAGES_MOST)
		return ask(session, what);
	return what == TRACKER_COMMENTS ? comments_read(session)
					: write_text(session, TRACKER_CREATE);
}

/* A transition to where the issue belongs, if it can be to where new ones are. */
static enum step take_ways(struct session *session, const json_t *answer)
{
	const json_t *list = session->tracker->list(answer, TRACKER_WAYS);
	bool close = session->request.state == TRACKER_CLOSED;
	struct tracker_item way, best = {0};

	for (size_t i = 0; i < json_array_size(list); i++)
		if (read_item(session, json_array_get(list, i), TRACKER_WAYS, &way) &&
			way.closed == close && (!best.id || (way.fresh && !best.fresh)))
			best = way;
	session->request.way = best.id;
	if (best.id)
		return ask(session, TRACKER_MOVE);
	session->attempt->notice = arena_printf(session->arena,
		"%s: issue %s has no transition to %s it", session->attempt->notifier->plugin.name,
		session->target.issue, close ? "close" : "reopen");
	session->closed = close;
	return write_state(session);
}

static enum step deleted(struct session *session)
{
	struct follow_up *follow_up = session->attempt->follow_up;

	if (follow_up) {
		follow_up->gone = follow_up->deleted = true;
		return fail(session, false, session->words);
	}
	if (session->made) /* the comment exists */
		return done(session);
	session->target = (struct tracker_target){0};
	return make(session);
}

static enum step take_answer(struct session *session, const json_t *answer)
{
	enum tracker_ask what = session->request.ask;
	struct tracker_item item;
	struct mark mark;

	switch (what) {
	case TRACKER_LIST:
	case TRACKER_COMMENTS: return take_list(session, answer);
	case TRACKER_WAYS: return take_ways(session, answer);
	case TRACKER_MOVE:
		session->closed = session->request.state == TRACKER_CLOSED;
		return write_state(session);
	case TRACKER_WRITE: return done(session);
	case TRACKER_HOME: return deleted(session);
	case TRACKER_EDIT: return settle(session);
	case TRACKER_CREATE:
	case TRACKER_READ:
	case TRACKER_COMMENT:
	case TRACKER_COMMIT: break;
	}
	if (!read_item(session, answer, what, &item))
		return fail(session, true, "unexpected answer");
	if (what == TRACKER_READ) {
		if (!session->made)
			return take_issue(session, &item);
		/* After a comment. */
		mark = find_mark(item.text, NULL);
		if (!mark.found || !mark.over || item.closed == session->over)
			return done(session);
		session->closed = item.closed;
		return session->over ? ask_comments(session, LOOK_FOR_OPEN)
				     : turn_issue(session, TRACKER_OPEN);
	}
	if (what == TRACKER_CREATE) {
		session->target.issue = item.id;
		return done(session);
	}
	if (what == TRACKER_COMMIT) {
		session->target.commit = item.id;
		return make(session);
	}
	if (session->attempt->follow_up)
		return write_issue(session);
	session->target.comment = item.id;
	return settle(session);
}

/* Retries in another way if the status is known to rule out this one. */
static bool has_another_way(struct session *session, int status, const char *words)
{
	const struct tracker_options *options = session->options;
	struct tracker_request *request = &session->request;
	bool adorned = options->labels.count + options->assignees.count > 0 || options->assignee;
	bool invalid = status == 400 || status == 422;
	bool missing = status == 404 || status == 410;

	if (request->ask == TRACKER_CREATE && invalid && adorned && !request->bare) {
		request->bare = true;
		session->attempt->notice =
			arena_printf(session->arena, "%s: %s: made without labels and assignees",
				session->attempt->notifier->plugin.name, words);
		return ask(session, TRACKER_CREATE) == STEP_TRANSFER;
	}
	if (request->ask == TRACKER_LIST && missing && session->tracker->moves && !request->other) {
		request->other = true;
		request->page = 0;
		return ask(session, TRACKER_LIST) == STEP_TRANSFER;
	}
	if (request->ask == TRACKER_COMMIT && (missing || invalid)) {
		session->target = (struct tracker_target){0};
		return make(session) == STEP_TRANSFER;
	}
	return false;
}

/* GitHub uses 403 for rate limits, too. A 404 is an issue that was deleted, or one that the token
 * may not see any more: then it may not see the repository or project either. */
static enum step take_refusal(struct session *session, const struct reply *reply)
{
	struct attempt *attempt = session->attempt;
	enum tracker_ask what = session->request.ask;
	const char *words = http_json_words(session->arena, reply, &reply->secrets);
	int status = reply->status;
	bool about_it = what == TRACKER_EDIT ||
			(session->target.issue && what != TRACKER_CREATE && what != TRACKER_HOME);
	bool body = status == 400 || status == 413 || status == 422;

	if (!words)
		words = arena_printf(session->arena, "HTTP status %d", status);
	if (status == 429 ||
		(status == 403 && (reply->retry_after >= 0 || strcasestr(words, "rate limit")))) {
		if (reply->retry_after < 0)
			attempt->retry_after = LIMIT_WAIT_MS;
		return fail(session, true, words);
	}
	if (has_another_way(session, status, words))
		return STEP_TRANSFER;
	if (about_it && (status == 410 || status == 404)) {
		session->words = words;
		return status == 410 ? deleted(session) : ask(session, TRACKER_HOME);
	}
	if (http_json_passes(status))
		return fail(session, true, words);
	if (body && attempt->follow_up)
		attempt->follow_up->gone = true;
	return notifier_fail(attempt, false, body ? ERROR_DATA : ERROR_USAGE, words);
}

static enum step read_answer(struct session *session, const struct reply *reply)
{
	json_t *answer;
	enum step step;

	if (reply->kind != REPLY_ANSWER)
		return fail(session, true, reply->problem ? reply->problem : "no answer");
	if (reply->status < 200 || reply->status > 299)
		return take_refusal(session, reply);
	answer = json_loadb(reply->body, reply->length, 0, NULL);
	step = take_answer(session, answer);
	json_decref(answer);
	return step;
}

static enum step begin(struct session *session)
{
	const struct tracker_options *options = session->options;
	struct error *error = session->attempt->error;

	if (!secret_pick(session->arena, options->token, "token_file", options->token_file,
		    &session->token, error))
		return notifier_fail(session->attempt, false, ERROR_USAGE,
			arena_strdup(session->arena, error->text));
	return session->attempt->follow_up ? begin_amend(session) : begin_message(session);
}

/* A failed attempt to create something is in doubt unless it is known to have made nothing. */
enum step tracker_step(struct attempt *attempt, const struct reply *last)
{
	struct session *session = attempt->state;
	enum tracker_ask asked;
	enum step step;
	bool doubt;

	if (!last) {
		attempt->state = session = arena_alloc(attempt->arena, sizeof *session);
		*session = (struct session){.tracker = attempt->notifier->shape,
			.attempt = attempt,
			.options = attempt->options,
			.arena = attempt->arena,
			.doubt = attempt->maybe_delivered != MAYBE_DELIVERED_NO};
	}
	step = last ? read_answer(session, last) : begin(session);
	asked = session->request.ask;
	doubt = session->doubt || session->made;
	if (last && (asked == TRACKER_CREATE || asked == TRACKER_COMMENT))
		doubt = last->kind == REPLY_ANSWER ? last->status >= 500 || last->status < 300
						   : last->kind != REPLY_UNREACHABLE;
	attempt->maybe_delivered = MAYBE_DELIVERED_NO;
	if (step == STEP_FAILED && !attempt->follow_up && doubt) {
		attempt->maybe_delivered = MAYBE_DELIVERED_CHECK;
		if (attempt->retry && attempt->retry_after < lag_of(session))
			attempt->retry_after = lag_of(session);
	}
	return step;
}

static const char *commit_of(const struct message *message)
{
	const char *commit = NULL;

	for (size_t i = 0; i < message->count; i++) {
		const char *one = announcement_commit(&message->items[i]);

		if (!one || (commit && strcmp(one, commit) != 0))
			return NULL;
		commit = one;
	}
	return commit;
}

/* A zero-width space ends mentions, references and addresses in the title, which is plain text. */
bool tracker_render(const struct draft *draft)
{
	const struct tracker *tracker = draft->notifier->shape;
	const struct message *message = draft->message;
	struct buf *payload = draft->payload;
	struct buf text = {0}, title = {0};

	body_title(&text, message);
	if (message->count == 1 && message->items[0].members == 0) {
		buf_text(&text, ": ");
		buf_clean(&text, message->items[0].metric, NAME_CHARS);
	}
	if (text.length == 0)
		buf_text(&text, "hunter-c");
	for (const char *at = text.data; *at; at++) {
		buf_char(&title, *at);
		if (strchr("@#!&~%$", *at) || strncmp(at, ":/", 2) == 0)
			buf_text(&title, "\xe2\x80\x8b");
	}
	title.length = utf8_cut(title.data, tracker->title);
	buf_char(payload, '{');
	http_json_whole(payload, "title", &title);
	buf_clear(&text);
	body_fit(&text, message, tracker->style, tracker->text - MARK_BYTES);
	http_json_whole(payload, "text", &text);
	buf_text(payload, ",\"commit\":");
	buf_json_text(payload, commit_of(message));
	if ((MESSAGES_OF_CHANGES & 1u << message->kind) == 0)
		buf_text(payload, ",\"note\":true");
	buf_char(payload, '}');
	return true;
}

bool tracker_check(const struct tracker_options *options, bool needs_token, struct error *error)
{
	const char *url = options->endpoint.url;

	if (url && transfer_url_problem(url))
		return error_set(error, ERROR_USAGE, "url: %s", transfer_url_problem(url));
	return !needs_token || options->token || options->token_file ||
	       error_set(error, ERROR_USAGE, "\"token\" or \"token_file\" is missing");
}

const char *tracker_id(struct arena *arena, const json_t *value)
{
	const char *text = json_string_value(value);

	if (json_is_integer(value))
		return arena_printf(arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return text && *text && !strpbrk(text, " /?#%") ? arena_strdup(arena, text) : NULL;
}

json_t *tracker_array(const struct tracker_request *request, const struct strings *texts)
{
	json_t *array;

	if (request->ask != TRACKER_CREATE || request->bare || texts->count == 0)
		return NULL;
	array = json_array();
	for (size_t i = 0; i < texts->count; i++)
		json_array_append_new(array, json_string(texts->items[i]));
	return array;
}
