/*
 * Most expressions begin with plain text (db.*, eu-.*), and most values do not begin with it: that
 * is compared before PCRE2 runs, so a mismatch costs nanoseconds.
 *
 * PCRE2 limits the effort of a match, but does not report it. Callouts before each part of an
 * expression count it.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "agent/base/matcher.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/label.h"
#include "agent/base/number.h"
#include "agent/base/utf8.h"

enum { STEPS_MOST = 2000, DEPTH_MOST = 1000, HEAP_KIB = 1024, NESTING_MOST = 50, STEP_BYTES = 256 };

/* Steps of the match that this thread makes. */
static _Thread_local size_t steps;

struct matcher_regex {
	pcre2_code *code;
	pcre2_match_context *limits;
	char *prefix; /* every value that matches begins with it */
	size_t prefix_length;
	bool all; /* the pattern is the prefix and ".*" */
};

static const char *const operators[] = {[MATCHER_EQUAL] = "=",
	[MATCHER_NOT_EQUAL] = "!=",
	[MATCHER_REGEX] = "=~",
	[MATCHER_NOT_REGEX] = "!~"};

/* The reading position and the result. */
struct reader {
	const char *text, *at;
	struct arena *arena;
	struct error *error;
};

static bool fail(const struct reader *reader, const char *at, const char *expected)
{
	char near[24];
	size_t length = utf8_cut(at, sizeof near - 1);

	memcpy(near, at, length);
	near[length] = '\0';
	return error_set(reader->error, ERROR_USAGE, "column %zu: expected %s, found %s%s%s",
		(size_t)(at - reader->text) + 1, expected, *at ? "`" : "", *at ? near : "the end",
		*at ? "`" : "");
}

static bool refuse(const struct reader *reader, const char *at, const char *problem)
{
	return error_set(reader->error, ERROR_USAGE, "column %zu: %s",
		(size_t)(at - reader->text) + 1, problem);
}

static void skip_blanks(struct reader *reader)
{
	reader->at += strspn(reader->at, " \t\r\n");
}

/* Quoted texts */

static bool put_code(const struct reader *reader, const char *at, unsigned code, struct buf *out)
{
	char bytes[4];

	if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return refuse(reader, at, "the escape is not a character");
	buf_append(out, bytes, utf8_write(code, bytes));
	return true;
}

/* `digits` digits of that base, as Go's strings have them: \x41, \101, \u00e9, \U0001f600. */
static bool read_digits(
	struct reader *reader, unsigned base, size_t digits, const char *from, unsigned *code)
{
	*code = 0;
	for (size_t i = 0; i < digits; i++) {
		int digit = number_hex_digit(*reader->at);

		if (digit < 0 || (unsigned)digit >= base)
			return refuse(reader, from, "the escape has too few digits");
		*code = *code * base + (unsigned)digit;
		reader->at++;
	}
	return true;
}

/* reader->at is behind the backslash. */
static bool read_escape(struct reader *reader, char quote, struct buf *out)
{
	static const char letters[] = "abfnrtv\\", values[] = "\a\b\f\n\r\t\v\\";
	const char *from = reader->at - 1, *letter;
	char c = *reader->at;
	unsigned code;

	if (c == quote || (c && (letter = strchr(letters, c)))) {
		buf_char(out, c == quote ? quote : values[letter - letters]);
		reader->at++;
		return true;
	}
	if (c >= '0' && c <= '7')
		return read_digits(reader, 8, 3, from, &code) && put_code(reader, from, code, out);
	if (!c || !strchr("xuU", c))
		return refuse(reader, from,
			"unknown escape (in an expression write \\\\. or use `...`, which has no "
			"escapes)");
	reader->at++;
	return read_digits(reader, 16,
		       c == 'x'   ? 2
		       : c == 'u' ? 4
				  : 8,
		       from, &code) &&
	       put_code(reader, from, code, out);
}

static bool read_quoted(struct reader *reader, struct buf *out)
{
	const char *from = reader->at;
	char quote = *reader->at++;

	while (*reader->at && *reader->at != quote) {
		char c = *reader->at++;

		if (c != '\\' || quote == '`')
			buf_char(out, c);
		else if (!read_escape(reader, quote, out))
			return false;
	}
	if (!*reader->at)
		return refuse(reader, from, "the quotation mark is not closed");
	reader->at++;
	return true;
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'' || c == '`';
}

/* A text with or without quotation marks; the latter ends at one of `ends`. */
static bool read_text(struct reader *reader, const char *ends, const char *expected, size_t most,
	const char **out)
{
	const char *from = reader->at;
	struct buf text = {0};
	bool good = true;

	if (is_quote(*reader->at)) {
		good = read_quoted(reader, &text);
	} else {
		size_t length = strcspn(reader->at, ends);

		buf_append(&text, reader->at, length);
		reader->at += length;
		good = length > 0 || fail(reader, from, expected);
	}
	if (good && text.length > most)
		good = error_set(reader->error, ERROR_USAGE, "column %zu: longer than %zu bytes",
			(size_t)(from - reader->text) + 1, most);
	*out = buf_keep(&text, reader->arena);
	return good;
}

