/*
 * Pictures of a plot: SVG, PNG and, for terminals, text.
 *
 * All show the same: points, levels, changes with the places where they may have begun, silences,
 * and outages of the source. Names are always escaped. Where there are more points than columns of
 * pixels, each column shows its lowest and its highest, so that no spike is lost. Nothing here
 * keeps state between two calls, and any thread may call it.
 */
#ifndef AGENT_REPORT_PLOT_DRAW_H
#define AGENT_REPORT_PLOT_DRAW_H

#include "agent/base/buf.h"
#include "agent/report/plot.h"

enum plot_theme {
	PLOT_LIGHT,
	PLOT_DARK,
	PLOT_SYSTEM, /* SVG: as the reader's system has it; PNG: light */
};

enum { PLOT_MOST_PIXELS = 4000 }; /* in each direction */

struct plot_style {
	unsigned width, height; /* px; 0: 960 x 400, a small one 160 x 40 */
	enum plot_theme theme;
	bool small; /* a row's picture: no axes and no words */
};

/* The style with its defaults filled in, and within bounds. */
struct plot_style plot_style_of(const struct plot_style *style);

void plot_svg(const struct plot *plot, const struct plot_style *style, struct buf *out);

/*
 * Draws with Cairo, which is loaded when it is first needed. Fails (ERROR_DATA) if that library or
 * a font is not installed.
 */
bool plot_png(const struct plot *plot, const struct plot_style *style, struct buf *out,
	struct error *error) MUST_USE;

struct plot_terminal {
	unsigned columns, rows; /* 0: 80 columns, and rows to suit them */
	bool color;
};

/* Braille; lines end with LF. */
void plot_text(const struct plot *plot, const struct plot_terminal *terminal, struct buf *out);

#endif
