/*
 * The axis of values has all points, with one exception: few points so far away that the others
 * would be one flat line. They lie beyond the axis then, and the picture notes it.
 */
#include "agent/report/plot_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/order.h"

static const double LARGEST = 1e300; /* sums and differences of such remain finite */

bool view_has(const struct view *view, double value)
{
	return isfinite(value) && (!view->logarithmic || value > 0);
}

double view_shown(const struct view *view, size_t line, double value)
{
	if (view->relative)
		value = 100 * (value / view->bases[line] - 1);
	return fmin(fmax(value, -LARGEST), LARGEST);
}

double view_across(const struct view *view, double time)
{
	if (view->from == view->to)
		return 0.5 + (time > (double)view->to) - (time < (double)view->from);
	return (time - (double)view->from) / ((double)view->to - (double)view->from);
}

double view_up(const struct view *view, double shown)
{
	if (view->logarithmic)
		return shown > 0 ? (log10(shown) - log10(view->low)) /
					   (log10(view->high) - log10(view->low))
				 : -1;
	return (shown - view->low) / (view->high - view->low);
}

bool view_sees(const struct view *view, const struct plot_change *change)
{
	return change->time >= view->from && change->time <= view->to;
}

bool view_next(const struct view *view, struct view_place *place)
{
	for (; place->line < view->plot->line_count; place->line++, place->next = 0) {
		const struct plot_line *line = &view->plot->lines[place->line];

		while (place->next < line->change_count) {
			place->change = &line->changes[place->next++];
			if (view_sees(view, place->change))
				return true;
		}
	}
	return false;
}

size_t view_count(const struct view *view)
{
	struct view_place at = {0};
	size_t count = 0;

	while (view_next(view, &at))
		count++;
	return count;
}

bool view_interrupted(const struct view *view, int64_t from, int64_t to)
{
	for (size_t i = 0; i < view->plot->span_count; i++) {
		const struct plot_span *span = &view->plot->spans[i];

		if (span->kind == PLOT_OUTAGE && span->from < to && span->to > from)
			return true;
	}
	return false;
}

struct view_range view_points(const struct view *view, const struct plot_line *line)
{
	struct view_range range = {times_lower_bound(line->times, line->n, view->from),
		times_lower_bound(line->times, line->n, view->to)};

	while (range.to < line->n && line->times[range.to] == view->to)
		range.to++;
	range.from -= range.from > 0;
	range.to += range.to < line->n;
	return range;
}

