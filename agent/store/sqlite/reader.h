/*
 * The state file, looked at beside a running agent or without one: nothing is written, no lock is
 * taken that an agent would notice, and no file comes to be.
 */
#ifndef AGENT_STORE_SQLITE_READER_H
#define AGENT_STORE_SQLITE_READER_H

#include "agent/store/store.h"

struct sqlite3;

/* store_read of a file. */
bool store_file_read(const char *path, struct store_request *request, struct error *error) MUST_USE;

/*
 * A connection for looking, to be closed with sqlite3_close. `settled` is set if no agent has the
 * file open: then it must not begin to while the connection is used, see store_reader_overtaken.
 */
struct sqlite3 *store_reader_connect(const char *path, bool *settled, struct error *error);

/* True if an agent has opened the file since: what was read may be wrong, and is to be read again.
 */
bool store_reader_overtaken(const char *path, bool settled);

#endif
