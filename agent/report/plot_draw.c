/*
 * The layout of a picture. It has a head (title, unit and direction, names of several lines), a
 * lane of labels for its changes, the body, and the times. Where there is no room, it goes without:
 * commits first, then labels of lesser changes; points, levels and changes always stay.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/utf8.h"
#include "agent/base/when.h"
#include "agent/report/plot_canvas.h"
#include "agent/report/plot_ticks.h"
#include "agent/report/plot_view.h"
#include "agent/report/table.h"

/* Those of the page (agent/web/page/page.css). Worse and better differ for the colour-blind, too,
 * and so do neighbouring series. */
static const unsigned inks[INKS][2] = {
	[INK_GROUND] = {0xffffff, 0x11171d},
	[INK_TEXT] = {0x16202a, 0xe8edf2},
	[INK_FAINT] = {0x53616f, 0xa9b6c3},
	[INK_GRID] = {0xe6eaee, 0x232d36},
	[INK_AXIS] = {0x9aa6b2, 0x5b6873},
	[INK_WORSE] = {0xb3261e, 0xff8d85},
	[INK_BETTER] = {0x00707a, 0x5fd4cb},
	[INK_NEUTRAL] = {0x6f42a8, 0xc9a6ff},
	[INK_LEVEL] = {0x16202a, 0xe8edf2},
	[INK_BAND] = {0xe09500, 0xffbe46},
	[INK_SILENCE] = {0x53616f, 0xa9b6c3},
	[INK_OUTAGE] = {0xb3261e, 0xff8d85},
	[INK_SERIES] = {0x0f4c81, 0x7fbcff},
	[INK_SERIES + 1] = {0xb35900, 0xffb066},
	[INK_SERIES + 2] = {0x6f42a8, 0xc9a6ff},
	[INK_SERIES + 3] = {0x00706b, 0x5fd4cb},
	[INK_SERIES + 4] = {0x9c2a6b, 0xff9ecb},
	[INK_SERIES + 5] = {0x5d6b00, 0xcdd86a},
};

unsigned ink_color(enum ink ink, enum plot_theme theme)
{
	return inks[ink][theme == PLOT_DARK];
}

struct plot_style plot_style_of(const struct plot_style *style)
{
	struct plot_style out = *style;

	out.width = view_clamp(out.width ? out.width : out.small ? 160 : 960, 16, PLOT_MOST_PIXELS);
	out.height = view_clamp(out.height  ? out.height
				: out.small ? 40
					    : 400,
		16, PLOT_MOST_PIXELS);
	out.small = out.small || out.width < 200 || out.height < 100;
	return out;
}

/* The width of the next character, which it steps over: shares of an em, roughly those of DejaVu
 * Sans, which is wider than most. An invalid byte is a character. */
static double next_width(const char **text)
{
	static const struct {
		const char *characters;
		double width;
	} kinds[] = {{"ijl.,:;'|!I ", 0.33}, {"()[]{}frt/\\-\"", 0.4}, {"mMW@%", 0.97},
		{"wOQ+=<>~#&", 0.82}, {"ABCDEFGHJKLNPRSTUVXYZ", 0.7}};
	size_t length = utf8_length(*text, strnlen(*text, 4));
	char one[5] = {0};

	length = length > 0 ? length : 1;
	memcpy(one, *text, length);
	*text += length;
	if (length > 1)
		return text_width(one) == 2 ? 1.0 : text_width(one) == 1 ? 0.64 : 0;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strchr(kinds[i].characters, *one))
			return kinds[i].width;
	return 0.62;
}

static double caption_width(const char *text, double size, bool bold)
{
	double width = 0;

	while (*text)
		width += next_width(&text);
	return width * size * (bold ? 1.1 : 1);
}

/* The text, or its beginning with an ellipsis. */
static const char *fitted(
	struct arena *arena, const char *text, double size, bool bold, double most)
{
	double width = size;
	const char *at = text, *kept = text;

	if (strlen(text) < 10000 && caption_width(text, size, bold) <= most)
		return text;
	while (*at && (width += next_width(&at) * size * (bold ? 1.1 : 1)) <= most)
		kept = at;
	return arena_printf(arena, "%.*s…", (int)(kept - text), text);
}

