/*
 * SQL of any bytes through the binder of placeholders. The first byte chooses between a query and
 * an update. Besides not crashing: no byte of a value gets into the text but where a name has a
 * part of it, and whoever reads the text as PostgreSQL does finds exactly the parameters that are
 * sent.
 */
#include <stdlib.h>
#include <string.h>

#include "sources/postgres/bind.h"
#include "sources/postgres/sql.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No byte of it is allowed in a name, and none of the seeds has it. */
#define VALUE "\x01'\\\x02\"$1--/*\x03"

static void check(bool good)
{
	if (!good)
		abort();
}

/* Every parameter of the text is one that was bound, in the order of their numbers. */
static void check_parameters(const struct bound *bound)
{
	const char *at = bound->text, *end = at + strlen(at);
	size_t count = 0;
	for (;;) {
		struct sql_piece piece = sql_next(at, end);
		if (piece.kind == SQL_END)
			break;
		check(piece.length > 0);
		if (piece.kind == SQL_PARAMETER)
			check(strtoul(piece.text + 1, NULL, 10) == ++count);
		at += piece.length;
	}
	check(at == end && count == bound->count);
}

static bool is_plain(const char *text)
{
	return !strpbrk(text, "\x01\x02\x03");
}

/* A query without placeholders is sent as it is. */
static void check_query(struct arena *arena, const char *text)
{
	struct bound bound;
	struct error error = {0};
	if (!bind_query(arena, text, VALUE, &bound, &error)) {
		check(error.kind == ERROR_USAGE && error.text[0]);
		return;
	}
	check(!is_plain(text) || is_plain(bound.text));
	check(bind_wants_branch(text) || strcmp(text, bound.text) == 0);
	for (size_t i = 0; i < bound.count; i++)
		check(strcmp(bound.values[i], VALUE) == 0);
	check_parameters(&bound);
}

/* A value that goes into a quoted name has its quotes doubled, so the pieces stay what they are. */
static void check_update(struct arena *arena, const char *text)
{
	static const struct pair named[] = {{"a", VALUE}, {"b", NULL}, {"c", "x7"}};
	struct bind_values values = {.metric = VALUE, .named = {named, 3}, .numbers = {1, -2.5, 0}};
	struct bound bound;
	struct error error = {0};
	if (!bind_update(arena, text, &values, &bound, &error)) {
		check(error.kind != ERROR_NONE && error.text[0]);
		return;
	}
	check(!is_plain(text) || is_plain(bound.text) || strchr(bound.text, '"'));
	check_parameters(&bound);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct arena *arena = arena_new();
	const char *text = arena_strndup(arena, (const char *)data + 1, size - 1);
	if (data[0] & 1)
		check_update(arena, text);
	else
		check_query(arena, text);
	arena_free(arena);
	return 0;
}
