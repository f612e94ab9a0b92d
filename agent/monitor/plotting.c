#include "agent/monitor/plotting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/analysis/hourly.h"
#include "agent/analysis/select.h"
#include "agent/base/order.h"
#include "agent/base/when.h"
#include "agent/monitor/condition.h"
#include "agent/monitor/news.h"
#include "agent/monitor/series_cache.h"
#include "agent/monitor/why.h"
#include "agent/report/plot_view.h"
#include "agent/runtime/silence.h"

enum {
	RECORDS_MOST = 10000,
	AROUND = 60,  /* points to either side of the change that a plot is about */
	GAP = 5,      /* usual distances without a point that are a gap, ... */
	REGULAR = 90, /* ... if so many percent of the distances are usual */
	SPANS_MOST = 200,
};

struct spans {
	struct arena *arena;
	struct plot_span *items;
	size_t count;
};

/* One line in the making. */
struct drawing {
	struct arena *arena;
	const struct test *test;
	const struct plotting *plotting;
	const struct series *series;
	struct plotting_found *found;
	size_t *points; /* indices of existing points on the axis */
	size_t n;
	struct plot_change *changes;
	size_t count;
	struct spans *gaps; /* gets those of the line; or NULL */
};

void plotting_ask(struct store_list *list, const struct test *test, int64_t now)
{
	const char **names = arena_array(list->call.arena, 1, sizeof *names);

	names[0] = arena_strdup(list->call.arena, test->name);
	list->filter =
		(struct change_filter){.names = {names, 1}, .limit = RECORDS_MOST, .now = now};
	list->about = names[0];
}

void plotting_state(struct plotting *plotting, const struct store_list *list)
{
	plotting->has_state = true;
	plotting->records = list->records;
	plotting->checkpoints = list->checkpoints;
	plotting->health = list->health;
	plotting->silences = list->silences;
}

bool plotting_query(const struct plotting *plotting, struct task *task)
{
	int64_t range = source_range(source_find(task->test->source->name), task->test->options);
	int64_t since = series_cache_query(&plotting->checkpoints, task);
	bool wide = false;

	for (int64_t far = range; range > 0 && far < INT64_MAX / 4 && plotting->since < since &&
				  plotting->since != WHEN_ALWAYS;
		far *= 2) {
		since = selection_standing_since(task->query.now, 2 * far);
		wide = true;
	}
	if (wide)
		task->query.since = since;
	task->query.branch = arena_strdup(task->query.arena, plotting->branch);
	return wide;
}

/* ---- changes found in the points ---- */

/* Examines the series and lists its points. One that cannot be examined is drawn all the same. */
static void find(struct drawing *drawing, const struct dataset *data,
	const struct companions *companions, struct scratch *scratch)
{
	const struct plotting *plotting = drawing->plotting;
	const struct series *series = drawing->series;
	int64_t anchor = plotting->branch
				 ? WHEN_ALWAYS
				 : checkpoint_anchor(&plotting->checkpoints, series->identity);
	struct arena *arena = plotting->found ? plotting->found_arena : drawing->arena;
	struct plotting_found *found = plotting->found ? &plotting->found[series - data->series]
						       : arena_alloc(arena, sizeof *found);
	struct error error;

	if (!found->done || found->anchor != anchor) {
		const struct detection *detection =
			analysis_configured(drawing->test, series->metric);
		size_t front;

		series = hourly_series(arena, detection, series, anchor, scratch);
		front = axis_lower_bound(series->axis, anchor);
		*found = (struct plotting_found){
			.done = true, .anchor = anchor, .findings.series = series};
		found->failed = !series_cache_examine(arena, drawing->test, data, companions,
			series, front < series->axis->n ? front : 0, scratch, &found->findings,
			&error);
		(void)findings_values(arena, &found->findings); /* kept with them */
	}
	drawing->found = found;
	drawing->series = series = found->findings.series;
	drawing->points = arena_array(drawing->arena, series->axis->n, sizeof *drawing->points);
	for (size_t i = 0; i < series->axis->n; i++)
		if (!isnan(series->values[i]))
			drawing->points[drawing->n++] = i;
}

/* ---- changes ---- */

static int compare_changes(const void *a, const void *b)
{
	const struct plot_change *left = a, *right = b;

	return (left->time > right->time) - (left->time < right->time);
}

/* The recorded changes, then those that are found only now. One that the detector no longer finds
 * is not lost while the points show evidence of it. */
