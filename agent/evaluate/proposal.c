/*
 * A file is a list of lines, each of which knows its number in the file as it was, so the diff
 * follows from the lists. Edits make new lists and keep the old ones, so an attempt whose result is
 * wrong is undone by dropping it.
 */
#include "agent/evaluate/proposal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/files.h"

enum {
	CONTEXT = 3,   /* lines around a change */
	PATH_MOST = 5, /* keys down to a `detection` */
	PLACES_MOST = 100,
};

struct line {
	const char *text; /* without its end */
	size_t length;
	size_t origin; /* number of the line in the file, from 1; 0: new */
};

struct edited {
	const char *name;
	const struct line *lines, *original;
	size_t count, original_count;
	bool unended, was_unended; /* the last line has no end */
	bool *closed; /* of each original line: part of a section that may hold secrets */
};

/* A place for a setting: a map in one of the files, by the keys that lead to it. */
struct place {
	size_t file;
	const char *keys[PATH_MOST];
	size_t depth;
};

struct proposal {
	struct arena *arena;
	const char *path;
	struct config_source source;
	struct config *config; /* the configuration of the edited files */
	struct edited *files;
	size_t file_count;

	/* Of the call that adds settings */
	const struct setting *settings;
	size_t setting_count;
	proposal_choice *chosen;
	void *context;
	const struct yaml_node **roots; /* of each file, before it */
	struct place places[PLACES_MOST];
	size_t place_count;
	bool failed; /* more places needed than allowed, or a part has none */
};

static const struct line *split(struct arena *arena, const char *text, size_t length, size_t *count)
{
	size_t room = 1, at = 0;
	for (size_t i = 0; i < length; i++)
		room += text[i] == '\n';
	struct line *lines = arena_array(arena, room, sizeof *lines);
	for (*count = 0; at < length; (*count)++) {
		const char *end = memchr(text + at, '\n', length - at);
		size_t size = end ? (size_t)(end - text) - at : length - at;
		lines[*count] = (struct line){text + at, size, *count + 1};
		at += size + 1;
	}
	return lines;
}

/* The file as it is now. */
static const char *text_of(const struct proposal *proposal, size_t number, size_t *length)
{
	const struct edited *file = &proposal->files[number];
	struct buf out = {.secret = true};
	for (size_t i = 0; i < file->count; i++) {
		buf_append(&out, file->lines[i].text, file->lines[i].length);
		if (i + 1 < file->count || !file->unended)
			buf_char(&out, '\n');
	}
	*length = out.length;
	return buf_keep(&out, proposal->arena);
}

/* Its tree; NULL if it has none. */
static const struct yaml_node *parse(const struct proposal *proposal, size_t file)
{
	struct problems problems = {.arena = proposal->arena};
	size_t length;
	const char *text = text_of(proposal, file, &length);
	const struct yaml_node *root =
		yaml_parse(proposal->arena, proposal->files[file].name, text, length, &problems);
	return root && root->kind == YAML_MAP && problems.errors == 0 ? root : NULL;
}

/* Secrets are in the sections of servers and receivers. */
static bool is_open(const char *section)
{
	static const char *const open[] = {"agent", "detection", "templates", "tests",
		"test_groups", "mute_times", "known_changes", "known_changes_files"};
	for (size_t i = 0; i < sizeof open / sizeof *open; i++)
		if (strcmp(section, open[i]) == 0)
			return true;
	return false;
}

static bool read_file(struct proposal *proposal, size_t number, struct problems *problems)
{
	struct edited *file = &proposal->files[number];
	struct buf content = {.secret = true};
	if (!config_read_file(file->name, CONFIG_BYTES_MAX, &content, problems))
		return false;
	size_t length = content.length;
	const char *text = buf_keep(&content, proposal->arena);
	file->lines = file->original = split(proposal->arena, text, length, &file->count);
	file->original_count = file->count;
	file->unended = file->was_unended = length > 0 && text[length - 1] != '\n';
	const struct yaml_node *root = parse(proposal, number);
	file->closed = arena_array(proposal->arena, file->count + 1, sizeof *file->closed);
	for (size_t i = 0; root && i < root->count; i++) {
		const struct yaml_node *key = root->entries[i].key;
		bool closed = !is_open(key->text);
		for (size_t k = (size_t)key->line; k <= file->count; k++)
			file->closed[k - 1] = closed;
	}
	return true;
}