/* Expressions */

static void regex_free(struct matcher_regex *regex)
{
	if (!regex)
		return;
	pcre2_code_free(regex->code);
	pcre2_match_context_free(regex->limits);
	free(regex->prefix);
	free(regex);
}

/* The plain text with which the expression begins, if all that matches begins with it. */
static void find_prefix(struct matcher_regex *regex, const char *pattern)
{
	size_t length = strcspn(pattern, "\\^$.[|()?*+{");

	if (strchr(pattern, '|'))
		length = 0;
	/* The last letter before a quantifier may be missing. */
	if (length > 0 && pattern[length] && strchr("?*+{", pattern[length])) {
		length--;
		while (length > 0 && ((unsigned char)pattern[length] & 0xc0) == 0x80)
			length--;
	}
	regex->prefix = memory_strdup(pattern);
	regex->prefix[length] = '\0';
	regex->prefix_length = length;
	regex->all = strcmp(pattern + length, ".*") == 0;
}

static int count_step(pcre2_callout_block *block, void *context)
{
	(void)block, (void)context;
	steps++;
	return 0;
}

/* Compiled once, anchored at both ends. Dots match line ends, too, as in Alertmanager. */
static struct matcher_regex *compile(
	const struct reader *reader, const char *at, const char *pattern)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	struct matcher_regex *regex = memory_new(1, sizeof *regex);
	PCRE2_SIZE where = 0;
	int problem = 0;

	*regex = (struct matcher_regex){0};
	if (context) {
		pcre2_set_parens_nest_limit(context, NESTING_MOST);
		regex->code = pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern),
			PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOTALL | PCRE2_UTF |
				PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT,
			&problem, &where, context);
		pcre2_compile_context_free(context);
	}
	if (!regex->code) {
		PCRE2_UCHAR text[160] = "out of memory";

		if (problem != 0)
			pcre2_get_error_message(problem, text, sizeof text);
		error_set(reader->error, ERROR_USAGE,
			"column %zu: not a regular expression: %s (at its character %zu)",
			(size_t)(at - reader->text) + 1, (const char *)text, (size_t)where + 1);
		regex_free(regex);
		return NULL;
	}
	regex->limits = pcre2_match_context_create(NULL);
	if (!regex->limits)
		abort();
	pcre2_set_match_limit(regex->limits, STEPS_MOST);
	pcre2_set_depth_limit(regex->limits, DEPTH_MOST);
	pcre2_set_heap_limit(regex->limits, HEAP_KIB);
	pcre2_set_callout(regex->limits, count_step, NULL);
	find_prefix(regex, pattern);
	return regex;
}

/* In a long value one step passes many bytes. */
static bool regex_matches(
	const struct matcher_regex *regex, const char *value, size_t *cost, bool *exceeded)
{
	pcre2_match_data *data;
	size_t length;
	int result;

	if (strncmp(value, regex->prefix, regex->prefix_length) != 0)
		return false;
	if (regex->all)
		return true;
	length = strlen(value);
	data = pcre2_match_data_create(1, NULL);
	if (!data)
		abort();
	steps = 1;
	result = pcre2_match(regex->code, (PCRE2_SPTR)value, length, 0, 0, data, regex->limits);
	pcre2_match_data_free(data);
	*cost = steps * (1 + length / STEP_BYTES);
	if (result == PCRE2_ERROR_MATCHLIMIT || result == PCRE2_ERROR_DEPTHLIMIT ||
		result == PCRE2_ERROR_HEAPLIMIT)
		*exceeded = true;
	return result >= 0;
}

bool matcher_matches(
	const struct matcher *matcher, const char *value, struct matcher_effort *effort)
{
	bool over = false, found;
	size_t cost = 0;

	if (matcher->operator== MATCHER_EQUAL || matcher->operator== MATCHER_NOT_EQUAL)
		return (strcmp(matcher->value, value) == 0) == (matcher->operator== MATCHER_EQUAL);
	found = regex_matches(matcher->regex, value, &cost, &over);
	effort->steps += cost;
	if (over)
		effort->exceeded = matcher;
	return !over && found == (matcher->operator== MATCHER_REGEX);
}

static bool match_one(
	const struct matcher *matcher, struct strings values, struct matcher_effort *effort)
{
	bool negative =
		matcher->operator== MATCHER_NOT_EQUAL || matcher->operator== MATCHER_NOT_REGEX;

	if (values.count == 0)
		return matcher_matches(matcher, "", effort);
	for (size_t i = 0; i < values.count; i++)
		if (matcher_matches(matcher, values.items[i], effort) != negative)
			return !negative;
	return negative;
}

bool matchers_match(const struct matchers *matchers, matcher_values *values, void *context,
	struct matcher_effort *effort)
{
	struct matcher_effort own = {0};
	bool good = true;

	for (size_t i = 0; i < matchers->count && good; i++) {
		const struct matcher *matcher = &matchers->items[i];

		good = match_one(matcher, values(context, matcher->name), &own) && !own.exceeded;
	}
	if (effort) {
		effort->steps += own.steps;
		effort->exceeded = own.exceeded ? own.exceeded : effort->exceeded;
	}
	return good;
}