/* Sizes of type and distances, px. */
enum { TYPE = 12, SMALL_TYPE = 11, TITLE = 15, EDGE = 14, TRIANGLE = 4 };

/* A change with its texts, and where they are placed. */
struct label {
	const struct plot_change *change;
	const char *full, *brief, *second; /* second: a line below; or "" */
	double x, rank;
	double left, right;
	size_t row;
	bool placed, words;
};

struct drawing {
	struct view view;
	const struct plot *plot;
	struct plot_style style;
	struct canvas *canvas;
	struct arena *arena;
	double width, height;
	double left, top, right, bottom; /* of the body */
	double inset;                    /* of the points, at either end of the times */
	struct ticks values, times;
	double type;
	struct label *labels; /* the most important first */
	size_t label_count, label_rows;
	bool commits; /* labels have a second line */
	size_t seen;  /* changes in view */
};

static struct spot spot_of(const struct drawing *d, double time, double value)
{
	double across = view_across(&d->view, time), up = view_up(&d->view, value);

	up = up < -1 ? -1 : up > 2 ? 2 : up;
	return (struct spot){d->left + d->inset + across * (d->right - d->left - 2 * d->inset),
		d->bottom - up * (d->bottom - d->top)};
}

static double x_of(const struct drawing *d, int64_t time)
{
	return spot_of(d, (double)time, 0).x;
}

static void figure(struct drawing *d, enum figure_kind kind, const struct spot *spots, size_t count,
	struct pen pen)
{
	d->canvas->draw(d->canvas,
		&(struct figure){.kind = kind, .spots = spots, .count = count, .pen = pen});
}

static void fill(struct drawing *d, double left, double top, double right, double bottom,
	enum ink ink, double opacity)
{
	figure(d, FIGURE_AREA, (const struct spot[]){{left, top}, {right, bottom}}, 2,
		(struct pen){ink, opacity, 0, 0, 0});
}

static void rule(struct drawing *d, double x, double y, double to_x, double to_y, struct pen pen)
{
	figure(d, FIGURE_LINE, (const struct spot[]){{x, y}, {to_x, to_y}}, 2, pen);
}

static void put(
	struct drawing *d, double x, double y, const char *text, enum ink ink, struct font font)
{
	d->canvas->draw(d->canvas, &(struct figure){.kind = FIGURE_TEXT,
					   .spots = &(struct spot){x, y},
					   .count = 1,
					   .pen = {ink, 1, 0, 0, 0},
					   .text = text,
					   .font = font});
}

static struct font plain(const struct drawing *d, enum anchor anchor)
{
	return (struct font){d->type, anchor, false, false};
}

enum ink plot_verdict_ink(const struct plot_change *change)
{
	static const enum ink of[] = {INK_BETTER, INK_NEUTRAL, INK_WORSE};

	return of[1 + change->verdict];
}

enum ink plot_line_ink(size_t line)
{
	return INK_SERIES + (enum ink)(line % SERIES_INKS);
}

static struct pen line_pen(size_t line, double opacity, double width)
{
	double dash = line >= SERIES_INKS ? 4 : 0;

	return (struct pen){plot_line_ink(line), opacity, width, dash, dash};
}

/* For changes that were withdrawn, accepted, or are no longer found. */
static double weight_of(const struct plot_change *change)
{
	if (change->withdrawn || change->source == PLOT_LOST)
		return 0.4;
	return triage_is_accepted(change->triage) ? 0.6 : 1;
}

static bool is_marked(const struct drawing *d, const struct plot_change *change)
{
	return d->plot->mark != 0 && change->id == d->plot->mark;
}

/* Whether changes of all lines are drawn through the whole body: those of many lines would hide
 * the points. */
static bool draws_through(const struct drawing *d, const struct plot_change *change)
{
	return d->plot->line_count == 1 || is_marked(d, change);
}

static void triangle(
	struct drawing *d, double x, double y, bool rises, enum ink ink, double opacity)
{
	double r = TRIANGLE, up = rises ? 1 : -1;
	struct spot spots[] = {
		{x - r, y + up * r * 0.8}, {x + r, y + up * r * 0.8}, {x, y - up * r}};

