/*
 * Both readers fill the same columns, which are passed to `take` and reused for the next series.
 * Only points with a value are kept: of a benchmark that runs nightly that is one in 1,440 minutes.
 */
#include "sources/graphite/answer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/number.h"
#include "agent/base/scan.h"

enum { NAME_SHOWN = 200 };

static const int64_t latest = 100000000000; /* s: the year 5138 */

struct reader {
	struct scan scan;
	graphite_take *take;
	void *context;
	struct error *error;
	struct buf target;
	int64_t *times;
	double *values;
	size_t n, capacity, malformed;
	size_t most; /* points */
};

static bool keep(struct reader *reader, int64_t seconds, double value)
{
	size_t capacity = reader->capacity;
	if (reader->n >= reader->most)
		return error_set(reader->error, ERROR_DATA,
			"\"%.*s\" has more points than max_points, %zu: shorten range or "
			"--since, use summarize(), or raise max_points",
			NAME_SHOWN, reader->target.data ? reader->target.data : "", reader->most);
	reader->times = memory_grow(reader->times, &capacity, reader->n + 1, sizeof *reader->times);
	reader->values = memory_grow(
		reader->values, &reader->capacity, reader->n + 1, sizeof *reader->values);
	reader->times[reader->n] = seconds * 1000;
	reader->values[reader->n++] = value;
	return true;
}

static void leave_out(struct reader *reader, const char *why, const char *from, const char *to)
{
	const struct graphite_series series = {
		.unusable = why, .text = from, .length = (size_t)(to - from)};
	reader->take(reader->context, &series);
}

static void finish_series(struct reader *reader, int64_t step)
{
	const struct graphite_series series = {
		.target = reader->target.data,
		.step = step,
		.times = reader->times,
		.values = reader->values,
		.n = reader->n,
		.malformed = reader->malformed,
	};
	reader->take(reader->context, &series);
}

static void reset(struct reader *reader)
{
	buf_clear(&reader->target);
	reader->n = reader->malformed = 0;
}

/* Reads the decimal integer that ends at *end and is preceded by a comma, to which *end then
 * points. */
static bool number_before(const char *begin, const char **end, int64_t *out)
{
	const char *at = *end;
	int64_t value = 0, unit = 1;
	while (at > begin && at[-1] >= '0' && at[-1] <= '9' && unit <= latest) {
		value += (*--at - '0') * unit;
		unit *= 10;
	}
	bool negative = at > begin && at[-1] == '-';
	bool some = at < *end;
	at -= negative;
	if (!some || at == begin || at[-1] != ',')
		return false;
	*out = negative ? -value : value;
	*end = at - 1;
	return true;
}

struct header {
	size_t target; /* its length in bytes */
	int64_t start, end, step;
};

/* Whether TARGET,START,END,STEP ends at `bar`; parses it. */
static bool read_header(const char *begin, const char *bar, struct header *header)
{
	const char *at = bar;
	if (!number_before(begin, &at, &header->step) || !number_before(begin, &at, &header->end) ||
		!number_before(begin, &at, &header->start))
		return false;
	header->target = (size_t)(at - begin);
	return header->step > 0 && header->start >= 0 && header->start <= latest &&
	       header->end >= header->start && header->end <= latest;
}

/* A target may contain bars and line ends itself, so the first bar after a valid header counts. */
static bool find_header(struct reader *reader, struct header *header)
{
	struct scan *scan = &reader->scan;
	const char *bar = scan->at;
	while ((bar = memchr(bar, '|', (size_t)(scan->end - bar)))) {
		if (read_header(scan->at, bar, header))
			break;
		bar++;
	}
	if (!bar)
		return scan_fail(&reader->scan, "a line without target,start,end,step");
	buf_append(&reader->target, scan->at, header->target);
	scan->at = bar + 1;
	return true;
}

/* Reads a value, NaN if it is missing or malformed, up to the comma or line end. */
static double raw_value(struct reader *reader)
{
	struct scan *scan = &reader->scan;
	const char *from = scan->at;
	double value;
	if (scan->end - from > 4 && memcmp(from, "None", 4) == 0 &&
		(from[4] == ',' || from[4] == '\n')) {
		scan->at = from + 4;
		return (double)NAN;
	}
	const char *after = number_scan(from, scan->end, &value);
	if (after && after < scan->end && (*after == ',' || *after == '\n')) {
		scan->at = after;
		return value;
	}
	while (scan->at < scan->end && *scan->at != ',' && *scan->at != '\n')
		scan->at++;
	size_t length = (size_t)(scan->at - from);
	if (number_parse(from, length, &value))
		return value;
	reader->malformed += !(length > 0 && number_missing(from, length));
	return (double)NAN;
}

/* Functions do not adjust the end when they add values beyond it, as sumSeries() does for two
 * resolutions and constantLine() always. So only start and step are used. */
