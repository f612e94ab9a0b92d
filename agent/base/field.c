/*
 * Parses, checks and prints option values by their tables.
 *
 * Values arrive as text from YAML and the command line alike, so both accept the same spellings
 * and give the same errors.
 */
#include "agent/base/field.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/number.h"
#include "agent/base/when.h"

enum { SUGGEST_LENGTH = 64 }; /* longer words get no suggestion */

static void *at(const struct field *field, void *options)
{
	return (char *)options + field->offset;
}

static const void *at_const(const struct field *field, const void *options)
{
	return (const char *)options + field->offset;
}

void strings_add(struct strings *list, struct arena *arena, const char *text)
{
	const char **items =
		arena_grow(arena, (void *)(uintptr_t)list->items, list->count, sizeof *items);
	items[list->count] = text;
	*list = (struct strings){items, list->count + 1};
}

void field_defaults(const struct field *fields, void *options)
{
	for (const struct field *field = fields; field && field->name; field++) {
		struct error error;
		if (!field->initial)
			continue;
		if (field->type == FIELD_STRING || field->type == FIELD_SECRET)
			*(const char **)at(field, options) = field->initial;
		else if (field->type == FIELD_LIST)
			*(struct strings *)at(field, options) =
				(struct strings){&field->initial, 1};
		else if (!field_parse(field, options, field->initial, NULL, &error))
			abort(); /* a mistake in the table itself */
	}
}

bool field_variables(const struct field *fields, void *options,
	const char *(*get)(void *context, const char *name), void *context, struct arena *arena,
	struct error *error)
{
	bool good = true;
	for (const struct field *field = fields; field && field->name; field++) {
		const char *text = field->variable ? get(context, field->variable) : NULL;
		struct error problem;
		if (!text || !*text || field_parse(field, options, text, arena, &problem))
			continue;
		*error = problem;
		good = error_prefix(error, "$%s: ", field->variable);
	}
	return good;
}

static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if (*a != *b && !((*a == '_' || *a == '-') && (*b == '_' || *b == '-')))
			return false;
	return *a == *b;
}

const struct field *field_find(const struct field *fields, const char *name)
{
	for (const struct field *field = fields; field && field->name; field++)
		if (same_name(field->name, name) || (field->alias && same_name(field->alias, name)))
			return field;
	return NULL;
}

static bool fail(
	const struct field *field, const char *text, const char *wanted, struct error *error)
{
	return error_set(error, ERROR_USAGE, "%s: \"%.80s\" is not %s", field->name, text, wanted);
}

static bool check_range(
	const struct field *field, double value, const char *text, struct error *error)
{
	if (field->min == 0 && field->max == 0)
		return true;
	bool low = field->flags & FIELD_MIN_OPEN ? value <= field->min : value < field->min;
	bool high = field->flags & FIELD_MAX_OPEN ? value >= field->max : value > field->max;
	if (!low && !high)
		return true;
	char wanted[120];
	const char *above = field->flags & FIELD_MIN_OPEN ? "above" : "at least";
	const char *below = field->flags & FIELD_MAX_OPEN ? "below" : "at most";
	if (field->type == FIELD_DURATION) {
		char from[WHEN_TEXT], to[WHEN_TEXT];
		snprintf(wanted, sizeof wanted, "%s %s and %s %s", above,
			when_format_duration((int64_t)field->min, from), below,
			field->max >= (double)WHEN_NEVER
				? "never"
				: when_format_duration((int64_t)field->max, to));
	} else if (isinf(field->max)) {
		snprintf(wanted, sizeof wanted, "%s %.15g", above, field->min);
	} else {
		snprintf(wanted, sizeof wanted, "%s %.15g and %s %.15g", above, field->min, below,
			field->max);
	}
	return fail(field, text, wanted, error);
}

static bool parse_bool(
	const struct field *field, void *options, const char *text, struct error *error)
{
	static const char *const yes[] = {"true", "yes", "on", "1", NULL};
	static const char *const no[] = {"false", "no", "off", "0", NULL};
	for (size_t i = 0; yes[i]; i++) {
		if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
			*(bool *)at(field, options) = strcasecmp(text, yes[i]) == 0;
			return true;
		}
	}
	return fail(field, text, "true or false", error);
}

static bool parse_int(
	const struct field *field, void *options, const char *text, struct error *error)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (end == text || *end || errno)
		return fail(field, text, "a whole number", error);
	if (!check_range(field, (double)value, text, error))
		return false;
	*(int64_t *)at(field, options) = value;
	return true;
}

