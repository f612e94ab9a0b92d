/*
 * The layout of a picture. It has a head (title, unit and direction, names of several lines), a
 * lane of labels for its changes, the body, the times, and a foot that explains what is neither a
 * point nor a level. Where there is no room, it goes without: the foot first, then commits, then
 * labels of lesser changes; points, levels and changes always stay.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
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
	if (!(out.zoom > 0))
		out.zoom = 1;
	unsigned longest = out.width > out.height ? out.width : out.height;
	if (out.zoom * longest > PLOT_MOST_PIXELS)
		out.zoom = PLOT_MOST_PIXELS / (double)longest;
	return out;
}

/* Shares of an em, roughly those of DejaVu Sans, which is wider than most. */
static double character_width(const char *text, size_t length)
{
	if (length > 1) {
		char one[5] = {0};

		memcpy(one, text, length < 4 ? length : 4);
		return text_width(one) == 2 ? 1.0 : text_width(one) == 1 ? 0.64 : 0;
	}
	if (strchr("ijl.,:;'|!I ", *text))
		return 0.33;
	if (strchr("()[]{}frt/\\-\"", *text))
		return 0.4;
	if (strchr("mwMWOQ@%+=<>~#&", *text))
		return *text == 'm' || *text == 'M' || *text == 'W' || *text == '@' || *text == '%'
			       ? 0.97
			       : 0.82;
	return *text >= 'A' && *text <= 'Z' ? 0.7 : 0.62;
}

/* The length of a character; 1 for an invalid byte. */
static size_t step_over(const char *text)
{
	size_t length = utf8_length(text, strnlen(text, 4));

	return length > 0 ? length : 1;
}

static double caption_width(const char *text, double size, bool bold)
{
	double width = 0;

	for (size_t length; *text; text += length) {
		length = step_over(text);
		width += character_width(text, length);
	}
	return width * size * (bold ? 1.1 : 1);
}

/* The text, or its beginning with an ellipsis. */
static const char *fitted(
	struct arena *arena, const char *text, double size, bool bold, double most)
{
	double width = size, scale = size * (bold ? 1.1 : 1);
	size_t kept = 0, length;

	if (strlen(text) < 10000 && caption_width(text, size, bold) <= most)
		return text;
	for (const char *at = text; *at; at += length) {
		length = step_over(at);
		width += character_width(at, length) * scale;
		if (width > most)
			break;
		kept = (size_t)(at - text) + length;
	}
	return arena_printf(arena, "%.*s…", (int)kept, text);
}

/* Sizes of type and distances, px. */
enum { TYPE = 12, TITLE = 15, EDGE = 14, LINE = 17, TRIANGLE = 4 };

struct drawing {
	struct view view;
	const struct plot *plot;
	struct plot_style style;
	struct canvas *canvas;
	struct arena *arena;
	double width, height;
	struct box body;
	double inset; /* of the points, at either end of the times */
	struct ticks values, times;
	double type;
	bool commits; /* labels have a second line */
	size_t label_rows, foot_rows;
	size_t seen; /* changes in view */
};

static struct spot spot_of(const struct drawing *d, double time, double value)
{
	const struct box *body = &d->body;
	double height = body->bottom - body->top, inset = d->inset;
	double across = view_across(&d->view, time), up = view_up(&d->view, value);

	up = up < -1 ? -1 : up > 2 ? 2 : up;
	return (struct spot){body->left + inset + across * (body->right - body->left - 2 * inset),
		body->bottom - up * height};
}

static void put(struct drawing *d, double x, double y, const char *text, double size,
	enum anchor anchor, enum ink ink)
{
	d->canvas->text(
		d->canvas, &(struct caption){{x, y}, text, size, anchor, ink, false, false});
}

