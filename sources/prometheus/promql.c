/*
 * Both parts walk the query once and know quotes, escapes and comments as PromQL's lexer does.
 */
#include "sources/prometheus/promql.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/when.h"

static const char variable[] = "%{BRANCH}";

struct walk {
	const char *at;
	char quote;   /* the open one, or 0 */
	bool pattern; /* the quotes hold a regular expression */
	char before;  /* the last non-blank character outside of quotes */
};

bool promql_has_branch(const char *query)
{
	return strstr(query, variable);
}

/* Writes a byte within quotes. */
static void write_escaped(struct buf *out, char c, const struct walk *walk)
{
	if (walk->pattern && strchr("\\.+*?()|[]{}^$", c))
		buf_text(out, "\\\\");
	if (c == '\n')
		buf_text(out, "\\n");
	else if ((unsigned char)c < ' ')
		buf_printf(out, "\\x%02x", (unsigned char)c);
	else if (c == '\\' || c == walk->quote)
		buf_printf(out, "\\%c", c);
	else
		buf_char(out, c);
}

static bool write_branch(
	struct buf *out, const struct walk *walk, const char *branch, struct error *error)
{
	if (walk->quote == '`') {
		if (strpbrk(branch, walk->pattern ? "`\\.+*?()|[]{}^$" : "`"))
			return error_set(error, ERROR_USAGE,
				"branch \"%s\" cannot be inserted within backquotes: use quotes in "
				"query",
				branch);
		buf_text(out, branch);
		return true;
	}
	if (!walk->quote) {
		for (const char *c = branch; *c; c++)
			if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_:",
				    *c))
				return error_set(error, ERROR_USAGE,
					"branch \"%s\" cannot be part of a name: put %s into "
					"quotes in query",
					branch, variable);
		buf_text(out, branch);
		return true;
	}
	for (const char *c = branch; *c; c++)
		write_escaped(out, *c, walk);
	return true;
}

/* Copies the next character, escape or comment. */
static void walk_on(struct walk *walk, struct buf *out)
{
	const char *at = walk->at;
	size_t length = 1;
	if (walk->quote) {
		if (*at == walk->quote)
			walk->quote = walk->before = 0;
		else if (*at == '\\' && walk->quote != '`' && at[1])
			length = 2;
	} else if (*at == '#') {
		length = strcspn(at, "\n");
	} else if (strchr("\"'`", *at)) {
		walk->quote = *at;
		walk->pattern = walk->before == '~';
	} else if (!strchr(" \t\r\n", *at)) {
		walk->before = *at;
	}
	buf_append(out, at, length);
	walk->at += length;
}

bool promql_fill_branch(struct arena *arena, const char *query, const char *branch,
	const char **out, struct error *error)
{
	struct walk walk = {.at = query};
	struct buf text = {0};
	bool filled = true;
	while (filled && *walk.at) {
		if (strncmp(walk.at, variable, strlen(variable)) != 0) {
			walk_on(&walk, &text);
			continue;
		}
		filled = write_branch(&text, &walk, branch, error);
		walk.at += strlen(variable);
	}
	while (text.length > 0 && strchr(" \t\r\n", text.data[text.length - 1]))
		text.length--;
	*out = buf_keep(&text, arena);
	return filled;
}

enum { REACH_NESTING_MAX = 100, DURATION_MAX = 40 };

static const char *const groupings[] = {
	"by", "without", "on", "ignoring", "group_left", "group_right", NULL};

static const int64_t reach_most = INT64_C(315360000000); /* ms, ten years */

/* Operands in brackets: the longest of the finished ones, and the last one, to which a following
 * range or offset belongs. -1: no range in it. */
struct operands {
	int64_t longest, last;
};

struct reach {
	const char *at;
	int64_t step;
	struct operands open[REACH_NESTING_MAX];
	size_t depth;
};

static int64_t longer(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_' || c == ':';
}

/* Skips the word, and returns its length. */
static size_t skip_word(struct reach *reach)
{
	const char *word = reach->at;
	while (is_word(*reach->at))
		reach->at++;
	return (size_t)(reach->at - word);
}

static void skip_blanks(struct reach *reach)
{
	for (;;) {
		reach->at += strspn(reach->at, " \t\r\n");
		if (*reach->at != '#')
			return;
		reach->at += strcspn(reach->at, "\n");
	}
}

/* Skips past the closing quote, or to the end. */
static void skip_quotes(struct reach *reach)
{
	char quote = *reach->at++;
	while (*reach->at && *reach->at != quote)
		reach->at += *reach->at == '\\' && quote != '`' && reach->at[1] ? 2 : 1;
	reach->at += *reach->at ? 1 : 0;
}

static void skip_labels(struct reach *reach)
{
	while (*reach->at && *reach->at != '}') {
		if (strchr("\"'`", *reach->at))
			skip_quotes(reach);
		else
			reach->at++;
	}
	reach->at += *reach->at ? 1 : 0;
}

/* "1h30m", "5m", "1.5d", "300" (seconds), "2i" (steps) in ms; 0: not a duration. */
static int64_t read_reach(struct reach *reach)
{
	char word[DURATION_MAX], *end;
	struct error ignored;
	int64_t ms = 0;
	skip_blanks(reach);
	size_t length = strspn(reach->at, "0123456789.msihdwy");
	snprintf(word, sizeof word, "%.*s", (int)length, reach->at);
	reach->at += length;
	double steps = strtod(word, &end);
	if (strcmp(end, "i") == 0)
		ms = (int64_t)fmin(steps * (double)reach->step, (double)reach_most);
	else if (length >= DURATION_MAX || !when_parse_duration(word, &ms, &ignored))
		ms = 0;
	return ms < reach_most ? ms : reach_most;
}

