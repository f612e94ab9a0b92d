/*
 * A plot on a terminal: braille, of which a cell has two columns of four dots. Lines join the
 * points, levels are drawn over them, and a change is a dotted line through all rows, with its size
 * above it; all changes are listed below in words, since colours may be missing.
 */
#include <math.h>
#include <string.h>

#include "agent/base/utf8.h"
#include "agent/base/when.h"
#include "agent/report/plot_canvas.h"
#include "agent/report/plot_view.h"
#include "agent/report/table.h"

enum { LEAST_COLUMNS = 30, MOST_COLUMNS = 400, LEAST_ROWS = 4, MOST_ROWS = 100, LISTED = 20 };

struct cell {
	unsigned char dots;
	const char *escape;  /* of the dots, as they were drawn last */
	const char *passing; /* of a change that passes here, or NULL */
	bool passes;
};

struct screen {
	struct canvas canvas; /* must be first: its px are dots */
	const struct plot *plot;
	struct view view;
	struct arena *arena;
	struct buf *out;
	struct ticks values, times;
	bool color;
	unsigned columns, rows; /* of the whole line; of the body */
	unsigned left, width;   /* cells before the body, and of it */
	struct cell *cells;
};

#define PLAIN "\033[0m"
#define BOLD "\033[1m"
#define QUIET "\033[2m"

static const char *const escapes[INKS] = {[INK_LEVEL] = BOLD,
	[INK_BETTER] = "\033[32m",
	[INK_NEUTRAL] = "\033[33m",
	[INK_WORSE] = "\033[31m",
	[INK_SERIES] = "\033[36m",
	"\033[33m",
	"\033[35m",
	"\033[34m",
	"\033[95m",
	"\033[93m"};

static const char *verdict_escape(const struct plot_change *change)
{
	return escapes[plot_verdict_ink(change)];
}

static void paint(const struct screen *s, const char *escape)
{
	if (s->color && escape)
		buf_text(s->out, escape);
}

static void put_blanks(struct buf *out, size_t count)
{
	while (count-- > 0)
		buf_char(out, ' ');
}

/* Foreign text, at most so many columns of it; returns those it takes. */
static size_t put_foreign(const struct screen *s, const char *text, size_t most)
{
	char *plain = arena_strndup(s->arena, text, utf8_cut(text, 4 * most));
	size_t width;

	utf8_blank(plain, '?');
	while ((width = text_width(plain)) > most)
		plain[utf8_cut(plain, strlen(plain) - 1)] = '\0';
	buf_text(s->out, plain);
	return width;
}

/* Cells. */

static double dots_across(const struct screen *s)
{
	return 2.0 * s->width - 1;
}

static double dots_down(const struct screen *s)
{
	return 4.0 * s->rows - 1;
}

static void set_dot(struct screen *s, double x, double y, enum ink ink)
{
	static const unsigned char bits[2][4] = {{1, 2, 4, 64}, {8, 16, 32, 128}};
	long column = lround(x), row = lround(fmin(fmax(y, 0), dots_down(s)));
	struct cell *cell;

	if (column < 0 || column > lround(dots_across(s)))
		return;
	cell = &s->cells[(unsigned)(row / 4) * s->width + (unsigned)(column / 2)];
	cell->dots |= bits[column % 2][row % 4];
	cell->escape = escapes[ink];
}

/* Points and levels: lines, dots, and of the arrow of a point beyond the axis its tip. One point
 * beyond either edge would lead to it by a long way round. */
static void draw_figure(struct canvas *canvas, const struct figure *figure)
{
	struct screen *s = (struct screen *)canvas;
	double right = dots_across(s) + 1;

	for (size_t i = figure->kind == FIGURE_SHAPE ? figure->count - 1 : 0; i < figure->count;
		i++) {
		struct spot to = figure->spots[i], from = figure->spots[i > 0 ? i - 1 : 0];
		double steps;

		if (figure->kind != FIGURE_LINE || from.x < -1 || from.x > right || to.x < -1 ||
			to.x > right)
			from = to;
		steps = ceil(fmax(fabs(to.x - from.x), fabs(to.y - from.y)));
		for (double step = 0; step <= steps; step++) {
			double part = steps > 0 ? step / steps : 0;

			set_dot(s, from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part,
				figure->pen.ink);
		}
	}
}