static void rule(struct drawing *d, struct spot from, struct spot to, const struct pen *pen)
{
	d->canvas->line(d->canvas, (const struct spot[]){from, to}, 2, pen);
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

static void triangle(struct drawing *d, struct spot at, const struct plot_change *change,
	enum ink ink, double opacity)
{
	double r = TRIANGLE, up = change->after >= change->before ? 1 : -1;
	struct spot spots[] = {{at.x - r, at.y + up * r * 0.8}, {at.x + r, at.y + up * r * 0.8},
		{at.x, at.y - up * r}};

	d->canvas->shape(d->canvas, spots, 3, ink, opacity);
}

/* Grid and axes. */

static void draw_values(struct drawing *d)
{
	const struct box *body = &d->body;

	for (size_t i = 0; i < d->values.count; i++) {
		const struct tick *tick = &d->values.items[i];
		double y = round(body->bottom -
				   view_up(&d->view, tick->at) * (body->bottom - body->top)) +
			   0.5;

		rule(d, (struct spot){body->left, y}, (struct spot){body->right, y},
			&(struct pen){INK_GRID, 1, 1, 0, 0});
		put(d, body->left - 6, y + d->type * 0.36, tick->text, d->type, ANCHOR_END,
			INK_FAINT);
	}
}

static void draw_times(struct drawing *d)
{
	const struct box *body = &d->body;
	double free_text = -1e9, free_context = -1e9, y = body->bottom + 0.5;

	rule(d, (struct spot){body->left, y}, (struct spot){body->right, y},
		&(struct pen){INK_AXIS, 1, 1, 0, 0});
	for (size_t i = 0; i < d->times.count; i++) {
		const struct tick *tick = &d->times.items[i];
		double x = spot_of(d, tick->at, 0).x;
		double wide = caption_width(tick->text, d->type, false) / 2;
		double context = caption_width(tick->context, d->type, true);
		double left = fmin(x - wide, d->width - context - 4);

		rule(d, (struct spot){round(x) + 0.5, y}, (struct spot){round(x) + 0.5, y + 4},
			&(struct pen){INK_AXIS, 1, 1, 0, 0});
		if (x - wide >= free_text && x + wide <= d->width) {
			put(d, x, y + 5 + d->type, tick->text, d->type, ANCHOR_MIDDLE, INK_FAINT);
			free_text = x + wide + 6;
		}
		if (*tick->context && left >= free_context) {
			put(d, left, y + 6 + 2.2 * d->type, tick->context, d->type, ANCHOR_START,
				INK_TEXT);
			free_context = left + context + 8;
		}
	}
}

/* Points. */

static double dot_radius(const struct drawing *d, size_t points)
{
	double room = (d->body.right - d->body.left) / (double)(points ? points : 1);

	if (d->style.small || d->plot->line_count > 2)
		return 0;
	return room >= 7 ? 2.4 : room >= 4 ? 1.7 : 0;
}

/* Points that hang together as a line; one by itself as a dot. */
static void draw_line(struct drawing *d, size_t line)
{
	const struct plot_line *data = &d->plot->lines[line];
	struct view_range range = view_points(&d->view, data);
	size_t points = range.to - range.from, count = 0, dot_count = 0;
	struct pen pen = {
		plot_line_ink(line), d->style.small ? 0.8 : 0.75, d->style.small ? 1.1 : 1.3, 0, 0};
	struct spot *spots = arena_array(d->arena, points, sizeof *spots);
	struct spot *dots = arena_array(d->arena, points, sizeof *dots);
	double radius = dot_radius(d, points);

	if (line >= SERIES_INKS)
		pen.dash = pen.gap = 4;
	for (size_t i = range.from; i <= range.to; i++) {
		bool seen = i < range.to && view_has(&d->view, data->values[i]);

		if (!seen || (i > range.from && view_interrupted(&d->view, data->times[i - 1],
							data->times[i]))) {
			if (count > 1)
				d->canvas->line(d->canvas, spots, count, &pen);
			else if (count == 1 && radius == 0)
				dots[dot_count++] = spots[0];
			count = 0;
		}
		if (!seen)
			continue;
		spots[count++] = spot_of(
			d, (double)data->times[i], view_shown(&d->view, line, data->values[i]));
		if (radius > 0)
			dots[dot_count++] = spots[count - 1];
	}
	if (dot_count > 0)
		d->canvas->dots(d->canvas, dots, dot_count, radius > 0 ? radius : 1.5, pen.ink, 1);
}

/* Points beyond the axis: an arrow at the edge marks a spike that would flatten everything else. */
static void draw_beyond(struct drawing *d, size_t line)
{
	const struct plot_line *data = &d->plot->lines[line];
	struct view_range range = view_points(&d->view, data);
	double free_x = -1e9;

	if (!d->view.beyond)
		return;
	for (size_t i = range.from; i < range.to; i++) {
		double value = data->values[i], shown;
		char text[TICK_TEXT];
		struct spot at;

		if (!view_has(&d->view, value))
			continue;
		shown = view_shown(&d->view, line, value);
		if (shown <= d->view.high && shown >= d->view.low)
			continue;
		bool above = shown > d->view.high;
		at = spot_of(d, (double)data->times[i], shown);
		at.y = above ? d->body.top + TRIANGLE + 1 : d->body.bottom - TRIANGLE - 1;
		triangle(d, at, &(struct plot_change){.before = !above, .after = above},
			plot_line_ink(line), 1);
		struct measure measure =
			d->view.relative ? d->view.measure : measure_of(fabs(shown), d->plot->unit);
		measure_print(&measure, shown, text);
		double width = caption_width(text, 11, false);
		if (d->style.small || at.x < free_x)
			continue;
		bool left = at.x + width + 8 > d->body.right;
		d->canvas->text(d->canvas, &(struct caption){{at.x + (left ? -7 : 7), at.y + 4},
						   text, 11, left ? ANCHOR_END : ANCHOR_START,
						   plot_line_ink(line), false, true});
		free_x = at.x + width + 20;
	}
}

/* Changes. */

/* The part within the view of the line from `before` at `from` to `after` at `to`. */
static void draw_level(struct drawing *d, size_t line, double from, double to, double before,
	double after, const struct pen *pen)
{
	double left = fmax(from, (double)d->view.from), right = fmin(to, (double)d->view.to);
	double slope = to > from ? (after - before) / (to - from) : 0;

	if (right < left || !view_has(&d->view, before) || !view_has(&d->view, after))
		return;
	after = view_shown(&d->view, line, before + slope * (right - from));
	before = view_shown(&d->view, line, before + slope * (left - from));
	if (fmax(before, after) < d->view.low || fmin(before, after) > d->view.high)
		return;
	rule(d, spot_of(d, left, before), spot_of(d, right, after), pen);
}

/* Whether two levels would cover one another. */
static bool near_levels(const struct drawing *d, size_t line, double a, double b)
{
	return view_has(&d->view, a) && view_has(&d->view, b) &&
	       fabs(spot_of(d, 0, view_shown(&d->view, line, a)).y -
		       spot_of(d, 0, view_shown(&d->view, line, b)).y) < 2;
}

/* Whether it is the change that the plot is about: the one that is marked, or the only one. */
static bool is_told(const struct drawing *d, const struct plot_change *change)
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
	bool continues = i > 0 && near_levels(d, line, data->changes[i - 1].after, change->before);
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
	}
	if (!continues)
		draw_level(d, line, reach.from, from, change->before, change->before, &back);
	if (change->trend)
		draw_level(d, line, from, to, change->before, change->after, &pen);
	if (single && is_told(d, change))
		pen.ink = plot_verdict_ink(change);
	draw_level(d, line, to, fmax(ended, to), change->after, change->after, &pen);
	back.dash = back.gap = 3;
	if (ended < reach.to)
		draw_level(d, line, ended, reach.to, change->before, change->before, &back);
}

