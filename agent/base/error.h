/*
 * An error: its kind, and one sentence for the user.
 *
 * Every fallible function returns bool (false: failed) or an enum step and takes a trailing `struct
 * error *`, which it fills only on failure. The text names file, line, key, column or host, so that
 * the reader can act. It never contains a secret. Errors live in the caller's frame; nothing is
 * allocated.
 */
#ifndef AGENT_BASE_ERROR_H
#define AGENT_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

enum { ERROR_TEXT = 1024 };

/* The kinds map to exit codes: 2, 3, 4 (see exit_code in agent/cli/cli.h). */
enum error_kind {
	ERROR_NONE,
	ERROR_USAGE, /* wrong flags or configuration: the user must change something */
	ERROR_DATA,  /* some data unavailable: a file, a server, a malformed answer */
	ERROR_STATE, /* the agent's own store or port unavailable */
};

struct error {
	enum error_kind kind;
	char text[ERROR_TEXT];
};

/* Fills *error with a formatted sentence (cut at ERROR_TEXT, never inside a UTF-8 sequence;
 * control characters, which files and servers may insert, are blanked). The error's own text may be
 * among the arguments. Always returns false. */
bool error_set(struct error *error, enum error_kind kind, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* Prepends a formatted prefix to the text ("results.csv: ") and keeps the kind. Always returns
 * false. */
bool error_prefix(struct error *error, const char *format, ...) PRINTF_LIKE(2, 3);

/* Replaces characters that control a terminal by '?'. */
void error_blank(char *text);

#endif