static unsigned cell_of(const struct screen *s, int64_t time)
{
	double x = view_across(&s->view, (double)time) * dots_across(s) / 2;

	return x < 0 ? 0 : x >= s->width ? s->width - 1 : (unsigned)x;
}

/* Rows. */

static void put_cell(struct screen *s, const struct cell *cell)
{
	const char *escape = cell->dots ? cell->escape : cell->passing;
	char text[4];

	if (!cell->dots && !cell->passes) {
		buf_char(s->out, ' ');
		return;
	}
	paint(s, escape);
	if (cell->dots)
		buf_append(s->out, text, utf8_write(0x2800U + cell->dots, text));
	else
		buf_text(s->out, "┊");
	paint(s, escape ? PLAIN : NULL);
}

/* The mark of the axis in a row, or NULL. */
static const struct tick *tick_in(const struct screen *s, unsigned row)
{
	for (size_t i = 0; i < s->values.count; i++) {
		double up = fmin(fmax(view_up(&s->view, s->values.items[i].at), 0), 1);

		if ((unsigned)lround((1 - up) * dots_down(s)) / 4 == row)
			return &s->values.items[i];
	}
	return NULL;
}

static void put_row(struct screen *s, unsigned row)
{
	const struct tick *tick = tick_in(s, row);
	const char *text = tick ? tick->text : "";
	size_t width = text_width(text), room = s->left - 1;

	put_blanks(s->out, width < room ? room - width : 0);
	paint(s, QUIET);
	if (width > room) {
		width = put_foreign(s, text, room - 1);
		buf_text(s->out, "…");
		put_blanks(s->out, room - 1 - width);
	} else {
		buf_text(s->out, text);
	}
	buf_text(s->out, tick ? "┤" : "│");
	paint(s, PLAIN);
	unsigned last = s->width;
	while (last > 0 && !s->cells[row * s->width + last - 1].dots &&
		!s->cells[row * s->width + last - 1].passes)
		last--;
	for (unsigned i = 0; i < last; i++)
		put_cell(s, &s->cells[row * s->width + i]);
	buf_char(s->out, '\n');
}

/* The cell of the axis of times. */
static const char *axis_at(const struct screen *s, unsigned cell)
{
	for (size_t i = 0; i < s->plot->span_count; i++) {
		const struct plot_span *span = &s->plot->spans[i];

		if (span->to >= s->view.from && span->from <= s->view.to &&
			cell_of(s, span->from) <= cell && cell <= cell_of(s, span->to))
			return span->kind == PLOT_OUTAGE ? "×" : "═";
	}
	for (size_t i = 0; i < s->times.count; i++)
		if (cell_of(s, (int64_t)s->times.items[i].at) == cell)
			return "┬";
	return "─";
}

/* Texts around their marks, as far as they leave a blank between each other. */
static void put_times(struct screen *s, bool contexts)
{
	size_t at = 0, end = s->left + s->width;

	for (size_t i = 0; i < s->times.count; i++) {
		const struct tick *tick = &s->times.items[i];
		const char *text = contexts ? tick->context : tick->text;
		size_t width = text_width(text), cell = s->left + cell_of(s, (int64_t)tick->at);
		size_t half = (contexts ? text_width(tick->text) : width) / 2;
		size_t start = cell > half ? cell - half : 0;

		if (start + width > end)
			start = end > width ? end - width : 0;
		if (width == 0 || (at > 0 && start < at + 1))
			continue;
		put_blanks(s->out, start - at);
		buf_text(s->out, text);
		at = start + width;
	}
	buf_char(s->out, '\n');
}

