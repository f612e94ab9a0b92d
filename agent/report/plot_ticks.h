/*
 * The marks of an axis and their labels: round numbers in a unit that keeps them short, and times
 * where a calendar has its lines.
 */
#ifndef AGENT_REPORT_PLOT_TICKS_H
#define AGENT_REPORT_PLOT_TICKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEASURE_TEXT = 24, TICK_TEXT = 32, TICKS_MOST = 32 };

/* How values are shown: divided by the factor. */
struct measure {
	double factor;
	char mark[MEASURE_TEXT]; /* follows each number: " ms", "%", "k"; or "" */
	char rest[MEASURE_TEXT]; /* the rest of the unit, without a number: "ops/s"; or "" */
};

/* The measure for values of up to that size in a unit (NULL: none). Knows times, bytes and
 * percentages, also per something ("B/s"); other units get "k", "M" ... */
struct measure measure_of(double size, const char *unit);

struct tick {
	double at;
	char text[TICK_TEXT];
	char context[TICK_TEXT]; /* of times: the day or the year, where it is new; or "" */
};

struct ticks {
	struct tick items[TICKS_MOST];
	size_t count;
};

/* About `most` marks from `low` to `high`, which are finite and differ. `sign`: with a plus, as
 * of differences. */
void ticks_linear(struct ticks *ticks, double low, double high, size_t most,
	const struct measure *measure, bool sign);

/* The same on a logarithmic axis; 0 < low < high. */
void ticks_logarithmic(
	struct ticks *ticks, double low, double high, size_t most, const struct measure *measure);

/* In UTC; from <= to, ms. The first context names the zone if there are hours. */
void ticks_time(struct ticks *ticks, int64_t from, int64_t to, size_t most);

/* A value with three digits, or as many as distinguish it from another one: "31.7 ms". */
void measure_print(const struct measure *measure, double value, char out[TICK_TEXT]);

#endif
