/*
 * Graphite parses the longest prefix of a target that is an expression and ignores the rest:
 * `scale(a.b` becomes the metric `scale`, which does not exist, and the answer is an empty list. So
 * its grammar is repeated here to explain the error, for targets that returned nothing.
 */
#include "sources/graphite/target.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/base/buf.h"
#include "agent/base/when.h"

enum { NESTING_MAX = 100, INTERVAL_MAX = 40 };

static const int64_t reach_most = INT64_C(315360000000); /* ms, ten years */
static const int64_t steps_most = 1000000;
static const char by_tag[] = "seriesByTag";

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
	*out = buf_keep(&filled, arena);
	return true;
}

struct parser {
	struct arena *arena;
	const char *begin, *at;
	int depth; /* 1: the outermost */
	struct expression *out;
	struct target_reach reach; /* of the last expression */
	const char *literal;       /* the last string or number, or NULL */
	size_t literal_length;
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

/* Length of the name of a function or argument at `text` if `c` follows it, possibly after blanks,
 * else 0. */
static size_t name_before(const char *text, char c)
{
	size_t length = 0;
	while (is_letter(text[length]) ||
		(length > 0 && text[length] >= '0' && text[length] <= '9'))
		length++;
	return text[length + strspn(text + length, " \t\r\n")] == c ? length : 0;
}

static bool parse_text(struct parser *parser)
{
	char quote = *parser->at;
	const char *from = parser->at++;
	while (*parser->at && *parser->at != quote)
		parser->at += parser->at[0] == '\\' && parser->at[1] ? 2 : 1;
	parser->literal = from + 1;
	parser->literal_length = (size_t)(parser->at - from - 1);
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
	return wrong(parser, dot ? "braces cannot contain a dot" : "a brace is not closed");
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
	if (parser->depth > 1 && is_literal(from, length)) {
		parser->literal = from;
		parser->literal_length = length;
		return true;
	}
	strings_add(&parser->out->paths, parser->arena, arena_strndup(parser->arena, from, length));
	return true;
}

/* "5min", "-1d", "2hours", "1h30min" in ms; 0: not an interval, but perhaps a number of points. */
static int64_t read_interval(const char *text, size_t length)
{
	struct error ignored;
	char word[INTERVAL_MAX];
	int64_t ms = 0;
	size_t sign = length > 0 && strchr("+-", *text) ? 1 : 0;
	snprintf(word, sizeof word, "%.*s", (int)(length - sign), text + sign);
	if (length >= INTERVAL_MAX || !word[strspn(word, "0123456789")] ||
		!when_parse_duration(word, &ms, &ignored))
		return 0;
	return ms < reach_most ? ms : reach_most;
}

/* How far the values of a function reach beyond those of its arguments: by its second argument, an
 * interval or a number of points, by a step, or ahead by a bucket. */
enum reaching { REACHES_NOT, REACHES_WINDOW, REACHES_STEP, REACHES_AHEAD };

static enum reaching reach_of(const char *name, size_t length)
{
	static const char *const names[][11] = {
		[REACHES_WINDOW] = {"movingAverage", "movingMedian", "movingMin", "movingMax",
			"movingSum", "movingWindow", "exponentialMovingAverage", "stdev",
			"timeShift", "delay", "keepLastValue"},
		[REACHES_STEP] = {"derivative", "nonNegativeDerivative", "perSecond"},
		[REACHES_AHEAD] = {"summarize", "smartSummarize", "hitcount"}};
	enum { EACH = sizeof *names / sizeof **names };