static void put_axis(struct screen *s)
{
	bool contexts = false;

	put_blanks(s->out, s->left - 1);
	paint(s, QUIET);
	buf_text(s->out, "└");
	for (unsigned i = 0; i < s->width; i++)
		buf_text(s->out, axis_at(s, i));
	buf_char(s->out, '\n');
	put_times(s, false);
	for (size_t i = 0; i < s->times.count; i++)
		contexts = contexts || *s->times.items[i].context;
	if (contexts)
		put_times(s, true);
	paint(s, PLAIN);
}

/* Words. */

static const char *arrow(const struct plot_change *change)
{
	return change->after >= change->before ? "▲" : "▼";
}

/* What begins in a cell above the body, and whether something is there. */
struct above {
	const struct plot_change *change;
	const char *text;
	bool taken;
};

/* Writes the change's size above it if there is room. */
static void place_size(const struct screen *s, const struct plot_change *change, struct above *lane)
{
	const char *text = change->mark ? change->mark
					: arena_printf(s->arena, "%s%s", arrow(change),
						  plot_size_text(s->arena, change));
	unsigned width = (unsigned)text_width(text), cell = cell_of(s, change->time);
	unsigned start = cell > width / 2 ? cell - width / 2 : 0, gap = !change->mark;

	if (width > s->width)
		return;
	if (start + width > s->width)
		start = s->width - width;
	for (unsigned i = start > gap ? start - gap : 0; i < start + width + gap; i++)
		if (i < s->width && lane[i].taken)
			return;
	for (unsigned i = start; i < start + width; i++)
		lane[i].taken = true;
	lane[start].change = change;
	lane[start].text = text;
}

/* The sizes of the changes, as far as there is room: first that of the one that the plot is about.
 */
static void put_lane(struct screen *s)
{
	struct above *lane = arena_array(s->arena, s->width, sizeof *lane);
	int64_t mark = s->plot->mark;
	unsigned at = 0;

	if (view_count(&s->view) == 0)
		return;
	for (int others = mark == 0; others < 2; others++) {
		struct view_place place = {0};

		while (view_next(&s->view, &place))
			if (mark == 0 || (place.change->id != mark) == others)
				place_size(s, place.change, lane);
	}
	put_blanks(s->out, s->left);
	for (unsigned i = 0; i < s->width; i++) {
		if (!lane[i].text)
			continue;
		put_blanks(s->out, i - at);
		at = i + (unsigned)text_width(lane[i].text);
		paint(s, verdict_escape(lane[i].change));
		buf_text(s->out, lane[i].text);
		paint(s, PLAIN);
	}
	buf_char(s->out, '\n');
}

static void put_title(struct screen *s)
{
	const char *legend = view_legend(&s->view, s->arena, "  ");
	size_t width = 0;

	if (s->plot->title && *s->plot->title) {
		paint(s, BOLD);
		width = put_foreign(s, s->plot->title, s->columns - 1);
		paint(s, PLAIN);
	}
	if (*legend && width + 2 + text_width(legend) < s->columns)
		buf_printf(s->out, "  %s", legend);
	buf_char(s->out, '\n');
	for (size_t l = 0; l < s->plot->line_count && s->plot->line_count > 1; l++) {
		paint(s, escapes[plot_line_ink(l)]);
		buf_text(s->out, "⣀ ");
		put_foreign(s, s->plot->lines[l].name ? s->plot->lines[l].name : "points",
			s->columns - 3);
		paint(s, PLAIN);
		buf_char(s->out, '\n');
	}
}

