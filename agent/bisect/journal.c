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
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/bisect/candidates.h"
#include "agent/model/columns.h"
#include "agent/model/json_put.h"

enum { MOST_BYTES = 256 << 20, MOST_ATTEMPTS = 100 };

#define LATEST INT64_C(253402300799999) /* the end of the year 9999 */
#define MOST_ID (INT64_C(1) << 53)

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

/* A member of a line: how it is written, and what is accepted when it is read. */
struct member {
	const char *key;
	enum { INTEGER, NUMBER, FLAG, WORD, TEXT, COMMIT, TEXTS, COMMITS } kind;
	size_t offset, size;      /* in the struct, bytes */
	int64_t least, most;      /* INTEGER; of lists: `most` items */
	const char *const *words; /* WORD; NULL-terminated */
	bool optional;            /* TEXT, COMMIT: may be null */
};

#define ROW struct journal_setup
static const struct member setup_members[] = {
	{"at", INTEGER, COLUMN_OF(at), 0, LATEST},
	{"repository", TEXT, COLUMN_OF(repository)},
	{"good", COMMIT, COLUMN_OF(good)},
	{"bad", COMMIT, COLUMN_OF(bad)},
	{"candidates", COMMITS, COLUMN_OF(candidates), .most = BISECT_CANDIDATES_MOST},
	{"subjects", TEXTS, COLUMN_OF(subjects), .most = BISECT_CANDIDATES_MOST + 1},
	{"paths", TEXTS, COLUMN_OF(paths), .most = BISECT_CANDIDATES_MOST},
	{"workers", INTEGER, COLUMN_OF(options.workers), 1, BISECT_WORKERS_MOST},
	{"confidence", NUMBER, COLUMN_OF(options.confidence)},
	{"step", NUMBER, COLUMN_OF(options.step)},
	{"spread", NUMBER, COLUMN_OF(options.spread)},
	{"direction", INTEGER, COLUMN_OF(options.direction), -1, 1},
	{"budget", INTEGER, COLUMN_OF(options.budget), 0, LATEST},
	{"most_runs", INTEGER, COLUMN_OF(options.most_runs), 0, MOST_ID},
	{"attempts", INTEGER, COLUMN_OF(options.attempts), 1, MOST_ATTEMPTS},
	{"run", TEXT, COLUMN_OF(run)},
	{"extract", TEXT, COLUMN_OF(extract), .optional = true},
	{"lines", TEXTS, COLUMN_OF(lines), .most = BISECT_WORKERS_MOST},
	{"timeout", INTEGER, COLUMN_OF(timeout), 1, LATEST},
	{"remove_ignored", FLAG, COLUMN_OF(remove_ignored)},
	{"merges", FLAG, COLUMN_OF(merges)},
	{"change", INTEGER, COLUMN_OF(change), 0, INT64_MAX},
	{"test", TEXT, COLUMN_OF(test), .optional = true},
	{"metric", TEXT, COLUMN_OF(metric), .optional = true},
	{"into", COMMIT, COLUMN_OF(into), .optional = true},
	{0},
};
#undef ROW

#define ROW struct journal_entry
static const struct member begin_members[] = {
	{"id", INTEGER, COLUMN_OF(run.id), 1, MOST_ID},
	{"worker", INTEGER, COLUMN_OF(run.worker), 0, BISECT_WORKERS_MOST - 1},
	{"position", INTEGER, COLUMN_OF(run.position), 0, BISECT_CANDIDATES_MOST},
	{"phase", WORD, COLUMN_OF(run.phase), .words = journal_phases},
	{"round", INTEGER, COLUMN_OF(run.round), 0, MOST_ID},
	{"at", INTEGER, COLUMN_OF(at), 0, LATEST},
	{0},
};

static const struct member result_members[] = {
	{"id", INTEGER, COLUMN_OF(result.id), 1, MOST_ID},
	{"worker", INTEGER, COLUMN_OF(result.worker), 0, BISECT_WORKERS_MOST - 1},
	{"position", INTEGER, COLUMN_OF(result.position), 0, BISECT_CANDIDATES_MOST},
	{"outcome", WORD, COLUMN_OF(result.outcome), .words = journal_outcomes},
	{"begun", INTEGER, COLUMN_OF(result.begun), 0, LATEST},
	{"lasted", INTEGER, COLUMN_OF(result.lasted), 0, LATEST},
	{"problem", TEXT, COLUMN_OF(problem), .optional = true},
	{0},
};

static const struct member note_members[] = {{"at", INTEGER, COLUMN_OF(at), 0, LATEST}, {0}};
#undef ROW

