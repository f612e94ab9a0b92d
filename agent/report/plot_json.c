#include "agent/report/plot_json.h"

#include <math.h>
#include <string.h>

#include "agent/base/dict.h"
#include "agent/model/json_put.h"

/* ---- fewer points ---- */

enum { PER_COLUMN = 4, COLUMNS_MOST = 5000 /* beyond the view */ };

struct reduction {
	const struct plot_line *line;
	size_t *kept; /* indices */
	size_t count;
	size_t first, least, most, last;
	bool open;
};

static void keep(struct reduction *reduction, size_t index)
{
	if (reduction->count == 0 || reduction->kept[reduction->count - 1] < index)
		reduction->kept[reduction->count++] = index;
}

static void close_column(struct reduction *reduction)
{
	bool falls = reduction->most < reduction->least;

	if (!reduction->open)
		return;
	keep(reduction, reduction->first);
	keep(reduction, falls ? reduction->most : reduction->least);
	keep(reduction, falls ? reduction->least : reduction->most);
	keep(reduction, reduction->last);
	reduction->open = false;
}

static void add_point(struct reduction *reduction, size_t index)
{
	const double *values = reduction->line->values;

	if (isnan(values[index])) {
		close_column(reduction);
		keep(reduction, index);
		return;
	}
	if (!reduction->open) {
		reduction->first = reduction->least = reduction->most = index;
		reduction->open = true;
	}
	if (values[index] < values[reduction->least])
		reduction->least = index;
	if (values[index] > values[reduction->most])
		reduction->most = index;
	reduction->last = index;
}

static void take_kept(struct arena *arena, struct plot_line *line, const size_t *kept, size_t count)
{
	int64_t *times = arena_array(arena, count, sizeof *times);
	double *values = arena_array(arena, count, sizeof *values);
	const char **commits = arena_array(arena, count, sizeof *commits);
	struct column *columns = arena_array(arena, line->column_count, sizeof *columns);

	for (size_t c = 0; c < line->column_count; c++)
		columns[c] = (struct column){line->columns[c].name,
			arena_array(arena, count, sizeof *columns[c].values)};
	for (size_t i = 0; i < count; i++) {
		times[i] = line->times[kept[i]];
		values[i] = line->values[kept[i]];
		commits[i] = line->commits ? line->commits[kept[i]] : NULL;
		for (size_t c = 0; c < line->column_count; c++)
			columns[c].values[i] = line->columns[c].values[kept[i]];
	}
	line->times = times;
	line->values = values;
	line->commits = line->commits ? commits : NULL;
	line->columns = columns;
	line->n = count;
}

static double span_of(const struct plot_line *line)
{
	return line->n > 0 ? (double)(line->times[line->n - 1] - line->times[0]) : 0;
}

struct view {
	int64_t from, to;
	double fine, coarse; /* ms of a column: within it, and beyond */
};

static double column_of(const struct view *view, int64_t time)
{
	if (time < view->from)
		return -1 - floor((double)(view->from - time) / view->coarse);
	if (time > view->to)
		return 1e9 + floor((double)(time - view->to) / view->coarse);
	return floor((double)(time - view->from) / view->fine);
}

static void reduce_line(struct arena *arena, struct plot_line *line, const struct view *view)
{
	struct reduction reduction = {
		.line = line, .kept = arena_array(arena, line->n, sizeof *reduction.kept)};
	double column = (double)NAN;

	for (size_t i = 0; i < line->n; i++) {
		double now = column_of(view, line->times[i]);

		if (now != column)
			close_column(&reduction);
		column = now;
		add_point(&reduction, i);
	}
	close_column(&reduction);
	take_kept(arena, line, reduction.kept, reduction.count);
}

void plot_reduce(struct arena *arena, struct plot *plot, size_t columns)
{
	struct plot_line *lines = arena_array(arena, plot->line_count, sizeof *lines);
	int64_t from = plot->from, to = plot->to;

	for (size_t l = 0; l < plot->line_count; l++)
		lines[l] = plot->lines[l];
	for (size_t l = 0; l < plot->line_count && plot->from == plot->to; l++) {
		const struct plot_line *line = &lines[l];

		if (line->n > 0 && (from == to || line->times[0] < from))
			from = line->times[0];
		if (line->n > 0 && line->times[line->n - 1] > to)
			to = line->times[line->n - 1];
	}
	for (size_t l = 0; l < plot->line_count && columns > 0 && from < to; l++) {
		struct view view = {
			.from = from, .to = to, .fine = (double)(to - from) / (double)columns};

		view.coarse = fmax(view.fine, span_of(&lines[l]) / COLUMNS_MOST);
		if (lines[l].n > PER_COLUMN * columns)
			reduce_line(arena, &lines[l], &view);
	}
	plot->lines = lines;
}

/* ---- JSON ---- */

