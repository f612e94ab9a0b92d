/* Pictures of plots: axes, SVG text, and what must be seen in it. */
#include "tests/unit/unit.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/when.h"
#include "agent/report/plot_draw.h"
#include "agent/report/plot_ticks.h"
#include "agent/report/plot_view.h"
#include "agent/report/table.h"
#include "tests/unit/sanitized.h"

#ifdef SANITIZED
/* What fontconfig keeps until the end of the process. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:libfontconfig";
}
#endif

#define DAY INT64_C(86400000)
#define START INT64_C(1625184000000) /* 2021-07-02 */

enum { MOST = 50000 };

static int64_t times[MOST];
static double values[MOST];

/* Texts, separated by "|"; contexts behind "/". */
static const char *texts(const struct ticks *ticks)
{
	static char out[2000];

	*out = '\0';
	for (size_t i = 0; i < ticks->count; i++)
		snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s%s%s", i ? "|" : "",
			ticks->items[i].text, *ticks->items[i].context ? "/" : "",
			ticks->items[i].context);
	return out;
}

static void test_values_are_round(void **state)
{
	static const struct {
		double low, high;
		const char *unit;
		size_t most;
		const char *expected;
	} cases[] = {
		{0, 100, NULL, 5, "0|20|40|60|80|100"},
		{30.1, 41.9, "ms", 4, "35 ms|40 ms"},
		{0, 0.0421, "s", 5, "0 ms|10 ms|20 ms|30 ms|40 ms"},
		{570000, 760000, "ops/s", 4, "600k|650k|700k|750k"},
		{0, 3e9, "B", 4, "0 GiB|1 GiB|2 GiB"},
		{0, 3e9, "B/s", 4, "0 GiB/s|1 GiB/s|2 GiB/s"},
		{-5, 5, "%", 5, "−4%|−2%|0%|2%|4%"},
		{0, 9e5, "s", 4, "0 h|100 h|200 h"},
		{1e-9, 4e-9, NULL, 4, "1e-09|2e-09|3e-09|4e-09"},
		{1000, 1000.004, NULL, 3, "1000.000|1000.002|1000.004"},
		{0, 1.6e13, "", 4, "0|5T|10T|15T"},
	};
	struct ticks ticks;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		double size = fmax(fabs(cases[i].low), fabs(cases[i].high));
		struct measure measure = measure_of(size, cases[i].unit);

		ticks_linear(&ticks, cases[i].low, cases[i].high, cases[i].most, &measure, false);
		assert_string_equal(texts(&ticks), cases[i].expected);
	}
}

static void test_logarithmic_values(void **state)
{
	struct measure plain = measure_of(5, NULL);
	struct ticks ticks;

	(void)state;
	ticks_logarithmic(&ticks, 0.9, 55, 8, &plain);
	assert_string_equal(texts(&ticks), "1|2|5|10|20|50");
	ticks_logarithmic(&ticks, 1e-3, 1e9, 7, &plain);
	assert_string_equal(texts(&ticks), "0.001|0.1|10|1000|100000|1e+07|1e+09");
	ticks_logarithmic(&ticks, 10, 20, 5, &plain); /* less than a power */
	assert_string_equal(texts(&ticks), "10|12|14|16|18|20");
}

static int64_t date(const char *text)
{
	int64_t out;

	assert_true(when_parse_stamp(text, strlen(text), &out));
	return out;
}

