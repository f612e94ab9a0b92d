/*
 * The statement is copied piece by piece as split by sql.h. A string that consists of a placeholder
 * becomes a parameter, so that its type is inferred as that of a literal would be. A string with
 * other text becomes a concatenation:
 *
 *     '%{BRANCH}'  ->   $1          'refs/%{BRANCH}'  ->  ('refs/' || $1::text)
 *
 * Each occurrence is a parameter of its own, since one that stood for both a text and an enum would
 * have no type. Parameters get blanks around them, since a$1 is a name.
 */
#include "sources/postgres/bind.h"

#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/number.h"
#include "sources/postgres/sql.h"

#define BRANCH "%{BRANCH}"

enum { STATEMENT_MAX = 1 << 20, SHOWN = 60 };

enum mark_kind {
	MARK_NONE,
	MARK_BYTE,   /* a doubled character for the single one: %% {{ }} */
	MARK_NAME,   /* part of a name in plain code, a value within a string: {metric} */
	MARK_VALUE,  /* {commit}, %{BRANCH} */
	MARK_NUMBER, /* %s */
	MARK_WRONG,
};

/* A placeholder at a position of the statement, and its length. */
struct mark {
	enum mark_kind kind;
	const char *value;
	size_t length;
};

struct binder {
	struct arena *arena;
	const char *branch;               /* NULL in an update */
	const struct bind_values *update; /* NULL in a query */
	bool formatted;                   /* there are placeholders, so %% means % */
	struct buf out;
	struct bound *bound;
	size_t numbers;
	struct error *error;
};

static bool fail_at(const struct binder *binder, const char *text, size_t length, const char *why)
{
	int shown = length < SHOWN ? (int)length : SHOWN;
	return error_set(binder->error, ERROR_USAGE, "%s: \"%.*s%s\": %s",
		binder->update ? "update_statement" : "query", shown, text,
		length > SHOWN ? "..." : "", why);
}

/* {name}, with its opening brace at `at`. */
static struct mark named_mark(const struct binder *binder, const char *at, const char *end)
{
	const struct bind_values *update = binder->update;
	const char *close = memchr(at, '}', (size_t)(end - at));
	if (!close)
		return (struct mark){MARK_WRONG, NULL, (size_t)(end - at)};
	size_t length = (size_t)(close - at) - 1;
	const char *name = at + 1;
	if (length == 6 && memcmp(name, "metric", 6) == 0)
		return (struct mark){MARK_NAME, update->metric, length + 2};
	for (size_t i = 0; i < update->named.count; i++) {
		const struct pair *pair = &update->named.items[i];
		if (strlen(pair->key) == length && memcmp(pair->key, name, length) == 0)
			return (struct mark){MARK_VALUE, pair->value, length + 2};
	}
	return (struct mark){MARK_WRONG, NULL, length + 2};
}

/* The placeholder at `at`. As in Python's database drivers, %s and %% count outside of quotes
 * only. */
static struct mark find_mark(
	const struct binder *binder, const char *at, const char *end, bool code)
{
	static const struct mark none = {MARK_NONE, NULL, 1}, byte = {MARK_BYTE, NULL, 2};
	size_t left = (size_t)(end - at), branch = strlen(BRANCH);
	bool twice = left > 1 && at[0] == at[1];
	if (!binder->update && left >= branch && memcmp(at, BRANCH, branch) == 0)
		return (struct mark){MARK_VALUE, binder->branch, branch};
	if (*at == '%' && code && twice && binder->formatted)
		return byte;
	if (!binder->update)
		return none;
	if (*at == '%' && code && left > 1 && at[1] == 's')
		return (struct mark){MARK_NUMBER, NULL, 2};
	if ((*at == '{' || *at == '}') && twice)
		return byte;
	if (*at == '{')
		return named_mark(binder, at, end);
	return *at == '}' ? (struct mark){MARK_WRONG, NULL, 1} : none;
}

static bool report_wrong(const struct binder *binder, const char *at, size_t length)
{
	return fail_at(binder, at, length,
		"not {metric}, the time column or an attribute of the test; a literal brace is "
		"written {{ or }}");
}

/* Adds a parameter and writes its number, with text before and after. */
static bool put_parameter(struct binder *binder, const char *value, unsigned type,
	const char *before, const char *after)
{
	struct bound *bound = binder->bound;
	if (bound->count == BIND_PARAMETERS_MAX)
		return error_set(binder->error, ERROR_USAGE,
			"the statement has more than %d placeholders", BIND_PARAMETERS_MAX);
	bound->values[bound->count] = arena_strdup(binder->arena, value);
	bound->types[bound->count++] = type;
	buf_printf(&binder->out, "%s$%zu%s", before, bound->count, after);
	return true;
}

