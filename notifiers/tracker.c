/*
 * An attempt is a chain of requests, each after the answer to the one before. After a lost answer
 * the chain starts again and first looks for what may exist; every write can be repeated.
 */
#include "notifiers/tracker.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/secret.h"
#include "agent/base/utf8.h"

enum {
	PAGES_MOST = 10,
	WORDS_MOST = 200,
	LIMIT_WAIT = 60000,
	NAME_CHARS = 120,
	SIGN = 120,
	TEXT_LEAST = 1000,
	TURNS_MOST = 1000000
};

const char *const tracker_on_names[] = {"issue", "commit", NULL};

/* The purpose of reading the comments. */
enum purpose { LOOK_FOR_OWN, LOOK_FOR_SAID, LOOK_FOR_OPEN };

struct session {
	struct tracker_request request; /* the last one */
	struct tracker_target target;   /* of this message */
	const char *title, *text, *commit;
	const char *token;
	const char *words; /* of the answer that it is not there */
	bool note;         /* it is not about changes that are open or over */
	bool doubt;        /* an attempt before may have made it */
	bool made;         /* this one has */
	bool over;         /* all of it */
	bool standing;     /* of another comment on the issue something is open */
	bool said;
	enum purpose purpose;
	int64_t turns;                 /* number of changes between open and over */
	const struct message *message; /* of an amendment: that it is about */
	const char *rest;              /* text that users have written below */
	enum tracker_state state;      /* that the issue is to have */
	bool closed;                   /* it is */
};

/* Its word is "open", "over", or "note" of a text that is about neither, such as a reminder. */
struct mark {
	bool found, open, over;
	int64_t turns;
	const char *end; /* behind it in the text */
};

static const struct tracker_options *options_of(const struct attempt *attempt)
{
	return attempt->options;
}

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

/* "hunter-c KEY said 2" */
static bool has_said(struct arena *arena, const char *text, const char *key, int64_t turn)
{
	const char *sign = arena_printf(arena, "hunter-c %s said %" PRId64, key, turn);
	const char *at = text ? strstr(text, sign) : NULL;

	return at && !(at[strlen(sign)] >= '0' && at[strlen(sign)] <= '9');
}

static void put_mark(struct buf *out, const struct tracker *tracker, const char *key,
	const char *state, int64_t turns)
{
	buf_printf(out, "\n%shunter-c %s %s %" PRId64 "%s", tracker->hide_from, key, state, turns,
		tracker->hide_to);
}

/* The text with its mark, and the text that users have written below. */
static const char *with_mark(
	const struct tracker *tracker, struct attempt *attempt, const char *text, int64_t turns)
{
	const struct session *session = attempt->state;
	struct buf out = {0};

	buf_text(&out, text);
	while (out.length > 0 && out.data[out.length - 1] == '\n')
		out.length--;
	buf_text(&out, "\n");
	put_mark(&out, tracker, attempt->key,
		session->note   ? "note"
		: session->over ? "over"
				: "open",
		turns);
	if (session->rest)
		buf_text(&out, session->rest);
	return buf_keep(&out, attempt->arena);
}

static struct tracker_target target_read(struct arena *arena, const char *receipt)
{
	struct tracker_target target = {0};
	char *words = arena_strdup(arena, receipt ? receipt : ""), *rest = words;
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

/* "issue 12", "issue 12 comment 345", "commit 6dcb09b5 comment 345" */
static const char *target_write(struct arena *arena, const struct tracker_target *target)
{
	return arena_printf(arena, "%s %s%s%s", target->issue ? "issue" : "commit",
		target->issue ? target->issue : target->commit, target->comment ? " comment " : "",
		target->comment ? target->comment : "");
}

static enum step fail(const struct tracker *tracker, struct attempt *attempt, bool retry,
	enum error_kind kind, const char *what, struct error *error)
{
	return http_json_fail(&tracker->shape, attempt, retry, kind, what, error);
}

static enum step ask(const struct tracker *tracker, struct attempt *attempt, enum tracker_ask what,
	struct transfer *next)
{
	struct session *session = attempt->state;
	bool again = what == session->request.ask;

	session->request.ask = what;
	session->request.target = session->target;
	session->request.page = again ? session->request.page + 1 : 1;
	session->request.key = attempt->key;
	tracker->ask(&session->request, attempt, next);
	next->bearer = session->token;
	return STEP_TRANSFER;
}

static enum step ask_comments(const struct tracker *tracker, struct attempt *attempt,
	enum purpose purpose, struct transfer *next)
{
	struct session *session = attempt->state;

