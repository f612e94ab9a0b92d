/*
 * Reads known changes, and adds entries to a file of them. The list's end tells where an entry
 * goes, so that all else in the file stays as it is; the result is read again before it is used.
 */
#include "conf/known_changes.h"

#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/hash.h"
#include "agent/base/number.h"
#include "agent/base/order.h"
#include "agent/base/output_file.h"
#include "agent/base/utf8.h"
#include "agent/base/when.h"
#include "conf/files.h"
#include "conf/load.h"

enum { ENTRIES_MOST = 10000, PATTERNS_MOST = 1000, FILE_MOST = 10000000 };
#define DAY_MS INT64_C(86400000)
#define LARGEST 1e9 /* percent */

struct options {
	const char *test, *metric, *commit, *time, *reason, *until;
	int direction;
	double at_most;
};

static const char *const directions[] = {"either", "up", "down", NULL};

const struct field known_change_fields[] = {
	OPTION_STRING(
		struct options, test, NULL, "test name or shell pattern", .flags = FIELD_REQUIRED),
	OPTION_STRING(struct options, metric, NULL,
		"metric or series name or shell pattern; default: any"),
	OPTION_STRING(struct options, commit, NULL,
		"commit (or prefix) that caused the change; commit or time is required"),
	OPTION_STRING(struct options, time, NULL, "day or time of the change, within 5 points"),
	OPTION_CHOICE(struct options, direction, "either", directions, "direction of the change"),
	OPTION_DOUBLE(struct options, at_most, "0", 0, LARGEST,
		"maximum accepted size in percent; 0: any"),
	OPTION_STRING(struct options, reason, NULL, "why the change is accepted",
		.flags = FIELD_REQUIRED),
	OPTION_STRING(struct options, until, NULL, "expiry of the entry"),
	{0},
};

/* Reads an absolute date. */
static bool read_date(const struct yaml_node *map, const struct scope *scope, const char *key,
	const char *text, int64_t *out)
{
	struct error error;
	int64_t other;

	if (!when_parse(text, 0, out, &error)) {
		loader_error(yaml_get(map, key), scope, "%s: %s", key, error.text);
		return false;
	}
	if (when_parse(text, 100000 * DAY_MS + 1, &other, &error) && other == *out)
		return true;
	loader_error(yaml_get(map, key), scope,
		"%s: \"%.80s\" is relative; expected an absolute date such as 2026-12-01", key,
		text);
	return false;
}

static void check_text(
	const struct yaml_node *map, const struct scope *scope, const char *key, const char *text)
{
	if (text && !text[strspn(text, " \t\r\n")])
		loader_error(yaml_get(map, key), scope, "%s: it is empty", key);
}

/* "2026-01-02" is the whole day. */
static bool read_times(const struct yaml_node *map, const struct scope *scope,
	const struct options *options, struct known_change *entry)
{
	const char *time = options->time;

	if (time) {
		bool day = strlen(time) == 10 && strspn(time, "0123456789-") == 10;

		if (!read_date(map, scope, "time", time, &entry->from))
			return false;
		entry->to = entry->from + (day ? DAY_MS - 1 : 0);
	}
	return !options->until || read_date(map, scope, "until", options->until, &entry->until);
}

/* The configuration's hash shows changes of the configuration. */
static void add_entry(struct loader *loader, const struct known_change *entry)
{
	const int64_t numbers[] = {entry->from, entry->to, entry->until, entry->direction};
	struct config *config = loader->config;
	struct known_change *entries = arena_grow(
		loader->arena, loader->known_changes, config->known_change_count, sizeof *entries);

	entries[config->known_change_count++] = *entry;
	config->known_changes = loader->known_changes = entries;
	fingerprint_text(loader, NULL, entry->test);
	fingerprint_text(loader, NULL, entry->metric);
	fingerprint_text(loader, NULL, entry->commit);
	fingerprint_text(loader, NULL, entry->reason);
	config->hash = hash_add(config->hash, numbers, sizeof numbers);
	config->hash = hash_add(config->hash, &entry->at_most, sizeof entry->at_most);
}

