/* Values of parameters and of columns, as both databases have them. */
#ifndef AGENT_STORE_VALUE_H
#define AGENT_STORE_VALUE_H

#include "agent/model/columns.h"

enum sql_type { SQL_NULL, SQL_INTEGER, SQL_NUMBER, SQL_TEXT, SQL_BYTES };

/* Of a parameter or a column. Each parameter always has the same type, whatever its value: SQL_NULL
 * is an integer that is missing, any other type is missing as NaN or NULL. Of a column SQL_NULL is
 * a value of any type; a truth value is an integer. */
struct value {
	enum sql_type type;
	union {
		int64_t integer;
		double number;
		const char *text;
		const void *bytes;
	};
	size_t length; /* of bytes */
};

static inline struct value v_int(int64_t value)
{
	return (struct value){SQL_INTEGER, .integer = value};
}

static inline struct value v_null(void) /* an integer */
{
	return (struct value){.type = SQL_NULL};
}

static inline struct value v_number(double value)
{
	return (struct value){SQL_NUMBER, .number = value}; /* NaN: NULL */
}

static inline struct value v_text(const char *value)
{
	return (struct value){SQL_TEXT, .text = value}; /* borrowed until the statement has run */
}

static inline struct value v_bytes(const void *bytes, size_t length)
{
	return (struct value){SQL_BYTES, .bytes = bytes, .length = length}; /* the same */
}

#endif
