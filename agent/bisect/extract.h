/* Extracts the value of a run from its standard output. */
#ifndef AGENT_BISECT_EXTRACT_H
#define AGENT_BISECT_EXTRACT_H

#include <stddef.h>

#include "agent/base/error.h"

/* Whether the text says how to find the value: NULL or "last", the last number; "json:p99",
 * "json:results[0].p99", that value of the last JSON document. Else ERROR_USAGE. */
bool extract_check(const char *text, struct error *error) MUST_USE;

/* `how` has been checked. False and an error (ERROR_DATA): there is no such value, or it is not a
 * finite number. */
bool extract_value(const char *how, const char *output, size_t length, double *value,
	struct error *error) MUST_USE;

#endif
