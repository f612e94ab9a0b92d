/*
 * `store copy`: takes a whole state over into another database, whatever kind both are.
 */
#ifndef AGENT_STORE_SQL_COPY_H
#define AGENT_STORE_SQL_COPY_H

#include "agent/store/sql/driver.h"

/* Writes all rows of `from`, and the last id of each table whose ids are never used again, into the
 * empty state `to`; each is within a transaction. False with an ERROR_STATE if it is not empty. */
bool sql_copy(struct store_file *to, struct store_file *from, struct store_copied *copied,
	struct error *error) MUST_USE;

/* Whether both have the same rows and last ids; false with an ERROR_STATE that names what is not
 * equal. */
bool sql_compare(struct store_file *to, struct store_file *from, struct error *error) MUST_USE;

#endif
