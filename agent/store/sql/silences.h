/*
 * Silences; used by the other files of this folder.
 */
#ifndef AGENT_STORE_SQL_SILENCES_H
#define AGENT_STORE_SQL_SILENCES_H

#include "agent/store/sql/driver.h"

/* Those that are not over, or not summed yet. */
void silences_load(struct tx *tx, struct silence_rows *out);

#endif
