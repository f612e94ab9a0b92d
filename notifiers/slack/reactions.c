#include "notifiers/slack/reactions.h"
#include "notifiers/http_json.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"

enum { WORD_MOST = 255 };

struct reaction {
	const char *emoji, *user;
	int64_t time; /* when the reaction that counts was read; else 0 */
	bool there;   /* still present, or Slack does not list all of its emoji */
};

struct reactions {
	struct reaction items[2 * SLACK_REACTIONS]; /* those noted, and new ones */
	size_t count, there;
};

static struct reaction *find(struct reactions *reactions, const char *emoji, const char *user)
{
	for (size_t i = 0; i < reactions->count; i++)
		if (strcmp(reactions->items[i].emoji, emoji) == 0 &&
			strcmp(reactions->items[i].user, user) == 0)
			return &reactions->items[i];
	return NULL;
}

static struct reaction *add(struct reactions *reactions, const char *emoji, const char *user)
{
	struct reaction *reaction = &reactions->items[reactions->count++];

	*reaction = (struct reaction){.emoji = emoji, .user = user};
	return reaction;
}

static void mark(struct reactions *reactions, struct reaction *reaction)
{
	reactions->there += !reaction->there;
	reaction->there = true;
}

static void read_notes(struct reactions *seen, struct arena *arena, const char *notes)
{
	while (notes && *notes && seen->count < SLACK_REACTIONS) {
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
		reaction = find(seen, emoji, user) ? NULL : add(seen, emoji, user);
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
static bool is_word(const char *text)
{
	size_t length = text ? strlen(text) : 0;

	return length > 0 && length <= WORD_MOST && !strpbrk(text, " @");
}

/* Marks the triagers' known reactions to the message that are present; or, with an arena, adds new
 * ones, and returns the last of these. */
static struct reaction *visit(struct reactions *seen, const struct slack_options *options,
	const json_t *message, struct arena *arena)
{
	const json_t *list = json_object_get(message, "reactions");
	struct reaction *latest = NULL, *known;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *entry = json_array_get(list, i);
		const json_t *users = json_object_get(entry, "users");
		const char *emoji = json_text(entry, "name");
		enum triage_state state;

		if (!is_word(emoji) || !slack_reaction_state(options, emoji, &state))
			continue;
		/* Not all users are listed: unlisted reactions may be present. */
		if (json_integer_value(json_object_get(entry, "count")) >
			(json_int_t)json_array_size(users))
			for (size_t k = 0; k < seen->count; k++)
				if (strcmp(seen->items[k].emoji, emoji) == 0)
					mark(seen, &seen->items[k]);
		for (size_t k = 0; k < json_array_size(users); k++) {
			const char *user = json_string_value(json_array_get(users, k));

			if (!is_word(user) || strchr(user, ':') || !slack_triager(options, user))
				continue;
			known = find(seen, emoji, user);
			if (!arena && known)
				mark(seen, known);
			if (!arena || known || seen->there == SLACK_REACTIONS)
				continue;
			latest = add(seen, arena_strdup(arena, emoji), arena_strdup(arena, user));
			mark(seen, latest);
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
		mark(seen, before);
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

void slack_reactions_take(const struct slack_options *options, const json_t *message, int64_t now,
	struct arena *arena, struct follow_up *follow_up)
{
	struct reactions *seen = arena_alloc(arena, sizeof *seen);
	struct reaction *latest;

	read_notes(seen, arena, follow_up->taken);
	(void)visit(seen, options, message, NULL);
	latest = visit(seen, options, message, arena);
	if (latest)
		apply_reaction(options, seen, latest, now, follow_up);
	else
		take_back(options, seen, follow_up);
	follow_up->taken = write_notes(seen, arena);
}