/* The members of the events, by enum journal_kind. */
static const struct form {
	const char *name;
	const struct member *members;
} events[] = {[JOURNAL_BEGIN] = {"begin", begin_members},
	[JOURNAL_RESULT] = {"result", result_members},
	[JOURNAL_RESUMED] = {"resumed", note_members},
	[JOURNAL_CANCELLED] = {"cancelled", note_members}};

static void put_members(struct buf *out, const struct member *members, const void *row)
{
	for (const struct member *member = members; member->key; member++) {
		const void *at = (const char *)row + member->offset;
		int64_t integer = member->size == sizeof(int) ? *(const int *)at : 0;
		const struct strings *strings = at;

		if (member->kind == INTEGER && member->size != sizeof(int))
			integer = *(const int64_t *)at;
		json_key(out, member->key);
		switch (member->kind) {
		case INTEGER: buf_printf(out, "%" PRId64, integer); break;
		case NUMBER: buf_json_number(out, *(const double *)at); break;
		case FLAG: buf_text(out, *(const bool *)at ? "true" : "false"); break;
		case WORD: buf_json_text(out, member->words[integer]); break;
		case TEXT:
		case COMMIT: buf_json_text(out, *(const char *const *)at); break;
		case TEXTS:
		case COMMITS: json_put(out, "%p", strings); break;
		}
	}
}

static double relative(double value, double of)
{
	return of != 0 && isfinite(value) ? fabs(value / of) : (double)NAN;
}