static void test_times_are_a_calendars(void **state)
{
	static const struct {
		const char *from, *to;
		size_t most;
		const char *expected;
	} cases[] = {
		{"2021-07-02", "2021-07-30", 6, "Jul 5/2021|Jul 12|Jul 19|Jul 26"},
		{"2021-12-29", "2022-01-03", 6, "Dec 29/2021|Dec 30|Dec 31|Jan 1/2022|Jan 2|Jan 3"},
		{"2021-07-02T20:00:00Z", "2021-07-03T05:00:00Z", 4,
			"21:00/Jul 2, 2021 UTC|00:00/Jul 3|03:00"},
		{"2021-07-02T20:00:00Z", "2021-07-02T20:00:30Z", 3,
			"20:00:00/Jul 2, 2021 UTC|20:00:15|20:00:30"},
		{"2019-11-10", "2021-02-10", 6, "Jan/2020|Apr|Jul|Oct|Jan/2021"},
		{"2011-05-01", "2021-02-10", 6, "2012|2014|2016|2018|2020"},
		{"2021-07-02T20:17:00Z", "2021-07-02T20:17:00Z", 6, "20:17/Jul 2, 2021 UTC"},
		{"1969-12-30", "1970-01-02", 4, "Dec 30/1969|Dec 31|Jan 1/1970|Jan 2"},
	};
	struct ticks ticks;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ticks_time(&ticks, date(cases[i].from), date(cases[i].to), cases[i].most);
		assert_string_equal(texts(&ticks), cases[i].expected);
	}
}

/* Marks within the axis, ascending, and not too many, for any axis. */
static void test_axes_of_any_size(void **state)
{
	static const double ends[] = {-1e300, -1e6, -1, -1e-300, 0, 5e-324, 1e-9, 0.3, 1,
		1 + DBL_EPSILON, 60, 1e9, 1e300};
	static const char *const units[] = {NULL, "s", "bytes", "%", "x", "ns/op"};
	enum { COUNT = sizeof ends / sizeof *ends };
	struct ticks ticks;

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		for (size_t k = i + 1; k < COUNT; k++)
			for (size_t most = 0; most < 40; most += 3) {
				double size = fmax(fabs(ends[i]), fabs(ends[k]));
				struct measure measure = measure_of(size, units[most % 6]);

				ticks_linear(&ticks, ends[i], ends[k], most, &measure, false);
				assert_true(ticks.count <= TICKS_MOST && ticks.count <= most + 2);
				for (size_t t = 1; t < ticks.count; t++)
					assert_true(ticks.items[t].at > ticks.items[t - 1].at);
				if (ends[i] > 0) {
					ticks_logarithmic(&ticks, ends[i], ends[k], most, &measure);
					assert_true(ticks.count <= TICKS_MOST);
				}
			}
	for (int64_t range = 1; range < INT64_C(200000000000000); range = range * 3 + 1)
		for (size_t most = 1; most < 20; most += 6) {
			ticks_time(&ticks, START - range / 2, START + range / 2, most);
			assert_true(ticks.count >= 1 && ticks.count <= most + 3);
		}
}

/* All pictures drawn, each ended by a form feed, for a parser of XML at the end. */
static struct buf all;

static void assert_drawn(const struct buf *svg)
{
	assert_null(strstr(svg->data, "nan"));
	assert_null(strstr(svg->data, "inf"));
	assert_null(memchr(svg->data, '\f', svg->length));
	buf_append(&all, svg->data, svg->length);
	buf_char(&all, '\f');
}

static void test_all_are_xml(void **state)
{
	static const char command[] = "python3 -c 'import sys, xml.parsers.expat as x\n"
				      "all = sys.stdin.buffer.read().split(bytes([12]))[:-1]\n"
				      "for svg in all: x.ParserCreate(\"utf-8\").Parse(svg, True)\n"
				      "sys.exit(len(all) < 100)'";
	FILE *parser = popen(command, "w");

	(void)state;
	assert_non_null(parser);
	assert_int_equal(fwrite(all.data, 1, all.length, parser), all.length);
	assert_int_equal(pclose(parser), 0);
	buf_free(&all);
}

static struct buf drawn(const struct plot *plot, struct plot_style style)
{
	struct buf out = {0};

	plot_svg(plot, &style, &out);
	return out;
}

static size_t count_of(const struct buf *svg, const char *part)
{
	size_t count = 0;

	for (const char *at = svg->data; (at = strstr(at, part)); at += strlen(part))
		count++;
	return count;
}

/* `n` points a day apart, from `before` to `after` in the middle. */
static struct plot_line step_line(size_t n, double before, double after)
{
	for (size_t i = 0; i < n; i++) {
		times[i] = START + (int64_t)i * DAY;
		values[i] = (i < n / 2 ? before : after) * (1 + 0.01 * (double)(i % 3));
	}
	return (struct plot_line){.n = n, .times = times, .values = values};
}