	figure(d, FIGURE_SHAPE, spots, 3, (struct pen){ink, opacity, 0, 0, 0});
}

static void sign(struct drawing *d, double x, double y, const struct plot_change *change)
{
	triangle(d, x, y, change->after >= change->before, plot_verdict_ink(change),
		weight_of(change));
}

/* Grid and axes. */

static void draw_values(struct drawing *d)
{
	for (size_t i = 0; i < d->values.count; i++) {
		const struct tick *tick = &d->values.items[i];
		double y =
			round(d->bottom - view_up(&d->view, tick->at) * (d->bottom - d->top)) + 0.5;

		rule(d, d->left, y, d->right, y, (struct pen){INK_GRID, 1, 1, 0, 0});
		put(d, d->left - 6, y + d->type * 0.36, tick->text, INK_FAINT,
			plain(d, ANCHOR_END));
	}
}

static void draw_times(struct drawing *d)
{
	static const struct pen axis = {INK_AXIS, 1, 1, 0, 0};
	double free_text = -1e9, free_context = -1e9, y = d->bottom + 0.5;

	rule(d, d->left, y, d->right, y, axis);
	for (size_t i = 0; i < d->times.count; i++) {
		const struct tick *tick = &d->times.items[i];
		double x = x_of(d, (int64_t)tick->at);
		double wide = caption_width(tick->text, d->type, false) / 2;
		double context = caption_width(tick->context, d->type, true);
		double left = fmin(x - wide, d->width - context - 4);

		rule(d, round(x) + 0.5, y, round(x) + 0.5, y + 4, axis);
		if (x - wide >= free_text && x + wide <= d->width) {
			put(d, x, y + 5 + d->type, tick->text, INK_FAINT, plain(d, ANCHOR_MIDDLE));
			free_text = x + wide + 6;
		}
		if (*tick->context && left >= free_context) {
			put(d, left, y + 6 + 2.2 * d->type, tick->context, INK_TEXT,
				plain(d, ANCHOR_START));
			free_context = left + context + 8;
		}
	}
}

/* Points. */

/* Points that hang together as a line; one by itself as a dot. */
static void draw_line(struct drawing *d, size_t line)
{
	const struct plot_line *data = &d->plot->lines[line];
	struct view_range range = view_points(&d->view, data);
	size_t points = range.to - range.from, count = 0, dot_count = 0;
	struct pen pen = line_pen(line, d->style.small ? 0.8 : 0.75, d->style.small ? 1.1 : 1.3);
	struct spot *spots = arena_array(d->arena, points, sizeof *spots);
	struct spot *dots = arena_array(d->arena, points, sizeof *dots);
	double room = (d->right - d->left) / (double)(points ? points : 1);
	bool each = room >= 4 && !d->style.small && d->plot->line_count <= 2;
	double diameter = room >= 7 ? 4.8 : 3.4;

	for (size_t i = range.from; i <= range.to; i++) {
		bool seen = i < range.to && view_has(&d->view, data->values[i]);

		if (!seen || (i > range.from && view_interrupted(&d->view, data->times[i - 1],
							data->times[i]))) {
			if (count > 1)
				figure(d, FIGURE_LINE, spots, count, pen);
			else if (count == 1 && !each)
				dots[dot_count++] = spots[0];
			count = 0;
		}
		if (!seen)
			continue;
		spots[count++] = spot_of(
			d, (double)data->times[i], view_shown(&d->view, line, data->values[i]));
		if (each)
			dots[dot_count++] = spots[count - 1];
	}
	if (dot_count > 0)
		figure(d, FIGURE_DOTS, dots, dot_count,
			(struct pen){pen.ink, 1, each ? diameter : 3, 0, 0});
}

