/*
 * Steps are 1, 2 or 5 times a power of ten; of times those of clocks and calendars. A unit is
 * chosen for the whole axis by its largest value, so that numbers of one axis compare at a glance.
 */
#include "agent/report/plot_ticks.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/base/utf8.h"
#include "agent/base/when.h"

/* The members of a family of units, ascending; `size` in the first one's terms. A value is shown in
 * the largest that it has at least `least` of. */
struct unit {
	const char *name;
	double size, least;
};

static const struct unit durations[] = {{"ns", 1, 0}, {"µs", 1e3, 1}, {"ms", 1e6, 1}, {"s", 1e9, 1},
	{"min", 60e9, 10}, {"h", 3600e9, 3}, {0}};
static const struct unit bytes[] = {{"B", 1, 0}, {"KiB", 1024, 1}, {"MiB", 1048576.0, 1},
	{"GiB", 1073741824.0, 1}, {"TiB", 1099511627776.0, 1}, {0}};
static const struct unit decimal_bytes[] = {
	{"B", 1, 0}, {"kB", 1e3, 1}, {"MB", 1e6, 1}, {"GB", 1e9, 1}, {"TB", 1e12, 1}, {0}};
static const struct unit numbers[] = {
	{"", 1, 0}, {"k", 1e3, 10}, {"M", 1e6, 1}, {"G", 1e9, 1}, {"T", 1e12, 1}, {0}};

static const struct unit *const families[] = {durations, bytes, decimal_bytes};

static const struct {
	const char *alias, *name;
} aliases[] = {{"nanoseconds", "ns"}, {"us", "µs"}, {"microseconds", "µs"}, {"msec", "ms"},
	{"milliseconds", "ms"}, {"sec", "s"}, {"secs", "s"}, {"second", "s"}, {"seconds", "s"},
	{"minutes", "min"}, {"hours", "h"}, {"byte", "B"}, {"bytes", "B"}, {"KB", "kB"}};

/* Copies a piece of a unit, without control characters and markup. */
static void copy_unit(char out[MEASURE_TEXT], const char *unit, size_t length)
{
	char text[MEASURE_TEXT];

	snprintf(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : sizeof text - 1),
		unit);
	text[utf8_cut(text, MEASURE_TEXT - 4)] = '\0';
	utf8_blank(text, '?');
	memcpy(out, text, sizeof text);
}

static bool is_name(const char *name, const char *text, size_t length)
{
	return strlen(name) == length && strncmp(name, text, length) == 0;
}

/* *size: the unit's, in terms of the first of its family. */
static const struct unit *family_of(const char *text, size_t length, double *size)
{
	for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
		if (is_name(aliases[i].alias, text, length))
			return family_of(aliases[i].name, strlen(aliases[i].name), size);
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		for (const struct unit *unit = families[i]; unit->name; unit++)
			if (is_name(unit->name, text, length)) {
				*size = unit->size;
				return families[i];
			}
	return NULL;
}

static const struct unit *best_of(const struct unit *family, double size)
{
	const struct unit *best = family;

	for (; family->name; family++)
		if (size >= family->size * family->least)
			best = family;
	return best;
}

/* A unit of a family, with its denominator: "ms/op". */
static struct measure measure_known(
	const struct unit *family, double unit_size, double size, const char *per)
{
	const struct unit *best = best_of(family, size * unit_size);
	struct measure measure = {.factor = best->size / unit_size};
	char rest[MEASURE_TEXT];

	copy_unit(rest, per, strlen(per));
	if (strlen(rest) <= 3)
		snprintf(measure.mark, sizeof measure.mark, " %.5s%.3s", best->name, rest);
	else {
		snprintf(measure.mark, sizeof measure.mark, " %.5s", best->name);
		snprintf(measure.rest, sizeof measure.rest, "%.5s%.*s", best->name,
			(int)utf8_cut(rest, 16), rest);
	}
	return measure;
}

struct measure measure_of(double size, const char *unit)
{
	const char *text = unit ? unit : "";
	size_t length = strcspn(text, "/");
	double unit_size = 1;
	const struct unit *family = family_of(text, length, &unit_size);

	if (family)
		return measure_known(family, unit_size, size, text + length);
	struct measure measure = {.factor = 1};
	if (strcmp(text, "%") == 0 || strcasecmp(text, "percent") == 0) {
		strcpy(measure.mark, "%");
		return measure;
	}
	const struct unit *best = best_of(numbers, size);
	measure.factor = best->size;
	strcpy(measure.mark, best->name);
	copy_unit(measure.rest, text, strlen(text));
	return measure;
}

/* Numbers that need more than this are written with an exponent. */
enum { MOST_DECIMALS = 5 };

