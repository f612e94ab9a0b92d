/*
 * The environment overrides any configuration: no protocol is allowed, and commits that a partial
 * clone lacks are not fetched (a git without that variable fails at the protocol). Values of these
 * variables would be masked in git's output, so none is a number.
 */
#include "agent/io/git.h"

#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/io/execution.h"

struct transfer git_transfer(
	struct arena *arena, const char *folder, const char *const *arguments, bool fetches)
{
	const char *const head[] = {"git", "-C", folder, "--no-pager", "-c",
		"log.showSignature=false", "-c", "core.fsmonitor=false", "-c",
		"core.hooksPath=/dev/null", "-c", "submodule.recurse=false", "-c",
		"protocol.ext.allow=never"};
	static const struct pair alone[] = {{"GIT_TERMINAL_PROMPT", "false"},
		{"GIT_ALLOW_PROTOCOL", ""}, {"GIT_NO_LAZY_FETCH", "true"}};
	enum { HEAD = sizeof head / sizeof *head };
	size_t count = 0;
	const char **command;

	while (arguments[count])
		count++;
	command = arena_array(arena, HEAD + count + 1, sizeof *command);
	memcpy(command, head, sizeof head);
	memcpy(command + HEAD, arguments, count * sizeof *command);
	return (struct transfer){.kind = TRANSFER_EXEC,
		.command = command,
		.body = "",
		.environment = {alone, fetches ? 1 : sizeof alone / sizeof *alone}};
}

const char *const git_filters[] = {
	"config", "-z", "--show-scope", "--get-regexp", "^filter\\.", NULL};

bool git_listed_filters(const struct reply *reply)
{
	return reply->kind == REPLY_ANSWER && (reply->status == 0 || reply->status == 1);
}

/* An entry of what git_filters prints: "local\0filter.lfs.smudge\ngit-lfs smudge -- %f\0". */
struct filter {
	const char *scope, *key;
	size_t length; /* of the key */
};

/* Whether the setting comes from outside the clone's configuration. */
static bool is_protected(const struct filter *filter)
{
	return strcmp(filter->scope, "system") == 0 || strcmp(filter->scope, "global") == 0;
}

/* Cuts an entry off the output; false at its end, or where it was cut. */
static bool next_filter(const char **at, const char *end, struct filter *out)
{
	const char *scope_end = memchr(*at, '\0', (size_t)(end - *at));
	const char *stop =
		scope_end ? memchr(scope_end + 1, '\0', (size_t)(end - scope_end - 1)) : NULL;

	if (!stop)
		return false;
	*out = (struct filter){*at, scope_end + 1, strcspn(scope_end + 1, "\n")};
	*at = stop + 1;
	return true;
}

/* Overrides a key of the clone's configuration by the user's or system's value, or unsets it. */
static const char *without(struct arena *arena, const struct buf *listed, const struct filter *one)
{
	static const char required[] = ".required";
	const char *at = listed->data, *end = listed->data + listed->length, *value = "";
	size_t size = sizeof required - 1;
	struct filter other;

	if (one->length > size && memcmp(one->key + one->length - size, required, size) == 0)
		value = "false";
	while (next_filter(&at, end, &other))
		if (is_protected(&other) && other.length == one->length &&
			memcmp(other.key, one->key, one->length) == 0)
			value = other.key[other.length] ? other.key + other.length + 1 : "true";
	return arena_printf(arena, "%.*s=%s", (int)one->length, one->key, value);
}

const char *const *git_without_filters(
	struct arena *arena, const struct buf *listed, const char *const *arguments)
{
	const char *at = listed->data, *end = at ? at + listed->length : NULL;
	const char **out = NULL;
	size_t count = 0;
	struct filter one;

	while (at && next_filter(&at, end, &one)) {
		if (is_protected(&one))
			continue;
		if (memchr(one.key, '=', one.length))
			return NULL;
		out = arena_grow(arena, out, count, sizeof *out);
		out[count++] = "-c";
		out = arena_grow(arena, out, count, sizeof *out);
		out[count++] = without(arena, listed, &one);
	}
	do {
		out = arena_grow(arena, out, count, sizeof *out);
		out[count++] = *arguments;
	} while (*arguments++);
	return at == end ? out : NULL;
}

const char *git_problem(struct arena *arena, const struct execution *execution)
{
	const struct reply *reply = &execution->reply;
	const char *problem = reply->problem ? reply->problem : "git failed without a message";

	if (reply->kind == REPLY_UNREACHABLE && reply->status == EXECUTION_NOT_FOUND)
		return "git is not installed";
	if (reply->kind == REPLY_ANSWER && strncmp(problem, "fatal: ", 7) == 0)
		problem += 7;
	return arena_printf(
		arena, "git: %s", git_text(arena, problem, problem + strlen(problem), 200));
}

const char *git_text(struct arena *arena, const char *text, const char *end, size_t most)
{
	struct buf out = {0};

	buf_clean(&out, arena_strndup(arena, text, (size_t)(end - text)), most);
	return buf_keep(&out, arena);
}