static bool put_number(struct binder *binder, const char *at)
{
	char text[NUMBER_TEXT];
	if (binder->numbers == BIND_NUMBERS)
		return fail_at(binder, at, 2,
			"a fourth %s; there are three values: the change forward and backward in "
			"percent, and p");
	number_format(binder->update->numbers[binder->numbers++], text);
	return put_parameter(binder, text, BIND_TYPE_FLOAT8, " ", " ");
}

/* Whether the value can be part of an unquoted name: nothing in it can end the name. */
static bool is_word(const char *value)
{
	if (!value || !*value)
		return false;
	for (; *value; value++)
		if (!sql_in_word(*value) || *value == '$' || *value & 0x80)
			return false;
	return true;
}

static bool touches_word(char c)
{
	return sql_in_word(c) || c == '.' || c == '{' || c == '}';
}

/* Whether the text around the placeholder could change its meaning together with the value: a
 * dollar-quote tag ($tag$) or a string prefix (E'...'). */
static bool is_ambiguous(const char *at, const char *behind, const char *begin, const char *end)
{
	bool dollar = false;
	if (behind < end && strchr("'\"&", *behind))
		return true;
	for (; at > begin && sql_in_word(at[-1]); at--)
		dollar |= at[-1] == '$';
	for (; behind < end && sql_in_word(*behind); behind++)
		dollar |= *behind == '$';
	return dollar;
}

/* A byte of plain code, or a placeholder. A value adjacent to a name is part of the name. */
static bool put_code(struct binder *binder, const char **next, const char *begin, const char *end)
{
	const char *at = *next;
	struct mark mark = find_mark(binder, at, end, true);
	const char *behind = *next = at + mark.length;
	bool part = binder->update && ((at > begin && touches_word(at[-1])) ||
					      (behind < end && touches_word(*behind)));
	if (mark.kind == MARK_WRONG)
		return report_wrong(binder, at, mark.length);
	if (mark.kind == MARK_NUMBER)
		return put_number(binder, at);
	if (mark.kind <= MARK_BYTE) {
		buf_char(&binder->out, *at);
		return true;
	}
	if (mark.kind != MARK_NAME && !part)
		return put_parameter(binder, mark.value, 0, " ", " ");
	if (is_ambiguous(at, behind, begin, end))
		return fail_at(
			binder, at, mark.length, "part of a name next to a quote or with a $");
	if (!is_word(mark.value))
		return error_set(binder->error, ERROR_DATA,
			"update_statement: \"%.*s\" is part of a name, so its value may contain "
			"only letters, "
			"digits and underscores, but it is \"%.100s\": put the name into "
			"double quotes",
			(int)mark.length, at, mark.value ? mark.value : "");
	buf_text(&binder->out, mark.value);
	return true;
}

/* Counts the placeholders of a piece; *wrong is set to an unknown one. */
static size_t count_marks(const struct binder *binder, const struct sql_piece *piece,
	const char **wrong, size_t *length)
{
	const char *at = piece->text, *end = at + piece->length;
	size_t count = 0;
	*wrong = NULL;
	while (at < end) {
		struct mark mark = find_mark(binder, at, end, false);
		if (mark.kind == MARK_WRONG && !*wrong) {
			*wrong = at;
			*length = mark.length;
		}
		count += mark.kind > MARK_BYTE;
		at += piece->kind == SQL_ESCAPES && *at == '\\' && end - at > 1 ? 2 : mark.length;
	}
	return count;
}

/* Copies text up to a placeholder, which is *stop, or with NULL all of it; in an update {{ means {.
 * Returns its end. In a string that is `joined` doubled quotes and escapes stay together. */
static const char *copy_text(struct binder *binder, const struct sql_piece *piece, const char *at,
	const char *end, bool joined, struct mark *stop)
{
	while (at < end) {
		struct mark mark = find_mark(binder, at, end, false);
		bool pair = joined && (*at == '\'' || (*at == '\\' && piece->kind == SQL_ESCAPES));
		if (stop && mark.kind > MARK_BYTE) {
			*stop = mark;
			break;
		}
		buf_append(&binder->out, at, pair ? 2 : 1);
		at += pair || mark.kind == MARK_BYTE ? 2 : 1;
	}
	return at;
}

