/*
 * Finds labels in a series' identity: those within braces, Graphite's tags and the numbered
 * parts of its path.
 */
#include "agent/base/label.h"

#include <stdlib.h>
#include <string.h>

const char *label_set(const char *name)
{
	const char *brace = strchr(name, '{');

	return brace ? brace + 1 : NULL;
}

bool label_next(const char **at, struct label_text *label)
{
	size_t length = strcspn(*at, "=}"), end = 0;
	const char *value = *at + length + 2;

	if (length == 0 || (*at)[length] != '=' || (*at)[length + 1] != '"')
		return false;
	while (value[end] && value[end] != '"')
		end += value[end] == '\\' && value[end + 1] ? 2 : 1;
	*label = (struct label_text){*at, value, length, end};
	*at = value + end;
	*at += **at == '"';
	*at += **at == ',';
	return true;
}

static bool is_called(const struct label_text *label, const char *name, size_t length)
{
	return label->key_length == length && memcmp(label->key, name, length) == 0;
}

static bool find(const char *identity, const char *name, size_t length, struct label_text *label)
{
	const char *at = label_set(identity);

	while (at && label_next(&at, label))
		if (is_called(label, name, length))
			return true;
	return false;
}

static void put_unescaped(struct buf *out, const struct label_text *label)
{
	for (size_t i = 0; i < label->value_length; i++) {
		char c = label->value[i];

		if (c == '\\' && i + 1 < label->value_length) {
			c = label->value[++i];
			c = c == 'n' ? '\n' : c;
		}
		buf_char(out, c);
	}
}

/* The number of "path[3]", or 0. */
static size_t path_number(const char *name, size_t length)
{
	char *end;
	unsigned long number;

	if (length < sizeof "path[1]" - 1 || strncmp(name, "path[", 5) != 0 ||
		!strchr("123456789", name[5]))
		return 0;
	number = strtoul(name + 5, &end, 10);
	return number <= 1000 && *end == ']' && end + 1 == name + length ? number : 0;
}

/* A part of a text. */
struct part {
	size_t start, length;
};

static bool find_part(const char *path, size_t number, struct part *part)
{
	const char *at = path;

	for (; number > 1; number--) {
		at += strcspn(at, "./;");
		if (*at != '.' && *at != '/')
			return false;
		at++;
	}
	*part = (struct part){(size_t)(at - path), strcspn(at, "./;")};
	return part->length > 0;
}

static bool find_tag(const char *path, const char *name, size_t length, struct part *part)
{
	const char *at = path;

	while ((at = strchr(at, ';'))) {
		size_t end = strcspn(++at, ";");

		if (end > length + 1 && strncmp(at, name, length) == 0 && at[length] == '=') {
			*part = (struct part){(size_t)(at - path) + length + 1, end - length - 1};
			return true;
		}
	}
	return false;
}

/* The path of the identity, and the position of the named part in it. */
static bool find_in_path(
	const char *identity, const char *name, size_t length, struct buf *path, struct part *part)
{
	size_t number = path_number(name, length);
	struct label_text target;

	/* A target holds the path and tags, or the text before the label set. */
	if (find(identity, "target", sizeof "target" - 1, &target))
		put_unescaped(path, &target);
	else
		buf_append(path, identity, strcspn(identity, "{"));
	buf_reserve(path, 0);
	return number > 0 ? find_part(path->data, number, part)
			  : find_tag(path->data, name, length, part);
}

bool label_value(const char *identity, const char *name, size_t length, struct buf *out)
{
	struct buf path = {0};
	struct label_text label;
	struct part part;
	bool found;

	if (path_number(name, length) == 0 && find(identity, name, length, &label)) {
		put_unescaped(out, &label);
		return label.value_length > 0;
	}
	found = find_in_path(identity, name, length, &path, &part);
	if (found)
		buf_append(out, path.data + part.start, part.length);
	buf_free(&path);
	return found;
}

/* The name and the label set without the label of that name. */
static void put_other_labels(
	struct buf *out, const char *identity, const char *name, size_t length, bool path)
{
	const char *at = label_set(identity), *begin;
	struct label_text label;

	if (!path)
		buf_append(out, identity, strcspn(identity, "{"));
	buf_char(out, '{');
	for (begin = at; at && label_next(&at, &label); begin = at)
		if (!is_called(&label, name, length))
			buf_append(out, begin, (size_t)(at - begin));
}

bool label_rest(const char *identity, const char *name, size_t length, struct buf *out)
{
	struct buf path = {0};
	struct label_text label;
	struct part part;
	bool found;

	if (path_number(name, length) == 0 && find(identity, name, length, &label)) {
		if (label.value_length > 0)
			put_other_labels(out, identity, name, length, false);
		return label.value_length > 0;
	}
	found = find_in_path(identity, name, length, &path, &part);
	if (found) {
		buf_append(out, path.data, part.start);
		buf_text(out, path.data + part.start + part.length);
		put_other_labels(out, identity, "target", sizeof "target" - 1, true);
	}
	buf_free(&path);
	return found;
}

bool label_is_name(const char *name, size_t length)
{
	if (path_number(name, length) > 0)
		return true;
	for (size_t i = 0; i < length; i++)
		if (!strchr("_.:-", name[i]) && !(name[i] >= '0' && name[i] <= '9') &&
			!((name[i] | 32) >= 'a' && (name[i] | 32) <= 'z'))
			return false;
	return length > 0;
}

/* A label as a user writes it: blanks around it, with or without quotation marks. */
struct asked {
	const char *key;
	size_t key_length;
	struct buf value;
};

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \t");
}

/* Reads the value at `at`; returns the position after it, or NULL. */
static const char *read_value(const char *at, struct buf *value)
{
	value->length = 0;
	if (*at != '"') {
		size_t length = strcspn(at, ",}\""), used = length;

		while (used > 0 && strchr(" \t", at[used - 1]))
			used--;
		buf_append(value, at, used);
		return at + length;
	}
	size_t end = 1;

	while (at[end] && at[end] != '"')
		end += at[end] == '\\' && at[end + 1] ? 2 : 1;
	put_unescaped(value, &(struct label_text){.value = at + 1, .value_length = end - 1});
	return at[end] == '"' ? at + end + 1 : NULL;
}

/* Reads the next label; returns the position after it, or NULL if there is none. */
static const char *read_asked(const char *at, struct asked *asked)
{
	asked->key = at = skip_blanks(at);
	asked->key_length = strcspn(at, " \t=,{}\"");
	at = skip_blanks(at + asked->key_length);
	if (asked->key_length == 0 || *at != '=')
		return NULL;
	at = read_value(skip_blanks(at + 1), &asked->value);
	at = at ? skip_blanks(at) : NULL;
	return at && (*at == ',' || *at == '}') ? at : NULL;
}

bool label_has_asked(const char *identity, const char *text)
{
	struct asked asked = {0};
	struct buf own = {0};
	const char *at = strchr(text, '{');
	bool good = at != NULL;

	while (good && *at != '}') {
		at = read_asked(at + 1, &asked);
		good = at != NULL;
		own.length = 0;
		if (good)
			good = label_value(identity, asked.key, asked.key_length, &own) &&
			       own.length == asked.value.length &&
			       memcmp(own.data, asked.value.data, own.length) == 0;
	}
	good = good && *skip_blanks(at + 1) == '\0';
	buf_free(&asked.value);
	buf_free(&own);
	return good;
}
