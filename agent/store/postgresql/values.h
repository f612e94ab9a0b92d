/* Values of parameters and of results, in libpq's binary form. */
#ifndef AGENT_STORE_POSTGRESQL_VALUES_H
#define AGENT_STORE_POSTGRESQL_VALUES_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/store/value.h"

enum { PARAMETERS_MOST = 64 };

/* Values for $1, $2, ...; start with {0}. Texts and bytes are borrowed until the call that they
 * are for has returned. */
struct parameters {
	int count;
	Oid types[PARAMETERS_MOST];
	const char *values[PARAMETERS_MOST];
	int lengths[PARAMETERS_MOST], formats[PARAMETERS_MOST];
	char room[PARAMETERS_MOST][8];
};

/* The next one. */
void parameter_add(struct parameters *parameters, struct value value);

/* Of a result; an integer or truth value of any width, 0 if it is NULL. */
int64_t cell_integer(const PGresult *result, int row, int column);
struct value cell_value(const PGresult *result, int row, int column);

#endif