static void draw_band(struct drawing *d, const struct plot_change *change)
{
	const struct box *body = &d->body;
	double from = spot_of(d, (double)change->from, 0).x;
	double to = spot_of(d, (double)change->to, 0).x;

	if (change->from <= 0 || change->to < change->from || change->from > d->view.to ||
		change->to < d->view.from)
		return;
	if (to - from < 3) {
		from = (from + to) / 2 - 1.5;
		to = from + 3;
	}
	d->canvas->area(d->canvas,
		&(struct box){
			fmax(from, body->left), body->top, fmin(to, body->right), body->bottom},
		INK_BAND, 0.22 * weight_of(change));
}

static void draw_moment(struct drawing *d, const struct plot_change *change)
{
	struct pen pen = {
		plot_verdict_ink(change), weight_of(change), is_marked(d, change) ? 2 : 1.2, 0, 0};
	double x = spot_of(d, (double)change->time, 0).x;

	if (!view_sees(&d->view, change))
		return;
	if (change->source == PLOT_CANDIDATE)
		pen.dash = 5, pen.gap = 3;
	if (change->source == PLOT_FRESH)
		pen.dash = 1.5, pen.gap = 3;
	rule(d, (struct spot){x, d->body.top}, (struct spot){x, d->body.bottom}, &pen);
	if (d->style.small)
		triangle(d, (struct spot){x, d->body.top + TRIANGLE}, change, pen.ink, pen.opacity);
}

