/*
 * Graphite reads as much of a target as is an expression and forgets the rest: `scale(a.b` is the
 * metric `scale` for it, which does not exist, and the answer is an empty list. So its grammar is
 * repeated here, to say what is wrong; it is asked only about targets that gave nothing.
 */
#include "sources/graphite_target.h"

#include <string.h>
#include <strings.h>

#include "agent/core/buf.h"

enum { PATHS_MAX = 20, NESTING_MAX = 100 };

bool target_is_plain(const char *text)
{
	return !text[strcspn(text, "(){}[]*?,'\"\\| ")];
}

bool target_fill_branch(struct arena *arena, const char *text, const char *branch, const char **out,
	struct error *error)
{
	static const char variable[] = "%{BRANCH}";
	struct buf filled = {0};
	const char *at;
	*out = text;
	if (!strstr(text, variable))
		return true;
	if (!branch)
		branch = "main";
	for (const char *c = branch; *c; c++)
		if ((unsigned char)*c <= ' ' || strchr("(){}[]*?,'\"\\|;=", *c))
			return error_set(error, ERROR_USAGE,
				"branch \"%s\" cannot be part of a Graphite target", branch);
	while ((at = strstr(text, variable))) {
		buf_append(&filled, text, (size_t)(at - text));
		buf_text(&filled, branch);
		text = at + strlen(variable);
	}
	buf_text(&filled, text);
	*out = arena_strndup(arena, filled.data, filled.length);
	buf_free(&filled);
	return true;
}

struct parser {
	struct arena *arena;
	const char *begin, *at;
	int depth; /* 1: the outermost */
	const char **paths;
	size_t path_count;
	struct expression *out;
};

static bool parse_expression(struct parser *parser);

static bool wrong(struct parser *parser, const char *problem)
{
	if (parser->out->problem)
		return false;
	parser->out->problem = problem;
	parser->out->at = 1;
	for (const char *at = parser->begin; at < parser->at; at++)
		parser->out->at += ((unsigned char)*at & 0xc0) != 0x80;
	return false;
}

static void skip_space(struct parser *parser)
{
	parser->at += strspn(parser->at, " \t\r\n");
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Bytes of the name of a function or argument that is next, 0 if none is. */
static size_t name_length(const char *text)
{
	size_t length = 0;
	if (!is_letter(*text))
		return 0;
	while (is_letter(text[length]) || (text[length] >= '0' && text[length] <= '9'))
		length++;
	return length;
}

/* Bytes of the name that is next if `c` follows it, blanks between them or not, else 0. */
static size_t name_before(const char *text, char c)
{
	size_t length = name_length(text);
	return length > 0 && text[length + strspn(text + length, " \t\r\n")] == c ? length : 0;
}

static bool parse_text(struct parser *parser)
{
	char quote = *parser->at;
	const char *from = parser->at++;
	while (*parser->at && *parser->at != quote)
		parser->at += parser->at[0] == '\\' && parser->at[1] ? 2 : 1;
	if (*parser->at++)
		return true;
	parser->at = from;
	return wrong(parser, "a quote is not closed");
}

/* {a,b}: it cannot span dots. */
static bool parse_choice(struct parser *parser)
{
	const char *from = parser->at++;
	parser->at += strcspn(parser->at, "{}.()'\"|");
	if (*parser->at == '}') {
		parser->at++;
		return true;
	}
	bool dot = *parser->at == '.';
	if (!dot)
		parser->at = from;
	return wrong(parser, dot ? "braces cannot hold a dot" : "a brace is not closed");
}

static bool is_literal(const char *text, size_t length)
{
	static const char *const words[] = {"true", "false", "none", "inf", NULL};
	for (const char *const *word = words; *word; word++)
		if (strlen(*word) == length && strncasecmp(text, *word, length) == 0)
			return true;
	return strspn(text, "+-.0123456789eE") >= length &&
	       strpbrk("-0123456789", (char[2]){*text, '\0'});
}

static bool parse_path(struct parser *parser)
{
	const char *from = parser->at;
	for (;;) {
		size_t length = strcspn(parser->at, "(){},'\"\\| \t\r\n");
		parser->at += length;
		if (*parser->at == '\\' && parser->at[1])
			parser->at += 2;
		else if (*parser->at != '{')
			break;
		else if (!parse_choice(parser))
			return false;
	}
	size_t length = (size_t)(parser->at - from);
	if (length == 0)
		return wrong(parser, "a metric or function is missing");
	if (parser->depth > 1 && is_literal(from, length))
		return true;
	if (parser->path_count < PATHS_MAX)
		parser->paths[parser->path_count++] = arena_strndup(parser->arena, from, length);
	return true;
}

/* An argument, with its name or without. */
static bool parse_argument(struct parser *parser)
{
	skip_space(parser);
	if (name_before(parser->at, '=')) {
		parser->at += strcspn(parser->at, "=") + 1;
		skip_space(parser);
	}
	if (*parser->at == '\'' || *parser->at == '"')
		return parse_text(parser);
	return parse_expression(parser);
}

/* The arguments from the bracket on. */
static bool parse_call(struct parser *parser, size_t name)
{
	parser->at += name;
	skip_space(parser);
	const char *bracket = parser->at++;
	skip_space(parser);
	if (*parser->at == ')') {
		parser->at++;
		return true;
	}
	for (;;) {
		if (!parse_argument(parser))
			return false;
		skip_space(parser);
		char c = *parser->at;
		if (c != ',' && c != ')') {
			if (!c)
				parser->at = bracket;
			return wrong(parser, c ? "a comma or ) is missing" : "( is not closed");
		}
		parser->at++;
		if (c == ')')
			return true;
	}
}

static bool parse_expression(struct parser *parser)
{
	if (++parser->depth > NESTING_MAX)
		return wrong(parser, "it is nested too deeply");
	skip_space(parser);
	size_t name = name_before(parser->at, '(');
	if (!(name ? parse_call(parser, name) : parse_path(parser)))
		return false;
	skip_space(parser);
	while (*parser->at == '|') {
		parser->at++;
		skip_space(parser);
		name = name_before(parser->at, '(');
		if (!name)
			return wrong(parser, "a function is missing behind |");
		if (!parse_call(parser, name))
			return false;
		skip_space(parser);
	}
	parser->depth--;
	return true;
}

struct expression target_read(struct arena *arena, const char *text)
{
	struct expression expression = {0};
	struct parser parser = {
		.arena = arena,
		.begin = text,
		.at = text,
		.paths = arena_array(arena, PATHS_MAX, sizeof *parser.paths),
		.out = &expression,
	};
	if (parse_expression(&parser) && *parser.at)
		wrong(&parser, *parser.at == ')' ? "there is a ) too many"
						 : "something follows that does not belong to it");
	expression.paths = (struct strings){parser.paths, parser.path_count};
	return expression;
}
