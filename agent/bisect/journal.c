/*
 * A line is written by one write() and followed by fdatasync. If that fails the file is truncated
 * to its previous length; a partial line left by a crash is cut when the file is opened next.
 */
#include "agent/bisect/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/bisect/candidates.h"
#include "agent/model/json_put.h"

enum { MOST_BYTES = 256 << 20, MOST_ATTEMPTS = 100 };
static const int64_t latest = INT64_C(253402300799999); /* the end of the year 9999 */
static const int64_t most_id = INT64_C(1) << 53;

const char *const journal_phases[] = {[BISECT_ENDS] = "ends",
	[BISECT_SEARCH] = "search",
	[BISECT_VERIFY] = "verify",
	[BISECT_OVER] = "over",
	NULL};
const char *const journal_outcomes[] = {[BISECT_MEASURED] = "measured",
	[BISECT_UNTESTABLE] = "untestable",
	[BISECT_FAILED] = "failed",
	[BISECT_LOST] = "lost",
	NULL};

static void put_integer(struct buf *out, const char *key, int64_t value)
{
	buf_printf(out, ", \"%s\": %" PRId64, key, value);
}

static void put_strings(struct buf *out, const char *key, const struct strings *strings)
{
	buf_printf(out, ", \"%s\": [", key);
	for (size_t i = 0; i < strings->count; i++) {
		buf_text(out, i ? ", " : "");
		buf_json_text(out, strings->items[i]);
	}
	buf_char(out, ']');
}

static void put_options(struct buf *out, const struct bisect_options *options)
{
	buf_printf(out, ", \"options\": {\"workers\": %zu", options->workers);
	json_put_number(out, "confidence", options->confidence);
	json_put_number(out, "step", options->step);
	json_put_number(out, "spread", options->spread);
	put_integer(out, "direction", options->direction);
	put_integer(out, "budget", options->budget);
	put_integer(out, "most_runs", (int64_t)options->most_runs);
	put_integer(out, "attempts", (int64_t)options->attempts);
	buf_char(out, '}');
}

void journal_set_range(struct arena *arena, struct journal_setup *setup,
	const struct candidate_commits *candidates)
{
	size_t count = candidates->count;
	const char **ids = arena_array(arena, count, sizeof *ids);
	const char **subjects = arena_array(arena, count + 1, sizeof *subjects);

	subjects[0] = "";
	for (size_t i = 0; i < count; i++) {
		ids[i] = candidates->items[i].id;
		subjects[i + 1] = candidates->items[i].subject;
	}
	setup->good = candidates->good;
	setup->bad = candidates->bad;
	setup->candidates = (struct strings){ids, count};
	setup->subjects = (struct strings){subjects, count + 1};
}

void journal_put_setup(struct buf *out, const struct journal_setup *setup)
{
	buf_printf(out, "{\"hunter_bisect\": %d", JOURNAL_VERSION);
	put_integer(out, "at", setup->at);
	json_put_text(out, "repository", setup->repository);
	json_put_text(out, "good", setup->good);
	json_put_text(out, "bad", setup->bad);
	put_strings(out, "candidates", &setup->candidates);
	put_strings(out, "subjects", &setup->subjects);
	put_strings(out, "paths", &setup->paths);
	put_options(out, &setup->options);
	json_put_text(out, "run", setup->run);
	json_put_text(out, "extract", setup->extract);
	put_strings(out, "lines", &setup->lines);
	put_strings(out, "cpus", &setup->cpus);
	put_integer(out, "timeout", setup->timeout);
	json_put_bool(out, "remove_ignored", setup->remove_ignored);
	json_put_bool(out, "merges", setup->merges);
	put_integer(out, "change", setup->change);
	json_put_text(out, "test", setup->test);
	json_put_text(out, "metric", setup->metric);
	json_put_text(out, "into", setup->into);
	buf_text(out, "}\n");
}

static void put_begin(struct buf *out, const struct bisect_run *run, int64_t at)
{
	buf_printf(out,
		"{\"begin\": {\"id\": %" PRIu64 ", \"worker\": %zu, \"position\": %zu, "
		"\"phase\": \"%s\", \"round\": %zu, \"at\": %" PRId64 "}}\n",
		run->id, run->worker, run->position, journal_phases[run->phase], run->round, at);
}

