/*
 * The files that make up a configuration. Private to conf/.
 */
#ifndef CONF_FILES_H
#define CONF_FILES_H

#include "agent/base/buf.h"
#include "conf/config.h"

enum { CONFIG_BYTES_MAX = 100000000 }; /* of all files together */

/* The file, or the files of the folder sorted by name. False after a report. */
bool config_files(
	const char *path, struct arena *arena, struct strings *files, struct problems *problems);

/* Reads a file of at most `room` bytes into the buffer; the caller frees it. False after a report.
 */
bool config_read_file(
	const char *path, size_t room, struct buf *content, struct problems *problems);

#endif
