#include "agent/report/plot.h"

#include <string.h>

#include "agent/base/dict.h"
#include "agent/model/json_put.h"

const char *const plot_source_names[PLOT_SOURCES] = {"known", "candidate", "fresh", "lost"};
const char *const plot_scale_names[PLOT_SCALES + 1] = {"auto", "zero", "log", "relative"};

const char *plot_span_text(const struct plot_span *span)
{
	static const char *const texts[PLOT_SPAN_KINDS] = {
		[PLOT_SILENCE] = "silenced", [PLOT_OUTAGE] = "no data"};

	return span->text && *span->text ? span->text : texts[span->kind];
}

const char *plot_state_text(const struct plot_change *change)
{
	static const char *const sources[PLOT_SOURCES] = {[PLOT_CANDIDATE] = "not confirmed",
		[PLOT_FRESH] = "found only now",
		[PLOT_LOST] = "no longer found"};

	if (change->withdrawn)
		return "withdrawn";
	if (change->triage > TRIAGE_OPEN && change->triage < TRIAGE_STATES)
		return triage_state_names[change->triage];
	if (sources[change->source])
		return sources[change->source];
	return change->ended ? "over" : "";
}

static void put_change(struct buf *out, const struct plot_change *change)
{
	json_put(out,
		"{id: %jd id, source: %s, time: %jd id, from: %jd id, to: %jd id, "
		"before: %g, after: %g, level_from: %jd id, level_to: %jd id, "
		"size: %g, trend: %d bool, verdict: %d, ended: %jd id, "
		"withdrawn: %d bool, triage: %s, commit: %s}",
		change->id, plot_source_names[change->source], change->time, change->from,
		change->to, change->before, change->after, change->level_from, change->level_to,
		change->size, change->trend, change->verdict, change->ended, change->withdrawn,
		triage_state_names[change->triage], change->commit);
}

/* Each text once, and for each point which it has: points of one commit are many. */
static void put_column(struct buf *out, const struct column *column, size_t n)
{
	struct arena *arena = arena_new();
	struct name_index texts = {.dict.arena = arena};
	struct buf at = {0};

	for (size_t i = 0; i < n; i++) {
		const char *text = column->values[i];

		buf_printf(&at, "%s%d", i ? "," : "",
			text ? (int)name_index_add(&texts, text, strlen(text)) : -1);
	}
	buf_json_text(out, column->name);
	buf_text(out, ": ");
	json_put(out, "{values: %p, at: [%s json]}",
		&(const struct strings){texts.items, texts.count}, at.data ? at.data : "");
	buf_free(&at);
	arena_free(arena);
}

static void put_line(struct buf *out, const struct plot_line *line)
{
	json_put(out,
		"\n{name: %s, test: %s, metric: %s, series: %s, branch: %s optional, "
		"unit: %s, commit_url: %s, compare_url: %s, direction: %d, total: %zu, "
		"times: [",
		line->name, line->test, line->metric, line->identity, line->branch, line->unit,
		line->commit_url, line->compare_url, line->direction,
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
		json_line(out);
		put_change(out, &line->changes[i]);
	}
	buf_text(out, "]}");
}

void plot_put_json(struct buf *out, const struct plot *plot)
{
	static const char *const kinds[PLOT_SPAN_KINDS] = {"silence", "outage"};

	json_put(out,
		"{title: %s, unit: %s, direction: %d, from: %jd id, to: %jd id, "
		"mark: %jd id, scale: %s, lines: [",
		plot->title, plot->unit, plot->direction, plot->from, plot->to, plot->mark,
		plot_scale_names[plot->scale]);
	for (size_t i = 0; i < plot->line_count; i++)
		put_line(out, &plot->lines[i]);
	buf_text(out, "], \"spans\": [");
	for (size_t i = 0; i < plot->span_count; i++) {
		json_put(out, "\n{kind: %s, from: %jd id, to: %jd id, text: %s}",
			kinds[plot->spans[i].kind], plot->spans[i].from, plot->spans[i].to,
			plot->spans[i].text);
	}
	buf_text(out, "]}");
}

/* ---- a change as a plot, from the store alone ---- */

struct plot_change record_plot_change(const struct change_record *record)
{
	const struct announcement *item = &record->item;
	const struct change *change = &item->change;

	return (struct plot_change){.record = record,
		.id = item->id,
		.source = record->state == CHANGE_CANDIDATE ? PLOT_CANDIDATE : PLOT_KNOWN,
		.time = item->time,
		.from = item->place_from ? item->place_from : item->time,
		.to = item->place_to ? item->place_to : item->time,
		.before = change->level_before,
		.after = change->level_after,
		.size = change->size,
		.trend = change->kind == CHANGE_TREND,
		.verdict = announcement_verdict(item),
		.ended = record->state == CHANGE_RECOVERED ? item->over.time : 0,
		.withdrawn = record->state == CHANGE_WITHDRAWN,
		.triage = record->triage.state,
		.commit = announcement_bad(item)};
}

/* The extent of its levels: the number of points on either side when it was found. Only where the
 * points are all there. */
static void set_levels(struct plot_change *change, const struct excerpted *found)
{
	const struct change *known = &found->record.item.change;
	const struct excerpt *excerpt = &found->excerpt;
	size_t at = 0;

	if (excerpt->n >= EXCERPT_MOST)
		return;
	while (at < excerpt->n && excerpt->times[at] < change->time)
		at++;
	if (at >= excerpt->n)
		return;
	if (known->count_before > 0 && known->count_before < at)
		change->level_from = excerpt->times[at - known->count_before];
	if (known->count_after > 0 && known->count_after < excerpt->n - at)
		change->level_to = excerpt->times[at + known->count_after - 1];
}

const struct plot *record_plot(struct arena *arena, const struct excerpted *found)
{
	const struct announcement *item = &found->record.item;
	int64_t spacing = item->spacing > 0 ? item->spacing : 3600000;
	struct plot *plot = arena_alloc(arena, sizeof *plot);
	struct plot_line *line = arena_alloc(arena, sizeof *line);
	struct plot_change *change = arena_alloc(arena, sizeof *change);

	*change = record_plot_change(&found->record);
	set_levels(change, found);
	*line = (struct plot_line){.name = item->metric,
		.test = item->test,
		.metric = item->metric,
		.identity = found->record.series,
		.branch = found->record.branch,
		.unit = item->unit,
		.direction = item->direction,
		.n = found->excerpt.n,
		.total = found->excerpt.n,
		.times = found->excerpt.times,
		.values = found->excerpt.values,
		.changes = change,
		.change_count = 1};
	*plot = (struct plot){.title = arena_printf(arena, "%s %s", item->test, item->metric),
		.unit = item->unit,
		.direction = item->direction,
		.lines = line,
		.line_count = 1,
		.mark = item->id};
	/* The range to show is that of the points; without any, the usual number of points. */
	if (found->excerpt.n <= 1) {
		plot->from = change->from - EXCERPT_SIDE * spacing;
		plot->to = change->to + EXCERPT_SIDE * spacing;
	}
	return plot;
}
