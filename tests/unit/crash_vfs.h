/*
 * A file system for SQLite that remembers what was written, truncated, synced, made and deleted, in
 * order, and makes images of what a disk may hold after the power failed at any moment of that.
 *
 * What was synced is there. Of what was written to a file since its last sync each piece may be
 * there or not, whichever came first; a piece is a write or, where it is torn, one of its sectors.
 * Of a file whose end was lost the size may be there, filled with zeros. A file that was made is
 * certain once a journal was synced, as SQLite syncs the folder with it; a deleted one is certain
 * to be gone if SQLite asked for a sync of the folder.
 */
#ifndef TESTS_CRASH_VFS_H
#define TESTS_CRASH_VFS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/faulty_vfs.h"
#include "tests/unit/random.h"

enum { CRASH_FILES = 3, CRASH_SECTOR = 512 };

/* What follows the path that was given: the file, its log, its rollback journal. */
static const char *const crash_suffixes[CRASH_FILES] = {"", "-wal", "-journal"};

enum crash_kind { CRASH_MADE, CRASH_WRITE, CRASH_TRUNCATE, CRASH_SYNC, CRASH_DELETED };

struct crash_operation {
	enum crash_kind kind;
	int file; /* index into crash_suffixes */
	int64_t offset;
	size_t size;
	unsigned char *data;
	bool certain; /* CRASH_DELETED: the folder was synced */
};

/* Which of the pieces that were not synced are lost. */
enum crash_way {
	CRASH_ALL_LOST,
	CRASH_NONE_LOST,
	CRASH_WRITES_LOST,  /* each write may be */
	CRASH_SECTORS_LOST, /* each sector of each write may be */
	CRASH_FIRST_LOST,   /* the last writes have overtaken the first */
	CRASH_WAYS,
};

/* What was done to the files of one path. One thread at a time. */
struct crash_log {
	const char *path;
	struct crash_operation *operations;
	size_t count, capacity;
};

static struct crash_log crash_log;

struct crash_file {
	struct faulty_file faulty; /* comes first: what passes calls on takes the file for one */
	int number;                /* index into crash_suffixes; -1: not of the path */
};

static inline int crash_number(const char *name)
{
	size_t length = crash_log.path ? strlen(crash_log.path) : 0;

	for (int i = 0; name && crash_log.path && i < CRASH_FILES; i++)
		if (strncmp(name, crash_log.path, length) == 0 &&
			strcmp(name + length, crash_suffixes[i]) == 0)
			return i;
	return -1;
}

static inline void crash_note(struct crash_operation operation, const void *data)
{
	if (operation.file < 0)
		return;
	if (crash_log.count == crash_log.capacity) {
		crash_log.capacity = crash_log.capacity ? 2 * crash_log.capacity : 1024;
		crash_log.operations = realloc(
			crash_log.operations, crash_log.capacity * sizeof *crash_log.operations);
		if (!crash_log.operations)
			abort();
	}
	if (data) {
		operation.data = malloc(operation.size);
		if (!operation.data)
			abort();
		memcpy(operation.data, data, operation.size);
	}
	crash_log.operations[crash_log.count++] = operation;
}

static inline int crash_number_of(sqlite3_file *file)
{
	return ((struct crash_file *)(void *)file)->number;
}

static inline int crash_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
	int result = TRUE_CALL(file, xWrite, data, size, offset);

	if (result == SQLITE_OK)
		crash_note((struct crash_operation){.kind = CRASH_WRITE,
				   .file = crash_number_of(file),
				   .offset = offset,
				   .size = (size_t)size},
			data);
	return result;
}

static inline int crash_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	int result = TRUE_CALL(file, xTruncate, size);

	if (result == SQLITE_OK)
		crash_note((struct crash_operation){.kind = CRASH_TRUNCATE,
				   .file = crash_number_of(file),
				   .offset = size},
			NULL);
	return result;
}