static void list_changes(struct drawing *drawing)
{
	const struct plotting *plotting = drawing->plotting;
	struct findings *findings = &drawing->found->findings;
	const char *branch = plotting->branch ? plotting->branch : "";
	const struct change_record **records =
		arena_array(drawing->arena, plotting->records.count, sizeof *records);
	struct matching matched = {0};
	size_t count = 0;
	bool compared = !drawing->found->failed && drawing->n > 0;

	for (size_t i = 0; i < plotting->records.count; i++) {
		const struct change_record *record = &plotting->records.items[i];

		/* A candidate that was lost was never announced. */
		if (strcmp(record->series, drawing->series->identity) == 0 &&
			strcmp(record->branch, branch) == 0 &&
			!(record->state == CHANGE_WITHDRAWN && record->news == NOTIFY_HELD))
			records[count++] = record;
	}
	drawing->changes =
		arena_array(drawing->arena, count + findings->count, sizeof *drawing->changes);
	if (compared)
		news_match(drawing->arena, findings, records, count, &matched);
	for (size_t i = 0; i < count; i++) {
		enum change_state state = records[i]->state;
		struct plot_change *change = &drawing->changes[drawing->count++];

		*change = record_plot_change(records[i]);
		change->source = state == CHANGE_CANDIDATE ? PLOT_CANDIDATE : PLOT_KNOWN;
		if (compared && matched.fates[i] == FATE_GONE && change_stands(state) &&
			!news_stands(drawing->arena, findings, records[i]))
			change->source = PLOT_LOST;
		change->triage = triage_at(&records[i]->triage, plotting->now);
	}
	for (size_t i = 0; compared && i < findings->count; i++) {
		struct change_record *fresh = arena_alloc(drawing->arena, sizeof *fresh);
		struct plot_change *change = &drawing->changes[drawing->count];

		if (matched.known_of[i] != MATCH_NONE)
			continue;
		drawing->count++;
		*fresh = (struct change_record){.state = CHANGE_CONFIRMED,
			.triage.state = TRIAGE_OPEN,
			.series = drawing->series->identity,
			.branch = branch,
			.item = announce_change(drawing->arena, drawing->test->name,
				drawing->test->environment, drawing->series,
				&findings->changes[i])};
		*change = record_plot_change(fresh);
		/* Without a state only the found changes are shown. */
		change->source = plotting->has_state ? PLOT_FRESH : PLOT_KNOWN;
		change->id = 0;
	}
	qsort(drawing->changes, drawing->count, sizeof *drawing->changes, compare_changes);
}

/* ---- points ---- */

/* The usual distance between points; 0: they have no rhythm. */
static int64_t rhythm_of(const struct drawing *drawing)
{
	const int64_t *times = drawing->series->axis->times;
	int64_t *apart = arena_array(drawing->arena, drawing->n, sizeof *apart);
	int64_t usual;
	size_t count = 0, near = 0;

	for (size_t i = 1; i < drawing->n; i++)
		apart[count++] = times[drawing->points[i]] - times[drawing->points[i - 1]];
	if (count < 2 * GAP)
		return 0;
	qsort(apart, count, sizeof *apart, order_times);
	usual = apart[count / 2];
	for (size_t i = 0; i < count; i++)
		near += apart[i] >= usual / 2 && apart[i] <= usual + usual / 2;
	return near * 100 >= count * REGULAR ? usual : 0;
}

static const struct column *deployed(const struct drawing *drawing)
{
	const struct axis *axis = drawing->series->axis;
	const struct deployments *deployments = axis->deployments;
	struct column *out = arena_alloc(drawing->arena, sizeof *out);
	bool versions = false;

	if (!deployments || deployments->count == 0 || axis_column(axis, "commit"))
		return NULL;
	out->values = arena_array(drawing->arena, axis->n, sizeof *out->values);
	for (size_t i = 0, at = 0; i < axis->n; i++) {
		while (at < deployments->count && deployments->items[at].time <= axis->times[i])
			at++;
		if (at == 0)
			continue;
		out->values[i] = deployments->items[at - 1].commit;
		versions = versions || !out->values[i];
		if (!out->values[i])
			out->values[i] = deployments->items[at - 1].version;
	}
	out->name = versions ? "version" : "commit";
	return axis_column(axis, out->name) ? NULL : out;
}

/* Where the points of a line begin and end: those of the view, and one beyond either end. */
static void cut(const struct drawing *drawing, size_t *first, size_t *end)
{
	const int64_t *times = drawing->series->axis->times;
	const struct plotting *plotting = drawing->plotting;

	*first = 0;
	*end = drawing->n;
	while (*first < *end && times[drawing->points[*first]] < plotting->since)
		++*first;
	while (*end > *first && times[drawing->points[*end - 1]] >= plotting->until)
		--*end;
	*first -= *first > 0;
	*end += *end < drawing->n;
}

struct filling {
	struct plot_line *line;
	int64_t *times;
	double *values;
	struct column *columns;
	const struct column *from;
};