static struct plot_change step_change(size_t n, double before, double after)
{
	return (struct plot_change){.id = 3,
		.time = times[n / 2],
		.from = times[n / 2 - 1],
		.to = times[n / 2 + 1],
		.before = before,
		.after = after,
		.size = 100 * (after / before - 1),
		.verdict = after > before ? 1 : -1,
		.triage = TRIAGE_OPEN,
		.commit = "5e08242812345678901234567890123456789012"};
}

static void test_change_is_told(void **state)
{
	struct plot_line line = step_line(40, 100, 125);
	struct plot_change change = step_change(40, 100, 125);
	struct plot plot = {.title = "db.read p99",
		.unit = "ms",
		.direction = -1,
		.lines = &line,
		.line_count = 1};
	struct buf svg;

	(void)state;
	line.changes = &change;
	line.change_count = 1;
	svg = drawn(&plot, (struct plot_style){0});
	assert_drawn(&svg);
	assert_non_null(strstr(svg.data, "<title>db.read p99</title>"));
	assert_non_null(strstr(svg.data, ">+25.0% worse<"));
	assert_non_null(strstr(svg.data, ">5e082428<"));
	assert_non_null(strstr(svg.data, ">lower is better<"));
	assert_non_null(strstr(svg.data, ">100 ms<"));
	assert_non_null(strstr(svg.data, ">125 ms<"));
	assert_non_null(strstr(svg.data, "+25.0% (worse) at 2021-07-22 00:00, 5e082428."));
	assert_null(strstr(svg.data, "stroke-dasharray"));
	assert_null(strstr(svg.data, "<style"));
	buf_free(&svg);

	change.source = PLOT_CANDIDATE;
	change.verdict = 0;
	svg = drawn(&plot, (struct plot_style){.theme = PLOT_SYSTEM});
	assert_drawn(&svg);
	assert_non_null(strstr(svg.data, ">5e082428 · not confirmed<"));
	assert_non_null(strstr(svg.data, "stroke-dasharray"));
	assert_non_null(strstr(svg.data, "prefers-color-scheme: dark"));
	assert_null(strstr(svg.data, "worse<"));
	buf_free(&svg);

	change.source = PLOT_KNOWN;
	change.triage = TRIAGE_EXPECTED;
	change.after = 80;
	change.size = -20;
	change.verdict = -1;
	svg = drawn(&plot, (struct plot_style){.theme = PLOT_DARK});
	assert_drawn(&svg);
	assert_non_null(strstr(svg.data, ">−20.0% better<"));
	assert_non_null(strstr(svg.data, ">5e082428 · expected<"));
	assert_non_null(strstr(svg.data, "#11171d"));
	buf_free(&svg);

	svg = drawn(&plot, (struct plot_style){.small = true});
	assert_drawn(&svg);
	assert_null(strstr(svg.data, "<text"));
	assert_true(svg.length < 6000);
	buf_free(&svg);
}

/* Changes that are of different kinds are told apart, and labels do not cover one another. */
static void test_many_changes(void **state)
{
	enum { N = 400, CHANGES = 80 };
	static struct plot_change changes[CHANGES];
	struct plot_line line = step_line(N, 10, 10);
	struct plot plot = {.title = "many", .lines = &line, .line_count = 1, .mark = 70};
	struct buf svg;

	(void)state;
	for (size_t i = 0; i < CHANGES; i++) {
		changes[i] = step_change(N, 10, i % 2 ? 11 : 12);
		changes[i].id = (int64_t)i + 1;
		changes[i].time = changes[i].from = changes[i].to = times[i * 5];
		changes[i].source = i % PLOT_SOURCES;
		changes[i].withdrawn = i % 7 == 0;
		changes[i].trend = i % 5 == 0;
		changes[i].ended = i % 3 == 0 ? times[i * 5 + 2] : 0;
	}
	line.changes = changes;
	line.change_count = CHANGES;
	svg = drawn(&plot, (struct plot_style){0});
	assert_drawn(&svg);
	assert_in_range(count_of(&svg, " worse<"), 5, 30);
	assert_non_null(strstr(svg.data, ", no longer found"));
	buf_free(&svg);
}