static void put_result(struct buf *out, const struct bisect_result *result, const char *problem)
{
	buf_printf(out,
		"{\"result\": {\"id\": %" PRIu64 ", \"worker\": %zu, \"position\": %zu, "
		"\"outcome\": \"%s\"",
		result->id, result->worker, result->position, journal_outcomes[result->outcome]);
	if (result->outcome == BISECT_MEASURED)
		json_put_number(out, "value", result->value);
	put_integer(out, "begun", result->begun);
	put_integer(out, "lasted", result->lasted);
	json_put_text(out, "problem", problem);
	buf_text(out, "}}\n");
}

void journal_put(struct buf *out, const struct journal_entry *entry)
{
	switch (entry->kind) {
	case JOURNAL_SETUP: journal_put_setup(out, entry->setup); break;
	case JOURNAL_BEGIN: put_begin(out, &entry->run, entry->at); break;
	case JOURNAL_RESULT: put_result(out, &entry->result, entry->problem); break;
	case JOURNAL_RESUMED:
		buf_printf(out, "{\"resumed\": {\"at\": %" PRId64 "}}\n", entry->at);
		break;
	case JOURNAL_CANCELLED:
		buf_printf(out, "{\"cancelled\": {\"at\": %" PRId64 "}}\n", entry->at);
		break;
	}
}

/* A line being decoded. The first problem is kept. */
struct reader {
	struct arena *arena;
	const char *wrong;
};

static void wrong(struct reader *reader, const char *key)
{
	if (!reader->wrong)
		reader->wrong = key;
}

static int64_t integer(
	struct reader *reader, const json_t *object, const char *key, int64_t least, int64_t most)
{
	const json_t *value = json_object_get(object, key);
	int64_t number = json_integer_value(value);

	if (json_is_integer(value) && number >= least && number <= most)
		return number;
	wrong(reader, key);
	return least;
}

static double number(struct reader *reader, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_number(value) && !json_is_null(value))
		wrong(reader, key);
	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static bool boolean(struct reader *reader, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_boolean(value))
		wrong(reader, key);
	return json_is_true(value);
}

/* NULL for null, which must be allowed. */
static const char *text(struct reader *reader, const json_t *object, const char *key, bool optional)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_string(value) && !(optional && json_is_null(value)))
		wrong(reader, key);
	return arena_strdup(reader->arena, json_string_value(value));
}

static const char *commit(struct reader *reader, const json_t *value, const char *key)
{
	const char *id = json_string_value(value);

	if (!id || (strlen(id) != 40 && strlen(id) != CANDIDATE_ID) ||
		strspn(id, "0123456789abcdef") != strlen(id))
		wrong(reader, key);
	return arena_strdup(reader->arena, id);
}

static int word(
	struct reader *reader, const json_t *object, const char *key, const char *const *words)
{
	const char *found = json_string_value(json_object_get(object, key));

	for (int i = 0; found && words[i]; i++)
		if (strcmp(words[i], found) == 0)
			return i;
	wrong(reader, key);
	return 0;
}

static struct strings strings(
	struct reader *reader, const json_t *object, const char *key, size_t most, bool commits)
{
	const json_t *array = json_object_get(object, key);
	size_t count = json_array_size(array);
	const char **items;

	if (!json_is_array(array) || count > most) {
		wrong(reader, key);
		return (struct strings){0};
	}
	items = arena_array(reader->arena, count, sizeof *items);
	for (size_t i = 0; i < count; i++) {
		const json_t *item = json_array_get(array, i);

		if (!json_is_string(item))
			wrong(reader, key);
		items[i] = commits ? commit(reader, item, key)
				   : arena_strdup(reader->arena, json_string_value(item));
	}
	return (struct strings){items, count};
}

