/*
 * Read-only access to the state file, whether or not an agent has it open: writes nothing, takes no
 * lock that the agent would notice, creates no file.
 *
 * A WAL-mode file that no process has open lacks its log and shared-memory index, and SQLite would
 * create them even for a reader. Such a file is opened as immutable; whether an agent has opened it
 * in the meantime is checked afterwards. If there is an index, the file is opened read-only.
 */
#include "agent/store/sqlite/file.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/buf.h"

enum { BUSY_MS = 5000 };

/* SQLite creates the index before it writes anything. */
static bool is_settled(const char *path)
{
	return store_file_beside(path, "-shm") < 0;
}

static char *uri_new(const char *path, bool settled)
{
	struct buf uri = {0};

	buf_text(&uri, *path == '/' ? "file://" : "file:");
	for (; *path; path++)
		if (strchr("%?#", *path))
			buf_printf(&uri, "%%%02x", (unsigned)*path);
		else
			buf_char(&uri, *path);
	buf_text(&uri, settled ? "?immutable=1" : "?readonly_shm=1");
	return buf_steal(&uri);
}

struct sqlite3 *store_reader_connect(const char *path, bool *settled, struct error *error)
{
	struct sqlite3 *database = NULL;
	struct stat status;
	char *uri;
	int result;

	*settled = false;
	if (access(path, R_OK) != 0 || stat(path, &status) != 0) {
		error_set(error, ERROR_STATE, "state file %s: %s", path, strerror(errno));
		return NULL;
	}
	if (!S_ISREG(status.st_mode)) {
		error_set(error, ERROR_STATE, "state file %s is not a regular file", path);
		return NULL;
	}
	if (!store_check_size(path, status.st_size, error))
		return NULL;
	*settled = is_settled(path);
	if (*settled && store_file_beside(path, "-wal") > 0) {
		error_set(error, ERROR_STATE,
			"state file %s: its log exists without the index (%s-shm): start"
			" the agent once to recreate it",
			path, path);
		return NULL;
	}
	uri = uri_new(path, *settled);
	result = sqlite3_open_v2(
		uri, &database, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
	free(uri);
	if (result == SQLITE_OK) {
		sqlite3_busy_timeout(database, BUSY_MS);
		return database;
	}
	error_set(error, ERROR_STATE, "cannot open state file %s: %s", path,
		sqlite3_errmsg(database));
	sqlite3_close(database);
	return NULL;
}

bool store_reader_overtaken(const char *path, bool settled)
{
	return settled && !is_settled(path);
}
