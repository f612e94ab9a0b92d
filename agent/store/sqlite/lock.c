/*
 * Resolves the path of the state file and locks it for one agent.
 *
 * The lock is a flock on a separate file next to the database, so that a second agent is refused,
 * with the first one's process id, while tools can still read the database. SQLite's own locks only
 * last for a transaction. Symbolic links are resolved first, so that two names of a file share a
 * lock.
 *
 * The lock file holds the process id of the agent. It stays behind when the process ends; only the
 * flock counts.
 */
#include "agent/store/sqlite/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/log.h"

enum {
	MODE = 0640,
	SMALLEST = 512, /* bytes of the smallest database, one page */
};

char *store_folder_new(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return memory_strdup(".");
	return memory_printf("%.*s", slash == path ? 1 : (int)(slash - path), path);
}

char *store_path_new(const char *path, struct error *error)
{
	char *real = realpath(path, NULL), *folder, *whole = NULL;
	struct stat status;

	if (real)
		return real;
	if (errno != ENOENT || lstat(path, &status) == 0) {
		error_set(error, ERROR_STATE, "state file %s: %s", path,
			errno == ENOENT ? "a dangling symbolic link" : strerror(errno));
		return NULL;
	}
	folder = store_folder_new(path);
	(void)mkdir(folder, 0750);
	real = realpath(folder, NULL);
	if (real)
		whole = memory_printf("%s/%s", strcmp(real, "/") == 0 ? "" : real, basename(path));
	else
		error_set(error, ERROR_STATE, "state file %s: folder %s: %s", path, folder,
			strerror(errno));
	free(real);
	free(folder);
	return whole;
}

/* Files of an earlier version, or restored ones, may be readable by other users. */
static void tighten(const char *path)
{
	struct stat status;
	mode_t mode;

	if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode))
		return;
	mode = status.st_mode & 07777;
	if ((mode & ~(mode_t)MODE) != 0 && chmod(path, mode & MODE) != 0)
		log_event(LEVEL_WARN,
			"file may be readable by others: cannot restrict its permissions to"
			" 0640",
			LOG_TEXT("file", path), LOG_TEXT("problem", strerror(errno)));
}

/* Files that root creates before the agent's first run belong to the agent: the owner of the
 * folder. */
static void give(int file, const char *path)
{
	char *folder = store_folder_new(path);
	struct stat status;

	if (geteuid() == 0 && stat(folder, &status) == 0 &&
		fchown(file, status.st_uid, status.st_gid) != 0)
		log_event(LEVEL_WARN, "cannot change the owner of the file to that of its folder",
			LOG_TEXT("file", path), LOG_TEXT("problem", strerror(errno)));
	free(folder);
}

static bool take(int lock, const char *name, const char *path, struct error *error)
{
	char owner[32] = "";
	struct stat status;
	ssize_t length;

	/* The content is overwritten, so it must not be a hard link to another file. */
	if (fstat(lock, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1)
		return error_set(error, ERROR_STATE,
			"%s is not a regular file, or has hard links: remove it", name);
	if (status.st_size == 0)
		give(lock, name);
	if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
		length = snprintf(owner, sizeof owner, "%ld\n", (long)getpid());
		return (ftruncate(lock, 0) == 0 &&
			       pwrite(lock, owner, (size_t)length, 0) == length) ||
		       error_set(error, ERROR_STATE,
			       "state file %s: cannot write the lock file: %s", path,
			       strerror(errno));
	}
	if (errno != EWOULDBLOCK)
		return error_set(error, ERROR_STATE,
			"state file %s: its file system does not support locks: %s", path,
			strerror(errno));
	length = pread(lock, owner, sizeof owner - 1, 0);
	owner[length > 0 ? strcspn(owner, "\n") : 0] = '\0';
	return error_set(error, ERROR_STATE,
		"state file %s is in use by another hunter-c%s%s%s: stop that one, or configure"
		" another state file (agent.state)",
		path, *owner ? " (process " : "", owner, *owner ? ")" : "");
}

int store_lock(const char *path, struct error *error)
{
	char *name = memory_printf("%s.lock", path);
	int lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, MODE);

	if (lock < 0 && errno == ELOOP)
		error_set(error, ERROR_STATE,
			"state file %s: the lock file is a symbolic link: remove %s", path, name);
	else if (lock < 0)
		error_set(error, ERROR_STATE, "state file %s: cannot create the lock file: %s",
			path, strerror(errno));
	else if (take(lock, name, path, error)) {
		tighten(name);
	} else {
		close(lock);
		lock = -1;
	}
	free(name);
	return lock;
}

bool store_is_held(const char *path)
{
	char *real = realpath(path, NULL), *name;
	bool locked;
	int lock;

	if (!real)
		return errno == EACCES;
	name = memory_printf("%s.lock", real);
	lock = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	locked = lock < 0 ? errno == EACCES : flock(lock, LOCK_SH | LOCK_NB) != 0;
	if (lock >= 0)
		close(lock);
	free(name);
	free(real);
	return locked;
}

bool store_check_size(const char *path, int64_t size, struct error *error)
{
	return size == 0 || size >= SMALLEST ||
	       error_set(error, ERROR_STATE,
		       "state file %s is damaged (not a database, %lld bytes) and was not changed:"
		       " restore a backup, or move the file away to start afresh",
		       path, (long long)size);
}

bool store_claim(const char *path, struct error *error)
{
	int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, MODE);
	struct stat status;

	if (file >= 0) {
		give(file, path);
		close(file);
	}
	if ((file < 0 && errno != EEXIST) || lstat(path, &status) != 0)
		return error_set(error, ERROR_STATE, "state file %s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return error_set(error, ERROR_STATE, "state file %s is not a regular file", path);
	if (status.st_nlink > 1)
		return error_set(error, ERROR_STATE,
			"state file %s has a hard link through which a second agent could use it: "
			"remove the link, or copy the file",
			path);
	return store_check_size(path, status.st_size, error);
}

void store_tighten(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		char *name = memory_printf("%s%s", path, suffixes[i]);

		tighten(name);
		free(name);
	}
}