static void put_ms(struct buf *out, const char *key, int64_t ms)
{
	buf_printf(out, ", \"%s\": ", key);
	if (ms == 0)
		buf_text(out, "null");
	else
		buf_printf(out, "%lld", (long long)ms);
}

static void put_change(struct buf *out, const struct plot_change *change)
{
	buf_printf(out, "{\"id\": ");
	if (change->id)
		buf_printf(out, "%lld", (long long)change->id);
	else
		buf_text(out, "null");
	json_put_text(out, "source", plot_source_names[change->source]);
	put_ms(out, "time", change->time);
	put_ms(out, "from", change->from);
	put_ms(out, "to", change->to);
	json_put_number(out, "before", change->before);
	json_put_number(out, "after", change->after);
	put_ms(out, "level_from", change->level_from);
	put_ms(out, "level_to", change->level_to);
	json_put_number(out, "size", change->size);
	json_put_bool(out, "trend", change->trend);
	buf_printf(out, ", \"verdict\": %d", change->verdict);
	put_ms(out, "ended", change->ended);
	json_put_bool(out, "withdrawn", change->withdrawn);
	json_put_text(out, "triage", triage_state_names[change->triage]);
	json_put_text(out, "commit", change->commit);
	buf_char(out, '}');
}

/* Each text once, and for each point which it has: points of one commit are many. */
static void put_column(struct buf *out, const struct column *column, size_t n)
{
	struct arena *arena = arena_new();
	struct name_index texts = {.dict.arena = arena};
	struct buf at = {0};

	for (size_t i = 0; i < n; i++) {
		const char *text = column->values[i];

		buf_text(&at, i ? "," : "");
		if (text)
			buf_printf(&at, "%zu", name_index_add(&texts, text, strlen(text)));
		else
			buf_text(&at, "-1");
	}
	buf_json_text(out, column->name);
	buf_text(out, ": {\"values\": [");
	for (size_t i = 0; i < texts.count; i++) {
		buf_text(out, i ? ", " : "");
		buf_json_text(out, texts.items[i]);
	}
	buf_printf(out, "], \"at\": [%s]}", at.data ? at.data : "");
	buf_free(&at);
	arena_free(arena);
}

static void put_line(struct buf *out, const struct plot_line *line)
{
	buf_text(out, "{\"name\": ");
	buf_json_text(out, line->name);
	json_put_text(out, "test", line->test);
	json_put_text(out, "metric", line->metric);
	json_put_text(out, "series", line->identity);
	json_put_text(out, "branch", line->branch && *line->branch ? line->branch : NULL);
	json_put_text(out, "unit", line->unit);
	json_put_text(out, "commit_url", line->commit_url);
	json_put_text(out, "compare_url", line->compare_url);
	buf_printf(out, ", \"direction\": %d, \"total\": %zu,\n   \"times\": [", line->direction,
		line->total ? line->total : line->n);
	for (size_t i = 0; i < line->n; i++)
		buf_printf(out, "%s%lld", i ? "," : "", (long long)line->times[i]);
	buf_text(out, "],\n   \"values\": [");
	for (size_t i = 0; i < line->n; i++) {
		buf_text(out, i ? "," : "");
		buf_json_number(out, line->values[i]);
	}
	buf_text(out, "],\n   \"attributes\": {");
	for (size_t c = 0; c < line->column_count; c++) {
		buf_text(out, c ? ",\n    " : "");
		put_column(out, &line->columns[c], line->n);
	}
	buf_text(out, "},\n   \"changes\": [");
	for (size_t i = 0; i < line->change_count; i++) {
		buf_text(out, i ? ",\n    " : "");
		put_change(out, &line->changes[i]);
	}
	buf_text(out, "]}");
}

void plot_put_json(struct buf *out, const struct plot *plot)
{
	buf_text(out, "{\"title\": ");
	buf_json_text(out, plot->title);
	json_put_text(out, "unit", plot->unit);
	buf_printf(out, ", \"direction\": %d", plot->direction);
	put_ms(out, "from", plot->from);
	put_ms(out, "to", plot->to);
	put_ms(out, "mark", plot->mark);
	json_put_text(out, "scale", plot_scale_names[plot->scale]);
	buf_text(out, ", \"lines\": [");
	for (size_t i = 0; i < plot->line_count; i++) {
		buf_text(out, i ? ",\n  " : "\n  ");
		put_line(out, &plot->lines[i]);
	}
	buf_text(out, "], \"spans\": [");
	for (size_t i = 0; i < plot->span_count; i++) {
		const struct plot_span *span = &plot->spans[i];

		buf_printf(out, "%s{\"kind\": \"%s\"", i ? ", " : "",
			span->kind == PLOT_SILENCE ? "silence" : "outage");
		put_ms(out, "from", span->from);
		put_ms(out, "to", span->to);
		json_put_text(out, "text", span->text);
		buf_char(out, '}');
	}
	buf_text(out, "]}\n");
}