	session->purpose = purpose;
	session->request.page = 0;
	return ask(tracker, attempt, TRACKER_COMMENTS, next);
}

static enum step create(
	const struct tracker *tracker, struct attempt *attempt, struct transfer *next)
{
	struct session *session = attempt->state;

	session->target = (struct tracker_target){0};
	session->request.title = session->title;
	session->request.text = with_mark(tracker, attempt, session->text, 0);
	return ask(tracker, attempt, TRACKER_CREATE, next);
}

static enum step comment(
	const struct tracker *tracker, struct attempt *attempt, struct transfer *next)
{
	struct session *session = attempt->state;

	session->request.text = with_mark(tracker, attempt, session->text, 0);
	return ask(tracker, attempt, TRACKER_COMMENT, next);
}

/* Looks first for one that may exist already. */
static enum step make(const struct tracker *tracker, struct attempt *attempt, struct transfer *next)
{
	struct session *session = attempt->state;

	session->request.page = 0;
	if (session->target.issue || session->target.commit)
		return session->doubt ? ask_comments(tracker, attempt, LOOK_FOR_OWN, next)
				      : comment(tracker, attempt, next);
	return session->doubt ? ask(tracker, attempt, TRACKER_LIST, next)
			      : create(tracker, attempt, next);
}

static int64_t lag_of(const struct tracker *tracker, const struct attempt *attempt)
{
	return tracker->lag ? tracker->lag(attempt->options) : 0;
}

static bool read_payload(struct attempt *attempt)
{
	struct session *session = attempt->state;
	json_t *payload = json_loads(attempt->payload ? attempt->payload : "", 0, NULL);

	session->title =
		arena_strdup(attempt->arena, json_string_value(json_object_get(payload, "title")));
	session->text =
		arena_strdup(attempt->arena, json_string_value(json_object_get(payload, "text")));
	session->commit =
		arena_strdup(attempt->arena, json_string_value(json_object_get(payload, "commit")));
	session->note = json_is_true(json_object_get(payload, "note"));
	json_decref(payload);
	return session->title && session->text;
}

static bool read_token(struct attempt *attempt, struct error *error)
{
	const struct tracker_options *options = options_of(attempt);
	struct session *session = attempt->state;

	session->token = options->token;
	return !options->token_file || secret_read(attempt->arena, "token_file",
					       options->token_file, &session->token, error);
}

/* A trend has no commit, nor has a crowd of changes that suspect different ones. */
static enum step begin_message(const struct tracker *tracker, struct attempt *attempt,
	struct transfer *next, struct error *error)
{
	struct session *session = attempt->state;
	int64_t since = attempt->now - attempt->made;

	session->doubt = attempt->maybe_delivered != MAYBE_DELIVERED_NO;
	if (!read_payload(attempt))
		return fail(
			tracker, attempt, false, ERROR_DATA, "the message is unreadable", error);
	if (session->doubt && since >= 0 && since < lag_of(tracker, attempt)) {
		attempt->retry_after = lag_of(tracker, attempt) - since;
		return fail(tracker, attempt, true, ERROR_DATA,
			"an issue may have been made, and is not found yet", error);
	}
	session->target = target_read(attempt->arena, attempt->thread);
	session->target.comment = NULL;
	if (options_of(attempt)->on != TRACKER_ON_COMMIT || !session->commit)
		return make(tracker, attempt, next);
	session->target = (struct tracker_target){.commit = session->commit};
	return ask(tracker, attempt, TRACKER_COMMIT, next);
}

/* Renders the text to fit beside that of the users, which is never cut. */
static void fit_text(const struct tracker *tracker, struct attempt *attempt)
{
	struct session *session = attempt->state;
	size_t taken = SIGN + (session->rest ? strlen(session->rest) : 0);
	struct buf text = {0};

	body_fit(&text, session->message, tracker->style,
		taken + TEXT_LEAST < tracker->text ? tracker->text - taken : TEXT_LEAST);
	session->text = buf_keep(&text, attempt->arena);
}

static enum step begin_amend(const struct tracker *tracker, struct attempt *attempt,
	struct transfer *next, struct error *error)
{
	const struct follow_up *follow_up = attempt->follow_up;
	struct session *session = attempt->state;
	struct message *message = arena_alloc(attempt->arena, sizeof *message);

