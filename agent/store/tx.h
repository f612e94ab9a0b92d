/* The transaction that all functions on what is stored work on. For the files of this folder. */
#ifndef AGENT_STORE_TX_H
#define AGENT_STORE_TX_H

#include "agent/store/store.h"

struct sql_driver; /* see agent/store/sql/driver.h */

/*
 * What is read in it lies in its arena. Once something has failed, `error` is set and nothing is
 * run any more: statements do nothing, there are no rows, and numbers are 0. So a function asks for
 * `failed` only where it would do more than that; whoever began the transaction does, and rolls it
 * back.
 */
struct tx {
	const struct sql_driver *driver;
	const char *path;
	const char *label; /* "state file /var/lib/hunter-c/state.db": how errors begin */
	struct arena *arena;
	struct error *error;
	bool failed;
};

/* Sets the error, unless something has failed before. Always false. */
bool tx_fail(struct tx *tx, enum error_kind kind, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