void journal_set_change(struct journal_setup *setup, const struct change_record *record)
{
	const struct change *change = &record->item.change;

	setup->change = record->item.id;
	setup->test = record->item.test;
	setup->metric = record->item.metric;
	setup->options.direction = record->sign;
	setup->options.step =
		relative(change->level_after - change->level_before, change->level_before);
	setup->options.spread = relative(change->stddev_before, change->mean_before);
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

const char *journal_commit(const struct journal_setup *setup, size_t position)
{
	return position > 0 ? setup->candidates.items[position - 1] : setup->good;
}

void journal_put_setup(struct buf *out, const struct journal_setup *setup)
{
	buf_printf(out, "{\"hunter_bisect\": %d, ", JOURNAL_VERSION);
	put_members(out, setup_members, setup);
	buf_text(out, "}\n");
}

void journal_put(struct buf *out, const struct journal_entry *entry)
{
	const struct form *event = &events[entry->kind];

	if (entry->kind == JOURNAL_SETUP) {
		journal_put_setup(out, entry->setup);
		return;
	}
	buf_printf(out, "{\"%s\": {", event->name);
	put_members(out, event->members, entry);
	if (entry->kind == JOURNAL_RESULT && entry->result.outcome == BISECT_MEASURED)
		json_put_number(out, "value", entry->result.value);
	buf_text(out, "}}\n");
}

static bool is_commit(const char *id)
{
	return (strlen(id) == 40 || strlen(id) == CANDIDATE_ID) &&
	       strspn(id, "0123456789abcdef") == strlen(id);
}

static bool read_strings(
	struct arena *arena, const struct member *member, const json_t *array, struct strings *out)
{
	size_t count = json_array_size(array);
	const char **items;

	if (!json_is_array(array) || (int64_t)count > member->most)
		return false;
	items = arena_array(arena, count, sizeof *items);
	*out = (struct strings){items, count};
	for (size_t i = 0; i < count; i++) {
		const char *text = json_string_value(json_array_get(array, i));

		if (!text || (member->kind == COMMITS && !is_commit(text)))
			return false;
		items[i] = arena_strdup(arena, text);
	}
	return true;
}

static bool read_member(
	struct arena *arena, const struct member *member, const json_t *value, void *at)
{
	const char *text = json_string_value(value);
	int64_t integer = json_integer_value(value);

	switch (member->kind) {
	case INTEGER:
		if (member->size == sizeof(int))
			*(int *)at = (int)integer;
		else
			*(int64_t *)at = integer;
		return json_is_integer(value) && integer >= member->least &&
		       integer <= member->most;
	case NUMBER:
		*(double *)at = json_is_number(value) ? json_number_value(value) : (double)NAN;
		return json_is_number(value) || json_is_null(value);
	case FLAG: *(bool *)at = json_is_true(value); return json_is_boolean(value);
	case WORD:
		for (int i = 0; text && member->words[i]; i++)
			if (strcmp(member->words[i], text) == 0) {
				*(int *)at = i;
				return true;
			}
		return false;
	case TEXT:
	case COMMIT:
		*(const char **)at = arena_strdup(arena, text);
		return text ? member->kind == TEXT || is_commit(text)
			    : member->optional && json_is_null(value);
	case TEXTS:
	case COMMITS: return read_strings(arena, member, value, at);
	}
	return false;
}

/* The first key whose value is missing or wrong, or NULL. */
static const char *read_members(
	struct arena *arena, const struct member *members, const json_t *object, void *row)
{
	for (; members->key; members++)
		if (!read_member(arena, members, json_object_get(object, members->key),
			    (char *)row + members->offset))
			return members->key;
	return NULL;
}

static const char *read_setup(
	struct arena *arena, const json_t *object, struct journal_setup *setup)
{
	const struct bisect_options *options = &setup->options;
	const char *wrong = read_members(arena, setup_members, object, setup);

	const struct {
		bool wrong;
		const char *key;
	} checks[] = {{!(options->confidence > 0 && options->confidence < 1), "confidence"},
		{options->step <= -1 || isinf(options->step), "step"},
		{options->spread < 0 || isinf(options->spread), "spread"},
		{setup->candidates.count == 0, "candidates"},
		{setup->subjects.count > 0 && setup->subjects.count != setup->candidates.count + 1,
			"subjects"},
		{setup->lines.count > options->workers, "lines"}};

	for (size_t i = 0; !wrong && i < sizeof checks / sizeof *checks; i++)
		wrong = checks[i].wrong ? checks[i].key : NULL;
	return wrong;
}

static bool read_line(
	struct arena *arena, const json_t *line, struct journal_entry *out, struct error *error)
{
	const json_t *version = json_object_get(line, "hunter_bisect"), *object = NULL, *value;
	const char *wrong = NULL;

	for (int i = JOURNAL_BEGIN; i <= JOURNAL_CANCELLED && !object; i++) {
		object = json_object_get(line, events[i].name);
		object = json_is_object(object) ? object : NULL;
		out->kind = object ? (enum journal_kind)i : JOURNAL_SETUP;
	}
	if (!object && !json_is_integer(version))
		return error_set(error, ERROR_DATA, "not an event of a bisection");
	if (!object && json_integer_value(version) != JOURNAL_VERSION)
		return error_set(error, ERROR_DATA, "written by a different version of hunter-c");
	if (object)
		wrong = read_members(arena, events[out->kind].members, object, out);
	switch (out->kind) {
	case JOURNAL_SETUP:
		out->setup = arena_alloc(arena, sizeof *out->setup);
		wrong = read_setup(arena, line, out->setup);
		out->at = out->setup->at;
		break;
	case JOURNAL_BEGIN: wrong = out->run.phase == BISECT_OVER ? "phase" : wrong; break;
	case JOURNAL_RESULT:
		value = json_object_get(object, "value");
		out->result.value = json_number_value(value);
		if (out->result.outcome == BISECT_MEASURED &&
			!(json_is_number(value) && isfinite(out->result.value)))
			wrong = "value";
		out->at = out->result.begun + out->result.lasted;
		break;
	case JOURNAL_RESUMED:
	case JOURNAL_CANCELLED: break;
	}
	return !wrong || error_set(error, ERROR_DATA, "\"%s\" is missing or wrong", wrong);
}

/* The latest begun run, or the one of that id; NULL: there is none. */
static const struct bisect_run *find_run(const struct journal *journal, uint64_t id)
{
	for (size_t i = journal->count; i-- > 0;) {
		const struct journal_entry *entry = &journal->entries[i];

		if (entry->kind == JOURNAL_BEGIN && (id == 0 || entry->run.id == id))
			return &entry->run;
	}
	return NULL;
}

/* Checks an event against the setup and earlier events. */
static bool check_entry(
	const struct journal *journal, const struct journal_entry *entry, struct error *error)
{
	const struct journal_setup *setup = journal->setup;
	const struct bisect_run *run;

	switch (entry->kind) {
	case JOURNAL_SETUP: return error_set(error, ERROR_DATA, "second setup");
	case JOURNAL_BEGIN:
		if (entry->run.position > setup->candidates.count ||
			entry->run.worker >= setup->options.workers)
			return error_set(error, ERROR_DATA, "no such position or worker");
		run = find_run(journal, 0);
		return !run || run->id < entry->run.id ||
		       error_set(error, ERROR_DATA, "this run has begun before");
	case JOURNAL_RESULT:
		run = find_run(journal, entry->result.id);
		return (run && run->worker == entry->result.worker &&
			       run->position == entry->result.position) ||
		       error_set(error, ERROR_DATA, "no run with this id has begun");
	case JOURNAL_RESUMED:
	case JOURNAL_CANCELLED: break;
	}
	return true;
}

static bool add_line(struct arena *arena, const char *line, size_t length, struct journal *out,
	struct error *error)
{
	struct journal_entry *entry = &out->entries[out->count];
	json_error_t problem;
	json_t *document;
	bool good;

	if (length > JOURNAL_LINE_MOST)
		return error_set(error, ERROR_DATA, "too long");
	document = json_loadb(line, length, JSON_REJECT_DUPLICATES, &problem);
	if (!document)
		return error_set(error, ERROR_DATA, "not JSON: %s", problem.text);
	*entry = (struct journal_entry){0};
	good = read_line(arena, document, entry, error);
	json_decref(document);
	if (!good)
		return false;
	if (!out->setup) {
		out->setup = entry->setup;
		return entry->kind == JOURNAL_SETUP ||
		       error_set(error, ERROR_DATA, "the setup is missing");
	}
	if (!check_entry(out, entry, error))
		return false;
	out->count++;
	return true;
}

bool journal_read(struct arena *arena, const char *content, size_t length, struct journal *out,
	struct error *error)
{
	const char *end = content + length, *line = content, *stop;
	size_t lines = 0;

	*out = (struct journal){0};
	for (const char *at = content; at < end; at++)
		lines += *at == '\n';
	out->entries = arena_array(arena, lines + 1, sizeof *out->entries);
	for (size_t i = 1; line < end && (stop = memchr(line, '\n', (size_t)(end - line))); i++) {
		if (!add_line(arena, line, (size_t)(stop - line), out, error))
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
	if (file->fd >= 0)
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

/* Opens a file, for other programs only to be read. */
static struct journal_file *open_file(
	const char *path, const char *name, int flags, struct error *error)
{
	struct journal_file *file = memory_new(1, sizeof *file);

	*file = (struct journal_file){
		.fd = open(name, flags | O_RDWR | O_CLOEXEC, 0666), .path = memory_strdup(path)};
	if (file->fd >= 0 && flock(file->fd, LOCK_EX | LOCK_NB) == 0)
		return file;
	if (file->fd >= 0 && errno == EWOULDBLOCK)
		error_set(error, ERROR_STATE, "%s: in use by another hunter-c", path);
	else
		file_error(error, path);
	journal_close(file);
	return NULL;
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

/* Uses a temporary name until the setup is on disk, so that a journal always has one. */
struct journal_file *journal_create(
	const char *path, const struct journal_setup *setup, struct error *error)
{
	struct buf name = {0}, line = {0};
	struct journal_file *file;
	bool done;

	buf_printf(&name, "%s.%ld.new", path, (long)getpid());
	journal_put_setup(&line, setup);
	file = open_file(path, name.data, O_CREAT | O_TRUNC, error);
	done = file && journal_write(file, &line, error);
	if (done && (renameat2(AT_FDCWD, name.data, AT_FDCWD, path, RENAME_NOREPLACE) != 0 ||
			    !sync_folder(path)))
		done = file_error(error, path);
	if (!done) {
		unlink(name.data);
		journal_close(file);
		file = NULL;
	}
	buf_free(&name);
	buf_free(&line);
	return file;
}

/* Reads it all; *length: its bytes. */
static bool read_all(struct arena *arena, int fd, const char *path, struct journal *out,
	off_t *length, struct error *error)
{
	struct buf content = {0};
	struct stat status;
	ssize_t count = 1;
	bool good;

	if (fstat(fd, &status) != 0)
		return file_error(error, path);
	if (!S_ISREG(status.st_mode) || status.st_size > MOST_BYTES)
		return error_set(error, ERROR_STATE, "%s: not a journal of a bisection", path);
	buf_reserve(&content, (size_t)status.st_size + 1);
	while (count > 0 && content.length < (size_t)status.st_size) {
		count = pread(fd, content.data + content.length,
			(size_t)status.st_size - content.length, (off_t)content.length);
		content.length += count > 0 ? (size_t)count : 0;
	}
	if (count < 0)
		good = file_error(error, path);
	else
		good = journal_read(arena, content.data, content.length, out, error) ||
		       error_prefix(error, "%s: ", path);
	*length = (off_t)content.length;
	buf_free(&content);
	return good;
}

struct journal_file *journal_open(
	struct arena *arena, const char *path, struct journal *out, struct error *error)
{
	struct journal_file *file = open_file(path, path, 0, error);

	if (file && read_all(arena, file->fd, path, out, &file->length, error)) {
		file->length -= (off_t)out->torn;
		if (out->torn == 0 || ftruncate(file->fd, file->length) == 0)
			return file;
		file_error(error, path);
	}
	journal_close(file);
	return NULL;
}

bool journal_look(struct arena *arena, const char *path, struct journal *out, struct error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t length;
	bool good;

	if (fd < 0)
		return file_error(error, path);
	good = read_all(arena, fd, path, out, &length, error);
	close(fd);
	return good;
}
