/*
 * Finds the configuration and lists its files.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/buf.h"
#include "agent/base/order.h"
#include "conf/files.h"

enum { FILES_MAX = 10000, CHUNK = 1 << 16 };

static const char *environment(const struct config_source *source, const char *name)
{
	const char *value = source->env ? source->env(source->env_context, name) : NULL;
	return value && *value ? value : NULL;
}

bool config_find(const char *flag, const struct config_source *source, struct arena *arena,
	const char **path, struct error *error)
{
	static const char *const variables[] = {"HUNTER_CONFIG", "OTAVA_CONFIG"};
	static const char *const homes[] = {".hunter/hunter.yaml", ".hunter/conf.yaml",
		".otava/otava.yaml", ".otava/conf.yaml"};
	const char *home = environment(source, "HOME");
	const char *places[8] = {"hunter.yaml"};
	size_t count = 1;
	*path = flag;
	for (size_t i = 0; i < sizeof variables / sizeof *variables && !*path; i++)
		*path = environment(source, variables[i]);
	if (*path)
		return true;
	for (size_t i = 0; home && i < sizeof homes / sizeof *homes; i++)
		places[count++] = arena_printf(arena, "%s/%s", home, homes[i]);
	places[count++] = "/etc/hunter-c/hunter.yaml";
	for (size_t i = 0; i < count && !*path; i++)
		if (access(places[i], F_OK) == 0)
			*path = places[i];
	if (*path)
		return true;
	return error_set(error, ERROR_USAGE,
		"no configuration: give --config, set $HUNTER_CONFIG or $OTAVA_CONFIG, or create "
		"./hunter.yaml, ~/.hunter/hunter.yaml or /etc/hunter-c/hunter.yaml");
}

static bool has_ending(const char *name, const char *ending)
{
	size_t n = strlen(name), m = strlen(ending);
	return n > m && strcmp(name + n - m, ending) == 0;
}

static bool is_folder(const char *path)
{
	struct stat info;
	return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The folder's *.yaml and *.yml sorted by name. Hidden files belong to editors or Kubernetes;
 * subfolders are not read. */
static bool list_folder(
	const char *folder, struct arena *arena, struct strings *files, struct problems *problems)
{
	DIR *dir = opendir(folder);
	if (!dir) {
		problems_add_file(problems, false, folder, 0, 0, "cannot read the folder: %s",
			strerror(errno));
		return false;
	}
	const char **names = arena_array(arena, FILES_MAX, sizeof *names);
	size_t count = 0, length = strlen(folder);
	const char *slash = length > 0 && folder[length - 1] == '/' ? "" : "/";
	for (struct dirent *entry; (entry = readdir(dir)) && count < FILES_MAX;) {
		if (entry->d_name[0] == '.' ||
			!(has_ending(entry->d_name, ".yaml") || has_ending(entry->d_name, ".yml")))
			continue;
		names[count] = arena_printf(arena, "%s%s%s", folder, slash, entry->d_name);
		count += !is_folder(names[count]);
	}
	closedir(dir);
	qsort(names, count, sizeof *names, order_texts);
	*files = (struct strings){names, count};
	if (count > 0 && count < FILES_MAX)
		return true;
	problems_add_file(problems, false, folder, 0, 0,
		count ? "10,000 files or more" : "no *.yaml file in this folder");
	return false;
}

bool config_files(
	const char *path, struct arena *arena, struct strings *files, struct problems *problems)
{
	if (is_folder(path))
		return list_folder(path, arena, files, problems);
	const char **names = arena_array(arena, 1, sizeof *names);
	names[0] = path;
	*files = (struct strings){names, 1};
	return true;
}

bool config_read_file(const char *path, size_t room, struct buf *content, struct problems *problems)
{
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool there = fd >= 0 && fstat(fd, &info) == 0;
	if (!there || !S_ISREG(info.st_mode)) {
		problems_add_file(problems, false, path, 0, 0, "cannot read the file: %s",
			there ? "not a regular file" : strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	bool big = (size_t)info.st_size > room;
	ssize_t n = 0;
	int saved = 0;
	while (!big) {
		buf_reserve(content, CHUNK);
		n = read(fd, content->data + content->length, CHUNK);
		saved = errno;
		if (n <= 0 && !(n < 0 && saved == EINTR))
			break;
		content->length += n > 0 ? (size_t)n : 0;
		content->data[content->length] = '\0';
		big = content->length > room;
	}
	close(fd);
	if (big)
		problems_add_file(problems, false, path, 0, 0,
			"too large: the configuration is limited to 100 MB");
	else if (n < 0)
		problems_add_file(
			problems, false, path, 0, 0, "cannot read the file: %s", strerror(saved));
	return !big && n == 0;
}
