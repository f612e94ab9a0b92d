/*
 * A file system for SQLite that is that of the system, but for one write, truncation or sync, or
 * all from one on, that fails as a full or broken disk does: in the middle.
 */
#ifndef TESTS_FAULTY_VFS_H
#define TESTS_FAULTY_VFS_H

#include <limits.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct faulty_disk {
	_Atomic int done;   /* writes, truncations and syncs since it was set */
	_Atomic int first;  /* the first that fails; 0: none does */
	_Atomic int last;   /* the last that fails */
	_Atomic bool fired; /* one has failed */
};

static struct faulty_disk faulty_disk;
static sqlite3_vfs faulty_vfs, *true_vfs;

struct faulty_file {
	sqlite3_file base;
	sqlite3_file *true_file; /* right behind this struct */
};

static inline sqlite3_file *true_file(sqlite3_file *file)
{
	return ((struct faulty_file *)(void *)file)->true_file;
}

static inline bool faulty_now(void)
{
	int number = ++faulty_disk.done;
	bool now =
		faulty_disk.first > 0 && number >= faulty_disk.first && number <= faulty_disk.last;

	if (now)
		faulty_disk.fired = true;
	return now;
}

#define TRUE_CALL(file, call, ...) true_file(file)->pMethods->call(true_file(file), __VA_ARGS__)

static inline int faulty_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
	if (!faulty_now())
		return TRUE_CALL(file, xWrite, data, size, offset);
	(void)TRUE_CALL(file, xWrite, data, size / 2, offset);
	return faulty_disk.first % 2 ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static inline int faulty_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	return faulty_now() ? SQLITE_IOERR_TRUNCATE : TRUE_CALL(file, xTruncate, size);
}

static inline int faulty_sync(sqlite3_file *file, int flags)
{
	return faulty_now() ? SQLITE_IOERR_FSYNC : TRUE_CALL(file, xSync, flags);
}

static inline int pass_close(sqlite3_file *file)
{
	return true_file(file)->pMethods->xClose(true_file(file));
}

static inline int pass_read(sqlite3_file *file, void *data, int size, sqlite3_int64 offset)
{
	return TRUE_CALL(file, xRead, data, size, offset);
}

static inline int pass_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return TRUE_CALL(file, xFileSize, size);
}

static inline int pass_lock(sqlite3_file *file, int level)
{
	return TRUE_CALL(file, xLock, level);
}

static inline int pass_unlock(sqlite3_file *file, int level)
{
	return TRUE_CALL(file, xUnlock, level);
}

static inline int pass_check(sqlite3_file *file, int *out)
{
	return TRUE_CALL(file, xCheckReservedLock, out);
}

static inline int pass_control(sqlite3_file *file, int operation, void *argument)
{
	return TRUE_CALL(file, xFileControl, operation, argument);
}

static inline int pass_sector(sqlite3_file *file)
{
	return true_file(file)->pMethods->xSectorSize(true_file(file));
}

static inline int pass_device(sqlite3_file *file)
{
	return true_file(file)->pMethods->xDeviceCharacteristics(true_file(file));
}

static inline int pass_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
	return TRUE_CALL(file, xShmMap, page, size, extend, out);
}

static inline int pass_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
	return TRUE_CALL(file, xShmLock, offset, n, flags);
}

static inline void pass_barrier(sqlite3_file *file)
{
	true_file(file)->pMethods->xShmBarrier(true_file(file));
}

static inline int pass_unmap(sqlite3_file *file, int delete)
{
	return TRUE_CALL(file, xShmUnmap, delete);
}

static const sqlite3_io_methods faulty_methods = {.iVersion = 2,
	.xClose = pass_close,
	.xRead = pass_read,
	.xWrite = faulty_write,
	.xTruncate = faulty_truncate,
	.xSync = faulty_sync,
	.xFileSize = pass_size,
	.xLock = pass_lock,
	.xUnlock = pass_unlock,
	.xCheckReservedLock = pass_check,
	.xFileControl = pass_control,
	.xSectorSize = pass_sector,
	.xDeviceCharacteristics = pass_device,
	.xShmMap = pass_map,
	.xShmLock = pass_shm_lock,
	.xShmBarrier = pass_barrier,
	.xShmUnmap = pass_unmap};

static inline int faulty_open(
	sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
	struct faulty_file *mine = (struct faulty_file *)(void *)file;
	int result;

	(void)vfs;
	mine->true_file = (sqlite3_file *)(void *)(mine + 1);
	result = true_vfs->xOpen(true_vfs, name, mine->true_file, flags, out);
	mine->base.pMethods = mine->true_file->pMethods ? &faulty_methods : NULL;
	return result;
}

/* From now on all that SQLite opens lies on the faulty disk. */
static inline void faulty_vfs_begin(void)
{
	true_vfs = sqlite3_vfs_find(NULL);
	faulty_vfs = *true_vfs;
	faulty_vfs.zName = "faulty";
	faulty_vfs.szOsFile += (int)sizeof(struct faulty_file);
	faulty_vfs.xOpen = faulty_open;
	if (sqlite3_vfs_register(&faulty_vfs, 1) != SQLITE_OK)
		abort();
}

/* Lets the operations first .. last fail, counted from now; 0: none. */
static inline void faulty_disk_set(int first, int last)
{
	faulty_disk.done = 0;
	faulty_disk.first = first;
	faulty_disk.last = last;
	faulty_disk.fired = false;
}

#endif
