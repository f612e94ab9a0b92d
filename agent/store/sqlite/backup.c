/*
 * `store backup`: copies the state with SQLite's online backup into TARGET.new-backup, then
 * renames that. A killed backup leaves it behind; the next replaces it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/store/sqlite/file.h"

static const char exists[] = "file exists (--force replaces it)";

static bool fail(const char *target, const char *why, struct error *error)
{
	return error_set(error, ERROR_STATE, "backup %s: %s", target, why);
}

bool store_file_copy(sqlite3 *from, sqlite3 *to)
{
	sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");

	if (backup)
		(void)sqlite3_backup_step(backup, -1);
	return backup && sqlite3_backup_finish(backup) == SQLITE_OK;
}

static bool copy(const char *path, const char *copied, struct error *error)
{
	bool settled = false, done = false;

	for (int i = 0; i < 2; i++) {
		sqlite3 *from = store_reader_connect(path, &settled, error), *to = NULL;

		done = from &&
		       ((sqlite3_open_v2(copied, &to, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
				store_file_copy(from, to)) ||
			       fail(copied, sqlite3_errmsg(to), error));
		sqlite3_close(to);
		sqlite3_close(from);
		if (!store_reader_overtaken(path, settled))
			break;
	}
	return done;
}

static bool verify(const char *copied, const char *path, int64_t *size, struct error *error)
{
	struct arena *arena = arena_new();
	struct store_report report;
	bool whole = store_file_check_copy(copied, path, arena, &report, error);

	if (whole && report.problems.count > 0)
		whole = error_set(error, ERROR_STATE,
			"the state file is damaged, and so is the copy: %s",
			report.problems.items[0]);
	*size = report.size;
	arena_free(arena);
	return whole;
}

/* link() does not replace an existing file, rename() does. */
static bool give_name(const char *copied, const char *target, bool force, struct error *error)
{
	if (force ? rename(copied, target) == 0 : link(copied, target) == 0 && unlink(copied) == 0)
		return true;
	return fail(target, errno == EEXIST ? exists : strerror(errno), error);
}

static bool sync_folder(const char *path, struct error *error)
{
	char *name = store_folder_new(path);
	int folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool done = (folder >= 0 && fsync(folder) == 0) || fail(name, strerror(errno), error);

	if (folder >= 0)
		close(folder);
	free(name);
	return done;
}

static bool are_one(const char *path, const char *other)
{
	struct stat a, b;

	return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Compares paths, too, as an agent may create the file at any moment. */
static bool have_one_name(const char *path, const char *other)
{
	char *folder = store_folder_new(path), *others = store_folder_new(other);
	bool same = strcmp(basename(path), basename(other)) == 0 && are_one(folder, others);

	free(folder);
	free(others);
	return same;
}

/* Refuses the state file, and the files that SQLite and the agent keep next to it, as the
 * target. */
static bool check_target(const char *path, const char *target, struct error *error)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".lock"};
	char *real = realpath(path, NULL);
	bool good = true;

	for (size_t i = 0; real && good && i < sizeof suffixes / sizeof *suffixes; i++) {
		char *name = memory_printf("%s%s", real, suffixes[i]);

		good = !are_one(name, target) && !have_one_name(name, target);
		free(name);
	}
	free(real);
	return good ||
	       fail(target, "the target is the state file itself or one of its companions", error);
}

/* An empty file, locked until its descriptor is closed. */
static int begin(const char *copied, struct error *error)
{
	int file = open(copied, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat own, there;

	if (file < 0) {
		fail(copied, strerror(errno), error);
		return -1;
	}
	/* Another backup may have given it its name meanwhile, or have been killed when it had
	 * both. */
	if ((flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
		fstat(file, &own) != 0 || stat(copied, &there) != 0 || own.st_ino != there.st_ino) {
		fail(copied, "another backup is being written", error);
	} else if (own.st_nlink > 1) {
		if (unlink(copied) == 0) {
			close(file);
			return begin(copied, error);
		}
		fail(copied, strerror(errno), error);
	} else if (ftruncate(file, 0) == 0) {
		return file;
	} else {
		fail(copied, strerror(errno), error);
	}
	close(file);
	return -1;
}

bool store_file_backup(
	const char *path, const char *target, bool force, int64_t *size, struct error *error)
{
	char *copied = memory_printf("%s.new-backup", target);
	int file = -1;
	bool done = false;

	if (check_target(path, target, error) && check_target(path, copied, error) &&
		(force || access(target, F_OK) != 0 || fail(target, exists, error)))
		file = begin(copied, error);
	if (file >= 0) {
		done = copy(path, copied, error) && verify(copied, path, size, error) &&
		       (fsync(file) == 0 || fail(copied, strerror(errno), error)) &&
		       give_name(copied, target, force, error);
		if (!done)
			(void)unlink(copied);
		close(file);
	}
	free(copied);
	return done && sync_folder(target, error);
}
