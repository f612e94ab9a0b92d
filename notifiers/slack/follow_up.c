/*
 * If Slack rejects the blocks, as it may have done when the message was posted, it is edited
 * without its charts, and then as plain text.
 */
#include "notifiers/slack/follow_up.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/secret.h"
#include "agent/base/utf8.h"
#include "notifiers/http_json.h"
#include "notifiers/slack/api.h"
#include "notifiers/slack/lines.h"
#include "notifiers/slack/options.h"
#include "notifiers/slack/render.h"

enum {
	TEXT_MOST = 4000, /* of a message without blocks */
	GROUPS_MOST = 4,
	NAMED_MOST = 3, /* changes named on a line */
	PERSON_MOST = 80,
	NOTE_MOST = 300,
	LINK_MOST = 300,
	CULPRITS_MOST = 2,
	VERDICT_MOST = 160,
};

struct state {
	struct slack_receipt receipt;
	bool bare;  /* the blocks were rejected: those without charts, ... */
	bool plain; /* ... and these: the text alone */
};

/* The person's name; a user of Slack as a mention, which Slack shows as a name. */
static void person(struct buf *out, const char *name)
{
	static const char id[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t length = strlen(name);

	if ((*name == 'U' || *name == 'W') && length > 8 && length < 20 &&
		strspn(name, id) == length)
		buf_printf(out, "<@%s>", name);
	else
		slack_escaped(out, name, PERSON_MOST);
}

/* ":eyes: *acknowledged* (2 of 5) by ann, owner bob, until <date>: looking (link)". The link is a
 * page's address, which must not end it early. */
static void triage_line(struct buf *out, const struct slack_options *options,
	const struct triage *triage, size_t count, size_t all)
{
	const char *link = triage->link ? triage->link : "";
	size_t length;
	const char *emoji = slack_emoji_of(options, triage->state, &length);

	if (emoji)
		buf_printf(out, ":%.*s: ", (int)length, emoji);
	buf_printf(out, "*%s*",
		triage->state != TRIAGE_OPEN ? triage_state_names[triage->state]
		: triage->version > 0        ? "open again"
					     : "open");
	if (count < all)
		buf_printf(out, " (%zu of %zu)", count, all);
	if (triage->person && *triage->person) {
		buf_text(out, " by ");
		person(out, triage->person);
	}
	if (triage->owner && *triage->owner) {
		buf_text(out, ", owner ");
		person(out, triage->owner);
	}
	if (triage->until > 0) {
		buf_text(out, ", until ");
		slack_date(out, triage->until, TEXT_MINUTE);
	}
	if (triage->note && *triage->note) {
		buf_text(out, ": ");
		slack_escaped(out, triage->note, NOTE_MOST);
	}
	if (strlen(link) <= LINK_MOST && !transfer_url_problem(link) &&
		!link[strcspn(link, "<>|\" \t\r\n")])
		buf_printf(out, " <%s|link>", link);
}

/* How changes stand that have a line. */
enum standing { RECOVERED, WITHDRAWN, MOVED };

static bool stands(const struct announced_change *change, enum standing standing)
{
	switch (standing) {
	case RECOVERED: return change->state == ANNOUNCED_RECOVERED;
	case WITHDRAWN: return change->state == ANNOUNCED_WITHDRAWN;
	case MOVED: return change->state == ANNOUNCED_STANDS && change->told != change->item.time;
	}
	return false;
}

/* "*recovered* (1 of 3): db.read p99 +24%"; names them only if it is not all of them, or if they
 * have moved, with the time. */
static void standing_line(
	struct buf *out, const struct follow_up *follow_up, enum standing standing)
{
	static const char *const heads[] = {[RECOVERED] = ":large_green_circle: *recovered*",
		[WITHDRAWN] = "*no longer found*",
		[MOVED] = "*moved*"};
	size_t count = 0, named = 0;

	for (size_t i = 0; i < follow_up->count; i++)
		count += stands(&follow_up->changes[i], standing);
	if (count == 0)
		return;
	buf_printf(out, "%s%s", out->length > 0 ? "\n" : "", heads[standing]);
	if (count < follow_up->count)
		buf_printf(out, " (%zu of %zu)", count, follow_up->count);
	else if (standing != MOVED)
		return;
	for (size_t i = 0; i < follow_up->count && named < NAMED_MOST; i++) {
		const struct announced_change *change = &follow_up->changes[i];

		if (!stands(change, standing))
			continue;
		buf_text(out, named++ == 0 ? ": " : ", ");
		slack_short_line(out, &change->item);
		if (standing == MOVED) {
			buf_text(out, " to ");
			slack_date(out, change->item.time, TEXT_MINUTE);
		}
	}
	if (count > NAMED_MOST)
		buf_printf(out, " and %zu more", count - NAMED_MOST);
}

/* ":mag: p99 +24%: first bad: 4f2c91a (97%), ..."; a bisection is of one change. */
static void culprit_lines(struct buf *out, const struct follow_up *follow_up)
{
	size_t shown = 0;

	for (size_t i = 0; i < follow_up->count && shown < CULPRITS_MOST; i++) {
		const struct announcement *item = &follow_up->changes[i].item;

		if (!item->culprit)
			continue;
		buf_text(out, out->length > 0 ? "\n:mag: " : ":mag: ");
		if (follow_up->count > 1) {
			slack_short_line(out, item);
			buf_text(out, ": ");
		}
		slack_escaped(out, item->culprit->verdict, VERDICT_MOST);
		shown++;
	}
}

static const struct announcement *worse(const struct announcement *a, const struct announcement *b)
{
	return !a || announcement_compare_weight(b, a) < 0 ? b : a;
}

/* "*5 changes by now*, the worst: db.read p99 +24%": the headline including the thread. */
static void joined_line(struct buf *out, const struct follow_up *follow_up)
{
	const struct announcement *worst = NULL;
	size_t count = follow_up->joined_count;

	if (count == 0)
		return;
	for (size_t i = 0; i < follow_up->count; i++) {
		if (stands(&follow_up->changes[i], WITHDRAWN))
			continue;
		worst = worse(worst, &follow_up->changes[i].item);
		count++;
	}
	for (size_t i = 0; i < follow_up->joined_count; i++)
		worst = worse(worst, &follow_up->joined[i].item);
	buf_printf(out, "*%zu change%s by now*, the worst: ", count, count == 1 ? "" : "s");
	slack_short_line(out, worst);
}

static bool same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same(const struct triage *a, const struct triage *b)
{
	return a->state == b->state && (a->version > 0) == (b->version > 0) &&
	       a->until == b->until && same_text(a->person, b->person) &&
	       same_text(a->owner, b->owner) && same_text(a->note, b->note) &&
	       same_text(a->link, b->link);
}

/* A line for all changes with the same triage. */
static void triage_lines(
	struct buf *out, const struct slack_options *options, const struct follow_up *follow_up)
{
	const struct announced_change *changes = follow_up->changes;
	size_t groups = 0, shown = 0;
	struct buf line = {0};

	for (size_t i = 0; i < follow_up->count; i++) {
		size_t count = 0, first = 0;

		while (!same(&changes[first].triage, &changes[i].triage))
			first++;
		if (first < i)
			continue;
		for (size_t k = i; k < follow_up->count; k++)
			count += same(&changes[k].triage, &changes[i].triage);
		buf_clear(&line);
		triage_line(&line, options, &changes[i].triage, count, follow_up->count);
		if (groups == GROUPS_MOST || out->length + line.length + 50 > SLACK_TRIAGE)
			break;
		if (groups++ > 0)
			buf_char(out, '\n');
		buf_append(out, line.data, line.length);
		shown += count;
	}
	if (shown < follow_up->count)
		buf_printf(out, "%sand %zu more", shown > 0 ? "\n" : "", follow_up->count - shown);
	buf_free(&line);
}

/* Bytes of all text within, which is never fewer than the characters that Slack counts. */
static size_t text_within(json_t *value)
{
	size_t bytes = 0, index;
	const char *key;
	json_t *item;

	if (json_is_array(value)) {
		json_array_foreach(value, index, item)
		{
			bytes += text_within(item);
		}
	} else if (json_is_object(value)) {
		json_object_foreach(value, key, item)
		{
			bytes += strcmp(key, "text") == 0 && json_is_string(item)
					 ? json_string_length(item)
					 : text_within(item);
		}
	}
	return bytes;
}

static void add_text(json_t *message, const struct buf *line)
{
	const char *text = json_text(message, "text");
	struct buf whole = {0};

	text = text ? text : "";
	buf_append(&whole, text, utf8_cut(text, TEXT_MOST - 1 - SLACK_TRIAGE));
	buf_printf(&whole, "\n%s", line->data);
	json_object_set_new(message, "text", json_stringn(whole.data, whole.length));
	json_object_del(message, "blocks");
	buf_free(&whole);
}

/* The lines to add to the message. Those apart from triage are shorter than two thirds of
 * SLACK_TRIAGE but for long names. */
static void write_lines(struct buf *out, const struct attempt *attempt)
{
	const struct follow_up *follow_up = attempt->follow_up;
	bool triaged = false;
	struct buf part = {0};

	joined_line(out, follow_up);
	for (enum standing standing = RECOVERED; standing <= MOVED; standing++)
		standing_line(out, follow_up, standing);
	culprit_lines(out, follow_up);
	if (out->length > SLACK_TRIAGE) {
		buf_clear(out);
		buf_text(out, "*these changes were updated*");
	}
	for (size_t i = 0; i < follow_up->count; i++)
		triaged |= follow_up->changes[i].triage.version > 0;
	if (triaged)
		triage_lines(&part, attempt->options, follow_up);
	if (out->length > 0 && part.length > 0 && out->length + part.length < SLACK_TRIAGE)
		buf_char(out, '\n');
	if (out->length + part.length <= SLACK_TRIAGE)
		buf_append(out, part.data, part.length);
	buf_free(&part);
}

/* The first post as it was stored, with the lines; in the arena. NULL: it is not a post of ours, or
 * has no room for them. */
static const char *amended(struct attempt *attempt, const struct buf *line)
{
	const struct state *state = attempt->state;
	const char *posted = slack_body(attempt->arena, attempt->payload, 0);
	const char *bare = state->bare ? slack_simpler(attempt->arena, posted, true) : NULL;
	json_t *message = json_loads(bare ? bare : posted, 0, NULL);
	json_t *blocks = json_object_get(message, "blocks");
	const char *body = NULL;
	bool room = json_array_size(blocks) < SLACK_POST_BLOCKS &&
		    text_within(blocks) + line->length <= SLACK_POST_TEXT;
	char *text;

	json_object_del(message, "reply_broadcast");
	json_object_del(message, "unfurl_links");
	json_object_del(message, "unfurl_media");
	if (message && (state->plain || room)) {
		if (state->plain)
			add_text(message, line);
		else if (line->length > 0)
			json_array_append_new(
				blocks, json_pack("{s:s, s:[{s:s, s:s%, s:b}]}", "type", "context",
						"elements", "type", "mrkdwn", "text", line->data,
						line->length, "verbatim", 1));
		json_object_set_new(message, "channel", json_string(state->receipt.channel));
		json_object_set_new(message, "ts", json_string(state->receipt.stamp));
		text = json_dumps(message, JSON_COMPACT);
		body = arena_strdup(attempt->arena, text);
		free(text);
	}
	json_decref(message);
	return body;
}

/*
 * Triagers' reactions to a message, from one poll to the next. Slack lists them without their
 * times. So known ones are noted with the message: "eyes:U1", the one that counts with the time
 * when it was taken: "x:U2@1625184000000". A new one sets the triage, the last new one wins; when
 * the one that counts is removed, its triage is taken back. A known one is never applied again,
 * even if the triage was changed elsewhere.
 */
/* REACTIONS_MOST: that count, of one message; further ones are not seen. */
enum { NOTED_MOST = 255, REACTIONS_MOST = 100 };

struct reaction {
	const char *emoji, *user;
	int64_t time; /* when the reaction that counts was read; else 0 */
	bool there;   /* still present, or Slack does not list all of its emoji */
};

struct reactions {
	struct reaction items[2 * REACTIONS_MOST]; /* those noted, and new ones */
	size_t count, there;
};

static struct reaction *find_reaction(
	struct reactions *reactions, const char *emoji, const char *user)
{
	for (size_t i = 0; i < reactions->count; i++)
		if (strcmp(reactions->items[i].emoji, emoji) == 0 &&
			strcmp(reactions->items[i].user, user) == 0)
			return &reactions->items[i];
	return NULL;
}

static struct reaction *add_reaction(
	struct reactions *reactions, const char *emoji, const char *user)
{
	struct reaction *reaction = &reactions->items[reactions->count++];

	*reaction = (struct reaction){.emoji = emoji, .user = user};
	return reaction;
}

static void mark_there(struct reactions *reactions, struct reaction *reaction)
{
	reactions->there += !reaction->there;
	reaction->there = true;
}

static void read_notes(struct reactions *seen, struct arena *arena, const char *notes)
{
	while (notes && *notes && seen->count < REACTIONS_MOST) {
		size_t length = strcspn(notes, " ");
		char *emoji = arena_strndup(arena, notes, length);
		char *user = strrchr(emoji, ':');
		char *time = user ? strchr(user, '@') : NULL;
		struct reaction *reaction;

		notes += length + (notes[length] == ' ');
		if (!user || user == emoji)
			continue;
		*user++ = '\0';
		if (time)
			*time++ = '\0';
		reaction =
			find_reaction(seen, emoji, user) ? NULL : add_reaction(seen, emoji, user);
		if (reaction && time)
			reaction->time = strtoll(time, NULL, 10);
	}
}

static const char *write_notes(const struct reactions *seen, struct arena *arena)
{
	struct buf out = {0};

	for (size_t i = 0; i < seen->count; i++) {
		const struct reaction *reaction = &seen->items[i];

		if (!reaction->there)
			continue;
		buf_printf(&out, "%s%s:%s", out.length > 0 ? " " : "", reaction->emoji,
			reaction->user);
		if (reaction->time > 0)
			buf_printf(&out, "@%lld", (long long)reaction->time);
	}
	return buf_keep(&out, arena);
}

/* A word that can stand in the notes. */
static bool is_noted(const char *text)
{
	size_t length = text ? strlen(text) : 0;

	return length > 0 && length <= NOTED_MOST && !strpbrk(text, " @");
}

/* Marks the triagers' known reactions to the message that are present; or, with an arena, adds new
 * ones, and returns the last of these. */
static struct reaction *visit_reactions(struct reactions *seen, const struct slack_options *options,
	const json_t *message, struct arena *arena)
{
	const json_t *list = json_object_get(message, "reactions");
	struct reaction *latest = NULL, *known;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *entry = json_array_get(list, i);
		const json_t *users = json_object_get(entry, "users");
		const char *emoji = json_text(entry, "name");
		enum triage_state state;

		if (!is_noted(emoji) || !slack_reaction_state(options, emoji, &state))
			continue;
		/* Not all users are listed: unlisted reactions may be present. */
		if (json_integer_value(json_object_get(entry, "count")) >
			(json_int_t)json_array_size(users))
			for (size_t k = 0; k < seen->count; k++)
				if (strcmp(seen->items[k].emoji, emoji) == 0)
					mark_there(seen, &seen->items[k]);
		for (size_t k = 0; k < json_array_size(users); k++) {
			const char *user = json_string_value(json_array_get(users, k));

			if (!is_noted(user) || strchr(user, ':') || !slack_triager(options, user))
				continue;
			known = find_reaction(seen, emoji, user);
			if (!arena && known)
				mark_there(seen, known);
			if (!arena || known || seen->there == REACTIONS_MOST)
				continue;
			latest = add_reaction(
				seen, arena_strdup(arena, emoji), arena_strdup(arena, user));
			mark_there(seen, latest);
		}
	}
	return latest;
}