/* The times of all points; false if there are none. */
static bool times_of(const struct plot *plot, int64_t *from, int64_t *to)
{
	bool some = false;

	for (size_t l = 0; l < plot->line_count; l++) {
		const struct plot_line *line = &plot->lines[l];

		if (line->n == 0)
			continue;
		if (!some || line->times[0] < *from)
			*from = line->times[0];
		if (!some || line->times[line->n - 1] > *to)
			*to = line->times[line->n - 1];
		some = true;
	}
	return some;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The level before the first change, or the middle of the first points. */
static double base_of(const struct plot_line *line)
{
	enum { FIRST = 15 };
	double first[FIRST];
	size_t count = 0;

	if (line->change_count > 0 && isfinite(line->changes[0].before))
		return line->changes[0].before;
	for (size_t i = 0; i < line->n && count < FIRST; i++)
		if (isfinite(line->values[i]))
			first[count++] = line->values[i];
	qsort(first, count, sizeof *first, compare);
	return count > 0 ? first[count / 2] : 0;
}

/* Lines that have not even the same unit compare by percentages only. */
static void set_bases(struct view *view, struct arena *arena)
{
	const struct plot *plot = view->plot;
	double *bases = arena_array(arena, plot->line_count, sizeof *bases);

	view->bases = bases;
	view->relative = plot->scale == PLOT_RELATIVE;
	for (size_t l = 1; l < plot->line_count && plot->scale == PLOT_AUTO; l++)
		view->relative |= !order_same(plot->lines[0].unit, plot->lines[l].unit);
	for (size_t l = 0; l < plot->line_count; l++) {
		bases[l] = base_of(&plot->lines[l]);
		view->relative = view->relative && bases[l] != 0 && isfinite(1 / bases[l]);
	}
}

static bool has_positive(const struct plot *plot)
{
	for (size_t l = 0; l < plot->line_count; l++)
		for (size_t i = 0; i < plot->lines[l].n; i++)
			if (plot->lines[l].values[i] > 0 && isfinite(plot->lines[l].values[i]))
				return true;
	return false;
}

/* The values that must fit on the axis, sorted: points, and apart from them the extremes of
 * levels. */
struct extent {
	double *values;
	size_t count;
	double low, high; /* of levels; low > high: none */
};

static struct extent extent_of(const struct view *view, struct arena *arena)
{
	const struct plot *plot = view->plot;
	struct extent extent = {.low = HUGE_VAL, .high = -HUGE_VAL};
	struct view_place at = {0};
	size_t most = 0;

	for (size_t l = 0; l < plot->line_count; l++)
		most += plot->lines[l].n;
	extent.values = arena_array(arena, most, sizeof *extent.values);
	for (size_t l = 0; l < plot->line_count; l++) {
		const struct plot_line *line = &plot->lines[l];

		for (size_t i = 0; i < line->n; i++)
			if (line->times[i] >= view->from && line->times[i] <= view->to &&
				view_has(view, line->values[i]))
				extent.values[extent.count++] =
					view_shown(view, l, line->values[i]);
	}
	while (view_next(view, &at)) {
		const double levels[] = {at.change->before, at.change->after};

		for (size_t i = 0; i < 2; i++)
			if (view_has(view, levels[i])) {
				double level = view_shown(view, at.line, levels[i]);

				extent.low = fmin(extent.low, level);
				extent.high = fmax(extent.high, level);
			}
	}
	qsort(extent.values, extent.count, sizeof *extent.values, compare);
	return extent;
}

/*
 * Leaves out points that are farther from the middle half than six times its width, if they are at
 * most one in fifty (or three), and all others together have less than a fifth of the axis.
 */
static void leave_out(struct view *view, const struct extent *extent)
{
	const double *values = extent->values;
	size_t count = extent->count, from = 0, to = count;
	size_t most = count / 50 > 3 ? count / 50 : 3;

	if (count < 12 || view->logarithmic)
		return;
	double first = values[count / 4], third = values[count - 1 - count / 4];
	double reach = 6 * (third - first);
	while (from < to && values[from] < fmin(first - reach, extent->low))
		from++;
	while (to > from && values[to - 1] > fmax(third + reach, extent->high))
		to--;
	if (from + (count - to) == 0 || from + (count - to) > most || from == to)
		return;
	double low = fmin(values[from], extent->low), high = fmax(values[to - 1], extent->high);
	if (!(high > low) || values[count - 1] - values[0] < 5 * (high - low))
		return;
	view->low = low;
	view->high = high;
	view->beyond = true;
}

/* Air above and below, and zero where it is near. */
static void widen(struct view *view)
{
	enum plot_scale scale = view->plot->scale;
	double low = view->low, high = view->high;

	if (view->logarithmic) {
		double air = high > low ? pow(high / low, 0.06) : 2;

		air = fmin(fmax(air, 1.0001), 1e10);
		view->low = fmax(low / air, 5e-324);
		view->high = fmin(high * air, LARGEST);
		return;
	}
	double air = high > low ? (high - low) * 0.07 : low != 0 ? fabs(low) * 0.1 : 1;
	view->low = low - air;
	view->high = high + air;
	if (low >= 0 && (view->low < 0 || scale == PLOT_FROM_ZERO ||
				(scale == PLOT_AUTO && low < 0.35 * high)))
		view->low = 0;
	if (high <= 0 && (view->high > 0 || scale == PLOT_FROM_ZERO))
		view->high = 0;
	if (!(view->high > view->low)) { /* too near one another for a double to tell */
		view->low = low - fmax(fabs(low), 1e-300);
		view->high = high + fmax(fabs(high), 1e-300);
	}
}

static void set_values(struct view *view, struct arena *arena)
{
	struct extent extent = extent_of(view, arena);

	view->low = extent.low;
	view->high = extent.high;
	if (extent.count > 0) {
		view->low = fmin(view->low, extent.values[0]);
		view->high = fmax(view->high, extent.values[extent.count - 1]);
		leave_out(view, &extent);
	}
	if (view->low > view->high) {
		view->low = view->logarithmic ? 1 : 0;
		view->high = view->logarithmic ? 10 : 1;
	}
	widen(view);
}

struct view view_of(const struct plot *plot, struct arena *arena)
{
	struct view view = {.plot = plot};
	int64_t from = 0, to = 0;

	view.empty = !times_of(plot, &from, &to);
	view.from = plot->from || plot->to ? plot->from : from;
	view.to = plot->from || plot->to ? plot->to : to;
	view.to = view.to > view.from ? view.to : view.from;
	set_bases(&view, arena);
	view.logarithmic = plot->scale == PLOT_LOGARITHMIC && has_positive(plot);
	set_values(&view, arena);
	view.measure = view.relative
			       ? (struct measure){.factor = 1, .mark = "%"}
			       : measure_of(fmax(fabs(view.low), fabs(view.high)), plot->unit);
	return view;
}

struct view_reach view_reach(const struct view *view, const struct plot_line *line, size_t change)
{
	const struct plot_change *own = &line->changes[change];
	struct view_reach reach = {(double)view->from, (double)view->to};

	if (change > 0)
		reach.from = fmax(reach.from, (double)line->changes[change - 1].time);
	if (change + 1 < line->change_count)
		reach.to = fmin(reach.to, (double)line->changes[change + 1].time);
	if (own->level_from)
		reach.from = fmax(reach.from, (double)own->level_from);
	if (own->level_to)
		reach.to = fmin(reach.to, (double)own->level_to);
	return reach;
}

const char *view_legend(const struct view *view, struct arena *arena, const char *separator)
{
	static const char *const directions[] = {"lower is better", "", "higher is better"};
	int sign = (view->plot->direction > 0) - (view->plot->direction < 0);
	const char *const parts[] = {
		view->relative ? "relative to the first level" : view->measure.rest,
		directions[1 + sign], view->logarithmic ? "logarithmic" : ""};
	struct buf text = {0};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (*parts[i])
			buf_printf(&text, "%s%s", text.length > 0 ? separator : "", parts[i]);
	return buf_keep(&text, arena);
}

void view_ticks(const struct view *view, size_t most, struct ticks *out)
{
	if (view->logarithmic)
		ticks_logarithmic(out, view->low, view->high, most, &view->measure);
	else
		ticks_linear(out, view->low, view->high, most, &view->measure, view->relative);
}

/* Fewer points. */

enum { PER_COLUMN = 4, COLUMNS_MOST = 5000 /* beyond the view */ };

struct columns {
	int64_t from, to;
	double fine, coarse; /* ms of a column: within it, and beyond */
};

static double column_of(const struct columns *all, int64_t time)
{
	if (time < all->from)
		return -1 - floor((double)(all->from - time) / all->coarse);
	if (time > all->to)
		return 1e9 + floor((double)(time - all->to) / all->coarse);
	return floor((double)(time - all->from) / all->fine);
}

/* The indices of the points of a line that stay. */
static size_t choose_points(const struct plot_line *line, const struct columns *all, size_t *kept)
{
	const double *values = line->values;
	size_t count = 0;

	for (size_t i = 0, end; i < line->n; i = end) {
		size_t least = i, most = i;
		double column = column_of(all, line->times[i]);

		for (end = i + 1; end < line->n && !isnan(values[i]) && !isnan(values[end]) &&
				  column_of(all, line->times[end]) == column;
			end++) {
			least = values[end] < values[least] ? end : least;
			most = values[end] > values[most] ? end : most;
		}
		const size_t ends[] = {
			i, least < most ? least : most, least < most ? most : least, end - 1};

		for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
			if (count == 0 || kept[count - 1] < ends[k])
				kept[count++] = ends[k];
	}
	return count;
}

static void reduce_line(struct arena *arena, struct plot_line *line, const struct columns *all)
{
	size_t *kept = arena_array(arena, line->n, sizeof *kept);
	size_t count = choose_points(line, all, kept);
	int64_t *times = arena_array(arena, count, sizeof *times);
	double *values = arena_array(arena, count, sizeof *values);
	struct column *columns = arena_array(arena, line->column_count, sizeof *columns);

	for (size_t i = 0; i < count; i++) {
		times[i] = line->times[kept[i]];
		values[i] = line->values[kept[i]];
	}
	for (size_t c = 0; c < line->column_count; c++) {
		columns[c] = (struct column){line->columns[c].name,
			arena_array(arena, count, sizeof *columns[c].values)};
		for (size_t i = 0; i < count; i++)
			columns[c].values[i] = line->columns[c].values[kept[i]];
	}
	line->times = times;
	line->values = values;
	line->columns = columns;
	line->n = count;
}

void plot_reduce(struct arena *arena, struct plot *plot, size_t columns)
{
	struct plot_line *lines = arena_array(arena, plot->line_count, sizeof *lines);
	struct columns all = {.from = plot->from, .to = plot->to};

	if (all.from == all.to)
		(void)times_of(plot, &all.from, &all.to);
	all.fine = (double)(all.to - all.from) / (double)columns;
	for (size_t l = 0; l < plot->line_count; l++) {
		struct plot_line *line = &lines[l];

		*line = plot->lines[l];
		if (line->n <= PER_COLUMN * columns || columns == 0 || all.from >= all.to)
			continue;
		all.coarse = fmax(all.fine,
			(double)(line->times[line->n - 1] - line->times[0]) / COLUMNS_MOST);
		reduce_line(arena, line, &all);
	}
	plot->lines = lines;
}