/* Points beyond the axis: an arrow at the edge marks a spike that would flatten everything else. */
static void draw_beyond(struct drawing *d, size_t line)
{
	const struct plot_line *data = &d->plot->lines[line];
	struct view_range range = view_points(&d->view, data);
	double free_x = -1e9;

	for (size_t i = range.from; i < range.to && d->view.beyond; i++) {
		double value = view_shown(&d->view, line, data->values[i]);
		double x = x_of(d, data->times[i]), y;
		bool above = value > d->view.high;
		char text[TICK_TEXT];

		if (!view_has(&d->view, data->values[i]) ||
			(value <= d->view.high && value >= d->view.low))
			continue;
		y = above ? d->top + TRIANGLE + 1 : d->bottom - TRIANGLE - 1;
		triangle(d, x, y, above, plot_line_ink(line), 1);
		struct measure measure =
			d->view.relative ? d->view.measure : measure_of(fabs(value), d->plot->unit);
		measure_print(&measure, value, text);
		double width = caption_width(text, SMALL_TYPE, false);
		if (d->style.small || x < free_x)
			continue;
		bool left = x + width + 8 > d->right;
		put(d, x + (left ? -7 : 7), y + 4, text, plot_line_ink(line),
			(struct font){SMALL_TYPE, left ? ANCHOR_END : ANCHOR_START, false, true});
		free_x = x + width + 20;
	}
}

/* Changes. */

/* The part within the view of the line from `before` at `from` to `after` at `to`. */
static void draw_level(struct drawing *d, size_t line, double from, double to, double before,
	double after, struct pen pen)
{
	double left = fmax(from, (double)d->view.from), right = fmin(to, (double)d->view.to);
	double slope = to > from ? (after - before) / (to - from) : 0;

	if (right < left || !view_has(&d->view, before) || !view_has(&d->view, after))
		return;
	after = view_shown(&d->view, line, before + slope * (right - from));
	before = view_shown(&d->view, line, before + slope * (left - from));
	if (fmax(before, after) >= d->view.low && fmin(before, after) <= d->view.high)
		figure(d, FIGURE_LINE,
			(const struct spot[]){spot_of(d, left, before), spot_of(d, right, after)},
			2, pen);
}

/* Whether two levels would cover one another. */
static bool near_levels(const struct drawing *d, size_t line, double a, double b)
{
	return view_has(&d->view, a) && view_has(&d->view, b) &&
	       fabs(spot_of(d, 0, view_shown(&d->view, line, a)).y -
		       spot_of(d, 0, view_shown(&d->view, line, b)).y) < 2;
}

/* Whether it is the change that the plot is about: the one that is marked, or the only one. */
static bool is_subject(const struct drawing *d, const struct plot_change *change)
{
	return (d->seen == 1 && view_sees(&d->view, change)) || is_marked(d, change);
}

static void draw_levels(struct drawing *d, size_t line, size_t i)
{
	const struct plot_line *data = &d->plot->lines[line];
	const struct plot_change *change = &data->changes[i];
	struct view_reach reach = view_reach(&d->view, data, i);
	bool single = d->plot->line_count == 1;
	struct pen pen = {single ? INK_LEVEL : plot_line_ink(line), weight_of(change),
		d->style.small ? 1.5 : 2, 0, 0};
	struct pen back = pen;
	double ended =
		change->ended > change->time ? fmin((double)change->ended, reach.to) : reach.to;
	double from = (double)change->time, to = from;

	if (change->source == PLOT_CANDIDATE || change->source == PLOT_FRESH) {
		pen.dash = change->source == PLOT_FRESH ? 2 : 6;
		pen.gap = 3;
	}
	if (change->trend) {
		from = (double)change->from;
		to = fmax((double)change->to, from);
		draw_level(d, line, from, to, change->before, change->after, pen);
	}
	if (i == 0 || !near_levels(d, line, data->changes[i - 1].after, change->before))
		draw_level(d, line, reach.from, from, change->before, change->before, back);
	if (single && is_subject(d, change))
		pen.ink = plot_verdict_ink(change);
	draw_level(d, line, to, fmax(ended, to), change->after, change->after, pen);
	back.dash = back.gap = 3;
	if (ended < reach.to)
		draw_level(d, line, ended, reach.to, change->before, change->before, back);
}

