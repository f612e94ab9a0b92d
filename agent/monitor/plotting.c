#include "agent/monitor/plotting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/hourly.h"
#include "agent/analysis/select.h"
#include "agent/base/label.h"
#include "agent/base/order.h"
#include "agent/base/when.h"
#include "agent/monitor/condition.h"
#include "agent/monitor/news.h"
#include "agent/monitor/series_cache.h"
#include "agent/notify/announce.h"
#include "agent/notify/silence.h"
#include "agent/report/plot_view.h"
#include "agent/report/record_plot.h"

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
	const struct test *test = task->test;
	int64_t range = source_range(source_find(test->source->name), test->options);
	struct series_cache *cache = series_cache_make();
	int64_t since;
	bool wide = false;

	series_cache_restore(cache, plotting->checkpoints.items, plotting->checkpoints.count);
	since = series_cache_begin(cache, task->query.now, range);
	for (int64_t far = range; range > 0 && far < INT64_MAX / 4 && plotting->since < since &&
				  plotting->since != WHEN_ALWAYS;
		far *= 2) {
		since = selection_standing_since(task->query.now, 2 * far);
		wide = true;
	}
	if (range > 0)
		task->query.since = since;
	if (test->evaluation_delay > 0)
		task->query.until = task->query.now - test->evaluation_delay;
	task->query.branch = arena_strdup(task->query.arena, plotting->branch);
	series_cache_free(cache);
	return wide;
}

/* ---- changes found in the points ---- */

static int64_t anchor_of(const struct drawing *drawing)
{
	const struct checkpoint_rows *rows = &drawing->plotting->checkpoints;

	for (size_t i = 0; i < rows->count && !drawing->plotting->branch; i++)
		if (strcmp(rows->items[i].series, drawing->series->identity) == 0)
			return rows->items[i].anchor;
	return WHEN_ALWAYS;
}

static bool examine(struct drawing *drawing, struct arena *arena, const struct dataset *data,
	const struct companions *companions, struct scratch *scratch, struct error *error)
{
	const struct test *test = drawing->test;
	const struct detection *detection = analysis_configured(test, drawing->series->metric);
	struct plotting_found *found = drawing->found;
	const struct series *series = hourly_series(
				    arena, detection, drawing->series, found->anchor, scratch),
			    *other;
	const struct control_rule *rule;
	struct sampling sampling;
	size_t front;

	found->findings = (struct findings){.series = series};
	if (!sampling_read(arena, test, series->axis, &sampling, error) ||
		!analysis_other(
			arena, test, data, companions, series, detection, &rule, &other, error))
		return false;
	found->findings = analysis_adjust(arena, series, detection, rule, other, scratch);
	front = axis_lower_bound(series->axis, found->anchor);
	return analysis_detect(arena, &sampling, detection, front < series->axis->n ? front : 0,
		series->axis->n, scratch, &found->findings, error);
}

/* A series that cannot be examined is drawn all the same. */
static void find(struct drawing *drawing, const struct dataset *data,
	const struct companions *companions, struct scratch *scratch)
{
	const struct plotting *plotting = drawing->plotting;
	int64_t anchor = anchor_of(drawing);
	size_t index = (size_t)(drawing->series - data->series);
	struct arena *arena = plotting->found ? plotting->found_arena : drawing->arena;
	struct error error;

	drawing->found = plotting->found ? &plotting->found[index]
					 : arena_alloc(drawing->arena, sizeof *drawing->found);
	if (!drawing->found->done || drawing->found->anchor != anchor) {
		*drawing->found = (struct plotting_found){.done = true, .anchor = anchor};
		drawing->found->failed =
			!examine(drawing, arena, data, companions, scratch, &error);
		(void)findings_values(arena, &drawing->found->findings); /* kept with them */
	}
	drawing->series = drawing->found->findings.series;
}

static void list_points(struct drawing *drawing)
{
	const struct series *series = drawing->series;

	drawing->points = arena_array(drawing->arena, series->axis->n, sizeof *drawing->points);
	for (size_t i = 0; i < series->axis->n; i++)
		if (!isnan(series->values[i]))
			drawing->points[drawing->n++] = i;
}

/* ---- changes ---- */

static struct plot_change change_known(
	const struct change_record *record, enum plot_source source, int64_t now)
{
	struct plot_change change = record_plot_change(record);

	change.source = source;
	change.triage = triage_at(&record->triage, now);
	return change;
}

static struct plot_change change_fresh(const struct drawing *drawing, const struct change *change)
{
	struct change_record record = {.state = CHANGE_CONFIRMED,
		.triage.state = TRIAGE_OPEN,
		.item = announce_change(drawing->arena, drawing->test->name,
			drawing->test->environment, drawing->series, change)};
	struct plot_change out = record_plot_change(&record);

	/* Without a state only the found changes are shown. */
	out.source = drawing->plotting->has_state ? PLOT_FRESH : PLOT_KNOWN;
	out.id = 0;
	return out;
}

/* A candidate that was lost was never announced. */
static bool is_drawn(const struct drawing *drawing, const struct change_record *record)
{
	const char *branch = drawing->plotting->branch ? drawing->plotting->branch : "";

	return strcmp(record->series, drawing->series->identity) == 0 &&
	       strcmp(record->branch, branch) == 0 &&
	       !(record->state == CHANGE_WITHDRAWN && record->news == NOTIFY_HELD);
}

