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
	X(save, void, (context_type *))                                                            \
	X(restore, void, (context_type *))                                                         \
	X(clip, void, (context_type *))                                                            \
	X(new_path, void, (context_type *))                                                        \
	X(move_to, void, (context_type *, double, double))                                         \
	X(line_to, void, (context_type *, double, double))                                         \
	X(rectangle, void, (context_type *, double, double, double, double))                       \
	X(arc, void, (context_type *, double, double, double, double, double))                     \
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

static void set_ink(const struct png *png, enum ink ink, double opacity)
{
	unsigned color = ink_color(ink, png->theme);

	cairo.set_source_rgba(png->context, (color >> 16) / 255.0, (color >> 8 & 255) / 255.0,
		(color & 255) / 255.0, opacity);
}

static void put_caption(const struct png *png, const struct figure *figure)
{
	static const double shares[] = {0, 0.5, 1};
	context_type *context = png->context;
	struct extents extents = {0};
	char *text = memory_strdup(figure->text);

	utf8_blank(text, '?'); /* of invalid text Cairo would draw nothing any more */
	cairo.select_font_face(context, "sans-serif", SLANT_NORMAL,
		figure->font.bold ? WEIGHT_BOLD : WEIGHT_NORMAL);
	cairo.set_font_size(context, figure->font.size);
	cairo.text_extents(context, text, &extents);
	double x = figure->spots->x - extents.x_advance * shares[figure->font.anchor];
	cairo.move_to(context, x, figure->spots->y);
	if (figure->font.halo) {
		set_ink(png, INK_GROUND, 0.9);
		cairo.set_line_width(context, 4);
		cairo.set_dash(context, NULL, 0, 0);
		cairo.text_path(context, text);
		cairo.stroke(context);
		cairo.move_to(context, x, figure->spots->y);
	}
	set_ink(png, figure->pen.ink, 1);
	cairo.show_text(context, text);
	free(text);
}

static void draw_figure(struct canvas *canvas, const struct figure *figure)
{
	static const double turn = 6.283185307179586;
	const struct png *png = (const struct png *)canvas;
	context_type *context = png->context;
	const struct spot *spots = figure->spots;
	const double dashes[] = {figure->pen.dash, figure->pen.gap};

	set_ink(png, figure->pen.ink, figure->pen.opacity);
	cairo.new_path(context);
	switch (figure->kind) {
	case FIGURE_CLIP: cairo.save(context); /* fall through */
	case FIGURE_AREA:
		cairo.rectangle(context, spots[0].x, spots[0].y, fmax(spots[1].x - spots[0].x, 0),
			fmax(spots[1].y - spots[0].y, 0));
		(figure->kind == FIGURE_CLIP ? cairo.clip : cairo.fill)(context);
		break;
	case FIGURE_LINE:
	case FIGURE_SHAPE:
		for (size_t i = 0; i < figure->count; i++)
			(i ? cairo.line_to : cairo.move_to)(context, spots[i].x, spots[i].y);
		cairo.set_line_width(context, figure->pen.width);
		cairo.set_line_join(context, JOIN_ROUND);
		cairo.set_dash(context, dashes, figure->pen.dash > 0 ? 2 : 0, 0);
		(figure->kind == FIGURE_SHAPE ? cairo.fill : cairo.stroke)(context);
		break;
	case FIGURE_DOTS:
		for (size_t i = 0; i < figure->count; i++) {
			cairo.arc(context, spots[i].x, spots[i].y, figure->pen.width / 2, 0, turn);
			cairo.fill(context);
		}
		break;
	case FIGURE_TEXT: put_caption(png, figure); break;
	case FIGURE_UNCLIP: cairo.restore(context); break;
	}
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

static bool draw(const struct plot *plot, const struct plot_style *style, surface_type *surface,
	context_type *context, struct buf *out, struct error *error)
{
	struct png png = {.canvas = {draw_figure},
		.context = context,
		.theme = style->theme == PLOT_DARK ? PLOT_DARK : PLOT_LIGHT};
	size_t length = out->length;

	/* Without any font Cairo draws with one of its own, which has ASCII only. */
	cairo.select_font_face(context, "sans-serif", SLANT_NORMAL, WEIGHT_NORMAL);
	void *font = cairo.get_scaled_font(context);
	if (cairo.status(context) != 0 || cairo.scaled_font_get_type(font) == FONT_OF_CAIRO)
		return error_set(error, ERROR_DATA,
			"cannot draw plots: no font installed (Debian: apt install "
			"fonts-dejavu-core)");
	set_ink(&png, INK_GROUND, 1);
	cairo.rectangle(context, 0, 0, style->width, style->height);
	cairo.fill(context);
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
	surface_type *surface =
		cairo.image_surface_create(FORMAT_RGB24, (int)full.width, (int)full.height);
	context_type *context = cairo.create(surface);
	bool drawn = draw(plot, &full, surface, context, out, error);
	cairo.destroy(context);
	cairo.surface_destroy(surface);
	return drawn;
}