/* Whether changes of all lines are drawn through the whole body: those of many lines would hide
 * the points. */
static bool draws_through(const struct drawing *d, const struct plot_change *change)
{
	return d->plot->line_count == 1 || is_marked(d, change);
}

static void draw_places(struct drawing *d)
{
	for (size_t l = 0; l < d->plot->line_count; l++)
		for (size_t i = 0; i < d->plot->lines[l].change_count; i++) {
			const struct plot_change *change = &d->plot->lines[l].changes[i];

			if (!draws_through(d, change))
				continue;
			draw_band(d, change);
			draw_moment(d, change);
		}
}

/* The small sign of a change on a plot of several lines. */
static void draw_sign(struct drawing *d, size_t line, const struct plot_change *change)
{
	double middle = (change->before + change->after) / 2;

	if (draws_through(d, change) || !view_sees(&d->view, change) || !view_has(&d->view, middle))
		return;
	struct spot at = spot_of(d, (double)change->time, view_shown(&d->view, line, middle));
	triangle(d, at, change, plot_verdict_ink(change), weight_of(change));
}

/* Labels of changes. */

struct label {
	const struct plot_change *change;
	const char *full, *brief, *second; /* second: "" for none */
	double x, width, second_width;
	double left, right; /* as placed */
	size_t row;
	bool placed, words;
};

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
	size_t length = strlen(commit);

	if (length == 0)
		return "";
	if (length >= SHORT && strspn(commit, "0123456789abcdefABCDEF") == length)
		return arena_printf(arena, "%.*s", SHORT, commit);
	if (length <= MOST)
		return commit;
	return arena_printf(arena, "%.*s…", (int)utf8_cut(commit, MOST), commit);
}

/* Its triage, or its state. */
static const char *state_text(const struct plot_change *change)
{
	if (change->withdrawn)
		return "withdrawn";
	if (change->triage > TRIAGE_OPEN && change->triage < TRIAGE_STATES)
		return triage_state_names[change->triage];
	if (change->source == PLOT_CANDIDATE)
		return "not confirmed";
	return change->ended ? "over" : "";
}

static struct label label_of(struct drawing *d, const struct plot_change *change)
{
	struct label label = {.change = change, .x = spot_of(d, (double)change->time, 0).x};
	const char *state = state_text(change);
	const char *commit = change->commit ? commit_text(d->arena, change->commit) : "";

	label.brief = plot_size_text(d->arena, change);
	label.full = change->verdict ? arena_printf(d->arena, "%s%s%s", label.brief,
					       *label.brief ? " " : "",
					       change->verdict > 0 ? "worse" : "better")
				     : label.brief;
	label.second =
		arena_printf(d->arena, "%s%s%s", commit, *commit && *state ? " · " : "", state);
	label.second_width = caption_width(label.second, 11, false);
	return label;
}

