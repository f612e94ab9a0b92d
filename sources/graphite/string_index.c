/*
 * Texts are sorted, so the first and the last one show the common prefix, and equal texts are
 * neighbours. A difference is extended to whole words: `web1` and `web2`, not `1` and `2`.
 */
#include "sources/graphite/string_index.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/buf.h"

enum { TAGS_MAX = 100 };

static bool is_border(char c)
{
	return strchr(".(),;=|'\" ", c) != NULL;
}

/* Lengths of the common prefix and suffix, in bytes. */
struct common {
	size_t prefix, suffix;
};

static struct common find_common(const char *const *texts, size_t count)
{
	const char *first = texts[0], *last = texts[count - 1];
	struct common common = {0};
	while (first[common.prefix] && first[common.prefix] == last[common.prefix])
		common.prefix++;
	while (common.prefix > 0 && !is_border(first[common.prefix - 1]))
		common.prefix--;
	size_t length = strlen(first);
	common.suffix = length - common.prefix;
	for (size_t i = 1; i < count; i++) {
		size_t other = strlen(texts[i]), same = 0;
		while (same < common.suffix && same < other - common.prefix &&
			first[length - same - 1] == texts[i][other - same - 1])
			same++;
		common.suffix = same;
	}
	while (common.suffix > 0 && !is_border(first[length - common.suffix]))
		common.suffix--;
	for (size_t i = 0; i < count; i++)
		if (strlen(texts[i]) == common.prefix + common.suffix)
			return (struct common){0};
	return common;
}

/* disk.used;datacenter=dc1;host=a */
struct tagged {
	const char *name;
	const struct pair *tags;
	size_t count;
};

static bool read_tagged(struct arena *arena, const char *text, struct tagged *out)
{
	struct pair tags[TAGS_MAX];
	char *rest = arena_strdup(arena, text);
	out->name = strsep(&rest, ";");
	out->count = 0;
	if (!rest || !*out->name || strpbrk(out->name, "( "))
		return false;
	while (rest) {
		char *value = strsep(&rest, ";");
		const char *key = strsep(&value, "=");
		if (!*key || !value || out->count == TAGS_MAX || strpbrk(key, "( "))
			return false;
		tags[out->count++] = (struct pair){key, value};
	}
	struct pair *copy = arena_array(arena, out->count, sizeof *copy);
	memcpy(copy, tags, out->count * sizeof *copy);
	out->tags = copy;
	return true;
}

/* All texts as tagged names, or NULL. */
static struct tagged *read_all(struct arena *arena, const char *const *texts, size_t count)
{
	struct tagged *all = arena_array(arena, count, sizeof *all);
	for (size_t i = 0; i < count; i++)
		if (!read_tagged(arena, texts[i], &all[i]))
			return NULL;
	return all;
}

static bool has_tag(const struct tagged *tagged, const struct pair *tag)
{
	for (size_t i = 0; i < tagged->count; i++)
		if (strcmp(tagged->tags[i].key, tag->key) == 0 &&
			strcmp(tagged->tags[i].value, tag->value) == 0)
			return true;
	return false;
}

static bool all_have(const struct tagged *all, size_t count, const struct pair *tag)
{
	for (size_t i = 0; i < count; i++)
		if (!has_tag(&all[i], tag))
			return false;
	return true;
}

static bool same_names(const struct tagged *all, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (strcmp(all[0].name, all[i].name) != 0)
			return false;
	return true;
}

/* The name of series `i`: the metric's name or its own, with the tags that are not common to
 * all. */
static void write_tagged(struct buf *out, const struct metric *metric, const struct tagged *all,
	const bool *common, bool same, size_t i)
{
	const struct tagged *tagged = &all[i];
	const char *between = "{";
	buf_text(out, metric ? metric->name : tagged->name);
	if (metric && !same) {
		buf_printf(out, "{%s", tagged->name);
		between = ",";
	}
	for (size_t k = 0; k < tagged->count; k++) {
		size_t first = 0; /* index of the tag in the first series, for `common` */
		while (first < all[0].count &&
			strcmp(all[0].tags[first].key, tagged->tags[k].key) != 0)
			first++;
		if (first < all[0].count && common[first])
			continue;
		buf_printf(out, "%s%s=\"%s\"", between, tagged->tags[k].key, tagged->tags[k].value);
		between = ",";
	}
	if (*between == ',')
		buf_char(out, '}');
}

static void name_tagged(struct arena *arena, const struct metric *metric, const struct tagged *all,
	size_t count, struct series *series)
{
	bool *common = arena_array(arena, all[0].count, sizeof *common);
	bool same = same_names(all, count);
	for (size_t k = 0; k < all[0].count; k++)
		common[k] = all_have(all, count, &all[0].tags[k]);
	for (size_t i = 0; i < count; i++) {
		struct buf name = {0};
		write_tagged(&name, metric, all, common, same, i);
		series[i].name = arena_strndup(arena, name.data, name.length);
		buf_free(&name);
	}
}

static void name_paths(struct arena *arena, const struct metric *metric, const char *const *texts,
	size_t count, struct series *series)
{
	struct common common = find_common(texts, count);
	for (size_t i = 0; i < count; i++) {
		const char *from = texts[i] + common.prefix;
		int length = (int)(strlen(from) - common.suffix);
		series[i].name =
			metric ? arena_printf(arena, "%s{%.*s}", metric->name, length, from)
			       : arena_printf(arena, "%.*s", length, from);
	}
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The smallest number above `number` that does not give the name of another series. */
static size_t next_number(struct arena *arena, const char *const *texts, size_t count,
	const char *text, size_t number)
{
	const char *numbered;
	do
		numbered = arena_printf(arena, "%s#%zu", text, ++number);
	while (bsearch(&numbered, texts, count, sizeof *texts, compare_texts));
	return number;
}

/* Numbers series with the same name. */
static size_t number_equals(
	struct arena *arena, const char *const *texts, size_t count, struct series *series)
{
	size_t twice = 0;
	for (size_t i = 1, number = 1; i < count; i++) {
		if (strcmp(texts[i], texts[i - 1]) != 0) {
			number = 1;
			continue;
		}
		number = next_number(arena, texts, count, texts[i], number);
		series[i].name = arena_printf(arena, "%s#%zu", series[i].name, number);
		series[i].identity = arena_printf(arena, "%s#%zu", series[i].identity, number);
		twice++;
	}
	return twice;
}

size_t string_index_add(struct arena *arena, const struct target *target, const char *const *texts,
	size_t count, struct series *series)
{
	const struct metric *metric = target->metric;
	const struct tagged *all = NULL;
	bool alike =
		strcmp(texts[0], texts[count - 1]) == 0; /* all are equal, since they are sorted */
	for (size_t i = 0; i < count; i++) {
		series[i].name = metric ? metric->name : texts[i];
		series[i].identity =
			metric ? arena_printf(arena, "%s{target=\"%s\"}", metric->name, texts[i])
			       : texts[i];
	}
	if (!alike) {
		all = read_all(arena, texts, count);
		if (all)
			name_tagged(arena, metric, all, count, series);
		else
			name_paths(arena, metric, texts, count, series);
	}
	size_t twice = number_equals(arena, texts, count, series);
	for (size_t i = 0; i < count; i++) {
		series[i].metric = metric;
		if (metric)
			continue;
		struct metric *own = arena_alloc(arena, sizeof *own);
		*own = (struct metric){.name = series[i].name, .scale = 1};
		series[i].metric = own;
	}
	return twice;
}