static void read_entry(struct loader *loader, const struct yaml_node *map)
{
	static const int signs[] = {0, 1, -1};
	struct options options = {0};
	struct reading reading = {.scope = {.loader = loader, .kind = "known_changes"},
		.tables = {{known_change_fields, &options}}};
	size_t errors = loader->problems->errors;

	if (!loader_is_kind(
		    map, YAML_MAP, &reading.scope, "a map with test, commit or time, and reason"))
		return;
	field_defaults(known_change_fields, &options);
	options_read_all(map, &reading);
	for (const struct field *field = known_change_fields; field->name; field++)
		if (field->type == FIELD_STRING)
			check_text(map, &reading.scope, field->name, field_text(field, &options));
	if (options.commit && known_commit_is_short(options.commit))
		loader_error(yaml_get(map, "commit"), &reading.scope,
			"commit: \"%s\" is too short: expected at least %d digits, or use time",
			options.commit, KNOWN_COMMIT_LEAST);
	if (!options.commit && !options.time && loader->problems->errors == errors)
		loader_error(map, &reading.scope,
			"\"commit\" or \"time\" is missing: the entry would cover every later "
			"change as well");
	struct known_change entry = {.test = options.test,
		.metric = options.metric,
		.commit = options.commit,
		.from = WHEN_ALWAYS,
		.to = WHEN_NEVER,
		.direction = signs[options.direction],
		.at_most = options.at_most,
		.reason = options.reason,
		.until = WHEN_NEVER,
		.file = map->file,
		.line = map->line,
		.column = map->column};
	if (read_times(map, &reading.scope, &options, &entry) && loader->problems->errors == errors)
		add_entry(loader, &entry);
}

void known_changes_read(struct loader *loader, const struct yaml_node *list)
{
	struct scope scope = {.loader = loader, .kind = "known_changes"};

	if (loader_is_null(list, &scope, NULL) ||
		!loader_is_kind(list, YAML_LIST, &scope, "a list of changes"))
		return;
	if (loader->config->known_change_count + list->count > ENTRIES_MOST) {
		loader_error(list, &scope, "more than %d entries", ENTRIES_MOST);
		return;
	}
	for (size_t i = 0; i < list->count; i++)
		read_entry(loader, list->items[i]);
}

void known_changes_read_file(struct loader *loader, const char *path)
{
	const struct yaml_node *root = NULL;
	struct buf content = {0};

	if (config_read_file(path, FILE_MOST, &content, loader->problems))
		root = yaml_parse(loader->arena, arena_strdup(loader->arena, path),
			content.data ? content.data : "", content.length, loader->problems);
	buf_free(&content);
	if (root && !loader_is_kind(root, YAML_MAP, &loader->root, "known_changes: and a list"))
		return;
	for (size_t i = 0; root && i < root->count; i++) {
		static const char *const keys[] = {"known_changes"};
		const struct yaml_node *key = root->entries[i].key;

		if (strcmp(key->text, keys[0]) == 0)
			known_changes_read(loader, root->entries[i].value);
		else
			loader_error(key, &loader->root, "unknown key \"%.80s\"%s", key->text,
				loader_hint(loader, key->text, keys, 1));
	}
}

/* Folders that do not exist are like files that do not. */
static int is_serious(const char *path, int problem)
{
	(void)path;
	return problem != ENOENT && problem != ENOTDIR;
}

static void read_matches(struct loader *loader, const struct yaml_node *where, const char *pattern)
{
	struct scope scope = {.loader = loader, .kind = "known_changes_files"};
	glob_t found = {0};
	int result;

	if (!strpbrk(pattern, "*?[")) {
		if (access(pattern, F_OK) == 0 || is_serious(pattern, errno))
			known_changes_read_file(loader, pattern);
		return;
	}
	result = glob(pattern, 0, is_serious, &found);
	if (result != 0 && result != GLOB_NOMATCH)
		loader_error(where, &scope, "\"%.200s\": a folder cannot be read", pattern);
	else if (result == 0 && found.gl_pathc > PATTERNS_MOST)
		loader_error(
			where, &scope, "\"%.200s\": more than %d files", pattern, PATTERNS_MOST);
	else
		for (size_t i = 0; result == 0 && i < found.gl_pathc; i++)
			known_changes_read_file(loader, found.gl_pathv[i]);
	globfree(&found);
}

void known_changes_read_files(struct loader *loader, const struct yaml_node *patterns)
{
	struct scope scope = {.loader = loader, .kind = "known_changes_files"};
	const struct yaml_node *const *items;
	size_t count = yaml_items(&patterns, &items);

	if (loader_is_null(patterns, &scope, NULL))
		return;
	if (count > PATTERNS_MOST) {
		loader_error(patterns, &scope, "more than %d patterns", PATTERNS_MOST);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const char *missing = NULL, *text;

		if (items[i]->kind != YAML_SCALAR || !*items[i]->text) {
			loader_error(items[i], &scope, "expected a list of files or patterns");
			continue;
		}
		text = loader_expand(loader, items[i], false, &missing);
		text = loader_path(loader, text, &missing);
		if (missing)
			loader_error(items[i], &scope, "${%s} is not set", missing);
		else
			read_matches(loader, items[i], loader_beside(loader, items[i], text));
	}
}

/* Writes the keys of entries: one below the other, or in braces. */
struct writer {
	struct buf *out;
	int indent; /* of the dash; -1: in braces */
	bool begun;
};