/* A string with placeholders: a parameter if it is one, else a concatenation. */
static bool put_string(struct binder *binder, const struct sql_piece *piece)
{
	bool escapes = piece->kind == SQL_ESCAPES;
	const char *begin = piece->text + (escapes ? 2 : 1), *at = begin;
	const char *end = piece->text + piece->length - 1;
	struct mark mark = find_mark(binder, at, end, false);
	if (mark.kind > MARK_BYTE && mark.length == (size_t)(end - at))
		return put_parameter(binder, mark.value, 0, " ", " ");
	buf_text(&binder->out, " (");
	while (at < end) {
		buf_text(&binder->out, at > begin ? " || " : "");
		mark = find_mark(binder, at, end, false);
		if (mark.kind <= MARK_BYTE) {
			buf_text(&binder->out, escapes ? "E'" : "'");
			at = copy_text(binder, piece, at, end, true, &mark);
			buf_char(&binder->out, '\'');
			continue;
		}
		if (!put_parameter(binder, mark.value, 0, "", "::text"))
			return false;
		at += mark.length;
	}
	buf_char(&binder->out, ')');
	return true;
}

/* A quoted name: values are inserted with their quotes doubled. */
static bool put_name(struct binder *binder, const struct sql_piece *piece)
{
	const char *at = piece->text, *end = at + piece->length;
	struct mark mark;
	if (!binder->update)
		return fail_at(binder, at, piece->length,
			"a branch cannot be part of a name; use single quotes for a string");
	while ((at = copy_text(binder, piece, at, end, false, &mark)) < end) {
		for (const char *c = mark.value; c && *c; c++) {
			buf_text(&binder->out, *c == '"' ? "\"" : "");
			buf_char(&binder->out, *c);
		}
		at += mark.length;
	}
	return true;
}

/* Whether a quoted piece of an update contains %s, which Otava's driver would fill in even
 * there. */
static bool holds_number(const struct sql_piece *piece)
{
	for (size_t i = 1; i + 1 < piece->length; i++)
		if (piece->text[i] == '%' && piece->text[i + 1] == 's' && piece->text[i - 1] != '%')
			return true;
	return false;
}

static bool put_quoted(struct binder *binder, const struct sql_piece *piece)
{
	if (binder->update && piece->kind != SQL_COMMENT && holds_number(piece))
		return fail_at(binder, piece->text, piece->length,
			"%s is replaced outside of quotes only");
	const char *wrong;
	size_t length = 0, marks = count_marks(binder, piece, &wrong, &length);
	if (marks == 0 || piece->kind == SQL_COMMENT) {
		(void)copy_text(
			binder, piece, piece->text, piece->text + piece->length, false, NULL);
		return true;
	}
	if (wrong)
		return report_wrong(binder, wrong, length);
	if (!piece->closed)
		return fail_at(binder, piece->text, piece->length, "the quote is not closed");
	if (piece->kind == SQL_NAME)
		return put_name(binder, piece);
	if (piece->kind == SQL_OTHER)
		return fail_at(binder, piece->text, piece->length,
			"a placeholder cannot be bound in this kind of string; use single quotes");
	return put_string(binder, piece);
}

static bool put_statement(struct binder *binder, const char *text)
{
	const char *at = text, *end = text + strlen(text);
	while (at < end) {
		struct sql_piece piece = sql_next(at, end);
		switch (piece.kind) {
		case SQL_END: return true;
		case SQL_PARAMETER:
			return fail_at(binder, piece.text, piece.length,
				"the statement must not have parameters of its own");
		case SQL_CODE:
			if (!put_code(binder, &at, text, end))
				return false;
			continue;
		case SQL_WORD: buf_append(&binder->out, piece.text, piece.length); break;
		case SQL_STRING:
		case SQL_ESCAPES:
		case SQL_NAME:
		case SQL_OTHER:
		case SQL_COMMENT:
			if (!put_quoted(binder, &piece))
				return false;
			break;
		}
		at += piece.length;
	}
	return true;
}

static bool bind(struct binder *binder, const char *text, struct bound *out)
{
	if (strlen(text) > STATEMENT_MAX)
		return error_set(binder->error, ERROR_USAGE, "the statement is larger than 1 MB");
	*out = (struct bound){
		.values = arena_array(binder->arena, BIND_PARAMETERS_MAX, sizeof *out->values),
		.types = arena_array(binder->arena, BIND_PARAMETERS_MAX, sizeof *out->types)};
	binder->bound = out;
	bool good = put_statement(binder, text);
	out->text = arena_strndup(
		binder->arena, binder->out.data ? binder->out.data : "", binder->out.length);
	buf_free(&binder->out);
	return good;
}

bool bind_wants_branch(const char *query)
{
	return strstr(query, BRANCH) != NULL;
}

bool bind_query(struct arena *arena, const char *query, const char *branch, struct bound *out,
	struct error *error)
{
	struct binder binder = {.arena = arena,
		.branch = branch,
		.formatted = bind_wants_branch(query),
		.error = error};
	return bind(&binder, query, out);
}

bool bind_update(struct arena *arena, const char *statement, const struct bind_values *values,
	struct bound *out, struct error *error)
{
	struct binder binder = {
		.arena = arena, .update = values, .formatted = true, .error = error};
	return bind(&binder, statement, out);
}