struct proposal *proposal_new(
	const char *path, const struct config_source *source, struct error *error)
{
	struct arena *arena = arena_new();
	struct proposal *proposal = arena_alloc(arena, sizeof *proposal);
	struct problems problems = {.arena = arena};
	struct strings files = {0};
	arena_holds_secrets(arena);
	*proposal = (struct proposal){
		.arena = arena, .path = arena_strdup(arena, path), .source = *source};
	proposal->config = config_load(path, source, &problems);
	bool good = proposal->config && config_files(path, arena, &files, &problems);
	proposal->files = arena_array(arena, files.count, sizeof *proposal->files);
	for (size_t i = 0; i < files.count && good; i++) {
		proposal->files[proposal->file_count++] = (struct edited){.name = files.items[i]};
		good = read_file(proposal, i, &problems);
	}
	if (good)
		return proposal;
	error_set(error, ERROR_USAGE, "%s",
		problems.count > 0 ? problems.items[0].text : "the configuration has errors");
	proposal_free(proposal);
	return NULL;
}

void proposal_free(struct proposal *proposal)
{
	if (!proposal)
		return;
	config_free(proposal->config);
	arena_free(proposal->arena);
}

/* Puts a line with that text in the place of the line, or, if it `inserts`, before it. */
static void put_line(
	struct proposal *proposal, size_t file, size_t line, bool inserts, const char *text)
{
	struct edited *edited = &proposal->files[file];
	struct line *lines = arena_array(proposal->arena, edited->count + 1, sizeof *lines);
	size_t next = line + !inserts;
	memcpy(lines, edited->lines, line * sizeof *lines);
	lines[line] = (struct line){text, strlen(text), 0};
	memcpy(lines + line + 1, edited->lines + next, (edited->count - next) * sizeof *lines);
	edited->lines = lines;
	edited->count += inserts;
}

/* Puts `with` in the place of `length` bytes at `at` in the line. */
static void replace(struct proposal *proposal, size_t file, size_t line, size_t at, size_t length,
	const char *with)
{
	const struct line *old = &proposal->files[file].lines[line];
	put_line(proposal, file, line, false,
		arena_printf(proposal->arena, "%.*s%s%.*s", (int)at, old->text, with,
			(int)(old->length - at - length), old->text + at + length));
}

/* Adds a line before the given one, with the same line end. */
static void insert(struct proposal *proposal, size_t file, size_t before, const char *text)
{
	const struct edited *edited = &proposal->files[file];
	const struct line *like = &edited->lines[before > 0 ? before - 1 : 0];
	bool returns =
		edited->count > 0 && like->length > 0 && like->text[like->length - 1] == '\r';
	put_line(proposal, file, before, true,
		returns ? arena_printf(proposal->arena, "%s\r", text) : text);
}

/* At the end of the file, whose last line gets an end. */
static void append(struct proposal *proposal, size_t file, const char *text)
{
	struct edited *edited = &proposal->files[file];
	if (edited->unended && edited->count > 0)
		replace(proposal, file, edited->count - 1, 0, 0, "");
	edited->unended = false;
	insert(proposal, file, edited->count, text);
}

/* Where the column, which counts characters, is in the line. False if it is not there. */
static bool find_column(
	const struct edited *file, const struct yaml_node *node, size_t *line, size_t *at)
{
	if (node->line < 1 || (size_t)node->line > file->count)
		return false;
	*line = (size_t)node->line - 1;
	const struct line *text = &file->lines[*line];
	*at = 0;
	for (int column = 1; column < node->column; column++) {
		if (*at >= text->length)
			return false;
		for ((*at)++;
			*at < text->length && ((unsigned char)text->text[*at] & 0xC0) == 0x80;)
			(*at)++;
	}
	return *at <= text->length;
}

