/*
 * Bisections and their journals; used by work.c.
 */
#ifndef AGENT_STORE_SQL_BISECTIONS_H
#define AGENT_STORE_SQL_BISECTIONS_H

#include "agent/store/sql/driver.h"

bool bisections_list(
	struct store_file *file, struct store_bisections *call, struct error *error) MUST_USE;
bool bisections_ask(
	struct store_file *file, struct store_bisection_ask *call, struct error *error) MUST_USE;
bool bisections_begin(
	struct store_file *file, struct store_bisection_begin *call, struct error *error) MUST_USE;
bool bisections_write(
	struct store_file *file, struct store_bisection_write *call, struct error *error) MUST_USE;
bool bisections_say(
	struct store_file *file, struct store_bisection_say *call, struct error *error) MUST_USE;

#endif
