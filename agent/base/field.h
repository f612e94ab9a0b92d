/*
 * Option tables: every option of hunter-c is declared once, in an array of struct field, and that
 * one declaration serves YAML, the command line, --help, the man page and the docs.
 *
 *     struct edivisive_options { int64_t window; double p_value; };
 *     static const struct field edivisive_fields[] = {
 *         OPTION_INT(struct edivisive_options, window, "50", 2, 1e6, "window length in points"),
 *         OPTION_DOUBLE(struct edivisive_options, p_value, "0.001", 0, 1,
 *             "significance level of a change point", .flags = FIELD_MIN_OPEN),
 *         {0}};
 *
 * A table ends with a field without a name. Values are parsed from text, checked against the range
 * or the choices and stored at `offset` of the options struct. This header needs nothing but libc,
 * so that detectors may use it.
 */
#ifndef AGENT_BASE_FIELD_H
#define AGENT_BASE_FIELD_H

#include <stddef.h>
#include <stdint.h>

#include "agent/base/error.h"

struct arena;
struct buf;

/* A list of strings, and a map of them; both borrowed from an arena or static. */
struct strings {
	const char *const *items;
	size_t count;
};

/* Adds a text, which is not copied, to a list that this function alone has made, in the arena. */
void strings_add(struct strings *list, struct arena *arena, const char *text);

struct pair {
	const char *key, *value;
};

struct pairs {
	const struct pair *items;
	size_t count;
};

enum field_type {       /* the type stored at `offset`: */
	FIELD_BOOL,     /* bool */
	FIELD_INT,      /* int64_t */
	FIELD_DOUBLE,   /* double */
	FIELD_STRING,   /* const char *, NULL when not given */
	FIELD_SECRET,   /* const char *; never printed */
	FIELD_DURATION, /* int64_t milliseconds; "never" is INT64_MAX */
	FIELD_BYTES,    /* int64_t; "64MB", "1GiB" */
	FIELD_CHOICE,   /* int: index into choices */
	FIELD_LIST,     /* struct strings; on the command line "a,b", or the flag repeated */
	FIELD_MAP,      /* struct pairs; YAML only */
};

enum field_flag {
	FIELD_REQUIRED = 1,
	FIELD_MIN_OPEN = 2, /* the value must be above min, not equal */
	FIELD_MAX_OPEN = 4,
	FIELD_HIDDEN =
		8, /* accepted, not shown in help: spellings kept for Hunter's and Otava's files */
	FIELD_ENV = 16,      /* `$X` is expanded besides `${X}` (Hunter's service sections) */
	FIELD_MANY = 32,     /* a LIST flag that takes all words up to the next flag */
	FIELD_EMPTY = 64,    /* a SECRET that may be empty, which means none */
	FIELD_COMMAND = 128, /* a LIST or STRING with a command: words may be the same, and `$X` is
				the shell's */
	FIELD_FOLDER =
		256, /* a STRING: a folder, relative to the configuration file that names it */
	FIELD_WHOLE = 512,   /* a LIST: not split at commas, each text is one item */
	FIELD_CLOSED = 1024, /* a MAP with values that are never printed */
};

struct field {
	const char *name;  /* as in YAML, with underscores; on the command line with dashes */
	const char *alias; /* a second accepted name, or NULL */
	enum field_type type;
	size_t offset;
	const char
		*initial; /* default as text, of a LIST its one item; or NULL: zero, NULL, empty */
	const char *variable; /* environment variable that overrides the default if set, or NULL */
	double min, max;      /* for INT, DOUBLE, DURATION (ms), BYTES; no check when both are 0 */
	const char *const *choices; /* for CHOICE, NULL-terminated */
	unsigned flags;             /* enum field_flag */
	char letter;                /* short flag, or 0 */
	const char *metavar;        /* the value's name in --help, or NULL: by type */
	const char *help;           /* one sentence without a full stop */
};

/*
 * Rows of a table. A row's name is that of the struct's member; the compiler refuses a member of
 * another type. `initial` is the default as text, or NULL. Last come the help text and, as
 * designated initialisers, further members.
 */
