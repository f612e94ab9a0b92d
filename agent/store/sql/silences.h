/*
 * Silences; used by the other files of this folder.
 */
#ifndef AGENT_STORE_SQL_SILENCES_H
#define AGENT_STORE_SQL_SILENCES_H

#include "agent/store/sql/driver.h"

/* Those that are not over, or not summed yet. */
bool silences_load(struct store_file *file, struct arena *arena, struct silence_rows *out,
	struct error *error) MUST_USE;

#endif