/* Its place: a band where it may have begun, and a line. */
static void draw_place(struct drawing *d, const struct plot_change *change)
{
	double from = x_of(d, change->from), to = x_of(d, change->to), x = x_of(d, change->time);
	double weight = weight_of(change);
	struct pen pen = {plot_verdict_ink(change), weight, is_marked(d, change) ? 2 : 1.2, 0, 0};

	if (to - from < 3) {
		from = (from + to) / 2 - 1.5;
		to = from + 3;
	}
	if (change->from > 0 && change->to >= change->from && change->from <= d->view.to &&
		change->to >= d->view.from)
		fill(d, fmax(from, d->left), d->top, fmin(to, d->right), d->bottom, INK_BAND,
			0.22 * weight);
	if (!view_sees(&d->view, change))
		return;
	if (change->source == PLOT_CANDIDATE || change->source == PLOT_FRESH) {
		pen.dash = change->source == PLOT_FRESH ? 1.5 : 5;
		pen.gap = 3;
	}
	rule(d, x, d->top, x, d->bottom, pen);
	if (d->style.small)
		sign(d, x, d->top + TRIANGLE, change);
}

static void draw_places(struct drawing *d)
{
	for (size_t l = 0; l < d->plot->line_count; l++)
		for (size_t i = 0; i < d->plot->lines[l].change_count; i++)
			if (draws_through(d, &d->plot->lines[l].changes[i]))
				draw_place(d, &d->plot->lines[l].changes[i]);
}

/* The small sign of a change on a plot of several lines. */
static void draw_sign(struct drawing *d, size_t line, const struct plot_change *change)
{
	double middle = (change->before + change->after) / 2;

	if (draws_through(d, change) || !view_sees(&d->view, change) || !view_has(&d->view, middle))
		return;
	struct spot at = spot_of(d, (double)change->time, view_shown(&d->view, line, middle));
	sign(d, at.x, at.y, change);
}

/* Labels of changes. */

const char *plot_size_text(struct arena *arena, const struct plot_change *change)
{
	double size = change->size, high = fabs(size);

	if (!isfinite(size))
		return change->before == 0 ? "new" : "";
	char *text = arena_printf(arena,
		high >= 99999.5  ? "%.2g%%"
		: high >= 999.95 ? "%.0f%%"
				 : "%.1f%%",
		high);
	return arena_printf(arena, "%s%s", size < 0 ? "−" : "+", text);
}

static const char *commit_text(struct arena *arena, const char *commit)
{
	enum { SHORT = 8, MOST = 14 };
	size_t length = commit ? strlen(commit) : 0;

	if (length == 0)
		return "";
	if (length >= SHORT && strspn(commit, "0123456789abcdefABCDEF") == length)
		return arena_printf(arena, "%.*s", SHORT, commit);
	if (length <= MOST)
		return commit;
	return arena_printf(arena, "%.*s…", (int)utf8_cut(commit, MOST), commit);
}

/* The more important one first: the plot's own change, then confirmed and open ones, then large
 * ones. */
static int compare_labels(const void *a, const void *b)
{
	const struct label *left = a, *right = b;

	return (left->rank < right->rank) - (left->rank > right->rank);
}

static void make_labels(struct drawing *d)
{
	enum { MOST = 200 };
	struct view_place at = {0};

	d->labels = arena_array(d->arena, d->seen, sizeof *d->labels);
	while (view_next(&d->view, &at)) {
		const struct plot_change *change = at.change;
		const char *state = plot_state_text(change);
		const char *commit = commit_text(d->arena, change->commit);
		struct label *label = &d->labels[d->label_count];

		if (!draws_through(d, change))
			continue;
		d->label_count++;
		*label = (struct label){.change = change, .x = x_of(d, change->time)};
		label->brief = label->full = plot_size_text(d->arena, change);
		if (change->verdict)
			label->full = arena_printf(d->arena, "%s%s%s", label->brief,
				*label->brief ? " " : "", change->verdict > 0 ? "worse" : "better");
		label->second = arena_printf(
			d->arena, "%s%s%s", commit, *commit && *state ? " · " : "", state);
		d->commits = d->commits || (*label->second && d->height >= 220);
		label->rank = isfinite(change->size) ? fmin(fabs(change->size), 1e6) : 1e6;
		label->rank += (is_marked(d, change) ? 1e9 : 0) +
			       (change->source == PLOT_KNOWN ? 1e8 : 0) * weight_of(change);
	}
	qsort(d->labels, d->label_count, sizeof *d->labels, compare_labels);
	d->label_count = d->label_count < MOST ? d->label_count : MOST;
}

