#include "agent/report/record_plot.h"


#include "agent/base/arena.h"
#include "agent/model/announcement.h"

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
