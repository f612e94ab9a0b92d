/*
 * Matchers select by named values, as Prometheus and Alertmanager do: test=~"db.*", region="eu".
 *
 * The text is a list of matchers between commas, in braces or without them. A matcher is a name,
 * one of =, !=, =~ and !~, and a value. Values are quoted as in Prometheus ("..." and '...' with
 * escapes, `...` without); a value without blanks, commas, braces, quotation marks and operators
 * may go without quotation marks. Regular expressions are PCRE2's and match the whole value. A
 * value that is missing is "". All matchers of a list must match.
 *
 * Compiled matchers are immutable and may be used by several threads. The expressions come from
 * outside: their sizes and numbers are limited, and so is the effort of each match.
 */
#ifndef AGENT_BASE_MATCHER_H
#define AGENT_BASE_MATCHER_H

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/field.h"

enum {
	MATCHERS_MOST = 32,
	MATCHERS_TEXT_MOST = 4096, /* bytes of the whole text, and of its canonical form */
	MATCHER_NAME_MOST = 128,   /* bytes of a name */
	MATCHER_VALUE_MOST = 1024, /* bytes of a value, unescaped */
};

enum matcher_operator {
	MATCHER_EQUAL,
	MATCHER_NOT_EQUAL,
	MATCHER_REGEX,
	MATCHER_NOT_REGEX,
};

struct matcher_regex;

struct matcher {
	const char *name, *value;
	enum matcher_operator operator;
	struct matcher_regex *regex; /* of the last two */
};

struct matchers {
	const struct matcher *items;
	size_t count;
};

/*
 * Reads and compiles a list of matchers, in the arena; the compiled expressions need matchers_free.
 * An ERROR_USAGE names the column (from 1) and the expected token. If it `selects`, a list that
 * matches a target without values is refused: it would select everything by mistake. Other lists
 * only narrow another selection.
 */
bool matchers_parse(const char *text, struct arena *arena, bool selects, struct matchers *out,
	struct error *error) MUST_USE;

/* Frees the expressions; matchers without any need no call. */
void matchers_free(struct matchers *matchers);

/* Appends the canonical text: test=~"db.*", region="eu". matchers_parse reads it back as the same
 * matchers, and equal lists have equal texts. */
void matchers_print(const struct matchers *matchers, struct buf *out);

/* The values of a name, which need not be sorted; none: it is missing. They are the context's and
 * stay valid until its next call. */
typedef struct strings matcher_values(void *context, const char *name);

/* The cost of matching. A step of an expression takes about 30 ns, with values of usual lengths. */
struct matcher_effort {
	size_t steps;
	const struct matcher *exceeded; /* the last that exceeded its limit; or NULL */
};

/*
 * Whether all match. Of a name with several values (the groups of a test) = and =~ hold if they
 * hold for one of them, != and !~ if they hold for each. An expression that exceeds its limit of
 * effort does not match, whatever the operator. Its cost is added to *effort, unless that is NULL.
 */
bool matchers_match(const struct matchers *matchers, matcher_values *values, void *context,
	struct matcher_effort *effort);

/* One matcher against one value. */
bool matcher_matches(
	const struct matcher *matcher, const char *value, struct matcher_effort *effort);

#endif
