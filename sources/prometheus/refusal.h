/*
 * Why servers that speak Prometheus' API refuse, and what helps.
 */
#ifndef SOURCES_PROMETHEUS_REFUSAL_H
#define SOURCES_PROMETHEUS_REFUSAL_H

#include "sources/prometheus/request.h"

/* The server's own words; VictoriaMetrics repeats the request before them. */
const char *refusal_words(const char *said);

/* Whether less of the range may be had where this much cannot; `said` is all of an HTML page. */
bool refusal_too_much(const struct reply *reply, const char *said);

/* What to do about an answer that is no success, where this source knows more than others; or
 * NULL. */
const char *refusal_advice(enum request_mode how, const struct reply *reply, const char *said);

#endif
