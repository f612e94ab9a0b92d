#include "agent/store/postgresql/values.h"

#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	TYPE_BOOL = 16,
	TYPE_BYTEA = 17,
	TYPE_INT8 = 20,
	TYPE_INT2 = 21,
	TYPE_INT4 = 23,
	TYPE_TEXT = 25,
	TYPE_FLOAT8 = 701
};

static void add(struct parameters *parameters, Oid type, const char *value, size_t length)
{
	int at = parameters->count++;

	if (at >= PARAMETERS_MOST)
		abort();
	parameters->types[at] = type;
	parameters->values[at] = value;
	parameters->lengths[at] = (int)length;
	parameters->formats[at] = 1;
}

static void add_bits(struct parameters *parameters, Oid type, const void *value)
{
	char *room = parameters->room[parameters->count];
	uint64_t bits;

	memcpy(&bits, value, sizeof bits);
	bits = htobe64(bits);
	memcpy(room, &bits, sizeof bits);
	add(parameters, type, room, sizeof bits);
}

void parameter_add(struct parameters *parameters, struct value value)
{
	switch (value.type) {
	case SQL_NULL: add(parameters, TYPE_INT8, NULL, 0); break;
	case SQL_INTEGER: add_bits(parameters, TYPE_INT8, &value.integer); break;
	case SQL_NUMBER:
		if (isnan(value.number))
			add(parameters, TYPE_FLOAT8, NULL, 0);
		else
			add_bits(parameters, TYPE_FLOAT8, &value.number);
		break;
	case SQL_TEXT:
		add(parameters, TYPE_TEXT, value.text, value.text ? strlen(value.text) : 0);
		break;
	case SQL_BYTES: add(parameters, TYPE_BYTEA, value.bytes, value.length); break;
	}
}

int64_t cell_integer(const PGresult *result, int row, int column)
{
	const char *at = PQgetvalue(result, row, column);
	int length = PQgetlength(result, row, column);
	uint64_t bits = length > 0 && (signed char)*at < 0 ? UINT64_MAX
							   : 0; /* the sign, of a shorter one */

	for (int i = 0; i < length && i < 8; i++)
		bits = bits << 8 | (unsigned char)at[i];
	return (int64_t)bits;
}

struct value cell_value(const PGresult *result, int row, int column)
{
	int64_t bits = cell_integer(result, row, column);
	const char *bytes = PQgetvalue(result, row, column);
	struct value value = v_int(bits);

	if (PQgetisnull(result, row, column))
		return (struct value){.type = SQL_NULL};
	switch (PQftype(result, column)) {
	case TYPE_BOOL:
	case TYPE_INT2:
	case TYPE_INT4:
	case TYPE_INT8: return value;
	case TYPE_FLOAT8:
		value.type = SQL_NUMBER;
		memcpy(&value.number, &bits, sizeof bits);
		return value;
	case TYPE_BYTEA: return v_bytes(bytes, (size_t)PQgetlength(result, row, column));
	default: return v_text(bytes);
	}
}