/* The one change in view is what the picture is about, not one before it. */
static void test_change_before_the_view(void **state)
{
	struct plot_line line = step_line(90, 100, 125);
	struct plot_change changes[] = {step_change(90, 80, 100), step_change(90, 100, 125)};
	struct plot plot = {.lines = &line, .line_count = 1, .from = times[20], .to = times[89]};
	struct buf svg;

	(void)state;
	changes[0].time = changes[0].from = changes[0].to = times[10];
	line.changes = changes;
	line.change_count = 2;
	svg = drawn(&plot, (struct plot_style){0});
	assert_drawn(&svg);
	assert_int_equal(count_of(&svg, "stroke=\"#b3261e\" stroke-width=\"2\""), 1);
	assert_int_equal(count_of(&svg, " worse<"), 1);
	buf_free(&svg);
}

/* Bytes of any kind in all that comes from outside. */
static void test_hostile_names(void **state)
{
	static const char *const names[] = {"<script>alert(1)</script>", "\"'&<>]]>",
		"\xe2\x80\xae abc", "line\nbreak\t\x01\x7f", "\xff\xfe\xc0\x80 broken",
		"\xef\xbf\xbe\xef\xbf\xbf", "שלום", "", "\xed\xa0\x80", "-->", "<![CDATA["};
	char *long_name = memory_new(10001, 1);
	struct plot_line lines[8];
	struct plot_change change;
	struct plot_span span = {PLOT_OUTAGE, START + DAY, START + 30 * DAY, NULL};
	struct buf svg;

	(void)state;
	memset(long_name, 'x', 10000);
	long_name[10000] = '\0';
	for (size_t i = 0; i <= sizeof names / sizeof *names; i++) {
		const char *name = i < sizeof names / sizeof *names ? names[i] : long_name;

		lines[0] = step_line(40, 1, 2);
		change = step_change(40, 1, 2);
		change.commit = span.text = lines[0].name = lines[0].branch = name;
		lines[0].changes = &change;
		lines[0].change_count = 1;
		for (size_t l = 1; l < 8; l++)
			lines[l] = lines[0];
		for (size_t count = 1; count <= 8; count += 7) {
			struct plot plot = {.title = name,
				.unit = name,
				.lines = lines,
				.line_count = count,
				.spans = &span,
				.span_count = 1,
				.mark = 3};

			svg = drawn(&plot, (struct plot_style){.width = 500, .theme = PLOT_SYSTEM});
			assert_drawn(&svg);
			assert_null(strstr(svg.data, "<script"));
			assert_null(strstr(svg.data, "\xe2\x80\xae"));
			assert_true(svg.length < 60000);
			buf_free(&svg);
		}
	}
	free(long_name);
}

/* The path with the points: the first in the clipped part. */
static const char *points_path(const struct buf *svg)
{
	const char *clipped = strstr(svg->data + 10, "<svg ");

	assert_non_null(clipped);
	return strstr(clipped, "<path d=\"");
}

static void test_gaps(void **state)
{
	struct plot_line line = step_line(40, 5, 5);
	struct plot_span span = {PLOT_OUTAGE, START + 29 * DAY + 1, START + 29 * DAY + 2, "down"};
	struct plot plot = {.lines = &line, .line_count = 1};
	struct buf svg;

	(void)state;
	svg = drawn(&plot, (struct plot_style){0});
	size_t whole = count_of(&svg, "stroke=\"#0f4c81\" stroke-opacity");
	buf_free(&svg);
	values[10] = values[12] = (double)NAN; /* 11 is alone */
	values[20] = HUGE_VAL;
	plot.spans = &span;
	plot.span_count = 1;
	svg = drawn(&plot, (struct plot_style){0});
	assert_drawn(&svg);
	assert_int_equal(whole, 1);
	assert_int_equal(count_of(&svg, "stroke=\"#0f4c81\" stroke-opacity"), 4);
	buf_free(&svg);
	svg = drawn(&plot, (struct plot_style){.small = true});
	assert_int_equal(count_of(&svg, "h0"), 1); /* the point that is alone */
	buf_free(&svg);
}