/* The more important one first: the plot's own change, then confirmed and open ones, then large
 * ones. */
static double rank_of(const struct drawing *d, const struct label *label)
{
	double size = isfinite(label->change->size) ? fmin(fabs(label->change->size), 1e6) : 1e6;

	return size + (is_marked(d, label->change) ? 1e9 : 0) +
	       (label->change->source == PLOT_KNOWN ? 1e8 : 0) * weight_of(label->change);
}

static bool is_free(const struct label *labels, size_t count, size_t row, double left, double right)
{
	for (size_t i = 0; i < count; i++)
		if (labels[i].placed && labels[i].row == row && left < labels[i].right + 10 &&
			labels[i].left - 10 < right)
			return false;
	return true;
}

/* Into the first row where it fits, with words rather than without. */
static bool place(struct drawing *d, struct label *labels, size_t count, struct label *label)
{
	double right_edge = d->width - 4;

	for (int words = 1; words >= 0 && !label->placed; words--)
		for (size_t row = 0; row < d->label_rows && !label->placed; row++) {
			double width =
				2 * TRIANGLE + 5 +
				caption_width(words ? label->full : label->brief, TYPE, true);
			width = fmax(width, d->commits ? label->second_width : 0);
			double left = fmin(fmax(label->x - width / 2, 4), right_edge - width);
			if (!is_free(labels, count, row, left, left + width))
				continue;
			label->row = row;
			label->words = words;
			label->width = width;
			label->left = left;
			label->right = left + width;
			label->placed = true;
		}
	return label->placed;
}

static double label_height(const struct drawing *d)
{
	return d->commits ? 31 : 18;
}

static void draw_label(struct drawing *d, const struct label *label)
{
	const struct plot_change *change = label->change;
	enum ink ink = plot_verdict_ink(change);
	const char *text = label->words ? label->full : label->brief;
	double width = 2 * TRIANGLE + 5 + caption_width(text, TYPE, true);
	double bottom = d->body.top - 4 - (double)label->row * label_height(d);
	double base = d->commits ? bottom - 15 : bottom - 3;
	double middle = (label->left + label->right) / 2, left = middle - width / 2;

	if (label->row > 0)
		rule(d, (struct spot){label->x, bottom}, (struct spot){label->x, d->body.top},
			&(struct pen){ink, 0.35, 1, 0, 0});
	triangle(d, (struct spot){left + TRIANGLE, base - 4}, change, ink, weight_of(change));
	d->canvas->text(d->canvas, &(struct caption){{left + 2 * TRIANGLE + 5, base}, text, TYPE,
					   ANCHOR_START, ink, true, false});
	if (d->commits && *label->second)
		put(d, middle, bottom - 2, label->second, 11, ANCHOR_MIDDLE, INK_FAINT);
}

static size_t labels_of(struct drawing *d, struct label **out)
{
	struct view_place at = {0};
	size_t count = 0;

	*out = arena_array(d->arena, d->seen, sizeof **out);
	while (view_next(&d->view, &at))
		if (draws_through(d, at.change))
			(*out)[count++] = label_of(d, at.change);
	return count;
}

static void draw_labels(struct drawing *d)
{
	enum { MOST = 200 };
	struct label *labels;
	size_t count = labels_of(d, &labels);

	for (size_t done = 0; done < count && done < MOST; done++) {
		size_t best = done;

		for (size_t i = done + 1; i < count; i++)
			if (rank_of(d, &labels[i]) > rank_of(d, &labels[best]))
				best = i;
		struct label swap = labels[done];
		labels[done] = labels[best];
		labels[best] = swap;
		if (place(d, labels, done, &labels[done]))
			draw_label(d, &labels[done]);
		else
			triangle(d, (struct spot){labels[done].x, d->body.top - TRIANGLE - 1},
				labels[done].change, plot_verdict_ink(labels[done].change),
				weight_of(labels[done].change));
	}
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
	d->canvas->text(d->canvas, &(struct caption){{left.x - 7, left.y + (falls ? -6 : 16)},
					   before, TYPE, ANCHOR_END, INK_TEXT, true, true});
	d->canvas->text(
		d->canvas, &(struct caption){{right.x + 7, right.y + (falls ? 16 : -6)}, after,
				   TYPE, ANCHOR_START, plot_verdict_ink(change), true, true});
}

