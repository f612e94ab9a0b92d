/*
 * A small picture of a change is drawn from the points that the store keeps with it: no source is
 * asked, so that a list with many of them is as quick as one without. All other pictures show the
 * data of /api/v1/plot.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/hash.h"
#include "agent/report/plot_draw.h"
#include "agent/web/plots.h"

enum {
	LEAST_SIDE = 16,
	MOST_WIDTH = 2400,
	MOST_HEIGHT = 1600,
};

/* An SVG file that is opened by itself may style itself, and nothing else. */
static const char policy[] = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/* The parameters of the request. */
struct wish {
	bool png;
	struct plot_style style;
	enum plot_scale scale;
};

static void read_wish(struct form *form, struct wish *wish)
{
	static const char *const themes[] = {
		[PLOT_LIGHT] = "light", [PLOT_DARK] = "dark", [PLOT_SYSTEM] = "system", NULL};
	struct plot_style *style = &wish->style;
	const char *small = form_get(form, "small");

	style->small = small && (!*small || form_bool(form, "small"));
	style->width = (unsigned)form_number(form, "width", LEAST_SIDE, MOST_WIDTH, 0);
	style->height = (unsigned)form_number(form, "height", LEAST_SIDE, MOST_HEIGHT, 0);
	style->theme = (enum plot_theme)form_choice(form, "theme", themes, 0, PLOT_SYSTEM);
	wish->scale = (enum plot_scale)form_choice(form, "scale", plot_scale_names, 0, PLOT_AUTO);
}

static bool draw(const struct plot *plot, void *context, struct arena *arena, struct buf *out,
	struct error *error)
{
	const struct wish *wish = context;
	struct plot scaled = *plot;

	(void)arena;
	scaled.scale = wish->scale;
	if (wish->png)
		return plot_png(&scaled, &wish->style, out, error);
	plot_svg(&scaled, &wish->style, out);
	return true;
}

static void get_picture(struct http_request *request)
{
	struct wish *wish = arena_alloc(request->arena, sizeof *wish);
	struct form form = api_form(request, request->arena);
	struct plots_wish plots;

	*wish = (struct wish){.png = strstr(request->route->path, ".png")};
	read_wish(&form, wish);
	plots = plots_read(&form);
	plots.change = plots.change ? plots.change : request->id;
	plots.columns = (size_t)plot_style_of(&wish->style).width;
	plots.draw = draw;
	plots.context = wish;
	plots.type = wish->png ? "image/png" : "image/svg+xml";
	plots.policy = policy;
	plots.stored = true;
	plots.small = wish->style.small && request->id;
	plots_answer(request, &form, &plots);
}

#define OF_CHANGE "small width height theme scale since until cleaned"
#define OF_SERIES OF_CHANGE " test metric branch change limit"

/* Not guarded: other sites, such as a wiki, may embed pictures for users who may see them. */
const struct route picture_routes[] = {
	{"/change/*.svg", HTTP_READ | HTTP_SHOWN, ROLE_VIEWER, 60000, OF_CHANGE, get_picture},
	{"/change/*.png", HTTP_READ | HTTP_SHOWN, ROLE_VIEWER, 60000, OF_CHANGE, get_picture},
	{"/plot.svg", HTTP_READ | HTTP_SHOWN, ROLE_VIEWER, 60000, OF_SERIES, get_picture},
	{"/plot.png", HTTP_READ | HTTP_SHOWN, ROLE_VIEWER, 60000, OF_SERIES, get_picture},
	{0},
};
