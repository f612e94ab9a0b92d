/*
 * The bytes pass through the arena only, which is wiped with the job that needed them. The
 * loop's thread may read, so nothing here may block: a pipe is refused, and opened without
 * blocking.
 */
#include "agent/base/secret.h"
#include "agent/base/number.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/utf8.h"

enum {
	SECRET_BYTES = 16384, /* tokens are short, JSON web tokens have some thousand bytes */
	ESCAPED = 12          /* most bytes of one escaped character: "&amp;#x002d;" */
};

/* -1 with errno; errno 0: not a regular file. */
static ssize_t read_file(int file, char *text)
{
	struct stat status;

	if (fstat(file, &status) != 0)
		return -1;
	errno = 0;
	return S_ISREG(status.st_mode) ? read(file, text, SECRET_BYTES + 1) : -1;
}

static bool has_controls(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return true;
	return false;
}

/* The limit alone has no effect where core_pattern is a pipe; the flag is Linux's own. Neither
 * call can fail with these arguments. */
void secret_forbid_dumps(void)
{
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){0});
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

bool secret_read(struct arena *arena, const char *option, const char *path, const char **secret,
	struct error *error)
{
	char *text = arena_alloc(arena, SECRET_BYTES + 1), reason[128];
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t length = file < 0 ? -1 : read_file(file, text);
	int failure = errno;

	arena_holds_secrets(arena);
	if (file >= 0)
		close(file);
	if (length < 0)
		return error_set(error, ERROR_DATA, "%s %s: %s", option, path,
			failure ? strerror_r(failure, reason, sizeof reason)
				: "is not a regular file");
	if (length > SECRET_BYTES || memchr(text, '\0', (size_t)length))
		return error_set(error, ERROR_DATA, "%s %s: does not hold a single line of text",
			option, path);
	text[length] = '\0';
	length = (ssize_t)secret_length(text);
	text[length] = '\0';
	if (length == 0)
		return error_set(error, ERROR_DATA, "%s: %s is empty", option, path);
	if (has_controls(text, (size_t)length))
		return error_set(error, ERROR_DATA,
			"%s %s: must hold one line without control characters", option, path);
	*secret = text;
	return true;
}

bool secret_same(const void *a, const void *b, size_t length)
{
	return gnutls_memcmp(a, b, length) == 0;
}

bool secret_pick(struct arena *arena, const char *given, const char *option, const char *path,
	const char **secret, struct error *error)
{
	*secret = given;
	return given || !path || secret_read(arena, option, path, secret, error);
}

size_t secret_length(const char *secret)
{
	size_t length = strlen(secret);
	while (length > 0 && strchr(" \t\r\n", secret[length - 1]))
		length--;
	return length;
}

bool secret_check(const char *option, const char *secret, struct error *error)
{
	size_t length = secret_length(secret);
	if (length == 0)
		return error_set(
			error, ERROR_USAGE, "%s: it is %s", option, *secret ? "blank" : "empty");
	if (has_controls(secret, length))
		return error_set(error, ERROR_USAGE,
			"%s: contains a line break or another control character", option);
	return true;
}

static size_t json_length(const char *text, size_t left, char c)
{
	char code[8];
	if (left < 2)
		return 0;
	if (text[1] == c && strchr("\"\\/", c))
		return 2;
	snprintf(code, sizeof code, "\\u%04x", (unsigned char)c);
	return left >= 6 && strncasecmp(text, code, 6) == 0 ? 6 : 0;
}

static size_t percent_length(const char *text, size_t left, char c)
{
	char code[8];
	snprintf(code, sizeof code, "%%%02x", (unsigned char)c);
	return left >= 3 && strncasecmp(text, code, 3) == 0 ? 3 : 0;
}