static bool starts_with(const struct line *line, size_t at, const char *text)
{
	size_t length = strlen(text);
	return length <= line->length - at && memcmp(line->text + at, text, length) == 0;
}

/* The length of the scalar at this place; 0 if it is neither plain nor quoted, or is empty. */
static size_t written(
	struct proposal *proposal, const struct line *line, size_t at, const struct yaml_node *node)
{
	static const char *const marks[] = {"", "'", "\""};
	for (size_t i = node->quoted ? 1 : 0; i < (node->quoted ? 3 : 1); i++) {
		const char *whole =
			arena_printf(proposal->arena, "%s%s%s", marks[i], node->text, marks[i]);
		if (*node->text && starts_with(line, at, whole))
			return strlen(whole);
	}
	return 0;
}

static const struct yaml_entry *find_entry(
	const struct yaml_node *map, const char *name, const char *alias)
{
	for (size_t i = 0; i < map->count; i++) {
		const char *key = map->entries[i].key->text;
		if (strcmp(key, name) == 0 || (alias && strcmp(key, alias) == 0))
			return &map->entries[i];
	}
	return NULL;
}

/*
 * Adds "key: value" to a map: in braces as its first entry; else on a line of its own behind a
 * first entry of one line, or before the first entry that begins one.
 */
static bool add_to_map(
	struct proposal *proposal, size_t file, const struct yaml_node *map, const char *text)
{
	struct edited *edited = &proposal->files[file];
	size_t line, at;
	if (!find_column(edited, map, &line, &at))
		return false;
	if (at < edited->lines[line].length && edited->lines[line].text[at] == '{') {
		replace(proposal, file, line, at + 1, 0,
			map->count > 0 ? arena_printf(proposal->arena, "%s, ", text) : text);
		return true;
	}
	for (size_t i = 0; i < map->count; i++) {
		const struct yaml_entry *entry = &map->entries[i];
		if (!find_column(edited, entry->key, &line, &at) ||
			strspn(edited->lines[line].text, " ") < at)
			continue;
		bool one_line = entry->value->kind == YAML_SCALAR &&
				entry->value->line == entry->key->line &&
				!strchr(entry->value->text, '\n');
		insert(proposal, file, one_line ? line + 1 : line,
			arena_printf(proposal->arena, "%*s%s", (int)at, "", text));
		return true;
	}
	return false;
}

/* Gives a key another value; one without a value, if it `fills`: "key:" becomes "key: value". */
static bool change_value(struct proposal *proposal, size_t file, const struct yaml_entry *entry,
	bool fills, const char *text)
{
	const struct edited *edited = &proposal->files[file];
	const struct yaml_node *node = fills ? entry->key : entry->value;
	size_t line, at, length;
	if (node->kind != YAML_SCALAR || !find_column(edited, node, &line, &at))
		return false;
	length = written(proposal, &edited->lines[line], at, node);
	if (!fills) {
		if (length > 0)
			replace(proposal, file, line, at, length, text);
		return length > 0;
	}
	at += length;
	if (!starts_with(&edited->lines[line], at, ":") || *entry->value->text)
		return false;
	replace(proposal, file, line, at + 1, 0, arena_printf(proposal->arena, " %s", text));
	return true;
}