static void print_number(double value, int decimals, bool sign, char out[TICK_TEXT])
{
	bool small = decimals > MOST_DECIMALS || fabs(value) >= 1e7;

	if (value == 0)
		snprintf(out, TICK_TEXT, "0");
	else if (small)
		snprintf(out, TICK_TEXT, sign ? "%+.4g" : "%.4g", value);
	else
		snprintf(out, TICK_TEXT, sign ? "%+.*f" : "%.*f", decimals, value);
	if (*out == '-') { /* a minus as wide as a plus */
		char text[TICK_TEXT];

		snprintf(text, sizeof text, "−%.26s", out + 1);
		memcpy(out, text, sizeof text);
	}
}

static void append(char out[TICK_TEXT], const char *text)
{
	size_t length = strlen(out);

	snprintf(out + length, TICK_TEXT - length, "%s", text);
}

/* A zero has no thousands. */
static void append_mark(char out[TICK_TEXT], const struct measure *measure, double value)
{
	if (value != 0 || *measure->mark == ' ' || *measure->mark == '%')
		append(out, measure->mark);
}

/* The smallest round step of which at most `most` fit; its power of ten gives the decimals. */
static double round_step(double range, size_t most, int *decimals)
{
	static const double steps[] = {1, 2, 5, 10};
	double wanted = range / (double)(most > 1 ? most : 1);
	double power = floor(log10(wanted));
	double unit = pow(10, power);
	size_t i = 0;

	while (i < 3 && steps[i] * unit < wanted)
		i++;
	*decimals = (int)-(power + (i == 3));
	*decimals = *decimals < 0 ? 0 : *decimals;
	return steps[i] * unit;
}

void ticks_linear(struct ticks *ticks, double low, double high, size_t most,
	const struct measure *measure, bool sign)
{
	int decimals;
	double from = low / measure->factor, to = high / measure->factor;
	double step;

	ticks->count = 0;
	most = most < TICKS_MOST - 1 ? most : TICKS_MOST - 1;
	if (!(to - from > TICKS_MOST * DBL_MIN) || !isfinite(to - from) || most == 0)
		return;
	step = round_step(to - from, most, &decimals);
	double first = ceil(from / step - 1e-9);
	for (double i = first; i * step <= to + step * 1e-9 && ticks->count < TICKS_MOST; i++) {
		struct tick *tick = &ticks->items[ticks->count++];

		*tick = (struct tick){.at = i * step * measure->factor};
		print_number(i * step, decimals, sign, tick->text);
		append_mark(tick->text, measure, i);
		if (i + 1 == i) /* steps below the precision of the numbers */
			break;
	}
}

void ticks_logarithmic(
	struct ticks *ticks, double low, double high, size_t most, const struct measure *measure)
{
	static const double fine[] = {1, 2, 5};
	double from = log10(low / measure->factor), to = log10(high / measure->factor);
	size_t each = to - from <= 2 ? 3 : 1;
	double every = 1;

	ticks->count = 0;
	most = most < TICKS_MOST ? most : TICKS_MOST;
	if (!isfinite(to - from))
		return;
	if (to - from < 1) {
		ticks_linear(ticks, low, high, most, measure, false);
		return;
	}
	while (most > 0 && (to - from) * (double)each / every > (double)most)
		every++;
	for (double power = floor(from); power <= to; power += every)
		for (size_t i = 0; i < each && ticks->count < TICKS_MOST; i++) {
			double value = fine[i] * pow(10, power);
			if (log10(value) < from - 1e-9 || log10(value) > to + 1e-9)
				continue;
			struct tick *tick = &ticks->items[ticks->count++];
			*tick = (struct tick){.at = value * measure->factor};
			snprintf(tick->text, sizeof tick->text, "%g", value);
			append(tick->text, measure->mark);
		}
}

void measure_print(const struct measure *measure, double value, char out[TICK_TEXT])
{
	double shown = value / measure->factor;
	int digits = shown == 0 ? 1 : (int)floor(log10(fabs(shown))) + 1;

	print_number(shown, digits < 3 ? 3 - digits : 0, false, out);
	append_mark(out, measure, shown);
}

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

/* Clocks and days, ms, weeks among them; and months. */
static const int64_t clock_steps[] = {1, 10, 100, SECOND, 5 * SECOND, 15 * SECOND, 30 * SECOND,
	MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY,
	2 * DAY, 7 * DAY, 14 * DAY};
static const int64_t month_steps[] = {1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 12000};

struct time_step {
	int64_t length; /* ms; of months: 0 */
	int64_t months;
};

static struct time_step time_step_for(int64_t range, size_t most)
{
	enum { CLOCKS = sizeof clock_steps / sizeof *clock_steps };
	enum { LAST = sizeof month_steps / sizeof *month_steps - 1 };
	size_t i = 0;

