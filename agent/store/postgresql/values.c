#include "agent/store/postgresql/values.h"

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
	TYPE_FLOAT4 = 700,
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

static void add_bits(struct parameters *parameters, Oid type, uint64_t bits)
{
	char *room = parameters->room[parameters->count];

	for (int i = 0; i < 8; i++)
		room[i] = (char)(bits >> (56 - 8 * i));
	add(parameters, type, room, 8);
}

void parameter_add(struct parameters *parameters, struct value value)
{
	uint64_t bits;

	switch (value.type) {
	case SQL_NULL: add(parameters, TYPE_INT8, NULL, 0); break;
	case SQL_INTEGER: add_bits(parameters, TYPE_INT8, (uint64_t)value.integer); break;
	case SQL_NUMBER:
		memcpy(&bits, &value.number, sizeof bits);
		if (isnan(value.number))
			add(parameters, TYPE_FLOAT8, NULL, 0);
		else
			add_bits(parameters, TYPE_FLOAT8, bits);
		break;
	case SQL_TEXT:
		add(parameters, TYPE_TEXT, value.text, value.text ? strlen(value.text) : 0);
		break;
	case SQL_BYTES: add(parameters, TYPE_BYTEA, value.bytes, value.length); break;
	}
}

static uint64_t bits_of(const PGresult *result, int row, int column)
{
	const unsigned char *at = (const unsigned char *)PQgetvalue(result, row, column);
	uint64_t bits = 0;

	for (int i = 0, length = PQgetlength(result, row, column); i < length && i < 8; i++)
		bits = bits << 8 | at[i];
	return bits;
}

int64_t cell_integer(const PGresult *result, int row, int column)
{
	uint64_t bits = bits_of(result, row, column);

	switch (PQftype(result, column)) {
	case TYPE_INT2: return (int16_t)bits;
	case TYPE_INT4: return (int32_t)bits;
	default: return (int64_t)bits;
	}
}

struct value cell_value(const PGresult *result, int row, int column)
{
	struct value value = {.type = SQL_NULL};
	uint64_t bits = bits_of(result, row, column);
	uint32_t few = (uint32_t)bits;
	float single;

	if (PQgetisnull(result, row, column))
		return value;
	switch (PQftype(result, column)) {
	case TYPE_BOOL:
	case TYPE_INT2:
	case TYPE_INT4:
	case TYPE_INT8:
		value.type = SQL_INTEGER;
		value.integer = cell_integer(result, row, column);
		break;
	case TYPE_FLOAT4:
		value.type = SQL_NUMBER;
		memcpy(&single, &few, sizeof single);
		value.number = (double)single;
		break;
	case TYPE_FLOAT8:
		value.type = SQL_NUMBER;
		memcpy(&value.number, &bits, sizeof bits);
		break;
	case TYPE_BYTEA:
		value.type = SQL_BYTES;
		value.bytes = PQgetvalue(result, row, column);
		value.length = (size_t)PQgetlength(result, row, column);
		break;
	default: value.type = SQL_TEXT; value.text = PQgetvalue(result, row, column);
	}
	return value;
}
