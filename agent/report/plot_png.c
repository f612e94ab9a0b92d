/*
 * PNG by Cairo. The library is not a dependency of the program: it is loaded, with fonts and all
 * that they need, when the first picture is drawn, so that no other command pays for it. Its
 * functions in use are declared here.
 */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/utf8.h"
#include "agent/report/plot_canvas.h"

typedef struct cairo_surface surface_type;
typedef struct cairo_context context_type;

/* Cairo's enumerations. */
enum { FORMAT_RGB24 = 1, SLANT_NORMAL = 0, WEIGHT_NORMAL = 0, WEIGHT_BOLD = 1 };
enum { JOIN_ROUND = 1, FONT_OF_CAIRO = 4 /* its user fonts */, STATUS_WRITE = 11 };

struct extents {
	double x_bearing, y_bearing, width, height, x_advance, y_advance;
};

typedef int writer(void *closure, const unsigned char *data, unsigned length);

#define CAIRO_FUNCTIONS(X)                                                                         \
	X(image_surface_create, surface_type *, (int, int, int))                                   \
	X(surface_destroy, void, (surface_type *))                                                 \
	X(surface_write_to_png_stream, int, (surface_type *, writer *, void *))                    \
	X(create, context_type *, (surface_type *))                                                \
	X(destroy, void, (context_type *))                                                         \
	X(status, int, (context_type *))                                                           \
	X(status_to_string, const char *, (int))                                                   \
	X(scale, void, (context_type *, double, double))                                           \
	X(save, void, (context_type *))                                                            \
	X(restore, void, (context_type *))                                                         \
	X(clip, void, (context_type *))                                                            \
	X(new_path, void, (context_type *))                                                        \
	X(move_to, void, (context_type *, double, double))                                         \
	X(line_to, void, (context_type *, double, double))                                         \
	X(rectangle, void, (context_type *, double, double, double, double))                       \
	X(arc, void, (context_type *, double, double, double, double, double))                     \
	X(close_path, void, (context_type *))                                                      \
	X(fill, void, (context_type *))                                                            \
	X(stroke, void, (context_type *))                                                          \
	X(set_source_rgba, void, (context_type *, double, double, double, double))                 \
	X(set_line_width, void, (context_type *, double))                                          \
	X(set_line_join, void, (context_type *, int))                                              \
	X(set_dash, void, (context_type *, const double *, int, double))                           \
	X(select_font_face, void, (context_type *, const char *, int, int))                        \
	X(set_font_size, void, (context_type *, double))                                           \
	X(text_extents, void, (context_type *, const char *, struct extents *))                    \
	X(text_path, void, (context_type *, const char *))                                         \
	X(show_text, void, (context_type *, const char *))                                         \
	X(get_scaled_font, void *, (context_type *))                                               \
	X(scaled_font_get_type, int, (void *))

/* The library's functions, NULL until it is loaded. */
struct cairo {
	bool loaded;
	char problem[256]; /* if it could not be */
#define MEMBER(name, result, arguments) result(*name) arguments;
	CAIRO_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* Constant once loaded. */
static struct cairo cairo;
static pthread_once_t cairo_once = PTHREAD_ONCE_INIT;

static bool load_function(void *library, const char *name, void *out)
{
	void *function = dlsym(library, name);

	if (!function) {
		snprintf(cairo.problem, sizeof cairo.problem, "it has no %s", name);
		return false;
	}
	memcpy(out, &function, sizeof function);
	return true;
}

static void load(void)
{
	void *library = dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		const char *why = dlerror();
		snprintf(cairo.problem, sizeof cairo.problem, "%s", why ? why : "not found");
		return;
	}
	cairo.loaded = true;
#define LOAD(name, result, arguments)                                                              \
	cairo.loaded = cairo.loaded && load_function(library, "cairo_" #name, &cairo.name);
	CAIRO_FUNCTIONS(LOAD)
#undef LOAD
}

struct png {
	struct canvas canvas; /* must be first */
	context_type *context;
	enum plot_theme theme;
};

static context_type *context_of(struct canvas *canvas)
{
	return ((struct png *)canvas)->context;
}

static void set_ink(struct canvas *canvas, enum ink ink, double opacity)
{
	const struct png *png = (const struct png *)canvas;
	unsigned color = ink_color(ink, png->theme);

	cairo.set_source_rgba(png->context, (color >> 16) / 255.0, (color >> 8 & 255) / 255.0,
		(color & 255) / 255.0, opacity);
}

static void trace(context_type *context, const struct spot *spots, size_t count)
{
	cairo.new_path(context);
	for (size_t i = 0; i < count; i++)
		(i ? cairo.line_to : cairo.move_to)(context, spots[i].x, spots[i].y);
}

static void png_area(struct canvas *canvas, const struct box *box, enum ink ink, double opacity)
{
	context_type *context = context_of(canvas);

	set_ink(canvas, ink, opacity);
	cairo.rectangle(context, box->left, box->top, fmax(box->right - box->left, 0),
		fmax(box->bottom - box->top, 0));
	cairo.fill(context);
}

static void png_line(
	struct canvas *canvas, const struct spot *spots, size_t count, const struct pen *pen)
{
	context_type *context = context_of(canvas);
	const double dashes[] = {pen->dash, pen->gap};

