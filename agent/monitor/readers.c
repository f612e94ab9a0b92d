#include "agent/monitor/readers.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/dict.h"
#include "agent/base/log.h"
#include "agent/base/matcher.h"
#include "sources/source.h"

enum {
	MOST_ALTERNATIVES = 256, /* of the braces of a part of a path; more count as * */
	MOST_TAGS = 64,          /* of a path */
	TESTS_OF_SCRATCH = 256,  /* after which unused memory is freed */
};

/* A test in the list of those that read the same. */
struct reader {
	uint32_t test;
	const struct reader *next;
};

/* A node of paths with wildcards: the parts that may follow. */
struct part {
	size_t number;
	const struct reader *readers; /* of paths that end here */
	struct strings patterns;      /* any of which the part matches; none: it is known by name */
	struct part *patterned, *next; /* the first that follows and has patterns; its sibling */
};

struct selector {
	const char *name; /* NULL: any */
	struct matchers matchers;
	uint32_t test;
	const struct selector *next, *next_named;
};

/* Selectors of series, by the key under which they are looked up, and by their name. */
struct selectors {
	const char *name_label; /* the matchers' word for the name */
	struct selector *items;
	size_t count;
	struct dict keys, names;
	bool nameless;
};

struct readers {
	struct arena *arena, *scratch; /* scratch: while the index is made */
	const struct test *const *tests;
	size_t count;
	char *folder;                    /* the agent's */
	struct dict names, files, paths; /* of tests; -> struct reader */
	struct dict below;               /* beginnings of paths -> struct reader */
	struct dict parts;               /* "NUMBER.part" -> struct part */
	struct part root;
	size_t part_count;
	struct selectors tagged, series;
};

static void add_reader(struct readers *readers, const struct reader **list, uint32_t test)
{
	struct reader *reader;

	if (*list && (*list)->test == test)
		return;
	reader = arena_alloc(readers->arena, sizeof *reader);
	*reader = (struct reader){test, *list};
	*list = reader;
}

/* A place for a name that need not last. */
static const void **place_of(struct readers *readers, struct dict *dict, const char *name)
{
	if (!dict_get(dict, name))
		name = arena_strdup(readers->arena, name);
	return dict_place(dict, name);
}

static void add_name(struct readers *readers, struct dict *dict, const char *name, uint32_t test)
{
	const void **place = place_of(readers, dict, name);
	const struct reader *list = *place;

	add_reader(readers, &list, test);
	*place = list;
}

/* The path without ".", ".." and repeated slashes, from the root. */
static const char *whole_path(const char *folder, const char *path, struct arena *arena)
{
	char *whole = arena_printf(arena, "%s/%s", *path == '/' ? "" : folder, path), *to = whole;

	for (const char *at = whole; *at;) {
		size_t length;

		at += strspn(at, "/");
		length = strcspn(at, "/");
		if (length == 2 && at[0] == '.' && at[1] == '.') {
			while (to > whole && *--to != '/')
				continue;
		} else if (length > 0 && !(length == 1 && *at == '.')) {
			*to++ = '/';
			memmove(to, at, length);
			to += length;
		}
		at += length;
	}
	*to = '\0';
	return whole;
}

/* Paths with wildcards. */

/* Replaces the first pair of braces by each of its alternatives, and so on. False: too many. */
static bool expand(struct arena *arena, const char *text, struct strings *out)
{
	const char *open = strchr(text, '{'), *close = open ? strchr(open, '}') : NULL;
	const char **items;

	if (!close) {
		if (out->count == MOST_ALTERNATIVES)
			return false;
		items = arena_grow(arena, (void *)(uintptr_t)out->items, out->count, sizeof *items);
		items[out->count] = text;
		*out = (struct strings){items, out->count + 1};
		return true;
	}
	for (const char *at = open + 1; at <= close;) {
		size_t length = strcspn(at, ",}");
		const char *one = arena_printf(
			arena, "%.*s%.*s%s", (int)(open - text), text, (int)length, at, close + 1);

		if (!expand(arena, one, out))
			return false;
		at += length + 1;
	}
	return true;
}

static struct part *next_part(
	struct readers *readers, struct part *before, const char *text, size_t length)
{
	const char *key =
		arena_printf(readers->scratch, "%zu.%.*s", before->number, (int)length, text);
	struct part *part = (struct part *)(uintptr_t)dict_get(&readers->parts, key);

	if (part)
		return part;
	part = arena_alloc(readers->arena, sizeof *part);
	*part = (struct part){.number = ++readers->part_count};
	*place_of(readers, &readers->parts, key) = part;
	if (memchr(text, '*', length) || memchr(text, '?', length) || memchr(text, '[', length) ||
		memchr(text, '{', length)) {
		static const char *const any[] = {"*"};

		if (!expand(readers->arena, arena_strndup(readers->arena, text, length),
			    &part->patterns))
			part->patterns = (struct strings){(const char **)(uintptr_t)any, 1};
		part->next = before->patterned;
		before->patterned = part;
	}
	return part;
}