/* Sets `name` in the map at the place, creating missing maps. */
static bool edit(struct proposal *proposal, const struct place *place, const char *name,
	const char *alias, const char *value)
{
	const struct yaml_node *node = parse(proposal, place->file);
	const struct yaml_entry *entry = NULL;
	const char *text = arena_printf(proposal->arena, "%s: %s", name, value);
	size_t depth = 0;
	for (; node && node->kind == YAML_MAP && depth < place->depth; depth++) {
		entry = find_entry(node, place->keys[depth], NULL);
		if (!entry || yaml_is_null(entry->value))
			break;
		node = entry->value;
	}
	if (!node || node->kind != YAML_MAP)
		return false;
	if (depth == place->depth) {
		entry = find_entry(node, name, alias);
		return entry ? change_value(proposal, place->file, entry, false, value)
			     : add_to_map(proposal, place->file, node, text);
	}
	if (depth == 0 && !entry) {
		append(proposal, place->file, "");
		append(proposal, place->file, arena_printf(proposal->arena, "%s:", *place->keys));
		append(proposal, place->file, arena_printf(proposal->arena, "  %s", text));
		return place->depth == 1;
	}
	for (size_t i = place->depth; i-- > depth + 1;)
		text = arena_printf(proposal->arena, "%s: {%s}", place->keys[i], text);
	text = arena_printf(proposal->arena, "{%s}", text);
	if (entry)
		return change_value(proposal, place->file, entry, true, text);
	return add_to_map(proposal, place->file, node,
		arena_printf(proposal->arena, "%s: %s", place->keys[depth], text));
}

static struct config *load(const struct proposal *proposal)
{
	struct config_source source = proposal->source;
	struct problems problems = {.arena = proposal->arena};
	struct config_text *texts =
		arena_array(proposal->arena, proposal->file_count, sizeof *texts);
	for (size_t i = 0; i < proposal->file_count; i++) {
		texts[i].file = proposal->files[i].name;
		texts[i].text = text_of(proposal, i, &texts[i].length);
	}
	source.texts = texts;
	source.text_count = proposal->file_count;
	return config_load(proposal->path, &source, &problems);
}

/* The number of detections: a test that names its metrics has no others. */
static size_t detections(const struct test *test)
{
	return test->metric_count > 0 ? test->metric_count : 1;
}

static const struct detection *detection_at(const struct test *test, size_t i)
{
	return test->metric_count > 0 ? &test->detections[i] : &test->detection;
}

static bool is_chosen(const struct proposal *proposal, const struct test *test, size_t i)
{
	return proposal->chosen(proposal->context, test, detection_at(test, i));
}

/* How many of the test's detections are chosen. */
static size_t chosen_of(const struct proposal *proposal, const struct test *test)
{
	size_t count = 0;
	for (size_t i = 0; i < detections(test); i++)
		count += is_chosen(proposal, test, i);
	return count;
}

/* The detection with the settings, as text; NULL if its detector refuses them. */
static const char *expected(const struct proposal *proposal, const struct detection *detection)
{
	const struct schema *schema = proposal->source.schema;
	struct detection out = *detection;
	struct error error;
	for (size_t i = 0; i < proposal->setting_count; i++) {
		const struct setting *setting = &proposal->settings[i];
		const struct detection base = out;
		if (!(strcmp(setting->name, "confirm") == 0
				    ? confirm_parse(setting->value, &out.confirm, &error)
				    : detection_overlay(schema, &base, setting, 1, proposal->arena,
					      &out, &error)))
			return NULL;
	}
	return detection_text(schema, &out, proposal->arena);
}

/* Whether the new configuration has the settings, and nothing else differs. */
static bool holds(const struct proposal *proposal, const struct config *config)
{
	const struct config *before = proposal->config;
	const struct schema *schema = proposal->source.schema;
	struct arena *arena = proposal->arena;
	if (!config || config->test_count != before->test_count)
		return false;
	for (size_t t = 0; t < before->test_count; t++) {
		const struct test *was = &before->tests[t], *is = config_test(config, was->name);
		if (!is || is->metric_count != was->metric_count)
			return false;
		for (size_t i = 0; i < detections(was); i++) {
			const struct detection *old = detection_at(was, i);
			const char *now = detection_text(schema, detection_at(is, i), arena);
			const char *then = is_chosen(proposal, was, i)
						   ? expected(proposal, old)
						   : detection_text(schema, old, arena);
			if (!then || strcmp(now, then) != 0)
				return false;
		}
	}
	return true;
}

