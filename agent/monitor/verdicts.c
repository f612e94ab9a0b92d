/* A source has three possible conditions; each has a row in the store while it holds. */
#include "agent/monitor/verdicts.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/dict.h"
#include "agent/monitor/condition.h"

enum { SAID_DOWN, SAID_MANY_FAIL, SAID_MANY_STALE, SAID };

static const enum condition_kind kinds[SAID] = {
	CONDITION_SOURCE, CONDITION_MANY_FAIL, CONDITION_MANY_STALE};

/* The sum of all views of a source. */
struct sum {
	size_t known, down;
	int64_t since;
	const char *text;
	int64_t told[VIEW_ASPECTS], many[VIEW_ASPECTS];
	bool awaited;
};

struct said_of {
	const char *name;
	struct said_of *next;
	bool said[SAID];
	int64_t since[SAID];
	struct sum sum; /* of the views that are judged */
};

struct verdicts {
	struct arena *arena;
	struct dict names;
	struct said_of *sources;
};

struct verdicts *verdicts_new(void)
{
	struct verdicts *verdicts = memory_new(1, sizeof *verdicts);

	verdicts->arena = verdicts->names.arena = arena_new();
	return verdicts;
}

void verdicts_clear(struct verdicts *verdicts)
{
	for (struct said_of *at = verdicts->sources; at; at = at->next)
		memset(at->said, 0, sizeof at->said);
}

void verdicts_free(struct verdicts *verdicts)
{
	if (verdicts)
		arena_free(verdicts->arena);
	free(verdicts);
}

static struct said_of *source_of(struct verdicts *verdicts, const char *name)
{
	struct said_of *source = (struct said_of *)(uintptr_t)dict_get(&verdicts->names, name);

	if (source)
		return source;
	source = arena_alloc(verdicts->arena, sizeof *source);
	*source = (struct said_of){
		.name = arena_strdup(verdicts->arena, name), .next = verdicts->sources};
	*dict_place(&verdicts->names, source->name) = source;
	verdicts->sources = source;
	return source;
}

void verdicts_restore(struct verdicts *verdicts, const struct condition *condition)
{
	for (size_t i = 0; i < SAID; i++)
		if (kinds[i] == condition->kind) {
			struct said_of *source = source_of(verdicts, condition_name(condition));

			source->said[i] = true;
			source->since[i] = condition->since;
		}
}

/* `text`: NULL: the usual sentence. */
static void say(struct said_of *source, size_t what, int64_t now, const char *text,
	verdicts_turn *turn, void *context)
{
	struct buf subject = {0}, sentence = {0};
	struct condition condition = {
		.kind = kinds[what], .since = source->since[what], .over = !source->said[what]};

	condition_subject(condition.kind, source->name, &subject);
	condition.subject = subject.data;
	if (!text) {
		condition_say(&condition, now, &sentence);
		text = sentence.data;
	}
	condition.text = text;
	turn(context, &condition);
	buf_free(&subject);
	buf_free(&sentence);
}

static void judge(
	struct said_of *source, int64_t now, bool settled, verdicts_turn *turn, void *context)
{
	const struct sum *sum = &source->sum;
	bool down = 2 * sum->down > sum->known, up = 2 * sum->down < sum->known;

	if (!source->said[SAID_DOWN] && down) {
		source->said[SAID_DOWN] = true;
		source->since[SAID_DOWN] = sum->since;
		say(source, SAID_DOWN, now, sum->text, turn, context);
	} else if (source->said[SAID_DOWN] && up) {
		source->said[SAID_DOWN] = false;
		say(source, SAID_DOWN, now, NULL, turn, context);
	}
	for (size_t i = 0; i < VIEW_ASPECTS; i++) {
		bool *said = &source->said[SAID_MANY_FAIL + i];
		bool over = sum->many[i] == 0 && sum->told[i] < CONDITION_TOLD_SINGLY &&
			    !sum->awaited && settled && sum->known > 0;

		if (*said ? !over : sum->many[i] == 0)
			continue;
		*said = !*said;
		if (*said)
			source->since[SAID_MANY_FAIL + i] = now;
		say(source, SAID_MANY_FAIL + i, now, NULL, turn, context);
	}
}

void verdicts_judge(struct verdicts *verdicts, const struct source_view *views, size_t count,
	int64_t now, bool settled, verdicts_turn *turn, void *context)
{
	for (struct said_of *at = verdicts->sources; at; at = at->next)
		at->sum = (struct sum){0};
	for (size_t i = 0; i < count; i++) {
		const struct source_view *view = &views[i];
		struct sum *sum = &source_of(verdicts, view->source)->sum;

		sum->known += view->verdict != VIEW_NONE;
		sum->awaited |= view->awaited;
		for (size_t a = 0; a < VIEW_ASPECTS; a++) {
			sum->told[a] += view->told[a];
			sum->many[a] += view->many[a];
		}
		if (view->verdict == VIEW_DOWN && (sum->down++ == 0 || view->since < sum->since)) {
			sum->since = view->since;
			sum->text = view->text;
		}
	}
	for (struct said_of *at = verdicts->sources; at; at = at->next)
		judge(at, now, settled, turn, context);
}

void verdicts_retain(struct verdicts *verdicts, bool (*keeps)(void *context, const char *source),
	verdicts_turn *lost, void *context)
{
	for (struct said_of *at = verdicts->sources; at; at = at->next) {
		struct buf text = {0};

		if (keeps(context, at->name))
			continue;
		buf_printf(&text, "source %s is no longer used", at->name);
		for (size_t what = 0; what < SAID; what++)
			if (at->said[what]) {
				at->said[what] = false;
				say(at, what, 0, text.data, lost, context);
			}
		buf_free(&text);
	}
}

bool verdicts_wait(const struct verdicts *verdicts)
{
	for (const struct said_of *at = verdicts->sources; at; at = at->next)
		if (at->said[SAID_MANY_FAIL] || at->said[SAID_MANY_STALE])
			return true;
	return false;
}