/* A value that is quoted, with its references escaped, or written as it is. */
static void put(struct writer *writer, const char *key, const char *text, bool quoted)
{
	struct buf plain = {0};

	if (writer->indent < 0)
		buf_text(writer->out, writer->begun ? ", " : "{");
	else
		buf_printf(writer->out, "%*s%s ", writer->indent, "", writer->begun ? " " : "-");
	buf_printf(writer->out, "%s: ", key);
	writer->begun = true;
	for (const char *at = text; *at; at++) {
		if (at[0] == '$' && at[1] == '{')
			buf_char(&plain, '$');
		buf_char(&plain, *at);
	}
	if (quoted)
		buf_json_text(writer->out, plain.data ? plain.data : "");
	else
		buf_text(writer->out, text);
	if (writer->indent >= 0)
		buf_char(writer->out, '\n');
	buf_free(&plain);
}

static void put_time(struct writer *writer, const char *key, int64_t time)
{
	char text[WHEN_TEXT];

	if (time != WHEN_ALWAYS && time != WHEN_NEVER)
		put(writer, key, when_format_iso(time, text), true);
}

static void put_entry(struct buf *out, int indent, const struct known_change *entry)
{
	struct writer writer = {.out = out, .indent = indent};
	char number[NUMBER_TEXT];

	put(&writer, "test", entry->test, true);
	if (entry->metric)
		put(&writer, "metric", entry->metric, true);
	if (entry->commit)
		put(&writer, "commit", entry->commit, true);
	put_time(&writer, "time", entry->from);
	if (entry->direction != 0)
		put(&writer, "direction", entry->direction > 0 ? "up" : "down", true);
	snprintf(number, sizeof number, "%.6g", fmin(entry->at_most, LARGEST));
	if (entry->at_most > 0)
		put(&writer, "at_most", number, false);
	put(&writer, "reason", entry->reason, true);
	put_time(&writer, "until", entry->until);
	if (indent < 0)
		buf_char(out, '}');
}

/* The place for new entries in a document. */
struct insertion {
	bool there; /* it has known_changes ... */
	bool fixed; /* ... to which nothing can be added: an alias, or a written null */
	bool flow;  /* in brackets */
	int indent; /* of the dashes */
	size_t entries;
	size_t line, column; /* from 0: the bracket, or the start of the line; else the end */
};

/* False if the document cannot have known changes, with the first problem. */
static bool find_place(const char *file, const char *text, size_t length, struct insertion *out,
	struct error *error)
{
	struct problems problems = {.arena = arena_new()};
	const struct yaml_node *root = yaml_parse(problems.arena, file, text, length, &problems);
	bool good = !root || root->kind == YAML_MAP;

	*out = (struct insertion){.indent = 2, .line = SIZE_MAX};
	for (size_t i = 0; good && root && i < root->count; i++) {
		const struct yaml_node *key = root->entries[i].key, *list = root->entries[i].value;
		bool null = yaml_is_null(list);

		if (strcmp(key->text, "known_changes") != 0)
			continue;
		good = null || list->kind == YAML_LIST;
		*out = (struct insertion){.there = true,
			.fixed = list->line < key->line ||
				 (list->line == key->line && list->column < key->column) ||
				 (null && *list->text),
			.flow = list->flow,
			.indent = null ? 2 : list->column - 1,
			.entries = list->count,
			.line = null ? (size_t)list->line : list->end_line,
			.column = list->flow ? list->end_column : 0};
	}
	if (problems.errors > 0)
		good = error_set(error, ERROR_USAGE, "%s", problems.items[0].text);
	else if (!good)
		error_set(error, ERROR_USAGE, "%s: expected known_changes: and a list", file);
	arena_free(problems.arena);
	return good;
}

/* The byte at the place; the end of the text if it has fewer lines. */
static size_t place_in(const char *text, size_t length, const struct insertion *place)
{
	size_t at = 0;

	for (size_t line = place->line; line > 0 && at < length; line--) {
		const char *end = memchr(text + at, '\n', length - at);

		at = end ? (size_t)(end - text) + 1 : length;
	}
	for (size_t i = 0; i < place->column && at < length; i++)
		for (at++; at < length && ((unsigned char)text[at] & 0xC0) == 0x80;)
			at++;
	return at;
}

bool known_changes_insert(const char *file, const char *text, size_t length,
	const struct known_change *entries, size_t count, struct buf *out, struct error *error)
{
	struct insertion place, after;
	struct error ignored;
	size_t at;

	if (!find_place(file, text, length, &place, error))
		return false;
	at = place_in(text, length, &place);
	buf_append(out, text, at);
	if (!place.flow && out->length > 0 && out->data[out->length - 1] != '\n')
		buf_char(out, '\n');
	if (!place.there)
		buf_text(out, out->length > 0 ? "\nknown_changes:\n" : "known_changes:\n");
	for (size_t i = 0; i < count; i++) {
		if (place.flow && place.entries + i > 0)
			buf_text(out, ", ");
		put_entry(out, place.flow ? -1 : place.indent, &entries[i]);
	}
	buf_append(out, text + at, length - at);
	if (!place.fixed && find_place(file, out->data, out->length, &after, &ignored) &&
		after.entries == place.entries + count)
		return true;
	return error_set(error, ERROR_USAGE,
		"%s: cannot add to its known_changes: expected a block list (lines beginning with "
		"a dash)",
		file);
}