static void add_reach(int64_t *reach, int64_t more)
{
	int64_t sum = longer(*reach, 0) + more;
	*reach = sum > reach_most ? reach_most : sum;
}

/* The labels of a grouping do not affect the reach. */
static void skip_grouping(struct reach *reach)
{
	skip_blanks(reach);
	if (*reach->at != '(')
		return;
	reach->at += strcspn(reach->at, ")");
	reach->at += *reach->at ? 1 : 0;
}

static void end_operand(struct operands *operands)
{
	operands->longest = longer(operands->longest, operands->last);
	operands->last = -1;
}

static bool is_one_of(const char *text, size_t length, const char *const *words)
{
	for (; *words; words++)
		if (strlen(*words) == length && strncmp(*words, text, length) == 0)
			return true;
	return false;
}

/* A negative offset does not make anything reach further back. */
static void read_word(struct reach *reach, struct operands *operands)
{
	const char *word = reach->at;
	size_t length = skip_word(reach);
	if (is_one_of(word, length, groupings)) {
		skip_grouping(reach);
	} else if (length == 6 && strncmp(word, "offset", 6) == 0) {
		skip_blanks(reach);
		bool ahead = *reach->at == '-';
		reach->at += ahead;
		int64_t offset = read_reach(reach);
		if (!ahead)
			add_reach(&operands->last, offset);
	} else {
		end_operand(operands);
	}
}

static bool read_next(struct reach *reach)
{
	struct operands *operands = &reach->open[reach->depth];
	skip_blanks(reach);
	char c = *reach->at;
	if (!c)
		return false;
	if (strchr("\"'`", c)) {
		skip_quotes(reach);
	} else if (c == '{') {
		skip_labels(reach);
	} else if (c == '[') {
		reach->at++; /* [5m], [1h:], [1h:1m] */
		add_reach(&operands->last, read_reach(reach));
		reach->at += strcspn(reach->at, "]");
		reach->at += *reach->at ? 1 : 0;
	} else if (c == '(') {
		end_operand(operands);
		reach->at++;
		if (reach->depth + 1 < REACH_NESTING_MAX)
			reach->open[++reach->depth] = (struct operands){-1, -1};
	} else if (c == ')') {
		reach->at++;
		end_operand(operands);
		if (reach->depth > 0)
			reach->open[--reach->depth].last = operands->longest;
		else
			operands->last = operands->longest;
	} else if (is_word(c)) {
		read_word(reach, operands);
	} else if (c == '@') {
		reach->at++;
		skip_blanks(reach);
		reach->at += strspn(reach->at, "0123456789.abcdefghijklmnopqrstuvwxyz()");
	} else {
		end_operand(operands);
		reach->at++;
	}
	return true;
}

int64_t promql_reach(const char *query, int64_t step)
{
	struct reach reach = {.at = query, .step = step, .open = {{-1, -1}}};
	while (read_next(&reach))
		continue;
	int64_t longest = -1;
	for (size_t i = 0; i <= reach.depth; i++)
		longest = longer(longest, longer(reach.open[i].longest, reach.open[i].last));
	return longest;
}

bool promql_is_selector(const char *query)
{
	struct reach reach = {.at = query};
	skip_blanks(&reach);
	bool named = skip_word(&reach) > 0;
	skip_blanks(&reach);
	if (*reach.at == '{')
		skip_labels(&reach);
	else if (!named)
		return false;
	skip_blanks(&reach);
	return !*reach.at;
}

/* The text between the braces that are next, which are skipped. */
static const char *read_labels(struct reach *reach, struct arena *arena)
{
	const char *from = reach->at + 1;
	skip_labels(reach);
	return arena_strndup(arena, from, (size_t)(reach->at - from - (reach->at[-1] == '}')));
}

/* Whether the word is a function or an aggregation: a bracket follows, or by (...). */
static bool is_called(struct reach reach)
{
	static const char *const aggregations[] = {"by", "without", NULL};
	skip_blanks(&reach);
	const char *word = reach.at;
	return *word == '(' || is_one_of(word, skip_word(&reach), aggregations);
}

static void read_name(struct reach *reach, struct query *query, struct source_readings *out)
{
	static const char *const others[] = {
		"and", "or", "unless", "bool", "offset", "atan2", "inf", "Inf", "nan", "NaN", NULL};
	const char *word = reach->at;
	size_t length = skip_word(reach);
	if (is_one_of(word, length, groupings)) {
		skip_grouping(reach);
		return;
	}
	if (is_one_of(word, length, others) || is_called(*reach))
		return;
	struct source_reading reading = {
		READING_SERIES, arena_strndup(query->arena, word, length), NULL};
	skip_blanks(reach);
	if (*reach->at == '{')
		reading.matchers = read_labels(reach, query->arena);
	query_reads(query, out, reading);
}

void promql_reads(struct query *query, const char *text, struct source_readings *out)
{
	struct reach reach = {.at = text};
	for (;;) {
		skip_blanks(&reach);
		char c = *reach.at;
		if (!c)
			return;
		if (strchr("\"'`", c))
			skip_quotes(&reach);
		else if (c == '{')
			query_reads(query, out,
				(struct source_reading){
					READING_SERIES, NULL, read_labels(&reach, query->arena)});
		else if (c == '[')
			reach.at += strcspn(reach.at, "]");
		else if ((c >= '0' && c <= '9') || c == '.')
			reach.at +=
				strspn(reach.at, "0123456789.abcdefghijklmnopqrstuvwxyzABCDEFX");
		else if (is_word(c))
			read_name(&reach, query, out);
		else
			reach.at++;
	}
}
