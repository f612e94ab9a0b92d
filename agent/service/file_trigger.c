/*
 * One inotify descriptor is a guest of the engine's loop. The table of watched files is rebuilt
 * when the configuration or the folders change. Missing folders are looked for periodically.
 */
#include "agent/service/file_trigger.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/dict.h"

enum {
	LOOK_AGAIN = 30000,
	READS = 64 /* per turn of the loop */
};

#define EVENTS                                                                                     \
	(IN_CLOSE_WRITE | IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_MOVE_SELF | IN_DELETE_SELF |    \
		IN_ONLYDIR)

struct folder {
	const char *path;
	int wd; /* -1: not watched */
	const struct folder *next;
};

/* A test and its file. */
struct watched {
	const char *test, *path;
	const struct folder *folder;
	const struct watched *same; /* another test of that file */
};

struct table {
	struct arena *arena;
	struct watched *items;
	size_t count;
	const struct folder *folders;
	struct dict paths; /* of folders -> struct folder */
	struct dict wds;   /* "wd" -> struct folder */
	struct dict names; /* "wd/name" -> struct watched */
	bool partial;      /* a folder cannot be watched */
};

struct file_trigger {
	struct agent *agent;
	struct scheduler *scheduler;
	int fd;
	struct table *table;
	bool lost;          /* a folder went away */
	int64_t look_again; /* of the monotonic clock */
};

static int64_t serve(void *context);
static void follow(void *context);

struct file_trigger *file_trigger_new(struct agent *agent, struct scheduler *scheduler)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct file_trigger *files;

	if (fd < 0) {
		log_event(LEVEL_WARN, "cannot watch files: their tests run by schedule only",
			LOG_TEXT("problem", strerror(errno)));
		return NULL;
	}
	files = memory_new(1, sizeof *files);
	*files = (struct file_trigger){.agent = agent, .scheduler = scheduler, .fd = fd};
	engine_host(agent->engine, fd, serve, files);
	agent_listen(agent, HINT_LOOK, follow, files);
	return files;
}

void file_trigger_free(struct file_trigger *files)
{
	if (!files)
		return;
	engine_unhost(files->agent->engine, files->fd);
	close(files->fd);
	if (files->table)
		arena_free(files->table->arena);
	free(files);
}

/* "12", or with a name "12/run.csv". */
static const char *key_of(struct arena *arena, int wd, const char *name)
{
	return arena_printf(arena, "%d%s%s", wd, name ? "/" : "", name ? name : "");
}

/* The folder of that path in the previous table, or NULL. */
static const struct folder *folder_before(const struct file_trigger *files, const char *path)
{
	return files->table ? dict_get(&files->table->paths, path) : NULL;
}

/* inotify returns the existing number for a folder that is already watched. */
static const struct folder *add_folder(
	const struct file_trigger *files, struct table *table, const char *path)
{
	const void **place = dict_place(&table->paths, path);
	const struct folder *before = folder_before(files, path);
	struct folder *folder;

	if (*place)
		return *place;
	folder = arena_alloc(table->arena, sizeof *folder);
	*folder = (struct folder){.path = path,
		.wd = inotify_add_watch(files->fd, path, EVENTS),
		.next = table->folders};
	if (folder->wd >= 0)
		*dict_place(&table->wds, key_of(table->arena, folder->wd, NULL)) = folder;
	else if (!before || before->wd >= 0)
		log_event(LEVEL_WARN, "cannot watch folder: its tests run by schedule only",
			LOG_TEXT("folder", path), LOG_TEXT("problem", strerror(errno)));
	table->partial |= folder->wd < 0;
	table->folders = folder;
	*place = folder;
	return folder;
}

static void add_test(const struct file_trigger *files, struct table *table, const struct test *test)
{
	struct arena *arena = table->arena;
	struct watched *item = &table->items[table->count++];
	const char *path = arena_strdup(arena, test->watched), *slash = strrchr(path, '/');
	const char *folder = !slash          ? "."
			     : slash == path ? "/"
					     : arena_strndup(arena, path, (size_t)(slash - path));
	const void **place;

	*item = (struct watched){.test = arena_strdup(arena, test->name),
		.path = path,
		.folder = add_folder(files, table, folder)};
	if (item->folder->wd < 0)
		return;
	place = dict_place(
		&table->names, key_of(arena, item->folder->wd, slash ? slash + 1 : path));
	item->same = *place;
	*place = item;
}