/* The folder of a file must exist, or be named .hunter: the first file of that makes the folder. */
static bool check_folder(const char *path, bool make, struct error *error)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash && slash > path ? strndup(path, (size_t)(slash - path)) : NULL;
	bool there = !folder || access(folder, F_OK) == 0 || errno != ENOENT, good = false;
	const char *name = folder ? strrchr(folder, '/') : NULL;

	if (!there && strcmp(name ? name + 1 : folder, ".hunter") != 0)
		error_set(error, ERROR_DATA,
			"%s: cannot write the file: no folder %s, and only one named "
			".hunter is created",
			path, folder);
	else if (!there && make && mkdir(folder, 0777) != 0)
		(void)error_set(
			error, ERROR_DATA, "%s: cannot write the file: %s", path, strerror(errno));
	else
		good = make || output_check(there ? path : folder, error);
	free(folder);
	return good;
}

static bool same_entry(const struct known_change *a, const struct known_change *b)
{
	return order_same(a->test, b->test) && order_same(a->metric, b->metric) &&
	       order_same(a->commit, b->commit) && order_same(a->reason, b->reason) &&
	       a->from == b->from && a->to == b->to && a->direction == b->direction &&
	       fabs(a->at_most - b->at_most) <= 1e-5 * a->at_most && a->until == b->until;
}

/* A file that has keys is one of known changes, or a configuration. */
static void check_kind(struct loader *loader, const struct yaml_node *root)
{
	static const char *const keys[] = {"known_changes", "known_changes_files", "tests",
		"test_groups", "templates", "detection"};
	bool good = !root || root->kind != YAML_MAP || root->count == 0;

	for (size_t i = 0; !good && i < sizeof keys / sizeof *keys; i++)
		good = yaml_get(root, keys[i]) != NULL;
	if (!good)
		loader_error(root->entries[0].key, &loader->root,
			"cannot add to this file: it is neither a known_changes file nor a "
			"configuration");
}

/* The entries of a file; false after a problem with them. */
static bool read_entries(const char *path, const struct buf *content, struct config *config,
	struct problems *problems)
{
	static const struct config_source source = {0};
	struct arena *arena = problems->arena;
	struct loader loader = {.root = {.loader = &loader},
		.arena = arena,
		.source = &source,
		.problems = problems,
		.config = config,
		.reported = {.arena = arena},
		.unexpanded = {.arena = arena}};
	const struct yaml_node *root = yaml_parse(
		arena, path, content->data ? content->data : "", content->length, problems);
	const struct yaml_node *list = yaml_get(root, "known_changes");

	check_kind(&loader, root);
	if (list)
		known_changes_read(&loader, list);
	return problems->errors == 0;
}

/* The entries that the file does not have yet; returns their number. */
static size_t leave_out(const struct config *config, const struct known_change *entries,
	size_t count, struct known_change *out)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		bool there = false;

		for (size_t j = 0; j < config->known_change_count && !there; j++)
			there = same_entry(&entries[i], &config->known_changes[j]);
		for (size_t j = 0; j < kept && !there; j++)
			there = same_entry(&entries[i], &out[j]);
		if (!there)
			out[kept++] = entries[i];
	}
	return kept;
}

bool known_changes_write(const char *path, const struct known_change *entries, size_t count,
	size_t *added, struct error *error)
{
	struct problems problems = {.arena = arena_new()};
	struct known_change *fresh = arena_array(problems.arena, count, sizeof *fresh);
	struct buf content = {0}, changed = {0};
	struct config config = {0};
	bool there = access(path, F_OK) == 0 || errno != ENOENT;
	bool read = !there || config_read_file(path, FILE_MOST, &content, &problems);
	bool fine = read && read_entries(path, &content, &config, &problems);
	bool good = fine && check_folder(path, count > 0, error);

	*added = good ? leave_out(&config, entries, count, fresh) : 0;
	if (!fine)
		error_set(error, read ? ERROR_USAGE : ERROR_DATA, "%s", problems.items[0].text);
	else if (good && (*added > 0 || count == 0))
		good = known_changes_insert(path, content.data ? content.data : "", content.length,
			fresh, *added, &changed, error);
	if (good && *added > 0)
		good = output_write(path, changed.data, changed.length, error);
	buf_free(&content);
	buf_free(&changed);
	arena_free(problems.arena);
	return good;
}