static struct reaction *counting(struct reactions *seen)
{
	for (size_t i = 0; i < seen->count; i++)
		if (seen->items[i].time > 0)
			return &seen->items[i];
	return NULL;
}

static enum triage_state state_of(
	const struct slack_options *options, const struct reaction *reaction)
{
	enum triage_state state = 0;

	return slack_reaction_state(options, reaction->emoji, &state) ? state : 0;
}

/* A new reaction: it counts from now on, unless all changes have its state already, by the one that
 * counts. */
static void apply_reaction(const struct slack_options *options, struct reactions *seen,
	struct reaction *latest, int64_t now, struct follow_up *follow_up)
{
	struct reaction *before = counting(seen);
	enum triage_state state = state_of(options, latest);
	bool holds = before && before->there && state_of(options, before) == state;

	for (size_t i = 0; i < follow_up->count && holds; i++)
		holds = follow_up->changes[i].triage.time == before->time;
	if (holds)
		return;
	for (size_t i = 0; i < seen->count && !follow_up->overrides; i++) {
		enum triage_state other = state_of(options, &seen->items[i]);

		if (seen->items[i].there && other != 0 && other != state)
			follow_up->overrides = triage_state_names[other];
	}
	if (before)
		before->time = 0;
	latest->time = now;
	follow_up->state = state;
	follow_up->person = latest->user;
}

