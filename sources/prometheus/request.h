/*
 * What the Prometheus source asks: pieces of a range, as requests to one of three addresses.
 */
#ifndef SOURCES_PROMETHEUS_REQUEST_H
#define SOURCES_PROMETHEUS_REQUEST_H

#include "sources/prometheus/prometheus.h"

enum request_mode { REQUEST_GRID, REQUEST_RAW, REQUEST_EXPORT };

/* The piece [from, to) of the range [begin, end), of one query. Times in ms. */
struct piece_of_range {
	enum request_mode how;
	int64_t begin, end;
	int64_t step;  /* of the grid, on which `begin` and `from` are */
	int64_t limit; /* a piece is no longer */
	int64_t from, to;
};

/*
 * The range the query is about: from `since`, or else `range` before its end. On a grid it is cut
 * to multiples of the step, so that the result does not depend on the time of asking.
 */
bool request_range(
	const struct query *query, struct piece_of_range *range, struct error *error) MUST_USE;

/* Sets `to`, from `from` and the limit. */
void request_next(struct piece_of_range *range);

/* Halves the limit to less than the piece; false if that is as short as can be. */
bool request_halve(struct piece_of_range *range);

/* The request for a piece. Returns its address, without the query, for messages. */
const char *request_request(const struct query *query, const struct piece_of_range *range,
	const char *promql, struct transfer *next);

/* The request that tells servers apart; its address. */
const char *request_flavor(const struct query *query, struct transfer *next);

/* Whether the body of an answer to it is VictoriaMetrics'. */
bool request_is_victoria(struct arena *arena, const char *text, size_t length);

#endif