static void add_path(struct readers *readers, const char *path, uint32_t test)
{
	struct part *part = &readers->root;
	size_t length;

	if (!path[strcspn(path, "*?[{")]) {
		add_name(readers, &readers->paths, path, test);
		return;
	}
	for (const char *at = path;; at += length + 1) {
		length = strcspn(at, ".");
		part = next_part(readers, part, at, length);
		if (!at[length])
			break;
	}
	add_reader(readers, &part->readers, test);
}

/* Selectors of series. */

/* A selector may begin with the name alone, in quotation marks: {"http.requests", job="a"}. */
static const char *quoted_name(const char **matchers, struct arena *arena)
{
	const char *at = *matchers + strspn(*matchers, " \t\r\n"), *to, *end;

	to = *at == '"' || *at == '\'' ? strchr(at + 1, *at) : NULL;
	if (!to || memchr(at, '\\', (size_t)(to - at)))
		return NULL;
	end = to + 1 + strspn(to + 1, " \t\r\n");
	if (*end && *end != ',')
		return NULL;
	*matchers = end + (*end == ',');
	return arena_strndup(arena, at + 1, (size_t)(to - at - 1));
}

/* Keeps the matchers, but for the one that is the name, which is returned. */
static const char *keep_matchers(struct readers *readers, const char *label,
	const struct matchers *read, struct matchers *out)
{
	struct matcher *kept = arena_array(readers->arena, read->count, sizeof *kept);
	const char *name = NULL;
	size_t count = 0;

	for (size_t i = 0; i < read->count; i++) {
		const struct matcher *item = &read->items[i];

		if (!name && item->operator== MATCHER_EQUAL && strcmp(item->name, label) == 0) {
			name = item->value;
			continue;
		}
		kept[count] = *item;
		kept[count].name = arena_strdup(readers->arena, item->name);
		kept[count++].value = arena_strdup(readers->arena, item->value);
	}
	*out = (struct matchers){kept, count};
	return name;
}

/* Matchers that cannot be read are ignored: a needless run is better than a missed one. */
static void add_selector(struct readers *readers, struct selectors *selectors,
	const struct source_reading *reading, uint32_t test)
{
	const char *text = reading->matchers ? reading->matchers : "", *name = reading->name;
	struct selector selector = {.test = test};
	struct matchers read;
	struct error error;

	if (!name)
		name = quoted_name(&text, readers->scratch);
	if (text[strspn(text, " \t\r\n,")] &&
		matchers_parse(text, readers->scratch, false, &read, &error)) {
		const char *equal =
			keep_matchers(readers, selectors->name_label, &read, &selector.matchers);

		name = name ? name : equal;
	}
	if (!name && selector.matchers.count == 0)
		return;
	selector.name = arena_strdup(readers->arena, name);
	selectors->items = arena_grow(
		readers->arena, selectors->items, selectors->count, sizeof *selectors->items);
	selectors->items[selectors->count++] = selector;
}

static const char *key_of(
	struct arena *arena, const struct selector *selector, const struct matcher *matcher)
{
	return arena_printf(arena, "%s\n%s\n%s", selector->name ? selector->name : "",
		matcher->name, matcher->value);
}

static bool is_key(const struct matcher *matcher)
{
	return matcher->operator== MATCHER_EQUAL && * matcher->value;
}

/* The key that fewest share, or the name. */
static const char *best_key(const struct selector *selector, const struct dict *counts)
{
	const char *best = selector->name ? selector->name : "";
	uintptr_t fewest = UINTPTR_MAX;

	for (size_t i = 0; i < selector->matchers.count; i++) {
		const struct matcher *matcher = &selector->matchers.items[i];
		const char *key = is_key(matcher) ? key_of(counts->arena, selector, matcher) : NULL;
		uintptr_t count = key ? (uintptr_t)dict_get(counts, key) : UINTPTR_MAX;

		if (count < fewest) {
			fewest = count;
			best = key;
		}
	}
	return best;
}