/* Spans of time: silences, outages. */

static void draw_spans(struct drawing *d)
{
	const struct box *body = &d->body;

	for (size_t i = 0; i < d->plot->span_count; i++) {
		const struct plot_span *span = &d->plot->spans[i];
		double from = fmax(spot_of(d, (double)span->from, 0).x, body->left);
		double to = fmin(spot_of(d, (double)span->to, 0).x, body->right);
		bool silence = span->kind == PLOT_SILENCE;
		double top = silence && !d->style.small ? body->bottom - 6 : body->top;

		if (span->to < d->view.from || span->from > d->view.to)
			continue;
		to = fmax(to, from + 1);
		if (silence && d->style.small)
			continue;
		d->canvas->area(d->canvas, &(struct box){from, top, to, body->bottom},
			silence ? INK_SILENCE : INK_OUTAGE, silence ? 0.45 : 0.12);
		if (d->style.small || to - from < 50)
			continue;
		d->canvas->text(d->canvas,
			&(struct caption){{from + 4, silence ? body->bottom - 10 : body->top + 13},
				fitted(d->arena, plot_span_text(span), 11, false, to - from - 8),
				11, ANCHOR_START, INK_FAINT, false, true});
	}
}

/* Head and foot. */

/* Puts a name behind a sample of its line; returns the x after it, or `x` if there is no room. */
static double put_key(
	struct drawing *d, double x, double y, const char *text, const struct pen *pen)
{
	double right = x + 24 + caption_width(text, d->type, false);

	if (right > d->width - EDGE + 6)
		return x;
	if (pen->width > 4)
		d->canvas->area(
			d->canvas, &(struct box){x, y - 9, x + 18, y + 1}, pen->ink, pen->opacity);
	else
		rule(d, (struct spot){x, y - 4}, (struct spot){x + 18, y - 4}, pen);
	put(d, x + 24, y, text, d->type, ANCHOR_START, INK_FAINT);
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
	size_t shown = 0;

	for (; shown < d->plot->line_count; shown++) {
		struct pen pen = {plot_line_ink(shown), 1, 2, 0, 0};
		double room = fmax((d->width - x) / 2 - 40, 110);
		const char *name = fitted(
			d->arena, line_name(d, &d->plot->lines[shown]), d->type, false, room);
		double after;

		if (shown >= SERIES_INKS)
			pen.dash = pen.gap = 4;
		after = put_key(d, x, y, name, &pen);
		if (after == x)
			break;
		x = after;
	}
	if (shown < d->plot->line_count)
		put(d, d->width - EDGE, y,
			arena_printf(d->arena, "+%zu", d->plot->line_count - shown), d->type,
			ANCHOR_END, INK_FAINT);
}

/* Whether the head has a second line. */
static bool has_subtitle(struct drawing *d)
{
	return d->plot->line_count > 1 || *view_legend(&d->view, d->arena, " · ");
}

static void draw_head(struct drawing *d)
{
	double y = 8;

	if (d->plot->title && *d->plot->title) {
		const char *title =
			fitted(d->arena, d->plot->title, TITLE, true, d->width - 2 * EDGE);

		y += TITLE;
		d->canvas->text(d->canvas, &(struct caption){{EDGE, y}, title, TITLE, ANCHOR_START,
						   INK_TEXT, true, false});
		y += 3;
	}
	if (!has_subtitle(d))
		return;
	const char *text = view_legend(&d->view, d->arena, " · ");
	y += d->type + 2;
	put(d, EDGE, y, text, d->type, ANCHOR_START, INK_FAINT);
	if (d->plot->line_count > 1)
		draw_names(d, EDGE + (*text ? caption_width(text, d->type, false) + 20 : 0), y);
}