static void note_write(const struct file_trigger *files, const struct watched *item)
{
	if (!scheduler_elsewhere(
		    files->scheduler, item->test)) /* the agent that runs it watches it, too */
		scheduler_written(files->scheduler, item->test);
}

static void rebuild(struct file_trigger *files)
{
	const struct config_ref *config_ref = files->agent->config_ref;
	const struct folder *folder = files->table ? files->table->folders : NULL;
	struct arena *arena = arena_new();
	struct table *table = arena_alloc(arena, sizeof *table);

	*table = (struct table){.arena = arena,
		.items = arena_array(arena, config_ref->test_count, sizeof *table->items),
		.paths.arena = arena,
		.wds.arena = arena,
		.names.arena = arena};
	for (size_t i = 0; i < config_ref->test_count; i++)
		if (config_ref->tests[i]->watched && !config_ref->tests[i]->unsupported)
			add_test(files, table, config_ref->tests[i]);
	/* Folders that have appeared or were replaced: earlier writes in them went unnoticed. */
	for (size_t i = 0; i < table->count; i++) {
		const struct watched *item = &table->items[i];
		const struct folder *before = folder_before(files, item->folder->path);

		if (before && item->folder->wd >= 0 && before->wd != item->folder->wd)
			note_write(files, item);
	}
	for (; folder; folder = folder->next)
		if (folder->wd >= 0 && !dict_get(&table->wds, key_of(arena, folder->wd, NULL)))
			inotify_rm_watch(files->fd, folder->wd);
	if (files->table)
		arena_free(files->table->arena);
	files->table = table;
	files->lost = false;
	files->look_again = clock_monotonic() + LOOK_AGAIN;
}

static void follow(void *context)
{
	struct file_trigger *files = context;

	rebuild(files);
	engine_unhost(files->agent->engine, files->fd); /* serve it soon */
	engine_host(files->agent->engine, files->fd, serve, files);
}

static void note_event(struct file_trigger *files, const struct inotify_event *event)
{
	const struct table *table = files->table;
	char key[NAME_MAX + 32];
	const struct watched *item;

	if (event->mask & IN_Q_OVERFLOW) {
		log_message(LEVEL_INFO, "inotify queue overflow: running all watched tests");
		for (size_t i = 0; i < table->count; i++)
			note_write(files, &table->items[i]);
		return;
	}
	if (event->mask & (IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF)) {
		snprintf(key, sizeof key, "%d", event->wd);
		files->lost |= dict_get(&table->wds, key) != NULL;
		return;
	}
	snprintf(key, sizeof key, "%d/%s", event->wd, event->len > 0 ? event->name : "");
	for (item = dict_get(&table->names, key); item; item = item->same)
		note_write(files, item);
}

/* False if there is nothing left to read. */
static bool read_events(struct file_trigger *files)
{
	_Alignas(struct inotify_event) char events[16384];
	ssize_t length = read(files->fd, events, sizeof events);

	for (ssize_t at = 0; at < length;) {
		const struct inotify_event *event = (const void *)&events[at];

		note_event(files, event);
		at += (ssize_t)(sizeof *event + event->len);
	}
	return length > 0;
}

static int64_t serve(void *context)
{
	struct file_trigger *files = context;
	int64_t now = clock_monotonic();

	if (files->agent->stopping) /* later writes wait for the next start */
		engine_unhost(files->agent->engine, files->fd);
	if (!files->table || files->agent->stopping)
		return -1;
	for (int i = 0; i < READS && read_events(files); i++)
		continue;
	if (files->lost || (files->table->partial && now >= files->look_again))
		rebuild(files);
	if (!files->table->partial)
		return -1;
	return files->look_again > now ? files->look_again - now : 0;
}
