/*
 * Collects the series of one dataset that ended and those that came back, and groups them by time
 * and by the label they have in common.
 */
#include "agent/monitor/vanish.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/base/order.h"
#include "agent/base/utf8.h"
#include "agent/base/when.h"

enum {
	NAMED = 3,
	LONGEST = 100,
	LABELS = 3,
	LATELY = 7 * 86400000, /* ms: what began or ended longer ago hides no end */
};

struct ended {
	const struct series *series;
	struct rhythm rhythm;
	int64_t limit; /* ms without a point after which it counts as ended */
};

struct moment {
	const struct metric *metric;
	int64_t at; /* ms */
};

/* From the first to the last points of all series; sorted by metric, then by time. */
struct lives {
	size_t count;
	struct moment *first, *last;
	struct moment *calm; /* a duration: for how long it must have neither begun after the others
				nor been silent to count as one that stays */
	int64_t begin, newest;
};

/* The examination of a dataset. */
struct exam {
	const struct vanish_rule *rule;
	struct arena *arena;
	struct dict told; /* identity -> struct vanished */
	const struct series **alive;
	size_t alive_count;
	struct ended *ended; /* those to be reported now */
	size_t ended_count;
	const struct series **back;
	size_t back_count;
	int64_t apart; /* ms: series whose ends are further apart did not end together */
};

static int64_t span_of(const struct exam *exam)
{
	const struct rhythm_bounds *bounds = &exam->rule->bounds;

	return bounds->interval > bounds->step ? bounds->interval : bounds->step;
}

static int64_t first_point(const struct series *series)
{
	size_t at = 0;

	while (at < series->axis->n && isnan(series->values[at]))
		at++;
	return series->axis->times[at];
}

static void examine(struct exam *exam, const struct series *series, int64_t newest)
{
	const struct vanish_rule *rule = exam->rule;
	struct rhythm rhythm = rhythm_of(series);
	struct rhythm grown = {.gap = rhythm.gap, .points = RHYTHM_GAPS};
	int64_t limit = rhythm_limit(
		&grown, &rule->bounds); /* a series with few points is treated like one with more */
	const struct vanished *told = dict_get(&exam->told, series->identity);
	int64_t span = span_of(exam);

	if (rhythm.points == 0)
		return;
	if (limit == 0 || newest - rhythm.last <= limit) {
		exam->alive[exam->alive_count++] = series;
		if (told && rhythm.last > told->ended)
			exam->back[exam->back_count++] = series;
		return;
	}
	/* Nor one that has hardly lived. */
	if (told || rhythm.last + limit < rule->since || rhythm.last < rule->oldest ||
		rhythm.points < VANISH_LIVED || span >= WHEN_NEVER / 100 ||
		rhythm.last - first_point(series) < VANISH_LIVED * span)
		return;
	exam->ended[exam->ended_count++] = (struct ended){series, rhythm, limit};
	if (rhythm.gap > exam->apart)
		exam->apart = rhythm.gap;
}

static int compare_moments(const void *a, const void *b)
{
	const struct moment *left = a, *right = b;

	if (left->metric != right->metric)
		return (uintptr_t)left->metric < (uintptr_t)right->metric ? -1 : 1;
	return left->at < right->at ? -1 : left->at > right->at;
}

/* How many of the moments come before that one. */
static size_t count_before(const struct moment *moments, size_t count, const struct moment *moment)
{
	return order_lower_bound(moment, moments, count, sizeof *moments, compare_moments);
}

