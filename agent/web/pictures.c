/*
 * A small picture of a change is drawn from the points that the store keeps with it: no source is
 * asked, so that a list with many of them is as quick as one without. All other pictures show the
 * data of /api/v1/plot.
 */
#include "agent/web/pictures.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/hash.h"
#include "agent/base/number.h"
#include "agent/report/plot_draw.h"
#include "agent/report/record_plot.h"
#include "agent/web/plots.h"

enum {
	LEAST_SIDE = 16,
	MOST_WIDTH = 2400,
	MOST_HEIGHT = 1600,
	MOST_PIXELS = 4000000, /* of a PNG: as many times four bytes */
};

/* An SVG file that is opened by itself may style itself, and nothing else. */
static const char policy[] = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
static const char *const types[] = {"image/svg+xml", "image/png"};

enum format { FORMAT_SVG, FORMAT_PNG };

/* The parameters of the request. */
struct wish {
	enum format format;
	struct plot_style style;
	enum plot_scale scale;
};

static bool parse_zoom(const struct http_request *request, double *out, struct error *error)
{
	const char *text = http_parameter(request, "zoom");

	if (!text)
		return true;
	return (number_parse(text, strlen(text), out) && *out >= 1 && *out <= 3) ||
	       error_set(error, ERROR_USAGE, "zoom: a number from 1 to 3 is needed");
}

/* `small`, `small=true` or `small=false`. */
static bool parse_small(const struct http_request *request, bool *out, struct error *error)
{
	const char *text = http_parameter(request, "small");

	*out = text && strcmp(text, "false") != 0;
	return !*out || !*text || strcmp(text, "true") == 0 ||
	       error_set(error, ERROR_USAGE, "small: true or false is needed");
}

static bool parse(const struct http_request *request, struct wish *wish, struct error *error)
{
	static const char *const themes[] = {
		[PLOT_LIGHT] = "light", [PLOT_DARK] = "dark", [PLOT_SYSTEM] = "system", NULL};
	struct plot_style *style = &wish->style;
	int64_t wide = 0, high = 0;
	int theme = PLOT_SYSTEM, scale = PLOT_AUTO;

	if (!parse_small(request, &style->small, error) ||
		!api_number(request, "width", LEAST_SIDE, MOST_WIDTH, &wide, error) ||
		!api_number(request, "height", LEAST_SIDE, MOST_HEIGHT, &high, error) ||
		!parse_zoom(request, &style->zoom, error) ||
		!api_choice(request, "theme", themes, &theme, error) ||
		!api_choice(request, "scale", plot_scale_names, &scale, error))
		return false;
	style->width = (unsigned)wide;
	style->height = (unsigned)high;
	style->theme = (enum plot_theme)theme;
	wish->scale = (enum plot_scale)scale;
	double width = style->width ? style->width : 960,
	       height = style->height ? style->height : 400;
	double zoom = style->zoom > 0 ? style->zoom : 1;
	return width * height * zoom * zoom <= MOST_PIXELS ||
	       error_set(error, ERROR_USAGE, "width, height and zoom: at most %d pixels",
		       MOST_PIXELS);
}

static bool draw(const struct plot *plot, void *context, struct arena *arena, struct buf *out,
	struct error *error)
{
	const struct wish *wish = context;
	struct plot scaled = *plot;

	(void)arena;
	scaled.scale = wish->scale;
	if (wish->format == FORMAT_PNG)
		return plot_png(&scaled, &wish->style, out, error);
	plot_svg(&scaled, &wish->style, out);
	return true;
}

static void begin(struct http_request *request, enum format format)
{
	struct wish *wish = arena_alloc(http_arena(request), sizeof *wish);
	struct plots_wish plots;
	struct error error;

	*wish = (struct wish){.format = format};
	if (!parse(request, wish, &error) ||
		!plots_parse(request, agent_now(api_of(request)->agent), &plots, &error)) {
		http_fail(request, 400, "%s", error.text);
		return;
	}
	plots.change = plots.change ? plots.change : http_id(request);
	plots.columns = (size_t)plot_style_of(&wish->style).width;
	plots.draw = draw;
	plots.context = wish;
	plots.type = types[format];
	plots.policy = policy;
	plots.stored = true;
	plots.small = wish->style.small && http_id(request);
	plots_answer(request, &plots);
}

static void get_svg(struct http_request *request)
{
	begin(request, FORMAT_SVG);
}

static void get_png(struct http_request *request)
{
	begin(request, FORMAT_PNG);
}

#define OF_CHANGE "small width height theme zoom scale since until cleaned"
#define OF_SERIES OF_CHANGE " test metric branch change limit"

/* Not guarded: other sites, such as a wiki, may embed pictures for users who may see them. */
const struct route picture_routes[] = {
	{"/change/*.svg", HTTP_READ, HTTP_SHOWN, 60000, OF_CHANGE, get_svg, false, ROLE_VIEWER},
	{"/change/*.png", HTTP_READ, HTTP_SHOWN, 60000, OF_CHANGE, get_png, false, ROLE_VIEWER},
	{"/plot.svg", HTTP_READ, HTTP_SHOWN, 60000, OF_SERIES, get_svg, false, ROLE_VIEWER},
	{"/plot.png", HTTP_READ, HTTP_SHOWN, 60000, OF_SERIES, get_png, false, ROLE_VIEWER},
	{0},
};
