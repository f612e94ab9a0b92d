/*
 * Read-only access to the state file, whether or not an agent has it open: writes nothing, takes no
 * lock that the agent would notice, creates no file.
 */
#ifndef AGENT_STORE_SQLITE_READER_H
#define AGENT_STORE_SQLITE_READER_H

#include "agent/store/store.h"

struct sqlite3;

/*
 * Returns a read-only connection, to be closed with sqlite3_close. Sets `settled` if no agent has
 * the file open: no agent may open it while the connection is in use, see store_reader_overtaken.
 */
struct sqlite3 *store_reader_connect(const char *path, bool *settled, struct error *error);

/* True if an agent has opened the file since: results may be wrong and have to be read again. */
bool store_reader_overtaken(const char *path, bool settled);

#endif
