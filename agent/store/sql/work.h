/*
 * The calls of store.h, in SQL.
 */
#ifndef AGENT_STORE_SQL_WORK_H
#define AGENT_STORE_SQL_WORK_H

#include "agent/store/sql/driver.h"

/* Performs the call, inside a transaction. */
bool sql_perform(struct store_file *file, struct store_call *call, struct error *error) MUST_USE;

#endif
