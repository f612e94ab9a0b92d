/* Extracts the value of a run from its standard output. */
#ifndef AGENT_BISECT_EXTRACT_H
#define AGENT_BISECT_EXTRACT_H

#include <stddef.h>

#include "agent/base/error.h"

struct extract;

/*
 * NULL or "last": the last number; "json:p99", "json:results[0].p99": that value of the last JSON
 * document; "regex:p99=([0-9.]+)": the first group of the last match, or all of it. NULL and an
 * error (ERROR_USAGE) for anything else.
 */
struct extract *extract_new(const char *text, struct error *error);
void extract_free(struct extract *extract); /* accepts NULL */

/* False and an error (ERROR_DATA): there is no such value, or it is not a finite number. */
bool extract_value(const struct extract *extract, const char *output, size_t length, double *value,
	struct error *error) MUST_USE;

#endif