/* The entries of the legend. */
enum { KEYS = 6 };

struct foot {
	struct {
		const char *text;
		struct pen pen;
	} keys[KEYS];
	size_t count;
};

static void add_key(struct foot *foot, bool used, const char *text, struct pen pen)
{
	if (!used)
		return;
	foot->keys[foot->count].text = text;
	foot->keys[foot->count++].pen = pen;
}

static struct foot foot_of(const struct drawing *d)
{
	bool band = false, sources[PLOT_SOURCES] = {false}, spans[PLOT_SPAN_KINDS] = {false};
	struct view_place at = {0};
	struct foot foot = {.count = 0};

	while (view_next(&d->view, &at)) {
		if (!draws_through(d, at.change))
			continue;
		sources[at.change->source] = true;
		band = band || at.change->to > at.change->from;
	}
	for (size_t i = 0; i < d->plot->span_count; i++) {
		const struct plot_span *span = &d->plot->spans[i];

		if (span->to >= d->view.from && span->from <= d->view.to)
			spans[span->kind] = true;
	}
	add_key(&foot, band, "start of the change (95%)", (struct pen){INK_BAND, 0.3, 10, 0, 0});
	add_key(&foot, sources[PLOT_CANDIDATE], "not yet confirmed",
		(struct pen){INK_NEUTRAL, 1, 1.5, 5, 3});
	add_key(&foot, sources[PLOT_FRESH], "found only in the points as they are now",
		(struct pen){INK_NEUTRAL, 1, 1.5, 1.5, 3});
	add_key(&foot, sources[PLOT_LOST], "no longer found in these points",
		(struct pen){INK_NEUTRAL, 0.4, 1.5, 0, 0});
	add_key(&foot, spans[PLOT_OUTAGE], "no data", (struct pen){INK_OUTAGE, 0.2, 10, 0, 0});
	add_key(&foot, spans[PLOT_SILENCE], "silenced", (struct pen){INK_SILENCE, 0.45, 10, 0, 0});
	return foot;
}

/* Rows of keys from `y` on, or only their number. */
static size_t put_foot(struct drawing *d, double y, bool draw)
{
	struct foot foot = foot_of(d);
	double start = EDGE, x = start, end = d->width - EDGE + 6;
	size_t rows = foot.count > 0;

	for (size_t i = 0; i < foot.count; i++) {
		double width = 24 + caption_width(foot.keys[i].text, d->type, false);

		if (x > start && x + width > end) {
			if ((double)(rows + 1) > d->height / 150)
				break;
			x = start;
			rows++;
		}
		if (draw)
			put_key(d, x, y + (double)(rows - 1) * LINE, foot.keys[i].text,
				&foot.keys[i].pen);
		x += width + 16;
	}
	return rows;
}

/* All together. */

static void set_ticks(struct drawing *d)
{
	double height = d->body.bottom - d->body.top;
	size_t most = (size_t)fmax(3, height / 42);

	if (!d->view.empty)
		view_ticks(&d->view, most, &d->values);
}

static double widest_tick(const struct drawing *d)
{
	double widest = 0;

	for (size_t i = 0; i < d->values.count; i++)
		widest = fmax(widest, caption_width(d->values.items[i].text, d->type, false));
	return widest;
}

/* Whether two labels would cover one another in a single row. */
static bool crowded(struct drawing *d)
{
	struct label *labels;
	size_t count = labels_of(d, &labels);

	for (size_t i = 0; i < count; i++)
		if (!place(d, labels, i, &labels[i]))
			return true;
	return false;
}

static bool has_seconds(struct drawing *d)
{
	struct label *labels;
	size_t count = labels_of(d, &labels);

	for (size_t i = 0; i < count; i++)
		if (*labels[i].second)
			return true;
	return false;
}