/* How many of a metric's moments lie in such a time; both limits are part of it. */
static size_t count_between(const struct moment *moments, size_t count, const struct metric *metric,
	int64_t from, int64_t to)
{
	const struct moment first = {metric, from}, last = {metric, to + 1};

	return from > to
		       ? 0
		       : count_before(moments, count, &last) - count_before(moments, count, &first);
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static struct lives list_lives(const struct exam *exam, const struct dataset *data, int64_t newest)
{
	struct lives lives = {.begin = WHEN_NEVER,
		.newest = newest,
		.first = arena_array(exam->arena, data->count, sizeof *lives.first),
		.last = arena_array(exam->arena, data->count, sizeof *lives.last),
		.calm = arena_array(exam->arena, data->count, sizeof *lives.calm)};

	for (size_t i = 0; i < data->count; i++) {
		const struct series *series = &data->series[i];
		int64_t last = rhythm_of(series).last, first;

		if (last == WHEN_ALWAYS)
			continue;
		first = first_point(series);
		lives.first[lives.count] = (struct moment){series->metric, first};
		lives.last[lives.count++] = (struct moment){series->metric, last};
		lives.begin = first < lives.begin ? first : lives.begin;
	}
	for (size_t i = 0; i < lives.count; i++) {
		int64_t first = lives.first[i].at;
		int64_t late = newest - first >= LATELY ? 0 : first - lives.begin;

		lives.calm[i] = (struct moment){
			lives.first[i].metric, larger(late, newest - lives.last[i].at)};
	}
	qsort(lives.first, lives.count, sizeof *lives.first, compare_moments);
	qsort(lives.last, lives.count, sizeof *lives.last, compare_moments);
	qsort(lives.calm, lives.count, sizeof *lives.calm, compare_moments);
	return lives;
}

/*
 * Whether label sets of its metric come and go: as many others began about when it ended as ended
 * with it, as when pods are replaced; or at least half of the others began or ended lately, as when
 * pods are added and removed.
 */
static bool is_churn(const struct ended *ended, const struct lives *lives)
{
	const struct metric *metric = ended->series->metric;
	int64_t near = ended->limit, newest = lives->newest, own = first_point(ended->series);
	int64_t from = ended->rhythm.last - near, to = ended->rhythm.last + near;
	int64_t begin = larger(from, lives->begin + near + 1), end = to;
	int64_t oldest = newest - larger(near, LATELY);
	size_t born, gone, others, calm;

	to = to < newest - near ? to : newest - near - 1;
	born = count_between(lives->first, lives->count, metric, begin, end) -
	       (own >= begin && own <= end);
	gone = count_between(lives->last, lives->count, metric, from, to);
	others = count_between(lives->last, lives->count, metric, oldest, newest) -
		 count_between(lives->last, lives->count, metric, larger(from, oldest), to);
	calm = count_between(lives->calm, lives->count, metric, 0, near);
	return born >= gone || (others > 0 && 2 * (others - calm) >= others);
}

static int compare_ends(const void *a, const void *b)
{
	const struct ended *left = a, *right = b;

	if (left->rhythm.last != right->rhythm.last)
		return left->rhythm.last < right->rhythm.last ? -1 : 1;
	return strcmp(left->series->identity, right->series->identity);
}

static bool has_label(const struct series *series, const struct pair *label)
{
	for (size_t i = 0; i < series->labels.count; i++)
		if (strcmp(series->labels.items[i].key, label->key) == 0)
			return strcmp(series->labels.items[i].value, label->value) == 0;
	return false;
}

static void add_text(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, "%s%.*s%s%.*s", out->length ? ", " : "", (int)utf8_cut(key, LONGEST), key,
		*value ? "=" : "", (int)utf8_cut(value, LONGEST), value);
}

/* The label that the series have and the others have not, or else their names. */
static const char *which_of(
	const struct exam *exam, const struct series *const *series, size_t count, bool back)
{
	struct buf text = {0};
	const struct pairs *labels = &series[0]->labels;
	size_t found = 0;

	for (size_t i = 0; i < labels->count && found < LABELS; i++) {
		const struct pair *label = &labels->items[i];
		bool apart = true;

		for (size_t k = 0; k < count && apart; k++)
			apart = has_label(series[k], label);
		for (size_t k = 0; !back && k < exam->alive_count && apart; k++)
			apart = !has_label(exam->alive[k], label);
		if (apart) {
			add_text(&text, label->key, label->value);
			found++;
		}
	}
	for (size_t i = 0; found == 0 && i < count && i < NAMED; i++)
		add_text(&text, series[i]->name, "");
	if (found == 0 && count > NAMED)
		buf_printf(&text, " and %zu more", count - NAMED);
	return buf_keep(&text, exam->arena);
}

static struct vanish_news group_of(const struct exam *exam, const struct ended *ended, size_t count)
{
	const struct series **series = arena_array(exam->arena, count, sizeof *series);
	struct vanish_news news = {.count = count,
		.of = exam->alive_count + exam->ended_count,
		.first = ended[0].rhythm.last,
		.ended = ended[count - 1].rhythm.last,
		.series = arena_array(exam->arena, count, sizeof *news.series)};

	for (size_t i = 0; i < count; i++) {
		series[i] = ended[i].series;
		news.series[i] = (struct vanished){
			.series = series[i]->identity, .ended = ended[i].rhythm.last};
	}
	news.which = which_of(exam, series, count, false);
	return news;
}

