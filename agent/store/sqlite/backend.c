/*
 * The SQLite backend.
 */
#include "agent/store/backend.h"

#include "agent/store/sqlite/file.h"
#include "agent/store/sqlite/reader.h"

const struct store_backend sqlite_backend = {
	.open = store_file_open,
	.copy = store_file_copy,
	.close = store_file_close,
	.begin = store_file_begin,
	.perform = store_file_perform,
	.commit = store_file_commit,
	.rollback = store_file_rollback,
	.is_stuck = store_file_stuck,
	.read = store_file_read,
	.path = store_file_path,
	.size = store_file_size,
};
