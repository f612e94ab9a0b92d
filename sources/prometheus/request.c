/*
 * Raw samples come from an instant query of `selector[range]` or from VictoriaMetrics' export,
 * points on a grid from `query_range`. Each can be requested in pieces of time.
 */
#include "sources/prometheus/request.h"

#include <jansson.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/when.h"
#include "sources/http.h"

enum { PIECE_POINTS = 11000 }; /* Prometheus' limit */

static const int64_t year = INT64_C(365) * 24 * 3600 * 1000;

/* Rounds up to a multiple, also before 1970. */
static int64_t round_up(int64_t value, int64_t step)
{
	int64_t rest = value % step;
	if (rest == 0)
		return value;
	return rest > 0 ? value - rest + step : value - rest;
}

bool request_range(const struct query *query, struct piece_of_range *range, struct error *error)
{
	const struct prometheus_options *options = query->options;
	const struct endpoint *endpoint = query->server;
	int64_t step = options->step, most = endpoint->max_points;
	int64_t back = options->range;
	if (back <= 0) /* a year; for a grid at most what one answer can hold */
		back = step == 0 || step > year / PIECE_POINTS ? year : step * PIECE_POINTS;
	int64_t end = query->until == WHEN_NEVER ? query->now + 1 : query->until;
	int64_t begin = query->since == WHEN_ALWAYS ? end - back : query->since;
	if (begin < 0)
		begin = 0;
	if (step > 0) {
		begin = round_up(begin, step);
		if (begin < end && most > 0 && (end - 1 - begin) / step >= most)
			return error_set(error, ERROR_USAGE,
				"range and step give more points than max_points, %lld: raise "
				"step",
				(long long)most);
	}
	*range = (struct piece_of_range){
		.how = step > 0 ? REQUEST_GRID : REQUEST_RAW,
		.begin = begin,
		.end = end,
		.step = step,
		.limit = step > 0 ? PIECE_POINTS * step : INT64_MAX,
		.from = begin,
	};
	return true;
}

void request_next(struct piece_of_range *range)
{
	int64_t left = range->end - range->from;
	range->to = left > range->limit ? range->from + range->limit : range->end;
	if (range->how == REQUEST_GRID)
		range->to = range->from + round_up(range->to - range->from, range->step);
}

bool request_halve(struct piece_of_range *range)
{
	int64_t unit = range->how == REQUEST_GRID ? range->step : 1;
	int64_t half = (range->to - range->from) / unit / 2;
	if (half == 0)
		return false;
	range->limit = half * unit;
	return true;
}

/* Seconds with up to three decimals, as the API takes times. */
static void write_seconds(struct buf *out, const char *name, int64_t ms)
{
	buf_printf(out, "&%s=%lld", name, (long long)(ms / 1000));
	if (ms % 1000)
		buf_printf(out, ".%03d", (int)(ms % 1000));
}

/* The server should time out before we do, so that it can report why. */
static void write_timeout(struct buf *out, const struct query *query)
{
	const struct endpoint *endpoint = query->server;
	buf_printf(out, "&timeout=%lldms", (long long)(endpoint->timeout - endpoint->timeout / 10));
}

const char *request_request(const struct query *query, const struct piece_of_range *range,
	const char *promql, struct transfer *next)
{
	static const char *const paths[] = {
		[REQUEST_GRID] = "api/v1/query_range",
		[REQUEST_RAW] = "api/v1/query",
		[REQUEST_EXPORT] = "api/v1/export",
	};
	struct buf out = {0};
	buf_text(&out, range->how == REQUEST_EXPORT ? "match[]=" : "query=");
	transfer_encode(&out, promql);
	switch (range->how) {
	case REQUEST_RAW:
		if (strchr(promql, '#')) /* ends a comment */
			transfer_encode(&out, "\n");
		buf_printf(&out, "%%5B%lldms%%5D", (long long)(range->to - range->from));
		write_seconds(&out, "time", range->to - 1);
		write_timeout(&out, query);
		break;
	case REQUEST_GRID:
		write_seconds(&out, "start", range->from);
		write_seconds(&out, "end", range->to - range->step);
		write_seconds(&out, "step", range->step);
		write_timeout(&out, query);
		break;
	case REQUEST_EXPORT:
		write_seconds(&out, "start", range->from);
		write_seconds(&out, "end", range->to - 1);
		break;
	}
	return http_ask(query, paths[range->how], &out, next);
}

const char *request_flavor(const struct query *query, struct transfer *next)
{
	struct buf none = {0};
	return http_ask(query, "api/v1/status/buildinfo", &none, next);
}

/* Prometheus, Thanos and Mimir report their revision and more; VictoriaMetrics only a version, or
 * nothing. */
bool request_is_victoria(const char *text, size_t length)
{
	json_t *answer = json_loadb(text, length, 0, NULL);
	const json_t *data = json_object_get(answer, "data");
	size_t known = json_object_get(data, "version") ? 1 : 0;
	bool victoria = json_is_object(data) && json_object_size(data) == known;
	json_decref(answer);
	return victoria;
}