static void read_options(
	struct reader *reader, const json_t *object, struct bisect_options *options)
{
	if (!json_is_object(object))
		wrong(reader, "options");
	options->workers = (size_t)integer(reader, object, "workers", 1, BISECT_WORKERS_MOST);
	options->confidence = number(reader, object, "confidence");
	options->step = number(reader, object, "step");
	options->spread = number(reader, object, "spread");
	options->direction = (int)integer(reader, object, "direction", -1, 1);
	options->budget = integer(reader, object, "budget", 0, latest);
	options->most_runs = (size_t)integer(reader, object, "most_runs", 0, most_id);
	options->attempts = (size_t)integer(reader, object, "attempts", 1, MOST_ATTEMPTS);
	if (!(options->confidence > 0 && options->confidence < 1))
		wrong(reader, "confidence");
	if (options->step <= -1 || isinf(options->step))
		wrong(reader, "step");
	if (options->spread < 0 || isinf(options->spread))
		wrong(reader, "spread");
}

static void read_setup(struct reader *reader, const json_t *object, struct journal_setup *setup)
{
	const json_t *into = json_object_get(object, "into");

	setup->at = integer(reader, object, "at", 0, latest);
	setup->repository = text(reader, object, "repository", false);
	setup->good = commit(reader, json_object_get(object, "good"), "good");
	setup->bad = commit(reader, json_object_get(object, "bad"), "bad");
	setup->candidates = strings(reader, object, "candidates", BISECT_CANDIDATES_MOST, true);
	setup->subjects = strings(reader, object, "subjects", BISECT_CANDIDATES_MOST + 1, false);
	setup->paths = strings(reader, object, "paths", BISECT_CANDIDATES_MOST, false);
	read_options(reader, json_object_get(object, "options"), &setup->options);
	setup->run = text(reader, object, "run", false);
	setup->extract = text(reader, object, "extract", true);
	setup->lines = strings(reader, object, "lines", BISECT_WORKERS_MOST, false);
	setup->cpus = strings(reader, object, "cpus", BISECT_WORKERS_MOST, false);
	setup->timeout = integer(reader, object, "timeout", 1, latest);
	setup->remove_ignored = boolean(reader, object, "remove_ignored");
	setup->merges = boolean(reader, object, "merges");
	setup->change = integer(reader, object, "change", 0, INT64_MAX);
	setup->test = text(reader, object, "test", true);
	setup->metric = text(reader, object, "metric", true);
	setup->into = json_is_null(into) ? NULL : commit(reader, into, "into");
	if (setup->candidates.count == 0)
		wrong(reader, "candidates");
	if (setup->subjects.count > 0 && setup->subjects.count != setup->candidates.count + 1)
		wrong(reader, "subjects");
	if (setup->lines.count > setup->options.workers)
		wrong(reader, "lines");
}

static void read_run(struct reader *reader, const json_t *object, struct bisect_run *run)
{
	run->id = (uint64_t)integer(reader, object, "id", 1, most_id);
	run->worker = (size_t)integer(reader, object, "worker", 0, BISECT_WORKERS_MOST - 1);
	run->position = (size_t)integer(reader, object, "position", 0, BISECT_CANDIDATES_MOST);
	run->phase = (enum bisect_phase)word(reader, object, "phase", journal_phases);
	run->round = (size_t)integer(reader, object, "round", 0, most_id);
	if (run->phase == BISECT_OVER)
		wrong(reader, "phase");
}

static void read_result(struct reader *reader, const json_t *object, struct bisect_result *result)
{
	result->id = (uint64_t)integer(reader, object, "id", 1, most_id);
	result->worker = (size_t)integer(reader, object, "worker", 0, BISECT_WORKERS_MOST - 1);
	result->position = (size_t)integer(reader, object, "position", 0, BISECT_CANDIDATES_MOST);
	result->outcome = (enum bisect_outcome)word(reader, object, "outcome", journal_outcomes);
	if (result->outcome == BISECT_MEASURED) {
		result->value = number(reader, object, "value");
		if (!isfinite(result->value))
			wrong(reader, "value");
	}
	result->begun = integer(reader, object, "begun", 0, latest);
	result->lasted = integer(reader, object, "lasted", 0, latest);
}

