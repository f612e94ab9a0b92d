/*
 * The requests of the Prometheus source: pieces of a range, from one of three addresses.
 */
#ifndef SOURCES_PROMETHEUS_REQUEST_H
#define SOURCES_PROMETHEUS_REQUEST_H

#include "sources/prometheus/prometheus.h"

enum request_mode { REQUEST_GRID, REQUEST_RAW, REQUEST_EXPORT };

/* The piece [from, to) of the range [begin, end) of one query. Times in ms. */
struct piece_of_range {
	enum request_mode how;
	int64_t begin, end;
	int64_t step;  /* of the grid on which `begin` and `from` lie */
	int64_t limit; /* the longest piece */
	int64_t from, to;
};

/*
 * The range of the query: from `since`, otherwise from `range` before its end. On a grid it is
 * rounded to multiples of the step, so that the result does not depend on the time of the request.
 */
bool request_range(
	const struct query *query, struct piece_of_range *range, struct error *error) MUST_USE;

/* Sets `to`, from `from` and the limit. */
void request_next(struct piece_of_range *range);

/* Halves the limit to less than the piece; false if it cannot be shorter. */
bool request_halve(struct piece_of_range *range);

/* The request for a piece. Returns its address without the query, for messages. */
const char *request_request(const struct query *query, const struct piece_of_range *range,
	const char *promql, struct transfer *next);

/* The request that distinguishes servers. Returns its address. */
const char *request_flavor(const struct query *query, struct transfer *next);

/* Whether its answer comes from VictoriaMetrics. */
bool request_is_victoria(const char *text, size_t length);

#endif