/* The reaction that counted is gone: another one with the same state takes its place. Removing an
 * emoji from the configuration does not take its reaction back; it is remembered. */
static void take_back(
	const struct slack_options *options, struct reactions *seen, struct follow_up *follow_up)
{
	struct reaction *before = counting(seen);

	if (!before || before->there)
		return;
	if (!slack_triager(options, before->user) || state_of(options, before) == 0) {
		mark_there(seen, before);
		return;
	}
	for (size_t i = 0; i < seen->count; i++)
		if (seen->items[i].there &&
			state_of(options, &seen->items[i]) == state_of(options, before)) {
			seen->items[i].time = before->time;
			return;
		}
	follow_up->undone = before->time;
	follow_up->person = before->user;
}

static void take_reactions(const struct slack_options *options, const json_t *message, int64_t now,
	struct arena *arena, struct follow_up *follow_up)
{
	struct reactions *seen = arena_alloc(arena, sizeof *seen);
	struct reaction *latest;

	read_notes(seen, arena, follow_up->taken);
	(void)visit_reactions(seen, options, message, NULL);
	latest = visit_reactions(seen, options, message, arena);
	if (latest)
		apply_reaction(options, seen, latest, now, follow_up);
	else
		take_back(options, seen, follow_up);
	follow_up->taken = write_notes(seen, arena);
}