static double label_width(const struct label *label)
{
	return 2 * TRIANGLE + 5 +
	       caption_width(label->words ? label->full : label->brief, TYPE, true);
}

/* Whether no label before it covers its place. */
static bool is_free(const struct drawing *d, const struct label *label)
{
	for (const struct label *other = d->labels; other < label; other++)
		if (other->placed && other->row == label->row && label->left < other->right + 10 &&
			other->left - 10 < label->right)
			return false;
	return true;
}

/* Each into the first row where it fits, with words rather than without. False if one does not. */
static bool place_labels(struct drawing *d)
{
	bool all = true;

	for (size_t i = 0; i < d->label_count; i++) {
		struct label *label = &d->labels[i];

		label->placed = false;
		for (size_t try = 0; try < 2 * d->label_rows && !label->placed; try++) {
			label->row = try % d->label_rows;
			label->words = try < d->label_rows;
			double second =
				d->commits ? caption_width(label->second, SMALL_TYPE, false) : 0;
			double width = fmax(label_width(label), second);

			label->left = fmin(fmax(label->x - width / 2, 4), d->width - 4 - width);
			label->right = label->left + width;
			label->placed = is_free(d, label);
		}
		all = all && label->placed;
	}
	return all;
}

static double label_height(const struct drawing *d)
{
	return d->commits ? 31 : 18;
}

static void draw_label(struct drawing *d, const struct label *label)
{
	enum ink ink = plot_verdict_ink(label->change);
	double bottom = d->top - 4 - (double)label->row * label_height(d);
	double base = d->commits ? bottom - 15 : bottom - 3;
	double middle = (label->left + label->right) / 2;
	double left = middle - label_width(label) / 2;

	if (!label->placed) {
		sign(d, label->x, d->top - TRIANGLE - 1, label->change);
		return;
	}
	if (label->row > 0)
		rule(d, label->x, bottom, label->x, d->top, (struct pen){ink, 0.35, 1, 0, 0});
	sign(d, left + TRIANGLE, base - 4, label->change);
	put(d, left + 2 * TRIANGLE + 5, base, label->words ? label->full : label->brief, ink,
		(struct font){TYPE, ANCHOR_START, true, false});
	if (d->commits && *label->second)
		put(d, middle, bottom - 2, label->second, INK_FAINT,
			(struct font){SMALL_TYPE, ANCHOR_MIDDLE, false, false});
}

/* The values of the levels of the change that the plot is about. */
static void draw_level_values(struct drawing *d, size_t line, const struct plot_change *change)
{
	char before[TICK_TEXT], after[TICK_TEXT];
	double old = view_shown(&d->view, line, change->before);
	double new = view_shown(&d->view, line, change->after);
	struct spot left = spot_of(d, (double)change->time, old);
	struct spot right = spot_of(d, (double)change->time, new);
	bool falls = right.y > left.y;

	if (!view_has(&d->view, change->before) || !view_has(&d->view, change->after))
		return;
	measure_print(&d->view.measure, old, before);
	measure_print(&d->view.measure, new, after);
	put(d, left.x - 7, left.y + (falls ? -6 : 16), before, INK_TEXT,
		(struct font){TYPE, ANCHOR_END, true, true});
	put(d, right.x + 7, right.y + (falls ? 16 : -6), after, plot_verdict_ink(change),
		(struct font){TYPE, ANCHOR_START, true, true});
}

/* Spans of time: silences, outages. */