	session->target = target_read(attempt->arena, attempt->receipt);
	if (follow_up->kind != FOLLOW_UP_AMEND ||
		(!session->target.issue && !session->target.commit)) {
		attempt->follow_up->gone = true;
		return fail(tracker, attempt, false, ERROR_DATA,
			"no issue recorded for the message", error);
	}
	session->over = true;
	for (size_t i = 0; i < follow_up->count; i++)
		session->over = session->over && announced_is_over(&follow_up->changes[i]);
	*message = body_of_announced(attempt->arena, follow_up->changes, follow_up->count);
	session->message = message;
	fit_text(tracker, attempt);
	if (!session->target.comment)
		return ask(tracker, attempt, TRACKER_READ, next);
	session->request.text = with_mark(tracker, attempt, session->text, 0);
	return ask(tracker, attempt, TRACKER_EDIT, next);
}

static enum step done(struct attempt *attempt)
{
	const struct session *session = attempt->state;

	if (!attempt->follow_up)
		attempt->receipt = target_write(attempt->arena, &session->target);
	return STEP_DONE;
}

/* After a comment: its changes, too, decide whether the issue is closed. */
static enum step settle(
	const struct tracker *tracker, struct attempt *attempt, struct transfer *next)
{
	struct session *session = attempt->state;

	session->made = true;
	if (session->note || !session->target.issue || !options_of(attempt)->close)
		return done(attempt);
	return ask(tracker, attempt, TRACKER_READ, next);
}

/* "1 recovered, 1 no longer found, 2 expected" */
static void put_ends(struct buf *out, const struct follow_up *follow_up)
{
	size_t counts[TRIAGE_STATES] = {0}, recovered = 0, withdrawn = 0;
	const char *between = "";

	for (size_t i = 0; i < follow_up->count; i++) {
		const struct announced_change *change = &follow_up->changes[i];

		recovered += change->state == ANNOUNCED_RECOVERED;
		withdrawn += change->state == ANNOUNCED_WITHDRAWN;
		if (change->state == ANNOUNCED_STANDS)
			counts[change->triage.state ? change->triage.state : TRIAGE_OPEN]++;
	}
	if (recovered > 0)
		buf_printf(out, "%zu recovered", recovered);
	if (withdrawn > 0)
		buf_printf(out, "%s%zu no longer found", recovered > 0 ? ", " : "", withdrawn);
	between = out->length > 0 && recovered + withdrawn > 0 ? ", " : "";
	for (size_t i = 1; i < TRIAGE_STATES; i++)
		if (counts[i] > 0) {
			buf_printf(out, "%s%zu %s", between, counts[i], triage_state_names[i]);
			between = ", ";
		}
}

static const char *turn_text(const struct tracker *tracker, struct attempt *attempt)
{
	const struct session *session = attempt->state;
	struct buf out = {0}, ends = {0};

	put_ends(&ends, attempt->follow_up);
	buf_printf(&out, "%s: %s.\n", session->over ? "All over" : "Open again", ends.data);
	put_mark(&out, tracker, attempt->key, "said", session->turns);
	buf_free(&ends);
	return buf_keep(&out, attempt->arena);
}

/* The mark is written last: as long as it is not, the state is seen to again. */
static enum step write_state(
	const struct tracker *tracker, struct attempt *attempt, struct transfer *next)
{
	struct session *session = attempt->state;
	bool close = session->request.state == TRACKER_CLOSED;

	if (tracker->moves && session->request.state != TRACKER_KEEP && session->closed != close)
		return ask(tracker, attempt, TRACKER_WAYS, next);
	if (tracker->moves && !session->request.text)
		return done(attempt);
	return ask(tracker, attempt, TRACKER_WRITE, next);
}

static enum step write_issue(
	const struct tracker *tracker, struct attempt *attempt, struct transfer *next)
{
	struct session *session = attempt->state;
	bool close = options_of(attempt)->close && session->over && !session->standing;

	session->request.text = with_mark(tracker, attempt, session->text, session->turns);
	session->request.state = !session->said  ? TRACKER_KEEP
				 : close         ? TRACKER_CLOSED
				 : session->over ? TRACKER_KEEP
						 : TRACKER_OPEN;
	return write_state(tracker, attempt, next);
}

/* The existing issue; `said` from here on: its open state has changed, which is or will be
 * commented. */
static enum step take_issue(const struct tracker *tracker, struct attempt *attempt,
	const struct tracker_item *issue, struct transfer *next)
{
	struct session *session = attempt->state;
	struct mark mark = find_mark(issue->text, attempt->key);

	session->closed = issue->closed;
	session->turns = mark.turns;
	session->rest = mark.found ? strchr(mark.end, '\n') : NULL;
	if (session->rest)
		fit_text(tracker, attempt);
	if (mark.found && mark.over == session->over) {
		const char *text = with_mark(tracker, attempt, session->text, session->turns);

		return strcmp(text, issue->text) == 0 ? done(attempt)
						      : write_issue(tracker, attempt, next);
	}
	if (!mark.found && !session->over)
		return write_issue(tracker, attempt, next);
	session->turns++;
	return ask_comments(tracker, attempt, LOOK_FOR_SAID, next);
}

/* Its state alone. */
static enum step turn_issue(const struct tracker *tracker, struct attempt *attempt,
	enum tracker_state state, struct transfer *next)
{
	struct session *session = attempt->state;