/* These files are copies of nothing, so the true disk need not be waited for. */
static inline int crash_sync(sqlite3_file *file, int flags)
{
	(void)flags;
	crash_note(
		(struct crash_operation){.kind = CRASH_SYNC, .file = crash_number_of(file)}, NULL);
	return SQLITE_OK;
}

static sqlite3_io_methods crash_methods;

static inline int crash_open(
	sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
	struct crash_file *mine = (struct crash_file *)(void *)file;
	int result, there = 1;

	(void)vfs;
	mine->number = crash_number(name);
	mine->faulty.true_file = (sqlite3_file *)(void *)(mine + 1);
	if (name)
		(void)true_vfs->xAccess(true_vfs, name, SQLITE_ACCESS_EXISTS, &there);
	result = true_vfs->xOpen(true_vfs, name, mine->faulty.true_file, flags, out);
	mine->faulty.base.pMethods = mine->faulty.true_file->pMethods ? &crash_methods : NULL;
	if (result == SQLITE_OK && !there)
		crash_note(
			(struct crash_operation){.kind = CRASH_MADE, .file = mine->number}, NULL);
	return result;
}

static inline int crash_delete(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
	int result = true_vfs->xDelete(true_vfs, name, 0);

	(void)vfs;
	if (result == SQLITE_OK)
		crash_note((struct crash_operation){.kind = CRASH_DELETED,
				   .file = crash_number(name),
				   .certain = sync_folder},
			NULL);
	return result;
}

/* From now on what SQLite does to the file of that path is remembered. */
static inline void crash_begin(const char *path)
{
	true_vfs = sqlite3_vfs_find(NULL);
	crash_log = (struct crash_log){.path = path};
	crash_methods = faulty_methods;
	crash_methods.xWrite = crash_write;
	crash_methods.xTruncate = crash_truncate;
	crash_methods.xSync = crash_sync;
	faulty_vfs = *true_vfs;
	faulty_vfs.zName = "crash";
	faulty_vfs.szOsFile += (int)sizeof(struct crash_file);
	faulty_vfs.xOpen = crash_open;
	faulty_vfs.xDelete = crash_delete;
	if (sqlite3_vfs_register(&faulty_vfs, 1) != SQLITE_OK)
		abort();
}

/* What is opened from now on lies on the true disk. The log stays until it is forgotten. */
static inline void crash_end(void)
{
	sqlite3_vfs_unregister(&faulty_vfs);
	if (sqlite3_vfs_register(true_vfs, 1) != SQLITE_OK)
		abort();
}

static inline void crash_forget(void)
{
	for (size_t i = 0; i < crash_log.count; i++)
		free(crash_log.operations[i].data);
	free(crash_log.operations);
	crash_log = (struct crash_log){0};
}

/* One file of an image that is being made. */
struct crash_image {
	bool there;
	unsigned char *data;
	size_t size;
};

static inline void crash_resize(struct crash_image *image, size_t size)
{
	unsigned char *data = realloc(image->data, size + 1);

	if (!data)
		abort();
	if (size > image->size)
		memset(data + image->size, 0, size - image->size);
	image->data = data;
	image->size = size;
}

static inline void crash_put(
	struct crash_image *image, const struct crash_operation *write, size_t from, size_t size)
{
	size_t end = (size_t)write->offset + from + size;

	if (end > image->size)
		crash_resize(image, end);
	memcpy(image->data + write->offset + from, write->data + from, size);
}

/* The sectors of a write that did not get lost. */
static inline void crash_put_torn(
	struct crash_image *image, const struct crash_operation *write, uint64_t *random)
{
	size_t size;

	for (size_t at = 0; at < write->size; at += size) {
		size = CRASH_SECTOR - ((size_t)write->offset + at) % CRASH_SECTOR;
		if (size > write->size - at)
			size = write->size - at;
		if (random_below(random, 2) == 0)
			crash_put(image, write, at, size);
	}
}

