/*
 * Secrets: those that lie in files (the `*_file` options), what they may hold, and how they are
 * kept out of what others say.
 *
 * Files are read at each use, so that a token can be changed while the agent runs. Errors name the
 * option and the file, never the content.
 */
#ifndef CORE_SECRET_H
#define CORE_SECRET_H

#include "agent/core/arena.h"
#include "agent/core/field.h"

/*
 * No core dumps of this process, and no debugger of another process of its user: secrets are about
 * to be read. Metrics that it reads of itself from /proc stay readable to itself.
 */
void secret_forbid_dumps(void);

/* The one line that the regular file holds, without the white space at its end, into the arena,
 * which will be wiped when it is freed. Fails with ERROR_DATA. */
bool secret_read(struct arena *arena, const char *option, const char *path, const char **secret,
	struct error *error) MUST_USE;

/* Its bytes without the white space at the end. */
size_t secret_length(const char *secret);

/* Whether it can be sent in a header and signed with: something without control characters, but for
 * the white space at its end. Fails with ERROR_USAGE. */
bool secret_check(const char *option, const char *secret, struct error *error) MUST_USE;

/*
 * Puts '*' for each byte of the secrets in a text: as they are, with the escapes of JSON, URLs or
 * HTML once or twice, or each by itself in base64 or hexadecimal digits. Those shorter than
 * SECRET_SHORTEST only where they are words of their own, as half of all others would have to go
 * with them.
 */
enum { SECRET_SHORTEST = 4 };
void secret_mask(char *text, size_t length, const struct strings *secrets);

/* The text in the arena, masked and then cut to `most` bytes at a whole character: what is cut
 * first may end with nearly all of a secret, which is no longer found. */
char *secret_cut(struct arena *arena, const char *text, size_t most, const struct strings *secrets);

#endif