static void lay_out(struct drawing *d)
{
	double top = 14 + (d->plot->title && *d->plot->title ? TITLE + 3 : 0) +
		     (has_subtitle(d) ? d->type + 4 : 0);

	d->body = (struct box){EDGE, top, d->width - EDGE, d->height - 12};
	d->foot_rows = d->height >= 240 ? put_foot(d, 0, false) : 0;
	d->body.bottom -= (d->foot_rows ? 6 + (double)d->foot_rows * LINE : 0) + 2.2 * d->type;
	set_ticks(d);
	d->body.left = ceil(widest_tick(d)) + EDGE;
	d->commits = d->height >= 220 && has_seconds(d);
	struct label *labels;
	d->label_rows = labels_of(d, &labels) > 0;
	if (d->label_rows > 0 && d->height >= 300 && crowded(d))
		d->label_rows = 2;
	if (d->label_rows > 0)
		d->body.top += 4 + (double)d->label_rows * label_height(d);
	else
		d->body.top += 4;
	set_ticks(d);
	double room = d->body.right - d->body.left;
	if (!d->view.empty || d->view.from < d->view.to)
		ticks_time(&d->times, d->view.from, d->view.to, (size_t)fmax(2, room / 64));
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
	const struct box all = {0, 0, d->width, d->height};
	struct view_place at = {0};

	lay_out(d);
	d->canvas->area(d->canvas, &all, INK_GROUND, 1);
	draw_values(d);
	draw_places(d);
	draw_spans(d);
	d->canvas->clip(d->canvas, &d->body);
	draw_series(d);
	d->canvas->clip(d->canvas, NULL);
	draw_times(d);
	while (view_next(&d->view, &at))
		if (is_told(d, at.change))
			draw_level_values(d, at.line, at.change);
	draw_labels(d);
	draw_head(d);
	if (d->foot_rows > 0)
		put_foot(d, d->height - 9 - (double)(d->foot_rows - 1) * LINE, true);
	if (d->view.empty)
		put(d, (d->body.left + d->body.right) / 2, (d->body.top + d->body.bottom) / 2,
			"no points", TYPE, ANCHOR_MIDDLE, INK_FAINT);
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
		.type = style->width < 480 ? 11 : TYPE,
		.inset = style->small ? 2 : 8};

	plot_reduce(arena, &reduced, style->width);
	d.view.plot = &reduced;
	d.seen = view_count(&d.view);
	if (style->small) {
		d.body = (struct box){1, 2, d.width - 1, d.height - 2};
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
		.body = {0, 0, width, height},
		.seen = view_count(view)};

	draw_series(&d);
	arena_free(arena);
}

static void describe_change(const struct plot_change *change, struct arena *arena, struct buf *out)
{
	static const char *const words[] = {" (better)", "", " (worse)"};
	char time[WHEN_TEXT];
	const char *state = state_text(change);

	when_format(change->time, time);
	buf_printf(out, "%s%s at %.16s", plot_size_text(arena, change), words[1 + change->verdict],
		time);
	if (change->commit)
		buf_printf(out, ", %.60s", commit_text(arena, change->commit));
	if (*state)
		buf_printf(out, ", %s", state);
}

void plot_describe(const struct plot *plot, struct buf *out)
{
	enum { MOST = 20 };
	struct arena *arena = arena_new();
	struct view view = view_of(plot, arena);
	struct view_place at = {0};
	size_t points = 0, changes = 0;
	char from[WHEN_TEXT], to[WHEN_TEXT];

	for (size_t l = 0; l < plot->line_count; l++) {
		struct view_range range = view_points(&view, &plot->lines[l]);
		points += range.to - range.from;
	}
	when_format(view.from, from);
	when_format(view.to, to);
	buf_printf(out, "%zu points from %.16s to %.16s UTC.", points, from, to);
	while (changes < MOST && view_next(&view, &at)) {
		buf_text(out, changes++ ? "; " : " Changes: ");
		describe_change(at.change, arena, out);
	}
	buf_text(out, changes ? "." : " No changes.");
	arena_free(arena);
}