	set_ink(canvas, pen->ink, pen->opacity);
	cairo.set_line_width(context, pen->width);
	cairo.set_line_join(context, JOIN_ROUND);
	cairo.set_dash(context, dashes, pen->dash > 0 ? 2 : 0, 0);
	trace(context, spots, count);
	cairo.stroke(context);
}

static void png_shape(
	struct canvas *canvas, const struct spot *spots, size_t count, enum ink ink, double opacity)
{
	context_type *context = context_of(canvas);

	set_ink(canvas, ink, opacity);
	trace(context, spots, count);
	cairo.close_path(context);
	cairo.fill(context);
}

static void png_dots(struct canvas *canvas, const struct spot *spots, size_t count, double radius,
	enum ink ink, double opacity)
{
	static const double turn = 6.283185307179586;
	context_type *context = context_of(canvas);

	set_ink(canvas, ink, opacity);
	for (size_t i = 0; i < count; i++) {
		cairo.new_path(context);
		cairo.arc(context, spots[i].x, spots[i].y, radius, 0, turn);
		cairo.fill(context);
	}
}

static void png_caption(struct canvas *canvas, const struct caption *caption)
{
	context_type *context = context_of(canvas);
	static const double shares[] = {0, 0.5, 1};
	struct extents extents = {0};
	char *text = memory_strdup(caption->text);

	utf8_blank(text, '?'); /* of invalid text Cairo would draw nothing any more */
	cairo.select_font_face(
		context, "sans-serif", SLANT_NORMAL, caption->bold ? WEIGHT_BOLD : WEIGHT_NORMAL);
	cairo.set_font_size(context, caption->size);
	cairo.text_extents(context, text, &extents);
	double x = caption->at.x - extents.x_advance * shares[caption->anchor];
	cairo.new_path(context);
	cairo.move_to(context, x, caption->at.y);
	if (caption->halo) {
		set_ink(canvas, INK_GROUND, 0.9);
		cairo.set_line_width(context, 4);
		cairo.set_dash(context, NULL, 0, 0);
		cairo.text_path(context, text);
		cairo.stroke(context);
		cairo.move_to(context, x, caption->at.y);
	}
	set_ink(canvas, caption->ink, 1);
	cairo.show_text(context, text);
	free(text);
}

static void png_clip(struct canvas *canvas, const struct box *box)
{
	context_type *context = context_of(canvas);

	if (!box) {
		cairo.restore(context);
		return;
	}
	cairo.save(context);
	cairo.new_path(context);
	cairo.rectangle(
		context, box->left, box->top, box->right - box->left, box->bottom - box->top);
	cairo.clip(context);
}

static int append(void *closure, const unsigned char *data, unsigned length)
{
	enum { MOST = 64 << 20 };
	struct buf *out = closure;

	if (out->length + length > MOST)
		return STATUS_WRITE;
	buf_append(out, data, length);
	return 0;
}

/* Without any font Cairo draws with one of its own, which has ASCII only. */
static bool has_font(context_type *context, struct error *error)
{
	cairo.select_font_face(context, "sans-serif", SLANT_NORMAL, WEIGHT_NORMAL);
	void *font = cairo.get_scaled_font(context);
	if (cairo.status(context) == 0 && cairo.scaled_font_get_type(font) != FONT_OF_CAIRO)
		return true;
	return error_set(error, ERROR_DATA,
		"cannot draw plots: no font installed (Debian: apt install fonts-dejavu-core)");
}

static bool draw(const struct plot *plot, const struct plot_style *style, surface_type *surface,
	context_type *context, struct buf *out, struct error *error)
{
	struct png png = {
		.canvas = {png_area, png_line, png_shape, png_dots, png_caption, png_clip},
		.context = context,
		.theme = style->theme == PLOT_DARK ? PLOT_DARK : PLOT_LIGHT};
	const struct box all = {0, 0, style->width, style->height};
	size_t length = out->length;

	if (!has_font(context, error))
		return false;
	cairo.scale(context, style->zoom, style->zoom);
	png_area(&png.canvas, &all, INK_GROUND, 1);
	plot_draw(plot, style, &png.canvas);
	int status = cairo.status(context);
	if (status == 0)
		status = cairo.surface_write_to_png_stream(surface, append, out);
	if (status == 0)
		return true;
	out->length = length;
	return error_set(
		error, ERROR_DATA, "a picture cannot be drawn: %s", cairo.status_to_string(status));
}

bool plot_png(const struct plot *plot, const struct plot_style *style, struct buf *out,
	struct error *error)
{
	struct plot_style full = plot_style_of(style);

	pthread_once(&cairo_once, load);
	if (!cairo.loaded)
		return error_set(error, ERROR_DATA,
			"pictures cannot be drawn: Cairo (Debian: apt install libcairo2): %s",
			cairo.problem);
	surface_type *surface = cairo.image_surface_create(FORMAT_RGB24,
		(int)lround(full.width * full.zoom), (int)lround(full.height * full.zoom));
	context_type *context = cairo.create(surface);
	bool drawn = draw(plot, &full, surface, context, out, error);
	cairo.destroy(context);
	cairo.surface_destroy(surface);
	return drawn;
}