static void test_odd_series(void **state)
{
	static const double odd[][3] = {{5, 5, 5}, {0, 0, 0}, {-3, -3, -3}, {1e308, -1e308, 0},
		{5e-324, 1e-323, 0}, {1, 1 + DBL_EPSILON, 1}, {1e300, 1e300, 1e300},
		{-1e-9, 0, 1e-9}};
	struct buf svg;

	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
		for (enum plot_scale scale = 0; scale < PLOT_SCALES; scale++)
			for (size_t n = 0; n <= 3; n++) {
				struct plot_line line = step_line(3, 1, 1);
				struct plot plot = {
					.lines = &line, .line_count = 1, .scale = scale};

				line.n = n;
				memcpy(values, odd[i], sizeof odd[i]);
				if (n == 2)
					times[1] = times[0];
				svg = drawn(
					&plot, (struct plot_style){.width = 300, .height = 200});
				assert_drawn(&svg);
				assert_int_equal(strstr(svg.data, "no points") != NULL, n == 0);
				buf_free(&svg);
			}
	for (size_t i = 0; i < 3; i++)
		values[i] = (double)NAN;
	svg = drawn(
		&(struct plot){
			.lines = &(struct plot_line){.n = 3, .times = times, .values = values},
			.line_count = 1},
		(struct plot_style){0});
	assert_drawn(&svg);
	buf_free(&svg);
	svg = drawn(&(struct plot){.title = "nothing"}, (struct plot_style){0});
	assert_drawn(&svg);
	buf_free(&svg);
}

static void test_logarithmic(void **state)
{
	struct plot_line line = step_line(40, 1, 1000);
	struct plot plot = {.lines = &line, .line_count = 1, .scale = PLOT_LOGARITHMIC};
	struct buf svg;

	(void)state;
	values[3] = 0;
	values[5] = -7;
	svg = drawn(&plot, (struct plot_style){0});
	assert_drawn(&svg);
	assert_non_null(strstr(svg.data, ">logarithmic<"));
	assert_non_null(strstr(svg.data, ">100<"));
	assert_int_equal(count_of(&svg, "stroke=\"#0f4c81\" stroke-opacity"), 2); /* 4 is alone */
	buf_free(&svg);
	for (size_t i = 0; i < 40; i++)
		values[i] = -1;
	svg = drawn(&plot, (struct plot_style){0}); /* nothing to take a logarithm of */
	assert_drawn(&svg);
	assert_null(strstr(svg.data, "logarithmic"));
	buf_free(&svg);
}

/* The extremes of y in a path. */
static void extremes(const char *path, double *top, double *bottom)
{
	*top = HUGE_VAL;
	*bottom = -HUGE_VAL;
	for (path += strlen("<path d=\""); *path == 'M' || *path == 'L';) {
		char *end;
		double y;

		strtod(path + 1, &end);
		y = strtod(end, &end);
		*top = fmin(*top, y);
		*bottom = fmax(*bottom, y);
		path = end;
	}
}

/* Fifty thousand points: few bytes, and each spike. */
static void test_spikes_stay(void **state)
{
	struct plot_line line = step_line(MOST, 100, 100);
	struct plot plot = {.lines = &line, .line_count = 1};
	double top = HUGE_VAL, bottom = -HUGE_VAL;
	struct arena *arena = arena_new();
	struct buf svg;

	(void)state;
	for (size_t i = 0; i < MOST; i += 5)
		values[i] = 90 + (double)(i % 21);
	for (size_t spike = 1; spike < MOST; spike += 7919) {
		values[spike] = 130;
		values[spike + 3] = 70;
		svg = drawn(&plot, (struct plot_style){0});
		assert_true(svg.length < 200000);
		top = HUGE_VAL;
		bottom = -HUGE_VAL;
		for (const char *path = points_path(&svg); path;
			path = strstr(path + 1, "<path d=\"M")) {
			double high, low;

			if (!strstr(path, "stroke-opacity=\"0.75\""))
				break;
			extremes(path, &high, &low);
			top = fmin(top, high);
			bottom = fmax(bottom, low);
		}
		struct view view = view_of(&plot, arena);
		assert_false(view.beyond);
		double height = (bottom - top) / (view_up(&view, 130) - view_up(&view, 70));
		assert_in_range(height, 250, 400); /* that of the body */
		buf_free(&svg);
		values[spike] = values[spike + 3] = 100;
	}
	values[17] = 1e6; /* would flatten all others */
	svg = drawn(&plot, (struct plot_style){0});
	assert_non_null(strstr(svg.data, ">1.00M<"));
	buf_free(&svg);
	arena_free(arena);
}