static enum step ask(struct attempt *attempt)
{
	const struct state *state = attempt->state;
	struct buf out = {0};
	const char *body;

	if (attempt->follow_up->kind != FOLLOW_UP_AMEND) {
		buf_text(&out, "reactions.get?full=true&channel=");
		transfer_encode(&out, state->receipt.channel);
		buf_text(&out, "&timestamp=");
		transfer_encode(&out, state->receipt.stamp);
		return slack_call(attempt, buf_keep(&out, attempt->arena), NULL);
	}
	write_lines(&out, attempt);
	if (out.length == 0 && !attempt->follow_up->amended) {
		buf_free(&out);
		return STEP_DONE; /* it is up to date */
	}
	body = amended(attempt, &out);
	buf_free(&out);
	if (body)
		return slack_call(attempt, "chat.update", body);
	attempt->follow_up->gone = true;
	return slack_fail(attempt, false, ERROR_DATA, "no room in the message for the update");
}

/* The message is gone, or can never be edited, unless a retry or another configuration may help. */
static enum step refused(struct attempt *attempt, const struct slack_answer *answer)
{
	struct state *state = attempt->state;
	struct follow_up *follow_up = attempt->follow_up;

	if (answer->reason == SLACK_BLOCKS && !state->plain && follow_up->kind == FOLLOW_UP_AMEND) {
		const char *body = slack_body(attempt->arena, attempt->payload, 0);

		state->plain = state->bare || !slack_simpler(attempt->arena, body, true);
		state->bare = true;
		return ask(attempt);
	}
	follow_up->gone = answer->reason >= SLACK_PERMANENT;
	follow_up->deleted = strcmp(answer->error, "message_not_found") == 0;
	return slack_refused(attempt, answer);
}