static const char *alias_of(const struct proposal *proposal, const char *name)
{
	const struct config *config = proposal->config;
	for (size_t t = 0; t < config->test_count; t++)
		for (size_t i = 0; i < detections(&config->tests[t]); i++) {
			const struct detection *detection = detection_at(&config->tests[t], i);
			const struct field *field = field_find(detection->detector->fields, name);
			if (field && is_chosen(proposal, &config->tests[t], i))
				return field->alias;
		}
	return NULL;
}

/* Makes the edits at all places; drops them if the result is not the one wanted. */
static bool try_places(struct proposal *proposal)
{
	struct edited *kept = arena_array(proposal->arena, proposal->file_count, sizeof *kept);
	bool good = !proposal->failed && proposal->place_count > 0;
	memcpy(kept, proposal->files, proposal->file_count * sizeof *kept);
	for (size_t i = 0; i < proposal->place_count && good; i++)
		for (size_t s = 0; s < proposal->setting_count && good; s++)
			good = edit(proposal, &proposal->places[i], proposal->settings[s].name,
				alias_of(proposal, proposal->settings[s].name),
				proposal->settings[s].value);
	struct config *config = good ? load(proposal) : NULL;
	good = holds(proposal, config);
	config_free(good ? proposal->config : config);
	if (good)
		proposal->config = config;
	else
		memcpy(proposal->files, kept, proposal->file_count * sizeof *kept);
	return good;
}

static void add_place(struct proposal *proposal, const struct place *place)
{
	for (size_t i = 0; i < proposal->place_count; i++) {
		const struct place *known = &proposal->places[i];
		bool same = known->file == place->file && known->depth == place->depth;
		for (size_t k = 0; k < place->depth && same; k++)
			same = strcmp(known->keys[k], place->keys[k]) == 0;
		if (same)
			return;
	}
	proposal->failed = proposal->failed || proposal->place_count == PLACES_MOST ||
			   place->file == proposal->file_count;
	if (!proposal->failed)
		proposal->places[proposal->place_count++] = *place;
}

/* The file that has the section, and the entry in it if that is named; their number if none has. */
static size_t find_file(const struct proposal *proposal, const char *section, const char *name,
	const struct yaml_node **found)
{
	for (size_t i = 0; i < proposal->file_count; i++) {
		*found = yaml_get(proposal->roots[i], section);
		if (name)
			*found = yaml_get(*found, name);
		if (*found)
			return i;
	}
	return proposal->file_count;
}

static void file_places(struct proposal *proposal)
{
	const struct config *config = proposal->config;
	const struct yaml_node *found;
	struct place place = {.keys = {"detection"}, .depth = 1};
	place.file = find_file(proposal, "detection", NULL, &found);
	for (size_t i = 0; i < config->test_count && place.file == proposal->file_count; i++)
		if (chosen_of(proposal, &config->tests[i]) > 0)
			place.file = find_file(proposal, "tests", config->tests[i].name, &found);
	add_place(proposal, &place);
}

/* The last template that the test inherits itself and that has a detection; NULL: none. */
static const char *template_of(
	const struct proposal *proposal, const struct yaml_node *test, size_t *file)
{
	const struct yaml_node *inherit = yaml_get(test, "inherit"), *found;
	size_t count = !inherit ? 0 : inherit->kind == YAML_LIST ? inherit->count : 1;
	for (size_t i = count; i-- > 0;) {
		const struct yaml_node *name =
			inherit->kind == YAML_LIST ? inherit->items[i] : inherit;
		if (name->kind != YAML_SCALAR)
			continue;
		*file = find_file(proposal, "templates", name->text, &found);
		if (*file < proposal->file_count && yaml_get(found, "detection"))
			return name->text;
	}
	return NULL;
}

enum way { WAY_FILE, WAY_TEMPLATES, WAY_TESTS, WAY_METRICS, WAYS };