/* The event's object, and its kind. */
static const json_t *event_of(const json_t *line, enum journal_kind *kind)
{
	static const char *const names[] = {[JOURNAL_BEGIN] = "begin",
		[JOURNAL_RESULT] = "result",
		[JOURNAL_RESUMED] = "resumed",
		[JOURNAL_CANCELLED] = "cancelled"};

	for (int i = JOURNAL_BEGIN; i <= JOURNAL_CANCELLED; i++) {
		const json_t *event = json_object_get(line, names[i]);

		*kind = (enum journal_kind)i;
		if (json_is_object(event))
			return event;
	}
	*kind = JOURNAL_SETUP;
	return json_is_integer(json_object_get(line, "hunter_bisect")) ? line : NULL;
}

static bool read_line(
	struct reader *reader, const json_t *line, struct journal_entry *out, struct error *error)
{
	const json_t *event = event_of(line, &out->kind);

	if (!event)
		return error_set(error, ERROR_DATA, "not an event of a bisection");
	switch (out->kind) {
	case JOURNAL_SETUP:
		if (json_integer_value(json_object_get(line, "hunter_bisect")) != JOURNAL_VERSION)
			return error_set(
				error, ERROR_DATA, "written by a different version of hunter-c");
		out->setup = arena_alloc(reader->arena, sizeof *out->setup);
		read_setup(reader, event, out->setup);
		out->at = out->setup->at;
		break;
	case JOURNAL_BEGIN:
		read_run(reader, event, &out->run);
		out->at = integer(reader, event, "at", 0, latest);
		break;
	case JOURNAL_RESULT:
		read_result(reader, event, &out->result);
		out->problem = text(reader, event, "problem", true);
		out->at = out->result.begun + out->result.lasted;
		break;
	case JOURNAL_RESUMED:
	case JOURNAL_CANCELLED: out->at = integer(reader, event, "at", 0, latest); break;
	}
	return !reader->wrong ||
	       error_set(error, ERROR_DATA, "\"%s\" is missing or wrong", reader->wrong);
}

bool journal_parse(struct arena *arena, const char *line, size_t length, struct journal_entry *out,
	struct error *error)
{
	struct reader reader = {.arena = arena};
	json_error_t problem;
	json_t *document;
	bool good;

	*out = (struct journal_entry){0};
	if (length > JOURNAL_LINE_MOST)
		return error_set(error, ERROR_DATA, "too long");
	document = json_loadb(line, length, JSON_REJECT_DUPLICATES, &problem);
	if (!document)
		return error_set(error, ERROR_DATA, "not JSON: %s", problem.text);
	good = read_line(&reader, document, out, error);
	json_decref(document);
	return good;
}

/* The begun run of that id, or NULL; begun runs have rising ids. */
static const struct bisect_run *find_run(
	const struct journal_entry *const *begun, size_t count, uint64_t id)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (begun[middle]->run.id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && begun[low]->run.id == id ? &begun[low]->run : NULL;
}

/* Checks an event against the setup and earlier events. */
static bool check_entry(const struct journal_setup *setup, const struct journal_entry *entry,
	const struct journal_entry *const *begun, size_t count, struct error *error)
{
	const struct bisect_run *run;

	switch (entry->kind) {
	case JOURNAL_SETUP: return error_set(error, ERROR_DATA, "second setup");
	case JOURNAL_BEGIN:
		if (entry->run.position > setup->candidates.count ||
			entry->run.worker >= setup->options.workers)
			return error_set(error, ERROR_DATA, "no such position or worker");
		return count == 0 || begun[count - 1]->run.id < entry->run.id ||
		       error_set(error, ERROR_DATA, "this run has begun before");
	case JOURNAL_RESULT:
		run = find_run(begun, count, entry->result.id);
		return (run && run->worker == entry->result.worker &&
			       run->position == entry->result.position) ||
		       error_set(error, ERROR_DATA, "no run with this id has begun");
	case JOURNAL_RESUMED:
	case JOURNAL_CANCELLED: break;
	}
	return true;
}