/* {"ok": true, "message": {"reactions": [{"name": "eyes", "users": ["U1"], "count": 1}]}} */
static enum step taken(struct attempt *attempt, const struct reply *reply)
{
	struct slack_answer answer = slack_read(attempt->arena, reply, false);
	const json_t *message = json_object_get(answer.json, "message");
	enum step step = STEP_DONE;

	if (answer.reason == SLACK_UNKNOWN && reply->status == 400)
		answer.reason = SLACK_CONFIG;
	if (answer.reason != SLACK_DONE)
		return refused(attempt, &answer);
	if (attempt->follow_up->kind == FOLLOW_UP_READ && !json_is_object(message)) {
		step = slack_fail(attempt, true, ERROR_DATA, slack_alien);
	} else if (attempt->follow_up->kind == FOLLOW_UP_READ) {
		attempt->follow_up->origin =
			arena_printf(attempt->arena, "Slack %s", attempt->destination);
		take_reactions(attempt->options, message, attempt->now, attempt->arena,
			attempt->follow_up);
	}
	json_decref(answer.json);
	return step;
}

enum step slack_follow_up(struct attempt *attempt, const struct reply *last)
{
	struct state *state;

	if (last)
		return taken(attempt, last);
	attempt->state = state = arena_alloc(attempt->arena, sizeof *state);
	state->receipt = slack_receipt_read(attempt->arena, attempt->receipt);
	if (!slack_by_bot(attempt->options))
		return slack_fail(attempt, false, ERROR_USAGE, "bot_token is missing");
	if (state->receipt.stamp && state->receipt.channel)
		return ask(attempt);
	attempt->follow_up->gone = true;
	return slack_fail(
		attempt, false, ERROR_DATA, "the message has no destination in its receipt");
}