#define OPTION_BOOL(of, member, ...) OPTION_ROW(BOOL, bool, #member, of, member, __VA_ARGS__)
#define OPTION_SECRET(of, member, ...)                                                             \
	OPTION_ROW(SECRET, const char *, #member, of, member, __VA_ARGS__)
#define OPTION_LIST(of, member, ...)                                                               \
	OPTION_ROW(LIST, struct strings, #member, of, member, __VA_ARGS__)
#define OPTION_MAP(of, member, ...) OPTION_ROW(MAP, struct pairs, #member, of, member, __VA_ARGS__)
#define OPTION_STRING(of, member, initial, ...)                                                    \
	OPTION_STRING_AS(#member, of, member, initial, __VA_ARGS__)
#define OPTION_STRING_AS(name, of, member, initial, ...)                                           \
	OPTION_DEFAULT(STRING, const char *, name, of, member, initial, __VA_ARGS__)
#define OPTION_INT(of, member, initial, min, max, ...)                                             \
	OPTION_RANGE(INT, int64_t, of, member, initial, min, max, __VA_ARGS__)
#define OPTION_DOUBLE(of, member, initial, min, max, ...)                                          \
	OPTION_RANGE(DOUBLE, double, of, member, initial, min, max, __VA_ARGS__)
#define OPTION_DURATION(of, member, initial, min, max, ...)                                        \
	OPTION_RANGE(DURATION, int64_t, of, member, initial, min, max, __VA_ARGS__)
#define OPTION_BYTES(of, member, initial, min, max, ...)                                           \
	OPTION_RANGE(BYTES, int64_t, of, member, initial, min, max, __VA_ARGS__)
#define OPTION_CHOICE(of, member, initial, choices_, ...)                                          \
	OPTION_DEFAULT(                                                                            \
		CHOICE, int, #member, of, member, initial, __VA_ARGS__, .choices = (choices_))

#define OPTION_TYPED(of, member, c_type) _Generic(((of *)0)->member, c_type : offsetof(of, member))
#define OPTION_ROW(type_, c_type, name_, of, member, ...)                                          \
	{                                                                                          \
		.name = (name_), .type = FIELD_##type_,                                            \
		.offset = OPTION_TYPED(of, member, c_type), .help = __VA_ARGS__                    \
	}
#define OPTION_DEFAULT(type, c_type, name, of, member, initial_, ...)                              \
	OPTION_ROW(type, c_type, name, of, member, __VA_ARGS__, .initial = (initial_))
#define OPTION_RANGE(type, c_type, of, member, initial, min_, max_, ...)                           \
	OPTION_DEFAULT(type, c_type, #member, of, member, initial, __VA_ARGS__, .min = (min_),     \
		.max = (max_))

/* Sets every field of the struct to its default. Strings point to the table's static text. */
void field_defaults(const struct field *fields, void *options);

/*
 * Sets each field whose environment variable is set and not empty; `get` is getenv with a
 * context. On an invalid value the field keeps its default, and the call fails with *error set.
 */
bool field_variables(const struct field *fields, void *options,
	const char *(*get)(void *context, const char *name), void *context, struct arena *arena,
	struct error *error) MUST_USE;

/* The field of that name (dashes and underscores are the same) or alias, or NULL. */
const struct field *field_find(const struct field *fields, const char *name);

/*
 * Parses `text` and stores it, for every type but MAP (a LIST is split at commas outside of
 * brackets and quotation marks, unless FIELD_WHOLE, and appended). Copies go to the arena. Fails
 * with a text that names the field: `p-value: "2" is not between 0 and 1`.
 */
bool field_parse(const struct field *field, void *options, const char *text, struct arena *arena,
	struct error *error) MUST_USE;

/* Appends the value as text ("50", "0.001", "a,b"), secrets as "***". */
void field_print(const struct field *field, const void *options, struct buf *out);

/* The nearest of `count` names within an edit distance of a third of its length, or NULL: for
 * "did you mean". */
const char *field_suggest(const char *word, const char *const *names, size_t count);
const char *field_suggest_name(const char *word, const struct field *fields);

/* Appends ` (did you mean "x"?)` to the error if a name is near. Always returns false. */
bool field_hint(struct error *error, const char *word, const char *const *names, size_t count);

#endif