static void metric_places(struct proposal *proposal, const struct test *test,
	const struct yaml_node *node, const struct place *whole)
{
	bool all = chosen_of(proposal, test) == detections(test);
	if (all)
		add_place(proposal, whole);
	for (size_t i = 0; i < test->metric_count; i++) {
		const char *name = test->metrics[i].name;
		const struct yaml_node *metric = yaml_get(yaml_get(node, "metrics"), name);
		const struct place place = {whole->file,
			{"tests", test->name, "metrics", name, "detection"}, PATH_MOST};
		if (!is_chosen(proposal, test, i) || (all && !yaml_get(metric, "detection")))
			continue;
		proposal->failed = proposal->failed || !yaml_get(node, "metrics");
		add_place(proposal, &place);
	}
}

static void test_places(struct proposal *proposal, enum way way)
{
	const struct config *config = proposal->config;
	for (size_t i = 0; i < config->test_count && !proposal->failed; i++) {
		const struct test *test = &config->tests[i];
		const struct yaml_node *node = NULL;
		size_t file;
		if (chosen_of(proposal, test) == 0)
			continue;
		struct place place = {.file = find_file(proposal, "tests", test->name, &node),
			.keys = {"tests", test->name, "detection"},
			.depth = 3};
		const char *template = way == WAY_TEMPLATES && !yaml_get(node, "detection")
					       ? template_of(proposal, node, &file)
					       : NULL;
		if (template)
			place = (struct place){file, {"templates", template, "detection"}, 3};
		if (way == WAY_METRICS)
			metric_places(proposal, test, node, &place);
		else
			add_place(proposal, &place);
	}
}

/* The file's own `detection:` comes first if it is that of most detections, else last. */
bool proposal_set(struct proposal *proposal, const struct setting *settings, size_t count,
	proposal_choice *chosen, void *context, struct error *error)
{
	static const enum way widest_first[WAYS] = {
		WAY_FILE, WAY_TEMPLATES, WAY_TESTS, WAY_METRICS};
	static const enum way file_last[WAYS] = {WAY_TEMPLATES, WAY_TESTS, WAY_METRICS, WAY_FILE};
	const struct config *config = proposal->config;
	size_t all = 0, wanted = 0;
	proposal->settings = settings;
	proposal->setting_count = count;
	proposal->chosen = chosen;
	proposal->context = context;
	proposal->roots =
		arena_array(proposal->arena, proposal->file_count, sizeof *proposal->roots);
	for (size_t i = 0; i < proposal->file_count; i++)
		proposal->roots[i] = parse(proposal, i);
	for (size_t i = 0; i < config->test_count; i++) {
		all += detections(&config->tests[i]);
		wanted += chosen_of(proposal, &config->tests[i]);
	}
	for (size_t i = 0; i < WAYS; i++) {
		enum way way = 2 * wanted >= all ? widest_first[i] : file_last[i];
		proposal->place_count = 0;
		proposal->failed = false;
		if (way == WAY_FILE)
			file_places(proposal);
		else
			test_places(proposal, way);
		if (try_places(proposal))
			return true;
	}
	return error_set(error, ERROR_USAGE, "%s cannot set this for these metrics only%s",
		proposal->path, proposal->failed ? ", or too many of them" : "");
}

/* A line of a diff: old, new or both. */
struct diff_line {
	char mark; /* ' ', '-' or '+' */
	bool unended, closed;
	const struct line *line;
};

struct diff {
	struct diff_line *lines;
	size_t count;
};

static void add_lines(
	struct diff *diff, const struct edited *file, char mark, size_t from, size_t to)
{
	bool old = mark != '+';
	const struct line *lines = old ? file->original : file->lines;
	size_t last = old ? file->original_count : file->count;
	bool unended = old ? file->was_unended : file->unended;
	for (size_t i = from; i < to; i++)
		diff->lines[diff->count++] = (struct diff_line){
			mark, i + 1 == last && unended, mark == ' ' && file->closed[i], &lines[i]};
}