static void put_point(struct filling *filling, int64_t time, double value, size_t index)
{
	struct plot_line *line = filling->line;

	filling->times[line->n] = time;
	filling->values[line->n] = value;
	for (size_t c = 0; c < line->column_count; c++)
		filling->columns[c].values[line->n] =
			index == SIZE_MAX ? NULL : filling->from[c].values[index];
	line->n++;
}

static void add_span(struct spans *spans, struct plot_span span)
{
	if (spans->count == SPANS_MOST)
		return;
	spans->items = arena_grow(spans->arena, spans->items, spans->count, sizeof *spans->items);
	spans->items[spans->count++] = span;
}

/* The existing points; where a series with a rhythm has a gap, the line is interrupted. */
static void fill(struct drawing *drawing, struct plot_line *line)
{
	struct arena *arena = drawing->arena;
	const struct axis *axis = drawing->series->axis;
	const struct column *extra = deployed(drawing);
	const double *values = drawing->plotting->cleaned && !drawing->found->failed
				       ? findings_values(arena, &drawing->found->findings)
				       : drawing->series->values;
	int64_t usual = rhythm_of(drawing);
	size_t first, end, room, count = axis->column_count + (extra != NULL);
	struct column *all = arena_array(arena, count, sizeof *all);
	struct filling filling = {.line = line, .from = all};

	cut(drawing, &first, &end);
	room = 2 * (end - first);
	for (size_t c = 0; c < axis->column_count; c++)
		all[c] = axis->columns[c];
	if (extra)
		all[axis->column_count] = *extra;
	line->times = filling.times = arena_array(arena, room, sizeof *filling.times);
	line->values = filling.values = arena_array(arena, room, sizeof *filling.values);
	line->columns = filling.columns = arena_array(arena, count, sizeof *filling.columns);
	line->column_count = count;
	for (size_t c = 0; c < count; c++)
		filling.columns[c] = (struct column){
			all[c].name, arena_array(arena, room, sizeof(const char *))};
	for (size_t i = first; i < end; i++) {
		int64_t time = axis->times[drawing->points[i]];

		if (i > first && usual > 0 && time - filling.times[line->n - 1] > GAP * usual) {
			int64_t last = filling.times[line->n - 1];

			if (drawing->gaps)
				add_span(drawing->gaps,
					(struct plot_span){PLOT_OUTAGE, last + usual / 2,
						time - usual / 2, "no points"});
			put_point(&filling, last + usual, (double)NAN, SIZE_MAX);
		}
		put_point(&filling, time, values[drawing->points[i]], drawing->points[i]);
	}
	line->total = end - first;
}

/* ---- the plot ---- */

/* The series with that identity, or NULL: it alone is meant, even if a metric has its name. */
static const struct series *identified(const struct dataset *data, const char *name)
{
	for (size_t i = 0; name && i < data->count; i++)
		if (strcmp(data->series[i].identity, name) == 0)
			return &data->series[i];
	return NULL;
}

static const struct change_record *record_of(const struct plotting *plotting)
{
	for (size_t i = 0; plotting->change && i < plotting->records.count; i++)
		if (plotting->records.items[i].item.id == plotting->change)
			return &plotting->records.items[i];
	return NULL;
}

static void draw_line(struct drawing *drawing, struct plot_line *line)
{
	const struct series *series = drawing->series;

	*line = (struct plot_line){.name = series->name,
		.branch = drawing->plotting->branch,
		.test = drawing->test->name,
		.metric = series->metric ? series->metric->name : series->name,
		.identity = series->identity,
		.unit = series->metric ? series->metric->unit : NULL,
		.commit_url = drawing->test->links.commit_url,
		.compare_url = drawing->test->links.compare_url,
		.direction = series_direction(series)};
	list_changes(drawing);
	fill(drawing, line);
	line->changes = drawing->changes;
	line->change_count = drawing->count;
}

static void add_silences(
	struct spans *spans, const struct plotting *plotting, const struct plot *out)
{
	for (size_t i = 0; i < plotting->silences.count; i++) {
		const struct silence *silence = &plotting->silences.items[i];
		bool selects = false;

		/* Of a change only its direction counts. */
		for (size_t l = 0; l < 2 * out->line_count && !selects; l++) {
			const struct plot_line *line = &out->lines[l / 2];
			int sign = l % 2 ? 1 : -1;

			selects = silence_selects(plotting->config, silence->matchers,
				&(struct silence_target){.test = line->test,
					.metric = line->metric,
					.series = line->identity,
					.branch = line->branch ? line->branch : "",
					.sign = sign,
					.verdict = -sign * line->direction});
		}
		if (selects)
			add_span(spans,
				(struct plot_span){PLOT_SILENCE, silence->from,
					silence_end(silence),
					arena_printf(spans->arena, "silenced%s%.100s%s%.300s",
						silence->person ? " by " : "",
						silence->person ? silence->person : "",
						silence->reason ? ": " : "",
						silence->reason ? silence->reason : "")});
	}
}