static void test_scales(void **state)
{
	struct arena *arena = arena_new();
	struct plot_line line = step_line(40, 100, 125);
	struct plot_change change = step_change(40, 100, 125);
	struct plot plot = {.lines = &line, .line_count = 1};
	struct view view;

	(void)state;
	line.changes = &change;
	line.change_count = 1;
	view = view_of(&plot, arena);
	assert_true(view.low > 90 && view.high < 135);
	plot.scale = PLOT_FROM_ZERO;
	view = view_of(&plot, arena);
	assert_true(view.low == 0);
	plot.scale = PLOT_RELATIVE;
	view = view_of(&plot, arena);
	assert_true(view.relative && fabs(view_shown(&view, 0, 125) - 25) < 1e-9);
	change.before = 0; /* nothing to be relative to */
	view = view_of(&plot, arena);
	assert_false(view.relative);
	assert_true(view_reach(&view, &line, 0).from == (double)START);
	assert_true(view_reach(&view, &line, 0).to == (double)times[39]);
	change.level_from = times[12];
	change.level_to = times[30];
	assert_true(view_reach(&view, &line, 0).from == (double)times[12]);
	assert_true(view_reach(&view, &line, 0).to == (double)times[30]);
	plot.scale = PLOT_AUTO;
	plot.from = START + 5 * DAY;
	plot.to = START + 10 * DAY;
	view = view_of(&plot, arena);
	assert_int_equal(view_points(&view, &line).from, 4);
	assert_int_equal(view_points(&view, &line).to, 12);
	assert_false(view_sees(&view, &change));
	arena_free(arena);
}

static struct buf printed(const struct plot *plot, struct plot_terminal terminal)
{
	struct buf out = {0};

	plot_text(plot, &terminal, &out);
	return out;
}

/* No line is wider than the terminal, but for those in words. */
static void assert_fits(const struct buf *text, unsigned columns)
{
	char *copy = memory_strdup(text->data), *rest = copy;

	for (char *line = strsep(&rest, "\n"); rest; line = strsep(&rest, "\n"))
		assert_true(
			text_width(line) < columns || strstr(line, "→") || strstr(line, " .. "));
	free(copy);
}

static void test_text(void **state)
{
	struct plot_line line = step_line(40, 100, 125);
	struct plot_change change = step_change(40, 100, 125);
	struct plot_span span = {PLOT_OUTAGE, START + DAY, START + 3 * DAY, "\x1b[31mdown"};
	struct plot plot = {.title = "db.read \x1b]0;x\x07 p99",
		.unit = "ms",
		.direction = -1,
		.lines = &line,
		.line_count = 1,
		.spans = &span,
		.span_count = 1};
	struct buf text;

	(void)state;
	line.changes = &change;
	line.change_count = 1;
	for (unsigned columns = 0; columns < 1000; columns += 37) {
		text = printed(&plot, (struct plot_terminal){.columns = columns});
		assert_fits(&text, columns == 0 ? 80 : columns < 30 ? 30 : columns);
		assert_null(strchr(text.data, '\x1b'));
		assert_non_null(strstr(text.data, "▲+25.0%"));
		buf_free(&text);
	}
	text = printed(&plot, (struct plot_terminal){.columns = 80, .rows = 12});
	assert_non_null(strstr(text.data, "db.read ?]0;x? p99  lower is better\n"));
	assert_non_null(strstr(
		text.data, "▲ +25.0% worse  2021-07-22 00:00  100 ms → 125 ms  5e0824281234\n"));
	assert_non_null(strstr(text.data, "120 ms┤"));
	assert_non_null(strstr(text.data, "┬"));
	assert_non_null(strstr(text.data, "× 2021-07-03 00:00 .. 2021-07-05 00:00  ?[31mdown\n"));
	buf_free(&text);
	text = printed(&plot, (struct plot_terminal){.color = true});
	assert_non_null(strstr(text.data, "\x1b[31m▲+25.0%\x1b[0m"));
	assert_null(strstr(text.data, "\x1b]"));
	buf_free(&text);
	line.n = line.change_count = 0;
	text = printed(&plot, (struct plot_terminal){0});
	assert_non_null(strstr(text.data, "no points\n"));
	buf_free(&text);
}