/* All lines of both, in order. */
static struct diff compare(struct arena *arena, const struct edited *file)
{
	struct diff diff = {
		arena_array(arena, file->count + file->original_count, sizeof *diff.lines), 0};
	size_t next = 0; /* the first original line not yet compared */
	for (size_t i = 0, added = 0; i <= file->count; i++) {
		bool end = i == file->count;
		size_t origin = end ? file->original_count + 1 : file->lines[i].origin;
		if (origin == 0)
			continue;
		add_lines(&diff, file, '-', next, origin - 1);
		add_lines(&diff, file, '+', added, i);
		if (!end)
			add_lines(&diff, file, ' ', origin - 1, origin);
		next = origin;
		added = i + 1;
	}
	return diff;
}

static bool is_context(const struct diff *diff, size_t i)
{
	return diff->lines[i].mark == ' ' && !diff->lines[i].closed;
}

/* The end of the hunk that begins with the change at `from`. */
static size_t hunk_end(const struct diff *diff, size_t from)
{
	size_t end = from;
	for (size_t i = from, same = 0; i < diff->count; i++) {
		same = diff->lines[i].mark == ' ' ? same + 1 : 0;
		if ((same > 0 && !is_context(diff, i)) || same > 2 * CONTEXT)
			break;
		end = same <= CONTEXT ? i + 1 : end;
		if (same == 0)
			end = i + 1;
	}
	return end;
}

static size_t count_lines(const struct diff *diff, size_t from, size_t to, char without)
{
	size_t count = 0;
	for (size_t i = from; i < to; i++)
		count += diff->lines[i].mark != without;
	return count;
}

static void put_hunk(const struct diff *diff, size_t from, size_t to, struct buf *out)
{
	size_t old = count_lines(diff, from, to, '+'), new = count_lines(diff, from, to, '-');
	size_t old_at = count_lines(diff, 0, from, '+') + (old > 0);
	size_t new_at = count_lines(diff, 0, from, '-') + (new > 0);
	buf_printf(out, "@@ -%zu,%zu +%zu,%zu @@\n", old_at, old, new_at, new);
	for (size_t i = from; i < to; i++) {
		const struct diff_line *line = &diff->lines[i];
		buf_char(out, line->mark);
		buf_append(out, line->line->text, line->line->length);
		buf_text(out, line->unended ? "\n\\ No newline at end of file\n" : "\n");
	}
}

/* The name by which patch finds the file in the current folder, or else in the one it names. */
static const char *name_of(struct arena *arena, const char *path, const char **folder)
{
	char *here = getcwd(NULL, 0), *real = realpath(path, NULL);
	size_t length = here ? strlen(here) : 0;
	*folder = NULL;
	if (here && real && strncmp(real, here, length) == 0 && real[length] == '/')
		path = arena_strdup(arena, real + length + 1);
	else {
		path = arena_strdup(arena, real ? real : path);
		const char *slash = strrchr(path, '/');
		if (slash) {
			*folder = arena_strndup(
				arena, path, (size_t)(slash - path) + (slash == path));
			path = slash + 1;
		}
	}
	free(here);
	free(real);
	return path;
}

static void put_file(struct arena *arena, const struct edited *file, struct buf *out)
{
	const struct diff diff = compare(arena, file);
	const char *folder, *name = name_of(arena, file->name, &folder);
	size_t told = 0;
	for (size_t i = 0; i < diff.count; i++) {
		if (diff.lines[i].mark == ' ')
			continue;
		size_t from = i, to = hunk_end(&diff, i);
		while (from > told && i - from < CONTEXT && is_context(&diff, from - 1))
			from--;
		if (told == 0 && folder)
			buf_printf(out, "in %s:\n", folder);
		if (told == 0)
			buf_printf(out, "--- %s\n+++ %s\n", name, name);
		put_hunk(&diff, from, to, out);
		told = to;
		i = to - 1;
	}
}

void proposal_put_diff(const struct proposal *proposal, struct buf *out)
{
	for (size_t i = 0; i < proposal->file_count; i++)
		put_file(proposal->arena, &proposal->files[i], out);
}