/* The list */

static bool read_operator(struct reader *reader, enum matcher_operator *out)
{
	static const enum matcher_operator longest_first[] = {
		MATCHER_NOT_EQUAL, MATCHER_REGEX, MATCHER_NOT_REGEX, MATCHER_EQUAL};

	for (size_t i = 0; i < sizeof longest_first / sizeof *longest_first; i++) {
		const char *text = operators[longest_first[i]];

		if (strncmp(reader->at, text, strlen(text)) != 0)
			continue;
		reader->at += strlen(text);
		*out = longest_first[i];
		return true;
	}
	return fail(reader, reader->at, "one of = != =~ !~");
}

static bool read_matcher(struct reader *reader, struct matcher *matcher)
{
	const char *from = reader->at;

	if (!read_text(reader, " \t\r\n=!~,{}\"'`", "a name, such as test, metric or region",
		    MATCHER_NAME_MOST, &matcher->name))
		return false;
	if (!*matcher->name ||
		(!is_quote(*from) && !label_is_name(matcher->name, strlen(matcher->name))))
		return fail(reader, from, "a name, such as test, metric or region");
	skip_blanks(reader);
	if (!read_operator(reader, &matcher->operator))
		return false;
	skip_blanks(reader);
	from = reader->at;
	if (!read_text(reader, " \t\r\n=!~,{}\"'`", "a value, such as \"eu\"", MATCHER_VALUE_MOST,
		    &matcher->value))
		return false;
	if (matcher->operator== MATCHER_REGEX || matcher->operator== MATCHER_NOT_REGEX)
		matcher->regex = compile(reader, from, matcher->value);
	return matcher->operator== MATCHER_EQUAL || matcher->operator== MATCHER_NOT_EQUAL ||
		matcher->regex != NULL;
}

/* Up to the closing brace, or the end. */
static bool read_list(struct reader *reader, struct matcher *items, size_t *count)
{
	skip_blanks(reader);
	bool braced = *reader->at == '{';

	reader->at += braced;
	for (skip_blanks(reader); *reader->at && *reader->at != '}'; skip_blanks(reader)) {
		if (*count == MATCHERS_MOST)
			return refuse(reader, reader->at, "more than 32 matchers");
		if (!read_matcher(reader, &items[(*count)++]))
			return false;
		skip_blanks(reader);
		if (*reader->at != ',')
			break;
		reader->at++;
	}
	if (braced && *reader->at != '}')
		return fail(reader, reader->at, "a comma or }");
	reader->at += braced;
	skip_blanks(reader);
	return !*reader->at || fail(reader, reader->at, "a comma or the end");
}

static struct strings no_values(void *context, const char *name)
{
	(void)context;
	(void)name;
	return (struct strings){0};
}

static bool check(const struct reader *reader, const struct matchers *matchers, bool selects)
{
	struct buf text = {0};
	bool fits;

	if (matchers->count == 0)
		return fail(reader, reader->text, "a matcher, such as test=\"checkout\"");
	if (selects && matchers_match(matchers, no_values, NULL, NULL))
		return error_set(reader->error, ERROR_USAGE,
			"the matchers match everything without these values; add one that requires "
			"a value, such as test=~\".+\"");
	matchers_print(matchers, &text);
	fits = text.length <= MATCHERS_TEXT_MOST;
	buf_free(&text);
	return fits ||
	       error_set(reader->error, ERROR_USAGE, "longer than %d bytes", MATCHERS_TEXT_MOST);
}

bool matchers_parse(const char *text, struct arena *arena, bool selects, struct matchers *out,
	struct error *error)
{
	struct reader reader = {.text = text, .at = text, .arena = arena, .error = error};
	struct matcher *items = arena_array(arena, MATCHERS_MOST, sizeof *items);
	size_t length = strlen(text);

	*out = (struct matchers){.items = items};
	if (length > MATCHERS_TEXT_MOST)
		return error_set(error, ERROR_USAGE, "longer than %d bytes", MATCHERS_TEXT_MOST);
	for (size_t i = 0, step; i < length; i += step) {
		step = utf8_length(text + i, length - i);
		if (step == 0)
			return refuse(&reader, text + i, "not UTF-8");
	}
	if (read_list(&reader, items, &out->count) && check(&reader, out, selects))
		return true;
	matchers_free(out);
	*out = (struct matchers){0};
	return false;
}

void matchers_free(struct matchers *matchers)
{
	for (size_t i = 0; i < matchers->count; i++)
		regex_free(matchers->items[i].regex);
}

void matchers_print(const struct matchers *matchers, struct buf *out)
{
	for (size_t i = 0; i < matchers->count; i++) {
		const struct matcher *matcher = &matchers->items[i];

		if (i > 0)
			buf_text(out, ", ");
		if (label_is_name(matcher->name, strlen(matcher->name)))
			buf_text(out, matcher->name);
		else
			buf_json_text(out, matcher->name);
		buf_text(out, operators[matcher->operator]);
		buf_json_text(out, matcher->value);
	}
}