/* A write that was not synced; `early`: it is one of the first of these. */
static inline void crash_put_doubtful(struct crash_image *image,
	const struct crash_operation *write, enum crash_way way, bool early, uint64_t *random)
{
	size_t end = (size_t)write->offset + write->size;
	bool sized = random_below(random, 2) == 0;

	switch (way) {
	case CRASH_ALL_LOST: break;
	case CRASH_NONE_LOST: crash_put(image, write, 0, write->size); break;
	case CRASH_SECTORS_LOST: crash_put_torn(image, write, random); break;
	case CRASH_FIRST_LOST:
		if (!early)
			crash_put(image, write, 0, write->size);
		break;
	case CRASH_WRITES_LOST:
	case CRASH_WAYS:
		if (random_below(random, 2) == 0)
			crash_put(image, write, 0, write->size);
		break;
	}
	if (sized && end > image->size && way != CRASH_ALL_LOST)
		crash_resize(image, end);
}

/* Whether it was certain on the disk when operation `moment` would have come. */
static inline bool crash_certain(size_t at, size_t moment)
{
	const struct crash_operation *operation = &crash_log.operations[at];

	for (size_t i = at + 1; i < moment; i++) {
		const struct crash_operation *later = &crash_log.operations[i];

		if (later->kind == CRASH_SYNC &&
			(operation->kind == CRASH_MADE || operation->kind == CRASH_DELETED
					? later->file > 0
					: later->file == operation->file))
			return true;
	}
	return operation->certain;
}

static inline bool crash_keeps(enum crash_way way, uint64_t *random)
{
	return way == CRASH_NONE_LOST || (way != CRASH_ALL_LOST && random_below(random, 2) == 0);
}

/* What operation `at` leaves of its file; `early`, see crash_put_doubtful. */
static inline void crash_apply(struct crash_image *image, size_t at, size_t moment,
	enum crash_way way, bool early, uint64_t *random)
{
	const struct crash_operation *operation = &crash_log.operations[at];
	bool certain = crash_certain(at, moment);

	switch (operation->kind) {
	case CRASH_MADE: image->there = certain || crash_keeps(way, random); break;
	case CRASH_DELETED:
		if (!certain && !crash_keeps(way, random))
			break;
		image->there = false;
		crash_resize(image, 0);
		break;
	case CRASH_TRUNCATE:
		if (certain || crash_keeps(way, random))
			crash_resize(image, (size_t)operation->offset);
		break;
	case CRASH_WRITE:
		if (certain)
			crash_put(image, operation, 0, operation->size);
		else
			crash_put_doubtful(image, operation, way, early, random);
		break;
	case CRASH_SYNC: break;
	}
}

static inline void crash_save(const struct crash_image *image, const char *path, const char *suffix)
{
	char name[256];
	FILE *file;

	snprintf(name, sizeof name, "%s%s", path, suffix);
	(void)remove(name);
	if (!image->there)
		return;
	file = fopen(name, "wb");
	if (!file || fwrite(image->data, 1, image->size, file) != image->size || fclose(file) != 0)
		abort();
}

/* Puts files at `path` as a disk may hold them if the power fails before operation `moment`. */
static inline void crash_make(const char *path, size_t moment, enum crash_way way, uint64_t *random)
{
	struct crash_image images[CRASH_FILES] = {0};
	size_t doubtful[CRASH_FILES] = {0}, seen[CRASH_FILES] = {0};

	for (size_t i = 0; i < moment; i++)
		doubtful[crash_log.operations[i].file] += !crash_certain(i, moment);
	for (int i = 0; i < CRASH_FILES; i++)
		crash_resize(&images[i], 0);
	for (size_t i = 0; i < moment; i++) {
		int file = crash_log.operations[i].file;
		bool early = seen[file] < doubtful[file] / 2;

		seen[file] += !crash_certain(i, moment);
		crash_apply(&images[file], i, moment, way, early, random);
	}
	for (int i = 0; i < CRASH_FILES; i++) {
		crash_save(&images[i], path, crash_suffixes[i]);
		free(images[i].data);
	}
}

#endif