	for (; i < CLOCKS; i++)
		if (range / clock_steps[i] <= (int64_t)most)
			return (struct time_step){clock_steps[i], 0};
	for (i = 0; i < LAST && range / (month_steps[i] * 30 * DAY) > (int64_t)most;)
		i++;
	return (struct time_step){0, month_steps[i]};
}

static int64_t round_up(int64_t value, int64_t step)
{
	int64_t rest = value % step;

	return rest == 0 ? value : value + (rest < 0 ? -rest : step - rest);
}

static int64_t month_number(int64_t ms)
{
	struct date date = when_to_date(ms);

	return date.year * 12 + date.month - 1;
}

static int64_t month_start(int64_t number)
{
	int64_t year = (number - (((number % 12) + 12) % 12)) / 12, out = 0;

	(void)when_from_date((struct date){year, (int)(number - year * 12) + 1, 1}, &out);
	return out;
}

/* The first mark that is not before `ms`. Weeks begin on Mondays; 1970 began on a Thursday. */
static int64_t first_mark(struct time_step step, int64_t ms)
{
	int64_t shift = step.length >= 7 * DAY ? 4 * DAY : 0, number = month_number(ms);

	if (step.months == 0)
		return round_up(ms - shift, step.length) + shift;
	return month_start(round_up(month_start(number) < ms ? number + 1 : number, step.months));
}

static const char months[12][4] = {
	"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* "14:05", "14:05:30", "14:05:30.250" */
static void print_clock(int64_t ms, int64_t step, char out[TICK_TEXT])
{
	int64_t rest = ((ms % DAY) + DAY) % DAY;
	int hour = (int)(rest / HOUR), minute = (int)(rest / MINUTE % 60);
	int second = (int)(rest / SECOND % 60);

	if (step % MINUTE == 0)
		snprintf(out, TICK_TEXT, "%02d:%02d", hour, minute);
	else if (step % SECOND == 0)
		snprintf(out, TICK_TEXT, "%02d:%02d:%02d", hour, minute, second);
	else
		snprintf(out, TICK_TEXT, "%02d:%02d:%02d.%03d", hour, minute, second,
			(int)(rest % SECOND));
}

/* The text of a mark, and its larger unit, which is left out if the mark `before` has it, too. */
static void print_time(struct time_step step, int64_t ms, const int64_t *before, struct tick *tick)
{
	struct date date = when_to_date(ms), last = when_to_date(before ? *before : ms);
	const char *month = months[date.month - 1];
	bool clock = step.months == 0 && step.length < DAY;

	if (clock)
		print_clock(ms, step.length, tick->text);
	else if (step.months % 12 == 0 && step.months > 0)
		snprintf(tick->text, TICK_TEXT, "%lld", (long long)date.year);
	else if (step.months > 0)
		snprintf(tick->text, TICK_TEXT, "%s", month);
	else
		snprintf(tick->text, TICK_TEXT, "%s %d", month, date.day);
	if (before && last.year == date.year &&
		(!clock || (last.month == date.month && last.day == date.day)))
		return;
	if (clock && before)
		snprintf(tick->context, TICK_TEXT, "%s %d", month, date.day);
	else if (clock)
		snprintf(tick->context, TICK_TEXT, "%s %d, %lld UTC", month, date.day,
			(long long)date.year);
	else if (step.months == 0 || step.months % 12 != 0)
		snprintf(tick->context, TICK_TEXT, "%lld", (long long)date.year);
}

static void single_time(struct ticks *ticks, int64_t ms)
{
	ticks->count = 1;
	ticks->items[0] = (struct tick){.at = (double)ms};
	print_time((struct time_step){MINUTE, 0}, ms, NULL, &ticks->items[0]);
}

void ticks_time(struct ticks *ticks, int64_t from, int64_t to, size_t most)
{
	int64_t before = 0;

	ticks->count = 0;
	most = most < TICKS_MOST ? most : TICKS_MOST;
	if (most == 0)
		return;
	if (from >= to) {
		single_time(ticks, from);
		return;
	}
	struct time_step step = time_step_for(to - from, most);
	for (int64_t at = first_mark(step, from); at <= to && ticks->count < TICKS_MOST;) {
		struct tick *tick = &ticks->items[ticks->count];

		*tick = (struct tick){.at = (double)at};
		print_time(step, at, ticks->count++ > 0 ? &before : NULL, tick);
		before = at;
		at = step.months > 0 ? month_start(month_number(at) + step.months)
				     : at + step.length;
	}
	if (ticks->count == 0)
		single_time(ticks, from + (to - from) / 2);
}