/* &amp; or &#38; or &#x26; */
static size_t entity_length(const char *text, size_t left, char c)
{
	static const struct {
		const char *text;
		char c;
	} known[] = {
		{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
	char number[12];
	size_t length = left < sizeof number ? left : sizeof number - 1;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (c == known[i].c && left >= strlen(known[i].text) &&
			memcmp(text, known[i].text, strlen(known[i].text)) == 0)
			return strlen(known[i].text);
	if (left < 4 || text[1] != '#')
		return 0;
	memcpy(number, text, length);
	number[length] = '\0';
	bool hex = (number[2] | 0x20) == 'x';
	char *digits = number + (hex ? 3 : 2), *end = digits;
	if (!isxdigit((unsigned char)*digits))
		return 0;
	unsigned long code = strtoul(digits, &end, hex ? 16 : 10);
	return *end == ';' && code == (unsigned char)c ? (size_t)(end - number) + 1 : 0;
}

/* The same for text that was escaped twice, where that differs from escaping once: the first
 * escape's backslash, percent sign or & is escaped itself. */
static size_t twice_length(const char *text, size_t left, char c)
{
	static const struct {
		const char *text, *inner; /* as escaped, and the character that it stands for */
	} marks[] = {{"\\\\\\", "\\"}, {"\\\\", "\\"}, {"%25", "%"}, {"&amp;", "&"}};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		size_t length = strlen(marks[i].text), size;
		char rest[16];
		if (left <= length || memcmp(text, marks[i].text, length) != 0)
			continue;
		size = left - length < sizeof rest - 2 ? left - length : sizeof rest - 2;
		rest[0] = *marks[i].inner;
		memcpy(rest + 1, text + length, size);
		rest[size + 1] = '\0';
		size = *rest == '\\'  ? json_length(rest, size + 1, c)
		       : *rest == '%' ? percent_length(rest, size + 1, c)
				      : entity_length(rest, size + 1, c);
		if (size)
			return length - 1 + size;
	}
	return 0;
}

/* Characters that start an escape. */
static bool is_escape(char c)
{
	return c == '\\' || c == '%' || c == '&' || c == '+';
}

/* Bytes of `text` that stand for `c`, plain or as JSON, URLs and HTML escape it; 0: no match. */
static size_t match_char(const char *text, size_t left, char c)
{
	size_t escaped = 0;
	if (left == 0)
		return 0;
	switch (*text) {
	case '\\': escaped = json_length(text, left, c); break;
	case '%': escaped = percent_length(text, left, c); break;
	case '&': escaped = entity_length(text, left, c); break;
	case '+': escaped = c == ' '; break;
	default: break;
	}
	return escaped ? escaped : *text == c;
}

static size_t match_escaped(const char *text, size_t left, const char *secret, bool twice)
{
	size_t at = 0, size;
	for (; *secret; secret++, at += size) {
		size = twice ? twice_length(text + at, left - at, *secret) : 0;
		if (!size && !(size = match_char(text + at, left - at, *secret)))
			return 0;
	}
	return at;
}

/* Bytes of `text` that match the secret; 0: no match. */
static size_t match(const char *text, size_t left, const char *secret)
{
	size_t length = strlen(secret);
	if (length <= left && memcmp(text, secret, length) == 0)
		return length;
	length = match_escaped(text, left, secret, false);
	return length ? length : match_escaped(text, left, secret, true);
}

/* The same for the secret in hexadecimal. */
static size_t match_hex(const char *text, size_t left, const char *secret)
{
	size_t at = 0;
	for (; *secret; secret++, at += 2) {
		unsigned char byte = (unsigned char)*secret;
		if (left - at < 2 || number_hex_digit(text[at]) != byte >> 4 ||
			number_hex_digit(text[at + 1]) != (byte & 15))
			return 0;
	}
	return at;
}

/* The base64 digits, and the URL- and filename-safe variant. */
static const char *const base64_digits[] = {
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"};

/* The digit for six bits of the secret from `bit` on; bits past its end are 0. */
static char base64_digit(const char *secret, size_t bit, const char *digits)
{
	const unsigned char *byte = (const unsigned char *)secret + bit / 8;
	unsigned two = (unsigned)byte[0] << 8 | byte[1];
	return digits[two >> (10 - bit % 8) & 63];
}

/* The same for the secret in base64, with or without padding. */
static size_t match_base64(const char *text, size_t left, const char *secret, const char *digits)
{
	size_t bits = 8 * strlen(secret), at = 0, size;
	for (size_t bit = 0; bit < bits; bit += 6, at += size)
		if (!(size = match_char(text + at, left - at, base64_digit(secret, bit, digits))))
			return 0;
	for (int i = 0; i < 2 && (size = match_char(text + at, left - at, '=')); i++)
		at += size;
	return at;
}

static size_t match_any(const char *text, size_t left, const char *secret)
{
	char first = *text;
	size_t length = 0;
	if (first == *secret || is_escape(first))
		length = match(text, left, secret);
	for (size_t i = 0; i < 2; i++) {
		if (length > 0 ||
			(first != base64_digit(secret, 0, base64_digits[i]) && !is_escape(first)))
			continue;
		length = match_base64(text, left, secret, base64_digits[i]);
	}
	return length ? length : match_hex(text, left, secret);
}

/* A byte is blanked only after all matches that start at it have been tried: secrets may
 * overlap. */
void secret_mask(char *text, size_t length, const struct strings *secrets)
{
	size_t until = 0;
	bool word =
		true; /* whether a match may start here: the byte before may be blanked by now */
	for (size_t at = 0; at < length; at++) {
		for (size_t i = 0; i < secrets->count; i++) {
			const char *secret = secrets->items[i];
			if (!*secret)
				continue;
			size_t end = at + match_any(text + at, length - at, secret);
			if (end > until &&
				(strlen(secret) >= SECRET_SHORTEST ||
					(word && (end == length ||
							 !isalnum((unsigned char)text[end])))))
				until = end;
		}
		word = !isalnum((unsigned char)text[at]);
		if (at < until)
			text[at] = '*';
	}
}

char *secret_cut(struct arena *arena, const char *text, size_t most, const struct strings *secrets)
{
	size_t length = strnlen(text, most + ESCAPED * SECRET_BYTES);
	char *copy = arena_strndup(arena, text, length);
	secret_mask(copy, length, secrets);
	copy[utf8_cut(copy, most)] = '\0';
	return copy;
}