static void put_change(struct screen *s, size_t line, const struct plot_change *change)
{
	struct measure measure =
		measure_of(fmax(fabs(change->before), fabs(change->after)), s->plot->unit);
	static const char *const words[] = {" better", "", " worse"};
	char time[WHEN_TEXT], before[TICK_TEXT], after[TICK_TEXT];
	const char *name = s->plot->lines[line].name, *state = plot_state_text(change);

	measure_print(&measure, change->before, before);
	measure_print(&measure, change->after, after);
	paint(s, verdict_escape(change));
	buf_printf(s->out, "%s %s%s", arrow(change), plot_size_text(s->arena, change),
		words[1 + change->verdict]);
	paint(s, PLAIN);
	buf_printf(s->out, "  %.16s  %s → %s", when_format(change->time, time), before, after);
	if (s->plot->line_count > 1 && name) {
		buf_text(s->out, "  ");
		put_foreign(s, name, 60);
	}
	if (change->commit && *change->commit) {
		char scratch[TABLE_SCRATCH];

		buf_text(s->out, "  ");
		put_foreign(s, table_commit(change->commit, scratch), 40);
	}
	if (*state)
		buf_printf(s->out, "  %s", state);
	buf_char(s->out, '\n');
}

static void put_spans(struct screen *s)
{
	for (size_t i = 0; i < s->plot->span_count && i < LISTED; i++) {
		const struct plot_span *span = &s->plot->spans[i];
		char from[WHEN_TEXT], to[WHEN_TEXT];

		if (span->to < s->view.from || span->from > s->view.to)
			continue;
		buf_printf(s->out, "%s %.16s .. %.16s  ", span->kind == PLOT_OUTAGE ? "×" : "═",
			when_format(span->from, from), when_format(span->to, to));
		put_foreign(s, plot_span_text(span), 60);
		buf_char(s->out, '\n');
	}
}

static void put_changes(struct screen *s)
{
	struct view_place at = {0};
	size_t count = 0;

	while (view_next(&s->view, &at))
		if (!at.change->mark && count++ < LISTED)
			put_change(s, at.line, at.change);
	if (count > LISTED)
		buf_printf(s->out, "and %zu more changes\n", count - LISTED);
}

/* All together. */

static void measure(struct screen *s, const struct plot_terminal *terminal)
{
	size_t widest = 0;

	s->columns =
		view_clamp(terminal->columns ? terminal->columns : 80, LEAST_COLUMNS, MOST_COLUMNS);
	s->rows = view_clamp(terminal->rows ? terminal->rows : view_clamp(s->columns / 6, 10, 24),
		LEAST_ROWS, MOST_ROWS);
	view_ticks(&s->view, s->rows / 3 > 2 ? s->rows / 3 : 2, &s->values);
	for (size_t i = 0; i < s->values.count; i++) {
		size_t width = text_width(s->values.items[i].text);
		widest = width > widest ? width : widest;
	}
	s->left = view_clamp((unsigned)widest + 1, 2, s->columns / 2);
	s->width = s->columns - s->left - 1;
	if (s->plot->numbered && s->view.from < s->view.to)
		ticks_linear(&s->times, (double)s->view.from, (double)s->view.to, s->width / 11,
			&(const struct measure){.factor = 1}, false);
	else
		ticks_time(&s->times, s->view.from, s->view.to, s->width / 11);
	s->cells = arena_array(s->arena, (size_t)s->width * s->rows, sizeof *s->cells);
}

void plot_text(const struct plot *plot, const struct plot_terminal *terminal, struct buf *out)
{
	struct arena *arena = arena_new();
	struct view_place at = {0};
	struct screen s = {.canvas = {draw_figure},
		.plot = plot,
		.view = view_of(plot, arena),
		.arena = arena,
		.out = out,
		.color = terminal->color};

	measure(&s, terminal);
	put_title(&s);
	if (s.view.empty) {
		buf_text(out, "no points\n");
		arena_free(arena);
		return;
	}
	plot_draw_series(&s.view, dots_across(&s), dots_down(&s), &s.canvas);
	while (view_next(&s.view, &at))
		for (unsigned row = 0; row < s.rows; row++) {
			struct cell *cell = &s.cells[row * s.width + cell_of(&s, at.change->time)];

			cell->passes = true;
			cell->passing = verdict_escape(at.change);
		}
	put_lane(&s);
	for (unsigned row = 0; row < s.rows; row++)
		put_row(&s, row);
	put_axis(&s);
	put_changes(&s);
	put_spans(&s);
	arena_free(arena);
}