static void draw_spans(struct drawing *d)
{
	for (size_t i = 0; i < d->plot->span_count; i++) {
		const struct plot_span *span = &d->plot->spans[i];
		bool silence = span->kind == PLOT_SILENCE;
		double from = fmax(x_of(d, span->from), d->left);
		double to = fmax(fmin(x_of(d, span->to), d->right), from + 1);

		if (span->to < d->view.from || span->from > d->view.to ||
			(silence && d->style.small))
			continue;
		fill(d, from, silence ? d->bottom - 6 : d->top, to, d->bottom,
			silence ? INK_SILENCE : INK_OUTAGE, silence ? 0.45 : 0.12);
		if (!d->style.small && to - from >= 50)
			put(d, from + 4, silence ? d->bottom - 10 : d->top + 13,
				fitted(d->arena, plot_span_text(span), SMALL_TYPE, false,
					to - from - 8),
				INK_FAINT, (struct font){SMALL_TYPE, ANCHOR_START, false, true});
	}
}

/* Head. */

/* Puts a name behind a sample of its line; returns the x after it, or `x` if there is no room. */
static double put_key(struct drawing *d, double x, double y, const char *text, struct pen pen)
{
	double right = x + 24 + caption_width(text, d->type, false);

	if (right > d->width - EDGE + 6)
		return x;
	rule(d, x, y - 4, x + 18, y - 4, pen);
	put(d, x + 24, y, text, INK_FAINT, plain(d, ANCHOR_START));
	return right + 16;
}

static const char *line_name(struct drawing *d, const struct plot_line *line)
{
	const char *name = line->name && *line->name ? line->name : NULL;

	if (line->branch && *line->branch)
		return name ? arena_printf(d->arena, "%.200s (%.100s)", name, line->branch)
			    : line->branch;
	return name ? name : "points";
}

static void draw_names(struct drawing *d, double x, double y)
{
	size_t count = d->plot->line_count, shown = 0;

	for (double before = -1; shown < count; shown++) {
		const char *name = fitted(d->arena, line_name(d, &d->plot->lines[shown]), d->type,
			false, fmax((d->width - x) / 2 - 40, 110));

		before = x;
		x = put_key(d, x, y, name, line_pen(shown, 1, 2));
		if (x == before)
			break;
	}
	if (shown < count)
		put(d, d->width - EDGE, y, arena_printf(d->arena, "+%zu", count - shown), INK_FAINT,
			plain(d, ANCHOR_END));
}

/* Returns its height: title, and legend with the names of several lines. */
static double put_head(struct drawing *d, bool draw)
{
	const char *legend = view_legend(&d->view, d->arena, " · "), *title = d->plot->title;
	double y = 8;

	if (title && *title) {
		y += TITLE;
		if (draw)
			put(d, EDGE, y, fitted(d->arena, title, TITLE, true, d->width - 2 * EDGE),
				INK_TEXT, (struct font){TITLE, ANCHOR_START, true, false});
		y += 3;
	}
	if (d->plot->line_count < 2 && !*legend)
		return y + 6;
	y += d->type + 2;
	if (draw)
		put(d, EDGE, y, legend, INK_FAINT, plain(d, ANCHOR_START));
	if (draw && d->plot->line_count > 1)
		draw_names(d, EDGE + (*legend ? caption_width(legend, d->type, false) + 20 : 0), y);
	return y + 8;
}

/* All together. */

static void set_ticks(struct drawing *d)
{
	if (!d->view.empty)
		view_ticks(&d->view, (size_t)fmax(3, (d->bottom - d->top) / 42), &d->values);
}

static void lay_out(struct drawing *d)
{
	double widest = 0;

	d->top = put_head(d, false);
	d->right = d->width - EDGE;
	d->bottom = d->height - 12 - 2.2 * d->type;
	set_ticks(d);
	for (size_t i = 0; i < d->values.count; i++)
		widest = fmax(widest, caption_width(d->values.items[i].text, d->type, false));
	d->left = ceil(widest) + EDGE;
	make_labels(d);
	d->label_rows = d->label_count > 0;
	if (!place_labels(d) && d->height >= 300) {
		d->label_rows = 2;
		place_labels(d);
	}
	d->top += 4 + (double)d->label_rows * label_height(d);
	set_ticks(d);
	if (!d->view.empty || d->view.from < d->view.to)
		ticks_time(&d->times, d->view.from, d->view.to,
			(size_t)fmax(2, (d->right - d->left) / 64));
}