	for (enum reaching reaching = REACHES_WINDOW; reaching <= REACHES_AHEAD; reaching++)
		for (size_t i = 0; i < EACH && names[reaching][i]; i++)
			if (strlen(names[reaching][i]) == length &&
				strncmp(names[reaching][i], name, length) == 0)
				return reaching;
	return REACHES_NOT;
}

static int64_t greater(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t bounded_sum(int64_t a, int64_t b, int64_t most)
{
	return a > most - b ? most : a + b;
}

/* Adds a literal argument's contribution to the function's reach. */
static void add_reach(
	enum reaching reaching, const char *text, size_t length, struct target_reach *reach)
{
	int64_t interval = read_interval(text, length), points = 0;
	if (reaching == REACHES_AHEAD) {
		reach->bucket = greater(reach->bucket, interval);
		return;
	}
	for (size_t i = 0; i < length && text[i] >= '0' && text[i] <= '9'; i++)
		points = points < steps_most ? 10 * points + (text[i] - '0') : points;
	if (interval > 0)
		reach->ms = bounded_sum(reach->ms, interval, reach_most);
	else
		reach->steps = bounded_sum(
			reach->steps, points < steps_most ? points : steps_most, steps_most);
}

/* An argument, named or not. */
static bool parse_argument(struct parser *parser)
{
	parser->reach = (struct target_reach){0};
	parser->literal = NULL;
	skip_space(parser);
	if (name_before(parser->at, '=')) {
		parser->at += strcspn(parser->at, "=") + 1;
		skip_space(parser);
	}
	if (*parser->at == '\'' || *parser->at == '"')
		return parse_text(parser);
	return parse_expression(parser);
}

static void set_reach(struct parser *parser, struct target_reach inner, struct target_reach own)
{
	parser->reach = (struct target_reach){bounded_sum(inner.ms, own.ms, reach_most),
		bounded_sum(inner.steps, own.steps, steps_most), greater(inner.bucket, own.bucket)};
}

/* The arguments in brackets, after a piped one. */
static bool parse_call(struct parser *parser, size_t name, int argument)
{
	enum reaching reaching = reach_of(parser->at, name);
	struct target_reach own = {.steps = reaching == REACHES_STEP};
	struct target_reach inner = argument > 0 ? parser->reach : (struct target_reach){0};
	bool tagged = name == strlen(by_tag) && strncmp(parser->at, by_tag, name) == 0;
	parser->at += name;
	skip_space(parser);
	const char *bracket = parser->at++;
	skip_space(parser);
	if (*parser->at == ')') {
		parser->at++;
		set_reach(parser, inner, own);
		return true;
	}
	for (;; argument++) {
		if (!parse_argument(parser))
			return false;
		inner = (struct target_reach){greater(inner.ms, parser->reach.ms),
			greater(inner.steps, parser->reach.steps),
			greater(inner.bucket, parser->reach.bucket)};
		if ((reaching == REACHES_WINDOW || reaching == REACHES_AHEAD) && argument == 1 &&
			parser->literal)
			add_reach(reaching, parser->literal, parser->literal_length, &own);
		set_reach(parser, inner, own);
		skip_space(parser);
		char c = *parser->at;
		if (c != ',' && c != ')') {
			if (!c)
				parser->at = bracket;
			return wrong(parser, c ? "a comma or ) is missing" : "( is not closed");
		}
		parser->at++;
		if (c != ')')
			continue;
		if (tagged)
			strings_add(&parser->out->tagged, parser->arena,
				arena_strndup(parser->arena, bracket + 1,
					(size_t)(parser->at - bracket - 2)));
		return true;
	}
}

static bool parse_expression(struct parser *parser)
{
	if (++parser->depth > NESTING_MAX)
		return wrong(parser, "too many nested functions");
	skip_space(parser);
	size_t name = name_before(parser->at, '(');
	if (!(name ? parse_call(parser, name, 0) : parse_path(parser)))
		return false;
	skip_space(parser);
	while (*parser->at == '|') {
		parser->at++;
		skip_space(parser);
		name = name_before(parser->at, '(');
		if (!name)
			return wrong(parser, "a function is missing behind |");
		if (!parse_call(parser, name, 1))
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
		.out = &expression,
	};
	if (parse_expression(&parser) && *parser.at)
		wrong(&parser,
			*parser.at == ')' ? "one ) too many" : "unexpected text after its end");
	expression.reach = parser.reach;
	return expression;
}

static void write_matcher(struct buf *out, const char *text)
{
	size_t name = strcspn(text, "!=");
	const char *sign = text + name;
	bool negative = *sign == '!', regex = sign[negative] && sign[negative + 1] == '~';
	const char *value = sign + negative + regex + 1;
	struct buf whole = {0};
	if (name == 0 || sign[negative] != '=')
		return;
	buf_text(out, out->length > 0 ? "," : "");
	buf_append(out, text, name);
	buf_text(out, negative ? "!" : "=");
	buf_text(out, regex ? "~" : negative ? "=" : "");
	buf_printf(&whole, regex ? "(?:%s).*" : "%s", value);
	buf_json_text(out, whole.data);
	buf_free(&whole);
}

const char *target_matchers(struct arena *arena, const char *arguments)
{
	struct buf out = {0};
	for (;;) {
		arguments += strcspn(arguments, "'\"");
		const char *end = *arguments ? strchr(arguments + 1, *arguments) : NULL;
		if (!end)
			return buf_keep(&out, arena);
		write_matcher(
			&out, arena_strndup(arena, arguments + 1, (size_t)(end - arguments - 1)));
		arguments = end + 1;
	}
}