static void add_outages(
	struct spans *spans, const struct plotting *plotting, const struct test *test)
{
	for (size_t i = 0; i < plotting->health.condition_count; i++) {
		const struct condition *condition = &plotting->health.conditions[i];
		const char *of =
			condition->kind == CONDITION_SOURCE ? condition_source(test)
			: condition->kind == CONDITION_TEST || condition->kind == CONDITION_STALE
				? test->name
				: NULL;

		if (!condition->over && of && strcmp(condition_name(condition), of) == 0)
			add_span(spans, (struct plot_span){PLOT_OUTAGE, condition->since,
						plotting->now, condition->text});
	}
}

/* Shows the change with the points around it, at most to the ends of the line. */
static void look_at(struct plot *out, const struct change_record *record, int64_t change)
{
	const struct plot_line *line = &out->lines[0];
	size_t at = 0, end, first, last;
	int64_t to = record->item.place_to > record->item.time ? record->item.place_to
							       : record->item.time;

	out->mark = change;
	while (at < line->n && line->times[at] < record->item.time)
		at++;
	if (line->n == 0 || at == line->n)
		return;
	end = at;
	while (end < line->n && line->times[end] <= to)
		end++;
	first = at > AROUND ? at - AROUND : 0;
	last = end + AROUND < line->n ? end + AROUND : line->n - 1;
	out->from = line->times[first];
	out->to = line->times[last];
}

static void agree(struct plot *out)
{
	for (size_t i = 0; i < out->line_count; i++) {
		const struct plot_line *line = &out->lines[i];

		if (i == 0) {
			out->unit = line->unit;
			out->direction = line->direction;
			continue;
		}
		if (!out->unit || !line->unit || strcmp(out->unit, line->unit) != 0)
			out->unit = NULL;
		if (out->direction != line->direction)
			out->direction = 0;
	}
}

static void bound(struct arena *arena, const struct plotting *plotting, struct plot *out)
{
	size_t columns = plotting->columns, points = 0;

	if (columns == PLOTTING_WHOLE)
		return;
	for (size_t i = 0; i < out->line_count; i++)
		points += out->lines[i].n;
	if (points > PLOTTING_POINTS) {
		size_t most = PLOTTING_POINTS / 4 / out->line_count + 1;

		columns = columns > 0 && columns < most ? columns : most;
	}
	if (columns > 0)
		plot_reduce(arena, out, columns);
}

bool plotting_make(struct arena *arena, const struct test *test, const struct dataset *data,
	const struct companions *companions, const struct plotting *plotting,
	struct scratch *scratch, struct plot *out, struct error *error)
{
	const struct change_record *record = record_of(plotting);
	const char *name = record ? record->series : plotting->metric;
	const struct series *only = identified(data, name);
	size_t most = plotting->most ? plotting->most : PLOTTING_LINES;
	struct plot_line *lines = arena_array(arena, most, sizeof *lines);
	struct spans spans = {.arena = arena};

	*out = (struct plot){.title = test->name, .lines = lines};
	for (size_t i = 0; i < data->count && out->line_count < most; i++) {
		struct drawing drawing = {.arena = arena,
			.test = test,
			.plotting = plotting,
			.series = &data->series[i],
			.gaps = out->line_count == 0 ? &spans : NULL};

		if (only ? drawing.series != only
			 : name && !why_means(drawing.series, name) &&
					strcmp(drawing.series->name, name) != 0)
			continue;
		find(&drawing, data, companions, scratch);
		draw_line(&drawing, &lines[out->line_count++]);
	}
	if (out->line_count == 0 && plotting->metric && !record)
		return error_set(error, ERROR_USAGE, "metric: there is no series \"%.200s\"%s",
			plotting->metric, why_hint(test, data, plotting->metric, arena));
	agree(out);
	if (out->line_count == 1)
		out->title = arena_printf(arena, "%s %s", test->name, lines[0].name);
	add_silences(&spans, plotting, out);
	add_outages(&spans, plotting, test);
	out->spans = spans.items;
	out->span_count = spans.count;
	if (plotting->since != WHEN_ALWAYS || plotting->until != WHEN_NEVER) {
		out->from = plotting->since != WHEN_ALWAYS  ? plotting->since
			    : out->line_count && lines[0].n ? lines[0].times[0]
							    : plotting->now;
		out->to = plotting->until != WHEN_NEVER ? plotting->until : plotting->now;
		out->mark = plotting->change;
	} else if (record && out->line_count > 0) {
		look_at(out, record, plotting->change);
	}
	bound(arena, plotting, out);
	return true;
}