/* The size of the change that the plot is about has its place before those of others. */
static void test_text_of_near_changes(void **state)
{
	struct plot_line line = step_line(40, 100, 125);
	struct plot_change changes[] = {step_change(40, 100, 110), step_change(40, 100, 125)};
	struct plot plot = {.lines = &line, .line_count = 1, .mark = 3};
	struct buf text;

	(void)state;
	changes[0].id = 1;
	changes[0].time = times[18];
	line.changes = changes;
	line.change_count = 2;
	text = printed(&plot, (struct plot_terminal){.columns = 60});
	assert_non_null(strstr(text.data, "▲+25.0%\n"));
	assert_null(strstr(text.data, "▲+10.0%\n"));
	buf_free(&text);
}

/* A mark of the axis wider than its half of the terminal is cut. */
static void test_text_of_wide_marks(void **state)
{
	struct plot_line line = step_line(40, 0, 0);
	struct plot plot = {.title = "wide", .unit = "%", .lines = &line, .line_count = 1};
	struct buf text;

	(void)state;
	for (int i = 0; i < 40; i++)
		values[i] = -1234567.12345 + 0.00001 * (i % 5);
	text = printed(&plot, (struct plot_terminal){.columns = 200});
	assert_null(strstr(text.data, "…"));
	buf_free(&text);
	for (unsigned columns = 30; columns < 50; columns++) {
		text = printed(&plot, (struct plot_terminal){.columns = columns});
		assert_true(text.length < 20000);
		assert_fits(&text, columns);
		if (columns == 30)
			assert_non_null(strstr(text.data, "…┤"));
		buf_free(&text);
	}
}

/* The head of the file; tests/e2e/test_plot.py looks at pixels. */
static void test_png(void **state)
{
	struct plot_line line = step_line(40, 100, 125);
	struct plot plot = {.title = "png", .lines = &line, .line_count = 1};
	struct buf out = {0};
	struct error error;

	(void)state;
	if (!plot_png(&plot, &(struct plot_style){.width = 600, .height = 400}, &out, &error)) {
		assert_non_null(strstr(error.text, "apt install"));
		skip(error.text);
	}
	assert_memory_equal(out.data, "\x89PNG\r\n\x1a\n", 8);
	assert_memory_equal(out.data + 16, "\0\0\x02\x58\0\0\x01\x90", 8);
	buf_clear(&out);
	assert_true(plot_png(&plot, &(struct plot_style){.width = 60000}, &out, &error));
	assert_memory_equal(out.data + 16, "\0\0\x0f\xa0", 4); /* PLOT_MOST_PIXELS */
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_round),
		cmocka_unit_test(test_logarithmic_values),
		cmocka_unit_test(test_times_are_a_calendars),
		cmocka_unit_test(test_axes_of_any_size),
		cmocka_unit_test(test_change_is_told),
		cmocka_unit_test(test_many_changes),
		cmocka_unit_test(test_change_before_the_view),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_odd_series),
		cmocka_unit_test(test_logarithmic),
		cmocka_unit_test(test_spikes_stay),
		cmocka_unit_test(test_all_are_xml),
		cmocka_unit_test(test_scales),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_text_of_near_changes),
		cmocka_unit_test(test_text_of_wide_marks),
		cmocka_unit_test(test_png),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
