/* A source has three things that may be said of it; each has a row in the store while it holds. */
#include "agent/monitor/verdicts.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/dict.h"
#include "agent/monitor/condition.h"

enum { SAID_DOWN, SAID_MANY_FAIL, SAID_MANY_STALE, SAID };

static const enum condition_kind kinds[SAID] = {
	CONDITION_SOURCE, CONDITION_MANY_FAIL, CONDITION_MANY_STALE};

struct said_of {
	bool said[SAID];
	int64_t since[SAID];
};

struct verdicts {
	struct arena *arena;
	struct name_index index;
	struct said_of *sources;
	size_t room;
};

/* What all views of a source amount to. */
struct sum {
	size_t known, down;
	int64_t since;
	const char *text;
	int64_t told[VIEW_ASPECTS], many[VIEW_ASPECTS];
	bool awaited;
};

struct verdicts *verdicts_new(void)
{
	struct verdicts *verdicts = memory_new(1, sizeof *verdicts);

	verdicts->arena = arena_new();
	verdicts->index.dict.arena = verdicts->arena;
	return verdicts;
}

void verdicts_clear(struct verdicts *verdicts)
{
	arena_free(verdicts->arena);
	free(verdicts->sources);
	*verdicts = (struct verdicts){.arena = arena_new()};
	verdicts->index.dict.arena = verdicts->arena;
}

void verdicts_free(struct verdicts *verdicts)
{
	if (!verdicts)
		return;
	arena_free(verdicts->arena);
	free(verdicts->sources);
	free(verdicts);
}

static size_t place_of(struct verdicts *verdicts, const char *source)
{
	size_t before = verdicts->index.count;
	size_t at = name_index_add(&verdicts->index, source, strlen(source));

	if (at == before) {
		verdicts->sources = memory_grow(
			verdicts->sources, &verdicts->room, at + 1, sizeof *verdicts->sources);
		verdicts->sources[at] = (struct said_of){0};
	}
	return at;
}

void verdicts_restore(struct verdicts *verdicts, const struct condition *condition)
{
	for (size_t i = 0; i < SAID; i++)
		if (kinds[i] == condition->kind) {
			size_t at = place_of(verdicts, condition_name(condition));

			verdicts->sources[at].said[i] = true;
			verdicts->sources[at].since[i] = condition->since;
		}
}

/* `text`: NULL: the usual sentence. */
static void say(struct said_of *source, const char *name, size_t what, int64_t now,
	const char *text, verdicts_turn *turn, void *context)
{
	struct buf subject = {0}, sentence = {0};
	struct condition condition = {
		.kind = kinds[what], .since = source->since[what], .over = !source->said[what]};

	condition_subject(condition.kind, name, &subject);
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

static void add(struct sum *sum, const struct source_view *view)
{
	sum->known += view->verdict != VIEW_NONE;
	sum->awaited |= view->awaited;
	for (size_t i = 0; i < VIEW_ASPECTS; i++) {
		sum->told[i] += view->told[i];
		sum->many[i] += view->many[i];
	}
	if (view->verdict != VIEW_DOWN)
		return;
	if (sum->down++ == 0 || view->since < sum->since) {
		sum->since = view->since;
		sum->text = view->text;
	}
}

static void judge(struct said_of *source, const char *name, const struct sum *sum, int64_t now,
	bool settled, verdicts_turn *turn, void *context)
{
	bool down = 2 * sum->down > sum->known, up = 2 * sum->down < sum->known;

	if (!source->said[SAID_DOWN] && down) {
		source->said[SAID_DOWN] = true;
		source->since[SAID_DOWN] = sum->since;
		say(source, name, SAID_DOWN, now, sum->text, turn, context);
	} else if (source->said[SAID_DOWN] && up) {
		source->said[SAID_DOWN] = false;
		say(source, name, SAID_DOWN, now, NULL, turn, context);
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
		say(source, name, SAID_MANY_FAIL + i, now, NULL, turn, context);
	}
}

void verdicts_judge(struct verdicts *verdicts, const struct source_view *views, size_t count,
	int64_t now, bool settled, verdicts_turn *turn, void *context)
{
	struct sum *sums;

	for (size_t i = 0; i < count; i++)
		(void)place_of(verdicts, views[i].source);
	sums = memory_new(verdicts->index.count + 1, sizeof *sums);
	for (size_t i = 0; i < count; i++)
		add(&sums[place_of(verdicts, views[i].source)], &views[i]);
	for (size_t i = 0; i < verdicts->index.count; i++)
		judge(&verdicts->sources[i], verdicts->index.items[i], &sums[i], now, settled, turn,
			context);
	free(sums);
}

void verdicts_retain(struct verdicts *verdicts, bool (*keeps)(void *context, const char *source),
	verdicts_turn *lost, void *context)
{
	for (size_t i = 0; i < verdicts->index.count; i++) {
		struct said_of *source = &verdicts->sources[i];
		const char *name = verdicts->index.items[i];
		struct buf text = {0};

		if (keeps(context, name))
			continue;
		buf_printf(&text, "source %s is no longer used", name);
		for (size_t what = 0; what < SAID; what++)
			if (source->said[what]) {
				source->said[what] = false;
				say(source, name, what, 0, text.data, lost, context);
			}
		buf_free(&text);
	}
}

bool verdicts_wait(const struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->index.count; i++)
		if (verdicts->sources[i].said[SAID_MANY_FAIL] ||
			verdicts->sources[i].said[SAID_MANY_STALE])
			return true;
	return false;
}
