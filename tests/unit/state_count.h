/*
 * Counts rows of a state.
 */
#ifndef TESTS_STATE_COUNT_H
#define TESTS_STATE_COUNT_H

#include "tests/unit/state_address.h"

/* `what` is a table, with or without a condition: "deliveries WHERE state = 1". */
static inline int state_count(const char *path, const char *what)
{
	char sql[160];

	snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", what);
	return (int)state_number(path, sql);
}

#endif
