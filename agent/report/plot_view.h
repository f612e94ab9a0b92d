/*
 * Which part of a plot is shown, and how its values and times become places on an axis.
 */
#ifndef AGENT_REPORT_PLOT_VIEW_H
#define AGENT_REPORT_PLOT_VIEW_H

#include "agent/report/plot.h"
#include "agent/report/plot_ticks.h"

struct arena;

struct view {
	const struct plot *plot;
	int64_t from, to; /* ms, from <= to */
	double low, high; /* low < high; of values as view_shown gives them */
	bool logarithmic, relative;
	bool beyond; /* some points lie beyond low and high: few, and very far from the rest */
	bool empty;  /* no points at all */
	const double *bases; /* by line, of a relative view */
	struct measure measure;
};

struct view view_of(const struct plot *plot, struct arena *arena);

/* The points of a line that are in view, and one more on either side: [from, to). */
struct view_range {
	size_t from, to;
};

struct view_range view_points(const struct view *view, const struct plot_line *line);

/* Whether a value has a place: it is a number, and on a logarithmic axis above zero. */
bool view_has(const struct view *view, double value);

/* The value as the axis has it: itself, or in percent of the line's first level. */
double view_shown(const struct view *view, size_t line, double value);

/* Places, 0 to 1 within the view, of a time and of a value as shown. */
double view_across(const struct view *view, double time);
double view_up(const struct view *view, double shown);

/* Whether the source was down at some time between two points. */
bool view_interrupted(const struct view *view, int64_t from, int64_t to);

bool view_sees(const struct view *view, const struct plot_change *change);

/* Goes on to the next change in view, line by line, from a zeroed place; false if there is none. */
struct view_place {
	size_t line, next;
	const struct plot_change *change;
};

bool view_next(const struct view *view, struct view_place *place);
size_t view_count(const struct view *view); /* how many there are */

/* Where the levels of a line's change hold: from, and to. */
struct view_reach {
	double from, to; /* ms */
};

struct view_reach view_reach(const struct view *view, const struct plot_line *line, size_t change);

/* The title of the axis of values, joined by a separator: "ops/s · higher is better". */
const char *view_legend(const struct view *view, struct arena *arena, const char *separator);

static inline unsigned view_clamp(unsigned value, unsigned least, unsigned most)
{
	value = value < least ? least : value;
	return value > most ? most : value;
}

void view_ticks(const struct view *view, size_t most, struct ticks *out);

/*
 * Reduces each line to the points that a picture of so many columns of pixels shows: the first, the
 * least, the greatest and the last point of each, so that no spike is hidden. The columns divide
 * the view, else all points; points without a value stay. The lines are copied.
 */
void plot_reduce(struct arena *arena, struct plot *plot, size_t columns);

#endif
