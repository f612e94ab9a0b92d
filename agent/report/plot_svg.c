/*
 * SVG text. Colours are attributes, which need no style sheet and which every program that shows
 * SVG knows; where the reader's system decides about dark and light, a style sheet overrides them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/utf8.h"
#include "agent/report/plot_canvas.h"

struct svg {
	struct canvas canvas; /* must be first */
	struct buf *out;
	enum plot_theme theme;
};

/* Foreign text as content or in an attribute. U+FFFE and U+FFFF are no characters of XML. */
static void put_text(struct buf *out, const char *text)
{
	for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
		length = utf8_length(text, left);
		if (length == 0 || (length == 3 && memcmp(text, "\xef\xbf", 2) == 0 &&
					   ((unsigned char)text[2] & 0xfe) == 0xbe)) {
			buf_text(out, "\uFFFD");
			length = length ? length : 1;
		} else if (utf8_is_control(text, length))
			buf_char(out, ' ');
		else
			buf_markup(out, text, length);
	}
}

/* At most two digits after the point, and no more than it needs. */
static void put_number(struct buf *out, double value)
{
	long hundredths = lround(fmin(fmax(value, -1e6), 1e6) * 100);
	long whole = labs(hundredths) / 100, part = labs(hundredths) % 100;

	buf_printf(out, "%s%ld", hundredths < 0 ? "-" : "", whole);
	if (part % 10)
		buf_printf(out, ".%02ld", part);
	else if (part)
		buf_printf(out, ".%ld", part / 10);
}

static void attribute(struct buf *out, const char *name, double value)
{
	buf_printf(out, " %s=\"", name);
	put_number(out, value);
	buf_char(out, '"');
}

/* "fill" or "stroke", with the class by which a style sheet overrides it. */
static void color(const struct svg *svg, const char *property, const struct pen *pen)
{
	if (svg->theme == PLOT_SYSTEM)
		buf_printf(svg->out, " class=\"%c%d\"", *property, (int)pen->ink);
	buf_printf(svg->out, " %s=\"#%06x\"", property, ink_color(pen->ink, svg->theme));
	if (pen->opacity < 1) {
		buf_printf(svg->out, " %s-opacity=\"", property);
		put_number(svg->out, pen->opacity);
		buf_char(svg->out, '"');
	}
}

static void put_pair(struct buf *out, double x, double y)
{
	put_number(out, x);
	buf_char(out, ' ');
	put_number(out, y);
}

static void put_corners(struct buf *out, const struct spot *spots)
{
	attribute(out, "x", spots[0].x);
	attribute(out, "y", spots[0].y);
	attribute(out, "width", fmax(spots[1].x - spots[0].x, 0));
	attribute(out, "height", fmax(spots[1].y - spots[0].y, 0));
}

/* A line or a shape. Dots are strokes of no length with round ends: a tenth of the bytes of as many
 * circles. */
static void put_path(const struct svg *svg, const struct figure *figure)
{
	const struct pen *pen = &figure->pen;
	bool dots = figure->kind == FIGURE_DOTS, shape = figure->kind == FIGURE_SHAPE;
	struct buf *out = svg->out;

	buf_text(out, "<path d=\"");
	for (size_t i = 0; i < figure->count; i++) {
		buf_char(out, i && !dots ? 'L' : 'M');
		put_pair(out, figure->spots[i].x, figure->spots[i].y);
		buf_text(out, dots ? "h0" : "");
	}
	buf_text(out, shape ? "Z\"" : "\" fill=\"none\"");
	color(svg, shape ? "fill" : "stroke", pen);
	if (!shape)
		attribute(out, "stroke-width", pen->width);
	if (pen->dash > 0) {
		buf_text(out, " stroke-dasharray=\"");
		put_pair(out, pen->dash, pen->gap);
		buf_char(out, '"');
	}
	if (dots)
		buf_text(out, " stroke-linecap=\"round\"");
	else if (!shape && figure->count > 2)
		buf_text(out, " stroke-linejoin=\"round\"");
	buf_text(out, "/>\n");
}

