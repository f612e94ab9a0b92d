/*
 * A block of type data_visualization takes at most 20 categories, which name the points, and a
 * value for each in every series; it does not know times. So it gets the nearest points of the
 * excerpt as they are: none is averaged away.
 */
#include "notifiers/slack/chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/utf8.h"
#include "agent/base/when.h"
#include "notifiers/text.h"

/* Slack's, in characters, which are never more than bytes. */
enum { TITLE = 50, AXIS = 50, LABEL = 20, POINTS = 20 };

enum { NEAR = POINTS / 2, LEAST = 4, DAY = 86400000 };

struct chart {
	const struct announcement *item;
	const int64_t *times;
	const double *values;
	size_t n, words;
	char labels[POINTS][LABEL + 1];
};

/* The nearest points to either side; more of one where there are fewer of the other. */
static bool choose(struct chart *chart, const struct excerpt *excerpt)
{
	size_t before = 0, after, from;

	while (before < excerpt->n && excerpt->times[before] < chart->item->time)
		before++;
	after = excerpt->n - before;
	if (before == 0 || after == 0 || excerpt->n < LEAST)
		return false;
	from = before > NEAR ? before - NEAR : 0;
	if (after < NEAR && before > POINTS - after)
		from = before - (POINTS - after);
	else if (after < NEAR)
		from = 0;
	chart->times = excerpt->times + from;
	chart->values = excerpt->values + from;
	chart->n = excerpt->n - from < POINTS ? excerpt->n - from : POINTS;
	return true;
}

/* A part of "2026-03-01 06:00:00". */
struct form {
	int from, length;
};

/* False if two points would have the same. */
static bool write_labels(struct chart *chart, const struct form *form)
{
	char when[WHEN_TEXT];

	for (size_t i = 0; i < chart->n; i++) {
		snprintf(chart->labels[i], sizeof chart->labels[i], "%.*s", form->length,
			when_format(chart->times[i], when) + form->from);
		for (size_t k = 0; k < i; k++)
			if (strcmp(chart->labels[i], chart->labels[k]) == 0)
				return false;
	}
	return true;
}

/* The shortest that name each point once: days, times of a day, or both, and then more of them. */
static void label(struct chart *chart)
{
	static const struct form forms[] = {{0, 10}, {11, 5}, {5, 11}, {0, 16}, {5, 14}, {0, 19}};
	bool days = true, one_day = chart->times[chart->n - 1] - chart->times[0] < DAY;
	size_t first = one_day ? 1 : 2;

	for (size_t i = 0; i < chart->n; i++)
		days &= chart->times[i] % DAY == 0;
	for (size_t i = days ? 0 : first; i < sizeof forms / sizeof *forms; i++)
		if (write_labels(chart, &forms[i]))
			return;
	for (size_t i = 0; i < chart->n; i++)
		snprintf(chart->labels[i], sizeof chart->labels[i], "%zu", i + 1);
}

static void text(struct chart *chart, struct buf *out, const char *words, size_t length)
{
	buf_json_string(out, words, length);
	chart->words += length;
}

/* Cleaned and cut to `most` bytes, including the text after it. */
static void fitting(
	struct chart *chart, struct buf *out, const char *words, const char *end, size_t most)
{
	static const char cut[] = "…";
	struct buf clean = {0};
	size_t room = most - strlen(end);

	buf_clean(&clean, words, most);
	if (clean.length > room) {
		clean.length = utf8_cut(clean.data, room - strlen(cut));
		buf_text(&clean, cut);
	}
	buf_text(&clean, end);
	text(chart, out, clean.data ? clean.data : "", clean.length);
	buf_free(&clean);
}

/* "db.read p99 +24%" */
static void put_title(struct chart *chart, struct buf *out)
{
	struct buf name = {0}, size = {0};

	buf_printf(&name, "%.100s %.100s", chart->item->test, chart->item->metric);
	buf_char(&size, ' ');
	text_percent(&size, &chart->item->change);
	fitting(chart, out, name.data, size.data, TITLE);
	buf_free(&name);
	buf_free(&size);
}

/* The level at that time; of a trend on its way. */
static double level(const struct announcement *item, int64_t time)
{
	const struct change *change = &item->change;
	double way = change->level_after - change->level_before;

	if (change->kind != CHANGE_TREND || item->place_to <= item->place_from)
		return time < item->time ? change->level_before : change->level_after;
	if (time <= item->place_from)
		return change->level_before;
	if (time >= item->place_to)
		return change->level_after;
	return change->level_before + way * (double)(time - item->place_from) /
					      (double)(item->place_to - item->place_from);
}

static void put_series(struct chart *chart, struct buf *out, const char *name, bool levels)
{
	buf_text(out, "{\"name\":");
	text(chart, out, name, strlen(name));
	buf_text(out, ",\"data\":[");
	for (size_t i = 0; i < chart->n; i++) {
		buf_text(out, i > 0 ? ",{\"label\":" : "{\"label\":");
		text(chart, out, chart->labels[i], strlen(chart->labels[i]));
		buf_text(out, ",\"value\":");
		buf_json_number(
			out, levels ? level(chart->item, chart->times[i]) : chart->values[i]);
		buf_char(out, '}');
	}
	buf_text(out, "]}");
}

static void put_axes(struct chart *chart, struct buf *out)
{
	static const char zone[] = "UTC";

	buf_text(out, "\"axis_config\":{\"categories\":[");
	for (size_t i = 0; i < chart->n; i++) {
		buf_text(out, i > 0 ? "," : "");
		text(chart, out, chart->labels[i], strlen(chart->labels[i]));
	}
	buf_text(out, "],\"x_label\":");
	text(chart, out, zone, strlen(zone));
	if (chart->item->unit && *chart->item->unit) {
		buf_text(out, ",\"y_label\":");
		fitting(chart, out, chart->item->unit, "", AXIS);
	}
	buf_char(out, '}');
}

size_t slack_chart(struct buf *out, const struct announcement *item)
{
	struct arena *scratch = arena_new();
	struct chart chart = {.item = item};
	struct excerpt excerpt;

	if (excerpt_unpack(scratch, item->excerpt, &excerpt) && choose(&chart, &excerpt)) {
		label(&chart);
		buf_text(out, "{\"type\":\"data_visualization\",\"title\":");
		put_title(&chart, out);
		buf_text(out, ",\"chart\":{\"type\":\"line\",\"series\":[");
		put_series(&chart, out, "measured", false);
		if (isfinite(item->change.level_before) && isfinite(item->change.level_after)) {
			buf_char(out, ',');
			put_series(&chart, out, "level", true);
		}
		buf_text(out, "],");
		put_axes(&chart, out);
		buf_text(out, "}}");
	}
	arena_free(scratch);
	return chart.words;
}
