/* Values of parameters and of results, in libpq's binary form. */
#ifndef AGENT_STORE_POSTGRESQL_VALUES_H
#define AGENT_STORE_POSTGRESQL_VALUES_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

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

void parameter_integer(struct parameters *parameters, int64_t value);
void parameter_null(struct parameters *parameters);                   /* an integer */
void parameter_number(struct parameters *parameters, double value);   /* NaN becomes NULL */
void parameter_text(struct parameters *parameters, const char *text); /* or NULL */
void parameter_bytes(struct parameters *parameters, const void *bytes, size_t length);

/* Cells of a result; integers and truth values of any width, 0 if it is NULL. */
enum cell_kind { CELL_INTEGER, CELL_NUMBER, CELL_TEXT, CELL_BYTES };
enum cell_kind cell_kind(const PGresult *result, int column);
bool cell_is_null(const PGresult *result, int row, int column);
int64_t cell_integer(const PGresult *result, int row, int column);
double cell_number(const PGresult *result, int row, int column);    /* NaN if it is NULL */
const char *cell_text(const PGresult *result, int row, int column); /* NULL if it is NULL */

#endif