static bool parse_double(
	const struct field *field, void *options, const char *text, struct error *error)
{
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end || !isfinite(value) || strpbrk(text, "xX"))
		return fail(field, text, "a number", error);
	if (!check_range(field, value, text, error))
		return false;
	*(double *)at(field, options) = value;
	return true;
}

static bool parse_duration(
	const struct field *field, void *options, const char *text, struct error *error)
{
	int64_t value;
	if (!when_parse_duration(text, &value, error))
		return error_prefix(error, "%s: ", field->name);
	if (!check_range(field, (double)value, text, error))
		return false;
	*(int64_t *)at(field, options) = value;
	return true;
}

/* 64MB and 64M are 64 million bytes; 64MiB is 64 * 2^20. */
static bool parse_bytes(
	const struct field *field, void *options, const char *text, struct error *error)
{
	static const char units[] = "BKMGT";
	char *end;
	double value = strtod(text, &end);
	while (*end == ' ')
		end++;
	const char *unit = *end ? strchr(units, *end & ~0x20) : units;
	bool binary = *end && strcasecmp(end + 1, "ib") == 0;
	bool whole = !*end || !end[1] || binary || (strcasecmp(end + 1, "b") == 0 && unit != units);
	if (end == text || !unit || !whole || !(value >= 0) || strpbrk(text, "xX"))
		return fail(field, text, "a size like 64MB", error);
	for (const char *u = units; u < unit; u++)
		value *= binary ? 1024 : 1000;
	if (value > 9e18)
		return fail(field, text, "a size below 9 EB", error);
	if (!check_range(field, value, text, error))
		return false;
	*(int64_t *)at(field, options) = (int64_t)value;
	return true;
}

static bool parse_choice(
	const struct field *field, void *options, const char *text, struct error *error)
{
	struct buf wanted = {0};
	size_t count = 0;
	for (; field->choices[count]; count++) {
		if (strcmp(field->choices[count], text) == 0) {
			*(int *)at(field, options) = (int)count;
			buf_free(&wanted);
			return true;
		}
		buf_printf(&wanted, "%s%s", count ? ", " : "one of ", field->choices[count]);
	}
	const char *near = field_suggest(text, field->choices, count);
	if (near)
		buf_printf(&wanted, " (did you mean \"%s\"?)", near);
	fail(field, text, wanted.data, error);
	buf_free(&wanted);
	return false;
}

/* The position behind the bracket or quotation mark that closes the one at `text`; NULL if none
 * does. */
static const char *group_end(const char *text)
{
	size_t depth = 0;
	bool quoted = false;
	for (; *text; text++) {
		if (*text == '"')
			quoted = !quoted;
		else if (quoted && *text == '\\' && text[1])
			text++;
		else if (!quoted && strchr("([{", *text))
			depth++;
		else if (!quoted && depth > 0 && strchr(")]}", *text))
			depth--;
		if (!quoted && depth == 0)
			return text + 1;
	}
	return NULL;
}

/* Bytes up to the comma that ends an item. Commas within brackets or quotation marks, as in
 * labels and functions, do not; unclosed ones are ordinary characters. */
static size_t item_length(const char *text, bool *closed)
{
	const char *end = text;
	while (*end && *end != ',') {
		bool opens = *closed && strchr("([{\"", *end);
		const char *behind = opens ? group_end(end) : NULL;
		*closed = *closed && (!opens || behind);
		end = behind ? behind : end + 1;
	}
	return (size_t)(end - text);
}

static void parse_list(
	const struct field *field, void *options, const char *text, struct arena *arena)
{
	struct strings *list = at(field, options);
	size_t room = list->count + 1;
	for (const char *c = text; *c; c++)
		room += *c == ',';
	const char **items = arena_array(arena, room, sizeof *items);
	for (size_t i = 0; i < list->count; i++)
		items[i] = list->items[i];
	size_t count = list->count;
	bool closed = true;
	while (*text) {
		size_t length =
			field->flags & FIELD_WHOLE ? strlen(text) : item_length(text, &closed);
		const char *next = text + length + (text[length] == ',');
		while (length > 0 && *text == ' ')
			text++, length--;
		while (length > 0 && text[length - 1] == ' ')
			length--;
		if (length > 0)
			items[count++] = arena_strndup(arena, text, length);
		text = next;
	}
	*list = (struct strings){items, count};
}