static void index_selectors(struct readers *readers, struct selectors *selectors)
{
	struct dict counts = {.arena = arena_new()};

	selectors->keys.arena = selectors->names.arena = readers->arena;
	for (size_t i = 0; i < selectors->count; i++) {
		const struct selector *selector = &selectors->items[i];

		for (size_t k = 0; k < selector->matchers.count; k++) {
			const struct matcher *matcher = &selector->matchers.items[k];
			const void **place;

			if (!is_key(matcher))
				continue;
			place = dict_place(&counts, key_of(counts.arena, selector, matcher));
			*place = (const void *)((uintptr_t)*place + 1);
		}
	}
	for (size_t i = 0; i < selectors->count; i++) {
		struct selector *selector = &selectors->items[i];
		const void **place =
			place_of(readers, &selectors->keys, best_key(selector, &counts));

		selector->next = *place;
		*place = selector;
		place = dict_place(&selectors->names, selector->name ? selector->name : "");
		selector->next_named = *place;
		*place = selector;
		selectors->nameless |= !selector->name;
	}
	arena_free(counts.arena);
}

static void add_test(struct readers *readers, const struct test *test, uint32_t number)
{
	const struct source *source = (const struct source *)test->source;
	struct query query = {.arena = readers->scratch,
		.test = test->name,
		.options = test->options,
		.server = test->server ? test->server->options : NULL,
		.metrics = test->metrics,
		.metric_count = test->metric_count};
	struct source_readings readings = {0};
	struct error error;

	if (test->unsupported)
		return;
	add_name(readers, &readers->names, test->name, number);
	if (!source->reads)
		return;
	if (!source->reads(&query, &readings, &error)) {
		log_event(LEVEL_DEBUG, "cannot determine the inputs of a test",
			LOG_TEXT("test", test->name), LOG_TEXT("problem", error.text));
		return;
	}
	for (size_t i = 0; i < readings.count; i++) {
		const struct source_reading *reading = &readings.items[i];
		const char *name = reading->name;

		switch (reading->kind) {
		case READING_PATH: add_path(readers, name, number); break;
		case READING_BELOW: add_name(readers, &readers->below, name, number); break;
		case READING_TAGGED:
			add_selector(readers, &readers->tagged, reading, number);
			break;
		case READING_SERIES:
			add_selector(readers, &readers->series, reading, number);
			break;
		case READING_FILE:
			add_name(readers, &readers->files,
				whole_path(readers->folder, name, readers->scratch), number);
			break;
		default: break;
		}
	}
}

struct readers *readers_new(const struct test *const *tests, size_t count)
{
	struct readers *readers = memory_new(1, sizeof *readers);
	struct arena *arena = arena_new();

	*readers = (struct readers){.arena = arena,
		.tests = tests,
		.count = count,
		.folder = getcwd(NULL, 0),
		.names.arena = arena,
		.files.arena = arena,
		.paths.arena = arena,
		.below.arena = arena,
		.parts.arena = arena,
		.tagged.name_label = "name",
		.series.name_label = "__name__"};
	if (!readers->folder)
		readers->folder = memory_strdup("");
	for (size_t i = 0; i < count; i++) {
		if (i % TESTS_OF_SCRATCH == 0) {
			arena_free(readers->scratch);
			readers->scratch = arena_new();
		}
		add_test(readers, tests[i], (uint32_t)i);
	}
	arena_free(readers->scratch);
	readers->scratch = NULL;
	index_selectors(readers, &readers->tagged);
	index_selectors(readers, &readers->series);
	return readers;
}

static void free_selectors(struct selectors *selectors)
{
	for (size_t i = 0; i < selectors->count; i++)
		matchers_free(&selectors->items[i].matchers);
}

void readers_free(struct readers *readers)
{
	if (!readers)
		return;
	free_selectors(&readers->tagged);
	free_selectors(&readers->series);
	arena_free(readers->arena);
	free(readers->folder);
	free(readers);
}

/* Looking up. */

struct found_readers found_readers_new(const struct readers *readers, struct arena *arena)
{
	return (struct found_readers){.readers = readers,
		.marked = arena_alloc(arena, readers->count),
		.tests = arena_array(arena, readers->count, sizeof(uint32_t))};
}

static bool found(struct found_readers *out, uint32_t test)
{
	if (!out->marked[test])
		out->tests[out->count++] = test;
	out->marked[test] = 1;
	return true;
}

static bool found_list(struct found_readers *out, const struct reader *list)
{
	bool any = list != NULL;

	for (; list; list = list->next)
		found(out, list->test);
	return any;
}

/* Follows the parts of a path, each of which ends with a NUL. */
static bool follow(struct found_readers *out, const struct part *part, const char *at,
	const char *end, struct buf *key)
{
	const struct part *named;
	bool any = false;

	if (at > end)
		return found_list(out, part->readers);
	const char *next = at + strlen(at) + 1;

	buf_clear(key);
	buf_printf(key, "%zu.%s", part->number, at);
	named = dict_get(&out->readers->parts, key->data);
	if (named && named->patterns.count == 0)
		any = follow(out, named, next, end, key);
	for (const struct part *p = part->patterned; p; p = p->next) {
		size_t i = 0;

		while (i < p->patterns.count &&
			fnmatch(p->patterns.items[i], at, FNM_NOESCAPE) != 0)
			i++;
		if (i < p->patterns.count)
			any |= follow(out, p, next, end, key);
	}
	return any;
}

