/*
 * What went wrong, as one sentence for a person, and whose fault it was.
 *
 * Every fallible function returns bool (false: failed) or an enum step and takes a trailing `struct
 * error *`, which it fills exactly when it fails. The text names what the reader can act on: file,
 * line, key, column, host. It never holds a secret. Errors live in the caller's frame; nothing is
 * allocated.
 */
#ifndef CORE_ERROR_H
#define CORE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

enum { ERROR_TEXT = 1024 };

/* The kinds map to exit codes: 2, 3, 4 (see exit_code in agent/cli/cli.h). */
enum error_kind {
	ERROR_NONE,
	ERROR_USAGE, /* wrong flags or configuration: the user must change something */
	ERROR_DATA,  /* some data could not be had: a file, a server, a malformed answer */
	ERROR_STATE, /* the agent's own store or port could not be had */
};

struct error {
	enum error_kind kind;
	char text[ERROR_TEXT];
};

/* Fills *error with a formatted sentence (cut at ERROR_TEXT, never inside a UTF-8 sequence; control
 * characters, which files and servers may put into it, are blanked). Always returns false. */
bool error_set(struct error *error, enum error_kind kind, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* Puts formatted words before the text that is there ("results.csv: "), keeping the kind. Always
 * returns false. */
bool error_prefix(struct error *error, const char *format, ...) PRINTF_LIKE(2, 3);

/* Puts '?' for what a terminal would obey. */
void error_blank(char *text);

#endif