static bool add_line(struct arena *arena, const char *line, size_t length, struct journal *out,
	const struct journal_entry **begun, size_t *begun_count, struct error *error)
{
	struct journal_entry *entry = &out->entries[out->count];

	if (!journal_parse(arena, line, length, entry, error))
		return false;
	if (!out->setup) {
		out->setup = entry->setup;
		return entry->kind == JOURNAL_SETUP ||
		       error_set(error, ERROR_DATA, "the setup is missing");
	}
	if (!check_entry(out->setup, entry, begun, *begun_count, error))
		return false;
	if (entry->kind == JOURNAL_BEGIN)
		begun[(*begun_count)++] = entry;
	out->count++;
	return true;
}

bool journal_read(struct arena *arena, const char *content, size_t length, struct journal *out,
	struct error *error)
{
	const char *end = content + length, *line = content, *stop;
	const struct journal_entry **begun;
	size_t lines = 0, begun_count = 0;

	*out = (struct journal){0};
	for (const char *at = content; at < end; at++)
		lines += *at == '\n';
	out->entries = arena_array(arena, lines + 1, sizeof *out->entries);
	begun = arena_array(arena, lines, sizeof *begun);
	for (size_t i = 1; line < end && (stop = memchr(line, '\n', (size_t)(end - line))); i++) {
		if (!add_line(arena, line, (size_t)(stop - line), out, begun, &begun_count, error))
			return error_prefix(error, "line %zu: ", i);
		line = stop + 1;
	}
	out->torn = (size_t)(end - line);
	return out->setup || error_set(error, ERROR_DATA, "empty");
}

struct bisection *journal_replay(const struct journal *journal, struct journal_times *out)
{
	const struct journal_setup *setup = journal->setup;
	struct bisection *bisection = bisection_new(&setup->options, setup->candidates.count);
	struct journal_times times = {.last = setup->at};
	int64_t before = 0, resumed = 0;

	for (size_t i = 0; i < journal->count; i++) {
		const struct journal_entry *entry = &journal->entries[i];
		struct bisect_result result = entry->result;

		switch (entry->kind) {
		case JOURNAL_BEGIN:
			bisection_resume(bisection, &entry->run);
			if (times.first == 0)
				times.first = entry->at - times.paused;
			break;
		case JOURNAL_RESULT:
			result.begun -= result.begun < resumed ? before : times.paused;
			bisection_tell(bisection, &result);
			break;
		case JOURNAL_CANCELLED: bisection_cancel(bisection); break;
		case JOURNAL_RESUMED:
			before = times.paused;
			times.paused += entry->at > times.last ? entry->at - times.last : 0;
			resumed = entry->at;
			break;
		case JOURNAL_SETUP: break;
		}
		times.last = entry->at > times.last ? entry->at : times.last;
	}
	if (out)
		*out = times;
	return bisection;
}

struct journal_file {
	int fd;
	off_t length;
	char *path;
};

void journal_close(struct journal_file *file)
{
	if (!file)
		return;
	close(file->fd);
	free(file->path);
	free(file);
}

static bool file_error(struct error *error, const char *path)
{
	return error_set(error, ERROR_STATE, "%s: %s", path, strerror(errno));
}

/* Writes it all, or nothing. */
bool journal_write(struct journal_file *file, const struct buf *line, struct error *error)
{
	ssize_t written = pwrite(file->fd, line->data, line->length, file->length);

	if (written == (ssize_t)line->length && fdatasync(file->fd) == 0) {
		file->length += written;
		return true;
	}
	if (written >= 0 && written < (ssize_t)line->length)
		errno = ENOSPC;
	file_error(error, file->path);
	if (written > 0 && ftruncate(file->fd, file->length) != 0)
		return false; /* the next one to open it cuts it */
	return false;
}

static struct journal_file *file_new(int fd, const char *path)
{
	struct journal_file *file = memory_new(1, sizeof *file);

	*file = (struct journal_file){.fd = fd, .path = memory_strdup(path)};
	return file;
}

static bool lock(int fd, const char *path, struct error *error)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	if (errno == EWOULDBLOCK)
		return error_set(error, ERROR_STATE, "%s: in use by another hunter-c", path);
	return file_error(error, path);
}