struct lookup {
	const struct selectors *selectors;
	const struct written_series *series;
	const char *value;
};

static struct strings values_of(void *context, const char *name)
{
	struct lookup *lookup = context;
	const struct pair *labels = lookup->series->labels;
	bool there = strcmp(name, lookup->selectors->name_label) == 0;

	if (there)
		lookup->value = lookup->series->name;
	for (size_t i = 0; i < lookup->series->count && !there; i++) {
		there = strcmp(labels[i].key, name) == 0;
		lookup->value = labels[i].value;
	}
	return (struct strings){&lookup->value, there};
}

/* Of a series of which only the name is known, only matchers of the name count. */
static bool look_up_name(struct found_readers *out, struct lookup *lookup)
{
	const char *const names[] = {lookup->series->name, ""};
	bool any = false;

	for (size_t i = 0; i < (*names[0] ? 2 : 1); i++)
		for (const struct selector *at = dict_get(&lookup->selectors->names, names[i]); at;
			at = at->next_named) {
			struct matcher_effort effort = {0};
			bool matches = true;

			for (size_t k = 0; k < at->matchers.count && matches; k++) {
				const struct matcher *matcher = &at->matchers.items[k];

				matches =
					strcmp(matcher->name, lookup->selectors->name_label) != 0 ||
					matcher_matches(matcher, names[0], &effort);
			}
			if (matches)
				any |= found(out, at->test);
		}
	return any;
}

static bool look_up_key(struct found_readers *out, struct lookup *lookup, const char *key)
{
	bool any = false;

	for (const struct selector *at = dict_get(&lookup->selectors->keys, key); at; at = at->next)
		if (matchers_match(&at->matchers, values_of, lookup, NULL))
			any |= found(out, at->test);
	return any;
}

/* All keys that selectors of the series can have. */
static bool look_up(struct found_readers *out, const struct selectors *selectors,
	const struct written_series *series)
{
	struct lookup lookup = {.selectors = selectors, .series = series};
	const char *const names[] = {series->name, ""};
	struct buf key = {0};
	bool any = false;

	if (series->unlabelled)
		return look_up_name(out, &lookup);
	for (size_t i = 0; i < (selectors->nameless && *names[0] ? 2 : 1); i++) {
		any |= look_up_key(out, &lookup, names[i]);
		for (size_t k = 0; k < series->count; k++) {
			buf_clear(&key);
			buf_printf(&key, "%s\n%s\n%s", names[i], series->labels[k].key,
				series->labels[k].value);
			any |= look_up_key(out, &lookup, key.data);
		}
	}
	buf_free(&key);
	return any;
}

bool readers_of_series(struct found_readers *out, const struct written_series *series)
{
	return look_up(out, &out->readers->series, series);
}

/* "used;host=a;disk=sda" */
static bool look_up_tagged(struct found_readers *out, const char *path)
{
	char *text = memory_strdup(path), *rest = text, *name = strsep(&rest, ";"), *tag;
	struct pair tags[MOST_TAGS];
	struct written_series series = {.name = name, .labels = tags};
	bool any;

	while (series.count < MOST_TAGS && (tag = strsep(&rest, ";"))) {
		char *value = strchr(tag, '=');

		if (!value)
			continue;
		*value++ = '\0';
		tags[series.count++] = (struct pair){tag, value};
	}
	any = look_up(out, &out->readers->tagged, &series);
	free(text);
	return any;
}

bool readers_of_path(struct found_readers *out, const char *path)
{
	const struct readers *readers = out->readers;
	bool any = found_list(out, dict_get(&readers->paths, path));
	char *text = memory_strdup(path);
	struct buf key = {0};

	/* Afterwards each part of the path ends with a NUL. */
	for (char *dot; (dot = strrchr(text, '.'));) {
		*dot = '\0';
		any |= found_list(out, dict_get(&readers->below, text));
	}
	if (readers->part_count > 0)
		any |= follow(out, &readers->root, text, text + strlen(path), &key);
	if (readers->tagged.count > 0)
		any |= look_up_tagged(out, path);
	buf_free(&key);
	free(text);
	return any;
}

bool readers_of_file(struct found_readers *out, const char *path)
{
	struct arena *arena;
	bool any;

	if (out->readers->files.count == 0)
		return false;
	arena = arena_new();
	any = found_list(
		out, dict_get(&out->readers->files, whole_path(out->readers->folder, path, arena)));
	arena_free(arena);
	return any;
}

bool readers_named(struct found_readers *out, const char *test)
{
	return found_list(out, dict_get(&out->readers->names, test));
}
