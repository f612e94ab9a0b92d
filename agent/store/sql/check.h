/* The checks of `store check` for every database. */
#ifndef AGENT_STORE_SQL_CHECK_H
#define AGENT_STORE_SQL_CHECK_H

#include "agent/store/tx.h"

struct check {
	struct arena *arena;
	struct store_report *report;
	const char **problems; /* the report's */
};

/* Adds a problem, unless there are very many. */
void check_found(struct check *check, const char *format, ...) PRINTF_LIKE(2, 3);

/* Counts rows, and checks rules beyond the constraints of the tables. */
void check_content(struct check *check, struct tx *tx);

#endif