	session->request.text = NULL;
	session->request.state = state;
	return write_state(tracker, attempt, next);
}

/* The issue of a comment that has been written. */
static enum step settle_issue(const struct tracker *tracker, struct attempt *attempt,
	const struct tracker_item *issue, struct transfer *next)
{
	struct session *session = attempt->state;
	struct mark mark = find_mark(issue->text, NULL);

	if (!mark.found || !mark.over || issue->closed == session->over)
		return done(attempt);
	session->closed = issue->closed;
	if (session->over)
		return ask_comments(tracker, attempt, LOOK_FOR_OPEN, next);
	return turn_issue(tracker, attempt, TRACKER_OPEN, next);
}

/* Takes a comment; true: it is the wanted one. */
static bool take_comment(struct attempt *attempt, const struct tracker_item *item)
{
	struct session *session = attempt->state;
	struct mark mark;

	if (session->purpose == LOOK_FOR_OWN) {
		if (!find_mark(item->text, attempt->key).found)
			return false;
		session->target.comment = item->id;
		return true;
	}
	if (session->purpose == LOOK_FOR_SAID &&
		has_said(attempt->arena, item->text, attempt->key, session->turns))
		session->said = true;
	mark = find_mark(item->text, NULL);
	session->standing = session->standing || mark.open;
	return false;
}

static enum step comments_read(
	const struct tracker *tracker, struct attempt *attempt, struct transfer *next)
{
	struct session *session = attempt->state;

	switch (session->purpose) {
	case LOOK_FOR_OWN: return comment(tracker, attempt, next);
	case LOOK_FOR_OPEN:
		if (session->standing)
			return done(attempt);
		return turn_issue(tracker, attempt, TRACKER_CLOSED, next);
	case LOOK_FOR_SAID: break;
	}
	if (session->said)
		return write_issue(tracker, attempt, next);
	session->said = true;
	session->request.text = turn_text(tracker, attempt);
	return ask(tracker, attempt, TRACKER_COMMENT, next);
}

static enum step take_list(const struct tracker *tracker, struct attempt *attempt,
	const json_t *answer, struct transfer *next, struct error *error)
{
	struct session *session = attempt->state;
	const json_t *list = tracker->list(answer, session->request.ask);
	size_t count = json_array_size(list);
	struct tracker_item item;

	if (!json_is_array(list))
		return fail(tracker, attempt, true, ERROR_DATA, "the answer is no list", error);
	for (size_t i = 0; i < count; i++) {
		item = (struct tracker_item){0};
		if (!tracker->item(
			    json_array_get(list, i), session->request.ask, attempt->arena, &item))
			continue;
		if (session->request.ask == TRACKER_COMMENTS) {
			if (take_comment(attempt, &item))
				return settle(tracker, attempt, next);
		} else if (find_mark(item.text, attempt->key).found) {
			session->target.issue = item.id;
			return done(attempt);
		}
	}
	if (count >= tracker->page && session->request.page < PAGES_MOST)
		return ask(tracker, attempt, session->request.ask, next);
	return session->request.ask == TRACKER_COMMENTS ? comments_read(tracker, attempt, next)
							: create(tracker, attempt, next);
}

/* A transition to where the issue belongs, if it can be to where new ones are. */
static enum step take_ways(const struct tracker *tracker, struct attempt *attempt,
	const json_t *answer, struct transfer *next)
{
	struct session *session = attempt->state;
	const json_t *list = tracker->list(answer, TRACKER_WAYS);
	bool close = session->request.state == TRACKER_CLOSED;
	struct tracker_item way, best = {0};

	for (size_t i = 0; i < json_array_size(list); i++) {
		way = (struct tracker_item){0};
		if (tracker->item(json_array_get(list, i), TRACKER_WAYS, attempt->arena, &way) &&
			way.closed == close && (!best.id || (way.fresh && !best.fresh)))
			best = way;
	}
	session->request.way = best.id;
	if (best.id)
		return ask(tracker, attempt, TRACKER_MOVE, next);
	attempt->notice = arena_printf(attempt->arena, "%s: issue %s has no transition to %s it",
		tracker->shape.name, session->target.issue, close ? "close" : "reopen");
	session->closed = close;
	return write_state(tracker, attempt, next);
}

static enum step moved(
	const struct tracker *tracker, struct attempt *attempt, struct transfer *next)
{
	struct session *session = attempt->state;

	session->closed = session->request.state == TRACKER_CLOSED;
	return write_state(tracker, attempt, next);
}

static enum step take_made(const struct tracker *tracker, struct attempt *attempt,
	const struct tracker_item *item, struct transfer *next)
{
	struct session *session = attempt->state;

	if (session->request.ask == TRACKER_CREATE) {
		session->target.issue = item->id;
		return done(attempt);
	}
	if (session->request.ask == TRACKER_COMMIT) {
		session->target.commit = item->id;
		return make(tracker, attempt, next);
	}
	if (attempt->follow_up)
		return write_issue(tracker, attempt, next);
	session->target.comment = item->id;
	return settle(tracker, attempt, next);
}

static enum step deleted(const struct tracker *tracker, struct attempt *attempt,
	struct transfer *next, struct error *error)
{
	struct session *session = attempt->state;