static void put_caption(const struct svg *svg, const struct figure *figure, bool rim)
{
	static const char *const anchors[] = {"start", "middle", "end"};
	static const struct pen ground = {INK_GROUND, 0.9, 0, 0, 0};
	struct buf *out = svg->out;

	buf_text(out, "<text");
	attribute(out, "x", figure->spots->x);
	attribute(out, "y", figure->spots->y);
	attribute(out, "font-size", figure->font.size);
	if (figure->font.anchor != ANCHOR_START)
		buf_printf(out, " text-anchor=\"%s\"", anchors[figure->font.anchor]);
	if (figure->font.bold)
		buf_text(out, " font-weight=\"600\"");
	color(svg, rim ? "stroke" : "fill", rim ? &ground : &figure->pen);
	if (rim)
		buf_text(out, " fill=\"none\" stroke-width=\"4\" stroke-linejoin=\"round\" "
			      "aria-hidden=\"true\"");
	buf_char(out, '>');
	put_text(out, figure->text);
	buf_text(out, "</text>\n");
}

static void draw_figure(struct canvas *canvas, const struct figure *figure)
{
	const struct svg *svg = (const struct svg *)canvas;
	const struct spot *spots = figure->spots;
	struct buf *out = svg->out;

	switch (figure->kind) {
	case FIGURE_AREA:
		buf_text(out, "<rect");
		put_corners(out, spots);
		color(svg, "fill", &figure->pen);
		buf_text(out, "/>\n");
		break;
	case FIGURE_LINE:
	case FIGURE_SHAPE:
	case FIGURE_DOTS: put_path(svg, figure); break;
	case FIGURE_TEXT:
		if (figure->font.halo)
			put_caption(svg, figure, true);
		put_caption(svg, figure, false);
		break;
	case FIGURE_CLIP: /* by a view box of its own, without an id, which would have to be unique
			   */
		buf_text(out, "<svg");
		put_corners(out, spots);
		buf_text(out, " viewBox=\"");
		put_pair(out, spots[0].x, spots[0].y);
		buf_char(out, ' ');
		put_pair(out, spots[1].x - spots[0].x, spots[1].y - spots[0].y);
		buf_text(out, "\">\n");
		break;
	case FIGURE_UNCLIP: buf_text(out, "</svg>\n"); break;
	}
}

static void put_sheet(struct buf *out)
{
	buf_text(out, "<style>@media (prefers-color-scheme: dark) {");
	for (int ink = 0; ink < INKS; ink++)
		buf_printf(out, " .f%d { fill: #%06x } .s%d { stroke: #%06x }", ink,
			ink_color((enum ink)ink, PLOT_DARK), ink,
			ink_color((enum ink)ink, PLOT_DARK));
	buf_text(out, " }</style>\n");
}

static void put_head(const struct plot *plot, const struct plot_style *style, struct buf *out)
{
	struct buf words = {0};
	const char *title = plot->title && *plot->title ? plot->title : "plot";

	buf_printf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		"viewBox=\"0 0 %u %u\" role=\"img\" font-family=\"system-ui, -apple-system, "
		"'Segoe UI', Roboto, 'DejaVu Sans', sans-serif\">\n",
		style->width, style->height, style->width, style->height);
	char *cut = memory_strdup(title);
	cut[utf8_cut(cut, 500)] = '\0';
	buf_text(out, "<title>");
	put_text(out, cut);
	buf_text(out, "</title>\n<desc>");
	free(cut);
	plot_describe(plot, &words);
	put_text(out, words.data);
	buf_text(out, "</desc>\n");
	buf_free(&words);
	if (style->theme == PLOT_SYSTEM)
		put_sheet(out);
}

void plot_svg(const struct plot *plot, const struct plot_style *style, struct buf *out)
{
	struct plot_style full = plot_style_of(style);
	struct svg svg = {.canvas = {draw_figure}, .out = out, .theme = full.theme};

	put_head(plot, &full, out);
	plot_draw(plot, &full, &svg.canvas);
	buf_text(out, "</svg>\n");
}