bool field_parse(const struct field *field, void *options, const char *text, struct arena *arena,
	struct error *error)
{
	switch (field->type) {
	case FIELD_BOOL: return parse_bool(field, options, text, error);
	case FIELD_INT: return parse_int(field, options, text, error);
	case FIELD_DOUBLE: return parse_double(field, options, text, error);
	case FIELD_DURATION: return parse_duration(field, options, text, error);
	case FIELD_BYTES: return parse_bytes(field, options, text, error);
	case FIELD_CHOICE: return parse_choice(field, options, text, error);
	case FIELD_STRING:
	case FIELD_SECRET:
		*(const char **)at(field, options) = arena_strdup(arena, text);
		return true;
	case FIELD_LIST: parse_list(field, options, text, arena); return true;
	case FIELD_MAP: break;
	}
	return error_set(error, ERROR_USAGE, "%s: a mapping is needed here", field->name);
}

void field_print(const struct field *field, const void *options, struct buf *out)
{
	const void *value = at_const(field, options);
	const struct strings *list = value;
	const struct pairs *map = value;
	char text[WHEN_TEXT], number[NUMBER_TEXT];
	switch (field->type) {
	case FIELD_BOOL: buf_text(out, *(const bool *)value ? "true" : "false"); break;
	case FIELD_INT:
	case FIELD_BYTES: buf_printf(out, "%lld", (long long)*(const int64_t *)value); break;
	case FIELD_DOUBLE:
		buf_append(out, number, number_format(*(const double *)value, number));
		break;
	case FIELD_DURATION:
		buf_text(out, when_format_duration(*(const int64_t *)value, text));
		break;
	case FIELD_CHOICE: buf_text(out, field->choices[*(const int *)value]); break;
	case FIELD_STRING:
		if (*(const char *const *)value)
			buf_text(out, *(const char *const *)value);
		break;
	case FIELD_SECRET:
		if (*(const char *const *)value)
			buf_text(out, "***");
		break;
	case FIELD_LIST:
		for (size_t i = 0; i < list->count; i++)
			buf_printf(out, "%s%s", i ? "," : "", list->items[i]);
		break;
	case FIELD_MAP:
		for (size_t i = 0; i < map->count; i++)
			buf_printf(out, "%s%s=%s", i ? "," : "", map->items[i].key,
				map->items[i].value);
		break;
	}
}

/* Edits from a to b: insert, delete, replace, swap neighbours. Both are at most SUGGEST_LENGTH
 * long. */
static size_t edit_distance(const char *a, size_t m, const char *b, size_t n)
{
	size_t rows[3][SUGGEST_LENGTH + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];
	for (size_t j = 0; j <= n; j++)
		before[j] = last[j] = j;
	for (size_t i = 1; i <= m; i++) {
		now[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
		size_t *free_row = before;
		before = last;
		last = now;
		now = free_row;
	}
	return last[n];
}

static size_t suggest_cost(const char *word, const char *name)
{
	size_t m = strlen(word), n = strlen(name);
	if (m > SUGGEST_LENGTH || n > SUGGEST_LENGTH)
		return SIZE_MAX;
	size_t distance = edit_distance(word, m, name, n);
	size_t longer = m > n ? m : n;
	return distance <= (longer + 2) / 3 && distance < longer ? distance : SIZE_MAX;
}

const char *field_suggest(const char *word, const char *const *names, size_t count)
{
	const char *best = NULL;
	size_t best_cost = SIZE_MAX;
	for (size_t i = 0; i < count; i++) {
		size_t cost = suggest_cost(word, names[i]);
		if (cost < best_cost) {
			best_cost = cost;
			best = names[i];
		}
	}
	return best;
}

bool field_hint(struct error *error, const char *word, const char *const *names, size_t count)
{
	const char *near = field_suggest(word, names, count);

	return near &&
	       error_set(error, error->kind, "%s (did you mean \"%s\"?)", error->text, near);
}

const char *field_suggest_name(const char *word, const struct field *fields)
{
	const char *best = NULL;
	size_t best_cost = SIZE_MAX;
	for (const struct field *field = fields; field && field->name; field++) {
		size_t cost =
			field->flags & FIELD_HIDDEN ? SIZE_MAX : suggest_cost(word, field->name);
		if (cost < best_cost) {
			best_cost = cost;
			best = field->name;
		}
	}
	return best;
}