/* Points and levels. */
static void draw_series(struct drawing *d)
{
	for (size_t l = 0; l < d->plot->line_count; l++)
		draw_line(d, l);
	for (size_t l = 0; l < d->plot->line_count; l++) {
		for (size_t i = 0; i < d->plot->lines[l].change_count; i++)
			draw_levels(d, l, i);
		for (size_t i = 0; i < d->plot->lines[l].change_count && !d->style.small; i++)
			draw_sign(d, l, &d->plot->lines[l].changes[i]);
		draw_beyond(d, l);
	}
}

static void draw_full(struct drawing *d)
{
	struct view_place at = {0};

	lay_out(d);
	fill(d, 0, 0, d->width, d->height, INK_GROUND, 1);
	draw_values(d);
	draw_places(d);
	draw_spans(d);
	figure(d, FIGURE_CLIP, (const struct spot[]){{d->left, d->top}, {d->right, d->bottom}}, 2,
		(struct pen){0});
	draw_series(d);
	figure(d, FIGURE_UNCLIP, NULL, 0, (struct pen){0});
	draw_times(d);
	while (view_next(&d->view, &at))
		if (is_subject(d, at.change))
			draw_level_values(d, at.line, at.change);
	for (size_t i = 0; i < d->label_count; i++)
		draw_label(d, &d->labels[i]);
	put_head(d, true);
	if (d->view.empty)
		put(d, (d->left + d->right) / 2, (d->top + d->bottom) / 2, "no points", INK_FAINT,
			(struct font){TYPE, ANCHOR_MIDDLE, false, false});
}

void plot_draw(const struct plot *plot, const struct plot_style *style, struct canvas *canvas)
{
	struct arena *arena = arena_new();
	struct plot reduced = *plot;
	struct drawing d = {.view = view_of(plot, arena),
		.plot = &reduced,
		.style = *style,
		.canvas = canvas,
		.arena = arena,
		.width = style->width,
		.height = style->height,
		.type = style->width < 480 ? SMALL_TYPE : TYPE,
		.inset = style->small ? 2 : 8};

	plot_reduce(arena, &reduced, style->width);
	d.view.plot = &reduced;
	d.seen = view_count(&d.view);
	if (style->small) {
		d.left = 1;
		d.top = 2;
		d.right = d.width - 1;
		d.bottom = d.height - 2;
		draw_places(&d);
		draw_spans(&d);
		draw_series(&d);
	} else {
		draw_full(&d);
	}
	arena_free(arena);
}

void plot_draw_series(const struct view *view, double width, double height, struct canvas *canvas)
{
	struct arena *arena = arena_new();
	struct drawing d = {.view = *view,
		.plot = view->plot,
		.style = {.small = true},
		.canvas = canvas,
		.arena = arena,
		.right = width,
		.bottom = height,
		.seen = view_count(view)};

	draw_series(&d);
	arena_free(arena);
}

void plot_describe(const struct plot *plot, struct buf *out)
{
	enum { MOST = 20 };
	static const char *const verdicts[] = {" (better)", "", " (worse)"};
	struct arena *arena = arena_new();
	struct view view = view_of(plot, arena);
	struct view_place at = {0};
	size_t points = 0, changes = 0;
	char from[WHEN_TEXT], to[WHEN_TEXT];

	for (size_t l = 0; l < plot->line_count; l++) {
		struct view_range range = view_points(&view, &plot->lines[l]);

		points += range.to - range.from;
	}
	buf_printf(out, "%zu points from %.16s to %.16s UTC.", points, when_format(view.from, from),
		when_format(view.to, to));
	while (changes < MOST && view_next(&view, &at)) {
		const char *commit = commit_text(arena, at.change->commit);
		const char *state = plot_state_text(at.change);

		buf_printf(out, "%s%s%s at %.16s",
			changes++ ? "; " : " Changes: ", plot_size_text(arena, at.change),
			verdicts[1 + at.change->verdict], when_format(at.change->time, from));
		buf_printf(out, "%s%s%s%s", *commit ? ", " : "", commit, *state ? ", " : "", state);
	}
	buf_text(out, changes ? "." : " No changes.");
	arena_free(arena);
}