static bool sync_folder(const char *path)
{
	char *copy = memory_strdup(path);
	int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool done = fd >= 0 && fsync(fd) == 0;

	if (fd >= 0)
		close(fd);
	free(copy);
	return done;
}

/* Whether the name still refers to this file, which another program may have renamed. */
static bool is_named(int fd, const char *name)
{
	struct stat here, there;

	return fstat(fd, &here) == 0 && stat(name, &there) == 0 && here.st_ino == there.st_ino &&
	       here.st_dev == there.st_dev;
}

static bool begin_file(struct journal_file *file, const char *name,
	const struct journal_setup *setup, struct error *error)
{
	struct buf line = {0};
	bool done;

	if (ftruncate(file->fd, 0) != 0)
		return file_error(error, name);
	journal_put_setup(&line, setup);
	done = journal_write(file, &line, error);
	buf_free(&line);
	if (done && renameat2(AT_FDCWD, name, AT_FDCWD, file->path, RENAME_NOREPLACE) == 0 &&
		sync_folder(file->path))
		return true;
	if (done)
		file_error(error, file->path);
	unlink(name);
	return false;
}

/* Uses a temporary name until the setup is on disk, so that a journal always has one. */
struct journal_file *journal_create(
	const char *path, const struct journal_setup *setup, struct error *error)
{
	struct journal_file *file = NULL;
	struct buf name = {0};
	bool done;
	int fd;

	buf_printf(&name, "%s.new", path);
	fd = open(name.data, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0) {
		file_error(error, name.data);
		buf_free(&name);
		return NULL;
	}
	file = file_new(fd, path);
	done = lock(fd, path, error);
	if (done && !is_named(fd, name.data))
		done = error_set(error, ERROR_STATE, "%s: in use by another hunter-c", path);
	done = done && begin_file(file, name.data, setup, error);
	buf_free(&name);
	if (done)
		return file;
	journal_close(file);
	return NULL;
}

static bool read_file(int fd, const char *path, struct buf *out, struct error *error)
{
	struct stat status;
	ssize_t count = 1;

	if (fstat(fd, &status) != 0)
		return file_error(error, path);
	if (!S_ISREG(status.st_mode) || status.st_size > MOST_BYTES)
		return error_set(error, ERROR_STATE, "%s: not a journal of a bisection", path);
	buf_reserve(out, (size_t)status.st_size + 1);
	while (count > 0 && out->length < (size_t)status.st_size) {
		count = pread(fd, out->data + out->length, (size_t)status.st_size - out->length,
			(off_t)out->length);
		if (count < 0)
			return file_error(error, path);
		out->length += (size_t)count;
	}
	return true;
}

static bool parse_file(struct arena *arena, const char *path, struct buf *content,
	struct journal *out, struct error *error)
{
	bool good = journal_read(
		arena, content->length ? content->data : "", content->length, out, error);

	buf_free(content);
	return good || error_prefix(error, "%s: ", path);
}

struct journal_file *journal_open(
	struct arena *arena, const char *path, struct journal *out, struct error *error)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct buf content = {0};
	struct journal_file *file;
	size_t length;

	if (fd < 0) {
		file_error(error, path);
		return NULL;
	}
	file = file_new(fd, path);
	if (lock(fd, path, error) && read_file(fd, path, &content, error)) {
		length = content.length;
		if (parse_file(arena, path, &content, out, error)) {
			file->length = (off_t)(length - out->torn);
			if (out->torn == 0 || ftruncate(fd, file->length) == 0)
				return file;
			file_error(error, path);
		}
	}
	buf_free(&content);
	journal_close(file);
	return NULL;
}

bool journal_look(struct arena *arena, const char *path, struct journal *out, struct error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct buf content = {0};
	bool good;

	if (fd < 0)
		return file_error(error, path);
	good = read_file(fd, path, &content, error);
	close(fd);
	if (!good) {
		buf_free(&content);
		return false;
	}
	return parse_file(arena, path, &content, out, error);
}