/* A change that the detector no longer finds is not lost while the points show evidence of it. */
static bool is_lost(const struct drawing *drawing, const struct change_record *record)
{
	return change_stands(record->state) &&
	       !news_stands(drawing->arena, &drawing->found->findings, record);
}

static int compare_changes(const void *a, const void *b)
{
	const struct plot_change *left = a, *right = b;

	return (left->time > right->time) - (left->time < right->time);
}

static void add_change(struct drawing *drawing, struct plot_change change)
{
	drawing->changes[drawing->count++] = change;
}

static void list_changes(struct drawing *drawing)
{
	const struct plotting *plotting = drawing->plotting;
	const struct findings *findings = &drawing->found->findings;
	const struct change_record **records =
		arena_array(drawing->arena, plotting->records.count, sizeof *records);
	struct matching matched = {0};
	size_t count = 0;
	bool compared = !drawing->found->failed && drawing->n > 0;

	for (size_t i = 0; i < plotting->records.count; i++)
		if (is_drawn(drawing, &plotting->records.items[i]))
			records[count++] = &plotting->records.items[i];
	drawing->changes =
		arena_array(drawing->arena, count + findings->count, sizeof *drawing->changes);
	if (compared)
		news_match(drawing->arena, &drawing->found->findings, records, count, &matched);
	for (size_t i = 0; i < count; i++) {
		enum plot_source source =
			records[i]->state == CHANGE_CANDIDATE ? PLOT_CANDIDATE : PLOT_KNOWN;

		if (compared && matched.fates[i] == FATE_GONE && is_lost(drawing, records[i]))
			source = PLOT_LOST;
		add_change(drawing, change_known(records[i], source, plotting->now));
	}
	for (size_t i = 0; compared && i < findings->count; i++)
		if (matched.known_of[i] == MATCH_NONE)
			add_change(drawing, change_fresh(drawing, &findings->changes[i]));
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

/* `requests{region="eu"}` means the metric's series with these labels, `{region="eu"}` those of
 * any. */
static bool has_labels(const struct series *series, const char *asked)
{
	const char *metric = series->metric ? series->metric->name : series->name;
	size_t length = strcspn(asked, "{");

	if (!label_has_asked(series->identity, asked))
		return false;
	return length == 0 || (strlen(metric) == length && memcmp(metric, asked, length) == 0) ||
	       (strcspn(series->identity, "{") == length &&
		       memcmp(series->identity, asked, length) == 0);
}

static bool is_meant(const struct series *series, const char *name)
{
	return !name || has_labels(series, name) ||
	       (series->metric && strcmp(series->metric->name, name) == 0) ||
	       strcmp(series->name, name) == 0 || strcmp(series->identity, name) == 0;
}

/* The series with that identity, or NULL: it alone is meant, even if a metric has its name. */
static const struct series *identified(const struct dataset *data, const char *name)
{
	for (size_t i = 0; name && i < data->count; i++)
		if (strcmp(data->series[i].identity, name) == 0)
			return &data->series[i];
	return NULL;
}

static bool no_series(const struct dataset *data, const char *name, struct error *error)
{
	const char **names = memory_new(data->count + 1, sizeof *names), *near;

	for (size_t i = 0; i < data->count; i++)
		names[i] = data->series[i].name;
	near = field_suggest(name, names, data->count);
	error_set(error, ERROR_USAGE, "metric: there is no series \"%.200s\"%s%.120s%s", name,
		near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
	free(names);
	return false;
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

/* Of a change only its direction counts. */
static bool is_silenced(
	const struct plotting *plotting, const char *matchers, const struct plot_line *line)
{
	struct silence_target subject = {.test = line->test,
		.metric = line->metric,
		.series = line->identity,
		.branch = line->branch ? line->branch : ""};

	for (int sign = -1; sign <= 1; sign += 2) {
		subject.sign = sign;
		subject.verdict = -sign * line->direction;
		if (silence_selects(plotting->config, matchers, &subject))
			return true;
	}
	return false;
}

static void add_silences(
	struct spans *spans, const struct plotting *plotting, const struct plot *out)
{
	for (size_t i = 0; i < plotting->silences.count; i++) {
		const struct silence *silence = &plotting->silences.items[i];
		bool selects = false;

		for (size_t l = 0; l < out->line_count && !selects; l++)
			selects = is_silenced(plotting, silence->matchers, &out->lines[l]);
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

static bool is_about(const struct condition *condition, const struct test *test)
{
	const char *name = condition_name(condition);

	if (condition->kind == CONDITION_SOURCE)
		return strcmp(name, test->server ? test->server->name : test->source->name) == 0;
	return (condition->kind == CONDITION_TEST || condition->kind == CONDITION_STALE) &&
	       strcmp(name, test->name) == 0;
}

static void add_outages(
	struct spans *spans, const struct plotting *plotting, const struct test *test)
{
	for (size_t i = 0; i < plotting->health.condition_count; i++) {
		const struct condition *condition = &plotting->health.conditions[i];

		if (!condition->over && is_about(condition, test))
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

		if (only ? drawing.series != only : !is_meant(drawing.series, name))
			continue;
		find(&drawing, data, companions, scratch);
		list_points(&drawing);
		draw_line(&drawing, &lines[out->line_count++]);
	}
	if (out->line_count == 0 && plotting->metric && !record)
		return no_series(data, plotting->metric, error);
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
