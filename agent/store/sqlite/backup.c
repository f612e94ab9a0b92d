/*
 * `store backup`: copies the state with SQLite's online backup into a temporary file next to the
 * target, then renames it. A killed backup leaves the temporary file behind; a later one removes
 * it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "agent/store/sqlite/file.h"

enum {
	RANDOM_LENGTH = 6, /* of mkostemp's template */
	LEFT_AFTER = 3600, /* seconds */
};

#define RANDOM_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static bool fail(const char *target, const char *why, struct error *error)
{
	return error_set(error, ERROR_STATE, "backup %s: %s", target, why);
}

/* Copies all pages in one step, so that they are from one moment; concurrent writers continue in
 * their log. */
static bool copy(sqlite3 *from, const char *path, struct error *error)
{
	sqlite3 *to;
	sqlite3_backup *backup = NULL;
	bool done = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK;

	if (done)
		backup = sqlite3_backup_init(to, "main", from, "main");
	if (backup) {
		(void)sqlite3_backup_step(backup, -1);
		done = sqlite3_backup_finish(backup) == SQLITE_OK;
	}
	done = done && backup;
	if (!done)
		fail(path, sqlite3_errmsg(to), error);
	sqlite3_close(to);
	return done;
}

static bool copy_from(const char *path, const char *target, struct error *error)
{
	bool settled = false, done = false;

	for (int i = 0; i < 2; i++) {
		sqlite3 *from = store_reader_connect(path, &settled, error);

		done = from && copy(from, target, error);
		sqlite3_close(from);
		if (!store_reader_overtaken(path, settled))
			break;
	}
	return done;
}

static bool verify(const char *path, const char *from, struct error *error)
{
	struct arena *arena = arena_new();
	struct store_report report;
	bool whole = store_file_check_copy(path, from, arena, &report, error);

	if (whole && report.problems.count > 0)
		whole = error_set(error, ERROR_STATE,
			"the state file is damaged, and so is the copy: %s",
			report.problems.items[0]);
	arena_free(arena);
	return whole;
}

static bool sync_path(const char *path, int flags, struct error *error)
{
	int file = open(path, flags | O_CLOEXEC);
	bool done = file >= 0 && fsync(file) == 0;

	if (!done)
		fail(path, strerror(errno), error);
	if (file >= 0)
		close(file);
	return done;
}

static bool sync_folder(const char *path, struct error *error)
{
	char *folder = store_folder_new(path);
	bool done = sync_path(folder, O_RDONLY | O_DIRECTORY, error);
	free(folder);
	return done;
}

/* link() does not replace an existing file, rename() does. */
static bool give_name(const char *path, const char *target, bool force, struct error *error)
{
	if (force ? rename(path, target) == 0 : link(path, target) == 0)
		return true;
	if (errno == EEXIST)
		return fail(target, "file exists (--force replaces it)", error);
	return fail(target, strerror(errno), error);
}

static bool fill(
	const char *path, const char *copied, const char *target, bool force, struct error *error)
{
	return copy_from(path, copied, error) && verify(copied, path, error) &&
	       sync_path(copied, O_RDWR, error) && give_name(copied, target, force, error) &&
	       sync_folder(target, error);
}

static bool are_one(const char *path, const char *other)
{
	struct stat a, b;

	return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Compares paths, too, as an agent may create the file at any moment. */
static bool have_one_name(const char *path, const char *other)
{
	char *folder = store_folder_new(path), *others = store_folder_new(other);
	bool same = strcmp(base_of(path), base_of(other)) == 0 && are_one(folder, others);

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

/* BASE.new-XXXXXX, and the files that SQLite keeps next to it. */
static bool is_leftover(const char *name, const char *base)
{
	static const char *const suffixes[] = {"", "-journal", "-wal", "-shm"};
	static const char mark[] = ".new-";
	size_t length = strlen(base);

	if (strncmp(name, base, length) != 0 || strncmp(name + length, mark, strlen(mark)) != 0)
		return false;
	name += length + strlen(mark);
	if (strspn(name, RANDOM_LETTERS) < RANDOM_LENGTH)
		return false;
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
		if (strcmp(name + RANDOM_LENGTH, suffixes[i]) == 0)
			return true;
	return false;
}

/* A backup in progress is written to all the time; a file that was not written to for LEFT_AFTER is
 * left over from a killed one. */
static void remove_leftover(int folder, const char *name)
{
	struct stat status;

	if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode) ||
		status.st_mtime > time(NULL) - LEFT_AFTER)
		return;
	if (unlinkat(folder, name, 0) == 0)
		log_event(LEVEL_INFO, "removed incomplete backup", LOG_TEXT("file", name));
}

static void remove_leftovers(const char *target)
{
	char *path = store_folder_new(target);
	DIR *folder = opendir(path);
	const struct dirent *entry;

	free(path);
	if (!folder)
		return;
	while ((entry = readdir(folder)))
		if (is_leftover(entry->d_name, base_of(target)))
			remove_leftover(dirfd(folder), entry->d_name);
	closedir(folder);
}

bool store_file_backup(const char *path, const char *target, bool force, struct error *error)
{
	char *copied;
	int file;
	bool done;

	if (!check_target(path, target, error))
		return false;
	if (!force && access(target, F_OK) == 0)
		return fail(target, "file exists (--force replaces it)", error);
	remove_leftovers(target);
	copied = memory_printf("%s.new-XXXXXX", target);
	file = mkostemp(copied, O_CLOEXEC);
	if (file < 0) {
		fail(target, strerror(errno), error);
		free(copied);
		return false;
	}
	close(file);
	done = fill(path, copied, target, force, error);
	(void)unlink(copied);
	free(copied);
	return done;
}
