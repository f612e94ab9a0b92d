/*
 * Secrets: reading them from files (the `*_file` options), checking them, and removing them from
 * text that servers echo.
 *
 * Files are read at each use, so that a token can be changed while the agent runs. Errors name
 * the option and the file, never the content.
 */
#ifndef AGENT_BASE_SECRET_H
#define AGENT_BASE_SECRET_H

#include "agent/base/arena.h"
#include "agent/base/field.h"

/*
 * Disables core dumps of this process and debugging by other processes of its user; called
 * before secrets are read. The process can still read its own metrics from /proc.
 */
void secret_forbid_dumps(void);

/* Reads the single line of a regular file, without trailing white space, into the arena, which
 * is wiped when it is freed. Fails with ERROR_DATA. */
bool secret_read(struct arena *arena, const char *option, const char *path, const char **secret,
	struct error *error) MUST_USE;

/* The secret that is given, else that of its file, if there is one. */
bool secret_pick(struct arena *arena, const char *given, const char *option, const char *path,
	const char **secret, struct error *error) MUST_USE;

/* Compares bytes in constant time. */
bool secret_same(const void *a, const void *b, size_t length);

/* Its length without trailing white space. */
size_t secret_length(const char *secret);

/* Whether it can be sent in a header and signed with: not empty and without control characters,
 * apart from trailing white space. Fails with ERROR_USAGE. */
bool secret_check(const char *option, const char *secret, struct error *error) MUST_USE;

/*
 * Replaces each byte of the secrets in a text by '*': plain, with the escapes of JSON, URLs or
 * HTML once or twice, or in base64 or hexadecimal. Secrets shorter than SECRET_SHORTEST are
 * masked only as separate words, as otherwise half of all words would be blanked.
 */
enum { SECRET_SHORTEST = 4 };
void secret_mask(char *text, size_t length, const struct strings *secrets);

/* The text in the arena, masked and then cut to `most` bytes at a whole character: if it was cut
 * first, it might end with most of a secret, which would no longer match. */
char *secret_cut(struct arena *arena, const char *text, size_t most, const struct strings *secrets);

#endif
