#include "agent/report/findings_plot.h"

#include "agent/base/arena.h"

static struct plot_change change_of(const struct findings *findings, const struct change *change)
{
	const struct series *series = findings->series;
	const struct axis *axis = series->axis;
	const struct column *commits = axis_column(axis, "commit");
	const char *accepted =
		findings->accepted ? findings->accepted[change - findings->changes] : NULL;

	return (struct plot_change){.source = PLOT_KNOWN,
		.time = axis->times[change->index],
		.from = axis->times[change->place_from],
		.to = axis->times[change->place_to],
		.before = change->level_before,
		.after = change->level_after,
		.size = change->size,
		.trend = change->kind == CHANGE_TREND,
		.verdict = change_verdict(change, series_direction(series)),
		.triage = accepted ? TRIAGE_EXPECTED : TRIAGE_OPEN,
		.commit = commits && change->kind != CHANGE_TREND ? commits->values[change->index]
								  : NULL};
}

const struct plot *findings_plot(
	struct arena *arena, const char *test, const struct findings *findings)
{
	const struct series *series = findings->series;
	const struct metric *metric = series->metric;
	struct plot *plot = arena_alloc(arena, sizeof *plot);
	struct plot_line *line = arena_alloc(arena, sizeof *line);
	struct plot_change *changes = arena_array(arena, findings->count, sizeof *changes);

	for (size_t i = 0; i < findings->count; i++)
		changes[i] = change_of(findings, &findings->changes[i]);
	*line = (struct plot_line){.n = series->axis->n,
		.times = series->axis->times,
		.values = series->values,
		.changes = changes,
		.change_count = findings->count};
	*plot = (struct plot){.title = arena_printf(arena, "%s %s", test, series->name),
		.unit = metric ? metric->unit : NULL,
		.direction = series_direction(series),
		.lines = line,
		.line_count = 1};
	return plot;
}
