/*
 * See store_lock.h. The lock's file holds the number of the process that has the lock; it stays
 * behind when the process goes, as only the flock counts.
 */
#include "agent/news/store_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void *no_memory_is_fatal(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

/* The folder that a path names before its last slash; "." without one. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;

	if (slash == path)
		length = 1;
	return no_memory_is_fatal(slash ? strndup(path, length) : strdup("."));
}

/* The path of a file that does not exist yet. */
static char *future_path(const char *path, struct error *error)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char *folder = folder_of(path), *real, *whole = NULL;

	(void)mkdir(folder, 0750);
	real = realpath(folder, NULL);
	if (!real)
		error_set(error, ERROR_STATE, "state file %s: the folder %s: %s", path, folder,
			strerror(errno));
	else if (asprintf(&whole, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) < 0)
		abort();
	free(real);
	free(folder);
	return whole;
}

char *store_path_new(const char *path, struct error *error)
{
	char *real = realpath(path, NULL);
	struct stat status;

	if (real)
		return real;
	if (errno == ENOENT && lstat(path, &status) != 0)
		return future_path(path, error);
	if (errno == ENOENT)
		error_set(error, ERROR_STATE, "state file %s is a link that leads nowhere", path);
	else
		error_set(error, ERROR_STATE, "state file %s: %s", path, strerror(errno));
	return NULL;
}

static bool write_owner(int lock, const char *path, struct error *error)
{
	char owner[32];
	int length = snprintf(owner, sizeof owner, "%ld\n", (long)getpid());

	if (ftruncate(lock, 0) == 0 && pwrite(lock, owner, (size_t)length, 0) == length)
		return true;
	return error_set(error, ERROR_STATE, "state file %s: cannot write its lock: %s", path,
		strerror(errno));
}

static bool in_use(int lock, const char *path, struct error *error)
{
	char owner[32] = "";
	ssize_t length = pread(lock, owner, sizeof owner - 1, 0);

	owner[length > 0 ? strcspn(owner, "\n") : 0] = '\0';
	return error_set(error, ERROR_STATE,
		"state file %s is in use by another hunter-c%s%s%s: stop that one, or give this one"
		" a state file of its own (agent.state)",
		path, *owner ? " (process " : "", owner, *owner ? ")" : "");
}

static bool take(int lock, const char *path, struct error *error)
{
	if (flock(lock, LOCK_EX | LOCK_NB) == 0)
		return write_owner(lock, path, error);
	if (errno == EWOULDBLOCK)
		return in_use(lock, path, error);
	return error_set(error, ERROR_STATE, "state file %s: its file system gives no lock: %s",
		path, strerror(errno));
}

int store_lock(const char *path, struct error *error)
{
	char *name;
	int lock;

	if (asprintf(&name, "%s.lock", path) < 0)
		abort();
	lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	free(name);
	if (lock < 0) {
		error_set(error, ERROR_STATE, "state file %s: cannot create its lock: %s", path,
			strerror(errno));
		return -1;
	}
	if (take(lock, path, error))
		return lock;
	close(lock);
	return -1;
}
