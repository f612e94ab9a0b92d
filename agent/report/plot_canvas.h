/*
 * A drawing: figures, one after the other, for SVG, Cairo or the cells of a terminal. All lengths
 * are px, y downwards.
 */
#ifndef AGENT_REPORT_PLOT_CANVAS_H
#define AGENT_REPORT_PLOT_CANVAS_H

#include "agent/base/arena.h"
#include "agent/report/plot_draw.h"

/* Colours by meaning; each theme has its own. */
enum ink {
	INK_GROUND,
	INK_TEXT,
	INK_FAINT, /* text of less weight */
	INK_GRID,
	INK_AXIS,
	INK_WORSE,
	INK_BETTER,
	INK_NEUTRAL, /* a change that is neither */
	INK_LEVEL,
	INK_BAND, /* where a change may have begun */
	INK_SILENCE,
	INK_OUTAGE,
	INK_SERIES, /* the first of SERIES_INKS */
};

enum { SERIES_INKS = 6, INKS = INK_SERIES + SERIES_INKS };

enum ink plot_verdict_ink(const struct plot_change *change);
enum ink plot_line_ink(size_t line);

/* 0xRRGGBB of a theme that is not PLOT_SYSTEM. */
unsigned ink_color(enum ink ink, enum plot_theme theme);

struct spot {
	double x, y;
};

enum figure_kind {
	FIGURE_AREA, /* with the corners left, top and right, bottom */
	FIGURE_LINE,
	FIGURE_SHAPE, /* filled */
	FIGURE_DOTS,
	FIGURE_TEXT,   /* its spot is on the baseline */
	FIGURE_CLIP,   /* an area: from now on only what lies in it is shown, ... */
	FIGURE_UNCLIP, /* ... until here */
};

struct pen {
	enum ink ink;
	double opacity, width; /* of dots: their diameter */
	double dash, gap;      /* 0: solid */
};

enum anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };

struct font {
	double size;
	enum anchor anchor;
	bool bold, halo; /* halo: a rim of the ground's colour, for text over lines */
};

struct figure {
	enum figure_kind kind;
	const struct spot *spots;
	size_t count;
	struct pen pen;
	const char *text;
	struct font font;
};

struct canvas {
	void (*draw)(struct canvas *canvas, const struct figure *figure);
};

/* The whole picture. The style is one of plot_style_of. */
void plot_draw(const struct plot *plot, const struct plot_style *style, struct canvas *canvas);

/* Points and levels alone, by lines, dots and shapes, in an area from 0, 0. */
struct view;
void plot_draw_series(const struct view *view, double width, double height, struct canvas *canvas);

/* "+6.1%", "new"; "" if it has no size. */
const char *plot_size_text(struct arena *arena, const struct plot_change *change);

/* A description of the picture for screen readers: a few sentences. */
void plot_describe(const struct plot *plot, struct buf *out);

#endif