	if (attempt->follow_up) {
		attempt->follow_up->gone = attempt->follow_up->deleted = true;
		return fail(tracker, attempt, false, ERROR_DATA, session->words, error);
	}
	if (session->made) /* the comment exists */
		return done(attempt);
	session->target = (struct tracker_target){0};
	return make(tracker, attempt, next);
}

static enum step take_answer(const struct tracker *tracker, struct attempt *attempt,
	const json_t *answer, struct transfer *next, struct error *error)
{
	struct session *session = attempt->state;
	struct tracker_item item = {0};

	switch (session->request.ask) {
	case TRACKER_LIST:
	case TRACKER_COMMENTS: return take_list(tracker, attempt, answer, next, error);
	case TRACKER_WAYS: return take_ways(tracker, attempt, answer, next);
	case TRACKER_MOVE: return moved(tracker, attempt, next);
	case TRACKER_WRITE: return done(attempt);
	case TRACKER_HOME: return deleted(tracker, attempt, next, error);
	case TRACKER_EDIT: return settle(tracker, attempt, next);
	case TRACKER_CREATE:
	case TRACKER_READ:
	case TRACKER_COMMENT:
	case TRACKER_COMMIT: break;
	}
	if (!tracker->item(answer, session->request.ask, attempt->arena, &item) || !item.id)
		return fail(tracker, attempt, true, ERROR_DATA, "unexpected answer", error);
	if (session->request.ask != TRACKER_READ)
		return take_made(tracker, attempt, &item, next);
	return session->made ? settle_issue(tracker, attempt, &item, next)
			     : take_issue(tracker, attempt, &item, next);
}

/* The error text of an answer: {"message": "Validation Failed", ...}, {"errorMessages": [..],
 * "errors": {"assignee": "..."}}. */
static const char *words_of(struct attempt *attempt, const struct reply *reply)
{
	json_t *answer = json_loadb(reply->body, reply->length, 0, NULL);
	const json_t *message = json_object_get(answer, "message");
	json_t *errors = json_object_get(answer, "errors");
	const char *words;
	char *text;

	if (!message)
		message = json_object_get(answer, "error");
	if (!message)
		message = json_array_get(json_object_get(answer, "errorMessages"), 0);
	words = json_string_value(message);
	text = !words && json_is_object(message) ? json_dumps(message, JSON_COMPACT)
	       : json_object_size(errors) > 0 || json_array_size(errors) > 0
		       ? json_dumps(errors, JSON_COMPACT)
		       : NULL;
	words = arena_printf(attempt->arena, "HTTP status %d%s%s%s%s", reply->status,
		words ? ": " : "", words ? words : "", text ? ": " : "", text ? text : "");
	free(text);
	json_decref(answer);
	return secret_cut(attempt->arena, words, WORDS_MOST, &reply->secrets);
}

/* GitHub also uses 403 for rate limits. */
static bool is_limit(const struct reply *reply, const char *words)
{
	return reply->status == 429 ||
	       (reply->status == 403 &&
		       (reply->retry_after >= 0 || strcasestr(words, "rate limit")));
}

/* Another way to the same, if the status is known to mean that this one is barred. */
static bool has_another_way(const struct tracker *tracker, struct attempt *attempt,
	const struct reply *reply, struct transfer *next)
{
	const struct tracker_options *options = options_of(attempt);
	struct session *session = attempt->state;
	bool adorned = options->labels.count + options->assignees.count > 0 || options->assignee;
	bool invalid = reply->status == 400 || reply->status == 422;
	bool missing = reply->status == 404 || reply->status == 410;

	if (session->request.ask == TRACKER_CREATE && invalid && adorned &&
		!session->request.bare) {
		session->request.bare = true;
		attempt->notice =
			arena_printf(attempt->arena, "%s: %s: made without labels and assignees",
				tracker->shape.name, words_of(attempt, reply));
		(void)ask(tracker, attempt, TRACKER_CREATE, next);
		return true;
	}
	if (session->request.ask == TRACKER_LIST && missing && tracker->moves &&
		!session->request.other) {
		session->request.other = true;
		session->request.page = 0;
		(void)ask(tracker, attempt, TRACKER_LIST, next);
		return true;
	}
	if (session->request.ask == TRACKER_COMMIT && (missing || invalid)) {
		session->target = (struct tracker_target){0};
		(void)make(tracker, attempt, next);
		return true;
	}
	return false;
}

/* A 404 is an issue that was deleted, or one that the token may not see any more: then it may not
 * see the repository or project either. */
static enum step take_refusal(const struct tracker *tracker, struct attempt *attempt,
	const struct reply *reply, struct transfer *next, struct error *error)
{
	struct session *session = attempt->state;
	const char *words = words_of(attempt, reply);
	bool about_it = session->request.ask == TRACKER_EDIT ||
			(session->target.issue && session->request.ask != TRACKER_CREATE &&
				session->request.ask != TRACKER_HOME);
	bool body = reply->status == 400 || reply->status == 413 || reply->status == 422;

	if (is_limit(reply, words)) {
		if (reply->retry_after < 0)
			attempt->retry_after = LIMIT_WAIT;
		return fail(tracker, attempt, true, ERROR_DATA, words, error);
	}
	if (has_another_way(tracker, attempt, reply, next))
		return STEP_TRANSFER;
	if (about_it && (reply->status == 410 || reply->status == 404)) {
		session->words = words;
		return reply->status == 410 ? deleted(tracker, attempt, next, error)
					    : ask(tracker, attempt, TRACKER_HOME, next);
	}
	if (http_json_passes(reply->status))
		return fail(tracker, attempt, true, ERROR_DATA, words, error);
	if (body && attempt->follow_up)
		attempt->follow_up->gone = true;
	return fail(tracker, attempt, false, body ? ERROR_DATA : ERROR_USAGE, words, error);
}

static enum step read_answer(const struct tracker *tracker, struct attempt *attempt,
	const struct reply *reply, struct transfer *next, struct error *error)
{
	json_t *answer;
	enum step step;

	attempt->retry_after = reply->retry_after;
	if (reply->kind != REPLY_ANSWER)
		return fail(tracker, attempt, true, ERROR_DATA,
			reply->problem ? reply->problem : "no answer", error);
	if (reply->status < 200 || reply->status > 299)
		return take_refusal(tracker, attempt, reply, next, error);
	answer = json_loadb(reply->body, reply->length, 0, NULL);
	step = take_answer(tracker, attempt, answer, next, error);
	json_decref(answer);
	return step;
}

/* Whether a failed attempt may have left something behind. */
static bool in_doubt(const struct session *session, const struct reply *last)
{
	bool making =
		session->request.ask == TRACKER_CREATE || session->request.ask == TRACKER_COMMENT;

	if (!making || !last)
		return session->doubt || session->made;
	if (last->kind == REPLY_ANSWER)
		return last->status >= 500 || last->status < 300;
	return last->kind != REPLY_UNREACHABLE;
}

enum step tracker_step(const struct tracker *tracker, struct attempt *attempt,
	const struct reply *last, struct transfer *next, struct error *error)
{
	bool doubt = attempt->maybe_delivered != MAYBE_DELIVERED_NO;
	struct session *session = attempt->state;
	enum step step;

	attempt->retry = false;
	attempt->retry_after = -1;
	if (!last) {
		attempt->state = session = arena_alloc(attempt->arena, sizeof *session);
		session->doubt = doubt;
		if (!read_token(attempt, error))
			step = fail(tracker, attempt, false, ERROR_USAGE,
				arena_strdup(attempt->arena, error->text), error);
		else
			step = attempt->follow_up ? begin_amend(tracker, attempt, next, error)
						  : begin_message(tracker, attempt, next, error);
	} else {
		step = read_answer(tracker, attempt, last, next, error);
	}
	attempt->maybe_delivered = MAYBE_DELIVERED_NO;
	if (step == STEP_FAILED && !attempt->follow_up && in_doubt(session, last)) {
		attempt->maybe_delivered = MAYBE_DELIVERED_CHECK;
		if (attempt->retry && attempt->retry_after < lag_of(tracker, attempt))
			attempt->retry_after = lag_of(tracker, attempt);
	}
	return step;
}

/* What ends a mention, a reference or an address in plain text: a zero-width space. */
static void put_title(struct buf *out, const char *text, size_t bytes)
{
	struct buf whole = {0};

	for (; *text; text++) {
		buf_char(&whole, *text);
		if (strchr("@#!&~%$", *text) || strncmp(text, ":/", 2) == 0)
			buf_text(&whole, "\xe2\x80\x8b");
	}
	if (whole.length > 0)
		buf_json_string(out, whole.data, utf8_cut(whole.data, bytes));
	buf_free(&whole);
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

void tracker_render(
	const struct tracker *tracker, const struct message *message, struct buf *payload)
{
	struct buf text = {0};
	const char *commit = commit_of(message);

	body_title(&text, message);
	if (message->count == 1 && message->items[0].members == 0) {
		buf_text(&text, ": ");
		buf_clean(&text, message->items[0].metric, NAME_CHARS);
	}
	buf_text(payload, "{\"title\":");
	put_title(payload, text.length > 0 ? text.data : "hunter-c", tracker->title);
	buf_clear(&text);
	body_fit(&text, message, tracker->style, tracker->text - SIGN);
	buf_text(payload, ",\"text\":");
	buf_json_string(payload, text.data, text.length);
	buf_text(payload, ",\"commit\":");
	buf_json_text(payload, commit);
	if ((MESSAGES_OF_CHANGES & 1u << message->kind) == 0)
		buf_text(payload, ",\"note\":true");
	buf_char(payload, '}');
	buf_free(&text);
}

bool tracker_check(const struct tracker_options *options, bool needs_token, struct error *error)
{
	const char *url = options->endpoint.url;

	if (url && transfer_url_problem(url))
		return error_set(error, ERROR_USAGE, "url: %s", transfer_url_problem(url));
	if (options->token && options->token_file)
		return error_set(error, ERROR_USAGE, "token and token_file are mutually exclusive");
	if (needs_token && !options->token && !options->token_file)
		return error_set(error, ERROR_USAGE, "\"token\" or \"token_file\" is missing");
	return !options->token || secret_check("token", options->token, error);
}

void tracker_send(struct attempt *attempt, struct transfer *next, const char *method,
	const char *base, const char *path, json_t *body, struct pairs headers)
{
	const struct tracker_options *options = options_of(attempt);
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

	*next = http_json_request(attempt, &options->endpoint, method,
		transfer_join_url(attempt->arena, base, path), arena_strdup(attempt->arena, text),
		headers);
	free(text);
	json_decref(body);
}

const char *tracker_id(struct arena *arena, const json_t *value)
{
	const char *text = json_string_value(value);

	if (json_is_integer(value))
		return arena_printf(arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return text && *text && !strpbrk(text, " /?#%") ? arena_strdup(arena, text) : NULL;
}

json_t *tracker_array(const struct strings *texts)
{
	json_t *array = json_array();

	for (size_t i = 0; i < texts->count; i++)
		json_array_append_new(array, json_string(texts->items[i]));
	return array;
}