static bool raw_line(struct reader *reader)
{
	struct scan *scan = &reader->scan;
	const char *from = scan->at;
	struct header header;
	reset(reader);
	if (!find_header(reader, &header))
		return false;
	int64_t expected = (header.end - header.start + header.step - 1) / header.step, count = 0;
	int64_t time = header.start;
	bool empty = scan_sees(scan, '\n');
	while (!empty) {
		double value = raw_value(reader);
		if (scan->at == scan->end)
			return scan_fail(&reader->scan, "the last line has no end");
		if (time > latest)
			return scan_fail(&reader->scan, "a line extends beyond the year 5138");
		count++;
		if (!isnan(value) && !keep(reader, time, value))
			return false;
		time += header.step;
		if (*scan->at == '\n')
			break;
		scan->at++;
	}
	if (count < expected)
		return scan_fail(
			&reader->scan, "a line has fewer values than announced in its header");
	scan->at++;
	if (memchr(from, 0, header.target))
		leave_out(reader, "its name contains a NUL byte", from, from + header.target);
	else
		finish_series(reader, header.step);
	return true;
}

static bool read_raw(struct reader *reader)
{
	while (reader->scan.at < reader->scan.end)
		if (!raw_line(reader))
			return false;
	return true;
}

/* [VALUE, SECONDS]; the value may be of any type. */
static bool json_point(struct reader *reader, int64_t *before)
{
	struct scan *scan = &reader->scan;
	double value = (double)NAN, seconds;
	if (!scan_take(scan, '['))
		return scan_broken(scan, "[");
	scan_space(scan);
	if (!scan_number(scan, &value)) {
		reader->malformed += !scan_sees(scan, 'n');
		value = (double)NAN;
		scan->depth++;
		if (!scan_value(scan))
			return false;
		scan->depth--;
	}
	if (!scan_expect(scan, ','))
		return false;
	scan_space(scan);
	if (!scan_number(scan, &seconds) || !(seconds >= 0 && seconds <= (double)latest))
		return scan_fail(scan, "a timestamp is not a number of seconds");
	int64_t time = (int64_t)seconds;
	if (time < *before)
		return scan_fail(scan, "the time stamps of a series are not in ascending order");
	*before = time;
	if (!isnan(value) && !keep(reader, time, value))
		return false;
	return scan_expect(scan, ']');
}

static bool json_points(struct reader *reader)
{
	int64_t before = 0;
	if (!scan_open(&reader->scan, '['))
		return scan_broken(&reader->scan, "[");
	while (scan_item(&reader->scan))
		if (!json_point(reader, &before))
			return false;
	return !reader->scan.problem;
}

/* Reads the value of the key just decoded. */
static bool json_member(struct reader *reader, bool *target, bool *points)
{
	struct scan *scan = &reader->scan;
	bool is_target = strcmp(scan->text.data, "target") == 0;
	bool is_points = strcmp(scan->text.data, "datapoints") == 0;
	if ((is_target && *target) || (is_points && *points))
		return scan_fail(scan, "a key occurs twice");
	*target |= is_target;
	*points |= is_points;
	if (!is_target)
		return is_points ? json_points(reader) : scan_value(scan);
	if (!scan_text(scan))
		return false;
	buf_append(&reader->target, scan->text.data, scan->text.length);
	return true;
}

/* Leaves out a series whose texts are no Unicode; any other problem is one of the answer. */
static bool json_series(struct reader *reader)
{
	struct scan *scan = &reader->scan;
	const char *from = scan->at;
	int depth = scan->depth;
	bool target = false, points = false, good = true;
	reset(reader);
	if (!scan_open(scan, '{'))
		return scan_broken(scan, "{");
	while (good && scan_key(scan))
		good = json_member(reader, &target, &points);
	if (!good || scan->problem) {
		const char *why = scan->spoilt ? scan_recover(scan, from, depth) : NULL;
		if (why)
			leave_out(reader, why, from, scan->at);
		return why != NULL;
	}
	if (!target || !points)
		return scan_fail(&reader->scan, "a series without \"target\" or \"datapoints\"");
	finish_series(reader, 0);
	return true;
}

static bool read_json(struct reader *reader)
{
	scan_space(&reader->scan);
	if (!scan_open(&reader->scan, '['))
		return scan_broken(&reader->scan, "[");
	while (scan_item(&reader->scan))
		if (!json_series(reader))
			return false;
	return !reader->scan.problem && scan_end(&reader->scan);
}

static bool read_with(bool (*read)(struct reader *), const char *text, size_t length, int64_t most,
	graphite_take *take, void *context, struct error *error)
{
	struct reader reader = {
		.scan = {.at = text, .end = text + length},
		.take = take,
		.context = context,
		.error = error,
		.most = most > 0 ? (size_t)most : SIZE_MAX,
	};
	bool good = read(&reader);
	if (reader.scan.problem)
		error_set(error, ERROR_DATA,
			"not an answer of Graphite's render API: %s (byte %zu of %zu)",
			reader.scan.problem, (size_t)(reader.scan.at - text), length);
	buf_free(&reader.target);
	buf_free(&reader.scan.text);
	free(reader.times);
	free(reader.values);
	return good;
}

bool graphite_read_raw(const char *text, size_t length, int64_t most, graphite_take *take,
	void *context, struct error *error)
{
	return read_with(read_raw, text, length, most, take, context, error);
}

bool graphite_read_json(const char *text, size_t length, int64_t most, graphite_take *take,
	void *context, struct error *error)
{
	return read_with(read_json, text, length, most, take, context, error);
}