static size_t group_all(const struct exam *exam, struct vanish_news *out)
{
	size_t groups = 0, at = 0;

	while (at < exam->ended_count && groups < VANISH_GROUPS) {
		size_t n = 1;

		while (at + n < exam->ended_count &&
			exam->ended[at + n].rhythm.last - exam->ended[at + n - 1].rhythm.last <=
				exam->apart)
			n++;
		out[groups++] = group_of(exam, exam->ended + at, n);
		at += n;
	}
	if (at == exam->ended_count)
		return groups;
	out[0] = group_of(exam, exam->ended, exam->ended_count);
	return 1;
}

static struct vanish_news back_again(const struct exam *exam)
{
	struct vanish_news news = {.back = true,
		.count = exam->back_count,
		.of = exam->rule->told_count,
		.first = WHEN_NEVER,
		.ended = WHEN_ALWAYS,
		.since = WHEN_NEVER,
		.least = WHEN_NEVER,
		.series = arena_array(exam->arena, exam->back_count, sizeof *news.series),
		.which = which_of(exam, exam->back, exam->back_count, true)};

	for (size_t i = 0; i < exam->back_count; i++) {
		const struct series *series = exam->back[i];
		int64_t since, away;
		size_t at;

		news.series[i] = *(const struct vanished *)dict_get(&exam->told, series->identity);
		news.series[i].back = true;
		at = axis_lower_bound(series->axis, news.series[i].ended + 1);
		while (isnan(series->values[at])) /* it has a point after its end */
			at++;
		since = series->axis->times[at];
		away = since - news.series[i].ended;
		news.since = since < news.since ? since : news.since;
		news.least = away < news.least ? away : news.least;
		news.most = away > news.most ? away : news.most;
		if (news.series[i].ended < news.first)
			news.first = news.series[i].ended;
		if (news.series[i].ended > news.ended)
			news.ended = news.series[i].ended;
	}
	return news;
}

size_t vanish_find(const struct dataset *data, const struct vanish_rule *rule, struct arena *arena,
	struct vanish_news **news)
{
	struct exam exam = {.rule = rule,
		.arena = arena,
		.told = {.arena = arena},
		.alive = arena_array(arena, data->count, sizeof *exam.alive),
		.ended = arena_array(arena, data->count, sizeof *exam.ended),
		.back = arena_array(arena, data->count, sizeof *exam.back)};
	int64_t newest;
	size_t count = 0;

	for (size_t i = 0; i < rule->told_count; i++)
		*dict_place(&exam.told, rule->told[i].series) = &rule->told[i];
	newest = rhythm_newest(data);
	exam.apart = span_of(&exam);
	for (size_t i = 0; i < data->count; i++)
		examine(&exam, &data->series[i], newest);
	if (exam.ended_count > 0) {
		struct lives lives = list_lives(&exam, data, newest);
		size_t kept = 0;

		for (size_t i = 0; i < exam.ended_count; i++)
			if (!is_churn(&exam.ended[i], &lives))
				exam.ended[kept++] = exam.ended[i];
		exam.ended_count = kept;
	}
	*news = arena_array(arena, VANISH_GROUPS + 1, sizeof **news);
	if (exam.ended_count > 0) {
		qsort(exam.ended, exam.ended_count, sizeof *exam.ended, compare_ends);
		count = group_all(&exam, *news);
	}
	if (exam.back_count > 0)
		(*news)[count++] = back_again(&exam);
	return count;
}

const char *vanish_text(const struct vanish_news *news, const char *test, struct arena *arena)
{
	char first[WHEN_TEXT], last[WHEN_TEXT], since[WHEN_TEXT];

	if (news->back) {
		bool one;

		when_format(news->since, since);
		when_format_rough(news->least, first);
		when_format_rough(news->most, last);
		one = strcmp(first, last) == 0;
		return arena_printf(arena,
			"%zu of %zu series of test \"%s\" that had ended came back at %s, after "
			"%s%s%s: %s",
			news->count, news->of, test, since, first, one ? "" : " to ",
			one ? "" : last, news->which);
	}
	when_format(news->first, first);
	when_format(news->ended, last);
	if (news->first == news->ended)
		return arena_printf(arena, "%zu of %zu series of test \"%s\" ended at %s: %s",
			news->count, news->of, test, last, news->which);
	return arena_printf(arena, "%zu of %zu series of test \"%s\" ended between %s and %s: %s",
		news->count, news->of, test, first, last, news->which);
}
