/*
 * SVG text. Colours are attributes, which need no style sheet and which every program that shows
 * SVG knows; where the reader's system decides about dark and light, a style sheet overrides them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/utf8.h"
#include "agent/report/plot_canvas.h"

struct svg {
	struct canvas canvas; /* must be first */
	struct buf *out;
	enum plot_theme theme;
};

static struct buf *out_of(struct canvas *canvas)
{
	return ((struct svg *)canvas)->out;
}

/* U+FFFE and U+FFFF are no characters of XML. */
static bool is_of_xml(const char *text, size_t length)
{
	return !(length == 3 && memcmp(text, "\xef\xbf", 2) == 0 &&
		 ((unsigned char)text[2] & 0xfe) == 0xbe);
}

/* Foreign text as content or in an attribute. */
static void put_text(struct buf *out, const char *text)
{
	for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
		length = utf8_length(text, left);
		if (length == 0 || !is_of_xml(text, length)) {
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
static void color(struct svg *svg, const char *property, enum ink ink, double opacity)
{
	if (svg->theme == PLOT_SYSTEM)
		buf_printf(svg->out, " class=\"%c%d\"", *property, (int)ink);
	buf_printf(svg->out, " %s=\"#%06x\"", property, ink_color(ink, svg->theme));
	if (opacity < 1) {
		buf_printf(svg->out, " %s-opacity=\"", property);
		put_number(svg->out, opacity);
		buf_char(svg->out, '"');
	}
}

static void put_spots(struct buf *out, const struct spot *spots, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		buf_char(out, i ? 'L' : 'M');
		put_number(out, spots[i].x);
		buf_char(out, ' ');
		put_number(out, spots[i].y);
	}
}

static void svg_area(struct canvas *canvas, const struct box *box, enum ink ink, double opacity)
{
	struct buf *out = out_of(canvas);

	buf_text(out, "<rect");
	attribute(out, "x", box->left);
	attribute(out, "y", box->top);
	attribute(out, "width", fmax(box->right - box->left, 0));
	attribute(out, "height", fmax(box->bottom - box->top, 0));
	color((struct svg *)canvas, "fill", ink, opacity);
	buf_text(out, "/>\n");
}

static void svg_line(
	struct canvas *canvas, const struct spot *spots, size_t count, const struct pen *pen)
{
	struct buf *out = out_of(canvas);

	buf_text(out, "<path d=\"");
	put_spots(out, spots, count);
	buf_text(out, "\" fill=\"none\"");
	color((struct svg *)canvas, "stroke", pen->ink, pen->opacity);
	attribute(out, "stroke-width", pen->width);
	if (pen->dash > 0) {
		buf_text(out, " stroke-dasharray=\"");
		put_number(out, pen->dash);
		buf_char(out, ' ');
		put_number(out, pen->gap);
		buf_char(out, '"');
	}
	buf_text(out, count > 2 ? " stroke-linejoin=\"round\"/>\n" : "/>\n");
}

static void svg_shape(
	struct canvas *canvas, const struct spot *spots, size_t count, enum ink ink, double opacity)
{
	struct buf *out = out_of(canvas);

	buf_text(out, "<path d=\"");
	put_spots(out, spots, count);
	buf_text(out, "Z\"");
	color((struct svg *)canvas, "fill", ink, opacity);
	buf_text(out, "/>\n");
}

/* Strokes of no length with round ends: a tenth of the bytes of as many circles. */
static void svg_dots(struct canvas *canvas, const struct spot *spots, size_t count, double radius,
	enum ink ink, double opacity)
{
	struct buf *out = out_of(canvas);

	buf_text(out, "<path d=\"");
	for (size_t i = 0; i < count; i++) {
		put_spots(out, &spots[i], 1);
		buf_text(out, "h0");
	}
	buf_text(out, "\" fill=\"none\" stroke-linecap=\"round\"");
	color((struct svg *)canvas, "stroke", ink, opacity);
	attribute(out, "stroke-width", 2 * radius);
	buf_text(out, "/>\n");
}

static void put_caption(struct svg *svg, const struct caption *caption, bool rim)
{
	static const char *const anchors[] = {"start", "middle", "end"};
	struct buf *out = svg->out;

	buf_text(out, "<text");
	attribute(out, "x", caption->at.x);
	attribute(out, "y", caption->at.y);
	attribute(out, "font-size", caption->size);
	if (caption->anchor != ANCHOR_START)
		buf_printf(out, " text-anchor=\"%s\"", anchors[caption->anchor]);
	if (caption->bold)
		buf_text(out, " font-weight=\"600\"");
	if (rim) {
		color(svg, "stroke", INK_GROUND, 0.9);
		buf_text(out, " fill=\"none\" stroke-width=\"4\" stroke-linejoin=\"round\" "
			      "aria-hidden=\"true\"");
	} else
		color(svg, "fill", caption->ink, 1);
	buf_char(out, '>');
	put_text(out, caption->text);
	buf_text(out, "</text>\n");
}

static void svg_caption(struct canvas *canvas, const struct caption *caption)
{
	if (caption->halo)
		put_caption((struct svg *)canvas, caption, true);
	put_caption((struct svg *)canvas, caption, false);
}

/* A view box of its own clips without an id, which would have to be unique in a page. */
static void svg_clip(struct canvas *canvas, const struct box *box)
{
	struct buf *out = out_of(canvas);

	if (!box) {
		buf_text(out, "</svg>\n");
		return;
	}
	buf_text(out, "<svg");
	attribute(out, "x", box->left);
	attribute(out, "y", box->top);
	attribute(out, "width", box->right - box->left);
	attribute(out, "height", box->bottom - box->top);
	buf_text(out, " viewBox=\"");
	put_number(out, box->left);
	buf_char(out, ' ');
	put_number(out, box->top);
	buf_char(out, ' ');
	put_number(out, box->right - box->left);
	buf_char(out, ' ');
	put_number(out, box->bottom - box->top);
	buf_text(out, "\">\n");
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
	struct svg svg = {
		.canvas = {svg_area, svg_line, svg_shape, svg_dots, svg_caption, svg_clip},
		.out = out,
		.theme = full.theme};

	put_head(plot, &full, out);
	plot_draw(plot, &full, &svg.canvas);
	buf_text(out, "</svg>\n");
}
